/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a server and their seats; see ops.h. */
#include "ops/ops_priv.h"

#include <stdlib.h>
#include <string.h>

const char *rq_op_kind_text(rq_op_kind kind)
{
    static const char *const texts[] = {
#define X(name, text) text,
#include "ops/ops.def"
#undef X
    };
    return texts[kind];
}

/* --- life ------------------------------------------------------------------------------------- */

/* 1/BESIDE_SHARE of the memory budget limits the blocks that batches read ahead, in addition to the block cache; as much
 * the buffers of reads without a thread. It is enough to fill a device's queue of reads. */
#define BESIDE_SHARE 16
/* Bulk loads that run at the same time: each copies files, or waits for a flush, and calls of administrators need
 * threads of the same pool. */
#define BULK_THREADS 8

/* HBase's limit is 100 MB, independent of the available memory. */
static void take_result_limits(rq_ops *ops, const rq_config *c)
{
    uint64_t hbase = (uint64_t)100 << 20;
    uint64_t set = (uint64_t)rq_config_int(c, RQ_SET_SCAN_MAX_RESULT);
    uint64_t share = rq_engine_memory_budget(c) / 16;
    ops->block_bytes_max = set != 0 ? set : hbase;
    ops->result_bytes_max = set != 0 ? set : share < hbase ? share : hbase;
}

static void take_settings(rq_ops *ops, const rq_config *c)
{
    take_result_limits(ops, c);
    ops->lease_ms = (uint64_t)rq_config_int(c, RQ_SET_SCANNER_LEASE);
    rq_ops_reload(ops, c);
}

void rq_ops_reload(rq_ops *ops, const rq_config *c)
{
    ops->rpc_timeout_ms = (uint64_t)rq_config_int(c, RQ_SET_RPC_TIMEOUT);
}

static size_t scanner_bytes(const rq_config *c)
{
    size_t set = (size_t)rq_config_int(c, RQ_SET_SCANNERS_MEMORY);
    return set != 0 ? set : (size_t)rq_engine_memory_budget(c) / 4;
}

rq_err rq_ops_new(const rq_ops_options *o, rq_ops **ret, rq_error *why)
{
    rq_ops *ops = calloc(1, sizeof *ops);
    if (ops == NULL) return rq_no_memory(why);
    ops->env = *o->env;
    ops->engine = o->engine;
    ops->catalog = o->catalog;
    ops->cluster_id = o->cluster_id;
    if (ops->cluster_id == NULL && o->catalog != NULL)
        ops->cluster_id = rq_root_cluster_id(rq_catalog_root(o->catalog));
    ops->policy = o->policy;
    ops->intake = o->intake;
    ops->data_path = o->data_path;
    ops->replicated = o->replicated;
    ops->skips_missing =
        strcmp(rq_config_text(o->config, RQ_SET_REPLICATION_BULK_MISSING), "skip") == 0;
    ops->ships_loads = rq_config_int(o->config, RQ_SET_REPLICATION_BULK) != 0;
    take_settings(ops, o->config);
    ops->beside_bytes_max = rq_engine_memory_budget(o->config) / BESIDE_SHARE;
    if (rq_config_int(o->config, RQ_SET_READ_URING) != 0)
        ops->reads.bytes_max = ops->beside_bytes_max;
    ops->reads.log = ops->env.log;
    ops->row_bytes_max = (uint64_t)rq_config_int(o->config, RQ_SET_ROW_MAX);
    if (o->row_bytes_max != 0 && o->row_bytes_max < ops->row_bytes_max)
        ops->row_bytes_max = o->row_bytes_max;
    rq_err rc =
        rq__leases_new(&ops->env, ops->lease_ms, scanner_bytes(o->config), o->lane, &ops->leases);
    if (rc != RQ_OK) {
        free(ops);
        return rq_fail(why, rc, "%s", rq_err_text(rc));
    }
    rq_pool_share_init(&ops->bulk, ops->env.executor, RQ_POOL_CALL, BULK_THREADS);
    pthread_mutex_init(&ops->lock, NULL);
    *ret = ops;
    return RQ_OK;
}

static void log_counts(rq_ops *ops)
{
    rq_op_stats s;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++) {
        rq_ops_stats(ops, (rq_op_kind)kind, &s);
        if (s.ops == 0 && s.parts == 0) continue;
        rq_log_debug(ops->env.log, "ops",
                     "%s: %llu operations, %llu failed, %llu in batches, %llu cells, mean %llu µs, "
                     "99th percentile %llu µs",
                     rq_op_kind_text((rq_op_kind)kind), (unsigned long long)s.ops,
                     (unsigned long long)s.failed, (unsigned long long)s.parts,
                     (unsigned long long)s.cells,
                     (unsigned long long)(s.ops == 0 ? 0 : s.times.sum_ns / s.ops / 1000),
                     (unsigned long long)(rq_times_percentile_ns(&s.times, 99) / 1000));
    }
}

void rq_ops_stop(rq_ops *ops)
{
    if (ops != NULL) rq__leases_stop(ops->leases);
}

void rq_ops_free(rq_ops *ops)
{
    if (ops == NULL) return;
    RQ_ASSERT(ops->seats == NULL);
    log_counts(ops);
    rq__leases_free(ops->leases);
    rq_pool_share_destroy(&ops->bulk);
    pthread_mutex_destroy(&ops->lock);
    free(ops);
}

void rq_ops_set_policy(rq_ops *ops, const rq_gate_policy *policy)
{
    pthread_mutex_lock(&ops->lock);
    ops->policy = policy;
    for (rq_ops_seat *s = ops->seats; s != NULL; s = s->next)
        atomic_store_explicit(&s->policy, policy, memory_order_release);
    pthread_mutex_unlock(&ops->lock);
}

/* --- seats ------------------------------------------------------------------------------------ */

rq_err rq_ops_seat_new(rq_ops *ops, rq_lane *lane, rq_epoch_member *section, rq_ops_seat **ret)
{
    rq_ops_seat *seat = calloc(1, sizeof *seat);
    if (seat == NULL) return RQ_E_NO_MEMORY;
    seat->ops = ops;
    seat->lane = lane;
    seat->section = section;
    seat->executor = ops->env.executor;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++)
        seat->counters[kind].sample = RQ_SAMPLE_MASK_FIRST;
    rq_err rc = lane == NULL ? RQ_OK : rq_writer_new(ops->engine, lane, &seat->writer);
    if (rc == RQ_OK && lane != NULL && ops->reads.bytes_max > 0)
        rc = rq_reads_new(lane, &ops->reads, &seat->reads);
    if (rc != RQ_OK) {
        rq_writer_free(seat->writer);
        free(seat);
        return rc;
    }
    pthread_mutex_lock(&ops->lock);
    seat->policy = ops->policy;
    seat->next = ops->seats;
    ops->seats = seat;
    pthread_mutex_unlock(&ops->lock);
    *ret = seat;
    return RQ_OK;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_counters(rq_op_stats *to, const rq_gate_counters *c)
{
    to->ops += read_counter(&c->ops);
    to->failed += read_counter(&c->failed);
    to->rows += read_counter(&c->rows);
    to->cells += read_counter(&c->cells);
    to->bytes_in += read_counter(&c->bytes_in);
    to->bytes_out += read_counter(&c->bytes_out);
    to->parts += read_counter(&c->parts);
    rq_times_read(&c->times, &to->times);
}

void rq_ops_seat_free(rq_ops_seat *seat)
{
    if (seat == NULL) return;
    rq_ops *ops = seat->ops;
    pthread_mutex_lock(&ops->lock);
    rq_ops_seat **p = &ops->seats;
    while (*p != seat)
        p = &(*p)->next;
    *p = seat->next;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++)
        add_counters(&ops->past[kind], &seat->counters[kind]);
    pthread_mutex_unlock(&ops->lock);
    rq_reads_free(seat->reads);
    rq_writer_free(seat->writer);
    free(seat);
}

/* --- counts ----------------------------------------------------------------------------------- */

void rq_ops_stats(rq_ops *ops, rq_op_kind kind, rq_op_stats *ret)
{
    pthread_mutex_lock(&ops->lock);
    *ret = ops->past[kind];
    for (const rq_ops_seat *s = ops->seats; s != NULL; s = s->next)
        add_counters(ret, &s->counters[kind]);
    pthread_mutex_unlock(&ops->lock);
}

void rq_ops_begun_reads(rq_ops *ops, uint64_t *ret_begun, uint64_t *ret_failed)
{
    *ret_begun = read_counter(&ops->reads.begun);
    *ret_failed = read_counter(&ops->reads.failed);
}

void rq_ops_scanner_stats(rq_ops *ops, rq_scanner_stats *ret)
{
    rq__leases_get_stats(ops->leases, ret);
}
