// SPDX-License-Identifier: Apache-2.0
package hbt;

import java.io.ByteArrayInputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Modifier;
import java.security.ProtectionDomain;
import javassist.CannotCompileException;
import javassist.ClassPool;
import javassist.CtClass;
import javassist.CtField;
import javassist.CtMethod;
import javassist.CtNewMethod;
import javassist.LoaderClassPath;
import javassist.expr.ExprEditor;
import javassist.expr.MethodCall;

/** Redirects HBaseTestingUtility and MiniHBaseCluster, and nothing else, to an external server. */
public class Agent implements ClassFileTransformer {
  private static final String P = "org/apache/hadoop/hbase/";
  private final boolean flags;

  Agent(boolean flags) {
    this.flags = flags;
  }

  public static void premain(String args, Instrumentation inst) {
    inst.addTransformer(new Agent(args != null && args.contains("flags")));
  }

  @Override
  public byte[] transform(ClassLoader l, String name, Class<?> c, ProtectionDomain d, byte[] b) {
    if (name == null || !name.startsWith(P)) {
      return null;
    }
    String n = name.substring(P.length());
    try {
      switch (n) {
        case "HBaseTestingUtility": return patch(l, b, this::util);
        case "HBaseZKTestingUtility": return patch(l, b, this::zkutil);
        case "MiniHBaseCluster": return patch(l, b, this::cluster);
        case "HBaseCluster": return patch(l, b, this::hbcluster);
        case "master/HMaster": return patch(l, b, this::master);
        case "master/TableStateManager": return patch(l, b, this::tsm);
        case "regionserver/HRegionServer": return patch(l, b, this::rs);
        case "regionserver/HRegion": return patch(l, b, this::region);
        case "util/JVMClusterUtil$RegionServerThread": return patch(l, b, this::rsThread);
        case "ScheduledChore": return patch(l, b, c2 -> body(c2, "choreForTesting", 0, "{ hbt.H.chore($0); }"));
        case "util/FSTableDescriptors": return patch(l, b, this::fstd);
        case "client/HBaseAdmin":
        case "client/RawAsyncHBaseAdmin": return System.getenv("HBT_ALLOW_STOP") != null ? null : patch(l, b, this::noStop);
        case "master/MasterFileSystem": return patch(l, b, this::mfs);
        case "master/MasterCoprocessorHost": return patch(l, b, this::observers);
        case "master/assignment/AssignmentManager": return patch(l, b, this::assignments);
        case "master/assignment/RegionStates": return patch(l, b, this::regionStates);
        case "master/assignment/RegionStateNode": return patch(l, b, this::regionNode);
        case "procedure2/ProcedureExecutor": return patch(l, b, this::procedures);
        case "procedure2/ProcedureTestingUtility": return patch(l, b, this::procedureTests);
        case "quotas/RegionServerRpcQuotaManager": return patch(l, b, this::throttles);
        case "snapshot/SnapshotTestingUtils": return patch(l, b, this::snap);
        case "client/TracedScanResultConsumer": return patch(l, b, this::traced);
        case "client/TestSplitOrMergeAtTableLevel": return patch(l, b, this::patient);
        case "ipc/AbstractRpcClient": return H.PAUSE <= 0 ? null : patch(l, b, this::rpc);
        default:
      }
      if (flags) {
        switch (n) {
          case "client/TableDescriptorBuilder$ModifyableTableDescriptor": return patch(l, b, this::fTd);
          case "protobuf/ProtobufUtil":
          case "shaded/protobuf/ProtobufUtil": return patch(l, b, this::fPb);
          case "client/HTable":
          case "client/RawAsyncTableImpl": return patch(l, b, this::fCps);
          default:
        }
      }
    } catch (Throwable t) {
      System.err.println("hbt agent: " + name + ": " + t);
      t.printStackTrace();
      System.out.println("FAIL hbt agent could not patch " + name);
      Runtime.getRuntime().halt(9);
    }
    return null;
  }

  interface Ed { void edit(CtClass c) throws Exception; }

  private byte[] patch(ClassLoader l, byte[] b, Ed e) throws Exception {
    ClassPool p = new ClassPool(true);
    p.appendClassPath(new LoaderClassPath(l));
    CtClass c = p.makeClass(new ByteArrayInputStream(b));
    e.edit(c);
    return c.toBytecode();
  }

  private static void body(CtClass c, String m, int nargs, String src) throws Exception {
    int k = 0;
    for (CtMethod x : c.getDeclaredMethods(m)) {
      if (nargs >= 0 && x.getParameterTypes().length != nargs) {
        continue;
      }
      x.setBody(src);
      k++;
    }
    if (k == 0) {
      System.err.println("hbt agent: no method " + c.getName() + "." + m);
    }
  }

  private void util(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("startMiniCluster")) {
      if (x.getParameterTypes().length == 1
        && x.getParameterTypes()[0].getName().endsWith("StartMiniClusterOption")) {
        x.setBody("{ if (miniClusterRunning) throw new IllegalStateException("
          + "\"A mini-cluster is already running\"); miniClusterRunning = true;"
          + " return (org.apache.hadoop.hbase.MiniHBaseCluster) hbt.H.start($0, $1, true); }");
      }
    }
    for (CtMethod x : c.getDeclaredMethods("startMiniHBaseCluster")) {
      if (x.getParameterTypes().length == 1) {
        x.setBody("{ return (org.apache.hadoop.hbase.MiniHBaseCluster) hbt.H.start($0, $1, false); }");
      }
    }
    for (CtMethod x : c.getDeclaredMethods("restartHBaseCluster")) {
      x.setBody("{ hbt.H.skip(\"restartHBaseCluster\"); }");
    }
    String zk = "if (zooKeeperWatcher != null) { zooKeeperWatcher.close(); zooKeeperWatcher = null; }";
    body(c, "shutdownMiniHBaseCluster", 0, "{ cleanup(); hbt.H.stop($0, false); " + zk + "}");
    body(c, "shutdownMiniCluster", 0, "{ cleanup(); hbt.H.stop($0, true); hbaseCluster = null; " + zk
      + " cleanupTestDir(); miniClusterRunning = false; }");
    body(c, "killMiniHBaseCluster", 0, "{ hbt.H.skip(\"killMiniHBaseCluster\"); }");
    body(c, "startMiniDFSCluster", -1, "{ return null; }");
    body(c, "startMiniDFSClusterForTestWAL", -1, "{ hbt.H.skip(\"dfs\"); return null; }");
    body(c, "getDFSCluster", 0, "{ hbt.H.skip(\"getDFSCluster\"); return null; }");
    body(c, "startMiniMapReduceCluster", 0, "{ conf.set(\"mapreduce.framework.name\", \"local\"); return null; }");
    body(c, "setupMiniKdc", -1, "{ hbt.H.skip(\"kdc\"); return null; }");
    body(c, "assignRegion", 1, "{ return hbt.H.assign($0, $1); }");
    body(c, "moveRegionAndWait", 2, "{ hbt.H.move($0, $1, $2); }");
    body(c, "predicateNoRegionsInTransition", 0, "{ return hbt.H.noRit($0); }");
    for (CtMethod x : c.getDeclaredMethods("predicateNoRegionTransitScheduled")) {
      x.setBody("{ return hbt.H.noRit($0); }");
    }
    body(c, "explainTableAvailability", 1, "{ return explainTableState($1, org.apache.hadoop.hbase.client.TableState.State.ENABLED); }");
    body(c, "ensureSomeRegionServersAvailable", 1, "{ return hbt.H.ensureRs($0, $1); }");
    body(c, "ensureSomeNonStoppedRegionServersAvailable", 1, "{ return hbt.H.ensureRs($0, $1); }");
    body(c, "getDefaultRootDirPath", 1, "{ return hbt.H.fakeRoot(); }");
    body(c, "getRSForFirstRegionInTable", 1, "{ return (org.apache.hadoop.hbase.regionserver.HRegionServer) hbt.H.firstRs($1); }");
    body(c, "invalidateConnection", 0, "{ closeConnection(); }");
  }

  private void zkutil(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("startMiniZKCluster")) {
      x.setBody("{ return null; }");
    }
    body(c, "getZkCluster", 0, "{ hbt.H.skip(\"getZkCluster\"); return null; }");
    body(c, "setZkCluster", 1, "{ hbt.H.skip(\"setZkCluster\"); }");
  }

  private void cluster(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods()) {
      int m = x.getModifiers();
      if (Modifier.isStatic(m) || Modifier.isAbstract(m)) {
        continue;
      }
      String n = x.getName();
      int k = x.getParameterTypes().length;
      String s;
      if (n.equals("flushcache")) {
        s = k == 0 ? "{ hbt.H.flush(conf, null); }" : "{ hbt.H.flush(conf, $1); }";
      } else if (n.equals("compact")) {
        s = k == 1 ? "{ hbt.H.compact(conf, null, $1); }" : "{ hbt.H.compact(conf, $1, $2); }";
      } else if (n.equals("getClusterMetrics")) {
        s = "{ return hbt.H.metrics(conf); }";
      } else if (n.equals("waitForActiveAndReadyMaster")) {
        s = "{ return true; }";
      } else if (n.equals("isKilledRS")) {
        s = "{ return false; }";
      } else if (n.equals("getServerHoldingRegion")) {
        s = "{ return hbt.H.holder(conf, $1, $2); }";
      } else if (n.equals("shutdown") || n.equals("close") || n.equals("waitUntilShutDown") || n.equals("join")) {
        s = "{ }";
      } else if (n.equals("getRegions") || n.equals("findRegionsForTable")) {
        s = "{ return hbt.H.regions($1); }";
      } else if (n.equals("getServerWith")) {
        s = "{ return hbt.H.serverWith($1); }";
      } else if (n.equals("getRegionServer")) {
        s = "{ return (org.apache.hadoop.hbase.regionserver.HRegionServer) hbt.H.rs($1); }";
      } else if (n.equals("getNumLiveRegionServers")) {
        s = "{ return hbt.H.rsNames().size(); }";
      } else if (n.equals("getRegionServerThreads") || n.equals("getLiveRegionServerThreads")) {
        s = "{ return hbt.H.rsThreads(); }";
      } else if (n.equals("getMaster") && k == 0) {
        s = "{ return (org.apache.hadoop.hbase.master.HMaster) hbt.H.master(); }";
      } else {
        s = skipBody("MiniHBaseCluster", x);
      }
      x.setBody(s);
    }
  }

  /** A master object of which only a few harmless methods work. */
  private void master(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods()) {
      int m = x.getModifiers();
      if (Modifier.isStatic(m) || Modifier.isAbstract(m) || x.getName().startsWith("lambda$")) {
        continue;
      }
      String n = x.getName();
      switch (n) {
        case "getMasterFileSystem": x.setBody("{ return (org.apache.hadoop.hbase.master.MasterFileSystem) hbt.H.mfs(); }"); break;
        case "getTableStateManager": x.setBody("{ return (org.apache.hadoop.hbase.master.TableStateManager) hbt.H.tsm(); }"); break;
        case "getHFileCleaner": x.setBody("{ return (org.apache.hadoop.hbase.master.cleaner.HFileCleaner) hbt.H.cleaner(); }"); break;
        case "getMasterProcedureExecutor": x.setBody("{ return (org.apache.hadoop.hbase.procedure2.ProcedureExecutor) hbt.H.executor(); }"); break;
        case "getMasterCoprocessorHost": x.setBody("{ return (org.apache.hadoop.hbase.master.MasterCoprocessorHost) hbt.H.observers(); }"); break;
        case "getAssignmentManager": x.setBody("{ return (org.apache.hadoop.hbase.master.assignment.AssignmentManager) hbt.H.assignments(); }"); break;
        case "getConfiguration": x.setBody("{ return hbt.H.fresh(); }"); break;
        case "getZooKeeper": x.setBody("{ return hbt.H.zkw(); }"); break;
        case "getServerName": x.setBody("{ return hbt.H.masterName(); }"); break;
        case "getClusterMetrics": x.setBody("{ return hbt.H.metrics(null); }"); break;
        case "isInitialized":
        case "isActiveMaster": x.setBody("{ return true; }"); break;
        default: x.setBody(skipBody("HMaster", x));
      }
    }
  }

  /** Prevents tests from stopping the server or parts of it, because later tests need it. */
  private void noStop(CtClass c) throws Exception {
    for (String n : new String[] { "stopMaster", "stopRegionServer", "shutdown" }) {
      for (CtMethod x : c.getDeclaredMethods(n)) {
        x.insertBefore("{ hbt.H.skip(\"" + n + "\"); }");
      }
    }
  }

  /** A descriptor read from below the stand-in root directory is the descriptor from the admin API. */
  private void fstd(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("getTableDescriptorFromFs")) {
      CtClass[] p = x.getParameterTypes();
      if (Modifier.isStatic(x.getModifiers()) && p.length == 2 && p[1].getName().endsWith(".Path")) {
        x.insertBefore("{ if (hbt.H.fake($2)) return hbt.H.descOf($2); }");
      }
    }
  }

  private interface Pick { String body(CtMethod x) throws Exception; }

  private void all(CtClass c, String cl, Pick p) throws Exception {
    for (CtMethod x : c.getDeclaredMethods()) {
      int m = x.getModifiers();
      if (Modifier.isStatic(m) || Modifier.isAbstract(m) || x.getName().startsWith("lambda$")) {
        continue;
      }
      String b = p.body(x);
      x.setBody(b != null ? b : skipBody(cl, x));
    }
  }

  private void tsm(CtClass c) throws Exception {
    all(c, "TableStateManager", x -> {
      switch (x.getName()) {
        case "isTableState": return "{ return hbt.H.isState($1, $2); }";
        case "isTablePresent": return "{ return hbt.H.exists($1); }";
        case "getTableState": return "{ return hbt.H.tableState($1); }";
        default: return null;
      }
    });
  }

  private void rs(CtClass c) throws Exception {
    all(c, "HRegionServer", x -> {
      CtClass[] p = x.getParameterTypes();
      boolean arr = x.getReturnType().getName().endsWith(".HRegion");
      switch (x.getName()) {
        case "getServerName": return "{ return hbt.H.nameOf($0); }";
        case "getRegions": return p.length == 0 ? "{ return hbt.H.regionsOn($0, null); }" : "{ return hbt.H.regionsOn($0, $1); }";
        case "getOnlineRegionsLocalContext": return "{ return hbt.H.regionsOn($0, null); }";
        case "getOnlineRegion": return "{ return (org.apache.hadoop.hbase.regionserver.HRegion) hbt.H.regionOn($0, $1); }";
        case "getRegion": return p.length == 1 && p[0].getName().equals("java.lang.String") && arr
          ? "{ return (org.apache.hadoop.hbase.regionserver.HRegion) hbt.H.regionOn($0, $1); }" : null;
        case "getConfiguration": return "{ return hbt.H.fresh(); }";
        case "getRegionServerRpcQuotaManager": return "{ return (org.apache.hadoop.hbase.quotas.RegionServerRpcQuotaManager) hbt.H.throttles(); }";
        case "isOnline": return "{ return true; }";
        case "isAborted":
        case "isStopped":
        case "isStopping": return "{ return false; }";
        default: return null;
      }
    });
  }

  private void throttles(CtClass c) throws Exception {
    all(c, "RegionServerRpcQuotaManager",
      x -> x.getName().equals("isRpcThrottleEnabled") ? "{ return hbt.H.rpcThrottle(); }" : null);
  }

  /** An observer that a test loads into the master is not there: what waits for it fails. */
  private void observers(CtClass c) throws Exception {
    for (CtMethod x : c.getSuperclass().getDeclaredMethods("load")) {
      if (x.getParameterTypes().length == 3 && x.getParameterTypes()[0].getName().equals("java.lang.Class")) {
        c.addMethod(CtNewMethod.make(
          "public void load(Class observer, int priority, org.apache.hadoop.conf.Configuration conf)"
            + " { hbt.H.flagCp(observer.getName()); }", c));
      }
    }
  }

  private void assignments(CtClass c) throws Exception {
    all(c, "AssignmentManager", x -> x.getName().equals("getRegionStates")
      ? "{ return (org.apache.hadoop.hbase.master.assignment.RegionStates) hbt.H.regionStates(); }" : null);
  }

  private void regionStates(CtClass c) throws Exception {
    all(c, "RegionStates", x -> {
      switch (x.getName()) {
        case "getRegionState": return "{ return (org.apache.hadoop.hbase.master.RegionState) hbt.H.regionState($1); }";
        case "getRegionsOfTable": return x.getParameterTypes().length == 1 ? "{ return hbt.H.regionsOf($1); }" : null;
        case "getRegionServerOfRegion": return "{ return hbt.H.serverOf($1); }";
        case "getRegionStateNode":
          return "{ return (org.apache.hadoop.hbase.master.assignment.RegionStateNode) hbt.H.regionNode($1); }";
        case "getRegionByStateOfTable": return "{ return hbt.H.regionsByState($1); }";
        default: return null;
      }
    });
  }

  private void regionNode(CtClass c) throws Exception {
    all(c, "RegionStateNode",
      x -> x.getName().equals("isInTransition") ? "{ return hbt.H.inTransition($0); }" : null);
  }

  private void procedures(CtClass c) throws Exception {
    all(c, "ProcedureExecutor", x -> x.getName().equals("isFinished") ? "{ return hbt.H.isFinished($1); }" : null);
  }

  /** The server's procedures continue while a test wants them paused. */
  private void procedureTests(CtClass c) throws Exception {
    body(c, "restart", 8, "{ if ($4 != null) $4.call(); if ($5 != null) $5.call(); if ($6 != null) $6.call(); }");
  }

  private void region(CtClass c) throws Exception {
    all(c, "HRegion", x -> {
      int k = x.getParameterTypes().length;
      switch (x.getName()) {
        case "getRegionInfo": return "{ return hbt.H.infoOf($0); }";
        case "getTableDescriptor": return "{ return hbt.H.descOf($0); }";
        case "flush": return k == 1 ? "{ hbt.H.flushRegion($0); return null; }" : null;
        case "compact": return k == 1 ? "{ hbt.H.compactRegion($0, $1); }" : null;
        case "waitForFlushesAndCompactions": return "{ hbt.H.settled($0); }";
        case "toString": return "{ return String.valueOf(hbt.H.infoOf($0)); }";
        case "hashCode": return "{ return System.identityHashCode($0); }";
        case "equals": return "{ return $0 == $1; }";
        default: return null;
      }
    });
  }

  private void rsThread(CtClass c) throws Exception {
    body(c, "getRegionServer", 0, "{ return (org.apache.hadoop.hbase.regionserver.HRegionServer) hbt.H.rsOf($0); }");
    body(c, "waitForServerOnline", 0, "{ }");
  }

  private void mfs(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods()) {
      int m = x.getModifiers();
      if (Modifier.isStatic(m) || Modifier.isAbstract(m) || x.getName().startsWith("lambda$")) {
        continue;
      }
      switch (x.getName()) {
        case "getFileSystem":
        case "getWALFileSystem": x.setBody("{ return hbt.H.fs(); }"); break;
        case "getRootDir":
        case "getWALRootDir": x.setBody("{ return hbt.H.fakeRoot(); }"); break;
        case "logFileSystemState": x.setBody("{ }"); break;
        default: x.setBody(skipBody("MasterFileSystem", x));
      }
    }
  }

  /** If the server's root directory is unknown, checks of files below it are replaced by: the snapshot is listed. */
  private void snap(CtClass c) throws Exception {
    body(c, "deleteArchiveDirectory", 1, "{ }");
    body(c, "waitForTableToBeOnline", 2, "{ $1.waitFor(60000L, $1.predicateTableAvailable($2)); }");
    for (CtMethod x : c.getDeclaredMethods("confirmSnapshotValid")) {
      int k = x.getParameterTypes().length;
      if (k == 4 || k == 7) {
        String admin = k == 7 ? "$6, $1" : "$1.getAdmin(), $2";
        x.insertBefore("{ if (!hbt.H.rooted()) { hbt.H.snapshotListed(" + admin + "); return; } }");
      }
    }
    for (CtMethod x : c.getDeclaredMethods("corruptSnapshot")) {
      x.insertBefore("{ if (!hbt.H.rooted()) hbt.H.skip(\"corruptSnapshot\"); }");
    }
  }

  /**
   * A scan's result wakes the test while the span of the consumer's last call is still open in another thread. A test that does not
   * check spans has ended by then, and its span is added to the list of the next test, which finds an unknown parent there.
   */
  private void traced(CtClass c) throws Exception {
    c.addField(CtField.make("private final java.util.concurrent.CountDownLatch hbtOver = new java.util.concurrent.CountDownLatch(1);", c));
    for (String last : new String[] {"onComplete", "onError"}) {
      c.getDeclaredMethod(last).insertAfter("hbtOver.countDown();", true);
    }
    c.getDeclaredMethod("getAll").insertAfter("hbtOver.await();", true);
  }

  /** Ten seconds for a procedure's failure are for an idle machine. */
  private void patient(CtClass c) throws Exception {
    c.instrument(new ExprEditor() {
      @Override
      public void edit(MethodCall call) throws CannotCompileException {
        if (call.getMethodName().equals("get") && call.getSignature().equals("(JLjava/util/concurrent/TimeUnit;)Ljava/lang/Object;")) {
          call.replace("$_ = $proceed(20L * $1, $2);");
        }
      }
    });
  }

  /**
   * Mini cluster tests share one never repeating clock with their servers; here the server stamps cells
   * by its own millisecond clock: let it advance between two mutations.
   */
  private void rpc(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("callMethod")) {
      x.insertBefore("{ hbt.H.pause($1.getName()); }");
    }
  }

  private static String skipBody(String cl, CtMethod x) throws Exception {
    String r = x.getReturnType().getName();
    String ret = r.equals("void") ? "" : r.equals("boolean") ? "return false;" : r.equals("long") ? "return 0L;"
      : r.equals("double") ? "return 0.0;" : r.equals("float") ? "return 0.0f;" : x.getReturnType().isPrimitive() ? "return 0;" : "return null;";
    return "{ hbt.H.skip(\"" + cl + "." + x.getName() + "\"); " + ret + " }";
  }

  private void hbcluster(CtClass c) throws Exception {
    body(c, "isDistributedCluster", 0, "{ return true; }");
  }

  private void fTd(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("setCoprocessorToMap")) {
      x.insertBefore("{ hbt.H.flagCp($1); }");
    }
    for (CtMethod x : c.getDeclaredMethods("setCoprocessor")) {
      x.insertBefore("{ hbt.H.flagCp($1); }");
    }
  }

  private void fPb(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("toFilter")) {
      if (x.getParameterTypes()[0].getName().startsWith("org.apache.hadoop.hbase.filter")) {
        x.insertBefore("{ hbt.H.flagObj(\"filter\", $1); }");
      }
    }
    for (CtMethod x : c.getDeclaredMethods("toComparator")) {
      if (x.getParameterTypes()[0].getName().startsWith("org.apache.hadoop.hbase.filter")) {
        x.insertBefore("{ hbt.H.flagObj(\"comparator\", $1); }");
      }
    }
  }

  private void fCps(CtClass c) throws Exception {
    for (CtMethod x : c.getDeclaredMethods("coprocessorService")) {
      x.insertBefore("{ hbt.H.flag(\"cpservice\"); }");
    }
  }
}
