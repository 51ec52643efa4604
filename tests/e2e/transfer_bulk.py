# SPDX-License-Identifier: Apache-2.0
"""rorqual bulkload loads the same rows as import. Refused and killed loads, files that are divided, changed input. transfer.py runs
these tests."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import urllib.request

import hbase
from rorqual import BINARY, pause
from transfer_world import DEADLINE, ROWS, Late, expect, in_time, killed_amid, killed_when

def tsv_of(w, rows=ROWS):
    """Rows in random order; the last line of a row counts."""
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
    """Rows in random order, without timestamps, in several files: a second load would add further versions."""
    folder = w.path("folder")
    folder.mkdir()
    lines = [f"r{(i * 7) % ROWS:03d}\tA{i}\tB{i}\tG{i}\n" for i in range(ROWS)]
    for i in range(files):
        (folder / f"{i}").write_text("".join(lines[i::files]))
    return folder


def store_files(w, table):
    """The number of files of each store."""
    stores = [s for s in (w.folder / f"data/data/default/{table}").glob("*/*") if s.name in ("cf", "g")]
    return [len([f for f in s.iterdir() if f.is_file() and not f.name.startswith(".")]) for s in stores]


def loaded_once(w, table, put):
    assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
    if w.own:
        counts = store_files(w, table)
        assert len(counts) == 2 * (len(MANY_SPLITS) + 1) and set(counts) == {1}, counts


def has_noted(out, word, count):
    """The condition that a load's journal has as many lines that begin with the word."""
    journal = out / "_rorqual_load"
    return lambda: journal.exists() and journal.read_text().count("\n" + word) >= count


def killed_bulk_loads_go_on(w):
    """Kills at random moments of the whole run, repeatedly until one run completes."""
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
                break  # killed after its last step
        print(f"# {kills} kills, seed {seed}: {text.decode().strip()}")
        assert not kept.exists() or not any(kept.iterdir())
        loaded_once(w, table, put)


def a_load_that_was_killed_goes_on(w):
    """Kills while the regions' files are loaded: files made from text, from a folder of HFiles, and copied ones."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, put = folder_of(w), w.table()
    w.run("import", *fields, put, folder)
    for options in ((), ("--keep",)):
        for made in (False, True):
            def prepare(options=options, made=made):
                table, out = w.table(splits=MANY_SPLITS), w.bulk / f"made{w.counter}"
                command = [*options, *fields, "--output", out, table, folder]
                if made:
                    w.run("bulkload", *fields, "--output", out, "--no-load", table, folder)
                    command = [*options, table, out]
                return [BINARY, "bulkload", "--zk", w.server.zk, *command], has_noted(out, "done ", 4), (command, table, out)
            command, table, out = killed_amid(prepare)
            journal = out / "_rorqual_load"
            first = journal.read_text()
            assert not w.own or 0 < len([n for n in store_files(w, table) if n]) <= 2 * (len(MANY_SPLITS) + 1)
            other = w.table()
            if made:
                expect(w.run("bulkload", *options, other, out, code=1), "an unfinished load", "table=" + table)
            else:
                expect(w.run("bulkload", *options, *fields, "--skip-empty", "--output", out, table, folder, code=1), "begun by another command")
            output = w.run("bulkload", *command)
            again = int(output.split("loaded ")[1].split()[0])
            assert again <= 2 * (len(MANY_SPLITS) + 1) - 4, (output, first)
            if options:  # the outcome of the interrupted call is unknown: its two files may be loaded twice
                assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
                assert sum(store_files(w, table)) <= 2 * (len(MANY_SPLITS) + 1) + 2
            else:
                loaded_once(w, table, put)
            assert not journal.exists()


def a_load_that_divides_goes_on(w):
    """Killed while files of few regions are divided for many regions, and while the pieces are loaded."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, put = folder_of(w), w.table()
    w.run("import", *fields, put, folder)
    for condition in ("divided ", "done "):
        def prepare(condition=condition):
            table, out = w.table(splits=MANY_SPLITS), w.bulk / f"few{w.counter}"
            w.run("bulkload", *fields, "--output", out, "--no-load", put, folder)
            return [BINARY, "bulkload", "--zk", w.server.zk, table, out], has_noted(out, condition, 3), (table, out)
        table, out = killed_amid(prepare)
        w.run("bulkload", table, out)
        assert w.run("verify", "--versions", "9", "--ignore-timestamps", put, table).strip() == "equal"
        # The files end at r100, r200 and r300: two of these keys are inside a region, which gets parts of two files.
        counts = store_files(w, table)
        assert not w.own or sorted(counts) == [1] * (2 * len(MANY_SPLITS) - 2) + [2] * 4, counts
        assert not (out / "_rorqual_load").exists() and not (out / "_rorqual_pieces").exists()


def hfiles_of(w, rows=ROWS):
    """A table of one region with the rows, and a folder with its two HFiles, one per family."""
    put, folder, out = w.table(splits=()), w.path("rows"), w.bulk / f"whole{w.counter}"
    folder.write_text("".join(f"r{i:03d}\tA{i}\tB{i}\tG{i}\n" for i in range(rows)))
    w.run("import", *BULK, put, folder)
    w.run("bulkload", *BULK, "--output", out, "--no-load", put, folder)
    return put, out


def a_file_of_many_regions_is_divided(w):
    """Each file is divided for 61 regions, and has a name as long as HBase's."""
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
    """Between two attempts to load a family's files its folder disappears; in a second load a file replaces the folder."""
    if not w.own:
        return
    put, out = hfiles_of(w)

    def attempt(there):
        # Enough regions that the load is not finished when the server is stopped.
        table, folder = w.table(splits=tuple(b"r%03d" % i for i in range(4, 400, 4))), w.bulk / f"away{w.counter}"
        shutil.copytree(out, folder)
        away, pieces, begun = folder / "_cf", folder / "_rorqual_pieces/cf", has_noted(folder, "done ", 1)
        command = [BINARY, "bulkload", "--zk", w.server.zk, table, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            hbase.wait_for(lambda: process.poll() is not None or begun())
            pause(w.server.process)
            try:
                if process.poll() == 0 or not pieces.exists():
                    raise Late
                pieces.rename(away)
                if there:
                    pieces.write_text("")
            finally:
                w.server.process.send_signal(signal.SIGCONT)
            text = process.communicate(timeout=DEADLINE)[0]
        if process.returncode == 0:  # the last call had been sent
            raise Late
        assert process.returncode == 1, text
        return table, folder, away, pieces, text

    for there, error in (False, "No such file"), (True, "Not a directory"):
        table, folder, away, pieces, text = in_time(lambda there=there: attempt(there))
        expect(text, error)
        if there:
            pieces.unlink()
        away.rename(pieces)
        w.run("bulkload", table, folder)
        assert w.same(put, table)


def server_is_idle(w):
    """The server may still execute the last call of a killed client."""
    with urllib.request.urlopen(f"http://{w.server.http}/rs-status?format=json&filter=all", timeout=DEADLINE) as page:
        return not any("rpcCall" in task for task in json.load(page))


def a_renamed_file_is_loaded(w):
    """Killed a second time, after renaming a file that the first run was about to load; with and without --keep, a whole file or
    a piece."""
    put, whole = hfiles_of(w)
    for pieces in (False, True):
        for options in ((), ("--keep",)):
            def prepare(pieces=pieces):
                table, out = w.table(splits=MANY_SPLITS), w.bulk / f"renamed{w.counter}"
                if pieces:
                    shutil.copytree(whole, out)
                else:
                    w.run("bulkload", *BULK, "--output", out, "--no-load", table, w.folder / whole.name.replace("whole", "rows"))
                return [BINARY, "bulkload", "--zk", w.server.zk, table, out], has_noted(out, "done ", 4), (table, out)
            table, out = killed_amid(prepare)
            journal, places = out / "_rorqual_load", [out / ("_rorqual_pieces" if pieces else "") / f for f in ("cf", "g")]
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


def killed_while_it_loads(w, option):
    """A bulk load of text, killed between two of its calls. option: --output or --progress. Returns its command, the table and the
    option's folder."""
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder = folder_of(w)

    def prepare():
        table, place = w.table(splits=MANY_SPLITS), w.path("work")
        if option == "--output":
            place = w.bulk / f"end{w.counter}"
        command = ["bulkload", *fields, option, place, table, folder]

        def has_loaded_some():
            output = place if option == "--output" else place_of(place / f"bulkload-{table}")
            return output and has_noted(output, "done ", 4)()
        return [BINARY, command[0], "--zk", w.server.zk, *command[1:]], has_loaded_some, (command, table, place)
    return killed_amid(prepare)


def a_load_killed_at_its_end_leaves_nothing(w):
    """The step file says that all is loaded, but files that the load needed to continue still exist."""
    command, _, out = killed_while_it_loads(w, "--output")
    (out / "_rorqual_pieces").mkdir()
    step = out / "_rorqual_runs/step"
    step.write_text(step.read_text().replace("merged", "loaded"))
    w.run(*command)
    assert not list(out.glob("_rorqual*")), list(out.iterdir())


def a_staging_folder_is_removed_before_it_is_forgotten(w):
    """The server refuses to remove the staging folder that the work folder names: then the work folder must remain."""
    if not w.own:
        return
    command, table, work = killed_while_it_loads(w, "--progress")
    kept = work / f"bulkload-{table}"
    staging, step, wrong = place_of(kept), kept / "step", w.path("nostaging")
    wrong.mkdir()
    step.write_text(step.read_text().replace("merged", "loaded"))
    (kept / "place").write_text(f"file:{wrong}")
    expect(w.run(*command, code=1), "CleanupBulkLoad")
    assert step.exists()
    (kept / "place").write_text(f"file:{staging}")
    before = shutil.copytree(kept, w.path("before"))
    for _ in range(2):  # the second time as after a kill between the two removals
        expect(w.run(*command), f"sorted {ROWS} rows")
        assert not kept.exists() and not staging.exists()
        shutil.copytree(before, kept)


def a_bulk_load_of_changed_input_is_refused(w):
    fields = ("--format", "tsv", "--fields", "HBASE_ROW_KEY,cf:b,cf:a,g:x")
    folder, table = folder_of(w), w.table()

    def attempt():
        work = w.path("work")
        command = [BINARY, "bulkload", "--zk", w.server.zk, *fields, "--jobs", "1", "--rate", "3K", "--progress", str(work), table, str(folder)]
        with subprocess.Popen(command) as process:
            expect(first_line_of_refusal(w, process, fields, work, table, folder), "is in use")
            killed_when(process, lambda: (work / f"bulkload-{table}" / "00001").exists())
        return work
    work = in_time(attempt)
    os.utime(folder / "5", (1, 1))
    expect(w.run("bulkload", *fields, "--progress", work, table, folder, code=1), "the input has changed")
    shutil.rmtree(work)
    expect(w.run("bulkload", *fields, "--progress", work, table, folder), f"sorted {ROWS} rows")
    assert not (work / f"bulkload-{table}").exists()


def first_line_of_refusal(w, process, fields, work, table, folder):
    """The first line of error that a second load gets at the same time."""
    hbase.wait_for(lambda: process.poll() is not None or (work / f"bulkload-{table}" / "plan").exists())
    done = subprocess.run([BINARY, "bulkload", "--zk", w.server.zk, *fields, "--progress", work, table, folder], capture_output=True,
                          text=True, timeout=DEADLINE, check=False)
    if process.poll() == 0:
        raise Late
    assert done.returncode == 1, done
    return done.stdout + done.stderr


ALONE = [bulk_loads_are_as_imports, bulk_loads_are_refused, killed_bulk_loads_go_on, a_load_that_was_killed_goes_on,
         a_load_that_divides_goes_on, a_renamed_file_is_loaded, a_file_of_many_regions_is_divided, a_name_of_any_length_is_loaded,
         a_file_that_cannot_be_seen_is_not_loaded, a_load_killed_at_its_end_leaves_nothing,
         a_staging_folder_is_removed_before_it_is_forgotten, a_bulk_load_of_changed_input_is_refused]
