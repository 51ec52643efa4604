// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.support;

/** What a step does; any exception is a failure. */
@FunctionalInterface
public interface Body {
    void run() throws Exception;
}
