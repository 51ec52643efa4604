#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of admin_fuzz.c into fuzz/corpus/admin: one for every method in the tables of master and
region server, with every field set, and sessions that create, change and drop tables.

Messages are made from proto/*.proto: the name or type of a field determines its value, so that most requests name
existing objects. protoc encodes the text.
"""
import pathlib
import re
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {"master_service": 0, "admin_service": 1, "admin_mob": 2, "meta_service": 3, "hbck": 4, "master_locks": 5,
         "region_servers": 6, "bootstrap_service": 7}
FAMILY = 'name: "f" attributes { first: "VERSIONS" second: "2" }'
SCHEMA = 'table_name { namespace: "default" qualifier: "%s" } column_families { ' + FAMILY + " }"
VALUES = {  # values by the name of the message or of the field
    "TableName": 'namespace: "default" qualifier: "t"',
    "RegionSpecifier": 'type: ENCODED_REGION_NAME value: "0"',
    "RegionInfo": 'region_id: 1 table_name { namespace: "default" qualifier: "t" }',
    "TableSchema": SCHEMA % "t",
    "ColumnFamilySchema": FAMILY,
    "ServerName": 'host_name: "localhost" port: 16020 start_code: 1700000000001',
    "split_keys": '"c"', "split_row": '"b"', "column_name": '"g"', "column_family": '"f"', "family": '"f"',
    "regex": '"t.*"', "namespace": '"default"', "namespaceName": '"default"', "proc_id": "1",
    "log_class_name": '"RecentLogs"',
}
SCALARS = {"bool": "true", "bytes": '"b"', "string": '"x"', "double": "1.5", "float": "1.5"}


def definitions():
    """{message: [(label, type, name)]} and {enum: its first value}, by their unqualified names."""
    messages, enums, where = {}, {}, {}
    for path in sorted((HERE / "../proto").glob("*.proto")):
        stack = []
        text = re.sub(r"//.*", "", path.read_text())
        for token in re.finditer(r"message (\w+) \{|enum (\w+) \{|oneof \w+ \{|(\w+) = -?\d+;|"
                                 r"(required|optional|repeated) ([\w.]+) (\w+) = \d+[^;]*;|\}", text):
            message, enum, value, label, kind, name = token.groups()
            if message:
                stack.append(message)
                messages[message] = []
                where.setdefault(message, (path.name, ".".join(s for s in stack if s)))
            elif enum:
                stack.append(enum)
            elif value:
                enums.setdefault(".".join(stack[-2:]), value)
                enums.setdefault(stack[-1], value)
            elif label:
                messages[stack[-1]].append((label, kind, name))
            elif token.group() == "}":
                stack.pop()
            else:
                stack.append(stack[-1] if stack else "")
    return messages, enums, where


MESSAGES, ENUMS, WHERE = definitions()
for parts in MESSAGES.values():  # a.b is an enum of message a, or message b
    parts[:] = [(label, kind if kind in ENUMS else kind.split(".")[-1], name) for label, kind, name in parts]
for message, parts in MESSAGES.items():  # an enum of the message itself takes precedence over others with the same name
    parts[:] = [(label, own if (own := f"{message}.{kind}") in ENUMS else kind, name) for label, kind, name in parts]


def value(kind, name, depth):
    given = VALUES.get(kind) if kind in MESSAGES else VALUES.get(name)
    if kind in MESSAGES:
        return "{ %s }" % (given if given is not None else fields(kind, depth + 1))
    return given or ENUMS.get(kind) or SCALARS.get(kind, "1")


def fields(message, depth=0):
    return " ".join(f"{name} {value(kind, name, depth)}" if kind in MESSAGES else f"{name}: {value(kind, name, depth)}"
                    for label, kind, name in MESSAGES[message]
                    if (label == "required" or depth < 3) and not name.startswith("nonce"))


def encode(message, text):
    file, name = WHERE[message]
    return subprocess.run(["protoc", f"--encode=pb.{name}", "-I", str(HERE / "../proto"), file], check=True,
                          input=text.encode(), stdout=subprocess.PIPE).stdout


def methods():
    """{(kind, method): (number, request)}"""
    by_bare = {re.sub("_", "", m).lower(): m for m in MESSAGES}
    found = {}
    for room in ("service",):
        for path in sorted((HERE / f"../src/{room}").glob("*.c")):
            table = re.findall(r'\{\s*"(\w+)",\s*&pb__(\w+)__descriptor', path.read_text())
            if path.stem in KINDS:
                for i, (method, request) in enumerate(table):
                    found[path.stem, method] = i, by_bare[request.replace("_", "")]
    return found


METHODS = methods()


def call(kind, method, text=None, block=b""):
    number, request = METHODS[kind, method]
    data = encode(request, fields(request) if text is None else text)
    return struct.pack(">BHH", number, len(data), len(block)) + data + block


def cell(row, family, qualifier, value, kind=4):
    """A cell in the form of KeyValueCodecWithTags."""
    key = struct.pack(">H", len(row)) + row + bytes([len(family)]) + family + qualifier + struct.pack(">Qb", 5, kind)
    bytes_of = struct.pack(">II", len(key), len(value)) + key + value
    return struct.pack(">I", len(bytes_of)) + bytes_of


def seed(name, kind, *calls):
    (HERE / "corpus/admin" / name).write_bytes(bytes([KINDS[kind]]) + b"".join(calls))


def master(*calls):
    return [call("master_service", *c) for c in calls]


def sessions():
    t = 'table_name { namespace: "default" qualifier: "t" }'
    n = t.replace('"t"', '"n"')
    info = 'region_info { region_id: 0 ' + t + ' }'
    wait = ("getProcedureResult", "proc_id: 4")
    seed("a_table", "master_service", *master(
        ("CreateTable", f'table_schema {{ {SCHEMA % "n"} }} split_keys: "b" split_keys: "d" nonce: 3'), wait,
        ("AddColumn", n + ' column_families { name: "h" attributes { first: "IS_MOB" second: "true" } }'),
        ("ModifyColumn", n + ' column_families { ' + FAMILY.replace('"2"', '"5"') + ' }'),
        ("DeleteColumn", n + ' column_name: "h"'), ("DisableTable", n), ("DeleteTable", n)))
    seed("truncated", "master_service", *master(
        ("DisableTable", t), ("truncateTable", t.replace("table_name", "tableName") + " preserveSplits: true"),
        ("EnableTable", t)))
    seed("changed", "master_service", *master(
        ("ModifyTable", f'{t} table_schema {{ {SCHEMA % "t"} column_families {{ name: "g" }} attributes {{ '
         'first: "REGION_REPLICATION" second: "3" } attributes { first: "MAX_FILESIZE" second: "99" } }'),
        ("GetTableState", t), ("GetSchemaAlterStatus", t)))
    seed("split_and_merged", "master_service", *master(
        ("SplitRegion", info + ' split_row: "a3"'), ("GetClusterStatus", ""), ("RunCatalogScan", "")))
    seed("merged", "master_service", *master(
        ("MergeTableRegions", "".join(f'region {{ type: ENCODED_REGION_NAME value: "{i}" }} ' for i in (0, 1)))))
    seed("with_off_switches", "master_service", *master(
        ("SetSplitOrMergeEnabled", "enabled: false switch_types: SPLIT switch_types: MERGE"),
        ("SplitRegion", info + ' split_row: "b"'), ("MergeTableRegions", 'region { type: ENCODED_REGION_NAME value: "1" }'
                                                   ' region { type: ENCODED_REGION_NAME value: "2" } forcible: true'),
        ("SetSplitOrMergeEnabled", "enabled: true switch_types: SPLIT switch_types: MERGE")))
    three = f'{t} table_schema {{ {SCHEMA % "t"} column_families {{ name: "g" }} attributes {{ ' \
        'first: "REGION_REPLICATION" second: "3" } }'
    seed("fewer_replicas", "master_service", *master(
        ("ModifyTable", three), ("ModifyTable", three.replace('"3"', '"1"')),
        ("ModifyTable", three.replace('"3"', '"2"') + " reopen_regions: false")))
    in_s = (f'table_schema {{ {SCHEMA % "x"} }} ').replace('"default"', '"s"')
    seed("with_a_quota", "master_service", *master(
        ("CreateNamespace", 'namespaceDescriptor { name: "s" configuration { name: "hbase.namespace.quota.maxregions" '
         'value: "3" } configuration { name: "hbase.namespace.quota.maxtables" value: "1" } }'),
        ("CreateTable", in_s + 'split_keys: "b" split_keys: "c" split_keys: "d"'), ("CreateTable", in_s),
        ("CreateTable", in_s.replace('"x"', '"y"') + 'split_keys: "b" split_keys: "b"')))
    region = 'region { type: ENCODED_REGION_NAME value: "\\201" } '
    seed("mob", "admin_mob", call("admin_mob", "GetRegionInfo", region + "compaction_state: true"),
         call("admin_mob", "CompactRegion", region + 'family: "m" major: true'))
    entry = ('entry { key { encoded_region_name: "x" table_name: "%s" log_sequence_number: 7 write_time: 9 '
             'cluster_ids { least_sig_bits: 1 most_sig_bits: 2 } } associated_cell_count: %d } ')
    load = encode("BulkLoadDescriptor", 'table_name { namespace: "default" qualifier: "t" } encoded_region_name: "x" '
                  'stores { family_name: "f" store_home_dir: "f" store_file: "../y" } bulkload_seq_num: 1')
    rows = cell(b"a", b"f", b"q", b"v") + cell(b"a", b"f", b"q", b"", 8) + cell(b"z", b"f", b"q", b"w")
    seed("replicated", "admin_service",
         call("admin_service", "ReplicateWALEntry", entry % ("t", 2) + entry % ("t", 1), rows),
         call("admin_service", "ReplicateWALEntry", entry % ("t", 9), rows),
         call("admin_service", "ReplicateWALEntry", entry % ("none", 3), rows),
         call("admin_service", "ReplicateWALEntry", 'sourceBaseNamespaceDirPath: "file:/d" ' + entry % ("t", 2),
              cell(b"a", b"METAFAMILY", b"HBASE::BULK_LOAD", load) + cell(b"b", b"f", b"q", b"v")))
    peer = 'peer_id: "p" peer_config { clusterkey: "h:2181:/hbase" configuration { name: "k" value: "v" } }'
    seed("peers", "master_service", *master(
        ("AddReplicationPeer", peer + " peer_state { state: DISABLED }"), ("GetReplicationPeerConfig", 'peer_id: "p"'),
        ("UpdateReplicationPeerConfig", peer.replace('"v"', '"w"')), ("EnableReplicationPeer", 'peer_id: "p"'),
        ("ListReplicationPeers", 'regex: "p.*"'), ("IsReplicationPeerEnabled", 'peer_id: "p"'),
        ("RemoveReplicationPeer", 'peer_id: "p"')))
    seed("a_namespace", "master_service", *master(
        ("CreateNamespace", 'namespaceDescriptor { name: "s" configuration { name: "k" value: "v" } }'),
        ("ModifyNamespace", 'namespaceDescriptor { name: "s" }'), ("DeleteNamespace", 'namespaceName: "s"')))


    throttle = "throttle { type: WRITE_NUMBER timed_quota { time_unit: DAYS soft_limit: 1 } }"
    seed("with_quotas", "master_service", *master(
        ("SetQuota", t + throttle), ("SetQuota", 'user_name: "u" ' + throttle), ("SetQuota", 'namespace: "default" ' + throttle),
        ("SetQuota", 'region_server: "all" ' + throttle), ("SwitchExceedThrottleQuota", "exceed_throttle_quota_enabled: true"),
        ("SetQuota", t + "space_limit { quota { soft_limit: 0 violation_policy: DISABLE } }"), ("GetQuotaStates", ""),
        ("SetQuota", t + "space_limit { quota { remove: true } }"), ("SetQuota", t + "remove_all: true")))
    seed("locked", "master_locks", call("master_locks", "RequestLock", t + ' lock_type: EXCLUSIVE description: "d"'),
         call("master_locks", "LockHeartbeat", "proc_id: 5"), call("master_locks", "LockHeartbeat", "proc_id: 5 keep_alive: false"))


def main():
    folder = HERE / "corpus/admin"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for (kind, method), (_, request) in METHODS.items():
        seed(f"{kind.split('_')[0] if kind != 'admin_mob' else 'mob'}-{method}", kind, call(kind, method))
    sessions()


main()
