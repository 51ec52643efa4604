// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client12;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HRegionInfo;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.HTable;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.CompareFilter.CompareOp;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** Calls of clients of 2017, other than those in Weibo12. */
@SuppressWarnings("deprecation")
public final class OldCalls implements Program {
    private static final byte[] CF = Bytes.toBytes("cf");
    private static final byte[] Q = Bytes.toBytes("q");
    private static final int ROWS = 300;

    private final Configuration conf;
    private final TableName name;

    public OldCalls(Configuration conf, String run) {
        this.conf = conf;
        this.name = TableName.valueOf("old_" + run);
    }

    private static byte[] row(int i) {
        return Bytes.toBytes(String.format("row%03d", i));
    }

    private static Put put(String row, String qualifier, String value) {
        return new Put(Bytes.toBytes(row)).addColumn(CF, Bytes.toBytes(qualifier), Bytes.toBytes(value));
    }

    private static String value(Result result) {
        return Bytes.toString(result.value());
    }

    @Override
    public void write(Steps steps) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(conf);
             Admin admin = connection.getAdmin(); Table table = connection.getTable(name)) {
            steps.must("create with split keys", () -> {
                HTableDescriptor descriptor = new HTableDescriptor(name);
                descriptor.addFamily(new HColumnDescriptor(CF).setMaxVersions(3));
                admin.createTable(descriptor, new byte[][] {row(100), row(200)});
                Expect.that(admin.tableExists(name) && admin.isTableEnabled(name) && admin.isTableAvailable(name), "it is there");
                List<String> starts = new ArrayList<>();
                for (HRegionInfo region : admin.getTableRegions(name)) {
                    starts.add(Bytes.toString(region.getStartKey()));
                }
                Expect.equal(List.of("", "row100", "row200"), starts, "start keys");
            });
            steps.must("HTable with a write buffer", () -> {
                try (HTable buffered = new HTable(conf, name)) {
                    buffered.setAutoFlushTo(false);
                    for (int i = 0; i < ROWS; i++) {
                        buffered.put(new Put(row(i)).addColumn(CF, Q, Bytes.toBytes("value" + i)));
                    }
                    buffered.flushCommits();
                }
            });
            kept(steps, table);
            steps.run("batch", () -> {
                Object[] results = new Object[4];
                table.batch(List.<Row>of(new Get(row(5)), put("batch", "q", "x"), new Delete(Bytes.toBytes("nothing")),
                    new Get(row(250))), results);
                Expect.equal("value5", value((Result) results[0]), "get");
                Expect.equal("value250", value((Result) results[3]), "get of another region");
                Expect.equal("x", value(table.get(new Get(Bytes.toBytes("batch")))), "put");
            });
            steps.run("append and increment", () -> {
                table.append(new Append(Bytes.toBytes("both")).add(CF, Q, Bytes.toBytes("ab")));
                Expect.equal("abcd", value(table.append(new Append(Bytes.toBytes("both")).add(CF, Q, Bytes.toBytes("cd")))), "append");
                Result counted = table.increment(new Increment(Bytes.toBytes("both")).addColumn(CF, Bytes.toBytes("n"), 3));
                Expect.equal(3L, Bytes.toLong(counted.value()), "increment");
            });
            steps.run("row mutations", () -> {
                RowMutations mutations = new RowMutations(Bytes.toBytes("mutated"));
                mutations.add(put("mutated", "a", "1"));
                mutations.add(put("mutated", "b", "2"));
                table.mutateRow(mutations);
                Expect.equal(2, table.get(new Get(Bytes.toBytes("mutated"))).size(), "cells");
            });
            steps.run("checkAndPut, checkAndDelete, checkAndMutate", () -> {
                byte[] row = Bytes.toBytes("checked");
                Expect.that(table.checkAndPut(row, CF, Q, null, put("checked", "q", "1")), "absent");
                Expect.that(!table.checkAndPut(row, CF, Q, Bytes.toBytes("0"), put("checked", "q", "2")), "other value");
                Expect.that(table.checkAndPut(row, CF, Q, CompareOp.LESS, Bytes.toBytes("0"), put("checked", "r", "2")), "0 < 1");
                RowMutations mutations = new RowMutations(row);
                mutations.add(put("checked", "s", "3"));
                Expect.that(table.checkAndMutate(row, CF, Q, CompareOp.EQUAL, Bytes.toBytes("1"), mutations), "equal");
                Ticks.next();
                Expect.that(table.checkAndDelete(row, CF, Q, Bytes.toBytes("1"), new Delete(row)), "delete");
                Expect.that(!table.exists(new Get(row)), "gone");
            });
            steps.run("a region look-up that HBase 2 refuses", () -> {
                try (HTable old = new HTable(conf, name)) {
                    old.getRowOrBefore(Bytes.toBytes("row0055"), CF);
                    throw new AssertionError("the call went through");
                } catch (IOException e) {
                    Expect.that(chain(e).contains("org.apache.hadoop.hbase.exceptions.UnknownProtocolException"), chain(e));
                }
            });
            steps.run("alter", () -> {
                admin.addColumn(name, new HColumnDescriptor("more"));
                Await.until("the family is there", () -> admin.getTableDescriptor(name).hasFamily(Bytes.toBytes("more")));
            });
        }
    }

    private static String chain(Throwable thrown) {
        StringBuilder text = new StringBuilder();
        for (Throwable e = thrown; e != null; e = e.getCause()) {
            text.append(e).append(" | ");
        }
        return text.toString();
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(conf); Table table = connection.getTable(name)) {
            kept(steps, table);
        }
    }

    private void kept(Steps steps, Table table) {
        for (int caching : new int[] {1, 30, 1_000}) {
            steps.run("scan, caching " + caching, () -> {
                Scan scan = new Scan(row(0), row(ROWS));
                scan.setCaching(caching);
                Expect.equal(ROWS, rows(table, scan).size(), "rows");
            });
        }
        steps.run("small scan", () -> {
            Scan scan = new Scan(row(90), row(110));
            scan.setSmall(true);
            Expect.equal(20, rows(table, scan).size(), "rows");
        });
        steps.run("scan backwards", () -> {
            Scan scan = new Scan(row(ROWS - 1), row(0));
            scan.setReversed(true);
            scan.setCaching(40);
            List<String> rows = rows(table, scan);
            Expect.equal(ROWS - 1, rows.size(), "rows");
            Expect.equal("row299 row001", rows.get(0) + " " + rows.get(rows.size() - 1), "first and last");
        });
        steps.run("scan with a filter and a batch", () -> {
            Scan scan = new Scan(row(0), row(ROWS));
            scan.setFilter(new SingleColumnValueFilter(CF, Q, CompareOp.EQUAL, Bytes.toBytes("value123")));
            Expect.equal(List.of("row123"), rows(table, scan), "rows");
            Scan batch = new Scan(row(0), row(10));
            batch.setBatch(1);
            batch.setFilter(new FirstKeyOnlyFilter());
            Expect.equal(10, rows(table, batch).size(), "rows");
        });
        steps.run("multi-get and exists", () -> {
            Result[] results = table.get(List.of(new Get(row(1)), new Get(row(150)), new Get(Bytes.toBytes("nothing")), new Get(row(299))));
            Expect.equal("value1 value150 value299", value(results[0]) + " " + value(results[1]) + " " + value(results[3]), "values");
            Expect.that(results[2].isEmpty(), "nothing");
            Expect.equal("[true, false]", Arrays.toString(table.existsAll(List.of(new Get(row(7)),
                new Get(Bytes.toBytes("nothing"))))), "exists");
        });
        steps.run("cells of a get", () -> {
            Cell cell = table.get(new Get(row(42))).rawCells()[0];
            Expect.equal("row042 cf q value42",
                Bytes.toString(CellUtil.cloneRow(cell)) + " " + Bytes.toString(CellUtil.cloneFamily(cell)) + " "
                + Bytes.toString(CellUtil.cloneQualifier(cell)) + " " + Bytes.toString(CellUtil.cloneValue(cell)), "cell");
        });
    }

    private static List<String> rows(Table table, Scan scan) throws IOException {
        List<String> rows = new ArrayList<>();
        try (ResultScanner scanner = table.getScanner(scan)) {
            for (Result result = scanner.next(); result != null; result = scanner.next()) {
                rows.add(Bytes.toString(result.getRow()));
            }
        }
        return rows;
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> {
            try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
                if (admin.tableExists(name)) {
                    admin.disableTable(name);
                    admin.deleteTable(name);
                }
            }
        });
    }
}
