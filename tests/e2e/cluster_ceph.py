#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of `rorqual server --cluster` whose logs, manifests and tenures are in a real Ceph (tools/ceph: one monitor, three OSDs
on files, so that killed OSDs keep their data), and whose HFiles are in a folder. Runs the tests of cluster.py, and further ones:
OSDs killed while rows are put, and together with servers; all servers and OSDs killed; storage that does not respond; refused
stores.

    cluster_ceph.py           FILES=cephfs: HFiles are in its CephFS, which nobody mounts; PUTS=n rows (default 300); SESSION_MS=MS,
                              TESTS='NAME NAME', RORQUAL=FILE, JAVA='Blog Reads': as for cluster.py

Ends with 'N passed, N failed'; with 77 and the reason where Ceph's packages or the plug-in are missing.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("SESSION_MS", "5000")  # Ceph's daemons keep a small machine busy
import cluster  # noqa: E402
import cluster_source  # noqa: E402
import cluster_tool  # noqa: E402
import peer  # noqa: E402
from cluster import Process, others, read_all, refused, restart  # noqa: E402
from membership import DEADLINE, until  # noqa: E402
from rorqual import ROOT, Report  # noqa: E402

TOOL = ROOT / "tools/ceph"
OSDS = ("osd.0", "osd.1", "osd.2")
cluster.PUTS = int(os.environ.get("PUTS", "300"))  # each put waits for three OSDs
IN_CEPHFS = os.environ.get("FILES", "folder") == "cephfs"
STANDSTILL = 6  # seconds; an operation's limit is 2
# Tests of cluster.py that change or name the shared folder, and those that do not concern storage.
LEFT_OUT = {"a_fence_that_fails_is_logged_once", "wrong_configurations_are_refused", "roots_are_not_mixed_up",
            "a_status_that_nobody_gives_is_an_error", "what_is_not_safe_is_refused", "a_fence_does_not_wait_for_ended_logs"}


class Ceph:
    def __init__(self, folder):
        self.dir = folder
        self.conf, self.users_conf = folder / "ceph.conf", folder / "users.conf"

    def tool(self, *words):
        done = subprocess.run([TOOL, words[0], self.dir, *words[1:]], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"tools/ceph {words[0]}: {done.stderr.strip()}"

    def up(self):
        self.tool("up", "--bluestore", *(["--cephfs"] if IN_CEPHFS else []))

    def kill(self, name):
        self.tool("kill", name)

    def admin(self, *words, program="ceph"):
        done = subprocess.run([program, "-c", self.conf, *words], capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr.strip()}"
        return done.stdout

    def make_user(self):
        """Makes a user with the capabilities named in docs/cluster/README.md, and a ceph.conf for it."""
        keyring = self.dir / "keyrings/client.rorqual"
        osd, mds = "allow rw pool=rorqual", []
        if IN_CEPHFS:
            osd, mds = osd + ", allow rw tag cephfs data=cephfs", ["mds", "allow rw fsname=cephfs path=/"]
        self.admin("auth", "get-or-create", "client.rorqual", "mon", "allow r", "osd", osd, *mds, "-o", str(keyring))
        text = self.conf.read_text()
        assert text.count("keyrings/client.admin") == 1, text
        self.users_conf.write_text(text.replace("keyrings/client.admin", "keyrings/client.rorqual"))

    def pids(self, names=OSDS):
        return [int((self.dir / "pids" / name).read_text().split()[0]) for name in names]


class World(cluster.World):
    def __init__(self, folder, ceph):
        self.ceph = ceph
        super().__init__(folder)
        self.files = "cephfs:/rorqual" if IN_CEPHFS else self.folder / "files"

    def store_text(self, pool="rorqual", **parts):
        parts = {"conf": self.ceph.users_conf, "user": "client.rorqual", "files": self.files} | parts
        return f"store=rados:{pool}," + ",".join(f"{key}={value}" for key, value in parts.items())

    def keys_of(self, name):
        if f"set/{name}" not in self.ceph.admin("--pool", "rorqual", "--namespace", "rorqual", "ls", program="rados").splitlines():
            return []
        return self.ceph.admin("--pool", "rorqual", "--namespace", "rorqual", "listomapkeys", f"set/{name}", program="rados").split()

    def place(self, secret=None, **parts):
        return f"zk=127.0.0.1:{self.keeper.port}/hbase,{self.store_text(**parts)},secret={secret or self.secret}"


class Osd:
    """An OSD that can be killed like a server of cluster.py."""

    def __init__(self, world, name):
        self.world, self.name = world, name

    def kill(self):
        self.world.ceph.kill(self.name)


def logs_and_manifests_are_in_the_pool(world):
    names = world.ceph.admin("--pool", "rorqual", "--namespace", "rorqual", "ls", program="rados").splitlines()
    for process in world.processes:
        assert f"tenure/{process.name}" in names, (process.name, names)
        assert any(n.startswith(f"log/{process.name}/") for n in names), (process.name, names)
    assert {"object/cluster", "object/start-code"} <= set(names) and any(n.startswith("object/region:") for n in names), names
    if IN_CEPHFS:
        world.shell("flush 't'\n")
        assert world.ceph.admin("--pool", "cephfs_data", "ls", program="rados").split(), "no file has bytes"
        assert not (world.folder / "files").exists()
        return
    folder = {path.name for path in world.files.iterdir()}
    assert "data" in folder and "shared" not in folder and not (world.files / ".rorqual/wal").exists(), folder


def rows_put_while_a_server_is_killed_are_at_the_peer(world):
    """The peer is away at first, so that the rest of the killed server's log is in the pool and is shipped by another server."""
    with cluster_source.sink_of(world, "away") as sink:
        sink.kill()
        world.shell("".join(f"put 'away', '{n}a', 'f:q', '{n}'\n" for n in range(10)))
        killed = next(p for p in others(world, world.wait_for_master()) if p.ports[0] in cluster.regions_of(world, "away").values())
        assert killed.name in world.keys_of("queues")
        cluster.kill_and_wait(world, killed)
        world.shell("".join(f"put 'away', '{n}b', 'f:q', '{n}'\n" for n in range(10)))
        sink.start()
        assert len(cluster_source.arrives(world, sink, "away")) == 20
        until(lambda: killed.name not in world.keys_of("queues"), "the queues of the killed server are removed")
        restart(world, killed)


def rows_put_while_osds_are_killed_are_there(world):
    """Each row exists once, and no server ends."""
    for i, name in enumerate(OSDS):
        cluster.put_while_killed(world, f"o{i}", lambda name=name: Osd(world, name))
        world.ceph.up()
        read_all(world)


def rows_put_while_the_metadata_server_is_killed_are_there(world):
    """Flushes wait for the metadata server; no row is lost."""
    cluster.put_while_killed(world, "md", lambda: Osd(world, "mds.a"))
    flush = threading.Thread(target=lambda: world.shell("flush 'md'\nflush 't'\n"))
    flush.start()
    world.ceph.up()
    flush.join(4 * DEADLINE)
    assert not flush.is_alive(), "a flush does not return"
    read_all(world)
    assert all(p.runs() for p in world.processes)


def a_server_and_an_osd_are_killed_at_once(world):
    """The server's log is read from two copies."""
    table, before = "so", others(world, world.wait_for_master())[0]

    class Both:
        def kill(self):
            before.kill()
            world.ceph.kill("osd.1")
    cluster.put_while_killed(world, table, Both)
    until(lambda: world.master().said(f"{before.name} is fenced"), "it is fenced")
    read_all(world)
    world.ceph.up()
    restart(world, before)


def the_master_is_killed_while_an_osd_is_away(world):
    world.ceph.kill("osd.2")
    killed = world.wait_for_master()
    killed.kill()
    assert world.wait_for_master() is not killed
    read_all(world)
    world.shell("create 'ma', 'f'\nput 'ma', 'a', 'f:q', '1'\nflush 'ma'\nput 'ma', 'b', 'f:q', '1'\n")
    world.ceph.up()
    assert "2 row(s)" in world.shell("count 'ma'\n")
    world.shell("disable 'ma'\ndrop 'ma'\n")
    restart(world, killed)


def storage_that_stands_still_loses_nothing(world):
    """Nothing is acknowledged meanwhile, and no server has to end: the tenures remain valid."""
    pids = world.ceph.pids()
    written = []
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        writer = threading.Thread(target=lambda: written.append(world.shell("put 't', 'still', 'f:q', 'yes'\n")))
        begin = time.monotonic()
        writer.start()
        until(lambda: time.monotonic() > begin + STANDSTILL, "it is over")
        assert not written, "a put was acknowledged without storage"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    writer.join(2 * DEADLINE)
    assert written, "the put does not return"
    assert "value=yes" in world.shell("get 't', 'still'\n")
    read_all(world)
    assert all(p.runs() for p in world.processes)


def all_is_there_after_servers_and_osds_were_killed(world):
    world.shell("create 'k', 'f', SPLITS => ['c', 'g', 'k', 'o', 's', 'w']\n")
    cluster.put_rows(world, "k")
    for process in world.processes:
        process.kill()
    for name in OSDS:
        world.ceph.kill(name)
    until(lambda: not world.servers(), "the sessions have ended")
    world.ceph.up()
    ports = [p.ports for p in world.processes]
    world.processes = [Process(world, p) for p in ports]
    world.wait_for_master()
    read_all(world)
    cluster.all_rows_of(world, "k")
    for table in world.full_tables:
        assert f"{cluster.PUTS} row(s)" in world.shell(f"count '{table}'\n")


def servers_that_start_at_once_make_one_cluster(world):
    """Starts on a new namespace and folder; another folder is refused."""
    files, root = world.folder / "new-files", f"zk=127.0.0.1:{world.keeper.port}/new"
    place = f"{root},{world.store_text('rorqual/new', files=files)},secret={world.secret}"
    ports = peer.free_ports(6)
    outs = [open(world.folder / f"new-{i}.log", "wb") for i in range(3)]
    started = [subprocess.Popen([cluster.RORQUAL, "server", "--cluster", place, "--rs-port", str(ports[2 * i]), "--master-port", str(ports[2 * i + 1]),
                                 "--http", "none", "-D", f"zookeeper.session.timeout={cluster.SESSION_MS}"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
               for i, out in enumerate(outs)]
    try:
        until(lambda: all(b"rorqual ready: cluster" in pathlib.Path(out.name).read_bytes() for out in outs), "all are ready")
        assert len(list((files / ".rorqual").glob("cluster-*"))) >= 1
        for other in (world.folder / "new-other", world.folder / "new-empty"):
            if "empty" in other.name:
                other.mkdir()
            out = refused(world, place.replace(str(files), str(other)))
            assert "Is its file system mounted" in out and (not other.exists() or not list(other.iterdir())), out
    finally:
        for process in started:
            process.kill()
            process.wait()


def make_pools(ceph):
    if "single" not in ceph.admin("osd", "pool", "ls").split():
        ceph.admin("osd", "pool", "create", "single", "1", "1", "replicated", "--size", "2")
        ceph.admin("osd", "pool", "set", "single", "min_size", "1")
        ceph.admin("osd", "pool", "create", "coded", "1", "1", "erasure")


def wrong_stores_are_refused(world):
    make_pools(world.ceph)
    files = world.folder / "unused"
    for parts, text in [({"pool": "nowhere"}, 'there is no pool "nowhere"'), ({"pool": "single"}, "has min_size 1"),
                        ({"pool": "coded"}, "is erasure-coded"), ({"conf": "/nowhere/ceph.conf"}, "cannot read /nowhere/ceph.conf"),
                        ({"user": "client.nobody"}, "cannot connect to the monitors of"), ({"user": "nobody"}, "'nobody' is not client.NAME"),
                        ({"pool": "a b"}, "bad name of a pool")]:
        out = refused(world, world.place(**({"files": files} | parts)))
        assert text in out, (parts, out)
        assert not files.exists(), parts
    out = refused(world, f"zk=127.0.0.1:{world.keeper.port}/hbase,store=rados:rorqual,secret={world.secret}")
    assert "files=DIR is missing" in out, out
    alone = world.folder / "program"
    alone.mkdir()
    shutil.copy(cluster.RORQUAL, alone / "rorqual")
    ports = peer.free_ports(2)
    done = subprocess.run([alone / "rorqual", "server", "--cluster", world.place(files=files), "--rs-port", str(ports[0]), "--master-port",
                           str(ports[1])], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 1 and f"there is no plug-in for Ceph, rorqual-rados.so, in {alone}" in done.stderr, done
    read_all(world)


def files_and_pools_are_not_mixed_up(world):
    """Another cluster's files or pool, a standalone server's folder, and a standalone server on the cluster's files."""
    zk, secret = f"zk=127.0.0.1:{world.keeper.port}/hbase", f"secret={world.secret}"
    files, alone = world.folder / "others", world.folder / "alone"
    out = refused(world, f"{zk},{world.store_text('rorqual/other', files=files)},{secret}")
    assert "but the storage belongs to cluster" in out, out
    out = refused(world, world.place(files=files))
    assert "the folder does not belong to cluster" in out, out
    out = refused(world, f"{zk},{world.store_text('rorqual/third')},{secret}")
    assert "has the files of a cluster" in out, out
    assert "or has the files of a cluster in Ceph" in refused(world, f"{zk},store={world.files},{secret}")
    ports = [x for n in ("--rs-port", "--master-port", "--zk-port") for x in (n, "0")]
    server = subprocess.Popen([cluster.RORQUAL, "server", "--data", str(alone), "--http", "none", *ports], stdout=subprocess.PIPE, text=True)
    assert "ready" in server.stdout.readline()
    server.terminate()
    server.communicate(timeout=DEADLINE)
    out = refused(world, f"{zk},{world.store_text('rorqual/fourth', files=alone)},{secret}")
    assert "is the data folder of a standalone server" in out, out
    done = subprocess.run([cluster.RORQUAL, "server", "--data", str(world.files), "--http", "none", *ports], capture_output=True, text=True,
                          timeout=DEADLINE, check=False)
    assert done.returncode == 1 and "has the files of a cluster" in done.stderr, done
    done = subprocess.run([cluster.RORQUAL, "fsck", str(world.files)], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode != 0 and "has the files of a cluster" in done.stdout + done.stderr, done
    read_all(world)


class Tool(cluster_tool.Tool):
    """tools/cluster with its own Ceph; one server, for a small machine."""

    def __init__(self, folder, *more):  # pylint: disable=super-init-not-called
        self.rorqual, self.path, self.data = cluster.RORQUAL, folder / "tool.log", folder / "t"
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([ROOT / "tools/cluster", self.data, "--servers", "1", *more], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, env=dict(os.environ, RORQUAL=self.rorqual))

    def wait_ready(self):
        """A new Ceph takes long on a busy machine; tools/ceph and tools/cluster have their own time limits."""
        while cluster_tool.READY not in self.said() and self.process.poll() is None:
            time.sleep(0.1)
        assert cluster_tool.READY in self.said(), self.said()
        self.zk = re.search(r"ZooKeeper  (\S+)", self.said())[1]
        return self

    def ceph_runs(self):
        done = subprocess.run([TOOL, "status", self.data / "ceph"], capture_output=True, text=True, timeout=DEADLINE, check=False)
        return " pid " in done.stdout


def one_command_gives_a_cluster_on_ceph(folder):
    tool = Tool(folder, "--store", "ceph")
    try:
        tool.wait_ready()
        tool.shell("create 't', 'f'\nput 't', 'a', 'f:q', '1'\n")
        assert tool.ceph_runs() and not (tool.data / "store").exists()
        tool.process.send_signal(signal.SIGINT)
        assert tool.process.wait(timeout=4 * DEADLINE) == 0, tool.said()
        assert not tool.ceph_runs(), "Ceph's daemons run on"
        other = Tool(folder, "--store", "folder")
        assert other.process.wait(timeout=DEADLINE) == 1 and "has a cluster whose store is in Ceph" in other.said(), other.said()
        tool = Tool(folder).wait_ready()  # without --store, the cluster's store in Ceph is found
        assert "1 row(s)" in tool.shell("count 't'\n")
    finally:
        tool.kill()  # ends like a crash
        until(lambda: not tool.ceph_runs(), "Ceph's daemons end with it")


IN_FOLDER_ONLY = [files_and_pools_are_not_mixed_up, servers_that_start_at_once_make_one_cluster]
IN_CEPHFS_ONLY = [rows_put_while_the_metadata_server_is_killed_are_there]
OWN = [logs_and_manifests_are_in_the_pool, rows_put_while_a_server_is_killed_are_at_the_peer, rows_put_while_osds_are_killed_are_there, a_server_and_an_osd_are_killed_at_once,
       the_master_is_killed_while_an_osd_is_away, storage_that_stands_still_loses_nothing, all_is_there_after_servers_and_osds_were_killed,
       wrong_stores_are_refused] + (IN_CEPHFS_ONLY if IN_CEPHFS else IN_FOLDER_ONLY)


def missing():
    absent = [tool for tool in ("ceph-mon", "ceph-osd", "ceph") if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found: tools/setup cluster installs Ceph"
    plugin = pathlib.Path(cluster.RORQUAL).resolve().parent / "../vfs/rorqual-rados.so"
    return None if plugin.exists() else f"{plugin.resolve()} is not built: it needs librados-dev and libcephfs-dev (tools/setup cluster)"


def run(report, folder, ceph):
    ceph.up()
    ceph.make_user()
    world = World(folder, ceph)
    try:
        tests = [test for test in cluster.TESTS if test.__name__ not in LEFT_OUT] + OWN
        if os.environ.get("JAVA"):
            tests.insert(1, cluster.java_programs_pass)
        report.run("cluster_ceph", world, [cluster.watched(test) for test in tests], os.environ.get("TESTS", "").split())
    finally:
        world.stop()
        if report.failed > 0 or report.passed == 0:
            world.keep_logs()


def main():
    absent = missing()
    if absent:
        print(f"skipped: {absent}")
        return 77
    peer.orderly()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rq-cc-") as folder:
        report.run("cluster_ceph", pathlib.Path(folder), [one_command_gives_a_cluster_on_ceph], os.environ.get("TESTS", "").split())
        ceph = Ceph(pathlib.Path(folder) / "c")
        try:
            run(report, folder, ceph)
        finally:
            if (ceph.dir / "settings.json").exists():
                ceph.tool("down")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
