// SPDX-License-Identifier: Apache-2.0
package hbt;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.junit.runner.*;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.*;

/** Runs one JUnit 4 class: one TSV row per test in the file given, a line per failure on stdout. */
public class Run {
  static PrintWriter out;
  static final Map<String, String> state = new LinkedHashMap<>();
  static final Map<String, Long> t0 = new HashMap<>();
  static int pass, fail, skip;
  static volatile String cur;
  static volatile Thread curT;
  static volatile long curT0;
  static String cls;
  static String why = "";
  static volatile Set<String> classFlags;
  static final Set<String> all = new LinkedHashSet<>();

  static String one(Throwable t) {
    if (t == null) {
      return "";
    }
    StringBuilder s = new StringBuilder(String.valueOf(t));
    for (Throwable c = t.getCause(); c != null && s.length() < 300; c = c.getCause()) {
      s.append(" <- ").append(c);
    }
    String r = s.toString().replaceAll("[\\t\\r\\n]+", " ");
    return r.length() > 300 ? r.substring(0, 300) : r;
  }

  static synchronized void end(String id, String st, String msg) {
    if (state.putIfAbsent(id, st) != null) {
      return;
    }
    long ms = t0.containsKey(id) ? System.currentTimeMillis() - t0.get(id) : 0;
    Set<String> fl;
    synchronized (H.FLAGS) {
      fl = new TreeSet<>(H.FLAGS);
      H.FLAGS.clear();
      if (classFlags != null) {
        fl.addAll(classFlags);
      }
    }
    out.println(st + "\t" + id + "\t" + ms + "\t" + String.join(",", fl) + "\t" + msg);
    out.flush();
    if (st.endsWith("-CLASS")) {
      return;
    }
    if (st.equals("PASS")) {
      pass++;
    } else if (st.equals("SKIP")) {
      skip++;
    } else {
      fail++;
      System.out.println("FAIL " + id + " (" + ms + " ms) " + msg);
    }
  }

  static String id(Description d) {
    return d.getClassName() + "#" + (d.getMethodName() == null ? "<class>" : d.getMethodName());
  }

  static void leaves(Description d, Set<String> s) {
    if (d.isTest()) {
      s.add(id(d));
    }
    for (Description c : d.getChildren()) {
      leaves(c, s);
    }
  }

  static synchronized void finish(String note) {
    System.out.println("CLASS " + cls + " passed=" + pass + " failed=" + fail + " skipped=" + skip + " seconds="
      + (System.currentTimeMillis() - start) / 1000 + note);
    System.out.flush();
    out.close();
    try {
      // SystemExitRule of the tests forbids exit and halt
      System.setSecurityManager(null);
    } catch (Throwable t) {
      t.printStackTrace();
    }
    Runtime.getRuntime().halt(fail == 0 ? 0 : 1);
  }

  static long start = System.currentTimeMillis();

  public static void main(String[] a) throws Exception {
    cls = a[0];
    out = new PrintWriter(new FileWriter(a[1]));
    long tt = Long.parseLong(System.getProperty("hbt.testTimeout", "180")) * 1000;
    long ct = Long.parseLong(System.getProperty("hbt.classTimeout", "780")) * 1000;
    String only = System.getProperty("hbt.only", "");
    String rx = System.getProperty("hbt.methods", "");
    Class<?> k;
    try {
      k = Class.forName(cls);
    } catch (Throwable t) {
      end(cls + "#<class>", "FAIL", one(t));
      finish(" no such class");
      return;
    }
    Request rq = Request.aClass(k);
    if (!only.isEmpty() || !rx.isEmpty()) {
      final Set<String> w = new HashSet<>();
      if (!only.isEmpty()) {
        for (String s : Files.readAllLines(Paths.get(only))) {
          w.add(s.split("\t")[0]);
        }
      }
      rq = rq.filterWith(new Filter() {
        public boolean shouldRun(Description d) {
          if (d.isTest()) {
            return (w.isEmpty() || w.contains(id(d))) && (rx.isEmpty() || id(d).matches(".*#(" + rx + ")"));
          }
          for (Description c : d.getChildren()) {
            if (shouldRun(c)) {
              return true;
            }
          }
          return false;
        }

        public String describe() {
          return "only";
        }
      });
    }
    Runner r = rq.getRunner();
    leaves(r.getDescription(), all);
    if (all.size() == 1 && all.iterator().next().startsWith("org.junit.runner.manipulation.Filter#")) {
      out.println();
      finish(" no test selected");
    }
    H.clean("start");
    JUnitCore core = new JUnitCore();
    core.addListener(new RunListener() {
      @Override
      public void testStarted(Description d) {
        if (classFlags == null) {
          // what @BeforeClass used counts for every test of the class
          classFlags = new TreeSet<>(H.FLAGS);
        }
        cur = id(d);
        curT = Thread.currentThread();
        curT0 = System.currentTimeMillis();
        t0.put(cur, curT0);
      }

      @Override
      public void testFailure(Failure f) {
        f.getException().printStackTrace();
        String i = id(f.getDescription());
        why = one(f.getException());
        boolean before = false;
        for (String s : all) {
          before |= !state.containsKey(s);
        }
        boolean as = f.getException() instanceof org.junit.TestCouldNotBeSkippedException;
        for (Throwable c = f.getException(); c != null; c = c.getCause()) {
          as |= c instanceof org.junit.AssumptionViolatedException;
        }
        if (as) {
          end(i, f.getDescription().isTest() ? "SKIP" : "SKIP-CLASS", why);
          return;
        }
        end(i, f.getDescription().isTest() || !before ? "FAIL" : "FAIL-CLASS", one(f.getException()));
      }

      @Override
      public void testAssumptionFailure(Failure f) {
        why = one(f.getException());
        end(id(f.getDescription()), f.getDescription().isTest() ? "SKIP" : "SKIP-CLASS", one(f.getException()));
      }

      @Override
      public void testIgnored(Description d) {
        end(id(d), d.isTest() ? "SKIP" : "SKIP-CLASS", "@Ignore");
      }

      @Override
      public void testFinished(Description d) {
        end(id(d), "PASS", "");
        cur = null;
        curT = null;
      }
    });
    Thread wd = new Thread(() -> {
      String hit = null;
      long at = 0;
      for (;;) {
        H.sleep(500);
        long now = System.currentTimeMillis();
        String c = cur;
        Thread t = curT;
        if (now - start > ct) {
          finishRest("class timeout", t);
        }
        if (c != null && now - curT0 > tt) {
          if (!c.equals(hit)) {
            hit = c;
            at = now;
            if (t != null) {
              Exception e = new Exception("hbt: stack of timed out " + c);
              e.setStackTrace(t.getStackTrace());
              e.printStackTrace();
              t.interrupt();
            }
          } else if (now - at > 20000) {
            finishRest("test timeout", t);
          }
        }
      }
    }, "hbt-watchdog");
    wd.setDaemon(true);
    wd.start();
    core.run(r);
    // leaves never reached: the class-level setup failed or was skipped
    boolean cf = String.valueOf(state.get(cls + "#<class>")).startsWith("FAIL");
    for (String s : all) {
      if (!state.containsKey(s)) {
        end(s, cf ? "FAIL" : "SKIP", "class setup " + (cf ? "failed" : "skipped") + ": " + why);
      }
    }
    H.clean("end");
    finish("");
  }

  static void finishRest(String why, Thread t) {
    if (t != null) {
      Exception e = new Exception("hbt: stack at " + why);
      e.setStackTrace(t.getStackTrace());
      e.printStackTrace();
    }
    for (String s : all) {
      if (!state.containsKey(s)) {
        end(s, "FAIL", s.equals(cur) ? why : "not reached: " + why);
      }
    }
    finish(" " + why);
  }
}
