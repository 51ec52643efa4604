#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of `rorqual server --cluster`: three processes on one folder, with a real ZooKeeper, in which rorqual shell finds them by
HBase's znodes. Tables on all servers; kill -9 of a server and of the master, also while rows are put; orderly stops; servers that
are paused, or hang although their sessions live; a restart of all servers; wrong configurations; `rorqual cluster status`; and
`tools/cluster`. Each test begins with three servers: processes that an earlier test has ended are started again.

    cluster.py                ZooKeeper from Debian's package, on a free port
    JAVA='Blog Reads'         also runs these programs of tests/java, with HBase's clients 2.6 and 1.2, on the cluster
    SESSION_MS=MS             session timeout in ZooKeeper, longer for a loaded machine (default 2000; with JAVA 10000, the
                              setting's default)
    TESTS='NAME NAME'         only these tests, including those of cluster_tool.py, cluster_pages.py, cluster_mob.py,
                              cluster_replication.py, cluster_servers.py, cluster_snapshots.py, cluster_source.py and cluster_tables.py, and those of
                              LONG_TESTS, which do not run otherwise
    RORQUAL=FILE              the program (default build/src/cli/rorqual); SHELL_PROGRAM=FILE: the shell's (default: the same)

If a process ends without being ended by the test, the test fails, and the end of its log is printed with its exit code or signal.
After a failure the logs of all processes are kept in a folder, whose name is printed.

Ends with 'N passed, N failed'.
"""
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import cluster_mob
import cluster_pages
import cluster_replication
import cluster_servers
import cluster_snapshots
import cluster_source
import cluster_tables
import cluster_tool
import hbase
import hung
from rorqual import ROOT, Report, pause
from membership import DEADLINE, OF_HBASE, until
from cluster_world import (RORQUAL, ROWS, SHELL, Process, World, all_rows_of, encoded, homes, is_home,
                           kill_and_wait, open_regions, others, put_rows, read_all, regions_of, restart)

sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402

PUTS = 3000
ONE_WAY_S = 18  # seconds without messages in one direction after which a server is given up


def three_processes_serve_a_table(world):
    assert world.wait_for_master() is world.processes[0], "the first one is elected"
    read_all(world)
    out = world.shell("get 't', 'm'\n")
    assert "value=mmm" in out or "0 row(s)" in out, out
    out = homes(world)
    for process in world.processes:
        assert is_home(out, process), out


def znodes_are_hbases(world):
    """The znodes that membership.py compares with HBase's, and those of a master that has opened hbase:meta."""
    world.shell("create_namespace 'n'\ncreate 'n:x', 'f'\ndisable 'n:x'\n")
    until(lambda: "table/n:x" in world.keeper.tree("/hbase"), "the table's znode")

    def state():
        return world.keeper.tree("/hbase")["table/n:x"][0][-2:]
    until(lambda: state() == b"\x08\x01", "it is disabled")
    tree = world.keeper.tree("/hbase")
    assert tree["table/t"][0][-2:] == b"\x08\x00", tree["table/t"]
    missing = {name for name, _, _ in OF_HBASE if name != "rs/SERVER"} - set(tree)
    assert not missing, missing
    assert "namespace/n" in tree and len([n for n in tree if n.startswith("backup-masters/")]) == 2, sorted(tree)
    world.shell("drop 'n:x'\ndrop_namespace 'n'\n")
    until(lambda: not {"table/n:x", "namespace/n"} & set(world.keeper.tree("/hbase")), "their znodes are gone")


def what_is_not_safe_is_refused(world):
    for change, text in [("alter 'hbase:meta', {REGION_REPLICATION => 2}", "replicas"),
                         ("hbck_chore_run", "does not support RunHbckChore of HbckService")]:
        script = world.folder / "refused.rb"
        script.write_text(change + "\n")
        done = subprocess.run([SHELL, "shell", "-n", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        assert done.returncode != 0, change
        assert text is None or text in done.stdout + done.stderr, (change, done.stdout + done.stderr)
    read_all(world)


def java_programs_pass(world):
    """tests/e2e/rorqual.py builds the programs."""
    done = subprocess.run([sys.executable, str(ROOT / "tests/e2e/run.py")], timeout=1800, check=False,
                          env=dict(os.environ, ZK=f"127.0.0.1:{world.keeper.port}", PROGRAMS=os.environ["JAVA"]))
    assert done.returncode == 0


def a_killed_server_loses_no_row(world):
    killed = others(world, world.master())[0]
    begin = time.monotonic()
    kill_and_wait(world, killed)
    print(f"  all rows read {time.monotonic() - begin:.1f} s after kill -9")
    world.shell("".join(f"put 't', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))
    read_all(world)
    assert not is_home(homes(world), killed)


def a_server_comes_back_at_its_address(world):
    killed = kill_and_wait(world, others(world, world.master())[0])
    again = restart(world, killed)
    assert again.name != killed.name, again.name
    world.shell("create 'v', 'f', SPLITS => ['c', 'g', 'k', 'o']\nput 'v', 'a', 'f:q', '1'\nput 'v', 'd', 'f:q', '1'\nput 'v', 'h', 'f:q', '1'\n")
    out = homes(world)
    assert is_home(out, again), out
    read_all(world)


def a_region_moves_to_a_named_server(world):
    world.shell("create 'm', 'f'\nput 'm', 'a', 'f:q', '1'\n")
    (region, port), = regions_of(world, "m").items()
    for process in others(world, next(p for p in world.processes if p.ports[0] == port)):
        world.shell(f"move '{region}', '{process.name}'\nput 'm', 'b', 'f:q', '2'\n")
        assert regions_of(world, "m") == {region: process.ports[0]}, homes(world)
        assert "2 row(s)" in world.shell("count 'm'\n")
    world.shell(f"move '{region}'\n")
    assert regions_of(world, "m")[region] != process.ports[0]
    world.shell("disable 'm'\ndrop 'm'\n")


def an_enabled_table_is_where_it_was(world):
    world.shell("create 'e', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n")
    before = regions_of(world, "e")
    assert len(before) == 7 and len(set(before.values())) == 3, before
    world.shell("disable 'e'\nenable 'e'\n")
    assert regions_of(world, "e") == before, (before, regions_of(world, "e"))
    world.shell("disable 'e'\ndrop 'e'\n")


def divided(world, table, count):
    return until(lambda: (lambda r: r if len(r) == count else None)(open_regions(world, table)), f"{table} has {count} regions")


def regions_are_split_and_merged(world):
    """One half moves to another server, which is killed; then both halves are merged, and the parents of split and merge
    are archived."""
    master = world.wait_for_master()
    world.shell("create 'sp', 'f'\n")
    put_rows(world, "sp")
    world.shell("split 'sp', 'm'\n")
    halves = divided(world, "sp", 2)
    all_rows_of(world, "sp")
    killed = others(world, master)[0]
    upper = next(name for name in halves if name.startswith("sp,m,"))
    world.shell(f"move '{encoded(upper)}', '{killed.name}'\nput 'sp', 'z1', 'f:q', 'x'\ndelete 'sp', 'z1', 'f:q'\n")
    assert open_regions(world, "sp")[upper] == killed.ports[0]
    kill_and_wait(world, killed)
    all_rows_of(world, "sp")
    world.shell("major_compact 'sp'\n" + "".join(f"major_compact '{encoded(name)}'\n" for name in halves))

    def archived(name):
        world.shell("catalogjanitor_run\n")
        return master.said(f"archived region {encoded(name)}")
    parent = next(line.split()[0] for line in homes(world).splitlines() if line.strip().startswith("sp,,") and line.split()[0] not in halves)
    until(lambda: archived(parent), "the split region is archived")
    world.shell("merge_region " + ", ".join(f"'{encoded(name)}'" for name in halves) + "\n")
    divided(world, "sp", 1)
    all_rows_of(world, "sp")
    put_rows(world, "sp")
    world.shell("disable 'sp'\nenable 'sp'\n")
    all_rows_of(world, "sp")
    world.shell("disable 'sp'\ndrop 'sp'\n")


def a_master_killed_in_a_split_loses_no_row(world):
    """The next master resumes the procedure, or it was never recorded."""
    master = world.wait_for_master()
    world.shell("create 'sk', 'f'\n")
    put_rows(world, "sk")
    world.shell("split 'sk', 'm'\n")
    master.kill()
    until(lambda: world.master() not in (None, master), "another master has opened meta")
    all_rows_of(world, "sk")
    put_rows(world, "sk")
    until(lambda: len(open_regions(world, "sk")) in (1, 2), "its regions are open")
    world.shell("disable 'sk'\ndrop 'sk'\n")
    restart(world, master)


def a_server_that_came_back_gets_regions(world):
    """The server's former regions are on the others until the balancer runs."""
    back = restart(world, kill_and_wait(world, others(world, world.master())[0]))
    assert back.ports[0] not in regions_of(world, "t").values()
    assert "3 servers" in world.shell("status\n"), world.shell("status\n")
    world.shell("balance_switch false\nbalancer\n")
    assert back.ports[0] not in regions_of(world, "t").values()
    world.shell("balance_switch true\nbalancer\n")
    until(lambda: back.ports[0] in regions_of(world, "t").values(), "it has regions")
    read_all(world)


def put_while_killed(world, table, pick):
    """A client with as many retries as HBase's Java client puts rows one by one; no put fails because of the kill, and all acknowledged rows are
    found."""
    world.shell(f"create '{table}', 'f', SPLITS => ['2', '4', '6', '8']\n")
    script, out = world.folder / f"writer-{table}.rb", world.folder / f"writer-{table}.out"
    script.write_text("".join(f"put '{table}', '{i % 10}{i:05}', 'f:q', '{i}'\n" for i in range(PUTS)))
    with open(out, "wb") as sink:
        writer = subprocess.Popen([SHELL, "shell", "-n", "-Dhbase.client.retries.number=15", "--zk", f"127.0.0.1:{world.keeper.port}",
                                   str(script)], stdout=sink, stderr=sink)
    try:
        until(lambda: out.read_bytes().count(b"\n") > PUTS // 10, "the writer writes")
        begin = time.monotonic()
        killed = pick()
        killed.kill()
        assert writer.wait(timeout=2 * DEADLINE) == 0, out.read_text(errors="replace")[-2000:]
        print(f"  {PUTS} puts done {time.monotonic() - begin:.1f} s after kill -9")
    finally:
        writer.kill()
        writer.wait()
    counted = world.shell(f"count '{table}'\n")
    assert f"{PUTS} row(s)" in counted, counted
    world.full_tables.append(table)
    return killed


def rows_put_while_a_server_is_killed_are_there(world):
    killed = put_while_killed(world, "w", lambda: others(world, world.master())[0])
    restart(world, killed)


def a_killed_master_is_replaced(world):
    killed = world.wait_for_master()
    begin = time.monotonic()
    killed.kill()
    again = world.wait_for_master()
    print(f"  meta is back {time.monotonic() - begin:.1f} s after kill -9 of the master")
    assert again is not killed
    read_all(world)
    world.shell("create 'x', 'f'\nput 'x', 'a', 'f:q', '1'\ndisable 'x'\nenable 'x'\n")
    assert "1 row(s)" in world.shell("count 'x'\n")
    print(f"  DDL is back {time.monotonic() - begin:.1f} s after it")
    out = homes(world)
    assert not is_home(out, killed), out
    restart(world, killed)


def rows_put_while_the_master_is_killed_are_there(world):
    killed = put_while_killed(world, "y", world.wait_for_master)
    world.wait_for_master()
    read_all(world)
    restart(world, killed)


def region_at(world, process, table):
    """Returns a region of the table on the server, and a row in it."""
    for line in homes(world).splitlines():
        name = line.split()[0] if line.strip() else ""
        if name.startswith(table + ",") and f"value=127.0.0.1:{process.ports[0]}" in line:
            start = name.split(",")[1]
            return name.encode(), next(row for row in ROWS if row >= start)
    raise AssertionError(f"no region of {table} is on {process.name}")


def a_paused_server_ends_when_it_goes_on(world):
    """The server was fenced while it was paused, and its regions are elsewhere. Reads sent meanwhile return no old
    value."""
    paused = others(world, world.wait_for_master())[0]
    world.shell("create 'p', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n" + "".join(f"put 'p', '{row}', 'f:q', 'old'\n" for row in ROWS))
    name, row = region_at(world, paused, "p")
    connection = hbase.Connection(f"127.0.0.1:{paused.ports[0]}")
    assert connection.get(name, row.encode()) == {(b"f", b"q"): b"old"}
    begin = time.monotonic()
    pause(paused.process)
    try:
        until(lambda: f"{paused.name} is fenced" in world.master().errors(), "the master has fenced it")
        print(f"  fenced {time.monotonic() - begin:.1f} s after its pause began")
        read_all(world)
        print(f"  all rows read {time.monotonic() - begin:.1f} s after it")
        world.shell("".join(f"put 't', '{row}', 'f:q', '{row * 3}'\n" for row in ROWS))
        read_all(world)
        world.shell(f"put 'p', '{row}', 'f:q', 'new'\n")
        connection.send("Get", hbase.text(1, hbase.region(name)) + hbase.text(2, hbase.text(1, row.encode())))
    finally:
        paused.process.send_signal(signal.SIGCONT)
    try:
        answer = connection.receive()[1]
    except (OSError, EOFError):
        answer = None
    assert answer is None or isinstance(answer, hbase.Refused), answer
    connection.close()
    paused.ends(1)
    assert "has left the cluster" in paused.errors(), paused.errors()
    read_all(world)
    restart(world, paused)


def a_paused_master_ends_when_it_goes_on(world):
    paused = world.wait_for_master()
    pause(paused.process)
    try:
        until(lambda: world.master() not in (None, paused), "another master has opened meta")
        world.shell("create 'z', 'f'\nput 'z', 'a', 'f:q', '1'\n")
    finally:
        paused.process.send_signal(signal.SIGCONT)
    paused.ends(1)
    assert "1 row(s)" in world.shell("count 'z'\n")
    read_all(world)
    restart(world, paused)


def one_of_three_takes_everything(world):
    """The master and another server are killed at once, and a third server just as the last one becomes the master."""
    killed = [world.wait_for_master(), others(world, world.wait_for_master())[0]]
    for process in killed:
        process.kill()
    assert world.wait_for_master() not in killed
    read_all(world)
    assert not any(is_home(homes(world), process) for process in killed)
    for process in killed:
        restart(world, process)
    master = world.wait_for_master()
    killed = [master, others(world, master)[0]]
    before = {process: len(process.errors()) for process in world.processes}
    master.kill()
    until(lambda: any("is elected" in p.errors()[before[p]:] for p in world.processes), "another one is elected")
    killed[1] = next(p for p in others(world, master) if "is elected" not in p.errors()[before[p]:])
    killed[1].kill()
    assert world.wait_for_master() not in killed
    read_all(world)
    for process in killed:
        restart(world, process)


def fences(world):
    """Of servers that run; a new master also fences those that ended before it was elected."""
    names = [f"{process.name} is fenced" for process in world.processes]
    return [line for process in world.processes for line in process.errors()[process.before:].splitlines()
            if any(name in line for name in names)]


def loops_of(process):
    return sorted({(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{process.process.pid}/task").iterdir()
                   if (task / "comm").read_text().startswith("rq-loop-")})


def a_server_whose_loop_hangs_loses_its_regions(world):
    """One event loop hangs. The other loops and the session in ZooKeeper continue: only the master can detect this."""
    stuck = others(world, world.wait_for_master())[0]
    master = world.master()
    world.shell("create 'h', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n" + "".join(f"put 'h', '{row}', 'f:q', '1'\n" for row in ROWS))
    region_at(world, stuck, "h")
    begin = time.monotonic()
    with hung.Hung(stuck.process.pid, loops_of(stuck)[-1]):
        stuck.may_end = True
        until(lambda: master.said(f"nothing was heard of {stuck.name}"), "the master gives it up")
        assert stuck.name in world.servers(), "ZooKeeper sees it"
        until(lambda: master.said(f"{stuck.name} is fenced"), "the master has fenced it")
        read_all(world)
        assert f"{len(ROWS)} row(s)" in world.shell("count 'h'\n")
        print(f"  all rows read {time.monotonic() - begin:.1f} s after the loop hung")
        assert not is_home(homes(world), stuck)
    stuck.ends(1)
    assert stuck.said("another server has fenced it"), stuck.errors()
    restart(world, stuck)


def a_master_that_hears_nobody_takes_nothing(world):
    """The loop hangs that receives the other servers' reports. All of them seem silent to the master, so the master is
    the one that is cut off."""
    master, before = world.wait_for_master(), fences(world)
    with hung.Hung(master.process.pid, "rq-loop-0"):
        until(lambda: master.said("this master may be cut off itself"), "it knows")
    until(lambda: all("the master accepts this server's reports" in p.errors().rpartition("the master does not accept")[2] for p in world.processes if p is not master),
          "the others report again")
    assert all(p.runs() for p in world.processes)
    assert fences(world) == before, fences(world)
    assert world.master() is master
    read_all(world)


def a_master_that_is_cut_off_leaves_its_place(world):
    """The same for a longer time."""
    master = world.wait_for_master()
    with hung.Hung(master.process.pid, "rq-loop-0"):
        master.may_end = True
        until(lambda: master.said("it is cut off, and ends so that another server becomes the master"), "it ends")
    master.ends(1)
    until(lambda: world.master() not in (None, master), "another master has opened meta")
    read_all(world)
    assert not is_home(homes(world), master)
    restart(world, master)


def a_server_without_a_lease_loses_its_regions(world):
    """The thread that renews its lease hangs, as if the storage did not answer. The server's other threads run, and the master hears it."""
    master = world.wait_for_master()
    cut = others(world, master)[0]
    world.shell("create 'l', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n" + "".join(f"put 'l', '{row}', 'f:q', '1'\n" for row in ROWS))
    region_at(world, cut, "l")
    begin = time.monotonic()
    with hung.Hung(cut.process.pid, "rq-tenure"):
        cut.may_end = True
        until(lambda: master.said(f"the lease of {cut.name} has been expired"), "the master gives it up")
        assert not master.said(f"nothing was heard of {cut.name}"), master.errors()
        assert f"{len(ROWS)} row(s)" in world.shell("count 'l'\n")
        print(f"  all rows read {time.monotonic() - begin:.1f} s after the last renewal")
        assert not is_home(homes(world), cut)
        until(lambda: cut.said("the master rejects this server"), "it knows")
    cut.ends(1)
    restart(world, cut)
    world.shell("disable 'l'\ndrop 'l'\n")


def a_master_without_a_lease_that_reaches_the_storage_stays(world):
    """Its lease is not renewed, but it can read the storage of another server's lease. So another master would do no better."""
    master, before = world.wait_for_master(), fences(world)
    with hung.Hung(master.process.pid, "rq-tenure"):
        until(lambda: master.said("this master reaches the storage, but not the part that its lease rests on"), "it looks at another lease")
    read_all(world)
    assert world.master() is master
    assert fences(world) == before, fences(world)


def without_any_lease_nobody_is_blamed(world):
    """No lease is renewed, as if the storage did not answer. The servers hear each other all the time."""
    before = fences(world)
    with contextlib.ExitStack() as hanging:
        for process in world.processes:
            hanging.enter_context(hung.Hung(process.process.pid, "rq-tenure"))
        until(lambda: all(p.said("the lease has expired") for p in world.processes), "all leases are expired")
        time.sleep(ONE_WAY_S + 5)  # longer than any limit
        assert all(p.runs() for p in world.processes)
    read_all(world)
    assert fences(world) == before, fences(world)


def of_two_servers_neither_is_given_up(world):
    """ZooKeeper cannot tell which of two servers is cut off. A server that hangs aborts itself."""
    master = world.wait_for_master()
    stopped, stuck = others(world, master)
    stopped.stop()
    until(lambda: master.said(f"{stopped.name} is fenced"), "its regions are on two servers")
    with hung.Hung(stuck.process.pid, loops_of(stuck)[-1]):
        stuck.may_end = True
        until(lambda: master.said("cannot tell which of the two is cut off"), "the master says so")
        until(lambda: stuck.said("an event loop has not run for"), "it ends")
    stuck.ends(1)
    until(lambda: master.said(f"{stuck.name} is fenced"), "its session has ended")
    assert not master.said(f"nothing was heard of {stuck.name}"), master.errors()
    assert master.runs()
    read_all(world)
    for process in (stopped, stuck):
        restart(world, process)


def a_fence_that_fails_is_logged_once(world):
    """The storage refuses a part of the fence; the fence is retried with growing pauses."""
    master, killed = world.wait_for_master(), others(world, world.wait_for_master())[0]
    ended = world.store / "shared/set/ended"
    ended.mkdir(parents=True, exist_ok=True)
    ended.rename(ended.with_name("away"))
    try:
        ended.write_text("not a folder")
        killed.kill()
        until(lambda: master.said(f"{killed.name} is taken for dead, but cannot be fenced yet"), "the fence fails")
        begin = time.monotonic()
        until(lambda: time.monotonic() > begin + 2, "it fails again")
    finally:
        ended.unlink()
        ended.with_name("away").rename(ended)
    until(lambda: master.said(f"{killed.name} is fenced"), "it is fenced")
    lines = [line for line in master.errors()[master.before:].splitlines() if "cannot be fenced yet" in line]
    assert len(lines) == 1, lines
    until(lambda: master.said(f"{killed.name} is fenced after"), "the attempts are counted")
    read_all(world)
    restart(world, killed)


def the_status_has_the_load_of_each_server(world):
    """Requests per second and memory come from the reports that a server sends every three seconds."""
    world.shell("create 'l', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n")
    requests = "".join(f"put 'l', '{row}', 'f:q', '1'\n" for row in ROWS) * 5
    seen = []

    def all_have():
        text = world.shell(requests + "status 'simple'\n")
        lines = [line for line in text.splitlines() if "requestsPerSecond=" in line]
        seen[:] = lines
        return len(lines) == 3 and not any(no in line for line in lines for no in ("PerSecond=0.0,", "usedHeapMB=0,", "maxHeapMB=0,"))
    try:
        until(all_have, "requests a second and memory of all servers")
    except AssertionError as e:
        raise AssertionError(seen) from e


def cluster_status(world, code, *more):
    done = subprocess.run([RORQUAL, "cluster", "status", "--zk", f"127.0.0.1:{world.keeper.port}", *more], capture_output=True, text=True,
                          timeout=DEADLINE, check=False)
    assert done.returncode == code, done
    return json.loads(done.stdout) if "--json" in more else done.stdout + done.stderr


def addresses(list_of_servers):
    return {s["server"] for s in list_of_servers}


def the_cluster_tells_whether_it_may_lose_a_server(world):
    """With three servers, with two, and with one; each lost server is listed as dead."""
    def settled(code, servers):
        done = subprocess.run([RORQUAL, "cluster", "status", "--zk", f"127.0.0.1:{world.keeper.port}", "--json"], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        now = json.loads(done.stdout or '{"servers": [], "standbys": []}')
        return now if (done.returncode, len(now["servers"]), len(now["standbys"])) == (code, servers, servers - 1) else None
    at = {p: f"127.0.0.1:{p.ports[0]}" for p in world.processes}
    as_master = {p: f"127.0.0.1:{p.ports[1]}" for p in world.processes}
    master = world.wait_for_master()
    first, second = others(world, master)
    got = until(lambda: settled(0, 3), "three servers have everything")
    assert (addresses(got["servers"]), got["dead"], got["notOpen"], got["mayLoseOneServer"]) == (set(at.values()), [], [], True), got
    assert got["master"] == as_master[master] and addresses(got["standbys"]) == {as_master[first], as_master[second]}, got
    assert "reason" not in got and sum(s["regions"] for s in got["servers"]) > 7, got
    text = cluster_status(world, 0)
    assert "servers   3 live, 0 dead; 2 standby masters; balancer on" in text and text.endswith("can the cluster lose one more server? yes\n"), text
    assert all(f"\nserver    {a}: up " in text for a in at.values()) and f"\nstandby   {as_master[first]}: up " in text, text
    kill_and_wait(world, first)
    got = until(lambda: settled(0, 2), "two servers have everything")
    assert addresses(got["dead"]) == {at[first]} and "neither takes over" in got["reason"], got
    assert f"\ndead      {at[first]}: started " in cluster_status(world, 0)
    assert first.name in world.shell("list_deadservers\n")
    out = world.shell(f"clear_deadservers '{first.name}'\n")
    assert "failed" not in out, out
    assert cluster_status(world, 0, "--json")["dead"] == []
    kill_and_wait(world, second)
    got = until(lambda: settled(1, 1), "one server has everything")
    assert got["reason"] == "there is no other server to take its regions" and addresses(got["dead"]) == {at[second]}, got
    assert "can the cluster lose one more server? no, there is no other server to take its regions" in cluster_status(world, 1)
    for process in (first, second):
        restart(world, process)
    got = until(lambda: settled(0, 3), "three servers")
    assert got["dead"] == [], got


def a_status_that_nobody_gives_is_an_error(world):
    port = peer.free_ports(1)[0]
    for at, code, text in [(("--zk", f"127.0.0.1:{port}"), 1, f"127.0.0.1:{port}"), (("--bootstrap", f"127.0.0.1:{port}"), 1, f"127.0.0.1:{port}"),
                           (("--zk", f"127.0.0.1:{world.keeper.port}", "--zk-root", "/nowhere"), 1, "/nowhere"),
                           (("--zk", "x"), 2, "'x' is not host:port"), (("more",), 2, "unknown argument 'more'")]:
        done = subprocess.run([RORQUAL, "cluster", "status", *at], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code and done.stdout == "" and done.stderr.count("\n") == 1 and text in done.stderr, done
    for words, text in [((), "expected a verb: status"), (("state",), "unknown verb 'state'")]:
        done = subprocess.run([RORQUAL, "cluster", *words], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 2 and text in done.stderr, done


def tables_are_changed(world):
    out = world.shell("create 'a', 'f', SPLITS => ['c', 'g', 'k']\nput 'a', 'b', 'f:q', '1'\nput 'a', 'h', 'f:q', '1'\nflush 'a'\n"
                      "alter 'a', 'g'\nput 'a', 'd', 'g:q', '1'\ncount 'a'\ndisable 'a'\nenable 'a'\nscan 'a'\n")
    assert "3 row(s)" in out and "column=g:q" in out, out
    out = world.shell("alter 'a', NAME => 'g', METHOD => 'delete'\ncount 'a'\ntruncate_preserve 'a'\ncount 'a'\nput 'a', 'b', 'f:q', '2'\n"
                      "incr 'a', 'h', 'f:n', 5\nget_counter 'a', 'h', 'f:n'\n")
    region = next(line.split()[0] for line in homes(world).splitlines() if line.strip().startswith("a,,"))
    world.shell(f"flush '{region}'\nmajor_compact 'a'\nmajor_compact '{region}'\n")
    assert "2 row(s)" in out and "0 row(s)" in out and "COUNTER VALUE = 5" in out, out
    world.shell("disable 'a'\ndrop 'a'\n")
    assert "'a'" not in world.shell("list 'a'\n").split("=>")[-1]


def a_server_that_stops_in_order_gives_its_regions_up(world):
    stopped = others(world, world.wait_for_master())[0]
    world.shell(f"stop_regionserver '127.0.0.1:{stopped.ports[0]}'\n")
    stopped.ends(0)
    assert stopped.said("stopping: StopServer called by user") and not stopped.said("not stopped cleanly"), stopped.errors()
    until(lambda: f"{stopped.name} is fenced" in world.master().errors(), "the master has its regions opened")
    read_all(world)
    master = world.master()
    assert master.said(f"{stopped.name} is shutting down") and not master.said(f"{stopped.name} has ended"), master.errors()
    restart(world, stopped)


def all_rows_are_there_after_all_were_killed(world):
    """The first server waits for the others, however long they take, before it opens regions."""
    for process in world.processes:
        process.kill()
    until(lambda: not world.servers(), "their sessions have ended")
    ports = [p.ports for p in world.processes]
    world.processes = [Process(world, p, settings=["hbase.master.wait.on.regionservers.mintostart=3"]) for p in ports[:2]]
    first = world.processes[0]
    until(lambda: first.said("the start waits for 3 servers"), "it says so")
    begin = time.monotonic()
    until(lambda: time.monotonic() > begin + 2, "it would not wait so long for more servers to come")
    assert not first.said("serves as the active master"), first.errors()
    world.processes.append(Process(world, ports[2]))
    world.wait_for_master()
    read_all(world)
    for table in world.full_tables:
        assert f"{PUTS} row(s)" in world.shell(f"count '{table}'\n")
    out = homes(world)
    assert all(is_home(out, p) for p in world.processes), out


def a_process_with_another_secret_gets_no_region(world):
    other = world.folder / "other"
    other.write_bytes(b"not the secret of this cluster")
    other.chmod(0o600)
    stranger = Process(world, secret=other)
    until(lambda: "does not have this cluster's secret" in stranger.errors(), "it is told why it is not taken")
    world.shell("create 'u', 'f', SPLITS => ['c', 'g', 'k', 'o']\n")
    assert not is_home(homes(world), stranger)
    stranger.kill()


def refused(world, place, *more, session_ms=60000):
    """Returns the message of a refused start, which waits for ZooKeeper as long as a session."""
    ports = peer.free_ports(2)
    done = subprocess.run([RORQUAL, "server", "--cluster", place, "--rs-port", str(ports[0]), "--master-port", str(ports[1]),
                           "--http", "none", "-D", f"zookeeper.session.timeout={session_ms}", *more], capture_output=True, text=True, timeout=DEADLINE,
                          check=False)
    assert done.returncode in (1, 2), done
    assert "ready" not in done.stdout, done.stdout
    return done.stderr


def wrong_configurations_are_refused(world):
    zk, store, secret = f"zk=127.0.0.1:{world.keeper.port}/hbase", f"store={world.store}", f"secret={world.secret}"
    for place, text in [(f"{zk},{store}", "secret=FILE is missing"), (f"{zk},{secret}", "store=DIR is missing"),
                        (f"{store},{secret}", "zk=HOST:PORT/ROOT is missing"), (f"{zk}//x,{store},{secret}", "cannot be the root"),
                        (f"zk=127.0.0.1/hbase,{store},{secret}", "is not HOST:PORT"), (f"{zk},{store},{secret},x=y", "'x=y' is not valid"),
                        (f"zk=127.0.0.1:{world.keeper.port}/zookeeper/q,{store},{secret}", "cannot be the root"),
                        (f"{zk},{store},{store},{secret}", "store= is given twice"), (f"{zk},{store},secret=/nowhere/s", "/nowhere/s")]:
        out = refused(world, place)
        assert text in out, (place, out)
    world.secret.chmod(0o644)
    assert "mode 0644 lets other users access the file; set it to 600" in refused(world, world.place())
    world.secret.chmod(0o600)
    port = peer.free_ports(1)[0]
    out = refused(world, f"zk=127.0.0.1:{port}/hbase,{store},{secret}", session_ms=1000)
    assert f"no ZooKeeper session at 127.0.0.1:{port} within 1000 ms" in out, out
    assert "--data is not supported together with --cluster" in refused(world, world.place(), "--data", "x")


def roots_are_not_mixed_up(world):
    alone = world.folder / "alone"
    ports = [x for n in ("--rs-port", "--master-port", "--zk-port") for x in (n, "0")]
    server = subprocess.Popen([RORQUAL, "server", "--data", str(alone), "--http", "none", *ports], stdout=subprocess.PIPE, text=True)
    assert "ready" in server.stdout.readline()
    server.terminate()
    server.communicate(timeout=DEADLINE)
    zk, secret = f"zk=127.0.0.1:{world.keeper.port}/hbase", f"secret={world.secret}"
    assert "is the data folder of a standalone server" in refused(world, f"{zk},store={alone},{secret}")
    for folder, text in [(world.store, "is not empty"), (world.store / "files", "has the files of a cluster")]:
        done = subprocess.run([RORQUAL, "server", "--data", str(folder), "--http", "none", *ports], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        assert done.returncode == 1 and text in done.stderr, done
        done = subprocess.run([RORQUAL, "fsck", str(world.store / "files")], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode != 0 and "has the files of a cluster" in done.stdout + done.stderr, done
    other = world.folder / "other-store"
    out = refused(world, f"{zk},store={other},{secret}")
    assert "but the storage belongs to cluster" in out, out
    read_all(world)


TESTS = [three_processes_serve_a_table, znodes_are_hbases, tables_are_changed, what_is_not_safe_is_refused, a_killed_server_loses_no_row,
         a_server_comes_back_at_its_address, a_region_moves_to_a_named_server,
         an_enabled_table_is_where_it_was, regions_are_split_and_merged, a_master_killed_in_a_split_loses_no_row,
         a_server_that_came_back_gets_regions, rows_put_while_a_server_is_killed_are_there, a_killed_master_is_replaced,
         rows_put_while_the_master_is_killed_are_there, one_of_three_takes_everything, a_paused_server_ends_when_it_goes_on, a_paused_master_ends_when_it_goes_on,
         a_server_whose_loop_hangs_loses_its_regions, a_master_that_hears_nobody_takes_nothing, a_master_that_is_cut_off_leaves_its_place,
         a_server_without_a_lease_loses_its_regions, a_master_without_a_lease_that_reaches_the_storage_stays,
         of_two_servers_neither_is_given_up, a_fence_that_fails_is_logged_once, the_status_has_the_load_of_each_server,
         the_cluster_tells_whether_it_may_lose_a_server, a_status_that_nobody_gives_is_an_error,
         a_server_that_stops_in_order_gives_its_regions_up,
         all_rows_are_there_after_all_were_killed, a_process_with_another_secret_gets_no_region, wrong_configurations_are_refused,
         roots_are_not_mixed_up]


LONG_TESTS = [without_any_lease_nobody_is_blamed]


def watched(test):
    """Runs the test on a complete cluster; fails also if a process ends that the test has not ended."""
    @functools.wraps(test)
    def run(world):
        world.restore()
        try:
            test(world)
        except Exception:
            world.look_for_ended()  # an ended process is then the cause
            raise
        world.look_for_ended()
    return run


def main():
    peer.orderly()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        only = os.environ.get("TESTS", "").split()
        report.run("cluster_tool", (folder, RORQUAL), cluster_tool.TESTS, only)
        world = World(folder)
        try:
            tests = TESTS[:1] + ([java_programs_pass] if os.environ.get("JAVA") else []) + TESTS[1:]
            tests += (cluster_mob.TESTS + cluster_pages.TESTS + cluster_replication.TESTS + cluster_servers.TESTS + cluster_snapshots.TESTS + cluster_source.TESTS +
                      cluster_tables.TESTS + [test for test in LONG_TESTS if test.__name__ in only])
            report.run("cluster", world, [watched(test) for test in tests], only)
        finally:
            world.stop()
            if report.failed > 0 or report.passed == 0:
                world.keep_logs()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
