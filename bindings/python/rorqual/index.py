# SPDX-License-Identifier: Apache-2.0
"""Secondary indexes: rows found by the value of a column (include/rorqual/rowkey.h has the guarantees)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

from ._call import check, error_of, new_failure
from ._native import ffi, lib
from ._pack import OpAttributes, Request, extra_of
from .errors import Error
from .scan import Rows
from .values import Bytes, Column, Value, encode, to_bytes

if TYPE_CHECKING:
    from .database import Database

__all__ = ["Index", "RepairStatus", "Repairs"]


class Repairs(NamedTuple):
    """Counts of Index.repair(): rows read, and changes made."""

    rows: int
    entries: int
    added: int       # number of entries
    removed: int
    duplicates: int  # rows whose value a unique index has for another row


class RepairStatus(NamedTuple):
    """What the index's thread has done so far."""

    repairs: int                 # number of repairs that have ended, failed ones included
    totals: Repairs              # of all repairs
    last_error: Optional[Error]  # of the last repair, if it failed; the next one begins again


def _repairs() -> Any:
    done = ffi.new("rq_index_repairs *")
    done.size = ffi.sizeof("rq_index_repairs")
    return done


def _taken(done: Any) -> Repairs:
    return Repairs(done.rows, done.entries, done.added, done.removed, done.duplicates)


class Index:
    """Made by Database.index(). All writes of the indexed and the covered columns go through it. Any thread may use it."""

    def __init__(self, database: "Database", handle: Any) -> None:
        self.database = database
        self._handle = ffi.gc(handle, lib.rq_index_close)

    def put(self, row: Bytes, values: Mapping[Column, Value], *, ttl_ms: Optional[int] = None, durability: Optional[str] = None,
            attributes: Optional[OpAttributes] = None, priority: Optional[int] = None) -> None:
        """Writes values to a row, with or without the indexed column. AlreadyExistsError: the index is unique, and another
        row has the value."""
        request, why = Request(), new_failure()
        request.put(row, values, None, durability, ttl_ms, extra_of(attributes, priority))
        numbers, data = request.flat()
        check(lib.rqpy_index_put(self._handle, numbers, data, why), why)

    def delete(self, row: Bytes) -> None:
        """Deletes a row and its entry."""
        why, data = new_failure(), to_bytes(row)
        key = ffi.new("rq_bytes *", (ffi.from_buffer(data), len(data)))
        check(lib.rq_index_delete(self._handle, key[0], why), why)

    def scan(self, start: Optional[Value] = None, stop: Optional[Value] = None, *, value: Optional[Value] = None,
             include_stop: bool = False, covered_only: bool = False) -> "IndexScanner":
        """Iterates over the rows that have `value`, or a value from `start` to `stop` (excluded), in the order of the values'
        bytes; rows with the same value are ordered by key. With `covered_only` rows have only the indexed and the covered
        columns, which are read from the index."""
        if value is not None:
            if start is not None or stop is not None or include_stop:
                raise ValueError("a value has no start and no stop")
            start, stop, include_stop = value, value, True
        return IndexScanner(self, b"" if start is None else encode(start), None if stop is None else encode(stop), include_stop,
                            covered_only)

    def repair(self) -> Repairs:
        """Compares table and index, adds missing entries and deletes wrong ones: after a crash of a writer, or if rows
        were written without the index. Rows may be written meanwhile."""
        why, done = new_failure(), _repairs()
        check(lib.rq_index_repair(self._handle, done, why), why)
        return _taken(done)

    def repair_status(self) -> RepairStatus:
        """What the thread of an index with `repair_every` has done."""
        why, done, count = new_failure(), _repairs(), ffi.new("uint64_t *", 2 ** 64 - 1)
        code = lib.rq_index_repaired(self._handle, count, done, why)
        if count[0] == 2 ** 64 - 1:  # nothing was set: there is no thread, or it is the parent's
            check(code, why)
        return RepairStatus(int(count[0]), _taken(done), error_of(code, why) if code else None)


class IndexScanner(Rows):
    """Made by Index.scan()."""

    _next = lib.rqpy_index_next

    def __init__(self, index: Index, start: bytes, stop: Optional[bytes], include_stop: bool, covered_only: bool) -> None:
        why, scanner, range_ = new_failure(), ffi.new("rq_index_scanner **"), ffi.new("rq_index_range *")
        kept = ffi.from_buffer(start), ffi.from_buffer(stop or b"")
        range_.size = ffi.sizeof("rq_index_range")
        first = getattr(range_, "from")
        first.data, first.len = kept[0], len(start)
        range_.to.data, range_.to.len = kept[1], len(stop or b"")
        range_.includes_to, range_.no_end, range_.covered_only = include_stop, stop is None, covered_only
        handle = index._handle
        check(lib.rq_index_scan(handle, range_, scanner, why), why)

        def close(scanner: Any, _index: Any = handle) -> None:
            """Closes the index after its scanners, in whatever order Python frees them."""
            lib.rq_index_scanner_close(scanner)

        super().__init__(ffi.gc(scanner[0], close))
