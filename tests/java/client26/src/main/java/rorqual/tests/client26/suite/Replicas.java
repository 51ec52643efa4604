// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.s;

import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.RegionReplicaUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.shaded.protobuf.RequestConverter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** REGION_REPLICATION: the locations of replicas, reads from them, and changes of their number. */
public final class Replicas implements Program {
    private final Cluster cluster;
    private final Admin admin;

    public Replicas(Cluster cluster) {
        this.cluster = cluster;
        this.admin = cluster.admin;
    }

    /** The number of locations of each replica id: "0:2 1:2". */
    private String locations() throws Exception {
        TreeMap<Integer, Integer> counts = new TreeMap<>();
        try (RegionLocator locator = cluster.connection.getRegionLocator(cluster.name("replicas"))) {
            locator.clearRegionLocationCache();
            for (HRegionLocation location : locator.getAllRegionLocations()) {
                Expect.that(location.getServerName() != null, "a server has " + location);
                counts.merge(location.getRegion().getReplicaId(), 1, Integer::sum);
            }
        }
        StringBuilder text = new StringBuilder();
        counts.forEach((id, count) -> text.append(text.isEmpty() ? "" : " ").append(id).append(':').append(count));
        return text.toString();
    }

    private void alter(int replicas) throws Exception {
        admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(cluster.name("replicas")))
            .setRegionReplication(replicas).build());
    }

    private void answers() throws Exception {
        try (Table table = cluster.table("replicas")) {
            Get of = get("x").setConsistency(Consistency.TIMELINE).setReplicaId(1);
            Result result = table.get(of);
            Expect.equal("1", s(result.getValue(b("f"), b("q"))), "a replica's answer");
            Expect.that(result.isStale(), "it says that it may be old");
            Expect.that(!table.get(get("x").setConsistency(Consistency.TIMELINE)).isEmpty(), "whoever answers first");
            Expect.that(!table.get(get("x")).isStale(), "the region's own answer is not old");
            Result several = table.get(List.of(of, get("a").setConsistency(Consistency.TIMELINE)))[0];
            Expect.equal("1", s(several.getValue(b("f"), b("q"))), "of several");
            try (ResultScanner scanner = table.getScanner(new Scan().setConsistency(Consistency.TIMELINE).setReplicaId(2))) {
                int rows = 0;
                for (Result row : scanner) {
                    Expect.that(row.isStale(), "a scanned row of a replica");
                    rows++;
                }
                Expect.equal(2, rows, "rows of replica 2");
            }
        }
    }

    @Override
    public void write(Steps steps) throws Exception {
        TableName name = cluster.name("replicas");
        steps.run("each replica has a location", () -> {
            cluster.drop("replicas");
            admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(Cluster.family("f")).setRegionReplication(3).build(),
                keys("m"));
            Expect.equal("0:2 1:2 2:2", locations(), "locations");
            Expect.equal(6, admin.getRegions(name).size(), "regions of the table");
            long here = admin.getRegions(admin.getRegionServers().iterator().next()).stream()
                .filter(region -> region.getTable().equals(name)).count();
            Expect.equal(6L, here, "regions on the only server");
        });
        steps.run("each replica has a load", () -> {
            ServerName server = admin.getRegionServers().iterator().next();
            TreeSet<String> regions = new TreeSet<>();
            admin.getRegions(name).forEach(region -> regions.add(region.getRegionNameAsString()));
            TreeSet<String> loads = new TreeSet<>();
            admin.getRegionMetrics(server).forEach(load -> loads.add(load.getNameAsString()));
            Expect.that(loads.containsAll(regions), "asked of the server: " + loads);
            Expect.equal(6, admin.getRegionMetrics(server, name).size(), "loads of the table");
            if (!"hbase".equals(System.getenv("PEER"))) {
                // HBase's master learns the replicas from the server's next report.
                TreeSet<String> reported = new TreeSet<>();
                admin.getClusterMetrics().getLiveServerMetrics().get(server).getRegionMetrics().values()
                    .forEach(load -> reported.add(load.getNameAsString()));
                Expect.that(reported.containsAll(regions), "asked of the master: " + reported);
            }
        });
        steps.run("replicas answer what is in files", () -> {
            try (Table table = cluster.table("replicas")) {
                table.put(put("a", "f:q=0"));
                table.put(put("x", "f:q=1"));
            }
            // HBase's replicas, without replication between them, read the list of files only when they are opened, so
            // the table is reopened.
            admin.disableTable(name);
            admin.enableTable(name);
            answers();
        });
        steps.run("nothing is written through a replica", () -> {
            RegionInfo region = admin.getRegions(name).stream().filter(RegionReplicaUtil::isDefaultReplica).findFirst().orElseThrow();
            byte[] replica = RegionReplicaUtil.getRegionInfoForReplica(region, 1).getRegionName();
            ServerName server = admin.getRegionServers().iterator().next();
            ClientProtos.MutateRequest request = RequestConverter.buildMutateRequest(replica, put("b", "f:q=2"));
            Expect.fails(ServiceException.class, "region is read only",
                () -> ((ClusterConnection) cluster.connection).getClient(server).mutate(null, request));
        });
        steps.run("more and fewer replicas", () -> {
            alter(2);
            Expect.equal("0:2 1:2", locations(), "locations of two");
            alter(1);
            Expect.equal("0:2", locations(), "locations of one");
            alter(3);
            Expect.equal("0:2 1:2 2:2", locations(), "locations of three");
        });
        steps.run("daughters have replicas", () -> {
            synchronized (Cluster.SPLITS) {
                admin.splitRegionAsync(admin.getRegions(name).get(0).getRegionName(), b("c")).get(60, TimeUnit.SECONDS);
            }
            Expect.equal("0:3 1:3 2:3", locations(), "locations after a split");
        });
        if (!"hbase".equals(System.getenv("PEER"))) {
            // an intended difference: docs/compatibility.md
            steps.run("too many replicas are refused", () -> Expect.fails(DoNotRetryIOException.class,
                "REGION_REPLICATION 65 is not supported, only up to 64", () -> alter(65)));
        }
    }

    @Override
    public void check(Steps steps) {
        steps.run("replicas as they were left", () -> {
            Expect.equal("0:3 1:3 2:3", locations(), "locations");
            answers();
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("replicas"));
    }
}
