# SPDX-License-Identifier: Apache-2.0
"""The parts that compare Rorqual with itself under other settings, with the device, or with redis-server."""
import subprocess

import floors
from cluster import HANDOVER, LOOP, cells_shape, medians
from settings import (CELLS_MAX, CLIENT_CORE, IDLE, MEMORY_CELLS, ROUNDS, SECONDS, anonymous_bytes, pinned,
                      say, settle)

KEY_VALUE_FIXED = 4 + 4 + 2 + 1 + 8 + 1  # fixed bytes: lengths, timestamp, type
ROW, FAMILY, QUALIFIER = 16, 2, 5        # lengths in the generator's tables


def in_turn(measures):
    """{name: medians} of {name: function that makes one run}; runs alternate for ROUNDS rounds."""
    runs = {}
    for number in range(ROUNDS):
        for name, measure in measures.items():
            run = measure()
            runs.setdefault(name, []).append(run)
            say(f"round {number + 1}  {name:40} {run['rate']:10.0f}/s {run['cpu']:8.2f} us CPU  "
                f"p99.9 {run['p99.9']:.0f} us")
    return {name: medians(r) for name, r in runs.items()}


def figures(run):
    return f"{run['cpu']:.2f} µs"


def grows(page, name, base, more, bar, places, base_name):
    """Adds a row: CPU per operation, compared with a smaller setup."""
    echo = floors.echo(more, places)
    page.row(name, f"≤ {bar} ×" if bar else "", f"{base_name}: {figures(base)}",
             f"{figures(more)}, {more['rate']:,.0f}/s", f"{more['cpu'] / base['cpu']:.2f} × the CPU",
             f"echo {echo:.2f} µs: {more['cpu'] / echo:.1f} ×",
             more["cpu"] <= bar * base["cpu"] if bar else None)


def redis(fleet, page):
    ours = fleet.ours()
    pairs = [(command, workload, places) for places in ("1x16", "16x1", "16x16")
             for command, workload in (("set", "put"), ("get", "get"))]
    costs, mine = {}, {}
    with floors.Redis(fleet.work) as server:
        for number in range(ROUNDS):
            for command, workload, places in pairs:
                # Enough operations for about SECONDS with this pipelining.
                count = int(SECONDS * (60000 if places == "16x1" else 400000))
                costs.setdefault((command, places), []).append(server.run(command, places, count))
                mine.setdefault((command, places), []).append(ours.run(workload, "small", places))
                say(f"round {number + 1}  {command} {places}: redis {costs[command, places][-1]:.2f} us, ours "
                    f"{mine[command, places][-1]['cpu']:.2f} us")
    for command, workload, places in pairs:
        theirs = sorted(costs[command, places])[ROUNDS // 2]
        o = medians(mine[command, places])
        bar = 0.5 if places == "16x16" else 0.8 if command == "get" else 0.7
        echo = floors.echo(o, places)
        page.row(f"{workload} against redis {command.upper()}, {places}", f"≥ {bar} ×", f"redis {theirs:.2f} µs",
                 figures(o), f"{theirs / o['cpu']:.2f} ×", f"echo {echo:.2f} µs: {o['cpu'] / echo:.1f} ×",
                 theirs / o["cpu"] >= bar)


def sync(fleet, page):
    """Puts with fdatasync, 64 in flight, compared with the device's rate and our own rate without fdatasync."""
    places = "4x16"
    found, device = {}, []

    def synced():
        device.append(floors.machine(fleet.work)["sync"]["per_s"])
        return fleet.synced().run("put", "small", places)

    found = in_turn({"put 4x16, fdatasync": synced, "put 4x16, hand-over": lambda: fleet.ours().run(
        "put", "small", places)})
    s, h = found["put 4x16, fdatasync"], found["put 4x16, hand-over"]
    per_s = sorted(device)[len(device) // 2]
    most = min(per_s * 64, h["rate"])
    page.row("put with fdatasync, 64 in flight: rate", "≥ 0.5 × the lower",
             f"device {per_s:,.0f} × 64 = {per_s * 64:,.0f}/s; hand-over {h['rate']:,.0f}/s",
             f"{s['rate']:,.0f}/s, p99 {s['p99']:.0f} µs", f"{s['rate'] / most:.2f} × the rate",
             f"write + fdatasync of {64 * 230} B {per_s:,.0f}/s", s["rate"] >= 0.5 * most)


def tail(fleet, page):
    """p99.9 of gets while another table is written to, at two flush sizes: one that is never reached, and one
    that is reached often. The writes are the same, so the difference is the effect of flushes and compactions."""
    seconds, places = max(SECONDS, 3 * min(SECONDS, 3)), "16x1"
    settings = {"without": "4g", "with": "4m"}

    def under_writes(server, rate):
        server.table("small")
        writer = subprocess.Popen(
            pinned(CLIENT_CORE, *server.command("multi-put", "--table", "bench_writes", "--records", 20000,
                                                "--value-bytes", 1000, "--batch", 50, "--rate", 150, "--depth", 4,
                                                "--keep", "--seconds", 2 * seconds + 30)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return server.run("get", "small", places, "--rate", rate, seconds=seconds, warm=2)
        finally:
            writer.terminate()
            writer.wait()
            settle(server.pid)

    with fleet.own(*LOOP, *HANDOVER, "-D", f"hbase.hregion.memstore.flush.size={settings['without']}") as calm, \
            fleet.own(*LOOP, *HANDOVER, "-D", f"hbase.hregion.memstore.flush.size={settings['with']}") as busy:
        most = calm.run("get", "small", places)["operations"]
        plain = calm.run("get", "small", places, "--rate", most / 2, seconds=seconds)
        runs, canary, files = {}, [], 0
        for number in range(ROUNDS):
            for name, server in (("without", calm), ("with", busy)):
                canary.append(floors.machine(fleet.work)["wake_us"]["p99.9"])
                roots = ("data", "archive/data")
                before = set(server.table_files("writes", roots))
                runs.setdefault(name, []).append(under_writes(server, most / 2))
                made = len(set(server.table_files("writes", roots)) - before)
                files += made if name == "with" else 0
                say(f"round {number + 1}  get at {most / 2:.0f}/s {name} flushes: p99.9 {runs[name][-1]['p99.9']:.0f} "
                    f"us, {made} files made, canary {canary[-1]:.0f} us")
    quiet, loud = medians(runs["without"]), medians(runs["with"])
    wake = sorted(canary)[len(canary) // 2]
    ratio = max(1.0, loud["p99.9"] - wake) / max(1.0, quiet["p99.9"] - wake)
    page.row(f"p99.9 of get, {places}, at half of the maximum rate ({most / 2:,.0f}/s), 7.5 MB/s written beside it, with "
             f"flushes and compactions ({files} files made)", "≤ 2 ×",
             f"without: {quiet['p99.9']:.0f} µs (nothing written: {plain['p99.9']:.0f})", f"{loud['p99.9']:.0f} µs",
             f"{ratio:.2f} × (canary taken off)", f"canary p99.9 {wake:.0f} µs", ratio <= 2)


def memory(fleet, page):
    """Measures the memory of a million cells in the memstore, by the process's growth between one and several
    million cells."""
    settings = (*LOOP, *HANDOVER, "-D", "hbase.hregion.memstore.flush.size=16g", "-D", "rorqual.memory=16g")
    fixed = KEY_VALUE_FIXED + ROW + FAMILY + QUALIFIER
    for name, value, bar in (("100 bytes as KeyValue", 100 - fixed, 1.5), ("100 bytes of value", 100, 1.5)):
        with fleet.own(*settings) as server:
            resident = []
            for count in (MEMORY_CELLS // 3, MEMORY_CELLS):
                server.bench("get", "--table", f"memory{count}", "--records", count, "--value-bytes", value, "--keep",
                             "--operations", 1, "--depth", 16)
                settle(server.pid)
                resident.append(anonymous_bytes(server.pid))
        grown = (resident[1] - resident[0]) / MEMORY_CELLS
        plain = fixed + value
        page.row(f"memory of a million cells of {name} in the memstore", f"≤ {bar} × KeyValue", f"{plain:.0f} MB",
                 f"{grown:.1f} MB (growth of resident memory, {MEMORY_CELLS:,} cells)", f"{grown / plain:.2f} ×", "",
                 grown <= bar * plain)


def loops(fleet, page):
    """Servers and generator may use both cores."""
    rows = []
    with fleet.own(*HANDOVER, "-D", "rorqual.loops=1", core=None) as one, \
            fleet.own(*HANDOVER, "-D", "rorqual.loops=2", core=None) as two:
        for places in ("16x16", "16x1"):
            found = in_turn({f"{workload} {places}, {n} loop(s)": (lambda s=s, w=workload: s.run(
                w, "small", places, core=None)) for workload in ("get", "put") for n, s in ((1, one), (2, two))})
            rows += [(w, places, found[f"{w} {places}, 1 loop(s)"], found[f"{w} {places}, 2 loop(s)"])
                     for w in ("get", "put")]
    for workload, places, base, more in rows:
        one, two = (sorted(floors.echo(more, places, cores=(-1, -1), loops=n) for _ in range(ROUNDS))[ROUNDS // 2]
                    for n in (1, 2))
        page.row(f"{workload} 100 B, {places}, 2 event loops (server and generator on both cores)", "≤ 1.15 ×",
                 f"1 loop: {figures(base)}", f"{figures(more)}, {more['rate']:,.0f}/s",
                 f"{more['cpu'] / base['cpu']:.2f} × the CPU", f"echo by 1 and 2 loops {one:.2f}, {two:.2f} µs: "
                 f"{two / one:.2f} ×", more["cpu"] <= 1.15 * base["cpu"])


def connections(fleet, page):
    ours, places = fleet.ours(), "16x1"
    found = in_turn({f"get {places} of 16 connections": lambda: ours.run("get", "small", places),
                     f"get {places} of {16 + IDLE}": lambda: ours.run("get", "small", places, "--idle", IDLE)})
    base, more = found.values()
    grows(page, f"get 100 B, 16 active of {16 + IDLE:,} connections", base, more, 1.5, places, "of 16")


def regions(fleet, page):
    ours = fleet.ours()
    for workload in ("get", "put"):
        found = in_turn({f"{workload}, {n} regions": (lambda s=shape: ours.run(workload, s, "1x16"))
                         for n, shape in ((1, "small"), (1000, "regions"))})
        base, more = found.values()
        grows(page, f"{workload} 100 B, 1x16, 1,000 regions", base, more, 1.5, "1x16", "1 region")


def cells(fleet, page):
    """Tables of 10^5 … CELLS_MAX cells in files, read at random; the memory budget allows 10^7 in the cache."""
    counts = [10**n for n in range(5, 10) if 10**n <= CELLS_MAX] or [CELLS_MAX]
    with fleet.own(*LOOP, *HANDOVER, "-D", "rorqual.memory=6g") as server:
        measures = {}
        for count in counts:
            shape = cells_shape(count)
            say(f"loading {count:,} cells")
            server.table(shape)
            settle(server.pid)
            # Reads most blocks once: a hundred cells share one read from the files.
            server.run("get", shape, "16x16", seconds=SECONDS * max(1.0, count / 2e6), warm=0)
            measures[f"get of {count:,} cells"] = lambda s=shape: server.run("get", s, "1x16")
        found = list(in_turn(measures).values())
    for count, more in list(zip(counts, found))[1:]:
        beyond = count * (KEY_VALUE_FIXED + ROW + FAMILY + QUALIFIER + 100) > 2e9
        grows(page, f"get 100 B, 1x16, {count:,} cells{' (beyond the cache)' if beyond else ''}", found[0], more,
              None if beyond else 1.5, "1x16", f"{counts[0]:,} cells")


