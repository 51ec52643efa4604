#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every method of Java's Admin against outcomes recorded from a real HBase 2.6.1: the program AdminCalls of tests/java.

    admin_calls.py                 starts build/rorqual (or RORQUAL), and a second one as a replication peer
    admin_calls.py --hbase         the same on a real HBase, which must pass except for the intended differences
    RECORD=FILE admin_calls.py --hbase    records HBase's outcomes: tests/java/client26/src/main/resources/admin-calls.txt
    METHODS=REGEX                  these methods only

Ends with 'N passed, N failed'.
"""
import os
import sys

from rorqual import Server, java, run_java

# Admin's calls about quotas need this setting.
SETTINGS = {"hbase.quota.enabled": "true"}


def calls(report, zk, folder):
    """Runs AdminCalls with as many retries as when HBase's outcomes were recorded, because messages contain the number."""
    sink = Server(folder / "sink", folder / "sink.log")
    try:
        os.environ.update({"SINK": sink.zk, "STEP_TIMEOUT": "900", "RETRIES": "8"})
        java(report, "26", "write", zk, "calls", folder / "client.log")
    finally:
        sink.kill()


if __name__ == "__main__":
    sys.exit(run_java(SETTINGS, calls))
