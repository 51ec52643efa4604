#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BulkDeleteService over the wire: deletes rows, families, columns or versions selected by a scan, in batches of any
size, and nothing else. Every response is compared with a model of the table."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import Refused, fields, number, region, text  # pylint: disable=wrong-import-position

ENDPOINT = "org.apache.hadoop.hbase.coprocessor.example.BulkDeleteEndpoint"
RESPONSE = b"org.apache.hadoop.hbase.coprocessor.example.generated.BulkDeleteProtos$BulkDeleteResponse"
ROW, FAMILY, COLUMN, VERSION = range(4)
ALL = number(7, (1 << 31) - 1)  # max_versions: all


class World:
    """A server whose tables have the endpoint."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.server = rorqual.Server(folder / "data", folder / "server.log", "-D", f"hbase.coprocessor.user.region.classes={ENDPOINT}")
        self.client = hbase.Client(self.server)
        self.tables = 0

    def table(self, rows=4):
        """A new table: each row has families a and b, columns p and q, and the versions 1, 2 and 3."""
        self.tables += 1
        name = f"t{self.tables}"
        self.client.create(name, {"a": {"VERSIONS": "9"}, "b": {"VERSIONS": "9"}})
        name = self.client.regions(name)[0][1]
        for at in range(0, rows, 500):
            actions = b"".join(text(3, number(1, i) + text(2, versions(b"r%05d" % i))) for i in range(at, min(rows, at + 500)))
            outcomes = hbase.multi_outcomes(self.client.data.call("Multi", text(1, text(1, region(name)) + actions)), rows)
            assert all(o is None or o == "no answer" for o in outcomes), outcomes
        return name

    def delete(self, name, kind, scan=b"", batch=2, timestamp=None):
        """Deletes; returns the numbers of rows and versions deleted according to the response."""
        message = text(1, scan) + number(2, kind) + number(4, batch) + (b"" if timestamp is None else number(3, timestamp))
        called = text(1, b"") + text(2, "BulkDeleteService") + text(3, "delete") + text(4, message)
        value = fields(self.client.data.call("ExecService", text(1, region(name)) + text(2, called))[2][0])
        assert value[1] == [RESPONSE], value
        answer = fields(value[2][0])
        assert (2 in answer) == (kind == VERSION), answer
        return answer[1][0], answer.get(2, [0])[0]

    def cells(self, name):
        """{(row, family, qualifier): {timestamps}}, read with all versions."""
        answer = self.client.data.call("Scan", text(1, region(name)) + text(2, ALL) + number(4, 100000))
        out = {}
        for result in answer.get(5, []):
            for cell in fields(result).get(1, []):
                f = fields(cell)
                out.setdefault((f[1][0], f[2][0], f[3][0]), set()).add(f[4][0])
        return out


def versions(row):
    """A put of all cells of a row."""
    columns = b""
    for family in (b"a", b"b"):
        values = b"".join(text(2, text(1, q) + text(2, b"v%d" % at) + number(3, at)) for q in (b"p", b"q") for at in (1, 2, 3))
        columns += text(3, text(1, family) + values)
    return text(1, row) + number(2, hbase.PUT) + columns


def expected(rows, keeps):
    cells = {(b"r%05d" % i, f, q): {1, 2, 3} for i in range(rows) for f in (b"a", b"b") for q in (b"p", b"q")}
    kept = {key: {at for at in times if keeps(key, at)} for key, times in cells.items()}
    return {key: times for key, times in kept.items() if times}


def check(world, name, keeps, rows=4):
    got = world.cells(name)
    assert got == expected(rows, keeps), got


def rows_of_a_range(world):
    name = world.table()
    scan = text(3, b"r00001") + text(4, b"r00003")
    assert world.delete(name, ROW, scan) == (2, 0)
    check(world, name, lambda key, at: key[0] in (b"r00000", b"r00003"))
    assert world.delete(name, ROW, scan) == (0, 0)


def rows_up_to_a_timestamp(world):
    name = world.table()
    assert world.delete(name, ROW, timestamp=2) == (4, 0)
    check(world, name, lambda key, at: at == 3)


def families_that_the_scan_has(world):
    name = world.table()
    assert world.delete(name, FAMILY, text(1, text(1, "b") + text(2, "q"))) == (4, 0)
    check(world, name, lambda key, at: key[1] == b"a")


def columns_that_the_scan_has(world):
    name = world.table()
    assert world.delete(name, COLUMN, text(1, text(1, "b") + text(2, "q")) + ALL, timestamp=2) == (4, 0)
    check(world, name, lambda key, at: key[1:] != (b"b", b"q") or at == 3)


def versions_that_the_scan_has(world):
    name = world.table()
    # The newest version of each column.
    assert world.delete(name, VERSION) == (4, 16)
    check(world, name, lambda key, at: at != 3)
    assert world.delete(name, VERSION, text(1, text(1, "a")) + ALL, batch=1) == (4, 16)
    check(world, name, lambda key, at: key[1] == b"b" and at != 3)


def one_version_by_its_timestamp(world):
    name = world.table()
    assert world.delete(name, VERSION, ALL, timestamp=2) == (4, 16), "a column is counted once"
    check(world, name, lambda key, at: at != 2)


def a_filter_selects(world):
    name = world.table()
    prefix = text(1, hbase.HB + "filter.PrefixFilter") + text(2, text(1, b"r00002"))
    assert world.delete(name, ROW, text(5, prefix)) == (1, 0)
    check(world, name, lambda key, at: key[0] != b"r00002")


def many_rows_in_batches_of_any_size(world):
    for batch in (1, 7, 100000):
        name = world.table(3000)
        world.client.flush(name)
        assert world.delete(name, ROW, batch=batch) == (3000, 0)
        assert world.cells(name) == {}


def rows_wider_than_a_batchs_memory(world):
    name = world.table(2)
    value = bytes(200000)
    for i in range(8):
        world.client.data.put(name, b"wide%d" % i, {(b"a", b"%d" % k): value for k in range(3)})
    assert world.delete(name, COLUMN, text(3, b"wide"), batch=8) == (8, 0)
    check(world, name, lambda key, at: True, rows=2)


def deleted_once_after_a_kill(world):
    name = world.table()
    assert world.delete(name, ROW) == (4, 0)
    folder = world.server.log.parent
    world.server.kill()
    world.server = rorqual.Server(folder / "data", folder / "server.log", "-D", f"hbase.coprocessor.user.region.classes={ENDPOINT}")
    world.client = hbase.Client(world.server)
    assert world.cells(name) == {}


def refusals(world):
    name = world.table()
    for arguments, words in (((ROW, b"", 0), "rowBatchSize is 0"),
                             ((ROW, text(1, text(1, "none"))), "Column family none does not exist")):
        try:
            world.delete(name, *arguments)
            raise RuntimeError(f"{arguments} passed")
        except Refused as refused:
            assert words in refused.trace, refused.trace
    check(world, name, lambda key, at: True)
    try:
        world.delete(b"hbase:meta,,1", ROW)
        raise RuntimeError("hbase:meta has the endpoint")
    except Refused as refused:
        assert "No registered coprocessor service found for BulkDeleteService" in refused.trace, refused.trace


TESTS = [
    rows_of_a_range, rows_up_to_a_timestamp, families_that_the_scan_has, columns_that_the_scan_has, versions_that_the_scan_has,
    one_version_by_its_timestamp, a_filter_selects, many_rows_in_batches_of_any_size, rows_wider_than_a_batchs_memory,
    deleted_once_after_a_kill, refusals,
]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("bulk_delete", World, TESTS))
