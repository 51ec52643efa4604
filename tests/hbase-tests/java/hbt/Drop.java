// SPDX-License-Identifier: Apache-2.0
package hbt;

import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;

/** Drop the tables named. */
public class Drop {
  public static void main(String[] a) throws Exception {
    Admin m = H.own().getAdmin();
    for (String s : a) {
      TableName t = TableName.valueOf(s);
      if (m.tableExists(t)) {
        if (m.isTableEnabled(t)) {
          m.disableTable(t);
        }
        m.deleteTable(t);
        System.out.println("dropped " + t);
      }
    }
    System.exit(0);
  }
}
