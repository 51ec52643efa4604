#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make install` into a temporary folder: binary, manual pages, completions and library are installed and work, and nothing
else is installed. The installed server is started, queried, loaded and stopped; an example is built with the library.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# Set before the import, which would otherwise choose the server in build/.
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-install-"))
ROOT_FOLDER = FOLDER / "a root"
PREFIX = "/opt/rorqual"
INSTALLED = ROOT_FOLDER / PREFIX.lstrip("/")
VERSION = re.search(r"version: '([^']+)'", (pathlib.Path(__file__).resolve().parents[2] / "meson.build").read_text())[1]
LIB = "lib/" + subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
LIB = LIB.rstrip("/")
DEADLINE = 3600  # seconds; only for a command that hangs
os.environ["RORQUAL"] = str(INSTALLED / "bin/rorqual")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rorqual  # pylint: disable=wrong-import-position


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False, **options)
    assert done.returncode == 0 and done.stderr == "", (command, done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done.stdout


def commands():
    return re.findall(r"(?m)^  ([a-z]+) ", run(rorqual.BINARY, "help").split("\nother\n")[0])


def install():
    """Installs twice, the second time over the first and by a relative path."""
    for folder in (ROOT_FOLDER, os.path.relpath(ROOT_FOLDER, rorqual.ROOT)):
        done = subprocess.run(["make", "-s", "install", "BUILD_INSTALLED=build", f"PREFIX={PREFIX}", f"DESTDIR={folder}"],
                              cwd=rorqual.ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0, (done.stdout[-500:], done.stderr[-500:])
        assert done.stdout.splitlines()[-1] == f"installed {folder}{PREFIX}/bin/rorqual", done.stdout


def files():
    found = {str(p.relative_to(INSTALLED)) for p in ROOT_FOLDER.rglob("*") if p.is_file()}
    pages = {f"share/man/man1/rorqual{suffix}.1" for suffix in ("", *(f"-{c}" for c in commands()))}
    library = {"include/rorqual/rorqual.h", "include/rorqual/filters.h", "include/rorqual/rowkey.h",
               "include/rorqual/errors.h", "share/man/man3/rorqual.3",
               "share/man/man3/rorqual_errors.3", "share/man/man3/rorqual_filters.3", "share/man/man3/rorqual_rowkey.3"} | {
        f"{LIB}/{name}" for name in ("librorqual.a", "librorqual.so", "librorqual.so.0", f"librorqual.so.{VERSION}", "pkgconfig/rorqual.pc")}
    plugin = {"lib/rorqual/rorqual-rados.so"} if (rorqual.ROOT / "build/src/vfs/rorqual-rados.so").exists() else set()
    assert found == pages | library | plugin | {"bin/rorqual", "share/bash-completion/completions/rorqual.bash",
                             "share/zsh/site-functions/_rorqual", "share/fish/vendor_completions.d/rorqual.fish"}, found


def library():
    """The example is linked with the shared and the static library, with the flags of pkg-config, from a folder that was
    moved."""
    place = FOLDER / "place"  # pkg-config 0.29 does not quote blanks
    place.symlink_to(INSTALLED)
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": f"{INSTALLED}/{LIB}/pkgconfig"}
    for static in ([], ["--static"]):
        flags = run("pkg-config", f"--define-variable=prefix={place}", "--cflags", "--libs", *static, "rorqual",
                    env=environment)
        words = shlex.split(flags.replace("-lrorqual", "-l:librorqual.a") if static else flags)
        program = str(FOLDER / f"blog{len(static)}")
        run("cc", "-Wall", "-Werror", str(rorqual.ROOT / "examples/blog.c"), "-o", program, *words)
        needed = run("readelf", "-d", program)
        assert ("librorqual.so.0" in needed) == (not static), needed
        lines = run(program, f"file:{FOLDER}/blog", env={**os.environ, "LD_LIBRARY_PATH": f"{INSTALLED}/{LIB}"}).splitlines()
        assert lines[-1] == "849 posts in December", lines[-1:]


def go():
    """The example in Go, which uses cgo: in memory, twice on a folder, and with an error."""
    if shutil.which("go") is None:
        print("  no go here: its example is not built")
        return
    program = str(FOLDER / "visits")
    subprocess.run(["go", "build", "-o", program], cwd=rorqual.ROOT / "examples/go", check=True, timeout=DEADLINE,
                   env={**os.environ, "PKG_CONFIG_PATH": f"{INSTALLED}/{LIB}/pkgconfig", "CGO_ENABLED": "1",
                        "CGO_CFLAGS": f"-I{FOLDER}/place/include", "CGO_LDFLAGS": f"-L{FOLDER}/place/{LIB}"})
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{INSTALLED}/{LIB}"}
    for url in ("memory:", f"file:{FOLDER}/visits.db", f"file:{FOLDER}/visits.db"):
        assert run(program, url, env=environment).splitlines() == ["800 /", "1600 /about", "2400 /posts/1"]
    failed = subprocess.run([program, "nonsense:"], capture_output=True, text=True, env=environment, timeout=DEADLINE, check=False)
    assert failed.returncode == 1 and failed.stderr.startswith("RQ_E_"), (failed.returncode, failed.stderr)


def version():
    assert run(rorqual.BINARY, "version").startswith("rorqual ")


def pages():
    if shutil.which("man") is None or shutil.which("groff") is None:
        print("  no man or groff here: pages are not rendered")
        return
    environment = {**os.environ, "MANPATH": str(INSTALLED / "share/man"), "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
    for name in ("rorqual", *(f"rorqual-{c}" for c in commands())):
        text = run("man", "--warnings", name, env=environment)
        assert "SYNOPSIS" in text and f"usage: {name}" not in text, text
    for name, words in (("rorqual", "rq_connect("), ("rorqual_filters", "rq_filters_new("), ("rorqual_rowkey", "rq_key_encode("),
                        ("rorqual_errors", "RQ_E_TABLE_NOT_FOUND = 42")):
        text = run("man", "--warnings", "3", name, env=environment)
        assert words in text and "RQ_API" not in text and "__attribute__" not in text, text


def completions():
    script = (f"source '{INSTALLED}/share/bash-completion/completions/rorqual.bash'; COMP_WORDS=(rorqual ''); COMP_CWORD=1; "
              "_rorqual; echo ${COMPREPLY[@]}")
    assert run("bash", "-c", script).split() == [*commands(), "help", "version"]
    for shell, name in (("zsh", "share/zsh/site-functions/_rorqual"), ("fish", "share/fish/vendor_completions.d/rorqual.fish")):
        if shutil.which(shell) is not None:
            run(shell, "-n", str(INSTALLED / name))


def server():
    s = rorqual.Server(FOLDER / "data", FOLDER / "log")
    try:
        assert run(rorqual.BINARY, "ping", "--zk", s.zk, "--timeout", "300").startswith(f"{s.zk} answers")
        assert "operations/s" in run(rorqual.BINARY, "bench", "--zk", s.zk, "--seconds", "60", "--operations", "200",
                                     "--records", "200", "--verify", "get")
    finally:
        problem = s.stop()
    assert problem is None, problem
    assert "nothing wrong" in run(rorqual.BINARY, "fsck", str(FOLDER / "data"))


def an_old_library_is_named():
    """With a fake pkg-config that reports an older libuv, Meson must name the library."""
    tool = FOLDER / "pkg-config"
    tool.write_text("#!/bin/sh\ncase \"$*\" in *--modversion*libuv*) echo 1.30.0 ;; *) exec pkg-config \"$@\" ;; esac\n")
    tool.chmod(0o755)
    done = subprocess.run(["meson", "setup", str(FOLDER / "old")], cwd=rorqual.ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False,
                          env={**os.environ, "PKG_CONFIG": str(tool)})
    assert done.returncode != 0 and "libuv 1.30.0 is too old: Rorqual needs 1.44 or later" in done.stdout, (done.returncode, done.stdout[-700:])


TESTS = [install, files, library, go, version, pages, completions, server, an_old_library_is_named]


def main():
    report = rorqual.Report()
    try:
        for test in TESTS:
            try:
                test()
                report.outcome(f"install: {test.__name__}")
            except (AssertionError, OSError, RuntimeError, subprocess.TimeoutExpired) as failure:
                report.outcome(f"install: {test.__name__}", str(failure).replace("\n", " | ")[:900])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
