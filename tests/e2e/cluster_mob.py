# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: MOB tables on several servers. The cleaner of MOB files runs every second and spares no young files."""
import contextlib
import os
import subprocess
import time

from cluster_world import SHELL, all_rows_of, kill_and_wait, open_regions, others, put_rows, regions_of, restart
from membership import DEADLINE, until

SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"
NAME_LEN = 32 + 8 + 32 + 1 + 32  # of a MOB file
SETTINGS = "hbase.master.mob.cleaner.period=1\nhbase.mob.min.age.archive=0\n"


def paths_of(world, table, top):
    """The MOB files of the table below mobdir or archive, by name."""
    found = {}
    for folder, _, names in os.walk(world.store):
        if f"/{top}/data/default/{table}/" in folder + "/":
            found.update((name, os.path.join(folder, name)) for name in names if len(name) == NAME_LEN)
    return found


def files_of(world, table, top="mobdir"):
    return set(paths_of(world, table, top))


@contextlib.contextmanager
def cleaned(world):
    """All servers are restarted, the master last."""
    world.settings.write_text(SETTINGS)
    try:
        master = world.wait_for_master()
        for process in [*others(world, master), master]:
            process.stop()
            restart(world, process)
            world.wait_for_master()
        yield
    finally:
        world.settings.write_text("")


def create(world, table):
    world.shell(f"create '{table}', {{NAME => 'f', IS_MOB => true, MOB_THRESHOLD => 2}}, {SPLITS}\n")
    assert len(set(regions_of(world, table).values())) == 3, regions_of(world, table)
    put_rows(world, table)
    world.shell(f"flush '{table}'\n")


def wait_until_written_anew(world, table, before):
    """Repeats the request: it leaves out regions that are not open."""
    def gone():
        world.shell(f"compact '{table}', nil, 'MOB'\n")
        return not before & files_of(world, table)
    until(gone, "the former MOB files are archived")


def flush_and_compact_while(world, table, delay, victim):
    script = world.folder / "mob.rb"
    script.write_text("".join(f"put '{table}', '{row}', 'f:q', '{row * 3}'\n" for row in "adhlpt") * 2 +
                      f"flush '{table}'\ncompact '{table}', nil, 'MOB'\n" * 8)
    with subprocess.Popen([SHELL, "shell", "-n", "-Dhbase.client.retries.number=15", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as shell:
        time.sleep(delay)  # the kill may be at any step
        victim.kill()
        shell.communicate(timeout=2 * DEADLINE)  # a flush of a region that is not open may fail
    until(lambda: world.master() not in (None, victim), "a master has opened meta")
    until(lambda: len(open_regions(world, table)) == 7 and victim.ports[0] not in open_regions(world, table).values(), "its regions are open")


def mob_values_survive_compactions_and_kills(world):
    with cleaned(world):
        create(world, "mb")
        first = files_of(world, "mb")
        assert first
        all_rows_of(world, "mb")
        wait_until_written_anew(world, "mb", first)
        all_rows_of(world, "mb")
        for i, delay in enumerate((0.1, 0.4, 0.8)):
            master = world.wait_for_master()
            victim = master if i == 1 else next(p for p in others(world, master) if p.ports[0] in regions_of(world, "mb").values())
            flush_and_compact_while(world, "mb", delay, victim)
            all_rows_of(world, "mb")
            restart(world, victim)
        # The cleaner works again, and archives only files without references: servers that open the regions anew find all values.
        wait_until_written_anew(world, "mb", files_of(world, "mb"))
        for path in paths_of(world, "mb", "archive").values():
            os.unlink(path)
        killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
        all_rows_of(world, "mb")
        restart(world, killed)
        world.shell("disable 'mb'\ndrop 'mb'\n")
        assert not files_of(world, "mb")


def a_snapshot_has_its_mob_files(world):
    with cleaned(world):
        create(world, "ms")
        first = files_of(world, "ms")
        world.shell("snapshot 'ms', 'ms-s'\n")
        wait_until_written_anew(world, "ms", first)
        world.shell("disable 'ms'\ndrop 'ms'\nclone_snapshot 'ms-s', 'mc'\n")
        all_rows_of(world, "mc")
        killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
        all_rows_of(world, "mc")
        restart(world, killed)
        world.shell("delete_snapshot 'ms-s'\n")
        world.shell("major_compact 'mc'\n")
        all_rows_of(world, "mc")
        world.shell("disable 'mc'\ndrop 'mc'\n")


TESTS = [mob_values_survive_compactions_and_kills, a_snapshot_has_its_mob_files]
