#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RSGroupAdminService over the wire, with one server: groups are made, configured, renamed and removed, and survive a kill;
calls that need a second server are refused with HBase's texts. Without its class in the settings the service does not exist."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import Refused, fields, number, text  # pylint: disable=wrong-import-position

ENDPOINT = ("-D", "hbase.coprocessor.master.classes=org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint")
RESPONSES = b"org.apache.hadoop.hbase.protobuf.generated.RSGroupAdminProtos$"


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.start(*ENDPOINT)

    def start(self, *arguments):
        self.server = rorqual.Server(self.folder / "data", self.folder / "server.log", *arguments)
        self.client = hbase.Client(self.server)

    def call(self, method, message):
        called = text(1, b"") + text(2, "RSGroupAdminService") + text(3, method) + text(4, message)
        region = number(1, 1) + text(2, b"")
        value = fields(self.client.master.call("ExecMasterService", text(1, region) + text(2, called))[2][0])
        assert value[1] == [RESPONSES + method.encode() + b"Response"], value
        return fields(value[2][0])

    def self_address(self):
        info = fields(self.client.admin.call("GetServerInfo", b"")[1][0])
        name = fields(info[1][0])
        return text(1, name[1][0]) + number(2, name[2][0])

    def groups(self):
        """{name: (tables, number of servers, configuration)}"""
        out = {}
        for group in self.call("ListRSGroupInfos", b"").get(1, []):
            g = fields(group)
            tables = {fields(t)[1][0] + b":" + fields(t)[2][0] for t in g.get(3, [])}
            configuration = {fields(p)[1][0]: fields(p)[2][0] for p in g.get(5, [])}
            out[g[1][0]] = (tables, len(g.get(4, [])), configuration)
        return out


def refused(world, name, words, method, message):
    try:
        world.call(method, message)
    except Refused as e:
        assert e.name == name and words in e.trace, (e.name, e.trace)
        return
    raise AssertionError(f"{method} passed")


CONSTRAINT = "constraint.ConstraintException"


def everything_is_in_the_default_group(world):
    world.client.create("t", {"cf": {}})
    tables, servers, _ = world.groups()[b"default"]
    assert {b"hbase:meta", b"hbase:namespace", b"hbase:rsgroup", b"default:t"} <= tables and servers == 1, tables
    assert fields(world.call("GetRSGroupInfoOfTable", text(1, hbase.table_name("t")))[1][0])[1] == [b"default"]
    assert fields(world.call("GetRSGroupInfoOfServer", text(2, world.self_address()))[1][0])[1] == [b"default"]
    assert world.call("GetRSGroupInfoOfTable", text(1, hbase.table_name("none"))) == {}
    assert world.call("GetRSGroupInfo", text(1, "none")) == {}


def groups_are_made_configured_renamed_and_removed(world):
    world.call("AddRSGroup", text(1, "fast"))
    world.call("UpdateRSGroupConfig", text(1, "fast") + text(2, text(1, "k") + text(2, "v")))
    assert world.groups()[b"fast"] == (set(), 0, {b"k": b"v"})
    world.call("AddRSGroup", text(1, "slow"))
    world.call("RenameRSGroup", text(1, "slow") + text(2, "slower"))
    assert set(world.groups()) == {b"default", b"fast", b"slower"}
    world.call("RemoveRSGroup", text(1, "slower"))
    assert set(world.groups()) == {b"default", b"fast"}


def groups_survive_a_kill(world):
    before = world.groups()
    world.server.kill()
    world.start(*ENDPOINT)
    assert world.groups() == before


def what_needs_a_second_server_is_refused(world):
    fast, own, table = text(1, "fast"), world.self_address(), hbase.table_name("t")
    other = text(1, "elsewhere") + number(2, 1)
    refused(world, CONSTRAINT, "should keep at least one server in 'default' RSGroup.", "MoveServers", fast + text(3, own))
    refused(world, CONSTRAINT, "should keep at least one server in 'default' RSGroup.", "MoveServers", fast + text(3, own) + text(3, other))
    refused(world, CONSTRAINT, "Server elsewhere:1 is either offline or it does not exist.", "MoveServers", fast + text(3, other))
    refused(world, CONSTRAINT, "Target RSGroup must have at least one server.", "MoveTables", fast + text(2, table))
    refused(world, CONSTRAINT, "Target none RSGroup does not exist.", "MoveTables", text(1, "none") + text(2, table))
    refused(world, CONSTRAINT, "Cannot leave a RSGroup default that contains tables without servers to host them.",
            "MoveServersAndTables", fast + text(2, own) + text(3, table))
    refused(world, CONSTRAINT, "is an online server, not allowed to remove.", "RemoveServers", text(1, own))
    world.call("MoveTables", text(1, "default") + text(2, table))
    world.call("RemoveServers", text(1, other))


def wrong_names_are_refused(world):
    refused(world, "DoNotRetryIOException", "Group already exists: fast", "AddRSGroup", text(1, "fast"))
    refused(world, CONSTRAINT, "RSGroup name should only contain alphanumeric characters", "AddRSGroup", text(1, "a-b"))
    refused(world, CONSTRAINT, "RSGroup none does not exist", "RemoveRSGroup", text(1, "none"))
    refused(world, CONSTRAINT, "RSGroup default has", "RemoveRSGroup", text(1, "default"))
    refused(world, CONSTRAINT, "Can't rename default rsgroup", "RenameRSGroup", text(1, "default") + text(2, "x"))
    refused(world, CONSTRAINT, "Group already exists: fast", "RenameRSGroup", text(1, "fast") + text(2, "fast"))
    refused(world, CONSTRAINT, "can't be stored persistently", "UpdateRSGroupConfig", text(1, "default"))
    refused(world, CONSTRAINT, "RSGroup does not exist: none", "BalanceRSGroup", text(1, "none"))
    refused(world, "exceptions.UnknownProtocolException", "Unknown method Nothing", "Nothing", b"")
    assert world.call("BalanceRSGroup", text(1, "fast"))[1] == [0]


def rows_that_are_no_groups_are_left_out(world):
    name = world.client.regions("hbase:rsgroup")[0][1] if world.client.regions("hbase:rsgroup") else None
    assert name is not None
    world.client.data.put(name, b"odd", {(b"m", b"i"): b"\xff\xff\xff"})
    world.client.data.put(name, b"other", {(b"m", b"i"): text(1, "another")})
    assert set(world.groups()) == {b"default", b"fast"}


def without_the_class_there_is_no_service(world):
    world.client.close()
    assert world.server.stop() is None
    world.start()
    refused(world, "exceptions.UnknownProtocolException", "No registered Master Coprocessor Endpoint found for RSGroupAdminService",
            "ListRSGroupInfos", b"")


TESTS = [
    everything_is_in_the_default_group, groups_are_made_configured_renamed_and_removed, groups_survive_a_kill,
    what_needs_a_second_server_is_refused, wrong_names_are_refused, rows_that_are_no_groups_are_left_out,
    without_the_class_there_is_no_service,
]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("rsgroups", World, TESTS))
