// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.rootdir;

import java.io.IOException;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.util.Bytes;

/** Makes HFiles with HBase's writer, as HFileOutputFormat does. */
final class HFiles {
  private final Configuration conf;

  HFiles(Configuration conf) {
    this.conf = conf;
  }

  /** Writes FOLDER/FAMILY/NAME with the cells, in their order. */
  Path write(Path folder, String family, String name, List<KeyValue> cells) throws IOException {
    return write(folder, family, name, cells, Compression.Algorithm.NONE, DataBlockEncoding.NONE);
  }

  Path write(Path folder, String family, String name, List<KeyValue> cells, Compression.Algorithm compression,
      DataBlockEncoding encoding) throws IOException {
    FileSystem fs = FileSystem.getLocal(conf);
    HFileContext context = new HFileContextBuilder().withBlockSize(4096).withIncludesTags(true)
      .withIncludesMvcc(false).withCompression(compression).withDataBlockEncoding(encoding).build();
    Path path = new Path(new Path(folder, family), name);
    TreeSet<KeyValue> sorted = new TreeSet<>(CellComparator.getInstance());
    sorted.addAll(cells);
    try (HFile.Writer writer =
      HFile.getWriterFactory(conf, new CacheConfig(conf)).withPath(fs, path).withFileContext(context).create()) {
      for (KeyValue cell : sorted) {
        writer.append(cell);
      }
      writer.appendFileInfo(HStoreFile.BULKLOAD_TIME_KEY, Bytes.toBytes(System.currentTimeMillis()));
      writer.appendFileInfo(HStoreFile.MAJOR_COMPACTION_KEY, Bytes.toBytes(true));
    }
    return path;
  }

  static KeyValue put(String row, String family, String qualifier, long ts, String value) {
    return new KeyValue(Bytes.toBytes(row), Bytes.toBytes(family), Bytes.toBytes(qualifier), ts,
      KeyValue.Type.Put, Bytes.toBytes(value));
  }
}
