// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Table;

/** A world's table on one server, and the conversion between that server's timestamps and the common form. */
final class Place implements AutoCloseable {
    /** Seconds after which an operation is examined for an endless read. */
    static final int LIMIT = Integer.parseInt(System.getenv().getOrDefault("LIMIT", "10"));
    /** Seconds that a normal operation may take on a busy machine. */
    static final int PATIENCE = 120;
    /** Milliseconds after which a server has closed a scanner whose client is silent. */
    static final long LEASE = Long.parseLong(System.getenv().getOrDefault("LEASE", "60000"));
    private static final int MOST_REPETITIONS = 20;
    /** The durations of the run's parts: counts and nanoseconds. */
    static final Map<String, long[]> TIMES = new ConcurrentSkipListMap<>();
    private static final ExecutorService ASKED = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "asked");
        thread.setDaemon(true);
        return thread;
    });

    final World world;
    final TableName name;
    final Admin admin;
    final Table table;
    private final Peer peer;
    /** The start of each operation in which the server chooses a timestamp. */
    private final ConcurrentSkipListMap<Long, Integer> moments = new ConcurrentSkipListMap<>();

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

    /**
     * The operation's result as text, including exceptions, or null if it does not end. A read that takes about as long as a scanner's
     * lease is repeated: if the lease has ended, the client goes on with a new scanner, whose filters begin anew.
     */
    String run(int number) throws InterruptedException {
        for (int i = 1; true; i++) {
            Operation operation = Operation.make(world, number);
            long begun = System.nanoTime();
            String said = run(operation, number);
            boolean slow = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun) > LEASE * 3 / 4;
            if (said == null || operation.writes || !slow || i == MOST_REPETITIONS) {
                return said;
            }
            System.out.println("-- repeated, because it took long: seed " + world.seed + ", operation " + number + " on " + peer.name);
        }
    }

    private String run(Operation operation, int number) throws InterruptedException {
        long begun = System.nanoTime();
        try {
            return within(() -> answer(operation, number));
        } finally {
            count(peer.name + " " + operation.text.replaceFirst("(?s)\\W.*", ""), System.nanoTime() - begun);
        }
    }

    /**
     * Runs the operation on a separate thread. A slow operation may only be waiting for a busy machine: it counts as endless only
     * if its read was aborted, or after the longest time.
     */
    private String within(Callable<String> asked) throws InterruptedException {
        Future<String> future = ASKED.submit(asked);
        for (int waited = 0; waited < PATIENCE; waited += LIMIT) {
            try {
                return future.get(LIMIT, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                throw new IllegalStateException(e.getCause());
            } catch (TimeoutException e) {
                peer.breakOff();
            }
        }
        future.cancel(true);
        return null;
    }

    /** Adds a duration to TIMES. */
    static void count(String what, long nanoseconds) {
        TIMES.merge(what, new long[] {1, nanoseconds}, (a, b) -> new long[] {a[0] + b[0], a[1] + b[1]});
    }

    /** Returns null if the operation takes longer than the given seconds. */
    private static String within(int seconds, Callable<String> asked) throws InterruptedException {
        Future<String> answer = ASKED.submit(asked);
        try {
            return answer.get(seconds, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            answer.cancel(true);
            return null;
        }
    }

    /** Whether every region responds. */
    boolean answers() throws InterruptedException {
        try {
            return asked();
        } catch (IllegalStateException e) {
            return false;
        }
    }

    private boolean asked() throws InterruptedException {
        return within(() -> {
            List<Get> gets = new ArrayList<>();
            gets.add(new Get(World.bytes("!")));
            for (byte[] row : world.splits()) {
                gets.add(new Get(row));
            }
            return String.valueOf(table.exists(gets).length);
        }) != null;
    }

    private String answer(Operation operation, int number) {
        if (operation.stamped) {
            // The server's clock is this machine's. No two operations whose timestamps the server chooses share a millisecond:
            // so these timestamps have the same order on both servers, and identify the operation when they are read.
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
        return answer.brokenOff() ? null : answer.text();
    }

    /** A timestamp in the form that is the same for both servers. */
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
