// SPDX-License-Identifier: Apache-2.0
import java.io.PrintWriter;
import java.util.Random;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellComparatorImpl;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.MetaCellComparator;

/**
 * Writes the order of cells according to HBase, which tests/unit/cell/test_order.c replays.
 *
 *   java -cp $(HBase's class path) CellOracle.java SEED COUNT FILE
 *
 * Lines: "m ROW ROW SIGN" for rows of hbase:meta, "k KEYVALUE SEQID KEYVALUE SEQID SIGN" for cells.
 */
public class CellOracle {
  static final Random random = new Random();

  static byte[] bytes(String letters, int min, int max) {
    byte[] b = new byte[min + random.nextInt(max - min + 1)];
    for (int i = 0; i < b.length; i++) b[i] = (byte) letters.charAt(random.nextInt(letters.length()));
    return b;
  }

  static String hex(byte[] b, int offset, int length) {
    StringBuilder s = new StringBuilder(length == 0 ? "-" : "");
    for (int i = 0; i < length; i++) s.append(String.format("%02x", b[offset + i]));
    return s.toString();
  }

  static String hex(byte[] b) { return hex(b, 0, b.length); }
  static String sign(int c) { return c < 0 ? "<" : c > 0 ? ">" : "="; }

  static KeyValue cell() {
    byte[] types = {4, 8, 10, 12, 14, (byte) 255, 0};
    KeyValue.Type type = KeyValue.Type.codeToType(types[random.nextInt(types.length)]);
    byte[] row = bytes("ab\u00ff", 0, random.nextInt(5) == 0 ? 20 : 3);
    byte[] family = bytes("fg", 0, 2);
    KeyValue kv = new KeyValue(row, family, bytes("a\u0000\u0080", 0, random.nextInt(5) == 0 ? 12 : 2),
        random.nextInt(4), type, bytes("x", 0, 3));
    kv.setSequenceId(random.nextInt(3));
    return kv;
  }

  public static void main(String[] args) throws Exception {
    random.setSeed(Long.parseLong(args[0]));
    try (PrintWriter out = new PrintWriter(args[2], "UTF-8")) {
      out.println("# Written by tests/compat/cell/CellOracle.java " + args[0] + " " + args[1] + " with HBase 2.6.1.");
      for (int i = Integer.parseInt(args[1]); i > 0; i--) {
        byte[] a = bytes("t,a", 0, 7);
        byte[] b = random.nextInt(3) == 0 ? a.clone() : bytes("t,a", 0, 7);
        if (b.length > 0 && random.nextBoolean()) b[random.nextInt(b.length)] = ',';
        out.println("m " + hex(a) + " " + hex(b) + " "
            + sign(MetaCellComparator.META_COMPARATOR.compareRows(a, b)));
        KeyValue x = cell();
        KeyValue y = cell();
        // HBase says "greater" both ways for two keys after all cells of a row.
        if (last(x) && last(y)) continue;
        out.println("k " + hex(x.getBuffer(), x.getOffset(), x.getLength()) + " " + x.getSequenceId() + " "
            + hex(y.getBuffer(), y.getOffset(), y.getLength()) + " " + y.getSequenceId() + " "
            + sign(CellComparatorImpl.COMPARATOR.compare(x, y)));
      }
    }
  }

  static boolean last(KeyValue c) {
    return c.getTypeByte() == 0 && c.getFamilyLength() + c.getQualifierLength() == 0;
  }
}
