#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rpms in build-rpm/: their files, what they need, the server's binary, a program built with the library's. They are not
installed: that would need a system of rpms."""
import os
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


def check_library(library, development, version):
    names = [pathlib.PurePath(f).name for f in output("rpm", "-qpl", library, development).split()]
    for name in ("librorqual.so.0", f"librorqual.so.{version}", "librorqual.so", "librorqual.a", "rorqual.pc", "rorqual.h", "rowkey.h"):
        assert names.count(name) == 1, f"{name}: {names.count(name)} times"
    assert "libsnappy.so.1()(64bit)" in output("rpm", "-qp", "--requires", library)
    assert f"librorqual = {version}" in output("rpm", "-qp", "--requires", development)
    with tempfile.TemporaryDirectory() as root:
        for package in (library, development):
            output("sh", "-c", 'rpm2archive - <"$0" | tar -xz -C "$1"', package, root)
        pc, = pathlib.Path(root).rglob("rorqual.pc")
        flags = output("pkg-config", f"--define-variable=prefix={root}/usr", "--cflags", "--libs", "rorqual",
                       env={**os.environ, "PKG_CONFIG_LIBDIR": str(pc.parent)}).split()
        output("cc", "-Wall", "-Werror", ROOT / "examples/blog.c", "-o", f"{root}/blog", *flags)
        done = output(f"{root}/blog", "memory:", env={**os.environ, "LD_LIBRARY_PATH": str(pc.parent.parent)})
        assert done.splitlines()[-1] == "849 posts in December", done[-200:]


def main():
    folder = ROOT / "build-rpm"
    version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text()).group(1)
    try:
        packages = {name: list(folder.glob(f"{name}-{version}-*.rpm")) for name in ("rorqual", "librorqual", "librorqual-devel")}
        assert all(len(found) == 1 for found in packages.values()), f"{packages}: make rpm"
        check(packages["rorqual"][0])
        check_library(packages["librorqual"][0], packages["librorqual-devel"][0], version)
    except (AssertionError, subprocess.CalledProcessError) as e:
        print(f"FAIL rpm: {e}\n0 passed, 1 failed")
        return 1
    print("PASS rpm\n1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
