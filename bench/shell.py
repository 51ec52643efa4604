#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `rorqual shell`, imports and exports with HBase's own shell and tools, both on one Rorqual server.

    make bench-shell, or bench/shell.py [PART…]     parts: start, puts, count, tsv, move; default: all
    RORQUAL=build-release/rorqual   the binary
    OFFICIAL=COMMAND           HBase's shell: COMMAND ZOOKEEPER ARGUMENTS…, such as "tests/peers/hbase.sh official"; without it, only ours is measured
    PUTS=10000 ROWS=10000000   sizes; five COLUMNS. PAIRS=1: number of measurements of puts and count, alternating between the shells

start   seconds from start to exit of `shell -n` with one get: the median of 21
puts    puts per second of a script, each acknowledged before the next, and microseconds of CPU per put, in the shell and in the
        server; the shell's start is not counted. First the device's own rate (bench/floors): a page is written to a file whose blocks exist, and synced,
        repeatedly. No server that syncs each put can be faster
count   rows per second of `count` with CACHE => 1000 and with its defaults, and microseconds of CPU per row
tsv     CPU seconds of `rorqual bulkload` of a CSV file, and of HBase's ImportTsv (a local job) and BulkLoadHFilesTool on the same
        fields; the server's CPU seconds separately
move    export, import and verify, each killed once in the middle and repeated. Then HBase's Import of our export and our import of
        HBase's Export, both verified
"""
import json
import os
import pathlib
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import transfer_world  # noqa: E402  pylint: disable=wrong-import-position
from rorqual import BINARY  # noqa: E402  pylint: disable=wrong-import-position

PUTS = int(os.environ.get("PUTS", "10000"))
ROWS = int(os.environ.get("ROWS", "10000000"))
PAIRS = int(os.environ.get("PAIRS", "1"))
FIELDS = "HBASE_ROW_KEY," + ",".join(f"cf:c{i}" for i in range(5))
REGIONS = [f"{i:010d}".encode() for i in range(ROWS // 4, ROWS, ROWS // 4)]
transfer_world.DEADLINE = 24 * 3600


def shells(zk):
    yield "ours", [BINARY, "shell", "--zk", zk]
    if "OFFICIAL" in os.environ:
        yield "official", [*shlex.split(os.environ["OFFICIAL"]), zk]


CPU = "def cpu() words = File.read('/proc/self/stat').split(')')[-1].split; words[11].to_i + words[12].to_i end\n"


def run_script(world, name, command, text, times):
    """Prints the cost per operation of a script with `times` operations, without the start of the shell."""
    path = world.path("script")
    path.write_text(f"{CPU}begun = Time.now; used = cpu\n{text}puts \"\\nseconds=#{{Time.now - begun}} ticks=#{{cpu - used}}\"\nexit\n")
    server = cpu_of(world.server.process.pid)
    out = subprocess.run([*command, "-n", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
    server = cpu_of(world.server.process.pid) - server
    seconds, ticks = re.search(r"(?m)^seconds=(\S+) ticks=(\d+)", out).groups()
    used = int(ticks) / os.sysconf("SC_CLK_TCK")
    print(f"{name}: {times / float(seconds):.0f} a second; CPU of each: the shell {used / times * 1e6:.2f} us, the server {server / times * 1e6:.2f} us",
          flush=True)


def cpu_of_children():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(world):
    table = world.table(splits=())
    world.import_lines(table, [b'{"row":"r","cells":[{"family":"cf","qualifier":"q","value":"v"}]}'], "--format", "json")
    for name, command in shells(world.server.zk):
        times = []
        for _ in range(21 if name == "ours" else 3):
            begun = time.monotonic()
            subprocess.run([*command, "-n"], input=f"get '{table}', 'r'\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True)
            times.append(time.monotonic() - begun)
        print(f"start {name}: {statistics.median(times) * 1000:.1f} ms", flush=True)


def device_floor(world):
    """Prints the number of writes of a page per second, each synced: by fdatasync, as the server does it, and by O_DIRECT with O_DSYNC."""
    # build/rorqual is a link to build/src/cli/rorqual.
    floors = next((f for f in (folder / "bench/floors" for folder in pathlib.Path(BINARY).resolve().parents) if f.exists()), None)
    if floors is None:
        print(f"no bench/floors in the build of {BINARY}: the device's rate is not measured", flush=True)
        return
    out = json.loads(subprocess.run([floors, world.folder, "4096", "3"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    for name in (name for name in ("sync", "direct_sync") if name in out):
        print(f"device, {name} of 4,096 bytes: {out[name]['per_s']:.0f} a second, p50 {out[name]['p50']:.0f} us", flush=True)


def puts(world):
    device_floor(world)
    for name, command in PAIRS * list(shells(world.server.zk)):
        table = world.table(splits=())
        text = f"{PUTS}.times {{ |i| put '{table}', \"row#{{i}}\", 'cf:q', \"value#{{i}}\" }}\n"
        run_script(world, f"puts {name}", command, text, PUTS)


def csv_of(world):
    path = world.folder / "rows.csv"
    if not path.exists():
        with open(path, "w", encoding="ascii") as file:
            for i in range(ROWS):
                file.write(f"{i:010d},first{i},second{i * 7919 % 104729},{i % 100},{i * 31},a longer value of the last column\n")
    return path


def bulk(world, table):
    world.run("bulkload", "--quiet", "--format", "csv", "--fields", FIELDS, "--output", world.bulk / table, table, csv_of(world))


def filled(world):
    if not hasattr(world, "loaded"):
        world.loaded = world.table(splits=REGIONS)
        bulk(world, world.loaded)
    return world.loaded


def count(world):
    table = filled(world)
    for options in ("INTERVAL => 1000000, CACHE => 1000", "INTERVAL => 1000000"):
        for name, command in PAIRS * list(shells(world.server.zk)):
            run_script(world, f"count {name}, {options}", command, f"count '{table}', {options}\n", ROWS)


def measured(world, name, work):
    begun, cpu, server = time.monotonic(), cpu_of_children(), cpu_of(world.server.process.pid)
    work()
    print(f"{name}: {cpu_of_children() - cpu:.1f} s of CPU, the server {cpu_of(world.server.process.pid) - server:.1f} s, "
          f"{time.monotonic() - begun:.1f} s in all", flush=True)


def tsv(world):
    path, ours, theirs, out = csv_of(world), world.table(splits=REGIONS), world.table(splits=REGIONS), world.bulk / "theirs"

    def hbase():
        world.java(transfer_world.MAPREDUCE + "ImportTsv", f"-Dimporttsv.columns={FIELDS}", "-Dimporttsv.separator=,",
                   f"-Dimporttsv.bulk.output=file://{out}", theirs, f"file://{path}")
        world.java("org.apache.hadoop.hbase.tool.BulkLoadHFilesTool", f"file://{out}", theirs)

    measured(world, "tsv ours", lambda: bulk(world, ours))
    measured(world, "tsv HBase", hbase)
    print(world.run("verify", "--ignore-timestamps", ours, theirs).strip())


def killed_and_repeated(world, *arguments):
    """Runs the command, kills it after one second per 5,000,000 ROWS unless it has ended, and repeats it."""
    command = [BINARY, arguments[0], "--zk", world.server.zk, "--quiet", *map(str, arguments[1:])]
    with subprocess.Popen(command) as process:
        try:
            process.wait(max(0.2, ROWS / 5000000))
        except subprocess.TimeoutExpired:
            process.kill()
            print(f"{arguments[0]} was killed", flush=True)
    if process.returncode != 0:
        measured(world, f"{arguments[0]} repeated", lambda: world.run(arguments[0], *arguments[1:]))


def move(world):
    table, folder, copy = filled(world), world.path("export"), world.table(splits=REGIONS)
    killed_and_repeated(world, "export", table, folder)
    killed_and_repeated(world, "import", copy, folder)
    print("verify:", world.run("verify", table, copy).strip(), flush=True)
    theirs, hbase = world.table(splits=REGIONS), world.path("hbase")
    measured(world, "HBase's Import", lambda: world.java(transfer_world.MAPREDUCE + "Import", theirs, f"file://{folder}"))
    print("verify:", world.run("verify", table, theirs).strip(), flush=True)
    measured(world, "HBase's Export", lambda: world.java(transfer_world.MAPREDUCE + "Export", table, f"file://{hbase}"))
    back = world.table(splits=REGIONS)
    measured(world, "our import of it", lambda: world.run("import", "--quiet", back, hbase))
    print("verify:", world.run("verify", table, back).strip(), flush=True)


PARTS = {"start": start, "puts": puts, "count": count, "tsv": tsv, "move": move}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    if not set(wanted) <= set(PARTS):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="rorqual-bench-shell-") as folder:
        world = transfer_world.World(pathlib.Path(folder).resolve())
        for part in wanted:
            PARTS[part](world)
        world.server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
