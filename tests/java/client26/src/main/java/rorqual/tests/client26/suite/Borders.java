// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Scans over many regions by AsyncTableResultScanner, which the 3.0 client uses for all scans. It suspends a scan while its reader is
 * slow, and can lose the wake-up if the response that suspended it ended a region: then it waits forever.
 *
 * <p>{@code BORDERS_MB}: size of the table in MB (2), {@code BORDERS_PAUSE_US}: the reader's time per row in µs (0),
 * {@code BORDERS_ROUNDS}: how often each kind of scan reads the whole table (1).
 */
public final class Borders implements Program {
    private static final int REGIONS = 50;
    private static final int MEGABYTES = number("BORDERS_MB", 2);
    private static final int PAUSE_US = number("BORDERS_PAUSE_US", 0);
    private static final int ROUNDS = number("BORDERS_ROUNDS", 1);
    private static final int VALUE = MEGABYTES > 100 ? 50_000 : 250;
    private static final int COLUMNS = 4;
    private static final int ROWS = Math.max(1, (int) (((long) MEGABYTES << 20) / REGIONS / COLUMNS / VALUE));
    private static final long[] SIZES = MEGABYTES > 100 ? new long[] {0} : new long[] {1, 3_000, 20_000, 0};

    private final Cluster cluster;

    public Borders(Cluster cluster) {
        this.cluster = cluster;
    }

    private static int number(String name, int normally) {
        return Integer.parseInt(System.getenv().getOrDefault(name, Integer.toString(normally)));
    }

    private static byte[] row(int region, int row) {
        return b(String.format("%03d-%06d", region, row));
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create and fill", this::fill);
        for (long size : SIZES) {
            String by = size == 0 ? "of the normal size" : "of " + size + " bytes";
            steps.run("answers " + by, () -> rounds(size, Scan::new));
            steps.run("answers " + by + ", reversed", () -> rounds(size, () -> new Scan().setReversed(true)));
            steps.run("answers " + by + ", batches", () -> rounds(size, () -> new Scan().setBatch(3)));
            steps.run("answers " + by + ", partial results", () -> rounds(size, () -> new Scan().setAllowPartialResults(true)));
        }
        steps.run("a row limit inside a region", () -> limit(ROWS * 3 + ROWS / 2));
        steps.run("a row limit at a border", () -> limit(ROWS * 3));
        steps.run("a filter's end is its region's", this::pages);
    }

    private void fill() throws Exception {
        byte[][] splits = new byte[REGIONS - 1][];
        for (int i = 1; i < REGIONS; i++) {
            splits[i - 1] = row(i, 0);
        }
        Random random = new Random(1);
        try (Table table = cluster.create("borders", splits, Cluster.family("f"))) {
            List<Put> puts = new ArrayList<>();
            for (int i = 0; i < REGIONS * ROWS; i++) {
                Put put = new Put(row(i / ROWS, i % ROWS));
                for (int column = 0; column < COLUMNS; column++) {
                    byte[] value = new byte[VALUE];
                    random.nextBytes(value);
                    put.addColumn(b("f"), b("q" + column), value);
                }
                puts.add(put);
                if (puts.size() * VALUE * COLUMNS > 4 << 20) {
                    table.put(puts);
                    puts.clear();
                }
            }
            table.put(puts);
        }
    }

    private AsyncConnection connect() throws Exception {
        return ConnectionFactory.createAsyncConnection(cluster.configuration).get();
    }

    private void rounds(long size, Supplier<Scan> scans) throws Exception {
        try (AsyncConnection connection = connect()) {
            for (int i = 0; i < ROUNDS; i++) {
                Scan scan = scans.get();
                readAll(connection, size > 0 ? scan.setMaxResultSize(size) : scan);
            }
        }
    }

    /** Reads every cell once and in order, and checks the lengths of the values. */
    private void readAll(AsyncConnection connection, Scan scan) throws Exception {
        int cells = 0;
        try (ResultScanner scanner = connection.getTable(cluster.name("borders")).getScanner(scan)) {
            for (Result result; (result = scanner.next()) != null;) {
                for (Cell cell : result.rawCells()) {
                    int at = cells / COLUMNS;
                    int wanted = scan.isReversed() ? REGIONS * ROWS - 1 - at : at;
                    byte[] row = row(wanted / ROWS, wanted % ROWS);
                    Expect.that(Arrays.equals(CellUtil.cloneRow(cell), row)
                        && Bytes.equals(CellUtil.cloneQualifier(cell), b("q" + cells % COLUMNS))
                        && cell.getValueLength() == VALUE, cell + " where " + Bytes.toString(row) + " is due");
                    cells++;
                }
                if (PAUSE_US > 0) {
                    TimeUnit.MICROSECONDS.sleep(PAUSE_US);
                }
            }
        }
        Expect.equal(REGIONS * ROWS * COLUMNS, cells, "cells");
    }

    private int count(Scan scan) throws Exception {
        int rows = 0;
        try (AsyncConnection connection = connect();
            ResultScanner scanner = connection.getTable(cluster.name("borders")).getScanner(scan)) {
            while (scanner.next() != null) {
                rows++;
            }
        }
        return rows;
    }

    private void limit(int rows) throws Exception {
        Expect.equal(rows, count(new Scan().setLimit(rows).setMaxResultSize(3_000)), "rows");
        Expect.equal(rows, count(new Scan().setLimit(rows).setReversed(true)), "rows in reverse");
    }

    private void pages() throws Exception {
        Expect.equal(REGIONS, count(new Scan().setFilter(new PageFilter(1)).setCaching(100)), "rows, one of each region");
    }

    @Override
    public void check(Steps steps) {}

    @Override
    public void drop(Steps steps) throws Exception {
        steps.run("drop", () -> cluster.drop("borders"));
    }
}
