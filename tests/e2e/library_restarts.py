#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librorqual's calls while a real HBase is restarted (tests/unit/api/restarted.c): no call may fail, and increments are made once.

HBase is alternately stopped and killed. There are two runs, by ZooKeeper and by the master's RPC; the second run swaps stops and
kills, so that each call is tested with both. A restart of HBase takes 10 to 30 s, the whole test about 15 minutes.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import ROOT, Report

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)

PROGRAM = ROOT / "build/tests/unit/api/test_restarted"
RUN_S = 5400  # only for a hanging run: on a busy machine a restart takes minutes
# Hadoop's local file system with checksums keeps up to 511 bytes in the process after hflush: so a killed HBase would
# lose acknowledged writes, unlike a distributed one.
SETTINGS = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}


def restart(hbase, kills, number):
    """Restarts HBase and prints the durations: on a busy machine a restart takes minutes, and a run without output looks as
    if it hangs."""
    begun = time.monotonic()
    if kills:
        hbase.kill()
    else:
        hbase.stop()
    ended = time.monotonic()
    hbase.start(stdout=subprocess.DEVNULL)
    print(f"restart {number}: {'kill' if kills else 'stop'} {ended - begun:.0f} s, start {time.monotonic() - ended:.0f} s", flush=True)


def run(report, hbase, url, kills):
    name, restarts, output, begun = url.split(":")[0], 0, "", time.monotonic()
    with subprocess.Popen([PROGRAM, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        guard = threading.Timer(RUN_S, process.kill)
        guard.start()
        for line in process.stdout:
            if line != "kill\n":
                output += line
                continue
            kills, restarts = not kills, restarts + 1
            restart(hbase, not kills, restarts)
            with contextlib.suppress(BrokenPipeError):  # the program has ended: its output has the reason
                os.write(process.stdin.fileno(), b"go on\n")
        code = process.wait()
        guard.cancel()
    problem = None if code == 0 and restarts > 0 else f"ended with {code} after {restarts} restarts\n{output[-4000:]}"
    report.outcome(f"library/HBase restarted, {name}: {restarts} times in {time.monotonic() - begun:.0f} s", problem)


def main():
    orderly()
    report = Report()
    env = {**os.environ, "BRIEF": "1"}
    with tempfile.TemporaryDirectory() as folder, HBase(pathlib.Path(folder, "hbase"), SETTINGS, env) as hbase:
        run(report, hbase, f"hbase://{hbase.zk}", kills=False)
        run(report, hbase, f"hbase+rpc://127.0.0.1:{hbase.ports['MASTER_PORT']}", kills=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
