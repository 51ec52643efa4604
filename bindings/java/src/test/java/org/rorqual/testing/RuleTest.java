// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.junit.ClassRule;
import org.junit.Test;

/** The rule of JUnit 4. */
public class RuleTest {
  @ClassRule
  public static final RorqualRule RORQUAL = new RorqualRule();

  @Test
  public void clientsConnectByTheConfiguration() throws Exception {
    RORQUAL.getUtility().createTable(TableName.valueOf("rule"), "f");
    try (Connection connection = ConnectionFactory.createConnection(RORQUAL.getServer().getConfiguration())) {
      assertTrue(connection.getAdmin().tableExists(TableName.valueOf("rule")));
    }
    assertEquals(0, RORQUAL.getUtility().countRows(TableName.valueOf("rule")));
  }
}
