# SPDX-License-Identifier: Apache-2.0
"""`tools/cluster`: one command starts three servers and ZooKeeper; a killed server is restarted; all end on Ctrl-C, and when the
program itself is killed; a second run uses the same data. Run by cluster.py."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

from membership import DEADLINE, until
from rorqual import ROOT, peer

ROWS = 20
READY = "the cluster is ready; Ctrl-C ends it"


class Tool:
    def __init__(self, folder, rorqual):
        self.rorqual = rorqual
        self.path = pathlib.Path(folder) / "tool.log"
        self.data = pathlib.Path(folder) / "here"
        if not self.data.exists():  # otherwise it would prefer HBase's ports, which other tests use, too
            self.data.mkdir()
            names = ["zookeeper", *(f"{kind}-{i}" for i in (1, 2, 3) for kind in ("master", "server"))]
            (self.data / "ports.json").write_text(json.dumps(dict(zip(names, peer.free_ports(len(names))))))
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([ROOT / "tools/cluster", self.data], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=dict(os.environ, RORQUAL=rorqual))

    def said(self):
        return self.path.read_text(errors="replace")

    def wait_ready(self):
        until(lambda: READY in self.said() or self.process.poll() is not None, "the cluster is ready")
        assert READY in self.said(), self.said()
        self.zk = re.search(r"ZooKeeper  (\S+)", self.said())[1]
        self.pids = [int(pid) for pid in re.findall(r"pid (\d+)", self.said())]
        assert len(self.pids) == 4, self.said()
        return self

    def status(self):
        """The status; {} while no master responds."""
        done = subprocess.run([self.rorqual, "cluster", "status", "--json", "--zk", self.zk], capture_output=True, text=True, timeout=DEADLINE,
                              check=False)
        return json.loads(done.stdout or "{}")

    def starts(self):
        """The servers' start times, once the cluster could lose a server."""
        status = self.status()
        return {s["startMs"] for s in status["servers"]} if status.get("mayLoseOneServer") else set()

    def shell(self, text):
        """Runs the shell with as many retries as HBase's Java client."""
        script = self.path.with_name("tool.rb")
        script.write_text(text)
        done = subprocess.run([self.rorqual, "shell", "-n", "-Dhbase.client.retries.number=15", "--zk", self.zk, str(script)], capture_output=True, text=True, timeout=2 * DEADLINE,
                              check=False)
        assert done.returncode == 0, done
        return done.stdout

    def kill(self):
        """Kills all processes, whatever their state."""
        self.process.kill()
        self.process.wait()
        until(lambda: not any(runs(pid) for pid in self.all_pids()), "its processes have ended with it")

    def all_pids(self):
        return [int(pid) for pid in re.findall(r"pid:? (\d+)", self.said())]


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def one_command_gives_a_cluster(world):
    folder, rorqual = world
    tool = Tool(folder, rorqual)
    try:
        tool.wait_ready()
        before = until(tool.starts, "one of its servers may be lost")
        assert len(before) == 3 and len(tool.status()["standbys"]) == 2, tool.status()
        tool.shell("create 't', 'f', SPLITS => ['g', 'p']\n" + "".join(f"put 't', '{chr(ord('a') + i)}', 'f:q', '{i}'\n" for i in range(ROWS)))
        second = subprocess.run([ROOT / "tools/cluster", tool.data], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert second.returncode == 1 and "a cluster runs on it already" in second.stderr, second
        os.kill(tool.pids[2], signal.SIGKILL)  # the killed server may be the master
        until(lambda: "ended (SIGKILL) and is started again" in tool.said(), "it is started again")
        until(lambda: len(tool.starts()) == 3 and len(tool.starts() - before) == 1, "three servers serve again, of which one is new")
        assert f"{ROWS} row(s)" in tool.shell("count 't'\n")
        tool.process.send_signal(signal.SIGINT)
        assert tool.process.wait(timeout=2 * DEADLINE) == 0, tool.said()
        assert "is killed" not in tool.said() and not any(runs(pid) for pid in tool.all_pids()), tool.said()
        ports = json.loads((tool.data / "ports.json").read_text())
        again = Tool(folder, rorqual).wait_ready()
        tool = again
        assert json.loads((tool.data / "ports.json").read_text()) == ports, ports
        assert f"{ROWS} row(s)" in tool.shell("count 't'\n")
    finally:
        tool.kill()


def wrong_usage_is_refused(world):
    for arguments, code, text in [(("--servers", "0"), 2, "invalid choice"), (("x", "y"), 2, "unrecognized arguments")]:
        done = subprocess.run([ROOT / "tools/cluster", *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False, cwd=world[0])
        assert done.returncode == code and text in done.stderr, done
    done = subprocess.run([ROOT / "tools/cluster", "here"], capture_output=True, text=True, timeout=DEADLINE, check=False, cwd=world[0],
                          env=dict(os.environ, RORQUAL=sys.executable))
    assert done.returncode == 1 and "server 1 ended: exit code 2" in done.stderr, done


TESTS = [one_command_gives_a_cluster, wrong_usage_is_refused]
