# SPDX-License-Identifier: Apache-2.0
"""HappyBase's ConnectionPool."""
from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any, Iterator, Optional

from . import ttypes
from .connection import Connection


class NoConnectionsAvailable(RuntimeError):
    """No connection became free in time."""


class ConnectionPool:
    """At most `size` connections, made with the other arguments and lent to threads. Any thread may use the pool."""

    def __init__(self, size: int, **kwargs: Any) -> None:
        if not isinstance(size, int):
            raise TypeError("Pool 'size' arg must be an integer")
        if not size > 0:
            raise ValueError("Pool 'size' arg must be greater than zero")
        kwargs["autoconnect"] = False
        self._free: "queue.LifoQueue[Connection]" = queue.LifoQueue(maxsize=size)
        self._lent = threading.local()
        for _ in range(size):
            self._free.put(Connection(**kwargs))
        # an unreachable host is detected now; the other connections are opened when they are needed
        with self.connection():
            pass

    def _acquire(self, timeout: Optional[float]) -> Connection:
        try:
            return self._free.get(True, timeout)
        except queue.Empty:
            raise NoConnectionsAvailable("No connection available from pool within specified timeout") from None

    @contextlib.contextmanager
    def connection(self, timeout: Optional[float] = None) -> Iterator[Connection]:
        """Lends a connection for a `with` block; blocks within it get the same one. Waits `timeout` seconds at most."""
        connection: Optional[Connection] = getattr(self._lent, "current", None)
        outermost = connection is None
        if connection is None:
            connection = self._lent.current = self._acquire(timeout)
        try:
            connection.open()
            yield connection
        except (ttypes.TException, OSError):
            # The state of the connection is unknown, so it gets another transport.
            connection.transport.close()
            connection._refresh()
            connection.open()
            raise
        finally:
            if outermost:
                del self._lent.current
                self._free.put(connection)
