# SPDX-License-Identifier: Apache-2.0
"""A table: reading and writing rows."""
from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from . import _pack
from ._call import Answer, error_name, new_failure, check
from ._native import ffi, lib
from ._pack import Block, Columns, Extra, Filter, OpAttributes, Request, TimeRange, extra_of
from .errors import BatchError, Error
from .row import Row
from .rowkey import KeyFormat
from .scan import SaltedScanner, Scanner
from .values import Bytes, Column, Value, encode, to_bytes

if TYPE_CHECKING:
    from .database import Database

__all__ = ["Batch", "Delete", "Mutation", "Put", "Table"]


class Put:
    """Values for one row."""

    def __init__(self, row: Bytes, values: Mapping[Column, Value], *, timestamp: Optional[int] = None,
                 ttl_ms: Optional[int] = None, durability: Optional[str] = None,
                 attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        self.row, self.values, self.timestamp, self.ttl_ms, self.durability = row, values, timestamp, ttl_ms, durability
        self.extra = extra_of(attributes, priority)

    def add_to(self, request: Request) -> None:
        request.put(self.row, self.values, self.timestamp, self.durability, self.ttl_ms, self.extra)


class Delete:
    """Columns, families or (None) all of one row to be removed."""

    def __init__(self, row: Bytes, columns: Optional[Columns] = None, *, timestamp: Optional[int] = None, versions: str = "all",
                 durability: Optional[str] = None,
                 attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        self.row, self.columns, self.timestamp, self.versions, self.durability = row, columns, timestamp, versions, durability
        self.extra = extra_of(attributes, priority)

    def add_to(self, request: Request) -> None:
        request.delete(self.row, self.columns, self.timestamp, self.versions, self.durability, self.extra)


Mutation = Union[Put, Delete]


def several(changes: Union[Mutation, Sequence[Mutation]]) -> Sequence[Mutation]:
    return [changes] if isinstance(changes, (Put, Delete)) else changes


def counter_of(row: Row) -> int:
    return int.from_bytes(row.cells[0].value, "big", signed=True)


def of_one_row(changes: Sequence[Mutation]) -> Request:
    if not changes:
        raise ValueError("no changes")
    request = Request()
    for change in changes:
        change.add_to(request)
    return request


class Table:
    """Made by Database.table(). Any thread may use it."""

    def __init__(self, database: "Database", name: str, handle: Any) -> None:
        self.database = database
        self.name = name
        self._handle = ffi.gc(handle, lib.rq_table_close)

    def __repr__(self) -> str:
        return f"<rorqual.Table {self.name!r}>"

    # --- reading ---

    def get(self, row: Bytes, columns: Optional[Columns] = None, *, versions: Optional[int] = None,
            time_range: Optional[TimeRange] = None, filter: Optional[Filter] = None, family_limit: Optional[int] = None,
            family_offset: Optional[int] = None, cache_blocks: bool = True, reads_uncommitted: bool = False,
            attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        """Reads a row: all columns, or those given ("family" or "family:qualifier"). A missing row is empty and false.
        `time_range` is (from, to) in milliseconds, `to` excluded; `filter` is text of HBase's filter language, or bytes of
        its message Filter. `reads_uncommitted` also returns writes that are not yet complete. `priority`: HBase's servers
        have separate handlers for requests above 100."""
        key = to_bytes(row)
        if (columns is None and versions is None and time_range is None and filter is None and family_limit is None
                and family_offset is None and cache_blocks and not reads_uncommitted and attributes is None
                and priority is None):
            answer = Answer()
            answer.check(lib.rqpy_get_row(self._handle, key, len(key), answer.block, answer.size, answer.why))
        else:
            request = Request()
            request.read(key, columns, versions, time_range, filter, family_limit, family_offset, False, cache_blocks,
                         reads_uncommitted, extra_of(attributes, priority))
            answer = self._get(request)
        return Block(answer.take()).row(key)

    def _get(self, request: Request) -> Answer:
        answer = Answer()
        numbers, data = request.flat()
        answer.check(lib.rqpy_get(self._handle, numbers, data, answer.block, answer.size, answer.why))
        return answer

    def exists(self, row: Bytes, columns: Optional[Columns] = None, *, filter: Optional[Filter] = None,
               reads_uncommitted: bool = False, attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> bool:
        """True if the row has cells (in the given columns, if any); no cell is sent."""
        request = Request()
        request.read(to_bytes(row), columns, filter=filter, existence_only=True, reads_uncommitted=reads_uncommitted,
                     extra=extra_of(attributes, priority))
        return Block(self._get(request).take()).row().exists

    def get_many(self, rows: Iterable[Bytes], columns: Optional[Columns] = None, *, versions: Optional[int] = None,
                 time_range: Optional[TimeRange] = None, filter: Optional[Filter] = None, reads_uncommitted: bool = False,
                 attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> List[Row]:
        """Reads rows, each as get(), in one batch; in the order of `rows`, empty ones included."""
        request, keys = Request.of_gets(rows, columns, versions, time_range, filter, reads_uncommitted,
                                        extra_of(attributes, priority))
        return succeeded(self._batch(request, keys))

    def scan(self, start: Optional[Bytes] = None, stop: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
             columns: Optional[Columns] = None, filter: Optional[Filter] = None, reverse: bool = False,
             limit: Optional[int] = None, versions: Optional[int] = None, time_range: Optional[TimeRange] = None,
             include_start: bool = True, include_stop: bool = False, raw: bool = False, batch: Optional[int] = None,
             family_limit: Optional[int] = None, family_offset: Optional[int] = None, caching: Optional[int] = None,
             fetch_bytes: Optional[int] = None, cache_blocks: bool = True, reads_uncommitted: bool = False,
             attributes: Optional[OpAttributes] = None, priority: Optional[int] = None, cursors: bool = False,
             fetch_ahead: bool = True) -> Scanner:
        """Iterates over rows from `start` to `stop` (excluded), or over those that begin with `prefix`.

        With `reverse`, `start` is the highest row and `stop` is below it. `limit` counts rows; `batch` divides rows into
        results of so many cells; `raw` returns deleted cells and delete markers; `caching` and `fetch_bytes` limit the rows
        and bytes fetched at once; `fetch_ahead` requests the next rows from a cluster while the caller reads. With `cursors`
        a scan that finds no row for a long time returns its position as a row without cells that has a `cursor`, from which
        a new scan can continue; not with `batch`. The scanner is closed at its end, by close() or as a context manager."""
        return Scanner(self, self._handle, pack_scan(
            start, stop, prefix, columns, filter, reverse, limit, versions, time_range, include_start, include_stop, raw,
            batch, family_limit, family_offset, caching, fetch_bytes, cache_blocks, reads_uncommitted, cursors,
            extra_of(attributes, priority), fetch_ahead))

    def scan_salted(self, format: KeyFormat, start: Optional[Bytes] = None, stop: Optional[Bytes] = None, *,
                    prefix: Optional[Bytes] = None, columns: Optional[Columns] = None, filter: Optional[Filter] = None,
                    reverse: bool = False, limit: Optional[int] = None, versions: Optional[int] = None,
                    time_range: Optional[TimeRange] = None, include_start: bool = True, include_stop: bool = False,
                    batch: Optional[int] = None, fetch_bytes: Optional[int] = None, cache_blocks: bool = True,
                    reads_uncommitted: bool = False, attributes: Optional[OpAttributes] = None,
                    priority: Optional[int] = None, threads: int = 0) -> SaltedScanner:
        """Iterates over the rows of all buckets of a table whose keys begin with salt(N) or phoenix(N), in the order of the keys
        without the salt. `start`, `stop` and `prefix` have no salt (KeyFormat.encode_unsalted); the rows' keys have it. `limit` counts
        the rows of all buckets. On a folder or in memory up to 16 `threads` read ahead; on a cluster rows are requested ahead
        without threads. The scanner is closed at its end, by close() or as a context manager."""
        return SaltedScanner(self, self._handle, format, threads, pack_scan(
            start, stop, prefix, columns, filter, reverse, limit, versions, time_range, include_start, include_stop, False,
            batch, None, None, None, fetch_bytes, cache_blocks, reads_uncommitted, False, extra_of(attributes, priority)))

    # --- writing ---

    def _change(self, request: Request, key: bytes = b"") -> Row:
        answer = Answer()
        numbers, data = request.flat()
        answer.check(lib.rqpy_change(self._handle, numbers, data, answer.block, answer.size, answer.why))
        return Block(answer.take()).row(key) if answer.block[0] != ffi.NULL else Row(key, (), False)

    def put(self, row: Bytes, values: Mapping[Column, Value], *, timestamp: Optional[int] = None, ttl_ms: Optional[int] = None,
            durability: Optional[str] = None, attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        """Writes values to a row, all or nothing. `durability` is skip, async, sync, fsync or default."""
        request = Request()
        request.put(row, values, timestamp, durability, ttl_ms, extra_of(attributes, priority))
        self._change(request)

    def delete(self, row: Bytes, columns: Optional[Columns] = None, *, timestamp: Optional[int] = None, versions: str = "all",
               durability: Optional[str] = None,
               attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        """Deletes a row, or columns and families of it: all versions up to the timestamp, or with versions="one" a single
        version (the one with the timestamp; without a timestamp the column's newest)."""
        request = Request()
        request.delete(row, columns, timestamp, versions, durability, extra_of(attributes, priority))
        self._change(request)

    def increment(self, row: Bytes, column: Column, amount: int = 1, *, durability: Optional[str] = None,
                  ttl_ms: Optional[int] = None, attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> int:
        """Adds to a counter of 8 bytes, big-endian, and returns its new value. An absent one counts as 0."""
        return counter_of(self.increment_many(row, {column: amount}, durability=durability, ttl_ms=ttl_ms, attributes=attributes,
                                              priority=priority))

    def increment_many(self, row: Bytes, amounts: Mapping[Column, int], *, durability: Optional[str] = None,
                       ttl_ms: Optional[int] = None,
                       attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        """Adds to several counters of a row, all or nothing, and returns the new cells."""
        request = Request()
        request.increment(row, amounts, durability, ttl_ms, extra=extra_of(attributes, priority))
        return self._change(request, to_bytes(row))

    def append(self, row: Bytes, values: Mapping[Column, Value], *, durability: Optional[str] = None,
               ttl_ms: Optional[int] = None, attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        """Appends to values of a row and returns the new cells."""
        request = Request()
        request.append(row, values, durability, ttl_ms, extra_of(attributes, priority))
        return self._change(request, to_bytes(row))

    def mutate(self, changes: Sequence[Mutation]) -> None:
        """Makes several Puts and Deletes of one row, all or nothing."""
        self._change(of_one_row(changes))

    def check_and_mutate(self, row: Bytes, changes: Union[Mutation, Sequence[Mutation]], *, column: Optional[Column] = None,
                         compare: str = "==", value: Optional[Value] = None, filter: Optional[Filter] = None,
                         time_range: Optional[TimeRange] = None) -> bool:
        """Makes changes of a row, all or nothing, if its `column` has `value` (None: has no value), or if `filter` passes a
        cell. As in HBase, `compare` compares the given value with the stored one: value=5, compare="<" holds if 5 is less
        than the stored value. Returns whether the check held."""
        request = Request()
        request.check(row, several(changes), column, compare, value, filter, time_range)
        answer, done = Answer(), ffi.new("bool *")
        numbers, flat = request.flat()
        answer.check(lib.rqpy_check_and_change(self._handle, numbers, flat, done, answer.block, answer.size, answer.why))
        if answer.block[0] != ffi.NULL:
            answer.take()
        return bool(done[0])

    # --- batches ---

    def batch(self, size: Optional[int] = None) -> "Batch":
        """Collects changes, which are sent by send(), at the end of a `with` block, and whenever `size` changes are
        collected."""
        return Batch(self, size)

    def _batch(self, request: Request, keys: Sequence[bytes]) -> List[Union[Row, Error]]:
        if not keys:
            return []
        answer = Answer()
        numbers, data = request.flat()
        code = lib.rqpy_batch(self._handle, numbers, data, answer.block, answer.size, answer.why)
        if answer.block[0] == ffi.NULL:
            answer.check(code)
        block = Block(answer.take())
        return [block.outcome(i, key, error_name) for i, key in enumerate(keys)]


def succeeded(outcomes: List[Union[Row, Error]]) -> List[Row]:
    failures = {i: outcome for i, outcome in enumerate(outcomes) if isinstance(outcome, Error)}
    if failures:
        first = failures[min(failures)]
        raise BatchError(f"{len(failures)} of {len(outcomes)} actions failed; the first: {first.message}", failures) from first
    return [outcome for outcome in outcomes if isinstance(outcome, Row)]


class Batch:
    """Changes of a table that are sent together, grouped by server and region. Each change is all or nothing, the batch is
    not; changes of one row keep their order. At the end of a `with` block they are sent, unless an exception ends it.

    Not for several threads at the same time."""

    def __init__(self, table: Table, size: Optional[int] = None) -> None:
        if size is not None and size < 1:
            raise ValueError("size is at least 1")
        self.table = table
        self.size = size
        self._clear()

    def _clear(self) -> None:
        self._request = Request()
        self._keys: List[bytes] = []

    def _taken(self) -> Tuple[Request, List[bytes]]:
        request, keys = self._request, self._keys
        self._clear()
        return request, keys

    def __len__(self) -> int:
        return len(self._keys)

    def _added(self, row: Bytes) -> None:
        self._request.actions += 1
        self._keys.append(to_bytes(row))
        if self.size is not None and len(self._keys) >= self.size:
            self.send()

    def add(self, *changes: Mutation) -> None:
        """Puts and Deletes of one row, which are made all or nothing."""
        packed = of_one_row(changes)
        self._merge(packed, len(changes), changes[0].row)

    def _merge(self, packed: Request, changes: int, row: Bytes) -> None:
        """Packs a change separately first, so that one that raises leaves the batch unchanged. `changes`: their number,
        negative if they have a check."""
        self._request.numbers.append(changes)
        self._request.merge(packed)
        self._added(row)

    def put(self, row: Bytes, values: Mapping[Column, Value], *, timestamp: Optional[int] = None, ttl_ms: Optional[int] = None,
            durability: Optional[str] = None, attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        packed = Request()
        packed.put(row, values, timestamp, durability, ttl_ms, extra_of(attributes, priority))
        self._merge(packed, 1, row)

    def delete(self, row: Bytes, columns: Optional[Columns] = None, *, timestamp: Optional[int] = None, versions: str = "all",
               durability: Optional[str] = None,
               attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        packed = Request()
        packed.delete(row, columns, timestamp, versions, durability, extra_of(attributes, priority))
        self._merge(packed, 1, row)

    def increment(self, row: Bytes, amounts: Mapping[Column, int], *, durability: Optional[str] = None,
                  attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        packed = Request()
        packed.increment(row, amounts, durability, extra=extra_of(attributes, priority))
        self._merge(packed, 1, row)

    def append(self, row: Bytes, values: Mapping[Column, Value], *, durability: Optional[str] = None,
               attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        packed = Request()
        packed.append(row, values, durability, extra=extra_of(attributes, priority))
        self._merge(packed, 1, row)

    def check_and_mutate(self, row: Bytes, changes: Union[Mutation, Sequence[Mutation]], *, column: Optional[Column] = None,
                         compare: str = "==", value: Optional[Value] = None, filter: Optional[Filter] = None,
                         time_range: Optional[TimeRange] = None) -> None:
        """Changes with a check, as Table.check_and_mutate(). The `done` of the row that send() returns for them tells
        whether the check held, which sees the changes of the row before it."""
        packed, listed = Request(), several(changes)
        if not listed:
            raise ValueError("no changes")
        packed.check(row, listed, column, compare, value, filter, time_range)
        self._merge(packed, -len(listed), row)

    def send(self) -> List[Row]:
        """Sends the collected changes. Returns a row for each change: the new cells of an increment or append,
        otherwise an empty row; its `done` is false if the change has a check that did not hold. BatchError: some changes failed; in any case all are removed from the batch."""
        request, keys = self._taken()
        return succeeded(self.table._batch(request, keys))

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.send()


def _after_prefix(prefix: bytes) -> bytes:
    """The first row after all rows with the prefix; empty: there is none."""
    end = prefix.rstrip(b"\xff")
    return end[:-1] + bytes([end[-1] + 1]) if end else b""


def pack_scan(start: Optional[Bytes], stop: Optional[Bytes], prefix: Optional[Bytes], columns: Optional[Columns],
               filter: Optional[Filter], reverse: bool, limit: Optional[int], versions: Optional[int],
               time_range: Optional[TimeRange], include_start: bool, include_stop: bool, raw: bool, batch: Optional[int],
               family_limit: Optional[int], family_offset: Optional[int], caching: Optional[int], fetch_bytes: Optional[int],
               cache_blocks: bool, reads_uncommitted: bool, cursors: bool, extra: Extra, fetch_ahead: bool = True) -> Request:
    first, last = to_bytes(start or b""), to_bytes(stop or b"")
    if prefix is not None:
        if start is not None or stop is not None:
            raise ValueError("a prefix has no start and no stop")
        first, last = to_bytes(prefix), _after_prefix(to_bytes(prefix))
        if reverse:
            first, last, include_start, include_stop = last, first, False, True
    if limit is not None and limit < 1:
        raise ValueError("limit is at least 1")
    request = Request()
    request.read(first, columns, versions, time_range, filter, family_limit, family_offset, False, cache_blocks,
                 reads_uncommitted, extra)
    request.parts.append(last)
    most = 2 ** 32 - 1
    request.numbers += (len(last), not include_start, include_stop, reverse, raw, cursors,
                        _pack.limited("limit", limit, 2 ** 63 - 1), _pack.limited("caching", caching, most),
                        _pack.limited("batch", batch, most), _pack.limited("fetch_bytes", fetch_bytes, 2 ** 63 - 1),
                        not fetch_ahead)
    return request
