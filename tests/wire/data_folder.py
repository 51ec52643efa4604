#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server's data folder: permissions, exclusive use whatever happens to the lock file, and non-regular
files, which must be reported and never block. Also warnings about settings and addresses that expose the server."""
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position

LIMIT = 300  # seconds; exceeded only by a server that waits forever
IGNORED = "rorqual.security.ignored"


def start(folder, data, *arguments, name="log"):
    return rorqual.Server(data, folder / name, *arguments)


def stop(server):
    problem = server.stop()
    assert problem is None, problem


def refused(folder, data, *arguments):
    """The output of a server that does not start."""
    try:
        server = start(folder, data, *arguments, name="refused-log")
    except RuntimeError:
        words = (folder / "refused-log").read_text()
        (folder / "refused-log").unlink()
        return words
    server.kill()
    raise AssertionError(f"started with {arguments}")


def fsck(data, *arguments):
    return subprocess.run([rorqual.BINARY, "fsck", *arguments, str(data)], capture_output=True, text=True,
                          timeout=LIMIT, check=False)


def modes(data):
    """{mode: a path} of folders and of files."""
    folders, files = {}, {}
    for base, _, names in os.walk(data):
        folders[os.stat(base).st_mode & 0o777] = base
        for name in names:
            path = os.path.join(base, name)
            files[os.stat(path).st_mode & 0o777] = path
    return folders, files


def fill(server):
    """A table with rows in a file and in the log."""
    client = hbase.Client(server)
    client.create("t", {"f": {}})
    name = client.regions("t")[0][1]
    client.data.put(name, b"a", {(b"f", b"q"): b"1"})
    client.flush(name)
    client.data.put(name, b"b", {(b"f", b"q"): b"2"})
    client.close()


def count(server):
    client = hbase.Client(server)
    try:
        return len(client.data.scan(client.regions("t")[0][1]))
    finally:
        client.close()


# ---- modes


def only_the_owner_sees_it(folder):
    for umask in (0o022, 0o000, 0o077):
        data = folder / f"new-{umask:o}"
        before = os.umask(umask)
        try:
            server = start(folder, data)
        finally:
            os.umask(before)
        fill(server)
        stop(server)
        folders, files = modes(data)
        assert set(folders) == {0o700} and set(files) == {0o600}, (folders, files)


def a_setting_lets_others_see_it(folder):
    data = folder / "shared"
    before = os.umask(0o077)
    try:
        server = start(folder, data, "-D", "rorqual.data.mode=0750")
    finally:
        os.umask(before)
    fill(server)
    stop(server)
    folders, files = modes(data)
    assert set(folders) == {0o750} and set(files) == {0o640}, (folders, files)
    for mode in ("rwx", "0888", "0070", "1777", "", "0600"):
        assert "rorqual.data.mode" in refused(folder, folder / "never", "-D", f"rorqual.data.mode={mode}")
    assert not (folder / "never").exists()


def open_folders_are_narrowed(folder):
    """Modes left by older versions or by mkdir."""
    data = folder / "older"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    server = start(folder, data)
    fill(server)
    stop(server)
    for base, names, files in os.walk(data):
        for name in names:
            os.chmod(os.path.join(base, name), 0o755)
        for name in files:
            os.chmod(os.path.join(base, name), 0o644)
    data.chmod(0o755)
    server = start(folder, data, "-D", "rorqual.data.mode=0755", name="as-before-log")
    stop(server)
    assert data.stat().st_mode & 0o777 == 0o755
    assert " WARN " not in (folder / "as-before-log").read_text()
    server = start(folder, data, name="narrowed-log")
    assert count(server) == 2
    stop(server)
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / "data").stat().st_mode & 0o777 == 0o700
    warned = [line for line in (folder / "narrowed-log").read_text().splitlines() if " WARN " in line]
    assert len(warned) == 1 and "rorqual.data.mode" in warned[0], warned
    # If the folder has foreign files, its own mode is not changed.
    data.chmod(0o755)
    (data / "data").chmod(0o755)
    (data / "somebodys").write_text("x")
    server = start(folder, data)
    stop(server)
    assert data.stat().st_mode & 0o777 == 0o755
    assert (data / "data").stat().st_mode & 0o777 == 0o700


# ---- the lock


def only_one_uses_it(folder):
    """A second server by path, by symbolic link, and by a bind mount if possible, and the tools; also after the lock
    file was deleted and created again."""
    data = folder / "locked"
    (folder / "link").symlink_to(data)
    server = start(folder, data)
    fill(server)
    names = [data, folder / "link", folder / "locked/../locked"]
    mount = folder / "bound"
    mount.mkdir()
    bound = subprocess.run(["mount", "--bind", str(data), str(mount)], capture_output=True, check=False).returncode == 0
    names += [mount] if bound else []
    try:
        for change in (lambda: None, (data / ".rorqual/lock").unlink, lambda: (data / ".rorqual/lock").write_text("1\n")):
            change()
            for name in names:
                assert "is in use by" in refused(folder, name), name
            got = fsck(data) # fsck reads a snapshot of the folder
            assert got.returncode == 0 and "nothing wrong" in got.stdout, got
            got = fsck(data, "--repair")
            assert got.returncode == 2 and "a server runs on the folder" in got.stderr, got
        (data / ".rorqual/lock").unlink()
        got = fsck(data, "--repair")
        assert got.returncode == 2 and "a server runs on the folder" in got.stderr, got
        assert not (data / ".rorqual/lock").exists(), "fsck made a lock file"
    finally:
        if bound:
            subprocess.run(["umount", str(mount)], check=True)
    assert count(server) == 2
    server.kill()
    server = start(folder, data)
    assert count(server) == 2
    stop(server)
    assert fsck(data).returncode == 0


# ---- entries that are not regular files


def replaced_by(path, kind):
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            here = os.getcwd()
            os.chdir(path.parent) # the path may be longer than a socket's name may be
            s.bind(path.name)
            os.chdir(here)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with open(path, "wb") as f:
            f.truncate(1 << 40)


def ends_and_names(folder, data, path):
    """A start, which must serve or report an error without blocking, and names the path."""
    with open(folder / "one-log", "wb") as log:
        process = subprocess.Popen([rorqual.BINARY, "server", "--data", str(data), "--http", "none", "--zk-port", "0", "--master-port",
                                    "0", "--rs-port", "0"], stdout=subprocess.PIPE, stderr=log)
    try:
        assert select.select([process.stdout], [], [], LIMIT)[0], f"{path}: the start waits"
        started = process.stdout.readline().startswith(b"rorqual ready")
        if started:
            process.terminate()
        process.wait(LIMIT)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    words = (folder / "one-log").read_text()
    assert started or path.name in words or "is in the manifest" in words, (path, words)
    return started


def nothing_is_waited_for(folder):
    """Replaces each file of a data folder in turn by a FIFO, and some by other kinds of files: the start must serve the
    folder or print one line, and fsck must end."""
    origin = folder / "origin"
    server = start(folder, origin)
    fill(server)
    stop(server)
    files = sorted(p.relative_to(origin) for p in origin.rglob("*") if p.is_file())
    some = [f for f in files if "/t/" in str(f) or f.parts[0] == ".rorqual"]
    cases = [(f, "fifo") for f in files]
    cases += [(f, kind) for f in some for kind in ("socket", "loop", "folder")]
    cases += [(f, "sparse") for f in some]
    served = 0
    for relative, kind in cases:
        data = folder / "copy"
        shutil.copytree(origin, data)
        replaced_by(data / relative, kind)
        looked = fsck(data)
        assert looked.returncode in (0, 1, 2), (relative, kind, looked)
        served += ends_and_names(folder, data, data / relative)
        shutil.rmtree(data)
    print(f"  {len(cases)} folders, {served} served")
    assert 0 < served < len(cases)


def tools_wait_for_nothing(folder):
    odd = folder / "odd"
    odd.mkdir()
    os.mkfifo(odd / "000001.wal")
    (odd / "loop").symlink_to("loop")
    with open(odd / "sparse", "wb") as f:
        f.truncate(1 << 40)
    commands = [["hfile", verb] for verb in ("meta", "blocks", "cells", "statistics", "check")]
    commands += [["wal", verb] for verb in ("list", "dump", "verify")] + [["fsck"]]
    for command in commands:
        for path in (odd / "000001.wal", odd / "loop", odd / "sparse", odd, "/dev/zero", "/dev/tty"):
            got = subprocess.run([rorqual.BINARY, *command, str(path)], capture_output=True, text=True, timeout=LIMIT,
                                 check=False, start_new_session=True)
            assert got.returncode in (0, 1, 2) and got.stdout + got.stderr, (command, path, got)


# ---- settings and addresses


def unmet_security_is_refused(folder):
    data = folder / "secure"
    asks = {
        "hbase.security.authentication": "kerberos",
        "hbase.security.authorization": "true",
        "hadoop.security.authorization": "true",
        "hbase.rpc.protection": "privacy",
        "hbase.rpc.crypto.encryption.aes.enabled": "true",
        "hbase.server.netty.tls.enabled": "TRUE",
        "hbase.regionserver.wal.encryption": "true",
        "hbase.coprocessor.master.classes": "org.apache.hadoop.hbase.security.access.AccessController",
        "hbase.coprocessor.regionserver.classes": "org.apache.ranger.authorization.hbase.RangerAuthorizationCoprocessor",
        "hbase.zookeeper.property.authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    }
    for name, value in asks.items():
        words = refused(folder, data, "-D", f"{name}={value}")
        assert f"{name}={value[:60]}" in words and f"{IGNORED}={name}" in words, words
    site = folder / "hbase-site.xml"
    site.write_text("<configuration>" + "".join(f"<property><name>{n}</name><value>{v}</value></property>"
                                                for n, v in asks.items()) + "</configuration>")
    words = refused(folder, data, "--config", str(site))
    assert not data.exists(), "a refused start made a folder"
    assert all(name in words for name in list(asks)[:4]), words
    # First all settings except one are ignored, then all.
    names = list(asks)
    assert names[3] in refused(folder, data, "--config", str(site), "-D", f"{IGNORED}={','.join(names[:3] + names[4:])}")
    server = start(folder, data, "--config", str(site), "-D", f"{IGNORED}={', '.join(names)}", name="ignored-log")
    stop(server)
    warned = [line for line in (folder / "ignored-log").read_text().splitlines() if " WARN " in line]
    assert len(warned) == 1 and IGNORED in warned[0] and names[0] in warned[0], warned
    assert "not a security setting" in refused(folder, data, "-D", f"{IGNORED}=hbase.security.autentication")


def met_security_is_accepted(folder):
    """HBase's defaults, and settings that a later value resets."""
    data = folder / "open"
    server = start(folder, data, "-D", "hbase.security.authentication=simple", "-D", "hbase.security.authorization=false",
                   "-D", "hbase.rpc.protection=authentication", "-D", "hbase.server.netty.tls.enabled=false",
                   "-D", "hbase.coprocessor.master.classes=", name="met-log")
    stop(server)
    server = start(folder, data, "-D", "hbase.security.authentication=kerberos",
                   "-D", "hbase.security.authentication=simple", name="met-log")
    stop(server)
    assert " WARN " not in (folder / "met-log").read_text()


def open_addresses_are_told_of(folder):
    data = folder / "heard"
    for address, wanted in (("127.0.0.1", 0), ("127.1.2.3", 0), ("0.0.0.0", 1), ("::1", 0), ("::", 1),
                            ("::ffff:127.0.0.1", 0)):
        if ":" in address and not has_ipv6():
            continue
        log = f"listen-{address}-log"
        server = start(folder, data, "--listen", address, "--advertise", "localhost", name=log)
        stop(server)
        told = [line for line in (folder / log).read_text().splitlines() if "without authentication" in line]
        assert len(told) == wanted and all(" WARN " in line for line in told), (address, told)


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        for test in (only_the_owner_sees_it, a_setting_lets_others_see_it, open_folders_are_narrowed, only_one_uses_it,
                     nothing_is_waited_for, tools_wait_for_nothing, unmet_security_is_refused,
                     met_security_is_accepted, open_addresses_are_told_of):
            try:
                test(folder)
                print("PASS", test.__name__, flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print("FAIL", test.__name__, repr(e)[:2000], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if not os.path.exists(rorqual.BINARY):
        sys.exit(77)
    sys.exit(main())
