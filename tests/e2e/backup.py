#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual backup` and `rorqual restore` of a server under load: writers of rows in three families (one MOB), flushes,
compactions, splits, merges, creates, alters, drops, all at the same time. Each backup is restored, a server is started on it,
and its content is compared with the writes acknowledged before the backup began: no row is lost or torn, `fsck --blocks` finds
nothing, and every table whose creation was acknowledged exists. Backups, restores and servers are killed at random moments:
unfinished copies must be refused, finished ones must be complete. SEED=n repeats the moments; ROUNDS=n sets the number of
backups under load (default 4).
"""
import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import hbase
import rorqual
from hbase import number, text

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("ROUNDS", "4"))
BIG = b"0123456789abcdef" * 20


def run(*arguments, env=None):
    done = subprocess.run([rorqual.BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False, env=env)
    return done.returncode, done.stdout + done.stderr


def succeeds(*arguments):
    code, out = run(*arguments)
    problems = "\n".join(line for line in out.splitlines() if line.startswith("PROBLEM"))[:2000]
    assert code == 0, f"rorqual {' '.join(map(str, arguments))}: code {code}: {problems}\n{out[-600:]}"
    return out


def refused(word, *arguments, code=1):
    got, out = run(*arguments)
    assert got == code and word in out, f"{' '.join(map(str, arguments))}: code {got}, no '{word}': {out[-600:]}"
    return out


def row_cells(value):
    """Cells of a row with the same value in three families: in a torn row the values differ."""
    return {(b"a", b"q"): value, (b"b", b"q"): value + b"-b", (b"m", b"q"): value + BIG}


def regions_of(client, table):
    """[(start key, full name, encoded name)], without parents of splits."""
    rows = client.data.scan(b"1588230740", table.encode() + b",,", table.encode() + b" ,,")
    return sorted((row.split(b",", 1)[1].rpartition(b",")[0], row, row[:-1].rpartition(b".")[2])
                  for row, cells in rows.items() if (b"info", b"splitA") not in cells)


def is_whole(cells):
    value = cells.get((b"a", b"q"))
    return value is not None and cells == row_cells(value)


class Load:
    """Writers, and concurrent changes of tables, until stopped. `acknowledged`: {row: number of its last put}."""

    def __init__(self, server, dice):
        self.server = server
        self.dice = random.Random(dice.random())
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.acknowledged = {}
        self.tables = set()
        self.errors = []
        client = hbase.Client(server)
        if not regions_of(client, "load"):
            client.create("load", {"a": {}, "b": {"VERSIONS": "2"}, "m": {"IS_MOB": "true", "MOB_THRESHOLD": "100"}},
                          [b"2", b"5", b"8"])
        client.close()
        self.threads = [threading.Thread(target=self.guarded, args=(f, i), daemon=True)
                        for f, i in ((self.write, 0), (self.write, 1), (self.shuffle, 2), (self.tables_come_and_go, 3))]
        for t in self.threads:
            t.start()

    def guarded(self, function, index):
        try:
            function(index, hbase.Client(self.server))
        except (OSError, EOFError, hbase.Refused) as e:
            if not self.stopping.is_set():
                self.errors.append(repr(e))

    def stop(self):
        self.stopping.set()
        for t in self.threads:
            t.join(300)

    def snapshot(self):
        with self.lock:
            return dict(self.acknowledged), set(self.tables)

    def write(self, index, client):
        """The numbers of a row only grow, so a copy has the acknowledged number or a later one."""
        n = 0
        while not self.stopping.is_set():
            regions = regions_of(client, "load")
            for _ in range(30):
                n += 1
                row = b"%d%03d-%d" % (n % 10, n % 400, index)
                name = [r for r in regions if r[0] <= row][-1][1]
                try:
                    client.data.put(name, row, row_cells(b"%09d" % n))
                except hbase.Refused as e:
                    assert any(word in e.name for word in ("Region", "NotServing")), e
                    break
                with self.lock:
                    self.acknowledged[row] = n

    def shuffle(self, _, client):
        """Flushes, compactions, splits and merges of the written table."""
        while not self.stopping.is_set():
            regions = regions_of(client, "load")
            what = self.dice.randrange(5)
            one = self.dice.randrange(len(regions))
            try:
                if what == 0 and len(regions) < 8:
                    client.master.call("SplitRegion", text(1, fields_info(client, regions[one][1])) +
                                       text(2, regions[one][0] + b"9"))
                elif what == 1 and one + 1 < len(regions):
                    client.master.call("MergeTableRegions", text(1, hbase.region(regions[one][2])) +
                                       text(1, hbase.region(regions[one + 1][2])) + number(2, 1))
                elif what == 2:
                    client.admin.call("CompactRegion", text(1, hbase.region(regions[one][1])) + number(2, 1))
                else:
                    client.flush(regions[one][2])
            except hbase.Refused:
                pass
            self.stopping.wait(0.05)

    def tables_come_and_go(self, _, client):
        n = 0
        while not self.stopping.is_set():
            n += 1
            name = f"t{n}"
            client.create(name, {"f": {}}, [b"k"])
            with self.lock:
                self.tables.add(name)
            if n > 6:
                gone = f"t{n - 5}"
                with self.lock:
                    self.tables.discard(gone)
                for method in ("DisableTable", "DeleteTable"):
                    message = text(1, hbase.table_name(gone)) + number(2, random.getrandbits(62) | 1) + number(
                        3, random.getrandbits(62) | 1)
                    client.procedure(client.master.call(method, message)[1][0])


def fields_info(client, name):
    """The RegionInfo in a region's row of hbase:meta, without the magic bytes."""
    return client.data.get(b"1588230740", name)[(b"info", b"regioninfo")][4:]


# ---- the content of a copy


def scan_all(client):
    """A split or merge that was running when the copy was made continues at the start; then meta is read again."""
    deadline = time.monotonic() + 300
    while True:
        try:
            rows = {}
            for _, name, _ in regions_of(client, "load"):
                rows.update(client.data.scan(name))
            return rows
        except hbase.Refused as e:
            if "Region" not in e.name or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def contents(folder, log):
    """Starts a server on the folder; returns {row: cells} of table load, and the names of the tables."""
    server = rorqual.Server(folder, log)
    client = hbase.Client(server)
    rows = scan_all(client)
    meta = client.data.scan(b"1588230740")
    tables = {r.split(b",")[0].decode() for r in meta if b"," in r}
    client.close()
    problem = server.stop()
    assert problem is None, problem
    return rows, tables


def check_copy(folder, log, acknowledged, tables):
    rows, found = contents(folder, log)
    torn = [r for r, cells in rows.items() if not is_whole(cells)]
    assert not torn, f"{len(torn)} torn rows: {torn[:3]}, {rows[torn[0]]}"
    lost = [r for r, n in acknowledged.items() if r not in rows or int(rows[r][(b"a", b"q")]) < n]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged rows are lost: {lost[:5]}"
    assert tables <= found, f"tables {tables - found} are lost"
    succeeds("fsck", "--blocks", folder)


# ---- tests


class World:
    def __init__(self, folder, dice):
        self.folder = folder
        self.dice = dice
        self.log = folder / "log"
        self.data = folder / "data"
        self.server = rorqual.Server(self.data, self.log, "--log", "info")
        self.load = Load(self.server, dice)

    def fresh(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def under_load(world):
    """Backups with copied files and with linked files, each restored and started."""
    for n in range(ROUNDS):
        before, tables = world.load.snapshot()
        copy, back = world.fresh("copy"), world.fresh("back")
        succeeds("backup", *(["--copy"] if n % 2 else []), world.data, copy)
        # Tables dropped since then may be in the copy or not.
        tables &= world.load.snapshot()[1]
        succeeds("backup", "--check", copy)
        succeeds("restore", copy, back)
        check_copy(back, world.log, before, tables)
        world.load.stopping.wait(world.dice.random())
        assert not world.load.errors, world.load.errors


def store_files(folder):
    """{path: inode} of the folder's store files. A running server may remove files meanwhile."""
    found = {}
    for part in ("data/default", "archive/data/default", "mobdir/data/default"):
        for where, _, names in os.walk(folder / part):  # os.walk skips folders that no longer exist
            parent = pathlib.Path(where)
            if len(parent.relative_to(folder / part).parts) != 3 or parent.name == ".tmp":
                continue
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    st = (parent / name).stat()
                    if st.st_size > 0:
                        found[(parent / name).relative_to(folder)] = st.st_ino
    return found


def incremental_under_load(world):
    """Each backup is based on the previous one, but complete without it; shared files take space once."""
    backups = world.fresh("backups")
    backups.mkdir()
    times, shared = [], 0
    for n in range(4):
        before, tables = world.load.snapshot()
        target, back = backups / str(n), world.fresh("back")
        succeeds("backup", *(["--incremental", backups / str(n - 1)] if n else ["--copy"]), world.data, target)
        tables &= world.load.snapshot()[1]
        times.append((int(time.time() * 1000), before, tables))
        earlier = set(store_files(backups / str(n - 1)).values()) if n else set()
        shared += sum(inode in earlier for inode in store_files(target).values())
        assert not set(store_files(world.data).values()) & set(store_files(target).values()) or n, "--copy linked a file"
        succeeds("backup", "--check", target)
        if n > 1:
            shutil.rmtree(backups / str(n - 2))  # no backup needs an earlier one
        world.load.stopping.wait(0.3 + world.dice.random())
        assert not world.load.errors, world.load.errors
    assert shared > 0, "no file was linked"
    for n in (3, 2):
        at, before, tables = times[n]
        out = succeeds("restore", "--to", str(at), backups, back)
        assert f"backup {backups}/{n}, begun at " in out, out
        check_copy(back, world.log, before, tables & world.load.snapshot()[1] if n == 3 else set())
        shutil.rmtree(back)
    refused("no finished backup", "restore", "--to", "2020-01-01T00:00:00Z", backups, back)
    refused("not a time", "restore", "--to", "yesterday", backups, back, code=2)
    assert not back.exists()


def incremental_on_what_is_unfit(world):
    copy, target = world.fresh("copy"), world.fresh("back")
    succeeds("backup", "--copy", world.data, copy)
    empty = world.fresh("empty")
    empty.mkdir()
    refused("not a finished backup", "backup", "--incremental", empty, world.data, target)
    refused("in use", "backup", "--incremental", world.data, world.data, target)
    refused("excludes --copy", "backup", "--incremental", copy, "--copy", world.data, target, code=2)
    assert not target.exists()
    for path in store_files(copy):
        content = (copy / path).read_bytes()
        (copy / path).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused("the previous backup is damaged", "backup", "--incremental", copy, world.data, target)
    refused("interrupted", "restore", target, world.fresh("full"))
    shutil.rmtree(target)
    identity = copy / "hbase.id"
    content = identity.read_bytes()
    identity.unlink()
    identity.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused("another cluster", "backup", "--incremental", copy, world.data, target)
    assert not target.exists()
    if os.stat("/dev/shm").st_dev != os.stat(world.folder).st_dev:
        succeeds("backup", "--copy", world.data, world.fresh("copy"))
        with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
            refused("cannot link", "backup", "--incremental", copy, world.data, pathlib.Path(other) / "target")


def fsck_of_running(world):
    for _ in range(3):
        out = succeeds("fsck", "--blocks", world.data)
        assert "nothing wrong" in out, out
    refused("stop the server", "fsck", "--repair", world.data, code=2)


def holders_are_listed(world):
    """A command that has requested an image holds the listed files until it ends."""
    import socket  # pylint: disable=import-outside-toplevel
    deadline = time.monotonic() + 300
    while succeeds("backup", "--holders", world.data) != "nothing is held\n":
        assert time.monotonic() < deadline, "an ended command still holds files"
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(world.data / ".rorqual/control"))
        control.sendall(b"image a test \x1b[2J\n")
        control.settimeout(300)
        got = b""
        while not got.endswith(b"e" + bytes(12)):  # the end record
            more = control.recv(1 << 20)
            assert more
            got += more
        listed = succeeds("backup", "--holders", world.data)
        found = re.fullmatch(r"a test .*: since (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ), (\d+) files?, the log from position \d+\n", listed)
        assert found and int(found[2]) > 0 and "\x1b" not in listed, listed
        control.sendall(b"log\n")
        deadline = time.monotonic() + 300
        while ", no log\n" not in listed:
            assert time.monotonic() < deadline, listed
            listed = succeeds("backup", "--holders", world.data)
    while listed != "nothing is held\n":
        assert time.monotonic() < deadline, listed
        listed = succeeds("backup", "--holders", world.data)
    refused("exclude each other", "backup", "--holders", "--check", world.data, code=2)
    refused("no server runs", "backup", "--holders", world.folder / "nowhere")


def backup_starts_itself(world):
    """The copy is a data folder; after a server ran on it, it is no longer a backup."""
    before, tables = world.load.snapshot()
    copy = world.fresh("copy")
    succeeds("backup", "--no-verify", world.data, copy)
    check_copy(copy, world.log, before, tables & world.load.snapshot()[1])
    refused("not a finished backup", "restore", copy, world.fresh("back"))


def killed_backups(world):
    """Unfinished copies are refused by servers, restore and fsck; the same command starts over."""
    copy = world.fresh("copy")
    rounds, unfinished, longest, deadline = 0, 0, 0.15, time.monotonic() + 300
    while rounds < 8 or unfinished == 0:
        assert time.monotonic() < deadline, "no kill came between the beginning and the end of a copy"
        rounds += 1
        process = subprocess.Popen([rorqual.BINARY, "backup", world.data, copy], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(world.dice.random() * longest)  # the kill must be at a random moment
        process.kill()
        process.wait()
        if (copy / ".rorqual/incomplete").exists():
            unfinished += 1
            refused("unfinished", "restore", copy, world.fresh("back"))
            refused("unfinished", "backup", copy, world.fresh("back"))
            code, out = run("fsck", copy)
            assert code != 0 and "unfinished" in out, out
            log = world.folder / "refused-log"  # the running server writes to world.log
            log.unlink(missing_ok=True)
            try:
                rorqual.Server(copy, log).kill()
                raise AssertionError("a server starts on an unfinished backup")
            except RuntimeError as e:
                assert "unfinished" in log.read_text(errors="replace"), e
        elif (copy / ".rorqual/backup").exists():
            succeeds("backup", "--check", copy)
            shutil.rmtree(copy)
        else:
            longest *= 1.5  # on a busy machine the copy may not have begun yet
    before, tables = world.load.snapshot()
    if (copy / ".rorqual/backup").exists():
        shutil.rmtree(copy)
    succeeds("backup", world.data, copy)
    back = world.fresh("back")
    for _ in range(4):
        process = subprocess.Popen([rorqual.BINARY, "restore", "--copy", copy, back], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(world.dice.random() * 0.05)
        process.kill()
        process.wait()
        if back.exists() and not (back / ".rorqual/incomplete").exists() and (back / ".rorqual/version").exists():
            shutil.rmtree(back)
    succeeds("restore", "--copy", copy, back)
    check_copy(back, world.log, before, tables & world.load.snapshot()[1])


def bad_arguments(world):
    copy = world.fresh("copy")
    refused("is inside", "backup", world.data, world.data / "inside")
    assert not (world.data / "inside").exists()
    refused("is inside", "backup", world.data, world.folder)
    full = world.fresh("full")
    full.mkdir()
    (full / "precious").write_text("x")
    refused("not empty", "backup", world.data, full)
    succeeds("backup", world.data, copy)
    refused("not empty", "restore", copy, full)
    refused("not empty", "backup", world.data, copy)
    succeeds("restore", "--replace", copy, full)
    assert (world.folder / "full.replaced-1/precious").read_text() == "x"
    shutil.rmtree(world.folder / "full.replaced-1")
    refused("in use", "restore", "--replace", copy, world.data)
    empty = world.fresh("empty")
    empty.mkdir()
    refused("not a data folder", "backup", empty, world.fresh("back"))
    refused("name a data folder", "backup", world.data, code=2)


def damaged_backups(world):
    """Each change of a file is found, and the file is named."""
    copy = world.folder / "copy"
    files = [f for f in copy.rglob("*") if f.is_file() and f.stat().st_size > 0 and
             f.relative_to(copy).parts[:2] != (".rorqual", "backup")]
    for f in world.dice.sample(sorted(files), 6):
        content = f.read_bytes()
        at = world.dice.randrange(len(content))
        f.unlink()  # the file may be a link to the server's file
        f.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
        refused(f.name, "backup", "--check", copy)
        refused(f.name, "restore", copy, world.fresh("back"))
        f.write_bytes(content[:-1])
        refused(f.name, "backup", "--check", copy)
        f.write_bytes(content)
    listed = copy / ".rorqual/backup"
    content = listed.read_bytes()
    for bad in (content[:-2], content[:len(content) // 2], b"", content.replace(b"end ", b"end 1", 1)):
        listed.write_bytes(bad)
        refused("damaged", "restore", copy, world.fresh("back"))
    listed.write_bytes(content)
    succeeds("backup", "--check", copy)


def killed_server(world):
    """The server is killed during a backup, which then fails or is complete. Then the killed server's folder is backed up."""
    for _ in range(3):
        before, tables = world.load.snapshot()
        copy, back = world.fresh("copy"), world.fresh("back")
        process = subprocess.Popen([rorqual.BINARY, "backup", "--copy", world.data, copy], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(world.dice.random() * 0.1)
        world.load.stopping.set()
        world.server.kill()
        code = process.wait(300)
        errors = process.stderr.read()
        world.load.stop()
        if code == 0:
            check_copy(copy, world.log, before, tables & world.load.snapshot()[1])
        else:
            assert "server" in errors or "in use" in errors, errors
            assert (copy / ".rorqual/incomplete").exists() or not (copy / ".rorqual/version").exists()
        before, tables = world.load.snapshot()
        copy = world.fresh("copy")
        succeeds("backup", world.data, copy)
        succeeds("restore", copy, back)
        check_copy(back, world.log, before, tables)
        world.server = rorqual.Server(world.data, world.log, "--log", "info")
        world.load = Load(world.server, world.dice)


def sockets_of_killed_servers(world):
    """`kill -9` leaves the control socket behind: tools treat the folder as stopped, and the next start makes a new
    socket."""
    world.load.stop()
    world.server.kill()
    path = world.data / ".rorqual/control"
    assert path.is_socket()
    left = path.stat().st_ctime_ns
    succeeds("status", "--data", world.data)
    assert "nothing wrong" in succeeds("fsck", "--blocks", world.data)
    succeeds("backup", world.data, world.fresh("copy"))
    assert path.stat().st_ctime_ns == left, "a tool changed the folder"
    world.server = rorqual.Server(world.data, world.log, "--log", "info")
    assert path.is_socket() and path.stat().st_ctime_ns != left
    # A refused start does not touch the running server's socket.
    left = path.stat().st_ctime_ns
    refused("in use", "server", "--data", world.data, "--zk-port", 0, "--master-port", 0, "--rs-port", 0)
    assert path.stat().st_ctime_ns == left
    refused("stop the server", "fsck", "--repair", world.data, code=2)
    succeeds("backup", world.data, world.fresh("copy"))
    world.load = Load(world.server, world.dice)


def full_disk(world):
    """The target has no space: the command reports this, and the copy is marked as unfinished."""
    if os.geteuid() != 0:
        return
    small = world.fresh("small")
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=False,
                      capture_output=True).returncode != 0:
        print("note: no tmpfs can be mounted here; the full disk is not tried")
        return
    try:
        refused("space", "backup", world.data, small)
        assert (small / ".rorqual/incomplete").exists()
    finally:
        subprocess.run(["umount", small], check=True)


def nothing_is_held(world):
    """After all commands have ended or were killed, no holder remains."""
    deadline = time.monotonic() + 300
    while True:
        lines = world.log.read_text(errors="replace").splitlines()
        begun = sum("listed the data folder" in line for line in lines)
        ended = sum("its files may be deleted again" in line for line in lines)
        if begun == ended > 0:
            return
        assert time.monotonic() < deadline, f"{begun} holds began, {ended} ended"
        time.sleep(0.05)


def stopped_folder(world):
    world.load.stop()
    before, tables = world.load.snapshot()
    problem = world.server.stop()
    assert problem is None, problem
    copy, back = world.fresh("copy"), world.fresh("back")
    succeeds("backup", world.data, copy)
    succeeds("restore", copy, back)
    check_copy(back, world.log, before, tables)
    assert not (world.data / ".rorqual/control").exists()


TESTS = (under_load, incremental_under_load, incremental_on_what_is_unfit, fsck_of_running, holders_are_listed, backup_starts_itself, killed_backups, bad_arguments, damaged_backups, full_disk,
         nothing_is_held, killed_server, sockets_of_killed_servers, stopped_folder)


def main():
    report = rorqual.Report()
    print(f"seed {SEED}")
    only = set(sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=os.environ.get("BACKUP_DIR")) as name:
        world = World(pathlib.Path(name), random.Random(SEED))
        report.run("backup", world, TESTS, only)
        world.load.stopping.set()
        world.server.kill()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
