// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.calls;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.keys;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HRegionInfo;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BalanceRequest;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactType;
import org.apache.hadoop.hbase.client.LogQueryFilter;
import org.apache.hadoop.hbase.client.MasterSwitchType;
import org.apache.hadoop.hbase.client.NormalizeTableFilterParams;
import org.apache.hadoop.hbase.client.ServerType;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.security.access.GetUserPermissionsRequest;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;

/** Arguments for calls of Admin: for each parameter a good value first, then wrong ones. */
final class Arguments {
    private static final TableName NONE = TableName.valueOf("none");

    /** A value is made when the call is made, because regions have new names after each restoration. */
    record Value(String label, Callable<?> maker) {
        Object get() {
            try {
                return maker.call();
            } catch (Exception e) {
                throw new IllegalStateException(label, e);
            }
        }
    }

    private final State state;

    Arguments(State state) {
        this.state = state;
    }

    /** The good arguments, then for each parameter those with one wrong value. Methods that only return a future are called with the
     * first wrong value only. */
    List<List<Value>> of(Method method) {
        List<List<Value>> choices = new ArrayList<>();
        for (int i = 0; i < method.getParameterCount(); i++) {
            choices.add(of(method.getName(), i, method.getParameterTypes()[i], method.getGenericParameterTypes()[i].getTypeName(), method.getParameterCount()));
        }
        List<Value> good = new ArrayList<>(choices.stream().map(c -> c.get(0)).toList());
        List<List<Value>> all = new ArrayList<>(List.of(good));
        for (int i = 0; i < choices.size(); i++) {
            int end = method.getName().endsWith("Async") ? Math.min(2, choices.get(i).size()) : choices.get(i).size();
            for (Value other : choices.get(i).subList(1, end)) {
                List<Value> wrong = new ArrayList<>(good);
                wrong.set(i, other);
                all.add(wrong);
            }
        }
        return all;
    }

    private static Value value(String label, Callable<?> maker) {
        return new Value(label, maker);
    }

    private static List<Value> strings(String... texts) {
        return java.util.Arrays.stream(texts).map(text -> value('"' + text + '"', () -> text)).toList();
    }

    private static List<Value> bytes(String... texts) {
        return java.util.Arrays.stream(texts).map(text -> value('"' + text + '"', () -> b(text))).toList();
    }

    private static List<Value> tables(String... names) {
        return java.util.Arrays.stream(names).map(name -> value(name, () -> TableName.valueOf(name))).toList();
    }

    private List<Value> of(String method, int at, Class<?> type, String generic, int count) {
        if (type == TableName.class) {
            return ofTableName(method, at);
        }
        if (type == byte[].class) {
            return ofBytes(method, at, count);
        }
        if (type == String.class) {
            return ofString(method, at, count);
        }
        if (type == byte[][].class) {
            return ofKeys(method);
        }
        if (generic.startsWith("java.util.List") || generic.startsWith("java.util.Set") || generic.startsWith("java.util.Map")
            || generic.startsWith("java.util.EnumSet")) {
            return ofCollection(method, generic);
        }
        return ofOther(method, type, at);
    }

    private List<Value> ofTableName(String method, int at) {
        if (method.startsWith("cloneSnapshot") || method.equals("cloneTableSchema") && at == 1) {
            return tables("new", "t", "gone:new");
        }
        if (method.startsWith("deleteTable") || method.startsWith("enableTable") && !method.contains("Replication") || method.startsWith("truncateTable")) {
            return tables("d", "t", "none", "hbase:meta");
        }
        return method.startsWith("modifyTable") && !method.contains("Tracker") ? tables("t", "d") : tables("t", "d", "none", "hbase:meta");
    }

    private List<Value> ofKeys(String method) {
        if (method.startsWith("mergeRegions")) {
            return List.of(value("both", () -> new byte[][] {region(0), region(1)}), value("one", () -> new byte[][] {region(0)}),
                value("twice", () -> new byte[][] {region(0), region(0)}), value("unknown", () -> keys("x", "y")));
        }
        return List.of(value("[m]", () -> keys("m")), value("[]", () -> new byte[0][]), value("[b, b]", () -> keys("b", "b")), value("null", () -> null),
            value("[\"\"]", () -> keys("")));
    }

    private byte[] region(int index) throws Exception {
        return state.regions(State.T).get(index).getRegionName();
    }

    private List<Value> regions() {
        return List.of(value("region", () -> region(0)), value("encoded", () -> state.regions(State.T).get(0).getEncodedNameAsBytes()),
            value("disabled's", () -> state.regions(State.D).get(0).getRegionName()), value("unknown", () -> b("x")), value("t", () -> b("t")));
    }

    private List<Value> ofBytes(String method, int at, int count) {
        if (method.contains("Snapshot") || method.equals("snapshot")) {
            return bytes(method.equals("snapshot") ? "x" : "s", "none", "bad name");
        }
        if (method.contains("Namespace")) {
            return bytes("n", "none");
        }
        if (method.equals("getAlterStatus")) {
            return bytes("t", "none");
        }
        if (method.equals("createTable")) {
            return at == 1 ? bytes("b", "") : bytes("y", "a");
        }
        if (method.equals("move") && at == 1) {
            return List.of(value("server", () -> b(state.server().getServerName())), value("unknown", () -> b("x,1,1")), value("null", () -> null));
        }
        if (method.equals("mergeRegions") || method.equals("mergeRegionsAsync")) {
            int index = at;
            return List.of(value("region " + index, () -> region(index)), value("unknown", () -> b("x")));
        }
        if (method.startsWith("split") && (at == 1)) {
            return bytes("c", "", "zz");
        }
        boolean family = at == 1 || method.contains("Column");
        return family ? bytes("f", "none") : regions();
    }

    private List<Value> ofString(String method, int at, int count) {
        if (method.contains("StoreFileTracker") || method.startsWith("cloneSnapshot") && at == 3) {
            return strings("FILE", "DEFAULT", "none");
        }
        if (method.contains("Peer")) {
            return method.startsWith("add") ? strings("q", "p", "a-b") : strings("p", "none");
        }
        if (method.contains("TableSnapshots")) {
            return at == 0 ? strings("t", "x.*", "[") : strings("s", "none");
        }
        if (method.startsWith("listSnapshots") || method.equals("deleteSnapshots")) {
            return strings("s.*", "none", "[");
        }
        if (method.contains("napshot")) {
            return method.contains("Quota") ? strings("n", "none") : method.startsWith("snapshot") ? strings("x", "s", "bad name", "") : strings("s", "none", "bad name");
        }
        if (method.contains("Namespace")) {
            return strings("n", "default", "hbase", "none");
        }
        if (method.contains("Procedure") && !method.startsWith("abort")) {
            return at == 0 ? strings("flush-table-proc", "none") : strings("t", "none");
        }
        if (method.startsWith("closeRegion")) {
            return at == 0 ? List.of(value("region", () -> state.regions(State.T).get(0).getRegionNameAsString()), value("unknown", () -> "x"))
                : List.of(value("server", () -> state.server().getServerName()), value("unknown", () -> "x,1,1"));
        }
        if (method.equals("getLogEntries")) {
            return strings("SLOW_LOG", "LARGE_LOG", "BALANCER_DECISION", "BALANCER_REJECTION", "none");
        }
        return method.equals("hasUserPermissions") ? strings("u") : strings("t", "none.*", "[");
    }

    private List<Value> servers(boolean unknown) {
        List<Value> all = new ArrayList<>(List.of(value("server", () -> List.of(state.server()))));
        if (unknown) {
            all.add(value("unknown", () -> List.of(ServerName.valueOf("x", 1, 1))));
        }
        all.add(value("[]", () -> List.of()));
        return all;
    }

    private List<Value> ofCollection(String method, String generic) {
        if (generic.contains("Option")) {
            return List.of(value("all", () -> EnumSet.allOf(ClusterMetrics.Option.class)), value("live", () -> EnumSet.of(ClusterMetrics.Option.LIVE_SERVERS)),
                value("none", () -> EnumSet.noneOf(ClusterMetrics.Option.class)));
        }
        if (generic.startsWith("java.util.Set") && generic.contains("ServerName")) {
            return List.of(value("server", () -> Set.of(state.server())), value("[]", () -> Set.of()));
        }
        if (generic.startsWith("java.util.Set")) {
            return List.of(value("[long]", () -> Set.of("long")), value("[middle]", () -> Set.of("middle")), value("[]", () -> Set.of()));
        }
        if (generic.contains("ServerName")) {
            return servers(!method.startsWith("decommission"));
        }
        if (generic.startsWith("java.util.Map")) {
            return ofMap(method, generic);
        }
        if (generic.contains("byte[]")) {
            return method.startsWith("flush") ? List.of(value("[f]", () -> List.of(b("f"))), value("[none]", () -> List.of(b("none"))), value("[]", () -> List.of()))
                : List.of(value("[]", () -> List.of()), value("[region]", () -> List.of(state.regions(State.T).get(0).getEncodedNameAsBytes())));
        }
        if (generic.contains("TableName")) {
            return List.of(value("[t, d]", () -> List.of(State.T, State.D)), value("[none]", () -> List.of(NONE)), value("[]", () -> List.of()));
        }
        if (generic.contains("Permission")) {
            return List.of(value("[read t]", () -> List.of(permission())));
        }
        return method.equals("compactionSwitch")
            ? List.of(value("[]", () -> List.of()), value("[server]", () -> List.of(state.server().getServerName())), value("[x,1,1]", () -> List.of("x,1,1")))
            : List.of(value("[t]", () -> List.of("t")), value("[none]", () -> List.of("none")));
    }

    private static List<Value> ofMap(String method, String generic) {
        if (generic.contains("TableName")) {
            return List.of(value("{t: [f]}", () -> Map.of(State.T, List.of("f"))), value("{none: []}", () -> Map.of(NONE, List.of())), value("{}", () -> Map.of()));
        }
        if (method.equals("snapshot")) {
            return List.of(value("{TTL}", () -> new LinkedHashMap<>(Map.of("TTL", 100000L))), value("{}", () -> new LinkedHashMap<>()));
        }
        return List.of(value("{}", () -> Map.of()));
    }

    private static Permission permission() {
        return Permission.newBuilder(State.T).withActions(Permission.Action.READ).build();
    }

    private List<Value> ofOther(String method, Class<?> type, int at) {
        if (type == boolean.class) {
            // No other server exists to which regions could be unloaded.
            return method.startsWith("decommission") ? List.of(value("false", () -> false)) : List.of(value("false", () -> false), value("true", () -> true));
        }
        if (type == int.class) {
            return method.equals("createTable") ? List.of(value("5", () -> 5), value("3", () -> 3), value("2", () -> 2)) : List.of(value("5", () -> 5));
        }
        if (type == long.class) {
            return List.of(value("999999999", () -> 999999999L));
        }
        if (type == ServerName.class) {
            return List.of(value("server", state::server), value("unknown", () -> ServerName.valueOf("127.0.0.1", 1, 1)));
        }
        if (type == Pattern.class) {
            return List.of(value("/t/", () -> Pattern.compile("t")), value("/none.*/", () -> Pattern.compile("none.*")));
        }
        if (type == TableDescriptor.class) {
            return method.startsWith("create") ? newTables() : changedTables();
        }
        if (type == ColumnFamilyDescriptor.class) {
            return families(method);
        }
        if (type == NamespaceDescriptor.class) {
            return namespaces(method);
        }
        return ofEnumsAndMessages(method, type);
    }

    private static List<Value> newTables() {
        return List.of(value("new", () -> State.table(TableName.valueOf("new"), "f")), value("t", () -> State.table(State.T, "f")),
            value("no families", () -> State.table(TableName.valueOf("new"))), value("gone:new", () -> State.table(TableName.valueOf("gone:new"), "f")),
            value("MAX_FILESIZE 1", () -> TableDescriptorBuilder.newBuilder(State.table(TableName.valueOf("new"), "f")).setMaxFileSize(1).build()),
            value("unknown coprocessor", () -> TableDescriptorBuilder.newBuilder(State.table(TableName.valueOf("new"), "f")).setCoprocessor("org.example.Missing").build()),
            value("three replicas", () -> TableDescriptorBuilder.newBuilder(State.table(TableName.valueOf("new"), "f")).setRegionReplication(3).build()));
    }

    private static List<Value> changedTables() {
        return List.of(value("t, a third family", () -> State.table(State.T, "f", "g", "h")), value("t, one family less", () -> State.table(State.T, "f")),
            value("t, read-only", () -> TableDescriptorBuilder.newBuilder(State.table(State.T, "f", "g")).setReadOnly(true).build()),
            value("t, unchanged", () -> State.table(State.T, "f", "g")), value("t, no families", () -> State.table(State.T)), value("none", () -> State.table(NONE, "f")));
    }

    private static List<Value> families(String method) {
        return List.of(value(method.startsWith("add") ? "h" : "f", () -> family(method.startsWith("add") ? "h" : "f", 5)),
            value(method.startsWith("add") ? "f" : "none", () -> family(method.startsWith("add") ? "f" : "none", 5)));
    }

    private static ColumnFamilyDescriptor family(String name, int versions) {
        return ColumnFamilyDescriptorBuilder.newBuilder(b(name)).setMaxVersions(versions).build();
    }

    private static List<Value> namespaces(String method) {
        String good = method.startsWith("create") ? "new" : "n";
        return List.of(value(good, () -> NamespaceDescriptor.create(good).addConfiguration("k", "v").build()),
            value(good.equals("n") ? "none" : "n", () -> NamespaceDescriptor.create(good.equals("n") ? "none" : "n").build()),
            value("hbase", () -> NamespaceDescriptor.create("hbase").build()),
            value("bad limit", () -> NamespaceDescriptor.create(good).addConfiguration("hbase.namespace.quota.maxregions", "x").build()));
    }

    private List<Value> ofEnumsAndMessages(String method, Class<?> type) {
        if (type == SnapshotDescription.class) {
            return List.of(value("x of t", () -> new SnapshotDescription("x", State.T, SnapshotType.FLUSH)), value("s of t", () -> new SnapshotDescription("s", State.T)),
                value("x of none", () -> new SnapshotDescription("x", NONE)));
        }
        if (type == SnapshotType.class) {
            return List.of(value("FLUSH", () -> SnapshotType.FLUSH), value("SKIPFLUSH", () -> SnapshotType.SKIPFLUSH), value("DISABLED", () -> SnapshotType.DISABLED));
        }
        if (type == CompactType.class) {
            return List.of(value("NORMAL", () -> CompactType.NORMAL));
        }
        if (type == MasterSwitchType.class) {
            return List.of(value("SPLIT", () -> MasterSwitchType.SPLIT), value("MERGE", () -> MasterSwitchType.MERGE));
        }
        if (type == MasterSwitchType[].class) {
            return List.of(value("both", () -> MasterSwitchType.values()), value("[]", () -> new MasterSwitchType[0]));
        }
        if (type == ServerType.class) {
            return List.of(value("REGION_SERVER", () -> ServerType.REGION_SERVER), value("MASTER", () -> ServerType.MASTER));
        }
        if (type == ReplicationPeerConfig.class) {
            return List.of(value("peer", state::peerConfig), value("no ZooKeeper", () -> ReplicationPeerConfig.newBuilder().setClusterKey("x").build()),
                value("t alone", () -> ReplicationPeerConfig.newBuilder(state.peerConfig()).setReplicateAllUserTables(false).setTableCFsMap(Map.of(State.T, List.of("f"))).build()));
        }
        if (type == QuotaSettings.class) {
            return quotas();
        }
        if (type == QuotaFilter.class) {
            return List.of(value("all", QuotaFilter::new), value("of t", () -> new QuotaFilter().setTableFilter("t")));
        }
        return ofRequests(type);
    }

    private List<Value> ofRequests(Class<?> type) {
        if (type == BalanceRequest.class) {
            return List.of(value("dry", () -> BalanceRequest.newBuilder().setDryRun(true).build()), value("default", BalanceRequest::defaultInstance));
        }
        if (type == NormalizeTableFilterParams.class) {
            return List.of(value("t", () -> new NormalizeTableFilterParams.Builder().tableNames(List.of(State.T)).build()),
                value("none", () -> new NormalizeTableFilterParams.Builder().tableNames(List.of(NONE)).build()));
        }
        if (type == LogQueryFilter.class) {
            return List.of(value("all", LogQueryFilter::new));
        }
        if (type == UserPermission.class) {
            return List.of(value("u", () -> new UserPermission("u", permission())));
        }
        if (type == GetUserPermissionsRequest.class) {
            return List.of(value("t", () -> GetUserPermissionsRequest.newBuilder(State.T).build()));
        }
        if (type == HRegionInfo.class) {
            return List.of(value("region", () -> new HRegionInfo(state.regions(State.T).get(0))));
        }
        throw new IllegalStateException("no arguments of " + type);
    }

    // ---- quotas ------------------------------------------------------------------------------------------------------

    private static List<Value> quotas() {
        return List.of(value("throttle t", () -> QuotaSettingsFactory.throttleTable(State.T, ThrottleType.REQUEST_NUMBER, 1000, TimeUnit.SECONDS)),
            value("throttle u", () -> QuotaSettingsFactory.throttleUser("u", ThrottleType.WRITE_SIZE, 1 << 20, TimeUnit.MINUTES)),
            value("throttle u on t", () -> QuotaSettingsFactory.throttleUser("u", State.T, ThrottleType.READ_NUMBER, 7, TimeUnit.HOURS)),
            value("throttle n", () -> QuotaSettingsFactory.throttleNamespace("n", ThrottleType.READ_CAPACITY_UNIT, 7, TimeUnit.DAYS)),
            value("throttle all", () -> QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.REQUEST_NUMBER, 100000, TimeUnit.SECONDS)),
            value("space of t", () -> QuotaSettingsFactory.limitTableSpace(State.T, 1L << 40, SpaceViolationPolicy.NO_INSERTS)),
            value("space of none", () -> QuotaSettingsFactory.limitTableSpace(NONE, 1L << 40, SpaceViolationPolicy.DISABLE)),
            value("bypass of u", () -> QuotaSettingsFactory.bypassGlobals("u", true)));
    }

    static List<QuotaSettings> removals() {
        return List.of(QuotaSettingsFactory.unthrottleTable(State.T), QuotaSettingsFactory.unthrottleUser("u"), QuotaSettingsFactory.unthrottleUser("u", State.T),
            QuotaSettingsFactory.unthrottleNamespace("n"), QuotaSettingsFactory.unthrottleRegionServer("all"), QuotaSettingsFactory.bypassGlobals("u", false),
            QuotaSettingsFactory.removeTableSpaceLimit(State.T), QuotaSettingsFactory.removeTableSpaceLimit(NONE));
    }
}
