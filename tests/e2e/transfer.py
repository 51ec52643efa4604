#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rorqual export, import, bulkload, copytable, verify, rowcount, cellcount, canary and split on a server: every format there
and back, interrupted transfers, bad input, a full disk; and each against HBase's own tools: Export, Import, ImportTsv, HashTable,
SyncTable, RowCounter and BulkLoadHFilesTool read what ours write, and the reverse.

    transfer.py                                          starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port MASTER=host:port RS=host:port transfer.py   against a server that runs already (a real HBase, say)
    JAVA=0                                               without HBase's tools

Ends with 'N passed, N failed'.
"""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import hbase
from rorqual import BINARY, ROOT, Report, Server

DEADLINE = 120
ROWS = 400
VALUE = b"v" * 300
SPLITS = (b"r100", b"r200", b"r300")
MAPREDUCE = "org.apache.hadoop.hbase.mapreduce."


class Clusters:
    """What hbase.Client asks of a server."""

    def __init__(self, zk, master, regionserver):
        self.zk, self.master, self.regionserver = zk, master, regionserver


class World:
    def __init__(self, folder):
        self.folder = folder
        self.bulk = folder / "bulk"
        self.bulk.mkdir()
        self.own = "ZK" not in os.environ
        if self.own:
            self.server = Server(folder / "data", folder / "log", "-D", f"rorqual.bulkload.folders={self.bulk}")
        else:
            self.server = Clusters(os.environ["ZK"], os.environ["MASTER"], os.environ["RS"])
        self.client = hbase.Client(self.server)
        self.counter = 0

    def path(self, name="x"):
        self.counter += 1
        return self.folder / f"{name}{self.counter}"

    def table(self, splits=SPLITS, families=(b"cf", b"g")):
        """A new table without rows."""
        self.counter += 1
        name = f"t{os.getpid()}_{self.counter}"
        self.client.create(name, {f: {b"VERSIONS": b"5"} for f in families}, splits)
        return name

    def run(self, *arguments, zk=None, code=0):
        """The output of a command; its exit code must be `code`."""
        command = [BINARY, arguments[0], "--zk", zk or self.server.zk, *map(str, arguments[1:])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code, f"{arguments}: {done.returncode}, {done.stdout!r} {done.stderr!r}"
        return done.stdout + done.stderr

    def import_lines(self, table, lines, *options, code=0):
        path = self.path("lines")
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return self.run("import", *options, table, path, code=code)

    def filled(self, rows=ROWS):
        """A table with rows in all its regions, of two families, with bytes that are no text, and two versions of one cell."""
        table = self.table()
        lines = [json.dumps({"row": f"r{i:03d}", "cells": [
            {"family": "cf", "qualifier": "a", "timestamp": 1000 + i, "value": f"\\x00\\xFF{i}\t\"" + VALUE.decode()},
            {"family": "g", "qualifier": "q\\x01", "timestamp": 7, "value": "é"}]}).encode() for i in range(rows)]
        lines.append(b'{"row":"r000","cells":[{"family":"cf","qualifier":"a","timestamp":1,"value":"old"}]}')
        self.import_lines(table, lines, "--format", "json")
        return table

    def same(self, a, b, *options):
        return self.run("verify", "--versions", "9", *options, a, b).strip() == "equal"

    def java(self, tool, *arguments, code=0):
        host, port = self.server.zk.rsplit(":", 1)
        conf = self.folder / "conf" / "conf"
        if not conf.exists():
            conf.mkdir(parents=True)
            properties = {"hbase.zookeeper.quorum": host, "hbase.zookeeper.property.clientPort": port,
                          "mapreduce.framework.name": "local", "hadoop.tmp.dir": str(self.folder / "hadoop"),
                          # Milliseconds, instead of 1 and 5 s, between looks at whether a job has ended.
                          "mapreduce.client.progressmonitor.pollinterval": "20", "mapreduce.client.completion.pollinterval": "20"}
            (conf / "hbase-site.xml").write_text("<configuration>" + "".join(
                f"<property><name>{n}</name><value>{v}</value></property>" for n, v in properties.items()) + "</configuration>")
            (conf / "log4j.properties").write_text("log4j.rootLogger=ERROR,c\nlog4j.appender.c=org.apache.log4j.ConsoleAppender\n"
                                                   "log4j.appender.c.layout=org.apache.log4j.SimpleLayout\n")
        done = subprocess.run([str(ROOT / "tests/peers/hbase.sh"), "run", str(conf.parent), tool, *map(str, arguments)],
                              capture_output=True, text=True, timeout=3 * DEADLINE, check=False, cwd=self.folder)
        assert done.returncode == code, f"{tool}: {done.returncode} {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout + done.stderr


def expect(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in {text!r}"


def shell(w, text):
    subprocess.run([BINARY, "shell", "-n", "--zk", w.server.zk], input=text + "\n", text=True, check=True, stdout=subprocess.DEVNULL)


def lines_of(folder):
    return [line for path in sorted(folder.glob("part-*")) for line in path.read_bytes().split(b"\n") if line]


# ---- formats


def every_format_gives_the_table_back(w):
    table = w.filled()
    for fmt, options in (("sequence", ()), ("json", ()),
                         ("csv", ("--fields", "HBASE_ROW_KEY,cf:a,g:q\x01")),
                         ("tsv", ("--fields", "HBASE_ROW_KEY,cf:a,g:q\x01", "--escape"))):
        text = fmt in ("csv", "tsv")
        folder, copy = w.path(fmt), w.table(splits=(b"r250",))
        expect(w.run("export", "--format", fmt, *options, *(() if text else ("--versions", "9")), table, folder),
               f"exported {ROWS} rows")
        assert (folder / "_SUCCESS").exists()
        expect(w.run("import", "--format", fmt, *options, copy, folder), f"imported {ROWS + 0} rows")
        # TSV and CSV have one version and no timestamps.
        equal = w.run("verify", "--ignore-timestamps", table, copy) if text else w.run("verify", "--versions", "9", table, copy)
        assert equal.strip() == "equal", (fmt, equal)
        assert not (folder / "_rorqual" / f"import-{copy}").exists()


def raw_exports_keep_deletes(w):
    table, copy = w.table(), w.table()
    cells = [{"family": "cf", "qualifier": "a", "timestamp": t, "value": str(t)} for t in (1, 2, 3)]
    markers = [{"family": "cf", "qualifier": "a", "timestamp": 2, "type": "Delete"},
               {"family": "cf", "timestamp": 1, "type": "DeleteFamily"}, {"family": "cf", "timestamp": 9, "type": "DeleteFamilyVersion"},
               {"family": "g", "qualifier": "b", "timestamp": 5, "type": "DeleteColumn"}]
    w.import_lines(table, [json.dumps({"row": "r1", "cells": cells}).encode(), json.dumps({"row": "r1", "cells": markers}).encode()],
                   "--format", "json")
    folder = w.path()
    expect(w.run("export", "--raw", "--versions", "9", table, folder), "exported 1 rows, 7 cells")
    expect(w.run("import", copy, folder), "imported 1 rows, 7 cells")
    assert w.run("verify", "--raw", "--versions", "9", table, copy).strip() == "equal"


def options_of_export_select_cells(w):
    table = w.filled()
    for options, rows in ((("--prefix", "r01"), 10), (("--regex", "^r..7$"), ROWS // 10), (("--start-row", "r395"), 5),
                          (("--stop-row", "r005"), 5), (("--columns", "g"), ROWS), (("--start-time", "1100", "--end-time", "1103"), 3),
                          (("--columns", "cf:nothing"), 0)):
        expect(w.run("export", *options, table, w.path()), f"exported {rows} rows")
    expect(w.run("export", "--versions", "9", "--start-row", "r000", "--stop-row", "r001", table, w.path()), "3 cells")
    expect(w.run("export", "--batch", "1", "--stop-row", "r001", table, w.path()), "1 rows, 2 cells")
    w.run("export", "--start-time", "9", "--end-time", "5", table, w.path(), code=1)


def text_that_a_format_cannot_hold_is_refused(w):
    table = w.filled(3)
    expect(w.run("export", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, w.path(), code=1), "--escape")
    expect(w.run("export", "--format", "tsv", table, w.path(), code=2), "--fields")
    expect(w.run("import", "--format", "csv", "--fields", "cf:a,cf:b", table, w.path(), code=1), "HBASE_ROW_KEY")
    expect(w.run("import", "--format", "csv", "--fields", "HBASE_ROW_KEY,HBASE_CELL_VISIBILITY,cf:a", table, w.path(), code=1),
           "visibility labels are not supported")


def tsv_has_the_columns_of_importtsv(w):
    table = w.table()
    fields = "HBASE_ROW_KEY,HBASE_TS_KEY,cf:a,HBASE_ATTRIBUTES_KEY,g,HBASE_CELL_TTL"
    now = int(time.time() * 1000)
    out = w.import_lines(table, [b"r1\t%d\tA\tk=>v,l=>w\tG\t900000000" % now, b"r2\t6\t\t\tG\t0", b"r3\t5\texpired\t\tG\t1000"],
                         "--format", "tsv", "--fields", fields)
    expect(out, "imported 3 rows, 6 cells")
    folder = w.path()
    w.run("export", "--format", "json", table, folder)
    rows = [json.loads(line) for line in lines_of(folder)]
    assert [(c["qualifier"], c["timestamp"], c["value"]) for c in rows[0]["cells"]] == [("a", now, "A"), ("", now, "G")], rows
    assert [row["row"] for row in rows] == ["r1", "r2"], rows
    w.import_lines(table, [b"r3\tG"], "--format", "tsv", "--fields", "HBASE_ROW_KEY,g")
    expect(w.import_lines(table, [b"r4\t6\t\t\t\t0"], "--format", "tsv", "--fields", fields, "--skip-empty"), "1 rows, 0 cells")
    folder = w.path("few")
    expect(w.run("export", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a,cf:none", table, folder), "exported 2 rows, 2 cells")
    assert lines_of(folder) == [b"r1\tA\t", b"r2\t\t"], lines_of(folder)  # r3 has none of the columns
    expect(w.import_lines(table, [b"r9|x|y"], "--format", "tsv", "--separator", "|", "--fields", "HBASE_ROW_KEY,cf:a,cf:b"),
           "1 rows, 2 cells")


def bad_lines_are_named_and_counted(w):
    table = w.table()
    bad = [b"nothing", b"a\tb\tc\td", b"\t7\tv", b"r1\tx\tv", b"r1\t-3\tv", b"r" * 40000 + b"\t7\tv", b""]
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,HBASE_TS_KEY,cf:a")
    out = w.import_lines(table, [b"r1\t7\tgood", *bad, b"r2\t8\tgood"], *fields)
    expect(out, f"Bad Lines={len(bad)}", "imported 2 rows", "No delimiter", "Excessive columns", "Invalid timestamp", "bad line at byte 10")
    assert w.run("rowcount", table).strip() == "ROWS=2"
    expect(w.import_lines(table, [b"r3\t7\tx", b"bad"], *fields, "--fail-on-bad-line", code=1), "bad line at byte 7: No delimiter")
    out = w.import_lines(table, [b"{", b"[]", b'{"row":"r1"}', b'{"row":"","cells":[{"family":"cf"}]}',
                                 b'{"row":"r1","cells":[{"family":"cf","timestamp":"x"}]}', b"\xff\xfe", b"[" * 5000], "--format", "json")
    expect(out, "imported 0 rows", "Bad Lines=7")
    out = w.import_lines(table, [b'r5,"a ""b"",\n', b'c"', b'r6,"x"y', b"r7,\"open"], "--format", "csv", "--fields", "HBASE_ROW_KEY,cf:a")
    expect(out, "imported 1 rows", "Bad Lines=2")


def line_ends_are_those_of_hadoop(w):
    table = w.table()
    path = w.path()
    path.write_bytes(b"r1\ta\r\nr2\tb\rr3\tc\nr4\td")
    expect(w.run("import", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, path), "imported 4 rows")
    path.write_bytes(b"")
    expect(w.run("import", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, path), "imported 0 rows")


# ---- interruptions


def killed_when(process, condition):
    """Waits for the condition, then kill -9; the process must have been alive."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert process.poll() is None, f"ended with {process.returncode}"
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -9, "it had ended"


def a_killed_export_goes_on(w):
    table, folder, copy = w.filled(), w.path(), w.table()
    command = [BINARY, "export", "--zk", w.server.zk, "--versions", "9", "--jobs", "1", "--rate", "30K", table, str(folder)]
    with subprocess.Popen(command) as process:
        killed_when(process, lambda: (folder / "_rorqual/export/part-00001.draft").exists())
    assert not (folder / "_SUCCESS").exists()
    finished = (folder / "part-m-00000").stat().st_mtime_ns
    expect(w.run("export", table, folder, code=1), "was begun by another command")
    expect(w.run("export", "--versions", "9", table, folder), "1 parts were done before")
    assert (folder / "part-m-00000").stat().st_mtime_ns == finished
    w.run("import", copy, folder)
    assert w.same(table, copy)
    expect(w.run("export", "--versions", "9", table, folder, code=1), "has a finished export")


def a_killed_import_goes_on(w):
    table, folder, copy = w.filled(), w.path(), w.table()
    w.run("export", "--versions", "9", table, folder)
    progress = folder / f"_rorqual/import-{copy}"
    command = [BINARY, "import", "--zk", w.server.zk, "--jobs", "1", "--rate", "30K", copy, str(folder)]
    with subprocess.Popen(command) as process:
        killed_when(process, lambda: (progress / "00000").exists())
    assert not w.run("verify", "--versions", "9", table, copy, code=1).startswith("equal")
    part = folder / "part-m-00003"
    whole, time_ns = part.read_bytes(), part.stat().st_mtime_ns
    # Longer; as long as before, but with a byte that is another one.
    for other in (whole + b"x", whole[:-1] + bytes([whole[-1] ^ 1])):
        part.write_bytes(other)
        expect(w.run("import", copy, folder, code=1), "the input has changed")
    part.write_bytes(whole)
    os.utime(part, ns=(time_ns, time_ns))
    plan = progress / "plan"
    text = plan.read_text()
    plan.write_text(re.sub(r" of \d+ ", " ", text))  # of an earlier version
    expect(w.run("import", copy, folder, code=1), "another version of rorqual")
    plan.write_text(text)
    expect(w.run("import", copy, folder), "1 parts were done before")
    assert w.same(table, copy) and not progress.exists()


def a_killed_copy_goes_on(w):
    table, copy, progress = w.filled(), w.table(), w.path()
    command = [BINARY, "copytable", "--zk", w.server.zk, "--versions", "9", "--jobs", "1", "--rate", "30K", "--new-name", copy,
               "--progress", str(progress), table]
    with subprocess.Popen(command) as process:
        killed_when(process, lambda: (progress / f"copytable-{copy}/00000").exists())
    assert not w.run("verify", "--versions", "9", table, copy, code=1).startswith("equal")
    expect(w.run("copytable", "--new-name", copy, "--progress", progress, table, code=1), "was begun by another command")
    # The ranges are those of the first run, also if the table has been split since.
    w.client.split(table, b"r050")
    expect(w.run("copytable", "--versions", "9", "--new-name", copy, "--progress", progress, table), "1 parts were done before")
    assert w.same(table, copy) and not (progress / f"copytable-{copy}").exists()
    plan = progress / f"copytable-{copy}"
    plan.mkdir()
    (plan / "plan").write_text("rorqual plan 1\nstamp 1\n")
    expect(w.run("copytable", "--new-name", copy, "--progress", progress, table, code=1), "plan is damaged")


def tags_are_kept(w):
    """A cell's time to live is a tag: exports, imports and copies keep it, as do Results and lines."""
    tag = b"\x00\x09\x08" + (10**10).to_bytes(8, "big")
    table, imported, copy = w.table(), w.table(), w.table()
    shell(w, f"put '{table}', 'r1', 'cf:a', 'v', {{TTL => {10**10}}}\nput '{table}', 'r2', 'cf:a', 'v'")
    folders = [w.path() for _ in range(3)]
    w.run("export", table, folders[0])
    w.run("import", imported, folders[0])
    w.run("export", imported, folders[1])
    w.run("copytable", "--new-name", copy, table)
    w.run("export", copy, folders[2])
    for folder in folders:
        tagged = b"".join(p.read_bytes() for p in sorted(folder.glob("part-*"))).count(tag)
        assert tagged == 1, f"{tagged} cells with their tag"
    lines = w.table()
    w.import_lines(lines, [b"r\tv\t10000000000"], "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a,HBASE_CELL_TTL")
    w.run("export", lines, folder := w.path())
    tagged = b"".join(p.read_bytes() for p in folder.glob("part-*")).count(b"\x00\x09\x08")
    assert tagged == 1, f"a line's cell has {tagged} tags"


def two_at_once_are_refused(w):
    table, folder = w.filled(), w.path()
    command = [BINARY, "export", "--zk", w.server.zk, "--jobs", "1", "--rate", "20K", table, str(folder)]
    with subprocess.Popen(command) as process:
        hbase.wait_for(lambda: (folder / "_rorqual/export/plan").exists())
        expect(w.run("export", table, folder, code=1), "lock")
        process.kill()


def a_rate_is_kept(w):
    table = w.filled()
    begun = time.monotonic()
    out = w.run("export", "--jobs", "4", "--rate", "60K", table, w.path())
    size = int(out.split(" bytes")[0].rpartition(" ")[2])
    assert time.monotonic() - begun >= 0.4 * size / 61440, out


def a_full_disk_loses_nothing(w):
    table, disk, copy = w.filled(), w.path("disk"), w.table()
    disk.mkdir()
    try:
        done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], stderr=subprocess.PIPE, check=False)
        allowed = done.returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        print("-- no mounts are allowed here: no full disk")
        return
    command = f"{BINARY} export --zk {w.server.zk} --versions 9 --jobs 1 {table} {disk}/x"
    script = (f"mount -t tmpfs -o size=96k tmpfs {disk} && ! {command} && test ! -e {disk}/x/_SUCCESS && "
              f"mount -o remount,size=8m {disk} && {command} && {BINARY} import --zk {w.server.zk} {copy} {disk}/x")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    expect(done.stderr, "No space left on device")
    assert w.same(table, copy)


# ---- bad input


def lost_output_is_a_failure(w):
    table = w.table()
    for arguments in (["rowcount", "--zk", w.server.zk, table], ["cellcount", "--zk", w.server.zk, table], ["canary", "--zk", w.server.zk, table],
                      ["export", "--zk", w.server.zk, table, str(w.path("lost"))], ["export", "--help"], ["version"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 1 and done.stderr == f"rorqual {arguments[0]}: standard output could not be written\n", f"{arguments}: {done}"


def damaged_sequence_files_are_named(w):
    table, folder, copy = w.filled(), w.path(), w.table()
    w.run("export", table, folder)
    whole = (folder / "part-m-00000").read_bytes()
    for i, (bytes_, said) in enumerate(((whole[:-10], "ends within a record"), (whole[:60], "damaged or cut header"), (b"PAR1" + whole, "not a SequenceFile"),
                          (whole[:3] + b"\x05" + whole[4:], "version 5"), (whole.replace(b"client.Result", b"client.Put...", 1), "values of class"),
                          (whole.replace(b"ImmutableBytesWritable", b"ImmutableBytesWritablf", 1), "keys of class"),
                          (whole.replace(b"r005", b"r99\xff", 1), "is not a Result of its row"), (b"", "is empty"))):
        broken = w.path(f"broken{i}")
        broken.write_bytes(bytes_)
        expect(w.run("import", copy, broken, code=1), said, str(broken.name))


def wrong_names_are_refused(w):
    table, folder = w.filled(3), w.path()
    w.run("export", table, folder)
    expect(w.run("export", "no_such_table", w.path(), code=1), "no_such_table")
    expect(w.run("import", "no_such_table", folder, code=1), "no_such_table")
    expect(w.run("import", table, w.path(), code=1), "No such file")
    expect(w.run("import", "--rename", "cf:nofamily", table, folder, code=1), "NoSuchColumnFamilyException", "nofamily")
    expect(w.run("import", "--rename", "cf", table, folder, code=1), "OLD:NEW")
    (folder / "_SUCCESS").unlink()
    shutil.rmtree(folder / "_rorqual")
    expect(w.run("export", table, folder, code=1), "is not empty")
    assert sorted(p.name for p in folder.iterdir()) == [f"part-m-0000{i}" for i in range(4)]
    expect(w.run("export", "--rate", "0", table, w.path(), code=2), "--rate")


def what_fails_leaves_no_folder(w):
    """A folder that was there stays, and so does one that has something in it."""
    new, there, full = w.path(), w.path(), w.path()
    there.mkdir()
    full.mkdir()
    (full / "file").touch()
    for folder in (new, there, full):
        for command in (("export", "no_such_table", folder), ("verify", "--write", folder, "no_such_table"),
                        ("copytable", "--new-name", "other", "--progress", folder, "no_such_table")):
            w.run(*command, code=1)
    assert not new.exists() and there.exists() and (full / "file").exists(), list(w.folder.iterdir())


def tables_without_rows(w):
    table, folder, copy = w.table(splits=()), w.path(), w.table()
    expect(w.run("export", table, folder), "exported 0 rows, 0 cells")
    expect(w.run("import", copy, folder), "imported 0 rows")
    assert w.run("rowcount", table).strip() == "ROWS=0"
    expect(w.run("cellcount", table), "Total CELLS\t0")
    assert w.same(table, copy)


# ---- counts, copies, comparisons


def counts(w):
    table = w.filled()
    assert w.run("rowcount", table).strip() == f"ROWS={ROWS}"
    assert w.run("rowcount", "--regex", "5$", table).strip() == f"ROWS={ROWS // 10}"
    out = w.run("cellcount", "--versions", "9", table)
    expect(out, f"Total ROWS\t{ROWS}\n", "Total Families Across all Rows\t2\n", f"Total Qualifiers across all Rows\t{2 * ROWS}\n",
           f"Total CELLS\t{2 * ROWS + 1}\n", f"cf:a\t{ROWS}\t{ROWS + 1}\t", f"g:q\\x01\t{ROWS}\t{ROWS}\t")


def rows_in_parts_are_counted_once(w):
    """The part of r2 looks as if another followed, which is deleted."""
    table = w.table(splits=())
    cells = [{"family": "cf", "qualifier": q, "timestamp": 1, "value": q} for q in "ab"]
    w.import_lines(table, [json.dumps({"row": f"r{i}", "cells": cells}).encode() for i in range(5)], "--format", "json")
    w.import_lines(table, [json.dumps({"row": "r2", "cells": [{"family": "cf", "qualifier": "b", "timestamp": 1, "type": "DeleteColumn"}]}).encode()],
                   "--format", "json")
    for batch in "0", "1", "2":
        expect(w.run("cellcount", "--batch", batch, table), "Total ROWS\t5\n", "Total CELLS\t9\n")
        expect(w.run("export", "--batch", batch, table, w.path()), "exported 5 rows, 9 cells")


def a_long_filter_ends_no_call(w):
    """A row costs its filter milliseconds, so that no row passes for longer than a call may take: servers then send heartbeats."""
    table, rows, took = w.table(splits=()), 0, 0
    while took < 3:
        w.import_lines(table, [json.dumps({"row": f"{'a' * 18}{i}", "cells": [
            {"family": "cf", "qualifier": q, "timestamp": 1, "value": "v"} for q in "xy"]}).encode()
            for i in range(rows, rows + 500)], "--format", "json")
        rows += 500
        begun = time.monotonic()
        assert w.run("rowcount", "--timeout", 1, "--regex", "(a|aa)+$", table).strip() == "ROWS=0"
        took = time.monotonic() - begun
    expect(w.run("cellcount", "--timeout", 1, "--batch", 1, "--regex", f"^(a|aa)+{rows - 1}$", table), "Total ROWS\t1\n", "Total CELLS\t2\n")


def copies(w):
    table, copy, renamed = w.filled(), w.table(splits=(b"r050", b"r333")), w.table(families=(b"new",))
    expect(w.run("copytable", "--versions", "9", "--new-name", copy, table), f"copied {ROWS} rows")
    assert w.same(table, copy)
    expect(w.run("copytable", "--families", "cf:new", "--start-time", "1010", "--end-time", "1020", "--new-name", renamed, table), "10 rows, 10 cells")
    expect(w.run("copytable", table, code=2), "the target is the table itself")
    expect(w.run("copytable", "--new-name", renamed, table, code=1), "NoSuchColumnFamilyException")


def differences_are_found(w):
    table, copy = w.filled(), w.table()
    w.run("copytable", "--versions", "9", "--new-name", copy, table)
    w.import_lines(copy, [b"r150\tother"], "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a")
    out = w.run("verify", "--batch-size", "1000", table, copy, code=1)
    expect(out, "different: 1 ranges of rows", "rows from 'r1")
    hashes = w.path("hashes")
    expect(w.run("verify", "--write", hashes, "--batch-size", "1000", "--hash-files", "2", table), f"hashed {ROWS} rows")
    assert sorted(p.name for p in hashes.iterdir()) == ["hashes", "manifest", "partitions"]
    assert w.run("verify", "--against", hashes, table).strip() == "equal"
    expect(w.run("verify", "--against", hashes, copy, code=1), "different: 1 ranges")
    expect(w.run("verify", "--write", hashes, table, code=1), "finished hashes")
    data = hashes / "hashes/part-r-00001/data"
    data.write_bytes(data.read_bytes()[:-7])
    expect(w.run("verify", "--against", hashes, table, code=1), "ends within a record")
    (hashes / "manifest").write_text("table=x\ntargetBatchSize=many\n")
    expect(w.run("verify", "--against", hashes, table, code=1), "manifest")


def canary_and_split(w):
    table = w.table(splits=(b"40000000",))
    expect(w.run("canary", table), "2 regions, 0 failed")
    expect(w.run("canary"), "hbase:meta", " 0 failed")
    expect(w.run("canary", "no_such_table", code=1), "FAILED")
    expect(w.run("canary", w.table(splits=())), "\n1 region, 0 failed")
    out = w.run("split", "--regions", "4", "--kind", "hex", table)
    assert [line.rpartition(" ")[2] for line in out.splitlines() if line.startswith("split ")] == ['"80000000"', '"c0000000"'], out
    expect(w.run("split", "--regions", "8", "--kind", "uniform", "--create", "cf", f"{table}_new"), "8 regions")
    expect(w.run("canary", f"{table}_new"), "8 regions, 0 failed")


# ---- bulk loads


def tsv_of(w, rows=ROWS):
    """Rows in no order; the last line of a row counts."""
    path = w.path("tsv")
    lines = [f"r{(i * 7) % rows:03d}\tA{i}\tB{i}\tG{i}\n" for i in range(rows)]
    path.write_text("".join(lines) + "bad\n" + "r005\tlast\tB\tG\n")
    return path


BULK = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x", "--timestamp", "77")


def bulk_loads_are_as_imports(w):
    path, put, loaded, spilled, divided = tsv_of(w), w.table(), w.table(), w.table(), w.table(splits=(b"r050", b"r150"))
    expect(w.run("import", *BULK, put, path), "Bad Lines=1")
    expect(w.run("bulkload", *BULK, loaded, path), "into 8 HFiles; loaded 8 HFiles; Bad Lines=1")
    assert w.same(put, loaded)
    expect(w.run("bulkload", *BULK, "--memory", "1M", spilled, path), "loaded 8 HFiles")
    assert w.same(put, spilled)
    out = w.bulk / f"hfiles{w.counter}"
    expect(w.run("bulkload", *BULK, "--output", out, "--no-load", put, path), "into 8 HFiles; loaded 0")
    expect(w.run("bulkload", "--keep", divided, out), "times divided")
    assert w.same(put, divided)
    expect(w.run("bulkload", *BULK, "--output", out, put, path, code=1), "is not empty")
    third = w.table()
    expect(w.run("bulkload", third, out), "loaded 8 HFiles")
    assert w.same(put, third)


def bulk_loads_are_refused(w):
    path, table = tsv_of(w), w.table()
    expect(w.run("bulkload", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a,no:b,g:c", table, path, code=1), "no column family no")
    expect(w.run("bulkload", *BULK, "--fail-on-bad-line", table, path, code=1), "bad line")
    if w.own:
        expect(w.run("bulkload", *BULK, "--output", w.path("elsewhere"), table, path, code=1), "rorqual.bulkload.folders")
    out = w.bulk / f"broken{w.counter}"
    (out / "cf").mkdir(parents=True)
    expect(w.run("bulkload", table, out, code=1), "no HFile")
    (out / "cf" / "x").write_bytes(b"no HFile")
    w.run("bulkload", table, out, code=1)
    (out / "nofamily").mkdir()
    shutil.rmtree(out / "cf")
    expect(w.run("bulkload", table, out, code=1), "no column family nofamily")
    assert w.run("rowcount", table).strip() == "ROWS=0"


MANY_SPLITS = tuple(b"r%03d" % i for i in range(30, 400, 30))


def folder_of(w, files=6):
    """Rows in no order, without timestamps, in several files: those of a later load would be further versions."""
    folder = w.path("folder")
    folder.mkdir()
    lines = [f"r{(i * 7) % ROWS:03d}\tA{i}\tB{i}\tG{i}\n" for i in range(ROWS)]
    for i in range(files):
        (folder / f"{i}").write_text("".join(lines[i::files]))
    return folder


def store_files(w, table):
    """How many files each store has."""
    stores = [s for s in (w.folder / f"data/data/default/{table}").glob("*/*") if s.name in ("cf", "g")]
    return [len([f for f in s.iterdir() if f.is_file() and not f.name.startswith(".")]) for s in stores]


def loaded_once(w, table, put):
    assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
    if w.own:
        counts = store_files(w, table)
        assert len(counts) == 2 * (len(MANY_SPLITS) + 1) and set(counts) == {1}, counts


def killed_bulk_loads_go_on(w):
    """Kills at random moments of the whole run, again and again until one run comes to its end."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, put = folder_of(w), w.table()
    w.run("import", *fields, put, folder)
    seed = int(os.environ.get("SEED", time.time_ns() % 2**32))
    chance = random.Random(seed)
    for number in range(int(os.environ.get("ROUNDS", 2))):
        table, work = w.table(splits=MANY_SPLITS), w.path("work")
        place = (("--output", str(w.bulk / f"out{w.counter}")), ("--progress", str(work)))[number % 2]
        if not w.own:
            place = ("--progress", str(work))
        command = [BINARY, "bulkload", "--zk", w.server.zk, *fields, "--jobs", "2", *place, table, str(folder)]
        kept = pathlib.Path(place[1]) / ("_rorqual_runs" if place[0] == "--output" else f"bulkload-{table}")
        kills, longest = 0, 0.1
        while True:
            begun = time.monotonic()
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                try:
                    text, _ = process.communicate(timeout=chance.random() * longest)
                except subprocess.TimeoutExpired:
                    process.kill()
                    text = process.communicate()[0]
            longest = max(longest, 0.8 * (time.monotonic() - begun)) * 1.1
            if process.returncode == 0:
                break
            assert process.returncode == -9, (seed, text)
            kills += 1
            left = [p.name for p in kept.iterdir()] if kept.exists() else []
            if not left and kills > 1 and len(set(store_files(w, table))) == 1 and store_files(w, table)[0] > 0:
                break  # killed behind its last step
        print(f"# {kills} kills, seed {seed}: {text.decode().strip()}")
        assert not kept.exists() or not any(kept.iterdir())
        loaded_once(w, table, put)


def a_load_that_was_killed_goes_on(w):
    """Kills while the regions' files are loaded: of text, of a folder of HFiles, and of copied ones."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, put = folder_of(w), w.table()
    w.run("import", *fields, put, folder)
    for options in ((), ("--keep",)):
        for made in (False, True):
            table, out = w.table(splits=MANY_SPLITS), w.bulk / f"made{w.counter}"
            command = [*options, *fields, "--output", out, table, folder]
            if made:
                w.run("bulkload", *fields, "--output", out, "--no-load", table, folder)
                command = [*options, table, out]
            journal, first = out / "_rorqual_load", None
            with subprocess.Popen([BINARY, "bulkload", "--zk", w.server.zk, *map(str, command)], stdout=subprocess.DEVNULL) as process:
                killed_when(process, lambda j=journal: j.exists() and j.read_text().count("\ndone ") >= 4)
            first = journal.read_text()
            assert not w.own or 0 < len([n for n in store_files(w, table) if n]) <= 2 * (len(MANY_SPLITS) + 1)
            other = w.table()
            if made:
                expect(w.run("bulkload", *options, other, out, code=1), "is not finished", "table=" + table)
            else:
                expect(w.run("bulkload", *options, *fields, "--skip-empty", "--output", out, table, folder, code=1), "begun by another command")
            output = w.run("bulkload", *command)
            again = int(output.split("loaded ")[1].split()[0])
            assert again <= 2 * (len(MANY_SPLITS) + 1) - 4, (output, first)
            if options:  # the call that was under way is in doubt: its two files may be there twice
                assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
                assert sum(store_files(w, table)) <= 2 * (len(MANY_SPLITS) + 1) + 2
            else:
                loaded_once(w, table, put)
            assert not journal.exists()


def a_load_that_divides_goes_on(w):
    """Killed while files of few regions are divided for many, and while the pieces are loaded."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, put = folder_of(w), w.table()
    w.run("import", *fields, put, folder)
    for condition in ("divided ", "done "):
        table, out = w.table(splits=MANY_SPLITS), w.bulk / f"few{w.counter}"
        w.run("bulkload", *fields, "--output", out, "--no-load", put, folder)
        journal = out / "_rorqual_load"
        with subprocess.Popen([BINARY, "bulkload", "--zk", w.server.zk, table, str(out)], stdout=subprocess.DEVNULL) as process:
            killed_when(process, lambda j=journal, c=condition: j.exists() and j.read_text().count("\n" + c) >= 3)
        w.run("bulkload", table, out)
        assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
        # The files end at r100, r200 and r300: two of these are inside of a region, which gets the ends of two files.
        counts = store_files(w, table)
        assert not w.own or sorted(counts) == [1] * (2 * len(MANY_SPLITS) - 2) + [2] * 4, counts
        assert not journal.exists() and not (out / "_rorqual_pieces").exists()


def hfiles_of(w, rows=ROWS):
    """A table of one region with the rows, and a folder with its two HFiles, one for each family."""
    put, folder, out = w.table(splits=()), w.path("rows"), w.bulk / f"whole{w.counter}"
    folder.write_text("".join(f"r{i:03d}\tA{i}\tB{i}\tG{i}\n" for i in range(rows)))
    w.run("import", *BULK, put, folder)
    w.run("bulkload", *BULK, "--output", out, "--no-load", put, folder)
    return put, out


def a_file_of_many_regions_is_divided(w):
    """Each file has 61 regions, and a name as long as HBase's."""
    put, out = hfiles_of(w)
    splits = tuple(b"r%03d" % i for i in range(5, 305, 5))
    table = w.table(splits=splits)
    assert all(len(p.name) == 32 for f in ("cf", "g") for p in (out / f).iterdir())
    expect(w.run("bulkload", table, out), f"loaded {2 * (len(splits) + 1)} HFiles", f"{2 * len(splits)} times divided")
    assert w.same(put, table)
    assert not w.own or set(store_files(w, table)) == {1}, store_files(w, table)


def a_name_of_any_length_is_loaded(w):
    put, out = hfiles_of(w)
    for family in "cf", "g":
        next((out / family).iterdir()).rename(out / family / ("n" * 255))
    table = w.table()
    w.run("bulkload", table, out)
    assert w.same(put, table)


def a_file_that_cannot_be_seen_is_not_loaded(w):
    """A family's folder is away between two attempts to load its files, and then there is a file in its place."""
    if not w.own:
        return
    put, out = hfiles_of(w)
    for there, error in (False, "No such file"), (True, "Not a directory"):
        # So many regions that the load is not over when the server is stopped.
        table, folder = w.table(splits=tuple(b"r%03d" % i for i in range(4, 400, 4))), w.bulk / f"away{w.counter}"
        shutil.copytree(out, folder)
        away, journal = folder / "_cf", folder / "_rorqual_load"
        command = [BINARY, "bulkload", "--zk", w.server.zk, table, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            hbase.wait_for(lambda j=journal: j.exists() and "\ndone " in j.read_text())
            pieces = folder / "_rorqual_pieces/cf"
            w.server.process.send_signal(signal.SIGSTOP)
            try:
                pieces.rename(away)
                if there:
                    pieces.write_text("")
            finally:
                w.server.process.send_signal(signal.SIGCONT)
            text = process.communicate(timeout=DEADLINE)[0]
        assert process.returncode == 1, text
        expect(text, error)
        if there:
            pieces.unlink()
        away.rename(pieces)
        w.run("bulkload", table, folder)
        assert w.same(put, table)


def server_is_idle(w):
    """It may execute the last call of a killed client."""
    with urllib.request.urlopen(f"http://{w.server.http}/rs-status?format=json&filter=all", timeout=DEADLINE) as page:
        return not any("rpcCall" in task for task in json.load(page))


def a_renamed_file_is_loaded(w):
    """Killed a second time, behind the renaming of a file that the first run was about to load; --keep or not, a piece or not."""
    put, whole = hfiles_of(w)
    for pieces in (False, True):
        for options in ((), ("--keep",)):
            table, out = w.table(splits=MANY_SPLITS), w.bulk / f"renamed{w.counter}"
            if pieces:
                shutil.copytree(whole, out)
            else:
                w.run("bulkload", *BULK, "--output", out, "--no-load", table, w.folder / whole.name.replace("whole", "rows"))
            journal, places = out / "_rorqual_load", [out / ("_rorqual_pieces" if pieces else "") / f for f in ("cf", "g")]
            with subprocess.Popen([BINARY, "bulkload", "--zk", w.server.zk, table, str(out)], stdout=subprocess.DEVNULL) as process:
                killed_when(process, lambda j=journal: j.exists() and j.read_text().count("\ndone ") >= 4)
            if w.own:
                hbase.wait_for(lambda: server_is_idle(w))
            text = journal.read_text()
            left = sorted(f for place in places for f in place.iterdir() if f"{f.relative_to(out)}\n" not in text)
            called = str(left[0].relative_to(out))
            now = left[0].stat()
            journal.write_text(text[:text.rindex("\n") + 1] + f"call {now.st_size} {now.st_mtime_ns // 1000000} {called}\n")
            left[0].rename(left[0].parent / hashlib.md5(f"again {called}".encode()).hexdigest())
            w.run("bulkload", *options, table, out)
            assert w.same(put, table)
            assert not journal.exists() and not (out / "_rorqual_pieces").exists()


def place_of(work):
    """The staging folder that a work folder names, or None."""
    try:
        text = (work / "place").read_text()
        return pathlib.Path(text[text.index("/"):])
    except FileNotFoundError:
        return None


def killed_while_it_loads(w, table, place, folder):
    """A bulk load of text, killed between two calls of it."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    command = ["bulkload", *fields, *map(str, place), table, folder]

    def has_loaded_some():
        output = place[1] if place[0] == "--output" else place_of(place[1] / f"bulkload-{table}")
        journal = output and output / "_rorqual_load"
        return journal and journal.exists() and journal.read_text().count("\ndone ") >= 4

    with subprocess.Popen([BINARY, command[0], "--zk", w.server.zk, *map(str, command[1:])], stdout=subprocess.DEVNULL) as process:
        killed_when(process, has_loaded_some)
    return command


def a_load_killed_at_its_end_leaves_nothing(w):
    """The step says that all is loaded; what the load needed to go on is still there."""
    table, out, folder = w.table(splits=MANY_SPLITS), w.bulk / f"end{w.counter}", folder_of(w)
    command = killed_while_it_loads(w, table, ("--output", out), folder)
    (out / "_rorqual_pieces").mkdir()
    step = out / "_rorqual_runs/step"
    step.write_text(step.read_text().replace("merged", "loaded"))
    w.run(*command)
    assert not list(out.glob("_rorqual*")), list(out.iterdir())


def a_staging_folder_is_removed_before_it_is_forgotten(w):
    """The server refuses to remove what the work folder names: the work folder has to stay."""
    if not w.own:
        return
    table, work, folder = w.table(splits=MANY_SPLITS), w.path("work"), folder_of(w)
    command = killed_while_it_loads(w, table, ("--progress", work), folder)
    kept = work / f"bulkload-{table}"
    staging, step, wrong = place_of(kept), kept / "step", w.path("nostaging")
    wrong.mkdir()
    step.write_text(step.read_text().replace("merged", "loaded"))
    (kept / "place").write_text(f"file:{wrong}")
    expect(w.run(*command, code=1), "CleanupBulkLoad")
    assert step.exists()
    (kept / "place").write_text(f"file:{staging}")
    before = shutil.copytree(kept, w.path("before"))
    for _ in range(2):  # the second time as after a kill between the two
        expect(w.run(*command), f"sorted {ROWS} rows")
        assert not kept.exists() and not staging.exists()
        shutil.copytree(before, kept)


def a_bulk_load_of_changed_input_is_refused(w):
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, table, work = folder_of(w), w.table(), w.path("work")
    command = [BINARY, "bulkload", "--zk", w.server.zk, *fields, "--jobs", "1", "--rate", "3K", "--progress", str(work), table, str(folder)]
    with subprocess.Popen(command) as process:
        expect(first_line_of_refusal(w, process, fields, work, table, folder), "is in use")
        killed_when(process, lambda: (work / f"bulkload-{table}" / "00001").exists())
    os.utime(folder / "5", (1, 1))
    expect(w.run("bulkload", *fields, "--progress", work, table, folder, code=1), "the input has changed")
    shutil.rmtree(work)
    expect(w.run("bulkload", *fields, "--progress", work, table, folder), f"sorted {ROWS} rows")
    assert not (work / f"bulkload-{table}").exists()


def first_line_of_refusal(w, process, fields, work, table, folder):
    """What a second one at the same time is told."""
    until = time.monotonic() + DEADLINE
    while not (work / f"bulkload-{table}" / "plan").exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.005)
    return w.run("bulkload", *fields, "--progress", work, table, folder, code=1)


# ---- HBase's own tools


def hbase_imports_our_export(w):
    table, folder, copy = w.filled(), w.path(), w.table()
    w.run("export", "--versions", "9", "--raw", table, folder)
    w.java(MAPREDUCE + "Import", copy, f"file://{folder}")
    assert w.same(table, copy)
    w.java(MAPREDUCE + "RowCounter", copy, f"--expectedCount={ROWS}")


def we_import_exports_of_hbase(w):
    table = w.filled()
    for kind in (None, "RECORD", "BLOCK"):
        folder, copy = w.path(f"hbase{kind}"), w.table()
        compress = () if kind is None else ("-Dmapreduce.output.fileoutputformat.compress=true",
                                            f"-Dmapreduce.output.fileoutputformat.compress.type={kind}")
        w.java(MAPREDUCE + "Export", *compress, table, f"file://{folder}", "9")
        expect(w.run("import", copy, folder), f"imported {ROWS} rows")
        assert w.same(table, copy), kind


def importtsv_and_ours_agree(w):
    path, ours, theirs = tsv_of(w), w.table(), w.table()
    w.run("import", *BULK, ours, path)
    w.java(MAPREDUCE + "ImportTsv", "-Dimporttsv.columns=HBASE_ROW_KEY,cf:b,cf:a,g:x", "-Dimporttsv.timestamp=77", theirs, f"file://{path}")
    assert w.same(ours, theirs)


def hashes_of_hbase_and_ours_agree(w):
    table, copy = w.filled(), w.table()
    theirs, ours = w.path("theirs"), w.path("ours")
    options = ("--batchsize=1000", "--numhashfiles=3")
    w.java(MAPREDUCE + "HashTable", *options, table, f"file://{theirs}")
    w.run("verify", "--write", ours, "--batch-size", "1000", "--hash-files", "3", table)
    assert w.run("verify", "--against", theirs, table).strip() == "equal"
    expect(w.run("verify", "--against", theirs, copy, code=1), "different")
    w.run("copytable", "--stop-row", "r200", "--new-name", copy, table)
    w.java(MAPREDUCE + "SyncTable", f"file://{ours}", table, copy)
    assert w.run("verify", table, copy).strip() == "equal"


def hbase_loads_our_hfiles(w):
    path, put, loaded = tsv_of(w), w.table(), w.table(splits=(b"r123",))
    w.run("import", *BULK, put, path)
    out = w.bulk / f"hbase{w.counter}"
    w.run("bulkload", *BULK, "--output", out, "--no-load", put, path)
    shutil.rmtree(out / "_rorqual_runs", ignore_errors=True)
    w.java("org.apache.hadoop.hbase.tool.BulkLoadHFilesTool", f"file://{out}", loaded)
    assert w.same(put, loaded)


ALONE = [every_format_gives_the_table_back, raw_exports_keep_deletes, options_of_export_select_cells,
         text_that_a_format_cannot_hold_is_refused, tsv_has_the_columns_of_importtsv, bad_lines_are_named_and_counted,
         line_ends_are_those_of_hadoop, a_killed_export_goes_on, a_killed_import_goes_on, a_killed_copy_goes_on, tags_are_kept,
         two_at_once_are_refused, a_rate_is_kept, a_full_disk_loses_nothing, lost_output_is_a_failure, damaged_sequence_files_are_named, wrong_names_are_refused, what_fails_leaves_no_folder,
         tables_without_rows, counts, rows_in_parts_are_counted_once, a_long_filter_ends_no_call, copies,
         differences_are_found, canary_and_split, bulk_loads_are_as_imports, bulk_loads_are_refused,
         killed_bulk_loads_go_on, a_load_that_was_killed_goes_on, a_load_that_divides_goes_on,
         a_renamed_file_is_loaded, a_file_of_many_regions_is_divided, a_name_of_any_length_is_loaded,
         a_file_that_cannot_be_seen_is_not_loaded, a_load_killed_at_its_end_leaves_nothing,
         a_staging_folder_is_removed_before_it_is_forgotten, a_bulk_load_of_changed_input_is_refused]
WITH_JAVA = [hbase_imports_our_export, we_import_exports_of_hbase, importtsv_and_ours_agree, hashes_of_hbase_and_ours_agree,
             hbase_loads_our_hfiles]


def main():
    report = Report()
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        world = World(pathlib.Path(folder).resolve())
        report.run("transfer", world, ALONE + (WITH_JAVA if os.environ.get("JAVA") != "0" else []), wanted)
        world.client.close()
        if world.own:
            report.outcome("transfer/the server stops cleanly", world.server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
