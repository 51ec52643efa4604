// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.asynchbase;

import com.stumbleupon.async.Deferred;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.hbase.async.AppendRequest;
import org.hbase.async.AtomicIncrementRequest;
import org.hbase.async.Bytes;
import org.hbase.async.ColumnPrefixFilter;
import org.hbase.async.Config;
import org.hbase.async.DeleteRequest;
import org.hbase.async.FilterList;
import org.hbase.async.GetRequest;
import org.hbase.async.GetResultOrException;
import org.hbase.async.HBaseClient;
import org.hbase.async.KeyRegexpFilter;
import org.hbase.async.KeyValue;
import org.hbase.async.NoSuchColumnFamilyException;
import org.hbase.async.PutRequest;
import org.hbase.async.Scanner;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Runner;
import rorqual.tests.support.Steps;

/**
 * asynchbase on an existing table {@code async_RUN} with the families f and g, split at row0300 and row0700 (asynchbase cannot
 * create tables). Runs twice: first with asynchbase's default way to find regions (an old request, which the server refuses,
 * then scans), and then with scans only.
 */
public final class Main implements Program {
    private static final int ROWS = 1000;

    private final String zookeeper;
    private final boolean metaScan;
    private final byte[] table;

    private Main(String zookeeper, String run, boolean metaScan) {
        this.zookeeper = zookeeper;
        this.metaScan = metaScan;
        this.table = b("async_" + run);
    }

    public static void main(String[] args) throws Exception {
        String zookeeper = System.getenv("ZK");
        String run = System.getenv("RUN");
        System.exit(Runner.run(List.of(new Main(zookeeper, run, false), new Main(zookeeper, run, true)), args));
    }

    @Override
    public String name() {
        return metaScan ? "asynchbase, meta by scan" : "asynchbase";
    }

    private static byte[] b(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private byte[] row(String name) {
        return b((metaScan ? "s" : "r") + name);
    }

    private byte[] row(int i) {
        return row(String.format("ow%04d", i));
    }

    private static String text(List<KeyValue> cells) {
        List<String> all = new ArrayList<>();
        for (KeyValue cell : cells) {
            all.add(s(cell.family()) + ":" + s(cell.qualifier()) + "=" + s(cell.value()));
        }
        return String.join(" ", all);
    }

    private static String s(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static <T> T get(Deferred<T> deferred) throws Exception {
        return deferred.join(60_000);
    }

    private PutRequest put(byte[] row, String family, String qualifier, String value) {
        return new PutRequest(table, row, b(family), b(qualifier), b(value));
    }

    @Override
    public void write(Steps steps) throws Exception {
        Config config = new Config();
        config.overrideConfig("hbase.zookeeper.quorum", zookeeper);
        config.overrideConfig("hbase.meta.scan", String.valueOf(metaScan));
        HBaseClient client = new HBaseClient(config);
        try {
            steps.must("families", () -> {
                get(client.ensureTableFamilyExists(table, b("f")));
                try {
                    get(client.ensureTableFamilyExists(table, b("none")));
                    throw new AssertionError("a family nobody has was found");
                } catch (NoSuchColumnFamilyException e) {
                    // the expected exception
                }
            });
            steps.must("put", () -> {
                List<Deferred<Object>> all = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    all.add(client.put(put(row(i), "f", "q", String.valueOf(i))));
                }
                get(Deferred.group(all));
                PutRequest two = new PutRequest(table, row(0), b("g"), new byte[][] {b("a"), b("b")}, new byte[][] {b("1"), b("2")});
                get(client.put(two));
            });
            reads(steps, client);
            changes(steps, client);
        } finally {
            get(client.shutdown());
        }
    }

    private void reads(Steps steps, HBaseClient client) {
        steps.run("get", () -> {
            Expect.equal("f:q=0 g:a=1 g:b=2", text(get(client.get(new GetRequest(table, row(0))))), "a row");
            Expect.equal("g:b=2", text(get(client.get(new GetRequest(table, row(0), b("g"), b("b"))))), "a column");
            Expect.equal(0, get(client.get(new GetRequest(table, row("nothing")))).size(), "no row");
            List<GetRequest> many = new ArrayList<>();
            for (int i = 0; i < ROWS; i += 10) {
                many.add(new GetRequest(table, row(i), b("f")));
            }
            List<GetResultOrException> answers = get(client.get(many));
            for (int i = 0; i < answers.size(); i++) {
                Expect.equal("f:q=" + 10 * i, text(answers.get(i).getCells()), "one of many");
            }
        });
        steps.run("scan", () -> {
            Expect.equal(ROWS, scan(client, scanner -> scanner.setFamily("f")).size(), "rows");
            Expect.equal(ROWS, scan(client, scanner -> scanner.setMaxNumRows(7)).size(), "rows by seven");
            Expect.equal(List.of("f:q=299", "f:q=300", "f:q=301"), scan(client, scanner -> {
                scanner.setStartKey(row(299));
                scanner.setStopKey(row(302));
            }), "a range over two regions");
            Expect.equal(100, scan(client, scanner -> scanner.setKeyRegexp(".ow09\\d\\d")).size(), "rows by regular expression");
            Expect.equal(List.of("g:a=1"), scan(client, scanner -> scanner.setFilter(new FilterList(Arrays.asList(
                new KeyRegexpFilter(".ow0000"), new ColumnPrefixFilter("a"))))), "filters");
            Expect.equal(List.of("f:q=302", "f:q=301", "f:q=300", "f:q=299"), scan(client, scanner -> {
                scanner.setReversed(true);
                scanner.setStartKey(row(302));
                scanner.setStopKey(row(298));
            }), "backwards over two regions");
        });
        steps.run("a wide row in parts", () -> {
            List<Deferred<Object>> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(client.put(put(row("wide"), "g", String.format("%03d", i), "v")));
            }
            get(Deferred.group(all));
            List<String> parts = scan(client, scanner -> {
                scanner.setStartKey(row("wide"));
                scanner.setStopKey(row("wide0"));
                scanner.setMaxNumKeyValues(30);
            });
            Expect.equal(4, parts.size(), "parts");
            Expect.equal(10, parts.get(3).split(" ").length, "cells of the last");
        });
    }

    private interface Setup {
        void run(Scanner scanner);
    }

    private List<String> scan(HBaseClient client, Setup setup) throws Exception {
        Scanner scanner = client.newScanner(table);
        scanner.setStartKey(row("ow"));
        scanner.setStopKey(row("ox"));
        setup.run(scanner);
        List<String> rows = new ArrayList<>();
        for (ArrayList<ArrayList<KeyValue>> some; (some = get(scanner.nextRows())) != null;) {
            some.forEach(cells -> rows.add(text(cells)));
        }
        get(scanner.close());
        return rows;
    }

    private void changes(Steps steps, HBaseClient client) {
        steps.run("atomic increment", () -> {
            List<Deferred<Long>> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(client.atomicIncrement(new AtomicIncrementRequest(table, row("counter"), b("f"), b("n"), 2)));
            }
            get(Deferred.group(all));
            Expect.equal(200L, Bytes.getLong(get(client.get(new GetRequest(table, row("counter")))).get(0).value()), "counter");
        });
        steps.run("buffered increment", () -> {
            List<Deferred<Long>> all = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                all.add(client.bufferAtomicIncrement(new AtomicIncrementRequest(table, row("counter"), b("f"), b("n"), 1)));
            }
            // Not get(client.flush()): after buffered increments flush() asks each RPC in flight for its Deferred
            // (RegionClient.sync). An RPC that is answered at that moment makes a new Deferred, which is never called
            // (HBaseRpc.getDeferred).
            client.flush();
            get(Deferred.group(all));
            Expect.equal(250L, Bytes.getLong(get(client.get(new GetRequest(table, row("counter")))).get(0).value()), "buffered");
        });
        steps.run("compare and set", () -> {
            Expect.equal(true, get(client.compareAndSet(put(row("cas"), "f", "q", "1"), new byte[0])), "absent");
            Expect.equal(false, get(client.compareAndSet(put(row("cas"), "f", "q", "2"), new byte[0])), "no longer absent");
            Expect.equal(true, get(client.compareAndSet(put(row("cas"), "f", "q", "3"), b("1"))), "the value");
            Expect.equal(false, get(client.atomicCreate(put(row("cas"), "f", "q", "4"))), "create");
            Expect.equal("f:q=3", text(get(client.get(new GetRequest(table, row("cas"))))), "row");
        });
        steps.run("append", () -> {
            get(client.append(new AppendRequest(table, row("app"), b("f"), b("q"), b("ab"))));
            get(client.append(new AppendRequest(table, row("app"), b("f"), b("q"), b("cd"))));
            Expect.equal("f:q=abcd", text(get(client.get(new GetRequest(table, row("app"))))), "row");
        });
        steps.run("delete", () -> {
            get(client.delete(new DeleteRequest(table, row(0), b("g"), b("a"))));
            Expect.equal("f:q=0 g:b=2", text(get(client.get(new GetRequest(table, row(0))))), "a column");
            get(client.delete(new DeleteRequest(table, row(0), b("g"))));
            Expect.equal("f:q=0", text(get(client.get(new GetRequest(table, row(0))))), "a family");
            get(client.delete(new DeleteRequest(table, row(0))));
            Expect.equal("", text(get(client.get(new GetRequest(table, row(0))))), "a row");
        });
        steps.run("an unknown family", () -> {
            try {
                get(client.put(put(row("wrong"), "none", "q", "v")));
                throw new AssertionError("it went through");
            } catch (NoSuchColumnFamilyException e) {
                // the expected exception
            }
        });
    }
}
