#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that do not read their responses use bounded memory, and do not slow others down.

A server with rorqual.memory=128m and one loop (MEMORY_MB, LOOPS) is attacked in one way after
another, by raw connections that request far more than fits into memory and read little or nothing. During
an attack a bystander process puts, gets and scans a row repeatedly. The limits of each attack are
  - peak of resident memory: the budget and 30 %;
  - the bystander's 99th percentile: 100 ms, plus on a busy machine NOISE times the excess duration of its
    sleeps; its longest call: a second, with the same allowance;
  - the bystander always gets responses, and none is refused;
  - resident memory a few seconds after the attackers have disconnected: about as much as before.
At the end the server must stop within 10 s while such peers are connected. ONLY=part,part selects
parts; SCALE=0.2 makes the attacks smaller, for a server that is expected to fail.
"""
import multiprocessing
import os
import pathlib
import resource
import select
import socket
import struct
import sys
import tempfile
import time

import hbase
import rorqual

MB = 1 << 20
MEMORY_MB = int(os.environ.get("MEMORY_MB", "128"))
LOOPS = os.environ.get("LOOPS", "1")
ONLY = os.environ.get("ONLY", "")
SCALE = float(os.environ.get("SCALE", "1"))
NOISE = float(os.environ.get("NOISE", "10"))  # allowance for a call, which passes through several threads
CODEC = b"org.apache.hadoop.hbase.codec.KeyValueCodec"
RESIDENT_MAX = MEMORY_MB * MB * 13 // 10
BACK_MAX = 24 * MB       # allowed growth of resident memory after the attackers have disconnected
BACK_SECONDS = 5
LATENCY_MAX = 0.1        # seconds, at the 99th percentile
WORST_MAX = 1            # seconds: a client that waits for the attack's end makes few calls meanwhile
STOP_SECONDS = 10
STAND_SECONDS = 4        # duration of an attack after its last byte was sent
FAMILY, QUALIFIER = b"f", b"q"
LARGE_BYTES = 5 * MB


def scaled(count):
    return max(1, int(count * SCALE))


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


# ---- peers that misbehave


class Deaf:
    """A connection that sends without waiting, and reads only on request."""

    def __init__(self, address, service="ClientService", codec=False, user=b"tester"):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.socket.connect((host, int(port)))
        version = b"".join(hbase.text(n, "2.6.1" if n == 1 else "") for n in range(1, 7))
        version += hbase.number(7, 2) + hbase.number(8, 6)
        head = hbase.text(1, hbase.text(1, user)) + hbase.text(2, service)
        head += (hbase.text(3, CODEC) if codec else b"") + hbase.text(5, version)
        self.out = b"HBas\0\x50" + struct.pack(">I", len(head)) + head
        self.last_id = 0
        self.socket.setblocking(False)

    def ask(self, method, message):
        self.last_id += 1
        head = hbase.number(1, self.last_id) + hbase.text(3, method) + hbase.number(4, 1)
        body = hbase.delimited(head) + hbase.delimited(message)
        self.out += struct.pack(">I", len(body)) + body

    def pump(self):
        """Sends as much as the server accepts. False: the server has closed the connection."""
        try:
            while self.out:
                self.out = self.out[self.socket.send(self.out[:1 << 18]):]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def read(self, count):
        try:
            return len(self.socket.recv(count))
        except BlockingIOError:
            return 0
        except OSError:
            return -1

    def close(self):
        self.socket.close()


def pump_all(peers, seconds):
    """Tries to send the rest for a limited time."""
    deadline = time.monotonic() + seconds
    left = [p for p in peers if p.out]
    while left and time.monotonic() < deadline:
        left = [p for p in left if p.pump() and p.out]
        select.select([], [], [], 0.02)


# ---- the bystander


def bystander(address, region, stop, pipe):
    """Puts, gets and scans one row; sends the duration of each call, the excess duration of its
    sleeps, both in seconds, and the problem, if any."""
    times, problem, overslept = {"put": [], "get": [], "scan": []}, None, []
    try:
        connection = hbase.Connection(address)
        connection.socket.settimeout(60)
        n = 0
        pipe.send("ready")
        while not stop.is_set():
            n += 1
            row, value = b"z-bystander", {(FAMILY, QUALIFIER): b"%d" % n}
            for name, work in (("put", lambda: connection.put(region, row, value)),
                               ("get", lambda: connection.get(region, row)),
                               ("scan", lambda: connection.scan(region, row, row + b"\0", 10))):
                began = time.monotonic()
                try:
                    work()
                except hbase.Refused as e:
                    problem = problem or f"{name}: {e}"
                times[name].append(time.monotonic() - began)
            began = time.monotonic()
            time.sleep(0.005)
            overslept.append(time.monotonic() - began - 0.005)
    except (OSError, EOFError, AssertionError) as e:
        problem = f"{type(e).__name__}: {e}"
    pipe.send((times, overslept, problem))


class Bystander:
    def __init__(self, address, region):
        self.stop = multiprocessing.Event()
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=bystander, args=(address, region, self.stop, other))
        self.process.start()
        assert self.pipe.recv() == "ready"

    def end(self):
        self.stop.set()
        times, overslept, problem = self.pipe.recv() if self.pipe.poll(70) else ({}, [0], "no answer for 70 s")
        self.process.kill()
        self.process.join()
        return times, percentile(overslept, 0.99), problem


def percentile(values, share):
    ordered = sorted(values) or [float("inf")]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# ---- the attacks


class Tests:
    def __init__(self, root, report):
        self.report = report
        self.server = rorqual.Server(root / "data", root / "log", "-D", f"rorqual.memory={MEMORY_MB}m",
                                     "-D", f"rorqual.loops={LOOPS}")
        client = hbase.Client(self.server)
        client.create("data", {"f": {}})
        client.create("large", {"f": {}})
        client.create("regions", {"f": {}}, [b"%04d" % n for n in range(1, 300)])
        self.data = client.regions("data")[0][1]
        self.large = client.regions("large")[0][1]
        self.fill(client)
        client.close()

    def fill(self, client):
        value = os.urandom(1000)
        for batch in range(60):
            rows = [(b"%06d" % (batch * 500 + n), {(FAMILY, QUALIFIER): value}) for n in range(500)]
            bad = {o for o in client.data.put_many(self.data, rows)} - {None}
            assert not bad, bad
        for n in range(4):
            client.data.put(self.large, b"%d" % n, {(FAMILY, QUALIFIER): os.urandom(LARGE_BYTES)})
        client.flush(self.data)
        client.flush(self.large)
        # From now on the block cache is full, so later growth of memory is not the cache's.
        client.data.scan(self.data, rows=2000)
        for n in range(4):
            client.data.get(self.large, b"%d" % n)

    def part(self, name, attack):
        if ONLY and name not in ONLY.split(","):
            return
        pid = self.server.process.pid
        before = status(pid, "VmRSS")
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        watcher = Bystander(self.server.regionserver, self.data)
        began = time.monotonic()
        peers = attack()
        for peer in peers:
            peer.close()
        del peers
        # Calls of the attackers must end, too; the bystander runs until memory has been released.
        deadline = time.monotonic() + BACK_SECONDS
        while time.monotonic() < deadline and status(pid, "VmRSS") > before + BACK_MAX // 2:
            time.sleep(0.1)
        after = status(pid, "VmRSS")
        took = time.monotonic() - began
        times, noise, problem = watcher.end()
        self.judge(name, (before, status(pid, "VmHWM"), after), took, times, noise, problem)

    def judge(self, name, resident, took, times, noise, problem):
        before, peak, after = resident
        slow = {what: percentile(t, 0.99) for what, t in times.items()}
        worst = {what: max(t, default=float("inf")) for what, t in times.items()}
        figures = ", ".join(f"{what} p99 {slow[what] * 1000:.0f} max {worst[what] * 1000:.0f} ms" for what in times)
        calls = sum(len(t) for t in times.values())
        print(f"     {name}: resident before {before // MB}, peak {peak // MB}, after {after // MB} MB; "
              f"{took:.1f} s, {calls} calls, {figures}; overslept {noise * 1000:.0f} ms", flush=True)
        if not problem and self.server.process.poll() is not None:
            problem = f"the server died; {self.server.tail()}"
        if not problem and peak > RESIDENT_MAX:
            problem = f"{peak // MB} MB resident, allowed {RESIDENT_MAX // MB}"
        if not problem and after > before + BACK_MAX:
            problem = f"{after // MB} MB resident {BACK_SECONDS} s after the attack, {before // MB} before"
        if not problem and max(slow.values()) > LATENCY_MAX + noise * NOISE:
            problem = f"a bystander waited: {figures}"
        if not problem and max(worst.values()) > WORST_MAX + noise * NOISE:
            problem = f"one call of a bystander waited: {figures}"
        self.report.outcome(f"unread: {name}", problem)

    def stand(self, peers, seconds=STAND_SECONDS):
        pump_all(peers, 30)
        time.sleep(seconds)
        return peers

    def peers(self, count, service="ClientService", address=None, **options):
        return [Deaf(address or self.server.regionserver, service, **options) for _ in range(scaled(count))]

    def scan_message(self, region=None):
        scan = hbase.number(17, 1 << 30) + hbase.number(10, 1 << 40)
        return (hbase.text(1, hbase.region(region or self.data)) + hbase.text(2, scan) +
                hbase.number(4, 1 << 30) + hbase.number(7, 1) + hbase.number(8, 1))

    def get_message(self, n):
        return hbase.text(1, hbase.region(self.large)) + hbase.text(2, hbase.text(1, b"%d" % (n % 4)))

    def calm(self):
        """No attack: measures the machine's own effect on the bystander."""
        return self.stand([])

    def scans(self):
        peer = Deaf(self.server.regionserver, codec=True)
        for _ in range(scaled(1000)):
            peer.ask("Scan", self.scan_message())
        return self.stand([peer])

    def scans_in_messages(self):
        """The previous attack, by a client that names no codec."""
        peer = Deaf(self.server.regionserver)
        for _ in range(scaled(1000)):
            peer.ask("Scan", self.scan_message())
        return self.stand([peer])

    def many_scans(self):
        peers = self.peers(1000, codec=True)
        for peer in peers:
            for _ in range(10):
                peer.ask("Scan", self.scan_message())
        return self.stand(peers)

    def many_calls(self):
        """As many small calls as connections may have in flight, none of which ends."""
        peers = self.peers(1000, codec=True)
        for peer in peers:
            for _ in range(1000):
                peer.ask("Scan", self.scan_message())
        return self.stand(peers)

    def large_gets(self):
        peers = self.peers(200, codec=True)
        for peer in peers:
            for n in range(20):
                peer.ask("Get", self.get_message(n))
        return self.stand(peers)

    def multis(self):
        peers = self.peers(100, codec=True)
        actions = b"".join(hbase.text(3, hbase.number(1, n) + hbase.text(3, hbase.text(1, b"%d" % (n % 4))))
                           for n in range(200))
        message = hbase.text(1, hbase.text(1, hbase.region(self.large)) + actions)
        for peer in peers:
            for _ in range(10):
                peer.ask("Multi", message)
        return self.stand(peers)

    def master_answers(self):
        """Descriptors of all tables and the state of a cluster of 300 regions."""
        peers = self.peers(100, "MasterService", self.server.master)
        for peer in peers:
            for _ in range(100):
                peer.ask("GetClusterStatus", b"")
                peer.ask("GetTableDescriptors", b"")
        return self.stand(peers)

    def admin_answers(self):
        peers = self.peers(200, "AdminService")
        for peer in peers:
            for _ in range(300):
                peer.ask("GetOnlineRegion", b"")
        return self.stand(peers)

    def exceptions(self):
        peers = self.peers(200)
        for peer in peers:
            for _ in range(300):
                peer.ask("Get", hbase.text(1, hbase.region(b"n" * 1000)) + hbase.text(2, hbase.text(1, b"r")))
        return self.stand(peers)

    def slow_readers(self):
        """Reads one byte per second; or a part of the response and then nothing."""
        peers = self.peers(200, codec=True)
        for n, peer in enumerate(peers):
            for _ in range(10):
                peer.ask("Get", self.get_message(n))
        pump_all(peers, 10)
        for second in range(STAND_SECONDS):
            for n, peer in enumerate(peers):
                peer.read(1 if n % 2 == 0 or second > 1 else 1 << 20)
            time.sleep(1)
        return peers

    def closers(self):
        """Peers that repeatedly disconnect in the middle of a response."""
        deadline = time.monotonic() + STAND_SECONDS
        while time.monotonic() < deadline:
            peers = self.peers(20, codec=True)
            for peer in peers:
                peer.ask("Scan", self.scan_message())
                peer.ask("Get", self.get_message(1))
            pump_all(peers, 5)
            for peer in peers:
                peer.read(10000)
                peer.close()
        return []

    def zookeeper(self):
        """Unread responses and events of the registry."""
        peers = []
        for _ in range(scaled(300)):
            peer = Deaf(self.server.zk)
            peer.out = struct.pack(">iiqiqi", 44, 0, 0, 30000, 0, 16) + bytes(16)
            path = b"/hbase/table"
            ask = struct.pack(">iii", 1, 12, len(path)) + path + b"\1"
            peer.out += (struct.pack(">i", len(ask)) + ask) * 20000
            peers.append(peer)
        return self.stand(peers)

    def user_names(self):
        peers = self.peers(1000, user=b"u" * 250_000)
        for peer in peers:
            peer.ask("Get", self.get_message(0)[:0])
        return self.stand(peers, 1)

    def half_headers(self):
        """Connection headers of 250 kB without their last byte."""
        peers = self.peers(1000, user=b"u" * 250_000)
        for peer in peers:
            peer.out = peer.out[:-1]
        return self.stand(peers, 1)

    def stop(self):
        """SIGTERM while attackers are connected."""
        if ONLY and "stop" not in ONLY.split(","):
            problem = self.server.stop()
            self.report.outcome("unread: stop", problem)
            return
        peers = self.peers(100, codec=True)
        for n, peer in enumerate(peers):
            for _ in range(20):
                peer.ask("Scan", self.scan_message())
                peer.ask("Get", self.get_message(n))
        self.stand(peers, 0.5)
        began = time.monotonic()
        problem = self.server.stop()
        took = time.monotonic() - began
        print(f"     stop: {took:.1f} s", flush=True)
        if not problem and took > STOP_SECONDS:
            problem = f"{took:.1f} s"
        self.report.outcome("unread: stop while peers hang", problem)


PARTS = ("calm", "scans", "scans_in_messages", "many_scans", "many_calls", "large_gets", "multis", "master_answers", "admin_answers",
         "exceptions", "slow_readers", "closers", "zookeeper", "user_names", "half_headers")


def main():
    report = rorqual.Report()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    with tempfile.TemporaryDirectory(prefix="rorqual-unread.") as scratch:
        tests = Tests(pathlib.Path(scratch), report)
        try:
            for name in PARTS:
                tests.part(name, getattr(tests, name))
        finally:
            tests.stop()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
