# SPDX-License-Identifier: Apache-2.0
"""The test of the harness: all parts on a Rorqual with data larger than its memory, for a few seconds; a run that is stopped in the
middle; the parsers of the kernel's files. Exit code 77 (skipped): no memory cgroup can be made here."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cgroup
import results

SMALL = {"SCALE": "1", "SHAPES": "120000x1000", "MEMORY": "80M", "OPERATIONS": "300", "BATCH": "10", "QUIET": "0.3", "WARM": "0", "PEERS": "rorqual", "CONNECTIONS": "2", "DEPTH": "4",
         "REGIONS": "4", "OVERWRITE_ROUNDS": "3", "GROWTH": "1000,4000", "PARTS": "sorted bulk load get multi scan ycsb overwrite growth"}
PATIENCE = 100
WORKLOADS = ["sorted", "make", "bulk", "load", "get", "get/2", "zipf", "multi", "short", "long", "A", "A/2", "B", "B/2", "C", "D", "E", "F", "F/2",
             "overwrite"]


def check_parsers():
    own = cgroup.own_groups("4:memory:/a/b\n1:name=systemd:/c\n0::/d\n2:cpu,cpuacct:/e\n")
    assert own == {"memory": "/a/b", "systemd": "/c", "": "/d", "cpu": "/e", "cpuacct": "/e"}, own
    mounted = cgroup.mounts("cgroup /g/memory cgroup rw,relatime,memory 0 0\ncgroup2 /g/unified cgroup2 rw 0 0\n/dev/vda / ext4 rw 0 0\n")
    assert mounted == {"memory": "/g/memory", "": "/g/unified"}, mounted
    for version in (cgroup.Version1, cgroup.Version2):
        try:
            version({}, {})
        except cgroup.Unavailable:
            continue
        raise AssertionError(f"{version.name} without a mount")


def check_version2():
    """Uses files as the kernel makes them: tests the choice of the parent, and the values read from the child."""
    with tempfile.TemporaryDirectory(prefix="rorqual-large-test-") as name:
        mount = pathlib.Path(name)
        own = mount / "slice/scope"
        own.mkdir(parents=True)
        for folder, enabled in ((mount, "memory io"), (mount / "slice", "memory io"), (own, "")):
            (folder / "cgroup.controllers").write_text("memory io pids\n")
            (folder / "cgroup.subtree_control").write_text(enabled + "\n")
        # As a cgroup with processes refuses: no controller can be enabled for its children.
        (own / "cgroup.subtree_control").unlink()
        (own / "cgroup.subtree_control").mkdir()
        kind = cgroup.Version2({"": name}, {"": "/slice/scope"})
        assert kind.parent == mount / "slice", kind.parent
        [child] = folders = kind.make("x", 123, None)
        assert (child / "memory.max").read_text() == "123"
        (child / "io.stat").write_text("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n254:0 rbytes=4096 wbytes=0 rios=7 wios=0 dbytes=0 dios=0\n")
        (child / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        (child / "memory.peak").write_text("99\n")
        assert (kind.reads(folders, "254:0"), kind.reads(folders, "1:1"), kind.kills(folders), kind.peak(folders)) == ((7, 4096), (0, 0), 2, 99)
        (child / "io.stat").unlink()
        assert kind.reads(folders, "254:0") is None


def left_behind(folder, pid):
    """Processes that name the folder, cgroups of the run with that pid, and files in the folder."""
    found = os.listdir(folder)
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if folder.encode() in (process / "cmdline").read_bytes():
                found.append(f"process {process.name}")
        except OSError:
            continue
    groups = {g for where in set(cgroup.mounts(pathlib.Path("/proc/mounts").read_text()).values())
              for g in pathlib.Path(where).rglob(f"{cgroup.PREFIX}{pid}-*")}
    return found + [str(g) for g in groups]


def check_figures(tables, growth, failed, on_disk):
    assert not failed, failed
    [table] = tables
    assert [name for name, _ in table.found] == WORKLOADS, list(table.found)
    for (name, _), f in table.found.items():
        assert f["ops"] > 0 and f["rate"] > 0 and f["cpu_s"] >= 0, (name, f)
        assert "p50" not in f or 0 < f["p50"] <= f["p99"] <= f["p99.9"], (name, f)
    for name in ("sorted", "load", "overwrite"):
        assert table.found[name, "Rorqual"]["space"] > 0.9, table.found[name, "Rorqual"]
    assert table.found["long", "Rorqual"]["ops"] >= table.rows, table.found["long", "Rorqual"]
    assert [rows for rows, _, _ in growth["Rorqual"]] == [1000, 4000], growth
    if on_disk:
        get = table.found["get", "Rorqual"]
        assert get["read_bytes"] > get["ops"] * 1000, get  # true if the data is larger than memory
        load = table.found["load", "Rorqual"]
        assert load["written"] > load["ops"] * 1000, load


def check_goals():
    """Checks that the figures decide whether a goal is met."""
    table = results.Shape(10, 1000)
    for database, rate, reads in (("Rorqual", 300.0, 10), ("HBase", 101.0, 20)):
        table.found["get", database] = {"ops": 10, "rate": rate, "reads": reads, "p99": 1.0}
    verdicts = {what: holds for what, _, _, holds in table.goals()}
    assert verdicts == {"uniform gets: HBase's rate": False, "uniform gets: device reads a get": True}, verdicts


def client_of(pid):
    """Whether the run has a child that measures gets."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(pathlib.Path(f"/proc/{child}/cmdline").read_bytes().endswith(b"\0get\0") for child in children)
    except OSError:  # the process has ended
        return False


def check_stopped(folder):
    """SIGTERM during the wait for a client that would not end by itself: tests the exit code, and that nothing
    remains."""
    env = {**os.environ, **SMALL, "TMPDIR": folder, "FOLDER": folder, "OPERATIONS": "1000000000", "PARTS": "load get"}
    with subprocess.Popen([str(pathlib.Path(__file__).with_name("run"))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as run:
        patience = threading.Timer(PATIENCE, run.kill)
        patience.start()
        seen = any("load, hashed" in line for line in run.stdout)
        while not client_of(run.pid) and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        run.stdout.read()
        errors, code = run.stderr.read(), run.wait()
        patience.cancel()
    assert seen and code == 128 + signal.SIGTERM, (seen, code, errors)
    assert not left_behind(folder, run.pid), left_behind(folder, run.pid)


def main(measure, checked):
    check_parsers()
    check_version2()
    check_goals()
    with tempfile.TemporaryDirectory(prefix="rorqual-large-test-") as folder:
        os.environ.update(SMALL, FOLDER=folder)
        try:
            config, kind = checked()
        except cgroup.Unavailable as why:
            print(f"skipped: {why}", file=sys.stderr)
            return 77
        assert not config.is_whole
        lines, growth, failed, tables = measure(config, kind)
        print("\n".join(lines))
        check_figures(tables, growth, failed, cgroup.device_of(folder) is not None)
        check_stopped(folder)
        assert not left_behind(folder, os.getpid()), left_behind(folder, os.getpid())
    print("passed")
    return 0
