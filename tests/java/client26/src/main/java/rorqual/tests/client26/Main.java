// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26;

import java.util.List;
import rorqual.tests.client26.apps.Blog;
import rorqual.tests.client26.apps.FollowLists;
import rorqual.tests.client26.apps.OpenTsdb;
import rorqual.tests.client26.apps.RowKeys;
import rorqual.tests.client26.apps.TimeSeries;
import rorqual.tests.client26.apps.WebTable;
import rorqual.tests.client26.apps.Weibo;
import rorqual.tests.client26.calls.AdminCalls;
import rorqual.tests.client26.suite.Borders;
import rorqual.tests.client26.suite.Connections;
import rorqual.tests.client26.suite.Endpoints;
import rorqual.tests.client26.suite.Families;
import rorqual.tests.client26.suite.Filters;
import rorqual.tests.client26.suite.Histories;
import rorqual.tests.client26.suite.Limits;
import rorqual.tests.client26.suite.Maintenance;
import rorqual.tests.client26.suite.Meta;
import rorqual.tests.client26.suite.Mob;
import rorqual.tests.client26.suite.Namespaces;
import rorqual.tests.client26.suite.Reads;
import rorqual.tests.client26.suite.Regions;
import rorqual.tests.client26.suite.Replicas;
import rorqual.tests.client26.suite.Tables;
import rorqual.tests.client26.suite.Tight;
import rorqual.tests.client26.suite.Trackers;
import rorqual.tests.client26.suite.Writes;
import rorqual.tests.support.Program;
import rorqual.tests.support.Runner;

/** All programs on the HBase 2.6 client, in one JVM; see {@link Runner} for the arguments. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        int exit;
        try (Cluster cluster = Cluster.fromEnvironment()) {
            exit = Runner.run(programs(cluster), args);
        }
        // The client leaves threads running, which must not keep the JVM alive.
        System.exit(exit);
    }

    private static List<Program> programs(Cluster cluster) throws Exception {
        if ("1".equals(System.getenv("TIGHT"))) {
            // Needs server settings with which the other programs would fail.
            return List.of(new Tight(cluster));
        }
        if (System.getenv("SINK") != null) {
            // Changes the state of the whole cluster, and stops the server at its end.
            return List.of(new AdminCalls(cluster));
        }
        // The longest program first, so that it does not run alone at the end.
        return List.of(
            new Histories(cluster),
            new Borders(cluster),
            new Blog(cluster),
            new FollowLists(cluster),
            new WebTable(cluster),
            new TimeSeries(cluster),
            new RowKeys(cluster),
            new OpenTsdb(cluster),
            new Weibo(cluster),
            new Tables(cluster),
            new Namespaces(cluster),
            new Reads(cluster),
            new Writes(cluster),
            new Filters(cluster),
            new Families(cluster),
            new Maintenance(cluster),
            new Mob(cluster),
            new Regions(cluster),
            new Replicas(cluster),
            new Trackers(cluster),
            new Limits(cluster),
            new Meta(cluster),
            new Endpoints(cluster),
            new Connections(cluster));
    }
}
