// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.untimed;

import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Store-file trackers: changing that of a table and of a family, and refused changes. */
public final class Trackers implements Program {
    private static final String IMPL = "hbase.store.file-tracker.impl";
    private static final String FROM = "hbase.store.file-tracker.migration.src.impl";
    private static final String TO = "hbase.store.file-tracker.migration.dst.impl";
    private static final String CELLS = "a/f:q=1 a/g:q=1 x/f:q=2";

    private final Cluster cluster;
    private final Admin admin;
    private final TableName name;

    public Trackers(Cluster cluster) {
        this.cluster = cluster;
        this.admin = cluster.admin;
        this.name = cluster.name("trackers");
    }

    private void cells(String expected) throws Exception {
        try (Table table = cluster.table("trackers")) {
            Expect.equal(expected, untimed(table, new Scan()), "cells");
        }
    }

    /** The tracker attributes of the table and of its family f. */
    private String said() throws Exception {
        TableDescriptor table = admin.getDescriptor(name);
        var family = table.getColumnFamily(b("f"));
        return words(table.getValue(IMPL), table.getValue(FROM), table.getValue(TO)) + " "
            + words(family.getConfigurationValue(IMPL), family.getConfigurationValue(FROM), family.getConfigurationValue(TO));
    }

    private static String words(String impl, String from, String to) {
        return impl == null ? "-" : impl + (from == null && to == null ? "" : "(" + from + ">" + to + ")");
    }

    private void alterTable(String impl, String from, String to) throws Exception {
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(admin.getDescriptor(name)).setValue(IMPL, impl);
        if (from == null) {
            table.removeValue(b(FROM)).removeValue(b(TO));
        } else {
            table.setValue(FROM, from).setValue(TO, to);
        }
        admin.modifyTable(table.build());
    }

    private void refused(String text, String impl, String from, String to) {
        Expect.fails(DoNotRetryIOException.class, text + " for family f of table " + name, () -> alterTable(impl, from, to));
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> {
            cluster.drop("trackers");
            try (Table table = cluster.create("trackers", keys("m"), Cluster.family("f"), Cluster.family("g"))) {
                table.put(put("a", "f:q=1", "g:q=1"));
                cluster.flush("trackers");
                table.put(put("x", "f:q=2"));
            }
        });
        steps.run("nothing new begins with a migration", () -> {
            Expect.fails(DoNotRetryIOException.class, "Should not use MIGRATION as store file tracker for new family f of table",
                () -> admin.createTable(TableDescriptorBuilder.newBuilder(cluster.name("trackers_new"))
                    .setColumnFamily(Cluster.family("f")).setValue(IMPL, "MIGRATION").setValue(FROM, "DEFAULT").setValue(TO, "FILE").build()));
            Expect.fails(DoNotRetryIOException.class, "Should not use MIGRATION as store file tracker for new family h of table " + name,
                () -> admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.newBuilder(b("h")).setConfiguration(IMPL, "MIGRATION")
                    .setConfiguration(FROM, "DEFAULT").setConfiguration(TO, "FILE").build()));
        });
        steps.run("an alter goes by migration", () -> {
            refused("Should change to MIGRATION first when migrating from DEFAULT", "FILE", null, null);
            refused("Should use src tracker DEFAULT first but got FILE when migrating from DEFAULT", "MIGRATION", "FILE", "DEFAULT");
            refused("The src tracker and dst tracker are both DEFAULT", "MIGRATION", "DEFAULT", "default");
            alterTable("MIGRATION", "DEFAULT", "FILE");
            Expect.equal("MIGRATION(DEFAULT>FILE) -", said(), "on the way");
            cells(CELLS);
            refused("Should migrate tracker to FILE but got DEFAULT", "DEFAULT", null, null);
            refused("The src tracker has been changed from DEFAULT to FILE", "MIGRATION", "FILE", "DEFAULT");
            refused("The dst tracker has been changed from FILE to DEFAULT", "MIGRATION", "DEFAULT", "DEFAULT");
            alterTable("FILE", null, null);
            Expect.equal("FILE -", said(), "there");
            cells(CELLS);
        });
        steps.run("a disabled table stays on its way", () -> {
            alterTable("MIGRATION", "FILE", "DEFAULT");
            admin.disableTable(name);
            Expect.fails(TableNotEnabledException.class,
                "Should not change store file tracker implementation from MIGRATION while table " + name + " is disabled",
                () -> alterTable("DEFAULT", null, null));
            Expect.fails(TableNotEnabledException.class, name.getNameAsString(), () -> admin.modifyTableStoreFileTracker(name, "DEFAULT"));
            admin.enableTable(name);
            cells(CELLS);
            alterTable("DEFAULT", null, null);
            Expect.equal("DEFAULT -", said(), "back");
        });
        steps.run("one call does it", () -> {
            admin.modifyTableStoreFileTracker(name, "FILE");
            Expect.equal("FILE -", said(), "the table's");
            admin.modifyTableStoreFileTracker(name, "FILE");
            Expect.equal("FILE -", said(), "once more");
            alterTable("MIGRATION", "FILE", "DEFAULT");
            admin.modifyTableStoreFileTracker(name, "FILE");
            Expect.equal("FILE -", said(), "a migration is taken back");
            alterTable("MIGRATION", "FILE", "DEFAULT");
            admin.modifyTableStoreFileTracker(name, "default");
            Expect.equal("default -", said(), "a migration is finished, in the caller's letters");
            cells(CELLS);
        });
        steps.run("one family has its own", () -> {
            admin.modifyColumnFamilyStoreFileTracker(name, b("f"), "FILE");
            Expect.equal("default FILE", said(), "the family's");
            admin.modifyColumnFamilyStoreFileTracker(name, b("g"), "DEFAULT");
            Expect.equal(null, admin.getDescriptor(name).getColumnFamily(b("g")).getConfigurationValue(IMPL), "what the table says is enough");
            cells(CELLS);
        });
        steps.run("what cannot be changed", () -> {
            TableName absent = cluster.name("trackers_absent");
            Expect.fails(TableNotFoundException.class, absent.getNameAsString(), () -> admin.modifyTableStoreFileTracker(absent, "FILE"));
            Expect.fails(NoSuchColumnFamilyException.class, "none does not exist for table " + name,
                () -> admin.modifyColumnFamilyStoreFileTracker(name, b("none"), "FILE"));
            Expect.fails(DoNotRetryIOException.class, "Do not need to transfer to migration",
                () -> admin.modifyTableStoreFileTracker(name, "migration"));
        });
        steps.run("flushes and compactions go on", () -> {
            try (Table table = cluster.table("trackers")) {
                table.put(put("b", "f:q=3"));
            }
            cluster.flushAndMajorCompact("trackers");
            cells("a/f:q=1 a/g:q=1 b/f:q=3 x/f:q=2");
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        steps.run("kept", () -> {
            Expect.equal("default FILE", said(), "trackers");
            cells("a/f:q=1 a/g:q=1 b/f:q=3 x/f:q=2");
        });
    }

    @Override
    public void drop(Steps steps) throws Exception {
        steps.run("drop", () -> cluster.drop("trackers"));
    }
}
