// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Tables with special files: halves after a split, parts after a merge, links of cloned snapshots (of an existing table,
 * of a dropped one, and halves of links), file lists (the FILE tracker), values in MOB files (of a table, and of a clone
 * of a dropped table), and every encoding with every compression. Only the MOB table and the origin of the clones are
 * compacted, in round 1, so all these files still exist after a stop.
 */
final class Shapes {
  private static final TableName SPLIT = TableName.valueOf("shape_split");
  private static final TableName MERGED = TableName.valueOf("shape_merged");
  private static final TableName ORIGIN = TableName.valueOf("shape_origin");
  private static final TableName CLONED = TableName.valueOf("shapes", "cloned");
  private static final TableName GONE = TableName.valueOf("shape.gone");
  private static final TableName ORPHAN = TableName.valueOf("shapes", "orphan");
  private static final String TRACKER = "hbase.store.file-tracker.";
  private static final TableName LISTED = TableName.valueOf("shape_listed");
  /** Tables in the middle of a migration between trackers, which one server begins and the next one completes. */
  private static final TableName TO_LIST = TableName.valueOf("shape_to_list");
  private static final TableName FROM_LIST = TableName.valueOf("shape_from_list");
  private static final TableName CODED = TableName.valueOf("shape_coded");
  private static final TableName MOB = TableName.valueOf("shape_mob");
  private static final TableName MOB_GONE = TableName.valueOf("shape.mobgone");
  private static final TableName MOB_ORPHAN = TableName.valueOf("shapes", "moborphan");
  private static final TableName[] ALL = {SPLIT, MERGED, ORIGIN, CLONED, ORPHAN, LISTED, TO_LIST, FROM_LIST, CODED, MOB, MOB_ORPHAN};

  private static final Compression.Algorithm[] COMPRESSIONS = {Compression.Algorithm.NONE, Compression.Algorithm.GZ,
    Compression.Algorithm.SNAPPY, Compression.Algorithm.LZ4, Compression.Algorithm.ZSTD};

  private final Connection connection;
  private final Admin admin;

  Shapes(Connection connection) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
  }

  private static TableDescriptorBuilder table(TableName name) {
    return TableDescriptorBuilder.newBuilder(name).setCompactionEnabled(false);
  }

  private static ColumnFamilyDescriptor family(String name, DataBlockEncoding encoding, Compression.Algorithm c) {
    return ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name)).setBlocksize(1024).setMaxVersions(3)
      .setDataBlockEncoding(encoding).setCompressionType(c).build();
  }

  private void create(TableDescriptorBuilder builder, int regions) throws IOException {
    builder.setColumnFamily(family("p", DataBlockEncoding.FAST_DIFF, Compression.Algorithm.GZ))
      .setColumnFamily(family("q", DataBlockEncoding.NONE, Compression.Algorithm.NONE));
    byte[][] splits = new byte[regions - 1][];
    for (int i = 1; i < regions; i++) {
      splits[i - 1] = row(i * 90 / regions);
    }
    admin.createTable(builder.build(), splits.length == 0 ? null : splits);
  }

  /** Half of the values are above the threshold. */
  private void createMob(TableName name) throws IOException {
    ColumnFamilyDescriptor mob = ColumnFamilyDescriptorBuilder
      .newBuilder(family("p", DataBlockEncoding.FAST_DIFF, Compression.Algorithm.GZ)).setMobEnabled(true)
      .setMobThreshold(60).build();
    ColumnFamilyDescriptor all = ColumnFamilyDescriptorBuilder
      .newBuilder(family("q", DataBlockEncoding.NONE, Compression.Algorithm.NONE)).setMobEnabled(true)
      .setMobThreshold(0).build();
    admin.createTable(table(name).setColumnFamily(mob).setColumnFamily(all).build());
  }

  private static byte[] row(int i) {
    return Bytes.toBytes(String.format("r%03d", i));
  }

  /** Puts and some markers, flushed; twice in the first round. */
  private void write(TableName name, int round) throws Exception {
    Random random = new Random(name.hashCode() * 31L + round);
    long base = 1700000000000L + round * 1000;
    try (Table table = connection.getTable(name)) {
      ColumnFamilyDescriptor[] families = table.getDescriptor().getColumnFamilies();
      for (int part = 0; part < (round == 0 ? 2 : 1); part++) {
        List<Row> rows = new ArrayList<>();
        for (int i = 0; i < 90; i++) {
          byte[] family = families[random.nextInt(families.length)].getName();
          byte[] value = new byte[random.nextInt(120)];
          random.nextBytes(value);
          if (random.nextInt(8) == 0) {
            rows.add(new Delete(row(random.nextInt(90))).addFamily(family, base + random.nextInt(30)));
          }
          rows.add(new Put(row(i)).addColumn(family, Bytes.toBytes("q" + i % 3), base + random.nextInt(40), value));
        }
        table.batch(rows, new Object[rows.size()]);
        admin.flush(name);
      }
    }
  }

  private RegionInfo region(TableName name, int index) throws IOException {
    List<RegionInfo> regions = admin.getRegions(name);
    regions.sort(RegionInfo.COMPARATOR);
    return regions.get(index < 0 ? regions.size() + index : index);
  }

  private Future<Void> split(TableName name, int index, int at) throws IOException {
    return admin.splitRegionAsync(region(name, index).getRegionName(), row(at));
  }

  private Future<Void> merge(TableName name) throws IOException {
    return admin.mergeRegionsAsync(new byte[][] {region(name, 0).getEncodedNameAsBytes(),
      region(name, 1).getEncodedNameAsBytes()}, false);
  }

  @SafeVarargs
  private static void all(Future<Void>... changes) throws Exception {
    for (Future<Void> change : changes) {
      change.get();
    }
  }

  private void create() throws Exception {
    admin.createNamespace(NamespaceDescriptor.create("shapes").build());
    create(table(SPLIT), 1);
    create(table(MERGED), 3);
    create(table(ORIGIN), 2);
    create(table(GONE), 1);
    createMob(MOB);
    createMob(MOB_GONE);
    create(table(LISTED).setValue(TRACKER + "impl", "FILE"), 2);
    create(table(TO_LIST), 2);
    create(table(FROM_LIST).setValue(TRACKER + "impl", "FILE"), 2);
    TableDescriptorBuilder coded = table(CODED);
    int n = 0;
    for (DataBlockEncoding encoding : DataBlockEncoding.values()) {
      for (int i = 0; i < 2; i++, n++) {
        coded.setColumnFamily(family("f" + n, encoding, COMPRESSIONS[(n + n / 5) % COMPRESSIONS.length]));
      }
    }
    admin.createTable(coded.build());
  }

  private void migrate(TableName name, String from, String to) throws IOException {
    admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(name)).setValue(TRACKER + "impl", "MIGRATION")
      .setValue(TRACKER + "migration.src.impl", from).setValue(TRACKER + "migration.dst.impl", to).build());
  }

  /** Rewrites the values of the first region; references in the second region stay. */
  private void compactMob() throws Exception {
    byte[] first = region(MOB, 0).getRegionName();
    long before = admin.getLastMajorCompactionTimestampForRegion(first);
    admin.majorCompactRegion(first);
    while (admin.getLastMajorCompactionTimestampForRegion(first) == before) {
      Thread.sleep(20);
    }
  }

  /** Round 0 is by HBase, the only server that makes snapshots here. */
  void fill(int round) throws Exception {
    if (round == 0) {
      create();
      write(ORIGIN, 100);
      write(GONE, 100);
      write(MOB_GONE, 100);
      admin.snapshot("of_origin", ORIGIN);
      admin.cloneSnapshot("of_origin", CLONED);
      admin.snapshot("of_gone", GONE);
      admin.cloneSnapshot("of_gone", ORPHAN);
      admin.snapshot("of_mobgone", MOB_GONE);
      admin.cloneSnapshot("of_mobgone", MOB_ORPHAN);
      admin.disableTable(MOB_GONE);
      admin.deleteTable(MOB_GONE);
      admin.deleteSnapshot("of_mobgone");
      admin.disableTable(GONE);
      admin.deleteTable(GONE);
      admin.deleteSnapshot("of_gone");
      admin.deleteSnapshot("of_origin");
    }
    for (TableName name : ALL) {
      write(name, round);
    }
    if (round == 0) {
      migrate(TO_LIST, "DEFAULT", "FILE");
      migrate(FROM_LIST, "FILE", "DEFAULT");
    } else if (round == 1) {
      admin.modifyTableStoreFileTracker(TO_LIST, "FILE");
      admin.modifyTableStoreFileTracker(FROM_LIST, "DEFAULT");
    } else if (round == 2) {
      // HBase assumes DEFAULT as the start of a migration unless it is given.
      migrate(TO_LIST, "FILE", "DEFAULT");
      admin.modifyTableStoreFileTracker(TO_LIST, "DEFAULT");
      admin.modifyTableStoreFileTracker(FROM_LIST, "FILE");
    }
    if (round == 0) {
      all(split(SPLIT, 0, 45), merge(MERGED), split(CLONED, 0, 20), split(LISTED, 0, 30), split(MOB, 0, 45));
    } else if (round == 1) {
      all(split(MERGED, -1, 75), split(CLONED, -1, 70), split(LISTED, -1, 80));
      admin.majorCompact(ORIGIN);
      compactMob();
    }
  }
}
