#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One flipped bit in a server's files: an error must name the file and the offset, all other data must be
served, and no acknowledged write may be lost. SEED=n repeats a run; ROUNDS=n sets the random flips (default 16).

Two folders are made: of a killed server, whose log has edits, and of a stopped server. Each case copies one of
them, damages one file, starts the server, reads every row, repairs the file, and reads again.
Three results are right for a row: its value, an error, or a server that refuses to start. Another value, or no
value, is always wrong.
"""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import hbase
import rorqual

SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("ROUNDS", "16"))
CORRUPT = "io.hfile.CorruptHFileException"
NOT_SERVING = "NotServingRegionException"
LETTERS = (b"a", b"j", b"t")  # one region of table alpha each
DEFAULT = "data/default"
HEADER = 4096  # size of a WAL file's header
FRAME = 40

# Blocks of few rows and index entries of half a kilobyte, so that a few hundred rows fill several leaf index
# blocks. (An index key is cut after the first byte that differs, so that byte must come late.)
PAD = b"k" * 500


class Folder:
    """The folder of a server that has ended, and the acknowledged rows: {table: {row: cells}}."""

    def __init__(self, path):
        self.path = path
        self.rows = {"alpha": {}, "beta": {}, "gamma": {}}
        self.regions = {}


def alpha_row(letter, i):
    return letter + PAD + b"%06d" % i


def write(client, folder, table, rows):
    """rows: [(row, cells)] of any region of the table."""
    for start, name, _ in reversed(folder.regions[table]):
        mine = [r for r in rows if r[0] >= start]
        rows = [r for r in rows if r[0] < start]
        for at in range(0, len(mine), 200):
            part = mine[at:at + 200]
            problems = [p for p in client.data.put_many(name, part) if p]
            assert not problems, problems[0]
            for row, cells in part:
                folder.rows[table].setdefault(row, {}).update(cells)


def make(root, rng):
    """Makes both folders. Table alpha is flushed and then written again; beta is only in the log;
    gamma is flushed and not written again."""
    killed = Folder(root / "killed")
    server = rorqual.Server(killed.path, root / "make.log")
    client = hbase.Client(server)
    client.create("alpha", {"p": {"BLOCKSIZE": "1024", "BLOOMFILTER": "ROW"},
                            "z": {"COMPRESSION": "GZ", "BLOCKSIZE": "4096"}}, [b"g", b"p"])
    client.create("beta", {"c": {"COMPRESSION": "GZ"}}, [b"m"])
    client.create("gamma", {"f": {}})
    for table in killed.rows:
        killed.regions[table] = client.regions(table)
    for letter in LETTERS:
        count = 700 if letter == LETTERS[0] else 40
        write(client, killed, "alpha",
              [(alpha_row(letter, i), {(b"p", b"q"): rng.randbytes(40), (b"z", b"q"): b"z%d" % i * 20})
               for i in range(count)])
    write(client, killed, "gamma", [(b"g%03d" % i, {(b"f", b"q"): rng.randbytes(60)})
                                    for i in range(100)])
    for table in ("alpha", "gamma"):
        for _, _, encoded in killed.regions[table]:
            client.flush(encoded)
    for i in range(60):
        write(client, killed, "beta", [(b"%c%04d" % (97 + i % 26, i), {(b"c", b"q"): rng.randbytes(80)})])
        write(client, killed, "alpha", [(alpha_row(LETTERS[i % 3], 1 + i // 3),
                                         {(b"p", b"later"): rng.randbytes(30)})])
    client.close()
    server.kill()
    (killed.path / ".rorqual/control").unlink()  # a socket: copytree cannot copy it

    stopped = Folder(root / "stopped")
    stopped.rows, stopped.regions = killed.rows, killed.regions
    shutil.copytree(killed.path, stopped.path)
    server = rorqual.Server(stopped.path, root / "make.log")
    problem = server.stop()
    assert problem is None, problem
    return killed, stopped


# ---- the parts of files


def hfiles(path, table, family, encoded=None):
    """The files of a family, largest first."""
    region = encoded.decode() if encoded else "*"
    found = [f for f in path.glob(f"{DEFAULT}/{table}/{region}/{family}/*") if f.is_file()]
    return sorted(found, key=lambda f: -f.stat().st_size)


def blocks(path):
    """[(offset, kind, size on disk)] as `rorqual hfile blocks` prints them."""
    out = subprocess.run([rorqual.BINARY, "hfile", "blocks", path], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return [(int(a), kind, int(size)) for a, kind, size in
            re.findall(r"^ *(\d+) +(\w+) +on disk +(\d+)", out, re.M)]


def block_of(path, kind, index=0):
    found = [b for b in blocks(path) if b[1] in (kind, f"ENCODED_{kind}")]
    assert len(found) > index, f"{path} has {len(found)} blocks of kind {kind}"
    return found[index]


def frames(path):
    """[(offset, bytes with header)] of the frames of a WAL file, in order."""
    data = path.read_bytes()
    at, out, lsn = HEADER, [], None
    while at + FRAME <= len(data) and data[at:at + 4] == b"RQf1":
        here, length = struct.unpack(">Q", data[at + 8:at + 16])[0], \
            struct.unpack(">I", data[at + 24:at + 28])[0]
        whole = (FRAME + length + 7) // 8 * 8
        if lsn is not None and here != lsn:
            break
        lsn = here + whole
        out.append((at, FRAME + length))
        at += whole
    return out


def wal_file(path):
    """The WAL file with the most frames."""
    return max(path.glob(".rorqual/wal/*.wal"), key=lambda f: len(frames(f)))


def newest_slot(path, encoded):
    slots = [f for f in path.glob(f".rorqual/regions/{encoded}.?")]
    return max(slots, key=lambda f: struct.unpack(">Q", f.read_bytes()[8:16])[0])


def contents(path):
    """The files that a refused start must not change: all except the lock and a WAL file's header
    (the log begins a new or recycled WAL file before hbase:meta is read)."""
    files = {f: f.read_bytes() for f in path.rglob("*") if f.is_file() and f.name != "lock"}
    return {f: zlib.crc32(data[HEADER:] if f.suffix == ".wal" else data) for f, data in files.items()
            if f.suffix != ".wal" or len(data) > HEADER}


# ---- damage and its repair


class Damage:
    """Changes to files that can be undone. Bytes that the server has written since stay unchanged, because
    restoring a whole file would bring back an older state."""

    def __init__(self):
        self.flips = []  # (path, offset, the byte before, the damaged byte)

    def flip(self, path, offset, bit=0):
        data = bytearray(path.read_bytes())
        was = data[offset]
        data[offset] ^= 1 << bit
        path.write_bytes(data)
        self.flips.append((path, offset, was, data[offset]))

    def zero(self, path, offset):
        """Writes zeros, and is not undone."""
        data = path.read_bytes()
        path.write_bytes(data[:offset] + bytes(len(data) - offset))

    def mend(self):
        for path, offset, was, damaged in reversed(self.flips):
            data = bytearray(path.read_bytes()) if path.exists() else b""
            if offset < len(data) and data[offset] == damaged:
                data[offset] = was
                path.write_bytes(data)


# ---- reading


class Seen:
    """The rows and errors of a folder's tables, read from a server, or the error of its start."""

    def __init__(self, folder, log, look_more=None):
        self.wrong = []      # rows with another value than the acknowledged one, or without a value
        self.refused = {}    # {(table, start key): error of a scan of the region}
        self.row_errors = {} # {row: result of its get}, in regions whose scan was refused
        self.started = True
        self.extra = None    # result of look_more(client, folder)
        self.stop_problem = None
        start = log.stat().st_size if log.exists() else 0
        try:
            server = rorqual.Server(folder.path, log, "--log", "warn")  # logs only reports of damage
        except RuntimeError:
            self.started = False
            self.log = log.read_text(errors="replace")[start:]
            return
        try:
            client = hbase.Client(server)
            for table in folder.rows:
                for at, (first, name, _) in enumerate(folder.regions[table]):
                    after = folder.regions[table][at + 1][0] if at + 1 < len(folder.regions[table]) else None
                    wanted = {r: c for r, c in folder.rows[table].items()
                              if r >= first and (after is None or r < after)}
                    self._region(client, table, first, name, wanted)
            self.extra = look_more(client, folder) if look_more else None
            client.close()
        finally:
            self.stop_problem = server.stop()
        self.log = log.read_text(errors="replace")[start:]

    def _region(self, client, table, first, name, wanted):
        try:
            found = client.data.scan(name)
            if found != wanted:
                self.wrong.append(f"{table}: scan of the region from {first!r} shows {len(found)} rows, "
                                  f"{sum(found.get(r) != c for r, c in wanted.items())} of "
                                  f"{len(wanted)} missing or different")
            return
        except hbase.Refused as error:
            self.refused[table, first] = error
        for row, cells in wanted.items():
            try:
                found = client.data.get(name, row)
                if found != cells:
                    self.wrong.append(f"{table}: row {row[:1]!r}…{row[-6:]!r} shows {sorted(found)}")
            except hbase.Refused as error:
                self.row_errors[row] = error
                if error.name == NOT_SERVING:
                    break


def stopped_wrongly(seen, log_held_edits):
    """A region that could not be opened keeps its edits in the log, and the server's stop must report this."""
    closed = "stays closed" in seen.log or "is not served" in seen.log
    if closed and log_held_edits and seen.stop_problem and "still needs its records" in seen.log:
        return None
    return seen.stop_problem


class Tests:
    def __init__(self, root, killed, stopped, report):
        self.root, self.killed, self.stopped, self.report = root, killed, stopped, report
        self.log = root / "server.log"

    def copy(self, template):
        folder = Folder(self.root / "case")
        shutil.rmtree(folder.path, ignore_errors=True)
        shutil.copytree(template.path, folder.path)
        folder.rows, folder.regions = template.rows, template.regions
        return folder

    def case(self, name, template, damage, judge, look_more=None):
        """damage(path, Damage) returns a value for judge(seen, value); judge returns a problem or None."""
        folder = self.copy(template)
        done = Damage()
        problem = None
        try:
            where = damage(folder.path, done)
            before = contents(folder.path)
            seen = Seen(folder, self.log, look_more)
            problem = seen.wrong[0] if seen.wrong else judge(seen, where)
            if not problem and not seen.started and contents(folder.path) != before:
                problem = "the refused start changed the folder"
            if not problem and seen.started:
                problem = stopped_wrongly(seen, template is self.killed)
            if problem:
                problem += "; log: " + " | ".join(seen.log.splitlines()[-4:])
            else:
                done.mend()
                seen = Seen(folder, self.log)
                if not seen.started or seen.wrong or seen.refused:
                    problem = f"after mending: started {seen.started}, wrong {seen.wrong[:2]}, refused " \
                        f"{[str(r) for r in seen.refused.values()][:2]}; log: {seen.log[-600:]}"
                else:
                    problem = seen.stop_problem
        except (OSError, AssertionError, EOFError, RuntimeError) as error:
            problem = f"{type(error).__name__}: {error}"
        self.report.outcome(f"damage: {name}", problem)


def names(text, path, offset=None):
    """Whether a message names the file and, if given, the offset."""
    if pathlib.Path(path).name not in text:
        return False
    return offset is None or re.search(rf"\b{offset}\b", text) is not None


def only_refused(seen, table, first, error):
    """Returns a problem unless exactly this region's scan was refused, with this error."""
    if not seen.started:
        return "the server did not start"
    if set(seen.refused) != {(table, first)}:
        return f"refused: {seen.refused}"
    got = seen.refused[table, first].name
    return None if got == error else f"answered {got}, expected {error}"


def refuses_to_start(seen, where):
    path, offset = where
    lines = [line for line in seen.log.splitlines() if line.startswith("rorqual: ")]
    hints = [line for line in lines if line.startswith("rorqual: hint: ")]
    lines = [line for line in lines if line not in hints]
    if seen.started:
        return "the server started"
    if len(lines) != 1:
        return f"{len(lines)} lines say why"
    if len(hints) != 1 or "fsck" not in hints[0]:
        return f"the hint is {hints}"
    return None if names(lines[0], path, offset) else f"{lines[0]!r} does not name {where}"


# ---- the cases


def block_case(tests, name, kind, index, family, template, rows_hit):
    """Flips a bit in one block of alpha's first region: reads that need the block get an error, others succeed."""
    _, _, encoded = template.regions["alpha"][0]

    def damage(path, done):
        file = hfiles(path, "alpha", family, encoded)[0]
        offset, _, size = block_of(file, kind, index)
        done.flip(file, offset + size // 2, 3)
        return file, offset

    def judge(seen, where):
        problem = only_refused(seen, "alpha", b"", CORRUPT)
        if problem:
            return problem
        error = seen.refused["alpha", b""]
        if not names(error.trace, *where):
            return f"{error.trace[:300]!r} does not name {where}"
        if not names(seen.log, *where):
            return f"the log does not name {where}"
        if not rows_hit[0] <= len(seen.row_errors) <= rows_hit[1]:
            return f"gets of {len(seen.row_errors)} rows were refused"
        strange = {e.name for e in seen.row_errors.values()} - {CORRUPT}
        return f"gets were answered {strange}" if strange else None

    tests.case(name, template, damage, judge)


def open_case(tests, name, template, place):
    """Damage that keeps alpha's first region from being opened; the other regions are served."""
    _, _, encoded = template.regions["alpha"][0]

    def damage(path, done):
        file = hfiles(path, "alpha", "p", encoded)[0]
        offset, bit = place(file)
        done.flip(file, offset, bit)
        return file, None

    def judge(seen, where):
        problem = only_refused(seen, "alpha", b"", NOT_SERVING)
        if problem:
            return problem
        return None if names(seen.log, *where) else f"the log does not name {where}"

    tests.case(name, template, damage, judge)


def trailer_field(file):
    """The bytes of the load-on-open offset: after magic bytes and length, in a delimited protobuf."""
    data = file.read_bytes()
    trailer = len(data) - 4096
    at = data.index(b"TRABLK\"$", trailer)
    return at + 10, 6


def hfile_cases(tests):
    killed, stopped = tests.killed, tests.stopped
    many = len([r for r in killed.rows["alpha"] if r < b"g"])
    block_case(tests, "data block", "DATA", 300, "p", killed, (1, 4))
    block_case(tests, "data block, compressed", "DATA", 2, "z", stopped, (1, many - 1))
    block_case(tests, "first data block", "DATA", 1, "p", stopped, (1, 4))
    block_case(tests, "leaf index block", "LEAF_INDEX", 1, "p", killed, (2, many - 1))
    open_case(tests, "root index", killed, lambda f: (block_of(f, "ROOT_INDEX")[0] + 60, 2))
    open_case(tests, "file info", killed, lambda f: (block_of(f, "FILE_INFO")[0] + 50, 5))
    open_case(tests, "trailer's magic", killed, lambda f: (f.stat().st_size - 4096 + 3, 1))
    open_case(tests, "trailer's fields", stopped, trailer_field)
    open_case(tests, "trailer's version", stopped, lambda f: (f.stat().st_size - 1, 4))


def bloom_case(tests):
    """A bloom filter only saves reads: the damage is logged, and every row is served."""
    _, whole, encoded = tests.stopped.regions["alpha"][0]

    def damage(path, done):
        file = hfiles(path, "alpha", "p", encoded)[0]
        offset, _, size = block_of(file, "BLOOM_CHUNK")
        done.flip(file, offset + size // 2)
        return file, offset

    def get_all(client, folder):
        for row, cells in sorted(folder.rows["alpha"].items()):
            if row < b"g" and client.data.get(whole, row) != cells:
                return f"a get of row {row[-6:]!r} shows another"
        return None

    def judge(seen, where):
        if not seen.started or seen.refused:
            return f"started {seen.started}, refused {seen.refused}"
        return seen.extra or (None if names(seen.log, *where) else f"the log does not name {where}")

    tests.case("bloom chunk", tests.stopped, damage, judge, look_more=get_all)


def system_cases(tests):
    """Without hbase:meta, the procedures or the namespaces nothing can be served: the start prints
    one line and changes nothing."""

    def damage_of(pattern):
        def damage(path, done):
            file = max((f for f in path.glob(pattern) if f.is_file()), key=lambda f: f.stat().st_size)
            done.flip(file, block_of(file, "DATA")[0] + 40, 1)
            return file, None
        return damage

    tests.case("hbase:meta, data block", tests.stopped, damage_of("data/hbase/meta/1588230740/info/*"),
               refuses_to_start)
    tests.case("hbase:namespace, data block", tests.stopped,
               damage_of("data/hbase/namespace/*/info/*"), refuses_to_start)

    def trailer(path, done):
        file = max(path.glob("data/hbase/meta/1588230740/info/*"), key=lambda f: f.stat().st_size)
        done.flip(file, file.stat().st_size - 4096 + 2, 1)
        return file, None

    tests.case("hbase:meta, trailer", tests.stopped, trailer, refuses_to_start)


def log_cases(tests):
    def middle(path, done):
        file = wal_file(path)
        all_frames = frames(file)
        offset, size = all_frames[len(all_frames) // 2]
        done.flip(file, offset + size - 10, 5)
        return file, offset

    def header(path, done):
        file = wal_file(path)
        all_frames = frames(file)
        offset, _ = all_frames[len(all_frames) // 3]
        done.flip(file, offset + 26, 1)
        return file, offset

    tests.case("log record, its body", tests.killed, middle, refuses_to_start)
    tests.case("log record, its length", tests.killed, header, refuses_to_start)

    def first_header(path, done):
        done.flip(wal_file(path), 20, 1)

    tests.case("WAL file's header, one copy", tests.killed, first_header,
               lambda seen, _: None if seen.started and not seen.refused else "not served")

    def both_headers(path, done):
        file = wal_file(path)
        done.flip(file, 20, 1)
        done.flip(file, 512 + 20, 1)
        return file, None

    tests.case("WAL file's header, both copies", tests.killed, both_headers, refuses_to_start)


def tail_case(tests):
    """The last frame is truncated, as by a power cut: all records before it are replayed, without an error."""
    folder = tests.copy(tests.killed)
    server = rorqual.Server(folder.path, tests.log)
    client = hbase.Client(server)
    names_of = [name for start, name, _ in folder.regions["beta"] if start == b""]
    client.data.put(names_of[0], b"a-last", {(b"c", b"q"): b"torn"})
    client.close()
    server.kill()
    file = max(folder.path.glob(".rorqual/wal/*.wal"),
               key=lambda f: max([struct.unpack(">Q", f.read_bytes()[16:24])[0]]))
    records = frames(file)
    at = max((o for o, n in records if b"a-last" in file.read_bytes()[o:o + n]), default=None)
    problem = None
    if at is None:
        problem = "the last record is not in the newest WAL file"
    else:
        done = Damage()
        done.zero(file, at + FRAME + 9)
        seen = Seen(folder, tests.log)
        if not seen.started:
            problem = "the server did not start"
        elif seen.wrong or seen.refused:
            problem = f"{seen.wrong[:2]} {seen.refused}"
        elif seen.log.strip():
            problem = f"it complains: {seen.log[-300:]}"
        problem = problem or seen.stop_problem
    tests.report.outcome("damage: log, its last record torn", problem)


def manifest_cases(tests):
    encoded = tests.killed.regions["alpha"][1][2].decode()

    def newest(path, done):
        file = newest_slot(path, encoded)
        done.flip(file, 1024 + 20, 2)
        return file, None

    def judge(seen, where):
        problem = only_refused(seen, "alpha", b"g", NOT_SERVING)
        if problem:
            return problem
        return None if names(seen.log, *where) else f"the log does not name {where}"

    tests.case("manifest, the newest slot, edits in the log", tests.killed, newest, judge)
    tests.case("manifest, the newest slot, after a stop", tests.stopped, newest, judge)

    def header(path, done):
        file = newest_slot(path, encoded)
        done.flip(file, 12, 2)
        return file, None

    tests.case("manifest, the newest slot's header", tests.killed, header, judge)

    def both(path, done):
        for file in path.glob(f".rorqual/regions/{encoded}.?"):
            done.flip(file, 1024 + 12, 2)
        return path / encoded, None

    tests.case("manifest, both slots", tests.killed, both, judge)

    def mark(path, done):
        done.flip(newest_slot(path, encoded), 512 + 12, 2)

    tests.case("manifest, the newest slot's mark", tests.killed, mark,
               lambda seen, _: None if seen.started and not seen.refused else "not served")


def descriptor_cases(tests):
    def tableinfo(path, done):
        file = next(path.glob(f"{DEFAULT}/alpha/.tabledesc/.tableinfo.*"))
        done.flip(file, 6, 7)
        return file, None

    def judge(seen, where):
        if not seen.started:
            return "the server did not start"
        if {table for table, _ in seen.refused} != {"alpha"} or len(seen.refused) != 3:
            return f"refused: {seen.refused}"
        return None if "alpha" in seen.log and "tableinfo" in seen.log else f"the log does not name {where}"

    tests.case("table descriptor", tests.killed, tableinfo, judge)

    def user_family(path, done):
        """The descriptor names q instead of family p: the family's cells in files and log must not be lost."""
        file = next(path.glob(f"{DEFAULT}/alpha/.tabledesc/.tableinfo.*"))
        done.flip(file, file.read_bytes().index(b"\x0a\x01p") + 2, 0)
        return file, None

    tests.case("table descriptor, the name of a family", tests.killed, user_family, judge)

    def family_name(table):
        """A readable descriptor of a system table names another family instead of `info`."""
        def damage(path, done):
            file = next(path.glob(f"data/hbase/{table}/.tabledesc/.tableinfo.*"))
            at = file.read_bytes().index(b"\x0a\x04info")
            done.flip(file, at + 2, 5)
            return file, None
        return damage

    for table in ("meta", "namespace"):
        tests.case(f"descriptor of hbase:{table}, the name of its family", tests.killed, family_name(table),
                   lambda seen, where: "not all is served" if not seen.started or seen.refused else
                   None if "tableinfo" in seen.log else f"the log does not name {where}")

    def regioninfo(path, done):
        encoded = tests.stopped.regions["alpha"][2][2].decode()
        done.flip(path / DEFAULT / "alpha" / encoded / ".regioninfo", 9, 7)

    # hbase:meta has the same content; the file is for tools that rebuild hbase:meta.
    tests.case("region descriptor", tests.stopped, regioninfo,
               lambda seen, _: None if seen.started and not seen.refused else f"refused: {seen.refused}")


def random_cases(tests, rng):
    """Flips any bit of any file: the result must be right values, errors, or a refusal that names a file."""
    for n in range(ROUNDS):
        template = rng.choice((tests.killed, tests.stopped))
        files = [f.relative_to(template.path) for f in sorted(template.path.rglob("*"))
                 if f.is_file() and f.stat().st_size > 0 and f.name != "lock"]
        # The regions whose rows are read, the log, and the other files are chosen equally often.
        kinds = {}
        for file in files:
            kind = "small" if len(file.parts) < 3 else file.parts[:3 if file.parts[0] == "data" else 2]
            kinds.setdefault(kind, []).append(file)
        file = rng.choice(kinds[rng.choice(sorted(kinds, key=str))])
        size = (template.path / file).stat().st_size
        if file.suffix == ".wal":
            last = frames(template.path / file)
            # Damage that is not followed by a valid record may be a torn tail, which is tested above.
            size = last[-3][0] if len(last) > 3 else HEADER
        offset, bit = rng.randrange(size), rng.randrange(8)

        def damage(path, done, file=file, offset=offset, bit=bit):
            done.flip(path / file, offset, bit)
            return path / file

        def judge(seen, where):
            bad = {e.name for e in seen.refused.values()} - {CORRUPT, NOT_SERVING}
            if bad:
                return f"answered {bad}"
            if (seen.refused or not seen.started) and not names(seen.log, where):
                # The log names the table for a damaged descriptor, the region for a damaged manifest.
                if where.stem not in seen.log and where.parts[-3] not in seen.log:
                    return f"the log does not name {where}"
            return None

        tests.case(f"random {n}: bit {bit} of byte {offset} of {file}", template, damage, judge)


def main():
    report = rorqual.Report()
    rng = random.Random(SEED)
    print(f"seed {SEED}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rorqual-damage.") as scratch:
        root = pathlib.Path(scratch)
        tests = Tests(root, *make(root, rng), report)
        hfile_cases(tests)
        bloom_case(tests)
        system_cases(tests)
        log_cases(tests)
        tail_case(tests)
        manifest_cases(tests)
        descriptor_cases(tests)
        random_cases(tests, rng)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
