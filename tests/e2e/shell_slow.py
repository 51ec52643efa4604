# SPDX-License-Identifier: Apache-2.0
"""`rorqual shell` with servers that do not respond or were stopped. own_shell.py runs the tests."""
import re
import signal
import socket
import subprocess
import time
import urllib.request

from rorqual import BINARY, Server, pause
from shell_terminal import Terminal

# Each command calls a server. The last one repeats its calls until it is ended.
COMMANDS = ("get 't', 'r'", "put 't', 'r', 'f:q', 'v'", "scan 't'", "count 't'", "list", "status", "describe 't'", "deleteall 't', 'r'", "incr 't', 'r', 'f:n'",
            "t = get_table('t'); t.get 'r'", "create 'u', 'f'", "flush 't'", "snapshot 't', 's'", "major_compact 't'", "balancer", "list_regions 't'", "alter 't', NAME => 'g'",
            "clone_snapshot 's', 'v'", "truncate_preserve 'v'", "disable 'v'", "loop { get 't', 'r' rescue nil }")


def prompt_of(number):
    return f"hbase:{number:03d}:0>"


def a_connection_that_hangs_is_interrupted(folder):
    """A ZooKeeper, or a registry, that accepts connections but does not respond: Ctrl-C returns to the prompt."""
    for option in ("--zk", "--bootstrap"):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder}, BINARY, "shell", option, f"127.0.0.1:{silent.getsockname()[1]}")
            try:
                if not terminal.shows(prompt_of(1)):
                    return "no prompt"
                terminal.type("list", "Enter")
                peer, _ = silent.accept()
                with peer:
                    peer.recv(1)
                    terminal.type("C-c")
                    if not terminal.shows(prompt_of(2)):
                        return f"{option}: {terminal.screen()}"
            finally:
                terminal.close()
    return None


def a_server_that_hangs_is_interrupted(folder):
    """Each command on a server that is stopped (SIGSTOP): Ctrl-C returns to the prompt, and the next command works when the
    server continues."""
    server = Server(folder / "hangs", folder / "hangs.log")
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PAGER": "", "NO_COLOR": "1"}, BINARY, "shell", "--zk", server.zk)
    number = 1
    try:
        terminal.shows(prompt_of(1))
        terminal.type("create 't', 'f'; put 't', 'r', 'f:q', 'v'", "Enter")
        for command in COMMANDS:
            number += 1
            if not terminal.shows(prompt_of(number)):
                return f"before {command}: {terminal.screen()}"
            pause(server.process)
            terminal.type(f"puts 'beg' + 'un'; {command}", "Enter")
            if not terminal.shows(re.compile(r"(?m)^begun$")):
                return f"{command} did not begin: {terminal.screen()}"
            terminal.type("C-c")
            number += 1
            if not terminal.shows(prompt_of(number)):
                return f"{command} goes on: {terminal.screen()}"
            server.process.send_signal(signal.SIGCONT)
            terminal.type("C-l")
            terminal.type("get 't', 'r', 'f:q'", "Enter")
            if not terminal.shows("value=v"):
                return f"after {command}: {terminal.screen()}"
        return None
    finally:
        terminal.close()
        server.process.send_signal(signal.SIGCONT)
        server.kill()


def an_interrupted_scan_is_closed(folder):
    """A scan that Ctrl-C or a block ends is closed by the shell, which then waits at its prompt: not by the server, because the
    connection is gone or the lease is over."""
    server = Server(folder / "closes", folder / "closes.log", "--http", "127.0.0.1:0")
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PAGER": "", "NO_COLOR": "1"}, BINARY, "shell", "--zk", server.zk)

    def figure(name):
        with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
            return int(re.search(rf"(?m)^{re.escape(name)} (\d+)", page.read().decode())[1])

    def until(is_so, what):
        end = time.monotonic() + 300
        while not is_so():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: {figure('rorqual_scanners')} scanners; {terminal.screen()}")
            time.sleep(0.02)

    def scans():
        return figure('rorqual_ops_total{op="scan"}')

    try:
        terminal.shows(prompt_of(1))
        terminal.type("create 't', 'f'; 9.times { |i| put 't', i.to_s, 'f:q', 'v' }", "Enter")
        terminal.shows(prompt_of(2))
        number = 2
        # After the first row, and after the fifth, when the next one was requested ahead.
        for row in ("0", "4"):
            block = f"if row == '{row}'; puts 'asl' + 'eep'; sleep 3600; end"
            terminal.type("C-l")
            terminal.type(f"get_table('t')._scan_internal({{'CACHE' => 1}}) {{ |row, _| {block} }}", "Enter")
            if not terminal.shows(re.compile(r"(?m)^asleep$")):
                return f"the block does not run: {terminal.screen()}"
            asleep = scans()
            terminal.type("C-c")
            number += 1
            if not terminal.shows(prompt_of(number)):
                return f"the scan goes on: {terminal.screen()}"
            until(lambda: figure("rorqual_scanners") == 0, "after the scan")
            until(lambda: scans() > asleep, "no request closes the scanner")
            # The shell waits for 100 ms for the request that is under way: if the server stands still just then, the lease ends the scanner.
            for attempt in range(12):
                expired = figure("rorqual_scanners_expired_total")
                terminal.type(f"get_table('t')._scan_internal({{'CACHE' => 1}}) {{ |row, _| break if row == '{row}' }}", "Enter")
                number += 1
                if not terminal.shows(prompt_of(number)):
                    return f"the block goes on: {terminal.screen()}"
                until(lambda: figure("rorqual_scanners") == 0, "after the block")
                if figure("rorqual_scanners_expired_total") == expired:
                    break
            else:
                return f"scanners were closed by their lease, {attempt + 1} times"
        return None
    finally:
        terminal.close()
        server.kill()


def a_long_wait_is_shown(folder):
    """A line reports the wait, and is erased when the response arrives; Tab stops waiting by itself, and prints
    nothing."""
    server = Server(folder / "waits", folder / "waits.log")
    terminal = Terminal({"HOME": folder, "XDG_STATE_HOME": folder, "PAGER": "", "NO_COLOR": "1"}, BINARY, "shell", "--zk", server.zk)
    waits = re.compile(r"(?m)^no answer for \d+ s; Ctrl-C ends the command$")
    try:
        terminal.shows(prompt_of(1))
        terminal.type("create 'visits', 'f'", "Enter")
        number = 2
        for command in ("get 'visits', 'r'", "list", "count 'visits'"):
            if not terminal.shows(prompt_of(number)):
                return f"before {command}: {terminal.screen()}"
            pause(server.process)
            terminal.type("C-l")
            terminal.type(command, "Enter")
            if not terminal.shows(waits):
                return f"{command} waits and says nothing: {terminal.screen()}"
            server.process.send_signal(signal.SIGCONT)
            number += 1
            if not terminal.shows(prompt_of(number)) or waits.search(terminal.screen()):
                return f"after {command}: {terminal.screen()}"
        pause(server.process)
        terminal.type("C-l")
        terminal.type("exists 'vi", "Tab", "sits'")
        if not terminal.shows("exists 'visits'"):
            return f"Tab waits: {terminal.screen()}"
        server.process.send_signal(signal.SIGCONT)
        terminal.type("Enter")
        return None if terminal.shows("Table visits does exist") and not waits.search(terminal.screen()) else terminal.screen()
    finally:
        terminal.close()
        server.process.send_signal(signal.SIGCONT)
        server.kill()


def settings_limit_the_wait(folder):
    """hbase.rpc.timeout limits a call, hbase.client.operation.timeout a get with its retries; wrong numbers are refused."""
    server = Server(folder / "limits", folder / "limits.log")
    once = ["-D", "hbase.client.retries.number=0"]
    try:
        subprocess.run([BINARY, "shell", "-n", "--zk", server.zk], input="create 't', 'f'\n", stdout=subprocess.DEVNULL, text=True, check=True)
        for options, wait in ((["-D", "hbase.rpc.timeout=2000", *once], "2000 ms (hbase.rpc.timeout)"),
                              (["-D", "hbase.client.operation.timeout=3000", "-D", "hbase.client.retries.number=1000"], "3000 ms (hbase.client.operation.timeout)")):
            with subprocess.Popen([BINARY, "shell", *options, "--zk", server.zk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
                session.stdin.write("get 't', 'r'\nputs 'open'\n")
                session.stdin.flush()
                while session.stdout.readline() != "open\n":
                    pass
                pause(server.process)
                out, _ = session.communicate("get 't', 'r'\np 6 * 7\n", timeout=300)
                server.process.send_signal(signal.SIGCONT)
            if f"ERROR: the server has not answered for {wait}\n" not in out or "\n42\n" not in out:
                return f"{options}: {out}"
        for key in ("hbase.rpc.timeout", "hbase.client.retries.number", "hbase.client.pause", "hbase.client.operation.timeout"):
            done = subprocess.run([BINARY, "shell", "-D", f"{key}=soon", "--zk", server.zk], input="", stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 2 or f"-D {key}=soon: not a number" not in done.stderr:
                return f"{done}"
        return None
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.kill()


def a_lost_connection_is_one_line(folder):
    """The server is killed: the error is one line that names the server; the session continues."""
    server = Server(folder / "lost", folder / "lost.log")
    with subprocess.Popen([BINARY, "shell", "--zk", server.zk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        session.stdin.write("create 't', 'f'\nputs 'made'\n")
        session.stdin.flush()
        while session.stdout.readline() != "made\n":
            pass
        server.kill()
        out, _ = session.communicate("get 't', 'r'\nlist\nput 't', 'r', 'f:q', 'v'\np 6 * 7\n", timeout=300)
    errors = re.findall(r"(?m)^ERROR: .*\n.*\n", out)
    if len(errors) != 3 or any(not re.fullmatch(r"ERROR: .*(connect|closed).*\n\n", e) for e in errors) or "\n42\n" not in out:
        return out
    return None


TESTS = (a_connection_that_hangs_is_interrupted, a_server_that_hangs_is_interrupted, an_interrupted_scan_is_closed, a_long_wait_is_shown, settings_limit_the_wait,
         a_lost_connection_is_one_line)
