#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that inspect a folder: `rorqual fsck` and `rorqual wal`. On the undamaged folders of a killed and of a
stopped server they report no problem and change nothing. They find a flipped bit in any used byte and name its file; they
find missing, left-over and orphaned files, and holes and overlaps of regions. After a
repair the server starts. SEED=n repeats a run; ROUNDS=n sets the flips (default 60).
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import damage
import hbase
import rorqual
from hbase import number, text

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("ROUNDS", "60"))


def run(*arguments):
    """Returns (exit code, lines); the output must be valid text."""
    done = subprocess.run([rorqual.BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def fsck(path, *options):
    return run("fsck", *options, path)


def tree(path):
    return {f: (f.stat().st_mtime_ns, f.read_bytes()) for f in path.rglob("*") if f.is_file() and f.name != "lock"}


def expect(code, lines, wanted, *parts):
    """Checks the exit code, and that each of the words is in a line. Returns None or the problem."""
    missing = [p for p in parts if not any(str(p) in line for line in lines)]
    return None if code == wanted and not missing else f"code {code}, without {missing}: {lines[-4:]}"


# ---- healthy folders


def healthy(report, folders):
    for folder in folders:
        name = folder.path.name
        before = tree(folder.path)
        for options in ((), ("--blocks",), ("--json", "--blocks"), ("--repair",)):
            code, lines = fsck(folder.path, *options)
            problem = expect(code, lines, 0)
            if not problem and any("PROBLEM" in line for line in lines):
                problem = f"{lines}"
            if not problem and "--json" in options and json.loads(lines[-1])["problems"] != 0:
                problem = lines[-1]
            report.outcome(f"fsck: {name} {' '.join(options)} has nothing wrong", problem)
        code, lines = run("wal", "verify", folder.path)
        report.outcome(f"wal: {name} is fine", expect(code, lines, 0, "fine"))
        report.outcome(f"tools: {name} was not touched", None if tree(folder.path) == before else "it was")


def running(report, folder, log):
    server = rorqual.Server(folder.path, log)
    code, lines = fsck(folder.path)
    report.outcome("fsck: a running server's folder, at one moment", expect(code, lines, 0, "nothing wrong"))
    report.outcome("fsck: which is not repaired", expect(*fsck(folder.path, "--repair"), 2, "stop the server"))
    code, lines = run("wal", "list", folder.path)
    report.outcome("wal: beside a running server", expect(code, lines, 0, "WAL file"))
    report.outcome("fsck: the server stops", server.stop())
    code, lines = fsck(folder.path / "nowhere")
    report.outcome("fsck: no folder", expect(code, lines, 2, "nowhere"))


def dump(report, folder):
    """Compares the output of the filters with the acknowledged writes; beta is only in the log."""
    def rows(*options):
        code, lines = run("wal", "dump", "--json", *options, folder.path)
        assert code == 0, lines[-3:]
        records = [json.loads(line) for line in lines]
        return records, {c["row"] for r in records for c in r["cells"]}

    records, found = rows("--table", "beta")
    wanted = {r.decode() for r in folder.rows["beta"]}
    report.outcome("wal: --table", None if found == wanted else f"{len(found)} of {len(wanted)} rows")
    row = sorted(wanted)[7]
    report.outcome("wal: --row", None if rows("--table", "beta", "--row", row)[1] == {row} else "others too")
    region = records[0]["region"]
    numbers = [r["sequence"] for r in records if r["region"] == region]
    got = [r["sequence"] for r in rows("--region", region, "--sequence", f"{numbers[2]}-{numbers[4]}")[0]]
    report.outcome("wal: --region, --sequence", None if got == numbers[2:5] else f"{got}, not {numbers[2:5]}")
    report.outcome("wal: --limit", None if len(rows("--limit", "3")[0]) == 3 else "not three")
    value = rows("--table", "beta", "--limit", "1", "--values")[0][0]["cells"][0]
    report.outcome("wal: --values", None if value["valueLength"] == 80 and "value" in value else f"{value}")


# ---- flipped bits


def places(template):
    """[(kind, file, [offsets of used bytes])], without the unused rest of a sector or of a prewritten log."""
    out = []
    for file in sorted(template.path.rglob("*")):
        parts = file.relative_to(template.path).parts
        if not file.is_file() or file.stat().st_size == 0 or parts[0] in ("hbase.id", "hbase.version"):
            continue
        if file.suffix == ".wal":
            out.append(("log header", file, [*range(96), *range(512, 608)]))
            if template.path.name == "killed":  # after a stop the file has only bytes that are no longer needed
                all_frames = damage.frames(file)[:-3]  # frames that no later frame confirms may be a torn tail
                out.extend(("log", file, range(at, at + size)) for at, size in all_frames)
        elif parts[:2] == (".rorqual", "regions"):
            if file == damage.newest_slot(template.path, file.stem):
                out.append(("manifest", file, [*range(32), *range(1024, file.stat().st_size)]))
        elif parts[0] in ("data", "MasterData") and file.name == ".regioninfo":
            out.append(("region descriptor", file, range(file.stat().st_size)))
        elif parts[0] in ("data", "MasterData") and len(file.name) == 32:
            out.append(("hfile", file, range(file.stat().st_size)))
    return out


def flips(report, folders, rng):
    for template in folders:
        kinds = {}
        for kind, file, offsets in places(template):
            kinds.setdefault(kind, []).append((file, offsets))
        for n in range(ROUNDS // 2):
            kind = sorted(kinds)[n % len(kinds)]
            file, offsets = rng.choice(kinds[kind])
            offset, bit = rng.choice(offsets), rng.randrange(8)
            done = damage.Damage()
            done.flip(file, offset, bit)
            code, lines = fsck(template.path, "--blocks")
            # A manifest's slot is reported under the region's name; a torn first slot may be reported as a note.
            word = file.stem if kind == "manifest" else file.name if kind != "region descriptor" else file.parts[-2]
            problem = expect(code, lines, 1, word)
            if problem and kind == "manifest" and code == 0 and any("note" in x and word in x for x in lines):
                problem = None
            if kind.startswith("log") and not problem:
                problem = expect(*run("wal", "verify", template.path), 1, file.name, "offset")
            done.mend()
            report.outcome(f"fsck: {template.path.name}, {kind}, bit {bit} of byte {offset} of {file.name} is found",
                           problem)
        report.outcome(f"fsck: {template.path.name}, mended, has nothing wrong", expect(*fsck(template.path), 0))


def damaged_record(report, folder):
    """Damage is reported with its offset, and the records after it are still printed."""
    file = damage.wal_file(folder.path)
    offset, size = damage.frames(file)[60]
    whole = len(run("wal", "dump", "--json", folder.path)[1])
    done = damage.Damage()
    done.flip(file, offset + size - 5, 2)
    report.outcome("wal: a damaged record is named", expect(*run("wal", "verify", folder.path), 1, file.name,
                                                            f"offset {offset}"))
    code, lines = run("wal", "dump", "--json", folder.path)
    left = [line for line in lines if line.startswith("{") and "damage" not in json.loads(line)]
    report.outcome("wal: and the others are shown", None if code == 1 and len(left) == whole - 1 else
                   f"code {code}, {len(left)} of {whole}")
    done.mend()


# ---- missing and misplaced files


def copied(template, root):
    path = root / "case"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(template.path, path)
    return path


def rename_family(path):
    """alpha's descriptor remains readable, but names q instead of family p."""
    file = next(path.glob(f"{damage.DEFAULT}/alpha/.tabledesc/.tableinfo.*"))
    content = file.read_bytes()
    assert content.count(b"\x0a\x01p") == 1
    file.write_bytes(content.replace(b"\x0a\x01p", b"\x0a\x01q"))


def misplaced(report, template, root):
    def case(name, change, *words):
        path = copied(template, root)
        change(path)
        report.outcome(f"fsck: {name}", expect(*fsck(path), 1, *words))

    first, second = (template.regions["alpha"][i][2].decode() for i in (0, 1))
    table = pathlib.Path(damage.DEFAULT) / "alpha"
    file = damage.hfiles(template.path, "alpha", "p", first.encode())[0].name
    case("a lost file", lambda p: (p / table / first / "p" / file).unlink(), file)
    case("a file of another region",
         lambda p: shutil.copy(p / table / first / "p" / file, p / table / second / "p" / file), file, "range")
    case("a lost region", lambda p: shutil.rmtree(p / table / first), first, "no folder")
    case("a lost table", lambda p: shutil.rmtree(p / table), "table alpha has no folder")
    case("a lost descriptor", lambda p: shutil.rmtree(p / table / ".tabledesc"), "alpha", "descriptor")
    case("a descriptor that names another family", rename_family, f"{first}/p", "cannot be opened")
    case("a region's folder under another name",
         lambda p: (p / table / first).rename(p / table / ("0" * 32)), "0" * 32, first)
    case("an unknown table", lambda p: shutil.copytree(p / table, p / damage.DEFAULT / "delta"),
         "delta: a table without a row in hbase:meta")
    case("edits HBase has not replayed",
         lambda p: ((p / table / first / "recovered.edits").mkdir(exist_ok=True),
                    (p / table / first / "recovered.edits" / "00000000000000000007").write_bytes(b"x")),
         "recovered.edits", "not replayed")
    case("a log of HBase's", lambda p: ((p / "WALs" / "h,1,2").mkdir(parents=True),
                                        (p / "WALs" / "h,1,2" / "x").write_bytes(b"")), "WALs/h,1,2/x")
    case("hbase.version", lambda p: (p / "hbase.version").write_bytes(b"PBUF\n\x019"), "hbase.version")


def region_row(table, start, end):
    """(row, {column: value}) of a region in hbase:meta."""
    region_id = 1700000000000
    name = table + b"," + start + b",%d" % region_id
    name += b"." + hashlib.md5(name).hexdigest().encode() + b"."
    info = number(1, region_id) + text(2, hbase.table_name(table.decode())) + text(3, start) + text(4, end)
    info += number(5, 0) + number(6, 0) + number(7, 0)
    return name, {(b"info", b"regioninfo"): b"PBUF" + info, (b"info", b"state"): b"CLOSED"}


def chain(report, template, root, log):
    """Replaces a row of hbase:meta by another one, which makes a hole, an orphan and an overlap."""
    path = copied(template, root)
    server = rorqual.Server(path, log)
    client = hbase.Client(server)
    _, name, encoded = template.regions["alpha"][1]
    family = text(3, text(1, b"info") + text(2, text(1, b"") + number(4, 2)))
    client.data.call("Mutate", text(1, hbase.region(b"1588230740")) +
                     text(2, text(1, name) + number(2, 3) + family))
    client.data.put(b"1588230740", *region_row(b"beta", b"c", b"q"))
    client.close()
    report.outcome("fsck: the server of a broken chain stops", server.stop())
    code, lines = fsck(path)
    report.outcome("fsck: a hole, an orphan, an overlap", expect(
        code, lines, 1, "table alpha: a hole between g", "table beta: an overlap",
        f"{encoded.decode()}: a region without a row in hbase:meta"))
    code, lines = fsck(path, "--repair")
    aside = path / ".rorqual/aside/1" / damage.DEFAULT / "alpha" / encoded.decode()
    report.outcome("fsck: a repair moves the orphan aside", expect(code, lines, 1, "moved to") or
                   (None if any(f.is_file() for f in aside.rglob("p/*")) else f"{aside} is empty"))
    code, lines = fsck(path)
    problem = expect(code, lines, 1, "a hole", "an overlap")
    if not problem and any(encoded.decode() + ": a region" in line for line in lines):
        problem = "it is still there"
    report.outcome("fsck: what it cannot repair is still told", problem)
    server = rorqual.Server(path, log)
    client = hbase.Client(server)
    _, first, _ = template.regions["alpha"][0]
    found = client.data.scan(first)
    wanted = {r: c for r, c in template.rows["alpha"].items() if r < b"g"}
    client.close()
    report.outcome("fsck: the server starts on it, with the other regions' rows",
                   server.stop() or (None if found == wanted else f"{len(found)} of {len(wanted)} rows"))


def main():
    report = rorqual.Report()
    rng = random.Random(SEED)
    print(f"seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rorqual-fsck.") as scratch:
        root = pathlib.Path(scratch)
        log = root / "server.log"
        killed, stopped = damage.make(root, rng)
        healthy(report, (killed, stopped))
        dump(report, killed)
        damaged_record(report, killed)
        flips(report, (killed, stopped), rng)
        misplaced(report, stopped, root)
        chain(report, stopped, root, log)
        running(report, stopped, log)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
