// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter.RowRange;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Row keys in OpenTSDB's format (seed 001): {@code UID(metric) hour UID(tagk1) UID(tagv1) UID(tagk2) UID(tagv2)}, of
 * 3 + 4 + 4 × 3 = 19 bytes. The UIDs come from a table: a counter, name to UID guarded by a check, UID to name.
 */
public final class OpenTsdb implements Program {
    private static final int HOURS = 6;
    private static final int BASE = 1_650_002_400 / 3_600 * 3_600;
    private static final int STEP = 300;
    private static final String[] METRICS = {"cpu.user", "cpu.system", "disk.free"};
    private static final String[] HOSTS = {"web01", "web02", "web03", "db01"};
    private static final String[] CENTRES = {"north", "south"};
    private static final byte[] T = b("t");
    private static final byte[] ID = b("id");
    private static final byte[] NAME = b("name");
    /** The row whose columns are the counters, one per kind of name. */
    private static final byte[] COUNTERS = {0};

    private final Cluster cluster;

    public OpenTsdb(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> {
            cluster.create("tsdb_uid", Cluster.family("id"), Cluster.family("name")).close();
            cluster.create("tsdb", Cluster.family("t")).close();
        });
        try (Table uids = cluster.table("tsdb_uid"); Table data = cluster.table("tsdb")) {
            steps.must("assign UIDs", () -> {
                for (String metric : METRICS) {
                    assign(uids, "metrics", metric);
                }
                assign(uids, "tagk", "host");
                assign(uids, "tagk", "centre");
                for (String value : HOSTS) {
                    assign(uids, "tagv", value);
                }
                for (String value : CENTRES) {
                    assign(uids, "tagv", value);
                }
            });
            steps.run("a name gets its UID only once", () -> {
                byte[] first = uid(uids, "metrics", "cpu.user");
                byte[] second = assign(uids, "metrics", "cpu.user");
                Expect.that(Bytes.equals(first, second), "the second asker should get the first's UID");
            });
            steps.must("put points", () -> {
                List<Put> puts = new ArrayList<>();
                for (Point point : points()) {
                    puts.add(new Put(key(uids, point)).addColumn(T, point.qualifier(), Bytes.toBytes(point.value())));
                }
                data.put(puts);
            });
        }
        check(steps, "memstore");
        steps.must("flush", () -> cluster.flush("tsdb"));
        check(steps, "flushed");
    }

    @Override
    public void check(Steps steps) throws Exception {
        check(steps, "kept");
    }

    // ---- UIDs --------------------------------------------------------------------------------------------------------

    /** Takes a number from the kind's counter and tries to assign it to the name; the second of two concurrent callers gets the
     * first one's number. */
    private static byte[] assign(Table uids, String kind, String name) throws IOException {
        long number = uids.incrementColumnValue(COUNTERS, ID, b(kind), 1);
        byte[] uid = Arrays.copyOfRange(Bytes.toBytes(number), 5, 8);
        // First the row from UID to name, then the row from name to UID, so that no UID in use lacks a name.
        uids.put(new Put(Bytes.add(uid, b(kind))).addColumn(NAME, b(kind), b(name)));
        boolean bound = uids.checkAndMutate(CheckAndMutate.newBuilder(b(name)).ifNotExists(ID, b(kind))
            .build(new Put(b(name)).addColumn(ID, b(kind), uid))).isSuccess();
        return bound ? uid : uid(uids, kind, name);
    }

    private static byte[] uid(Table uids, String kind, String name) throws IOException {
        return uids.get(new Get(b(name)).addColumn(ID, b(kind))).value();
    }

    // ---- points ------------------------------------------------------------------------------------------------------

    private record Point(String metric, String host, String centre, int second) {
        int hour() {
            return second / 3_600 * 3_600;
        }

        byte[] qualifier() {
            return Bytes.toBytes((short) (second - hour() << 4));
        }

        long value() {
            return metric.hashCode() * 31L + host.hashCode() * 7L + second;
        }

        String line() {
            return metric + " " + host + " " + centre + " " + second + " " + value();
        }
    }

    private static List<Point> points() {
        List<Point> points = new ArrayList<>();
        for (String metric : METRICS) {
            for (int h = 0; h < HOSTS.length; h++) {
                for (int second = BASE; second < BASE + HOURS * 3_600; second += STEP) {
                    points.add(new Point(metric, HOSTS[h], CENTRES[h % 2], second));
                }
            }
        }
        return points;
    }

    private final TreeMap<String, byte[]> cache = new TreeMap<>();

    private byte[] cachedUid(Table uids, String kind, String name) throws IOException {
        byte[] uid = cache.get(kind + " " + name);
        if (uid == null) {
            uid = uid(uids, kind, name);
            cache.put(kind + " " + name, uid);
        }
        return uid;
    }

    private byte[] key(Table uids, Point point) throws IOException {
        byte[] key = Bytes.add(cachedUid(uids, "metrics", point.metric), Bytes.toBytes(point.hour()));
        key = Bytes.add(key, cachedUid(uids, "tagk", "host"), cachedUid(uids, "tagv", point.host));
        key = Bytes.add(key, cachedUid(uids, "tagk", "centre"), cachedUid(uids, "tagv", point.centre));
        Expect.equal(19, key.length, "bytes of a key");
        return key;
    }

    /** Decodes the parts of a key by offset, and looks up their names in the UID table. */
    private List<String> lines(Table uids, List<Result> results) throws IOException {
        List<String> lines = new ArrayList<>();
        TreeMap<String, String> names = new TreeMap<>();
        for (Result result : results) {
            byte[] row = result.getRow();
            String metric = name(uids, names, row, 0, "metrics");
            String host = name(uids, names, row, 10, "tagv");
            String centre = name(uids, names, row, 16, "tagv");
            Expect.equal("host centre", name(uids, names, row, 7, "tagk") + " " + name(uids, names, row, 13, "tagk"), "tags");
            for (Cell cell : result.rawCells()) {
                int second = Bytes.toInt(row, 3) + ((Bytes.toShort(CellUtil.cloneQualifier(cell)) & 0xffff) >> 4);
                lines.add(metric + " " + host + " " + centre + " " + second + " " + Bytes.toLong(CellUtil.cloneValue(cell)));
            }
        }
        return lines;
    }

    private static String name(Table uids, TreeMap<String, String> names, byte[] row, int offset, String kind)
        throws IOException {
        byte[] uid = Arrays.copyOfRange(row, offset, offset + 3);
        String known = names.get(kind + s(uid));
        if (known == null) {
            known = s(uids.get(new Get(Bytes.add(uid, b(kind))).addColumn(NAME, b(kind))).value());
            names.put(kind + s(uid), known);
        }
        return known;
    }

    private interface Wanted {
        boolean holds(Point point);
    }

    /** The expected points, in order of their keys: metric, hour, host, and the seconds within a row. */
    private List<String> wanted(Table uids, Wanted wanted) throws IOException {
        TreeMap<byte[], String> lines = new TreeMap<>(Bytes.BYTES_COMPARATOR);
        for (Point point : points()) {
            if (wanted.holds(point)) {
                lines.put(Bytes.add(key(uids, point), point.qualifier()), point.line());
            }
        }
        return new ArrayList<>(lines.values());
    }

    private void check(Steps steps, String state) throws Exception {
        try (Table uids = cluster.table("tsdb_uid"); Table data = cluster.table("tsdb")) {
            steps.run(state + ": counters", () -> {
                Result counters = uids.get(new Get(COUNTERS));
                // The number that the second caller took is lost, as in OpenTSDB.
                Expect.equal(METRICS.length + 1L, Bytes.toLong(counters.getValue(ID, b("metrics"))), "metrics");
                Expect.equal(2L, Bytes.toLong(counters.getValue(ID, b("tagk"))), "tagk");
                Expect.equal((long) HOSTS.length + CENTRES.length, Bytes.toLong(counters.getValue(ID, b("tagv"))), "tagv");
            });
            steps.run(state + ": all points", () ->
                Expect.equalLists(wanted(uids, point -> true), lines(uids, Text.results(data, new Scan())), "points"));
            steps.run(state + ": one metric and two hours", () -> {
                byte[] metric = cachedUid(uids, "metrics", METRICS[1]);
                Scan scan = new Scan().withStartRow(Bytes.add(metric, Bytes.toBytes(BASE + 3_600)))
                    .withStopRow(Bytes.add(metric, Bytes.toBytes(BASE + 3 * 3_600)));
                Expect.equalLists(wanted(uids, point -> point.metric.equals(METRICS[1])
                    && point.second >= BASE + 3_600 && point.second < BASE + 3 * 3_600), lines(uids, Text.results(data, scan)), "points");
            });
            steps.run(state + ": one host at any hour, FuzzyRowFilter", () -> {
                byte[] row = new byte[19];
                byte[] mask = new byte[19];
                Arrays.fill(mask, (byte) 1);
                fix(row, mask, 0, cachedUid(uids, "metrics", METRICS[2]));
                fix(row, mask, 10, cachedUid(uids, "tagv", HOSTS[2]));
                Scan scan = new Scan().setFilter(new FuzzyRowFilter(List.of(new Pair<>(row, mask))));
                Expect.equalLists(wanted(uids, point -> point.metric.equals(METRICS[2]) && point.host.equals(HOSTS[2])),
                    lines(uids, Text.results(data, scan)), "points");
            });
            steps.run(state + ": two metrics' first hours, MultiRowRangeFilter", () -> {
                List<RowRange> ranges = new ArrayList<>();
                for (String metric : new String[] {METRICS[2], METRICS[0]}) {
                    byte[] uid = cachedUid(uids, "metrics", metric);
                    ranges.add(new RowRange(Bytes.add(uid, Bytes.toBytes(BASE)), true,
                        Bytes.add(uid, Bytes.toBytes(BASE + 3_600)), false));
                }
                Expect.equalLists(wanted(uids, point -> !point.metric.equals(METRICS[1]) && point.second < BASE + 3_600),
                    lines(uids, Text.results(data, new Scan().setFilter(new MultiRowRangeFilter(ranges)))), "points");
            });
        }
    }

    /** In a fuzzy mask 0 stands for a byte that must match, 1 for any byte. */
    private static void fix(byte[] row, byte[] mask, int offset, byte[] value) {
        System.arraycopy(value, 0, row, offset, value.length);
        Arrays.fill(mask, offset, offset + value.length, (byte) 0);
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("tsdb_uid", "tsdb"));
    }
}
