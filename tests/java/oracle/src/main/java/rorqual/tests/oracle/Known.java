// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/**
 * A difference that is wanted, or that HBase has with itself. The file KNOWN (known.tsv) lists them, one a line: name, operation,
 * HBase's answer, Rorqual's answer, reason; tabs between them. The three in the middle are regular expressions for the whole text, in
 * which {@code .} is any character. The operation's text is preceded by {@code SEED:NUMBER }.
 */
record Known(String name, Pattern operation, Pattern hbase, Pattern rorqual) {
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
                return new Known(columns[0], pattern(columns[1]), pattern(columns[2]), pattern(columns[3]));
            }).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Pattern pattern(String text) {
        return Pattern.compile(text, Pattern.DOTALL);
    }

    /** Returns null if the difference is not one of these. */
    static Known of(long seed, Operation operation, History.Difference difference) {
        String text = seed + ":" + difference.number() + " " + operation.text;
        return ALL.stream().filter(known -> known.operation.matcher(text).matches()
            && known.hbase.matcher(difference.hbase()).matches() && known.rorqual.matcher(difference.rorqual()).matches())
            .findFirst().orElse(null);
    }
}
