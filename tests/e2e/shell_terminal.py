#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual shell` on a terminal: the scenes of docs/shell.md, the pager, colours, progress bars. own_shell.py runs the
tests.

    shell_terminal.py           compares the captures in docs/shell.md with what the terminal shows
    shell_terminal.py --write   renews them

A scene is a list of keys, each with a text that must appear before the next key: the next prompt, or output of a running
command. The scene's capture is the screen at the end, with times and counts replaced.
"""
import fcntl
import itertools
import os
import pathlib
import re
import resource
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty

from rorqual import BINARY, ROOT, Report
from shell_world import shell

PAGE = ROOT / "docs/shell.md"
MASKS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", "2026-03-01T12:00:00.000"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\b", "2026-03-01T12:00:00.00"),
    (r"Took [0-9.]+ seconds", "Took 0.0004 seconds"),
    (r"count: \d+ rows, \d+ rows/s", "count: 61250 rows, 40800 rows/s"),
    (r"^\^C", "^C"),
]


NUMBERS = itertools.count()


class Terminal:
    """A terminal of 100 columns, made with tmux."""

    def __init__(self, environment, *command, lines=50):
        self.name = f"rorqual-shell-{os.getpid()}-{next(NUMBERS)}"
        set_first = ["LC_ALL=C.UTF-8", *(f"{k}={v}" for k, v in environment.items())]
        self.tmux("new-session", "-d", "-s", self.name, "-x", "100", "-y", str(lines), shlex.join(["env", *set_first, *command]))

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", self.name, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout

    def type(self, *keys):
        self.tmux("send-keys", "-t", self.name, *keys)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options, "-t", self.name)

    def shows(self, text):
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if re.search(text, self.screen()) if isinstance(text, re.Pattern) else text in self.screen():
                return True
            time.sleep(0.02)
        return False

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, stderr=subprocess.DEVNULL)


def table(more=""):
    """Keys that make a table of three cells; more: further arguments of each put."""
    return [(["create 'visits', 'page', 'user'", "Enter"], "hbase:002:0>"),
            ([f"put 'visits', 'row1', 'page:title', 'Welcome'{more}", "Enter"], "hbase:003:0>"),
            ([f"put 'visits', 'row1', 'user:name', 'Ada'{more}", "Enter"], "hbase:004:0>"),
            ([f"put 'visits', 'row2', 'page:title', 'About'{more}", "Enter"], "hbase:005:0>")]


TABLE = table()
# A timestamp without milliseconds is shorter, which changes columns.
STAMPED = table(", 1772366400123")
# Rows, and a pause after each one that is counted, so that a count lasts minutes and shows its line.
ROWS = ("Rows.mutate_all('visits', 2, (0...5000).map { |i| \"r#{i}\" }, [['page', 'n', nil, 4, 'v']], ''); "
        "class Rows::Scanner; alias step count; def count; sleep 0.05; step; end; end; 40")

# name: keys that are not shown; keys of the scene; whether the screen is captured before the last keys.
SCENES = {
    "completion": (TABLE, [(["desc", "Tab"], "describe_namespace"),
                           (["C-u", "put 'vi", "Tab", "', 'row3', 'us", "Tab"], "'user:"),
                           (["name', 'Bo'", "Enter"], "hbase:006:0>")], None),
    "history": (TABLE, [(["C-r"], "bck:"), (["Wel"], "bck:Wel")], None),
    "wide": (STAMPED, [(["\\x", "Enter"], "hbase:006:0>"), (["scan 'visits'", "Enter"], "2 row(s)")], "hbase:007:0>"),
    "aligned": (STAMPED, [(["\\o table", "Enter"], "hbase:006:0>"), (["scan 'visits'", "Enter"], "2 row(s)")], "hbase:007:0>"),
    "interrupt": (STAMPED, [(["puts 'asleep'; sleep 3600", "Enter"], re.compile("(?m)^asleep$")), (["C-c"], "hbase:006:0>"),
                          (["get 'visits', 'row2'", "Enter"], "1 row(s)")], "hbase:007:0>"),
    "progress": (TABLE + [([ROWS, "Enter"], "=> 40")],
                 [(["count 'visits', INTERVAL => 1000000, CACHE => 1", "Enter"], re.compile(r"count: \d+ rows, \d+ rows/s"))], None),
    "question": (TABLE, [(["disable 'visits'; drop 'visits'", "Enter"], "Go on (y/n)?"), (["n", "Enter"], "hbase:006:0>")], None),
}


def masked(text):
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def steps(terminal, keys):
    for typed, text in keys:
        terminal.type(*typed)
        if not terminal.shows(text):
            raise AssertionError(f"{typed}: no {text!r} in\n{terminal.screen()}")


def capture(name, folder):
    before, keys, last = SCENES[name]
    terminal = Terminal({"HOME": folder, "NO_COLOR": "1", "XDG_STATE_HOME": folder}, BINARY, "shell", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *before])
        terminal.type("C-l")
        steps(terminal, keys + ([([], last)] if last else []))
        return masked(terminal.screen())
    finally:
        terminal.close()


def block(name):
    return re.compile(rf"(<!-- capture {name}: tests/e2e/shell_terminal.py -->\n```\n)(.*?)(\n```\n)", re.S)


def captures(_):
    page = PAGE.read_text()
    for name in SCENES:
        with tempfile.TemporaryDirectory(prefix="rorqual-shell-") as folder:
            found = block(name).search(page)
            if found is None:
                return f"docs/shell.md has no capture {name}"
            got = capture(name, folder)
            if got != found.group(2):
                return f"{name}: docs/shell.md has\n{found.group(2)}\nthe terminal shows\n{got}"
    return None


def write():
    page = PAGE.read_text()
    for name in SCENES:
        with tempfile.TemporaryDirectory(prefix="rorqual-shell-") as folder:
            text = capture(name, folder)
        page, count = block(name).subn(lambda m, text=text: m.group(1) + text + m.group(3), page)
        print(f"{name}: {count} written")
    PAGE.write_text(page)


def on_terminal(folder, environment, keys):
    """The screen with its colours, after the keys."""
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, **environment}, BINARY, "shell", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *keys])
        return terminal.screen("-e")
    finally:
        terminal.close()


def colours(folder):
    """The header is bold on a terminal, but not with NO_COLOR or in a pipe."""
    keys = [*TABLE, (["scan 'visits'", "Enter"], "2 row(s)"), (["get 'none', 'r'", "Enter"], "Unknown table none!")]
    bold, red = re.compile(r"\x1b\[1mROW"), re.compile(r"\x1b\[31m(\x1b\[49m)?ERROR")
    screen = on_terminal(folder, {}, keys)
    if not bold.search(screen) or not red.search(screen):
        return f"no colours: {screen!r}"
    screen = on_terminal(folder, {"NO_COLOR": "1"}, keys)
    if bold.search(screen) or red.search(screen):
        return "colours in spite of NO_COLOR"
    text = "create 't', 'f'\nscan 't'\nget 'none', 'r'\n"
    done = subprocess.run([BINARY, "shell", "memory:"], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return "escapes in a pipe" if "\x1b" in done.stdout + done.stderr else None


def pager(folder):
    """A scan longer than the screen goes to the pager, a short one does not; the pager may end before the scan."""
    rows = "Rows.mutate_all('visits', 2, (0...3000).map { |i| \"r#{i}\" }, [['page', 'n', nil, 4, 'v']], ''); nil"
    own = pathlib.Path(folder) / "pager"
    own.write_text("#!/bin/sh\necho PAGED\nhead -n 3\n")
    own.chmod(0o755)
    keys = [*TABLE, (["scan 'visits'", "Enter"], "2 row(s)"), ([rows, "Enter"], "hbase:007:0>"), (["C-l"], "hbase:007:0>"),
            (["scan 'visits'", "Enter"], "PAGED"), (["puts 6 * 7", "Enter"], re.compile("(?m)^42$")),
            (["\\pager", "Enter"], "The pager is off"), (["scan 'visits', LIMIT => 200", "Enter"], "200 row(s)")]
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PAGER": str(own)}, BINARY, "shell", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *keys])
        return None
    finally:
        terminal.close()


def interrupted(folder):
    """Ctrl-C ends a count, a scan and a procedure's wait; the next command works."""
    keys = [*TABLE, ([ROWS, "Enter"], "=> 40"),
            (["count 'visits', CACHE => 1, INTERVAL => 1000000", "Enter"], re.compile(r"count: \d+ rows")), (["C-c"], "hbase:007:0>"),
            (["\\watch 0.2 exists 'visits'", "Enter"], re.compile(r"(?s)does exist.*does exist")), (["C-c"], "hbase:008:0>"),
            (["get 'visits', 'row2', 'page:title'", "Enter"], "value=About")]
    # Each loop says that it runs. Before that Ctrl-C could delete the typed line.
    more = "x += 1; puts 'be' + 'gun' if x == 9000"
    loops = ["while true", more, "end # of it"], ["begin", more, "end until x < 0"], [f"loop {{ {more} }}"], [f"(1..10**15).each {{ |i| {more} }}"], [f"(10**15).times {{ |i| {more} }}"]
    number = 10
    for lines in loops:
        keys.append((["C-l", f"x = {number}", "Enter"], f"=> {number}"))
        for line in lines[:-1]:
            keys.append(([line, "Enter"], line))
        keys += [([lines[-1], "Enter"], re.compile("(?m)^begun$")), (["C-c"], re.compile(r"(?m)\^C\n*hbase:"))]
        number += 1
    keys.append((["x >= 9000", "Enter"], "=> true"))
    screen = on_terminal(folder, {}, keys)
    return f"the line of progress is left: {screen}" if "rows/s" in screen else None


def other_ways(folder):
    """\\timing, \\export, -y."""
    file = pathlib.Path(folder) / "rows.csv"
    keys = [*TABLE, (["\\timing", "Enter"], "Timing is on"), (["1 + 1", "Enter"], re.compile(r"Time: [0-9.]+ ms")),
            ([f"\\export {file}", "Enter"], "written to"), (["scan 'visits'", "Enter"], "2 row(s) in")]
    on_terminal(folder, {}, keys)
    lines = file.read_text().splitlines()
    if lines[0] != "row,column,timestamp,value" or len(lines) != 4:
        return f"exported: {lines}"
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, BINARY, "shell", "-y", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *TABLE, (["truncate 'visits'; count 'visits'", "Enter"], "=> 0")])
        return None
    finally:
        terminal.close()


def completed(folder):
    """The words that Tab completes at each position; columns are those of the first rows."""
    words = [("get 'visits', 'row1', 'page:t", "'page:title"), ("scan 'visits', {COLUMNS => 'us", "'user:"), ("alter 'visits', NAME => 'us", "NAME => 'user$"),
             ("scan 'visits', LIM", "LIMIT"), ("create 'x', {NAME => 'f', COMPRESSION => 'SN", "'SNAPPY"), ("scan 'visits', FILTER => \"Pref", '"PrefixFilter\\('),
             ("help 'clone_sn", "'clone_snapshot"), ("help 'repl", "'replication"), ("status 'det", "'detailed"), ("drop_namespace 'sa", "'sales"),
             ("describe 'sales:o", "'sales:orders"), ("delete_snapshot 'on", "'one"), ("\\\\o js", "o json"), ("\\\\as he", "as hex"), ("put 'none', 'r', 'x", "'x$")]
    keys = [*TABLE, (["create_namespace 'sales'; create 'sales:orders', 'o'; snapshot 'visits', 'one'; 7", "Enter"], "=> 7")]
    for typed, shown in words:
        keys.append((["C-u", typed.replace("\\\\", "\\"), "Tab"], re.compile(rf"(?m)^hbase:006:0> .*{shown}")))
    # options that are valid at this position
    keys.append((["C-u", "C-l", "scan 'visits', {", "Tab"], "ROWPREFIXFILTER"))
    on_terminal(folder, {"NO_COLOR": "1"}, keys)
    return None


def forms_are_told(folder):
    """The list of commands fits into 80 columns. \\o and \\as without arguments show what is set; without \\as, rows have the
    form set by \\o."""
    longest = max(len(line) for line in shell("memory:", text="\\?\n").stdout.splitlines() if line.startswith(("\\", "   ")))
    if longest > 80:
        return f"{longest} columns"
    keys = [*TABLE, (["C-l", "\\?", "Enter"], "ends the shell"), (["\\o", "Enter"], "Form of rows: hbase; of values: hbase"), (["\\as hex", "Enter"], "Form of rows: table; of values: hex"),
            (["\\as", "Enter"], re.compile("(?s)values: hex.*Form of rows: hbase; of values: hbase")), (["C-l", "\\o table", "Enter"], "Form of rows: table; of values: hbase"),
            (["\\as int", "Enter"], "of values: int"), (["C-l", "\\as", "Enter"], "Form of rows: table; of values: hbase"),
            (["\\o nothing", "Enter"], "ERROR: \\o nothing: hbase, table"), (["C-l", "\\as hex", "Enter", "\\x", "Enter", "\\x", "Enter", "get 'visits', 'row2'", "Enter"], "41626f7574")]
    on_terminal(folder, {"NO_COLOR": "1"}, keys)
    return None


def many_tables(folder):
    """Tab reads the names of at most 200 tables, says that there are more, and completes the common prefix of all
    names."""
    make = "(0...210).each { |i| create \"many_#{i + 100}\", 'f' }; create 'many_x', 'f'; create_namespace 'n'; create 'n:t', 'f'; 7"
    keys = [([make, "Enter"], "=> 7"), (["C-l", "exists 'ma", "Tab"], "exists 'many_"),
            (["Tab"], re.compile(r"many_299\s+and more; type more letters")), (["x", "Tab", "'", "Enter"], "Table many_x does exist"),
            (["C-l", "exists 'n:", "Tab", "'", "Enter"], "Table n:t does exist"), (["C-l", "exists '", "Tab"], "and more; type"),
            (["C-u", "exists 'many_30", "Tab"], re.compile(r"many_300 .*many_303")), (["C-u", "exists 'hbase:m", "Tab", "'", "Enter"], "Table hbase:meta does exist")]
    screen = on_terminal(folder, {"NO_COLOR": "1"}, keys)
    return f"a gap where none is: {screen}" if "more" in screen.split("many_303")[-1] else None


def what_fails_is_over(folder):
    """An export that cannot be written is refused; a watch that cannot be read is an error; control characters in text do not
    reach the terminal."""
    keys = [*TABLE, (["\\export /nope/rows.csv", "Enter"], "ERROR: /nope/rows.csv cannot be written: No such file or directory"),
            (["scan 'visits'", "Enter"], "2 row(s)"), (["\\watch 1 1 +", "Enter"], "ERROR: "), (["3 * 3", "Enter"], "=> 9"),
            (["put 'visits', 'row9', 'page:title', \"a\\e[31mred\\n\u00e9\\xff\"", "Enter"], "hbase:010:0>"), (["\\as text", "Enter"], "hbase:011:0>"),
            (["get 'visits', 'row9'", "Enter"], "a\\x1B[31mred\\x0A\u00e9\\xFF")]
    screen = on_terminal(folder, {"NO_COLOR": "1"}, keys)
    return f"a backtrace of preludes: {screen}" if "prelude/" in screen else None


def history_is_kept(folder):
    """Two concurrent shells that end with their terminals: the statements of both are kept, as are earlier ones."""
    state = pathlib.Path(folder) / "kept"
    state.mkdir()
    environment = {"HOME": str(state), "XDG_STATE_HOME": str(state)}
    opened = []
    try:
        for number in (1, 2):
            opened.append(Terminal(environment, BINARY, "shell", "memory:", lines=24))
            steps(opened[-1], [([], "hbase:001:0>")])
        for number, terminal in enumerate(opened):
            steps(terminal, [([f"[{number},", "Enter"], "hbase:002:1*"), ([f"'\u00e9 \\\\ {number}']", "Enter"], "hbase:003:0>")])
    finally:
        for terminal in opened:
            terminal.close()
    keys = [(["C-r"], "bck:"), (["1,"], "[1,"), (["C-a"], "hbase:001:0> [1,"), (["C-u", "C-r"], "bck:"), (["0,"], "[0,")]
    terminal = Terminal(environment, BINARY, "shell", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *keys, (["Enter"], "=> [0, \"\u00e9 \\\\ 0\"]")])
        return None
    finally:
        terminal.close()


def hints(folder):
    """After an error the prompt suggests a correction; a pipe gets only the error. Continuation lines have a prompt."""
    cases = [("lst", "Did you mean list?"), ("craete 't', 'f'", "Did you mean create?"), ("create \u2018t\u2019, \u2018f\u2019", "others are letters of names."),
             ("scan users", "are quoted: 'users'."), ("select * from t", "This is no SQL: list; scan 't'"), ("SHOW TABLES", "This is no SQL"),
             ("create 't', {NAME => 'f' VERSIONS => 1}", "A comma stands between two arguments."), ("scan 't' {LIMIT => 1}", "A comma stands between two arguments.")]
    keys = [(["C-l", typed, "Enter"], shown) for typed, shown in cases]
    keys += [(["C-l", "xyzzy", "Enter"], "`xyzzy'"), (["1.times {", "Enter"], "hbase:011:1*"), (["puts [3,", "Enter"], "hbase:012:2*"), (["4]", "Enter"], "hbase:013:1*"),
             (["}", "Enter"], re.compile("(?m)^4$"))]
    screen = on_terminal(folder, {"NO_COLOR": "1"}, keys)
    if "mean" in screen or "comma" in screen:
        return f"a hint where none is due: {screen}"
    piped = shell("memory:", text="".join(typed + "\n" for typed, _ in cases)).stdout
    return f"hints in a pipe: {piped}" if any(shown in piped for _, shown in cases) else None


def typed(environment, *texts):
    """The output of a shell to which texts are sent, each at once, as a terminal sends pasted text. `texts`: pairs of a text and the output
    that is waited for before the next text is sent."""
    ours, theirs = os.openpty()
    process = subprocess.Popen([BINARY, "shell", "memory:"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", **environment})
    os.close(theirs)
    seen = b""
    try:
        for text, answer in [("", "hbase:001:0> "), *texts]:
            begin = len(seen)
            os.write(ours, text.encode())
            while answer.encode() not in seen[begin:]:
                if not select.select([ours], [], [], 300)[0]:
                    raise AssertionError(f"no {answer!r} after {text!r}: {seen!r}")
                seen += os.read(ours, 65536)
        os.write(ours, b"exit\r")
        while True:
            seen += os.read(ours, 65536)
    except OSError:  # the shell has ended
        return seen.decode(errors="backslashreplace")
    finally:
        process.terminate()
        process.wait()
        os.close(ours)


def pasted_tabs_indent(folder):
    """They do not complete words, which would put the list of all commands into the middle of a pasted script."""
    seen = typed({"HOME": folder}, ("[1,\r\t2].each { |x|\r\t \tputs x * 21\r}\r", "=> [1, 2]"))
    return None if "\n42\r" in seen and "alter_async" not in seen else seen


def any_locale_has_letters(folder):
    """Without a locale, as over ssh or in a container, letters beyond ASCII are typed all the same."""
    seen = typed({"HOME": folder, "LC_ALL": "C"}, ("'\u00e9\u4e16'.bytes\r", "=> ["))
    return None if "=> [195, 169, 228, 184, 150]" in seen else seen


def suspended(folder):
    """After Ctrl-Z and fg a line is edited as before: what was typed is still there, and what is typed is shown once."""
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PS1": "ready> "}, "bash", "--norc", "--noprofile", "-i", lines=24)
    try:
        steps(terminal, [([], "ready>"), ([shlex.join([str(BINARY), "shell", "memory:"]), "Enter"], "hbase:001:0>"), (["3 *"], "hbase:001:0> 3 *"), (["C-z"], "Stopped"),
                         (["fg", "Enter"], re.compile(r"(?s)Stopped.*hbase:001:0> 3 \*")), ([" 14", "Enter"], "=> 42"), ([], "hbase:002:0>")])
        screen = terminal.screen()
        return None if screen.count("3 * 14") == 1 else screen
    finally:
        terminal.close()


def resized(folder):
    """A line that is being typed when the terminal becomes narrower is drawn for the new width. If text arrives before the
    shell has seen the change, it is drawn for the old one until the next change: this is tried again."""
    for _ in range(5):
        problem = resized_once(folder)
        if problem is None:
            return None
    return problem


def resized_once(folder):
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, BINARY, "shell", "memory:", lines=24)
    words = " ".join(f"word{i}," for i in range(12))
    try:
        steps(terminal, [([], "hbase:001:0>"), (["["], "hbase:001:0> [")])
        terminal.tmux("resize-window", "-t", terminal.name, "-x", "40", "-y", "24")
        terminal.type(words)
        steps(terminal, [([], re.compile("word11,"))])
        terminal.type("C-u", "6 * 7", "Enter")
        steps(terminal, [([], "=> 42"), ([], "hbase:002:0>")])
        screen = terminal.screen()
        return screen if "word" in screen else None
    finally:
        terminal.close()


def prompt(folder):
    """The prompt: completion, statements of several lines, Ctrl-C, a question before a drop, history."""
    steps = [
        (["create 'long_name', 'fam'", "Enter"], "Created table long_name"),
        (["desc", "Tab"], "describe"),
        (["C-u", "put 'long", "Tab", "', 'r', 'fa", "Tab", "q', 'v'", "Enter"], "put 'long_name', 'r', 'fam:q', 'v'"),
        (["scan 'long_name'", "Enter"], " r                         column=fam:q,"),
        # Ctrl-C before the statement begins would delete the typed line.
        (["puts 'as' + 'leep'; sleep 1000", "Enter"], re.compile("(?m)^asleep$")),
        (["C-c"], "hbase:005:0>"),
        (["[1,", "Enter", "2]", "Enter"], "=> [1, 2]"),
        (["disable 'long_name'; drop 'long_name'", "Enter"], "Go on (y/n)?"),
        (["n", "Enter"], "Not done"),
        (["Up", "Up", "Enter"], "=> [1, 2]"),
    ]
    os.environ["HOME"] = str(folder)
    terminal = Terminal({}, BINARY, "shell", "memory:")
    try:
        if not terminal.shows("hbase:001:0>"):
            return "no prompt"
        for keys, text in steps:
            terminal.type(*keys)
            if not terminal.shows(text):
                return f"{keys}: no {text!r} in\n{terminal.screen()}"
        return None
    finally:
        terminal.close()


def a_script_ends_by_ctrl_c(folder):
    """Ctrl-C ends the whole script, not only a statement: with -n the shell ends with 1, otherwise the prompt appears."""
    file = pathlib.Path(folder) / "endless.rb"
    file.write_text("puts 'be' + 'gun'; sleep 3600\nputs 'go' + 'es on'\n")
    for options, after in (("-n", "code 1"), ("", "hbase:001:0>")):
        command = f"trap : INT; '{BINARY}' shell {options} memory: '{file}'; echo code $?; exec sleep 1000"
        terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, "sh", "-c", command, lines=24)
        try:
            steps(terminal, [([], re.compile("(?m)^begun$")), (["C-c"], after)])
            if "goes on" in terminal.screen():
                return terminal.screen()
        finally:
            terminal.close()
    return None


def a_silent_pipe_is_left_by_ctrl_c(folder):
    """`load` of a pipe whose writer writes nothing; the next `load` of it reads what another writer gives."""
    fifo = pathlib.Path(folder) / "silent.fifo"
    os.mkfifo(fifo)
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, BINARY, "shell", "memory:")
    try:
        steps(terminal, [([], "hbase:001:0>")])
        terminal.type(f"load '{fifo}'", "Enter")
        with open(fifo, "wb"):  # waits until the shell has opened it
            steps(terminal, [(["C-c"], "hbase:002:0>")])
        if "Error" in terminal.screen():
            return terminal.screen()
        terminal.type(f"load '{fifo}'", "Enter")
        fifo.write_text("puts 'from the ' + 'pipe'\n")
        steps(terminal, [([], "from the pipe")])
        return None
    except AssertionError as e:
        return str(e)
    finally:
        terminal.close()


def an_impatient_ctrl_c_ends_no_session(folder):
    """If code does not notice Ctrl-C, another Ctrl-C ends the process, but not within the first second."""
    piped = Piped(folder)
    try:
        piped.shows("hbase:001:0> ")
        piped.type("def f(n) n < 2 ? n : f(n - 1) + f(n - 2) end; puts 'be' + 'gun'; $stdout.flush; f(90)\n")
        piped.shows("begun\n")
        begun, code = time.monotonic(), None
        while code is None:
            piped.process.send_signal(signal.SIGINT)
            try:
                code = piped.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        took = time.monotonic() - begun
        return None if code == 130 and took >= 1 else f"exit code {code} after {took} s"
    finally:
        piped.close()


def questions_are_left(folder):
    """Ctrl-C and Ctrl-D at a question: the command is not done, and the session goes on."""
    keys = [*TABLE, (["disable 'visits'; drop 'visits'", "Enter"], "Go on (y/n)?"), (["C-c"], "hbase:006:0>"), (["C-l"], "hbase:006:0>"),
            (["drop 'visits'", "Enter"], "Go on (y/n)?"), (["C-d"], "Not done"), (["C-l"], "hbase:007:0>"),
            (["drop_all 'vis.*'", "Enter"], "(y/n)?"), (["C-c"], "hbase:008:0>"), (["C-l", "exists 'visits'", "Enter"], "Table visits does exist")]
    on_terminal(folder, {"NO_COLOR": "1"}, keys)
    return None


def a_killed_prompt_leaves_the_terminal(folder):
    """SIGTERM and Ctrl-\\ at the prompt: the terminal echoes and has lines, as before."""
    for number in (signal.SIGTERM, signal.SIGQUIT):
        ours, theirs = os.openpty()
        before = termios.tcgetattr(theirs)
        process = subprocess.Popen([BINARY, "shell", "memory:"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
                                   env={**os.environ, "HOME": str(folder), "TERM": "xterm"})
        try:
            seen = b""
            while process.poll() is None and (b"hbase:001:0> " not in seen or termios.tcgetattr(theirs)[3] & termios.ICANON):
                seen += os.read(ours, 65536) if select.select([ours], [], [], 0.05)[0] else b""
            process.send_signal(number)
            code = process.wait(300)
            if code != -number or termios.tcgetattr(theirs)[3] != before[3]:
                return f"{number}: {code}, {termios.tcgetattr(theirs)} instead of {before}"
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(theirs)
    return None


def a_suspended_shell_is_killed(folder):
    """In the background the terminal is another program's: the shell ends, and is not stopped by it."""
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PS1": "ready> "}, "bash", "--norc", "--noprofile", "-i", lines=24)
    try:
        steps(terminal, [([], "ready>"), ([shlex.join([str(BINARY), "shell", "memory:"]), "Enter"], "hbase:001:0>"), (["C-z"], "Stopped"),
                         (["p=$(jobs -p); kill %1; while kill -0 $p 2>/dev/null; do sleep 0.05; done; echo en''ded", "Enter"], "ended")])
    finally:
        terminal.close()
    return None


class Piped:
    """A shell whose input is its terminal, and whose output goes into a pipe, as in `rorqual shell | tee log`."""

    def __init__(self, folder, *arguments, modes=None):
        self.terminal, theirs = os.openpty()
        if modes:
            modes(theirs)
        self.process = subprocess.Popen([BINARY, "shell", *arguments, "memory:"], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**os.environ, "HOME": str(folder), "TERM": "xterm"})
        os.close(theirs)
        self.seen = ""

    def shows(self, text):
        """Waits for the text, after the one that was waited for before."""
        while text not in self.seen:
            if not select.select([self.process.stdout], [], [], 300)[0] or not (part := os.read(self.process.stdout.fileno(), 65536)):
                raise AssertionError(f"no {text!r} in {self.seen[-4096:]!r}")
            self.seen += part.decode(errors="backslashreplace")
        self.seen = self.seen.partition(text)[2] if text else self.seen

    def fills(self, size):
        """Waits until the shell has filled its pipe of `size` bytes, and waits for the reader."""
        stat, unread = pathlib.Path(f"/proc/{self.process.pid}/stat"), bytearray(4)
        while int.from_bytes(unread, sys.byteorder) < size or stat.read_text().rpartition(")")[2].split()[0] != "S":
            fcntl.ioctl(self.process.stdout, termios.FIONREAD, unread)
            time.sleep(0.01)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def close(self):
        self.process.kill()
        self.process.communicate()
        os.close(self.terminal)


def piped_output_has_prompts(folder):
    """With the output in a pipe: prompts are written before the shell waits. Ctrl-C drops a statement, or ends a command or a question, and
    never the session; an error ends it only with -n. Before a drop there is a question. Ctrl-D ends an answer, and between two statements the session."""
    for arguments in ((), ("-n",)):
        piped = Piped(folder, *arguments)
        try:
            for typed_text, answer in (("", "hbase:001:0> "), ("[1,\n", "hbase:002:1*"), ("\x03", "hbase:003:0> "), ("\x03", "hbase:004:0> "), ("6 * 7\n", "=> 42\n"),
                                       ("", "hbase:005:0> "), ("puts 'as' + 'leep'; sleep 3600\n", "asleep\n"), ("\x03", "hbase:006:0> "),
                                       ("puts 'ask' + 's'; begin; gets; rescue Interrupt; 'interrupted'; end\n", "asks\n"), ("\x03", "=> \"interrupted\"\n"),
                                       ("", "hbase:007:0> "), ("gets\n", ""), ("\x04", "hbase:008:0> "), ("40 + 2\n", "=> 42\n"), ("", "hbase:009:0> ")):
                piped.type(typed_text)
                piped.shows(answer)
            if arguments:
                piped.type("1 / 0\n")
            else:
                for typed_text, answer in (("1 / 0\n", "hbase:010:0> "), ("create 't', 'f'; disable 't'; drop 't'\n", "Go on (y/n)? "), ("n\n", "Not done\n"), ("\x04", "")):
                    piped.type(typed_text)
                    piped.shows(answer)
            code = piped.process.wait(300)
            if code != (1 if arguments else 0):
                return f"{arguments}: exit code {code}"
        except AssertionError as e:
            return f"{arguments}: {e}"
        finally:
            piped.close()
    return None


def ctrl_c_before_the_wait_is_kept(folder):
    """Ctrl-C while output is written, here into a full pipe, drops the statement of the prompt behind it, and ends the question behind it."""
    for typed_text, answer in (("print 'x' * SIZE\n", "hbase:003:0> "), ("print 'x' * SIZE, 'y'; begin; gets; rescue Interrupt; 'interrupted'; end\n", "=> \"interrupted\"\n")):
        piped = Piped(folder)
        try:
            piped.shows("hbase:001:0> ")
            size = fcntl.fcntl(piped.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
            piped.type(typed_text.replace("SIZE", str(size)))
            piped.fills(size)
            piped.process.send_signal(signal.SIGINT)
            piped.shows(answer)
        except AssertionError as e:
            return f"{typed_text}: {e}"
        finally:
            piped.close()
    return None


def lines_that_came_at_once_are_read(folder):
    """Without the terminal's own editing, one read returns several lines: none waits for the next key."""
    piped = Piped(folder, modes=tty.setcbreak)
    try:
        piped.shows("hbase:001:0> ")
        piped.type("6 * 7\n7 * 7\n8 * 7\n")
        piped.shows("=> 56\n")
        return None
    finally:
        piped.close()


def long_waits_are_shown(folder):
    """The progress of a procedure, of a snapshot and of a compaction. The waits last until Ctrl-C: the server's answer that all is done
    is left out."""
    forever = ("class << Master; alias really call; def call(m, *r) a = really(m, *r); a[:state] = :RUNNING if m == 'getProcedureResult'; a[:done] = false if m == 'IsSnapshotDone'; a; end; end; "
               "Shell.need('tools'); class Command; def compaction_states(t) [:MAJOR, :NONE]; end; end; 5")
    keys = [*TABLE, ([forever, "Enter"], "=> 5")]
    shown = (("truncate 'visits'", r"truncate visits: \d+ s \(procedure \d+\)"), ("snapshot 'visits', 's'", r"snapshot \w+: \d+ s.*"),
             ("\\progress visits", r"compaction of visits: 1 of 2 regions.*, \d+ s"))
    for number, (command, line) in enumerate(shown):
        keys += [(["C-l"], "hbase:"), ([command, "Enter"], re.compile(f"(?m)^{line}$")), (["C-c"], re.compile(rf"(?m)^hbase:0{number + 7:02d}:0>"))]
    environment = {"HOME": folder, "XDG_STATE_HOME": folder, "NO_COLOR": "1"}
    terminal = Terminal(environment, BINARY, "shell", "-y", "memory:", lines=24)
    try:
        steps(terminal, [([], "hbase:001:0>"), *keys])
        screen = terminal.screen()
        return f"a line of progress is left: {screen}" if re.search(r"(?m)^(truncate|snapshot|compaction) .*: \d+ s", screen) else None
    finally:
        terminal.close()


def a_history_that_cannot_be_kept(folder):
    """The history's path is too long, missing, a pipe or a folder: the prompt works nevertheless. A long path is not cut."""
    state = pathlib.Path(folder) / "odd"
    state.mkdir()
    os.mkfifo(state / ".rorqual_history")
    directory = pathlib.Path(folder) / "directory"
    (directory / ".rorqual_history").mkdir(parents=True)
    for home in (str(state), str(directory), "/nope", "/" + "x" * 5000, "/" + "/".join(["y" * 200] * 21)):
        try:
            seen = typed({"HOME": home, "XDG_STATE_HOME": home}, ("6 * 7\r", "=> 42"), ("7 * 7\r", "=> 49"))
        except AssertionError as e:
            return f"{home[:20]}: {e}"
        if "hbase:003:0> " not in seen:
            return f"{home[:20]}: {seen}"
    deep = pathlib.Path(folder).joinpath("d" * 200, "e" * 200, "f" * 90)
    deep.mkdir(parents=True)
    typed({"HOME": str(deep), "XDG_STATE_HOME": str(deep)}, ("6 * 7\r", "=> 42"))
    return None if [p.name for p in deep.iterdir()] == [".rorqual_history"] else f"{list(deep.iterdir())}"


def a_long_history_behind_a_link(folder):
    """A file that is too long is shortened; the link to it stays."""
    home, file = pathlib.Path(folder) / "linked", pathlib.Path(folder) / "real_history"
    home.mkdir()
    file.write_text("_HiStOrY_V2_\n" + "".join(f"{i:0400}\n" for i in range(12000)))
    (home / ".rorqual_history").symlink_to(file)
    typed({"HOME": str(home), "XDG_STATE_HOME": str(home)}, ("6 * 7\r", "=> 42"))
    lines = file.read_text().splitlines()
    good = (home / ".rorqual_history").is_symlink() and len(lines) < 11000 and any("6\\040*\\0407" in line for line in lines[-2:])
    return None if good else f"{len(lines)} {lines[-2:]}"


def histories_of_many_shells(folder):
    """Shells that begin the file at the same time: it has one cookie, and the lines of all."""
    state = pathlib.Path(folder) / "many"
    state.mkdir()
    environment = {"HOME": str(state), "XDG_STATE_HOME": str(state)}
    threads = [threading.Thread(target=typed, args=(environment, *((f"{i}{k}\r", f"=> {i}{k}") for k in range(10, 30)))) for i in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (state / ".rorqual_history").read_text().split("\n")
    wanted = sorted(["_HiStOrY_V2_", *(f"{i}{k}" for i in range(1, 7) for k in range(10, 30))])
    got = sorted(line.removesuffix("\\012") for line in lines if line and line != "exit\\012")
    return None if got == wanted and lines[0] == "_HiStOrY_V2_" else f"{got}"


TESTS = [prompt, a_script_ends_by_ctrl_c, a_silent_pipe_is_left_by_ctrl_c, an_impatient_ctrl_c_ends_no_session, questions_are_left, a_killed_prompt_leaves_the_terminal, a_suspended_shell_is_killed, piped_output_has_prompts, ctrl_c_before_the_wait_is_kept, lines_that_came_at_once_are_read, long_waits_are_shown, a_history_that_cannot_be_kept, a_long_history_behind_a_link, histories_of_many_shells, suspended, resized, pasted_tabs_indent, any_locale_has_letters, captures, colours, pager, interrupted, other_ways, completed, hints, forms_are_told, many_tables, what_fails_is_over, history_is_kept]


def main():
    if "--write" in sys.argv[1:]:
        write()
        return 0
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rorqual-shell-") as folder:
        for test in TESTS:
            report.judge("shell_terminal", test, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
