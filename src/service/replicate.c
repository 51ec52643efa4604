/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicateWALEntry, the sink of replication: log entries of another cluster, HBase's or ours, are
 * applied as one batch op. HBASE: ReplicationSink.
 *
 * 1. An entry's cells become mutations: a new one begins where the row or the type of the cells
 *    changes. Increments and appends arrive as the puts of their results.
 * 2. Consecutive mutations of one region and one list of clusters form a group of the batch, of at
 *    most RQ__SINK_PARTS parts. So the job's memory does not depend on the length of the request.
 * 3. Regions are found by row: the two clusters may have split a table differently. In a cluster, the server that
 *    receives a request finds the server of each row, and passes the mutations on to these servers
 *    (replication/sink_router.h), which find their regions by name.
 * 4. The call succeeds if all of it was applied. After a failure the source sends the whole batch
 *    again; cells keep their timestamps, so that applying one twice changes nothing.
 * 5. The clusters that an entry has been to go into the log with it (rq_row_op.cluster_ids). */
#include "service/replicate_priv.h"

#include "base/pb_arena.h"
#include "wal/record.h"

#include <string.h>

#define REFUSED_LINES ((rq_log_rate){1, UINT64_C(30000000000)})
#define EVENTS_MAX 16 /* taken before a group */
#define EVENT_STEPS 16

static rq_error *why_of(rq__sink_job *j)
{
    return &j->batch.read.op.why;
}

/* --- clusters --------------------------------------------------------------------------------- */

static bool has_clusters(const Pb__WALKey *key, rq_slice ids)
{
    if (key->n_cluster_ids * RQ_WAL_CLUSTER_ID_LEN != ids.len) return false;
    for (size_t i = 0; i < key->n_cluster_ids; i++) {
        const uint8_t *id = ids.ptr + i * RQ_WAL_CLUSTER_ID_LEN;
        if (rq_get_be64(id) != key->cluster_ids[i]->most_sig_bits) return false;
        if (rq_get_be64(id + 8) != key->cluster_ids[i]->least_sig_bits) return false;
    }
    return true;
}

/* Of the next groups. Runs in progress refer to the bytes they were begun with. */
static rq_err set_clusters(rq__sink_job *j)
{
    const Pb__WALKey *key = rq_entries_key(&j->entries);
    if (has_clusters(key, j->batch.cluster_ids)) return RQ_OK;
    RQ_TRY(rq_entries_check_clusters(&j->entries, why_of(j)));
    size_t len = key->n_cluster_ids * RQ_WAL_CLUSTER_ID_LEN;
    uint8_t *ids = rq_arena_alloc(j->batch.read.op.arena, len + 1);
    if (ids == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < key->n_cluster_ids; i++) {
        rq_put_be64(ids + i * RQ_WAL_CLUSTER_ID_LEN, key->cluster_ids[i]->most_sig_bits);
        rq_put_be64(ids + i * RQ_WAL_CLUSTER_ID_LEN + 8, key->cluster_ids[i]->least_sig_bits);
    }
    j->batch.cluster_ids = rq_slice_of(ids, len);
    return RQ_OK;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* On a standalone server. */
static rq_err find_by_row(rq__sink_job *j, rq_slice row)
{
    const rq_catalog_region *r;
    rq_slice table = rq_entries_table(&j->entries);
    rq_err rc = rq_catalog_locate(j->services->catalog, table, row, &r, NULL);
    if (rc == RQ_E_TABLE_NOT_FOUND) { /* HBASE: ReplicationSink.batch */
        char name[600];
        rq_bytes_to_string(table, name, sizeof name);
        return rq_fail(why_of(j), rc, "'%s'", name);
    }
    if (rc != RQ_OK) return rq_fail(why_of(j), rc, "%s", rq_err_text(rc));
    j->batch.region = r->region;
    if (r->region != NULL) return RQ_OK;
    return rq_fail(why_of(j), RQ_E_NOT_SERVING_REGION, "%s is not online", r->info->encoded);
}

/* On a server of a cluster. The region may have moved or been split since the sender read hbase:meta. */
static rq_err find_named(rq__sink_job *j, rq_slice row)
{
    const rq_host_region *r;
    rq_slice name = rq__pb_slice(rq_entries_key(&j->entries)->encoded_region_name);
    RQ_TRY(rq_host_find_encoded(j->services->host, name, &r, why_of(j)));
    if (!rq_slice_eq(r->info->table, rq_entries_table(&j->entries)) ||
        !rq_region_info_contains(r->info, row))
        return rq_fail(why_of(j), RQ_E_NOT_SERVING_REGION, "the row is not in region %s",
                       r->info->encoded);
    j->batch.region = r->region;
    return RQ_OK;
}

static rq_err find_region(rq__sink_job *j, rq_slice row)
{
    return j->is_passed_on ? find_named(j, row) : find_by_row(j, row);
}

/* Whether the next cell's mutation belongs to the group. */
static bool belongs(const rq__sink_job *j, const rq_cell *c, rq_slice table)
{
    return !rq_entries_is_event(c) && rq_slice_eq(rq_entries_table(&j->entries), table) &&
           rq_region_info_contains(rq_region_get_info(j->batch.region), rq_cell_row(c)) &&
           has_clusters(rq_entries_key(&j->entries), j->batch.cluster_ids);
}

/* Takes the mutation that begins with `first`. */
static rq_err take_edit(rq__sink_job *j, const rq_cell *first, rq_cursor behind)
{
    rq_op_batch *b = &j->batch;
    rq_entries_edit *e = &j->edits[b->part_count];
    RQ_TRY(rq_entries_take_edit(&j->entries, first, behind, e, why_of(j)));
    j->parts[b->part_count++] = (rq_batch_part){.kind = RQ_PART_COLLECTED, .cells = e};
    return RQ_OK;
}

static rq_err fill_group(rq__sink_job *j)
{
    rq_slice table = rq_entries_table(&j->entries);
    rq_err rc = RQ_OK;
    j->batch.part_count = 0;
    while (rc == RQ_OK && j->batch.part_count < RQ__SINK_PARTS) {
        rq_cursor behind;
        rq_cell c;
        rc = rq_entries_peek(&j->entries, &behind, &c, why_of(j));
        if (rc == RQ_OK && !belongs(j, &c, table)) break;
        if (rc == RQ_OK) rc = take_edit(j, &c, behind);
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err take_load(rq__sink_job *j, const rq_cell *c)
{
    RQ_TRY(set_clusters(j));
    return rq__sink_add_load(j, rq_entries_table(&j->entries), rq_cell_value(c));
}

/* Takes events before the next cell of a row, some of many: *ret_more. */
static rq_err take_events(rq__sink_job *j, rq_cell *ret, bool *ret_more)
{
    *ret_more = false;
    for (int i = 0; i < EVENTS_MAX; i++) {
        rq_cursor behind;
        RQ_TRY(rq_entries_peek(&j->entries, &behind, ret, why_of(j)));
        if (!rq_entries_is_event(ret)) return RQ_OK;
        if (rq_entries_is_bulk_load(ret)) RQ_TRY(take_load(j, ret));
        rq_entries_take(&j->entries, behind);
        j->batch.meter.steps += EVENT_STEPS;
    }
    *ret_more = true;
    return RQ_OK;
}

/* The number of groups is unknown until the end, so the last group is followed by an empty one. */
static rq_err enter(rq_op_batch *b)
{
    rq__sink_job *j = rq__sink_of(b);
    bool more;
    rq_cell c;
    b->part_count = 0;
    rq_err rc = take_events(j, &c, &more);
    if (rc == RQ_OK && more) return RQ_OK; /* an empty group: the loop may have other work */
    if (rc == RQ_E_END) {
        b->group_count = b->group_at + 1;
        return RQ_OK;
    }
    if (rc == RQ_OK) rc = set_clusters(j);
    if (rc == RQ_OK) rc = find_region(j, rq_cell_row(&c));
    if (rc != RQ_OK) return rc;
    b->parts = j->parts;
    return fill_group(j);
}

/* --- parts ------------------------------------------------------------------------------------ */

static rq_err decode_edit(const rq_entries_edit *e, rq_arena *arena, rq_mutation *ret,
                          rq_error *why)
{
    rq_cursor at = e->cells;
    rq_cell *cells = rq_arena_alloc(arena, e->count * sizeof *cells);
    if (cells == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < e->count; i++)
        RQ_TRY(rq_cellblock_next(&at, &cells[i], why));
    *ret = (rq_mutation){.type = e->deletes ? RQ_MUTATE_DELETE : RQ_MUTATE_PUT,
                         .row = rq_cell_row(&cells[0]),
                         .cells = cells,
                         .cell_count = e->count,
                         .time_range = RQ_TIME_RANGE_ALL};
    return RQ_OK;
}

static rq_err write(rq_op_batch *b, const rq_batch_part *p, rq_mutation *ret, uint64_t *ret_nonce,
                    rq_error *why)
{
    rq_call *call = rq__call_of_op(&b->read.op);
    (void)ret_nonce; /* a put of a result may be applied twice */
    rq_call_decoding(call, true);
    rq_err rc = decode_edit(p->cells, b->write_arena, ret, why);
    rq_call_decoding(call, false);
    return rc;
}

static void skip(rq_op_batch *b, const rq_batch_part *p)
{
    (void)b;
    (void)p; /* each part knows where its cells are */
}

static rq_err failed(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why)
{
    rq__sink_job *j = rq__sink_of(b);
    (void)p;
    if (j->failed_with != RQ_OK) return RQ_OK;
    j->failed_with = rc;
    rq_error_clear(&j->failed_why);
    if (why != NULL) j->failed_why = *why;
    return RQ_OK;
}

static rq_err written(rq_op_batch *b, void *group, uint32_t index, rq_row_op *op, rq_err rc,
                      const rq_error *why)
{
    (void)group;
    (void)index;
    (void)op;
    return rc == RQ_OK ? RQ_OK : failed(b, NULL, rc, why);
}

/* --- the call --------------------------------------------------------------------------------- */

static const rq_batch_caller of_sink = {
    .enter = enter, .write = write, .skip = skip, .written = written, .failed = failed};

static int64_t last_write_time(const Pb__ReplicateWALEntryRequest *r)
{
    return r->n_entry == 0 ? 0 : (int64_t)r->entry[r->n_entry - 1]->key->write_time;
}

/* HBase's source logs only that its peer has refused a batch, and sends the batch again forever. */
static void warn(const rq_admin_services *s, const rq_call *call, rq_sink *sink,
                 const rq_error *why)
{
    rq_executor *executor = s->env.executor;
    uint64_t suppressed;
    if (!rq_log_limit_passes(&sink->refused_lines, REFUSED_LINES, executor->now_ns(executor),
                             &suppressed))
        return;
    rq_log_event(s->env.log, RQ_LOG_WARN, "replication", "refused a batch of a replication source",
                 rq_log_text("host", call->client->host),
                 rq_log_text("error", rq_err_text(why->code)), rq_log_text("why", why->message),
                 rq_log_number("suppressed", suppressed));
}

/* `sink` NULL: the batch is not counted. */
static void count(const rq_admin_services *s, const rq_call *call, rq_sink *sink,
                  const Pb__ReplicateWALEntryRequest *r, rq_err rc, const rq_error *why)
{
    rq_executor *executor = s->env.executor;
    if (sink == NULL) return;
    rq_sink_count(sink, r->n_entry, last_write_time(r), executor->now_ms(executor), rc == RQ_OK);
    if (rc != RQ_OK && why != NULL) warn(s, call, sink, why);
}

void rq__sink_end(rq__sink_job *j, rq_err rc, const rq_error *why)
{
    rq_call *call = rq__call_of_op(&j->batch.read.op);
    count(j->services, call, rq__sink_counters(j), rq__sink_request(j), rc, why);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, rq_slice_of("", 0));
    else
        rq_call_fail_why(call, rc, why);
}

static void batch_done(rq_op *op)
{
    rq__sink_job *j = RQ_CONTAINER_OF(op, rq__sink_job, batch.read.op);
    if (op->rc != RQ_OK)
        rq__sink_end(j, op->rc, &op->why);
    else if (j->failed_with != RQ_OK)
        rq__sink_end(j, j->failed_with, &j->failed_why);
    else
        rq__sink_load_next(j);
}

static void apply(rq_admin_services *s, rq_call *call, const Pb__ReplicateWALEntryRequest *request,
                  bool is_passed_on)
{
    rq__sink_job *j = rq_arena_alloc(&call->arena, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    memset(&j->batch, 0, sizeof j->batch);
    rq__op_of_call(&j->batch.read.op, RQ_OP_BATCH, rq__seat(s->client, call), call, batch_done);
    j->services = s;
    j->is_passed_on = is_passed_on;
    j->loads = NULL;
    j->last_load = &j->loads;
    rq_entries_begin(&j->entries, request, call->cell_block);
    j->failed_with = RQ_OK;
    j->batch.table = &of_sink;
    j->batch.group_count = SIZE_MAX;
    rq_op_batch_start(&j->batch);
}

/* --- a server of a cluster -------------------------------------------------------------------- */

static rq_err route(rq__blocking *b)
{
    rq_call *call = b->call;
    rq_admin_services *s = b->services;
    const Pb__ReplicateWALEntryRequest *r = (const Pb__ReplicateWALEntryRequest *)call->param;
    const rq_sink_request request = {r, call->cell_block, rq_call_gone(call), call->deadline_ns};
    rq_call_decoding(call, true); /* without memory the source must send the batch again */
    rq_err rc = rq_sink_router_entries(s->router, &request, &call->arena, &b->why);
    rq_call_decoding(call, false);
    count(s, call, s->sink, r, rc, b->why.code == RQ_OK ? NULL : &b->why);
    return rc;
}

static void routed(rq__blocking *b)
{
    rq_call_reply_packed(b->call, rq_slice_of("", 0));
}

static void start_routing(rq_admin_services *s, rq_call *call)
{
    rq__blocking *b = rq_arena_alloc(&call->arena, sizeof *b);
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, s, call, route, routed);
}

/* --- the methods ------------------------------------------------------------------------------ */

void rq__replicate_entries(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    if (s->router != NULL)
        start_routing(s, call);
    else if (s->client != NULL && s->catalog != NULL)
        apply(s, call, (const Pb__ReplicateWALEntryRequest *)call->param, false);
    else
        rq_call_fail(call, RQ_E_UNSUPPORTED, "this server accepts no replicated entries");
}

void rq_admin_apply_entries(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &call->arena);
    rq_slice bytes = rq_call_param_bytes(call);
    rq_call_decoding(call, true);
    const Pb__ReplicateWALEntryRequest *r =
        pb__replicate_walentry_request__unpack(&memory.allocator, bytes.len, bytes.ptr);
    rq_call_decoding(call, false);
    if (r != NULL)
        apply(s, call, r, true);
    else if (memory.exhausted)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "the list of replicated entries is malformed");
}
