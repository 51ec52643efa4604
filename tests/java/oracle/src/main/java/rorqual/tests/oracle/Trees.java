// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.BigDecimalComparator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.ColumnValueFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FirstKeyValueMatchingQualifiersFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.LongComparator;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.NullComparator;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RandomRowFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueExcludeFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/** Random trees of filters and comparators: every class of HBase 2.6 that a client can send. */
final class Trees {
    private static final String ROW = "ab\0\u00ffc";
    private final World world;
    private final Dice dice;
    private final boolean inScan;
    private final boolean skips;

    Trees(World world, Dice dice) {
        this(world, dice, false);
    }

    Trees(World world, Dice dice, boolean inScan) {
        this(world, dice, inScan, !world.emptyQualifier);
    }

    Trees(World world, Dice dice, boolean inScan, boolean skips) {
        this.inScan = inScan;
        this.skips = skips;
        this.world = world;
        this.dice = dice;
    }

    Filter any() {
        return tree(dice.chance(55) ? 0 : dice.between(1, 3));
    }

    private Filter tree(int depth) {
        int kind = dice.below(100);
        if (depth == 0 || kind < 30) {
            return leaf();
        }
        if (kind < 40) {
            return new SkipFilter(tree(depth - 1));
        }
        if (kind < 50) {
            return new WhileMatchFilter(tree(depth - 1));
        }
        List<Filter> children = new ArrayList<>();
        for (int i = dice.below(4) + (dice.chance(95) ? 1 : 0); i > 0; i--) {
            children.add(tree(depth - 1));
        }
        return new FilterList(dice.of(FilterList.Operator.MUST_PASS_ALL, FilterList.Operator.MUST_PASS_ONE), children);
    }

    /** A filter on values, as used in conditions. */
    Filter condition() {
        return dice.chance(60) ? singleColumn() : any();
    }

    private Filter leaf() {
        // The last eight return seek hints or skip columns.
        switch (dice.below(skips ? 28 : 20)) {
            case 0: return new KeyOnlyFilter(dice.chance(50));
            case 1: return new PrefixFilter(dice.letters(ROW, 0, 2));
            case 2: return new PageFilter(dice.below(5));
            case 3: return new InclusiveStopFilter(world.rowLike(dice));
            case 4: return new RowFilter(operator(), comparator(world.rowLike(dice)));
            case 5: return new FamilyFilter(operator(), comparator(world.family(dice)));
            case 6: return new QualifierFilter(operator(), comparator(world.qualifierLike(dice)));
            case 7:
            case 8: return new ValueFilter(operator(), valueComparator());
            case 9:
            case 10:
            case 11: return singleColumn();
            case 12:
                return dice.chance(50)
                    ? new DependentColumnFilter(world.family(dice), world.qualifier(dice), dice.chance(50))
                    : new DependentColumnFilter(world.family(dice), world.qualifier(dice), dice.chance(50), operator(), valueComparator());
            case 13: return new FuzzyRowFilter(fuzzy());
            case 14: return ranges();
            case 15: return new RandomRowFilter(dice.of(-1f, 2f));
            case 16: return new PrefixFilter(dice.letters("ab", 1, 1));
            case 17: return new RowFilter(operator(), comparator(world.row(dice)));
            case 18: return new FuzzyRowFilter(fuzzy());
            case 19: return ranges();
            case 20: return new FirstKeyOnlyFilter();
            case 21: return new ColumnPrefixFilter(dice.letters("abc", 0, 2));
            case 22: {
                byte[][] prefixes = new TreeSet<>(List.of(text("abc", 0, 2), text("abc", 1, 2), text("ab", 1, 1) + "z")).stream()
                    .map(World::bytes).toArray(byte[][]::new);
                return new MultipleColumnPrefixFilter(prefixes);
            }
            case 23: return new ColumnCountGetFilter(dice.below(5));
            case 24:
                return dice.chance(50) ? new ColumnPaginationFilter(dice.below(4), dice.below(3))
                    : new ColumnPaginationFilter(dice.below(4), world.qualifierLike(dice));
            case 25: {
                List<Long> times = new ArrayList<>();
                for (int i = dice.below(4); i > 0; i--) {
                    times.add(world.time(dice));
                }
                return new TimestampsFilter(times, dice.chance(50));
            }
            case 26:
                return dice.chance(70)
                    ? new ColumnRangeFilter(dice.chance(80) ? world.qualifierLike(dice) : null, dice.chance(50),
                        dice.chance(80) ? world.qualifierLike(dice) : null, dice.chance(50))
                    : new ColumnValueFilter(world.family(dice), world.qualifier(dice), operator(), valueComparator());
            default: {
                Set<byte[]> names = new TreeSet<>(Bytes.BYTES_COMPARATOR);
                for (int i = dice.below(3); i > 0; i--) {
                    names.add(world.qualifier(dice));
                }
                return dice.chance(40) ? new FirstKeyValueMatchingQualifiersFilter(names)
                    : new ColumnValueFilter(world.family(dice), world.qualifier(dice), operator(), valueComparator());
            }
        }
    }

    private Filter singleColumn() {
        SingleColumnValueFilter filter = dice.chance(60)
            ? new SingleColumnValueFilter(world.family(dice), world.qualifier(dice), operator(), valueComparator())
            : new SingleColumnValueExcludeFilter(world.family(dice), world.qualifier(dice), operator(), valueComparator());
        filter.setFilterIfMissing(dice.chance(50));
        filter.setLatestVersionOnly(dice.chance(60));
        return filter;
    }

    private String text(String alphabet, int least, int most) {
        return new String(dice.letters(alphabet, least, most), StandardCharsets.ISO_8859_1);
    }

    /** NO_OP is used only in a get or a condition: in a scan a filter's exception would leave HBase's scanner open for a
     * minute. */
    CompareOperator operator() {
        return CompareOperator.values()[dice.below(inScan || dice.chance(95) ? 6 : 7)];
    }

    private ByteArrayComparable comparator(byte[] like) {
        return switch (dice.below(9)) {
            case 0, 1, 2 -> new BinaryComparator(like);
            case 3 -> new BinaryPrefixComparator(Arrays.copyOf(like, Math.min(like.length, dice.between(1, 3))));
            case 4 -> new SubstringComparator(text("abAB1", 0, 2));
            case 5 -> new RegexStringComparator(dice.of("a", "^a", "b$", "a.*b", "[ab]+", "(a|b)c?", "^$", "A|1", "(?i)aB", "b{2}", "\\d"));
            case 6 -> new BitComparator(like, dice.of(BitComparator.BitwiseOp.values()));
            case 7 -> new NullComparator();
            default -> new BinaryComparator(dice.letters("ab", 0, 3));
        };
    }

    ByteArrayComparable valueComparator() {
        if (world.longs && dice.chance(30)) {
            return new LongComparator(dice.below(5) - 2);
        }
        if (dice.chance(6) && (world.longs || !inScan)) {
            return new BigDecimalComparator(new BigDecimal(dice.below(300) - 150).movePointLeft(dice.below(3)));
        }
        return comparator(world.value(dice));
    }

    private List<Pair<byte[], byte[]>> fuzzy() {
        List<Pair<byte[], byte[]>> keys = new ArrayList<>();
        for (int i = dice.between(1, 3); i > 0; i--) {
            byte[] key = dice.letters(ROW, 1, 4);
            byte[] mask = new byte[key.length];
            for (int j = 0; j < mask.length; j++) {
                mask[j] = (byte) dice.below(2);
            }
            keys.add(new Pair<>(key, mask));
        }
        return keys;
    }

    private Filter ranges() {
        while (true) {
            List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
            for (int i = dice.between(1, 4); i > 0; i--) {
                byte[] from = dice.chance(8) ? new byte[0] : dice.letters(ROW, 1, 3);
                byte[] to = dice.chance(8) ? new byte[0] : dice.letters(ROW, 1, 3);
                boolean swap = from.length > 0 && to.length > 0 && Bytes.compareTo(from, to) > 0;
                ranges.add(new MultiRowRangeFilter.RowRange(swap ? to : from, dice.chance(70), swap ? from : to, dice.chance(50)));
            }
            try {
                return new MultiRowRangeFilter(ranges);
            } catch (IllegalArgumentException e) {
                // The client refuses an empty range, so another one is tried.
                continue;
            }
        }
    }

    /** A tree as text, including parts that HBase's toString() omits. */
    static String text(Filter filter) {
        if (filter instanceof FilterList list) {
            return list.getOperator() + "[" + String.join(", ", list.getFilters().stream().map(Trees::text).toList()) + "]";
        }
        if (filter instanceof SkipFilter skip) {
            return "Skip(" + text(skip.getFilter()) + ")";
        }
        if (filter instanceof WhileMatchFilter during) {
            return "WhileMatch(" + text(during.getFilter()) + ")";
        }
        String text = filter.toString();
        if (filter instanceof SingleColumnValueFilter single) {
            text += " " + Bytes.toString(single.getFamily()) + ":" + Bytes.toStringBinary(single.getQualifier()) + " "
                + single.getComparator().getClass().getSimpleName() + (single.getFilterIfMissing() ? " if-missing" : "")
                + (single.getLatestVersionOnly() ? "" : " any-version");
        } else if (filter instanceof org.apache.hadoop.hbase.filter.CompareFilter compare && compare.getComparator() != null) {
            text += " " + compare.getComparator().getClass().getSimpleName();
        }
        String name = filter.getClass().getSimpleName();
        return text.startsWith(name) ? text : name + " " + text;
    }
}
