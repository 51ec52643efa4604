// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase;

import java.io.IOException;
import java.net.ServerSocket;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.HBaseAdmin;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;
import org.rorqual.testing.RorqualTestingUtility;

/**
 * The class that tests of HBase 2's users know, on a Rorqual server: a project's tests run with rorqual-testing instead of
 * hbase-testing-util. There is one server, whatever number is requested, on the local file system. Mini clusters of HDFS or
 * MapReduce, and objects of HBase's servers (HRegion, HMaster …), are missing.
 */
public class HBaseTestingUtility extends RorqualTestingUtility {
  private MiniHBaseCluster cluster;

  public HBaseTestingUtility() {
    super();
  }

  public HBaseTestingUtility(Configuration conf) {
    super(conf);
  }

  public static HBaseTestingUtility createLocalHTU() {
    return new HBaseTestingUtility();
  }

  public static HBaseTestingUtility createLocalHTU(Configuration conf) {
    return new HBaseTestingUtility(conf);
  }

  // ---- the cluster

  private MiniHBaseCluster begin() throws IOException {
    startServer();
    if (cluster == null) {
      cluster = new MiniHBaseCluster(this);
    }
    return cluster;
  }

  public MiniHBaseCluster startMiniCluster() throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(int servers) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(boolean createWalDir) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(int servers, boolean createWalDir) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(int masters, int servers) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(int masters, int servers, int dataNodes) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(int masters, int servers, String[] dataNodeHosts) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniCluster(StartMiniClusterOption option) throws Exception {
    return begin();
  }

  public MiniHBaseCluster startMiniHBaseCluster() throws IOException, InterruptedException {
    return begin();
  }

  public MiniHBaseCluster startMiniHBaseCluster(int masters, int servers) throws IOException, InterruptedException {
    return begin();
  }

  public MiniHBaseCluster startMiniHBaseCluster(int masters, int servers, List<Integer> ports)
      throws IOException, InterruptedException {
    return begin();
  }

  public MiniHBaseCluster startMiniHBaseCluster(StartMiniClusterOption option) throws IOException, InterruptedException {
    return begin();
  }

  /** Starts the server, which contains its ZooKeeper. */
  public MiniZooKeeperCluster startMiniZKCluster() throws Exception {
    return new MiniZooKeeperCluster(startServer());
  }

  public MiniZooKeeperCluster startMiniZKCluster(int servers, int... ports) throws Exception {
    return startMiniZKCluster();
  }

  public MiniZooKeeperCluster getZkCluster() {
    return getServer() == null ? null : new MiniZooKeeperCluster(getServer());
  }

  public MiniHBaseCluster getMiniHBaseCluster() {
    return cluster;
  }

  public MiniHBaseCluster getHBaseCluster() {
    return cluster;
  }

  public HBaseCluster getHBaseClusterInterface() {
    return cluster;
  }

  /** Restarts the server on its data and its ports. */
  public void restartHBaseCluster(int servers) throws IOException, InterruptedException {
    closeConnection();
    getServer().restart();
  }

  public void restartHBaseCluster(StartMiniClusterOption option) throws IOException, InterruptedException {
    restartHBaseCluster(option.getNumRegionServers());
  }

  public void shutdownMiniCluster() throws IOException {
    shutdownMiniHBaseCluster();
    cleanupTestDir();
  }

  public void shutdownMiniHBaseCluster() throws IOException {
    cluster = null;
    stopServer();
  }

  /** Stops the server with its ZooKeeper, unless shutdownMiniHBaseCluster() has stopped it already. */
  public void shutdownMiniZKCluster() throws IOException {
    stopServer();
  }

  // ---- others

  public synchronized HBaseAdmin getHBaseAdmin() throws IOException {
    return (HBaseAdmin) getAdmin();
  }

  public HTableDescriptor createTableDescriptor(String name) {
    return createTableDescriptor(TableName.valueOf(name));
  }

  public HTableDescriptor createTableDescriptor(TableName name) {
    return createTableDescriptor(name, COLUMNS, 3);
  }

  public HTableDescriptor createTableDescriptor(TableName name, byte[] family) {
    return createTableDescriptor(name, new byte[][] {family}, 1);
  }

  public HTableDescriptor createTableDescriptor(TableName name, byte[][] families, int versions) {
    HTableDescriptor table = new HTableDescriptor(name);
    for (byte[] family : families) {
      table.addFamily(new HColumnDescriptor(family).setMaxVersions(versions));
    }
    return table;
  }

  public <E extends Exception> long waitFor(long timeout, Waiter.Predicate<E> predicate) throws E {
    return Waiter.waitFor(conf, timeout, predicate);
  }

  public <E extends Exception> long waitFor(long timeout, long interval, Waiter.Predicate<E> predicate) throws E {
    return Waiter.waitFor(conf, timeout, interval, predicate);
  }

  public <E extends Exception> long waitFor(long timeout, long interval, boolean failIfTimeout, Waiter.Predicate<E> predicate)
      throws E {
    return Waiter.waitFor(conf, timeout, interval, failIfTimeout, predicate);
  }

  public static UUID getRandomUUID() {
    return UUID.randomUUID();
  }

  public static int randomFreePort() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException failed) {
      throw new IllegalStateException("there is no free port", failed);
    }
  }
}
