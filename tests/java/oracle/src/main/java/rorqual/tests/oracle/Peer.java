// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.codec.KeyValueCodecWithTags;

/** One of the two servers. */
final class Peer implements AutoCloseable {
    final String name;
    final Admin admin;
    private final Connection plain;
    private final Connection tags;
    private int generation;
    private long looked = System.nanoTime() - TimeUnit.HOURS.toNanos(1);

    Peer(String name, String zookeeper) throws IOException {
        this.name = name;
        plain = ConnectionFactory.createConnection(configuration(zookeeper));
        Configuration withTags = configuration(zookeeper);
        withTags.set("hbase.client.rpc.codec", KeyValueCodecWithTags.class.getName());
        tags = ConnectionFactory.createConnection(withTags);
        admin = plain.getAdmin();
    }

    private static Configuration configuration(String zookeeper) {
        Configuration conf = HBaseConfiguration.create();
        int colon = zookeeper.lastIndexOf(':');
        conf.set("hbase.zookeeper.quorum", zookeeper.substring(0, colon));
        conf.set("hbase.zookeeper.property.clientPort", zookeeper.substring(colon + 1));
        // A retryable exception is a result, too: with few retries the client returns it soon.
        conf.setInt("hbase.client.retries.number", 1);
        conf.setInt("hbase.client.pause", 3);
        conf.setInt("hbase.rpc.timeout", 120_000);
        conf.setInt("hbase.client.operation.timeout", 240_000);
        conf.setInt("hbase.client.meta.operation.timeout", 240_000);
        conf.setInt("hbase.client.scanner.timeout.period", 120_000);
        // After this many µs a get with timeline consistency asks the replicas too. Without replicas the client forgets that the
        // primary region has failed before, and loses the exception of a server that responds quickly.
        conf.setInt("hbase.client.primaryCallTimeout.get", 0);
        // Only the server checks the size of cells.
        conf.setInt("hbase.client.keyvalue.maxsize", 0);
        return conf;
    }

    /** Aborts endless reads by the driver's command; does nothing if there is no command or no such read. */
    synchronized void breakOff() throws InterruptedException {
        // Many threads may be waiting: one run of the command is enough for all.
        if (name.equals("HBase") && System.nanoTime() - looked > TimeUnit.SECONDS.toNanos(Place.LIMIT) / 2) {
            command("BREAK");
            looked = System.nanoTime();
        }
    }

    /** The number of starts of the server. */
    synchronized int generation() {
        return generation;
    }

    /** Restarts the server, unless another history did so already. Returns false if that is not possible. */
    synchronized boolean restart(int seen) throws InterruptedException {
        if (seen == generation) {
            if (!command("RESTART")) {
                return false;
            }
            generation++;
        }
        return true;
    }

    private static boolean command(String name) throws InterruptedException {
        String command = System.getenv(name);
        if (command == null) {
            return false;
        }
        try {
            return new ProcessBuilder("sh", "-c", command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start().waitFor() == 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Connection connection(boolean withTags) {
        return withTags ? tags : plain;
    }

    void drop(TableName table) throws IOException {
        if (admin.isTableEnabled(table)) {
            admin.disableTable(table);
        }
        admin.deleteTable(table);
    }

    @Override
    public void close() throws IOException {
        admin.close();
        plain.close();
        tags.close();
    }
}
