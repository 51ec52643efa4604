// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Rows that HBase's testing utility writes, reads and counts; the keys are the same, because tests rely on them. */
final class TestRows {
  static final char FIRST_CHAR = 'a';
  static final char LAST_CHAR = 'z';

  /** "aaa" to "zzz". */
  static final byte[][] ROWS = rows();

  /** First rows of regions: "", "bbb" … "yyy"; as split keys: "bbb" … "zzz". */
  static final byte[][] KEYS = keys(true);
  static final byte[][] KEYS_FOR_HBA_CREATE_TABLE = keys(false);

  private TestRows() {}

  private static byte[][] rows() {
    List<byte[]> found = new ArrayList<>();
    for (char a = FIRST_CHAR; a <= LAST_CHAR; a++) {
      for (char b = FIRST_CHAR; b <= LAST_CHAR; b++) {
        for (char c = FIRST_CHAR; c <= LAST_CHAR; c++) {
          found.add(new byte[] {(byte) a, (byte) b, (byte) c});
        }
      }
    }
    return found.toArray(new byte[0][]);
  }

  private static byte[][] keys(boolean fromEmpty) {
    byte[][] found = new byte[25][];
    for (int i = 0; i < found.length; i++) {
      byte letter = (byte) ('b' + i - (fromEmpty ? 1 : 0));
      found[i] = fromEmpty && i == 0 ? new byte[0] : new byte[] {letter, letter, letter};
    }
    return found;
  }

  /** Puts all ROWS into families; a null value stands for the row's key. Returns their number. */
  static int load(Table table, byte[][] families, byte[] value, boolean writeToWal) throws IOException {
    List<Put> puts = new ArrayList<>();
    for (byte[] row : ROWS) {
      Put put = new Put(row);
      put.setDurability(writeToWal ? Durability.USE_DEFAULT : Durability.SKIP_WAL);
      for (byte[] family : families) {
        put.addColumn(family, null, value != null ? value : row);
      }
      puts.add(put);
    }
    table.put(puts);
    return puts.size();
  }

  static byte[] numeric(int i) {
    return Bytes.toBytes(String.valueOf(i));
  }

  static void loadNumeric(Table table, byte[] family, int from, int to) throws IOException {
    List<Put> puts = new ArrayList<>();
    for (int i = from; i < to; i++) {
      puts.add(new Put(numeric(i)).addColumn(family, null, numeric(i)));
    }
    table.put(puts);
  }

  static void deleteNumeric(Table table, byte[] family, int from, int to) throws IOException {
    List<Delete> deletes = new ArrayList<>();
    for (int i = from; i < to; i++) {
      deletes.add(new Delete(numeric(i)).addFamily(family));
    }
    table.delete(deletes);
  }

  static void verifyNumeric(Table table, byte[] family, int from, int to) throws IOException {
    for (int i = from; i < to; i++) {
      Result result = table.get(new Get(numeric(i)));
      List<Cell> cells = result.getColumnCells(family, null);
      if (cells.size() != 1 || !Arrays.equals(result.getValue(family, null), numeric(i))) {
        throw new AssertionError("row " + i + " of " + table.getName() + " has " + result);
      }
    }
  }

  static void loadRandom(Table table, byte[] family, int rowSize, int total) throws IOException {
    byte[] row = new byte[rowSize];
    for (int i = 0; i < total; i++) {
      ThreadLocalRandom.current().nextBytes(row);
      table.put(new Put(row).addColumn(family, new byte[0], new byte[0]));
    }
  }

  static int count(Table table, Scan scan) throws IOException {
    int count = 0;
    try (ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        count++;
      }
    }
    return count;
  }
}
