// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotDisabledException;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Remote;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** The Weibo of seed 004: its test methods step by step, then consequences of its code, one by one. */
public final class Weibo implements Program {
    private static final String BETTER = "Tomorrow will be better!";
    private static final String WEATHER = "今天天气真不错!!!";
    private static final long T = 1_700_000_000_000L;

    private final Cluster cluster;
    /** This table stays for later checks. */
    private final WeiboApp app;
    /** The table for the consequences; dropped at the end. */
    private final WeiboApp consequences;
    private long sameMillisecond;

    public Weibo(Cluster cluster) {
        this.cluster = cluster;
        this.app = new WeiboApp(cluster.connection, "weibo_" + cluster.run, seconds());
        LongSupplier clock = seconds();
        this.consequences = new WeiboApp(cluster.connection, "weibox_" + cluster.run,
            () -> sameMillisecond != 0 ? sameMillisecond : clock.getAsLong());
    }

    /** A clock that advances by a second at each call, so that the keys are known: T1, T2 … */
    private static LongSupplier seconds() {
        AtomicLong count = new AtomicLong();
        return () -> t(count.incrementAndGet());
    }

    private static long t(long n) {
        return T + n * 1_000;
    }

    private static String post(String uid, long n) {
        return uid + "_" + t(n) + "/cf:content@" + t(n) + "=";
    }

    private static String mail(String fan, String uid, long n) {
        return fan + "/cf:" + uid + "@" + t(n) + "=" + uid + "_" + t(n);
    }

    @Override
    public void write(Steps steps) throws Exception {
        testMethods(steps);
        consequences(steps);
    }

    // ---- the post's test methods -------------------------------------------------------------------------------------

    private void testMethods(Steps steps) throws Exception {
        steps.must("init", app::init);
        steps.run("namespace and families", this::descriptors);
        steps.must("0001 publishes twice", () -> {
            app.publish("0001", BETTER);
            app.publish("0001", BETTER);
            Expect.equal(post("0001", 1) + BETTER + " " + post("0001", 2) + BETTER, dump(app.content), "content");
            Expect.equal("", dump(app.relations) + dump(app.mailbox), "the other tables");
        });
        steps.must("0008 and 0009 publish", () -> {
            app.publish("0008", WEATHER);
            app.publish("0009", WEATHER);
            Expect.equal("", dump(app.mailbox), "mailbox: nobody follows yet");
        });
        steps.must("0001 follows both", () -> {
            app.addAttends("0001", "0008", "0009");
            Expect.equal("0001/attends:0008=0008 0001/attends:0009=0009 0008/fans:0001=0001 0009/fans:0001=0001",
                relations(app), "relations");
            Expect.equal(mail("0001", "0008", 3) + " " + mail("0001", "0009", 4), dump(app.mailbox), "mailbox");
        });
        steps.must("0001 removes 0009", () -> {
            app.removeAttends("0001", "0009");
            Expect.equal("0001/attends:0008=0008 0008/fans:0001=0001", relations(app), "relations");
            Expect.equal(mail("0001", "0008", 3), dump(app.mailbox), "mailbox");
        });
        steps.must("0008 publishes for its fan", () -> app.publish("0008", BETTER));
        left(steps, "written");
        steps.run("nobody to follow, nobody to leave", () -> {
            app.addAttends("0001");
            app.removeAttends("0001");
            Expect.equal(List.of(), app.getAttendsContents("0099"), "messages of a stranger");
        });
    }

    @Override
    public void check(Steps steps) throws Exception {
        steps.run("namespace and families", this::descriptors);
        left(steps, "kept");
    }

    /** The state after the test methods. */
    private void left(Steps steps, String state) {
        steps.run(state + ": content", () -> Expect.equal(post("0001", 1) + BETTER + " " + post("0001", 2) + BETTER + " "
            + post("0008", 3) + hex(WEATHER) + " " + post("0008", 6) + BETTER + " " + post("0009", 4) + hex(WEATHER),
            dump(app.content), "content"));
        steps.run(state + ": relations", () ->
            Expect.equal("0001/attends:0008=0008 0008/fans:0001=0001", relations(app), "relations"));
        steps.run(state + ": mailbox", () ->
            Expect.equal(mail("0001", "0008", 6) + " " + mail("0001", "0008", 3), dump(app.mailbox), "mailbox"));
        steps.run(state + ": 0001 reads", () -> Expect.equal(
            List.of(new WeiboApp.Message("0008", t(6), BETTER), new WeiboApp.Message("0008", t(3), WEATHER)),
            app.getAttendsContents("0001"), "messages"));
        steps.run(state + ": the marker lies 24.8 days ahead", () -> {
            String raw = raw(app.mailbox, "0001");
            Expect.that(raw.contains("cf:0009@" + (t(5) + Integer.MAX_VALUE) + "!DeleteColumn"), raw);
        });
    }

    private void descriptors() throws IOException {
        var namespace = cluster.admin.getNamespaceDescriptor(app.namespace);
        Expect.equal("beifeng", namespace.getConfigurationValue("creator"), "creator");
        Expect.equal("1700000000000", namespace.getConfigurationValue("createTime"), "createTime");
        for (TableName table : List.of(app.content, app.relations, app.mailbox)) {
            TableDescriptor descriptor = cluster.admin.getDescriptor(table);
            Expect.equal(table.equals(app.relations) ? 2 : 1, descriptor.getColumnFamilyCount(), "families");
            for (ColumnFamilyDescriptor family : descriptor.getColumnFamilies()) {
                int versions = table.equals(app.mailbox) ? 1_000 : 1;
                Expect.equal(versions, family.getMaxVersions(), "VERSIONS of " + table);
                Expect.equal(versions, family.getMinVersions(), "MIN_VERSIONS of " + table);
                Expect.equal(2_097_152, family.getBlocksize(), "BLOCKSIZE of " + table);
                Expect.that(family.isBlockCacheEnabled(), "BLOCKCACHE of " + table);
            }
        }
    }

    // ---- consequences ------------------------------------------------------------------------------------------------

    private void consequences(Steps steps) throws Exception {
        WeiboApp weibo = consequences;
        Admin admin = cluster.admin;
        steps.must("consequences: init", weibo::init);
        steps.run("everything a second time", () -> {
            Expect.fails(NamespaceExistException.class, weibo.namespace, () -> admin.createNamespace(weibo.namespaceDescriptor()));
            Expect.fails(TableExistsException.class, weibo.content.getNameAsString(), () -> admin.createTable(weibo.contentDescriptor()));
            Expect.fails(TableNotDisabledException.class, weibo.content.getNameAsString(), () -> admin.deleteTable(weibo.content));
            Remote.fails("org.apache.hadoop.hbase.constraint.ConstraintException",
                "Only empty namespaces can be removed. Namespace " + weibo.namespace
                + " has 3 tables", () -> admin.deleteNamespace(weibo.namespace));
        });
        steps.run("1: after following again posts stay invisible", () -> {
            weibo.publish("0009", "old"); // T1
            weibo.addAttends("0001", "0009");
            Expect.equal(mail("0001", "0009", 1), dump(weibo.mailbox), "mailbox");
            Ticks.next();
            weibo.removeAttends("0001", "0009"); // T2
            Ticks.next();
            weibo.addAttends("0001", "0009");
            Expect.equal("0001/attends:0009=0009 0009/fans:0001=0001", relations(weibo), "relations");
            weibo.publish("0009", "new"); // T3
            Expect.equal("", dump(weibo.mailbox), "mailbox");
            Expect.equal("cf:0009@" + (t(2) + Integer.MAX_VALUE) + "!DeleteColumn cf:0009@" + t(3) + "=0009_" + t(3)
                + " cf:0009@" + t(1) + "=0009_" + t(1), raw(weibo.mailbox, "0001"), "raw scan");
            Expect.equal(List.of(), weibo.getAttendsContents("0001"), "messages");
        });
        steps.run("1: until a flush and a major compaction, and following once more", () -> {
            cluster.flushAndMajorCompact(weibo.mailbox);
            Expect.equal("", raw(weibo.mailbox, "0001"), "raw scan");
            Ticks.next();
            weibo.addAttends("0001", "0009");
            Expect.equal(mail("0001", "0009", 3) + " " + mail("0001", "0009", 1), dump(weibo.mailbox), "mailbox");
        });
        steps.run("2: following twice, removing once", () -> {
            weibo.addAttends("0002", "0009");
            Ticks.next();
            weibo.addAttends("0002", "0009");
            Ticks.next();
            weibo.removeAttends("0002", "0009");
            try (Table table = cluster.connection.getTable(weibo.relations)) {
                Expect.equal("attends:0009=0009", untimed(table.get(new Get(b("0002")))), "the first put shows again");
            }
        });
        steps.run("3: the substring matches anywhere and ignores case", () -> {
            weibo.publish("10008", "of 10008");
            weibo.publish("zoe", "of zoe");
            weibo.addAttends("0003", "0008", "ZOE");
            String mails = untimed(cluster.connection.getTable(weibo.mailbox), new Scan().withStartRow(b("0003")));
            Expect.that(mails.matches("0003/cf:10008=10008_\\d+ 0003/cf:zoe=zoe_\\d+"), mails);
            try (Table table = cluster.connection.getTable(weibo.content)) {
                Expect.equal("", Text.rowLine(table, Text.prefix(b("0008_"))), "prefix scan of 0008_");
                Expect.equal("", Text.rowLine(table, Text.prefix(b("ZOE_"))), "prefix scan of ZOE_");
            }
        });
        steps.run("4: two posts of one millisecond are one row, the later wins", () -> {
            sameMillisecond = t(777);
            weibo.publish("0004", "first");
            weibo.publish("0004", "second");
            sameMillisecond = 0;
            try (Table table = cluster.connection.getTable(weibo.content)) {
                Expect.equal(post("0004", 777) + "second",
                    timed(table, Text.prefix(b("0004")).readAllVersions()), "content");
            }
        });
        steps.run("5: a deleted post is skipped on reading, none takes its place", () -> {
            for (int i = 0; i < 7; i++) {
                sameMillisecond = t(800 + i);
                weibo.publish("0005", "post " + i);
            }
            sameMillisecond = 0;
            weibo.addAttends("0006", "0005");
            try (Table table = cluster.connection.getTable(weibo.content)) {
                table.delete(new Delete(b("0005_" + t(805))));
            }
            List<WeiboApp.Message> wanted = new ArrayList<>();
            for (int i : new int[] {6, 4, 3, 2}) {
                wanted.add(new WeiboApp.Message("0005", t(800 + i), "post " + i));
            }
            Expect.equal(wanted, weibo.getAttendsContents("0006"), "messages");
        });
        steps.run("6: a raw scan with a column is refused", () -> {
            try (Table table = cluster.connection.getTable(weibo.content)) {
                Expect.fails(DoNotRetryIOException.class, "Cannot specify any column for a raw scan", () ->
                    Text.results(table, new Scan().setRaw(true).addColumn(WeiboApp.CF, WeiboApp.CONTENT)));
            }
        });
        manyVersions(steps, weibo);
        steps.run("truncate keeps the families", () -> {
            admin.disableTable(weibo.relations);
            admin.truncateTable(weibo.relations, false);
            Expect.equal("", relations(weibo), "relations");
            TableDescriptor descriptor = admin.getDescriptor(weibo.relations);
            Expect.equal(2, descriptor.getColumnFamilyCount(), "families");
            Expect.equal(2_097_152, descriptor.getColumnFamily(WeiboApp.FANS).getBlocksize(), "BLOCKSIZE");
            weibo.addAttends("0001", "0002");
            Expect.equal("0001/attends:0002=0002 0002/fans:0001=0001", relations(weibo), "relations");
        });
        steps.run("disable, drop and their errors", () -> {
            admin.disableTable(weibo.content);
            Expect.fails(TableNotEnabledException.class, weibo.content.getNameAsString(), () -> admin.disableTable(weibo.content));
            admin.deleteTable(weibo.content);
            Expect.fails(TableNotFoundException.class, weibo.content.getNameAsString(), () -> admin.deleteTable(weibo.content));
            for (TableName table : List.of(weibo.relations, weibo.mailbox)) {
                admin.disableTable(table);
                admin.deleteTable(table);
            }
            admin.deleteNamespace(weibo.namespace);
            Expect.fails(NamespaceNotFoundException.class, weibo.namespace, () -> admin.deleteNamespace(weibo.namespace));
            Expect.fails(NamespaceNotFoundException.class, weibo.namespace, () -> admin.getNamespaceDescriptor(weibo.namespace));
        });
    }

    /** Of 1,005 versions the newest 1,000 are kept, whether in the memstore or in files. */
    private void manyVersions(Steps steps, WeiboApp weibo) {
        steps.run("1,005 versions: write", () -> {
            List<Put> puts = new ArrayList<>();
            for (int i = 1; i <= 1_005; i++) {
                puts.add(new Put(b("many")).addColumn(WeiboApp.CF, b("0007"), i, Bytes.toBytes(i)));
            }
            try (Table table = cluster.connection.getTable(weibo.mailbox)) {
                table.put(puts);
            }
        });
        steps.run("1,005 versions: memstore", () -> newestThousand(weibo));
        steps.run("1,005 versions: flushed", () -> {
            cluster.admin.flush(weibo.mailbox);
            newestThousand(weibo);
        });
        steps.run("1,005 versions: compacted", () -> {
            cluster.flushAndMajorCompact(weibo.mailbox);
            newestThousand(weibo);
        });
    }

    private void newestThousand(WeiboApp weibo) throws IOException {
        try (Table table = cluster.connection.getTable(weibo.mailbox)) {
            Result result = table.get(new Get(b("many")).readAllVersions());
            Expect.equal(1_000, result.size(), "versions");
            for (int i = 0; i < 1_000; i++) {
                Expect.equal(1_005L - i, result.rawCells()[i].getTimestamp(), "timestamp of version " + i);
            }
        }
    }

    // ---- reading -----------------------------------------------------------------------------------------------------

    private String dump(TableName name) throws IOException {
        try (Table table = cluster.connection.getTable(name)) {
            return timed(table, new Scan().readAllVersions());
        }
    }

    private String relations(WeiboApp weibo) throws IOException {
        try (Table table = cluster.connection.getTable(weibo.relations)) {
            return untimed(table, new Scan());
        }
    }

    private String raw(TableName name, String row) throws IOException {
        try (Table table = cluster.connection.getTable(name)) {
            List<Result> results = Text.results(table,
                new Scan().withStartRow(b(row)).withStopRow(b(row), true).setRaw(true).readAllVersions());
            return results.isEmpty() ? "" : timed(results.get(0));
        }
    }

    /** Escapes bytes that are not ASCII, in the form of {@link Text}. */
    private static String hex(String text) {
        return Text.s(b(text));
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> {
            cluster.dropNamespace(app.namespace);
            cluster.dropNamespace(consequences.namespace);
        });
    }
}
