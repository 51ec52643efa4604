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

The sessions shell/session.rb and shell/admin.rb are compared section by section, the scripts of shell/own line by line. The tests of
what only our shell has are in a file for each subject, shell_….py. Ends with 'N passed, N failed'.
"""
import difflib
import fcntl
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios

import shell_files
import shell_load
import shell_pages
import shell_places
import shell_ruby
import shell_rows
import shell_scripts
import shell_slow
import shell_tables
import shell_terminal
import shell_values
from rorqual import BINARY, Report, Server, fail_hard, read_terminal
from shell import FOLDER, MASKS, sections
from shell_world import Cluster, official, with_server

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


# Tests that HBase's own shell must pass as well: OFFICIAL runs that shell, on an empty HBase at ZK.
OF_HBASE = (*shell_scripts.OF_HBASE, *shell_tables.OF_HBASE, *shell_load.OF_HBASE, *shell_ruby.OF_HBASE)
# Features that only our shell has.
PARTS = (shell_places, shell_rows, shell_values, shell_ruby, shell_pages, shell_load, shell_tables, shell_scripts, shell_files, shell_slow, shell_terminal)


def official_runs_the_scripts(report):
    if not {"ZK", "OFFICIAL"} <= os.environ.keys():
        fail_hard("--scripts needs ZK and OFFICIAL")
    official(os.environ["ZK"], shlex.split(os.environ["OFFICIAL"]))
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
        for test in (test for part in PARTS for test in part.TESTS):
            report.judge("own_shell", test, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
