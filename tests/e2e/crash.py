#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the server at random moments under load, and checks each time that no acknowledged write is lost and
none is torn.

    crash.py                     ROUNDS=20 rounds of build/rorqual (or RORQUAL): write, kill -9, restart, check
    ZK=host:port crash.py        on a running server, which is not killed: tests the test itself
    SEED=n                       repeats the moments of an earlier run (printed); the threads' order is not repeatable
    KEEP=1                       keeps the data folder and the journal of a failure

The writer is one JVM (rorqual.tests.client26.crash.CrashMain) that outlives all servers. It puts rows over several families,
mutates two columns together, increments, deletes and batches, on four threads; flushes, compactions and DDL run all the time.
Other clients retry until the next server responds on the same ports: their increments, appends, checkAndPuts and RowMutations must
be applied exactly once. In some rounds the server is stopped for seconds (SIGSTOP) while all clients write, or its clock jumps by a
day or a year (libfaketime), between two starts or while it runs. At the end the test damages data on purpose, and the check must
detect this. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import BINARY, JAVA, Report, Server, build_java, fail_hard, free_ports

ROUNDS = int(os.environ.get("ROUNDS", "20"))
SEED = int(os.environ.get("SEED", random.randrange(10**9)))
ANSWER_DEADLINE = 600
FAKETIME = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
DAY = 24 * 3600
JUMPS = (DAY, -DAY, 365 * DAY, -365 * DAY)


class Writer:
    def __init__(self, folder, run):
        self.log = folder / "writer.log"
        with open(self.log, "ab") as stderr:
            self.process = subprocess.Popen(
                [str(JAVA), "class", "26", "rorqual.tests.client26.crash.CrashMain", str(folder / "journal"), run],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def ask(self, command):
        """Returns the response; 'problem …' if it is a problem, or if there is none."""
        alarm = threading.Timer(ANSWER_DEADLINE, self.process.kill)
        alarm.start()
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip() or "problem the writer gave no answer"
        except BrokenPipeError:
            return "problem the writer is gone"
        finally:
            alarm.cancel()

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Clock:
    """The servers' clock: the machine's plus an offset in seconds. Timeouts use the monotonic clock, which does not
    jump."""

    def __init__(self, folder):
        self.file = folder / "clock"
        self.offset = 0
        self.set(0)

    def set(self, offset):
        self.offset = offset
        half = self.file.with_suffix(".new")
        half.write_text(f"{offset:+d}\n")
        half.replace(self.file)

    def environment(self):
        if FAKETIME is None:
            return {}
        return {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class Servers:
    """Successive servers on one folder and the same ports, so that waiting clients find the next server."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = Clock(folder)
        self.ports = free_ports(3)

    def arguments(self):
        return [word for name, port in zip(("--zk-port", "--master-port", "--rs-port"), self.ports)
                for word in (name, str(port))]

    def environment(self):
        return {**os.environ, **self.clock.environment()}

    def start(self):
        return Server(self.folder / "data", self.folder / "server.log", *self.arguments(), env=self.environment())

    def jump(self, dice):
        self.clock.set(dice.choice([j for j in (0, *JUMPS) if j != self.clock.offset]))
        return f"clock at {self.clock.offset // DAY:+d} days"

    def start_and_kill(self, seconds):
        """Kills a server during its start, before any request."""
        half = subprocess.Popen([BINARY, "server", "--data", str(self.folder / "data"), *self.arguments()],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
        time.sleep(seconds)
        half.kill()
        half.wait()


def problem_of(answer):
    return answer.removeprefix("problem ") if answer.startswith("problem") else None


def stop_for_a_while(server, dice):
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(dice.uniform(1, 4))
    server.process.send_signal(signal.SIGCONT)
    time.sleep(dice.uniform(0, 0.5))
    return "stopped for a while"


def evidence(folder):
    """Prints the ends of the server's log and of the journal's lines about tables, because a failure may not be repeatable."""
    for file, wanted in ((folder / "server.log", lambda line: True),
                         (folder / "journal", lambda line: line[2:].startswith(("create", "drop")))):
        if file.exists():
            print(f"-- the end of {file.name}:")
            for line in [line for line in file.read_text(errors="replace").splitlines() if wanted(line)][-60:]:
                print(f"   {line}")


def one_round(server, servers, writer, dice, number, zk):
    """Returns the problem, or None, and what was done besides the kill."""
    # At least this many acknowledged operations, then a random time: the kill may interrupt anything.
    problem = problem_of(writer.ask(f"write {zk} {number} {dice.choice([1, 20, 200, 1000])}"))
    time.sleep(dice.uniform(0, 0.3))
    what = None
    if not server:
        writer.ask("stop")
        return problem or problem_of(writer.ask("join")), what
    kind = dice.random()
    if kind < 0.2:
        what = stop_for_a_while(server, dice)
    elif kind < 0.5 and FAKETIME:
        # A nonce lives for half an hour: an op whose client waits while the clock jumps may be applied twice.
        problem = problem_of(writer.ask("pause")) or problem
        what = servers.jump(dice)
        time.sleep(dice.uniform(0, 0.5))
    writer.ask("kill")
    problem = server.kill() or problem
    if kind >= 0.4 and what:
        what += ", then " + servers.jump(dice)
    return problem or problem_of(writer.ask("join")), what


def rounds(report, folder, writer):
    dice = random.Random(SEED)
    own = "ZK" not in os.environ
    servers = Servers(folder)
    server = servers.start() if own else None
    try:
        zk = server.zk if own else os.environ["ZK"]
        problem = problem_of(writer.ask(f"create {zk}")) or problem_of(writer.ask(f"patient {zk}"))
        if problem:
            report.outcome("crash/create", problem)
            return
        for number in range(ROUNDS):
            name = f"crash/round {number}"
            begun = time.monotonic()
            problem, what = one_round(server, servers, writer, dice, number, zk)
            if own:
                if dice.random() < 0.2:
                    servers.start_and_kill(dice.uniform(0, 0.05))
                server = servers.start()
                zk = server.zk
                writer.ask("resume")
            answer = writer.ask(f"check {zk} {max(0, number - 1)}")
            problem = problem or problem_of(answer) or problem_of(writer.ask("patients"))
            if not report.outcome(f"{name}: {what}" if what else name, problem):
                evidence(folder)
                return
            if "TIMES" in os.environ:
                print(f"TIME {name}: {time.monotonic() - begun:.1f} s, {answer}")
        answer = writer.ask("settle")
        report.outcome("crash/what is tried again counts once", problem_of(answer))
        print(f"-- patient clients: {answer}")
        answer = writer.ask(f"check {zk} 0")
        report.outcome("crash/all rounds once more", problem_of(answer))
        if own:
            report.outcome("crash/clean stop", server.stop())
            server = servers.start()
            zk = server.zk
            answer = writer.ask(f"check {zk} 0")
            report.outcome("crash/all rounds after a clean restart", problem_of(answer))
        if not problem_of(answer):
            acknowledged, in_doubt = answer.split()[1:]
            print(f"-- {acknowledged} operations acknowledged, {in_doubt} in doubt")
        problem = problem_of(writer.ask(f"damage {zk} {ROUNDS - 1}"))
        noticed = problem_of(writer.ask(f"check {zk} 0")) or ""
        report.outcome("crash/damage is noticed", problem or (None if "is absent" in noticed and "torn" in noticed
                                                             else f"the check said {noticed or 'ok'!r}"))
    finally:
        if server and server.process.poll() is None:
            server.kill()


def main():
    report = Report()
    if "ZK" not in os.environ and not os.path.exists(BINARY):
        fail_hard(f"no server at {BINARY}")
    build_java()
    print(f"-- SEED={SEED} ROUNDS={ROUNDS}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-crash-"))
    writer = Writer(folder, f"c{random.randrange(10**6):06}")
    try:
        rounds(report, folder, writer)
    except RuntimeError as problem:
        report.outcome("crash/server", str(problem))
    finally:
        writer.close()
        if "KEEP" in os.environ and report.failed:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
