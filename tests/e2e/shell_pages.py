# SPDX-License-Identifier: Apache-2.0
"""Pages of servers that `rorqual shell` fetches: tasks, hostile responses, none. own_shell.py runs the tests."""
import contextlib
import http.server
import json
import os
import re
import socket
import threading

from rorqual import BINARY
from shell_terminal import Terminal
from shell_world import shell


class Page(http.server.BaseHTTPRequestHandler):
    """A server's pages: tasks, and responses that no server should send."""
    TASKS = [{"description": "d" * 40, "status": "s\u00e9\n", "state": "RUNNING", "starttimems": 1000, "statustimems": -1},
             {"description": "RpcServer", "status": "Waiting", "state": "WAITING", "starttimems": 5000, "statustimems": 9000}]

    def do_GET(self):  # pylint: disable=invalid-name
        if self.path == "/raw":
            self.wfile.write(b"not HTTP at all, but long enough")
            return
        self.send_response(404 if self.path == "/none" else 200)
        self.end_headers()
        self.wfile.write(json.dumps(self.TASKS).encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def tasks_of_a_page(_):
    """processlist's table, and its handling of invalid responses."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    port = web.server_address[1]
    text = ("Shell.need('tasks')\n"
            f"status, body = Shell.fetch('127.0.0.1', {port}, '/rs-status?format=json&filter=all')\n"
            "Tasks.table(Json.parse(body).map { |t| t.merge('host' => 'a.very.long.host.name') })\n"
            f"puts Shell.fetch('localhost', {port}, '/none')[0]\n"
            f"begin; Shell.fetch('127.0.0.1', {port}, '/raw'); rescue => e; puts e.message; end\n"
            "begin; Shell.fetch('127.0.0.1', 1, '/'); rescue => e; puts e.message; end\n")
    out = shell("-n", "memory:", text=text).stdout
    web.shutdown()
    for part in (r"\| Host            \| Start Time          \| State    \| Description                      \| Status +\|",
                 r"\| a\.very\.long\.\.\.\. \| \S+ \S+ \| RUNNING  \| d{29}\.\.\. \| s\S+  \(since",
                 r"\| WAITING  \| RpcServer                        \| Waiting \(since \d+ s.*\|", "(?m)^404$", "/raw: not HTTP",
                 "127.0.0.1:1/: cannot connect"):
        if not re.search(part, out):
            return f"no {part!r} in {out}"
    return None


HOSTILE_PAGES = {
    "endless body": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (17 << 20), "longer than 16 MiB"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"X-Name: value\r\n" * 100000, "not HTTP"),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc", "longer than 16 MiB"),
    "chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\nabc", "longer than 16 MiB"),
    "cut off": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "not HTTP, or closed before its end"),
    "no status": (b"HTTP/1.1 000 OK\r\n\r\n", "not HTTP"),
    "nothing": (b"", "not HTTP, or closed before its end"),
}


def answer_once(listener, text):
    peer, _ = listener.accept()
    with peer:
        peer.recv(4096)
        try:
            peer.sendall(text)
        except OSError:  # the shell has closed the connection
            pass


def hostile_pages_are_refused(_):
    with contextlib.ExitStack() as stack:
        text = ""
        for answer, _why in HOSTILE_PAGES.values():
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=answer_once, args=(listener, answer), daemon=True).start()
            text += f"begin; Shell.fetch('127.0.0.1', {listener.getsockname()[1]}, '/'); puts 'got one'; rescue => e; puts e.message; end\n"
        done = shell("-n", "memory:", text=text)
    got = [line for line in done.stdout.splitlines() if line and not line.startswith("hbase:")]
    wrong = [f"{name}: {line}" for (name, (_, why)), line in zip(HOSTILE_PAGES.items(), got) if why not in line]
    return "; ".join(wrong) or (None if len(got) == len(HOSTILE_PAGES) and done.returncode == 0 else str(done))


def a_page_without_an_answer_is_interrupted(folder):
    os.environ["HOME"] = str(folder)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        terminal = Terminal({}, BINARY, "shell", "memory:")
        try:
            if not terminal.shows("hbase:001:0>"):
                return "no prompt"
            terminal.type(f"puts 'asks'; Shell.fetch('127.0.0.1', {silent.getsockname()[1]}, '/')", "Enter")
            peer, _ = silent.accept()
            with peer:
                peer.recv(1)
                terminal.type("C-c")
                return None if terminal.shows("hbase:002:0>") else terminal.screen()
        finally:
            terminal.close()


TESTS = (tasks_of_a_page, hostile_pages_are_refused, a_page_without_an_answer_is_interrupted)
