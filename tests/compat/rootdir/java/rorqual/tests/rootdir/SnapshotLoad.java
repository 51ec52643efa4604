// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A snapshot every second during writes, splits and compactions; the last 60 are kept, every 30th is cloned and compared.
 *
 * <p>One thread writes the counters 1, 2, 3 … in order, counter c to row c % ROWS. A snapshot begun when all counters up
 * to A were acknowledged, and done when B had been sent, has in each row the newest counter up to A or one up to B.
 */
final class SnapshotLoad {
  private static final TableName LOAD = TableName.valueOf("snapshot_load");
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] Q = Bytes.toBytes("q");
  private static final int ROWS = 100_000;
  private static final int BATCH = 50;
  private static final int VALUE = 1000;
  private static final int KEPT = 60;
  private static final double BATCHES_PER_SECOND = 5e6 / (BATCH * VALUE);

  private final Connection connection;
  private final Admin admin;
  private volatile boolean over;
  private volatile boolean quiet = true; // true until the first snapshot is taken
  private volatile long sent;
  private volatile long acknowledged;
  private volatile Throwable failure;
  private final List<Long> alone = new ArrayList<>();
  private final List<Long> beside = new ArrayList<>();

  SnapshotLoad(Connection connection) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
  }

  private static byte[] row(long counter) {
    return Bytes.toBytes(String.format("%05d", counter % ROWS));
  }

  private void write() {
    byte[] value = new byte[VALUE];
    ThreadLocalRandom.current().nextBytes(value);
    try (Table table = connection.getTable(LOAD)) {
      long begun = System.nanoTime();
      for (long n = 0; !over; n++) {
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
          byte[] own = value.clone();
          Bytes.putLong(own, 0, acknowledged + 1 + i);
          puts.add(new Put(row(acknowledged + 1 + i)).addColumn(F, Q, own));
        }
        sent = acknowledged + BATCH;
        long before = System.nanoTime();
        table.put(puts);
        (quiet ? alone : beside).add(System.nanoTime() - before);
        acknowledged = sent;
        long due = begun + (long) (n / BATCHES_PER_SECOND * 1e9);
        while (System.nanoTime() < due) {
          Thread.sleep(1);
        }
      }
    } catch (Throwable e) {
      failure = e;
    }
  }

  private static double p99(List<Long> list) {
    Long[] sorted = list.toArray(new Long[0]);
    Arrays.sort(sorted);
    return sorted[sorted.length * 99 / 100] / 1e6;
  }

  private void compare(String name, long from, long to) throws IOException {
    TableName clone = TableName.valueOf("clone_" + name);
    admin.cloneSnapshot(name, clone);
    long rows = 0;
    try (Table table = connection.getTable(clone); ResultScanner scanner = table.getScanner(new Scan().setCaching(1000))) {
      for (Result r : scanner) {
        long row = Long.parseLong(Bytes.toString(r.getRow()));
        long counter = Bytes.toLong(r.getValue(F, Q));
        long newest = from - Math.floorMod(from - row, (long) ROWS);
        if (counter % ROWS != row || counter < newest || counter > to) {
          throw new AssertionError(name + ": row " + row + " has " + counter + ", not from " + newest + " to " + to);
        }
        rows++;
      }
    }
    long least = Math.min(from, ROWS);
    if (rows < least) {
      throw new AssertionError(name + ": " + rows + " rows, not " + least);
    }
    admin.disableTable(clone);
    admin.deleteTable(clone);
  }

  /** Does not wait, because a region that has just been split cannot be split again yet. */
  private void split() {
    try {
      List<RegionInfo> regions = admin.getRegions(LOAD);
      RegionInfo one = regions.get(ThreadLocalRandom.current().nextInt(regions.size()));
      if (regions.size() < 16) {
        admin.splitRegionAsync(one.getRegionName());
      }
    } catch (IOException e) {
      System.err.println("no split: " + e);
    }
  }

  private void take(int seconds) throws Exception {
    Deque<String> kept = new ArrayDeque<>();
    long begun = System.nanoTime();
    int compared = 0;
    for (int n = 1; (System.nanoTime() - begun) / 1e9 < seconds && failure == null; n++) {
      String name = "s" + n;
      long from = acknowledged;
      admin.snapshot(name, LOAD);
      long to = sent;
      kept.addLast(name);
      if (n % 30 == 0) {
        compare(name, from, to);
        compared++;
      }
      if (kept.size() > KEPT) {
        admin.deleteSnapshot(kept.removeFirst());
      }
      if (n % 20 == 0) {
        admin.majorCompact(LOAD);
      }
      if (n % 25 == 0) {
        split();
      }
      while ((System.nanoTime() - begun) / 1e9 < n) {
        Thread.sleep(1);
      }
    }
    System.out.printf("NOTE %d snapshots listed, %d compared%n", admin.listSnapshots().size(), compared);
    for (String name : kept) {
      admin.deleteSnapshot(name);
    }
    if (compared == 0) {
      throw new AssertionError("none was compared: the run is too short");
    }
  }

  /** Leaves the table compacted and without snapshots. */
  void run(int seconds) throws Exception {
    admin.createTable(TableDescriptorBuilder.newBuilder(LOAD).setColumnFamily(ColumnFamilyDescriptorBuilder.of(F)).build(),
      new byte[][] {Bytes.toBytes("3"), Bytes.toBytes("6")});
    Thread writer = new Thread(this::write);
    writer.start();
    try {
      Thread.sleep(Math.min(60, seconds / 3) * 1000L); // measures the writes' latency in ms without snapshots
      quiet = false;
      take(seconds);
    } finally {
      over = true;
      writer.join();
    }
    if (failure != null) {
      throw new IOException("the writer failed", failure);
    }
    System.out.printf("NOTE p99 of %d kB batches: %.1f ms without snapshots, %.1f ms beside them%n", BATCH * VALUE / 1000,
      p99(alone), p99(beside));
    admin.flush(LOAD);
    admin.majorCompact(LOAD);
  }
}
