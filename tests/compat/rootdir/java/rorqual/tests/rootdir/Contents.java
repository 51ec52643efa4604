// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/** Tables of every kind with random histories, and everything that a client sees of them as text. */
final class Contents {
  /** Tables without compactions, so that raw scans have the same result before and after a restart. */
  private static final TableName ALL = TableName.valueOf("n1", "all");
  private static final TableName KINDS = TableName.valueOf("kinds");
  private static final TableName LOADED = TableName.valueOf("loaded");
  private static final TableName OFF = TableName.valueOf("off");
  private static final TableName COMPACTED = TableName.valueOf("compacted");

  private final Connection connection;
  private final Admin admin;

  Contents(Connection connection) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
  }

  // ---- writing

  private static ColumnFamilyDescriptorBuilder family(String name) {
    return ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name)).setBlocksize(2048);
  }

  private void create() throws IOException {
    admin.createNamespace(NamespaceDescriptor.create("n1").addConfiguration("who", "we").build());
    admin.createNamespace(NamespaceDescriptor.create("empty").build());
    byte[][] splits = {Bytes.toBytes("r030"), Bytes.toBytes("r060")};
    admin.createTable(TableDescriptorBuilder.newBuilder(ALL).setCompactionEnabled(false).setValue("note", "kept")
      .setColumnFamilies(Arrays.asList(family("p").setMaxVersions(5).build(),
        family("q").setMaxVersions(3).setCompressionType(Compression.Algorithm.SNAPPY)
          .setDataBlockEncoding(DataBlockEncoding.ROW_INDEX_V1).setBloomFilterType(BloomType.ROWCOL).build(),
        family("r").setMaxVersions(2).setCompressionType(Compression.Algorithm.GZ)
          .setKeepDeletedCells(KeepDeletedCells.TRUE).setBloomFilterType(BloomType.NONE).build()))
      .build(), splits);
    admin.createTable(TableDescriptorBuilder.newBuilder(KINDS).setCompactionEnabled(false)
      .setColumnFamilies(Arrays.asList(
        family("p").setMaxVersions(3).setCompressionType(Compression.Algorithm.LZ4).setNewVersionBehavior(true)
          .build(),
        family("q").setMaxVersions(4).setMinVersions(1).setTimeToLive(10000000)
          .setCompressionType(Compression.Algorithm.ZSTD).build(),
        family("r").setInMemory(true).build()))
      .build());
    admin.createTable(TableDescriptorBuilder.newBuilder(LOADED).setCompactionEnabled(false)
      .setColumnFamily(family("p").setMaxVersions(3).build()).build(), splits);
    for (TableName t : new TableName[] {OFF, COMPACTED}) {
      admin.createTable(TableDescriptorBuilder.newBuilder(t).setColumnFamily(family("p").setMaxVersions(2).build())
        .setColumnFamily(family("q").build()).setColumnFamily(family("r").build()).build());
    }
  }

  private void random(TableName name, Random random, int round, int operations) throws IOException {
    String[] families = {"p", "q", "r"};
    long base = 1700000000000L + round * 1000;
    try (Table table = connection.getTable(name)) {
      for (int i = 0; i < operations; i++) {
        byte[] row = Bytes.toBytes(String.format("r%03d", random.nextInt(90)));
        byte[] family = Bytes.toBytes(families[random.nextInt(3)]);
        byte[] qualifier = Bytes.toBytes("q" + random.nextInt(4));
        long ts = base + random.nextInt(40);
        Delete delete = new Delete(row);
        switch (random.nextInt(12)) {
          case 0:
            table.delete(delete.addColumn(family, qualifier, ts));
            break;
          case 1:
            table.delete(delete.addColumns(family, qualifier, ts));
            break;
          case 2:
            table.delete(delete.addFamily(family, ts - 20));
            break;
          case 3:
            table.delete(delete.addFamilyVersion(family, ts));
            break;
          case 4:
            table.put(new Put(row).addColumn(family, qualifier, Bytes.toBytes("now" + i)).setTTL(90000000));
            break;
          default:
            byte[] value = new byte[random.nextInt(200)];
            random.nextBytes(value);
            table.put(new Put(row).addColumn(family, qualifier, ts, value)
              .setDurability(random.nextInt(5) == 0 ? Durability.SKIP_WAL : Durability.USE_DEFAULT));
            break;
        }
        if (i % (operations / 3 + 1) == operations / 3) {
          admin.flush(name);
        }
      }
    }
  }

  private void load(int round, Path folder) throws IOException {
    org.apache.hadoop.fs.Path dir = new org.apache.hadoop.fs.Path(folder.resolve("load" + round).toString());
    HFiles files = new HFiles(connection.getConfiguration());
    List<KeyValue> cells = new ArrayList<>();
    for (int i = 0; i < 90; i++) {
      cells.add(HFiles.put(String.format("r%03d", i), "p", "loaded", 5, round + "/" + i));
    }
    files.write(dir, "p", "whole", cells);
    files.write(dir, "p", "part", cells.subList(5, 20), Compression.Algorithm.GZ, DataBlockEncoding.NONE);
    BulkLoadHFiles.create(connection.getConfiguration()).bulkLoad(LOADED, dir);
  }

  void fill(int round, Path folder) throws Exception {
    Random random = new Random(7000 + round);
    if (round == 0) {
      create();
    } else {
      admin.enableTable(OFF);
    }
    random(ALL, random, round, 300);
    random(KINDS, random, round, 300);
    random(OFF, random, round, 60);
    random(COMPACTED, random, round, 120);
    load(round, folder);
    admin.flush(COMPACTED);
    admin.majorCompact(COMPACTED);
    admin.disableTable(OFF);
  }

  // ---- reading

  private static byte[] tags(KeyValue c) {
    return Arrays.copyOfRange(c.getTagsArray(), c.getTagsOffset(), c.getTagsOffset() + c.getTagsLength());
  }

  private static String text(Cell c) {
    return Bytes.toStringBinary(CellUtil.cloneRow(c)) + "/" + Bytes.toString(CellUtil.cloneFamily(c)) + ":"
      + Bytes.toStringBinary(CellUtil.cloneQualifier(c)) + "/" + c.getTimestamp() + "/" + c.getType() + "/"
      + Bytes.toStringBinary(tags(KeyValueUtil.ensureKeyValue(c)))
      + "=" + Bytes.toStringBinary(CellUtil.cloneValue(c));
  }

  private void scan(PrintWriter out, TableName name, String title, Scan scan) throws IOException {
    out.println(name + " " + title);
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      for (Result r : scanner) {
        for (Cell c : r.rawCells()) {
          out.println("  " + text(c));
        }
      }
    }
  }

  /** Flushes first, because a stop flushes, and a flush drops hidden cells. */
  void dump(Path file) throws IOException {
    try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
      for (NamespaceDescriptor n : admin.listNamespaceDescriptors()) {
        out.println(n);
      }
      for (TableDescriptor t : admin.listTableDescriptors()) {
        TableName name = t.getTableName();
        out.println(t);
        for (RegionInfo r : admin.getRegions(name)) {
          out.println(r.getRegionNameAsString());
        }
        if (!admin.isTableEnabled(name)) {
          out.println(name + " is disabled");
          continue;
        }
        admin.flush(name);
        scan(out, name, "newest", new Scan());
        scan(out, name, "all versions", new Scan().readAllVersions());
        scan(out, name, "backwards", new Scan().setReversed(true));
        if (!t.isCompactionEnabled()) {
          scan(out, name, "raw", new Scan().setRaw(true).readAllVersions());
        }
      }
    }
  }

  /** Enables the disabled table and dumps it, too. */
  void dumpOff(Path file) throws IOException {
    try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
      admin.enableTable(OFF);
      scan(out, OFF, "newest", new Scan());
      admin.disableTable(OFF);
    }
  }
}
