#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas over the wire: throttles by user, table, namespace and server refuse with HBase's texts and waits, allow requests
again later, survive a kill -9, and never apply to tables of the namespace hbase; space quotas with their policies, violation
and recovery.

Limits are per day or hour, so that no test depends on how fast it runs.
"""
import getpass
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import Refused, number, region, text  # pylint: disable=wrong-import-position

SECONDS, MINUTES, HOURS, DAYS = 4, 5, 6, 7
(REQUESTS, REQUEST_BYTES, WRITES, WRITE_BYTES, READS, READ_BYTES, UNITS, WRITE_UNITS, READ_UNITS, ATOMIC_READ_BYTES,
 ATOMIC_REQUESTS, ATOMIC_WRITE_BYTES, HANDLER_MS) = range(1, 14)
DISABLE, NO_WRITES_COMPACTIONS, NO_WRITES, NO_INSERTS = range(1, 5)
SPEED = ("-D", "hbase.quota.enabled=true", "-D", "hbase.superuser=chief, boss", "-D", "hbase.master.quotas.observer.chore.period=50",
         "-D", "hbase.master.quotas.snapshot.chore.period=50")


class World:
    """A server with its clients: connections of alice and of the user 'tester'."""

    def __init__(self, folder, *arguments):
        self.folder = pathlib.Path(folder)
        self.arguments = (*SPEED, *arguments)
        self.start()

    def start(self):
        self.server = rorqual.Server(self.folder / "data", self.folder / "server.log", *self.arguments)
        self.client = hbase.Client(self.server)
        self.alice = hbase.Connection(self.server.regionserver, user="alice")

    def table(self, name):
        self.client.create(name, {"cf": {}})
        return self.client.regions(name)[0][1]

    def set(self, message):
        self.client.master.call("SetQuota", message)

    def put(self, name, row=b"r", connection=None):
        (connection or self.client.data).put(name, row, {(b"cf", b"q"): b"v" * 10})


def throttle(kind, limit, unit):
    """The throttle of a SetQuotaRequest; limit None: removes it."""
    quota = b"" if limit is None else text(2, number(1, unit) + number(2, limit) + number(4, 2))
    return text(7, number(1, kind) + quota)


def space(limit, policy):
    """limit None: removes it."""
    return text(8, text(1, number(3, 1) if limit is None else number(1, limit) + number(2, policy)))


def user(name):
    return text(1, name)


def table(name):
    return text(4, hbase.table_name(name))


def refusal(action, *arguments):
    try:
        action(*arguments)
    except Refused as refused:
        return refused
    raise AssertionError("it passed")


def expect_throttled(what, action, *arguments):
    refused = refusal(action, *arguments)
    assert refused.name == "quotas.RpcThrottlingException", refused
    assert re.fullmatch(rf"org\.apache\.hadoop\.hbase\.quotas\.RpcThrottlingException: {what} - wait "
                        r"(\d+hrs?, )?(\d+mins?, )?(\d+sec, )?\d+ms", refused.trace.splitlines()[0]), refused.trace


def a_table_is_throttled_and_no_other(world):
    name, other = world.table("throttled"), world.table("free")
    world.set(table("throttled") + throttle(WRITES, 3, DAYS))
    for _ in range(3):
        world.put(name)
    expect_throttled("number of write requests exceeded", world.put, name)
    assert world.client.data.get(name, b"r"), "reads pass"
    world.put(other)
    world.set(table("throttled") + throttle(WRITES, None, DAYS))
    world.put(name)


def each_type_has_its_text(world):
    name = world.table("types")
    cases = [(REQUESTS, "number of requests exceeded", 2), (REQUEST_BYTES, "request size limit exceeded", 120),
             (WRITES, "number of write requests exceeded", 2), (WRITE_BYTES, "write size limit exceeded", 120),
             (UNITS, "request capacity unit exceeded", 2), (WRITE_UNITS, "write capacity unit exceeded", 2)]
    for kind, words, limit in cases:
        world.set(table("types") + throttle(kind, limit, DAYS))
        world.put(name)
        for _ in range(20):
            try:
                world.put(name)
            except Refused:
                break
        expect_throttled(words, world.put, name)
        world.set(table("types") + throttle(kind, None, DAYS))
    for kind, words, limit in [(READS, "number of read requests exceeded", 2), (READ_UNITS, "read capacity unit exceeded", 65)]:
        world.set(table("types") + throttle(kind, limit, DAYS))
        for _ in range(100):
            try:
                world.client.data.get(name, b"r")
            except Refused:
                break
        expect_throttled(words, world.client.data.get, name, b"r")
        world.set(table("types") + throttle(kind, None, DAYS))


def atomic_requests_are_counted_apart(world):
    name = world.table("atomic")
    increment = text(1, region(name)) + text(2, text(1, b"counter") + number(2, 1) + text(
        3, text(1, b"cf") + text(2, text(1, b"q") + text(2, (1).to_bytes(8, "big")))))
    world.set(table("atomic") + throttle(ATOMIC_REQUESTS, 4, DAYS))
    for _ in range(2):
        world.client.data.call("Mutate", increment)
    expect_throttled("atomic request number exceeded", world.client.data.call, "Mutate", increment)
    world.put(name)
    world.set(table("atomic") + throttle(ATOMIC_REQUESTS, None, DAYS))


def a_user_is_throttled_on_all_tables_or_one(world):
    name, other = world.table("of_user"), world.table("of_user2")
    world.set(user("alice") + throttle(REQUESTS, 2, DAYS))
    world.put(name, connection=world.alice)
    world.put(other, connection=world.alice)
    expect_throttled("number of requests exceeded", world.put, name, b"r", world.alice)
    world.put(name)
    # Her quota on one table replaces her other quota for this table.
    world.set(user("alice") + table("of_user2") + throttle(REQUESTS, 1, DAYS))
    world.put(other, connection=world.alice)
    expect_throttled("number of requests exceeded", world.put, other, b"r", world.alice)
    world.set(user("alice") + throttle(REQUESTS, None, DAYS))
    world.put(name, connection=world.alice)


def a_bypass_leaves_a_user_with_his_own_quotas(world):
    name = world.table("bypass")
    world.set(table("bypass") + throttle(WRITES, 1, DAYS))
    world.set(user("alice") + number(6, 1))
    for _ in range(3):
        world.put(name, connection=world.alice)
    world.put(name)
    expect_throttled("number of write requests exceeded", world.put, name)
    world.set(user("alice") + number(5, 1))
    expect_throttled("number of write requests exceeded", world.put, name, b"r", world.alice)
    world.set(table("bypass") + number(5, 1))


def the_server_and_namespaces_are_throttled(world):
    name = world.table("everywhere")
    for owner in (text(3, b"default"), text(9, b"all")):
        world.set(owner + throttle(WRITES, 1, DAYS))
        world.put(name)
        expect_throttled("number of write requests exceeded", world.put, name)
        world.set(owner + number(5, 1))
    world.put(name)


def system_tables_are_not_throttled(world):
    world.set(text(9, b"all") + throttle(REQUESTS, 1, DAYS))
    for _ in range(5):
        world.client.data.get(b"hbase:meta,,1", b"x")
    world.set(text(9, b"all") + number(5, 1))


def a_multi_fails_by_region(world):
    name, free = world.table("multi"), world.table("multi_free")
    world.set(table("multi") + throttle(WRITES, 10, DAYS))
    rows = [(b"r%d" % i, {(b"cf", b"q"): b"v"}) for i in range(10)]
    both = hbase.multi_message(name, rows) + hbase.multi_message(free, rows)
    answer = world.client.data.call("Multi", both)
    assert all(2 not in hbase.fields(r) for r in answer[1]), answer
    answer = world.client.data.call("Multi", both)
    first, second = (hbase.fields(r) for r in answer[1])
    assert hbase.exception_name(first[2][0]) == "quotas.RpcThrottlingException", first
    assert 2 not in second and len(second[1]) == 10, second
    world.set(table("multi") + number(5, 1))


def an_open_scanner_goes_on_after_a_refusal(world):
    name = world.table("scanned")
    for i in range(6):
        world.put(name, b"r%d" % i)
    scan = text(1, region(name)) + text(2, number(17, 2)) + number(4, 2)
    answer = world.client.data.call("Scan", scan)
    scanner, rows = answer[2][0], len(answer[5])
    world.set(table("scanned") + throttle(READS, 1, DAYS))
    sequence = 0
    while rows < 6:
        more = number(3, scanner) + number(4, 2) + number(6, sequence)
        try:
            rows += len(world.client.data.call("Scan", more).get(5, []))
            sequence += 1
        except Refused as refused:
            assert refused.name == "quotas.RpcThrottlingException", refused
            world.set(table("scanned") + number(5, 1))
    assert rows == 6, rows


def throttles_are_switched_off_and_on(world):
    name = world.table("switched")
    world.set(table("switched") + throttle(WRITES, 1, DAYS))
    world.put(name)
    assert world.client.master.call("SwitchRpcThrottle", number(1, 0))[1][0] == 1
    world.put(name)
    assert world.client.master.call("SwitchRpcThrottle", number(1, 1))[1][0] == 0
    expect_throttled("number of write requests exceeded", world.put, name)
    world.set(table("switched") + number(5, 1))


def quotas_beyond_are_lent_by_the_server(world):
    name = world.table("exceeds")
    refused = refusal(world.client.master.call, "SwitchExceedThrottleQuota", number(1, 1))
    assert "Please set region server quota before enable exceed throttle quota" in refused.trace, refused.trace
    world.set(text(9, b"all") + throttle(REQUESTS, 5, SECONDS))
    world.set(table("exceeds") + throttle(WRITES, 1, DAYS))
    world.client.master.call("SwitchExceedThrottleQuota", number(1, 1))
    for _ in range(3):
        world.put(name)
    world.client.master.call("SwitchExceedThrottleQuota", number(1, 0))
    world.set(text(9, b"all") + number(5, 1))
    expect_throttled("number of write requests exceeded", world.put, name)
    world.set(table("exceeds") + number(5, 1))


def wrong_requests_are_refused(world):
    cases = [(throttle(WRITES, 5, DAYS), "a user, a table, a namespace or region server must be specified"),
             (user("bob") + throttle(WRITES, 0, DAYS), "The throttle limit must be greater then 0, got 0"),
             (user("bob") + throttle(77, 1, DAYS), ""), (user("bob") + space(5, NO_WRITES), "a space quota is for a table"),
             (user("bob") + number(6, 1) + throttle(WRITES, 5, DAYS), "multiple limits"), (user("bob"), "Unhandled")]
    for message, words in cases:
        assert words in refusal(world.set, message).trace, words


def a_dropped_table_loses_its_quotas(world):
    name = world.table("dropped")
    world.set(table("dropped") + throttle(WRITES, 1, DAYS))
    world.put(name)
    for method in ("DisableTable", "DeleteTable"):
        ids = number(2, hbase.nonce()) + number(3, hbase.nonce())
        world.client.procedure(world.client.master.call(method, text(1, hbase.table_name("dropped")) + ids)[1][0])
    quota = world.client.regions("hbase:quota")[0][1]
    assert not world.client.data.get(quota, b"t.dropped")


def a_dropped_namespace_loses_its_quotas(world):
    """A later namespace of the name does not inherit them. HBASE: MasterQuotasObserver.postDeleteNamespace"""
    def change(method, what):
        ids = number(2, hbase.nonce()) + number(3, hbase.nonce())
        world.client.procedure(world.client.master.call(method, text(1, what) + ids)[1][0])
    change("CreateNamespace", text(1, b"fleeting"))
    world.set(text(3, b"fleeting") + throttle(WRITES, 1, DAYS))
    world.set(text(3, b"fleeting") + space(5, NO_WRITES))
    quota = world.client.regions("hbase:quota")[0][1]
    assert world.client.data.get(quota, b"n.fleeting")
    change("DeleteNamespace", b"fleeting")
    assert not world.client.data.get(quota, b"n.fleeting")


def quotas_survive_a_kill(world):
    name = world.table("killed")
    world.set(table("killed") + throttle(WRITES, 1, DAYS))
    world.server.kill()
    world.start()
    world.put(name)
    expect_throttled("number of write requests exceeded", world.put, name)
    world.set(table("killed") + number(5, 1))


def violated(world, wanted):
    """Whether GetQuotaStates reports this violation for the only table with a space quota."""
    states = world.client.master.call("GetQuotaStates", b"").get(1, [])
    if not states:
        return False
    snapshot = hbase.fields(hbase.fields(states[0])[2][0])
    return hbase.fields(snapshot[1][0]).get(2, [0])[0] == wanted


def space_is_limited(world):
    name = world.table("spacious")
    delete = text(1, region(name)) + text(2, text(1, b"r") + number(2, 3))
    for policy, words, deletes in [(NO_INSERTS, "NO_INSERTS Puts are disallowed due to a space quota.", True),
                                   (NO_WRITES, "NO_WRITES Puts are disallowed due to a space quota.", False),
                                   (NO_WRITES_COMPACTIONS, "NO_WRITES_COMPACTIONS Puts are disallowed due to a space quota.", False)]:
        world.set(table("spacious") + space(1 << 20, policy))
        world.put(name)
        world.client.flush(name)
        world.set(table("spacious") + space(1, policy))
        assert violated(world, 1)
        refused = refusal(world.put, name)
        assert refused.name == "quotas.SpaceLimitingException" and words in refused.trace, refused.trace
        if deletes:
            world.client.data.call("Mutate", delete)
        else:
            assert refusal(world.client.data.call, "Mutate", delete).name == "quotas.SpaceLimitingException"
        paths = [f"/a/file{i}" for i in range(2)]
        load = text(1, region(name)) + b"".join(text(2, text(1, b"f") + text(2, path)) for path in paths)
        for token in (b"", text(5, b"staging/token")):
            refused = refusal(world.client.data.call, "BulkLoadHFile", load + token)
            assert refused is not None and refused.name == "quotas.SpaceLimitingException", refused
            assert f"{words.split()[0]} Bulk load of [/a/file0, /a/file1] is disallowed because the file(s) exceed the limits of " \
                "a space quota." in refused.trace, refused.trace
        compact = text(1, region(name)) + number(2, 1)
        if policy == NO_WRITES_COMPACTIONS:
            refused = refusal(world.client.admin.call, "CompactRegion", compact)
            assert refused.name == "DoNotRetryIOException", refused.name
            assert "Compactions on this region are disabled due to a space quota violation." in refused.trace, refused.trace
            for superuser in ("boss", getpass.getuser()):
                hbase.Connection(world.server.regionserver, "AdminService", user=superuser).call("CompactRegion", compact)
        else:
            world.client.admin.call("CompactRegion", compact)
        world.set(table("spacious") + space(1 << 30, policy))
        assert violated(world, 0)
        world.put(name)
    world.set(table("spacious") + space(None, 0))
    assert not world.client.master.call("GetQuotaStates", b"").get(1)


def snapshots_count_for_their_table(world):
    """Files that only snapshots keep count for their table, once however many snapshots keep them; a clone's links count for
    no table."""
    name, master = world.table("pictured"), world.client.master

    def usage(of):
        for state in master.call("GetQuotaStates", b"").get(1, []):
            if hbase.fields(hbase.fields(state)[1][0])[2][0] == of:
                return hbase.fields(hbase.fields(state)[2][0])[2][0]
        return None

    def recorded():
        row = world.client.data.get(world.client.regions("hbase:quota")[0][1], b"t.pictured")
        return {q.decode()[2:]: hbase.fields(value).get(2, [0])[0] for (f, q), value in row.items() if f == b"u" and q[:2] == b"ss"}

    def snapshot(called):
        described = text(1, called) + text(2, b"pictured") + number(4, 1)
        world.client.procedure(master.call("Snapshot", text(1, described) + number(2, 1) + number(3, hbase.nonce()))[2][0])

    def files():
        return sorted((world.folder / "data/data/default/pictured").glob("*/cf/*"))

    for n in range(300):
        world.client.data.put(name, b"r%03d" % n, {(b"cf", b"q"): b"v" * 100})
    world.client.flush(name)
    first, = (f.stat().st_size for f in files())
    world.set(table("pictured") + space(1 << 30, NO_INSERTS))
    hbase.wait_for(lambda: usage(b"pictured") == first)
    snapshot(b"one")
    hbase.wait_for(lambda: recorded() == {"one": 0})
    world.put(name, b"another")
    world.client.flush(name)
    snapshot(b"two")
    world.client.admin.call("CompactRegion", text(1, region(name)) + number(2, 1))
    hbase.wait_for(lambda: len(files()) == 1)
    now, = (f.stat().st_size for f in files())
    small, = (f.stat().st_size for f in (world.folder / "data/archive/data/default/pictured").glob("*/cf/*")
              if f.is_file() and f.stat().st_size != first)
    hbase.wait_for(lambda: usage(b"pictured") == now + first + small)
    hbase.wait_for(lambda: recorded() == {"one": first, "two": small})
    cloned = text(1, text(1, b"one") + text(2, b"cloned")) + number(2, 1) + number(3, hbase.nonce())
    world.client.procedure(master.call("RestoreSnapshot", cloned)[1][0])
    world.set(table("cloned") + space(1 << 30, NO_INSERTS))
    hbase.wait_for(lambda: usage(b"cloned") == 0)
    master.call("DeleteSnapshot", text(1, text(1, b"one")))
    hbase.wait_for(lambda: recorded() == {"two": first + small})
    hbase.wait_for(lambda: usage(b"pictured") == now + first + small)
    master.call("DeleteSnapshot", text(1, text(1, b"two")))
    hbase.wait_for(lambda: recorded() == {} and usage(b"pictured") == now)
    world.set(table("cloned") + space(None, 0))
    world.set(table("pictured") + space(None, 0))


def a_table_is_disabled_for_its_space(world):
    name = world.table("crowded")
    world.put(name)
    world.client.flush(name)
    world.set(table("crowded") + space(1, DISABLE))

    def state():
        answer = world.client.master.call("GetTableState", text(1, hbase.table_name("crowded")))
        return hbase.fields(answer[1][0])[1][0]

    hbase.wait_for(lambda: state() == 1)
    world.server.kill()
    world.start()
    hbase.wait_for(lambda: violated(world, 1))
    assert state() == 1
    world.set(table("crowded") + space(None, 0))
    hbase.wait_for(lambda: state() == 0)
    world.put(world.client.regions("crowded")[0][1])


def a_namespace_bounds_its_regions(world):
    master = world.client.master
    limit = text(2, text(1, "hbase.namespace.quota.maxregions") + text(2, "1"))
    created = master.call("CreateNamespace", text(1, text(1, b"bounded") + limit) + number(2, hbase.nonce()) + number(3, hbase.nonce()))
    world.client.procedure(created[1][0])
    name = text(1, b"bounded") + text(2, b"t")
    described = text(1, text(1, name) + text(3, text(1, b"cf")))
    world.client.procedure(master.call("CreateTable", described + number(3, hbase.nonce()) + number(4, hbase.nonce()))[1][0])
    start, whole, encoded = world.client.regions("bounded:t")[0]
    region_id = int(whole.rpartition(b",")[2].split(b".")[0])
    info = hbase.region_info(b"t", start, b"", region_id, namespace=b"bounded")
    refused = refusal(master.call, "SplitRegion", text(1, info) + text(2, b"m") + number(3, hbase.nonce()) + number(4, hbase.nonce()))
    assert refused.name == "quotas.QuotaExceededException", refused
    assert f"Region split not possible for :{encoded.decode()} as quota limits are exceeded" in refused.trace, refused.trace


TESTS = [
    a_table_is_throttled_and_no_other, each_type_has_its_text, atomic_requests_are_counted_apart,
    a_user_is_throttled_on_all_tables_or_one, a_bypass_leaves_a_user_with_his_own_quotas, the_server_and_namespaces_are_throttled,
    system_tables_are_not_throttled, a_multi_fails_by_region, an_open_scanner_goes_on_after_a_refusal,
    throttles_are_switched_off_and_on, quotas_beyond_are_lent_by_the_server, wrong_requests_are_refused,
    a_dropped_table_loses_its_quotas, a_dropped_namespace_loses_its_quotas, quotas_survive_a_kill, a_namespace_bounds_its_regions, space_is_limited, snapshots_count_for_their_table, a_table_is_disabled_for_its_space,
]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("quotas", World, TESTS))
