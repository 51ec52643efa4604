# SPDX-License-Identifier: Apache-2.0
"""A real HBase for Python drivers, and clean-up when a driver ends.

HBase runs in a session of nobody's: whoever started it has to stop it. orderly() lets SIGTERM, SIGHUP and SIGINT end a driver as
an exception does, so that its `finally` and `with` have their turn; tests/e2e/endings.py checks it.
"""
import atexit
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent / "hbase.sh"
ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def _end(number, _frame):
    # Once is enough: another one must not interrupt what is being put in order.
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    print(f"ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    atexit.register(_end_children)
    sys.exit(128 + number)


def _end_children():
    """The signal may have come between a child's beginning and the `with` that would end it."""
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
    """To be called first in main(). SIGINT too where a shell had it ignored, as it does for what runs in the background."""
    for ending in ENDINGS:
        signal.signal(ending, _end)


def free_ports(count):
    """Each with the one ten above it, where HBase has its web pages. They are below those that the kernel gives to whoever
    asks for any: HBase takes seconds until it binds them."""
    found = []
    while len(found) < count:
        port = random.randrange(10000, 30000)
        if all(abs(port - other) not in (0, 10) for other in found) and all(map(is_free, (port, port + 10))):
            found.append(port)
    return found


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class HBase:
    """A standalone HBase on ports of its own, in that folder; `with` starts and stops it."""

    def __init__(self, folder, settings=None, env=None):
        """settings: {property: value}; env: what hbase.sh reads besides (HEAP)."""
        # The web pages' ports are those of the servers and ten.
        zk, master, region = free_ports(3)
        extra = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in (settings or {}).items())
        self.folder = pathlib.Path(folder)
        self.ports = {"ZK_PORT": str(zk), "MASTER_PORT": str(master), "RS_PORT": str(region), "EXTRA": extra}
        self.env = {**(env or os.environ), **self.ports}
        self.zk = f"127.0.0.1:{zk}"

    def start(self, stdout=None):
        try:
            subprocess.run([str(SCRIPT), "start", str(self.folder)], env=self.env, stdout=stdout, check=True)
        except BaseException:
            # It may run already: nobody else would stop it.
            self.stop()
            raise

    def stop(self):
        subprocess.run([str(SCRIPT), "stop", str(self.folder)], env=self.env, check=False)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
