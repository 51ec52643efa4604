# SPDX-License-Identifier: Apache-2.0
"""Bytes and columns in the forms that HappyBase accepts."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from .._pack import split_column
from ..row import Row
from ..values import Column

Text = Union[str, bytes]


def ensure_bytes(text: Text) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8")
    raise TypeError(f"input must be a text or byte string, got {type(text).__name__}")


def bytes_increment(prefix: bytes) -> Optional[bytes]:
    """The smallest row after all rows with the prefix; None: there is none."""
    end = prefix.rstrip(b"\xff")
    return end[:-1] + bytes([end[-1] + 1]) if end else None


def columns_of(columns: Optional[Sequence[Text]]) -> Optional[List[Column]]:
    """None, which means all columns, if `columns` is empty."""
    return [ensure_bytes(column) for column in columns] if columns else None


def column_of(column: Text) -> Column:
    """A column to write or count; without a colon its qualifier is empty."""
    family, qualifier = split_column(ensure_bytes(column))
    return family, qualifier or b""


def as_dict(row: Row, include_timestamp: bool) -> Dict[bytes, Any]:
    """b"family:qualifier" to the newest value, or to (value, timestamp)."""
    found: Dict[bytes, Any] = {}
    for cell in row.cells:
        found.setdefault(cell[1] + b":" + cell[2], (cell[3], cell[4]) if include_timestamp else cell[3])
    return found
