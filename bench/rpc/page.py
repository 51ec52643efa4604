# SPDX-License-Identifier: Apache-2.0
"""The measured rows, kept between runs in docs/benchmarks/rpc.json, and the two pages that show them: all
rows in docs/lab/server.md, the main ones in docs/benchmarks.md. A run replaces only the rows it measured."""
import json
import os
import pathlib
import subprocess
import time

import pictures
from settings import CLIENT_CORE, HEAP, OUT, ROUNDS, SECONDS, SERVER_CORE, say
from machine import machine  # the module settings has added its folder to the path

BEGIN = "<!-- bench/rpc begins -->"
END = "<!-- bench/rpc ends -->"
STORE = OUT / "benchmarks/rpc.json"
# The rows of the headline, in this order, by the beginning of their names.
HEADLINES = ["get 100 B, 1x16", "get 100 B, 16x16", "put 100 B, 1x16", "put 100 B, 1x16, ours with fdatasync",
             "put 100 B, 16x16", "put 100 B, 16x16, ours with fdatasync", "multi-get 50", "multi-put 50", "scan of",
             "YCSB A", "YCSB E", "20 × 20 B: single-row read", "20 × 20 B: batch write", "get against redis GET, 1x16",
             "put against redis SET, 1x16"]
HEAD = ["what", "bar", "against", "Rorqual", "ratio", "floors", "holds", "when"]


def java_version():
    out = subprocess.run(["java", "--version"], capture_output=True, text=True, check=False).stdout.split()
    return out[1] if len(out) > 1 else "none"


class Page:
    def __init__(self, order):
        """order: the names of the parts, in the page's order."""
        self.order = order
        self.store = json.loads(STORE.read_text()) if STORE.exists() else {"rows": []}
        self.part, self.fresh, self.load = "", [], 0.0

    def begin(self, part):
        self.part, self.fresh, self.load = part, [], os.getloadavg()[0]

    def row(self, name, bar="", against="", ours="", ratio="", floors="", holds=None, **more):
        """Adds a line to the table. holds: True, False, or None without a goal. more: numbers for the
        pictures."""
        said = {True: "yes", False: "**no**", None: ""}[None if holds is None else bool(holds)]
        self.fresh.append({"part": self.part, "name": name, "bar": bar, "against": against, "ours": ours,
                           "ratio": ratio, "floors": floors, "holds": said,
                           "when": f"{time.strftime('%Y-%m-%d')}, {ROUNDS} × {SECONDS:g} s, load {self.load:.1f}",
                           **more})
        say(f"=> {name}: against {against or '-'}; ours {ours}; {ratio}; bar {bar or '-'}: {said or '-'}")

    def end(self):
        """Ends a part: its rows replace earlier ones, and the pages are written."""
        self.store["rows"] = [r for r in self.store["rows"] if r["part"] != self.part] + self.fresh
        self.store["machine"] = machine()
        self.store["peers"] = f"HBase 2.6.1, heap {HEAP}, JDK {java_version()}, its 30 handlers"
        STORE.parent.mkdir(parents=True, exist_ok=True)
        STORE.write_text(json.dumps(self.store, indent=1, ensure_ascii=False) + "\n")
        self.write()

    def rows(self):
        place = {part: i for i, part in enumerate(self.order)}
        return sorted(self.store["rows"], key=lambda r: place.get(r["part"], len(place)))

    def write(self):
        rows = self.rows()
        lines = ["## Results", "", "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        for r in rows:
            lines.append("| " + " | ".join(r[k] for k in ("name", "bar", "against", "ours", "ratio", "floors",
                                                          "holds", "when")) + " |")
        lines.append("")
        folder = OUT / "benchmarks"
        ratios = [(r["name"], r["times"], r.get("bar_times")) for r in rows if "times" in r]
        pictures_shown = []
        if ratios:
            pictures.plot_ratios(ratios, self.caption("times"), folder / "ratios.svg")
            pictures_shown += ["![ratios](benchmarks/ratios.svg)", ""]
        curves = [(r["name"], r["curves"]) for r in rows if "curves" in r]
        if curves:
            pictures.plot_latencies(curves, self.caption("curves"), folder / "latencies.svg")
            lines += ["![latencies](../benchmarks/latencies.svg)", ""]
        lines += [f"{self.store['machine']}; server on core {SERVER_CORE}, generator on core {CLIENT_CORE} but where "
                  f"a row says otherwise; {self.store['peers']}; Rorqual with one event loop and the same memory for "
                  "its budget, two fifths of it cache on both. µs: server CPU an operation (a row for multi and scan), "
                  "medians of rounds, the servers in turn. Ratio: operations per CPU second of the server unless said. "
                  "Echo: the same bytes at the same connections × depth through a bare epoll server; a CPU bar holds "
                  "by its ratio or by ≤ 1.5 × the echo. when: date, rounds × seconds, and the machine's load average "
                  "as the part began: figures with a load above 1 are a look, no measurement."]
        write_section(OUT / "lab/server.md", "\n".join(lines))
        write_section(OUT / "benchmarks.md", "\n".join(self.headline(rows) + ["", *pictures_shown]).rstrip())

    def caption(self, key):
        """Date and machine of the rows that have this number."""
        dates = sorted(r["when"].split(",")[0] for r in self.store["rows"] if key in r)
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        return f"{span}; {self.store['machine']}"

    def headline(self, rows):
        """The main rows, without lower bounds and goals; server CPU per operation."""
        lines = ["| workload | peer | Rorqual | operations per CPU second | date |", "|---|---|---|---|---|"]
        for wanted in HEADLINES:
            row = next((r for r in rows if r["name"] == wanted), None) or \
                next((r for r in rows if r["name"].startswith(wanted)), None)
            if row is not None:
                lines.append(f"| {row['name']} | {row['against'].split(';')[0]} | {row['ours']} | {row['ratio'].split(';')[0]} "
                             f"| {row['when'].split(',')[0]} |")
        return lines + ["", f"{self.store['machine']}; {self.store['peers']}; one event loop."]


def write_section(path, body):
    """Replaces the text between the markers of a page, or appends it to a page without markers."""
    page = path.read_text() if path.exists() else ""
    section = f"{BEGIN}\n{body}\n{END}\n"
    if BEGIN in page:
        page = page.split(BEGIN)[0] + section + "\n" + page.split(END, 1)[1].lstrip("\n")
    else:
        page += "\n" + section
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
