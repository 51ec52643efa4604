#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rorqual bench` against a started server: every workload briefly with every value verified, rates, reports
and the chart, and its errors when the server dies or the arguments are wrong.

PEER=HOST:PORT (a ZooKeeper) runs the workloads against that cluster instead, for example a real HBase;
OPERATIONS (200) is the number of operations of each.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rorqual  # pylint: disable=wrong-import-position

OPERATIONS = os.environ.get("OPERATIONS", "200")
PEER = os.environ.get("PEER")
BOUND = ["--seconds", "60", "--operations", OPERATIONS]  # the number of operations ends the run, however slow it is
SMALL = [*BOUND, "--records", "1500", "--value-bytes", "20-200", "--connections", "2",
         "--depth", "3", "--regions", "3"]
USERS = [*BOUND, "--records", "60", "--value-bytes", "20-200", "--connections", "2",
         "--depth", "3", "--regions", "2"]


def bench(*arguments, timeout=300):
    return subprocess.run([rorqual.BINARY, "bench", *map(str, arguments)], capture_output=True,
                          text=True, timeout=timeout, check=False)


def measured(*arguments):
    """The JSON of a run that must succeed."""
    done = bench(*arguments, "--json", "-")
    assert done.returncode == 0, f"code {done.returncode}: {done.stderr.strip()} {done.stdout[:600]}"
    return json.loads(done.stdout)


def workloads():
    lines = bench("--help").stdout.split("\nworkloads\n")[1].splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def verified(where, name, *more):
    users = name in ("timeline", "publish", "weibo", "newest-rows", "newest-columns")
    few = ["--operations", "10"] if name == "scan-long" else []
    r = measured(*where, *(USERS if users else SMALL), "--verify", *few, *more, name)
    assert r["operations"] > 0, "no operation"
    assert r["checked"] > 0, "nothing was checked"
    assert r["wrong"] == 0 and r["failed"] == 0, r
    assert r["latency_us"]["all"]["p50"] <= r["latency_us"]["all"]["p99.99"] <= \
        r["latency_us"]["all"]["max"], r["latency_us"]
    return r


def several_columns_and_families(where):
    for name in ("put", "scan-short", "delete", "check-and-put"):
        verified(where, name, "--families", "2", "--columns", "5")


def scans_of_many_answers(where):
    for name in ("scan-long", "scan-reverse"):
        verified(where, name, "--caching", "7", "--scan-rows", "60")
    verified(where, "scan-short", "--scan-bytes", "2000", "--scan-rows", "60")


def a_rate_is_kept_and_ends_after_so_many(where):
    r = measured(*where, *SMALL, "--rate", "400", "--operations", "100", "get")
    assert 100 <= r["operations"] <= 110, r["operations"]
    assert r["rate"] < 480, r["rate"]


def who_stays_awake_keeps_the_rate_too(where):
    r = measured(*where, *SMALL, "--rate", "400", "--awake", "--operations", "100", "get")
    assert 100 <= r["operations"] <= 110, r["operations"]
    assert r["rate"] < 480 and r["awake"], r


def ramp_and_warm_up_are_not_counted(where):
    # The series has no point of the warm-up if the program pauses for the whole warm-up.
    r = measured(*where, *SMALL, "--rate", "500", "--ramp", "0.3", "--warm", "1.7", "--seconds",
                 "0.4", "--interval", "0.1", "--operations", "100000", "put")
    assert r["operations"] <= 210, r["operations"]
    assert any(p["at_s"] < 0 for p in r["series"]), r["series"]


def one_seed_draws_the_same_rows(where):
    """Each key has a different length, so the number of bytes sent shows which keys were drawn."""
    wanted = [*where, *SMALL, "--connections", "1", "--depth", "1", "--key-bytes", "16-300", "get"]
    sent = [measured("--seed", seed, *wanted)["sent"] for seed in (5, 5, 6)]
    assert sent[0] == sent[1] != sent[2], sent


def reports_and_picture_are_well_formed(where):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        done = bench(*where, *SMALL, "--json", folder / "r.json", "--csv", folder / "r.csv", "--plot",
                     folder / "r.svg", "mixed")
        assert done.returncode == 0, done.stderr
        assert "operations/s" in done.stdout and "p99.99" in done.stdout, done.stdout
        report = json.loads((folder / "r.json").read_text())
        assert {"get", "put"} <= set(report["latency_us"]), report["latency_us"]
        rows = (folder / "r.csv").read_text().splitlines()
        assert len(rows) == len(report["series"]) + 1 and rows[0].startswith("at_s,"), rows
        picture = xml.etree.ElementTree.parse(folder / "r.svg").getroot()
        curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(curves) >= 1, "no curve"


def existing_rows_are_read_again(where):
    table = ["--table", "bench_kept"]
    measured(*where, *SMALL, *table, "--keep", "put")
    r = measured(*where, *SMALL, *table, "--reuse", "get")
    assert r["misses"] == 0 and r["rows_read"] == r["operations"], r
    measured(*where, *SMALL, *table, "--replace", "get")


def an_existing_table_is_refused_and_left_alone(where):
    table = ["--table", "bench_mine"]
    measured(*where, *SMALL, *table, "--keep", "put")
    refused = bench(*where, *SMALL, *table, "put")
    assert refused.returncode == 1 and not refused.stdout, refused
    for word in ("bench_mine exists", "--replace", "--reuse", "--table"):
        assert word in refused.stderr, refused.stderr
    # The workload's other tables do not exist, and must not be created either.
    assert bench(*where, *USERS, *table, "timeline").returncode == 1
    r = measured(*where, *SMALL, *table, "--reuse", "get")
    assert r["misses"] == 0, r
    absent = bench(*where, "--table", "bench_mine_content", "--reuse", "get")
    assert absent.returncode == 1 and "bench_mine_content" in absent.stderr, absent
    measured(*where, *SMALL, *table, "--replace", "get")
    assert bench(*where, *SMALL, *table, "--reuse", "get").returncode == 1, "the run's own table is still there"


def idle_connections_are_opened_and_only_kept(where):
    r = measured(*where, *SMALL, "--idle", "40", "get")
    few = measured(*where, *SMALL, "get")
    assert r["connects"] == few["connects"] + 40, (r["connects"], few["connects"])
    assert r["calls"] <= r["operations"], r


def wrong_arguments_are_refused(where):
    for arguments in (["nonsense"], [], ["--depth", "0", "get"], ["--depth", "x", "get"],
                      ["--records", "-1", "get"], ["--columns", "2", "--families", "3", "get"],
                      ["--verify", "--value-bytes", "3", "get"], ["--zk", "nowhere", "get"],
                      ["--reuse", "--verify", "delete"]):
        done = bench(*(where if "--zk" not in arguments else []), *arguments)
        assert done.returncode == 2, (arguments, done.returncode, done.stderr)
        assert done.stderr.startswith("rorqual bench: ") or not arguments, done.stderr
        assert not done.stdout, done.stdout


def a_missing_table_is_named(where):
    done = bench(*where, "--table", "bench_absent", "--reuse", "get")
    assert done.returncode == 1 and "bench_absent" in done.stderr, done.stderr


# ---- with a server started here


def server_costs_are_told(server):
    r = measured("--zk", server.zk, *SMALL, "--server-pid", server.process.pid, "get")
    assert r["server_cpu_us_per_op"] > 0 and r["server_rss"] > 1e6, r


def nobody_listens(tmp):
    server = rorqual.Server(tmp / "gone", tmp / "gone.log")
    zk, rs = server.zk, server.regionserver
    assert server.stop() is None
    for where in (["--zk", zk], ["--bootstrap", rs]):
        done = bench(*where, "--timeout", "2000", "get")
        assert done.returncode == 1 and "cannot connect to 127.0.0.1" in done.stderr, done.stderr


def ticks_used(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wait_for_load(server, deadline=300):
    """Waits until the server has used another half second of CPU, which shows that the load runs."""
    end, before = time.monotonic() + deadline, ticks_used(server)
    while time.monotonic() < end:
        if ticks_used(server) > before + os.sysconf("SC_CLK_TCK") // 2:
            return
        time.sleep(0.02)
    raise AssertionError("no load came")


def a_server_that_dies_is_named_and_ends_the_run(tmp):
    server = rorqual.Server(tmp / "dying", tmp / "dying.log")
    with subprocess.Popen([rorqual.BINARY, "bench", "--zk", server.zk, "--seconds", "600", "--records",
                           "1000", "--depth", "8", "--retries", "1", "--pause", "20", "--give-up", "1",
                           "mixed"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        wait_for_load(server)
        server.kill()
        out, err = run.communicate(timeout=300)
    assert run.returncode == 1, run.returncode
    assert "ended early: no operation succeeded" in out, out + err
    assert "ConnectionLost" in out and "failed" in out, out


def a_server_that_comes_back_has_everything(tmp):
    """kill -9 under load, and a start on the same ports: operations are retried, none fails, and all
    acknowledged rows exist."""
    ports = [option for name, port in zip(("zk", "master", "rs"), rorqual.free_ports(3)) for option in (f"--{name}-port", str(port))]
    server = rorqual.Server(tmp / "back", tmp / "back.log", *ports)
    for operations in (400000, 1600000, 6400000):  # the kill comes too late if this process pauses until the load is over
        with subprocess.Popen([rorqual.BINARY, "bench", "--zk", server.zk, "--seconds", "600", "--operations",
                               str(operations), "--records", "2000", "--regions", "3", "--depth", "16", "--pause", "50",
                               "--retries", "30", "--give-up", "250", "--verify", "--json", "-", "mixed"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            wait_for_load(server)
            server.kill()
            server = rorqual.Server(tmp / "back", tmp / "back.log", *ports)
            out, err = run.communicate(timeout=900)
        assert run.returncode == 0, (run.returncode, err, out[:1500])
        report = json.loads(out)
        lost = [e for e in report["errors"] if e["kind"] == "ConnectionLost"]
        if lost:
            break
    assert lost and lost[0]["repeated"] > 0, report["errors"]
    assert report["failed"] == 0 and report["wrong"] == 0, report
    assert server.stop() is None


def a_cluster_elsewhere_is_named_before_it_is_changed(tmp):
    server = rorqual.Server(tmp / "far", tmp / "far.log", "--advertise", "db.invalid")
    port = server.zk.rsplit(":", 1)[1]
    done = bench("--zk", f"127.0.0.1:{port}", "--table", "t", "--timeout", "2000", "--retries", "0", "put")
    assert done.returncode == 1, done
    assert "about to create tables on the cluster of master db.invalid:" in done.stderr.splitlines()[0], done.stderr
    assert done.stderr.splitlines()[0].endswith(": t"), done.stderr
    assert server.stop() is None


def ctrl_c_ends_with_a_report(tmp):
    server = rorqual.Server(tmp / "ctrlc", tmp / "ctrlc.log")
    with subprocess.Popen([rorqual.BINARY, "bench", "--zk", server.zk, "--seconds", "600", "--records",
                           "1000", "mixed"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as run:
        wait_for_load(server)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, (run.returncode, err)
    assert "operations/s" in out, out
    assert server.stop() is None


def main():
    report = rorqual.Report()

    def attempt(name, run, *arguments):
        problem = None
        try:
            run(*arguments)
        except (AssertionError, OSError, ValueError, KeyError, RuntimeError,
                subprocess.TimeoutExpired) as failure:
            problem = f"{type(failure).__name__}: {str(failure)[:800]}"
        report.outcome(name, problem)

    with tempfile.TemporaryDirectory(prefix="rorqual-e2e-bench-") as tmp:
        tmp = pathlib.Path(tmp)
        server = None if PEER else rorqual.Server(tmp / "data", tmp / "log", "-D",
                                                  "rorqual.wal.sync=handover")
        where = ["--zk", PEER or server.zk]
        for name in workloads():
            attempt(f"bench {name}, verified", verified, where, name)
        for run in (several_columns_and_families, scans_of_many_answers, a_rate_is_kept_and_ends_after_so_many,
                    who_stays_awake_keeps_the_rate_too,
                    ramp_and_warm_up_are_not_counted, one_seed_draws_the_same_rows,
                    reports_and_picture_are_well_formed, existing_rows_are_read_again,
                    an_existing_table_is_refused_and_left_alone,
                    idle_connections_are_opened_and_only_kept,
                    wrong_arguments_are_refused, a_missing_table_is_named):
            attempt(run.__name__, run, where)
        if server:
            attempt("found without ZooKeeper", verified, ["--bootstrap", server.regionserver], "mixed")
            attempt("found by the master", verified, ["--bootstrap", server.master], "mixed")
            attempt(server_costs_are_told.__name__, server_costs_are_told, server)
            for run in (nobody_listens, a_server_that_dies_is_named_and_ends_the_run,
                        a_server_that_comes_back_has_everything, a_cluster_elsewhere_is_named_before_it_is_changed,
                        ctrl_c_ends_with_a_report):
                attempt(run.__name__, run, tmp)
            report.outcome("server stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
