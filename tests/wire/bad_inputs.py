#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each method of the administrative services with inputs that no client sends: the empty message, each required field missing,
names that are absent, very long, empty or illegal, regions that are absent or of another table, tables and regions in the wrong
state, and each change sent twice with the same nonce. Each must end with the exception that HBase 2.6.1 sends, or with another one for
the reason that bad_inputs.tsv gives, and a refused call must change nothing.

matrix.py describes the options and the table. bad_data_inputs.py does the same with the services of data.
"""
import pathlib
import re
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import matrix  # pylint: disable=wrong-import-position,wrong-import-order
from hbase import Refused, fields, number, text  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
LONG = b"x" * 100000
META = b"hbase:meta,,1"
FAMILY = text(1, "f")
# Seconds until a procedure counts as one that never ends: HBase repeats a step of some procedures for ever. This server ends each
# procedure, but a loaded machine may take long.
PATIENCE, PATIENCE_WITH_HBASE = 240, 15


def table_message(name):
    space, _, qualifier = name.rpartition(b":")
    return text(1, space or b"default") + text(2, qualifier)


class Values:
    """The values from which messages are made. `used` has the kinds of values that a method's message has, once it was made."""

    def __init__(self, world, table=b"t", region=None, info=None, name=None):
        self.used = set()
        self.world, self._table, self._region, self._info, self._name = world, table, region, info, name

    def _use(self, what):
        self.used.add(what)

    @property
    def table(self):
        self._use("table")
        return table_message(self._table)

    @property
    def region(self):
        self._use("region")
        return self._region if self._region is not None else hbase.region(self.world.regions(self._table)[0])

    @property
    def info(self):
        self._use("region")
        return self._info if self._info is not None else self.world.info_of(self._table)

    @property
    def other_region(self):
        return hbase.region(self.world.regions(self._table)[1])

    def named(self, kind, usual):
        self._use(kind)
        return self._name if self._name is not None else usual


def nonces(first):
    return number(first, hbase.nonce()) + number(first + 1, hbase.nonce())


def schema(v):
    return text(1, v.table) + text(3, FAMILY)


def snapshot(v):
    return text(1, v.named("snapshot", b"s"))


def namespace(v):
    return v.named("namespace", b"n")


def of_peer(v):
    return text(1, v.named("peer", b"p"))


def server_name(host=b"absent"):
    return text(1, host) + number(2, 1) + number(3, 1)


def procedure_description(v):
    return text(1, v.named("signature", b"flush-table-proc")) + text(2, "t")


MASTER = {
    "GetSchemaAlterStatus": lambda v: text(1, v.table),
    "GetTableDescriptors": lambda v: text(1, v.table),
    "ListTableDescriptorsByState": lambda v: number(1, 1),
    "ListTableNamesByState": lambda v: number(1, 1),
    "GetTableState": lambda v: text(1, v.table),
    "getLastMajorCompactionTimestamp": lambda v: text(1, v.table),
    "getLastMajorCompactionTimestampForRegion": lambda v: text(1, v.region),
    "AddColumn": lambda v: text(1, v.table) + text(2, text(1, "added")) + nonces(3),
    "DeleteColumn": lambda v: text(1, v.table) + text(2, "g") + nonces(3),
    "ModifyColumn": lambda v: text(1, v.table) + text(2, FAMILY) + nonces(3),
    "MoveRegion": lambda v: text(1, v.region),
    "AssignRegion": lambda v: text(1, v.region),
    "UnassignRegion": lambda v: text(1, v.region),
    "OfflineRegion": lambda v: text(1, v.region),
    "SplitRegion": lambda v: text(1, v.info) + text(2, "c") + nonces(3),
    "TruncateRegion": lambda v: text(1, v.info) + nonces(2),
    "MergeTableRegions": lambda v: text(1, v.region) + text(1, v.other_region) + nonces(4),
    "DeleteTable": lambda v: text(1, v.table) + nonces(2),
    "truncateTable": lambda v: text(1, v.table) + nonces(3),
    "EnableTable": lambda v: text(1, v.table) + nonces(2),
    "DisableTable": lambda v: text(1, v.table) + nonces(2),
    "ModifyTable": lambda v: text(1, v.table) + text(2, schema(v)) + nonces(3),
    "FlushTable": lambda v: text(1, v.table) + nonces(3),
    "CreateTable": lambda v: text(1, schema(v)) + nonces(3),
    "ModifyTableStoreFileTracker": lambda v: text(1, v.table) + text(2, "FILE") + nonces(3),
    "ModifyColumnStoreFileTracker": lambda v: text(1, v.table) + text(2, "f") + text(3, "FILE") + nonces(4),
    "SetBalancerRunning": lambda v: number(1, 1),
    "SetSplitOrMergeEnabled": lambda v: number(1, 1) + number(3, 0),
    "IsSplitOrMergeEnabled": lambda v: number(1, 0),
    "Normalize": lambda v: text(1, v.table),
    "SetNormalizerRunning": lambda v: number(1, 1),
    "EnableCatalogJanitor": lambda v: number(1, 1),
    "SetCleanerChoreRunning": lambda v: number(1, 1),
    "SwitchSnapshotCleanup": lambda v: number(1, 1),
    "ExecMasterService": lambda v: text(1, number(1, 1) + text(2, "x")) + text(2, text(1, "") + text(2, "Nobody") + text(3, "No") + text(4, "")),
    "Snapshot": lambda v: text(1, snapshot(v) + text(2, v._table)) + nonces(2),  # pylint: disable=protected-access
    "DeleteSnapshot": lambda v: text(1, snapshot(v)),
    "IsSnapshotDone": lambda v: text(1, snapshot(v)),
    "RestoreSnapshot": lambda v: text(1, snapshot(v) + text(2, "restored")) + nonces(2),
    "ExecProcedure": lambda v: text(1, procedure_description(v)),
    "ExecProcedureWithRet": lambda v: text(1, procedure_description(v)),
    "IsProcedureDone": lambda v: text(1, procedure_description(v)),
    "CreateNamespace": lambda v: text(1, text(1, namespace(v))) + nonces(2),
    "ModifyNamespace": lambda v: text(1, text(1, namespace(v))) + nonces(2),
    "DeleteNamespace": lambda v: text(1, namespace(v)) + nonces(2),
    "GetNamespaceDescriptor": lambda v: text(1, namespace(v)),
    "ListTableDescriptorsByNamespace": lambda v: text(1, namespace(v)),
    "ListTableNamesByNamespace": lambda v: text(1, namespace(v)),
    "SetQuota": lambda v: text(4, v.table) + number(6, 1),
    "SetQuota of a user": lambda v: text(1, v.named("user", b"u")) + number(6, 1),
    "SetQuota of a namespace": lambda v: text(3, v.named("namespace", b"n")) + number(6, 1),
    "SetQuota of a server": lambda v: text(9, v.named("server", b"all")) + number(6, 1),
    "SetQuota removed": lambda v: text(1, v.named("user", b"u")) + number(5, 1),
    "getProcedureResult": lambda v: number(1, 999999),
    "AbortProcedure": lambda v: number(1, 999999),
    "AddReplicationPeer": lambda v: of_peer(v) + text(2, text(1, "127.0.0.1:1:/hbase")) + number(3, 1),
    "RemoveReplicationPeer": of_peer,
    "EnableReplicationPeer": of_peer,
    "DisableReplicationPeer": of_peer,
    "GetReplicationPeerConfig": of_peer,
    "UpdateReplicationPeerConfig": lambda v: of_peer(v) + text(2, text(1, "127.0.0.1:1:/hbase")),
    "IsReplicationPeerEnabled": of_peer,
    "ReplicationPeerModificationSwitch": lambda v: number(1, 1),
    "DecommissionRegionServers": lambda v: text(1, server_name()) + number(2, 0),
    "RecommissionRegionServer": lambda v: text(1, server_name()),
    "ClearDeadServers": lambda v: text(1, server_name()),
    "SwitchRpcThrottle": lambda v: number(1, 1),
    "SwitchExceedThrottleQuota": lambda v: number(1, 0),
}
HBCK = {
    "SetTableStateInMeta": lambda v: text(1, v.table) + text(2, number(1, 0)),
    "SetRegionStateInMeta": lambda v: text(1, text(1, v.region) + number(2, 0)),
    "Assigns": lambda v: text(1, v.region),
    "Unassigns": lambda v: text(1, v.region),
    "BypassProcedure": lambda v: number(1, 999999) + number(2, 1),
    "ScheduleServerCrashProcedure": lambda v: text(1, server_name()),
}
LOCK = {
    "RequestLock": lambda v: number(1, 1) + text(3, v.table) + text(5, "test") + nonces(6),
    "LockHeartbeat": lambda v: number(1, 999999),
}
ADMIN = {
    "GetRegionInfo": lambda v: text(1, v.region),
    "GetStoreFile": lambda v: text(1, v.region),
    "FlushRegion": lambda v: text(1, v.region),
    "CompactRegion": lambda v: text(1, v.region),
    "CompactionSwitch": lambda v: number(1, 1),
    "GetRegionLoad": lambda v: text(1, v.table),
    "ClearCompactionQueues": lambda v: text(1, v.named("queue", b"long")),
    "ClearRegionBlockCache": lambda v: text(1, v.region),
}
SERVICES = {"MasterService": MASTER, "HbckService": HBCK, "LockService": LOCK, "AdminService": ADMIN}

# Names of tables, namespaces, snapshots and others.
NAMES = {"absent": b"absent", "long": LONG, "illegal": b"a b!", "empty": b"", "dots": b"..", "slash": b"a/b"}


class World:
    """A server with the enabled table t and the disabled table d, of two regions each, the snapshot s and the namespace n."""

    def __init__(self, server, is_hbase=False):
        self.server, self.is_hbase = server, is_hbase
        self.patience = PATIENCE_WITH_HBASE if is_hbase else PATIENCE
        self.client = hbase.Client(server)
        self.connections = {}
        self.text = ""  # of the last exception
        self.count = 0
        for name in (b"t", b"d"):
            self.make(name)
        self.ddl("DisableTable", text(1, table_message(b"d")) + nonces(2))
        self.ddl("CreateNamespace", text(1, text(1, "n")) + nonces(2))
        self.ddl("Snapshot", text(1, text(1, "s") + text(2, "t")) + nonces(2), of=2)

    def ddl(self, method, message, of=1):
        got = self.client.master.call(method, message)
        self.client.procedure(got[of][0])

    def make(self, name):
        self.client.create(name.decode(), {"f": {}, "g": {}}, splits=(b"m",))

    def fresh(self, disabled):
        self.count += 1
        name = b"fresh%d" % self.count
        self.make(name)
        if disabled:
            self.ddl("DisableTable", text(1, table_message(name)) + nonces(2))
        return name

    def regions(self, table):
        rows = self.client.data.scan(META, table + b",,", table + b" ,,") if len(table) < 1000 else {}
        if len(rows) < 2:
            rows = self.client.data.scan(META, b"t,,", b"t ,,")
        return sorted(rows)

    def info_of(self, table):
        name = self.regions(table)[0]
        region_id = int(name.rpartition(b",")[2].split(b".")[0])
        return hbase.region_info(name.split(b",")[0], b"", b"m", region_id)

    def connection(self, service):
        if service not in self.connections:
            address = self.server.regionserver if service in ("AdminService", "ClientService") else self.server.master
            self.connections[service] = hbase.Connection(address, service)
            self.connections[service].socket.settimeout(4 * self.patience)
        return self.connections[service]

    def outcome(self, service, method, message):
        """'ok', the exception's class, or 'procedure: ' and the class with which the procedure ended."""
        connection = self.connection(service)
        self.text = ""
        try:
            got = connection.call(method, message)
        except Refused as refused:
            self.text = refused.trace
            return matrix.outcome_of(refused)
        except (EOFError, socket.timeout) as e:
            self.connections.pop(service).close()
            return "hangs" if isinstance(e, socket.timeout) else "closed"
        return self.end_of(method, got)

    def end_of(self, method, got):
        in_field = 2 if method == "Snapshot" else 1
        ids = got.get(in_field, []) if method in PROCEDURES else []
        return self.end_of_procedure(ids[0]) if ids and isinstance(ids[0], int) else "ok"

    def end_of_procedure(self, proc_id):
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            got = self.client.master.call("getProcedureResult", number(1, proc_id))
            if got[1][0] == 2:
                if 5 not in got:
                    return "ok"
                return "procedure: " + fields(fields(got[5][0])[2][0])[1][0].decode().removeprefix(hbase.HB)
            time.sleep(0.02)
        return "procedure never ends"

    def settled(self):
        """Waits until no procedure runs: some calls are answered before the procedure that they start has ended."""
        def is_idle():
            found = self.client.master.call("GetProcedures", b"").get(1, [])
            return all(fields(one)[6][0] > 4 for one in found)

        if not self.is_hbase:
            hbase.wait_for(is_idle)

    def described(self):
        """Everything that a refused call must not change, without the tables of earlier cases."""
        self.settled()
        last = {table_message(b"fresh%d" % n) for n in (self.count - 1, self.count)}
        names = self.client.master.call("GetTableNames", number(2, 1)).get(1, [])
        names = [name for name in names if b"fresh" not in name or name in last]
        spaces = self.client.master.call("ListNamespaceDescriptors", b"").get(1, [])
        snapshots = self.client.master.call("GetCompletedSnapshots", b"").get(1, [])
        states = [(name, self.client.master.call("GetTableState", text(1, name))[1]) for name in names]
        meta = self.client.data.scan(META)
        states_of_regions = {row: cells.get((b"info", b"state")) for row, cells in meta.items() if not row.startswith(b"fresh")}
        return sorted(states), sorted(spaces), sorted(snapshots), states_of_regions


PROCEDURES = {"AddColumn", "DeleteColumn", "ModifyColumn", "SplitRegion", "TruncateRegion", "MergeTableRegions", "DeleteTable", "truncateTable", "EnableTable",
              "DisableTable", "ModifyTable", "FlushTable", "CreateTable", "ModifyTableStoreFileTracker", "ModifyColumnStoreFileTracker", "Snapshot",
              "RestoreSnapshot", "CreateNamespace", "ModifyNamespace", "DeleteNamespace", "AddReplicationPeer", "RemoveReplicationPeer",
              "EnableReplicationPeer", "DisableReplicationPeer", "UpdateReplicationPeerConfig"}


# ---- the cases of a method


def required_fields():
    """{request's name without case and underscores: numbers of its required fields}"""
    out = {}
    for path in (HERE.parent.parent / "proto").glob("*.proto"):
        name = None
        for line in path.read_text().splitlines():
            begun = re.match(r"message (\w+)", line)
            if begun:
                name = begun[1].lower()
            found = re.match(r"    required \S+ \w+ = (\d+)", line)
            if found and name:
                out.setdefault(name, []).append(int(found[1]))
    return out


def requests():
    """{(service, method): request's name}"""
    found = re.findall(r"X\((\w+), (\w+), (\w+), \w+\)", (HERE.parent.parent / "src/rpc/methods.def").read_text())
    return {(service, method): request.replace("_", "").lower() for service, method, request in found}


def without(message, wanted):
    """The message without its field of this number."""
    at, out = 0, b""
    while at < len(message):
        begin = at
        tag, at = hbase.read_varint(message, at)
        if tag & 7 == 2:
            length, at = hbase.read_varint(message, at)
            at += length
        else:
            _, at = hbase.read_varint(message, at)
        if tag >> 3 != wanted:
            out += message[begin:at]
    return out


# Calls that would end a real HBase: they are sent to this server only.
SPARED = {(method, f"region {case}") for method in ("UnassignRegion", "OfflineRegion", "MoveRegion", "AssignRegion", "Unassigns", "Assigns", "SetRegionStateInMeta")
          for case in ("of meta",)} | {("SetTableStateInMeta", "table hbase:meta")}

REGIONS = {"absent": hbase.region(b"0" * 32), "absent name": hbase.region(b"t,zz,1." + b"0" * 32 + b"."),
           "long": number(1, 2) + text(2, LONG), "illegal": number(1, 2) + text(2, b"a/.."), "empty": number(1, 1) + text(2, b""),
           "of meta": hbase.region(b"1588230740"), "of a disabled table": None}
INFOS = {"absent": hbase.region_info(b"t", b"zz", b"zzz", 1), "of an absent table": hbase.region_info(b"absent", b"", b"", 1),
         "of a long table": hbase.region_info(LONG, b"", b"", 1), "of meta": hbase.region_info(b"meta", b"", b"", 1, b"hbase"),
         "of a disabled table": None}


def cases_of(world, service, build, required):
    """Yields (case, message, how often it is sent; the last outcome counts)."""
    probe = Values(world)
    message = build(probe)
    yield "empty message", b"", 1
    for field in required:
        yield f"without field {field}", without(message, field), 1
    if "table" in probe.used:
        for case, name in {**NAMES, "in an absent namespace": b"absent:t", "hbase:meta": b"hbase:meta"}.items():
            yield f"table {case}", build(Values(world, table=name)), 1
    if "region" in probe.used:
        by_info = "info" in build.__code__.co_names
        for case, value in (INFOS if by_info else REGIONS).items():
            v = Values(world, table=b"d") if value is None else Values(world, region=value, info=value)
            yield f"region {case}", build(v), 1
    for kind in probe.used - {"table", "region"}:
        for case, name in NAMES.items():
            yield f"{kind} {case}", build(Values(world, name=name)), 1
    if probe.used & {"table", "region"} and service != "LockService":
        for case in ("enabled", "disabled"):
            for name, sent in ((f"fresh {case}", 1), (f"fresh {case}, twice", 2)):
                if matrix.CASES.search(name):
                    yield name, build(Values(world, table=world.fresh(case == "disabled"))), sent


def run(world, report):
    """Calls report(method, case, outcome, whether a refusal has changed something)."""
    required, names = required_fields(), requests()
    for service, methods in SERVICES.items():
        for title, build in methods.items():
            method = title.split(" ")[0]
            if not matrix.ONLY.search(title):
                continue
            for case, message, times in cases_of(world, service, build, required.get(names[(service, method)], [])):
                if not matrix.is_selected(title, case) or world.is_hbase and (method, case) in SPARED:
                    continue
                for _ in range(times):
                    before = world.described()
                    outcome = world.outcome(service, method, message)
                report(title, case, outcome, outcome != "ok" and world.described() != before)


SETTINGS = {"hbase.quota.enabled": "true", "hbase.master.procedure.remote.locks.timeout.ms": "1000"}
MATRIX = matrix.Matrix("bad_inputs", [method for methods in SERVICES.values() for method in methods], World, run, SETTINGS)

if __name__ == "__main__":
    sys.exit(MATRIX.main())
