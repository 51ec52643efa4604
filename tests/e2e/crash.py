#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the server at random moments under load, and checks each time that nothing acknowledged is lost and nothing torn.

    crash.py                     ROUNDS=50 rounds of build/rorqual (or RORQUAL): write, kill -9, restart, check
    ZK=host:port crash.py        on a server that runs already; it is not killed: tests the test
    SEED=n                       the moments of an earlier run (printed); the threads' order is not repeatable
    KEEP=1                       keeps the data folder and the journal of a failure

The writer is one JVM (rorqual.tests.client26.crash.CrashMain) that outlives all servers. It puts rows over several families,
mutates two columns together, increments, deletes and batches, on four threads; flushes, compactions and DDL run all the time.
At the end damage is done on purpose, which the check must notice. Ends with 'N passed, N failed'.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from rorqual import BINARY, JAVA, Report, Server, build_java, fail_hard

ROUNDS = int(os.environ.get("ROUNDS", "50"))
SEED = int(os.environ.get("SEED", random.randrange(10**9)))
ANSWER_DEADLINE = 180


class Writer:
    def __init__(self, folder, run):
        self.log = folder / "writer.log"
        with open(self.log, "ab") as stderr:
            self.process = subprocess.Popen(
                [str(JAVA), "class", "26", "rorqual.tests.client26.crash.CrashMain", str(folder / "journal"), run],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def ask(self, command):
        """Returns the answer; 'problem …' if it is one, or if none comes."""
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


def problem_of(answer):
    return answer.removeprefix("problem ") if answer.startswith("problem") else None


def one_round(server, writer, dice, number, zk):
    """Returns what is wrong, or None."""
    # At least so many acknowledged operations, then some time more: the kill may fall into anything.
    problem = problem_of(writer.ask(f"write {zk} {number} {dice.choice([1, 20, 200, 1000])}"))
    time.sleep(dice.uniform(0, 0.3))
    if server:
        writer.ask("kill")
        problem = server.kill() or problem
    else:
        writer.ask("stop")
    return problem or problem_of(writer.ask("join"))


def rounds(report, folder, writer):
    dice = random.Random(SEED)
    own = "ZK" not in os.environ
    server = Server(folder / "data", folder / "server.log") if own else None
    try:
        zk = server.zk if own else os.environ["ZK"]
        problem = problem_of(writer.ask(f"create {zk}"))
        if problem:
            report.outcome("crash/create", problem)
            return
        for number in range(ROUNDS):
            name = f"crash/round {number}"
            begun = time.monotonic()
            problem = one_round(server, writer, dice, number, zk)
            if own:
                if dice.random() < 0.2:
                    # Killed again while it comes up, before anybody could ask it anything.
                    half = subprocess.Popen([BINARY, "server", "--data", str(folder / "data"), "--zk-port", "0",
                                             "--master-port", "0", "--rs-port", "0"],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(dice.uniform(0, 0.05))
                    half.kill()
                    half.wait()
                server = Server(folder / "data", folder / "server.log")
                zk = server.zk
            answer = writer.ask(f"check {zk} {max(0, number - 1)}")
            if not report.outcome(name, problem or problem_of(answer)):
                return
            if "TIMES" in os.environ:
                print(f"TIME {name}: {time.monotonic() - begun:.1f} s, {answer}")
        answer = writer.ask(f"check {zk} 0")
        report.outcome("crash/all rounds once more", problem_of(answer))
        if own:
            report.outcome("crash/clean stop", server.stop())
            server = Server(folder / "data", folder / "server.log")
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


sys.exit(main())
