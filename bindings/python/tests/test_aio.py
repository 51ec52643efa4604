# SPDX-License-Identifier: Apache-2.0
"""rorqual.aio: many calls at the same time, cancelled ones, closing; in memory, on a server, on a real HBase (--rorqual)."""
import asyncio
import functools
import multiprocessing
import threading
from typing import Awaitable, Callable

import pytest

import rorqual
from children import HANGS
from rorqual import Put, aio

Body = Callable[..., Awaitable[None]]


def in_loop(test: Body) -> Callable[[rorqual.Database], None]:
    """Runs a test in an event loop, with an empty table of a second connection to the fixture's database, or of a new database in
    memory."""
    @functools.wraps(test)
    def run(rorqual_db: rorqual.Database) -> None:
        async def body() -> None:
            async with aio.connect(rorqual_db.url) as db:
                await test(db, await db.create_table("py_aio", {"cf": {"versions": 3}}, splits=["m"]))
        asyncio.run(asyncio.wait_for(body(), HANGS))
    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look for the test's own parameters
    return run


@in_loop
async def test_every_call(db: aio.Database, table: aio.Table) -> None:
    await table.put("ann", {"cf:age": 31, "cf:name": "Ann"})
    row = await table.get("ann")
    assert row.key == b"ann" and row.get_int("cf:age") == 31 and len(row) == 2
    assert list(await table.get("ann", "cf:age", versions=2)) == [b"cf:age"]
    nobody = await table.get("nobody")
    assert not nobody and nobody.key == b"nobody"
    assert await table.exists("ann") and not await table.exists("nobody")
    assert [await table.increment("n", "cf:n", 5), await table.increment("n", "cf:n")] == [5, 6]
    assert (await table.append("ann", {"cf:name": "a"}))["cf:name"] == b"Anna"
    await table.mutate([Put("ann", {"cf:x": 1}), rorqual.Delete("ann", "cf:age")])
    assert await table.check_and_mutate("ann", Put("ann", {"cf:y": 1}), column="cf:x", value=1)
    assert not await table.check_and_mutate("ann", Put("ann", {"cf:y": 2}), column="cf:x", value=2)
    assert list(await table.get("ann")) == [b"cf:name", b"cf:x", b"cf:y"]
    await table.delete("ann", "cf:x")
    assert [(row.key, len(row)) for row in await table.get_many(["z", "ann"])] == [(b"z", 0), (b"ann", 2)]
    assert await table.get_many([]) == []


@in_loop
async def test_definitions(db: aio.Database, table: aio.Table) -> None:
    assert "py_aio" in await db.tables() and await db.table_exists("py_aio")
    assert (await db.describe("py_aio")).families["cf"]["VERSIONS"] == "3"
    await db.create_namespace("py_aio_ns")
    assert "py_aio_ns" in await db.namespaces()
    await db.alter_namespace("py_aio_ns", {"owner": "ann"})
    assert await db.describe_namespace("py_aio_ns") == {"owner": "ann"}
    await db.drop_namespace("py_aio_ns")
    await db.flush_table("py_aio")
    await db.disable_table("py_aio")
    await db.enable_table("py_aio")
    await db.disable_table("py_aio")
    await db.truncate_table("py_aio")


@in_loop
async def test_many_calls_at_the_same_time(db: aio.Database, table: aio.Table) -> None:
    await asyncio.gather(*(table.put(f"r{i:04}", {"cf:v": i}) for i in range(1000)))
    rows = await asyncio.gather(*(table.get(f"r{i:04}") for i in range(1000)))
    assert [row.get_int("cf:v") for row in rows] == list(range(1000))
    counts = await asyncio.gather(*(table.increment("counter", "cf:n") for _ in range(200)))
    assert sorted(counts) == list(range(1, 201))


@in_loop
async def test_scans_and_batches(db: aio.Database, table: aio.Table) -> None:
    async with table.batch() as batch:
        for i in range(2000):
            batch.put(f"r{i:04}", {"cf:v": i})
    assert [row.get_int("cf:v") async for row in table.scan()] == list(range(2000))
    assert [row.key async for row in table.scan(prefix="r00", reverse=True, limit=2)] == [b"r0099", b"r0098"]
    async with table.scan("r1990") as scan:
        assert (await scan.__anext__()).key == b"r1990"
    with pytest.raises(StopAsyncIteration):
        await scan.__anext__()
    batch = table.batch()
    batch.increment("n", {"cf:n": 2})
    batch.put("a", {"nowhere:x": 1})
    with pytest.raises(rorqual.BatchError) as failed:
        await batch.send()
    assert list(failed.value.failures) == [1]
    assert (await table.get("n")).get_int("cf:n") == 2
    batch.check_and_mutate("n", Put("n", {"cf:n": 5}), column="cf:n", value=2)
    batch.check_and_mutate("n", Put("n", {"cf:n": 6}), column="cf:n", value=2)
    assert [row.done for row in await batch.send()] == [True, False]
    with pytest.raises(RuntimeError):
        async with table.batch() as batch:
            batch.put("never", {"cf:v": 1})
            raise RuntimeError
    assert not await table.exists("never")


@in_loop
async def test_extras_and_cursors(db: aio.Database, table: aio.Table) -> None:
    await table.put("ann", {"cf:age": 31, "cf:name": "Ann"}, attributes={"own": "a"}, priority=150)
    await table.mutate([Put("ann", {"cf:x": 1}, priority=7), rorqual.Delete("ann", "cf:age", attributes={"own": 1})])
    row = await table.get("ann", reads_uncommitted=True, attributes={"own": 1}, priority=200)
    assert list(row) == [b"cf:name", b"cf:x"]
    assert await table.exists("ann", priority=1) and len((await table.get_many(["ann"], priority=1))[0]) == 2
    assert await table.increment("n", "cf:n", priority=1, attributes={"own": 1}) == 1
    found = [row async for row in table.scan(fetch_bytes=1, cursors=True, priority=1)]
    assert [row.key for row in found if row.cursor is None] == [b"ann", b"n"]
    assert all(row.key == row.cursor and not row for row in found if row.cursor is not None)
    await table.delete("ann", priority=1)
    assert not await table.exists("ann")
    with pytest.raises(ValueError):
        await table.get("ann", priority=-1)


@in_loop
async def test_errors(db: aio.Database, table: aio.Table) -> None:
    with pytest.raises(rorqual.FamilyNotFoundError) as failed:
        await table.put("r", {"nowhere:x": 1})
    assert failed.value.hbase_class.endswith("NoSuchColumnFamilyException")
    with pytest.raises(rorqual.TableNotFoundError):
        await db.table("py_nothing").get("r")
    with pytest.raises(rorqual.TableNotFoundError):
        async for _ in db.table("py_nothing").scan():
            pass
    with pytest.raises(rorqual.Error):
        await table.get("")
    with pytest.raises(TypeError):
        with table.batch():
            pass


@in_loop
async def test_a_cancelled_call_disturbs_no_other(db: aio.Database, table: aio.Table) -> None:
    async with table.batch() as batch:
        for i in range(1000):
            batch.put(f"r{i:04}", {"cf:v": i})
    tasks = [asyncio.ensure_future(table.get(f"r{i:04}")) for i in range(200)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    for i, row in enumerate(found):
        assert isinstance(row, asyncio.CancelledError) if i % 2 == 0 else row.get_int("cf:v") == i
    scan = table.scan()
    first = asyncio.ensure_future(scan.__anext__())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len([row async for row in scan]) == 1000


@in_loop
async def test_the_loop_runs_while_calls_wait(db: aio.Database, table: aio.Table) -> None:
    turns = [0]

    async def turn() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    turning = asyncio.ensure_future(turn())
    for i in range(50):
        before = turns[0]
        await table.put("r", {"cf:v": i})
        assert turns[0] > before
    turning.cancel()


def test_closing_ends_calls(memory: rorqual.Database) -> None:
    async def body() -> None:
        db = await aio.connect("memory:")
        table = await db.create_table("t", ["cf"])
        calls = [asyncio.ensure_future(table.put(f"r{i}", {"cf:v": i})) for i in range(500)]
        await asyncio.sleep(0)
        await db.close()
        await db.close()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert all(end is None or isinstance(end, rorqual.ClosedError) for end in ends)
        with pytest.raises(rorqual.ClosedError):
            await table.get("r1")
        with pytest.raises(rorqual.ClosedError):
            await db.tables()
    asyncio.run(body())


def no_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize("closes", [False, True])
def test_no_memory_for_the_ends_of_calls(memory: rorqual.Database, monkeypatch: pytest.MonkeyPatch, closes: bool) -> None:
    """Calls whose results do not fit into memory end with an error."""
    async def body() -> None:
        db = await aio.connect("memory:")
        table = await db.create_table("t", ["cf"])
        calls = [asyncio.ensure_future(table.put(f"r{i}", {"cf:v": i})) for i in range(3)]
        await asyncio.sleep(0)
        monkeypatch.setattr(aio, "Answer", no_memory)
        if closes:
            await db.close()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, MemoryError) for end in ends)
        monkeypatch.undo()
        await db.close()
    asyncio.run(asyncio.wait_for(body(), HANGS))


def test_calls_after_missing_memory(memory: rorqual.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that begin after the ends of others did not fit into memory end as usual."""
    async def body() -> None:
        async with aio.connect("memory:") as db:
            table = await db.create_table("t", ["cf"])
            call = asyncio.ensure_future(table.put("r", {"cf:v": 1}))
            await asyncio.sleep(0)
            monkeypatch.setattr(aio, "Answer", no_memory)
            with pytest.raises(MemoryError):
                await call
            monkeypatch.undo()
            await table.put("s", {"cf:v": 2})
            assert (await table.get("s")).get_int("cf:v") == 2
    asyncio.run(asyncio.wait_for(body(), HANGS))


def test_closing_that_is_cancelled(memory: rorqual.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that closes the database ends the calls, although nobody waits for it."""
    async def body() -> None:
        db = await aio.connect("memory:")
        table = await db.create_table("t", ["cf"])
        may_close, close = threading.Event(), db._plain.close
        monkeypatch.setattr(db._plain, "close", lambda: (may_close.wait(HANGS), close()))
        call, closing = asyncio.ensure_future(table.put("r", {"cf:v": 1})), asyncio.ensure_future(db.close())
        await asyncio.sleep(0)  # both have begun, and the loop has not polled yet
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        may_close.set()
        await asyncio.wait([call])
        assert call.exception() is None or isinstance(call.exception(), rorqual.ClosedError)
        await db.close()
    asyncio.run(asyncio.wait_for(body(), HANGS))


def _close_parents(db: aio.Database) -> None:
    with pytest.raises(rorqual.ForkedError):
        asyncio.run(db.close())


def test_a_child_of_fork_that_closes(memory: rorqual.Database) -> None:
    """Closing fails in a child of fork, and the parent's calls still end."""
    async def body() -> None:
        async with aio.connect("memory:") as db:
            table = await db.create_table("t", ["cf"])
            child = multiprocessing.get_context("fork").Process(target=_close_parents, args=(db,))
            child.start()
            await asyncio.to_thread(child.join, HANGS)
            ended = child.exitcode
            child.kill()
            child.join()
            assert ended == 0
            await table.put("r", {"cf:v": 1})
    asyncio.run(asyncio.wait_for(body(), 2 * HANGS))


@in_loop
async def test_a_scan_that_is_closed_while_it_reads(db: aio.Database, table: aio.Table) -> None:
    await table.put("r", {"cf:v": 1})
    scan = table.scan()
    first = asyncio.ensure_future(scan.__anext__())
    await asyncio.sleep(0)
    scan.close()
    with pytest.raises(StopAsyncIteration):
        await first


def test_a_database_that_cannot_be_opened() -> None:
    async def body() -> None:
        with pytest.raises(rorqual.Error):
            async with aio.connect("hbase+rpc://127.0.0.1:1", timeout=0.3):
                pass
        with pytest.raises(rorqual.Error):
            await aio.connect("nowhere:")
    asyncio.run(body())
