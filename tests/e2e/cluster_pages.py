# SPDX-License-Identifier: Apache-2.0
"""Tests of cluster.py: the HTTP port of each server: pages, metrics, health checks; SIGQUIT."""
import json
import re
import signal
import urllib.request

from cluster_world import ROWS, all_rows_of, kill_and_wait, open_regions, others, put_rows, regions_of, restart
from membership import fields, message_of, until

SPLITS = "SPLITS => ['c', 'g', 'k', 'o', 's', 'w']"


def page(process, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{process.ports[2]}{path}", timeout=60) as answer:
        return answer.read().decode()


def figures(process):
    """{metric with its labels: value}"""
    lines = [line for line in page(process, "/metrics").splitlines() if not line.startswith("#")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def of_table(process, name, table):
    return figures(process).get(f'rorqual_table_{name}{{namespace="default",table="{table}"}}', 0)


def open_on(process):
    return int(sum(value for name, value in figures(process).items() if name.startswith("rorqual_table_open_regions{")))


def shown_servers(status):
    """{(name, port of its pages, state, open regions)} on the master's page"""
    rows = re.findall(r'<tr><td class=t><a href="http://127\.0\.0\.1:(\d+)/">(\S+)</a></td><td>([^<]*)</td><td class=n>(\d+)<', status)
    return {(name, int(port), state, int(regions)) for port, name, state, regions in rows}


def beans(process):
    return {bean["name"]: bean for bean in json.loads(page(process, "/jmx"))["beans"]}


def shows(world, process, is_master):
    assert page(process, "/health/live") == "live\n" and page(process, "/health/ready") == "ready\n"
    status = page(process, "/")
    assert process.name in status and ("· the active master" in status) == is_master, status
    assert ("not the active master" in status) == (not is_master), status
    assert ("Servers of the cluster" in status) == is_master, status
    found = figures(process)
    assert ('rorqual_regions{state="open"}' in found) == is_master, sorted(found)
    assert found["rorqual_uptime_seconds"] > 0 and "rorqual_lease_lapses_total" in found, sorted(found)
    server, = (bean for name, bean in beans(process).items() if name.endswith("name=RegionServer,sub=Server"))
    assert server["tag.serverName"] == process.name
    for path in ("/prometheus", "/conf", "/stacks", "/debug/slow", "/rs-status?format=json&filter=all"):
        assert page(process, path), path
    assert (1, 0, process.ports[2]) in fields(message_of(world.keeper.tree("/hbase")["rs/" + process.name][0]))


def each_server_has_pages_and_metrics(world):
    """Each server shows its own regions and counts, the active master also the states of all regions. Counts of a table stay on a
    server which its regions have left."""
    master = world.wait_for_master()
    world.shell(f"create 'pg', 'f', {SPLITS}\n")
    put_rows(world, "pg")
    for process in world.processes:
        shows(world, process, process is master)
        assert of_table(process, "open_regions", "pg") == list(regions_of(world, "pg").values()).count(process.ports[0])
    until(lambda: shown_servers(page(master, "/")) == {
        (p.name, p.ports[2], "the active master" if p is master else "live", open_on(p)) for p in world.processes}, "the master shows all servers")
    assert "<td class=t>pg</td><td>enabled</td><td class=n>7</td><td class=n>7</td>" in page(master, "/"), page(master, "/")
    written = sum(of_table(p, "write_requests_total", "pg") for p in world.processes)
    assert written >= len(ROWS), written
    first = others(world, master)[0]
    for region, port in regions_of(world, "pg").items():
        if port == first.ports[0]:
            world.shell(f"move '{region}', '{master.name}'\n")
    until(lambda: of_table(first, "open_regions", "pg") == 0, "its regions have left")
    assert sum(of_table(p, "write_requests_total", "pg") for p in world.processes) >= written
    first.process.send_signal(signal.SIGQUIT)
    until(lambda: re.search(r"report.*ends", first.errors()[first.before:]), "the report is logged")
    killed = kill_and_wait(world, first)
    until(lambda: len(open_regions(world, "pg")) == 7 and killed.ports[0] not in open_regions(world, "pg").values(), "all regions are open")
    assert figures(master)['rorqual_regions{state="open"}'] >= 7
    assert f"<td class=t>{killed.name}</td><td>dead</td>" in page(master, "/"), page(master, "/")
    restart(world, killed)
    all_rows_of(world, "pg")


def a_new_masters_pages_say_so(world):
    killed = world.wait_for_master()
    killed.kill()
    again = until(lambda: (lambda m: m if m not in (None, killed) else None)(world.master()), "another master has opened meta")
    until(lambda: "· the active master" in page(again, "/"), "its page says so")
    shows(world, again, True)
    assert "\"pid=" not in page(others(world, again)[0], "/rs-status?format=json&filter=all")
    restart(world, killed)
    world.shell("disable 'pg'\ndrop 'pg'\n")


TESTS = [each_server_has_pages_and_metrics, a_new_masters_pages_say_so]
