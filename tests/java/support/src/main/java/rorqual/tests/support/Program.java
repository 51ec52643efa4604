// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/**
 * A test program with tables of its own. Its phases may run in different JVMs, with server restarts and kills between
 * them, so everything {@link #check} expects must be computable without having seen {@link #write}.
 */
public interface Program {
    /** The name shown before each step. */
    default String name() {
        return getClass().getSimpleName();
    }

    /** Creates its tables, writes, and checks on the way. */
    void write(Steps steps) throws Exception;

    /** Verifies everything that must have survived; writes nothing, so it can be repeated. */
    default void check(Steps steps) throws Exception {}

    /** Removes what {@link #write} left behind. */
    default void drop(Steps steps) throws Exception {}
}
