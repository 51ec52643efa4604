// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.keys;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.rowLine;
import static rorqual.tests.client26.Text.s;
import static rorqual.tests.client26.Text.timed;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;
import rorqual.tests.support.Ticks;

/** Every way to change data: Put, Delete, batch, Append, Increment, RowMutations, checkAndMutate in old and new form. */
public final class Writes implements Program {
    private static final byte[] F = b("f");
    private static final byte[] Q = b("q");

    private final Cluster cluster;

    public Writes(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> cluster.create("write", keys("m"), Cluster.family("f", 5), Cluster.family("g", 5)).close());
        try (Table t = cluster.table("write")) {
            puts(steps, t);
            deletes(steps, t);
            batches(steps, t);
            increments(steps, t);
            appends(steps, t);
            rowMutations(steps, t);
            checkAndMutate(steps, t);
            checkAndMutateOld(steps, t);
            concurrent(steps, t);
        }
    }

    /** Each kind of write leaves cells for the check after a restart. */
    @Override
    public void check(Steps steps) throws Exception {
        try (Table t = cluster.table("write")) {
            steps.run("puts kept", () -> {
                Expect.equal("f:a=1 f:b=2 g:a=3", untimed(t.get(get("put1"))), "one put");
                Expect.equal(500, count(t, "bulk"), "rows of the BufferedMutator");
                for (Durability safe : List.of(Durability.USE_DEFAULT, Durability.SYNC_WAL, Durability.FSYNC_WAL)) {
                    Expect.that(t.exists(get("durable_" + safe)), "durability " + safe);
                }
            });
            steps.run("batch kept", () -> Expect.equal("f:q=7", untimed(t.get(get("batch1"))), "row"));
            steps.run("counters kept", () -> {
                Expect.equal(42L, Bytes.toLong(t.get(get("inc1")).getValue(F, Q)), "counter");
                Expect.equal(800L, Bytes.toLong(t.get(get("concurrent")).getValue(F, b("n"))), "concurrent counter");
            });
            steps.run("appends kept", () -> Expect.equal("f:q=abcdef", untimed(t.get(get("app1").addColumn(F, Q))), "row"));
            steps.run("row mutations kept", () -> Expect.equal("f:new=1 g:new=2", untimed(t.get(get("rm1"))), "row"));
            steps.run("conditional writes kept", () -> Expect.equal("f:q=second", untimed(t.get(get("cam1"))), "row"));
        }
    }

    private static int count(Table t, String prefix) throws Exception {
        return Text.rows(t, Text.prefix(b(prefix))).size();
    }

    private void puts(Steps steps, Table t) throws Exception {
        steps.run("put: several columns of two families", () -> {
            t.put(put("put1", "f:b=2", "g:a=3", "f:a=1"));
            Expect.equal("f:a=1 f:b=2 g:a=3", untimed(t.get(get("put1"))), "row");
        });
        steps.run("put: one time for all its cells", () -> {
            long a = t.get(get("put1")).getColumnLatestCell(F, b("a")).getTimestamp();
            long b = t.get(get("put1")).getColumnLatestCell(b("g"), b("a")).getTimestamp();
            Expect.equal(a, b, "timestamps of one put");
        });
        steps.run("put: without a column", () ->
            Expect.fails(IllegalArgumentException.class, "No columns to insert", () -> t.put(new Put(b("none")))));
        steps.run("put: a time for the whole put", () -> {
            t.put(new Put(b("put2"), 77).addColumn(F, Q, b("x")).addColumn(F, b("r"), 78, b("y")));
            Expect.equal("f:q@77=x f:r@78=y", timed(t.get(get("put2"))), "row");
        });
        steps.run("put: negative time", () ->
            Expect.fails(IllegalArgumentException.class, "Timestamp cannot be negative", () -> new Put(b("r"), -1)));
        steps.run("put: each durability", () -> {
            for (Durability durability : Durability.values()) {
                t.put((Put) put("durable_" + durability, "f:q=" + durability).setDurability(durability));
            }
            Expect.equal(Durability.values().length, count(t, "durable_"), "rows");
        });
        steps.run("put: a list over both regions", () -> {
            t.put(List.of(put("list1", "f:q=1"), put("zlist", "f:q=2"), put("list2", "f:q=3"), put("list1", "f:q=4")));
            Expect.equal("f:q=4", untimed(t.get(get("list1"))), "the later of the list wins");
            Expect.equal("f:q=2", untimed(t.get(get("zlist"))), "the other region");
        });
        steps.run("put: the last of one moment wins", () -> {
            for (int i = 0; i < 50; i++) {
                t.put(put("moment", "f:q@5=" + i));
                Expect.equal("f:q@5=" + i, timed(t.get(get("moment").readAllVersions())), "row");
            }
        });
        steps.run("put: an unknown family spoils only its own row of a list", () -> {
            RetriesExhaustedWithDetailsException e = Expect.fails(RetriesExhaustedWithDetailsException.class,
                "NoSuchColumnFamilyException", () ->
                t.put(List.of(put("spoil1", "f:q=1"), put("spoil2", "none:q=1"), put("spoil3", "f:q=1"), put("zspoil", "f:q=1"))));
            Expect.equal(1, e.getNumExceptions(), "failures");
            Expect.equal("spoil2", s(e.getRow(0).getRow()), "the failed row");
            Expect.equal(NoSuchColumnFamilyException.class, e.getCause(0).getClass(), "its cause");
            Expect.equal("spoil1 spoil3", rowLine(t, Text.prefix(b("spoil"))), "rows there");
            Expect.that(t.exists(get("zspoil")), "the other region's");
        });
        steps.run("put: BufferedMutator", () -> {
            try (BufferedMutator mutator = cluster.connection.getBufferedMutator(t.getName())) {
                for (int i = 0; i < 500; i++) {
                    mutator.mutate(put("bulk" + i, "f:q=" + i));
                }
                mutator.flush();
            }
            Expect.equal(500, count(t, "bulk"), "rows");
        });
        steps.run("put: value of 5 MB", () -> {
            byte[] value = new byte[5 << 20];
            Arrays.fill(value, (byte) 'v');
            t.put(new Put(b("big")).addColumn(F, Q, value));
            Expect.that(Arrays.equals(value, t.get(get("big")).value()), "the same bytes");
            t.delete(delete("big"));
        });
    }

    private void deletes(Steps steps, Table t) {
        steps.run("delete: a list", () -> {
            t.put(List.of(put("del1", "f:q=1"), put("del2", "f:q=1"), put("del3", "f:q=1"), put("zdel", "f:q=1")));
            t.delete(new ArrayList<>(List.of(delete("del1"), delete("zdel"), delete("absent"))));
            Expect.equal("del2 del3", rowLine(t, Text.prefix(b("del"))), "rows");
            Expect.that(!t.exists(get("zdel")), "the other region's");
        });
        steps.run("delete: a column of two families at once", () -> {
            t.put(put("del4", "f:a=1", "f:b=1", "g:a=1", "g:b=1"));
            t.delete(delete("del4").addColumns(F, b("a")).addFamily(b("g")));
            Expect.equal("f:b=1", untimed(t.get(get("del4"))), "row");
        });
        steps.run("delete: then put again", () -> {
            t.put(put("del5", "f:q=1"));
            t.delete(delete("del5"));
            Ticks.next(); // a marker also hides puts of the same millisecond
            t.put(put("del5", "f:q=2"));
            Expect.equal("f:q=2", untimed(t.get(get("del5"))), "row");
        });
        steps.run("delete: an unknown family", () ->
            Expect.fails(NoSuchColumnFamilyException.class, "none", () -> t.delete(delete("r").addFamily(b("none")))));
        steps.run("delete: of what is not there", () -> {
            t.delete(delete("never"));
            t.delete(delete("never").addColumn(F, Q));
            Expect.that(!t.exists(get("never")), "still not there");
        });
    }

    private void batches(Steps steps, Table t) {
        steps.run("batch: everything mixed", () -> {
            t.put(List.of(put("batch0", "f:q=0"), put("batch1", "f:q=1"), put("batch3", "f:q=3")));
            Ticks.next();
            List<Row> actions = List.of(get("batch0"), put("batch1", "f:q=7"), delete("batch3"),
                new Increment(b("batch4")).addColumn(F, Q, 5), new Append(b("batch5")).addColumn(F, Q, b("end")),
                get("nothing"), put("zbatch", "f:q=8"));
            Object[] results = new Object[actions.size()];
            t.batch(actions, results);
            Expect.equal("f:q=0", untimed((Result) results[0]), "get");
            Expect.that(((Result) results[1]).isEmpty(), "a put answers an empty result");
            Expect.that(((Result) results[2]).isEmpty(), "a delete answers an empty result");
            Expect.equal(5L, Bytes.toLong(((Result) results[3]).value()), "increment");
            Expect.equal("f:q=end", untimed((Result) results[4]), "append");
            Expect.that(((Result) results[5]).isEmpty(), "nothing");
            Expect.equal("f:q=7", untimed(t.get(get("batch1"))), "after the put");
            Expect.that(!t.exists(get("batch3")), "after the delete");
        });
        steps.run("batch: failing actions beside good ones", () -> {
            List<Row> actions = List.of(put("batch6", "f:q=1"), get("batch0").addFamily(b("none")), put("batch7", "none:q=1"),
                get("batch0"), delete("batch0").addFamily(b("none")), new Increment(b("batch1")).addColumn(F, Q, 1));
            Object[] results = new Object[actions.size()];
            RetriesExhaustedWithDetailsException e = Expect.fails(RetriesExhaustedWithDetailsException.class, "Failed 4 actions",
                () -> t.batch(actions, results));
            Expect.equal(4, e.getNumExceptions(), "failures");
            Expect.that(((Result) results[0]).isEmpty(), "the good put");
            for (int failed : new int[] {1, 2, 4}) {
                Expect.equal(NoSuchColumnFamilyException.class, results[failed].getClass(), "action " + failed);
            }
            Expect.equal("f:q=0", untimed((Result) results[3]), "the good get");
            Expect.equal(DoNotRetryIOException.class, results[5].getClass(), "increment of what is no long");
            Expect.that(t.exists(get("batch6")), "the good put is there");
        });
        steps.run("batch: one row several times, in order", () -> {
            List<Row> actions = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                actions.add(put("batch8", "f:q@3=" + i));
            }
            t.batch(actions, new Object[20]);
            Expect.equal("f:q@3=19", timed(t.get(get("batch8"))), "row");
        });
        steps.run("batch: nothing", () -> t.batch(List.of(), new Object[0]));
        steps.run("batch: row mutations and checks among it", () -> {
            RowMutations both = RowMutations.of(List.of(put("batch9", "f:a=1"), put("batch9", "g:a=1")));
            CheckAndMutate check = CheckAndMutate.newBuilder(b("batch10")).ifNotExists(F, Q).build(put("batch10", "f:q=1"));
            CheckAndMutate again = CheckAndMutate.newBuilder(b("batch0")).ifEquals(F, Q, b("not so")).build(put("batch0", "f:q=x"));
            Object[] results = new Object[4];
            t.batch(List.of(both, check, again, get("batch0")), results);
            Expect.that(((Result) results[0]).isEmpty(), "row mutations answer an empty result");
            Expect.that(((CheckAndMutateResult) results[1]).isSuccess(), "the first check");
            Expect.that(!((CheckAndMutateResult) results[2]).isSuccess(), "the second check");
            Expect.equal("f:q=0", untimed((Result) results[3]), "get");
            Expect.equal("f:a=1 g:a=1", untimed(t.get(get("batch9"))), "row");
        });
    }

    private void increments(Steps steps, Table t) {
        steps.run("increment: by the short form", () -> {
            Expect.equal(40L, t.incrementColumnValue(b("inc1"), F, Q, 40), "from nothing");
            Expect.equal(42L, t.incrementColumnValue(b("inc1"), F, Q, 2), "on");
            Expect.equal(42L, t.incrementColumnValue(b("inc1"), F, Q, 0), "by zero");
        });
        steps.run("increment: several columns", () -> {
            Result result = t.increment(new Increment(b("inc2")).addColumn(F, b("b"), -3).addColumn(F, b("a"), 1).addColumn(b("g"),
                b("a"), 9));
            Expect.equal("[1, -3, 9]", longs(result), "result, in order of columns");
            Expect.equal("[1, -3, 9]", longs(t.get(get("inc2"))), "row");
        });
        steps.run("increment: without results", () -> {
            Result result = t.increment(new Increment(b("inc2")).addColumn(F, b("a"), 1).setReturnResults(false));
            Expect.that(result == null || result.isEmpty(), "no result: " + result);
            Expect.equal(2L, Bytes.toLong(t.get(get("inc2")).getValue(F, b("a"))), "value");
        });
        steps.run("increment: of what is no long", () -> {
            t.put(put("inc3", "f:q=text"));
            Expect.fails(DoNotRetryIOException.class, "Field is not a long, it's 4 bytes wide",
                () -> t.incrementColumnValue(b("inc3"), F, Q, 1));
            Expect.equal("f:q=text", untimed(t.get(get("inc3"))), "untouched");
        });
        steps.run("increment: over the largest long", () -> {
            t.put(new Put(b("inc4")).addColumn(F, Q, Bytes.toBytes(Long.MAX_VALUE)));
            Ticks.next();
            Expect.equal(Long.MIN_VALUE, t.incrementColumnValue(b("inc4"), F, Q, 1), "it wraps");
        });
        steps.run("increment: an unknown family", () ->
            Expect.fails(NoSuchColumnFamilyException.class, "none", () -> t.incrementColumnValue(b("inc1"), b("none"), Q, 1)));
        steps.run("increment: after a delete it starts anew", () -> {
            t.incrementColumnValue(b("inc5"), F, Q, 5);
            t.delete(delete("inc5"));
            Ticks.next();
            Expect.equal(1L, t.incrementColumnValue(b("inc5"), F, Q, 1), "value");
        });
        steps.run("increment: within a time range", () -> {
            t.put(new Put(b("inc6")).addColumn(F, Q, 10, Bytes.toBytes(100L)));
            Result result = t.increment(new Increment(b("inc6")).addColumn(F, Q, 1).setTimeRange(50, Long.MAX_VALUE));
            Expect.equal(1L, Bytes.toLong(result.value()), "the older value is out of range");
        });
    }

    private static String longs(Result result) {
        List<Long> longs = new ArrayList<>();
        for (org.apache.hadoop.hbase.Cell cell : result.rawCells()) {
            longs.add(Bytes.toLong(cell.getValueArray(), cell.getValueOffset()));
        }
        return longs.toString();
    }

    private void appends(Steps steps, Table t) {
        steps.run("append: from nothing and on", () -> {
            Expect.equal("f:q=abc", untimed(t.append(new Append(b("app1")).addColumn(F, Q, b("abc")))), "first");
            Expect.equal("f:q=abcdef", untimed(t.append(new Append(b("app1")).addColumn(F, Q, b("def")))), "second");
        });
        steps.run("append: several columns", () -> {
            Result result = t.append(new Append(b("app1")).addColumn(F, b("z"), b("1")).addColumn(b("g"), b("a"),
                b("2")).addColumn(F, b("b"), b("")));
            Expect.equal("f:b= f:z=1 g:a=2", untimed(result), "result");
        });
        steps.run("append: without results", () -> {
            Result result = t.append(new Append(b("app2")).addColumn(F, Q, b("x")).setReturnResults(false));
            Expect.that(result == null || result.isEmpty(), "no result: " + result);
            Expect.equal("f:q=x", untimed(t.get(get("app2"))), "row");
        });
        steps.run("append: an unknown family", () ->
            Expect.fails(NoSuchColumnFamilyException.class, "none", () -> t.append(new Append(b("r")).addColumn(b("none"), Q, b("x")))));
    }

    private void rowMutations(Steps steps, Table t) {
        steps.run("row mutations: put and delete at once", () -> {
            t.put(put("rm1", "f:old=1", "g:old=2"));
            Ticks.next();
            t.mutateRow(RowMutations.of(List.of(delete("rm1").addColumns(F, b("old")), put("rm1", "f:new=1", "g:new=2"),
                delete("rm1").addColumns(b("g"), b("old")))));
            Expect.equal("f:new=1 g:new=2", untimed(t.get(get("rm1"))), "row");
        });
        steps.run("row mutations: increments and appends give results", () -> {
            Result result = t.mutateRow(RowMutations.of(List.of(new Increment(b("rm2")).addColumn(F, b("n"), 3),
                new Append(b("rm2")).addColumn(F, b("s"), b("end")), put("rm2", "f:p=1"))));
            Expect.equal(3L, Bytes.toLong(result.getValue(F, b("n"))), "increment's");
            Expect.equal("end", s(result.getValue(F, b("s"))), "append's");
        });
        steps.run("row mutations: all or nothing", () -> {
            Expect.that(Failures.causes(() -> t.mutateRow(RowMutations.of(List.of(put("rm3", "f:a=1"), put("rm3", "none:a=1")))))
                .contains("NoSuchColumnFamilyException"), "refused");
            Expect.that(!t.exists(get("rm3")), "nothing of it is there");
        });
        steps.run("row mutations: of one row only", () -> {
            RowMutations mutations = new RowMutations(b("rm4"));
            Expect.that(Failures.causes(() -> mutations.add((Mutation) put("other", "f:a=1"))).contains("WrongRowIOException"), "refused");
        });
    }

    private void checkAndMutate(Steps steps, Table t) {
        steps.run("check: if not exists", () -> {
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam1")).ifNotExists(F, Q).build(put("cam1", "f:q=first"))), "first");
            Expect.that(!cam(t, CheckAndMutate.newBuilder(b("cam1")).ifNotExists(F, Q).build(put("cam1", "f:q=other"))), "again");
            Expect.equal("f:q=first", untimed(t.get(get("cam1"))), "row");
        });
        steps.run("check: if equals", () -> {
            Ticks.next();
            Expect.that(!cam(t, CheckAndMutate.newBuilder(b("cam1")).ifEquals(F, Q, b("no")).build(put("cam1", "f:q=x"))), "unequal");
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam1")).ifEquals(F, Q, b("first")).build(put("cam1", "f:q=second"))), "equal");
            Expect.equal("f:q=second", untimed(t.get(get("cam1"))), "row");
        });
        steps.run("check: each comparison", () -> {
            t.put(put("cam2", "f:q=m"));
            // ifMatches(op, value) tests "value op stored value": the given value is on the left.
            String[][] table = {
                {"LESS", "true", "false", "false"}, {"LESS_OR_EQUAL", "true", "true", "false"}, {"EQUAL", "false", "true", "false"},
                {"NOT_EQUAL", "true", "false", "true"}, {"GREATER_OR_EQUAL", "false", "true", "true"}, {"GREATER", "false", "false",
                    "true"}};
            for (String[] line : table) {
                String[] values = {"a", "m", "z"};
                for (int i = 0; i < values.length; i++) {
                    boolean got = cam(t, CheckAndMutate.newBuilder(b("cam2")).ifMatches(F, Q, CompareOperator.valueOf(line[0]),
                        b(values[i]))
                        .build(put("cam2", "g:t=x")));
                    Expect.equal(Boolean.valueOf(line[i + 1]), got, "'" + values[i] + "' " + line[0] + " 'm'");
                }
            }
        });
        steps.run("check: an absent column", () -> {
            Expect.that(!cam(t, CheckAndMutate.newBuilder(b("cam3")).ifEquals(F, Q, b("x")).build(put("cam3", "f:q=1"))), "equals");
            Expect.that(!cam(t, CheckAndMutate.newBuilder(b("cam3")).ifMatches(F, Q, CompareOperator.NOT_EQUAL, b("x"))
                .build(put("cam3", "f:q=1"))), "not equal");
            Expect.that(!t.exists(get("cam3")), "nothing written");
        });
        steps.run("check: by a filter", () -> {
            SingleColumnValueFilter filter = new SingleColumnValueFilter(F, Q, CompareOperator.EQUAL, b("m"));
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam2")).ifMatches(filter).build(put("cam2", "g:f=yes"))), "matches");
            Expect.that(!cam(t, CheckAndMutate.newBuilder(b("cam3")).ifMatches(filter).build(put("cam3", "g:f=yes"))), "does not");
        });
        steps.run("check: within a time range", () -> {
            t.put(put("cam4", "f:q@10=old", "f:q@20=new"));
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam4")).ifEquals(F, Q, b("old"))
                .timeRange(org.apache.hadoop.hbase.io.TimeRange.between(0, 15)).build(put("cam4", "g:a=1"))), "old within");
        });
        steps.run("check: then delete, increment, append, row mutations", () -> {
            t.put(put("cam5", "f:q=x", "f:other=y"));
            Ticks.next();
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam5")).ifEquals(F, Q, b("x")).build(delete("cam5").addColumns(F,
                b("other")))), "delete");
            CheckAndMutateResult incremented = t.checkAndMutate(CheckAndMutate.newBuilder(b("cam5")).ifEquals(F, Q, b("x"))
                .build(new Increment(b("cam5")).addColumn(b("g"), b("n"), 4)));
            Expect.equal(4L, Bytes.toLong(incremented.getResult().value()), "increment's result");
            CheckAndMutateResult appended = t.checkAndMutate(CheckAndMutate.newBuilder(b("cam5")).ifEquals(F, Q, b("x"))
                .build(new Append(b("cam5")).addColumn(F, Q, b("yz"))));
            Expect.equal("f:q=xyz", untimed(appended.getResult()), "append's result");
            Expect.that(cam(t, CheckAndMutate.newBuilder(b("cam5")).ifEquals(F, Q, b("xyz")).build(RowMutations.of(List.of(
                put("cam5", "f:p=1"), delete("cam5").addColumns(F, Q))))), "row mutations");
            Expect.equal("f:p=1 g:n=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x04", untimed(t.get(get("cam5"))), "row");
        });
        steps.run("check: several at once", () -> {
            List<CheckAndMutateResult> results = t.checkAndMutate(List.of(
                CheckAndMutate.newBuilder(b("cam6")).ifNotExists(F, Q).build(put("cam6", "f:q=1")),
                CheckAndMutate.newBuilder(b("cam2")).ifEquals(F, Q, b("no")).build(put("cam2", "f:q=1")),
                CheckAndMutate.newBuilder(b("zcam")).ifNotExists(F, Q).build(put("zcam", "f:q=1"))));
            Expect.equal("true false true", results.get(0).isSuccess() + " " + results.get(1).isSuccess() + " " + results.get(2).isSuccess(), "results");
        });
        steps.run("check: an unknown family", () ->
            Expect.fails(NoSuchColumnFamilyException.class, "none", () ->
                t.checkAndMutate(CheckAndMutate.newBuilder(b("cam2")).ifNotExists(b("none"), Q).build(put("cam2", "f:q=1")))));
    }

    private static boolean cam(Table t, CheckAndMutate check) throws Exception {
        return t.checkAndMutate(check).isSuccess();
    }

    @SuppressWarnings("deprecation") // this tests the older forms
    private void checkAndMutateOld(Steps steps, Table t) {
        steps.run("old checks: put", () -> {
            Expect.that(t.checkAndPut(b("old1"), F, Q, null, put("old1", "f:q=1")), "absent");
            Expect.that(!t.checkAndPut(b("old1"), F, Q, null, put("old1", "f:q=2")), "no longer absent");
            Ticks.next();
            Expect.that(t.checkAndPut(b("old1"), F, Q, b("1"), put("old1", "f:q=2")), "equal");
            Expect.that(t.checkAndPut(b("old1"), F, Q, CompareOperator.LESS, b("1"), put("old1", "f:r=2")), "1 < 2");
        });
        steps.run("old checks: delete", () -> {
            Ticks.next();
            Expect.that(!t.checkAndDelete(b("old1"), F, Q, b("1"), delete("old1")), "unequal");
            Expect.that(t.checkAndDelete(b("old1"), F, Q, b("2"), delete("old1")), "equal");
            Expect.that(!t.exists(get("old1")), "gone");
        });
        steps.run("old checks: an empty value stands for none", () -> {
            Expect.that(t.checkAndPut(b("old2"), F, Q, new byte[0], put("old2", "f:q=1")), "empty = absent");
        });
        steps.run("old checks: row mutations", () -> {
            RowMutations both = RowMutations.of(List.of(put("old2", "f:a=1"), put("old2", "g:a=1")));
            Expect.that(t.checkAndMutate(b("old2"), F, Q, CompareOperator.EQUAL, b("1"), both), "equal");
            Expect.equal("f:a=1 f:q=1 g:a=1", untimed(t.get(get("old2"))), "row");
        });
        steps.run("old checks: fluent form", () -> {
            Expect.that(t.checkAndMutate(b("old3"), F).qualifier(Q).ifNotExists().thenPut(put("old3", "f:q=1")), "if not exists");
            Expect.that(t.checkAndMutate(b("old3"), F).qualifier(Q).ifEquals(b("1")).thenDelete(delete("old3")), "if equals");
        });
        steps.run("old checks: the row must be the same", () ->
            Expect.that(Failures.causes(() -> t.checkAndPut(b("old4"), F, Q, null, put("other", "f:q=1"))).contains("row"), "refused"));
    }

    /** Many writers on one row: no write is lost, and no reader sees a torn row. */
    private void concurrent(Steps steps, Table t) {
        steps.run("concurrent: increments, row mutations and readers", () -> {
            int threads = 4;
            int rounds = 200;
            ExecutorService pool = Executors.newFixedThreadPool(threads + 1);
            CountDownLatch writing = new CountDownLatch(threads);
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                int writer = i;
                running.add(pool.submit(() -> {
                    try (Table own = cluster.table("write")) {
                        for (int k = 0; k < rounds; k++) {
                            own.incrementColumnValue(b("concurrent"), F, b("n"), 1);
                            String value = writer + "-" + k;
                            own.mutateRow(RowMutations.of(List.of(put("concurrent", "f:left=" + value), put("concurrent",
                                "g:right=" + value))));
                        }
                    } finally {
                        writing.countDown();
                    }
                    return null;
                }));
            }
            running.add(pool.submit(() -> {
                try (Table own = cluster.table("write")) {
                    Get both = new Get(b("concurrent")).addColumn(F, b("left")).addColumn(b("g"), b("right"));
                    while (writing.getCount() > 0) {
                        Result result = own.get(both);
                        Expect.equal(s(result.getValue(F, b("left"))), s(result.getValue(b("g"), b("right"))),
                            "two columns of one mutation");
                    }
                }
                return null;
            }));
            pool.shutdown();
            for (Future<?> one : running) {
                one.get();
            }
            Expect.equal((long) threads * rounds, Bytes.toLong(t.get(get("concurrent")).getValue(F, b("n"))), "counter");
        });
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("write"));
    }
}
