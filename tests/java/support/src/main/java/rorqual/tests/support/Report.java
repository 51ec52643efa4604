// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/** Collects the results of all programs and prints one line for each. */
public final class Report {
    private static final String OWN_CODE = "rorqual.tests.client";

    private final boolean verbose = "1".equals(System.getenv("VERBOSE"));
    private int passed;
    private int failed;

    synchronized void pass(String name) {
        passed++;
        System.out.println("PASS " + name);
    }

    synchronized void fail(String name, Throwable why) {
        failed++;
        System.out.println("FAIL " + name + ": " + describe(why));
        if (verbose) {
            why.printStackTrace(System.out);
        }
    }

    synchronized int outcomes() {
        return passed + failed;
    }

    public synchronized int passed() {
        return passed;
    }

    public synchronized int failed() {
        return failed;
    }

    /** One line: the error, and its place in the test's own code. */
    static String describe(Throwable why) {
        StringBuilder text = new StringBuilder();
        text.append(why instanceof AssertionError ? "" : why.getClass().getName() + ": ");
        text.append(firstLines(why.getMessage()));
        Throwable root = why;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        if (root != why) {
            text.append(" [cause ").append(root.getClass().getName()).append(": ")
                .append(firstLines(root.getMessage())).append(']');
        }
        for (StackTraceElement frame : why.getStackTrace()) {
            if (frame.getClassName().startsWith(OWN_CODE)) {
                text.append(" (").append(frame.getFileName()).append(':').append(frame.getLineNumber()).append(')');
                break;
            }
        }
        return text.toString();
    }

    private static String firstLines(String message) {
        String oneLine = String.valueOf(message).replace("\n", " | ");
        return oneLine.length() <= 900 ? oneLine : oneLine.substring(0, 900) + "…";
    }
}
