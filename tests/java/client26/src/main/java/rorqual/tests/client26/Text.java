// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
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
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Cells as text, so that a whole result can be compared as one line:
 * {@code row/family:qualifier@timestamp=value}, and {@code …@timestamp!DeleteColumn} for a marker.
 */
public final class Text {
    private Text() {}

    public static byte[] b(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static String s(byte[] bytes) {
        return bytes == null ? null : Bytes.toStringBinary(bytes);
    }

    /** A scan of the rows with this prefix; the name of the client's method for it depends on the version. */
    public static Scan prefix(byte[] prefix) {
        int length = prefix.length;
        while (length > 0 && prefix[length - 1] == (byte) 0xff) {
            length--;
        }
        byte[] stop = Arrays.copyOf(prefix, length);
        if (length > 0) {
            stop[length - 1]++;
        }
        return new Scan().withStartRow(prefix).withStopRow(stop);
    }

    /** Split keys from text. */
    public static byte[][] keys(String... texts) {
        byte[][] keys = new byte[texts.length][];
        for (int i = 0; i < texts.length; i++) {
            keys[i] = b(texts[i]);
        }
        return keys;
    }

    /** A Put of columns given as {@code family:qualifier=value} or {@code family:qualifier@timestamp=value}. */
    public static Put put(String row, String... columns) {
        Put put = new Put(b(row));
        for (String column : columns) {
            int equals = column.indexOf('=');
            int colon = column.indexOf(':');
            int at = column.lastIndexOf('@', equals);
            byte[] family = b(column.substring(0, colon));
            byte[] value = b(column.substring(equals + 1));
            if (at < 0) {
                put.addColumn(family, b(column.substring(colon + 1, equals)), value);
            } else {
                put.addColumn(family, b(column.substring(colon + 1, at)),
                    Long.parseLong(column.substring(at + 1, equals)), value);
            }
        }
        return put;
    }

    public static Get get(String row) {
        return new Get(b(row));
    }

    public static Delete delete(String row) {
        return new Delete(b(row));
    }

    /** {@code row/family:qualifier@timestamp=value}. */
    public static String full(Cell cell) {
        return s(CellUtil.cloneRow(cell)) + "/" + column(cell) + "@" + cell.getTimestamp() + content(cell);
    }

    /** {@code family:qualifier@timestamp=value}, for results of one row. */
    public static String timed(Cell cell) {
        return column(cell) + "@" + cell.getTimestamp() + content(cell);
    }

    /** {@code family:qualifier=value}, for results whose timestamps the server has chosen. */
    public static String untimed(Cell cell) {
        return column(cell) + content(cell);
    }

    private static String column(Cell cell) {
        return s(CellUtil.cloneFamily(cell)) + ":" + s(CellUtil.cloneQualifier(cell));
    }

    private static String content(Cell cell) {
        return cell.getType() == Cell.Type.Put ? "=" + s(CellUtil.cloneValue(cell)) : "!" + cell.getType();
    }

    public static String timed(Result result) {
        List<String> cells = new ArrayList<>();
        for (Cell cell : result.rawCells() == null ? new Cell[0] : result.rawCells()) {
            cells.add(timed(cell));
        }
        return String.join(" ", cells);
    }

    public static String untimed(Result result) {
        List<String> cells = new ArrayList<>();
        for (Cell cell : result.rawCells() == null ? new Cell[0] : result.rawCells()) {
            cells.add(untimed(cell));
        }
        return String.join(" ", cells);
    }

    /** All Results of a scan. */
    public static List<Result> results(Table table, Scan scan) throws IOException {
        List<Result> results = new ArrayList<>();
        try (ResultScanner scanner = table.getScanner(scan)) {
            // Not the iterator: it would hide the exception inside an UncheckedIOException.
            for (Result result = scanner.next(); result != null; result = scanner.next()) {
                results.add(result);
            }
        }
        return results;
    }

    /** All row keys of a scan. */
    public static List<String> rows(Table table, Scan scan) throws IOException {
        List<String> rows = new ArrayList<>();
        for (Result result : results(table, scan)) {
            rows.add(s(result.getRow()));
        }
        return rows;
    }

    /** All row keys of a scan in one line. */
    public static String rowLine(Table table, Scan scan) throws IOException {
        return String.join(" ", rows(table, scan));
    }

    /** All cells of a scan in one line, with timestamps. */
    public static String timed(Table table, Scan scan) throws IOException {
        List<String> cells = new ArrayList<>();
        for (Result result : results(table, scan)) {
            for (Cell cell : result.rawCells()) {
                cells.add(full(cell));
            }
        }
        return String.join(" ", cells);
    }

    /** All cells of a scan in one line, without timestamps: {@code row/family:qualifier=value}. */
    public static String untimed(Table table, Scan scan) throws IOException {
        List<String> cells = new ArrayList<>();
        for (Result result : results(table, scan)) {
            for (Cell cell : result.rawCells()) {
                cells.add(s(CellUtil.cloneRow(cell)) + "/" + untimed(cell));
            }
        }
        return String.join(" ", cells);
    }
}
