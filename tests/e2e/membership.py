#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Members of a cluster (registry/zk_member.h) in a real ZooKeeper: three processes elect one, with kill -9, an expired session, a
restart of ZooKeeper and orderly stops; a process of another cluster is refused. The znodes are compared with those of HBase 2.6.1.
Then members that write logs on a shared folder (vfs/shared.h): the active member fences killed and stopped members, and finds all
writes that they had acknowledged.

    membership.py            ZooKeeper from Debian's package, on a free port
    HBASE=1 membership.py    also starts a real HBase, and compares its znodes with the list in this file
    PROGRAMS=FOLDER          folder of the programs (default build/tests/cluster)
    SESSION_MS=5000          longer sessions, for a loaded machine

Ends with 'N passed, N failed'.
"""
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import ROOT, Report, pause

sys.path.insert(0, str(ROOT / "tests/wire"))
sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402
import zookeeper  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / "build/tests/cluster"))
EXIT_ABORTED = 9  # exit code of tests/cluster/server.c
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # ZooKeeper's start then takes half of the CPU time
JARS = "/usr/share/java/zookeeper.jar"
SESSION_MS = int(os.environ.get("SESSION_MS", "2000"))
ENDLESS_MS = 600000  # a session time-out longer than DEADLINE: a test that waits for its end fails
DEADLINE = 300  # seconds; reached only after an error
CLUSTER = "0c8a7f52-1b7d-4f0e-9d62-3f6f3f1d2a77"

# The znodes of HBase 2.6.1 before user tables exist (HBASE=1 checks this list): name, ephemeral, has a value. A master that has
# opened hbase:meta writes meta-region-server, namespace/* and table/*.
OF_HBASE = {
    ("backup-masters", False, False), ("draining", False, False), ("flush-table-proc", False, False),
    ("flush-table-proc/abort", False, False), ("flush-table-proc/acquired", False, False), ("flush-table-proc/reached", False, False),
    ("hbaseid", False, True), ("master", True, True), ("master-maintenance", False, False), ("meta-region-server", False, True),
    ("namespace", False, False), ("namespace/default", False, True), ("namespace/hbase", False, True), ("online-snapshot", False, False),
    ("online-snapshot/abort", False, False), ("online-snapshot/acquired", False, False), ("online-snapshot/reached", False, False),
    ("rs", False, False), ("rs/SERVER", True, True), ("running", False, True), ("splitWAL", False, False), ("table", False, False),
    ("table/hbase:meta", False, True), ("table/hbase:namespace", False, True),
}
OF_META = {"meta-region-server", "namespace/default", "namespace/hbase", "table/hbase:meta", "table/hbase:namespace"}


# ---- ZooKeeper


class Keeper:
    """A ZooKeeper with one server. A tick of half a second allows session timeouts of one second. ZooKeeper does not sync its
    files, because on a busy disk a sync takes seconds, during which it does not respond; a killed process's writes are in the
    page cache."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = peer.free_ports(1)[0]
        self.config = self.folder / "zoo.cfg"
        self.config.write_text(f"tickTime=500\ndataDir={folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                               "maxSessionTimeout=600000\nadmin.enableServer=false\n", encoding="ascii")
        self.process = None
        self.start()

    def start(self):
        with open(self.folder / "zookeeper.log", "ab") as log:
            self.process = subprocess.Popen(["java", "-Xmx128m", *BRIEF, "-Dzookeeper.forceSync=no", "-cp", f"{self.folder}:{JARS}",
                                             "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.config)],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.patience = 1
        try:
            until(self.answers, "ZooKeeper answers")
        except BaseException:
            self.kill()
            raise

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "zookeeper.log").read_text(errors="replace")[-2000:])
        try:
            session = self.session(timeout=self.patience)
            session.close()
            return True
        except TimeoutError:  # ZooKeeper never responds on a connection made during its start: another one is needed
            self.patience *= 2
            return False
        except (OSError, EOFError):  # ZooKeeper is not ready yet
            return False

    def session(self, **arguments):
        return zookeeper.Session(f"127.0.0.1:{self.port}", read_only=True, **arguments)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tree(self, root):
        """{path below the root: (value, owner)}"""
        session = self.session()
        try:
            return read_tree(session, root)
        finally:
            session.close()


def read_tree(session, root):
    found, todo = {}, [root]
    while todo:
        path = todo.pop()
        error, body = session.call(zookeeper.GET_DATA, zookeeper.text(path) + b"\0")
        if error != zookeeper.OK:  # an ephemeral node that no longer exists
            continue
        length = max(0, struct.unpack(">i", body[:4])[0])
        owner = struct.unpack(">q", body[4 + length + 44:4 + length + 52])[0]
        found[path[len(root) + 1:]] = (body[4:4 + length], owner)
        error, body = session.call(zookeeper.GET_CHILDREN, zookeeper.text(path) + b"\0")
        if error != zookeeper.OK:
            continue
        at = 4
        for _ in range(struct.unpack(">i", body[:4])[0]):
            end = at + 4 + struct.unpack(">i", body[at:at + 4])[0]
            todo.append(path + "/" + body[at + 4:end].decode())
            at = end
    found.pop("", None)
    return found


def until(condition, what):
    """Waits for an action of another process."""
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {DEADLINE} s: {what}"
        time.sleep(0.02)
    return value


# ---- members


class Member:
    """A member process; `last` is the last line it printed."""

    def __init__(self, world, port, code, root="/hbase", cluster=CLUSTER, session_ms=SESSION_MS):
        self.name, self.master = f"localhost,{port},{code}", f"localhost,{port + 1},{code}"
        self.port, self.code = port, code
        self.last = {}
        self.was_active = False
        self.process = subprocess.Popen([str(PROGRAMS / "member"), f"127.0.0.1:{world.keeper.port}", root, cluster, str(port), str(code), str(session_ms)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        world.started.append(self)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            state, connection, active, rest = line.rstrip("\n").split(" ", 3)
            servers, trouble = rest.split(" trouble=", 1)
            self.last = {"state": state, "connected": connection == "connected", "active": active.partition("=")[2],
                         "servers": [s for s in servers.partition("=")[2].split(";") if s], "trouble": trouble}
            self.was_active = self.was_active or state == "active"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=DEADLINE) == 0

    def state(self):
        return self.last.get("state")


class Server:
    """A member that writes a log on the shared folder (tests/cluster/server.c)."""

    def __init__(self, world, port, code):
        self.name = f"localhost,{port},{code}"
        self.state, self.acknowledged, self.fenced, self.aborted = None, 0, {}, False
        self.process = subprocess.Popen([str(PROGRAMS / "server"), f"127.0.0.1:{world.keeper.port}", str(world.store), str(port), str(code),
                                         str(SESSION_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        world.started.append(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "acknowledged":
                self.acknowledged = int(words[1])
            elif words[0] == "fenced":
                self.fenced[words[1]] = int(words[2])
            elif words[0] == "aborted":
                self.aborted = True
            else:
                self.state = words[0]

    def end(self):
        """Waits until the process has ended and all its output is read; returns its exit code."""
        code = self.process.wait(timeout=DEADLINE)
        self.reader.join(timeout=DEADLINE)
        return code

    def kill(self):
        self.process.kill()
        self.end()


class World:
    def __init__(self, folder):
        self.started = []
        self.store = pathlib.Path(folder) / "store"
        self.store.mkdir()
        self.keeper = Keeper(folder)
        self.ports = peer.free_ports(8)
        self.code = 1700000000000

    def member(self, port, **arguments):
        self.code += 1
        return Member(self, port, self.code, **arguments)

    def stop(self):
        for member in self.started:
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
                member.kill()
            member.process.stdin.close()
            member.process.stdout.close()
        self.keeper.kill()


def settled(members):
    """Waits until one member is active, the others are standby and know the active one, and all know all members;
    returns the active one."""
    def look():
        active = [m for m in members if m.state() == "active"]
        good = len(active) == 1 and all(
            m.state() in ("active", "standby") and m.last["connected"] and m.last["active"] == active[0].master
            and m.last["servers"] == sorted(o.name for o in members) for m in members)
        return active[0] if good else None
    try:
        return until(look, "an election")
    except AssertionError as failed:
        raise AssertionError(f"{failed}: {[m.last for m in members]}") from None


def nodes_agree(world, members, active, root="/hbase"):
    tree = world.keeper.tree(root)
    assert {n for n in tree if n.startswith("rs/")} == {"rs/" + m.name for m in members}, tree.keys()
    assert {n for n in tree if n.startswith("backup-masters/")} == {"backup-masters/" + m.master for m in members if m is not active}
    assert server_of(tree["master"][0]) == active.master


# ---- values


def message_of(value):
    """The message in a znode's value, after 0xFF, the writer's id and PBUF."""
    assert value[0] == 0xFF, value
    length = struct.unpack(">i", value[1:5])[0]
    assert value[5 + length:9 + length] == b"PBUF", value
    return value[9 + length:]


def fields(message):
    """[(number, wire type, value)] of a protobuf message."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = message[at - value:at]
        found.append((key >> 3, key & 7, value))
    return found


def server_of(value):
    name = {number: v for number, _, v in fields(dict((n, v) for n, _, v in fields(message_of(value)))[1])}
    return f"{name[1].decode()},{name[2]},{name[3]}"


def shape(tree):
    """The part of a tree that does not depend on names and times."""
    return {("rs/SERVER" if name.startswith("rs/") else name, owner != 0, len(value) > 0) for name, (value, owner) in tree.items()
            if not name.startswith("backup-masters/")}


# ---- the tests


def three_processes_elect_one(w):
    w.members = [w.member(port) for port in w.ports[:3]]
    active = settled(w.members)
    nodes_agree(w, w.members, active)
    assert sum(m.was_active for m in w.members) == 1


def the_znodes_are_those_of_hbase(w):
    tree = w.keeper.tree("/hbase")
    ours, theirs = shape(tree), {node for node in OF_HBASE if node[0] not in OF_META}
    assert ours == theirs, (ours - theirs, theirs - ours)
    active = settled(w.members)
    number_and_type = [(n, t) for n, t, _ in fields(message_of(tree["master"][0]))]
    # fields: server, version of the RPC, port of the pages
    assert number_and_type == [(1, 2), (2, 0), (3, 0)], number_and_type
    assert fields(message_of(tree["hbaseid"][0])) == [(1, 2, CLUSTER.encode())]
    assert fields(message_of(tree["rs/" + active.name][0]))[0] == (1, 0, 11)
    assert b" UTC 20" in fields(message_of(tree["running"][0]))[0][2]


def a_killed_master_is_replaced(w):
    active = settled(w.members)
    active.kill()
    w.members.remove(active)
    nodes_agree(w, w.members, settled(w.members))
    w.members.append(w.member(active.port))
    settled(w.members)


def a_master_that_leaves_is_replaced_without_waiting_for_its_session(w):
    members = [w.member(port, root="/deep/er/root", session_ms=ENDLESS_MS) for port in w.ports[3:5]]
    active = settled(members)
    active.leave()
    members.remove(active)
    nodes_agree(w, members, settled(members), root="/deep/er/root")
    members[0].leave()
    assert not [n for n in w.keeper.tree("/deep/er/root") if n.startswith(("rs/", "backup-masters/")) or n == "master"]


def a_restarted_master_does_not_wait_for_its_own_former_session(w):
    first = w.member(w.ports[5], root="/alone", session_ms=ENDLESS_MS)
    settled([first])
    first.kill()
    second = w.member(w.ports[5], root="/alone", session_ms=ENDLESS_MS)
    until(lambda: second.state() == "active", "the second is active")
    assert server_of(w.keeper.tree("/alone")["master"][0]) == second.master
    second.leave()


def a_master_whose_session_expires_stands_by_when_it_continues(w):
    active = settled(w.members)
    pause(active.process)
    others = [m for m in w.members if m is not active]
    # The stopped member still believes to be the master; no other member does.
    settled(others)
    assert active.state() == "active"
    active.process.send_signal(signal.SIGCONT)
    until(lambda: active.state() != "active", "the former master hears of it")
    assert settled(w.members) in others
    nodes_agree(w, w.members, settled(w.members))


def zookeeper_restarts_and_all_stay(w):
    active = settled(w.members)
    owner = w.keeper.tree("/hbase")["master"][1]
    w.keeper.kill()
    until(lambda: all(not m.last["connected"] for m in w.members), "all notice")
    assert active.state() == "active"  # the active member has no further information
    w.keeper.start()
    assert settled(w.members) is active or w.keeper.tree("/hbase")["master"][1] != owner
    nodes_agree(w, w.members, settled(w.members))


def a_process_of_another_cluster_is_refused(w):
    stranger = w.member(w.ports[6], cluster="11111111-2222-3333-4444-555555555555")
    until(lambda: stranger.state() == "refused", "refused")
    assert CLUSTER in stranger.last["trouble"] and "11111111" in stranger.last["trouble"], stranger.last
    assert "rs/" + stranger.name not in w.keeper.tree("/hbase")
    stranger.leave()
    settled(w.members)


def a_foreign_value_in_the_masters_place_is_reported(w):
    """A znode with a value that HBase would not write: no member becomes master over it, and none removes it."""
    session = w.keeper.session()
    for path, value in (("/odd", b""), ("/odd/master", b"nonsense")):
        acl = struct.pack(">ii", 1, 31) + zookeeper.text("world") + zookeeper.text("anyone")
        error, _ = session.call(1, zookeeper.text(path) + zookeeper.text(value) + acl + struct.pack(">i", 0))
        assert error == zookeeper.OK
    session.close()
    member = w.member(w.ports[7], root="/odd")
    until(lambda: "not in HBase's format" in member.last.get("trouble", ""), "the value is reported")
    assert w.keeper.tree("/odd")["master"][0] == b"nonsense"
    member.leave()


# ---- servers with logs


def three_servers(w):
    """Three servers that have written, one of which is active."""
    alive = [s for s in getattr(w, "servers", []) if s.process.poll() is None]
    for port in w.ports[:3 - len(alive)]:
        w.code += 1
        alive.append(Server(w, port, w.code))
    w.servers = alive
    for server in alive:
        until(lambda s=server: s.state in ("active", "standby") and s.acknowledged > 0, "a server writes")
    until(lambda: {f"rs/{s.name}" for s in alive} == {n for n in w.keeper.tree("/fenced") if n.startswith("rs/")}, "all are known")
    return until(lambda: next((s for s in alive if s.state == "active"), None), "one is active")


def fenced(w, server, but=None):
    """The number of the server's writes that its successor found."""
    others = [s for s in w.servers if s is not server and s is not but]
    return until(lambda: next((s.fenced[server.name] for s in others if server.name in s.fenced), None), f"{server.name} is fenced")


def a_killed_server_is_fenced_and_loses_nothing(w):
    active = three_servers(w)
    victim = next(s for s in w.servers if s is not active)
    victim.kill()
    found = fenced(w, victim)
    assert found >= victim.acknowledged > 0, (found, victim.acknowledged)


def a_killed_master_is_fenced_by_the_next(w):
    victim = three_servers(w)
    victim.kill()
    found = fenced(w, victim)
    assert found >= victim.acknowledged > 0, (found, victim.acknowledged)


def a_stopped_server_writes_nothing_when_it_continues(w):
    active = three_servers(w)
    victim = next(s for s in w.servers if s is not active)
    pause(victim.process)
    found = fenced(w, victim)
    victim.process.send_signal(signal.SIGCONT)
    assert victim.end() == EXIT_ABORTED
    assert victim.aborted and found >= victim.acknowledged > 0, (found, victim.acknowledged)


def a_stopped_master_is_replaced_and_fenced(w):
    victim = three_servers(w)
    pause(victim.process)
    found = fenced(w, victim)
    victim.process.send_signal(signal.SIGCONT)
    assert victim.end() == EXIT_ABORTED
    assert found >= victim.acknowledged > 0, (found, victim.acknowledged)
    assert next(s for s in w.servers if s.state == "active" and s is not victim)


def a_server_that_leaves_has_sealed_its_log(w):
    for _ in range(4):
        active = three_servers(w)
        leaver = next(s for s in w.servers if s is not active)
        leaver.process.stdin.close()
        assert leaver.end() == 0
        assert fenced(w, leaver) >= leaver.acknowledged > 0


TESTS = [three_processes_elect_one, the_znodes_are_those_of_hbase, a_killed_master_is_replaced,
         a_master_that_leaves_is_replaced_without_waiting_for_its_session, a_restarted_master_does_not_wait_for_its_own_former_session,
         a_master_whose_session_expires_stands_by_when_it_continues, zookeeper_restarts_and_all_stay,
         a_process_of_another_cluster_is_refused, a_foreign_value_in_the_masters_place_is_reported,
         a_killed_server_is_fenced_and_loses_nothing, a_killed_master_is_fenced_by_the_next, a_stopped_server_writes_nothing_when_it_continues,
         a_stopped_master_is_replaced_and_fenced, a_server_that_leaves_has_sealed_its_log]


def compare_with_hbase(report, folder):
    """Compares the list in this file with the znodes of a real HBase."""
    problem = None
    with peer.HBase(folder) as hbase:
        session = zookeeper.Session(hbase.zk)
        tree = read_tree(session, "/hbase")
        session.close()
        found = shape(tree)
        if found != OF_HBASE:
            problem = f"more: {found - OF_HBASE}, less: {OF_HBASE - found}"
        elif [(n, t) for n, t, _ in fields(message_of(tree["master"][0]))] != [(1, 2), (2, 0), (3, 0)]:
            problem = f"master is {tree['master'][0]}"
    report.outcome("membership/the list of HBase's znodes", problem)


def main():
    peer.orderly()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        if os.environ.get("HBASE"):
            compare_with_hbase(report, folder)
        world = World(folder)
        try:
            report.run("membership", world, TESTS)
        finally:
            world.stop()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
