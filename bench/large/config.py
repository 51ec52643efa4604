# SPDX-License-Identifier: Apache-2.0
"""Parameters of a run, from the environment."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
for folder in ("bench", "bench/rpc"):
    # after our own folder, because both have modules with the same names, such as floors
    sys.path.append(str(ROOT / folder))


class Refused(Exception):
    """The run is not possible as requested; the message has the reason."""


class Failed(Exception):
    """One part on one server failed; the others continue."""


def words(name, default):
    return [w for w in os.environ.get(name, "").replace(",", " ").split() if w] or list(default)


def size(text):
    """Bytes, also 100M, 2G."""
    units = {"K": 10, "M": 20, "G": 30}
    return int(float(text[:-1]) * (1 << units[text[-1].upper()])) if text[-1:].upper() in units else int(float(text))


PARTS = ["floor", "sorted", "bulk", "load", "get", "multi", "scan", "ycsb", "overwrite", "growth"]
PEERS = ["hbase", "rorqual", "rocksdb"]
BUILD_TARGETS = {"hbase": [], "rorqual": [], "rocksdb": ["bench/engine_rocksdb"]}
# With less memory they are killed while they load.
LEAST = {"hbase": 1 << 30, "rorqual": 80 << 20, "rocksdb": 64 << 20}


class Config:
    """One run. shapes: [(rows, bytes of a value)]."""

    def __init__(self):
        env = os.environ.get
        self.scale = float(env("SCALE", "1"))
        self.shapes = [(max(1000, int(float(rows) * self.scale)), int(value))
                       for rows, value in (shape.split("x") for shape in words("SHAPES", ["2e7x1000", "1e8x100"]))]
        self.memory = int(size(env("MEMORY", "2G")) * self.scale)
        self.parts = self.checked("PARTS", PARTS)
        self.peers = self.checked("PEERS", PEERS)
        self.seconds = float(env("SECONDS", "120" if self.scale >= 1 else "10"))
        self.warm = float(env("WARM", str(self.seconds / 2)))
        self.operations = int(env("OPERATIONS", "0"))
        self.quiet = float(env("QUIET", "3"))
        self.connections, self.depth = int(env("CONNECTIONS", "4")), int(env("DEPTH", "16"))
        self.regions = int(env("REGIONS", "8"))
        self.block = size(env("BLOCK", "64K"))
        self.batch = int(env("BATCH", "100"))
        self.rounds = int(env("OVERWRITE_ROUNDS", "12"))
        self.bulk_share = float(env("BULK_SHARE", "0.1"))
        self.growth = [max(1000, int(float(n) * self.scale)) for n in words("GROWTH", ["1e6", "1e7", "1e8"])]
        self.folder = env("FOLDER")
        self.out = pathlib.Path(env("OUT") or ROOT / "docs")
        if self.scale <= 0 or self.memory < 1 << 20 or min(self.connections, self.depth, self.batch, self.rounds) < 1:
            raise Refused("SCALE, MEMORY, CONNECTIONS, DEPTH, BATCH and OVERWRITE_ROUNDS must be positive")
        self.is_whole = self.scale >= 1 and not any(env(name) for name in ("PARTS", "PEERS", "SHAPES", "MEMORY", "GROWTH"))

    @staticmethod
    def checked(name, known):
        wanted = words(name, known)
        unknown = [w for w in wanted if w not in known]
        if unknown:
            raise Refused(f"{name}: no {', '.join(unknown)}; there are {' '.join(known)}")
        return [k for k in known if k in wanted]

    def raw(self, shape):
        """Bytes of keys and values."""
        rows, value = shape
        return rows * (value + 16)

    def disk(self):
        """The estimated maximum of bytes on disk: tables with their cells' overhead, and a concurrent compaction."""
        shapes = list(self.shapes) + [(n, 100) for n in self.growth if "growth" in self.parts]
        return max(2.2 * rows * (value + 60) for rows, value in shapes)

    def memory_of(self, peer):
        return max(self.memory, LEAST[peer])
