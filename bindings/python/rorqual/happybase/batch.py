# SPDX-License-Identifier: Apache-2.0
"""HappyBase's Batch. Like HBase's Thrift server, it makes all puts of a batch and then all deletes."""
from __future__ import annotations

from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Tuple, Type

from .._pack import Request
from ..table import succeeded
from . import ttypes
from .util import Text, ensure_bytes

if TYPE_CHECKING:
    from .table import Table

# (column, value or None to delete it, whether it is written to the log)
Change = Tuple[bytes, Optional[bytes], bool]


class Batch:
    """Made by Table.batch()."""

    def __init__(self, table: "Table", timestamp: Optional[int] = None, batch_size: Optional[int] = None,
                 transaction: bool = False, wal: bool = True) -> None:
        if not (timestamp is None or isinstance(timestamp, Integral)):
            raise TypeError("'timestamp' must be an integer or None")
        if batch_size is not None:
            if transaction:
                raise TypeError("'transaction' cannot be used when 'batch_size' is specified")
            if not batch_size > 0:
                raise ValueError("'batch_size' must be > 0")
        self._table = table
        self._batch_size = batch_size
        self._timestamp = timestamp
        self._transaction = transaction
        self._wal = wal
        self._families: Optional[List[bytes]] = None
        self._rows: Dict[bytes, List[Change]] = {}
        self._count = 0

    def send(self) -> None:
        """Sends the collected changes."""
        if not self._rows:
            return
        puts, deletes = Request(), Request()
        put_keys: List[bytes] = []
        delete_keys: List[bytes] = []
        for row, changes in self._rows.items():
            values = [change for change in changes if change[1] is not None]
            if values:
                _begin(puts, put_keys, row)
                puts.put(row, {column: value for column, value, _ in values if value is not None}, self._timestamp,
                         _durability(values))
            if len(values) < len(changes):
                removed = [change for change in changes if change[1] is None]
                _begin(deletes, delete_keys, row)
                deletes.delete(row, [column for column, _, _ in removed], self._timestamp, durability=_durability(removed))
        for request, keys in ((puts, put_keys), (deletes, delete_keys)):
            with ttypes.answers():
                succeeded(self._table._table._batch(request, keys))
        self._rows = {}
        self._count = 0

    def put(self, row: Text, data: Mapping[Text, Text], wal: Optional[bool] = None) -> None:
        """Stores columns of a row."""
        changes: List[Change] = []
        for column, value in data.items():
            name = ensure_bytes(column)
            if b":" not in name:
                raise ttypes.IllegalArgument("java.lang.IllegalArgumentException: Invalid famAndQf provided.")
            changes.append((name, b"" if value is None else ensure_bytes(value), self._wal if wal is None else wal))
        self._add(row, changes)

    def delete(self, row: Text, columns: Optional[Sequence[Text]] = None, wal: Optional[bool] = None) -> None:
        """Deletes columns or families of a row, or all of it."""
        if columns is None:
            if self._families is None:
                self._families = self._table._column_family_names()
            columns = self._families
        self._add(row, [(ensure_bytes(column), None, self._wal if wal is None else wal) for column in columns])

    def _add(self, row: Text, changes: List[Change]) -> None:
        self._rows.setdefault(ensure_bytes(row), []).extend(changes)
        self._count += len(changes)
        if self._batch_size and self._count >= self._batch_size:
            self.send()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if not (self._transaction and kind is not None):
            self.send()


def _begin(request: Request, keys: List[bytes], row: bytes) -> None:
    request.numbers.append(1)
    request.actions += 1
    keys.append(row)


def _durability(changes: List[Change]) -> str:
    """The durability of the row's last change."""
    return "sync" if changes[-1][2] else "skip"
