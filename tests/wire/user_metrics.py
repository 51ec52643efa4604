#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests by user and client host in the cluster's status, with hbase.regionserver.user.metrics.enabled: which requests count,
names of any length, more users than are kept, the combination with quotas; and no metrics without the setting.
"""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import fields, number, text  # pylint: disable=wrong-import-position

KEPT = 1000
NAME_MAX = 255


def loads(client):
    """{user: [(host, reads, writes, filtered, version, service)]} and the length of the answer."""
    status = fields(client.master.call("GetClusterStatus", b"")[1][0])
    load = fields(fields(status[2][0])[2][0])
    out = {}
    for user in load.get(12, []):
        user = fields(user)
        clients = [fields(c) for c in user[2]]
        assert all(c[6][0] == user[1][0] and c[5][0] == c[1][0] for c in clients), user
        out[user[1][0].decode()] = [(c[1][0].decode(), c[2][0], c[3][0], c[4][0], c[7][0].decode(), c[8][0].decode()) for c in clients]
    return out


def increment(row):
    column = text(3, text(1, b"f") + text(2, text(1, b"n") + text(2, struct.pack(">q", 1))))
    return text(1, row) + number(2, 1) + column


def connect(server, user):
    return hbase.Connection(server.regionserver, user=user)


def counts_by_user(server, client, name):
    with_filter = text(3, b"") + text(4, b"") + number(17, 100) + text(
        5, text(1, b"org.apache.hadoop.hbase.filter.PrefixFilter") + text(2, text(1, b"row1")))
    writer, reader = connect(server, "writer"), connect(server, "reader")
    for i in range(5):
        writer.put(name, b"row%d" % i, {(b"f", b"q"): b"v"})
    # batches are not counted, as in HBase
    assert writer.put_many(name, [(b"row%d" % i, {(b"f", b"q"): b"v"}) for i in range(5, 9)]) == [None] * 4
    writer.call("Mutate", text(1, hbase.region(name)) + text(2, increment(b"row1")))
    reader.get(name, b"row1")
    reader.get(name, b"absent")  # a read of an absent row
    assert len(reader.scan(name)) == 9
    reader.call("Scan", text(1, hbase.region(name)) + text(2, with_filter) + number(4, 100) + number(5, 1))
    got = loads(client)
    assert got["writer"] == [("127.0.0.1", 0, 6, 0, "2.6.1", "ClientService")], got
    (host, reads, writes, filtered, *_), = got["reader"]
    assert (host, reads, writes) == ("127.0.0.1", 1 + 9 + 1, 0) and filtered > 0, got
    assert "tester" not in got or got["tester"][0][2] == 0, got  # the user has only read
    for c in (writer, reader):
        c.close()


def names_are_bounded(server, client, name):
    """A long name is truncated; a busy user is kept while others are added and dropped."""
    long = connect(server, "x" * 10_000)
    long.get(name, b"row1")
    got = loads(client)
    assert "x" * NAME_MAX in got and max(map(len, got)) == NAME_MAX, sorted(map(len, got))
    long.close()
    for i in range(KEPT + 200):
        c = connect(server, f"user {i}")
        c.get(name, b"row1")
        c.close()
    got = loads(client)
    assert len(got) <= KEPT and {"reader", "writer", f"user {KEPT + 199}"} <= set(got), (len(got), sorted(got)[:3])


def throttles_and_counts_go_together(server, client, name):
    """Requests refused by a quota are not counted; counting continues when quotas begin to limit, and when they end."""
    day = 7

    def throttle(limit):
        quota = b"" if limit is None else text(2, number(1, day) + number(2, limit) + number(4, 2))
        client.master.call("SetQuota", text(1, b"limited") + text(7, number(1, 1) + quota))

    limited = connect(server, "limited")

    def put():
        limited.put(name, b"row", {(b"f", b"q"): b"v"})

    put()
    throttle(2)
    put()
    put()
    try:
        put()
        raise AssertionError("it passed")
    except hbase.Refused as refused:
        assert refused.name == "quotas.RpcThrottlingException", refused
    assert loads(client)["limited"][0][2] == 3, loads(client)
    throttle(None)
    put()
    assert loads(client)["limited"][0][2] == 4, loads(client)
    limited.close()


def nothing_without_the_setting(server, client, name):
    client.data.put(name, b"row", {(b"f", b"q"): b"v"})
    client.data.get(name, b"row")
    assert loads(client) == {}


def main():
    report = rorqual.Report()
    on = ("-D", "hbase.regionserver.user.metrics.enabled=true")
    for arguments, tests in ((on, (counts_by_user, names_are_bounded)),
                             ((*on, "-D", "hbase.quota.enabled=true"), (throttles_and_counts_go_together,)),
                             ((), (nothing_without_the_setting,))):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            server = rorqual.Server(root / "data", root / "log", *arguments)
            client = hbase.Client(server)
            client.create("t", {"f": {}})
            name = client.regions("t")[0][1]
            for test in tests:
                problem = None
                try:
                    test(server, client, name)
                except Exception as e:  # pylint: disable=broad-except
                    problem = repr(e)[:900]
                report.outcome(f"user metrics/{test.__name__}", problem)
            client.close()
            report.outcome("user metrics/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
