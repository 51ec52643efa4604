// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.results;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Random histories with results recorded from a real HBase 2.6.1: writes and deletes of every kind with small
 * explicit timestamps (so that they collide), flushes, compactions, gets and scans with random options and filters.
 *
 * <p>{@code HISTORIES=N} runs fewer seeds, {@code TRACE=1} prints the operations before a difference,
 * {@code RECORD=FILE} records the results of the server under test as the expected ones (resource
 * {@code histories.gz}).
 */
public final class Histories implements Program {
    private static final int SEEDS = Integer.parseInt(System.getenv().getOrDefault("HISTORIES", "24"));
    private static final int OPERATIONS = 250;
    private static final String[] FAMILIES = {"one", "three", "keep"};
    private static final String[] ROWS = {"a", "aa", "b", "c", "d", "e"};
    /**
     * Not the empty qualifier: HBase passes every version of that column to a filter even if the filter has asked for the
     * next column (because family markers may be there), which is an accident of its implementation.
     */
    private static final String[] QUALIFIERS = {"m", "p", "q", "qq", "r"};
    private static final int TIMES = 9;

    private final Cluster cluster;

    public Histories(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        String record = System.getenv("RECORD");
        Map<Integer, List<String>> expected = record == null ? expected() : new TreeMap<>();
        Map<Integer, List<String>> answers = new LinkedHashMap<>();
        for (int seed = 1; seed <= SEEDS; seed++) {
            int number = seed;
            steps.run("seed " + seed, () -> {
                try (Table table = create(number)) {
                    answers.put(number, new History(table, number).run(expected.get(number)));
                }
            });
        }
        if (record != null) {
            save(Path.of(record), answers);
        }
    }

    /** Checks the cells that readers see in the end, which no flush, compaction or restart may change. */
    @Override
    public void check(Steps steps) throws Exception {
        Map<Integer, List<String>> expected = expected();
        for (int seed = 1; seed <= SEEDS; seed++) {
            int number = seed;
            steps.run("seed " + seed, () -> {
                try (Table table = cluster.table(name(number))) {
                    Expect.equal(expected.get(number).get(OPERATIONS), left(table), "what is left");
                }
            });
        }
    }

    private static String left(Table table) throws IOException {
        return masked(timed(table, new Scan().readAllVersions()));
    }

    private static String masked(String answer) {
        return answer.replaceAll("@\\d{13}", "@clock").replace('\n', ' ');
    }

    private String name(int seed) {
        return "history_" + seed;
    }

    private Table create(int seed) throws IOException {
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(cluster.name(name(seed)));
        for (String name : FAMILIES) {
            table.setColumnFamily(family(name));
        }
        cluster.admin.createTable(table.build(), new byte[][] {b("b"), b("d")});
        return cluster.table(name(seed));
    }

    private static ColumnFamilyDescriptor family(String name) {
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(b(name)).setMaxVersions(name.equals("one") ? 1 : 3);
        if (name.equals("keep")) {
            family.setKeepDeletedCells(KeepDeletedCells.TRUE);
        }
        // Raw scans show the effect of compactions, and the time of automatic ones is unknown: only the history starts
        // compactions.
        return family.setConfiguration("hbase.hstore.compaction.min", "1000").build();
    }

    // ---- the recorded answers ----------------------------------------------------------------------------------------

    private static Map<Integer, List<String>> expected() throws IOException {
        Map<Integer, List<String>> expected = new TreeMap<>();
        try (InputStream in = Histories.class.getResourceAsStream("/histories.gz")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(new GZIPInputStream(in), StandardCharsets.UTF_8));
            List<String> current = null;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("seed ")) {
                    current = new ArrayList<>();
                    expected.put(Integer.parseInt(line.substring(5)), current);
                } else {
                    current.add(line);
                }
            }
        }
        return expected;
    }

    private static void save(Path path, Map<Integer, List<String>> answers) throws IOException {
        StringBuilder text = new StringBuilder();
        answers.forEach((seed, lines) -> {
            text.append("seed ").append(seed).append('\n');
            lines.forEach(line -> text.append(line).append('\n'));
        });
        try (GZIPOutputStream out = new GZIPOutputStream(Files.newOutputStream(path))) {
            out.write(text.toString().getBytes(StandardCharsets.UTF_8));
        }
    }

    // ---- one history -------------------------------------------------------------------------------------------------

    private final class History {
        private final Table table;
        private final TableName name;
        private final Random random;
        private int written;

        History(Table table, int seed) {
            this.table = table;
            this.name = table.getName();
            this.random = new Random(seed);
        }

        /** Returns the answers; if expected answers are given, fails at the first difference. */
        List<String> run(List<String> expected) throws Exception {
            List<String> answers = new ArrayList<>();
            List<String> trace = new ArrayList<>();
            for (int i = 0; i < OPERATIONS; i++) {
                StringBuilder what = new StringBuilder();
                // A history alternates between phases of mostly writes and mostly reads.
                String answer;
                try {
                    answer = random.nextInt(100) < (i % 50 < 30 ? 75 : 20) ? write(what) : read(what);
                } catch (IOException e) {
                    Throwable root = e;
                    while (root.getCause() != null) {
                        root = root.getCause();
                    }
                    answer = "error " + String.valueOf(root.getMessage()).lines().findFirst().orElse("");
                }
                trace.add(what.toString());
                answers.add(masked(answer));
                if (expected != null && !expected.get(i).equals(answers.get(i))) {
                    if ("1".equals(System.getenv("TRACE"))) {
                        trace.forEach(System.out::println);
                    }
                    int same = commonCells(expected.get(i), answers.get(i));
                    throw new AssertionError("operation " + i + ": HBase …" + expected.get(i).substring(same) + "', this server '…"
                        + answers.get(i).substring(same) + "' to " + what);
                }
            }
            answers.add(left(table));
            if (expected != null) {
                Expect.equal(expected.get(OPERATIONS), answers.get(OPERATIONS), "what is left at the end");
            }
            return answers;
        }

        /** The beginning of the first cell in which two answers differ. */
        private static int commonCells(String a, String b) {
            int same = 0;
            while (same < Math.min(a.length(), b.length()) && a.charAt(same) == b.charAt(same)) {
                same++;
            }
            return Math.max(0, Math.max(a.lastIndexOf(' ', same), a.lastIndexOf('[', same)));
        }

        private String pick(String[] of) {
            return of[random.nextInt(of.length)];
        }

        private long time() {
            return 1 + random.nextInt(TIMES);
        }

        private byte[] value() {
            written++;
            return b("v" + written % 7 + "." + written);
        }

        // ---- writes --------------------------------------------------------------------------------------------------

        private String write(StringBuilder what) throws Exception {
            String row = pick(ROWS);
            switch (random.nextInt(16)) {
                case 0, 1, 2, 3, 4, 5 -> {
                    Put put = put(row);
                    what.append(put);
                    table.put(put);
                }
                case 6 -> {
                    List<Put> puts = new ArrayList<>();
                    for (int i = 0; i < 5; i++) {
                        puts.add(put(pick(ROWS)));
                    }
                    what.append(puts);
                    table.put(puts);
                }
                case 7, 8, 9 -> {
                    Delete delete = delete(row);
                    what.append(delete);
                    table.delete(delete);
                }
                case 10 -> {
                    RowMutations both = RowMutations.of(List.of(put(row), delete(row), put(row)));
                    what.append("mutate ").append(both.getMutations());
                    table.mutateRow(both);
                }
                case 11 -> {
                    Increment increment = new Increment(b(row)).addColumn(b(pick(FAMILIES)), b("counter"), random.nextInt(9) - 3);
                    what.append(increment);
                    return timed(table.increment(increment));
                }
                case 12 -> {
                    Append append = new Append(b(row)).addColumn(b(pick(FAMILIES)), b("text"), b("+" + random.nextInt(100)));
                    what.append(append);
                    return timed(table.append(append));
                }
                case 13 -> {
                    return check(what, row);
                }
                case 14 -> {
                    what.append("flush");
                    cluster.admin.flush(name);
                }
                default -> {
                    if (random.nextInt(3) == 0) {
                        what.append("major compaction");
                        cluster.flushAndMajorCompact(name);
                    } else {
                        String family = pick(FAMILIES);
                        what.append("flush of ").append(family);
                        cluster.admin.flush(name, b(family));
                    }
                }
            }
            return "";
        }

        private Put put(String row) {
            Put put = new Put(b(row));
            for (int i = random.nextInt(3); i >= 0; i--) {
                put.addColumn(b(pick(FAMILIES)), b(pick(QUALIFIERS)), time(), value());
            }
            return put;
        }

        private Delete delete(String row) {
            byte[] family = b(pick(FAMILIES));
            byte[] qualifier = b(pick(QUALIFIERS));
            return switch (random.nextInt(6)) {
                case 0 -> new Delete(b(row), time());
                case 1 -> new Delete(b(row)).addFamily(family, time());
                case 2 -> new Delete(b(row)).addFamilyVersion(family, time());
                case 3 -> new Delete(b(row)).addColumns(family, qualifier, time());
                default -> new Delete(b(row)).addColumn(family, qualifier, time());
            };
        }

        private String check(StringBuilder what, String row) throws IOException {
            byte[] family = b(pick(FAMILIES));
            byte[] qualifier = b(pick(QUALIFIERS));
            CheckAndMutate.Builder builder = CheckAndMutate.newBuilder(b(row));
            switch (random.nextInt(3)) {
                case 0 -> builder.ifNotExists(family, qualifier);
                case 1 -> builder.ifMatches(family, qualifier, pickOperator(), b("v3"));
                default -> builder.ifMatches(new SingleColumnValueFilter(family, qualifier, pickOperator(), b("v3")));
            }
            CheckAndMutate check = random.nextBoolean() ? builder.build(put(row)) : builder.build(delete(row));
            what.append("check ").append(check);
            return String.valueOf(table.checkAndMutate(check).isSuccess());
        }

        private CompareOperator pickOperator() {
            CompareOperator[] operators = {CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL, CompareOperator.EQUAL,
                CompareOperator.NOT_EQUAL, CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER};
            return operators[random.nextInt(operators.length)];
        }

        // ---- reads ---------------------------------------------------------------------------------------------------

        private String read(StringBuilder what) throws IOException {
            return random.nextInt(3) == 0 ? get(what) : scan(what);
        }

        private String get(StringBuilder what) throws IOException {
            Get get = new Get(b(pick(ROWS)));
            for (int i = random.nextInt(3); i > 0; i--) {
                if (random.nextBoolean()) {
                    get.addColumn(b(pick(FAMILIES)), b(pick(QUALIFIERS)));
                } else {
                    get.addFamily(b(pick(FAMILIES)));
                }
            }
            if (random.nextInt(3) > 0) {
                get.readVersions(1 + random.nextInt(4));
            }
            if (random.nextInt(4) == 0) {
                long from = random.nextInt(TIMES);
                get.setTimeRange(from, from + 1 + random.nextInt(TIMES));
            }
            if (random.nextInt(5) == 0) {
                get.setMaxResultsPerColumnFamily(1 + random.nextInt(3)).setRowOffsetPerColumnFamily(random.nextInt(2));
            }
            if (random.nextInt(3) == 0) {
                get.setFilter(filter(0, true));
            }
            what.append("get ").append(s(get.getRow())).append(described(get.getFamilyMap())).append(" versions ")
                .append(get.getMaxVersions()).append(" time ").append(get.getTimeRange()).append(" limit ")
                .append(get.getMaxResultsPerColumnFamily()).append(" offset ").append(get.getRowOffsetPerColumnFamily())
                .append(" filter ").append(get.getFilter());
            return timed(table.get(get));
        }

        private String scan(StringBuilder what) throws IOException {
            Scan scan = new Scan();
            boolean reversed = random.nextInt(4) == 0;
            if (random.nextBoolean()) {
                String from = pick(ROWS);
                String to = pick(ROWS);
                boolean swap = from.compareTo(to) > 0 != reversed;
                scan.withStartRow(b(swap ? to : from), random.nextBoolean()).withStopRow(b(swap ? from : to), random.nextBoolean());
            }
            // HBase refuses to load families on demand in reversed scans, which a SingleColumnValueFilter would need.
            scan.setReversed(reversed).setLoadColumnFamiliesOnDemand(!reversed);
            boolean raw = random.nextInt(6) == 0;
            scan.setRaw(raw);
            for (int i = random.nextInt(3); i > 0; i--) {
                if (random.nextBoolean() && !raw) {
                    scan.addColumn(b(pick(FAMILIES)), b(pick(QUALIFIERS)));
                } else {
                    scan.addFamily(b(pick(FAMILIES)));
                }
            }
            if (random.nextInt(3) > 0) {
                scan.readVersions(1 + random.nextInt(4));
            }
            if (random.nextInt(4) == 0) {
                long from = random.nextInt(TIMES);
                scan.setTimeRange(from, from + 1 + random.nextInt(TIMES));
            }
            boolean batched = random.nextInt(6) == 0;
            if (batched) {
                scan.setBatch(1 + random.nextInt(4));
            } else if (random.nextInt(4) == 0) {
                scan.setLimit(1 + random.nextInt(4));
            }
            if (random.nextInt(3) == 0) {
                scan.setCaching(1 + random.nextInt(4));
            }
            if (random.nextInt(5) == 0) {
                scan.setMaxResultSize(1 + random.nextInt(300));
            }
            if (random.nextInt(5) < 2 && !raw) {
                scan.setFilter(filter(0, !batched));
            }
            what.append(raw ? "raw " : "").append(reversed ? "reversed " : "").append("scan ")
                .append(scan.includeStartRow() ? "[" : "(").append(s(scan.getStartRow())).append(", ").append(s(scan.getStopRow()))
                .append(scan.includeStopRow() ? "]" : ")").append(described(scan.getFamilyMap())).append(" versions ")
                .append(scan.getMaxVersions()).append(" time ").append(scan.getTimeRange()).append(" batch ").append(scan.getBatch())
                .append(" limit ").append(scan.getLimit()).append(" caching ").append(scan.getCaching()).append(" size ")
                .append(scan.getMaxResultSize()).append(" filter ").append(scan.getFilter());
            StringBuilder answer = new StringBuilder();
            for (Result result : results(table, scan)) {
                answer.append(s(result.getRow())).append('[').append(timed(result)).append("] ");
            }
            return answer.toString().trim();
        }

        private static String described(Map<byte[], NavigableSet<byte[]>> families) {
            StringBuilder text = new StringBuilder();
            families.forEach((family, qualifiers) -> {
                text.append(' ').append(s(family));
                if (qualifiers != null) {
                    qualifiers.forEach(qualifier -> text.append(':').append(s(qualifier)));
                }
            });
            return text.toString();
        }

        /** A random filter; filters that decide on whole rows cannot be combined with a batch. */
        private Filter filter(int depth, boolean wholeRows) {
            byte[] qualifier = b(pick(QUALIFIERS));
            String row = pick(ROWS);
            return switch (random.nextInt(depth == 0 ? 18 : 14)) {
                case 0 -> new PrefixFilter(b(row));
                case 1 -> new RowFilter(pickOperator(), new BinaryComparator(b(row)));
                case 2 -> new ColumnPrefixFilter(b("q"));
                case 3 -> new ColumnRangeFilter(qualifier, random.nextBoolean(), b(pick(QUALIFIERS) + "x"), random.nextBoolean());
                case 4 -> new ColumnPaginationFilter(1 + random.nextInt(2), random.nextInt(3));
                case 5 -> new TimestampsFilter(List.of(time(), time(), time()));
                case 6 -> new ValueFilter(pickOperator(), new BinaryPrefixComparator(b("v" + random.nextInt(7))));
                case 7 -> new QualifierFilter(pickOperator(), new BinaryComparator(qualifier));
                case 8 -> new KeyOnlyFilter();
                case 9 -> new FirstKeyOnlyFilter();
                case 10 -> new ValueFilter(CompareOperator.EQUAL, new SubstringComparator(String.valueOf(random.nextInt(10))));
                case 11 -> new ColumnCountGetFilter(1 + random.nextInt(4));
                case 12 -> wholeRows ? new PageFilter(1 + random.nextInt(3)) : new ColumnPrefixFilter(b("r"));
                case 13 -> {
                    if (!wholeRows) {
                        yield new ColumnPrefixFilter(b("p"));
                    }
                    SingleColumnValueFilter single = new SingleColumnValueFilter(b(pick(FAMILIES)), qualifier, pickOperator(), b("v3"));
                    single.setFilterIfMissing(random.nextBoolean());
                    single.setLatestVersionOnly(random.nextBoolean());
                    yield single;
                }
                case 14 -> wholeRows ? new SkipFilter(filter(1, true)) : new FirstKeyOnlyFilter();
                case 15 -> wholeRows ? new WhileMatchFilter(filter(1, true)) : new KeyOnlyFilter();
                default -> {
                    FilterList list = new FilterList(random.nextBoolean() ? FilterList.Operator.MUST_PASS_ALL : FilterList.Operator.MUST_PASS_ONE);
                    for (int i = 1 + random.nextInt(3); i > 0; i--) {
                        list.addFilter(filter(1, wholeRows));
                    }
                    yield list;
                }
            };
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("history_"));
    }
}
