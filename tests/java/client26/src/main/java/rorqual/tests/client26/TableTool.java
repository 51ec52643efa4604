// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import java.util.Arrays;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;

/** Creates and drops tables for clients that cannot: {@code create NAME FAMILY[:COMPRESSION],… [SPLIT,…]}, {@code drop NAME}. */
public final class TableTool {
    private TableTool() {}

    public static void main(String[] args) throws Exception {
        try (Cluster cluster = Cluster.fromEnvironment()) {
            TableName name = TableName.valueOf(args[1]);
            if (args[0].equals("drop")) {
                cluster.drop(name);
            } else {
                TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(name);
                Arrays.stream(args[2].split(",")).forEach(family -> builder.setColumnFamily(family(family)));
                byte[][] splits = args.length > 3 ? Text.keys(args[3].split(",")) : null;
                cluster.admin.createTable(builder.build(), splits);
            }
        }
        System.exit(0);
    }

    /** A family of the tables of OpenTSDB's script. */
    private static ColumnFamilyDescriptor family(String text) {
        String[] parts = text.split(":");
        Compression.Algorithm compression = Compression.Algorithm.valueOf(parts.length > 1 ? parts[1] : "NONE");
        return ColumnFamilyDescriptorBuilder.newBuilder(Text.b(parts[0])).setCompressionType(compression).setBloomFilterType(BloomType.ROW)
            .setDataBlockEncoding(DataBlockEncoding.DIFF).setMaxVersions(1).build();
    }
}
