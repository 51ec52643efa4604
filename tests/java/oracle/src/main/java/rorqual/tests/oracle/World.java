// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The objects of a seed's history: the table with its random family settings, and few rows, columns and timestamps, so that
 * operations often touch the same cells.
 *
 * <p>Explicit timestamps are small numbers, or a few fixed intervals before {@link #origin}, the start of the history. TTLs are
 * halfway between two of these intervals, so that no cell expires while a history runs: a cell has expired from the beginning
 * or never does.
 */
final class World {
    /** A history must take less than half of this interval; on a busy machine it takes minutes. */
    static final long STEP = 4_000_000;
    static final long[] LIVES = {6_000_000, 14_000_000};
    static final int MAX_CELL = 3000;
    /** Timestamps of cells at the empty qualifier are at most this, those of family markers are above it. */
    private static final int LOW = 3;
    private static final long FIRST_WIDE = 8000;
    private static final String[] ALL_ROWS = {"a", "a\0", "aa", "ab", "abc", "b", "b\u00ff", "ba", "c", "ca", "cb", "d", "e", "\u00ff"};

    final long seed;
    final long origin;
    /** A timestamp so late that cells with it do not expire during the history. */
    final long future;
    final List<byte[]> families = new ArrayList<>();
    final List<byte[]> rows = new ArrayList<>();
    final List<byte[]> qualifiers = new ArrayList<>();
    final List<Long> times = new ArrayList<>();
    /** With NEW_VERSION_BEHAVIOR, HBase handles seek hints of filters differently (docs/compatibility.md), and loses family markers. */
    final boolean emptyQualifier;
    /** All values have eight bytes, because LongComparator fails on shorter ones. */
    final boolean longs;
    final boolean tags;
    /**
     * Histories of higher seeds also have minor compactions of families with a TTL, filters in gets of a batch, and WhileMatch over
     * filters that ignore rows. Histories of lower seeds must not change, because known.tsv names their operations.
     */
    final boolean wide;
    private final List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
    private final byte[][] splits;

    World(long seed, long origin) {
        this.seed = seed;
        this.origin = origin;
        future = origin + 1_000 * STEP;
        Dice dice = new Dice(seed, -1);
        boolean lives = dice.chance(50);
        emptyQualifier = dice.chance(20);
        for (String name : new String[] {"f", "g", "h"}) {
            if (families.isEmpty() || dice.chance(75)) {
                families.add(bytes(name));
                descriptors.add(family(name, lives, !emptyQualifier, dice));
            }
        }
        for (String row : ALL_ROWS) {
            if (rows.isEmpty() || dice.chance(75)) {
                rows.add(row.getBytes(StandardCharsets.ISO_8859_1));
            }
        }
        for (String qualifier : new String[] {"", "a", "aa", "ab", "b", "c"}) {
            if (qualifier.isEmpty() ? emptyQualifier : dice.chance(80) || qualifiers.isEmpty()) {
                qualifiers.add(bytes(qualifier));
            }
        }
        for (long time = 1; time <= 7; time++) {
            times.add(time);
        }
        if (lives) {
            for (int i = 0; i < 5; i++) {
                times.add(origin - i * STEP);
                times.add(origin - i * STEP);
            }
            times.add(future);
        }
        tags = dice.chance(50);
        wide = seed >= FIRST_WIDE;
        longs = dice.chance(25);
        splits = dice.of(new byte[0][], new byte[][] {bytes("b")}, new byte[][] {bytes("aa"), bytes("c")});
    }

    private static ColumnFamilyDescriptor family(String name, boolean lives, boolean newVersions, Dice dice) {
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(bytes(name));
        int versions = dice.of(1, 1, 2, 3, 5, Integer.MAX_VALUE);
        family.setMaxVersions(versions);
        // With it, HBase shows puts at the empty qualifier that a family marker deleted.
        family.setNewVersionBehavior(newVersions && dice.chance(12));
        // A major compaction of HBase counts kept markers as versions if NEW_VERSION_BEHAVIOR is set, and drops live cells.
        family.setKeepDeletedCells(family.build().isNewVersionBehavior() ? KeepDeletedCells.FALSE
            : dice.of(KeepDeletedCells.FALSE, KeepDeletedCells.FALSE, KeepDeletedCells.TRUE, KeepDeletedCells.TTL));
        if (lives && dice.chance(60)) {
            family.setTimeToLive((int) (dice.of(LIVES[0], LIVES[1]) / 1000));
        }
        boolean expires = family.build().getTimeToLive() != HConstants.FOREVER;
        if (dice.chance(40)) {
            int least = Math.min(versions, dice.between(1, 3));
            // If the read names columns, HBase returns the MIN_VERSIONS-th version even if it has expired and fewer were requested.
            family.setMinVersions(family.build().isNewVersionBehavior() && expires ? 1 : least);
        }
        BloomType bloom = dice.of(BloomType.NONE, BloomType.ROW, BloomType.ROWCOL, BloomType.ROWPREFIX_FIXED_LENGTH);
        // If the read names columns, HBase loops endlessly at the placeholder for a file that the bloom filter
        // excludes.
        family.setBloomFilterType(family.build().isNewVersionBehavior() && bloom == BloomType.ROWCOL ? BloomType.ROW : bloom);
        if (family.build().getBloomFilterType() == BloomType.ROWPREFIX_FIXED_LENGTH) {
            family.setConfiguration("RowPrefixBloomFilter.prefix_length", "1");
        }
        family.setDataBlockEncoding(dice.of(DataBlockEncoding.NONE, DataBlockEncoding.PREFIX, DataBlockEncoding.DIFF,
            DataBlockEncoding.FAST_DIFF, DataBlockEncoding.ROW_INDEX_V1));
        family.setCompressionType(dice.of(Compression.Algorithm.NONE, Compression.Algorithm.GZ, Compression.Algorithm.SNAPPY,
            Compression.Algorithm.LZ4, Compression.Algorithm.ZSTD));
        family.setBlocksize(dice.of(1024, 1024, 4096, 65536));
        family.setInMemory(dice.chance(30));
        // Only the history starts compactions. For a minor compaction both servers must choose the same files: all small
        // ones, whatever their exact sizes.
        family.setConfiguration("hbase.hstore.compaction.min", "2");
        family.setConfiguration("hbase.hstore.compaction.max", "100");
        // The sum of the small files must stay below the limit, because HBase compares sums, too.
        family.setConfiguration("hbase.hstore.compaction.max.size", "120000");
        family.setConfiguration("hbase.hstore.blockingStoreFiles", "1000");
        return family.build();
    }

    /**
     * Whether HBase continues after a column when a filter has finished with the column. At the empty qualifier HBase goes to another
     * cell; if the read names columns of a family with NEW_VERSION_BEHAVIOR it stays at the column, and returns older versions
     * (NewVersionBehaviorTracker.getColumnHint).
     */
    boolean skipsColumns(Map<byte[], NavigableSet<byte[]>> named) {
        return !emptyQualifier && descriptors.stream()
            .noneMatch(family -> family.isNewVersionBehavior() && named.get(family.getName()) != null);
    }

    /** Whether all cells of the family may expire. */
    boolean expires(byte[] name) {
        return descriptors.stream().anyMatch(family -> Bytes.equals(family.getName(), name)
            && family.getTimeToLive() != HConstants.FOREVER && family.getMinVersions() == 0);
    }

    TableDescriptor table(TableName name) {
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
        descriptors.forEach(table::setColumnFamily);
        table.setValue("hbase.server.keyvalue.maxsize", String.valueOf(MAX_CELL));
        return table.build();
    }

    byte[][] splits() {
        return splits;
    }

    // ---- one of each -------------------------------------------------------------------------------------------------

    byte[] row(Dice dice) {
        return dice.of(rows);
    }

    /** In most cases an existing row. */
    byte[] rowLike(Dice dice) {
        return dice.chance(75) ? row(dice) : dice.letters("abc\0\u00ff", 1, 3);
    }

    byte[] family(Dice dice) {
        return dice.of(families);
    }

    byte[] qualifier(Dice dice) {
        return dice.of(qualifiers);
    }

    byte[] qualifierLike(Dice dice) {
        return dice.chance(75) ? qualifier(dice) : dice.letters("abc", emptyQualifier ? 0 : 1, 3);
    }

    long time(Dice dice) {
        return dice.of(times);
    }

    /**
     * A timestamp for a cell in the column, or for a family marker: HBase skips family markers that sort after cells at the empty
     * qualifier, so markers get timestamps that sort before all of these.
     */
    long time(byte[] qualifier, Dice dice) {
        return emptyQualifier && qualifier.length == 0 ? dice.between(1, LOW) : time(dice);
    }

    long familyMarkerTime(Dice dice) {
        long time = time(dice);
        return emptyQualifier && time <= LOW ? time + LOW : time;
    }

    byte[] value(Dice dice) {
        return switch (longs ? 0 : dice.below(8)) {
            case 0 -> Bytes.toBytes((long) dice.below(5) - 2);
            case 1 -> Bytes.toBytes(new BigDecimal(dice.below(300) - 150).movePointLeft(dice.below(3)));
            case 2 -> dice.letters("abAB1", 30, 400);
            default -> dice.letters("abAB1", 0, 5);
        };
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("seed " + seed + ", " + (splits.length + 1) + " regions" + (tags ? ", tags" : "") + (longs ? ", longs" : ""));
        for (ColumnFamilyDescriptor family : descriptors) {
            text.append("\n  ").append(family.toStringCustomizedValues().replaceAll(", CONFIGURATION => .*", ""))
                .append(family.getTimeToLive() == HConstants.FOREVER ? "" : ", ttl " + family.getTimeToLive());
        }
        return text.toString();
    }
}
