// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/**
 * Drives a real HBase and a Rorqual with the same random histories and compares all results.
 *
 * <p>{@code HBASE} and {@code RORQUAL} are the servers (host:port of ZooKeeper). {@code FIRST_SEED}, {@code SEEDS} and
 * {@code OPS} select the histories, {@code JOBS} how many run at a time; {@code SHRINK} is the time in seconds for shrinking a
 * difference (0: none), {@code DIFFERENCES} the number of differences reported per seed, {@code SECONDS} the time after which
 * no further seed begins. {@code REPLAY=3,5,10-20} runs only these operations of FIRST_SEED and prints all answers.
 */
public final class Main {
    private Main() { }

    private static int number(String name, int fallback) {
        return Integer.parseInt(System.getenv().getOrDefault(name, String.valueOf(fallback)));
    }

    /** Parses "3,5,10-20". */
    private static List<Integer> numbers(String text) {
        return Arrays.stream(text.split(",")).map(part -> part.split("-"))
            .flatMap(ends -> IntStream.rangeClosed(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1])).boxed()).toList();
    }

    public static void main(String[] args) throws Exception {
        int first = number("FIRST_SEED", 1);
        int seeds = number("SEEDS", 100);
        int operations = number("OPS", 2000);
        int shrink = number("SHRINK", 60);
        int most = number("DIFFERENCES", 3);
        long last = System.nanoTime() + TimeUnit.SECONDS.toNanos(number("SECONDS", 1_000_000));
        String run = Integer.toString(ThreadLocalRandom.current().nextInt(1 << 20), 36);
        AtomicInteger passed = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        AtomicLong done = new AtomicLong();
        AtomicInteger differences = new AtomicInteger();
        AtomicInteger endless = new AtomicInteger();
        Map<String, Integer> known = new TreeMap<>();
        long begun = System.nanoTime();
        try (Peer hbase = new Peer("HBase", System.getenv("HBASE")); Peer rorqual = new Peer("Rorqual", System.getenv("RORQUAL"))) {
            if (System.getenv("REPLAY") != null) {
                new History(hbase, rorqual, first, run).replay(numbers(System.getenv("REPLAY")));
                System.exit(0);
            }
            ExecutorService jobs = Executors.newFixedThreadPool(number("JOBS", 3));
            for (int i = 0; i < seeds; i++) {
                int seed = first + i;
                jobs.execute(() -> {
                    if (System.nanoTime() > last) {
                        return;
                    }
                    try {
                        History history = new History(hbase, rorqual, seed, run);
                        History.Outcome outcome = history.run(operations, most);
                        done.addAndGet(outcome.operations);
                        synchronized (known) {
                            outcome.known.forEach(one -> known.merge(one.name(), 1, Integer::sum));
                        }
                        endless.addAndGet(outcome.endless.size());
                        differences.addAndGet(outcome.differences.size());
                        if (outcome.broken != null) {
                            failed.incrementAndGet();
                            System.out.println("FAIL seed " + seed + ": " + outcome.broken + " (after " + outcome.operations + " operations)");
                            return;
                        }
                        if (outcome.differences.isEmpty()) {
                            passed.incrementAndGet();
                            System.out.println("PASS seed " + seed
                                + (outcome.endless.isEmpty() ? "" : " (HBase does not end: " + outcome.endless + ")"));
                            return;
                        }
                        failed.incrementAndGet();
                        for (History.Difference difference : outcome.differences) {
                            System.out.println("FAIL seed " + seed + ": operation " + difference.number() + "\n"
                                + (shrink == 0 ? history.text(difference, List.of(), null)
                                    : history.shrunken(difference, TimeUnit.SECONDS.toMillis(shrink))));
                        }
                    } catch (Throwable e) {
                        failed.incrementAndGet();
                        System.out.println("FAIL seed " + seed + ": " + e);
                        e.printStackTrace(System.out);
                    }
                });
            }
            jobs.shutdown();
            jobs.awaitTermination(7, TimeUnit.DAYS);
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        if (System.getenv("TIMES") != null) {
            Place.TIMES.forEach((what, sum) -> System.out.printf("-- %s: %d times, %d ms%n", what, sum[0], sum[1] / 1_000_000));
        }
        known.forEach((name, count) -> System.out.println("-- known: " + name + ": " + count));
        System.out.printf("-- %d operations on each in %.0f s, %.0f a second%n", done.get(), seconds, done.get() / seconds);
        System.out.printf("-- %d seeds, %d operations compared, %d differences, %d operations that HBase failed to answer%n",
            passed.get() + failed.get(), done.get(), differences.get(), endless.get());
        System.out.printf("%d passed, %d failed%n", passed.get(), failed.get());
        System.exit(failed.get() == 0 && passed.get() > 0 ? 0 : 1);
    }
}
