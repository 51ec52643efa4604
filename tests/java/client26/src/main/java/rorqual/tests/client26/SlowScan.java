// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;

/**
 * Scans a whole table of many regions more slowly than the server sends, so that AsyncTableResultScanner, which every scan of
 * the 3.0 client uses, suspends and resumes often. Arguments: table, rows, rounds, seed. A scan without a row for a minute is a
 * hang: the threads are printed, and the JVM ends.
 */
public final class SlowScan {
    private static final long HANG_MS = 60_000;

    private SlowScan() {}

    public static void main(String[] args) throws Exception {
        TableName table = TableName.valueOf(args[0]);
        long rows = Long.parseLong(args[1]);
        int rounds = Integer.parseInt(args[2]);
        Random dice = new Random(Long.parseLong(args[3]));
        int failed = 0;
        try (AsyncConnection connection = ConnectionFactory.createAsyncConnection(Cluster.configuration(Cluster.zookeeper())).get()) {
            for (int round = 1; round <= rounds; round++) {
                long begun = System.nanoTime();
                long found = read(connection, table, dice);
                String name = "slow scan, round " + round;
                failed += found == rows ? 0 : 1;
                System.out.printf(found == rows ? "PASS %s%n" : "FAIL %s: %d rows of %d%n", name, found, rows);
                System.err.printf("%s: %d rows in %d ms%n", name, found, (System.nanoTime() - begun) / 1_000_000);
            }
        }
        System.out.printf("%d passed, %d failed%n", rounds - failed, failed);
    }

    private static long read(AsyncConnection connection, TableName table, Random dice) throws Exception {
        AtomicLong last = new AtomicLong(System.currentTimeMillis());
        Thread watch = watcher(last);
        long found = 0;
        try (ResultScanner scanner = connection.getTable(table).getScanner(new Scan())) {
            for (Result result = scanner.next(); result != null; result = scanner.next()) {
                found++;
                last.lazySet(System.currentTimeMillis());
                if (dice.nextInt(512) == 0) LockSupport.parkNanos(dice.nextInt(2_000_000));
            }
        } finally {
            watch.interrupt();
        }
        return found;
    }

    private static Thread watcher(AtomicLong last) {
        Thread watch = new Thread(() -> {
            while (System.currentTimeMillis() - last.get() < HANG_MS) {
                try {
                    Thread.sleep(1000);
                } catch (InterruptedException e) {
                    return;
                }
            }
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                System.err.println(thread.getName());
                for (StackTraceElement at : stack) System.err.println("    " + at);
            });
            System.out.println("FAIL slow scan: no row for a minute");
            Runtime.getRuntime().halt(1);
        });
        watch.setDaemon(true);
        watch.start();
        return watch;
    }
}
