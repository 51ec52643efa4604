// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;

import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Blogs with the newest post first (seed 000, table 2): row key {@code <blogger>_<Long.MAX_VALUE - millis>}, 10,000 posts in
 * one list of Puts, and the scan for one month.
 */
public final class Blog implements Program {
    private static final int POSTS = 10_000;
    private static final byte[] CF = b("cf");
    private static final String[] COLUMNS = {"title", "content", "specaification"};

    private final Cluster cluster;
    /** Blogger 123's posts in the order of writing, duplicates included. */
    private final List<Put> puts = new ArrayList<>();
    /** The expected posts: row key to the three values, joined. */
    private final TreeMap<String, String> posts = new TreeMap<>();
    private final TreeMap<String, String> everything = new TreeMap<>();

    public Blog(Cluster cluster) throws ParseException {
        this.cluster = cluster;
        Random random = new Random(2022);
        SimpleDateFormat format = new SimpleDateFormat("yyyyMMddHHmmss");
        String earlier = null;
        for (int j = 0; j < POSTS; j++) {
            String date = switch (j) {
                // The first and last moments of the month, and duplicate dates: of two Puts to a row in one list the
                // later one must win.
                case 100 -> "20221201000000";
                case 200 -> "20221130235959";
                case 300 -> "20221231235959";
                case 9_000, 9_999 -> earlier;
                default -> String.format("2022%02d%02d%02d%02d%02d", 1 + random.nextInt(12), 1 + random.nextInt(28),
                    random.nextInt(24), random.nextInt(60), random.nextInt(60));
            };
            earlier = j == 50 || j == 9_000 ? date : earlier;
            String row = key("123", format.parse(date).getTime());
            puts.add(new Put(b(row))
                .addColumn(CF, b("title"), b("title_" + j))
                .addColumn(CF, b("content"), b("content_" + j))
                .addColumn(CF, b("specaification"), b("bigdata_" + j)));
            posts.put(row, "title_" + j + "--content_" + j + "--bigdata_" + j);
        }
        everything.putAll(posts);
        for (String blogger : new String[] {"12", "1234"}) {
            everything.put(key(blogger, format.parse("20221215120000").getTime()), blogger + "--of--another");
        }
    }

    private static String key(String blogger, long millis) {
        return blogger + "_" + (Long.MAX_VALUE - millis);
    }

    private static long millis(String date) throws ParseException {
        return new SimpleDateFormat("yyyyMMddHHmmss").parse(date).getTime();
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> cluster.create("blog", Cluster.family("cf")).close());
        try (Table table = cluster.table("blog")) {
            steps.must("10,000 posts in one list", () -> table.put(puts));
            steps.run("posts of other bloggers", () -> {
                for (String row : everything.keySet()) {
                    if (!posts.containsKey(row)) {
                        String[] values = everything.get(row).split("--");
                        Put put = new Put(b(row));
                        for (int i = 0; i < COLUMNS.length; i++) {
                            put.addColumn(CF, b(COLUMNS[i]), b(values[i]));
                        }
                        table.put(put);
                    }
                }
            });
            check(steps, "memstore");
            steps.must("the same list again", () -> table.put(puts));
            check(steps, "written twice");
            steps.must("flush", () -> cluster.flush("blog"));
            check(steps, "flushed");
            steps.must("once more after the flush", () -> table.put(puts));
            steps.must("major compaction", () -> cluster.flushAndMajorCompact("blog"));
            check(steps, "compacted");
            steps.must("once more after the compaction", () -> table.put(puts));
        }
    }

    @Override
    public void check(Steps steps) throws Exception {
        check(steps, "kept");
    }

    private void check(Steps steps, String state) throws Exception {
        try (Table table = cluster.table("blog")) {
            steps.run(state + ": all rows, caching 7", () -> expect(everything, table, new Scan().setCaching(7)));
            steps.run(state + ": all rows, default", () -> expect(everything, table, new Scan()));
            steps.run(state + ": all rows, caching 5,000 and 10 kB", () ->
                expect(everything, table, new Scan().setCaching(5_000).setMaxResultSize(10 * 1024)));
            steps.run(state + ": newest first", () -> {
                String first = Bytes.toString(table.getScanner(new Scan().withStartRow(b("123_"))).next().getRow());
                Expect.equal(key("123", millis("20221231235959")), first, "first row");
            });
            String december31 = key("123", millis("20221231235959"));
            String december1 = key("123", millis("20221201000000"));
            steps.run(state + ": December", () -> {
                TreeMap<String, String> wanted = new TreeMap<>(posts.subMap(december31, true, december1, false));
                Expect.that(wanted.size() > 700, "the month should be full");
                Expect.that(posts.containsKey(december1) && !wanted.containsKey(december1), "the edge should be left out");
                expect(wanted, table, new Scan().withStartRow(b(december31)).withStopRow(b(december1)));
            });
            steps.run(state + ": December with its first second", () ->
                expect(new TreeMap<>(posts.subMap(december31, true, december1, true)), table,
                    new Scan().withStartRow(b(december31)).withStopRow(b(december1), true)));
            steps.run(state + ": December from the oldest", () -> {
                List<String> wanted = new ArrayList<>(posts.subMap(december31, true, december1, true).keySet());
                Collections.sort(wanted, Comparator.reverseOrder());
                Expect.equalLists(wanted, Text.rows(table, new Scan().setReversed(true)
                    .withStartRow(b(december1)).withStopRow(b(december31), true)), "rows");
            });
            steps.run(state + ": the ten newest", () ->
                Expect.equalLists(new ArrayList<>(posts.keySet()).subList(0, 10),
                    Text.rows(table, Text.prefix(b("123_")).setLimit(10)), "rows"));
            steps.run(state + ": others do not leak in", () ->
                expect(posts, table, Text.prefix(b("123_"))));
            // '_' sorts after the digits: 1234_ before 123_ before 12_.
            steps.run(state + ": order of bloggers", () -> {
                List<String> rows = Text.rows(table, new Scan().setCaching(5_000));
                Expect.that(rows.get(0).startsWith("1234_"), "first " + rows.get(0));
                Expect.that(rows.get(rows.size() - 1).startsWith("12_"), "last " + rows.get(rows.size() - 1));
            });
        }
    }

    private static void expect(TreeMap<String, String> wanted, Table table, Scan scan) throws Exception {
        List<String> lines = new ArrayList<>();
        for (Result result : Text.results(table, scan)) {
            List<String> values = new ArrayList<>();
            for (String column : COLUMNS) {
                values.add(Bytes.toString(CellUtil.cloneValue(result.getColumnLatestCell(CF, b(column)))));
            }
            lines.add(Bytes.toString(result.getRow()) + " " + String.join("--", values));
        }
        List<String> expected = new ArrayList<>();
        wanted.forEach((row, text) -> expected.add(row + " " + text));
        Expect.equalLists(expected, lines, "posts");
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("blog"));
    }
}
