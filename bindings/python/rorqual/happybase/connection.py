# SPDX-License-Identifier: Apache-2.0
"""HappyBase's Connection."""
from __future__ import annotations

import os
import re
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .. import errors
from ..database import Database, connect
from . import ttypes
from .table import Table
from .util import Text, ensure_bytes

COMPAT_MODES = ("0.90", "0.92", "0.94", "0.96", "0.98")
TRANSPORTS = ("buffered", "framed")
PROTOCOLS = ("binary", "compact")

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 9090
DEFAULT_TRANSPORT = "buffered"
DEFAULT_COMPAT = "0.98"
DEFAULT_PROTOCOL = "binary"
ZOOKEEPER_PORT = 2181

# The options of a family: name in HBase, and the default of HBase's Thrift interface, which is not HBase's own. The sizes of
# Bloom filters have no effect in HBase's Thrift server.
OPTIONS: Dict[str, Tuple[Optional[str], Any]] = {
    "max_versions": ("VERSIONS", 3), "compression": ("COMPRESSION", "NONE"), "in_memory": ("IN_MEMORY", False),
    "bloom_filter_type": ("BLOOMFILTER", "NONE"), "bloom_filter_vector_size": (None, 0), "bloom_filter_nb_hashes": (None, 0),
    "block_cache_enabled": ("BLOCKCACHE", False), "time_to_live": ("TTL", 2147483647),
}


LEGAL_NAME = re.compile(r"(?:\w[\w.-]*:)?\w[\w.-]*")
COMPRESSIONS = ("NONE", "GZ", "SNAPPY", "LZ4", "LZO", "ZSTD", "BZIP2", "LZMA", "BROTLI")
BLOOM_FILTERS = ("NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH")


class _Shared:
    """Databases in this process, which connections share because a folder can be opened only once. A folder is closed
    with its last connection; a database in memory stays until the program ends, like a server whose clients
    disconnect."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begins without databases; also in a child of fork, because a child cannot use its parent's databases."""
        self.lock = threading.Lock()
        self.open: Dict[str, Tuple[Database, int]] = {}

    def acquire(self, url: str, timeout: Optional[float]) -> Database:
        if not url.startswith(("memory:", "file:")):
            return connect(url, timeout=timeout)
        with self.lock:
            database, users = self.open.get(url) or (connect(url, timeout=timeout), 0)
            self.open[url] = database, users + 1
            return database

    def release(self, url: str, database: Database) -> None:
        with self.lock:
            held, users = self.open.get(url, (None, 0))
            if held is database:
                if users > 1 or url.startswith("memory:"):
                    self.open[url] = database, users - 1
                    return
                del self.open[url]
        try:
            database.close()
        except errors.ForkedError:  # the database is the parent's
            pass


_shared = _Shared()


def url_of(host: str, port: int) -> str:
    if "://" in host or host.startswith(("memory:", "file:")):
        return host
    return os.environ.get("RORQUAL_URL") or f"hbase://{host}:{ZOOKEEPER_PORT if port == DEFAULT_PORT else port}"


class Transport:
    """The object that HappyBase calls the transport: whether the connection is open."""

    def __init__(self, url: str, timeout: Optional[float]) -> None:
        self._url = url
        self._timeout = timeout
        self._database: Optional[Database] = None

    def is_open(self) -> bool:
        return self._database is not None

    def open(self) -> None:
        try:
            self._database = _shared.acquire(self._url, self._timeout)
        except errors.Error as error:
            raise ttypes.TTransportException(f"Could not connect to {self._url}: {error}") from error

    def close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            _shared.release(self._url, database)

    @property
    def database(self) -> Database:
        if self._database is None:
            raise ttypes.TTransportException("Transport not open")
        return self._database


def _one_of(name: str, value: str, values: Tuple[str, ...]) -> None:
    if value not in values:
        raise ValueError(f"{name!r} must be one of {', '.join(values)}")


class Connection:
    """A connection. `timeout` is in milliseconds. With `table_prefix`, names of tables begin with it and the separator."""

    def __init__(self, host: Optional[str] = DEFAULT_HOST, port: Optional[int] = DEFAULT_PORT, timeout: Optional[int] = None,
                 autoconnect: bool = True, table_prefix: Optional[Text] = None, table_prefix_separator: Text = b"_",
                 compat: str = DEFAULT_COMPAT, transport: str = DEFAULT_TRANSPORT, protocol: str = DEFAULT_PROTOCOL) -> None:
        _one_of("transport", transport, TRANSPORTS)
        if table_prefix is not None and not isinstance(table_prefix, (str, bytes)):
            raise TypeError("'table_prefix' must be a string")
        if not isinstance(table_prefix_separator, (str, bytes)):
            raise TypeError("'table_prefix_separator' must be a string")
        _one_of("compat", compat, COMPAT_MODES)
        _one_of("protocol", protocol, PROTOCOLS)
        self.host = host or DEFAULT_HOST
        self.port = port or DEFAULT_PORT
        self.timeout = timeout
        self.table_prefix = None if table_prefix is None else ensure_bytes(table_prefix)
        self.table_prefix_separator = ensure_bytes(table_prefix_separator)
        self.compat = compat
        self.transport: Transport
        self._refresh()
        if autoconnect:
            self.open()

    def _refresh(self) -> None:
        """Makes another transport, after an error of the previous one."""
        self.transport = Transport(url_of(self.host, self.port), None if self.timeout is None else self.timeout / 1000)

    @property
    def _database(self) -> Database:
        return self.transport.database

    def open(self) -> None:
        if not self.transport.is_open():
            self.transport.open()

    def close(self) -> None:
        if self.transport.is_open():
            self.transport.close()

    def __del__(self) -> None:
        if hasattr(self, "transport"):
            self.close()

    def _table_name(self, name: Text) -> bytes:
        name = ensure_bytes(name)
        return name if self.table_prefix is None else self.table_prefix + self.table_prefix_separator + name

    def _name(self, name: Text) -> str:
        return self._table_name(name).decode("utf-8")

    def table(self, name: Text, use_prefix: bool = True) -> Table:
        """A table; whether it exists is not checked."""
        return Table(self._table_name(name) if use_prefix else ensure_bytes(name), self)

    # --- administration ---

    def tables(self) -> List[bytes]:
        """The names of tables; with a table prefix only those that have it, without the prefix."""
        with ttypes.answers():
            names = [name.encode("utf-8") for name in self._database.tables()]
        if self.table_prefix is None:
            return names
        prefix = self._table_name(b"")
        return [name[len(prefix):] for name in names if name.startswith(prefix)]

    def create_table(self, name: Text, families: Mapping[Text, Optional[Mapping[str, Any]]]) -> None:
        """Creates a table. `families` maps names to options: max_versions, compression, in_memory, bloom_filter_type,
        bloom_filter_vector_size, bloom_filter_nb_hashes, block_cache_enabled, time_to_live."""
        full = self._name(name)
        if not LEGAL_NAME.fullmatch(full):
            raise ttypes.IllegalArgument(f"java.lang.IllegalArgumentException: illegal name of a table: {full!r}")
        if not isinstance(families, dict):
            raise TypeError("'families' arg must be a dictionary")
        if not families:
            raise ValueError(f"Cannot create table {full!r} (no column families specified)")
        definitions = {}
        for family, options in families.items():
            definitions[ensure_bytes(family).rstrip(b":").decode("utf-8")] = _attributes(options or {})
        with ttypes.answers():
            if self._database.table_exists(full):
                raise ttypes.AlreadyExists("table name already in use")
            self._database.create_table(full, definitions)

    def delete_table(self, name: Text, disable: bool = False) -> None:
        if disable and self.is_table_enabled(name):
            self.disable_table(name)
        with ttypes.answers():
            if not self._database.table_exists(self._name(name)):
                raise ttypes.IOError("java.io.IOException: table does not exist", True)
            self._database.drop_table(self._name(name))

    def enable_table(self, name: Text) -> None:
        with ttypes.answers():
            self._database.enable_table(self._name(name))

    def disable_table(self, name: Text) -> None:
        with ttypes.answers():
            self._database.disable_table(self._name(name))

    def is_table_enabled(self, name: Text) -> bool:
        with ttypes.answers():
            return self._database.describe(self._name(name)).enabled

    def compact_table(self, name: Text, major: bool = False) -> None:
        """Begins a compaction."""
        with ttypes.answers():
            self._database.compact_table(self._name(name), major=major)


def _attributes(options: Mapping[str, Any]) -> Dict[str, Any]:
    attributes = {attribute: default for attribute, default in OPTIONS.values() if attribute is not None}
    for option, value in options.items():
        if option not in OPTIONS:
            raise TypeError(f"unknown option of a family: {option!r}; there are {', '.join(OPTIONS)}")
        attribute = OPTIONS[option][0]
        if attribute is not None:
            attributes[attribute] = value.decode() if isinstance(value, bytes) else value
    attributes["COMPRESSION"] = str(attributes["COMPRESSION"]).upper()
    for attribute, known in (("COMPRESSION", COMPRESSIONS), ("BLOOMFILTER", BLOOM_FILTERS)):
        if attributes[attribute] not in known:
            raise ttypes.IllegalArgument(f"java.lang.IllegalArgumentException: {attribute} is {attributes[attribute]!r}, not one "
                                         f"of {', '.join(known)}")
    if attributes["TTL"] <= 0:
        attributes["TTL"] = 2147483647
    return attributes
