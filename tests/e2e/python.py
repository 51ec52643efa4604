#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python binding: its wheel, built from build/ and unpacked, its types, and its tests in memory and on a server (on a real
HBase: happybase.py). Ends with 'N passed, N failed'.

PYTHON is the interpreter (default: Debian's, whose packages tools/setup installs). Arguments go to pytest.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from rorqual import BINARY, ROOT, Report

DEADLINE = 3600  # seconds; only for a command that hangs
SOURCES = ROOT / "bindings/python"
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3" if shutil.which("/usr/bin/python3") else sys.executable)


def run(command, **options):
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=DEADLINE, **options)


def needed(wheel):
    """The shared libraries that the wheel needs from the system: only those that every glibc system has."""
    names = set()
    for library in sorted(wheel.rglob("*.so*")):
        names |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", library]).stdout))
    own = {library.name for library in (wheel / "rorqual/lib").iterdir()}
    return {name for name in names - own if not re.match(r"(libc|libm|libpthread|libdl|libgcc_s|libstdc\+\+|ld-linux.*)\.so", name)}


def pytest(report, site, name, *arguments):
    """Counts each pytest test as one test."""
    done = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "--no-header", *arguments], cwd=SOURCES / "tests",
               env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "RORQUAL": str(BINARY)})
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (.*)$", done.stdout, re.M)
    for outcome, test in found:
        report.outcome(f"python/{name}/{test[:150]}", None if outcome == "PASSED" else outcome)
    if done.returncode != 0 or not found:
        print(done.stdout[-6000:], flush=True)
        report.outcome(f"python/{name}/pytest ends with 0", f"{done.returncode}")


def unpacked(folder, build=ROOT / "build"):
    """Builds the wheel and unpacks it; returns the folder to be put on Python's path."""
    site = pathlib.Path(folder, "site")
    built = run([SOURCES / "build", build, folder, PYTHON])
    if built.returncode:
        raise RuntimeError(f"no wheel: {built.stdout[-2000:]}")
    with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
        wheel.extractall(site)
    return site


def main():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-python-") as folder:
        try:
            site = unpacked(folder)
        except RuntimeError as failed:
            report.outcome("python/the wheel is built", str(failed))
        else:
            report.outcome("python/the wheel needs no library", ", ".join(needed(site)) or None)
            typed = run([PYTHON, "-m", "mypy", "--strict", "--python-version", "3.9", "--cache-dir", f"{folder}/mypy", "-p", "rorqual"],
                        cwd=site)
            report.outcome("python/types", typed.stdout[-2000:] if typed.returncode else None)
            pytest(report, site, "memory", *sys.argv[1:])
            pytest(report, site, "server", "--rorqual=server", "test_table.py", "test_aio.py", "test_rowkey.py", *sys.argv[1:])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
