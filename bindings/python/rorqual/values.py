# SPDX-License-Identifier: Apache-2.0
"""Values as bytes, as HBase's class Bytes has them: integers big-endian with sign, floats as IEEE 754, text as UTF-8.

    bytes, bytearray, memoryview   as they are
    str                            UTF-8
    bool                           one byte: -1 (true) or 0
    int                            8 bytes; int32() and int16() make 4 and 2
    float                          8 bytes, a Java double; float32() makes 4
    dict, list                     JSON in UTF-8
"""
from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Tuple, Union

__all__ = ["Bytes", "Column", "Value", "decode_bool", "decode_float", "decode_int", "decode_json", "encode", "float32", "int16",
           "int32", "int64", "to_bytes"]

Bytes = Union[str, bytes, bytearray, memoryview]
"""A row key, name or qualifier: text is taken as UTF-8."""

Column = Union[str, bytes, Tuple[Bytes, Bytes]]
"""A column: "family:qualifier", or a pair. Where whole families may be given: "family"."""

Value = Union[str, bytes, bytearray, memoryview, int, float, bool, Dict[str, Any], List[Any]]

_INT = {8: struct.Struct(">q"), 4: struct.Struct(">i"), 2: struct.Struct(">h"), 1: struct.Struct(">b")}
_FLOAT = {8: struct.Struct(">d"), 4: struct.Struct(">f")}


def to_bytes(text: Bytes) -> bytes:
    """Row keys and names."""
    if type(text) is bytes:
        return text
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"expected str or bytes, not {type(text).__name__}")


def _packed(format_: struct.Struct, value: Any, what: str) -> bytes:
    try:
        return format_.pack(value)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"{value!r} does not fit {what}") from error


def int64(value: int) -> bytes:
    """Bytes.toBytes(long)."""
    return _packed(_INT[8], value, "64 bits with sign")


def int32(value: int) -> bytes:
    """Bytes.toBytes(int)."""
    return _packed(_INT[4], value, "32 bits with sign")


def int16(value: int) -> bytes:
    """Bytes.toBytes(short)."""
    return _packed(_INT[2], value, "16 bits with sign")


def float32(value: float) -> bytes:
    """Bytes.toBytes(float)."""
    return _packed(_FLOAT[4], value, "a float of 32 bits")


def encode(value: Value) -> bytes:
    """A value's bytes, by its type."""
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):  # before int, because bool is a subclass of int
        return b"\xff" if value else b"\0"
    if isinstance(value, int):
        return int64(value)
    if isinstance(value, float):
        return _FLOAT[8].pack(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"no encoding for {type(value).__name__}: give bytes, str, bool, int, float, dict or list")


def decode_int(value: bytes) -> int:
    """Integers of 8, 4, 2 and 1 bytes."""
    format_ = _INT.get(len(value))
    if format_ is None:
        raise ValueError(f"an integer has 1, 2, 4 or 8 bytes, not {len(value)}: {value[:40]!r}")
    number: int = format_.unpack(value)[0]
    return number


def decode_float(value: bytes) -> float:
    format_ = _FLOAT.get(len(value))
    if format_ is None:
        raise ValueError(f"a float has 4 or 8 bytes, not {len(value)}: {value[:40]!r}")
    number: float = format_.unpack(value)[0]
    return number


def decode_bool(value: bytes) -> bool:
    if len(value) != 1:
        raise ValueError(f"a boolean has 1 byte, not {len(value)}: {value[:40]!r}")
    return value != b"\0"


def decode_json(value: bytes) -> Any:
    return json.loads(value)
