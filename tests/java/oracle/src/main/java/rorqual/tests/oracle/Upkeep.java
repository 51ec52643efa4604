// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.util.Bytes;

/** What changes nothing but the place where cells lie. */
final class Upkeep {
    private static final long DEADLINE = 120_000;
    /** What is said then. */
    static final String ENDLESS = "the compaction does not end";
    /** So many are more than World's limit for files that are compacted. */
    private static final int BIG_CELLS = 60;
    /** A row in each region of any history, which no operation names. */
    private static final List<byte[]> REGIONS = List.of(World.bytes("a!"), World.bytes("aa!"), World.bytes("c!"));
    private static final byte[] LIVE = World.bytes("live");
    private static final byte[] LIVE_LONG = Bytes.toBytes(0L);
    private final World world;
    private final Dice dice;

    Upkeep(World world, Dice dice) {
        this.world = world;
        this.dice = dice;
    }

    Operation any() {
        byte[] family = world.family(dice);
        return switch (dice.below(10)) {
            case 0, 1, 2, 3 -> Operation.upkeep("flush", (place, answer) -> {
                live(place);
                place.admin.flush(place.name);
            });
            case 4, 5 -> Operation.upkeep("flush family " + Bytes.toString(family), (place, answer) -> {
                live(place);
                place.admin.flush(place.name, family);
            });
            case 6, 7 -> Operation.upkeep("compact", (place, answer) -> {
                for (byte[] one : world.families) {
                    if ((Operation.DIVIDE || !world.wide) && world.expires(one)) {
                        // A region's flush before it is divided asks nobody (live).
                        place.admin.majorCompact(place.name, one);
                    } else {
                        place.admin.compact(place.name, one);
                    }
                }
                settle(place);
            });
            case 8 -> Operation.upkeep("flush and major compact", (place, answer) -> {
                live(place);
                place.admin.flush(place.name);
                place.admin.majorCompact(place.name);
                settle(place);
            });
            default -> Operation.upkeep("major compact family " + Bytes.toString(family), (place, answer) -> {
                place.admin.majorCompact(place.name, family);
                settle(place);
            });
        };
    }

    /**
     * A flush in which all has expired leaves an empty file on HBase and none on Rorqual, which counts when a minor compaction chooses
     * files: so each store is given a cell that does not expire. With DIVIDE each store of each region: there a compaction may leave
     * nothing, too.
     */
    private void live(Place place) throws Exception {
        List<Put> puts = new ArrayList<>();
        if (Operation.DIVIDE) {
            place.table.getRegionLocator().clearRegionLocationCache();
            for (RegionInfo region : place.admin.getRegions(place.name)) {
                // Nothing else need lie in a region; no marker is newer.
                Put put = new Put(region.getStartKey().length == 0 ? World.bytes("!") : region.getStartKey());
                world.families.forEach(one -> put.addColumn(one, LIVE, world.future + World.STEP, LIVE_LONG));
                puts.add(put);
            }
            place.table.put(puts);
            return;
        }
        if (!world.wide) {
            return;
        }
        for (byte[] row : REGIONS) {
            Put put = new Put(row);
            world.families.stream().filter(world::expires).forEach(one -> put.addColumn(one, LIVE, world.future, LIVE));
            if (!put.isEmpty()) {
                puts.add(put);
            }
        }
        place.table.put(puts);
    }

    /**
     * A region is split at one of the rows, or merged with the next one. Rewritten at once: from then on all depends on cells alone.
     *
     * <p>Opened anew before: HBase divides what lies in a region's folder, and files that were compacted lie there as long as a reader
     * holds them, or has not let go of them. Only a region that is opened looks which ones those are.
     */
    Operation divide() {
        byte[] row = world.row(dice);
        boolean split = dice.chance(60);
        return Operation.upkeep((split ? "split at " : "merge at ") + Bytes.toStringBinary(row), (place, answer) -> {
            // Each server says for a while that its housekeeping of the last time is not done.
            Change change = () -> {
                List<RegionInfo> regions = place.admin.getRegions(place.name);
                int at = 0;
                while (at + 1 < regions.size() && Bytes.compareTo(regions.get(at + 1).getStartKey(), row) <= 0) {
                    at++;
                }
                RegionInfo region = regions.get(at);
                if (split && !Bytes.equals(region.getStartKey(), row)) {
                    place.admin.splitRegionAsync(region.getRegionName(), row).get();
                } else if (!split && at + 1 < regions.size()) {
                    place.admin.mergeRegionsAsync(new byte[][] {region.getRegionName(), regions.get(at + 1).getRegionName()}, false).get();
                }
            };
            live(place);
            place.admin.disableTable(place.name);
            place.admin.enableTable(place.name);
            retry(place, change);
            live(place);
            place.admin.flush(place.name);
            place.admin.majorCompact(place.name);
            settle(place);
            place.admin.majorCompact(place.name);
            settle(place);
            place.table.getRegionLocator().clearRegionLocationCache();
            place.admin.getRegions(place.name).forEach(region -> answer.say(Bytes.toStringBinary(region.getStartKey())));
        });
    }

    private interface Change {
        void run() throws Exception;
    }

    private static void retry(Place place, Change change) throws Exception {
        long end = System.currentTimeMillis() + DEADLINE;
        while (true) {
            try {
                change.run();
                return;
            } catch (IOException | ExecutionException e) {
                if (System.currentTimeMillis() > end) {
                    throw e;
                }
            }
            place.admin.runCatalogJanitor();
            Thread.sleep(50);
        }
    }

    /** The server takes the request before the call returns: from then on its state is not NONE until all is done. */
    private static void settle(Place place) throws Exception {
        long end = System.currentTimeMillis() + DEADLINE;
        while (place.admin.getCompactionState(place.name) != CompactionState.NONE) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException(ENDLESS);
            }
            Thread.sleep(2);
        }
    }

    /**
     * In every other history the oldest file of each store is a big one, which minor compactions leave alone: so they do not
     * take all files, and keep the delete markers.
     */
    Operation bulk() {
        if (dice.chance(50)) {
            return Operation.upkeep("nothing", (place, answer) -> { });
        }
        // No two alike: it is to be big after any compression.
        byte[][] values = new byte[BIG_CELLS][World.MAX_CELL - 200];
        for (byte[] value : values) {
            dice.random().nextBytes(value);
        }
        return Operation.upkeep("put and delete something big", (place, answer) -> {
            List<Delete> deletes = new ArrayList<>();
            for (byte[] row : REGIONS) {
                Put put = new Put(row);
                Delete delete = new Delete(row);
                for (byte[] family : world.families) {
                    // What has expired makes no big file.
                    long time = world.wide && world.expires(family) ? world.future : 1;
                    for (int i = 0; i < BIG_CELLS; i++) {
                        put.addColumn(family, World.bytes("big" + i), time, values[i]);
                    }
                    delete.addFamily(family, Math.max(time, 2));
                }
                place.table.put(put);
                deletes.add(delete);
            }
            place.admin.flush(place.name);
            place.table.delete(deletes);
        });
    }
}
