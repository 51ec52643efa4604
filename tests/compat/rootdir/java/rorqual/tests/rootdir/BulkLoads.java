// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import static rorqual.tests.rootdir.Check.holds;
import static rorqual.tests.rootdir.Check.same;
import static rorqual.tests.rootdir.Check.test;
import static rorqual.tests.rootdir.Check.thrown;
import static rorqual.tests.rootdir.HFiles.put;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SecureBulkLoadClient;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CorruptHFileException;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.RequestConverter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.tool.LoadIncrementalHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/** Bulk loads as HBase's tools make them, and their calls one by one. */
final class BulkLoads {
  private static final boolean PEER_IS_HBASE = "hbase".equals(System.getenv("PEER"));
  private final Connection connection;
  private final Configuration conf;
  private final Admin admin;
  private final HFiles hfiles;
  private final java.nio.file.Path folder;
  private int names;

  BulkLoads(Connection connection, java.nio.file.Path folder) throws IOException {
    this.connection = connection;
    this.conf = connection.getConfiguration();
    this.admin = connection.getAdmin();
    this.hfiles = new HFiles(conf);
    this.folder = folder;
  }

  // ---- what the tests share

  private Path newFolder() throws IOException {
    return new Path(Files.createTempDirectory(folder, "load").toString());
  }

  private TableName newTable(int versions, String[] families, String... splits) throws IOException {
    TableName name = TableName.valueOf("bulk" + ++names + "_" + System.nanoTime() % 1000000);
    List<ColumnFamilyDescriptor> list = new ArrayList<>();
    for (String f : families) {
      list.add(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(f)).setMaxVersions(versions).build());
    }
    byte[][] keys = Arrays.stream(splits).map(Bytes::toBytes).toArray(byte[][]::new);
    admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamilies(list).build(),
      keys.length == 0 ? null : keys);
    return name;
  }

  private static String text(Cell c) {
    return Bytes.toString(CellUtil.cloneRow(c)) + "/" + Bytes.toString(CellUtil.cloneFamily(c)) + ":"
      + Bytes.toString(CellUtil.cloneQualifier(c)) + "/" + c.getTimestamp() + "/" + c.getType() + "="
      + Bytes.toString(CellUtil.cloneValue(c));
  }

  private List<String> scan(TableName name, Scan scan) throws IOException {
    List<String> out = new ArrayList<>();
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      for (Result r : scanner) {
        for (Cell c : r.rawCells()) {
          out.add(text(c));
        }
      }
    }
    return out;
  }

  private String value(TableName name, String row, String family, String qualifier) throws IOException {
    try (Table table = connection.getTable(name)) {
      return Bytes.toString(table.get(new Get(Bytes.toBytes(row))).getValue(Bytes.toBytes(family),
        Bytes.toBytes(qualifier)));
    }
  }

  private static List<KeyValue> rows(String family, int from, int to, long ts, String value) {
    List<KeyValue> out = new ArrayList<>();
    for (int i = from; i < to; i++) {
      out.add(put(String.format("r%05d", i), family, "q", ts, value + i));
    }
    return out;
  }

  private static boolean exists(Path path) {
    return new File(path.toUri().getPath()).exists();
  }

  /** One call of the protocol, as the tool makes it; without a token if it is null. */
  private boolean call(TableName name, String row, String token, boolean assign, boolean copy, Object... familyPaths)
      throws Exception {
    List<Pair<byte[], String>> list = new ArrayList<>();
    for (int i = 0; i < familyPaths.length; i += 2) {
      list.add(new Pair<>(Bytes.toBytes((String) familyPaths[i]), familyPaths[i + 1].toString()));
    }
    try (RegionLocator locator = connection.getRegionLocator(name); Table table = connection.getTable(name)) {
      HRegionLocation at = locator.getRegionLocation(Bytes.toBytes(row), true);
      ClientService.BlockingInterface stub = ((ClusterConnection) connection).getClient(at.getServerName());
      byte[] region = at.getRegion().getRegionName();
      if (token != null) {
        return new SecureBulkLoadClient(conf, table).secureBulkLoadHFiles(stub, list, region, assign, null, token,
          copy);
      }
      try {
        return stub.bulkLoadHFile(null,
          RequestConverter.buildBulkLoadHFileRequest(list, region, assign, null, null, copy, null, true)).getLoaded();
      } catch (Exception e) {
        throw ProtobufUtil.handleRemoteException(e);
      }
    }
  }

  private String prepare(TableName name) throws IOException {
    try (Table table = connection.getTable(name)) {
      return new SecureBulkLoadClient(conf, table).prepareBulkLoad(connection);
    }
  }

  private void cleanup(TableName name, String token) throws IOException {
    try (Table table = connection.getTable(name)) {
      new SecureBulkLoadClient(conf, table).cleanupBulkLoad(connection, token);
    }
  }

  // ---- the tests

  private void toolLoads() throws Exception {
    TableName name = newTable(3, new String[] {"a", "b"}, "r00100", "r00200");
    Path dir = newFolder();
    List<KeyValue> a = rows("a", 0, 300, 10, "a");
    List<KeyValue> b = rows("b", 50, 150, 20, "b");
    Path inside = hfiles.write(dir, "a", "inside", a.subList(10, 90));
    hfiles.write(dir, "a", "astride", a, Compression.Algorithm.SNAPPY, DataBlockEncoding.ROW_INDEX_V1);
    hfiles.write(dir, "b", "two", b, Compression.Algorithm.GZ, DataBlockEncoding.NONE);
    BulkLoadHFiles.create(conf).bulkLoad(name, dir);
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      expected.add(text(a.get(i)));
      if (i >= 50 && i < 150) {
        expected.add(text(b.get(i - 50)));
      }
    }
    same(expected, scan(name, new Scan()));
    same("a250", value(name, "r00250", "a", "q"));
    // HBase moves within a distributed file system and copies on a local one.
    same(PEER_IS_HBASE, exists(inside));
    admin.flush(name);
    admin.majorCompact(name);
    same(expected, scan(name, new Scan()));
  }

  private void oldToolLoads() throws Exception {
    TableName name = newTable(1, new String[] {"a"}, "r00005");
    Path dir = newFolder();
    hfiles.write(dir, "a", "f", rows("a", 0, 10, 10, "v"));
    LoadIncrementalHFiles tool = new LoadIncrementalHFiles(conf);
    try (Table table = connection.getTable(name); RegionLocator locator = connection.getRegionLocator(name)) {
      tool.doBulkLoad(dir, admin, table, locator);
    }
    same(10, scan(name, new Scan()).size());
  }

  private void toolCreatesTable() throws Exception {
    TableName name = TableName.valueOf("bulkmade_" + System.nanoTime() % 1000000);
    Path dir = newFolder();
    hfiles.write(dir, "a", "f", rows("a", 0, 10, 10, "v"));
    hfiles.write(dir, "a", "g", rows("a", 10, 20, 10, "v"));
    BulkLoadHFiles.create(conf).bulkLoad(name, dir);
    same(20, scan(name, new Scan()).size());
  }

  private void copies() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    Path dir = newFolder();
    Path file = hfiles.write(dir, "a", "f", rows("a", 0, 10, 10, "v"));
    Configuration copying = new Configuration(conf);
    copying.setBoolean(BulkLoadHFiles.ALWAYS_COPY_FILES, true);
    BulkLoadHFiles.create(copying).bulkLoad(name, dir);
    holds(exists(file), "the source of a copy is gone");
    BulkLoadHFiles.create(copying).bulkLoad(name, dir);
    same(10, scan(name, new Scan()).size());
  }

  /** Among equal timestamps the later one wins: put, load, put. */
  private void sequence() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    try (Table table = connection.getTable(name)) {
      byte[] family = Bytes.toBytes("a");
      byte[] qualifier = Bytes.toBytes("q");
      for (String row : new String[] {"r00000", "r00001"}) {
        table.put(new Put(Bytes.toBytes(row)).addColumn(family, qualifier, 10, Bytes.toBytes("before")));
      }
      Path dir = newFolder();
      hfiles.write(dir, "a", "f", rows("a", 0, 2, 10, "loaded"));
      BulkLoadHFiles.create(conf).bulkLoad(name, dir);
      same("loaded0", value(name, "r00000", "a", "q"));
      table.put(new Put(Bytes.toBytes("r00001")).addColumn(family, qualifier, 10, Bytes.toBytes("after")));
      same("after", value(name, "r00001", "a", "q"));
      dir = newFolder();
      hfiles.write(dir, "a", "g", rows("a", 0, 1, 10, "again"));
      BulkLoadHFiles.create(conf).bulkLoad(name, dir);
      for (int i = 0; i < 3; i++) {
        same("again0", value(name, "r00000", "a", "q"));
        same("after", value(name, "r00001", "a", "q"));
        if (i == 0) {
          admin.flush(name);
        } else {
          admin.majorCompact(name);
        }
      }
    }
  }

  private void deletesAreLoaded() throws Exception {
    TableName name = newTable(5, new String[] {"a"});
    byte[] family = Bytes.toBytes("a");
    try (Table table = connection.getTable(name)) {
      for (int i = 0; i < 4; i++) {
        for (long ts = 1; ts <= 3; ts++) {
          table.put(new Put(Bytes.toBytes("d" + i)).addColumn(family, Bytes.toBytes("q"), ts, Bytes.toBytes("v" + ts)));
        }
      }
      Path dir = newFolder();
      byte[] q = Bytes.toBytes("q");
      hfiles.write(dir, "a", "f",
        Arrays.asList(new KeyValue(Bytes.toBytes("d0"), family, q, 2, KeyValue.Type.Delete),
          new KeyValue(Bytes.toBytes("d1"), family, q, 2, KeyValue.Type.DeleteColumn),
          new KeyValue(Bytes.toBytes("d2"), family, null, 3, KeyValue.Type.DeleteFamily),
          new KeyValue(Bytes.toBytes("d3"), family, null, 3, KeyValue.Type.DeleteFamilyVersion)));
      BulkLoadHFiles.create(conf).bulkLoad(name, dir);
      same(Arrays.asList("d0/a:q/3/Put=v3", "d0/a:q/1/Put=v1", "d1/a:q/3/Put=v3", "d3/a:q/2/Put=v2",
        "d3/a:q/1/Put=v1"), scan(name, new Scan().readAllVersions()));
      table.delete(new Delete(Bytes.toBytes("d0")));
      same(3, scan(name, new Scan().readAllVersions()).size());
    }
  }

  private void wrongRegion() throws Exception {
    TableName name = newTable(1, new String[] {"a", "b"}, "r00005");
    String token = prepare(name);
    Path dir = newFolder();
    Path fits = hfiles.write(dir, "a", "fits", rows("a", 0, 5, 10, "v"));
    Path astride = hfiles.write(dir, "b", "astride", rows("b", 0, 6, 10, "v"));
    same(false, call(name, "r00000", token, true, false, "a", fits, "b", astride));
    same(false, call(name, "r00000", null, true, false, "a", fits, "b", astride));
    same(0, scan(name, new Scan()).size());
    holds(exists(fits) && exists(astride), "files of a refused load are gone");
    same(true, call(name, "r00000", token, true, false, "a", fits));
    same(5, scan(name, new Scan()).size());
    cleanup(name, token);
  }

  private void badFiles() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    String token = prepare(name);
    Path dir = newFolder();
    Path good = hfiles.write(dir, "a", "good", rows("a", 0, 5, 10, "v"));
    File bad = new File(dir.toUri().getPath(), "bad");
    Files.write(bad.toPath(), new byte[5000]);
    same(false, call(name, "r", token, true, false, "a", good, "a", bad));
    same(false, call(name, "r", token, true, false, "a", good, "a", bad + "-absent"));
    same(false, call(name, "r", token, true, false, "a", good, "nope", good));
    thrown(CorruptHFileException.class, () -> call(name, "r", null, true, false, "a", good, "a", bad));
    thrown(IOException.class, () -> call(name, "r", null, true, false, "a", good, "a", bad + "-absent"));
    DoNotRetryIOException e =
      thrown(DoNotRetryIOException.class, () -> call(name, "r", null, true, false, "a", good, "nope", good));
    holds(e.getMessage().contains("No such column family nope"), e.getMessage());
    same(0, scan(name, new Scan()).size());
    holds(exists(good), "the good file of a refused load is gone");
    cleanup(name, token);
  }

  private void unmatchedFamily() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    Path dir = newFolder();
    hfiles.write(dir, "z", "f", rows("z", 0, 5, 10, "v"));
    IOException e = thrown(IOException.class, () -> BulkLoadHFiles.create(conf).bulkLoad(name, dir));
    holds(e.getMessage().contains("Unmatched family names found"), e.getMessage());
  }

  private void stagingFolder() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    String token = prepare(name);
    Path path = new Path(token);
    same("file", path.toUri().getScheme());
    same("staging", path.getParent().getName());
    holds(path.getName().contains("__" + name.getNameAsString().replace(":", "_") + "__"), token);
    holds(new File(path.toUri().getPath()).isDirectory(), token + " is not there");
    // A file that the client itself puts there is loaded from there.
    Path file = hfiles.write(path, "a", "f", rows("a", 0, 5, 10, "v"));
    same(true, call(name, "r", token, true, false, "a", file));
    same(5, scan(name, new Scan()).size());
    cleanup(name, token);
    holds(!exists(path), token + " is still there");
    cleanup(name, token);
  }

  /** An intended difference: the tool ends at once, with the setting's name. */
  private void unlistedFolder() throws Exception {
    if (PEER_IS_HBASE) {
      return;
    }
    TableName name = newTable(1, new String[] {"a"});
    Path dir = new Path(Files.createTempDirectory(folder.getParent(), "unlisted").toString());
    Path file = hfiles.write(dir, "a", "f", rows("a", 0, 5, 10, "v"));
    IOException e = thrown(IOException.class, () -> BulkLoadHFiles.create(conf).bulkLoad(name, dir));
    String said = "";
    for (Throwable t = e; t != null; t = t.getCause()) {
      said += t + "\n";
    }
    holds(said.contains("rorqual.bulkload.folders"), said);
    holds(exists(file), "the file of a refused load is gone");
    same(0, scan(name, new Scan()).size());
  }

  private void withoutToken() throws Exception {
    TableName name = newTable(1, new String[] {"a"});
    Path dir = newFolder();
    Path file = hfiles.write(dir, "a", "f", rows("a", 0, 5, 10, "v"));
    same(true, call(name, "r", null, true, false, "a", file));
    same(5, scan(name, new Scan()).size());
    same(true, call(name, "r", null, true, false));
  }

  /** Loads of many files while others read: each row is loaded completely or not at all. HBase does not guarantee this
   * for one family. */
  private void readersSeeWholeLoads() throws Exception {
    TableName name = newTable(1, new String[] {"a", "b"});
    String token = prepare(name);
    Path dir = newFolder();
    try (Table table = connection.getTable(name)) {
      for (int round = 0; round < 10; round++) {
        Path a = hfiles.write(dir, "a", "a" + round, rows("a", 0, 200, 10 + round, round + "-"));
        Path b = hfiles.write(dir, "b", "b" + round, rows("b", 0, 200, 10 + round, round + "-"));
        try (ResultScanner before = table.getScanner(new Scan().setCaching(20).setBatch(10))) {
          Result first = before.next();
          same(true, call(name, "r", token, true, false, "a", a, "b", b));
          int count = 0;
          for (Result r = first; r != null; r = before.next()) {
            count++;
            String got = Bytes.toString(r.getValue(Bytes.toBytes("a"), Bytes.toBytes("q")));
            same(got, Bytes.toString(r.getValue(Bytes.toBytes("b"), Bytes.toBytes("q"))));
            if (!PEER_IS_HBASE) {
              holds(got.startsWith((round - 1) + "-"), "a scanner opened before load " + round + " sees " + got);
            }
          }
          same(round == 0 ? 0 : 200, count);
        }
        same(round + "-7", value(name, "r00007", "b", "q"));
      }
    }
    cleanup(name, token);
  }

  void run() {
    test("bulk/the tool loads families, splits files that straddle regions", this::toolLoads);
    test("bulk/LoadIncrementalHFiles loads", this::oldToolLoads);
    test("bulk/the tool makes a missing table", this::toolCreatesTable);
    test("bulk/copied sources stay", this::copies);
    test("bulk/a load stands between the writes around it", this::sequence);
    test("bulk/delete markers are loaded", this::deletesAreLoaded);
    test("bulk/a file outside the region refuses the whole call", this::wrongRegion);
    test("bulk/a bad file, a missing one or family refuses the whole call", this::badFiles);
    test("bulk/the tool tells an unmatched family", this::unmatchedFamily);
    test("bulk/the staging folder comes and goes", this::stagingFolder);
    test("bulk/the tool tells that a folder is not listed", this::unlistedFolder);
    test("bulk/a call without a token loads", this::withoutToken);
    test("bulk/readers see whole loads", this::readersSeeWholeLoads);
  }
}
