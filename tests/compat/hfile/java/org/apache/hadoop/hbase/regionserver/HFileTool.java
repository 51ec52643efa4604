// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase.regionserver;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.InnerStoreCellComparator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.MetaCellComparator;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFilePrettyPrinter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.ChecksumType;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALFactory;

/**
 * The Java half of the HFile compatibility test: HBase's own code, driven by text commands on standard input,
 * with one line of response each, so that one JVM suffices.
 *
 * <pre>
 *   write CELLS FILE KEY=VALUE…   HBase's StoreFileWriter writes the cells (make_hfile.c's text)
 *   expect CELLS OUT VALUES MVCC TAGS   what HFilePrettyPrinter must print of them, made without any HFile
 *   print FILE OUT                HFilePrettyPrinter -m -p -v -k -b; the cells' lines to OUT, all to OUT.meta
 *   bloom CELLS FILE TYPE         every key of the cells passes HBase's reader of the bloom, absent ones do not
 *   bulkload CELLS FILE DIR       an HRegion bulk-loads a copy: every cell is there, absent rows are cut by the bloom
 *   flush ZKPORT TABLE CELLS COMPRESSION BLOCK BLOOM OUT   a running HBase writes and flushes the cells
 *   load ZKPORT TABLE CELLS DIR   a running HBase bulk-loads DIR/fam/*
 * </pre>
 */
public class HFileTool {

  private static Configuration conf;
  private static FileSystem fs;

  private static byte[] hex(String s) {
    return s.equals("-") ? new byte[0] : Bytes.fromHex(s);
  }

  private static List<KeyValue> cells(String file) throws IOException {
    List<KeyValue> list = new ArrayList<>();
    try (BufferedReader in = Files.newBufferedReader(Paths.get(file), StandardCharsets.ISO_8859_1)) {
      for (String line; (line = in.readLine()) != null;) {
        String[] f = line.split("\t");
        byte[] row = hex(f[0]), family = hex(f[1]), qualifier = hex(f[2]), value = hex(f[3]), tags = hex(f[4]);
        KeyValue kv = new KeyValue(row, 0, row.length, family, 0, family.length, qualifier, 0, qualifier.length,
          Long.parseLong(f[5]), KeyValue.Type.codeToType((byte) Integer.parseInt(f[6])), value, 0, value.length, tags,
          0, tags.length);
        kv.setSequenceId(Long.parseLong(f[7]));
        list.add(kv);
      }
    }
    return list;
  }

  private static String write(String[] a) throws IOException {
    Map<String, String> o = new HashMap<>();
    for (int i = 3; i < a.length; i++) o.put(a[i].substring(0, a[i].indexOf('=')), a[i].substring(a[i].indexOf('=') + 1));
    Configuration c = new Configuration(conf);
    if (o.containsKey("bloom_prefix")) c.set("RowPrefixBloomFilter.prefix_length", o.get("bloom_prefix"));
    if (o.containsKey("index_chunk")) c.set("hfile.index.block.max.size", o.get("index_chunk"));
    if (o.containsKey("index_min")) c.set("hfile.index.block.min.entries", o.get("index_min"));
    if (o.containsKey("bloom_chunk")) c.set("io.storefile.bloom.block.size", o.get("bloom_chunk"));
    String checksum = o.getOrDefault("checksum", "CRC32C");
    HFileContext context = new HFileContextBuilder()
      .withBlockSize(Integer.parseInt(o.getOrDefault("block", "65536")))
      .withCompression(Compression.Algorithm.valueOf(o.getOrDefault("compression", "NONE")))
      .withChecksumType(checksum.equals("NONE") ? ChecksumType.NULL : ChecksumType.nameToType(checksum))
      .withBytesPerCheckSum(Integer.parseInt(o.getOrDefault("per_checksum", "16384")))
      .withIncludesMvcc(!o.getOrDefault("mvcc", "1").equals("0"))
      .withIncludesTags(!o.getOrDefault("tags", "1").equals("0"))
      .withCompressTags(!o.getOrDefault("compress_tags", "1").equals("0"))
      .withDataBlockEncoding(DataBlockEncoding.valueOf(o.getOrDefault("encoding", "NONE")))
      .withCreateTime(Long.parseLong(o.getOrDefault("created", "0")))
      .withCellComparator(o.getOrDefault("order", "").equals("META") ? MetaCellComparator.META_COMPARATOR
        : InnerStoreCellComparator.INNER_STORE_COMPARATOR).build();
    StoreFileWriter w = new StoreFileWriter.Builder(c, new CacheConfig(c), fs).withFilePath(new Path(a[2]))
      .withBloomType(BloomType.valueOf(o.getOrDefault("bloom", "ROW"))).withMaxKeyCount(1000000)
      .withFileContext(context).build();
    for (KeyValue kv : cells(a[1])) w.append(kv);
    if (!o.getOrDefault("store", "0").equals("0"))
      w.appendMetadata(Long.parseLong(o.getOrDefault("seqid", "0")), !o.getOrDefault("major", "0").equals("0"));
    w.close();
    return "ok";
  }

  private static String expect(String[] a) throws IOException {
    boolean mvcc = !a[4].equals("0"), tags = !a[5].equals("0");
    try (PrintStream out = new PrintStream(a[2], "ISO-8859-1")) {
      for (KeyValue kv : cells(a[1])) {
        if (!mvcc) kv.setSequenceId(0);
        out.print("K: " + KeyValue.keyToString(kv.getBuffer(), kv.getKeyOffset(), kv.getKeyLength()) + "/vlen="
          + kv.getValueLength() + "/seqid=" + kv.getSequenceId());
        if (!a[3].equals("0")) {
          out.print(" V: " + Bytes.toStringBinary(kv.getValueArray(), kv.getValueOffset(), kv.getValueLength()));
          int i = 0;
          if (tags) for (Tag t : PrivateCellUtil.getTags(kv)) out.print(" T[" + i++ + "]: " + t);
        }
        out.println();
      }
    }
    return "ok";
  }

  private static String print(String[] a) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(), errors = new ByteArrayOutputStream();
    HFilePrettyPrinter printer = new HFilePrettyPrinter(conf);
    printer.setPrintStreams(new PrintStream(bytes, true, "ISO-8859-1"), new PrintStream(errors, true, "ISO-8859-1"));
    int status = printer.run(new String[] { "-f", "file://" + a[1], "-m", "-p", "-v", "-k", "-b" });
    String all = bytes.toString("ISO-8859-1");
    try (PrintStream out = new PrintStream(a[2], "ISO-8859-1"); PrintStream meta = new PrintStream(a[2] + ".meta", "ISO-8859-1")) {
      for (String line : all.split("\n")) (line.startsWith("K: ") ? out : meta).println(line);
    }
    return status != 0 || errors.size() > 0 ? "failed: status " + status + " " + errors : "ok";
  }

  private static String bloom(String[] a) throws Exception {
    BloomType type = BloomType.valueOf(a[3]);
    HStoreFile file = new HStoreFile(fs, new Path(a[2]), conf, new CacheConfig(conf), type, true);
    file.initReader();
    StoreFileReader reader = file.getReader();
    int asked = 0, wrong = 0;
    byte[] last = null;
    for (KeyValue kv : cells(a[1])) {
      byte[] row = Arrays.copyOfRange(kv.getRowArray(), kv.getRowOffset(), kv.getRowOffset() + kv.getRowLength());
      byte[] qualifier = Arrays.copyOfRange(kv.getQualifierArray(), kv.getQualifierOffset(),
        kv.getQualifierOffset() + kv.getQualifierLength());
      TreeSet<byte[]> columns = new TreeSet<>(Bytes.BYTES_COMPARATOR);
      columns.add(qualifier);
      if (!reader.passesBloomFilter(new Scan(new Get(row)), columns)) return "failed: the bloom denies " + kv;
      byte t = kv.getTypeByte();
      boolean family = t == KeyValue.Type.DeleteFamily.getCode() || t == KeyValue.Type.DeleteFamilyVersion.getCode();
      if (family && !reader.passesDeleteFamilyBloomFilter(row, 0, row.length)) return "failed: delete family bloom denies " + kv;
      if (last != null && Bytes.equals(last, row)) continue;
      last = row;
      byte[] absent = type == BloomType.ROWPREFIX_FIXED_LENGTH
        ? Bytes.add(Bytes.toBytes(new StringBuilder(String.format("%08x", Bytes.hashCode(row))).reverse().toString()), row)
        : Bytes.add(row, Bytes.toBytes("\u0001-absent"));
      asked++;
      if (reader.passesBloomFilter(new Scan(new Get(absent)), columns)) wrong++;
    }
    file.closeStoreFile(true);
    if (type != BloomType.NONE && wrong > asked * 0.05 + 3) return "failed: " + wrong + " of " + asked + " absent rows pass";
    return "ok";
  }

  private static String bulkload(String[] a) throws Exception {
    Path root = new Path(a[3]);
    Path staged = new Path(root, "staged/fam/" + new Path(a[2]).getName());
    fs.mkdirs(staged.getParent());
    org.apache.hadoop.fs.FileUtil.copy(fs, new Path(a[2]), fs, staged, false, conf);
    Configuration c = new Configuration(conf);
    c.set("hbase.rootdir", "file://" + a[3]);
    byte[] family = Bytes.toBytes("fam");
    TableName name = TableName.valueOf("t");
    TableDescriptor table = TableDescriptorBuilder.newBuilder(name)
      .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setBloomFilterType(BloomType.ROW).build()).build();
    RegionInfo info = RegionInfoBuilder.newBuilder(name).build();
    WALFactory wals = new WALFactory(c, "compat");
    HRegion region = HRegion.createHRegion(info, root, c, table, wals.getWAL(info));
    List<KeyValue> cells = cells(a[1]);
    region.bulkLoadHFiles(Arrays.asList(new Pair<>(family, staged.toString())), true, null);
    int at = 0;
    try (RegionScanner scanner = region.getScanner(new Scan())) {
      List<Cell> row = new ArrayList<>();
      for (boolean more = true; more;) {
        row.clear();
        more = scanner.next(row);
        for (Cell cell : row) {
          KeyValue kv = cells.get(at++);
          if (!org.apache.hadoop.hbase.CellUtil.equals(cell, kv) || !org.apache.hadoop.hbase.CellUtil.matchingValue(cell, kv))
            return "failed: " + cell + " where " + kv + " is expected";
        }
      }
    }
    if (at != cells.size()) return "failed: " + at + " cells of " + cells.size();
    HStore store = region.getStore(family);
    long before = store.getBloomFilterNegativeResultsCount();
    int absent = 0;
    for (int i = 0; i < cells.size(); i += 7) {
      KeyValue kv = cells.get(i);
      byte[] row = Arrays.copyOfRange(kv.getRowArray(), kv.getRowOffset(), kv.getRowOffset() + kv.getRowLength());
      if (region.get(new Get(row)).isEmpty()) return "failed: get finds nothing of " + kv;
      if (i == cells.size() - 1) continue;
      absent++;
      if (!region.get(new Get(Bytes.add(row, new byte[] { 1 }))).isEmpty()) return "failed: an absent row is found";
    }
    long cut = store.getBloomFilterNegativeResultsCount() - before;
    region.close();
    wals.close();
    if (cut < absent * 0.97) return "failed: the bloom cut " + cut + " of " + absent + " absent rows";
    return "ok " + at + " cells, bloom cut " + cut + " of " + absent + " absent rows";
  }

  /** Uses a running HBase: its client writes the cells to a table, flushes, and scans the table raw into OUT. */
  private static String flush(String[] a) throws Exception {
    Configuration c = client(a[1]);
    TableName name = TableName.valueOf(a[2]);
    byte[] family = Bytes.toBytes("fam");
    try (Connection connection = ConnectionFactory.createConnection(c); Admin admin = connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(Integer.MAX_VALUE)
          .setKeepDeletedCells(org.apache.hadoop.hbase.KeepDeletedCells.TRUE).setBlocksize(Integer.parseInt(a[5]))
          .setBloomFilterType(BloomType.valueOf(a[6])).setCompressionType(Compression.Algorithm.valueOf(a[4])).build())
        .build());
      try (Table table = connection.getTable(name)) {
        List<Row> batch = new ArrayList<>();
        for (KeyValue kv : cells(a[3])) {
          byte[] row = org.apache.hadoop.hbase.CellUtil.cloneRow(kv);
          batch.add(kv.getTypeByte() == KeyValue.Type.Put.getCode() ? new Put(row).add(kv) : new Delete(row).add(kv));
        }
        table.batch(batch, new Object[batch.size()]);
        admin.flush(name);
        try (ResultScanner scanner = table.getScanner(new Scan().setRaw(true).readAllVersions());
          PrintStream out = new PrintStream(a[7], "ISO-8859-1")) {
          for (Result result : scanner) for (Cell cell : result.rawCells()) {
            out.println("K: " + org.apache.hadoop.hbase.CellUtil.getCellKeyAsString(cell).replaceFirst("/seqid=[0-9]+$", "")
              + " V: " + Bytes.toStringBinary(cell.getValueArray(), cell.getValueOffset(), cell.getValueLength()));
          }
        }
      }
    }
    return "ok";
  }

  /** Lets a running HBase bulk-load the file into a table; its client must find every row and no absent ones. */
  private static String load(String[] a) throws Exception {
    Configuration c = client(a[1]);
    TableName name = TableName.valueOf(a[2]);
    byte[] family = Bytes.toBytes("fam");
    List<KeyValue> cells = cells(a[3]);
    try (Connection connection = ConnectionFactory.createConnection(c); Admin admin = connection.getAdmin()) {
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(Integer.MAX_VALUE).build()).build());
      org.apache.hadoop.hbase.tool.BulkLoadHFiles.create(c).bulkLoad(name, new Path("file://" + a[4]));
      int at = 0, missed = 0;
      try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(new Scan().readAllVersions().setCaching(5000))) {
        for (Result result : scanner) for (Cell cell : result.rawCells()) {
          if (!org.apache.hadoop.hbase.CellUtil.equals(cell, cells.get(at))) return "failed: " + cell + " at " + at;
          at++;
        }
        if (at != cells.size()) return "failed: " + at + " cells of " + cells.size();
        List<Get> gets = new ArrayList<>();
        for (int i = 0; i < cells.size(); i += 101) {
          byte[] row = org.apache.hadoop.hbase.CellUtil.cloneRow(cells.get(i));
          gets.add(new Get(row));
          gets.add(new Get(Bytes.add(row, new byte[] { 1 })));
        }
        Result[] results = table.get(gets);
        for (int i = 0; i < results.length; i += 2) {
          if (results[i].isEmpty()) return "failed: a row is missing";
          if (!results[i + 1].isEmpty()) return "failed: an absent row is found";
          missed++;
        }
      }
      return "ok " + at + " cells, " + missed + " absent rows missed";
    }
  }

  private static Configuration client(String zookeeperPort) {
    Configuration c = new Configuration(conf);
    c.set("hbase.zookeeper.quorum", "127.0.0.1");
    c.set("hbase.zookeeper.property.clientPort", zookeeperPort);
    return c;
  }

  private static String run(String[] a) throws Exception {
    switch (a[0]) {
      case "flush": return flush(a);
      case "load": return load(a);
      case "write": return write(a);
      case "expect": return expect(a);
      case "print": return print(a);
      case "bloom": return bloom(a);
      case "bulkload": return bulkload(a);
      default: return "failed: unknown command";
    }
  }

  public static void main(String[] args) throws Exception {
    conf = HBaseConfiguration.create();
    conf.set("hbase.rootdir", "file://" + args[0]);
    conf.set("fs.defaultFS", "file:///");
    conf.set("hbase.wal.provider", "filesystem");
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    conf.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
    fs = FileSystem.getLocal(conf);
    fs.setVerifyChecksum(false);
    BufferedReader in = new BufferedReader(new java.io.InputStreamReader(System.in));
    PrintStream answers = System.out;
    System.setOut(System.err);
    for (String line; (line = in.readLine()) != null;) {
      String answer;
      try {
        answer = run(line.split(" "));
      } catch (Throwable t) {
        t.printStackTrace();
        answer = "failed: " + t;
      }
      answers.println(answer.replace('\n', ' '));
      answers.flush();
    }
    System.exit(0);
  }
}
