#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ClientService and RSGroupAdminService with inputs that no client sends: missing fields, regions that are absent or not served, rows that
are empty, too long or of another region, unknown families, times and limits out of range, malformed filters, mutations without a meaning,
scanners that are unknown or closed. Each must end with the exception that HBase 2.6.1 sends, or with another one for the reason that
bad_data_inputs.tsv gives, and a refused call must change nothing.

matrix.py describes the options and the table.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import bad_inputs  # pylint: disable=wrong-import-position,wrong-import-order
import hbase  # pylint: disable=wrong-import-position
import matrix  # pylint: disable=wrong-import-position,wrong-import-order
from hbase import fields, number, text  # pylint: disable=wrong-import-position

APPEND, INCREMENT, PUT, DELETE = range(4)
FILTERS = "org.apache.hadoop.hbase.filter."
ENDPOINTS = "org.apache.hadoop.hbase.coprocessor."
MINUS_ONE, HUGE32, HUGE64 = (1 << 64) - 1, (1 << 32) - 1, (1 << 63) - 1
LONG = b"x" * 100000


class World(bad_inputs.World):
    """Also the table e, with endpoints, and a group of region servers."""

    def __init__(self, server, is_hbase=False):
        super().__init__(server, is_hbase)
        self.client.create("e", {"f": {}}, values={f"coprocessor${i}": f"|{ENDPOINTS}{name}|{i}|" for i, name in enumerate(
            ("MultiRowMutationEndpoint", "AggregateImplementation"), 1)})
        self.low, self.high = self.regions(b"t")
        self.of_disabled = self.regions(b"d")[0]
        [self.with_endpoints] = self.client.data.scan(bad_inputs.META, b"e,,", b"e ,,")
        self.rsgroup("AddRSGroup", text(1, "g"))
        self.refill()

    def refill(self):
        """The rows that the cases use."""
        for row in (b"a", b"b", b"c", b"d"):
            self.client.data.put(self.low, row, {(b"f", b"q"): b"v", (b"f", b"n"): b"\0" * 7 + b"\5"})
        self.client.data.put(self.high, b"n", {(b"f", b"q"): b"v"})
        self.client.data.put(self.with_endpoints, b"a", {(b"f", b"q"): b"v"})

    def rsgroup(self, method, message):
        return self.client.master.call("ExecMasterService", group_call(method, message))

    def opened(self, rows=1):
        """The number of a scanner whose region has more rows."""
        got = self.connection("ClientService").call("Scan", scan(self) + number(4, rows))
        return got[2][0]

    def closed(self):
        scanner = self.opened()
        self.connection("ClientService").call("Scan", number(3, scanner) + number(5, 1))
        return scanner

    def content(self):
        data = self.client.data
        rows = [data.scan(name) for name in (self.low, self.high, self.with_endpoints)]
        groups = self.rsgroup("ListRSGroupInfos", b"")[2][0]
        return rows, groups

    def end_of(self, method, got):
        if method != "Multi":
            return "ok"
        outcomes = [outcome_of_region_action(fields(one)) for one in got.get(1, [])]
        return "; ".join(outcomes) or "nothing"


def outcome_of_region_action(result):
    if 2 in result:
        return f"region: {hbase.exception_name(result[2][0])}"
    actions = sorted((fields(one) for one in result.get(1, [])), key=lambda one: one.get(1, [0])[0])
    return ", ".join(f"{one.get(1, [0])[0]}: {hbase.exception_name(one[3][0]) if 3 in one else 'ok'}" for one in actions) or "no action"


# ---- messages


def group_call(method, message, service="RSGroupAdminService"):
    return text(1, number(1, 1) + text(2, b"")) + text(2, text(1, b"") + text(2, service) + text(3, method) + text(4, message))


def at(region):
    return text(1, region if isinstance(region, bytes) and region[:1] == b"\x08" else hbase.region(region))


def get(w, more=b"", row=b"a", region=None):
    return at(region or w.low) + text(2, text(1, row) + more)


def column(family=b"f", qualifier=b"q", value=b"v", more=b""):
    return text(3, text(1, family) + text(2, text(1, qualifier) + text(2, value) + more))


def mutation(kind=PUT, row=b"a", columns=None, more=b""):
    value = b"\0" * 7 + b"\1" if kind == INCREMENT else b"v"
    return text(1, row) + number(2, kind) + (column(b"f", b"n" if kind == INCREMENT else b"q", value) if columns is None else columns) + more


def mutate(w, kind=PUT, row=b"a", columns=None, more=b"", rest=b"", region=None):
    return at(region or w.low) + text(2, mutation(kind, row, columns, more)) + rest


def scan(w, inner=b"", more=b"", region=None):
    return at(region or w.low) + text(2, inner) + more


def action(index, put=None, got=None, call=None):
    return text(3, number(1, index) + (text(2, put) if put is not None else b"") + (text(3, got) if got is not None else b"") +
                (text(4, call) if call is not None else b""))


def multi(w, *actions, region=None, more=b"", rest=b""):
    return text(1, at(region or w.low) + b"".join(actions) + more) + rest


def condition(row=b"a", family=b"f", compare=2, comparator=None, more=b""):
    comparator = comparator if comparator is not None else text(1, FILTERS + "BinaryComparator") + text(2, text(1, text(1, "v")))
    return text(1, row) + text(2, family) + text(3, b"q") + number(4, compare) + text(5, comparator) + more


def a_filter(name, message=b""):
    return text(1, name) + text(2, message)


def times(start, end):
    return number(1, start) + number(2, end)


def call_of(service, method, message=b"", row=b""):
    return text(1, row) + text(2, service) + text(3, method) + text(4, message)


# ---- kinds of values; each is a pair of a case's name and a value


REGIONS = {"absent": hbase.region(b"0" * 32), "absent name": hbase.region(b"t,zz,1." + b"0" * 32 + b"."), "long": number(1, 2) + text(2, LONG),
           "illegal": number(1, 2) + text(2, b"a/.."), "illegal name": number(1, 1) + text(2, b"a/.."), "empty": number(1, 1) + text(2, b""),
           "of no known kind": number(1, 7) + text(2, b"x"), "without kind": number(8, 1) + text(2, b"x")}
ROWS = {"empty": b"", "of 32767 bytes": b"a" * 32767, "of 32768 bytes": b"a" * 32768, "of 65537 bytes": b"a" * 65537, "of another region": b"n"}
NAMES_OF_FAMILIES = {"unknown": b"x", "empty": b"", "of 255 bytes": b"x" * 255, "of 256 bytes": b"x" * 256, "long": LONG, "with a colon": b"f:q"}
TIMES = {"backwards": times(10, 5), "negative": times(MINUS_ONE - 4, 5), "negative end": times(0, MINUS_ONE), "empty": times(5, 5),
         "of nothing": b"", "from 0 to 0": times(0, 0)}
BAD_FILTERS = {
    "of an unknown class": a_filter("com.example.Nobody"), "without a name": text(2, b""), "with an empty name": a_filter(b""),
    "with a long name": a_filter(LONG), "that is garbage": a_filter(FILTERS + "PageFilter", b"\xff\xff"),
    "without its field": a_filter(FILTERS + "PageFilter"), "with a negative page": a_filter(FILTERS + "PageFilter", number(1, MINUS_ONE)),
    "that is a comparator": a_filter(FILTERS + "BinaryComparator", text(1, text(1, "v"))),
    "with an unknown comparator": a_filter(FILTERS + "RowFilter", text(1, number(1, 2) + text(2, text(1, "com.example.Nobody")))),
    "with an unknown operator": a_filter(FILTERS + "RowFilter", text(1, number(1, 9) + text(2, text(1, FILTERS + "NullComparator")))),
    "with a negative limit": a_filter(FILTERS + "ColumnPaginationFilter", number(1, MINUS_ONE) + number(2, 0)),
    "with a bad pattern": a_filter(FILTERS + "RowFilter", text(1, number(1, 2) + text(2, text(1, FILTERS + "RegexStringComparator") + text(
        2, text(1, "(") + number(2, 0) + text(3, "UTF-8") + text(4, "JAVA"))))),
    "that is an empty list": a_filter(FILTERS + "FilterList", number(1, 1)),
}


def each(prefix, values, build):
    """{case: a function of the world}"""
    return {f"{prefix} {name}": lambda w, value=value: build(w, value) for name, value in values.items()}


def nested_filter(depth):
    inner = a_filter(FILTERS + "PageFilter", number(1, 1))
    for _ in range(depth):
        inner = a_filter(FILTERS + "SkipFilter", text(1, inner))
    return inner


GET = {
    "empty": lambda w: b"", "without region": lambda w: text(2, text(1, b"a")), "without get": lambda w: at(w.low),
    "without row": lambda w: at(w.low) + text(2, b""), "with a region without its fields": lambda w: text(1, b"") + text(2, text(1, b"a")),
    "of a disabled table": lambda w: get(w, region=w.of_disabled),
    **each("region", REGIONS, lambda w, v: text(1, v) + text(2, text(1, b"a"))), **each("row", ROWS, lambda w, v: get(w, row=v)),
    **each("family", NAMES_OF_FAMILIES, lambda w, v: get(w, text(2, text(1, v)))),
    "family without a name": lambda w: get(w, text(2, text(2, b"q"))),
    "qualifier long": lambda w: get(w, text(2, text(1, b"f") + text(2, LONG))),
    **each("times", TIMES, lambda w, v: get(w, text(5, v))),
    **each("times of a family", TIMES, lambda w, v: get(w, text(13, text(1, b"f") + text(2, v)))),
    "times of an unknown family": lambda w: get(w, text(13, text(1, b"x") + text(2, times(1, 2)))),
    "times of a family without a name": lambda w: get(w, text(13, text(2, times(1, 2)))),
    **each("filter", BAD_FILTERS, lambda w, v: get(w, text(4, v))),
    "filter 50 deep": lambda w: get(w, text(4, nested_filter(50))),
    "no version": lambda w: get(w, number(6, 0)), "all versions": lambda w: get(w, number(6, HUGE32)),
    "negative versions": lambda w: get(w, number(6, MINUS_ONE)),
    "store limit huge": lambda w: get(w, number(8, HUGE32) + number(9, HUGE32)), "store limit 0": lambda w: get(w, number(8, 0)),
    "closest row before": lambda w: get(w, number(11, 1)), "consistency unknown": lambda w: get(w, number(12, 9)),
    "attribute without a name": lambda w: get(w, text(3, text(2, b"v"))),
    "attribute _AUTHORIZATIONS_": lambda w: get(w, text(3, text(1, b"VISIBILITY") + text(2, b"\xff"))),
}

MUTATE = {
    "empty": lambda w: b"", "without mutation": lambda w: at(w.low), "without region": lambda w: text(2, mutation()),
    "mutation empty": lambda w: at(w.low) + text(2, b""), "of a disabled table": lambda w: mutate(w, region=w.of_disabled),
    **each("region", REGIONS, lambda w, v: text(1, v) + text(2, mutation())),
    "without a type": lambda w: at(w.low) + text(2, text(1, b"a") + column()), "type unknown": lambda w: mutate(w, 9, columns=column()),
    "without a row": lambda w: at(w.low) + text(2, number(2, PUT) + column()), "durability unknown": lambda w: mutate(w, more=number(6, 9)),
    **{f"{name} {case}": build for kind, name in ((PUT, "put"), (DELETE, "delete"), (APPEND, "append"), (INCREMENT, "increment")) for case, build in {
        **each("row", ROWS, lambda w, v, k=kind: mutate(w, k, v)),
        **each("family", NAMES_OF_FAMILIES, lambda w, v, k=kind: mutate(w, k, columns=column(v, b"n", b"\0" * 8))),
        "without columns": lambda w, k=kind: mutate(w, k, columns=b""), "family without a name": lambda w,
        k=kind: mutate(w, k, columns=text(3, text(2, text(1, b"q")))),
        "family without columns": lambda w, k=kind: mutate(w, k, columns=text(3, text(1, b"f"))),
        "column without a qualifier": lambda w, k=kind: mutate(w, k, columns=text(3, text(1, b"f") + text(2, text(2, b"\0" * 8)))),
        "column without a value": lambda w, k=kind: mutate(w, k, columns=text(3, text(1, b"f") + text(2, text(1, b"n")))),
        "qualifier of 70000 bytes": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"x" * 70000, b"\0" * 8)),
        "time negative": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"n", b"\0" * 8, number(3, MINUS_ONE - 4))),
        "time of the mutation negative": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"n", b"\0" * 8), more=number(4, MINUS_ONE - 4)),
        "time far ahead": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"n2", b"\0" * 8, number(3, HUGE64 - 1))),
        "tags malformed": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"n", b"\0" * 8, text(5, b"\xff"))),
        "tags of 70000 bytes": lambda w, k=kind: mutate(w, k, columns=column(b"f", b"n", b"\0" * 8, text(5, b"\x00\x03\x40xx" * 14000))),
        "attribute without a name": lambda w, k=kind: mutate(w, k, more=text(5, text(2, b"v"))),
        "attribute _ttl of 3 bytes": lambda w, k=kind: mutate(w, k, more=text(5, text(1, b"_ttl") + text(2, b"abc"))),
        "cells that are not sent": lambda w, k=kind: mutate(w, k, columns=b"", more=number(8, 5)),
        "number of cells negative": lambda w, k=kind: mutate(w, k, columns=b"", more=number(8, MINUS_ONE)),
        "nonce 0": lambda w, k=kind: mutate(w, k, more=number(9, 0), rest=number(4, 0)),
        "condition on another row": lambda w, k=kind: mutate(w, k, rest=text(3, condition(b"b"))),
        "condition without a row": lambda w, k=kind: mutate(w, k, rest=text(3, text(2, b"f"))),
    }.items()},
    "delete of an unknown kind": lambda w: mutate(w, DELETE, columns=column(more=number(4, 9))),
    "increment by 3 bytes": lambda w: mutate(w, INCREMENT, columns=column(b"f", b"n", b"abc")),
    "increment of a text": lambda w: mutate(w, INCREMENT, columns=column(b"f", b"q", b"\0" * 8)),
    **each("increment, times", TIMES, lambda w, v: mutate(w, INCREMENT, more=text(7, v))),
    **each("append, times", TIMES, lambda w, v: mutate(w, APPEND, more=text(7, v))),
    **each("condition, row", ROWS, lambda w, v: mutate(w, rest=text(3, condition(v)))),
    **each("condition, family", NAMES_OF_FAMILIES, lambda w, v: mutate(w, rest=text(3, condition(family=v)))),
    **each("condition, times", TIMES, lambda w, v: mutate(w, rest=text(3, condition(compare=3, more=text(6, v))))),
    **each("condition, filter", BAD_FILTERS, lambda w, v: mutate(w, rest=text(3, text(1, b"a") + text(7, v)))),
    "condition of nothing": lambda w: mutate(w, rest=text(3, text(1, b"a"))), "condition without an operator": lambda w: mutate(
        w, rest=text(3, text(1, b"a") + text(2, b"f") + text(3, b"q") + text(5, text(1, FILTERS + "NullComparator")))),
    "condition with an unknown operator": lambda w: mutate(w, rest=text(3, condition(compare=9))),
    "condition without a comparator": lambda w: mutate(w, rest=text(3, text(1, b"a") + text(2, b"f") + text(3, b"q") + number(4, 2))),
    "condition with an unknown comparator": lambda w: mutate(w, rest=text(3, condition(comparator=text(1, b"com.example.Nobody")))),
    "condition with a comparator without a name": lambda w: mutate(w, rest=text(3, condition(comparator=text(2, b"")))),
    "condition with a malformed comparator": lambda w: mutate(w, rest=text(3, condition(comparator=text(1, FILTERS + "BinaryComparator") + text(2, b"\xff")))),
}

SCAN = {
    "empty": lambda w: b"", "without scan": lambda w: at(w.low), "without region": lambda w: text(2, b""),
    "of a disabled table": lambda w: scan(w, region=w.of_disabled),
    **each("region", REGIONS, lambda w, v: text(1, v) + text(2, b"")),
    **each("start row", ROWS, lambda w, v: scan(w, text(3, v), number(4, 1))),
    **each("end row", ROWS, lambda w, v: scan(w, text(4, v), number(4, 1))),
    "rows backwards": lambda w: scan(w, text(3, b"c") + text(4, b"b"), number(4, 1)),
    "reversed, start row of another region": lambda w: scan(w, text(3, b"n") + number(15, 1), number(4, 1)),
    **each("family", NAMES_OF_FAMILIES, lambda w, v: scan(w, text(1, text(1, v)), number(4, 1))),
    "family without a name": lambda w: scan(w, text(1, text(2, b"q"))),
    **each("times", TIMES, lambda w, v: scan(w, text(6, v), number(4, 1))),
    **each("times of a family", TIMES, lambda w, v: scan(w, text(19, text(1, b"f") + text(2, v)), number(4, 1))),
    **each("filter", BAD_FILTERS, lambda w, v: scan(w, text(5, v), number(4, 1))),
    "versions 0": lambda w: scan(w, number(7, 0), number(4, 1)), "batch huge": lambda w: scan(w, number(9, HUGE32), number(4, 1)),
    "batch with a filter of whole rows": lambda w: scan(w, number(9, 2) + text(5, a_filter(FILTERS + "SkipFilter", text(1, a_filter(FILTERS + "PageFilter", number(1, 1))))), number(4, 1)),
    "result size 0": lambda w: scan(w, number(10, 0), number(4, 1)), "result size huge": lambda w: scan(w, number(10, MINUS_ONE), number(4, 1)),
    "store limit huge": lambda w: scan(w, number(11, HUGE32) + number(12, HUGE32), number(4, 1)),
    "caching huge": lambda w: scan(w, number(17, HUGE32), number(4, 1)),
    "read point huge": lambda w: scan(w, number(20, HUGE64), number(4, 1)), "kind of read unknown": lambda w: scan(w, number(23, 9), number(4, 1)),
    "attribute without a name": lambda w: scan(w, text(2, text(2, b"v"))),
    "no rows": lambda w: scan(w, more=number(4, 0)), "rows huge": lambda w: scan(w, more=number(4, HUGE32)),
    "rows negative": lambda w: scan(w, more=number(4, MINUS_ONE)),
    "limit huge": lambda w: scan(w, more=number(4, 1) + number(11, HUGE32)), "closed at once": lambda w: scan(w, more=number(4, 1) + number(5, 1)),
    "renewed at once": lambda w: scan(w, more=number(4, 1) + number(10, 1)),
    "call number without a scanner": lambda w: scan(w, more=number(4, 1) + number(6, 7)),
    "scanner 0": lambda w: number(3, 0) + number(4, 1), "scanner unknown": lambda w: number(3, 999) + number(4, 1),
    "scanner huge": lambda w: number(3, MINUS_ONE) + number(4, 1),
    "scanner unknown, closed": lambda w: number(3, 999) + number(5, 1), "scanner unknown, renewed": lambda w: number(3, 999) + number(10, 1),
    "scanner closed": lambda w: number(3, w.closed()) + number(4, 1), "scanner closed, closed": lambda w: number(3, w.closed()) + number(5, 1),
    "scanner closed, renewed": lambda w: number(3, w.closed()) + number(10, 1),
    "scanner and scan": lambda w: scan(w, more=number(3, w.opened()) + number(4, 1)),
    "scanner, call number too high": lambda w: number(3, w.opened()) + number(4, 1) + number(6, 9),
    "scanner, call number repeated": lambda w: number(3, w.opened()) + number(4, 1) + number(6, 0),
    "scanner, call number huge": lambda w: number(3, w.opened()) + number(4, 1) + number(6, MINUS_ONE),
    "scanner, no rows": lambda w: number(3, w.opened()) + number(4, 0),
    "scanner, no number of rows": lambda w: number(3, w.opened()), "scanner, rows huge": lambda w: number(3, w.opened()) + number(4, HUGE32),
    "scanner renewed and closed": lambda w: number(3, w.opened()) + number(5, 1) + number(10, 1),
    "scanner renewed with a call number": lambda w: number(3, w.opened()) + number(6, 9) + number(10, 1),
}

MULTI = {
    "empty": lambda w: b"", "without region": lambda w: text(1, action(0, got=text(1, b"a"))), "without actions": lambda w: multi(w),
    "region action empty": lambda w: text(1, b""), "of a disabled table": lambda w: multi(w, action(0, mutation()), region=w.of_disabled),
    **each("region", REGIONS, lambda w, v: text(1, text(1, v) + action(0, got=text(1, b"a")))),
    "action empty": lambda w: multi(w, text(3, b"")),
    "actions of one index": lambda w: multi(w, action(0, mutation()), action(0, mutation(row=b"b"))),
    "index huge": lambda w: multi(w, action(HUGE32, mutation())), "action with two": lambda w: multi(w, action(0, mutation(), text(1, b"a"))),
    "one region absent": lambda w: multi(w, action(0, got=text(1, b"a"))) + text(1, text(1, REGIONS["absent"]) + action(1, got=text(1, b"a"))),
    "get without a row": lambda w: multi(w, action(0, got=b"")),
    **each("get, row", ROWS, lambda w, v: multi(w, action(0, got=text(1, v)), action(1, got=text(1, b"b")))),
    **each("get, family", NAMES_OF_FAMILIES, lambda w, v: multi(w, action(0, got=text(1, b"a") + text(2, text(1, v))), action(1, got=text(1, b"b")))),
    **each("get, times", TIMES, lambda w, v: multi(w, action(0, got=text(1, b"a") + text(5, v)), action(1, got=text(1, b"b")))),
    **each("get, filter", BAD_FILTERS, lambda w, v: multi(w, action(0, got=text(1, b"a") + text(4, v)), action(1, got=text(1, b"b")))),
    **{f"{name}{case}": build for atomic, name in ((b"", ""), (number(2, 1), "atomic, ")) for case, build in {
        "put without columns": lambda w, a=atomic: multi(w, action(0, mutation(columns=b"")), action(1, mutation()), more=a),
        "put without a type": lambda w, a=atomic: multi(w, action(0, text(1, b"a") + column()), action(1, mutation()), more=a),
        "put of an unknown type": lambda w, a=atomic: multi(w, action(0, mutation(9, columns=column())), action(1, mutation()), more=a),
        **each("put, row", ROWS, lambda w, v, a=atomic: multi(w, action(0, mutation(row=v)), action(1, mutation()), more=a)),
        **each("put, family", NAMES_OF_FAMILIES, lambda w, v, a=atomic: multi(w, action(0, mutation(columns=column(v))), action(1, mutation()), more=a)),
        "put, family without a name": lambda w,
        a=atomic: multi(w, action(0, mutation(columns=text(3, text(2, text(1, b"q"))))), action(1, mutation()), more=a),
        "put, time negative": lambda w,
        a=atomic: multi(w, action(0, mutation(columns=column(more=number(3, MINUS_ONE - 4)))), action(1, mutation()), more=a),
        "put, cells that are not sent": lambda w,
        a=atomic: multi(w, action(0, mutation(columns=b"", more=number(8, 5))), action(1, mutation()), more=a),
        "delete of an unknown kind": lambda w,
        a=atomic: multi(w, action(0, mutation(DELETE, columns=column(more=number(4, 9)))), action(1, mutation()), more=a),
        "delete, family unknown": lambda w, a=atomic: multi(w, action(0, mutation(DELETE, columns=column(b"x"))), action(1, mutation()), more=a),
        "delete without columns, of a row of another region": lambda w,
        a=atomic: multi(w, action(0, mutation(DELETE, b"n", b"")), action(1, mutation()), more=a),
        "increment by 3 bytes": lambda w,
        a=atomic: multi(w, action(0, mutation(INCREMENT, columns=column(b"f", b"n", b"abc"))), action(1, mutation()), more=a),
        "increment of a text": lambda w,
        a=atomic: multi(w, action(0, mutation(INCREMENT, columns=column(b"f", b"q", b"\0" * 8))), action(1, mutation()), more=a),
        "append without columns": lambda w, a=atomic: multi(w, action(0, mutation(APPEND, columns=b"")), action(1, mutation()), more=a),
        "a get between": lambda w, a=atomic: multi(w, action(0, mutation()), action(1, got=text(1, b"a")), action(2, mutation()), more=a),
    }.items()},
    "atomic, two rows": lambda w: multi(w, action(0, mutation()), action(1, mutation(row=b"b")), more=number(2, 1)),
    "condition on another row": lambda w: multi(w, action(0, mutation()), more=number(2, 1) + text(4, condition(b"b"))),
    "condition, not atomic": lambda w: multi(w, action(0, mutation()), more=text(4, condition())),
    "condition of nothing": lambda w: multi(w, action(0, mutation()), more=number(2, 1) + text(4, text(1, b"a"))),
    "condition without a row": lambda w: multi(w, action(0, mutation()), more=number(2, 1) + text(4, text(2, b"f"))),
    "condition on a get": lambda w: multi(w, action(0, got=text(1, b"a")), more=number(2, 1) + text(4, condition())),
    "condition without actions": lambda w: multi(w, more=number(2, 1) + text(4, condition())),
    "condition of the request": lambda w: multi(w, action(0, mutation()), more=number(2, 1), rest=text(3, condition())),
    "condition of the request without a row": lambda w: multi(w, action(0, mutation()), more=number(2, 1), rest=text(3, text(2, b"f"))),
    "call without its fields": lambda w: multi(w, action(0, call=b"")),
    "call of an unknown service": lambda w: multi(w, action(0, call=call_of("Nobody", "No"))),
    "call of an unknown method": lambda w: multi(w, action(0, call=call_of("AggregateService", "No")), region=w.with_endpoints),
}

EXEC = {
    "empty": lambda w: b"", "without call": lambda w: at(w.with_endpoints), "without region": lambda w: text(2, call_of("Nobody", "No")),
    "call without its fields": lambda w: at(w.with_endpoints) + text(2, b""),
    "of a disabled table": lambda w: at(w.of_disabled) + text(2, call_of("Nobody", "No")),
    **each("region", REGIONS, lambda w, v: text(1, v) + text(2, call_of("Nobody", "No"))),
    **each("row", ROWS, lambda w, v: at(w.low) + text(2, call_of("Nobody", "No", row=v))),
    **each("service", {"unknown": "Nobody", "empty": "", "long": LONG}, lambda w, v: at(w.with_endpoints) + text(2, call_of(v, "No"))),
    **each("method", {"unknown": "No", "empty": "", "long": LONG}, lambda w, v: at(w.with_endpoints) + text(2, call_of("AggregateService", v))),
    **{f"Aggregate, {case}": lambda w, m=m: at(w.with_endpoints) + text(2, call_of("AggregateService", "GetMax", m)) for case, m in {
        "empty": b"", "garbage": b"\xff", "without scan": text(1, "x"),
        "unknown interpreter": text(1, "com.example.Nobody") + text(2, text(1, text(1, "f"))),
        "without family": text(1, "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter") + text(2, b""),
        "family unknown": text(1, "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter") + text(2, text(1, text(1, "x"))),
        "value no number": text(1, "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter") + text(2, text(1, text(1, "f"))),
    }.items()},
    **{f"MutateRows, {case}": lambda w, m=m: at(w.with_endpoints) + text(2, call_of("MultiRowMutationService", "MutateRows", m)) for case, m in {
        "empty": b"", "garbage": b"\xff", "mutation empty": text(1, b""), "without columns": text(1, mutation(columns=b"")),
        "type unknown": text(1, mutation(9, columns=column())),
        "family unknown": text(1, mutation(columns=column(b"x"))),
        "family without a name": text(1, mutation(columns=text(3, text(2, text(1, b"q"))))),
        "row empty": text(1, mutation(row=b"")), "row long": text(1, mutation(row=b"a" * 32768)), "append": text(1, mutation(APPEND)),
        "increment": text(1, mutation(INCREMENT)),
        "region absent": text(1, mutation()) + text(4, REGIONS["absent"]), "condition without a row": text(1, mutation()) + text(5, text(2, b"f")),
        "condition of nothing": text(1, mutation()) + text(5, text(1, b"a")),
        "condition, family unknown": text(1, mutation()) + text(5, condition(family=b"x")),
        "time negative": text(1, mutation(columns=column(more=number(3, MINUS_ONE - 4)))),
    }.items()},
}

SERVER_EXEC = {
    "empty": lambda w: b"", "without region": lambda w: text(2, call_of("Nobody", "No")), "without call": lambda w: at(w.low),
    "call without its fields": lambda w: at(w.low) + text(2, b""),
    "service unknown": lambda w: at(w.low) + text(2, call_of("Nobody", "No")), "service long": lambda w: at(w.low) + text(2, call_of(LONG, "No")),
}


def bulk(w, family=b"f", path=b"/nowhere/file", more=b"", region=None):
    return at(region or w.low) + text(2, text(1, family) + text(2, path)) + more


BULK = {
    "empty": lambda w: b"", "without region": lambda w: text(2, text(1, b"f") + text(2, b"/x")), "without files": lambda w: at(w.low),
    "file without its fields": lambda w: at(w.low) + text(2, b""), "of a disabled table": lambda w: bulk(w, region=w.of_disabled),
    **each("region", REGIONS, lambda w, v: text(1, v) + text(2, text(1, b"f") + text(2, b"/x"))),
    **each("family", NAMES_OF_FAMILIES, lambda w, v: bulk(w, v)),
    **each("path", {"absent": b"/nowhere/file", "empty": b"", "relative": b"x", "above": b"../../x", "long": b"/" + LONG, "a folder": b"/", "of an unknown scheme": b"nobody://x/y",
                    "with a NUL": b"/a\0b"}, lambda w, v: bulk(w, path=v)),
    "token empty": lambda w: bulk(w, more=text(5, b"")), "token unknown": lambda w: bulk(w, more=text(5, b"nobody")),
    "token above": lambda w: bulk(w, more=text(5, b"../../..")),
}


def of_table(name, field=1):
    return text(field, bad_inputs.table_message(name))


PREPARE = {
    "empty": lambda w: b"", "table without its fields": lambda w: text(1, b"") + text(2, hbase.region(w.low)),
    "without region": lambda w: of_table(b"t"),
    **each("table", {**bad_inputs.NAMES, "in an absent namespace": b"absent:t"}, lambda w, v: of_table(v) + text(2, hbase.region(w.low))),
    **each("region", REGIONS, lambda w, v: of_table(b"t") + text(2, v)),
    "of a disabled table": lambda w: of_table(b"d") + text(2, hbase.region(w.of_disabled)),
}
CLEANUP = {
    "empty": lambda w: b"", "without region": lambda w: text(1, "x"), **each("region", REGIONS, lambda w, v: text(1, "x") + text(2, v)),
    **each("token", {"empty": b"", "absent": b"nobody", "relative": b"../../x", "absolute": b"/nowhere/x", "long": LONG, "with a NUL": b"a\0b", "of an unknown scheme": b"nobody://x/y"},
           lambda w, v: text(1, v) + text(2, hbase.region(w.low))),
}

CLIENT = {"Get": GET, "Mutate": MUTATE, "Scan": SCAN, "Multi": MULTI, "ExecService": EXEC, "ExecRegionServerService": SERVER_EXEC, "BulkLoadHFile": BULK,
          "PrepareBulkLoad": PREPARE, "CleanupBulkLoad": CLEANUP}

GROUPS_NAMED = {"absent": b"absent", "long": b"x" * 1000, "illegal": b"a b!", "empty": b"", "default": b"default"}
HOSTS = {"absent": text(1, b"absent") + number(2, 1), "empty": text(1, b""), "long": text(1, LONG) + number(2, 1), "illegal": text(1, b"a b/") + number(2, 1),
         "without port": text(1, b"absent"), "port huge": text(1, b"absent") + number(2, HUGE32)}
TABLES = {**bad_inputs.NAMES, "in an absent namespace": b"absent:t", "meta": b"hbase:meta"}


GROUPS = {
    **{method: {"empty": b"", **{f"group {case}": text(1, name) for case, name in GROUPS_NAMED.items()}} for method in ("GetRSGroupInfo", "RemoveRSGroup", "BalanceRSGroup", "UpdateRSGroupConfig")},
    "AddRSGroup": {"empty": b"", **{f"group {case}": text(1, name) for case, name in GROUPS_NAMED.items() if case != "absent"}, "group that exists": text(1, "g")},
    "GetRSGroupInfoOfTable": {"empty": b"", "table without its fields": text(1, b""), **{f"table {case}": of_table(name, 1) for case, name in TABLES.items()}},
    "GetRSGroupInfoOfServer": {"empty": b"", "server without its fields": text(2, b""), **{f"server {case}": text(2, host) for case, host in HOSTS.items()}},
    "MoveServers": {"empty": b"", "no servers": text(1, "g"), "server without its fields": text(1, "g") + text(3, b""),
                    **{f"group {case}": text(1, name) + text(3, HOSTS["absent"]) for case, name in GROUPS_NAMED.items()},
                    **{f"server {case}": text(1, "g") + text(3, host) for case, host in HOSTS.items()}},
    "MoveTables": {"empty": b"", "no tables": text(1, "g"), "table without its fields": text(1, "g") + text(2, b""),
                   **{f"group {case}": text(1, name) + of_table(b"t", 2) for case, name in GROUPS_NAMED.items()},
                   **{f"table {case}": text(1, "g") + of_table(name, 2) for case, name in TABLES.items()}},
    "MoveServersAndTables": {"empty": b"", "no servers": text(1, "g") + of_table(b"t", 3), "no tables": text(1, "g") + text(2, HOSTS["absent"]),
                             **{f"group {case}": text(1, name) + text(2, HOSTS["absent"]) + of_table(b"t", 3) for case, name in GROUPS_NAMED.items()},
                             **{f"table {case}": text(1, "g") + text(2, HOSTS["absent"]) + of_table(name, 3) for case, name in TABLES.items()}},
    "RemoveServers": {"empty": b"", "server without its fields": text(1, b""), **{f"server {case}": text(1, host) for case, host in HOSTS.items()}},
    "RenameRSGroup": {"empty": b"", "without new name": text(1, "g"), **{f"group {case}": text(1, name) + text(2, "h") for case, name in GROUPS_NAMED.items()},
                      **{f"new name {case}": text(1, "g") + text(2, name) for case, name in GROUPS_NAMED.items() if case not in ("absent", "long")}},
    "ListRSGroupInfos": {"garbage": b"\xff"}, "Nothing": {"unknown method": b""},
}


def run(world, report):
    for method, cases in CLIENT.items():
        for case, build in cases.items():
            if matrix.is_selected(method, case):
                try_one(world, report, "ClientService", method, case, lambda build=build: build(world))
    for method, cases in GROUPS.items():
        for case, message in cases.items():
            if matrix.is_selected(method, case):
                try_one(world, report, "MasterService", method, case, lambda message=message, method=method: group_call(method, message), "ExecMasterService")


def try_one(world, report, service, title, case, build, method=None):
    world.refill()
    message = build()
    before = world.content()
    outcome = world.outcome(service, method or title, message)
    is_refused = outcome != "ok" and ": ok" not in outcome
    report(title, case, outcome, is_refused and world.content() != before)


SETTINGS = {"hbase.coprocessor.master.classes": "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint"}
OF_HBASE = {"hbase.master.loadbalancer.class": "org.apache.hadoop.hbase.rsgroup.RSGroupBasedLoadBalancer"}
MATRIX = matrix.Matrix("bad_data_inputs", [*CLIENT, *GROUPS], World, run, SETTINGS, OF_HBASE)

if __name__ == "__main__":
    sys.exit(MATRIX.main())
