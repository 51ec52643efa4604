# SPDX-License-Identifier: Apache-2.0
"""Tables of calls and their outcomes on a real HBase. A line: method, case, outcome on HBase; if this server's outcome differs, that one and
the reason.

    DRIVER                     compares this build with the table
    DRIVER --hbase             runs the same calls on a real HBase, and prints the first three columns
    DRIVER --print             runs them on this build, and prints its outcomes
    ONLY=REGEX, CASES=REGEX    methods and cases that match
    TEXTS=1                    also prints the texts of exceptions, with --hbase and --print
"""
import collections
import os
import pathlib
import re
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rorqual  # pylint: disable=wrong-import-position
import peer  # pylint: disable=wrong-import-position,wrong-import-order

ONLY, CASES = (re.compile(os.environ.get(name, "")) for name in ("ONLY", "CASES"))
MISSING = "UninitializedMessageException"


def outcome_of(refused):
    """The class of an exception; if fields are missing, also their names, from its text."""
    said = refused.trace.partition("Message missing required fields: ")[2] if refused.name.endswith(MISSING) else ""
    return refused.name + (": " + said.splitlines()[0].split(" [")[0] if said else "")


def is_selected(method, case):
    return ONLY.search(method) and CASES.search(case)


class Matrix:
    """`run(world, report)` calls report(method, case, outcome, whether a refused call has changed something) for each selected call."""

    def __init__(self, name, methods, make_world, run, settings, of_hbase=None):
        """methods: each is a test of the report. settings: of both servers; of_hbase: further ones of HBase."""
        self.name, self.methods, self.make_world, self.run = name, methods, make_world, run
        self.table = pathlib.Path(__file__).resolve().parent / f"{name}.tsv"
        self.settings, self.of_hbase = settings, {**settings, **(of_hbase or {})}

    def wanted(self):
        out = {}
        for line in self.table.read_text().splitlines():
            method, case, theirs, ours, why = (line.split("\t") + ["", ""])[:5]
            assert bool(ours) == bool(why), line
            assert (method, case) not in out, line
            out[(method, case)] = ours or theirs
        return out

    def on_hbase(self):
        peer.orderly()
        with tempfile.TemporaryDirectory() as folder, peer.HBase(pathlib.Path(folder, "hbase"), self.of_hbase) as real:
            ports = real.ports
            server = types.SimpleNamespace(master=f"127.0.0.1:{ports['MASTER_PORT']}", regionserver=f"127.0.0.1:{ports['RS_PORT']}")
            world = self.make_world(server, True)
            self.run(world, lambda *of: print_outcome(world, *of))

    def started(self, folder):
        words = [word for key, value in self.settings.items() for word in ("-D", f"{key}={value}")]
        return rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"), *words)

    def print_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            server = self.started(folder)
            world = self.make_world(server)
            self.run(world, lambda *of: print_outcome(world, *of))
            return server.stop()

    def compare_all(self, report):
        wanted, problems, called = self.wanted(), {}, set()

        def compare(method, case, outcome, changed):
            if (method, case) in called:
                problems.setdefault(method, []).append(f"{case}: two cases have this name")
            called.add((method, case))
            if outcome != wanted.get((method, case)):
                problems.setdefault(method, []).append(f"{case}: {outcome}, not {wanted.get((method, case))}")
            elif changed:
                problems.setdefault(method, []).append(f"{case}: refused, and something changed")

        with tempfile.TemporaryDirectory() as folder:
            server, problem = self.started(folder), None
            try:
                self.run(self.make_world(server), compare)
            except (AssertionError, EOFError, OSError, KeyError, IndexError, RuntimeError) as e:
                problem = f"{e!r}; {server.tail()}"
            left = [line for line in wanted if line not in called and is_selected(*line)]
            report.outcome(f"{self.name}/runs to its end", problem or (f"lines without a call: {left}" if left else None))
            for method, count in collections.Counter(method for method, _ in left).items():
                problems.setdefault(method, []).append(f"{count} cases were not called")
            for method in self.methods:
                report.outcome(f"{self.name}/{method}", "; ".join(problems.pop(method, [])) or None)
            report.outcome(f"{self.name}/has no other methods", str(problems) if problems else None)
            report.outcome(f"{self.name}/stops cleanly", server.stop())

    def main(self):
        if "--hbase" in sys.argv:
            return self.on_hbase()
        if "--print" in sys.argv:
            return self.print_ours()
        report = rorqual.Report()
        self.compare_all(report)
        return report.finish()


def print_outcome(world, method, case, outcome, changed):
    text = (world.text.splitlines() or [""])[0] if os.environ.get("TEXTS") else None
    print(method, case, outcome + (" CHANGED" if changed else ""), *([text] if text else []), sep="\t", flush=True)
