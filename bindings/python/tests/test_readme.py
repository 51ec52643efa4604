# SPDX-License-Identifier: Apache-2.0
"""The examples of the README."""
import doctest
import pathlib


def test_examples() -> None:
    found = doctest.testfile(str(pathlib.Path(__file__).resolve().parents[1] / "README.md"), module_relative=False)
    assert found.failed == 0 and found.attempted > 40
