// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.util.Objects;

/** One line of the report per test. */
final class Check {
  private Check() {
  }

  interface Test {
    void run() throws Exception;
  }

  static void test(String name, Test test) {
    try {
      test.run();
      System.out.println("PASS " + name);
    } catch (Exception | AssertionError e) {
      e.printStackTrace();
      System.out.println("FAIL " + name + ": " + String.valueOf(e).replace('\n', ' '));
    }
  }

  static void same(Object expected, Object got) {
    if (!Objects.equals(expected, got)) {
      throw new AssertionError("expected " + expected + ", got " + got);
    }
  }

  static void holds(boolean condition, String what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  /** Returns the exception that the test expects; its class on the client is part of the behaviour. */
  static <T extends Throwable> T thrown(Class<T> type, Test test) {
    try {
      test.run();
    } catch (Throwable e) {
      for (Throwable t = e; t != null; t = t.getCause()) {
        if (type.isInstance(t)) {
          return type.cast(t);
        }
      }
      throw new AssertionError("expected " + type.getName() + ", got " + e, e);
    }
    throw new AssertionError("expected " + type.getName() + ", nothing was thrown");
  }
}
