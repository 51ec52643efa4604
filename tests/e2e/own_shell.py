#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual shell` against what the official shell of HBase 2.6 printed for the same scripts: errors, values, prompts, exit codes.

    own_shell.py                    starts build/rorqual (or RORQUAL) on a temporary folder for each script
    ZK=host:port own_shell.py       our shell on a running cluster without tables: a real HBase 2.6.1 with hbase.quota.enabled,
                                    chores of quotas every few hundred milliseconds, and RSGroupAdminEndpoint. Everything that the
                                    scripts make is removed. HBASE_MASKS and HBASE_DIFFERS below list outputs that differ between
                                    HBase and Rorqual.
    ZK=host:port EXPECTED=DIR OFFICIAL=COMMAND own_shell.py --record; ZK=host:port EXPECTED=DIR own_shell.py
                                    the official shell's output on that cluster, into DIR, and ours against it
    NAMES=session,options           only these scripts
    DEADLINE=1200                   seconds for each script, for a busy machine
    ZK=host:port OFFICIAL=COMMAND own_shell.py --scripts
                                    the tests whose expectation is HBase's Ruby, in HBase's own shell on that cluster (make shell-scripts)
    OFFICIAL=COMMAND own_shell.py --record
                                    takes the output of the official shell as the expected one: COMMAND ZOOKEEPER ARGUMENTS… runs
                                    HBase 2.6's shell, on our server

The sessions shell/session.rb and shell/admin.rb are compared section by section, the scripts of shell/own line by line. The prompt
is tried in a terminal of tmux. Ends with 'N passed, N failed'.
"""
import contextlib
import difflib
import fcntl
import http.server
import json
import os
import pathlib
import re
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import urllib.request
import time

import shell_files
import shell_load
import shell_scripts
import shell_slow
import shell_tables
import shell_terminal
from rorqual import BINARY, ROOT, Report, Server, fail_hard, read_terminal
from shell import FOLDER, MASKS, sections
from shell_load import script, shell
from shell_terminal import Terminal

OWN = FOLDER / "own"
EXPECTED = pathlib.Path(os.environ.get("EXPECTED", OWN))
DEADLINE = int(os.environ.get("DEADLINE", "300"))
QUOTAS = ("-D", "hbase.quota.enabled=true")
GROUPS = ("-D", "hbase.coprocessor.master.classes=org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint")
# name: (arguments of the shell, arguments of the server)
SCRIPTS = {"commands": ([], QUOTAS), "prompts": ([], QUOTAS), "options": ([], QUOTAS), "metrics": ([], ("--http", "127.0.0.1:0")), "guide": ([], ()), "details": ([], ()), "language": ([], ()), "java": ([], ()), "client": ([], ()), "requests": ([], ()), "numbers": ([], ()), "scripts": ([], ()), "wrong": ([], ()), "operator": ([], ()), "nil": ([], ()), "arguments": ([], QUOTAS), "rest": ([], QUOTAS),
           "rsgroups": ([], GROUPS), "quotas": ([], (*QUOTAS, "-D", "hbase.master.quotas.observer.chore.period=100"))}
SESSIONS = {"session": (), "admin": QUOTAS}

MASKS_OF_SCRIPTS = [
    (r"Took [0-9.]+ seconds *", "Took T"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "CLOCK"),
    (r"(?<=timestamp=)\d{4}-\d\d-\d\dT\d\d:\d\d(?=,)", "CLOCK"),
    (r"\b\d{13}\b", "MS"),
    (r"\b[0-9a-f]{32}\b", "ENCODED"),
    (r"0x[0-9a-f]+>", "0xID>"),
    # Calls about absent namespaces and peers with longer names fail before a procedure is made: docs/compatibility.md.
    (r"org\.apache\.hadoop\.hbase\.ReplicationPeerNotFoundException: x{250}(?!x)", "LONG"),
    (r"(?<!x)x{255}(?!x)", "LONG"),
    (r"x{300}", "LONG"),
    (r"(?<=^ MILLIS_BETWEEN_NEXTS )\d+$", "N"),
    (r"127\.0\.0\.1([:,])\d+", r"127.0.0.1\1PORT"),
    # HBase's hint names a command that does not exist: docs/shell.md.
    (r'help "set_peer_table_cfs"', 'help "set_peer_tableCFs"'),
    (r"^(Updating all regions|\d+/\d+ regions updated\.|Done\.).*\n", ""),
]

SIZES = (r"^ (t|ns:v) \d+( \d+ (?:true|false) \w+|)$", r" \1 N\2")

# Masks for both outputs, if our shell ran on HBase and the expected output is from Rorqual.
HBASE_MASKS = [
    # In HBase the message contains the exception's stack.
    (r"^\s+at [\w.$/<>]+\(.*\)\n", ""),
    (r"^\s+at java\..*\n", ""),
    (r"^Caused by: .*\n", ""),
    (r"^\s+\.\.\. \d+ more\n", ""),
    (r"(?:127\.0\.0\.1|localhost)([:,])(?:PORT|\d+)", r"HOST\1PORT"),
    # The cluster has quotas; some expectations come from a server without quotas.
    (r"^(?:\n?QUOTAS *\n(?:0\n)?0 row\(s\)|Quota is disabled)$", "no quota"),
    (r'^(=> "|)(?:127\.0\.0\.1|localhost)("|)$', r"\1HOST\2"),
    (r"evictedBlocks=\d+, maxCacheSize=\d+", "evictedBlocks=N, maxCacheSize=N"),
    (r"[\d.]+ average load", "N average load"),
    (r"(Column family \S+ does not exist in region \S+ in table '\w+'), \{.*$", r"\1"),
    # HBase refuses an illegal name with an error that clients retry.
    (r"(ERROR: )\S+Exception: (Illegal character .* Namespaces may only contain)", r"\1\2"),
    # Sizes of files; HBase also counts those of tables that had the name before.
    SIZES,
    # hbase:meta: the second sequence number of a region on HBase is the first on Rorqual.
    (r"(info:seqnumDuringOpen, .*?value=)\S+", r"\1N"),
]
# Statements whose output differs on HBase, and the reason.
UNFLUSHED = "HBase's secondary replicas have no rows before a flush"
SIZED = "HBase also lists tables that earlier scripts have dropped"
HANDLERS = "HBase lists its own tasks and idle handlers"
BORDERS = "Rorqual reports the end of a region in a call of its own"
HBASE_DIFFERS = {
    "list_procedures": "HBase keeps finished procedures of all kinds, of the other scripts, too",
    "regioninfo 'x'": "HBase's master fails at a name without a table",
    "list_quota_snapshots": "the cluster has quotas",
    "list_snapshot_sizes": "the cluster has quotas",
    "list_quota_table_sizes": SIZED,
    "list_quota_table_sizes 5": SIZED,
    "list_quota_table_sizes({TABLE => 't'})": SIZED,
    "list_rsgroups '.*'": "HBase lists groups in the order of its map",
    "get 't', 'a', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}": UNFLUSHED,
    "scan 't', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}": UNFLUSHED,
    "scan 't', {REGION_REPLICA_ID => 1}": UNFLUSHED,
    "count 't', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}": UNFLUSHED,
    "processlist": HANDLERS,
    "processlist 'all'": HANDLERS,
    "processlist 'handler'": HANDLERS,
    "scan 'n', {ALL_METRICS => true}": BORDERS,
    "scan 'n', {ALL_METRICS => true, REVERSED => true, FILTER => \"PrefixFilter('c')\"}": BORDERS,
}

# The same, if both shells ran on the same HBase.
FILTERS = "JRuby's text depends on whether the JVM shows it setFilter's bridge method, too"
BOTH_MASKS = [
    (r"[\d.]+ average load", "N average load"),
    # Which host counts as the local machine: docs/shell.md.
    (r"^ (REMOTE_\w+|BYTES_IN_REMOTE_RESULTS) \d+$", r" \1 N"),
    # Log4j lines of the official shell.
    (r"^[\d:.]+ \[main\] ERROR .*\n(?:java\..*\n)?(?:\s+at .* ~?\[.*\]\n|\s+\.\.\. \d+ more\n)*", ""),
    *HBASE_MASKS[:4],
    SIZES,
]
BOTH_DIFFER = {statement: HBASE_DIFFERS[statement] for statement in ("list_procedures", "processlist", "processlist 'all'", "processlist 'handler'")} | {
    "threads = (1..3).map { |i| Thread.new { put 'old', \"thread-#{i}\", 'f:v', i } }; threads.each(&:join).length":
        "the official shell's threads write at the same time",
    "get 't', 'r', {FILTER => 5}": FILTERS,
    "scan 't', {FILTER => 5}": FILTERS,
}


def on_hbase():
    return "ZK" in os.environ and EXPECTED == OWN


def known():
    """The masks and the differing statements for this comparison."""
    if "ZK" not in os.environ:
        return [], {}
    return (HBASE_MASKS, HBASE_DIFFERS) if on_hbase() else (BOTH_MASKS, BOTH_DIFFER)


def masked(text, masks):
    for pattern, replacement in masks:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return text


def masked_session(text):
    # The version is compared, unlike in shell.py, where each shell has its own version.
    text = masked(text, MASKS)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


def run(zk, arguments, stdin=subprocess.DEVNULL):
    official = os.environ.get("OFFICIAL")
    command = [*shlex.split(official), zk] if official else [BINARY, "shell", "--zk", zk]
    done = subprocess.run([*command, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="backslashreplace", timeout=DEADLINE, check=False)
    return f"{done.stdout}\nexit code {done.returncode}\n"


def run_on_terminal(zk, script):
    """The output on a terminal of 100 columns; standard input is empty."""
    official = os.environ.get("OFFICIAL")
    command = [*shlex.split(official), zk] if official else [BINARY, "shell", "--zk", zk]
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 100, 0, 0))
    process = subprocess.Popen([*command, script], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    text = read_terminal(ours)
    process.wait(DEADLINE)
    return text.decode(errors="backslashreplace").replace("\r\n", "\n")


def session_output(folder, name, server):
    start = folder / f"{name}.rb"
    start.write_text(f"eval(File.read('{FOLDER}/{name}.rb'), binding)\nexit\n")
    return masked_session(run(server.zk, ["-n", str(start)]))


def difference(expected, got):
    lines = list(difflib.unified_diff(expected, got, "official", "ours", lineterm="", n=1))[2:]
    return " | ".join(lines[:12])


def judge_session(report, name, expected, got):
    expected, got = (masked(text, known()[0]) for text in (expected, got))
    expected, got = sections(expected), sections(got)
    for section, lines in expected.items():
        wrong = "the session did not get here" if section not in got else None
        if wrong is None and got[section] != lines:
            wrong = difference(lines, got[section])
        report.outcome(f"own_shell/{name}/{section}", wrong)


def statements(text):
    """Splits the output into statements: a prompt with '>' begins one."""
    return re.split(r"(?m)^(?=hbase:\d+:\d+>)", text)


def judge_script(report, name, expected, got):
    masks, differing = known()
    expected, got = (masked(text, masks) for text in (expected, got))
    expected, got = statements(expected), statements(got)
    for i, part in enumerate(expected):
        title = part.splitlines()[0].strip() if part.strip() else "begin"
        mine = got[i] if i < len(got) else ""
        if title.partition("> ")[2] in differing:
            print(f"differs: {title}: {differing[title.partition('> ')[2]]}")
            continue
        report.outcome(f"own_shell/{name}/{title[:70]}", None if mine == part else difference(part.splitlines(), mine.splitlines()))
    if len(got) > len(expected):
        report.outcome(f"own_shell/{name}/end", f"{len(got) - len(expected)} statements more")


class Cluster:
    """A running cluster that is emptied after each script."""

    def __init__(self, zk):
        self.zk = zk

    def require_empty(self):
        tables = shell("--zk", self.zk, text="puts list.length\n").stdout
        if not re.search(r"(?m)^0$", tables):
            fail_hard(f"{self.zk} has tables, which would be removed:\n{tables}")

    def kill(self):
        shell_load.clean(self.zk)


def with_server(folder, name, arguments, work):
    server = Cluster(os.environ["ZK"]) if "ZK" in os.environ else Server(folder / name, folder / f"{name}.log", *arguments)
    try:
        return work(server)
    finally:
        server.kill()


def peers_output(folder, server):
    """Runs the script with a second server as its replication peer."""
    peer = Server(folder / "peer", folder / "peer.log")
    try:
        script = folder / "peers.rb"
        script.write_text((OWN / "peers.rb").read_text().replace("PEER", peer.zk))
        return run(server.zk, [str(script)])
    finally:
        peer.kill()


def outputs(folder):
    """Yields name, expected file, output, and function that compares."""
    chosen = os.environ.get("NAMES", "session,admin,commands,prompts,options,metrics,guide,details,language,java,client,requests,numbers,scripts,wrong,operator,nil,arguments,rest,rsgroups,quotas,peers,terminal").split(",")
    for name, arguments in SESSIONS.items():
        if name not in chosen:
            continue
        got = with_server(folder, name, arguments, lambda server, name=name: session_output(folder, name, server))
        yield name, EXPECTED / f"{name}.expected", got, judge_session
    for name, (options, arguments) in SCRIPTS.items():
        if name not in chosen:
            continue
        got = with_server(folder, name, arguments,
                          lambda server, name=name, options=options: run(server.zk, [*options, str(OWN / f"{name}.rb")]))
        yield name, EXPECTED / f"{name}.expected", masked(got, MASKS_OF_SCRIPTS), judge_script
    if "peers" in chosen:
        got = with_server(folder, "peers", (), lambda server: peers_output(folder, server))
        yield "peers", EXPECTED / "peers.expected", masked(got, MASKS_OF_SCRIPTS), judge_script
    if "terminal" not in chosen:
        return
    got = with_server(folder, "terminal", (), lambda server: run_on_terminal(server.zk, str(OWN / "terminal.rb")))
    yield "terminal", EXPECTED / "terminal.expected", masked(got, MASKS_OF_SCRIPTS), judge_script


# --- features that only our shell has ------------------------------------------------------------------------------------------


def memory_and_folder(folder):
    """`memory:` is empty at each start; `file:` keeps its rows, and a server can open the folder afterwards."""
    put = "create 't', 'f'\nput 't', 'r', 'f:q', 'v'\n"
    for _ in range(2):
        if "1 row(s)" not in shell("-n", "memory:", text=put + "scan 't'\n").stdout:
            return "memory: has no row"
    where = f"file:{folder / 'local'}"
    if shell("-n", where, text=put).returncode != 0:
        return "cannot write"
    if "value=v" not in shell("-n", where, text="get 't', 'r'\n").stdout:
        return "the row is gone"
    server = Server(folder / "local", folder / "local.log")
    seen = shell("-n", "--zk", server.zk, text="get 't', 'r'\n").stdout
    server.kill()
    return None if "value=v" in seen else "a server does not have the row"


def closed_output_does_not_reach_the_folder(folder):
    """With closed standard streams, no file of the folder gets their descriptors: nothing that is printed damages it."""
    place = folder / "closed"
    text = "create 't', 'f'\n" + "".join(f"put 't', 'r{i}', 'f:q', 'v'\n" for i in range(200)) + "flush 't'\n"
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        subprocess.run(["sh", "-c", f"\"$0\" shell file:{place} {closed}", BINARY], input=text, text=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=DEADLINE, check=False)
        sound = subprocess.run([BINARY, "fsck", "--blocks", str(place)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if sound.returncode != 0:
            return f"{closed}: {sound.stdout}"
    return None


def a_script_that_cannot_be_read_is_an_error(folder):
    for options in (["-n"], [], ["--ruby"]):
        done = shell(*options, "memory:", str(folder))
        if done.returncode != 1 or not re.search(f"(IOError: {folder}: Is a directory|LoadError: no such file to load -- {folder})", done.stdout + done.stderr):
            return f"{options}: {done}"
    return None


def folder_in_memory(shell_process):
    """The folder of memory: of a process that has opened it."""
    for at in pathlib.Path(f"/proc/{shell_process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if re.search(r"/rorqual-memory-\w{6}$", os.readlink(at)):
                return pathlib.Path(os.readlink(at))
    raise AssertionError("no folder in memory")


def a_killed_shell_leaves_no_memory(_):
    """The next shell removes the folder, and not those of shells that run."""
    processes = []
    try:
        for _i in range(2):
            processes.append(subprocess.Popen([BINARY, "shell", "-n", "memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            processes[-1].stdin.write("create 't', 'f'; puts 'ready'\n")
            processes[-1].stdin.flush()
            while "ready" not in (line := processes[-1].stdout.readline()):
                if not line:
                    return "a shell has ended"
        running, killed = processes
        folders = [folder_in_memory(process) for process in processes]
        killed.kill()
        killed.wait()
        begun = time.monotonic()
        while folders[1].exists() and time.monotonic() < begun + DEADLINE:  # another shell may be removing it
            if "=> 0" not in shell("-n", "memory:", text="list.length\n").stdout:
                return "a third shell fails"
        if folders[1].exists():
            return f"{folders[1]} is left"
        said, _err = running.communicate("put 't', 'r', 'f:q', 'v'; flush 't'; puts count('t')\n")
        if running.returncode != 0 or not re.search("(?m)^1$", said):
            return f"the shell that runs: {said}"
        return f"{folders[0]} is left" if folders[0].exists() else None
    finally:
        for process in processes:
            process.kill()
            process.communicate()


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


def other_forms(_):
    rows = "create 't', 'f'\nput 't', 'r', 'f:q', 'a,\"b'\nscan 't'\n"
    if '"value":"a,\\"b"' not in shell("-n", "--json", "memory:", text=rows).stdout:
        return "no JSON"
    if 'r,f:q,' not in shell("-n", "--csv", "memory:", text=rows).stdout:
        return "no CSV"
    return None if '\nr\tf:q\t' in shell("-n", "--tsv", "memory:", text=rows).stdout else "no TSV"


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


def blocks_see_variables_of_earlier_statements(_):
    """As in Ruby; a variable whose assignment is not executed is nil, not a leftover of an earlier statement."""
    text = ("p [0].map { |x| x }\na = 1\n[5].each { |t| p [a, t] }\nb = 2\nadd = lambda { |n| b += n + a }\nadd.call(3)\n[6].each { |t| c = 7; [8].each { |u| p [a, b, t, c, u] } }\n"
            "puts [1, 2].map { |x| x.to_s * 3 }.inspect\ny = z = w = 5 if nil\np [y, z, w]\n"
            + "".join(f"v{i} = {i}\n" for i in range(60)) + "create 't', 'f', SPLITS => (1..3).map { |i| \"#{v59}#{i}\" }\np (1..2).map { |i| v0 + v58 + v59 + i }\n")
    said = script(text)
    lines = [line.strip() for line in said.stdout.splitlines()]
    for wanted in ("[1, 5]", "[1, 6, 6, 7, 8]", "[nil, nil, nil]", "Created table t", "[118, 119]"):
        if wanted not in lines:
            return f"no {wanted} in {said.stdout[-1500:]} {said.stderr}"
    return None


def exit_codes(_):
    for text, options, code in [("exit 7\n", ["-n"], 7), ("exit 7\n", [], 0), ("get 'none', 'r'\n", ["-n"], 1),
                                ("get 'none', 'r'\n", [], 0), ("1 +\n", ["-n"], 1)]:
        got = shell(*options, "memory:", text=text).returncode
        if got != code:
            return f"{text!r} with {options}: {got} instead of {code}"
    nowhere = shell("-n", "file:", text="list\n")
    if nowhere.returncode != 2 or "file: needs a folder" not in nowhere.stderr:
        return f"file: without a folder: {nowhere}"
    nobody = shell("-n", "--zk", "127.0.0.1:1", text="list\n")
    return None if nobody.returncode == 1 and "127.0.0.1" in nobody.stderr else f"without a server: {nobody}"


def floats_in_text(_):
    """As JRuby prints them; numbers of more than 15 digits have 51 bits of precision."""
    cases = {"0.1": "0.1", "1e100": "1.0e+100", "2e300": "2.0e+300", "1e16": "10000000000000000.0", "1e18": "1000000000000000000.0",
             "1e19": "1.0e+19", "0.0001": "0.0001", "0.00012": "0.00012", "1e-5": "1.0e-05", "-1.5": "-1.5", "-0.0": "-0.0", "1/3.0": "0.3333333333333333",
             "2/3.0": "0.6666666666666666", "2.0**70": "1.1805916207174113e+21", "1234567.891": "1234567.891", "100.0": "100.0",
             "1/0.0": "Infinity", "-1/0.0": "-Infinity", "0/0.0": "NaN", "123456789012345.0": "123456789012345.0", "[0.7, 2.5]": "[0.7, 2.5]",
             "1.7976931348623e308": "1.7976931348623e+308", "2.2250738585072e-308": "2.2250738585072e-308"}
    out = shell("-n", "memory:", text="".join(f"x = {c}; p x; nil\n" for c in cases)).stdout
    got = [line for line in out.splitlines() if line and not line.startswith("hbase:")]
    wrong = [f"{c}: {g} instead of {want}" for (c, want), g in zip(cases.items(), got) if g != want]
    # Printed numbers are read back as the same number, except for the two bits that mruby drops.
    again = shell("-n", "memory:", text="x = 1.0\n3000.times { |i| x = (x * 1.0173 + i) % 1e9 / 7 - i; puts \"#{x} #{Bytes.toHex(Bytes.toBytes(x))}\" }; nil\n").stdout
    pairs = re.findall(r"(?m)^(-?[0-9.e+-]+) ([0-9a-f]{16})$", again)
    wrong += [f"{text} is {bits}" for text, bits in pairs if struct.unpack(">Q", struct.pack(">d", float(text)))[0] ^ int(bits, 16) > 3]
    return "; ".join(wrong[:5]) or (None if len(got) == len(cases) and len(pairs) == 3000 else again[-500:])


def ordered_bytes_are_decoded(_):
    """Converters for OrderedBytes decode keys that `rorqual key` encoded, in both orders."""
    kinds = {"ob-i8": ("decodeInt8", [-128, 0, 127]), "ob-i16": ("decodeInt16", [-300, 7]), "ob-i32": ("decodeInt32", [-70000, 0, 2147483647]),
             "ob-i64": ("decodeInt64", [-9223372036854775808, 5]), "ob-f32": ("decodeFloat32", ["-1.5", "0.25"]), "ob-f64": ("decodeFloat64", ["-0.1", "1.5"]),
             "ob-text": ("decodeString", ["", "abc"]), "ob-blobvar": ("decodeBlobVar", ["a", "longer text"]),
             "ob-num": ("decodeNumericAsBigDecimal", ["0", "-123.45", "0.00001", "98765432109876543210"])}
    lines, expected = [], []
    for order in ("", "desc-"):
        for kind, (method, values) in kinds.items():
            for value in values:
                key = subprocess.run([BINARY, "key", "--hex", f"x:{order}{kind}", "--", str(value)], capture_output=True, text=True, check=True).stdout.strip()
                lines.append(f"puts org.apache.hadoop.hbase.util.OrderedBytes.{method}(['{key}'].pack('H*')).to_s; nil\n")
                expected.append(str(value))
    out = shell("-n", "memory:", text="".join(lines)).stdout
    got = [line for line in out.splitlines() if not line.startswith("hbase:")][:len(expected)]
    wrong = [f"{w}: {g}" for w, g in zip(expected, got) if g != w and (not re.fullmatch(r"[-0-9.E]+", g) or float(g) != float(w))]
    return "; ".join(wrong[:5]) or (None if len(got) == len(expected) else out[-500:])


def client_classes_say_what_is_missing(_):
    """A class, a method or a cluster that the shell lacks is named in the error."""
    text = ("conf = org.apache.hadoop.hbase.HBaseConfiguration.create\nconf.set('hbase.zookeeper.quorum', 'elsewhere')\n"
            "def told\n  yield\nrescue StandardError => e\n  puts \"told #{e.message}\"\nend\n"
            "told { org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(conf).getTable('t') }\n"
            "told { org.apache.hadoop.hbase.client.HConnectionManager.createConnection(conf) }\n"
            "told { org.apache.hadoop.hbase.client.HTable.new('t').checkAndPut('a', 'b', 'c', 'd', nil) }\n"
            "told { org.apache.hadoop.hbase.client.Put.new(5) }\n"
            "create 't', 'f'\n"
            "told { org.apache.hadoop.hbase.client.HTable.new('t').put(org.apache.hadoop.hbase.client.Put.new('x').addColumn('no', 'q', 'v')) }\n")
    wanted = ["runs in a shell of its own: rorqual shell --zk elsewhere:2181", "the shell has no Java: org.apache.hadoop.hbase.client.HConnectionManager",
              "org.apache.hadoop.hbase.client.HTable has no method checkAndPut", "to class [B", "NoSuchColumnFamilyException"]
    out = shell("-n", "memory:", text=text).stdout
    got = re.findall(r"(?m)^told (.*)", out)
    return None if len(got) == 5 and all(w in g for w, g in zip(wanted, got)) else out


def tools_of_operators(folder):
    """--ruby: a script is run as a whole without echo; exit codes; classes besides the client's; an Admin of another cluster."""
    server, peer = (Server(folder / name, folder / f"{name}.log") for name in ("tool", "tool-peer"))
    key = f"{peer.zk}:/hbase"
    try:
        shell("-n", "--zk", server.zk, text="create 'a', 'f', SPLITS => ['m']\ncreate 'b', {NAME => 'g', VERSIONS => 3}\n")
        names = re.search(r"127\.0\.0\.1,(\d+),", shell("-n", "--zk", server.zk, text="list_liveservers\n").stdout)
        for arguments, wanted, code, error in [
                (["regions"], "4\n", 0, ""), (["-t", "b", "regions"], "1\n", 0, ""), (["regions", "--table=none"], "0\n", 4, ""),
                (["drain"], "", 0, ""), (["draining"], "1\n", 0, ""), (["undrain"], "", 0, ""), (["draining"], "0\n", 0, ""),
                (["copy", key, "a,none,b"], "a: copied\nnone: none\nb: copied\n", 0, ""), (["copy", key, "b"], "b: exists\n", 0, ""),
                (["copy", "127.0.0.1:1:/hbase", "b"], "", 1, "cannot connect to 127.0.0.1:1"),
                (["rows", key], "", 1, "runs in a shell of its own"), (["abort"], "", 1, "aborted"), ([], "", 3, "it's short"),
                (["fail"], "", 1, "TableNotFoundException"), (["--nope"], "", 1, "invalid option: --nope"),
                (["stop", f"127.0.0.1:{names.group(1)}"], "", 0, "")]:
            done = shell("--zk", server.zk, "--ruby", str(FOLDER / "operator_tool.rb"), *arguments)
            if done.stdout != wanted or done.returncode != code or error not in done.stderr or not error and done.stderr:
                return f"{arguments}: {done}"
        if "VERSIONS => '3'" not in shell("-n", "--zk", peer.zk, text="describe 'b'\n").stdout:
            return "the copy has other attributes"
        return None if shell("--ruby").returncode == 2 else "--ruby without a script"
    finally:
        server.kill()
        peer.kill()


def options_follow_the_place(folder):
    """memory: and file: may precede options; arguments after the script belong to the script, except -DKEY=VALUE."""
    script = folder / "words.rb"
    script.write_text("p ARGV, @shell.hbase.configuration.get('x')\nexit 5\n")
    for arguments in (["memory:", "-y", "-n"], ["-n", "memory:", "-y"], ["-y", f"file:{folder / 'words'}", "-n"]):
        done = shell(*arguments, str(script), "one", "-Dx=y", "-n")
        if done.returncode != 5 or '["one", "-n"]\n"y"\n' not in done.stdout:
            return f"{arguments}: {done}"
    return None


def settings_say_where_the_cluster_is(folder):
    """-D quorum, port and parent, in any order; of several ZooKeepers the first that responds; unknown settings are refused."""
    server = Server(folder / "where", folder / "where.log")
    port = server.zk.rpartition(":")[2]
    quorum, client_port = "-Dhbase.zookeeper.quorum=", f"-Dhbase.zookeeper.property.clientPort={port}"
    try:
        for options in ([f"{quorum}localhost", client_port], [client_port, f"{quorum}127.0.0.1"], [client_port], [f"{quorum}127.0.0.1:1,127.0.0.1:{port}"],
                        [f"{quorum}127.0.0.1:1,127.0.0.1", client_port], ["--zk", f"127.0.0.1:1,{server.zk}"], ["-D", f"hbase.zookeeper.quorum={server.zk}"]):
            done = shell("-n", *options, text="list\n")
            if done.returncode != 0 or "0 row(s)" not in done.stdout:
                return f"{options}: {done}"
        if "/other/hbaseid" not in shell("-n", client_port, "-Dzookeeper.znode.parent=/other", text="list\n").stderr:
            return "the parent is not used"
        for wrong in ("-Dx", "-D=x", "-Dx=", "-Da=b=c", f"{quorum},,", f"{quorum}{'h,' * 2000}h"):
            if shell(wrong).returncode != 2:
                return f"{wrong[:30]} is taken"
        return None if shell("--zk", server.zk, client_port).returncode == 2 else "two clusters"
    finally:
        server.kill()


def output_that_is_lost(folder):
    """On a full disk the shell reports the error and ends with 1 at the failing statement; a write to a script's own file fails with
    Ruby's error."""
    script = folder / "lost.rb"
    script.write_text("create 't', 'f'\nputs 'x' * 100000\nputs 'next'\nFile.write('/dev/null', 'on')\n")
    for options in (["-n"], [], ["--ruby"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, "shell", *options, "memory:", str(script)], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        if done.returncode != 1 or done.stderr != "rorqual shell: standard output could not be written\n":
            return f"{options}: {done}"
    out = shell("memory:", text="begin; File.open('/dev/full', 'w') { |f| f.puts 'x' * 100000 }; rescue Errno::ENOSPC => e; p e.errno, e.message; end\n"
                "begin; File.open('/nope/x', 'w'); rescue SystemCallError => e; p e; end\n").stdout
    return None if '28\n"No space left on device"' in out and "No such file or directory - /nope/x" in out else out


def what_cannot_be_compiled_is_an_error(folder):
    """Too many variables or too deep an expression cause an error instead of a skipped statement, and the session continues. A NUL byte
    in a line is kept."""
    many = "".join(f"v{i} = {i}\n" for i in range(300))
    deep = "(" * 3000 + "1" + ")" * 3000 + "\n"
    for text in (many, deep):
        script = folder / "large.rb"
        script.write_text(text)
        for option in ("-n", "--ruby"):
            done = shell(option, "memory:", str(script))
            if done.returncode != 1 or not re.search("SyntaxError: .*too many local variables", done.stdout + done.stderr):
                return f"{option}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}"
    out = shell("memory:", text=many + deep + "p v7, 'a\0b'.length\n").stdout
    return None if out.endswith("\n7\n3\n=> [7, 3]\nhbase:303:0> \n") else out[-300:]


def what_takes_too_much_is_an_error(_):
    """Growing strings, arrays of any length, patterns of exponential time, endless values: an error that a script can rescue,
    and the session continues."""
    memory = ["s = 'a'; loop { s = s + s }", "s = 'a'; loop { s << s }", "'a' * 10**12", "'a' * 10**9", "a = [1]; loop { a += a }",
              "[0] * 10**9", "'a'.ljust(10**11)", "'%1000000000d' % 1", "h = {}; i = 0; loop { h[i] = 'x' * 100; i += 1 }"]
    text = "def told; yield; rescue Exception => e; puts \"#{e.class}: #{e.message}\"; end\n"
    text += "".join(f"told {{ {m} }}\n" for m in memory) + "told { ('a' * 50 + 'b') =~ /(a+)+$/ }\nputs 'on'\n"
    out = shell("-n", "memory:", text=text, HBASE_HEAPSIZE="100")
    said = [line for line in out.stdout.splitlines() if re.match(r"\w+Error: |on$", line)]
    if said != ["NoMemoryError: Out of memory"] * len(memory) + ["RegexpError: match limit exceeded: /(a+)+$/", "on"]:
        return f"{said} {out.stdout[-500:]} {out.stderr[-300:]}"
    # What is kept: the session goes on with what it needs itself, and its memory can be given back.
    text = "$kept = []; begin; loop { $kept << 'x' * 1000 }; rescue NoMemoryError; 7; end\n$more = []; loop { $more << 'x' }\n"
    for option in ("-n", "--csv"):  # --csv has no effect here: the same is expected
        out = shell(option, "memory:", text=text + "$kept = $more = nil\nlist\n6 * 7\n", HBASE_HEAPSIZE="100")
        if out.returncode != 1 or "NoMemoryError" not in out.stderr:
            return f"{option}: {out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    out = shell("-n", "memory:", text=text.replace("$more = []; loop { $more << 'x' }", "$more = 'y'") + "$kept = $more = nil\nlist\n6 * 7\n", HBASE_HEAPSIZE="100")
    if out.returncode != 0 or "=> 42" not in out.stdout:
        return f"{out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    # Nothing is left when the session itself goes on: it calls the script's methods, and compiles and begins statements with many variables.
    full = "$kept = []; begin; loop { $kept << 'x' * 1000 }; rescue NoMemoryError; begin; loop { $kept << 'x' }; rescue NoMemoryError; 7; end; end\n"
    variables = "; ".join(f"v{i} = {i}" for i in range(230))
    greedy = "$kept = []; class Greedy; def write(*a) loop { $kept << 'x' * 100 }; end; end; $stdout = Greedy.new; 1\n"
    for option, text, code in (("-n", f"{full}{variables}\n$kept = nil\nexit 3\n", 3), ("-n", f"{greedy}2\n$kept = nil; exit 3\n", 3), ("-n", "$kept = []\n\\watch 1 loop { $kept << 'x' * 100 }\n$kept = nil; exit 3\n", 3)):
        out = shell(option, "memory:", text=text, HBASE_HEAPSIZE="64")
        if out.returncode != code:
            return f"{text[:300]}: {out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    deep = shell("-n", "memory:", text="a = []; 100000.times { a = [a] }; nil\na\nputs 'on'\n")
    whole = deep.stdout + deep.stderr
    return None if "SystemStackError: stack level too deep" in whole and "core.rb" not in whole and deep.returncode == 1 else whole[-300:]


def scripts_of_older_clients(_):
    """HTable made from a configuration and Put.add, as before HBase 2; and `@hbase`."""
    text = ("create 'wiki', 'text', 'revision'\nimport 'org.apache.hadoop.hbase.client.HTable'\nimport 'org.apache.hadoop.hbase.client.Put'\n"
            "def jbytes(*args)\n  args.map { |arg| arg.to_s.to_java_bytes }\nend\n"
            "table = HTable.new(@hbase.configuration, 'wiki')\np = Put.new(*jbytes('Home'))\np.add(*jbytes('text', '', 'Hello'))\n"
            "p.add(*jbytes('revision', 'author', 'jimbo'))\ntable.put(p)\ntable.flushCommits\nscan 'wiki'\n")
    out = shell("-n", "memory:", text=text).stdout
    return None if re.search(r"column=revision:author, .*value=jimbo\n.*column=text:, .*value=Hello\n1 row\(s\)", out) else out


def values_are_shown_by_kind(_):
    """The output of \\as: values of the kind, values of another kind, and damaged values."""
    cases = [("protobuf", r"\x08\x96\x01\x12\x04text\x1a\x02\x08\x07", '{1: 150, 2: "text", 3: {1: 7}}'),
             ("protobuf", r"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x11\0\0\0\0\0\0\x04\x40\x1d\x07\0\0\0", "{1: -1, 2: 2.5, 3: 7}"),
             ("protobuf", r"\x12\xff\xff\xff\xff\x0fx", r"\x12\xFF\xFF\xFF\xFF\x0Fx"), ("protobuf", r"\x0b\x0c", r"\x0B\x0C"), ("protobuf", r"\x08", r"\x08"),
             ("time", r"\0\0\x01\x9b\x7c\xa9\x8c\x88", "2026-01-02T03:04:05"), ("time", r"\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"), ("time", "x", "x"),
             ("json", '{\\"b\\" : [1]}', '{"b":[1]}'), ("json", "{x", "{x"), ("geohash", "u33dc0", "u33dc0 (52.5174, 13.4088)"), ("geohash", "a", "a"),
             ("float", r"\x40\x20\0\0", "2.5"), ("double", r"\x40\x04\0\0\0\0\0\0", "2.5"), ("int", r"\xff\xff\xff\xff", "-1"),
             ("long", r"\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"), ("hex", r"\0a", "0061"), ("text", "a", "a")]
    text = "Shell.need('show'); nil\n" + "".join(f'puts "#" + Show.value(\'{kind}\', "{value}"); nil\n' for kind, value, _ in cases)
    out = subprocess.run([BINARY, "shell", "-n", "memory:"], input=text, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC"}).stdout
    got = [line[1:] for line in out.splitlines() if line.startswith("#")]
    wrong = [f"{kind} {value}: {g}" for (kind, value, want), g in zip(cases, got) if g != want]
    return "; ".join(wrong) or (None if len(got) == len(cases) else out[-500:])


def times_of_other_zones(_):
    """Local times use the time zone, seconds since 1970 do not. Formats and times may have any length."""
    text = ("puts '#' + DateTime.parse('2026-01-02T03:04:05Z').strftime('%s')\n" "puts '#' + Time.at(1767323045).utc.strftime('%s %%s %H')\n"
            "puts '#' + Time.at(1767323045).strftime('%s %z %H')\n" "create 't', 'f'\n" "put 't', 'r', 'f:q', 'v', 1767323045006\n" "scan 't'\n"
            "puts '#' + Time.at(0).strftime('x' * 300).length.to_s\n" "puts '#' + Time.at(0).strftime('') + '.'\n"
            "begin; Time.at(0).strftime('%9999999Y'); rescue ArgumentError => e; puts '#' + e.message; end\n"
            "puts '#' + Shell.local_time(-9223372036854775807) + ' ' + Shell.local_time(-1)\n")
    out = subprocess.run([BINARY, "shell", "-n", "memory:"], input=text, capture_output=True, text=True, check=False,
                         env={**os.environ, "TZ": "NST3:30"}).stdout
    wanted = ["#1767323045", "#1767323045 %s 03", "#1767323045 -0330 23", " r column=f:q, timestamp=2026-01-01T23:34:05.006, value=v",
              "#300", "#.", "#the time in this format is too long", "#-292275055-05-16T13:17:04.193 1969-12-31T20:29:59.999"]
    missing = [line for line in wanted if line not in out.splitlines()]
    return f"{missing} not in {out}" if missing else None


def row_keys_are_those_of_the_command(_):
    """RowKey.encode and decode compared with `rorqual key`; wrong formats, values and keys are named."""
    form = "salt(16) user:u64 time:desc-ms"
    key = subprocess.run([BINARY, "key", "--hex", form, "7", "2022-12-31T23:59:59.999Z"], capture_output=True, text=True, check=True).stdout.strip()
    text = (f"f = '{form}'\nputs '#' + Bytes.toHex(RowKey.encode(f, 7, '2022-12-31T23:59:59.999Z'))\n"
            f"puts '#' + RowKey.decode(f, ['{key}'].pack('H*')).inspect\n"
            "def told\n  yield\nrescue ArgumentError => e\n  puts \"##{e.message}\"\nend\n"
            "told { RowKey.encode('user:u65', 7) }\ntold { RowKey.encode(f, 'x') }\ntold { RowKey.decode(f, 'x') }\ntold { RowKey.encode(f, *[1] * 300) }\n"
            "told { RowKey.encode(f, \"a\\0b\") }\n")
    wanted = [key, '{"user"=>"7", "time"=>"1672531199999"}', "user:u65: unknown type u65", "'x' is no integer", "the key ends in this part", "too many values", "null byte"]
    got = [line[1:] for line in shell("-n", "memory:", text=text).stdout.splitlines() if line.startswith("#")]
    return None if len(got) == len(wanted) and all(w in g for w, g in zip(wanted, got)) else f"{got}"


def zookeeper_tells_of_itself(folder):
    out = with_server(folder, "zk_dump", (), lambda server: shell("-n", "--zk", server.zk, text="zk_dump\n").stdout)
    return None if re.search(r"Quorum Server Statistics:\n 127.0.0.1:\d+\n  Zookeeper version: \S.*\n(  \S.*\n)+", out) else out


def zookeeper_at_an_ipv6_address(folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as e:
        print(f"zookeeper_at_an_ipv6_address is skipped: this machine has no ::1: {e}")
        return None
    out = with_server(folder, "ipv6", ("--listen", "[::1]"), lambda server: shell("-n", "--zk", server.zk, text="zk_dump\n").stdout)
    return None if re.search(r"Quorum Server Statistics:\n \[::1\]:\d+\n  Zookeeper version: ", out) else out


def a_zookeeper_that_drips_is_left(_):
    """Each byte of the response arrives in time, but the response never ends."""
    def drip():
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            while True:
                peer.sendall(b"x")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        out = shell("-n", "memory:", text=f"Shell.zookeeper_stat('127.0.0.1', '{listener.getsockname()[1]}')\n")
    return None if "timed out" in out.stderr else f"{out}"


def libraries_are_loaded_by_their_methods(_):
    """Time.parse, to_json and similar methods load their library before any of its classes is named."""
    cases = {"Time.parse('2026-01-02 03:04:05 UTC').to_i": "1767323045", "{'a' => 1}.to_json": '{"a":1}', "[1, 1].to_set.length": "1",
             "Time.at(0).utc.to_date": "1970-01-01", "Java::JavaLang::Integer::MAX_VALUE": "2147483647"}
    for case, want in cases.items():
        got = shell("-n", "memory:", text=f"puts(({case})); nil\n").stdout.splitlines()
        if want not in got:
            return f"{case}: {got}"
    return None


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


def every_command_has_help(_):
    names = re.findall(r"\w+", " ".join(re.findall(r"  Commands: (.*)", shell("memory:", text="help\n").stdout)))
    if len(names) != 179:
        return f"{len(names)} commands"
    out = shell("memory:", text="".join(f"help '{name}'\n" for name in names)).stdout
    parts = re.split(r"(?m)^hbase:\d+:0> help '", out)[1:]
    return next((f"{name} has no example" for name, part in zip(names, parts) if "hbase> " not in part and name != "table_help"), None)


class Page(http.server.BaseHTTPRequestHandler):
    """A server's pages: tasks, and responses that no server should send."""
    TASKS = [{"description": "d" * 40, "status": "s\u00e9\n", "state": "RUNNING", "starttimems": 1000, "statustimems": -1},
             {"description": "RpcServer", "status": "Waiting", "state": "WAITING", "starttimems": 5000, "statustimems": 9000}]

    def do_GET(self):  # pylint: disable=invalid-name
        if self.path == "/raw":
            self.wfile.write(b"not HTTP at all, but long enough")
            return
        self.send_response(404 if self.path == "/none" else 200)
        self.end_headers()
        self.wfile.write(json.dumps(self.TASKS).encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def tasks_of_a_page(_):
    """processlist's table, and its handling of invalid responses."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    port = web.server_address[1]
    text = ("Shell.need('tasks')\n"
            f"status, body = Shell.fetch('127.0.0.1', {port}, '/rs-status?format=json&filter=all')\n"
            "Tasks.table(Json.parse(body).map { |t| t.merge('host' => 'a.very.long.host.name') })\n"
            f"puts Shell.fetch('localhost', {port}, '/none')[0]\n"
            f"begin; Shell.fetch('127.0.0.1', {port}, '/raw'); rescue => e; puts e.message; end\n"
            "begin; Shell.fetch('127.0.0.1', 1, '/'); rescue => e; puts e.message; end\n")
    out = shell("-n", "memory:", text=text).stdout
    web.shutdown()
    for part in (r"\| Host            \| Start Time          \| State    \| Description                      \| Status +\|",
                 r"\| a\.very\.long\.\.\.\. \| \S+ \S+ \| RUNNING  \| d{29}\.\.\. \| s\S+  \(since",
                 r"\| WAITING  \| RpcServer                        \| Waiting \(since \d+ s.*\|", "(?m)^404$", "/raw: not HTTP",
                 "127.0.0.1:1/: cannot connect"):
        if not re.search(part, out):
            return f"no {part!r} in {out}"
    return None


HOSTILE_PAGES = {
    "endless body": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (17 << 20), "longer than 16 MiB"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"X-Name: value\r\n" * 100000, "not HTTP"),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc", "longer than 16 MiB"),
    "chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\nabc", "longer than 16 MiB"),
    "cut off": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "not HTTP, or closed before its end"),
    "no status": (b"HTTP/1.1 000 OK\r\n\r\n", "not HTTP"),
    "nothing": (b"", "not HTTP, or closed before its end"),
}


def answer_once(listener, text):
    peer, _ = listener.accept()
    with peer:
        peer.recv(4096)
        try:
            peer.sendall(text)
        except OSError:  # the shell has closed the connection
            pass


def hostile_pages_are_refused(_):
    with contextlib.ExitStack() as stack:
        text = ""
        for answer, _why in HOSTILE_PAGES.values():
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=answer_once, args=(listener, answer), daemon=True).start()
            text += f"begin; Shell.fetch('127.0.0.1', {listener.getsockname()[1]}, '/'); puts 'got one'; rescue => e; puts e.message; end\n"
        done = shell("-n", "memory:", text=text)
    got = [line for line in done.stdout.splitlines() if line and not line.startswith("hbase:")]
    wrong = [f"{name}: {line}" for (name, (_, why)), line in zip(HOSTILE_PAGES.items(), got) if why not in line]
    return "; ".join(wrong) or (None if len(got) == len(HOSTILE_PAGES) and done.returncode == 0 else str(done))


def a_page_without_an_answer_is_interrupted(folder):
    os.environ["HOME"] = str(folder)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        terminal = Terminal({}, BINARY, "shell", "memory:")
        try:
            if not terminal.shows("hbase:001:0>"):
                return "no prompt"
            terminal.type(f"puts 'asks'; Shell.fetch('127.0.0.1', {silent.getsockname()[1]}, '/')", "Enter")
            peer, _ = silent.accept()
            with peer:
                peer.recv(1)
                terminal.type("C-c")
                return None if terminal.shows("hbase:002:0>") else terminal.screen()
        finally:
            terminal.close()


def json_is_read(_):
    """Json.parse decodes valid texts and refuses invalid ones."""
    good = ['[]', '{}', '[1,-2.5,1e3,true,false,null]', '{"a":{"b":["c\\n\\u00e9\\"",""]}}', ' [ 1 , { "x" : 2 } ] ', '"t"', '0']
    bad = ['', '[', '[1', '[1,]', '{', '{"a"}', '{"a":}', '{1:2}', '"a', '"\\u12"', 'tru', '01x', '-', '[1] 2', '[' * 1000, '\x00']
    text = "Shell.need('json')\n"
    for t in good + bad:
        encoded = "".join(f"\\x{b:02x}" for b in t.encode())
        text += f"puts(begin; Json.text(Json.parse(\"{encoded}\")); rescue ArgumentError; 'refused'; end)\n"
    out = [line for line in shell("-n", "memory:", text=text).stdout.splitlines() if line and not line.startswith(("hbase:", "=>"))]
    for t, line in zip(good, out):
        if json.loads(line) != json.loads(t):
            return f"{t}: {line}"
    refused = out[len(good):]
    return None if refused == ["refused"] * len(bad) else f"not refused: {refused}"


def prompt(folder):
    """The prompt: completion, statements of several lines, Ctrl-C, a question before a drop, history."""
    steps = [
        (["create 'long_name', 'fam'", "Enter"], "Created table long_name"),
        (["desc", "Tab"], "describe"),
        (["C-u", "put 'long", "Tab", "', 'r', 'fa", "Tab", "q', 'v'", "Enter"], "put 'long_name', 'r', 'fam:q', 'v'"),
        (["scan 'long_name'", "Enter"], " r                         column=fam:q,"),
        # Ctrl-C before the statement begins would delete the typed line.
        (["puts 'as' + 'leep'; sleep 1000", "Enter"], re.compile("(?m)^asleep$")),
        (["C-c"], "hbase:005:0>"),
        (["[1,", "Enter", "2]", "Enter"], "=> [1, 2]"),
        (["disable 'long_name'; drop 'long_name'", "Enter"], "Go on (y/n)?"),
        (["n", "Enter"], "Not done"),
        (["Up", "Up", "Enter"], "=> [1, 2]"),
    ]
    os.environ["HOME"] = str(folder)
    terminal = Terminal({}, BINARY, "shell", "memory:")
    try:
        if not terminal.shows("hbase:001:0>"):
            return "no prompt"
        for keys, text in steps:
            terminal.type(*keys)
            if not terminal.shows(text):
                return f"{keys}: no {text!r} in\n{terminal.screen()}"
        return None
    finally:
        terminal.close()


# Tests that HBase's own shell must pass as well: OFFICIAL runs that shell, on an empty HBase at ZK.
OF_HBASE = (*shell_scripts.OF_HBASE, *shell_tables.OF_HBASE, *shell_load.OF_HBASE, blocks_see_variables_of_earlier_statements)


def official_runs_the_scripts(report):
    if not {"ZK", "OFFICIAL"} <= os.environ.keys():
        fail_hard("--scripts needs ZK and OFFICIAL")
    shell_load.official(os.environ["ZK"], shlex.split(os.environ["OFFICIAL"]))
    with tempfile.TemporaryDirectory(prefix="rorqual-own-shell-") as name:
        for test in OF_HBASE:
            report.outcome(f"official/{test.__name__}", test(pathlib.Path(name)))
    return report.finish()


def main():
    report = Report()
    if not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    if "ZK" in os.environ:
        Cluster(os.environ["ZK"]).require_empty()
    if "--scripts" in sys.argv[1:]:
        return official_runs_the_scripts(report)
    with tempfile.TemporaryDirectory(prefix="rorqual-own-shell-") as name:
        folder = pathlib.Path(name)
        for script, expected, got, judge in outputs(folder):
            if "--record" in sys.argv[1:]:
                expected.write_text(got)
                print(f"recorded {script}")
            else:
                judge(report, script, expected.read_text(), got)
        if "--record" in sys.argv[1:]:
            return 0
        if "ZK" in os.environ:
            return report.finish()
        for test in (memory_and_folder, closed_output_does_not_reach_the_folder, a_script_that_cannot_be_read_is_an_error, a_killed_shell_leaves_no_memory, scans_that_are_left_are_closed, a_scanner_outlives_its_connection, other_forms, messages_of_calls, malformed_messages_are_refused, a_message_is_made_within_another, blocks_see_variables_of_earlier_statements, exit_codes, floats_in_text, ordered_bytes_are_decoded, libraries_are_loaded_by_their_methods, client_classes_say_what_is_missing, tools_of_operators, options_follow_the_place, settings_say_where_the_cluster_is, output_that_is_lost, what_cannot_be_compiled_is_an_error, what_takes_too_much_is_an_error, scripts_of_older_clients, values_are_shown_by_kind, times_of_other_zones, row_keys_are_those_of_the_command, zookeeper_tells_of_itself, zookeeper_at_an_ipv6_address, a_zookeeper_that_drips_is_left, rows_of_a_prefix_are_deleted, changes_without_cells_are_refused, groups_of_servers, commands_ask_for_the_parts_of_the_status_that_they_show,
                     every_command_has_help, tasks_of_a_page, hostile_pages_are_refused, a_page_without_an_answer_is_interrupted, json_is_read, prompt, *shell_load.TESTS, *shell_tables.TESTS, *shell_scripts.TESTS, *shell_files.TESTS, *shell_slow.TESTS, *shell_terminal.TESTS):
            report.judge("own_shell", test, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
