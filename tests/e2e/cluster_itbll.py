#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HBase's IntegrationTestBigLinkedList on a cluster of three servers on one folder, while servers are killed: make cluster-itbll. The
tool writes a linked list of NODES rows and then follows every reference; a row that is lost leaves its successor unreferenced or
undefined. Every KILL_S seconds one process is killed by kill -9 and started again, the master every third time.

    NODES=1000000             a multiple of 5000
    KILL_S=20                 0: none is killed
    RORQUAL=FILE, SESSION_MS  as for cluster.py (default 10000, the setting's default)

Prints the times of the tool's phases and the kills, and ends with 'N passed, N failed'.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("SESSION_MS", "10000")
from cluster_world import Process, World, others, restart  # noqa: E402
from rorqual import ROOT, Report  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402

NODES = int(os.environ.get("NODES", "1000000"))
KILL_S = float(os.environ.get("KILL_S", "20"))
MAPPERS, WIDTH, WRAP = 2, 100, 25
COUNTERS = ("REFERENCED", "UNREFERENCED", "UNDEFINED", "CORRUPT", "EXTRAREFERENCES")


class Killer(threading.Thread):
    """Kills one process after the other until it is stopped; `problem` is what went wrong."""

    def __init__(self, world):
        super().__init__()
        self.world, self.over, self.problem, self.kills = world, threading.Event(), None, []

    def kill_one(self):
        begin = time.monotonic()
        master = self.world.wait_for_master()
        is_master = len(self.kills) % 3 == 2
        victim = master if is_master else random.choice(others(self.world, master))
        victim.kill()
        self.world.wait_for_master()
        restart(self.world, victim)
        self.kills.append((is_master, time.monotonic() - begin))
        print(f"  killed {'the master' if is_master else 'a server'}; it serves again after {self.kills[-1][1]:.1f} s", flush=True)

    def run(self):
        while not self.over.wait(KILL_S):
            try:
                self.kill_one()
                self.world.look_for_ended()
            except Exception as failed:  # reported by the test
                self.problem = failed
                return


def tool(world, folder):
    """Returns the tool's output, which is printed on the way."""
    command = [str(ROOT / "tests/hbase-tests/tools"), "itbll", "Loop", "1", str(MAPPERS), str(NODES // MAPPERS), f"file:{folder}/itbll", "1",
               str(WIDTH), str(WRAP)]
    environment = {**os.environ, "ZK": f"127.0.0.1:{world.keeper.port}", "OUT": str(folder)}
    lines = []
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ran:
        for line in ran.stdout:
            lines.append(line)
            if "map 100% reduce" in line or any(c + "=" in line for c in COUNTERS):
                print("  " + line.rstrip(), flush=True)
    return ran.returncode, "".join(lines)


def a_linked_list_is_whole(world):
    killer = Killer(world)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        if KILL_S > 0:
            killer.start()
        try:
            code, out = tool(world, folder)
        finally:
            killer.over.set()
            if KILL_S > 0:
                killer.join()
    found = {name: int(number) for name, number in re.findall(r"\b([A-Z]+)=(\d+)", out) if name in COUNTERS}
    print(f"  {NODES} nodes in {time.monotonic() - begin:.0f} s, {len(killer.kills)} kills, of which {sum(m for m, _ in killer.kills)} of the master: {found}")
    if killer.problem is not None:
        raise killer.problem
    assert code == 0 and found == {"REFERENCED": NODES}, (code, found, out[-4000:])


def main():
    peer.orderly()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            world.processes += [Process(world) for _ in range(3)]
            world.wait_for_master()
            report.run("itbll", world, [a_linked_list_is_whole])
        finally:
            world.stop()
            if report.failed > 0:
                world.keep_logs()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
