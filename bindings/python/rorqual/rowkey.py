# SPDX-License-Identifier: Apache-2.0
"""Row keys of several parts, and split keys. include/rorqual/rowkey.h describes the formats; the same format makes the same keys in C,
in `rorqual key` and in the shell.

    users = KeyFormat("salt(16) user:u64 time:desc-ms")
    key = users.encode(7, datetime.now(timezone.utc))
    users.decode(key)["user"]

Types of values: int for integers and times, float, bool, str or bytes for texts and bytes. encode() also takes datetime for times,
uuid.UUID or its text for uuid, a pair (latitude, longitude) for geohash, decimal.Decimal for ob-num, and None for a part that may be null.
decode() returns int for times, UUID for uuid, str for geohash.
"""
from __future__ import annotations

import re
import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type, Union

from ._call import check, copied, new_failure, text
from ._native import ffi, lib
from .values import Bytes, to_bytes

__all__ = ["KeyFormat", "KeyPart", "KeyValue", "split_keys", "split_sample"]

KeyValue = Union[None, bool, int, float, str, bytes, bytearray, memoryview, datetime, uuid.UUID, Decimal, Tuple[float, float]]

KEY_MAX = 32767
GEOHASH_SIZE = 13
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
UNITS_OF_SECOND = {"s": 1, "ms": 10 ** 3, "msdigits": 10 ** 3, "us": 10 ** 6, "ns": 10 ** 9}
SPLIT_KINDS = {"hex": lib.RQ_SPLIT_HEX, "decimal": lib.RQ_SPLIT_DECIMAL, "uniform": lib.RQ_SPLIT_UNIFORM}
KEPT = "surrogateescape"  # a text that is not UTF-8 is decoded and encoded without loss


class KeyPart(NamedTuple):
    """A part of a format that has a value."""

    name: str
    type: str                  # as in the format: "desc-ms"
    min_length: int            # bytes in a key
    max_length: Optional[int]  # None: no limit except the key's
    ordered: bool              # bytes sort as values do, or (descending) the other way round
    descending: bool

    @property
    def kind(self) -> str:
        """The type without prefixes and arguments: "geohash" of "desc-geohash(7)"."""
        return re.sub(r"^(?:(?:desc|opt|rev)-)+|\(.*", "", self.type)


# --- values ---


def _time(value: datetime, part: KeyPart) -> int:
    if part.kind not in UNITS_OF_SECOND:
        raise TypeError(f"part {part.name} ({part.type}) is not a time")
    if value.tzinfo is None:
        raise ValueError(f"part {part.name}: {value} has no time zone")
    return (value - EPOCH) // timedelta(microseconds=1) * UNITS_OF_SECOND[part.kind] // 10 ** 6


def _geohash(value: Tuple[float, float], part: KeyPart) -> bytes:
    if part.kind != "geohash" or len(value) != 2:
        raise TypeError(f"part {part.name} ({part.type}) is not a pair")
    why, letters, point = new_failure(), ffi.new("char[]", GEOHASH_SIZE), ffi.new("rq_point *", value)
    check(lib.rq_geohash_encode(point[0], int(part.type[part.type.index("(") + 1:-1]), letters, why), why)
    found: bytes = ffi.string(letters)
    return found


def _text(value: str, part: KeyPart) -> bytes:
    return uuid.UUID(value).bytes if part.kind == "uuid" else value.encode(errors=KEPT)


def _number(value: Decimal, _part: KeyPart) -> Union[Decimal, float]:
    return value if value.is_finite() else float(value)


CONVERSIONS: List[Tuple[Tuple[Type[Any], ...], Callable[[Any, KeyPart], Any]]] = [
    ((datetime,), _time), ((tuple,), _geohash), ((str,), _text), ((Decimal,), _number),
    ((uuid.UUID,), lambda value, _part: value.bytes), ((bytearray, memoryview), lambda value, _part: bytes(value)),
]


def _converted(value: KeyValue, part: KeyPart) -> Any:
    """The value as a type that _put takes."""
    for types, convert in CONVERSIONS:
        if isinstance(value, types):
            return convert(value, part)
    return value


def _put(at: Any, value: Any, part: KeyPart, kept: List[Any]) -> None:
    """Fills an rq_key_value, which borrows memory of `kept`."""
    if value is None:
        at.kind = lib.RQ_VALUE_NULL
    elif isinstance(value, bool):
        at.kind, at.natural = lib.RQ_VALUE_BOOL, value
    elif isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 64:
            raise ValueError(f"part {part.name}: {value} has more than 64 bits")
        if value < 0:
            at.kind, at.integer = lib.RQ_VALUE_INT, value
        else:
            at.kind, at.natural = lib.RQ_VALUE_UINT, value
    elif isinstance(value, float):
        at.kind, at.real = lib.RQ_VALUE_REAL, value
    elif isinstance(value, (bytes, Decimal)):
        data = value if isinstance(value, bytes) else str(value).encode()
        at.kind = lib.RQ_VALUE_BYTES if isinstance(value, bytes) else lib.RQ_VALUE_DECIMAL
        kept.append(ffi.from_buffer(data))
        at.bytes.data, at.bytes.len = kept[-1], len(data)
    else:
        raise TypeError(f"part {part.name} ({part.type}): no encoding for {type(value).__name__}")


def _taken(value: Any, part: KeyPart) -> KeyValue:
    """An rq_key_value as Python's value."""
    kind = value.kind
    if kind == lib.RQ_VALUE_NULL:
        return None
    if kind == lib.RQ_VALUE_INT:
        return int(value.integer)
    if kind == lib.RQ_VALUE_UINT:
        return int(value.natural)
    if kind == lib.RQ_VALUE_REAL:
        return float(value.real)
    if kind == lib.RQ_VALUE_BOOL:
        return bool(value.natural)
    data = copied(value.bytes)
    if kind == lib.RQ_VALUE_DECIMAL:
        return Decimal(data.decode())
    if part.kind == "uuid":
        return uuid.UUID(bytes=data)
    return data.decode(errors=KEPT) if part.kind in ("text", "ob-text", "geohash") else data


# --- formats ---


def _keys(found: Any) -> List[bytes]:
    """The keys of an rq_key_list, which is freed."""
    try:
        return [copied(key) for key in found.items[0:found.count]]
    finally:
        lib.rq_key_list_free(found)


class KeyFormat:
    """A format of row keys. Any thread may use it. Equal formats have the same text; a format can be pickled."""

    def __init__(self, format: str) -> None:
        why, parsed = new_failure(), ffi.new("rq_key_format **")
        if "\0" in format:
            raise ValueError("a format has no NUL")
        check(lib.rq_key_format_parse(format.encode(), parsed, why), why)
        self.text = format
        self._handle = ffi.gc(parsed[0], lib.rq_key_format_free)
        self.parts = [self._part(i) for i in range(lib.rq_key_part_count(self._handle))]

    def _part(self, index: int) -> KeyPart:
        why, part = new_failure(), ffi.new("rq_key_part *")
        part.size = ffi.sizeof("rq_key_part")
        check(lib.rq_key_part_at(self._handle, index, part, why), why)
        most = None if part.max_length == 2 ** (8 * ffi.sizeof("size_t")) - 1 else int(part.max_length)
        return KeyPart(text(part.name), text(part.type), int(part.min_length), most, bool(part.is_ordered), bool(part.is_descending))

    def __repr__(self) -> str:
        return f"rorqual.KeyFormat({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyFormat) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> Tuple[Type["KeyFormat"], Tuple[str]]:
        return KeyFormat, (self.text,)

    @property
    def buckets(self) -> int:
        """The number of buckets, if the format begins with salt(N) or phoenix(N); else 0."""
        return int(lib.rq_key_buckets(self._handle))

    def _encoded(self, call: Any, values: Tuple[KeyValue, ...]) -> bytes:
        if len(values) > len(self.parts):
            raise ValueError(f"{len(values)} values were given; the format has {len(self.parts)} parts with values")
        array = ffi.new("rq_key_value[]", len(values))
        kept: List[Any] = []
        for at, value, part in zip(array, values, self.parts):
            _put(at, _converted(value, part), part, kept)
        why, key, length = new_failure(), ffi.new("char[]", KEY_MAX), ffi.new("size_t *")
        check(call(self._handle, array, len(values), key, KEY_MAX, length, why), why)
        found: bytes = ffi.buffer(key, length[0])[:]
        return found

    def encode(self, *values: KeyValue) -> bytes:
        """The key of values, one for each part that has one. With fewer values, the prefix that all keys with these values have: for
        scan(prefix=...)."""
        return self._encoded(lib.rq_key_encode, values)

    def encode_unsalted(self, *values: KeyValue) -> bytes:
        """The key without its first part, which is salt(N) or phoenix(N): for start and stop of scan_salted()."""
        return self._encoded(lib.rq_key_encode_unsalted, values)

    def decode(self, key: Bytes) -> Dict[str, KeyValue]:
        """The values of a key, by name. RefusedError: encode() does not make this key of any values."""
        why, found, data = new_failure(), ffi.new("rq_key_values **"), to_bytes(key)
        given = ffi.new("rq_bytes *", (ffi.from_buffer(data), len(data)))
        check(lib.rq_key_decode(self._handle, given[0], found, why), why)
        values = found[0]
        try:
            return {part.name: _taken(values.items[i], part) for i, part in enumerate(self.parts)}
        finally:
            lib.rq_key_values_free(values)

    def lint(self) -> List[str]:
        """Advice on the format: length, hot spots, parts whose order is lost."""
        why, found = new_failure(), ffi.new("rq_names **")
        check(lib.rq_key_lint(self._handle, found, why), why)
        try:
            return [text(found[0].items[i]) for i in range(found[0].count)]
        finally:
            lib.rq_names_free(found[0])

    def splits(self, regions: int) -> List[bytes]:
        """Split keys for create_table(splits=...), if the first parts of the format spread evenly: salts, hashes, UUIDs, reversed
        numbers, GeoHashes. Otherwise the format does not determine them, and the call fails; see split_sample()."""
        why, found = new_failure(), ffi.new("rq_key_list **")
        check(lib.rq_split_format(self._handle, regions, found, why), why)
        return _keys(found[0])


# --- split keys ---


def split_keys(kind: str, regions: int) -> List[bytes]:
    """The split keys of HBase's HexStringSplit ("hex"), DecimalStringSplit ("decimal") or UniformSplit ("uniform")."""
    if kind not in SPLIT_KINDS:
        raise ValueError(f"no kind {kind!r}: {', '.join(SPLIT_KINDS)}")
    why, found = new_failure(), ffi.new("rq_key_list **")
    check(lib.rq_split_keys(SPLIT_KINDS[kind], regions, found, why), why)
    return _keys(found[0])


def split_sample(keys: Iterable[Bytes], regions: int, weights: Optional[Iterable[int]] = None) -> List[bytes]:
    """Split keys that divide a sample of keys, in any order, into equal parts: equal numbers of keys, or equal sums of their weights.
    There are fewer than regions - 1 of them if the sample has too few different keys."""
    sample = [to_bytes(key) for key in keys]
    weighed = ffi.NULL if weights is None else ffi.new("uint64_t[]", list(weights))
    if weights is not None and len(weighed) != len(sample):
        raise ValueError(f"{len(weighed)} weights of {len(sample)} keys")
    array, kept = ffi.new("rq_bytes[]", len(sample)), [ffi.from_buffer(key) for key in sample]
    for at, data, key in zip(array, kept, sample):
        at.data, at.len = data, len(key)
    why, found = new_failure(), ffi.new("rq_key_list **")
    check(lib.rq_split_sample(array, weighed, len(sample), regions, found, why), why)
    return _keys(found[0])
