# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: this cluster replicates to another one; a standalone server is the sink."""
import contextlib
import subprocess
import urllib.request

from cluster_replication import SCOPED, rows_of, source_rows
from cluster_world import SHELL, kill_and_wait, open_regions, others, regions_of, restart
from membership import DEADLINE, until
from replication import Node

SPLITS = "SPLITS => ['2', '4', '6', '8']"
FAST = ("replication.source.sleepforretries=50", "replication.source.maxretriesmultiplier=4")
PUTS = 3000


def queues_of(world):
    """The servers whose logs have queues on the shared storage. A log without queues stays until its regions are flushed."""
    return world.keys_of("queues")


def sources_of(world):
    return [line for line in world.shell("status 'replication', 'source'\n").splitlines() if "PeerID=" in line]


def metrics(process):
    """{name and labels: value}"""
    with urllib.request.urlopen(f"http://127.0.0.1:{process.ports[2]}/metrics", timeout=DEADLINE) as page:
        lines = page.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


@contextlib.contextmanager
def sink_of(world, table):
    """A standalone server with the table, and the cluster's peer p that replicates to it. After a failure world.restore() removes peer and
    table."""
    sink = Node(world.folder / f"sink-of-{table}", *FAST)
    try:
        sink.client.create(table, SCOPED)
        world.replicated.append(table)
        world.shell(f"create '{table}', {{NAME => 'f', VERSIONS => 3, REPLICATION_SCOPE => 1}}, {SPLITS}\nadd_peer 'p', CLUSTER_KEY => '{sink.key}'\n")
        yield sink
        world.remove_replicated()
        problem = sink.stop()
        assert problem is None, problem
    finally:
        sink.server.kill()


@contextlib.contextmanager
def written(world, table):
    """Puts PUTS rows while the body runs, and afterwards the rest; yields a function that waits until `count` more are acknowledged."""
    script, out = world.folder / f"{table}.rb", world.folder / f"{table}.out"
    script.write_text("".join(f"put '{table}', '{i % 10}{i:05}', 'f:q', '{i}'\n" for i in range(PUTS)))
    with open(out, "wb") as sink:
        writer = subprocess.Popen([SHELL, "shell", "-n", "-Dhbase.client.retries.number=20", "--zk", f"127.0.0.1:{world.keeper.port}",
                                   str(script)], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)

    def lines():
        return out.read_bytes().count(b"\n")

    def more(count):
        mark = min(lines() + count, PUTS)
        until(lambda: lines() >= mark or writer.poll() is not None, "writes go on")
    try:
        yield more
        assert writer.wait(timeout=2 * DEADLINE) == 0, out.read_text(errors="replace")[-2000:]
    finally:
        writer.kill()
        writer.wait()


def arrives(world, sink, table):
    wanted = rows_of(world, table)
    until(lambda: source_rows(sink, table) == wanted, f"all rows of {table} are at the peer")
    return wanted


def a_cluster_replicates_while_its_servers_are_killed(world):
    """The peer is away at first, so that logs of ended servers have something to ship; then a server is killed while it ships."""
    with sink_of(world, "src") as sink:
        assert len(set(regions_of(world, "src").values())) == 3
        world.shell("put 'src', 'first', 'f:q', '1'\n")
        arrives(world, sink, "src")
        until(lambda: len(sources_of(world)) == 3, "each server has a source")
        sink.kill()
        with written(world, "src") as more:
            more(PUTS // 10)
            master = world.wait_for_master()
            first = others(world, master)[0]
            first.kill()
            until(lambda: master.said(f"{first.name} is fenced"), "the master has fenced it")
            more(PUTS // 10)
            sink.start()
            more(PUTS // 10)
            second = others(world, master)[0]
            second.kill()
            restart(world, first)
            more(PUTS // 10)
            master.kill()
            world.wait_for_master()
            restart(world, second)
            more(PUTS // 10)
            region, port = sorted(regions_of(world, "src").items())[0]
            to = next(p for p in world.processes if p.runs() and p.ports[0] != port)
            world.shell(f"move '{region}', '{to.name}'\n")
            name = next(n for n in open_regions(world, "src") if n.startswith("src,4,"))
            world.shell(f"split '{name}', '5'\n")
        restart(world, master)
        assert len(arrives(world, sink, "src")) == PUTS + 1
        world.shell("deleteall 'src', 'first'\n")
        assert len(arrives(world, sink, "src")) == PUTS
        ended = {p.name for p in (first, second, master)}
        until(lambda: not ended & set(queues_of(world)), "the queues of ended servers are removed")


def a_server_that_stops_leaves_its_queue_to_others(world):
    with sink_of(world, "left") as sink:
        sink.kill()
        world.shell("".join(f"put 'left', '{n}x', 'f:q', '{n}'\n" for n in range(10)))
        stopped = next(p for p in others(world, world.wait_for_master()) if p.ports[0] in regions_of(world, "left").values())
        stopped.stop()
        sink.start()
        assert len(arrives(world, sink, "left")) == 10
        until(lambda: stopped.name not in queues_of(world), "its queue is removed")
        restart(world, stopped)


def all_servers_end_before_the_peer_has_everything(world):
    with sink_of(world, "all") as sink:
        sink.kill()
        world.shell("".join(f"put 'all', '{n}x', 'f:q', '{n}'\n" for n in range(10)))
        ended = list(world.processes)
        for process in ended:
            process.kill()
        for process in ended:
            restart(world, process)
        world.wait_for_master()
        sink.start()
        assert len(arrives(world, sink, "all")) == 10
        until(lambda: not {p.name for p in ended} & set(queues_of(world)), "the queues of the ended servers are removed")


def a_disabled_peer_gets_nothing_and_then_everything(world):
    with sink_of(world, "off") as sink:
        world.shell("put 'off', 'a', 'f:q', '1'\n")
        arrives(world, sink, "off")
        world.shell("disable_peer 'p'\nput 'off', 'b', 'f:q', '2'\nput 'off', '8', 'f:q', '3'\n")
        killed = others(world, world.wait_for_master())[0]
        killed.kill()
        restart(world, killed)
        world.shell("put 'off', '1', 'f:q', '4'\n")
        assert source_rows(sink, "off") == {"a": "1"}
        world.shell("enable_peer 'p'\n")
        assert len(arrives(world, sink, "off")) == 4
        world.shell("disable_peer 'p'\nput 'off', 'c', 'f:q', '5'\nremove_peer 'p'\n")
        until(lambda: killed.name not in queues_of(world), "a removed peer keeps no queue")
        world.shell(f"add_peer 'p', CLUSTER_KEY => '{sink.key}'\nput 'off', 'd', 'f:q', '6'\n")
        until(lambda: source_rows(sink, "off").get("d") == "6", "a peer that is added again gets new writes")
        assert "c" not in source_rows(sink, "off")  # written while it was disabled, before it was removed


def what_waits_is_shown(world):
    """Queues without a source, ended logs that are kept, and the lag."""
    lag, kept, ended = 'rorqual_replication_lag_seconds{peer="p"}', "rorqual_replication_kept_logs", 'rorqual_replication_ended_logs{peer="p"}'
    with sink_of(world, "waits") as sink:
        world.shell("".join(f"put 'waits', '{n}a', 'f:q', '1'\n" for n in range(10)))
        arrives(world, sink, "waits")
        until(lambda: sum(metrics(p)['rorqual_replication_shipped_records_total{peer="p"}'] for p in world.processes) >= 10, "what was shipped is counted")
        sink.kill()
        world.shell("".join(f"put 'waits', '{n}b', 'f:q', '2'\n" for n in range(10)))
        until(lambda: all(metrics(p)[lag] > 0 for p in world.processes), "the lag of each server")
        until(lambda: not all("No Reader" in line for line in sources_of(world)), "the sources are shown")
        world.shell("disable_peer 'p'\n")
        until(lambda: world.shell("status 'replication', 'source'\n").count("No Reader/Shipper threads") == 3, "queues of a disabled peer are shown")
        master = world.wait_for_master()
        killed = next(p for p in others(world, master) if p.ports[0] in regions_of(world, "waits").values())
        killed.kill()
        until(lambda: metrics(master)[kept] == 1, "the log of the killed server is kept")
        assert metrics(master)[ended] == 0  # nobody claims it for a disabled peer
        world.shell("enable_peer 'p'\n")
        until(lambda: sum(metrics(p)[ended] for p in others(world, killed)) == 1, "a server ships it")
        said = f'log={killed.name}'
        until(lambda: any(said in p.errors() for p in others(world, killed)), "what fails names the log")
        sink.start()
        assert len(arrives(world, sink, "waits")) == 20
        until(lambda: metrics(master)[kept] == 0, "the log is removed")
        restart(world, killed)


def a_fence_does_not_wait_for_ended_logs(world):
    """The master has begun to remove many ended logs, here names without logs, when a server is killed."""
    folder = world.store / "shared/set/ended"
    folder.mkdir(exist_ok=True)
    names = [folder / f"127.0.0.1,1,{i:05}" for i in range(5000)]

    def left():
        return sum(key.startswith("127.0.0.1,1,") for key in world.keys_of("ended"))
    for name in names:
        name.touch()
    until(lambda: left() < len(names), "the master looks at the names")
    killed = kill_and_wait(world, others(world, world.wait_for_master())[0])
    assert left() > 0, "the fence came after all ended logs"
    for name in names:
        name.unlink(missing_ok=True)
    restart(world, killed)


def writes_do_not_return_to_their_cluster(world):
    with sink_of(world, "both") as sink:
        sink.add_peer("c", f"127.0.0.1:{world.keeper.port}:/hbase")
        world.shell("put 'both', '1a', 'f:q', '1'\nput 'both', '5a', 'f:q', '2'\n")
        sink.put("both", b"3b", b"3")
        sink.put("both", b"7b", b"4")
        wanted = {"1a": "1", "5a": "2", "3b": "3", "7b": "4"}
        until(lambda: source_rows(sink, "both") == wanted and rows_of(world, "both") == wanted, "both have all rows")
        until(lambda: sink.metric("rorqual_replication_lag_seconds", "c") == 0, "no lag")
        assert sink.metric("rorqual_replication_shipped_records_total", "c") == 2
        sink.peer("RemoveReplicationPeer", "c")


def a_log_that_grows_too_long_disables_the_peer(world):
    with sink_of(world, "long") as sink:
        limited = others(world, world.wait_for_master())[0]
        limited.stop()
        limited = restart(world, limited, settings=("rorqual.replication.log.max=100000",))
        region = next(iter(regions_of(world, "long")))
        world.shell(f"move '{region}', '{limited.name}'\nput 'long', '1a', 'f:q', '1'\n")
        arrives(world, sink, "long")
        sink.kill()
        value = "x" * 20000
        world.shell("".join(f"put 'long', '{n}{k}', 'f:q', '{value}'\n" for n in range(10) for k in range(8)))
        until(lambda: "DISABLED" in world.shell("list_peers\n"), "the peer is disabled")
        assert limited.said("peer p needs a resync")
        sink.start()
        world.shell("enable_peer 'p'\n" + "".join(f"put 'long', '{n}z', 'f:q', 'new'\n" for n in range(10)))
        until(lambda: list(source_rows(sink, "long").values()).count("new") == 10, "new writes arrive")
        # The last writes before the peer was enabled may arrive: a server reads the peers twice a second.
        assert "00" not in source_rows(sink, "long")
        limited.stop()
        restart(world, limited)


def what_a_peer_may_not_be_is_refused(world):
    for change, text in [("add_peer '1', CLUSTER_KEY => 'localhost:1:/h', SERIAL => true", "serial"),
                         ("add_peer 'a-b', CLUSTER_KEY => 'localhost:1:/h'", "invalid peer name"),
                         ("remove_peer 'none'", "")]:
        script = world.folder / "refused.rb"
        script.write_text(change + "\n")
        done = subprocess.run([SHELL, "shell", "-n", "--zk", f"127.0.0.1:{world.keeper.port}", str(script)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=DEADLINE, check=False)
        assert done.returncode != 0 and text in done.stdout + done.stderr, (change, done.stdout + done.stderr)


TESTS = [a_cluster_replicates_while_its_servers_are_killed, a_server_that_stops_leaves_its_queue_to_others,
         all_servers_end_before_the_peer_has_everything, a_disabled_peer_gets_nothing_and_then_everything,
         what_waits_is_shown, a_fence_does_not_wait_for_ended_logs, writes_do_not_return_to_their_cluster,
         a_log_that_grows_too_long_disables_the_peer, what_a_peer_may_not_be_is_refused]
