// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableSnapshotScanner;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.IdentityTableMapper;
import org.apache.hadoop.hbase.mapreduce.TableMapReduceUtil;
import org.apache.hadoop.hbase.snapshot.ExportSnapshot;
import org.apache.hadoop.hbase.snapshot.SnapshotInfo;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.output.NullOutputFormat;
import org.apache.hadoop.util.ToolRunner;

/** Snapshots of either server, their clones, and HBase's tools that read a folder's snapshots without a server. */
final class Snapshots {
  private static final TableName SNAP = TableName.valueOf("snap");
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] M = Bytes.toBytes("m");

  private final Connection connection;
  private final Admin admin;

  Snapshots(Connection connection) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
  }

  // ---- making and reading

  /** Rows of a normal family, and larger values of a MOB family. */
  private void put(Table table, String prefix, int count) throws IOException {
    byte[] large = new byte[2000];
    Arrays.fill(large, (byte) prefix.charAt(0));
    for (int i = 0; i < count; i++) {
      table.put(new Put(Bytes.toBytes(String.format("%02d%s%d", i % 100, prefix, i)))
        .addColumn(F, Bytes.toBytes("q"), Bytes.toBytes(prefix + i)).addColumn(M, Bytes.toBytes("q"), large));
    }
  }

  /** Makes at least three files in each region, including halves of a split, and writes after the snapshot. */
  void make(String name) throws Exception {
    admin.createTable(TableDescriptorBuilder.newBuilder(SNAP)
      .setColumnFamily(ColumnFamilyDescriptorBuilder.of(F))
      .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(M).setMobEnabled(true).setMobThreshold(1000).build())
      .build(), new byte[][] {Bytes.toBytes("50")});
    admin.compactionSwitch(false, java.util.Collections.emptyList());
    try (Table table = connection.getTable(SNAP)) {
      for (String prefix : new String[] {"a", "b"}) {
        put(table, prefix, 100);
        admin.flush(SNAP);
      }
      admin.splitRegionAsync(admin.getRegions(SNAP).get(0).getRegionName(), Bytes.toBytes("20")).get();
      put(table, "c", 50);
      admin.snapshot(name, SNAP);
      put(table, "d", 50);
    }
  }

  void clone(String name, String table) throws IOException {
    admin.cloneSnapshot(name, TableName.valueOf(table));
  }

  /** Drops the snapshot's table, so that only the archive has its files. */
  void drop(String table) throws IOException {
    admin.disableTable(TableName.valueOf(table));
    admin.deleteTable(TableName.valueOf(table));
  }

  void snapshot(String name, String table) throws IOException {
    admin.snapshot(name, TableName.valueOf(table));
  }

  private static void print(PrintWriter out, Result r) {
    for (Cell c : r.rawCells()) {
      out.println(Bytes.toStringBinary(CellUtil.cloneRow(c)) + " " + Bytes.toString(CellUtil.cloneFamily(c)) + " "
        + c.getTimestamp() + " " + Bytes.hashCode(CellUtil.cloneValue(c)));
    }
  }

  void dump(String name, Path file) throws IOException {
    try (Table table = connection.getTable(TableName.valueOf(name)); ResultScanner scanner = table.getScanner(new Scan());
         PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
      for (Result r : scanner) {
        print(out, r);
      }
    }
  }

  // ---- tools on a folder

  private static Configuration on(Path root) throws IOException {
    Configuration conf = Main.configuration("1");
    conf.set("fs.defaultFS", "file:///");
    conf.set(HConstants.HBASE_DIR, "file://" + root);
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", Files.createTempDirectory(root.getParent(), "tmp").toString());
    return conf;
  }

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }

  /** Exports without checksums of whole files, which Hadoop's local file system lacks. */
  static void export(Path from, String name, Path to) throws Exception {
    check(ToolRunner.run(on(from), new ExportSnapshot(),
      new String[] {"-snapshot", name, "-copy-to", "file://" + to, "-mappers", "2", "-no-checksum-verify"}) == 0,
      "ExportSnapshot failed");
  }

  /** HBase's SnapshotInfo, its ClientSideRegionScanner, and a job on TableSnapshotInputFormat. */
  static void read(Path root, String name, Path file) throws Exception {
    Configuration conf = on(root);
    check(ToolRunner.run(conf, new SnapshotInfo(),
      new String[] {"-snapshot", name, "-files", "-stats", "-schema"}) == 0, "SnapshotInfo failed");
    org.apache.hadoop.fs.Path hroot = new org.apache.hadoop.fs.Path("file://" + root);
    org.apache.hadoop.fs.Path work = new org.apache.hadoop.fs.Path("file://" + conf.get("hadoop.tmp.dir") + "/restored");
    int rows = 0;
    try (TableSnapshotScanner scanner = new TableSnapshotScanner(conf, hroot, work, name, new Scan());
         PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
      for (Result r = scanner.next(); r != null; r = scanner.next(), rows++) {
        print(out, r);
      }
    }
    Job job = Job.getInstance(conf, "rows");
    TableMapReduceUtil.initTableSnapshotMapperJob(name, new Scan(), IdentityTableMapper.class, ImmutableBytesWritable.class,
      Result.class, job, false, new org.apache.hadoop.fs.Path("file://" + conf.get("hadoop.tmp.dir") + "/job"));
    job.setOutputFormatClass(NullOutputFormat.class);
    job.setNumReduceTasks(0);
    check(job.waitForCompletion(false), "the job failed");
    long seen = job.getCounters().findCounter(TaskCounter.MAP_INPUT_RECORDS).getValue();
    check(seen == rows && rows > 0, "TableSnapshotInputFormat has " + seen + " rows, TableSnapshotScanner " + rows);
  }
}
