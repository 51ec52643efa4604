#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Settings, addresses and signals: listing, checks and refusals, changes without a restart, listening
addresses, refused folders. Tests of IPv6 are skipped if the machine has no ::1."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import hbase
from backup import regions_of
from rorqual import BINARY, Server, free_ports

WAIT = 300  # seconds: limit of each wait, reached only after an error
PORTS = ("--zk-port", "0", "--master-port", "0", "--rs-port", "0", "--http", "none")


class Skipped(Exception):
    """The machine lacks what the test needs."""


def run(*arguments):
    return subprocess.run([BINARY, *(str(a) for a in arguments)], capture_output=True, text=True, timeout=WAIT, check=False)


def refused(data, *arguments):
    """The single error line of a server that does not start."""
    done = run("server", "--data", data, *PORTS, *arguments)
    assert done.returncode != 0, f"it started with {arguments}"
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def stop(server):
    problem = server.stop()
    assert problem is None, problem


def wait_for(path, wanted, count=1):
    """Waits until the file has the text `count` times; returns the file's text."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        if text.count(wanted) >= count:
            return text
        time.sleep(0.02)
    raise AssertionError(f"{wanted!r} not {count} times in {path.name}: {text[-600:]}")


def needs_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
    except OSError as e:
        raise Skipped(f"no ::1 on this machine: {e}") from e


# ---- listing and checking


def settings_are_listed_with_all_that_is_known(tmp):
    del tmp
    lines = [json.loads(line) for line in run("settings", "--json").stdout.splitlines()]
    by_name = {s["name"]: s for s in lines}
    assert len(by_name) == len(lines) > 100
    flush = by_name["hbase.hregion.memstore.flush.size"]
    assert flush["type"] == "bytes" and flush["default"] == "134217728" and flush["range"] == "at least 64k", flush
    assert not flush["reloads"] and flush["hbase"] == flush["name"]
    assert by_name["hbase.hstore.compaction.min"]["reloads"]
    assert by_name["hbase.hstore.compaction.min"]["older"] == "hbase.hstore.compactionThreshold"
    assert all(s["meaning"] for s in lines)
    text = run("settings", "*flush.size").stdout
    assert text.startswith("hbase.hregion.memstore.flush.size\n") and "134217728 (128m)" in text, text
    assert "hbase.hstore.compaction.min\n" in run("settings", "COMPACTIONTHRESHOLD").stdout
    done = run("settings", "nothing.like.it")
    assert done.returncode == 1 and "nothing.like.it" in done.stderr, done


def changed_settings_are_those_that_differ(tmp):
    site = tmp / "hbase-site.xml"
    site.write_text("<configuration><property><name>hbase.hstore.compaction.min</name><value>3</value></property>"
                    "<property><name>hbase.hstore.compaction.max</name><value>12</value></property></configuration>")
    assert run("settings", "--changed").stdout == ""
    out = run("settings", "--changed", "--config", site, "-D", "rorqual.memory=64m").stdout
    assert re.findall(r"(?m)^(\S+)$", out) == ["rorqual.memory", "hbase.hstore.compaction.max"], out
    assert "default 10, now 12" in out, out


def a_check_touches_nothing(tmp):
    data = tmp / "d"
    done = run("server", "--check", "--data", data, *PORTS, "--memory", "64m", "-D", "hbase.regionserver.handler.count=3")
    assert done.returncode == 0 and done.stderr == "", done
    for wanted in ("becomes a new data folder", "64 MB of", "setting   rorqual.memory = 64m", "no effect hbase.regionserver.handler.count"):
        assert wanted in done.stdout, (wanted, done.stdout)
    assert not data.exists()
    stop(Server(data, tmp / "log"))
    before = {p: p.stat().st_mtime_ns for p in data.rglob("*")}
    done = run("server", "--check", "--data", data, *PORTS)
    assert done.returncode == 0 and "was stopped cleanly" in done.stdout, done
    assert {p: p.stat().st_mtime_ns for p in data.rglob("*")} == before
    for arguments, wanted in ((("-D", "hbase.security.authentication=kerberos"), "authentication"),
                              (("--listen", "no.such.host.invalid"), "no.such.host.invalid")):
        done = run("server", "--check", "--data", data, *PORTS, *arguments)
        assert done.returncode == 2 and "PROBLEM" in done.stdout and wanted in done.stdout, done
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        done = run("server", "--check", "--data", data, *PORTS, "--rs-port", taken.getsockname()[1])
        assert done.returncode == 0 and "note " in done.stdout and "in use" in done.stdout, done


def a_check_finds_what_a_start_would_refuse(tmp):
    """A log file that cannot be opened, and an address of another machine, are errors; host names whose addresses are listed
    already are not."""
    def checked(*arguments):
        done = run("server", "--check", "--data", tmp / "d", *PORTS, *arguments)
        return done.returncode, done.stdout

    for path in (tmp / "missing" / "log", tmp, f"{tmp}/new/"):
        code, out = checked("--log-file", path)
        assert code == 2 and f"PROBLEM   cannot open the log file {path}: " in out, out
    code, out = checked("--log-file", tmp / "log")
    assert code == 0 and f"log       {tmp}/log" in out and not (tmp / "log").exists(), out
    code, out = checked("--listen", "192.0.2.1")
    assert code == 2 and "PROBLEM" in out and "192.0.2.1" in out and "another port" not in out, out
    for address in ("[::1]:2181", "localhost:0", "127.0.0.1:1"):
        code, out = checked("--listen", address)
        assert code == 2 and address in out and "--zk-port" in out, out
    code, out = checked("--listen", "127.0.0.1,localhost,localhost")
    assert code == 0 and out.count("listen    127.0.0.1:") == 1, out
    code, out = checked("--memory", "1m")
    assert code == 0 and "memstores 0.4 MB, block cache 0.4 MB" in out, out


def a_check_writes_ipv6_in_brackets(tmp):
    needs_ipv6()
    done = run("server", "--check", "--data", tmp / "d", *PORTS, "--listen", "::1")
    assert done.returncode == 0 and "listen    [::1]: zookeeper" in done.stdout and "connect to [::1]\n" in done.stdout, done


def bad_values_do_not_start_a_server(tmp):
    for arguments, wanted in ((("-D", "hbase.hregion.memstore.flush.size=64"), "64 bytes"), (("--memory", "100000g"), "MB that the machine"),
                              (("-D", "hbase.regionserver.global.memstore.upperLimit=0.5"), "above 0.8"),
                              (("-D", "zookeeper.znode.parent=hbase"), "znode.parent")):
        assert wanted in refused(tmp / "d", *arguments), arguments
    assert not (tmp / "d").exists()


# ---- the file's ports and znode


def zk_children(address, path):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host.strip("[]"), int(port)), WAIT) as c:
        body = struct.pack(">iqiq", 0, 0, 30000, 0) + struct.pack(">i", 16) + bytes(17)
        c.sendall(struct.pack(">i", len(body)) + body)
        hbase.read_exact(c, struct.unpack(">i", hbase.read_exact(c, 4))[0])
        body = struct.pack(">iii", 1, 8, len(path)) + path.encode() + b"\0"
        c.sendall(struct.pack(">i", len(body)) + body)
        answer = hbase.read_exact(c, struct.unpack(">i", hbase.read_exact(c, 4))[0])
    return struct.unpack(">i", answer[12:16])[0], answer[16:]


def a_files_ports_and_znode_count(tmp):
    ports = free_ports(3)
    conf = tmp / "conf"
    conf.write_text(f"hbase.zookeeper.property.clientPort={ports[0]}\nhbase.master.port={ports[1]}\n"
                    f"hbase.regionserver.port={ports[2]}\nzookeeper.znode.parent=/other\n")
    # Options override the file, even if --config comes later on the command line.
    server = Server(tmp / "d", tmp / "log", "--config", str(conf))
    assert server.zk != f"127.0.0.1:{ports[0]}"
    assert zk_children(server.zk, "/hbase")[0] == -101 and zk_children(server.zk, "/other/rs")[0] == 0
    done = run("bench", "--zk", server.zk, "--zk-root", "/other", "--records", 100, "--seconds", 1, "get")
    assert done.returncode == 0, done
    stop(server)
    process = subprocess.Popen([BINARY, "server", "--data", tmp / "d", "--config", conf], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert [int(p) for p in re.findall(r":(\d+)", line)][:3] == ports, line
    finally:
        process.terminate()
        assert process.wait(WAIT) == 0
        process.stdout.close()


# ---- addresses


def a_name_and_several_addresses_are_listened_on(tmp):
    server = Server(tmp / "d", tmp / "log", "--listen", "127.0.0.1, 127.0.0.2")
    assert server.zk.startswith("127.0.0.1:"), server.zk
    for place in (server.zk, server.master, server.regionserver):
        for host in ("127.0.0.1", "127.0.0.2"):
            socket.create_connection((host, int(place.rsplit(":", 1)[1])), WAIT).close()
    stop(server)
    server = Server(tmp / "d", tmp / "log", "--listen", "localhost")
    assert server.zk.startswith("localhost:") and zk_children(server.zk, "/hbase")[0] == 0
    stop(server)
    for listen in ("no.such.host.invalid", "127.0.0.1,", "[localhost]", "192.0.2.1", ",".join(f"127.0.0.{i}" for i in range(1, 12))):
        assert "listen" in refused(tmp / "d", "--listen", listen), listen


def ipv6_stands_in_brackets_everywhere(tmp):
    needs_ipv6()
    for listen in ("[::1]", "::1"):
        server = Server(tmp / "d", tmp / "log", "--listen", listen)
        for place in (server.zk, server.master, server.regionserver):
            assert re.fullmatch(r"\[::1\]:\d+", place), place
        # HBase's server name has the address without brackets; info:server in hbase:meta and texts have it in brackets.
        error, names = zk_children(server.zk, "/hbase/rs")
        assert error == 0 and b"::1," in names and b"[" not in names, names
        client = hbase.Client(server)
        cells = client.data.scan(b"hbase:meta,,1")
        places = {value for row in cells.values() for (_, column), value in row.items() if column == b"server"}
        assert places == {server.regionserver.encode()}, places
        client.close()
        stop(server)
    assert "[::1]:" in refused(tmp / "d", "--listen", "[::1]", "--rs-port", busy_port()), "the port in use"


def hints_name_an_ipv6_quorum_as_clients_read_it(tmp):
    """The Java client takes an IPv6 address of hbase.zookeeper.quorum only with its port."""
    needs_ipv6()
    process = subprocess.Popen([BINARY, "server", "--hints", "--data", tmp / "d", *PORTS, "--listen", "[::1]"],
                               stdout=subprocess.PIPE, text=True)
    port = re.search(r"zookeeper \[::1\]:(\d+)", process.stdout.readline())[1]
    process.terminate()
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait(WAIT) == 0
    assert f"hbase.zookeeper.quorum=[::1]:{port}\n" in out and f"{BINARY} shell --zk [::1]:{port}\n" in out
    assert f"{BINARY} bench --zk [::1]:{port} get\n" in out, out


def busy_port():
    busy_port.socket = socket.socket(socket.AF_INET6)
    busy_port.socket.bind(("::1", 0))
    busy_port.socket.listen(1)
    return busy_port.socket.getsockname()[1]


def a_load_runs_over_ipv6_and_both_families_have_the_same_ports(tmp):
    needs_ipv6()
    server = Server(tmp / "d", tmp / "log", "--listen", "[::1],127.0.0.1")
    for at in (server.zk, server.zk.replace("[::1]", "127.0.0.1")):
        done = run("bench", "--zk", at, "--records", 100, "--seconds", 1, "get")
        assert done.returncode == 0 and "about to" not in done.stderr, done
    done = run("bench", "--bootstrap", server.master, "--records", 100, "--seconds", 1, "get")
    assert done.returncode == 0, done
    stop(server)
    done = run("bench", "--zk", server.zk, "--records", 100, "get")
    assert done.returncode == 1 and server.zk in done.stderr, done


# ---- changes without a restart, signals


def settings_are_read_again_by_signal_and_by_call(tmp):
    conf, log = tmp / "conf", tmp / "the-log"
    conf.write_text("hbase.rpc.rows.warning.threshold=10\nhbase.rpc.rows.size.threshold.reject=true\n")
    server = Server(tmp / "d", tmp / "log", "--config", str(conf), "--log", "info", "--log-file", str(log))
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    rows = [(b"row%d" % i, {(b"f", b"q"): b"v"}) for i in range(20)]

    def is_refused():
        try:
            client.data.put_many(name, rows)
            return False
        except hbase.Refused as e:
            assert "large batch" in e.trace, e.trace
            return True
    assert is_refused()
    conf.write_text("hbase.rpc.rows.warning.threshold=1000\nrorqual.loops=7\nhbase.hstore.compaction.min=6\n")
    server.process.send_signal(signal.SIGHUP)
    text = wait_for(log, "settings reloaded")
    assert not is_refused()
    assert "hbase.rpc.rows.warning.threshold is now '1000'" in text and "rorqual.loops: '7' takes effect at the next start" in text, text
    assert "hbase.hstore.compaction.min is now '6'" in text, text
    conf.write_text("hbase.rpc.rows.warning.threshold=5\nhbase.rpc.rows.size.threshold.reject=true\n")
    client.admin.call("UpdateConfiguration", b"")
    assert is_refused()
    wait_for(log, "settings reloaded", 2)
    # A wrong value changes nothing, and the caller gets an error.
    conf.write_text("hbase.rpc.rows.warning.threshold=1000\nhbase.hregion.memstore.flush.size=64\n")
    try:
        client.admin.call("UpdateConfiguration", b"")
        raise AssertionError("a wrong file was read")
    except hbase.Refused as e:
        assert "64 bytes" in e.trace, e.trace
    assert is_refused()
    server.process.send_signal(signal.SIGHUP)
    wait_for(log, "settings were not reloaded", 2)
    conf.write_text("rorqual.log.level=error\n")  # --log on the command line takes precedence over the file
    client.admin.call("UpdateConfiguration", b"")
    client.close()
    stop(server)


def a_reload_reaches_stores_that_are_open(tmp):
    """Three files are not compacted while the minimum is six, and are compacted once it is two."""
    conf, log = tmp / "conf", tmp / "the-log"
    conf.write_text("hbase.hstore.compaction.min=6\n")
    server = Server(tmp / "d", tmp / "log", "--config", str(conf), "-D", "hbase.regionserver.compaction.check.period=100",
                    "--log", "info", "--log-file", str(log))
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]

    def files():
        return len([f for f in (tmp / "d/data/default/t").glob("*/f/*") if f.is_file()])
    for i in range(3):
        client.data.put(name, b"row%d" % i, {(b"f", b"q"): b"v"})
        client.flush(name)
    assert files() == 3
    conf.write_text("hbase.hstore.compaction.min=2\n")
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + WAIT
    while files() > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files() == 1, files()
    client.close()
    stop(server)


def a_reload_changes_threads_and_names_what_needs_a_start(tmp):
    """Tests settings that HBase's CompactSplit reloads; the policy's class and the period of checks change only at the next
    start."""
    conf, log = tmp / "conf", tmp / "the-log"
    conf.write_text("")
    server = Server(tmp / "d", tmp / "log", "--config", str(conf), "--log", "info", "--log-file", str(log))
    conf.write_text("hbase.regionserver.thread.compaction.small=3\nhbase.regionserver.thread.compaction.large=2\n"
                    "hbase.hstore.compaction.throughput.lower.bound=1m\nhbase.regionserver.compaction.check.period=123\n"
                    "hbase.hstore.defaultengine.compactionpolicy.class="
                    "org.apache.hadoop.hbase.regionserver.compactions.RatioBasedCompactionPolicy\n")
    server.process.send_signal(signal.SIGHUP)
    told = wait_for(log, "settings reloaded")
    for name in ("hbase.regionserver.thread.compaction.small", "hbase.regionserver.thread.compaction.large",
                 "hbase.hstore.compaction.throughput.lower.bound"):
        assert f"INFO server: setting {name} is now '" in told, (name, told)
    for name in ("hbase.regionserver.compaction.check.period", "hbase.hstore.defaultengine.compactionpolicy.class"):
        assert re.search(rf"WARN server: setting {re.escape(name)}: '\S+' takes effect at the next start", told), (name, told)
    stop(server)


def no_signal_but_two_ends_the_server(tmp):
    log, moved = tmp / "the-log", tmp / "moved"
    server = Server(tmp / "d", tmp / "log", "--log", "error", "--log-file", str(log))
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
        server.process.send_signal(number)
    wait_for(log, "report: ends")
    log.rename(moved)
    server.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + WAIT
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    server.process.send_signal(signal.SIGQUIT)
    text = wait_for(log, "report: ends")
    for wanted in ("loop 0: ", "master: ", "regionserver: ", "pool read: ", "pool compact: ", "procedures: 0 unfinished"):
        assert wanted in text, (wanted, text)
    assert moved.read_text().count("report: ends") == 1
    assert log.stat().st_mode & 0o777 == moved.stat().st_mode & 0o777 == 0o640, (log.stat(), moved.stat())
    assert zk_children(server.zk, "/hbase")[0] == 0
    stop(server)


def a_report_names_the_calls_in_flight(tmp):
    log = tmp / "the-log"
    server = Server(tmp / "d", tmp / "log", "--log-file", str(log))
    load = subprocess.Popen([BINARY, "bench", "--zk", server.zk, "--connections", "8", "--depth", "16", "--records", "1000",
                             "--seconds", str(2 * WAIT), "put"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + WAIT
        found = None
        while found is None and time.monotonic() < deadline:
            server.process.send_signal(signal.SIGQUIT)
            time.sleep(0.1)
            found = re.search(r"regionserver, loop \d+: call \d+ \w+ of user '\S*' from 127\.0\.0\.1:\d+, request of \d+ bytes, received \d+\.\d+ ms ago",
                              log.read_text())
        assert found, log.read_text()[-800:]
    finally:
        load.terminate()
        load.wait()
    stop(server)


# ---- folders


def a_folder_with_something_else_is_not_taken(tmp):
    for name in (".profile", "notes.txt", "data", "hbase.id"):
        folder = tmp / f"home-{name}"
        folder.mkdir()
        (folder / name).write_text("mine")
        line = refused(folder)
        assert name in line and "Nothing was written" in line, line
        assert [p.name for p in folder.iterdir()] == [name]
    folder = tmp / "many"
    folder.mkdir()
    for i in range(9):
        (folder / f"file{i}").touch()
    assert "file0, file1, file2, ..." in refused(folder)


def a_new_folder_says_so_once(tmp):
    (tmp / "mount/lost+found").mkdir(parents=True)
    for folder in (tmp / "missing", tmp / "mount"):
        for new in (True, False):
            process = subprocess.Popen([BINARY, "server", "--data", folder, *PORTS], stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline().startswith("rorqual ready: ")
            process.terminate()
            out = process.stdout.read()
            process.stdout.close()
            assert (f"new data folder {folder.resolve()}\n" in out) == new, out
            assert process.wait(WAIT) == 0


def few_open_files_are_warned_of_and_lose_nothing(tmp):
    """With more store files than the process may open the start is refused with the reason, and succeeds later."""
    def limited(folder, most):
        return subprocess.Popen([BINARY, "server", "--data", folder, *PORTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
    process = limited(tmp / "new", 64)
    assert process.stdout.readline().startswith("rorqual ready: ")
    process.terminate()
    err = process.communicate(timeout=WAIT)[1]
    assert process.returncode == 0 and "WARN server: the limit of open files (ulimit -n) is low" in err and "limit=64" in err, err

    def rows(server, do):
        client = hbase.Client(server)
        for start, name, encoded in ((r[0] or b"000", r[1], r[2]) for r in regions_of(client, "many")):
            do(client, start + b"x", name, encoded)
        client.close()
        stop(server)

    server = Server(tmp / "d", tmp / "log")
    client = hbase.Client(server)
    client.create("many", {"f": {}}, [b"%03d" % i for i in range(1, 150)])
    client.close()

    def fill(client, row, name, encoded):
        client.data.put(name, row, {(b"f", b"q"): row})
        client.flush(encoded)
    rows(server, fill)
    process = limited(tmp / "d", 100)
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 1 and out == "" and "crash" not in err, (process.returncode, err[-2000:])
    assert "cannot create event loops" in err.splitlines()[-1] and "the limit of open files is 100 (ulimit -n" in err.splitlines()[-1], err[-500:]
    found = []
    rows(Server(tmp / "d", tmp / "log"), lambda client, row, name, _: found.append(client.data.get(name, row) == {(b"f", b"q"): row}))
    assert found == [True] * 150, found


TESTS = [settings_are_listed_with_all_that_is_known, changed_settings_are_those_that_differ, a_check_touches_nothing,
         a_check_finds_what_a_start_would_refuse, a_check_writes_ipv6_in_brackets, bad_values_do_not_start_a_server, a_files_ports_and_znode_count, a_name_and_several_addresses_are_listened_on,
         ipv6_stands_in_brackets_everywhere, hints_name_an_ipv6_quorum_as_clients_read_it, a_load_runs_over_ipv6_and_both_families_have_the_same_ports,
         settings_are_read_again_by_signal_and_by_call, a_reload_reaches_stores_that_are_open, a_reload_changes_threads_and_names_what_needs_a_start,
         no_signal_but_two_ends_the_server,
         a_report_names_the_calls_in_flight, a_folder_with_something_else_is_not_taken, a_new_folder_says_so_once,
         few_open_files_are_warned_of_and_lose_nothing]


def main():
    passed = failed = 0
    wanted = sys.argv[1:]
    for test in TESTS:
        if wanted and test.__name__ not in wanted:
            continue
        tmp = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-settings-"))
        try:
            test(tmp)
            passed += 1
            print(f"PASS {test.__name__}", flush=True)
        except Skipped as e:
            print(f"SKIP {test.__name__}: {e}", flush=True)
        except Exception as e:  # pylint: disable=broad-exception-caught; reported, and the next one runs
            failed += 1
            print(f"FAIL {test.__name__}: {type(e).__name__}: {e}", flush=True)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
