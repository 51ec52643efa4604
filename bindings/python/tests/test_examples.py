# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, in memory, on a folder (twice, on the same rows) and on a server: they print the same as those in
C."""
import pathlib
import subprocess
import sys

import pytest

from rorqual.server import Server

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def run(name: str, url: str) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["follow", "weibo"])
def test_an_example_prints_what_its_twin_prints(name: str, tmp_path: pathlib.Path, rorqual_server: Server) -> None:
    expected = (EXAMPLES / "expected" / f"{name}.txt").read_text()
    for url in ("memory:", f"file:{tmp_path}/db", f"file:{tmp_path}/db", rorqual_server.url):
        assert run(name, url) == expected, url


def test_the_blog_prints_december(tmp_path: pathlib.Path, rorqual_server: Server) -> None:
    expected = [f"title_{i}--content_{i}--tag_{i}" for i in range(9999, 9999 - 849, -1)] + ["849 posts in December"]
    for url in ("memory:", f"file:{tmp_path}/db", f"file:{tmp_path}/db", rorqual_server.url):
        assert run("blog", url).splitlines() == expected, url


def test_every_program_is_run() -> None:
    assert sorted(p.stem for p in EXAMPLES.glob("*.py")) == ["blog", "follow", "weibo"]
