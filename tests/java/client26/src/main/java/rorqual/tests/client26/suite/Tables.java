// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.InvalidFamilyOperationException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotDisabledException;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Operations on tables, and each error they can end in. */
public final class Tables implements Program {
    private final Cluster cluster;
    private final Admin admin;
    private final TableName absent;

    public Tables(Cluster cluster) {
        this.cluster = cluster;
        this.admin = cluster.admin;
        this.absent = cluster.name("tab_absent");
    }

    @Override
    public void write(Steps steps) throws Exception {
        create(steps);
        listing(steps);
        states(steps);
        alter(steps);
        truncate(steps);
        drops(steps);
        // Three tables stay for later checks: one enabled and split, one disabled, one altered.
        steps.must("tables that stay", () -> {
            try (Table table = cluster.create("tab_stays", keys("g", "p"), Cluster.family("cf"), Cluster.family("more"))) {
                table.put(List.of(put("a", "cf:q=1"), put("h", "cf:q=2"), put("z", "more:q=3")));
            }
            try (Table table = cluster.create("tab_disabled", Cluster.family("cf"))) {
                table.put(put("a", "cf:q=1"));
            }
            admin.disableTable(cluster.name("tab_disabled"));
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        steps.run("split table kept", () -> {
            Expect.equal(3, cluster.regions("tab_stays").size(), "regions");
            try (Table table = cluster.table("tab_stays")) {
                Expect.equal("a/cf:q=1 h/cf:q=2 z/more:q=3", untimed(table, new Scan()), "cells");
            }
        });
        steps.run("disabled table kept", () -> {
            Expect.that(admin.isTableDisabled(cluster.name("tab_disabled")), "still disabled");
            Expect.that(admin.tableExists(cluster.name("tab_disabled")), "exists");
        });
        steps.run("altered table kept", () -> {
            TableDescriptor descriptor = admin.getDescriptor(cluster.name("tab_alter"));
            List<String> families = new ArrayList<>();
            for (byte[] family : descriptor.getColumnFamilyNames()) {
                families.add(s(family));
            }
            Expect.equal("[cf, three]", families.toString(), "families");
            Expect.equal(7, descriptor.getColumnFamily(b("cf")).getMaxVersions(), "VERSIONS");
            Expect.equal("value", descriptor.getValue("note"), "table value");
            try (Table table = cluster.table("tab_alter")) {
                Expect.equal("a/cf:q=1 a/three:q=3", untimed(table, new Scan()), "cells");
            }
        });
        steps.run("dropped table still gone", () -> Expect.that(!admin.tableExists(cluster.name("tab_drop")), "exists"));
    }

    private void create(Steps steps) {
        steps.must("create", () -> cluster.create("tab_one", Cluster.family("cf")).close());
        steps.run("create what exists", () ->
            Expect.fails(TableExistsException.class, cluster.name("tab_one").getNameAsString(),
                () -> cluster.create("tab_one", Cluster.family("cf"))));
        steps.run("create without a family", () ->
            Expect.fails(DoNotRetryIOException.class, "Table should have at least one column family",
                () -> cluster.create("tab_nofamily")));
        steps.run("create in an unknown namespace", () ->
            Expect.fails(NamespaceNotFoundException.class, "nowhere_" + cluster.run, () -> admin.createTable(
                TableDescriptorBuilder.newBuilder(TableName.valueOf("nowhere_" + cluster.run, "t"))
                    .setColumnFamily(Cluster.family("cf")).build())));
        steps.run("illegal table names are refused by the client", () -> {
            for (String name : new String[] {"a b", "a/b", "-a", ".a", "a:b:c", ""}) {
                Expect.fails(IllegalArgumentException.class, "", () -> TableName.valueOf(name));
            }
        });
        steps.run("illegal family names are refused by the client", () -> {
            for (String name : new String[] {"a:b", "", ".a", "recovered.edits"}) {
                Expect.fails(IllegalArgumentException.class, "", () -> ColumnFamilyDescriptorBuilder.of(name));
            }
        });
        String[][] nonsense = {
            {"TTL", "0", "TTL for column family cf must be positive."},
            {"BLOCKSIZE", "100", "Block size for column family cf  must be between 1K and 16MB."},
            {"BLOCKSIZE", "99999999", "Block size for column family cf  must be between 1K and 16MB."},
            {"MIN_VERSIONS", "-1", "Min versions for column family cf  must be positive."},
            {"MIN_VERSIONS", "5", "Min versions for column family cf must be less than the Max versions."},
            {"REPLICATION_SCOPE", "-1", "Replication scope for column family cf is -1 which is invalid."},
            {"DFS_REPLICATION", "-1", "HFile Replication for column family cf  must be greater than zero."},
            {"BLOOMFILTER", "XX", "Failed to get bloom filter param"},
            {"COMPRESSION", "XX", "No enum constant"}};
        for (String[] line : nonsense) {
            steps.run("create with " + line[0] + " " + line[1] + " is refused", () -> {
                cluster.drop("tab_nonsense");
                Expect.fails(DoNotRetryIOException.class, line[2], () -> cluster.create("tab_nonsense",
                    ColumnFamilyDescriptorBuilder.newBuilder(b("cf")).setValue(line[0], line[1]).build()));
            });
        }
        steps.run("create with too small a memstore is refused", () -> Expect.fails(DoNotRetryIOException.class,
            "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" (1000) is too small, which might cause very "
            + "frequent flushing.", () -> admin.createTable(nonsense().setMemStoreFlushSize(1_000).build())));
        steps.run("create with too small regions is refused", () -> Expect.fails(DoNotRetryIOException.class,
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" (1000) is too small",
            () -> admin.createTable(nonsense().setMaxFileSize(1_000).build())));
        steps.run("split keys make regions", () -> {
            try (Table table = cluster.create("tab_split", keys("b", "d", "x"), Cluster.family("cf"))) {
                List<String> ranges = new ArrayList<>();
                for (RegionInfo region : cluster.regions("tab_split")) {
                    ranges.add(s(region.getStartKey()) + "-" + s(region.getEndKey()));
                }
                Expect.equal("[-b, b-d, d-x, x-]", ranges.toString(), "regions");
                table.put(List.of(put("a", "cf:q=1"), put("b", "cf:q=2"), put("c", "cf:q=3"), put("d", "cf:q=4"), put("z", "cf:q=5")));
                Expect.equal("a b c d z", rowLine(table, new Scan()), "rows over all regions");
                Expect.equal("b c", rowLine(table, new Scan().withStartRow(b("b")).withStopRow(b("d"))), "rows of one region");
                Expect.equal("z d c b a", rowLine(table, new Scan().setReversed(true)), "reversed rows");
                try (RegionLocator locator = cluster.connection.getRegionLocator(table.getName())) {
                    HRegionLocation location = locator.getRegionLocation(b("c"), true);
                    Expect.equal("b", s(location.getRegion().getStartKey()), "the region of c begins at");
                    Expect.equal(4, locator.getAllRegionLocations().size(), "locations");
                }
            }
        });
        steps.run("regions by number", () -> {
            admin.createTable(TableDescriptorBuilder.newBuilder(cluster.name("tab_number")).setColumnFamily(Cluster.family("cf")).build(),
                b("1000"), b("9000"), 5);
            Expect.equal(5, cluster.regions("tab_number").size(), "regions");
        });
        steps.run("split keys given twice are refused", () ->
            Expect.fails(IllegalArgumentException.class, "All split keys must be unique",
                () -> cluster.create("tab_twice", keys("a", "a"), Cluster.family("cf"))));
    }

    private TableDescriptorBuilder nonsense() {
        return TableDescriptorBuilder.newBuilder(cluster.name("tab_nonsense")).setColumnFamily(Cluster.family("cf"));
    }

    private void listing(Steps steps) {
        TableName one = cluster.name("tab_one");
        steps.run("exists", () -> {
            Expect.that(admin.tableExists(one), "it exists");
            Expect.that(!admin.tableExists(absent), "it does not");
        });
        steps.run("list", () -> {
            Pattern pattern = Pattern.compile("tab_(one|split)_" + cluster.run);
            List<String> names = new ArrayList<>();
            for (TableName name : admin.listTableNames(pattern)) {
                names.add(name.getNameAsString());
            }
            Expect.equal(List.of(one.getNameAsString(), cluster.name("tab_split").getNameAsString()), names, "names by pattern");
            Expect.equal(2, admin.listTableDescriptors(pattern).size(), "descriptors by pattern");
            Expect.that(List.of(admin.listTableNames()).contains(one), "all names");
            Expect.that(!List.of(admin.listTableNames()).contains(TableName.META_TABLE_NAME), "no system tables among them");
            Expect.that(List.of(admin.listTableNames(Pattern.compile(".*"), true)).contains(TableName.META_TABLE_NAME),
                "with system tables");
            Expect.equal(0, admin.listTableNames(Pattern.compile("nothing_is_called_so")).length, "no such names");
        });
        steps.run("describe", () -> {
            TableDescriptor descriptor = admin.getDescriptor(one);
            Expect.equal(one, descriptor.getTableName(), "name");
            Expect.equal(ColumnFamilyDescriptorBuilder.newBuilder(b("cf")).build(), descriptor.getColumnFamily(b("cf")),
                "the family's defaults");
            Expect.equal("DEFAULT", descriptor.getValue("hbase.store.file-tracker.impl"), "store file tracker");
            Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.getDescriptor(absent));
        });
        steps.run("descriptors of several", () ->
            Expect.equal(1, admin.listTableDescriptors(List.of(one, absent)).size(), "descriptors"));
    }

    private void states(Steps steps) throws Exception {
        TableName one = cluster.name("tab_one");
        try (Table table = cluster.table("tab_one"); Table nothing = cluster.table("tab_absent")) {
            steps.run("an unknown family", () -> {
                Expect.fails(NoSuchColumnFamilyException.class, "none", () -> table.get(get("r").addFamily(b("none"))));
                Expect.fails(NoSuchColumnFamilyException.class, "none", () -> rowLine(table, new Scan().addFamily(b("none"))));
                Expect.that(Failures.causes(() -> table.put(put("r", "none:q=1"))).contains("NoSuchColumnFamilyException"), "put");
            });
            steps.run("an unknown table", () -> {
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> nothing.get(get("r")));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> rowLine(nothing, new Scan()));
                Expect.that(Failures.causes(() -> nothing.put(put("r", "cf:q=1"))).contains("TableNotFoundException"), "put");
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.disableTable(absent));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.enableTable(absent));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.deleteTable(absent));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.truncateTable(absent, false));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.flush(absent));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.isTableEnabled(absent));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () ->
                    admin.addColumnFamily(absent, Cluster.family("cf")));
            });
            steps.run("disable", () -> {
                table.put(put("kept", "cf:q=1"));
                Expect.that(admin.isTableEnabled(one) && !admin.isTableDisabled(one), "enabled at first");
                admin.disableTable(one);
                Expect.that(admin.isTableDisabled(one) && !admin.isTableEnabled(one), "disabled");
                Expect.that(!admin.isTableAvailable(one), "not available");
            });
            steps.run("a disabled table serves nothing", () -> {
                Expect.that(Failures.causes(() -> table.get(get("kept"))).contains("TableNotEnabledException"), "get");
                Expect.that(Failures.causes(() -> table.put(put("r", "cf:q=1"))).contains("TableNotEnabledException"), "put");
                Expect.that(Failures.causes(() -> rowLine(table, new Scan())).contains("TableNotEnabledException"), "scan");
                Expect.fails(TableNotEnabledException.class, one.getNameAsString(), () -> admin.disableTable(one));
                Expect.fails(TableNotEnabledException.class, one.getNameAsString(), () -> admin.flush(one));
            });
            steps.run("enable", () -> {
                admin.enableTable(one);
                Expect.that(admin.isTableEnabled(one) && admin.isTableAvailable(one), "enabled and available");
                Expect.equal("cf:q=1", untimed(table.get(get("kept"))), "row");
                Expect.fails(TableNotDisabledException.class, one.getNameAsString(), () -> admin.enableTable(one));
                Expect.fails(TableNotDisabledException.class, one.getNameAsString(), () -> admin.deleteTable(one));
                Expect.fails(TableNotDisabledException.class, one.getNameAsString(), () -> admin.truncateTable(one, false));
            });
        }
    }

    private void alter(Steps steps) throws Exception {
        TableName name = cluster.name("tab_alter");
        steps.must("alter: create", () -> {
            try (Table table = cluster.create("tab_alter", Cluster.family("cf"), Cluster.family("two"))) {
                table.put(put("a", "cf:q=1", "two:q=2"));
            }
        });
        try (Table table = cluster.table("tab_alter")) {
            steps.run("alter: add a family", () -> {
                admin.addColumnFamily(name, Cluster.family("three"));
                table.put(put("a", "three:q=3"));
                Expect.equal("cf:q=1 three:q=3 two:q=2", untimed(table.get(get("a"))), "row");
                Expect.fails(InvalidFamilyOperationException.class, "three", () -> admin.addColumnFamily(name, Cluster.family("three")));
            });
            steps.run("alter: change a family", () -> {
                admin.modifyColumnFamily(name, Cluster.family("cf", 7));
                Expect.equal(7, admin.getDescriptor(name).getColumnFamily(b("cf")).getMaxVersions(), "VERSIONS");
                Expect.equal("cf:q=1 three:q=3 two:q=2", untimed(table.get(get("a"))), "row");
                Expect.fails(InvalidFamilyOperationException.class, "none", () -> admin.modifyColumnFamily(name, Cluster.family("none")));
            });
            steps.run("alter: delete a family", () -> {
                admin.deleteColumnFamily(name, b("two"));
                Expect.equal("cf:q=1 three:q=3", untimed(table.get(get("a"))), "row");
                Expect.fails(NoSuchColumnFamilyException.class, "two", () -> table.get(get("a").addFamily(b("two"))));
                Expect.fails(InvalidFamilyOperationException.class, "two", () -> admin.deleteColumnFamily(name, b("two")));
            });
            steps.run("alter: the same family again is empty", () -> {
                admin.addColumnFamily(name, Cluster.family("two"));
                Expect.equal("cf:q=1 three:q=3", untimed(table.get(get("a"))), "row");
                admin.deleteColumnFamily(name, b("two"));
            });
            steps.run("alter: the table", () -> {
                TableDescriptor descriptor = TableDescriptorBuilder.newBuilder(admin.getDescriptor(name))
                    .setValue("note", "value").setMemStoreFlushSize(1 << 20).build();
                admin.modifyTable(descriptor);
                Expect.equal("value", admin.getDescriptor(name).getValue("note"), "table value");
                Expect.equal(1L << 20, admin.getDescriptor(name).getMemStoreFlushSize(), "MEMSTORE_FLUSHSIZE");
                Expect.equal("cf:q=1 three:q=3", untimed(table.get(get("a"))), "row");
            });
            steps.run("alter: not the last family", () -> {
                TableName one = cluster.name("tab_one");
                Expect.fails(InvalidFamilyOperationException.class, "is the only column family in the table", () ->
                    admin.deleteColumnFamily(one, b("cf")));
                Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.modifyTable(
                    TableDescriptorBuilder.newBuilder(absent).setColumnFamily(Cluster.family("cf")).build()));
            });
            steps.run("alter: a disabled table", () -> {
                TableName one = cluster.name("tab_one");
                admin.disableTable(one);
                admin.modifyColumnFamily(one, Cluster.family("cf", 3));
                admin.enableTable(one);
                Expect.equal(3, admin.getDescriptor(one).getColumnFamily(b("cf")).getMaxVersions(), "VERSIONS");
            });
        }
    }

    private void truncate(Steps steps) throws Exception {
        steps.must("truncate: create", () -> {
            try (Table table = cluster.create("tab_truncate", keys("m"), Cluster.family("cf", 4))) {
                table.put(List.of(put("a", "cf:q=1"), put("z", "cf:q=2")));
            }
        });
        TableName name = cluster.name("tab_truncate");
        try (Table table = cluster.table("tab_truncate")) {
            steps.run("truncate: splits preserved", () -> {
                admin.disableTable(name);
                admin.truncateTable(name, true);
                Expect.that(admin.isTableEnabled(name), "enabled afterwards");
                Expect.equal("", rowLine(table, new Scan()), "rows");
                Expect.equal(2, cluster.regions("tab_truncate").size(), "regions");
                Expect.equal(4, admin.getDescriptor(name).getColumnFamily(b("cf")).getMaxVersions(), "VERSIONS");
                table.put(put("b", "cf:q=3"));
                Expect.equal("b", rowLine(table, new Scan()), "rows");
            });
            steps.run("truncate: splits dropped", () -> {
                admin.disableTable(name);
                admin.truncateTable(name, false);
                Expect.equal(1, cluster.regions("tab_truncate").size(), "regions");
                table.put(put("z", "cf:q=4"));
                Expect.equal("z", rowLine(table, new Scan()), "rows");
            });
        }
    }

    private void drops(Steps steps) throws Exception {
        TableName name = cluster.name("tab_drop");
        steps.run("drop and create again", () -> {
            try (Table table = cluster.create("tab_drop", Cluster.family("cf"))) {
                table.put(put("a", "cf:q=1"));
            }
            cluster.flush("tab_drop");
            admin.disableTable(name);
            admin.deleteTable(name);
            Expect.that(!admin.tableExists(name), "gone");
            try (Table table = cluster.create("tab_drop", Cluster.family("cf"))) {
                Expect.equal("", rowLine(table, new Scan()), "rows of the new table");
            }
            cluster.drop(name);
            Expect.fails(TableNotFoundException.class, name.getNameAsString(), () -> admin.getDescriptor(name));
        });
        steps.run("system tables stay", () ->
            Expect.that(Failures.causes(() -> admin.disableTable(TableName.META_TABLE_NAME)).contains("ConstraintException"),
                "disable hbase:meta: " + Failures.causes(() -> admin.disableTable(TableName.META_TABLE_NAME))));
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropAll("tab_"));
    }
}
