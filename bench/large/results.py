# SPDX-License-Identifier: Apache-2.0
"""The measured figures as tables, their goals, and the page docs/lab/large.md."""
import sys
import time

from config import ROOT
from machine import machine

sys.path.insert(0, str(ROOT / "bench/engine"))
import pictures  # noqa: E402  pylint: disable=wrong-import-position

BEGIN = "<!-- large: below is written by bench/large/run -->"
END = "<!-- large: end -->"
NAMES = {
    "sorted": "load, sorted", "make": "bulk load: making HFiles", "bulk": "bulk load: loading them", "load": "load, hashed",
    "get": "get, uniform", "zipf": "get, zipfian", "multi": "multi-get, a row", "short": "scan of 1 to 100 rows", "long": "scan of all rows, a row",
    "overwrite": "overwrite, a row",
}
HEAD = ["workload", "database", "per s", "p50 ms", "p99 ms", "p99.9 ms", "device reads", "kB read", "written ×", "space ×", "CPU µs", "× HBase"]
WRITES = {"sorted", "load", "bulk", "overwrite"}


def title(name):
    """The title of a workload. A..F are YCSB's; '/2' means half of the reference's rate."""
    letter, _, half = name.partition("/")
    return NAMES.get(letter, f"YCSB {letter}") + (", at half the rate" if half else "")


def number(n):
    if n is None:
        return ""
    return f"{n:,.0f}" if abs(n) >= 100 else f"{n:.1f}" if abs(n) >= 10 else f"{n:.2f}"


class Shape:
    """The figures of one shape of data: {(workload, database): figures}."""

    def __init__(self, rows, value):
        self.rows, self.value = rows, value
        self.found, self.floors, self.failed = {}, {}, []

    def row(self, name, database):
        f = self.found[name, database]
        ops, hbase = max(1, f["ops"]), self.found.get((name, "HBase"))
        user = f.get("user", f["ops"] * (self.value + 16))
        ratio = f["rate"] / hbase["rate"] if hbase and hbase["rate"] > 0 else None
        return [title(name), database, number(f["rate"]), *(number(f[p] / 1000 if p in f else None) for p in ("p50", "p99", "p99.9")),
                number(f["reads"] / ops if "reads" in f else None), number(f["read_bytes"] / ops / 1000),
                number(f["written"] / user if name in WRITES else None), number(f.get("space")), number(f["cpu_s"] * 1e6 / ops), number(ratio)]

    def table(self):
        lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        names = list(dict.fromkeys(name for name, _ in self.found))
        for name in names:
            lines += ["| " + " | ".join(self.row(name, d)) + " |" for n, d in self.found if n == name]
        for name, f in self.floors.items():
            lines.append(f"| floor: fio, as {title(name)} | device | {number(f['rate'])} | " +
                         " | ".join(number(f[p] / 1000) for p in ("p50", "p99", "p99.9")) + f" | 1 | {f['mb'] * 1000 / f['rate']:.0f} | | | | |")
        return lines

    def get(self, name, database, what="rate"):
        return self.found.get((name, database), {}).get(what)

    def per_op(self, name, database, what):
        f = self.found.get((name, database), {})
        return f[what] / max(1, f["ops"]) if what in f else None

    def goals(self):
        """Returns [(name, goal, measured value, whether it is met)] of the goals that were measured."""
        def at_least(what, a, b, bar):
            return None if not a or not b else (what, f"≥ {bar} ×", a / b, a / b >= bar)

        def at_most(what, a, b, bar):
            return None if a is None or not b else (what, f"≤ {bar:.3g}", a / b, a / b <= bar)

        ours, hbase, rocks = "Rorqual", "HBase", "RocksDB"
        sequential = self.floors.get("long", {}).get("mb", 0) * 1e6 / (self.value + 16)
        lines = [at_least("uniform gets: HBase's rate", self.get("get", ours), self.get("get", hbase), 3),
                 at_most("uniform gets: device reads a get", self.per_op("get", ours, "reads"), 1, 1.05),
                 at_least("uniform gets: RocksDB's rate", self.get("get", ours), self.get("get", rocks), 1.0),
                 at_least("uniform gets: fio's rate", self.get("get", ours), self.floors.get("get", {}).get("rate"), 0.8)]
        for letter in "ABF":
            lines += [at_least(f"YCSB {letter}: HBase's rate", self.get(letter, ours), self.get(letter, hbase), 3),
                      at_most(f"YCSB {letter} at half of HBase's rate: p99", self.get(f"{letter}/2", ours, "p99"), self.get(f"{letter}/2", hbase, "p99"), 0.25)]
        lines += [at_most("hashed load to the end of compaction: HBase's time", self.get("load", ours, "wall"), self.get("load", hbase, "wall"), 0.2),
                  at_most("hashed load: HBase's bytes written", self.get("load", ours, "written"), self.get("load", hbase, "written"), 1),
                  at_least("scan of all rows: the device's sequential rate", self.get("long", ours), sequential, 0.9),
                  at_least("scan of all rows: HBase's rate", self.get("long", ours), self.get("long", hbase), 3)]
        return [line for line in lines if line]

    def text(self):
        lines = [f"### {self.rows:,} rows of {self.value} bytes", "", *self.table()]
        goals = self.goals()
        if goals:
            lines += ["", "| goal | bar | measured | holds |", "|---|---|---|---|"]
            lines += [f"| {what} | {bar} | {measured:.2f} | {'yes' if holds else '**no**'} |" for what, bar, measured, holds in goals]
        return lines + [""] + [f"Failed: {why}" for why in self.failed]


GROWTH = ("CPU µs a get", "device reads a get")


def growth_table(growth):
    """growth: {database: [(rows, figures of uniform gets)]}"""
    lines = ["### Growth: uniform gets of 100 bytes", "", "| rows | database | per s | p50 ms | p99 ms | device reads | CPU µs | load, per s | written × |",
             "|---|---|---|---|---|---|---|---|---|"]
    for database, points in growth.items():
        for rows, get, load in points:
            lines.append(f"| {rows:,} | {database} | {number(get['rate'])} | {number(get['p50'] / 1000)} | {number(get['p99'] / 1000)} | "
                         f"{number(get['reads'] / get['ops'] if 'reads' in get else None)} | {number(get['cpu_s'] * 1e6 / get['ops'])} | "
                         f"{number(load['rate'])} | {number(load['written'] / (rows * 116))} |")
    return lines + [""]


def growth_picture(growth, caption, path):
    """Draws the CPU time of a get over the number of rows, with a curve for each database."""
    cells = [rows / 1e6 for rows, _, _ in next(iter(growth.values()))]
    costs = {d: [get["cpu_s"] * 1e6 / get["ops"] for _, get, _ in points] for d, points in growth.items() if len(points) == len(cells)}
    body, place = pictures.axis(cells, pictures.LEFT, 1.1 * max(max(c) for c in costs.values()), "µs")
    body += pictures.text(pictures.LEFT, 24, "CPU of a uniform get over rows in the table (log scale), memory fixed", size=14)
    for i, (database, cpu) in enumerate(costs.items()):
        body += pictures.curve([place(n, c) for n, c in zip(cells, cpu)], pictures.COLOURS[i])
        body += pictures.text(pictures.LEFT + 6, pictures.TOP + 14 + 15 * i, database, colour=pictures.COLOURS[i])
    width, height = pictures.LEFT + pictures.WIDE + 40, pictures.TOP + pictures.HIGH + 56
    body += pictures.text(pictures.LEFT, height - 8, caption, size=10)
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
                    f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n', encoding="utf-8")


def caption():
    return f"{time.strftime('%Y-%m-%d')}; {machine()}"


def write_page(path, lines):
    """Replaces the text between the marks."""
    page = path.read_text(encoding="utf-8")
    before, mark, rest = page.partition(BEGIN)
    if not mark or END not in rest:
        sys.exit(f"{path} has no place for the results")
    path.write_text(before + BEGIN + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + END + rest.partition(END)[2], encoding="utf-8")
