# SPDX-License-Identifier: Apache-2.0
"""Encodes requests to numbers and bytes, and decodes blocks of rows to objects, in the order of native/pack.c."""
from __future__ import annotations

from array import array
from functools import lru_cache
from struct import unpack_from
from typing import Callable, Iterable, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from .errors import Error, make
from .row import Cell, Row
from .values import Bytes, Column, Value, encode, to_bytes

PUT, DELETE, APPEND, INCREMENT = range(4)
# Scopes of deletes.
COLUMN, VERSION, FAMILY, FAMILY_VERSION = range(4)
TIMESTAMP_ZERO = -(2 ** 63)
ALL_VERSIONS = 2 ** 31 - 1
DURABILITY = {None: 0, "default": 0, "skip": 1, "async": 2, "sync": 3, "fsync": 4}
COMPARE = {"=": 0, "==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
COMPARE_ABSENT = 6
CELL_NUMBERS = 5
INT32_MAX = 2 ** 31 - 1

Columns = Union[Iterable[Column], str, bytes]
TimeRange = Tuple[Optional[int], Optional[int]]
Filter = Union[str, bytes]
OpAttributes = Mapping[str, Value]
"""Attributes of an operation by HBase's names: {"_operation.attributes.id": "nightly"}. Others are ignored."""


@lru_cache(maxsize=4096)
def _split(name: Union[str, bytes]) -> Tuple[bytes, Optional[bytes]]:
    family, colon, qualifier = to_bytes(name).partition(b":")
    return family, qualifier if colon else None


def split_column(column: Column) -> Tuple[bytes, Optional[bytes]]:
    """Family and qualifier; the qualifier None stands for the whole family (a name without colon)."""
    if isinstance(column, tuple):
        return to_bytes(column[0]), to_bytes(column[1])
    if isinstance(column, (str, bytes)):
        return _split(column)
    raise TypeError(f"a column is str, bytes or a pair, not {type(column).__name__}")


def limited(name: str, value: Optional[int], most: int = INT32_MAX) -> int:
    """A checked limit; None gives 0, the library's default."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} is {value}, outside 0 to {most}")
    return value


def _durability(name: Optional[str]) -> int:
    try:
        return DURABILITY[name]
    except KeyError:
        raise ValueError(f"durability is default, skip, async, sync or fsync, not {name!r}") from None


class Change(Protocol):
    """A Put or Delete."""

    row: Bytes

    def add_to(self, request: "Request") -> None: ...


class Extra(NamedTuple):
    """Options that any operation may have besides its data."""

    attributes: Optional[OpAttributes] = None
    priority: Optional[int] = None


NO_EXTRA = Extra()


def extra_of(attributes: Optional[OpAttributes], priority: Optional[int]) -> Extra:
    return NO_EXTRA if attributes is None and priority is None else Extra(attributes, priority)


class Request:
    """Numbers and bytes of one call, and the counts of their elements."""

    __slots__ = ("numbers", "parts", "actions", "changes", "edits", "gets", "columns", "attributes", "checks")

    def __init__(self) -> None:
        self.numbers: List[int] = []
        self.parts: List[bytes] = []
        self.actions = self.changes = self.edits = self.gets = self.columns = self.attributes = self.checks = 0

    def flat(self) -> Tuple[bytes, bytes]:
        counts = [self.actions, self.changes, self.edits, self.gets, self.columns, self.attributes, self.checks]
        try:
            return array("q", counts + self.numbers).tobytes(), b"".join(self.parts)
        except OverflowError as error:
            raise ValueError("a number of the request does not fit 64 bits") from error

    def merge(self, other: "Request") -> None:
        """Adds the changes of another request."""
        self.numbers += other.numbers
        self.parts += other.parts
        self.changes += other.changes
        self.edits += other.edits
        self.attributes += other.attributes
        self.checks += other.checks

    @classmethod
    def of_gets(cls, rows: Iterable[Bytes], columns: Optional[Columns], versions: Optional[int],
                time_range: Optional[TimeRange], filter: Optional[Filter], reads_uncommitted: bool = False,
                extra: Extra = NO_EXTRA) -> Tuple["Request", List[bytes]]:
        """A batch of gets, and the keys of its rows."""
        request, keys = cls(), [to_bytes(row) for row in rows]
        names = None if columns is None else list(one_or_many(columns))
        for key in keys:
            request.numbers.append(0)
            request.read(key, names, versions, time_range, filter, reads_uncommitted=reads_uncommitted, extra=extra)
        request.actions = len(keys)
        return request, keys

    def _extra(self, extra: Extra) -> None:
        """Adds the priority and the attributes."""
        if extra is NO_EXTRA:
            self.numbers += (0, 0)
            return
        items = [] if extra.attributes is None else list(extra.attributes.items())
        self.numbers += (limited("priority", extra.priority), len(items))
        for name, value in items:
            if not isinstance(name, str):
                raise TypeError(f"an attribute's name is str, not {type(name).__name__}")
            if not name or "\0" in name:
                raise ValueError(f"{name!r} names no attribute")
            key, data = name.encode() + b"\0", encode(value)
            self.numbers += (len(key), len(data))
            self.parts += (key, data)
        self.attributes += len(items)

    # --- changes ---

    def _change(self, kind: int, row: Bytes, edits: int, timestamp: int, durability: Optional[str], ttl_ms: Optional[int],
                returns_nothing: bool = False, times: TimeRange = (None, None), extra: Extra = NO_EXTRA) -> None:
        key = to_bytes(row)
        self.numbers += (kind, len(key), edits, timestamp, _durability(durability), limited("ttl_ms", ttl_ms, 2 ** 63 - 1), returns_nothing,
                         times[0] or 0, times[1] or 0)
        self.parts.append(key)
        self._extra(extra)
        self.changes += 1
        self.edits += edits

    def put(self, row: Bytes, values: Mapping[Column, Value], timestamp: Optional[int] = None,
            durability: Optional[str] = None, ttl_ms: Optional[int] = None, extra: Extra = NO_EXTRA) -> None:
        self._valued(PUT, row, values, timestamp, durability, ttl_ms, extra)

    def append(self, row: Bytes, values: Mapping[Column, Value], durability: Optional[str] = None,
               ttl_ms: Optional[int] = None, extra: Extra = NO_EXTRA) -> None:
        self._valued(APPEND, row, values, None, durability, ttl_ms, extra)

    def _valued(self, kind: int, row: Bytes, values: Mapping[Column, Value], timestamp: Optional[int],
                durability: Optional[str], ttl_ms: Optional[int], extra: Extra) -> None:
        # counted while they are packed, because len() may be wrong and other threads may add items
        items = list(values.items())
        self._change(kind, row, len(items), 0, durability, ttl_ms, extra=extra)
        at = TIMESTAMP_ZERO if timestamp == 0 else timestamp or 0
        numbers, parts = self.numbers, self.parts
        for column, value in items:
            family, qualifier = split_column(column)
            if qualifier is None:
                raise ValueError(f"{column!r} names a family, not a column: the empty qualifier is written 'family:'")
            data = encode(value)
            numbers += (len(family), len(qualifier), len(data), at, 0, 0)
            parts += (family, qualifier, data)

    def delete(self, row: Bytes, columns: Optional[Columns] = None, timestamp: Optional[int] = None,
               versions: str = "all", durability: Optional[str] = None, extra: Extra = NO_EXTRA) -> None:
        if versions not in ("all", "one"):
            raise ValueError(f"versions is 'all' or 'one', not {versions!r}")
        if columns is None:
            if versions == "one":
                raise ValueError("one version of a whole row: name its families")
            if timestamp == 0:
                raise ValueError("the timestamp 0 of a whole row: name its families")
            self._change(DELETE, row, 0, timestamp or 0, durability, None, extra=extra)
            return
        names = list(one_or_many(columns))
        if not names:
            raise ValueError("no columns: None deletes the row")
        self._change(DELETE, row, len(names), 0, durability, None, extra=extra)
        at = TIMESTAMP_ZERO if timestamp == 0 else timestamp or 0
        for name in names:
            family, qualifier = split_column(name)
            one = versions == "one"
            scope = (FAMILY_VERSION if one else FAMILY) if qualifier is None else VERSION if one else COLUMN
            self.numbers += (len(family), len(qualifier or b""), 0, at, 0, scope)
            self.parts += (family, qualifier or b"")

    def increment(self, row: Bytes, amounts: Mapping[Column, int], durability: Optional[str] = None,
                  ttl_ms: Optional[int] = None, returns_nothing: bool = False, times: TimeRange = (None, None),
                  extra: Extra = NO_EXTRA) -> None:
        items = list(amounts.items())
        self._change(INCREMENT, row, len(items), 0, durability, ttl_ms, returns_nothing, times, extra)
        for column, amount in items:
            family, qualifier = split_column(column)
            if isinstance(amount, bool) or not isinstance(amount, int):
                raise TypeError(f"an amount is an integer, not {type(amount).__name__}")
            self.numbers += (len(family), len(qualifier or b""), 0, 0, amount, 0)
            self.parts += (family, qualifier or b"")

    def check(self, row: Bytes, changes: Sequence["Change"], column: Optional[Column], compare: str, value: Optional[Value],
              filter: Optional[Filter], time_range: Optional[TimeRange]) -> None:
        """Adds a check of a row, and the changes to make if the check holds."""
        if (column is None) == (filter is None):
            raise ValueError("give a column or a filter")
        if compare not in COMPARE:
            raise ValueError(f"compare is one of {' '.join(COMPARE)}, not {compare!r}")
        if value is None and filter is None and compare not in ("=", "=="):
            raise ValueError("without a value only == can be compared: the column has none")
        family, qualifier = (None, None) if column is None else split_column(column)
        data = None if value is None else encode(value)
        operator = COMPARE_ABSENT if data is None and filter is None else COMPARE[compare]
        low, high = time_range or (None, None)
        sizes = [self.text(family), self.text(None if family is None else qualifier or b""), self.text(data)]
        self.numbers += (*sizes, operator, *self.filter(filter), limited("the earliest time", low, 2 ** 63 - 1),
                         limited("the latest time", high, 2 ** 63 - 1))
        self.checks += 1
        key = to_bytes(row)
        for change in changes:
            if to_bytes(change.row) != key:
                raise ValueError(f"a change of row {to_bytes(change.row)!r} with a check of row {key!r}")
            change.add_to(self)

    # --- reads ---

    def text(self, text: Optional[bytes]) -> int:
        """Adds optional bytes and returns their length, or the number for absent bytes."""
        if text is None:
            return -1
        self.parts.append(text)
        return len(text)

    def filter(self, given: Optional[Filter]) -> Tuple[int, int]:
        """Text of the filter language, or bytes of HBase's message Filter."""
        if isinstance(given, str):
            if "\0" in given:
                raise ValueError("the filter's text contains a NUL character")
            return self.text(given.encode(errors="surrogateescape") + b"\0"), -1
        return -1, self.text(given)

    def read(self, row: bytes, columns: Optional[Columns] = None, versions: Optional[int] = None,
             time_range: Optional[TimeRange] = None, filter: Optional[Filter] = None, family_limit: Optional[int] = None,
             family_offset: Optional[int] = None, existence_only: bool = False, cache_blocks: bool = True,
             reads_uncommitted: bool = False, extra: Extra = NO_EXTRA) -> None:
        names = [] if columns is None else [split_column(name) for name in one_or_many(columns)]
        low, high = time_range or (None, None)
        self.parts.append(row)
        text, message = self.filter(filter)
        self.numbers += (len(row), len(names), limited("versions", versions), limited("the earliest time", low, 2 ** 63 - 1),
                         limited("the latest time", high, 2 ** 63 - 1), text, message, limited("family_limit", family_limit),
                         limited("family_offset", family_offset), existence_only, not cache_blocks, reads_uncommitted)
        self._extra(extra)
        for family, qualifier in names:
            self.parts.append(family)
            self.numbers += (len(family), self.text(qualifier))
        self.gets += 1
        self.columns += len(names)


def one_or_many(columns: Columns) -> Sequence[Column]:
    """A single column may be given as text."""
    if isinstance(columns, (str, bytes)):
        return [columns]
    return columns if isinstance(columns, (list, tuple)) else list(columns)


# --- rows ---


class Block:
    """Takes rows from a block, front to back."""

    __slots__ = ("numbers", "at", "data", "position")

    def __init__(self, data: bytes) -> None:
        count: int = unpack_from("=q", data)[0]
        self.numbers = unpack_from(f"={count}q", data, 8)
        self.at = 0
        self.data = data
        self.position = 8 + 8 * count

    def _take(self, size: int) -> bytes:
        start = self.position
        self.position = start + size
        return self.data[start:start + size]

    def row(self, key: Optional[bytes] = None) -> Row:
        """The next row; `key` is the key of a row without cells."""
        numbers, data, at = self.numbers, self.data, self.at
        count, flags, size = numbers[at:at + 3]
        found = self._take(size)
        at += 3
        position = self.position
        cells: List[Cell] = []
        new: Callable[..., Cell] = tuple.__new__
        for at in range(at, at + count * CELL_NUMBERS, CELL_NUMBERS):
            family, qualifier, value, timestamp, kind = numbers[at:at + CELL_NUMBERS]
            middle = position + family
            end = middle + qualifier
            cells.append(new(Cell, (found, data[position:middle], data[middle:end], data[end:end + value], timestamp, kind)))
            position = end + value
        self.position = position
        self.at = at + CELL_NUMBERS if count else at
        if flags & 4:
            return Row(found, (), False, cursor=found)
        return Row(found if count or key is None else key, tuple(cells), bool(flags & 1), bool(flags & 2))

    def take_numbers(self, count: int) -> Tuple[int, ...]:
        self.at += count
        return self.numbers[self.at - count:self.at]

    def take_text(self) -> str:
        return self._take(self.take_numbers(1)[0]).decode(errors="replace")

    def outcome(self, index: int, key: Optional[bytes], name: Callable[[int], str]) -> Union[Row, Error]:
        code, retryable, done = self.take_numbers(3)
        hbase_class, message = self.take_text(), self.take_text()
        row = self.row(key)
        row.done = bool(done)
        return make(code, name(code), hbase_class, message, bool(retryable), index) if code != 0 else row
