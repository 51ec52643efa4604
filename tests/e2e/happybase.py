#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rorqual.happybase and real HappyBase: make happybase.

  HappyBase's own tests, as published, with the import changed: in memory, on a folder, on a server
  the calls of bindings/python/tests/happybase_calls.py: real HappyBase through the Thrift server of a real HBase has the
  results in happybase_calls.json, and rorqual.happybase on that HBase has the same results
  the binding's own tests and examples on that HBase

--record writes happybase_calls.json. Needs the network once, for HappyBase. Ends with 'N passed, N failed'.
"""
import json
import pathlib
import re
import sys
import tempfile

from python import PYTHON, SOURCES, pytest, unpacked
from rorqual import ROOT, Report, Server

sys.path.insert(0, str(ROOT / "tests/peers"))
from peer import HBase, orderly  # noqa: E402  (its folder is not a package)
from thrift import Thrift, environment, own_tests, run  # noqa: E402

CALLS = SOURCES / "tests/happybase_calls.py"
RECORDED = SOURCES / "tests/happybase_calls.json"
# Errors for which the Thrift server has no response.
NAMED_HERE = {"create bad name", "put empty row", "row empty key", "rows empty key", "scan bad filter"}


def published_tests(report, interpreter, tests, site, name, host):
    done = run(interpreter, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", tests, site=site, HAPPYBASE_HOST=host)
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\S+)", done.stdout, re.M)
    for outcome, test in found:
        report.outcome(f"happybase/{name}/{test}", None if outcome == "PASSED" else outcome)
    if done.returncode != 0 or not found:
        print(done.stdout[-5000:], flush=True)
        report.outcome(f"happybase/{name}/ends with 0", str(done.returncode))


def calls(interpreter, site, module, host, port):
    done = run(interpreter, CALLS, module, host, port, site=site)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-3000:])
    return json.loads(done.stdout)


def compare(report, name, expected, found, exempt=()):
    for call, outcome in expected.items():
        if call not in exempt:
            report.outcome(f"happybase/{name}/{call}", None if found.get(call) == outcome else f"{found.get(call)} instead of {outcome}")


def main():
    orderly()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-happybase-") as name:
        folder = pathlib.Path(name)
        site = unpacked(folder)
        interpreter = environment(folder, PYTHON)
        tests = own_tests(folder, interpreter)
        published_tests(report, interpreter, tests, site, "memory", "memory:")
        published_tests(report, interpreter, tests, site, "folder", f"file:{folder}/data")
        server = Server(folder / "server", folder / "server.log")
        published_tests(report, interpreter, tests, site, "server", f"hbase://{server.zk}")
        report.outcome("happybase/server stops cleanly", server.stop())
        with HBase(folder / "hbase") as hbase, Thrift(hbase) as thrift:
            real = calls(interpreter, site, "happybase", "127.0.0.1", thrift.port)
            if "--record" in sys.argv:
                lines = (f"{json.dumps(call)}: {json.dumps(outcome)}" for call, outcome in real.items())
                RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
            compare(report, "real", json.loads(RECORDED.read_text()), real)
            ours = calls(interpreter, site, "rorqual.happybase", f"hbase://{hbase.zk}", 1)
            compare(report, "ours on HBase", real, ours, NAMED_HERE)
            pytest(report, site, "HBase", f"--rorqual=hbase://{hbase.zk}", "test_table.py", "test_aio.py", "test_rowkey.py", "test_examples.py")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
