#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HBase's shell (with HBase's Java client) reads slow and large calls with every filter of get_slowlog_responses,
clears them, reads `processlist` from the HTTP port, and prints `status`; HBase's hbtop shows the rates of a known
load.

    observe.py      starts build/rorqual (or RORQUAL) on a temporary folder, with limits that every response exceeds
    KEEP=1          keeps the temporary folder with the raw output
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from hbase import Client
from rorqual import BINARY, ROOT, Report, Server, fail_hard, output_of

SHELL_DEADLINE = 300
SESSION = r"""
def section(name)
  puts "## #{name}"
  yield
rescue Exception => e
  puts "ERROR: #{e.message}"
ensure
  puts '## end'
end
section('create') { create 'watched', 'cf', SPLITS => ['m'] }
section('write') { put 'watched', 'row <1>', 'cf:q', 'v' * 500; get 'watched', 'row <1>'; scan 'watched' }
section('search') { scan 'large', { FILTER => (["ValueFilter(=, 'substring:absent')"] * 20).join(' OR ') } }
section('large') { get_largelog_responses '*', { 'LIMIT' => 100 } }
section('large of a table') { get_largelog_responses '*', { 'TABLE_NAME' => 'watched', 'LIMIT' => 100 } }
section('large of nobody') { get_largelog_responses '*', { 'USER' => 'nobody' } }
section('large, both filters') { get_largelog_responses '*', { 'TABLE_NAME' => 'watched', 'USER' => 'nobody', 'FILTER_BY_OP' => 'AND' } }
section('large, one') { get_largelog_responses '*', { 'LIMIT' => 1 } }
section('slow') { get_slowlog_responses '*', { 'LIMIT' => 1000 } }
section('clear') { clear_slowlog_responses }
section('slow after clear') { get_slowlog_responses '*', { 'LIMIT' => 1000 } }
section('processlist') { processlist 'all' }
section('processlist general') { processlist }
section('status') { status 'detailed' }
"""


def run_shell(zk, folder):
    """{section name: output}"""
    host, port = zk.rsplit(":", 1)
    conf = folder / "peer/conf"
    conf.mkdir(parents=True)
    conf.joinpath("hbase-site.xml").write_text(
        f"<configuration><property><name>hbase.zookeeper.quorum</name><value>{host}</value></property>"
        f"<property><name>hbase.zookeeper.property.clientPort</name><value>{port}</value></property></configuration>")
    conf.joinpath("log4j.properties").write_text("log4j.rootLogger=OFF\n")
    session, start = folder / "session.rb", folder / "start.rb"
    session.write_text(SESSION)
    start.write_text(f"eval(File.read('{session}'), binding)\nexit\n")
    with open(folder / "shell.err", "wb") as stderr:
        out = output_of([str(ROOT / "tests/peers/hbase.sh"), "shell", str(folder / "peer"), str(start)], SHELL_DEADLINE, stderr=stderr)
    (folder / "shell.out").write_text(out)
    return dict(re.findall(r"^## (.+?)\n(.*?)^## end$", out, re.M | re.S))


RATE = 200

LOOK_S = 3


class Rates:
    """The server's own counts for a table while hbtop runs, because a busy machine delays the load, too."""

    def __init__(self, http, table):
        self.url, self.table = f"http://{http}/metrics?regions", table
        self.samples = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def requests(self):
        with urllib.request.urlopen(self.url, timeout=SHELL_DEADLINE) as answer:
            text = answer.read().decode()
        return sum(int(float(n)) for n in re.findall(rf'(?m)^rorqual_table_(?:read|write)_requests_total{{[^}}]*table="{self.table}"[^}}]*}} (\S+)', text))

    def watch(self):
        while not self.stop.wait(0.1):
            self.samples.append((time.monotonic(), self.requests()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def quartiles(self):
        """Quartiles of the rates over LOOK_S during the load."""
        rates = []
        for begun, before in self.samples:
            ended = next(((t, n) for t, n in self.samples if t >= begun + LOOK_S), None)
            if ended and before > 0 and ended[1] > before:
                rates.append((ended[1] - before) / (ended[0] - begun))
        rates.sort()
        assert len(rates) >= 10, (rates, self.samples[-3:])
        return rates[len(rates) // 4], rates[len(rates) * 3 // 4]


def run_hbtop(server, folder):
    """The rates that hbtop prints for tables in several samples, while a generator puts and gets at RATE; and the rates served."""
    load = subprocess.Popen([BINARY, "bench", "--zk", server.zk, "--table", "steady", "--records", "1000", "--rate", str(RATE), "--seconds",
                             "3600", "--quiet", "mixed"], stdout=subprocess.DEVNULL)
    try:
        with open(folder / "hbtop.err", "wb") as stderr, Rates(server.http, "steady") as rates:
            out = output_of([str(ROOT / "tests/peers/hbase.sh"), "hbtop", str(folder / "peer"), "-b", "-n", "6", "-d", str(LOOK_S), "-m", "t"],
                            SHELL_DEADLINE, stderr=stderr)
        return out, rates
    finally:
        load.kill()
        load.wait()


def fill(server):
    """Makes a table whose scan takes long."""
    client = Client(server)
    client.create("large", {"cf": {}})
    region = client.regions("large")[0][1]
    for start in range(0, 40000, 2000):
        client.data.put_many(region, [(b"r%06d" % i, {(b"cf", b"q"): b"x" * 60}) for i in range(start, start + 2000)])
    client.close()


def records(output):
    """The records that the shell prints, one JSON object after another."""
    decoder, found, at = json.JSONDecoder(), [], output.find("{")
    while at >= 0:
        record, end = decoder.raw_decode(output, at)
        found.append(record)
        at = output.find("{", end)
    return found


def large_calls(got):
    calls = records(got["large"])
    methods = {c["methodName"] for c in calls}
    assert {"Get", "Scan"} <= methods, (methods, got["large"][:500])
    one = next(c for c in calls if c["methodName"] == "Get" and "row <1>" in c["param"])
    assert one["responseSize"] > 500 and one["param"].startswith("region= watched,m,"), one
    assert one["serverClass"] == "HRegionServer" and one["userName"], one
    assert one["processingTime"] >= 0 and one["queueTime"] >= 0 and re.fullmatch(r"\S+:\d+", one["clientAddress"]), one


def filters(got):
    of_table = records(got["large of a table"])
    assert of_table and all("watched," in c["param"] and "hbase:meta" not in c["param"] for c in of_table), of_table
    assert not records(got["large of nobody"]), got["large of nobody"]
    assert not records(got["large, both filters"]), got["large, both filters"]
    assert len(records(got["large, one"])) == 1


def slow_calls(got):
    """The search for an absent text was recorded with a duration of milliseconds."""
    calls = records(got["slow"])
    assert calls and all(c["processingTime"] >= 1 for c in calls), got["slow"][:500]
    assert any(c["methodName"] == "Scan" and "SubstringComparator" in c["param"] for c in calls), got["slow"][:1500]


def the_ring_is_cleared(got):
    assert "Cleared Slowlog responses from 1/1 RegionServers" in got["clear"], got["clear"]
    before, after = records(got["slow"]), records(got["slow after clear"])
    assert not {c["startTime"] for c in before} & {c["startTime"] for c in after}, "a record is still there"


def processlist(got):
    for name in ("processlist", "processlist general"):
        assert re.search(r"\d+ tasks as of: ", got[name]), got[name]


def status_is_live(got):
    server = re.search(r"requestsPerSecond=.*", got["status"])[0]
    region = re.search(r'"large,,.*\n(.*)', got["status"])[1]

    def figure(line, name):
        return int(re.search(rf"\b{name}=(\d+)", line)[1])

    assert figure(region, "writeRequestsCount") == 40000, region
    assert figure(region, "readRequestsCount") >= 1 and figure(server, "filteredReadRequestsCount") >= 40000, (region, server)
    assert figure(region, "memstoreSizeMB") + figure(region, "storefileSizeMB") >= 3, region  # 40,000 cells of about 90 bytes
    assert figure(server, "writeRequestsCount") > 40000 and 0 < figure(server, "usedHeapMB") <= figure(server, "maxHeapMB"), server
    assert figure(server, "numberOfOnlineRegions") == 5, server  # with hbase:meta and hbase:namespace


def hbtop_is_live(got):
    """During the load the median of hbtop's samples matches the server's counts."""
    rates = [tuple(map(int, r)) for r in re.findall(r"(?m)^default +steady +1 +(\d+) +(\d+) +\d+ +(\d+) ", got["hbtop"])]
    busy = sorted(r for r in rates if r[0] > 0)
    assert len(busy) >= 2, (rates, got["hbtop"][-900:])
    total, reads, writes = busy[len(busy) // 2]
    low, high = got["served"].quartiles()
    assert low * 0.6 < total < high * 1.6, (low, high, rates)
    assert abs(reads - writes) < total / 2, rates


TESTS = [large_calls, filters, slow_calls, the_ring_is_cleared, processlist, status_is_live, hbtop_is_live]


def main():
    report = Report()
    if not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-observe-"))
    server = Server(folder / "data", folder / "server.log", "-D", "hbase.ipc.warn.response.time=0", "-D", "hbase.ipc.warn.response.size=100")
    try:
        fill(server)
        got = run_shell(server.zk, folder)
        got["hbtop"], got["served"] = run_hbtop(server, folder)
        for test in TESTS:
            problem = None
            try:
                test(got)
            except (AssertionError, KeyError, StopIteration, TypeError, json.JSONDecodeError) as e:
                problem = repr(e).replace("\n", " | ")[:900]
            report.outcome(f"observe/{test.__name__}", problem)
        report.outcome("observe/server stops cleanly", server.stop())
    except subprocess.TimeoutExpired:
        report.outcome("observe", f"a program has printed nothing for {SHELL_DEADLINE} s")
    finally:
        if server.process.poll() is None:
            server.kill()
        if "KEEP" in os.environ:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
