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

/** Operations that only change which files the cells are in. */
final class Upkeep {
    private static final long DEADLINE = 120_000;
    /** The text of a refusal because a compaction does not end. */
    static final String ENDLESS = "the compaction does not end";
    /** More bytes than World's size limit of files for minor compactions. */
    private static final int BIG_CELLS = 60;
    /** A row in each region of any history; no operation uses these rows. */
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
                        // The flush of a region before a split or merge does not call live().
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
     * If all cells have expired, a flush leaves an empty file on HBase and none on Rorqual, which changes a minor compaction's choice
     * of files. So each store gets a cell that does not expire; with DIVIDE each store of each region, because there a compaction
     * may leave no cell, either.
     */
    private void live(Place place) throws Exception {
        List<Put> puts = new ArrayList<>();
        if (Operation.DIVIDE) {
            place.table.getRegionLocator().clearRegionLocationCache();
            for (RegionInfo region : place.admin.getRegions(place.name)) {
                // A region may have no other cell.
                puts.add(staying(region.getStartKey().length == 0 ? World.bytes("!") : region.getStartKey()));
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

    /** A cell in each family that does not expire; no marker is newer. */
    private Put staying(byte[] row) {
        Put put = new Put(row);
        world.families.forEach(one -> put.addColumn(one, LIVE, world.future + World.STEP, LIVE_LONG));
        return put;
    }

    /**
     * Splits a region at one of the rows, or merges it with the next one, and rewrites the result at once, so that later results
     * depend on the cells only.
     *
     * <p>The region is reopened before: HBase splits all files in the region's folder, where compacted files stay as long as readers
     * hold them. Only opening a region excludes these files.
     */
    Operation divide() {
        byte[] row = world.row(dice);
        boolean split = dice.chance(60);
        return Operation.upkeep((split ? "split at " : "merge at ") + Bytes.toStringBinary(row), (place, answer) -> {
            // After a split or merge each server refuses the next one until it has cleaned up.
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

    /** The server accepts the request before the call returns: from then on its state is not NONE until all is done. */
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
     * In every other history the oldest file of each store is too large for minor compactions, so that they do not
     * include all files, and keep delete markers. In all of them each store has a cell in a file that stays: a compaction
     * that leaves no cell leaves an empty file on HBase and none on Rorqual, and the next minor compaction has other inputs.
     */
    Operation bulk() {
        if (dice.chance(50)) {
            return Operation.upkeep("put cells that stay", (place, answer) -> {
                for (byte[] row : REGIONS) {
                    place.table.put(staying(row));
                }
                place.admin.flush(place.name);
            });
        }
        // All different, so that the file is large with any compression.
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
                    // Expired cells would not make a large file.
                    long time = world.wide && world.expires(family) ? world.future : 1;
                    for (int i = 0; i < BIG_CELLS; i++) {
                        put.addColumn(family, World.bytes("big" + i), time, values[i]);
                    }
                    delete.addFamily(family, Math.max(time, 2));
                }
                place.table.put(put);
                place.table.put(staying(row));
                deletes.add(delete);
            }
            place.admin.flush(place.name);
            place.table.delete(deletes);
        });
    }
}
