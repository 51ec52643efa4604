// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintWriter;
import org.apache.hadoop.hbase.HBaseTestingUtility;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * Runs test classes, of JUnit 4 and 5, and prints 'N passed, N failed': Main CLASS… With "--time" it prints instead the
 * milliseconds from a mini cluster's start to its first response, several times in one JVM.
 */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 0 && arguments[0].equals("--time")) {
      time();
      System.exit(0);
    }
    LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
    for (String name : arguments) {
      request.selectors(selectClass(name));
    }
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherDiscoveryRequest built = request.build();
    TestPlan plan = LauncherFactory.create().discover(built);
    LauncherFactory.create().execute(built, listener);
    TestExecutionSummary summary = listener.getSummary();
    summary.printFailuresTo(new PrintWriter(System.out), 20);
    for (TestExecutionSummary.Failure failure : summary.getFailures()) {
      System.out.println("FAIL " + failure.getTestIdentifier().getUniqueId() + ": " + failure.getException());
    }
    // If the setup of a class fails, none of its tests is counted as failed.
    long failed = summary.getTestsFailedCount() + summary.getContainersFailedCount();
    System.out.println(summary.getTestsSucceededCount() + " passed, " + failed + " failed");
    System.exit(failed == 0 && summary.getTestsSucceededCount() > 0 && plan.containsTests() ? 0 : 1);
  }

  private static void time() throws Exception {
    for (int i = 0; i < 6; i++) {
      HBaseTestingUtility utility = new HBaseTestingUtility();
      long begun = System.nanoTime();
      utility.startMiniCluster();
      long started = System.nanoTime();
      utility.getAdmin().listTableNames();
      long answered = System.nanoTime();
      utility.shutdownMiniCluster();
      System.out.printf("started in %.0f ms, connected and answered in %.0f ms%n", (started - begun) / 1e6, (answered - started) / 1e6);
    }
  }
}
