#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server in a memory cgroup of half the size of its data. Batches of gets of random rows, which read blocks concurrently, must stay
within the memory budget, and the kernel must not kill the server. The cgroup counts the page cache, too (bench/large/cgroup.py).
Blocks are read by io_uring first; then, after a restart, by threads only.

    boxed.py                 MB=200 SECONDS=5: other sizes and times

If no cgroup can be made, this is reported and nothing is tested. Otherwise ends with 'N passed, N failed'.
"""
import ctypes
import errno
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

import rorqual

sys.path.insert(0, str(rorqual.ROOT / "bench/large"))
import cgroup  # noqa: E402  (its folder is not a package)

MB = 1 << 20
SYS_IO_URING_SETUP = 425  # on every architecture
DATA = int(os.environ.get("MB", "200"))
SECONDS = os.environ.get("SECONDS", "5")
LIMIT = 96 * MB
BUDGET = 32 * MB
# The program's data, its threads' stacks, compactions, and memory that malloc keeps (docs/lab/large.md: 13 to 17 MB with small
# budgets).
CONSTANT = 32 * MB
TABLE = ["--table", "boxed", "--records", str(DATA * 1000), "--value-bytes", "1000", "--quiet", "--timeout", "600000"]


class Anonymous(threading.Thread):
    """Samples the server's anonymous memory every few milliseconds; the page cache is not included."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.peak, self.ends = pathlib.Path(f"/proc/{pid}/status"), 0, threading.Event()
        self.start()

    def look(self):
        lines = self.path.read_text(encoding="ascii").splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)

    def run(self):
        while not self.ends.wait(0.005):
            try:
                self.peak = max(self.peak, self.look())
            except OSError:
                return

    def stop(self):
        self.ends.set()
        self.join()
        return self.peak


def bench(server, *words):
    """Returns None, or the problem."""
    done = subprocess.run([rorqual.BINARY, "bench", "--zk", server.zk, *TABLE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return None if done.returncode == 0 else f"exit {done.returncode}: {' | '.join(done.stdout.splitlines()[-6:])}; {server.tail()}"


def reads_grow(box, before):
    """Returns None, or the problem: the rows must have been read from the device."""
    if not box.counts_itself():
        return None
    found = box.reads()[0] - before
    return None if found >= 100 else f"only {found} reads of the device: the data is in memory"


def uring_reads(server):
    """The reads that were begun by io_uring, and those of them that failed."""
    with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=30) as page:
        lines = page.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("rorqual_uring_"))
    return float(values["rorqual_uring_reads_total"]), float(values["rorqual_uring_failed_reads_total"])


def are_read_without_threads(server):
    """Returns None, or the problem. It is none that the kernel has no io_uring or forbids it, or does not tell what it evicted."""
    begun, failed = uring_reads(server)
    if begun == 0 and (not io_uring_is_allowed() or not evictions_are_known(os.uname().release)):
        return None
    return None if begun > 0 and failed == 0 else f"{begun:.0f} reads begun, {failed:.0f} failed"


def io_uring_is_allowed():
    """Whether this process can make a ring. Any other failure of the server to make one is a fault."""
    parameters = ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None, use_errno=True).syscall(SYS_IO_URING_SETUP, 1, parameters)
    if ring < 0:
        return ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)
    os.close(ring)
    return True


def evictions_are_known(release):
    """Whether the kernel tells which pages were evicted (Linux 6.5): otherwise no block is read past the page cache."""
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", release).groups())) >= (6, 5)


def check(report, kind, folder):
    check_way(report, kind, folder, True)
    check_way(report, kind, folder, False)


def check_way(report, kind, folder, by_uring):
    """Loads the table if it is not there yet."""
    way = "boxed/by io_uring" if by_uring else "boxed/by threads"
    with cgroup.Box(kind, "boxed", LIMIT, folder) as box:
        server = rorqual.Server(folder / "data", folder / "server.log", "-D", f"rorqual.memory={BUDGET}", "-D",
                                "hbase.hregion.memstore.flush.size=4194304", "-D", f"rorqual.read.uring={str(by_uring).lower()}",
                                prefix=box.prefix())
        watch = Anonymous(server.process.pid)
        if by_uring:
            report.outcome(f"{way}/the table is loaded", bench(server, "--keep", "--regions", "4", "--flush", "--operations", "1", "get"))
        before = box.reads()[0] if box.counts_itself() else 0
        report.outcome(f"{way}/every row of the batches is right", bench(server, "--reuse", "--connections", "8", "--depth", "8", "--batch", "100",
                                                                        "--seconds", SECONDS, "--verify", "multi-get"))
        report.outcome(f"{way}/rows come from the device", reads_grow(box, before))
        if by_uring:
            report.outcome(f"{way}/blocks are read without threads", are_read_without_threads(server))
        else:
            report.outcome(f"{way}/no read is begun by io_uring", None if uring_reads(server)[0] == 0 else "reads were begun")
        peak = watch.stop()
        report.outcome(f"{way}/anonymous memory keeps within the budget",
                       None if peak <= BUDGET + CONSTANT else f"{peak / MB:.0f} MB with a budget of {BUDGET / MB:.0f}")
        print(f"anonymous memory: at most {peak / MB:.0f} MB, budget {BUDGET / MB:.0f}", flush=True)
        report.outcome(f"{way}/the kernel ended nothing", f"{box.kills()} processes" if box.kills() else None)
        report.outcome(f"{way}/stops cleanly", server.stop())


def main():
    report = rorqual.Report()
    try:
        kind = cgroup.find()
    except cgroup.Unavailable as reason:
        print(f"SKIP boxed: {reason}", flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="rorqual-boxed-") as name:
        check(report, kind, pathlib.Path(name))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
