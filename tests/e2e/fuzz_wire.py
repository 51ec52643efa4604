#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The structured fuzzer over the wire (fuzz/wire) against live servers, round after round, each on a new folder.

    fuzz_wire.py                 rounds for SECONDS=60; SEED=n is the first round's seed, later rounds use n + 1, …
    SEED=n ROUNDS=1 fuzz_wire.py repeats a round; COUNT=n its length in requests
    SEED=n SHRINK=1 fuzz_wire.py removes requests as long as the round still fails
    ONLY_REQUESTS=file SEED=n …  only the requests whose numbers the file lists

A round fails if the server dies, a sanitizer reports an error, a call gets no response or an unreadable one, memory exceeds
its limit, or a concurrent client (the bystander) waits too long or fails. It also fails if the server then does not stop
within STOP_S seconds of SIGTERM, does not start again on its folder, has lost writes of the bystander, or `rorqual fsck` finds
problems. The server is build-asan's if that exists (RORQUAL=path: another one); HANG_MS, STALL_MS, P99_MS, STOP_S and RSS_MAX (MB)
set the limits. Failed rounds are kept in build/fuzz-wire/SEED.
"""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import hbase
import rorqual
from hbase import number, text

ROOT = rorqual.ROOT
ASAN = ROOT / "build-asan/src/cli/rorqual"
BINARY = pathlib.Path(os.environ.get("RORQUAL", str(ASAN if ASAN.exists() else ROOT / "build/src/cli/rorqual")))
FUZZER = pathlib.Path(os.environ.get("FUZZER", str(ROOT / "build/fuzz/wire/fuzz_wire")))
SECONDS = float(os.environ.get("SECONDS", "60"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 31)))
ROUNDS = int(os.environ.get("ROUNDS", str(1 << 30)))
COUNTS = (400, 2000, 2000, 6000)
START_S = 300  # ends a server that hangs
STOP_S = int(os.environ.get("STOP_S", "10"))
BUDGET_MB = 128
# Resident memory in addition to 1.3 times the budget: the program, stacks, the allocator's slack, and one request and
# one response above the limits. A sanitizer's build also has shadow memory, red zones and a quarantine.
PLAIN_MB = BUDGET_MB * 13 // 10 + 100
SANITIZED_MB = PLAIN_MB * 2 + 200
# A sanitizer build takes ten times as long for 800 pipelined Multis of 3,000 deletes, whose responses are sent
# together.
SANITIZED_HANG_MS = 120000
FAMILIES = ("f", "g", "c", "m")
TABLES = (("default", "fz0"), ("default", "fz1"), ("default", "fz2"), ("default", "fz3"), ("fns", "fz4"), ("fns", "fz5"))
SANITIZER = re.compile(r"runtime error|ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|assertion|invariant", re.I)


def sanitized():
    return b"__asan_init" in BINARY.read_bytes()


def environment():
    return {**os.environ,
            "ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=12:detect_leaks=1:allocator_release_to_os_interval_ms=500",
            "UBSAN_OPTIONS": "print_stacktrace=1"}


class Finding(Exception):
    """A problem; it ends the round."""


class Server:
    """A started server; each problem with it is a Finding. lease_ms: scanners that are idle for so long are closed."""

    def __init__(self, folder, lease_ms=5000):
        self.folder = folder
        self.log = folder / "server.log"
        begun = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(BINARY), "server", "--data", str(folder / "data"), "--http", "none", "--zk-port", "0", "--master-port", "0",
                 "--rs-port", "0", "-D", f"rorqual.memory={BUDGET_MB}m", "-D", "hbase.catalogjanitor.interval=2000",
                 "-D", "hbase.master.procedure.remote.locks.timeout.ms=2000", "-D", "rorqual.stop.by.call=false",
                 # Audit lines of all admin calls would be most of the log, which check() reads repeatedly; test_requests checks
                 # them.
                 "--log", "warn", "-D", "hbase.master.cleaner.interval=3000", "-D", f"hbase.client.scanner.timeout.period={lease_ms}"],
                stdout=subprocess.PIPE, stderr=log, env=environment(), text=True)
        alarm = threading.Timer(START_S, self.process.kill)
        alarm.start()
        line = ""
        while not (ready := rorqual.READY.search(line)):
            line = self.process.stdout.readline()
            if not line:
                alarm.cancel()
                raise Finding(f"no start, {time.monotonic() - begun:.0f} s: {self.tail()}")
        alarm.cancel()
        self.zk, self.master, self.regionserver = ready[1], ready[2], ready[3]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def tail(self):
        lines = self.log.read_text(errors="replace").splitlines()
        at = next((i for i, line in enumerate(lines) if SANITIZER.search(line)), None)
        return " | ".join(lines[at:at + 14] if at is not None else lines[-4:])[:3000]

    def stop(self):
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.stacks()
            try:  # measures how long the response would have taken
                self.process.wait(50)
                took = f"{time.monotonic() - begun:.0f} s"
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                took = "for ever"
            raise Finding(f"SIGTERM takes {took}, not {STOP_S} s: {self.tail()}") from None
        if code != 0:
            raise Finding(f"the server ended with {code}: {self.tail()}")

    def stacks(self):
        """Logs the calls in hand, and saves the stacks of the server's threads, while it makes a client wait."""
        self.process.send_signal(signal.SIGQUIT)
        if shutil.which("ss"):
            (self.folder / "sockets").write_text(subprocess.run(
                ["ss", "-tanpo", f"( sport = :{self.master.split(':')[1]} or sport = :{self.regionserver.split(':')[1]} )"],
                capture_output=True, text=True, check=False).stdout)
        if not shutil.which("gdb"):
            return
        done = subprocess.run(["gdb", "-q", "-batch", "-p", str(self.process.pid), "-ex", "thread apply all bt 16"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=120)
        (self.folder / "stacks").write_text(done.stdout)

    def check(self):
        """Checks that the server lives and no sanitizer has reported an error."""
        code = self.process.poll()
        if code is not None:
            raise Finding(f"the server died with {code}: {self.tail()}")
        self.check_log()

    def check_log(self):
        if SANITIZER.search(self.log.read_text(errors="replace")):
            raise Finding(f"sanitizer: {self.tail()}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


# ---- preparation of a round


def table_of(space, name):
    return text(1, space) + text(2, name)


def create(client, space, name, families, splits=()):
    described = b""
    for family, attributes in families:
        described += text(3, text(1, family) + b"".join(text(2, text(1, k) + text(2, v)) for k, v in attributes))
    attributes = b""
    if name in ("fz2", "fz5"):
        attributes = text(2, text(1, "coprocessor$1") +
                          text(2, "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1073741823|")) + \
            text(2, text(1, "coprocessor$2") +
                 text(2, "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|1073741823|"))
    message = text(1, text(1, table_of(space, name)) + attributes + described)
    message += b"".join(text(2, split) for split in splits)
    client.procedure(client.master.call("CreateTable", message)[1][0])


def rows_of(table, count=150):
    for n in range(count):
        row = b"r%04d" % (n * 1000 // count)
        yield row, {(b"f", b"q%d" % (n % 8)): b"v%d" % n, (b"g", b"q1"): b"%d" % n,
                    (b"c", b"q2"): n.to_bytes(8, "big"), (b"m", b"q3"): b"m" * (50 + n)}
    if table == "fz0":
        yield b"r0500", {(b"f", b"large"): b"a" * (1 << 20)}
    if table == "fz1":
        for n in range(80 if count > 100 else 0):  # for large responses to scans
            yield b"r%04d" % (n * 10), {(b"f", b"large"): random.Random(n).randbytes(100_000)}


def prepare(server):
    """Creates tables with rows in files and in memory; returns the bystander's region."""
    client = hbase.Client(server)
    for space in ("fns", "by"):
        got = client.master.call("CreateNamespace", text(1, text(1, space)))
        if 1 in got:
            client.procedure(got[1][0])
    families = [("f", [("VERSIONS", "3")]), ("g", [("DATA_BLOCK_ENCODING", "FAST_DIFF"), ("COMPRESSION", "SNAPPY")]),
                ("c", []), ("m", [("IS_MOB", "true"), ("MOB_THRESHOLD", "100")])]
    for n, (space, name) in enumerate(TABLES):
        create(client, space, name, families, (b"r0300", b"r0700") if n % 2 == 0 else ())
    create(client, "by", "watch", [("f", [])])
    for space, name in TABLES:
        found = client.regions(name if space == "default" else f"{space}:{name}")
        for i, (start, whole, _) in enumerate(found):
            end = found[i + 1][0] if i + 1 < len(found) else b"\xff"
            client.data.put_many(whole, [(r, c) for r, c in rows_of(name) if start <= r < end])
            client.flush(whole)
            client.data.put_many(whole, [(r, c) for r, c in rows_of(name, 20) if start <= r < end])
    region = client.regions("by:watch")[0][2].decode()
    client.close()
    return region


def make_paths(folder, data):
    """Files that bulk loads may name, of all kinds; one of them is a valid HFile."""
    place = folder / "bulk"
    (place / "f").mkdir(parents=True)
    (place / "f" / "junk").write_bytes(random.Random(1).randbytes(5000))
    (place / "f" / "empty").touch()
    os.mkfifo(place / "f" / "fifo")
    (place / "f" / "link").symlink_to("/etc/passwd")
    out = [str(p) for p in (place, place / "f", place / "f" / "junk", place / "f" / "fifo", place / "f" / "link",
                            place / "f" / "absent", place / "f" / "empty", data, data / ".rorqual/lock")]
    store = [p for p in sorted(data.glob("data/default/fz0/*/f/*")) if len(p.name) == 32]
    for i, file in enumerate(store[:4]):
        shutil.copy(file, place / "f" / f"good{i}")
        out.append(str(place / "f" / f"good{i}"))
    out += [str(p) for p in store[:2]]
    return out


# ---- a round


class Round:
    def __init__(self, seed, only=None):
        self.seed = seed
        self.only = only
        self.count = int(os.environ.get("COUNT", random.Random(seed).choice(COUNTS)))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"rorqual-fuzz-wire-{seed}-"))
        self.server = None
        self.said = []
        self.rows = 0

    def fuzz(self, region, paths):
        command = [str(FUZZER), "--master", self.server.master, "--rs", self.server.regionserver, "--zk", self.server.zk,
                   "--seed", str(self.seed), "--count", str(self.count), "--pid", str(self.server.process.pid),
                   "--bystander", region, "--rss-max", str(SANITIZED_MB if sanitized() else PLAIN_MB)]
        if sanitized():
            command += ["--hang-ms", str(SANITIZED_HANG_MS)]
        for name in ("hang-ms", "stall-ms", "p99-ms", "rss-max"):
            if name.upper().replace("-", "_") in os.environ:  # the last argument counts
                command += ["--" + name, os.environ[name.upper().replace("-", "_")]]
        for path in paths:
            command += ["--path", path]
        command += ["--log", str(self.folder / "requests"), "--hold"]
        if self.only is not None:
            (self.folder / "only").write_text("\n".join(map(str, self.only)))
            command += ["--only", str(self.folder / "only")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as fuzzer:
            for line in fuzzer.stdout:
                self.said.append(line.rstrip())
                if line.startswith("FINDING"):
                    self.server.stacks()
                    with contextlib.suppress(BrokenPipeError):  # from now on the fuzzer may close its connections
                        fuzzer.stdin.write("\n")
                        fuzzer.stdin.flush()
                if found := re.match(r"bystander: (\d+) rows", line):
                    self.rows = int(found[1])
        if fuzzer.returncode != 0:
            with contextlib.suppress(subprocess.TimeoutExpired):  # a dying server still writes its report
                self.server.process.wait(10)
            self.server.check()
            raise Finding(next((line.removeprefix("FINDING ") for line in self.said if line.startswith("FINDING")),
                               f"fuzz_wire ended with {fuzzer.returncode}: {self.said[-3:]}"))

    def check_rows(self):
        """The bystander's acknowledged writes exist after a restart."""
        client = hbase.Client(self.server)
        found = 0
        for _, whole, _ in client.regions("by:watch"):
            found += sum(1 for row, cells in client.data.scan(whole).items()
                         if cells.get((b"f", b"q")) == b"%d" % int(row[1:]) and int(row[1:]) < self.rows)
        client.close()
        if found != self.rows:
            raise Finding(f"{self.rows} rows acknowledged to the bystander, {found} found after the start")

    def wrote_meta(self):
        region = b"1588230740".hex()
        return any(region in line and ("MutateRequest" in line or "MultiRequest" in line or "Coprocessor" in line)
                   for line in (self.folder / "requests").open(errors="replace"))

    def fsck(self):
        done = subprocess.run([str(BINARY), "fsck", str(self.folder / "data")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=300, env=environment())
        problems = [line for line in done.stdout.splitlines() if "PROBLEM" in line]
        if done.returncode not in (0, 1) or SANITIZER.search(done.stdout):
            raise Finding(f"fsck ended with {done.returncode}: {done.stdout[-2000:]}")
        # Garbage that a client wrote into hbase:meta is not damage caused by the server.
        if problems and not self.wrote_meta():
            raise Finding(f"fsck: {' | '.join(problems[:5])}")

    def run(self):
        """Runs a round; returns the finding or None."""
        try:
            self.server = Server(self.folder)
            region = prepare(self.server)
            self.fuzz(region, make_paths(self.folder, self.folder / "data"))
            self.server.check()
            self.server.stop()
            self.server.check_log()
            self.fsck()
            self.server = Server(self.folder, lease_ms=600000)
            self.check_rows()
            self.server.stop()
            self.server.check_log()
        except Finding as e:
            return str(e)
        except (hbase.Refused, OSError, EOFError, TimeoutError, RuntimeError) as e:
            if self.server and self.server.process.poll() is not None:
                return f"the server died with {self.server.process.poll()}: {self.server.tail()}"
            return f"{type(e).__name__}: {e}"
        finally:
            if self.server:
                self.server.kill()
        return None

    def summary(self):
        return "; ".join(line for line in self.said if line.startswith(("done", "bystander")))

    def keep(self, problem):
        kept = ROOT / "build/fuzz-wire" / str(self.seed)
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        (kept / "problem").write_text(problem + "\n" + "\n".join(self.said) + "\n")
        for name in ("server.log", "requests", "stacks", "sockets"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, kept / name)
        print(f"     kept in {kept}")
        if os.environ.get("KEEP"):
            print(f"     folder {self.folder}")

    def clean(self):
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


def one(seed, only=None):
    """(the finding or None, the round)"""
    this = Round(seed, only)
    return this.run(), this


# ---- fewer requests that still fail


def kind(problem):
    """The finding's text without numbers and addresses, to compare findings."""
    frame = re.search(r"#\d+ \S+ in (rq_?_?\w+)", problem)
    return frame[1] if frame else re.sub(r"[\d.]+", "", problem)[:40]


def shrink(seed, count):
    wanted, this = one(seed)
    if wanted is None:
        print("the round finds nothing")
        return 1
    # Requests after the last one that was sent are irrelevant.
    sent = [int(line.split("\t")[0]) for line in (this.folder / "requests").read_text(errors="replace").splitlines() if line[0] != "r"]
    this.clean()
    left = list(range(min(count, max(sent) + 1)))
    print(f"{len(left)} requests: {wanted[:300]}", flush=True)
    parts = 2
    while len(left) > 1 and parts <= len(left):
        size = -(-len(left) // parts)
        for at in range(0, len(left), size):
            tried = left[:at] + left[at + size:]
            problem, this = one(seed, tried)
            this.clean()
            if problem and kind(problem) == kind(wanted):
                left, parts = tried, max(parts - 1, 2)
                print(f"{len(left)} requests still do", flush=True)
                break
        else:
            parts *= 2
    print(f"ONLY_REQUESTS: {' '.join(map(str, left))}")
    return 0


def main():
    if not BINARY.exists() or not FUZZER.exists():
        rorqual.fail_hard(f"no {BINARY} or no {FUZZER}")
    if os.environ.get("SHRINK"):
        return shrink(SEED, Round(SEED).count)
    only = None
    if "ONLY_REQUESTS" in os.environ:
        only = [int(n) for n in pathlib.Path(os.environ["ONLY_REQUESTS"]).read_text().split()]
    report = rorqual.Report()
    print(f"-- SEED={SEED} SECONDS={SECONDS:.0f} {BINARY}", flush=True)
    begun = time.monotonic()
    for n in range(ROUNDS):
        if n > 0 and time.monotonic() - begun > SECONDS:
            break
        problem, this = one(SEED + n, only)
        report.outcome(f"fuzz-wire/seed {SEED + n}, {this.count} requests", problem)
        print(f"     {this.summary()}", flush=True)
        if problem:
            this.keep(problem)
        this.clean()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
