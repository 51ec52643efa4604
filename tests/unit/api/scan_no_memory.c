/* SPDX-License-Identifier: Apache-2.0 */
/* A program of tests/wire/library.py: scan_no_memory URL. Fails each allocation of a cluster's scan once: the
 * scan returns all rows, or the rows up to an error, never fewer. The linker wraps the malloc family. */
#include "rorqual/rorqual.h"

#include "../base/failing_memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 40, VALUE_BYTES = 3000 }; /* rows too large to share a chunk of memory */

static rq_failure why = {.size = sizeof(rq_failure)};
static _Atomic unsigned long left; /* allocations until the one that fails */

bool allocation_fails(void)
{
    return atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1;
}

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(why.code), why.message);
    return 1;
}

static rq_err put_rows(rq_table *t)
{
    static const char value[VALUE_BYTES];
    rq_err rc = RQ_OK;
    for (int i = 0; i < ROWS && rc == RQ_OK; i++) {
        char row[16];
        snprintf(row, sizeof row, "%05d", i);
        rc = rq_put_value(t, rq_text(row), rq_text("f"), rq_text("q"),
                          rq_bytes_of(value, sizeof value), &why);
    }
    return rc;
}

/* Reads rows until the end or an error. Returns their number; -1: a row is missing. */
static int read_rows(rq_scanner *s, rq_err *ret)
{
    rq_row *row = NULL;
    int count = 0;
    while ((*ret = rq_scanner_next(s, &row, &why)) == RQ_OK && row != NULL) {
        char expected[16];
        snprintf(expected, sizeof expected, "%05d", count);
        bool is_next = row->count == 1 && memcmp(row->cells[0].row.data, expected, 5) == 0;
        rq_row_free(row);
        if (!is_next) return -1;
        count++;
    }
    return count;
}

/* *ret_done: all allocations succeeded. */
static int scan(rq_table *t, unsigned long allocation, bool *ret_done)
{
    rq_scan_request request = {.size = sizeof request, .caching = ROWS / 4};
    rq_scanner *s = NULL;
    int count = 0;
    left = allocation;
    rq_err rc = rq_table_scan(t, &request, &s, &why);
    if (rc == RQ_OK) count = read_rows(s, &rc);
    *ret_done = atomic_exchange(&left, 0) > 0;
    rq_scanner_close(s);
    if (count >= 0 && (rc != RQ_OK || count == ROWS)) return 0;
    fprintf(stderr, "allocation %lu: %d rows, %s\n", allocation, count, rq_err_name(rc));
    return 1;
}

int main(int argc, char **argv)
{
    rq_db *db;
    rq_table *t;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "no_memory", .families = &family, .family_count = 1};
    bool done = false;
    int code = 0;
    if (argc != 2) return 2;
    if (rq_connect(argv[1], NULL, &db, &why) != RQ_OK) return failed("connect");
    if (rq_table_create(db, &spec, &why) != RQ_OK) return failed("create");
    if (rq_table_open(db, "no_memory", &t, &why) != RQ_OK) return failed("open");
    if (put_rows(t) != RQ_OK) return failed("put");
    for (unsigned long i = 1; !done && code == 0; i++)
        code = scan(t, i, &done);
    rq_table_close(t);
    return rq_disconnect(db, &why) != RQ_OK ? failed("disconnect") : code;
}
