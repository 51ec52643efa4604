# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: snapshots of tables on several servers, and tables made from them."""
import subprocess
import time

from cluster_world import (ROWS, SHELL, all_rows_of, kill_and_wait, open_regions, others, put_rows, read_all, regions_of, restart)
from membership import DEADLINE, until

SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"


def drop(world, *tables):
    for table in tables:
        world.shell(f"disable '{table}'\ndrop '{table}'\n")


def snapshots_are_taken_cloned_and_restored(world):
    """A FLUSH snapshot has all puts, a SKIPFLUSH snapshot only flushed puts, and a snapshot of a disabled table all; regions are on
    three servers. The table is compacted and changed afterwards; its snapshots stay the same."""
    world.shell(f"create 'sn', 'f', {SPLITS}\n")
    put_rows(world, "sn")
    assert len(set(regions_of(world, "sn").values())) == 3, regions_of(world, "sn")
    world.shell("snapshot 'sn', 's-none', {SKIP_FLUSH => true}\nsnapshot 'sn', 's-flush'\nput 'sn', 'zz', 'f:q', 'zz'\n"
                "snapshot 'sn', 's-skip', {SKIP_FLUSH => true}\nflush 'sn'\nmajor_compact 'sn'\n")
    world.shell("disable 'sn'\nsnapshot 'sn', 's-off'\nenable 'sn'\nmajor_compact 'sn'\n")
    out = world.shell("list_snapshots\n")
    assert all(name in out for name in ("s-none", "s-flush", "s-skip", "s-off")), out
    world.shell("".join(f"clone_snapshot 's-{kind}', 'c-{kind}'\n" for kind in ("none", "flush", "skip", "off")))
    assert "0 row(s)" in world.shell("count 'c-none'\n")
    all_rows_of(world, "c-flush")
    all_rows_of(world, "c-skip")
    assert f"{len(ROWS) + 1} row(s)" in world.shell("count 'c-off'\n")
    assert len(set(regions_of(world, "c-flush").values())) == 3, regions_of(world, "c-flush")
    world.shell("deleteall 'sn', 'a'\nput 'sn', 'zzz', 'f:q', 'zzz'\ndisable 'sn'\nrestore_snapshot 's-flush'\nenable 'sn'\n")
    all_rows_of(world, "sn")
    world.shell("major_compact 'c-flush'\nput 'c-flush', 'a', 'f:q', 'other'\nsnapshot 'c-flush', 's-again'\nclone_snapshot 's-again', 'c-again'\n")
    assert "value=other" in world.shell("get 'c-again', 'a'\n")
    all_rows_of(world, "sn")
    drop(world, "sn", "c-again")
    all_rows_of(world, "c-skip")
    world.shell("clone_snapshot 's-flush', 'sn'\n")
    all_rows_of(world, "sn")
    world.shell("".join(f"delete_snapshot 's-{kind}'\n" for kind in ("none", "flush", "skip", "off", "again")))
    assert "s-flush" not in world.shell("list_snapshots\n")
    all_rows_of(world, "c-skip")
    drop(world, "sn", "c-none", "c-flush", "c-skip", "c-off")


def a_clone_outlives_a_server(world):
    """Regions of links are opened on another server, and read the original table's files."""
    world.shell(f"create 'so', 'f', {SPLITS}\n")
    put_rows(world, "so")
    world.shell("snapshot 'so', 'so-s'\nclone_snapshot 'so-s', 'so-c'\n")
    world.shell("".join(f"put 'so-c', '{row}', 'f:q', '{row * 3}'\n" for row in "ah"))
    drop(world, "so")
    killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
    all_rows_of(world, "so-c")
    world.shell("clone_snapshot 'so-s', 'so'\n")
    all_rows_of(world, "so")
    restart(world, killed)
    world.shell("delete_snapshot 'so-s'\n")
    drop(world, "so", "so-c")


def take_while_killed(world, table, name, pick):
    """Takes a snapshot while a process is killed: the snapshot is complete or does not exist. Returns the killed
    process."""
    script = world.folder / f"{name}.rb"
    script.write_text(f"snapshot '{table}', '{name}'\n")
    taker = subprocess.Popen([SHELL, "shell", "-n", "-Dhbase.client.retries.number=15", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killed = pick()
    killed.kill()
    said = taker.communicate(timeout=2 * DEADLINE)[0]
    until(lambda: world.master() not in (None, killed), "a master has opened meta")
    until(lambda: len(open_regions(world, table)) == 7 and killed.ports[0] not in open_regions(world, table).values(), "its regions are open")
    there = name in world.shell("list_snapshots\n")
    assert there or taker.returncode != 0, said
    print(f"  {name}: {'taken' if there else said.strip().splitlines()[-1][:100]}")
    return killed, there


def use(world, table, name, there):
    """A snapshot that exists is complete; if it does not exist, one of that name can be taken."""
    if not there:
        world.shell(f"snapshot '{table}', '{name}'\n")
    world.shell(f"clone_snapshot '{name}', '{name}-c'\n")
    all_rows_of(world, f"{name}-c")
    world.shell(f"delete_snapshot '{name}'\n")
    drop(world, f"{name}-c")


def a_snapshot_is_whole_or_not_there(world):
    world.shell(f"create 'sw', 'f', {SPLITS}\n")
    for i, pick in enumerate((lambda: others(world, world.wait_for_master())[0], world.wait_for_master)):
        put_rows(world, "sw")
        killed, there = take_while_killed(world, "sw", f"sw-{i}", pick)
        use(world, "sw", f"sw-{i}", there)
        all_rows_of(world, "sw")
        restart(world, killed)
    read_all(world)
    drop(world, "sw")


def clones_and_restores_end_although_servers_are_killed(world):
    """A server, and then the master, is killed at some step of a clone and a restore: both end, and both tables have the snapshot's rows."""
    world.shell(f"create 'cl', 'f', {SPLITS}\n")
    put_rows(world, "cl")
    world.shell("snapshot 'cl', 'cl-s'\n")
    for i, pick in enumerate((lambda: others(world, world.wait_for_master())[0], world.wait_for_master)):
        world.shell("put 'cl', 'zz', 'f:q', 'zz'\n")
        script = world.folder / f"clone-{i}.rb"
        script.write_text(f"clone_snapshot 'cl-s', 'cl-{i}'\ndisable 'cl'\nrestore_snapshot 'cl-s'\nenable 'cl'\n")
        victim = pick()
        with subprocess.Popen([SHELL, "shell", "-n", "-Dhbase.client.retries.number=15", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as shell:
            time.sleep(0.2)  # the kill may be at any step
            victim.kill()
            said = shell.communicate(timeout=2 * DEADLINE)[0]
        assert shell.returncode == 0, said
        until(lambda: world.master() not in (None, victim), "a master has opened meta")
        all_rows_of(world, f"cl-{i}")
        all_rows_of(world, "cl")
        restart(world, victim)
    world.shell("delete_snapshot 'cl-s'\n")
    drop(world, "cl", "cl-0", "cl-1")


TESTS = [snapshots_are_taken_cloned_and_restored, a_clone_outlives_a_server, a_snapshot_is_whole_or_not_there,
         clones_and_restores_end_although_servers_are_killed]
