#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests under limits that would make other tests fail: small requests, short leases, clients with short
time-outs, and connections that change loops after each turn.

    tight.py                 starts build/rorqual (or RORQUAL) with SETTINGS and OWN
    tight.py --hbase         starts a real HBase with SETTINGS

Ends with 'N passed, N failed'.
"""
import os
import random
import sys

from rorqual import java, run_java

# The interval at which HBase checks its leases; its default is ten seconds.
SETTINGS = {"hbase.ipc.max.request.size": "1048576", "hbase.client.scanner.timeout.period": "2000",
            "hbase.server.thread.wakefrequency": "100"}
OWN = {"rorqual.loops.restless": "true", "rorqual.loops": "3"}
CLIENTS = (("26", ["Tight"]), ("12", ["Tight12"]))


def programs(report, zk, logs):
    os.environ["TIGHT"] = "1"
    run = f"t{random.randrange(10**6):06}"
    for client, names in CLIENTS:
        java(report, client, "write,drop", zk, run, logs / f"client{client}.log", names)


if __name__ == "__main__":
    sys.exit(run_java(SETTINGS, programs, OWN))
