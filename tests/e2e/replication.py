#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replication between Rorqual servers: peers and the edits that they get, kills of either side, cycles, a log that grows too
long, a full disk.

    replication.py          Rorqual → Rorqual, and back (CI)
    HBASE=1 replication.py  also with a real HBase 2.6.1 in both directions, and with its VerifyReplication
                            (`make replication`)

Ends with 'N passed, N failed'.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import disk_full
import hbase
import replication_peers as peers
from hbase import Refused, fields, number, text
from rorqual import ROOT, Report, Server, free_ports

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import SCRIPT, HBase, orderly  # noqa: E402  (its folder is not a package)

DEADLINE = 300  # seconds; reached only after an error
SCOPED = {b"f": {"VERSIONS": "3", "REPLICATION_SCOPE": "1"}, b"g": {"VERSIONS": "3", "REPLICATION_SCOPE": "0"}}


def regions(client, table):
    """[(start key, name)], read from hbase:meta with the full names, because HBase's servers do not know regions by other
    names."""
    name = table.encode()
    rows = client.data.scan(b"hbase:meta,,1", name + b",,", name + b" ,,")
    return sorted((row.split(b",", 1)[1].rpartition(b",")[0], row) for row in rows)


class Node:
    """A Rorqual on fixed ports, which can be killed and restarted."""

    def __init__(self, folder, *settings):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.ports = free_ports(3)
        self.settings = [part for s in settings for part in ("-D", s)]
        self.start()

    def start(self):
        zk, master, rs = self.ports
        self.server = Server(self.folder / "data", self.folder / "log", "--zk-port", str(zk), "--master-port", str(master),
                             "--rs-port", str(rs), *self.settings)
        self.client = hbase.Client(self.server)

    def kill(self):
        self.client.close()
        return self.server.kill()

    def stop(self):
        self.client.close()
        return self.server.stop()

    @property
    def key(self):
        return f"{self.server.zk}:/hbase"

    def master(self, method, message=b""):
        answer = self.client.master.call(method, message)
        return answer

    def change(self, method, message):
        self.client.procedure(self.master(method, message)[1][0])

    def add_peer(self, peer, key, config=b"", enabled=True):
        self.change("AddReplicationPeer", text(1, peer) + text(2, text(1, key) + config) +
                    text(3, number(1, 0 if enabled else 1)))

    def peer(self, method, peer):
        self.change(method, text(1, peer))

    def peers(self):
        """{id: (enabled, config)}"""
        out = {}
        for one in self.master("ListReplicationPeers").get(1, []):
            f = fields(one)
            out[f[1][0].decode()] = (fields(f[2][0])[1][0] == 0, fields(f[3][0]))
        return out

    def rows(self, table):
        out = {}
        for _, name in regions(self.client, table):
            out.update(self.client.data.scan(name))
        return out

    def put(self, table, row, value, family=b"f"):
        for start, name in reversed(regions(self.client, table)):
            if row >= start:
                self.client.data.put(name, row, {(family, b"q"): value})
                return

    def metric(self, name, peer=None):
        import urllib.request
        page = urllib.request.urlopen(f"http://{self.server.http}/metrics", timeout=DEADLINE).read().decode()
        label = f'{{peer="{peer}"}}' if peer else ""
        for line in page.splitlines():
            if line.startswith(f"{name}{label} "):
                return float(line.rpartition(" ")[2])
        return None


def eventually(condition, what):
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE} s: {what}")


def same_rows(a, b, table, family=b"f"):
    def of_family(node):
        return {r: {k: v for k, v in cells.items() if k[0] == family} for r, cells in node.rows(table).items()
                if any(k[0] == family for k in cells)}
    return of_family(a) == of_family(b)


class World:
    def __init__(self, folder, *settings):
        self.folder = pathlib.Path(folder)
        fast = ("replication.source.sleepforretries=50", "replication.source.maxretriesmultiplier=4")
        self.a = Node(self.folder / "a", *fast, *settings)
        self.b = Node(self.folder / "b", *fast)

    def stop(self):
        return self.a.stop() or self.b.stop()


# ---- tests: each has its own tables


def peers_are_changed_and_refused_as_by_hbase(w):
    def refusal(function, *arguments):
        try:
            function(*arguments)
        except (Refused, RuntimeError) as e:
            return str(e)
        raise AssertionError("accepted")
    a, b = w.a, w.b
    assert "Invalid cluster key" in refusal(a.add_peer, "u", f"hbase+rpc://{b.server.regionserver}")
    assert "Found invalid peer name" in refusal(a.add_peer, "a-b", b.key)
    assert "should not replicate to itself" in refusal(a.add_peer, "me", a.key)
    assert "ReplicationPeerNotFoundException" in refusal(a.peer, "EnableReplicationPeer", "none")
    a.add_peer("x", b.key, enabled=False)
    assert "already exists" in refusal(a.add_peer, "x", b.key)
    assert "already been disabled" in refusal(a.peer, "DisableReplicationPeer", "x")
    assert a.peers()["x"][0] is False
    a.peer("EnableReplicationPeer", "x")
    assert a.peers()["x"][0] is True
    conflict = text(1, b.key) + number(8, 1) + text(6, "ns")
    assert "Need clean namespaces" in refusal(
        a.change, "UpdateReplicationPeerConfig", text(1, "x") + text(2, conflict))
    config = text(1, b.key) + number(7, 1000) + text(4, text(1, "k") + text(2, "v"))
    a.change("UpdateReplicationPeerConfig", text(1, "x") + text(2, config))
    assert a.peers()["x"][1][7][0] == 1000
    a.stop()
    a.start()
    assert a.peers()["x"][1][7][0] == 1000, "after a restart"
    a.peer("RemoveReplicationPeer", "x")
    assert a.peers() == {}


def puts_deletes_and_increments_arrive(w):
    a, b = w.a, w.b
    a.client.create("t", SCOPED, splits=[b"m"])
    b.client.create("t", SCOPED)
    a.add_peer("b", b.key)
    for i in range(300):
        a.put("t", b"%c%03d" % (97 + i % 26, i), b"v%d" % i)
    a.put("t", b"only-here", b"x", family=b"g")
    eventually(lambda: same_rows(a, b, "t"), "the rows are equal")
    assert b"only-here" not in b.rows("t"), "a family with scope 0 was sent"
    eventually(lambda: a.metric("rorqual_replication_lag_seconds", "b") == 0, "no lag")
    assert a.metric("rorqual_replication_shipped_records_total", "b") >= 300
    assert b.metric("rorqual_replication_sink_entries_total") >= 300


def a_disabled_peer_gets_everything_later(w):
    a, b = w.a, w.b
    a.peer("DisableReplicationPeer", "b")
    for i in range(200):
        a.put("t", b"later%03d" % i, b"v%d" % i)
    assert not any(r.startswith(b"later") for r in b.rows("t"))
    assert a.metric("rorqual_replication_log_bytes", "b") > 10000
    a.stop()  # a clean stop keeps the log that the peer needs
    a.start()
    a.peer("EnableReplicationPeer", "b")
    eventually(lambda: same_rows(a, b, "t"), "the rows are equal")


def kills_of_either_side_lose_nothing(w):
    a, b = w.a, w.b
    stop = threading.Event()
    acknowledged = []

    def write():
        n = 0
        while not stop.is_set():
            row = b"k%06d" % n
            try:
                a.put("t", row, b"v%d" % n)
                acknowledged.append(row)
                n += 1
            except (OSError, EOFError, ValueError, Refused, RuntimeError):
                stop.wait(0.05)  # the node is being started
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for victim in (b, a, b, a):
            mark = len(acknowledged)
            eventually(lambda: len(acknowledged) > mark + 150, "writes go on")
            victim.kill()
            victim.start()
    finally:
        stop.set()
        writer.join()
    eventually(lambda: same_rows(a, b, "t"), "the rows are equal")
    rows = b.rows("t")
    missing = [r for r in acknowledged if r not in rows]
    assert not missing, f"{len(missing)} of {len(acknowledged)} rows are missing, first {missing[0]!r}"


def the_lag_behind_a_peer_that_is_away_is_told(w):
    """The lag is also reported after a start, before the peer has been reached."""
    a, b = w.a, w.b

    def lag():
        return a.metric("rorqual_replication_lag_seconds", "b")

    def load():
        status = fields(a.master("GetClusterStatus")[1][0])
        server = fields(fields(status[2][0])[2][0])
        return {k: v[0] for k, v in fields(server[10][0]).items()}
    eventually(lambda: lag() == 0, "no lag")
    b.stop()
    a.put("t", b"away-1", b"v")
    eventually(lambda: lag() > 0.3, "a lag while the peer is away")
    a.stop()
    a.start()
    eventually(lambda: lag() > 0.6, "a lag after a start without the peer")
    told = load()
    assert told[5] > 600 and told[6] > 0, f"status 'replication': {told}"
    b.start()
    eventually(lambda: same_rows(a, b, "t"), "the rows are equal")
    eventually(lambda: lag() == 0, "no lag once all is shipped")
    told = load()
    assert told[5] == 0, f"status 'replication': {told}"


def two_masters_do_not_send_in_circles(w):
    a, b = w.a, w.b
    b.add_peer("a", a.key)
    for i in range(100):
        a.put("t", b"from-a%03d" % i, b"a")
        b.put("t", b"from-b%03d" % i, b"b")
    eventually(lambda: same_rows(a, b, "t") and len([r for r in a.rows("t") if r.startswith(b"from-")]) == 200, "equal")
    eventually(lambda: a.metric("rorqual_replication_lag_seconds", "b") == 0 and
               b.metric("rorqual_replication_lag_seconds", "a") == 0, "no lag")
    before = (a.metric("rorqual_replication_sink_entries_total"), b.metric("rorqual_replication_sink_entries_total"))
    a.put("t", b"last", b"1")
    eventually(lambda: same_rows(a, b, "t"), "equal")
    # The rows are visible before the sink has counted them and answered.
    eventually(lambda: a.metric("rorqual_replication_lag_seconds", "b") == 0, "no lag")
    after = (a.metric("rorqual_replication_sink_entries_total"), b.metric("rorqual_replication_sink_entries_total"))
    assert after == (before[0], before[1] + 1), f"entries applied: {before} then {after}"
    b.peer("RemoveReplicationPeer", "a")


def tables_and_families_are_chosen(w):
    a, b = w.a, w.b
    for node in (a, b):
        node.client.create("u", SCOPED)
    chosen = text(4, b"")[:0] + number(8, 0) + text(5, text(1, text(1, "default") + text(2, "u")) + text(2, "f"))
    a.add_peer("u", b.key, chosen)
    a.peer("RemoveReplicationPeer", "b")
    a.put("u", b"r", b"1")
    a.put("t", b"not-chosen", b"1")
    eventually(lambda: b"r" in b.rows("u"), "the chosen table")
    a.put("u", b"r2", b"2")
    eventually(lambda: b"r2" in b.rows("u"), "the chosen table")
    assert b"not-chosen" not in b.rows("t")
    a.peer("RemoveReplicationPeer", "u")


def peers_that_the_shell_chooses_get_what_it_says(w):
    peers.make_tables(w.a)
    peers.make_tables(w.b)
    session = peers.Session(peers.ours(w.a.server.zk), w.folder / "peers", {}, w.b.key, peers.STEPS)
    seen, _ = peers.steps_of(w.a, w.b, session, eventually, "own", peers.STEPS)
    peers.check("our shell", seen)


def a_missing_table_blocks_until_it_is_there(w):
    a, b = w.a, w.b
    a.client.create("late", SCOPED)
    a.add_peer("b", b.key)
    a.put("late", b"r", b"1")
    eventually(lambda: (a.metric("rorqual_replication_failed_attempts_total", "b") or 0) >= 1, "a refusal")
    eventually(lambda: b.metric("rorqual_replication_sink_failed_batches_total") >= 1, "a refusal that the sink has counted")
    b.client.create("late", SCOPED)
    eventually(lambda: b"r" in b.rows("late"), "the row")
    a.peer("RemoveReplicationPeer", "b")


def a_log_that_grows_too_long_is_given_up(w):
    b = w.b
    c = Node(w.folder / "c", "rorqual.replication.log.max=65536")
    try:
        c.client.create("t", SCOPED)
        c.add_peer("b", b.key, enabled=False)
        for i in range(40):
            c.put("t", b"r%d" % i, b"x" * 4000)
        eventually(lambda: c.metric("rorqual_replication_peer_needs_resync", "b") == 1, "it is given up")
        assert c.metric("rorqual_replication_log_bytes", "b") == 0
        c.peer("EnableReplicationPeer", "b")
        c.put("t", b"after", b"1")
        eventually(lambda: b"after" in b.rows("t"), "it goes on")
        assert b"r0" not in b.rows("t")
        assert c.metric("rorqual_replication_peer_needs_resync", "b") == 0
    finally:
        c.stop()


# ---- with a real HBase


# ---- a full disk: in a separate mount namespace, as in disk_full.py

FULL_MB = 64
SMALL = ("rorqual.memory=33554432", "rorqual.wal.file.size=1048576", "rorqual.wal.max=8388608",
         "hbase.hregion.memstore.flush.size=2097152",
         "hbase.regionserver.region.split.policy=org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy")


class FullDisk:
    """A source on a small disk, which is filled by the log kept for a peer."""

    def __init__(self, folder):
        self.disk = folder / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FULL_MB}m", "tmpfs", self.disk], check=True)
        fast = ("replication.source.sleepforretries=50", "replication.source.maxretriesmultiplier=4")
        self.a = Node(self.disk / "a", *fast, *SMALL)
        self.b = Node(folder / "b", *fast)
        self.rows = []
        for node in (self.a, self.b):
            node.client.create("full", SCOPED)
        self.a.add_peer("b", self.b.key)

    def write(self, most):
        """Writes until `most` rows are acknowledged or one is refused; returns the exception's name."""
        region = regions(self.a.client, "full")[0][1]
        end = time.monotonic() + DEADLINE
        for _ in range(most // 50):
            assert time.monotonic() < end, "writes are neither refused nor done"
            rows = [b"f%07d" % (len(self.rows) + n) for n in range(50)]
            outcomes = self.a.client.data.put_many(region, [(r, {(b"f", b"q"): os.urandom(1500)}) for r in rows])
            self.rows += [r for r, problem in zip(rows, outcomes) if problem is None]
            for problem in outcomes:
                if problem is not None:
                    return problem
        return None

    def the_peer_gets_all(self):
        end = time.monotonic() + DEADLINE
        while not set(self.rows) <= set(self.b.rows("full")):
            assert time.monotonic() < end, f"the peer has {len(self.b.rows('full'))} of {len(self.rows)} rows"
            time.sleep(0.1)

    def writes_go_on(self):
        end = time.monotonic() + DEADLINE
        while self.write(200) is not None:
            assert time.monotonic() < end, "writes are still refused"
            time.sleep(0.1)

    def the_log_of_a_peer_that_is_away_fills_the_disk(self):
        self.write(200)
        self.the_peer_gets_all()
        self.b.kill()
        problem = self.write(10 ** 6)
        assert problem is not None and "RegionTooBusy" in problem, problem
        assert self.a.peers()["b"][0], "the peer was disabled"
        assert self.a.metric("rorqual_replication_log_bytes", "b") > FULL_MB << 17, "no log is kept for the peer"
        assert set(self.rows) <= set(self.a.rows("full")), "reads do not go on"

    def it_has_space_once_the_peer_is_back(self):
        self.b.start()
        self.the_peer_gets_all()
        self.writes_go_on()
        self.the_peer_gets_all()

    def a_kill_loses_nothing(self):
        self.a.kill()
        self.a.start()
        assert set(self.rows) <= set(self.a.rows("full")), "acknowledged rows are lost"
        self.the_peer_gets_all()
        assert self.a.peers()["b"][0], "the peer was disabled"
        problem = self.a.stop()
        assert problem is None, problem


def on_a_full_disk():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-replication-") as folder:
        test = FullDisk(pathlib.Path(folder))
        for part in (test.the_log_of_a_peer_that_is_away_fills_the_disk, test.it_has_space_once_the_peer_is_back,
                     test.a_kill_loses_nothing):
            problem = None
            try:
                part()
            except Exception as e:  # pylint: disable=broad-except
                problem = f"{e!r}; {test.a.server.tail()}"
            if not report.outcome(f"replication/{part.__name__}", problem):
                break
        for node in (test.a, test.b):
            node.client.close()
            node.server.kill()
        subprocess.run(["umount", "-l", test.disk], check=True)
    return report.finish()


def run_on_a_full_disk(report):
    reason = disk_full.may_mount()
    if reason is not None:
        print(f"SKIP replication on a full disk: no file system of a test's own here: {reason}", flush=True)
        return
    with subprocess.Popen(["unshare", "-rm", sys.executable, __file__, "full-disk"], text=True, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if " passed, " not in line:
                report.line(line.rstrip("\n"))
    if process.returncode not in (0, 1):
        report.outcome("replication on a full disk", f"the driver ended with {process.returncode}")


class Other:
    """A real HBase with the calls that the tests use."""

    def __init__(self, folder, root):
        self.hbase = HBase(folder, {"hbase.replication.bulkload.enabled": "true", "hbase.replication.cluster.id": "other",
                                    "replication.source.sleepforretries": "100", "replication.source.maxretriesmultiplier": "5"})
        self.hbase.start()
        ports = self.hbase.ports
        self.server = type("Server", (), {"regionserver": f"127.0.0.1:{ports['RS_PORT']}",
                                          "master": f"127.0.0.1:{ports['MASTER_PORT']}", "zk": self.hbase.zk})
        self.client = hbase.Client(self.server)
        self.root = root

    key = Node.key
    master = Node.master
    change = Node.change
    add_peer = Node.add_peer
    peer = Node.peer
    rows = Node.rows
    put = Node.put


LOGGING = """log4j.rootLogger=INFO,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%p %c{2}: %m%n
"""


def java(env, folder, *arguments):
    """Runs a class of HBase against the cluster of env's ports; returns its output, with a job's counters."""
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as logging:
        logging.write(LOGGING)
        logging.flush()
        done = subprocess.run([str(SCRIPT), "run", str(folder), *arguments], timeout=300, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, **env, "JAVA_TOOL_OPTIONS": f"-Dlog4j.configuration=file:{logging.name}"})
    return done.stdout


def verified(env, folder, peer, table):
    """HBase's VerifyReplication: {counter: value}"""
    out = java(env, folder, "org.apache.hadoop.hbase.mapreduce.replication.VerifyReplication",
               "-Dmapreduce.framework.name=local", peer, table)
    counters = {}
    for line in out.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and value.isdigit() and name.endswith("ROWS"):
            counters[name] = int(value)
    if not counters:
        counters["output"] = out[-1500:]
    return counters


def under_load(from_node, victim, table, prefix, kills):
    """Writes to from_node while the victim is killed and restarted; returns the acknowledged rows."""
    stop = threading.Event()
    acknowledged = []

    def write():
        n = 0
        while not stop.is_set():
            row = b"%s%06d" % (prefix, n)
            try:
                from_node.put(table, row, b"v%d" % n)
                acknowledged.append(row)
                n += 1
            except (OSError, EOFError, ValueError, Refused, RuntimeError):
                stop.wait(0.05)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(kills):
            mark = len(acknowledged)
            eventually(lambda: len(acknowledged) > mark + 300, "writes go on")  # pylint: disable=cell-var-from-loop
            victim.kill()
            victim.start()
    finally:
        stop.set()
        writer.join()
    return acknowledged


def ports_of(node):
    zk, master, rs = node.ports
    return {"ZK_PORT": str(zk), "MASTER_PORT": str(master), "RS_PORT": str(rs)}


def hbase_to_rorqual_and_back_under_kills(w):
    other, a = w.other, w.a
    for node in (other, a):
        node.client.create("cut", {b"f": {"VERSIONS": "3", "REPLICATION_SCOPE": "1"}})
    other.add_peer("rorqual", a.key)
    a.add_peer("other", other.key)
    written = under_load(other, a, "cut", b"hbase", 3)
    written += under_load(a, a, "cut", b"rorqual", 3)
    eventually(lambda: a.rows("cut").keys() == other.rows("cut").keys(), "the same rows")
    rows = a.rows("cut")
    assert not [r for r in written if r not in rows], "acknowledged rows are missing"
    for what, counters in (("Rorqual's", verified(ports_of(a), w.folder / "verify", "other", "cut")),
                           ("HBase's", verified(other.hbase.ports, other.hbase.folder, "rorqual", "cut"))):
        assert counters.get("GOODROWS") == len(rows) and len(counters) == 1, f"{what} VerifyReplication: {counters}"


def both_shells_choose_alike_on_both_servers(w):
    """Four sessions: our shell and the official one, on HBase and on Rorqual, each of which replicates to the other."""
    other, a = w.other, w.a
    outputs = {}
    for node in (other, a):
        peers.make_tables(node)
    for source, sink, ports, home in ((other, a, other.hbase.ports, other.hbase.folder), (a, other, ports_of(a), w.folder / "official")):
        zk = f"127.0.0.1:{ports['ZK_PORT']}"
        for shell, command in (("own", peers.ours(zk)), ("official", [SCRIPT, "shell", home])):
            name = f"{shell}-on-{'hbase' if source is other else 'rorqual'}"
            session = peers.Session(command, w.folder / name, ports, sink.key, peers.STEPS)
            seen, outputs[name] = peers.steps_of(source, sink, session, eventually, name, peers.STEPS)
            peers.check(name, seen)
            peers.clear_steps(source)
    first, *rest = outputs
    for name in rest:
        assert outputs[name] == outputs[first], f"{name} and {first}: " + "\n".join(difflib.unified_diff(outputs[first], outputs[name], lineterm="", n=1))


def both_write_the_same_rows(w):
    other, a = w.other, w.a
    for i in range(300):
        first, second = (other, a) if i % 2 else (a, other)
        first.put("cut", b"same%03d" % i, b"old")
        # The later timestamp wins. Of equal timestamps each side keeps the edit applied last, as between two HBases.
        now = time.time_ns() // 1000000
        while time.time_ns() // 1000000 == now:
            pass
        second.put("cut", b"same%03d" % i, b"new")
    eventually(lambda: a.rows("cut") == other.rows("cut"), "the same newest versions")
    assert all(a.rows("cut")[b"same%03d" % i] == {(b"f", b"q"): b"new"} for i in range(300))


def bulk_loads_of_hbase_arrive(w):
    other, a = w.other, w.a
    other.client.create("bulk", {b"f": {"REPLICATION_SCOPE": "1"}})
    a.client.create("bulk", {b"f": {"REPLICATION_SCOPE": "1"}}, splits=[b"row0500"])
    tsv = w.folder / "in.tsv"
    tsv.write_text("".join(f"row{i:04d}\tv{i}\n" for i in range(1000)))
    out = w.folder / "hfiles"
    log = java(other.hbase.ports, other.hbase.folder, "org.apache.hadoop.hbase.mapreduce.ImportTsv",
               "-Dmapreduce.framework.name=local", "-Dimporttsv.columns=HBASE_ROW_KEY,f:q",
               f"-Dimporttsv.bulk.output=file://{out}", "bulk", f"file://{tsv}")
    assert (out / "f").is_dir(), log[-1500:]
    log = java(other.hbase.ports, other.hbase.folder, "org.apache.hadoop.hbase.tool.BulkLoadHFilesTool", f"file://{out}", "bulk")
    assert len(other.rows("bulk")) == 1000, log[-1500:]
    eventually(lambda: a.rows("bulk") == other.rows("bulk"), "the loaded rows")


WITH_HBASE = [both_shells_choose_alike_on_both_servers, hbase_to_rorqual_and_back_under_kills, both_write_the_same_rows, bulk_loads_of_hbase_arrive]
ALONE = [peers_are_changed_and_refused_as_by_hbase, puts_deletes_and_increments_arrive,
         a_disabled_peer_gets_everything_later, kills_of_either_side_lose_nothing, the_lag_behind_a_peer_that_is_away_is_told, two_masters_do_not_send_in_circles,
         tables_and_families_are_chosen, peers_that_the_shell_chooses_get_what_it_says, a_missing_table_blocks_until_it_is_there, a_log_that_grows_too_long_is_given_up]


def main():
    orderly()
    if sys.argv[1:] == ["full-disk"]:
        return on_a_full_disk()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-replication-") as folder:
        world = World(folder)
        report.run("replication", world, ALONE)
        report.outcome("replication/both stop cleanly", world.stop())
    run_on_a_full_disk(report)
    if os.environ.get("HBASE"):
        with tempfile.TemporaryDirectory(prefix="rorqual-replication-") as folder:
            other = Other(pathlib.Path(folder) / "hbase", folder)
            try:
                world = World(folder, f"rorqual.replication.bulkload.folders={folder}/hbase/data")
                world.other = other
                report.run("replication", world, WITH_HBASE)
                report.outcome("replication/stops cleanly", world.stop())
            finally:
                other.hbase.stop()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
