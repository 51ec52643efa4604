// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Events of users over time (seed 003), newest first, in two schemes: many rows of one column ("tall"), and one row of many
 * columns ("wide"); each with keys as text and as bytes.
 */
public final class TimeSeries implements Program {
    private static final int USERS = 20;
    private static final int EVENTS = 1_000;
    private static final long EPOCH = 1_650_000_000_000L;
    private static final byte[] CF = b("cf");
    private static final int[] NEWEST = {1, 10, 999, 1_000, 1_500};

    /** How user and reverse time are encoded: both forms have a fixed width, and keep the order of the numbers. */
    private enum Form {
        TEXT, BYTES;

        byte[] user(int user) {
            return this == TEXT ? b(String.format("%08d", user)) : Bytes.toBytes((long) user);
        }

        byte[] reverse(long millis) {
            long reverse = Long.MAX_VALUE - millis;
            return this == TEXT ? b(String.format("%019d", reverse)) : Bytes.toBytes(reverse);
        }

        byte[] key(int user, long millis) {
            return Bytes.add(user(user), reverse(millis));
        }

        String tall() {
            return "tall_" + name().toLowerCase();
        }

        String wide() {
            return "wide_" + name().toLowerCase();
        }
    }

    private final Cluster cluster;
    /** Times of each user's events, oldest first. */
    private final List<List<Long>> times = new ArrayList<>();

    public TimeSeries(Cluster cluster) {
        this.cluster = cluster;
        Random random = new Random(3);
        for (int user = 0; user < USERS; user++) {
            TreeSet<Long> distinct = new TreeSet<>();
            while (distinct.size() < EVENTS) {
                distinct.add(EPOCH + random.nextInt(100_000_000));
            }
            times.add(new ArrayList<>(distinct));
        }
    }

    private static String item(int user, long millis) {
        return "item-" + user + "-" + millis;
    }

    /** The expected result of a query: the user's items, newest first. */
    private List<String> newest(int user, int count) {
        List<String> items = new ArrayList<>();
        for (long millis : times.get(user)) {
            items.add(0, item(user, millis));
        }
        return items.subList(0, Math.min(count, items.size()));
    }

    private List<String> between(int user, long from, long to) {
        List<String> items = new ArrayList<>();
        for (long millis : times.get(user)) {
            if (from <= millis && millis < to) {
                items.add(0, item(user, millis));
            }
        }
        return items;
    }

    @Override
    public void write(Steps steps) throws Exception {
        for (Form form : Form.values()) {
            steps.must(form + ": create", () -> {
                byte[][] splits = {form.user(5), form.user(10), form.user(15)};
                cluster.create(form.tall(), splits, Cluster.family("cf")).close();
                cluster.create(form.wide(), Cluster.family("cf")).close();
            });
            steps.must(form + ": put in random order", () -> write(form));
            check(steps, form, "memstore");
        }
        // The tables with text keys are flushed to files, the others stay in the memstore and the log.
        steps.must("flush", () -> {
            cluster.flush(Form.TEXT.tall());
            cluster.flush(Form.TEXT.wide());
        });
        check(steps, Form.TEXT, "flushed");
    }

    private void write(Form form) throws Exception {
        List<Put> tall = new ArrayList<>();
        List<Put> wide = new ArrayList<>();
        for (int user = 0; user < USERS; user++) {
            for (long millis : times.get(user)) {
                byte[] value = b(item(user, millis));
                tall.add(new Put(form.key(user, millis)).addColumn(CF, new byte[0], value));
                wide.add(new Put(form.user(user)).addColumn(CF, form.reverse(millis), value));
            }
        }
        Collections.shuffle(tall, new Random(33));
        Collections.shuffle(wide, new Random(34));
        putInParts(form.tall(), tall);
        putInParts(form.wide(), wide);
    }

    private void putInParts(String name, List<Put> puts) throws Exception {
        try (Table table = cluster.table(name)) {
            for (int i = 0; i < puts.size(); i += 4_000) {
                table.put(puts.subList(i, Math.min(puts.size(), i + 4_000)));
            }
        }
    }

    @Override
    public void check(Steps steps) throws Exception {
        for (Form form : Form.values()) {
            check(steps, form, "kept");
        }
    }

    private void check(Steps steps, Form form, String state) throws Exception {
        String in = form + " " + state + ": ";
        try (Table tall = cluster.table(form.tall()); Table wide = cluster.table(form.wide())) {
            steps.run(in + "one event", () -> {
                for (int user = 0; user < USERS; user++) {
                    long millis = times.get(user).get(user * 7);
                    Expect.equal(item(user, millis),
                        Text.s(tall.get(new Get(form.key(user, millis))).getValue(CF, new byte[0])), "tall");
                    Expect.equal(item(user, millis), Text.s(wide.get(new Get(form.user(user)).addColumn(CF, form.reverse(millis)))
                        .getValue(CF, form.reverse(millis))), "wide");
                }
                Expect.that(tall.get(new Get(form.key(3, 1))).isEmpty(), "no such event, tall");
                Expect.that(wide.get(new Get(form.user(3)).addColumn(CF, form.reverse(1))).isEmpty(), "no such event, wide");
            });
            steps.run(in + "all events of a user", () -> {
                for (int user = 0; user < USERS; user += 3) {
                    Expect.equalLists(newest(user, EVENTS), values(Text.results(tall, ofUser(form, user))), "tall, user " + user);
                    Expect.equalLists(newest(user, EVENTS),
                        values(List.of(wide.get(new Get(form.user(user)).addFamily(CF)))), "wide, user " + user);
                }
            });
            for (int n : NEWEST) {
                steps.run(in + "the newest " + n, () -> {
                    int user = n % USERS;
                    List<String> wanted = newest(user, n);
                    try (ResultScanner scanner = tall.getScanner(ofUser(form, user).setCaching(n))) {
                        Expect.equalLists(wanted, values(List.of(scanner.next(n))), "tall, caching and next(n)");
                    }
                    Expect.equalLists(wanted, values(Text.results(tall, ofUser(form, user).setLimit(n))), "tall, limit");
                    Get family = new Get(form.user(user)).addFamily(CF);
                    Expect.equalLists(wanted, values(List.of(wide.get(new Get(family).setFilter(new ColumnCountGetFilter(n))))),
                        "wide, ColumnCountGetFilter");
                    Expect.equalLists(wanted, values(List.of(wide.get(new Get(family).setMaxResultsPerColumnFamily(n)))),
                        "wide, results per family");
                });
            }
            steps.run(in + "a span of time", () -> {
                long from = times.get(11).get(300);
                long to = times.get(11).get(640);
                List<String> wanted = between(11, from, to);
                Expect.equal(340, wanted.size(), "events in the span");
                // Reverse time turns [from, to) into (reverse(to), reverse(from)].
                Expect.equalLists(wanted, values(Text.results(tall, new Scan().withStartRow(form.key(11, to), false)
                    .withStopRow(form.key(11, from), true))), "tall, row range");
                Expect.equalLists(wanted, values(List.of(wide.get(new Get(form.user(11)).setFilter(
                    new ColumnRangeFilter(form.reverse(to), false, form.reverse(from), true))))), "wide, ColumnRangeFilter");
            });
            steps.run(in + "pages of columns", () -> {
                Expect.equalLists(newest(4, 30).subList(20, 30), values(List.of(wide.get(
                    new Get(form.user(4)).setFilter(new ColumnPaginationFilter(10, 20))))), "ColumnPaginationFilter(10, 20)");
                Expect.equalLists(newest(4, 30).subList(20, 30), values(List.of(wide.get(new Get(form.user(4))
                    .setMaxResultsPerColumnFamily(10).setRowOffsetPerColumnFamily(20)))), "limit and offset per family");
            });
            steps.run(in + "setBatch(300) gives 4 parts a row", () -> {
                List<String> sizes = new ArrayList<>();
                List<Result> parts = Text.results(wide, new Scan().withStopRow(form.user(2)).setBatch(300));
                for (Result part : parts) {
                    sizes.add(part.size() + "");
                }
                Expect.equal("300 300 300 100 300 300 300 100", String.join(" ", sizes), "cells of the parts");
                List<String> wanted = new ArrayList<>(newest(0, EVENTS));
                wanted.addAll(newest(1, EVENTS));
                Expect.equalLists(wanted, values(parts), "values");
            });
            steps.run(in + "ColumnCountGetFilter ends a scan after the first row's columns", () ->
                Expect.equalLists(newest(0, 10),
                    values(Text.results(wide, new Scan().setFilter(new ColumnCountGetFilter(10)))), "values"));
            steps.run(in + "five users to each region", () -> {
                for (RegionInfo region : cluster.regions(form.tall())) {
                    Expect.equal(5 * EVENTS, Text.results(tall, new Scan().withStartRow(region.getStartKey())
                        .withStopRow(region.getEndKey())).size(), "rows of " + region.getRegionNameAsString());
                }
                Expect.equal(4, cluster.regions(form.tall()).size(), "regions");
            });
        }
    }

    private static Scan ofUser(Form form, int user) {
        return new Scan().withStartRow(form.user(user)).withStopRow(form.user(user + 1));
    }

    private static List<String> values(List<Result> results) {
        List<String> values = new ArrayList<>();
        for (Result result : results) {
            for (Cell cell : result.rawCells()) {
                values.add(Text.s(CellUtil.cloneValue(cell)));
            }
        }
        return values;
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> {
            for (Form form : Form.values()) {
                cluster.drop(form.tall(), form.wide());
            }
        });
    }
}
