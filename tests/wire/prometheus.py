#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The alerts and the dashboard of contrib/ on a real Prometheus that scrapes a server: Prometheus is the one on the PATH,
or the one that tools/setup has unpacked into build-prometheus; skipped (77) if there is none, as on systems without
Debian's packages."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("RORQUAL", str(ROOT / "build/rorqual"))
PATH = os.environ["PATH"] + f":{ROOT}/build-prometheus"
PROMETHEUS, PROMTOOL = (shutil.which(name, path=PATH) for name in ("prometheus", "promtool"))
DEADLINE = 300


def fetch(url):
    with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
        return answer.read().decode()


def wait_for(look, what):
    """Waits until `look` returns a true value; returns it."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {DEADLINE} s")


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = subprocess.Popen(
            [BINARY, "server", "--data", str(self.folder / "data"), "--zk-port", "0", "--master-port", "0", "--rs-port", "0",
             "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.server.stdout.readline()
        self.http = re.search(r"http (\S+),", line)[1]
        self.zk = re.search(r"zookeeper (\S+),", line)[1]
        self.prometheus = None

    def scrape(self):
        """Prometheus with the configuration of contrib/, in seconds instead of minutes. Prometheus cannot choose a free port:
        if the port is in use Prometheus ends, and another port is tried."""
        source = ROOT / "contrib/prometheus"
        config = (source / "prometheus.yml").read_text().replace("127.0.0.1:16010", self.http).replace("15s", "1s")
        rules = re.sub(r"for: \w+", "for: 1s", (source / "rorqual.rules.yml").read_text())
        (self.folder / "prometheus.yml").write_text(config)
        (self.folder / "rorqual.rules.yml").write_text(rules)
        for port in range(20000 + os.getpid() % 20000, 65000, 97):
            self.api = f"http://127.0.0.1:{port}/api/v1"
            self.prometheus = subprocess.Popen(
                [PROMETHEUS, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if wait_for(lambda: self.prometheus.poll() is not None or self.answers(), "Prometheus starts") == "yes":
                return
        raise AssertionError("no port for Prometheus")

    def answers(self):
        try:
            fetch(f"{self.api}/status/buildinfo")
            return "yes"
        except (urllib.error.URLError, ConnectionError):
            return None

    def query(self, expression):
        answer = json.loads(fetch(f"{self.api}/query?" + urllib.parse.urlencode({"query": expression})))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def alerts(self):
        found = json.loads(fetch(f"{self.api}/alerts"))["data"]["alerts"]
        return {a["labels"]["alertname"] for a in found if a["state"] == "firing"}

    def close(self):
        for process in (self.server, self.prometheus):
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.wait()


def lint(w):
    for path in ("metrics", "metrics?regions"):
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=fetch(f"http://{w.http}/{path}"), capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


def every_panel_has_values(w):
    w.scrape()
    wait_for(lambda: w.query("up == 1"), "the first scrape")
    subprocess.run([BINARY, "bench", "--zk", w.zk, "--records", "100", "--keep", "--seconds", "3", "get"], check=True,
                   stdout=subprocess.DEVNULL)
    dashboard = json.loads((ROOT / "contrib/grafana/rorqual.json").read_text())
    may_be_empty = ("_parts_total", "_errors_total")  # empty if there was no batch or no error
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$job", "rorqual").replace("$instance", ".*").replace("$__rate_interval", "1m")
            if not any(name in text for name in may_be_empty):
                wait_for(lambda text=text: w.query(text), f"{panel['title']}: {text}")
    # other alerts may fire on a slow machine, because their waiting times are shortened
    assert "RorqualDown" not in w.alerts()


def an_alert_fires_when_the_server_is_killed(w):
    w.server.kill()
    w.server.wait()
    wait_for(lambda: "RorqualDown" in w.alerts(), "RorqualDown")


def main():
    if PROMETHEUS is None or PROMTOOL is None:
        print("no prometheus (tools/setup test): skipped")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        w = World(folder)
        for test in (lint, every_panel_has_values, an_alert_fires_when_the_server_is_killed):
            try:
                test(w)
                print(f"PASS prometheus/{test.__name__}")
            except Exception as e:  # pylint: disable=broad-except
                print(f"FAIL prometheus/{test.__name__}: {e!r}")
                failed += 1
        w.close()
    print(f"{3 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
