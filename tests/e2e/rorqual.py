# SPDX-License-Identifier: Apache-2.0
"""Shared by the drivers in this folder: a server to test, and a report that counts results."""
import atexit
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/peers"))
import peer  # noqa: E402  (its folder is not a package)

BINARY = os.environ.get("RORQUAL", str(ROOT / "build/rorqual"))
JAVA = ROOT / "tests/java/run"
READY = re.compile(r"rorqual ready: zookeeper (\S+), master (\S+), regionserver (\S+), (?:http (\S+), )?data (.+)")
# Seconds; only for a server that hangs, because a busy machine needs a minute where an idle one needs a second.
START_DEADLINE = 300
STOP_DEADLINE = 300


class Report:
    """Counts lines of the form 'PASS name' and 'FAIL name: reason', of this driver and of the programs that it runs."""

    def __init__(self):
        self.passed = self.failed = 0
        self.lock = threading.Lock()

    def line(self, line):
        """Prints a line, and counts it if it is a result."""
        with self.lock:
            self.passed += line.startswith("PASS ")
            self.failed += line.startswith("FAIL ")
            print(line, flush=True)

    def outcome(self, name, problem=None):
        """Reports one test of the driver; `problem` is a text, or None if the test passed."""
        self.line(f"FAIL {name}: {problem}" if problem else f"PASS {name}")
        return not problem

    def judge(self, name, test, *arguments):
        """Runs a test that returns a problem, or None if it passed; an AssertionError is a problem, too."""
        try:
            problem = test(*arguments)
        except AssertionError as e:
            problem = str(e) or f"an assertion failed: {traceback.extract_tb(e.__traceback__)[-1].line}"
        return self.outcome(f"{name}/{test.__name__}", problem)

    def run(self, name, world, tests, only=()):
        """Runs the tests on the world, each to its end or first exception; `only`: names of the tests to run, if not
        empty."""
        for test in tests:
            if only and test.__name__ not in only:
                continue
            problem = None
            try:
                test(world)
            except Exception as e:  # pylint: disable=broad-except
                problem = repr(e)
            self.outcome(f"{name}/{test.__name__}", problem)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 0 if self.failed == 0 and self.passed > 0 else 1


def run_on_world(name, make_world, tests):
    """Runs the tests on one world, which has a `client` and a `server`, then stops it. Returns the exit code."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(folder)
        report.run(name, world, tests)
        world.client.close()
        report.outcome(f"{name}/stops cleanly", world.server.stop())
    return report.finish()


class Server:
    """A Rorqual on a folder and on ports that it chooses itself, so each start has new ports. `prefix`: words before the
    command."""

    def __init__(self, data, log, *arguments, env=None, prefix=()):
        self.log = log
        with open(log, "ab") as stderr:
            self.process = subprocess.Popen(
                [*prefix, BINARY, "server", "--data", str(data), "--zk-port", "0", "--master-port", "0",
                 "--rs-port", "0", *(() if "--http" in arguments else ("--http", "0")), *arguments],
                stdout=subprocess.PIPE, stderr=stderr, env=env)
        # Kills the server if the driver ends by an exception.
        atexit.register(self.process.kill)
        line = self._first_line()
        ready = READY.search(line)
        if not ready:
            self.kill()
            raise RuntimeError(f"no ready line but {line!r}; {self.tail()}")
        self.ready = ready[0]
        self.zk, self.master, self.regionserver, self.http = ready[1], ready[2], ready[3], ready[4]
        # A thread discards all further lines, so that the server never blocks on a full pipe.
        threading.Thread(target=self._discard_output, daemon=True).start()

    def _discard_output(self):
        with self.process.stdout as output:
            while output.read(65536):
                pass

    def _first_line(self):
        """The ready line, or all output until the server ended or the deadline passed."""
        deadline = time.monotonic() + START_DEADLINE
        text = b""
        descriptor = self.process.stdout.fileno()
        while time.monotonic() < deadline and b"rorqual ready" not in text.rpartition(b"\n")[0]:
            if not select.select([descriptor], [], [], 0.2)[0]:
                continue
            some = os.read(descriptor, 4096)
            if not some:
                break
            text += some
        return text.decode(errors="replace")

    def stop(self):
        """Sends SIGTERM and waits; returns None, or the problem with the server's end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"no end {STOP_DEADLINE} s after SIGTERM; {self.tail()}"
        return None if code == 0 else f"exit code {code}; {self.tail()}"

    def kill(self):
        """kill -9; returns None, or a text if the server was dead already."""
        died = self.process.poll()
        self.process.kill()
        self.process.wait()
        return None if died is None else f"it had ended by itself with {died}; {self.tail()}"

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "log ends: " + " | ".join(log.read().splitlines()[-8:])


def read_terminal(descriptor):
    """Reads the output to a terminal until its other end is closed, and closes this one."""
    written = b""
    try:
        while part := os.read(descriptor, 65536):
            written += part
    except OSError:  # EIO: the other end is closed
        pass
    os.close(descriptor)
    return written


def output_of(command, silence, **options):
    """The output of a command. A command that prints nothing for `silence` seconds is killed (subprocess.TimeoutExpired); its total
    time is not limited, because it depends on the load of the machine."""
    out = b""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options) as process:
        descriptor = process.stdout.fileno()
        while True:
            if not select.select([descriptor], [], [], silence)[0]:
                process.kill()
                raise subprocess.TimeoutExpired(command, silence, out)
            some = os.read(descriptor, 65536)
            if not some:
                return out.decode(errors="replace")
            out += some


def free_ports(count):
    """Ports below the range from which the kernel picks, so that no other program gets one meanwhile: for servers that are
    started on given ports, or again on the same."""
    return sorted(peer.free_ports(count))


def run_java(settings, calls, own=()):
    """Runs Java programs: calls(report, zk, folder) on a Rorqual with `settings` and `own`, or with --hbase on a real HBase with
    `settings`. Returns the exit code."""
    peer.orderly()
    report = Report()
    if "--hbase" not in sys.argv and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    with tempfile.TemporaryDirectory(prefix="rorqual-java-") as folder:
        folder = pathlib.Path(folder)
        if "--hbase" in sys.argv:
            with peer.HBase(folder / "hbase", settings) as hbase:
                calls(report, hbase.zk, folder)
        else:
            own_server(report, folder, {**settings, **dict(own)}, calls)
    return report.finish()


def own_server(report, folder, settings, calls):
    server = Server(folder / "data", folder / "server.log", *(word for key, value in settings.items() for word in ("-D", f"{key}={value}")))
    try:
        calls(report, server.zk, folder)
        report.outcome("server/stops cleanly", server.stop())
    finally:
        if server.process.poll() is None:
            server.kill()


def build_java():
    subprocess.run([str(JAVA), "build"], check=True)


def java(report, client, phases, zk, run, log, programs=()):
    """Runs the programs of one client and counts their results. A JVM that dies early is a failure."""
    with open(log, "ab") as stderr:
        process = subprocess.Popen([str(JAVA), client, phases, *programs], stdout=subprocess.PIPE,
                                   stderr=stderr, env={**os.environ, "ZK": zk, "RUN": run}, text=True)
        ended = False
        for line in process.stdout:
            # The JVM's summary line is not a test; this driver counts all results itself.
            if re.fullmatch(r"\d+ passed, \d+ failed\n", line):
                ended = True
            else:
                report.line(line.rstrip("\n"))
        process.wait()
    if not ended:
        report.outcome(f"client {client}, phase {phases}", f"the JVM ended early, code {process.returncode}; "
                       + " | ".join(pathlib.Path(log).read_text(errors="replace").splitlines()[-5:]))


def pause(process):
    """Stops a child process until SIGCONT. Returns when all its threads have stopped: until then they may answer."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def fail_hard(problem):
    print(f"FAIL driver: {problem}\n0 passed, 1 failed", flush=True)
    sys.exit(1)
