#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rorqual export, import, bulkload, copytable, verify, rowcount, cellcount, canary and split on a server: every format exported
and imported, interrupted transfers, bad input, a full disk. HBase's tools Export, Import, ImportTsv, HashTable, SyncTable,
RowCounter and BulkLoadHFilesTool read the files that our tools write, and vice versa.

    transfer.py                                          starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port MASTER=host:port RS=host:port transfer.py   tests a running server, such as a real HBase
    JAVA=0                                               skips HBase's tools

Ends with 'N passed, N failed'.
"""
import fcntl
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import hbase
import transfer_bulk
from hbase import number, text
from rorqual import BINARY, Report, read_terminal
from transfer_bulk import BULK, tsv_of
from transfer_world import DEADLINE, MAPREDUCE, ROWS, World, expect, killed_amid, lines_of, shell

PATIENT = ("canary", "--slow", "3600000")  # milliseconds: no region is slow, even on a busy machine

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
    expect(w.run("export", "--raw", "--versions", "9", table, folder), "exported 1 row, 7 cells")
    expect(w.run("import", copy, folder), "imported 1 row, 7 cells")
    assert w.run("verify", "--raw", "--versions", "9", table, copy).strip() == "equal"


def options_of_export_select_cells(w):
    table = w.filled()
    for options, rows in ((("--prefix", "r01"), 10), (("--regex", "^r..7$"), ROWS // 10), (("--start-row", "r395"), 5),
                          (("--stop-row", "r005"), 5), (("--columns", "g"), ROWS), (("--start-time", "1100", "--end-time", "1103"), 3),
                          (("--columns", "cf:nothing"), 0)):
        expect(w.run("export", *options, table, w.path()), f"exported {rows} rows")
    expect(w.run("export", "--versions", "9", "--start-row", "r000", "--stop-row", "r001", table, w.path()), "3 cells")
    expect(w.run("export", "--batch", "1", "--stop-row", "r001", table, w.path()), "exported 1 row, 2 cells, ", " bytes in 1 part\n")
    w.run("export", "--start-time", "9", "--end-time", "5", table, w.path(), code=1)


def text_that_a_format_cannot_hold_is_refused(w):
    table = w.filled(3)
    expect(w.run("export", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, w.path(), code=1), "--escape")
    expect(w.run("export", "--format", "tsv", table, w.path(), code=2), "--fields")
    expect(w.run("import", "--format", "csv", "--fields", "cf:a,cf:b", table, w.path(), code=1), "HBASE_ROW_KEY")
    expect(w.import_lines(table, [b"r,a|b,x"], "--format", "csv", "--fields", "HBASE_ROW_KEY,HBASE_CELL_VISIBILITY,cf:a", code=1),
           "the cluster has no visibility labels")


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
    expect(w.import_lines(table, [b"r4\t6\t\t\t\t0"], "--format", "tsv", "--fields", fields, "--skip-empty"), "imported 1 row, 0 cells")
    folder = w.path("few")
    expect(w.run("export", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a,cf:none", table, folder), "exported 2 rows, 2 cells")
    assert lines_of(folder) == [b"r1\tA\t", b"r2\t\t"], lines_of(folder)  # r3 has none of the columns
    expect(w.import_lines(table, [b"r9|x|y"], "--format", "tsv", "--separator", "|", "--fields", "HBASE_ROW_KEY,cf:a,cf:b"),
           "imported 1 row, 2 cells")


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
    expect(out, "imported 1 row,", "Bad Lines=2")


def line_ends_are_those_of_hadoop(w):
    table = w.table()
    path = w.path()
    path.write_bytes(b"r1\ta\r\nr2\tb\rr3\tc\nr4\td")
    expect(w.run("import", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, path), "imported 4 rows")
    path.write_bytes(b"")
    expect(w.run("import", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", table, path), "imported 0 rows")


# ---- interruptions


def a_killed_export_goes_on(w):
    table, copy = w.filled(), w.table()

    def prepare():
        folder = w.path()
        return ([BINARY, "export", "--zk", w.server.zk, "--versions", "9", "--jobs", "1", "--rate", "30K", table, folder],
                (folder / "_rorqual/export/part-00001.draft").exists, folder)
    folder = killed_amid(prepare)
    assert not (folder / "_SUCCESS").exists()
    finished = (folder / "part-m-00000").stat().st_mtime_ns
    expect(w.run("export", table, folder, code=1), "was begun by another command")
    expect(w.run("export", "--versions", "9", table, folder), "; 1 part was done before")
    assert (folder / "part-m-00000").stat().st_mtime_ns == finished
    w.run("import", copy, folder)
    assert w.same(table, copy)
    expect(w.run("export", "--versions", "9", table, folder, code=1), "has a finished export")


def a_killed_import_goes_on(w):
    table, folder = w.filled(), w.path()
    w.run("export", "--versions", "9", table, folder)

    def prepare():
        copy = w.table()
        progress = folder / f"_rorqual/import-{copy}"
        return ([BINARY, "import", "--zk", w.server.zk, "--jobs", "1", "--rate", "30K", copy, folder], (progress / "00000").exists,
                (copy, progress))
    copy, progress = killed_amid(prepare)
    assert not w.run("verify", "--versions", "9", table, copy, code=1).startswith("equal")
    part = folder / "part-m-00003"
    whole, time_ns = part.read_bytes(), part.stat().st_mtime_ns
    # A longer file; and a file of the same length with another byte.
    for other in (whole + b"x", whole[:-1] + bytes([whole[-1] ^ 1])):
        part.write_bytes(other)
        expect(w.run("import", copy, folder, code=1), "the input has changed")
    part.write_bytes(whole)
    os.utime(part, ns=(time_ns, time_ns))
    plan = progress / "plan"
    text = plan.read_text()
    plan.write_text(re.sub(r" of \d+ ", " ", text))  # a plan of an earlier version
    expect(w.run("import", copy, folder, code=1), "an older version of rorqual")
    plan.write_text(text)
    expect(w.run("import", copy, folder), "; 1 part was done before")
    assert w.same(table, copy) and not progress.exists()


def a_killed_copy_goes_on(w):
    table = w.filled()

    def prepare():
        copy, progress = w.table(), w.path()
        return ([BINARY, "copytable", "--zk", w.server.zk, "--versions", "9", "--jobs", "1", "--rate", "30K", "--new-name", copy,
                 "--progress", progress, table], (progress / f"copytable-{copy}/00000").exists, (copy, progress))
    copy, progress = killed_amid(prepare)
    assert not w.run("verify", "--versions", "9", table, copy, code=1).startswith("equal")
    expect(w.run("copytable", "--new-name", copy, "--progress", progress, table, code=1), "was begun by another command")
    # The ranges of the first run are used, even if the table has been split since.
    w.client.split(table, b"r050")
    expect(w.run("copytable", "--versions", "9", "--new-name", copy, "--progress", progress, table), "; 1 part was done before")
    assert w.same(table, copy) and not progress.exists()
    plan = progress / f"copytable-{copy}"
    plan.mkdir(parents=True)
    (plan / "plan").write_text("rorqual plan 1\nstamp 1\n")
    expect(w.run("copytable", "--new-name", copy, "--progress", progress, table, code=1), "plan is damaged")
    assert (plan / "plan").exists()


def a_copy_that_has_copied_nothing_leaves_nothing(w):
    """The target table is missing or lacks a family; files that the copy needs to continue remain, and so does a folder
    that existed before."""
    table, copy, poor = w.filled(), w.table(), "poor"
    shell(w, f"create '{poor}', 'other'")
    new, there = w.path(), w.path()
    there.mkdir()
    for folder in (new, there):
        for target in ("no_such_table", poor):
            w.run("copytable", "--new-name", target, "--progress", folder, table, code=1)
            assert (folder.exists() and list(folder.iterdir())) == (False if folder == new else []), (folder, target)
        w.run("copytable", "--versions", "9", "--new-name", copy, "--progress", folder, table)
        assert w.same(table, copy) and folder.exists() == (folder == there) and not (there.exists() and list(there.iterdir()))


def tags_are_kept(w):
    """A cell's time to live is a tag: exports, imports and copies keep it; so do results and lines of text."""
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


# Of a table: the third region's name, and the address that hbase:meta has for the first region.
SERVER_OF_REGION = """rows = get_table('hbase:meta')._scan_internal({ROWPREFIXFILTER => '%s,', COLUMNS => ['info:regioninfo', 'info:server']})
name = rows.keys.find { |key| key.include?(',r200,') }
address = rows.values[0]['info:server'][/value=(.*)/, 1]
"""


def a_region_without_a_server_is_waited_for(w):
    """hbase:meta does not say where a region is, as while it is opened for the first time: its rows are not left out."""
    table, copy, folder = w.filled(), w.table(), w.path()
    region = SERVER_OF_REGION % table
    shell(w, region + "deleteall 'hbase:meta', name, 'info:server'")
    with subprocess.Popen([BINARY, "export", "--zk", w.server.zk, "--versions", "9", table, folder], stdout=subprocess.DEVNULL) as process:
        hbase.wait_for(lambda: process.poll() is not None or (folder / "_rorqual/export/plan").exists())
        shell(w, region + "put 'hbase:meta', name, 'info:server', address")
        assert process.wait(DEADLINE) == 0
    w.run("import", copy, folder)
    assert w.same(table, copy)


def two_at_once_are_refused(w):
    table, folder = w.filled(), w.path()
    command = [BINARY, "export", "--zk", w.server.zk, "--jobs", "1", "--rate", "1K", table, str(folder)]
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


def bars_are_shown_on_a_terminal(w):
    """A bar appears after a second, grows, and is erased at the end. The rate makes each command take several seconds."""
    table, folder, copy = w.filled(), w.path(), w.table()
    bar = re.compile(rb"\r(\w+) \[#* *\] +(\d+) %, \d+ \w+ left \x1b\[K")
    for name, *arguments in (("export", table, folder), ("import", copy, folder), ("copy", "--new-name", w.table(), table), ("verify", table, copy)):
        ours, theirs = os.openpty()
        command = [BINARY, "copytable" if name == "copy" else name, "--zk", w.server.zk, "--jobs", "1", "--rate", "30K", *map(str, arguments)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            written = read_terminal(ours)
        assert process.returncode == 0 and written.endswith(b"\r\x1b[K"), (name, process.returncode, written)
        bars = bar.findall(written)
        shares = [int(share) for _, share in bars]
        assert {word.decode() for word, _ in bars} == {name} and shares == sorted(shares) and len(set(shares)) > 1, (name, written)


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
    for arguments in (["rowcount", "--zk", w.server.zk, table], ["cellcount", "--zk", w.server.zk, table], [*PATIENT, "--zk", w.server.zk, table],
                      ["export", "--zk", w.server.zk, table, str(w.path("lost"))], ["export", "--help"], ["version"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 1 and done.stderr == f"rorqual {arguments[0]}: standard output could not be written\n", f"{arguments}: {done}"


def damaged_sequence_files_are_named(w):
    table, folder, copy = w.filled(), w.path(), w.table()
    w.run("export", table, folder)
    whole = (folder / "part-m-00000").read_bytes()
    for i, (bytes_, said) in enumerate(((whole[:-10], "ends within a record"), (whole[:60], "damaged or cut header"), (b"PAR1" + whole, "not a SequenceFile"),
                          (whole[:3] + b"\x05" + whole[4:], "version 5"), (whole.replace(b"client.Result", b"client.Put...", 1), "its values have class"),
                          (whole.replace(b"ImmutableBytesWritable", b"ImmutableBytesWritablf", 1), "its keys have class"),
                          (whole.replace(b"r005", b"r99\xff", 1), "is not a Result of the row in its key"), (b"", "is empty"))):
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
    """A folder that existed before stays, and so does a folder with content. A load that fails before it has sent or sorted a row
    leaves nothing."""
    new, there, full, bad, table = w.path(), w.path(), w.path(), w.path("bad"), w.table()
    there.mkdir()
    full.mkdir()
    (full / "file").touch()
    bad.write_text("bad\nr1\tgood\n")
    text = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", "--fail-on-bad-line")
    for folder in (new, there, full):
        for command in (("export", "no_such_table", folder), ("verify", "--write", folder, "no_such_table"),
                        ("copytable", "--new-name", "other", "--progress", folder, "no_such_table"),
                        ("import", *text, "--progress", folder, "no_such_table", bad), ("import", *text, "--progress", folder, table, bad),
                        ("bulkload", *text, "--progress", folder, "--output", w.bulk / "failed", table, bad)):
            w.run(*command, code=1)
            left = folder.exists() and [p.name for p in folder.iterdir()]
            assert left == {new: False, there: [], full: ["file"]}[folder], (command, left)
    w.run("bulkload", *text, "--output", w.bulk / "failed", table, bad, code=1)
    assert not (w.bulk / "failed").exists()
    w.run("import", *text, table, bad, code=1)
    assert not list(w.folder.glob(f"_rorqual/file/{bad.name}/*")), list(w.folder.iterdir())


def the_progress_of_a_file_does_not_disturb_its_folder(w):
    """A file is imported and its progress kept; then its folder is, as HBase's tools would read it; and a table with the longest name."""
    table, folder = w.table(), w.path()
    folder.mkdir()
    (folder / "a").write_text("r1\tgood\nbad\n")
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", "--timestamp", "5")
    w.run("import", *fields, "--fail-on-bad-line", table, folder / "a", code=1)
    assert [p.name for p in folder.iterdir() if not p.name.startswith(("_", "."))] == ["a"], list(folder.iterdir())
    w.run("import", *fields, table, folder)
    longest = w.table(name=f"t{os.getpid()}_".ljust(255, "n"))
    w.run("import", *fields, longest, folder / "a")
    w.run("import", *fields, "--progress", w.path(), longest, folder)
    w.run("copytable", "--new-name", longest, "--progress", w.path(), table)
    w.run("bulkload", *fields, "--progress", w.path(), "--output", w.bulk / "longest", longest, folder)
    assert w.same(table, longest)


def a_load_that_has_sent_rows_keeps_its_progress(w):
    table, progress, path = w.table(), w.path(), w.path("bad")
    path.write_text("r1\tgood\nbad\n")
    w.run("import", "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a", "--fail-on-bad-line", "--progress", progress, table, path, code=1)
    assert (progress / f"import-{table}/plan").exists()


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
    """The first part of r2 is marked as if another part followed, but the cell of that part is deleted."""
    table = w.table(splits=())
    cells = [{"family": "cf", "qualifier": q, "timestamp": 1, "value": q} for q in "ab"]
    w.import_lines(table, [json.dumps({"row": f"r{i}", "cells": cells}).encode() for i in range(5)], "--format", "json")
    w.import_lines(table, [json.dumps({"row": "r2", "cells": [{"family": "cf", "qualifier": "b", "timestamp": 1, "type": "DeleteColumn"}]}).encode()],
                   "--format", "json")
    for batch in "0", "1", "2":
        expect(w.run("cellcount", "--batch", batch, table), "Total ROWS\t5\n", "Total CELLS\t9\n")
        expect(w.run("export", "--batch", batch, table, w.path()), "exported 5 rows, 9 cells")


def a_long_filter_ends_no_call(w):
    """The filter takes milliseconds per row, so no row passes for longer than a call's time-out: servers then send heartbeats."""
    table, rows = w.table(splits=()), 0

    def count(*options):
        begun = time.monotonic()
        assert w.run("rowcount", *options, "--regex", "(a|aa)+$", table).strip() == "ROWS=0"
        return time.monotonic() - begun
    # The time-out is a third of the current duration of a count on this machine. Servers respond after half of the time-out; the
    # rest is for pauses of a busy machine. After a longer pause it is repeated with more rows.
    until = time.monotonic() + DEADLINE
    while True:
        w.import_lines(table, [json.dumps({"row": f"{'a' * 18}{i}", "cells": [
            {"family": "cf", "qualifier": q, "timestamp": 1, "value": "v"} for q in "xy"]}).encode()
            for i in range(rows, rows + 500)], "--format", "json")
        rows += 500
        timeout = int(count() / 3)
        try:
            took = count("--timeout", timeout) if timeout > 0 else 0
            if took > 2 * timeout:
                out = w.run("cellcount", "--timeout", timeout, "--batch", 1, "--regex", f"^(a|aa)+{rows - 1}$", table)
                break
        except AssertionError:
            if time.monotonic() > until:
                raise
    expect(out, "Total ROWS\t1\n", "Total CELLS\t2\n")


def copies(w):
    table, copy, renamed = w.filled(), w.table(splits=(b"r050", b"r333")), w.table(families=(b"new",))
    expect(w.run("copytable", "--versions", "9", "--new-name", copy, table), f"copied {ROWS} rows")
    assert w.same(table, copy)
    expect(w.run("copytable", "--families", "cf:new", "--start-time", "1010", "--end-time", "1020", "--new-name", renamed, table), "10 rows, 10 cells")
    expect(w.run("copytable", table, code=2), "the target is the source table")
    expect(w.run("copytable", "--new-name", renamed, table, code=1), "NoSuchColumnFamilyException")


def differences_are_found(w):
    table, copy = w.filled(), w.table()
    w.run("copytable", "--versions", "9", "--new-name", copy, table)
    w.import_lines(copy, [b"r150\tother"], "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a")
    out = w.run("verify", "--batch-size", "1000", table, copy, code=1)
    expect(out, "different: 1 ranges of rows", "rows from 'r1")
    assert "''" not in w.run("verify", "--batch-size", "1", table, w.table(), code=1)
    one_region, empty = w.table(splits=()), w.table(splits=())
    w.import_lines(one_region, [b"r150\tother"], "--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:a")
    expect(w.run("verify", one_region, empty, code=1), "rows differ: the range is the whole table", "different: 1 ranges of rows")
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
    expect(w.run(*PATIENT, table), "2 regions, 0 failed")
    expect(w.run(*PATIENT), "hbase:meta", " 0 failed")
    expect(w.run(*PATIENT, "no_such_table", table, code=4), "FAILED\tno_such_table", "2 regions, 0 failed; 1 table failed")
    expect(w.run(*PATIENT, w.table(splits=())), "\n1 region, 0 failed")
    out = w.run("split", "--regions", "4", "--kind", "hex", table)
    assert [line.rpartition(" ")[2] for line in out.splitlines() if line.startswith("split ")] == ['"80000000"', '"c0000000"'], out
    expect(w.run("split", "--regions", "8", "--kind", "uniform", "--create", "cf", f"{table}_new"), "8 regions")
    expect(w.run(*PATIENT, f"{table}_new"), "8 regions, 0 failed")


def the_canary_sees_regions_without_a_server(w):
    """As HBase's Canary does. A table of which no region has a server is still enabled; a disabled table is skipped."""
    part, whole, disabled = w.table(splits=(b"m",)), w.table(splits=()), w.table(splits=())
    first, last, only = (w.client.regions(t)[at][1] for t, at in ((part, 0), (part, 1), (whole, 0)))
    for name in (last, only):
        w.client.master.call("UnassignRegion", text(1, hbase.region(name)) + number(2, 0))
    shell(w, f"disable '{disabled}'")
    out = w.run(*PATIENT, part, code=5)
    expect(out, f"ok\t{first.decode()}", f"FAILED\t{last.decode()}", "2 regions, 1 failed")
    out = w.run(*PATIENT, code=5)
    expect(out, f"FAILED\t{last.decode()}", f"FAILED\t{only.decode()}")
    assert disabled not in out, out
    expect(w.run(*PATIENT, "no_such_table", part, code=4), "2 regions, 1 failed; 1 table failed")
    expect(w.run(*PATIENT, disabled), f"skipped\t{disabled}\tnot enabled", "0 regions, 0 failed")
    skipped = json.loads(w.run(*PATIENT, "--json", disabled))
    assert skipped["state"] == "skipped" and skipped["reason"] == "not enabled" and "error" not in skipped, skipped
    assert w.run(*PATIENT, "--quiet", disabled) == ""
    for name in (last, only):
        w.client.master.call("AssignRegion", text(1, hbase.region(name)))
    expect(w.run(*PATIENT, part, whole), "3 regions, 0 failed")


def codes_of_the_canary_are_those_of_hbase(w):
    """1: the arguments are wrong; 2: there is no cluster, or 4 if tables are named. The other codes have tests of their own."""
    for wrong in (("--wrong",), ("--slow", "x"), ("--slow", "3600001"), ("--zk", "no address")):
        w.run("canary", *wrong, code=1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        for tables, code in ((), 2), (("t",), 4):
            w.run("canary", *tables, zk=f"127.0.0.1:{nobody.getsockname()[1]}", code=code)


def the_canary_overlooks_tables_that_go_away(w):
    """A table is disabled, then one is disabled and dropped, while the canary reads it. The table's lines are three times as long as the 8 kB
    that the pipe and the canary's own buffer hold, so the canary waits within them until they are read."""
    splits = tuple(b"%03d" % i for i in range(1, 256))
    for end, rest in (("disable '{0}'", "drop '{0}'"), ("disable '{0}'; drop '{0}'", "")):
        table, after = w.table(splits=splits), w.table(splits=())
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen([BINARY, *PATIENT, "--zk", w.server.zk, table, after], stdout=writer) as canary, os.fdopen(reader) as lines:
            os.close(writer)
            first = lines.readline()
            shell(w, end.format(table))
            out = first + lines.read()
        assert canary.returncode == 0, (canary.returncode, out)
        read = out.count("ok\t")
        assert 0 < read < 256 and "FAILED" not in out, out
        expect(out, f"skipped\t{table}\tnot enabled", f"ok\t{after},", f"\n{read} regions, 0 failed")
        shell(w, rest.format(table))


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


def canaries_of_hbase_and_ours_agree(w):
    part, disabled = w.table(splits=(b"m",)), w.table(splits=())
    unserved = w.client.regions(part)[1][1]
    w.client.master.call("UnassignRegion", text(1, hbase.region(unserved)) + number(2, 0))
    shell(w, f"disable '{disabled}'")
    for table, code in (("no_such_table", 4), (part, 5), (disabled, 0)):
        w.java("org.apache.hadoop.hbase.tool.CanaryTool", "-Dhbase.client.retries.number=1", table, code=code)
        w.run(*PATIENT, table, code=code)
    w.client.master.call("AssignRegion", text(1, hbase.region(unserved)))


ALONE = [every_format_gives_the_table_back, raw_exports_keep_deletes, options_of_export_select_cells,
         text_that_a_format_cannot_hold_is_refused, tsv_has_the_columns_of_importtsv, bad_lines_are_named_and_counted,
         line_ends_are_those_of_hadoop, a_killed_export_goes_on, a_killed_import_goes_on, a_killed_copy_goes_on, a_copy_that_has_copied_nothing_leaves_nothing, tags_are_kept,
         a_region_without_a_server_is_waited_for, two_at_once_are_refused, a_rate_is_kept, bars_are_shown_on_a_terminal, a_full_disk_loses_nothing, lost_output_is_a_failure, damaged_sequence_files_are_named,
         wrong_names_are_refused, what_fails_leaves_no_folder, the_progress_of_a_file_does_not_disturb_its_folder, a_load_that_has_sent_rows_keeps_its_progress, tables_without_rows, counts, rows_in_parts_are_counted_once,
         a_long_filter_ends_no_call, copies, differences_are_found, canary_and_split, the_canary_sees_regions_without_a_server,
         codes_of_the_canary_are_those_of_hbase, the_canary_overlooks_tables_that_go_away]
WITH_JAVA = [hbase_imports_our_export, we_import_exports_of_hbase, importtsv_and_ours_agree, hashes_of_hbase_and_ours_agree,
             hbase_loads_our_hfiles, canaries_of_hbase_and_ours_agree]


def main():
    report = Report()
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        world = World(pathlib.Path(folder).resolve())
        report.run("transfer", world, ALONE + transfer_bulk.ALONE + (WITH_JAVA if os.environ.get("JAVA") != "0" else []), wanted)
        world.client.close()
        if world.own:
            report.outcome("transfer/the server stops cleanly", world.server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
