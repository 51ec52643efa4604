# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: truncation of one region, bulk loads and reads of replicas, while servers are killed."""
import subprocess
import time

import hbase
from cluster_world import (RORQUAL, ROWS, all_rows_of, kill_and_wait, open_regions, others, put_rows, read_all, regions_of, restart)
from membership import DEADLINE, until

SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"
LOADED = 3000


def drop(world, table):
    world.shell(f"disable '{table}'\ndrop '{table}'\n")


def region_of(world, table, start):
    return next(name for name in open_regions(world, table) if name.startswith(f"{table},{start},"))


def count(world, table):
    return int(world.shell(f"count '{table}'\n").rsplit(" row(s)", 1)[0].split()[-1])


def a_region_is_truncated_alone(world):
    """The region's files and log edits are dropped, and other regions keep their rows. A row written afterwards survives
    the kill of a server."""
    world.shell(f"create 'tr', 'f', {SPLITS}\n")
    put_rows(world, "tr")
    world.shell("flush 'tr'\nput 'tr', 'c', 'f:q', 'ccc'\n")
    world.shell(f"truncate_region '{region_of(world, 'tr', 'c')}'\n")
    rest = [row for row in ROWS if not "c" <= row < "g"]
    assert count(world, "tr") == len(rest)
    world.shell("put 'tr', 'd', 'f:q', 'again'\n")
    killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
    assert count(world, "tr") == len(rest) + 1 and "value=again" in world.shell("get 'tr', 'd'\n")
    restart(world, killed)
    drop(world, "tr")


def a_truncation_survives_its_master(world):
    """The master is killed during truncations, at three moments; the next one completes those that had begun. The truncated regions
    have exactly the rows put after their truncation, and other regions keep their rows."""
    world.shell(f"create 'tm', 'f', {SPLITS}\n")
    for delay in (0.05, 0.3, 0.8):
        put_rows(world, "tm")
        master = world.wait_for_master()
        script = world.folder / "truncate.rb"
        script.write_text("".join(f"truncate_region '{region_of(world, 'tm', key)}'\nput 'tm', '{key}', 'f:q', 'kept'\n" for key in "cgko"))
        with subprocess.Popen([RORQUAL, "shell", "-n", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as shell:
            time.sleep(delay)  # the kill may be at any step
            master.kill()
            out = shell.communicate(timeout=2 * DEADLINE)[0]
        until(lambda: world.master() not in (None, master), "another master")
        assert shell.returncode == 0, out
        after = {line.split()[0]: line.split("value=")[-1] for line in world.shell("scan 'tm'\n").splitlines() if "value=" in line}
        assert after == {**{row: row * 3 for row in ROWS if not "c" <= row < "s"}, **dict.fromkeys("cgko", "kept")}, after
        restart(world, master)
        world.shell("".join(f"deleteall 'tm', '{key}'\n" for key in "cgko"))
    drop(world, "tm")


def bulkload(world, table, *options):
    return [RORQUAL, "bulkload", "--zk", f"127.0.0.1:{world.keeper.port}", "--format", "tsv", "--fields", "HBASE_ROW_KEY,f:a", *options, table]


def rows_file(world, name, prefix):
    path = world.folder / name
    path.write_text("".join(f"{ROWS[i % len(ROWS)]}{prefix}{i:05d}\t{prefix}{i}\n" for i in range(LOADED)))
    return path


def bulk_loads_reach_regions_on_all_servers(world):
    world.shell(f"create 'bl', 'f', {SPLITS}\n")
    assert len(set(regions_of(world, "bl").values())) == 3, regions_of(world, "bl")
    done = subprocess.run([*bulkload(world, "bl"), rows_file(world, "bl.tsv", "x")], capture_output=True, text=True, timeout=DEADLINE,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert count(world, "bl") == LOADED
    world.shell("put 'bl', 'ax00000', 'f:a', 'put'\n")
    killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
    assert count(world, "bl") == LOADED and "value=put" in world.shell("get 'bl', 'ax00000'\n")
    world.shell("major_compact 'bl'\n")
    assert count(world, "bl") == LOADED
    restart(world, killed)
    drop(world, "bl")


def a_bulk_load_goes_on_when_a_server_is_killed(world):
    """Several loads, with a server killed among them. A failed load is repeated, as a user would do, and then no row is missing."""
    world.shell(f"create 'bk', 'f', {SPLITS}\n")
    master = world.wait_for_master()
    victim = others(world, master)[0]
    commands = []
    for i in range(4):
        path = rows_file(world, f"bk{i}.tsv", f"y{i}")
        commands.append([*bulkload(world, "bk", "--progress", str(world.folder / f"progress{i}")), str(path)])
        (world.folder / f"progress{i}").mkdir()
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]
    time.sleep(0.3)  # the kill may be during any of the loads
    kill_and_wait(world, victim)
    for command, process in zip(commands, running):
        out = process.communicate(timeout=4 * DEADLINE)[0]
        if process.returncode != 0:
            print(f"  repeated: {out.strip().splitlines()[-1]}")
            again = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE, check=False)
            assert again.returncode == 0, out + again.stdout + again.stderr
    assert count(world, "bk") == 4 * LOADED
    restart(world, victim)
    drop(world, "bk")


def moved(world, command, *arguments):
    return [RORQUAL, command, "--zk", f"127.0.0.1:{world.keeper.port}", "--format", "tsv", "--fields", "HBASE_ROW_KEY,f:a", *map(str, arguments)]


def ends_although_killed(command, begun, victim):
    """Kills the process when the command has begun; a command that fails is repeated, as its user would do, and then ends well."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        until(lambda: begun() or process.poll() is not None, "the command has begun")
        victim.kill()
        out = process.communicate(timeout=4 * DEADLINE)[0]
    if process.returncode != 0:
        print(f"  repeated: {out.strip().splitlines()[-1]}")
        again = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE, check=False)
        assert again.returncode == 0, out + again.stdout + again.stderr


def imports_and_exports_go_on_when_servers_are_killed(world):
    """A server is killed during an import, and the master during an export; no row is missing, none is twice in the export."""
    world.shell(f"create 'ie', 'f', {SPLITS}\n")
    lines = sorted(f"{ROWS[i % len(ROWS)]}{i:05d}\t{'v' * 100}{i}\n" for i in range(LOADED))
    path, progress, folder = world.folder / "ie.tsv", world.folder / "ie-progress", world.folder / "ie-out"
    path.write_text("".join(lines))
    progress.mkdir()
    server = others(world, world.wait_for_master())[0]
    ends_although_killed(moved(world, "import", "--rate", "200K", "--progress", progress, "ie", path), lambda: count(world, "ie") > 0, server)
    assert count(world, "ie") == LOADED
    restart(world, server)
    master = world.wait_for_master()
    ends_although_killed(moved(world, "export", "--rate", "200K", "ie", folder), lambda: any(folder.glob("*part-*")), master)
    assert sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines(keepends=True)) == lines
    until(lambda: world.master() not in (None, master), "another master")
    restart(world, master)
    drop(world, "ie")


def replicas_are_read_from_the_regions_server(world):
    world.shell(f"create 'rr', 'f', {{REGION_REPLICATION => 2, {SPLITS}}}\n")
    put_rows(world, "rr")
    read = "".join(f"get 'rr', '{row}', {{CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}}\n" for row in "ahmz")
    out = world.shell(read)
    assert all(f"value={row * 3}" in out for row in "ahmz"), out
    killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
    out = world.shell(read)
    assert all(f"value={row * 3}" in out for row in "ahmz"), out
    all_rows_of(world, "rr")
    homes = world.shell("scan 'hbase:meta', {COLUMNS => ['info:server', 'info:server_0001']}\n").splitlines()
    mine = [line.split() for line in homes if line.strip().startswith("rr,")]
    first = {line[0]: line[-1] for line in mine if line[1] == "column=info:server,"}
    second = {line[0]: line[-1] for line in mine if line[1] == "column=info:server_0001,"}
    assert len(first) == 7 and first == second, homes
    restart(world, killed)
    read_all(world)
    drop(world, "rr")


def answers(world, process, method, message=b""):
    connection = hbase.Connection(f"127.0.0.1:{process.ports[0]}", "AdminService")
    try:
        return connection.call(method, message)
    finally:
        connection.close()


def servers_tell_their_regions(world):
    """GetOnlineRegion and GetRegionLoad: HBase's MapReduce jobs ask each server for its regions of a table. Each region is on
    one server, with its replica, also while a server has ended."""
    world.shell(f"create 'ad', 'f', {{REGION_REPLICATION => 2, {SPLITS}}}\n")
    put_rows(world, "ad")
    killed = None
    for _ in range(2):
        places = until(lambda: (lambda r: r if len(r) == 7 and (killed is None or killed.ports[0] not in r.values()) else None)(open_regions(world, "ad")),
                       "all regions are open")
        for process in (p for p in world.processes if p is not killed):
            loads = answers(world, process, "GetRegionLoad", hbase.text(1, hbase.table_name("ad"))).get(1, [])
            names = [hbase.fields(hbase.fields(load)[1][0])[2][0].decode() for load in loads]
            mine = [name for name, port in places.items() if port == process.ports[0]]
            assert sorted(n for n in names if n in places) == sorted(mine) and len(names) == 2 * len(mine), (names, mine)
            online = answers(world, process, "GetOnlineRegion").get(1, [])
            assert len([r for r in online if b"\x12\x02ad" in r]) == 2 * len(mine), online
        killed = killed or kill_and_wait(world, others(world, world.wait_for_master())[0])
    restart(world, killed)
    drop(world, "ad")


TESTS = [a_region_is_truncated_alone, a_truncation_survives_its_master, bulk_loads_reach_regions_on_all_servers,
         a_bulk_load_goes_on_when_a_server_is_killed, replicas_are_read_from_the_regions_server,
         imports_and_exports_go_on_when_servers_are_killed, servers_tell_their_regions]
