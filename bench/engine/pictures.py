# SPDX-License-Identifier: Apache-2.0
"""A chart of the engine's growth: CPU per operation on the left, memory on the right."""
import math

COLOURS = ("#d07a12", "#1f5fa8", "#3b7a3b", "#8a3b8f")
WIDE, HIGH, LEFT, TOP, GAP = 340, 240, 60, 50, 120


def text(x, y, what, anchor="start", size=12, colour="#000000"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
            f'{what}</text>\n')


def line(x1, y1, x2, y2, colour, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>\n'


def axis(cells, left, most, unit):
    """The frame of one panel, and a function from values to positions in it. The axis of cells is logarithmic."""
    low, high = math.log(min(cells)), math.log(max(max(cells), min(cells) * 2))
    step = 10 ** math.floor(math.log10(most / 4))
    step *= 5 if most / step > 20 else 2 if most / step > 8 else 1

    def place(n, v):
        return (left + (math.log(n) - low) / (high - low) * WIDE, TOP + HIGH - v / most * HIGH)

    body, tick = "", 0.0
    while tick <= most:
        _, y = place(cells[0], tick)
        body += line(left, y, left + WIDE, y, "#dddddd") + text(left - 6, y + 4, f"{tick:g} {unit}", "end", 10)
        tick += step
    for n in cells:
        body += text(place(n, 0)[0], TOP + HIGH + 16, f"{n:g} M", "middle", 10)
    return body, place


def curve(points, colour):
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>\n' for x, y in points)
    ends = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{ends}"/>\n{dots}'


def plot_growth(names, rows, ceiling, caption, path):
    """rows: (millions of cells, [CPU µs for each name], peak MB). caption: time and place of the measurement."""
    cells = [n for n, _, _ in rows]
    body, place = axis(cells, LEFT, 1.1 * max(max(c) for _, c, _ in rows), "µs")
    body += text(LEFT, 24, "CPU per operation over cells in the table (log scale)", size=14)
    for i, name in enumerate(names):
        body += curve([place(n, cpu[i]) for n, cpu, _ in rows], COLOURS[i])
        body += text(LEFT + 6, TOP + 14 + 15 * i, name, colour=COLOURS[i])
    right = LEFT + WIDE + GAP
    frame, place = axis(cells, right, 1.2 * max(ceiling, *(m for _, _, m in rows)), "MB")
    body += frame + text(right, 24, "largest resident memory; dashed: the budget", size=14)
    body += curve([place(n, m) for n, _, m in rows], COLOURS[1])
    _, y = place(cells[0], ceiling)
    body += line(right, y, right + WIDE, y, "#b3261e", ' stroke-dasharray="6 4"')
    width, height = right + WIDE + 40, TOP + HIGH + 56
    body += text(LEFT, height - 8, caption, size=10)
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                    f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
                    f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}</svg>\n')
