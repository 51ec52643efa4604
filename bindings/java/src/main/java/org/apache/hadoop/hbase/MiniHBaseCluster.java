// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase;

import java.io.IOException;

/** The server of an HBaseTestingUtility: the methods of HBase's class that need no class of HBase's servers. */
public class MiniHBaseCluster extends HBaseCluster {
  private final HBaseTestingUtility utility;

  MiniHBaseCluster(HBaseTestingUtility utility) {
    super(utility.getConfiguration());
    this.utility = utility;
  }

  public org.apache.hadoop.conf.Configuration getConfiguration() {
    return conf;
  }

  @Override
  public ClusterMetrics getClusterMetrics() throws IOException {
    return utility.getAdmin().getClusterMetrics();
  }

  /** Does nothing, because a started server is ready. */
  @Override
  public boolean waitForActiveAndReadyMaster(long milliseconds) throws IOException {
    return utility.getServer() != null;
  }

  public ServerName getServerHoldingRegion(TableName table, byte[] regionName) throws IOException {
    for (HRegionLocation location : utility.getConnection().getRegionLocator(table).getAllRegionLocations()) {
      if (org.apache.hadoop.hbase.util.Bytes.equals(location.getRegion().getRegionName(), regionName)) {
        return location.getServerName();
      }
    }
    return null;
  }

  /** Always 1: a Rorqual server is both master and region server. */
  public int getNumLiveRegionServers() {
    return utility.getServer() == null ? 0 : 1;
  }

  public void flushcache() throws IOException {
    utility.flush();
  }

  public void flushcache(TableName table) throws IOException {
    utility.flush(table);
  }

  public void compact(boolean major) throws IOException {
    utility.compact(major);
  }

  public void compact(TableName table, boolean major) throws IOException {
    utility.compact(table, major);
  }

  @Override
  public void shutdown() throws IOException {
    utility.shutdownMiniHBaseCluster();
  }

  @Override
  public void waitUntilShutDown() {
    return; // shutdown() has already waited
  }

  @Override
  public void close() throws IOException {
    shutdown();
  }
}
