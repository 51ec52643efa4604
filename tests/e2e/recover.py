#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual recover` on damaged folders: the log, hbase:meta's files and manifest, the procedure store, store files, manifests,
descriptors, .rorqual/version and similar files, each damaged at a random place, and several at once. Before the recovery the
start fails and names the recovery command, or serves only a part. A dry run and the answer "no" change nothing. Afterwards the
server starts and serves the undamaged data, each row has its value or is missing (never another value), nothing was deleted,
and a second recover finds nothing. A killed recover is repeated. SEED=n repeats a run.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import damage
import hbase
import rorqual
from backup import regions_of

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
META = "data/hbase/meta/1588230740"
STORE = "MasterData/data/master/store"


def run(*arguments, answer=""):
    done = subprocess.run([rorqual.BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          input=answer)
    return done.returncode, done.stdout + done.stderr


def tree(path):
    return {f.relative_to(path): f.read_bytes() for f in path.rglob("*") if f.is_file() and f.name != "lock"}


def served(path, log, folder, may_miss):
    """Starts a server and compares every row of every table. may_miss: tables that may lack rows."""
    server = rorqual.Server(path, log)
    client = hbase.Client(server)
    problems = []
    for table, rows in folder.rows.items():
        found = {}
        for _, name, _ in folder.regions[table]:
            found.update(client.data.scan(name))
        for row, cells in rows.items():
            got = found.get(row, {})
            wrong = {c for c, v in got.items() if cells.get(c) != v}
            gone = set(cells) - set(got)
            if wrong or (gone and table not in may_miss):
                problems.append(f"{table} {row[:1]}…{row[-6:]}: wrong {wrong}, missing {gone}")
    client.create("fresh", {"f": {}})
    client.close()
    problem = server.stop()
    if problem:
        problems.append(problem)
    assert not problems, f"{len(problems)}: {problems[:3]}"


def refused_start(path, log):
    try:
        rorqual.Server(path, log).kill()
    except RuntimeError:
        tail = log.read_text(errors="replace").splitlines()[-4:]
        assert any("hint: rorqual fsck" in line and "rorqual recover" in line for line in tail), tail
        return True
    return False


class Bench:
    def __init__(self, root, dice):
        self.root = root
        self.dice = dice
        self.log = root / "log"
        self.killed, self.stopped = damage.make(root, dice)
        # Flushes hbase:meta and the procedure store, so that their content is in files and not only in the log.
        assert list(self.stopped.path.glob(f"{META}/info/*")), "meta was not flushed"

    def copy(self, template):
        path = self.root / "case"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(template.path, path)
        return path

    def flip(self, file, low=0, high=None):
        content = bytearray(file.read_bytes())
        at = self.dice.randrange(low, len(content) if high is None else high)
        content[at] ^= 1 << self.dice.randrange(8)
        file.write_bytes(content)

    def largest(self, path, pattern):
        return max((f for f in path.glob(pattern) if f.is_file()), key=lambda f: f.stat().st_size)

    def recover(self, template, damage_it, may_miss=(), refused=None, found=True):
        path = self.copy(template)
        damage_it(path)
        before = tree(path)
        code, out = run("recover", "--dry-run", path)
        assert code == 0, out
        assert ("nothing to recover" in out) != found, out
        assert tree(path) == before, "a dry run changed something"
        code, out = run("recover", path, answer="no\n")
        assert tree(path) == before and (not found or (code == 1 and "nothing was done" in out)), out
        start = self.root / "start"
        shutil.rmtree(start, ignore_errors=True)
        shutil.copytree(path, start)
        if refused is not None:
            assert refused_start(start, self.log) == refused, "the start"
        code, out = run("recover", path, answer="yes\n")
        assert code == 0, out
        after = tree(path)
        contents = set(after.values())
        for name, content in before.items():
            # Immutable files are at their old path, aside, or in the archive; a damaged log was copied.
            if name.parts[0] in ("data", "MasterData") and len(name.name) == 32 and content not in contents:
                raise AssertionError(f"{name} is gone")
        code, out = run("recover", "--dry-run", path)
        assert code == 0 and "nothing to recover" in out, out
        served(path, self.log, template, may_miss)
        code, out = run("fsck", "--blocks", path)
        assert code == 0, out


def whole(b):
    b.recover(b.stopped, lambda p: None, found=False)
    b.recover(b.killed, lambda p: None, found=False)


def log_body(b):
    def hurt(path):
        file = damage.wal_file(path)
        frames = damage.frames(file)
        offset, size = frames[b.dice.randrange(len(frames) // 4, len(frames) // 2)]
        b.flip(file, offset, offset + size)
    b.recover(b.killed, hurt, may_miss=("alpha", "beta", "gamma"), refused=True)


def log_header(b):
    def hurt(path):
        file = damage.wal_file(path)
        content = bytearray(file.read_bytes())
        content[3] ^= 8
        content[512 + 9] ^= 8
        file.write_bytes(content)
    b.recover(b.killed, hurt, may_miss=("alpha", "beta", "gamma"), refused=True)


def meta_file(b):
    b.recover(b.stopped, lambda p: b.flip(b.largest(p, f"{META}/info/*"), 60, 400), refused=True)


def meta_lost(b):
    """Damages every file of hbase:meta: all rows are then made from .regioninfo."""
    def hurt(path):
        for file in path.glob(f"{META}/*/*"):
            if file.is_file():
                file.write_bytes(b"no hfile" * 20)
    b.recover(b.stopped, hurt, refused=True)


def meta_lost_after_split(b):
    """Folders of split and merged parents exist beside those of the new regions: each row is served once."""
    made = damage.Folder(b.root / "split")
    made.rows = {"s": {}, "m": {}}
    server = rorqual.Server(made.path, b.log)
    client = hbase.Client(server)
    for table, splits in (("s", []), ("m", [b"k"])):
        client.create(table, {"f": {}}, splits)
        for i in range(200):
            row, cells = b"%c%03d" % (97 + i % 26, i), {(b"f", b"q"): b"v%d" % i}
            name = [r for r in regions_of(client, table) if r[0] <= row][-1][1]
            client.data.put(name, row, cells)
            made.rows[table][row] = cells
        for _, _, encoded in regions_of(client, table):
            client.flush(encoded)
    info = client.data.get(b"1588230740", regions_of(client, "s")[0][1])[(b"info", b"regioninfo")][4:]
    client.procedure(client.master.call("SplitRegion", hbase.text(1, info) + hbase.text(2, b"m"))[1][0])
    pair = regions_of(client, "m")
    client.procedure(client.master.call("MergeTableRegions", b"".join(hbase.text(1, hbase.region(r[2])) for r in pair)
                                        + hbase.number(2, 1))[1][0])
    for table in made.rows:
        made.regions[table] = regions_of(client, table)
    assert [len(made.regions[t]) for t in ("s", "m")] == [2, 1], made.regions
    client.close()
    problem = server.stop()
    assert problem is None, problem

    def hurt(path):
        for file in path.glob(f"{META}/*/*"):
            if file.is_file():
                file.write_bytes(b"no hfile" * 20)
    assert len(list(made.path.glob("data/default/s/*/.regioninfo"))) == 3, "the parent is gone already"
    b.recover(made, hurt, refused=True)


def meta_manifest(b):
    def hurt(path):
        for slot in path.glob(".rorqual/regions/1588230740.?"):
            b.flip(slot, 0, 32)
    b.recover(b.stopped, hurt)


def procedure_store(b):
    def hurt(path):
        for file in path.glob(f"{STORE}/*/*/*"):
            if file.is_file():
                file.write_bytes(file.read_bytes()[:-40])
    b.recover(b.stopped, hurt, refused=True)


def store_file(b):
    b.recover(b.stopped, lambda p: b.flip(damage.hfiles(p, "gamma", "f")[0], 40, 400), may_miss=("gamma",))


def lost_file(b):
    b.recover(b.killed, lambda p: damage.hfiles(p, "gamma", "f")[0].unlink(), may_miss=("gamma",))


def region_manifest(b):
    def hurt(path):
        encoded = b.stopped.regions["gamma"][0][2].decode()
        for slot in path.glob(f".rorqual/regions/{encoded}.?"):
            b.flip(slot, 0, 32)
    b.recover(b.stopped, hurt)


def descriptor(b):
    def hurt(path):
        for file in path.glob("data/default/gamma/.tabledesc/.tableinfo.*"):
            file.write_bytes(b"XBUF" + file.read_bytes()[4:])
    b.recover(b.stopped, hurt)


def marks(b):
    def hurt(path):
        (path / ".rorqual/version").write_text("x")
        (path / "hbase.version").unlink()
        (path / "hbase.id").write_bytes(b"PB")
    b.recover(b.stopped, hurt, refused=True)


def everything(b):
    def hurt(path):
        for file in path.glob(f"{META}/*/*"):
            if file.is_file():
                file.write_bytes(b"")
        for file in path.glob(f"{STORE}/*/*/*"):
            if file.is_file():
                file.write_bytes(b"")
        b.flip(damage.hfiles(path, "gamma", "f")[0], 40, 400)
        (path / "hbase.id").write_bytes(b"")
        file = damage.wal_file(path)
        frames = damage.frames(file)
        offset, size = frames[len(frames) // 3]
        b.flip(file, offset, offset + size)
    b.recover(b.killed, hurt, may_miss=("alpha", "beta", "gamma"), refused=True)


def killed(b):
    """An interrupted recovery is repeated; a server started in between refuses the folder or serves everything."""
    path = b.copy(b.stopped)
    for file in path.glob(f"{META}/*/*"):
        if file.is_file():
            file.write_bytes(b"")
    b.flip(damage.hfiles(path, "gamma", "f")[0], 40, 400)
    for _ in range(12):
        process = subprocess.Popen([rorqual.BINARY, "recover", "--yes", path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(b.dice.random() * 0.06)  # the kill must be at a random moment
        process.kill()
        process.wait()
    code, out = run("recover", "--yes", path)
    assert code == 0, out
    served(path, b.log, b.stopped, ("gamma",))


def torn_marker(b):
    """Recover is killed while it writes its marker, or before it removes it: the folder itself is undamaged."""
    for text in ("", "reco", "recover\n"):
        path = b.copy(b.stopped)
        (path / ".rorqual/incomplete").write_text(text)
        code, out = run("server", "--data", path, "--zk-port", "0", "--master-port", "0", "--rs-port", "0")
        assert code != 0 and "unfinished" in out and "rorqual  was" not in out, out
        code, out = run("recover", "--yes", path)
        assert code == 0, out
        assert not (path / ".rorqual/incomplete").exists()
        served(path, b.log, b.stopped, ())


def refusals(b):
    path = b.copy(b.stopped)
    server = rorqual.Server(path, b.log)
    code, out = run("recover", "--yes", path)
    assert code == 1 and "in use" in out, out
    server.kill()
    (path / ".rorqual/incomplete").write_text("restore\n")
    code, out = run("recover", "--yes", path)
    assert code == 1 and "unfinished" in out, out
    code, out = run("recover", "--yes", b.root / "nowhere")
    assert code == 1 and "nowhere" in out, out
    assert run("recover")[0] == 2


def nothing_left(b):
    """Only .rorqual exists, complete or nearly empty: recover refuses and writes nothing. It must not initialise a new data
    folder."""
    path = b.copy(b.stopped)
    for entry in path.iterdir():
        if entry.name != ".rorqual":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for _ in range(2):
        before = tree(path)
        for option in ("--dry-run", "--yes"):
            code, out = run("recover", option, path)
            assert code == 1 and "nothing to recover" in out, (code, out)
            assert tree(path) == before, set(tree(path)) ^ set(before)
        shutil.rmtree(path / ".rorqual")
        (path / ".rorqual").mkdir()


TESTS = (whole, log_body, log_header, meta_file, meta_lost, meta_lost_after_split,
         meta_manifest, procedure_store, store_file, lost_file,
         region_manifest, descriptor, marks, everything, killed, torn_marker, refusals, nothing_left)


def main():
    report = rorqual.Report()
    print(f"seed {SEED}")
    only = set(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="rorqual-recover.") as name:
        bench = Bench(pathlib.Path(name), random.Random(SEED))
        for test in TESTS:
            if only and test.__name__ not in only:
                continue
            problem = None
            try:
                test(bench)
            except Exception as e:  # pylint: disable=broad-except
                problem = repr(e)[-1500:]
            report.outcome(f"recover/{test.__name__}", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
