#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catalog changes that cannot be executed, and garbage that a client writes into hbase:meta. Such changes
are refused before any region is closed, and block neither the table nor a stop. Garbage affects
only its own row, also at the next start.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import fields, nonce, number, region_info, text  # pylint: disable=wrong-import-position

META = b"1588230740"
LONG = b"k" * 32760
STATE = (b"table", b"state")
ENABLED = b"\x08\x00"


def refusal(call_it, *arguments):
    """The exception's class and text; None if the call succeeded."""
    try:
        call_it(*arguments)
    except hbase.Refused as e:
        return e.name, e.trace
    return None


def expect_refused(got, name, words):
    assert got is not None and got[0] == name and words in got[1], got


def names_too_long(server):
    client = hbase.Client(server)
    expect_refused(refusal(client.create, "long", {"f": {}}, [LONG]), "DoNotRetryIOException",
                   "Row length")
    client.create("long", {"f": {}})
    name = client.regions("long")[0][1]
    expect_refused(refusal(client.split, "long", LONG), "DoNotRetryIOException", "Row length")
    client.data.put(name, b"row", {(b"f", b"q"): b"v"})
    client.create("other", {"f": {}})
    disable = text(1, hbase.table_name("long")) + number(2, nonce()) + number(3, nonce())
    client.procedure(client.master.call("DisableTable", disable)[1][0])
    enable = text(1, hbase.table_name("long")) + number(2, nonce()) + number(3, nonce())
    client.procedure(client.master.call("EnableTable", enable)[1][0])
    client.close()


REOPENINGS = 40


def a_region_is_told_of_while_it_reopens(server):
    """GetRegionInfo with a best split row searches the row on a pool; meanwhile the catalog may
    replace its node of the region. Freed memory is overwritten if MALLOC_PERTURB_ is set."""
    client = hbase.Client(server)
    client.create("reopened", {"f": {}})
    regions = client.regions("reopened")
    for i in range(20):
        client.data.put(regions[0][1], b"r%02d" % i, {(b"f", b"q"): b"v" * 1000})
    client.flush(regions[0][1])
    done = threading.Event()
    wrong = []

    def ask():
        admin = hbase.Connection(server.regionserver, "AdminService")
        message = text(1, hbase.region(regions[0][1])) + number(3, 1)
        while not done.is_set():
            for _ in range(20):
                admin.send("GetRegionInfo", message)
            for _ in range(20):
                answer = admin.receive()[1]
                if isinstance(answer, hbase.Refused):
                    continue
                info = fields(answer[1][0])
                table = fields(info[2][0])
                if table[1][0] != b"default" or table[2][0] != b"reopened":
                    wrong.append(answer[1][0])
        admin.close()

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for _ in range(REOPENINGS):
        for method in ("DisableTable", "EnableTable"):
            message = text(1, hbase.table_name("reopened")) + number(2, nonce()) + number(3, nonce())
            client.procedure(client.master.call(method, message)[1][0])
    done.set()
    for asker in askers:
        asker.join()
    assert not wrong, wrong[0]


def block_archive(folder):
    """Puts a file in the place of archive/, so that nothing can be archived. The server may create the folder meanwhile."""
    archive = folder / "archive"
    while not archive.is_file():
        shutil.rmtree(archive, ignore_errors=True)
        try:
            archive.touch(exist_ok=False)
        except FileExistsError:
            pass
    return archive


def a_stop_while_a_procedure_repeats(folder, log):
    """The step that archives a dropped table's files fails repeatedly, while another call waits for the table."""
    server = rorqual.Server(folder, log)
    client = hbase.Client(server)
    client.create("dropped", {"f": {}})
    name = client.regions("dropped")[0][1]
    client.data.put(name, b"row", {(b"f", b"q"): b"v"})
    client.flush(name)
    table = text(1, hbase.table_name("dropped"))
    nonces = number(2, nonce()) + number(3, nonce())
    client.procedure(client.master.call("DisableTable", table + nonces)[1][0])
    archive = block_archive(folder)
    nonces = number(2, nonce()) + number(3, nonce())
    dropping = client.master.call("DeleteTable", table + nonces)[1][0]
    deadline = time.monotonic() + hbase.TIMEOUT
    while "step CLEAR_FS_LAYOUT" not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline, "the step did not fail"
        time.sleep(0.01)
    waits = hbase.Connection(server.master, "MasterService")
    waits.send("EnableTable", table + number(2, nonce()) + number(3, nonce()))

    def is_waiting():
        """In the state WAITING_TIMEOUT, with the exception; between two waits it runs."""
        listed = [fields(p) for p in client.master.call("GetProcedures", b"")[1]]
        mine = [p for p in listed if p[3][0] == dropping][0]
        return 10 in mine and mine[6][0] == 4
    hbase.wait_for(is_waiting)
    hbck = hbase.Connection(server.master, "HbckService")
    assert hbck.call("BypassProcedure", number(1, 10 ** 9)) == {1: [0]}
    problem = server.stop()
    assert "no end" not in (problem or ""), problem  # the stop does not wait for a step that is retried
    archive.unlink()
    server = rorqual.Server(folder, log)
    client = hbase.Client(server)
    client.create("dropped", {"f": {}})
    client.close()
    problem = server.stop()
    assert problem is None, problem


def an_abort_ends_what_repeats(folder, log):
    server = rorqual.Server(folder, log)
    client = hbase.Client(server)
    table = text(1, hbase.table_name("dropped"))
    name = client.regions("dropped")[0][1]
    client.data.put(name, b"row", {(b"f", b"q"): b"v"})
    client.flush(name)
    nonces = number(2, nonce()) + number(3, nonce())
    client.procedure(client.master.call("DisableTable", table + nonces)[1][0])
    archive = block_archive(folder)
    nonces = number(2, nonce()) + number(3, nonce())
    dropping = client.master.call("DeleteTable", table + nonces)[1][0]
    hbck = hbase.Connection(server.master, "HbckService")
    deadline = time.monotonic() + hbase.TIMEOUT
    while not hbck.call("BypassProcedure", number(1, dropping))[1][0]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        client.procedure(dropping)
        raise AssertionError("it ended well")
    except RuntimeError as e:
        assert "Procedure aborted" in str(e), e
    archive.unlink()
    client.create("dropped", {"f": {}})
    client.close()
    problem = server.stop()
    assert problem is None, problem


def mutation(row, kind, family, qualifier, timestamp, value=b"", delete=None):
    cell = text(1, qualifier) + text(2, value) + number(3, timestamp)
    if delete is not None:
        cell += number(4, delete)
    return text(1, row) + number(2, kind) + text(3, text(1, family) + text(2, cell))


def times_that_nobodys_clock_shows(server):
    client = hbase.Client(server)
    put, delete, family = 2, 3, 3
    tomorrow = int(time.time() * 1000) + 3 * 86400 * 1000
    for timestamp in (2 ** 63 - 2, 2 ** 62, tomorrow):
        for one in (mutation(b"other", put, *STATE, timestamp, ENABLED),
                    mutation(b"other", delete, b"table", b"state", timestamp, delete=family)):
            got = refusal(client.data.call, "Mutate", text(1, hbase.region(META)) + text(2, one))
            expect_refused(got, "exceptions.FailedSanityCheckException",
                           "Timestamp for KV out of range")
    now = mutation(b"other", put, *STATE, int(time.time() * 1000), ENABLED)
    client.data.call("Mutate", text(1, hbase.region(META)) + text(2, now))
    client.close()


def row_of(table, start, region_id):
    name = table + b"," + start + b"," + str(region_id).encode()
    return name + b"." + hashlib.md5(name).hexdigest().encode() + b"."


def garbage_in_meta(server):
    client = hbase.Client(server)
    name = client.regions("other")[0][1]
    client.data.put(name, b"row", {(b"f", b"q"): b"kept"})
    client.create("torn", {"f": {}}, [b"h", b"p"])
    torn = client.regions("torn")
    for start, region, _ in (torn[0], torn[-1]):
        client.data.put(region, start + b"a", {(b"f", b"q"): b"kept"})
    info, ten_megabytes = (b"info", b"regioninfo"), b"x" * (9 << 20)
    pbuf = b"PBUF"
    rows = [
        (b"hbase:meta,,1", {info: pbuf + region_info(b"meta", b"", b"", 1, b"hbase")}),
        (row_of(b"master:store", b"", 1), {info: pbuf + region_info(b"store", b"", b"", 1, b"master")}),
        (row_of(b"other", b"", 7), {info: pbuf + region_info(b"other", b"", b"", 7)}),
        (row_of(b"other", b"b", 8), {info: pbuf + region_info(b"other", b"b", b"a", 8)}),
        (row_of(b"other", b"c", 2 ** 62), {info: pbuf + region_info(b"other", b"c", b"", 2 ** 62)}),
        (row_of(b"nobody", b"", 9), {info: pbuf + region_info(b"nobody", b"", b"", 9)}),
        (row_of(b"hbase:namespace", b"", 2),
         {info: pbuf + region_info(b"namespace", b"", b"", 2, b"hbase")}),
        (name, {(b"info", b"splitA"): b"junk", (b"info", b"merge0000"): b"junk",
                (b"info", b"state"): b"junk", (b"info", b"server"): b"\xff",
                (b"info", b"seqnumDuringOpen"): b"\xff" * 8, (b"info", b"state_FFFF"): b"x"}),
        (torn[1][1], {info: b"junk", STATE: b"junk"}),
        (b"other", {(b"table", b"other"): ten_megabytes}),
        (b"large", {STATE: ten_megabytes, info: ten_megabytes}),
    ]
    rows += [(f"phantom{i}".encode(), {STATE: ENABLED}) for i in range(500)]
    assert set(client.data.put_many(META, rows)) == {None}
    client.close()


def sound_tables_are_served(server):
    client = hbase.Client(server)
    name = [r for r in client.regions("other") if not r[1].endswith(b",7." + r[2] + b".")]
    got = [refusal(client.data.get, r[1], b"row") for r in name]
    assert None in got, got
    torn = client.regions("torn")
    for start, region, _ in (torn[0], torn[-1]):
        assert client.data.get(region, start + b"a") == {(b"f", b"q"): b"kept"}, region
    client.create("after", {"f": {}})
    client.create("phantom17", {"f": {}})
    client.close()


def fsck_names_it(folder):
    run = subprocess.run([rorqual.BINARY, "fsck", folder], capture_output=True, text=True, check=False)
    for words in ("hbase:meta,,1", "master:store", "nobody", "phantom20"):
        assert words in run.stdout, (words, run.stdout[-3000:], run.stderr)


def main():
    report = rorqual.Report()

    def outcome(test, *arguments):
        problem = None
        try:
            test(*arguments)
        except (AssertionError, EOFError, OSError, KeyError, IndexError, RuntimeError,
                hbase.Refused) as e:
            problem = repr(e)
        report.outcome(f"catalog/{test.__name__}", problem)

    with tempfile.TemporaryDirectory() as folder:
        data, log = pathlib.Path(folder, "data"), pathlib.Path(folder, "log")
        server = rorqual.Server(data, log)
        outcome(names_too_long, server)
        outcome(a_region_is_told_of_while_it_reopens, server)
        outcome(times_that_nobodys_clock_shows, server)
        report.outcome("catalog/stops cleanly", server.stop())
        outcome(a_stop_while_a_procedure_repeats, data, log)
        outcome(an_abort_ends_what_repeats, pathlib.Path(folder, "data"), log)
        server = rorqual.Server(data, log)
        outcome(garbage_in_meta, server)
        server.kill()
        for _ in range(2):
            server = rorqual.Server(data, log)
            outcome(sound_tables_are_served, server) if _ == 0 else None
            report.outcome("catalog/stops cleanly, beside garbage", server.stop())
        lines = len(re.findall(r"(?m)^\S+ (?:WARN|ERROR) ", log.read_text(errors="replace")))
        report.outcome("catalog/the log is not flooded", None if lines < 300 else f"{lines} lines")
        outcome(fsck_names_it, data)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
