# SPDX-License-Identifier: Apache-2.0
"""A memory limit for one server, which includes its page cache, and the number of the server's device reads.

A Box is a cgroup below our own one (version 1), or the nearest cgroup whose children may have a memory limit (version 2). A shell enters
the cgroup before it starts a process, so that child processes are in the cgroup, too. Reads are counted by the same cgroup (version 2:
io.stat; version 1: a cgroup of blkio with a limit too high to matter, because it counts only where a limit is set), otherwise for the
whole device. Closing a box ends the remaining processes and removes the cgroup.
"""
import os
import pathlib
import signal
import time

ROOT = pathlib.Path("/sys/fs/cgroup")
PREFIX = "rorqual-bench-"
NO_LIMIT = 1 << 40  # bytes per second; so high that it has no effect
PATIENCE = 30


class Unavailable(Exception):
    """No memory limit can be set; the message has the reason."""


def own_groups(text):
    """{controller: path} from a /proc/PID/cgroup; version 2 has the controller ''."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller.removeprefix("name=")] = path
    return found


def mounts(text):
    """{controller: mount point} from a /proc/mounts; version 2 has the controller ''."""
    found = {}
    for line in text.splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found[""] = where
        elif kind == "cgroup":
            found.update((option, where) for option in options.split(",") if option in ("memory", "blkio"))
    return found


def below(mount, path):
    """A process sees paths relative to its namespace's root; paths outside of it begin with /.. ."""
    folder = pathlib.Path(mount, path.lstrip("/"))
    return folder if ".." not in folder.parts and folder.is_dir() else pathlib.Path(mount)


def device_of(folder):
    """'major:minor' of the disk that holds the folder, or None (tmpfs, overlay)."""
    number = os.stat(folder).st_dev
    node = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not node.exists():
        return None
    node = node.resolve()
    return ((node.parent if (node / "partition").exists() else node) / "dev").read_text().strip()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def remove(folder):
    """Removes a folder, with retries while the kernel is busy with processes that have just ended."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Version1:
    name = "cgroup v1"

    def __init__(self, mounted, own):
        if "memory" not in mounted:
            raise Unavailable("v1: no memory controller is mounted")
        self.memory_parent = below(mounted["memory"], own.get("memory", "/"))
        self.blkio_parent = below(mounted["blkio"], own.get("blkio", "/")) if "blkio" in mounted else None

    def make(self, name, limit, device):
        folder = self.memory_parent / name
        folder.mkdir()
        folders, counted = [folder], None
        try:
            write(folder / "memory.limit_in_bytes", str(limit))
            swap = folder / "memory.memsw.limit_in_bytes"
            if swap.exists():
                write(swap, str(limit))
            counted = self.count(name, device)
        except BaseException:
            for made in filter(None, (folder, counted)):
                remove(made)
            raise
        return folders + ([counted] if counted else [])

    def count(self, name, device):
        if self.blkio_parent is None or device is None:
            return None
        folder = self.blkio_parent / name
        try:
            folder.mkdir()
            write(folder / "blkio.throttle.read_bps_device", f"{device} {NO_LIMIT}")
        except OSError:
            if folder.exists():
                remove(folder)
            return None
        return folder

    @staticmethod
    def reads(folders, device):
        """(number, bytes), or None if the cgroup cannot count."""
        if len(folders) < 2:
            return None
        found = []
        for name in ("io_serviced", "io_service_bytes"):
            lines = (folders[1] / f"blkio.throttle.{name}").read_text().splitlines()
            found.append(sum(int(line.split()[2]) for line in lines if line.startswith(f"{device} Read ")))
        return tuple(found)

    @staticmethod
    def peak(folders):
        return int((folders[0] / "memory.max_usage_in_bytes").read_text())

    @staticmethod
    def kills(folders):
        lines = (folders[0] / "memory.oom_control").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


class Version2:
    name = "cgroup v2"

    def __init__(self, mounted, own):
        if "" not in mounted:
            raise Unavailable("v2: not mounted")
        self.parent = self.find(pathlib.Path(mounted[""]), below(mounted[""], own.get("", "/")))

    @staticmethod
    def find(mount, folder):
        """The nearest cgroup, from our own upwards, whose children can have a memory limit. Children of a cgroup with processes, like
        ours, cannot."""
        refused = []
        while True:
            if "memory" in (folder / "cgroup.controllers").read_text().split():
                try:
                    enabled = (folder / "cgroup.subtree_control").read_text().split()
                    for controller in ("memory", "io"):
                        if controller not in enabled and (controller == "memory" or folder != mount):
                            Version2.enable(folder, controller)
                    return folder
                except OSError as why:
                    refused.append(f"{folder}: {why.strerror}")
            if folder == mount:
                raise Unavailable("v2: " + ("; ".join(refused) or "no memory controller"))
            folder = folder.parent

    @staticmethod
    def enable(folder, controller):
        try:
            write(folder / "cgroup.subtree_control", f"+{controller}")
        except OSError:
            # Without the io controller the device's counters are used.
            if controller == "memory":
                raise

    def make(self, name, limit, _device):
        folder = self.parent / name
        folder.mkdir()
        try:
            write(folder / "memory.max", str(limit))
            if (folder / "memory.swap.max").exists():
                write(folder / "memory.swap.max", "0")
        except BaseException:
            remove(folder)
            raise
        return [folder]

    @staticmethod
    def reads(folders, device):
        stat = folders[0] / "io.stat"
        if device is None or not stat.exists():
            return None
        for line in stat.read_text().splitlines():
            name, *fields = line.split()
            if name == device:
                values = dict(field.split("=") for field in fields)
                return int(values["rios"]), int(values["rbytes"])
        return 0, 0

    @staticmethod
    def peak(folders):
        for name in ("memory.peak", "memory.current"):
            if (folders[0] / name).exists():
                return int((folders[0] / name).read_text())
        return 0

    @staticmethod
    def kills(folders):
        values = dict(line.split() for line in (folders[0] / "memory.events").read_text().splitlines())
        return int(values["oom_kill"])


def find():
    """The kind of cgroups that can limit memory here."""
    mounted = mounts(pathlib.Path("/proc/mounts").read_text())
    own = own_groups(pathlib.Path("/proc/self/cgroup").read_text())
    why = []
    for version in (Version1, Version2):
        try:
            kind = version(mounted, own)
            with Box(kind, "probe", 64 << 20, "/"):
                return kind
        except Unavailable as reason:
            why.append(str(reason))
        except OSError as reason:
            why.append(f"{version.name}: {reason}")
    raise Unavailable("no memory cgroup can be made (" + "; ".join(why) + "): run as root, or with systemd-run --scope -p Delegate=yes")


class Box:
    """The cgroup of one server; a context."""

    def __init__(self, kind, name, limit, folder):
        """folder: on the device whose reads are counted."""
        self.kind, self.limit, self.device = kind, limit, device_of(folder)
        self.folders = kind.make(f"{PREFIX}{os.getpid()}-{name}", limit, self.device)

    def prefix(self):
        """The words that start a command inside this cgroup."""
        return ["sh", "-c", 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; n=$((n-1)); done; exec "$@"',
                "sh", str(len(self.folders)), *map(str, self.folders)]

    def counts_itself(self):
        return self.kind.reads(self.folders, self.device) is not None

    def reads(self):
        """(number, bytes) of reads from the device so far; those of the whole machine if the cgroup cannot count; None without a device."""
        found = self.kind.reads(self.folders, self.device)
        if found is None and self.device is not None:
            fields = pathlib.Path(f"/sys/dev/block/{self.device}/stat").read_text().split()
            found = int(fields[0]), int(fields[2]) * 512
        return found

    def peak(self):
        return self.kind.peak(self.folders)

    def kills(self):
        """The number of processes that the kernel has killed here for lack of memory."""
        return self.kind.kills(self.folders)

    def close(self):
        for folder in self.folders:
            try:
                left = (folder / "cgroup.procs").read_text().split()
            except FileNotFoundError:
                continue
            for pid in map(int, left):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            remove(folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
