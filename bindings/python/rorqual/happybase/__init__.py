# SPDX-License-Identifier: Apache-2.0
"""HappyBase's API on librorqual: a program for HappyBase runs with one import changed, without a Thrift server.

    import rorqual.happybase as happybase

    connection = happybase.Connection("memory:")

`Connection(host, port)` understands a URL of rorqual.connect() as its host. Another host is that of a cluster's ZooKeeper:
hbase://HOST:2181, or the port if it is not HappyBase's 9090. The environment variable RORQUAL_URL takes precedence over such a
host, for programs that cannot be changed. Classes, arguments, results and exceptions are HappyBase's; `compat`, `transport`
and `protocol` are checked and have no effect.
"""
import sys as _sys

from . import ttypes as _ttypes
from .batch import Batch
from .connection import DEFAULT_HOST, DEFAULT_PORT, Connection
from .pool import ConnectionPool, NoConnectionsAvailable
from .table import Table

# Programs import HappyBase's exceptions from this module, where its Thrift library has them.
_sys.modules.setdefault("Hbase_thrift", _ttypes)

__all__ = ["Batch", "Connection", "ConnectionPool", "DEFAULT_HOST", "DEFAULT_PORT", "NoConnectionsAvailable", "Table"]
