# SPDX-License-Identifier: Apache-2.0
"""The databases compared, each in its own memory cgroup, with the same interface.

In every database nearly three tenths of the memory are block cache, and as much are memstores or write buffers (HBase: two fifths
of its heap); the rest is the operating system's cache and the process itself. HBase has its bucket cache off the heap, as its guide
advises when data is larger than memory; its index and bloom blocks stay on the heap.
"""
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import time

from config import Failed
from cluster import HBase, Rorqual
from servers import BUILD, cpu_seconds
from settings import BINARY

SHARE = 0.3  # share of the memory for the cache, and the same share for memstores
FIXED = 32 << 20
JVM, RESPONSES = 300 << 20, 300 << 20  # memory of HBase's JVM itself, and for responses
TABLE = "bench"
CLIENT = "--timeout", "300000", "--give-up", "300", "--retries", "20"
IDLE_CPU, IDLE_BYTES, IDLE_LOOKS = 0.1, 1 << 20, 3  # limits per second; so many idle samples in a row
# the archive must not count as used space
QUICK = ("-D", "hbase.master.hfilecleaner.ttl=1000", "-D", "hbase.master.cleaner.interval=5000")


def share_of(limit):
    """Bytes for the cache, and for memstores. Code and buffers of compactions need additional memory, which matters only if memory is
    small."""
    return int(max(limit - FIXED, limit / 2) * SHARE)


def folder_bytes(folder):
    total = 0
    for path in pathlib.Path(folder).rglob("*"):
        try:
            if path.is_file():
                total += path.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def io_of(pid):
    """(bytes read from the device, bytes written to it) by the process."""
    values = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(values["read_bytes"]), int(values["write_bytes"])


class Costs:
    """The resources that a database has used: CPU seconds, device reads and their bytes, bytes written. The difference of two is the use
    between them."""

    def __init__(self, box, pid):
        self.at, self.cpu = time.monotonic(), cpu_seconds(pid)
        own_bytes, self.written = io_of(pid)
        self.reads, self.read_bytes = box.reads() or (None, own_bytes)

    def since(self, before):
        found = {"cpu_s": self.cpu - before.cpu, "written": self.written - before.written, "read_bytes": self.read_bytes - before.read_bytes,
                 "wall": self.at - before.at}
        if self.reads is not None:
            found["reads"] = self.reads - before.reads
        return found


class Peer:
    """A running database; a context. `run` returns {ops, seconds, rate, p50, p99, p99.9 (µs), cpu_s, written, read_bytes, reads}."""

    def __init__(self, name, config, shape, work, box):
        self.name, self.config, self.box, self.dir = name, config, box, work
        self.rows, self.value = shape
        self.pid = 0
        # a run that drew the same rows as the previous one would find them in the cache
        self.seeds = itertools.count(1)

    def costs(self):
        return Costs(self.box, self.pid)

    def settle(self, patience):
        """Waits until flushes and compactions are done; False: they are still running."""
        end, quiet, before, pause = time.monotonic() + patience, 0, self.costs(), self.config.quiet / IDLE_LOOKS
        while quiet < IDLE_LOOKS and time.monotonic() < end:
            time.sleep(pause)
            now = self.costs()
            used = now.since(before)
            idle = used["cpu_s"] < IDLE_CPU * pause and used["written"] + used["read_bytes"] < IDLE_BYTES * pause
            quiet, before = quiet + 1 if idle else 0, now
        return quiet >= IDLE_LOOKS

    def measured(self, work):
        """Runs work() and adds its costs; work() returns {ops, seconds, p50, p99, p99.9}."""
        if not self.alive():
            raise Failed(self.obituary())
        before = self.costs()
        try:
            found = work()
            found.update(self.costs().since(before))
        except (OSError, Failed) as why:
            raise Failed(why if self.alive() else self.obituary()) from why
        found["rate"] = found["ops"] / max(found["seconds"], 1e-9)
        return found

    def alive(self):
        try:
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def obituary(self):
        if self.box.kills():
            return f"{self.name} was killed: it needs more than {self.box.limit >> 20} MB"
        logs = [path.read_text(encoding="utf-8", errors="replace")[-1000:] for path in self.dir.glob("*/log")]
        return f"{self.name} has ended; the end of its log: {' '.join(logs)}"

    def disk(self):
        return folder_bytes(self.dir)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Closing the box kills processes that do not end by themselves."""
        if self.alive():
            self.stop()


# Workloads of `rorqual bench`: (name, options, unit that is counted).
WORKLOADS = {
    "get": ("get", [], "operations"),
    "zipf": ("get", ["--draw", "zipfian"], "operations"),
    "multi": ("multi-get", [], "rows_read"),
    "short": ("scan-short", [], "operations"),
    "long": ("scan-long", ["--operations", 1], "rows_read"),
    "overwrite": ("multi-put", [], "rows_written"),
    **{letter: (f"ycsb-{letter.lower()}", [], "operations") for letter in "ABCDEF"},
}


@contextlib.contextmanager
def failing():
    """A server that fails to start or stop fails its part, not the run. (A SystemExit with a number as its code
    comes from a signal, and ends the run.)"""
    try:
        yield
    except SystemExit as why:
        if not isinstance(why.code, str):
            raise
        raise Failed(why.code) from why
    except subprocess.SubprocessError as why:
        raise Failed(why) from why


class Served(Peer):
    """A server, driven by `rorqual bench` from outside its cgroup."""

    def start(self):
        with failing():
            self.server.start()
        self.pid = self.server.pid

    def stop(self):
        with failing():
            self.server.stop()

    def bench(self, workload, options, per, seconds, alone=False):
        c = self.config
        if c.operations and "--operations" not in options:
            seconds, options = 1e6, [*options, "--operations", c.operations]
        command = self.server.command(
            workload, "--table", TABLE, "--records", self.rows, "--value-bytes", self.value, "--block-bytes", c.block, "--batch", c.batch,
            "--regions", c.regions, *CLIENT, "--connections", 1 if alone else c.connections, "--depth", 1 if alone else c.depth,
            "--seconds", seconds, "--seed", next(self.seeds), *options)
        r = json.loads(self.output(command))
        latency = r["latency_us"]["all"]
        return {"ops": r[per], "seconds": r["seconds"], **{p: latency[p] for p in ("p50", "p99", "p99.9")}}

    def output(self, command):
        """The output of a client of the server. The client is ended with the server, because its own retries would last
        minutes."""
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            try:
                while True:
                    try:
                        out, errors = client.communicate(timeout=1)
                        break
                    except subprocess.TimeoutExpired:
                        if not self.alive():
                            client.kill()
            finally:
                client.kill()  # after a signal ended the wait, `with` would wait for the client's end
        if client.returncode != 0:
            raise Failed(f"{' '.join(map(str, command[1:2]))}: {errors.strip()[-500:]}{out.strip()[-500:]}")
        return out

    def load(self, order):
        batches = -(-self.rows // self.config.batch)
        found = self.measured(lambda: self.bench(f"ingest-{order}", ["--keep", "--operations", batches], "rows_written", 1e6))
        self.shell(f"flush '{TABLE}'")
        return found

    def run(self, name, seconds, rate=0):
        workload, options, per = WORKLOADS[name]
        more = ["--reuse", "--keys", "hashed", *options, *(["--rate", rate] if rate else [])]
        return self.measured(lambda: self.bench(workload, more, per, 1e6 if name == "long" else seconds, alone=name == "long"))

    def warm(self, name, seconds):
        if seconds > 0 and name != "long":
            self.run(name, seconds)

    def tool(self, *command):
        self.output([BINARY, *command])

    def shell(self, statement):
        script = self.dir / "statement"
        script.write_text(statement + "\n", encoding="utf-8")
        self.tool("shell", "-n", "-y", "--zk", self.server.zk, script)

    def bulk(self, text, fields):
        """Makes HFiles from the text, and loads them; returns ({make}, {load})."""
        hfiles = self.dir / "hfiles"
        self.shell(f"create '{TABLE}', 'cf', SPLITS => {self.splits()}")
        arguments = ["--zk", self.server.zk, "--timeout", 300, "--quiet"]

        def timed(*command):
            begun = time.monotonic()
            self.tool("bulkload", *arguments, *command)
            return {"ops": self.bulk_rows, "seconds": time.monotonic() - begun}

        made = self.measured(lambda: timed("--format", "tsv", "--fields", fields, "--output", hfiles, "--no-load", TABLE, text))
        return made, self.measured(lambda: timed(TABLE, hfiles))

    def splits(self):
        """Split keys as `rorqual bench` chooses them for hashed keys."""
        return [f"{int((1 << 64) / self.config.regions * i):016x}" for i in range(1, self.config.regions)]


class RorqualPeer(Served):
    def __init__(self, *args):
        super().__init__("Rorqual", *args)
        budget = int(share_of(self.box.limit) / 0.4)  # two fifths of the budget are cache, two fifths memstores
        self.server = Rorqual("rorqual", self.dir, "-D", f"rorqual.memory={budget}", "-D", "rorqual.wal.sync=handover",
                              "-D", f"rorqual.bulkload.folders={self.dir}", *QUICK, core=None, prefix=self.box.prefix())


class HBasePeer(Served):
    """Heap and direct memory share the memory that the JVM itself leaves. A part of the direct memory is for responses, the rest for the
    bucket cache."""

    def __init__(self, *args):
        super().__init__("HBase", *args)
        quick = dict(word.split("=") for word in QUICK if "=" in word)
        rest = self.box.limit - JVM
        heap = int(rest * 0.42)
        bucket = min(share_of(self.box.limit), rest - heap - RESPONSES)
        options = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -XX:MaxDirectMemorySize={(rest - heap) >> 20}m".strip()
        self.server = HBase("hbase", self.dir, heap=f"{heap >> 20}m", core=None, properties={
            "hbase.bucketcache.ioengine": "offheap", "hbase.bucketcache.size": str(bucket >> 20), **quick},
            prefix=["env", f"JAVA_TOOL_OPTIONS={options}", *self.box.prefix()])


# The engine driver's parameters (bench/engine/mixes.c) for the same workloads.
MIXES = {
    "get": "gets=100 draw=0", "zipf": "gets=100 draw=1", "multi": "multis=100 draw=0", "short": "scans=100 draw=0",
    "A": "gets=50 puts=50 draw=1", "B": "gets=95 puts=5 draw=1", "C": "gets=100 draw=1", "D": "gets=95 puts=5 draw=2",
    "E": "scans=95 puts=5 draw=1", "F": "gets=50 rmws=50 draw=1",
}
SHARES = "gets=0 puts=0 rmws=0 scans=0 multis=0"


class RocksPeer(Peer):
    """RocksDB in the engine driver's process, with as many threads as the others have operations in flight."""

    def __init__(self, *args):
        super().__init__("RocksDB", *args)
        self.threads = min(64, self.config.connections * self.config.depth)
        self.process = None

    def start(self):
        c = self.config
        self.process = subprocess.Popen(
            [*self.box.prefix(), str(BUILD / "bench/engine_rocksdb"), str(self.dir / "db"), f"rows={self.rows}", f"value={self.value}",
             f"cache={share_of(self.box.limit)}", f"buffer={max(1 << 20, share_of(self.box.limit) // 4)}", f"block={c.block}",
             "leveled=1", f"batch={c.batch}", f"threads={self.threads}", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.say("")

    def say(self, line):
        """Sends a line to the driver; returns the values of its last step."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        found = {}
        for answer in self.process.stdout:
            if answer == "done\n":
                return found
            found = dict(word.split("=") for word in answer.split()[1:])
        self.process.wait()
        raise Failed(f"{line}: the engine's driver ended with {self.process.returncode}")

    def step(self, line):
        found = self.say(line)
        return {"ops": int(found["ops"]), "seconds": float(found["seconds"]),
                **{p: float(found[key]) for p, key in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")) if key in found}}

    def load(self, order):
        found = self.measured(lambda: self.step(f"threads={self.threads} fill-{'random' if order == 'hashed' else 'sequential'}"))
        self.say("flush")
        return found

    def run(self, name, seconds, rate=0):
        line = {"long": "threads=1 scan", "overwrite": f"threads={self.threads} overwrite"}.get(
            name, f"threads={self.threads} {SHARES} {MIXES.get(name, '')} mix")
        whole = max(1, round(seconds))
        return self.measured(lambda: self.step(f"seconds={whole} rate={int(rate)} seed={next(self.seeds)} {line}"))

    warm = Served.warm

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=120)
        except subprocess.TimeoutExpired as why:
            raise Failed("RocksDB did not close") from why


KINDS = {"hbase": HBasePeer, "rorqual": RorqualPeer, "rocksdb": RocksPeer}
