# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, in memory, on a folder (twice, on the same rows) and on a server, or (--rorqual=URL) on a cluster: they
print the same as those in C."""
import pathlib
import subprocess
import sys
from typing import List

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def run(name: str, url: str) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def urls(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> List[str]:
    given = str(request.config.getoption("--rorqual") or "")
    if "://" in given:
        return [given, given]
    return ["memory:", f"file:{tmp_path}/db", f"file:{tmp_path}/db", request.getfixturevalue("rorqual_server").url]


@pytest.mark.parametrize("name", ["follow", "weibo"])
def test_an_example_prints_what_its_twin_prints(name: str, urls: List[str]) -> None:
    expected = (EXAMPLES / "expected" / f"{name}.txt").read_text()
    for url in urls:
        assert run(name, url) == expected, url


def test_the_blog_prints_december(urls: List[str]) -> None:
    expected = [f"title_{i}--content_{i}--tag_{i}" for i in range(9999, 9999 - 849, -1)] + ["849 posts in December"]
    for url in urls:
        assert run("blog", url).splitlines() == expected, url


def test_every_program_is_run() -> None:
    assert sorted(p.stem for p in EXAMPLES.glob("*.py")) == ["blog", "follow", "weibo"]
