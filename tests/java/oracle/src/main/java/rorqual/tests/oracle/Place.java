// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/** A world's table on one server, and how the two servers' clocks are made one. */
final class Place implements AutoCloseable {
    final World world;
    final TableName name;
    final Admin admin;
    final Table table;
    private final Peer peer;
    /** When each operation began that lets the server choose a timestamp. */
    private final TreeMap<Long, Integer> moments = new TreeMap<>();

    private Place(Peer peer, World world, TableName name) {
        this.peer = peer;
        this.world = world;
        this.name = name;
        this.admin = peer.admin;
        try {
            this.table = peer.connection(world.tags).getTable(name);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static Place create(Peer peer, World world, TableName name) throws IOException {
        peer.admin.createTable(world.table(name), world.splits());
        return new Place(peer, world, name);
    }

    /** Runs an operation and returns its answer as text, exceptions included. */
    String run(int number) throws InterruptedException {
        Operation operation = Operation.make(world, number);
        if (operation.stamped) {
            // The server's clock is this machine's. Every operation whose timestamps the server chooses has milliseconds of its
            // own: they order the operations here as there, and name the operation wherever they are read again.
            long end = System.currentTimeMillis();
            while (System.currentTimeMillis() <= end) {
                Thread.onSpinWait();
            }
            moments.put(System.currentTimeMillis(), number);
        }
        Answer answer = new Answer(this);
        try {
            operation.action.run(this, answer);
        } catch (Throwable e) {
            answer.failure(e);
        }
        return answer.text();
    }

    /** A timestamp as both servers have it. */
    String time(long time) {
        long distance = time - world.origin;
        if (Math.abs(distance) <= 2_000 * World.STEP) {
            if (distance % World.STEP == 0) {
                return distance == 0 ? "origin" : "origin" + (distance > 0 ? "+" : "") + distance / 1000 + "s";
            }
            Map.Entry<Long, Integer> moment = moments.floorEntry(time);
            return moment == null ? "before" : "op" + moment.getValue();
        }
        return time == Long.MAX_VALUE ? "latest" : String.valueOf(time);
    }

    void drop() throws IOException {
        close();
        peer.drop(name);
    }

    @Override
    public void close() throws IOException {
        table.close();
    }
}
