# SPDX-License-Identifier: Apache-2.0
"""The wheel of the Python binding; `make python` at the root of the sources calls it. Debian's setuptools needs this file
in addition to pyproject.toml, because of the extension."""
import os
import pathlib
import re

from setuptools import setup

ROOT = pathlib.Path(os.environ.get("RORQUAL_SOURCES", pathlib.Path(__file__).resolve().parents[2]))
VERSION = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))

setup(
    name="rorqual",
    version=VERSION[1] if VERSION else "0",
    description="HBase's data model for Python: embedded, or on clusters of Rorqual and HBase",
    license="Apache-2.0",
    python_requires=">=3.9",
    packages=["rorqual", "rorqual.happybase"],
    package_data={"rorqual": ["py.typed", "_native.pyi", "lib/*"]},
    cffi_modules=["native/build.py:ffi"],
    install_requires=["cffi>=1.15"],
    entry_points={"pytest11": ["rorqual = rorqual.pytest"]},
    # One wheel for Python 3.9 and later.
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
    zip_safe=False,
)
