#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BulkLoadHFile with forbidden paths: FIFOs, devices, files outside the allowed folders, symbolic links, hard
links, other servers' files. Meanwhile loads from rorqual.bulkload.folders must work.

The loaded store files come from the server: they are flushed by one table and copied.
"""
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import number, region, text  # pylint: disable=wrong-import-position

SETTING = "rorqual.bulkload.folders"
LIMIT = 120  # seconds within which a response arrives that waits for nothing, however busy the machine is


class World:
    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "data"
        self.loads = folder / "loads"
        self.loads.mkdir()
        (folder / "real").mkdir()
        (folder / "linked").symlink_to(folder / "real")
        self.listed = [self.loads, folder / "linked", folder / "absent", folder]
        self.server = self.client = self.hfile = None
        self.tables = 0

    def start(self, *arguments):
        self.server = rorqual.Server(self.data, self.folder / "log", *arguments)
        self.client = hbase.Client(self.server)

    def stop(self):
        self.client.close()
        problem = self.server.stop()
        assert problem is None, problem

    def make_hfile(self):
        """A store file of three rows that belongs to no table."""
        self.client.create("source", {"f": {}})
        name = self.client.regions("source")[0][1]
        for i in range(3):
            self.client.data.put(name, b"r%d" % i, {(b"f", b"q"): b"v%d" % i})
        self.client.flush(name)
        file, = [p for p in (self.data / "data/default/source").glob("*/f/*") if p.is_file()]
        self.hfile = file.read_bytes()

    def table(self):
        self.tables += 1
        self.client.create(f"t{self.tables}", {"f": {}})
        return self.client.regions(f"t{self.tables}")[0][1]

    def place(self, *parts):
        path = pathlib.Path(self.folder, *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.hfile)
        return path


def request(name, paths, token=None, copy=False):
    message = text(1, region(name)) + b"".join(text(2, text(1, "f") + text(2, str(p))) for p in paths)
    message += number(3, 1)
    if token is not None:
        message += text(5, token)
    return message + (number(6, 1) if copy else b"")


def load(w, name, *paths, **how):
    answer = w.client.data.call("BulkLoadHFile", request(name, paths, **how))
    return answer[1][0] == 1


def refusal(w, name, path, **how):
    """The exception's class and text, without the path."""
    try:
        loaded = load(w, name, path, **how)
    except hbase.Refused as e:
        words = e.trace.splitlines()[0]
        assert str(path) in words, words
        return e.name, words.replace(str(path), "PATH")
    raise AssertionError(f"{path}: answered, loaded = {loaded}")


def rows(w, name):
    return len(w.client.data.scan(name))


def fifos_stop_no_pool(w):
    """Loads more FIFOs than a pool has threads; then a load, a DDL and a flush must still work."""
    name = w.table()
    connections = []
    for i in range(8):
        os.mkfifo(w.loads / f"fifo{i}")
        connection = hbase.Connection(w.server.regionserver)
        connection.socket.settimeout(LIMIT)
        connection.send("BulkLoadHFile", request(name, [w.loads / f"fifo{i}"]))
        connections.append(connection)
    for connection in connections:
        answer = connection.receive()[1]
        assert isinstance(answer, hbase.Refused) and "a FIFO, not a regular file" in str(answer), answer
        connection.close()
    for i in range(8):
        (w.loads / f"fifo{i}").unlink()
    assert load(w, name, w.place("loads", "f", "after"))
    assert rows(w, name) == 3


def only_regular_files(w):
    name = w.table()
    (w.loads / "folder").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(w.loads / "socket"))
    (w.loads / "zero").symlink_to("/dev/zero")
    for what in ("folder", "socket", "zero"):
        _, words = refusal(w, name, w.loads / what)
        assert "regular file" in words or "symbolic" in words or "No such device" in words, words
    listening.close()
    assert rows(w, name) == 0


def a_foreign_file_is_not_told_of(w):
    """The error is the same for existing and missing files, with and without a token, and nothing is opened: opening a
    FIFO without a writer would block."""
    name = w.table()
    elsewhere = w.folder.parent / (w.folder.name + "-elsewhere")
    elsewhere.mkdir()
    try:
        (elsewhere / "there").write_bytes(w.hfile)
        os.mkfifo(elsewhere / "fifo")
        said = set()
        for path in ("/etc/shadow", "/etc/no-such-file", "/no/such/folder/f", "/", elsewhere / "there",
                     elsewhere / "fifo", elsewhere / "absent", elsewhere, "/proc/self/mem", "/dev/zero",
                     f"{w.loads}/../../{elsewhere.name}/there", f"{w.loads}/../../{elsewhere.name}/absent",
                     f"{w.folder}-not/f", f"{w.data}/data/default", f"{w.data}/hbase.id", f"{w.data}/no-such-file",
                     f"{w.data}/staging/../hbase.id", w.data):
            for token in (None, "t"):
                got = refusal(w, name, path, token=token)
                said.add(got)
        assert len(said) == 1, said
        (class_name, words), = said
        assert class_name == "DoNotRetryIOException" and SETTING in words, said
        try:
            load(w, name, "/" + "x/" * 3000 + "f")
        except hbase.Refused as e:
            assert SETTING in str(e), e
        else:
            raise AssertionError("a path of 6,000 bytes was accepted")
        assert (elsewhere / "there").read_bytes() == w.hfile
    finally:
        shutil.rmtree(elsewhere)
    assert rows(w, name) == 0


def links_lead_nowhere(w):
    name = w.table()
    inside = w.place("loads", "f", "inside")
    (w.loads / "out").symlink_to("/etc/shadow")
    (w.loads / "to-absent").symlink_to("/etc/no-such-file")
    (w.loads / "folder-out").symlink_to("/etc")
    (w.loads / "in").symlink_to(inside)
    (w.loads / "loop").symlink_to("loop")
    for there, absent in (("out", "to-absent"), ("folder-out/shadow", "folder-out/absent"), ("in", "loop")):
        one, other = (refusal(w, name, w.loads / link) for link in (there, absent))
        assert one == other, (one, other)
        assert SETTING in one[1] or "symbolic links are not followed" in one[1], one
    assert inside.exists() and rows(w, name) == 0


def server_files_stay(w):
    """A listed folder contains this server's data folder and another server's; files in these are refused."""
    name = w.table()
    own, = [p for p in (w.data / "data/default/source").glob("*/f/*") if p.is_file()]
    other = w.place("other", "data/default/t/r/f/file")
    (w.folder / "other/.rorqual").mkdir()
    hbases = w.place("hbases", "data/default/t/r/f/file")
    (w.folder / "hbases/hbase.version").write_bytes(b"x")
    for path in (own, other, hbases):
        assert SETTING in refusal(w, name, path)[1]
        assert path.read_bytes() == w.hfile
    assert rows(w, name) == 0


def what_is_shared_is_copied(w):
    """A file with a second hard link, or another owner, is copied and stays unchanged."""
    name = w.table()
    file = w.place("loads", "f", "two-names")
    os.link(file, w.loads / "f" / "second")
    assert load(w, name, file)
    assert file.exists() and file.stat().st_nlink == 2, "a file in use elsewhere was linked"
    if os.geteuid() == 0:
        name = w.table()
        file = w.place("loads", "f", "nobodys")
        os.chown(file, 65534, 65534)
        assert load(w, name, file)
        assert file.exists() and file.stat().st_nlink == 1 and file.stat().st_uid == 65534
        assert rows(w, name) == 3
    loaded = [p for p in (w.data / "data/default").glob("t*/*/f/*") if p.is_file()]
    for path in loaded:
        assert path.stat().st_nlink == 1 and path.stat().st_mode & 0o777 == 0o600, path
        assert path.stat().st_uid == os.geteuid(), path


def listed_folders_are_loaded_from(w):
    """Loads by URL, by plain path, by the listed name and by the target of its symbolic link; moves files, or copies
    them on request."""
    name = w.table()
    for i, said in enumerate((f"file:{w.loads}/f/a", f"file://{w.loads}/f/b", f"{w.loads}/f//c", f"{w.loads}/./f/d",
                              f"file://localhost{w.loads}/f/e", f"{w.folder}/linked/f/g",
                              f"{w.folder.resolve()}/real/f/h")):
        file = w.place("real" if i > 4 else "loads", "f", said[-1])
        assert load(w, name, said), said
        assert not file.exists(), f"{said} was not moved"
    file = w.place("loads", "f", "copied")
    assert load(w, name, file, copy=True, token="t")
    assert file.exists()
    assert rows(w, name) == 3
    assert not load(w, name, w.loads / "f" / "absent", token="t")
    assert not load(w, name, w.folder / "absent" / "f", token="t") # listed, but missing


def a_path_is_one_line_of_the_log(w):
    name = w.table()
    forged = "2026-01-01T00:00:00.000Z ERROR wal: forged"
    assert not load(w, name, f"{w.loads}/f/x\n{forged}\x1b[2J", token="t")
    log = (w.folder / "log").read_text()
    assert forged in log and not any(line.startswith(forged) for line in log.splitlines()), log
    assert "\x1b" not in log


def staging_is_loaded_from(w):
    name = w.table()
    answer = w.client.data.call("PrepareBulkLoad", text(1, hbase.table_name("t1")) + text(2, region(name)))
    token = answer[1][0].decode()
    file = w.place(token.removeprefix("file:"), "f", "file")
    assert load(w, name, file, token=token)
    assert rows(w, name) == 3 and not file.exists()
    w.client.data.call("CleanupBulkLoad", text(1, token) + text(2, region(name)))
    assert not os.path.exists(token.removeprefix("file:"))


def a_repeated_call_is_what_it_is_in_hbase(w):
    """A client repeats a call whose response it has not seen. Moved files no longer exist, so nothing is loaded again; copied files
    are loaded once more, but readers see their cells once."""
    moved, copied = w.place("loads", "f", "moved"), w.place("loads", "f", "copied")

    def files():
        return len([p for p in (w.data / f"data/default/t{w.tables}").glob("*/f/*") if p.is_file()])
    name = w.table()
    assert load(w, name, moved, token="a token") and files() == 1
    assert not load(w, name, moved, token="a token"), "the second answer"
    assert "No such file" in refusal(w, name, moved)[1]
    assert files() == 1 and rows(w, name) == 3
    name = w.table()  # because three files would be compacted
    assert load(w, name, copied, copy=True) and load(w, name, copied, copy=True)
    assert files() == 2
    cells = w.client.data.call("Get", text(1, region(name)) + text(2, text(1, b"r1") + number(6, 100)))
    assert len(hbase.fields(cells[1][0]).get(1, ())) <= 1, cells


def files_that_change_meanwhile(w):
    """A file is replaced or overwritten repeatedly while it is loaded: each load takes one complete file, or fails
    and leaves nothing behind."""
    name = w.table()
    file = w.place("loads", "f", "changing")
    done = threading.Event()

    def change():
        i = 0
        while not done.is_set():
            i += 1
            if i % 3 == 0:
                (w.loads / "f" / "changing").unlink(missing_ok=True)
                os.mkfifo(w.loads / "f" / "changing") if i % 2 else w.place("loads", "f", "changing")
            else:
                w.place("loads", "f", "next")
                os.replace(w.loads / "f" / "next", file)

    thread = threading.Thread(target=change)
    thread.start()
    outcomes = set()
    try:
        for _ in range(150):
            try:
                outcomes.add(load(w, name, file))
            except hbase.Refused as e:
                outcomes.add(e.name)
    finally:
        done.set()
        thread.join()
    assert rows(w, name) in (0, 3)
    print("  outcomes:", sorted(map(str, outcomes)))


def loads_have_durations_of_their_table(w):
    """A refused load has a duration, too, because it took the server's time."""
    name = w.table()
    table = f"t{w.tables}"

    def timed():
        with urllib.request.urlopen(f"http://{w.server.http}/metrics", timeout=LIMIT) as page:
            found = re.findall(r'(?m)^rorqual_table_op_duration_seconds_count\{([^}]*)\} (\d+)$', page.read().decode())
        return sum(int(count) for labels, count in found if f'table="{table}"' in labels and 'op="bulk-load"' in labels)

    assert timed() == 0
    for i in range(3):
        assert load(w, name, w.place("loads", "f", f"timed{i}"))
        hbase.wait_for(lambda i=i: timed() == i + 1)  # a call may be counted after its response
    refusal(w, name, "/no/such/file")
    hbase.wait_for(lambda: timed() == 4)


def settings_that_make_no_sense(w):
    for folders, words in (("relative/folder", "not an absolute path"), (f"/tmp,{w.folder}/../x", "not an absolute path"),
                           (f"{w.data}/data", "is inside the data folder"), (str(w.data), "is inside the data folder")):
        try:
            rorqual.Server(w.data, w.folder / "bad-log", "-D", f"{SETTING}={folders}").kill()
        except RuntimeError as e:
            assert words in str(e), e
        else:
            raise AssertionError(f"{folders} was accepted")


def main():
    with tempfile.TemporaryDirectory() as folder:
        w = World(pathlib.Path(folder).resolve())
        w.start("-D", f"{SETTING}= " + ", ".join(map(str, w.listed)))
        w.make_hfile()
        for test in (fifos_stop_no_pool, only_regular_files, a_foreign_file_is_not_told_of, links_lead_nowhere,
                     server_files_stay, what_is_shared_is_copied, listed_folders_are_loaded_from,
                     a_path_is_one_line_of_the_log, staging_is_loaded_from, a_repeated_call_is_what_it_is_in_hbase,
                     files_that_change_meanwhile, loads_have_durations_of_their_table):
            test(w)
            print("PASS", test.__name__, flush=True)
        w.stop()
        w.start()
        name = w.table()
        assert SETTING in refusal(w, name, w.place("loads", "f", "unlisted"))[1]
        staging_is_loaded_from(w)
        w.stop()
        settings_that_make_no_sense(w)
    return 0


if __name__ == "__main__":
    if not os.path.exists(rorqual.BINARY):
        sys.exit(77)
    sys.exit(main())
