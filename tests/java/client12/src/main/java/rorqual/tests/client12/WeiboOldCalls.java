// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client12;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableName;
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
import org.apache.hadoop.hbase.filter.CompareFilter.CompareOp;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.support.Await;

/**
 * The Weibo of seed 004 with the post's own calls of 2013: a connection per operation, HTableInterface, Put.add,
 * Delete.deleteColumn and deleteColumns. (The post prints its IOExceptions; here they fail the test.)
 */
@SuppressWarnings("deprecation")
final class WeiboOldCalls {
    static final byte[] CF = Bytes.toBytes("cf");
    static final byte[] CONTENT = Bytes.toBytes("content");
    static final byte[] ATTENDS = Bytes.toBytes("attends");
    static final byte[] FANS = Bytes.toBytes("fans");

    final Configuration conf;
    final String namespace;
    final TableName content;
    final TableName relations;
    final TableName mailbox;
    private final LongSupplier clock;

    WeiboOldCalls(Configuration conf, String namespace, LongSupplier clock) {
        this.conf = conf;
        this.namespace = namespace;
        this.clock = clock;
        this.content = TableName.valueOf(namespace, "content");
        this.relations = TableName.valueOf(namespace, "relations");
        this.mailbox = TableName.valueOf(namespace, "receive-content-email");
    }

    NamespaceDescriptor namespaceDescriptor() {
        NamespaceDescriptor descriptor = NamespaceDescriptor.create(namespace).build();
        descriptor.setConfiguration("creator", "beifeng");
        descriptor.setConfiguration("createTime", "1700000000000");
        return descriptor;
    }

    static HColumnDescriptor family(byte[] name, int versions) {
        HColumnDescriptor family = new HColumnDescriptor(name);
        family.setBlockCacheEnabled(true);
        family.setBlocksize(2_097_152);
        family.setMaxVersions(versions);
        family.setMinVersions(versions);
        return family;
    }

    HTableDescriptor contentDescriptor() {
        HTableDescriptor descriptor = new HTableDescriptor(content);
        descriptor.addFamily(family(CF, 1));
        return descriptor;
    }

    private HTableDescriptor relationsDescriptor() {
        HTableDescriptor descriptor = new HTableDescriptor(relations);
        descriptor.addFamily(family(ATTENDS, 1));
        descriptor.addFamily(family(FANS, 1));
        return descriptor;
    }

    private HTableDescriptor mailboxDescriptor() {
        HTableDescriptor descriptor = new HTableDescriptor(mailbox);
        descriptor.addFamily(family(CF, 1_000));
        return descriptor;
    }

    void init() throws Exception {
        HBaseAdmin admin = new HBaseAdmin(conf);
        try {
            admin.createNamespace(namespaceDescriptor());
            // This client does not wait for the procedure that the call starts. The post's author ran the two methods on different
            // days.
            Await.until("namespace " + namespace + " there", () -> exists(admin));
            admin.createTable(contentDescriptor());
            admin.createTable(relationsDescriptor());
            admin.createTable(mailboxDescriptor());
        } finally {
            admin.close();
        }
    }

    boolean exists(HBaseAdmin admin) throws IOException {
        try {
            return admin.getNamespaceDescriptor(namespace) != null;
        } catch (NamespaceNotFoundException e) {
            return false;
        }
    }

    void publish(String uid, String text) throws IOException {
        HConnection connection = HConnectionManager.createConnection(conf);
        try {
            long t = clock.getAsLong();
            byte[] rowKey = Bytes.toBytes(uid + "_" + t);
            HTableInterface contents = connection.getTable(content);
            Put put = new Put(rowKey);
            put.add(CF, CONTENT, t, Bytes.toBytes(text));
            contents.put(put);

            Get get = new Get(Bytes.toBytes(uid));
            get.addFamily(FANS);
            List<byte[]> fans = new ArrayList<>();
            for (Cell cell : connection.getTable(relations).get(get).rawCells()) {
                fans.add(CellUtil.cloneQualifier(cell));
            }
            if (fans.isEmpty()) {
                return;
            }
            List<Put> puts = new ArrayList<>();
            for (byte[] fan : fans) {
                Put mail = new Put(fan);
                mail.add(CF, Bytes.toBytes(uid), t, rowKey);
                puts.add(mail);
            }
            connection.getTable(mailbox).put(puts);
        } finally {
            connection.close();
        }
    }

    void addAttends(String uid, String... others) throws IOException {
        if (others.length == 0) {
            return;
        }
        HConnection connection = HConnectionManager.createConnection(conf);
        try {
            List<Put> puts = new ArrayList<>();
            Put attends = new Put(Bytes.toBytes(uid));
            for (String other : others) {
                attends.add(ATTENDS, Bytes.toBytes(other), Bytes.toBytes(other));
                Put fan = new Put(Bytes.toBytes(other));
                fan.add(FANS, Bytes.toBytes(uid), Bytes.toBytes(uid));
                puts.add(fan);
            }
            puts.add(attends);
            connection.getTable(relations).put(puts);

            List<Put> mails = new ArrayList<>();
            HTableInterface contents = connection.getTable(content);
            for (String other : others) {
                Scan scan = new Scan();
                scan.setFilter(new RowFilter(CompareOp.EQUAL, new SubstringComparator(other + "_")));
                ResultScanner scanner = contents.getScanner(scan);
                for (Result result : scanner) {
                    for (Cell cell : result.rawCells()) {
                        String row = Bytes.toString(CellUtil.cloneRow(cell));
                        int bar = row.indexOf('_');
                        Put mail = new Put(Bytes.toBytes(uid));
                        mail.add(CF, Bytes.toBytes(row.substring(0, bar)), Long.parseLong(row.substring(bar + 1)),
                            CellUtil.cloneRow(cell));
                        mails.add(mail);
                    }
                }
                scanner.close();
            }
            if (!mails.isEmpty()) {
                connection.getTable(mailbox).put(mails);
            }
        } finally {
            connection.close();
        }
    }

    void removeAttends(String uid, String... others) throws IOException {
        if (others.length == 0) {
            return;
        }
        HConnection connection = HConnectionManager.createConnection(conf);
        try {
            List<Delete> deletes = new ArrayList<>();
            Delete attends = new Delete(Bytes.toBytes(uid));
            for (String other : others) {
                attends.deleteColumn(ATTENDS, Bytes.toBytes(other));
                Delete fan = new Delete(Bytes.toBytes(other));
                fan.deleteColumn(FANS, Bytes.toBytes(uid));
                deletes.add(fan);
            }
            deletes.add(attends);
            connection.getTable(relations).delete(deletes);

            Delete mails = new Delete(Bytes.toBytes(uid));
            long ahead = clock.getAsLong() + Integer.MAX_VALUE;
            for (String other : others) {
                mails.deleteColumns(CF, Bytes.toBytes(other), ahead);
            }
            connection.getTable(mailbox).delete(mails);
        } finally {
            connection.close();
        }
    }

    /** Messages in the form {@code uid timestamp content}. */
    List<String> getAttendsContents(String uid) throws IOException {
        HConnection connection = HConnectionManager.createConnection(conf);
        try {
            Get mails = new Get(Bytes.toBytes(uid));
            mails.setMaxVersions(5);
            List<Get> gets = new ArrayList<>();
            for (Cell cell : connection.getTable(mailbox).get(mails).rawCells()) {
                gets.add(new Get(CellUtil.cloneValue(cell)));
            }
            List<String> messages = new ArrayList<>();
            if (gets.isEmpty()) {
                return messages;
            }
            for (Result result : connection.getTable(content).get(gets)) {
                for (Cell cell : result.rawCells()) {
                    messages.add(Bytes.toString(CellUtil.cloneRow(cell)).replace('_', ' ') + " "
                        + Bytes.toString(CellUtil.cloneValue(cell)));
                }
            }
            return messages;
        } finally {
            connection.close();
        }
    }
}
