# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: another cluster replicates to this one; a standalone server is the source."""
import contextlib
import subprocess
import threading

import hbase
from cluster_world import SHELL, open_regions, others, regions_of, restart
from hbase import Refused, key_value, number, text
from membership import DEADLINE, until
from replication import Node

SCOPED = {b"f": {"VERSIONS": "3", "REPLICATION_SCOPE": "1"}}
SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"
WITH_TAGS = "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"


@contextlib.contextmanager
def source_of(world, table):
    """A standalone server with the table, and the cluster as its peer c."""
    source = Node(world.folder / f"source-of-{table}", "replication.source.sleepforretries=50", "replication.source.maxretriesmultiplier=4")
    try:
        source.client.create(table, SCOPED)
        source.add_peer("c", f"127.0.0.1:{world.keeper.port}:/hbase")
        yield source
        problem = source.stop()
        assert problem is None, problem
    finally:
        source.server.kill()


def rows_of(world, table):
    lines = [line for line in world.shell(f"scan '{table}'\n").splitlines() if "column=f:q," in line]
    return {line.split()[0]: line.rsplit("value=", 1)[1] for line in lines}


def source_rows(source, table):
    return {row.decode(): cells[(b"f", b"q")].decode() for row, cells in source.rows(table).items()}


def sinks_of(world):
    return [line for line in world.shell("status 'replication'\n").splitlines() if "SINK" in line]


@contextlib.contextmanager
def written(source, table):
    """Puts rows of all letters while the body runs; yields a function that waits until `count` more puts are acknowledged."""
    stop = threading.Event()
    acknowledged = []
    problems = []

    def write():
        n = 0
        while not stop.is_set():
            row = b"%c%05d" % (97 + n % 26, n)
            try:
                source.put(table, row, b"v%d" % n)
            except (OSError, EOFError, ValueError, Refused) as e:
                problems.append(e)
                return
            acknowledged.append(row.decode())
            n += 1

    def more(count):
        mark = len(acknowledged)
        until(lambda: problems or len(acknowledged) > mark + count, "writes go on")
        assert not problems, problems
    writer = threading.Thread(target=write)
    writer.start()
    try:
        more.rows = acknowledged
        yield more
    finally:
        stop.set()
        writer.join()


def shell_of(source, text_of_script):
    script = source.folder / "script.rb"
    script.write_text(text_of_script)
    done = subprocess.run([SHELL, "shell", "-n", "--zk", source.server.zk, str(script)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def a_source_reaches_regions_on_all_servers(world):
    """The source repeats its batches while the table is missing, regions move and split, and a server and then the master are killed."""
    with source_of(world, "rep") as source:
        source.put("rep", b"early", b"1")
        until(lambda: (source.metric("rorqual_replication_failed_attempts_total", "c") or 0) >= 1, "the table is missing")
        world.shell(f"create 'rep', {{NAME => 'f', VERSIONS => 3}}, {SPLITS}\n")
        assert len(set(regions_of(world, "rep").values())) == 3
        until(lambda: rows_of(world, "rep") == {"early": "1"}, "the first row")
        until(lambda: [line.count("SINK:") for line in sinks_of(world)] == [1, 1, 1], "each server has a sink")
        until(lambda: any("AgeOfLastAppliedOp=" in line for line in sinks_of(world)), "one has applied the row")
        with written(source, "rep") as more:
            more(100)
            region, port = sorted(regions_of(world, "rep").items())[0]
            to = next(p for p in world.processes if p.ports[0] != port)
            world.shell(f"move '{region}', '{to.name}'\n")
            more(100)
            name = next(n for n in open_regions(world, "rep") if n.startswith("rep,g,"))
            world.shell(f"split '{name}', 'i'\n")
            more(100)
            master = world.wait_for_master()
            killed = others(world, master)[0]
            killed.kill()
            until(lambda: master.said(f"{killed.name} is fenced"), "the master has fenced it")
            more(100)
            master.kill()
            world.wait_for_master()
            more(100)
        shell_of(source, "".join(f"deleteall 'rep', '{row}'\n" for row in more.rows[::50]))
        wanted = source_rows(source, "rep")
        assert len(wanted) > 400 and more.rows[0] not in wanted and more.rows[1] in wanted
        until(lambda: rows_of(world, "rep") == wanted, "the rows are the source's")
        until(lambda: source.metric("rorqual_replication_lag_seconds", "c") == 0, "no lag")
    for process in (killed, master):
        restart(world, process)
    world.shell("disable 'rep'\ndrop 'rep'\n")


def entry(table, cells, clusters=()):
    ids = b"".join(text(8, number(1, n) + number(2, n)) for n in clusters)
    return text(1, text(1, text(1, b"0" * 32) + text(2, table) + number(3, 1) + number(4, 1) + ids) + number(3, cells))


def sent(process, message, block=b""):
    """Sends it as a source does, on a connection of its own; returns the exception's name, or None."""
    connection = hbase.Connection(f"127.0.0.1:{process.ports[0]}", service="AdminService", codec=WITH_TAGS)
    try:
        connection.call("ReplicateWALEntry", message, block)
        return None
    except Refused as e:
        return e.name
    finally:
        connection.close()


def put(row, value, family=b"f", qualifier=b"q"):
    return key_value(row, family, qualifier, value, timestamp=1000)


def what_a_source_may_not_send_is_refused(world):
    world.shell(f"create 'ref', 'f', {SPLITS}\n")
    to = world.processes[0]
    for message, block, wanted in [
            (entry(b"none", 1), put(b"a", b"1"), "TableNotFoundException"),
            (entry(b"ref,g", 1), put(b"a", b"1"), "TableNotFoundException"),
            (entry(b"ref\0g", 1), put(b"a", b"1"), "TableNotFoundException"),
            (entry(b"", 1), put(b"a", b"1"), "TableNotFoundException"),
            (entry(b"hbase:meta", 1), put(b"ref,,1", b"1", b"info", b"server"), "TableNotFoundException"),
            (entry(b"ref", 2), put(b"a", b"1"), "DoNotRetryIOException"),
            (entry(b"ref", 1), put(b"a", b"1", b"g"), "NoSuchColumnFamilyException"),
            (entry(b"ref", 1, range(300)), put(b"a", b"1"), "DoNotRetryIOException"),
            (entry(b"ref", 1), put(b"a", b"1")[:-1], "DoNotRetryIOException"),
            (entry(b"ref", 1), put(b"a", b"1", b"METAFAMILY", b"HBASE::BULK_LOAD"), "DoNotRetryIOException")]:
        got = sent(to, message, block)
        assert got is not None and got.endswith(wanted), (message, got)
    assert rows_of(world, "ref") == {}
    # A window has 64 tables, 1,024 mutations or a megabyte: these are several of each. An entry of no cell is no entry.
    rows = [b"%c%05d" % (97 + n % 26, n) for n in range(3000)]
    large = b"x" * (3 << 19)
    message = entry(b"ref", len(rows), range(3)) + entry(b"ref", 0) + entry(b"none", 0) + entry(b"ref", 1)
    assert sent(to, message, b"".join(put(row, b"1") for row in rows) + put(b"large", large)) is None
    assert sent(to, b"") is None
    found = rows_of(world, "ref")
    assert len(found) == len(rows) + 1 and len(found["large"]) == len(large), len(found)
    an_unproven_sender_is_refused(to)
    world.shell("disable 'ref'\ndrop 'ref'\n")


def an_unproven_sender_is_refused(to):
    """The connections between servers have the same method."""
    connection = hbase.Connection(f"127.0.0.1:{to.ports[0]}", service="RorqualPeerService", codec=WITH_TAGS)
    try:
        connection.call("ReplicateWALEntry", entry(b"ref", 1), put(b"a", b"1"))
        raise AssertionError("accepted")
    except Refused as e:
        assert e.name.endswith("AccessDeniedException"), e
    finally:
        connection.close()


TESTS = [a_source_reaches_regions_on_all_servers, what_a_source_may_not_send_is_refused]
