// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * The webtable and the data model's fragments (seed 002): explicit timestamps, versions, every kind of delete.
 *
 * <p>Most states exist twice, in a table that is flushed and in one that is not, so that a check after a kill reads
 * from files and from the log.
 */
public final class WebTable implements Program {
    private static final String CNN = "com.cnn.www";
    private static final String EXAMPLE = "com.example.www";
    private static final String[] WEB = {"webtable_log", "webtable_file"};
    private static final String[] DELETES = {"webdel_log", "webdel_file"};
    private static final String CLOCK = "clock";
    private static final long FUTURE = 32_503_680_000_000L; // the year 3000

    private final Cluster cluster;

    public WebTable(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        for (String table : WEB) {
            steps.must(table + ": create", () -> cluster.create(table, Cluster.family("contents", 5),
                Cluster.family("anchor", 5), Cluster.family("people", 5)).close());
            steps.must(table + ": put", () -> writeWeb(table));
            web(steps, table, "memstore");
        }
        steps.must("flush", () -> cluster.flush("webtable_file"));
        web(steps, "webtable_file", "flushed");

        for (String table : DELETES) {
            steps.must(table + ": create", () -> cluster.create(table, Cluster.family("cf", 5), Cluster.family("cg", 5)).close());
            steps.must(table + ": put and delete", () -> writeDeletes(table));
            deletes(steps, table, "memstore");
        }
        steps.must("flush", () -> cluster.flush("webdel_file"));
        deletes(steps, "webdel_file", "flushed");

        fragments(steps);
        versionsVanish(steps);
        markersHideUntilMajorCompaction(steps);
        newestVersionWithoutTimestamp(steps);
    }

    @Override
    public void check(Steps steps) throws Exception {
        for (String table : WEB) {
            web(steps, table, "kept");
        }
        for (String table : DELETES) {
            deletes(steps, table, "kept");
        }
        keptFragments(steps, "kept");
    }

    // ---- the webtable ------------------------------------------------------------------------------------------------

    private void writeWeb(String name) throws IOException {
        try (Table table = cluster.table(name)) {
            // Written out of order: versions are kept newest first whatever the order of writing.
            table.put(put(CNN, "contents:html@5=<html>5", "contents:html@6=<html>6"));
            table.put(put(CNN, "contents:html@3=<html>3", "anchor:cnnsi.com@9=CNN", "anchor:my.look.ca@8=CNN.com"));
            table.put(put(EXAMPLE, "contents:html@5=<html>5", "people:author@5=John Doe"));
            table.put(binaryRow());
        }
    }

    private static final byte[] BINARY = {0, (byte) 0xff, 1, 0, (byte) 0x80};

    /** Empty and binary qualifiers and values. */
    private static Put binaryRow() {
        Put put = new Put(BINARY);
        put.addColumn(b("people"), new byte[0], 1, new byte[0]);
        put.addColumn(b("people"), BINARY, 1, BINARY);
        put.addColumn(b("people"), new byte[] {0}, 1, new byte[] {0});
        return put;
    }

    private void web(Steps steps, String name, String state) throws Exception {
        String in = name + " " + state + ": ";
        try (Table table = cluster.table(name)) {
            steps.run(in + "no timestamp gives the newest of each column", () -> Expect.equal(
                "anchor:cnnsi.com@9=CNN anchor:my.look.ca@8=CNN.com contents:html@6=<html>6", timed(table.get(get(CNN))), "row"));
            steps.run(in + "contents:html at t8 is nothing", () -> Expect.equal("",
                timed(table.get(get(CNN).addColumn(b("contents"), b("html")).setTimestamp(8))), "cells"));
            steps.run(in + "anchor:my.look.ca at t9 is nothing", () -> Expect.equal("",
                timed(table.get(get(CNN).addColumn(b("anchor"), b("my.look.ca")).setTimestamp(9))), "cells"));
            steps.run(in + "one version by its timestamp", () -> Expect.equal("contents:html@5=<html>5",
                timed(table.get(get(CNN).addColumn(b("contents"), b("html")).setTimestamp(5))), "cells"));
            steps.run(in + "all versions, newest first", () -> Expect.equal(
                "contents:html@6=<html>6 contents:html@5=<html>5 contents:html@3=<html>3",
                timed(table.get(get(CNN).addFamily(b("contents")).readAllVersions())), "cells"));
            steps.run(in + "two versions", () -> Expect.equal("contents:html@6=<html>6 contents:html@5=<html>5",
                timed(table.get(get(CNN).addFamily(b("contents")).readVersions(2))), "cells"));
            steps.run(in + "a time range is [min, max)", () -> {
                Get range = get(CNN).addFamily(b("contents")).setTimeRange(3, 6);
                Expect.equal("contents:html@5=<html>5", timed(table.get(range)), "newest within");
                Expect.equal("contents:html@5=<html>5 contents:html@3=<html>3", timed(table.get(range.readAllVersions())), "all within");
                Expect.equal("", timed(table.get(get(CNN).addFamily(b("contents")).setTimeRange(7, 100))), "none within");
            });
            steps.run(in + "a family's own time range", () -> Expect.equal(
                "anchor:cnnsi.com@9=CNN anchor:my.look.ca@8=CNN.com contents:html@3=<html>3",
                timed(table.get(get(CNN).setColumnFamilyTimeRange(b("contents"), 0, 5))), "cells"));
            steps.run(in + "TimestampsFilter", () -> Expect.equal(
                "anchor:my.look.ca@8=CNN.com contents:html@5=<html>5 contents:html@3=<html>3",
                timed(table.get(get(CNN).readAllVersions().setFilter(new TimestampsFilter(List.of(3L, 5L, 8L))))), "cells"));
            steps.run(in + "scan at one timestamp", () -> Expect.equal(
                CNN + "/contents:html@5=<html>5 " + EXAMPLE + "/contents:html@5=<html>5 " + EXAMPLE + "/people:author@5=John Doe",
                timed(table, new Scan().setTimestamp(5)), "cells"));
            steps.run(in + "scan of one family", () -> Expect.equal(
                CNN + "/anchor:cnnsi.com@9=CNN " + CNN + "/anchor:my.look.ca@8=CNN.com",
                timed(table, new Scan().addFamily(b("anchor"))), "cells"));
            steps.run(in + "map of maps of maps", () -> mapOfMaps(table.get(get(CNN).readAllVersions())));
            steps.run(in + "empty and binary names and values", () -> binary(table.get(new Get(BINARY))));
            steps.run(in + "rows in order of unsigned bytes", () -> Expect.equal(
                s(BINARY) + " " + CNN + " " + EXAMPLE, rowLine(table, new Scan()), "rows"));
        }
    }

    private static void mapOfMaps(Result result) {
        NavigableMap<byte[], NavigableMap<byte[], NavigableMap<Long, byte[]>>> map = result.getMap();
        List<String> lines = new ArrayList<>();
        map.forEach((family, columns) -> columns.forEach((qualifier, versions) -> versions.forEach((time, value) ->
            lines.add(s(family) + " " + s(qualifier) + " " + time + " " + s(value)))));
        Expect.equalLists(List.of("anchor cnnsi.com 9 CNN", "anchor my.look.ca 8 CNN.com",
            "contents html 6 <html>6", "contents html 5 <html>5", "contents html 3 <html>3"), lines, "map");
    }

    private static void binary(Result result) {
        Expect.equal(3, result.size(), "cells");
        Cell[] cells = result.rawCells();
        Expect.that(Bytes.equals(BINARY, result.getRow()), "row " + s(result.getRow()));
        byte[][] names = {new byte[0], {0}, BINARY};
        for (int i = 0; i < names.length; i++) {
            Expect.that(Bytes.equals(names[i], CellUtil.cloneQualifier(cells[i])), "qualifier " + i + " is " + cells[i]);
            Expect.that(Bytes.equals(names[i], CellUtil.cloneValue(cells[i])), "value " + i + " of " + cells[i]);
        }
        Expect.that(result.containsEmptyColumn(b("people"), new byte[0]), "the empty value of the empty name");
    }

    // ---- deletes -----------------------------------------------------------------------------------------------------

    /** Each row gets one kind of delete. Before that, families cf and cg have the columns a and b at 1, 2, 3. */
    private void writeDeletes(String name) throws IOException {
        byte[] cf = b("cf");
        byte[] a = b("a");
        try (Table table = cluster.table(name)) {
            for (String row : List.of("column", "columns", "family", "familyversion", "row", "rowat", "exact")) {
                for (long t = 1; t <= 3; t++) {
                    Put put = new Put(b(row));
                    for (String column : List.of("a", "b")) {
                        put.addColumn(cf, b(column), t, b(column + t));
                        if (!row.equals("exact")) {
                            put.addColumn(b("cg"), b(column), t, b(column + t));
                        }
                    }
                    table.put(put);
                }
            }
            table.delete(delete("column").addColumn(cf, a, 2));
            table.delete(delete("columns").addColumns(cf, a, 2));
            table.delete(delete("family").addFamily(cf, 2));
            table.delete(delete("familyversion").addFamilyVersion(cf, 2));
            table.delete(delete("row"));
            table.delete(new org.apache.hadoop.hbase.client.Delete(b("rowat"), 2));
            table.delete(delete("exact").addColumn(cf, a, 3).addColumn(cf, a, 2));
            table.delete(delete("exact").addColumns(cf, b("b"), 2));
        }
    }

    private void deletes(Steps steps, String name, String state) throws Exception {
        String in = name + " " + state + ": ";
        String cg = "cg:a@3=a3 cg:a@2=a2 cg:a@1=a1 cg:b@3=b3 cg:b@2=b2 cg:b@1=b1";
        String cfB = "cf:b@3=b3 cf:b@2=b2 cf:b@1=b1";
        try (Table table = cluster.table(name)) {
            deleted(steps, in + "one version of a column", table, "column", "cf:a@3=a3 cf:a@1=a1 " + cfB + " " + cg);
            deleted(steps, in + "all versions of a column up to a time", table, "columns", "cf:a@3=a3 " + cfB + " " + cg);
            deleted(steps, in + "a family up to a time", table, "family", "cf:a@3=a3 cf:b@3=b3 " + cg);
            deleted(steps, in + "one timestamp of a family", table, "familyversion", "cf:a@3=a3 cf:a@1=a1 cf:b@3=b3 cf:b@1=b1 " + cg);
            deleted(steps, in + "a row", table, "row", "");
            deleted(steps, in + "a row up to a time", table, "rowat", "cf:a@3=a3 cf:b@3=b3 cg:a@3=a3 cg:b@3=b3");
            steps.run(in + "older versions within a range, past the deleted one", () -> Expect.equal("cf:a@1=a1",
                timed(table.get(get("column").addColumn(b("cf"), b("a")).setTimeRange(0, 3))), "cells"));
            // A flush leaves markers but not the puts they hide.
            steps.run(in + "exact order of a raw scan", () -> raw(table, "exact", state,
                "cf:a@3!Delete cf:a@3=a3 cf:a@2!Delete cf:a@2=a2 cf:a@1=a1 cf:b@3=b3 cf:b@2!DeleteColumn cf:b@2=b2 cf:b@1=b1",
                "cf:a@3!Delete cf:a@2!Delete cf:a@1=a1 cf:b@3=b3 cf:b@2!DeleteColumn"));
            steps.run(in + "a row delete is one marker per family", () -> {
                String marker = "@" + CLOCK + "!DeleteFamily";
                raw(table, "row", state, "cf:" + marker + " cf:a@3=a3 cf:a@2=a2 cf:a@1=a1 " + cfB + " cg:" + marker + " " + cg,
                    "cf:" + marker + " cg:" + marker);
            });
            steps.run(in + "raw scan of a family marker", () -> raw(table, "family", state,
                "cf:@2!DeleteFamily cf:a@3=a3 cf:a@2=a2 cf:a@1=a1 " + cfB + " " + cg,
                "cf:@2!DeleteFamily cf:a@3=a3 cf:b@3=b3 " + cg));
            steps.run(in + "raw scan of a family version marker", () -> raw(table, "familyversion", state,
                "cf:@2!DeleteFamilyVersion cf:a@3=a3 cf:a@2=a2 cf:a@1=a1 " + cfB + " " + cg,
                "cf:@2!DeleteFamilyVersion cf:a@3=a3 cf:a@1=a1 cf:b@3=b3 cf:b@1=b1 " + cg));
        }
    }

    private static void deleted(Steps steps, String step, Table table, String row, String left) {
        steps.run(step, () -> {
            Expect.equal(left, timed(table.get(get(row).readAllVersions())), "get");
            Expect.equal(left.isEmpty() ? "" : row + "/" + left.replace(" ", " " + row + "/"),
                timed(table, new Scan().withStartRow(b(row)).withStopRow(b(row), true).readAllVersions()), "scan");
        });
    }

    /** Checks a raw scan of one row; timestamps from the clock are shown as {@link #CLOCK}. In the state "kept" the row may have
     * been flushed or not. */
    private static void raw(Table table, String row, String state, String inMemory, String flushed) throws IOException {
        String cells = raw(table, row).replaceAll("@\\d{13}!", "@" + CLOCK + "!");
        switch (state) {
            case "memstore" -> Expect.equal(inMemory, cells, "cells");
            case "flushed" -> Expect.equal(flushed, cells, "cells");
            default -> Expect.that(cells.equals(inMemory) || cells.equals(flushed), "expected '" + inMemory + "' or '"
                + flushed + "', got '" + cells + "'");
        }
    }

    private static String raw(Table table, String row) throws IOException {
        try (ResultScanner scanner = table.getScanner(
            new Scan().withStartRow(b(row)).withStopRow(b(row), true).setRaw(true).readAllVersions())) {
            return timed(scanner.next());
        }
    }

    // ---- the fragments -----------------------------------------------------------------------------------------------

    private void fragments(Steps steps) throws Exception {
        byte[] cf = b("cf");
        byte[] attr = b("attr");
        steps.must("fragments: create", () -> cluster.create("fragments", Cluster.family("cf", 3)).close());
        try (Table table = cluster.table("fragments")) {
            steps.must("fragments: put", () -> {
                for (String row : List.of("row1", "row2", "row3", "abc1", "abc2", "abc3")) {
                    table.put(put(row, "cf:attr@100=old", "cf:attr@200=middle", "cf:attr@300=new"));
                    table.put(put(row, "cf:other@1=x"));
                }
            });
            steps.run("fragments: a put without timestamp gets the server's clock", () -> {
                long before = System.currentTimeMillis();
                table.put(put("clock", "cf:attr=now"));
                long after = System.currentTimeMillis();
                long stamp = table.get(get("clock")).getColumnLatestCell(cf, attr).getTimestamp();
                Expect.that(before - 1 <= stamp && stamp <= after + 1, stamp + " is not within " + before + "…" + after);
                table.delete(delete("clock"));
            });
            steps.run("fragments: a put at 555", () -> {
                table.put(put("row1", "cf:attr@555=at 555"));
                Expect.equal("cf:attr@555=at 555", timed(table.get(get("row1").addColumn(cf, attr))), "current");
            });
            steps.run("fragments: a put at an existing timestamp replaces the value", () -> {
                table.put(put("row1", "cf:attr@555=again"));
                Expect.equal("cf:attr@555=again cf:attr@300=new cf:attr@200=middle",
                    timed(table.get(get("row1").addColumn(cf, attr).readAllVersions())), "versions");
            });
            steps.run("fragments: a version in the future stays current", () -> {
                table.put(put("row2", "cf:attr@" + FUTURE + "=future"));
                table.put(put("row2", "cf:attr=present"));
                Expect.equal("cf:attr@" + FUTURE + "=future", timed(table.get(get("row2").addColumn(cf, attr))), "current");
            });
        }
        keptFragments(steps, "memstore");
        steps.must("fragments: flush", () -> cluster.flush("fragments"));
        keptFragments(steps, "flushed");
        try (Table table = cluster.table("fragments")) {
            steps.run("fragments: no versions asked for", () ->
                Expect.fails(IOException.class, "versions must be positive", () -> get("row1").readVersions(0)));
            steps.run("fragments: the deprecated call refuses none", () ->
                Expect.fails(IOException.class, "versions must be positive", () -> get("row1").setMaxVersions(0)));
            steps.run("fragments: a prefix scan's borders", () -> {
                Scan scan = Text.prefix(b("row"));
                Expect.equal("row rox", s(scan.getStartRow()) + " " + s(scan.getStopRow()), "borders");
                Scan open = Text.prefix(new byte[] {(byte) 0xff, (byte) 0xff});
                Expect.equal(0, open.getStopRow().length, "stop row of a prefix of only 0xFF");
                Expect.equal("", rowLine(table, open), "rows above 0xFF 0xFF");
            });
        }
    }

    @SuppressWarnings("deprecation") // the post's own calls
    private void keptFragments(Steps steps, String state) throws Exception {
        byte[] cf = b("cf");
        byte[] attr = b("attr");
        String in = "fragments " + state + ": ";
        try (Table table = cluster.table("fragments")) {
            steps.run(in + "get with three versions", () -> {
                Result result = table.get(get("row3").readVersions(3));
                Expect.equal("new", s(result.getValue(cf, attr)), "current value");
                List<String> versions = new ArrayList<>();
                result.getColumnCells(cf, attr).forEach(cell -> versions.add(s(CellUtil.cloneValue(cell))));
                Expect.equal(List.of("new", "middle", "old"), versions, "versions");
            });
            steps.run(in + "setMaxVersions and setTimeRange", () -> {
                Expect.equal("cf:attr@555=again cf:attr@300=new cf:attr@200=middle cf:other@1=x",
                    timed(table.get(get("row1").setMaxVersions())), "all versions");
                Expect.equal("cf:attr@300=new cf:other@1=x", timed(table.get(get("row1").setTimeRange(0, 555))), "older");
            });
            steps.run(in + "scan of one column with a row prefix", () -> {
                Scan scan = new Scan().addColumn(cf, attr).setRowPrefixFilter(b("row"));
                ResultScanner scanner = table.getScanner(scan);
                List<String> rows = new ArrayList<>();
                try {
                    for (Result result = scanner.next(); result != null; result = scanner.next()) {
                        rows.add(s(result.getRow()) + " " + untimed(result));
                    }
                } finally {
                    scanner.close();
                }
                Expect.equalLists(List.of("row1 cf:attr=again", "row2 cf:attr=future", "row3 cf:attr=new"), rows, "rows");
            });
        }
    }

    /** Versions beyond VERSIONS disappear for readers at once, and from storage at a flush. */
    private void versionsVanish(Steps steps) throws Exception {
        steps.must("versions: create", () -> cluster.create("webversions", Cluster.family("cf", 3)).close());
        try (Table table = cluster.table("webversions")) {
            String newest = "cf:q@10=v10 cf:q@9=v9 cf:q@8=v8";
            steps.run("versions: logically at once", () -> {
                for (int t = 1; t <= 10; t++) {
                    table.put(put("r", "cf:q@" + t + "=v" + t));
                }
                Expect.equal(newest, timed(table.get(get("r").readAllVersions())), "versions");
                Expect.equal("cf:q@7=v7", timed(table.get(get("r").setTimeRange(0, 8))), "the newest of a range");
            });
            steps.run("versions: physically at a flush", () -> {
                cluster.flush("webversions");
                Expect.equal(newest, raw(table, "r"), "raw scan");
                Expect.equal("", timed(table.get(get("r").setTimeRange(0, 8))), "the newest of a range");
            });
        }
    }

    /** A marker hides later puts with an older timestamp, until a major compaction removes marker and hidden puts. */
    private void markersHideUntilMajorCompaction(Steps steps) throws Exception {
        byte[] cf = b("cf");
        steps.must("markers: create", () -> cluster.create("webmarkers", Cluster.family("cf", 5)).close());
        try (Table table = cluster.table("webmarkers")) {
            steps.run("markers: hide later puts with an older time", () -> {
                table.put(put("r", "cf:q@3=early"));
                table.delete(delete("r").addColumns(cf, b("q"), 5));
                table.put(put("r", "cf:q@4=late"));
                Expect.equal("", timed(table.get(get("r"))), "row");
                table.put(put("r", "cf:q@6=above"));
                Expect.equal("cf:q@6=above", timed(table.get(get("r").readAllVersions())), "row");
                Expect.equal("cf:q@6=above cf:q@5!DeleteColumn cf:q@4=late cf:q@3=early", raw(table, "r"), "raw scan");
            });
            steps.run("markers: still after a flush", () -> {
                cluster.flush("webmarkers");
                table.put(put("r", "cf:q@2=later still"));
                Expect.equal("cf:q@6=above", timed(table.get(get("r").readAllVersions())), "row");
            });
            steps.run("markers: gone with what they hid after a major compaction", () -> {
                cluster.flushAndMajorCompact("webmarkers");
                Expect.equal("cf:q@6=above", raw(table, "r"), "raw scan");
                table.put(put("r", "cf:q@4=free"));
                Expect.equal("cf:q@6=above cf:q@4=free", timed(table.get(get("r").readAllVersions())), "row");
            });
        }
    }

    private void newestVersionWithoutTimestamp(Steps steps) throws Exception {
        byte[] cf = b("cf");
        steps.must("newest: create", () -> cluster.create("webnewest", Cluster.family("cf", 5)).close());
        try (Table table = cluster.table("webnewest")) {
            steps.run("newest: its delete makes the next older one current", () -> {
                table.put(put("r", "cf:q@1=one", "cf:q@2=two", "cf:q@3=three"));
                table.delete(delete("r").addColumn(cf, b("q")));
                Expect.equal("cf:q@2=two", timed(table.get(get("r"))), "after one delete");
                table.delete(delete("r").addColumn(cf, b("q")));
                Expect.equal("cf:q@1=one", timed(table.get(get("r").readAllVersions())), "after two deletes");
                Expect.equal("cf:q@3!Delete cf:q@3=three cf:q@2!Delete cf:q@2=two cf:q@1=one", raw(table, "r"), "raw scan");
            });
            steps.run("newest: all versions without a time", () -> {
                table.put(put("s", "cf:q@1=one", "cf:q@2=two"));
                table.delete(delete("s").addColumns(cf, b("q")));
                Expect.equal("", timed(table.get(get("s").readAllVersions())), "row");
            });
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> {
            cluster.drop(WEB);
            cluster.drop(DELETES);
            cluster.drop("fragments", "webversions", "webmarkers", "webnewest");
        });
    }
}
