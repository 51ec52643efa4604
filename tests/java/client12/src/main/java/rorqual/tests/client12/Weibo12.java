// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client12;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotDisabledException;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.HBaseAdmin;
import org.apache.hadoop.hbase.client.HConnection;
import org.apache.hadoop.hbase.client.HConnectionManager;
import org.apache.hadoop.hbase.client.HTableInterface;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.protobuf.generated.AdminProtos.GetRegionInfoResponse.CompactionState;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.support.Await;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** The Weibo of seed 004 on the client it was written for: the post's test methods, the consequences of its code, and the
 * old admin calls. */
@SuppressWarnings("deprecation")
public final class Weibo12 implements Program {
    private static final String BETTER = "Tomorrow will be better!";
    private static final String WEATHER = "今天天气真不错!!!";
    private static final long T = 1_700_000_000_000L;

    private final Configuration conf;
    private final WeiboOldCalls app;
    private final WeiboOldCalls consequences;
    private long sameMillisecond;

    public Weibo12(Configuration conf, String run) {
        this.conf = conf;
        this.app = new WeiboOldCalls(conf, "weibo12_" + run, seconds());
        LongSupplier clock = seconds();
        this.consequences = new WeiboOldCalls(conf, "weibo12x_" + run,
            () -> sameMillisecond != 0 ? sameMillisecond : clock.getAsLong());
    }

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
        consequences(steps);
    }

    @Override
    public void check(Steps steps) {
        steps.run("namespace and families", this::descriptors);
        left(steps, "kept");
    }

    private void left(Steps steps, String state) {
        steps.run(state + ": content", () -> Expect.equal(post("0001", 1) + BETTER + " " + post("0001", 2) + BETTER + " "
            + post("0008", 3) + WEATHER + " " + post("0008", 6) + BETTER + " " + post("0009", 4) + WEATHER,
            dump(app.content), "content"));
        steps.run(state + ": relations", () ->
            Expect.equal("0001/attends:0008=0008 0008/fans:0001=0001", relations(app), "relations"));
        steps.run(state + ": mailbox", () ->
            Expect.equal(mail("0001", "0008", 6) + " " + mail("0001", "0008", 3), dump(app.mailbox), "mailbox"));
        steps.run(state + ": 0001 reads", () -> Expect.equal(
            List.of("0008 " + t(6) + " " + BETTER, "0008 " + t(3) + " " + WEATHER), app.getAttendsContents("0001"), "messages"));
        steps.run(state + ": the marker lies 24.8 days ahead", () -> {
            String raw = raw(app.mailbox, "0001");
            Expect.that(raw.contains("cf:0009@" + (t(5) + Integer.MAX_VALUE) + "!DeleteColumn"), raw);
        });
    }

    private void descriptors() throws Exception {
        admin(admin -> {
            NamespaceDescriptor namespace = admin.getNamespaceDescriptor(app.namespace);
            Expect.equal("beifeng", namespace.getConfigurationValue("creator"), "creator");
            for (TableName table : List.of(app.content, app.relations, app.mailbox)) {
                HTableDescriptor descriptor = admin.getTableDescriptor(table);
                Expect.equal(table.equals(app.relations) ? 2 : 1, descriptor.getFamilies().size(), "families");
                for (HColumnDescriptor family : descriptor.getFamilies()) {
                    int versions = table.equals(app.mailbox) ? 1_000 : 1;
                    Expect.equal(versions, family.getMaxVersions(), "VERSIONS of " + table);
                    Expect.equal(versions, family.getMinVersions(), "MIN_VERSIONS of " + table);
                    Expect.equal(2_097_152, family.getBlocksize(), "BLOCKSIZE of " + table);
                }
            }
            List<String> names = new ArrayList<>();
            for (TableName name : admin.listTableNamesByNamespace(app.namespace)) {
                names.add(name.getQualifierAsString());
            }
            Expect.equal(List.of("content", "receive-content-email", "relations"), names, "tables of the namespace");
        });
    }

    private void consequences(Steps steps) throws Exception {
        WeiboOldCalls weibo = consequences;
        steps.must("consequences: init", weibo::init);
        steps.run("everything a second time", () -> admin(admin -> {
            Expect.fails(NamespaceExistException.class, weibo.namespace, () -> admin.createNamespace(weibo.namespaceDescriptor()));
            Expect.fails(TableExistsException.class, weibo.content.getNameAsString(), () -> admin.createTable(weibo.contentDescriptor()));
            Expect.fails(TableNotDisabledException.class, weibo.content.getNameAsString(), () -> admin.deleteTable(weibo.content));
            // This client retries the refused call until it has used all its retries.
            try {
                admin.deleteNamespace(weibo.namespace);
                throw new AssertionError("a namespace with tables was deleted");
            } catch (IOException e) {
                String chain = e + " | " + e.getCause(); // since client 1.4 the text is in the cause
                Expect.that(chain.contains("Only empty namespaces can be removed"), chain);
            }
        }));
        steps.run("1: after following again posts stay invisible, until a flush and a major compaction", () -> {
            weibo.publish("0009", "old"); // T1
            weibo.addAttends("0001", "0009");
            Ticks.next();
            weibo.removeAttends("0001", "0009"); // T2
            Ticks.next();
            weibo.addAttends("0001", "0009");
            weibo.publish("0009", "new"); // T3
            Expect.equal("0001/attends:0009=0009 0009/fans:0001=0001", relations(weibo), "relations");
            Expect.equal("", dump(weibo.mailbox), "mailbox");
            Expect.equal("cf:0009@" + (t(2) + Integer.MAX_VALUE) + "!DeleteColumn cf:0009@" + t(3) + "=0009_" + t(3)
                + " cf:0009@" + t(1) + "=0009_" + t(1), raw(weibo.mailbox, "0001"), "raw scan");
            flushAndMajorCompact(weibo.mailbox);
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
            Expect.that(relations(weibo).contains("0002/attends:0009=0009"), "the first put should show again");
        });
        steps.run("3: the substring matches anywhere and ignores case", () -> {
            weibo.publish("10008", "of 10008");
            weibo.publish("zoe", "of zoe");
            weibo.addAttends("0003", "0008", "ZOE");
            String mails = dump(weibo.mailbox);
            Expect.that(mails.contains("0003/cf:10008@") && mails.contains("0003/cf:zoe@"), mails);
            Scan prefix = new Scan();
            prefix.setFilter(new PrefixFilter(Bytes.toBytes("0008_")));
            Expect.equal("", dump(weibo.content, prefix, true), "PrefixFilter of 0008_");
        });
        steps.run("4: two posts of one millisecond are one row, the later wins", () -> {
            sameMillisecond = t(777);
            weibo.publish("0004", "first");
            weibo.publish("0004", "second");
            sameMillisecond = 0;
            Scan scan = new Scan(Bytes.toBytes("0004"), Bytes.toBytes("0005"));
            scan.setMaxVersions();
            Expect.equal(post("0004", 777) + "second", dump(weibo.content, scan, true), "content");
        });
        steps.run("5: a deleted post is skipped on reading, none takes its place", () -> {
            for (int i = 0; i < 7; i++) {
                sameMillisecond = t(800 + i);
                weibo.publish("0005", "post " + i);
            }
            sameMillisecond = 0;
            weibo.addAttends("0006", "0005");
            table(weibo.content, table -> table.delete(new Delete(Bytes.toBytes("0005_" + t(805)))));
            List<String> wanted = new ArrayList<>();
            for (int i : new int[] {6, 4, 3, 2}) {
                wanted.add("0005 " + t(800 + i) + " post " + i);
            }
            Expect.equal(wanted, weibo.getAttendsContents("0006"), "messages");
        });
        steps.run("6: a raw scan with a column is refused", () -> {
            Scan scan = new Scan();
            scan.setRaw(true);
            scan.addColumn(WeiboOldCalls.CF, WeiboOldCalls.CONTENT);
            Expect.fails(DoNotRetryIOException.class, "Cannot specify any column for a raw scan", () -> dump(weibo.content, scan, true));
        });
        steps.run("1,005 versions", () -> table(weibo.mailbox, table -> {
            List<Put> puts = new ArrayList<>();
            for (int i = 1; i <= 1_005; i++) {
                Put put = new Put(Bytes.toBytes("many"));
                put.add(WeiboOldCalls.CF, Bytes.toBytes("0007"), i, Bytes.toBytes(i));
                puts.add(put);
            }
            table.put(puts);
            newestThousand(table);
            admin(admin -> admin.flush(weibo.mailbox));
            newestThousand(table);
            flushAndMajorCompact(weibo.mailbox);
            newestThousand(table);
        }));
        steps.run("counters and checks by the old calls", () -> table(weibo.content, table -> {
            byte[] row = Bytes.toBytes("counter");
            Expect.equal(5L, table.incrementColumnValue(row, WeiboOldCalls.CF, Bytes.toBytes("n"), 5), "first");
            Expect.equal(3L, table.incrementColumnValue(row, WeiboOldCalls.CF, Bytes.toBytes("n"), -2), "second");
            Put put = new Put(row);
            put.add(WeiboOldCalls.CF, Bytes.toBytes("owner"), Bytes.toBytes("me"));
            Expect.that(table.checkAndPut(row, WeiboOldCalls.CF, Bytes.toBytes("owner"), null, put), "nobody owns it yet");
            Expect.that(!table.checkAndPut(row, WeiboOldCalls.CF, Bytes.toBytes("owner"), null, put), "it is owned");
            Expect.that(table.exists(new Get(row)), "exists");
        }));
        steps.run("truncate keeps the families", () -> admin(admin -> {
            admin.disableTable(weibo.relations);
            admin.truncateTable(weibo.relations, false);
            Expect.equal("", relations(weibo), "relations");
            HTableDescriptor descriptor = admin.getTableDescriptor(weibo.relations);
            Expect.equal(2_097_152, descriptor.getFamily(WeiboOldCalls.FANS).getBlocksize(), "BLOCKSIZE");
        }));
        steps.run("disable, drop and their errors", () -> admin(admin -> {
            admin.disableTable(weibo.content);
            Expect.that(admin.isTableDisabled(weibo.content), "disabled");
            Expect.fails(TableNotEnabledException.class, weibo.content.getNameAsString(), () -> admin.disableTable(weibo.content));
            admin.deleteTable(weibo.content);
            Expect.fails(TableNotFoundException.class, weibo.content.getNameAsString(), () -> admin.deleteTable(weibo.content));
            for (TableName table : List.of(weibo.relations, weibo.mailbox)) {
                admin.disableTable(table);
                admin.deleteTable(table);
            }
            admin.deleteNamespace(weibo.namespace);
            Await.until("namespace gone", () -> !weibo.exists(admin));
            Expect.fails(NamespaceNotFoundException.class, weibo.namespace, () -> admin.getNamespaceDescriptor(weibo.namespace));
        }));
    }

    private static void newestThousand(HTableInterface table) throws IOException {
        Get get = new Get(Bytes.toBytes("many"));
        get.setMaxVersions();
        Result result = table.get(get);
        Expect.equal(1_000, result.size(), "versions");
        for (int i = 0; i < 1_000; i++) {
            Expect.equal(1_005L - i, result.rawCells()[i].getTimestamp(), "timestamp of version " + i);
        }
    }

    // ---- reading, as text --------------------------------------------------------------------------------------------

    private String dump(TableName name) throws Exception {
        Scan scan = new Scan();
        scan.setMaxVersions();
        return dump(name, scan, true);
    }

    private String relations(WeiboOldCalls weibo) throws Exception {
        return dump(weibo.relations, new Scan(), false);
    }

    private String raw(TableName name, String row) throws Exception {
        Scan scan = new Scan(Bytes.toBytes(row), Bytes.toBytes(row + "\0"));
        scan.setRaw(true);
        scan.setMaxVersions();
        return dump(name, scan, true).replace(row + "/", "");
    }

    private String dump(TableName name, Scan scan, boolean timestamps) throws Exception {
        List<String> cells = new ArrayList<>();
        table(name, table -> {
            ResultScanner scanner = table.getScanner(scan);
            for (Result result = scanner.next(); result != null; result = scanner.next()) {
                for (Cell cell : result.rawCells()) {
                    KeyValue.Type type = KeyValue.Type.codeToType(cell.getTypeByte());
                    cells.add(Bytes.toString(CellUtil.cloneRow(cell)) + "/" + Bytes.toString(CellUtil.cloneFamily(cell)) + ":"
                        + Bytes.toString(CellUtil.cloneQualifier(cell)) + (timestamps ? "@" + cell.getTimestamp() : "")
                        + (type == KeyValue.Type.Put ? "=" + Bytes.toString(CellUtil.cloneValue(cell)) : "!" + type));
                }
            }
            scanner.close();
        });
        return String.join(" ", cells);
    }

    private interface WithAdmin {
        void run(HBaseAdmin admin) throws Exception;
    }

    private interface WithTable {
        void run(HTableInterface table) throws Exception;
    }

    private void admin(WithAdmin body) throws Exception {
        HBaseAdmin admin = new HBaseAdmin(conf);
        try {
            body.run(admin);
        } finally {
            admin.close();
        }
    }

    private void table(TableName name, WithTable body) throws Exception {
        HConnection connection = HConnectionManager.createConnection(conf);
        try {
            body.run(connection.getTable(name));
        } finally {
            connection.close();
        }
    }

    private void flushAndMajorCompact(TableName table) throws Exception {
        admin(admin -> {
            admin.flush(table);
            admin.majorCompact(table);
            Await.until("compaction of " + table + " done", () -> admin.getCompactionState(table) == CompactionState.NONE);
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> admin(admin -> {
            for (String namespace : List.of(app.namespace, consequences.namespace)) {
                try {
                    admin.getNamespaceDescriptor(namespace);
                } catch (NamespaceNotFoundException e) {
                    continue;
                }
                for (TableName table : admin.listTableNamesByNamespace(namespace)) {
                    if (admin.isTableEnabled(table)) {
                        admin.disableTable(table);
                    }
                    admin.deleteTable(table);
                }
                admin.deleteNamespace(namespace);
            }
        }));
    }
}
