# SPDX-License-Identifier: Apache-2.0
"""A real HBase for Python drivers, and clean-up when a driver ends.

HBase runs in a session of its own, so its driver has to stop it. orderly() makes SIGTERM, SIGHUP and SIGINT end a driver by
an exception, so that its `finally` and `with` blocks run; tests/e2e/endings.py checks it.
"""
import atexit
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

SCRIPT = pathlib.Path(__file__).resolve().parent / "hbase.sh"
ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def _end(number, _frame):
    # Only the first signal counts: another one must not interrupt the clean-up.
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    print(f"ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    atexit.register(_end_children)
    sys.exit(128 + number)


def _end_children():
    """Kills children: the signal may have come between a child's start and the `with` that would stop it."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            child = int(stat.parent.name)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def orderly():
    """Must be called first in main(). Handles SIGINT even if it was ignored, as in background jobs of a shell."""
    for ending in ENDINGS:
        signal.signal(ending, _end)


def free_ports(count):
    """Free ports, each with the port ten above it free too, for HBase's web pages. They are below the kernel's ephemeral
    range, because HBase takes seconds until it binds them."""
    found = []
    while len(found) < count:
        port = random.randrange(10000, 30000)
        if all(map(take_port, (port, port + 10))):
            found.append(port)
    return found


TAKEN = {}


def take_port(port):
    """Whether the port is free, and no other driver on this machine will use it: until this process ends it holds an abstract socket
    of the port's name. So drivers that run beside each other do not pick a port that another one has picked and not bound yet."""
    if port in TAKEN or not is_free(port):
        return False
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0rorqual-test-port-{port}")
    except OSError:
        mark.close()
        return False
    TAKEN[port] = mark
    return True


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class HBase:
    """A standalone HBase in the folder, on free ports; `with` starts and stops it."""

    def __init__(self, folder, settings=None, env=None, prefix=()):
        """settings: {property: value}; env: further variables of hbase.sh (HEAP); prefix: words before the command that starts it (taskset)."""
        # The web pages' ports are the servers' ports plus ten.
        zk, master, region = free_ports(3)
        extra = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in (settings or {}).items())
        self.folder, self.prefix = pathlib.Path(folder), [str(word) for word in prefix]
        self.ports = {"ZK_PORT": str(zk), "MASTER_PORT": str(master), "RS_PORT": str(region), "EXTRA": extra}
        self.env = {**(env or os.environ), **self.ports}
        self.zk = f"127.0.0.1:{zk}"

    def start(self, stdout=None):
        try:
            subprocess.run([*self.prefix, str(SCRIPT), "start", str(self.folder)], env=self.env, stdout=stdout, check=True)
        except BaseException:
            # HBase may run already, and nothing else would stop it.
            self.stop()
            raise

    def stop(self):
        subprocess.run([str(SCRIPT), "stop", str(self.folder)], env=self.env, check=False)

    def kill(self):
        """Ends HBase by kill -9 and waits until the process is gone."""
        pid = int((self.folder / "pid").read_text(encoding="ascii"))
        os.kill(pid, signal.SIGKILL)
        while pathlib.Path(f"/proc/{pid}").exists():
            time.sleep(0.05)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
