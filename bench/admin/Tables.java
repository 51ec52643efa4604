// SPDX-License-Identifier: Apache-2.0
// Measures create, disable and drop of a table with HBase's own client, in milliseconds: Tables HOST:PORT (of
// ZooKeeper) ROUNDS. Prints "create N", "disable N" and "drop N" for each round after the first ten, which warm up.
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

public class Tables {
    static final int WARM = 10;

    interface Step {
        void run() throws Exception;
    }

    static void timed(String what, int round, Step step) throws Exception {
        long begun = System.nanoTime();
        step.run();
        if (round >= WARM) System.out.printf("%s %.3f%n", what, (System.nanoTime() - begun) / 1e6);
    }

    public static void main(String[] args) throws Exception {
        Configuration conf = HBaseConfiguration.create();
        String[] zk = args[0].split(":");
        conf.set("hbase.zookeeper.quorum", zk[0]);
        conf.set("hbase.zookeeper.property.clientPort", zk[1]);
        int rounds = WARM + Integer.parseInt(args[1]);
        try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
            for (int i = 0; i < rounds; i++) {
                TableName name = TableName.valueOf("timed" + i);
                TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name)
                    .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"));
                timed("create", i, () -> admin.createTable(table.build()));
                timed("disable", i, () -> admin.disableTable(name));
                timed("drop", i, () -> admin.deleteTable(name));
            }
        }
    }
}
