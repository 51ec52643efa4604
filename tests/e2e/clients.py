#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Java programs on the other versions of HBase's client: 1.4, 1.7, 2.4, 2.5, 3.0.

    clients.py                  starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port clients.py     tests a running server, such as a real HBase
    CLIENTS='17 30'             only these clients

The compiled programs of client12 and client26 run on the other clients' libraries; DIFFERS lists results that differ
because of the client's version. Ends with 'N passed, N failed'.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import sys
import tempfile

from rorqual import BINARY, Report, Server, build_java, fail_hard, java

OLD = []  # all programs of client12
NEW = ["Borders", "Connections", "Filters", "Reads", "Tables", "Weibo", "Writes"]
PROGRAMS = {"14": OLD, "17": OLD, "24": NEW, "25": NEW, "30": NEW}

# Steps that must fail with a client, and the reason in the client.
DISABLED = (r"Tables/write/a disabled table serves nothing", "looks at the table's state before a flush, and returns")
NATIVE = (r"Connections/write/cell blocks compressed by (Snappy|LZ4|Zstd)",
          "has no compressors here that need no native library; 2.6 has them")
DIFFERS = {
    "24": [DISABLED, NATIVE,
           (r"Tables/write/describe", "prints attributes in another order"),
           (r"Connections/\w+/RPC registry.*", "has no RpcConnectionRegistry")],
    "25": [DISABLED, NATIVE],
    "30": [NATIVE,
           (r"Reads/\w+/next\(n\) and renewLease", "renews leases itself and says that it does not"),
           (r"Writes/write/put: an unknown family spoils .*", "throws RetriesExhaustedException without details"),
           (r"Writes/write/batch: failing actions beside good ones", "throws RetriesExhaustedException without details"),
           (r"Writes/write/old checks: (?!fluent form).*", "has no checkAndPut"),
           (r"Connections/write/HTableMultiplexer", "has no HTableMultiplexer")],
}


class ClientReport:
    """Prints a client's lines with the client's name as prefix; known differences of the client are skipped."""

    def __init__(self, report, client):
        self.report = report
        self.client = client

    def line(self, line):
        found = re.match(r"(PASS|FAIL) (.*?)(?:: (?=[\w.$]+(?:Exception|Error)\b).*)?$", line)
        for pattern, reason in DIFFERS.get(self.client, []):
            if not found or not re.match(pattern, found[2]):
                continue
            if found[1] == "FAIL":
                self.report.line(f"SKIP {self.client}/{re.split(r': (?=expected|the lease|refused)', found[2])[0]}: this client {reason}")
                return
            line = f"FAIL {found[2]}: passes now, though listed: this client {reason}"
        self.report.line(re.sub(r"^(PASS|FAIL) ", rf"\1 {self.client}/", line))

    def outcome(self, name, problem=None):
        return self.report.outcome(f"{self.client}/{name}", problem)


def run_all(report, zk, folder):
    run = f"c{random.randrange(10**6):06}"
    clients = os.environ.get("CLIENTS", " ".join(PROGRAMS)).split()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(java, ClientReport(report, client), client, "write,check,drop", zk, f"{run}x{client}",
                            folder / f"client{client}.log", PROGRAMS[client]) for client in clients]
        for job in jobs:
            job.result()


def main():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-clients-") as name:
        folder = pathlib.Path(name)
        build_java()
        if "ZK" in os.environ:
            run_all(report, os.environ["ZK"], folder)
        elif not os.path.exists(BINARY):
            fail_hard(f"no server at {BINARY}")
        else:
            server = Server(folder / "data", folder / "server.log")
            run_all(report, server.zk, folder)
            report.outcome("server/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
