# SPDX-License-Identifier: Apache-2.0
"""Describes the extension rorqual._native to cffi: the functions of include/rorqual and those of the C files here.

The compiler checks every declaration against the header. librorqual.a is linked in; the shared libraries that it needs are
searched in the wheel's folder rorqual/lib (../build copies them). RORQUAL_SOURCES and RORQUAL_BUILD name the root of the
sources and the build folder that has librorqual.a.
"""
import os
import pathlib
import re

from cffi import FFI

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ.get("RORQUAL_SOURCES", HERE.parents[2] if len(HERE.parents) > 2 else HERE))
BUILD = pathlib.Path(os.environ.get("RORQUAL_BUILD", ROOT / "build"))


def libraries() -> list[str]:
    """The libraries that librorqual.a needs, from the pkg-config file next to it."""
    private = re.search(r"^Libs\.private:(.*)$", (BUILD / "meson-private/rorqual.pc").read_text(encoding="utf-8"), re.M)
    return re.findall(r"-l(\S+)", private[1])


def declarations(header: str) -> str:
    """A header's declarations in cffi's syntax: no comments, preprocessor lines or function bodies; sizes as numbers."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    for name, number in re.findall(r"^#define (\w+) (\d+)\s*$", text, re.M):
        text = text.replace(f"[{name}]", f"[{number}]")
    text = re.sub(r"^#(?:\\\n|.)*$", "", text, flags=re.M)
    text = re.sub(r'extern "C" \{|^\}$(?=\s*\Z)', "", text, flags=re.M)
    text = re.sub(r"static inline [^{;]*\{.*?^\}", "", text, flags=re.M | re.S)
    return text.replace("RQ_API ", "")


def wrappers(source: str) -> str:
    """The prototypes of the C functions that Python calls."""
    return "typedef struct rqpy_queue rqpy_queue;\n" + "\n".join(re.sub(r"\s+", " ", found) + ";" for found in re.findall(r"^static ((?:rq_err|void|rqpy_queue) \*?rqpy_\w+\([^)]*\))",
                                                                              source, re.M))


def make() -> FFI:
    headers = [(ROOT / "include/rorqual" / name).read_text(encoding="utf-8") for name in ("errors.h", "rorqual.h", "rowkey.h")]
    source = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("pack.c", "calls.c", "async.c", "index.c"))
    builder = FFI()
    builder.cdef("\n".join(declarations(header) for header in headers) + wrappers(source))
    builder.set_source(
        "rorqual._native", source,
        include_dirs=[str(ROOT / "include")], extra_objects=[str(BUILD / "src/library/librorqual.a")],
        extra_compile_args=["-std=gnu11", "-O2", "-Wno-unused-function"], py_limited_api=True,
        libraries=libraries(),
        # RPATH instead of RUNPATH, because RPATH also applies to the libraries' own dependencies. No symbol is exported, so
        # that none conflicts with another extension's copy.
        extra_link_args=["-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib", "-Wl,--exclude-libs,ALL"])
    return builder


ffi = make()
