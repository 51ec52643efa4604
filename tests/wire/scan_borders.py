#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The form of a scan's responses at the end of a region.

A client from 2.0 on gets no response that both completes a result and ends a region after which its scan
continues: with such a response AsyncTableResultScanner can lose its wake-up and wait forever. An
additional, empty response ends the region. Every other end is reported with the last results.
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import hbase  # pylint: disable=wrong-import-position
import rorqual  # pylint: disable=wrong-import-position
from hbase import fields, number, text  # pylint: disable=wrong-import-position

TABLE = "borders"
ROWS = 5        # rows of each region, with two cells each
NEW = ["2.0.0", "2.6.1", "3.0.0-beta-1"]
OLD = ["1.7.1", None]
FILTERS = "org.apache.hadoop.hbase.filter."


def page_filter(rows):
    return text(5, text(1, FILTERS + "PageFilter") + text(2, number(1, rows)))


def column_prefix(prefix):
    return text(5, text(1, FILTERS + "ColumnPrefixFilter") + text(2, text(1, prefix)))


def rows_and(scan=b"", rows=100):
    return text(2, scan + number(17, rows)) + number(4, rows)


class Answer:
    def __init__(self, got):
        self.results = [fields(r) for r in got.get(5, [])]
        self.more = got.get(3, [1])[0]
        self.more_in_region = got.get(8, [1])[0]
        self.heartbeat = got.get(9, [0])[0]

    def shape(self):
        """Number of results, whether the last is partial, more results, more results in the region."""
        partial = self.results[-1].get(5, [0])[0] if self.results else 0
        return len(self.results), partial, self.more, self.more_in_region

    def ends(self):
        return not self.more or not self.more_in_region


# Shapes: a response with results, and the response that only ends the region.
def held(results, partial=0):
    return results, partial, 1, 1


END = (0, 0, 1, 0)


class Scans:
    """A connection of a client of some version, and the regions of the table."""

    def __init__(self, server, version, regions):
        self.c = hbase.Connection(server.regionserver, version=version)
        self.regions = regions

    def walk(self, which, request, next_request=number(4, 100), between=None):
        """The shapes of all responses until the region or the scan ends."""
        request += number(7, 1) + number(8, 1)
        got = self.c.call("Scan", text(1, hbase.region(self.regions[which][1])) + request)
        answers, scanner, seq = [Answer(got)], got[2][0], 0
        while not answers[-1].ends():
            assert len(answers) < 50, "the region does not end"
            if between:
                seq = between(scanner, seq)
            got = self.c.call("Scan", number(3, scanner) + next_request + number(6, seq) +
                              number(7, 1) + number(8, 1))
            seq += 1
            answers.append(Answer(got))
            assert not answers[-1].heartbeat
        return [a.shape() for a in answers]


def expect(got, *wanted):
    assert got == list(wanted), f"{got}, not {list(wanted)}"


# ---- clients from 2.0 on


def a_region_ends_with_an_empty_answer(s):
    for which in (0, 1):
        expect(s.walk(which, rows_and()), held(ROWS), END)
        expect(s.walk(which, rows_and(rows=2), number(4, 2)), held(2), held(2), held(1), END)


def the_last_region_ends_with_its_results(s):
    expect(s.walk(2, rows_and()), (ROWS, 0, 1, 0))


def an_opening_without_results_ends_at_once(s):
    expect(s.walk(0, rows_and(text(3, "e"))), END)
    expect(s.walk(0, rows_and(page_filter(0))), (0, 0, 0, 0))


def a_stop_row_inside_ends_with_the_results(s):
    border = s.regions[0][0] or s.regions[1][0]
    expect(s.walk(0, rows_and(text(4, "d3"))), (3, 0, 1, 0))
    expect(s.walk(0, rows_and(text(4, border))), (ROWS, 0, 1, 0))
    expect(s.walk(0, rows_and(text(4, border) + number(22, 1))), held(ROWS), END)
    expect(s.walk(0, rows_and(text(4, "zz"))), held(ROWS), END)


def reversed_scans_end_likewise(s):
    back = number(15, 1)
    for which in (1, 2):
        expect(s.walk(which, rows_and(back)), held(ROWS), END)
        border = s.regions[which][0]
        expect(s.walk(which, rows_and(back + text(4, border))), (ROWS, 0, 1, 0))
        expect(s.walk(which, rows_and(back + text(4, "a"))), held(ROWS), END)
    expect(s.walk(0, rows_and(back)), (ROWS, 0, 1, 0))


def a_row_limit_ends_the_scan(s):
    limit = number(11, ROWS)
    expect(s.walk(0, rows_and() + limit), (ROWS, 0, 0, 0))
    expect(s.walk(0, rows_and() + number(11, ROWS + 1)), held(ROWS), END)


def a_filter_that_is_done_ends_its_region_only(s):
    for rows in (2, ROWS, ROWS + 1):
        expect(s.walk(0, rows_and(page_filter(rows))), held(min(rows, ROWS)), END)


def a_client_that_closes_gets_no_more(s):
    expect(s.walk(0, rows_and() + number(5, 1)), (ROWS, 0, 1, 0))


def closing_takes_the_place_of_the_empty_answer(s):
    expect(s.walk(0, rows_and(), number(4, 100) + number(5, 1)), held(ROWS), END)
    got = s.c.call("Scan", text(1, hbase.region(s.regions[0][1])) + rows_and())
    s.c.call("Scan", number(3, got[2][0]) + number(5, 1))


def a_lease_can_be_renewed_before_it(s):
    def renew(scanner, seq):
        s.c.call("Scan", number(3, scanner) + number(4, 0) + number(6, seq) + number(10, 1))
        return seq + 1
    expect(s.walk(0, rows_and(), between=renew), held(ROWS), END)


def a_pending_partial_result_is_completed_first(s):
    """The first cell of each row, in batches of one: the server learns too late whether the row continues, so
    the empty next response completes the last result in the client."""
    first = number(9, 1) + column_prefix(b"a")
    expect(s.walk(0, rows_and(first, ROWS), number(4, ROWS)), held(ROWS, 1), held(0), END)
    expect(s.walk(0, rows_and(first)), held(ROWS), END)
    expect(s.walk(2, rows_and(first, ROWS), number(4, ROWS)), held(ROWS, 1), END)


def a_row_that_ends_as_a_partial_result_counts_for_the_limit(s):
    """The result is complete: a client that counted it as partial would continue with a limit of 0, meaning no limit."""
    first, limit = number(9, 1) + column_prefix(b"a"), number(11, ROWS)
    expect(s.walk(0, rows_and(first, ROWS) + limit, number(4, ROWS) + number(11, 1)),
           held(ROWS, 1), (0, 0, 0, 0))
    expect(s.walk(0, rows_and(first) + limit), (ROWS, 0, 0, 0))
    expect(s.walk(0, rows_and(first) + number(11, ROWS + 1)), held(ROWS), END)


# ---- older clients, and clients that send no version


def a_region_ends_with_its_results(s):
    expect(s.walk(0, rows_and()), (ROWS, 0, 1, 0))
    expect(s.walk(1, rows_and(number(15, 1))), (ROWS, 0, 1, 0))


TESTS = [(t, NEW) for t in (
    a_region_ends_with_an_empty_answer, the_last_region_ends_with_its_results,
    an_opening_without_results_ends_at_once, a_stop_row_inside_ends_with_the_results,
    reversed_scans_end_likewise, a_row_limit_ends_the_scan, a_filter_that_is_done_ends_its_region_only,
    a_client_that_closes_gets_no_more, closing_takes_the_place_of_the_empty_answer,
    a_lease_can_be_renewed_before_it, a_pending_partial_result_is_completed_first,
    a_row_that_ends_as_a_partial_result_counts_for_the_limit,
)] + [(a_region_ends_with_its_results, OLD)]


def fill(client):
    client.create(TABLE, {"f": {}}, [b"h", b"p"])
    regions = client.regions(TABLE)
    assert len(regions) == 3, regions
    for (_, name, _), first in zip(regions, "dks"):
        for i in range(ROWS):
            client.data.put(name, f"{first}{i}".encode(), {(b"f", b"a"): b"1", (b"f", b"b"): b"2"})
    return regions


def main():
    report = rorqual.Report()
    with tempfile.TemporaryDirectory() as folder:
        server = rorqual.Server(pathlib.Path(folder, "data"), pathlib.Path(folder, "log"))
        client = hbase.Client(server)
        regions = fill(client)
        for test, versions in TESTS:
            for version in versions:
                problem, scans = None, Scans(server, version, regions)
                try:
                    test(scans)
                except (AssertionError, EOFError, OSError, KeyError, hbase.Refused) as e:
                    problem = repr(e)
                scans.c.close()
                report.outcome(f"scan_borders/{test.__name__}/{version}", problem)
        client.close()
        report.outcome("scan_borders/stops cleanly", server.stop())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
