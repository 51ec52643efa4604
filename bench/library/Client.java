// SPDX-License-Identifier: Apache-2.0
// CPU time of HBase's own client per operation: Client HOST:PORT (of ZooKeeper). Does the same as client.c
// with librorqual. The time is that of the process, so it includes JIT compiler and garbage collector;
// each kind of operation is warmed up first.
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

public class Client {
    static final int ROWS = 20000, BATCH = 50, VALUE = 100, WARM = 40000;
    static final byte[] F = Bytes.toBytes("f"), Q = Bytes.toBytes("q"), V = new byte[VALUE];
    static Table table;

    interface Work {
        int run(int count) throws Exception;
    }

    static byte[] row(int i) {
        return Bytes.toBytes(String.format("row%08d", i));
    }

    static Put put(int i) {
        return new Put(row(i)).addColumn(F, Q, V);
    }

    static int puts(int count) throws Exception {
        for (int i = 0; i < count; i++) table.put(put(i % ROWS));
        return count;
    }

    static int gets(int count) throws Exception {
        for (int i = 0; i < count; i++)
            if (table.get(new Get(row((int) (i * 7919L % ROWS)))).size() != 1) throw new Exception("no cell");
        return count;
    }

    static int batches(int count) throws Exception {
        for (int b = 0; b < count / BATCH; b++) {
            List<Row> actions = new ArrayList<>();
            for (int i = 0; i < BATCH; i++) actions.add(put((b * BATCH + i) % ROWS));
            table.batch(actions, new Object[BATCH]);
        }
        return count / BATCH;
    }

    static int scans(int count) throws Exception {
        int rows = 0;
        while (rows < count)
            try (ResultScanner scanner = table.getScanner(new Scan())) {
                for (Result r : scanner) rows += r.size();
            }
        return rows;
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    static void measure(String name, Work work, int count) throws Exception {
        work.run(WARM);
        long begun = cpu();
        int done = work.run(count);
        System.out.printf("%s %.2f%n", name, (cpu() - begun) / 1e3 / done);
    }

    public static void main(String[] args) throws Exception {
        Configuration conf = HBaseConfiguration.create();
        String[] at = args[0].split(":");
        conf.set("hbase.zookeeper.quorum", at[0]);
        conf.set("hbase.zookeeper.property.clientPort", at[1]);
        TableName name = TableName.valueOf("bench_java");
        try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
            admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
            table = connection.getTable(name);
            measure("put", Client::puts, ROWS);
            measure("get", Client::gets, ROWS);
            measure("batch", Client::batches, ROWS * 10);
            measure("row", Client::scans, ROWS * 20);
            admin.disableTable(name);
            admin.deleteTable(name);
        }
    }
}
