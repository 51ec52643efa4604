#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenTSDB 2.4.1 (the released daemon and tools), run alone or by others.py: points are written by HTTP and telnet, queried,
counted by OpenTSDB's tools, read and written by librorqual, deleted, and read again after both servers were restarted."""
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from rorqual import JAVA, ROOT, free_ports

HOUR = 1600000200 // 3600 * 3600  # long past: the daemon compacts its rows as soon as they are read
START_DEADLINE = 300
TOOL = ROOT / "build/tests/unit/rowkey/tsdb_tool"
LOG = """<configuration><appender name="OUT" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>
%d %-5level [%thread] %logger{0}: %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="OUT"/></root></configuration>"""
# The tables of OpenTSDB's create_table.sh; LZO is that script's default compression.
TABLES = {"data_table": ("tsdb", "t:LZO"), "uid_table": ("tsdb-uid", "id:LZO,name:LZO"),
          "tree_table": ("tsdb-tree", "t:LZO"), "meta_table": ("tsdb-meta", "name:LZO")}


class Daemon:
    """A TSD with its command-line tools, on the tables of this run."""

    def __init__(self, zk, run, folder):
        self.folder, self.port = folder, free_ports(1)[0]
        self.config = folder / "opentsdb.conf"
        (folder / "cache").mkdir(exist_ok=True)
        (folder / "logback.xml").write_text(LOG)
        settings = {
            "tsd.network.bind": "127.0.0.1", "tsd.network.port": self.port,
            "tsd.http.staticroot": folder, "tsd.http.cachedir": folder / "cache",
            "tsd.storage.hbase.zk_quorum": zk, "tsd.core.auto_create_metrics": "true",
            "tsd.storage.enable_compaction": "true", "tsd.http.query.allow_delete": "true",
            "tsd.core.meta.enable_realtime_uid": "true", "tsd.core.meta.enable_tsuid_incrementing": "true",
            "tsd.core.meta.enable_realtime_ts": "true",
        }
        for key, (name, _) in TABLES.items():
            settings[f"tsd.storage.hbase.{key}"] = f"{name}_{run}"
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.process = None

    def _command(self, name, arguments):
        # Smaller than the daemon's default heap, which these points do not need.
        environment = {**os.environ, "HEAP": "256m", "JAVA_FLAGS": "-Dlogback.configurationFile="
                       + str(self.folder / "logback.xml")}
        return [str(JAVA), "class", "opentsdb", f"net.opentsdb.tools.{name}", f"--config={self.config}",
                *arguments], environment

    def tool(self, name, *arguments):
        command, environment = self._command(name, arguments)
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=300)

    def start(self):
        command, environment = self._command("TSDMain", ())
        with open(self.folder / "tsd.log", "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_DEADLINE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.get("version")
                return
            except OSError:
                time.sleep(0.1)  # polls, because the daemon does not signal that it is ready
        self.stop()
        raise RuntimeError("the daemon did not start: " + (self.folder / "tsd.log").read_text()[-800:])

    def stop(self):
        """Sends SIGTERM, after which the daemon writes its buffered points; returns None or the problem."""
        self.process.terminate()
        try:
            self.process.wait(300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "no end 60 s after SIGTERM"
        return None

    def call(self, method, path, body=None):
        """(status, decoded JSON or None)"""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text) if text.strip() else None

    def get(self, path):
        status, answer = self.call("GET", path)
        if status != 200:
            raise OSError(f"{path}: {status} {str(answer)[:300]}")
        return answer

    def query(self, query, start=HOUR, end=HOUR + 4 * 3600 - 1, **more):
        """{(tag values): {second: value}} of one sub-query"""
        status, answer = self.call("POST", "query", {"start": start, "end": end, "queries": [query], **more})
        if status != 200:
            raise OSError(f"query: {status} {str(answer)[:300]}")
        return {tuple(sorted(series["tags"].items())): {int(t): v for t, v in series["dps"].items()}
                for series in answer}

    def telnet(self, text, until):
        with socket.create_connection(("127.0.0.1", self.port), 300) as s:
            s.sendall(text.encode())
            got = b""
            while until not in got:
                some = s.recv(65536)
                if not some:
                    break
                got += some
        return got.decode(errors="replace")


class Points:
    """The points to write, and the expected results of queries."""

    def __init__(self):
        chance = random.Random(5)
        self.load = {}
        for host in ("web01", "web02", "db01"):
            for i in range(240):
                value = chance.randrange(-1000, 100000) if host != "db01" else chance.randrange(8000) / 16
                self.load[host, HOUR + 60 * i] = value
        self.fine = {HOUR * 1000 + 125 * i: i for i in range(40)}

    def of(self, host):
        return {t: v for (h, t), v in self.load.items() if h == host}


def tags(**given):
    return tuple(sorted(given.items()))


def body(metric, t, value, **given):
    return {"metric": metric, "timestamp": t, "value": value, "tags": given}


def write(tsd, points):
    """Writes points by HTTP, 50 at a time like OpenTSDB's agents, and the last host's points by telnet."""
    rows = [body("sys.load", t, v, host=h, dc="lga") for (h, t), v in points.load.items() if h != "web02"]
    rows += [body("sys.fine", t, v, host="web01") for t, v in points.fine.items()]
    for i in range(0, len(rows), 50):
        status, answer = tsd.call("POST", "put?details&sync", rows[i:i + 50])
        if status != 200 or answer["failed"] != 0:
            return f"{status} {answer}"
    lines = "".join(f"put sys.load {t} {v} host=web02 dc=lga\n" for t, v in points.of("web02").items())
    said = tsd.telnet(lines + "version\n", b"built")
    return said if "put:" in said else None


def await_points(tsd, points):
    """Telnet puts have no response; the daemon writes them within a second."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if tsd.query({"aggregator": "none", "metric": "sys.load", "tags": {"host": "web02"}}) \
                    == {tags(host="web02", dc="lga"): points.of("web02")}:
                return None
        except OSError:
            pass  # the metric has no id yet
        time.sleep(0.1)
    return "the points put by telnet cannot be read"


def check_queries(report, tsd, points, when):
    def expect(name, query, wanted, **more):
        try:
            got = tsd.query(query, **more)
            report.outcome(f"opentsdb/{when}/{name}", None if got == wanted else f"{str(got)[:300]} instead of "
                           + str(wanted)[:300])
        except OSError as error:
            report.outcome(f"opentsdb/{when}/{name}", str(error))

    load = {"aggregator": "none", "metric": "sys.load"}
    every = {tags(host=h, dc="lga"): points.of(h) for h in ("web01", "web02", "db01")}
    webs = {k: v for k, v in every.items() if ("host", "db01") not in k}

    def by(kind, text, **more):
        return {**load, "filters": [{"type": kind, "tagk": "host", "filter": text, "groupBy": True}], **more}

    expect("all series", load, every)
    expect("one tag", {**load, "tags": {"host": "db01"}}, {tags(host="db01", dc="lga"): points.of("db01")})
    expect("literal_or", by("literal_or", "web01|web02"), webs)
    expect("wildcard", by("wildcard", "web*"), webs)
    expect("regexp", by("regexp", "^web.*"), webs)
    expect("not_literal_or", by("not_literal_or", "db01"), webs)
    expect("explicit tags", {**load, "explicitTags": True, "filters": [
        {"type": "literal_or", "tagk": "host", "filter": "web01|web02", "groupBy": True},
        {"type": "wildcard", "tagk": "dc", "filter": "*", "groupBy": True}]}, webs)
    expect("half an hour", {**load, "tags": {"host": "web01"}},
           {tags(host="web01", dc="lga"): {t: v for t, v in points.of("web01").items()
                                           if HOUR + 1800 <= t <= HOUR + 3600}},
           start=HOUR + 1800, end=HOUR + 3600)
    hours = {}
    for h in ("web01", "web02"):
        for t, v in points.of(h).items():
            hours[t // 3600 * 3600] = hours.get(t // 3600 * 3600, 0) + v
    expect("downsampled sum", {**by("wildcard", "web*"), "aggregator": "sum", "downsample": "1h-sum", "filters": [
        {"type": "wildcard", "tagk": "host", "filter": "web*", "groupBy": False}]}, {tags(dc="lga"): hours})


def check_milliseconds(report, tsd, points, when):
    status, answer = tsd.call("POST", "query", {"start": HOUR, "end": HOUR + 60, "msResolution": True, "queries": [
        {"aggregator": "none", "metric": "sys.fine"}]})
    got = {int(t): v for t, v in answer[0]["dps"].items()} if status == 200 and answer else answer
    report.outcome(f"opentsdb/{when}/milliseconds", None if got == points.fine else f"{status} {str(got)[:300]}")


def check_refused(report, tsd):
    """One of three points is malformed: the others are written, and the response names it."""
    status, answer = tsd.call("POST", "put?details&sync", [body("sys.three", HOUR, 1, host="a"),
                                                           body("sys.three", HOUR, "x", host="b"),
                                                           body("sys.three", HOUR, 3, host="c")])
    fine = status == 400 and answer["success"] == 2 and answer["failed"] == 1
    got = tsd.query({"aggregator": "none", "metric": "sys.three"})
    fine = fine and got == {tags(host="a"): {HOUR: 1}, tags(host="c"): {HOUR: 3}}
    report.outcome("opentsdb/a wrong point", None if fine else f"{status} {answer} {got}")


def check_names(report, tsd):
    said = tsd.get("suggest?type=metrics&q=sys."), tsd.get("suggest?type=tagv&q=web"), tsd.get("suggest?type=tagk&q=")
    wanted = ["sys.fine", "sys.load", "sys.three"], ["web01", "web02"], ["dc", "host"]
    report.outcome("opentsdb/suggest", None if said == wanted else str(said))
    status, answer = tsd.call("POST", "uid/assign", {"metric": ["sys.new"], "tagk": ["rack", "host"]})
    fine = status == 400 and "sys.new" in answer["metric"] and "rack" in answer["tagk"] and "host" in answer["tagk_errors"]
    report.outcome("opentsdb/uid assign", None if fine else f"{status} {answer}")
    assigned = answer["metric"].get("sys.new", "")
    status, answer = tsd.call("POST", "uid/rename", {"metric": "sys.new", "name": "sys.newer"})
    said = tsd.get("suggest?type=metrics&q=sys.new")
    report.outcome("opentsdb/uid rename", None if said == ["sys.newer"] else f"{status} {answer} {said}")
    meta = tsd.get("uid/uidmeta?type=metric&uid=" + assigned)
    fine = (meta["name"], meta["type"], meta["uid"]) == ("sys.newer", "METRIC", assigned)
    report.outcome("opentsdb/uid meta", None if fine else str(meta)[:300])


def check_annotations(report, tsd):
    note = {"startTime": HOUR + 5, "description": "a note", "notes": "long", "custom": {"k": "v"}}
    written = tsd.call("POST", "annotation", note)[0]
    read = tsd.get(f"annotation?start_time={HOUR + 5}")
    gone = tsd.call("DELETE", f"annotation?start_time={HOUR + 5}")[0]
    after = tsd.call("GET", f"annotation?start_time={HOUR + 5}")[0]
    fine = (written, gone, after) == (200, 204, 404) and read["description"] == "a note" and read["custom"] == {"k": "v"}
    report.outcome("opentsdb/annotation", None if fine else f"{written} {read} {gone} {after}")


def check_tools(report, tsd, points):
    """OpenTSDB's tools read all points, whether or not the daemon has compacted them."""
    wanted = len(points.load)
    dumped = tsd.tool("DumpSeries", "--import", str(HOUR), str(HOUR + 4 * 3600 - 1), "none", "sys.load")
    got = set()
    for line in dumped.stdout.splitlines():
        found = re.match(r"sys\.load (\d+) (\S+) .*host=(\w+)", line)
        if found:
            got.add((found[3], int(found[1]), float(found[2])))
    report.outcome("opentsdb/scan tool", None if got == {(h, t, float(v)) for (h, t), v in points.load.items()} else
                   f"{len(got)} of {wanted} points: {dumped.stdout[-300:]}")
    checked = tsd.tool("Fsck", str(HOUR), str(HOUR + 4 * 3600 - 1), "none", "sys.load")
    report.outcome("opentsdb/fsck", None if checked.returncode == 0 else
                   f"code {checked.returncode}: {checked.stdout[-300:]}")
    checked = tsd.tool("UidManager", "fsck")
    report.outcome("opentsdb/uid fsck", None if checked.returncode == 0 else
                   f"code {checked.returncode}: {checked.stdout[-300:]}")


def check_delete(report, tsd, points):
    query = {"aggregator": "none", "metric": "sys.load", "tags": {"host": "db01"}}
    first = tsd.query(query, delete=True)
    left = {}
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:  # the response does not wait for the deletes
        left = tsd.query({"aggregator": "none", "metric": "sys.load"})
        if tags(host="db01", dc="lga") not in left:
            break
        time.sleep(0.1)
    fine = first == {tags(host="db01", dc="lga"): points.of("db01")} and left == {
        tags(host=h, dc="lga"): points.of(h) for h in ("web01", "web02")}
    report.outcome("opentsdb/delete by query", None if fine else
                   f"{str(first)[:200]} then {[(k, len(v)) for k, v in left.items()]}")


def library(zk, run, *arguments, text=""):
    """Runs librorqual's tool on the daemon's tables; returns its lines."""
    command = [str(TOOL), f"hbase://{zk}", f"tsdb_{run}", f"tsdb-uid_{run}", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise OSError(f"{command}: {done.returncode} {done.stderr[-300:]}")
    return done.stdout.splitlines()


def check_library(report, tsd, zk, run, points):
    """librorqual reads the points that the daemon wrote, compacted or not; the daemon reads the points that librorqual
    wrote and compacted."""
    hours = str(HOUR * 1000), str((HOUR + 4 * 3600) * 1000)
    read = [line.split(" ") for line in library(zk, run, "read", "sys.load", *hours)]
    got = {(dict(pair.split("=") for pair in given.split(","))["host"], int(t) // 1000): float(v) for given, t, v in read}
    report.outcome("opentsdb/library reads", None if got == points.load else f"{len(got)} of {len(points.load)} points")
    read = [line.split(" ") for line in library(zk, run, "read", "sys.fine", *hours)]
    report.outcome("opentsdb/library reads milliseconds", None if {int(t): int(v) for _, t, v in read} == points.fine else str(read)[:300])
    text = "".join(f"dc=lga,host={h} {t * 1000} {v}\n" for (h, t), v in points.load.items())
    text += "".join(f"dc=new,host=fine {t} {v}\n" for t, v in points.fine.items())
    wanted = {tags(host=h, dc="lga"): {t * 1000: v for t, v in points.of(h).items()} for h in ("web01", "web02", "db01")}
    wanted[tags(host="fine", dc="new")] = points.fine
    for metric in ("lib.single", "lib.compacted"):
        library(zk, run, "write", metric, text=text)
        if metric == "lib.compacted":
            rows = library(zk, run, "compact", metric, *hours)
            report.outcome("opentsdb/library compacts", None if rows == ["13"] else f"{rows} rows, not 3 hosts x 4 hours and one more")
        status, answer = tsd.call("POST", "query", {"start": HOUR, "end": HOUR + 4 * 3600 - 1, "msResolution": True, "queries": [
            {"aggregator": "none", "metric": metric}]})
        found = {tuple(sorted(s["tags"].items())): {int(t): v for t, v in s["dps"].items()} for s in answer} if status == 200 else answer
        report.outcome(f"opentsdb/daemon reads {metric}", None if found == wanted else f"{status} {str(found)[:300]}")
        deadline = time.monotonic() + 300
        checked = tsd.tool("Fsck", str(HOUR), str(HOUR + 4 * 3600 - 1), "none", metric)
        # The daemon compacts rows that it has read; meanwhile a row has its points twice.
        while checked.returncode != 0 and time.monotonic() < deadline:
            checked = tsd.tool("Fsck", str(HOUR), str(HOUR + 4 * 3600 - 1), "none", metric)
        report.outcome(f"opentsdb/fsck of {metric}", None if checked.returncode == 0 else f"code {checked.returncode}: {checked.stdout[-300:]}")


def make_tables(report, zk, run, verb, folder):
    for name, families in TABLES.values():
        arguments = [verb, f"{name}_{run}"] + ([families] if verb == "create" else [])
        with open(folder / "tool.log", "ab") as log:
            ran = subprocess.run([str(JAVA), "class", "26", "rorqual.tests.client26.TableTool", *arguments],
                                 env={**os.environ, "ZK": zk}, stderr=log, check=False)
        if ran.returncode:
            report.outcome(f"opentsdb/{verb} {name}", f"code {ran.returncode}")


def first_day(report, tsd, points, zk, run):
    tsd.start()
    report.outcome("opentsdb/points are written", write(tsd, points))
    report.outcome("opentsdb/points put by telnet are there", await_points(tsd, points))
    check_queries(report, tsd, points, "fresh")
    check_milliseconds(report, tsd, points, "fresh")
    check_refused(report, tsd)
    check_names(report, tsd)
    check_annotations(report, tsd)
    check_library(report, tsd, zk, run, points)
    report.outcome("opentsdb/stops", tsd.stop())


def second_day(report, tsd, points):
    check_tools(report, tsd, points)
    tsd.start()
    check_queries(report, tsd, points, "restarted")
    check_milliseconds(report, tsd, points, "restarted")
    check_delete(report, tsd, points)
    report.outcome("opentsdb/stops again", tsd.stop())


def opentsdb(report, zk, folder, restart):
    """`restart` restarts the servers and returns the new address of ZooKeeper."""
    folder = folder / "opentsdb"
    folder.mkdir()
    run, points = f"{random.randrange(10**6):06}", Points()
    make_tables(report, zk, run, "create", folder)
    tsd = Daemon(zk, run, folder)
    try:
        first_day(report, tsd, points, zk, run)
        zk = restart()
        tsd = Daemon(zk, run, folder)
        second_day(report, tsd, points)
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        report.outcome("opentsdb/goes on", str(error))
    finally:
        if tsd.process is not None and tsd.process.poll() is None:
            tsd.process.kill()
    make_tables(report, zk, run, "drop", folder)


def main():
    """Runs others.py with only this client, so that the server and the last line are the same."""
    os.environ["ONLY_OTHER"] = "opentsdb"
    import others  # pylint: disable=import-outside-toplevel,cyclic-import; it imports this file
    return others.main()


if __name__ == "__main__":
    sys.exit(main())
