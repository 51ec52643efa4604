#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rpm in build-rpm/: its files, what it needs, and its binary. It is not installed: that would need a system of rpms."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = ["/usr/bin/rorqual", "/usr/lib/systemd/system/rorqual.service", "/usr/lib/sysusers.d/rorqual.conf", "/etc/rorqual/rorqual.conf",
         "/etc/sysconfig/rorqual", "/usr/share/man/man1/rorqual.1", "/usr/share/man/man1/rorqual-server.1",
         "/usr/share/bash-completion/completions/rorqual.bash"]


def output(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options).stdout


def check(package):
    files = [f.removesuffix(".gz") for f in output("rpm", "-qpl", package).split()]  # Fedora's rpm compresses manual pages
    missing = [f for f in FILES if f not in files]
    assert not missing, f"not in the package: {missing}"
    assert set(output("rpm", "-qpc", package).split()) >= {"/etc/rorqual/rorqual.conf", "/etc/sysconfig/rorqual"}, "no configuration files"
    # Loaded at run time, so that rpm does not find it.
    assert "libsnappy.so.1()(64bit)" in output("rpm", "-qp", "--requires", package)
    with tempfile.TemporaryDirectory() as root:
        archive = output("sh", "-c", 'rpm2archive - <"$0" | tar -xz -C "$1" ./usr/bin ./usr/lib/systemd', package, root)
        assert archive == ""
        version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text()).group(1)
        assert output(f"{root}/usr/bin/rorqual", "version").startswith(f"rorqual {version}")
        unit = pathlib.Path(root, "usr/lib/systemd/system/rorqual.service").read_text()
        assert "/etc/sysconfig/rorqual" in unit and "/etc/default" not in unit, "the unit reads Debian's file"


def main():
    packages = list((ROOT / "build-rpm").glob("*.rpm"))
    try:
        assert len(packages) == 1, f"build-rpm has {len(packages)} packages: make rpm"
        check(packages[0])
    except (AssertionError, subprocess.CalledProcessError) as e:
        print(f"FAIL rpm: {e}\n0 passed, 1 failed")
        return 1
    print("PASS rpm\n1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
