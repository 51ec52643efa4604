# SPDX-License-Identifier: Apache-2.0
"""Calls of HappyBase's API, whose results and exceptions must be the same for real HappyBase on HBase's Thrift server and
for rorqual.happybase. happybase_calls.json has the results of real HappyBase (tests/e2e/happybase.py --record writes it).

Timestamps are given, so that results can be compared.
"""
import functools
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

TABLE = "calls"
PREFIX = "rorqual_calls"


def shown(value: Any) -> Any:
    """A result as JSON: bytes as text, rows as lists of pairs in their order."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return [[shown(k), shown(v)] for k, v in sorted(value.items())]
    if isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        return [shown(item) for item in value]
    return value


def outcome(call: Callable[[], Any]) -> Any:
    """A call's result. Of an error only the exception's class is compared and, for HBase's errors, HBase's class: the rest
    of the Thrift server's message is a stack trace."""
    try:
        return shown(call())
    except Exception as error:  # pylint: disable=broad-except
        message = getattr(error, "message", None)
        if isinstance(message, bytes):
            message = message.decode(errors="replace")
        hbase = message.split(":")[0].split("\n")[0] if message and message.startswith(("org.", "java.")) else ""
        return ["raised", type(error).__name__, hbase]


def regions(table: Any) -> List[Any]:
    return [[r["start_key"], r["end_key"], r["version"], isinstance(r["id"], int), b"," in r["name"]] for r in table.regions()]


def calls(connection: Any) -> Iterator[Tuple[str, Callable[[], Any]]]:
    """The calls in order, each with its name."""
    families: Dict[str, Any] = {"a": {"max_versions": 5}, "b": None, "c:": {"time_to_live": 86400, "compression": "gz",
                                "in_memory": True, "bloom_filter_type": "ROWCOL", "block_cache_enabled": True}}
    yield "create", lambda: connection.create_table(TABLE, families)
    yield "create twice", lambda: connection.create_table(TABLE, families)
    yield "create bad compression", lambda: connection.create_table("bad", {"a": {"compression": "nonsense"}})
    yield "create unknown option", lambda: connection.create_table("bad", {"a": {"nonsense": 1}})
    yield "create bad name", lambda: connection.create_table("b ad", {"a": {}})
    yield "create no families", lambda: connection.create_table("bad", {})
    yield "tables", connection.tables
    yield "enabled", lambda: connection.is_table_enabled(TABLE)
    yield "enabled of nothing", lambda: connection.is_table_enabled("nothing")
    yield "disable nothing", lambda: connection.disable_table("nothing")
    yield "delete enabled", lambda: connection.delete_table(TABLE)
    yield "delete nothing", lambda: connection.delete_table("nothing")
    table = connection.table(TABLE)
    yield "families", table.families
    yield "families of nothing", connection.table("nothing").families
    yield "regions", lambda: regions(table)
    yield "regions of nothing", lambda: regions(connection.table("nothing"))
    # Rows.
    for time in (10, 20, 30):
        yield f"put {time}", functools.partial(table.put, b"r1", {
            b"a:x": b"x%d" % time, b"a:y": b"y%d" % time, b"b:x": b"b%d" % time}, timestamp=time)
    yield "put text", lambda: table.put("r2", {"a:x": "text", "a:": "empty"}, timestamp=40)
    yield "put without log", lambda: table.put(b"r3", {b"a:x": b"1"}, timestamp=50, wal=False)
    yield "put nothing", lambda: table.put(b"r4", {})
    yield "put unknown family", lambda: table.put(b"r4", {b"z:x": b"1"})
    yield "put empty row", lambda: table.put(b"", {b"a:x": b"1"})
    yield "row", lambda: table.row(b"r1")
    yield "row text key", lambda: table.row("r2")
    yield "row of nothing", lambda: table.row(b"none")
    yield "row empty key", lambda: table.row(b"")
    yield "row columns", lambda: table.row(b"r1", [b"a:x", b"b"])
    yield "row tuple of text", lambda: table.row(b"r1", ("a:x", "b:x"))
    yield "row family with colon", lambda: table.row(b"r2", [b"a:"])
    yield "row no columns", lambda: table.row(b"r1", [])
    yield "row unknown family", lambda: table.row(b"r1", [b"z"])
    yield "row columns as text", lambda: table.row(b"r1", b"a:x")
    yield "row until", lambda: table.row(b"r1", timestamp=20)
    yield "row until 0", lambda: table.row(b"r1", timestamp=0)
    yield "row until 11 with timestamps", lambda: table.row(b"r1", timestamp=11, include_timestamp=True)
    yield "row with timestamps", lambda: table.row(b"r1", include_timestamp=True)
    yield "row of nothing's table", lambda: connection.table("nothing").row(b"r1")
    yield "rows", lambda: table.rows([b"r3", b"none", b"r1", b"r3"], [b"a:x"])
    yield "rows none", lambda: table.rows([])
    yield "rows until", lambda: table.rows([b"r1", b"r2"], timestamp=30)
    yield "rows with timestamps", lambda: table.rows((b"r1",), [b"a"], include_timestamp=True)
    yield "rows empty key", lambda: table.rows([b"r1", b""])
    yield "cells", lambda: table.cells(b"r1", b"a:x")
    yield "cells two", lambda: table.cells(b"r1", "a:x", versions=2)
    yield "cells of a family", lambda: table.cells(b"r1", b"a", versions=2)
    yield "cells until with timestamps", lambda: table.cells(b"r1", b"a:x", timestamp=30, include_timestamp=True)
    yield "cells of nothing", lambda: table.cells(b"none", b"a:x")
    yield "cells versions 0", lambda: table.cells(b"r1", b"a:x", versions=0)
    yield "cells versions text", lambda: table.cells(b"r1", b"a:x", versions="1")
    # Scans.
    yield "fill", lambda: fill(table)
    yield "scan", lambda: table.scan()
    yield "scan range", lambda: table.scan(row_start=b"s2", row_stop=b"s5")
    yield "scan text range", lambda: table.scan("s2", "s5", columns=["b"])
    yield "scan prefix", lambda: table.scan(row_prefix=b"s1")
    yield "scan prefix of all ff", lambda: table.scan(row_prefix=b"\xff")
    yield "scan reverse", lambda: table.scan(reverse=True, limit=3)
    yield "scan reverse range", lambda: table.scan(row_start=b"s5", row_stop=b"s2", reverse=True)
    yield "scan reverse prefix", lambda: table.scan(row_prefix=b"s1", reverse=True)
    yield "scan reverse prefix with its next row", lambda: table.scan(row_prefix=b"r", reverse=True)
    yield "scan limit", lambda: table.scan(limit=2, batch_size=1)
    yield "scan limit of batches", lambda: table.scan(limit=5, batch_size=3)
    yield "scan parts", lambda: table.scan(row_prefix=b"r1", scan_batching=2)
    yield "scan parts limited", lambda: table.scan(row_prefix=b"r", scan_batching=1, limit=3)
    yield "scan until", lambda: table.scan(timestamp=20)
    yield "scan until 0", lambda: table.scan(timestamp=0)
    yield "scan sorted with timestamps", lambda: table.scan(row_prefix=b"r1", sorted_columns=True, include_timestamp=True)
    yield "scan sorted", lambda: [list(row.items()) for _, row in table.scan(row_prefix=b"r", sorted_columns=True)]
    yield "scan filter", lambda: table.scan(filter="PrefixFilter('s1') AND QualifierFilter(=, 'binary:x')")
    yield "scan filter of bytes", lambda: table.scan(filter=b"RowFilter(>, 'binary:s17')", limit=2)
    yield "scan filter columns", lambda: table.scan(filter="SingleColumnValueFilter('a','x',=,'binary:x10',true,true)")
    yield "scan bad filter", lambda: table.scan(filter="Nonsense('x')")
    yield "scan limit 0", lambda: table.scan(limit=0)
    yield "scan batch 0", lambda: table.scan(batch_size=0)
    yield "scan both", lambda: table.scan(row_prefix=b"a", row_start=b"b")
    yield "scan unknown family", lambda: table.scan(columns=[b"z"])
    yield "scan of nothing's table", lambda: connection.table("nothing").scan()
    # Batches and deletes.
    yield "batch", lambda: batch(table)
    yield "batch row", lambda: table.row(b"batch", include_timestamp=True)
    yield "batch put and delete of a column", lambda: table.row(b"both")
    yield "batch transaction", lambda: aborted(table, True)
    yield "batch transaction row", lambda: table.row(b"aborted")
    yield "batch no transaction", lambda: aborted(table, False)
    yield "batch no transaction row", lambda: table.row(b"aborted")
    yield "batch sizes", lambda: sizes(table)
    yield "batch wrong family", lambda: wrong(table)
    yield "batch wrong family row", lambda: table.row(b"wrong")
    yield "batch size 0", lambda: table.batch(batch_size=0)
    yield "batch size and transaction", lambda: table.batch(batch_size=5, transaction=True)
    yield "delete column until", lambda: table.delete(b"r1", [b"a:x"], timestamp=20)
    yield "after delete column until", lambda: table.cells(b"r1", b"a:x")
    yield "delete family until", lambda: table.delete(b"r1", [b"b"], timestamp=20)
    yield "after delete family until", lambda: table.cells(b"r1", b"b:x")
    yield "delete column", lambda: table.delete(b"r1", ["a:y"])
    yield "after delete column", lambda: table.row(b"r1")
    yield "delete no columns", lambda: table.delete(b"r1", [])
    yield "delete row", lambda: table.delete(b"r1")
    yield "after delete row", lambda: table.row(b"r1")
    yield "delete unknown family", lambda: table.delete(b"r2", [b"z:x"])
    # Counters.
    yield "counter get", lambda: table.counter_get(b"count", b"a:n")
    yield "counter inc", lambda: table.counter_inc(b"count", "a:n", 10)
    yield "counter dec", lambda: table.counter_dec("count", b"a:n", 3)
    yield "counter set", lambda: table.counter_set(b"count", b"a:n", -2)
    yield "counter after set", lambda: table.counter_inc(b"count", b"a:n")
    yield "counter cell", lambda: table.row(b"count")
    yield "counter family", lambda: table.counter_inc(b"count", b"b", 4)
    yield "counter family row", lambda: table.row(b"count", [b"b"])
    yield "counter of text", lambda: table.counter_inc(b"r2", b"a:x")
    yield "counter unknown family", lambda: table.counter_inc(b"r2", b"z:x")
    # The end.
    yield "compact", lambda: connection.compact_table(TABLE)
    yield "compact major", lambda: connection.compact_table(TABLE, major=True)
    yield "disable", lambda: connection.disable_table(TABLE)
    yield "disable twice", lambda: connection.disable_table(TABLE)
    yield "enable", lambda: connection.enable_table(TABLE)
    yield "enable twice", lambda: connection.enable_table(TABLE)
    yield "delete", lambda: connection.delete_table(TABLE, disable=True)
    yield "tables at the end", connection.tables


def fill(table: Any) -> None:
    with table.batch(timestamp=60) as batch:
        for i in range(20):
            batch.put(f"s{i}", {"a:x": f"x{i}", "b:y": f"y{i}"})
        batch.put(b"s", {b"a:x": b"prefix"})
        batch.put(b"\xff\xff", {b"a:x": b"last"})


def batch(table: Any) -> None:
    with table.batch(timestamp=100) as changes:
        changes.put(b"batch", {b"a:x": b"1", b"a:y": b"2"})
        changes.put(b"batch", {b"b:z": b"3"}, wal=False)
        changes.put(b"both", {b"a:x": b"1", b"a:y": b"2"})
        changes.delete(b"both", [b"a:x"])
        changes.delete(b"r3")


def aborted(table: Any, transaction: bool) -> None:
    with table.batch(transaction=transaction, timestamp=100) as changes:
        changes.put(b"aborted", {b"a:x": b"1"})
        raise ValueError


def sizes(table: Any) -> List[int]:
    """The number of rows after each put of a batch that is sent every five changes."""
    found = []
    with table.batch(batch_size=5, timestamp=100) as changes:
        for i in range(6):
            changes.put(b"size%d" % i, {b"a:x": b"1", b"a:y": b"2"})
            found.append(len(list(table.scan(row_prefix=b"size"))))
    return found


def wrong(table: Any) -> None:
    with table.batch(timestamp=100) as changes:
        changes.put(b"wrong", {b"a:x": b"1"})
        changes.put(b"wrong2", {b"z:x": b"1"})


def run(module: Any, **arguments: Any) -> Dict[str, Any]:
    connection = module.Connection(table_prefix=PREFIX, **arguments)
    try:
        if TABLE.encode() in connection.tables():
            connection.delete_table(TABLE, disable=True)
        return {name: outcome(call) for name, call in calls(connection)}
    finally:
        connection.close()


if __name__ == "__main__":
    import importlib
    import json
    print(json.dumps(run(importlib.import_module(sys.argv[1]), host=sys.argv[2], port=int(sys.argv[3])), indent=0))
