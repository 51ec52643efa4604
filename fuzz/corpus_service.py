#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of service_fuzz.c into fuzz/corpus/service: requests as text, converted to messages by
protoc.

Regions are "0", "1" (table t, below and above row m) and "2" (table u, with endpoints); see service_fuzz.c for the
form of an input.
"""
import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FILTERS = "org.apache.hadoop.hbase.filter."
METHODS = ["Get", "Mutate", "Multi", "Scan", "ExecService", "ExecRegionServerService", "BulkLoadHFile",
           "PrepareBulkLoad", "CleanupBulkLoad"]
REQUESTS = {"ExecService": "CoprocessorServiceRequest", "ExecRegionServerService": "CoprocessorServiceRequest"}
CODEC, TAGS, PLAIN, OLD, OLDEST = range(5)
T0, T1, U = ('region { type: ENCODED_REGION_NAME value: "%d" }' % i for i in range(3))


def message(kind, text):
    for proto in ("client", "filter", "comparator", "endpoints"):
        if f"\nmessage {kind} " in (HERE / f"../proto/{proto}.proto").read_text():
            return subprocess.run(["protoc", f"--encode=pb.{kind}", "-I", str(HERE / "../proto"), f"{proto}.proto"],
                                  input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    raise ValueError(kind)


def quoted(data):
    return '"' + "".join(f"\\{b:03o}" for b in data) + '"'


def comparator(kind, value="", more=""):
    inner = f'comparable {{ value: "{value}" }} {more}' if kind.startswith(("Bi", "L")) else more
    return f'comparator {{ name: "{FILTERS}{kind}" serialized_comparator: {quoted(message(kind, inner))} }}'


def a_filter(kind, text):
    return f'name: "{FILTERS}{kind}" serialized_filter: {quoted(message(kind, text))}'


def compare(kind, op, comp, more=""):
    return a_filter(kind, f"compare_filter {{ compare_op: {op} {comp} }} {more}")


def cell(row, family="f", qualifier="q", value=b"v", timestamp=1, kind=4, tags=b""):
    key = struct.pack(">H", len(row)) + row.encode() + bytes([len(family)]) + family.encode() + qualifier.encode() \
        + struct.pack(">QB", timestamp, kind)
    body = struct.pack(">II", len(key), len(value)) + key + value
    if tags:
        body += struct.pack(">H", len(tags)) + tags
    return struct.pack(">I", len(body)) + body


def call(method, text, cells=b""):
    data = message(REQUESTS.get(method, method + "Request"), text)
    return struct.pack(">BHH", METHODS.index(method), len(data), len(cells)) + data + cells


def seed(name, hello, *calls):
    (HERE / "corpus/service" / name).write_bytes(bytes([hello]) + b"".join(calls))


def mutation(kind, row, text):
    return f'mutation {{ mutate_type: {kind} row: "{row}" {text} }}'


def values(value, qualifier="q", family="f", more=""):
    return f'column_value {{ family: "{family}" qualifier_value {{ qualifier: "{qualifier}" value: "{value}" {more} }} }}'


def gets():
    seed("get", CODEC, call("Get", f'{T0} get {{ row: "a0" }}'),
         call("Get", f'{T0} get {{ row: "a2" column {{ family: "f" qualifier: "q" qualifier: "" }} max_versions: 3 '
              'time_range { from: 1 to: 99 } store_limit: 1 store_offset: 1 existence_only: true }'))
    seed("get_options", PLAIN, call("Get", f'{T1} get {{ row: "r1" column {{ family: "f" }} column {{ family: "f" '
         'qualifier: "q" } cf_time_range { column_family: "g" time_range { from: 5 } } '
         f'filter {{ {a_filter("ColumnPaginationFilter", "limit: 2 offset: 1")} }} query_metrics_enabled: true }}'),
         call("Get", f'{T1} get {{ row: "r2" closest_row_before: true }}'))


def scans():
    rows = compare("RowFilter", "GREATER_OR_EQUAL", comparator("BinaryComparator", "a3"))
    regex = compare("RowFilter", "EQUAL", comparator("RegexStringComparator", more='pattern: "^[ar].$" '
                                                     'pattern_flags: 0 charset: "UTF-8" engine: "JAVA"'))
    column = a_filter("SingleColumnValueFilter", 'column_family: "f" column_qualifier: "q" compare_op: NOT_EQUAL '
                      + comparator("SubstringComparator", more='substr: "x"') + " filter_if_missing: true")
    both = a_filter("FilterList", f"operator: MUST_PASS_ONE filters {{ {rows} }} filters {{ "
                    + a_filter("SkipFilter", f"filter {{ {column} }}") + " }")
    ranges = a_filter("MultiRowRangeFilter", 'row_range_list { start_row: "a1" start_row_inclusive: true '
                      'stop_row: "a4" stop_row_inclusive: false } row_range_list { start_row: "r" stop_row: "s" '
                      'start_row_inclusive: true stop_row_inclusive: true }')
    fuzzy = a_filter("FuzzyRowFilter", 'fuzzy_keys_data { first: "a5" second: "\\377\\002" }')
    for name, f in (("rows", rows), ("regex", regex), ("column", column), ("both", both), ("ranges", ranges),
                    ("fuzzy", fuzzy)):
        seed(f"scan_{name}", CODEC, call("Scan", f"{T0} scan {{ filter {{ {f} }} }} number_of_rows: 20 "
                                         "close_scanner: true"))
    seed("scanner", CODEC,
         call("Scan", f"{T0} scan {{ max_versions: 3 caching: 2 }} number_of_rows: 0 client_handles_partials: true"),
         call("Scan", "scanner_id: 0 number_of_rows: 2 next_call_seq: 0 track_scan_metrics: true"),
         call("Scan", "scanner_id: 0 number_of_rows: 2 next_call_seq: 1 limit_of_rows: 3"),
         call("Scan", "scanner_id: 0 renew: true number_of_rows: 0 next_call_seq: 2"),
         call("Scan", "scanner_id: 0 number_of_rows: 1 next_call_seq: 9"),
         call("Scan", "scanner_id: 0 close_scanner: true number_of_rows: 0"))
    seed("scan_partial", TAGS,
         call("Scan", f'{T0} scan {{ start_row: "a9" stop_row: "a0" include_stop_row: true reversed: true batch_size: 1 '
              'max_result_size: 1 need_cursor_result: true allow_partial_results: true } number_of_rows: 5 '
              'client_handles_partials: true client_handles_heartbeats: true'),
         call("Scan", "scanner_id: 0 number_of_rows: 5 client_handles_partials: true"))
    seed("scan_raw", OLDEST, call("Scan", f'{T1} scan {{ attribute {{ name: "_raw_" value: "\\377" }} small: true '
                                  'column { family: "g" } } number_of_rows: 3 close_scanner: true'))


def mutations():
    ttl = 'attribute { name: "_ttl" value: "\\000\\000\\000\\000\\000\\001\\000\\000" }'
    results = 'attribute { name: "_rr_" value: "\\000" }'
    seed("put", CODEC, call("Mutate", f'{T0} ' + mutation("PUT", "b", "associated_cell_count: 2"),
                            cell("b") + cell("b", "g", "", b"w", 2)),
         call("Mutate", f'{T0} mutation {{ mutate_type: PUT associated_cell_count: 1 {ttl} durability: SKIP_WAL }}',
              cell("c")))
    seed("put_tags", TAGS, call("Mutate", f'{T0} ' + mutation("PUT", "b", "associated_cell_count: 1"),
                                cell("b", tags=b"\0\2\4x")))
    seed("put_plain", PLAIN, call("Mutate", f'{T0} ' + mutation("PUT", "b", values("v", more="timestamp: 9")
                                                                + "timestamp: 7 " + ttl)))
    for kind in ("DELETE_ONE_VERSION", "DELETE_MULTIPLE_VERSIONS", "DELETE_FAMILY", "DELETE_FAMILY_VERSION"):
        seed(kind.lower(), PLAIN, call("Mutate", f'{T0} ' + mutation("DELETE", "a2", values(
            "", more=f"delete_type: {kind} timestamp: 99"))))
    seed("delete_row", CODEC, call("Mutate", f'{T1} ' + mutation("DELETE", "r1", "timestamp: 50")))
    seed("increment", CODEC, call("Mutate", f'{T0} nonce_group: 1 ' + mutation(
        "INCREMENT", "an", "nonce: 5 associated_cell_count: 1 time_range { from: 0 to: 5 }"),
        cell("an", value=struct.pack(">Q", 3), timestamp=2**63 - 1)) * 2)
    seed("append", OLD, call("Mutate", f'{T0} ' + mutation("APPEND", "an", values("tail") + results)))
    check = f'condition {{ row: "a2" family: "f" qualifier: "q" compare_type: EQUAL {comparator("BinaryComparator")} }}'
    seed("check", CODEC, call("Mutate", f'{T0} ' + mutation("PUT", "a2", values("v")) + check))
    seed("check_filter", CODEC, call("Mutate", f'{T0} ' + mutation("DELETE", "a2", "") + 'condition { row: "a2" filter { '
         + compare("ValueFilter", "LESS", comparator("BinaryPrefixComparator", "z")) + " } time_range { from: 1 to: 2 } }"))
    return check


def multis(check):
    put = f'action {{ index: %d {mutation("PUT", "a2", "associated_cell_count: 1")} }}'
    get = 'action { index: 2 get { row: "a2" } }'
    increment = 'action { index: 3 ' + mutation("INCREMENT", "a2", "associated_cell_count: 1") + " }"
    one = cell("a2", qualifier="i", value=bytes(8))
    seed("multi", CODEC, call("Multi", f"regionAction {{ {T0} {put % 0} {get} {increment} {put % 4} }} "
                              f'regionAction {{ {T1} action {{ get {{ row: "r1" }} }} }} nonceGroup: 7',
                              cell("a2") + one + cell("a2", "g")))
    seed("multi_wrong", CODEC, call("Multi", f"regionAction {{ {U} {put % 0} }} regionAction {{ {T0} "
                                    f"action {{ index: 1 {mutation('PUT', 'a2', 'associated_cell_count: 9')} }} {get} "
                                    f"action {{ }} }}", cell("a2") + cell("x")))
    seed("multi_atomic", TAGS, call("Multi", f"regionAction {{ {T0} atomic: true {put % 0} {increment} action {{ index: 5 "
                                    + mutation("DELETE", "a2", values("", "d")) + " } }", cell("a2") + one))
    seed("multi_check", PLAIN, call("Multi", f"regionAction {{ {T0} atomic: true action {{ "
                                    f"{mutation('PUT', 'a2', values('w'))} }} {check} }}"),
         call("Multi", f"regionAction {{ {T0} action {{ {mutation('APPEND', 'a2', values('w'))} }} }} {check}"))


def endpoints():
    def service(name, method, request, row="a"):
        return f'{{ row: "{row}" service_name: "{name}" method_name: "{method}" request: {quoted(request)} }}'

    def aggregate(method, scan):
        return service("AggregateService", method, message(
            "AggregateRequest", 'interpreter_class_name: "org.apache.hadoop.hbase.client.coprocessor.'
            f'LongColumnInterpreter" scan {{ {scan} }}'))
    seed("aggregate", CODEC, *(call("ExecService", f'{U} call ' + aggregate(m, 'column { family: "f" qualifier: "q" }'))
                               for m in ("GetMax", "GetRowNum", "GetAvg", "GetMedian")))
    rows = "".join("mutation_request { mutate_type: PUT row: \"%s\" %s } " % (row, values("v")) for row in "bc")
    rows += f'condition {{ row: "b" family: "f" qualifier: "q" compare_type: EQUAL {comparator("NullComparator")} }}'
    several = service("MultiRowMutationService", "MutateRows", message("MutateRowsRequest", rows))
    seed("multi_row", CODEC, call("ExecService", f"{U} call {several}"), call("ExecService", f"{T0} call {several}"))
    seed("multi_service", CODEC, call("Multi", f"regionAction {{ {U} action {{ service_call {several} }} action {{ "
                                      f'service_call {aggregate("GetSum", "")} }} action {{ get {{ row: "b" }} }} }}'),
         call("ExecRegionServerService", f"{U} call {several}"))


def bulk_loads():
    seed("bulk", CODEC, call("PrepareBulkLoad", f'table_name {{ namespace: "default" qualifier: "t" }} {T0}'),
         call("BulkLoadHFile", f'{T0} family_path {{ family: "f" path: "file:/none/f/x" }} family_path {{ family: "h" '
              'path: "hdfs://a/b" } bulk_token: "t" assign_seq_num: true copy_file: true'),
         call("CleanupBulkLoad", f'bulk_token: "file:/rorqual/staging/../x" {T0}'))


def main():
    folder = HERE / "corpus/service"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    gets()
    scans()
    multis(mutations())
    endpoints()
    bulk_loads()


main()
