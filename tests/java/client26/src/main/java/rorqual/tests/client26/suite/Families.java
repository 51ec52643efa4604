// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.results;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ValueFilter;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** Attributes of families and tables: kept, returned, and honoured. */
public final class Families implements Program {
    private static final int ROWS = 600;
    /** The families of one table: each family is a case, which its name describes. */
    private static final Map<String, Map<String, String>> STORED = new TreeMap<>(Map.ofEntries(
        Map.entry("none", Map.of("COMPRESSION", "NONE")),
        Map.entry("gz", Map.of("COMPRESSION", "GZ")),
        Map.entry("snappy", Map.of("COMPRESSION", "SNAPPY")),
        Map.entry("lz4", Map.of("COMPRESSION", "LZ4")),
        Map.entry("zstd", Map.of("COMPRESSION", "ZSTD")),
        Map.entry("bloomnone", Map.of("BLOOMFILTER", "NONE")),
        Map.entry("bloomrowcol", Map.of("BLOOMFILTER", "ROWCOL")),
        Map.entry("small", Map.of("BLOCKSIZE", "1024", "COMPRESSION", "GZ")),
        Map.entry("large", Map.of("BLOCKSIZE", "1048576")),
        Map.entry("nocache", Map.of("BLOCKCACHE", "false")),
        Map.entry("inmemory", Map.of("IN_MEMORY", "true")),
        Map.entry("diff", Map.of("DATA_BLOCK_ENCODING", "DIFF")),
        Map.entry("fastdiff", Map.of("DATA_BLOCK_ENCODING", "FAST_DIFF")),
        Map.entry("prefix", Map.of("DATA_BLOCK_ENCODING", "PREFIX")),
        Map.entry("rowindex", Map.of("DATA_BLOCK_ENCODING", "ROW_INDEX_V1", "COMPRESSION", "SNAPPY"))));

    private final Cluster cluster;

    public Families(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        attributes(steps);
        stored(steps);
        versions(steps);
        timeToLive(steps);
        cellTimeToLive(steps);
        keepDeleted(steps);
    }

    @Override
    public void check(Steps steps) throws Exception {
        attributesKept(steps);
        storedKept(steps, "kept");
        try (Table t = cluster.table("fam_keep")) {
            steps.run("KEEP_DELETED_CELLS kept", () -> Expect.equal("keep:q@2=two",
                timed(t.get(get("old").setTimeRange(0, 3))), "before the delete"));
        }
        try (Table t = cluster.table("fam_versions")) {
            steps.run("VERSIONS kept", () -> Expect.equal("three:q@9=9 three:q@8=8 three:q@7=7",
                timed(t.get(get("r").addFamily(b("three")).readAllVersions())), "row"));
        }
    }

    // ---- stored and returned -----------------------------------------------------------------------------------------

    private TableDescriptor described() {
        return TableDescriptorBuilder.newBuilder(cluster.name("fam_described"))
            .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("all")).setMaxVersions(9).setMinVersions(2).setTimeToLive(86_400)
                .setBlocksize(32_768).setBlockCacheEnabled(false).setInMemory(true).setKeepDeletedCells(KeepDeletedCells.TTL)
                .setScope(1).setValue("BLOOMFILTER", "NONE").setValue("COMPRESSION", "GZ").setValue("DATA_BLOCK_ENCODING", "FAST_DIFF")
                .setCacheDataOnWrite(true).setEvictBlocksOnClose(true).setPrefetchBlocksOnOpen(true).setValue("free", "text")
                .setConfiguration("hbase.hstore.blockingStoreFiles", "33").build())
            .setColumnFamily(ColumnFamilyDescriptorBuilder.of("defaults"))
            .setMaxFileSize(1L << 33).setMemStoreFlushSize(1L << 26).setValue("OWNER", "me").setValue("free", "text")
            .setValue("hbase.some.setting", "7").setNormalizationEnabled(true).setPriority(3)
            .setSplitEnabled(false).setCompactionEnabled(true).build();
    }

    private void attributes(Steps steps) {
        steps.must("attributes: create", () -> cluster.admin.createTable(described()));
        attributesKept(steps);
    }

    private void attributesKept(Steps steps) {
        steps.run("attributes: returned as given", () -> {
            TableDescriptor given = described();
            TableDescriptor got = cluster.admin.getDescriptor(given.getTableName());
            for (ColumnFamilyDescriptor family : given.getColumnFamilies()) {
                // Compared as maps, so that a failure shows the attribute that differs.
                Expect.equal(text(family.getValues()), text(got.getColumnFamily(family.getName()).getValues()), family.getNameAsString());
                Expect.equal(family.getConfiguration(), got.getColumnFamily(family.getName()).getConfiguration(), "configuration");
            }
            TreeMap<String, String> values = text(got.getValues());
            Expect.equal("DEFAULT", values.remove("hbase.store.file-tracker.impl"), "store file tracker");
            Expect.equal(text(given.getValues()), values, "table values");
        });
    }

    private static TreeMap<String, String> text(Map<org.apache.hadoop.hbase.util.Bytes, org.apache.hadoop.hbase.util.Bytes> values) {
        TreeMap<String, String> text = new TreeMap<>();
        values.forEach((key, value) -> text.put(s(key.copyBytes()), s(value.copyBytes())));
        return text;
    }

    // ---- encodings, compressions, blooms -----------------------------------------------------------------------------

    private void stored(Steps steps) throws Exception {
        steps.must("stored: create", () -> {
            TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(cluster.name("fam_stored"));
            STORED.forEach((name, attributes) -> {
                ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(b(name));
                attributes.forEach(family::setValue);
                table.setColumnFamily(family.build());
            });
            cluster.admin.createTable(table.build());
        });
        try (Table t = cluster.table("fam_stored")) {
            steps.must("stored: put half, flush, put the rest", () -> {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    Put put = new Put(b(row(i)));
                    for (String family : STORED.keySet()) {
                        put.addColumn(b(family), b("q"), value(family, i));
                        put.addColumn(b(family), b("same"), b("the same in every row"));
                    }
                    puts.add(put);
                }
                t.put(puts.subList(0, ROWS / 2));
                cluster.flush("fam_stored");
                t.put(puts.subList(ROWS / 2, ROWS));
            });
        }
        storedKept(steps, "file and memstore");
        steps.must("stored: flush", () -> cluster.flush("fam_stored"));
        storedKept(steps, "files");
        steps.must("stored: major compaction", () -> cluster.flushAndMajorCompact("fam_stored"));
        storedKept(steps, "compacted");
    }

    private static String row(int i) {
        return String.format("row%05d", i);
    }

    private static byte[] value(String family, int i) {
        return b((family + "-" + i + ";").repeat(1 + i % 17));
    }

    private void storedKept(Steps steps, String state) throws Exception {
        try (Table t = cluster.table("fam_stored")) {
            for (String family : STORED.keySet()) {
                steps.run(state + ": " + family, () -> {
                    int i = 0;
                    for (Result result : results(t, new Scan().addFamily(b(family)).setCaching(100))) {
                        Expect.equal(row(i), s(result.getRow()), "row " + i);
                        Expect.equal(s(value(family, i)), s(result.getValue(b(family), b("q"))), "value of row " + i);
                        Expect.equal("the same in every row", s(result.getValue(b(family), b("same"))), "second value of row " + i);
                        i++;
                    }
                    Expect.equal(ROWS, i, "rows");
                    for (int k = 0; k < ROWS; k += 61) {
                        Expect.equal(s(value(family, k)), s(t.get(get(row(k)).addColumn(b(family), b("q"))).value()), "get of row " + k);
                        Expect.that(!t.exists(get(row(k) + "x").addFamily(b(family))), "no such row");
                        Expect.that(!t.exists(get(row(k)).addColumn(b(family), b("absent"))), "no such column");
                    }
                });
            }
            steps.run(state + ": backwards over all", () -> {
                int i = ROWS;
                for (Result result : results(t, new Scan().setReversed(true).setCaching(50))) {
                    Expect.equal(row(--i), s(result.getRow()), "row");
                    Expect.equal(STORED.size() * 2, result.size(), "cells");
                }
                Expect.equal(0, i, "rows left");
            });
        }
    }

    // ---- versions and time -------------------------------------------------------------------------------------------

    private void versions(Steps steps) throws Exception {
        steps.must("VERSIONS: create and put", () -> {
            try (Table t = cluster.create("fam_versions", Cluster.family("one"), Cluster.family("three", 3))) {
                for (int i = 1; i <= 9; i++) {
                    t.put(put("r", "one:q@" + i + "=" + i, "three:q@" + i + "=" + i));
                }
            }
        });
        try (Table t = cluster.table("fam_versions")) {
            for (String state : List.of("memstore", "flushed", "compacted")) {
                steps.run("VERSIONS: " + state, () -> {
                    switch (state) {
                        case "flushed" -> cluster.flush("fam_versions");
                        case "compacted" -> cluster.flushAndMajorCompact("fam_versions");
                        default -> { }
                    }
                    Expect.equal("one:q@9=9 three:q@9=9 three:q@8=8 three:q@7=7", timed(t.get(get("r").readAllVersions())), "row");
                });
            }
        }
    }

    private void timeToLive(Steps steps) throws Exception {
        steps.must("TTL: create", () -> cluster.create("fam_ttl",
            ColumnFamilyDescriptorBuilder.newBuilder(b("ttl")).setTimeToLive(1_000).setMaxVersions(9).build(),
            ColumnFamilyDescriptorBuilder.newBuilder(b("min")).setTimeToLive(1_000).setMaxVersions(9).setMinVersions(2).build()).close());
        try (Table t = cluster.table("fam_ttl")) {
            long now = System.currentTimeMillis();
            // Written with explicit timestamps, so that the test need not wait until the cells expire.
            steps.must("TTL: put", () -> {
                for (String family : List.of("ttl", "min")) {
                    byte[] f = b(family);
                    t.put(new Put(b("mixed")).addColumn(f, b("q"), now, b("new")).addColumn(f, b("q"), now - 1_100_000, b("old"))
                        .addColumn(f, b("q"), now - 1_200_000, b("older")));
                    t.put(new Put(b("old")).addColumn(f, b("q"), now - 1_100_000, b("old")).addColumn(f, b("q"), now - 1_200_000,
                        b("older"))
                        .addColumn(f, b("q"), now - 1_300_000, b("oldest")));
                    t.put(new Put(b("young")).addColumn(f, b("q"), now - 500_000, b("young")));
                }
            });
            for (String state : List.of("memstore", "flushed", "compacted")) {
                steps.run("TTL: " + state, () -> {
                    switch (state) {
                        case "flushed" -> cluster.flush("fam_ttl");
                        case "compacted" -> cluster.flushAndMajorCompact("fam_ttl");
                        default -> { }
                    }
                    Expect.equal("ttl:q=new", untimed(t.get(get("mixed").addFamily(b("ttl")).readAllVersions())), "mixed");
                    Expect.equal("", untimed(t.get(get("old").addFamily(b("ttl")).readAllVersions())), "old");
                    Expect.equal("ttl:q=young", untimed(t.get(get("young").addFamily(b("ttl")))), "young");
                    Expect.equal("min:q=new min:q=old", untimed(t.get(get("mixed").addFamily(b("min")).readAllVersions())),
                        "mixed, MIN_VERSIONS");
                    Expect.equal("min:q=old min:q=older", untimed(t.get(get("old").addFamily(b("min")).readAllVersions())),
                        "old, MIN_VERSIONS");
                    Expect.equal("young/ttl:q=young", untimed(t, new Scan().addFamily(b("ttl")).withStartRow(b("n"))), "scan");
                });
            }
            steps.run("TTL: expired cells leave the files", () -> Expect.equal("", untimed(t,
                new Scan().withStartRow(b("old")).withStopRow(b("old"), true).addFamily(b("ttl")).setRaw(true).readAllVersions()),
                    "raw scan"));
        }
    }

    /** A TTL of single cells: a shorter one than the family's applies, a longer one does not. */
    private void cellTimeToLive(Steps steps) throws Exception {
        steps.must("cell TTL: create", () -> cluster.create("fam_cellttl",
            ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build(),
            ColumnFamilyDescriptorBuilder.newBuilder(b("short")).setTimeToLive(1_000).build()).close());
        try (Table t = cluster.table("fam_cellttl")) {
            long now = System.currentTimeMillis();
            steps.must("cell TTL: put", () -> {
                // Explicit timestamps again; server and client have the same clock.
                t.put(new Put(b("a")).addColumn(b("f"), b("q"), now - 600_000, b("ended")).setTTL(300_000));
                t.put(new Put(b("b")).addColumn(b("f"), b("q"), now - 600_000, b("lives")).setTTL(3_600_000));
                t.put(new Put(b("c")).addColumn(b("f"), b("q"), now - 700_000, b("below")));
                t.put(new Put(b("c")).addColumn(b("f"), b("q"), now - 600_000, b("ended")).setTTL(300_000));
                t.put(new Put(b("d")).addColumn(b("short"), b("q"), now - 1_500_000, b("the family's")).setTTL(36_000_000));
                t.put(List.of(new Put(b("e")).addColumn(b("f"), b("q"), now - 600_000, b("ended")).setTTL(300_000),
                    new Put(b("f")).addColumn(b("f"), b("q"), now - 600_000, b("plain"))));
                t.mutateRow(RowMutations.of(List.of(
                    new Put(b("g")).addColumn(b("f"), b("ended"), now - 600_000, b("1")).setTTL(300_000),
                    new Put(b("g")).addColumn(b("f"), b("lives"), now - 600_000, b("2")))));
                t.increment(new Increment(b("h")).addColumn(b("f"), b("n"), 7).setTTL(3_600_000));
                t.append(new Append(b("h")).addColumn(b("f"), b("t"), b("text")).setTTL(3_600_000));
            });
            for (String state : List.of("memstore", "flushed", "compacted")) {
                steps.run("cell TTL: " + state, () -> {
                    switch (state) {
                        case "flushed" -> cluster.flush("fam_cellttl");
                        case "compacted" -> cluster.flushAndMajorCompact("fam_cellttl");
                        default -> { }
                    }
                    Expect.equal("b/f:q=lives c/f:q=below f/f:q=plain g/f:lives=2 h/f:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07 h/f:t=text",
                        untimed(t, new Scan()), "scan");
                    Expect.that(!t.exists(get("a")) && t.exists(get("b")) && !t.exists(get("d")), "gets");
                    Expect.equal("f:q=below", untimed(t.get(get("c").readAllVersions())), "versions");
                });
            }
            steps.run("cell TTL: ended cells leave the files", () -> Expect.equal("c/f:q=below", untimed(t,
                new Scan().withStartRow(b("a")).withStopRow(b("e"), true).setRaw(true).readAllVersions()
                    .setFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("lives"))))), "raw scan"));
            for (String state : List.of("memstore", "flushed")) {
                steps.run("cell TTL: ends while one looks, " + state, () -> {
                    t.put(put("soon", "f:q=kept", "f:r=kept"));
                    Ticks.next();
                    t.put(put("soon", "f:q=briefly").setTTL(1_500));
                    Expect.equal("f:q=briefly f:r=kept", untimed(t.get(get("soon"))), "before");
                    if (state.equals("flushed")) {
                        cluster.flush("fam_cellttl");
                    }
                    Await.until("the cell before it is seen again", () -> untimed(t.get(get("soon"))).equals("f:q=kept f:r=kept"));
                    t.delete(delete("soon"));
                    Ticks.next();
                });
            }
        }
    }

    private void keepDeleted(Steps steps) throws Exception {
        steps.must("KEEP_DELETED_CELLS: create, put, delete", () -> {
            try (Table t = cluster.create("fam_keep",
                ColumnFamilyDescriptorBuilder.newBuilder(b("keep")).setMaxVersions(3).setKeepDeletedCells(KeepDeletedCells.TRUE).build(),
                ColumnFamilyDescriptorBuilder.newBuilder(b("drop")).setMaxVersions(3).build())) {
                for (String row : List.of("old", "versions")) {
                    t.put(put(row, "keep:q@1=one", "keep:q@2=two", "drop:q@1=one", "drop:q@2=two"));
                }
                t.delete(delete("old").addFamily(b("keep"), 3).addFamily(b("drop"), 3));
            }
        });
        try (Table t = cluster.table("fam_keep")) {
            for (String state : List.of("memstore", "flushed", "compacted")) {
                steps.run("KEEP_DELETED_CELLS: " + state, () -> {
                    switch (state) {
                        case "flushed" -> cluster.flush("fam_keep");
                        case "compacted" -> cluster.flushAndMajorCompact("fam_keep");
                        default -> { }
                    }
                    Expect.equal("", timed(t.get(get("old").readAllVersions())), "now");
                    Get before = get("old").setTimeRange(0, 3).readAllVersions();
                    Expect.equal("keep:q@2=two keep:q@1=one", timed(t.get(before.addFamily(b("keep")))), "before the delete");
                    Expect.equal("old/keep:@3!DeleteFamily old/keep:q@2=two old/keep:q@1=one", timed(t, new Scan().setRaw(true)
                        .readAllVersions().addFamily(b("keep")).withStopRow(b("p"))), "raw scan");
                });
            }
            steps.run("without KEEP_DELETED_CELLS nothing is left", () -> Expect.equal("", timed(t, new Scan().setRaw(true)
                .readAllVersions().addFamily(b("drop")).withStopRow(b("p"))), "raw scan"));
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("fam_"));
    }
}
