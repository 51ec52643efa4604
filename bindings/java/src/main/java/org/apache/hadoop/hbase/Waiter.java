// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase;

import org.apache.hadoop.conf.Configuration;

/** Waits for conditions. As in HBase, a wait that times out fails with an AssertionError or returns -1. */
public final class Waiter {
  private static final long INTERVAL_MS = 10;

  private Waiter() {}

  /** A condition. */
  public interface Predicate<E extends Exception> {
    boolean evaluate() throws E;
  }

  /** A condition that can explain why it does not hold. */
  public interface ExplainingPredicate<E extends Exception> extends Predicate<E> {
    String explainFailure() throws E;
  }

  public static void sleep(Configuration conf, long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  public static <E extends Exception> long waitFor(Configuration conf, long timeout, Predicate<E> predicate) {
    return waitFor(conf, timeout, INTERVAL_MS, true, predicate);
  }

  public static <E extends Exception> long waitFor(Configuration conf, long timeout, long interval, Predicate<E> predicate) {
    return waitFor(conf, timeout, interval, true, predicate);
  }

  /** Returns the milliseconds until the condition held. */
  public static <E extends Exception> long waitFor(Configuration conf, long timeout, long interval, boolean failIfTimeout,
      Predicate<E> predicate) {
    long begun = System.nanoTime();
    try {
      while (!predicate.evaluate()) {
        if (System.nanoTime() - begun > timeout * 1_000_000) {
          if (!failIfTimeout) {
            return -1;
          }
          String why = predicate instanceof ExplainingPredicate ? ": " + ((ExplainingPredicate<E>) predicate).explainFailure() : "";
          throw new AssertionError("Waiting timed out after [" + timeout + "] msec" + why);
        }
        Thread.sleep(interval);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting", interrupted);
    } catch (Exception failed) {
      throw failed instanceof RuntimeException ? (RuntimeException) failed : new IllegalStateException(failed);
    }
    return (System.nanoTime() - begun) / 1_000_000;
  }
}
