// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase.regionserver;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.bzip2.BZip2DummyCompressor;
import org.apache.hadoop.io.compress.bzip2.BZip2DummyDecompressor;

/**
 * Hadoop's BZip2Codec without its native library: its streams work, but HBase also asks the compressor objects
 * whether they are finished, which throws without the library.
 */
public class StreamBzip2Codec extends BZip2Codec {

  public static class Idle extends BZip2DummyCompressor {
    @Override
    public boolean finished() {
      return false;
    }

    @Override
    public void reset() {
    }

    @Override
    public void reinit(Configuration conf) {
    }
  }

  public static class IdleDecompressor extends BZip2DummyDecompressor {
    @Override
    public boolean finished() {
      return false;
    }
  }

  @Override
  public Compressor createCompressor() {
    return new Idle();
  }

  @Override
  public Class<? extends Compressor> getCompressorType() {
    return Idle.class;
  }

  @Override
  public Decompressor createDecompressor() {
    return new IdleDecompressor();
  }

  @Override
  public Class<? extends Decompressor> getDecompressorType() {
    return IdleDecompressor.class;
  }
}
