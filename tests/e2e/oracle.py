#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle: a real HBase 2.6.1 and a Rorqual get the same random histories, and every answer is compared.

    oracle.py                                  SEEDS=100 histories of OPS=2000 operations each, from FIRST_SEED=1
    FIRST_SEED=57 SEEDS=1 oracle.py            one of them again
    HBASE=host:port RORQUAL_ZK=host:port       on servers that run already (their ZooKeepers)
    SHRINK=60                                  seconds spent on making a difference small; 0: none
    DIFFERENCES=3                              how many of one seed are reported
    SECONDS=60                                 no further seed begins after these
    JOBS=3                                     histories at a time
    DIVIDE=1                                   every 150th operation splits a region or merges two
    FIRST_SEED=57 REPLAY=3,15,40               runs these operations of a seed alone, and shows what both answer
                                               (STACKS=1: and the stacks of exceptions)

Prints 'PASS seed N', or 'FAIL seed N' with the seed, its table, the shrunken history, and both answers with a mark at each
line that differs. What is compared and how is in tests/java/oracle/README.md. Ends with 'N passed, N failed'.
"""
import atexit
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from rorqual import BINARY, JAVA, ROOT, Server, build_java, fail_hard

HBASE = ROOT / "tests/peers/hbase.sh"
# Nothing is compacted unless the history says so; buffers per region are not worth their memory here.
LEASE = 4000
NEVER = "1000000000"
SETTINGS = {"hbase.client.scanner.timeout.period": str(LEASE), "hbase.server.thread.wakefrequency": "100",
            "hbase.hregion.majorcompaction": "0", "hbase.hregion.memstore.mslab.enabled": "false",
            "hbase.regionserver.optionalcacheflushinterval": "0", "hbase.hfile.compaction.discharger.interval": "100",
            "hbase.regionserver.compaction.check.period": NEVER}


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_hbase(folder):
    # The web pages' ports are those of the servers and ten.
    zk, master, region = free_ports(3)
    extra = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in SETTINGS.items())
    env = {**os.environ, "ZK_PORT": str(zk), "MASTER_PORT": str(master), "RS_PORT": str(region), "EXTRA": extra}
    atexit.register(subprocess.run, [str(HBASE), "stop", str(folder)], env=env, check=False)
    subprocess.run([str(HBASE), "start", str(folder)], env=env, check=True)
    return f"127.0.0.1:{zk}"


def main():
    if "RORQUAL_ZK" not in os.environ and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-oracle-"))
    server = None
    summary = "0 passed, 1 failed"
    try:
        hbase = os.environ.get("HBASE") or start_hbase(folder / "hbase")
        rorqual = os.environ.get("RORQUAL_ZK")
        if rorqual is None:
            server = Server(folder / "data", folder / "server.log",
                            "-D", f"hbase.regionserver.compaction.check.period={NEVER}")
            rorqual = server.zk
        with open(folder / "java.log", "wb") as log, \
                subprocess.Popen([str(JAVA), "oracle"], stdout=subprocess.PIPE, stderr=log, text=True,
                                 env={**os.environ, "HBASE": hbase, "RORQUAL": rorqual,
                                      "LEASE": os.environ.get("LEASE", str(LEASE + 500))}) as java:
            for line in java.stdout:
                if re.match(r"\d+ passed, \d+ failed$", line):
                    summary = line.strip()
                else:
                    print(line, end="", flush=True)
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
        if "HBASE" not in os.environ:
            subprocess.run([str(HBASE), "stop", str(folder / "hbase")], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(summary, flush=True)
    return 0 if re.match(r"[1-9]\d* passed, 0 failed", summary) else 1


if __name__ == "__main__":
    sys.exit(main())
