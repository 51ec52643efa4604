#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows README.md's "Five minutes": runs every marked block in order.

Each block follows a comment '<!-- test: KIND -->'. Kinds: shell (HBase's shell), file PATH (written unchanged),
run NAME (see RUNS below). Default ports are replaced by those of the test's own servers; nothing else is changed.
A block without a comment of this kind fails the test, unless it is indented text. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from rorqual import BINARY, ROOT, Report, Server

README = ROOT / "README.md"
PEER = ROOT / "tests/peers/hbase.sh"
BLOCK = re.compile(r"(?:<!-- test: (?P<kind>\w+)(?: (?P<name>\S+))? -->\n)?```\w+\n(?P<text>.*?)```\n", re.S)
DEADLINE = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command(*arguments, cwd=None, **environment):
    """Returns the standard output; an exit code other than 0 raises."""
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, check=False)
    assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-700:]}"
    return done.stdout


class Reader:
    """A reader's machine: a server, a folder for the files, HBase's gateways when a block needs them."""

    def __init__(self, folder, server):
        self.folder = folder
        self.zk = server.zk
        self.ports = {"2181": server.zk.rsplit(":", 1)[1], "16020": server.regionserver.rsplit(":", 1)[1],
                      "8080": str(free_port()), "9090": str(free_port())}
        self.gateways = []

    def with_ports(self, text):
        for port, own in self.ports.items():
            text = re.sub(rf"\b(127\.0\.0\.1[\":, ]+){port}\b", rf"\g<1>{own}", text)
        return text

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.with_ports(text))

    def shell(self, text):
        self.write("session.rb", text + "exit\n")
        return command(PEER, "shell", self.folder / "peer", self.folder / "session.rb", **self.peer_ports())

    def peer_ports(self):
        return {"ZK_PORT": self.ports["2181"]}

    def gateway(self, java_class, port):
        """Starts REST or Thrift as `hbase rest start` does, and waits until it listens."""
        with open(self.folder / f"{port}.log", "wb") as log:
            self.gateways.append(subprocess.Popen(
                [str(PEER), "run", str(self.folder / "peer"), java_class, "start", "-p", port, "--infoport", "-1"],
                stdout=log, stderr=log, env={**os.environ, **self.peer_ports()}))
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and self.gateways[-1].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{java_class} does not listen: {(self.folder / f'{port}.log').read_text()[-500:]}")

    def close(self):
        for process in self.gateways:
            process.terminate()
        for process in self.gateways:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def java(reader, text):
    # ZooKeeper's address, which a reader with default ports does not need.
    reader.write("java/src/main/resources/hbase-site.xml",
                 "<configuration><property><name>hbase.zookeeper.property.clientPort</name>"
                 f"<value>{reader.ports['2181']}</value></property></configuration>")
    reader.write("java/src/main/resources/log4j2.properties", "rootLogger.level=off\n")
    out = command("sh", "-e", "-c", text, cwd=reader.folder / "java")
    assert "again" in out.splitlines(), out


def rest(reader, text):
    reader.gateway("org.apache.hadoop.hbase.rest.RESTServer", reader.ports["8080"])
    out = command("sh", "-e", "-c", reader.with_ports(text))
    assert out.startswith("rest ") and out.endswith("by curl"), out


def bench(reader, text):
    out = command("sh", "-e", "-c", text.replace("rorqual bench", f"rorqual bench --zk {reader.zk}"),
                  cwd=pathlib.Path(BINARY).resolve().parent.parent if "RORQUAL" in os.environ else ROOT)
    assert "operations/s" in out, out


RUNS = {"java": java, "rest": rest, "bench": bench}


def python(reader):
    reader.gateway("org.apache.hadoop.hbase.thrift.ThriftServer", reader.ports["9090"])
    venv = reader.folder / "venv"
    command(sys.executable, "-m", "venv", venv)
    command(venv / "bin/pip", "install", "-q", "--disable-pip-version-check", "happybase")
    out = command(venv / "bin/python", reader.folder / "python/blog.py")
    assert "123_4 by Python" in out.splitlines() and "123_1 hello" in out.splitlines(), out


def go(reader):
    folder = reader.folder / "go"
    command("go", "mod", "init", "blog", cwd=folder)
    # The release that Debian's Go 1.19 can build.
    shutil.copy(ROOT / "tests/go/go.sum", folder)
    (folder / "go.mod").write_text((ROOT / "tests/go/go.mod").read_text())
    assert command("go", "run", ".", cwd=folder).splitlines()[-1:] == ["by Go"]


def node(reader):
    folder = reader.folder / "node"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "tests/node" / name, folder)
    command("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", cwd=folder)
    assert command("node", "blog.js", cwd=folder).splitlines()[-1:] == ["by Node"]


# Files that are run by commands in the text around them.
PROGRAMS = {"python/blog.py": python, "go/main.go": go, "node/blog.js": node}


def step(reader, kind, name, text):
    if kind == "file":
        reader.write(name, text)
        PROGRAMS.get(name, lambda _: None)(reader)
    elif kind == "run":
        RUNS[name](reader, text)
    else:
        out = reader.shell(text)
        assert "ERROR" not in out, out
        for wanted in ("hello",) if "create" in text else ("hello", "again", "by curl", "by Python", "by Go", "by Node"):
            assert f"value={wanted}" in out, f"{wanted}: {out[-900:]}"


def main():
    report = Report()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-readme-"))
    server = Server(folder / "data", folder / "log")
    reader = Reader(folder, server)
    steps = 0
    try:
        for block in BLOCK.finditer(README.read_text()):
            steps += 1
            title = " ".join(filter(None, ("readme", block["kind"], block["name"] or str(steps))))
            try:
                assert block["kind"] in ("file", "run", "shell"), f"no test is named for:\n{block['text']}"
                step(reader, block["kind"], block["name"], block["text"])
                report.outcome(title)
            except (AssertionError, KeyError, OSError, subprocess.TimeoutExpired) as failure:
                report.outcome(title, str(failure).replace("\n", " | ")[:900])
    finally:
        reader.close()
        report.outcome("readme: the server stops cleanly", server.stop())
        shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
