#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell's groups tools, quotas, procedures and configuration: like shell.py, with the session shell/admin.rb, on a server
with hbase.quota.enabled. The expected output was recorded on a real HBase 2.6.1 with that setting.
"""
import sys

from shell import main

if __name__ == "__main__":
    sys.exit(main("admin", "-D", "hbase.quota.enabled=true"))
