// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.crash;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Clients that outlive every server: HBase's client retries a call that a kill interrupts on the next server, with the same
 * nonce. So no call is in doubt: each increment and each append is applied exactly once. Every response shows this, because
 * each row has only one writer.
 */
final class CrashPatient {
    private static final int COUNTERS = 3;
    private static final int APPENDS_PER_ROW = 200;

    private final Connection connection;
    private final String run;
    private final ConcurrentLinkedQueue<String> problems = new ConcurrentLinkedQueue<>();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicLong done = new AtomicLong();
    private final Object turnstile = new Object();
    private boolean paused;
    private int busy;
    private volatile boolean stop;

    CrashPatient(String zookeeper, String run) throws IOException {
        this.connection = ConnectionFactory.createConnection(configuration(zookeeper));
        this.run = run;
    }

    /** Settings with very many, but not endless, retries. */
    private static Configuration configuration(String zookeeper) {
        Configuration conf = CrashWriter.configuration(zookeeper);
        conf.setInt("hbase.client.retries.number", 2000);
        conf.setInt("hbase.client.pause", 20);
        conf.setInt("hbase.rpc.timeout", 20_000);
        conf.setInt("hbase.client.operation.timeout", 150_000);
        conf.setInt("hbase.client.meta.operation.timeout", 150_000);
        conf.setInt("zookeeper.recovery.retry", 1000);
        conf.setInt("hbase.client.zookeeper.retries", 1000);
        conf.setInt("zookeeper.registry.async.get.timeout", 150_000);
        return conf;
    }

    private interface Step {
        /** The next operation; an exception ends the thread as a problem. */
        void run(Table table, long number) throws Exception;
    }

    void start() {
        for (int i = 0; i < COUNTERS; i++) {
            int id = i;
            start("increments " + i, (table, number) -> increment(table, id, number));
        }
        start("appends", this::append);
        start("checkAndPut", this::checkAndPut);
        start("RowMutations", this::mutateRow);
    }

    private void start(String name, Step step) {
        Thread thread = new Thread(() -> {
            try (Table table = connection.getTable(CrashWriter.table(run))) {
                for (long number = 0; enter(); number++) {
                    try {
                        step.run(table, number);
                        done.incrementAndGet();
                    } finally {
                        leave();
                    }
                }
            } catch (Exception e) {
                problems.add(name + ": " + e);
            }
        }, "patient " + name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** False: the clients must end. */
    private boolean enter() throws InterruptedException {
        synchronized (turnstile) {
            while (paused && !stop) {
                turnstile.wait();
            }
            busy++;
            return !stop;
        }
    }

    private void leave() {
        synchronized (turnstile) {
            busy--;
            turnstile.notifyAll();
        }
    }

    /** Waits until no operation is in flight, and starts none: then a server's clock may jump by more than the lifetime of
     * nonces. */
    void pause() throws InterruptedException {
        synchronized (turnstile) {
            paused = true;
            while (busy > 0 && problems.isEmpty()) {
                turnstile.wait(100);
            }
        }
    }

    void resume() {
        synchronized (turnstile) {
            paused = false;
            turnstile.notifyAll();
        }
    }

    /** The problems so far; makes no call to the server. */
    List<String> problems() {
        return new ArrayList<>(problems);
    }

    long done() {
        return done.get();
    }

    List<String> stop() throws Exception {
        synchronized (turnstile) {
            stop = true;
            turnstile.notifyAll();
        }
        for (Thread thread : threads) {
            thread.join(160_000);
            if (thread.isAlive()) {
                problems.add(thread.getName() + " hangs in " + List.of(thread.getStackTrace()));
            }
        }
        connection.close();
        return problems();
    }

    // ---- the operations ----------------------------------------------------------------------------------------------

    private void expect(String what, Object wanted, Object found) {
        if (!wanted.equals(found)) {
            throw new IllegalStateException(what + " is " + found + ", should be " + wanted);
        }
    }

    private void increment(Table table, int id, long number) throws IOException {
        long now = table.incrementColumnValue(b("exact-" + id), CrashWriter.A, b("n"), 1);
        expect("exact counter " + id, number + 1, now);
    }

    private void append(Table table, long number) throws IOException {
        String row = "exact-text-" + number / APPENDS_PER_ROW;
        Result result = table.append(new Append(b(row)).addColumn(CrashWriter.A, b("text"), b(number + ";")));
        StringBuilder wanted = new StringBuilder();
        for (long n = number - number % APPENDS_PER_ROW; n <= number; n++) {
            wanted.append(n).append(';');
        }
        expect("row " + row, wanted.toString(), s(result.getValue(CrashWriter.A, b("text"))));
    }

    /** A chain of checkAndPuts, each on the value of the previous one. A retry that finds the value of the first attempt has
     * succeeded. */
    private void checkAndPut(Table table, long number) throws IOException {
        byte[] row = b("exact-chain");
        Put put = CrashWriter.at(new Put(row), CrashWriter.A, b("v"), Bytes.toBytes(number));
        CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
        check = number == 0 ? check.ifNotExists(CrashWriter.A, b("v")) : check.ifEquals(CrashWriter.A, b("v"), Bytes.toBytes(number - 1));
        if (!table.checkAndMutate(check.build(put)).isSuccess()) {
            byte[] found = table.get(new Get(row)).getValue(CrashWriter.A, b("v"));
            expect("the chain", number, found == null ? null : Bytes.toLong(found));
        }
    }

    private void mutateRow(Table table, long number) throws IOException {
        byte[] row = b("exact-pair");
        byte[] value = Bytes.toBytes(number);
        table.mutateRow(RowMutations.of(List.of(CrashWriter.at(new Put(row), CrashWriter.A, b("left"), value),
            CrashWriter.at(new Put(row), CrashWriter.B, b("right"), value))));
        Result result = table.get(new Get(row));
        expect("left of the pair", number, Bytes.toLong(result.getValue(CrashWriter.A, b("left"))));
        expect("right of the pair", number, Bytes.toLong(result.getValue(CrashWriter.B, b("right"))));
    }
}
