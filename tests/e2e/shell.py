#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official HBase shell against a server: a session whose expected output comes from a real HBase 2.6.1.

    shell.py                        starts build/rorqual (or RORQUAL) on a temporary folder
    ZK=host:port shell.py           tests a running server
    ZK=host:port shell.py --record  records that server's output (a real HBase 2.6.1) as the expected output
    KEEP=1                          keeps the temporary folder with the raw output

Each section of shell/session.rb is one test. Ends with 'N passed, N failed'.
"""
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from rorqual import BINARY, ROOT, Report, Server, fail_hard, output_of

FOLDER = ROOT / "tests/e2e/shell"
DEADLINE = 1800  # seconds of silence after which the shell hangs; JRuby starts silently, on a busy machine for minutes
os.environ["TZ"] = "UTC"  # the official shell prints local times

# Parts that differ between runs or servers.
MASKS = [
    (r"Took [0-9.]+ seconds *", ""),
    # Timestamps from the clock; the session sets timestamps of 1970, which are compared.
    (r"timestamp=(?!1970)\d{4}-\d\d-\d\dT[\d:.]+Z?", "timestamp=CLOCK"),
    # The shell echoes its input.
    (r"^hbase:\d+:\d+[>*].*$", ""),
    (r"shell_(\w+),(.*?),\d{13}\.[0-9a-f]{32}\.", r"shell_\1,\2,CLOCK.ENCODED."),
    (r"(admin_t,\w*),\d{13}\.", r"\1,CLOCK."),
    (r"\b[0-9a-f]{32}\b", "ENCODED"),
    # The number of polls depends on speed.
    (r"^(Updating all regions|\d+/\d+ regions updated\.|Done\.)\n", ""),
    (r"^1 active master, .*$", "1 active master, …"),
    # Intended differences of docs/compatibility.md: an unknown family is reported without the
    # descriptor, and an illegal namespace is refused permanently instead of retried.
    (r"(Column family \S+ does not exist in region \S+ in table '\w+'), \{.*$", r"\1"),
    (r"^ERROR: \S+Exception: (Illegal character .* Namespaces may only contain)", r"ERROR: \1"),
]


def shell(zk, folder, session="session"):
    """The session's output."""
    host, port = zk.rsplit(":", 1)
    conf = folder / "peer/conf"
    conf.mkdir(parents=True)
    conf.joinpath("hbase-site.xml").write_text(
        f"<configuration><property><name>hbase.zookeeper.quorum</name><value>{host}</value></property>"
        f"<property><name>hbase.zookeeper.property.clientPort</name><value>{port}</value></property>"
        # With this pause, about two minutes: a region may be away for as long as a thread of a busy server does not run.
        "<property><name>hbase.client.retries.number</name><value>40</value></property>"
        "<property><name>hbase.client.pause</name><value>20</value></property></configuration>")
    conf.joinpath("log4j.properties").write_text("log4j.rootLogger=OFF\n")
    # Each statement is one line, so that the shell's echo of it is one line, too.
    start = folder / "start.rb"
    start.write_text(f"eval(File.read('{FOLDER}/{session}.rb'), binding)\nexit\n")
    with open(folder / "shell.err", "wb") as stderr:
        out = output_of([str(ROOT / "tests/peers/hbase.sh"), "shell", str(folder / "peer"), str(start)], DEADLINE, stderr=stderr)
    (folder / "shell.out").write_text(out)
    return out


def masked(text):
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


def sections(text):
    """{name: lines}, in order."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        found[name] = body.splitlines()
    return found


def compare(report, got, session):
    expected, got = sections(masked((FOLDER / f"{session}.expected").read_text())), sections(got)
    for name, lines in expected.items():
        if name not in got:
            report.outcome(f"shell/{name}", "the session did not get here")
        elif got[name] != lines:
            difference = list(difflib.unified_diff(lines, got[name], "HBase", "this server", lineterm="", n=1))[2:]
            report.outcome(f"shell/{name}", " | ".join(difference[:12]))
        else:
            report.outcome(f"shell/{name}")


def main(session="session", *arguments):
    """arguments: further arguments of the server."""
    report = Report()
    if "ZK" not in os.environ and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-shell-"))
    server = None
    try:
        if "ZK" not in os.environ:
            server = Server(folder / "data", folder / "server.log", *arguments)
        out = masked(shell(server.zk if server else os.environ["ZK"], folder, session))
        if "--record" in sys.argv[1:]:
            (FOLDER / f"{session}.expected").write_text(out)
            print(f"recorded {len(sections(out))} sections")
            return 0
        compare(report, out, session)
        if server:
            report.outcome("shell/server stops cleanly", server.stop())
    except subprocess.TimeoutExpired:
        report.outcome("shell", f"it has printed nothing for {DEADLINE} s")
    except RuntimeError as problem:
        report.outcome("shell/server", str(problem))
    finally:
        if server and server.process.poll() is None:
            server.kill()
        if "KEEP" in os.environ:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
