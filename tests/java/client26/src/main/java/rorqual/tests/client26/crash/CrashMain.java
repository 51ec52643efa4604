// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.crash;

import static rorqual.tests.client26.Text.b;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import rorqual.tests.support.Await;

/**
 * Writer and checker in one JVM that outlives many servers: the driver sends one command per line, and reads one line
 * of answer for each.
 *
 * <pre>
 *   create ZK              → ok
 *   write ZK ROUND COUNT   → writing, once COUNT operations of this round are acknowledged
 *   kill                   → now: errors after this are no problem, and the driver may kill the server
 *   stop                   → now: the writers end without a kill
 *   join                   → ok ACKNOWLEDGED, once no writer runs any more; or problem TEXT
 *   check ZK FIRSTROUND    → ok ACKNOWLEDGED INDOUBT (of the whole journal); or problem TEXT
 *   patient ZK             → ok: starts clients that retry until the next server answers (CrashPatient)
 *   pause                  → ok, once none of them waits for an answer; resume → ok
 *   patients               → ok DONE; or problem TEXT
 *   settle                 → ok DONE, once they have ended; or problem TEXT
 *   damage ZK ROUND        → ok: deletes an acknowledged row and tears another, which a check must notice
 * </pre>
 *
 * Arguments: journal file, run suffix.
 */
public final class CrashMain {
    private final Path file;
    private final Journal journal;
    private final String run;
    private CrashWriter writer;
    private CrashPatient patient;

    private CrashMain(Path file, String run) throws IOException {
        this.file = file;
        this.journal = new Journal(file);
        this.run = run;
    }

    public static void main(String[] args) throws Exception {
        CrashMain main = new CrashMain(Path.of(args[0]), args[1]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = main.obey(line.split(" "));
            } catch (Exception e) {
                answer = "problem " + e.toString().replace('\n', ' ');
            }
            System.out.println(answer);
        }
        main.journal.close();
        System.exit(0);
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "create" -> {
                CrashWriter.create(words[1], run);
                return "ok";
            }
            case "write" -> {
                writer = new CrashWriter(journal, run, words[1], Integer.parseInt(words[2]));
                writer.start();
                // Waits for progress instead of a total, because the time depends on the machine.
                for (long wanted = Long.parseLong(words[3]), done = 0; done < wanted;) {
                    long before = done;
                    Await.until("more than " + before + " operations are acknowledged", () -> writer.acknowledged() > before);
                    done = writer.acknowledged();
                }
                return "writing";
            }
            case "kill" -> {
                writer.kill();
                return "now";
            }
            case "stop" -> {
                writer.stop();
                return "now";
            }
            case "join" -> {
                List<String> problems = writer.join();
                return problems.isEmpty() ? "ok " + writer.acknowledged() : "problem before the kill: " + some(problems);
            }
            case "check" -> {
                List<String> problems = CrashCheck.check(words[1], run, file, Integer.parseInt(words[2]));
                Journal.Expected expected = Journal.read(file);
                return problems.isEmpty() ? "ok " + expected.acknowledged + " " + expected.inDoubt : "problem " + some(problems);
            }
            case "patient" -> {
                patient = new CrashPatient(words[1], run);
                patient.start();
                return "ok";
            }
            case "pause" -> {
                patient.pause();
                return "ok";
            }
            case "resume" -> {
                patient.resume();
                return "ok";
            }
            case "patients", "settle" -> {
                List<String> problems = words[0].equals("settle") ? patient.stop() : patient.problems();
                return problems.isEmpty() ? "ok " + patient.done() : "problem " + some(problems);
            }
            case "damage" -> {
                damage(words[1], Integer.parseInt(words[2]));
                return "ok";
            }
            default -> {
                return "problem unknown command";
            }
        }
    }

    private static String some(List<String> problems) {
        return (problems.size() + ": " + String.join("; ", problems.subList(0, Math.min(4, problems.size())))).replace('\n', ' ');
    }

    /** Deletes a row of this round that was acknowledged. */
    private void damage(String zookeeper, int round) throws Exception {
        Journal.Expected expected = Journal.read(file);
        try (Connection connection = ConnectionFactory.createConnection(CrashWriter.configuration(zookeeper));
             Table table = connection.getTable(CrashWriter.table(run))) {
            int done = 0;
            for (var one : expected.rows.entrySet()) {
                if (one.getKey().substring(6, 10).equals(String.format("%04d", round)) && !one.getValue().contains(null)) {
                    if (done == 0) {
                        table.delete(new Delete(b(one.getKey())));
                    } else {
                        table.put(new Put(b(one.getKey())).addColumn(CrashWriter.B, b("first"), b("torn")));
                    }
                    if (++done == 2) {
                        return;
                    }
                }
            }
            throw new IllegalStateException("no rows to damage");
        }
    }
}
