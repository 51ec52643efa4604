// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.io.IOException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.BigDecimalComparator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryComponentComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.ColumnValueFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.LongComparator;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter.RowRange;
import org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.NullComparator;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueExcludeFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Filters and comparators, each over a small table whose cells are spread over two regions, files and memory. */
public final class Filters implements Program {
    private final Cluster cluster;

    public Filters(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create and put", () -> {
            try (Table t = cluster.create("filter", keys("c"), Cluster.family("f", 3), Cluster.family("g", 3))) {
                t.put(List.of(
                    put("a1", "f:a@1=1", "f:b@1=x", "g:a@1=one"), put("a2", "f:a@1=2", "f:ab@2=y"),
                    put("b1", "f:a@1=3", "f:b@1=X", "g:z@1=One two")));
                cluster.flush("filter");
                t.put(List.of(
                    put("b2", "f:a@2=4", "f:a@1=3"), put("c1", "f:a@1=5", "f:b@3=z", "f:c@1=", "g:a@1=three"),
                    put("c2", "g:z@1=last"), put("d1", "f:a@1=10", "f:d@1=d")));
            }
            try (Table t = cluster.create("filter_keys", Cluster.family("f"))) {
                List<Put> puts = new ArrayList<>();
                for (int user = 0; user < 20; user++) {
                    for (int action = 0; action < 5; action++) {
                        puts.add(put(String.format("%04d_%02d", user, action), "f:q=" + user));
                    }
                }
                puts.add(put("00", "f:q=short"));
                t.put(puts);
            }
            try (Table t = cluster.create("filter_numbers", Cluster.family("f"))) {
                for (long n : new long[] {-5, 0, 3, 70}) {
                    t.put(new Put(b("n" + n)).addColumn(b("f"), b("long"), Bytes.toBytes(n))
                        .addColumn(b("f"), b("decimal"), Bytes.toBytes(new BigDecimal(n).divide(new BigDecimal(2)))));
                }
            }
        });
        check(steps);
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Table t = cluster.table("filter"); Table keys = cluster.table("filter_keys"); Table numbers = cluster.table("filter_numbers")) {
            rowFilter(steps, t);
            rows(steps, t, keys);
            columns(steps, t);
            values(steps, t);
            lists(steps, t);
            numbers(steps, numbers);
            errors(steps, t);
        }
    }

    private static Scan with(Filter filter) {
        return new Scan().setFilter(filter);
    }

    private static String rowsOf(Table t, Filter filter) throws IOException {
        return rowLine(t, with(filter));
    }

    private void rowFilter(Steps steps, Table t) {
        String[][] operators = {
            {"LESS", "a1 a2"}, {"LESS_OR_EQUAL", "a1 a2 b1"}, {"EQUAL", "b1"}, {"NOT_EQUAL", "a1 a2 b2 c1 c2 d1"},
            {"GREATER_OR_EQUAL", "b1 b2 c1 c2 d1"}, {"GREATER", "b2 c1 c2 d1"}};
        for (String[] line : operators) {
            steps.run("RowFilter " + line[0], () -> Expect.equal(line[1],
                rowsOf(t, new RowFilter(CompareOperator.valueOf(line[0]), new BinaryComparator(b("b1")))), "rows"));
        }
        Object[][] comparators = {
            {new BinaryPrefixComparator(b("b")), "b1 b2"},
            {new SubstringComparator("2"), "a2 b2 c2"},
            {new SubstringComparator("A"), "a1 a2"},
            {new RegexStringComparator("^[ac]1$"), "a1 c1"},
            {new RegexStringComparator("2"), "a2 b2 c2"},
            {new RegexStringComparator("^A", java.util.regex.Pattern.CASE_INSENSITIVE), "a1 a2"},
            {new BinaryComponentComparator(b("1"), 1), "a1 b1 c1 d1"},
            {new BitComparator(b("b1"), BitComparator.BitwiseOp.XOR), "a1 a2 b2 c1 c2 d1"}};
        for (Object[] line : comparators) {
            ByteArrayComparable comparator = (ByteArrayComparable) line[0];
            steps.run("RowFilter with " + comparator.getClass().getSimpleName() + " " + line[1], () -> Expect.equal(line[1],
                rowsOf(t, new RowFilter(CompareOperator.EQUAL, comparator)), "rows"));
        }
        steps.run("RowFilter NOT_EQUAL of a substring", () -> Expect.equal("a1 b1 c1 d1",
            rowsOf(t, new RowFilter(CompareOperator.NOT_EQUAL, new SubstringComparator("2"))), "rows"));
        steps.run("RowFilter backwards", () -> Expect.equal("b2 b1", rowLine(t, with(
            new RowFilter(CompareOperator.EQUAL, new BinaryPrefixComparator(b("b")))).setReversed(true)), "rows"));
        steps.run("RowFilter of a get", () -> {
            RowFilter b1 = new RowFilter(CompareOperator.EQUAL, new BinaryComparator(b("b1")));
            Expect.that(!t.get(get("b1").setFilter(b1)).isEmpty(), "its own row");
            Expect.that(t.get(get("b2").setFilter(b1)).isEmpty(), "another row");
        });
    }

    private void rows(Steps steps, Table t, Table keys) {
        steps.run("PrefixFilter", () -> {
            Expect.equal("b1 b2", rowsOf(t, new PrefixFilter(b("b"))), "b");
            Expect.equal("", rowsOf(t, new PrefixFilter(b("zz"))), "none");
            Expect.equal("c2 c1", rowLine(t, with(new PrefixFilter(b("c"))).setReversed(true)), "backwards");
        });
        steps.run("PageFilter is per region", () -> {
            Expect.equal("a1 a2", rowLine(t, with(new PageFilter(2)).withStopRow(b("c"))), "within one region");
            // The server may return one page for each of the two regions; the client sets no limit of its own.
            Expect.equal("a1 a2 c1 c2", rowsOf(t, new PageFilter(2)), "over two regions");
        });
        steps.run("InclusiveStopFilter", () -> Expect.equal("a1 a2 b1", rowsOf(t, new InclusiveStopFilter(b("b1"))), "rows"));
        steps.run("FuzzyRowFilter", () -> {
            // A row shorter than the pattern is compared over its own length only: HBase includes 00.
            Expect.equal("00 0000_03 0001_03 0002_03 0003_03 0004_03 0005_03 0006_03 0007_03 0008_03 0009_03",
                rowsOf(keys, fuzzy("000?_03")), "one fixed part before, one behind");
            Expect.equal("00 0003_04 0013_04", rowsOf(keys, fuzzy("00?3_04")), "hole in the middle");
            Expect.equal("", rowsOf(keys, fuzzy("9???_03")), "none");
        });
        steps.run("FuzzyRowFilter of several", () -> {
            FuzzyRowFilter filter = new FuzzyRowFilter(List.of(pair("0019_0?"), pair("000?_00")));
            Expect.equal("00 0000_00 0001_00 0002_00 0003_00 0004_00 0005_00 0006_00 0007_00 0008_00 0009_00 "
                + "0019_00 0019_01 0019_02 0019_03 0019_04", rowsOf(keys, filter), "rows");
        });
        steps.run("FuzzyRowFilter backwards", () -> Expect.equal("0013_04 0003_04 00",
            rowLine(keys, with(fuzzy("00?3_04")).setReversed(true)), "rows"));
        steps.run("MultiRowRangeFilter", () -> {
            List<RowRange> ranges = new ArrayList<>(List.of(new RowRange("0015_03", false, "0016_01", true), new RowRange("0002",
                true, "0003", false),
                new RowRange("0018_04", true, "", false)));
            Expect.equal("0002_00 0002_01 0002_02 0002_03 0002_04 0015_04 0016_00 0016_01 0018_04 "
                + "0019_00 0019_01 0019_02 0019_03 0019_04", rowsOf(keys, new MultiRowRangeFilter(ranges)), "ranges");
            byte[][] prefixes = {b("0001"), b("0004_04")};
            Expect.equal("0001_00 0001_01 0001_02 0001_03 0001_04 0004_04", rowsOf(keys, new MultiRowRangeFilter(prefixes)), "prefixes");
        });
        steps.run("MultiRowRangeFilter backwards", () -> {
            List<RowRange> ranges = List.of(new RowRange("0002", true, "0002_02", false), new RowRange("0007_03", true, "0008", false));
            Expect.equal("0007_04 0007_03 0002_01 0002_00", rowLine(keys,
                with(new MultiRowRangeFilter(new ArrayList<>(ranges))).setReversed(true)), "rows");
        });
        steps.run("FirstKeyOnlyFilter", () -> Expect.equal("a1/f:a=1 a2/f:a=2 b1/f:a=3 b2/f:a=4 c1/f:a=5 c2/g:z=last d1/f:a=10",
            untimed(t, with(new FirstKeyOnlyFilter())), "cells"));
        steps.run("KeyOnlyFilter", () -> {
            Expect.equal("a1/f:a= a1/f:b= a1/g:a=", untimed(t, with(new KeyOnlyFilter()).withStopRow(b("a2"))), "no values");
            Expect.equal("a1/f:a=\\x00\\x00\\x00\\x01 a1/f:b=\\x00\\x00\\x00\\x01 a1/g:a=\\x00\\x00\\x00\\x03",
                untimed(t, with(new KeyOnlyFilter(true)).withStopRow(b("a2"))), "their lengths");
        });
        steps.run("counting rows as the shell does", () -> Expect.equal("a1 a2 b1 b2 c1 c2 d1",
            rowsOf(t, new FilterList(new FirstKeyOnlyFilter(), new KeyOnlyFilter())), "rows"));
        steps.run("WhileMatchFilter is per region", () -> Expect.equal("a1 a2 c1 c2 d1", rowsOf(t,
            new WhileMatchFilter(new RowFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("b1"))))), "rows"));
    }

    /** A pattern in which '?' stands for any byte. */
    private static Pair<byte[], byte[]> pair(String pattern) {
        byte[] mask = new byte[pattern.length()];
        for (int i = 0; i < mask.length; i++) {
            mask[i] = (byte) (pattern.charAt(i) == '?' ? 1 : 0);
        }
        return new Pair<>(b(pattern.replace('?', '\0')), mask);
    }

    private static FuzzyRowFilter fuzzy(String pattern) {
        return new FuzzyRowFilter(List.of(pair(pattern)));
    }

    private void columns(Steps steps, Table t) {
        steps.run("ColumnPrefixFilter", () -> Expect.equal("a1/f:a=1 a1/g:a=one a2/f:a=2 a2/f:ab=y",
            untimed(t, with(new ColumnPrefixFilter(b("a"))).withStopRow(b("b"))), "cells"));
        steps.run("MultipleColumnPrefixFilter", () -> Expect.equal("a2/f:ab=y b1/g:z=One two c2/g:z=last",
            untimed(t, with(new MultipleColumnPrefixFilter(new byte[][] {b("z"), b("ab")}))), "cells"));
        steps.run("ColumnRangeFilter", () -> {
            Expect.equal("a1/f:b=x a2/f:ab=y b1/f:b=X c1/f:b=z",
                untimed(t, with(new ColumnRangeFilter(b("a"), false, b("c"), false))), "(a, c)");
            Expect.equal("c1/f:b=z c1/f:c=", untimed(t, with(new ColumnRangeFilter(b("b"), true, b("c"),
                true)).withStartRow(b("c"))), "[b, c]");
            Expect.equal("c1/f:c= c2/g:z=last d1/f:d=d",
                untimed(t, with(new ColumnRangeFilter(b("c"), true, null, false)).withStartRow(b("c"))), "[c, …");
        });
        steps.run("ColumnCountGetFilter", () -> Expect.equal("f:a=5 f:b=z",
            untimed(t.get(get("c1").setFilter(new ColumnCountGetFilter(2)))), "get"));
        steps.run("ColumnPaginationFilter", () -> {
            // Columns are counted per family.
            Expect.equal("f:b=z f:c=", untimed(t.get(get("c1").setFilter(new ColumnPaginationFilter(2, 1)))), "limit 2, offset 1");
            Expect.equal("f:c=", untimed(t.get(get("c1").addFamily(b("f")).setFilter(new ColumnPaginationFilter(2, b("c"))))),
                "from column c");
        });
        steps.run("QualifierFilter", () -> Expect.equal("b1/g:z=One two c2/g:z=last",
            untimed(t, with(new QualifierFilter(CompareOperator.EQUAL, new BinaryComparator(b("z"))))), "cells"));
        steps.run("FamilyFilter", () -> Expect.equal("a1/g:a=one b1/g:z=One two c1/g:a=three c2/g:z=last",
            untimed(t, with(new FamilyFilter(CompareOperator.GREATER, new BinaryComparator(b("f"))))), "cells"));
        steps.run("TimestampsFilter", () -> {
            Expect.equal("a2/f:ab@2=y b2/f:a@2=4 c1/f:b@3=z", timed(t, with(new TimestampsFilter(List.of(3L, 2L)))), "cells");
            Expect.equal("b2/f:a@1=3", timed(t,
                with(new TimestampsFilter(List.of(1L))).withStartRow(b("b2")).withStopRow(b("c")).readAllVersions()), "older version");
        });
        steps.run("DependentColumnFilter", () -> Expect.equal("a1/f:a=1 a1/f:b=x a1/g:a=one b1/f:a=3 b1/f:b=X b1/g:z=One two c1/f:b=z",
            untimed(t, with(new DependentColumnFilter(b("f"), b("b")))), "cells of the same time as f:b"));
    }

    private void values(Steps steps, Table t) {
        steps.run("ValueFilter", () -> {
            Expect.equal("a1/g:a=one b1/g:z=One two", untimed(t, with(new ValueFilter(CompareOperator.EQUAL,
                new SubstringComparator("one")))), "substring");
            Expect.equal("a1/f:b=x", untimed(t, with(new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("x"))))), "binary");
            Expect.equal("b1/g:z=One two c1/g:a=three", untimed(t, with(new ValueFilter(CompareOperator.EQUAL,
                new RegexStringComparator("t[wh]")))), "regex");
            Expect.equal("c1/f:c=", untimed(t, with(new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b(""))))), "empty");
        });
        steps.run("SingleColumnValueFilter", () -> {
            SingleColumnValueFilter filter = new SingleColumnValueFilter(b("f"), b("a"), CompareOperator.GREATER_OR_EQUAL, b("4"));
            Expect.equal("b2 c1 c2", rowsOf(t, filter), "rows, those without the column among them");
            filter.setFilterIfMissing(true);
            Expect.equal("b2 c1", rowsOf(t, filter), "rows that have the column");
            Expect.equal("b2/f:a=4 c1/f:a=5 c1/f:b=z c1/f:c= c1/g:a=three", untimed(t, with(filter)), "whole rows");
        });
        steps.run("SingleColumnValueFilter of older versions", () -> {
            SingleColumnValueFilter filter = new SingleColumnValueFilter(b("f"), b("a"), CompareOperator.EQUAL, b("3"));
            filter.setFilterIfMissing(true);
            Expect.equal("b1", rowLine(t, with(filter).readAllVersions()), "only the latest version is looked at");
            filter.setLatestVersionOnly(false);
            Expect.equal("b1 b2", rowLine(t, with(filter).readAllVersions()), "any version");
        });
        steps.run("SingleColumnValueExcludeFilter", () -> {
            SingleColumnValueExcludeFilter filter = new SingleColumnValueExcludeFilter(b("f"), b("a"), CompareOperator.EQUAL, b("5"));
            filter.setFilterIfMissing(true);
            Expect.equal("c1/f:b=z c1/f:c= c1/g:a=three", untimed(t, with(filter)), "without the column itself");
        });
        steps.run("ColumnValueFilter", () -> Expect.equal("a1/f:b=x", untimed(t,
            with(new ColumnValueFilter(b("f"), b("b"), CompareOperator.EQUAL, b("x")))), "only the cell"));
        steps.run("SkipFilter", () -> Expect.equal("a2 b2 c1 c2 d1", rowsOf(t,
            new SkipFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new SubstringComparator("one")))), "rows without such a value"));
        steps.run("NullComparator", () -> Expect.equal("", rowsOf(t, new ValueFilter(CompareOperator.EQUAL, new NullComparator())),
            "rows"));
    }

    private void lists(Steps steps, Table t) {
        Filter b = new PrefixFilter(b("b"));
        Filter one = new RowFilter(CompareOperator.EQUAL, new SubstringComparator("1"));
        steps.run("FilterList of all", () -> Expect.equal("b1", rowsOf(t, new FilterList(FilterList.Operator.MUST_PASS_ALL, b,
            one)), "rows"));
        steps.run("FilterList of one", () -> Expect.equal("a1 b1 b2 c1 d1", rowsOf(t,
            new FilterList(FilterList.Operator.MUST_PASS_ONE, b, one)), "rows"));
        steps.run("FilterList in a list", () -> {
            FilterList inner = new FilterList(FilterList.Operator.MUST_PASS_ONE, new RowFilter(CompareOperator.EQUAL,
                new BinaryComparator(b("a1"))),
                new RowFilter(CompareOperator.EQUAL, new BinaryComparator(b("c1"))));
            Expect.equal("a1/f:b=x c1/f:b=z", untimed(t, with(new FilterList(inner, new QualifierFilter(CompareOperator.EQUAL,
                new BinaryComparator(b("b")))))), "cells");
        });
        steps.run("FilterList of columns", () -> Expect.equal("c1/f:b=z c1/f:c= d1/f:d=d", untimed(t,
            new Scan().withStartRow(b("c")).addFamily(b("f")).setFilter(
            new FilterList(FilterList.Operator.MUST_PASS_ONE, new ColumnPrefixFilter(b("d")), new ColumnRangeFilter(b("b"), true,
                b("c"), true)))), "cells"));
        steps.run("FilterList with a page", () -> Expect.equal("b1", rowsOf(t, new FilterList(b, new PageFilter(1))), "rows"));
        steps.run("FilterList, empty", () -> Expect.equal("a1 a2 b1 b2 c1 c2 d1", rowsOf(t, new FilterList()), "rows"));
        steps.run("a filter and a limit", () -> Expect.equal("b1", rowLine(t, with(b).setLimit(1)), "rows"));
        steps.run("a filter and columns", () -> Expect.equal("b1/f:b=X", untimed(t, with(b).addColumn(b("f"), b("b"))), "cells"));
    }

    private void numbers(Steps steps, Table t) {
        steps.run("LongComparator", () -> Expect.equal("n-5 n0", rowLine(t, new Scan().addColumn(b("f"), b("long")).setFilter(
            new ValueFilter(CompareOperator.LESS, new LongComparator(3)))), "rows"));
        steps.run("BigDecimalComparator", () -> Expect.equal("n3 n70", rowLine(t, new Scan().addColumn(b("f"), b("decimal")).setFilter(
            new ValueFilter(CompareOperator.GREATER, new BigDecimalComparator(new BigDecimal("0.5"))))), "rows"));
    }

    private void errors(Steps steps, Table t) {
        steps.run("a batch and a filter of whole rows do not go together", () -> {
            SingleColumnValueFilter filter = new SingleColumnValueFilter(b("f"), b("a"), CompareOperator.EQUAL, b("1"));
            Expect.that(Failures.causes(() -> rowLine(t, with(filter).setBatch(2)))
                .contains("Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow"), "refused");
        });
        steps.run("a filter class that nobody knows", () ->
            Expect.fails(DoNotRetryIOException.class, "", () -> rowsOf(t, new Unknown())));
    }

    /** A filter class that the server does not have; its behaviour is irrelevant. */
    public static final class Unknown extends org.apache.hadoop.hbase.filter.FilterBase {
        @Override
        public byte[] toByteArray() {
            return new byte[0];
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("filter", "filter_keys", "filter_numbers"));
    }
}
