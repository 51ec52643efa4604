# SPDX-License-Identifier: Apache-2.0
"""A database: connecting, tables and namespaces."""
from __future__ import annotations

import os
import threading
import weakref
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

from . import errors
from ._call import check, copied, new_failure, text
from ._native import ffi, lib
from ._pack import Columns, one_or_many, split_column
from .index import Index
from .table import Table
from .values import Bytes, Column, to_bytes

__all__ = ["Attributes", "ClusterInfo", "Database", "Families", "Region", "TableInfo", "connect"]

Attributes = Mapping[str, Union[str, int, bool]]
"""HBase's attributes by name: {"VERSIONS": 3, "COMPRESSION": "ZSTD"}. Names may be written in lower case."""

Families = Union[Iterable[str], Mapping[str, Optional[Attributes]]]
"""Names of families, with attributes if any."""


class TableInfo(NamedTuple):
    """A table's definition and state."""

    name: str
    enabled: bool
    families: Dict[str, Dict[str, str]]
    attributes: Dict[str, str]


class Region(NamedTuple):
    """A region of a table: the rows from `start` to `stop`, which is excluded; empty: no bound."""

    name: bytes  # b"table,start,id.encoded."
    encoded: str
    start: bytes
    stop: bytes
    server: str  # "host:port"; in this process: ""


class Snapshot(NamedTuple):
    """A table's definition and cells at one moment."""

    name: str
    table: str
    created: float             # seconds since 1970
    ttl: Optional[int] = None  # seconds after which it is removed


class ClusterInfo(NamedTuple):
    """A cluster, or the engine of this process as its only server."""

    id: str
    version: str            # of the master's software
    master: str             # "host,port,start"
    servers: Dict[str, int]  # number of regions of each server
    dead_servers: int


def connect(url: str, *, timeout: Optional[float] = None, user: Optional[str] = None, znode_parent: Optional[str] = None,
            settings: Optional[Attributes] = None, must_exist: bool = False, no_threads: bool = False) -> "Database":
    """Opens a database.

        memory:                     in memory, discarded when it is closed
        file:/path                  a folder, in this process
        hbase://host:2181           a cluster of Rorqual or HBase, found by its ZooKeeper
        hbase+rpc://host:16020      a cluster, found by one of its servers
        hbase://a:2181,b:2181/zn    several addresses, tried in turn; the path is the cluster's znode

    `timeout` is the number of seconds that a call may take, including retries (60). `user` and `znode_parent` are for
    clusters. `settings` are the engine's, by HBase's names, and `must_exist` fails instead of making a folder: both for
    memory: and file:. So is `no_threads`: the library starts no thread, and calls that change rows do the flushes and
    compactions."""
    return Database(url, timeout=timeout, user=user, znode_parent=znode_parent, settings=settings, must_exist=must_exist,
                    no_threads=no_threads)


class _Memory:
    """Memory that C borrows during a call."""

    def __init__(self) -> None:
        self._kept: List[Any] = []

    def keep(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing

    def chars(self, given: Optional[Bytes]) -> Any:
        if given is None:
            return ffi.NULL
        data = to_bytes(given)
        if b"\0" in data:
            raise ValueError(f"a NUL byte in {data!r}")
        return self.keep(ffi.new("char[]", data))

    def bytes_of(self, target: Any, data: bytes) -> None:
        target.data = self.keep(ffi.from_buffer(data))
        target.len = len(data)

    def column(self, target: Any, given: Column) -> None:
        family, qualifier = split_column(given)
        self.bytes_of(target.family, family)
        if qualifier is not None:
            self.bytes_of(target.qualifier, qualifier)

    def families(self, given: Families) -> Tuple[Any, int]:
        pairs = list(given.items()) if isinstance(given, Mapping) else [(family, None) for family in _names(given)]
        array = self.keep(ffi.new("rq_family[]", len(pairs)))
        for at, (family, its) in zip(array, pairs):
            at.name = self.chars(family)
            at.attributes, at.attribute_count = self.properties(its, upper=True)
        return array, len(pairs)

    def properties(self, given: Optional[Mapping[str, Union[str, int, bool, None]]], upper: bool) -> Tuple[Any, int]:
        items = list((given or {}).items())
        array = self.keep(ffi.new("rq_property[]", len(items)))
        for at, (name, value) in zip(array, items):
            at.name = self.chars(name.upper() if upper else name)
            at.value = self.chars(None if value is None else str(value).lower() if isinstance(value, bool) else str(value))
        return array, len(items)


def _disconnect(handle: Any, _kept: List[Any]) -> None:
    lib.rq_disconnect(handle, ffi.NULL)


class Database:
    """Made by connect(). Any thread may use it; it is closed by close(), as a context manager, or when the program ends. A
    child made by fork cannot use it: its calls raise ForkedError."""

    def __init__(self, url: str, *, timeout: Optional[float] = None, user: Optional[str] = None,
                 znode_parent: Optional[str] = None, settings: Optional[Attributes] = None, must_exist: bool = False,
                 no_threads: bool = False) -> None:
        self.url = url
        memory, why, database = _Memory(), new_failure(), ffi.new("rq_db **")
        options = ffi.new("rq_connect_options *")
        options.size = ffi.sizeof("rq_connect_options")
        options.timeout_ms = _milliseconds(timeout)
        options.user = memory.chars(user)
        options.znode_parent = memory.chars(znode_parent)
        options.settings, options.setting_count = memory.properties(settings, upper=False)
        options.must_exist = must_exist
        options.no_threads = no_threads
        check(lib.rq_connect(memory.chars(url), options, database, why), why)
        self._handle: Any = database[0]
        self._pid = os.getpid()
        self._idle = threading.Condition()  # signals that no call uses the handle, which close() frees
        self._users = 0
        self._kept: List[Any] = []  # objects to which completions of asynchronous calls write
        self._closing = False
        self._finalizer = weakref.finalize(self, _disconnect, self._handle, self._kept)

    def __repr__(self) -> str:
        return f"<rorqual.Database {self.url!r}{' closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        return self._closing

    def _check_process(self) -> None:
        """Raises ForkedError in a child of fork, which has none of its parent's threads: a lock that one of them held
        at the fork stays locked, and a call that one of them made never ends."""
        if os.getpid() != self._pid:
            raise errors.ForkedError("the database was opened by the parent process, before a fork", code=lib.RQ_E_FORKED,
                                     name="RQ_E_FORKED", hbase_class="org.apache.hadoop.hbase.DoNotRetryIOException")

    @contextmanager
    def _open(self) -> Iterator[Any]:
        self._check_process()
        with self._idle:
            if self._closing:
                raise errors.ClosedError("the database is closed", code=lib.RQ_E_CLOSED, name="RQ_E_CLOSED",
                                         hbase_class="org.apache.hadoop.hbase.DoNotRetryIOException")
            self._users += 1
        try:
            yield self._handle
        finally:
            with self._idle:
                self._users -= 1
                self._idle.notify_all()

    def close(self) -> None:
        """Waits for running calls and closes; memstores of a folder are flushed first. Later calls raise ClosedError."""
        self._check_process()
        with self._idle:
            if self._closing:
                return
            self._closing = True
            while self._users > 0:
                self._idle.wait()
        if self._finalizer.detach() is not None:
            why = new_failure()
            check(lib.rq_disconnect(self._handle, why), why)

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # --- tables ---

    def table(self, name: str) -> Table:
        """A table for reading and writing, which need not exist until it is used."""
        memory, why, table = _Memory(), new_failure(), ffi.new("rq_table **")
        with self._open() as handle:
            check(lib.rq_table_open(handle, memory.chars(name), table, why), why)
        return Table(self, name, table[0])

    def index(self, table: str, column: Column, index_table: str, *, unique: bool = False, covered: Columns = (),
              create: bool = True, repair_every: Optional[float] = None) -> Index:
        """The index of a column of a table, which is stored in `index_table`; `create` creates this table, with family "i", if
        it is missing. `covered` are at most 15 columns that are copied into the entries. With `repair_every` a thread of the index
        repairs it, and pauses for this number of seconds after each repair; Index.repair_status() has its results."""
        memory, why, index = _Memory(), new_failure(), ffi.new("rq_index **")
        spec, names = ffi.new("rq_index_spec *"), one_or_many(covered)
        spec.size = ffi.sizeof("rq_index_spec")
        spec.table, spec.index_table = memory.chars(table), memory.chars(index_table)
        memory.column(spec.column, column)
        spec.unique, spec.creates = unique, create
        spec.repair_every_ms = _milliseconds(repair_every)
        columns = memory.keep(ffi.new("rq_column[]", len(names)))
        spec.covered, spec.covered_count = columns, len(names)
        for at, name in zip(columns, names):
            memory.column(at, name)
        with self._open() as handle:
            check(lib.rq_index_open(handle, spec, index, why), why)
        return Index(self, index[0])

    def create_table(self, name: str, families: Families, *, attributes: Optional[Attributes] = None,
                     splits: Iterable[Bytes] = ()) -> Table:
        """Creates a table, "table" or "namespace:table", and returns it when it can be used. `splits` are the first rows of
        all regions except the first."""
        memory, why = _Memory(), new_failure()
        spec = ffi.new("rq_table_spec *")
        spec.size = ffi.sizeof("rq_table_spec")
        spec.name = memory.chars(name)
        spec.families, spec.family_count = memory.families(families)
        spec.attributes, spec.attribute_count = memory.properties(attributes, upper=True)
        keys = [to_bytes(key) for key in splits]
        spec.split_keys, spec.split_key_count = memory.keep(ffi.new("rq_bytes[]", len(keys))), len(keys)
        for i, key in enumerate(keys):
            memory.bytes_of(spec.split_keys[i], key)
        with self._open() as handle:
            check(lib.rq_table_create(handle, spec, why), why)
        return self.table(name)

    def _named(self, call: Any, name: str, *arguments: Any) -> None:
        memory, why = _Memory(), new_failure()
        with self._open() as handle:
            check(call(handle, memory.chars(name), *arguments, why), why)

    def drop_table(self, name: str, *, disable: bool = False) -> None:
        """Removes a disabled table; with `disable` an enabled table is disabled first."""
        if disable and self.describe(name).enabled:
            self.disable_table(name)
        self._named(lib.rq_table_drop, name)

    def enable_table(self, name: str) -> None:
        self._named(lib.rq_table_enable, name)

    def disable_table(self, name: str) -> None:
        self._named(lib.rq_table_disable, name)

    def truncate_table(self, name: str, *, preserve_splits: bool = False) -> None:
        """Removes all rows of a disabled table and enables it."""
        self._named(lib.rq_table_truncate, name, preserve_splits)

    def flush_table(self, name: str) -> None:
        """Flushes the table's memstores to files."""
        self._named(lib.rq_table_flush, name)

    def compact_table(self, name: str, family: Optional[str] = None, *, major: bool = False) -> None:
        """Begins a compaction of all families, or of one; `major`: of all files."""
        memory = _Memory()
        self._named(lib.rq_table_compact, name, memory.chars(family), major)

    def alter_table(self, name: str, families: Families = (), *, drop_families: Iterable[str] = (),
                    attributes: Optional[Mapping[str, Union[str, int, bool, None]]] = None) -> None:
        """Adds families, or changes attributes of existing families; removes families with their cells; sets
        attributes of the table, or removes them (None). Returns when every region has the new definition."""
        memory, why = _Memory(), new_failure()
        change = ffi.new("rq_alteration *")
        change.size = ffi.sizeof("rq_alteration")
        change.name = memory.chars(name)
        change.families, change.family_count = memory.families(families)
        dropped = [memory.chars(family) for family in _names(drop_families)]
        change.dropped_families = memory.keep(ffi.new("char *[]", dropped))
        change.dropped_family_count = len(dropped)
        change.attributes, change.attribute_count = memory.properties(attributes, upper=True)
        with self._open() as handle:
            check(lib.rq_table_alter(handle, change, why), why)

    def regions(self, name: str) -> List[Region]:
        """A table's open regions, ascending."""
        found = ffi.new("rq_region_list **")
        self._named(lib.rq_table_regions, name, found)
        try:
            return [Region(copied(item.name), text(item.encoded), copied(item.start), copied(item.stop), text(item.server))
                    for item in found[0].items[0:found[0].count]]
        finally:
            lib.rq_region_list_free(found[0])

    def split_table(self, name: str, row: Bytes) -> None:
        """Splits the region that has the row, at the row."""
        memory = _Memory()
        key = ffi.new("rq_bytes *")
        memory.bytes_of(key, to_bytes(row))
        self._named(lib.rq_table_split, name, key[0])

    def merge_regions(self, name: str, regions: Iterable[str]) -> None:
        """Merges neighbours, given by their encoded names."""
        memory = _Memory()
        names = [memory.chars(region) for region in _names(regions)]
        self._named(lib.rq_table_merge, name, ffi.new("char *[]", names), len(names))

    def cluster(self) -> ClusterInfo:
        why, found = new_failure(), ffi.new("rq_cluster_info **")
        with self._open() as handle:
            check(lib.rq_cluster_describe(handle, found, why), why)
        info = found[0]
        try:
            servers = {text(server.name): int(server.region_count) for server in info.servers[0:info.server_count]}
            return ClusterInfo(text(info.id), text(info.version), text(info.master), servers, int(info.dead_server_count))
        finally:
            lib.rq_cluster_info_free(info)

    def table_exists(self, name: str) -> bool:
        found = ffi.new("bool *")
        self._named(lib.rq_table_exists, name, found)
        return bool(found[0])

    def tables(self, namespace: Optional[str] = None) -> List[str]:
        """The names of all user tables, or of those in a namespace, ascending."""
        memory, why, names = _Memory(), new_failure(), ffi.new("rq_names **")
        with self._open() as handle:
            check(lib.rq_table_list(handle, memory.chars(namespace), names, why), why)
        return _taken(names[0])

    def describe(self, name: str) -> TableInfo:
        """A table's families with all their attributes, its own attributes, and whether it is enabled."""
        found = ffi.new("rq_table_info **")
        self._named(lib.rq_table_describe, name, found)
        info = found[0]
        try:
            families = {text(info.families[i].name): _attributes(info.families[i]) for i in range(info.family_count)}
            return TableInfo(text(info.name), bool(info.is_enabled), families, _attributes(info))
        finally:
            lib.rq_table_info_free(info)

    # --- snapshots ---

    def snapshots(self) -> List[Snapshot]:
        """All snapshots, ascending by name."""
        why, found = new_failure(), ffi.new("rq_snapshot_list **")
        with self._open() as handle:
            check(lib.rq_snapshots(handle, found, why), why)
        try:
            return [Snapshot(text(item.name), text(item.table), item.created_ms / 1000, int(item.ttl_s) or None)
                    for item in found[0].items[0:found[0].count]]
        finally:
            lib.rq_snapshot_list_free(found[0])

    def create_snapshot(self, name: str, table: str, *, flush: bool = True) -> None:
        """Takes a snapshot of a table; with flush=False without unflushed cells."""
        self._named(lib.rq_snapshot_create, name, _Memory().chars(table), not flush)

    def drop_snapshot(self, name: str) -> None:
        self._named(lib.rq_snapshot_drop, name)

    def clone_snapshot(self, name: str, table: str) -> None:
        """Makes a new table from a snapshot, without copying cells."""
        self._named(lib.rq_snapshot_clone, name, _Memory().chars(table))

    def restore_snapshot(self, name: str) -> None:
        """Restores the snapshot's table, which must be disabled or missing, to its state at that time. A table that existed
        stays disabled."""
        self._named(lib.rq_snapshot_restore, name)

    # --- namespaces ---

    def namespaces(self) -> List[str]:
        """The names of all namespaces, ascending, including "default" and "hbase"."""
        why, names = new_failure(), ffi.new("rq_names **")
        with self._open() as handle:
            check(lib.rq_namespace_list(handle, names, why), why)
        return _taken(names[0])

    def create_namespace(self, name: str, properties: Optional[Attributes] = None) -> None:
        memory = _Memory()
        self._named(lib.rq_namespace_create, name, *memory.properties(properties, upper=False))

    def describe_namespace(self, name: str) -> Dict[str, str]:
        """A namespace's properties."""
        found = ffi.new("rq_namespace_info **")
        self._named(lib.rq_namespace_describe, name, found)
        info = found[0]
        try:
            return {text(pair.name): text(pair.value) for pair in info.properties[0:info.property_count]}
        finally:
            lib.rq_namespace_info_free(info)

    def alter_namespace(self, name: str, properties: Mapping[str, Union[str, int, bool, None]]) -> None:
        """Sets properties, or removes those given as None. Other properties stay."""
        memory = _Memory()
        self._named(lib.rq_namespace_alter, name, *memory.properties(properties, upper=False))

    def drop_namespace(self, name: str) -> None:
        """Removes an empty namespace."""
        self._named(lib.rq_namespace_drop, name)


def _milliseconds(seconds: Optional[float]) -> int:
    """0 for None."""
    if seconds is None:
        return 0
    if not 0.001 <= seconds < 2 ** 32 // 1000:  # also false for NaN
        raise ValueError(f"{seconds} s is outside 0.001 to {2 ** 32 // 1000}")
    return int(seconds * 1000)


def _names(families: Iterable[str]) -> List[str]:
    if isinstance(families, (str, bytes)):
        raise TypeError("names are a list, not one text")
    return list(families)


def _taken(names: Any) -> List[str]:
    found = [text(names.items[i]) for i in range(names.count)]
    lib.rq_names_free(names)
    return found


def _attributes(of: Any) -> Dict[str, str]:
    return {text(of.attributes[i].name): text(of.attributes[i].value) for i in range(of.attribute_count)}
