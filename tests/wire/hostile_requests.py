#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that once harmed a server, found by the fuzzer over the wire (fuzz/wire): no request may stop the
server, block its loops, or prevent its next start."""
import os
import pathlib
import socket
import struct
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import fields, number, text  # pylint: disable=wrong-import-position


def answer_of(call_it, *arguments):
    """The response's fields, or the exception's class."""
    try:
        return call_it(*arguments)
    except hbase.Refused as e:
        return e.name


def table(client, name, attributes=None):
    client.create(name, {"f": attributes or {}})
    return client.regions(name)[0][1]


def cell(qualifier, value, tags=b""):
    return text(1, qualifier) + text(2, value) + (text(5, tags) if tags else b"")


def put(region, row, *cells):
    return text(1, hbase.region(region)) + \
        text(2, text(1, row) + number(2, hbase.PUT) + text(3, text(1, b"f") + b"".join(text(2, c) for c in cells)))


def forget(server):
    """Drops the store files from the page cache."""
    for file in server.data.glob("data/default/*/*/f/*"):
        with open(file, "rb") as f:
            os.fdatasync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cpu_seconds(server):
    stat = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def peak_kb(server):
    """The highest resident memory so far."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


# ---- the tests: each gets the server, and returns it or, after a restart, its successor


def tags_that_are_none(server, restart):
    """Malformed tags, which could neither be written to a file with compressed tags nor read back from the log."""
    client = hbase.Client(server)
    region = table(client, "tags", {"DATA_BLOCK_ENCODING": "FAST_DIFF"})
    client.data.call("Mutate", put(region, b"good", cell(b"q", b"v", b"\0\2\x41x")))
    for tags in (b"\xa8\xd7", b"\0\0", b"\0", b"\0\3\x41x", b"\0\2\x41x\0\2\x41"):
        assert answer_of(client.data.call, "Mutate", put(region, b"row", cell(b"q", b"v", tags))) == \
            "DoNotRetryIOException", tags
    server = restart(server)
    client = hbase.Client(server)
    assert set(client.data.scan(region)) == {b"good"}
    client.flush(region)
    client.close()
    return server


def long_requests_without_their_fields(server, restart):
    """Region actions without a region: names of missing fields are searched on the loop if the request is short, on a pool if it is long."""
    del restart
    client = hbase.Client(server)
    region = table(client, "missing")
    for count in (1, 8191, 8193, 200000):
        try:
            client.data.call("Multi", text(1, b"") * count)
            raise AssertionError("it was accepted")
        except hbase.Refused as e:
            assert e.name.endswith("protobuf.UninitializedMessageException"), e
            assert "Message missing required fields: regionAction[0].region" in e.trace and len(e.trace) < 2000, e.trace
        try:
            client.data.call("Multi", text(1, b"") * count + b"\xff")
            raise AssertionError("it was accepted")
        except hbase.Refused as e:
            assert e.name.endswith("protobuf.InvalidProtocolBufferException"), e
    client.data.put(region, b"row", {(b"f", b"q"): b"v"})
    client.close()
    return server


def peer_that_reads_late(server, restart):
    """Responses whose message ends a full buffer and whose cells begin the next one."""
    del restart
    client = hbase.Client(server)
    region = table(client, "late")
    for n in range(50):
        client.data.put(region, b"row%02d" % n, {(b"f", b"q%d" % i): b"v" * (n + i) for i in range(3)})
    head = text(1, text(1, "tester")) + text(2, "ClientService") + \
        text(3, "org.apache.hadoop.hbase.codec.KeyValueCodec")
    late = hbase.Connection.__new__(hbase.Connection)
    late.last_id = 0
    host, port = server.regionserver.rsplit(":", 1)
    late.socket = socket.socket()
    # Small, but larger than a segment of the loopback device: with a smaller buffer each window waits for the sender's
    # persist timer (200 ms or more), and the responses could take minutes.
    late.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    late.socket.connect((host, int(port)))
    late.socket.sendall(b"HBas\0\x50" + struct.pack(">I", len(head)) + head)
    late.input = late.socket.makefile("rb", 1 << 16)
    count = 20000
    scan = text(1, hbase.region(region)) + text(2, number(17, 1)) + number(4, 1) + number(5, 1)
    sender = threading.Thread(target=lambda: [late.send("Scan", scan) for _ in range(count)])
    sender.start()
    time.sleep(0.5)  # waits until the kernel's buffers are full of responses
    for _ in range(count):
        answer = late.receive()[1]
        assert not isinstance(answer, hbase.Refused), answer
    sender.join()
    late.close()
    assert len(client.data.scan(region)) == 50
    client.close()
    return server


def patterns_of_table_names(server, restart):
    """A regular expression that never ends must not delay others, and must be refused."""
    del restart
    client = hbase.Client(server)
    table(client, "a" * 200)
    region = table(client, "beside")
    for pattern in ("((a{0,30}){0,30}){0,30}b", "(a+)+[bc]"):
        for method, message in (("GetTableNames", text(1, pattern)), ("GetTableDescriptors", text(2, pattern))):
            begun = cpu_seconds(server)
            call = client.master.send(method, message)
            client.data.put(region, b"row", {(b"f", b"q"): b"v"})
            answered, answer = client.master.receive()
            took = cpu_seconds(server) - begun
            # Without a limit the search would take years.
            assert answered == call and took < 20, f"{pattern}: {took:.1f} s of a processor"
            assert isinstance(answer, hbase.Refused) and answer.name == "DoNotRetryIOException", (pattern, answer)
    assert len(client.master.call("GetTableNames", text(1, "(a|b)(a+|eside)"))[1]) == 2
    client.close()
    return server


def sums_of_numbers_with_many_digits(server, restart):
    """Numbers of five bytes with 20,000 digits, in one row: adding them takes seconds, during which other clients are
    served."""
    del restart
    client, other = hbase.Client(server), hbase.Client(server)
    client.create("digits", {"f": {}}, values={"coprocessor$1": "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1|"})
    region = client.regions("digits")[0][1]
    client.data.put(region, b"row", {(b"f", b"%05d" % i): struct.pack(">ib", -20000, 1) for i in range(1000)})
    scan = text(1, text(1, b"f"))
    message = text(1, "org.apache.hadoop.hbase.client.coprocessor.BigDecimalColumnInterpreter") + text(2, scan)
    called = text(1, b"") + text(2, "AggregateService") + text(3, "GetSum") + text(4, message)
    call = client.data.send("ExecService", text(1, hbase.region(region)) + text(2, called))
    client.data.socket.setblocking(False)
    gets = 0
    while True:
        other.data.get(region, b"none")
        try:
            client.data.socket.recv(1, socket.MSG_PEEK)
            break
        except BlockingIOError:
            gets += 1
    client.data.socket.setblocking(True)
    answered, answer = client.data.receive()
    assert answered == call and not isinstance(answer, hbase.Refused), answer
    assert gets >= 20, f"{gets} gets were served while the numbers were added up"
    client.close()
    other.close()
    return server


def increments_of_rows_that_are_on_disk(server, restart):
    """Several requests that arrive at once, each of which waits for a block."""
    client = hbase.Client(server)
    region = table(client, "cold", {"BLOCKSIZE": "1024"})
    rows = [b"row%04d" % n for n in range(400)]
    client.data.put_many(region, [(row, {(b"f", b"q"): (7).to_bytes(8, "big"), (b"f", b"v"): b"v" * 900}) for row in rows])
    client.flush(region)
    client.close()
    server = restart(server)
    forget(server)
    client = hbase.Client(server)
    frames = b""
    for n, row in enumerate(rows):
        mutation = text(1, row) + number(2, 1) + text(3, text(1, b"f") + text(2, cell(b"q", (1).to_bytes(8, "big"))))
        body = hbase.delimited(number(1, n) + text(3, "Mutate") + number(4, 1)) + \
            hbase.delimited(text(1, hbase.region(region)) + text(2, mutation))
        frames += struct.pack(">I", len(body)) + body
    client.data.socket.sendall(frames)
    for _ in rows:
        answer = client.data.receive()[1]
        assert not isinstance(answer, hbase.Refused), answer
        assert hbase.result_cells(answer[1][0]) == {(b"f", b"q"): (8).to_bytes(8, "big")}, answer
    client.close()
    return server


def calls_that_wait_for_procedures(server, restart):
    """A thousand calls each of which waits for a procedure: they must not occupy all threads on which procedures run. Calls that arrive
    faster than procedures end, and exceed the connection's share of the memory for procedures, are refused with a retryable exception."""
    del restart
    client = hbase.Client(server)
    name = table(client, "waits")
    client.data.put_many(name, [(b"row%02d" % n, {(b"f", b"q"): b"v"}) for n in range(20)])
    client.flush(name)
    client.admin.call("CompactionSwitch", number(1, 0))  # keeps the split region's files in use
    client.split("waits", b"row10")
    regions = client.regions("waits")
    flush = text(1, text(1, "flush-table-proc") + text(2, "waits"))
    for service, method, message in (("MasterService", "RunCatalogScan", b""), ("MasterService", "ExecProcedure", flush),
                                     ("AdminService", "FlushRegion", text(1, hbase.region(regions[-1][1])))):
        many = hbase.Connection(server.master if service == "MasterService" else server.regionserver, service)
        count = 1000
        for _ in range(count):
            many.send(method, message)
        client.create("beside" + method, {"f": {}})
        threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
        assert threads < 100, f"{method}: {threads} threads"
        answers = [many.receive()[1] for _ in range(count)]
        refused = [answer.name for answer in answers if isinstance(answer, hbase.Refused)]
        assert set(refused) <= {"CallQueueTooBigException"} and len(refused) < count, f"{method}: {len(refused)} refused, {set(refused)}"
        many.close()
    client.admin.call("CompactionSwitch", number(1, 1))
    client.close()
    return server


def gets_of_a_batch_that_need_scanners(server, restart):
    """Forty thousand gets in 680 kB, each of which needs a scanner (because of a store limit): memory for one scanner
    at a time suffices."""
    del restart
    count, most_kb = 40000, 100 << 10
    client = hbase.Client(server)
    region = table(client, "scanners")
    client.data.call("Mutate", put(region, b"row", cell(b"q", b"v")))
    get = text(1, b"row") + number(8, 1)
    before = peak_kb(server)
    answer = client.data.call("Multi", text(1, text(1, hbase.region(region)) +
                                            b"".join(text(3, number(1, n) + text(3, get)) for n in range(count))))
    assert hbase.multi_outcomes(answer, count) == [None] * count
    grown = peak_kb(server) - before
    assert grown < most_kb, f"{grown} kB for {count} gets"
    client.close()
    return server


def rows_larger_than_memory_allows(server, restart):
    """A row in one response may take three eighths of rorqual.memory; a scan with partial results has no such limit."""
    del restart
    client = hbase.Client(server)
    region = table(client, "wide")
    value = b"v" * (4 << 20)
    for n in range(24):
        client.data.put(region, b"wide", {(b"f", b"q%02d" % n): value})
    for n in range(5):
        client.data.put(region, b"x", {(b"f", b"q%02d" % n): value})
    before = peak_kb(server)
    assert answer_of(client.data.get, region, b"wide") == "client.RowTooBigException"
    assert len(client.data.get(region, b"x")) == 5
    whole = text(1, hbase.region(region)) + text(2, text(3, b"") + number(17, 10)) + number(4, 10)
    assert answer_of(client.data.call, "Scan", whole) == "client.RowTooBigException"
    answer = client.data.call("Scan", whole + number(7, 1))
    cells = sum(len(fields(result).get(1, [])) for result in answer.get(5, []))
    while cells < 29:
        answer = client.data.call("Scan", number(3, answer.get(2, [0])[0]) + number(4, 10) + number(7, 1))
        cells += sum(len(fields(result).get(1, [])) for result in answer.get(5, []))
    grown = peak_kb(server) - before
    assert grown < (120 << 10), f"{grown} kB"
    client.close()
    return server


def locks_leave_room_for_procedures(server, restart):
    """A client that requests locks endlessly, and releases none, does not prevent the DDL of others."""
    del restart
    client = hbase.Client(server)
    many = hbase.Connection(server.master, "LockService")
    count = 3000
    for n in range(count):
        many.send("RequestLock", number(1, 1) + text(2, "ns%d" % n) + text(5, "d" * 200) + number(6, 1) + number(7, n + 1))
    client.create("beside_locks", {"f": {}})
    names = [answer.name if isinstance(answer, hbase.Refused) else None for answer in (many.receive()[1] for _ in range(count))]
    assert set(names) == {None, "CallQueueTooBigException"}, set(names)
    client.create("after_locks", {"f": {}})
    many.close()
    client.close()
    return server


def one_clients_procedures_leave_room_for_others(server, restart):
    """EnableTable is answered before the procedure ends. A client that sends thousands of such calls is refused above its
    share of the memory for procedures; changes of other clients are accepted meanwhile, however many clients do the
    same."""
    del restart
    client = hbase.Client(server)
    client.create("enabled_often", {"f": {}})
    enable = text(1, text(1, b"default") + text(2, b"enabled_often"))
    floods = [hbase.Connection(server.master, "MasterService") for _ in range(3)]
    count = 5000
    outcomes = [[] for _ in floods]

    def read(flood, into):
        for _ in range(count):
            answer = flood.receive()[1]
            into.append(answer.name if isinstance(answer, hbase.Refused) else None)

    readers = [threading.Thread(target=read, args=pair) for pair in zip(floods, outcomes)]
    for reader in readers:
        reader.start()
    for n in range(count):
        for flood in floods:
            flood.send("EnableTable", enable)
        if n % 500 == 499:  # a refusal (CallQueueTooBigException) fails the test
            client.create(f"beside{n}", {"f": {}})
    for reader in readers:
        reader.join()
    client.create("after", {"f": {}})
    for names in outcomes:
        assert None in names and "CallQueueTooBigException" in names, {name: names.count(name) for name in set(names)}
        assert set(names) <= {None, "CallQueueTooBigException", "TableNotDisabledException"}, set(names)
    for flood in floods:
        flood.close()
    client.close()
    return server


def idle_connections_leave_descriptors(server, restart):
    """Idle connections of unknown peers leave descriptors to files, and room to clients that come later."""
    server = restart(server, 256)
    client = hbase.Client(server)
    region = table(client, "crowd")
    host, port = server.regionserver.rsplit(":", 1)
    crowd = []
    for n in range(400):
        crowd.append(socket.create_connection((host, int(port)), hbase.TIMEOUT))
        crowd[-1].sendall((b"H", b"HBa", b"HBas\0\x50\0\0\1\0x")[n % 3])
    late = hbase.Client(server)  # waits until older connections are closed
    late.data.put(region, b"r", {(b"f", b"q"): b"v"})
    late.flush(region)
    late.create("crowd2", {"f": {}})
    # The first client was quiet for longer, but is known: its connections are open.
    assert client.data.get(region, b"r") == {(b"f", b"q"): b"v"}
    for one in (late, client, *crowd):
        one.close()
    return restart(server)


def pages_without_descriptors(server, restart):
    """Connections to the HTTP port that cannot be accepted, because the process has no descriptor left."""
    server = restart(server, 90)
    client = hbase.Client(server)
    region = table(client, "pages")
    host, port = server.http.rsplit(":", 1)
    crowd = [socket.create_connection((host, int(port)), hbase.TIMEOUT) for _ in range(200)]
    for one in crowd:
        one.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n")
    hbase.wait_for(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) >= 85 or server.process.poll() is not None)
    client.data.put(region, b"r", {(b"f", b"q"): b"v"})
    for one in crowd:
        one.close()
    with urllib.request.urlopen(f"http://{server.http}/health/live", timeout=hbase.TIMEOUT) as page:
        assert page.status == 200
    assert client.data.get(region, b"r") == {(b"f", b"q"): b"v"}
    client.close()
    return restart(server)


TESTS = (sums_of_numbers_with_many_digits, one_clients_procedures_leave_room_for_others, locks_leave_room_for_procedures, rows_larger_than_memory_allows, gets_of_a_batch_that_need_scanners, increments_of_rows_that_are_on_disk, tags_that_are_none, long_requests_without_their_fields, peer_that_reads_late, patterns_of_table_names,
         calls_that_wait_for_procedures, idle_connections_leave_descriptors, pages_without_descriptors)


def main():
    if not os.access(rorqual.BINARY, os.X_OK):
        print(f"{rorqual.BINARY} is not built")
        return 77
    report = rorqual.Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-hostile-") as folder:
        data, log = pathlib.Path(folder, "data"), pathlib.Path(folder, "log")

        def start(files_max=None):
            prefix = ("prlimit", f"--nofile={files_max}:{files_max}") if files_max else ()
            # Loops need descriptors, too.
            loops = ("-D", "rorqual.loops=2") if files_max else ()
            server = rorqual.Server(data, log, "-D", "rorqual.memory=128m", *loops, prefix=prefix)
            server.data = data
            return server

        def restart(server, files_max=None):
            server.kill()
            return start(files_max)

        server = start()
        for test in TESTS:
            problem = None
            try:
                server = test(server, restart)
            except (AssertionError, EOFError, OSError, KeyError, IndexError, RuntimeError, hbase.Refused) as e:
                problem = f"{type(e).__name__} {e}"
            if isinstance(problem, str) and "EOFError" in problem:
                time.sleep(1)  # the server may be about to end
            if server.process.poll() is not None:
                problem = f"the server ended with {server.process.poll()}, {problem}"
            report.outcome(f"hostile_requests/{test.__name__}", problem)
            if server.process.poll() is not None or problem:
                server.kill()
                data = pathlib.Path(folder, test.__name__)
                server = start()
        report.outcome("hostile_requests/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
