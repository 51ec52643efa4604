// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.results;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.metrics.ScanMetrics;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Every option of Get and Scan, on memstore and files, in one region and several. */
public final class Reads implements Program {
    /** Rows of the long table: r000 … r199, over three regions. */
    private static final int ROWS = 200;

    private final Cluster cluster;

    public Reads(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("small: create and put", () -> {
            try (Table table = cluster.create("read_small", Cluster.family("f", 5), Cluster.family("g", 5))) {
                // Half of the table is flushed, so that every read merges a file and the memstore.
                table.put(List.of(put("a", "f:x@1=1", "f:y@1=1", "g:x@1=1"), put("b", "f:x@1=1", "f:x@2=2", "g:z@5=5")));
                cluster.flush("read_small");
                table.put(List.of(put("a", "f:x@3=3", "g:x@4=4"), put("c", "f:x@1=1"), put("cc", "g:x@1=1"), put("d", "f:y@9=9")));
            }
        });
        steps.must("long: create and put", () -> {
            try (Table table = cluster.create("read_long", keys("r050", "r120"), Cluster.family("f"))) {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    puts.add(put(row(i), "f:a=a" + i, "f:b=b" + i, "f:c=c" + i));
                }
                table.put(puts.subList(0, 100));
                cluster.flush("read_long");
                table.put(puts.subList(100, ROWS));
                // Holes: rows whose cells are all deleted, which a scan must skip.
                table.delete(new Delete(b(row(60))));
                table.delete(new Delete(b(row(150))));
            }
        });
        steps.must("wide: create and put", () -> {
            try (Table table = cluster.create("read_wide", Cluster.family("f"))) {
                for (String row : List.of("v", "w", "x")) {
                    Put put = new Put(b(row));
                    byte[] value = new byte[10_000];
                    Arrays.fill(value, (byte) row.charAt(0));
                    for (int i = 0; i < 500; i++) {
                        put.addColumn(b("f"), b(String.format("q%04d", i)), value);
                    }
                    table.put(put);
                }
            }
        });
        steps.must("raw: create, put and delete", () -> {
            try (Table table = cluster.create("read_raw", Cluster.family("f", 3))) {
                table.put(put("r", "f:q@1=1", "f:q@2=2", "f:q@3=3", "f:q@4=4", "f:r@1=1", "f:r@2=2"));
                table.delete(new Delete(b("r")).addColumn(b("f"), b("q"), 3).addColumn(b("f"), b("q"), 4).addColumns(b("f"), b("r"), 2));
                table.delete(new Delete(b("r")).addFamily(b("f"), 1));
                table.delete(new Delete(b("r")).addFamilyVersion(b("f"), 1));
                table.put(put("r", "f:q@3=again"));
            }
        });
        // Not in the check phase: a restart may flush, which drops puts that markers hide.
        try (Table raw = cluster.table("read_raw")) {
            raw(steps, raw);
        }
        check(steps);
    }

    private static String row(int i) {
        return String.format("r%03d", i);
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Table small = cluster.table("read_small"); Table rows = cluster.table("read_long"); Table wide = cluster.table("read_wide")) {
            gets(steps, small);
            scans(steps, small);
            ranges(steps, rows);
            pages(steps, rows);
            wide(steps, wide);
        }
    }

    private void gets(Steps steps, Table t) {
        steps.run("get: row", () -> Expect.equal("f:x@3=3 f:y@1=1 g:x@4=4", timed(t.get(get("a"))), "a"));
        steps.run("get: nothing", () -> {
            Result result = t.get(get("nothing"));
            Expect.that(result.isEmpty() && result.getRow() == null && result.rawCells().length == 0, "an empty result");
        });
        steps.run("get: columns of two families", () -> Expect.equal("f:y@1=1 g:x@4=4",
            timed(t.get(get("a").addColumn(b("g"), b("x")).addColumn(b("f"), b("y")))), "a"));
        steps.run("get: a family beats its column", () -> Expect.equal("f:x@3=3 f:y@1=1",
            timed(t.get(get("a").addColumn(b("f"), b("x")).addFamily(b("f")))), "a"));
        steps.run("get: an absent column", () -> Expect.equal("",
            timed(t.get(get("a").addColumn(b("f"), b("nothing")))), "a"));
        steps.run("get: versions", () -> Expect.equal("f:x@3=3 f:x@1=1 f:y@1=1 g:x@4=4 g:x@1=1",
            timed(t.get(get("a").readAllVersions())), "a"));
        steps.run("get: time range and timestamp", () -> {
            Expect.equal("f:x@1=1 f:y@1=1 g:x@1=1", timed(t.get(get("a").setTimeRange(0, 3))), "[0, 3)");
            Expect.equal("g:x@4=4", timed(t.get(get("a").setTimestamp(4))), "4");
        });
        steps.run("get: existence only", () -> {
            Expect.that(t.exists(get("a")), "a");
            Expect.that(!t.exists(get("nothing")), "nothing");
            Expect.that(!t.exists(get("a").addColumn(b("f"), b("nothing"))), "a column that is not");
            Result result = t.get(get("a").setCheckExistenceOnly(true));
            Expect.that(result.getExists() && result.isEmpty(), "only the flag: " + result);
            Expect.equal("[true, false, true]", Arrays.toString(t.exists(List.of(get("a"), get("zz"), get("d")))), "several");
        });
        steps.run("get: several", () -> {
            Result[] results = t.get(List.of(get("d"), get("nothing"), get("b").addFamily(b("f"))));
            Expect.equal("f:y@9=9||f:x@2=2", timed(results[0]) + "|" + timed(results[1]) + "|" + timed(results[2]), "results");
        });
        steps.run("get: limit and offset per family", () -> Expect.equal("f:y@1=1",
            timed(t.get(get("a").setMaxResultsPerColumnFamily(1).setRowOffsetPerColumnFamily(1))), "a"));
    }

    private void scans(Steps steps, Table t) {
        steps.run("scan: everything", () -> Expect.equal(
            "a/f:x@3=3 a/f:y@1=1 a/g:x@4=4 b/f:x@2=2 b/g:z@5=5 c/f:x@1=1 cc/g:x@1=1 d/f:y@9=9", timed(t, new Scan()), "cells"));
        steps.run("scan: borders in and out", () -> {
            Expect.equal("b c cc", rowLine(t, new Scan().withStartRow(b("b")).withStopRow(b("d"))), "[b, d)");
            Expect.equal("c cc d", rowLine(t, new Scan().withStartRow(b("b"), false).withStopRow(b("d"), true)), "(b, d]");
            Expect.equal("b", rowLine(t, new Scan().withStartRow(b("b")).withStopRow(b("b"), true)), "[b, b]");
            Expect.equal("", rowLine(t, new Scan().withStartRow(b("ba")).withStopRow(b("bz"))), "between rows");
            Expect.equal("", rowLine(t, new Scan().withStartRow(b("d")).withStopRow(b("b"))), "the wrong way round");
        });
        steps.run("scan: reversed, borders in and out", () -> {
            Expect.equal("d cc c b a", rowLine(t, new Scan().setReversed(true)), "all");
            Expect.equal("cc c b", rowLine(t, new Scan().setReversed(true).withStartRow(b("cc")).withStopRow(b("a"))), "[cc, a)");
            Expect.equal("c b a", rowLine(t, new Scan().setReversed(true).withStartRow(b("cc"), false).withStopRow(b("a"), true)),
                "(cc, a]");
            Expect.equal("c b a", rowLine(t, new Scan().setReversed(true).withStartRow(b("cb"))), "from between rows");
        });
        steps.run("scan: prefix", () -> Expect.equal("c cc", rowLine(t, Text.prefix(b("c"))), "c…"));
        steps.run("scan: family", () -> Expect.equal("a/g:x@4=4 b/g:z@5=5 cc/g:x@1=1", timed(t, new Scan().addFamily(b("g"))), "g"));
        steps.run("scan: column", () -> Expect.equal("a/f:y@1=1 d/f:y@9=9", timed(t, new Scan().addColumn(b("f"), b("y"))), "f:y"));
        steps.run("scan: versions", () -> Expect.equal("a/f:x@3=3 a/f:x@1=1 b/f:x@2=2 b/f:x@1=1 c/f:x@1=1",
            timed(t, new Scan().addColumn(b("f"), b("x")).readVersions(2)), "two of f:x"));
        steps.run("scan: time range", () -> {
            Expect.equal("a/f:x@3=3 a/g:x@4=4 b/f:x@2=2", timed(t, new Scan().setTimeRange(2, 5)), "[2, 5)");
            Expect.equal("a/f:x@1=1 a/f:y@1=1 a/g:x@4=4 b/f:x@1=1 b/g:z@5=5 c/f:x@1=1 cc/g:x@1=1",
                timed(t, new Scan().setColumnFamilyTimeRange(b("f"), 0, 2)), "[0, 2) of f alone");
        });
        steps.run("scan: limit", () -> Expect.equal("b c", rowLine(t, new Scan().withStartRow(b("b")).setLimit(2)), "two rows"));
        steps.run("scan: one row", () -> Expect.equal("b", rowLine(t, new Scan().withStartRow(b("b")).setOneRowLimit()), "one row"));
        steps.run("scan: raw", () -> Expect.equal(
            "a/f:x@3=3 a/f:x@1=1 a/f:y@1=1 a/g:x@4=4 a/g:x@1=1",
            timed(t, new Scan().setRaw(true).readAllVersions().withStopRow(b("b"))), "a"));
        steps.run("scan: raw of one version keeps one", () -> Expect.equal(
            "a/f:x@3=3 a/f:y@1=1 a/g:x@4=4", timed(t, new Scan().setRaw(true).withStopRow(b("b"))), "a"));
        steps.run("scan: by family or column alone", () -> {
            try (ResultScanner scanner = t.getScanner(b("g"))) {
                Expect.equal(3, scanner.next(10).length, "rows of g");
            }
            try (ResultScanner scanner = t.getScanner(b("f"), b("y"))) {
                Expect.equal(2, scanner.next(10).length, "rows of f:y");
            }
        });
        steps.run("scan: stream and positional reads", () -> {
            Expect.equal("a b c cc d", rowLine(t, new Scan().setReadType(Scan.ReadType.STREAM)), "stream");
            Expect.equal("a b c cc d", rowLine(t, new Scan().setReadType(Scan.ReadType.PREAD)), "pread");
        });
        steps.run("scan: a reader sees its moment", () -> {
            try (ResultScanner scanner = t.getScanner(new Scan().setCaching(1))) {
                Expect.equal("a", s(scanner.next().getRow()), "first");
                t.put(put("bb", "f:x@1=later"));
                t.put(put("c", "f:y@1=later"));
                List<String> rest = new ArrayList<>();
                for (Result r = scanner.next(); r != null; r = scanner.next()) {
                    rest.add(s(r.getRow()) + " " + timed(r));
                }
                t.delete(new Delete(b("bb")));
                t.delete(new Delete(b("c")).addColumns(b("f"), b("y")));
                Expect.equal("[b f:x@2=2 g:z@5=5, c f:x@1=1, cc g:x@1=1, d f:y@9=9]", rest.toString(), "rest");
            }
        });
    }

    /** Markers do not count as versions; puts that they hide do. */
    private void raw(Steps steps, Table t) {
        String all = "@1!DeleteFamily @1!DeleteFamilyVersion q@4!Delete q@4=4 q@3!Delete q@3=again q@2=2 q@1=1 "
            + "r@2!DeleteColumn r@2=2 r@1=1";
        String[] answers = {
            "@1!DeleteFamily @1!DeleteFamilyVersion q@4!Delete q@4=4 q@3!Delete r@2!DeleteColumn r@2=2",
            "@1!DeleteFamily @1!DeleteFamilyVersion q@4!Delete q@4=4 q@3!Delete q@3=again r@2!DeleteColumn r@2=2 r@1=1",
            "@1!DeleteFamily @1!DeleteFamilyVersion q@4!Delete q@4=4 q@3!Delete q@3=again q@2=2 r@2!DeleteColumn r@2=2 r@1=1",
            all, all};
        for (int versions = 1; versions <= answers.length; versions++) {
            int n = versions;
            steps.run("raw: " + n + " versions", () ->
                Expect.equal(answers[n - 1], rawCells(t, new Scan().setRaw(true).readVersions(n)), "cells"));
        }
        steps.run("raw: within a time range", () ->
            Expect.equal("q@3!Delete q@3=again q@2=2 r@2!DeleteColumn r@2=2",
                rawCells(t, new Scan().setRaw(true).readAllVersions().setTimeRange(2, 4)), "cells"));
    }

    private static String rawCells(Table t, Scan scan) throws IOException {
        return timed(t, scan).replace("r/f:", "");
    }

    private void ranges(Steps steps, Table t) {
        List<String> all = new ArrayList<>();
        for (int i = 0; i < ROWS; i++) {
            if (i != 60 && i != 150) {
                all.add(row(i));
            }
        }
        List<String> backwards = new ArrayList<>(all);
        java.util.Collections.reverse(backwards);
        for (int caching : new int[] {1, 7, 100, 1_000}) {
            steps.run("regions: forward and backward, caching " + caching, () -> {
                Expect.equalLists(all, Text.rows(t, new Scan().setCaching(caching)), "forward");
                Expect.equalLists(backwards, Text.rows(t, new Scan().setCaching(caching).setReversed(true)), "backward");
            });
        }
        steps.run("regions: a limit across a border", () -> {
            Expect.equalLists(all.subList(40, 60), Text.rows(t, new Scan().withStartRow(b(row(40))).setLimit(20)), "forward");
            // all[i] is row i up to the first hole.
            List<String> down = new ArrayList<>(all.subList(41, 56));
            java.util.Collections.reverse(down);
            Expect.equalLists(down, Text.rows(t, new Scan().withStartRow(b(row(55))).setReversed(true).setLimit(15)), "backward");
        });
        steps.run("regions: start and stop exactly at a border", () -> {
            Expect.equal("r049", rowLine(t, new Scan().withStartRow(b("r049")).withStopRow(b("r050"))), "before");
            Expect.equal("r049 r050", rowLine(t, new Scan().withStartRow(b("r049")).withStopRow(b("r050"), true)), "with it");
            Expect.equal("r050 r049", rowLine(t, new Scan().setReversed(true).withStartRow(b("r050")).withStopRow(b("r048"))), "back");
            Expect.equal("r049", rowLine(t, new Scan().setReversed(true).withStartRow(b("r050"), false).withStopRow(b("r048"))),
                "back without");
        });
        steps.run("regions: a scan closed early", () -> {
            for (int i = 0; i < 20; i++) {
                try (ResultScanner scanner = t.getScanner(new Scan().setCaching(2))) {
                    Expect.equal("r000", s(scanner.next().getRow()), "first row");
                }
            }
        });
        steps.run("regions: small result size", () ->
            Expect.equalLists(all, Text.rows(t, new Scan().setMaxResultSize(100)), "rows"));
        steps.run("regions: metrics of a scan", () -> {
            Scan scan = new Scan().setScanMetricsEnabled(true);
            try (ResultScanner scanner = t.getScanner(scan)) {
                while (scanner.next() != null) {
                    // the rows are only counted
                }
                ScanMetrics metrics = scanner.getScanMetrics();
                Expect.equal(3L, metrics.countOfRegions.get(), "regions scanned");
                // Rows that only have markers are counted, too.
                Expect.equal(200L, metrics.countOfRowsScanned.get(), "rows scanned");
            }
        });
    }

    private void pages(Steps steps, Table t) {
        steps.run("batch: cells per result", () -> {
            List<String> sizes = new ArrayList<>();
            for (Result result : results(t, new Scan().setBatch(2).setLimit(0).withStopRow(b("r003")))) {
                sizes.add(s(result.getRow()) + " " + result.size());
            }
            Expect.equal("[r000 2, r000 1, r001 2, r001 1, r002 2, r002 1]", sizes.toString(), "parts");
        });
        steps.run("batch: may have more cells", () -> {
            List<Boolean> more = new ArrayList<>();
            for (Result result : results(t, new Scan().setBatch(2).withStopRow(b("r001")))) {
                more.add(result.mayHaveMoreCellsInRow());
            }
            Expect.equal(true, more.get(0), "after the first part");
        });
        steps.run("next(n) and renewLease", () -> {
            try (ResultScanner scanner = t.getScanner(new Scan().setCaching(10))) {
                Expect.equal(25, scanner.next(25).length, "rows");
                Expect.that(scanner.renewLease(), "the lease is renewed");
                Expect.equal("r025", s(scanner.next().getRow()), "next row");
            }
        });
    }

    /** Rows of 5 MB each: larger than one response. */
    private void wide(Steps steps, Table t) {
        steps.run("wide: rows come whole", () -> {
            List<String> rows = new ArrayList<>();
            for (Result result : results(t, new Scan())) {
                rows.add(s(result.getRow()) + " " + result.size());
                Expect.that(!result.mayHaveMoreCellsInRow(), "whole");
            }
            Expect.equal("[v 500, w 500, x 500]", rows.toString(), "rows and cells");
        });
        steps.run("wide: backwards", () -> {
            List<String> rows = new ArrayList<>();
            for (Result result : results(t, new Scan().setReversed(true))) {
                rows.add(s(result.getRow()) + " " + result.size());
            }
            Expect.equal("[x 500, w 500, v 500]", rows.toString(), "rows and cells");
        });
        steps.run("wide: partial results", () -> {
            int cells = 0;
            int partials = 0;
            String last = "";
            for (Result result : results(t, new Scan().setAllowPartialResults(true).setMaxResultSize(100_000))) {
                for (Cell cell : result.rawCells()) {
                    String key = s(CellUtil.cloneRow(cell)) + s(CellUtil.cloneQualifier(cell));
                    Expect.that(key.compareTo(last) > 0, key + " after " + last);
                    last = key;
                    cells++;
                }
                partials += result.mayHaveMoreCellsInRow() ? 1 : 0;
            }
            Expect.equal(1_500, cells, "cells");
            Expect.that(partials > 100, "parts: " + partials);
        });
        steps.run("wide: batch and result size", () -> {
            int cells = 0;
            for (Result result : results(t, new Scan().setBatch(30).setMaxResultSize(1_000_000))) {
                Expect.that(result.size() <= 30, result.size() + " cells");
                cells += result.size();
            }
            Expect.equal(1_500, cells, "cells");
        });
        steps.run("wide: get", () -> Expect.equal(500, t.get(get("w")).size(), "cells"));
        steps.run("wide: columns by name", () -> {
            Get get = get("x");
            for (int i = 0; i < 500; i += 99) {
                get.addColumn(b("f"), b(String.format("q%04d", i)));
            }
            Expect.equal(6, t.get(get).size(), "cells");
        });
        steps.run("wide: untouched bytes", () -> {
            String column = untimed(t.get(get("w").addColumn(b("f"), b("q0499"))));
            Expect.that(column.equals("f:q0499=" + "w".repeat(10_000)), "value of 10,000 w");
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("read_"));
    }
}
