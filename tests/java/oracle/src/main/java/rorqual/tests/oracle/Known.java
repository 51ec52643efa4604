// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.util.List;
import java.util.function.BiPredicate;

/** The one list of differences that are wanted; docs/compatibility.md says the same to people. */
record Known(String name, String reason, BiPredicate<Operation, History.Difference> is) {
    private static final List<Known> ALL = List.of(
        new Known("an exception of a filter in one of several gets",
            "HBase fails the whole call with what is no IOException, and the actions before it have happened; here it is the action's own",
            (operation, difference) -> operation.text.matches("(?s)(gets|exist) .*")
                && difference.hbase().startsWith("thrown for single actions:\njava.io.IOException")
                && difference.hbase().lines().skip(1).distinct().count() == 1
                && difference.rorqual().startsWith("thrown for single actions:\n")),
        new Known("a NullPointerException in HBase's filters",
            "lists of FuzzyRowFilter and MultiRowRangeFilter that have no hint or no return code to give: src/filter/README.md",
            (operation, difference) -> operation.text.matches("(?s).* filter .*(FuzzyRowFilter|MultiRowRangeFilter).*") && !operation.writes
                && difference.hbase().matches("(thrown|thrown after a retry|thrown for single actions:\n)?\\s*java.io.IOException: \n")
                && !difference.rorqual().startsWith("thrown"))
    );

    /** Returns null if the difference is not one of these. */
    static Known of(Operation operation, History.Difference difference) {
        return ALL.stream().filter(known -> known.is.test(operation, difference)).findFirst().orElse(null);
    }
}
