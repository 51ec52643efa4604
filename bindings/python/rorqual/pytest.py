# SPDX-License-Identifier: Apache-2.0
"""Fixtures for pytest; the wheel registers them (or: -p rorqual.pytest).

    rorqual_db      an empty database for one test. By default it is "memory:"; with --rorqual=server (or rorqual = server in
                    the configuration) a connection to rorqual_server, whose tables and namespaces are dropped afterwards;
                    with --rorqual=URL a running cluster, where only tables and namespaces that the test created are dropped
    rorqual_server  a server on free ports and a temporary folder, for the whole session (rorqual.server)
"""
from __future__ import annotations

from typing import Iterator

import pytest

from .database import Database, connect
from .server import Server

MODES = "memory, server or a URL of rorqual.connect()"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rorqual").addoption("--rorqual", metavar="DATABASE", help=f"what rorqual_db is: {MODES}")
    parser.addini("rorqual", f"what rorqual_db is: {MODES}", default="memory")


@pytest.fixture(scope="session")
def rorqual_server() -> Iterator[Server]:
    with Server() as server:
        yield server


def _url(request: pytest.FixtureRequest) -> str:
    mode = str(request.config.getoption("--rorqual") or request.config.getini("rorqual"))
    if mode == "server":
        server: Server = request.getfixturevalue("rorqual_server")
        return server.url
    return "memory:" if mode == "memory" else mode


def _clean(db: Database, tables: "set[str]", namespaces: "set[str]") -> None:
    for name in db.tables():
        if name not in tables:
            db.drop_table(name, disable=True)
    for name in db.namespaces():
        if name not in namespaces:
            db.drop_namespace(name)


@pytest.fixture
def rorqual_db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with connect(_url(request)) as db:
        tables, namespaces = set(db.tables()), set(db.namespaces())
        yield db
        if not db.closed and not db.url.startswith("memory:"):
            _clean(db, tables, namespaces)
