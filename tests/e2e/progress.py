#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Progress bars of `rorqual backup`, `restore` and `fsck` on a terminal: when they appear, that they grow, fit into 80 columns and
are erased at the end; the progress line and the table of `bench`; and the terminal capture in docs/operate/backup.md, which is the
same for backup and restore.

    progress.py           runs the tests
    progress.py --write   renews the capture

A bar appears after a second. The command's clock runs faster (libfaketime), so that the test needs no gigabytes. The output to the
terminal is recorded; tmux shows the record up to a certain bar. The capture has a fixed percentage and time.
"""
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile

from rorqual import BINARY, ROOT, Report, Server, read_terminal
from shell_terminal import Terminal

PAGE = ROOT / "docs/operate/backup.md"
FAKETIME = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
SPEED = 100_000  # the coarse clock has steps of milliseconds, each of which is minutes for the command
FASTER = {**os.environ, "TERM": "xterm", "LD_PRELOAD": str(FAKETIME), "FAKETIME": f"+0 x{SPEED}"}
BAR = re.compile(rb"\r(\w[^\r\[]*) \[(#*)( *)\] +(\d+) %, (\d+) (s|min|h) left ((?:\x1b\[K)?)")
SHOWN = re.compile(r"\[#* *\] +\d+ %, \d+ \w+ left")


class World:
    """A stopped folder with 100 MB in a store file."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "data"
        server = Server(self.data, folder / "log")
        subprocess.run([BINARY, "bench", "--zk", server.zk, "--records", "100000", "--value-bytes", "1000", "--keep", "--quiet",
                        "--operations", "1", "get"], check=True, stdout=subprocess.DEVNULL)
        problem = server.stop()
        assert problem is None, problem

    def record(self, *arguments):
        """The output of the command on its terminal, and its exit code."""
        master, slave = pty.openpty()
        with subprocess.Popen([BINARY, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, cwd=self.folder,
                              env=FASTER) as process:
            os.close(slave)
            written = read_terminal(master)
        return written, process.returncode

    def screen(self, written):
        """The screen of a terminal that has received these bytes."""
        path = self.folder / "written"
        path.write_bytes(written)
        terminal = Terminal({}, "sh", "-c", f"cat '{path}'; printf '\\033[20;1Hshown\\033[H'; exec sleep 1000", lines=24)
        try:
            assert terminal.shows("shown"), terminal.screen()
            return "\n".join(line.rstrip() for line in terminal.screen().splitlines() if line and line != "shown")
        finally:
            terminal.close()


def check_bars(written, *names):
    bars = list(BAR.finditer(written))
    assert {b[1].decode() for b in bars} == set(names), (names, written[-500:])
    for name in names:
        shares = [int(b[4]) for b in bars if b[1].decode() == name]
        assert shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 100, shares
    for b in bars:
        assert len(b[2]) + len(b[3]) == 40 and abs(len(b[2]) - int(b[4]) * 0.4) <= 1, b[0]
        assert len(b[0]) < 80, b[0]
        assert b[7], "the end of a longer bar stays"
    return bars


def backup_copies_with_a_bar(world):
    written, code = world.record("backup", "--copy", "data", "copied")
    assert code == 0, written
    bars = check_bars(written, "copying", "checking")
    assert len(bars) > 3 and b"\rmaking durable " in written, written[-500:]
    last = world.screen(written)
    assert re.fullmatch(r"copied: backed up \d+ files, [\d.]+ MB", last), last
    return world.screen(written[:bars[1].end()])


def restore_copies_with_a_bar(world):
    written, code = world.record("restore", "--copy", "copied", "restored")
    assert code == 0, written
    bars = check_bars(written, "copying", "checking") if b"\rchecking [" in written else check_bars(written, "copying")
    last = world.screen(written)
    assert re.fullmatch(r"restored: restored \d+ files, [\d.]+ MB", last), last
    return world.screen(written[:bars[1].end()])


def fsck_has_a_bar(world):
    written, code = world.record("fsck", "--blocks", "copied")
    assert code == 0, written
    check_bars(written, "copied")
    assert "left" not in world.screen(written)


def bench_fits_eighty_columns(world):
    server = Server(world.folder / "measured", world.folder / "log")
    master, slave = pty.openpty()
    with subprocess.Popen([BINARY, "bench", "--zk", server.zk, "--records", "1000", "--seconds", "4", "--interval", "0.1", "ycsb-f"],
                          stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        shown = read_terminal(master)
        table = process.stdout.read().decode()
    problem = server.stop()
    assert process.returncode == 0 and problem is None, (process.returncode, problem)
    lines = [line.removesuffix(b"\x1b[K") for line in shown.split(b"\r") if line.strip()]
    progress = [line for line in lines if b"/s  ms: p50 " in line]
    assert len(progress) > 3 and all(len(line) < 80 and b"\n" not in line for line in progress), lines
    assert "p99.99" in table and {"all", "get", "read-modify-write"} <= {line.split()[0] for line in table.splitlines()}, table
    assert all(len(line) < 80 for line in table.splitlines() if line.startswith("  ")), table


def quiet_writes_nothing(world):
    written, code = world.record("backup", "--quiet", "--copy", "data", "quiet")
    assert code == 0 and written == b"", written


def without_a_terminal_are_lines(world):
    done = subprocess.run([BINARY, "restore", "--copy", world.folder / "copied", world.folder / "piped"], capture_output=True, check=False, env=FASTER)
    assert done.returncode == 0 and b"\r" not in done.stderr and b"\x1b" not in done.stderr, done
    assert re.match(rb"copying [\d.]+ MB\n(copying: \d+ %\n)+making durable\n", done.stderr), done.stderr


def masked(text):
    return SHOWN.sub(f"[{'#' * 17}{' ' * 23}]  42 %, 50 s left", text)


CAPTURE = re.compile(r"(<!-- capture bar: tests/e2e/progress.py -->\n```\n)(.*?)(\n```\n)", re.S)


def compare(got):
    found = CAPTURE.search(PAGE.read_text())
    assert found, "docs/operate/backup.md has no capture"
    assert found[2] == masked(got), f"docs/operate/backup.md has\n{found[2]}\nthe terminal shows\n{masked(got)}"


def write(got):
    page, count = CAPTURE.subn(lambda m: m[1] + masked(got) + m[3], PAGE.read_text())
    print(f"{count} written")
    PAGE.write_text(page)


TESTS = [backup_copies_with_a_bar, restore_copies_with_a_bar, fsck_has_a_bar, bench_fits_eighty_columns, quiet_writes_nothing,
         without_a_terminal_are_lines]


def main():
    assert FAKETIME, "no libfaketime: tools/setup test"
    keep = write if "--write" in sys.argv else compare
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-progress-") as name:
        world = World(pathlib.Path(name))
        for test in TESTS:
            problem = None
            try:
                seen = test(world)
                if seen is not None:
                    keep(seen)
            except Exception as e:  # pylint: disable=broad-except
                problem = f"{type(e).__name__}: {e}"
            report.outcome(f"progress/{test.__name__}", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
