/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a load against a cluster: operations, rate and duration are options, the result is a report.
 * One thread, any number of connections, `depth` operations in flight on each.
 *
 *    create the table ──► load its rows ──► [flush] ──► ramp-up ──► warm-up ──► measure ──► verify
 *
 * With a rate, operations are due at evenly spaced times, and their latency counts from then,
 * whether or not the generator or the server could keep up (no coordinated omission). Without a
 * rate, each slot starts its next operation when its last one is done. */
#ifndef RQ_LOAD_LOAD_H
#define RQ_LOAD_LOAD_H

#include "base/histogram.h"
#include "load/draw.h"

#include "client/client.h"

#include <signal.h>
#include <stdio.h>

/* The kinds of operations; the report has latencies for each. */
typedef enum rq_load_step {
#define X(id, name, start) RQ_LOAD_##id,
#include "load/steps.def"
#undef X
    RQ_LOAD_STEPS
} rq_load_step;

typedef struct rq_load_options {
    rq_client_options client; /* lanes: number of connections; on_retry is set by the run */
    const char *workload;     /* of rq_load_workloads */
    const char *table;
    bool reuse;   /* take the table and its rows as they are */
    bool replace; /* drop a table of this name first; if neither is set, an existing table is an
                   * error */
    bool keep;    /* do not drop the table created by this run */
    bool flush;   /* after loading */
    bool verify;
    /* the table */
    uint64_t records;
    bool records_set; /* `records` was given; else application mixes have a default of their own */
    unsigned regions;
    unsigned families;
    unsigned columns; /* of a row */
    const char *compression;
    const char *encoding;
    const char *bloom;
    unsigned block_bytes;
    rq_sizes key_len;
    rq_sizes value_len;
    int sorted; /* 1 sorted keys, 0 hashed keys, -1 the workload's default */
    /* operations */
    int draw; /* rq_key_draw, -1: as the workload wants */
    double theta;
    unsigned depth;
    unsigned idle; /* connections that are open and idle */
    unsigned batch;
    rq_sizes scan_rows;
    unsigned caching;
    uint64_t scan_bytes;
    /* of the application mixes */
    unsigned followers; /* of a user */
    unsigned posts;     /* of a user, at first */
    unsigned events;    /* of a user, at first */
    unsigned newest;    /* events that a read returns */
    /* time */
    double rate; /* operations per second; 0: as fast as possible */
    /* Polls instead of sleeping until an operation is due or a response comes, so that no latency
     * includes the generator's own wake-up. Uses a whole core. */
    bool awake;
    double ramp_s;
    double warm_s;
    double seconds;
    uint64_t operations; /* 0: time alone ends it */
    double interval_s;   /* interval of the time series; 0: a sixtieth of the time */
    double give_up_s;    /* the run ends when no operation succeeds for this time */
    uint64_t seed;
    int server_pid; /* 0: not on this machine */
    FILE *live;     /* a terminal, or NULL */
    FILE *notices;  /* stream for lines that a user should see before the run changes anything, or
                     * NULL */
    const volatile sig_atomic_t *stop;
} rq_load_options;

#define RQ_LOAD_ERROR_KINDS 32

typedef struct rq_load_error {
    char kind[64];
    uint64_t retried; /* attempts that were repeated */
    uint64_t failed;  /* operations that failed for good */
    char text[200];   /* of the first */
} rq_load_error;

/* One interval of the run; the run includes ramp-up and warm-up. */
typedef struct rq_load_point {
    double at_s; /* its end, relative to the start of the measurement (negative before it) */
    double rate;
    uint64_t p50_ns, p99_ns, p999_ns, max_ns;
    uint64_t errors;
} rq_load_point;

typedef struct rq_load_report {
    double seconds; /* measured */
    double load_seconds;
    uint64_t loaded;
    uint64_t operations; /* that succeeded in the measured time */
    uint64_t failed;
    uint64_t rows_read, rows_written, cells_read, bytes_read, bytes_written;
    rq_client_traffic traffic; /* in the measured time */
    uint64_t misses;           /* requested rows that did not exist */
    uint64_t checked;          /* rows and values that were verified */
    uint64_t wrong;
    char wrong_text[256]; /* the first */
    bool gave_up;
    bool stopped;
    rq_histogram latency;
    rq_histogram steps[RQ_LOAD_STEPS]; /* counts NULL: none of it */
    rq_load_point *points;
    size_t point_count;
    rq_load_error errors[RQ_LOAD_ERROR_KINDS];
    size_t error_count;
    /* processes; negative: not known */
    double server_cpu_s;
    double own_cpu_s;
    int64_t server_rss, server_peak_rss;
    size_t regions, servers;
    uint64_t connects;
    char cluster_id[64];
} rq_load_report;

typedef struct rq_load_workload_line {
    const char *name;
    const char *help;
} rq_load_workload_line;

/* Ends with a name NULL. */
const rq_load_workload_line *rq_load_workloads(void);
const char *rq__load_step_name(rq_load_step step);

void rq_load_options_init(rq_load_options *o);
/* Blocks until the run has ended. Failed operations and wrong values are in the report, not errors.
 * An error: the run was not possible or could not go on, or its tables could not be dropped; the
 * report has what was measured before. RQ_E_INVALID: options that contradict each other. The caller
 * clears the report in any case. */
RQ_NODISCARD
rq_err rq_load_run(const rq_load_options *o, rq_load_report *ret, rq_error *why);
void rq_load_report_clear(rq_load_report *r);

/* --- report.c, plot.c ------------------------------------------------------------------------- */
void rq_load_print(const rq_load_options *o, const rq_load_report *r, FILE *out);
void rq_load_print_json(const rq_load_options *o, const rq_load_report *r, FILE *out);
/* The series, one line an interval. */
void rq_load_print_csv(const rq_load_report *r, FILE *out);
void rq_load_plot(const rq_load_options *o, const rq_load_report *r, FILE *out);

#endif
