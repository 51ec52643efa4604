# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: servers that end, and decommissioned servers."""
import shutil
import signal
import subprocess
import time

import hbase
import hung
from cluster_world import RORQUAL, all_rows_of, kill_and_wait, open_regions, others, put_rows, read_all, regions_of, restart
from membership import DEADLINE, until
from rorqual import pause

LONG_SESSION = ["zookeeper.session.timeout=30000"]
SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"


def stop_all(world):
    master = world.wait_for_master()
    for process in [*others(world, master), master]:
        process.stop()


def with_long_sessions(world):
    """Restarts all servers with long limits, so that neither sessions nor silence end during a test."""
    stop_all(world)
    for process in list(world.processes):
        restart(world, process, LONG_SESSION)
    world.wait_for_master()
    read_all(world)


def a_killed_server_is_found_before_its_session_ends(world):
    """The server's address refuses connections. A later process at the address is another server, and is not fenced."""
    with_long_sessions(world)
    master = world.wait_for_master()
    for killed in others(world, master):
        begin = time.monotonic()
        killed.kill()
        until(lambda: master.said(f"{killed.name} has ended: its connections are closed"), "the master has found it")
        assert killed.name in world.servers(), "its session lives"
        until(lambda: master.said(f"{killed.name} is fenced"), "it is fenced")
        read_all(world)
        print(f"  all rows read {time.monotonic() - begin:.1f} s after kill -9, with a session of 30 s")
        assert not master.said(f"nothing was heard of {killed.name}"), master.errors()
        again = restart(world, killed, LONG_SESSION)
        world.shell(f"move '{next(iter(regions_of(world, 't')))}', '{again.name}'\n")
        assert are_there(world, again, "t") and not master.said(f"{again.name} is fenced"), master.errors()
    read_all(world)
    stop_all(world)
    until(lambda: not world.servers(), "the sessions of the killed ones have ended")


def a_killed_master_is_replaced_before_its_session_ends(world):
    """The master's address refuses connections: a standby fences the master and removes its znodes. A paused master is
    not replaced."""
    with_long_sessions(world)
    killed = world.wait_for_master()
    begin = time.monotonic()
    killed.kill()
    again = world.wait_for_master()
    back = time.monotonic() - begin
    world.shell("create 'mk', 'f'\nput 'mk', 'a', 'f:q', '1'\n")
    print(f"  meta is back {back:.1f} s, DDL {time.monotonic() - begin:.1f} s after kill -9 of the master, with a session of 30 s")
    assert again is not killed
    # The end was detected by refused connections, not by the end of the session.
    assert any(p.said(f"{killed.name}, the active master, has ended") and p.said(f"{killed.name} is fenced") for p in others(world, killed))
    tree = world.keeper.tree("/hbase")
    assert again.name.split(",")[2].encode() in start_codes(tree["master"][0]), tree["master"]
    assert f"rs/{killed.name}" not in tree and len([n for n in tree if n.startswith("backup-masters/")]) == 1, sorted(tree)
    read_all(world)
    restart(world, killed, LONG_SESSION)
    a_paused_master_keeps_its_place(world, again)
    world.shell("disable 'mk'\ndrop 'mk'\n")


def start_codes(value):
    """All numbers in a znode's bytes that could be the start code of a protobuf ServerName (field 3)."""
    found = []
    for at in range(len(value)):
        number = shift = 0
        for byte in value[at + 1:] if value[at] == 3 << 3 else b"":
            number, shift = number | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                found.append(str(number).encode())
                break
    return found


def a_paused_master_keeps_its_place(world, master):
    standbys = others(world, master)
    before = {p: p.errors().count("does not accept RegionServerReport") for p in standbys}
    pause(master.process)
    try:
        until(lambda: all(p.errors().count("does not accept RegionServerReport") > before[p] for p in standbys), "no report is taken")
    finally:
        master.process.send_signal(signal.SIGCONT)
    world.shell("put 'mk', 'b', 'f:q', '1'\ndisable 'mk'\nenable 'mk'\n")
    assert world.master() is master and not any(p.said(f"{master.name}, the active master, has ended") for p in standbys)


def a_master_that_stops_in_order_is_not_fenced_by_standbys(world):
    """One of the standbys hears late from ZooKeeper that the master has left."""
    with_long_sessions(world)
    master = world.wait_for_master()
    late, other = others(world, master)
    with hung.Hung(late.process.pid, "rq-zookeeper"):
        world.shell("stop_master\n")
        master.ends(0)
        assert master.said("stopping: StopMaster called by user") and not master.said("not stopped cleanly"), master.errors()
        until(lambda: other.said("is elected"), "the other one is elected")
        begin = time.monotonic()
        until(lambda: time.monotonic() > begin + 2, "the late one finds several times that the address refuses connections")
    until(lambda: world.master() is other, "the other one is the master")
    read_all(world)
    assert not any(p.said(f"{master.name}, the active master, has ended") for p in (late, other))
    restart(world, master)
    a_shutdown_ends_all(world)


def a_shutdown_ends_all(world):
    """The master ends last, and opens no region of the others elsewhere."""
    master = world.wait_for_master()
    connection = hbase.Connection(f"127.0.0.1:{master.ports[1]}", service="MasterService")
    connection.call("Shutdown", b"")
    connection.close()
    for process in others(world, master):
        process.ends(0)
        assert not master.said(f"{process.name} is fenced"), master.errors()
    master.ends(0)
    assert all(p.said("the cluster is being shut down") and not p.said("not stopped cleanly") for p in world.processes)
    assert not world.servers() and "running" not in world.keeper.tree("/hbase"), sorted(world.keeper.tree("/hbase"))
    for process in list(world.processes):
        restart(world, process)
    world.wait_for_master()
    assert "running" in world.keeper.tree("/hbase")
    read_all(world)


def are_there(world, server, table):
    return [region for region, port in regions_of(world, table).items() if port == server.ports[0]]


def draining(world):
    return sorted(n[len("draining/"):] for n in world.keeper.tree("/hbase") if n.startswith("draining/"))


def listed(world):
    return world.shell("list_decommissioned_regionservers\n")


def gets_none(world, server, table):
    world.shell(f"create '{table}', 'f', {SPLITS}\nbalancer\n")
    put_rows(world, table)
    assert not are_there(world, server, table), regions_of(world, table)
    world.shell(f"disable '{table}'\nenable '{table}'\n")
    assert not are_there(world, server, table), regions_of(world, table)
    world.shell(f"disable '{table}'\ndrop '{table}'\n")


def a_decommissioned_server_gets_no_region(world):
    """Its regions move away, also the next master gives it none, and recommissioning moves the named regions back."""
    master = world.wait_for_master()
    drained = others(world, master)[0]
    world.shell(f"create 'dc', 'f', {SPLITS}\n")
    put_rows(world, "dc")
    world.shell(f"move '{next(iter(regions_of(world, 'dc')))}', '{drained.name}'\n")
    mine = are_there(world, drained, "dc")
    world.shell(f"decommission_regionservers '{drained.name}'\n")
    assert drained.name in listed(world)
    assert are_there(world, drained, "dc") == mine, "without offload they stay"
    world.shell(f"decommission_regionservers ['{drained.name}'], true\n")
    until(lambda: drained.ports[0] not in open_regions(world, "dc").values() and len(open_regions(world, "dc")) == 7, "its regions are elsewhere")
    until(lambda: drained.ports[0] not in open_regions(world, "t").values(), "those of the other table, too")
    all_rows_of(world, "dc")
    read_all(world)
    until(lambda: draining(world) == [drained.name], "the znode is HBase's")
    gets_none(world, drained, "dd")
    master.kill()
    again = until(lambda: (lambda m: m if m not in (None, master) else None)(world.master()), "another master has opened meta")
    assert drained.name in listed(world)
    if again is not drained:
        gets_none(world, drained, "de")
    restart(world, master)
    world.shell(f"recommission_regionserver '{drained.name}', {mine + ['0123456789abcdef0123456789abcdef']}\n")
    until(lambda: set(mine) <= set(are_there(world, drained, "dc")) and len(open_regions(world, "dc")) == 7, "they are back")
    all_rows_of(world, "dc")
    assert drained.name not in listed(world)
    until(lambda: draining(world) == [], "the znode is gone")
    world.shell("disable 'dc'\ndrop 'dc'\n")


def a_mark_ends_with_its_server(world):
    drained = others(world, world.wait_for_master())[0]
    world.shell(f"decommission_regionservers ['{drained.name}'], false\n")
    until(lambda: draining(world) == [drained.name], "the znode")
    kill_and_wait(world, drained)
    until(lambda: draining(world) == [], "the znode is gone")
    again = restart(world, drained)
    assert drained.name not in listed(world) and again.name not in listed(world), listed(world)
    world.shell("create 'dm', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n")
    assert are_there(world, again, "dm"), regions_of(world, "dm")
    world.shell("disable 'dm'\ndrop 'dm'\n")


def a_decommissioned_host_is_refused(world):
    """hbase.master.reject.decommissioned.hosts: the mark outlives the server process, and refuses other servers of its host until it is
    removed."""
    setting = ["hbase.master.reject.decommissioned.hosts=true"]
    stop_all(world)
    for process in list(world.processes):
        restart(world, process, setting)
    drained = others(world, world.wait_for_master())[0]
    world.shell(f"decommission_regionservers ['{drained.name}'], false\n")
    kill_and_wait(world, drained)
    assert draining(world) == [drained.name] and drained.name in listed(world)
    ports = [str(port) for port in drained.ports]
    done = subprocess.run([RORQUAL, "server", "--cluster", world.place(), "--rs-port", ports[0], "--master-port", ports[1], "--http", "none"], text=True,
                          capture_output=True, timeout=DEADLINE, check=False)
    text = "Host 127.0.0.1 exists in the list of decommissioned servers and Master is configured to reject decommissioned hosts"
    assert done.returncode == 1 and text in done.stderr, done
    world.shell(f"recommission_regionserver '{drained.name}'\n")
    until(lambda: draining(world) == [], "the znode is gone")
    restart(world, drained, setting)
    read_all(world)
    stop_all(world)


def nobody_takes_the_regions_of_all(world):
    """As in HBase the marks stay and the call fails."""
    names = str([p.name for p in world.processes])
    failed = world.shell(f"begin\n  decommission_regionservers {names}, true\nrescue => e\n  puts \"refused: #{{e.message}}\"\nend\n")
    assert "Unable to determine a plan to move" in failed, failed
    assert all(p.name in listed(world) for p in world.processes)
    read_all(world)
    for process in world.processes:
        world.shell(f"recommission_regionserver '{process.name}'\n")
    until(lambda: draining(world) == [], "the znodes are gone")


def settings_are_read_again(world):
    """By SIGHUP, and by calls to each server and to the master, which are processes with a file of settings."""
    rows, flush = "hbase.rpc.rows.warning.threshold", "hbase.hregion.memstore.flush.size"
    master = world.wait_for_master()
    hung_up, called = others(world, master)

    def are_now(process, value):
        return process.said(f"setting {rows} is now '{value}'")
    world.settings.write_text(f"{rows}=3001\nrorqual.loops=7\n")
    hung_up.process.send_signal(signal.SIGHUP)
    until(lambda: are_now(hung_up, 3001), "one has read it")
    assert hung_up.said("rorqual.loops: '7' takes effect at the next start") and not are_now(called, 3001)
    world.shell(f"update_config '{called.name}'\n")
    assert are_now(called, 3001) and not are_now(master, 3001)
    as_master = ",".join([*master.name.split(",")[:1], str(master.ports[1]), *master.name.split(",")[2:]])
    world.shell(f"update_config '{as_master}'\n")
    assert are_now(master, 3001)
    world.settings.write_text(f"{rows}=3002\nhbase.regionserver.thread.compaction.small=3\n")
    world.shell("update_all_config\n")
    assert all(are_now(p, 3002) and p.said("thread.compaction.small is now '3'") for p in world.processes)
    world.settings.write_text(f"{rows}=3003\n{flush}=64\n")
    failed = world.shell("begin\n  update_all_config\nrescue => e\n  puts \"refused: #{e.message}\"\nend\n")
    assert "refused: " in failed and "64 bytes" in failed, failed
    assert not any(are_now(p, 3003) for p in world.processes)
    world.settings.write_text("")
    world.shell("update_all_config\n")


def files_of(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def a_check_finds_errors_and_changes_nothing(world):
    """The store is a copy, which no server changes meanwhile."""
    store, new = world.folder / "copy", world.folder / "none"
    subprocess.run(["cp", "-r", world.store, store], stderr=subprocess.DEVNULL, check=False)  # files may disappear meanwhile
    before = files_of(store)

    def check(place, code):
        done = subprocess.run([RORQUAL, "server", "--check", "--cluster", place, "--rs-port", "0", "--master-port", "0", "--http", "none"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code and done.stderr == "", done
        return done.stdout

    def place(path, secret=world.secret):
        return f"zk=127.0.0.1:1/hbase,store={path},secret={secret}"
    out = check(place(store), 0)
    assert "has cluster " in out and "zookeeper 127.0.0.1:1/hbase" in out and "listen    127.0.0.1: master 0, regionserver 0" in out, out
    assert "has no cluster yet" in check(place(new), 0) and not new.exists()
    for wrong, text in [(place(store / "files"), "is the data folder of a standalone server or of HBase"), (place(store, "/nowhere"), "/nowhere"),
                        (f"store={store}", "zk=HOST:PORT/ROOT is missing")]:
        out = check(wrong, 2)
        assert "PROBLEM" in out and text in out, (wrong, out)
    assert files_of(store) == before
    shutil.rmtree(store)


TESTS = [settings_are_read_again, a_check_finds_errors_and_changes_nothing, a_killed_server_is_found_before_its_session_ends, a_killed_master_is_replaced_before_its_session_ends,
         a_master_that_stops_in_order_is_not_fenced_by_standbys, a_decommissioned_server_gets_no_region, a_mark_ends_with_its_server,
         a_decommissioned_host_is_refused, nobody_takes_the_regions_of_all]
