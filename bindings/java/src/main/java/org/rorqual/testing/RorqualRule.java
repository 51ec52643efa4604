// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import java.io.IOException;
import org.junit.rules.ExternalResource;

/**
 * A server for JUnit 4: {@code @ClassRule public static final RorqualRule RORQUAL = new RorqualRule();}. As a {@code @Rule} each
 * test has its own.
 */
public class RorqualRule extends ExternalResource {
  private final RorqualTestingUtility utility = new RorqualTestingUtility();

  @Override
  protected void before() throws IOException {
    utility.startServer();
  }

  @Override
  protected void after() {
    try {
      utility.stopServer();
    } catch (IOException failed) {
      throw new IllegalStateException(failed);
    }
  }

  /** Gives access to connections, tables and the other methods of HBaseTestingUtility. */
  public RorqualTestingUtility getUtility() {
    return utility;
  }

  public RorqualServer getServer() {
    return utility.getServer();
  }

  public org.apache.hadoop.conf.Configuration getConfiguration() {
    return utility.getConfiguration();
  }

  public org.apache.hadoop.hbase.client.Connection getConnection() throws IOException {
    return utility.getConnection();
  }
}
