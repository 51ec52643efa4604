#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/operate/container.md, in order, by podman on the image that `make image` made. `make package-test`;
needs root.

The test runs in a network namespace of its own, so the page's ports are free, and podman has a store of its own. Podman's
defaults need a service manager and one hierarchy of control groups; where they are missing, the test takes the first of
WAYS by which a container runs, prints it, and fails with podman's messages if there is none.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import rorqual  # pylint: disable=wrong-import-position

PAGE = ROOT / "docs/operate/container.md"
BLOCK = re.compile(r"(?:<!-- test: (?P<kind>\w+) -->\n)?```sh\n(?P<text>.*?)```\n", re.S)
# Options of podman, and of podman run.
WAYS = [("", ""), ("", "--no-healthcheck"),
        ("--cgroup-manager cgroupfs --runtime runc", "--no-healthcheck --ulimit nofile=4096:4096 --ulimit nproc=1000:1000")]
DEADLINE = 300


class Machine:
    """A PATH on which podman has a store of its own and options that work here."""

    def __init__(self, folder):
        self.folder = folder
        self.podman = [shutil.which("podman"), "--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs",
                       "--events-backend", "file"]
        (folder / "bin").mkdir()
        self.way = None

    def script(self, way):
        general, of_run = way
        path = self.folder / "bin/podman"
        path.write_text(f"""#!/bin/sh
case "$1" in
run) shift; set -- run {of_run} "$@" ;;
esac
exec {' '.join(map(str, self.podman))} {general} "$@"
""")
        path.chmod(0o755)

    def shell(self, text):
        done = subprocess.run(["sh", "-e", "-c", text], cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE, check=False,
                              env={**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"})
        assert done.returncode == 0, f"code {done.returncode}: {done.stdout[-700:]}"
        return done.stdout

    def find_way(self):
        """The first way by which the image's binary prints its version."""
        archive, = (ROOT / "build-image").glob("rorqual-*.tar")
        version = archive.stem.removeprefix("rorqual-")
        self.script(WAYS[0])
        self.shell(f"podman load -i '{archive}'")
        problems = []
        for way in WAYS:
            self.script(way)
            try:
                out = self.shell(f"podman run --rm --entrypoint /usr/bin/rorqual rorqual:{version} version")
                assert f"rorqual {version}" in out, out
                print(f"  podman run{' with ' + ' '.join(way).strip() if any(way) else ''}")
                return
            except AssertionError as e:
                problems.append(f"{' '.join(way).strip() or 'defaults'}: {e}")
        raise AssertionError("no container runs here: " + " || ".join(problems))

    def close(self):
        subprocess.run([*self.podman, "rm", "-f", "-a"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def client(verb):
    """A client outside the container, through the published ports."""
    done = subprocess.run([sys.executable, ROOT / "tests/package/run.py", verb, "0", "200"], capture_output=True, text=True,
                          timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr[-700:]


def wait_ready(machine):
    end = time.monotonic() + DEADLINE
    while "rorqual ready" not in machine.shell("podman logs rorqual"):
        assert time.monotonic() < end, "no ready line"
        time.sleep(0.1)


def attempt(report, name, do):
    try:
        do()
        return report.outcome(name)
    except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as failure:
        return report.outcome(name, str(failure).replace("\n", " | ")[-1500:])


def run_page(report, machine):
    blocks = list(BLOCK.finditer(PAGE.read_text()))
    untested = [b["text"] for b in blocks if b["kind"] != "container"]
    report.outcome("container: every block names this test", untested[0] if untested else None)
    for i, block in enumerate(blocks):
        attempt(report, f"container: block {i + 1}", lambda text=block["text"]: machine.shell(text))
        if i == 0:
            attempt(report, "container: is ready", lambda: wait_ready(machine))
            attempt(report, "container: clients reach it by the published ports", lambda: (client("create"), client("check")))


def main():
    report = rorqual.Report()
    if shutil.which("podman") is None:
        rorqual.fail_hard("no podman: tools/setup package")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-container-"))
    machine = Machine(folder)
    try:
        if attempt(report, "container: the image is loaded and runs", machine.find_way):
            run_page(report, machine)
    finally:
        machine.close()
        shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if "RORQUAL_NAMESPACE" in os.environ:
    sys.exit(main())
os.environ["RORQUAL_NAMESPACE"] = "1"
os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
