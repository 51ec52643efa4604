#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compression libraries are loaded when a table uses them, not at the start. If Snappy's library is missing (LD_LIBRARY_PATH
begins with a folder that has an empty file of its name), tables, files and connections that need it are refused by an error
that names the library, and the rest of the server works.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position

LIBRARY = "libsnappy.so.1"
LIBRARIES = {"SNAPPY": "libsnappy", "LZ4": "liblz4", "ZSTD": "libzstd", "LZO": "liblzo2", "BZIP2": "libbz2"}
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
    for library in LIBRARIES.values():
        assert not mapped(server, library), f"{library} is mapped though nothing uses it"
    assert SANITIZED or not mapped(server, "libstdc++"), "the C++ runtime is mapped though nothing uses it"
    works(client, "packed", {"COMPRESSION": "SNAPPY"})
    for name, library in LIBRARIES.items():
        works(client, f"packed_{name}", {"COMPRESSION": name})
        assert mapped(server, library), f"{library} is not mapped"
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
    said = snappy.input.read().decode(errors="replace")  # reads the reason, then the end of the connection
    assert LIBRARY in said and "UnsupportedCompressionCodecException" in said, said
    assert client.data.get(name, b"row") == ROW
    works(client, "other", {"COMPRESSION": "GZ"})
    # The table was made by the first server; its file cannot be read here.
    packed = client.regions("packed")[0][1]
    refusal(lambda: client.data.get(packed, b"row"))
    assert LIBRARY in (root / "log").read_text(errors="replace")
    snappy.close()
    client.close()
    problem = server.stop()
    assert problem is None, problem


def libuv_is_named_where_it_is_missing(root):
    """A server needs libuv; inspecting a file does not."""
    empty = root / "without_libuv"
    empty.mkdir()
    (empty / "libuv.so.1").touch()
    run = {"env": {**os.environ, "LD_LIBRARY_PATH": str(empty)}, "capture_output": True, "text": True, "check": False, "timeout": 300}
    started = subprocess.run([rorqual.BINARY, "server", "--data", str(root / "none"), "--zk-port", "0", "--master-port", "0", "--rs-port", "0"], **run)
    assert started.returncode != 0 and "libuv.so.1" in started.stdout + started.stderr, started
    asked = subprocess.run([rorqual.BINARY, "tables", "--zk", "127.0.0.1:1"], **run)
    assert asked.returncode != 0 and "libuv.so.1" in asked.stdout + asked.stderr, asked
    offline = subprocess.run([rorqual.BINARY, "wal", "dump", str(root / "data")], **run)
    assert offline.returncode == 0, offline


def main():
    report = rorqual.Report()
    with tempfile.TemporaryDirectory() as folder:
        for test in (is_loaded_when_it_is_used, is_named_where_it_is_missing, libuv_is_named_where_it_is_missing):
            problem = None
            try:
                test(pathlib.Path(folder))
            except Exception as e:  # pylint: disable=broad-except
                problem = repr(e)
            report.outcome(f"codec library/{test.__name__}", problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
