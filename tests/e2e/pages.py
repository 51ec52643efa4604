#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The status page in a browser: headless Chromium takes pictures of it, light and dark, wide and narrow, of a new
server, and of one with tables, traffic and slow calls.

    pages.py [FOLDER]    FOLDER keeps the pictures; CHROMIUM names the browser. make pages

The test checks each picture's size, that the background is light or dark, that there is text, and that
nothing extends beyond the right border.
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zlib

from hbase import Client
from rorqual import Report, Server, fail_hard

CHROMIUM = os.environ.get("CHROMIUM", "chromium")
DEADLINE = 1800  # seconds; only for a browser that hangs
WINDOW_MIN = 500  # the narrowest window of Chromium
# compared rows of the 1,400 of a picture; the last rows, where a window's frame may be, have undefined content
PAGE_HEIGHT = 1200


def framed(folder, url, width):
    """The URL of a page with a frame narrower than any window. The frame has a copy, because pages refuse frames."""
    (folder / "copy.html").write_bytes(urllib.request.urlopen(url, timeout=DEADLINE).read())
    page = folder / "frame.html"
    page.write_text(f'<body style="margin:0"><iframe src=copy.html style="border:0;width:{width}px;height:1400px"></iframe>')
    return page.as_uri()


def picture(folder, name, url, width, dark):
    """Pixels of a picture: rows of (r, g, b). The page must leave the browser's console empty: errors of its script, and what its
    policy keeps it from loading, would be there."""
    path = folder / f"{name}.png"
    if width < WINDOW_MIN:
        return [row[:width] for row in picture(folder, name, framed(folder, url, width), WINDOW_MIN, dark)]
    said = console(folder, path, url, width, dark)
    assert not said, said
    return pixels(path.read_bytes())


def console(folder, path, url, width, dark):
    """Takes the picture; returns the lines of the browser's console."""
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
               f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1400", f"--screenshot={path}", "--virtual-time-budget=2000"]
    command += ["--blink-settings=preferredColorScheme=" + ("0" if dark else "1")]
    done = subprocess.run([*command, "--enable-logging=stderr", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                          timeout=DEADLINE, check=True)
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def pixels(png):
    """Decodes a PNG with 8 bits per channel, not interlaced, which is what Chromium writes."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, head = 8, b"", None
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        head = body if kind == b"IHDR" else head
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    channels = {2: 3, 6: 4}[colour]
    assert depth == 8 and not interlaced
    return unfilter(zlib.decompress(data), width, height, channels)


def unfilter(raw, width, height, channels):
    rows, before, stride = [], bytearray(width * channels), width * channels
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, above = (row[i - channels] if i >= channels else 0), before[i]
            corner = before[i - channels] if i >= channels else 0
            row[i] = (row[i] + (0, left, above, (left + above) // 2, paeth(left, above, corner))[kind]) & 255
        rows.append([tuple(row[x * channels:x * channels + 3]) for x in range(width)])
        before = row
    return rows


def paeth(left, above, corner):
    distances = [(abs(left + above - corner - v), i) for i, v in enumerate((left, above, corner))]
    return (left, above, corner)[min(distances)[1]]


def brightness(pixel):
    return sum(pixel) / 3


def check(rows, width, dark):
    assert len(rows[0]) == width, len(rows[0])
    corner = brightness(rows[2][2])
    assert (corner < 60) if dark else (corner > 200), f"the background's brightness is {corner}"
    text = [p for row in rows[:900:3] for p in row if abs(brightness(p) - corner) > 120]
    assert len(text) > 1000, f"{len(text)} pixels of text"
    border = {p for row in rows[:PAGE_HEIGHT] for p in row[-4:]}
    assert len(border) == 1, "something reaches the right border"


def use(server):
    client = Client(server)
    client.create("orders", {"cf": {}}, [b"%d" % i for i in range(1, 10)])
    client.create("customers.by_name", {"cf": {}})
    regions = client.regions("orders")
    for start, name, _ in regions:
        client.data.put_many(name, [(start + b"%05d" % i, {(b"cf", b"q"): b"x" * 100}) for i in range(2000)])
        client.data.scan(name)
    client.data.get(regions[0][1], b"!<b>nobody</b>")
    client.close()


NEW = [("new-light", "/", 1280, False), ("new-dark", "/", 1280, True), ("new-phone", "/", 400, False)]
PICTURES = [("light", "/", 1200, False), ("dark", "/", 1200, True), ("narrow", "/", 500, False), ("phone-light", "/", 400, False), ("phone-dark", "/", 400, True),
            ("slow-light", "/debug/slow", 1200, False),
            ("slow-dark", "/debug/slow", 1200, True)]


def take(report, folder, server, pictures):
    for name, path, width, dark in pictures:
        problem = None
        try:
            check(picture(folder, name, f"http://{server.http}{path}", width, dark), width, dark)
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            problem = repr(e)[:500]
        report.outcome(f"pages/{name}", problem)


def main():
    report = Report()
    if shutil.which(CHROMIUM) is None:
        fail_hard(f"no {CHROMIUM}: tools/setup pages")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-pages-"))
    kept = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    server = Server(folder / "data", folder / "log", "-D", "hbase.ipc.warn.response.size=100000", "-D", "hbase.ipc.warn.response.time=0")
    try:
        take(report, folder, server, NEW)
        use(server)
        take(report, folder, server, PICTURES)
        report.outcome("pages/server stops cleanly", server.stop())
    finally:
        if server.process.poll() is None:
            server.kill()
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            for one in folder.glob("*.png"):
                shutil.copy(one, kept)
        shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
