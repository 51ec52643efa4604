#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data folders written by earlier versions, tests/data/folders/VERSION.tar.xz: this version opens each of them, every row is
compared, new rows are written, and `rorqual fsck --blocks` finds no problem, before and after.

    upgrade.py                 opens all folders
    upgrade.py --make VERSION  makes the folder of this version once, when the version is tagged; the folder is never replaced

Each tag of a release, vVERSION, must have its folder. An archive has two folders, `stopped` and `killed` (with edits in the log),
and rows.json, the acknowledged rows. The folders contain compressed and encoded families, MOB values, versions, a disabled table, a
split table whose halves are references, and procedures' records; from 2026-11-25 on also each codec, and increments with nonces, in
files of nonces and in the log. Folders of newer versions must be refused unchanged.
"""
import base64
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import hbase
import rorqual
from hbase import number, text
from backup import regions_of, run, succeeds

FOLDERS = rorqual.ROOT / "tests/data/folders"
BYTES_MAX = 400_000
TABLES = {
    "plain": {"f": {}, "g": {"VERSIONS": "3"}},
    "packed": {"gz": {"COMPRESSION": "GZ", "DATA_BLOCK_ENCODING": "FAST_DIFF", "BLOOMFILTER": "ROWCOL"}},
    "large": {"m": {"IS_MOB": "true", "MOB_THRESHOLD": "100"}},
    "split": {"f": {}},
    "idle": {"f": {}},
    "codecs": {"s": {"COMPRESSION": "SNAPPY", "DATA_BLOCK_ENCODING": "ROW_INDEX_V1"}, "z": {"COMPRESSION": "ZSTD", "DATA_BLOCK_ENCODING": "DIFF"},
               "l": {"COMPRESSION": "LZ4", "DATA_BLOCK_ENCODING": "PREFIX"}, "o": {"COMPRESSION": "LZO"}, "b": {"COMPRESSION": "BZIP2"}},
    "counted": {"f": {}},
}


def cells_of(table, i, kind):
    if table == "large":
        return {(b"m", b"q"): b"%s %d " % (kind, i) * 40}
    if table == "packed":
        return {(b"gz", b"q%d" % (i % 3)): b"%s %d" % (kind, i)}
    if table == "plain":
        return {(b"f", b"q"): b"%s %d" % (kind, i), (b"g", b"q"): b"%d" % i}
    if table == "codecs":
        return {(family.encode(), b"q"): b"%s %d " % (kind, i) * 9 for family in TABLES["codecs"]}
    return {(b"f", b"q"): b"%s %d" % (kind, i)}


def count(client, times, rows):
    """Makes increments with nonces, which the region keeps."""
    name = regions_of(client, "counted")[0][1]
    for i in range(times):
        row = b"n%d" % (i % 7)
        counted = rows.setdefault("counted", {}).setdefault(row, {})
        column = text(3, text(1, b"f") + text(2, text(1, b"n") + text(2, struct.pack(">q", i))))
        change = text(1, row) + number(2, 1) + column + number(9, hbase.nonce())
        client.data.call("Mutate", text(1, hbase.region(name)) + text(2, change) + number(4, 4711))
        counted[(b"f", b"n")] = struct.pack(">q", i + struct.unpack(">q", counted.get((b"f", b"n"), bytes(8)))[0])


def put_rows(client, table, count, kind, rows):
    regions = regions_of(client, table)
    for i in range(count):
        row = b"%c%03d" % (97 + i % 26, i)
        name = [r for r in regions if r[0] <= row][-1][1]
        cells = cells_of(table, i, kind)
        client.data.put(name, row, cells)
        rows.setdefault(table, {}).setdefault(row, {}).update(cells)


def flush_all(client, table):
    for _, _, encoded in regions_of(client, table):
        client.flush(encoded)


def split(client, table):
    info = client.data.get(b"1588230740", regions_of(client, table)[0][1])[(b"info", b"regioninfo")][4:]
    client.procedure(client.master.call("SplitRegion", text(1, info) + text(2, b"m"))[1][0])


def disable(client, table):
    message = text(1, hbase.table_name(table)) + number(2, random.getrandbits(62) | 1) + number(3, 1)
    client.procedure(client.master.call("DisableTable", message)[1][0])


def make(version):
    target = FOLDERS / f"{version}.tar.xz"
    assert not target.exists(), f"{target} is there: the folder of a version is made once"
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        killed, stopped = root / "killed", root / "stopped"
        server = rorqual.Server(killed, root / "log", "-D", "hbase.master.cleaner.interval=0")
        client = hbase.Client(server)
        for table, families in TABLES.items():
            client.create(table, families, [b"m"] if table == "packed" else [])
            put_rows(client, table, 120, b"flushed", rows)
            if table == "counted":
                count(client, 60, rows)
            flush_all(client, table)
        split(client, "split")
        disable(client, "idle")
        for table in ("plain", "packed", "large", "split", "codecs"):
            put_rows(client, table, 40, b"logged", rows)
        count(client, 30, rows)
        client.close()
        server.kill()
        (killed / ".rorqual/control").unlink(missing_ok=True)
        assert list((killed / ".rorqual/nonces").rglob("*.*")), "no files of nonces"
        shutil.copytree(killed, stopped)
        problem = rorqual.Server(stopped, root / "log").stop()
        assert problem is None, problem
        for folder in (killed, stopped):
            shutil.rmtree(folder / "archive", ignore_errors=True)
            (folder / ".rorqual/lock").unlink(missing_ok=True)
        written = {t: {base64.b64encode(r).decode(): {base64.b64encode(f + b":" + q).decode(): base64.b64encode(v).decode()
                                                      for (f, q), v in cells.items()} for r, cells in of.items()}
                   for t, of in rows.items()}
        (root / "rows.json").write_text(json.dumps(written))
        FOLDERS.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target, "w:xz") as archive:
            for part in ("killed", "stopped", "rows.json"):
                archive.add(root / part, part, filter=nobodys)
    size = target.stat().st_size
    print(f"{target}: {size} bytes")
    assert size < BYTES_MAX, "too large"


def nobodys(info):
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


def read_rows(path):
    decode = base64.b64decode
    return {t: {decode(r): {tuple(decode(c).split(b":", 1)): decode(v) for c, v in cells.items()}
                for r, cells in of.items()} for t, of in json.loads(path.read_text()).items()}


def scan(client, table):
    deadline = time.monotonic() + 300
    while True:
        try:
            found = {}
            for _, name, _ in regions_of(client, table):
                found.update(client.data.scan(name))
            return found
        except hbase.Refused:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def enable(client, table):
    message = text(1, hbase.table_name(table)) + number(2, random.getrandbits(62) | 1) + number(3, 1)
    client.procedure(client.master.call("EnableTable", message)[1][0])


def opens(folder, log, rows):
    succeeds("fsck", "--blocks", folder)
    for turn in range(2):  # the second server reads what this version has written
        server = rorqual.Server(folder, log)
        client = hbase.Client(server)
        if turn == 0:
            enable(client, "idle")
        for table, wanted in rows.items():
            found = scan(client, table)
            different = [r for r in wanted if found.get(r) != wanted[r]] + [r for r in found if r not in wanted]
            assert not different, f"{table}: {len(different)} rows differ: {different[:3]}"
        for table in list(rows):
            put_rows(client, table, 30, b"newer %d" % turn, rows)
        client.close()
        problem = server.stop()
        assert problem is None, problem
        succeeds("fsck", "--blocks", folder)


def newer_is_refused(root, log):
    """A folder with another format number is refused unchanged."""
    folder = root / "newer"
    server = rorqual.Server(folder, log)
    server.stop()
    (folder / ".rorqual/version").write_text("2\n")
    before = {f: f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name != "lock"}
    try:
        rorqual.Server(folder, log).kill()
        raise AssertionError("it starts")
    except RuntimeError:
        assert "newer version" in log.read_text(errors="replace")
    code, out = run("recover", "--yes", folder)
    assert code == 1 and "newer version" in out, out
    assert before == {f: f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name != "lock"}


def released():
    """The tagged versions; none outside a repository, as in a source archive."""
    done = subprocess.run(["git", "-C", str(rorqual.ROOT), "tag", "--list", "v[0-9]*"], capture_output=True, text=True, check=False)
    return [tag[1:] for tag in done.stdout.split()]


def main():
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2])
        return 0
    report = rorqual.Report()
    archives = sorted(FOLDERS.glob("*.tar.xz"))
    if not archives:
        report.outcome("upgrade: there are folders", "none")
    lacking = [v for v in released() if not (FOLDERS / f"{v}.tar.xz").exists()]
    report.outcome("upgrade: each released version has a folder", ", ".join(lacking) or None)
    for path in archives:
        version = path.name.removesuffix(".tar.xz")
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            with tarfile.open(path) as archive:
                archive.extractall(root)
            for kind in ("stopped", "killed"):
                problem = None
                try:
                    opens(root / kind, root / "log", read_rows(root / "rows.json"))
                except Exception as e:  # pylint: disable=broad-except
                    problem = repr(e)[:900]
                report.outcome(f"upgrade/{version}, {kind}", problem)
    with tempfile.TemporaryDirectory() as name:
        problem = None
        try:
            newer_is_refused(pathlib.Path(name), pathlib.Path(name) / "log")
        except Exception as e:  # pylint: disable=broad-except
            problem = repr(e)[:900]
        report.outcome("upgrade: a newer format is refused", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
