# SPDX-License-Identifier: Apache-2.0
"""Rows and tables, which behave alike in memory, on a server and on a real HBase (--rorqual)."""
import struct
import threading
from typing import Any, List, Tuple

import pytest

import rorqual
from rorqual import Delete, Put


def keys(rows: Any) -> List[bytes]:
    return [row.key for row in rows]


def test_a_row_is_a_mapping_of_columns(table: rorqual.Table) -> None:
    table.put("ann", {"cf:name": "Änn", b"cf:raw": b"\0\xff", ("other", "x:y"): 7, "cf:": "empty"})
    row = table.get("ann")
    assert row and len(row) == 4 and row.key == b"ann"
    assert row["cf:name"] == "Änn".encode() and row[b"cf:raw"] == b"\0\xff" and row["other", "x:y"] == struct.pack(">q", 7)
    assert row["cf:"] == row["cf"] == b"empty"
    assert list(row) == [b"cf:", b"cf:name", b"cf:raw", b"other:x:y"]
    assert "cf:name" in row and "cf:none" not in row and 5 not in row and ("other", "x:y") in row
    assert row.get("cf:none") is None and row.get("cf:none", b"d") == b"d"
    with pytest.raises(KeyError):
        row["cf:none"]


def test_values_keep_their_types(table: rorqual.Table) -> None:
    table.put("r", {"cf:i": -5, "cf:s": "text", "cf:f": 0.25, "cf:b": True, "cf:j": {"a": [1, "ü"]}, "cf:4": rorqual.int32(9)})
    row = table.get("r")
    assert (row.get_int("cf:i"), row.get_str("cf:s"), row.get_float("cf:f"), row.get_bool("cf:b")) == (-5, "text", 0.25, True)
    assert row.get_json("cf:j") == {"a": [1, "ü"]} and row.get_int("cf:4") == 9
    assert row.get_int("cf:no") is None and row.get_int("cf:no", 3) == 3
    with pytest.raises(ValueError):
        row.get_int("cf:j")


def test_a_missing_row_is_empty_and_false(table: rorqual.Table) -> None:
    row = table.get("nobody")
    assert not row and len(row) == 0 and row.key == b"nobody" and row.cells == ()
    assert not table.exists("nobody")


def test_get_chooses_columns_versions_and_times(table: rorqual.Table) -> None:
    for time in (10, 20, 30, 40):
        table.put("r", {"cf:a": str(time), "cf:b": "b", "other:c": "c"}, timestamp=time)
    assert list(table.get("r", "cf:a")) == [b"cf:a"]
    assert list(table.get("r", ["cf:a", "other"])) == [b"cf:a", b"other:c"]
    assert [cell.value for cell in table.get("r", "cf:a", versions=2).versions("cf:a")] == [b"40", b"30"]
    assert [cell.timestamp for cell in table.get("r", "cf:a", versions=9).cells] == [40, 30, 20]
    assert table.get("r", "cf:a", time_range=(20, 31))["cf:a"] == b"30"
    assert list(table.get("r", filter="QualifierFilter(=, 'binary:b')")) == [b"cf:b"]
    assert list(table.get("r", "cf", family_limit=1)) == [b"cf:a"]
    assert list(table.get("r", "cf", family_limit=1, family_offset=1)) == [b"cf:b"]
    assert table.exists("r") and table.exists("r", "cf:a") and not table.exists("r", "cf:no")


def test_timestamp_zero_is_a_timestamp(table: rorqual.Table) -> None:
    table.put("r", {"cf:a": "x"}, timestamp=0)
    assert table.get("r").cells[0].timestamp == 0
    table.delete("r", "cf:a", timestamp=0)
    assert not table.get("r")


def test_get_many_keeps_the_order(table: rorqual.Table) -> None:
    for name in ("a", "n", "z"):
        table.put(name, {"cf:v": name})
    found = table.get_many(["z", "none", "a", "n", "a"])
    assert keys(found) == [b"z", b"none", b"a", b"n", b"a"]
    assert [row.get_str("cf:v") for row in found] == ["z", None, "a", "n", "a"]
    assert table.get_many([]) == []


def test_delete_of_versions_columns_families_and_rows(table: rorqual.Table) -> None:
    for time in (10, 20):
        table.put("r", {"cf:a": str(time), "cf:b": "b", "other:c": "c"}, timestamp=time)
    table.delete("r", "cf:a", versions="one", timestamp=20)
    assert table.get("r")["cf:a"] == b"10"
    table.delete("r", ["cf:a"], timestamp=30)
    assert "cf:a" not in table.get("r") and "cf:b" in table.get("r")
    table.delete("r", "other", timestamp=30)
    assert list(table.get("r")) == [b"cf:b"]
    table.delete("r")
    assert not table.get("r")
    with pytest.raises(ValueError):
        table.delete("r", [])


def test_increment_and_append(table: rorqual.Table) -> None:
    assert [table.increment("r", "cf:n", 5), table.increment("r", "cf:n"), table.increment("r", "cf:n", -7)] == [5, 6, -1]
    row = table.increment_many("r", {"cf:n": 2, "cf:m": 9})
    assert (row.get_int("cf:n"), row.get_int("cf:m")) == (1, 9)
    table.append("r", {"cf:s": "a"})
    assert table.append("r", {"cf:s": "b"})["cf:s"] == b"ab"
    table.put("r", {"cf:text": "no number"})
    with pytest.raises(rorqual.RefusedError):
        table.increment("r", "cf:text")


def test_several_changes_of_a_row_are_atomic(table: rorqual.Table) -> None:
    table.put("r", {"cf:old": "1"}, timestamp=5)
    table.mutate([Put("r", {"cf:new": "2"}), Delete("r", "cf:old")])
    assert dict(table.get("r")) == {b"cf:new": b"2"}
    with pytest.raises(rorqual.FamilyNotFoundError):
        table.mutate([Put("r", {"cf:x": "1"}), Put("r", {"nowhere:x": "1"})])
    assert "cf:x" not in table.get("r")


def test_check_and_mutate(table: rorqual.Table) -> None:
    put = Put("r", {"cf:done": "1"})
    assert table.check_and_mutate("r", Put("r", {"cf:n": 5}), column="cf:n")  # the check is for no value
    assert not table.check_and_mutate("r", put, column="cf:n")
    assert not table.check_and_mutate("r", put, column="cf:n", value=4)
    assert table.check_and_mutate("r", put, column="cf:n", value=4, compare="<")  # 4 is less than the stored value
    assert not table.check_and_mutate("r", put, column="cf:n", value=6, compare="<")
    assert table.check_and_mutate("r", [put, Delete("r", "cf:n")], column="cf:n", value=5)
    assert dict(table.get("r")) == {b"cf:done": b"1"}
    assert table.check_and_mutate("r", put, filter="ValueFilter(=, 'binary:1')")
    assert not table.check_and_mutate("r", put, filter="ValueFilter(=, 'binary:2')")
    for wrong in ({}, {"column": "cf:a", "filter": "x"}, {"column": "cf:a", "compare": "~"}):
        with pytest.raises(ValueError):
            table.check_and_mutate("r", put, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        table.check_and_mutate("other row", put, column="cf:a")


def fill(table: rorqual.Table, count: int = 100) -> None:
    with table.batch(size=30) as batch:
        for i in range(count):
            batch.put(f"{'a' if i % 2 else 'z'}{i:04}", {"cf:i": i, "other:x": "y"})


def test_scans_of_ranges_and_prefixes(table: rorqual.Table) -> None:
    fill(table)
    assert len(keys(table.scan())) == 100
    assert keys(table.scan()) == sorted(keys(table.scan()))
    assert keys(table.scan("a0091", "a0097")) == [b"a0091", b"a0093", b"a0095"]
    assert keys(table.scan("a0091", "a0097", include_start=False, include_stop=True)) == [b"a0093", b"a0095", b"a0097"]
    assert keys(table.scan(prefix="z009")) == [b"z0090", b"z0092", b"z0094", b"z0096", b"z0098"]
    assert keys(table.scan(prefix="z009", reverse=True)) == [b"z0098", b"z0096", b"z0094", b"z0092", b"z0090"]
    assert keys(table.scan(reverse=True, limit=2)) == [b"z0098", b"z0096"]
    assert keys(table.scan("a0005", reverse=True)) == [b"a0005", b"a0003", b"a0001"]
    assert keys(table.scan(limit=3)) == [b"a0001", b"a0003", b"a0005"]
    assert keys(table.scan(prefix="no")) == []
    with pytest.raises(ValueError):
        table.scan("a", prefix="a")
    with pytest.raises(ValueError):
        table.scan(limit=0)


def test_a_prefix_of_high_bytes(table: rorqual.Table) -> None:
    for row in (b"\xfe", b"\xff", b"\xff\xff", b"\xff\xffa"):
        table.put(row, {"cf:a": "1"})
    assert keys(table.scan(prefix=b"\xff\xff")) == [b"\xff\xff", b"\xff\xffa"]
    assert keys(table.scan(prefix=b"\xff\xff", reverse=True)) == [b"\xff\xffa", b"\xff\xff"]
    assert keys(table.scan(prefix=b"\xfe", reverse=True)) == [b"\xfe"]


def test_scans_with_filters_columns_and_parts(table: rorqual.Table) -> None:
    fill(table)
    assert keys(table.scan(filter="RowFilter(=, 'substring:09')", columns="cf")) == [
        b"a0009", b"a0091", b"a0093", b"a0095", b"a0097", b"a0099", b"z0090", b"z0092", b"z0094", b"z0096", b"z0098"]
    assert list(next(table.scan(columns=["other:x"]))) == [b"other:x"]
    parts = list(table.scan("a0001", "a0002", batch=1))
    assert [list(part) for part in parts] == [[b"cf:i"], [b"other:x"]] and parts[0].is_partial
    table.delete("a0001", "cf:i")
    raw = next(table.scan(raw=True, versions=9))
    assert rorqual.row.DELETE_COLUMN in [cell.type for cell in raw.cells]
    with pytest.raises(rorqual.InvalidArgumentError):
        list(table.scan(filter="no filter ("))


def test_reads_send_attributes(rorqual_db: rorqual.Database) -> None:
    """The effect of an attribute in all databases: a MOB file is named instead of read."""
    table = rorqual_db.create_table("py_mob", {"m": {"IS_MOB": True, "MOB_THRESHOLD": 10}})
    table.put("r", {"m:a": "long" * 10})
    rorqual_db.flush_table("py_mob")
    raw = {"hbase.mob.scan.raw": True}
    assert table.get("r")["m:a"] == b"long" * 10
    found = [table.get("r", attributes=raw), next(table.scan(attributes=raw)), table.get_many(["r"], attributes=raw)[0]]
    for row in found:
        assert row["m:a"][:4] == struct.pack(">i", 40) and b"long" not in row["m:a"]
    assert table.exists("r", attributes=raw)


def test_operations_have_attributes_a_priority_and_an_isolation(table: rorqual.Table) -> None:
    extra: Any = {"attributes": {"_operation.attributes.id": "nightly", "own": 5}, "priority": 150}
    table.put("r", {"cf:a": 1, "cf:b": 2}, **extra)
    table.mutate([Put("r", {"cf:c": 3}, **extra), Delete("r", "cf:a", **extra)])
    assert table.check_and_mutate("r", Put("r", {"cf:d": 4}, **extra), column="cf:c", value=3)
    assert table.increment("r", "cf:n", 2, **extra) == 2 and table.append("r", {"cf:s": "x"}, **extra)["cf:s"] == b"x"
    with table.batch() as batch:
        batch.put("s", {"cf:a": 1}, **extra)
        batch.increment("s", {"cf:n": 1}, **extra)
        batch.append("s", {"cf:s": "y"}, **extra)
        batch.delete("none", **extra)
        batch.add(Put("t", {"cf:a": 1}, **extra), Put("t", {"other:a": 1}))
    extra["reads_uncommitted"] = True
    assert list(table.get("r", **extra)) == [b"cf:b", b"cf:c", b"cf:d", b"cf:n", b"cf:s"]
    assert table.exists("r", "cf:d", **extra) and not table.exists("r", "cf:a", **extra)
    assert [len(row) for row in table.get_many(["s", "t"], **extra)] == [3, 2]
    assert keys(table.scan(**extra)) == [b"r", b"s", b"t"]
    table.delete("r", attributes=extra["attributes"], priority=150)
    assert not table.get("r")
    for name in ("_ttl", "_isolationlevel_"):
        with pytest.raises(rorqual.InvalidArgumentError, match="is a field of the request"):
            table.put("r", {"cf:a": 1}, attributes={name: 1})
    for wrong in ({"priority": -1}, {"priority": 2 ** 31}, {"attributes": {"": 1}}, {"attributes": {"a\0b": 1}}):
        with pytest.raises(ValueError):
            table.get("r", **wrong)  # type: ignore[arg-type]
    for odd in ({"priority": "high"}, {"priority": True}, {"attributes": {b"a": 1}}, {"attributes": {"a": object()}}):
        with pytest.raises(TypeError):
            table.put("r", {"cf:a": 1}, **odd)  # type: ignore[arg-type]


def test_scans_fetch_ahead_or_not(table: rorqual.Table) -> None:
    for number in range(20):
        table.put(f"r{number:02}", {"cf:a": number})
    for ahead in (True, False):
        assert keys(list(table.scan(caching=3, fetch_ahead=ahead))) == [f"r{n:02}".encode() for n in range(20)]
        with table.scan(caching=3, fetch_ahead=ahead) as scan:
            assert [next(scan).key for _ in range(7)][-1] == b"r06"


def test_scans_say_where_they_are(table: rorqual.Table) -> None:
    for name in ("a", "b", "x"):
        table.put(name, {"cf:a": 1, "cf:b": 2, "other:c": 3})
    assert [row.cursor for row in table.scan(fetch_bytes=1)] == [None] * 3
    found = list(table.scan(fetch_bytes=1, cursors=True))  # with this limit a server sends a row's cells one by one
    rows, cursors = [row for row in found if row.cursor is None], [row for row in found if row.cursor is not None]
    assert keys(rows) == [b"a", b"b", b"x"] and all(len(row) == 3 and not row.is_partial for row in rows)
    assert all(not row and row.cells == () and row.key == row.cursor for row in cursors)
    assert len(cursors) >= 3 or table.database.url.startswith("memory:")
    for at, row in enumerate(found[:-1]):
        assert row.cursor is None or found[at + 1].key == row.cursor
    with pytest.raises(rorqual.InvalidArgumentError):
        table.scan(batch=1, cursors=True)


def index_of(table: rorqual.Table, **options: Any) -> rorqual.Index:
    return table.database.index("py_test", "cf:mail", "py_test_mails", **options)


def test_an_index_finds_rows_by_value(table: rorqual.Table) -> None:
    index = index_of(table)
    for i in range(20):
        index.put(f"r{i:02}", {"cf:mail": f"m{i % 4}", "cf:name": f"n{i}", "other:x": i})
    index.put("without", {"cf:name": "no mail"})
    assert keys(index.scan(value="m2")) == [b"r02", b"r06", b"r10", b"r14", b"r18"]
    assert {b"cf:mail", b"cf:name", b"other:x"} <= set(next(index.scan(value="m2")))
    assert len(keys(index.scan())) == 20 and keys(index.scan("m3", "m2")) == []
    assert len(keys(index.scan("m1", "m3"))) == 10 and len(keys(index.scan("m1", "m3", include_stop=True))) == 15
    assert len(keys(index.scan("m3"))) == 5
    index.put("r02", {"cf:mail": "m9"})
    index.delete("r06")
    assert keys(index.scan(value="m2")) == [b"r10", b"r14", b"r18"] and keys(index.scan(value="m9")) == [b"r02"]
    table.put("beside", {"cf:mail": "m9"})  # written without the index
    assert keys(index.scan(value="m9")) == [b"r02"]
    done = index.repair()
    assert (done.rows, done.added, done.duplicates) == (20, 1, 0) and done.entries >= 19
    assert keys(index.scan(value="m9")) == [b"beside", b"r02"]
    with pytest.raises(ValueError):
        index.scan("a", value="a")
    with pytest.raises(rorqual.Error):
        index.put("r", {"nowhere:a": 1})
    with pytest.raises(rorqual.Error):
        index.delete("")


def test_a_unique_index_admits_one_row(table: rorqual.Table) -> None:
    index = index_of(table, unique=True)
    index.put("ann", {"cf:mail": "a@x"})
    with pytest.raises(rorqual.AlreadyExistsError):
        index.put("bob", {"cf:mail": "a@x"})
    index.put("ann", {"cf:mail": "ann@x"})
    index.put("bob", {"cf:mail": "a@x"})
    assert keys(index.scan()) == [b"bob", b"ann"]


def test_an_index_covers_columns(table: rorqual.Table) -> None:
    index = index_of(table, covered=["cf:name", ("other", "x")])
    index.put("r", {"cf:mail": "m", "cf:name": "n", "other:x": 7, "other:y": "no"})
    index.put("s", {"cf:mail": "m"})
    rows = list(index.scan(value="m", covered_only=True))
    assert [dict(row) for row in rows] == [{b"cf:mail": b"m", b"cf:name": b"n", b"other:x": rorqual.int64(7)}, {b"cf:mail": b"m"}]
    index.put("s", {"cf:name": "later"})
    assert [row.get("cf:name") for row in index.scan(covered_only=True)] == [b"n", b"later"]
    with pytest.raises(rorqual.Error):
        index.put("r", {"cf:mail": "m"}, ttl_ms=1000)
    with pytest.raises(rorqual.Error):
        index_of(table, covered=[f"cf:c{i}" for i in range(16)])
    with pytest.raises(rorqual.Error):
        table.database.index("py_test", "cf", "py_test_mails")


def test_an_index_repairs_itself(table: rorqual.Table) -> None:
    index = index_of(table, repair_every=0.001)
    table.put("r", {"cf:mail": "m"})  # written without the index
    while index.repair_status().totals.added == 0:
        assert index.repair_status().last_error is None
    assert keys(index.scan(value="m")) == [b"r"] and index.repair_status().repairs > 0
    with pytest.raises(rorqual.Error):
        index_of(table).repair_status()
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError):
            index_of(table, repair_every=wrong)
    del index  # its thread ends


def test_scans_of_an_index_are_freed_in_any_order(table: rorqual.Table) -> None:
    index = index_of(table)
    for i in range(100):
        index.put(f"r{i:02}", {"cf:mail": "m"})
    with index.scan() as scanner:
        assert next(scanner).key == b"r00"
    assert list(scanner) == []
    half = index.scan()
    next(half)
    del index
    assert len(list(half)) == 99
    left = index_of(table).scan()
    next(left)
    del left


def test_a_scanner_ends_closes_and_is_shared(table: rorqual.Table) -> None:
    fill(table, 300)
    with table.scan() as scanner:
        next(scanner)
    assert list(scanner) == []
    scanner.close()
    rows: List[bytes] = []
    shared = table.scan()

    def read() -> None:
        for row in shared:
            rows.append(row.key)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) == len(set(rows)) == 300
    with pytest.raises(StopIteration):
        next(shared)


def test_a_batch_is_sent_at_its_end(table: rorqual.Table) -> None:
    with table.batch() as batch:
        batch.put("a", {"cf:v": 1})
        batch.increment("n", {"cf:v": 2})
        batch.append("z", {"cf:v": "x"})
        assert len(batch) == 3 and not table.get("a")
        done = batch.send()
        assert [row.get("cf:v") for row in done] == [None, rorqual.int64(2), b"x"]
        batch.delete("a")
        batch.add(Put("b", {"cf:p": 1}), Put("b", {"other:q": 2}))
    assert not table.get("a") and list(table.get("b")) == [b"cf:p", b"other:q"]
    with pytest.raises(RuntimeError):
        with table.batch() as batch:
            batch.put("never", {"cf:v": 1})
            raise RuntimeError
    assert not table.get("never")
    assert table.batch().send() == []


def test_a_batch_may_have_checks(table: rorqual.Table) -> None:
    batch = table.batch()
    batch.check_and_mutate("a", Put("a", {"cf:v": 1}), column="cf:v")
    batch.check_and_mutate("a", Put("a", {"cf:v": 2}), column="cf:v")  # sees the change before it
    batch.check_and_mutate("a", [Put("a", {"other:w": 3}), Delete("a", "cf:v")], column="cf:v", value=1)
    batch.put("z", {"cf:v": 4})
    batch.check_and_mutate("z", Put("z", {"cf:v": 5}), column="cf:v", value=5, compare="<")
    batch.check_and_mutate("z", Put("z", {"cf:x": 6}), filter="QualifierFilter(=, 'binary:v')", time_range=(1, None))
    batch.increment("z", {"cf:n": 7})
    done = batch.send()
    assert [row.done for row in done] == [True, False, True, True, False, True, True]
    assert keys(done) == [b"a"] * 3 + [b"z"] * 4 and done[6].get_int("cf:n") == 7
    assert list(table.get("a")) == [b"other:w"]
    assert dict(table.get("z", ["cf:v", "cf:x"])) == {b"cf:v": rorqual.int64(4), b"cf:x": rorqual.int64(6)}
    batch.check_and_mutate("a", Put("a", {"nowhere:v": 1}), column="cf:v")
    batch.check_and_mutate("z", Put("z", {"cf:v": 8}), column="cf:v", value=4)
    with pytest.raises(rorqual.BatchError) as failed:
        batch.send()
    assert list(failed.value.failures) == [0] and table.get("z").get_int("cf:v") == 8
    for wrong in ({"changes": []}, {"column": None}, {"compare": "~"}, {"row": "another"}):
        with pytest.raises(ValueError):
            arguments: Any = {"row": "a", "changes": Put("a", {"cf:v": 1}), "column": "cf:v", **wrong}
            batch.check_and_mutate(**arguments)
    assert len(batch) == 0 and batch.send() == []


def test_a_failed_action_leaves_the_others(table: rorqual.Table) -> None:
    batch = table.batch()
    batch.put("a", {"cf:v": 1})
    batch.put("b", {"nowhere:v": 1})
    batch.put("z", {"cf:v": 1})
    with pytest.raises(rorqual.BatchError) as failed:
        batch.send()
    assert list(failed.value.failures) == [1] and failed.value.action == 1
    assert isinstance(failed.value.failures[1], rorqual.FamilyNotFoundError)
    assert table.get("a") and table.get("z") and not table.get("b")
    with pytest.raises(TypeError):
        batch.put("a", {"cf:v": object()})  # type: ignore[dict-item]
    assert len(batch) == 0  # a change that cannot be encoded leaves nothing behind


def test_errors_name_hbases_class(table: rorqual.Table) -> None:
    with pytest.raises(rorqual.TableNotFoundError) as missing:
        table.database.table("py_nothing").get("r")
    assert missing.value.hbase_class == "org.apache.hadoop.hbase.TableNotFoundException"
    assert missing.value.name == "RQ_E_TABLE_NOT_FOUND" and not missing.value.retryable
    with pytest.raises(rorqual.TableExistsError):
        table.database.create_table("py_test", ["cf"])
    with pytest.raises(rorqual.FamilyNotFoundError):
        table.get("r", "nowhere:a")
    with pytest.raises(rorqual.Error):
        table.get("")
    with pytest.raises(ValueError):
        table.put("r", {"cf": "no column"})
    with pytest.raises(ValueError):
        table.get("r", versions=-1)
    for wrong in ({"ttl_ms": -1}, {"timestamp": 2 ** 63}, {"durability": "hope"}):
        with pytest.raises(ValueError):
            table.put("r", {"cf:a": 1}, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        table.put(5, {"cf:a": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        table.increment("r", "cf:a", True)


def test_cells_expire(table: rorqual.Table) -> None:
    table.put("r", {"cf:a": 1}, ttl_ms=1)
    table.put("r", {"cf:b": 1}, ttl_ms=3_600_000)
    while "cf:a" in table.get("r"):
        pass
    assert list(table.get("r")) == [b"cf:b"]


def test_tables_are_disabled_truncated_and_dropped(rorqual_db: rorqual.Database) -> None:
    table = rorqual_db.create_table("py_other", {"f": {"versions": 2, "compression": "GZ", "in_memory": True}},
                                    attributes={"MAX_FILESIZE": 1 << 30}, splits=[b"b", "d"])
    table.put("a", {"f:x": 1})
    assert rorqual_db.table_exists("py_other") and "py_other" in rorqual_db.tables()
    info = rorqual_db.describe("py_other")
    assert info.enabled and info.families["f"]["VERSIONS"] == "2" and info.families["f"]["COMPRESSION"] == "GZ"
    assert info.families["f"]["IN_MEMORY"] == "true" and info.attributes["MAX_FILESIZE"] == str(1 << 30)
    rorqual_db.flush_table("py_other")
    with pytest.raises(rorqual.TableEnabledError):
        rorqual_db.drop_table("py_other")
    rorqual_db.disable_table("py_other")
    with pytest.raises(rorqual.TableDisabledError):
        table.get("a")
    rorqual_db.truncate_table("py_other", preserve_splits=True)
    assert not table.get("a")
    rorqual_db.drop_table("py_other", disable=True)
    assert not rorqual_db.table_exists("py_other")


def test_tables_are_altered(table: rorqual.Table) -> None:
    db = table.database
    table.put("r", {"cf:a": 1, "other:a": 1})
    db.alter_table("py_test", {"cf": {"versions": 7}, "new": None}, drop_families=["other"], attributes={"MAX_FILESIZE": 1 << 30})
    info = db.describe("py_test")
    assert sorted(info.families) == ["cf", "new"] and info.families["cf"]["VERSIONS"] == "7"
    assert info.attributes["MAX_FILESIZE"] == str(1 << 30)
    assert list(table.get("r")) == [b"cf:a"]
    db.alter_table("py_test", attributes={"MAX_FILESIZE": None})
    assert "MAX_FILESIZE" not in db.describe("py_test").attributes
    with pytest.raises(rorqual.TableNotFoundError):
        db.alter_table("py_nothing", ["f"])
    with pytest.raises(rorqual.Error):
        db.alter_table("py_test", drop_families=["nowhere"])


def test_regions_are_split_merged_and_compacted(table: rorqual.Table) -> None:
    db = table.database
    assert [(region.start, region.stop) for region in db.regions("py_test")] == [(b"", b"m"), (b"m", b"")]
    table.put("a", {"cf:a": 1})
    table.put("f", {"cf:a": 2})
    db.flush_table("py_test")
    db.split_table("py_test", "f")
    regions = db.regions("py_test")
    assert [region.start for region in regions] == [b"", b"f", b"m"]
    assert all(region.name.startswith(b"py_test," + region.start + b",") for region in regions)
    assert keys(table.scan()) == [b"a", b"f"]
    db.compact_table("py_test", major=True)
    db.compact_table("py_test", "cf")
    with pytest.raises(rorqual.Error):
        db.compact_table("py_test", "nowhere")
    with pytest.raises(rorqual.TableNotFoundError):
        db.regions("py_nothing")


def test_the_cluster_has_a_server(rorqual_db: rorqual.Database) -> None:
    info = rorqual_db.cluster()
    assert info.id and info.version and len(info.servers) >= 1 and info.dead_servers == 0


def test_namespaces(rorqual_db: rorqual.Database) -> None:
    rorqual_db.create_namespace("py_ns", {"owner": "ann"})
    rorqual_db.create_table("py_ns:t", ["f"])
    assert "py_ns" in rorqual_db.namespaces() and rorqual_db.tables("py_ns") == ["py_ns:t"]
    with pytest.raises(rorqual.Error):
        rorqual_db.drop_namespace("py_ns")
    with pytest.raises(rorqual.NamespaceExistsError):
        rorqual_db.create_namespace("py_ns")
    assert rorqual_db.describe_namespace("py_ns") == {"owner": "ann"}
    rorqual_db.alter_namespace("py_ns", {"owner": None, "cost": 7})
    assert rorqual_db.describe_namespace("py_ns") == {"cost": "7"}
    rorqual_db.drop_table("py_ns:t", disable=True)
    rorqual_db.drop_namespace("py_ns")
    with pytest.raises(rorqual.NamespaceNotFoundError):
        rorqual_db.describe_namespace("py_ns")
    with pytest.raises(rorqual.NamespaceNotFoundError):
        rorqual_db.drop_namespace("py_ns")


def test_threads_increment_one_counter(table: rorqual.Table) -> None:
    def work() -> None:
        for _ in range(50):
            table.increment("counter", "cf:n")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.get("counter").get_int("cf:n") == 300


@pytest.mark.parametrize("size", [0, 1, 100_000, 1_000_000])
def test_values_of_any_size(table: rorqual.Table, size: int) -> None:
    value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    table.put("r", {"cf:v": value})
    assert table.get("r")["cf:v"] == value and next(table.scan())["cf:v"] == value


def test_the_longest_row_key(table: rorqual.Table) -> None:
    row = b"k" * 32767
    table.put(row, {"cf:v": 1})
    assert table.get(row).key == row
    with pytest.raises(rorqual.Error):
        table.put(row + b"k", {"cf:v": 1})


def test_neighbours_are_merged(rorqual_db: rorqual.Database) -> None:
    rorqual_db.create_table("py_merged", ["f"], splits=["g", "p"])
    first, second, last = rorqual_db.regions("py_merged")
    rorqual_db.merge_regions("py_merged", [first.encoded, second.encoded])
    assert [region.start for region in rorqual_db.regions("py_merged")] == [b"", b"p"]
    with pytest.raises(rorqual.Error):
        rorqual_db.merge_regions("py_merged", [last.encoded, "0" * 32])
    with pytest.raises(TypeError):
        rorqual_db.merge_regions("py_merged", "one")


def test_snapshots_keep_what_was(rorqual_db: rorqual.Database) -> None:
    table = rorqual_db.create_table("py_snapped", ["f"])
    table.put("r", {"f:q": "old"})
    rorqual_db.create_snapshot("py_snap", "py_snapped")
    found = [s for s in rorqual_db.snapshots() if s.name == "py_snap"]
    assert [(s.table, s.ttl) for s in found] == [("py_snapped", None)] and found[0].created > 1.7e9
    table.put("r", {"f:q": "new"})
    rorqual_db.clone_snapshot("py_snap", "py_cloned")
    assert rorqual_db.table("py_cloned").get("r")["f:q"] == b"old"
    rorqual_db.disable_table("py_snapped")
    rorqual_db.restore_snapshot("py_snap")
    rorqual_db.enable_table("py_snapped")
    assert table.get("r")["f:q"] == b"old"
    rorqual_db.drop_snapshot("py_snap")
    assert "py_snap" not in [s.name for s in rorqual_db.snapshots()]
    with pytest.raises(rorqual.Error):
        rorqual_db.drop_snapshot("py_snap")
    for name in ("py_snapped", "py_cloned"):
        rorqual_db.drop_table(name, disable=True)
