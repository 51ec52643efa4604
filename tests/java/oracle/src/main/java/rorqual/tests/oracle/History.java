// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.TableName;

/** One seed's operations on both servers, and how a difference is made small. */
final class History {
    /** The origin of operations that are only shown. */
    private static final long PLAN = 1_000_000_000_000L;
    /** Tables are never used twice: an attempt begins with fresh ones. */
    private static final AtomicInteger TABLES = new AtomicInteger();

    private static final long LEASE = Long.parseLong(System.getenv().getOrDefault("LEASE", "60000"));
    private static final ExecutorService TIDY = Executors.newSingleThreadExecutor();

    /** Two answers, mostly such as are not the same. */
    record Difference(int number, String hbase, String rorqual) { }

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

    /** A fresh pair of tables, and a time of its own. */
    private final class Pair implements AutoCloseable {
        final World world = new World(seed, System.currentTimeMillis() / 1000 * 1000);
        private final Place there;
        private final Place here;

        Pair() throws IOException {
            TableName name = TableName.valueOf("oracle_" + run + "_" + seed + "_" + TABLES.incrementAndGet());
            there = Place.create(hbase, world, name);
            here = Place.create(rorqual, world, name);
        }

        /** Both servers' answers. */
        Difference ask(int number) throws InterruptedException {
            String one = there.run(number);
            if (Operation.make(world, number).text.startsWith("Scan") && one.contains("thrown after a retry java.io.IOException")) {
                // What is no IOException leaves the scanner open on HBase until its lease ends. Flushes and compactions keep
                // for it what they would drop else.
                Thread.sleep(LEASE);
            }
            return new Difference(number, one, here.run(number));
        }

        /** Returns null if both say the same. */
        Difference run(int number) throws InterruptedException {
            Difference both = ask(number);
            return both.hbase.equals(both.rorqual) ? null : both;
        }

        @Override
        public void close() {
            // Nobody waits for it.
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

    /** What became of a seed: how many operations ran, which known differences were met, and what is new. */
    static final class Outcome {
        int operations;
        final List<Known> known = new ArrayList<>();
        final List<Difference> differences = new ArrayList<>();
    }

    Outcome run(int operations, int most) throws Exception {
        Outcome outcome = new Outcome();
        try (Pair pair = new Pair()) {
            for (int number = 0; number < operations && outcome.differences.size() < most; number++) {
                Difference difference = pair.run(number);
                outcome.operations++;
                if (difference == null) {
                    continue;
                }
                Operation operation = Operation.make(pair.world, number);
                Known known = Known.of(operation, difference);
                if (known != null) {
                    outcome.known.add(known);
                    continue;
                }
                outcome.differences.add(difference);
                if (operation.writes) {
                    // From here on the tables need not be the same.
                    break;
                }
            }
        }
        return outcome;
    }

    /** Runs some operations and then the last; returns its difference, or null. */
    private Difference attempt(List<Integer> numbers, int last) throws Exception {
        try (Pair pair = new Pair()) {
            for (int number : numbers) {
                pair.run(number);
            }
            Difference difference = pair.run(last);
            return difference == null || Known.of(Operation.make(pair.world, last), difference) != null ? null : difference;
        }
    }

    /** The difference with as few operations before it as can be found in that time; delta debugging. */
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
            // An open scanner keeps a flush from dropping cells: reads may matter after all.
            history = new ArrayList<>(IntStream.range(0, last).boxed().toList());
            difference = attempt(history, last);
        }
        if (difference == null) {
            return text(first, Collections.emptyList(), "it does not happen again");
        }
        for (int parts = 2; !history.isEmpty() && System.currentTimeMillis() < end;) {
            int size = (history.size() + parts - 1) / parts;
            boolean smaller = false;
            // The oldest operations matter least: they go first.
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

    /** Runs the operations given and prints what both servers say to each. */
    void replay(List<Integer> numbers) throws Exception {
        try (Pair pair = new Pair()) {
            System.out.println(pair.world);
            for (int number : numbers) {
                Difference both = pair.ask(number);
                String one = both.hbase;
                String other = both.rorqual;
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
        return text.append("  HBase:\n").append(indented(difference.hbase, difference.rorqual)).append("  Rorqual:\n")
            .append(indented(difference.rorqual, difference.hbase)).toString();
    }

    /** An answer with a mark at each line that the other one has not. */
    private static String indented(String answer, String other) {
        List<String> others = new ArrayList<>(List.of(other.split("\n")));
        StringBuilder text = new StringBuilder();
        for (String line : answer.split("\n")) {
            text.append(others.remove(line) ? "      " : "    * ").append(line).append('\n');
        }
        return text.toString();
    }
}
