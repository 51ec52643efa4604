# SPDX-License-Identifier: Apache-2.0
"""rorqual.happybase: the results of real HappyBase for the calls of happybase_calls.py; connections and pools."""
import json
import pathlib
import sys
import threading
from typing import Any

import pytest

import happybase_calls
from children import exit_of_child
import rorqual.happybase as happybase
from rorqual.happybase import ttypes
from rorqual.happybase.connection import _shared, url_of

# HBase's Thrift server has no response for some exceptions and fails with "Internal error"; rorqual.happybase raises
# named exceptions.
NAMED_HERE = {"create bad name", "put empty row", "row empty key", "rows empty key", "scan bad filter"}


def different(found: Any) -> Any:
    """The calls whose result differs from real HappyBase's."""
    real = json.loads((pathlib.Path(__file__).parent / "happybase_calls.json").read_text(encoding="utf-8"))
    assert list(found) == list(real)
    for name in NAMED_HERE:
        assert real[name] == ["raised", "TApplicationException", ""]
        assert found[name] == ["raised", "IllegalArgument", "java.lang.IllegalArgumentException"]
    return {name: [real[name], json.loads(json.dumps(found[name]))] for name in real
            if name not in NAMED_HERE and real[name] != json.loads(json.dumps(found[name]))}


def test_calls_give_what_happybase_gives_in_memory() -> None:
    assert different(happybase_calls.run(happybase, host="memory:")) == {}


def test_calls_give_what_happybase_gives_on_a_server(rorqual_server: Any) -> None:
    assert different(happybase_calls.run(happybase, host=rorqual_server.url)) == {}


def test_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RORQUAL_URL", raising=False)
    assert url_of("localhost", 9090) == "hbase://localhost:2181"
    assert url_of("db.example", 2182) == "hbase://db.example:2182"
    assert url_of("hbase+rpc://db.example:16020", 9090) == "hbase+rpc://db.example:16020"
    monkeypatch.setenv("RORQUAL_URL", "memory:")
    assert url_of("localhost", 9090) == "memory:" and url_of("file:/x", 9090) == "file:/x"


def test_connections_share_a_folder(tmp_path: pathlib.Path) -> None:
    url = f"file:{tmp_path}/db"
    one, two = happybase.Connection(url), happybase.Connection(url)
    one.create_table("t", {"f": {}})
    one.table("t").put(b"r", {b"f:a": b"1"})
    assert two.tables() == [b"t"]
    one.close()
    assert two.table("t").row(b"r") == {b"f:a": b"1"}
    with pytest.raises(ttypes.TException):
        one.tables()
    one.open()
    assert one.table("t").row(b"r") == {b"f:a": b"1"}
    one.close()
    two.close()
    with happybase_rorqual(url) as db:  # no connection has it open
        assert db.tables() == ["t"]


def _in_child(parents: Any) -> None:
    own = happybase.Connection("memory:")
    own.create_table("t", {"cf": {}})
    own.table("t").put("r", {"cf:a": "1"})
    assert own.table("t").row("r") == {b"cf:a": b"1"}
    parents.close()


def test_a_child_of_fork_has_databases_of_its_own() -> None:
    """A child cannot use its parent's connections; closing them does nothing, and new ones open other databases. The lock is
    held by another thread of the parent when the child begins."""
    parents = happybase.Connection("memory:")
    assert exit_of_child(_in_child, parents, held=_shared.lock) == 0
    parents.close()


def happybase_rorqual(url: str) -> Any:
    import rorqual
    return rorqual.connect(url)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(ttypes.TTransportException) as refused:
        happybase.Connection("127.0.0.1", 1, timeout=500)
    assert "127.0.0.1:1" in str(refused.value)


def test_the_exceptions_are_where_programs_look_for_them() -> None:
    connection = happybase.Connection("memory:")
    connection.create_table("there", {"f": {}})
    from Hbase_thrift import AlreadyExists, IOError as HBaseError  # type: ignore[import]
    with pytest.raises(AlreadyExists):
        connection.create_table("there", {"f": {}})
    with pytest.raises(HBaseError) as failed:
        connection.table("nowhere").row(b"r")
    assert failed.value.message.startswith("org.apache.hadoop.hbase.TableNotFoundException: ")
    connection.delete_table("there", disable=True)


def test_a_pool_lends_each_connection_to_one_thread() -> None:
    pool = happybase.ConnectionPool(2, host="memory:")
    with pool.connection() as connection:
        connection.create_table("pool", {"f": {}})
    lent, problems = set(), []

    def work(number: int) -> None:
        for i in range(50):
            with pool.connection() as mine:
                if id(mine) in lent:
                    problems.append(number)
                lent.add(id(mine))
                with pool.connection() as again:
                    assert again is mine
                mine.table("pool").counter_inc(b"r", b"f:n")
                lent.discard(id(mine))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with pool.connection() as connection:
        assert connection.table("pool").counter_get(b"r", b"f:n") == 300
        with pytest.raises(happybase.NoConnectionsAvailable):
            with pool.connection(), happybase_other_thread(pool):
                pass
        connection.delete_table("pool", disable=True)


class happybase_other_thread:
    """Two threads hold the pool's two connections, a third one gets none."""

    def __init__(self, pool: happybase.ConnectionPool) -> None:
        self.pool, self.error = pool, None

    def __enter__(self) -> None:
        def third() -> None:
            try:
                with self.pool.connection(timeout=0.05):
                    pass
            except happybase.NoConnectionsAvailable as error:
                self.error = error  # type: ignore[assignment]

        def second() -> None:
            with self.pool.connection():
                thread = threading.Thread(target=third)
                thread.start()
                thread.join()

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        if self.error:
            raise self.error

    def __exit__(self, *_: Any) -> None:
        pass


def test_a_connection_that_failed_is_replaced() -> None:
    pool = happybase.ConnectionPool(1, host="memory:")
    with pytest.raises(ttypes.TException):
        with pool.connection() as connection:
            connection.transport.close()
            raise ttypes.TException
    with pool.connection() as connection:
        connection.tables()


def test_counters_are_set_behind_fast_increments() -> None:
    connection = happybase.Connection("memory:")
    connection.create_table("counters", {"f": {}})
    table = connection.table("counters")
    for value in range(200):
        table.counter_inc(b"r", b"f:n")
        table.counter_inc(b"r", b"f:n")
        table.counter_set(b"r", b"f:n", value)
        assert table.counter_get(b"r", b"f:n") == value
    connection.delete_table("counters", disable=True)


def test_text_arguments_are_checked() -> None:
    for name in ("compat", "transport", "protocol"):
        with pytest.raises(ValueError):
            happybase.Connection(**{"autoconnect": False, name: "0.1"})  # type: ignore[arg-type]
    for name in ("table_prefix", "table_prefix_separator"):
        with pytest.raises(TypeError):
            happybase.Connection(**{"autoconnect": False, name: 1})  # type: ignore[arg-type]
    connection = happybase.Connection("memory:")
    with pytest.raises(TypeError):
        connection.table("t").put(b"r", {b"f:a": 1})  # type: ignore[dict-item]
    assert sys.modules["Hbase_thrift"] is not None
