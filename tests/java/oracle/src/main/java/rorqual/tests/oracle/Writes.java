// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/** Random mutations. */
final class Writes {
    private static final byte[] NO_FAMILY = World.bytes("none");
    private final World world;
    private final Dice dice;
    /** Set by operations for which the server chooses a timestamp. */
    private boolean stamped;

    Writes(World world, Dice dice) {
        this.world = world;
        this.dice = dice;
    }

    Operation any() {
        byte[] row = world.row(dice);
        switch (dice.below(22)) {
            case 0, 1, 2, 3, 4, 5 -> {
                Put put = put(row, true);
                return operation(text(put), (place, answer) -> place.table.put(put));
            }
            case 6, 7 -> {
                List<Put> puts = new ArrayList<>();
                for (int i = dice.between(1, 6); i > 0; i--) {
                    puts.add(put(world.row(dice), true));
                }
                return operation("puts " + texts(puts), (place, answer) -> place.table.put(puts));
            }
            case 8, 9, 10, 11 -> {
                Delete delete = delete(row);
                return operation(text(delete), (place, answer) -> place.table.delete(delete));
            }
            case 12 -> {
                List<Delete> deletes = new ArrayList<>();
                for (byte[] one : someRows()) {
                    deletes.add(delete(one));
                }
                return operation("deletes " + texts(deletes), (place, answer) -> place.table.delete(deletes));
            }
            case 13, 14 -> {
                RowMutations mutations = mutations(row);
                return operation("mutate " + texts(mutations.getMutations()),
                    (place, answer) -> answer.thing(place.table.mutateRow(mutations)));
            }
            case 15 -> {
                Increment increment = increment(row);
                return operation(text(increment), (place, answer) -> answer.thing(place.table.increment(increment)));
            }
            case 16 -> {
                if (world.longs) {
                    Increment increment = increment(row);
                    return operation(text(increment), (place, answer) -> answer.thing(place.table.increment(increment)));
                }
                Append append = append(row);
                return operation(text(append), (place, answer) -> answer.thing(place.table.append(append)));
            }
            case 17 -> {
                return oldCheck(row);
            }
            case 18, 19 -> {
                CheckAndMutate check = check(row);
                return operation(text(check), (place, answer) -> answer.thing(place.table.checkAndMutate(check)));
            }
            case 20 -> {
                List<CheckAndMutate> checks = new ArrayList<>();
                for (byte[] one : someRows()) {
                    checks.add(check(one));
                }
                return operation("checks " + texts(checks), (place, answer) -> {
                    for (CheckAndMutateResult result : place.table.checkAndMutate(checks)) {
                        answer.thing(result);
                    }
                });
            }
            default -> {
                return batch();
            }
        }
    }

    private Operation operation(String text, Operation.Action action) {
        return stamped ? Operation.stamped(text, action) : Operation.write(text, action);
    }

    /** Different rows, because each server processes the rows of a call in its own order. */
    private List<byte[]> someRows() {
        List<byte[]> rows = new ArrayList<>(world.rows);
        java.util.Collections.shuffle(rows, dice.random());
        return rows.subList(0, Math.min(rows.size(), dice.between(1, 5)));
    }

    private Operation batch() {
        List<Row> actions = new ArrayList<>();
        for (byte[] row : someRows()) {
            actions.add(switch (dice.below(10)) {
                case 0, 1, 2 -> put(row, true);
                case 3, 4 -> delete(row);
                case 5 -> increment(row);
                case 6 -> world.longs ? increment(row) : append(row);
                case 7 -> mutations(row);
                case 8 -> check(row);
                default -> {
                    Get get = new Reads(world, dice).get(row);
                    yield world.wide ? quiet(get) : get.setFilter(null);
                }
            });
        }
        return operation("batch " + texts(actions), (place, answer) -> {
            Object[] results = new Object[actions.size()];
            try {
                place.table.batch(actions, results);
            } catch (IOException e) {
                // The results contain the error of each action.
                answer.say("some failed");
            }
            for (Object result : results) {
                answer.thing(result);
            }
        });
    }

    /** On HBase an exception of a filter fails the whole call, so filters that may throw are replaced. */
    private Get quiet(Get get) {
        return get.getFilter() == null ? get
            : get.setFilter(harmless(new Trees(world, dice, true, world.skipsColumns(get.getFamilyMap())), false));
    }

    // ---- single mutations --------------------------------------------------------------------------------------------

    private Put put(byte[] row, boolean mayFail) {
        Put put = new Put(row);
        boolean life = dice.chance(8);
        if (life) {
            put.setTTL(dice.of(World.LIVES[0], World.LIVES[1]));
        }
        for (int i = dice.below(4); i >= 0; i--) {
            byte[] family = mayFail && dice.below(150) == 0 ? NO_FAMILY : world.family(dice);
            byte[] value = mayFail && dice.below(200) == 0 ? new byte[World.MAX_CELL] : world.value(dice);
            boolean serverChooses = dice.chance(4);
            byte[] qualifier = world.qualifier(dice);
            if (serverChooses && qualifier.length > 0) {
                stamped = true;
                put.addColumn(family, qualifier, value);
            } else {
                put.addColumn(family, qualifier, world.time(qualifier, dice), value);
            }
        }
        return put;
    }

    private Delete delete(byte[] row) {
        if (dice.chance(10)) {
            if (dice.chance(20)) {
                stamped = true;
                return new Delete(row);
            }
            return new Delete(row, world.familyMarkerTime(dice));
        }
        Delete delete = new Delete(row);
        for (int i = dice.chance(75) ? 1 : dice.between(2, 3); i > 0; i--) {
            byte[] family = dice.below(150) == 0 ? NO_FAMILY : world.family(dice);
            byte[] qualifier = world.qualifier(dice);
            long time = world.time(qualifier, dice);
            int kind = dice.below(24);
            // At the empty qualifier, HBase's compactions loop endlessly at a Delete and a Put with the same timestamp.
            switch (qualifier.length == 0 && kind > 6 ? 7 : kind) {
                case 0, 1, 2 -> delete.addFamily(family, world.familyMarkerTime(dice));
                case 3, 4, 5, 6 -> delete.addFamilyVersion(family, world.familyMarkerTime(dice));
                case 7, 8, 9, 10, 11, 12 -> delete.addColumns(family, qualifier, time);
                // Deletes the newest version; if the column has none, the marker gets the server's time.
                case 13, 14 -> {
                    stamped = true;
                    delete.addColumn(family, qualifier);
                }
                case 15 -> {
                    stamped = true;
                    delete.addColumns(family, qualifier);
                }
                default -> delete.addColumn(family, qualifier, time);
            }
        }
        return delete;
    }

    /** In most cases a column that only such mutations use. Never the empty qualifier, because the server chooses the timestamp
     * (World.time). */
    private byte[] counted(String own) {
        byte[] qualifier = dice.chance(75) ? World.bytes(own) : world.qualifier(dice);
        return qualifier.length == 0 ? World.bytes(own) : qualifier;
    }

    private Increment increment(byte[] row) {
        stamped = true;
        Increment increment = new Increment(row);
        for (int i = dice.below(3); i >= 0; i--) {
            // In most cases a column that only increments write to; other columns have values of other lengths.
            increment.addColumn(world.family(dice), counted("n"), dice.below(9) - 3);
        }
        increment.setReturnResults(dice.chance(85));
        if (dice.chance(10)) {
            increment.setTTL(World.LIVES[1]);
        }
        if (dice.chance(10)) {
            try {
                increment.setTimeRange(0, world.time(dice) + 1);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
        return increment;
    }

    private Append append(byte[] row) {
        stamped = true;
        Append append = new Append(row);
        for (int i = dice.below(3); i >= 0; i--) {
            append.addColumn(world.family(dice), counted("t"), dice.letters("abAB1", 0, 3));
        }
        append.setReturnResults(dice.chance(85));
        if (dice.chance(10)) {
            append.setTTL(World.LIVES[1]);
        }
        if (dice.chance(10)) {
            append.setTimeRange(0, world.time(dice) + 1);
        }
        return append;
    }

    private RowMutations mutations(byte[] row) {
        List<Mutation> all = new ArrayList<>();
        for (int i = dice.below(4); i >= 0; i--) {
            all.add(switch (dice.below(8)) {
                case 0, 1, 2, 3 -> put(row, true);
                case 4, 5 -> delete(row);
                case 6 -> increment(row);
                default -> world.longs ? increment(row) : append(row);
            });
        }
        try {
            return RowMutations.of(all);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    // ---- conditions --------------------------------------------------------------------------------------------------

    private TimeRange range() {
        long a = dice.chance(50) ? 0 : world.time(dice);
        long b = world.time(dice);
        return TimeRange.between(Math.min(a, b), Math.max(a, b) + dice.between(1, 2));
    }

    /** Without filters that throw NullPointerException in HBase: inside a Skip, a filter does not get the row key before its cells. */
    private static Filter harmless(Trees trees, boolean isCondition) {
        while (true) {
            Filter filter = isCondition ? trees.condition() : trees.any();
            if (!Trees.text(filter).matches("(?s).*(Skip|MUST_PASS).*(MultiRowRange|FuzzyRow)Filter.*")) {
                return filter;
            }
        }
    }

    private CheckAndMutate check(byte[] row) {
        CheckAndMutate.Builder builder = CheckAndMutate.newBuilder(row);
        byte[] family = dice.below(100) == 0 ? NO_FAMILY : world.family(dice);
        byte[] qualifier = world.qualifier(dice);
        // Exceptions other than IOException fail the whole call on HBase, so no operation in a list may throw one.
        Trees trees = new Trees(world, dice, true);
        switch (dice.below(4)) {
            case 0 -> builder.ifNotExists(family, qualifier);
            case 1 -> builder.ifMatches(family, qualifier, trees.operator(), world.value(dice));
            case 2 -> builder.ifEquals(family, qualifier, world.value(dice));
            default -> builder.ifMatches(harmless(trees, true));
        }
        if (dice.chance(25)) {
            builder.timeRange(range());
        }
        return switch (dice.below(6)) {
            case 0, 1 -> builder.build(put(row, true));
            case 2 -> builder.build(delete(row));
            case 3 -> builder.build(increment(row));
            case 4 -> world.longs ? builder.build(increment(row)) : builder.build(append(row));
            default -> builder.build(mutations(row));
        };
    }

    @SuppressWarnings("deprecation")
    private Operation oldCheck(byte[] row) {
        byte[] family = world.family(dice);
        byte[] qualifier = world.qualifier(dice);
        CompareOperator operator = new Trees(world, dice).operator();
        byte[] value = world.value(dice);
        TimeRange range = dice.chance(30) ? range() : null;
        int form = dice.below(4);
        Filter filter = form == 3 ? new Trees(world, dice).condition() : null;
        int what = dice.below(3);
        Put put = what == 0 ? put(row, true) : null;
        Delete delete = what == 1 ? delete(row) : null;
        RowMutations mutations = what == 2 ? mutations(row) : null;
        String then = what == 0 ? text(put) : what == 1 ? text(delete) : texts(mutations.getMutations());
        String column = Bytes.toString(family) + ":" + Bytes.toString(qualifier);
        String condition = switch (form) {
            case 0 -> column + " absent";
            case 1 -> column + " equals " + Bytes.toStringBinary(value);
            case 2 -> column + " " + operator + " " + Bytes.toStringBinary(value);
            default -> Trees.text(filter);
        };
        return operation("if " + Bytes.toStringBinary(row) + " " + condition + (range == null ? "" : " in " + range) + " then " + then,
            (place, answer) -> {
                if (form == 3) {
                    Table.CheckAndMutateWithFilterBuilder builder = place.table.checkAndMutate(row, filter);
                    builder = range == null ? builder : builder.timeRange(range);
                    answer.say(what == 0 ? builder.thenPut(put) : what == 1 ? builder.thenDelete(delete) : builder.thenMutate(mutations));
                } else {
                    Table.CheckAndMutateBuilder builder = place.table.checkAndMutate(row, family).qualifier(qualifier);
                    builder = form == 0 ? builder.ifNotExists() : form == 1 ? builder.ifEquals(value) : builder.ifMatches(operator, value);
                    builder = range == null ? builder : builder.timeRange(range);
                    answer.say(what == 0 ? builder.thenPut(put) : what == 1 ? builder.thenDelete(delete) : builder.thenMutate(mutations));
                }
            });
    }

    // ---- as text -----------------------------------------------------------------------------------------------------

    private static String text(Mutation mutation) {
        StringBuilder text = new StringBuilder(mutation.getClass().getSimpleName()).append(' ').append(Bytes.toStringBinary(mutation.getRow()));
        mutation.getFamilyCellMap().values().forEach(cells -> cells.forEach(cell -> {
            byte[] value = org.apache.hadoop.hbase.CellUtil.cloneValue(cell);
            text.append(' ').append(Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneFamily(cell))).append(':')
                .append(Bytes.toStringBinary(org.apache.hadoop.hbase.CellUtil.cloneQualifier(cell))).append('@').append(cell.getTimestamp())
                .append(cell.getType() == org.apache.hadoop.hbase.Cell.Type.Put ? "" : "!" + cell.getType()).append('=')
                .append(value.length <= 40 ? Bytes.toStringBinary(value) : value.length + " bytes");
        }));
        if (mutation.getFamilyCellMap().isEmpty()) {
            text.append(" @").append(mutation.getTimestamp());
        }
        if (mutation.getTTL() != Long.MAX_VALUE) {
            text.append(" ttl=").append(mutation.getTTL());
        }
        if (mutation instanceof Increment increment) {
            text.append(increment.getTimeRange().isAllTime() ? "" : " in " + increment.getTimeRange())
                .append(increment.isReturnResults() ? "" : " no results");
        }
        if (mutation instanceof Append append) {
            text.append(append.getTimeRange().isAllTime() ? "" : " in " + append.getTimeRange())
                .append(append.isReturnResults() ? "" : " no results");
        }
        return text.toString();
    }

    private static String text(CheckAndMutate check) {
        return "check " + Bytes.toStringBinary(check.getRow()) + " "
            + (check.hasFilter() ? Trees.text(check.getFilter())
                : Bytes.toString(check.getFamily()) + ":" + Bytes.toString(check.getQualifier()) + " " + check.getCompareOp() + " "
                    + (check.getValue() == null ? "null" : Bytes.toStringBinary(check.getValue())))
            + (check.getTimeRange() == null || check.getTimeRange().isAllTime() ? "" : " in " + check.getTimeRange()) + " then " + text((Row) check.getAction());
    }

    private static String text(Row row) {
        if (row instanceof Mutation mutation) {
            return text(mutation);
        }
        if (row instanceof CheckAndMutate check) {
            return text(check);
        }
        return row instanceof RowMutations mutations ? texts(mutations.getMutations())
            : Reads.text((org.apache.hadoop.hbase.client.Get) row);
    }

    private static String texts(List<? extends Row> rows) {
        return Arrays.toString(rows.stream().map(Writes::text).toArray());
    }
}
