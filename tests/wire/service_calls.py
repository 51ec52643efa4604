#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of coprocessor endpoints inside a Multi, requests to endpoints that no client would send, and a region
closed and opened by hand.

The table is hbase:meta, which has MultiRowMutationEndpoint. The Java client sends service names in a
Multi with their package, under which neither HBase nor this server knows these services, so the calls are
encoded here.
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from bad_bytes import HELLO, Connection, delimited, fields, frame, header, number, read_varint, text

META = text(2, b"hbase:meta,,1") + number(1, 1)
SERVICE = "MultiRowMutationService"
PROTOCOL = "org.apache.hadoop.hbase.exceptions.UnknownProtocolException"


def call(service, method, request, row=b""):
    return text(1, row) + text(2, service) + text(3, method) + text(4, request)


def ask(connection, method, param):
    connection.send(frame(delimited(number(1, 1) + text(3, method) + number(4, 1)) +
                          delimited(param)))
    return connection.answer()


def message(body):
    length, at = read_varint(body, 0)
    return body[at:at + length]


def repeated(data, wanted):
    """All values of one length-delimited field."""
    at, out = 0, []
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 2:
            length, at = read_varint(data, at)
            if tag >> 3 == wanted:
                out.append(data[at:at + length])
            at += length
        else:
            _, at = read_varint(data, at)
    return out


def exec_service(connection):
    _, exception, body = ask(connection, "ExecService",
                             text(1, META) + text(2, call(SERVICE, "MutateRows", b"")))
    assert exception is None, (exception, body)
    value = fields(fields(message(body))[2])
    assert value[1].endswith(b"MultiRowMutationProtos$MutateRowsResponse"), value
    assert value[2] == b"\x08\x01", value


def many_in_a_multi(connection):
    count = 3000
    actions = b""
    for i in range(count):
        service = "NobodysService" if i % 3 == 2 else SERVICE
        actions += text(3, number(1, i) + text(4, call(service, "MutateRows", b"")))
    _, exception, body = ask(connection, "Multi", text(1, text(1, META) + actions))
    assert exception is None, (exception, body)
    results = repeated(repeated(message(body), 1)[0], 1)
    assert len(results) == count, len(results)
    for i, result in enumerate(results):
        got = fields(result)
        assert got.get(1, 0) == i, (i, got)
        if i % 3 == 2:
            assert fields(got[3])[1].decode() == PROTOCOL, got
        else:
            assert fields(fields(got[4])[1])[2] == b"\x08\x01", got


def refused(connection, expected_class, expected_text, param):
    _, exception, words = ask(connection, "ExecService", param)
    assert exception == expected_class, (exception, words)
    assert expected_text in words, words


def unknown_method(connection):
    refused(connection, PROTOCOL, "Unknown method Mutate called on service hbase.pb." + SERVICE,
            text(1, META) + text(2, call(SERVICE, "Mutate", b"")))


def with_its_package(connection):
    refused(connection, PROTOCOL, "No registered coprocessor service found for hbase.pb." + SERVICE +
            " in region hbase:meta,,1",
            text(1, META) + text(2, call("hbase.pb." + SERVICE, "MutateRows", b"")))


def broken_request(connection):
    refused(connection, "org.apache.hadoop.hbase.DoNotRetryIOException", "is not a MutateRowsRequest",
            text(1, META) + text(2, call(SERVICE, "MutateRows", b"\x0a\x7f")))


def not_a_system_tables_endpoint(connection):
    refused(connection, PROTOCOL, "No registered coprocessor service found for AggregateService",
            text(1, META) + text(2, call("AggregateService", "GetRowNum", b"")))


def answer_of(call_it, *arguments):
    """The response's fields, or the exception's class."""
    try:
        return call_it(*arguments)
    except hbase.Refused as e:
        return e.name


def unassigned_and_assigned(server):
    c = hbase.Client(server)
    c.create("moved", {"f": {}})
    name = c.regions("moved")[0][1]
    spec, cells = text(1, hbase.region(name)), {(b"f", b"q"): b"v"}
    c.data.put(name, b"row", cells)
    for _ in range(2):
        assert c.master.call("UnassignRegion", spec) == {}
        assert answer_of(c.data.get, name, b"row") == "NotServingRegionException"
        assert c.master.call("AssignRegion", spec) == {}
        assert answer_of(c.data.get, name, b"row") == cells
    nobodys = text(1, hbase.region(b"0123456789abcdef0123456789abcdef"))
    assert answer_of(c.master.call, "AssignRegion", nobodys) == "UnknownRegionException"
    c.close()


TESTS = [exec_service, many_in_a_multi, unknown_method, with_its_package, broken_request,
         not_a_system_tables_endpoint]


def main():
    report = rorqual.Report()
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))

        def on_a_connection(test):
            with Connection(server.regionserver, HELLO[:6] + header("ClientService")) as c:
                test(c)

        for test in [*TESTS, unassigned_and_assigned]:
            problem = None
            try:
                if test in TESTS:
                    on_a_connection(test)
                else:
                    test(server)
            except (AssertionError, EOFError, OSError, KeyError, IndexError) as e:
                problem = repr(e)
            report.outcome(f"service_calls/{test.__name__}", problem)
        report.outcome("service_calls/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
