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
 * Runs inside HBase's JVM, brought there when an operation takes long (jcmd JVMTI.agent_load): a read that does not end is made to
 * fail, as nothing else ends it, not even its client's leaving, and each would keep a core. HBase tells that client and goes on.
 */
public final class Breaker {
    private static final int SAMPLES = 30;
    private static final long PAUSE = 50;
    /** Nanoseconds of a processor. */
    private static final long WORK = 100_000_000;

    /** By which a client knows. */
    static final String WORDS = "the oracle broke this off";

    private Breaker() { }

    /** Is it in the merging of a region's cells, and so in nothing that holds more than this read's own state? */
    private static boolean reads(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getClassName().endsWith(".RegionScannerImpl") || frame.getClassName().endsWith(".StoreScanner")) {
                return true;
            }
        }
        return false;
    }

    /** A read that ends takes milliseconds: who is in one at every look, and at work, is in one that does not end. */
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
     * Lets an exception happen in the thread, wherever it is. That interrupts it as well, which HBase's handlers do not expect (one
     * would wait for two calls from then on, and lose one of them): so it stands still until the interrupt is taken back.
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
