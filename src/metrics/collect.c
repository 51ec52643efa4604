/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshot: reads the counters of the other rooms, one sample for each value. */
#include "metrics/metrics_priv.h"

#include "base/machine.h"
#include "hfile/block_cache.h"
#include "wal/wal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- samples ---------------------------------------------------------------------------------- */

static void add(rq__collector *c, const rq_metric_sample *sample)
{
    if (c->rc != RQ_OK) return;
    if (c->s->sample_count == c->room) {
        size_t room = c->room * 2 + 256;
        rq_metric_sample *list = rq_arena_alloc(c->arena, room * sizeof *list);
        if (list == NULL) {
            c->rc = RQ_E_NO_MEMORY;
            return;
        }
        if (c->room > 0) memcpy(list, c->s->samples, c->s->sample_count * sizeof *list);
        c->s->samples = list;
        c->room = room;
    }
    c->s->samples[c->s->sample_count++] = *sample;
}

void rq__collect(rq__collector *c, rq_metric metric, const char *label, double value)
{
    add(c, &(rq_metric_sample){.metric = metric, .label = label, .value = value});
}

void rq__collect_table_times(rq__collector *c, rq_metric metric, const rq_metrics_table *table,
                             const char *label, const rq_times_sum *times)
{
    add(c, &(rq_metric_sample){.metric = metric, .table = table, .label = label, .times = times});
}

/* A whole number, not negative. */
typedef struct figure {
    rq_metric metric;
    uint64_t value;
} figure;

static void collect_figures(rq__collector *c, const char *label, const figure *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rq__collect(c, list[i].metric, label, (double)list[i].value);
}

/* Copies the histogram. */
static void collect_times(rq__collector *c, rq_metric metric, const char *label,
                          const rq_times_sum *times)
{
    rq_times_sum *copy = rq_arena_alloc(c->arena, sizeof *copy);
    if (copy == NULL) {
        c->rc = RQ_E_NO_MEMORY;
        return;
    }
    *copy = *times;
    rq__collect_table_times(c, metric, NULL, label, copy);
}

/* By metric, then the server's before the tables', by label. Tables are members of an array. */
static int sample_order(const void *a, const void *b)
{
    const rq_metric_sample *x = a, *y = b;
    if (x->metric != y->metric) return x->metric < y->metric ? -1 : 1;
    if (x->table != y->table)
        return x->table == NULL || (y->table != NULL && x->table < y->table) ? -1 : 1;
    return strcmp(x->label, y->label);
}

double rq_metrics_value(const rq_metrics_snapshot *s, rq_metric metric, const char *label)
{
    double sum = 0;
    for (size_t i = 0; i < s->sample_count; i++) {
        const rq_metric_sample *x = &s->samples[i];
        if (x->metric == metric && (label[0] == '\0' || strcmp(x->label, label) == 0))
            sum += x->value;
    }
    return sum;
}

/* --- operations ------------------------------------------------------------------------------- */

void rq__op_counts_read(rq_ops *ops, rq__op_counts *ret)
{
    *ret = (rq__op_counts){0};
    for (int kind = 0; kind < RQ_OP_KINDS; kind++) {
        rq_op_stats s;
        rq_ops_stats(ops, (rq_op_kind)kind, &s);
        ret->requests += s.ops;
        if (kind == RQ_OP_GET || kind == RQ_OP_SCAN) ret->reads += s.ops + s.parts;
        if (kind >= RQ_OP_PUT && kind <= RQ_OP_MUTATE_ROW) ret->writes += s.ops + s.parts;
    }
}

static void collect_ops(rq__collector *c)
{
    rq_ops *ops = c->m->from.ops;
    rq_metrics_rates rates;
    rq_scanner_stats scanners;
    if (ops == NULL) return;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++) {
        const char *name = rq_op_kind_text((rq_op_kind)kind);
        rq_op_stats s;
        rq_ops_stats(ops, (rq_op_kind)kind, &s);
        const figure figures[] = {
            {RQ_METRIC_OPS, s.ops},
            {RQ_METRIC_OP_PARTS, s.parts},
            {RQ_METRIC_OP_FAILURES, s.failed},
            {RQ_METRIC_OP_ROWS, s.rows},
            {RQ_METRIC_OP_CELLS, s.cells},
            {RQ_METRIC_OP_BYTES_IN, s.bytes_in},
            {RQ_METRIC_OP_BYTES_OUT, s.bytes_out},
        };
        collect_figures(c, name, figures, RQ_ARRAY_LEN(figures));
        collect_times(c, RQ_METRIC_OP_TIMES, name, &s.times);
    }
    rq_metrics_get_rates(c->m, &rates);
    rq__collect(c, RQ_METRIC_REQUESTS, "", (double)rates.requests);
    rq__collect(c, RQ_METRIC_REQUESTS_RATE, "", rates.requests_per_second);
    rq__collect(c, RQ_METRIC_READS_RATE, "", rates.reads_per_second);
    rq__collect(c, RQ_METRIC_WRITES_RATE, "", rates.writes_per_second);
    uint64_t begun, failed;
    rq_ops_begun_reads(ops, &begun, &failed);
    rq__collect(c, RQ_METRIC_URING_READS, "", (double)begun);
    rq__collect(c, RQ_METRIC_URING_FAILED, "", (double)failed);
    rq_ops_scanner_stats(ops, &scanners);
    rq__collect(c, RQ_METRIC_SCANNERS, "", (double)scanners.open);
    rq__collect(c, RQ_METRIC_SCANNERS_OPENED, "", (double)scanners.opened);
    rq__collect(c, RQ_METRIC_SCANNERS_EXPIRED, "", (double)scanners.expired);
    rq__collect(c, RQ_METRIC_MEMORY, "scanners", (double)scanners.bytes);
    rq__collect(c, RQ_METRIC_MEMORY_MAX, "scanners", (double)scanners.bytes_max);
}

/* --- RPC and loops ---------------------------------------------------------------------------- */

static void collect_method(void *ctx, const char *service, const char *method, uint64_t calls)
{
    rq__collector *c = ctx;
    if (calls == 0) return;
    const char *label = rq_arena_printf(c->arena, "%s.%s", service, method);
    if (label == NULL) c->rc = RQ_E_NO_MEMORY;
    rq__collect(c, RQ_METRIC_RPC_CALLS, label, (double)calls);
}

/* Java's simple name: what stands behind the last dot or dollar sign. */
static const char *simple_name(const char *java_class)
{
    const char *dot = strrchr(java_class, '.');
    const char *inner = strrchr(java_class, '$');
    const char *last = inner != NULL && inner > dot ? inner : dot;
    return last == NULL ? java_class : last + 1;
}

static void collect_error(void *ctx, const char *java_class, uint64_t count)
{
    rq__collect(ctx, RQ_METRIC_RPC_ERRORS, simple_name(java_class), (double)count);
}

static void collect_server(rq__collector *c, const rq_rpc_server *server, const char *port)
{
    if (server == NULL) return;
    rq_rpc_stats s = rq_rpc_server_stats(server);
    const figure figures[] = {
        {RQ_METRIC_RPC_CONNECTIONS, s.connections}, {RQ_METRIC_RPC_IN_FLIGHT, s.calls_in_flight},
        {RQ_METRIC_RPC_RECEIVED, s.bytes_in},       {RQ_METRIC_RPC_SENT, s.bytes_out},
        {RQ_METRIC_RPC_PORT_CALLS, s.calls},        {RQ_METRIC_RPC_EXCEPTIONS, s.exceptions},
        {RQ_METRIC_RPC_DROPPED, s.dropped},         {RQ_METRIC_RPC_REFUSED, s.refused},
    };
    collect_figures(c, port, figures, RQ_ARRAY_LEN(figures));
    rq_times_sum queue = {0}, process = {0}, total = {0};
    rq_rpc_server_times(server, &queue, &process, &total);
    collect_times(c, RQ_METRIC_RPC_QUEUE_TIMES, port, &queue);
    collect_times(c, RQ_METRIC_RPC_PROCESS_TIMES, port, &process);
    collect_times(c, RQ_METRIC_RPC_TOTAL_TIMES, port, &total);
    rq_rpc_server_each_method(server, collect_method, c);
    rq_rpc_server_each_error(server, collect_error, c);
}

static void collect_budget(rq__collector *c, const rq_budget *b, const char *owner)
{
    if (b == NULL) return;
    rq__collect(c, RQ_METRIC_MEMORY, owner, (double)rq_budget_used(b));
    rq__collect(c, RQ_METRIC_MEMORY_MAX, owner, (double)rq_budget_max(b));
}

static void collect_loop(rq__collector *c, unsigned i)
{
    rq_loop_stats s = {0};
    const char *label = rq_arena_printf(c->arena, "%u", i);
    if (label == NULL) {
        c->rc = RQ_E_NO_MEMORY;
        return;
    }
    rq_loop_get_stats(rq_loops_get(c->m->from.loops, i), &s);
    rq__collect(c, RQ_METRIC_LOOP_ITERATIONS, label, (double)s.iterations);
    rq__collect(c, RQ_METRIC_LOOP_CURRENT, label, (double)s.current_ns);
    collect_times(c, RQ_METRIC_LOOP_TIMES, label, &s.times);
}

static void collect_rpc(rq__collector *c)
{
    const rq_metrics_sources *from = &c->m->from;
    collect_server(c, atomic_load(&c->m->master), "master");
    collect_server(c, atomic_load(&c->m->rs), "regionserver");
    for (unsigned i = 0; from->loops != NULL && i < rq_loops_count(from->loops); i++)
        collect_loop(c, i);
    collect_budget(c, from->requests, "requests");
    collect_budget(c, from->answers, "responses");
    collect_budget(c, from->unread, "unread_responses");
}

/* --- engine, log, cache ----------------------------------------------------------------------- */

static void collect_wal(rq__collector *c, rq_wal *wal)
{
    rq_wal_stats s;
    rq_times_sum syncs = {0};
    rq_wal_get_stats(wal, &s);
    rq_wal_sync_times(wal, &syncs);
    const figure figures[] = {
        {RQ_METRIC_WAL_FILES, s.files},
        {RQ_METRIC_WAL_BYTES, s.log_bytes},
        {RQ_METRIC_WAL_SPARE_BYTES, s.spare_bytes},
        {RQ_METRIC_WAL_RECORDS, s.records},
        {RQ_METRIC_WAL_RECORD_BYTES, s.record_bytes},
        {RQ_METRIC_WAL_WRITES, s.writes},
        {RQ_METRIC_WAL_ROLLS, s.rolls},
        {RQ_METRIC_WAL_RECYCLED, s.recycled},
        {RQ_METRIC_WAL_REAPPENDS, s.reappends},
        {RQ_METRIC_WAL_SLOW_APPENDS, s.slow_appends},
        {RQ_METRIC_LEASE_LAPSES, s.lease_lapses},
        {RQ_METRIC_LEASE_LAPSED, s.lease_lapsed_ns},
        {RQ_METRIC_WAL_UNSYNCED, s.staged - s.synced},
        {RQ_METRIC_WAL_LACKS_SPACE, rq_wal_lacks_space(wal)},
        {RQ_METRIC_WAL_FAILED, rq_wal_failed(wal)},
    };
    collect_figures(c, "", figures, RQ_ARRAY_LEN(figures));
    collect_times(c, RQ_METRIC_WAL_SYNC_TIMES, "", &syncs);
}

static const char *const block_kinds[RQ_BLOCK_KIND_COUNT] = {
    [RQ_BLOCK_DATA] = "data",
    [RQ_BLOCK_ENCODED_DATA] = "encoded_data",
    [RQ_BLOCK_LEAF_INDEX] = "leaf_index",
    [RQ_BLOCK_BLOOM_CHUNK] = "bloom_chunk",
    [RQ_BLOCK_META] = "meta",
    [RQ_BLOCK_INTERMEDIATE_INDEX] = "intermediate_index",
    [RQ_BLOCK_ROOT_INDEX] = "root_index",
    [RQ_BLOCK_FILE_INFO] = "file_info",
    [RQ_BLOCK_GENERAL_BLOOM_META] = "general_bloom_meta",
    [RQ_BLOCK_DELETE_FAMILY_BLOOM_META] = "delete_family_bloom_meta",
    [RQ_BLOCK_TRAILER] = "trailer",
};

static void collect_cache(rq__collector *c, rq_block_cache *cache)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(cache, &s);
    for (int k = 0; k < RQ_BLOCK_KIND_COUNT; k++) {
        rq__collect(c, RQ_METRIC_CACHE_HITS, block_kinds[k], (double)s.hits[k]);
        rq__collect(c, RQ_METRIC_CACHE_MISSES, block_kinds[k], (double)s.misses[k]);
        rq__collect(c, RQ_METRIC_CACHE_INSERTED, block_kinds[k], (double)s.inserted[k]);
    }
    uint64_t free_bytes = s.used_bytes < s.capacity_bytes ? s.capacity_bytes - s.used_bytes : 0;
    const figure figures[] = {
        {RQ_METRIC_CACHE_EVICTED, s.evicted},
        {RQ_METRIC_CACHE_DROPPED, s.evicted_by_file},
        {RQ_METRIC_CACHE_BLOCKS, s.blocks},
        {RQ_METRIC_CACHE_BYTES, s.used_bytes},
        {RQ_METRIC_CACHE_META_BYTES, s.meta_bytes},
        {RQ_METRIC_CACHE_IN_MEMORY_BYTES, s.memory_bytes},
        {RQ_METRIC_CACHE_PINNED, s.pinned_bytes},
        {RQ_METRIC_CACHE_CAPACITY, s.capacity_bytes},
        {RQ_METRIC_CACHE_FREE, free_bytes},
        {RQ_METRIC_WINDOWS_READ, s.ahead_bytes},
        {RQ_METRIC_WINDOWS_UNUSED, s.ahead_unused_bytes},
        {RQ_METRIC_L2_HITS, s.second_hits},
        {RQ_METRIC_L2_MISSES, s.second_misses},
        {RQ_METRIC_L2_WRITTEN, s.second_written},
        {RQ_METRIC_L2_DROPPED, s.second_dropped},
        {RQ_METRIC_L2_CAPACITY, s.second_on ? s.second_capacity_bytes : 0},
    };
    collect_figures(c, "", figures, RQ_ARRAY_LEN(figures));
    rq__collect(c, RQ_METRIC_MEMORY, "block_cache", (double)(s.used_bytes + s.pinned_bytes));
    rq__collect(c, RQ_METRIC_MEMORY, "scan_ahead", (double)s.ahead_now_bytes);
    rq__collect(c, RQ_METRIC_MEMORY_MAX, "block_cache", (double)s.capacity_bytes);
    rq__collect(c, RQ_METRIC_MEMORY, "cache_families", (double)s.family_bytes);
}

static void collect_background(rq__collector *c, rq_engine *e)
{
    rq_engine_stats s;
    rq_times_sum flushes = {0}, compactions = {0};
    rq_engine_get_stats(e, &s);
    rq_engine_times(e, &flushes, &compactions);
    const figure figures[] = {
        {RQ_METRIC_FLUSH_QUEUE, s.flush_queue},
        {RQ_METRIC_FLUSHES, s.flushes},
        {RQ_METRIC_FLUSHED, s.flushed_bytes},
        {RQ_METRIC_FLUSHED_MEMSTORE, s.flushed_memstore_bytes},
        {RQ_METRIC_FLUSHED_CELLS, s.flushed_cells},
        {RQ_METRIC_FLUSH_FAILURES, s.failed_flushes},
        {RQ_METRIC_COMPACTION_QUEUE, s.compaction_queue},
        {RQ_METRIC_COMPACTIONS, s.compactions},
        {RQ_METRIC_MAJOR_COMPACTIONS, s.major_compactions},
        {RQ_METRIC_COMPACTED, s.compacted_bytes},
        {RQ_METRIC_COMPACTION_FAILURES, s.failed_compactions},
        {RQ_METRIC_DELAYED_WRITES, s.delayed_writes},
        {RQ_METRIC_WRITE_DELAY, s.delay_ns},
        {RQ_METRIC_WITHOUT_WAL, s.writes_without_wal},
        {RQ_METRIC_WITHOUT_WAL_BYTES, s.bytes_without_wal},
        {RQ_METRIC_REFUSED_WRITES, s.refused_writes},
        {RQ_METRIC_RECOVERED_RECORDS, s.recovered_records},
    };
    collect_figures(c, "", figures, RQ_ARRAY_LEN(figures));
    collect_times(c, RQ_METRIC_FLUSH_TIMES, "", &flushes);
    collect_times(c, RQ_METRIC_COMPACTION_TIMES, "", &compactions);
    rq__collect(c, RQ_METRIC_MEMORY, "memstore", (double)s.memstore_bytes_held);
    rq__collect(c, RQ_METRIC_MEMORY_MAX, "memstore", (double)s.memstore_bytes_max);
    rq__collect(c, RQ_METRIC_MEMORY, "nonces", (double)s.nonces_bytes);
}

static void collect_engine(rq__collector *c)
{
    rq_engine *e = c->m->from.engine;
    if (e == NULL) return;
    collect_wal(c, rq_engine_wal(e));
    collect_cache(c, rq_engine_block_cache(e));
    collect_background(c, e);
    rq__collect(c, RQ_METRIC_MEMORY_BUDGET, "", (double)c->m->from.memory_budget);
}

/* --- the process ------------------------------------------------------------------------------ */

static void collect_peer(rq__collector *c, const rq_source_status *s)
{
    const figure figures[] = {
        {RQ_METRIC_PEER_ENABLED, s->enabled},       {RQ_METRIC_PEER_LOST, s->lost_ms != 0},
        {RQ_METRIC_PEER_LOG, s->log_bytes},         {RQ_METRIC_PEER_LAG, s->lag_ms},
        {RQ_METRIC_PEER_ENDED_LOGS, s->ended_logs}, {RQ_METRIC_PEER_WAITING_LOGS, s->waiting_logs},
        {RQ_METRIC_PEER_AGE, s->age_of_last_ms},    {RQ_METRIC_PEER_RECORDS, s->shipped_records},
        {RQ_METRIC_PEER_BYTES, s->shipped_bytes},   {RQ_METRIC_PEER_BATCHES, s->shipped_batches},
        {RQ_METRIC_PEER_FILES, s->shipped_files},   {RQ_METRIC_PEER_FAILED, s->failed},
    };
    collect_figures(c, s->id, figures, RQ_ARRAY_LEN(figures));
}

static void collect_sink(rq__collector *c, const rq_sink *sink)
{
    if (sink == NULL) return;
    const figure figures[] = {
        {RQ_METRIC_SINK_ENTRIES, atomic_load(&sink->entries)},
        {RQ_METRIC_SINK_BATCHES, atomic_load(&sink->batches)},
        {RQ_METRIC_SINK_FAILED, atomic_load(&sink->failed)},
        {RQ_METRIC_SINK_AGE, rq_sink_age_ms(sink)},
    };
    collect_figures(c, "", figures, RQ_ARRAY_LEN(figures));
}

static void collect_replication(rq__collector *c)
{
    const rq_metrics_sources *from = &c->m->from;
    rq_replication *r = from->replication;
    rq_source_status *peers;
    size_t count = 0;
    uint32_t kept = 0;
    rq_err rc = RQ_OK;
    collect_sink(c, r == NULL ? from->sink : rq_replication_sink(r));
    if (r != NULL)
        rc = rq_replication_status(r, c->arena, &peers, &count);
    else if (from->peers != NULL)
        rc = from->peers(from->peers_ctx, c->arena, &peers, &count, &kept);
    rq__collect(c, RQ_METRIC_KEPT_LOGS, "", kept);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        collect_peer(c, &peers[i]);
    if (rc != RQ_OK) c->rc = rc;
}

static void collect_log(rq__collector *c)
{
    static const char *const levels[RQ_LOG_LEVELS] = {"debug", "info", "warn", "error"};
    uint64_t lines[RQ_LOG_LEVELS];
    rq_log_get_lines(c->m->from.env->log, lines);
    for (size_t i = 0; i < RQ_LOG_LEVELS; i++)
        rq__collect(c, RQ_METRIC_LOG_LINES, levels[i], (double)lines[i]);
}

static void collect_process(rq__collector *c)
{
    rq_process_usage u;
    rq_machine_process(&u);
    const figure figures[] = {
        {RQ_METRIC_CPU_SECONDS, u.cpu_ns},     {RQ_METRIC_RESIDENT, u.resident_bytes},
        {RQ_METRIC_VIRTUAL, u.virtual_bytes},  {RQ_METRIC_FDS, u.open_files},
        {RQ_METRIC_FDS_MAX, u.open_files_max}, {RQ_METRIC_THREADS, u.threads},
    };
    collect_figures(c, "", figures, RQ_ARRAY_LEN(figures));
    if (c->m->from.env != NULL) collect_log(c);
    const rq_server_name *server = rq__metrics_server(c->m);
    if (server == NULL) return;
    rq_executor *executor = c->m->from.env->executor;
    int64_t started = server->start_code;
    rq__collect(c, RQ_METRIC_START_TIME, "", (double)started);
    rq__collect(c, RQ_METRIC_UPTIME, "", (double)(executor->now_ms(executor) - started));
}

/* --- all -------------------------------------------------------------------------------------- */

/* Adds up values of the same figure and label: a class of exceptions on two ports. */
static void join_samples(rq_metrics_snapshot *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->sample_count; i++) {
        rq_metric_sample *last = n == 0 ? NULL : &s->samples[n - 1];
        if (last != NULL && sample_order(last, &s->samples[i]) == 0)
            last->value += s->samples[i].value;
        else
            s->samples[n++] = s->samples[i];
    }
    s->sample_count = n;
}

rq_err rq_metrics_collect(rq_metrics *m, bool by_region, rq_arena *arena, rq_metrics_snapshot *ret)
{
    rq__collector c = {.m = m, .arena = arena, .s = ret};
    *ret = (rq_metrics_snapshot){0};
    collect_ops(&c);
    collect_rpc(&c);
    collect_engine(&c);
    collect_process(&c);
    collect_replication(&c);
    rq__collect_loads(&c, by_region);
    if (c.rc != RQ_OK) return c.rc;
    qsort(ret->samples, ret->sample_count, sizeof *ret->samples, sample_order);
    join_samples(ret);
    return RQ_OK;
}
