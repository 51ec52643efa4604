# SPDX-License-Identifier: Apache-2.0
"""A description of the machine on which figures were measured."""
import os
import pathlib
import re


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return (f"{os.cpu_count()} cores ({model[1] if model else 'unknown'}), "
            f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30} GiB, Linux {os.uname().release}")
