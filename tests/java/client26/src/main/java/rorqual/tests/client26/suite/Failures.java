// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import rorqual.tests.support.Body;

/** Searches the layers of exceptions that a client wraps around a server's exception. */
final class Failures {
    private Failures() {}

    /** The whole chain in one line, including the errors of single actions of a batch; empty if nothing was thrown. */
    static String causes(Body body) {
        try {
            body.run();
            return "";
        } catch (Throwable thrown) {
            StringBuilder chain = new StringBuilder();
            for (Throwable e = thrown; e != null; e = e.getCause()) {
                chain.append(e).append(" | ");
                if (e instanceof RetriesExhaustedWithDetailsException details) {
                    details.getCauses().forEach(cause -> chain.append(cause).append(" | "));
                }
            }
            return chain.toString();
        }
    }
}
