#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snappy's library is loaded when a table uses it, not at the start: its C++ runtime takes memory. Where the library is
missing (LD_LIBRARY_PATH begins with a folder that has an empty file of its name), tables, files and connections that need it
are refused by an error that names it, and the rest of the server works.
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position

LIBRARY = "libsnappy.so.1"
SANITIZED = "asan" in os.environ.get("RORQUAL", "") or "tsan" in os.environ.get("RORQUAL", "")
ROW = {(b"f", b"q"): b"value " * 100}


def mapped(server, name):
    return name in pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()


def refusal(action):
    try:
        action()
    except (hbase.Refused, RuntimeError) as e:
        return str(e)
    raise AssertionError("not refused")


def works(client, table, attributes):
    client.create(table, {"f": attributes})
    (_, name, encoded), = client.regions(table)
    client.data.put(name, b"row", ROW)
    client.flush(encoded)
    assert client.data.get(name, b"row") == ROW


def is_loaded_when_it_is_used(root):
    server = rorqual.Server(root / "data", root / "log")
    client = hbase.Client(server)
    works(client, "plain", {})
    assert not mapped(server, "libsnappy"), "libsnappy is mapped though nothing uses it"
    assert SANITIZED or not mapped(server, "libstdc++"), "the C++ runtime is mapped though nothing uses it"
    works(client, "packed", {"COMPRESSION": "SNAPPY"})
    assert mapped(server, "libsnappy")
    client.close()
    problem = server.stop()
    assert problem is None, problem


def is_named_where_it_is_missing(root):
    empty = root / "libraries"
    empty.mkdir()
    (empty / LIBRARY).touch()
    server = rorqual.Server(root / "data", root / "log", env={**os.environ, "LD_LIBRARY_PATH": str(empty)})
    client = hbase.Client(server)
    assert LIBRARY in refusal(lambda: client.create("more", {"f": {"COMPRESSION": "SNAPPY"}}))
    snappy = hbase.Connection(server.regionserver, codec=b"org.apache.hadoop.hbase.codec.KeyValueCodec",
                              compressor=b"org.apache.hadoop.io.compress.SnappyCodec")
    name = client.regions("plain")[0][1]
    said = snappy.input.read().decode(errors="replace")  # the reason, then the end
    assert LIBRARY in said and "UnsupportedCompressionCodecException" in said, said
    assert client.data.get(name, b"row") == ROW
    works(client, "other", {"COMPRESSION": "GZ"})
    # The table of the first server, whose file cannot be read.
    packed = client.regions("packed")[0][1]
    refusal(lambda: client.data.get(packed, b"row"))
    assert LIBRARY in (root / "log").read_text(errors="replace")
    snappy.close()
    client.close()
    problem = server.stop()
    assert problem is None, problem


def main():
    report = rorqual.Report()
    with tempfile.TemporaryDirectory() as folder:
        for test in (is_loaded_when_it_is_used, is_named_where_it_is_missing):
            problem = None
            try:
                test(pathlib.Path(folder))
            except Exception as e:  # pylint: disable=broad-except
                problem = repr(e)
            report.outcome(f"codec library/{test.__name__}", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
