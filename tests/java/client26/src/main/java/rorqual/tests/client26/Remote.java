// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import org.apache.hadoop.ipc.RemoteException;
import rorqual.tests.support.Body;
import rorqual.tests.support.Expect;

/**
 * Errors whose class exists only on the server: the client then throws another exception whose cause is a
 * RemoteException with the class's name.
 */
public final class Remote {
    private Remote() {}

    public static void fails(String className, String text, Body body) {
        Throwable thrown;
        try {
            body.run();
            thrown = null;
        } catch (Throwable e) {
            thrown = e;
        }
        Expect.that(thrown != null, "expected " + className + ", but the call went through");
        for (Throwable e = thrown; e != null; e = e.getCause()) {
            if (e instanceof RemoteException remote) {
                Expect.equal(className, remote.getClassName(), "the remote exception's class");
                Expect.that(String.valueOf(e.getMessage()).contains(text),
                    "the text '" + text + "' is not in '" + e.getMessage() + "'");
                return;
            }
        }
        throw new AssertionError("expected a RemoteException of " + className + ", got " + thrown, thrown);
    }
}
