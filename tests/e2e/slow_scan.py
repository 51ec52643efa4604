#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Java clients that read a large table of many regions more slowly than the server sends.

    slow_scan.py              2 GB in 50 regions, read 20 times by the 3.0 client and 20 times by 2.6's AsyncTable
    MB=100 ROUNDS=1 CLIENTS=30 slow_scan.py

Clients lose the signal to resume if a response arrives faster than they expect (docs/compatibility.md): such a scan
hangs forever. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import rorqual

MB = int(os.environ.get("MB", "2000"))
ROUNDS = os.environ.get("ROUNDS", "20")
REGIONS = os.environ.get("REGIONS", "50")
CLIENTS = os.environ.get("CLIENTS", "30 26").split()
SEED = os.environ.get("SEED", str(random.randrange(1 << 31)))
TABLE = "slow_scan"


def read(report, client, zk, log):
    with open(log, "ab") as stderr:
        with subprocess.Popen([str(rorqual.JAVA), "class", client, "rorqual.tests.client26.SlowScan", TABLE, str(MB * 1000), ROUNDS,
                               SEED], stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, "ZK": zk}, text=True) as process:
            ended = False
            for line in process.stdout:
                ended = ended or re.fullmatch(r"\d+ passed, \d+ failed\n", line) is not None
                if line.startswith(("PASS ", "FAIL ")):
                    report.line(f"{line[:5]}{client}/{line[5:].rstrip()}")
    if not ended:
        report.outcome(f"{client}/ends", " | ".join(log.read_text(errors="replace").splitlines()[-40:]))


def main():
    report = rorqual.Report()
    print(f"seed {SEED}", flush=True)
    rorqual.build_java()
    with tempfile.TemporaryDirectory(prefix="rorqual-slow-scan-") as name:
        folder = pathlib.Path(name)
        server = rorqual.Server(folder / "data", folder / "server.log", "-D", "rorqual.memory=512m")
        subprocess.run([rorqual.BINARY, "bench", "--zk", server.zk, "--table", TABLE, "--keep", "--records", str(MB * 1000), "--regions",
                        REGIONS, "--value-bytes", "1000", "--operations", "1", "--quiet", "get"], check=True,
                       stdout=subprocess.DEVNULL)
        for client in CLIENTS:
            read(report, client, server.zk, folder / f"client{client}.log")
        report.outcome("stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
