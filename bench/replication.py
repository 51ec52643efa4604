#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a source of replication: puts per second and CPU per put at the source, without and with a peer, and the lag at half load.

    replication.py [FORM ...]     forms: standalone, cluster (one server on a folder, with a real ZooKeeper); default both
    SECONDS=n (default 6)         of each run; ROUNDS=n (default 3): runs without and with a peer, in turn
    RORQUAL=FILE                  the program (default build-release/src/cli/rorqual)

The sink is a standalone server on the same machine. CPU is that of the source's process alone, medians of the rounds.
"""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("RORQUAL", str(ROOT / "build-release/src/cli/rorqual"))
sys.path.insert(0, str(ROOT / "tests/e2e"))
import cluster_world  # noqa: E402
from membership import until  # noqa: E402
from replication import Node  # noqa: E402

RORQUAL = os.environ["RORQUAL"]
SECONDS, ROUNDS = os.environ.get("SECONDS", "6"), int(os.environ.get("ROUNDS", "3"))
TABLE, LOOK_S = "bench", 0.02
SCOPED = {b"cf": {"REPLICATION_SCOPE": "1"}}
LAG = 'rorqual_replication_lag_seconds{peer="p"} '


class Standalone:
    def __init__(self, folder, ends):
        self.node = Node(folder / "source")
        ends.callback(self.node.kill)
        self.node.client.create(TABLE, SCOPED)
        self.zk, self.pid, self.http = self.node.server.zk, self.node.server.process.pid, self.node.server.http

    def add_peer(self, sink):
        self.node.add_peer("p", sink.key)

    def remove_peer(self):
        self.node.peer("RemoveReplicationPeer", "p")


class Cluster:  # one server
    def __init__(self, folder, ends):
        self.world = cluster_world.World(folder)
        ends.callback(self.world.stop)
        self.world.processes.append(cluster_world.Process(self.world))
        self.world.wait_for_master()
        self.world.shell(f"create '{TABLE}', {{NAME => 'cf', REPLICATION_SCOPE => 1}}\n")
        process = self.world.processes[0]
        self.zk, self.pid, self.http = f"127.0.0.1:{self.world.keeper.port}", process.process.pid, f"127.0.0.1:{process.ports[2]}"

    def add_peer(self, sink):
        self.world.shell(f"add_peer 'p', CLUSTER_KEY => '{sink.key}'\n")

    def remove_peer(self):
        self.world.shell("remove_peer 'p'\n")


def put(source, *options):
    done = subprocess.run([RORQUAL, "bench", "--zk", source.zk, "--table", TABLE, "--reuse", "--keep", "--records", "100000", "--value-bytes", "100",
                           "--connections", "4", "--depth", "8", "--seconds", SECONDS, "--server-pid", str(source.pid), "--quiet", "--json", "-",
                           *options, "put"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr + done.stdout[:2000])
    return json.loads(done.stdout)


def lag(source):
    with urllib.request.urlopen(f"http://{source.http}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    return next((float(line[len(LAG):]) for line in lines if line.startswith(LAG)), 0.0)


@contextlib.contextmanager
def sampled_lag(source, into):
    end = threading.Event()

    def run():
        while not end.wait(LOOK_S):
            into.append(lag(source))
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def cpu_us(result):
    return result["server_cpu_us_per_op"]


def rate(result):
    return result["rate"]


def measure(name, source, sink):
    without, beside = [], []
    put(source)  # warms up
    for _ in range(ROUNDS):
        without.append(put(source))
        source.add_peer(sink)
        beside.append(put(source))
        until(lambda: lag(source) == 0, "all is shipped")
        if len(beside) < ROUNDS:
            source.remove_peer()
    rates, costs = [[statistics.median(map(f, runs)) for runs in (without, beside)] for f in (rate, cpu_us)]
    print(f"{name}: {rates[0]:.0f} puts/s without a peer, {rates[1]:.0f} with one ({rates[1] / rates[0]:.2f} x); "
          f"CPU {costs[0]:.1f} and {costs[1]:.1f} us per put ({costs[1] / costs[0]:.2f} x)", flush=True)
    lags = []
    with sampled_lag(source, lags):
        put(source, "--rate", str(int(rates[1] / 2)))
    lags.sort()
    print(f"{name}: lag at {rates[1] / 2:.0f} puts/s: median {1000 * statistics.median(lags):.0f} ms, p99 {1000 * lags[len(lags) * 99 // 100]:.0f} ms, "
          f"longest {1000 * lags[-1]:.0f} ms ({len(lags)} samples)", flush=True)


def main():
    forms = {"standalone": Standalone, "cluster": Cluster}
    for name in sys.argv[1:] or forms:
        print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
        with tempfile.TemporaryDirectory(prefix="rq-br-") as folder, contextlib.ExitStack() as ends:
            sink = Node(pathlib.Path(folder) / "sink")
            ends.callback(sink.kill)
            sink.client.create(TABLE, SCOPED)
            measure(name, forms[name](pathlib.Path(folder), ends), sink)


if __name__ == "__main__":
    main()
