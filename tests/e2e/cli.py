#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The binary as an operator uses it: ready line, ports, refused starts that change nothing, clean stop, wrong
arguments, help, --json, bad frames on each port, ZooKeeper's protocol."""
import json
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from hbase import read_exact
from rorqual import pause

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = str(pathlib.Path(os.environ.get("RORQUAL", ROOT / "build/rorqual")).resolve())
PORTS = ["--zk-port", "0", "--master-port", "0", "--rs-port", "0", "--http", "none"]
READY = re.compile(r"^rorqual ready: zookeeper (\S+):(\d+), master (\S+):(\d+), "
                   r"regionserver (\S+):(\d+), (?:http \S+:\d+, )?data (.+)\n$")


class Server:
    def __init__(self, data, *arguments, **environment):
        self.process = subprocess.Popen([BINARY, "server", "--data", str(data), *PORTS, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        line = self.process.stdout.readline()
        self.ready = READY.match(line)
        if not self.ready:
            self.process.wait()
            raise AssertionError(f"no ready line: {line!r} {self.process.stderr.read()!r}")
        self.host = self.ready[1]
        self.zk, self.master, self.rs = (int(self.ready[i]) for i in (2, 4, 6))

    def stop(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


def run(*arguments, **options):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=300, check=False,
                          **options)


def refused(data, *arguments):
    """Starts a server that must refuse: non-zero exit code, one line on stderr, and possibly a hint. Returns the
    line."""
    done = subprocess.run([BINARY, "server", "--data", str(data), *arguments], capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode != 0, "it started"
    lines = [line for line in done.stderr.splitlines() if not line.startswith("rorqual: hint: ")]
    assert len(lines) == 1, f"not one line: {done.stderr!r}"
    assert done.stdout == "", done.stdout
    return lines[0]


def listing(folder):
    return sorted((str(p.relative_to(folder)), p.stat().st_size if p.is_file() else -1)
                  for p in pathlib.Path(folder).rglob("*"))


def ready_line_names_ports_and_folder(tmp):
    s = Server(tmp / "d")
    assert s.host == "127.0.0.1" and 0 < s.zk < 65536
    assert s.ready[7] == str((tmp / "d").resolve())
    assert s.stop()[0] == 0


def advertised_host_is_told(tmp):
    s = Server(tmp / "d", "--advertise", "localhost")
    assert s.ready[1] == s.ready[3] == s.ready[5] == "localhost"
    assert s.stop()[0] == 0


def the_environment_names_the_advertised_host(tmp):
    s = Server(tmp / "d", "-D", "rorqual.advertise=127.0.0.1", RORQUAL_ADVERTISE="localhost")
    assert s.ready[1] == s.ready[3] == s.ready[5] == "localhost"
    assert s.stop()[0] == 0
    s = Server(tmp / "d", "--advertise", "127.0.0.1", RORQUAL_ADVERTISE="localhost")
    assert s.host == "127.0.0.1", "the option comes first"
    assert s.stop()[0] == 0
    s = Server(tmp / "d", "-D", "rorqual.advertise=localhost", RORQUAL_ADVERTISE="")
    assert s.host == "localhost", "an empty one is none"
    assert s.stop()[0] == 0


def the_service_manager_is_notified(tmp):
    for name in (str(tmp / "notify"), f"@rorqual-test-{os.getpid()}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name.replace("@", "\0", 1))
            manager.settimeout(300)
            got = queue.Queue()
            # A thread reads, as a service manager does at once: the kernel keeps ten datagrams, and the server does not wait.
            reader = threading.Thread(target=read_notices, args=(manager, got))
            reader.start()
            s = Server(tmp / "d", NOTIFY_SOCKET=name, WATCHDOG_USEC="1000000")
            ready = got.get(timeout=300).decode()
            assert ready.startswith("READY=1\nSTATUS=zookeeper ") and str(s.zk) in ready, ready
            for _ in range(2):
                assert got.get(timeout=300) == b"WATCHDOG=1"
            assert s.stop()[0] == 0
            reader.join()
            rest = [got.get() for _ in range(got.qsize())]
            assert set(rest[:-1]) <= {b"WATCHDOG=1"} and rest[-1] == b"STOPPING=1\nSTATUS=flushing", rest


def read_notices(manager, got):
    """Up to that of the end."""
    try:
        while not (notice := manager.recv(8192)).startswith(b"STOPPING=1"):
            got.put(notice)
        got.put(notice)
    except TimeoutError:
        pass


def a_watchdog_that_is_not_meant_is_not_fed(tmp):
    for number, environment in enumerate(({}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"},
                                          {"WATCHDOG_USEC": "0"})):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(tmp / f"notify{number}"))
            manager.settimeout(300)
            s = Server(tmp / "d", NOTIFY_SOCKET=str(tmp / f"notify{number}"), **environment)
            assert manager.recv(8192).startswith(b"READY=1")
            assert s.stop()[0] == 0
            assert manager.recv(8192).startswith(b"STOPPING=1"), environment


def a_service_manager_that_is_gone_is_no_error(tmp):
    for name in (str(tmp / "nobody"), "relative", "/", "@", "/" + "x" * 200, ""):
        assert Server(tmp / "d", "--log", "warn", NOTIFY_SOCKET=name, WATCHDOG_USEC="100000").stop() == (
            0, "rorqual stopping: SIGTERM\nrorqual stopped\n", ""), name


def ping_asks_every_part(tmp):
    s = Server(tmp / "d")
    for where in (["--zk", f"127.0.0.1:{s.zk}"], ["--bootstrap", f"127.0.0.1:{s.master}"],
                  ["--bootstrap", f"127.0.0.1:{s.rs}"]):
        done = run("ping", *where)
        assert done.returncode == 0 and done.stderr == "", done
        assert re.fullmatch(rf"{where[1]} answers: master 127\.0\.0\.1:{s.master}, cluster [0-9a-f-]{{36}}, [0-9.]+ ms\n",
                            done.stdout), done.stdout
        done = run("ping", *where, "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    done = run("ping", "--zk", f"127.0.0.1:{s.zk}", "--zk-root", "/other")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "/other" in done.stderr, done
    zk = s.zk
    pause(s.process)
    done = run("ping", "--zk", f"127.0.0.1:{zk}", "--timeout", "1")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    s.process.send_signal(signal.SIGCONT)
    assert s.stop()[0] == 0
    done = run("ping", "--zk", f"127.0.0.1:{zk}")
    assert done.returncode == 1 and done.stdout == "" and str(zk) in done.stderr, done


def ping_beside_the_server_needs_no_advertised_host(tmp):
    s = Server(tmp / "d", "--advertise", "nowhere.invalid")
    for where in (["--zk", f"127.0.0.1:{s.zk}"], ["--bootstrap", f"127.0.0.1:{s.rs}"]):
        done = run("ping", *where, "--same-host")
        assert done.returncode == 0 and f"nowhere.invalid:{s.master}" in done.stdout, done
        done = run("ping", *where)
        assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done
    assert s.stop()[0] == 0


def clean_stop_leaves_an_empty_log_and_restarts(tmp):
    for _ in range(3):
        s = Server(tmp / "d")
        assert s.stop(signal.SIGINT)[0] == 0


def second_server_on_the_folder_is_refused(tmp):
    s = Server(tmp / "d")
    line = refused(tmp / "d", *PORTS)
    assert str(s.process.pid) in line or "another" in line or "in use" in line, line
    assert s.stop()[0] == 0


def port_in_use_leaves_nothing_behind(tmp):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = str(taken.getsockname()[1])
        for option in ("--zk-port", "--master-port", "--rs-port"):
            arguments = PORTS.copy()
            arguments[arguments.index(option) + 1] = port
            line = refused(tmp / "d", *arguments)
            assert port in line, line
            assert not (tmp / "d").exists(), "the folder was touched"


def unwritable_folder_is_refused(tmp):
    (tmp / "file").write_text("x")
    line = refused(tmp / "file", *PORTS)
    assert "file" in line, line
    line = refused(tmp / "no" / "such" / "parent", *PORTS)
    assert "parent" in line, line


def newer_format_is_refused_untouched(tmp):
    assert Server(tmp / "d").stop()[0] == 0
    (tmp / "d/.rorqual/version").write_text("9999\n")
    before = listing(tmp / "d")
    line = refused(tmp / "d", *PORTS)
    assert "9999" in line or "newer" in line, line
    after = [x for x in listing(tmp / "d") if not x[0].endswith(".rorqual/lock")]
    assert [x for x in before if not x[0].endswith(".rorqual/lock")] == after


def unknown_setting_is_refused(tmp):
    line = refused(tmp / "d", *PORTS, "-D", "hbase.regionserver.handlr.count=3")
    assert "handlr" in line, line
    line = refused(tmp / "d", *PORTS, "-D", "hbase.hregion.memstore.flush.size=lots")
    assert "flush.size" in line, line
    assert not (tmp / "d").exists()


def hbase_setting_without_effect_is_listed(tmp):
    site = tmp / "hbase-site.xml"
    site.write_text("<?xml version='1.0'?><configuration><property><name>hbase.regionserver.handler"
                    ".count</name><value>30</value></property><property><name>hbase.hregion.memstore"
                    ".flush.size</name><value>64m</value></property></configuration>")
    s = Server(tmp / "d", "--config", str(site), "--log", "warn")
    code, _, err = s.stop()
    assert code == 0
    assert "1 of the given settings" in err and "handler.count" not in err and "flush.size" not in err, err
    _, _, err = Server(tmp / "d", "--config", str(site), "--log", "debug").stop()
    assert "hbase.regionserver.handler.count" in err, err


def settings_whose_names_hbase_composes_are_known(tmp):
    """HBase's code composes these names from a prefix and a suffix."""
    names = ("hbase.zookeeper.property.tickTime", "hbase.rpc.tls.keystore.location", "hbase.rpc.tls.truststore.password", "hbase.rpc.tls.enabledProtocols",
             "hbase.security.authentication.spnego.kerberos.keytab", "hbase.mapred.output.quorum")
    done = run("server", "--check", "--data", tmp / "d", *PORTS, *(a for name in names for a in ("-D", f"{name}=3")))
    assert done.returncode == 0 and done.stderr == "", done
    assert sorted(re.findall(r"(?m)^no effect (\S+), a setting of HBase$", done.stdout)) == sorted(names), done


def wrong_arguments_are_told_in_one_line(tmp):
    """Each wrong argument is refused with exit code 2 and one line that names the error."""
    wrong = [("server --bogus", "--bogus"), ("server --data", "--data"), ("server -x", "-x"),
             ("server --zk-port 70000", "70000"), ("server --log loud", "loud"),
             ("server extra", "extra"), ("server -D nonsense", "nonsense"),
             ("server --memory 64", "64m is 64 MB"), ("settings a b", "b"),
             ("settings --bogus", "--bogus"), ("settings -D no.such=1", "no.such"),
             ("server -D hbase.hregion.memstore.flush.size=64", "64 bytes"),
             ("server -D hfile.block.cache.size=0.5", "0.8"),
             ("server --help=3", "--help=3"), ("server --config /no/such", "/no/such"),
             ("fsck", "folder"), ("fsck --bogus x", "--bogus"), ("fsck a b", "one"),
             ("hfile", "verb"), ("hfile look x", "look"), ("hfile meta", "meta"),
             ("hfile cells x --limit many", "many"), ("hfile cells --row", "--row"),
             ("wal", "verb"), ("wal look x", "look"), ("wal list", "list"),
             ("wal dump --sequence 1-x y", "1-x"), ("wal dump a b", "one"),
             ("juggle", "juggle"), ("help juggle", "juggle"), ("bench --replace --reuse put", "--reuse"),
             ("ping --zk a:1 --bootstrap b:1", "--bootstrap"), ("ping --timeout 0", "--timeout 0"),
             ("status --zk 127.0.0.1:99999", "99999"), ("ping --bootstrap ::1", "::1"), ("top --zk nowhere", "nowhere"),
             ("bench --zk nowhere get", "nowhere"), ("ping --timeout soon", "soon"), ("status --bogus", "--bogus"), ("status x", "x"), ("status --zk a:1 --data b", "--data"),
             ("tables a b", "one"), ("tables --rates 0", "--rates 0"), ("tables --data x --rates 1", "--rates"),
             ("top --mode users", "users"), ("top --sort luck", "luck"), ("top --period 0", "--period 0"), ("top x", "x"),
             ("server --log-format xml", "xml"), ("ping look", "look"), ("ping --bogus", "--bogus"),
             ("bench", "workload"), ("bench juggle", "juggle"), ("bench --records many put", "many"),
             ("bench --seconds 0 put", "--seconds"), ("bench --seconds 1e11 put", "seconds"), ("bench --bogus put", "--bogus"),
             ("bench --draw blindly get", "blindly")]
    for line, culprit in wrong:
        done = run(*line.split(), cwd=tmp)
        assert done.returncode == 2, (line, done)
        assert done.stdout == "" and len(done.stderr.splitlines()) == 1, (line, done)
        assert culprit in done.stderr and done.stderr.startswith(("rorqual ", "rorqual: ")), (line, done.stderr)
    done = run(cwd=tmp)
    assert done.returncode == 2 and done.stdout == "" and "usage" in done.stderr, done
    assert list(tmp.iterdir()) == []


def help_is_an_answer(tmp):
    for line in ("--help", "-h", "help", "version", "server --help", "server -h", "fsck --help",
                 "fsck -h", "hfile --help", "hfile help", "hfile meta --help", "wal --help", "wal help",
                 "wal list -h", "bench --help", "bench -h", "help server", "help fsck", "help hfile",
                 "help wal", "help bench", "help settings", "help ping", "ping --help", "ping -h", "status --help", "tables --help", "top --help", "help top", "help help",
                 "help --help", "help version", "settings", "settings memory"):
        done = run(*line.split(), cwd=tmp)
        assert done.returncode == 0 and done.stderr == "" and "rorqual" in done.stdout, (line, done)
    for command in re.findall(r"(?m)^  ([a-z]+) ", run("help").stdout.split("\nother\n")[0]):
        text = run("help", command).stdout
        assert max(map(len, text.split("\n"))) <= 100, command
        assert text == run(command, "--help").stdout and "\nexit codes: 0 " in text, command
        assert f"\n  {command} " in run("help").stdout, command


def a_silent_peer_is_named(tmp):
    """A port that accepts but never responds, like an HTTP server that waits for more input."""
    del tmp
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        at = f"127.0.0.1:{silent.getsockname()[1]}"
        done = run("ping", "--zk", at, "--timeout", "1")
    assert done.returncode == 1 and done.stderr == f"rorqual ping: cannot read from {at}: no response in time\n", done


def version_names_commit_and_libraries(tmp):
    del tmp
    out = run("--version").stdout
    assert re.match(r"rorqual \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}|unknown)\)\nbuilt with libuv \d.*libevent", out), out


def a_slip_is_answered_with_a_suggestion(tmp):
    for line, meant in (("sevrer", "'server'"), ("help bnech", "'bench'"), ("bench mutli-get", "'multi-get'"),
                        ("server -D rorqual.memroy=64m", "rorqual.memory?"),
                        ("server -D hbase.hregion.memstore.flush.sise=64m", "hbase.hregion.memstore.flush.size?")):
        done = run(*line.split(), cwd=tmp)
        assert done.returncode == 2 and done.stdout == "", (line, done)
        assert f"did you mean {meant}" in done.stderr, (line, done.stderr)
    for line in ("compact", "bench everything", "server -D nothing.like.it=1"):
        assert "did you mean" not in run(*line.split(), cwd=tmp).stderr, line


def pages_and_completions_name_every_command(tmp):
    pages = ROOT / "tools/pages"
    assert subprocess.run([pages, BINARY, "0", tmp], check=False).returncode == 0
    commands = re.findall(r"(?m)^  ([a-z]+) ", run("help").stdout.split("\nother\n")[0])
    for command in commands:
        text = (tmp / f"rorqual-{command}.1").read_text()
        assert text.startswith(".TH") and f"rorqual {command}" in text, text[:200]
    assert (tmp / "rorqual.1").exists() and (tmp / "_rorqual").exists()

    def complete(*words):
        script = (f"source '{tmp}/rorqual.bash'; COMP_WORDS=({' '.join(words)} ''); "
                  f"COMP_CWORD={len(words)}; _rorqual; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert set(complete("rorqual")) == {*commands, "help", "version"}
    assert {"--data", "--listen"} <= set(complete("rorqual", "server"))
    assert {"--records", "ycsb-a"} <= set(complete("rorqual", "bench"))
    assert complete("rorqual", "help") == commands

    def complete_in_fish(line):
        script = f"source '{tmp}/rorqual.fish'; complete -C '{line}'"
        out = subprocess.run(["fish", "-N", "-c", script], capture_output=True, text=True, check=True, cwd=tmp / "empty").stdout
        return [one.split("\t")[0] for one in out.splitlines()]
    if shutil.which("fish") is not None:
        (tmp / "empty").mkdir()
        assert set(complete_in_fish("rorqual ")) == {*commands, "help", "version"}
        assert set(complete_in_fish("rorqual help ")) == set(commands)
        assert {"--records", "--regions"} <= set(complete_in_fish("rorqual bench --re"))


def hints_name_the_ports_in_use(tmp):
    s = Server(tmp / "d", "--hints")
    out = ""
    while "Ctrl-C" not in out:
        line = s.process.stdout.readline()
        assert line, f"no end of the hints: {out}"
        out += line
    assert s.stop()[0] == 0
    for wanted in (f"hbase.zookeeper.property.clientPort={s.zk}\n", f"--zk 127.0.0.1:{s.zk} ",
                   f"hbase.client.bootstrap.servers=127.0.0.1:{s.rs}\n"):
        assert wanted in out, (wanted, out)


def stopping_is_announced_and_confirmed(tmp):
    for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        code, out, err = Server(tmp / "d", "--log", "warn").stop(number)
        out = out.removeprefix(f"new data folder {tmp.resolve() / 'd'}\n")
        assert (code, out, err) == (0, f"rorqual stopping: {name}\nrorqual stopped\n", ""), (code, out, err)


def what_is_not_there_is_named_once(tmp):
    for line in ("fsck {}", "hfile meta {}", "wal list {}"):
        done = run(*line.format(tmp / "nothing").split())
        assert done.returncode in (1, 2) and done.stdout == "", (line, done)
        assert len(done.stderr.splitlines()) == 1, (line, done.stderr)
        assert done.stderr.count("nothing") == 1, (line, done.stderr)


def an_empty_name_is_no_file(tmp):
    for line in (["fsck", ""], ["hfile", "meta", ""], ["wal", "list", ""], ["server", "--data", "", *PORTS]):
        done = run(*line, cwd=tmp)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, (line, done)


def options_stand_anywhere_and_json_is_json(tmp):
    assert Server(tmp / "d").stop()[0] == 0
    files = [str(f) for f in (tmp / "d/data/hbase/meta").glob("*/info/*") if f.is_file()]
    assert files
    data = str(tmp / "d")
    for line in (["fsck", data, "--json"], ["fsck", "--json", "--blocks", data],
                 ["hfile", "meta", *files, "--json"], ["hfile", "--json", "blocks", *files],
                 ["hfile", "cells", "--values", *files, "--json"],
                 ["hfile", "statistics", "--json", *files], ["hfile", "check", files[0], "--json"],
                 ["wal", "list", data, "--json"], ["wal", "--json", "verify", data],
                 ["wal", "dump", "--json", "--all", "--values", data]):
        done = run(*line)
        assert done.returncode == 0 and done.stderr == "", (line, done)
        lines = [json.loads(text) for text in done.stdout.splitlines()]
        assert lines or "dump" in line, line
    done = run("hfile", "check", "--json", str(tmp / "d/hbase.id"))
    assert done.returncode == 1 and json.loads(done.stdout)["fine"] is False, done


def connect(s, port):
    c = socket.create_connection((s.host, port), timeout=300)
    c.settimeout(300)
    return c


def alive(s):
    """The registry responds over ZooKeeper's protocol, so the server lives."""
    with connect(s, s.zk) as c:
        c.sendall(b"ruok")
        return c.recv(4) == b"imok"


def drain(c):
    got = b""
    try:
        while chunk := c.recv(65536):
            got += chunk
    except OSError:
        pass
    return got


def bad_frames_on_each_port_harm_nobody(tmp):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"  seed {seed}")
    r = random.Random(seed)
    s = Server(tmp / "d")
    good_header = bytes([0x0A, 6, 0x0A, 4]) + b"user" + bytes([0x12, 13]) + b"ClientService"
    preamble = b"HBas\x00\x50"
    zk_connect = struct.pack(">iqiq", 0, 0, 30000, 0) + struct.pack(">i", 16) + bytes(16) + b"\0"
    cases = [b"", b"H", b"GET / HTTP/1.0\r\n\r\n", preamble, preamble + b"\xff\xff\xff\xff",
             preamble + b"\x7f\xff\xff\xff", preamble + struct.pack(">i", 5) + b"\xff" * 5,
             preamble + struct.pack(">i", len(good_header)) + good_header + b"\x7f\xff\xff\xff",
             preamble + struct.pack(">i", len(good_header)) + good_header + struct.pack(">i", -1),
             struct.pack(">i", 0x7fffffff), struct.pack(">i", -5),
             struct.pack(">i", len(zk_connect)) + zk_connect + struct.pack(">iii", 8, 1, 9999)]
    for _ in range(60):
        frame = bytes(r.randrange(256) for _ in range(r.randrange(1, 200)))
        head = preamble + struct.pack(">i", len(good_header)) + good_header
        cases.append(frame)
        cases.append(head + struct.pack(">i", len(frame)) + frame)
        cases.append(struct.pack(">i", len(zk_connect)) + zk_connect +
                     struct.pack(">i", len(frame)) + frame)
    for port in (s.zk, s.master, s.rs):
        for case in cases:
            with connect(s, port) as c:
                try:
                    c.sendall(case)
                    c.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                drain(c)
    assert alive(s)
    assert s.stop()[0] == 0


def zk_session(c, session=0, password=bytes(16)):
    body = struct.pack(">iqiq", 0, 0, 30000, session) + struct.pack(">i", 16) + password + b"\0"
    c.sendall(struct.pack(">i", len(body)) + body)
    answer = read_frame(c)
    _, timeout, got = struct.unpack(">iiq", answer[:16])
    return timeout, got, answer[20:36]


def read_frame(c):
    return read_exact(c, struct.unpack(">i", read_exact(c, 4))[0])


def zk_request(c, xid, op, body=b""):
    c.sendall(struct.pack(">iii", len(body) + 8, xid, op) + body)
    answer = read_frame(c)
    got, _, err = struct.unpack(">iqi", answer[:16])
    assert got == xid, (got, xid)
    return err, answer[16:]


def zk_string(text):
    return struct.pack(">i", len(text)) + text.encode()


def zookeeper_answers_as_hbase_znodes(tmp):
    s = Server(tmp / "d")
    with connect(s, s.zk) as c:
        timeout, session, password = zk_session(c)
        assert timeout == 30000 and session != 0
        for name in ("hbaseid", "master", "meta-region-server", "running"):
            err, body = zk_request(c, 1, 4, zk_string("/hbase/" + name) + b"\0")
            assert err == 0 and body[4] == 0xFF and b"PBUF" in body, name
        err, body = zk_request(c, 2, 8, zk_string("/hbase") + b"\0")
        assert err == 0 and b"meta-region-server" in body
        err, body = zk_request(c, 3, 12, zk_string("/hbase/rs") + b"\0")
        assert err == 0 and b",%d," % s.rs in body
        assert zk_request(c, 4, 3, zk_string("/hbase/nothing") + b"\1")[0] == -101
        assert zk_request(c, 5, 4, zk_string("/hbase/table/hbase:meta") + b"\0")[0] == 0
        assert zk_request(c, 6, 77)[0] == -6, "unknown operation: Unimplemented"
        assert zk_request(c, -2, 11)[0] == 0, "ping"
        assert zk_request(c, 7, 1, zk_string("/x"))[0] == -102, "nobody may write"
    with connect(s, s.zk) as c:
        assert zk_session(c, session, password)[1] == session, "the session goes on"
    with connect(s, s.zk) as c:
        assert zk_session(c, session, bytes(16))[1] == 0, "wrong password: expired"
    assert s.stop()[0] == 0
    s = Server(tmp / "d")
    with connect(s, s.zk) as c:
        assert zk_session(c, session, password)[1] == session, "also after a restart"
        # setWatches with a data watch set at zxid 1: the node has changed since, so the watch fires at once.
        body = struct.pack(">q", 1) + struct.pack(">i", 1) + zk_string("/hbase/master")
        body += struct.pack(">ii", 0, 0)
        c.sendall(struct.pack(">iii", len(body) + 8, -8, 101) + body)
        event = read_frame(c)
        assert struct.unpack(">iqiii", event[:24])[3:] == (3, 3) and b"/hbase/master" in event
        assert zk_request_pending(c) == -8
        assert zk_request(c, 9, -11)[0] == 0, "close"
    assert s.stop()[0] == 0


def zk_request_pending(c):
    return struct.unpack(">i", read_frame(c)[:4])[0]


TESTS = [ready_line_names_ports_and_folder, advertised_host_is_told,
         the_environment_names_the_advertised_host, the_service_manager_is_notified,
         a_watchdog_that_is_not_meant_is_not_fed, a_service_manager_that_is_gone_is_no_error, ping_asks_every_part,
         ping_beside_the_server_needs_no_advertised_host,
         clean_stop_leaves_an_empty_log_and_restarts, second_server_on_the_folder_is_refused,
         port_in_use_leaves_nothing_behind, unwritable_folder_is_refused,
         newer_format_is_refused_untouched, unknown_setting_is_refused,
         hbase_setting_without_effect_is_listed, settings_whose_names_hbase_composes_are_known, wrong_arguments_are_told_in_one_line,
         help_is_an_answer, a_silent_peer_is_named, version_names_commit_and_libraries, a_slip_is_answered_with_a_suggestion,
         pages_and_completions_name_every_command, hints_name_the_ports_in_use, stopping_is_announced_and_confirmed, what_is_not_there_is_named_once, an_empty_name_is_no_file,
         options_stand_anywhere_and_json_is_json, bad_frames_on_each_port_harm_nobody,
         zookeeper_answers_as_hbase_znodes]


def main():
    passed = failed = 0
    wanted = sys.argv[1:]
    unknown = set(wanted) - {test.__name__ for test in TESTS}
    if unknown:
        sys.exit(f"no test {', '.join(sorted(unknown))}")
    for test in TESTS:
        if wanted and test.__name__ not in wanted:
            continue
        tmp = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-cli-"))
        try:
            test(tmp)
            passed += 1
            print(f"PASS {test.__name__}")
        except Exception as e:  # a failed test is reported, the next one runs
            failed += 1
            print(f"FAIL {test.__name__}: {type(e).__name__}: {e}")
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
