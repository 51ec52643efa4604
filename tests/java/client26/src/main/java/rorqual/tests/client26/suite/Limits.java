// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.get;

import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * The largest cell: 10,485,760 bytes of the whole serialized cell, names and lengths included. The client's own limit is
 * disabled here, so only the server checks.
 */
public final class Limits implements Program {
    private static final int LIMIT = 10_485_760;
    /** The cell's own length 4, two lengths of 4, row length 2, row 1, family length 1, family 1, qualifier 1, timestamp 8, type 1. */
    private static final int OVERHEAD = 4 + 4 + 4 + 2 + 1 + 1 + 1 + 1 + 8 + 1;

    private final Cluster cluster;

    public Limits(Cluster cluster) {
        this.cluster = cluster;
    }

    private static byte[] value(int cellSize) {
        byte[] value = new byte[cellSize - OVERHEAD];
        Arrays.fill(value, (byte) 'v');
        return value;
    }

    private static Put cellOf(int size, String row) {
        return new Put(b(row)).addColumn(b("f"), b("q"), value(size));
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> cluster.create("limit", Cluster.family("f")).close());
        try (Table t = cluster.table("limit")) {
            for (int size : new int[] {LIMIT - 1, LIMIT}) {
                steps.run("a cell of " + size + " bytes", () -> {
                    t.put(cellOf(size, "1"));
                    Expect.that(Arrays.equals(value(size), t.get(get("1")).value()), "the same bytes back");
                });
            }
            steps.run("a cell of one byte more", () -> Expect.fails(DoNotRetryIOException.class,
                "Cell[2/f:q/LATEST_TIMESTAMP/Put/vlen=" + (LIMIT + 1 - OVERHEAD) + "/seqid=0] with size " + (LIMIT + 1) + " exceeds limit of " + LIMIT + " bytes", () -> t.put(cellOf(LIMIT + 1, "2"))));
            steps.run("and nothing of it is there", () -> Expect.that(!t.exists(get("2")), "row 2"));
            steps.run("in a list it spoils all of its region", () -> {
                RetriesExhaustedWithDetailsException e = Expect.fails(RetriesExhaustedWithDetailsException.class, "exceeds limit of", () ->
                    t.put(List.of(new Put(b("3")).addColumn(b("f"), b("q"), b("small")), cellOf(LIMIT + 1, "4"))));
                Expect.equal(2, e.getNumExceptions(), "failures");
                Expect.equal(DoNotRetryIOException.class, e.getCause(0).getClass(), "its cause");
                Expect.that(!t.exists(get("3")) && !t.exists(get("4")), "neither is there");
            });
            steps.run("append and conditional put", () -> {
                Expect.fails(DoNotRetryIOException.class, "exceeds limit of", () ->
                    t.append(new Append(b("5")).addColumn(b("f"), b("q"), value(LIMIT + 1))));
                Expect.fails(DoNotRetryIOException.class, "exceeds limit of", () -> t.checkAndMutate(
                    CheckAndMutate.newBuilder(b("5")).ifNotExists(b("f"), b("q")).build(cellOf(LIMIT + 1, "5"))));
                Expect.that(Failures.causes(() -> t.mutateRow(RowMutations.of(List.of(cellOf(LIMIT + 1, "5")))))
                    .contains("exceeds limit of"), "row mutations");
                Expect.that(!t.exists(get("5")), "row 5");
            });
        }
    }

    @Override
    public void check(Steps steps) throws Exception {
        try (Table t = cluster.table("limit")) {
            steps.run("the largest cell kept", () ->
                Expect.that(Arrays.equals(value(LIMIT), t.get(get("1")).value()), "the same bytes back"));
        }
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("limit"));
    }
}
