# SPDX-License-Identifier: Apache-2.0
"""The device's speed: fio with direct I/O, on a file as large as the data, at the same depth and block size."""
import json
import shutil
import subprocess

from config import Failed, Refused

# {name: options of fio}; a job has the name of the workload whose lower bound it is.
JOBS = {
    "get": ["--rw=randread"],
    "long": ["--rw=read", "--bs=1m", "--iodepth=4"],
    "load": ["--rw=write", "--bs=1m", "--iodepth=4"],
}


def check():
    if shutil.which("fio") is None:
        raise Refused("fio is missing: tools/setup bench installs it; without it: PARTS without floor")


def measure(config, folder, shape, limit):
    """{name: {rate, mb, p50, p99, p99.9}}. limit: maximum size of the file."""
    path = folder / "fio"
    found = {}
    depth = config.connections * config.depth
    try:
        for name in ("load", "get", "long"):  # the write job is first, because it makes the file
            command = ["fio", "--name=floor", f"--filename={path}", f"--size={min(config.raw(shape), limit)}", "--direct=1", "--ioengine=libaio",
                       f"--bs={config.block}", f"--iodepth={depth}", "--time_based", f"--runtime={max(1, config.seconds / 2):.0f}", "--randrepeat=0",
                       "--output-format=json", *JOBS[name]]
            if name == "load":  # the whole file once
                command.remove("--time_based")
                command = [word for word in command if not word.startswith("--runtime")]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                raise Failed(f"fio {name}: {done.stderr.strip()[-300:]}")
            job = json.loads(done.stdout)["jobs"][0]["write" if name == "load" else "read"]
            at = job["clat_ns"].get("percentile", {})
            found[name] = {"rate": job["iops"], "mb": job["bw_bytes"] / 1e6,
                           **{p: at.get(f"{float(p[1:]):.6f}", 0) / 1e3 for p in ("p50", "p99", "p99.9")}}
    finally:
        path.unlink(missing_ok=True)
    return found
