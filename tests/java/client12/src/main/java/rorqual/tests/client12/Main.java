// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client12;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import rorqual.tests.support.Program;
import rorqual.tests.support.Runner;

/** The programs on the HBase 1.2 client; {@code ZK} and {@code RUN} as for the 2.6 client. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        String zookeeper = System.getenv("ZK");
        if (zookeeper == null || !zookeeper.contains(":")) {
            throw new IllegalArgumentException("ZK=host:port must say where the server is");
        }
        String run = System.getenv("RUN");
        if (run == null) {
            run = "r" + ThreadLocalRandom.current().nextInt(100_000, 1_000_000);
        }
        Configuration conf = configuration(zookeeper);
        // Tight12 needs server settings with which the other programs would fail.
        List<Program> programs = "1".equals(System.getenv("TIGHT")) ? List.of(new Tight12(conf, run))
            : List.of(new Weibo12(conf, run), new OldCalls(conf, run));
        System.exit(Runner.run(programs, args));
    }

    private static Configuration configuration(String zookeeper) {
        Configuration conf = HBaseConfiguration.create();
        int colon = zookeeper.lastIndexOf(':');
        conf.set("hbase.zookeeper.quorum", zookeeper.substring(0, colon));
        conf.set("hbase.zookeeper.property.clientPort", zookeeper.substring(colon + 1));
        // Few and short retries: this client retries even calls that the server refused with a final error (a namespace with tables).
        conf.setInt("hbase.client.retries.number", 4);
        conf.setInt("hbase.client.pause", 20);
        conf.setInt("hbase.rpc.timeout", 30_000);
        return conf;
    }
}
