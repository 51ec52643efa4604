#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librorqual on a real HBase: the tests that it passes on folders and on Rorqual (tests/unit/api), with HBase found by
ZooKeeper and by its master; the row-key toolkit's tests and the examples.
"""
import pathlib
import subprocess
import sys
import tempfile

from rorqual import ROOT, Report

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)

PROGRAMS = ROOT / "build/tests/unit/api", ROOT / "build/examples"


def run(report, name, *command, last=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    lines = done.stdout.splitlines()
    right = done.returncode == 0 and (last is None or lines[-1:] == [last])
    report.outcome(f"library/{name}", None if right else f"{done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")


def main():
    orderly()
    report = Report()
    tests, examples = PROGRAMS
    with tempfile.TemporaryDirectory() as folder, HBase(pathlib.Path(folder, "hbase"), env=None) as hbase:
        run(report, "HBase by zookeeper", str(tests / "test_api"), f"hbase://{hbase.zk}")
        run(report, "HBase by master", str(tests / "test_api"), f"hbase+rpc://127.0.0.1:{hbase.ports['MASTER_PORT']}")
        run(report, "HBase, asynchronous calls", str(tests / "test_async"), f"hbase://{hbase.zk}")
        run(report, "HBase, filters", str(tests / "test_filters"), f"hbase://{hbase.zk}")
        run(report, "HBase, regions and definitions", str(tests / "test_cluster"), f"hbase://{hbase.zk}")
        for name in ("geo", "index", "index_cover", "salted", "tsdb"):
            run(report, f"rowkey {name} on HBase", str(ROOT / f"build/tests/unit/rowkey/test_rowkey_{name}"), f"hbase://{hbase.zk}")
        for expected in sorted((ROOT / "examples/expected").glob("*.txt")):
            run(report, f"{expected.stem} on HBase", str(ROOT / "examples/compare"), str(examples / f"example_{expected.stem}"), str(expected),
                f"hbase://{hbase.zk}")
        run(report, "blog on HBase", str(examples / "example_blog"), f"hbase://{hbase.zk}", last="849 posts in December")
        run(report, "events on HBase", str(examples / "example_events"), f"hbase://{hbase.zk}", last="1000 rows written, 1000 read")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
