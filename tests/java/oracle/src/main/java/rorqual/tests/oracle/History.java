// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.TableName;

/** Runs one seed's operations on both servers, and shrinks the history that leads to a difference. */
final class History {
    /** The origin of operations that are only printed. */
    private static final long PLAN = 1_000_000_000_000L;
    /** Number of the attempt: each one uses new tables. */
    private static final AtomicInteger TABLES = new AtomicInteger();

    /** Operations whose effects depend on the oldest open scanner: dropped cells, and older versions that a counter leaves. */
    private static final Pattern ON_SCANNERS = Pattern.compile("Increment|Append|increment|append");
    /** A seed is aborted if HBase fails to answer more often than this. */
    private static final int MOST_ENDLESS = 20;
    /** Exceptions of a client whose server may have ended. */
    private static final Pattern GONE = Pattern.compile("Zookeeper|Timeout|Connect|NotServingRegion|NoServer|ServerNotRunning|Stopped");
    private static final int MOST_STARTS = 5;
    private static final ExecutorService TIDY = Executors.newSingleThreadExecutor();

    /** The results of both servers, which mostly differ. */
    record Difference(int number, String hbase, String rorqual) {
        String there() {
            return said(hbase);
        }

        String here() {
            return said(rorqual);
        }

        private static String said(String answer) {
            return answer == null ? "no answer in " + Place.PATIENCE + " s\n" : answer;
        }
    }

    private final Peer hbase;
    private final Peer rorqual;
    private final long seed;
    private final String run;

    History(Peer hbase, Peer rorqual, long seed, String run) {
        this.hbase = hbase;
        this.rorqual = rorqual;
        this.seed = seed;
        this.run = run;
    }

    /** A new pair of tables, with a new origin of timestamps. */
    private final class Pair implements AutoCloseable {
        final World world = new World(seed, System.currentTimeMillis() / 1000 * 1000);
        private final Place there;
        private final Place here;
        /** Until this time, HBase may have an open scanner that no client will close. */
        private long open;

        Pair() throws IOException {
            TableName name = TableName.valueOf("oracle_" + run + "_" + seed + "_" + TABLES.incrementAndGet());
            long begun = System.nanoTime();
            there = Place.create(hbase, world, name);
            Place.count("HBase create", System.nanoTime() - begun);
            here = Place.create(rorqual, world, name);
        }

        /** Runs the operation on both servers; a missing result is null. */
        Difference ask(int number) throws InterruptedException {
            Operation operation = Operation.make(world, number);
            if (operation.upkeep || operation.writes && ON_SCANNERS.matcher(operation.text).find()) {
                long wait = Math.max(0, open - System.currentTimeMillis());
                Place.count("waiting for leases", wait * 1_000_000);
                Thread.sleep(wait);
            }
            String one = there.run(number);
            if (one == null || operation.text.startsWith("Scan") && one.contains("thrown after a retry java.io.IOException")) {
                // After exceptions other than IOException, HBase keeps the scanner open until its lease ends.
                open = System.currentTimeMillis() + Place.LEASE;
            }
            return new Difference(number, one, here.run(number));
        }

        /** Returns null if the results are the same, or if only HBase gives no result. */
        Difference run(int number) throws InterruptedException {
            Difference both = ask(number);
            return both.rorqual == null || both.hbase != null && !both.hbase.equals(both.rorqual) ? both : null;
        }

        @Override
        public void close() {
            // No other thread waits for this task.
            TIDY.execute(() -> {
                try {
                    there.drop();
                    here.drop();
                } catch (IOException e) {
                    System.err.println("cannot drop " + there.name + ": " + e);
                }
            });
        }
    }

    /** The result of a seed: the number of operations compared, the known differences found, and new ones. */
    static final class Outcome {
        int operations;
        final List<Known> known = new ArrayList<>();
        final List<Difference> differences = new ArrayList<>();
        /** Operations that HBase did not answer. */
        final Set<Integer> endless = new TreeSet<>();
        /** Why the history was aborted, or null. */
        String broken;
    }

    /** Starts over if HBase was restarted meanwhile, and without a write that HBase does not answer. */
    Outcome run(int operations, int most) throws Exception {
        Set<Integer> left = new TreeSet<>();
        for (int starts = 0; true; ) {
            int generation = hbase.generation();
            try {
                Outcome outcome = run(operations, most, left, generation);
                if (outcome != null) {
                    return outcome;
                }
            } catch (IOException e) {
                // No table could be created.
                if (++starts == MOST_STARTS || !hbase.restart(generation)) {
                    throw e;
                }
            }
        }
    }

    /** Returns null if it has to be run again. */
    private Outcome run(int operations, int most, Set<Integer> left, int generation) throws Exception {
        Outcome outcome = new Outcome();
        outcome.endless.addAll(left);
        try (Pair pair = new Pair()) {
            for (int number = 0; number < operations && outcome.differences.size() < most; number++) {
                if (left.contains(number)) {
                    continue;
                }
                Difference both = pair.ask(number);
                Operation operation = Operation.make(pair.world, number);
                if (both.hbase == null && both.rorqual != null) {
                    System.out.println("-- HBase does not end: seed " + seed + ", operation " + number + ": " + operation.text);
                    outcome.endless.add(number);
                    if (outcome.endless.size() > MOST_ENDLESS) {
                        outcome.broken = "HBase did not answer " + outcome.endless.size() + " operations";
                        return outcome;
                    }
                    if (!pair.there.answers() && !hbase.restart(generation)) {
                        outcome.broken = "HBase answers nothing any more";
                        return outcome;
                    }
                    if (operation.writes) {
                        left.add(number);
                    }
                    if (operation.writes || generation != hbase.generation()) {
                        return null;
                    }
                    continue;
                }
                if (both.hbase != null && both.hbase.contains(Upkeep.ENDLESS) && both.rorqual != null && !both.rorqual.contains(Upkeep.ENDLESS)) {
                    System.out.println("-- HBase does not end: seed " + seed + ", operation " + number + ": " + operation.text);
                    outcome.endless.add(number);
                    left.add(number);
                    // HBase's compactions wait behind this one forever.
                    if (left.size() > MOST_ENDLESS || !hbase.restart(generation)) {
                        outcome.broken = "HBase compacts without an end";
                        return outcome;
                    }
                    return null;
                }
                outcome.operations++;
                if (both.rorqual != null && both.rorqual.equals(both.hbase)) {
                    continue;
                }
                if (both.hbase != null && GONE.matcher(both.hbase).find() && !pair.there.answers() && !hbase.restart(generation)) {
                    outcome.broken = "HBase is gone: " + both.hbase;
                    return outcome;
                }
                if (generation != hbase.generation()) {
                    return null;
                }
                Known known = both.rorqual == null ? null : Known.of(seed, operation, both);
                if (known != null) {
                    outcome.known.add(known);
                    continue;
                }
                outcome.differences.add(both);
                if (operation.writes) {
                    // From here on the two tables may differ.
                    break;
                }
            }
        }
        return outcome;
    }

    /** Runs some operations and then the last one; returns the last one's difference, or null. */
    private Difference attempt(List<Integer> numbers, int last) throws Exception {
        try (Pair pair = new Pair()) {
            for (int number : numbers) {
                pair.run(number);
            }
            Difference difference = pair.run(last);
            return difference == null || difference.rorqual != null && Known.of(seed, Operation.make(pair.world, last), difference) != null ? null : difference;
        }
    }

    /** Finds, within the time limit, as few preceding operations as possible that still lead to the difference (delta debugging). */
    String shrunken(Difference first, long milliseconds) throws Exception {
        long end = System.currentTimeMillis() + milliseconds;
        World world = new World(seed, PLAN);
        int last = first.number;
        List<Integer> history = new ArrayList<>();
        for (int number = 0; number < last; number++) {
            if (Operation.make(world, number).writes) {
                history.add(number);
            }
        }
        Difference difference = attempt(history, last);
        if (difference == null) {
            // An open scanner keeps a flush from dropping cells, so reads may be needed to reproduce the difference.
            history = new ArrayList<>(IntStream.range(0, last).boxed().toList());
            difference = attempt(history, last);
        }
        if (difference == null) {
            return text(first, Collections.emptyList(), "it does not happen again");
        }
        for (int parts = 2; !history.isEmpty() && System.currentTimeMillis() < end;) {
            int size = (history.size() + parts - 1) / parts;
            boolean smaller = false;
            // The oldest operations matter least, so they are removed first.
            for (int from = 0; from < history.size() && System.currentTimeMillis() < end; from += size) {
                List<Integer> without = new ArrayList<>(history.subList(0, from));
                without.addAll(history.subList(Math.min(history.size(), from + size), history.size()));
                Difference still = attempt(without, last);
                if (still != null) {
                    history = without;
                    difference = still;
                    smaller = true;
                    from -= size;
                }
            }
            if (size == 1 && !smaller) {
                break;
            }
            parts = Math.min(history.size(), smaller ? Math.max(2, parts) : parts * 2);
        }
        return text(difference, history, null);
    }

    /** Runs the given operations and prints both servers' answers to each. */
    void replay(List<Integer> numbers) throws Exception {
        try (Pair pair = new Pair()) {
            System.out.println(pair.world);
            for (int number : numbers) {
                Difference both = pair.ask(number);
                String one = both.there();
                String other = both.here();
                System.out.println(number + ": " + Operation.make(pair.world, number).text);
                System.out.print(one.equals(other) ? one : "  HBase:\n" + indented(one, other) + "  Rorqual:\n" + indented(other, one));
            }
        }
    }

    String text(Difference difference, List<Integer> before, String remark) {
        World world = new World(seed, PLAN);
        StringBuilder text = new StringBuilder("difference in ").append(world).append('\n');
        for (int number : before) {
            text.append("    ").append(number).append(": ").append(Operation.make(world, number).text).append('\n');
        }
        text.append("  at ").append(difference.number).append(": ").append(Operation.make(world, difference.number).text).append('\n');
        if (remark != null) {
            text.append("  (").append(remark).append(")\n");
        }
        return text.append("  HBase:\n").append(indented(difference.there(), difference.here())).append("  Rorqual:\n")
            .append(indented(difference.here(), difference.there())).toString();
    }

    /** Indents a result, with a mark at each line that the other result lacks. */
    private static String indented(String answer, String other) {
        List<String> others = new ArrayList<>(List.of(other.split("\n")));
        StringBuilder text = new StringBuilder();
        for (String line : answer.split("\n")) {
            text.append(others.remove(line) ? "      " : "    * ").append(line).append('\n');
        }
        return text.toString();
    }
}
