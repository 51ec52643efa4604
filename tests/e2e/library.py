#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librorqual on a real HBase, found by ZooKeeper and by its master: the tests of tests/unit/api, which it also passes on folders and on
Rorqual, the row-key toolkit's tests, and the examples.

HBase takes a second or more to create, disable or drop a table, mostly waiting. So AT_ONCE programs (default 6) run concurrently, each
on its own tables.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

from rorqual import ROOT, Report

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)

TESTS, EXAMPLES = ROOT / "build/tests/unit", ROOT / "build/examples"
AT_ONCE = int(os.environ.get("AT_ONCE", "6"))
# How long a master and a dispatcher collect calls to a region server: 150 ms each, even for one region.
SETTINGS = {"hbase.assignment.dispatch.wait.msec": "5", "hbase.procedure.remote.dispatcher.delay.msec": "5"}


def run(report, name, *command, last=None):
    # An error in a thread of a test may end the program by exit(-1) without a message.
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200, check=False,
                          env={**os.environ, "CMOCKA_TEST_ABORT": "1"})
    lines = done.stdout.splitlines()
    right = done.returncode == 0 and (last is None or lines[-1:] == [last])
    report.outcome(f"library/{name}", None if right else f"{done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")


def both_ways(report, part, by_zookeeper, by_master):
    """Runs the part by ZooKeeper, then by the master, because both use the same tables."""
    run(report, f"HBase by zookeeper, {part}", TESTS / "api/test_api", part, by_zookeeper)
    run(report, f"HBase by master, {part}", TESTS / "api/test_api", part, by_master)


def jobs(report, at, by_master):
    """[(function, arguments)], the longest first."""
    parts = subprocess.run([TESTS / "api/test_api", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for name in ("salted", "index", "index_cover", "tsdb", "geo"):
        yield run, (report, f"rowkey {name} on HBase", TESTS / f"rowkey/test_rowkey_{name}", at)
    for what, name in (("asynchronous calls", "async"), ("regions and definitions", "cluster"), ("filters", "filters")):
        yield run, (report, f"HBase, {what}", TESTS / f"api/test_{name}", at)
    for part in parts:
        yield both_ways, (report, part, at, by_master)
    for expected in sorted((ROOT / "examples/expected").glob("*.txt")):
        if expected.stem == "events_glib" and not (EXAMPLES / "example_events_glib").exists():
            continue  # the build did not find glib
        yield run, (report, f"{expected.stem} on HBase", ROOT / "examples/compare", EXAMPLES / f"example_{expected.stem}", expected, at)


def main():
    orderly()
    report = Report()
    with tempfile.TemporaryDirectory() as folder, HBase(pathlib.Path(folder, "hbase"), SETTINGS) as hbase:
        at, by_master = f"hbase://{hbase.zk}", f"hbase+rpc://127.0.0.1:{hbase.ports['MASTER_PORT']}"
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            begun = [pool.submit(function, *arguments) for function, arguments in jobs(report, at, by_master)]
            begun.append(pool.submit(run, report, "blog on HBase", EXAMPLES / "example_blog", at, last="849 posts in December"))
            begun.append(pool.submit(run, report, "events on HBase", EXAMPLES / "example_events", at, last="1000 rows written, 1000 read"))
            for job in begun:
                job.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
