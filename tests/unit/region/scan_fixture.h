/* SPDX-License-Identifier: Apache-2.0 */
/* A region scanner on a region made by hand (by_hand.h): its rows, its filter, its results as text. */
#ifndef RQ_TESTS_SCAN_FIXTURE_H
#define RQ_TESTS_SCAN_FIXTURE_H

#include "by_hand.h"

#include "region/region_scanner_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct scan_fixture {
    by_hand world;
    uint64_t seqid;
    rq_arena arena;
    rq_read_ctx ctx;
    rq_scan scan;
    rq_scan_limits limits;
    rq_region_scanner *scanner;
    rq_cellblock out;
    rq_scan_state state;
    rq_error why;
    char text[2048];
} scan_fixture;

/* Families f and g, rows r1 … r<rows>, columns a … in each: timestamp 1, value = the column. */
scan_fixture *scan_fixture_new(int rows, int columns);
void scan_fixture_free(scan_fixture *f);
void scan_fixture_flush(scan_fixture *f);
/* Opens f->scanner for f->scan. */
rq_err scan_fixture_open(scan_fixture *f);
void scan_fixture_close(scan_fixture *f);
/* One result as text: "r1 f:a f:b"; valid until the next call. */
const char *scan_fixture_next(scan_fixture *f);
/* Reads the next result into f->out in slices as short as possible. */
rq_err scan_next_in_slices(scan_fixture *f, unsigned *ret_yields);
/* Adds cells to row r1, family g. */
void scan_widen(scan_fixture *f, int cells, const rq_slice value);

/* Filters whose only parameter is a number. */
void scan_set_number_filter(scan_fixture *f, const char *name, uint64_t n);
/* Sets a filter family:a = value; rows without the column do not pass. */
void scan_set_value_filter(scan_fixture *f, const char *family, const char *value);
/* A filter in the text form of the shell. */
void scan_set_language_filter(scan_fixture *f, const char *text);

#define assert_next(f, text, expected_state)                                                       \
    do {                                                                                           \
        assert_string_equal(scan_fixture_next(f), text);                                           \
        assert_int_equal((f)->state, expected_state);                                              \
    } while (0)

#endif
