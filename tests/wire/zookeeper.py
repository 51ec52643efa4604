#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The registry over ZooKeeper's protocol, byte by byte: handshakes of clients 3.3 to 3.9, reads, watches that fire
once and are set again after a reconnect, unsupported operations. Ends with 'N passed, N failed'."""
import os
import pathlib
import socket
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # noqa: E402
import rorqual  # noqa: E402

EXISTS, GET_DATA, GET_CHILDREN, SYNC, PING, GET_CHILDREN2 = 3, 4, 8, 9, 11, 12
SET_WATCHES, CLOSE = 101, -11
OK, UNIMPLEMENTED, OPERATION_TIMEOUT, NO_NODE, NO_AUTH = 0, -6, -7, -101, -102
CREATED, DELETED, DATA, CHILDREN = 1, 2, 3, 4
TABLE = "/hbase/table/"
MEMORY_MAX = 200 << 20
BUDGET = 256 << 20
WATCH_BYTES = 100  # a watch is charged at least this many bytes, and all watches together at most WATCHES_BYTES
WATCHES_BYTES = BUDGET // 32


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(value)) + value


def texts(values):
    return struct.pack(">i", len(values)) + b"".join(text(v) for v in values)


class Session:
    """A client session: replies are returned; events are collected in `events` as (type, path)."""

    def __init__(self, address, session=0, password=bytes(16), zxid=0, read_only=True, receive_buffer=0, timeout=hbase.TIMEOUT):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        self.events, self.xid, self.zxid = [], 0, zxid
        # Clients before 3.4 neither send the last byte nor expect one.
        self.send(struct.pack(">iqiq", 0, zxid, 30000, session) + text(password) + (b"\0" if read_only else b""))
        answer = self.frame()
        self.timeout, self.session = struct.unpack(">iq", answer[4:16])
        self.password = answer[20:36]
        assert len(answer) == (37 if read_only else 36), len(answer)

    def send(self, body):
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def read(self, length):
        return hbase.read_exact(self.socket, length)

    def frame(self):
        return self.read(struct.unpack(">i", self.read(4))[0])

    def take(self):
        """One frame: None for an event, else (xid, error, body)."""
        body = self.frame()
        xid, zxid, error = struct.unpack(">iqi", body[:16])
        if xid == -1:
            assert zxid == -1 and error == 0
            kind, state, length = struct.unpack(">iii", body[16:28])
            assert state == 3 and length == len(body) - 28
            self.events.append((kind, body[28:].decode()))
            return None
        assert zxid >= self.zxid, f"zxid {zxid:x} after {self.zxid:x}"
        self.zxid = zxid
        return xid, error, body[16:]

    def call(self, op, body=b"", xid=None):
        if xid is None:
            self.xid += 1
            xid = self.xid
        self.send(struct.pack(">ii", xid, op) + body)
        while (answer := self.take()) is None:
            pass
        assert answer[0] == xid, answer
        return answer[1:]

    def watch(self, op, path):
        return self.call(op, text(path) + b"\1")

    def event(self):
        """Waits for the next event."""
        while not self.events:
            assert self.take() is None
        return self.events.pop(0)

    def nothing(self):
        """Checks that no event has arrived, and that none arrives before the response to a ping."""
        assert self.call(PING, xid=-2) == (OK, b"")
        assert not self.events, self.events

    def close(self):
        self.socket.close()


class World:
    def __init__(self, server):
        self.server = server
        self.client = hbase.Client(server)

    def session(self, **arguments):
        return Session(self.server.zk, **arguments)

    def create(self, table):
        self.client.create(table, {"f": {}})

    def change(self, method, table):
        answer = self.client.master.call(method, hbase.text(1, hbase.table_name(table)))
        self.client.procedure(answer[1][0])

    def disable(self, table):
        self.change("DisableTable", table)

    def enable(self, table):
        self.change("EnableTable", table)

    def drop(self, table):
        self.disable(table)
        self.change("DeleteTable", table)


def handshakes(w):
    for read_only in (True, False):
        z = w.session(read_only=read_only)
        assert z.session != 0 and 4000 <= z.timeout <= 90000
        assert z.call(GET_DATA, text("/hbase/hbaseid") + b"\0")[0] == OK
        again = w.session(session=z.session, password=z.password, zxid=z.zxid, read_only=read_only)
        assert (again.session, again.password) == (z.session, z.password)
        again.nothing()
        forged = w.session(session=z.session, password=b"x" * 16, read_only=read_only)
        assert forged.session == 0 and forged.timeout == 0
        assert forged.socket.recv(1) == b""


def operations(w):
    z = w.session()
    for op in (9999, 14, 16, 106, -1):
        assert z.call(op, text("/hbase")) == (UNIMPLEMENTED, b""), op
    assert z.call(GET_DATA, text("/hbase/none") + b"\0") == (NO_NODE, b"")
    for op in (1, 2, 5, 7, 15):
        assert z.call(op, text("/hbase/x"))[0] == NO_AUTH, op
    assert z.call(SYNC, text("/hbase")) == (OK, text("/hbase"))
    assert z.call(CLOSE) == (OK, b"")
    assert z.socket.recv(1) == b""


def data_watch(w):
    w.create("zdata")
    z = w.session()
    assert z.watch(GET_DATA, TABLE + "zdata")[0] == OK
    z.nothing()
    w.disable("zdata")
    assert z.event() == (DATA, TABLE + "zdata")
    w.enable("zdata")
    w.create("zother")
    assert z.call(GET_DATA, text(TABLE + "zdata") + b"\0")[0] == OK
    z.nothing()


def created_and_deleted(w):
    z = w.session()
    assert z.watch(EXISTS, TABLE + "znew") == (NO_NODE, b"")
    w.create("znew")
    assert z.event() == (CREATED, TABLE + "znew")
    # Two watches of the same kind on one node cause one event, as in ZooKeeper.
    assert z.watch(EXISTS, TABLE + "znew")[0] == OK
    assert z.watch(GET_DATA, TABLE + "znew")[0] == OK
    w.disable("znew")
    assert z.event() == (DATA, TABLE + "znew")
    z.nothing()
    assert z.watch(EXISTS, TABLE + "znew")[0] == OK
    w.change("DeleteTable", "znew")
    assert z.event() == (DELETED, TABLE + "znew")
    z.nothing()


def children_watch(w):
    for op in (GET_CHILDREN, GET_CHILDREN2):
        z = w.session()
        assert z.watch(op, "/hbase/table")[0] == OK
        w.create("zchild")
        assert z.event() == (CHILDREN, "/hbase/table")
        w.drop("zchild")
        z.nothing()


def events_before_answers(w):
    """No client sees a new state before the event about it."""
    w.create("zorder")
    for i in range(20):
        z = w.session()
        before = z.watch(GET_DATA, TABLE + "zorder")[1]
        (w.enable if i % 2 else w.disable)("zorder")
        after = z.call(GET_DATA, text(TABLE + "zorder") + b"\0")[1]
        assert before[:before.index(b"PBUF") + 6] != after[:before.index(b"PBUF") + 6]
        assert z.events == [(DATA, TABLE + "zorder")], z.events
        z.close()


def set_again(w):
    """Watches on nodes that changed while the client was disconnected fire at once, the others at the next change."""
    w.create("zaway")
    z = w.session()
    for op, path in ((GET_DATA, TABLE + "zaway"), (GET_CHILDREN, "/hbase/table"), (GET_DATA, "/hbase/master"),
                     (GET_CHILDREN, "/hbase/rs"), (EXISTS, TABLE + "zlater")):
        z.watch(op, path)
    z.nothing()
    z.close()
    w.disable("zaway")

    def again(old):
        new = w.session(session=old.session, password=old.password, zxid=old.zxid)
        assert new.session == old.session
        body = struct.pack(">q", old.zxid) + texts([TABLE + "zaway", "/hbase/master"])
        body += texts([TABLE + "zlater"]) + texts(["/hbase/table", "/hbase/rs"])
        assert new.call(SET_WATCHES, body, xid=-8) == (OK, b"")
        return new

    z = again(z)
    assert (DATA, TABLE + "zaway") in z.events, z.events
    assert all(path.startswith("/hbase/table") for _, path in z.events), z.events
    # Nothing has changed since: all watches are set again, and none fires.
    z.close()
    z = again(z)
    z.nothing()
    w.create("zlater")
    got = {z.event(), z.event()}
    assert got == {(CREATED, TABLE + "zlater"), (CHILDREN, "/hbase/table")}, got
    w.change("DeleteTable", "zaway")
    assert z.event()[1] == TABLE + "zaway"
    z.nothing()


def zxids_grow(w):
    z = w.session()
    seen = []
    for i in range(3):
        w.create(f"zgrow{i}")
        z.nothing()
        seen.append(z.zxid)
    assert seen[0] < seen[1] < seen[2], seen


def memory(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) << 10


def answers_nobody_reads(w):
    z = w.session()
    z.socket.settimeout(1)
    body = struct.pack(">ii", 1, SYNC) + text(b"/" * 1000000)
    try:
        for _ in range(600):
            z.send(body)
    except socket.timeout:
        pass  # the server has stopped reading
    used = memory(w.server)
    z.close()
    assert used < MEMORY_MAX, f"{used >> 20} MiB"


def answers_read_late(w):
    """Requests that wait while responses are unread are answered in order once these are read."""
    z = w.session(receive_buffer=20000)
    path = text(b"/" * 300000)
    for i in range(20):
        z.send(struct.pack(">ii", i, SYNC) + path)
    small = b"".join(struct.pack(">iii", 18, 20 + i, SYNC) + text("/hbase") for i in range(500))
    z.socket.sendall(small)
    for i in range(20):
        assert z.take() == (i, OK, path), i
    for i in range(500):
        assert z.take() == (20 + i, OK, text("/hbase")), i


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch_many(z, prefix, count):
    """Sets watches on absent nodes; returns the number accepted before the first refusal."""
    for i in range(count):
        z.send(struct.pack(">ii", i, EXISTS) + text(f"{prefix}{i:06d}") + b"\1")
    errors = [z.take()[1] for _ in range(count)]
    taken = errors.index(OPERATION_TIMEOUT) if OPERATION_TIMEOUT in errors else count
    assert set(errors[:taken]) <= {NO_NODE} and set(errors[taken:]) <= {OPERATION_TIMEOUT}, set(errors)
    return taken


def watches_have_a_total(w):
    """One connection may use half of the memory, the next half of the rest; closing releases it."""
    for _ in range(2):
        first, second = w.session(), w.session()
        most = watch_many(first, "/hbase/none", WATCHES_BYTES // WATCH_BYTES)
        assert 1000 < most < WATCHES_BYTES // WATCH_BYTES // 2, most
        assert first.call(GET_DATA, text("/hbase/hbaseid") + b"\0")[0] == OK
        others = watch_many(second, "/hbase/none", most)
        assert most // 3 < others < most, (most, others)
        third = w.session()  # a client that needs few watches still gets them
        assert watch_many(third, TABLE + "some", 50) == 50
        for z in (first, second, third):
            assert z.call(CLOSE) == (OK, b"")
            assert z.socket.recv(1) == b""


def watches_cost_no_more_for_being_many(w):
    def cost(count):
        began = cpu_seconds(w.server)
        for _ in range(9600 // count):
            z = w.session()
            assert watch_many(z, "/hbase/table/none", count) == count
            assert z.call(CLOSE) == (OK, b"")
            assert z.socket.recv(1) == b""
        return cpu_seconds(w.server) - began

    few = cost(300)
    many = cost(9600)
    assert many < 4 * few + 0.2, f"9600 watches: {few:.2f} s of a processor by 300, {many:.2f} s at once"


def ends_with(w, requests):
    """Whether the connection is closed for these lists of absent nodes, each of a request that sets watches again."""
    z = w.session()
    z.socket.settimeout(hbase.TIMEOUT)
    try:
        for paths in requests:
            z.send(struct.pack(">ii", -8, SET_WATCHES) + struct.pack(">q", z.zxid) + texts([]) + texts(paths) + texts([]))
            z.take()
    except (ConnectionError, EOFError, OSError):
        return True
    z.close()
    return False


SET_AGAIN_MAX = 16384


def setting_too_many_again_ends_the_connection(w):
    lists = [[f"/hbase/none{n}-{i:06d}" for i in range(SET_AGAIN_MAX)] for n in range(4)]
    assert sum(map(len, lists)) * WATCH_BYTES > WATCHES_BYTES // 2
    assert not ends_with(w, lists[:1])
    assert ends_with(w, lists)
    assert ends_with(w, [lists[0] + ["/hbase/none"]])
    z = w.session()
    assert z.watch(EXISTS, "/hbase/none")[0] == NO_NODE


def unfinished_requests_have_a_total(w):
    """Frames of 1 MB without their last byte."""
    before = memory(w.server)
    open_ones = []
    for _ in range(100):
        z = w.session()
        try:
            z.socket.sendall(struct.pack(">i", 1 << 20) + bytes((1 << 20) - 1))
        except OSError:
            pass  # closed for lack of memory
        open_ones.append(z)
    other = w.session()
    assert other.call(GET_DATA, text("/hbase/hbaseid") + b"\0")[0] == OK
    used = memory(w.server) - before
    for z in open_ones:
        z.close()
    assert used < 20 << 20, f"{used >> 20} MiB"


def a_byte_behind_a_large_request_holds_little(w):
    """Connections that have sent a request of 900 kB and the beginning of another one."""
    body = struct.pack(">ii", 1, SYNC) + text(b"/" * 900000)
    frame = struct.pack(">i", len(body)) + body
    z = w.session()
    z.send(body)  # memory that such a request needs while it is served is not counted below
    assert z.take() is not None
    before = memory(w.server)
    sessions = []
    for _ in range(200):
        z = w.session()
        z.socket.sendall(frame[:-1])
        z.socket.sendall(frame[-1:] + b"\0")
        assert z.take() is not None
        sessions.append(z)
    used = memory(w.server) - before
    for z in sessions:
        z.close()
    assert used < 40 << 20, f"{used >> 20} MiB"


def many_that_do_not_read(w):
    """The sum of the unread responses of many connections is limited, too."""
    before = memory(w.server)
    sessions = []
    body = struct.pack(">ii", 1, SYNC) + text(b"/" * 60000)
    requests = memoryview((struct.pack(">i", len(body)) + body) * 100)
    for _ in range(500):
        z = w.session(receive_buffer=8192)
        z.socket.setblocking(False)
        rest = requests
        try:
            while rest:
                rest = rest[z.socket.send(rest):]
        except OSError:
            pass
        sessions.append(z)
    other = w.session()
    for _ in range(50):
        assert other.call(GET_DATA, text("/hbase/hbaseid") + b"\0")[0] == OK
    used = memory(w.server) - before
    for z in sessions:
        z.close()
    # Besides the unread bytes each of the 500 streams has a buffer or two.
    assert used < BUDGET // 8 * 5 // 4 + (80 << 20), f"{used >> 20} MiB"


TESTS = (handshakes, operations, data_watch, created_and_deleted, children_watch, events_before_answers, set_again,
         zxids_grow, answers_nobody_reads, answers_read_late, watches_have_a_total,
         watches_cost_no_more_for_being_many, setting_too_many_again_ends_the_connection,
         unfinished_requests_have_a_total, a_byte_behind_a_large_request_holds_little, many_that_do_not_read)


def main():
    if not os.access(rorqual.BINARY, os.X_OK):
        print(f"{rorqual.BINARY} is not built")
        return 77
    report = rorqual.Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-zk-") as folder:
        server = rorqual.Server(pathlib.Path(folder) / "data", pathlib.Path(folder) / "log",
                                "-D", f"rorqual.memory={BUDGET}")
        w = World(server)
        for test in TESTS:
            try:
                test(w)
                report.outcome(test.__name__)
            except (AssertionError, OSError, EOFError, ValueError, struct.error, hbase.Refused) as e:
                report.outcome(test.__name__, f"{type(e).__name__} {e} (line {e.__traceback__.tb_next.tb_lineno})")
        w.client.close()
        report.outcome("stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
