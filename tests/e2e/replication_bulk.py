#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bulk loads that replication ships (hbase.replication.bulkload.enabled): to another Rorqual, in a cycle, after compactions and
restarts, and to a peer that may not read the files.

    replication_bulk.py          Rorqual → Rorqual (CI)
    HBASE=1 replication_bulk.py  also to a real HBase 2.6.1 (`make replication`)

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from hbase import Refused, number, region, text
from replication import DEADLINE, Node, Other, eventually, orderly, regions, same_rows
from rorqual import BINARY, Report

FAST = ("replication.source.sleepforretries=50", "replication.source.maxretriesmultiplier=4")
SHIPS = ("hbase.replication.bulkload.enabled=true", "hbase.master.hfilecleaner.ttl=0")
SCOPED = {b"f": {"REPLICATION_SCOPE": "1"}, b"g": {"REPLICATION_SCOPE": "0"}}


class World:
    """Node a ships to b and, later, b to a. Each may read the other's data folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.loads = self.folder / "loads"
        self.loads.mkdir()
        self.a = self.node("a", "b")
        self.b = self.node("b", "a")
        self.files = 0

    def node(self, name, *others, ships=SHIPS):
        readable = ",".join(str(self.folder / other / "data") for other in others)
        return Node(self.folder / name, *FAST, *ships, f"hbase.replication.cluster.id=cluster-{name}",
                    f"rorqual.bulkload.folders={self.loads}", f"rorqual.replication.bulkload.folders={readable}")

    def stop(self):
        return self.a.stop() or self.b.stop()

    def hfiles(self, node, table, rows, families=("f",)):
        """Writes HFiles, one per family and region; returns [(family, path)]."""
        self.files += 1
        tsv, out = self.loads / f"{self.files}.tsv", self.loads / f"out{self.files}"
        tsv.write_text("".join("\t".join([row] + [f"{row}-{family}" for family in families]) + "\n" for row in rows))
        fields = ",".join(["HBASE_ROW_KEY"] + [f"{family}:q" for family in families])
        done = subprocess.run([BINARY, "bulkload", "--zk", node.server.zk, "--format", "tsv", "--fields", fields, "--output", out,
                               "--no-load", table, tsv], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0, done.stderr
        return [(path.parent.name, path) for path in sorted(out.glob("*/*")) if path.is_file()]

    @staticmethod
    def load(node, table, files, *more):
        name = regions(node.client, table)[0][1]
        message = text(1, region(name)) + b"".join(text(2, text(1, family) + text(2, str(path))) for family, path in files)
        answer = node.client.data.call("BulkLoadHFile", message + number(3, 1) + b"".join(more))
        assert answer[1][0] == 1, "not loaded"


def a_load_arrives_with_its_replicated_families(w):
    w.a.client.create("t", SCOPED)
    w.b.client.create("t", SCOPED, splits=[b"m"])
    w.a.add_peer("b", w.b.key)
    w.load(w.a, "t", w.hfiles(w.a, "t", ["a", "b", "x"], ("f", "g")))
    eventually(lambda: same_rows(w.a, w.b, "t"), "the loaded rows")
    assert set(w.b.rows("t")) == {b"a", b"b", b"x"}
    assert not [cell for cells in w.b.rows("t").values() for cell in cells if cell[0] == b"g"], "a family with scope 0"
    eventually(lambda: w.a.metric("rorqual_replication_shipped_files_total", "b") == 1, "one file is counted")


def loads_and_puts_keep_their_order(w):
    """A load is newer than the puts before it and older than those after it, on both sides."""
    w.a.put("t", b"b", b"before")
    w.load(w.a, "t", w.hfiles(w.a, "t", ["b", "c"]))
    w.a.put("t", b"c", b"after")
    eventually(lambda: same_rows(w.a, w.b, "t") and w.b.rows("t").get(b"c") == {(b"f", b"q"): b"after"}, "the same rows")


def one_that_asks_to_stay_here_stays(w):
    for node in (w.a, w.b):
        node.client.create("stay", SCOPED)
    w.load(w.a, "stay", w.hfiles(w.a, "stay", ["stays"]), number(8, 0))
    w.load(w.a, "stay", w.hfiles(w.a, "stay", ["goes"]))
    eventually(lambda: b"goes" in w.b.rows("stay"), "the second load")
    assert b"stays" in w.a.rows("stay") and b"stays" not in w.b.rows("stay")


def files_wait_in_the_archive_for_a_peer(w):
    """The files are compacted, the table's region is reopened, and the archive is cleaned: the peer still gets the
    files."""
    w.a.peer("DisableReplicationPeer", "b")
    for i in range(4):
        w.load(w.a, "t", w.hfiles(w.a, "t", [f"late{i}"]))
    w.a.client.admin.call("CompactRegion", text(1, region(regions(w.a.client, "t")[0][1])) + number(2, 1))
    archive = w.a.folder / "data/archive/data/default/t"

    def archived():
        return [p for p in archive.glob("*/f/*_SeqId_*") if p.is_file()] if archive.is_dir() else []
    eventually(lambda: len(archived()) >= 4, "the files are in the archive")
    w.a.stop()
    w.a.start()
    for _ in range(2):  # the first round only records the files
        assert w.a.master("RunCleanerChore")[1][0] == 1
    assert len(archived()) >= 4, "a peer needs them"
    w.a.peer("EnableReplicationPeer", "b")
    eventually(lambda: all(b"late%d" % i in w.b.rows("t") for i in range(4)), "the loads arrive")
    w.a.put("t", b"mark", b"1")

    def cleaned():
        w.a.master("RunCleanerChore")
        return not archived()
    eventually(cleaned, "the archive lets go of them")


def a_circle_loads_once(w):
    w.b.add_peer("a", w.a.key)
    before = w.a.metric("rorqual_replication_sink_entries_total")
    w.load(w.a, "t", w.hfiles(w.a, "t", ["from-a"]))
    eventually(lambda: b"from-a" in w.b.rows("t"), "it arrives")
    w.b.put("t", b"after", b"1")
    eventually(lambda: b"after" in w.a.rows("t"), "what follows comes back")
    # The row is visible before the sink has counted it and answered.
    eventually(lambda: w.b.metric("rorqual_replication_lag_seconds", "a") == 0, "no lag")
    assert w.a.metric("rorqual_replication_sink_entries_total") == before + 1, "only the put comes back"
    w.load(w.b, "t", w.hfiles(w.b, "t", ["from-b"]))
    eventually(lambda: b"from-b" in w.a.rows("t"), "the other direction")
    w.b.peer("RemoveReplicationPeer", "a")


def kills_lose_no_acknowledged_load(w):
    for victim in (w.a, w.b, w.a):
        row = f"k{w.files}"
        w.load(w.a, "t", w.hfiles(w.a, "t", [row]))
        victim.kill()
        victim.start()
    eventually(lambda: same_rows(w.a, w.b, "t"), "the same rows")


def a_peer_that_may_not_read_them_waits_and_says_why(w):
    c = w.node("c", ships=())
    try:
        c.client.create("t", SCOPED)
        w.a.add_peer("c", c.key)
        w.load(w.a, "t", w.hfiles(w.a, "t", ["unread"]))
        eventually(lambda: (w.a.metric("rorqual_replication_failed_attempts_total", "c") or 0) >= 1, "a refusal")
        log = pathlib.Path(w.a.folder / "log")
        eventually(lambda: "rorqual.replication.bulkload.folders" in log.read_text(), "the log names the setting")
        assert b"unread" not in c.rows("t")
    finally:
        w.a.peer("RemoveReplicationPeer", "c")
        c.stop()


def without_a_name_the_setting_is_refused(w):
    try:
        Node(w.folder / "unnamed", "hbase.replication.bulkload.enabled=true")
    except Exception as e:  # pylint: disable=broad-except
        assert "hbase.replication.cluster.id" in str(e) + (w.folder / "unnamed/log").read_text(), str(e)
        return
    raise AssertionError("started")


TESTS = [a_load_arrives_with_its_replicated_families, loads_and_puts_keep_their_order, one_that_asks_to_stay_here_stays,
         files_wait_in_the_archive_for_a_peer, a_circle_loads_once, kills_lose_no_acknowledged_load,
         a_peer_that_may_not_read_them_waits_and_says_why, without_a_name_the_setting_is_refused]


# ---- to a real HBase


def a_load_arrives_at_hbase(w):
    # HBase reads the settings of the source's file system from this folder; the local file system needs none.
    settings = w.other.hbase.folder / "conf/cluster-a"
    settings.mkdir()
    (settings / "core-site.xml").write_text("<configuration/>\n")
    w.a.client.create("bulk", SCOPED)
    w.other.client.create("bulk", SCOPED)
    w.a.add_peer("hbase", w.other.key)
    w.load(w.a, "bulk", w.hfiles(w.a, "bulk", [f"row{i:03d}" for i in range(200)]))
    w.a.put("bulk", b"then", b"1")
    eventually(lambda: w.a.rows("bulk") == w.other.rows("bulk"), "the loaded rows")
    assert len(w.other.rows("bulk")) == 201


def main():
    orderly()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-replication-") as folder:
        world = World(folder)
        report.run("replication", world, TESTS)
        if os.environ.get("HBASE"):
            world.other = Other(world.folder / "hbase", folder)
            try:
                report.run("replication", world, [a_load_arrives_at_hbase])
            finally:
                world.other.hbase.stop()
        report.outcome("replication/both stop cleanly", world.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
