#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's log: lines at start and stop, of flushes, compactions and slow disks; audit lines of calls that change
something, in text and JSON; names that try to forge a line; logs that nobody reads; full disks; crash reports."""
import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import hbase
from hbase import number, table_name, text
from rorqual import BINARY, Server

OPENAT = ("257", "56")  # the system call's numbers on x86-64 and AArch64
WAIT = 300  # seconds: limit of each wait, reached only after an error
PORTS = ("--zk-port", "0", "--master-port", "0", "--rs-port", "0")
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARN|ERROR) ([a-z]+): (.*)")
FIELD = re.compile(r' ([a-z_A-Z]+)=("(?:[^"\\]|\\.)*"|\S+)')
FORGED = "bob result=ok\n2026-01-01T00:00:00.000Z INFO audit: DeleteTable user=root table=t result=ok\x1b[2J\u202e"


def stop(server):
    problem = server.stop()
    assert problem is None, problem


def wait_for(path, wanted, count=1):
    """Waits until the file has the text `count` times; returns the file's text."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        found = path.read_text(errors="replace") if path.exists() else ""
        if found.count(wanted) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{wanted!r} not {count} times in {path.name}: {found[-800:]}")


def events(path, subject):
    """(message, fields) of the subject's lines in a text log; checks the form of all lines."""
    out = []
    for line in path.read_text().splitlines():
        parsed = LINE.fullmatch(line)
        assert parsed, line
        if parsed[2] == subject:
            found = {k: v[1:-1] if v.startswith('"') else v for k, v in FIELD.findall(" " + parsed[3].partition(" ")[2])}
            out.append((parsed[3].split(" ")[0], found))
    return out


def refused(connection, method, message):
    try:
        connection.call(method, message)
    except hbase.Refused as e:
        return e.name
    raise AssertionError(f"{method} was not refused")


def ddl(client, method, message):
    client.procedure(client.master.call(method, message)[1][0])


def start_and_stop_are_told(tmp):
    server = Server(tmp / "d", tmp / "log", "-D", "hbase.hstore.compaction.min=7")
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    client.data.put(client.regions("t")[0][1], b"row", {(b"f", b"q"): b"v"})
    client.close()
    assert server.kill() is None
    first = (tmp / "log").read_text()
    for wanted in (" INFO server: starts version=\"", f"data={tmp / 'd'}", "setting name=hbase.hstore.compaction.min value=7 default=3",
                   " budget=", " block_cache=", "new data folder path=", "recovered_records=0", f"ready: zookeeper {server.zk}"):
        assert wanted in first, (wanted, first)
    assert "compaction.max" not in first, "settings that have their default are not told"
    stop(Server(tmp / "d", tmp / "log2"))
    told = (tmp / "log2").read_text()
    assert int(re.search(r"server: data folder path=\S+ recovered_records=(\d+) ", told)[1]) > 0, told
    done = re.search(r"server: stopped cleanly flushes=(\d+) flushed_bytes=(\d+) ms=\d+\.\d{3}\n\Z", told)
    assert done and int(done[1]) > 0 and int(done[2]) > 0, told


def a_refused_start_is_told_without_its_settings(tmp):
    server = Server(tmp / "d", tmp / "log")
    done = subprocess.run([BINARY, "server", "--data", tmp / "d", *PORTS, "--http", "none", "--log-file", tmp / "other"], capture_output=True,
                          text=True, timeout=WAIT, check=False)
    assert done.returncode == 1 and "in use" in done.stderr.splitlines()[0] and "starts version" not in done.stderr, done
    told = (tmp / "other").read_text()
    assert len(told.splitlines()) == 1 and " ERROR server: not started why=" in told, told
    stop(server)


def calls_that_change_something_are_audited(tmp):
    log = tmp / "log"
    server = Server(tmp / "d", log, "-D", "rorqual.stop.by.call=false")
    client = hbase.Client(server)
    client.create("ns", {"f": {}})
    client.create("t", {"f": {}}, [b"m"])
    name = client.regions("t")[0][1]
    client.data.put(name, b"a", {(b"f", b"q"): b"v"})
    client.data.put(name, b"b", {(b"f", b"q"): b"v"})
    client.flush(name)
    assert refused(client.master, "DeleteTable", text(1, table_name("t"))) == "TableNotDisabledException"
    assert refused(client.master, "DeleteTable", text(1, table_name("absent"))) == "TableNotFoundException"
    assert refused(client.master, "Shutdown", b"") == "DoNotRetryIOException"  # refused because of the setting
    assert "InvalidProtocolBuffer" in refused(client.master, "DeleteTable", b"\x0a")
    ddl(client, "AddColumn", text(1, table_name("t")) + text(2, text(1, "g")))
    client.procedure(client.master.call("SplitRegion", text(1, split_info(client, "t")) + text(2, b"b"))[1][0])
    client.master.call("SetBalancerRunning", number(1, 0))
    client.admin.call("UpdateConfiguration", b"")
    ddl(client, "DisableTable", text(1, table_name("t")))
    ddl(client, "DeleteTable", text(1, table_name("t")))
    client.master.call("GetClusterStatus", b"")
    client.master.call("IsBalancerEnabled", b"")
    port = client.master.socket.getsockname()[1]
    client.close()
    stop(server)
    told = events(log, "audit")
    assert all(f["user"] == "tester" and f["address"].startswith("127.0.0.1:") for _, f in told), told
    assert not [m for m, _ in told if re.match("(?i)get|is|list|has", m)], "calls that only read are not audited"
    wanted = [("CreateTable", {"table": "ns", "result": "ok"}), ("CreateTable", {"table": "t", "result": "ok", "split_keys": "m"}),
              ("FlushRegion", {"region": name.decode(), "result": "ok"}),
              ("DeleteTable", {"table": "t", "result": "org.apache.hadoop.hbase.TableNotDisabledException"}),
              ("DeleteTable", {"table": "absent", "result": "org.apache.hadoop.hbase.TableNotFoundException"}),
              ("Shutdown", {"result": "org.apache.hadoop.hbase.DoNotRetryIOException"}),
              ("DeleteTable", {"result": "org.apache.hbase.thirdparty.com.google.protobuf.InvalidProtocolBufferException"}),
              ("AddColumn", {"table": "t", "family": "g", "result": "ok"}),
              ("SplitRegion", {"region": "t,", "split_row": "b", "result": "ok"}),
              ("SetBalancerRunning", {"on": "false", "result": "ok"}), ("UpdateConfiguration", {"result": "ok"}),
              ("DisableTable", {"table": "t", "result": "ok"}), ("DeleteTable", {"table": "t", "result": "ok"})]
    assert [m for m, _ in told] == [m for m, _ in wanted], told
    for (method, got), (_, expected) in zip(told, wanted):
        assert expected.items() <= got.items(), (method, got, expected)
    assert f"127.0.0.1:{port}" in {f["address"] for _, f in told}
    assert told[3][1]["why"] and "procedure" not in told[3][1]
    # The log line of a procedure's end has the procedure id of the call's audit line.
    ended = {f["procedure"]: (m, f) for m, f in events(log, "procedure")}
    for method, got in told:
        if "procedure" in got:
            assert ended[got["procedure"]][0] == "done" and ended[got["procedure"]][1]["result"] == "ok", (method, ended)
    kinds = {f["kind"] for _, f in ended.values()}
    assert {"CreateTableProcedure", "SplitTableRegionProcedure", "DeleteTableProcedure"} <= kinds, kinds


def split_info(client, table):
    """The RegionInfo of a table's first region, read from hbase:meta."""
    name = client.regions(table)[0][1]
    info = client.admin.call("GetRegionInfo", text(1, hbase.region(name)))[1][0]
    return info


def names_forge_no_line(tmp):
    log = tmp / "log"
    server = Server(tmp / "d", log)
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    forger = hbase.Connection(server.master, "MasterService", user=FORGED)
    for table in (FORGED, "t\n2026-01-01T00:00:00.000Z INFO audit: forged", b"\xff\xfe\x00", "a" * 60000, ""):
        refused(forger, "DeleteTable", text(1, text(1, "default") + text(2, table)))
        refused(forger, "DisableTable", text(1, text(1, table) + text(2, table)))
    refused(forger, "CreateNamespace", text(1, text(1, FORGED)))
    forger.close()
    # A connection for an unknown service is not audited either.
    odd = hbase.Connection(server.master, FORGED)
    try:
        odd.call("x", b"")
        raise AssertionError("a service of no name answered")
    except (AssertionError, EOFError, hbase.Refused, OSError) as e:  # the refusal is a response to call -1
        assert "of no name" not in str(e), e
        odd.close()
    client.close()
    stop(server)
    told = events(log, "audit")
    assert {m for m, _ in told} == {"CreateTable", "DeleteTable", "DisableTable", "CreateNamespace"}, told
    assert {f["user"] for m, f in told if m != "CreateTable"} == \
        {FORGED.replace("\n", "\\n").replace("\x1b", "\\x1b").replace("\u202e", "\\xe2\\x80\\xae")}, told[1]
    assert all(f["result"] != "ok" for m, f in told if m != "CreateTable"), told
    assert all(len(line) <= 4096 for line in log.read_bytes().splitlines(keepends=True))


def json_lines_are_objects(tmp):
    log = tmp / "the-log"
    server = Server(tmp / "d", tmp / "log", "--log-format", "json", "--log", "debug", "--log-file", log)
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    forger = hbase.Connection(server.master, "MasterService", user=FORGED)
    for table in (FORGED, b"\xff\"\\\x00\n", "a" * 60000):
        refused(forger, "DeleteTable", text(1, text(1, "default") + text(2, table)))
    for i in range(4):
        client.data.put(name, b"row%d" % i, {(b"f", b"q"): b"v"})
        client.flush(name)
    server.process.send_signal(signal.SIGQUIT)
    wait_for(log, '"message":"ends"')
    forger.close()
    client.close()
    stop(server)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        assert list(line)[:4] == ["time", "level", "subject", "message"], line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
        assert line["level"] in ("debug", "info", "warn", "error"), line
    assert {"server", "audit", "flush", "procedure", "report"} <= {line["subject"] for line in lines}
    forged = [line for line in lines if line["message"] == "DeleteTable"]
    assert len(forged) == 3 and all(line["user"] == FORGED for line in forged), forged
    assert forged[0]["table"] == FORGED and forged[1]["table"] == '\\xff"\\\x00\n' and forged[2]["table"].endswith("aaa..."), forged
    flushed = [line for line in lines if line["subject"] == "flush" and line.get("table") == "t"]
    assert len(flushed) >= 4 and all(line["files"] == 1 and line["file_bytes"] > 0 for line in flushed), flushed
    levels = {(line["table"], line["level"]) for line in lines if line["subject"] in ("flush", "compaction")}
    # the stop flushes all regions
    assert {("t", "info"), ("hbase:meta", "debug"), ("hbase:namespace", "debug"), ("master:store", "debug")} == levels, levels


def a_compaction_is_told(tmp):
    log = tmp / "log"
    server = Server(tmp / "d", log, "-D", "hbase.regionserver.compaction.check.period=100")
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    for i in range(3):
        client.data.put(name, b"row%d" % i, {(b"f", b"q"): b"v"})
        client.flush(name)
    told = wait_for(log, " INFO compaction: compacted all files table=t ")
    assert re.search(r"table=t region=[0-9a-f]{32} family=f files=3 bytes=\d+ to_files=1 to_bytes=\d+ ms=", told), told
    client.close()
    stop(server)


def a_slow_disk_is_told_once_a_second(tmp):
    log, conf = tmp / "log", tmp / "conf"
    conf.write_text("hbase.regionserver.wal.slowsync.ms=3600000\n")
    server = Server(tmp / "d", log, "--config", str(conf))
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    assert " disk: " not in log.read_text()
    conf.write_text("hbase.regionserver.wal.slowsync.ms=0\n")  # with 0 ms every sync is slow
    client.admin.call("UpdateConfiguration", b"")
    begun = time.monotonic()
    while " disk: slow" not in log.read_text() or time.monotonic() < begun + 0.2:
        client.data.put(name, b"row", {(b"f", b"q"): b"v"})
        assert time.monotonic() < begun + WAIT
    lines = [line for line in log.read_text().splitlines() if " disk: slow" in line]
    assert len(lines) <= 2 + (time.monotonic() - begun), lines
    assert re.search(r"disk: slow call=(write|sync) path=\S+ bytes=\d+ ms=\d+\.\d{3} suppressed=\d+", lines[0]), lines
    client.close()
    stop(server)


def lines_about_refused_connections_are_limited(tmp):
    """Peers that send garbage cause a few lines per second, which state the number of suppressed lines."""
    log = tmp / "log"
    server = Server(tmp / "d", log)
    host, port = server.regionserver.rsplit(":", 1)
    made, begun, lines = 0, time.monotonic(), []
    while not any(" suppressed=" in line for line in lines):
        assert time.monotonic() < begun + WAIT, lines[-5:]
        for _ in range(100):
            with socket.create_connection((host, int(port)), WAIT) as s:
                s.sendall(b"garbage")
                while s.recv(1000):  # the reason of the refusal
                    pass
        made += 100
        lines = [line for line in log.read_text().splitlines() if " WARN rpc: connection from " in line]
    missing = sum(int(n) for n in re.findall(r" suppressed=(\d+)", "\n".join(lines)))
    assert len(lines) + missing <= made, (lines, made)
    assert len(lines) <= 5 * os.cpu_count() * (2 + time.monotonic() - begun), lines
    stop(server)


def level_and_format_change_at_run_time(tmp):
    log, conf = tmp / "log", tmp / "conf"
    conf.write_text("rorqual.log.level=error\n")
    server = Server(tmp / "d", log, "--config", str(conf))
    client = hbase.Client(server)
    client.create("quiet", {"f": {}})
    assert log.read_text() == ""
    conf.write_text("rorqual.log.level=info\n")
    client.admin.call("UpdateConfiguration", b"")
    client.create("heard", {"f": {}})
    told = wait_for(log, "audit: CreateTable")
    assert "table=heard" in told and "quiet" not in told, told
    conf.write_text("rorqual.log.format=json\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(log, '"message":"settings reloaded"')
    client.create("parsed", {"f": {}})
    told = [json.loads(line) for line in wait_for(log, '"parsed"', 2).splitlines() if '"parsed"' in line]
    # The call's line and its procedure's end are written by two threads.
    assert sorted(line["subject"] for line in told) == ["audit", "procedure"], told
    client.close()
    stop(server)


def the_journal_gets_priorities(tmp):
    log = tmp / "log"
    log.touch()
    status = log.stat()
    server = Server(tmp / "d", log, env={**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    stop(server)
    lines = log.read_text().splitlines()
    assert lines and all(line.startswith("<6>2") for line in lines), lines
    # JOURNAL_STREAM names another stream: a shell started by the service manager passes the variable on.
    server = Server(tmp / "d", tmp / "log2", env={**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    stop(server)
    assert (tmp / "log2").read_text().startswith("2")


def nobody_waits_for_a_reader_of_the_log(tmp):
    # A line about a slow disk could be lost, too.
    process = subprocess.Popen([BINARY, "server", "--data", tmp / "d", *PORTS, "-D", "hbase.regionserver.wal.slowsync.ms=3600000", "-D",
                                "rorqual.log.audit.rate=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ready = re.match(r"rorqual ready: zookeeper (\S+), master (\S+), regionserver (\S+),", process.stdout.readline())
    master = hbase.Connection(ready[2], "MasterService")
    name = "x" * 250
    for _ in range(1000):  # a pipe holds 64 KiB; each line has at least 250 bytes
        refused(master, "DeleteTable", text(1, table_name(name)))
    # Read the rest, then the line that reports the loss.
    os.set_blocking(process.stderr.fileno(), False)
    told = process.stderr.read()
    os.set_blocking(process.stderr.fileno(), True)
    refused(master, "DeleteTable", text(1, table_name("last")))
    master.close()
    process.terminate()
    out, rest = process.communicate(timeout=WAIT)
    assert process.returncode == 0 and "rorqual stopped" in out, (process.returncode, out)
    # Two lines for each call: one for the call, and one for its failing procedure, which may be logged after the response.
    kept = sum("DeleteTable" in line and name[:100] in line for line in (told + rest).splitlines())
    lost = [int(n) for n in re.findall(r" WARN log: lines were lost lines=(\d+) reason=\"nobody reads the log\"\n", told + rest)]
    assert 20 < kept < 2000 and sum(lost) + kept == 2000, (kept, lost, rest[:1000])
    assert all(LINE.fullmatch(line) for line in (told + rest).splitlines()), "no line is torn"


def a_full_disk_under_the_log_stops_nothing(tmp):
    log = tmp / "the-log"
    log.symlink_to("/dev/full")
    server = Server(tmp / "d", tmp / "log", "--log-file", log)
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    client.data.put(name, b"row", {(b"f", b"q"): b"v"})
    assert client.data.get(name, b"row")
    log.unlink()
    server.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + WAIT
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    client.create("u", {"f": {}})
    told = wait_for(log, "audit: CreateTable")
    assert re.match(r"\S+ WARN log: lines were lost lines=\d+ reason=\"No space left on device\"\n", told), told
    client.close()
    stop(server)


def a_log_file_has_a_limit(tmp):
    log = tmp / "logs" / "the-log"
    log.parent.mkdir()
    server = Server(tmp / "d", tmp / "log", "--log-file", log, "-D", "hbase.log.maxfilesize=65536", "-D", "hbase.log.maxbackupindex=2", "-D",
                    "rorqual.log.audit.rate=0")
    master = hbase.Connection(server.master, "MasterService")
    for _ in range(1000):
        refused(master, "DeleteTable", text(1, table_name("x" * 400)))
    master.close()
    stop(server)
    found = {path.name: path.read_text() for path in log.parent.iterdir()}
    assert set(found) == {"the-log", "the-log.1", "the-log.2"}, set(found)
    assert all(65536 <= len(found[name]) < 65536 + 4096 for name in ("the-log.1", "the-log.2")), {n: len(t) for n, t in found.items()}
    assert len(found["the-log"]) < 65536 + 4096 and "stopped cleanly" in found["the-log"]
    assert all(LINE.fullmatch(line) for text_of in found.values() for line in text_of.splitlines()), "no line is torn"


def audit_lines_about_a_host_have_a_limit(tmp):
    log = tmp / "log"
    server = Server(tmp / "d", log, "-D", "rorqual.log.audit.rate=1")
    master = hbase.Connection(server.master, "MasterService")
    made, begun, told = 0, time.monotonic(), []
    while not any("suppressed" in fields for _, fields in told):
        assert time.monotonic() < begun + WAIT, told[-5:]
        for _ in range(50):
            refused(master, "ModifyNamespace", text(1, text(1, "absent")))
        made += 50
        told = events(log, "audit")
    master.close()
    stop(server)
    told = events(log, "audit")
    assert len(told) + sum(int(fields.get("suppressed", 0)) for _, fields in told) <= made
    assert len(told) <= 2 + (time.monotonic() - begun)


# ---- crashes


def a_crash_leaves_a_report(tmp):
    for count, name in enumerate(("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")):
        log = tmp / f"log{count}"
        server = Server(tmp / "d", log, "--log-format", "json" if count % 2 else "text")
        server.process.send_signal(getattr(signal, name))
        assert server.process.wait(WAIT) == -getattr(signal, name), "it ends by the same signal"
        told = log.read_text()
        if count % 2:
            lines = [json.loads(line) for line in told.splitlines()]
            crash = [line for line in lines if line["subject"] == "crash"]
            assert crash[0]["signal"] == name and crash[0]["sender"] == os.getpid(), crash
            frames = [line["at"] for line in crash if line["message"] == "backtrace"]
            assert crash[-1]["message"] == "no request in hand", crash
        else:
            # The kernel usually delivers the signal to the main thread, but may choose another.
            assert re.search(rf" ERROR crash: the server crashed signal={name} sender={os.getpid()} thread=\S+ tid=", told), told
            frames = [f["at"] for m, f in events(log, "crash") if m == "backtrace"]
            assert told.endswith("crash: no request in hand\n"), told
        assert len(frames) >= 4 and any("libc" in frame for frame in frames) and any("rorqual" in frame for frame in frames), frames


def a_crash_is_told_on_the_standard_error_too(tmp):
    server = Server(tmp / "d", tmp / "log", "--log-file", tmp / "the-log")
    server.process.send_signal(signal.SIGSEGV)
    assert server.process.wait(WAIT) == -signal.SIGSEGV
    assert "crash: the server crashed signal=SIGSEGV" in (tmp / "the-log").read_text()
    assert len((tmp / "log").read_text().splitlines()) == 1 and "crash: the server crashed" in (tmp / "log").read_text()


def a_crash_names_the_request_in_hand(tmp):
    """The call blocks because it reloads the settings from a pipe without a writer."""
    libc = ctypes.CDLL(None, use_errno=True)
    conf, log = tmp / "conf", tmp / "log"
    conf.write_text("rorqual.log.level=info\n")
    server = Server(tmp / "d", log, "--config", str(conf))
    conf.unlink()
    os.mkfifo(conf)
    admin = hbase.Connection(server.regionserver, "AdminService", user="eve\n")
    admin.send("UpdateConfiguration", b"")
    port = admin.socket.getsockname()[1]
    deadline = time.monotonic() + WAIT
    waiting = []
    while not waiting and time.monotonic() < deadline:
        for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
            if (task / "comm").read_text() == "rq-call\n" and (task / "syscall").read_text().split()[0] in OPENAT:
                waiting.append(int(task.name))
        time.sleep(0.02)
    assert libc.tgkill(server.process.pid, waiting[0], signal.SIGSEGV) == 0
    assert server.process.wait(WAIT) == -signal.SIGSEGV
    admin.close()
    told = log.read_text()
    assert f"signal=SIGSEGV sender={os.getpid()} thread=rq-call tid={waiting[0]}" in told, told
    assert re.search(r"ERROR crash: request in hand method=UpdateConfiguration user=\"eve\\n\" address=127\.0\.0\.1 "
                     rf"port={port} call=1 bytes=\d+\n\Z", told), told


TESTS = [start_and_stop_are_told, a_refused_start_is_told_without_its_settings, calls_that_change_something_are_audited, names_forge_no_line,
         json_lines_are_objects, a_compaction_is_told, a_slow_disk_is_told_once_a_second,
         lines_about_refused_connections_are_limited, level_and_format_change_at_run_time,
         the_journal_gets_priorities, nobody_waits_for_a_reader_of_the_log, a_full_disk_under_the_log_stops_nothing, a_log_file_has_a_limit,
         audit_lines_about_a_host_have_a_limit,
         a_crash_leaves_a_report, a_crash_is_told_on_the_standard_error_too, a_crash_names_the_request_in_hand]


def main():
    passed = failed = 0
    wanted = sys.argv[1:]
    for test in TESTS:
        if wanted and test.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="rorqual-logs-") as tmp:
            try:
                test(pathlib.Path(tmp))
                passed += 1
                print(f"PASS {test.__name__}", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"FAIL {test.__name__}: {type(e).__name__}: {e}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
