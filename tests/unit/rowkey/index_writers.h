/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of indexes share: random writers that meet, and writers that are killed, after which table
 * and index must agree. */
#ifndef RQ_TESTS_INDEX_WRITERS_H
#define RQ_TESTS_INDEX_WRITERS_H

#include "../api/api_test.h"

#include "rorqual/rowkey.h"

typedef struct index_kind {
    const char *table, *entries; /* their names */
    rq_index *(*open)(rq_db *db, bool unique);
    void (*create)(rq_db *db); /* the table */
    /* A put or, rarely, a delete of a random row. */
    rq_err (*write)(rq_index *x, uint64_t *state, rq_failure *failure);
    /* Fails unless table and index agree; returns the number of rows that have a value. */
    size_t (*check)(rq_db *db, rq_index *x, bool unique);
    unsigned writes, writes_per_repair; /* of each of several writers; one of them repairs */
    unsigned rounds;                    /* of kills */
} index_kind;

extern rq_failure why; /* of the calls of one thread */
extern const char *url;
extern uint64_t seed;

/* A random number below n. */
uint64_t below(uint64_t *state, uint64_t n);
/* An index of an empty table. */
rq_index *fresh(const index_kind *k, rq_db *db, bool unique);
/* Entries that stand for a row. */
size_t count_entries(const index_kind *k, rq_db *db);
/* Tests whose state is the index_kind, each with unique values and without. */
/* Table and index agree after several threads have written the same rows. */
void several_writers(void **kind);
/* They agree after a writing process was killed by SIGKILL at random moments. It writes to a local
 * folder, so the test is skipped with a URL other than memory:. */
void killed_writers(void **kind);
/* Takes the URL from the arguments, if given, and the seed from the environment variable SEED. */
void take_arguments(int argc, char **argv);

#endif
