// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.crash;

import static rorqual.tests.client26.Text.b;
import static rorqual.tests.client26.Text.s;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Compares a restarted server with the journal: every acknowledged write exists, none is torn, and nothing else exists. */
final class CrashCheck {
    private final List<String> problems = new ArrayList<>();

    private CrashCheck() {}

    /**
     * Returns the problem. Checks rows of rounds from {@code firstRound} on; writers do not change older rows, which were
     * checked before, so only the last check reads them again.
     */
    static List<String> check(String zookeeper, String run, Path journal, int firstRound) throws Exception {
        Journal.Expected expected = Journal.read(journal);
        CrashCheck check = new CrashCheck();
        try (Connection connection = ConnectionFactory.createConnection(CrashWriter.configuration(zookeeper));
             Table table = connection.getTable(CrashWriter.table(run)); Admin admin = connection.getAdmin()) {
            check.rows(table, expected, firstRound);
            check.pairs(table, expected);
            check.counters(table, expected);
            check.tables(admin, expected);
        }
        return check.problems;
    }

    private void rows(Table table, Journal.Expected expected, int firstRound) throws IOException {
        Map<String, String> found = new HashMap<>();
        for (int thread = 0; thread < CrashWriter.THREADS; thread++) {
            Scan scan = new Scan().withStartRow(b(String.format("row-%d-%04d", thread, firstRound)))
                .withStopRow(b("row-" + (thread + 1))).setCaching(1_000);
            try (ResultScanner scanner = table.getScanner(scan)) {
                for (Result result = scanner.next(); result != null; result = scanner.next()) {
                    String row = s(result.getRow());
                    found.put(row, version(row, result));
                }
            }
        }
        for (Map.Entry<String, Set<String>> one : expected.rows.entrySet()) {
            String row = one.getKey();
            if (Integer.parseInt(row.substring(6, 10)) < firstRound) {
                continue;
            }
            String version = found.remove(row);
            if (!one.getValue().contains(version)) {
                problems.add("row " + row + " is " + shown(version) + ", should be " + one.getValue());
            }
        }
        found.keySet().forEach(row -> problems.add("row " + row + ", which nobody wrote"));
    }

    /** The version that all columns of a row agree on; a torn row is a problem of its own. */
    private String version(String row, Result result) {
        byte[] first = result.getValue(CrashWriter.A, b("first"));
        String version = first == null ? "?" : Bytes.toString(first, 0, Math.max(0, indexOf(first, '|')));
        boolean whole = result.size() == 3 && first != null
            && Arrays.equals(first, result.getValue(CrashWriter.A, b("second")))
            && Arrays.equals(first, result.getValue(CrashWriter.B, b("first")))
            && Arrays.equals(first, CrashWriter.value(row, version));
        if (!whole) {
            problems.add("row " + row + " is torn: " + result);
        }
        return version;
    }

    private static int indexOf(byte[] bytes, char c) {
        for (int i = 0; i < bytes.length; i++) {
            if (bytes[i] == c) {
                return i;
            }
        }
        return -1;
    }

    private void pairs(Table table, Journal.Expected expected) throws IOException {
        for (Map.Entry<String, Set<String>> one : expected.pairs.entrySet()) {
            Result result = table.get(new Get(b(one.getKey())));
            String left = s(result.getValue(CrashWriter.A, b("left")));
            String right = s(result.getValue(CrashWriter.B, b("right")));
            if (left == null ? right != null : !left.equals(right)) {
                problems.add(one.getKey() + " is torn: left " + left + ", right " + right);
            }
            if (!one.getValue().contains(left)) {
                problems.add(one.getKey() + " is " + shown(left) + ", should be " + one.getValue());
            }
        }
    }

    private void counters(Table table, Journal.Expected expected) throws IOException {
        for (Map.Entry<String, Long> one : expected.sentSums.entrySet()) {
            byte[] value = table.get(new Get(b(one.getKey()))).getValue(CrashWriter.A, b("n"));
            long sum = value == null ? 0 : Bytes.toLong(value);
            long least = expected.acknowledgedSums.getOrDefault(one.getKey(), 0L);
            if (sum < least || sum > one.getValue()) {
                problems.add("counter " + one.getKey() + " is " + sum + ", should be within " + least + " and " + one.getValue());
            }
        }
    }

    private void tables(Admin admin, Journal.Expected expected) throws IOException {
        for (Map.Entry<String, Set<String>> one : expected.tables.entrySet()) {
            String last = admin.tableExists(TableName.valueOf(one.getKey())) ? "create" : "drop";
            if (!one.getValue().contains(last)) {
                problems.add("table " + one.getKey() + (last.equals("drop") ? " is gone" : " is back"));
            }
        }
    }

    private static String shown(String version) {
        return version == null ? "absent" : version;
    }
}
