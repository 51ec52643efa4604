// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.results;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.CacheEvictionStats;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** Flushes and compactions requested by a client, and the data that they must not change. */
public final class Maintenance implements Program {
    private final Cluster cluster;
    private final Admin admin;

    public Maintenance(Cluster cluster) {
        this.cluster = cluster;
        this.admin = cluster.admin;
    }

    @Override
    public void write(Steps steps) throws Exception {
        TableName name = cluster.name("maint");
        steps.must("create", () -> cluster.create("maint", keys("m"), Cluster.family("f", 2), Cluster.family("g")).close());
        try (Table t = cluster.table("maint")) {
            steps.run("flush: of a table, a family, a region", () -> {
                t.put(put("a", "f:q=1", "g:q=1"));
                admin.flush(name);
                t.put(put("b", "f:q=2", "g:q=2"));
                admin.flush(name, b("f"));
                t.put(put("n", "f:q=3", "g:q=3"));
                for (RegionInfo region : cluster.regions("maint")) {
                    admin.flushRegion(region.getRegionName());
                }
                admin.flush(name); // a flush of an empty memstore succeeds, too
                Expect.equal("a/f:q=1 a/g:q=1 b/f:q=2 b/g:q=2 n/f:q=3 n/g:q=3", untimed(t, new Scan()), "cells");
            });
            steps.run("compaction: many files, every kind of content", () -> {
                for (int i = 0; i < 8; i++) {
                    t.put(put("row" + i, "f:q@" + (i + 1) + "=" + i, "g:q=" + i));
                    t.put(put("all", "f:q@" + (i + 1) + "=" + i));
                    t.delete(delete("row" + (i - 1)).addColumns(b("f"), b("q"), i + 1));
                    admin.flush(name);
                }
                String before = untimed(t, new Scan().readAllVersions());
                admin.compact(name);
                idle(name);
                Expect.equal(before, untimed(t, new Scan().readAllVersions()), "after a compaction");
                admin.majorCompact(name);
                idle(name);
                Expect.equal(before, untimed(t, new Scan().readAllVersions()), "after a major compaction");
                Expect.equal("f:q@8=7 f:q@7=6", timed(t.get(get("all").readAllVersions())), "two versions");
            });
            steps.run("compaction: of a family, a region, a region's family", () -> {
                admin.majorCompact(name, b("f"));
                idle(name);
                for (RegionInfo region : cluster.regions("maint")) {
                    admin.compactRegion(region.getRegionName());
                    admin.majorCompactRegion(region.getRegionName(), b("g"));
                    Await.until("region idle", () -> admin.getCompactionStateForRegion(region.getRegionName()) == CompactionState.NONE);
                }
                Expect.equal("f:q@8=7 f:q@7=6", timed(t.get(get("all").readAllVersions())), "two versions");
            });
            steps.run("the block cache can be cleared, and blocks are read again", () -> {
                String before = untimed(t, new Scan().readAllVersions());
                CacheEvictionStats cleared = admin.clearBlockCache(name);
                Expect.equal(0, cleared.getExceptionCount(), "exceptions");
                Expect.that(cleared.getEvictedBlocks() > 0, "blocks were evicted: " + cleared);
                Expect.that(cleared.getMaxCacheSize() > 0, "the cache has a size: " + cleared);
                Expect.equal(before, untimed(t, new Scan().readAllVersions()), "cells");
            });
            steps.run("compaction: markers and what they hide are gone", () -> {
                t.put(put("dead", "f:q@5=5"));
                admin.flush(name);
                t.delete(delete("dead").addFamily(b("f"), 9));
                admin.flush(name);
                admin.majorCompact(name);
                idle(name);
                Expect.equal("", timed(t, new Scan().withStartRow(b("dead")).withStopRow(b("deae")).setRaw(true).readAllVersions()),
                    "raw scan");
            });
        }
        steps.run("an absent table", () -> {
            TableName absent = cluster.name("maint_absent");
            Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.majorCompact(absent));
            Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.getCompactionState(absent));
        });
        familyFlush(steps);
        ownFlushes(steps);
        scannerOverFlush(steps);
        check(steps);
    }

    private void familyFlush(Steps steps) {
        steps.run("flush: of a family leaves the others in memory", () -> {
            TableName name = cluster.name("maint_family");
            // An automatic compaction would drop the marker that this test expects.
            ColumnFamilyDescriptor f = ColumnFamilyDescriptorBuilder.newBuilder(b("f"))
                .setConfiguration("hbase.hstore.compaction.min", "1000").build();
            try (Table t = cluster.create("maint_family", f, Cluster.family("g"))) {
                t.delete(delete("r").addFamily(b("f"), 7));
                t.put(put("r", "g:q@1=1"));
                admin.flush(name, b("g"));
                // Marker and put are both in the memstore, so the flush drops the put that the marker hides.
                t.put(put("r", "f:q@5=5"));
                admin.flush(name);
                Expect.equal("r/f:@7!DeleteFamily r/g:q@1=1", timed(t, new Scan().setRaw(true).readAllVersions()), "raw scan");
                // A put that is flushed separately from its marker stays in its file, hidden.
                t.put(put("r", "f:q@4=4"));
                admin.flush(name);
                Expect.equal("r/f:@7!DeleteFamily r/f:q@4=4 r/g:q@1=1", timed(t, new Scan().setRaw(true).readAllVersions()), "raw scan");
                Expect.equal("r/g:q@1=1", timed(t, new Scan().readAllVersions()), "scan");
            }
        });
    }

    private void idle(TableName name) throws Exception {
        Await.until("compaction of " + name + " done", () -> admin.getCompactionState(name) == CompactionState.NONE);
    }

    /** A memstore so small that the server flushes automatically, and so many files that it compacts. */
    private void ownFlushes(Steps steps) throws Exception {
        steps.must("own flushes: create", () -> admin.createTable(TableDescriptorBuilder.newBuilder(cluster.name("maint_small"))
            .setColumnFamily(Cluster.family("f")).setMemStoreFlushSize(1 << 20).build()));
        try (Table t = cluster.table("maint_small")) {
            steps.run("own flushes: 6 MB in a table that flushes at 1 MB", () -> {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < 6_000; i++) {
                    puts.add(new Put(b(row(i))).addColumn(b("f"), b("q"), value(i)));
                }
                java.util.Collections.shuffle(puts, new Random(5));
                for (int i = 0; i < puts.size(); i += 200) {
                    t.put(puts.subList(i, i + 200));
                }
            });
        }
    }

    private static String row(int i) {
        return String.format("r%05d", i);
    }

    private static byte[] value(int i) {
        byte[] value = new byte[1_000];
        new Random(i).nextBytes(value);
        return value;
    }

    /**
     * A scanner keeps its view while flush and compaction replace the files it reads. A real HBase 2.6.1 loses the
     * deleted row about one time in three; {@code PEER=hbase} accepts that.
     */
    private void scannerOverFlush(Steps steps) throws Exception {
        boolean forgiving = "hbase".equals(System.getenv("PEER"));
        steps.run("a scanner over a flush and a compaction", () -> {
            TableName name = cluster.name("maint_small");
            List<String> rows = new ArrayList<>();
            try (Table t = cluster.table("maint_small"); var scanner = t.getScanner(new Scan().setCaching(10).withStopRow(b(row(500))))) {
                for (Result result = scanner.next(); result != null; result = scanner.next()) {
                    rows.add(s(result.getRow()));
                    switch (rows.size()) {
                        case 50 -> {
                            t.delete(delete(row(400)));
                            admin.flush(name);
                        }
                        case 150 -> admin.majorCompact(name);
                        case 300 -> idle(name);
                        default -> { }
                    }
                }
                Expect.that(!t.exists(get(row(400))), "for a later reader the row is gone");
                Ticks.next();
                t.put(new Put(b(row(400))).addColumn(b("f"), b("q"), value(400)));
            }
            List<String> wanted = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                if (i != 400 || !forgiving || rows.contains(row(i))) {
                    wanted.add(row(i));
                }
            }
            Expect.equalLists(wanted, rows, "rows, the one deleted meanwhile among them");
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Table t = cluster.table("maint_small")) {
            steps.run("own flushes: every row and byte", () -> {
                int i = 0;
                for (Result result : results(t, new Scan().setCaching(500))) {
                    Expect.equal(row(i), s(result.getRow()), "row");
                    Expect.that(Arrays.equals(value(i), result.value()), "value of row " + i);
                    i++;
                }
                Expect.equal(6_000, i, "rows");
            });
        }
        try (Table t = cluster.table("maint")) {
            steps.run("compacted rows kept", () -> {
                Expect.equal("f:q@8=7 f:q@7=6", timed(t.get(get("all").readAllVersions())), "two versions");
                Expect.equal("f:q@8=7 g:q=7", timed(t.get(get("row7"))).replaceAll("g:q@\\d+", "g:q"), "the undeleted row");
                Expect.equal("g:q=6", untimed(t.get(get("row6"))), "a deleted column's row");
            });
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("maint"));
    }
}
