// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.crash;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * The writers' operations, in a local file: a line before an operation is sent ({@code ?}), and a line once the server
 * has acknowledged it ({@code +}). So after a kill an operation without its second line is in doubt: it may have been
 * applied or not, but not partly.
 *
 * <pre>
 *   ? put ROW VERSION          the row's columns in both families carry VERSION
 *   ? del ROW                  the whole row
 *   ? pair ROW VERSION         RowMutations: two columns of two families carry VERSION
 *   ? inc ROW AMOUNT
 *   ? create TABLE   ? drop TABLE
 * </pre>
 */
final class Journal implements AutoCloseable {
    private final Writer file;

    Journal(Path path) throws IOException {
        // Not a channel's writer, which an interrupt would close.
        this.file = new BufferedWriter(new FileWriter(path.toFile(), StandardCharsets.UTF_8, true));
    }

    /** Flushed line by line, so that the file has every operation before it is sent. */
    private synchronized void line(String line) throws IOException {
        file.write(line);
        file.write('\n');
        file.flush();
    }

    void sent(String operation) throws IOException {
        line("? " + operation);
    }

    void acknowledged(String operation) throws IOException {
        line("+ " + operation);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }

    /** The expected state: results that must be found, and results that may be found. */
    static final class Expected {
        /** Rows of puts: the allowed versions of each; null in the set stands for an absent row. */
        final Map<String, Set<String>> rows = new TreeMap<>();
        /** Rows of pairs: the last acknowledged version, and those in doubt after it. */
        final Map<String, Set<String>> pairs = new TreeMap<>();
        /** Tables: the allowed last operations, "create" or "drop". */
        final Map<String, Set<String>> tables = new TreeMap<>();
        final Map<String, Long> acknowledgedSums = new TreeMap<>();
        final Map<String, Long> sentSums = new TreeMap<>();
        long acknowledged;
        long inDoubt;
    }

    /** Reads a journal from its beginning. */
    static Expected read(Path path) throws IOException {
        Expected expected = new Expected();
        // For each key the operation that is sent and not yet acknowledged; a writer has one key of each kind in flight
        // at a time.
        Map<String, String> open = new HashMap<>();
        try (BufferedReader in = Files.newBufferedReader(path, StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ");
                String operation = line.substring(2);
                if (words[0].equals("?")) {
                    sent(expected, words);
                    open.put(operation, line);
                } else {
                    acknowledged(expected, words);
                    open.remove(operation);
                    expected.acknowledged++;
                }
            }
        }
        expected.inDoubt = open.size();
        return expected;
    }

    private static void sent(Expected expected, String[] words) {
        String key = words[2];
        switch (words[1]) {
            case "put" -> allow(expected.rows, key, null, words[3]);
            case "del" -> allow(expected.rows, key, null, null);
            case "pair" -> allow(expected.pairs, key, null, words[3]);
            case "inc" -> expected.sentSums.merge(key, Long.parseLong(words[3]), Long::sum);
            default -> allow(expected.tables, key, "drop", words[1]);
        }
    }

    private static void acknowledged(Expected expected, String[] words) {
        String key = words[2];
        switch (words[1]) {
            case "put" -> only(expected.rows, key, words[3]);
            case "del" -> only(expected.rows, key, null);
            case "pair" -> only(expected.pairs, key, words[3]);
            case "inc" -> expected.acknowledgedSums.merge(key, Long.parseLong(words[3]), Long::sum);
            default -> only(expected.tables, key, words[1]);
        }
    }

    /**
     * Adds a result that may be found for a key, after those of earlier operations; before the first operation the
     * result is {@code nothing}.
     */
    private static void allow(Map<String, Set<String>> map, String key, String nothing, String version) {
        Set<String> versions = map.computeIfAbsent(key, k -> new LinkedHashSet<>(Collections.singleton(nothing)));
        versions.remove(version);
        versions.add(version);
    }

    /**
     * Operations sent before an acknowledged one are no longer in doubt. Operations sent after it still are: a client that
     * outlived a kill may read its acknowledgement after others have sent further operations. An acknowledgement of an
     * operation before the last acknowledged one changes nothing.
     */
    private static void only(Map<String, Set<String>> map, String key, String version) {
        Set<String> versions = map.get(key);
        if (!versions.contains(version)) {
            return;
        }
        for (Iterator<String> i = versions.iterator(); !Objects.equals(i.next(), version); ) {
            i.remove();
        }
    }
}
