// SPDX-License-Identifier: Apache-2.0
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.filter.*;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ComparatorProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.FilterProtos;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hbase.thirdparty.com.google.protobuf.UnsafeByteOperations;

/**
 * Writes the results of HBase's own filters and comparators, which the C tests replay
 * (tests/unit/filter). No server is involved: the filter objects are parsed from the bytes a client
 * would send and driven over cells in memory, the way a region scanner drives them.
 *
 *   java -cp $(HBase's class path) FilterOracle.java KIND SEED COUNT FILE
 *
 * KIND: scan (filters over rows), comparator, regex, error (what cannot be parsed), language.
 */
public class FilterOracle {
  static Random random;
  static PrintWriter out;

  public static void main(String[] args) throws Exception {
    random = new Random(Long.parseLong(args[1]));
    int count = Integer.parseInt(args[2]);
    try (PrintWriter w = new PrintWriter(args[3], "UTF-8")) {
      out = w;
      out.println("# Written by tests/compat/filter/FilterOracle.java " + args[0] + " " + args[1] + " "
          + count + " with HBase 2.6.1.");
      switch (args[0]) {
        case "scan": scans(count); break;
        case "comparator": comparators(count); break;
        case "regex": regexes(count); break;
        case "error": errors(); break;
        case "language": languages(count); break;
        default: throw new IllegalArgumentException(args[0]);
      }
    }
  }

  // --- Random material -----------------------------------------------------------------------
  static int below(int n) { return random.nextInt(n); }
  static boolean chance(int percent) { return below(100) < percent; }

  static byte[] bytes(String letters, int min, int max) {
    byte[] b = new byte[min + below(max - min + 1)];
    for (int i = 0; i < b.length; i++) b[i] = (byte) letters.charAt(below(letters.length()));
    return b;
  }

  static final String ROW = "ab\u0000\u00ffc";
  static byte[] row() { return bytes(ROW, 1, 4); }
  static byte[] qualifier() { return bytes("abc", 0, 3); }
  static byte[] family() { return Bytes.toBytes(chance(50) ? "f" : "g"); }

  static byte[] value() {
    switch (below(5)) {
      case 0: return Bytes.toBytes((long) below(5) - 2);
      case 1: return Bytes.toBytes(new BigDecimal(new BigInteger(String.valueOf(below(300) - 150)), below(3) - 1));
      case 2: return Bytes.toBytes(below(4));
      default: return bytes("abAB1", 0, 5);
    }
  }

  static List<Cell> table() {
    Set<Cell> cells = new TreeSet<>(CellComparator.getInstance());
    Set<String> rows = new HashSet<>();
    int n = 3 + below(8);
    for (int i = 0; i < n; i++) {
      byte[] row = row();
      if (!rows.add(Bytes.toStringBinary(row))) continue;
      int m = 1 + below(8);
      for (int j = 0; j < m; j++)
        cells.add(new KeyValue(row, family(), qualifier(), 1 + below(6), value()));
    }
    return new ArrayList<>(cells);
  }

  static CompareOperator op() {
    CompareOperator[] ops = CompareOperator.values();
    return ops[below(chance(90) ? 6 : 7)];
  }

  static ByteArrayComparable comparator(byte[] like) {
    switch (below(10)) {
      case 0:
      case 1:
      case 2: return new BinaryComparator(like);
      case 3:
      case 4: return new BinaryPrefixComparator(Arrays.copyOf(like, Math.min(like.length, 1 + below(3))));
      case 5: return new SubstringComparator(new String(bytes("abAB1", 0, 2), StandardCharsets.ISO_8859_1));
      case 6: return new RegexStringComparator(regex());
      case 7: return new BitComparator(like, BitComparator.BitwiseOp.values()[below(3)]);
      case 8: return new NullComparator();
      default: return new BinaryComparator(bytes("ab", 0, 3));
    }
  }

  static ByteArrayComparable valueComparator() {
    if (chance(8)) return new LongComparator(below(5) - 2);
    if (chance(8)) return new BigDecimalComparator(new BigDecimal(below(300) - 150).movePointLeft(below(3)));
    return comparator(value());
  }

  static String regex() {
    String[] some = {"a", "^a", "b$", "a.*b", "[ab]+", "(a|b)c?", "^$", "A|1", "(?i)aB", "b{2}", "\\d"};
    return some[below(some.length)];
  }

  // Masks of 0 and 1 only: with other masks HBase reads after the row's end, and may never return.
  static List<Pair<byte[], byte[]>> fuzzyKeys() {
    List<Pair<byte[], byte[]>> keys = new ArrayList<>();
    int n = 1 + below(3);
    for (int i = 0; i < n; i++) {
      byte[] key = bytes(ROW, 1, 5);
      byte[] mask = new byte[key.length];
      for (int j = 0; j < mask.length; j++) mask[j] = (byte) below(2);
      keys.add(new Pair<>(key, mask));
    }
    return keys;
  }

  // A FuzzyRowFilter as an old client sends it: free positions are 0, or the masks are not converted.
  static byte[] oldFuzzy() {
    FilterProtos.FuzzyRowFilter.Builder b = FilterProtos.FuzzyRowFilter.newBuilder();
    if (chance(30)) b.setIsMaskV2(chance(50));
    boolean raw = chance(30);
    for (Pair<byte[], byte[]> p : fuzzyKeys()) {
      byte[] mask = p.getSecond();
      if (!raw) for (int i = 0; i < mask.length; i++) mask[i] = (byte) (mask[i] == 0 ? -1 : 0);
      b.addFuzzyKeysData(
          org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.BytesBytesPair.newBuilder()
              .setFirst(UnsafeByteOperations.unsafeWrap(p.getFirst()))
              .setSecond(UnsafeByteOperations.unsafeWrap(mask)));
    }
    return b.build().toByteArray();
  }

  static Filter ranges() {
    for (;;) {
      List<MultiRowRangeFilter.RowRange> list = new ArrayList<>();
      int n = 1 + below(5);
      for (int i = 0; i < n; i++) {
        byte[] a = chance(8) ? new byte[0] : bytes(ROW, 1, 3);
        byte[] b = chance(8) ? new byte[0] : bytes(ROW, 1, 3);
        if (a.length > 0 && b.length > 0 && Bytes.compareTo(a, b) > 0) {
          byte[] t = a;
          a = b;
          b = t;
        }
        list.add(new MultiRowRangeFilter.RowRange(a, chance(70), b, chance(50)));
      }
      try {
        return new MultiRowRangeFilter(list);
      } catch (IllegalArgumentException e) {
        // an empty range: another one is tried
      }
    }
  }

  static Filter leaf() {
    switch (below(29)) {
      case 0: return new KeyOnlyFilter(chance(50));
      case 1: return new FirstKeyOnlyFilter();
      case 2: return new PrefixFilter(bytes(ROW, 0, 2));
      case 3: return new ColumnPrefixFilter(bytes("abc", 0, 2));
      case 4: {
        Set<String> names = new HashSet<>();
        for (int i = below(4); i > 0; i--) names.add(Bytes.toString(bytes("abc", 0, 2)));
        byte[][] prefixes = new byte[names.size()][];
        int i = 0;
        for (String s : names) prefixes[i++] = Bytes.toBytes(s);
        return new MultipleColumnPrefixFilter(prefixes);
      }
      case 5: return new ColumnCountGetFilter(below(4));
      case 6: return new PageFilter(below(4));
      case 7: return new ColumnPaginationFilter(below(4), below(3));
      case 8: return new ColumnPaginationFilter(below(4), qualifier());
      case 9: return new InclusiveStopFilter(row());
      case 10: {
        List<Long> stamps = new ArrayList<>();
        for (int i = below(4); i > 0; i--) stamps.add((long) below(7));
        return new TimestampsFilter(stamps, chance(50));
      }
      case 11: return new RowFilter(op(), comparator(row()));
      case 12: return new FamilyFilter(op(), comparator(family()));
      case 13: return new QualifierFilter(op(), comparator(qualifier()));
      case 14:
      case 15: return new ValueFilter(op(), valueComparator());
      case 16:
        return new ColumnRangeFilter(chance(80) ? qualifier() : null, chance(50),
            chance(80) ? qualifier() : null, chance(50));
      case 17:
      case 18: {
        SingleColumnValueFilter f = chance(60)
            ? new SingleColumnValueFilter(family(), qualifier(), op(), valueComparator())
            : new SingleColumnValueExcludeFilter(family(), qualifier(), op(), valueComparator());
        f.setFilterIfMissing(chance(50));
        f.setLatestVersionOnly(chance(60));
        return f;
      }
      case 19:
        return chance(50) ? new DependentColumnFilter(family(), qualifier(), chance(50))
            : new DependentColumnFilter(family(), qualifier(), chance(50), op(), valueComparator());
      case 20: return new ColumnValueFilter(family(), qualifier(), op(), valueComparator());
      case 21:
      case 22: return new FuzzyRowFilter(fuzzyKeys());
      case 23: return ranges();
      case 24: return new RandomRowFilter(chance(50) ? -1 : 2);
      case 25: {
        Set<byte[]> names = new TreeSet<>(Bytes.BYTES_COMPARATOR);
        for (int i = below(3); i > 0; i--) names.add(qualifier());
        return new FirstKeyValueMatchingQualifiersFilter(names);
      }
      case 26: return chance(20) ? new FilterAllFilter() : ranges();
      case 27: return new ColumnPrefixFilter(bytes("abc", 1, 2));
      default: return new PrefixFilter(bytes(ROW, 1, 1));
    }
  }

  static Filter filter(int depth) {
    int kind = below(100);
    if (depth == 0 || kind < 30) return leaf();
    if (kind < 38) return new SkipFilter(filter(depth - 1));
    if (kind < 46) return new WhileMatchFilter(filter(depth - 1));
    if (kind < 49) return new FilterWrapper(filter(depth - 1));
    List<Filter> list = new ArrayList<>();
    for (int i = below(4) + (chance(95) ? 1 : 0); i > 0; i--) list.add(filter(depth - 1));
    return new FilterList(
        chance(50) ? FilterList.Operator.MUST_PASS_ALL : FilterList.Operator.MUST_PASS_ONE, list);
  }

  // --- Scans ---------------------------------------------------------------------------------
  static String hex(byte[] b, int offset, int length) {
    if (length == 0) return "-";
    StringBuilder s = new StringBuilder();
    for (int i = 0; i < length; i++) s.append(String.format("%02x", b[offset + i]));
    return s.toString();
  }

  static String hex(byte[] b) { return hex(b, 0, b.length); }

  /** A message in hex; '~' stands for the package name, which would be most of the file. */
  static String message(byte[] b) { return hex(b).replace(hex(Bytes.toBytes(PACKAGE)), "~"); }
  static String row(Cell c) { return hex(c.getRowArray(), c.getRowOffset(), c.getRowLength()); }
  static String family(Cell c) { return hex(c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength()); }
  static String qualifier(Cell c) {
    return hex(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength());
  }
  static String value(Cell c) { return hex(c.getValueArray(), c.getValueOffset(), c.getValueLength()); }

  static String hint(Cell c) {
    if (c == null) return "()";
    long ts = c.getTimestamp();
    String t = ts == Long.MAX_VALUE ? "M" : ts == Long.MIN_VALUE ? "m" : String.valueOf(ts);
    return "(" + row(c) + "/" + family(c) + "/" + qualifier(c) + "/" + t + "/" + (c.getTypeByte() & 0xff) + ")";
  }

  static void scans(int count) throws Exception {
    List<Cell> table = null;
    for (int i = 0; i < count; i++) {
      if (i % 50 == 0) {
        table = table();
        out.println("T");
        for (Cell c : table)
          out.println("c " + row(c) + " " + family(c) + " " + qualifier(c) + " " + c.getTimestamp() + " " + value(c));
      }
      FilterProtos.Filter message;
      if (chance(6)) {
        message = FilterProtos.Filter.newBuilder().setName(FuzzyRowFilter.class.getName())
            .setSerializedFilter(UnsafeByteOperations.unsafeWrap(oldFuzzy())).build();
      } else {
        message = ProtobufUtil.toFilter(filter(chance(50) ? 0 : 1 + below(3)));
      }
      boolean reversed = chance(25);
      String name = message.getName().substring(message.getName().lastIndexOf('.') + 1);
      out.println("S " + (reversed ? "r" : "f") + " " + name + " " + message(message.getSerializedFilter().toByteArray()));
      out.println(trace(message, table, reversed));
    }
  }

  static final String CODES = "ICSNRHJ";

  /** One family's cells in scan order, and the scan's position in them. */
  static class Cursor {
    final List<Cell> cells = new ArrayList<>();
    int at;
    Cell peek() { return at < cells.size() ? cells.get(at) : null; }
  }

  static int rows(Cell a, Cell b, boolean reversed) {
    int c = CellComparator.getInstance().compareRows(a, b);
    return reversed ? -c : c;
  }

  /** Whether the cell is before the key in scan direction. */
  static boolean isBefore(Cell cell, Cell key, boolean reversed) {
    int c = rows(cell, key, reversed);
    return c != 0 ? c < 0 : CellComparator.getInstance().compare(cell, key) < 0;
  }

  static String trace(FilterProtos.Filter message, List<Cell> table, boolean reversed) {
    StringBuilder t = new StringBuilder();
    try {
      Filter inner = ProtobufUtil.toFilter(message);
      if (reversed) inner.setReversed(true);
      FilterWrapper filter = new FilterWrapper(inner);
      Cursor[] cursors = {new Cursor(), new Cursor()};
      List<Cell> ordered = new ArrayList<>(table);
      if (reversed) ordered.sort((a, b) -> rows(a, b, true)); // stable: keeps the order within a row
      for (Cell c : ordered) cursors[c.getFamilyArray()[c.getFamilyOffset()] == 'f' ? 0 : 1].cells.add(c);
      boolean hasFilterRow = filter.hasFilterRow();
      t.append(hasFilterRow ? "R1" : "R0");
      t.append(filter.isFamilyEssential(Bytes.toBytes("f")) ? 1 : 0);
      t.append(filter.isFamilyEssential(Bytes.toBytes("g")) ? 1 : 0);
      for (;;) {
        Cell first = null;
        for (Cursor c : cursors)
          if (c.peek() != null && (first == null || rows(c.peek(), first, reversed) < 0)) first = c.peek();
        if (first == null) break;
        if (filter.filterAllRemaining()) {
          t.append(" Z");
          break;
        }
        boolean out = filter.filterRowKey(first);
        t.append(out ? " k" : " K");
        List<Cell> collected = new ArrayList<>();
        for (Cursor c : cursors) {
          while (c.peek() != null && CellUtil.matchingRows(c.peek(), first)) {
            if (out) c.at++;
            else step(filter, c, reversed, collected, t);
          }
        }
        if (!out) finish(filter, hasFilterRow, collected, t);
        filter.reset();
      }
    } catch (Throwable e) {
      t.append(" X:").append(e.getClass().getName());
      // HBase compares a missing hint, which is a bug that is not reproduced.
      for (StackTraceElement at : e.getStackTrace())
        if (at.getClassName().endsWith("FilterListWithAND") && at.getMethodName().equals("getNextCellHint")) {
          t.append("@AND");
          break;
        }
    }
    return t.toString();
  }

  static void step(Filter filter, Cursor c, boolean reversed, List<Cell> collected, StringBuilder t)
      throws Exception {
    Cell cell = c.peek();
    Filter.ReturnCode code = filter.filterCell(cell);
    if (code == null) throw new NullPointerException();
    t.append(CODES.charAt(code.ordinal()));
    Cell seek = null;
    switch (code) {
      case INCLUDE:
      case INCLUDE_AND_NEXT_COL:
      case INCLUDE_AND_SEEK_NEXT_ROW: {
        Cell transformed = filter.transformCell(cell);
        if (!value(transformed).equals(value(cell))) t.append("=").append(value(transformed));
        collected.add(transformed);
        break;
      }
      case SEEK_NEXT_USING_HINT:
        seek = filter.getNextCellHint(cell);
        t.append(hint(seek));
        break;
      default:
    }
    c.at++;
    switch (code) {
      case INCLUDE_AND_NEXT_COL:
      case NEXT_COL:
        while (c.peek() != null && CellUtil.matchingRows(c.peek(), cell) && CellUtil.matchingColumn(c.peek(), cell))
          c.at++;
        break;
      case INCLUDE_AND_SEEK_NEXT_ROW:
      case NEXT_ROW:
        while (c.peek() != null && CellUtil.matchingRows(c.peek(), cell)) c.at++;
        break;
      case SEEK_NEXT_USING_HINT:
        while (seek != null && c.peek() != null && isBefore(c.peek(), seek, reversed)) c.at++;
        break;
      default:
    }
  }

  static void finish(FilterWrapper filter, boolean hasFilterRow, List<Cell> collected, StringBuilder t)
      throws Exception {
    if (hasFilterRow) {
      List<Cell> rest = new ArrayList<>(collected);
      FilterWrapper.FilterRowRetCode verdict = filter.filterRowCellsWithRet(rest);
      t.append("D").append(verdict == FilterWrapper.FilterRowRetCode.NOT_CALLED ? "n"
          : verdict == FilterWrapper.FilterRowRetCode.INCLUDE ? "i" : "e");
      int at = 0;
      for (Cell c : collected) {
        boolean kept = at < rest.size() && rest.get(at) == c;
        if (kept) at++;
        t.append(kept ? "1" : "0");
      }
    } else if (!collected.isEmpty()) {
      t.append(filter.filterRow() ? "x" : "v");
    }
  }

  // --- Comparators ---------------------------------------------------------------------------
  static void comparator(ByteArrayComparable c, byte[] value) throws Exception {
    ComparatorProtos.Comparator message = ProtobufUtil.toComparator(c);
    String name = message.getName().substring(message.getName().lastIndexOf('.') + 1);
    String answer;
    try {
      int r = ProtobufUtil.toComparator(message).compareTo(value, 0, value.length);
      answer = r < 0 ? "<" : r > 0 ? ">" : "=";
    } catch (RuntimeException e) {
      answer = "X:" + e.getClass().getName();
    }
    out.println(name + " " + message(message.getSerializedComparator().toByteArray()) + " " + hex(value) + " " + answer);
  }

  static BigDecimal decimal() {
    switch (below(4)) {
      case 0: return new BigDecimal(BigInteger.valueOf(below(2000) - 1000), below(7) - 3);
      case 1: return new BigDecimal(new BigInteger(below(200), random), below(60) - 30);
      case 2: {
        // The same or a similar number with another scale.
        BigDecimal d = new BigDecimal(new BigInteger(below(100), random), below(20));
        d = d.setScale(d.scale() + below(20));
        return chance(50) ? d : d.add(new BigDecimal(BigInteger.ONE, d.scale()));
      }
      default: return new BigDecimal(BigInteger.TEN.pow(below(50)), random.nextInt());
    }
  }

  static final int[] LETTERS = {'a', 'B', 'k', 'K', 'S', 0xe4, 0xc4, 0xdf, 0x130, 0x131, 0x3a3, 0x3c3, 0x3c2,
    0x212a, 0x17f, 0x10a0, 0x1e9e, 0x10400, 0x10428, 0x2c2e, 0xff21, ' ', '1', '.'};

  static String text(int max) {
    StringBuilder s = new StringBuilder();
    for (int i = below(max + 1); i > 0; i--) s.appendCodePoint(LETTERS[below(LETTERS.length)]);
    return s.toString();
  }

  static byte[] brokenText() {
    byte[] b = new byte[below(8)];
    int[] odd = {0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xa0, 0xe2, 0xed, 0xf0, 0x90, 0xf4, 0x8f, 0xf5, 0xff, 'a', 'B'};
    for (int i = 0; i < b.length; i++) b[i] = (byte) odd[below(odd.length)];
    return b;
  }

  static void comparators(int count) throws Exception {
    for (int i = 0; i < count; i++) {
      byte[] a = bytes("ab\u00ff", 0, 4);
      byte[] b = bytes("ab\u00ff", 0, 4);
      comparator(new BinaryComparator(a), b);
      comparator(new BinaryPrefixComparator(a), b);
      byte[] longer = bytes("ab", 6, 8);
      comparator(new BinaryComponentComparator(bytes("ab", 0, 3), below(4)), longer);
      comparator(new BitComparator(a, BitComparator.BitwiseOp.values()[below(3)]), bytes("ab\u0000", a.length, a.length + below(2)));
      comparator(new LongComparator(random.nextLong() >> below(64)),
          chance(90) ? Bytes.toBytes(random.nextLong() >> below(64)) : b);
      comparator(new NullComparator(), b);
      BigDecimal d = decimal();
      comparator(new BigDecimalComparator(d), chance(5) ? b : Bytes.toBytes(chance(20) ? d : decimal()));
      BigDecimal scaled = new BigDecimal(d.unscaledValue().multiply(BigInteger.TEN.pow(below(30))), d.scale());
      if (Math.abs((long) d.scale()) < 1000)
        comparator(new BigDecimalComparator(d), Bytes.toBytes(scaled.scaleByPowerOfTen(-below(30))));
      comparator(new SubstringComparator(text(2)), Bytes.toBytes(text(6)));
      comparator(new SubstringComparator(chance(50) ? "\ufffd\ufffd" : "\ufffda"), brokenText());
      comparator(new SubstringComparator("\ufffd\ufffd\ufffd"), brokenText());
    }
  }

  // --- Regular expressions -------------------------------------------------------------------
  static String classItem(int depth) {
    String[] items = {"a", "b", "c", "a-c", "\\d", "\\w", "\\s", "\\\\", "\\-", "-", "^", ".", "\\u0062",
      "\\x63", "\\x{64}", "\\0141", "\\p{Lower}", "\\P{Alpha}", "\\p{L}", "\\p{IsLatin}", "\u00e4", "\\Qb.\\E", " ", "a-\u00e4"};
    if (depth > 0 && chance(25)) return charClass(depth - 1);
    return items[below(items.length)];
  }

  static String charClass(int depth) {
    StringBuilder s = new StringBuilder(chance(25) ? "[^" : "[");
    for (int i = 1 + below(3); i > 0; i--) s.append(classItem(depth));
    while (depth > 0 && chance(25)) {
      s.append("&&");
      String item = classItem(0);
      s.append(item.equals(" ") || chance(70) ? charClass(depth - 1) : item);
    }
    return s.append("]").toString();
  }

  static String pattern(int depth) {
    StringBuilder s = new StringBuilder();
    for (int i = 1 + below(3); i > 0; i--) {
      String[] atoms = {"a", "b", "c", "A", ".", "\\.", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "^", "$", "\\b", "\\A",
        "\\z", "\\Z", "\\Qa.c\\E", "\\u0061", "\\x62", "\\x{63}", "\\0101", "\\t", "\\n", "\\cA", "\\e", "\\p{Upper}",
        "\\p{Lu}", "\\pL", "\\P{Digit}", "\\p{Punct}", "\\p{IsAlphabetic}", "\\p{javaLowerCase}", "\\h", "\\R", "\u00e4", "\u00c4",
        "(?i)a", "(?i:B)", "(?s:.)", "(?m)^a", "(?-i)a", "(?x) a b", "(?u)c", "\\v", "#", " "};
      String atom;
      int kind = below(10);
      if (kind == 0 && depth > 0) atom = "(" + pattern(depth - 1) + ")";
      else if (kind == 1 && depth > 0) atom = "(?:" + pattern(depth - 1) + "|" + pattern(depth - 1) + ")";
      else if (kind == 2 && depth > 0) atom = (chance(50) ? "(?=" : "(?!") + pattern(depth - 1) + ")";
      else if (kind == 3 && depth > 0) atom = (chance(50) ? "(?<=" : "(?<!") + "a" + ")";
      else if (kind <= 5) atom = charClass(2);
      else atom = atoms[below(atoms.length)];
      s.append(atom);
      boolean repeatable = !atom.matches("[ #]|[\\^$]|\\\\[bAzZ]|\\(\\?[=!<].*|\\(\\?[a-z-]+\\).*");
      if (repeatable && chance(30)) {
        String[] times = {"*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?", "??", "++", "*+", "?+"};
        s.append(times[below(times.length)]);
      }
    }
    return s.toString();
  }

  static String subject() {
    String letters = "aabbccABC1 .-&^\\\t\n\r\u00e4\u00c4\u0085_#";
    StringBuilder s = new StringBuilder();
    for (int i = below(7); i > 0; i--) s.append(letters.charAt(below(letters.length())));
    return s.toString();
  }

  static void regexes(int count) throws Exception {
    for (int i = 0; i < count; i++) {
      String pattern = pattern(2);
      int flags = chance(50) ? 32 : below(0x80) & ~0x10 & ~0x40;
      if (chance(3)) flags |= 0x10;
      // Whether folding case widens a property depends on the JDK.
      if (((flags & 2) != 0 || pattern.contains("(?i")) && pattern.matches("(?s).*\\\\[pP].*")) continue;
      RegexStringComparator c;
      try {
        c = new RegexStringComparator(pattern, flags);
      } catch (RuntimeException e) {
        continue;
      }
      if (chance(5)) c.setCharset(StandardCharsets.ISO_8859_1);
      // As on the server: flags inside the pattern have become flags of the comparator.
      ComparatorProtos.Comparator message = ProtobufUtil.toComparator(c);
      StringBuilder answers = new StringBuilder();
      try {
        ByteArrayComparable server = ProtobufUtil.toComparator(message);
        for (int j = 0; j < 6; j++) {
          byte[] s = Bytes.toBytes(subject());
          answers.append("s " + hex(s) + " " + server.compareTo(s, 0, s.length) + "\n");
        }
      } catch (RuntimeException | java.io.IOException e) {
        continue; // Java cannot match it, either
      }
      out.println("P " + flags + " " + hex(Bytes.toBytes(pattern)) + " "
          + hex(message.getSerializedComparator().toByteArray()));
      out.print(answers);
    }
  }

  // --- What cannot be parsed -----------------------------------------------------------------
  static void error(String name, byte[] message) {
    String answer;
    try {
      ProtobufUtil.toFilter(FilterProtos.Filter.newBuilder().setName(name)
          .setSerializedFilter(UnsafeByteOperations.unsafeWrap(message)).build());
      answer = "-";
    } catch (Exception e) {
      answer = e.toString();
    }
    out.println((name.isEmpty() ? "-" : name) + " " + message(message) + " " + hex(Bytes.toBytes(answer)));
  }

  static final String PACKAGE = "org.apache.hadoop.hbase.filter.";

  static FilterProtos.Filter wrap(String name, byte[] message) {
    return FilterProtos.Filter.newBuilder().setName(PACKAGE + name)
        .setSerializedFilter(UnsafeByteOperations.unsafeWrap(message)).build();
  }

  static byte[] listOf(FilterProtos.Filter f) {
    return FilterProtos.FilterList.newBuilder().setOperator(FilterProtos.FilterList.Operator.MUST_PASS_ALL)
        .addFilters(f).build().toByteArray();
  }

  static void errors() throws Exception {
    byte[] negativePage = FilterProtos.PageFilter.newBuilder().setPageSize(-7).build().toByteArray();
    error("com.example.NoSuchFilter", new byte[0]);
    error(PACKAGE + "NoSuchFilter", new byte[0]);
    error("", new byte[0]);
    error(PACKAGE + "PageFilter", negativePage);
    error(PACKAGE + "PageFilter", new byte[0]);
    error(PACKAGE + "PageFilter", new byte[] {8});
    error(PACKAGE + "ColumnCountGetFilter", FilterProtos.ColumnCountGetFilter.newBuilder().setLimit(-1).build().toByteArray());
    error(PACKAGE + "ColumnPaginationFilter", FilterProtos.ColumnPaginationFilter.newBuilder().setLimit(-1).build().toByteArray());
    error(PACKAGE + "ColumnPaginationFilter", FilterProtos.ColumnPaginationFilter.newBuilder().setLimit(1).setOffset(-2).build().toByteArray());
    error(PACKAGE + "TimestampsFilter", FilterProtos.TimestampsFilter.newBuilder().addTimestamps(-3).build().toByteArray());
    error(PACKAGE + "FuzzyRowFilter", new byte[0]);
    error(PACKAGE + "FuzzyRowFilter", FilterProtos.FuzzyRowFilter.newBuilder().addFuzzyKeysData(
        org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.BytesBytesPair.newBuilder()
            .setFirst(UnsafeByteOperations.unsafeWrap(new byte[] {'a', 1})).setSecond(UnsafeByteOperations.unsafeWrap(new byte[] {1}))).build().toByteArray());
    error(PACKAGE + "MultiRowRangeFilter", new byte[0]);
    error(PACKAGE + "MultiRowRangeFilter", FilterProtos.MultiRowRangeFilter.newBuilder().addRowRangeList(
        FilterProtos.RowRange.newBuilder().setStartRow(UnsafeByteOperations.unsafeWrap(new byte[] {'b'}))
            .setStopRow(UnsafeByteOperations.unsafeWrap(new byte[] {'a'}))).build().toByteArray());
    error(PACKAGE + "MultipleColumnPrefixFilter", FilterProtos.MultipleColumnPrefixFilter.newBuilder()
        .addSortedPrefixes(UnsafeByteOperations.unsafeWrap(new byte[] {'a'})).addSortedPrefixes(UnsafeByteOperations.unsafeWrap(new byte[] {'a'})).build().toByteArray());
    error(PACKAGE + "FilterList", listOf(wrap("PageFilter", negativePage)));
    error(PACKAGE + "FilterList", listOf(wrap("FilterList", listOf(wrap("PageFilter", negativePage)))));
    error(PACKAGE + "FilterList", listOf(wrap("Nothing", new byte[0])));
    error(PACKAGE + "SkipFilter", FilterProtos.SkipFilter.newBuilder().setFilter(wrap("Nothing", new byte[0])).build().toByteArray());
    error(PACKAGE + "SkipFilter", new byte[0]);
    for (String comparator : new String[] {"NoSuchComparator", "LongComparator", "RegexStringComparator", "BigDecimalComparator"}) {
      byte[] bytes = comparator.equals("LongComparator")
          ? ComparatorProtos.LongComparator.newBuilder().setComparable(ComparatorProtos.ByteArrayComparable.newBuilder()
              .setValue(UnsafeByteOperations.unsafeWrap(new byte[] {1, 2, 3}))).build().toByteArray()
          : comparator.equals("BigDecimalComparator")
          ? ComparatorProtos.BigDecimalComparator.newBuilder().setComparable(ComparatorProtos.ByteArrayComparable.newBuilder()
              .setValue(UnsafeByteOperations.unsafeWrap(new byte[] {1, 2, 3}))).build().toByteArray()
          : comparator.equals("RegexStringComparator")
          ? ComparatorProtos.RegexStringComparator.newBuilder().setPattern("a").setPatternFlags(0).setCharset("EBCDIC-7").setEngine("JAVA").build().toByteArray()
          : new byte[0];
      error(PACKAGE + "RowFilter", FilterProtos.RowFilter.newBuilder().setCompareFilter(FilterProtos.CompareFilter.newBuilder()
          .setCompareOp(org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.CompareType.EQUAL)
          .setComparator(ComparatorProtos.Comparator.newBuilder().setName(PACKAGE + comparator)
              .setSerializedComparator(UnsafeByteOperations.unsafeWrap(bytes)))).build().toByteArray());
    }
  }

  // --- The filter language -------------------------------------------------------------------
  static void language(String text) {
    String answer;
    try {
      FilterProtos.Filter f = ProtobufUtil.toFilter(new ParseFilter().parseFilterString(text));
      answer = f.getName().substring(PACKAGE.length()) + " " + message(f.getSerializedFilter().toByteArray());
    } catch (Throwable e) {
      answer = "X " + hex(Bytes.toBytes(e.toString()));
    }
    out.println(hex(Bytes.toBytes(text)) + " " + answer);
  }

  static String word(String... of) { return of[below(of.length)]; }

  static String quoted() { return "'" + word("", "a", "abc", "it''s", "a b", "(", ")", ",", "AND", "x OR y", "\u00e4") + "'"; }
  static String number() { return word("0", "1", "5", "10", "-1", "2147483647", "2147483648", "12x"); }
  static String bool() { return word("true", "false", "TRUE", "False", "yes"); }
  static String sign() { return word("<", "<=", "=", "!=", ">", ">="); }
  static String compared() {
    return "'" + word("binary:", "binaryprefix:", "regexstring:", "regexstringnocase:", "substring:", "other:", "") + word("a", "abc", "", "x:y", "A.*b") + "'";
  }

  static String simple() {
    switch (below(24)) {
      case 0: return "KeyOnlyFilter" + word("()", " ()", "(true)");
      case 1: return "FirstKeyOnlyFilter" + word("()", " ( )", "(1)");
      case 2: return "PrefixFilter (" + quoted() + ")";
      case 3: return "ColumnPrefixFilter(" + quoted() + ")";
      case 4: return "MultipleColumnPrefixFilter(" + quoted() + ", " + quoted() + ")";
      case 5: return "ColumnCountGetFilter(" + number() + ")";
      case 6: return "PageFilter( " + number() + " )";
      case 7: return "ColumnPaginationFilter(" + number() + "," + number() + ")";
      case 8: return "InclusiveStopFilter(" + quoted() + ")";
      case 9: return "TimestampsFilter(" + number() + ", " + number() + ")";
      case 10: return "RowFilter(" + sign() + ", " + compared() + ")";
      case 11: return "FamilyFilter(" + sign() + "," + compared() + ")";
      case 12: return "QualifierFilter (" + sign() + " , " + compared() + ")";
      case 13: return "ValueFilter(" + sign() + ", " + compared() + ")";
      case 14: return "ColumnRangeFilter(" + quoted() + ", " + bool() + ", " + quoted() + ", " + bool() + ")";
      case 15: return "SingleColumnValueFilter(" + quoted() + "," + quoted() + "," + sign() + "," + compared() + ")";
      case 16: return "SingleColumnValueFilter(" + quoted() + "," + quoted() + "," + sign() + "," + compared() + "," + bool() + "," + bool() + ")";
      case 17: return "SingleColumnValueExcludeFilter(" + quoted() + "," + quoted() + "," + sign() + "," + compared() + (chance(50) ? "," + bool() + "," + bool() : "") + ")";
      case 18: return "DependentColumnFilter(" + quoted() + "," + quoted() + ")";
      case 19: return "DependentColumnFilter(" + quoted() + "," + quoted() + "," + bool() + ")";
      case 20: return "DependentColumnFilter(" + quoted() + "," + quoted() + "," + bool() + "," + sign() + "," + compared() + ")";
      case 21: return "ColumnValueFilter(" + quoted() + "," + quoted() + "," + sign() + "," + compared() + ")";
      case 22: return word("NoSuchFilter()", "RowFilter", "(", ")", "''", "PageFilter(1", "RowFilter(=)", "pageFilter(1)", "PageFilter()", "PrefixFilter(a)", "PrefixFilter('a)");
      default: return "PageFilter(" + below(100) + ")";
    }
  }

  static String expression(int depth) {
    int kind = depth == 0 ? 0 : below(7);
    switch (kind) {
      case 1: return expression(depth - 1) + " AND " + expression(depth - 1);
      case 2: return expression(depth - 1) + " OR " + expression(depth - 1);
      case 3: return "(" + expression(depth - 1) + ")";
      case 4: return "SKIP " + expression(depth - 1);
      case 5: return "WHILE " + expression(depth - 1);
      case 6: return "(" + expression(depth - 1) + ") AND (" + expression(depth - 1) + " OR " + expression(depth - 1) + ")";
      default: return simple();
    }
  }

  static void languages(int count) {
    for (int i = 0; i < count; i++) {
      String text = expression(chance(60) ? 0 : 3);
      if (chance(15) && text.length() > 0) { // break something
        int at = below(text.length());
        text = text.substring(0, at) + word("", "(", ")", "'", " ", ",", "\t", " AND ", "OR") + text.substring(Math.min(text.length(), at + below(2)));
      }
      if (chance(4)) text = word("", " ", "AND", "SKIP", "()", "( )", "PageFilter(1) PageFilter(2)", "PageFilter(1) AND", "OR PageFilter(1)");
      language(text);
    }
  }
}
