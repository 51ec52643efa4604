#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every method of Java's Admin against outcomes recorded from a real HBase 2.6.1: the program AdminCalls of tests/java.

    admin_calls.py                 starts build/rorqual (or RORQUAL), and a second one as a replication peer
    admin_calls.py --hbase         the same on a real HBase, which must pass except for the intended differences
    RECORD=FILE admin_calls.py --hbase    records HBase's outcomes: tests/java/client26/src/main/resources/admin-calls.txt
    METHODS=REGEX                  these methods only

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import sys
import tempfile

from rorqual import BINARY, ROOT, Report, Server, build_java, fail_hard, java

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)

# Compactions started by HBase itself and splits by size would change the compared outcomes.
SETTINGS = {"hbase.quota.enabled": "true"}


def calls(report, zk, folder):
    sink = Server(folder / "sink", folder / "sink.log")
    try:
        os.environ.update({"SINK": sink.zk, "STEP_TIMEOUT": "900", "RUN_TIMEOUT": "3600"})
        java(report, "26", "write", zk, "calls", folder / "client.log")
    finally:
        sink.kill()


def own_server(report, folder):
    server = Server(folder / "data", folder / "server.log", *(word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")))
    try:
        calls(report, server.zk, folder)
        report.outcome("server/stops cleanly", server.stop())
    finally:
        if server.process.poll() is None:
            server.kill()


def main():
    orderly()
    report = Report()
    if not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    with tempfile.TemporaryDirectory(prefix="rorqual-admin-") as folder:
        folder = pathlib.Path(folder)
        if "--hbase" in sys.argv:
            with HBase(folder / "hbase", SETTINGS) as hbase:
                calls(report, hbase.zk, folder)
        else:
            own_server(report, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
