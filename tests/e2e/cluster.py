#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three processes of a cluster on one folder, with a real ZooKeeper (tests/cluster/process.c): rorqual shell finds them by HBase's znodes,
makes a table whose regions are on all of them, writes and reads it, also after a server was killed with kill -9.

    cluster.py             ZooKeeper from Debian's package, on a port of its own
    PROGRAMS=FOLDER        of the programs (default build/tests/cluster); SHELL_PROGRAM=FILE (default build/src/cli/rorqual)

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import ROOT, Report
from membership import DEADLINE, Keeper, until

sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / "build/tests/cluster"))
SHELL = os.environ.get("SHELL_PROGRAM", str(ROOT / "build/src/cli/rorqual"))
SESSION_MS = 2000
PUTS = 3000
ROWS = "abdefhijlmnpqrtuvxyz"


class Process:
    def __init__(self, world, port, secret=None, waits=True):
        self.lines, self.port = [], port
        self.path = world.folder / f"process-{port}.log"
        self.log = open(self.path, "wb")
        self.process = subprocess.Popen([str(PROGRAMS / "process"), f"127.0.0.1:{world.keeper.port}", "/hbase", str(world.folder / "data"),
                                         str(port), str(secret or world.secret), str(SESSION_MS)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        world.started.append(self)
        threading.Thread(target=self.read, daemon=True).start()
        if waits:
            until(lambda: self.lines or self.process.poll() is not None, "the process serves")
            assert self.lines, self.errors()
            self.role, self.name = self.lines[0].split()

    def errors(self):
        return self.path.read_text(errors="replace")

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.started = []
        for name in ("data", "data/files", "data/shared"):
            (self.folder / name).mkdir()
        self.secret = self.folder / "secret"
        self.secret.write_bytes(os.urandom(32).hex().encode())
        self.secret.chmod(0o600)
        self.keeper = Keeper(folder)

    def shell(self, text):
        script = self.folder / "script.rb"
        script.write_text(text)
        done = subprocess.run([SHELL, "shell", "-n", "--zk", f"127.0.0.1:{self.keeper.port}", str(script)], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self):
        for process in self.started:
            process.kill()
        self.keeper.kill()


def read_all(world):
    out = world.shell("scan 't'\n")
    for row in ROWS:
        assert f"value={row * 3}" in out, out


def three_processes_serve_a_table(world):
    world.processes = []
    for _ in range(3):
        world.processes.append(Process(world, two_ports()))
    assert [p.role for p in world.processes] == ["master", "server", "server"]
    until(lambda: len([n for n in world.keeper.tree("/hbase") if n.startswith("rs/")]) == 3, "three servers are in rs/")
    world.shell("create 't', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n"
                + "".join(f"put 't', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))
    read_all(world)
    out = world.shell("get 't', 'm'\n")
    assert "value=mmm" in out, out
    out = world.shell("scan 'hbase:meta', {COLUMNS => 'info:server'}\n")
    for process in world.processes:
        _, number, _ = process.name.split(",")
        assert f"value=localhost:{number}" in out, out


def a_killed_server_loses_no_row(world):
    killed = world.processes[1]
    killed.kill()
    until(lambda: f"down {killed.name}" in world.processes[0].lines, "the master has fenced it")
    read_all(world)
    world.shell("".join(f"put 't', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))
    read_all(world)
    out = world.shell("scan 'hbase:meta', {COLUMNS => 'info:server'}\n")
    assert f"value=localhost:{killed.name.split(',')[1]}" not in out, out


def a_server_comes_back_at_its_address(world):
    again = Process(world, world.processes[1].port)
    assert again.role == "server" and again.name != world.processes[1].name
    world.shell("create 'v', 'f', SPLITS => ['c', 'g', 'k', 'o']\nput 'v', 'a', 'f:q', '1'\nput 'v', 'd', 'f:q', '1'\nput 'v', 'h', 'f:q', '1'\n")
    out = world.shell("scan 'hbase:meta', {COLUMNS => 'info:server'}\n")
    assert f"value=localhost:{again.port}" in out, out
    read_all(world)


def rows_put_while_a_server_is_killed_are_there(world):
    """One client puts row after row; its retries pass over the gap, and what was acknowledged is found."""
    world.shell("create 'w', 'f', SPLITS => ['2', '4', '6', '8']\n")
    script, out = world.folder / "writer.rb", world.folder / "writer.out"
    script.write_text("".join(f"put 'w', '{i % 10}{i:05}', 'f:q', '{i}'\n" for i in range(PUTS)))
    with open(out, "wb") as sink:
        writer = subprocess.Popen([SHELL, "shell", "-n", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)], stdout=sink, stderr=sink)
    try:
        killed = world.processes[2]
        until(lambda: out.read_bytes().count(b"\n") > PUTS // 10, "the writer writes")
        begin = time.monotonic()
        killed.kill()
        until(lambda: f"down {killed.name}" in world.processes[0].lines, "the master has fenced it")
        fenced = time.monotonic()
        assert writer.wait(timeout=DEADLINE) == 0, out.read_text(errors="replace")[-2000:]
        print(f"  fenced after {fenced - begin:.1f} s, {PUTS} puts done after {time.monotonic() - begin:.1f} s")
    finally:
        writer.kill()
        writer.wait()
    counted = world.shell("count 'w'\n")
    assert f"{PUTS} row(s)" in counted, counted


def a_process_with_another_secret_gets_no_region(world):
    other = world.folder / "other"
    other.write_bytes(b"not the secret of this cluster")
    other.chmod(0o600)
    stranger = Process(world, two_ports(), secret=other, waits=False)
    until(lambda: "does not have this cluster's secret" in stranger.errors(), "it is told why it is not taken")
    assert not stranger.lines, stranger.lines
    world.shell("create 'u', 'f', SPLITS => ['c', 'g', 'k', 'o']\n")
    out = world.shell("scan 'hbase:meta', {COLUMNS => 'info:server'}\n")
    assert f"value=localhost:{stranger.port}" not in out, out


def a_secret_that_others_can_read_is_refused(world):
    other = world.folder / "open"
    other.write_bytes(world.secret.read_bytes())
    other.chmod(0o644)
    process = Process(world, two_ports(), secret=other, waits=False)
    assert process.process.wait(timeout=DEADLINE) == 1
    assert "its mode is 0644, so others may use it; chmod 600" in process.errors(), process.errors()


def two_ports():
    """A port whose next one is free, too: the server's, and the master's."""
    while True:
        port = peer.free_ports(1)[0]
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                pass


TESTS = [three_processes_serve_a_table, a_killed_server_loses_no_row, a_server_comes_back_at_its_address,
         rows_put_while_a_server_is_killed_are_there, a_process_with_another_secret_gets_no_region,
         a_secret_that_others_can_read_is_refused]


def main():
    peer.orderly()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            report.run("cluster", world, TESTS)
        finally:
            world.stop()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
