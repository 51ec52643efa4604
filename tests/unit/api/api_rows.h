/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of test_api: the database of the URL under test, tables and rows as text. */
#ifndef RQ_TESTS_API_ROWS_H
#define RQ_TESTS_API_ROWS_H

#include "api_test.h"

/* Opened once for the tests of a part; each test has tables of its own. */
typedef struct fixture {
    const char *url;
    bool no_threads; /* field of rq_connect_options */
    rq_db *db;
} fixture;

extern fixture at;
extern rq_failure why;

/* Makes a table with the families f, which keeps this many versions, and g. */
rq_table *make(const char *name, const char *versions, const rq_bytes *splits, size_t count);
/* Closes and drops the table. */
void finish(rq_table *t, const char *name);
void put(rq_table *t, const char *row, const char *family, const char *qualifier, const char *value,
         int64_t timestamp);
/* Deletes in the family f. */
rq_err erase(rq_table *t, const char *row, rq_delete_scope scope, const char *qualifier,
             int64_t timestamp);
/* The row's cells as "f:q@ts=value …"; freed by the caller. */
char *text_of(const rq_row *row);
void expect_get(rq_table *t, const rq_get_request *get, const char *expected);
/* Compares all versions of a row with the text. */
void expect_row(rq_table *t, const char *row, const char *expected);
/* Setup and teardown of a part. */
int open_db(void **state);
int close_db(void **state);

/* The parts. Each returns the number of tests that failed. */
int run_definitions(void);
int run_gets(void);
int run_changes(void);
int run_batches(void);
int run_scans(void);
int run_fetch_ahead(void);
int run_options(void);
int run_life(void);
int run_refused(void);

#endif
