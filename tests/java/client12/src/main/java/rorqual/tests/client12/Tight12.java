// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client12;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** An old client on a server with the settings of {@code tests/e2e/tight.py}. */
public final class Tight12 implements Program {
    private static final byte[] CF = Bytes.toBytes("cf");
    private static final int LEASE_MS = 2_000;
    private static final int ROWS = 20;
    private static final int FRAME = 1 << 20;

    private final Configuration conf;
    private final TableName name;

    public Tight12(Configuration conf, String run) {
        this.conf = new Configuration(conf);
        this.conf.setInt("hbase.client.scanner.timeout.period", LEASE_MS);
        this.name = TableName.valueOf("tight12_" + run);
    }

    @Override
    public void write(Steps steps) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(conf);
             Admin admin = connection.getAdmin(); Table table = connection.getTable(name)) {
            steps.must("create", () -> {
                HTableDescriptor descriptor = new HTableDescriptor(name);
                descriptor.addFamily(new HColumnDescriptor(CF));
                admin.createTable(descriptor);
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    puts.add(new Put(Bytes.toBytes(String.format("r%03d", i))).addColumn(CF, CF, Bytes.toBytes(i)));
                }
                table.put(puts);
            });
            steps.run("a scanner whose lease has ended goes on behind the row it has seen", () -> {
                Scan scan = new Scan();
                scan.setCaching(2);
                List<Integer> seen = new ArrayList<>();
                List<Integer> all = new ArrayList<>();
                try (ResultScanner scanner = table.getScanner(scan)) {
                    for (Result r : scanner.next(2)) {
                        seen.add(Bytes.toInt(r.value()));
                    }
                    // A fixed sleep is needed: a polling call would renew the lease that must end.
                    Thread.sleep(2 * LEASE_MS);
                    for (Result r = scanner.next(); r != null; r = scanner.next()) {
                        seen.add(Bytes.toInt(r.value()));
                    }
                }
                for (int i = 0; i < ROWS; i++) {
                    all.add(i);
                }
                Expect.equalLists(all, seen, "rows");
            });
            steps.run("a lease that is kept by asking", () ->
                Await.until("a scan without a pause of the machine", () -> isKept(table)));
            steps.run("a request above the limit", () -> {
                try {
                    table.put(new Put(CF).addColumn(CF, CF, new byte[FRAME]));
                    throw new AssertionError("the call went through");
                } catch (IOException e) {
                    StringBuilder chain = new StringBuilder();
                    for (Throwable t = e; t != null; t = t.getCause()) {
                        chain.append(t).append(" | ");
                        if (t instanceof RetriesExhaustedWithDetailsException) {
                            chain.append(((RetriesExhaustedWithDetailsException) t).getCauses()).append(" | ");
                        }
                    }
                    Expect.that(chain.toString().contains("is greater than max allowed " + FRAME), chain.toString());
                }
            });
        }
    }

    /** Returns false if the lease ended because this machine paused for more than a lease between the beginning of a call and the
     * end of the next one. */
    private static boolean isKept(Table table) throws Exception {
        Scan scan = new Scan();
        scan.setCaching(2);
        int rows = 0;
        long asked = System.nanoTime();
        try (ResultScanner scanner = table.getScanner(scan)) {
            for (; rows < 10; rows += 2) {
                long now = System.nanoTime();
                Expect.equal(2, scanner.next(2).length, "rows");
                asked = now;
                Thread.sleep(LEASE_MS / 2);
            }
            while (scanner.next() != null) {
                rows++;
            }
        } catch (IOException e) {
            if ((System.nanoTime() - asked) / 1_000_000 < LEASE_MS) {
                throw e;
            }
            return false;
        }
        Expect.equal(ROWS, rows, "rows");
        return true;
    }

    @Override
    public void drop(Steps steps) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
            steps.run("drop", () -> {
                admin.disableTable(name);
                admin.deleteTable(name);
            });
        }
    }
}
