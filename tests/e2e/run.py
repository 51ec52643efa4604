#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Java programs against a server, with a kill -9 and a clean restart between writing and checking.

    run.py                     starts build/rorqual (or RORQUAL) on a temporary folder, and removes it at the end
    ZK=host:port run.py        tests a running server, such as a real HBase: writes and checks, restarts nothing
    PROGRAMS='Blog Weibo.*'    only these programs (regular expressions)
    PEER=hbase                 the server is a real HBase: skips checks of guarantees that HBase does not give
    KEEP=1                     keeps the temporary folder, and prints its name

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading

from rorqual import BINARY, Report, Server, build_java, fail_hard, java

PROGRAMS = os.environ.get("PROGRAMS", "").split()


def phase(report, name, zk, run, logs):
    """Runs both clients at the same time; they use different tables."""
    print(f"-- {name}", flush=True)
    clients = [threading.Thread(target=java, args=(report, client, name, zk, run, logs / f"client{client}.log", PROGRAMS))
               for client in ("26", "12")]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def running_server(report, run, logs):
    for name in ("write", "check", "drop"):
        phase(report, name, os.environ["ZK"], run, logs)


def own_server(report, run, folder):
    data, log = folder / "data", folder / "server.log"
    server = Server(data, log)
    try:
        phase(report, "write", server.zk, run, folder)
        # Unflushed edits are only in the log: the next start replays them.
        report.outcome("server/alive until kill -9", server.kill())
        server = Server(data, log)
        report.outcome("server/starts after kill -9")
        phase(report, "check", server.zk, run, folder)
        report.outcome("server/stops cleanly on SIGTERM", server.stop())
        server = Server(data, log)
        report.outcome("server/starts after a clean stop")
        phase(report, "check", server.zk, run, folder)
        # Nothing was written since, so after a second kill all data is in files; none may be lost.
        report.outcome("server/alive until the second kill -9", server.kill())
        server = Server(data, log)
        phase(report, "drop", server.zk, run, folder)
        report.outcome("server/stops cleanly at the end", server.stop())
    finally:
        if server.process.poll() is None:
            server.kill()


def main():
    report = Report()
    run = f"e{random.randrange(10**6):06}"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-e2e-"))
    try:
        build_java()
        if "ZK" in os.environ:
            running_server(report, run, folder)
        elif not os.path.exists(BINARY):
            fail_hard(f"no server at {BINARY}")
        else:
            own_server(report, run, folder)
    except RuntimeError as problem:
        report.outcome("driver", str(problem))
    finally:
        if "KEEP" in os.environ:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
