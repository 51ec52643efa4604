#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The expressions of two public dashboards for HBase, evaluated on a server under load. Both read HBase's beans through
Prometheus' JMX exporter, an agent inside a Java process. This test reads /jmx and names the values by the exporter rules of each
dashboard.

- Grafana's 12243, "Hbase in kubernetes using prometheus jmx exporter": hadoop_hbase_ATTRIBUTE, in small letters
- "HBase Prometheus Overview" and "Region Server Operations" of GoogleCloudPlatform/monitoring-dashboard-samples:
  hbase_NAME_SUB_ATTRIBUTE

Each line below is one expression: "metric", "rate metric" or "sum metric". After "+" the value must be positive under load.
"""
import json
import pathlib
import re
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import number, text  # pylint: disable=wrong-import-position

ROUNDS = 64  # operations of each kind: one of 16 is timed
APPEND, INCREMENT, PUT, DELETE = range(4)
SKIP_WAL = 1

GRAFANA_12243 = """
+ hadoop_hbase_averageload
hadoop_hbase_deadserveropenregions
+ hadoop_hbase_hlogfilesize
+ hadoop_hbase_numregionservers
hadoop_hbase_ritcount
+ rate hadoop_hbase_[[num_ops]]_num_ops
+ rate hadoop_hbase_exceptions
+ rate hadoop_hbase_flushedcellscount
+ rate hadoop_hbase_flushedcellssize
+ rate hadoop_hbase_flushedmemstorebytes
+ rate hadoop_hbase_readrequestcount
+ rate hadoop_hbase_receivedbytes
+ rate hadoop_hbase_sentbytes
+ rate hadoop_hbase_totalrequestcount
"""
# The values of the dashboard's variable [[num_ops]]: names of operations, for which there are histograms.
NUM_OPS = ["get", "put", "delete", "append", "increment", "processcalltime", "totalcalltime", "queuecalltime", "flushtime", "synctime"]

GOOGLE = """
hbase_Master_Server_numDeadRegionServers
+ sum hbase_Master_Server_numRegionServers
sum hbase_Master_Server_numDeadRegionServers
hbase_Master_AssignmentManager_ritCount
hbase_Master_AssignmentManager_ritCountOverThreshold
+ hbase_RegionServer_Server_regionCount
+ sum hbase_RegionServer_Server_regionCount
+ hbase_RegionServer_Server_storeFileCount
+ hbase_RegionServer_Server_storeFileSize
+ hbase_RegionServer_Server_hlogFileCount
+ rate hbase_RegionServer_Server_totalRequestCount
+ sum hbase_RegionServer_Server_totalRequestCount
+ rate hbase_RegionServer_Server_readRequestCount
+ rate hbase_RegionServer_Server_writeRequestCount
+ hbase_RegionServer_IPC_numOpenConnections
hbase_RegionServer_IPC_numActiveHandler
hbase_RegionServer_IPC_numCallsInGeneralQueue
hbase_RegionServer_IPC_numCallsInReplicationQueue
hbase_RegionServer_IPC_numCallsInPriorityQueue
hbase_RegionServer_IPC_authenticationSuccesses
hbase_RegionServer_IPC_authenticationFailures
hbase_RegionServer_Server_flushQueueLength
hbase_RegionServer_Server_updatesBlockedTime
hbase_RegionServer_Server_compactionQueueLength
+ rate hbase_RegionServer_Server_blockCacheHitCount
+ rate hbase_RegionServer_Server_blockCacheMissCount
+ hbase_RegionServer_Server_blockCacheExpressHitPercent
hbase_RegionServer_Server_percentFilesLocal
+ hbase_RegionServer_Server_mutationsWithoutWALCount
""" + "".join(f"""
rate hbase_RegionServer_Server_slow{op}Count
+ hbase_RegionServer_Server_{op}_99th_percentile
+ hbase_RegionServer_Server_{op}_mean
+ rate hbase_RegionServer_Server_{op}_num_ops
""" for op in ("Get", "Put", "Append", "Delete", "Increment"))


def beans(server):
    with urllib.request.urlopen(f"http://{server.http}/jmx", timeout=300) as answer:
        return json.load(answer)["beans"]


def series(server):
    """All numbers of HBase's beans under both names. Each name has a list, because beans may share it."""
    out = {}
    for bean in beans(server):
        found = re.fullmatch(r"Hadoop:service=HBase,name=(\w+)(?:,sub=(\w+))?", bean["name"])
        for attribute, value in bean.items() if found else ():
            if isinstance(value, (int, float)):
                out.setdefault(f"hadoop_hbase_{attribute.lower()}", []).append(value)
                out.setdefault("_".join(["hbase", *filter(None, found.groups()), attribute]), []).append(value)
    return out


class World:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = rorqual.Server(self.folder / "data", self.folder / "log")
        self.client = hbase.Client(self.server)
        self.client.create("t", {"f": {}})
        self.region = self.client.regions("t")[0][1]
        self.load()
        self.before, begun = series(self.server), time.monotonic()
        self.load()
        self.after, self.seconds = series(self.server), time.monotonic() - begun

    def mutate(self, kind, row, qualifier, value, durability=0):
        column = text(1, "f") + text(2, text(1, qualifier) + text(2, value) + (number(4, 1) if kind == DELETE else b""))
        message = text(1, row) + number(2, kind) + text(3, column) + (number(6, durability) if durability else b"")
        self.client.data.call("Mutate", text(1, hbase.region(self.region)) + text(2, message))

    def load(self):
        for i in range(ROUNDS):
            row = b"row%d" % i
            self.mutate(PUT, row, "q", b"v" * 100)
            self.mutate(PUT, row, "unlogged", b"v", SKIP_WAL)
            self.mutate(APPEND, row, "a", b"v")
            self.mutate(INCREMENT, row, "i", (1).to_bytes(8, "big"))
            self.mutate(DELETE, row, "d", b"")
            self.client.data.get(self.region, row)
        self.client.flush(self.region)
        for i in range(ROUNDS):
            self.client.data.get(self.region, b"row%d" % i)
        try:
            self.client.data.get(b"absent,,1.0123456789abcdef0123456789abcdef.", b"row")
            raise AssertionError("a region that is not there answered")
        except hbase.Refused:
            pass

    def evaluate(self, expression):
        """The values of an expression; an empty list if there is no data."""
        form, _, metric = expression.rpartition(" ")
        now, before = self.after.get(metric, []), self.before.get(metric, [])
        if form == "rate":
            return [(b - a) / self.seconds for a, b in zip(before, now)]
        return [sum(now)] if form == "sum" and now else now


def check(w, lines):
    wrong = []
    for line in filter(None, lines.splitlines()):
        positive, expression = line.startswith("+ "), line.removeprefix("+ ")
        for name in NUM_OPS if "[[num_ops]]" in expression else [""]:
            one = expression.replace("[[num_ops]]", name)
            values = w.evaluate(one)
            if not values or (positive and max(values) <= 0):
                wrong.append((one, values))
    assert not wrong, wrong


def grafana_12243_has_data(w):
    check(w, GRAFANA_12243)


def googles_dashboards_have_data(w):
    check(w, GOOGLE)


def log_lines_are_counted(w):
    """HBase's JvmMetrics, on many dashboards."""
    for attribute in ("LogFatal", "LogError", "LogWarn", "LogInfo"):
        assert f"hbase_JvmMetrics_{attribute}" in w.after, attribute
    assert w.after["hbase_JvmMetrics_LogInfo"][0] > w.before["hbase_JvmMetrics_LogInfo"][0], "a flush is logged"


def writes_without_the_log_are_counted(w):
    count = "hbase_RegionServer_Server_mutationsWithoutWALCount"
    assert (w.before[count][0], w.after[count][0]) == (ROUNDS, 2 * ROUNDS), (w.before[count], w.after[count])
    assert w.after["hbase_RegionServer_Server_mutationsWithoutWALSize"][0] >= 2 * ROUNDS * 20


# ---- sizes of indexes and blooms


def file_sizes(path):
    """The sizes that HBase's reader reports for an uncompressed file: root index, whole index, bloom."""
    data = path.read_bytes()
    _, at = hbase.read_varint(data, data.rindex(b'TRABLK"$') + 8)
    trailer = {}
    for _ in range(5):  # offsets of file info and load-on-open section, index size, total uncompressed bytes, root entries
        tag, at = hbase.read_varint(data, at)
        trailer[tag >> 3], at = hbase.read_varint(data, at)
    opened = trailer[2]
    root = data.index(b"IDXROOT2", opened)
    bloom = data.index(b"BLMFMET2", opened)
    header = 33
    return (int.from_bytes(data[root + 12:root + 16], "big"), trailer[3],
            int.from_bytes(data[bloom + header + 4:bloom + header + 12], "big"))


def index_and_bloom_sizes_are_those_of_the_files(w):
    """The values of GetRegionLoad, which `status 'detailed'` shows, and the metrics of the table."""
    w.client.create("sized", {"f": {"BLOCKSIZE": "1024"}})
    region = w.client.regions("sized")[0][1]
    w.client.data.put_many(region, [(b"row%08d" % i, {(b"f", b"q"): b"v" * 50}) for i in range(20000)])
    w.client.flush(region)
    files = list((w.folder / "data/data/default/sized").glob("*/f/*"))
    assert len(files) == 1, files
    root, index, bloom = file_sizes(files[0])
    assert min(root, index, bloom) > 8192, (root, index, bloom)
    load = hbase.fields(w.client.admin.call("GetRegionLoad", text(1, hbase.table_name("sized")))[1][0])
    prefix = "hadoop_hbase_namespace_default_table_sized_metric_"
    figures = series(w.server)
    assert figures[prefix + "staticindexsize"] == [index] and figures[prefix + "staticbloomsize"] == [bloom], (index, bloom)
    # In memory a root index has a 4-byte offset per entry instead of a 1-byte length.
    in_memory = figures[prefix + "storefileindexsize"][0]
    assert root < in_memory < root * 1.2, (root, in_memory)
    assert (load[7][0], load[12][0]) == (in_memory // 1024, in_memory // 1024), load
    assert (load[13][0], load[14][0]) == (index // 1024, bloom // 1024), (load, index, bloom)


TESTS = [grafana_12243_has_data, index_and_bloom_sizes_are_those_of_the_files, googles_dashboards_have_data, log_lines_are_counted, writes_without_the_log_are_counted]

if __name__ == "__main__":
    sys.exit(rorqual.run_on_world("dashboards", World, TESTS))
