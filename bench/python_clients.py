#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gets and puts per second of one Python program: python_clients.py MODULE HOST PORT [SECONDS]

MODULE is happybase (HOST and PORT are those of HBase's Thrift server), rorqual.happybase or rorqual (HOST is a URL). A row has
one column of 100 bytes, keys are random among 10,000. Prints one line per kind of call. bench/python runs it on both.
"""
import importlib
import random
import sys
import time

ROWS = 10_000
VALUE = b"v" * 100
TABLE = "bench_python"


def rate(call, seconds):
    """Calls per second, after a warm-up of a fifth of the time."""
    for limit in (seconds / 5, seconds):
        count, begun = 0, time.perf_counter()
        while (spent := time.perf_counter() - begun) < limit:
            for _ in range(20):
                call()
            count += 20
    return count / spent


def key():
    return b"row%08d" % random.randrange(ROWS)


def happybase(module, host, port):
    connection = module.Connection(host, port)
    if TABLE.encode() in connection.tables():
        connection.delete_table(TABLE, disable=True)
    connection.create_table(TABLE, {"f": {"max_versions": 1}})
    table = connection.table(TABLE)
    with table.batch(batch_size=1000) as batch:
        for i in range(ROWS):
            batch.put(b"row%08d" % i, {b"f:q": VALUE})
    yield "get", lambda: table.row(key())
    yield "put", lambda: table.put(key(), {b"f:q": VALUE})
    yield "scan of 100 rows", lambda: list(table.scan(row_start=key(), limit=100, batch_size=100))
    connection.delete_table(TABLE, disable=True)


def rorqual(module, url, _port):
    with module.connect(url) as db:
        if db.table_exists(TABLE):
            db.drop_table(TABLE, disable=True)
        table = db.create_table(TABLE, ["f"])
        with table.batch(size=1000) as batch:
            for i in range(ROWS):
                batch.put(b"row%08d" % i, {"f:q": VALUE})
        yield "get", lambda: table.get(key())
        yield "put", lambda: table.put(key(), {"f:q": VALUE})
        yield "scan of 100 rows", lambda: list(table.scan(key(), limit=100))
        db.drop_table(TABLE, disable=True)


def main():
    name, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 3
    module = importlib.import_module(name)
    for kind, call in (rorqual if name == "rorqual" else happybase)(module, host, port):
        print(f"{name}\t{host}\t{kind}\t{rate(call, seconds):.0f}", flush=True)


if __name__ == "__main__":
    main()
