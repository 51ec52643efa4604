# SPDX-License-Identifier: Apache-2.0
"""Where `rorqual shell` works, and how it ends: `memory:`, `file:`, a cluster; options and settings, exit codes, output that is lost,
ZooKeeper, tools of operators. own_shell.py runs the tests."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

from rorqual import BINARY, Server
from shell import FOLDER
from shell_world import DEADLINE, shell, with_server


def memory_and_folder(folder):
    """`memory:` is empty at each start; `file:` keeps its rows, and a server can open the folder afterwards."""
    put = "create 't', 'f'\nput 't', 'r', 'f:q', 'v'\n"
    for _ in range(2):
        if "1 row(s)" not in shell("-n", "memory:", text=put + "scan 't'\n").stdout:
            return "memory: has no row"
    where = f"file:{folder / 'local'}"
    if shell("-n", where, text=put).returncode != 0:
        return "cannot write"
    if "value=v" not in shell("-n", where, text="get 't', 'r'\n").stdout:
        return "the row is gone"
    server = Server(folder / "local", folder / "local.log")
    seen = shell("-n", "--zk", server.zk, text="get 't', 'r'\n").stdout
    server.kill()
    return None if "value=v" in seen else "a server does not have the row"


def closed_output_does_not_reach_the_folder(folder):
    """With closed standard streams, no file of the folder gets their descriptors: nothing that is printed damages it."""
    place = folder / "closed"
    text = "create 't', 'f'\n" + "".join(f"put 't', 'r{i}', 'f:q', 'v'\n" for i in range(200)) + "flush 't'\n"
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        subprocess.run(["sh", "-c", f"\"$0\" shell file:{place} {closed}", BINARY], input=text, text=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=DEADLINE, check=False)
        sound = subprocess.run([BINARY, "fsck", "--blocks", str(place)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if sound.returncode != 0:
            return f"{closed}: {sound.stdout}"
    return None


def a_script_that_cannot_be_read_is_an_error(folder):
    for options in (["-n"], [], ["--ruby"]):
        done = shell(*options, "memory:", str(folder))
        if done.returncode != 1 or not re.search(f"(IOError: {folder}: Is a directory|LoadError: no such file to load -- {folder})", done.stdout + done.stderr):
            return f"{options}: {done}"
    return None


def folder_in_memory(shell_process):
    """The folder of memory: of a process that has opened it."""
    for at in pathlib.Path(f"/proc/{shell_process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if re.search(r"/rorqual-memory-\w{6}$", os.readlink(at)):
                return pathlib.Path(os.readlink(at))
    raise AssertionError("no folder in memory")


def a_killed_shell_leaves_no_memory(_):
    """The next shell removes the folder, and not those of shells that run."""
    processes = []
    try:
        for _i in range(2):
            processes.append(subprocess.Popen([BINARY, "shell", "-n", "memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            processes[-1].stdin.write("create 't', 'f'; puts 'ready'\n")
            processes[-1].stdin.flush()
            while "ready" not in (line := processes[-1].stdout.readline()):
                if not line:
                    return "a shell has ended"
        running, killed = processes
        folders = [folder_in_memory(process) for process in processes]
        killed.kill()
        killed.wait()
        begun = time.monotonic()
        while folders[1].exists() and time.monotonic() < begun + DEADLINE:  # another shell may be removing it
            if "=> 0" not in shell("-n", "memory:", text="list.length\n").stdout:
                return "a third shell fails"
        if folders[1].exists():
            return f"{folders[1]} is left"
        said, _err = running.communicate("put 't', 'r', 'f:q', 'v'; flush 't'; puts count('t')\n")
        if running.returncode != 0 or not re.search("(?m)^1$", said):
            return f"the shell that runs: {said}"
        return f"{folders[0]} is left" if folders[0].exists() else None
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def exit_codes(_):
    for text, options, code in [("exit 7\n", ["-n"], 7), ("exit 7\n", [], 0), ("get 'none', 'r'\n", ["-n"], 1),
                                ("get 'none', 'r'\n", [], 0), ("1 +\n", ["-n"], 1)]:
        got = shell(*options, "memory:", text=text).returncode
        if got != code:
            return f"{text!r} with {options}: {got} instead of {code}"
    nowhere = shell("-n", "file:", text="list\n")
    if nowhere.returncode != 2 or "file: needs a folder" not in nowhere.stderr:
        return f"file: without a folder: {nowhere}"
    nobody = shell("-n", "--zk", "127.0.0.1:1", text="list\n")
    return None if nobody.returncode == 1 and "127.0.0.1" in nobody.stderr else f"without a server: {nobody}"


def tools_of_operators(folder):
    """--ruby: a script is run as a whole without echo; exit codes; classes besides the client's; an Admin of another cluster."""
    server, peer = (Server(folder / name, folder / f"{name}.log") for name in ("tool", "tool-peer"))
    key = f"{peer.zk}:/hbase"
    try:
        shell("-n", "--zk", server.zk, text="create 'a', 'f', SPLITS => ['m']\ncreate 'b', {NAME => 'g', VERSIONS => 3}\n")
        names = re.search(r"127\.0\.0\.1,(\d+),", shell("-n", "--zk", server.zk, text="list_liveservers\n").stdout)
        for arguments, wanted, code, error in [
                (["regions"], "4\n", 0, ""), (["-t", "b", "regions"], "1\n", 0, ""), (["regions", "--table=none"], "0\n", 4, ""),
                (["drain"], "", 0, ""), (["draining"], "1\n", 0, ""), (["undrain"], "", 0, ""), (["draining"], "0\n", 0, ""),
                (["copy", key, "a,none,b"], "a: copied\nnone: none\nb: copied\n", 0, ""), (["copy", key, "b"], "b: exists\n", 0, ""),
                (["copy", "127.0.0.1:1:/hbase", "b"], "", 1, "cannot connect to 127.0.0.1:1"),
                (["rows", key], "", 1, "runs in a shell of its own"), (["abort"], "", 1, "aborted"), ([], "", 3, "it's short"),
                (["fail"], "", 1, "TableNotFoundException"), (["--nope"], "", 1, "invalid option: --nope"),
                (["stop", f"127.0.0.1:{names.group(1)}"], "", 0, "")]:
            done = shell("--zk", server.zk, "--ruby", str(FOLDER / "operator_tool.rb"), *arguments)
            if done.stdout != wanted or done.returncode != code or error not in done.stderr or not error and done.stderr:
                return f"{arguments}: {done}"
        if "VERSIONS => '3'" not in shell("-n", "--zk", peer.zk, text="describe 'b'\n").stdout:
            return "the copy has other attributes"
        return None if shell("--ruby").returncode == 2 else "--ruby without a script"
    finally:
        server.kill()
        peer.kill()


def options_follow_the_place(folder):
    """memory: and file: may precede options; arguments after the script belong to the script, except -DKEY=VALUE."""
    script = folder / "words.rb"
    script.write_text("p ARGV, @shell.hbase.configuration.get('x')\nexit 5\n")
    for arguments in (["memory:", "-y", "-n"], ["-n", "memory:", "-y"], ["-y", f"file:{folder / 'words'}", "-n"]):
        done = shell(*arguments, str(script), "one", "-Dx=y", "-n")
        if done.returncode != 5 or '["one", "-n"]\n"y"\n' not in done.stdout:
            return f"{arguments}: {done}"
    return None


def settings_say_where_the_cluster_is(folder):
    """-D quorum, port and parent, in any order; of several ZooKeepers the first that responds; unknown settings are refused."""
    server = Server(folder / "where", folder / "where.log")
    port = server.zk.rpartition(":")[2]
    quorum, client_port = "-Dhbase.zookeeper.quorum=", f"-Dhbase.zookeeper.property.clientPort={port}"
    try:
        for options in ([f"{quorum}localhost", client_port], [client_port, f"{quorum}127.0.0.1"], [client_port], [f"{quorum}127.0.0.1:1,127.0.0.1:{port}"],
                        [f"{quorum}127.0.0.1:1,127.0.0.1", client_port], ["--zk", f"127.0.0.1:1,{server.zk}"], ["-D", f"hbase.zookeeper.quorum={server.zk}"]):
            done = shell("-n", *options, text="list\n")
            if done.returncode != 0 or "0 row(s)" not in done.stdout:
                return f"{options}: {done}"
        if "/other/hbaseid" not in shell("-n", client_port, "-Dzookeeper.znode.parent=/other", text="list\n").stderr:
            return "the parent is not used"
        for wrong in ("-Dx", "-D=x", "-Dx=", "-Da=b=c", f"{quorum},,", f"{quorum}{'h,' * 2000}h"):
            if shell(wrong).returncode != 2:
                return f"{wrong[:30]} is taken"
        return None if shell("--zk", server.zk, client_port).returncode == 2 else "two clusters"
    finally:
        server.kill()


def output_that_is_lost(folder):
    """On a full disk the shell reports the error and ends with 1 at the failing statement; a write to a script's own file fails with
    Ruby's error."""
    script = folder / "lost.rb"
    script.write_text("create 't', 'f'\nputs 'x' * 100000\nputs 'next'\nFile.write('/dev/null', 'on')\n")
    for options in (["-n"], [], ["--ruby"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, "shell", *options, "memory:", str(script)], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        if done.returncode != 1 or done.stderr != "rorqual shell: standard output could not be written\n":
            return f"{options}: {done}"
    out = shell("memory:", text="begin; File.open('/dev/full', 'w') { |f| f.puts 'x' * 100000 }; rescue Errno::ENOSPC => e; p e.errno, e.message; end\n"
                "begin; File.open('/nope/x', 'w'); rescue SystemCallError => e; p e; end\n").stdout
    return None if '28\n"No space left on device"' in out and "No such file or directory - /nope/x" in out else out


def zookeeper_tells_of_itself(folder):
    out = with_server(folder, "zk_dump", (), lambda server: shell("-n", "--zk", server.zk, text="zk_dump\n").stdout)
    return None if re.search(r"Quorum Server Statistics:\n 127.0.0.1:\d+\n  Zookeeper version: \S.*\n(  \S.*\n)+", out) else out


def zookeeper_at_an_ipv6_address(folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as e:
        print(f"zookeeper_at_an_ipv6_address is skipped: this machine has no ::1: {e}")
        return None
    out = with_server(folder, "ipv6", ("--listen", "[::1]"), lambda server: shell("-n", "--zk", server.zk, text="zk_dump\n").stdout)
    return None if re.search(r"Quorum Server Statistics:\n \[::1\]:\d+\n  Zookeeper version: ", out) else out


def a_zookeeper_that_drips_is_left(_):
    """Each byte of the response arrives in time, but the response never ends."""
    def drip():
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            while True:
                peer.sendall(b"x")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        out = shell("-n", "memory:", text=f"Shell.zookeeper_stat('127.0.0.1', '{listener.getsockname()[1]}')\n")
    return None if "timed out" in out.stderr else f"{out}"


TESTS = (memory_and_folder, closed_output_does_not_reach_the_folder, a_script_that_cannot_be_read_is_an_error, a_killed_shell_leaves_no_memory, exit_codes,
         tools_of_operators, options_follow_the_place, settings_say_where_the_cluster_is, output_that_is_lost, zookeeper_tells_of_itself,
         zookeeper_at_an_ipv6_address, a_zookeeper_that_drips_is_left)
