#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests under limits that would make other tests fail: small requests, short leases, clients with short
time-outs, and connections that change loops after each turn.

    tight.py                 starts build/rorqual (or RORQUAL) with SETTINGS and OWN
    tight.py --hbase         starts a real HBase with SETTINGS

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import sys
import tempfile

from rorqual import BINARY, ROOT, Report, Server, build_java, fail_hard, java

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)

# The interval at which HBase checks its leases; its default is ten seconds.
SETTINGS = {"hbase.ipc.max.request.size": "1048576", "hbase.client.scanner.timeout.period": "2000",
            "hbase.server.thread.wakefrequency": "100"}
OWN = {"rorqual.loops.restless": "true", "rorqual.loops": "3"}
CLIENTS = (("26", ["Tight"]), ("12", ["Tight12"]))


def programs(report, zk, logs):
    os.environ["TIGHT"] = "1"
    run = f"t{random.randrange(10**6):06}"
    for client, names in CLIENTS:
        java(report, client, "write,drop", zk, run, logs / f"client{client}.log", names)


def own_server(report, folder):
    server = Server(folder / "data", folder / "server.log",
                    *(word for key, value in {**SETTINGS, **OWN}.items() for word in ("-D", f"{key}={value}")))
    try:
        programs(report, server.zk, folder)
        report.outcome("server/stops cleanly", server.stop())
    finally:
        if server.process.poll() is None:
            server.kill()


def main():
    orderly()
    report = Report()
    real = "--hbase" in sys.argv
    if not real and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    with tempfile.TemporaryDirectory(prefix="rorqual-tight-") as folder:
        folder = pathlib.Path(folder)
        if real:
            with HBase(folder / "hbase", SETTINGS) as hbase:
                programs(report, hbase.zk, folder)
        else:
            own_server(report, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
