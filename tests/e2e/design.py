#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rorqual key and rorqual design on the command line: keys encoded and decoded, split keys, schemas with and without hot spots, a live
table, wrong input; and the page in a browser (if CHROMIUM or chromium is installed; make pages installs it).

    design.py [FOLDER]    FOLDER keeps the pictures
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from pages import CHROMIUM, brightness, console, picture
from rorqual import ROOT, Report, Server

DEADLINE = 3600  # seconds; only for a command that hangs
BINARY = str(pathlib.Path(os.environ.get("RORQUAL", ROOT / "build/rorqual")).resolve())
BY_TIME = """table orders
key time:ms user:u64   # the classic mistake
value user zipf 1M 1.1
family details columns 5 qualifier 12 value 40
servers 10
writes 12000/s
reads 20000/s within 1h
arrival daily 3
"""


def run(*arguments, text=""):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, input=text, timeout=DEADLINE, check=False)


def prints(expected, *arguments, text=""):
    done = run(*arguments, text=text)
    assert (done.returncode, done.stdout) == (0, expected), (arguments, done)


def refuses(words, *arguments, text="", code=1):
    done = run(*arguments, text=text)
    assert done.returncode == code and words in done.stderr and done.stdout == "", (arguments, done)


def keys():
    blog = "id:text '_' time:desc-msdigits"
    prints("123_9223370367001975807\n", "key", blog, "123", "2022-12-01T00:00:00Z")
    prints("id=123 time=1668550000000\n", "key", "--decode", blog, "123_9223370368304775807")
    prints("0000000000000007" "7fffffffffffffff\n", "key", "--hex", "u:u64 t:desc-ms", "7", "0")
    prints("7f\n", "key", "--hex", "--", "a:i8", "-1")
    done = json.loads(run("key", "--json", "salt(16) u:u8", "7").stdout)
    assert done["length"] == 2 and done["hex"].endswith("07") and int(done["hex"][:2], 16) < 16, done
    assert json.loads(run("key", "--json", "--decode", "--hex", "salt(16) u:u8", done["hex"]).stdout) == {"u": "7"}
    refuses("not the one that its values encode to", "key", "--decode", "--hex", "salt(16) u:u8", "ff07")
    refuses("unknown type u65", "key", "a:u65", "1")
    refuses("larger than 255", "key", "a:u8", "256")
    refuses("expected a format", "key", code=2)
    assert "salt" in run("key", "--lint", "time:ms").stdout


def splits():
    prints("40000000\n80000000\nc0000000\n", "key", "--splits", "4", "--kind", "hex")
    prints("\\x04\n\\x08\n\\x0C\n", "key", "--splits", "4", "salt(16) a:u64")
    prints("c\ne\ng\n", "key", "--splits", "4", "--sample", "-", text="h\ng\nf\ne\nd\nc\nb\na\n")
    prints("b\n", "key", "--splits", "2", "--sample", "-", text="a\t9\nb\t1\nc\t1\n")
    refuses("give a sample", "key", "--splits", "4", "a:u64")
    refuses("line 2", "key", "--splits", "2", "--sample", "-", text="a\nb\tx\n")


def report(text, *options, code):
    done = run("design", "--json", *options, "-", text=text)
    assert done.returncode == code, done
    return json.loads(done.stdout)


def by_name(found):
    return {v["name"]: v for v in found["variants"]}


def hot_spots():
    """A table by time has a hot spot that salt removes and split keys do not."""
    found = report(BY_TIME, code=3)
    v = by_name(found)
    assert found["isHot"] and "Remedy: salt" in found["verdict"] and "moves through the keys" in found["verdict"], found["verdict"]
    assert v["as designed"]["imbalance"] > 6 and v["presplit"]["imbalance"] > 5 and v["salt"]["imbalance"] < 1.6, v.keys()
    assert abs(found["writes"] - 12000 * 86400) < 1
    assert len(v["salt"]["servers"]) == 10 and all(len(s) == 120 for s in v["salt"]["servers"])
    # Every write is counted: the sum over time and servers matches the rate.
    total = sum(sum(s) for s in v["salt"]["servers"]) * 86400 / 120
    assert abs(total / (found["writes"] + found["reads"]) - 1) < 0.02, total
    assert abs(sum(map(sum, v["salt"]["heat"])) / sum(map(sum, v["salt"]["servers"])) - 1) < 0.01
    assert v["as designed"]["splits"] > 10 and report(BY_TIME, code=3) == found, "another report for the same seed"


def even_tables():
    even = "key user:uuid time:desc-ms\nservers 8\nregions 64 presplit\nwrites 1000/s\nfamily d columns 3 value 50\n"
    found = report(even, code=0)
    assert not found["isHot"] and found["verdict"] == "", found["verdict"]
    assert by_name(found)["as designed"]["regionsAtStart"] == 64
    sequence = "key id:u64\nvalue id sequence\nservers 8\nregions 16\nwrites 1000/s\n"
    v = by_name(report(sequence, code=3))
    assert v["reversed"]["imbalance"] < 1.5 < v["as designed"]["imbalance"], {n: x["imbalance"] for n, x in v.items()}
    star = "key user:u64 time:desc-ms\nvalue user zipf 1k 3\nservers 8\nregions 64 presplit\nwrites 1000/s\n"
    found = report(star, code=3)
    assert "One value of the key's first part" in found["verdict"], found["verdict"]
    names = "key id:uuid\nfamily measurements columns 20 qualifier 30 value 8\nregions 64 presplit\n"
    assert "names of one letter save" in report(names, code=0)["verdict"]


def traces(folder):
    """Recorded accesses, with their times and keys: reads and writes, with the design and its remedies."""
    schema, trace = folder / "traced.design", folder / "trace"
    schema.write_text("table t\nkey time:ms user:u16\nservers 4\nregions 1\nwrites 1/s\nreads 1/s\nvalue user zipf 10 2\n")
    begin = 1700000000000

    def key(time, user):
        return "".join(f"\\x{byte:02X}" for byte in time.to_bytes(8, "big") + user.to_bytes(2, "big"))

    lines = [f"{begin + i * 100}\tw\t{key(begin + i * 100, i % 1000)}\t1000" for i in range(20000)]
    lines += [f"{begin + i * 1000}\tr\t{key(begin + i * 100, i % 1000)}" for i in range(2000)]
    trace.write_text("# times out of order\n\n" + "\n".join(reversed(lines)) + "\n")
    done = run("design", "--json", "--trace", str(trace), str(schema))
    found = json.loads(done.stdout)
    v = by_name(found)
    assert done.returncode == 3 and (found["writes"], found["reads"]) == (20000, 2000), done
    assert abs(found["periodSeconds"] - 1999.901) < 0.01 and v["as designed"]["rowBytes"] == 1000, found["periodSeconds"]
    assert abs(v["as designed"]["bytes"] - 2e7) < 1e4, "reads count as written bytes"
    assert v["as designed"]["imbalance"] > 2 and v["salt"]["imbalance"] < 1.3 and "hash prefix" not in v, {n: x["imbalance"] for n, x in v.items()}
    total = sum(sum(s) for s in v["salt"]["servers"]) * found["periodSeconds"] / 120
    assert abs(total / 22000 - 1) < 0.01, total
    # The load has the trace's times: writes over the whole time, and reads together with them.
    loads = [sum(server[step] for server in v["salt"]["servers"]) for step in range(120)]
    assert max(loads) < 1.2 * min(loads), (min(loads), max(loads))
    sampled = json.loads(run("design", "--json", "--trace", "-", "--samples", "12000", str(schema), text=trace.read_text()).stdout)
    assert (sampled["writes"], sampled["reads"]) == (20000, 2000), "a sample changes the sums"
    assert abs(by_name(sampled)["salt"]["imbalance"] - v["salt"]["imbalance"]) < 0.2
    one = f"{begin}\tr\t{key(begin, 1)}\n"
    found = json.loads(run("design", "--json", "--trace", "-", str(schema), text=one).stdout)
    assert (found["writes"], found["reads"], found["variants"][0]["bytes"]) == (0, 1, 0), found["variants"][0]["bytes"]
    for text, words in (("", "no access"), ("#\n", "no access"), ("x\tw\tk\n", "line 1: the time"), (f"{begin}\tx\tk\n", "line 1: the second field must be r or w"),
                        (f"{begin}\tw\n", "line 1: the key is missing"), (f"{begin}\tw\t\n", "the key is missing"), (f"{begin}\tw\tk\tmany\n", "must be a number of bytes"),
                        (f"{begin}\tw\tk\t1\t2\n", "must be a number of bytes"), (f"-1\tw\tk\n", "the time"), (f"{'9' * 30}\tw\tk\n", "the time"),
                        (f"{begin}\tw\t{'k' * 40000}\n", "32767"), (f"{begin}\tw\tshort\n", "key short"), (one + "\0\n", "line 2 is not text")):
        refuses(words, "design", "--trace", "-", str(schema), text=text)
    refuses("No such file", "design", "--trace", "/nonexistent/trace", str(schema))
    refuses("standard input", "design", "--trace", "-", "-", code=2)
    refuses("exclude each other", "design", "--trace", str(trace), "--from", "memory:", "t", code=2)


def large():
    """10^9 writes to 100,000 regions."""
    found = report(BY_TIME.replace("time:ms user:u64", "id:uuid") .replace("value user zipf 1M 1.1\n", "") + "regions 100000 presplit\n", code=0)
    assert found["writes"] > 1e9 and by_name(found)["as designed"]["regionsAtStart"] == 100000
    assert "regions on each server" in found["verdict"]


def wrong_schemas():
    for text, words in (("", "has no key"), ("key a:u65\n", "line 1"), ("key a:u8\nvalue b random\n", "line 2"), ("nonsense\n", "line 1: nonsense"),
                        ("key a:u8\n\nwrites many\n", "line 3"), ("key a:u8\nservers 0\n", "1 to 10000"), ("key a:u8\nvalue a uniform 300 400\n", "larger than 255"),
                        ("key a:u8\nvalue a zipf 0 1\n", "zipf COUNT SKEW"), ("value a random\n", "the key line must come first"), ("key a:u8\nkey b:u8\n", "a key already")):
        refuses(words, "design", "-", text=text)
    refuses("No such file", "design", "/nonexistent/schema")
    refuses("name one file", "design", code=2)


def schema_of_help():
    """The schema that the help shows is one."""
    lines = re.findall(r"(?m)^    (.*)$", run("design", "--help").stdout)
    begin = lines.index("table orders")
    found = report("\n".join(lines[begin:]), code=3)
    assert found["table"] == "orders" and found["writes"] == 10000 * 86400, found


def live_table(folder):
    """Writes rows in key order through the library's example."""
    where = f"file:{folder / 'blog'}"
    subprocess.run([str(ROOT / "build/examples/example_blog"), where], check=True, stdout=subprocess.DEVNULL)
    done = run("design", "--json", "--from", where, "--servers", "4", "blog")
    found = json.loads(done.stdout)
    assert done.returncode in (0, 3) and found["writes"] == 10000 and len(found["variants"]) == 1, done
    done = run("design", "--json", "--from", where, "--chance", "20", "blog")
    assert 8000 < json.loads(done.stdout)["writes"] < 12000, done.stdout[:300]
    assert run("design", "--from", where, "nothing").returncode == 1
    assert run("design", "--from", "file:/nonexistent", "nothing").returncode == 1


def watched(writer, *arguments):
    """`rorqual design --watch` of a table that the shell `writer` uses. It is repeated while the shell has not begun, or does not
    run for so long on a busy machine."""
    while True:
        done = run("design", *arguments)
        if done.returncode == 0:
            return done
        assert done.returncode == 1 and "no requests" in done.stderr and writer.poll() is None, done


def requests(folder):
    """A table of four regions of which only the third one gets requests."""
    server = Server(folder / "watched", folder / "watched.log")
    where = ("--zk", server.zk)
    try:
        made = run("shell", *where, "-n", text="create 'watched', 'f', SPLITS => ['d', 'm', 't']\ncreate 'idle', 'f'\n")
        assert made.returncode == 0, made
        with subprocess.Popen([BINARY, "shell", *where, "-n"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as writer:
            writer.stdin.write("loop { put 'watched', 'n1', 'f:q', 'v'; get 'watched', 'p' }\n")
            writer.stdin.close()
            try:
                html = folder / "watched.html"
                done = watched(writer, "--json", "--watch", "2", "--html", str(html), *where, "watched")
                text = watched(writer, "--watch", "1", *where, "watched").stdout
            finally:
                writer.kill()
        found = json.loads(done.stdout)
        v = found["variants"][0]
        assert (found["serverCount"], v["name"], v["regionsAtStart"], v["splits"], v["hottestKey"]) == (1, "as measured", 4, 0, "m"), found
        assert found["writes"] > 0 and found["reads"] > 0 and 1.5 < found["periodSeconds"] < 100, found
        assert v["hottestRegionShare"] == 1 and [band["key"] for band in v["bands"]] == ["", "d", "m", "t"], v
        step_s = found["periodSeconds"] / 120
        assert abs(sum(map(sum, v["heat"])) * step_s / (found["writes"] + found["reads"]) - 1) < 0.01, v
        assert sum(v["heat"][2]) > 0 and not any(any(v["heat"][band]) for band in (0, 1, 3)), v["heat"]
        assert "as measured" in text and "as measured" in html.read_text(), text
        refuses("no requests", "design", "--watch", "1", *where, "idle")
        refuses("no open region", "design", "--watch", "1", *where, "nothing")
    finally:
        problem = server.stop()
    assert problem is None, problem
    refuses("name one table", "design", "--watch", "1", code=2)
    refuses("need --watch", "design", *where, "-", code=2)
    refuses("excludes --from", "design", "--watch", "1", "--from", "memory:", "t", code=2)


def page(folder):
    """The page shows the verdict in red and the maps in colour, light and dark, in wide and narrow windows; nothing exceeds its border, its
    script has no error, and it loads nothing."""
    schema, html = folder / "orders.design", folder / "orders.html"
    schema.write_text(BY_TIME.replace("orders", "<orders>"))
    assert run("design", "--html", str(html), str(schema)).returncode == 3
    assert "://" not in html.read_text(), "the page refers to another"
    if shutil.which(CHROMIUM) is None:
        print(f"no {CHROMIUM}: the page is not looked at")
        return
    for width, dark in ((1200, False), (1200, True), (700, False), (400, True)):
        rows = picture(folder, f"design-{width}-{'dark' if dark else 'light'}", html.as_uri(), width, dark)
        corner = brightness(rows[2][2])
        assert (corner < 60) if dark else (corner > 200), corner
        pixels = [p for row in rows[::2] for p in row[::2]]
        hot = sum(r > 200 and 100 < g < 220 and b < 90 for r, g, b in pixels)
        cold = sum(r < 30 and g < 20 and 20 < b < 60 for r, g, b in pixels)
        share = width / 1200  # a narrow window has smaller maps
        assert hot > 3000 * share ** 2 and cold > 50000 * share ** 2, f"{width} wide, the maps have {hot} hot and {cold} cold pixels"
        assert len({p for row in rows for p in row[-4:]}) == 1, "something reaches the right border"
    # A page that fails, or asks another server, is noticed.
    for wrong, word in (("undefinedFunction();", "undefinedFunction"), ("fetch('http://127.0.0.1:9/');", "Content Security Policy")):
        bad = folder / "bad.html"
        bad.write_text(html.read_text().replace("</script>", wrong + "</script>"))
        said = console(folder, folder / "bad.png", bad.as_uri(), 1200, False)
        assert any(word in line for line in said), (wrong, said)


def main():
    report_ = Report()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-design-"))
    tests = {"keys": keys, "splits": splits, "hot spots": hot_spots, "even tables": even_tables, "traces": lambda: traces(folder), "large": large, "wrong schemas": wrong_schemas, "schema of the help": schema_of_help,
             "a live table": lambda: live_table(folder), "requests": lambda: requests(folder), "page": lambda: page(folder)}
    try:
        for name, test in tests.items():
            problem = None
            try:
                test()
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as e:
                problem = repr(e)[:1500]
            report_.outcome(f"design/{name}", problem)
        if len(sys.argv) > 1:
            pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
            for one in folder.glob("*.png"):
                shutil.copy(one, sys.argv[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report_.finish()


if __name__ == "__main__":
    sys.exit(main())
