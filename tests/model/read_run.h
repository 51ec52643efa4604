/* SPDX-License-Identifier: Apache-2.0 */
/* One random run of test_read_random.c: stores made by hand and the model of their content
 * (read_history.c writes, flushes and compacts both), and random filters (random_filter.c).
 * Everything is derived from the seed. */
#ifndef RQ_TEST_READ_RUN_H
#define RQ_TEST_READ_RUN_H

#include "by_hand.h"

#define RUN_MANY_ROWS 40

typedef struct run {
    uint64_t seed;
    rq_random random;
    by_hand world;
    rq_family_schema families[MODEL_FAMILIES_MAX];
    size_t family_count;
    bool lossless;
    bool new_versions; /* NEW_VERSION_BEHAVIOR */
    rq_cell_order order;
    uint64_t seqid;
    /* the model's content of each segment and file */
    cell_set active[MODEL_FAMILIES_MAX];
    cell_set snapshots[MODEL_FAMILIES_MAX];
    cell_set *files[MODEL_FAMILIES_MAX];
    uint64_t *newest[MODEL_FAMILIES_MAX]; /* newest sequence id in each file; 0: bulk-loaded */
    size_t file_count[MODEL_FAMILIES_MAX];
    cell_set all[MODEL_FAMILIES_MAX]; /* all of these cells together */
    uint64_t scans, rows, cells, agains, suspends, cuts, rewrites, gets, short_gets, passed, taken;
    /* The other kind of run, which tests row_pass.h: one family, more rows, mostly in one file,
     * mostly without deletes, read with filters. */
    bool many_rows;
    bool unfiltered; /* like many_rows, mostly without filters: tests row_run.h */
    bool reversed;   /* like many_rows, mostly backward: tests steps back in a block */
    char row_names[RUN_MANY_ROWS][24];
} run;

static inline uint64_t below(run *r, uint64_t n)
{
    return rq_random_below(&r->random, n);
}

static inline bool chance(run *r, unsigned percent)
{
    return below(r, 100) < percent;
}

#define RUN_QUALIFIERS 6
extern const char *const run_qualifier_names[RUN_QUALIFIERS];

/* Prints the seed for a replay, and ends the program. */
_Noreturn void run_fail(const run *r, const char *what);

/* --- random rows, columns …: few of each, so that they collide -------------- */
rq_slice run_row(run *r);
rq_slice run_qualifier(run *r);
int64_t run_ts(run *r);

/* --- history --- */
void run_make_families(run *r);
/* Writes batches of a few cells of one row each; each batch is visible at once. */
void run_write(run *r, unsigned batches);
/* Makes one random change of a store's version, a flush or a compaction, and compares it with the
 * model's. REQUIRES: no reader is positioned on it. */
void run_change_versions(run *r);

/* Writes the initial rows of a run with many rows. */
void run_write_many(run *r);

/* --- filters --- */
/* A filter as the client sends it: its class and message, which the caller frees. */
typedef struct filter_bytes {
    const char *name;
    rq_buf pb;
} filter_bytes;

/* Any of HBase's filters; below a depth of 2 also filters that contain others. */
void run_make_filter(run *r, filter_bytes *f, unsigned depth);

#endif
