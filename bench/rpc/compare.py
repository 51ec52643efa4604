# SPDX-License-Identifier: Apache-2.0
"""The parts that compare with HBase: each workload runs on the servers in turn."""
import floors
from cluster import SHAPES, medians
from settings import RECORDS, ROUNDS, SCAN_RECORDS, SECONDS, WARM_SECONDS, cpu_seconds, say, settle

READS = {"get", "multi-get", "scan-long", "scan-short", "ycsb-c"}


class Case:
    """One line of the table. bar: the goal, in multiples of HBase's operations per CPU second; None: no goal. per: the
    report's field whose units are counted. synced: also runs on the server with fdatasync."""

    def __init__(self, name, workload, shape, places="1x16", bar=None, per="operations", options=(), synced=False):
        self.name, self.workload, self.shape, self.bar, self.per = name, workload, shape, bar, per
        self.places, self.options, self.synced = places, options, synced

    def run(self, server, more=(), **settings):
        run = server.run(self.workload, self.shape, self.places, *self.options, *more, per=self.per, **settings)
        if self.workload in READS:
            return run
        # Pending flushes and compactions count for the writes, not for the next case.
        before = cpu_seconds(server.pid)
        settle(server.pid, 30)
        run["cpu"] += (cpu_seconds(server.pid) - before) * 1e6 / run["done"]
        return run


def warm_up(server, cases, total):
    """Runs at least `total` seconds of the part's load, with all its kinds of operations."""
    say(f"warming {server.name} up for {total:g} s")
    kinds = {(c.workload, c.shape): c for c in cases}.values()
    for case in kinds:
        case.run(server, seconds=max(1.0, total / len(kinds)), warm=0)


def measure(fleet, cases):
    """{(server's name, case's name): medians}"""
    servers = [s for s in (fleet.hbase(), fleet.ours()) if s is not None]
    if any(c.synced for c in cases):
        servers.append(fleet.synced())
    if fleet.hbase() is not None:
        warm_up(fleet.hbase(), cases, WARM_SECONDS)
    # Rorqual needs no warm-up for a JIT compiler, but the first touch of memory costs 0.7 ns per byte.
    for server in servers:
        if server is not fleet.hbase():
            warm_up(server, cases, WARM_SECONDS / 6)
    found = {}
    for number in range(ROUNDS):
        for case in cases:
            for server in servers:
                if server.name.endswith("fdatasync") and not case.synced:
                    continue
                run = case.run(server)
                found.setdefault((server.name, case.name), []).append(run)
                say(f"round {number + 1}  {case.name:34} {server.name:18} {run['rate']:10.0f}/s "
                    f"{run['cpu']:8.2f} us CPU  p99 {run['p99']:.0f} us")
    return {key: medians(runs) for key, runs in found.items()}


def figures(run):
    return f"{run['rate']:,.0f}/s, {run['cpu']:.2f} µs" if run else ""


def add_row(page, case, results, more_floors="", other=None):
    """Adds the case's row. other: (µs per row, goal, name) of a second measure; meeting either goal suffices."""
    h, o = results.get(("HBase", case.name)), results["Rorqual", case.name]
    echo = floors.echo(o, case.places)
    ratio = h["cpu"] / o["cpu"] if h else None
    bar = "" if case.bar is None else f"≥ {case.bar} ×"
    against, ratio_text, holds = figures(h), f"{ratio:.1f} ×" if ratio else "", None
    if case.bar is not None and ratio is not None:
        holds = ratio >= case.bar or o["cpu"] <= 1.5 * echo
    if other is not None:
        cpu, least, name = other
        bar += f", or ≥ {least} × {name}"
        against += f"{'; ' if against else ''}{name} {cpu:.2f} µs"
        ratio_text += f"{'; ' if ratio_text else ''}{cpu / o['cpu']:.2f} × {name}"
        if case.bar is not None:
            holds = bool(holds) or cpu / o["cpu"] >= least or o["cpu"] <= 1.5 * echo
    more = {"times": ratio, "bar_times": case.bar} if ratio else {}
    page.row(case.name, bar, against, figures(o), ratio_text,
             f"echo {echo:.2f} µs: {o['cpu'] / echo:.1f} ×{more_floors}", holds, **more)
    synced = results.get(("Rorqual fdatasync", case.name))
    if synced:
        page.row(f"{case.name}, ours with fdatasync", "", figures(h), figures(synced),
                 f"{h['cpu'] / synced['cpu']:.1f} ×" if h else "", f"echo {echo:.2f} µs{more_floors}",
                 **({"times": h["cpu"] / synced["cpu"]} if h else {}))


def simple(workload, synced):
    def part(fleet, page):
        cases = [Case(f"{workload} 100 B, {places}", workload, "small", places, 10 if places == "1x16" else None,
                      synced=synced) for places in ("1x16", "16x1", "16x16")]
        results = measure(fleet, cases)
        more = f"; {floors.sync_text(floors.machine(fleet.work))}" if synced else ""
        for case in cases:
            add_row(page, case, results, more)
    return part


def multi(fleet, page):
    cases = [Case("multi-get 50", "multi-get", "row", bar=10, per="rows_read", options=["--batch", 50]),
             Case("multi-put 50", "multi-put", "row", bar=10, per="rows_written", options=["--batch", 50])]
    results = measure(fleet, cases)
    alone = [floors.engine(fleet.work, RECORDS, 1000, int(100000 * min(1.0, SECONDS))) for _ in range(ROUNDS)]
    for case, step in zip(cases, ("get", "overwrite")):
        cpu = sorted(a[step] for a in alone)[len(alone) // 2]
        say(f"the engine alone, {step}: {cpu:.2f} us CPU a row")
        add_row(page, case, results, other=(cpu, 0.7, "the engine alone"))


def scan(fleet, page):
    case = Case(f"scan of {SCAN_RECORDS:,} rows", "scan-long", "long", "1x1", 5, "rows_read")
    results = measure(fleet, [case])
    o = results["Rorqual", case.name]
    floor = floors.machine(fleet.work)
    add_row(page, case, results, f"; memcpy {floor['memcpy_gb_per_s']:.1f} GB/s")
    per_core = o["bytes"] / (o["cpu"] * 1e-6 * o["rate"]) / 1e9
    page.row("the same: bytes per second of a core", "≥ 1 GB/s", "", f"{per_core:.2f} GB/s of values", "",
             f"memcpy {floor['memcpy_gb_per_s']:.1f} GB/s", per_core >= 1)


def at_same_rate(fleet, page, cases, results):
    """Both servers get half of the rate that HBase reached. So latencies are free of coordinated omission, and of
    the generator's own wake-ups, because the generator has a separate core. The lower bound is the same load on an
    echo server that replays responses."""
    if fleet.hbase() is None:
        return
    for case in cases:
        rate = results["HBase", case.name]["operations"] / 2
        wake = floors.machine(fleet.work)
        servers = [fleet.hbase(), fleet.ours()]
        if case.shape == "row":
            servers.append(fleet.echo(case.shape))
        runs = {}
        offered = ("--rate", rate, "--ramp", 1, "--awake")
        for _ in range(ROUNDS):
            for server in servers:
                runs.setdefault(server.name, []).append(case.run(server, more=offered, warm=0))
        found = {name: medians(r) for name, r in runs.items()}
        h, o, e = found["HBase"], found["Rorqual"], found.get(f"echo {case.shape}")
        curves = {name: {p: run[p] for p in ("p50", "p90", "p99", "p99.9", "p99.99")} for name, run in found.items()}
        page.row(f"{case.name} at {rate:,.0f}/s: p50 / p99 / p99.9, µs", "p99 ≤ 0.125 ×",
                 f"{h['p50']:.0f} / {h['p99']:.0f} / {h['p99.9']:.0f}",
                 f"{o['p50']:.0f} / {o['p99']:.0f} / {o['p99.9']:.0f}", f"{o['p99'] / h['p99']:.3f} ×",
                 (f"echo {e['p50']:.0f} / {e['p99']:.0f} / {e['p99.9']:.0f}; " if e else "") + floors.wake_text(wake),
                 o["p99"] * 8 <= h["p99"], curves=curves)


def ycsb(fleet, page):
    cases = [Case(f"YCSB {letter.upper()}", f"ycsb-{letter}", "sorted" if letter == "e" else "row", bar=8)
             for letter in "abcdef"]
    results = measure(fleet, cases)
    for case in cases:
        add_row(page, case, results)
    at_same_rate(fleet, page, cases, results)


def wide(fleet, page):
    """The benchmark method of an HBase descendant that claims to be five times as fast as HBase."""
    cases = [Case(f"20 × 20 B: {name}", workload, "wide", bar=8, per=per, options=options)
             for name, workload, per, options in (
                 ("single-row read", "get", "operations", []),
                 ("range read of 50 rows", "scan-short", "operations", ["--scan-rows", 50]),
                 ("single-row write", "put", "operations", []),
                 ("batch write of 100 rows", "multi-put", "operations", ["--batch", 100]))]
    sizes = {}
    for server in (fleet.hbase(), fleet.ours()):
        if server is not None:
            server.table("wide")
            sizes[server.name] = sum(server.table_files("wide").values()) / 1e6
    results = measure(fleet, cases)
    for case in cases:
        add_row(page, case, results)
    h, o = sizes.get("HBase"), sizes["Rorqual"]
    page.row(f"20 × 20 B: files of {SHAPES['wide'][0][1]:,} rows, DIFF + ZSTD against DIFF + SNAPPY", "smaller",
             f"{h:.1f} MB" if h else "", f"{o:.1f} MB", f"{o / h:.2f} ×" if h else "", "", o < h if h else None)
