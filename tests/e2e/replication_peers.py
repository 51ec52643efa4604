# SPDX-License-Identifier: Apache-2.0
"""Which rows a peer gets after each of the shell's commands that change its tables, families, namespaces and exclusions. The commands run in
one session of a shell (ours or HBase's official one). After each command a row is written to each family, and exactly the rows that the
peer's configuration selects must arrive. Used by replication.py."""
import os
import re
import subprocess

import hbase
from hbase import number, text
from rorqual import BINARY

DEADLINE = 300
FAMILIES = ("pt:f", "pt:g", "pu:f", "pu:g", "pn:x:f")
ALL = set(FAMILIES)
# Each command, and the families that are sent after it. The table pm:mark is in every configuration: its row ends a step.
STEPS = [
    ("add_peer 'p', CLUSTER_KEY => 'PEER', TABLE_CFS => {'pt' => ['f'], 'pm:mark' => []}", {"pt:f"}),
    ("append_peer_tableCFs 'p', {'pt' => ['g'], 'pu' => []}", {"pt:f", "pt:g", "pu:f", "pu:g"}),
    ("remove_peer_tableCFs 'p', {'pt' => ['f']}", {"pt:g", "pu:f", "pu:g"}),
    ("set_peer_tableCFs 'p', {'pu' => ['g'], 'pm:mark' => []}", {"pu:g"}),
    ("append_peer_tableCFs 'p', {'pu' => []}", {"pu:f", "pu:g"}),
    ("append_peer_tableCFs 'p', {'pu' => ['g']}", {"pu:f", "pu:g"}),
    ("remove_peer_tableCFs 'p', {'pu' => ['f']}", {"pu:f", "pu:g"}),
    ("remove_peer_tableCFs 'p', {'pu' => []}", set()),
    ("set_peer_namespaces 'p', ['pn']", {"pn:x:f"}),
    ("append_peer_namespaces 'p', ['pm']", {"pn:x:f"}),
    ("append_peer_tableCFs 'p', {'pn:x' => ['f']}", {"pn:x:f"}),
    ("append_peer_namespaces 'p', ['default']", ALL),
    ("remove_peer_namespaces 'p', ['pn']", ALL - {"pn:x:f"}),
    ("set_peer_replicate_all 'p', true", ALL - {"pn:x:f"}),
    ("set_peer_namespaces 'p', []", set()),
    ("set_peer_tableCFs 'p', {'pm:mark' => [], 'pt' => []}", {"pt:f", "pt:g"}),
    # It changes CONFIG and DATA only.
    ("update_peer_config 'p', {TABLE_CFS => {'pm:mark' => [], 'pt' => ['g']}}", {"pt:f", "pt:g"}),
    ("update_peer_config 'p', {CONFIG => {'k' => 'v'}}", {"pt:f", "pt:g"}),
    ("remove_peer 'p'; add_peer 'p', CLUSTER_KEY => 'PEER'", ALL),
    ("set_peer_exclude_namespaces 'p', ['pn']", ALL - {"pn:x:f"}),
    ("set_peer_exclude_tableCFs 'p', {'pt' => ['f'], 'pu' => []}", {"pt:g"}),
    ("append_peer_exclude_tableCFs 'p', {'pt' => ['g']}", set()),
    ("remove_peer_exclude_tableCFs 'p', {'pt' => ['f']}", {"pt:f"}),
    ("append_peer_exclude_namespaces 'p', ['default']", {"pt:f"}),
    ("remove_peer_exclude_namespaces 'p', ['pn']", {"pt:f", "pn:x:f"}),
    ("set_peer_replicate_all 'p', false", {"pt:f", "pn:x:f"}),
    ("set_peer_exclude_tableCFs 'p', {}", ALL),
    ("set_peer_exclude_namespaces 'p', []", ALL),
    ("set_peer_exclude_tableCFs 'p', {'pn:x' => ['f'], 'pu' => ['g']}", {"pt:f", "pt:g", "pu:f"}),
]
WAIT = "sleep 0.02 while steps.get(org.apache.hadoop.hbase.client.Get.new('go{i}'.to_java_bytes)).isEmpty; nil\n"
# With -n, which the official shell is run with, a command raises its error.
SCRIPT = WAIT + """begin; {command}; rescue => e; puts "refused: #{{e.message}}"; end
show_peer_tableCFs 'p'
get_peer_config 'p'
list_peers
steps.put(org.apache.hadoop.hbase.client.Put.new('done{i}'.to_java_bytes).addColumn('f'.to_java_bytes, 'q'.to_java_bytes, 'v'.to_java_bytes)); nil
"""
BEGIN = """connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(org.apache.hadoop.hbase.HBaseConfiguration.create); nil
steps = connection.getTable(org.apache.hadoop.hbase.TableName.valueOf('steps')); nil
"""
# The official shell of this machine is 2.4's, which prints lists shorter.
MASKS = [(r"#<Java::JavaUtil::ArrayList.*>$", "LIST"), (r"Took [0-9.]+ seconds *", "Took T"), (r"(127\.0\.0\.1|localhost):\d+", "HOST:PORT"), (r"0x[0-9a-f]+>", "0xID>"),
         (r"^(hbase|irb|main).*\d>", ">"), (r"^\d\d\d\d-\d\d-.*\n", ""), (r"^\s+at [\w.$/<>]+\(.*\)\n", ""), (r"^Caused by: .*\n", ""), (r"^\s+\.\.\. \d+ more\n", ""), (r'help "set_peer_table_cfs"', 'help "set_peer_tableCFs"')]


def call(node, method, message):
    node.client.procedure(node.client.master.call(method, message)[1][0])


def ids(first):
    return number(first, hbase.nonce()) + number(first + 1, hbase.nonce())


def create(node, name, families, scope="1"):
    ns, _, qualifier = name.rpartition(":")
    described = b"".join(text(3, text(1, f) + text(2, text(1, "REPLICATION_SCOPE") + text(2, scope))) for f in families)
    call(node, "CreateTable", text(1, text(1, text(1, ns or "default") + text(2, qualifier)) + described) + ids(3))


def make_tables(node):
    for ns in ("pm", "pn"):
        call(node, "CreateNamespace", text(1, text(1, ns)) + ids(2))
    for name, families in (("pt", "fg"), ("pu", "fg"), ("pn:x", "f"), ("pm:mark", "f")):
        create(node, name, families)
    create(node, "steps", "f", scope="0")


def put(node, family, row):
    table, _, family = family.rpartition(":")
    node.put(table, row, b"v", family=family.encode())


def arrived(node, row):
    """The families in which the row is."""
    return {family for family in FAMILIES for table, _, name in [family.rpartition(":")]
            if any(cell[0] == name.encode() for cell in node.rows(table).get(row, {}))}


class Session:
    """A shell that runs the steps, each when it is told to."""

    def __init__(self, command, folder, env, key, steps):
        script = folder / "steps.rb"
        folder.mkdir(exist_ok=True)
        parts = [SCRIPT.format(i=i, command=command_.replace("PEER", key)) for i, (command_, _) in enumerate(steps)]
        script.write_text(BEGIN + "".join(parts) + WAIT.format(i=len(steps)) + "remove_peer 'p'\nexit\n")
        self.process = subprocess.Popen([*map(str, command), str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        text=True, errors="replace", env={**os.environ, **env})

    def output(self):
        out, _ = self.process.communicate(timeout=DEADLINE)
        for pattern, replacement in MASKS:
            out = re.sub(pattern, replacement, out, flags=re.M)
        return out.splitlines()


def steps_of(source, sink, session, eventually, name, steps):
    """Runs the steps; [(the families expected, those that arrived)] and the shell's output."""
    seen = []
    try:
        for i, (command, expected) in enumerate(steps):
            row = b"%s-%02d" % (name.encode(), i)
            source.put("steps", b"go%d" % i, b"v")
            eventually(lambda: b"done%d" % i in source.rows("steps") or session.process.poll() is not None, command)  # pylint: disable=cell-var-from-loop
            assert session.process.poll() is None, f"the shell has ended: {session.output()[-20:]}"
            for family in FAMILIES:
                put(source, family, row)
            put(source, "pm:mark:f", row)
            eventually(lambda: row in sink.rows("pm:mark"), f"{name}: the mark of step {i}, {command}")  # pylint: disable=cell-var-from-loop
            seen.append((command, expected, arrived(sink, row)))
        source.put("steps", b"go%d" % len(steps), b"v")
        return seen, session.output()
    finally:
        session.process.kill()
        session.process.wait()


def clear_steps(node):
    call(node, "DisableTable", text(1, hbase.table_name("steps")) + ids(2))
    call(node, "DeleteTable", text(1, hbase.table_name("steps")) + ids(2))
    create(node, "steps", "f", scope="0")


def check(name, seen):
    wrong = [f"{command}: {sorted(got)} instead of {sorted(expected)}" for command, expected, got in seen if got != expected]
    assert not wrong, f"{name}: {wrong}"


def ours(zk):
    return [BINARY, "shell", "-n", "--zk", zk]
