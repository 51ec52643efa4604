#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits that no other test could bear: small requests, short leases, clients that wait briefly, and
connections that change loops after each turn.

    tight.py                 starts build/rorqual (or RORQUAL) with SETTINGS
    ZK=host:port tight.py    a server that runs already with the same settings (a real HBase, say)

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import sys
import tempfile

from rorqual import BINARY, Report, Server, build_java, fail_hard, java

SETTINGS = ("hbase.ipc.max.request.size=1048576", "hbase.client.scanner.timeout.period=2000",
            "rorqual.loops.restless=true", "rorqual.loops=3")
CLIENTS = (("26", ["Tight"]), ("12", ["Tight12"]))


def programs(report, zk, logs):
    os.environ["TIGHT"] = "1"
    run = f"t{random.randrange(10**6):06}"
    for client, names in CLIENTS:
        java(report, client, "write,drop", zk, run, logs / f"client{client}.log", names)


def main():
    report = Report()
    if "ZK" not in os.environ and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    with tempfile.TemporaryDirectory(prefix="rorqual-tight-") as folder:
        folder = pathlib.Path(folder)
        if "ZK" in os.environ:
            programs(report, os.environ["ZK"], folder)
            return report.finish()
        server = Server(folder / "data", folder / "server.log",
                        *(word for setting in SETTINGS for word in ("-D", setting)))
        try:
            programs(report, server.zk, folder)
            report.outcome("server/stops cleanly", server.stop())
        finally:
            if server.process.poll() is None:
                server.kill()
    return report.finish()


sys.exit(main())
