// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import rorqual.tests.support.Await;

/**
 * The server under test, with one connection that all programs of this JVM share.
 *
 * <p>{@code ZK=host:port} (required) is the server. {@code RUN} is a suffix of all names, so that runs do not use the same
 * tables; a later JVM that checks the writes of an earlier one gets the same suffix.
 */
public final class Cluster implements AutoCloseable {
    /** Held while a program splits a region or has disabled splits, which affects all tables: programs run in parallel. */
    public static final Object SPLITS = new Object();

    public final Configuration configuration;
    public final Connection connection;
    public final Admin admin;
    public final String run;

    public Cluster(String zookeeper, String run) throws IOException {
        this.configuration = configuration(zookeeper);
        this.connection = ConnectionFactory.createConnection(configuration);
        this.admin = connection.getAdmin();
        this.run = run;
    }

    public static Cluster fromEnvironment() throws IOException {
        String run = System.getenv("RUN");
        return new Cluster(zookeeper(), run != null ? run : "r" + ThreadLocalRandom.current().nextInt(100_000, 1_000_000));
    }

    public static String zookeeper() {
        String zookeeper = System.getenv("ZK");
        if (zookeeper == null || !zookeeper.contains(":")) {
            throw new IllegalArgumentException("ZK=host:port must say where the server is");
        }
        return zookeeper;
    }

    public static Configuration configuration(String zookeeper) {
        Configuration conf = HBaseConfiguration.create();
        // The default of the 2.x client, but not of the 3.0 client.
        conf.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.ZKConnectionRegistry");
        int colon = zookeeper.lastIndexOf(':');
        conf.set("hbase.zookeeper.quorum", zookeeper.substring(0, colon));
        conf.set("hbase.zookeeper.property.clientPort", zookeeper.substring(colon + 1));
        // With HBase's default of 15 retries a client waits 20 s for a region in transition; a busy machine needs a few seconds.
        conf.setInt("hbase.client.retries.number", Integer.parseInt(System.getenv().getOrDefault("RETRIES", "15")));
        conf.setInt("hbase.client.pause", 20);
        // Time-outs are the defaults, a minute or more: a call that hangs is ended by the time limit of its step.
        // Only the server checks the size of cells.
        conf.setInt("hbase.client.keyvalue.maxsize", 0);
        return conf;
    }

    /** The name of one of this run's tables. */
    public TableName name(String table) {
        return TableName.valueOf(table + "_" + run);
    }

    public Table table(String table) throws IOException {
        return connection.getTable(name(table));
    }

    public static ColumnFamilyDescriptor family(String name) {
        return ColumnFamilyDescriptorBuilder.of(name);
    }

    public static ColumnFamilyDescriptor family(String name, int versions) {
        return ColumnFamilyDescriptorBuilder.newBuilder(Text.b(name)).setMaxVersions(versions).build();
    }

    public Table create(String table, ColumnFamilyDescriptor... families) throws IOException {
        return create(table, new byte[0][], families);
    }

    public Table create(String table, byte[][] splits, ColumnFamilyDescriptor... families) throws IOException {
        TableDescriptorBuilder descriptor = TableDescriptorBuilder.newBuilder(name(table));
        for (ColumnFamilyDescriptor family : families) {
            descriptor.setColumnFamily(family);
        }
        if (splits.length == 0) {
            admin.createTable(descriptor.build());
        } else {
            admin.createTable(descriptor.build(), splits);
        }
        return table(table);
    }

    public void flush(String table) throws IOException {
        admin.flush(name(table));
    }

    /** Flushes and compacts all stores to one file each, and returns when this is done. */
    public void flushAndMajorCompact(String table) throws Exception {
        flushAndMajorCompact(name(table));
    }

    public void flushAndMajorCompact(TableName table) throws Exception {
        admin.flush(table);
        // The server accepts the request before the call returns: from then on the state is not NONE until the
        // compaction is done.
        admin.majorCompact(table);
        Await.until("compaction of " + table + " done", () -> admin.getCompactionState(table) == CompactionState.NONE);
    }

    public List<RegionInfo> regions(String table) throws IOException {
        return admin.getRegions(name(table));
    }

    public void drop(String... tables) throws IOException {
        for (String table : tables) {
            drop(name(table));
        }
    }

    public void drop(TableName table) throws IOException {
        if (!admin.tableExists(table)) {
            return;
        }
        if (admin.isTableEnabled(table)) {
            admin.disableTable(table);
        }
        admin.deleteTable(table);
    }

    /** Drops every table of this run whose name has this prefix. */
    public void dropAll(String prefix) throws IOException {
        for (TableName table : admin.listTableNames(Pattern.compile(Pattern.quote(prefix) + ".*_" + run))) {
            drop(table);
        }
    }

    /** Drops a namespace with all its tables, if it exists. */
    public void dropNamespace(String namespace) throws IOException {
        List<String> existing = new ArrayList<>();
        for (NamespaceDescriptor one : admin.listNamespaceDescriptors()) {
            existing.add(one.getName());
        }
        if (!existing.contains(namespace)) {
            return;
        }
        for (TableName table : admin.listTableNamesByNamespace(namespace)) {
            drop(table);
        }
        admin.deleteNamespace(namespace);
    }

    @Override
    public void close() throws IOException {
        admin.close();
        connection.close();
    }
}
