// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/** The body of a step; any exception is a failure. */
@FunctionalInterface
public interface Body {
    void run() throws Exception;
}
