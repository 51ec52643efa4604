/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a server: the state that ops share (engine, settings, open scanners), and the
 * seats of threads that start them. op.h describes an op's life. */
#ifndef RQ_OPS_OPS_H
#define RQ_OPS_OPS_H

#include "base/config.h"
#include "base/env.h"
#include "catalog/catalog.h"
#include "ops/gate.h"
#include "vfs/intake.h"

typedef struct rq_ops rq_ops;

typedef struct rq_ops_options {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;    /* NULL: this process has none; then no load comes by replication */
    const char *cluster_id; /* NULL: the catalog's */
    const rq_config *config;
    const rq_gate_policy *policy; /* NULL: every op passes */
    /* Limit of a row in a result, besides hbase.table.max.rowsize; 0: none. */
    uint64_t row_bytes_max;
    rq_lane *lane; /* runs the timer of the scanners' leases */
    /* For bulk loads: the folders that files may be taken from, and the data folder's path,
     * absolute and without symbolic links. NULL: bulk load is disabled. */
    const rq_intake *intake;
    const char *data_path;
    /* For bulk loads announced by replication; NULL: these are refused. */
    const rq_intake *replicated;
} rq_ops_options;

/* Everything in the options outlives it. */
RQ_NODISCARD
rq_err rq_ops_new(const rq_ops_options *o, rq_ops **ret, rq_error *why);
/* Nothing is posted to the lane from here on; what was posted may still run. REQUIRES: no op is
 * running. NULL is fine. */
void rq_ops_stop(rq_ops *ops);
/* Closes remaining scanners. REQUIRES: no op is running, every seat was freed, and the lane will run no task of `ops`:
 * its thread has ended, or the lane has been idle since rq_ops_stop was called. NULL is fine. */
void rq_ops_free(rq_ops *ops);
/* Applies the settings that change without a restart. Any thread. */
void rq_ops_reload(rq_ops *ops, const rq_config *c);
/* Sets the policy that decides on ops which begin from now on; NULL: every op passes. Ops that have
 * begun may still use the previous policy, so it must outlive `ops`. Any thread. */
void rq_ops_set_policy(rq_ops *ops, const rq_gate_policy *policy);

/* `lane`: ops are started on it and complete on it. NULL: one thread at a time starts ops; it is a
 * member of the epoch as `section` and inside a read section whenever it starts an op. */
RQ_NODISCARD
rq_err rq_ops_seat_new(rq_ops *ops, rq_lane *lane, rq_epoch_member *section, rq_ops_seat **ret);
/* REQUIRES: no op of the seat is running. Its counts are added to those of `ops`. NULL is fine. */
void rq_ops_seat_free(rq_ops_seat *seat);

/* Sums over all seats; not a consistent snapshot. Any thread. */
typedef struct rq_op_stats {
    uint64_t ops, failed, rows, cells, bytes_in, bytes_out, parts;
    rq_times_sum times;
} rq_op_stats;
void rq_ops_stats(rq_ops *ops, rq_op_kind kind, rq_op_stats *ret);

/* Blocks that lanes have begun to read without a thread (vfs/reads.h), since the start; of them, those that a thread had to read
 * again. Any thread. */
void rq_ops_begun_reads(rq_ops *ops, uint64_t *ret_begun, uint64_t *ret_failed);

/* The number of open scanners, their memory and its limit; and, since the start, the number of
 * scanners opened and of scanners closed because their lease ended. Any thread. */
typedef struct rq_scanner_stats {
    uint64_t open, bytes, bytes_max, opened, expired;
} rq_scanner_stats;
void rq_ops_scanner_stats(rq_ops *ops, rq_scanner_stats *ret);

#endif
