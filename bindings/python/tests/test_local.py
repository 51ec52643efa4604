# SPDX-License-Identifier: Apache-2.0
"""Databases in this process: folders, locks, closing, forks, threads; and the encoding of values."""
import gc
import multiprocessing
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
from typing import Any, Callable, Dict, List

import pytest

import rorqual
from children import exit_of_child
from rorqual import values


def test_a_folder_keeps_what_was_written(tmp_path: pathlib.Path) -> None:
    url = f"file:{tmp_path}/db"
    with pytest.raises(rorqual.NotFoundError):
        rorqual.connect(url, must_exist=True)
    with rorqual.connect(url) as db:
        db.create_table("t", ["cf"]).put("r", {"cf:a": 1})
    with rorqual.connect(url, must_exist=True) as db:
        assert db.table("t").get("r").get_int("cf:a") == 1


# Runs in a separate process, because databases of other tests start and end threads.
WITHOUT_THREADS = """
import pathlib, sys, rorqual
small = {"hbase.hregion.memstore.flush.size": 131072}
with rorqual.connect(sys.argv[1], settings=small, no_threads=True) as db:
    table = db.create_table("t", ["cf"])
    for i in range(500):
        table.put(f"row{i:03}", {"cf:a": b"x" * 1000})
    assert len(list(table.scan())) == 500
    threads = [(task / "comm").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
    assert len(threads) == 1, threads
"""


def test_a_database_without_threads(tmp_path: pathlib.Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_THREADS, f"file:{tmp_path}/db"], check=True)


def test_a_folder_is_open_once(tmp_path: pathlib.Path) -> None:
    url = f"file:{tmp_path}/db"
    with rorqual.connect(url):
        with pytest.raises(rorqual.LockedError) as locked:
            rorqual.connect(url)
        assert "process" in str(locked.value)
    rorqual.connect(url).close()


def test_a_program_that_ends_without_close_loses_nothing(tmp_path: pathlib.Path) -> None:
    url = f"file:{tmp_path}/db"
    subprocess.run([sys.executable, "-c", f"import rorqual; db = rorqual.connect({url!r}); "
                    "db.create_table('t', ['cf']).put('r', {'cf:a': 1}); s = db.table('t').scan(); next(s)"], check=True)
    with rorqual.connect(url) as db:
        assert db.table("t").get("r")


def test_a_database_that_nobody_holds_is_closed(tmp_path: pathlib.Path) -> None:
    url = f"file:{tmp_path}/db"
    table = rorqual.connect(url).create_table("t", ["cf"])
    scanner = table.scan()
    assert not table.exists("r")
    del table, scanner
    gc.collect()
    rorqual.connect(url).close()


class Miscounting(Dict[str, int]):
    """Reports more items than it yields, like mappings with several values per name."""

    def __len__(self) -> int:
        return 3


def test_a_mapping_has_the_items_that_come_out_of_it(memory: rorqual.Database) -> None:
    table = memory.create_table("t", ["cf"])
    table.put("r", Miscounting({"cf:a": 1}))
    table.increment_many("r", Miscounting({"cf:a": 2}))
    with table.batch() as batch:
        batch.put("r", Miscounting({"cf:b": 4}))
        batch.put("s", Miscounting({"cf:c": 5}))
    row = table.get("r")
    assert len(row) == 2 and row.get_int("cf:a") == 3 and row.get_int("cf:b") == 4
    assert table.get("s").get_int("cf:c") == 5


def test_after_close_every_call_says_so(memory: rorqual.Database) -> None:
    table = memory.create_table("t", ["cf"])
    table.put("r", {"cf:a": 1})
    scanner = table.scan()
    memory.close()
    memory.close()
    calls: List[Callable[[], object]] = [
        lambda: table.get("r"), lambda: table.put("r", {"cf:a": 1}), lambda: next(scanner), memory.tables,
                 lambda: table.get_many(["r"]), lambda: memory.table("t"), lambda: list(table.scan())]
    for call in calls:
        with pytest.raises(rorqual.ClosedError):
            call()
    scanner.close()


def test_close_waits_for_the_calls_of_other_threads(memory: rorqual.Database) -> None:
    begun, problems = threading.Barrier(5), []

    def work(number: int) -> None:
        begun.wait()
        try:
            for i in range(1000):
                memory.create_table(f"t{number}_{i}", ["cf"]).put("r", {"cf:a": 1})
        except rorqual.ClosedError:
            return
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    memory.close()
    for thread in threads:
        thread.join()
    assert problems == []


def _use(table: rorqual.Table, db: rorqual.Database, scanner: rorqual.Scanner, answers: Any) -> None:
    calls: List[Callable[[], object]] = [lambda: table.get("r"), lambda: table.put("r", {"cf:a": 2}), lambda: next(scanner),
                                         db.tables, db.close]
    for call in calls:
        try:
            call()
            answers.put("done")
        except rorqual.Error as error:
            answers.put(type(error).__name__)
    with rorqual.connect("memory:") as own:
        answers.put(own.create_table("t", ["cf"]).increment("r", "cf:n"))


def test_a_child_of_fork_cannot_use_its_parents_database(memory: rorqual.Database) -> None:
    table = memory.create_table("t", ["cf"])
    table.put("r", {"cf:a": 1})
    scanner = table.scan()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_use, args=(table, memory, scanner, answers))
    child.start()
    found = [answers.get() for _ in range(6)]
    child.join()
    assert found == ["ForkedError"] * 5 + [1] and child.exitcode == 0
    assert table.get("r").get_int("cf:a") == 1 and next(scanner).key == b"r"


def _refused(memory: rorqual.Database) -> None:
    for call in (memory.tables, memory.close):
        with pytest.raises(rorqual.ForkedError):
            call()


@pytest.mark.parametrize("holds", ["lock", "call"])
def test_a_child_of_fork_does_not_wait_for_its_parents_threads(memory: rorqual.Database, holds: str) -> None:
    """The fork happens while another thread of the parent holds the database's lock, or is in a call."""
    assert exit_of_child(_refused, memory, held=memory._idle if holds == "lock" else memory._open()) == 0


def test_threads_run_while_a_call_waits() -> None:
    """A call that waits for a server releases the interpreter's lock: this thread acts as the server meanwhile. If a busy machine
    delays this thread for longer than the call's timeout, the test is repeated with a longer timeout."""
    order: List[str] = []
    timeout = 1.5
    while order != ["accepted", "gave up"] and timeout < 60:
        order.clear()
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()

            def connect() -> None:
                with pytest.raises(rorqual.Error):
                    rorqual.connect(f"hbase+rpc://127.0.0.1:{server.getsockname()[1]}", timeout=timeout)
                order.append("gave up")

            thread = threading.Thread(target=connect)
            thread.start()
            connection, _ = server.accept()
            order.append("accepted")
            thread.join()
            connection.close()
        timeout *= 2
    assert order == ["accepted", "gave up"]


def test_wrong_arguments_are_named() -> None:
    for url in ("nowhere:", "", "file:", "hbase://"):
        with pytest.raises(rorqual.Error):
            rorqual.connect(url)
    with pytest.raises(rorqual.InvalidArgumentError) as wrong:
        rorqual.connect("memory:", settings={"rorqual.no.such": 1})
    assert "rorqual.no.such" in str(wrong.value)
    with pytest.raises(ValueError):
        rorqual.connect("memory:", timeout=0)
    with rorqual.connect("memory:") as db:
        with pytest.raises(ValueError):
            db.table("a\0b")
        with pytest.raises(TypeError):
            db.create_table("t", "cf")
        with pytest.raises(rorqual.Error):
            db.create_table("t", [])


def test_errors_are_pickled() -> None:
    error = rorqual.TableNotFoundError("t", code=42, name="RQ_E_TABLE_NOT_FOUND", hbase_class="c", retryable=False)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and copy.__dict__ == error.__dict__ and str(copy) == "t"


def test_every_error_of_the_library_has_a_class() -> None:
    from rorqual import errors
    from rorqual._native import lib
    names = {name for name in dir(lib) if name.startswith("RQ_E_")}
    assert set(errors.CLASSES) <= names


# Made by HBase's class Bytes.
@pytest.mark.parametrize("value, expected", [
    (values.int64(1), "0000000000000001"), (values.int64(-1), "ffffffffffffffff"), (values.int64(2 ** 63 - 1), "7fffffffffffffff"),
    (values.int32(-2), "fffffffe"), (values.int16(258), "0102"), (values.encode(1.5), "3ff8000000000000"),
    (values.float32(1.5), "3fc00000"), (values.encode(True), "ff"), (values.encode(False), "00"),
    (values.encode("ä"), "c3a4"), (values.encode([1, {"a": None}]), b'[1,{"a":null}]'.hex()), (values.encode(bytearray(b"x")), "78"),
])
def test_bytes_of_values(value: bytes, expected: str) -> None:
    assert value.hex() == expected


def test_values_that_do_not_fit() -> None:
    for encode, value in ((values.int64, 2 ** 63), (values.int32, 2 ** 31), (values.int16, -2 ** 15 - 1)):
        with pytest.raises(ValueError):
            encode(value)
    for wrong in (None, object(), {1, 2}):
        with pytest.raises(TypeError):
            values.encode(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        values.encode([float("nan")])
    for decode in (values.decode_int, values.decode_float, values.decode_bool):
        with pytest.raises(ValueError):
            decode(b"123")


def _wait(own: Any, parents: Any) -> None:
    """Lives until the parent closes its end of the pipe, or ends."""
    parents.close()
    own.send("begun")
    with pytest.raises(EOFError):
        own.recv()


def test_a_child_keeps_no_folder(tmp_path: pathlib.Path) -> None:
    """A forked child that lives on does not keep its parent's folder locked: neither after the parent closes it, nor after
    the parent is killed."""
    url = f"file:{tmp_path}/db"
    context = multiprocessing.get_context("fork")
    parents, own = context.Pipe()
    with rorqual.connect(url) as db:
        db.create_table("t", ["cf"]).put("r", {"cf:a": 1})
        child = context.Process(target=_wait, args=(own, parents))
        child.start()
        own.close()
        assert parents.recv() == "begun"
        with pytest.raises(rorqual.LockedError):
            rorqual.connect(url)
    with rorqual.connect(url) as db:
        assert db.table("t").get("r").get_int("cf:a") == 1
    parents.close()
    child.join()
    assert child.exitcode == 0
    program = ("import os, signal, sys, rorqual\n"
               f"db = rorqual.connect({url!r})\n"
               "if os.fork() == 0:\n"
               "    print('begun', flush=True)\n"
               "    sys.stdin.read()\n"
               "    os._exit(0)\n"
               "signal.pause()\n")
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        assert parent.stdout.readline() == "begun\n"
        parent.kill()
        parent.wait()
        rorqual.connect(url, must_exist=True).close()
        parent.stdin.close()  # ends the child
