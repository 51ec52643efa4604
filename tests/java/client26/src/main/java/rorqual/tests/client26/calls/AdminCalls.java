// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.calls;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.client.Admin;
import rorqual.tests.client26.Cluster;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/**
 * Every method of {@link Admin}, called with good, missing and illegal arguments ({@link Arguments}). The outcome of each call, and how
 * it changed the cluster ({@link State}), are compared with those recorded from a real HBase 2.6.1 (resource {@code admin-calls.txt}).
 * {@code admin-differs.tsv} has the intended differences: the call, this server's outcome, and the reason.
 *
 * <p>Needs a separate server ({@code tests/e2e/admin_calls.py}), because calls affect the whole cluster, and in {@code SINK} a second server as
 * a replication peer. {@code RECORD=FILE} appends the outcomes; {@code METHODS=REGEX}: only these methods.
 */
public final class AdminCalls implements Program {
    /** Methods that end the client or the server; tests/e2e/endings.py calls stopMaster and stopRegionServer. */
    private static final Set<String> ENDINGS = Set.of("abort", "close", "shutdown", "stopMaster", "stopRegionServer");
    /** HBase's master loses a region that was set offline: its table can then be neither disabled nor dropped. */
    private static final Set<String> UNDOABLE = Set.of("offline");
    /**
     * Calls that end HBase's master. With a global scope of hbase:meta it writes meta's next location with a replication barrier to master:store,
     * which has no family rep_barrier: it aborts.
     */
    private static final Set<String> FATAL = Set.of("enableTableReplication(TableName) hbase:meta");

    private final Cluster cluster;
    private final State state;
    private final Arguments arguments;

    public AdminCalls(Cluster cluster) {
        this.cluster = cluster;
        this.state = new State(cluster, System.getenv("SINK"));
        this.arguments = new Arguments(state);
    }

    @Override
    public void write(Steps steps) throws Exception {
        String record = System.getenv("RECORD");
        Map<String, String> expected = record == null ? expected() : Map.of();
        steps.must("restore", state::restore);
        for (List<Method> group : groups()) {
            steps.run(group.get(0).getName(), () -> {
                Map<String, String> got = new LinkedHashMap<>();
                for (Method method : group) {
                    callAll(method, got);
                }
                if (record == null) {
                    compare(expected, got);
                } else {
                    Files.write(Path.of(record), got.entrySet().stream().map(e -> e.getKey() + " -> " + e.getValue()).toList(),
                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                }
            });
        }
    }

    /** The methods by name, in an order that does not depend on the JVM. */
    private static List<List<Method>> groups() {
        Pattern chosen = Pattern.compile(System.getenv().getOrDefault("METHODS", ".*"));
        return new ArrayList<>(Arrays.stream(Admin.class.getMethods())
            .filter(m -> !ENDINGS.contains(m.getName()) && !UNDOABLE.contains(m.getName()) && chosen.matcher(m.getName()).matches())
            .sorted(Comparator.comparing(AdminCalls::signature))
            .collect(Collectors.groupingBy(Method::getName, LinkedHashMap::new, Collectors.toList())).values());
    }

    private static String signature(Method method) {
        return method.getName() + Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).collect(Collectors.joining(", ", "(", ")"));
    }

    private void callAll(Method method, Map<String, String> outcomes) throws Exception {
        for (List<Arguments.Value> values : arguments.of(method)) {
            String labels = values.stream().map(Arguments.Value::label).collect(Collectors.joining(", "));
            String call = signature(method) + " " + labels;
            if (FATAL.contains(call)) {
                continue;
            }
            String outcome = call(method, values.stream().map(Arguments.Value::get).toArray());
            String after = state.settled();
            outcomes.put(call, outcome + State.change(state.base(), after));
            if (!after.equals(state.base())) {
                state.restore();
            }
        }
    }

    private String call(Method method, Object[] values) throws Exception {
        try {
            return Shown.of(method, method.invoke(cluster.admin, values));
        } catch (InvocationTargetException e) {
            return Shown.failure(e.getCause());
        }
    }

    private static void compare(Map<String, String> expected, Map<String, String> got) {
        StringBuilder wrong = new StringBuilder();
        got.forEach((call, outcome) -> {
            String wanted = expected.get(call);
            if (!outcome.equals(wanted)) {
                wrong.append("\n  ").append(call).append("\n    HBase ").append(wanted).append("\n    here  ").append(outcome);
            }
        });
        if (wrong.length() > 0) {
            throw new AssertionError(wrong.toString());
        }
    }

    /** HBase's recorded outcomes, except for intended differences. */
    private static Map<String, String> expected() throws IOException {
        Map<String, String> expected = new LinkedHashMap<>();
        for (String line : lines("/admin-calls.txt")) {
            int arrow = line.indexOf(" -> ");
            expected.put(line.substring(0, arrow), line.substring(arrow + 4));
        }
        for (String line : lines("/admin-differs.tsv")) {
            String[] parts = line.split("\t");
            if (expected.put(parts[0], parts[1]) == null) {
                throw new IOException("admin-differs.tsv: no call " + parts[0]);
            }
        }
        return expected;
    }

    private static List<String> lines(String resource) throws IOException {
        try (InputStream in = AdminCalls.class.getResourceAsStream(resource);
            BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            return reader.lines().collect(Collectors.toList());
        }
    }
}
