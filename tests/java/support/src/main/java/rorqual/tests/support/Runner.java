// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;

/**
 * Runs phases of programs, several programs at a time, and ends with the line {@code N passed, N failed}.
 *
 * <p>Arguments: phases ({@code write}, {@code check}, {@code drop}), separated by commas, and then patterns (regular
 * expressions) of the programs' names; none means all. {@code JOBS} is the number of programs that run at a time.
 */
public final class Runner {
    private static final List<String> PHASES = List.of("write", "check", "drop");

    private Runner() {}

    /** Returns the exit code: 0 if nothing failed. */
    public static int run(List<Program> programs, String[] args) throws Exception {
        List<String> phases = Arrays.asList((args.length > 0 ? args[0] : "write,check,drop").split(","));
        if (!PHASES.containsAll(phases)) {
            System.err.println("phases are " + PHASES + ", not " + phases);
            return 2;
        }
        List<Program> chosen = choose(programs, Arrays.asList(args).subList(Math.min(1, args.length), args.length));
        Report report = new Report();
        endWithoutProgress(2 * Steps.TIMEOUT_SECONDS, report);
        // Phases are barriers: all programs write before any checks, as if a restart were between the phases.
        for (String phase : phases) {
            ExecutorService pool = Executors.newFixedThreadPool(
                Integer.parseInt(System.getenv().getOrDefault("JOBS", "4")));
            List<Future<?>> running = new ArrayList<>();
            for (Program program : chosen) {
                running.add(pool.submit(() -> phase(report, program, phase)));
            }
            for (Future<?> one : running) {
                one.get();
            }
            pool.shutdown();
        }
        System.out.println(report.passed() + " passed, " + report.failed() + " failed");
        return report.failed() == 0 && report.passed() > 0 ? 0 : 1;
    }

    private static List<Program> choose(List<Program> programs, List<String> patterns) {
        List<Program> chosen = new ArrayList<>();
        for (Program program : programs) {
            if (patterns.isEmpty() || patterns.stream().anyMatch(p -> Pattern.matches(p, program.name()))) {
                chosen.add(program);
            }
        }
        return chosen;
    }

    /**
     * Even if a program hangs outside of its steps, the run prints its last line and ends. The whole run has no time limit, because
     * its duration depends on the load of the machine.
     */
    private static void endWithoutProgress(long seconds, Report report) {
        Thread watch = new Thread(() -> {
            try {
                for (int before = -1; before != report.outcomes();) {
                    before = report.outcomes();
                    Thread.sleep(seconds * 1_000);
                }
            } catch (InterruptedException e) {
                return;
            }
            report.fail("(run)", new AssertionError("no step has ended for " + seconds + " s"));
            System.out.println(report.passed() + " passed, " + report.failed() + " failed");
            Runtime.getRuntime().halt(1);
        }, "end of run");
        watch.setDaemon(true);
        watch.start();
    }

    private static void phase(Report report, Program program, String phase) {
        Steps steps = new Steps(report, program.name() + "/" + phase);
        long begin = System.nanoTime();
        try {
            switch (phase) {
                case "write" -> program.write(steps);
                case "check" -> program.check(steps);
                default -> program.drop(steps);
            }
        } catch (Steps.Stop e) {
            // The step that ended the phase has already been reported.
        } catch (Throwable e) {
            steps.fail("(outside of any step)", e);
        } finally {
            steps.close();
        }
        if ("1".equals(System.getenv("TIMES"))) {
            System.out.printf("TIME %s/%s: %.1f s%n", program.name(), phase, (System.nanoTime() - begin) / 1e9);
        }
    }
}
