#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of meta_fuzz.c into fuzz/corpus/meta: garbage that clients may write and that once prevented
a start, or could have."""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus/meta"
PUT, DELETE_FAMILY, DELETE_COLUMN, DELETE = range(4)
NAMESPACE, REGION, OWN_ROW = 4, 8, 16
T_LOW, T_HIGH, NS_REGION, T, META, META_REGION, NS, N, DEFAULT, X, COMMAS, STORE = range(12)
STATE, INFO, REGION_STATE, SPLIT_A, SPLIT_B, MERGE0, MERGE1, REPLICA, SEQNUM, SERVER, ANY = range(11)
LATEST, END, END_1, MIDDLE, ZERO, MINUS, ONE, LEAST = range(8)
GIVEN = 255


def cell(what, row, column, time=LATEST, value=b""):
    return bytes([what, row, column, time]) + struct.pack(">H", len(value)) + value


def region(table, start=b"", end=b"", number=5, flags=0):
    return (bytes([table, len(start)]) + start + bytes([len(end)]) + end +
            struct.pack(">Q", number) + bytes([flags]))


def own(table, *rest, **more):
    return cell(REGION | OWN_ROW, X, INFO, value=region(table, *rest, **more))


ENABLED, DISABLED, ENABLING = b"\x08\x00", b"\x08\x01", b"\x08\x03"
SEEDS = {
    "end-of-time": cell(PUT, T, STATE, END, ENABLED) + cell(PUT, T_LOW, REGION_STATE, END, b"junk"),
    "markers": cell(DELETE_FAMILY, T_LOW, INFO, END) + cell(DELETE_COLUMN, T_HIGH, INFO, END_1) +
               cell(DELETE_FAMILY, T, STATE, MIDDLE) + cell(DELETE, T_LOW, INFO, END),
    "rows-gone": cell(DELETE_FAMILY, T_LOW, INFO) + cell(DELETE_FAMILY, NS_REGION, INFO) +
                 cell(DELETE_FAMILY, NS, STATE),
    "internal": own(1, number=1) + own(3, number=1) + own(1, b"a", b"b") + own(2) + own(3, b"x"),
    "overlaps": own(0) + own(0, b"a", b"z") + own(0, b"m", b"n", number=2 ** 62) +
                own(0, b"q", b"a") + own(0, b"c", b"d", number=2 ** 63 - 1),
    "replicas": own(0, flags=0x10) + own(0, b"x", flags=0x33) + cell(PUT, T_LOW, REPLICA, LATEST, b"x"),
    "strangers": own(4) + own(5) + own(6) + own(7, b"k") + own(8) + own(9),
    "parents": cell(REGION, T_LOW, MERGE0, value=region(0, b"m")) +
               cell(REGION, T_LOW, SPLIT_A, value=region(0)) + own(0, b"", b"m", flags=3) +
               cell(PUT, T_HIGH, MERGE1, LATEST, b"junk") + cell(PUT, T_HIGH, SPLIT_B, LATEST, b"PBUF"),
    "states": cell(PUT, T, STATE, LATEST, ENABLING) + cell(PUT, X, STATE, LATEST, DISABLED) +
              cell(PUT, COMMAS, STATE, LATEST, b"\x08\x63") + cell(PUT, T_LOW, STATE, LATEST, ENABLED) +
              cell(PUT, META, STATE, LATEST, DISABLED) + cell(PUT, STORE, STATE, LATEST, ENABLED) +
              cell(PUT, T, INFO, LATEST, b"junk"),
    "disabled": cell(PUT, T, STATE, LATEST, DISABLED) + cell(PUT, T_LOW, SEQNUM, LATEST, b"\xff" * 8),
    "namespaces": cell(NAMESPACE, N, 0, LATEST, b"\x0a\x01n") + cell(NAMESPACE, X, 0, LATEST, b"junk") +
                  cell(NAMESPACE, DEFAULT, 0, END, b"junk") + cell(NAMESPACE, X, 0, MINUS, b"\x0a\x01y") +
                  cell(NAMESPACE | DELETE_FAMILY, DEFAULT, 0, END),
    "long": cell(PUT, 255, STATE, LATEST, b"a" * 3000) + cell(PUT, 255, INFO, LATEST, b"b" * 300),
    "junk": cell(PUT, T_LOW, INFO, LATEST, b"\xff\x00PBUF") + cell(PUT, 70, INFO, GIVEN, b"12345678,,") +
            cell(PUT, T_HIGH, ANY, ONE, b"x" * 300) + cell(PUT, T_HIGH, SERVER, ZERO, b"\xff"),
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for i, (name, cells) in enumerate(SEEDS.items()):
        (FOLDER / name).write_bytes(bytes([i & 1 | (2 if i % 3 == 0 else 0)]) + cells)


if __name__ == "__main__":
    main()
