/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of indexes: random writers of the same rows, and writers that are killed.
 * Afterwards table and index must agree. */
#ifndef RQ_TESTS_INDEX_WRITERS_H
#define RQ_TESTS_INDEX_WRITERS_H

#include "../api/api_test.h"

#include "rorqual/rowkey.h"

typedef struct index_kind {
    const char *table, *entries; /* names of the table and of its index table */
    rq_index *(*open)(rq_db *db, bool unique);
    void (*create)(rq_db *db); /* creates the table */
    uint64_t keys,
        deletes; /* a write is of one of so many rows; one in `deletes` deletes the row */
    /* Puts random values into the row. */
    rq_err (*put)(rq_index *x, const char *row, uint64_t *state, rq_failure *failure);
    /* Fails unless table and index agree; returns the number of rows that have a value. */
    size_t (*check)(rq_db *db, rq_index *x, bool unique);
    /* writes of each of several writers; one of them repairs the index at this interval */
    unsigned writes, writes_per_repair;
    unsigned rounds; /* number of kills */
} index_kind;

extern rq_failure why; /* used by a single thread */
extern const char *url;
extern uint64_t seed;

/* A random number below n. */
uint64_t below(uint64_t *state, uint64_t n);
/* Makes an empty table and its index. */
rq_index *fresh(const index_kind *k, rq_db *db, bool unique);
/* The number of entries that refer to a row. */
size_t count_entries(const index_kind *k, rq_db *db);
/* Tests whose state is the index_kind, each with unique values and without. */
/* Table and index agree after several threads have written the same rows. */
void several_writers(void **kind);
/* Table and index agree after a writing process was killed by SIGKILL at random moments. It writes
 * to a local folder, so the test is skipped with a URL other than memory:. */
void killed_writers(void **kind);
/* Takes the URL from the arguments, if given, and the seed from the environment variable SEED. */
void take_arguments(int argc, char **argv);

#endif
