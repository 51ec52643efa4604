// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Iterator;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.ipc.RemoteException;

/** A server's result as lines of text, without the parts that may differ between two correct servers. */
final class Answer {
    private static final Pattern[] OWN = {
        // Region names contain the table's creation time; hosts, ports and call ids differ between the servers.
        Pattern.compile("\\d{13}\\.[0-9a-f]{32}\\.?"), Pattern.compile("\\b[0-9a-f]{32}\\b"),
        Pattern.compile("(localhost|127\\.0\\.0\\.1)[:/,0-9.a-z]*"), Pattern.compile("\\b\\d{19}\\b")};
    /** The beginning of a row's line. */
    static final String RESULT = "Result";
    /** With REPLAY: the stack of an exception, as far as the server sent it. */
    private static final boolean STACKS = System.getenv("STACKS") != null;
    private final Place place;
    private final StringBuilder text = new StringBuilder();
    private byte[] partsOf;

    private boolean brokenOff;

    Answer(Place place) {
        this.place = place;
    }

    String text() {
        return text.toString();
    }

    /** Drops the rows: with a limit in bytes, the rows sent before an exception depend on the sizes of Java objects on
     * HBase. */
    void forget() {
        text.setLength(0);
    }

    void say(Object something) {
        text.append(something).append('\n');
    }

    void thing(Object thing) {
        if (thing == null) {
            say("null");
        } else if (thing instanceof Result result) {
            result(result);
        } else if (thing instanceof CheckAndMutateResult checked) {
            say(checked.isSuccess() ? "done" : "not done");
            if (checked.getResult() != null) {
                result(checked.getResult());
            }
        } else if (thing instanceof Throwable failed) {
            failure(failed);
        } else {
            say(thing);
        }
    }

    void result(Result result) {
        text.append(RESULT);
        if (result.getExists() != null) {
            text.append(" exists=").append(result.getExists());
        }
        if (result.isStale()) {
            text.append(" stale");
        }
        text.append('\n');
        cells(result);
    }

    /** Joins the parts of a row, because with a limit in bytes the division depends on the sizes of Java objects on
     * HBase. */
    void part(Result result) {
        if (!Bytes.equals(result.getRow(), partsOf)) {
            result(result);
            partsOf = result.getRow();
        } else {
            cells(result);
        }
    }

    private void cells(Result result) {
        if (result.rawCells() != null) {
            for (Cell cell : result.rawCells()) {
                cell(cell);
            }
        }
    }

    private void cell(Cell cell) {
        byte[] value = CellUtil.cloneValue(cell);
        text.append("  ").append(Bytes.toStringBinary(CellUtil.cloneRow(cell))).append('/').append(Bytes.toString(CellUtil.cloneFamily(cell)))
            .append(':').append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell))).append(" @").append(place.time(cell.getTimestamp()))
            .append(' ').append(cell.getType()).append(' ')
            .append(value.length <= 40 ? Bytes.toStringBinary(value) : value.length + " bytes, hash " + Bytes.hashCode(value));
        for (Iterator<Tag> tags = PrivateCellUtil.tagsIterator(cell); tags.hasNext();) {
            Tag tag = tags.next();
            text.append(" tag").append(tag.getType()).append('=').append(Bytes.toStringBinary(Tag.cloneValue(tag)));
        }
        text.append('\n');
    }

    /** Whether Breaker aborted a read; HBase sends the stacks with the exception. */
    boolean brokenOff() {
        return brokenOff;
    }

    private void look(Throwable thrown) {
        StringWriter stacks = new StringWriter();
        thrown.printStackTrace(new PrintWriter(stacks));
        brokenOff |= stacks.toString().contains(Breaker.WORDS);
        if (thrown instanceof RetriesExhaustedWithDetailsException details) {
            details.getCauses().forEach(this::look);
        }
    }

    void failure(Throwable thrown) {
        look(thrown);
        if (STACKS) {
            thrown.printStackTrace(System.out);
        }
        Throwable e = thrown;
        while (true) {
            if (e instanceof RetriesExhaustedWithDetailsException details) {
                text.append("thrown for single actions:\n");
                details.getCauses().stream().map(this::described).sorted().forEach(this::say);
                return;
            }
            boolean wrapper = e instanceof RetriesExhaustedException || e instanceof java.io.UncheckedIOException
                || e instanceof ExecutionException || e instanceof UndeclaredThrowableException
                || e.getClass() == RuntimeException.class;
            if (!wrapper || e.getCause() == null) {
                break;
            }
            e = e.getCause();
        }
        say((thrown instanceof RetriesExhaustedException ? "thrown after a retry " : "thrown ") + described(e));
    }

    /** The exception's class and first line. */
    private String described(Throwable thrown) {
        Throwable e = thrown;
        // The exception of the client's scanner, which wraps the server's.
        while (e.getCause() != null && (e.getCause() instanceof RemoteException || e.getMessage() == null)) {
            e = e.getCause();
        }
        if (e instanceof RemoteException remote) {
            e = remote.unwrapRemoteException();
        }
        String name = e instanceof RemoteException remote ? remote.getClassName() : e.getClass().getName();
        String message = String.valueOf(e.getMessage());
        int end = message.indexOf('\n');
        message = end < 0 ? message : message.substring(0, end);
        while (message.startsWith(name + ": ")) {
            message = message.substring(name.length() + 2);
        }
        // Rorqual has the class of a filter's exception in the message; HBase has it in the stack after the message.
        if (name.equals("java.io.IOException")) {
            message = message.replaceFirst("^java\\.lang\\.(IllegalArgument|Runtime)Exception: ", "");
        }
        // A Java exception without a message arrives as an IOException without a message.
        if (name.equals(message) || message.matches("java\\.lang\\.NullPointerException|Cannot \\w+ .* because .* is null")) {
            message = "";
        }
        // HBase appends the table's whole descriptor, Rorqual does not.
        message = message.replaceFirst("( in table '[^']*').*", "$1");
        for (Pattern own : OWN) {
            message = own.matcher(message).replaceAll("#");
        }
        return name.replaceFirst("org\\.apache\\.hadoop\\.hbase\\.", "") + ": " + message;
    }
}
