#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual status`, `tables` and `top`: on a server and on its stopped folder, as text and JSON, and top in a terminal (tmux):
modes, sorting, scrolling, terminal sizes, and quitting. Tests of the terminal are skipped if tmux is missing."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import hbase
from hbase import number, table_name, text
from rorqual import BINARY, ROOT, Server, pause

VERSION = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text()).group(1)
WAIT = 300  # seconds: limit of each wait, reached only after an error


class Skipped(Exception):
    """The machine lacks what the test needs."""


def run(*arguments):
    return subprocess.run([BINARY, *(str(a) for a in arguments)], capture_output=True, text=True, timeout=WAIT, check=False)


def lines(*arguments):
    done = run(*arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return [json.loads(line) for line in done.stdout.splitlines()]


def stop(server):
    problem = server.stop()
    assert problem is None, problem


class World:
    """A server with three tables in two namespaces; `b` has 30 regions, `off` is disabled."""

    def __init__(self, folder):
        self.data = folder / "d"
        self.server = Server(self.data, folder / "log")
        self.at = ("--zk", self.server.zk)
        self.client = hbase.Client(self.server)
        self.ddl("CreateNamespace", text(1, text(1, "ns")))
        self.client.create("a", {"f": {}})
        self.client.create("b", {"f": {}, "g": {}}, [b"%02d" % i for i in range(1, 30)])
        self.client.create("off", {"f": {}})
        self.ddl("CreateTable", text(1, text(1, text(1, "ns") + text(2, "c\xe9".encode()[:1])) + text(3, text(1, "f"))))
        self.ddl("DisableTable", text(1, table_name("off")))
        self.region = self.client.regions("a")[0][1]
        for i in range(20):
            self.client.data.put(self.region, b"row%d" % i, {(b"f", b"q"): b"v"})
        self.client.flush(self.region)
        for i in range(7):
            self.client.data.get(self.region, b"row%d" % i)

    def ddl(self, method, message):
        answer = self.client.master.call(method, message)
        if 1 in answer:
            self.client.procedure(answer[1][0])

    def close(self):
        self.client.close()
        stop(self.server)


# ---- status and tables


def status_has_the_figures(world):
    got = lines("status", *world.at, "--json")[0]
    host, port = world.server.master.rsplit(":", 1)
    assert (got["masterHost"], got["masterPort"]) == (host, int(port)) and re.fullmatch("[0-9a-f-]{36}", got["cluster"]), got
    assert got["version"] == "2.6.1" and got["rorqualVersion"] == VERSION and got["deadServers"] == 0 and got["notOpen"] == [], got
    # hbase:meta, hbase:namespace, a, b and ns:c are open; off has a closed region.
    assert got["tables"] == 6 and got["regions"] == 35, got
    server = got["servers"][0]
    assert server["server"] == world.server.regionserver and server["regions"] == 34, server
    assert server["files"] == 1 and server["fileBytes"] == 1 << 20 and server["writes"] >= 20 and server["reads"] >= 7, server
    assert server["heapMaxBytes"] > server["memstoreBytes"] > 0 and server["startMs"] > 1.7e12, server
    for where in (world.at, ("--bootstrap", world.server.master), ("--bootstrap", world.server.regionserver)):
        said = run("status", *where)
        assert said.returncode == 0 and said.stderr == "", said
        assert f", Rorqual {VERSION}, HBase 2.6.1, master {world.server.master}\n" in said.stdout and re.search(rf"(?m)^server    {re.escape(world.server.regionserver)}: up \d+ min, 34 regions", said.stdout), said
        assert "tables    6, 35 regions" in said.stdout and "servers   1 live, 0 dead" in said.stdout, said


def tables_have_their_figures(world):
    tables = {t["table"]: t for t in lines("tables", *world.at, "--json")}
    assert list(tables) == ["a", "b", "hbase:meta", "hbase:namespace", "ns:c", "off"], list(tables)
    assert tables["a"]["writes"] == 20 and tables["a"]["reads"] == 7 and tables["a"]["files"] == 1, tables["a"]
    assert (tables["b"]["regions"], tables["b"]["openRegions"]) == (30, 30), tables["b"]
    assert (tables["off"]["state"], tables["off"]["openRegions"], tables["off"]["regions"]) == ("disabled", 0, 1), tables["off"]
    # HBase reports the data of a memstore, not its memory: 0 if it is empty, otherwise at least 1 MB.
    assert (tables["b"]["memstoreBytes"], tables["hbase:meta"]["memstoreBytes"]) == (0, 1 << 20), tables
    assert {t["state"] for name, t in tables.items() if name != "off"} == {"enabled"}
    said = run("tables", *world.at).stdout.splitlines()
    assert re.fullmatch(r"TABLE +STATE +REGIONS +OPEN +FILES +SIZE +MEMSTORE +READS +WRITES", said[0]), said[0]
    assert re.fullmatch(r"a +enabled +1 +1 +1 +1\.0M +\S+ +7 +20", said[1]), said[1]
    assert all(len(line) <= 100 for line in said), said
    regions = lines("tables", *world.at, "--json", "b")
    assert [r["region"] for r in regions] == ["b,", *(f"b,{i:02}" for i in range(1, 30))], regions
    encoded = {name.decode().split(".")[-2] for _, name, *_ in world.client.regions("b")}
    assert {r["encodedName"] for r in regions} == encoded
    done = run("tables", *world.at, "absent")
    assert done.returncode == 1 and done.stdout == "" and done.stderr == "rorqual tables: there is no table absent\n", done


def rates_are_measured(world):
    with Load(world, "rates"):
        deadline, table = time.monotonic() + WAIT, {}
        while table.get("writesPerSecond", 0) == 0 and time.monotonic() < deadline:
            table = {t["table"]: t for t in lines("tables", *world.at, "--json", "--rates", "1")}.get("load", {})
        assert table["writesPerSecond"] > 0 and table["readsPerSecond"] == 0, table
        deadline = time.monotonic() + WAIT
        while True:
            once = run("top", *world.at, "--mode", "table")
            assert once.returncode == 0 and "\x1b" not in once.stdout, once
            rows = once.stdout.splitlines()
            assert rows[4].split() == ["TABLE", "REGIONS", "*REQ/S", "READ/S", "WRITE/S", "SIZE", "MEMSTORE", "FILES"], rows
            if rows[5].split()[0] == "load" and rows[5].split()[2] != "0":
                break
            assert time.monotonic() < deadline, rows  # on a busy machine the writer may not write for a whole period


class Load:
    """Writes to the table `load` until stopped."""

    def __init__(self, world, name):
        self.world = world
        del name
        self.world.client.create("load", {"f": {}})
        self.stop = False

    def __enter__(self):
        import threading  # pylint: disable=import-outside-toplevel
        self.connection = hbase.Connection(self.world.server.regionserver)
        region = self.world.client.regions("load")[0][1]

        def write():
            while not self.stop:
                self.connection.put(region, b"row", {(b"f", b"q"): b"v"})
                time.sleep(0.002)
        self.thread = threading.Thread(target=write)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()
        self.connection.close()
        self.world.ddl("DisableTable", text(1, table_name("load")))
        self.world.ddl("DeleteTable", text(1, table_name("load")))


def what_does_not_answer_is_told_in_one_line(world):
    for command in ("status", "tables", "top"):
        for where in (("--zk", "127.0.0.1:1"), ("--bootstrap", "127.0.0.1:1"), ("--data", world.data), ("--data", world.data.parent),
                      ("--data", world.data / "nothing"), ("--zk", world.server.zk, "--zk-root", "/other")):
            done = run(command, *where)
            assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done
            assert done.stderr.startswith(f"rorqual {command}: "), done
            if where[1] == world.data:
                assert "a server runs on this folder" in done.stderr and str(world.data) in done.stderr, done
            elif where[0] == "--data":
                assert str(where[1]) in done.stderr, done
    # The port speaks another protocol.
    done = run("status", "--zk", world.server.master, "--timeout", "2")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done


def a_region_that_is_not_open_is_named(world):
    name = world.client.regions("b")[3][1]
    world.client.master.call("UnassignRegion", text(1, hbase.region(name)) + number(2, 0))
    deadline = time.monotonic() + WAIT
    got = lines_of_any_code("status", *world.at, "--json")[0]
    while [n["state"] for n in got["notOpen"]] != ["CLOSED"] and time.monotonic() < deadline:
        got = lines_of_any_code("status", *world.at, "--json")[0]
    assert [n["region"] for n in got["notOpen"]] == [name.decode()] and got["notOpen"][0]["state"] == "CLOSED", got["notOpen"]
    said = run("status", *world.at)
    assert said.returncode == 1 and re.search(rf"(?m)^not open  {re.escape(name.decode())}: CLOSED for \d+ min$", said.stdout), said
    table = next(t for t in lines("tables", *world.at, "--json") if t["table"] == "b")
    assert (table["openRegions"], table["regions"]) == (29, 30), table
    world.client.master.call("AssignRegion", text(1, hbase.region(name)) + number(2, 0))
    deadline = time.monotonic() + WAIT
    while run("status", *world.at).returncode != 0:
        assert time.monotonic() < deadline


def lines_of_any_code(*arguments):
    return [json.loads(line) for line in run(*arguments).stdout.splitlines()]


# ---- top in a terminal


class Terminal:
    """A pane of a tmux server started here, and its content."""

    def __init__(self, folder, command, columns=80, rows=24):
        if shutil.which("tmux") is None:
            raise Skipped("no tmux")
        self.socket = str(folder / "tmux")
        self.code = folder / "code"
        self.code.unlink(missing_ok=True)
        script = folder / "script"
        words = " ".join(f"'{word}'" for word in command)
        script.write_text(f"trap : INT\n{words}\necho $? > '{self.code}'\nexec sleep 1000\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), f"sh '{script}'")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True, timeout=WAIT, check=False,
                              env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "t").split("\n")

    def until(self, wanted):
        """Waits until `wanted` is true for the screen; returns the screen. tmux may show only a part of the program's output at first,
        so `wanted` must check everything that is compared afterwards."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            seen = self.screen()
            if wanted(seen):
                return seen
            time.sleep(0.05)
        raise AssertionError("\n".join(seen))

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def ended(self):
        """Waits for the end; returns the exit code."""
        deadline = time.monotonic() + WAIT
        while not (self.code.exists() and self.code.read_text()):
            assert time.monotonic() < deadline, "\n".join(self.screen())
            time.sleep(0.02)
        return int(self.code.read_text())

    def close(self):
        self.tmux("kill-server")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def top(world, tmp, *arguments, **size):
    return Terminal(tmp, [BINARY, "top", *world.at, *arguments], **size)


def top_shows_modes_sorts_and_scrolls(world):
    with tempfile.TemporaryDirectory() as tmp, top(world, pathlib.Path(tmp), "--period", "1") as t:
        seen = t.until(lambda s: s[0].startswith("rorqual top ") and s[23].startswith("b,17"))
        assert f"{world.server.master}, Rorqual {VERSION}, HBase 2.6.1" in seen[0] and "(h: help)" in seen[0], seen
        assert seen[1].startswith("1 server, 0 dead; 6 tables; 35 regions, 0 not open"), seen
        assert seen[4].split() == ["REGION", "*REQ/S", "READ/S", "WRITE/S", "SIZE", "MEMSTORE", "FILES"] and len(seen[4]) == 80, seen
        assert [line.split()[0] for line in seen[5:8]] == ["a,", "b,", "b,01"] and seen[23].split()[0] == "b,17", seen
        t.keys("t")
        # A table with requests in the last second, of the server itself, comes first.
        seen = t.until(lambda s: s[4].startswith("TABLE") and not any(s[11:]) and
                       [line.split(" ")[0] for line in s[5:11]] == ["a", "b", "hbase:meta", "hbase:namespace", "ns:c", "off"])
        assert "REGIONS" in seen[4], seen
        t.keys("n")
        t.until(lambda s: s[4].startswith("NAMESPACE") and not any(s[8:]) and
                [line.split()[:2] for line in s[5:8]] == [["default", "32"], ["hbase", "2"], ["ns", "1"]])
        t.keys("s")
        seen = t.until(lambda s: s[4].startswith("SERVER") and s[5] and not any(s[6:]))
        assert seen[5].split()[:2] == [world.server.regionserver, "34"], seen
        t.keys("r")
        t.keys("Left")  # from the column of requests to that of names, which is before it in the list of regions
        t.until(lambda s: s[4].startswith("REGION *") and s[5].startswith("a, "))
        t.keys("o")
        t.until(lambda s: s[5].startswith("ns:c,"))
        t.keys("o")
        t.keys("NPage")
        t.until(lambda s: s[23].startswith("ns:c,"))
        t.keys("PPage")
        t.until(lambda s: s[5].startswith("a,"))
        t.keys("Down")
        t.until(lambda s: s[5].startswith("b,"))
        t.keys("h")
        t.until(lambda s: any("this help, and back" in line for line in s))
        t.keys("x", "h")  # keys without a meaning have no effect
        t.until(lambda s: s[5].startswith("b,"))
        t.keys("+")
        t.until(lambda s: "every 2 s" in s[1])
        t.keys("q")
        assert t.ended() == 0
        # The terminal is restored: typed text is echoed, and nothing of top's frame remains.
        t.until(lambda s: not any("rorqual top" in line for line in s))
        t.keys("typed")
        t.until(lambda s: any("typed" in line for line in s))


def top_fits_narrow_terminals(world):
    for columns, rows in ((40, 10), (16, 6), (5, 3), (200, 50)):
        with tempfile.TemporaryDirectory() as tmp, top(world, pathlib.Path(tmp), "--period", "1", columns=columns, rows=rows) as t:
            seen = t.until(lambda s: s[0].startswith("rorqual top "[:columns].rstrip()))
            assert all(len(line) <= columns for line in seen), seen
            if rows > 5:
                t.until(lambda s: s[4].startswith("REGION") and ("FILES" in s[4]) == (columns >= 80))
            t.keys("q")
            assert t.ended() == 0


def top_follows_the_terminals_size(world):
    with tempfile.TemporaryDirectory() as tmp, top(world, pathlib.Path(tmp), "--period", "3600") as t:
        t.until(lambda s: "FILES" in s[4])
        time.sleep(1.2)  # after the second sample only keys and sizes change the screen
        t.tmux("resize-window", "-t", "t", "-x", "45", "-y", "12")
        seen = t.until(lambda s: len(s) <= 13 and s[4].startswith("REGION") and "READ/S" in s[4] and "FILES" not in s[4])
        assert all(len(line) <= 45 for line in seen), seen
        t.keys("C-c")
        assert t.ended() == 130, "a shell's code for SIGINT"
        t.until(lambda s: not any("REGION" in line for line in s))


def top_tells_that_the_server_has_gone(folder):
    server = Server(folder / "d", folder / "log")
    with Terminal(folder, [BINARY, "top", "--zk", server.zk, "--period", "1"]) as t:
        t.until(lambda s: s[4].startswith("REGION"))
        assert server.kill() is None
        assert t.ended() == 1, t.screen()
        seen = [line for line in t.until(lambda s: re.fullmatch(rf"rorqual top: master {server.master}: .+", "".join(s))) if line]
        assert len(seen) <= 2, seen
    server = Server(folder / "d", folder / "log")
    pause(server.process)  # a server that accepts connections but does not respond
    done = subprocess.Popen([BINARY, "top", "--zk", server.zk, "--timeout", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = done.communicate(timeout=WAIT)
    server.process.send_signal(signal.SIGCONT)
    assert done.returncode == 1 and out == "" and len(err.splitlines()) == 1, (done.returncode, out, err)
    stop(server)


# ---- a stopped folder


def a_stopped_folder_has_the_same_tables(folder):
    world = World(folder)
    live = {t["table"]: t for t in lines("tables", *world.at, "--json")}
    world.client.data.put(world.region, b"late", {(b"f", b"q"): b"v"})
    world.client.close()
    assert world.server.kill() is None
    before = {p: p.stat().st_mtime_ns for p in world.data.rglob("*") if p.name != "lock"}
    for ends in ("killed", "stopped"):
        tables = {t["table"]: t for t in lines("tables", "--data", world.data, "--json")}
        assert list(tables) == list(live), tables
        assert all(tables[n]["regions"] == live[n]["regions"] and tables[n]["state"] == live[n]["state"] for n in live), tables
        files = [p for p in (world.data / "data/default/a").glob("*/f/*") if p.is_file()]
        assert (tables["a"]["files"], tables["a"]["fileBytes"]) == (len(files), sum(p.stat().st_size for p in files)), tables["a"]
        got = lines("status", "--data", world.data, "--json")[0]
        assert got["stoppedInOrder"] == (ends == "stopped") and (got["logRecords"] > 0) == (ends == "killed") and got["problems"] == 0, got
        said = run("status", "--data", world.data).stdout
        assert ("not stopped cleanly" in said) == (ends == "killed") and "6, 35 regions" in said, said
        assert len(lines("tables", "--data", world.data, "--json", "b")) == 30
        assert run("top", "--data", world.data, "--mode", "table").stdout.splitlines()[4].startswith("TABLE")
        if ends == "killed":
            assert {p: p.stat().st_mtime_ns for p in world.data.rglob("*") if p.name != "lock"} == before, "nothing is written"
            stop(Server(world.data, folder / "log"))
    # Damage is counted, and changes the exit code.
    victim = next((world.data / "data/default/b").iterdir())
    shutil.rmtree(victim)
    done = run("status", "--data", world.data)
    assert done.returncode in (0, 1) and done.stdout.startswith("folder "), done


TESTS = [status_has_the_figures, tables_have_their_figures, rates_are_measured, what_does_not_answer_is_told_in_one_line,
         a_region_that_is_not_open_is_named, top_shows_modes_sorts_and_scrolls, top_fits_narrow_terminals, top_follows_the_terminals_size]
ALONE = [top_tells_that_the_server_has_gone, a_stopped_folder_has_the_same_tables]


def main():
    passed = failed = 0
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="rorqual-watch-") as shared:
        world = None
        for test in TESTS + ALONE:
            if wanted and test.__name__ not in wanted:
                continue
            with tempfile.TemporaryDirectory(prefix="rorqual-watch-") as own:
                try:
                    if test in TESTS and world is None:
                        world = World(pathlib.Path(shared))
                    test(world if test in TESTS else pathlib.Path(own))
                    passed += 1
                    print(f"PASS {test.__name__}", flush=True)
                except Skipped as e:
                    print(f"SKIP {test.__name__}: {e}", flush=True)
                except Exception as e:  # pylint: disable=broad-except
                    failed += 1
                    print(f"FAIL {test.__name__}: {type(e).__name__}: {e}", flush=True)
        if world is not None:
            world.close()
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
