// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * A known difference: an intended one, or an inconsistency of HBase. The file KNOWN (known.tsv) lists one per line: name,
 * operation, HBase's answer, Rorqual's answer, reason, separated by tabs. The second to fourth are regular expressions for the
 * whole text, in which {@code .} matches any character. The operation's text is preceded by {@code SEED:NUMBER }.
 *
 * <p>An expression that begins with {@code +} is for additional lines instead: this server's answer may have lines that match it,
 * and all other lines must be the same on both.
 */
record Known(String name, Pattern operation, Side hbase, Side rorqual) {
    /** The result that one of the servers may have. */
    record Side(Pattern pattern, boolean isOfLines) {
        static Side of(String text) {
            boolean lines = text.startsWith("+");
            return new Side(Known.pattern(lines ? text.substring(1) : text), lines);
        }

        /** Removes matching cells; a row without remaining cells is removed completely. */
        String without(String answer) {
            List<String> left = new ArrayList<>();
            boolean removed = false;
            for (String line : (answer + Answer.RESULT).split("\n")) {
                boolean begins = line.startsWith(Answer.RESULT);
                if (begins && removed && left.get(left.size() - 1).startsWith(Answer.RESULT)) {
                    left.remove(left.size() - 1);
                }
                removed = !begins && (removed || pattern.matcher(line).matches());
                if (begins || !pattern.matcher(line).matches()) {
                    left.add(line);
                }
            }
            return String.join("\n", left);
        }
    }

    private static final List<Known> ALL = read();

    private static List<Known> read() {
        String file = System.getenv("KNOWN");
        if (file == null) {
            return List.of();
        }
        try {
            return Files.readAllLines(Path.of(file)).stream().filter(line -> !line.isEmpty() && !line.startsWith("#")).map(line -> {
                String[] columns = line.split("\t");
                if (columns.length != 5) {
                    throw new IllegalStateException(file + ": not five columns: " + line);
                }
                Known known = new Known(columns[0], pattern(columns[1]), Side.of(columns[2]), Side.of(columns[3]));
                if (known.hbase.isOfLines() != known.rorqual.isOfLines()) {
                    throw new IllegalStateException(file + ": lines on one side, the whole answer on the other: " + line);
                }
                return known;
            }).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Pattern pattern(String text) {
        return Pattern.compile(text, Pattern.DOTALL);
    }

    /** Returns null if the difference is not a known one. */
    static Known of(long seed, Operation operation, History.Difference difference) {
        String text = seed + ":" + difference.number() + " " + operation.text;
        return ALL.stream().filter(known -> known.operation.matcher(text).matches()
            && known.allows(difference.hbase(), difference.rorqual())).findFirst().orElse(null);
    }

    private boolean allows(String there, String here) {
        return hbase.isOfLines() ? hbase.without(there).equals(rorqual.without(here))
            : hbase.pattern().matcher(there).matches() && rorqual.pattern().matcher(here).matches();
    }
}
