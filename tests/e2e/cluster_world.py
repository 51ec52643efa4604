# SPDX-License-Identifier: Apache-2.0
"""Three processes of `rorqual server --cluster` on one folder, with a real ZooKeeper: used by the tests of cluster.py and its parts."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from rorqual import ROOT
from membership import DEADLINE, Keeper, until

sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402

RORQUAL = os.environ.get("RORQUAL", str(ROOT / "build/src/cli/rorqual"))
SHELL = os.environ.get("SHELL_PROGRAM", RORQUAL)
# The Java programs keep the machine busy. A server without CPU time for two seconds would lose its session and be
# fenced.
SESSION_MS = int(os.environ.get("SESSION_MS", "10000" if os.environ.get("JAVA") else "2000"))
ROWS = "abdefhijlmnpqrtuvxyz"


class Process:
    """A server process; `name` is its ServerName, `ports` are those of the server, of its master and of its pages."""

    def __init__(self, world, ports=None, secret=None, settings=()):
        self.world, self.ports = world, ports or peer.free_ports(3)
        self.may_end = False  # the test ends the process, or the end was reported already
        self.name = None
        self.path = world.folder / f"server-{self.ports[0]}.log"
        self.log = open(self.path, "ab")
        self.before = self.path.stat().st_size
        self.process = subprocess.Popen([RORQUAL, "server", "--cluster", world.place(secret), "--rs-port", str(self.ports[0]), "--master-port",
                                         str(self.ports[1]), "--http", str(self.ports[2]), "--config", str(world.settings), "-D", f"zookeeper.session.timeout={SESSION_MS}",
                                         *(word for setting in settings for word in ("-D", setting))],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        world.started.append(self)
        until(lambda: "rorqual ready: cluster" in self.errors()[self.before:] or self.process.poll() is not None, "the process is ready")
        problem = self.ended()
        self.may_end = problem is not None  # reported here, and not again in later tests
        assert problem is None, problem
        self.name = [n for n in world.servers() if n.startswith(f"127.0.0.1,{self.ports[0]},")][-1]

    def errors(self):
        return self.path.read_text(errors="replace")

    def ended(self):
        """Returns how the process ended and prints the end of its log; None if it runs, or if a test has ended it."""
        code = self.process.poll()
        if code is None or self.may_end:
            return None
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        print(f"the end of {self.path.name}:\n{self.errors()[self.before:][-4000:]}", flush=True)
        return f"the process on port {self.ports[0]} ended by itself: {how}"

    def runs(self):
        return self.process.poll() is None

    def said(self, text):
        """Whether this process has logged the text; earlier processes at the port have the same log file."""
        return text in self.errors()[self.before:]

    def kill(self):
        self.may_end = True
        self.process.kill()
        self.process.wait()
        self.log.close()

    def ends(self, code):
        """Waits for the end that the test has caused."""
        self.may_end = True
        assert self.process.wait(timeout=DEADLINE) == code, self.errors()

    def stop(self):
        self.process.terminate()
        self.ends(0)
        assert "not stopped cleanly" not in self.errors(), self.errors()


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.started, self.processes = [], []
        self.full_tables = []  # tables with PUTS rows
        self.replicated = []  # tables of tests of replication, which have a peer
        self.store = self.folder / "store"
        self.secret = self.folder / "secret"
        self.secret.write_bytes(os.urandom(32).hex().encode())
        self.secret.chmod(0o600)
        self.settings = self.folder / "settings.conf"  # that all processes read
        self.settings.write_text("")
        self.keeper = Keeper(folder)

    def place(self, secret=None):
        return f"zk=127.0.0.1:{self.keeper.port}/hbase,store={self.store},secret={secret or self.secret}"

    def keys_of(self, name):
        """The keys of a set on the shared storage."""
        return sorted(path.name for path in self.store.glob(f"shared/set/{name}/*"))

    def servers(self):
        return sorted(n[3:] for n in self.keeper.tree("/hbase") if n.startswith("rs/"))

    def master(self):
        """The process that has hbase:meta according to the znode; None if it has ended."""
        value = self.keeper.tree("/hbase").get("meta-region-server", (b"", 0))[0]
        for process in self.processes:
            if process.process.poll() is None and varint_field(3, int(process.name.split(",")[2])) in value:
                return process
        return None

    def wait_for_master(self):
        return until(self.master, "a master has opened meta")

    def shell(self, text):
        script = self.folder / "script.rb"
        script.write_text(text)
        done = subprocess.run([SHELL, "shell", "-n", "--zk", f"127.0.0.1:{self.keeper.port}", str(script)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=2 * DEADLINE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def restore(self):
        """Restores three servers, a master, and table t with its rows, whatever state an earlier test has left."""
        for process in self.started:
            if process.runs() and process not in self.processes:
                process.kill()
        for process in [p for p in self.processes if p.runs()]:
            process.process.send_signal(signal.SIGCONT)  # the process may be paused
        missing = [p for p in self.processes if not p.runs()]
        for process in missing:
            restart(self, process)
        while len(self.processes) < 3:
            self.processes.append(Process(self))
        until(lambda: self.servers() == sorted(p.name for p in self.processes), "three servers are in rs/")
        self.wait_for_master()
        until(lambda: all(p.said("the master accepts this server's reports") for p in self.processes), "all report")
        self.remove_replicated()
        self.need_rows()
        if missing:
            print(f"  {len(missing)} servers were started again", flush=True)

    def remove_replicated(self):
        """Removes the tables that tests of replication have made, and all peers."""
        if self.replicated:
            self.shell("list_peers\nPeers.all.each { |p| remove_peer p[:id] }\n" + "".join(
                f"if exists('{table}')\n  disable '{table}' if is_enabled('{table}')\n  drop '{table}'\nend\n" for table in self.replicated))
        self.replicated.clear()

    def need_rows(self):
        self.shell("balance_switch true\n")
        if "'t'" not in self.shell("list 't'\n").split("=>")[-1].replace('"', "'"):
            self.shell("create 't', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n")
        self.shell("".join(f"put 't', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))

    def look_for_ended(self):
        problems = [problem for problem in (process.ended() for process in self.started) if problem is not None]
        for process in self.started:
            process.may_end |= process.process.poll() is not None  # reported only once
        assert not problems, problems

    def keep_logs(self):
        kept = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-cluster-logs-"))
        for log in self.folder.glob("*.log"):
            shutil.copy(log, kept)
        print(f"the logs are kept in {kept}", flush=True)

    def stop(self):
        for process in self.started:
            process.kill()
        self.keeper.kill()


def varint_field(number, value):
    """Encodes a protobuf varint field, as in the ServerName of a znode."""
    out = bytes([number << 3])
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def read_all(world):
    out = world.shell("scan 't'\n")
    for row in ROWS:
        assert f"value={row * 3}" in out, out


def homes(world):
    """The servers of the regions according to hbase:meta."""
    return world.shell("scan 'hbase:meta', {COLUMNS => 'info:server'}\n")


def is_home(out, process):
    return f"value=127.0.0.1:{process.ports[0]}" in out


def others(world, process):
    return [p for p in world.processes if p is not process and p.process.poll() is None]


def restart(world, process, settings=()):
    world.processes[world.processes.index(process)] = again = Process(world, process.ports, settings=settings)
    until(lambda: again.said("the master accepts this server's reports"), "it reports")
    return again


def regions_of(world, table):
    """{encoded name: port of the server}"""
    lines = [line for line in homes(world).splitlines() if line.strip().startswith(table + ",") and "value=" in line]
    return {line.split()[0].rstrip(".").rsplit(".", 1)[1]: int(line.rsplit(":", 1)[1]) for line in lines}


def open_regions(world, table):
    """{name: port of the server}, without split and merged regions."""
    out = world.shell("scan 'hbase:meta', {COLUMNS => ['info:state', 'info:server']}\n").splitlines()
    rows = [line.split() for line in out if line.strip().startswith(table + ",")]
    opened = {row[0] for row in rows if row[-1] == "value=OPEN"}
    return {row[0]: int(row[-1].rsplit(":", 1)[1]) for row in rows if row[0] in opened and row[1] == "column=info:server,"}


def encoded(name):
    return name.rstrip(".").rsplit(".", 1)[1]


def put_rows(world, table):
    world.shell("".join(f"put '{table}', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))


def all_rows_of(world, table):
    out = world.shell(f"scan '{table}'\n")
    assert all(f"value={row * 3}" in out for row in ROWS) and f"{len(ROWS)} row(s)" in out, out


def kill_and_wait(world, killed):
    killed.kill()
    until(lambda: f"{killed.name} is fenced" in world.master().errors(), "the master has fenced it")
    read_all(world)
    return killed
