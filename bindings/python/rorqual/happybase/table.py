# SPDX-License-Identifier: Apache-2.0
"""HappyBase's Table."""
from __future__ import annotations

import struct
import time
from collections import OrderedDict
from numbers import Integral
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .. import table as plain
from ..database import Region, TableInfo
from ..errors import TableNotFoundError
from . import ttypes
from .batch import Batch
from .util import Text, as_dict, bytes_increment, column_of, columns_of, ensure_bytes

if TYPE_CHECKING:
    from .connection import Connection

Result = Dict[bytes, Any]
ALL_VERSIONS = 2 ** 31 - 1


def _checked_columns(columns: Optional[Sequence[Text]]) -> None:
    if columns is not None and not isinstance(columns, (tuple, list)):
        raise TypeError("'columns' must be a tuple or list")


def _checked_timestamp(timestamp: Optional[int]) -> None:
    if timestamp is not None and not isinstance(timestamp, Integral):
        raise TypeError("'timestamp' must be an integer")


def _until(timestamp: Optional[int]) -> Optional[Tuple[int, int]]:
    """A time range of cells older than the timestamp."""
    if timestamp is not None and timestamp < 0:
        raise ttypes.IllegalArgument(f"java.lang.IllegalArgumentException: Timestamp cannot be negative. maxStamp: {timestamp}")
    return None if timestamp is None else (0, int(timestamp))


class Table:
    """Made by Connection.table()."""

    def __init__(self, name: bytes, connection: "Connection") -> None:
        self.name = name
        self.connection = connection
        self._opened: Optional[plain.Table] = None

    def __repr__(self) -> str:
        return f"<{__name__}.{type(self).__name__} name={self.name!r}>"

    @property
    def _table(self) -> plain.Table:
        """The table in the connection's database, which may have been opened again."""
        database = self.connection._database
        opened = self._opened
        if opened is None or opened.database is not database:
            with ttypes.answers():
                opened = self._opened = database.table(self.name.decode("utf-8"))
        return opened

    def _info(self) -> TableInfo:
        with ttypes.answers():
            return self.connection._database.describe(self.name.decode("utf-8"))

    def families(self) -> Dict[bytes, Dict[str, Any]]:
        """The families' options by name."""
        return {name.encode(): _descriptor(name.encode(), its) for name, its in self._info().families.items()}

    def _column_family_names(self) -> List[bytes]:
        return [name.encode() for name in self._info().families]

    def regions(self) -> List[Dict[str, Any]]:
        """The table's regions, ascending: start_key, end_key, id, name, version, server_name, port."""
        with ttypes.answers():
            try:
                return [_region(region) for region in self.connection._database.regions(self.name.decode("utf-8"))]
            except TableNotFoundError:
                return []

    # --- reading ---

    def row(self, row: Text, columns: Optional[Sequence[Text]] = None, timestamp: Optional[int] = None,
            include_timestamp: bool = False) -> Result:
        """A row's columns. `timestamp`: only older cells. `include_timestamp`: values are pairs (value, timestamp)."""
        _checked_columns(columns)
        _checked_timestamp(timestamp)
        if timestamp == 0:
            return {}
        with ttypes.answers():
            found = self._table.get(ensure_bytes(row), columns_of(columns), time_range=_until(timestamp))
        return as_dict(found, include_timestamp)

    def rows(self, rows: Sequence[Text], columns: Optional[Sequence[Text]] = None, timestamp: Optional[int] = None,
             include_timestamp: bool = False) -> Union[List[Tuple[bytes, Result]], Result]:
        """The existing rows among these keys."""
        _checked_columns(columns)
        if not rows:
            return {}
        _checked_timestamp(timestamp)
        if timestamp == 0:
            return []
        with ttypes.answers():
            found = self._table.get_many([ensure_bytes(row) for row in rows], columns_of(columns), time_range=_until(timestamp))
        return [(row.key, as_dict(row, include_timestamp)) for row in found if row.cells]

    def cells(self, row: Text, column: Text, versions: Optional[int] = None, timestamp: Optional[int] = None,
              include_timestamp: bool = False) -> List[Any]:
        """Versions of a cell, newest first: all, or at most `versions`."""
        if versions is None:
            versions = ALL_VERSIONS
        elif not isinstance(versions, int):
            raise TypeError("'versions' argument must be a number or None")
        elif versions < 1:
            raise ValueError("'versions' argument must be at least 1 (or None)")
        _checked_timestamp(timestamp)
        if timestamp == 0:
            return []
        with ttypes.answers():
            found = self._table.get(ensure_bytes(row), ensure_bytes(column), versions=versions, time_range=_until(timestamp))
        return [(cell.value, cell.timestamp) if include_timestamp else cell.value for cell in found.cells]

    def scan(self, row_start: Optional[Text] = None, row_stop: Optional[Text] = None, row_prefix: Optional[Text] = None,
             columns: Optional[Sequence[Text]] = None, filter: Optional[Text] = None, timestamp: Optional[int] = None,
             include_timestamp: bool = False, batch_size: int = 1000, scan_batching: Optional[int] = None,
             limit: Optional[int] = None, sorted_columns: bool = False, reverse: bool = False) -> Iterator[Tuple[bytes, Result]]:
        """Yields (row key, columns) from `row_start` to `row_stop` (excluded), or of `row_prefix`; `reverse`: in
        descending order. `batch_size` rows are fetched at once; `scan_batching` divides rows into results of at most so
        many cells."""
        for name, number in (("batch_size", batch_size), ("limit", limit), ("scan_batching", scan_batching)):
            if number is not None and number < 1:
                raise ValueError(f"'{name}' must be >= 1")
        if sorted_columns and self.connection.compat < "0.96":
            raise NotImplementedError("'sorted_columns' is only supported in HBase >= 0.96")
        if reverse and self.connection.compat < "0.98":
            raise NotImplementedError("'reverse' is only supported in HBase >= 0.98")
        if filter is not None and self.connection.compat == "0.90":
            raise NotImplementedError("'filter' is not supported in HBase 0.90")
        if row_prefix is not None:
            if row_start is not None or row_stop is not None:
                raise TypeError("'row_prefix' cannot be combined with 'row_start' or 'row_stop'")
            prefix = ensure_bytes(row_prefix)
            row_start, row_stop = (bytes_increment(prefix), prefix) if reverse else (prefix, bytes_increment(prefix))
        if timestamp == 0:
            return
        filter = filter.decode("utf-8", "surrogateescape") if isinstance(filter, bytes) else filter
        with ttypes.answers():
            scanner = self._table.scan(row_start, row_stop, columns=columns_of(columns), filter=filter or None, reverse=reverse,
                                       limit=None if scan_batching else limit, time_range=_until(timestamp),
                                       batch=scan_batching, caching=batch_size)
        returned = 0
        with scanner:
            while limit is None or returned < limit:
                with ttypes.answers():
                    found = next(scanner, None)
                if found is None:
                    return
                returned += 1
                columns_found = as_dict(found, include_timestamp)
                yield found.key, OrderedDict(columns_found) if sorted_columns else columns_found

    # --- writing ---

    def put(self, row: Text, data: Mapping[Text, Text], timestamp: Optional[int] = None, wal: bool = True) -> None:
        """Stores columns of a row."""
        with self.batch(timestamp=timestamp, wal=wal) as batch:
            batch.put(row, data)

    def delete(self, row: Text, columns: Optional[Sequence[Text]] = None, timestamp: Optional[int] = None,
               wal: bool = True) -> None:
        """Deletes columns or families of a row, or all of it."""
        with self.batch(timestamp=timestamp, wal=wal) as batch:
            batch.delete(row, columns)

    def batch(self, timestamp: Optional[int] = None, batch_size: Optional[int] = None, transaction: bool = False,
              wal: bool = True) -> Batch:
        """Collects changes: they are sent at the end of a `with` block (with `transaction` not after an exception), and
        whenever `batch_size` are collected."""
        return Batch(self, timestamp, batch_size, transaction, wal)

    # --- counters ---

    def counter_get(self, row: Text, column: Text) -> int:
        """A counter's value; a missing counter is created with 0."""
        return self.counter_inc(row, column, value=0)

    def counter_set(self, row: Text, column: Text, value: int = 0) -> None:
        """Stores a counter's value. Several increments within a millisecond get timestamps ahead of the clock, as in
        HBase; the value is then stored with a later timestamp, because otherwise they would hide it."""
        with ttypes.answers():
            cells = self._table.get(ensure_bytes(row), [column_of(column)]).cells
        ahead = bool(cells) and cells[0].timestamp >= int(time.time() * 1000)
        self.put(row, {column: struct.pack(">q", value)}, timestamp=cells[0].timestamp + 1 if ahead else None)

    def counter_inc(self, row: Text, column: Text, value: int = 1) -> int:
        """Adds to a counter and returns its value."""
        with ttypes.answers():
            return self._table.increment(ensure_bytes(row), column_of(column), value)

    def counter_dec(self, row: Text, column: Text, value: int = 1) -> int:
        return self.counter_inc(row, column, -value)


def _descriptor(name: bytes, attributes: Mapping[str, str]) -> Dict[str, Any]:
    ttl = attributes.get("TTL", "2147483647").split()[0]
    return {
        "name": name + b":", "max_versions": int(attributes.get("VERSIONS", 1)),
        "compression": attributes.get("COMPRESSION", "NONE").encode(),
        "in_memory": attributes.get("IN_MEMORY", "false") == "true",
        "bloom_filter_type": attributes.get("BLOOMFILTER", "ROW").encode(), "bloom_filter_vector_size": 0,
        "bloom_filter_nb_hashes": 0, "block_cache_enabled": attributes.get("BLOCKCACHE", "true") == "true",
        "time_to_live": int(ttl) if ttl.isdigit() else 2147483647,
    }


def _region(region: Region) -> Dict[str, Any]:
    """In this process regions have no server."""
    host, _, port = region.server.rpartition(":")
    number = region.name[:-len(region.encoded) - 2].rpartition(b",")[2]
    return {"start_key": region.start, "end_key": region.stop, "id": int(number), "name": region.name, "version": 1,
            "server_name": host.encode(), "port": int(port or 0)}
