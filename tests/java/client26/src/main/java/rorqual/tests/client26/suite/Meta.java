// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.results;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.s;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Reads {@code hbase:meta} as an ordinary table, as every client does. */
public final class Meta implements Program {
    private static final byte[] INFO = HConstants.CATALOG_FAMILY;
    /** Start keys whose byte order within a row key is not their order as keys: a comma is the separator. */
    private static final byte[][] SPLITS = {{0}, {1}, b("!"), b(","), b(",,"), b(",a,"), b("-"), b("a"), b("a,"), b("a,b"), {(byte) 0xff}};

    private final Cluster cluster;

    public Meta(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> {
            try (Table t = cluster.create("meta_keys", SPLITS, Cluster.family("f"))) {
                t.put(put("x", "f:q=1"));
            }
            // Names of which one is a prefix of the other.
            cluster.create("meta_keys_more", Cluster.family("f")).close();
            cluster.create("meta_keys-more", Cluster.family("f")).close();
        });
        check(steps);
    }

    @Override
    public void check(Steps steps) throws Exception {
        TableName name = cluster.name("meta_keys");
        try (Table meta = cluster.connection.getTable(TableName.META_TABLE_NAME);
             RegionLocator locator = cluster.connection.getRegionLocator(name)) {
            List<byte[]> starts = new ArrayList<>();
            starts.add(new byte[0]);
            starts.addAll(Arrays.asList(SPLITS));
            steps.run("regions in order of their start keys, not of their rows' bytes", () -> {
                List<String> wanted = new ArrayList<>();
                starts.forEach(start -> wanted.add(s(start)));
                Expect.equalLists(wanted, startKeys(meta, ofTable(name)), "start keys");
                Collections.reverse(wanted);
                Scan backwards = new Scan().setReversed(true).addFamily(INFO)
                    .withStartRow(b(name.getNameAsString() + " ,,")).withStopRow(b(name.getNameAsString() + ",,"));
                Expect.equalLists(wanted, startKeys(meta, backwards), "start keys backwards");
            });
            steps.run("a start row of one comma lies behind the first region", () -> {
                Scan scan = new Scan().addFamily(INFO).withStartRow(b(name.getNameAsString() + ",")).withStopRow(b(name.getNameAsString() + " ,,"));
                Expect.equal("\\x00", startKeys(meta, scan).get(0), "first start key");
            });
            steps.run("a look-up as gohbase does it", () -> {
                Scan scan = new Scan().addFamily(INFO).setReversed(true).setLimit(1)
                    .withStartRow(b(name.getNameAsString() + ",a,a,:")).withStopRow(name.getName());
                Expect.equal("[a,]", startKeys(meta, scan).toString(), "start key");
            });
            steps.run("get of a region's row", () -> {
                for (Result found : results(meta, ofTable(name))) {
                    Result row = meta.get(new Get(found.getRow()));
                    RegionInfo region = RegionInfo.parseFromOrNull(row.getValue(INFO, HConstants.REGIONINFO_QUALIFIER));
                    Expect.equal(s(found.getRow()), region.getRegionNameAsString(), "row and region name");
                    Expect.equal(region.getEncodedName(), RegionInfo.encodeRegionName(region.getRegionName()), "encoded name");
                }
            });
            steps.run("columns of a region", () -> {
                Result row = results(meta, ofTable(name)).get(0);
                TreeSet<String> columns = new TreeSet<>();
                for (Cell cell : row.rawCells()) {
                    columns.add(s(CellUtil.cloneQualifier(cell)));
                }
                Expect.equal("[regioninfo, seqnumDuringOpen, server, serverstartcode, sn, state]", columns.toString(), "columns");
                Expect.equal("OPEN", s(row.getValue(INFO, b("state"))), "state");
                ServerName server = ServerName.valueOf(Bytes.toString(row.getValue(INFO, b("sn"))));
                Expect.equal(server.getAddress().toString(), Bytes.toString(row.getValue(INFO, HConstants.SERVER_QUALIFIER)), "server");
                Expect.equal(server.getStartcode(), Bytes.toLong(row.getValue(INFO, HConstants.STARTCODE_QUALIFIER)), "serverstartcode");
                Expect.that(Bytes.toLong(row.getValue(INFO, HConstants.SEQNUM_QUALIFIER)) > 0, "seqnumDuringOpen");
            });
            steps.run("a look-up by a reversed scan, as clients do it", () -> {
                for (byte[] key : new byte[][] {{0, 5}, b(","), b(",,x"), b("a,a"), b("b"), {(byte) 0xff, 1}}) {
                    byte[] row = RegionInfo.createRegionName(name, key, HConstants.NINES, false);
                    try (ResultScanner scanner = meta.getScanner(new Scan().withStartRow(row).setReversed(true).addFamily(INFO).setLimit(1))) {
                        RegionInfo region = RegionInfo.parseFromOrNull(scanner.next().getValue(INFO, HConstants.REGIONINFO_QUALIFIER));
                        Expect.equal(name, region.getTable(), "table");
                        Expect.that(region.containsRow(key), s(key) + " is not within " + region);
                    }
                    HRegionLocation location = locator.getRegionLocation(key, true);
                    Expect.that(location.getRegion().containsRow(key), s(key) + " is not within " + location);
                }
            });
            steps.run("the state of a table", () -> {
                Result row = meta.get(new Get(name.getName()).addFamily(HConstants.TABLE_FAMILY));
                Expect.equal("\\x08\\x00", s(row.getValue(HConstants.TABLE_FAMILY, HConstants.TABLE_STATE_QUALIFIER)), "enabled");
                TableName more = cluster.name("meta_keys_more");
                cluster.admin.disableTable(more);
                row = meta.get(new Get(more.getName()).addFamily(HConstants.TABLE_FAMILY));
                Expect.equal("\\x08\\x01", s(row.getValue(HConstants.TABLE_FAMILY, HConstants.TABLE_STATE_QUALIFIER)), "disabled");
                Result region = results(meta, ofTable(more)).get(0);
                Expect.equal("CLOSED", s(region.getValue(INFO, b("state"))), "its region");
                cluster.admin.enableTable(more);
            });
            steps.run("names that begin alike keep apart", () -> {
                Expect.equal(1, startKeys(meta, ofTable(cluster.name("meta_keys_more"))).size(), "regions of _more");
                Expect.equal(1, startKeys(meta, ofTable(cluster.name("meta_keys-more"))).size(), "regions of -more");
            });
            steps.run("every row once and in order, small and large pages", () -> {
                // Other tests create and drop tables meanwhile: only this table's rows are compared.
                for (int caching : new int[] {1, 3, 1_000}) {
                    List<String> keys = startKeys(meta, ofTable(name).setCaching(caching));
                    Expect.equal(SPLITS.length + 1, keys.size(), "rows with caching " + caching);
                }
            });
            steps.run("meta describes itself", () -> {
                TableDescriptor descriptor = cluster.admin.getDescriptor(TableName.META_TABLE_NAME);
                Expect.that(descriptor.hasColumnFamily(INFO) && descriptor.hasColumnFamily(HConstants.TABLE_FAMILY), descriptor.toString());
                Expect.that(cluster.admin.tableExists(TableName.META_TABLE_NAME), "exists");
                Expect.that(cluster.admin.isTableEnabled(TableName.META_TABLE_NAME), "enabled");
                Expect.equal(1, cluster.admin.getRegions(TableName.META_TABLE_NAME).size(), "regions");
                Expect.equal("1588230740", cluster.admin.getRegions(TableName.META_TABLE_NAME).get(0).getEncodedName(), "encoded name");
            });
            steps.run("rows of tables between commas are served", () -> {
                try (Table t = cluster.table("meta_keys")) {
                    Expect.that(t.exists(get("x")), "x");
                    Expect.equal("x", rowLine(t, new Scan()), "scan over twelve regions");
                }
            });
        }
    }

    private static Scan ofTable(TableName name) {
        // The borders that HBase's own client uses.
        return new Scan().addFamily(INFO).withStartRow(b(name.getNameAsString() + ",,")).withStopRow(b(name.getNameAsString() + " ,,"));
    }

    private static List<String> startKeys(Table meta, Scan scan) throws Exception {
        List<String> keys = new ArrayList<>();
        for (Result result : results(meta, scan)) {
            keys.add(s(RegionInfo.parseFromOrNull(result.getValue(INFO, HConstants.REGIONINFO_QUALIFIER)).getStartKey()));
        }
        return keys;
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("meta_"));
    }
}
