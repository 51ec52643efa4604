#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Malformed input on each port of a started server: truncated, oversized, random, slow, closed in mid-frame.

After each kind the server must still serve every port and use little memory, and at the end stop with
status 0. The requests are encoded here, because no client library would send them.
"""
import os
import pathlib
import random
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import delimited, number, read_varint, text, varint  # pylint: disable=wrong-import-position

LIMIT = 1 << 20  # the server under test's hbase.ipc.max.request.size
MEMORY_MAX = 300 << 20
TIMEOUT = 300  # seconds; only for calls that hang
NO_CALL = 0xFFFFFFFF
HB = "org.apache.hadoop.hbase."

# ---- a minimal protobuf


def frame(body):
    return struct.pack(">I", len(body)) + body


def fields(data):
    """{field number: its last value}"""
    return {n: values[-1] for n, values in hbase.fields(data).items()}


# ---- the protocol


def header(service="ClientMetaService"):
    return frame(text(1, text(1, "tester")) + text(2, service) +
                 text(5, b"".join(text(n, "2.6.1" if n == 1 else "") for n in range(1, 7))))


def request(call_id, method="GetClusterId", param=b""):
    return frame(delimited(number(1, call_id) + text(3, method) + number(4, 1)) + delimited(param))


def padded_request(call_id, length):
    """A GetClusterId whose frame body is padded to `length` bytes by an unknown field."""
    for pad in range(length - 60, length):
        made = request(call_id, param=text(1000, bytes(pad)))
        if len(made) - 4 == length:
            return made
    raise AssertionError(f"no request of {length} bytes")


HELLO = b"HBas\0\x50" + header()


class Connection:
    def __init__(self, address, first=b""):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(first)

    def send(self, data):
        self.socket.sendall(data)

    def read(self, length):
        return hbase.read_exact(self.socket, length)

    def answer(self):
        """(call id, exception class or None, message bytes or stack trace)"""
        body = self.read(struct.unpack(">I", self.read(4))[0])
        length, at = read_varint(body, 0)
        head = fields(body[at:at + length])
        if 2 in head:
            exception = fields(head[2])
            return head.get(1), exception[1].decode(), exception[2].decode()
        return head.get(1), None, body[at + length:]

    def ends(self):
        """True if the server closes the connection without sending another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def try_send(connection, data):
    try:
        connection.send(data)
    except OSError:
        pass  # the server has closed the connection


def zookeeper_session(address):
    connection = Connection(address)
    connection.send(frame(struct.pack(">iqiqi", 0, 0, 30000, 0, 16) + bytes(16) + b"\0"))
    connection.read(struct.unpack(">I", connection.read(4))[0])
    return connection


def cluster_id_by_zookeeper(address):
    with zookeeper_session(address) as z:
        path = b"/hbase/hbaseid"
        z.send(frame(struct.pack(">iii", 1, 4, len(path)) + path + b"\0"))
        reply = z.read(struct.unpack(">I", z.read(4))[0])
        return reply[reply.index(b"PBUF") + 6:][:36]


def cluster_id_by_rpc(address):
    with Connection(address, HELLO + request(7)) as c:
        call_id, exception, body = c.answer()
        assert (call_id, exception) == (7, None), (call_id, exception, body)
        length, at = read_varint(body, 0)
        return fields(body[at:at + length])[1]


# ---- the tests; each gets the server and a port's address


def random_bytes(server, address, rng):
    del server
    for _ in range(150):
        with Connection(address) as c:
            try_send(c, rng.randbytes(rng.randrange(2000)))


def random_behind_a_good_beginning(server, address, rng):
    del server
    for _ in range(150):
        with Connection(address, HELLO) as c:
            body = rng.randbytes(rng.randrange(1, 500))
            try_send(c, frame(body) if rng.random() < 0.7 else body)


def flipped_bits(server, address, rng):
    del server
    good = HELLO + request(1) + request(2, "NoSuchMethod") + request(3)
    for _ in range(200):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        with Connection(address) as c:
            try_send(c, bytes(bad))
            c.socket.shutdown(socket.SHUT_WR)
            c.socket.settimeout(5)
            try:
                while c.socket.recv(65536):
                    pass
            except (ConnectionResetError, socket.timeout):
                pass


def cut_anywhere(server, address, rng):
    del server, rng
    good = HELLO + request(1)
    for length in range(len(good)):
        with Connection(address) as c:
            c.send(good[:length])


def huge_lengths(server, address, rng):
    """Hundreds of frames of which only the length is sent: memory must depend on the bytes received, not on the
    announced lengths."""
    del rng
    held = []
    for announced in (LIMIT, 1 << 28, (1 << 31) - 1, (1 << 32) - 1):
        for _ in range(40):
            c = Connection(address)
            try_send(c, HELLO + struct.pack(">I", announced) + b"\1")
            held.append(c)
    time.sleep(0.2)
    used = memory(server)
    for c in held:
        c.close()
    assert used < MEMORY_MAX, f"{used >> 20} MiB"


def many_half_open(server, address, rng):
    del server, rng
    held = [Connection(address, b"HBa") for _ in range(200)]
    time.sleep(0.2)
    for c in held:
        c.close()


def byte_by_byte(server, address, rng):
    del server, rng
    with Connection(address) as c:
        for byte in HELLO + request(1) + request(2):
            c.send(bytes([byte]))
        assert [c.answer()[0], c.answer()[0]] == [1, 2]


def pipelined(server, address, rng):
    del server, rng
    with Connection(address, HELLO + b"".join(request(i) for i in range(3000))) as c:
        assert sorted(c.answer()[0] or 0 for _ in range(3000)) == list(range(3000))


def around_the_limit(server, address, rng):
    del server, rng
    for length in (LIMIT - 1, LIMIT):
        with Connection(address, HELLO + padded_request(5, length) + request(6)) as c:
            # A large message is decoded on a pool: the next call may overtake it.
            assert sorted(c.answer()[:2] for _ in range(2)) == [(5, None), (6, None)]
    with Connection(address, HELLO + padded_request(5, LIMIT + 1)) as c:
        call_id, exception, message = c.answer()
        assert (call_id, exception) == (5, HB + "exceptions.RequestTooBigException"), exception
        assert f"RPC data length of {LIMIT + 1}" in message, message
        assert c.ends()


def preambles(server, address, rng):
    del server, rng
    with Connection(address, b"Securi") as c:
        call_id, exception, _ = c.answer()
        assert (call_id, exception) == (NO_CALL, HB + "ipc.SecurityNotEnabledException")
        c.send(HELLO + request(1))
        assert c.answer()[:2] == (1, None)
    with Connection(address, b"Regist") as c:
        call_id, exception, _ = c.answer()
        assert (call_id, exception) == (NO_CALL, None)
        assert c.ends()
    for preamble, name in ((b"GET / HTTP/1.1\r\n", "FatalConnectionException"),
                           (b"HBas\1\x50", "WrongVersionException"),
                           (b"HBas\0\x01", "BadAuthException")):
        with Connection(address, preamble) as c:
            assert c.answer()[:2] == (NO_CALL, HB + "ipc." + name)
            assert c.ends()


def unknown_names(server, address, rng):
    del server, rng
    with Connection(address, b"HBas\0\x50" + header("NoService")) as c:
        assert c.answer()[:2] == (NO_CALL, HB + "ipc.UnknownServiceException")
        assert c.ends()
    with Connection(address, HELLO + request(1, "NoMethod") + request(2)) as c:
        call_id, exception, message = c.answer()
        assert (call_id, exception) == (1, HB + "DoNotRetryIOException")
        assert "java.lang.UnsupportedOperationException: NoMethod" in message
        assert c.answer()[:2] == (2, None)


def zookeeper_chaos(server, address, rng):
    """Valid handshakes followed by malformed requests; malformed handshakes."""
    del server
    for _ in range(100):
        with Connection(address) as c:
            try_send(c, frame(rng.randbytes(rng.randrange(60))))
    for _ in range(100):
        with zookeeper_session(address) as z:
            body = struct.pack(">ii", rng.randrange(1 << 31), rng.choice([1, 3, 4, 8, 12, 101, 9999]))
            try_send(z, frame(body + rng.randbytes(rng.randrange(80))))
    for announced in (0, 1, (1 << 31) - 1, (1 << 32) - 1):
        with Connection(address) as c:
            try_send(c, struct.pack(">I", announced) + b"xx")


EVERY_PORT = (random_bytes, huge_lengths, many_half_open)
RPC_PORTS = (random_behind_a_good_beginning, flipped_bits, cut_anywhere, byte_by_byte, pipelined,
             around_the_limit, preambles, unknown_names)

# ---- running them


def memory(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines()
                    if line.startswith("VmRSS"))) << 10


def check_alive(server, cluster_id):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    for address in (server.master, server.regionserver):
        assert cluster_id_by_rpc(address) == cluster_id
    assert cluster_id_by_zookeeper(server.zk) == cluster_id


def run(report, server, cluster_id, name, test, address):
    try:
        test(server, address, random.Random(name))
        check_alive(server, cluster_id)
        report.outcome(name)
    except (AssertionError, OSError, EOFError, ValueError) as e:
        report.outcome(name, f"{type(e).__name__} {e}")


def main():
    if not os.access(rorqual.BINARY, os.X_OK):
        print(f"{rorqual.BINARY} is not built")
        return 77
    report = rorqual.Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-wire-") as folder:
        server = rorqual.Server(pathlib.Path(folder) / "data", pathlib.Path(folder) / "log",
                                "-D", f"hbase.ipc.max.request.size={LIMIT}")
        cluster_id = cluster_id_by_rpc(server.master)
        ports = (("master", server.master), ("regionserver", server.regionserver))
        for port, address in ports + (("zookeeper", server.zk),):
            for test in EVERY_PORT:
                run(report, server, cluster_id, f"{test.__name__} {port}", test, address)
        for port, address in ports:
            for test in RPC_PORTS:
                run(report, server, cluster_id, f"{test.__name__} {port}", test, address)
        run(report, server, cluster_id, "zookeeper_chaos", zookeeper_chaos, server.zk)
        open_at_the_end = Connection(server.master, HELLO)
        report.outcome("stops cleanly", server.stop())
        open_at_the_end.close()
        if report.failed:
            print(pathlib.Path(folder, "log").read_text(encoding="utf-8", errors="replace")[-3000:])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
