# SPDX-License-Identifier: Apache-2.0
"""The charts of the page."""
import math

OURS, LIGHT, MISSED = "#1f5fa8", "#8fb4dd", "#d07a12"
PEER = "#777777"
COLOURS = (PEER, OURS)
POINTS = ("p50", "p90", "p99", "p99.9", "p99.99")


def svg(width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n')


def text(x, y, what, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{what}</text>\n'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>\n'


def plot_ratios(ratios, caption, path):
    """Bars from the 1 × line on a logarithmic scale: operations per CPU second, as multiples of HBase's. A row
    is (name, ratio, goal or None). A bar that misses its goal is orange, one with fdatasync light."""
    left, width, step = 270, 860, 24
    height = 122 + step * len(ratios)
    most = max(2.0, *(r for _, r, _ in ratios)) * 1.3
    least = min(0.8, *(r for _, r, _ in ratios)) / 1.2

    def x_of(v):
        return left + (width - left - 70) * math.log(v / least) / math.log(most / least)

    body = text(20, 26, "Operations per second of server CPU, as a multiple of HBase 2.6.1", size=15)
    body += text(20, 44, "log scale; red mark: the goal; orange: goal missed; light: acknowledged after fdatasync, "
                 "Rorqual's default", size=11)
    for tick in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if least < tick < most:
            body += line(x_of(tick), 56, x_of(tick), height - 40, "#444444" if tick == 1 else "#dddddd")
            body += text(x_of(tick), height - 24, f"{tick:g} ×", "middle")
    for i, (name, ratio, goal) in enumerate(ratios):
        y = 62 + i * step
        missed = goal is not None and ratio < goal
        colour = MISSED if missed else LIGHT if "fdatasync" in name else OURS
        begin, end = sorted((x_of(1), x_of(ratio)))
        body += text(left - 8, y + 13, name, "end")
        body += (f'<rect x="{begin:.1f}" y="{y}" width="{end - begin:.1f}" height="{step - 8}" fill="{colour}"/>\n')
        body += text(max(end, x_of(goal) if goal else 0) + 5, y + 13, f"{ratio:.1f} ×")
        if goal:
            body += (f'<rect x="{x_of(goal) - 1.5:.1f}" y="{y - 3}" width="3" height="{step - 2}" '
                     'fill="#b3261e"/>\n')
    body += text(20, height - 6, caption, size=10)
    path.write_text(svg(width, height, body))


def panel(name, curves, x0, y0, wide, high):
    """One workload: latency over percentiles, with a curve for each server."""
    values = [c[p] for c in curves.values() for p in POINTS]
    low, top = math.floor(math.log10(max(1, min(values)))), math.ceil(math.log10(max(10, *values)))
    top = max(top, low + 1)
    body = text(x0, y0 - 8, name)
    for d in range(low, top + 1):
        y = y0 + high - (d - low) / (top - low) * high
        body += line(x0, y, x0 + wide - 40, y, "#dddddd")
        body += text(x0 - 4, y + 4, f"{10 ** d / 1000:g} ms" if d >= 3 else f"{10 ** d} µs", "end", 10)
    for k, p in enumerate(POINTS):
        body += text(x0 + k * (wide - 40) / (len(POINTS) - 1), y0 + high + 14, f"{p[1:]} %", "middle", 10)
    for curve, colour in zip(curves.values(), COLOURS):
        points = []
        for k, p in enumerate(POINTS):
            v = math.log10(max(1, curve[p]))
            points.append(f"{x0 + k * (wide - 40) / (len(POINTS) - 1):.1f},"
                          f"{y0 + high - (v - low) / (top - low) * high:.1f}")
        body += f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{" ".join(points)}"/>\n'
    return body


def plot_latencies(rows, caption, path):
    wide, high = 270, 210
    height = 50 + (len(rows) + 2) // 3 * (high + 60)
    body = text(60, 20, "Latency (log scale) over percentiles of operations, same offered rate: grey "
                + ", blue ".join(list(rows[0][1])[:2]), size=14)
    body += text(60, height - 8, caption, size=10)
    for i, (name, curves) in enumerate(rows):
        body += panel(name.split(":")[0], curves, 60 + i % 3 * (wide + 30), 50 + i // 3 * (high + 60), wide, high)
    path.write_text(svg(60 + 3 * (wide + 30), height, body))
