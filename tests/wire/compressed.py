#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large and hostile compressed cell blocks: in both directions the cells must be the same as without compression,
and clients that use slow compression must not delay others. One loop, rorqual.memory=128m.
"""
import bz2
import os
import pathlib
import random
import struct
import sys
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import number, text  # pylint: disable=wrong-import-position

MEMORY = 128 << 20
KEYVALUE = b"org.apache.hadoop.hbase.codec.KeyValueCodec"
HADOOP = b"org.apache.hadoop.io.compress."
CODECS = {"DefaultCodec": (zlib.compress, zlib.decompress),
          "GzipCodec": (lambda b: gzip(b), lambda b: zlib.decompress(b, 31)),
          "BZip2Codec": (bz2.compress, bz2.decompress)}
LARGE = 20 * 100_000  # bytes of the large row
SLOW_ANSWERS = 8
SANITIZED = "asan" in os.environ.get("RORQUAL", "") or "tsan" in os.environ.get("RORQUAL", "")


def gzip(data):
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def cell(row, qualifier, value):
    """A Put's cell in the format of KeyValueCodec."""
    key = struct.pack(">H", len(row)) + row + b"\1f" + qualifier + struct.pack(">qB", (1 << 63) - 1, 4)
    body = struct.pack(">II", len(key), len(value)) + key + value
    return struct.pack(">I", len(body)) + body


class World:
    def __init__(self, folder):
        self.server = rorqual.Server(pathlib.Path(folder) / "data", pathlib.Path(folder) / "log",
                                     "-D", f"rorqual.memory={MEMORY}", "-D", "rorqual.loops=1")
        self.client = hbase.Client(self.server)
        self.client.create("t", {"f": {}})
        self.region = self.client.regions("t")[0][1]
        self.pool = random.Random(1).randbytes(LARGE)
        self.client.data.put(self.region, b"small", {(b"f", b"q"): b"v"})
        for i in range(20):
            self.client.data.put(self.region, b"large", {(b"f", b"%d" % i): self.pool[i * 100_000:][:100_000]})

    def connect(self, codec=None):
        return hbase.Connection(self.server.regionserver, codec=KEYVALUE,
                                compressor=HADOOP + codec.encode() if codec else None)

    def get(self, row):
        return text(1, hbase.region(self.region)) + text(2, text(1, row))

    def put(self, row):
        """A Put whose only cell is in the cell block."""
        mutation = text(1, row) + number(2, hbase.PUT) + number(8, 1)
        return text(1, hbase.region(self.region)) + text(2, mutation)


def answers_are_the_same(world):
    plain = world.connect()
    for row in (b"small", b"large"):
        plain.call("Get", world.get(row))
        want = plain.block
        assert want, "no cell block"
        for name, (_, unpack) in CODECS.items():
            c = world.connect(name)
            c.call("Get", world.get(row))
            assert unpack(c.block) == want, f"{name} of {row}"
            c.close()
    plain.close()


def requests_are_the_same(world):
    for name, (pack, _) in CODECS.items():
        c = world.connect(name)
        for size in (1, 3000, 100_000, 5_000_000):
            value = world.pool[:size // 2] + b"z" * (size - len(world.pool[:size // 2]))
            row = b"%s-%d" % (name.encode(), size)
            c.call("Mutate", world.put(row), pack(cell(row, b"q", value)))
            got = world.client.data.get(world.region, row)
            assert got == {(b"f", b"q"): value}, f"{name}, {size} bytes"
        c.close()
    world.client.data.put(world.region, b"whole", {(b"f", b"q"): world.pool})
    assert world.client.data.get(world.region, b"whole") == {(b"f", b"q"): world.pool}


def damaged_blocks_are_refused(world):
    for name, (pack, _) in CODECS.items():
        for size in (50, 300_000):
            packed = bytearray(pack(cell(b"damaged", b"q", world.pool[:size])))
            packed[len(packed) // 2] ^= 255
            c = world.connect(name)
            for block in (bytes(packed), bytes(packed[:len(packed) // 2]), b"\0" * size):
                try:
                    c.call("Mutate", world.put(b"damaged"), block)
                except hbase.Refused as refused:
                    assert "IOException" in refused.name or "DoNotRetry" in refused.name, str(refused)
                else:
                    assert False, f"{name}: taken"
            c.call("Get", world.get(b"small"))
            c.close()
    assert world.client.data.get(world.region, b"damaged") == {}


def a_bomb_takes_no_memory(world):
    """A few hundred bytes that decompress to 200 MB."""
    bomb = bytes(200 << 20)
    for name, (pack, _) in CODECS.items():
        block = pack(bomb)
        c = world.connect(name)
        for _ in range(3):
            try:
                c.call("Mutate", world.put(b"bomb"), block)
            except hbase.Refused as refused:
                assert refused.name == "DoNotRetryIOException" and "rorqual.memory" in refused.trace, str(refused)
            else:
                assert False, f"{name}: taken"
        c.close()
    if not SANITIZED:
        status = pathlib.Path(f"/proc/{world.server.process.pid}/status").read_text(encoding="ascii")
        peak = int(status.split("VmHWM:")[1].split()[0]) << 10
        assert peak <= MEMORY * 13 // 10, f"{peak >> 20} MB resident"


def others_go_on(world):
    """Regression: a loop compressed one response after another, and served only one call of other clients in
    between."""
    slow = world.connect("BZip2Codec")
    for _ in range(SLOW_ANSWERS):
        slow.send("Get", world.get(b"large"))
    reader = threading.Thread(target=lambda: [slow.receive() for _ in range(SLOW_ANSWERS)])
    reader.start()
    served = 0
    while reader.is_alive():
        world.client.data.get(world.region, b"small")
        served += 1
    slow.close()
    assert served >= 5 * SLOW_ANSWERS, f"{served} gets beside {SLOW_ANSWERS} compressed answers"


def peers_that_go(world):
    """Clients disconnect while their requests are decompressed or their responses compressed."""
    block = bz2.compress(cell(b"gone", b"q", world.pool))
    for _ in range(4):
        c = world.connect("BZip2Codec")
        for _ in range(3):
            c.send("Mutate", world.put(b"gone"), block)
            c.send("Get", world.get(b"large"))
        c.close()
    assert world.client.data.get(world.region, b"small") == {(b"f", b"q"): b"v"}


TESTS = (answers_are_the_same, requests_are_the_same, damaged_blocks_are_refused, a_bomb_takes_no_memory, others_go_on,
         peers_that_go)


if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("compressed", World, TESTS))
