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
 * The steps of one phase of one program: each is one line of the report. A step runs on a thread of its own, so that one
 * that hangs becomes a failure which shows where it hung, and does not stop the whole run.
 */
public final class Steps {
    /** Thrown to leave a phase whose remaining steps make no sense any more. */
    static final class Stop extends RuntimeException {
        Stop() {
            super(null, null, false, false);
        }
    }

    /** It ends what hangs. A step of seconds takes two minutes on a machine with twenty busy neighbours. */
    static final long TIMEOUT_SECONDS =
        Long.parseLong(System.getenv().getOrDefault("STEP_TIMEOUT", "300"));

    /** A failure that took longer than this means that the server does not answer; a phase gives up at the second one. */
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

    /** Runs a step; the phase goes on whether it fails or not. */
    public void run(String name, Body body) {
        attempt(name, body);
    }

    /** Runs a step without which the rest of the phase makes no sense: if it fails, the phase ends. */
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
