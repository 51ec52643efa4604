// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.HTableMultiplexer;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** Ways to find the server and to connect to it: registries, codecs, compression, many calls in flight. */
public final class Connections implements Program {
    private static final String RPC_REGISTRY = "org.apache.hadoop.hbase.client.RpcConnectionRegistry";

    private static final String AIRCOMPRESSOR = "org.apache.hadoop.hbase.io.compress.aircompressor.";

    private final Cluster cluster;

    public Connections(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> cluster.create("conn", keys("m"), Cluster.family("f")).close());
        registries(steps);
        codecs(steps);
        manyCallsAtOnce(steps);
        async(steps);
        multiplexer(steps);
        steps.run("cluster metrics", () -> {
            ClusterMetrics metrics = cluster.admin.getClusterMetrics();
            Expect.that(metrics.getClusterId() != null && metrics.getClusterId().length() > 10, "cluster id " + metrics.getClusterId());
            Expect.equal(1, metrics.getLiveServerMetrics().size(), "live servers");
            Expect.equal(0, metrics.getDeadServerNames().size(), "dead servers");
            Expect.that(metrics.getMasterName() != null, "a master");
            Expect.that(metrics.getRegionCount() >= 4, "regions " + metrics.getRegionCount());
            Expect.that(metrics.getHBaseVersion().startsWith("2."), "version " + metrics.getHBaseVersion());
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        registries(steps);
    }

    private void registries(Steps steps) throws Exception {
        ClusterMetrics metrics = cluster.admin.getClusterMetrics(
            EnumSet.of(ClusterMetrics.Option.MASTER, ClusterMetrics.Option.SERVERS_NAME, ClusterMetrics.Option.LIVE_SERVERS));
        String master = address(metrics.getMasterName());
        String server = address(metrics.getServersName().get(0));
        String[][] registries = {
            {"RPC registry, region server as bootstrap node", RPC_REGISTRY, "hbase.client.bootstrap.servers", server},
            {"RPC registry, master as bootstrap node", RPC_REGISTRY, "hbase.client.bootstrap.servers", master},
            {"RPC registry, masters", RPC_REGISTRY, "hbase.masters", master},
            {"master registry", "org.apache.hadoop.hbase.client.MasterRegistry", "hbase.masters", master}};
        for (String[] line : registries) {
            steps.run(line[0], () -> {
                // ZooKeeper's address is unreachable, so the client must find the server without it.
                Configuration conf = Cluster.configuration("127.0.0.1:1");
                conf.set("hbase.client.registry.impl", line[1]);
                conf.set(line[2], line[3]);
                use(conf);
            });
        }
        steps.run("ZooKeeper registry, a second connection", () -> use(Cluster.configuration(Cluster.zookeeper())));
    }

    private static String address(ServerName name) {
        return name.getHostname() + ":" + name.getPort();
    }

    /** Makes a few operations of each kind over a separate connection. */
    private void use(Configuration conf) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(conf);
             Admin admin = connection.getAdmin(); Table t = connection.getTable(cluster.name("conn"))) {
            Expect.equal(cluster.connection.getClusterId(), connection.getClusterId(), "cluster id");
            Expect.that(admin.tableExists(t.getName()), "the table exists");
            t.put(List.of(put("use1", "f:q=1"), put("zuse", "f:q=2")));
            Expect.equal("f:q=1", untimed(t.get(get("use1"))), "get");
            Expect.equal("use1 zuse", rowLine(t, new Scan().setFilter(
                new RowFilter(CompareOperator.EQUAL, new SubstringComparator("use")))), "scan");
            t.delete(new ArrayList<>(List.of(delete("use1"), delete("zuse"))));
            Ticks.next();
            large(t);
        }
    }

    /** Responses and requests that take many compressed blocks: compressible and incompressible ones. */
    private static void large(Table t) throws Exception {
        byte[] random = new byte[300_000];
        new Random(1).nextBytes(random);
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            puts.add(new Put(b("large" + i)).addColumn(b("f"), b("q"), i % 2 == 0 ? random : new byte[200_000 + i]));
        }
        t.put(puts);
        int found = 0;
        for (Result result : Text.results(t, Text.prefix(b("large")))) {
            Expect.that(Arrays.equals(CellUtil.cloneValue(puts.get(found).get(b("f"), b("q")).get(0)), result.value()), "large" + found);
            found++;
        }
        Expect.equal(6, found, "large rows");
        t.delete(new ArrayList<>(List.of(delete("large0"), delete("large1"), delete("large2"), delete("large3"), delete("large4"), delete("large5"))));
        Ticks.next();
    }

    private void codecs(Steps steps) {
        String[][] settings = {
            {"cell blocks with tags", "hbase.client.rpc.codec", "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"},
            {"cell blocks of CellCodec", "hbase.client.rpc.codec", "org.apache.hadoop.hbase.codec.CellCodec"},
            {"cell blocks compressed", "hbase.client.rpc.compressor", "org.apache.hadoop.io.compress.GzipCodec"},
            {"cell blocks compressed by DefaultCodec", "hbase.client.rpc.compressor", "org.apache.hadoop.io.compress.DefaultCodec"},
            {"cell blocks compressed by BZip2Codec", "hbase.client.rpc.compressor", "org.apache.hadoop.io.compress.BZip2Codec"},
            {"cell blocks compressed by Snappy", "hbase.client.rpc.compressor", AIRCOMPRESSOR + "SnappyCodec"},
            {"cell blocks compressed by LZ4", "hbase.client.rpc.compressor", AIRCOMPRESSOR + "Lz4Codec"},
            {"cell blocks compressed by Zstd", "hbase.client.rpc.compressor", AIRCOMPRESSOR + "ZstdCodec"}};
        for (String[] line : settings) {
            steps.run(line[0], () -> {
                Configuration conf = Cluster.configuration(Cluster.zookeeper());
                conf.set(line[1], line[2]);
                use(conf);
            });
        }
        steps.run("no cell blocks at all", () -> {
            Configuration conf = Cluster.configuration(Cluster.zookeeper());
            conf.set("hbase.client.default.rpc.codec", "");
            try (Connection connection = ConnectionFactory.createConnection(conf); Table t = connection.getTable(cluster.name("conn"))) {
                t.put(put("plain", "f:a=1", "f:b=2"));
                Expect.equal("f:a=1 f:b=2", untimed(t.get(get("plain"))), "get");
                Expect.equal("plain/f:a=1 plain/f:b=2", untimed(t, new Scan()), "scan");
                t.delete(delete("plain"));
            }
        });
    }

    private void manyCallsAtOnce(Steps steps) throws Exception {
        steps.run("many threads on one connection", () -> {
            ExecutorService pool = Executors.newFixedThreadPool(16);
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < 16; i++) {
                String row = (i % 2 == 0 ? "a" : "z") + "thread" + i;
                running.add(pool.submit(() -> {
                    try (Table t = cluster.table("conn")) {
                        for (int k = 0; k < 100; k++) {
                            t.put(put(row, "f:q@" + (k + 1) + "=" + k));
                            Expect.equal("f:q=" + k, untimed(t.get(get(row))), "own write");
                        }
                    }
                    return null;
                }));
            }
            pool.shutdown();
            for (Future<?> one : running) {
                one.get();
            }
        });
    }

    @SuppressWarnings("deprecation")
    private void multiplexer(Steps steps) {
        steps.run("HTableMultiplexer", () -> {
            HTableMultiplexer multiplexer = new HTableMultiplexer(cluster.configuration, 1000);
            try (Table t = cluster.table("conn")) {
                for (int i = 0; i < 300; i++) {
                    Expect.that(multiplexer.put(t.getName(), put((i % 2 == 0 ? "a" : "z") + "multi" + i, "f:q=" + i), 3), "queued");
                }
                Await.until("all are written", () -> rowLine(t, new Scan().setFilter(
                    new RowFilter(CompareOperator.EQUAL, new SubstringComparator("multi")))).split(" ").length == 300);
                Expect.equal("f:q=299", untimed(t.get(get("zmulti299"))), "the last");
            } finally {
                multiplexer.close();
            }
        });
    }

    private void async(Steps steps) {
        steps.run("the asynchronous client", () -> {
            try (AsyncConnection connection = ConnectionFactory.createAsyncConnection(Cluster.configuration(Cluster.zookeeper()))
                .get(60, TimeUnit.SECONDS)) {
                AsyncTable<?> t = connection.getTable(cluster.name("conn"));
                List<CompletableFuture<Void>> puts = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    puts.add(t.put(put(String.format("async%03d", i), "f:q=" + i)));
                }
                CompletableFuture.allOf(puts.toArray(new CompletableFuture<?>[0])).get(60, TimeUnit.SECONDS);
                List<Result> results = t.scanAll(Text.prefix(b("async")).setCaching(70)).get(60,
                    TimeUnit.SECONDS);
                Expect.equal(500, results.size(), "rows");
                Expect.equal("f:q=499", untimed(results.get(499)), "the last");
                Expect.equal("f:q=7", untimed(t.get(get("async007")).get(60, TimeUnit.SECONDS)), "get");
                Expect.equal(true, connection.getAdmin().tableExists(t.getName()).get(60, TimeUnit.SECONDS), "exists");
            }
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("conn"));
    }
}
