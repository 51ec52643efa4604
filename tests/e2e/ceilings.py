#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory stays within its limits under any load: a server with a memory budget of 64 MB gets several times as many bytes
of each kind of request at once. It may become slow and may refuse requests with HBase's retryable exceptions; it must not
exceed its memory, crash, or lose acknowledged writes. SEED=n repeats a run; LOAD_MB=n sets the bytes of puts.

Peaks of resident memory are the kernel's (VmHWM), which is reset before each part.
"""
import os
import pathlib
import random
import socket
import struct
import sys
import tempfile
import threading
import time

import disk_full
import hbase
import rorqual

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
LOAD_MB = int(os.environ.get("LOAD_MB", "256"))
MB = 1 << 20
BUDGET = 64 * MB
# The program, its stacks, allocator slack, the log's ring, and one request and one response of 10 MB above the
# limits, because one of each may always exceed them.
CONSTANT = 120 * MB
# Memory of flushes and compactions if cells have 10 MB: one block, here one cell, of each file they read or write.
# A small compaction and a large one may run at the same time, and may continue in the background while
# the next parts run.
LARGE_BLOCKS = 60 * MB
LARGE_REQUEST = 40 * MB  # the same when one request has 40 MB
CONNECTIONS = 8
BUSY = ("RegionTooBusyException", "CallQueueTooBigException", "CallDroppedException")
PATIENCE = 300  # seconds after which a call that is still refused fails the test
PAUSE = 0.1
FAMILY, QUALIFIER = b"f", b"q"


class Values:
    """Incompressible bytes, determined by the row's name."""

    def __init__(self, rng):
        self.pool = rng.randbytes(12 * MB)

    def of(self, row, size):
        at = int.from_bytes(row[-4:], "big") * 7919 % (len(self.pool) - size)
        return self.pool[at:at + size]


class Peak:
    """The server's peak of resident memory since the part began."""

    def __init__(self, pid):
        self.pid = pid
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def bytes(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def in_threads(count, work):
    """Runs work(0) … work(count - 1) concurrently; returns the problems."""
    problems = []

    def guarded(i):
        try:
            work(i)
        except Exception as error:  # pylint: disable=broad-except
            problems.append(f"thread {i}: {type(error).__name__}: {str(error)[:300]}")

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


class Tests:
    def __init__(self, root, report):
        self.report = report
        self.values = Values(random.Random(SEED))
        self.root = root
        self.server = self.start()
        client = hbase.Client(self.server)
        client.create("load", {"f": {}}, [b"\x01", b"\x02", b"\x03"])
        client.create("large", {"f": {}})
        self.load = [name for _, name, _ in client.regions("load")]
        self.large = client.regions("large")[0][1]
        client.close()
        self.written = {}  # {row: size} of the acknowledged rows of table load
        self.large_rows = {}

    def start(self):
        return rorqual.Server(self.root / "data", self.root / "log", "-D", f"rorqual.memory={BUDGET}")

    def part(self, name, work, extra=0):
        began = time.monotonic()
        peak = Peak(self.server.process.pid)
        try:
            problem = work()
        except Exception as error:  # pylint: disable=broad-except
            problem = f"{type(error).__name__}: {str(error)[:400]}"
        if self.server.process.poll() is not None:
            self.report.outcome(f"ceilings: {name}", f"the server died; {self.server.tail()}")
            raise SystemExit(self.report.finish())
        used = peak.bytes()
        allowed = BUDGET + CONSTANT + extra
        if not problem and used > allowed:
            problem = f"{used // MB} MB resident, allowed {allowed // MB}"
        print(f"     {name}: peak {used // MB} MB, {time.monotonic() - began:.1f} s", flush=True)
        self.report.outcome(f"ceilings: {name}", problem)

    # ---- the parts

    def puts(self):
        """Batches of very different sizes, several in flight on each connection, as fast as possible."""
        done = threading.Lock()

        def work(i):
            rng = random.Random(SEED * 100 + i)
            connection = hbase.Connection(self.server.regionserver)
            left = LOAD_MB * MB // CONNECTIONS
            flying = {}
            serial = 0
            while left > 0 or flying:
                while left > 0 and len(flying) < 4:
                    size = rng.choice((200, 5_000, 100_000, 1_000_000))
                    count = max(1, min(500, 2 * MB // size))
                    rows = []
                    for _ in range(count):
                        serial += 1
                        row = bytes([i % 4]) + struct.pack(">II", i, serial)
                        rows.append((row, {(FAMILY, QUALIFIER): self.values.of(row, size)}))
                    self.send_rows(connection, flying, i % 4, rows)
                    left -= size * count
                call, answer = connection.receive()
                region_at, rows = flying.pop(call)
                if isinstance(answer, hbase.Refused):
                    if answer.name not in BUSY:
                        raise answer
                    self.send_rows(connection, flying, region_at, rows)
                    continue
                again = []
                for (row, cells), problem in zip(rows, hbase.multi_outcomes(answer, len(rows))):
                    if problem is None:
                        with done:
                            self.written[row] = len(cells[FAMILY, QUALIFIER])
                    elif problem in BUSY:
                        again.append((row, cells))
                    else:
                        raise AssertionError(problem)
                if again:
                    self.send_rows(connection, flying, region_at, again)
            connection.close()

        problems = in_threads(CONNECTIONS, work)
        return problems[0] if problems else None

    def send_rows(self, connection, flying, region_at, rows):
        message = hbase.multi_message(self.load[region_at], rows)
        flying[connection.send("Multi", message)] = (region_at, rows)

    def big_cells(self):
        """Cells just under HBase's limit, and rows of many of them."""
        def work(i):
            connection = hbase.Connection(self.server.regionserver)
            for n in range(3):
                row = b"cell" + struct.pack(">I", i * 16 + n)
                connection.put(self.large, row, {(FAMILY, QUALIFIER): self.values.of(row, 10 * MB - 100)})
                self.large_rows[row] = {QUALIFIER: 10 * MB - 100}
            row = b"wide" + struct.pack(">I", i)
            for n in range(10):
                connection.put(self.large, row, {(FAMILY, b"%d" % n): self.values.of(row, 2 * MB)})
            self.large_rows[row] = {b"%d" % n: 2 * MB for n in range(10)}
            connection.close()

        problems = in_threads(4, work)
        return problems[0] if problems else None

    def big_batches(self):
        """Single requests that exceed the memory for requests."""
        def work(i):
            connection = hbase.Connection(self.server.regionserver)
            rows = []
            for n in range(400):
                row = bytes([i]) + struct.pack(">II", 1 << 21, n)
                rows.append((row, {(FAMILY, QUALIFIER): self.values.of(row, 100_000)}))
            flying = {}
            self.send_rows(connection, flying, i, rows)
            answer = connection.receive()[1]
            while isinstance(answer, hbase.Refused) and answer.name in BUSY:
                self.send_rows(connection, flying, i, rows)
                answer = connection.receive()[1]
            if isinstance(answer, hbase.Refused):
                raise answer
            outcomes = hbase.multi_outcomes(answer, len(rows))
            bad = {o for o in outcomes if o is not None} - set(BUSY)
            assert not bad, bad
            for (row, _), outcome in zip(rows, outcomes):
                if outcome is None:
                    self.written[row] = 100_000
            connection.close()

        problems = in_threads(2, work)
        return problems[0] if problems else None

    def many_small_puts(self):
        """Batches whose puts take many times their bytes when decoded: actions that a batch cannot do for lack of
        memory are retried, and each retry makes progress. A batch that could never fit is refused permanently."""
        codec = "org.apache.hadoop.hbase.codec.KeyValueCodec"

        def message(rows, in_block):
            if not in_block:
                return hbase.multi_message(self.load[0], [(row, {(FAMILY, QUALIFIER): row}) for row in rows]), b""
            actions = b"".join(
                hbase.text(3, hbase.number(1, i) + hbase.text(2, hbase.text(1, row) + hbase.number(2, hbase.PUT) +
                                                             hbase.number(8, 1)))
                for i, row in enumerate(rows))
            return hbase.text(1, hbase.text(1, hbase.region(self.load[0])) + actions), \
                b"".join(hbase.key_value(row, FAMILY, QUALIFIER, row) for row in rows)

        for count, in_block in ((5000, False), (22000, False), (25000, True), (35000, True)):
            connection = hbase.Connection(self.server.regionserver, codec=codec if in_block else None)
            rows = [bytes([0]) + b"small%06d" % n for n in range(count)]
            refused_since = time.monotonic()
            while rows:
                before = len(rows)
                assert time.monotonic() - refused_since < PATIENCE, f"{len(rows)} of {count} puts are still refused"
                try:
                    outcomes = hbase.multi_outcomes(connection.call("Multi", *message(rows, in_block)), len(rows))
                except hbase.Refused as refused:
                    assert refused.name in BUSY, f"{count} puts: {refused}"
                    time.sleep(PAUSE)
                    continue
                bad = {o for o in outcomes if o is not None} - set(BUSY)
                assert not bad, bad
                rows = [row for row, outcome in zip(rows, outcomes) if outcome is not None]
                if len(rows) < before:
                    refused_since = time.monotonic()
                else:
                    time.sleep(PAUSE)
            connection.close()
        connection = hbase.Connection(self.server.regionserver)
        for row in (b"\0small000000", b"\0small034999"):
            assert connection.get(self.load[0], row) == {(FAMILY, QUALIFIER): row}, row
        try:
            connection.call("Multi", message([b"\0never%06d" % n for n in range(300000)], False)[0])
            return "300,000 puts of 20 bytes in 16 MB"
        except hbase.Refused as refused:
            assert refused.name == "DoNotRetryIOException" and "rorqual.memory" in refused.trace, refused
        connection.close()
        return None

    def large_gets(self, each=3):
        """Rows of 10 and 20 MB, read on all connections at once."""
        def work(i):
            connection = hbase.Connection(self.server.regionserver)
            rows = sorted(self.large_rows)
            random.Random(i).shuffle(rows)
            for row in rows[:each]:
                connection, found = self.patient_get(connection, row)
                self.check_large(row, found)
            connection.close()

        problems = in_threads(CONNECTIONS, work)
        return problems[0] if problems else None

    def patient_get(self, connection, row):
        """Like HBase's client, retries a call if the connection was closed because it read too slowly, or if the call was
        refused for lack of memory, until others have read their responses. Both may happen on a busy machine."""
        begun = time.monotonic()
        while True:
            try:
                return connection, connection.get(self.large, row)
            except EOFError:
                if time.monotonic() - begun > PATIENCE:
                    raise
                connection = hbase.Connection(self.server.regionserver)
            except hbase.Refused as e:
                if time.monotonic() - begun > PATIENCE or "CallQueueTooBig" not in e.name:
                    raise
            time.sleep(PAUSE)

    def check_large(self, row, found):
        wanted = self.large_rows[row]
        sizes = {q: len(v) for (_, q), v in found.items()}
        assert sizes == wanted, f"{row!r}: {sizes}, wanted {wanted}"
        for (_, qualifier), value in found.items():
            assert value == self.values.of(row, wanted[qualifier]), f"{row!r} has other bytes"

    def big_scans(self):
        """Reads all acknowledged rows, in responses as large as the server allows."""
        found = [0] * len(self.load)

        def work(i):
            connection = hbase.Connection(self.server.regionserver)
            for row, cells in scan_sized(connection, self.load[i], 1 << 40):
                size = self.written.get(row)
                if size is None:
                    continue  # written but not acknowledged
                found[i] += 1
                assert cells[FAMILY, QUALIFIER] == self.values.of(row, size), f"{row!r} differs"
            connection.close()

        problems = in_threads(len(self.load), work)
        if not problems and sum(found) != len(self.written):
            problems = [f"{len(self.written)} rows acknowledged, {sum(found)} found"]
        return problems[0] if problems else None

    def open_scanners(self):
        """Each scanner has returned one row and stays open; in the end its next call must still succeed."""
        connection = hbase.Connection(self.server.regionserver)
        scanners = []
        for n in range(500):
            region = self.load[n % len(self.load)]
            answer = connection.call("Scan", hbase.text(1, hbase.region(region)) +
                                     hbase.text(2, hbase.number(17, 1)) + hbase.number(4, 1))
            scanners.append(answer[2][0])
        rows = 0
        for scanner in scanners:
            answer = connection.call("Scan", hbase.number(3, scanner) + hbase.number(4, 1))
            rows += len(answer.get(5, []))
            connection.call("Scan", hbase.number(3, scanner) + hbase.number(5, 1))
        connection.close()
        return None if rows == len(scanners) else f"{rows} rows of {len(scanners)} scanners"

    def never_reading(self):
        """Clients that request gigabytes and read nothing; another client is served meanwhile."""
        row = next(r for r in self.large_rows if r.startswith(b"cell"))
        message = hbase.text(1, hbase.region(self.large)) + hbase.text(2, hbase.text(1, row))
        deaf = []
        for _ in range(3):
            connection = hbase.Connection(self.server.regionserver)
            connection.socket.setblocking(False)
            try:
                for _ in range(40):
                    connection.send("Get", message)
            except BlockingIOError:
                pass
            deaf.append(connection)
        other = hbase.Connection(self.server.regionserver)
        self.touch(other, 50)
        for connection in deaf:
            connection.close()
        self.touch(other, 5)
        other.close()

    def touch(self, connection, count):
        for n in range(count):
            row = bytes([3]) + struct.pack(">II", 1 << 20, n)
            connection.put(self.load[3], row, {(FAMILY, QUALIFIER): self.values.of(row, 100)})
            self.written[row] = 100
            found = connection.get(self.load[3], row)
            assert found == {(FAMILY, QUALIFIER): self.values.of(row, 100)}, f"{row!r}: {found}"

    def half_frames(self):
        """Frames of 100 MB of which only 1 MB is sent; another client is served meanwhile."""
        halves = []
        head = hbase.delimited(hbase.number(1, 1) + hbase.text(3, "Multi") + hbase.number(4, 1))
        for _ in range(20):
            connection = hbase.Connection(self.server.regionserver)
            connection.socket.settimeout(0.2)
            try:
                connection.socket.sendall(struct.pack(">I", 100 * MB) + head + hbase.varint(99 * MB) +
                                          bytes(MB))
            except (socket.timeout, TimeoutError):
                pass  # the server has stopped reading it
            halves.append(connection)
        other = hbase.Connection(self.server.regionserver)
        self.touch(other, 50)
        for connection in halves:
            connection.close()
        self.touch(other, 5)
        other.close()

    def restart(self, killed):
        problem = self.server.kill() if killed else self.server.stop()
        if problem:
            return problem
        self.server = self.start()
        return None


def scan_sized(connection, region, result_bytes):
    """[(row, cells)] of a region, with the client's own limit on the bytes of a response."""
    scan = hbase.number(17, 1 << 30) + hbase.number(10, result_bytes)
    answer = connection.call("Scan", hbase.text(1, hbase.region(region)) + hbase.text(2, scan) +
                             hbase.number(4, 1 << 30))
    scanner = answer[2][0] if 2 in answer else None
    while True:
        for result in answer.get(5, []):
            cells = hbase.fields(hbase.fields(result)[1][0])
            yield cells[1][0], hbase.result_cells(result)
        if answer.get(8, [1])[0] == 0 or answer.get(3, [1])[0] == 0 or scanner is None:
            return
        answer = connection.call("Scan", hbase.number(3, scanner) + hbase.number(4, 1 << 30))


def main():
    report = rorqual.Report()
    print(f"seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rorqual-ceilings.") as scratch:
        tests = Tests(pathlib.Path(scratch), report)
        try:
            tests.part(f"{LOAD_MB} MB of puts", tests.puts)
            tests.part("cells of 10 MB", tests.big_cells, LARGE_BLOCKS)
            tests.part("batches of 40 MB", tests.big_batches, LARGE_BLOCKS + LARGE_REQUEST)
            tests.part("batches of many small puts", tests.many_small_puts, LARGE_BLOCKS)
            tests.part("gets of 10 and 20 MB", tests.large_gets, LARGE_BLOCKS)
            tests.part("500 open scanners", tests.open_scanners)
            tests.part("clients that do not read", tests.never_reading)
            tests.part("half-sent frames of 100 MB", tests.half_frames)
            report.outcome("ceilings: kill -9 and start", tests.restart(killed=True))
            tests.part("scans of everything acknowledged", tests.big_scans)
            report.outcome("ceilings: stop and start", tests.restart(killed=False))
            tests.part("the large rows again", lambda: tests.large_gets(1), LARGE_BLOCKS)
        finally:
            problem = tests.server.stop() if tests.server.process.poll() is None else "it had died"
        report.outcome("ceilings: stop", problem)
    disk_full.run(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
