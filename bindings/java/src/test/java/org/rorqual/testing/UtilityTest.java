// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.Collections;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseTestingUtility;
import org.apache.hadoop.hbase.MiniHBaseCluster;
import org.apache.hadoop.hbase.StartMiniClusterOption;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** HBaseTestingUtility on a server, as tests of HBase's users call it. */
public class UtilityTest {
  private static final HBaseTestingUtility UTILITY = new HBaseTestingUtility();
  private static final byte[] F = Bytes.toBytes("f");

  @BeforeClass
  public static void start() throws Exception {
    MiniHBaseCluster cluster =
        UTILITY.startMiniCluster(StartMiniClusterOption.builder().numMasters(1).numRegionServers(3).build());
    assertTrue(cluster.waitForActiveAndReadyMaster());
  }

  @AfterClass
  public static void stop() throws Exception {
    UTILITY.shutdownMiniCluster();
    assertNull(UTILITY.getMiniHBaseCluster());
    UTILITY.shutdownMiniCluster(); // a second call does nothing
  }

  @Test
  public void tablesAreCreatedLoadedCountedAndDeleted() throws Exception {
    TableName name = TableName.valueOf("loaded");
    Table table = UTILITY.createTable(name, new byte[][] {F, Bytes.toBytes("g")}, 3);
    assertEquals(26 * 26 * 26, UTILITY.loadTable(table, F));
    assertEquals(26 * 26 * 26, UTILITY.countRows(table));
    assertEquals(0, UTILITY.countRows(table, Bytes.toBytes("g")));
    assertEquals(3, table.getDescriptor().getColumnFamily(F).getMaxVersions());
    UTILITY.flush(name);
    assertEquals(26 * 26 * 26, UTILITY.countRows(name));
    table = UTILITY.truncateTable(name);
    assertEquals(0, UTILITY.countRows(table));
    UTILITY.loadNumericRows(table, F, 5, 50);
    UTILITY.verifyNumericRows(table, F, 5, 50, 0);
    UTILITY.deleteNumericRows(table, F, 5, 6);
    Table loaded = table;
    assertThrows(AssertionError.class, () -> UTILITY.verifyNumericRows(loaded, F, 5, 6, 0));
    UTILITY.deleteTableData(name);
    assertEquals(0, UTILITY.countRows(name));
    UTILITY.deleteTable(name);
    assertFalse(UTILITY.getAdmin().tableExists(name));
    UTILITY.deleteTableIfAny(name);
  }

  @Test
  public void tablesWithRegionsAreAvailable() throws Exception {
    TableName name = TableName.valueOf("regions");
    UTILITY.createMultiRegionTable(name, F);
    UTILITY.waitUntilAllRegionsAssigned(name);
    UTILITY.waitTableAvailable(name);
    assertEquals(26, UTILITY.getAdmin().getRegions(name).size());
    assertEquals(26, UTILITY.getConnection().getRegionLocator(name).getAllRegionLocations().size());
    UTILITY.createMultiRegionTable(TableName.valueOf("ten"), F, 10);
    assertEquals(10, UTILITY.getAdmin().getRegions(TableName.valueOf("ten")).size());
    UTILITY.getAdmin().disableTable(name);
    UTILITY.waitTableDisabled(name, 5000);
    assertThrows(AssertionError.class, () -> UTILITY.waitTableEnabled(name, 20));
  }

  @Test
  public void oldDescriptorsCreateTables() throws Exception {
    TableName name = TableName.valueOf("old");
    UTILITY.getHBaseAdmin().createTable(UTILITY.createTableDescriptor(name, F));
    assertTrue(UTILITY.getAdmin().isTableEnabled(name));
    Table made = UTILITY.createTable(UTILITY.createTableDescriptor("old2"), new byte[][] {F}, UTILITY.getConfiguration());
    assertEquals(4, made.getDescriptor().getColumnFamilyCount());
  }

  @Test
  public void dataSurvivesARestartAndACrash() throws Exception {
    HBaseTestingUtility utility = new HBaseTestingUtility();
    utility.startMiniZKCluster();
    utility.startMiniHBaseCluster(1, 1);
    int port = utility.getZkCluster().getClientPort();
    TableName name = TableName.valueOf("kept");
    try {
      utility.createTable(name, F).put(new Put(F).addColumn(F, F, F));
      utility.restartHBaseCluster(1);
      assertEquals(port, utility.getZkCluster().getClientPort());
      utility.closeConnection();
      utility.getServer().crashAndRestart();
      assertArrayEquals(F, utility.getConnection().getTable(name).get(new Get(F)).value());
    } finally {
      utility.shutdownMiniHBaseCluster();
      utility.shutdownMiniZKCluster();
    }
  }

  @Test
  public void foldersAreRemoved() throws Exception {
    Path folder = UTILITY.getDataTestDir();
    assertTrue(UTILITY.getTestFileSystem().mkdirs(new Path(UTILITY.getRandomDir(), "deep")));
    assertTrue(UTILITY.getTestFileSystem().exists(folder));
    assertTrue(UTILITY.cleanupTestDir());
    assertFalse(UTILITY.getTestFileSystem().exists(folder));
  }

  @Test
  public void waitsEnd() throws Exception {
    int[] asked = {0};
    assertTrue(UTILITY.waitFor(300_000, 1, () -> ++asked[0] == 3) >= 0);
    assertEquals(-1, UTILITY.waitFor(5, 1, false, () -> false));
    assertThrows(AssertionError.class, () -> UTILITY.waitFor(5, () -> false));
  }

  @Test
  public void aServerThatCannotStartSaysWhy() {
    IOException failed = assertThrows(IOException.class, () -> RorqualServer.start(Collections.singletonMap("rorqual.no.such", "1")));
    assertTrue(failed.getMessage(), failed.getMessage().contains("rorqual.no.such"));
    String binary = System.setProperty(RorqualServer.BINARY, "/no/such/program");
    try {
      failed = assertThrows(IOException.class, RorqualServer::start);
      assertTrue(failed.getMessage(), failed.getMessage().contains("/no/such/program"));
    } finally {
      if (binary == null) {
        System.clearProperty(RorqualServer.BINARY);
      } else {
        System.setProperty(RorqualServer.BINARY, binary);
      }
    }
    assertNotNull(UTILITY.getServer());
  }
}
