// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.apps;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.delete;
import static rorqual.tests.client26.Text.get;
import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.untimed;

import java.util.List;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Follow and fan lists: a many-to-many relation as two families of one table (seed 000, table 1). */
public final class FollowLists implements Program {
    private static final String PRINTED =
        "CSDN_1/cf1:CSDN_3=bob CSDN_1/cf2:CSDN_2=elite CSDN_1/cf2:CSDN_3=bob "
        + "CSDN_2/cf1:CSDN_3=bob CSDN_2/cf2:CSDN_2=elite CSDN_2/cf2:CSDN_3=bob "
        + "CSDN_3/cf1:CSDN_1=jakson CSDN_3/cf2:CSDN_2=elite CSDN_3/cf2:CSDN_4=Eric "
        + "CSDN_4/cf1:CSDN_5=tom CSDN_4/cf2:CSDN_1=jakson CSDN_4/cf2:CSDN_2=elite CSDN_4/cf2:CSDN_3=bob";

    private final Cluster cluster;

    public FollowLists(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create", () -> cluster.create("relation", Cluster.family("cf1"), Cluster.family("cf2")).close());
        try (Table table = cluster.table("relation")) {
            steps.must("put the printed rows", () -> table.put(List.of(
                put("CSDN_1", "cf1:CSDN_3=bob", "cf2:CSDN_2=elite", "cf2:CSDN_3=bob"),
                put("CSDN_2", "cf1:CSDN_3=bob", "cf2:CSDN_2=elite", "cf2:CSDN_3=bob"),
                put("CSDN_3", "cf1:CSDN_1=jakson", "cf2:CSDN_2=elite", "cf2:CSDN_4=Eric"),
                put("CSDN_4", "cf1:CSDN_5=tom", "cf2:CSDN_1=jakson", "cf2:CSDN_2=elite", "cf2:CSDN_3=bob"))));
            steps.run("rows as printed", () -> Expect.equal(PRINTED, untimed(table, new Scan()), "scan"));
            steps.run("follow and unfollow on both sides", () -> {
                table.put(List.of(put("CSDN_5", "cf1:CSDN_4=Eric"), put("CSDN_4", "cf2:CSDN_5=tom")));
                Expect.that(follows(table, "CSDN_5", "CSDN_4"), "5 should follow 4");
                Expect.that(table.exists(get("CSDN_4").addColumn(b("cf2"), b("CSDN_5"))), "4 should have the fan 5");
                table.delete(delete("CSDN_5").addColumn(b("cf1"), b("CSDN_4")));
                table.delete(delete("CSDN_4").addColumn(b("cf2"), b("CSDN_5")));
                Expect.that(!follows(table, "CSDN_5", "CSDN_4"), "5 should no longer follow 4");
                Expect.that(!table.exists(get("CSDN_5")), "row 5 should be empty");
            });
        }
        check(steps, "memstore");
        steps.run("flush", () -> cluster.flush("relation"));
        check(steps, "flushed");
        // Written again after the flush, so that after a restart the row is in both a file and the log.
        try (Table table = cluster.table("relation")) {
            steps.run("put again", () -> table.put(put("CSDN_1", "cf1:CSDN_3=bob", "cf2:CSDN_2=elite")));
        }
    }

    @Override
    public void check(Steps steps) throws Exception {
        check(steps, "kept");
    }

    private void check(Steps steps, String state) throws Exception {
        try (Table table = cluster.table("relation")) {
            steps.run(state + ": all rows", () -> Expect.equal(PRINTED, untimed(table, new Scan()), "scan"));
            steps.run(state + ": whom 1 follows", () -> Expect.equal("cf1:CSDN_3=bob",
                untimed(table.get(get("CSDN_1").addFamily(b("cf1")))), "family cf1"));
            steps.run(state + ": fans of 4", () -> Expect.equal("cf2:CSDN_1=jakson cf2:CSDN_2=elite cf2:CSDN_3=bob",
                untimed(table.get(get("CSDN_4").addFamily(b("cf2")))), "family cf2"));
            steps.run(state + ": does A follow B", () -> {
                Expect.that(follows(table, "CSDN_3", "CSDN_1"), "3 follows 1");
                Expect.that(!follows(table, "CSDN_1", "CSDN_2"), "1 does not follow 2");
            });
        }
    }

    private static boolean follows(Table table, String a, String b) throws Exception {
        return table.exists(get(a).addColumn(b("cf1"), b(b)));
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.drop("relation"));
    }
}
