/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a batch through its region, under the token; writer.c has its way there and its
 * response.
 *
 *   rq_region_write ─ collected ─► token ─ run_batch ─► group of cells ─ commit ─► log record staged
 *                                          │ │                                   cells linked
 *             held: memory is short ◄──────┘ └─ parked: a block is missing
 *                                                       (read by RQ_POOL_READ, then run again, but not
 *                                                       any number of times: RUNS_LOST_MAX), reads run
 *                                                       apart, or a row is locked by such reads (apart.h)
 *   done ◄─ lane ◄─ read point raised ◄─ the log acknowledges ◄─ waiting for the horizons
 *
 * Invariants:
 *  1. An op enters the memstore only after the log has accepted its record. Staging is all or
 *     nothing and linking cannot fail, so log and memstore never disagree.
 *  2. Sequence ids are assigned under the token, in staging order. The read point is raised to an
 *     id only when everything staged up to it has the durability it asked for: a batch waits for
 *     the horizons as of the staging of its last op, which cover everything before it. So a later
 *     write is never visible before an earlier one.
 *  3. A response that depends on reading staged cells waits for the same horizons.
 *  4. Plain puts and deletes of one batch with the same durability share a record and a sequence id
 *     (HBASE: doMiniBatchMutate); each is atomic because the record is.
 */
#include "region/apart.h"
#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/write_priv.h"

#include <stdlib.h>

#define GROUP_BYTES_MAX ((size_t)256 * 1024)
/* Most bytes by which memstores grow before they are accounted again. */
#define ACCOUNT_BYTES ((size_t)64 * 1024)
/* Longest wait on a full disk, enough for flushes to free WAL files: a client gives up after
 * hbase.rpc.timeout, and would never learn the reason. */
#define NO_SPACE_WAIT_NS ((uint64_t)5 * 1000 * 1000 * 1000)
/* Time slices after which a batch goes behind the other work of its region. Fewer would move the
 * token between lanes more often; a bulk load's batches are shorter. */
#define SLICES_IN_FRONT 8
/* An op of more steps (base/meter.h) does not run on a lane: an op is never interrupted, and this one would take about
 * half a millisecond or longer. If the op reads, it reads apart from the token (apart.h). */
#define LONG_OP_STEPS 1024
#define CONDITION_STEPS 8 /* steps charged for a condition or another read */
/* Bytes of values that take about as long as a step: each is copied into the memstore and into the log. */
#define STEP_BYTES 512
/* Limits the reads of one batch, in steps (base/meter.h): when its ops that read (deletes of the
 * newest version, increments) have taken so many, the rest of the batch is refused and the client
 * sends it again. Each op reads the versions and markers of the ops before it, so the cost is
 * quadratic in their number. Clients' real batches need less than a hundredth of the limit. */
#define READ_STEPS_MAX ((uint64_t)10 * 1000 * 1000)
/* Limits how often an op that reads is abandoned for a missing block, and how many steps it may lose by that. Beyond
 * either limit it reads apart from the token: each run begins anew, so the cost for n blocks is quadratic, and blocks
 * that the cache evicts before the next run would be loaded again and again. 64 runs suffice for an increment that
 * finds none of its blocks (three of each file) in memory. */
#define RUNS_LOST_MAX 64
#define ROUNDS_MAX 3 /* of reads apart */
#define STEPS_LOST_MAX ((uint64_t)8 * RQ_METER_STRETCH_STEPS)

/* A batch waiting for a block, or for reads that run apart. */
struct rq__parked {
    rq_task task;           /* on RQ_POOL_READ */
    rq__apart_reads *apart; /* of the batch's next op; NULL: none */
    unsigned runs_lost;     /* of the batch's next op */
    uint64_t steps_lost;
    unsigned rounds; /* of reads apart that a bulk load has made worthless */
    rq_read_ctx ctx;
    rq_write *write;
    rq_err rc;
    rq_error why;
};

/* --- checks ----------------------------------------------------------------------------------- */

/* Reports a row outside of the region. HBASE: HRegion.checkRow through batchMutate: for a single put or
 * delete the exception says that a sanity check failed, for an atomic batch it is WrongRegionException. */
static rq_err wrong_row(const rq_region *r, rq_slice row, bool atomic, rq_error *why)
{
    char name[512];
    char start[256];
    char end[256];
    char given[256];
    rq_region_info_text(&r->info, name, sizeof name);
    rq_bytes_to_string(r->info.start_key, start, sizeof start);
    rq_bytes_to_string(r->info.end_key, end, sizeof end);
    rq_bytes_to_string(row, given, sizeof given);
    return rq_fail(why, atomic ? RQ_E_WRONG_REGION : RQ_E_SANITY_CHECK,
                   "Requested row out of range for batchMutate on HRegion %s, startKey='%s', "
                   "getEndKey()='%s', row='%s'",
                   name, start, end, given);
}

static rq_err check_cell(const rq_region *r, const rq_mutation *m, const rq_cell *c, int64_t now_ms,
                         rq_error *why)
{
    if (c->timestamp < 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Timestamp cannot be negative. ts=%lld",
                       (long long)c->timestamp);
    if (r->cell_bytes_max > 0 && !m->trusted) {
        /* With the mutation's row, which the cell may lack. HBASE: estimatedSerializedSizeOf */
        size_t size = rq_cell_serialized_len(c, true) - c->row_len + m->row.len + 4;
        if (size > r->cell_bytes_max)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Cell with size %zu exceeds limit of %llu bytes",
                           size, (unsigned long long)r->cell_bytes_max);
    }
    if (RQ_UNLIKELY(r->timestamp_slop_ms != INT64_MAX) && c->timestamp != RQ_TIMESTAMP_LATEST &&
        c->timestamp - now_ms > r->timestamp_slop_ms && !m->trusted &&
        (m->type == RQ_MUTATE_PUT || r->schema->is_system))
        return rq_fail(why, RQ_E_SANITY_CHECK, "Timestamp for KV out of range %lld (too.new=%lld)",
                       (long long)c->timestamp, (long long)r->timestamp_slop_ms);
    return RQ_OK;
}

static rq_err check_row(const rq_region *r, const rq_mutation *m, bool atomic, rq_error *why)
{
    if (r->schema->read_only) return rq_fail(why, RQ_E_DO_NOT_RETRY, "region is read only");
    if (m->row.len == 0) return rq_fail(why, RQ_E_DO_NOT_RETRY, "Row length is 0");
    if (m->row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Row length %zu is > %d", m->row.len,
                       RQ_ROW_LEN_MAX);
    if (!rq_region_info_contains(&r->info, m->row)) return wrong_row(r, m->row, atomic, why);
    return RQ_OK;
}

rq_err rq__mutation_check(rq_region *r, const rq_mutation *m, bool atomic, int64_t now_ms,
                          rq_error *why)
{
    RQ_TRY(check_row(r, m, atomic, why));
    size_t hint = 0;
    for (size_t i = 0; i < m->cell_count; i++) {
        const rq_cell *c = &m->cells[i];
        if (rq__region_store_of(r, rq_cell_family(c), &hint) == NULL)
            return rq__region_no_family(r, rq_cell_family(c), why);
        RQ_TRY(check_cell(r, m, c, now_ms, why));
    }
    return RQ_OK;
}

rq_durability rq__durability_of(const rq_region *r, const rq_row_op *op)
{
    rq_durability d = RQ_USE_DEFAULT;
    for (size_t i = 0; i < op->mutation_count; i++) {
        rq_durability own = op->mutations[i].durability;
        if (own == RQ_USE_DEFAULT) own = (rq_durability)r->schema->durability;
        if (own == RQ_USE_DEFAULT) own = RQ_SYNC_WAL;
        if (own > d) d = own; /* HBASE: the strictest of the batch */
    }
    return d == RQ_USE_DEFAULT ? RQ_SYNC_WAL : d;
}

/* --- plain ops -------------------------------------------------------------------------------- */

static rq_err add_cell(rq_region *r, rq__region_store *s, const rq_mutation *m, const rq_cell *c,
                       int64_t now_ms, rq_error *why)
{
    rq_cell with_row;
    if (RQ_UNLIKELY(c->row_len == 0)) {
        with_row = *c;
        with_row.row = m->row.ptr;
        with_row.row_len = (uint16_t)m->row.len;
        c = &with_row;
    }
    rq_err rc = rq__group_add(r, s, c, now_ms);
    return RQ_LIKELY(rc == RQ_OK) ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static rq_err add_mutation(rq_region *r, const rq_mutation *m, bool atomic, int64_t now_ms,
                           rq_error *why)
{
    RQ_TRY(check_row(r, m, atomic, why));
    r->meter.steps += m->cell_count + 1;
    size_t hint = 0;
    for (size_t i = 0; i < m->cell_count; i++) {
        const rq_cell *c = &m->cells[i];
        rq__region_store *s = rq__region_store_of(r, rq_cell_family(c), &hint);
        if (RQ_UNLIKELY(s == NULL)) return rq__region_no_family(r, rq_cell_family(c), why);
        RQ_TRY(check_cell(r, m, c, now_ms, why));
        RQ_TRY(add_cell(r, s, m, c, now_ms, why));
    }
    return RQ_OK;
}

/* Cells are checked and added in one pass; an op with a bad cell is taken back. */
static rq_err add_plain(rq_region *r, const rq_row_op *op, int64_t now_ms, rq_error *why)
{
    bool atomic = op->mutation_count > 1 || op->multi_row;
    size_t before = r->group->count;
    size_t bytes = r->group->bytes;
    for (size_t i = 0; i < op->mutation_count; i++) {
        rq_err rc = add_mutation(r, &op->mutations[i], atomic, now_ms, why);
        if (RQ_LIKELY(rc == RQ_OK)) continue;
        rq__group_rollback(r, before);
        return rc;
    }
    r->meter.steps += (r->group->bytes - bytes) / STEP_BYTES;
    return RQ_OK;
}

/* --- memory is short -------------------------------------------------------------------------- */

static bool over_limit(const rq_region *r)
{
    if (r->schema->is_meta) return false; /* HBASE: checkResources */
    return r->memstore_heap > r->blocking_bytes ||
           rq__engine_memstore_held(r->engine) > r->engine->memstore_high;
}

/* After RegionTooBusyException, as after every exception that is not a DoNotRetryIOException, a
 * client retries without asking meta for the region's location. HBASE: ClientExceptionsUtil. */
static rq_err too_busy(const rq_region *r, rq_error *why)
{
    if (r->log_is_full)
        return rq_fail(
            why, RQ_E_REGION_TOO_BUSY,
            "no space left on the server's disk: the write-ahead log cannot grow, regionName=%s",
            r->info.encoded);
    if (atomic_load_explicit(&r->flush_rc, memory_order_relaxed) == RQ_E_NO_SPACE)
        return rq_fail(why, RQ_E_REGION_TOO_BUSY,
                       "no space left on the server's disk: the memstore cannot be flushed, "
                       "regionName=%s",
                       r->info.encoded);
    return rq_fail(why, RQ_E_REGION_TOO_BUSY, "Over memstore limit=%.1f M, regionName=%s",
                   (double)r->blocking_bytes / (1 << 20), r->info.encoded);
}

/* Puts the batch at the end of the held list. */
static void hold(rq_region *r, rq__batch *b)
{
    rq_write *w = rq__write_of(b);
    if (b->held_since_ns == 0) b->held_since_ns = r->env.executor->now_ns(r->env.executor);
    w->next = NULL;
    if (r->held_last != NULL)
        r->held_last->next = w;
    else
        r->held_first = w;
    r->held_last = w;
    atomic_fetch_add_explicit(&r->held, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
    /* The excess may be flushed already and wait for its last reader: rq__engine_version_freed. */
    if (r->log_is_full || r->memstore_heap > r->blocking_bytes ||
        atomic_load_explicit(&r->engine->memstore_bytes, memory_order_relaxed) >
            r->engine->memstore_low)
        rq__region_request_flush(r);
}

static void fail_rest(rq_write *w, rq_err rc, const rq_error *why)
{
    rq__batch *b = rq__batch_of(w);
    for (size_t i = b->next_op; i < w->op_count; i++)
        rq__op_fail(&w->ops[i], rc, why);
    b->next_op = w->op_count;
}

/* --- parking ---------------------------------------------------------------------------------- */

static void fetch_block(rq_task *task)
{
    rq__parked *p = RQ_CONTAINER_OF(task, rq__parked, task);
    rq__batch *b = rq__batch_of(p->write);
    rq_region *r = rq_region_ref(b->region);
    if (rq_read_ctx_needs(&p->ctx)) p->rc = rq_read_ctx_fulfil(&p->ctx, &p->why);
    p->write->next = NULL;
    rq__region_enqueue(r, &b->list.work);
    rq_wal_push(r->engine->wal, NULL); /* whatever this thread may have staged */
    rq_region_unref(r);
}

static rq__parked *parked_of(rq__batch *b)
{
    if (b->parked != NULL) return b->parked;
    b->parked = calloc(1, sizeof *b->parked);
    if (b->parked != NULL) b->parked->write = rq__write_of(b);
    return b->parked;
}

/* The read context (with its need and its pins) leaves with the batch. `steps`: of the run that is lost. */
static rq_err park(rq_region *r, rq__batch *b, rq_read_ctx *ctx, uint64_t steps)
{
    bool is_new = b->parked == NULL;
    rq__parked *p = parked_of(b);
    if (p == NULL) return RQ_E_NO_MEMORY;
    if (is_new) {
        p->ctx = *ctx;
        *ctx = (rq_read_ctx){0};
    }
    p->runs_lost++;
    p->steps_lost += steps;
    p->task.run = fetch_block;
    r->env.executor->submit(r->env.executor, RQ_POOL_READ, &p->task);
    return RQ_OK;
}

static void unpark(rq_region *r, rq__batch *b)
{
    if (b->parked == NULL) return;
    rq__apart_end(r, b->parked->apart);
    rq_read_ctx_clear(&b->parked->ctx);
    free(b->parked);
    b->parked = NULL;
}

/* --- running a batch -------------------------------------------------------------------------- */

/* Whether the log may accept the record a little later. */
static bool is_passing(rq_err rc)
{
    return rc == RQ_E_REGION_TOO_BUSY || rc == RQ_E_NO_MEMORY || rc == RQ_E_NO_SPACE;
}

/* INTERRUPTED: the time slice ended between two ops; the ops so far are committed. LEFT_OUT: the op has failed, and the batch goes on
 * behind it. */
typedef enum outcome { ENDED, HELD, PARKED, INTERRUPTED, LEFT_OUT } outcome;

/* Commits the collected plain ops: ops [first_op, end) without an error so far. */
static outcome commit_plain(rq_region *r, rq__batch *b, size_t end, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    rq__group *g = r->group;
    if (g->count == 0) return ENDED;
    size_t first = g->first_op;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq__group_commit(r, now_ms, 0, 0, &why);
    if (rc == RQ_OK) {
        b->last_seqid = r->staged_seqid;
        return ENDED;
    }
    if (is_passing(rc)) {
        b->next_op = first;
        return HELD;
    }
    for (size_t i = first; i < end; i++) {
        if (w->ops[i].rc != RQ_OK || rq__op_reads(&w->ops[i])) continue;
        rq__op_fail(&w->ops[i], rc, &why);
    }
    return ENDED;
}

static void refuse_rest(rq_region *r, rq__batch *b, size_t next_op)
{
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq_fail(&why, RQ_E_REGION_TOO_BUSY,
                        "the batch reads too many versions: its remaining operations must be sent "
                        "again, regionName=%s",
                        r->info.encoded);
    b->next_op = next_op;
    fail_rest(rq__write_of(b), rc, &why);
}

/* Whether this thread has other things to do. */
static bool is_on_lane(const rq_region *r, const rq__batch *b)
{
    return !r->on_pool && b->list.work.lane != NULL;
}

/* The batch goes on with this op, which is long, on a pool. */
static outcome go_on_elsewhere(rq__batch *b, size_t i)
{
    b->next_op = i;
    b->wants_pool = true;
    return INTERRUPTED;
}

static bool has_lost_much(const rq__parked *p)
{
    return p != NULL && (p->runs_lost >= RUNS_LOST_MAX || p->steps_lost >= STEPS_LOST_MAX);
}

static uint64_t value_steps(const rq_mutation *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->cell_count; i++)
        bytes += m->cells[i].value_len;
    return bytes / STEP_BYTES;
}

RQ_COLD static bool has_many_steps(const rq_row_op *op)
{
    uint64_t steps = op->condition_count * CONDITION_STEPS;
    for (size_t i = 0; i < op->mutation_count && steps <= LONG_OP_STEPS; i++) {
        const rq_mutation *m = &op->mutations[i];
        steps += m->cell_count + 1 + value_steps(m);
        if (m->type != RQ_MUTATE_PUT) steps += CONDITION_STEPS;
    }
    return steps > LONG_OP_STEPS;
}

/* Whether the op is too long to run on this thread. The cost of its reads is not known yet and does not count; if they
 * turn out to be long, the op reads apart from the token (run_reading). */
static bool is_too_long(const rq_region *r, const rq__batch *b, const rq_row_op *op)
{
    if (RQ_LIKELY(op->mutation_count == 1 && op->mutations[0].cell_count <= LONG_OP_STEPS / 2 &&
                  op->condition_count <= LONG_OP_STEPS / CONDITION_STEPS / 4 &&
                  value_steps(&op->mutations[0]) <= LONG_OP_STEPS / 4))
        return false;
    return is_on_lane(r, b) && has_many_steps(op);
}

/* The op's reads are made apart from the token; the batch waits for them. */
static outcome read_apart(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    rq__parked *p = parked_of(b);
    b->next_op = i;
    if (p != NULL) {
        rq_read_ctx_clear(&p->ctx);
        p->apart = rq__apart_begin(r, w, now_ms);
        if (p->apart != NULL) return PARKED;
    }
    unpark(r, b);
    rq__op_fail(&w->ops[i], RQ_E_NO_MEMORY, NULL);
    return ENDED;
}

/* The end of an op that has read; `why` of its rc. HELD: it runs again when there is memory. */
static outcome end_reading(rq_region *r, rq__batch *b, size_t i, const rq_error *why)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    unpark(r, b);
    if (is_passing(op->rc) && op->rc != RQ_E_NO_MEMORY) {
        b->next_op = i;
        return HELD;
    }
    /* It may have read unacknowledged cells; its answer waits until they are acknowledged. */
    if (r->staged_seqid > b->last_seqid) b->last_seqid = r->staged_seqid;
    if (op->rc != RQ_OK) rq__op_fail(op, op->rc, why);
    return ENDED;
}

/* The op's reads were made apart. */
static outcome apply(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__parked *p = b->parked;
    rq_error why;
    rq_error_clear(&why);
    op->rc = rq__apart_apply(p->apart, r, op, now_ms, &why);
    bool is_old = op->rc == RQ_E_AGAIN;
    if (is_old && ++p->rounds <= ROUNDS_MAX) {
        rq__apart_end(r, p->apart);
        return read_apart(r, b, i, now_ms);
    }
    if (is_old)
        op->rc = rq_fail(
            &why, RQ_E_REGION_TOO_BUSY,
            "bulk loads keep changing the data that the operation reads; retry, regionName=%s",
            r->info.encoded);
    b->read_steps += rq__apart_steps(p->apart);
    if (!is_old && !rq__apart_has_failed(p->apart)) return end_reading(r, b, i, &why);
    unpark(r, b);
    rq__op_fail(op, op->rc, &why);
    return ENDED;
}

static outcome run_reading(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__parked *p = b->parked;
    if (RQ_UNLIKELY(p != NULL && p->apart != NULL)) return apply(r, b, i, now_ms);
    if (RQ_UNLIKELY(has_lost_much(p) || is_too_long(r, b, op))) return read_apart(r, b, i, now_ms);
    rq_read_ctx *ctx = p != NULL ? &p->ctx : &r->read_ctx;
    rq_error why;
    rq_error_clear(&why);
    if (p != NULL && p->rc != RQ_OK) {
        op->rc = p->rc;
        why = p->why;
    } else {
        uint64_t steps = r->meter.steps;
        op->rc = rq__op_run_reading(r, op, ctx, now_ms, &why);
        steps = r->meter.steps - steps;
        b->read_steps += steps;
        if (RQ_UNLIKELY(op->rc == RQ_E_AGAIN && !rq_read_ctx_needs(ctx))) {
            if (p == NULL) rq_read_ctx_clear(ctx);
            return read_apart(r, b, i, now_ms);
        }
        if (op->rc == RQ_E_AGAIN) {
            why.code = RQ_OK;
            op->rc = park(r, b, ctx, steps);
            b->next_op = i;
            if (op->rc == RQ_OK) return PARKED;
        }
    }
    if (p == NULL) rq_read_ctx_clear(ctx);
    return end_reading(r, b, i, &why);
}

/* A batch of rq_region_write_sync, whose lane has no other work, is not interrupted. */
static bool must_stop(rq_region *r, const rq__batch *b)
{
    if (RQ_LIKELY(!rq_meter_spent(&r->meter, r->env.executor, 1))) return false;
    if (b->list.work.lane != NULL) return true;
    rq_meter_begin(&r->meter);
    return false;
}

/* Whether the op may share the group's log record. */
static bool joins_group(const rq__group *g, const rq_row_op *op, int durability)
{
    return g->durability == durability && g->bytes < GROUP_BYTES_MAX && g->vital == op->vital &&
           rq_slice_eq(g->cluster_ids, op->cluster_ids);
}

/* PARKED: a row of the op is locked. LEFT_OUT: one is, and nobody waits for the op's result. */
RQ_COLD static outcome wait_for_rows(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    const rq__apart_reads *own = b->parked != NULL ? b->parked->apart : NULL;
    if (own == NULL && rq__write_has_gone(w) && !rq__apart_is_free(r, &w->ops[i])) {
        b->waits_since_ns = 0;
        unpark(r, b);
        rq__op_fail(&w->ops[i], RQ_E_CALLER_DISCONNECTED, NULL);
        return LEFT_OUT;
    }
    if (own == NULL && r->group->count > 0 && !rq__apart_is_free(r, &w->ops[i])) {
        outcome o = commit_plain(r, b, i, now_ms);
        if (o != ENDED) return o;
    }
    if (!rq__apart_blocks(r, &w->ops[i], own, w)) {
        b->waits_since_ns = 0;
        return ENDED;
    }
    b->next_op = i;
    return PARKED;
}

static bool has_read_apart(const rq__batch *b)
{
    return b->parked != NULL && b->parked->apart != NULL;
}

/* Commits the ops before the long one; the batch goes on with it on a pool. */
RQ_COLD static outcome leave_lane(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    outcome o = commit_plain(r, b, i, now_ms);
    return o == ENDED ? go_on_elsewhere(b, i) : o;
}

/* The ops of a batch are independent, so it may be interrupted behind op `i`; a single op never is. */
static outcome stop_behind(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    if (RQ_LIKELY(!must_stop(r, b)) || i + 1 == rq__write_of(b)->op_count) return ENDED;
    outcome o = commit_plain(r, b, i + 1, now_ms);
    if (o != ENDED) return o;
    b->next_op = i + 1;
    return INTERRUPTED;
}

/* Whether the op is one put or delete of a batch. Every other op is a call of its own in HBase. */
static bool is_part(const rq_row_op *op)
{
    return op->mutation_count == 1 && op->condition_count == 0 &&
           !rq__mutation_is_delta(&op->mutations[0]);
}

/* The timestamp of the op's cells. The puts and deletes of a batch share that of its first time slice. HBASE:
 * doMiniBatchMutate. Another op may run long after the batch began, and its cells must not be older than those that it
 * has read. */
static int64_t time_of(const rq__batch *b, const rq_row_op *op, int64_t slice_ms)
{
    return is_part(op) ? b->now_ms : slice_ms;
}

/* Whether READ_STEPS_MAX counts. Not for a thread's own batch, and not for atomic groups: those of a batch change
 * different rows (ops/batch_write.c), so that none reads what the others have written. */
static bool has_read_limit(const rq__batch *b, const rq_row_op *op)
{
    return b->latch == NULL && is_part(op);
}

/* `slice_ms`: the time of this slice. */
static outcome run_grouped(rq_region *r, rq__batch *b, int64_t slice_ms)
{
    rq_write *w = rq__write_of(b);
    rq__group *g = r->group;
    int64_t now_ms = b->now_ms;
    for (size_t i = b->next_op; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        if (RQ_UNLIKELY(r->apart != NULL || b->waits_since_ns != 0)) {
            outcome o = wait_for_rows(r, b, i, now_ms);
            bool is_left_out = o == LEFT_OUT;
            if (is_left_out) o = stop_behind(r, b, i, now_ms);
            if (o != ENDED) return o;
            if (is_left_out) continue;
        }
        bool reads = rq__op_reads(op);
        int64_t op_ms = time_of(b, op, slice_ms);
        bool begins_to_read = reads && !has_read_apart(b);
        if (RQ_UNLIKELY(!begins_to_read && is_too_long(r, b, op)))
            return leave_lane(r, b, i, now_ms);
        op->rc = RQ_OK;
        op->processed = true;
        int durability = rq__durability_of(r, op);
        if (g->count > 0 && (reads || !joins_group(g, op, durability))) {
            outcome o = commit_plain(r, b, i, now_ms);
            if (o != ENDED) return o;
        }
        if (g->count == 0) {
            g->durability = durability;
            g->vital = op->vital;
            g->cluster_ids = op->cluster_ids;
            g->first_op = i;
        }
        if (reads) {
            outcome o = run_reading(r, b, i, op_ms);
            if (o != ENDED) return o;
            if (RQ_UNLIKELY(b->read_steps > READ_STEPS_MAX) && has_read_limit(b, op)) {
                refuse_rest(r, b, i + 1);
                return ENDED;
            }
        } else {
            rq_error why; /* not cleared: a kilobyte for each */
            why.code = RQ_OK;
            rq_err rc = add_plain(r, op, op_ms, &why);
            if (RQ_UNLIKELY(rc != RQ_OK)) rq__op_fail(op, rc, &why);
        }
        outcome o = stop_behind(r, b, i, now_ms);
        if (RQ_UNLIKELY(o != ENDED)) return o;
    }
    outcome o = commit_plain(r, b, w->op_count, now_ms);
    if (o == ENDED) b->next_op = w->op_count;
    return o;
}

void rq_region_raise_clock(rq_region *r, int64_t ms)
{
    int64_t floor = atomic_load(&r->clock_floor_ms);
    while (ms > floor && !atomic_compare_exchange_weak(&r->clock_floor_ms, &floor, ms))
        ;
}

static int64_t stamp(rq_region *r, int64_t now_ms)
{
    int64_t floor = atomic_load_explicit(&r->clock_floor_ms, memory_order_relaxed);
    if (now_ms < floor) now_ms = floor;
    return r->owned == NULL ? now_ms : rq__owned_stamp(r, now_ms);
}

static outcome run_ops(rq_region *r, rq__batch *b, int64_t now_ms)
{
    now_ms = stamp(r, now_ms);
    if (b->now_ms == 0) b->now_ms = now_ms;
    if (now_ms < b->now_ms) now_ms = b->now_ms; /* the clock was set back */
    rq__group group;
    rq__group_begin(&group);
    r->group = &group;
    outcome o = run_grouped(r, b, now_ms);
    b->bytes += group.staged_bytes;
    r->unaccounted += group.staged_bytes;
    r->group = NULL;
    rq__group_end(&group);
    return o;
}

static void end_batch(rq_region *r, rq__batch *b, rq__ended *ended)
{
    rq_write *w = rq__write_of(b);
    if (b->latch != NULL) {
        if (b->last_seqid != 0) {
            b->need_write = r->write_horizon;
            b->need_sync = r->sync_horizon;
        }
        r->env.executor->latch_open(b->latch, RQ_OK);
        return;
    }
    w->next = NULL;
    *(ended->first == NULL ? &ended->first : &ended->last->next) = w;
    ended->last = w;
    ended->count++;
    ended->bytes += b->bytes;
    if (b->last_seqid > ended->last_seqid) ended->last_seqid = b->last_seqid;
}

/* The rest of the batch runs after all work that waits for the token. Of several long batches, one
 * alternates with other work and the others wait for its end: if they took turns, each would end as
 * late as the last. */
static void put_behind(rq_region *r, rq__batch *b)
{
    rq_write *w = rq__write_of(b);
    w->next = NULL;
    if (r->long_batch == NULL) r->long_batch = b;
    if (r->long_batch == b) {
        rq__region_enqueue(r, &b->list.work);
        return;
    }
    *(r->long_first == NULL ? &r->long_first : &r->long_last->next) = w;
    r->long_last = w;
}

/* The batch waits for the token no more. */
static void let_next_long_batch_in(rq_region *r, const rq__batch *b)
{
    if (RQ_LIKELY(r->long_batch != b)) return;
    r->long_batch = NULL;
    rq_write *next = r->long_first;
    if (next == NULL) return;
    r->long_first = next->next;
    put_behind(r, rq__batch_of(next));
}

/* `waited`: the batch comes from the held list and goes to its front again. True: interrupted. */
static bool run_batch(rq_region *r, rq__batch *b, bool waited, int64_t now_ms, rq__ended *ended)
{
    rq_error why;
    rq_error_clear(&why);
    if (r->meter.over) rq_meter_begin(&r->meter);
    if (rq__region_state_now(r) != RQ__REGION_OPEN) {
        rq_err rc = rq__region_not_serving(r, &why);
        unpark(r, b);
        fail_rest(rq__write_of(b), rc, &why);
        let_next_long_batch_in(r, b);
        end_batch(r, b, ended);
        return false;
    }
    outcome o = HELD;
    bool behind = r->held_first != NULL && !waited && b->parked == NULL && !b->was_admitted;
    if (!behind && (!over_limit(r) || b->parked != NULL)) o = run_ops(r, b, now_ms);
    if (r->unaccounted >= ACCOUNT_BYTES) rq__region_account(r);
    if (o != INTERRUPTED) let_next_long_batch_in(r, b);
    if (o == HELD)
        hold(r, b);
    else if (o == ENDED)
        end_batch(r, b, ended);
    return o == INTERRUPTED;
}

/* The rest of the list runs first when the token's holder gets its next time slice. */
static void interrupt(rq_region *r, rq_write *w)
{
    RQ_ASSERT(r->interrupted == NULL);
    r->interrupted = &rq__batch_of(w)->list.work;
}

/* The time slice ended inside the batch. A batch of many slices does not keep the other writes of
 * the region, its flush or its close waiting until its end. */
static void interrupt_batch(rq_region *r, rq__batch *b, rq_write *next)
{
    if (RQ_UNLIKELY(b->wants_pool)) {
        b->wants_pool = false;
        r->wants_pool = true;
        interrupt(r, rq__write_of(b));
        return;
    }
    /* An op of many steps is not interrupted: it takes several slices at once. */
    uint64_t steps = r->meter.steps - r->meter.begun;
    b->slices += 1 + (unsigned)(steps / RQ_METER_STRETCH_STEPS);
    if (b->slices < SLICES_IN_FRONT) {
        interrupt(r, rq__write_of(b));
        return;
    }
    b->slices = 0;
    if (next != NULL) interrupt(r, next);
    put_behind(r, b);
}

void rq__write_list_run(rq_region *r, rq__work *work)
{
    rq__batch *first = RQ_CONTAINER_OF(work, rq__batch, list.work);
    rq__ended ended = {0};
    unsigned n = 0;
    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    for (rq_write *w = rq__write_of(first), *next; w != NULL; w = next) {
        next = w->next; /* it may end, be held or parked */
        if (n++ % RQ_REGION_EXPECT_MAX == 0 && next != NULL) rq__region_expect_list(r, next);
        if (run_batch(r, rq__batch_of(w), false, now_ms, &ended)) {
            interrupt_batch(r, rq__batch_of(w), next);
            break;
        }
        /* The time slice ended together with the batch: the batches behind it wait. */
        if (next != NULL && r->meter.over) {
            interrupt(r, next);
            break;
        }
    }
    rq__writes_finish(r, &ended);
}

static uint64_t longest_wait_ns(const rq_region *r)
{
    uint64_t busy = r->engine->busy_wait_ns;
    bool full = r->log_is_full || atomic_load(&r->flush_rc) == RQ_E_NO_SPACE;
    return full && busy > NO_SPACE_WAIT_NS ? NO_SPACE_WAIT_NS : busy;
}

static void run_retry(rq_region *r, rq__work *work)
{
    (void)work;
    r->retry_queued = false;
    rq__region_retry_held(r);
}

/* Puts the writes from `first` to `last` in front of the held ones again, for another time slice. */
static void retry_rest(rq_region *r, rq_write *first, rq_write *last)
{
    last->next = r->held_first;
    if (r->held_last == NULL) r->held_last = last;
    r->held_first = first;
    if (r->retry_queued) return;
    r->retry_queued = true;
    r->retry = (rq__work){.run = run_retry, .lane = rq__batch_of(first)->list.work.lane};
    rq__region_enqueue(r, &r->retry);
}

void rq__region_retry_held(rq_region *r)
{
    rq_write *w = r->held_first;
    rq_write *last = r->held_last;
    r->held_first = r->held_last = NULL;
    uint64_t now = r->env.executor->now_ns(r->env.executor);
    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    uint64_t longest = longest_wait_ns(r);
    bool closing = rq__region_state_now(r) != RQ__REGION_OPEN;
    while (w != NULL) {
        rq_write *next = w->next;
        rq__batch *b = rq__batch_of(w);
        rq__ended ended = {0}; /* each by itself: they are of many lanes */
        atomic_fetch_sub_explicit(&r->held, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
        if (!closing && now - b->held_since_ns >= longest) {
            rq_error why;
            rq_error_clear(&why);
            rq_err rc = too_busy(r, &why);
            atomic_fetch_add_explicit(&r->engine->refused_writes, 1, memory_order_relaxed);
            fail_rest(w, rc, &why);
            end_batch(r, b, &ended);
        } else {
            /* If one is held again, so are those behind it. */
            if (run_batch(r, b, r->held_first == NULL, now_ms, &ended)) {
                b->was_admitted = true;
                put_behind(r, b);
            }
        }
        rq__writes_finish(r, &ended);
        w = next;
        if (w != NULL && r->meter.over) {
            retry_rest(r, w, last);
            return;
        }
    }
}

/* HBASE: HRegion.getRowLockInternal. */
static rq_err row_wait_timed_out(const rq_region *r, const rq_write *w, rq_error *why)
{
    char row[256];
    const rq_row_op *op = &w->ops[rq__batch_of((rq_write *)(uintptr_t)w)->next_op];
    rq_bytes_to_string(op->condition_count > 0 ? op->conditions[0].row : op->mutations[0].row, row,
                       sizeof row);
    return rq_fail(why, RQ_E_IOEXCEPTION, "Timed out waiting for lock for row: %s in region %s",
                   row, r->info.encoded);
}

/* The op that waits fails; the batch goes on behind it. */
static void expire_row_wait(rq_region *r, rq_write *w)
{
    rq__batch *b = rq__batch_of(w);
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = row_wait_timed_out(r, w, &why);
    unpark(r, b);
    rq__op_fail(&w->ops[b->next_op++], rc, &why);
    b->waits_since_ns = 0;
    if (b->next_op < w->op_count) {
        rq__region_enqueue(r, &b->list.work);
        return;
    }
    rq__ended ended = {0};
    end_batch(r, b, &ended); /* it would be held if memory is short */
    rq__writes_finish(r, &ended);
}

/* Fails the ops that have waited too long for a locked row. */
static void expire_row_waits(rq_region *r)
{
    rq_executor *ex = r->env.executor;
    uint64_t now = ex->now_ns(ex);
    uint64_t longest = atomic_load_explicit(&r->engine->row_wait_ns, memory_order_relaxed);
    if (now <= longest) return;
    for (rq_write *w = rq__apart_take_expired(r, now - longest), *next; w != NULL; w = next) {
        next = w->next;
        w->next = NULL;
        expire_row_wait(r, w);
    }
}

rq_err rq_region_write_sync(rq_region *r, rq_row_op *ops, size_t op_count, rq_error *why)
{
    rq_executor *ex = r->env.executor;
    rq_latch latch;
    ex->latch_init(ex, &latch);
    rq_write w = {.ops = ops, .op_count = op_count};
    for (size_t i = 0; i < op_count; i++)
        ops[i].why = NULL;
    rq__batch *b = rq__batch_of(&w);
    *b = (rq__batch){
        .list.work.run = rq__write_list_run, .region = rq_region_ref(r), .latch = &latch};
    atomic_fetch_add_explicit(&r->inflight, 1, memory_order_acq_rel);
    atomic_fetch_add_explicit(&r->write_requests, op_count, memory_order_relaxed);
    rq__region_enqueue(r, &b->list.work);
    rq_wal_push(r->engine->wal, NULL); /* this thread may have drained others' batches */
    rq_err rc = ex->latch_wait(&latch);
    ex->latch_destroy(&latch);
    if (rc == RQ_OK && rq__batch_must_wait(b)) {
        rq_wal *wal = r->engine->wal;
        if (b->need_write != 0) rc = rq_wal_wait_blocking(wal, b->need_write, false);
        if (rc == RQ_OK && b->need_sync != 0) rc = rq_wal_wait_blocking(wal, b->need_sync, true);
    }
    if (rc != RQ_OK)
        rq__write_fail_unacknowledged(&w, rc);
    else if (b->last_seqid != 0)
        rq__region_raise_read_point(r, b->last_seqid);
    rq__region_leave(r);
    rq_region_unref(r);
    rc = RQ_OK;
    for (size_t i = 0; i < op_count; i++) {
        const rq_error *own = ops[i].why;
        if (rc == RQ_OK && ops[i].rc != RQ_OK)
            rc = rq_fail(why, ops[i].rc, "%s", own == NULL ? rq_err_text(ops[i].rc) : own->message);
        free(ops[i].why);
        ops[i].why = NULL;
    }
    return rc;
}

/* --- accounting ------------------------------------------------------------------------------- */

void rq__region_account(rq_region *r)
{
    uint64_t active = 0;
    uint64_t heap = 0;
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        active += rq_segment_heap_bytes(v->active);
        for (size_t j = 0; j < v->snapshot_count; j++)
            heap += rq_segment_heap_bytes(v->snapshots[j]);
    }
    heap += active;
    r->unaccounted = 0;
    rq__region_note_warm(r);
    if (heap == r->memstore_heap) return;
    bool grew = heap > r->memstore_heap;
    rq__engine_memstore(r->engine, (int64_t)(heap - r->memstore_heap));
    r->memstore_heap = heap;
    atomic_store_explicit(&r->memstore_bytes, heap, memory_order_relaxed);
    atomic_store_explicit(&r->active_bytes, active, memory_order_relaxed);
    if (!grew) return;
    if (active > r->flush_bytes) rq__region_request_flush(r);
    if (atomic_load_explicit(&r->engine->memstore_bytes, memory_order_relaxed) >
        r->engine->memstore_low)
        rq__engine_relieve(r->engine);
}

typedef struct poke {
    rq__work work;
} poke;

static void run_poke(rq_region *r, rq__work *work)
{
    free(RQ_CONTAINER_OF(work, poke, work));
    rq__region_retry_held(r);
    if (RQ_LIKELY(r->apart == NULL)) return;
    expire_row_waits(r);
    rq__apart_wake_gone(r);
}

void rq__region_poke(rq_region *r)
{
    /* Without memory nothing is lost: the engine's next tick tries again. */
    poke *p = malloc(sizeof *p);
    if (p == NULL) return;
    p->work = (rq__work){.run = run_poke};
    rq__region_enqueue(r, &p->work);
}
