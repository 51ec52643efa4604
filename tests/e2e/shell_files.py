# SPDX-License-Identifier: Apache-2.0
"""Files written by the prompt's commands of `rorqual shell` are complete, or are not changed. own_shell.py runs the
tests."""
import os
import re
import resource
import stat
import subprocess
import threading

from rorqual import BINARY, Server
from shell_world import DEADLINE, shell
from shell_terminal import Terminal

ROWS = "create 't', 'f'\nRows.mutate_all('t', 2, (0...2000).map { |i| format('r%05d', i) }, [['f', 'q', nil, 4, 'v' * 100]], '')\n"


def files_of(folder):
    return sorted(p.name for p in folder.iterdir())


def fresh(folder, name):
    made = folder / name
    made.mkdir()
    return made


def exports_are_whole(folder):
    """The file gets its name when it is complete, and keeps the mode of the replaced file; the target of a link is replaced,
    not the link."""
    place = fresh(folder, "whole")
    old, link, new = place / "old.csv", place / "link.csv", place / "new.tsv"
    old.write_text("old\n")
    old.chmod(0o640)
    link.symlink_to(old)
    out = shell("memory:", text=ROWS + f"\\export {link}\nscan 't'\n\\export {new}\n\\export {new}\nget 't', 'r00007'\nget 't', 'r00008'\n").stdout
    lines = old.read_text().splitlines()
    if len(lines) != 2001 or lines[1] != f"r00000,f:q,{lines[1].split(',')[2]},{'v' * 100}" or "2000 row(s) in" not in out:
        return f"{lines[:2]} {out[-500:]}"
    if not link.is_symlink() or stat.S_IMODE(old.stat().st_mode) != 0o640 or files_of(place) != ["link.csv", "new.tsv", "old.csv"]:
        return f"{files_of(place)} {old.stat()}"
    if "timestamp=" not in out.rpartition("r00008")[2]:  # after the export results are in HBase's form again
        return out[-500:]
    return None if new.read_text().startswith("row\tcolumn") else new.read_text()[:80]


def exports_that_fail_leave_the_file(folder):
    """A missing folder, a name that is a folder, a limit on file sizes, a missing table."""
    place = fresh(folder, "fails")
    old = place / "old.csv"
    old.write_text("old\n")
    (place / "folder.csv").mkdir()
    for path, why in ((place / "none/x.csv", "No such file or directory"), (place / "folder.csv", "Is a directory")):
        out = shell("memory:", text=f"\\export {path}\nputs 'next'\n").stdout
        if f"ERROR: {path} cannot be written: {why}\n" not in out or "\nnext\n" not in out:
            return out
    server = Server(folder / "limited", folder / "limited.log")
    done = subprocess.run([BINARY, "shell", "--zk", server.zk], input=ROWS + f"\\export {old}\nscan 't'\nputs 'next'\n", text=True,
                          stdout=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)), timeout=DEADLINE,
                          check=False)
    server.kill()
    if f"ERROR: {old} cannot be written: File too large\n" not in done.stdout or "\nnext\n" not in done.stdout:
        return f"{done}"
    out = shell("memory:", text=f"\\export {old}\nscan 'none'\nputs 'next'\n").stdout
    if "ERROR: Unknown table none!" not in out or "\nnext\n" not in out:
        return out
    return None if old.read_text() == "old\n" and files_of(place) == ["folder.csv", "old.csv"] else f"{files_of(place)}"


def exports_on_a_full_disk(folder):
    """Runs on a tmpfs of 64 KB."""
    disk = fresh(folder, "disk")
    script = (f'mount -t tmpfs -o size=64k tmpfs {disk} && echo old >{disk}/old.csv && "{BINARY}" shell memory: && cat {disk}/old.csv && ls -A {disk}')
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], input=ROWS + f"\\export {disk}/old.csv\nscan 't'\nputs 'next'\n", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, check=False)
    if "Operation not permitted" in done.stderr or "permission denied" in done.stderr.lower():
        print("skipped: no tmpfs may be mounted here")
        return None
    wanted = f"ERROR: {disk}/old.csv cannot be written: No space left on device\n"
    return None if wanted in done.stdout and "\nnext\n" in done.stdout and done.stdout.endswith("\nold\nold.csv\n") else f"{done}"


def exports_that_are_interrupted(folder):
    """Ctrl-C in the middle leaves the file unchanged."""
    place = fresh(folder, "interrupted")
    old = place / "old.csv"
    old.write_text("old\n")
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, BINARY, "shell", "memory:")
    try:
        if not terminal.shows("hbase:001:0>"):
            return "no prompt"
        terminal.type("create 't', 'f'; 3.times { |i| put 't', \"r#{i}\", 'f:q', 'v' }; Shell.need('prompt'); class Prompt::Draft; def write(t) @file.write(t); puts 'writes'; sleep 3600; end; end",
                      "Enter")
        if not terminal.shows("hbase:002:0>"):
            return terminal.screen()
        terminal.type(f"\\export {old}", "Enter")
        terminal.type("scan 't'", "Enter")
        if not terminal.shows(re.compile("(?m)^writes$")):
            return terminal.screen()
        during = files_of(place)
        terminal.type("C-c")
        if not terminal.shows("hbase:004:0>"):
            return terminal.screen()
        terminal.type("puts 'no' + ' draft'", "Enter")
        terminal.shows("no draft")
        return None if len(during) == 2 and old.read_text() == "old\n" and files_of(place) == ["old.csv"] else f"{during} {files_of(place)}"
    finally:
        terminal.close()


def exports_into_a_pipe(folder):
    """No temporary file is used: the pipe's reader gets the rows."""
    pipe = folder / "pipe.json"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    out = shell("memory:", text=ROWS + f"\\export {pipe}\nscan 't'\n").stdout
    reader.join(DEADLINE)
    return None if got and got[0].count("\n") == 2000 else f"{got[:1]} {out[-300:]}"


TESTS = (exports_are_whole, exports_that_fail_leave_the_file, exports_on_a_full_disk, exports_that_are_interrupted, exports_into_a_pipe)
