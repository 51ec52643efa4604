// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase.zookeeper;

import org.rorqual.testing.RorqualServer;

/** The ZooKeeper of an HBaseTestingUtility, which is part of the Rorqual server. */
public class MiniZooKeeperCluster {
  private final RorqualServer server;

  public MiniZooKeeperCluster(RorqualServer server) {
    this.server = server;
  }

  public int getClientPort() {
    return server.getZooKeeperPort();
  }

  public int getZooKeeperServerNum() {
    return 1;
  }

  public int getBackupZooKeeperServerNum() {
    return 0;
  }
}
