#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a container with its own systemd: the server's is installed, started by its unit, used, killed, upgraded
with data present, removed, installed again, and purged; with the library's a C program is built and run. `make package-test`;
needs root and, for the first run, the network.

The container is Debian's minimal system with the packages' dependencies and a C compiler (build-deb/base-….tar, made once), booted
by systemd-nspawn with only a loopback interface. Commands in it are run by nsenter.
"""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import rorqual  # pylint: disable=wrong-import-position
from hbase import Client  # pylint: disable=wrong-import-position

BUILD = ROOT / "build-deb"
DEADLINE = 120
FAMILY = b"cf"


def wait_for(what, condition):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {DEADLINE} s")


def packages():
    """The package as built, and the same package with a higher version number."""
    debs = [p for p in BUILD.glob("rorqual_*_amd64.deb") if "+next" not in p.name]
    assert len(debs) == 1, f"{debs}: run make deb"
    first = debs[0]
    second = first.with_name(first.name.replace("_amd64", "+next_amd64"))
    with tempfile.TemporaryDirectory(prefix="rorqual-deb-") as tree:
        subprocess.run(["dpkg-deb", "-R", first, tree], check=True)
        control = pathlib.Path(tree, "DEBIAN/control")
        control.write_text(re.sub(r"(?m)^Version: (.*)$", r"Version: \1+next", control.read_text()))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, second], check=True, stdout=subprocess.DEVNULL)
    return first, second


def library_packages():
    found = sorted(p for name in ("librorqual0", "librorqual-dev") for p in BUILD.glob(f"{name}_*_amd64.deb"))
    assert len(found) == 2, f"{found}: run make deb"
    return found


def make_base(*debs):
    """Debian's smallest system with systemd as init, the packages' dependencies and what builds a C program: its archive."""
    names = {"systemd-sysv", "dbus", "gcc", "libc6-dev", "pkg-config"}
    for package in debs:
        depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True).stdout
        names |= {re.match(r"[a-z0-9.+-]+", d.split("|")[0].strip())[0] for d in depends.split(",") if d.strip()}
    names = sorted(name for name in names if "rorqual" not in name)
    base = BUILD / f"base-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:12]}.tar"
    if not base.exists():
        partial = base.with_suffix(".part.tar")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(names)}", "bookworm", partial], check=True)
        partial.rename(base)
    return base


class Container:
    def __init__(self, folder, base):
        self.root = folder / "root"
        self.root.mkdir()
        subprocess.run(["tar", "-x", "-f", base, "-C", self.root, "--numeric-owner"], check=True)
        (self.root / "etc/machine-id").write_text("")
        self.log = folder / "console"
        self.process = None
        self.leader = None

    def boot(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network",
                                             "--console=pipe", f"--machine=rorqual-test-{os.getpid()}", "-D", self.root],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for("the container has an init", self._find_leader)
        wait_for("systemd runs", lambda: self.try_run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))

    def _find_leader(self):
        assert self.process.poll() is None, f"systemd-nspawn ended: {self.log.read_text(errors='replace')[-700:]}"
        queue = [self.process.pid]
        while queue:
            pid = queue.pop()
            try:
                queue += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                ids = re.search(r"(?m)^NSpid:(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text())[1].split()
                booted = pathlib.Path(f"/proc/{pid}/comm").read_text() == "systemd\n"
            except (OSError, TypeError):
                continue
            if len(ids) > 1 and ids[-1] == "1" and booted:
                self.leader = pid
                return True
        return False

    def try_run(self, *command):
        return subprocess.run(["nsenter", "-t", str(self.leader), "-a", "env", "-i", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive",
                               "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *map(str, command)], capture_output=True, text=True,
                              timeout=300, check=False)

    def run(self, *command):
        done = self.try_run(*command)
        assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}: {(done.stdout + done.stderr)[-700:]}"
        return done.stdout

    def install(self, *debs):
        for package in debs:
            shutil.copy(package, self.root / "root" / package.name)
        return self.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *(f"/root/{package.name}" for package in debs))

    def client(self, verb, start, count):
        """Runs this program in the container's network."""
        done = subprocess.run(["nsenter", "-t", str(self.leader), "-n", sys.executable, __file__, verb, str(start), str(count)],
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-700:]

    def main_pid(self):
        return self.run("systemctl", "show", "-P", "MainPID", "rorqual").strip()

    def wait_active(self):
        wait_for("the service is active", lambda: self.try_run("systemctl", "is-active", "rorqual").stdout == "active\n")

    def close(self):
        if self.process is not None and self.process.poll() is None:
            if self.leader is not None:
                os.kill(self.leader, signal.SIGRTMIN + 4)  # systemd's poweroff.target
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


# ---- the client, in the container's network


class Address:
    master = "127.0.0.1:16000"
    regionserver = "127.0.0.1:16020"


def client_main(verb, start, count):
    client = Client(Address)
    if verb == "create":
        client.create("kept", {"cf": {}})
    region = client.regions("kept")[0][1]
    for i in range(start, start + count):
        row = b"row%05d" % i
        if verb == "create":
            client.data.put(region, row, {(FAMILY, b"q"): b"value %d" % i})
        else:
            got = client.data.get(region, row)
            assert got == {(FAMILY, b"q"): b"value %d" % i}, (row, got)
    client.close()


# ---- steps, in order


def installs_and_starts(c, first, _second):
    c.install(first)
    c.wait_active()
    assert re.match(r"127.0.0.1:2181 answers", c.run("rorqual", "ping"))
    page = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:16010/health/ready', timeout=60).read().decode())"
    ready = subprocess.run(["nsenter", "-t", str(c.leader), "-n", sys.executable, "-c", page], capture_output=True, text=True, timeout=120, check=False)
    assert ready.stdout.strip() == "ready", ready
    status = c.run("systemctl", "status", "--no-pager", "rorqual")
    assert 'Status: "zookeeper 127.0.0.1:2181' in status, status


def user_and_folder_are_its_own(c, _first, _second):
    assert c.run("stat", "-c", "%U %G %a", "/var/lib/rorqual").split() == ["rorqual", "rorqual", "700"]
    assert c.run("stat", "-c", "%U", f"/proc/{c.main_pid()}").strip() == "rorqual"
    status = c.run("cat", f"/proc/{c.main_pid()}/status")
    for name, wanted in (("NoNewPrivs", "1"), ("CapBnd", "0" * 16), ("Seccomp", "2")):
        assert re.search(rf"(?m)^{name}:\s+{wanted}$", status), (name, status)
    assert "524288" in c.run("grep", "open files", f"/proc/{c.main_pid()}/limits")
    conffiles = sorted(c.run("dpkg-query", "-W", "-f", "${Conffiles}", "rorqual").split()[::2])
    assert conffiles == ["/etc/default/rorqual", "/etc/rorqual/cluster.env", "/etc/rorqual/rorqual.conf"], conffiles


def unit_is_valid(c, _first, _second):
    done = c.try_run("systemd-analyze", "verify", "--man=no", "rorqual.service")
    assert done.returncode == 0 and "rorqual" not in done.stderr, done
    score = float(re.search(r"exposure level for rorqual.service: ([0-9.]+)", c.run("systemd-analyze", "security", "--no-pager", "rorqual"))[1])
    assert score < 2, score


def the_clusters_service_waits_for_its_place(c, _first, _second):
    """It is installed and not enabled. A start without a place, or without ZooKeeper's library, is refused with the reason."""
    done = c.try_run("systemd-analyze", "verify", "--man=no", "rorqual-cluster.service")
    assert done.returncode == 0 and "rorqual" not in done.stderr, done
    assert c.try_run("systemctl", "is-enabled", "rorqual-cluster").stdout == "disabled\n"
    done = c.try_run("rorqual", "server", "--cluster", "", "--config", "/etc/rorqual/rorqual.conf")
    assert done.returncode == 1 and "is not valid" in done.stderr, done
    secret = "head -c 32 /dev/urandom | base64 >/root/secret; chmod 600 /root/secret"
    c.run("sh", "-c", secret)
    done = c.try_run("rorqual", "server", "--cluster", "zk=127.0.0.1:1/hbase,store=/root/store,secret=/root/secret", "--rs-port", "0", "--master-port", "0")
    assert done.returncode == 1 and "libzookeeper-mt2" in done.stderr, done
    c.run("rm", "-rf", "/root/secret", "/root/store")


HUGE = 2 << 20


def code_is_on_huge_pages_all_the_same(c, _first, _second):
    """Under the unit's options the program can still move its code to huge pages, if the kernel has them."""
    if "[never]" in pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        return
    maps = c.run("cat", f"/proc/{c.main_pid()}/maps")
    code = [(int(end, 16) - int(start, 16), file) for start, end, file in re.findall(r"(?m)^(\w+)-(\w+) r-xp \S+ \S+ \S+ *(\S*)$", maps)]
    assert any(file == "" and size >= HUGE and size % HUGE == 0 for size, file in code), maps
    assert not any(file == "/usr/bin/rorqual" and size >= HUGE for size, file in code), maps  # less than a huge page may stay


def serves(c, _first, _second):
    c.client("create", 0, 500)
    c.client("check", 0, 500)
    c.run("rorqual", "bench", "--operations", "200", "--seconds", "60", "--records", "200", "--verify", "get")


def blocks_of_page(kind):
    """The commands of docs/operate/install.md with this mark. A block without a mark raises."""
    blocks = re.findall(r"(?:<!-- test: (\w+) -->\n)?```sh\n(.*?)```", (ROOT / "docs/operate/install.md").read_text(), re.S)
    assert all(of in ("package", "installed") for of, _ in blocks), blocks
    return [text for of, text in blocks if of == kind]


def page_holds(c, _first, _second):
    """The commands of docs/operate/install.md, in order."""
    blocks = blocks_of_page("package")
    assert len(blocks) >= 4, blocks
    for block in blocks:
        c.run("sh", "-e", "-c", block)
    assert (c.root / "srv/rorqual/hbase.id").exists()
    shutil.rmtree(c.root / "etc/systemd/system/rorqual.service.d")
    c.run("systemctl", "daemon-reload")


def settings_count(c, _first, _second):
    (c.root / "etc/rorqual/rorqual.conf").write_text("rorqual.advertise=localhost\n")
    (c.root / "etc/default/rorqual").write_text('RORQUAL_ARGS="--log info"\n')
    c.run("systemctl", "restart", "rorqual")
    assert "master localhost:16000" in c.run("rorqual", "ping", "--same-host")
    assert "--log info" in c.run("cat", f"/proc/{c.main_pid()}/cmdline").replace("\0", " ")
    c.client("check", 0, 500)


def comes_back_after_a_kill(c, _first, _second):
    pid = c.main_pid()
    c.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", "rorqual")
    wait_for("another process", lambda: c.main_pid() not in (pid, "0"))
    c.wait_active()
    c.client("check", 0, 500)


def watchdog_restarts_a_server_that_hangs(c, _first, _second):
    drop_in = c.root / "etc/systemd/system/rorqual.service.d/test.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n")
    c.run("systemctl", "daemon-reload")
    c.run("systemctl", "restart", "rorqual")
    pid = c.main_pid()
    c.run("systemctl", "kill", "--kill-who=main", "--signal=STOP", "rorqual")
    wait_for("another process", lambda: c.main_pid() not in (pid, "0"))
    c.wait_active()
    assert "Watchdog timeout" in c.run("journalctl", "-u", "rorqual", "--no-pager")
    c.client("check", 0, 500)
    shutil.rmtree(drop_in.parent)
    c.run("systemctl", "daemon-reload")
    c.run("systemctl", "restart", "rorqual")


def upgrades_over_data(c, _first, second):
    pid = c.main_pid()
    c.install(second)
    assert c.run("dpkg-query", "-W", "-f", "${Version}", "rorqual").endswith("+next")
    c.wait_active()
    assert c.main_pid() != pid, "the old one still runs"
    assert (c.root / "etc/rorqual/rorqual.conf").read_text() == "rorqual.advertise=localhost\n"
    c.client("check", 0, 500)


def removal_leaves_settings_and_data(c, _first, second):
    c.run("apt-get", "remove", "-y", "-q", "rorqual")
    assert c.try_run("rorqual", "version").returncode != 0
    assert c.try_run("systemctl", "is-active", "rorqual").stdout != "active\n"
    assert (c.root / "etc/rorqual/rorqual.conf").exists() and (c.root / "var/lib/rorqual/hbase.id").exists()
    assert "stopped" in c.run("journalctl", "-u", "rorqual", "--no-pager", "-n", "5")
    c.install(second)
    c.wait_active()
    c.client("check", 0, 500)


def purge_leaves_data(c, _first, second):
    out = c.run("apt-get", "purge", "-y", "-q", "rorqual")
    assert "the data in /var/lib/rorqual stays" in out, out
    for gone in ("etc/rorqual", "etc/default/rorqual", "usr/bin/rorqual", "etc/systemd/system/multi-user.target.wants/rorqual.service"):
        assert not os.path.lexists(c.root / gone), gone
    c.install(second)
    c.wait_active()
    c.client("check", 0, 500)


def purge_without_data_leaves_nothing(c, _first, _second):
    c.run("apt-get", "remove", "-y", "-q", "rorqual")
    shutil.rmtree(c.root / "var/lib/rorqual")
    (c.root / "var/lib/rorqual").mkdir()
    out = c.run("apt-get", "purge", "-y", "-q", "rorqual")
    assert "stays" not in out and not (c.root / "var/lib/rorqual").exists(), out


def runs_from_make_install(c, _first, _second):
    """The server of `make install` as a service, by the page's commands, in the tree's folder."""
    assert not (c.root / "usr/bin/rorqual").exists(), "the package is still installed"
    done = subprocess.run(["make", "-s", "install", "PREFIX=/usr/local", f"DESTDIR={c.root}"], cwd=ROOT, capture_output=True, text=True,
                          timeout=1800, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-700:]
    shutil.copytree(ROOT / "packaging", c.root / "src/packaging")
    block, = blocks_of_page("installed")
    c.run("sh", "-e", "-c", f"cd /src\n{block}")
    c.wait_active()
    c.client("create", 0, 500)
    c.client("check", 0, 500)
    c.run("systemctl", "stop", "rorqual")


def library_builds_a_program(c, _first, _second):
    """On a system without the server: an example is built as its first comment says, and runs with the library alone."""
    assert not (c.root / "usr/bin/rorqual").exists(), "the server is still installed"
    library, development = library_packages()[::-1]
    assert library.name.startswith("librorqual0"), library
    c.install(library, development)
    version = c.run("dpkg-query", "-W", "-f", "${Version}", "librorqual0").split("-")[0]
    assert c.run("pkg-config", "--modversion", "rorqual").strip() == version
    for page in ("rorqual", "rorqual_filters", "rorqual_rowkey"):
        assert (c.root / f"usr/share/man/man3/{page}.3.gz").exists(), page
    shutil.copy(ROOT / "examples/blog.c", c.root / "root/blog.c")
    c.run("sh", "-e", "-c", "cc -Wall -Wextra -Werror /root/blog.c $(pkg-config --cflags --libs rorqual) -o /root/blog")
    assert "librorqual.so.0 => /lib/" in c.run("ldd", "/root/blog")
    assert c.run("/root/blog", "file:/root/db").splitlines()[-1] == "849 posts in December"
    c.run("apt-get", "remove", "-y", "-q", "librorqual-dev")
    assert not (c.root / "usr/include/rorqual").exists()
    assert c.run("/root/blog", "memory:").splitlines()[-1] == "849 posts in December"
    c.run("apt-get", "purge", "-y", "-q", "librorqual0")
    assert c.try_run("/root/blog", "memory:").returncode == 127
    assert not list((c.root / "usr/lib").rglob("*rorqual*")), "the library is left"


STEPS = [installs_and_starts, user_and_folder_are_its_own, unit_is_valid, the_clusters_service_waits_for_its_place, code_is_on_huge_pages_all_the_same, serves, page_holds, settings_count,
         comes_back_after_a_kill, watchdog_restarts_a_server_that_hangs, upgrades_over_data, removal_leaves_settings_and_data,
         purge_leaves_data, purge_without_data_leaves_nothing, library_builds_a_program, runs_from_make_install]


def main():
    report = rorqual.Report()
    first, second = packages()
    base = make_base(first, *library_packages())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-package-"))
    container = Container(folder, base)
    try:
        container.boot()
        for step in STEPS:
            try:
                step(container, first, second)
                report.outcome(f"package: {step.__name__}")
            except (AssertionError, OSError, subprocess.SubprocessError) as failure:
                report.outcome(f"package: {step.__name__}", str(failure).replace("\n", " | ")[-1500:])
    finally:
        container.close()
        shutil.rmtree(folder, ignore_errors=True)
        second.unlink()
    return report.finish()


if len(sys.argv) > 1:
    client_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
else:
    sys.exit(main())
