// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The Weibo of seed 004, its code ported to the 2.6 API, including its peculiarities; {@link Weibo} checks their effects
 * on a compatible server. The clock is an argument, so that the stored cells are known in advance.
 */
final class WeiboApp {
    /** One post, as its reader sees it. */
    record Message(String uid, long timestamp, String content) {}

    static final byte[] CF = Bytes.toBytes("cf");
    static final byte[] CONTENT = Bytes.toBytes("content");
    static final byte[] ATTENDS = Bytes.toBytes("attends");
    static final byte[] FANS = Bytes.toBytes("fans");

    final String namespace;
    final TableName content;
    final TableName relations;
    final TableName mailbox;
    private final Connection connection;
    private final LongSupplier clock;

    WeiboApp(Connection connection, String namespace, LongSupplier clock) {
        this.connection = connection;
        this.namespace = namespace;
        this.clock = clock;
        this.content = TableName.valueOf(namespace, "content");
        this.relations = TableName.valueOf(namespace, "relations");
        this.mailbox = TableName.valueOf(namespace, "receive-content-email");
    }

    NamespaceDescriptor namespaceDescriptor() {
        return NamespaceDescriptor.create(namespace).addConfiguration("creator", "beifeng")
            .addConfiguration("createTime", "1700000000000").build();
    }

    private static ColumnFamilyDescriptor family(byte[] name, int versions) {
        return ColumnFamilyDescriptorBuilder.newBuilder(name).setBlockCacheEnabled(true).setBlocksize(2_097_152)
            .setMaxVersions(versions).setMinVersions(versions).build();
    }

    TableDescriptor contentDescriptor() {
        return TableDescriptorBuilder.newBuilder(content).setColumnFamily(family(CF, 1)).build();
    }

    private TableDescriptor relationsDescriptor() {
        return TableDescriptorBuilder.newBuilder(relations).setColumnFamily(family(ATTENDS, 1))
            .setColumnFamily(family(FANS, 1)).build();
    }

    private TableDescriptor mailboxDescriptor() {
        return TableDescriptorBuilder.newBuilder(mailbox).setColumnFamily(family(CF, 1_000)).build();
    }

    void init() throws IOException {
        try (Admin admin = connection.getAdmin()) {
            admin.createNamespace(namespaceDescriptor());
            admin.createTable(contentDescriptor());
            admin.createTable(relationsDescriptor());
            admin.createTable(mailboxDescriptor());
        }
    }

    void publish(String uid, String text) throws IOException {
        long t = clock.getAsLong();
        byte[] rowKey = Bytes.toBytes(uid + "_" + t);
        try (Table contents = connection.getTable(content)) {
            contents.put(new Put(rowKey).addColumn(CF, CONTENT, t, Bytes.toBytes(text)));
        }
        List<byte[]> fans = new ArrayList<>();
        try (Table table = connection.getTable(relations)) {
            for (Cell cell : table.get(new Get(Bytes.toBytes(uid)).addFamily(FANS)).rawCells()) {
                fans.add(CellUtil.cloneQualifier(cell));
            }
        }
        if (fans.isEmpty()) {
            return;
        }
        List<Put> puts = new ArrayList<>();
        for (byte[] fan : fans) {
            puts.add(new Put(fan).addColumn(CF, Bytes.toBytes(uid), t, rowKey));
        }
        try (Table table = connection.getTable(mailbox)) {
            table.put(puts);
        }
    }

    void addAttends(String uid, String... others) throws IOException {
        if (others.length == 0) {
            return;
        }
        byte[] me = Bytes.toBytes(uid);
        List<Put> puts = new ArrayList<>();
        Put attends = new Put(me);
        for (String other : others) {
            attends.addColumn(ATTENDS, Bytes.toBytes(other), Bytes.toBytes(other));
            puts.add(new Put(Bytes.toBytes(other)).addColumn(FANS, me, me));
        }
        puts.add(attends);
        try (Table table = connection.getTable(relations)) {
            table.put(puts);
        }
        List<Put> mails = new ArrayList<>();
        try (Table table = connection.getTable(content)) {
            for (String other : others) {
                // Matches anywhere and ignores case: one of the consequences that Weibo checks.
                Scan scan = new Scan().setFilter(new RowFilter(CompareOperator.EQUAL, new SubstringComparator(other + "_")));
                try (ResultScanner scanner = table.getScanner(scan)) {
                    for (Result result : scanner) {
                        for (Cell cell : result.rawCells()) {
                            String row = Bytes.toString(CellUtil.cloneRow(cell));
                            int bar = row.indexOf('_');
                            mails.add(new Put(me).addColumn(CF, Bytes.toBytes(row.substring(0, bar)),
                                Long.parseLong(row.substring(bar + 1)), CellUtil.cloneRow(cell)));
                        }
                    }
                }
            }
        }
        if (mails.isEmpty()) {
            return;
        }
        try (Table table = connection.getTable(mailbox)) {
            table.put(mails);
        }
    }

    void removeAttends(String uid, String... others) throws IOException {
        if (others.length == 0) {
            return;
        }
        byte[] me = Bytes.toBytes(uid);
        List<Delete> deletes = new ArrayList<>();
        Delete attends = new Delete(me);
        for (String other : others) {
            // Deletes only the newest version: another consequence.
            attends.addColumn(ATTENDS, Bytes.toBytes(other));
            deletes.add(new Delete(Bytes.toBytes(other)).addColumn(FANS, me));
        }
        deletes.add(attends);
        try (Table table = connection.getTable(relations)) {
            table.delete(deletes);
        }
        Delete mails = new Delete(me);
        long ahead = clock.getAsLong() + Integer.MAX_VALUE;
        for (String other : others) {
            mails.addColumns(CF, Bytes.toBytes(other), ahead);
        }
        try (Table table = connection.getTable(mailbox)) {
            table.delete(mails);
        }
    }

    List<Message> getAttendsContents(String uid) throws IOException {
        List<Get> gets = new ArrayList<>();
        try (Table table = connection.getTable(mailbox)) {
            for (Cell cell : table.get(new Get(Bytes.toBytes(uid)).readVersions(5)).rawCells()) {
                gets.add(new Get(CellUtil.cloneValue(cell)));
            }
        }
        List<Message> messages = new ArrayList<>();
        if (gets.isEmpty()) {
            return messages;
        }
        try (Table table = connection.getTable(content)) {
            for (Result result : table.get(gets)) {
                for (Cell cell : result.rawCells()) {
                    String row = Bytes.toString(CellUtil.cloneRow(cell));
                    int bar = row.indexOf('_');
                    messages.add(new Message(row.substring(0, bar), Long.parseLong(row.substring(bar + 1)),
                        Bytes.toString(CellUtil.cloneValue(cell))));
                }
            }
        }
        return messages;
    }
}
