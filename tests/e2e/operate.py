#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator's pages: runs every block of docs/operate/*.md after '<!-- test: operate -->', page by page in order, on a
server with data. /var/lib/rorqual, /backup and the address of the HTTP port are replaced by the test's own; `systemctl` and
`rorqual` by scripts for the test's server and ports. promtool is the one on the PATH or in build-prometheus. Each block must exit
with 0, and rows written before must exist at the end of the page. A page with such a block may not have ```sh blocks without a
test.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import hbase
import rorqual

PAGES = rorqual.ROOT / "docs/operate"
BLOCK = re.compile(r"(?:<!-- test: (?P<kind>\w+) -->\n)?```sh\n(?P<text>.*?)```\n", re.S)
DEADLINE = 300

SYSTEMCTL = """#!/bin/sh
# The verbs of systemctl that the pages use, for the test's only service.
pid=$(cat "$STATE/pid" 2>/dev/null)
gone() { while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
case "$1" in
start)
    : > "$STATE/out" # before the server's shell does: an earlier start's line is no answer
    "$RORQUAL" server --data "$STATE/data" $PORTS > "$STATE/out" 2>> "$STATE/log" & echo $! > "$STATE/pid"
    until grep -q 'rorqual ready' "$STATE/out"; do
        kill -0 "$(cat "$STATE/pid")" || { cat "$STATE/log"; exit 1; }
        sleep 0.02
    done ;;
stop) kill "$pid" && gone ;;
kill) kill -9 "$pid" && gone ;;
reload) kill -HUP "$pid" ;;
*) echo "systemctl $1: not in the test" >&2; exit 1 ;;
esac
"""

RORQUAL = """#!/bin/sh
case "$1" in
ping|bench|status|tables|top|shell) command=$1; shift; exec "$RORQUAL" $command --zk "127.0.0.1:$ZK" "$@" ;;
*) exec "$RORQUAL" "$@" ;;
esac
"""


class Machine:
    """A folder that replaces an operator's machine, with a running server and a hundred rows."""

    def __init__(self, folder):
        self.folder = folder
        *self.ports, http = rorqual.free_ports(4)
        self.http = f"127.0.0.1:{http}"
        (folder / "bin").mkdir()
        (folder / "backup").mkdir()
        for name, script in (("systemctl", SYSTEMCTL), ("rorqual", RORQUAL)):
            path = folder / "bin" / name
            path.write_text(script)
            path.chmod(0o755)
        names = ("--zk-port", "--master-port", "--rs-port")
        self.environment = {
            **os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}:{rorqual.ROOT}/build-prometheus", "STATE": str(folder),
            "RORQUAL": str(pathlib.Path(rorqual.BINARY).resolve()), "ZK": str(self.ports[0]),
            "PORTS": " ".join(f"{n} {p}" for n, p in zip(names, self.ports)) + f" --http {self.http}"}
        self.shell("systemctl start rorqual")
        self.master, self.regionserver = (f"127.0.0.1:{p}" for p in self.ports[1:])
        client = hbase.Client(self)
        client.create("kept", {"f": {}})
        self.region = client.regions("kept")[0][1]
        client.data.put_many(self.region, [(b"%03d" % i, {(b"f", b"q"): b"v%d" % i}) for i in range(100)])
        client.close()

    def shell(self, text):
        text = text.replace("/var/lib/rorqual", str(self.folder / "data")).replace("/backup", str(self.folder / "backup"))
        text = text.replace("127.0.0.1:16010", self.http)
        done = subprocess.run(["sh", "-e", "-c", text], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE,
                              check=False)
        assert done.returncode == 0, f"code {done.returncode}: {done.stdout[-700:]}"

    def check_rows(self):
        client = hbase.Client(self)
        found = client.data.scan(self.region)
        client.close()
        assert len(found) == 100, f"{len(found)} of 100 rows are left"

    def stop(self):
        pid = self.folder / "pid"
        if pid.exists():
            subprocess.run(["kill", "-9", pid.read_text().strip()], stderr=subprocess.DEVNULL, check=False)


def run_page(report, page):
    blocks = [b for b in BLOCK.finditer(page.read_text())]
    if not any(b["kind"] == "operate" for b in blocks):
        return  # install.md and container.md are tested by tests/package
    untested = [b["text"] for b in blocks if b["kind"] is None]
    report.outcome(f"operate/{page.name}: every block names its test", untested[0] if untested else None)
    with tempfile.TemporaryDirectory() as name:
        machine = Machine(pathlib.Path(name))
        try:
            for i, block in enumerate(b for b in blocks if b["kind"] == "operate"):
                problem = None
                try:
                    machine.shell(block["text"])
                except (AssertionError, subprocess.TimeoutExpired) as e:
                    problem = str(e).replace("\n", " | ")
                report.outcome(f"operate/{page.name}, block {i + 1}: {block['text'].splitlines()[0]}", problem)
            machine.check_rows()
        except Exception as e:  # pylint: disable=broad-except
            report.outcome(f"operate/{page.name}: the rows at the end", repr(e)[:500])
        finally:
            machine.stop()


def main():
    report = rorqual.Report()
    for page in sorted(PAGES.glob("*.md")):
        if not sys.argv[1:] or page.stem in sys.argv[1:]:
            run_page(report, page)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
