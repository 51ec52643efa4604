#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output formats of the metrics, read by independent parsers: json, a strict reader of Prometheus' text format, and
promtool's lint if it is installed.

    check_forms.py DUMP_METRICS"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

SAMPLE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf)$')
WRAPPER = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))  # the emulator of a cross build
SERVER = "Hadoop:service=HBase,name=RegionServer,sub=Server"


def dump(*arguments, expect=0):
    done = subprocess.run([*WRAPPER, sys.argv[1], *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == expect, (arguments, done.returncode, done.stderr)
    return done.stdout


def family_of(name, types):
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and types.get(name.removesuffix(suffix)) == "histogram":
            return name.removesuffix(suffix)
    return name


def parse(text):
    """Returns the types and {name and labels: value}. Every sample must follow its own HELP and TYPE, and appear once."""
    assert text.endswith("\n")
    types, values, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            assert rest, line
            if what == "TYPE":
                assert name not in types, line
                types[name], current = rest, name
            continue
        sample = SAMPLE.match(line)
        assert sample, line
        assert family_of(sample[1], types) == current, line
        key = line.rsplit(" ", 1)[0]
        assert key not in values, line
        values[key] = float(sample[3])
    return types, values


def check_histograms(types, values):
    """Counts grow with the buckets' bounds; the last bucket is the count."""
    found = 0
    for name in (n for n, kind in types.items() if kind == "histogram"):
        series = {}
        for key, value in values.items():
            m = re.match(re.escape(name) + r'_bucket\{(.*?),?le="([^"]+)"\}$', key)
            if m:
                series.setdefault(m[1], []).append((float(m[2]), value))
        for labels, buckets in series.items():
            found += 1
            assert buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets), name
            assert buckets[-1] == (float("inf"), values[f"{name}_count" + (f"{{{labels}}}" if labels else "")]), name
    assert found > 10


def check_prometheus(form):
    text = dump(form)
    types, values = parse(text)
    check_histograms(types, values)
    assert values['rorqual_ops_total{op="get"}'] == 100 and values['rorqual_ops_total{op="put"}'] == 100
    assert values['rorqual_op_duration_seconds_count{op="put"}'] > 0
    if shutil.which("promtool"):
        lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert lint.returncode == 0 and not lint.stdout + lint.stderr, lint.stdout + lint.stderr


def beans(*arguments, expect=0):
    return {b["name"]: b for b in json.loads(dump(*arguments, expect=expect))["beans"]}


def check_jmx():
    every = beans("jmx")
    wanted = [f"Hadoop:service=HBase,name={n}" for n in (
        *(f"RegionServer,sub={s}" for s in ("Server", "IPC", "WAL", "Regions", "Tables", "Replication")),
        *(f"Master,sub={s}" for s in ("Server", "AssignmentManager", "IPC")), "JvmMetrics")]
    assert set(wanted) <= set(every), set(wanted) - set(every)
    for bean in every.values():
        assert list(bean)[:2] == ["name", "modelerType"] and len(bean) > 2, bean
    server = every[SERVER]
    assert server["modelerType"] == "RegionServer,sub=Server" and server["tag.Context"] == "regionserver"
    assert server["Get_num_ops"] > 0 and server["totalRequestCount"] == 200
    assert server["tag.zookeeperQuorum"] == "localhost:2181" and server["tag.clusterId"]
    assert sum(v for k, v in server.items() if k.startswith("Get_TimeRangeCount_")) == server["Get_num_ops"]
    of_table = every["Hadoop:service=HBase,name=RegionServer,sub=TableRequests_Namespace_default_table_t"]
    assert of_table["getTime_num_ops"] > 0 and of_table["putTime_num_ops"] > 0, of_table
    assert every[wanted[4]]["Namespace_default_table_t_metric_regionCount"] == 2
    assert any(re.match(r"Namespace_default_table_t_region_[0-9a-f]{32}_metric_storeFileCount$", k) for k in every[wanted[3]])
    # No attribute may appear twice, because json keeps the last one silently.
    for name in every:
        pairs = json.loads(dump("jmx", name), object_pairs_hook=lambda p: p)
        keys = [k for k, _ in dict(pairs)["beans"][0]]
        assert len(keys) == len(set(keys)), [k for k in keys if keys.count(k) > 1]
    assert set(beans("jmx", SERVER)) == {SERVER}
    assert len(beans("jmx", "Hadoop:service=HBase,name=Master,*")) == 3
    assert beans("jmx", "Nothing:*") == {}
    described = beans("jmx", SERVER, "description")[SERVER]
    assert described["regionCount"] == {"description": "Open regions.", "value": described["regionCount"]["value"]}
    assert json.loads(dump("jmx", "no name", expect=4))["result"] == "ERROR"
    one = beans("get", f"{SERVER}::regionCount")[SERVER]
    assert set(one) == {"name", "modelerType", "regionCount"}
    tables = "Hadoop:service=HBase,name=RegionServer,sub=Tables"
    some = beans("get", f"{tables}::[a-zA-z_0-9]*memStoreSize,[a-z]*storeFileSize")[tables]
    assert len(some) > 4 and all(k in ("name", "modelerType") or k.endswith(("memStoreSize", "storeFileSize")) for k in some)
    assert beans("get", f"{SERVER}::nothing", expect=4)[SERVER]["message"] == "No attribute with name nothing was found."
    for query in ("x", SERVER, f"{SERVER}::a::b", "no name::a", f"{SERVER}::a*(", f"{SERVER}::" + "*," * 100):
        assert json.loads(dump("get", query, expect=4))["result"] == "ERROR", query


def check_hadoop():
    text = dump("hadoop")
    names = re.findall(r"(?m)^([a-z0-9_]+)\{", text)
    for name in ("server_region_count", "server_hlog_file_count", "server_get_num_ops", "server_l1cache_count",
                 "region_server_num_open_connections", "assignment_manager_rit_count", "server_get_99_9th_percentile"):
        assert name in names, name
    assert re.search(r'(?m)^server_total_request_count\{context="regionserver",zookeeperquorum="localhost:2181",servername="[^"]+",'
                     r'clusterid="[^"]+",hostname="[^"]+"\} 200$', text)
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.match(line), line


check_prometheus("prometheus")
check_prometheus("prometheus-regions")
check_jmx()
check_hadoop()
