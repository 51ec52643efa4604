# SPDX-License-Identifier: Apache-2.0
"""The servers compared by the benchmarks with Java clients: starting, stopping, and measuring their cost."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build-release"))  # the folder of `make release`
sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402  (its folder is not a package)

PEER = peer.SCRIPT
orderly = peer.orderly
HEAP = os.environ.get("HEAP", "2g")
PE = "org.apache.hadoop.hbase.PerformanceEvaluation"


def free_port():
    return peer.free_ports(1)[0]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def busy_share(seconds):
    """The fraction of the machine's CPU time in use over a short interval."""
    def ticks():
        fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    begun_total, begun_idle = ticks()
    time.sleep(seconds)
    total, idle = ticks()
    return 1 - (idle - begun_idle) / max(total - begun_total, 1)


def settle(patience=60):
    """Waits until the machine is idle."""
    end = time.monotonic() + patience
    while busy_share(1) > 0.03 and time.monotonic() < end:
        pass


class Server:
    """One server under test: its start, its process, and a client configuration for it."""

    def __init__(self, name, work):
        self.name, self.dir = name, work / name.replace(" ", "-")
        self.dir.mkdir()
        self.env = dict(os.environ, HEAP=HEAP)
        self.pid, self.start_ms, self.rss_start = 0, 0.0, 0.0

    def pe(self, *args):
        """Runs PerformanceEvaluation; returns (operations per second, server CPU µs per op), including the
        flushes and compactions that follow the run."""
        before = cpu_seconds(self.pid)
        out = subprocess.run([str(PEER), "run", str(self.dir), PE, "--nomapred", *args],
                             env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False)
        settle()
        used = cpu_seconds(self.pid) - before
        runs = re.findall(r"Finished .* in (\d+)ms at offset \d+ for (\d+) rows", out.stdout)
        if not runs:
            sys.exit(f"PerformanceEvaluation said nothing on {self.name}:\n{out.stdout[-3000:]}")
        rows = sum(int(r) for _, r in runs)
        return rows * 1000 / max(int(ms) for ms, _ in runs), used * 1e6 / rows


class HBase(Server):
    def __init__(self, name, work):
        super().__init__(name, work)
        self.peer = peer.HBase(self.dir, env=self.env)
        self.env = self.peer.env

    def start(self):
        begun = time.monotonic()
        self.peer.start(stdout=subprocess.DEVNULL)
        self.start_ms = (time.monotonic() - begun) * 1000
        self.pid = int((self.dir / "pid").read_text())
        self.rss_start = rss_mb(self.pid)

    def stop(self):
        self.peer.stop()


class Rorqual(Server):
    def __init__(self, name, work, *settings):
        super().__init__(name, work)
        self.settings = settings
        self.process = None

    def start(self):
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [str(BUILD / "rorqual"), "server", "--data", str(self.dir / "data"), "--zk-port",
             "0", "--master-port", "0", "--rs-port", "0", *self.settings],
            stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline()
        self.start_ms = (time.monotonic() - begun) * 1000
        found = re.match(r"rorqual ready: zookeeper \S+:(\d+), master \S+:(\d+), regionserver "
                         r"\S+:(\d+)", ready)
        if not found:
            sys.exit(f"rorqual did not get ready: {ready}")
        self.env.update(ZK_PORT=found[1], MASTER_PORT=found[2], RS_PORT=found[3])
        self.pid = self.process.pid
        self.rss_start = rss_mb(self.pid)

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=120) != 0:
            sys.exit(f"{self.name} did not stop cleanly")


ECHO_HOST = "127.0.0.2"


def echo_in_front(table, ports, prefix=()):
    """Starts bench/client_echo at ECHO_HOST in front of the server on these ports, and waits until it is ready;
    `prefix`: for example taskset."""
    front = subprocess.Popen([*prefix, str(BUILD / "bench/client_echo"), ECHO_HOST, "127.0.0.1", f"{table},", *ports],
                             stdout=subprocess.PIPE, text=True)
    if front.stdout.readline() != "ready\n":
        sys.exit("client_echo did not get ready")
    return front


class Echo(Rorqual):
    """The lower bound: bench/client_echo in front of a Rorqual that creates the table and sends the first responses."""

    def __init__(self, name, work):
        super().__init__(name, work, "--advertise", ECHO_HOST, "-D", "rorqual.wal.sync=handover")

        self.front = None

    def start(self):
        super().start()
        self.front = echo_in_front("TestTable", (self.env["MASTER_PORT"], self.env["RS_PORT"]))
        self.pid = self.front.pid

    def stop(self):
        if self.front is not None:
            self.front.terminate()
            self.front.wait()
        super().stop()


@contextlib.contextmanager
def running(servers):
    """Starts the servers one after another, and stops those started at the end or after an exception."""
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
            server.start()
        yield
