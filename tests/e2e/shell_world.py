# SPDX-License-Identifier: Apache-2.0
"""What the tests of `rorqual shell` share: our shell, or HBase's own; a server, or a running cluster."""
import os
import re
import subprocess

from rorqual import BINARY, Server, fail_hard

DEADLINE = 1800  # seconds; only for a shell that hangs


def shell(*arguments, text="", **environment):
    return subprocess.run([BINARY, "shell", *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=DEADLINE, check=False, env={**os.environ, **environment})


# Removes leftovers of a script, for the next script on the same cluster.
CLEANING = """
list.each { |t| (disable t if is_enabled t); drop t }
Master.call('GetCompletedSnapshots')[:snapshots].each { |s| delete_snapshot s[:name] }
Master.call('ListNamespaces')[:namespaceName].each { |n| drop_namespace n unless ['default', 'hbase'].include? n }
%w[n. t. u. r. exceed].each { |r| deleteall 'hbase:quota', { ROWPREFIXFILTER => r } } if exists 'hbase:quota'
Peers.all.each { |p| remove_peer p[:id] } if list_peers
balance_switch true
normalizer_switch true
"""


def clean(zk):
    """Removes what a script has made on a running cluster."""
    done = shell("-n", "-y", "--zk", zk, text=CLEANING)
    if done.returncode != 0:
        fail_hard(f"{zk} cannot be emptied: {done.stdout}{done.stderr}")


# HBase's own shell, if it is to run the scripts: its command, and the cluster.
OFFICIAL = []


def official(zk, command):
    OFFICIAL[:] = [zk, command]


def script(text, *arguments, **environment):
    """Runs a script in our shell in memory, or in HBase's shell on a cluster that is emptied afterwards."""
    if not OFFICIAL:
        return shell("-n", *arguments, "memory:", text=text, **environment)
    zk, command = OFFICIAL
    done = subprocess.run([*command, zk, "-n", *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE,
                          check=False, env={**os.environ, **environment})
    clean(zk)
    return done


class Cluster:
    """A running cluster that is emptied after each script."""

    def __init__(self, zk):
        self.zk = zk

    def require_empty(self):
        tables = shell("--zk", self.zk, text="puts list.length\n").stdout
        if not re.search(r"(?m)^0$", tables):
            fail_hard(f"{self.zk} has tables, which would be removed:\n{tables}")

    def kill(self):
        clean(self.zk)


def with_server(folder, name, arguments, work):
    server = Cluster(os.environ["ZK"]) if "ZK" in os.environ else Server(folder / name, folder / f"{name}.log", *arguments)
    try:
        return work(server)
    finally:
        server.kill()
