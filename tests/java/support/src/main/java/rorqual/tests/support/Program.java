// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/**
 * A test program with its own tables. Its phases may run in different JVMs, with server restarts and kills between
 * them, so everything {@link #check} expects must be computable without having seen {@link #write}.
 */
public interface Program {
    /** The name shown before each step. */
    default String name() {
        return getClass().getSimpleName();
    }

    /** Creates the program's tables, writes rows, and checks intermediate results. */
    void write(Steps steps) throws Exception;

    /** Verifies all data that must have survived; writes nothing, so it can be repeated. */
    default void check(Steps steps) throws Exception {}

    /** Removes the tables that {@link #write} has left. */
    default void drop(Steps steps) throws Exception {}
}
