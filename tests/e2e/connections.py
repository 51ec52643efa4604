#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many connections: measures the memory of an idle connection, and checks that no busy connection starves.

10,000 connections (IDLE) are opened, send the preamble, their header and one call, and stay idle; resident memory must
grow by at most 16 kB for each. Meanwhile 500 more (BUSY) send one request after another for a few seconds (SECONDS):
each connection must get its share, and none may wait long. At the end an idle connection must still get a response.

The server starts with a soft limit of 1,024 open files, like that of a login shell, and must raise it itself. If the
hard limit is too low for so many connections, fewer are opened, and the report says so.
Ends with 'N passed, N failed'.
"""
import os
import pathlib
import resource
import selectors
import socket
import struct
import sys
import tempfile
import time

import rorqual

sys.path.insert(0, str(rorqual.ROOT / "tests/wire"))
from bad_bytes import HELLO, request  # pylint: disable=wrong-import-position

IDLE = int(os.environ.get("IDLE", "10000"))
BUSY = int(os.environ.get("BUSY", "500"))
SECONDS = float(os.environ.get("SECONDS", "5"))
BYTES_MAX = 16 * 1024
SHARE_MIN = 0.25  # smallest share, as a fraction of the median
SPARE = 200       # open files other than connections
PATIENCE = 300    # seconds until a connection without its share counts as starving


def resident(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmRSS")


def connect(address):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), 300)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_answer(connection):
    """The bytes of one response, whose call id must be that of the request."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
        some = connection.recv(4096)
        if not some:
            raise EOFError("closed")
        data += some
    return data


def open_idle(address, count):
    """Opens idle connections; in the end all requests have been answered, and none is in flight."""
    connections = []
    while len(connections) < count:
        some = [connect(address) for _ in range(min(250, count - len(connections)))]
        for one in some:
            one.sendall(HELLO + request(7))
        for one in some:
            read_answer(one)
        connections += some
    return connections


class Asker:
    """One busy connection: a request, its response, the next request."""

    def __init__(self, address):
        self.socket = connect(address)
        self.socket.sendall(HELLO)
        self.socket.setblocking(False)
        self.answers = 0
        self.longest = 0.0
        self.asked = 0.0
        self.data = b""

    def ask(self):
        self.asked = time.monotonic()
        self.socket.send(request(self.answers + 1))

    def receive(self):
        """True when a response is complete."""
        self.data += self.socket.recv(4096)
        if len(self.data) < 4 or len(self.data) < 4 + struct.unpack(">I", self.data[:4])[0]:
            return False
        self.data = b""
        self.answers += 1
        self.longest = max(self.longest, time.monotonic() - self.asked)
        return True


def starves(askers):
    answers = sorted(asker.answers for asker in askers)
    return answers[0] < max(1, SHARE_MIN * answers[len(answers) // 2])


def ask_all(address, count, seconds):
    askers = [Asker(address) for _ in range(count)]
    with selectors.DefaultSelector() as selector:
        for asker in askers:
            selector.register(asker.socket, selectors.EVENT_READ, asker)
            asker.ask()
        begun, answers = time.monotonic(), 0
        end = begun + seconds
        # Longer on a busy machine, because shares of only a few responses are not meaningful, and after a pause of one of the
        # server's threads: a connection starves if it never comes to its share.
        while time.monotonic() < end or answers < 20 * count:
            if time.monotonic() >= end - 0.1 and starves(askers) and end < begun + PATIENCE:
                end += 1
            for key, _ in selector.select(0.1):
                if key.data.receive():
                    answers += 1
                    key.data.ask()
    for asker in askers:
        asker.socket.close()
    return askers


def limits(report):
    """The number of idle connections that this process and the server may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = IDLE if hard == resource.RLIM_INFINITY else min(IDLE, hard - BUSY - SPARE)
    if allowed < IDLE:
        report.line(f"SKIP connections/{IDLE} idle ones: the hard limit of open files is {hard}; {allowed} are opened")
    return allowed, hard


def start(folder, hard):
    """Starts the server with the soft limit of most systems, which the server must raise itself."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    try:
        return rorqual.Server(folder / "data", folder / "server.log")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measure(report, server, count):
    for one in open_idle(server.regionserver, 50):  # makes the server allocate what the first connections need
        one.close()
    before = resident(server.process)
    idle = open_idle(server.regionserver, count)
    each = (resident(server.process) - before) / count
    print(f"{count} idle connections: {each:.0f} bytes of resident memory each", flush=True)
    report.outcome("connections/an idle one costs at most 16 kB", None if each <= BYTES_MAX else f"{each:.0f} bytes")
    begun = time.monotonic()
    askers = ask_all(server.regionserver, BUSY, SECONDS)
    took = time.monotonic() - begun
    answers = sorted(asker.answers for asker in askers)
    median, longest = answers[len(answers) // 2], max(asker.longest for asker in askers)
    print(f"{BUSY} busy ones beside them: {sum(answers) / took:,.0f} answers/s; each {answers[0]} to {answers[-1]}, "
          f"median {median}; longest wait {longest * 1000:.0f} ms", flush=True)
    report.outcome("connections/none of the busy ones starves",
                   None if not starves(askers) else f"{answers[0]} answers where the median is {median}")
    problem = None
    try:
        for one in idle[:: max(1, count // 100)]:
            one.sendall(request(8))
            read_answer(one)
    except (OSError, EOFError) as e:
        problem = repr(e)
    report.outcome("connections/the idle ones still answer", problem)
    for one in idle:
        one.close()
    again = open_idle(server.regionserver, min(count, 1000))
    grown = resident(server.process) - before
    report.outcome("connections/what is closed is given back",
                   None if grown <= count * BYTES_MAX else f"{grown} bytes more than before")
    for one in again:
        one.close()


def main():
    report = rorqual.Report()
    count, hard = limits(report)
    with tempfile.TemporaryDirectory(prefix="rorqual-connections-") as name:
        server = start(pathlib.Path(name), hard)
        try:
            measure(report, server, count)
        except (OSError, EOFError) as e:
            report.outcome("connections/opened and served", f"{e!r}; {server.tail()}")
        report.outcome("server/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
