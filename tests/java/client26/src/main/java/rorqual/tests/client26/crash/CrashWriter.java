// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.crash;

import static rorqual.tests.client26.Text.b;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;

/**
 * Writes on several threads until the server dies, while flushes, compactions and DDL run, and journals what was sent and
 * what was acknowledged. A round is one life of the server; rounds continue the same rows, counters and journal.
 */
final class CrashWriter {
    static final int THREADS = 4;
    static final byte[] A = b("a");
    static final byte[] B = b("b");
    /** The writers' clock: far behind any clock that a server may have. */
    private static final AtomicLong TIME = new AtomicLong(1_000_000_000_000L);

    private final Journal journal;
    private final String run;
    private final int round;
    private final Connection connection;
    private final AtomicLong acknowledged = new AtomicLong();
    private final ConcurrentLinkedQueue<String> problems = new ConcurrentLinkedQueue<>();
    private final List<Thread> threads = new ArrayList<>();
    /** The kill will come soon or has come: later errors are caused by it. */
    private volatile boolean dying;
    private volatile boolean stop;
    /** Joined: threads that are left running must not begin further operations. Guarded by {@code journal}. */
    private boolean ended;

    CrashWriter(Journal journal, String run, String zookeeper, int round) throws IOException {
        this.journal = journal;
        this.run = run;
        this.round = round;
        this.connection = ConnectionFactory.createConnection(configuration(zookeeper));
    }

    static TableName table(String run) {
        return TableName.valueOf("crash_" + run);
    }

    /** Configuration of a client that fails at once when the server is dead (by its closed connections), but waits for a busy region. */
    static Configuration configuration(String zookeeper) {
        Configuration conf = Cluster.configuration(zookeeper);
        conf.setInt("hbase.client.retries.number", 3);
        conf.setInt("hbase.client.pause", 10);
        conf.setInt("zookeeper.recovery.retry", 0);
        conf.setInt("hbase.client.zookeeper.retries", 0);
        return conf;
    }

    static void create(String zookeeper, String run) throws IOException {
        try (Connection connection = ConnectionFactory.createConnection(configuration(zookeeper)); Admin admin = connection.getAdmin()) {
            // The smallest memstore size that HBase allows, so that a round of a second causes flushes. The rows of the
            // thread with the highest number are in a separate region, so that the log has several regions.
            admin.createTable(TableDescriptorBuilder.newBuilder(table(run)).setMemStoreFlushSize(1 << 20)
                .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(A).setMaxVersions(3).build())
                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(B)).build(), new byte[][] {b("row-1"), b("row-3")});
        }
    }

    void start() {
        for (int i = 0; i < THREADS; i++) {
            int id = i;
            start("writer " + i, () -> write(id));
        }
        start("maintenance", this::maintain);
        start("ddl", this::ddl);
    }

    private interface Work {
        void run() throws Exception;
    }

    private void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                if (!dying) {
                    problems.add(name + ": " + e);
                }
            }
        }, name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    long acknowledged() {
        return acknowledged.get();
    }

    /** From here on a failed call is no problem. */
    void kill() {
        dying = true;
    }

    /** Lets the writers end without a kill of the server. */
    void stop() {
        stop = true;
    }

    /**
     * Returns the problems before the kill, when no writer runs any more. After a kill the client may wait for a dead
     * ZooKeeper until the next server's ZooKeeper responds on the same port: then the writer's thread is left running. It may
     * finish the call that the journal lists as sent, but begins no other.
     */
    List<String> join() throws Exception {
        if (dying) {
            Connection dead = connection;
            Thread closer = new Thread(() -> closeQuietly(dead), "closer");
            closer.setDaemon(true);
            closer.start();
        }
        long deadline = System.nanoTime() + (dying ? 1_000_000_000L : 60_000_000_000L);
        for (Thread thread : threads) {
            if (dying) {
                thread.interrupt();
            }
            thread.join(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
            if (thread.isAlive() && !dying) {
                problems.add(thread.getName() + " hangs in " + List.of(thread.getStackTrace()));
            }
        }
        synchronized (journal) {
            ended = true;
        }
        if (!dying) {
            connection.close();
        }
        return new ArrayList<>(problems);
    }

    private static void closeQuietly(Connection connection) {
        try {
            connection.close();
        } catch (IOException e) {
            // The failed call was to a dead server.
        }
    }

    private void journaled(String operation, Work work) throws Exception {
        sent(operation);
        work.run();
        journal.acknowledged(operation);
        acknowledged.incrementAndGet();
    }

    /** Fails once this writer has been joined, because the check has read the journal and would not know operations sent
     * later. */
    private void sent(String operation) throws IOException {
        synchronized (journal) {
            if (ended) {
                throw new IOException("this writer has ended");
            }
            journal.sent(operation);
        }
    }

    // ---- the writers -------------------------------------------------------------------------------------------------

    static String row(int thread, int round, int number) {
        return String.format("row-%d-%04d-%06d", thread, round, number);
    }

    /** The value of every column of a row at a version: some small, some large. */
    static byte[] value(String row, String version) {
        Random random = new Random((row + version).hashCode());
        int length = random.nextInt(100) == 0 ? 60_000 : 20 + random.nextInt(600);
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return Bytes.add(b(version + "|"), bytes);
    }

    static Put put(String row, String version) {
        byte[] value = value(row, version);
        long time = TIME.incrementAndGet();
        return new Put(b(row)).addColumn(A, b("first"), time, value).addColumn(A, b("second"), time, value)
            .addColumn(B, b("first"), time, value);
    }

    /** A put with a timestamp of the writers' clock: the server's clock may jump, and a later write must always hide an
     * earlier one. */
    static Put at(Put put, byte[] family, byte[] qualifier, byte[] value) {
        return put.addColumn(family, qualifier, TIME.incrementAndGet(), value);
    }

    private void write(int id) throws Exception {
        try (Table table = connection.getTable(table(run))) {
            for (int k = 0; !stop; k++) {
                String row = row(id, round, k);
                String version = round + "." + k;
                switch (k % 8) {
                    case 0, 1, 2 -> journaled("put " + row + " " + version, () -> table.put(put(row, version)));
                    case 3 -> {
                        String pair = "pair-" + id;
                        journaled("pair " + pair + " " + version, () -> table.mutateRow(RowMutations.of(List.of(
                            at(new Put(b(pair)), A, b("left"), b(version)), at(new Put(b(pair)), B, b("right"), b(version))))));
                    }
                    case 4 -> {
                        String counter = "count-" + id % 2;
                        long amount = k % 5 + 1;
                        journaled("inc " + counter + " " + amount, () -> table.incrementColumnValue(b(counter), A, b("n"), amount));
                    }
                    case 5 -> batch(table, id, k);
                    case 6 -> {
                        String old = row(id, round, k - 6);
                        journaled("del " + old, () -> table.delete(new Delete(b(old), TIME.incrementAndGet())));
                    }
                    default -> {
                        // Overwrites an earlier row of this group of eight.
                        String again = row(id, round, k - 6);
                        journaled("put " + again + " " + version, () -> table.put(put(again, version)));
                    }
                }
            }
        }
    }

    /** Puts several rows, of all regions, in one call: each row is complete or absent, whichever write made it. */
    private void batch(Table table, int id, int k) throws Exception {
        List<Put> puts = new ArrayList<>();
        List<String> operations = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            String row = row(i, round, 500_000 + k * THREADS + id);
            String version = round + "." + k + "." + i;
            puts.add(put(row, version));
            operations.add("put " + row + " " + version);
        }
        for (String operation : operations) {
            sent(operation);
        }
        table.put(puts);
        for (String operation : operations) {
            journal.acknowledged(operation);
        }
        acknowledged.addAndGet(operations.size());
    }

    private void maintain() throws Exception {
        Random random = new Random(round);
        try (Admin admin = connection.getAdmin()) {
            while (!stop && !dying) {
                switch (random.nextInt(4)) {
                    case 0 -> admin.compact(table(run));
                    case 1 -> admin.majorCompact(table(run));
                    default -> admin.flush(table(run));
                }
                Thread.sleep(random.nextInt(60));
            }
        }
    }

    /** Creates one table and drops one in each round. */
    private void ddl() throws Exception {
        try (Admin admin = connection.getAdmin()) {
            TableName name = ddlTable(run, round);
            journaled("create " + name, () -> admin.createTable(TableDescriptorBuilder.newBuilder(name)
                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(A)).build()));
            TableName old = ddlTable(run, round - 2);
            if (round >= 2 && admin.tableExists(old)) {
                if (admin.isTableEnabled(old)) {
                    admin.disableTable(old);
                }
                journaled("drop " + old, () -> admin.deleteTable(old));
            }
        }
    }

    static TableName ddlTable(String run, int round) {
        return TableName.valueOf("crashddl_" + run + "_" + round);
    }
}
