# SPDX-License-Identifier: Apache-2.0
"""Results of reads: cells and rows."""
from __future__ import annotations

from typing import Any, Dict, Iterator, KeysView, List, Mapping, NamedTuple, Optional, Tuple, TypeVar, Union, overload

from .values import Column, decode_bool, decode_float, decode_int, decode_json, to_bytes

__all__ = ["Cell", "Row", "PUT", "DELETE", "DELETE_COLUMN", "DELETE_FAMILY", "DELETE_FAMILY_VERSION"]

T = TypeVar("T")

# The types of cells, with HBase's numbers; types other than PUT only come from raw scans.
PUT = 4
DELETE = 8
DELETE_FAMILY_VERSION = 10
DELETE_COLUMN = 12
DELETE_FAMILY = 14


class Cell(NamedTuple):
    """One version of one column."""

    row: bytes
    family: bytes
    qualifier: bytes
    value: bytes
    timestamp: int  # milliseconds since 1970
    type: int

    @property
    def column(self) -> bytes:
        return self.family + b":" + self.qualifier


def column_name(column: Column) -> bytes:
    """b"family:qualifier"; a name without colon is the family's column with the empty qualifier."""
    if isinstance(column, tuple):
        return to_bytes(column[0]) + b":" + to_bytes(column[1])
    name = to_bytes(column)
    return name if b":" in name else name + b":"


class Row:
    """A row: a mapping of b"family:qualifier" to the newest value. Columns are looked up by bytes, text or a pair. A row
    without cells is false: the table has no cell that matches the request."""

    __slots__ = ("key", "cells", "is_partial", "cursor", "done", "_exists", "_newest")

    def __init__(self, key: bytes, cells: Tuple[Cell, ...], exists: bool, is_partial: bool = False,
                 cursor: Optional[bytes] = None) -> None:
        self.key = key
        self.cells = cells            # in HBase's order: by family, qualifier, newest first
        self.is_partial = is_partial  # of a scan with `batch`: the row continues in the next result
        # of a scan with `cursors`: the scan's position if this is not a row; otherwise None
        self.cursor = cursor
        self.done = True  # of a batch's change with a check: whether the check held
        self._exists = exists
        self._newest: Optional[Dict[bytes, Cell]] = None

    @property
    def exists(self) -> bool:
        """True although there are no cells, for reads that only check existence."""
        return self._exists

    def _columns(self) -> Dict[bytes, Cell]:
        newest = self._newest
        if newest is None:
            newest = {}
            for cell in reversed(self.cells):
                newest[cell[1] + b":" + cell[2]] = cell
            newest = dict(reversed(list(newest.items()))) if len(newest) > 1 else newest
            self._newest = newest
        return newest

    def __bool__(self) -> bool:
        return self._exists

    def __len__(self) -> int:
        return len(self._columns())

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._columns())

    def __contains__(self, column: object) -> bool:
        if isinstance(column, tuple):
            return len(column) == 2 and column_name((column[0], column[1])) in self._columns()
        return isinstance(column, (str, bytes)) and column_name(column) in self._columns()

    def keys(self) -> KeysView[bytes]:
        return self._columns().keys()

    def values(self) -> List[bytes]:
        return [cell.value for cell in self._columns().values()]

    def items(self) -> List[Tuple[bytes, bytes]]:
        return [(name, cell.value) for name, cell in self._columns().items()]

    def __getitem__(self, column: Column) -> bytes:
        try:
            return self._columns()[column_name(column)].value
        except KeyError:
            raise KeyError(column) from None

    @overload
    def get(self, column: Column) -> Optional[bytes]: ...
    @overload
    def get(self, column: Column, default: T) -> Union[bytes, T]: ...

    def get(self, column: Column, default: Any = None) -> Any:
        cell = self.cell(column)
        return default if cell is None else cell.value

    def __repr__(self) -> str:
        return f"<rorqual.Row {self.key!r} {dict(self)!r}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return self.key == other.key and self.cells == other.cells
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash((self.key, self.cells))

    def cell(self, column: Column) -> Optional[Cell]:
        """The newest cell of a column."""
        return self._columns().get(column_name(column))

    def versions(self, column: Column) -> List[Cell]:
        """All cells of a column that were read, newest first."""
        name = column_name(column)
        return [cell for cell in self.cells if cell.column == name]

    def get_str(self, column: Column, default: Optional[str] = None) -> Optional[str]:
        value = self.get(column)
        return default if value is None else value.decode()

    def get_int(self, column: Column, default: Optional[int] = None) -> Optional[int]:
        value = self.get(column)
        return default if value is None else decode_int(value)

    def get_float(self, column: Column, default: Optional[float] = None) -> Optional[float]:
        value = self.get(column)
        return default if value is None else decode_float(value)

    def get_bool(self, column: Column, default: Optional[bool] = None) -> Optional[bool]:
        value = self.get(column)
        return default if value is None else decode_bool(value)

    def get_json(self, column: Column, default: Any = None) -> Any:
        value = self.get(column)
        return default if value is None else decode_json(value)


Mapping.register(Row)  # not a base class, because its keys would have to be bytes only
