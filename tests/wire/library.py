#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librorqual and a server: the library's tests (tests/unit/api: test_*.c) over the wire, by ZooKeeper and by RPC; a folder that an
embedded database and a server use one after the other; the row-key toolkit's tests and the examples on a server; scans whose
allocations fail; calls while the server is killed and started again.

library.py TEST_API TEST_ASYNC TEST_FILTERS TEST_CLUSTER TEST_STALLED TEST_FOLDER BLOG EVENTS SOURCE_ROOT BUILD_ROOT
"""
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import rorqual  # pylint: disable=wrong-import-position

TIMEOUT = 400


def run(report, name, *command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    text = done.stdout + done.stderr
    problem = None if done.returncode == 0 else f"ended with {done.returncode}\n{text[-4000:]}"
    report.outcome(f"library/{name}", problem)


def cases(report, test_api, test_async, test_filters, test_cluster, test_stalled):
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))
        run(report, "by zookeeper", test_api, f"hbase://{server.zk}")
        run(report, "by rpc, region server", test_api, f"hbase+rpc://{server.regionserver}")
        run(report, "by rpc, master", test_api, f"hbase+rpc://{server.master}")
        run(report, "by several zookeepers", test_api, "gets", f"hbase://127.0.0.1:1,{server.zk},[::1]:1/hbase")
        run(report, "by several servers", test_api, "gets", f"hbase+rpc://127.0.0.1:1,{server.master},{server.regionserver}")
        run(report, "asynchronous calls", test_async, f"hbase://{server.zk}")
        run(report, "filters", test_filters, f"hbase://{server.zk}")
        run(report, "regions and definitions", test_cluster, f"hbase://{server.zk}")
        run(report, "closing ends calls that wait", test_stalled, f"hbase://{server.zk}", str(server.process.pid))
        report.outcome("library/stops cleanly", server.stop())


def restarted(report, program):
    """Runs a program, and kills and restarts its server on the same ports as often as the program requests it."""
    names = ("--zk-port", "--master-port", "--rs-port")
    with tempfile.TemporaryDirectory() as folder:
        data, log = pathlib.Path(folder, "data"), pathlib.Path(folder, "log")
        ports = [word for pair in zip(names, map(str, rorqual.free_ports(3))) for word in pair]
        for url in ("hbase://{0.zk}", "hbase+rpc://{0.master}"):
            server = rorqual.Server(data, log, *ports)
            kills, output = 0, ""
            with subprocess.Popen([program, url.format(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) as process:
                guard = threading.Timer(TIMEOUT, process.kill)
                guard.start()
                for line in process.stdout:
                    if line != "kill\n":
                        output += line
                        continue
                    kills += 1
                    server.kill()
                    server = rorqual.Server(data, log, *ports)
                    process.stdin.write("go on\n")
                    process.stdin.flush()
                code = process.wait()
                guard.cancel()
            problem = None if code == 0 and kills > 0 else f"ended with {code} after {kills} kills\n{output[-4000:]}"
            report.outcome(f"library/restarts, {url.split(':')[0]}", problem)
            report.outcome("library/stops cleanly after restarts", server.stop())


def one_folder(report, test_folder):
    """Each sees the rows that the other wrote, and the lock keeps them from using the folder at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        data, log = pathlib.Path(folder, "data"), pathlib.Path(folder, "log")
        run(report, "embedded writes a", test_folder, f"file:{data}", "write", "a")
        server = rorqual.Server(data, log)
        url = f"hbase://{server.zk}"
        run(report, "the server has a", test_folder, url, "read", "a")
        run(report, "the server writes b", test_folder, url, "write", "b")
        run(report, "the folder is locked", test_folder, f"file:{data}", "locked", str(server.process.pid))
        report.outcome("library/stops cleanly with rows", server.stop())
        run(report, "embedded has a", test_folder, f"file:{data}", "read", "a")
        run(report, "embedded has b", test_folder, f"file:{data}", "read", "b")


def blog(report, program):
    """The example prints December's posts, on every kind of database, and twice on the same rows."""
    first, last = 10000 - 849, 9999  # one post every 3,153.6 s; December has 2,678,400 s
    expected = [f"title_{i}--content_{i}--tag_{i}" for i in range(last, first - 1, -1)]
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))
        for url in ("memory:", f"file:{folder}/db", f"file:{folder}/db", f"hbase://{server.zk}"):
            done = subprocess.run([program, url], capture_output=True, text=True, timeout=TIMEOUT, check=False)
            lines = done.stdout.splitlines()
            right = done.returncode == 0 and lines[:-1] == expected and lines[-1] == f"{len(expected)} posts in December"
            problem = None if right else f"{done.returncode} {len(lines)} lines: {done.stdout[:200]}{done.stderr[:500]}"
            report.outcome(f"library/blog on {url.split(':')[0]}", problem)
        report.outcome("library/stops cleanly with posts", server.stop())


def events(report, program):
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))
        for url in ("memory:", f"file:{folder}/db", f"hbase+rpc://{server.regionserver}"):
            done = subprocess.run([program, url], capture_output=True, text=True, timeout=TIMEOUT, check=False)
            right = done.returncode == 0 and done.stdout == "1000 rows written, 1000 read\n"
            report.outcome(f"library/events on {url.split(':')[0]}", None if right else f"{done.returncode} {done.stdout}{done.stderr}")
        report.outcome("library/stops cleanly with events", server.stop())


def rowkey(report, source, build):
    """Runs the tests that need a database, and the examples: in memory, on a folder, on a server, twice on the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))
        url = f"hbase://{server.zk}"
        for name in ("geo", "index", "index_cover", "salted", "tsdb"):
            run(report, f"rowkey {name}", str(build / f"tests/unit/rowkey/test_rowkey_{name}"), url)
        for expected in sorted((source / "examples/expected").glob("*.txt")):
            if expected.stem == "events_glib" and not (build / "examples" / "example_events_glib").exists():
                continue  # the build did not find glib
            for where in (f"file:{folder}/{expected.stem}", f"file:{folder}/{expected.stem}", url, url):
                run(report, f"{expected.stem} on {where.split(':')[0]}", str(source / "examples/compare"),
                    str(build / f"examples/example_{expected.stem}"), str(expected), where)
        run(report, "scans without memory", str(build / "tests/unit/api/test_scan_no_memory"), url)
        report.outcome("library/stops cleanly after the toolkit", server.stop())


def main():
    report = rorqual.Report()
    programs = [str(pathlib.Path(p).resolve()) for p in sys.argv[1:]]
    cases(report, *programs[:5])
    restarted(report, str(pathlib.Path(sys.argv[10]).resolve() / "tests/unit/api/test_restarted"))
    one_folder(report, programs[5])
    blog(report, programs[6])
    events(report, programs[7])
    rowkey(report, pathlib.Path(sys.argv[9]).resolve(), pathlib.Path(sys.argv[10]).resolve())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
