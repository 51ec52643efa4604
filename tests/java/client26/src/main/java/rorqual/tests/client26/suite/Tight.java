// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.UnknownScannerException;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException;
import org.apache.hadoop.hbase.exceptions.RequestTooBigException;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.ipc.CallTimeoutException;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.RequestConverter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ScanRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ScanResponse;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Limits that are only reached with the tight settings of {@code tests/e2e/tight.py}: requests of at most {@link #FRAME}
 * bytes, scanner leases of {@link #LEASE_MS}. And calls that take longer than their clients wait.
 */
public final class Tight implements Program {
    private static final int FRAME = 1 << 20;
    private static final long LEASE_MS = 2_000;
    private static final int ROWS = 40;

    /** Cells of the wide row, each compared by every filter of slow(). */
    private static final int SLOW_CELLS = 4_000;
    /** Duration of a get of the wide row: three times the interval of a scan's heartbeats, which is half a lease. */
    private static final long SLOW_MS = 3 * LEASE_MS / 2;
    /** Time-outs for calls that must time out, and for calls that must not, however loaded the machine is. */
    private static final int SHORT_TIMEOUT_MS = 100;
    private static final int PATIENT_MS = 300_000;

    private final Cluster cluster;

    public Tight(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> {
            try (Table t = cluster.create("tight", Cluster.family("f"))) {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    puts.add(put(row(i), "f:q=" + i));
                }
                t.put(puts);
            }
        });
        frames(steps);
        sequence(steps);
        leases(steps);
        timeouts(steps);
    }

    private static String row(int i) {
        return String.format("r%03d", i);
    }

    // ---- the largest request

    private static Put valueOf(int length, String row) {
        byte[] value = new byte[length];
        Arrays.fill(value, (byte) 'v');
        return new Put(b(row)).addColumn(b("f"), b("big"), value);
    }

    private void frames(Steps steps) {
        steps.run("the largest request", () -> {
            try (Connection own = ConnectionFactory.createConnection(Cluster.configuration(Cluster.zookeeper()));
                 Table t = own.getTable(cluster.name("tight"))) {
                // From here on call ids have two bytes, so that all following requests have headers of the same size.
                for (int i = 0; i < 140; i++) {
                    t.exists(get("none"));
                }
                RequestTooBigException refused = Expect.fails(RequestTooBigException.class, "RPC data length of",
                    () -> t.put(valueOf(FRAME, "big")));
                Matcher told = Pattern.compile("RPC data length of (\\d+) received from \\S+ is greater than max allowed (\\d+)")
                    .matcher(refused.getMessage());
                Expect.that(told.find(), "the message names both lengths: " + refused.getMessage());
                Expect.equal(FRAME, Integer.parseInt(told.group(2)), "the limit");
                int overhead = Integer.parseInt(told.group(1)) - FRAME;
                for (int length : new int[] {FRAME - 1, FRAME}) {
                    t.put(valueOf(length - overhead, "big"));
                    Expect.equal(length - overhead, t.get(get("big")).value().length, "bytes of the value back");
                }
                Expect.fails(RequestTooBigException.class, "RPC data length of " + (FRAME + 1) + " received from",
                    () -> t.put(valueOf(FRAME + 1 - overhead, "big")));
                Expect.equal(FRAME - overhead, t.get(get("big")).value().length, "the value is still the one before");
            }
        });
        steps.run("what is refused for its size does not disturb others", () -> {
            try (Table t = cluster.table("tight")) {
                for (int i = 0; i < 5; i++) {
                    Expect.fails(RequestTooBigException.class, "is greater than max allowed", () -> t.put(valueOf(FRAME, "big")));
                    Expect.that(t.exists(get(row(i))), row(i));
                }
            }
        });
    }

    // ---- scanners, call by call

    /** Sends the same calls as ClientScanner, one at a time, without its retries. */
    private final class Calls {
        private final ClientService.BlockingInterface server;
        private final byte[] region;

        Calls() throws IOException {
            try (RegionLocator locator = cluster.connection.getRegionLocator(cluster.name("tight"))) {
                HRegionLocation location = locator.getRegionLocation(b("r"));
                server = ((ClusterConnection) cluster.connection).getClient(location.getServerName());
                region = location.getRegion().getRegionName();
            }
        }

        private ScanResponse call(ScanRequest request) throws IOException {
            try {
                return server.scan(null, request);
            } catch (ServiceException e) {
                throw ProtobufUtil.handleRemoteException(e);
            }
        }

        ScanResponse open(Scan scan, int rows) throws IOException {
            return call(RequestConverter.buildScanRequest(region, scan, rows, false));
        }

        ScanResponse next(long scanner, int rows, long sequence) throws IOException {
            return call(RequestConverter.buildScanRequest(scanner, rows, false, sequence, false, false, 0));
        }

        ScanResponse renew(long scanner, long sequence) throws IOException {
            return call(RequestConverter.buildScanRequest(scanner, 0, false, sequence, false, true, 0));
        }

        ScanResponse close(long scanner) throws IOException {
            return call(RequestConverter.buildScanRequest(scanner, 0, true, false));
        }
    }

    private static int rows(ScanResponse response) {
        return response.getCellsPerResultCount();
    }

    private void sequence(Steps steps) {
        steps.run("calls of a scanner out of order", () -> {
            Calls calls = new Calls();
            Await.until("the calls without a pause of the machine", () -> areRefusedOutOfOrder(calls));
        });
    }

    /** Returns false if this machine paused for a lease, which then has ended. */
    private static boolean areRefusedOutOfOrder(Calls calls) throws Exception {
        long begun = System.nanoTime();
        long scanner = calls.open(new Scan().withStartRow(b("r")), 0).getScannerId();
        try {
            Expect.equal(2, rows(calls.next(scanner, 2, 0)), "rows of call 0");
            Expect.fails(OutOfOrderScannerNextException.class, "Expected nextCallSeq: 1 But the nextCallSeq got from client: 0",
                () -> calls.next(scanner, 2, 0));
            Expect.fails(OutOfOrderScannerNextException.class, "Expected nextCallSeq: 1 But the nextCallSeq got from client: 7",
                () -> calls.next(scanner, 2, 7));
            // The scanner has not moved.
            Expect.equal(3, rows(calls.next(scanner, 3, 1)), "rows of call 1");
            Expect.fails(OutOfOrderScannerNextException.class, "Expected nextCallSeq: 2 But the nextCallSeq got from client: 1",
                () -> calls.renew(scanner, 1));
            calls.close(scanner);
        } catch (UnknownScannerException | AssertionError e) {
            if (msSince(begun) < LEASE_MS) {
                throw e;
            }
            return false;
        }
        Expect.fails(UnknownScannerException.class, "", () -> calls.next(scanner + 1_000_000, 1, 0));
        return true;
    }

    private static void pass(double leases) throws InterruptedException {
        Thread.sleep((long) (leases * LEASE_MS));
    }

    private static long msSince(long nanos) {
        return (System.nanoTime() - nanos) / 1_000_000;
    }

    /**
     * Renews a scanner for three leases, and reads from it. Returns false if its lease ended because this machine paused for more than
     * a lease between the beginning of a call and the end of the next one.
     */
    private static boolean wasRenewed(Calls calls) throws Exception {
        long asked = System.nanoTime();
        ScanResponse opened = calls.open(new Scan().withStartRow(b("r")), 1);
        Expect.equal(LEASE_MS, (long) opened.getTtl(), "the lease the client is told");
        long scanner = opened.getScannerId();
        try {
            for (long sequence = 0; sequence < 6; sequence++) {
                pass(0.5);
                long now = System.nanoTime();
                calls.renew(scanner, sequence);
                asked = now;
            }
            Expect.equal(2, rows(calls.next(scanner, 2, 6)), "rows of the renewed one");
        } catch (UnknownScannerException e) {
            if (msSince(asked) < LEASE_MS) {
                throw e;
            }
            return false;
        }
        calls.close(scanner);
        return true;
    }

    /** Makes the call once in two leases until it returns true; more frequent calls would renew the lease. */
    private static void untilEnded(String what, Callable<Boolean> call) throws Exception {
        Await.until(what, () -> {
            pass(2);
            return call.call();
        });
    }

    private void leases(Steps steps) {
        steps.run("a lease that is renewed and one that is not", () -> {
            Calls calls = new Calls();
            long left = calls.open(new Scan().withStartRow(b("r")), 1).getScannerId();
            Await.until("a lease is renewed without a pause of the machine", () -> wasRenewed(calls));
            untilEnded("a lease that nobody renews has ended", () -> {
                try {
                    calls.renew(left, 0);
                    return false;
                } catch (UnknownScannerException e) {
                    return true;
                } catch (OutOfOrderScannerNextException e) { // an earlier call has renewed the lease
                    return false;
                }
            });
            Expect.fails(UnknownScannerException.class, "Unknown scanner '" + left + "'. This can happen due to any of the "
                + "following reasons: a) Scanner id given is wrong, b) Scanner lease expired", () -> calls.next(left, 2, 0));
            Expect.fails(UnknownScannerException.class, "Unknown scanner '" + left, () -> calls.renew(left, 0));
        });
        steps.run("a client goes on behind the row it has seen", () -> {
            try (Table t = cluster.table("tight"); ResultScanner scanner = t.getScanner(
                new Scan().withStartRow(b("r")).setCaching(3).setScanMetricsEnabled(true))) {
                List<String> seen = new ArrayList<>();
                for (int i = 0; i < 3; i++) {
                    seen.add(s(scanner.next().getRow()));
                }
                untilEnded("there is nothing to renew", () -> !scanner.renewLease());
                for (Result r = scanner.next(); r != null; r = scanner.next()) {
                    seen.add(s(r.getRow()));
                }
                List<String> all = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    all.add(row(i));
                }
                Expect.equalLists(all, seen, "rows");
            }
        });
    }

    // ---- calls that take longer than their clients wait

    /** A slow filter that passes every tenth value: the values consist of a's, so that each position looks like the text's
     * beginning and its end. */
    private static FilterList slow(int filters) {
        List<Filter> list = new ArrayList<>();
        for (int i = 0; i < filters; i++) {
            list.add(new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("a".repeat(16) + i + "a")));
        }
        list.add(new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("9.")));
        return new FilterList(FilterList.Operator.MUST_PASS_ONE, list);
    }

    /** A get of the wide row that takes at least SLOW_MS, with as many filters as this needs on this machine now. */
    private final class SlowGet {
        private final Table warm;
        private int filters = 50;

        SlowGet(Table warm) {
            this.warm = warm;
        }

        Filter filter() {
            return slow(filters);
        }

        /** The duration of a get in ms; adds filters until it is long enough. */
        long measure() throws IOException {
            for (;;) {
                long begin = System.nanoTime();
                Expect.equal(SLOW_CELLS / 10, warm.get(get("wide").setFilter(filter())).size(), "cells, for one who waits");
                long tookMs = msSince(begin);
                if (tookMs >= SLOW_MS) {
                    return tookMs;
                }
                filters *= tookMs * 4 < SLOW_MS ? 4 : 2;
            }
        }
    }

    private void timeouts(Steps steps) throws Exception {
        steps.must("time-outs: create and put", () -> {
            try (Table t = cluster.create("tight_slow", Cluster.family("f"))) {
                String filling = "a".repeat(1_000);
                for (int i = 0; i < SLOW_CELLS;) {
                    List<Put> puts = new ArrayList<>();
                    Put wide = new Put(b("wide"));
                    for (int end = i + 400; i < end; i++) { // stays below the limit of a request
                        byte[] value = b(filling + i + ".");
                        puts.add(new Put(b(String.format("n%04d", i))).addColumn(b("f"), b("q"), value));
                        wide.addColumn(b("f"), b(String.format("q%04d", i)), value);
                    }
                    t.put(puts);
                    t.put(wide);
                }
            }
        });
        Configuration conf = Cluster.configuration(Cluster.zookeeper());
        conf.setInt("hbase.client.retries.number", 0);
        try (Connection own = ConnectionFactory.createConnection(conf);
             // This table's client waits for calls that are slow on purpose, and slower still on a loaded machine.
             Table warm = table(own, PATIENT_MS, PATIENT_MS)) {
            steps.must("time-outs: a connection", () -> Expect.that(warm.exists(get("wide")), "the wide row"));
            SlowGet slow = new SlowGet(warm);
            steps.run("a get that takes longer than the client waits", () -> {
                String causes = "";
                // If the get is answered in time, the machine has become faster since the measurement: filters are added.
                for (long tookMs = 0; causes.isEmpty(); slow.filters *= causes.isEmpty() ? 2 : 1) {
                    Expect.that(tookMs < PATIENT_MS / 2, "no time-out, though a get takes " + tookMs + " ms");
                    tookMs = slow.measure();
                    try (Table t = table(own, SHORT_TIMEOUT_MS, 60_000)) {
                        causes = Failures.causes(() -> t.get(get("wide").setFilter(slow.filter())));
                    }
                }
                Expect.that(causes.contains(CallTimeoutException.class.getName()), "a time-out: " + causes);
                // A late response, or none, does not disturb other calls on the connection.
                for (int i = 0; i < 50; i++) {
                    Expect.that(warm.exists(get("n0007")), "an answer");
                }
            });
            steps.run("a scan that takes longer than the client waits is kept alive", () -> {
                // If the scan takes less, the machine has become faster since the measurement, so it is repeated.
                Await.until("a scan of more than two time-outs", () -> isKeptAlive(slow));
            });
        }
    }

    private Table table(Connection connection, int timeoutMs, int operationTimeoutMs) {
        return connection.getTableBuilder(cluster.name("tight_slow"), null).setRpcTimeout(timeoutMs).setReadRpcTimeout(timeoutMs)
            .setOperationTimeout(operationTimeoutMs).build();
    }

    /**
     * Scans with a time-out of a third of a slow get's duration. Returns false if the scan took less than two time-outs. The server
     * responds after half of a time-out, so the other half is for pauses of a busy machine; a longer pause costs a retry. A scan that
     * is not kept alive would time out in each of its attempts.
     */
    private boolean isKeptAlive(SlowGet slow) throws Exception {
        int timeoutMs = (int) Math.min(slow.measure() / 3, PATIENT_MS);
        Configuration conf = Cluster.configuration(Cluster.zookeeper());
        long begin = System.nanoTime();
        try (Connection own = ConnectionFactory.createConnection(conf); Table t = table(own, timeoutMs, PATIENT_MS);
             ResultScanner scanner = t.getScanner(new Scan().setScanMetricsEnabled(true).withStopRow(b("o")).setFilter(slow.filter()))) {
            int rows = 0;
            for (Result r = scanner.next(); r != null; r = scanner.next()) {
                rows++;
            }
            Expect.equal(SLOW_CELLS / 10, rows, "rows");
            if (msSince(begin) <= 2L * timeoutMs) {
                return false;
            }
            Expect.that(scanner.getScanMetrics().countOfRPCcalls.get() >= 2, "a call, and nothing that kept it alive");
            return true;
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("tight", "tight_slow"));
    }
}
