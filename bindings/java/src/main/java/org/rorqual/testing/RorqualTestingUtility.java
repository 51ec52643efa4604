// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A server, and functions for tests: the methods of HBaseTestingUtility that need no class of HBase's servers. Names, arguments
 * and effects are HBase's. The class with HBase's name is {@code org.apache.hadoop.hbase.HBaseTestingUtility}.
 */
public class RorqualTestingUtility {
  /** The system property, and the default, for the folder of tests' files. */
  public static final String BASE_TEST_DIRECTORY_KEY = "test.build.data.basedirectory";
  public static final String DEFAULT_BASE_TEST_DIRECTORY = "target/test-data";

  public static final byte[] fam1 = Bytes.toBytes("colfam11");
  public static final byte[] fam2 = Bytes.toBytes("colfam21");
  public static final byte[] fam3 = Bytes.toBytes("colfam31");
  public static final byte[][] COLUMNS = {fam1, fam2, fam3};
  public static final char FIRST_CHAR = TestRows.FIRST_CHAR;
  public static final char LAST_CHAR = TestRows.LAST_CHAR;
  public static final byte[] START_KEY_BYTES = {'a', 'a', 'a'};
  public static final String START_KEY = "aaa";
  public static final byte[][] ROWS = TestRows.ROWS;
  public static final byte[][] KEYS = TestRows.KEYS;
  public static final byte[][] KEYS_FOR_HBA_CREATE_TABLE = TestRows.KEYS_FOR_HBA_CREATE_TABLE;

  private static final long WAIT_MS = 60_000;

  protected final Configuration conf;
  private RorqualServer server;
  private Connection connection;
  private Admin admin;
  private File testFolder;

  public RorqualTestingUtility() {
    this(HBaseConfiguration.create());
  }

  public RorqualTestingUtility(Configuration conf) {
    this.conf = conf;
  }

  public Configuration getConfiguration() {
    return conf;
  }

  // ---- the server

  /** Starts a server if none runs, and puts its address into the configuration. */
  public synchronized RorqualServer startServer() throws IOException {
    if (server == null) {
      server = RorqualServer.start();
      server.configure(conf);
    }
    return server;
  }

  /** The server, or null. */
  public synchronized RorqualServer getServer() {
    return server;
  }

  /** Closes the connection and stops the server. */
  public synchronized void stopServer() throws IOException {
    RorqualServer stopping = server;
    server = null;
    try {
      closeConnection();
    } finally {
      if (stopping != null) {
        stopping.close();
      }
    }
  }

  public String getClusterKey() {
    return conf.get("hbase.zookeeper.quorum") + ":" + conf.get("hbase.zookeeper.property.clientPort") + ":"
        + conf.get("zookeeper.znode.parent", "/hbase");
  }

  // ---- connections

  /** The utility's connection, which it closes with the server. */
  public synchronized Connection getConnection() throws IOException {
    if (connection == null || connection.isClosed()) {
      connection = ConnectionFactory.createConnection(conf);
    }
    return connection;
  }

  public synchronized Admin getAdmin() throws IOException {
    if (admin == null || connection == null || connection.isClosed()) {
      admin = getConnection().getAdmin();
    }
    return admin;
  }

  public synchronized void closeConnection() throws IOException {
    Connection closing = connection;
    admin = null;
    connection = null;
    if (closing != null) {
      closing.close();
    }
  }

  public void invalidateConnection() throws IOException {
    closeConnection();
  }

  // ---- folders

  /** A folder for this utility's files, removed by cleanupTestDir(). */
  public synchronized Path getDataTestDir() {
    if (testFolder == null) {
      File base = new File(System.getProperty(BASE_TEST_DIRECTORY_KEY, DEFAULT_BASE_TEST_DIRECTORY));
      testFolder = new File(base, UUID.randomUUID().toString()).getAbsoluteFile();
      if (!testFolder.mkdirs()) {
        throw new IllegalStateException("cannot make the folder " + testFolder);
      }
    }
    return new Path(testFolder.getPath());
  }

  public Path getDataTestDir(String name) {
    return new Path(getDataTestDir(), name);
  }

  public Path getRandomDir() {
    return new Path(getDataTestDir(), UUID.randomUUID().toString());
  }

  public Path getDataTestDirOnTestFS() throws IOException {
    return getTestFileSystem().makeQualified(getDataTestDir());
  }

  public Path getDataTestDirOnTestFS(String name) throws IOException {
    return new Path(getDataTestDirOnTestFS(), name);
  }

  public FileSystem getTestFileSystem() throws IOException {
    return FileSystem.getLocal(conf);
  }

  /** Removes the folder of getDataTestDir(); true if nothing is left. */
  public synchronized boolean cleanupTestDir() {
    File folder = testFolder;
    testFolder = null;
    if (folder != null && Files.exists(folder.toPath())) {
      RorqualServer.deleteAll(folder.toPath());
    }
    return folder == null || !folder.exists();
  }

  public boolean cleanupDataTestDirOnTestFS() throws IOException {
    return cleanupTestDir();
  }

  // ---- tables

  public Table createTable(TableName name, String family) throws IOException {
    return createTable(name, new String[] {family});
  }

  public Table createTable(TableName name, String[] families) throws IOException {
    byte[][] names = new byte[families.length][];
    for (int i = 0; i < names.length; i++) {
      names[i] = Bytes.toBytes(families[i]);
    }
    return createTable(name, names);
  }

  public Table createTable(TableName name, byte[] family) throws IOException {
    return createTable(name, new byte[][] {family});
  }

  public Table createTable(TableName name, byte[][] families) throws IOException {
    return createTable(name, families, (byte[][]) null);
  }

  public Table createTable(TableName name, byte[] family, byte[][] splitKeys) throws IOException {
    return createTable(name, new byte[][] {family}, splitKeys);
  }

  public Table createTable(TableName name, byte[][] families, byte[][] splitKeys) throws IOException {
    return createTable(name, families, splitKeys, 1);
  }

  /** Creates a table whose families keep one version. */
  public Table createTable(TableName name, byte[][] families, byte[][] splitKeys, int replicas) throws IOException {
    return createTable(name, families, splitKeys, replicas, conf);
  }

  public Table createTable(TableName name, byte[][] families, byte[][] splitKeys, int replicas, Configuration clientConf)
      throws IOException {
    TableDescriptor table = TableDescriptorBuilder.newBuilder(name).setRegionReplication(replicas).build();
    return createTable(table, families, splitKeys, clientConf);
  }

  public Table createTable(TableName name, byte[] family, int versions) throws IOException {
    return createTable(name, new byte[][] {family}, versions);
  }

  public Table createTable(TableName name, byte[][] families, int versions) throws IOException {
    return createTable(name, families, versions, (byte[][]) null);
  }

  public Table createTable(TableName name, byte[][] families, int versions, byte[][] splitKeys) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (byte[] family : families) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(versions).build());
    }
    return create(table.build(), splitKeys);
  }

  public Table createTable(TableName name, byte[][] families, int versions, int blockSize) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (byte[] family : families) {
      table.setColumnFamily(
          ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(versions).setBlocksize(blockSize).build());
    }
    return create(table.build(), null);
  }

  public Table createTable(TableName name, byte[][] families, int[] versions) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (int i = 0; i < families.length; i++) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(families[i]).setMaxVersions(versions[i]).build());
    }
    return create(table.build(), null);
  }

  public Table createTable(TableName name, byte[][] families, int versions, byte[] startKey, byte[] endKey, int regions)
      throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (byte[] family : families) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(versions).build());
    }
    getAdmin().createTable(table.build(), startKey, endKey, regions);
    return getConnection().getTable(name);
  }

  public Table createTable(TableDescriptor table, byte[][] splitKeys) throws IOException {
    return create(table, splitKeys);
  }

  public Table createTable(TableDescriptor table, byte[][] families, Configuration clientConf) throws IOException {
    return createTable(table, families, null, clientConf);
  }

  public Table createTable(TableDescriptor table, byte[][] families, byte[][] splitKeys, Configuration clientConf)
      throws IOException {
    return createTable(table, families, splitKeys, BloomType.NONE, ColumnFamilyDescriptorBuilder.DEFAULT_BLOCKSIZE, clientConf);
  }

  /** Creates the table with additional families. */
  public Table createTable(TableDescriptor table, byte[][] families, byte[][] splitKeys, BloomType bloom, int blockSize,
      Configuration clientConf) throws IOException {
    TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(table);
    for (byte[] family : families) {
      ColumnFamilyDescriptor column =
          ColumnFamilyDescriptorBuilder.newBuilder(family).setBloomFilterType(bloom).setBlocksize(blockSize).build();
      builder.setColumnFamily(column);
    }
    return create(builder.build(), splitKeys);
  }

  private Table create(TableDescriptor table, byte[][] splitKeys) throws IOException {
    if (splitKeys == null) {
      getAdmin().createTable(table);
    } else {
      getAdmin().createTable(table, splitKeys);
    }
    return getConnection().getTable(table.getTableName());
  }

  /** Creates a table with regions that begin at "", "bbb", "ccc" … */
  public Table createMultiRegionTable(TableName name, byte[] family) throws IOException {
    return createTable(name, family, KEYS_FOR_HBA_CREATE_TABLE);
  }

  public Table createMultiRegionTable(TableName name, byte[][] families) throws IOException {
    return createTable(name, families, KEYS_FOR_HBA_CREATE_TABLE);
  }

  public Table createMultiRegionTable(TableName name, byte[][] families, int versions) throws IOException {
    return createTable(name, families, versions, KEYS_FOR_HBA_CREATE_TABLE);
  }

  public Table createMultiRegionTable(TableName name, byte[] family, int regions) throws IOException {
    if (regions < 3) {
      throw new IOException("Must create at least 3 regions");
    }
    byte[][] splits = Bytes.split(Bytes.toBytes("aaaaa"), Bytes.toBytes("zzzzz"), regions - 3);
    return createTable(name, new byte[][] {family}, splits);
  }

  public void deleteTable(TableName name) throws IOException {
    if (getAdmin().isTableEnabled(name)) {
      getAdmin().disableTable(name);
    }
    getAdmin().deleteTable(name);
  }

  public void deleteTableIfAny(TableName name) throws IOException {
    if (getAdmin().tableExists(name)) {
      deleteTable(name);
    }
  }

  /** Deletes all rows one by one. */
  public Table deleteTableData(TableName name) throws IOException {
    Table table = getConnection().getTable(name);
    try (ResultScanner rows = table.getScanner(new Scan())) {
      for (Result row : rows) {
        table.delete(new Delete(row.getRow()));
      }
    }
    return table;
  }

  public Table truncateTable(TableName name) throws IOException {
    return truncateTable(name, false);
  }

  public Table truncateTable(TableName name, boolean preserveRegions) throws IOException {
    if (!getAdmin().isTableDisabled(name)) {
      getAdmin().disableTable(name);
    }
    getAdmin().truncateTable(name, preserveRegions);
    return getConnection().getTable(name);
  }

  /** Flushes the memstores of all tables. */
  public void flush() throws IOException {
    for (TableName name : getAdmin().listTableNames()) {
      getAdmin().flush(name);
    }
  }

  public void flush(TableName name) throws IOException {
    getAdmin().flush(name);
  }

  public void compact(boolean major) throws IOException {
    for (TableName name : getAdmin().listTableNames()) {
      compact(name, major);
    }
  }

  public void compact(TableName name, boolean major) throws IOException {
    if (major) {
      getAdmin().majorCompact(name);
    } else {
      getAdmin().compact(name);
    }
  }

  // ---- rows

  public int loadTable(Table table, byte[] family) throws IOException {
    return loadTable(table, new byte[][] {family});
  }

  public int loadTable(Table table, byte[] family, boolean writeToWal) throws IOException {
    return loadTable(table, new byte[][] {family}, null, writeToWal);
  }

  public int loadTable(Table table, byte[][] families) throws IOException {
    return loadTable(table, families, null);
  }

  public int loadTable(Table table, byte[][] families, byte[] value) throws IOException {
    return loadTable(table, families, value, true);
  }

  /** Puts the rows "aaa" to "zzz" and returns their number. */
  public int loadTable(Table table, byte[][] families, byte[] value, boolean writeToWal) throws IOException {
    return TestRows.load(table, families, value, writeToWal);
  }

  public void loadNumericRows(Table table, byte[] family, int from, int to) throws IOException {
    TestRows.loadNumeric(table, family, from, to);
  }

  public void verifyNumericRows(Table table, byte[] family, int from, int to, int replica) throws IOException {
    TestRows.verifyNumeric(table, family, from, to);
  }

  public void deleteNumericRows(Table table, byte[] family, int from, int to) throws IOException {
    TestRows.deleteNumeric(table, family, from, to);
  }

  public void loadRandomRows(Table table, byte[] family, int rowSize, int total) throws IOException {
    TestRows.loadRandom(table, family, rowSize, total);
  }

  public int countRows(Table table) throws IOException {
    return TestRows.count(table, new Scan());
  }

  public int countRows(Table table, Scan scan) throws IOException {
    return TestRows.count(table, scan);
  }

  public int countRows(Table table, byte[]... families) throws IOException {
    Scan scan = new Scan();
    for (byte[] family : families) {
      scan.addFamily(family);
    }
    return TestRows.count(table, scan);
  }

  public int countRows(TableName name) throws IOException {
    try (Table table = getConnection().getTable(name)) {
      return countRows(table);
    }
  }

  // ---- waiting

  public void waitTableAvailable(TableName name) throws InterruptedException, IOException {
    waitTableAvailable(name, WAIT_MS);
  }

  public void waitTableAvailable(TableName name, long milliseconds) throws InterruptedException, IOException {
    await("table " + name + " is not available", milliseconds, () -> getAdmin().isTableAvailable(name));
  }

  public void waitTableEnabled(TableName name) throws InterruptedException, IOException {
    waitTableEnabled(name, WAIT_MS);
  }

  public void waitTableEnabled(TableName name, long milliseconds) throws IOException {
    await("table " + name + " is not enabled", milliseconds, () -> getAdmin().isTableEnabled(name));
  }

  public void waitTableDisabled(TableName name, long milliseconds) throws InterruptedException, IOException {
    await("table " + name + " is not disabled", milliseconds, () -> getAdmin().isTableDisabled(name));
  }

  public void waitUntilAllRegionsAssigned(TableName name) throws IOException {
    waitUntilAllRegionsAssigned(name, WAIT_MS);
  }

  public void waitUntilAllRegionsAssigned(TableName name, long milliseconds) throws IOException {
    await("regions of " + name + " are not assigned", milliseconds, () -> getAdmin().isTableAvailable(name));
  }

  public void waitUntilNoRegionsInTransition() throws IOException {
    waitUntilNoRegionsInTransition(WAIT_MS);
  }

  public void waitUntilNoRegionsInTransition(long milliseconds) throws IOException {
    await("regions are in transition", milliseconds,
        () -> getAdmin().getClusterMetrics().getRegionStatesInTransition().isEmpty());
  }

  private interface Condition {
    boolean holds() throws IOException;
  }

  private static void await(String problem, long milliseconds, Condition condition) throws IOException {
    long deadline = System.nanoTime() + milliseconds * 1_000_000;
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError(problem + " after " + milliseconds + " ms");
      }
      pause(10);
    }
  }

  protected static void pause(long milliseconds) throws IOException {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while waiting", interrupted);
    }
  }
}
