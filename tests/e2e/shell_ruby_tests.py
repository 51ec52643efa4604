#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HBase's own Ruby tests of its shell, unmodified, run in our shell.

    shell_ruby_tests.py DIR [FILE…]   DIR: hbase-shell/src/test/ruby of HBase's source; a server with quotas for each file

Prints a line for each test and the counts of each file. Not part of the test stages: docs/shell.md has the result, and why tests
fail. Tests that call methods of HBase's Ruby classes or of Java cannot pass.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from rorqual import BINARY, ROOT, Server

HARNESS = ROOT / "tests/e2e/shell/ruby_tests.rb"


def run(source, folder):
    server = Server(folder / source.stem, folder / f"{source.stem}.log", "-D", "hbase.quota.enabled=true", "--http", "127.0.0.1:0")
    script = folder / f"{source.stem}.rb"
    script.write_text(f"load '{HARNESS}'\nbegin\n  load '{source}'\nrescue StandardError, ScriptError => e\n"
                      "  puts \"LOAD #{e.class}: #{e.message}\"\nend\nRubyTests.run\nexit\n")
    try:
        done = subprocess.run([BINARY, "shell", "-n", "-y", "--zk", server.zk, str(script)], capture_output=True, text=True,
                              errors="backslashreplace", timeout=300, check=False, stdin=subprocess.DEVNULL)
        return done.stdout
    except subprocess.TimeoutExpired as e:
        return (e.stdout or b"").decode(errors="backslashreplace") + "\nLOAD timeout\n"
    finally:
        server.kill()


def main():
    base = pathlib.Path(sys.argv[1])
    files = [pathlib.Path(f) for f in sys.argv[2:]] or sorted(base.glob("*/*.rb"))
    total = 0
    for source in files:
        with tempfile.TemporaryDirectory(prefix="rorqual-ruby-") as name:
            out = run(source, pathlib.Path(name))
        wanted = len(re.findall(r"(?m)^\s*define_test\b", source.read_text()))
        tests = re.findall(r"(?m)^TEST (pass|fail)\t(.*)\t(.*)\t(.*)$", out)
        for state, group, test, why in tests:
            print(f"  {state} {group}: {test}{': ' + why if why else ''}")
        for line in re.findall(r"(?m)^LOAD .*$", out) + ([out[-400:]] if not tests else []):
            print(f"  {line}")
        passed = sum(t[0] == "pass" for t in tests)
        total += passed
        print(f"{source.relative_to(base)}: {passed} of {wanted} pass", flush=True)
    print(f"{total} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
