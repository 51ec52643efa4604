#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared storage (vfs/shared.h) on a real Ceph (tools/ceph): results compared with the simulated storage, refused pools, revoked writers
that run or are stopped, an OSD that is killed and restarted meanwhile, storage that does not respond; files in its CephFS.

    ceph.py                  ROUNDS=n rounds of each kind of writer (default 3; 3334 for 10,000 fences), KILLS=n OSDs killed (default 3),
                             SEEDS=n random histories (default 30), STOPPED_SECONDS=n: writers stay stopped for up to n seconds
    BUILD=FOLDER             folder of the programs (default build)

Ends with 'N passed, N failed'; with 77 and the reason where Ceph's packages or the plug-in are missing.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from rorqual import ROOT, Report

BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROGRAM, FILES_PROGRAM = BUILD / "tests/cluster/test_rados", BUILD / "tests/cluster/test_cephfs"
PLUGIN = BUILD / "src/vfs/rorqual-rados.so"
CEPH = ROOT / "tools/ceph"
ROUNDS = os.environ.get("ROUNDS", "3")
KILLS = int(os.environ.get("KILLS", "3"))
SEEDS = os.environ.get("SEEDS", "30")


def ceph(*words):
    done = subprocess.run([CEPH, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"tools/ceph {words[0]} ended with {done.returncode}: {done.stderr.strip()}")


def admin(folder, *words):
    done = subprocess.run(["ceph", "-c", f"{folder}/ceph.conf", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ceph {' '.join(words)}: {done.stderr.strip()}")


def start(folder, tests, program=PROGRAM, **environment):
    """Starts the C tests that match `tests`."""
    return subprocess.Popen([program, tests], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=os.environ | {"RQ_CEPH": str(folder), "RQ_RADOS_PLUGIN": str(PLUGIN)} | environment)


def end(process):
    """Waits for the end; returns the problem, or None."""
    out, _ = process.communicate()
    if process.returncode == 0 and "[  PASSED  ] 0 test(s)" not in out:
        return None
    return f"ended with {process.returncode}\n{out[-3000:]}"


def run(folder, tests, program=PROGRAM, **environment):
    return end(start(folder, tests, program, **environment))


def in_memory(report, folder):
    ceph("up", str(folder))
    ceph("up", str(folder))  # no effect if Ceph runs
    admin(folder, "osd", "pool", "create", "single", "1", "1", "replicated", "--size", "2")
    admin(folder, "osd", "pool", "set", "single", "min_size", "1")
    admin(folder, "osd", "pool", "create", "coded", "1", "1", "erasure")
    report.outcome("ceph/pools and plug-ins that are refused", run(folder, "a_*refused"))
    report.outcome("ceph/answers as the simulated storage", run(folder, "it_answers*", RQ_SEEDS=SEEDS))
    report.outcome("ceph/sets of many keys", run(folder, "a_set*"))
    report.outcome("ceph/long objects", run(folder, "long*"))
    report.outcome("ceph/an idle tenure", run(folder, "an_idle*"))
    report.outcome("ceph/writers are revoked", run(folder, "*writer*", ROUNDS=ROUNDS))
    report.outcome("ceph/several processes swap", run(folder, "swaps*"))
    report.outcome("ceph/storage that stands still", run(folder, "*without_answer*", STALL="1"))
    ceph("status", str(folder))
    ceph("down", str(folder))
    report.outcome("ceph/down ends what up has started", left(folder))


def left(folder):
    done = subprocess.run([CEPH, "status", str(folder)], capture_output=True, text=True, check=False)
    return None if done.returncode == 1 and " pid " not in done.stdout else done.stdout


def on_files(report, folder):
    """OSDs are killed and started again while writers are revoked."""
    ceph("up", str(folder), "--bluestore")
    writers = None
    killed, problem = 0, None
    while killed < KILLS and problem is None:
        if writers is None or writers.poll() is not None:
            problem = end(writers) if writers is not None else None
            writers = start(folder, "*writer*", ROUNDS=ROUNDS)
        ceph("kill", str(folder), f"osd.{killed % 3}")
        ceph("up", str(folder))
        killed += 1
    problem = (end(writers) if writers is not None else None) or problem
    report.outcome("ceph/writers are revoked while OSDs are killed", problem)


def in_cephfs(report, folder):
    ceph("up", str(folder), "--cephfs")
    report.outcome("ceph/files in CephFS", run(folder, "*", FILES_PROGRAM))


def missing():
    absent = [tool for tool in ("ceph-mon", "ceph-osd", "ceph") if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found: tools/setup cluster installs Ceph"
    for built in (PROGRAM, FILES_PROGRAM, PLUGIN):
        if not built.exists():
            return f"{built} is not built: it needs librados-dev and libcephfs-dev (tools/setup cluster)"
    return None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    absent = missing()
    if absent:
        print(f"skipped: {absent}")
        return 77
    report = Report()
    for part in (in_memory, on_files, in_cephfs):
        with tempfile.TemporaryDirectory(prefix="rq-ceph-") as folder:
            cluster = pathlib.Path(folder) / "c"
            try:
                part(report, cluster)
            except Exception as e:  # pylint: disable=broad-except
                report.outcome(f"ceph/{part.__name__}", repr(e))
            finally:
                if (cluster / "settings.json").exists():
                    ceph("down", str(cluster))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
