# SPDX-License-Identifier: Apache-2.0
"""Settings of a run from the environment, and information about the machine."""
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from servers import BUILD, ECHO_HOST, cpu_seconds, echo_in_front, free_port, peer  # noqa: F401, E402  pylint: disable=wrong-import-position,unused-import

BINARY = os.environ.get("RORQUAL", str(BUILD / "rorqual"))
OUT = pathlib.Path(os.environ.get("OUT") or ROOT / "docs")
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = float(os.environ.get("SECONDS", "5"))
WARM_SECONDS = float(os.environ.get("WARM_SECONDS", "60"))
RECORDS = int(os.environ.get("RECORDS", "100000"))
SCAN_RECORDS = int(os.environ.get("SCAN_RECORDS", "1000000"))
CELLS_MAX = int(float(os.environ.get("CELLS_MAX", "1e7")))
MEMORY_CELLS = int(float(os.environ.get("MEMORY_CELLS", "3e6")))
IDLE = int(os.environ.get("IDLE", "9984"))
HEAP = os.environ.get("HEAP", "4g")  # for HBase's heap and Rorqual's memory budget, so that both have equal caches
WITH_HBASE = os.environ.get("HBASE", "1") != "0"
CLIENT_CORE, SERVER_CORE = 0, min(1, (os.cpu_count() or 1) - 1)


def pinned(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


def anonymous_bytes(pid):
    """Resident anonymous memory."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def settle(pid, deadline=300):
    """Waits until the process has been idle for a second: its flushes and compactions are done."""
    end = time.monotonic() + deadline
    before = cpu_seconds(pid)
    while time.monotonic() < end:
        time.sleep(1)
        now = cpu_seconds(pid)
        if now - before < 0.03:
            return
        before = now


def say(*words):
    print(*words, flush=True)
