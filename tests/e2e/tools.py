#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs HBase's load tools, which must end without an error: make tools-tests.

    tools.py                  starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port tools.py     tests a running server, such as a real HBase
    COMMANDS='scan append'    only these commands of PerformanceEvaluation ('' for none); ROWS (2000)
    KEYS=0                    without LoadTestTool; otherwise its number of keys (default 3000)

PerformanceEvaluation runs each of its commands; LoadTestTool writes, updates and reads back, and
verifies every value. An exception in a tool's output is an error, too. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from rorqual import BINARY, ROOT, Report, Server, fail_hard

PEER = ROOT / "tests/peers/hbase.sh"
PACKAGE = "org.apache.hadoop.hbase."
# Ordered so that each command finds the rows that it reads.
ALL = """sequentialWrite sequentialRead randomRead randomWrite randomSeekScan scan reverseScan filterScan
scanRange10 scanRange100 scanRange1000 scanRange10000 asyncSequentialWrite asyncSequentialRead
asyncRandomWrite asyncRandomRead asyncScan increment append checkAndMutate checkAndPut checkAndDelete
randomDelete sequentialDelete metaWrite metaRandomRead cleanMeta"""
COMMANDS = os.environ.get("COMMANDS", ALL).split()
ROWS = os.environ.get("ROWS", "2000")
KEYS = int(os.environ.get("KEYS", "3000"))
# Options to test, each with commands that use it.
VARIANTS = [["--autoFlush=true", "--multiPut=50", "--valueSize=200", "--writeToWAL=false", "--presplit=4", "sequentialWrite"],
            ["--multiGet=20", "randomRead"], ["--inmemory=true", "--bloomFilter=ROWCOL", "--columns=3", "--families=2",
                                              "randomWrite"],
            ["--usetags=true", "--numoftags=2", "sequentialWrite"], ["--caching=7", "--asyncPrefetch=true", "scan"],
            ["--replicas=1", "--addColumns=false", "randomRead"], ["--oneCon=true", "--autoFlush=true", "randomWrite"]]
BAD = re.compile(r"^(?!.*(?:SLF4J|NativeCodeLoader)).*(?:Exception|\bERROR\b|FATAL).*", re.M)


def run_tool(report, name, zk, folder, arguments):
    """The tools read the folder's hbase-site.xml, which sets ZooKeeper's port."""
    environment = {**os.environ, "ZK_PORT": zk.rsplit(":", 1)[1], "HEAP": "1g"}
    try:
        ran = subprocess.run([str(PEER), "run", str(folder), *arguments], env=environment, text=True, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
    except subprocess.TimeoutExpired as late:
        report.outcome(name, f"no end after {late.timeout} s")
        return
    bad = BAD.search(ran.stdout)
    problem = None
    if ran.returncode:
        problem = f"ended with {ran.returncode}: " + " | ".join(ran.stdout.splitlines()[-4:])
    elif bad:
        problem = bad[0].strip()
    report.outcome(name, problem)


def run_all(report, zk, folder):
    for command in COMMANDS:
        run_tool(report, f"pe {command}", zk, folder,
                 [PACKAGE + "PerformanceEvaluation", "--nomapred", f"--rows={ROWS}", command, "2"])
    if COMMANDS == ALL.split():
        for variant in VARIANTS:
            run_tool(report, "pe " + " ".join(variant), zk, folder,
                     [PACKAGE + "PerformanceEvaluation", "--nomapred", f"--rows={ROWS}", "--table=Variants", *variant, "2"])
    if KEYS:
        load(report, zk, folder)


def load(report, zk, folder):
    """Concurrent writers and readers; then updates without readers, because a concurrent reader would see a
    value between the tool's two writes of an update; then all rows are read and verified. Batch updates come
    last: one Append then has its column of notes several times, of which only one is kept."""
    for name, options, parts in (
            ("single", [], [["-write", "3:200:4", "-read", "100:4"], ["-update", "20:4"], ["-read", "100:4"]]),
            ("batches", ["-multiget_batchsize", "10"],
             [["-multiput", "-write", "3:100:4", "-read", "100:4"], ["-read", "100:4"], ["-batchupdate", "-update", "20:4"]]),
            ("compressed", ["-bloom", "ROWCOL", "-compression", "GZ"], [["-write", "3:100:4", "-read", "100:4"]])):
        for n, part in enumerate(parts):
            run_tool(report, f"ltt {name}: {' '.join(part)}", zk, folder,
                     [PACKAGE + "util.LoadTestTool", "-tn", f"Load_{name}", "-zk", zk, "-num_keys", str(KEYS),
                      "-num_regions_per_server", "3", *(["-skip_init"] if n else []), *options, *part])


def main():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-tools-") as name:
        folder = pathlib.Path(name)
        zk = os.environ.get("ZK")
        server = None
        if not zk:
            if not os.path.exists(BINARY):
                fail_hard(f"no server at {BINARY}")
            server = Server(folder / "data", folder / "server.log")
            zk = server.zk
        run_all(report, zk, folder / "tool")
        if server:
            report.outcome("server/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
