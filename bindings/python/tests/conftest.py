# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several tests."""
from typing import Iterator

import pytest

import rorqual


@pytest.fixture
def table(rorqual_db: rorqual.Database) -> rorqual.Table:
    """A table with two regions and two families, one with three versions."""
    return rorqual_db.create_table("py_test", {"cf": {"VERSIONS": 3}, "other": None}, splits=["m"])


@pytest.fixture
def memory() -> Iterator[rorqual.Database]:
    with rorqual.connect("memory:") as db:
        yield db
