#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of open scanners is bounded; a client that opens too many does not close other clients' scanners; a
closed connection leaves no scanner open.

The server has rorqual.memory=128m, of which scanners may use a quarter. Its resident size is printed for each
flood, and may not exceed the budget by more than 30 percent.
"""
import os
import pathlib
import re
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import number, text  # pylint: disable=wrong-import-position

MEMORY = 128 << 20
ROOM = MEMORY // 4
PLAIN = 10000      # number that always fits for one connection
DEADLINE = 300     # for actions that an idle server takes within seconds
PIPELINED = 100
LEASE_MS = 3600000  # no lease ends while a busy machine opens thousands of scanners
FILTERS = "org.apache.hadoop.hbase.filter."
SANITIZED = "asan" in os.environ.get("RORQUAL", "") or "tsan" in os.environ.get("RORQUAL", "")


def prefix_filter(size):
    return text(5, text(1, FILTERS + "PrefixFilter") + text(2, text(1, b"r" + b"x" * size)))


def list_filter(children):
    """Filters that are small on the wire and much larger in memory."""
    one = text(2, text(1, FILTERS + "KeyOnlyFilter") + text(2, number(1, 0)))
    body = number(1, 1) + one * children
    return text(5, text(1, FILTERS + "FilterList") + text(2, body))


def regex_filter(repeats):
    """A short regular expression that is large when compiled."""
    pattern = text(1, b"(?:[a-z][0-9]){1,%d}$" % repeats)
    pattern += number(2, 0) + text(3, "UTF-8") + text(4, "JAVA")
    comparator = text(1, FILTERS + "RegexStringComparator") + text(2, pattern)
    compare = text(1, number(1, 2) + text(2, comparator))
    return text(5, text(1, FILTERS + "RowFilter") + text(2, compare))


def columns(count):
    qualifiers = b"".join(text(2, b"q%06d" % i) for i in range(count))
    return text(1, text(1, b"f") + qualifiers)


def attributes(count, size):
    return b"".join(text(2, text(1, b"a%d" % i) + text(2, b"v" * size)) for i in range(count))


class World:
    def __init__(self, folder, *settings):
        self.server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"),
                                     "-D", f"rorqual.memory={MEMORY}", "-D", f"hbase.client.scanner.timeout.period={LEASE_MS}", *settings)
        self.client = hbase.Client(self.server)
        self.client.create("t", {"f": {}})
        self.region = self.client.regions("t")[0][1]
        for i in range(20):
            self.client.data.put(self.region, b"r%02d" % i, {(b"f", b"q"): b"v"})

    def connection(self):
        return hbase.Connection(self.server.regionserver)

    def resident(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

    def opening(self, scan, rows):
        """The message of a Scan that opens a scanner. `rows` is 0 with a filter that would end the scan at its first row."""
        return text(1, hbase.region(self.region)) + text(2, scan + number(17, 1)) + number(4, rows)

    def open(self, connection, scan=b""):
        return connection.call("Scan", self.opening(scan, 0 if scan else 1))[2][0]

    def flood(self, connection, scan=b"", pipelined=PIPELINED):
        """Opens scanners until the first is refused; their ids."""
        ids, request = [], self.opening(scan, 0 if scan else 1)
        limit = 2 * PLAIN if not scan else 3000 if len(scan) < 1000 else 6 * ROOM // len(scan)
        while len(ids) < limit:
            for _ in range(pipelined):
                connection.send("Scan", request)
            refused = None
            for _ in range(pipelined):
                _, answer = connection.receive()
                if isinstance(answer, hbase.Refused):
                    refused = answer
                else:
                    ids.append(answer[2][0])
            if refused:
                assert refused.name == "CallQueueTooBigException", refused
                return ids
        raise AssertionError(f"{len(ids)} scanners and none was refused, "
                             f"{self.resident() >> 20} MB resident")

    def weigh(self, what):
        resident = self.resident()
        print(f"# {what}: {resident >> 20} MB resident", flush=True)
        assert SANITIZED or resident < MEMORY * 13 // 10, f"{what}: {resident >> 20} MB resident"

    def open_scanners(self):
        with urllib.request.urlopen(f"http://{self.server.http}/metrics", timeout=DEADLINE) as page:
            return int(re.search(r"^rorqual_scanners (\d+)$", page.read().decode(), re.M)[1])

    def wait_for_scanners(self, count):
        deadline = time.monotonic() + DEADLINE
        while (found := self.open_scanners()) != count:
            assert time.monotonic() < deadline, f"{found} scanners are open, not {count}"
            time.sleep(0.1)

    def next(self, connection, scanner):
        got = connection.call("Scan", number(3, scanner) + number(4, 1))
        assert len(got.get(5, [])) == 1, got

    def finish(self, *connections):
        """Closes the scanners, and waits until as many can be opened again."""
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + DEADLINE
        probe = self.connection()
        while True:
            try:
                self.open(probe, prefix_filter(ROOM // 3))
                break
            except hbase.Refused as e:
                assert e.name == "CallQueueTooBigException", e
                assert time.monotonic() < deadline, "the memory does not come back"
        probe.close()


def is_unknown(connection, scanner):
    try:
        connection.call("Scan", number(3, scanner) + number(4, 1))
    except hbase.Refused as e:
        assert e.name == "UnknownScannerException", e
        return True
    return False


def plain_ones(world):
    flood, other = world.connection(), world.connection()
    mine = world.open(other)
    ids = world.flood(flood)
    assert len(ids) >= PLAIN, f"only {len(ids)} fit"
    world.next(other, mine)
    world.next(other, world.open(other))
    world.next(flood, ids[0])
    world.weigh(f"{len(ids)} plain scanners")
    world.finish(flood, other)


def large_ones(world):
    for name, scan in (("filters of 3 MB", prefix_filter(3 << 20)),
                       ("filters of 20 MB", prefix_filter(20 << 20)),
                       ("lists of 10,000 filters", list_filter(10000)),
                       ("regular expressions", regex_filter(400)),
                       ("100,000 columns", columns(100000))):
        flood, other = world.connection(), world.connection()
        mine = world.open(other)
        ids = world.flood(flood, scan, pipelined=1)
        world.next(other, mine)
        world.next(other, world.open(other))
        world.weigh(f"{len(ids)} scanners with {name}")
        world.finish(flood, other)


def one_that_never_fits(world):
    """The client must not retry such a request."""
    connection = world.connection()
    try:
        world.open(connection, list_filter(200000))
        raise AssertionError("it was opened")
    except hbase.Refused as e:
        assert e.name == "DoNotRetryIOException" and "rorqual.scanners.memory" in e.trace, e
    world.next(connection, world.open(connection))
    world.finish(connection)


def attributes_are_not_kept(world):
    flood = world.connection()
    for _ in range(50):
        world.open(flood, attributes(4, 1 << 20))
    world.weigh("50 scanners that came with attributes of 4 MB")
    world.finish(flood)


def floods_on_many_connections(world):
    other = world.connection()
    mine = world.open(other)
    floods = [world.connection() for _ in range(20)]
    for flood in floods:
        world.flood(flood, prefix_filter(100000), pipelined=10)
    world.weigh("20 connections with scanners of 100 kB")
    for _ in range(10):
        world.next(other, mine)
        newcomer = world.connection()
        world.next(newcomer, world.open(newcomer))
        newcomer.close()
    world.finish(other, *floods)


def a_client_that_changes_its_connection(world):
    world.wait_for_scanners(0)  # the scanners of earlier tests
    first, second, third = world.connection(), world.connection(), world.connection()
    moved, left = world.open(first), world.open(first)
    world.next(second, moved)
    first.close()
    world.wait_for_scanners(1)
    # This is the first call with the scanner, because a call would move it to the third connection.
    assert is_unknown(third, left), "another scanner was closed"
    world.next(second, moved)
    second.close()
    third.close()


TESTS = [plain_ones, large_ones, one_that_never_fits, attributes_are_not_kept, floods_on_many_connections,
         a_client_that_changes_its_connection]


if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("scanner_memory", World, TESTS))
