// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The extension of JUnit 5. */
@ExtendWith(RorqualExtension.class)
class ExtensionTest {
  @Test
  void testsHaveParameters(RorqualTestingUtility utility, RorqualServer server, Configuration conf, Connection connection, Admin admin)
      throws Exception {
    assertSame(server, utility.getServer());
    assertEquals(server.getZooKeeperPort(), conf.getInt("hbase.zookeeper.property.clientPort", 0));
    utility.createTable(TableName.valueOf("extension"), "f");
    assertTrue(admin.tableExists(TableName.valueOf("extension")));
    assertTrue(connection.getAdmin().isTableEnabled(TableName.valueOf("extension")));
  }
}
