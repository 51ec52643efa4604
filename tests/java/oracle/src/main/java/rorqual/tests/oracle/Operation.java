// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

/** One step of a history. */
final class Operation {
    interface Action {
        void run(Place place, Answer answer) throws Exception;
    }

    /** Whether regions are split and merged as well. */
    static final boolean DIVIDE = System.getenv("DIVIDE") != null;

    /** The operation as text, for reports. */
    final String text;
    /** Whether the operation changes data. Other operations can be left out of a shrunken history. */
    final boolean writes;
    /** Whether the server chooses a timestamp for the operation. */
    final boolean stamped;
    /** Whether the operation is a flush, a compaction, a split or a merge. */
    final boolean upkeep;
    final Action action;

    private Operation(String text, boolean writes, boolean stamped, boolean upkeep, Action action) {
        this.text = text;
        this.writes = writes;
        this.stamped = stamped;
        this.upkeep = upkeep;
        this.action = action;
    }

    static Operation read(String text, Action action) {
        return new Operation(text, false, false, false, action);
    }

    static Operation write(String text, Action action) {
        return new Operation(text, true, false, false, action);
    }

    /** An operation that only changes which files the cells are in. */
    static Operation upkeep(String text, Action action) {
        return new Operation(text, true, false, true, action);
    }

    /** A write in which the server chooses a timestamp. */
    static Operation stamped(String text, Action action) {
        return new Operation(text, true, true, false, action);
    }

    /** The operation with this number in the world's history; a new object for each server, because clients keep state in request
     * objects. */
    static Operation make(World world, int number) {
        Dice dice = new Dice(world.seed, number);
        if (number == 0) {
            return new Upkeep(world, dice).bulk();
        }
        if (DIVIDE && number % 150 == 149) {
            return new Upkeep(world, dice).divide();
        }
        // A history alternates between phases of mostly writes and mostly reads.
        int writes = number % 60 < 25 ? 75 : 15;
        int kind = dice.below(100);
        if (kind < 4) {
            return new Upkeep(world, dice).any();
        }
        return kind < writes ? new Writes(world, dice).any() : new Reads(world, dice).any();
    }
}
