// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

import java.util.List;
import java.util.Objects;

/** Assertions of a step; a failure is an AssertionError with the expected and the actual value. */
public final class Expect {
    private Expect() {}

    public static void that(boolean claim, String otherwise) {
        if (!claim) {
            throw new AssertionError(otherwise);
        }
    }

    public static void equal(Object expected, Object actual, String what) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + ": expected " + text(expected) + ", got " + text(actual));
        }
    }

    /** Compares lists element by element, so that a failure of a long one shows the first difference. */
    public static void equalLists(List<?> expected, List<?> actual, String what) {
        int common = Math.min(expected.size(), actual.size());
        for (int i = 0; i < common; i++) {
            if (!Objects.equals(expected.get(i), actual.get(i))) {
                throw new AssertionError(what + ": element " + i + ": expected " + text(expected.get(i)) + ", got "
                    + text(actual.get(i)) + " (sizes " + expected.size() + " and " + actual.size() + ")");
            }
        }
        if (expected.size() != actual.size()) {
            List<?> longer = expected.size() > common ? expected : actual;
            throw new AssertionError(what + ": expected " + expected.size() + " elements, got " + actual.size()
                + "; the first one too " + (longer == expected ? "few" : "many") + " is " + text(longer.get(common)));
        }
    }

    /**
     * Runs a body that must throw exactly this class (to a client a subclass is a different result), with this text in its
     * message.
     */
    public static <T extends Throwable> T fails(Class<T> type, String text, Body body) {
        try {
            body.run();
        } catch (Throwable e) {
            if (e.getClass() != type) {
                throw new AssertionError("expected " + type.getName() + ", got " + Report.describe(e), e);
            }
            if (!String.valueOf(e.getMessage()).contains(text)) {
                throw new AssertionError("expected " + type.getSimpleName() + " with the text '" + text + "', got '"
                    + e.getMessage() + "'", e);
            }
            return type.cast(e);
        }
        throw new AssertionError("expected " + type.getName() + ", but the call went through");
    }

    private static String text(Object value) {
        String s = value instanceof CharSequence ? "'" + value + "'" : String.valueOf(value);
        return s.length() <= 400 ? s : s.substring(0, 400) + "…";
    }
}
