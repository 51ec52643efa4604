// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.util.Pair;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;

/**
 * Measures the cost of filters by scans of one table through one client, most with a small result, so that the server's work
 * dominates ({@code bench/filters}). {@code fill ROWS} makes the table and an empty one. {@code scan ROWS ROUNDS} scans with each
 * filter (or with those that FILTER lists, separated by commas): first the empty table, until the client's code is compiled, and
 * then several times to measure the cost of client and network; then the full table, once unmeasured and then ROUNDS times. It
 * prints {@code begin name} before the full table and {@code end name rows seconds seconds-of-the-empty-table} after it, medians.
 *
 * <p>Row {@code GGGG_IIIIIII}: group and number within it, a thousand groups, or more where they would have less than a thousand
 * rows each; columns f:number, f:text, f:word.
 */
public final class FilterBench {
    /** The number of different values of f:number and f:word, and the lowest number of groups. */
    private static final int THOUSAND = 1000;
    private static final int WARM = 400;
    private static final int FLOOR_ROUNDS = 101;
    private static final byte[] FAMILY = Text.b("f");
    private static final TableName NAME = TableName.valueOf("filters");
    private static final TableName EMPTY = TableName.valueOf("filters_empty");

    private FilterBench() {}

    public static void main(String[] args) throws Exception {
        int rows = Integer.parseInt(args[1]);
        try (Cluster cluster = Cluster.fromEnvironment()) {
            if (args[0].equals("fill")) {
                fill(cluster, rows);
            } else {
                scanAll(cluster, rows, Integer.parseInt(args[2]));
            }
        }
        System.exit(0);
    }

    private static int perGroup(int rows) {
        return Math.max(THOUSAND, rows / THOUSAND);
    }

    private static String row(int i, int rows) {
        return String.format("%04d_%07d", i / perGroup(rows), i % perGroup(rows));
    }

    private static void fill(Cluster cluster, int rows) throws Exception {
        for (TableName name : List.of(EMPTY, NAME)) {
            cluster.admin.createTable(TableDescriptorBuilder.newBuilder(name)
                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build());
        }
        try (BufferedMutator mutator = cluster.connection.getBufferedMutator(NAME)) {
            for (int i = 0; i < rows; i++) {
                // Values in an order that differs from that of the rows.
                int chance = (int) (i * 2654435761L >>> 7 & 0x7fffffff);
                mutator.mutate(new Put(Text.b(row(i, rows)))
                    .addColumn(FAMILY, Text.b("number"), ByteBuffer.allocate(8).putLong(chance % THOUSAND).array())
                    .addColumn(FAMILY, Text.b("text"), Text.b("The quick brown fox jumps over " + chance + " lazy dogs"))
                    .addColumn(FAMILY, Text.b("word"), Text.b("word" + chance % THOUSAND)));
            }
        }
        cluster.flushAndMajorCompact(NAME);
    }

    private static Map<String, Supplier<Filter>> filters(int rows) {
        Map<String, Supplier<Filter>> all = new LinkedHashMap<>();
        int groups = rows / perGroup(rows);
        String some = String.format("%04d", groups / 2);
        all.put("none", () -> null);
        all.put("FirstKeyOnly", FirstKeyOnlyFilter::new);
        all.put("Page 10", () -> new PageFilter(10));
        all.put("Prefix", () -> new PrefixFilter(Text.b(some)));
        all.put("Row = substring", () -> new RowFilter(CompareOperator.EQUAL, new SubstringComparator("_0000500")));
        all.put("Row = regex", () -> new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("^[0-9]{4}_0000500$")));
        all.put("Row > binary", () -> new RowFilter(CompareOperator.GREATER, new BinaryComparator(Text.b(row(rows - 100, rows)))));
        all.put("SingleColumnValue =", () -> value("number", new BinaryComparator(
            ByteBuffer.allocate(8).putLong(77).array())));
        all.put("SingleColumnValue substring", () -> value("text", new SubstringComparator("OVER 1234")));
        all.put("SingleColumnValue regex", () -> value("text", new RegexStringComparator("over [0-9]*12345 lazy")));
        all.put("Value = binary", () -> new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(Text.b("word77"))));
        all.put("Value = substring", () -> new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("OVER 1234")));
        all.put("Qualifier and Value", () -> new FilterList(
            new QualifierFilter(CompareOperator.EQUAL, new BinaryComparator(Text.b("word"))),
            new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(Text.b("word77")))));
        all.put("Fuzzy", () -> new FuzzyRowFilter(List.of(new Pair<>(Text.b("0000_0000500"),
            new byte[] {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}))));
        all.put("MultiRowRange", () -> {
            List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                byte[] key = Text.b(row((int) ((long) rows * i / 1000), rows));
                ranges.add(new MultiRowRangeFilter.RowRange(key, true, key, true));
            }
            return new MultiRowRangeFilter(ranges);
        });
        return all;
    }

    private static SingleColumnValueFilter value(String column, ByteArrayComparable comparator) {
        SingleColumnValueFilter filter = new SingleColumnValueFilter(FAMILY, Text.b(column), CompareOperator.EQUAL, comparator);
        filter.setFilterIfMissing(true);
        return filter;
    }

    private static void scanAll(Cluster cluster, int rows, int rounds) throws IOException {
        String only = System.getenv("FILTER");
        try (Table table = cluster.connection.getTable(NAME); Table empty = cluster.connection.getTable(EMPTY)) {
            for (Map.Entry<String, Supplier<Filter>> e : filters(rows).entrySet()) {
                if (only != null && !Arrays.asList(only.split(",")).contains(e.getKey())) {
                    continue;
                }
                median(empty, e, WARM, 0);
                double floor = median(empty, e, FLOOR_ROUNDS, 0);
                System.out.printf("begin\t%s%n", e.getKey());
                long found = scan(table, e.getValue().get());
                double seconds = median(table, e, rounds, found);
                System.out.printf("end\t%s\t%d\t%.6f\t%.6f%n", e.getKey(), found, seconds, floor);
            }
        }
    }

    private static double median(Table table, Map.Entry<String, Supplier<Filter>> e, int rounds, long found) throws IOException {
        double[] seconds = new double[rounds];
        for (int i = 0; i < rounds; i++) {
            Filter filter = e.getValue().get();
            long begun = System.nanoTime();
            if (scan(table, filter) != found) {
                throw new IllegalStateException(e.getKey() + " finds other rows each time");
            }
            seconds[i] = (System.nanoTime() - begun) / 1e9;
        }
        Arrays.sort(seconds);
        return seconds[rounds / 2];
    }

    private static long scan(Table table, Filter filter) throws IOException {
        Scan scan = new Scan().setCaching(10_000).setFilter(filter);
        long count = 0;
        try (ResultScanner scanner = table.getScanner(scan)) {
            for (Result result : scanner) {
                count += result.isEmpty() ? 0 : 1;
            }
        }
        return count;
    }
}
