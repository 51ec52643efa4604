# SPDX-License-Identifier: Apache-2.0
"""Formats of row keys: the keys of HBase's own classes and of `rorqual key`, Python's types of values, split keys, salted scans."""
import os
import pathlib
import pickle
import subprocess
import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, List, Tuple

import pytest

import rorqual
from rorqual import KeyFormat

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "tests/data/rowkey/keys.txt"
USERS = "salt(16) user:u64 time:desc-ms"
MOMENT = datetime(2022, 12, 31, 23, 59, 59, 999000, timezone.utc)


def lines(kind: str) -> List[List[str]]:
    """The lines of a kind of the file that HBase's classes wrote, as fields."""
    return [line.split("\t")[1:] for line in VECTORS.read_text().splitlines() if line.startswith(f"{kind}\t")]


def test_keys_of_hbase() -> None:
    """Each key is decoded to Python's values, which are those of the file, and encoded again."""
    found = lines("key")
    assert len(found) > 1000
    for format_text, digits, *texts in found:
        format_, key = KeyFormat(format_text), bytes.fromhex("" if digits == "-" else digits)
        values = list(format_.decode(key).values())
        assert format_.encode(*values) == key, format_text
        for text, value in zip(texts, values):
            if text == "null":
                assert value is None
            elif type(value) is int:
                assert int(text) == value, (format_text, text)
            elif isinstance(value, Decimal):  # HBase keeps 31 digits
                assert abs(Decimal(text) - value) <= abs(value) * Decimal("1e-30"), (format_text, text)
            elif isinstance(value, float):  # of 64 bits, or of 32
                assert repr(float(text)) == repr(value) or rorqual.float32(float(text)) == rorqual.float32(value), (format_text, text)


@pytest.mark.parametrize("format_text,texts,values", [
    (USERS, ["7", "2022-12-31T23:59:59.999Z"], [7, MOMENT]),
    (USERS, ["7", "1672531199999"], [7, 1672531199999]),
    (USERS, ["18446744073709551615", "0"], [2 ** 64 - 1, datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))]),
    ("a:i16 b:bool c:f64 d:text", ["-300", "true", "0.1", "Zoë"], [-300, True, 0.1, "Zoë"]),
    ("a:desc-opt-i32 b:opt-text c:bytes(2)", ["null", "null", "\\x00\\xFF"], [None, None, b"\0\xff"]),
    ("id:uuid at:s", ["00112233-4455-6677-8899-aabbccddeeff", "1672531199"], [uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), MOMENT]),
    ("id:uuid at:ns", ["00112233-4455-6677-8899-aabbccddeeff", "1672531199999000000"], ["00112233-4455-6677-8899-aabbccddeeff", MOMENT]),
    ("place:desc-geohash(7) id:u32", ["60.39,5.32", "1"], [(60.39, 5.32), 1]),
    ("n:ob-num t:ob-text", ["-12.50", "x"], [Decimal("-12.50"), "x"]),
    ("n:ob-num", ["1e400"], [Decimal("1e400")]), ("n:ob-num", ["-Infinity"], [Decimal("-Infinity")]), ("n:ob-num", ["NaN"], [float("nan")]),
    ("md5(2,user) user:text '_' day:msdigits", ["ann", "2022-12-31"], ["ann", datetime(2022, 12, 31, tzinfo=timezone.utc)]),
])
def test_the_command_line_makes_the_same_keys(format_text: str, texts: List[str], values: List[Any]) -> None:
    binary = os.environ.get("RORQUAL", "rorqual")
    done = subprocess.run([binary, "key", "--hex", format_text, "--", *texts], capture_output=True, text=True, check=True)
    key = KeyFormat(format_text).encode(*values)
    assert key.hex() == done.stdout.strip()
    again = KeyFormat(format_text).decode(key)
    assert KeyFormat(format_text).encode(*again.values()) == key


def test_values_have_their_types() -> None:
    format_ = KeyFormat("id:uuid place:geohash(5) n:desc-ob-num t:text(4) b:bytes(4) x:opt-u8 f:f32 flag:bool at:ms")
    id_ = uuid.uuid4()
    values = {"id": id_, "place": "u4pru", "n": Decimal("1.5"), "t": "ab", "b": b"\0\1\2\3", "x": None, "f": 0.5, "flag": False,
              "at": 1672531199999}
    found = format_.decode(format_.encode(*values.values()))
    assert found == values and {name: type(value) for name, value in found.items()} == {name: type(value) for name, value in values.items()}
    latin = KeyFormat("name:text id:u8")
    key = latin.encode(b"Zo\xeb", 1)  # not UTF-8
    assert latin.encode(*latin.decode(key).values()) == key


def test_parts_and_advice() -> None:
    format_ = KeyFormat(USERS)
    user, time = format_.parts
    assert (user.name, user.type, user.kind, user.min_length, user.max_length, user.ordered, user.descending) == ("user", "u64", "u64", 8, 8, True, False)
    assert (time.kind, time.descending) == ("ms", True) and KeyFormat("t:text").parts[0].max_length is None
    assert format_.buckets == 16 and KeyFormat("a:u8").buckets == 0
    assert format_.lint() == [] and "is a time in front" in KeyFormat("time:ms user:u64").lint()[0]
    assert pickle.loads(pickle.dumps(format_)) == format_ != KeyFormat("a:u8") and len({format_, KeyFormat(USERS)}) == 1
    assert format_ != USERS and repr(format_) == f"rorqual.KeyFormat({USERS!r})"


@pytest.mark.parametrize("format_text,values,error", [
    (USERS, [-1, 0], rorqual.InvalidArgumentError), (USERS, [2 ** 64, 0], ValueError), (USERS, [1, 2, 3], ValueError),
    (USERS, ["x", 0], rorqual.InvalidArgumentError), (USERS, [1, datetime(2022, 1, 1)], ValueError), (USERS, [MOMENT, 1], TypeError),
    (USERS, [(1.0, 2.0), 1], TypeError), (USERS, [object(), 1], TypeError), (USERS, [1], rorqual.InvalidArgumentError),
    ("p:geohash(3)", [(91.0, 0.0)], rorqual.InvalidArgumentError), ("p:geohash(3)", [(1.0, 2.0, 3.0)], TypeError),
    ("u:uuid", ["not one"], ValueError), ("t:text", ["x" * 40000], rorqual.InvalidArgumentError), ("t:u8", [None], rorqual.InvalidArgumentError),
])
def test_wrong_values(format_text: str, values: List[Any], error: type) -> None:
    with pytest.raises(error):
        KeyFormat(format_text).encode(*values)


def test_wrong_formats_and_keys() -> None:
    for text in ("a:u65", "", "a", "a:u8 a:u8", "a:u8\0"):
        with pytest.raises(ValueError):
            KeyFormat(text)
    for key in (b"", b"x", KeyFormat(USERS).encode(7, 1) + b"x", b"\x0f" + KeyFormat(USERS).encode_unsalted(7, 1)[:-1]):
        with pytest.raises(rorqual.Error):
            KeyFormat(USERS).decode(key)


def test_split_keys() -> None:
    for kind, regions, keys in lines("split"):
        assert [key.hex() for key in rorqual.split_keys(kind, int(regions))] == keys.split(",")
    assert KeyFormat(USERS).splits(4) == [b"\4", b"\x08", b"\x0c"]
    keys = [f"{i:04}" for i in range(1000)]
    assert rorqual.split_sample(keys, 4) == [b"0250", b"0500", b"0750"]
    assert rorqual.split_sample(keys[:4], 2, [9, 1, 1, 1]) == [b"0001"]
    assert rorqual.split_sample(keys[:4], 2, [1, 1, 1, 9]) == [b"0003"]
    for call in (lambda: rorqual.split_keys("none", 4), lambda: rorqual.split_sample(keys, 4, [1]), lambda: rorqual.split_keys("hex", 1)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(rorqual.Error):
        KeyFormat("time:ms").splits(4)


def salted(db: rorqual.Database, name: str) -> Tuple[KeyFormat, rorqual.Table]:
    format_ = KeyFormat("salt(8) user:u32 n:u16")
    table = db.create_table(name, ["cf"], splits=format_.splits(4))
    with table.batch() as batch:
        for user in range(4):
            for n in range(50):
                batch.put(format_.encode(user, n), {"cf:n": n, "cf:user": user})
    return format_, table


@pytest.mark.parametrize("threads", [0, 3])
def test_salted_scans(rorqual_db: rorqual.Database, threads: int) -> None:
    format_, table = salted(rorqual_db, "salted")

    def found(**options: Any) -> List[Tuple[Any, ...]]:
        return [tuple(format_.decode(row.key).values()) for row in table.scan_salted(format_, threads=threads, **options)]

    every = [(user, n) for user in range(4) for n in range(50)]
    assert found() == every and found(reverse=True) == every[::-1]
    assert found(prefix=format_.encode_unsalted(2)) == [(2, n) for n in range(50)]
    assert found(start=format_.encode_unsalted(1, 40), stop=format_.encode_unsalted(2, 3)) == every[90:103]
    assert found(start=format_.encode_unsalted(1, 40), stop=format_.encode_unsalted(2, 3), include_start=False, include_stop=True) == every[91:104]
    assert found(limit=7) == every[:7] and found(filter="ValueFilter(=, 'substring:nothing')") == []
    row = next(table.scan_salted(format_, columns=["cf:user"], threads=threads))
    assert dict(row) == {b"cf:user": rorqual.int64(0)}
    with pytest.raises(rorqual.InvalidArgumentError):
        table.scan_salted(KeyFormat("user:u32"))
    with pytest.raises(rorqual.Error):
        list(rorqual_db.table("nothing").scan_salted(format_))


def test_salted_scans_are_freed_in_any_order(memory: rorqual.Database) -> None:
    format_, table = salted(memory, "salted")
    scanners = [table.scan_salted(format_, threads=2) for _ in range(3)]
    assert next(scanners[0]) and next(scanners[1])
    del table, format_
    scanners[1].close()
    memory.close()
    with pytest.raises(rorqual.ClosedError):
        list(scanners[2])
    del scanners
