# SPDX-License-Identifier: Apache-2.0
"""Scanners: iterators over rows. C returns rows in blocks, small ones first, so that a caller who needs few rows does not
wait for many."""
from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Type, TypeVar

from ._call import Answer, check, error_of, new_failure
from ._native import ffi, lib
from ._pack import Block, Request
from .errors import Error
from .row import Row

if TYPE_CHECKING:
    from .rowkey import KeyFormat
    from .table import Table

__all__ = ["SaltedScanner", "Scanner"]

Self = TypeVar("Self", bound="Rows")

FIRST_ROWS = 8
MOST_ROWS = 512
BLOCK_BYTES = 1 << 20


class Rows(Iterator[Row]):
    """The common part of scanners: `_next` gets rows from C. Threads may share a scanner; each row is returned to one
    of them."""

    _next: Any

    def __init__(self, scanner: Any) -> None:
        self._scanner = scanner  # closed when it is released
        self._lock = threading.Lock()
        self._rows: List[Row] = []  # fetched rows in reverse order
        self._error: Optional[Error] = None
        self._most = FIRST_ROWS

    def __iter__(self: Self) -> Self:
        return self

    def __next__(self) -> Row:
        with self._lock:
            if not self._rows:
                self._fetch()
            if self._rows:
                return self._rows.pop()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def _fetch(self) -> None:
        if self._scanner is None:
            return
        answer, count, end = Answer(), ffi.new("size_t *"), ffi.new("bool *")
        code = self._next(self._scanner, self._most, BLOCK_BYTES, answer.block, answer.size, count, end, answer.why)
        if code != 0:
            self._error = error_of(code, answer.why)
        if answer.block[0] != ffi.NULL:
            block = Block(answer.take())
            self._rows = [block.row() for _ in range(count[0])]
            self._rows.reverse()
        self._most = min(self._most * 2, MOST_ROWS)
        if end[0] or code != 0:
            self._end()

    def _end(self) -> None:
        scanner, self._scanner = self._scanner, None
        if scanner is not None:
            ffi.release(scanner)

    def close(self) -> None:
        """Frees the scan's resources; later rows are not read. A second call does nothing."""
        with self._lock:
            self._rows, self._error = [], None
            self._end()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class Scanner(Rows):
    """Made by Table.scan()."""

    _next = lib.rqpy_scan_next

    def __init__(self, table: "Table", handle: Any, request: Request) -> None:
        self._table = table  # outlives the scanner
        why, scanner = new_failure(), ffi.new("rq_scanner **")
        numbers, data = request.flat()
        check(lib.rqpy_scan(handle, numbers, data, scanner, why), why)
        super().__init__(ffi.gc(scanner[0], lib.rq_scanner_close))


class SaltedScanner(Rows):
    """Made by Table.scan_salted()."""

    _next = lib.rqpy_salted_next

    def __init__(self, table: "Table", handle: Any, format: "KeyFormat", threads: int, request: Request) -> None:
        self._table = table
        why, scanner = new_failure(), ffi.new("rq_salted_scanner **")
        numbers, data = request.flat()
        check(lib.rqpy_salted_scan(handle, format._handle, numbers, data, threads, scanner, why), why)

        def close(scanner: Any, _table: Any = handle) -> None:
            """Closes the table after its scanners, in whatever order Python frees them."""
            lib.rq_salted_close(scanner)

        super().__init__(ffi.gc(scanner[0], close))
