#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that are not HBase's own: gohbase (plain, and with snappy cell blocks), asynchbase, npm's
hbase-rpc-client, OpenTSDB.

    others.py                  starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port others.py     tests a running server; PEER=hbase skips snappy, which a real
                               HBase without Hadoop's native library does not support

ONLY_OTHER=opentsdb (a list) selects clients. gohbase needs Go (Debian: golang-go) and, once, the Go module proxy;
hbase-rpc-client Node and npm, and once the npm registry. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from opentsdb import opentsdb
from rorqual import BINARY, JAVA, ROOT, Report, Server, build_java, fail_hard, java

GO = ROOT / "tests/go"
NODE = ROOT / "tests/node"


def gohbase(report, zk, folder):
    if not shutil.which("go"):
        print("SKIP gohbase: there is no go on the PATH (Debian's package is golang-go)", flush=True)
        return
    binary = folder / "gohbase"
    built = subprocess.run(["go", "build", "-o", str(binary), "."], cwd=GO, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        report.outcome("gohbase/builds", built.stdout.strip()[-500:])
        return
    for snappy in ("", "1") if os.environ.get("PEER") != "hbase" else ("",):
        ran = subprocess.run([str(binary)], stdout=subprocess.PIPE, text=True, check=False, timeout=600,
                             env={**os.environ, "ZK": zk, "SNAPPY": snappy})
        for line in ran.stdout.splitlines():
            if line.startswith(("PASS", "FAIL")):
                report.line(line.replace("gohbase/", "gohbase with snappy/") if snappy else line)
        if ran.returncode not in (0, 1):
            report.outcome("gohbase/ends", f"code {ran.returncode}")


def table_tool(report, client, zk, folder, *arguments):
    """HBase's client creates and drops tables for clients that cannot."""
    with open(folder / "tool.log", "ab") as log:
        ran = subprocess.run([str(JAVA), "class", "26", "rorqual.tests.client26.TableTool", *arguments],
                             env={**os.environ, "ZK": zk}, stderr=log, check=False)
    report.outcome(f"{client}/{arguments[0]} table", f"code {ran.returncode}" if ran.returncode else None)


def asynchbase(report, zk, folder):
    run = f"o{random.randrange(10**6):06}"
    table_tool(report, "asynchbase", zk, folder, "create", f"async_{run}", "f,g", "row0300,row0700")
    java(report, "asynchbase", "write", zk, run, folder / "asynchbase.log")
    table_tool(report, "asynchbase", zk, folder, "drop", f"async_{run}")


def node_packages(folder):
    """Installs the packages of tests/node in a folder, from npm's cache if possible. Returns the folder, or the error."""
    if not shutil.which("npm"):
        return None, "there is no npm on the PATH (Debian's packages are nodejs and npm)"
    place = folder / "node"
    shutil.copytree(NODE, place, ignore=shutil.ignore_patterns("node_modules"))
    ran = subprocess.run(["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund"], cwd=place, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return (place, None) if ran.returncode == 0 else (None, ran.stdout.strip()[-300:])


def node(report, zk, folder):
    place, problem = node_packages(folder)
    if problem:
        print(f"SKIP hbase-rpc-client: {problem}", flush=True)
        return
    table = f"node_{random.randrange(10**6):06}"
    table_tool(report, "hbase-rpc-client", zk, folder, "create", table, "f,g", "row0300,row0700")
    ran = subprocess.run(["node", "main.js"], cwd=place, stdout=subprocess.PIPE, text=True, check=False, timeout=300,
                         env={**os.environ, "ZK": zk, "TABLE": table})
    for line in ran.stdout.splitlines():
        if line.startswith(("PASS", "FAIL")):
            report.line(line)
    if ran.returncode not in (0, 1):
        report.outcome("hbase-rpc-client/ends", f"code {ran.returncode}")
    table_tool(report, "hbase-rpc-client", zk, folder, "drop", table)


def main():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-others-") as name:
        folder = pathlib.Path(name)
        build_java()
        server = None
        zk = os.environ.get("ZK")
        if not zk:
            if not os.path.exists(BINARY):
                fail_hard(f"no server at {BINARY}")
            server = Server(folder / "data", folder / "server.log")
            zk = server.zk

        def restart():
            """Kills a server started here and starts it again on other ports; leaves an external one alone."""
            nonlocal server
            if not server:
                return zk
            report.outcome("server/kill -9", server.kill())
            server = Server(folder / "data", folder / "server.log")
            return server.zk

        only = os.environ.get("ONLY_OTHER", "gohbase,asynchbase,node,opentsdb").split(",")
        if "gohbase" in only:
            gohbase(report, zk, folder)
        if "asynchbase" in only:
            asynchbase(report, zk, folder)
        if "node" in only:
            node(report, zk, folder)
        if "opentsdb" in only:
            opentsdb(report, zk, folder, restart)
        if server:
            report.outcome("server/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
