#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of administrators' tools over the wire: HbckService, LockService and GetLocks, procedures with their parameters, the
normalizer, decommissioned servers, regions on the master's port, the end of the server by a call."""
import hashlib
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import Refused, fields, number, region, text  # pylint: disable=wrong-import-position

NONE = (1 << 64) - 1


class World:
    """A server and its services. Locks end soon, but not when this process or the server pauses for some seconds between two calls."""

    def __init__(self, folder, *arguments):
        self.folder = pathlib.Path(folder)
        self.arguments = ("-D", "hbase.master.procedure.remote.locks.timeout.ms=5000", *arguments)
        self.start()

    def start(self):
        self.server = rorqual.Server(self.folder / "data", self.folder / "server.log", *self.arguments)
        self.client = hbase.Client(self.server)
        self.hbck = hbase.Connection(self.server.master, "HbckService")
        self.locks = hbase.Connection(self.server.master, "LockService")
        self.master_admin = hbase.Connection(self.server.master, "AdminService")

    def self_name(self, start_code=None):
        info = fields(self.client.admin.call("GetServerInfo", b"")[1][0])
        name = fields(info[1][0])
        return text(1, name[1][0]) + number(2, name[2][0]) + number(3, start_code or name[3][0])

    def ddl(self, method, message):
        return self.client.procedure(self.client.master.call(method, message + number(2, hbase.nonce()) + number(3, hbase.nonce()))[1][0])


def refusal(action, *arguments):
    try:
        action(*arguments)
    except Refused as refused:
        return refused
    raise AssertionError("it passed")


def regions_are_known_on_the_masters_port(world):
    world.client.create("known", {"cf": {}}, splits=(b"m",))
    for _, name, encoded in world.client.regions("known"):
        for specifier in (region(name), region(encoded)):
            got = fields(world.master_admin.call("GetRegionInfo", text(1, specifier))[1][0])
            assert fields(got[2][0])[2] == [b"known"], got
    refused = refusal(world.master_admin.call, "GetRegionInfo", text(1, region(b"0" * 32)))
    assert refused.name == "UnknownRegionException", refused


def a_refused_call_names_the_point(world):
    refused = refusal(world.client.master.call, "NoSuchMethod", b"")
    assert refused.trace == "java.lang.UnsupportedOperationException: NoSuchMethod: no such method of MasterService", refused.trace


def the_check_runs(world):
    assert world.hbck.call("RunHbckChore", b"")[1] == [1]
    world.hbck.call("FixMeta", b"")


META = b"1588230740"


def forget(world, name):
    """Deletes a region's row in hbase:meta."""
    world.client.data.call("Mutate", text(1, region(META)) + text(2, text(1, name) + number(2, 3)))


def restart(world):
    world.client.close()
    assert world.server.stop() is None
    world.start()


def rows_are_there(world, table, rows):
    regions = world.client.regions(table)
    for row in rows:
        name = [n for start, n, _ in regions if start <= row][-1]
        if not world.client.data.get(name, row):
            return False
    return True


def all_serve(world, table):
    """Waits until each region of the table serves requests."""
    def serves(name):
        try:
            world.client.data.get(name, name.split(b",")[1] or b"\0")
            return True
        except Refused:
            return False
    hbase.wait_for(lambda: all(serves(name) for _, name, _ in world.client.regions(table)))


def lost_rows_of_meta_come_back(world):
    """Regions on disk return with their rows; a region that is not on disk is replaced by an empty one; a disabled table stays
    disabled."""
    world.client.create("holey", {"cf": {}}, splits=(b"b", b"d", b"f"))
    rows = (b"a", b"c", b"e", b"g")
    before = world.client.regions("holey")
    for (_, name, _), row in zip(before, rows):
        world.client.data.put(name, row, {(b"cf", b"q"): b"v"})
    for _, name, _ in (before[0], before[2], before[3]):
        forget(world, name)
    restart(world)
    gone = world.folder / "data" / "data" / "default" / "holey" / before[2][2].decode()
    shutil.rmtree(gone)
    left = world.client.regions("holey")
    assert [r[0] for r in left] == [b"b"], left
    world.hbck.call("FixMeta", b"")
    after = world.client.regions("holey")
    assert [r[0] for r in after] == [b"", b"b", b"d", b"f"], after
    assert [r for i, r in enumerate(after) if i != 2] == [r for i, r in enumerate(before) if i != 2], "the old regions"
    all_serve(world, "holey")
    assert rows_are_there(world, "holey", (b"a", b"c", b"g")), "old rows"
    assert not rows_are_there(world, "holey", (b"e",)), "the row of a removed folder"
    world.client.data.put(after[2][1], b"e", {(b"cf", b"q"): b"v"})
    world.hbck.call("FixMeta", b"")
    assert world.client.regions("holey") == after, "nothing is left to repair"
    world.ddl("DisableTable", text(1, hbase.table_name("holey")))
    forget(world, after[1][1])
    restart(world)
    world.hbck.call("FixMeta", b"")
    assert world.client.regions("holey") == after, "disabled"
    refused = refusal(world.client.data.get, after[1][1], b"c").name
    assert refused == "NotServingRegionException", refused
    world.ddl("EnableTable", text(1, hbase.table_name("holey")))
    assert rows_are_there(world, "holey", rows), "enabled again"


def a_lost_region_keeps_its_records_in_the_log(world):
    """The same for a region that was never flushed, of a table whose regions were created together."""
    world.client.create("logged", {"cf": {}}, splits=[b"%d" % i for i in range(1, 10)])
    before = world.client.regions("logged")
    world.client.data.put(before[4][1], b"4", {(b"cf", b"q"): b"v"})
    forget(world, before[4][1])
    world.client.close()
    world.server.kill()
    world.start()
    assert len(world.client.regions("logged")) == 9
    world.hbck.call("FixMeta", b"")
    assert world.client.regions("logged") == before
    all_serve(world, "logged")
    assert rows_are_there(world, "logged", (b"4",))


def add_region(world, table, start, end, region_id):
    """Adds a region's folder and its row in hbase:meta, as an operator might do."""
    info = hbase.region_info(table.encode(), start, end, region_id)
    name = b"%s,%s,%d" % (table.encode(), start, region_id)
    encoded = hashlib.md5(name).hexdigest()
    folder = world.folder / "data" / "data" / "default" / table / encoded
    (folder / "cf").mkdir(parents=True)
    (folder / ".regioninfo").write_bytes(hbase.delimited(info))
    name += b"." + encoded.encode() + b"."
    cells = {(b"info", b"regioninfo"): b"PBUF" + info, (b"info", b"state"): b"OPEN"}
    world.client.data.call("Mutate", text(1, region(META)) + text(2, hbase.put_message(name, cells)))


def overlaps_are_merged(world):
    world.client.create("doubled", {"cf": {}}, splits=(b"d", b"p"))
    before = world.client.regions("doubled")
    for (_, name, _), row in zip(before, (b"a", b"e", b"z")):
        world.client.data.put(name, row, {(b"cf", b"q"): b"v"})
    add_region(world, "doubled", b"c", b"f", 1234)
    restart(world)
    assert len(world.client.regions("doubled")) == 4
    world.hbck.call("FixMeta", b"")
    after = world.client.regions("doubled")
    assert [r[0] for r in after] == [b"", b"p"], after
    all_serve(world, "doubled")
    assert rows_are_there(world, "doubled", (b"a", b"e", b"z"))


def regions_are_assigned_by_hand(world):
    world.client.create("byhand", {"cf": {}})
    _, name, encoded = world.client.regions("byhand")[0]
    world.client.data.put(name, b"r", {(b"cf", b"q"): b"v"})
    pid = world.hbck.call("Unassigns", text(1, region(encoded)))[1][0]
    assert pid != NONE
    world.client.procedure(pid)
    assert refusal(world.client.data.get, name, b"r").name == "NotServingRegionException"
    # Not in transition: it was closed on request.
    status = fields(world.client.master.call("GetClusterStatus", number(1, 7))[1][0])
    assert 4 not in status, status
    assert world.hbck.call("Unassigns", text(1, region(encoded)))[1][0] == NONE
    again = world.hbck.call("Unassigns", text(1, region(encoded)) + number(2, 1))[1][0]
    assert again != NONE  # override: regardless of its state
    world.client.procedure(again)
    assert refusal(world.client.data.get, name, b"r").name == "NotServingRegionException"
    assert 1 not in world.hbck.call("Assigns", text(1, region(b"0" * 32)))
    world.client.procedure(world.hbck.call("Assigns", text(1, region(encoded)))[1][0])
    assert world.client.data.get(name, b"r")
    assert world.hbck.call("Assigns", text(1, region(encoded)))[1][0] == NONE
    world.client.procedure(world.hbck.call("Assigns", text(1, region(encoded)) + number(2, 1))[1][0])
    assert world.client.data.get(name, b"r")


def states_are_set_by_hand(world):
    world.client.create("states", {"cf": {}})
    encoded = world.client.regions("states")[0][2]
    enabled, disabled = number(1, 0), number(1, 1)
    message = text(1, hbase.table_name("states"))
    assert fields(world.hbck.call("SetTableStateInMeta", message + text(2, disabled))[1][0])[1] == [0]
    answer = world.client.master.call("GetTableState", message)
    assert fields(answer[1][0])[1] == [1]
    assert fields(world.hbck.call("SetTableStateInMeta", message + text(2, enabled))[1][0])[1] == [1]
    assert refusal(world.hbck.call, "SetTableStateInMeta", text(1, hbase.table_name("nosuch")) + text(2, enabled)).name == "TableNotFoundException"
    was = world.hbck.call("SetRegionStateInMeta", text(1, text(1, region(encoded)) + number(2, 6)))
    assert fields(was[1][0])[2] == [3], was  # OPEN
    row = world.client.data.scan(b"1588230740", b"states,,", b"states ,,")
    assert [cells[(b"info", b"state")] for cells in row.values()] == [b"CLOSED"], row


def the_state_of_a_replica_is_set_by_hand(world):
    world.client.create("statesofreplicas", {"cf": {}}, values={"REGION_REPLICATION": "2"})
    encoded = world.client.regions("statesofreplicas")[0][2]
    row = world.client.data.scan(b"1588230740", b"statesofreplicas,,", b"statesofreplicas ,,")
    name, cells = next(iter(row.items()))
    assert cells[(b"info", b"state_0001")] == b"OPEN", cells
    table_part, _, _ = name.rpartition(b".%s." % encoded)
    replica = hashlib.md5(table_part + b"_0001").hexdigest().encode()
    was = world.hbck.call("SetRegionStateInMeta", text(1, text(1, region(replica)) + number(2, 6)))
    assert fields(was[1][0])[2] == [3], was  # OPEN
    cells = world.client.data.scan(b"1588230740", b"statesofreplicas,,", b"statesofreplicas ,,")[name]
    assert (cells[(b"info", b"state")], cells[(b"info", b"state_0001")]) == (b"OPEN", b"CLOSED"), cells


def a_snapshot_says_the_layout_that_it_has(world):
    """A client may request the layout of HBase 0.96; HBase's tools would then look for files in that layout."""
    world.client.create("layouts", {"cf": {}})
    asked = text(1, "old") + text(2, "layouts") + number(4, 2) + number(5, 1)
    answer = world.client.master.call("Snapshot", text(1, asked) + number(2, 1) + number(3, hbase.nonce()))
    world.client.procedure(answer[2][0])
    folder = world.folder / "data/.hbase-snapshot/old"
    assert (folder / "data.manifest").exists()
    assert fields((folder / ".snapshotinfo").read_bytes())[5] == [2]


def no_server_has_crashed(world):
    assert world.hbck.call("ScheduleServerCrashProcedure", text(1, world.self_name(5)))[1] == [NONE]
    assert "has not crashed" in refusal(world.hbck.call, "ScheduleServerCrashProcedure", text(1, world.self_name())).trace
    assert 1 not in world.hbck.call("ScheduleSCPsForUnknownServers", b"")
    names = text(1, world.self_name(5))
    assert world.client.master.call("ClearDeadServers", names)[1] == [world.self_name(5)]


def locks_exclude_and_end(world):
    world.client.create("locked", {"cf": {}})
    message = number(1, 1) + text(3, hbase.table_name("locked")) + text(5, "a test")
    lock = world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0]
    beat = number(1, lock)
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", beat)[1][0] == 2)
    held = [fields(one) for one in world.client.master.call("GetLocks", b"")[1]]
    assert {(one[1][0], one[2][0], one[3][0]) for one in held} == {(2, b"default", 2), (3, b"locked", 1)}, held
    second = world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0]
    assert world.locks.call("LockHeartbeat", number(1, second))[1][0] == 1
    assert world.locks.call("LockHeartbeat", beat + number(2, 0))[1][0] == 1  # keep_alive is false: the call releases the lock
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", number(1, second))[1][0] == 2)
    # A lock that is not renewed expires: the change that waits for it continues.
    world.ddl("DisableTable", text(1, hbase.table_name("locked")))
    assert world.locks.call("LockHeartbeat", number(1, second))[1][0] == 1
    for wrong in (number(1, 1) + text(3, hbase.table_name("locked")), number(1, 1) + text(5, "d"), number(1, 2) + text(2, "default") + text(5, "d")):
        assert "java.lang.IllegalArgumentException: " in refusal(world.locks.call, "RequestLock", wrong).trace


def repairs_that_wait_leave_threads_to_others(world):
    """Sixteen threads serve the blocking calls of all administrators; a repair occupies one while it waits for a client's lock."""
    world.client.create("repaired", {"cf": {}})
    _, name, encoded = world.client.regions("repaired")[0]
    message = number(1, 1) + text(3, hbase.table_name("repaired")) + text(5, "a test")
    lock = world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0]
    outcomes = []

    def held():
        return world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2

    hbase.wait_for(held)
    repairs = hbase.Connection(world.server.master, "HbckService")
    for _ in range(20):
        repairs.send("Assigns", text(1, region(encoded)) + number(2, 1))
    other = hbase.Connection(world.server.master, "HbckService")
    chore = threading.Thread(target=lambda: outcomes.append(refusal_or_answer(other, "RunHbckChore", b"")), daemon=True)
    chore.start()
    hbase.wait_for(lambda: held() and outcomes)
    assert outcomes[0][1] == [1], outcomes
    early = [repairs.receive()[1] for _ in range(16)]
    assert all(isinstance(one, Refused) and one.name == "PleaseHoldException" for one in early), early
    assert "4 calls of HbckService" in early[0].trace, early[0]
    assert world.locks.call("LockHeartbeat", number(1, lock) + number(2, 0))[1][0] == 1
    late = [repairs.receive()[1] for _ in range(4)]
    assert all(one[1][0] not in (0, NONE) for one in late), late
    for one in late:
        world.client.procedure(one[1][0])
    world.hbck.call("Assigns", text(1, region(encoded)) + number(2, 1))  # a call is accepted again
    hbase.wait_for(lambda: refusal_or_value(world.client.data.get, name, b"r") == {})


def refusal_or_value(action, *arguments):
    try:
        return action(*arguments)
    except Refused as why:
        return why


def a_question_about_a_running_procedure_waits_for_its_end(world):
    """Otherwise HBase's client would sleep 100 ms after the response RUNNING."""
    running, finished = 1, 2
    world.client.create("asked", {"cf": {}})
    message = number(1, 1) + text(3, hbase.table_name("asked")) + text(5, "a test")
    lock = world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0]
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2)
    master = hbase.Connection(world.server.master, "MasterService")
    asked = [master.send("getProcedureResult", number(1, lock)) for _ in range(3)]
    master.send("AbortProcedure", number(1, lock) + number(2, 1))
    answers = dict(master.receive() for _ in range(4))
    states = [answers[call][1][0] for call in asked]
    assert states == [finished] * 3, f"{states}, {running}: it did not wait"
    # Nobody reads the response: the call ends with the procedure, or by its time-out.
    gone = world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0]
    master.send("getProcedureResult", number(1, gone))
    master.close()
    world.ddl("DisableTable", text(1, hbase.table_name("asked")))


def locks_of_a_client_that_has_gone_are_passed(world):
    """Otherwise each lock would be held for five seconds, one after the other."""
    world.client.create("gone", {"cf": {}})
    message = number(1, 1) + text(3, hbase.table_name("gone")) + text(5, "a test")
    locks = [world.locks.call("RequestLock", message + number(6, hbase.nonce()) + number(7, hbase.nonce()))[1][0] for _ in range(200)]
    begun = time.monotonic()
    world.ddl("DisableTable", text(1, hbase.table_name("gone")))
    assert time.monotonic() - begun < 5 * len(locks) / 2
    assert world.locks.call("LockHeartbeat", number(1, locks[-1]))[1][0] == 1


def only_what_can_be_rolled_back_is_aborted(world):
    """As in HBase: a flush is not aborted, a change that has begun only with the interrupt flag, a lock always; nothing
    twice."""
    client, nonces = world.client, lambda field: number(field, hbase.nonce()) + number(field + 1, hbase.nonce())
    client.create("aborted", {"cf": {}})
    table = text(1, hbase.table_name("aborted"))

    def abort(proc, interrupts):
        return client.master.call("AbortProcedure", number(1, proc) + number(2, interrupts))[1][0]

    def in_list(java_class):
        return next((p for p, f in procedures(world).items() if f[1][0].endswith(java_class) and f[4][0] > began), None)

    def wait(method, message, java_class):
        """A call that waits for the lock, on a separate connection; returns its procedure's id."""
        master = hbase.Connection(world.server.master, "MasterService")
        calls.append(threading.Thread(target=lambda: outcomes.append(refusal_or_answer(master, method, message))))
        calls[-1].start()

        def known():
            assert world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2, "it is held"
            return in_list(java_class)
        hbase.wait_for(known)
        return in_list(java_class)

    calls, outcomes = [], []
    began = max((f[4][0] for f in procedures(world).values()), default=0)
    message = number(1, 1) + text(3, hbase.table_name("aborted")) + text(5, "a test")
    lock = world.locks.call("RequestLock", message + nonces(6))[1][0]
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2)
    disable = wait("DisableTable", table + nonces(2), b"DisableTableProcedure")
    flush = wait("FlushTable", table + nonces(3), b"FlushTableProcedure")
    answers = [abort(flush, 0), abort(flush, 1), abort(disable, 0), abort(lock, 0), abort(lock, 1)]
    assert answers == [0, 0, 1, 0, 1], answers
    for call in calls:
        call.join()
    client.procedure(flush)
    try:
        client.procedure(disable)
        assert False, "it was not aborted"
    except RuntimeError as why:
        assert "Procedure aborted" in str(why), why
    assert [abort(proc, 1) for proc in (lock, flush, disable, 1 << 40)] == [0] * 4
    world.ddl("DisableTable", table)


def refusal_or_answer(connection, method, message):
    try:
        return connection.call(method, message)
    except Refused as why:
        return why
    finally:
        connection.close()


def a_lock_outlives_a_kill_but_not_long(world):
    world.client.create("relocked", {"cf": {}})
    message = number(1, 1) + text(3, hbase.table_name("relocked")) + text(5, "a test")
    lock = world.locks.call("RequestLock", message)[1][0]
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2)
    world.server.kill()
    world.start()
    hbase.wait_for(lambda: world.locks.call("LockHeartbeat", number(1, lock))[1][0] == 2)
    assert world.client.data.get(world.client.regions("relocked")[0][1], b"r") == {}
    world.ddl("DisableTable", text(1, hbase.table_name("relocked")))


def procedures(world):
    return {fields(p)[3][0]: fields(p) for p in world.client.master.call("GetProcedures", b"").get(1, [])}


def procedures_have_the_message_of_their_kind(world):
    """HBase's clients print the message; kinds without a message of their own have the table's name."""
    client = world.client
    client.create("of_kinds", {"cf": {}})
    before = set(procedures(world))
    named = text(1, hbase.table_name("of_kinds"))
    nonces = lambda field: number(field, hbase.nonce()) + number(field + 1, hbase.nonce())
    for method, message in (("DisableTable", named + nonces(2)), ("truncateTable", named + number(2, 1) + nonces(3)),
                            ("DisableTable", named + nonces(2)), ("DeleteTable", named + nonces(2))):
        client.procedure(client.master.call(method, message)[1][0])
    expected = {"DisableTableProcedure": "DisableTableStateData", "TruncateTableProcedure": "TruncateTableStateData",
                "DeleteTableProcedure": "DeleteTableStateData"}
    seen = {}
    for number_of, p in procedures(world).items():
        if number_of in before:
            continue
        state = fields(p[15][0])
        assert b"of_kinds" in state[2][0], state
        seen[p[1][0].decode().rsplit(".", 1)[1]] = state[1][0].decode().rsplit(".", 1)[1]
    assert seen == expected, seen


def procedures_have_parameters_after_a_restart_too(world):
    world.client.create("listed", {"cf": {}})
    newest = max(procedures(world).items())
    state = fields(newest[1][15][0])
    assert state[1][0].endswith(b"CreateTableStateData") and b"listed" in state[2][0], state
    assert world.server.stop() is None
    world.start()
    again = procedures(world)
    assert newest[0] in again and again[newest[0]][15] == newest[1][15], sorted(again)


def the_normalizer_merges_and_splits(world):
    client = world.client
    attribute = text(2, text(1, "NORMALIZATION_ENABLED") + text(2, "true"))
    attribute += text(2, text(1, "hbase.normalizer.merge.min_region_age.days") + text(2, "0"))
    described = text(1, text(1, hbase.table_name("normal")) + attribute + text(3, text(1, "cf")))
    splits = b"".join(text(2, b"%d" % i) for i in range(1, 8))
    client.procedure(client.master.call("CreateTable", described + splits + number(3, hbase.nonce()) + number(4, hbase.nonce()))[1][0])
    assert len(client.regions("normal")) == 8
    client.master.call("SetNormalizerRunning", number(1, 0))
    assert client.master.call("Normalize", b"")[1] == [0]
    client.master.call("SetNormalizerRunning", number(1, 1))
    assert client.master.call("Normalize", text(1, hbase.table_name("listed")))[1] == [1]
    assert len(client.regions("normal")) == 8
    assert client.master.call("Normalize", b"")[1] == [1]
    hbase.wait_for(lambda: len(client.regions("normal")) == 1)


def a_server_is_decommissioned_and_back(world):
    master = world.client.master
    assert 1 not in master.call("ListDecommissionedRegionServers", b"")
    master.call("DecommissionRegionServers", text(1, world.self_name(5)) + number(2, 0))
    assert 1 not in master.call("ListDecommissionedRegionServers", b""), "it is not online"
    master.call("DecommissionRegionServers", text(1, world.self_name()) + number(2, 0))
    assert master.call("ListDecommissionedRegionServers", b"")[1] == [world.self_name()]
    assert "Unable to determine a plan to move" in refusal(
        master.call, "DecommissionRegionServers", text(1, world.self_name()) + number(2, 1)).trace
    master.call("RecommissionRegionServer", text(1, world.self_name()))
    assert 1 not in master.call("ListDecommissionedRegionServers", b"")


def totals_do_not_fall_when_a_table_is_dropped(world):
    def totals():
        status = fields(world.client.master.call("GetClusterStatus", number(1, 2))[1][0])
        load = fields(fields(status[2][0])[2][0])
        return load[13][0], load[14][0]

    world.client.create("counted", {"cf": {}})
    name = world.client.regions("counted")[0][1]
    for _ in range(50):
        world.client.data.put(name, b"r", {(b"cf", b"q"): b"v"})
        world.client.data.get(name, b"r")
    before = totals()
    world.ddl("DisableTable", text(1, hbase.table_name("counted")))
    world.ddl("DeleteTable", text(1, hbase.table_name("counted")))
    after = totals()
    assert after[0] >= before[0] and after[1] >= before[1], (before, after)


def the_masters_region_is_flushed(world):
    world.client.master.call("FlushMasterStore", b"")


def in_maintenance_mode_only_system_tables_are_open(world):
    master = world.client.master
    assert master.call("IsMasterInMaintenanceMode", b"")[1] == [0]
    world.client.create("shut", {"cf": {}})
    name = world.client.regions("shut")[0][1]
    world.client.data.put(name, b"r", {(b"cf", b"q"): b"v"})
    world.client.close()
    world.server.kill()  # the row is only in the log
    arguments, world.arguments = world.arguments, (*world.arguments, "-D", "hbase.master.maintenance_mode=true")
    for _ in range(2):
        world.start()
        master = world.client.master
        assert master.call("IsMasterInMaintenanceMode", b"")[1] == [1]
        assert master.call("IsBalancerEnabled", b"")[1] == [0] and master.call("IsSplitOrMergeEnabled", number(1, 0))[1] == [0]
        assert world.client.regions("shut")[0][1] == name, "hbase:meta is served"
        assert refusal(world.client.data.get, name, b"r").name == "NotServingRegionException"
        world.client.close()
        problem = world.server.stop()
        assert problem is None, problem
    world.arguments = arguments
    world.start()
    assert world.client.data.get(name, b"r") and world.client.master.call("IsBalancerEnabled", b"")[1] == [1]


def cached_files(world):
    return [name.decode() for name in world.client.admin.call("GetCachedFilesList", b"").get(1, [])]


def files_that_are_wholly_cached_are_listed(world):
    client = world.client
    client.create("cached", {"cf": {}})
    name = client.regions("cached")[0][1]
    for i in range(50):
        client.data.put(name, b"%03d" % i, {(b"cf", b"q"): b"v" * 4000})
    client.procedure(client.master.call("FlushTable", text(1, hbase.table_name("cached")) + number(3, hbase.nonce()) + number(4, hbase.nonce()))[1][0])
    files = [path.name for path in world.folder.joinpath("data").glob("**/default/cached/*/cf/*")]
    assert len(files) == 1, files
    assert client.data.get(name, b"000") and cached_files(world) == [], "there is no second level"
    assert world.server.stop() is None
    arguments = world.arguments
    world.arguments += ("-D", f"hbase.bucketcache.ioengine=file:{world.folder}/cache", "-D", "hbase.bucketcache.size=64")
    world.start()
    client, name = world.client, world.client.regions("cached")[0][1]
    assert client.data.get(name, b"000") and files[0] not in cached_files(world), "one block is not all"
    for i in range(50):
        assert client.data.get(name, b"%03d" % i)
    assert files[0] in cached_files(world), cached_files(world)
    client.admin.call("ClearRegionBlockCache", text(1, region(name)))
    assert files[0] not in cached_files(world)
    assert world.server.stop() is None
    world.arguments = arguments
    world.start()


def a_call_ends_the_server(world):
    world.client.master.call("Shutdown", b"")
    assert world.server.process.wait(300) == 0, world.server.tail()
    world.arguments += ("-D", "rorqual.stop.by.call=false")
    world.start()
    assert "rorqual.stop.by.call" in refusal(world.client.admin.call, "StopServer", text(1, "why")).trace


TESTS = [
    regions_are_known_on_the_masters_port, a_refused_call_names_the_point, the_check_runs, lost_rows_of_meta_come_back, a_lost_region_keeps_its_records_in_the_log, overlaps_are_merged,
    regions_are_assigned_by_hand,
    states_are_set_by_hand, the_state_of_a_replica_is_set_by_hand, a_snapshot_says_the_layout_that_it_has, no_server_has_crashed, locks_exclude_and_end,
    repairs_that_wait_leave_threads_to_others, a_question_about_a_running_procedure_waits_for_its_end, locks_of_a_client_that_has_gone_are_passed, only_what_can_be_rolled_back_is_aborted, a_lock_outlives_a_kill_but_not_long,
    procedures_have_the_message_of_their_kind, procedures_have_parameters_after_a_restart_too, the_normalizer_merges_and_splits, a_server_is_decommissioned_and_back,
    totals_do_not_fall_when_a_table_is_dropped, the_masters_region_is_flushed, in_maintenance_mode_only_system_tables_are_open, files_that_are_wholly_cached_are_listed, a_call_ends_the_server,
]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("admin_calls", World, TESTS))
