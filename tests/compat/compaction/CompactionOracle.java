// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase.regionserver;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HDFSBlocksDistribution;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionRequestImpl;
import org.apache.hadoop.hbase.regionserver.compactions.DateTieredCompactionPolicy;
import org.apache.hadoop.hbase.regionserver.compactions.DateTieredCompactionRequest;
import org.apache.hadoop.hbase.regionserver.compactions.ExploringCompactionPolicy;
import org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy;
import org.apache.hadoop.hbase.regionserver.compactions.RatioBasedCompactionPolicy;
import org.apache.hadoop.hbase.regionserver.compactions.SortedCompactionPolicy;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;

/**
 * Writes the files that HBase's own compaction policies choose from random lists, which
 * tests/unit/store replays: CompactionOracle seed count file. In HBase's package, because fake files
 * can be made there.
 *
 * A case is a line: the policy, its settings, the request, the files oldest first, and the result.
 * "-" means none; the output's boundaries are given by number and sum.
 */
public final class CompactionOracle {
  private static final long NOW = 1_700_000_000_000L;
  private static final long HOUR = 3_600_000L;

  private final Random random;

  private CompactionOracle(long seed) {
    random = new Random(seed);
  }

  /** A fake file that only has numbers. */
  private static final class File extends HStoreFile {
    long size, created, min, max, entries;
    boolean known, major, reference, bulk;

    File(Configuration conf, FileSystem fs, String name) throws Exception {
      super(new StoreFileInfo(conf, fs, new FileStatus(1, false, 1, 1, 1, new Path("/t/r/f/" + name))),
        BloomType.NONE, CacheConfig.DISABLED);
    }

    @Override public boolean isReference() { return reference; }
    @Override public boolean isMajorCompactionResult() { return major; }
    @Override public boolean isBulkLoadResult() { return bulk; }
    @Override public boolean excludeFromMinorCompaction() { return false; }
    @Override public long getModificationTimestamp() { return created; }
    @Override public HDFSBlocksDistribution getHDFSBlockDistribution() { return new HDFSBlocksDistribution(); }
    @Override public OptionalLong getMinimumTimestamp() { return known ? OptionalLong.of(min) : OptionalLong.empty(); }
    @Override public OptionalLong getMaximumTimestamp() { return known ? OptionalLong.of(max) : OptionalLong.empty(); }

    @Override public StoreFileReader getReader() {
      return new StoreFileReader() {
        @Override public long length() { return size; }
        @Override public long getMaxTimestamp() { return known ? max : Long.MAX_VALUE; }
        @Override public long getEntries() { return entries; }
      };
    }

    @Override public String toString() {
      return getPath().getName() + "," + size + "," + created + "," + (known ? min + "," + max : "-,-") + ","
        + (major ? 1 : 0) + "," + (reference ? 1 : 0) + "," + (bulk ? 1 : 0) + "," + entries;
    }
  }

  private record Info(long flush, long ttl, long blocking) implements StoreConfigInformation {
    @Override public long getMemStoreFlushSize() { return flush; }
    @Override public long getStoreFileTtl() { return ttl; }
    @Override public long getCompactionCheckMultiplier() { return 1000; }
    @Override public long getBlockingFileCount() { return blocking; }
    @Override public RegionInfo getRegionInfo() {
      return RegionInfoBuilder.newBuilder(TableName.valueOf("t")).build();
    }
    @Override public String getColumnFamilyName() { return "f"; }
  }

  private boolean oneIn(int n) {
    return random.nextInt(n) == 0;
  }

  private long below(long n) {
    return Math.floorMod(random.nextLong(), n);
  }

  private Object one(Object... of) {
    return of[random.nextInt(of.length)];
  }

  private List<HStoreFile> files(Configuration conf, FileSystem fs, boolean tiered, long ttl) throws Exception {
    int count = random.nextInt(oneIn(4) ? 24 : 12);
    boolean references = oneIn(12);
    boolean flat = oneIn(2);
    long span = (long) one(2 * HOUR, 48 * HOUR, 2400 * HOUR, NOW);
    List<HStoreFile> out = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      File f = new File(conf, fs, String.format("%016x%016x", random.nextLong(), random.nextLong()));
      f.size = flat ? 900 + below(300) : 1 + below((long) one(30L, 2000L, 200_000L));
      f.created = NOW - below((long) one(HOUR, 300 * HOUR));
      // HBase searches the window of a file without times forever.
      f.known = tiered || !oneIn(25);
      long newest = NOW - span * (count - i - 1) / count - below(span / Math.max(count, 1) + 1) + (oneIn(15) ? HOUR : 0);
      f.max = oneIn(8) ? NOW - below(span) : newest;
      f.min = Math.max(0, f.max - below((long) one(1000L, 5 * HOUR, 50 * HOUR)));
      // In this very millisecond HBase's two ways of dropping a file disagree.
      if (ttl != Long.MAX_VALUE && f.max == NOW - ttl) f.max++;
      f.major = oneIn(3);
      f.reference = references && oneIn(3);
      f.bulk = oneIn(10);
      f.entries = oneIn(15) ? 0 : 1 + below(1000);
      out.add(f);
    }
    return out;
  }

  private SortedCompactionPolicy policy(String name, Configuration conf, Info info) throws Exception {
    return switch (name) {
      case "exploring" -> new ExploringCompactionPolicy(conf, info);
      case "ratio" -> new RatioBasedCompactionPolicy(conf, info);
      case "fifo" -> new FIFOCompactionPolicy(conf, info);
      default -> new DateTieredCompactionPolicy(conf, info);
    };
  }

  private String set(Configuration conf, String key, Object value) {
    conf.set(key, value.toString());
    return value + " ";
  }

  private String settings(Configuration conf) {
    String tier = "hbase.hstore.compaction.date.tiered.";
    int max = 3 + random.nextInt(9);
    String within = (String) one("ExploringCompactionPolicy", "RatioBasedCompactionPolicy");
    conf.set(tier + "window.policy.class", "org.apache.hadoop.hbase.regionserver.compactions." + within);
    return set(conf, "hbase.hstore.compaction.min", 2 + random.nextInt(Math.min(3, max - 1)))
      + set(conf, "hbase.hstore.compaction.max", max)
      + set(conf, "hbase.hstore.compaction.ratio", one("1.2", "1.0", "0.5", "3.7"))
      + set(conf, "hbase.hstore.compaction.ratio.offpeak", one("5.0", "1.4"))
      + set(conf, "hbase.hstore.compaction.min.size", one(1L, 100L, 5000L))
      + set(conf, "hbase.hstore.compaction.max.size", one(Long.MAX_VALUE, 3000L, 60_000L))
      + set(conf, "hbase.hstore.compaction.max.size.offpeak", one(Long.MAX_VALUE, 9000L))
      + set(conf, "hbase.hregion.majorcompaction", one(0L, 100 * HOUR, 200 * HOUR))
      + set(conf, "hbase.hregion.majorcompaction.jitter", one("0.5", "0.2", "0"))
      + set(conf, tier + "max.storefile.age.millis", one(Long.MAX_VALUE, 24 * HOUR, 2400 * HOUR))
      + set(conf, tier + "incoming.window.min", 2 + random.nextInt(5))
      + set(conf, tier + "base.window.millis", one(HOUR, 6 * HOUR, 60_000L))
      + set(conf, tier + "windows.per.tier", 2 + random.nextInt(4))
      + set(conf, tier + "max.tier.age.millis", one(Long.MAX_VALUE, 30 * 24 * HOUR))
      + set(conf, tier + "single.output.for.minor.compaction", oneIn(2))
      + within;
  }

  private String run() throws Exception {
    Configuration conf = new Configuration(false);
    FileSystem fs = FileSystem.getLocal(conf);
    String name = (String) one("exploring", "ratio", "fifo", "tiered", "tiered");
    String settings = settings(conf);
    long ttl = oneIn(2) ? Long.MAX_VALUE : (long) one(10 * HOUR, 100 * HOUR, 2000 * HOUR);
    Info info = new Info(1000, ttl, 6 + random.nextInt(16));
    List<HStoreFile> files = files(conf, fs, name.equals("tiered"), ttl);
    boolean major = oneIn(6);
    boolean offpeak = oneIn(4);
    SortedCompactionPolicy policy = policy(name, conf, info);
    boolean needs = policy.needsCompaction(files, new ArrayList<>());
    // needsCompaction sets the limit of a window's policy, so each question gets a new policy.
    boolean due = policy(name, conf, info).shouldPerformMajorCompaction(files);
    CompactionRequestImpl r = policy(name, conf, info).selectCompaction(files, new ArrayList<>(), major, offpeak, major);
    String chosen = r.getFiles().stream().map(f -> "" + files.indexOf(f)).collect(Collectors.joining(","));
    String boundaries = r instanceof DateTieredCompactionRequest tiered
      ? tiered.getBoundaries().size() + "," + tiered.getBoundaries().stream().mapToLong(b -> b).sum() : "";
    return String.join(" ", name, settings, "" + (ttl == Long.MAX_VALUE ? -1 : ttl / 1000), "" + info.blocking,
      major ? "1" : "0", offpeak ? "1" : "0",
      files.isEmpty() ? "-" : files.stream().map(Object::toString).collect(Collectors.joining(";")),
      chosen.isEmpty() ? "-" : chosen, r.isMajor() ? "1" : "0", r.isAllFiles() ? "1" : "0", r.isOffPeak() ? "1" : "0",
      needs ? "1" : "0", due ? "1" : "0", boundaries.isEmpty() ? "-" : boundaries);
  }

  public static void main(String[] arguments) throws Exception {
    EnvironmentEdgeManager.injectEdge(() -> NOW);
    CompactionOracle oracle = new CompactionOracle(Long.parseLong(arguments[0]));
    int count = Integer.parseInt(arguments[1]);
    try (PrintWriter out = new PrintWriter(arguments[2], "UTF-8")) {
      out.printf("# Written by tests/compat/compaction/CompactionOracle.java %s %d with HBase 2.6.1.%n", arguments[0], count);
      for (int i = 0; i < count; i++) {
        out.println(oracle.run());
      }
    }
  }
}
