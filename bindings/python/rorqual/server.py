# SPDX-License-Identifier: Apache-2.0
"""A Rorqual server for tests: the binary on free ports and, by default, on a temporary folder.

    with rorqual.server.Server() as server:
        db = rorqual.connect(server.url)

The binary is `binary`, or the environment variable RORQUAL, or `rorqual` on the PATH.
"""
from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Mapping, Optional, Type, Union

__all__ = ["Server", "ServerError", "find_binary"]

READY = re.compile(r"rorqual ready: zookeeper (\S+), master (\S+), regionserver (\S+), (?:http (\S+), )?data (.+)")
# A shell between this process and the server: when its input closes, however this process ends, the shell stops the
# server.
WATCH = 'trap : TERM; "$@" </dev/null & server=$!; exec >&-; cat >/dev/null; kill $server 2>/dev/null; wait $server'
# Only for a server that hangs: a busy machine needs a minute where an idle one needs a second.
START_SECONDS = 300
STOP_SECONDS = 300


class ServerError(RuntimeError):
    """The server was not found, did not start, or did not stop cleanly; the message has the end of its log."""


def find_binary(binary: Optional[str] = None) -> str:
    wanted = binary or os.environ.get("RORQUAL") or "rorqual"
    found = shutil.which(wanted)
    if found is None:
        raise ServerError(f"there is no program {wanted}: set the environment variable RORQUAL to the server's binary")
    return found


def _discard(process: "subprocess.Popen[bytes]", folder: Optional[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """Starts when constructed; stopped by stop(), as a context manager, or when the program ends."""

    def __init__(self, data: Union[str, Path, None] = None, *, binary: Optional[str] = None,
                 settings: Optional[Mapping[str, object]] = None) -> None:
        program = find_binary(binary)
        folder = tempfile.mkdtemp(prefix="rorqual-test-")
        self.data = Path(data) if data is not None else Path(folder, "data")
        self.log = Path(folder, "log")
        options = [word for name, value in (settings or {}).items() for word in ("-D", f"{name}={value}")]
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", WATCH, "rorqual", program, "server", "--data", str(self.data), "--zk-port", "0", "--master-port", "0", "--rs-port", "0",
                 "--http", "none", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._finalizer = weakref.finalize(self, _discard, self._process, folder)
        ready = READY.search(self._first_lines())
        if ready is None:
            problem = self._tail()
            self._finalizer()
            raise ServerError(f"{program} did not become ready; {problem}")
        self.zookeeper, self.master, self.regionserver = ready[1], ready[2], ready[3]  # "host:port"
        self.url = f"hbase://{self.zookeeper}"
        # Later lines are discarded, so that the server never blocks on a full pipe.
        assert self._process.stdout is not None
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def _first_lines(self) -> str:
        """The server's output until it is ready, has ended, or has timed out."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        said = b""
        deadline = time.monotonic() + START_SECONDS
        while b"rorqual ready" not in said.rpartition(b"\n")[0]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                break
            some = os.read(descriptor, 4096)
            if not some:
                break
            said += some
        return said.decode(errors="replace")

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "its log ends: " + " | ".join(lines[-5:])

    def stop(self) -> None:
        """Stops the server cleanly and removes what it wrote to a temporary folder."""
        if not self._finalizer.alive:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code: Optional[int] = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
            self._process.kill()
        problem = None if code == 0 else f"{'no end' if code is None else f'exit code {code}'}; {self._tail()}"
        self._finalizer()
        if problem is not None:
            raise ServerError(f"the server did not stop cleanly: {problem}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()
