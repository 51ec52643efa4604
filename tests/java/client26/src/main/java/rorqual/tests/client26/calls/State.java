// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.calls;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerDescription;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Await;

/**
 * The cluster's state that calls of Admin can change, as text, and its reset to the state before every call: a table {@code t} with two regions, a
 * disabled table {@code d}, a snapshot {@code s} of t, a namespace {@code n}, a replication peer {@code p}; all switches on.
 */
final class State {
    static final TableName T = TableName.valueOf("t");
    static final TableName D = TableName.valueOf("d");
    private static final Pattern UNFINISHED = Pattern.compile("\"state\"\\s*:\\s*\"(RUNNABLE|WAITING|WAITING_TIMEOUT|INITIALIZING)\"");

    private final Cluster cluster;
    private final Admin admin;
    private final String peer;
    private String base;

    State(Cluster cluster, String peer) {
        this.cluster = cluster;
        this.admin = cluster.admin;
        this.peer = peer;
    }

    String base() {
        return base;
    }

    ServerName server() throws IOException {
        return admin.getRegionServers().iterator().next();
    }

    List<RegionInfo> regions(TableName table) throws IOException {
        List<RegionInfo> all = new ArrayList<>(admin.getRegions(table));
        all.sort(Comparator.comparing(RegionInfo::getStartKey, Bytes.BYTES_COMPARATOR));
        return all;
    }

    ReplicationPeerConfig peerConfig() {
        return ReplicationPeerConfig.newBuilder().setClusterKey(peer + ":/hbase").build();
    }

    static TableDescriptor table(TableName name, String... families) {
        TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(name);
        for (String family : families) {
            builder.setColumnFamily(ColumnFamilyDescriptorBuilder.of(family));
        }
        return builder.build();
    }

    // ---- as text -----------------------------------------------------------------------------------------------------

    /** One line for each object: its name, and its state. */
    private Map<String, String> things() throws Exception {
        Map<String, String> things = new TreeMap<>();
        for (TableDescriptor table : admin.listTableDescriptors()) {
            things.put("table " + table.getTableName(), ofTable(table));
        }
        for (NamespaceDescriptor namespace : admin.listNamespaceDescriptors()) {
            things.put("namespace " + namespace.getName(), namespace.toString());
        }
        for (SnapshotDescription one : admin.listSnapshots()) {
            things.put("snapshot " + one.getName(), one.getTableNameAsString() + " " + one.getType() + " ttl " + one.getTtl());
        }
        for (ReplicationPeerDescription one : admin.listReplicationPeers()) {
            ReplicationPeerConfig config = one.getPeerConfig();
            things.put("peer " + one.getPeerId(), one.isEnabled() + " " + config.getTableCFsMap() + " " + config.getNamespaces() + " " + config.replicateAllUserTables());
        }
        List<QuotaSettings> quotas = admin.getQuota(new QuotaFilter());
        things.put("quotas", quotas.stream().map(Object::toString).sorted().toList().toString());
        things.put("switches", "balancer " + admin.isBalancerEnabled() + " normalizer " + admin.isNormalizerEnabled() + " split " + admin.isSplitEnabled()
            + " merge " + admin.isMergeEnabled() + " janitor " + admin.isCatalogJanitorEnabled() + " cleaner " + admin.isCleanerChoreEnabled() + " snapshots "
            + admin.isSnapshotCleanupEnabled() + " throttle " + admin.isRpcThrottleEnabled() + " peers " + admin.isReplicationPeerModificationEnabled());
        things.put("decommissioned", admin.listDecommissionedRegionServers().size() + "");
        return things;
    }

    private String ofTable(TableDescriptor table) throws Exception {
        boolean enabled = admin.isTableEnabled(table.getTableName());
        StringBuilder regions = new StringBuilder();
        for (RegionInfo region : regions(table.getTableName())) {
            regions.append('[').append(s(region.getStartKey())).append(']');
        }
        return (enabled ? "enabled " + rows(table.getTableName()) : "disabled ") + regions + " " + table.toStringCustomizedValues();
    }

    /** Limits retries: if a call has closed a region, a client would retry for a long time. */
    private String rows(TableName name) throws IOException {
        if (!admin.getRegions(server()).containsAll(admin.getRegions(name))) {
            return "not all of it ";
        }
        int rows = 0;
        try (Table table = cluster.connection.getTable(name); ResultScanner scanner = table.getScanner(new Scan())) {
            for (Result ignored : scanner) {
                rows++;
            }
        }
        return rows + " rows ";
    }

    String text() throws Exception {
        StringBuilder text = new StringBuilder();
        things().forEach((name, what) -> text.append(name).append(": ").append(what).append('\n'));
        return text.toString();
    }

    /** The state as text, once nothing that a call has started is running. */
    String settled() throws Exception {
        Await.until("procedures have ended", () -> !UNFINISHED.matcher(admin.getProcedures()).find());
        for (TableName name : admin.listTableNames()) {
            if (admin.isTableEnabled(name)) {
                Await.until("compactions of " + name + " have ended", () -> admin.getCompactionState(name) == CompactionState.NONE);
            }
        }
        return text();
    }

    /** The lines that only one of the two states has, on one line. */
    static String change(String before, String after) {
        List<String> old = before.lines().toList();
        List<String> now = after.lines().toList();
        StringBuilder change = new StringBuilder();
        old.stream().filter(line -> !now.contains(line)).forEach(line -> change.append(" | - ").append(line, 0, line.indexOf(':')));
        now.stream().filter(line -> !old.contains(line)).forEach(line -> change.append(" | + ").append(line));
        return Shown.masked(change.toString());
    }

    // ---- back to the beginning ---------------------------------------------------------------------------------------

    void restore() throws Exception {
        switches();
        namespaces();
        Map<String, String> wanted = base == null ? Map.of() : lines(base);
        Map<String, String> now = things();
        boolean same = base != null;
        for (TableName name : admin.listTableNames()) {
            String key = "table " + name;
            if (!now.get(key).equals(wanted.get(key))) {
                drop(name);
            }
        }
        same &= admin.tableExists(T) && admin.tableExists(D);
        tables();
        snapshots(same);
        peers();
        for (TableName name : admin.listTableNames()) {
            if (name.getNamespaceAsString().equals("gone")) {
                drop(name);
            }
        }
        base = settled();
    }

    private static Map<String, String> lines(String text) {
        Map<String, String> lines = new TreeMap<>();
        text.lines().forEach(line -> lines.put(line.substring(0, line.indexOf(": ")), line.substring(line.indexOf(": ") + 2)));
        return lines;
    }

    private void switches() throws Exception {
        admin.balancerSwitch(true, true);
        admin.normalizerSwitch(true);
        admin.splitSwitch(true, true);
        admin.mergeSwitch(true, true);
        admin.catalogJanitorSwitch(true);
        admin.cleanerChoreSwitch(true);
        admin.snapshotCleanupSwitch(true, true);
        admin.switchRpcThrottle(true);
        admin.exceedThrottleQuotaSwitch(false);
        admin.replicationPeerModificationSwitch(true);
        admin.compactionSwitch(true, List.of());
        for (ServerName server : admin.listDecommissionedRegionServers()) {
            admin.recommissionRegionServer(server, List.of());
        }
        for (QuotaSettings quota : Arguments.removals()) {
            admin.setQuota(quota);
        }
    }

    private void namespaces() throws IOException {
        for (NamespaceDescriptor one : admin.listNamespaceDescriptors()) {
            if (one.getName().equals("new") || one.getName().equals("n") && !one.getConfiguration().isEmpty()) {
                admin.deleteNamespace(one.getName());
            }
        }
        if (!List.of(admin.listNamespaces()).contains("n")) {
            admin.createNamespace(NamespaceDescriptor.create("n").build());
        }
    }

    private void drop(TableName name) throws IOException {
        if (admin.isTableEnabled(name)) {
            admin.disableTable(name);
        }
        admin.deleteTable(name);
    }

    private void tables() throws IOException {
        if (!admin.tableExists(T)) {
            admin.createTable(table(T, "f", "g"), keys("m"));
            try (Table table = cluster.connection.getTable(T)) {
                for (String row : List.of("a", "c", "n", "p")) {
                    table.put(new Put(b(row)).addColumn(b("f"), b("q"), b("v")));
                }
            }
            admin.flush(T);
        }
        if (!admin.tableExists(D)) {
            admin.createTable(table(D, "f"));
            admin.disableTable(D);
        }
    }

    private void snapshots(boolean same) throws IOException {
        boolean found = false;
        for (SnapshotDescription one : admin.listSnapshots()) {
            if (same && one.getName().equals("s")) {
                found = true;
            } else {
                admin.deleteSnapshot(one.getName());
            }
        }
        if (!found) {
            admin.snapshot("s", T);
        }
    }

    private void peers() throws IOException {
        boolean found = false;
        for (ReplicationPeerDescription one : admin.listReplicationPeers()) {
            found |= one.getPeerId().equals("p") && one.isEnabled() && one.getPeerConfig().replicateAllUserTables();
            if (!found) {
                admin.removeReplicationPeer(one.getPeerId());
            }
        }
        for (ReplicationPeerDescription one : admin.listReplicationPeers()) {
            if (!one.getPeerId().equals("p")) {
                admin.removeReplicationPeer(one.getPeerId());
            }
        }
        if (!found) {
            admin.addReplicationPeer("p", peerConfig());
        }
    }
}
