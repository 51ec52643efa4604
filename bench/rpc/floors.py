# SPDX-License-Identifier: Apache-2.0
"""Lower bounds for any server on this machine, and redis-server, measured in the same run."""
import json
import re
import signal
import subprocess
import sys
import time

from cluster import PLACES
from settings import BUILD, CLIENT_CORE, RECORDS, SECONDS, SERVER_CORE, cpu_seconds, free_port, pinned

FLOOR_SECONDS = min(2.0, SECONDS)


def build():
    subprocess.run(["ninja", "-C", str(BUILD), "--quiet", "bench/echo", "bench/client_echo", "bench/floors",
                    "bench/engine_ours", "src/cli/rorqual"], check=True)


def echo(run, places, cores=(CLIENT_CORE, SERVER_CORE), loops=1):
    """Server CPU in µs per operation of an echo server, for calls with the same lengths as in the run."""
    connections, depth = PLACES[places]
    out = subprocess.run([str(BUILD / "bench/echo"), str(max(1, round(run["sent"]))),
                          str(max(1, round(run["received"]))), str(connections), str(FLOOR_SECONDS), str(depth),
                          *map(str, cores), str(loops)], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"([\d.]+) us", out)[1]) * run["calls"]


def machine(work, batch=64 * 230, seconds=FLOOR_SECONDS):
    """Rates of write + fdatasync of `batch` bytes, of memcpy, and latencies of waking a thread."""
    return json.loads(subprocess.run(pinned(SERVER_CORE, BUILD / "bench/floors", work, batch, seconds),
                                     capture_output=True, text=True, check=True).stdout)


def sync_text(floors):
    return f"write + fdatasync of {floors['sync']['batch']} B {floors['sync']['per_s']:,.0f}/s"


def wake_text(floors):
    wake = floors["wake_us"]
    return f"canary p50 {wake['p50']:.0f} / p99 {wake['p99']:.0f} / p99.9 {wake['p99.9']:.0f} µs"


def engine(work, rows, value, operations):
    """Our engine embedded, batches of 50 and gets: µs of CPU a row, by step."""
    folder = work / "embedded"
    out = subprocess.run(
        pinned(SERVER_CORE, BUILD / "bench/engine_ours", folder, "cache=1600000000", "buffer=134217728",
               f"rows={rows}", f"value={value}", "batch=50", f"ops={operations}", f"seconds={max(1, int(SECONDS))}",
               "fill-random", "flush", "get", "get", "overwrite"), capture_output=True, text=True, check=True).stdout
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    found = {}
    for step, ops, cpu in re.findall(r"^(\S+) threads=\d+ ops=(\d+) seconds=\S+ cpu=(\S+)", out, re.M):
        if int(ops) > 0:
            found[step] = float(cpu) * 1e6 / int(ops)
    return found


class Redis:
    """redis-server with an append-only file that is synced every second."""

    def __init__(self, work):
        self.port = free_port()
        self.dir = work / "redis"
        self.dir.mkdir()

    def __enter__(self):
        self.process = subprocess.Popen(
            pinned(SERVER_CORE, "redis-server", "--port", self.port, "--dir", self.dir, "--appendonly", "yes",
                   "--appendfsync", "everysec", "--save", ""), stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True,
                             check=False).stdout != b"PONG\n":
            if time.monotonic() > end:
                sys.exit("redis-server did not start")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)

    def run(self, command, places, count):
        """µs of server CPU per operation."""
        connections, depth = PLACES[places]
        before = cpu_seconds(self.process.pid)
        subprocess.run(pinned(CLIENT_CORE, "redis-benchmark", "-p", self.port, "-c", connections, "-P", depth, "-n",
                              count, "-r", RECORDS, "-d", 100, "-t", command, "--csv"),
                       capture_output=True, text=True, check=True)
        return (cpu_seconds(self.process.pid) - before) * 1e6 / count
