// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.util.List;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;

/** What changes nothing but the place where cells lie. */
final class Upkeep {
    private static final long DEADLINE = 120_000;
    private final World world;
    private final Dice dice;

    Upkeep(World world, Dice dice) {
        this.world = world;
        this.dice = dice;
    }

    Operation any() {
        byte[] family = world.family(dice);
        return switch (dice.below(10)) {
            case 0, 1, 2, 3 -> Operation.write("flush", (place, answer) -> place.admin.flush(place.name));
            case 4, 5 -> Operation.write("flush family " + Bytes.toString(family),
                (place, answer) -> place.admin.flush(place.name, family));
            case 6, 7 -> Operation.write("compact", (place, answer) -> {
                place.admin.compact(place.name);
                settle(place);
            });
            case 8 -> Operation.write("flush and major compact", (place, answer) -> {
                place.admin.flush(place.name);
                place.admin.majorCompact(place.name);
                settle(place);
            });
            default -> Operation.write("major compact family " + Bytes.toString(family), (place, answer) -> {
                place.admin.majorCompact(place.name, family);
                settle(place);
            });
        };
    }

    /** The server takes the request before the call returns: from then on its state is not NONE until all is done. */
    private static void settle(Place place) throws Exception {
        long end = System.currentTimeMillis() + DEADLINE;
        while (place.admin.getCompactionState(place.name) != CompactionState.NONE) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("the compaction does not end");
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
            return Operation.write("nothing", (place, answer) -> { });
        }
        byte[] value = new byte[World.MAX_CELL - 200];
        dice.random().nextBytes(value);
        return Operation.write("put and delete something big", (place, answer) -> {
            for (byte[] row : List.of(World.bytes("a!"), World.bytes("aa!"), World.bytes("c!"))) {
                Put put = new Put(row);
                Delete delete = new Delete(row);
                for (byte[] family : world.families) {
                    for (int i = 0; i < 25; i++) {
                        put.addColumn(family, World.bytes("big" + i), 1, value);
                    }
                    delete.addFamily(family, 2);
                }
                place.table.put(put);
                place.admin.flush(place.name);
                place.table.delete(delete);
            }
        });
    }
}
