#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP pages of a started server: their content, refused requests, and hostile peers, which must not delay gets of
clients; slow and large calls on the pages and from AdminService; the HTTP port, and the port that is reported to
clients.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import fields, number, text  # pylint: disable=wrong-import-position

TIMEOUT = 300  # seconds; only for requests that hang
EVIL = b"<script>alert('1')</script>\xff\x00\""
FAMILY = b"cf"
PROTOS = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$"
LARGE = 1


class Page:
    def __init__(self, server, path, method="GET"):
        request = urllib.request.Request(f"http://{server.http}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            self.status, self.headers, self.body = answer.code, answer.headers, answer.read()
        self.text = self.body.decode()  # every page is valid UTF-8
        self.type = self.headers["Content-Type"].split(";")[0]


class World:
    """A server whose size limit makes every response with a cell a large one."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = rorqual.Server(self.folder / "data", self.folder / "log", "-D", "hbase.ipc.warn.response.size=0",
                                     "-D", "hbase.ipc.warn.response.size.scan=-1", "-D", "hbase.rest.ssl.keystore.password=hush")
        self.client = hbase.Client(self.server)
        self.client.create("watched", {"cf": {}}, [b"m"])
        self.region = self.client.regions("watched")[0][1]
        self.client.data.put(self.region, b"a", {(FAMILY, b"q"): b"v" * 1000})

    def page(self, path, method="GET"):
        return Page(self.server, path, method)


def every_page_is_served(w):
    for path, kind in (("/", "text/html"), ("/master-status", "text/html"), ("/metrics", "text/plain"), ("/metrics?regions", "text/plain"),
                       ("/prometheus", "text/plain"), ("/jmx", "application/json"), ("/health/live", "text/plain"),
                       ("/health/ready", "text/plain"), ("/conf", "text/xml"), ("/conf?format=json", "application/json"),
                       ("/rs-status?format=json", "application/json"), ("/rs-status", "text/html"), ("/logLevel", "text/html"),
                       ("/regionserver.jsp?format=json", "application/json"), ("/regionserver.jsp", "text/html"),
                       ("/stacks", "text/plain"), ("/debug/slow", "text/html")):
        page = w.page(path)
        assert (page.status, page.type) == (200, kind), (path, page.status, page.type, page.text[:200])
        assert page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["X-Frame-Options"] == "DENY", path
        head = w.page(path, "HEAD")
        assert (head.status, head.body) == (200, b""), (path, head.status, head.body)
    head = w.page("/").text
    assert re.search(r" · up (\d+ min )?\d+ s · data folder ", head), head[:3000]
    assert w.page("/nothing").status == 404
    assert w.page("/..%2f..%2fetc/passwd").status == 404


def nothing_is_changed(w):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        page = w.page("/", method)
        assert page.status == 405 and page.headers["Allow"] == "GET, HEAD", (method, page.status)
    assert w.page("/logLevel?log=x&level=DEBUG").status == 403


def the_status_page_has_tables_and_figures(w):
    page = w.page("/").text
    for word in ("watched", "hbase:meta", "Memstores", "Block cache", "Operations since the start", "Slow and large calls", str(w.folder)):
        assert word in page, word
    row = re.search(r"<tr><td class=t>watched</td>(.*?)</tr>", page)[1]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[:3] == ["enabled", "2", "2"], cells
    assert w.page("/?refresh=7").headers["Refresh"] == "7"
    assert w.page("/?refresh=-1").headers["Refresh"] == "3600"
    assert w.page("/?refresh=x").headers["Refresh"] is None


def settings_are_shown_and_secrets_are_not(w):
    root = xml.etree.ElementTree.fromstring(w.page("/conf").body)
    found = {p.find("name").text: p.find("value").text for p in root.findall("property")}
    assert root.tag == "configuration" and found["hbase.ipc.warn.response.size"] == "0", found
    assert found["hbase.rest.ssl.keystore.password"] == "<masked>"
    listed = json.loads(w.page("/conf?format=json").text)["properties"]
    assert {p["key"]: p["value"] or None for p in listed} == {k: v or None for k, v in found.items()}
    assert "hush" not in w.page("/conf").text + w.page("/conf?format=json").text


# ---- slow and large calls


def log_entries(w, kind=None, limit=None, client=None, user=None, table=None, all_of_them=False):
    """The payloads in GetLogEntries' response, as fields."""
    request = (text(2, table) if table else b"") + (text(3, client) if client else b"") + (text(4, user) if user else b"")
    request += (number(5, limit) if limit is not None else b"") + number(6, 0 if all_of_them else 1)
    request += number(7, kind) if kind is not None else b""
    answer = w.client.admin.call("GetLogEntries", text(1, PROTOS + "SlowLogResponseRequest") + text(2, request))
    assert answer[1][0].decode() == PROTOS + "SlowLogResponses", answer
    return [fields(p) for p in fields(answer[2][0]).get(1, [])] if 2 in answer else []


def clear(w):
    return w.client.admin.call("ClearSlowLogsResponses", b"")[1][0]


def a_large_call_is_told(w):
    assert clear(w) == 1
    w.client.data.get(w.region, b"a")
    got = log_entries(w, LARGE)
    assert got, "no record"
    record = next(r for r in got if r[7][0] == b"Get")
    assert record[4][0] > 1000 and record[15][0] == LARGE, record
    assert record[6][0] == b"HRegionServer" and record[10][0] == b"tester", record
    assert record[11][0] == w.region and record[9][0] == b"region= " + w.region + b", row= a", record
    assert record[8][0].startswith(b"Get(") and re.fullmatch(rb"127\.0\.0\.1:\d+", record[5][0]), record
    assert not log_entries(w, 0), "it is not slow"


def records_are_filtered_as_hbase_does(w):
    clear(w)
    for _ in range(15):
        w.client.data.get(w.region, b"a")
    assert len(log_entries(w, LARGE)) == 10, "the default limit"
    gets = [r for r in log_entries(w, LARGE, 100) if r[7][0] == b"Get"]
    assert len(gets) == 15
    times = [r[1][0] for r in gets]
    assert times == sorted(times, reverse=True), "the newest first"
    address = gets[0][5][0].decode()
    assert len(log_entries(w, LARGE, 100, client=address)) >= 15
    assert len(log_entries(w, LARGE, 100, client=address.rpartition(":")[0])) >= 15
    assert not log_entries(w, LARGE, 100, client="127.0.0.2")
    assert not log_entries(w, LARGE, 100, user="nobody")
    assert len(log_entries(w, LARGE, 100, user="nobody", table="watched")) == 15, "one filter of several is enough"
    assert not log_entries(w, LARGE, 100, user="nobody", table="watched", all_of_them=True)
    assert not log_entries(w, LARGE, 0)


def names_that_are_markup_stay_text(w):
    clear(w)
    w.client.data.put(w.region, b"A" + EVIL, {(FAMILY, EVIL): b"v"})
    assert w.client.data.get(w.region, b"A" + EVIL)
    for path in ("/debug/slow", "/"):
        page = w.page(path).text
        assert "alert(&#39;1&#39;)" in page and "<script" not in page, path


def a_large_multi_says_what_it_is(w):
    clear(w)
    action = text(3, number(1, 0) + text(3, text(1, b"a")))
    w.client.data.call("Multi", text(1, text(1, hbase.region(w.region)) + action * 7))
    record = next(r for r in log_entries(w, LARGE, 100) if r[7][0] == b"Multi")
    assert record[12][0] == 7 and record.get(13, [0])[0] == 0, record
    assert record[9][0].endswith(b", for 7 action(s)"), record


def the_ring_is_bounded(w):
    clear(w)
    for _ in range(300):
        w.client.data.get(w.region, b"a")
    assert len(log_entries(w, LARGE, 10000)) == 256


def fill_last_region(w):
    rows = [(b"r%06d" % i, {(FAMILY, b"q"): b"x" * 50}) for i in range(20000)]
    last = w.client.regions("watched")[1][1]
    for i in range(0, len(rows), 2000):
        w.client.data.put_many(last, rows[i:i + 2000])
    return last


def scan_in_vain(connection, name, filters=100):
    """Makes a call that reads many rows and finds none. Each row is compared with as many values."""
    value = text(1, "org.apache.hadoop.hbase.filter.ValueFilter") + text(
        2, text(1, number(1, 2) + text(2, text(1, "org.apache.hadoop.hbase.filter.BinaryComparator") + text(2, text(1, text(1, b"absent"))))))
    any_of = text(1, "org.apache.hadoop.hbase.filter.FilterList") + text(2, number(1, 2) + text(2, value) * filters)
    connection.call("Scan", text(1, hbase.region(name)) + text(2, text(5, any_of)) + number(4, 100))


def slow_calls_have_their_times(w):
    last = fill_last_region(w)
    with rorqual_with(w, "hbase.ipc.warn.response.time=0") as other:
        client = hbase.Client(other)
        other_world = type("W", (), {"client": client})
        filters, record = 100, None
        while record is None:  # a call of less than a millisecond is not slow
            scan_in_vain(client.data, last, filters)
            record = next((r for r in log_entries(other_world, 0, 100) if r[7][0] == b"Scan"), None)
            filters *= 2
        assert record[2][0] >= 1 and record[15][0] == 0, record
        page = Page(other, "/debug/slow").text
        assert "<td>slow</td><td class=w>Scan</td>" in page, page[-2000:]
        assert page.count("<tr class=q><td colspan=12>") == page.count("<td class=w>Scan</td>"), "a request is a row of its own"
        client.close()


class rorqual_with:  # pylint: disable=invalid-name
    """Stops the world's server, runs another one on its folder with a setting, and restarts the first."""

    def __init__(self, world, setting):
        self.world, self.setting, self.other = world, setting, None

    def __enter__(self):
        self.world.client.close()
        assert self.world.server.stop() is None
        self.other = rorqual.Server(self.world.folder / "data", self.world.folder / "log2", "-D", self.setting)
        return self.other

    def __exit__(self, *_):
        assert self.other.stop() is None
        self.world.server = rorqual.Server(self.world.folder / "data", self.world.folder / "log", "-D", "hbase.ipc.warn.response.size=0")
        self.world.client = hbase.Client(self.world.server)


def what_runs_is_told_as_the_shell_reads_it(w):
    """Runs scans until one is shown on the page."""
    stop = threading.Event()

    def scan():
        connection = hbase.Connection(w.server.regionserver)
        while not stop.is_set():
            scan_in_vain(connection, last)
        connection.close()

    last = fill_last_region(w)
    thread = threading.Thread(target=scan)
    thread.start()
    try:
        end, tasks = time.monotonic() + TIMEOUT, []
        while not any("rpcCall" in t for t in tasks):
            assert time.monotonic() < end, "no call was seen"
            tasks = json.loads(w.page("/rs-status?format=json&filter=all").text)
    finally:
        stop.set()
        thread.join()
    task = next(t for t in tasks if "rpcCall" in t)
    assert set(task) == {"description", "status", "state", "starttimems", "statustimems", "statetimems", "rpcCall"}, task
    assert task["state"] == "RUNNING" and task["statustimems"] == -1 and task["starttimems"] > 10 ** 12, task
    assert task["rpcCall"]["method"] == "Scan" and task["rpcCall"]["clientaddress"] == "127.0.0.1", task
    for name in ("queuetimems", "starttimems", "remoteport", "packetlength"):
        assert task["rpcCall"][name] > 0, task
    assert not any("rpcCall" in t for t in json.loads(w.page("/rs-status?format=json").text)), "general: no calls"
    assert json.loads(w.page("/rs-status?format=json&filter=nonsense").text) == []


def threads_are_told(w):
    page = w.page("/stacks").text
    for word in ("loop 0:", "regionserver: ", "pool read:", "procedures: 0 unfinished", "report: ends"):
        assert word in page, (word, page)


class StoppedLoop:
    """The server's first event loop, stopped by ptrace; its other threads run."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        self.thread = next(int(t.name) for t in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir()) if (t / "comm").read_text() == "rq-loop-0\n")

    def call(self, request):
        if self.libc.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        self.call(self.SEIZE)
        self.call(self.INTERRUPT)
        os.waitpid(self.thread, 0x40000000)  # __WALL

    def __exit__(self, *_):
        self.call(self.DETACH)


def other_pages_are_answered_while_a_loop_hangs(w):
    """A page that waits for the loop is requested first, and at least one of the later requests must be answered before it. The page
    waits only for a limited time; on a busy machine this may be too short for the others, so the test is repeated. The server closes a
    connection after a minute."""
    for path in ("/stacks", "/rs-status?format=json&filter=all", "/rs-status?format=json&filter=rpc"):
        begun, was_first = time.monotonic(), False
        while not was_first:
            assert time.monotonic() - begun < 5 * TIMEOUT, f"{path} kept the HTTP thread in every try"
            with StoppedLoop(w.server.process.pid), socket.create_connection(w.server.http.rsplit(":", 1), TIMEOUT) as s:
                asked = time.monotonic()
                s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                for other in ("/health/live", "/health/ready", "/metrics"):
                    assert w.page(other).status == 200, (path, other)
                    was_first = was_first or not select.select([s], [], [], 0)[0]
                answer = s.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 OK") or not answer and time.monotonic() - asked > 55, (path, answer)


# ---- hostile peers


def garbage_is_refused(w):
    host, port = w.server.http.rsplit(":", 1)
    for bad in (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100000, b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n",
                b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\nxx", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
                b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000 + b"\r\n", b"GET /?" + b"a=1&" * 100 + b" HTTP/1.1\r\n\r\n", b"FOO / HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n\r\n"):
        with socket.create_connection((host, int(port)), TIMEOUT) as s:
            got = b""
            try:
                s.sendall(bad)
                got = s.recv(100)
            except ConnectionError:
                pass
            assert not got or re.match(rb"HTTP/1\.[01] [45]\d\d ", got), (bad[:40], got)
    assert w.page("/health/live").status == 200


def gets_are_answered_beside_hostile_peers(w):
    """A thousand connections that send nothing or do not read; a client's gets must be answered meanwhile."""
    host, port = w.server.http.rsplit(":", 1)
    peers = []
    try:
        for i in range(1000):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.settimeout(TIMEOUT)
            s.connect((host, int(port)))
            try:
                s.sendall((b"", b"GET /metrics?regi", b"GET / HTTP/1.1\r\n\r\n" * 100, b"GET /conf HTTP/1.1\r\n\r\n" * 100)[i % 4])
            except ConnectionError:
                pass  # closed to make room for a later connection
            peers.append(s)
            if i % 50 == 0:
                assert w.client.data.get(w.region, b"a"), i
        live = w.page("/health/live").status
        assert live == 200, live
        assert w.client.data.get(w.region, b"a"), "the last get"
    finally:
        for s in peers:
            s.close()
    begun, status = time.monotonic(), 503
    while status == 503 and time.monotonic() - begun < TIMEOUT:  # requests of the closed peers still wait for the page
        status = w.page("/").status
    assert status == 200, status


def peak_bytes(w):
    status = pathlib.Path(f"/proc/{w.server.process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def what_a_peer_sends_is_not_kept(w):
    """Megabytes after a request, in a header and in a body, from several peers at the same time."""
    host, port = w.server.http.rsplit(":", 1)
    before = peak_bytes(w)

    def send(s):
        with s:
            try:
                for _ in range(16):
                    s.sendall(b"a" * (1 << 20))
            except ConnectionError:
                pass  # refused; the server waits a second before it disconnects a peer that continues to send

    for head in (b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
                 b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"):
        peers = [socket.create_connection((host, int(port)), TIMEOUT) for _ in range(8)]
        for s in peers:
            s.sendall(head)
        with concurrent.futures.ThreadPoolExecutor(len(peers)) as pool:
            list(pool.map(send, peers))  # raises exceptions of the threads
    assert w.page("/health/live").status == 200
    assert peak_bytes(w) < before + (16 << 20), (before, peak_bytes(w))


# ---- the port


def refused(folder, *arguments):
    done = subprocess.run([rorqual.BINARY, "server", "--data", str(folder), "--zk-port", "0", "--master-port", "0", "--rs-port", "0", *arguments],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and not done.stdout and len(done.stderr.splitlines()) == 1, done
    assert not folder.exists(), "the folder was touched"
    return done.stderr


def a_busy_port_that_was_asked_for_is_an_error(w):
    port = w.server.http.rsplit(":", 1)[1]
    for arguments in (("--http", f"127.0.0.1:{port}"), ("--http", port), ("--http", f":{port}"), ("-D", f"hbase.master.info.port={port}"),
                      ("-D", f"rorqual.http.address=localhost:{port}")):
        line = refused(w.folder / "none", *arguments)
        assert port in line and "--http" in line, line
    for bad in ("127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:5", "[::1]", "127.0.0.1:-1", "192.0.2.1:0", "no such host:0"):
        assert "--http" in refused(w.folder / "none", "--http", bad), bad


def where_nobody_asked_a_busy_port_is_no_error(w):
    """The default port is in use: by this test, unless another program uses it already."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 16010))
            taken.listen(1)
        except OSError:
            pass
        log = w.folder / "busy.log"
        with open(log, "wb") as stderr:
            process = subprocess.Popen([rorqual.BINARY, "server", "--data", str(w.folder / "busy"), "--zk-port", "0", "--master-port", "0", "--rs-port", "0"],
                                       stdout=subprocess.PIPE, stderr=stderr, text=True)
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(TIMEOUT) == 0
    assert line.startswith("rorqual ready: ") and ", http " not in line, line
    said = [x for x in log.read_text().splitlines() if "16010" in x]
    assert len(said) == 1 and "runs without HTTP pages" in said[0], said
    assert "--http HOST:PORT" in said[0] and "--http 0" in said[0], said


def cluster_status(server):
    connection = hbase.Connection("127.0.0.1:" + server.master.rsplit(":", 1)[1], "MasterService")
    status = fields(connection.call("GetClusterStatus", b"")[1][0])
    connection.close()
    load = fields(fields(status[2][0])[2][0])
    port = status[10][0]
    return port - (1 << 64) if port >> 63 else port, load[9][0]


def clients_are_told_the_port_that_they_can_reach(w):
    port = int(w.server.http.rsplit(":", 1)[1])
    assert cluster_status(w.server) == (port, port)
    info = fields(w.client.admin.call("GetServerInfo", b"")[1][0])
    assert info[2][0] == port, info
    for arguments, told in ((("--http", "none"), False), (("--http", "0", "--advertise", "elsewhere.invalid"), False), (("--http", "127.0.0.1:0"), True)):
        server = rorqual.Server(w.folder / "told", w.folder / "told.log", *arguments)
        try:
            got = cluster_status(server)
            assert (got[0] > 0) is told and got == ((got[0], got[0]) if told else (-1, (1 << 32) - 1)), (arguments, got)
            assert (server.http is not None) is (arguments[1] != "none"), server.http
        finally:
            assert server.stop() is None


TESTS = [every_page_is_served, nothing_is_changed, the_status_page_has_tables_and_figures, settings_are_shown_and_secrets_are_not, a_large_call_is_told,
         records_are_filtered_as_hbase_does, names_that_are_markup_stay_text, a_large_multi_says_what_it_is, the_ring_is_bounded, threads_are_told, other_pages_are_answered_while_a_loop_hangs,
         garbage_is_refused, what_a_peer_sends_is_not_kept, gets_are_answered_beside_hostile_peers, a_busy_port_that_was_asked_for_is_an_error,
         where_nobody_asked_a_busy_port_is_no_error, clients_are_told_the_port_that_they_can_reach, slow_calls_have_their_times,
         what_runs_is_told_as_the_shell_reads_it]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("http", World, TESTS))
