// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactType;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.MobCompactPartitionPolicy;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** MOB families: larger values are in separate files, which readers notice only if they ask for references. */
public final class Mob implements Program {
    private static final String TABLE = "mob";
    private static final byte[] LARGE = b("large"), SMALL = b("small"), ALL = b("all"), Q = b("q");
    private static final int THRESHOLD = 1000;
    /** Lengths of values: up to the threshold, just above it, and many blocks. */
    private static final int[] SIZES = {0, 1, THRESHOLD, THRESHOLD + 1, 70_000, 300_000};
    private static final int ROWS = 60;

    private final Cluster cluster;

    public Mob(Cluster cluster) {
        this.cluster = cluster;
    }

    private static byte[] value(int row) {
        byte[] value = new byte[SIZES[row % SIZES.length]];
        new Random(row).nextBytes(value);
        return value;
    }

    private static byte[] row(int i) {
        return b(String.format("row%03d", i));
    }

    private static ColumnFamilyDescriptor family(byte[] name, long threshold) {
        return ColumnFamilyDescriptorBuilder.newBuilder(name).setMobEnabled(true).setMobThreshold(threshold)
            .setMobCompactPartitionPolicy(MobCompactPartitionPolicy.WEEKLY).setMaxVersions(2).build();
    }

    @Override
    public void write(Steps steps) throws Exception {
        try (Table table = cluster.create(TABLE, new byte[][] {row(30)}, family(LARGE, THRESHOLD), family(ALL, 0),
            Cluster.family("small"))) {
            steps.run("attributes kept", () -> {
                ColumnFamilyDescriptor found = table.getDescriptor().getColumnFamily(LARGE);
                Expect.that(found.isMobEnabled(), "IS_MOB is gone");
                Expect.equal((long) THRESHOLD, found.getMobThreshold(), "MOB_THRESHOLD");
                Expect.equal(MobCompactPartitionPolicy.WEEKLY, found.getMobCompactPartitionPolicy(), "partition policy");
            });
            steps.run("values of every size", () -> {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    puts.add(new Put(row(i)).addColumn(LARGE, Q, value(i)).addColumn(SMALL, Q, Bytes.toBytes(i)));
                }
                table.put(puts);
                expectAll(table);
                cluster.flush(TABLE);
                expectAll(table);
            });
            steps.run("references, for who asks", () -> references(table));
            steps.run("a condition on a value elsewhere", () -> Expect.that(
                table.checkAndMutate(CheckAndMutate.newBuilder(row(5)).ifEquals(LARGE, Q, value(5))
                    .build(new Put(row(5)).addColumn(SMALL, b("checked"), b("yes")))).isSuccess(), "the value was not found"));
            steps.run("increments and appends of values elsewhere", () -> counters(table));
            steps.run("a compaction writes MOB files anew", () -> {
                TreeSet<String> before = files(table);
                cluster.flushAndMajorCompact(TABLE);
                TreeSet<String> after = files(table);
                Expect.that(after.stream().noneMatch(before::contains), "still there: " + after);
                expectAll(table);
            });
            if (!"hbase".equals(System.getenv("PEER"))) {
                steps.run("a compaction of type MOB does as well", () -> {
                    TreeSet<String> before = files(table);
                    cluster.admin.majorCompact(cluster.name(TABLE), LARGE, CompactType.MOB);
                    Await.until("MOB files written anew", () -> files(table).stream().noneMatch(before::contains));
                    cluster.admin.getCompactionState(cluster.name(TABLE), CompactType.MOB);
                    expectAll(table);
                });
            }
            steps.run("what is raised above a value brings it back", () -> {
                TableDescriptorBuilder raised = TableDescriptorBuilder.newBuilder(table.getDescriptor())
                    .modifyColumnFamily(ColumnFamilyDescriptorBuilder
                        .newBuilder(table.getDescriptor().getColumnFamily(ALL)).setMobThreshold(1 << 20).build());
                cluster.admin.modifyTable(raised.build());
                cluster.flushAndMajorCompact(TABLE);
                Get raw = new Get(b("counter")).addFamily(ALL);
                raw.setAttribute("hbase.mob.scan.raw", Bytes.toBytes(true));
                Expect.equal(8, table.get(raw).getValue(ALL, b("n")).length, "bytes in the store file");
            });
        }
    }

    private static void expectAll(Table table) throws Exception {
        for (boolean reversed : new boolean[] {false, true}) {
            int seen = 0;
            try (ResultScanner scanner = table.getScanner(new Scan().addFamily(LARGE).setReversed(reversed).setCaching(7))) {
                for (Result result : scanner) {
                    int i = Integer.parseInt(Bytes.toString(result.getRow()).substring(3));
                    Expect.that(Arrays.equals(value(i), result.getValue(LARGE, Q)), "value of row " + i);
                    seen++;
                }
            }
            Expect.equal(ROWS, seen, "rows");
        }
        List<Get> gets = new ArrayList<>();
        for (int i = 0; i < ROWS; i++) {
            gets.add(new Get(row(i)));
        }
        Result[] results = table.get(gets);
        for (int i = 0; i < ROWS; i++) {
            Expect.that(Arrays.equals(value(i), results[i].getValue(LARGE, Q)), "value of row " + i + " in a batch");
            Expect.equal(i, Bytes.toInt(results[i].getValue(SMALL, Q)), "its neighbour");
        }
    }

    private static Scan attribute(String name) {
        Scan scan = new Scan().addFamily(LARGE);
        scan.setAttribute(name, Bytes.toBytes(true));
        return scan;
    }

    /** The names of the MOB files in references: a reference has the value's length (be32) and the file's name. */
    private static TreeSet<String> files(Table table) throws Exception {
        TreeSet<String> files = new TreeSet<>();
        Scan scan = attribute("hbase.mob.scan.raw");
        scan.setAttribute("hbase.mob.scan.ref.only", Bytes.toBytes(true));
        try (ResultScanner scanner = table.getScanner(scan)) {
            for (Result result : scanner) {
                byte[] reference = CellUtil.cloneValue(result.rawCells()[0]);
                int i = Integer.parseInt(Bytes.toString(result.getRow()).substring(3));
                Expect.equal(value(i).length, Bytes.toInt(reference), "length in the reference of row " + i);
                files.add(Bytes.toString(reference, 4, reference.length - 4));
            }
        }
        Expect.that(!files.isEmpty(), "no references");
        for (String file : files) {
            Expect.that(file.matches("[0-9a-f]{32}[0-9]{8}[0-9a-f]{32}_[0-9a-f]{32}"), "file " + file);
        }
        return files;
    }

    private static void references(Table table) throws Exception {
        Expect.equal(2, files(table).size(), "MOB files, one for each region");
        int large = 0;
        try (ResultScanner scanner = table.getScanner(attribute("hbase.mob.scan.ref.only"))) {
            for (Result result : scanner) {
                for (Cell cell : result.rawCells()) {
                    Expect.that(cell.getValueLength() > THRESHOLD, "a value of " + cell.getValueLength() + " bytes");
                    large++;
                }
            }
        }
        Expect.equal(ROWS / 2, large, "values in MOB files");
    }

    private void counters(Table table) throws Exception {
        byte[] row = b("counter"), n = b("n"), text = b("text");
        for (int i = 1; i <= 3; i++) {
            table.increment(new Increment(row).addColumn(ALL, n, i));
            table.append(new Append(row).addColumn(ALL, text, b("part" + i)));
            cluster.flush(TABLE);
        }
        expectCounters(table);
    }

    private static void expectCounters(Table table) throws Exception {
        Result result = table.get(new Get(b("counter")));
        Expect.equal(6L, Bytes.toLong(result.getValue(ALL, b("n"))), "counter");
        Expect.equal("part1part2part3", Bytes.toString(result.getValue(ALL, b("text"))), "text");
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Table table = cluster.table(TABLE)) {
            steps.run("values as they were", () -> expectAll(table));
            steps.run("counters as they were", () -> expectCounters(table));
            steps.run("references as they were", () -> files(table));
        }
    }

    @Override
    public void drop(Steps steps) throws Exception {
        steps.run("dropped", () -> cluster.drop(TABLE));
    }
}
