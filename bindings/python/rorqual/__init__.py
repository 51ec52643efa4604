# SPDX-License-Identifier: Apache-2.0
"""HBase's data model for Python, by librorqual: embedded in this process, or on clusters of Rorqual and HBase.

    import rorqual

    with rorqual.connect("memory:") as db:
        users = db.create_table("users", ["cf"])
        users.put("ann", {"cf:name": "Ann", "cf:age": 31})
        print(users.get("ann").get_int("cf:age"))
"""
from .database import Attributes, ClusterInfo, Database, Families, Region, Snapshot, TableInfo, connect
from .errors import *  # noqa: F401,F403
from .errors import __all__ as _errors
from ._native import ffi as _ffi, lib as _lib
from .index import Index, RepairStatus, Repairs
from .row import Cell, Row
from .rowkey import KeyFormat, KeyPart, KeyValue, split_keys, split_sample
from .scan import SaltedScanner, Scanner
from .table import Batch, Delete, Put, Table
from .values import (Bytes, Column, Value, decode_bool, decode_float, decode_int, decode_json, encode, float32, int16, int32,
                     int64)

__version__: str = _ffi.string(_lib.rq_version()).decode()
__all__ = ["Attributes", "Batch", "Bytes", "Cell", "ClusterInfo", "Column", "Database", "Delete", "Families", "Index", "KeyFormat",
           "KeyPart", "KeyValue", "Put", "Region", "RepairStatus", "Repairs", "Row", "SaltedScanner", "Scanner", "Snapshot", "Table",
           "TableInfo", "Value", "connect", "decode_bool", "decode_float", "decode_int", "decode_json", "encode", "float32", "int16", "int32", "int64",
           "split_keys", "split_sample", *_errors]
