// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/**
 * The Java half of tests/compat/rootdir/run: commands on standard input, so that one JVM suffices. Each command
 * prints any number of lines "PASS name" and "FAIL name: reason", then "ok" or "failed: reason".
 *
 * <pre>
 *   bulk ZK-PORT FOLDER          HBase's bulk load tools against the server (BulkLoads)
 *   fill ZK-PORT ROUND FOLDER    tables of every kind, random histories (Contents); later rounds add to them
 *   shapes ZK-PORT ROUND         tables whose files are halves, links and lists (Shapes); later rounds add to them
 *   dump ZK-PORT FILE            all that a client can see, as text
 *   dumpoff ZK-PORT FILE         the table that fill leaves disabled
 *   snapmake ZK-PORT NAME        a table "snap" with a split, and a snapshot of it (Snapshots)
 *   snapshot ZK-PORT NAME TABLE
 *   snapclone ZK-PORT NAME TABLE
 *   snapdrop ZK-PORT TABLE       drops the table
 *   snapdump ZK-PORT TABLE FILE  its rows
 *   snapread ROOT NAME FILE      HBase's tools on the snapshot in a folder; the rows they see
 *   snapload ZK-PORT SECONDS     a snapshot every second during writes (SnapshotLoad)
 *   snapexport ROOT NAME ROOT    ExportSnapshot
 * </pre>
 */
public final class Main {
  private Main() {
  }

  static Configuration configuration(String zkPort) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", zkPort);
    conf.set("hbase.client.rpc.codec", "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags");
    conf.setInt("hbase.client.retries.number", 8);
    conf.setInt("hbase.bulkload.retries.number", 3);
    conf.setBoolean("hbase.table.sanity.checks", true);
    for (String c : new String[] {"Snappy", "Lz4", "Zstd"}) {
      conf.set("hbase.io.compress." + c.toLowerCase() + ".codec",
        "org.apache.hadoop.hbase.io.compress.aircompressor." + c + "Codec");
    }
    return conf;
  }

  private static void run(String[] words) throws Exception {
    if (words[0].equals("snapread")) {
      Snapshots.read(Paths.get(words[1]), words[2], Paths.get(words[3]));
      return;
    }
    if (words[0].equals("snapexport")) {
      Snapshots.export(Paths.get(words[1]), words[2], Paths.get(words[3]));
      return;
    }
    try (Connection connection = ConnectionFactory.createConnection(configuration(words[1]))) {
      Path path = Paths.get(words[words.length - 1]);
      switch (words[0]) {
        case "bulk":
          new BulkLoads(connection, path).run();
          break;
        case "fill":
          new Contents(connection).fill(Integer.parseInt(words[2]), path);
          break;
        case "shapes":
          new Shapes(connection).fill(Integer.parseInt(words[2]));
          break;
        case "dump":
          new Contents(connection).dump(path);
          break;
        case "dumpoff":
          new Contents(connection).dumpOff(path);
          break;
        case "snapmake":
          new Snapshots(connection).make(words[2]);
          break;
        case "snapload":
          new SnapshotLoad(connection).run(Integer.parseInt(words[2]));
          break;
        case "snapshot":
          new Snapshots(connection).snapshot(words[2], words[3]);
          break;
        case "snapclone":
          new Snapshots(connection).clone(words[2], words[3]);
          break;
        case "snapdrop":
          new Snapshots(connection).drop(words[2]);
          break;
        case "snapdump":
          new Snapshots(connection).dump(words[2], path);
          break;
        default:
          throw new IllegalArgumentException(words[0]);
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer = "ok";
      try {
        run(line.split(" "));
      } catch (Exception | AssertionError e) {
        e.printStackTrace();
        answer = "failed: " + e.toString().replace('\n', ' ');
      }
      System.out.println(answer);
      System.out.flush();
    }
    System.exit(0);
  }
}
