// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs inside HBase's JVM, loaded when an operation takes long (jcmd JVMTI.agent_load). Makes endless reads fail with an
 * exception, which HBase sends to the client. Nothing else ends such reads, not even a disconnection of the client, and
 * each occupies a core.
 */
public final class Breaker {
    private static final int SAMPLES = 30;
    private static final long PAUSE = 50;
    /** In ns of CPU time. */
    private static final long WORK = 100_000_000;

    /** The text by which a client recognises an aborted read. */
    static final String WORDS = "the oracle broke this off";

    private Breaker() { }

    /** Whether the thread is merging a region's cells, and so only uses the state of this read. */
    private static boolean reads(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getClassName().endsWith(".RegionScannerImpl") || frame.getClassName().endsWith(".StoreScanner")) {
                return true;
            }
        }
        return false;
    }

    /** Normal reads take milliseconds: a thread that is in a read at every sample, and uses the CPU, is in an endless one. */
    public static void agentmain(String report) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Map<Thread, Integer> seen = new HashMap<>();
        Map<Thread, Long> before = new HashMap<>();
        for (int i = 0; i < SAMPLES; i++) {
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                if (thread.getName().contains("handler=") && reads(stack)) {
                    seen.merge(thread, 1, Integer::sum);
                    before.putIfAbsent(thread, threads.getThreadCpuTime(thread.getId()));
                }
            });
            Thread.sleep(PAUSE);
        }
        List<String> stopped = new ArrayList<>();
        for (Map.Entry<Thread, Integer> one : seen.entrySet()) {
            Thread thread = one.getKey();
            if (one.getValue() == SAMPLES && threads.getThreadCpuTime(thread.getId()) - before.get(thread) > WORK) {
                stopped.add(thread.getName());
                for (StackTraceElement frame : thread.getStackTrace()) {
                    stopped.add("  " + frame);
                }
                fail(thread);
            }
        }
        Files.write(Path.of(report), stopped, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /**
     * Throws an exception in the thread, wherever it is. That also interrupts the thread, which HBase's handlers do not expect (one
     * would wait for two calls from then on, and lose one of them). So the thread is suspended until the interrupt is cleared.
     */
    @SuppressWarnings("removal")
    private static void fail(Thread thread) throws Exception {
        Method stop = Thread.class.getDeclaredMethod("stop0", Object.class);
        Field interrupted = Thread.class.getDeclaredField("interrupted");
        stop.setAccessible(true);
        interrupted.setAccessible(true);
        Object exception = Class.forName("org.apache.hadoop.hbase.DoNotRetryIOException").getConstructor(String.class).newInstance(WORDS);
        thread.suspend();
        try {
            if (reads(thread.getStackTrace())) {
                stop.invoke(thread, exception);
                interrupted.setBoolean(thread, false);
            }
        } finally {
            thread.resume();
        }
    }
}
