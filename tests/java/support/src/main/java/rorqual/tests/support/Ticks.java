// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/** Separates writes that get the server's time: within one millisecond they would be one version. */
public final class Ticks {
    private Ticks() {}

    /** Returns when the clock, which the server on this machine also uses, shows a later millisecond. */
    public static void next() throws InterruptedException {
        long now = System.currentTimeMillis();
        while (System.currentTimeMillis() <= now) {
            Thread.sleep(1);
        }
    }
}
