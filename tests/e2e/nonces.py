#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Increments, appends, batches and RowMutations with a nonce, retried after a flush and kill -9: each must be
applied exactly once, whatever the server wrote in between. `rorqual wal dump` shows the nonces' files;
`rorqual fsck` and the start report a damaged file, and the server starts nevertheless. SEED=n repeats a run;
ROUNDS=n kills (default 6).
"""
import os
import pathlib
import random
import struct
import sys
import tempfile

import fsck
import hbase
import rorqual
from hbase import number, region, text

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("ROUNDS", "6"))
INCREMENT, APPEND = 1, 0
GROUP = 4711
COUNTERS = 8
SETTINGS = ("rorqual.memory=33554432", "rorqual.wal.file.size=65536", "rorqual.wal.max=262144",
            "hbase.hregion.memstore.flush.size=65536")


def delta(row, kind, value, nonce):
    column = text(3, text(1, b"f") + text(2, text(1, b"n") + text(2, value)))
    return text(1, row) + number(2, kind) + column + number(9, nonce)


class Op:
    """One change of a counter, by one kind of request."""

    def __init__(self, rng, nonce):
        self.row = b"%c%d" % (b"az"[rng.randrange(2)], rng.randrange(COUNTERS))
        self.by = rng.randrange(1, 10)
        self.nonce = nonce
        self.way = rng.choice(("mutate", "multi", "atomic", "append"))

    def send(self, test):
        name = test.region_of(self.row)
        if self.way == "append":
            change = delta(b"p" + self.row, APPEND, b"x" * self.by, self.nonce)
            name = test.region_of(b"p" + self.row)
        else:
            change = delta(self.row, INCREMENT, struct.pack(">q", self.by), self.nonce)
        if self.way in ("mutate", "append"):
            test.client.data.call("Mutate", text(1, region(name)) + text(2, change) + number(4, GROUP))
            return
        action = number(1, 0) + text(2, change)
        atomic = number(2, 1) if self.way == "atomic" else b""
        answer = test.client.data.call(
            "Multi", text(1, text(1, region(name)) + atomic + text(3, action)) + number(2, GROUP))
        problem = hbase.multi_outcomes(answer, 1)[0]
        assert problem is None or self.way == "atomic", problem


class Test:
    def __init__(self, root):
        self.root = root
        self.rng = random.Random(SEED)
        self.counts = {}
        self.lengths = {}
        self.ops = []
        self.nonce = 1
        self.start()
        self.client.create("t", {"f": {}}, [b"m"])

    def start(self):
        options = [word for pair in SETTINGS for word in ("-D", pair)]
        self.server = rorqual.Server(self.root / "data", self.root / "log", *options)
        self.client = hbase.Client(self.server)
        self.regions = None

    def region_of(self, row):
        if self.regions is None:
            self.regions = [name for _, name, _ in self.client.regions("t")]
        return self.regions[row >= b"m"]

    def flush(self):
        for row in (b"a", b"z"):
            self.client.flush(self.region_of(row))

    def kill_and_start(self):
        self.client.close()
        self.server.kill()
        self.start()

    def new_op(self):
        op = Op(self.rng, self.nonce)
        self.nonce += 1
        op.send(self)
        kept = self.lengths if op.way == "append" else self.counts
        kept[op.row] = kept.get(op.row, 0) + op.by
        self.ops.append(op)

    def wrong(self):
        for row, count in self.counts.items():
            got = self.client.data.get(self.region_of(row), row).get((b"f", b"n"))
            if got != struct.pack(">q", count):
                return f"{row!r} is {got!r}, not {count}"
        for row, length in self.lengths.items():
            got = self.client.data.get(self.region_of(b"p" + row), b"p" + row).get((b"f", b"n"), b"")
            if len(got) != length:
                return f"{row!r} has {len(got)} bytes, not {length}"
        return None

    # ---- the parts

    def rounds(self):
        for _ in range(ROUNDS):
            for _ in range(60):
                self.new_op()
                if self.rng.randrange(12) == 0:
                    self.flush()
            if self.rng.randrange(2) == 0:
                self.flush()
            self.kill_and_start()
            for op in self.ops:
                op.send(self)
            problem = self.wrong()
            if problem:
                return problem
        return None

    def shown(self):
        """fsck finds no problem in the folder of the killed server."""
        self.flush()
        self.client.close()
        self.server.kill()
        data = self.root / "data"
        code, lines = fsck.run("wal", "dump", "--json", data)
        if code != 0 or not any('"kind":"nonces"' in line for line in lines):
            return f"wal dump: code {code}, {lines[-3:]}"
        code, lines = fsck.run("wal", "dump", "--values", data)
        if code != 0 or not any(f"nonce {GROUP}/{self.ops[-1].nonce} " in line for line in lines):
            return f"wal dump --values: code {code}, {lines[-3:]}"
        return fsck.expect(*fsck.fsck(data), 0) or fsck.expect(*fsck.run("wal", "verify", data), 0, "fine")

    def damaged(self):
        data = self.root / "data"
        files = sorted((data / ".rorqual" / "nonces").rglob("*.*"))
        for file in files:
            whole = bytearray(file.read_bytes())
            whole[40] ^= 4
            file.write_bytes(whole)
        names = [file.name for file in files]
        problem = (fsck.expect(*fsck.fsck(data), 1, *names)
                   or fsck.expect(*fsck.run("wal", "verify", data), 1, *names))
        if problem:
            return problem
        self.start()
        if self.wrong():
            return self.wrong()
        log = (self.root / "log").read_text()
        missing = [name for name in names if name not in log]
        if missing:
            return f"the log does not name {missing}"
        self.new_op()
        self.flush()
        return self.wrong()


def main():
    report = rorqual.Report()
    print(f"seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rorqual-nonces.") as scratch:
        test = Test(pathlib.Path(scratch))
        for name, part in (("what is repeated after a kill counts once", test.rounds),
                           ("their files are shown", test.shown),
                           ("damage in them is named and stops nothing", test.damaged)):
            try:
                problem = part()
            except Exception as error:  # pylint: disable=broad-except
                problem = f"{type(error).__name__}: {str(error)[:300]}; {test.server.tail()}"
            if not report.outcome(f"nonces: {name}", problem):
                break
        problem = test.server.stop() if test.server.process.poll() is None else "it had died"
        report.outcome("nonces: the server's end", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
