// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The steps of one phase of one program, each with one line in the report. A step runs on a separate thread, so that a
 * hanging step becomes a failure that shows its stack, and does not stop the whole run.
 */
public final class Steps {
    /** Thrown to leave a phase whose remaining steps are pointless. */
    static final class Stop extends RuntimeException {
        Stop() {
            super(null, null, false, false);
        }
    }

    /** Only for hanging steps: a step of seconds takes two minutes on a machine with twenty busy neighbours. */
    static final long TIMEOUT_SECONDS =
        Long.parseLong(System.getenv().getOrDefault("STEP_TIMEOUT", "300"));

    /** A failure that took longer than this means that the server does not respond; a phase ends at the second such
     * failure. */
    private static final long SLOW_SECONDS = 20;

    private final Report report;
    private final String prefix;
    private int slowFailures;
    private final ExecutorService executor;
    private final AtomicReference<Thread> thread = new AtomicReference<>();

    Steps(Report report, String prefix) {
        this.report = report;
        this.prefix = prefix;
        this.executor = Executors.newSingleThreadExecutor(body -> {
            Thread t = new Thread(body, prefix);
            t.setDaemon(true);
            thread.set(t);
            return t;
        });
    }

    /** Runs a step; the phase continues whether the step fails or not. */
    public void run(String name, Body body) {
        attempt(name, body);
    }

    /** Runs a step without which the rest of the phase is pointless: if it fails, the phase ends. */
    public void must(String name, Body body) {
        if (!attempt(name, body)) {
            throw new Stop();
        }
    }

    void close() {
        executor.shutdownNow();
    }

    void fail(String name, Throwable why) {
        report.fail(prefix + "/" + name, why);
    }

    private boolean attempt(String name, Body body) {
        long begin = System.nanoTime();
        Future<?> outcome = executor.submit(() -> {
            body.run();
            return null;
        });
        try {
            outcome.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            report.pass(prefix + "/" + name);
            return true;
        } catch (ExecutionException e) {
            fail(name, e.getCause());
            if (System.nanoTime() - begin > SLOW_SECONDS * 1_000_000_000L && ++slowFailures == 2) {
                throw new Stop();
            }
            return false;
        } catch (TimeoutException e) {
            AssertionError hung = new AssertionError("no end after " + TIMEOUT_SECONDS + " s");
            hung.setStackTrace(thread.get().getStackTrace());
            fail(name, hung);
            throw new Stop();
        } catch (InterruptedException e) {
            throw new Stop();
        }
    }
}
