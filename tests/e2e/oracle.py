#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle: a real HBase 2.6.1 and a Rorqual run the same random histories, and all results are compared.

    oracle.py                                  SEEDS=100 histories of OPS=2000 operations each, from FIRST_SEED=1
    FIRST_SEED=57 SEEDS=1 oracle.py            repeats one of them
    HBASE=host:port RORQUAL_ZK=host:port       on running servers (their ZooKeepers)
    HBASE_DIR=folder                           and the folder from which tests/peers/hbase.sh started HBase
    LIMIT=10                                   seconds after which an operation counts as hanging and is examined
    TIMES=1                                    prints the duration of each part of the run
    SHRINK=60                                  seconds for shrinking a history with a difference; 0: none
    DIFFERENCES=3                              number of differences reported per seed
    SECONDS=60                                 no further seed begins after this time
    JOBS=3                                     concurrent histories
    DIVIDE=1                                   every 150th operation splits a region or merges two
    FIRST_SEED=57 REPLAY=3,15,40               runs only these operations of a seed, and shows both results
                                               (STACKS=1: with the stacks of exceptions)

Prints 'PASS seed N', or 'FAIL seed N' with the seed, its table, the shrunken history, and both results
with a mark at each line that differs. tests/java/oracle/README.md describes the comparison; known differences are in known.tsv there.
Some scans of HBase do not end: they are reported, counted and interrupted, and an HBase that is disturbed by them is restarted.
Ends with 'N passed, N failed'.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from rorqual import BINARY, JAVA, ROOT, Server, build_java, fail_hard

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import SCRIPT, HBase, orderly  # noqa: E402  (its folder is not a package)

# Only the history starts compactions; buffers per region would use memory without benefit.
LEASE = 4000
NEVER = "1000000000"
SETTINGS = {"hbase.client.scanner.timeout.period": str(LEASE), "hbase.server.thread.wakefrequency": "100",
            "hbase.hregion.majorcompaction": "0", "hbase.hregion.memstore.mslab.enabled": "false",
            "hbase.regionserver.optionalcacheflushinterval": "0", "hbase.hfile.compaction.discharger.interval": "100",
            "hbase.regionserver.compaction.check.period": NEVER,
            # HBase must not end because the machine is busy for a minute.
            "zookeeper.session.timeout": "900000", "hbase.zookeeper.property.maxSessionTimeout": "900000"}


def start_hbase(folder):
    """HBase, its address, and the commands by which the harness stops hanging reads or restarts HBase."""
    hbase = HBase(folder, SETTINGS)
    hbase.start()
    restart = f"kill -9 $(cat '{folder}/pid'); rm -f '{folder}/pid'; exec '{SCRIPT}' start '{folder}'"
    return hbase, {**hbase.ports, **break_off(folder), "RESTART": restart}


def break_off(folder):
    """A command that interrupts HBase's endless reads and writes their stacks to a file next to HBase's log."""
    agent = ROOT / "tests/java/oracle/target/breaker.jar"
    return {"BREAK": f"exec jcmd $(cat '{folder}/pid') JVMTI.agent_load '{agent}' '{folder}/endless'"}


def ask(commands, hbase, rorqual, log):
    """Runs the harness and prints its lines; returns its counts."""
    summary = "0 passed, 1 failed"
    with open(log, "wb") as stderr, \
            subprocess.Popen([str(JAVA), "oracle"], stdout=subprocess.PIPE, stderr=stderr, text=True,
                             env={**os.environ, **commands, "HBASE": hbase, "RORQUAL": rorqual,
                                  "LEASE": os.environ.get("LEASE", str(LEASE + 500))}) as java:
        try:
            for line in java.stdout:
                if re.match(r"\d+ passed, \d+ failed$", line):
                    summary = line.strip()
                else:
                    print(line, end="", flush=True)
        except BaseException:
            java.kill()
            raise
    return summary


def main():
    orderly()
    if "RORQUAL_ZK" not in os.environ and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-oracle-"))
    server = own = None
    summary = "0 passed, 1 failed"
    try:
        hbase = os.environ.get("HBASE")
        commands = break_off(os.environ["HBASE_DIR"]) if "HBASE_DIR" in os.environ else {}
        if not hbase:
            own, commands = start_hbase(folder / "hbase")
            hbase = own.zk
        rorqual = os.environ.get("RORQUAL_ZK")
        if rorqual is None:
            server = Server(folder / "data", folder / "server.log",
                            "-D", f"hbase.regionserver.compaction.check.period={NEVER}")
            rorqual = server.zk
        summary = ask(commands, hbase, rorqual, folder / "java.log")
        if server:
            problem = server.stop()
            if problem:
                print(f"FAIL server: {problem}", flush=True)
                passed, failed = re.findall(r"\d+", summary)
                summary = f"{passed} passed, {int(failed) + 1} failed"
    except (RuntimeError, subprocess.CalledProcessError) as problem:
        print(f"FAIL driver: {problem}", flush=True)
    finally:
        if server and server.process.poll() is None:
            server.kill()
        if own:
            own.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(summary, flush=True)
    return 0 if re.match(r"[1-9]\d* passed, 0 failed", summary) else 1


if __name__ == "__main__":
    sys.exit(main())
