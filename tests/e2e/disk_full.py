#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real full file system. Clients write to a server on a tmpfs of SIZE_MB until it refuses writes, and read meanwhile;
writes continue after a file next to the data folder is removed. The server is killed on the full disk, started again,
and serves reads. Finally it is stopped while the disk is full, and started with space. No acknowledged write may be
lost.

Runs in a separate mount namespace (unshare -rm), so the mount is invisible outside and ends with
the program. If the machine does not allow mounts, this is reported and no test is counted.
"""
import errno
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import hbase
import rorqual

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
SIZE_MB = 56
FILLER_MB = 20
MB = 1 << 20
ROW_BYTES = 2000
BATCH = 50
BUSY = ("RegionTooBusyException", "CallQueueTooBigException", "CallDroppedException")
DEADLINE = 300
SETTINGS = ("rorqual.memory=33554432", "rorqual.wal.file.size=1048576", "rorqual.wal.max=8388608",
            "hbase.hregion.memstore.flush.size=2097152", "hbase.hstore.compaction.min.size=1048576")


def may_mount():
    """Returns None, or the reason why mounts are not possible."""
    try:
        done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                              stderr=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else None


class Test:
    def __init__(self, root):
        self.root = root
        self.disk = root / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", self.disk], check=True)
        self.filler = self.disk / "filler"
        self.pool = random.Random(SEED).randbytes(4 * MB)
        self.rows = {}
        self.next = 0
        self.lock = threading.Lock()
        self.fill()
        self.server = self.start()
        self.client = hbase.Client(self.server)
        self.client.create("t", {"f": {}}, [b"m"])
        self.regions = [name for _, name, _ in self.client.regions("t")]

    def start(self):
        options = [word for pair in SETTINGS for word in ("-D", pair)]
        return rorqual.Server(self.disk / "data", self.root / "log", *options)

    def fill(self):
        with open(self.filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, FILLER_MB * MB)

    def value(self, row):
        at = int(row[1:]) * 7919 % (len(self.pool) - ROW_BYTES)
        return self.pool[at:at + ROW_BYTES]

    def batch(self, region):
        with self.lock:
            first, self.next = self.next, self.next + BATCH
        return [(b"%c%08d" % (b"az"[region], n), None) for n in range(first, first + BATCH)]

    def write(self, batches):
        """Writes batches to both regions until one is refused. Returns the number of each
        exception."""
        refusals = {}
        end = time.monotonic() + DEADLINE

        def work(region):
            connection = hbase.Connection(self.server.regionserver)
            for _ in range(batches):
                if time.monotonic() > end or refusals:
                    break
                rows = [(row, {(b"f", b"q"): self.value(row)}) for row, _ in self.batch(region)]
                outcomes = connection.put_many(self.regions[region], rows)
                with self.lock:
                    for (row, _), problem in zip(rows, outcomes):
                        if problem is None:
                            self.rows[row] = region
                        else:
                            refusals[problem] = refusals.get(problem, 0) + 1
            connection.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return refusals

    # ---- the parts

    def is_refused(self):
        refusals = self.write(1 << 20)
        if not refusals:
            return f"{len(self.rows)} rows on a disk of {SIZE_MB} MB and no refusal"
        if set(refusals) - set(BUSY):
            return f"refused with {refusals}"
        return self.is_refused_once()

    def reads_go_on(self):
        found = {}
        for region in self.regions:
            found.update(self.client.data.scan(region))
        for row in self.rows:
            if found.get(row, {}).get((b"f", b"q")) != self.value(row):
                return f"{row!r} is lost or differs ({len(self.rows)} acknowledged, {len(found)} found)"
        row = random.Random(SEED).choice(sorted(self.rows))
        got = self.client.data.get(self.regions[self.rows[row]], row)
        return None if got.get((b"f", b"q")) == self.value(row) else f"get {row!r}: {got!r}"[:200]

    def flush_says_why(self):
        """The flush may find enough space; otherwise its error must be retryable."""
        try:
            self.client.flush(self.regions[0])
        except hbase.Refused as refused:
            if "DoNotRetry" in refused.name or "no space" not in refused.trace.lower():
                return str(refused)
        return None

    def goes_on(self):
        self.filler.unlink()
        end = time.monotonic() + DEADLINE
        before = len(self.rows)
        # A tenth of the space at most: a slow server must not be filled again before it has flushed.
        while len(self.rows) < before + 20 * BATCH:
            self.write(1)
            if time.monotonic() > end:
                return "still refused with space"
        for region in self.regions:
            problem = self.flushes_in_the_end(region, end)
            if problem is not None:
                return problem
        return self.reads_go_on()

    def flushes_in_the_end(self, region, end):
        """A concurrent compaction may use the free space for a while: then the compaction gives up
        first, or the flush is refused once more."""
        while True:
            try:
                self.client.flush(region)
                return None
            except hbase.Refused as refused:
                if "no space" not in refused.trace.lower() or time.monotonic() > end:
                    return str(refused)

    def starts_when_full(self):
        """Kills the server twice with no free byte; the second time files of the first restart exist as well."""
        self.fill_rest()
        refusals = self.write(1 << 20)
        if set(refusals) - set(BUSY) or not refusals:
            return f"refused with {refusals}"
        for _ in range(2):
            self.client.close()
            self.server.kill()
            self.fill_rest(all_of_it=True)
            self.server = self.start()
            self.client = hbase.Client(self.server)
            self.regions = [name for _, name, _ in self.client.regions("t")]
            problem = self.reads_go_on() or self.is_refused_once()
            if problem is not None:
                return problem
        (self.disk / "rest").unlink()
        (self.disk / "rest2").unlink(missing_ok=True)
        subprocess.run(["mount", "-o", f"remount,size={2 * SIZE_MB}m", self.disk], check=True)
        end = time.monotonic() + DEADLINE
        while self.write(10):
            if time.monotonic() > end:
                return "still refused with space"
        return self.reads_go_on()

    def is_refused_once(self):
        """Writes until one is refused. Some puts may still succeed: they fit into the log, or a flush or compaction that failed has
        freed its space."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                self.client.data.put(self.regions[0], b"again", {(b"f", b"q"): b"x" * ROW_BYTES})
            except hbase.Refused as refused:
                if refused.name != BUSY[0] or "no space left" not in refused.trace:
                    return str(refused)
                return None
        return "no write is refused"

    def stops_when_full(self):
        """Edits that cannot be flushed stay in the log; nothing may hang."""
        self.fill_rest()
        refusals = self.write(1 << 20)
        if set(refusals) - set(BUSY) or not refusals:
            return f"refused with {refusals}"
        self.client.close()
        self.server.process.terminate()
        try:
            self.server.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            return f"no end {DEADLINE} s after SIGTERM; {self.server.tail()}"
        subprocess.run(["mount", "-o", f"remount,size={3 * SIZE_MB}m", self.disk], check=True)
        self.server = self.start()
        self.client = hbase.Client(self.server)
        return self.reads_go_on()

    def fill_rest(self, all_of_it=False):
        """Leaves 2 MB or 0 bytes free. The server writes at the same time and may have used free space already."""
        while True:
            left = os.statvfs(self.disk)
            free = left.f_bavail * left.f_bsize
            if all_of_it and free == 0:
                return
            length = free if all_of_it else max(free - 2 * MB, min(free, 4096))
            try:
                if length > 0:
                    with open(self.disk / ("rest2" if all_of_it else "rest"), "ab") as file:
                        os.posix_fallocate(file.fileno(), file.tell(), length)
                return
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def inside():
    report = rorqual.Report()
    print(f"seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rorqual-full.") as scratch:
        test = Test(pathlib.Path(scratch))
        for name, part in (("writes are refused, with the reason", test.is_refused),
                           ("what was acknowledged is read", test.reads_go_on),
                           ("a flush says why it cannot", test.flush_says_why),
                           ("with space again all goes on", test.goes_on),
                           ("killed on the full disk it starts there and is read", test.starts_when_full),
                           ("a stop does not wait for space, and loses nothing", test.stops_when_full)):
            try:
                problem = part()
            except Exception as error:  # pylint: disable=broad-except
                problem = f"{type(error).__name__}: {str(error)[:300]}; {test.server.tail()}"
            if not report.outcome(f"disk full: {name}", problem):
                break
        problem = test.server.stop() if test.server.process.poll() is None else "it had died"
        report.outcome("disk full: the server's end", problem)
        subprocess.run(["umount", "-l", test.disk], check=True)
    return report.finish()


def run(report):
    """Runs all parts, counted by the report."""
    reason = may_mount()
    if reason is not None:
        print(f"SKIP disk full: no file system of a test's own here: {reason}", flush=True)
        return
    with subprocess.Popen(["unshare", "-rm", sys.executable, __file__, "inside"], text=True,
                          stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if " passed, " not in line:
                report.line(line.rstrip("\n"))
    if process.returncode not in (0, 1):
        report.outcome("disk full", f"the driver ended with {process.returncode}")


def main():
    if sys.argv[1:] == ["inside"]:
        return inside()
    report = rorqual.Report()
    run(report)
    return report.finish() if report.passed + report.failed > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
