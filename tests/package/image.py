#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image, run according to its configuration (user, entry point, health check) as process 1 of namespaces
with only a loopback interface: chroot and unshare replace a container runtime. `make package-test`; needs root.
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import rorqual  # pylint: disable=wrong-import-position

IMAGES = ROOT / "build-image"
SIZE_MAX = 32 << 20


class Image:
    """The archive that `make image` wrote, unpacked."""

    def __init__(self, folder):
        archives = list(IMAGES.glob("rorqual-*.tar"))
        assert len(archives) == 1, f"{archives}: run make image"
        self.size = archives[0].stat().st_size
        self.root = folder / "root"
        with tarfile.open(archives[0]) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            self.config = json.load(archive.extractfile(manifest["Config"]))["config"]
            assert len(manifest["Layers"]) == 1, manifest
            with tarfile.open(fileobj=archive.extractfile(archive.getmember(manifest["Layers"][0]))) as layer:
                layer.extractall(self.root, numeric_owner=True)
        for name in ("proc", "dev"):  # a container runtime mounts these
            (self.root / name).mkdir(exist_ok=True)

    def command(self, command):
        return ["chroot", f"--userspec={self.config['User']}", str(self.root), *command]


class Run:
    """The image's entry point as process 1; other programs enter its network."""

    def __init__(self, image, *arguments, **environment):
        self.image = image
        script = 'mount -t proc proc "$0/proc" && ip link set lo up && exec "$@"'
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c", script, str(image.root),
             *image.command([*image.config["Entrypoint"], *arguments])],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**dict(e.split("=", 1) for e in image.config["Env"]), "PATH": os.environ["PATH"], **environment})
        self.ready = self.process.stdout.readline()
        if not self.ready.startswith("rorqual ready"):
            self.process.kill()
            raise AssertionError(f"{self.ready!r} {self.process.stderr.read()!r}")
        self.pid = int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def enter(self, *command):
        return subprocess.run(["nsenter", "-t", str(self.pid), "-n", *command], capture_output=True, text=True, timeout=300, check=False)

    def health(self):
        kind, *command = self.image.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        return self.enter(*self.image.command(command))

    def client(self, verb):
        done = self.enter(sys.executable, str(ROOT / "tests/package/run.py"), verb, "0", "200")
        assert done.returncode == 0, done.stderr[-700:]

    def signal(self, name):
        subprocess.run(["kill", f"-{name}", str(self.pid)], check=True)

    def stop(self):
        self.signal("TERM")
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


def says_what_it_is(image):
    config = image.config
    assert config["User"].split(":")[0] not in ("", "0", "root"), config["User"]
    assert {port.split("/")[0] for port in config["ExposedPorts"]} == {"2181", "16000", "16010", "16020"}, config
    assert list(config["Volumes"]) == ["/data"] and config["StopSignal"] == "SIGTERM", config
    assert image.size < SIZE_MAX, f"{image.size} bytes"


def has_nothing_but_the_server(image):
    programs, writable = [], []
    for path in image.root.rglob("*"):
        mode = path.lstat()
        if stat.S_ISREG(mode.st_mode) and mode.st_mode & 0o111 and ".so" not in path.name:
            programs.append(str(path.relative_to(image.root)))
        assert stat.S_ISLNK(mode.st_mode) or not mode.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH), path
        if mode.st_uid != 0:
            writable.append(str(path.relative_to(image.root)))
    assert programs == ["usr/bin/rorqual"], programs
    assert writable == ["data"], writable
    assert stat.S_IMODE((image.root / "data").stat().st_mode) == 0o700


def serves_and_is_healthy(image):
    run = Run(image, RORQUAL_ADVERTISE="db.example.invalid")
    assert "zookeeper db.example.invalid:2181" in run.ready, run.ready
    assert (run.health().returncode, run.health().stdout) == (0, ""), run.health()
    run.client("create")
    run.client("check")
    assert ", http db.example.invalid:16010, data" in run.ready, run.ready
    page = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:16010/health/ready', timeout=60).read().decode())"
    assert run.enter(sys.executable, "-c", page).stdout.strip() == "ready"
    status = pathlib.Path(f"/proc/{run.pid}/status").read_text()
    assert "\nNSpid:\t" in status and status.split("\nNSpid:\t")[1].split("\n")[0].split()[-1] == "1", status
    code, out, err = run.stop()
    assert code == 0 and out.endswith("rorqual stopped\n"), (code, out, err)


def keeps_its_data(image):
    run = Run(image, "--log", "info")
    run.client("check")
    assert run.stop()[0] == 0


def its_tools_work_on_a_stopped_folder(image):
    done = subprocess.run(image.command(["/usr/bin/rorqual", "fsck", "--blocks", "/data"]), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "nothing wrong" in done.stdout, done


def is_unhealthy_when_it_hangs(image):
    run = Run(image)
    run.signal("STOP")
    end = time.monotonic() + 60
    for task in pathlib.Path(f"/proc/{run.pid}/task").iterdir():
        while "\nState:\tT" not in (task / "status").read_text():
            assert time.monotonic() < end, "it does not stop"
    done = run.health()
    assert done.returncode == 1 and done.stderr.startswith("rorqual ping: "), done
    run.signal("CONT")
    assert run.health().returncode == 0
    assert run.stop()[0] == 0


TESTS = [says_what_it_is, has_nothing_but_the_server, serves_and_is_healthy, keeps_its_data, its_tools_work_on_a_stopped_folder, is_unhealthy_when_it_hangs]


def main():
    report = rorqual.Report()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rorqual-image-"))
    try:
        image = Image(folder)
        for test in TESTS:
            try:
                test(image)
                report.outcome(f"image: {test.__name__}")
            except (AssertionError, OSError, subprocess.SubprocessError) as failure:
                report.outcome(f"image: {test.__name__}", str(failure).replace("\n", " | ")[-1200:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report.finish()


sys.exit(main())
