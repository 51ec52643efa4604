#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows README.md: runs every block in order, then every command and option that its text names.

Each block follows a comment '<!-- test: KIND -->'. Kinds: shell (run by rorqual shell), hbase_shell (run by HBase's shell),
file PATH (written unchanged), run NAME (see RUNS below). Default ports are replaced by those of the test's own servers;
nothing else is changed. A block without a comment of this kind fails the test. Commands in the text, between backquotes or
indented, are run by the first of COMMANDS that matches; a command without a match fails the test, too. Ends with 'N passed,
N failed'.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from rorqual import BINARY, READY, ROOT, Report, Server, free_ports

README = ROOT / "README.md"
PEER = ROOT / "tests/peers/hbase.sh"
BLOCK = re.compile(r"(?:<!-- test: (?P<kind>\w+)(?: (?P<name>\S+))? -->\n)?```\w+\n(?P<text>.*?)```\n", re.S)
DEADLINE = 3600  # seconds; only for a command that hangs: pip, npm and go download and compile
PATIENCE = 300  # seconds that a server may take to answer a request, on a busy machine


def command(*arguments, cwd=None, **environment):
    """Returns the standard output; an exit code other than 0 raises."""
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, check=False)
    assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-700:]}"
    return done.stdout


class Reader:
    """A reader's machine: a server, a folder for the files, and HBase's gateways if a block needs them."""

    def __init__(self, folder, server):
        self.folder = folder
        self.zk = server.zk
        self.ready = server.ready
        rest, thrift = free_ports(2)
        self.ports = {"2181": server.zk.rsplit(":", 1)[1], "16020": server.regionserver.rsplit(":", 1)[1],
                      "8080": str(rest), "9090": str(thrift)}
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
        self.write("session.rb", text)
        return command(pathlib.Path(BINARY).resolve(), "shell", "-n", "--zk", self.zk, self.folder / "session.rb")

    def hbase_shell(self, text):
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
                socket.create_connection(("127.0.0.1", int(port)), PATIENCE).close()
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
    # ZooKeeper's address, which a reader with default ports need not set.
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


# Files that commands in the surrounding text run.
PROGRAMS = {"python/blog.py": python, "go/main.go": go, "node/blog.js": node}


def step(reader, kind, name, text):
    if kind == "file":
        reader.write(name, text)
        PROGRAMS.get(name, lambda _: None)(reader)
    elif kind == "run":
        RUNS[name](reader, text)
    else:
        out = reader.shell(text) if kind == "shell" else reader.hbase_shell(text)
        assert "ERROR" not in out, out
        for wanted in ("hello",) if "create" in text else ("hello", "again", "by curl", "by Python", "by Go", "by Node"):
            assert f"value={wanted}" in out, f"{wanted}: {out[-900:]}"


# ---- commands in the text

NAMED = re.compile(r"`([^`]+)`|^    (\S.*)$", re.M)
# Texts that a reader would type; other text between backquotes is a file, a setting, a signal …
TYPED = re.compile(r"(build/)?rorqual[ :]|(make|pip|npm|go) |bin/|-D |--")


def commands_of(text):
    """Commands, options and lines of output named in the text, without the blocks."""
    named = (one or line.split("  #")[0] for one, line in NAMED.findall(BLOCK.sub("", text)))
    return list(dict.fromkeys(" ".join(name.split()) for name in named if TYPED.match(name)))


class Typist:
    """Runs commands of the text in the reader's folder, where `data` is the running server's folder."""

    def __init__(self, reader):
        self.reader = reader
        self.folder = reader.folder
        (self.folder / "backup").mkdir()
        (self.folder / "settings").write_text("hbase.hregion.memstore.flush.size=64m\n")
        (self.folder / "hbase-site.xml").write_text(
            "<configuration><property><name>hbase.hregion.memstore.flush.size</name><value>64m</value></property></configuration>")

    def rorqual(self, *arguments):
        return command(pathlib.Path(BINARY).resolve(), *arguments, cwd=self.folder)

    def check(self, text):
        """Checks the options as a server would."""
        return self.rorqual("server", "--check", "--data", "unused", "--zk-port", "0", "--master-port", "0", "--rs-port", "0",
                            "--http", "none", *shlex.split(text))

    def store_file(self):
        """A store file of a table that is made once."""
        if not (self.folder / "data/data/default/stored").exists():
            self.reader.shell("create 'stored', 'cf'\nput 'stored', 'r', 'cf:q', 'v'\nflush 'stored'\n")
        return next(p for p in (self.folder / "data/data/default/stored").rglob("cf/*") if re.fullmatch("[0-9a-f]{32}", p.name))

    def is_a_target(self, text):
        command("make", "-n", *shlex.split(text)[1:], cwd=ROOT)

    def runs(self, text):
        """Runs `make run`, in a temporary folder and on free ports, and stops it as Ctrl-C does."""
        port, = free_ports(1)
        arguments = re.search(r"ARGS='(.*)'", text)[1].replace("12181", str(port))
        process = subprocess.Popen(["make", "-s", "run", f"DATA={self.folder / 'made'}", f"ARGS={arguments} --http 0"], cwd=ROOT,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            while not READY.search(line := process.stdout.readline()):
                assert line, "make run ends without a ready line"
            assert f"zookeeper 127.0.0.1:{port}," in line, line
            os.killpg(process.pid, signal.SIGINT)
            out = process.communicate(timeout=DEADLINE)[0]
            assert "rorqual stopping: SIGINT" in out and "rorqual stopped" in out, out
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def is_what_a_server_prints(self, line):
        shown, own = (re.sub(r"\S*[:/]\S+", "X", line) for line in (line, self.reader.ready))
        assert shown == own, (shown, own)

    def is_an_option(self, text):
        pages = [self.rorqual("help", name) for name in re.findall(r"(?m)^  ([a-z]+) ", self.rorqual("help"))]
        assert any(re.search(rf"(?m)^ *{text}\b", page) for page in pages), "no command has it"

    def is_done_above(self, _text):
        """The command is covered by a block that uses the test's own HBase or fixed versions."""

    def listing(self, _text):
        assert "rorqual.memory\n" in self.rorqual("settings") and "rorqual.memory\n" in self.rorqual("settings", "memory")

    def changed(self, _text):
        assert "memstore.flush.size" in self.rorqual("settings", "--changed", "--config", "settings")

    def watch(self, text):
        name = text.split()[-1]
        out = self.rorqual(name, "--zk", self.reader.zk, "--timeout", str(PATIENCE))
        assert "server" in out or name == "tables" and "hbase:meta" in out, out

    def watch_stopped(self, _text):
        assert "stored" in self.rorqual("tables", "--data", "backup/monday")

    def hfile(self, _text):
        assert "cells" in self.rorqual("hfile", "meta", self.store_file())

    def shell(self, _text):
        assert "1 row(s)" in self.reader.shell("create 'typed', 'cf'\nput 'typed', 'r', 'cf:q', 'v'\nscan 'typed'\n")

    def export(self, _text):
        self.store_file()
        self.rorqual("export", "--quiet", "--zk", self.reader.zk, "stored", "exported")
        assert any((self.folder / "exported").iterdir())

    def fsck(self, _text):
        assert "nothing wrong" in self.rorqual("fsck", "data")

    def run(self, text):
        assert self.rorqual(*text.replace("/backup", "backup").split()[1:])


COMMANDS = [
    (r"make run ARGS=.*", Typist.runs), (r"make .*", Typist.is_a_target), (r"rorqual ready: .*", Typist.is_what_a_server_prints),
    (r"bin/hbase (shell|rest start .*|thrift start)|(pip|npm) install .*|go mod init .*", Typist.is_done_above),
    (r"--data DIR", Typist.watch_stopped), (r"--[a-z-]+", Typist.is_an_option),
    (r"-D \S+=\S+|--listen \S+|--config \S+", Typist.check), (r"rorqual server --check", lambda typist, _: typist.check("")),
    (r"build/rorqual settings \[PATTERN\]", Typist.listing), (r"rorqual settings --changed --config FILE", Typist.changed),
    (r"build/rorqual (status|tables|top)", Typist.watch), (r"build/rorqual shell", Typist.shell), (r"build/rorqual export .*", Typist.export), (r"build/rorqual hfile meta FILE", Typist.hfile), (r"build/rorqual wal list data", Typist.run),
    (r"build/rorqual fsck data", Typist.fsck), (r"build/rorqual ((backup|restore|recover) .*|\w+ --help)", Typist.run),
]


def commands(report, reader, text):
    typist = Typist(reader)
    later = ("--data DIR",)  # needs a stopped folder: runs after the command that makes one
    for typed in sorted(commands_of(text), key=lambda one: one in later):
        try:
            run = next((run for pattern, run in COMMANDS if re.fullmatch(pattern, typed)), None)
            assert run is not None, "no test runs it: COMMANDS in tests/e2e/readme.py"
            run(typist, typed)
            report.outcome(f"readme command {typed}")
        except (AssertionError, OSError, StopIteration, subprocess.TimeoutExpired) as failure:
            report.outcome(f"readme command {typed}", str(failure).replace("\n", " | ")[:900])


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
                assert block["kind"] in ("file", "run", "shell", "hbase_shell"), f"no test is named for:\n{block['text']}"
                step(reader, block["kind"], block["name"], block["text"])
                report.outcome(title)
            except (AssertionError, KeyError, OSError, subprocess.TimeoutExpired) as failure:
                report.outcome(title, str(failure).replace("\n", " | ")[:900])
        commands(report, reader, README.read_text())
    finally:
        reader.close()
        report.outcome("readme: the server stops cleanly", server.stop())
        shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
