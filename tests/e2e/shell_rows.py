# SPDX-License-Identifier: Apache-2.0
"""Rows, scanners and messages of `rorqual shell`: what its commands send, and what they accept. own_shell.py runs the tests."""
import re
import time
import urllib.request

from rorqual import ROOT, Server
from shell_world import DEADLINE, shell, with_server


def scans_that_are_left_are_closed(folder):
    """A block on a scan ends by break, return, throw or an exception; no scanner stays open on the server."""
    server = Server(folder / "left", folder / "left.log", "--http", "127.0.0.1:0")
    try:
        text = ("create 't', 'f'\n(1..9).each { |i| put 't', \"r#{i}\", 'f:q', 'v' }\ndef rows; Rows.scan('t', { caching: 1 }, '') { |c| yield c[0][0] }; end\n"
                "def third; rows { |k| return k if k == 'r3' }; end\n"
                "rows { |k| break }; p third; p(catch(:t) { rows { |k| throw :t, k } }); begin; rows { |k| raise k }; rescue => e; p e.message; end\n"
                "rows { |a| rows { |b| break if b == 'r2' }; break if a == 'r4' }; n = 0; rows { |k| n += 1 }; p n\n"
                "begin; rows { |k| Rows.get('none', 'r', '') }; rescue HBaseError => e; p e.java_class; end\nn = 0; get_table('t').count { |c, k| n += 1; break if c > 2 }; p n\n")
        said = shell("-n", "--zk", server.zk, text=text)
        lines = said.stdout.splitlines()
        for wanted in ('"r3"', '"r1"', "9", '"org.apache.hadoop.hbase.TableNotFoundException"'):
            if wanted not in lines:
                return f"no {wanted} in {said.stdout[-1500:]} {said.stderr}"
        deadline, open_ones = time.monotonic() + DEADLINE, []
        while open_ones != ["0"] and time.monotonic() < deadline:  # the last scanner's end may not be handled yet
            with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
                open_ones = re.findall(r"(?m)^rorqual_scanners (\d+)", page.read().decode())
        return None if open_ones == ["0"] else f"scanners: {open_ones}"
    finally:
        server.kill()


def a_scanner_outlives_its_connection(folder):
    """A scanner whose connection was closed gives an error, not a crash. Scanners that are garbage-collected or closed
    twice do not affect others."""
    server = Server(folder / "outlives", folder / "outlives.log")
    try:
        said = shell("-n", "--zk", server.zk, text=f"""create 't', 'f'
(1..9).each {{ |i| put 't', "r#{{i}}", 'f:q', 'v' }}
one = Rows.open('t', {{ caching: 1 }}, '')
Wire.visit('{server.zk}', '/hbase')
other = Rows.open('t', {{ caching: 1 }}, '')
Wire.leave
p other.next[0][0]
begin; 3.times {{ other.next }}; rescue HBaseError => e; p e.message; end
100.times {{ Rows.open('t', {{ caching: 1 }}, '') }}
GC.start
p one.next[0][0], one.next[0][0]
one.close; one.close
p one.next
""")
        lines = [line for line in said.stdout.splitlines() if line[:1] in '"n']
        return None if lines == ['"r1"', '"the scan\'s connection was closed"', '"r1"', '"r2"', "nil"] else f"{lines} {said}"
    finally:
        server.kill()


def messages_of_calls(_):
    """Every method that a command calls has message definitions: otherwise only a user would find a wrong name."""
    protos = "".join(p.read_text() for p in (ROOT / "proto").glob("*.proto"))
    known = set(re.findall(r"(?m)^\s*message (\w+)", protos))
    renamed = {}
    for prelude in (ROOT / "src/shell/prelude").glob("*.rb"):
        table = re.search(r"MESSAGES = \{(.*?)\}", prelude.read_text(), re.S)
        renamed.update(re.findall(r"'(\w+)' => '(\w+)'", table.group(1)) if table else [])
    for prelude in (ROOT / "src/shell/prelude").glob("*.rb"):
        for method in re.findall(r"(?:Master|Servers)\.call\((?:[^'\n(]|\([^)\n]*\))*'(\w+)'", prelude.read_text()):
            name = renamed.get(method, method)
            if not {f"{name}Request", f"{name}Response"} <= known:
                return f"{prelude.name}: {method} has no {name}Request and {name}Response"
    return None


# The name of a message, its bytes as a Ruby string, and the result or error of decoding the bytes.
MALFORMED = [
    ("RegionInfo", r"\x08\x05", "a malformed RegionInfo: it has no table_name"),
    ("TableName", r"\x0a\x01a\x12\x01b", None),
    ("TableName", r"\x08\x05\x12\x01b", "a malformed TableName"),
    ("TableName", r"\x0a\x05a", "a malformed TableName"),
    ("RegionInfo", r"\x08\x05\x10\x07", "a malformed RegionInfo"),
    ("RegionInfo", r"\x0a\x01\x05\x12\x06\x0a\x01a\x12\x01b", "a malformed RegionInfo"),
    ("ListNamespacesResponse", r"\x08\x05", "a malformed ListNamespacesResponse"),
]


def malformed_messages_are_refused(_):
    """Fields of another type and missing fields cause an error of the message, not of the Ruby code that uses it."""
    text = "".join(f"begin; Wire.decode('{name}', \"{bytes_}\"); puts 'decoded'; rescue => e; puts e.message; end\n" for name, bytes_, _ in MALFORMED)
    done = shell("-n", "memory:", text=text)
    got = [line for line in done.stdout.splitlines() if line and not line.startswith(("hbase:", "=>"))]
    wanted = [why or "decoded" for _, _, why in MALFORMED]
    return None if got == wanted else f"{got} instead of {wanted}"


def a_message_is_made_within_another(_):
    """By to_s of a value, which may also fail."""
    text = ("class Name; def initialize(good); @good = good; end\n"
            "def to_s; raise 'no name' unless @good; Wire.encode('TableName', { namespace: 'n' * 1000, qualifier: 'q' }); 'inner'; end; end; nil\n"
            "def encoded(name); Wire.encode('GetTableStateRequest', { table_name: { namespace: 'o' * 200, qualifier: name } }); end; nil\n"
            "begin; encoded(Name.new(false)); rescue => e; puts '#' + e.message; end; nil\n"
            "puts '#' + Wire.decode('GetTableStateRequest', encoded(Name.new(true)))[:table_name].map { |_, v| v[0, 7] + v.length.to_s }.join(' '); nil\n")
    out = shell("-n", "memory:", text=text).stdout
    said = [line for line in out.splitlines() if line.startswith("#")]
    return None if said == ["#no name", "#ooooooo200 inner5"] else out[-700:]


def changes_without_cells_are_refused(_):
    """Except deletes, which delete the row; and changes of rows whose key is not a string."""
    text = "create 't', 'f'\nput 't', 'r', 'f:q', 'v'\n"
    calls = [("mutate('t', 2, 'r', [], '')", "No columns to insert"), ("mutate('t', 1, 'r', [], '')", "Invalid arguments, zero columns specified"),
             ("mutate_all('t', 2, ['r'], [], '')", "No columns to insert"), ("mutate_all('t', 0, ['r'], [], '')", "Invalid arguments, zero columns specified"),
             ("mutate_all('t', 3, [5], [], '')", "5 is no String"), ("mutate_all('t', 3, ['r', :s], [], '')", "s is no String"),
             ("mutate_all('t', 3, ['r' * 40000], [], '')", "Row length 40000 is > 32767"), ("mutate_all('t', 3, [], [], '')", "nil"),
             ("mutate_all('t', 3, ['r'], [], '')", "nil")]
    text += "".join(f"puts(begin; Rows.{call}.inspect; rescue ArgumentError, TypeError => e; e.message; end)\n" for call, _ in calls)
    out = shell("-n", "memory:", text=text + "puts \"left #{count('t')}\"\n").stdout
    got = [line for line in out.splitlines() if line and not line.startswith(("hbase:", "=>", "Took", "Created"))]
    return None if got[:len(calls)] == [wanted for _, wanted in calls] and got[-1] == "left 0" else f"{got}"


def rows_of_a_prefix_are_deleted(_):
    """In batches: fewer rows than a batch, exactly one batch, several and a rest; rows next to the prefix and other
    columns stay."""
    text = "create 't', 'f', 'g'\nput 't', 'oz', 'f:q', 'v'\nput 't', 'q', 'f:q', 'v'\n"
    # Other rows each time, because a put in the same millisecond as a delete of its row is hidden.
    for rows, cache in [(0, 3), (2, 3), (3, 3), (7, 3), (1, 1), (250, 100)]:
        prefix = f"p{rows}\\x00"
        text += (f"{rows}.times {{ |i| put 't', \"{prefix}#{{i}}\", 'f:q', 'v'; put 't', \"{prefix}#{{i}}\", 'g:q', 'v' }}\n"
                 f"deleteall 't', {{ ROWPREFIXFILTER => \"{prefix}\", 'CACHE' => {cache} }}, 'f:q'\n"
                 "puts \"left #{count('t')} #{count('t', COLUMNS => 'f')}\"\n"
                 f"deleteall 't', {{ ROWPREFIXFILTER => \"{prefix}\" }}\n"
                 "puts \"then #{count('t')}\"\n")
    out = shell("-n", "memory:", text=text).stdout
    left = re.findall(r"(?m)^left (\d+) (\d+)", out)
    if left != [(str(rows + 2), "2") for rows in (0, 2, 3, 7, 1, 250)]:
        return f"left: {left}"
    then = re.findall(r"(?m)^then (\d+)", out)
    return None if then == ["2"] * 6 else f"then: {then}"


def groups_of_servers(folder):
    """The rsgroup commands reach RSGroupAdminService; the texts are those of HBase's commands."""
    text = ("create 't', 'f'\nadd_rsgroup 'g1'\nalter_rsgroup_config 'g1', {METHOD => 'set', 'a' => 'b'}\nshow_rsgroup_config 'g1'\n"
            "move_tables_rsgroup 'default', ['t']\nget_table_rsgroup 't'\nrename_rsgroup 'g1', 'g2'\nlist_rsgroups\n"
            "create_namespace 'n'\nmove_namespaces_rsgroup 'g2', ['n']\nget_namespace_rsgroup 'n'\nget_rsgroup 'g2'\n"
            "drop_namespace 'n'\nremove_rsgroup 'g2'\nlist_rsgroups 'g.*'\n")
    expected = ["'KEY'  'VALUE'\n a b\n1 row(s)", "default\n1 row(s)", "NAME  SERVER / TABLE\n g2 \n default server ",
                "\n  table t\n", "g2\n1 row(s)", "SERVERS\n0 row(s)\nTABLES\n0 row(s)", "NAME  SERVER / TABLE\n0 row(s)"]
    endpoint = "hbase.coprocessor.master.classes=org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint"
    done = with_server(folder, "groups", ("-D", endpoint), lambda server: shell("-n", "--zk", server.zk, text=text))
    at = 0
    for part in expected:
        at = done.stdout.find(part, at)
        if at < 0:
            return f"no {part!r} in {done.stdout}"
    return None if done.returncode == 0 else f"exit code {done.returncode}"


# Prints the parts that are asked for in each GetClusterStatus.
STATUS_CALLS = """module Wire
  class << self
    alias_method :plain, :call
    def call(host, port, service, method, bytes)
      puts "asked #{Wire.decode('GetClusterStatusRequest', bytes)[:options].join(' ')}." if method == 'GetClusterStatus'
      plain(host, port, service, method, bytes)
    end
  end
end
"""

STATUS_COMMANDS = ("alter 't', NAME => 'g'", "list_deadservers", "list_liveservers", "list_unknownservers", "clear_deadservers", "rit",
                   "update_all_config", "get_slowlog_responses '*'", "list_regions 't'")


def commands_ask_for_the_parts_of_the_status_that_they_show(_):
    """Most of the status is the loads of regions; a server may have 100,000."""
    text = "create 't', 'f'\n" + STATUS_CALLS + "".join(f"puts 'beg' + 'in'\n{command}\n" for command in STATUS_COMMANDS)
    said = shell("-n", "memory:", text=text)
    parts = re.split(r"(?m)^begin$", said.stdout)[1:]
    if said.returncode != 0 or len(parts) != len(STATUS_COMMANDS):
        return f"{said}"
    for command, part in zip(STATUS_COMMANDS, parts):
        asked = re.findall(r"(?m)^asked (.*)\.$", part)
        if not asked or "" in asked or ("LIVE_SERVERS" in " ".join(asked)) != command.startswith("list_regions"):
            return f"{command}: {asked}: {part}"
    return None


TESTS = (scans_that_are_left_are_closed, a_scanner_outlives_its_connection, messages_of_calls, malformed_messages_are_refused, a_message_is_made_within_another,
         rows_of_a_prefix_are_deleted, changes_without_cells_are_refused, groups_of_servers, commands_ask_for_the_parts_of_the_status_that_they_show)
