// SPDX-License-Identifier: Apache-2.0
package hbt;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.junit.AssumptionViolatedException;

/** The functions called by the patched HBaseTestingUtility and MiniHBaseCluster; all use the public client. */
@SuppressWarnings({ "rawtypes", "unchecked" })
public class H {
  static final String ZK = System.getProperty("hbt.zk", "127.0.0.1:2181");
  static final String ZNODE = System.getProperty("hbt.znode", "/hbase");
  /** new (default): drop only what was not there when the run began; all; 0: nothing. */
  static final String CLEAN = System.getenv().getOrDefault("HBT_CLEAN", "new");
  private static Set<String> keep;

  /** Includes system tables: TestCanaryTool makes hbase:canary, and TestNamespace counts tables. */
  private static List<TableName> allTables(Admin a) throws IOException {
    List<TableName> all = new ArrayList<>(Arrays.asList(a.listTableNames()));
    all.addAll(Arrays.asList(a.listTableNamesByNamespace("hbase")));
    return all;
  }

  /** Names present before the run, kept in the file hbt.keep so that every JVM of one run sees the same. */
  private static synchronized Set<String> keep(Admin a) throws IOException {
    if (keep != null) {
      return keep;
    }
    Set<String> s = new TreeSet<>();
    java.nio.file.Path p = java.nio.file.Paths.get(System.getProperty("hbt.keep", "/dev/null"));
    if (java.nio.file.Files.isRegularFile(p)) {
      s.addAll(java.nio.file.Files.readAllLines(p));
    } else if (!CLEAN.equals("all")) {
      for (TableName t : allTables(a)) {
        s.add("t:" + t);
      }
      quiet("list snapshots", () -> {
        for (SnapshotDescription d : a.listSnapshots()) {
          s.add("s:" + d.getName());
        }
        return null;
      });
      quiet("list namespaces", () -> {
        for (NamespaceDescriptor n : a.listNamespaceDescriptors()) {
          s.add("n:" + n.getName());
        }
        return null;
      });
      java.nio.file.Files.write(p, s);
    }
    s.add("t:hbase:meta");
    s.add("t:hbase:namespace");
    s.add("t:hbase:quota");
    s.add("n:default");
    s.add("n:hbase");
    return keep = s;
  }
  static final Set<String> FLAGS = Collections.synchronizedSet(new TreeSet<>());
  private static final Set<Object> HALF = Collections.newSetFromMap(new java.util.WeakHashMap<>());

  public static void flag(String s) {
    FLAGS.add(s);
  }

  public static void flagCp(Object o) {
    if (o instanceof CoprocessorDescriptor) {
      flag("coproc:" + simple(((CoprocessorDescriptor) o).getClassName()));
    } else {
      String t = String.valueOf(o);
      flag("coproc:" + simple(t.startsWith("|") ? t.split("\\|")[1] : t.replaceAll("\\|.*", "")));
    }
  }

  static String simple(String s) {
    return s.substring(s.lastIndexOf('.') + 1);
  }

  public static void flagObj(String kind, Object o) {
    if (o == null) {
      return;
    }
    java.security.CodeSource cs = o.getClass().getProtectionDomain().getCodeSource();
    if (cs != null && String.valueOf(cs.getLocation()).contains("-tests")) {
      flag("custom-" + kind + ":" + simple(o.getClass().getName()));
    }
  }

  public static void skip(String why) {
    flag("skip:" + why);
    throw new AssumptionViolatedException("in-process access: " + why);
  }

  static void point(Configuration c) {
    String hp = ZK.split(",")[0];
    int i = hp.lastIndexOf(':');
    StringBuilder q = new StringBuilder();
    for (String s : ZK.split(",")) {
      q.append(q.length() == 0 ? "" : ",").append(s, 0, s.lastIndexOf(':') < 0 ? s.length() : s.lastIndexOf(':'));
    }
    c.set(HConstants.ZOOKEEPER_QUORUM, q.toString());
    c.set(HConstants.ZOOKEEPER_CLIENT_PORT, i < 0 ? "2181" : hp.substring(i + 1));
  }

  public static Configuration fresh() {
    Configuration c = HBaseConfiguration.create();
    point(c);
    c.set(HConstants.ZOOKEEPER_ZNODE_PARENT, ZNODE);
    // Only for a server that hangs.
    c.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 15);
    c.setInt(HConstants.HBASE_RPC_TIMEOUT_KEY, 120000);
    c.setInt(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, 600000);
    c.setInt(HConstants.HBASE_CLIENT_META_OPERATION_TIMEOUT, 600000);
    return c;
  }

  private static Connection own;

  static synchronized Connection own() throws IOException {
    if (own == null || own.isClosed()) {
      own = ConnectionFactory.createConnection(fresh());
    }
    return own;
  }

  private static String masters;

  public static HBaseCluster start(HBaseTestingUtility u, StartMiniClusterOption o, boolean full)
    throws IOException {
    Configuration c = u.getConfiguration();
    String zn = c.get(HConstants.ZOOKEEPER_ZNODE_PARENT, "/hbase");
    if (!zn.equals(ZNODE) && !zn.equals("/hbase")) {
      skip("second cluster " + zn);
    }
    if (HALF.remove(u)) {
      skip("restart of the cluster");
    }
    c.set(HConstants.ZOOKEEPER_ZNODE_PARENT, ZNODE);
    point(c);
    if (rooted()) {
      c.set(HConstants.HBASE_DIR, fakeRoot().toString());
    }
    if (masters == null) {
      ServerName sn = own().getAdmin().getMaster();
      masters = sn.getHostname() + ":" + sn.getPort();
    }
    c.set(HConstants.MASTER_ADDRS_KEY, masters);
    MiniHBaseCluster m = (MiniHBaseCluster) alloc(MiniHBaseCluster.class);
    try {
      Field cf = HBaseCluster.class.getDeclaredField("conf");
      cf.setAccessible(true);
      cf.set(m, c);
    } catch (ReflectiveOperationException e) {
      throw new IOException(e);
    }
    u.setHBaseCluster(m);
    try (Table t = u.getConnection().getTable(TableName.META_TABLE_NAME);
      ResultScanner s = t.getScanner(new Scan())) {
      while (s.next() != null) {
      }
    }
    u.getAdmin();
    // one class asserts that its own master observer ran: client-visible behaviour does not depend on it
    if (c.get("hbase.coprocessor.master.classes", "").endsWith("TestMultiParallel$MyMasterObserver")) {
      try {
        Field f = Class.forName("org.apache.hadoop.hbase.client.TestMultiParallel$MyMasterObserver")
          .getDeclaredField("start");
        f.setAccessible(true);
        ((java.util.concurrent.atomic.AtomicBoolean) f.get(null)).set(true);
      } catch (ReflectiveOperationException e) {
        throw new IOException(e);
      }
    }
    return m;
  }

  public static void stop(HBaseTestingUtility u, boolean full) {
    if (full) {
      HALF.remove(u);
      clean("stop");
    } else {
      HALF.add(u);
    }
  }

  /** Back to an empty cluster: tables, snapshots, namespaces, quotas, switches. */
  static void clean(String when) {
    if (CLEAN.equals("0")) {
      return;
    }
    ExecutorService ex = Executors.newSingleThreadExecutor(r -> {
      Thread t = new Thread(r, "hbt-clean");
      t.setDaemon(true);
      return t;
    });
    Future<?> f = ex.submit(() -> doClean());
    try {
      f.get(90, TimeUnit.SECONDS);
    } catch (Throwable t) {
      System.err.println("hbt clean (" + when + "): " + t);
      f.cancel(true);
    }
    ex.shutdownNow();
  }

  private static void quiet(String what, Callable<?> c) {
    try {
      c.call();
    } catch (Throwable t) {
      System.err.println("hbt clean " + what + ": " + t.toString().split("\n")[0]);
    }
  }

  private static Void doClean() throws Exception {
    Connection k = own();
    Admin a = k.getAdmin();
    Set<String> old = keep(a);
    quiet("decommissioned", () -> {
      for (ServerName n : a.listDecommissionedRegionServers()) {
        a.recommissionRegionServer(n, Collections.emptyList());
      }
      return null;
    });
    for (TableName t : allTables(a)) {
      if (old.contains("t:" + t)) {
        continue;
      }
      quiet("table " + t, () -> {
        if (a.isTableEnabled(t)) {
          a.disableTable(t);
        }
        a.deleteTable(t);
        return null;
      });
    }
    quiet("snapshots", () -> {
      for (SnapshotDescription s : a.listSnapshots()) {
        if (old.contains("s:" + s.getName())) {
          continue;
        }
        quiet("snapshot " + s.getName(), () -> {
          a.deleteSnapshot(s.getName());
          return null;
        });
      }
      return null;
    });
    quiet("namespaces", () -> {
      for (NamespaceDescriptor n : a.listNamespaceDescriptors()) {
        if (!old.contains("n:" + n.getName())) {
          quiet("ns " + n.getName(), () -> {
            a.deleteNamespace(n.getName());
            return null;
          });
        }
      }
      return null;
    });
    quiet("rpcThrottle", () -> a.isRpcThrottleEnabled() || a.switchRpcThrottle(true));
    quiet("balancer", () -> a.isBalancerEnabled() || a.balancerSwitch(true, true));
    quiet("splitSwitch", () -> a.isSplitEnabled() || a.splitSwitch(true, false));
    quiet("mergeSwitch", () -> a.isMergeEnabled() || a.mergeSwitch(true, false));
    quiet("normalizer", () -> a.isNormalizerEnabled() || a.normalizerSwitch(true));
    quiet("peers", () -> {
      for (org.apache.hadoop.hbase.replication.ReplicationPeerDescription p : a.listReplicationPeers()) {
        a.removeReplicationPeer(p.getPeerId());
      }
      return null;
    });
    return null;
  }

  /** Milliseconds after which something hangs. */
  static final long HANGS = 600_000;
  static final int PAUSE = Integer.getInteger("hbt.pause", 2);

  public static void pause(String method) {
    if (method.equals("Mutate") || method.equals("Multi") || method.equals("ExecService")) {
      sleep(PAUSE);
    }
  }

  private static Object alloc(Class<?> k) {
    try {
      Field f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
      f.setAccessible(true);
      return ((sun.misc.Unsafe) f.get(null)).allocateInstance(k);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  // Stand-ins for in-process objects: they carry a name or a RegionInfo and answer what a client can find out.
  private static final java.util.Map<Object, Object> STUB =
    Collections.synchronizedMap(new java.util.IdentityHashMap<>());

  private static Object stub(Class<?> k, Object v) {
    Object o = alloc(k);
    STUB.put(o, v);
    return o;
  }

  private static Object of(Object o) {
    Object v = STUB.get(o);
    if (v == null) {
      skip("local " + o.getClass().getSimpleName());
    }
    return v;
  }

  public static java.util.List<ServerName> rsNames() {
    try {
      java.util.List<ServerName> l = new java.util.ArrayList<>(own().getAdmin().getRegionServers());
      Collections.sort(l);
      return l;
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static Object rs(int i) {
    return rs(rsNames().get(i));
  }

  public static Object rs(ServerName n) {
    return stub(org.apache.hadoop.hbase.regionserver.HRegionServer.class, n);
  }

  public static Object firstRs(TableName t) throws IOException {
    return rs(own().getRegionLocator(t).getRegionLocation(HConstants.EMPTY_BYTE_ARRAY, true).getServerName());
  }

  public static ServerName nameOf(Object rs) {
    return (ServerName) of(rs);
  }

  public static ServerName masterName() {
    try {
      return own().getAdmin().getMaster();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static Object rsOf(Object thread) {
    return rs((ServerName) of(thread));
  }

  public static java.util.List rsThreads() {
    java.util.List<Object> l = new java.util.ArrayList<>();
    for (ServerName n : rsNames()) {
      l.add(stub(org.apache.hadoop.hbase.util.JVMClusterUtil.RegionServerThread.class, n));
    }
    return l;
  }

  public static int serverWith(byte[] regionName) {
    try {
      TableName t = RegionInfo.getTable(regionName);
      ServerName n = holder(null, t, regionName);
      return n == null ? -1 : rsNames().indexOf(n);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static Object region(RegionInfo r) {
    return stub(org.apache.hadoop.hbase.regionserver.HRegion.class, r);
  }

  public static java.util.List regions(byte[] t) {
    return regions(TableName.valueOf(t));
  }

  public static java.util.List regions(TableName t) {
    java.util.List<Object> l = new java.util.ArrayList<>();
    try {
      for (HRegionLocation x : own().getRegionLocator(t).getAllRegionLocations()) {
        if (x.getServerName() != null) {
          l.add(region(x.getRegion()));
        }
      }
    } catch (TableNotFoundException e) {
      return l;
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return l;
  }

  public static java.util.List regionsOn(Object rs, TableName t) {
    java.util.List<Object> l = new java.util.ArrayList<>();
    try {
      for (RegionInfo r : own().getAdmin().getRegions(nameOf(rs))) {
        if (t == null || r.getTable().equals(t)) {
          l.add(region(r));
        }
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return l;
  }

  public static Object regionOn(Object rs, byte[] name) {
    for (Object o : regionsOn(rs, null)) {
      if (java.util.Arrays.equals(infoOf(o).getRegionName(), name)) {
        return o;
      }
    }
    return null;
  }

  public static Object regionOn(Object rs, String enc) {
    for (Object o : regionsOn(rs, null)) {
      if (infoOf(o).getEncodedName().equals(enc)) {
        return o;
      }
    }
    return null;
  }

  public static RegionInfo infoOf(Object region) {
    return (RegionInfo) of(region);
  }

  public static TableDescriptor descOf(Object region) {
    try {
      return own().getAdmin().getDescriptor(infoOf(region).getTable());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static void flushRegion(Object region) throws IOException {
    own().getAdmin().flushRegion(infoOf(region).getRegionName());
  }

  public static void compactRegion(Object region, boolean major) throws IOException {
    Admin a = own().getAdmin();
    byte[] n = infoOf(region).getRegionName();
    if (major) {
      a.majorCompactRegion(n);
    } else {
      a.compactRegion(n);
    }
    settle(n);
  }

  /** Waits until the region has no compaction; a request counts from the moment that the server accepts it. */
  private static void settle(byte[] region) throws IOException {
    long end = System.currentTimeMillis() + HANGS;
    while (System.currentTimeMillis() < end && own().getAdmin().getCompactionStateForRegion(region) != CompactionState.NONE) {
      sleep(100);
    }
  }

  public static void settled(Object region) throws IOException {
    settle(infoOf(region).getRegionName());
  }

  private static Object tsm;

  public static synchronized Object tsm() {
    return tsm == null ? tsm = alloc(org.apache.hadoop.hbase.master.TableStateManager.class) : tsm;
  }

  public static boolean exists(TableName t) throws IOException {
    return own().getAdmin().tableExists(t);
  }

  public static TableState tableState(TableName t) throws IOException {
    Admin a = own().getAdmin();
    if (!a.tableExists(t)) {
      throw new TableNotFoundException(t);
    }
    return new TableState(t, a.isTableEnabled(t) ? TableState.State.ENABLED : TableState.State.DISABLED);
  }

  public static boolean isState(TableName t, TableState.State[] s) {
    try {
      return java.util.Arrays.asList(s).contains(tableState(t).getState());
    } catch (IOException e) {
      return false;
    }
  }

  private static org.apache.hadoop.hbase.zookeeper.ZKWatcher zkw;

  public static synchronized org.apache.hadoop.hbase.zookeeper.ZKWatcher zkw() {
    try {
      return zkw == null ? zkw = new org.apache.hadoop.hbase.zookeeper.ZKWatcher(fresh(), "hbt", null) : zkw;
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static boolean fake(org.apache.hadoop.fs.Path p) {
    return !rooted() && p.toUri().getPath().startsWith(fakeRoot().toUri().getPath());
  }

  public static TableDescriptor descOf(org.apache.hadoop.fs.Path p) throws IOException {
    return own().getAdmin().getDescriptor(org.apache.hadoop.hbase.util.CommonFSUtils.getTableName(p));
  }

  private static Object executor;
  private static Object observers;
  private static Object assignments;
  private static Object regionStates;
  private static Object throttles;

  public static synchronized Object executor() {
    return executor == null ? executor = alloc(org.apache.hadoop.hbase.procedure2.ProcedureExecutor.class) : executor;
  }

  public static synchronized Object observers() {
    return observers == null ? observers = alloc(org.apache.hadoop.hbase.master.MasterCoprocessorHost.class) : observers;
  }

  public static synchronized Object assignments() {
    return assignments == null ? assignments = alloc(org.apache.hadoop.hbase.master.assignment.AssignmentManager.class)
      : assignments;
  }

  public static synchronized Object regionStates() {
    return regionStates == null ? regionStates = alloc(org.apache.hadoop.hbase.master.assignment.RegionStates.class)
      : regionStates;
  }

  public static synchronized Object throttles() {
    return throttles == null ? throttles = alloc(org.apache.hadoop.hbase.quotas.RegionServerRpcQuotaManager.class)
      : throttles;
  }

  public static boolean rpcThrottle() {
    try {
      return own().getAdmin().isRpcThrottleEnabled();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** A procedure that the server does not know has finished, as in HBase. */
  public static boolean isFinished(long procedure) {
    org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos.GetProcedureResultRequest ask =
      org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos.GetProcedureResultRequest.newBuilder()
        .setProcId(procedure).build();
    try {
      java.lang.reflect.Method master = own().getClass().getMethod("getMaster");
      master.setAccessible(true);
      Object m = master.invoke(own());
      try {
        return ((org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos.MasterService.BlockingInterface) m)
          .getProcedureResult(null, ask).getState()
            != org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos.GetProcedureResultResponse.State.RUNNING;
      } finally {
        java.lang.reflect.Method close =
          Class.forName("org.apache.hadoop.hbase.client.MasterKeepAliveConnection").getMethod("close");
        close.setAccessible(true);
        close.invoke(m);
      }
    } catch (Exception e) {
      throw new IllegalStateException("GetProcedureResult of " + procedure, e);
    }
  }

  /** The states in hbase:meta of the regions, replicas too, that take picks. */
  private static java.util.Map<RegionInfo, org.apache.hadoop.hbase.master.RegionState.State>
    states(java.util.function.Predicate<RegionInfo> take) {
    java.util.Map<RegionInfo, org.apache.hadoop.hbase.master.RegionState.State> all = new java.util.TreeMap<>();
    try (Table t = own().getTable(TableName.META_TABLE_NAME);
      ResultScanner s = t.getScanner(new Scan().addFamily(HConstants.CATALOG_FAMILY))) {
      for (Result r : s) {
        RegionLocations row = MetaTableAccessor.getRegionLocations(r);
        for (HRegionLocation one : row == null ? new HRegionLocation[0] : row.getRegionLocations()) {
          if (one != null && take.test(one.getRegion())) {
            all.put(one.getRegion(),
              org.apache.hadoop.hbase.master.assignment.RegionStateStore.getRegionState(r, one.getRegion()));
          }
        }
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return all;
  }

  public static Object regionState(RegionInfo region) {
    return regionState(region.getEncodedName());
  }

  public static Object regionState(String encoded) {
    for (java.util.Map.Entry<RegionInfo, org.apache.hadoop.hbase.master.RegionState.State> e : states(
      r -> r.getEncodedName().equals(encoded)).entrySet()) {
      return org.apache.hadoop.hbase.master.RegionState.createForTesting(e.getKey(), e.getValue());
    }
    return null;
  }

  public static List regionsOf(TableName table) {
    return new ArrayList<>(states(r -> r.getTable().equals(table)).keySet());
  }

  public static ServerName serverOf(RegionInfo region) {
    try {
      HRegionLocation at = own().getRegionLocator(region.getTable()).getRegionLocation(region.getStartKey(),
        region.getReplicaId(), true);
      return at == null ? null : at.getServerName();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static Object regionNode(RegionInfo region) {
    return stub(org.apache.hadoop.hbase.master.assignment.RegionStateNode.class, region);
  }

  public static boolean inTransition(Object node) {
    try {
      return metrics(null).getRegionStatesInTransition().stream()
        .anyMatch(s -> s.getRegion().getEncodedName().equals(infoOf(node).getEncodedName()));
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  public static java.util.Map regionsByState(TableName table) {
    java.util.Map<org.apache.hadoop.hbase.master.RegionState.State, List<RegionInfo>> by = new java.util.HashMap<>();
    for (org.apache.hadoop.hbase.master.RegionState.State s : org.apache.hadoop.hbase.master.RegionState.State.values()) {
      by.put(s, new ArrayList<>());
    }
    states(r -> r.getTable().equals(table)).forEach((region, state) -> by.get(state).add(region));
    return by;
  }

  private static Object cleaner;

  public static synchronized Object cleaner() {
    return cleaner == null ? cleaner = alloc(org.apache.hadoop.hbase.master.cleaner.HFileCleaner.class) : cleaner;
  }

  public static void chore(Object o) {
    if (o != cleaner) {
      skip("choreForTesting");
    }
    try {
      own().getAdmin().runCleanerChore();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static Object master;
  private static Object mfs;

  public static synchronized Object master() {
    return master == null ? master = alloc(org.apache.hadoop.hbase.master.HMaster.class) : master;
  }

  public static synchronized Object mfs() {
    return mfs == null ? mfs = alloc(org.apache.hadoop.hbase.master.MasterFileSystem.class) : mfs;
  }

  public static org.apache.hadoop.fs.FileSystem fs() {
    try {
      return org.apache.hadoop.fs.FileSystem.getLocal(new Configuration());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static final String ROOT = System.getProperty("hbt.root", "");

  /** Whether the server's files are below fakeRoot(). */
  public static boolean rooted() {
    return !ROOT.isEmpty();
  }

  /** The server's root directory if hbt.root names it, otherwise an empty one. */
  public static org.apache.hadoop.fs.Path fakeRoot() {
    if (rooted()) {
      return new org.apache.hadoop.fs.Path(new java.io.File(ROOT).toURI());
    }
    java.io.File f = new java.io.File(System.getProperty("test.build.data.basedirectory", "/tmp"), "fakeroot");
    f.mkdirs();
    return new org.apache.hadoop.fs.Path(f.getAbsoluteFile().toURI());
  }

  public static void snapshotListed(Admin a, Object proto) throws IOException {
    String n = ((org.apache.hadoop.hbase.shaded.protobuf.generated.SnapshotProtos.SnapshotDescription) proto).getName();
    for (SnapshotDescription s : a.listSnapshots()) {
      if (s.getName().equals(n)) {
        return;
      }
    }
    throw new AssertionError("snapshot " + n + " is not listed");
  }

  public static ClusterMetrics metrics(Configuration c) throws IOException {
    return own().getAdmin().getClusterMetrics();
  }

  public static ServerName holder(Configuration c, TableName t, byte[] region) throws IOException {
    for (HRegionLocation l : own().getRegionLocator(t).getAllRegionLocations()) {
      if (java.util.Arrays.equals(l.getRegion().getRegionName(), region)) {
        return l.getServerName();
      }
    }
    return null;
  }

  private static Iterable<TableName> tables(TableName t) throws IOException {
    return t != null ? Collections.singleton(t) : java.util.Arrays.asList(own().getAdmin().listTableNames());
  }

  public static void flush(Configuration c, TableName t) throws IOException {
    for (TableName x : tables(t)) {
      if (t != null || own().getAdmin().isTableEnabled(x)) {
        own().getAdmin().flush(x);
      }
    }
  }

  public static void compact(Configuration c, TableName t, boolean major) throws IOException {
    Admin a = own().getAdmin();
    for (TableName x : tables(t)) {
      if (t == null && !a.isTableEnabled(x)) {
        continue;
      }
      long before = a.getLastMajorCompactionTimestamp(x);
      if (major) {
        a.majorCompact(x);
      } else {
        a.compact(x);
      }
      // the in-process call is synchronous: wait
      long end = System.currentTimeMillis() + HANGS;
      while (System.currentTimeMillis() < end && a.getCompactionState(x) != CompactionState.NONE) {
        sleep(100);
      }
    }
  }

  static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  public static boolean assign(HBaseTestingUtility u, RegionInfo r) throws IOException {
    u.getAdmin().assign(r.getRegionName());
    return true;
  }

  public static void move(HBaseTestingUtility u, RegionInfo r, ServerName s)
    throws IOException, InterruptedException {
    u.getAdmin().move(r.getEncodedNameAsBytes(), s);
    u.assertRegionOnServer(r, s, HANGS);
  }

  public static Waiter.ExplainingPredicate<IOException> noRit(final HBaseTestingUtility u) {
    return new Waiter.ExplainingPredicate<IOException>() {
      @Override
      public String explainFailure() throws IOException {
        return "in transition: " + rit();
      }

      @Override
      public boolean evaluate() throws IOException {
        return rit().isEmpty();
      }

      private java.util.List<?> rit() throws IOException {
        return own().getAdmin().getClusterMetrics(java.util.EnumSet.of(ClusterMetrics.Option.REGIONS_IN_TRANSITION))
          .getRegionStatesInTransition();
      }
    };
  }

  public static boolean ensureRs(HBaseTestingUtility u, int n) throws IOException {
    int k = own().getAdmin().getRegionServers().size();
    if (k < n) {
      flag("wants-" + n + "-regionservers");
    }
    return false;
  }
}
