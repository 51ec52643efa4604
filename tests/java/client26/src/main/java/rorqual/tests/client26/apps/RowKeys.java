// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Row key design (seed 001): rising, reversed, salted and hashed keys over pre-split regions, numbers, geohash, limits. */
public final class RowKeys implements Program {
    private static final int IDS = 2_000;
    private static final byte[] CF = b("cf");
    private static final String[] DIGITS = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    private static final String[] HEX = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"};

    private final Cluster cluster;

    public RowKeys(Cluster cluster) {
        this.cluster = cluster;
    }

    // ---- the key schemes ---------------------------------------------------------------------------------------------

    private static String padded(int id) {
        return String.format("%08d", id);
    }

    private static String reversed(int id) {
        return new StringBuilder(padded(id)).reverse().toString();
    }

    private static String salted(int id) {
        return Integer.toHexString(id % 16) + padded(id);
    }

    private static String hashed(int id) {
        try {
            byte[] md5 = MessageDigest.getInstance("MD5").digest(b(padded(id)));
            return String.format("%02x%02x", md5[0], md5[1]) + padded(id);
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private interface Scheme {
        String key(int id);
    }

    @Override
    public void write(Steps steps) throws Exception {
        create(steps, "rk_rising", DIGITS, RowKeys::padded);
        create(steps, "rk_reversed", DIGITS, RowKeys::reversed);
        create(steps, "rk_salted", HEX, RowKeys::salted);
        create(steps, "rk_hashed", HEX, RowKeys::hashed);
        steps.must("numbers: create and put", this::writeNumbers);
        steps.must("places: create and put", this::writePlaces);
        check(steps, "memstore");
        steps.must("flush", () -> {
            cluster.flush("rk_reversed");
            cluster.flush("rk_salted");
            cluster.flush("rk_places");
        });
        check(steps, "flushed");
        lengths(steps);
    }

    private void create(Steps steps, String name, String[] splits, Scheme scheme) {
        steps.must(name + ": create and put", () -> {
            try (Table table = cluster.create(name, keys(splits), Cluster.family("cf"))) {
                List<Put> puts = new ArrayList<>();
                for (int id = 0; id < IDS; id++) {
                    puts.add(new Put(b(scheme.key(id))).addColumn(CF, b("id"), Bytes.toBytes(id)));
                }
                table.put(puts);
                // A second put with the same row key overwrites the row, and makes no second row.
                table.put(puts.subList(0, 100));
            }
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        check(steps, "kept");
        checkLengths(steps);
    }

    private void check(Steps steps, String state) {
        steps.run(state + ": rising ids are all in the first region", () ->
            spread("rk_rising", 10, RowKeys::padded, (region, count) -> count == (region == 0 ? IDS : 0)));
        steps.run(state + ": reversed ids spread evenly", () ->
            spread("rk_reversed", 10, RowKeys::reversed, (region, count) -> count == IDS / 10));
        steps.run(state + ": salted ids spread evenly", () ->
            spread("rk_salted", 16, RowKeys::salted, (region, count) -> count == IDS / 16));
        steps.run(state + ": hashed ids spread", () ->
            spread("rk_hashed", 16, RowKeys::hashed, (region, count) -> count > IDS / 32 && count < IDS / 8));
        steps.run(state + ": rows of one reversed entity stay together", () -> {
            try (Table table = cluster.table("rk_reversed")) {
                Expect.equal(reversed(1234), s(Text.results(table,
                    Text.prefix(b(reversed(1234)))).get(0).getRow()), "row");
            }
        });
        steps.run(state + ": a range over salted keys is one scan per bucket, merged", this::mergedScan);
        steps.run(state + ": gets compute the hash", () -> {
            try (Table table = cluster.table("rk_hashed")) {
                List<Get> gets = new ArrayList<>();
                for (int id = 0; id < IDS; id += 37) {
                    gets.add(new Get(b(hashed(id))));
                }
                Result[] results = table.get(gets);
                for (int i = 0; i < results.length; i++) {
                    Expect.equal(i * 37, Bytes.toInt(results[i].getValue(CF, b("id"))), "id");
                }
            }
        });
        steps.run(state + ": unpadded numbers sort as text", () ->
            Expect.equal("t1 t10 t100 t2 t9", numbers("t"), "rows"));
        steps.run(state + ": padded numbers sort as numbers", () ->
            Expect.equal("p001 p002 p009 p010 p100", numbers("p"), "rows"));
        steps.run(state + ": longs compare as unsigned bytes", () -> {
            try (Table table = cluster.table("rk_numbers")) {
                List<Long> longs = new ArrayList<>();
                for (Result result : Text.results(table, Text.prefix(b("l")))) {
                    longs.add(Bytes.toLong(result.getRow(), 1));
                }
                Expect.equal(List.of(0L, 1L, 9L, 10L, Long.MAX_VALUE, Long.MIN_VALUE, -10L, -1L), longs, "order");
            }
        });
        places(steps, state);
    }

    private interface Claim {
        boolean holds(int region, int count);
    }

    /** Counts the rows of each region by a scan of its key range, and compares with the expected number. */
    private void spread(String name, int regions, Scheme scheme, Claim claim) throws IOException {
        TreeSet<String> keys = new TreeSet<>();
        for (int id = 0; id < IDS; id++) {
            keys.add(scheme.key(id));
        }
        List<RegionInfo> infos = cluster.regions(name);
        Expect.equal(regions, infos.size(), "regions");
        List<String> found = new ArrayList<>();
        try (Table table = cluster.table(name)) {
            for (int i = 0; i < regions; i++) {
                List<String> rows = Text.rows(table,
                    new Scan().withStartRow(infos.get(i).getStartKey()).withStopRow(infos.get(i).getEndKey()));
                Expect.that(claim.holds(i, rows.size()), "region " + i + " has " + rows.size() + " rows");
                found.addAll(rows);
            }
        }
        Expect.equalLists(new ArrayList<>(keys), found, "keys over all regions");
    }

    /** Ids 500 to 899 in order, from sixteen scanners at a time. */
    private void mergedScan() throws IOException {
        record Head(Result result, ResultScanner scanner) implements Comparable<Head> {
            int id() {
                return Bytes.toInt(result.getValue(CF, b("id")));
            }

            @Override
            public int compareTo(Head other) {
                return Integer.compare(id(), other.id());
            }
        }

        List<Integer> ids = new ArrayList<>();
        try (Table table = cluster.table("rk_salted")) {
            PriorityQueue<Head> heads = new PriorityQueue<>();
            for (int bucket = 0; bucket < 16; bucket++) {
                String salt = Integer.toHexString(bucket);
                ResultScanner scanner = table.getScanner(new Scan().withStartRow(b(salt + padded(500)))
                    .withStopRow(b(salt + padded(900))).setCaching(5));
                heads.add(new Head(scanner.next(), scanner));
            }
            while (!heads.isEmpty()) {
                Head head = heads.remove();
                ids.add(head.id());
                Result next = head.scanner.next();
                if (next != null) {
                    heads.add(new Head(next, head.scanner));
                } else {
                    head.scanner.close();
                }
            }
        }
        List<Integer> wanted = new ArrayList<>();
        for (int id = 500; id < 900; id++) {
            wanted.add(id);
        }
        Expect.equalLists(wanted, ids, "ids");
    }

    // ---- numbers -----------------------------------------------------------------------------------------------------

    private void writeNumbers() throws IOException {
        try (Table table = cluster.create("rk_numbers", Cluster.family("cf"))) {
            for (int n : new int[] {9, 10, 100, 1, 2}) {
                table.put(new Put(b("t" + n)).addColumn(CF, b("n"), b("x")));
                table.put(new Put(b(String.format("p%03d", n))).addColumn(CF, b("n"), b("x")));
            }
            for (long n : new long[] {-1, 1, Long.MIN_VALUE, 10, -10, 0, Long.MAX_VALUE, 9}) {
                table.put(new Put(Bytes.add(b("l"), Bytes.toBytes(n))).addColumn(CF, b("n"), b("x")));
            }
        }
    }

    private String numbers(String prefix) throws IOException {
        try (Table table = cluster.table("rk_numbers")) {
            return Text.rowLine(table, Text.prefix(b(prefix)));
        }
    }

    // ---- places ------------------------------------------------------------------------------------------------------

    private static final String BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz";

    /** Alternate bits of longitude and latitude, five per letter. */
    static String geohash(double latitude, double longitude, int letters) {
        double[] lat = {-90, 90};
        double[] lon = {-180, 180};
        StringBuilder hash = new StringBuilder();
        int bits = 0;
        for (int bit = 0; bit < letters * 5; bit++) {
            double[] range = bit % 2 == 0 ? lon : lat;
            double value = bit % 2 == 0 ? longitude : latitude;
            double middle = (range[0] + range[1]) / 2;
            bits = bits << 1 | (value >= middle ? 1 : 0);
            range[value >= middle ? 0 : 1] = middle;
            if (bit % 5 == 4) {
                hash.append(BASE32.charAt(bits));
                bits = 0;
            }
        }
        return hash.toString();
    }

    /** A thousand places around a city, as geohash keys with a number at the end. */
    private static TreeMap<String, String> allPlaces() {
        Random random = new Random(31);
        TreeMap<String, String> places = new TreeMap<>();
        for (int i = 0; i < 1_000; i++) {
            double latitude = 57.64911 + random.nextGaussian() * 0.05;
            double longitude = 10.40744 + random.nextGaussian() * 0.05;
            places.put(geohash(latitude, longitude, 11) + "_" + i, "place " + i);
        }
        places.put(geohash(57.64911, 10.40744, 11) + "_0", "the centre");
        return places;
    }

    private void writePlaces() throws IOException {
        List<Put> puts = new ArrayList<>();
        allPlaces().forEach((key, name) -> puts.add(new Put(b(key)).addColumn(CF, b("name"), b(name))));
        try (Table table = cluster.create("rk_places", Cluster.family("cf"))) {
            table.put(puts);
        }
    }

    private void places(Steps steps, String state) {
        steps.run(state + ": the geohash of the check value", () ->
            Expect.equal("u4pruydqqvj", geohash(57.64911, 10.40744, 11), "hash"));
        for (int letters : new int[] {3, 5, 6}) {
            steps.run(state + ": places sharing " + letters + " letters", () -> {
                String prefix = "u4pruydqqvj".substring(0, letters);
                List<String> wanted = new ArrayList<>(allPlaces().subMap(prefix, prefix + "~").keySet());
                Expect.that(!wanted.isEmpty(), "there should be some");
                try (Table table = cluster.table("rk_places")) {
                    Expect.equalLists(wanted, Text.rows(table, Text.prefix(b(prefix))), "rows");
                }
            });
        }
    }

    // ---- lengths -----------------------------------------------------------------------------------------------------

    private static byte[] longest() {
        byte[] key = new byte[Short.MAX_VALUE];
        Arrays.fill(key, (byte) 'k');
        return key;
    }

    private void lengths(Steps steps) throws Exception {
        steps.must("lengths: create", () -> cluster.create("rk_lengths", Cluster.family("cf")).close());
        try (Table table = cluster.table("rk_lengths")) {
            steps.run("lengths: the longest key", () -> {
                // Lets the client cache the region by a short key first, because the row for looking up such a long key in hbase:meta would be
                // too long.
                table.put(new Put(b("a")).addColumn(CF, b("q"), b("short")));
                table.put(new Put(longest()).addColumn(CF, b("q"), b("longest")));
            });
            steps.run("lengths: empty and longer keys are refused", () -> {
                Expect.fails(IllegalArgumentException.class, "Row length 32768 is > 32767", () -> new Put(new byte[32_768]));
                Expect.fails(IllegalArgumentException.class, "Row length is 0", () -> new Put(new byte[0]));
                Expect.fails(IllegalArgumentException.class, "Row length is 0", () -> new Get(new byte[0]));
            });
        }
        checkLengths(steps);
        steps.run("lengths: flush", () -> cluster.flush("rk_lengths"));
        checkLengths(steps);
    }

    private void checkLengths(Steps steps) throws Exception {
        try (Table table = cluster.table("rk_lengths")) {
            steps.run("lengths: get and scan the longest key", () -> {
                Expect.equal("short", s(table.get(new Get(b("a"))).value()), "the short one");
                Expect.equal("longest", s(table.get(new Get(longest())).value()), "get");
                List<Result> results = Text.results(table, new Scan().withStartRow(b("b")));
                Expect.that(results.size() == 1 && Arrays.equals(longest(), results.get(0).getRow()), "scan");
            });
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("rk_"));
    }
}
