# SPDX-License-Identifier: Apache-2.0
"""rorqual for asyncio, on librorqual's asynchronous calls: no thread waits for a call on rows.

    async with rorqual.aio.connect("hbase://host:2181") as db:
        users = db.table("users")
        await users.put("ann", {"cf:age": 31})
        async for row in users.scan(prefix="a"):
            print(row.key)

A database belongs to the event loop in which it was opened. Its descriptor is readable when calls have ended; the loop then polls.
Definitions of tables and namespaces, connecting and closing block a thread of asyncio's pool instead.
"""
from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import (Any, AsyncIterator, Awaitable, Callable, Dict, Generator, Iterable, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Type, TypeVar, Union)

from . import database as plain
from ._call import Answer, check, error_name, new_failure
from ._native import ffi, lib
from ._pack import Block, Columns, Filter, OpAttributes, Request, TimeRange, extra_of
from .database import Attributes, ClusterInfo, Families, Region, TableInfo
from .errors import ClosedError, Error, ForkedError, make
from .row import Row
from .table import Batch as PlainBatch
from .table import Mutation, Table as PlainTable, counter_of, of_one_row, pack_scan, several, succeeded
from .values import Bytes, Column, Value, to_bytes

__all__ = ["Batch", "Database", "Scanner", "Table", "connect"]

T = TypeVar("T")
SCAN_ROWS = 512


class End(NamedTuple):
    """The result of an asynchronous call, like rq_completion."""

    error: Optional[Exception]
    done: bool
    rows: List[Row]
    outcomes: Optional[List[Union[Row, Error]]]


class Connecting(Awaitable["Database"]):
    """Returned by connect(): can be awaited, or used with `async with`, which closes the database at its end."""

    def __init__(self, open_: Callable[[], plain.Database]) -> None:
        self._open = open_
        self._database: Optional[Database] = None

    async def _connect(self) -> "Database":
        return Database(await asyncio.to_thread(self._open))

    def __await__(self) -> Generator[Any, None, "Database"]:
        return self._connect().__await__()

    async def __aenter__(self) -> "Database":
        self._database = await self._connect()
        return self._database

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if self._database is not None:
            await self._database.close()


def connect(url: str, **options: Any) -> Connecting:
    """Opens a database; the arguments are those of rorqual.connect()."""
    return Connecting(lambda: plain.connect(url, **options))


class Database:
    """Made by connect()."""

    def __init__(self, database: plain.Database) -> None:
        self._plain = database
        self._loop = asyncio.get_running_loop()
        self._queue = ffi.gc(lib.rqpy_queue_new(), lib.rqpy_queue_free)
        if self._queue == ffi.NULL:
            raise MemoryError
        database._kept.append(self._queue)
        self._next = 0
        # Running calls; the objects that each uses are kept until it has ended.
        self._calls: Dict[int, Tuple["asyncio.Future[End]", Any]] = {}
        why, descriptor = new_failure(), ffi.new("int *")
        with database._open() as handle:
            check(lib.rq_descriptor(handle, descriptor, why), why)
        # The library closes its own descriptor; the loop gets a copy, so that it never watches another file with the
        # same number.
        self._descriptor = os.dup(descriptor[0])
        self._loop.add_reader(self._descriptor, self._poll)
        self._closed: "Optional[asyncio.Future[None]]" = None

    def __repr__(self) -> str:
        return f"<rorqual.aio.Database {self._plain.url!r}>"

    # --- calls ---

    async def _call(self, begin: Callable[..., int], target: Any, *arguments: Any, keep: Any = None) -> End:
        """Begins an asynchronous call and waits for its end."""
        return await self._begin(begin, target, *arguments, keep=keep)

    def _begin(self, begin: Callable[..., int], target: Any, *arguments: Any, keep: Any = None) -> "asyncio.Future[End]":
        why = new_failure()
        number = self._next
        with self._plain._open():
            check(begin(target, self._queue, number, *arguments, why), why)
        self._next += 1
        future: "asyncio.Future[End]" = self._loop.create_future()
        self._calls[number] = future, keep
        return future

    def _poll(self) -> None:
        try:
            answer, count = Answer(), ffi.new("size_t *")
            with self._plain._open() as handle:
                code = lib.rqpy_poll(handle, self._queue, answer.block, answer.size, count, answer.why)
            self._ended(answer, count[0])
            answer.check(code)
        except (Error, MemoryError) as error:
            # After any other error later calls may succeed; they need the reader.
            if isinstance(error, (ClosedError, ForkedError)):
                self._loop.remove_reader(self._descriptor)
            self._fail(error)

    def _ended(self, answer: Answer, count: int) -> None:
        if answer.block[0] == ffi.NULL:
            return
        block = Block(answer.take())
        for _ in range(count):
            number, end = _end_of(block)
            call = self._calls.pop(number, None)  # None: _fail has already ended the call
            if call is not None and not call[0].done():
                call[0].set_result(end)

    def _fail(self, error: Exception) -> None:
        calls, self._calls = self._calls, {}
        for future, _ in calls.values():
            if not future.done():
                future.set_result(End(error, False, [], None))

    async def close(self) -> None:
        """Ends outstanding calls with ClosedError and closes the database."""
        self._plain._check_process()  # a child of fork shares the loop's epoll with its parent
        if self._closed is None:
            # Not a task, because the end of the loop cancels tasks. The library writes to the queue until this thread
            # has ended, even if nobody waits for it any more. If the executor refuses it, close() can be called again.
            self._closed = self._loop.run_in_executor(None, self._plain.close)
            self._closed.add_done_callback(self._take_last)
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        await asyncio.shield(self._closed)

    def _take_last(self, _closed: "asyncio.Future[None]") -> None:
        """All calls have ended. If memory for their results is missing, they end with that error, so that none is
        awaited forever."""
        try:
            answer, count = Answer(), ffi.new("size_t *")
            code = lib.rqpy_take(self._queue, answer.block, answer.size, count, answer.why)
            self._ended(answer, count[0])
            answer.check(code)
        except (Error, MemoryError) as error:
            self._fail(error)

    async def __aenter__(self) -> "Database":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    # --- tables and namespaces, as rorqual.Database's ---

    def table(self, name: str) -> "Table":
        return Table(self, self._plain.table(name))

    async def create_table(self, name: str, families: Families, *, attributes: Optional[Attributes] = None,
                           splits: Iterable[Bytes] = ()) -> "Table":
        made = await asyncio.to_thread(self._plain.create_table, name, families, attributes=attributes, splits=splits)
        return Table(self, made)

    async def drop_table(self, name: str, *, disable: bool = False) -> None:
        await asyncio.to_thread(self._plain.drop_table, name, disable=disable)

    async def enable_table(self, name: str) -> None:
        await asyncio.to_thread(self._plain.enable_table, name)

    async def disable_table(self, name: str) -> None:
        await asyncio.to_thread(self._plain.disable_table, name)

    async def truncate_table(self, name: str, *, preserve_splits: bool = False) -> None:
        await asyncio.to_thread(self._plain.truncate_table, name, preserve_splits=preserve_splits)

    async def flush_table(self, name: str) -> None:
        await asyncio.to_thread(self._plain.flush_table, name)

    async def compact_table(self, name: str, family: Optional[str] = None, *, major: bool = False) -> None:
        await asyncio.to_thread(self._plain.compact_table, name, family, major=major)

    async def alter_table(self, name: str, families: Families = (), *, drop_families: Iterable[str] = (),
                          attributes: Optional[Mapping[str, Union[str, int, bool, None]]] = None) -> None:
        await asyncio.to_thread(self._plain.alter_table, name, families, drop_families=drop_families, attributes=attributes)

    async def regions(self, name: str) -> List[Region]:
        return await asyncio.to_thread(self._plain.regions, name)

    async def split_table(self, name: str, row: Bytes) -> None:
        await asyncio.to_thread(self._plain.split_table, name, row)

    async def merge_regions(self, name: str, regions: Iterable[str]) -> None:
        await asyncio.to_thread(self._plain.merge_regions, name, regions)

    async def cluster(self) -> ClusterInfo:
        return await asyncio.to_thread(self._plain.cluster)

    async def table_exists(self, name: str) -> bool:
        return await asyncio.to_thread(self._plain.table_exists, name)

    async def tables(self, namespace: Optional[str] = None) -> List[str]:
        return await asyncio.to_thread(self._plain.tables, namespace)

    async def describe(self, name: str) -> TableInfo:
        return await asyncio.to_thread(self._plain.describe, name)

    async def namespaces(self) -> List[str]:
        return await asyncio.to_thread(self._plain.namespaces)

    async def create_namespace(self, name: str, properties: Optional[Attributes] = None) -> None:
        await asyncio.to_thread(self._plain.create_namespace, name, properties)

    async def describe_namespace(self, name: str) -> Dict[str, str]:
        return await asyncio.to_thread(self._plain.describe_namespace, name)

    async def alter_namespace(self, name: str, properties: Mapping[str, Union[str, int, bool, None]]) -> None:
        await asyncio.to_thread(self._plain.alter_namespace, name, properties)

    async def drop_namespace(self, name: str) -> None:
        await asyncio.to_thread(self._plain.drop_namespace, name)


def _end_of(block: Block) -> Tuple[int, End]:
    """Decodes the next completion of a block, in the order of native/pack.c."""
    number, code, retryable, done, action = block.take_numbers(5)
    hbase_class, message = block.take_text(), block.take_text()
    kind, count = block.take_numbers(2)
    outcomes = [block.outcome(i, None, error_name) for i in range(count)] if kind == 2 else None
    rows = [block.row() for _ in range(count)] if kind in (1, 3) else []
    error = None
    if code != 0:
        error = make(code, error_name(code), hbase_class, message, bool(retryable), None if action < 0 else action)
    return number, End(error, bool(done), rows, outcomes)


def _only(end: End, key: bytes) -> Row:
    if end.error is not None:
        raise end.error
    if not end.rows:
        return Row(key, (), False)
    row = end.rows[0]
    return row if row.cells else Row(key, (), row.exists)


class Table:
    """Made by Database.table(). The methods are those of rorqual.Table, as coroutines."""

    def __init__(self, database: Database, table: PlainTable) -> None:
        self.database = database
        self.name = table.name
        self._plain = table
        self._handle = table._handle

    def __repr__(self) -> str:
        return f"<rorqual.aio.Table {self.name!r}>"

    async def _get(self, request: Request, key: bytes) -> Row:
        return _only(await self.database._call(lib.rqpy_get_async, self._handle, *request.flat(),
                                               keep=self._plain), key)

    async def _change(self, request: Request, key: bytes) -> Row:
        return _only(await self.database._call(lib.rqpy_change_async, self._handle, *request.flat(),
                                               keep=self._plain), key)

    async def get(self, row: Bytes, columns: Optional[Columns] = None, *, versions: Optional[int] = None,
                  time_range: Optional[TimeRange] = None, filter: Optional[Filter] = None, family_limit: Optional[int] = None,
                  family_offset: Optional[int] = None, cache_blocks: bool = True, reads_uncommitted: bool = False,
                  attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        request, key = Request(), to_bytes(row)
        request.read(key, columns, versions, time_range, filter, family_limit, family_offset, False, cache_blocks,
                     reads_uncommitted, extra_of(attributes, priority))
        return await self._get(request, key)

    async def exists(self, row: Bytes, columns: Optional[Columns] = None, *, filter: Optional[Filter] = None,
                     reads_uncommitted: bool = False,
                     attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> bool:
        request, key = Request(), to_bytes(row)
        request.read(key, columns, filter=filter, existence_only=True, reads_uncommitted=reads_uncommitted,
                     extra=extra_of(attributes, priority))
        return (await self._get(request, key)).exists

    async def get_many(self, rows: Iterable[Bytes], columns: Optional[Columns] = None, *, versions: Optional[int] = None,
                       time_range: Optional[TimeRange] = None, filter: Optional[Filter] = None, reads_uncommitted: bool = False,
                       attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> List[Row]:
        request, keys = Request.of_gets(rows, columns, versions, time_range, filter, reads_uncommitted,
                                        extra_of(attributes, priority))
        return await self._batch(request, keys)

    async def put(self, row: Bytes, values: Mapping[Column, Value], *, timestamp: Optional[int] = None,
                  ttl_ms: Optional[int] = None, durability: Optional[str] = None,
                  attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        request = Request()
        request.put(row, values, timestamp, durability, ttl_ms, extra_of(attributes, priority))
        await self._change(request, b"")

    async def delete(self, row: Bytes, columns: Optional[Columns] = None, *, timestamp: Optional[int] = None,
                     versions: str = "all", durability: Optional[str] = None,
                     attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        request = Request()
        request.delete(row, columns, timestamp, versions, durability, extra_of(attributes, priority))
        await self._change(request, b"")

    async def increment(self, row: Bytes, column: Column, amount: int = 1, *, durability: Optional[str] = None,
                        ttl_ms: Optional[int] = None,
                        attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> int:
        return counter_of(await self.increment_many(row, {column: amount}, durability=durability, ttl_ms=ttl_ms,
                                                    attributes=attributes, priority=priority))

    async def increment_many(self, row: Bytes, amounts: Mapping[Column, int], *, durability: Optional[str] = None,
                             ttl_ms: Optional[int] = None,
                             attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        request = Request()
        request.increment(row, amounts, durability, ttl_ms, extra=extra_of(attributes, priority))
        return await self._change(request, to_bytes(row))

    async def append(self, row: Bytes, values: Mapping[Column, Value], *, durability: Optional[str] = None,
                     ttl_ms: Optional[int] = None,
                     attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> Row:
        request = Request()
        request.append(row, values, durability, ttl_ms, extra_of(attributes, priority))
        return await self._change(request, to_bytes(row))

    async def mutate(self, changes: Sequence[Mutation]) -> None:
        await self._change(of_one_row(changes), b"")

    async def check_and_mutate(self, row: Bytes, changes: Union[Mutation, Sequence[Mutation]], *, column: Optional[Column] = None,
                               compare: str = "==", value: Optional[Value] = None, filter: Optional[Filter] = None,
                               time_range: Optional[TimeRange] = None) -> bool:
        request = Request()
        request.check(row, several(changes), column, compare, value, filter, time_range)
        end = await self.database._call(lib.rqpy_check_async, self._handle, *request.flat(),
                                        keep=self._plain)
        if end.error is not None:
            raise end.error
        return end.done

    async def _batch(self, request: Request, keys: Sequence[bytes]) -> List[Row]:
        if not keys:
            return []
        end = await self.database._call(lib.rqpy_batch_async, self._handle, *request.flat(),
                                        keep=self._plain)
        if end.outcomes is None:
            raise end.error or AssertionError("a batch without outcomes")
        for key, outcome in zip(keys, end.outcomes):
            if isinstance(outcome, Row) and not outcome.cells:
                outcome.key = key
        return succeeded(end.outcomes)

    def batch(self) -> "Batch":
        """Collects changes, which `await send()` or the end of an `async with` block sends."""
        return Batch(self)

    def scan(self, start: Optional[Bytes] = None, stop: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
             columns: Optional[Columns] = None, filter: Optional[Filter] = None, reverse: bool = False,
             limit: Optional[int] = None, versions: Optional[int] = None, time_range: Optional[TimeRange] = None,
             include_start: bool = True, include_stop: bool = False, raw: bool = False, batch: Optional[int] = None,
             family_limit: Optional[int] = None, family_offset: Optional[int] = None, caching: Optional[int] = None,
             fetch_bytes: Optional[int] = None, cache_blocks: bool = True, reads_uncommitted: bool = False,
             attributes: Optional[OpAttributes] = None, priority: Optional[int] = None, cursors: bool = False) -> "Scanner":
        return Scanner(self, pack_scan(
            start, stop, prefix, columns, filter, reverse, limit, versions, time_range, include_start, include_stop, raw,
            batch, family_limit, family_offset, caching, fetch_bytes, cache_blocks, reads_uncommitted, cursors,
            extra_of(attributes, priority)))


class Batch(PlainBatch):
    """Made by Table.batch(): has the methods put, delete, increment, append, add and check_and_mutate of rorqual.Batch."""

    def __init__(self, table: Table) -> None:
        super().__init__(table._plain)
        self._aio = table

    async def send(self) -> List[Row]:  # type: ignore[override]
        request, keys = self._taken()
        return await self._aio._batch(request, keys)

    def __enter__(self) -> PlainBatch:
        raise TypeError("a batch of rorqual.aio is used by 'async with'")

    async def __aenter__(self) -> "Batch":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if kind is None:
            await self.send()


class Scanner(AsyncIterator[Row]):
    """Made by Table.scan(). For one task at a time."""

    def __init__(self, table: Table, request: Request) -> None:
        self._table = table
        self._rows: List[Row] = []  # fetched rows in reverse order
        self._running: "Optional[asyncio.Future[End]]" = None
        why, scanner = new_failure(), ffi.new("rq_scanner **")
        check(lib.rqpy_scan(table._handle, *request.flat(), scanner, why), why)
        self._scanner: Any = ffi.gc(scanner[0], lib.rq_scanner_close)

    def __aiter__(self) -> "Scanner":
        return self

    async def __anext__(self) -> Row:
        if not self._rows:
            await self._fetch()
        if not self._rows:
            raise StopAsyncIteration
        return self._rows.pop()

    async def _fetch(self) -> None:
        if self._scanner is None:
            return
        if self._running is None:
            self._running = self._table.database._begin(lib.rqpy_next_async, self._scanner, SCAN_ROWS,
                                                        keep=(self._table._plain, self._scanner))
        # A task that is cancelled here leaves the call running; its rows are for the next task.
        end = await asyncio.shield(self._running)
        self._running = None
        if self._scanner is None:  # it was closed meanwhile
            return
        if end.error is not None or not end.rows:
            self.close()
        if end.error is not None:
            raise end.error
        self._rows = end.rows[::-1]

    def close(self) -> None:
        """Later rows are not read. The scan's resources are freed when its running call has ended."""
        self._rows = []
        self._scanner = None

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> "Scanner":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()
