# SPDX-License-Identifier: Apache-2.0
"""The servers under test, and runs of `rorqual bench` against them.

A fleet starts a server when a part first needs it, and stops all servers at the end. Servers are pinned to
one core, the generator to another; `own` starts a server for one part, with its own settings and cores.
A table of each shape is loaded once per server.
"""
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys

from settings import (BINARY, CLIENT_CORE, ECHO_HOST, HEAP, RECORDS, SCAN_RECORDS, SECONDS, SERVER_CORE,
                      WITH_HBASE, echo_in_front, peer, pinned, settle)

# Shapes of tables: options, and whether the table has the encoding and compression of its server (`codec`).
SHAPES = {
    "small": (["--records", RECORDS, "--value-bytes", 100], False),
    "regions": (["--records", RECORDS, "--value-bytes", 100, "--regions", 1000], False),
    "row": (["--records", RECORDS, "--value-bytes", 1000], False),
    "long": (["--records", SCAN_RECORDS, "--value-bytes", 1000, "--keys", "sorted"], False),
    "sorted": (["--records", RECORDS, "--value-bytes", 1000, "--keys", "sorted"], False),
    "wide": (["--records", RECORDS, "--columns", 20, "--value-bytes", 20, "--regions", 8, "--keys", "sorted"],
             True),
}
PLACES = {"1x1": (1, 1), "1x16": (1, 16), "16x1": (16, 1), "16x16": (16, 16), "4x16": (4, 16)}
LOOP = ("-D", "rorqual.loops=1")
HANDOVER = ("-D", "rorqual.wal.sync=handover")


def cells_shape(count):
    """A table with this many cells of 100 bytes of value."""
    name = f"cells{count}"
    SHAPES[name] = (["--records", count, "--value-bytes", 100], False)
    return name


def place_options(places):
    connections, depth = PLACES[places]
    return ["--connections", connections, "--depth", depth]


class Server:
    codec = ()

    def __init__(self, name, work, core=SERVER_CORE, prefix=()):
        """core: None: any core; prefix: words before the start command."""
        self.name, self.dir, self.prefix = name, work / name.replace(" ", "-"), [*(pinned(core) if core is not None else ()), *prefix]
        self.dir.mkdir()
        self.pid, self.zk = 0, ""
        self.tables = set()

    def command(self, workload, *options):
        return [BINARY, "bench", "--zk", self.zk, "--server-pid", str(self.pid), "--quiet", "--json", "-",
                *map(str, options), workload]

    def bench(self, workload, *options, core=CLIENT_CORE):
        """Runs the generator once; returns its JSON."""
        command = self.command(workload, *options)
        done = subprocess.run(command if core is None else pinned(core, *command), capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{workload} on {self.name}: {done.stderr}{done.stdout[:2000]}")
        return json.loads(done.stdout)

    def table(self, shape):
        """Loads and flushes a table of that shape if necessary; returns the options that name it."""
        name = f"bench_{shape}"
        options, codec = SHAPES[shape]
        if name not in self.tables:
            self.tables.add(name)
            self.bench("get", "--table", name, "--keep", "--flush", "--operations", 1, "--depth", 8, *options,
                       *(self.codec if codec else ()))
            settle(self.pid)
        return ["--table", name, "--reuse", *options]

    def table_files(self, shape, roots=("data",)):
        """{name: length} of its table's store files."""
        folders = [self.dir / "data" / root / "default" / f"bench_{shape}" for root in roots]
        return {f.name: f.stat().st_size for folder in folders for f in folder.rglob("*")
                if f.parent.name == "cf" and f.is_file()}

    def run(self, workload, shape, places, *options, per="operations", seconds=None, warm=None, core=CLIENT_CORE):
        """A measured run: rates, and costs per unit of the field `per`."""
        seconds = SECONDS if seconds is None else seconds
        r = self.bench(workload, *self.table(shape), *place_options(places), "--seconds", seconds, "--warm",
                       min(1.0, SECONDS / 4) if warm is None else warm, *options, core=core)
        done = max(1, r[per])
        latency = r["latency_us"]["all"]
        return {"done": done, "rate": done / r["seconds"], "cpu": r["server_cpu_s"] * 1e6 / done, "operations": r["rate"],
                "calls": r["calls"] / done, "sent": r["sent"] / max(1, r["calls"]),
                "received": r["received"] / max(1, r["calls"]), "bytes": r["bytes_read"] / r["seconds"],
                "busy": r["own_cpu_s"] / r["seconds"],
                **{p: latency[p] for p in ("p50", "p90", "p99", "p99.9", "p99.99", "max")}}


def medians(runs):
    return {what: statistics.median(r[what] for r in runs) for what in runs[0]}


class HBase(Server):
    codec = ("--encoding", "DIFF", "--compression", "SNAPPY")

    def __init__(self, name, work, heap=HEAP, properties=None, **more):
        super().__init__(name, work, **more)
        self.peer = peer.HBase(self.dir, properties, dict(os.environ, HEAP=heap), self.prefix)

    def start(self):
        self.peer.start(stdout=subprocess.DEVNULL)
        self.pid = int((self.dir / "pid").read_text())
        self.zk = self.peer.zk

    def stop(self):
        self.peer.stop()


class Rorqual(Server):
    codec = ("--encoding", "DIFF", "--compression", "ZSTD")

    def __init__(self, name, work, *settings, core=SERVER_CORE, **more):
        super().__init__(name, work, core=core, **more)
        self.settings, self.core, self.process = settings, core, None

    def start(self):
        command = [*self.prefix, BINARY, "server", "--data", self.dir / "data", "--zk-port", "0", "--master-port", "0",
                   "--rs-port", "0", "-D", f"rorqual.memory={HEAP}", *self.settings]
        with open(self.dir / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True)
        ready = re.match(r"rorqual ready: zookeeper \S+:(\d+), master \S+:(\d+), regionserver \S+:(\d+)",
                         self.process.stdout.readline())
        if not ready:
            sys.exit(f"rorqual did not get ready: {(self.dir / 'log').read_text()[-2000:]}")
        self.pid, self.zk, self.rpc_ports = self.process.pid, f"127.0.0.1:{ready[1]}", ready.groups()[1:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=120) != 0:
            sys.exit(f"{self.name} did not stop cleanly")


class Echo(Rorqual):
    """The lower bound for gets and puts of one table: bench/client_echo, which replays responses, in front of a Rorqual
    that created the table."""

    def __init__(self, name, work, shape):
        super().__init__(name, work, "--advertise", ECHO_HOST, *LOOP, *HANDOVER)
        self.shape, self.front = shape, None

    def start(self):
        super().start()
        self.front = echo_in_front(f"bench_{self.shape}", self.rpc_ports, pinned(self.core))
        self.pid = self.front.pid

    def stop(self):
        if self.front is not None:
            self.front.terminate()
            self.front.wait()
        super().stop()


class Fleet:
    def __init__(self, work):
        self.work, self.started, self.number = work, {}, 0

    def get(self, name, make):
        if name not in self.started:
            server = make(name, self.work)
            server.start()
            self.started[name] = server
        return self.started[name]

    def hbase(self):
        """The HBase server; None in a run without HBase."""
        return self.get("HBase", HBase) if WITH_HBASE else None

    def ours(self):
        return self.get("Rorqual", lambda name, work: Rorqual(name, work, *LOOP, *HANDOVER))

    def synced(self):
        return self.get("Rorqual fdatasync", lambda name, work: Rorqual(name, work, *LOOP))

    def echo(self, shape):
        return self.get(f"echo {shape}", lambda name, work: Echo(name, work, shape))

    @contextlib.contextmanager
    def own(self, *settings, core=SERVER_CORE):
        self.number += 1
        server = Rorqual(f"Rorqual {self.number}", self.work, *settings, core=core)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def stop(self):
        for server in reversed(self.started.values()):
            server.stop()
