# SPDX-License-Identifier: Apache-2.0
"""HBase's Thrift server for a real HBase, and a Python environment with real HappyBase from the registry."""
import os
import pathlib
import subprocess
import tarfile
import time

from peer import SCRIPT, free_ports, is_free

HAPPYBASE = "happybase==1.3.0"


class Thrift:
    """The Thrift server of an HBase (peer.HBase) that runs; `with` starts and stops it."""

    def __init__(self, hbase):
        self.hbase = hbase
        self.port, info = free_ports(2)
        with open(hbase.folder / "thrift.log", "wb") as log:
            self.process = subprocess.Popen(
                [str(SCRIPT), "run", str(hbase.folder), "org.apache.hadoop.hbase.thrift.ThriftServer", "-p", str(self.port),
                 "--infoport", str(info), "-b", "127.0.0.1", "start"], env=hbase.env, stdout=log, stderr=log)

    def __enter__(self):
        deadline = time.monotonic() + 120
        while is_free(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("no Thrift server: " + (self.hbase.folder / "thrift.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)
        return self

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.stop()


def environment(folder, python):
    """A virtual environment with HappyBase and what its tests import; returns its interpreter."""
    place = pathlib.Path(folder, "venv")
    subprocess.run([python, "-m", "venv", "--system-site-packages", str(place)], check=True)
    subprocess.run([str(place / "bin/pip"), "install", "-q", HAPPYBASE, "six"], check=True)
    return place / "bin/python"


def own_tests(folder, interpreter):
    """HappyBase's published tests, with a changed import of HappyBase; returns the file. They use assert_raises, which an
    earlier version imported from nose."""
    place = pathlib.Path(folder, "happybase-tests")
    place.mkdir()
    subprocess.run([str(interpreter), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(place), HAPPYBASE],
                   check=True)
    with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
        name = next(n for n in archive.getnames() if n.endswith("/tests/test_api.py"))
        text = archive.extractfile(name).read().decode()
    changed = text.replace("from happybase import", "from rorqual.happybase import")
    assert changed.count("rorqual.happybase") == 1, "HappyBase's tests import it in another way"
    (place / "conftest.py").write_text("import builtins\nimport pytest\n\nbuiltins.assert_raises = pytest.raises\n")
    (place / "test_api.py").write_text(changed)
    return place / "test_api.py"


def run(interpreter, *arguments, site=None, **variables):
    """Runs Python with rorqual's wheel, unpacked in `site`."""
    return subprocess.run([str(interpreter), *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=600, env={**os.environ, "PYTHONPATH": str(site or ""), **variables})
