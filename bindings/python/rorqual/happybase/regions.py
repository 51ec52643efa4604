# SPDX-License-Identifier: Apache-2.0
"""A table's regions, from hbase:meta: its rows have HBase's message RegionInfo in info:regioninfo, after the bytes PBUF."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple, Union

from ..database import Database

Field = Union[int, bytes]


def _varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> Dict[int, Field]:
    """A message's fields by number: integers and bytes."""
    found: Dict[int, Field] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            found[tag >> 3] = data[at:at + value]
            at += value
        elif tag & 7 == 0:
            found[tag >> 3] = value
        else:
            raise ValueError(f"field {tag >> 3} of a region's record has type {tag & 7}")
    return found


def regions_of(database: Database, table: bytes) -> List[Dict[str, Any]]:
    if database.url.startswith("hbase"):
        raise NotImplementedError("the regions of a cluster's table")
    found = []
    with database.table("hbase:meta").scan(table + b",,", table + b" ,,", columns=["info"]) as rows:
        for row in rows:
            record = row.get("info:regioninfo", b"")
            info = fields(record[4:]) if record[:4] == b"PBUF" else {}
            if not info or info.get(5) or info.get(6):  # offline, split: replaced by its daughters
                continue
            host, _, port = row.get("info:server", b"").rpartition(b":")
            found.append({"start_key": info.get(3, b""), "end_key": info.get(4, b""), "id": info.get(1, 0), "name": row.key,
                          "version": 1, "server_name": host, "port": int(port or b"0")})
    return found
