// SPDX-License-Identifier: Apache-2.0
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.types.*;
import org.apache.hadoop.hbase.util.ByteArrayHashKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.MD5Hash;
import org.apache.hadoop.hbase.util.MurmurHash3;
import org.apache.hadoop.hbase.util.Order;
import org.apache.hadoop.hbase.util.RegionSplitter;
import org.apache.hadoop.hbase.util.SimplePositionedMutableByteRange;

/**
 * Writes keys, hashes and split keys made by HBase, which tests/unit/rowkey/test_vectors.c replays.
 *
 *   java -cp $(HBase's class path) KeyOracle.java SEED COUNT FILE
 *
 * Lines, with fields separated by tabs: "key FORMAT HEX VALUE…", "md5 HEX DIGEST", "murmur3 HEX HASH", "split KIND REGIONS
 * HEX,HEX…".
 */
public class KeyOracle {
  static final Random random = new Random();
  static PrintWriter out;

  static String hex(byte[] b) {
    StringBuilder s = new StringBuilder(b.length == 0 ? "-" : "");
    for (byte x : b) s.append(String.format("%02x", x));
    return s.toString();
  }

  static String text(byte[] b) {
    StringBuilder s = new StringBuilder();
    for (byte x : b) s.append(x > 32 && x < 127 && x != '\\' ? "" + (char) x : String.format("\\x%02X", x));
    return s.toString();
  }

  static byte[] bytes(boolean zeros) {
    byte[] b = new byte[random.nextInt(5) == 0 ? random.nextInt(40) : random.nextInt(6)];
    random.nextBytes(b);
    for (int i = 0; i < b.length; i++) {
      if (random.nextInt(3) == 0) b[i] = (byte) (random.nextBoolean() ? 0 : -1);
      if (!zeros && b[i] == 0) b[i] = 1;
    }
    return b;
  }

  static String string() {
    StringBuilder s = new StringBuilder();
    for (int i = random.nextInt(6); i > 0; i--) s.appendCodePoint(random.nextInt(4) == 0 ? 0x4e2d + random.nextInt(99) : 1 + random.nextInt(126));
    return s.toString();
  }

  static long number() {
    long[] edges = {0, 1, -1, 99, 100, 101, 127, 128, 255, 256, -128, -129, Long.MAX_VALUE, Long.MIN_VALUE, Integer.MAX_VALUE, Integer.MIN_VALUE};
    return random.nextInt(3) == 0 ? edges[random.nextInt(edges.length)] : random.nextLong() >> random.nextInt(64);
  }

  static double real() {
    double[] edges = {0.0, -0.0, 1, -1, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, -Double.MAX_VALUE};
    return random.nextInt(4) == 0 ? edges[random.nextInt(edges.length)] : Double.longBitsToDouble(random.nextLong());
  }

  static BigDecimal decimal() {
    BigInteger digits = new BigInteger(random.nextInt(120), random);
    return new BigDecimal(random.nextBoolean() ? digits : digits.negate(), random.nextInt(60) - 30 + (random.nextInt(8) == 0 ? random.nextInt(4000) - 2000 : 0));
  }

  /** A type, its word in our formats, and a value with its text. */
  record Field(DataType<?> type, String word, Object value, String text) {}

  static Field field(boolean last) {
    Order order = random.nextBoolean() ? Order.ASCENDING : Order.DESCENDING;
    String d = order == Order.DESCENDING ? "desc-" : "";
    boolean up = order == Order.ASCENDING, none = random.nextInt(6) == 0;
    switch (random.nextInt(last ? 14 : 13)) {
      case 0: { byte v = (byte) number(); return new Field(up ? OrderedInt8.ASCENDING : OrderedInt8.DESCENDING, d + "ob-i8", v, "" + v); }
      case 1: { short v = (short) number(); return new Field(up ? OrderedInt16.ASCENDING : OrderedInt16.DESCENDING, d + "ob-i16", v, "" + v); }
      case 2: { int v = (int) number(); return new Field(up ? OrderedInt32.ASCENDING : OrderedInt32.DESCENDING, d + "ob-i32", v, "" + v); }
      case 3: { long v = number(); return new Field(up ? OrderedInt64.ASCENDING : OrderedInt64.DESCENDING, d + "ob-i64", v, "" + v); }
      case 4: { float v = (float) real(); return new Field(up ? OrderedFloat32.ASCENDING : OrderedFloat32.DESCENDING, d + "ob-f32", v, "" + v); }
      case 5: { double v = real(); return new Field(up ? OrderedFloat64.ASCENDING : OrderedFloat64.DESCENDING, d + "ob-f64", v, "" + v); }
      case 6: case 7: {
        Number v = none ? null : random.nextInt(3) == 0 ? (Number) number() : random.nextBoolean() ? (Number) real() : decimal();
        return new Field(up ? OrderedNumeric.ASCENDING : OrderedNumeric.DESCENDING, d + "ob-num", v, "" + v); }
      case 8: { String v = none ? null : string();
        return new Field(up ? OrderedString.ASCENDING : OrderedString.DESCENDING, d + "ob-text", v, v == null ? "null" : text(v.getBytes(StandardCharsets.UTF_8))); }
      case 9: { byte[] v = none ? null : bytes(true); return new Field(up ? OrderedBlobVar.ASCENDING : OrderedBlobVar.DESCENDING, d + "ob-blobvar", v, v == null ? "null" : text(v)); }
      case 10: { long v = number(); return new Field(new RawLong(), "raw-i64", v, "" + v); }
      case 11: { int v = (int) number(); return new Field(new RawInteger(), "raw-i32", v, "" + v); }
      case 12: { double v = real(); return new Field(new RawDouble(), "raw-f64", v, "" + v); }
      default: { byte[] v = none ? null : bytes(up); return new Field(up ? OrderedBlob.ASCENDING : OrderedBlob.DESCENDING, d + "ob-blob", v, v == null ? "null" : text(v)); }
    }
  }

  static void struct() {
    int count = 1 + random.nextInt(5);
    List<Field> fields = new ArrayList<>();
    for (int i = 0; i < count; i++) fields.add(field(i == count - 1));
    Struct struct = new Struct(fields.stream().map(Field::type).toArray(DataType[]::new));
    SimplePositionedMutableByteRange range = new SimplePositionedMutableByteRange(1024);
    struct.encode(range, fields.stream().map(Field::value).toArray());
    byte[] key = new byte[range.getPosition()];
    System.arraycopy(range.getBytes(), 0, key, 0, key.length);
    StringBuilder format = new StringBuilder(), values = new StringBuilder();
    for (int i = 0; i < count; i++) {
      format.append(i == 0 ? "" : " ").append((char) ('a' + i)).append(':').append(fields.get(i).word());
      values.append('\t').append(fields.get(i).text());
    }
    out.println("key\t" + format + "\t" + hex(key) + values);
  }

  static void split(String name, RegionSplitter.SplitAlgorithm algorithm, int regions) {
    StringBuilder s = new StringBuilder();
    for (byte[] key : algorithm.split(regions)) s.append(s.length() == 0 ? "" : ",").append(hex(key));
    out.println("split\t" + name + "\t" + regions + "\t" + s);
  }

  public static void main(String[] args) throws Exception {
    random.setSeed(Long.parseLong(args[0]));
    out = new PrintWriter(args[2], "UTF-8");
    out.println("# Written by tests/compat/rowkey/KeyOracle.java " + args[0] + " " + args[1] + " with HBase 2.6.1.");
    for (int i = Integer.parseInt(args[1]); i > 0; i--) struct();
    for (int i = 0; i < 40; i++) {
      byte[] b = bytes(true);
      out.println("md5\t" + hex(b) + "\t" + MD5Hash.getMD5AsHex(b));
      out.println("murmur3\t" + hex(b) + "\t" + String.format("%08x", MurmurHash3.getInstance().hash(new ByteArrayHashKey(b, 0, b.length), 0)));
    }
    for (int n : new int[] {2, 3, 7, 10, 16, 100, 300}) {
      split("hex", new RegionSplitter.HexStringSplit(), n);
      split("decimal", new RegionSplitter.DecimalStringSplit(), n);
      split("uniform", new RegionSplitter.UniformSplit(), n);
    }
    out.close();
  }
}
