# SPDX-License-Identifier: Apache-2.0
"""The fixtures in another project: runs pytest inside pytest."""
import pathlib
import socket
import subprocess
import sys
import time

import pytest

from rorqual.server import Server, ServerError

PROJECT = """
import pytest

@pytest.mark.parametrize("run", [1, 2])
def test_each_test_has_an_empty_database(rorqual_db, run):
    assert rorqual_db.tables() == [] and rorqual_db.namespaces() == ["default", "hbase"]
    rorqual_db.create_namespace("ns")
    rorqual_db.create_table("ns:t", ["f"]).put("r", {"f:a": run})
    rorqual_db.create_table("left", ["f"])
"""


@pytest.mark.parametrize("mode", ["memory", "server"])
def test_a_project_with_the_fixtures(tmp_path: pathlib.Path, mode: str) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nrorqual = {mode}\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout


def test_a_server_starts_and_leaves_nothing() -> None:
    with Server() as server:
        folder, log = server.data.parent, server.log
        assert log.exists() and server.url.startswith("hbase://127.0.0.1:")
    assert not folder.exists()
    server.stop()


def test_a_server_ends_with_its_program() -> None:
    program = subprocess.run([sys.executable, "-c", "import os, signal; from rorqual.server import Server; s = Server(); "
                              "print(s.url, flush=True); os.kill(os.getpid(), signal.SIGKILL)"], capture_output=True, text=True,
                             check=False)
    port = int(program.stdout.strip().rpartition(":")[2])
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.02)
    raise AssertionError("the server runs on")


def test_a_server_that_cannot_start_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ServerError, match="no program no-such-server"):
        Server(binary="no-such-server")
    with pytest.raises(ServerError, match="rorqual.no.such"):
        Server(settings={"rorqual.no.such": 1})
    with pytest.raises(ServerError):
        Server(binary="false")
