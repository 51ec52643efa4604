/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the load generator: a run, its slots, and its counters. */
#ifndef RQ_LOAD_LOAD_PRIV_H
#define RQ_LOAD_LOAD_PRIV_H

#include "load/load.h"
#include "load/rows.h"

typedef enum rq__load_kind {
    RQ__LOAD_NOTHING,
    RQ__LOAD_ROWS,
    RQ__LOAD_TIMELINE,
    RQ__LOAD_EVENT_ROWS,
    RQ__LOAD_EVENT_COLUMNS,
} rq__load_kind;

#define RQ__SHARES_MAX 4

typedef struct rq__workload {
    const char *name;
    const char *help;
    rq__load_kind kind;
    bool sorted;
    rq_key_draw draw;
    struct {
        rq_load_step step;
        unsigned percent;
    } shares[RQ__SHARES_MAX];
} rq__workload;

typedef struct rq__bench rq__bench;

/* One row of a batch. */
typedef struct rq__batch_row {
    uint64_t key;
    uint32_t version;
    rq_row_bounds bounds;
} rq__batch_row;

/* A slot: one operation at a time. */
typedef struct rq__slot {
    rq__bench *bench;
    rq_op *op;
    struct rq__slot *next_free;
    rq_load_step step;
    bool counts;    /* due in the measured time */
    int64_t due_ns; /* start of its latency */
    int64_t not_before_ns;
    uint64_t key;
    uint32_t version;
    rq_row_bounds bounds;
    uint64_t rows_wanted;
    uint64_t rows_got;
    uint64_t last_key; /* of a scan */
    bool batch_is_write;
    bool batch_failed;
    rq__batch_row *batch;
    size_t batch_count;
    size_t batch_cap;
    rq_buf row;
    rq_buf values;
    rq_cell *cells; /* as many as a row has columns */
    rq_buf keep;    /* data that a step keeps for the next one */
} rq__slot;

struct rq__bench {
    const rq_load_options *o;
    const rq__workload *workload;
    rq_load_report *report;
    rq_client *client;
    rq_client_table *table;
    rq_client_table *content; /* timeline */
    rq_client_table *relations;
    int tables_made; /* of rq__table_names_of, by this run */
    rq_rows rows;
    rq_keys keys;
    rq_random random;
    uint64_t inserted; /* keys 0 … inserted-1 are there */
    uint64_t issued;   /* keys handed to inserts */
    uint64_t version;  /* version of the next value if there is no history */
    rq__slot *slots;
    size_t slot_count;
    rq__slot *free_slots;
    size_t busy;
    bool loading;
    bool sweeping;
    bool fatal;         /* out of memory: the run ends */
    uint32_t *counters; /* acknowledged increments and appends, by key */
    uint32_t *counters_sent;
    uint32_t *posts; /* number of posts published and acknowledged, by user */
    uint32_t *posts_sent;
    int64_t begin_ns; /* of the measurement */
    int64_t end_ns;
    int64_t last_success_ns;
    uint64_t done_total; /* operations that succeeded, measured or not */
    uint64_t failures_total;
    rq_histogram interval;
    uint64_t interval_errors;
    int64_t interval_begin_ns;
    size_t point_cap;
};

/* driver.c */
void rq__slot_end_result(rq__slot *s, const rq_op_result *r);
void rq__note_wrong(rq__bench *b, uint64_t key, const char *what);
/* Ends the run after an error that can only mean lack of memory. */
void rq__slot_broken(rq__slot *s, rq_err err);

/* Whether the rows belong to an application mix. */
static inline bool rq__is_app(const rq__bench *b)
{
    return b->workload->kind >= RQ__LOAD_TIMELINE;
}

/* places.c */
RQ_NODISCARD
rq_err rq__open_places(rq__bench *b);
void rq__close_places(rq__bench *b);
/* Blocking: opens the idle connections. */
RQ_NODISCARD
rq_err rq__open_idle(rq__bench *b, rq_error *why);

/* tables.c */
/* The tables' names: the second and third are for the application mixes. */
typedef struct rq__table_names {
    char name[3][256];
    int count;
} rq__table_names;

rq__table_names rq__table_names_of(const rq__bench *b);
/* Creates the tables (not with `reuse`) and opens them. */
RQ_NODISCARD
rq_err rq__make_tables(rq__bench *b, rq_error *why);
/* Drops the tables that this run created. */
RQ_NODISCARD
rq_err rq__drop_tables(rq__bench *b, rq_error *why);

/* steps.c, apps.c: start an operation; returns errors of preparing it. */
#define X(id, name, start) rq_err start(rq__slot *s);
#include "load/steps.def"
#undef X

/* steps.c */
/* A batch of new or known rows, for loading. False: nothing is left. */
RQ_NODISCARD
rq_err rq__begin_load_rows(rq__slot *s, uint64_t first, uint64_t count);
/* Reads keys and checks them, after the run. */
RQ_NODISCARD
rq_err rq__begin_sweep(rq__slot *s, uint64_t first, uint64_t count);

/* apps.c: the items of the applications' data, loaded from 0 on in batches. */
uint64_t rq__app_items(const rq__bench *b);
RQ_NODISCARD
rq_err rq__begin_load_app(rq__slot *s, uint64_t first, uint64_t count);

/* process.c */
double rq__process_cpu_s(int pid); /* negative: not known */
/* In bytes; -1: not known. */
void rq__process_memory(int pid, int64_t *ret_rss, int64_t *ret_peak);

#endif
