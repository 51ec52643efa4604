#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drivers that are ended by a signal must stop their servers (tests/peers/peer.py).

    endings.py    starts each driver, signals it when its HBase runs, and looks for remaining processes

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import ROOT, Report, build_java

# A driver, the line after which it uses HBase, and the signal. The benchmark's next step starts another JVM.
DRIVERS = {
    "oracle": (["tests/e2e/oracle.py"], "PASS seed", signal.SIGTERM, {"OPS": "20", "SEEDS": "100000", "FIRST_SEED": "1"}),
    "bench": (["bench/run"], "echo: ready", signal.SIGINT, {"BUILD": str(ROOT / "build")}),
}
GRACE = 60  # seconds
PATIENCE = 1200  # only for hanging drivers; HBase's start alone takes a minute on a busy machine


def left_behind(folder):
    """The command lines of processes that name the folder."""
    lines = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in line:
            lines.append(f"{process.name}: {line[:100]}")
    return lines


def run(name, folder):
    """The problem with the driver's end, or None."""
    command, ready, number, settings = DRIVERS[name]
    with subprocess.Popen([str(ROOT / command[0]), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, **settings, "TMPDIR": folder}) as driver:
        patience = threading.Timer(PATIENCE, driver.kill)
        patience.start()
        seen = any(ready in line for line in driver.stdout)
        running = left_behind(folder)
        driver.send_signal(number)
        driver.stdout.read()
        code = driver.wait()
        patience.cancel()
    if not seen or not running:
        return f"it did not come to its work; {running}"
    end = time.monotonic() + GRACE
    while (left := left_behind(folder)) and time.monotonic() < end:
        time.sleep(0.05)  # a killed process of many threads is still listed for a moment
    for line in left:
        os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    if left:
        return "left behind: " + "; ".join(left)
    if code != 128 + number:
        return f"ended with {code} instead of {128 + number}"
    return f"files left: {os.listdir(folder)}" if os.listdir(folder) else None


def main():
    build_java()
    report = Report()
    for name in DRIVERS:
        with tempfile.TemporaryDirectory(prefix="rorqual-endings-") as folder:
            report.outcome(f"endings/{name}", run(name, folder))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
