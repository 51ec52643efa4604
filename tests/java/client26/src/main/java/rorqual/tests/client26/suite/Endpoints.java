// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.untimed;

import com.google.protobuf.ByteString;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.coprocessor.AggregationClient;
import org.apache.hadoop.hbase.client.coprocessor.BigDecimalColumnInterpreter;
import org.apache.hadoop.hbase.client.coprocessor.DoubleColumnInterpreter;
import org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
import org.apache.hadoop.hbase.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.Condition;
import org.apache.hadoop.hbase.protobuf.generated.ClientProtos.MutationProto.MutationType;
import org.apache.hadoop.hbase.protobuf.generated.ComparatorProtos;
import org.apache.hadoop.hbase.protobuf.generated.HBaseProtos.CompareType;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MultiRowMutationService;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsRequest;
import org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos.MutateRowsResponse;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** The coprocessor endpoints HBase's own clients call: aggregates, and rows changed together. */
public final class Endpoints implements Program {
    private static final String AGGREGATE = "org.apache.hadoop.hbase.coprocessor.AggregateImplementation";
    private static final String MULTI_ROW = "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";
    private static final int ROWS = 200;

    private final Cluster cluster;

    public Endpoints(Cluster cluster) {
        this.cluster = cluster;
    }

    private AggregationClient aggregates() {
        return new AggregationClient(cluster.configuration);
    }

    private TableDescriptor descriptor(String table, String... coprocessors) throws Exception {
        TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(cluster.name(table))
            .setColumnFamily(Cluster.family("f")).setColumnFamily(Cluster.family("g"));
        for (String coprocessor : coprocessors) {
            builder.setCoprocessor(coprocessor);
        }
        return builder.build();
    }

    private static String row(int i) {
        return String.format("r%03d", i);
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> {
            cluster.admin.createTable(descriptor("endpoint", AGGREGATE, MULTI_ROW), keys(row(50), row(120)));
            cluster.admin.createTable(descriptor("plainpoint"));
            try (Table t = cluster.table("endpoint")) {
                List<Put> puts = new ArrayList<>();
                for (int i = 0; i < ROWS; i++) {
                    puts.add(new Put(b(row(i)))
                        .addColumn(b("f"), b("long"), Bytes.toBytes(longOf(i)))
                        .addColumn(b("f"), b("text"), b("not a number"))
                        .addColumn(b("f"), b("double"), Bytes.toBytes(doubleOf(i)))
                        .addColumn(b("f"), b("decimal"), Bytes.toBytes(decimalOf(i))));
                }
                puts.add(new Put(b("s")).addColumn(b("g"), b("only"), b("another family")));
                t.put(puts);
            }
        });
        numbers(steps);
        mistakes(steps);
        multiRow(steps);
    }

    @Override
    public void check(Steps steps) {
        numbers(steps);
    }

    // --- aggregates

    private static long longOf(int i) {
        return (i - 80) * 1_000_003L;
    }

    private static double doubleOf(int i) {
        return (i * 37 % 101 - 40) / 8.0;
    }

    /** Values of any scale and sign: the interpreter rounds each to two digits. */
    private static BigDecimal decimalOf(int i) {
        Random random = new Random(i);
        String digits = new java.math.BigInteger(40 + 60 * (i % 3), random).toString();
        return new BigDecimal((i % 4 == 0 ? "-" : "") + digits).movePointLeft(random.nextInt(20));
    }

    /** A scan that ends before the rows that the multi-row steps write. */
    private static Scan between() {
        return new Scan().withStartRow(b("r")).withStopRow(b("t"));
    }

    private static Scan column(String qualifier) {
        return between().addColumn(b("f"), b(qualifier));
    }

    private void numbers(Steps steps) {
        longs(steps);
        doubles(steps);
        decimals(steps);
        counts(steps);
    }

    private void longs(Steps steps) {
        LongColumnInterpreter ci = new LongColumnInterpreter();
        long sum = 0;
        double squares = 0;
        for (int i = 0; i < ROWS; i++) {
            sum += longOf(i);
            squares += (double) (longOf(i) * longOf(i));
        }
        long total = sum;
        double average = sum / (double) ROWS;
        double deviation = Math.sqrt(squares / ROWS - average * average);
        steps.run("longs: extremes and sum", () -> call(() -> {
            Expect.equal(longOf(ROWS - 1), aggregates().max(cluster.name("endpoint"), ci, column("long")), "max");
            Expect.equal(longOf(0), aggregates().min(cluster.name("endpoint"), ci, column("long")), "min");
            Expect.equal(total, aggregates().sum(cluster.name("endpoint"), ci, column("long")), "sum");
            Expect.equal(longOf(70), aggregates().max(cluster.name("endpoint"), ci,
                column("long").withStopRow(b(row(70)), true)), "max of a range");
            Expect.equal(longOf(40) + longOf(41), aggregates().sum(cluster.name("endpoint"), ci,
                column("long").withStartRow(b(row(40))).withStopRow(b(row(42)))), "sum of a range");
        }));
        steps.run("longs: average and deviation", () -> call(() -> {
            Expect.equal(average, aggregates().avg(cluster.name("endpoint"), ci, column("long")), "average");
            double got = aggregates().std(cluster.name("endpoint"), ci, column("long"));
            Expect.that(Math.abs(got - deviation) < deviation * 1e-9, "deviation " + got + ", not " + deviation);
        }));
        steps.run("longs: median", () -> call(() -> Expect.equal(medianOfLongs(), aggregates().median(cluster.name("endpoint"), ci,
            new Scan().withStartRow(b(row(60))).withStopRow(b(row(100))).addColumn(b("f"), b("long"))), "median")));
        steps.run("what is no long has no value", () -> call(() -> {
            Expect.equal(null, aggregates().max(cluster.name("endpoint"), ci, column("text")), "max");
            Expect.equal(null, aggregates().sum(cluster.name("endpoint"), ci, column("absent")), "sum");
        }));
    }

    /** The client's definition of the median: the value before the running sum exceeds half of the total. */
    private static Long medianOfLongs() {
        double half = 0;
        for (int i = 60; i < 100; i++) {
            half += longOf(i) / 2.0;
        }
        double moving = 0;
        Long value = null;
        for (int i = 60; i < 100; i++) {
            if (moving + longOf(i) > half) {
                return value;
            }
            moving += longOf(i);
            value = longOf(i);
        }
        return null;
    }

    private void doubles(Steps steps) {
        DoubleColumnInterpreter ci = new DoubleColumnInterpreter();
        steps.run("doubles", () -> call(() -> {
            double sum = 0;
            double max = Double.NEGATIVE_INFINITY;
            double min = Double.POSITIVE_INFINITY;
            for (int i = 0; i < ROWS; i++) {
                sum += doubleOf(i);
                max = Math.max(max, doubleOf(i));
                min = Math.min(min, doubleOf(i));
            }
            Expect.equal(sum, aggregates().sum(cluster.name("endpoint"), ci, column("double")), "sum");
            Expect.equal(max, aggregates().max(cluster.name("endpoint"), ci, column("double")), "max");
            Expect.equal(min, aggregates().min(cluster.name("endpoint"), ci, column("double")), "min");
            Expect.equal(sum / ROWS, aggregates().avg(cluster.name("endpoint"), ci, column("double")), "average");
        }));
    }

    private void decimals(Steps steps) {
        BigDecimalColumnInterpreter ci = new BigDecimalColumnInterpreter();
        steps.run("decimals", () -> call(() -> {
            BigDecimal sum = BigDecimal.ZERO;
            BigDecimal max = null;
            BigDecimal min = null;
            for (int i = 0; i < ROWS; i++) {
                BigDecimal rounded = decimalOf(i).setScale(2, RoundingMode.HALF_EVEN);
                sum = sum.add(rounded);
                max = max == null ? rounded : max.max(rounded);
                min = min == null ? rounded : min.min(rounded);
            }
            Expect.equal(sum, aggregates().sum(cluster.name("endpoint"), ci, column("decimal")), "sum");
            Expect.equal(max, aggregates().max(cluster.name("endpoint"), ci, column("decimal")), "max");
            Expect.equal(min, aggregates().min(cluster.name("endpoint"), ci, column("decimal")), "min");
            Expect.equal(sum.doubleValue() / ROWS, aggregates().avg(cluster.name("endpoint"), ci, column("decimal")), "average");
        }));
        steps.run("decimals: deviation, one row at a time", () -> call(() -> {
            for (int i = 0; i < 40; i++) {
                BigDecimal value = decimalOf(i).setScale(2, RoundingMode.HALF_EVEN);
                BigDecimal square = value.multiply(value).setScale(2, RoundingMode.HALF_EVEN);
                double variance = square.doubleValue() - value.doubleValue() * value.doubleValue();
                Expect.equal(Math.sqrt(variance), aggregates().std(cluster.name("endpoint"), ci,
                    column("decimal").withStartRow(b(row(i))).withStopRow(b(row(i) + "x"))), "deviation of " + value);
            }
        }));
    }

    private void counts(Steps steps) {
        LongColumnInterpreter ci = new LongColumnInterpreter();
        steps.run("row counts", () -> call(() -> {
            Expect.equal((long) ROWS + 1, aggregates().rowCount(cluster.name("endpoint"), ci, between()), "all");
            Expect.equal((long) ROWS, aggregates().rowCount(cluster.name("endpoint"), ci, between().addFamily(b("f"))), "f");
            Expect.equal(1L, aggregates().rowCount(cluster.name("endpoint"), ci, between().addFamily(b("g"))), "g");
            Expect.equal(10L, aggregates().rowCount(cluster.name("endpoint"), ci, new Scan().setFilter(new PrefixFilter(b("r04")))), "prefix");
            // HBase removes the column from the scan before it counts, so all rows of the family count.
            Expect.equal((long) ROWS, aggregates().rowCount(cluster.name("endpoint"), ci, column("absent")), "a column");
        }));
        steps.run("an average behind a filter", () -> call(() -> {
            SingleColumnValueFilter filter = new SingleColumnValueFilter(b("f"), b("long"), CompareOperator.LESS, Bytes.toBytes(longOf(90)));
            filter.setFilterIfMissing(true);
            Scan scan = column("long").withStartRow(b(row(80))).withStopRow(b(row(100))).setFilter(filter);
            long sum = 0;
            for (int i = 80; i < 90; i++) {
                sum += longOf(i);
            }
            // The last step, which finds no row, is counted as a row.
            Expect.equal(sum / 11.0, aggregates().avg(cluster.name("endpoint"), ci, scan), "average");
        }));
    }

    private interface Call {
        void run() throws Throwable;
    }

    /** AggregationClient throws Throwable. */
    private static void call(Call body) throws Exception {
        try {
            body.run();
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    // --- missing endpoints

    private void mistakes(Steps steps) {
        steps.run("a table without the endpoint", () -> {
            String causes = Failures.causes(() -> call(() -> aggregates().rowCount(cluster.name("plainpoint"), new LongColumnInterpreter(), new Scan())));
            Expect.that(causes.contains("org.apache.hadoop.hbase.exceptions.UnknownProtocolException")
                && causes.contains("No registered coprocessor service found for AggregateService in region plainpoint_"), causes);
            causes = Failures.causes(() -> mutateRows("plainpoint", "a", List.of(put("a", "f:q=1")), List.of()));
            Expect.that(causes.contains("No registered coprocessor service found for MultiRowMutationService in region plainpoint_"), causes);
        });
        steps.run("a class nobody has", () -> {
            Expect.fails(DoNotRetryIOException.class, "Class org.example.Absent cannot be loaded Set hbase.table.sanity.checks to false",
                () -> cluster.admin.createTable(descriptor("absentpoint", "org.example.Absent")));
            Expect.that(!cluster.admin.tableExists(cluster.name("absentpoint")), "nothing was created");
            Expect.fails(DoNotRetryIOException.class, "Class org.example.Absent cannot be loaded", () -> cluster.admin.modifyTable(
                TableDescriptorBuilder.newBuilder(descriptor("plainpoint", "org.example.Absent")).build()));
        });
        steps.run("an endpoint added and taken away", () -> call(() -> {
            LongColumnInterpreter ci = new LongColumnInterpreter();
            cluster.admin.modifyTable(descriptor("plainpoint", AGGREGATE));
            Expect.equal(0L, aggregates().rowCount(cluster.name("plainpoint"), ci, new Scan()), "rows");
            cluster.admin.modifyTable(descriptor("plainpoint"));
            String causes = Failures.causes(() -> call(() -> aggregates().rowCount(cluster.name("plainpoint"), ci, new Scan())));
            Expect.that(causes.contains("UnknownProtocolException"), causes);
        }));
        steps.run("a family nobody has", () -> {
            String causes = Failures.causes(() -> call(() -> aggregates().max(cluster.name("endpoint"), new LongColumnInterpreter(),
                new Scan().addColumn(b("none"), b("q")))));
            Expect.that(causes.contains("NoSuchColumnFamilyException"), causes);
        });
        steps.run("an endpoint of the region server", () -> {
            String causes = Failures.causes(() -> {
                var channel = cluster.admin.coprocessorService(cluster.admin.getRegionServers().iterator().next());
                MultiRowMutationService.newBlockingStub(channel).mutateRows(null, MutateRowsRequest.getDefaultInstance());
            });
            Expect.that(causes.contains("UnknownProtocolException") && causes.contains("found for MultiRowMutationService"), causes);
        });
    }

    // --- rows changed together

    private boolean mutateRows(String table, String row, List<Mutation> mutations, List<Condition> conditions) throws Exception {
        MutateRowsRequest.Builder request = MutateRowsRequest.newBuilder().addAllCondition(conditions);
        for (Mutation mutation : mutations) {
            request.addMutationRequest(ProtobufUtil.toMutation(mutation instanceof Put ? MutationType.PUT : MutationType.DELETE, mutation));
        }
        try (Table t = cluster.table(table)) {
            MutateRowsResponse response = MultiRowMutationService.newBlockingStub(t.coprocessorService(b(row))).mutateRows(null, request.build());
            return response.getProcessed();
        }
    }

    private static Condition condition(String row, String family, String qualifier, CompareType op, String value) throws Exception {
        ByteArrayComparable comparator = new BinaryComparator(value == null ? new byte[0] : b(value));
        return Condition.newBuilder().setRow(ByteString.copyFrom(b(row))).setFamily(ByteString.copyFrom(b(family)))
            .setQualifier(ByteString.copyFrom(b(qualifier))).setCompareType(op)
            .setComparator(ComparatorProtos.Comparator.newBuilder().setName(BinaryComparator.class.getName())
                .setSerializedComparator(ByteString.copyFrom(comparator.toByteArray())))
            .build();
    }

    private Map<String, String> rows(String... rows) throws Exception {
        Map<String, String> found = new TreeMap<>();
        try (Table t = cluster.table("endpoint")) {
            for (String row : rows) {
                found.put(row, untimed(t.get(get(row))));
            }
        }
        return found;
    }

    private void multiRow(Steps steps) {
        steps.run("several rows at once", () -> {
            Expect.equal(true, mutateRows("endpoint", "x1", List.of(put("x1", "f:q=1"), put("x2", "f:q=2", "g:q=3")), List.of()), "processed");
            Expect.equal("{x1=f:q=1, x2=f:q=2 g:q=3}", rows("x1", "x2").toString(), "rows");
            Expect.equal(true, mutateRows("endpoint", "x1", List.of(new Delete(b("x1")), put("x3", "f:q=4")), List.of()), "processed");
            Expect.equal("{x1=, x2=f:q=2 g:q=3, x3=f:q=4}", rows("x1", "x2", "x3").toString(), "rows");
        });
        steps.run("all or nothing", () -> {
            String causes = Failures.causes(() -> mutateRows("endpoint", "x1", List.of(put("x4", "f:q=1"), put("x5", "none:q=2")), List.of()));
            Expect.that(causes.contains("NoSuchColumnFamilyException"), causes);
            Expect.equal("{x4=, x5=}", rows("x4", "x5").toString(), "rows");
        });
        steps.run("rows of another region", () -> {
            String causes = Failures.causes(() -> mutateRows("endpoint", "x1", List.of(put("x4", "f:q=1"), put("a", "f:q=2")), List.of()));
            Expect.that(causes.contains("DoNotRetryIOException") && causes.contains("Requested row out of range 'a'"), causes);
            Expect.equal("{a=, x4=}", rows("x4", "a").toString(), "rows");
        });
        steps.run("conditions", () -> {
            record Case(boolean expected, Condition... conditions) {}
            CompareType equal = CompareType.EQUAL;
            int n = 0;
            for (Case one : List.of(
                new Case(true, condition("x2", "f", "q", equal, "2")),
                new Case(false, condition("x2", "f", "q", equal, "3")),
                new Case(true, condition("x2", "f", "q", equal, "2"), condition("x3", "f", "q", equal, "4")),
                new Case(false, condition("x2", "f", "q", equal, "2"), condition("x3", "f", "q", equal, "5")),
                new Case(false, condition("x2", "f", "q", CompareType.LESS, "3")),
                new Case(true, condition("x2", "f", "q", CompareType.NOT_EQUAL, "3")),
                new Case(true, condition("x2", "f", "q", CompareType.GREATER_OR_EQUAL, "3")),
                new Case(true, condition("x2", "f", "absent", equal, null)),
                new Case(false, condition("x2", "f", "q", equal, null)),
                // Without a value the operator does not matter.
                new Case(true, condition("x2", "f", "absent", CompareType.NOT_EQUAL, null)),
                new Case(false, condition("x2", "f", "q", CompareType.NOT_EQUAL, null)),
                new Case(false, condition("x2", "f", "absent", equal, "2")))) {
                String row = "y" + n++;
                Expect.equal(one.expected(), mutateRows("endpoint", "x1", List.of(put(row, "f:q=1")), List.of(one.conditions())), row);
                Expect.equal(one.expected() ? "f:q=1" : "", rows(row).get(row), row + "'s content");
            }
            String causes = Failures.causes(() -> mutateRows("endpoint", "x1", List.of(put("y", "f:q=1")), List.of(condition("x2", "none", "q", equal, "2"))));
            Expect.that(causes.contains("NoSuchColumnFamilyException"), causes);
        });
        steps.run("service calls in one batch", () -> {
            try (Table t = cluster.table("endpoint")) {
                // The client sends the names of HBase's own services with their package; HBase knows them without it.
                String causes = Failures.causes(() -> call(() -> t.batchCoprocessorService(
                    MultiRowMutationService.getDescriptor().findMethodByName("MutateRows"), MutateRowsRequest.getDefaultInstance(),
                    b(row(0)), b("zz"), MutateRowsResponse.getDefaultInstance())));
                Expect.that(causes.contains("Failed 3 actions") && causes.contains(
                    "UnknownProtocolException: No registered coprocessor service found for hbase.pb.MultiRowMutationService"), causes);
            }
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("endpoint", "plainpoint"));
    }
}
