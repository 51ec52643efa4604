# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of export, import, bulkload, copytable and verify: a server, tables, commands (transfer.py, transfer_bulk.py)."""
import json
import os
import subprocess
import time

import hbase
from rorqual import BINARY, ROOT, Server

DEADLINE = 300
ROWS = 400
VALUE = b"v" * 300
SPLITS = (b"r100", b"r200", b"r300")
MAPREDUCE = "org.apache.hadoop.hbase.mapreduce."


class Clusters:
    """Reads from a server with hbase.Client."""

    def __init__(self, zk, master, regionserver):
        self.zk, self.master, self.regionserver = zk, master, regionserver


class World:
    def __init__(self, folder):
        self.folder = folder
        self.bulk = folder / "bulk"
        self.bulk.mkdir()
        self.own = "ZK" not in os.environ
        if self.own:
            self.server = Server(folder / "data", folder / "log", "-D", f"rorqual.bulkload.folders={self.bulk}")
        else:
            self.server = Clusters(os.environ["ZK"], os.environ["MASTER"], os.environ["RS"])
        self.client = hbase.Client(self.server)
        self.counter = 0

    def path(self, name="x"):
        self.counter += 1
        return self.folder / f"{name}{self.counter}"

    def table(self, splits=SPLITS, families=(b"cf", b"g"), name=None):
        """A new table without rows."""
        self.counter += 1
        name = name or f"t{os.getpid()}_{self.counter}"
        self.client.create(name, {f: {b"VERSIONS": b"5"} for f in families}, splits)
        return name

    def run(self, *arguments, zk=None, code=0):
        """The output of a command; its exit code must be `code`."""
        command = [BINARY, arguments[0], "--zk", zk or self.server.zk, *map(str, arguments[1:])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code, f"{arguments}: {done.returncode}, {done.stdout!r} {done.stderr!r}"
        return done.stdout + done.stderr

    def import_lines(self, table, lines, *options, code=0):
        path = self.path("lines")
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return self.run("import", *options, table, path, code=code)

    def filled(self, rows=ROWS):
        """A table with rows in all its regions, with two families, bytes that are not valid text, and two versions of one
        cell."""
        table = self.table()
        lines = [json.dumps({"row": f"r{i:03d}", "cells": [
            {"family": "cf", "qualifier": "a", "timestamp": 1000 + i, "value": f"\\x00\\xFF{i}\t\"" + VALUE.decode()},
            {"family": "g", "qualifier": "q\\x01", "timestamp": 7, "value": "é"}]}).encode() for i in range(rows)]
        lines.append(b'{"row":"r000","cells":[{"family":"cf","qualifier":"a","timestamp":1,"value":"old"}]}')
        self.import_lines(table, lines, "--format", "json")
        return table

    def same(self, a, b, *options):
        return self.run("verify", "--versions", "9", *options, a, b).strip() == "equal"

    def java(self, tool, *arguments, code=0):
        host, port = self.server.zk.rsplit(":", 1)
        conf = self.folder / "conf" / "conf"
        if not conf.exists():
            conf.mkdir(parents=True)
            properties = {"hbase.zookeeper.quorum": host, "hbase.zookeeper.property.clientPort": port,
                          "mapreduce.framework.name": "local", "hadoop.tmp.dir": str(self.folder / "hadoop"),
                          # Milliseconds between checks whether a job has ended; the defaults are 1 s and 5 s.
                          "mapreduce.client.progressmonitor.pollinterval": "20", "mapreduce.client.completion.pollinterval": "20"}
            (conf / "hbase-site.xml").write_text("<configuration>" + "".join(
                f"<property><name>{n}</name><value>{v}</value></property>" for n, v in properties.items()) + "</configuration>")
            (conf / "log4j.properties").write_text("log4j.rootLogger=ERROR,c\nlog4j.appender.c=org.apache.log4j.ConsoleAppender\n"
                                                   "log4j.appender.c.layout=org.apache.log4j.SimpleLayout\n")
        done = subprocess.run([str(ROOT / "tests/peers/hbase.sh"), "run", str(conf.parent), tool, *map(str, arguments)],
                              capture_output=True, text=True, timeout=3 * DEADLINE, check=False, cwd=self.folder)
        assert done.returncode == code, f"{tool}: {done.returncode} {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout + done.stderr


def expect(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in {text!r}"


def shell(w, text):
    subprocess.run([BINARY, "shell", "-n", "--zk", w.server.zk], input=text + "\n", text=True, check=True, stdout=subprocess.DEVNULL)


def lines_of(folder):
    return [line for path in sorted(folder.glob("part-*")) for line in path.read_bytes().split(b"\n") if line]


class Late(Exception):
    """A command has ended in order before what should have happened to it meanwhile, because this process paused."""


def killed_when(process, condition):
    """Waits for the condition, then kills the process (kill -9)."""
    until = time.monotonic() + DEADLINE
    while process.poll() is None and not condition():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.005)
    process.kill()
    code = process.wait()
    if code == 0:
        raise Late
    assert code == -9, f"ended with {code}"


def in_time(attempt):
    """What the attempt returns, which begins with new tables and folders. It is repeated while it is too late."""
    until = time.monotonic() + DEADLINE
    while True:
        try:
            return attempt()
        except Late:
            assert time.monotonic() < until, "each command ends before it is killed"


def killed_amid(prepare):
    """Starts a command and kills it when its condition holds. prepare() returns the command, the condition, and the result of this
    function."""
    def attempt():
        command, condition, result = prepare()
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) as process:
            killed_when(process, condition)
        return result
    return in_time(attempt)
