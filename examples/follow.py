#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who follows whom: a relation of many to many, read from both sides.

    python3 follow.py file:/tmp/follow   in this process; or hbase://localhost:2181, memory:

The same as follow.c: a row is a blogger, cf1 has a column for each that he follows, cf2 one for each that follows him.
"""
import sys

import rorqual

NICKS = {"CSDN_1": "jakson", "CSDN_2": "elite", "CSDN_3": "bob", "CSDN_4": "Eric", "CSDN_5": "tom"}
JAKSON, ELITE, BOB, ERIC, TOM = NICKS
PAIRS = [(JAKSON, BOB), (ELITE, BOB), (BOB, JAKSON), (ERIC, TOM), (JAKSON, ELITE), (BOB, ELITE), (ERIC, BOB)]


def follow(table, fan, idol):
    """Changes both sides in one batch: two rows, which are not written atomically; repeating the call repairs a partial
    change."""
    with table.batch() as batch:
        batch.put(fan, {("cf1", idol): NICKS[idol]})
        batch.put(idol, {("cf2", fan): NICKS[fan]})


def unfollow(table, fan, idol):
    with table.batch() as batch:
        batch.delete(fan, [("cf1", idol)])
        batch.delete(idol, [("cf2", fan)])


def follows(table, fan, idol):
    return table.exists(fan, [("cf1", idol)])


def print_list(table, blogger, family, what):
    names = [cell.value.decode() for cell in table.get(blogger, [family]).cells]
    print(NICKS[blogger], what, *names or ["nobody"])


def main():
    with rorqual.connect(sys.argv[1] if len(sys.argv) > 1 else "memory:") as db:
        table = db.table("relation") if db.table_exists("relation") else db.create_table("relation", ["cf1", "cf2"])
        for fan, idol in PAIRS:
            follow(table, fan, idol)
        for blogger in NICKS:
            print_list(table, blogger, "cf1", "follows")
            print_list(table, blogger, "cf2", "is followed by")
        unfollow(table, ERIC, BOB)
        print("Eric follows bob:", "yes" if follows(table, ERIC, BOB) else "no")
        print("Eric follows tom:", "yes" if follows(table, ERIC, TOM) else "no")


if __name__ == "__main__":
    main()
