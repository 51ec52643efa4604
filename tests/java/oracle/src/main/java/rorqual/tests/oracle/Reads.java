// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Query;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/** Random gets and scans. */
final class Reads {
    /** More results than any scan has: a limit for a server whose scan never ends. */
    private static final int ENDLESS = 20_000;
    /** Filters that a row key may end, and lists that end as soon as one of their filters does. */
    private static final Pattern OF_ROWS = Pattern.compile("MUST_PASS_ONE|\\b(Row|Prefix|InclusiveStop|Page|FuzzyRow|MultiRowRange|RandomRow|ColumnCountGet)Filter");
    private final World world;
    private final Dice dice;

    Reads(World world, Dice dice) {
        this.world = world;
        this.dice = dice;
    }

    Operation any() {
        switch (dice.below(20)) {
            case 0, 1, 2 -> {
                Get get = get(world.rowLike(dice));
                return Operation.read(text(get), (place, answer) -> answer.thing(place.table.get(get)));
            }
            case 3 -> {
                Get get = get(world.rowLike(dice));
                return Operation.read("exists " + text(get), (place, answer) -> answer.say(place.table.exists(get)));
            }
            case 4 -> {
                List<Get> gets = gets();
                return Operation.read("gets " + texts(gets), (place, answer) -> {
                    for (Result result : place.table.get(gets)) {
                        answer.thing(result);
                    }
                });
            }
            case 5 -> {
                List<Get> gets = gets();
                return Operation.read("exist " + texts(gets), (place, answer) -> {
                    for (boolean exists : place.table.exists(gets)) {
                        answer.say(exists);
                    }
                });
            }
            default -> {
                Scan scan = dice.chance(12) ? everything() : scan();
                // A few scanners are closed early, after `most` results.
                int most = scan.getMaxResultSize() < 0 && dice.chance(5) && !scan.getAllowPartialResults() ? dice.between(1, 4) : ENDLESS;
                boolean bytes = scan.getAllowPartialResults() || scan.getMaxResultSize() > 0 && scan.getBatch() > 0;
                return Operation.read(text(scan) + (most < ENDLESS ? " (first " + most + ")" : ""), (place, answer) -> {
                    try (ResultScanner scanner = place.table.getScanner(scan)) {
                        int seen = 0;
                        for (Result result = scanner.next(); result != null; result = scanner.next()) {
                            if (result.isCursor()) {
                                // Servers may pause at different positions.
                                continue;
                            }
                            if (bytes) {
                                answer.part(result);
                            } else {
                                answer.result(result);
                            }
                            if (++seen == most) {
                                break;
                            }
                        }
                    } catch (IOException | RuntimeException e) {
                        if (scan.getMaxResultSize() > 0) {
                            answer.forget();
                        }
                        throw e;
                    }
                });
            }
        }
    }

    private List<Get> gets() {
        List<Get> gets = new ArrayList<>();
        for (int i = dice.between(1, 5); i > 0; i--) {
            gets.add(get(world.rowLike(dice)));
        }
        return gets;
    }

    /** A raw scan of the whole table. */
    private Scan everything() {
        Scan scan = new Scan().readAllVersions();
        return dice.chance(60) ? scan.setRaw(true) : scan;
    }

    @SuppressWarnings("deprecation")
    Get get(byte[] row) {
        Get get = new Get(row);
        try {
            if (dice.chance(50)) {
                get.readVersions(dice.of(1, 2, 3, Integer.MAX_VALUE));
            }
            if (dice.chance(15)) {
                long[] range = range();
                get.setTimeRange(range[0], range[1]);
            } else if (dice.chance(8)) {
                get.setTimestamp(world.time(dice));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        for (int i = dice.chance(50) ? 0 : dice.between(1, 3); i > 0; i--) {
            if (dice.chance(40)) {
                get.addFamily(world.family(dice));
            } else {
                get.addColumn(dice.below(100) == 0 ? World.bytes("none") : world.family(dice), world.qualifier(dice));
            }
        }
        get.setCacheBlocks(dice.chance(70));
        get.setCheckExistenceOnly(dice.chance(5));
        common(get);
        if (dice.chance(10)) {
            get.setMaxResultsPerColumnFamily(dice.between(0, 4));
        }
        if (dice.chance(10)) {
            get.setRowOffsetPerColumnFamily(dice.between(0, 3));
        }
        return get;
    }

    /**
     * After a family marker in a raw scan, the next column is for HBase mostly the same column. If the scan names columns, HBase calls
     * its filters for the start row even if that row does not exist (HBASE-27691), which ends a WhileMatch over filters on rows.
     */
    private Filter filter(Scan scan) {
        Map<byte[], NavigableSet<byte[]>> named = scan.getFamilyMap();
        boolean anyNamed = named.values().stream().anyMatch(Objects::nonNull);
        Trees trees = new Trees(world, dice, true, !scan.isRaw() && world.skipsColumns(named));
        while (true) {
            Filter filter = trees.any();
            String text = Trees.text(filter);
            // The value of a marker does not have the eight bytes that these comparators need.
            boolean ofNumbers = scan.isRaw() && (text.contains("LongComparator") || text.contains("BigDecimalComparator"));
            if (!ofNumbers && !(anyNamed && text.contains("WhileMatch") && (!world.wide || OF_ROWS.matcher(text).find()))) {
                return filter;
            }
        }
    }

    private void common(Query query) {
        if (dice.chance(45)) {
            query.setFilter(query instanceof Scan scan ? filter(scan) : new Trees(world, dice, false, world.skipsColumns(((Get) query).getFamilyMap())).any());
        }
        if (dice.chance(15)) {
            long[] range = range();
            query.setColumnFamilyTimeRange(world.family(dice), range[0], range[1]);
        }
        if (dice.chance(10)) {
            query.setIsolationLevel(IsolationLevel.READ_UNCOMMITTED);
        }
        if (dice.chance(5)) {
            query.setConsistency(Consistency.TIMELINE);
        }
        if (dice.chance(20)) {
            query.setLoadColumnFamiliesOnDemand(dice.chance(50));
        }
    }

    private long[] range() {
        long a = dice.chance(50) ? 0 : world.time(dice);
        long b = world.time(dice);
        return new long[] {Math.min(a, b), Math.max(a, b) + dice.between(0, 2)};
    }

    @SuppressWarnings("deprecation")
    private Scan scan() {
        Scan scan = new Scan();
        if (dice.chance(50)) {
            scan.withStartRow(world.rowLike(dice), dice.chance(60));
        }
        if (dice.chance(50)) {
            scan.withStopRow(world.rowLike(dice), dice.chance(50));
        }
        scan.setReversed(dice.chance(25));
        try {
            if (dice.chance(60)) {
                scan.readVersions(dice.of(1, 2, 3, Integer.MAX_VALUE));
            }
            if (dice.chance(15)) {
                long[] range = range();
                scan.setTimeRange(range[0], range[1]);
            } else if (dice.chance(8)) {
                scan.setTimestamp(world.time(dice));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        // In a raw scan with a limit of versions, HBase searches the next column endlessly at the empty qualifier.
        scan.setRaw(dice.chance(12) && !world.emptyQualifier);
        for (int i = dice.chance(55) || scan.isRaw() && dice.chance(90) ? 0 : dice.between(1, 3); i > 0; i--) {
            if (dice.chance(40)) {
                scan.addFamily(world.family(dice));
            } else {
                scan.addColumn(dice.below(100) == 0 ? World.bytes("none") : world.family(dice), world.qualifier(dice));
            }
        }
        common(scan);
        if (dice.chance(12)) {
            scan.setMaxResultsPerColumnFamily(dice.between(0, 4));
        }
        if (dice.chance(12)) {
            scan.setRowOffsetPerColumnFamily(dice.between(0, 3));
        }
        if (dice.chance(50)) {
            scan.setCaching(dice.of(1, 2, 3, 100));
        }
        // The client itself refuses a batch with a filter that decides on whole rows.
        if (dice.chance(20) && (scan.getFilter() == null || !scan.getFilter().hasFilterRow())) {
            scan.setBatch(dice.between(1, 5));
        }
        if (dice.chance(20) && scan.getBatch() <= 0) {
            scan.setLimit(dice.between(1, 5));
        }
        if (dice.chance(30)) {
            scan.setMaxResultSize(dice.of(1, 50, 200, 500, 2000));
        }
        // With a limit of rows, the client counts a row twice if HBase ends a part exactly at the row's end
        // (AllowPartialScanResultCache).
        scan.setAllowPartialResults(dice.chance(15) && scan.getLimit() <= 0);
        scan.setCacheBlocks(dice.chance(70));
        scan.setReadType(dice.of(Scan.ReadType.DEFAULT, Scan.ReadType.PREAD, Scan.ReadType.STREAM));
        if (dice.chance(10) && scan.getBatch() < 0) {
            scan.setSmall(true);
        }
        if (dice.chance(8) && scan.getBatch() <= 0 && !scan.getAllowPartialResults()) {
            scan.setOneRowLimit();
        }
        if (dice.chance(8)) {
            scan.setNeedCursorResult(true);
        }
        scan.setScanMetricsEnabled(dice.chance(10));
        return scan;
    }

    // ---- as text -----------------------------------------------------------------------------------------------------

    static String text(Get get) {
        return "Get " + Bytes.toStringBinary(get.getRow()) + what(get.getFamilyMap(), get.getMaxVersions(), get.getTimeRange(),
            get.getMaxResultsPerColumnFamily(), get.getRowOffsetPerColumnFamily())
            + (get.isCheckExistenceOnly() ? " existence" : "") + options(get);
    }

    private static String text(Scan scan) {
        return "Scan" + (scan.getStartRow().length == 0 ? "" : " from " + Bytes.toStringBinary(scan.getStartRow()) + (scan.includeStartRow() ? "" : " excluded"))
            + (scan.getStopRow().length == 0 ? "" : " to " + Bytes.toStringBinary(scan.getStopRow()) + (scan.includeStopRow() ? " included" : ""))
            + what(scan.getFamilyMap(), scan.getMaxVersions(), scan.getTimeRange(), scan.getMaxResultsPerColumnFamily(), scan.getRowOffsetPerColumnFamily())
            + (scan.isRaw() ? " raw" : "") + (scan.isReversed() ? " reversed" : "") + (scan.getLimit() > 0 ? " limit=" + scan.getLimit() : "")
            + (scan.getCaching() > 0 ? " caching=" + scan.getCaching() : "") + (scan.getBatch() > 0 ? " batch=" + scan.getBatch() : "")
            + (scan.getMaxResultSize() > 0 ? " size=" + scan.getMaxResultSize() : "") + (scan.getAllowPartialResults() ? " partial" : "")
            + (scan.isSmall() ? " small" : "") + (scan.isNeedCursorResult() ? " cursor" : "")
            + (scan.getReadType() == Scan.ReadType.DEFAULT ? "" : " " + scan.getReadType()) + (scan.isScanMetricsEnabled() ? " metrics" : "") + options(scan);
    }

    private static String what(Map<byte[], NavigableSet<byte[]>> columns, int versions, TimeRange range, int most, int offset) {
        StringBuilder text = new StringBuilder();
        columns.forEach((family, qualifiers) -> {
            text.append(' ').append(Bytes.toString(family));
            if (qualifiers != null) {
                text.append(':');
                qualifiers.forEach(qualifier -> text.append(Bytes.toStringBinary(qualifier)).append(','));
            }
        });
        text.append(versions == 1 ? "" : versions == Integer.MAX_VALUE ? " versions=all" : " versions=" + versions);
        text.append(range.isAllTime() ? "" : " in " + span(range));
        return text.append(most >= 0 ? " most=" + most : "").append(offset > 0 ? " offset=" + offset : "").toString();
    }

    private static String span(TimeRange range) {
        return "[" + range.getMin() + "," + range.getMax() + ")";
    }

    private static String options(Query query) {
        StringBuilder text = new StringBuilder();
        query.getColumnFamilyTimeRange().forEach((family, range) -> text.append(' ').append(Bytes.toString(family)).append(" in ").append(span(range)));
        if (query.getIsolationLevel() != IsolationLevel.READ_COMMITTED) {
            text.append(" uncommitted");
        }
        if (query.getLoadColumnFamiliesOnDemandValue() != null) {
            text.append(" on-demand=").append(query.getLoadColumnFamiliesOnDemandValue());
        }
        return query.getFilter() == null ? text.toString() : text + " filter " + Trees.text(query.getFilter());
    }

    private static String texts(List<Get> gets) {
        StringBuilder text = new StringBuilder();
        gets.forEach(get -> text.append("\n      ").append(text(get)));
        return text.toString();
    }
}
