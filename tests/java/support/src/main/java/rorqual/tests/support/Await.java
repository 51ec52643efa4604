// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

import java.util.concurrent.Callable;

/** Polls a condition until a deadline; the only way in which these tests wait. */
public final class Await {
    /** Less than the limit of a step, so that a hanging wait reports its condition. */
    private static final long DEADLINE_SECONDS = 240;

    private Await() {}

    public static void until(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + DEADLINE_SECONDS * 1_000_000_000L;
        for (long pause = 1;; pause = Math.min(50, pause * 2)) {
            if (condition.call()) {
                return;
            }
            if (System.nanoTime() > deadline) {
                throw new AssertionError("after " + DEADLINE_SECONDS + " s still not: " + what);
            }
            Thread.sleep(pause);
        }
    }
}
