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
 * What a seed's history is about: the table with its random family settings, and few rows, columns and timestamps, so that
 * everything collides with everything.
 *
 * <p>Explicit timestamps are small numbers, or so many seconds before {@link #origin}, the start of the history. Times to live
 * lie in the middle between two of the latter, so that nothing expires while a history runs, and what is to have expired has so
 * from the beginning.
 */
final class World {
    /** A history must not last half as long; on a busy machine it takes minutes. */
    static final long STEP = 4_000_000;
    static final long[] LIVES = {6_000_000, 14_000_000};
    static final int MAX_CELL = 3000;
    /** Times of cells at the empty qualifier are not above it, those of family markers are. */
    private static final int LOW = 3;
    private static final long FIRST_WIDE = 8000;
    private static final String[] ALL_ROWS = {"a", "a\0", "aa", "ab", "abc", "b", "b\u00ff", "ba", "c", "ca", "cb", "d", "e", "\u00ff"};

    final long seed;
    final long origin;
    /** A time that no time to live ends before. */
    final long future;
    final List<byte[]> families = new ArrayList<>();
    final List<byte[]> rows = new ArrayList<>();
    final List<byte[]> qualifiers = new ArrayList<>();
    final List<Long> times = new ArrayList<>();
    /** There the seek hints of filters do other things than elsewhere (docs/compatibility.md), and family markers are lost. */
    final boolean emptyQualifier;
    /** All values have eight bytes: LongComparator is defined on nothing shorter. */
    final boolean longs;
    final boolean tags;
    /**
     * Histories of later seeds have more: minor compactions of families that expire, filters in gets of a batch, WhileMatch over filters
     * that do not look at rows. Those before stay as they are: known.tsv names their operations.
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
            // Where columns are named, HBase shows the MIN_VERSIONS-th version if it is expired, however few are asked for.
            family.setMinVersions(family.build().isNewVersionBehavior() && expires ? 1 : least);
        }
        BloomType bloom = dice.of(BloomType.NONE, BloomType.ROW, BloomType.ROWCOL, BloomType.ROWPREFIX_FIXED_LENGTH);
        // Where columns are named, HBase does not get past what stands for a file that its bloom leaves out.
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
        // Nothing is compacted but by the history. Where it asks for a minor compaction, both servers have to choose the same
        // files: all that are small, whatever their exact sizes.
        family.setConfiguration("hbase.hstore.compaction.min", "2");
        family.setConfiguration("hbase.hstore.compaction.max", "100");
        // Not only each: all together have to stay below, as sums count too.
        family.setConfiguration("hbase.hstore.compaction.max.size", "120000");
        family.setConfiguration("hbase.hstore.blockingStoreFiles", "1000");
        return family.build();
    }

    /**
     * Will HBase go on behind a column that a filter is done with? At the empty qualifier it goes elsewhere; where columns of a family
     * with NEW_VERSION_BEHAVIOR are named it stays, and shows older versions instead (NewVersionBehaviorTracker.getColumnHint).
     */
    boolean skipsColumns(Map<byte[], NavigableSet<byte[]>> named) {
        return !emptyQualifier && descriptors.stream()
            .noneMatch(family -> family.isNewVersionBehavior() && named.get(family.getName()) != null);
    }

    /** May all cells of the family expire? */
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

    /** Mostly one that exists. */
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
     * For a cell in that column, and for a marker that deletes of all columns of a family: HBase passes over such a marker that lies
     * behind cells at the empty qualifier, so there it lies before all of them.
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
