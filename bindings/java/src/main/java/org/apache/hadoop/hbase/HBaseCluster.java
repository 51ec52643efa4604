// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;

/** A cluster in tests, for programs that use HBase's class: the methods that need no class of HBase's servers. */
public abstract class HBaseCluster implements Closeable, Configurable {
  protected Configuration conf;

  public HBaseCluster(Configuration conf) {
    this.conf = conf;
  }

  @Override
  public void setConf(Configuration conf) {
    this.conf = conf;
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  public abstract ClusterMetrics getClusterMetrics() throws IOException;

  public boolean waitForActiveAndReadyMaster() throws IOException {
    return waitForActiveAndReadyMaster(60_000);
  }

  public abstract boolean waitForActiveAndReadyMaster(long milliseconds) throws IOException;

  public abstract void shutdown() throws IOException;

  public abstract void waitUntilShutDown() throws IOException;

  public boolean isDistributedCluster() {
    return false;
  }
}
