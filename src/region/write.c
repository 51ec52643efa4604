/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a batch through its region, and back.
 *
 *   rq_region_write ─ enqueue ─► token ─ run_batch ─► group of cells ─ commit ─► log record staged
 *                                          │ │                                   cells linked
 *             held: memory is short ◄──────┘ └─ parked: a block is missing
 *                                                       (fetched by RQ_POOL_READ, run again)
 *   done ◄─ lane ◄─ read point raised ◄─ the log acknowledges ◄─ waiting for the batch's horizons
 *
 * Invariants:
 *  1. An op enters the memstore only after the log has accepted its record; staging is all or
 *     nothing and linking cannot fail, so log and memstore never disagree.
 *  2. Numbers are given under the token, in staging order. The read point is raised to a number
 * only when everything staged up to it is acknowledged as it asked for: a batch waits for the
 * horizons as they were when its last op was staged, which cover all before it. Later is never seen
 * first.
 *  3. An answer that depended on reading staged cells waits for the same horizons.
 *  4. Plain puts and deletes of one batch with one durability share a record and a number (HBASE:
 *     doMiniBatchMutate); each is all or nothing because the record is.
 */
#include "region/engine_priv.h"

#include <stdlib.h>

#define GROUP_BYTES_MAX ((size_t)256 * 1024)
/* A full disk is waited for only so long that flushes could have freed log segments: a client waits
 * no longer than hbase.rpc.timeout, and would never be told why. */
#define NO_SPACE_WAIT_NS ((uint64_t)5 * 1000 * 1000 * 1000)

/* A batch waiting for a block. */
typedef struct parked {
    rq_task task; /* on RQ_POOL_READ */
    rq_read_ctx ctx;
    rq_write *write;
    rq_err rc;
    rq_error why;
} parked;

typedef struct batch {
    rq__work work;
    rq_region *region; /* referenced until done */
    rq_wal_waiter waiter;
    rq_task task;
    rq_timer timer;
    size_t next_op;
    uint64_t last_seqid; /* 0: nothing staged, nothing read */
    uint64_t bytes;      /* of the cells staged */
    rq_lsn need_write;   /* horizons to wait for; 0: passed */
    rq_lsn need_sync;
    rq_latch *latch; /* rq_region_write_sync: waits itself */
    parked *parked;
    uint64_t held_since_ns; /* 0: was never held */
} batch;

_Static_assert(sizeof(batch) <= sizeof(((rq_write *)NULL)->state), "rq_write.state is too small");

static inline batch *batch_of(rq_write *w)
{
    return (batch *)(void *)w->state;
}

static inline rq_write *write_of(batch *b)
{
    return (rq_write *)(void *)((char *)b - offsetof(rq_write, state));
}

static void raise_to(_Atomic uint64_t *mark, uint64_t value)
{
    uint64_t old = atomic_load_explicit(mark, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak_explicit(
                              mark, &old, value, memory_order_acq_rel, memory_order_relaxed))
        ;
}

/* --- finishing: on the batch's lane ----------------------------------------------------------- */

static void deliver(batch *b)
{
    rq_region *r = b->region;
    rq_write *w = write_of(b);
    rq__region_leave(r);
    w->done(w); /* the batch is its owner's again, and perhaps gone */
    rq_region_unref(r);
}

static void deliver_late(rq_task *task)
{
    deliver(RQ_CONTAINER_OF(task, batch, timer.task));
}

/* Debt: between the marks of the memstore ceiling answers come later, so writers slow down. */
static void finish(batch *b)
{
    rq_engine *e = b->region->engine;
    uint64_t delay = b->bytes == 0 ? 0 : rq__engine_debt_delay_ns(e, b->bytes);
    if (delay == 0) {
        deliver(b);
        return;
    }
    atomic_fetch_add_explicit(&e->delayed_writes, 1, memory_order_relaxed);
    b->timer = (rq_timer){.task.run = deliver_late};
    e->env.executor->timer_arm(e->env.executor, &b->timer, write_of(b)->lane, delay);
}

static void fail_unacknowledged(rq_write *w, rq_err rc)
{
    for (size_t i = 0; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        if (op->rc != RQ_OK) continue;
        op->why.code = RQ_OK;
        /* It may count yet; a client comes back with the same op and nonce. */
        if (rc == RQ_E_NO_SPACE)
            op->rc = rq_fail(&op->why, RQ_E_REGION_TOO_BUSY,
                             "no space left on the server's disk: the log waits for it");
        else
            op->rc = rq_fail(&op->why, rc, "the log failed: %s", rq_err_text(rc));
        op->processed = false;
    }
}

static void wait_or_finish(batch *b);

static void on_acknowledged(rq_wal_waiter *waiter, rq_err rc)
{
    batch *b = RQ_CONTAINER_OF(waiter, batch, waiter);
    if (rc != RQ_OK) {
        fail_unacknowledged(write_of(b), rc);
        b->last_seqid = 0;
        finish(b);
        return;
    }
    if (b->need_write != 0) {
        raise_to(&b->region->acked_write, b->need_write);
        b->need_write = 0;
    } else {
        raise_to(&b->region->acked_sync, b->need_sync);
        b->need_sync = 0;
    }
    wait_or_finish(b);
}

/* Drops horizons that were passed already. */
static bool must_wait(batch *b)
{
    rq_region *r = b->region;
    if (b->need_write <= atomic_load_explicit(&r->acked_write, memory_order_acquire))
        b->need_write = 0;
    if (b->need_sync <= atomic_load_explicit(&r->acked_sync, memory_order_acquire))
        b->need_sync = 0;
    return b->need_write != 0 || b->need_sync != 0;
}

static void wait_or_finish(batch *b)
{
    if (must_wait(b)) {
        b->waiter.run = on_acknowledged;
        bool synced = b->need_write == 0;
        rq_wal_wait(write_of(b)->member, &b->waiter, synced ? b->need_sync : b->need_write, synced);
        return;
    }
    if (b->last_seqid != 0) rq__region_raise_read_point(b->region, b->last_seqid);
    finish(b);
}

static void finish_task(rq_task *task)
{
    wait_or_finish(RQ_CONTAINER_OF(task, batch, task));
}

/* token: every op has its rc. */
static void end_batch(rq_region *r, batch *b)
{
    if (b->last_seqid != 0) {
        b->need_write = r->write_horizon;
        b->need_sync = r->sync_horizon;
    }
    if (b->latch != NULL) {
        r->env.executor->latch_open(b->latch, RQ_OK);
    } else if (must_wait(b)) {
        wait_or_finish(b);
    } else {
        b->task.run = finish_task;
        rq_lane_post(write_of(b)->lane, &b->task);
    }
}

/* --- groups ----------------------------------------------------------------------------------- */

/* Not zeroed: most of it is room. */
static void group_begin(rq__group *g)
{
    g->cells = g->first_cells;
    g->slices = g->first_slices;
    g->room = RQ__GROUP_ROOM;
    g->count = 0;
    g->bytes = 0;
    g->staged_bytes = 0;
}

static void group_end(rq__group *g)
{
    RQ_ASSERT(g->count == 0);
    if (g->room == RQ__GROUP_ROOM) return;
    free(g->cells);
    free(g->slices);
}

static rq_err group_grow(rq__group *g)
{
    size_t room = g->room * 2;
    rq_segment_pending *cells = malloc(room * sizeof *cells);
    rq_slice *slices = malloc(room * sizeof *slices);
    if (cells == NULL || slices == NULL) {
        free(cells);
        free(slices);
        return RQ_E_NO_MEMORY;
    }
    memcpy(cells, g->cells, g->count * sizeof *cells);
    memcpy(slices, g->slices, g->count * sizeof *slices);
    if (g->room > RQ__GROUP_ROOM) {
        free(g->cells);
        free(g->slices);
    }
    g->cells = cells;
    g->slices = slices;
    g->room = room;
    return RQ_OK;
}

rq_err rq__group_add(rq_region *r, rq__region_store *s, const rq_cell *cell)
{
    rq__group *g = r->group;
    if (RQ_UNLIKELY(g->count == g->room)) RQ_TRY(group_grow(g));
    rq_segment *segment = rq_store_active(s->store);
    rq_segment_node *node;
    RQ_TRY(rq_segment_prepare(segment, cell, &node));
    g->cells[g->count] = (rq_segment_pending){segment, node};
    g->slices[g->count] = rq_segment_node_bytes(node);
    g->bytes += g->slices[g->count].len;
    g->count++;
    return RQ_OK;
}

void rq__group_rollback(rq_region *r, size_t count)
{
    rq__group *g = r->group;
    /* Last in, first out: each segment gives back from its end. */
    while (g->count > count) {
        g->count--;
        g->bytes -= g->slices[g->count].len;
        rq_segment_rollback(g->cells[g->count].segment, g->cells[g->count].node);
    }
}

static rq_err stage(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                    uint64_t seqid)
{
    rq__group *g = r->group;
    if (g->durability == RQ_SKIP_WAL) return RQ_OK;
    rq_wal_record record = {
        .kind = RQ_WAL_EDIT,
        .sequence_id = seqid,
        .write_time_ms = now_ms,
        .nonce_group = nonce_group,
        .nonce = nonce,
        .scopes = r->log_scopes,
    };
    rq_lsn lsn;
    RQ_TRY(rq_wal_stage(r->engine->wal, r->log, &record, g->slices, g->count, &lsn));
    r->staged_lsn = lsn;
    if (g->durability == RQ_FSYNC_WAL)
        r->sync_horizon = lsn;
    else if (g->durability != RQ_ASYNC_WAL)
        r->write_horizon = lsn;
    return RQ_OK;
}

rq_err rq__group_commit(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                        rq_error *why)
{
    rq__group *g = r->group;
    if (g->count == 0) return RQ_OK;
    uint64_t seqid = r->staged_seqid + 1;
    rq_err rc = stage(r, now_ms, nonce_group, nonce, seqid);
    r->log_is_full = rc == RQ_E_NO_SPACE;
    if (rc != RQ_OK) {
        rq__group_rollback(r, 0);
        return rq_fail(why, rc, "the log refused a record: %s", rq_err_text(rc));
    }
    r->staged_seqid = seqid;
    rq_segment_link_batch(g->cells, g->count, seqid, now_ms);
    g->staged_bytes += g->bytes;
    g->count = 0;
    g->bytes = 0;
    return RQ_OK;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* HBASE: HRegion.checkRow through batchMutate; a single put or delete reports it as a failed sanity
 * check, an atomic batch as it is. */
static rq_err wrong_row(const rq_region *r, rq_slice row, bool atomic, rq_error *why)
{
    char name[512];
    char start[256];
    char end[256];
    char given[256];
    rq_bytes_to_string(r->info.name, name, sizeof name);
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
    if (r->cell_bytes_max > 0) {
        rq_cell whole = *c;
        whole.row_len = (uint16_t)m->row.len;
        size_t size =
            rq_cell_serialized_len(&whole, true) + 4; /* HBASE: estimatedSerializedSizeOf */
        if (size > r->cell_bytes_max)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Cell with size %zu exceeds limit of %llu bytes",
                           size, (unsigned long long)r->cell_bytes_max);
    }
    if (m->type == RQ_MUTATE_PUT && r->timestamp_slop_ms != INT64_MAX &&
        c->timestamp != RQ_TIMESTAMP_LATEST && c->timestamp > now_ms + r->timestamp_slop_ms)
        return rq_fail(why, RQ_E_SANITY_CHECK, "Timestamp for KV out of range %lld (too.new=%lld)",
                       (long long)c->timestamp, (long long)r->timestamp_slop_ms);
    return RQ_OK;
}

rq_err rq__mutation_check(rq_region *r, const rq_mutation *m, bool atomic, int64_t now_ms,
                          rq_error *why)
{
    if (r->schema->read_only) return rq_fail(why, RQ_E_DO_NOT_RETRY, "region is read only");
    if (m->row.len == 0) return rq_fail(why, RQ_E_DO_NOT_RETRY, "Row length is 0");
    if (m->row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Row length %zu is > %d", m->row.len,
                       RQ_ROW_LEN_MAX);
    if (!rq_region_info_contains(&r->info, m->row)) return wrong_row(r, m->row, atomic, why);
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

static rq_err add_plain(rq_region *r, const rq_row_op *op, int64_t now_ms, rq_error *why)
{
    bool atomic = op->mutation_count > 1 || op->multi_row;
    for (size_t i = 0; i < op->mutation_count; i++)
        RQ_TRY(rq__mutation_check(r, &op->mutations[i], atomic, now_ms, why));
    size_t before = r->group->count;
    size_t hint = 0;
    for (size_t i = 0; i < op->mutation_count; i++) {
        const rq_mutation *m = &op->mutations[i];
        for (size_t j = 0; j < m->cell_count; j++) {
            rq_cell c = m->cells[j];
            c.row = m->row.ptr;
            c.row_len = (uint16_t)m->row.len;
            if (c.timestamp == RQ_TIMESTAMP_LATEST) c.timestamp = now_ms;
            rq_err rc = rq__group_add(r, rq__region_store_of(r, rq_cell_family(&c), &hint), &c);
            if (rc == RQ_OK) continue;
            rq__group_rollback(r, before);
            return rq_fail(why, rc, "%s", rq_err_text(rc));
        }
    }
    return RQ_OK;
}

/* --- memory is short -------------------------------------------------------------------------- */

static bool over_limit(const rq_region *r)
{
    if (r->schema->is_meta) return false; /* HBASE: checkResources */
    return r->memstore_heap > r->blocking_bytes ||
           rq__engine_memstore_held(r->engine) > r->engine->memstore_high;
}

/* A client comes back after RegionTooBusyException, as after any exception that is none of
 * DoNotRetryIOException's, and does not ask meta where the region is. HBASE: ClientExceptionsUtil.
 */
static rq_err too_busy(const rq_region *r, rq_error *why)
{
    if (r->log_is_full)
        return rq_fail(why, RQ_E_REGION_TOO_BUSY,
                       "no space left on the server's disk: the log cannot grow, regionName=%s",
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
static void hold(rq_region *r, batch *b)
{
    rq_write *w = write_of(b);
    if (b->held_since_ns == 0) b->held_since_ns = r->env.executor->now_ns(r->env.executor);
    w->next = NULL;
    if (r->held_last != NULL)
        r->held_last->next = w;
    else
        r->held_first = w;
    r->held_last = w;
    atomic_fetch_add_explicit(&r->held, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
    /* What is over may be flushed already and wait for its last reader: rq__engine_version_freed.
     */
    if (r->log_is_full || r->memstore_heap > r->blocking_bytes ||
        atomic_load_explicit(&r->engine->memstore_bytes, memory_order_relaxed) >
            r->engine->memstore_low)
        rq__region_request_flush(r);
}

static void fail_rest(rq_write *w, rq_err rc, const rq_error *why)
{
    batch *b = batch_of(w);
    for (size_t i = b->next_op; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        op->rc = rc;
        op->why = *why;
        op->processed = false;
    }
    b->next_op = w->op_count;
}

/* --- parking ---------------------------------------------------------------------------------- */

static void fetch_block(rq_task *task)
{
    parked *p = RQ_CONTAINER_OF(task, parked, task);
    batch *b = batch_of(p->write);
    rq_region *r = rq_region_ref(b->region);
    if (rq_read_ctx_needs(&p->ctx)) p->rc = rq_read_ctx_fulfil(&p->ctx, &p->why);
    rq__region_enqueue(r, &b->work);
    rq_wal_push(r->engine->wal, NULL); /* whatever this thread may have staged */
    rq_region_unref(r);
}

/* The read context (with its need and its pins) leaves with the batch. */
static rq_err park(rq_region *r, batch *b, rq_read_ctx *ctx)
{
    parked *p = b->parked;
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        if (p == NULL) return RQ_E_NO_MEMORY;
        p->write = write_of(b);
        p->ctx = *ctx;
        *ctx = (rq_read_ctx){0};
        b->parked = p;
    }
    p->task.run = fetch_block;
    r->env.executor->submit(r->env.executor, RQ_POOL_READ, &p->task);
    return RQ_OK;
}

static void unpark(batch *b)
{
    if (b->parked == NULL) return;
    rq_read_ctx_clear(&b->parked->ctx);
    free(b->parked);
    b->parked = NULL;
}

/* --- running a batch -------------------------------------------------------------------------- */

/* Whether the log may take the record a little later. */
static bool is_passing(rq_err rc)
{
    return rc == RQ_E_REGION_TOO_BUSY || rc == RQ_E_NO_MEMORY || rc == RQ_E_NO_SPACE;
}

typedef enum outcome { ENDED, HELD, PARKED } outcome;

/* Commits the plain ops collected, which are ops [first_op, end) without an error so far. */
static outcome commit_plain(rq_region *r, batch *b, size_t end, int64_t now_ms)
{
    rq_write *w = write_of(b);
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
        w->ops[i].rc = rc;
        w->ops[i].why = why;
        w->ops[i].processed = false;
    }
    return ENDED;
}

static outcome run_reading(rq_region *r, batch *b, size_t i, int64_t now_ms)
{
    rq_row_op *op = &write_of(b)->ops[i];
    parked *p = b->parked;
    rq_read_ctx *ctx = p != NULL ? &p->ctx : &r->read_ctx;
    if (p != NULL && p->rc != RQ_OK) {
        op->rc = p->rc;
        op->why = p->why;
    } else {
        op->rc = rq__op_run_reading(r, op, ctx, now_ms, &op->why);
        if (op->rc == RQ_E_AGAIN) {
            op->why.code = RQ_OK;
            op->rc = park(r, b, ctx);
            b->next_op = i;
            if (op->rc == RQ_OK) return PARKED;
        }
        if (is_passing(op->rc) && op->rc != RQ_E_NO_MEMORY) {
            if (p == NULL) rq_read_ctx_clear(ctx);
            unpark(b);
            b->next_op = i;
            return HELD;
        }
        /* What it saw may not be acknowledged yet; its answer waits until it is. */
        if (r->staged_seqid > b->last_seqid) b->last_seqid = r->staged_seqid;
    }
    if (p == NULL) rq_read_ctx_clear(ctx);
    unpark(b);
    if (op->rc != RQ_OK) op->processed = false;
    return ENDED;
}

static outcome run_grouped(rq_region *r, batch *b)
{
    rq_write *w = write_of(b);
    rq__group *g = r->group;
    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    for (size_t i = b->next_op; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        op->rc = RQ_OK;
        op->why.code = RQ_OK;
        op->processed = true;
        bool reads = rq__op_reads(op);
        int durability = rq__durability_of(r, op);
        if (g->count > 0 && (reads || g->durability != durability || g->bytes >= GROUP_BYTES_MAX)) {
            outcome o = commit_plain(r, b, i, now_ms);
            if (o != ENDED) return o;
        }
        if (g->count == 0) {
            g->durability = durability;
            g->first_op = i;
        }
        if (reads) {
            outcome o = run_reading(r, b, i, now_ms);
            if (o != ENDED) return o;
        } else {
            op->rc = add_plain(r, op, now_ms, &op->why);
            if (op->rc != RQ_OK) op->processed = false;
        }
    }
    outcome o = commit_plain(r, b, w->op_count, now_ms);
    if (o == ENDED) b->next_op = w->op_count;
    return o;
}

static outcome run_ops(rq_region *r, batch *b)
{
    rq__group group;
    group_begin(&group);
    r->group = &group;
    outcome o = run_grouped(r, b);
    b->bytes += group.staged_bytes;
    r->group = NULL;
    group_end(&group);
    return o;
}

/* `waited`: it comes from the held list and goes before the others in it. */
static void run_batch(rq_region *r, batch *b, bool waited)
{
    rq_error why;
    rq_error_clear(&why);
    if (rq__region_state_now(r) != RQ__REGION_OPEN) {
        rq_err rc = rq__region_not_serving(r, &why);
        unpark(b);
        fail_rest(write_of(b), rc, &why);
        end_batch(r, b);
        return;
    }
    outcome o = HELD;
    bool behind = r->held_first != NULL && !waited && b->parked == NULL;
    if (!behind && (!over_limit(r) || b->parked != NULL)) o = run_ops(r, b);
    rq__region_account(r);
    if (o == HELD)
        hold(r, b);
    else if (o == ENDED)
        end_batch(r, b);
}

static void run_enqueued(rq_region *r, rq__work *work)
{
    run_batch(r, RQ_CONTAINER_OF(work, batch, work), false);
}

static uint64_t longest_wait_ns(const rq_region *r)
{
    uint64_t busy = r->engine->busy_wait_ns;
    bool full = r->log_is_full || atomic_load(&r->flush_rc) == RQ_E_NO_SPACE;
    return full && busy > NO_SPACE_WAIT_NS ? NO_SPACE_WAIT_NS : busy;
}

void rq__region_retry_held(rq_region *r)
{
    rq_write *w = r->held_first;
    r->held_first = r->held_last = NULL;
    uint64_t now = r->env.executor->now_ns(r->env.executor);
    uint64_t longest = longest_wait_ns(r);
    bool closing = rq__region_state_now(r) != RQ__REGION_OPEN;
    while (w != NULL) {
        rq_write *next = w->next;
        batch *b = batch_of(w);
        atomic_fetch_sub_explicit(&r->held, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
        if (!closing && now - b->held_since_ns >= longest) {
            rq_error why;
            rq_error_clear(&why);
            rq_err rc = too_busy(r, &why);
            atomic_fetch_add_explicit(&r->engine->refused_writes, 1, memory_order_relaxed);
            fail_rest(w, rc, &why);
            end_batch(r, b);
        } else {
            /* Once one is held again, those behind it are too. */
            run_batch(r, b, r->held_first == NULL);
        }
        w = next;
    }
}

static void begin(rq_region *r, rq_write *w, rq_latch *latch)
{
    batch *b = batch_of(w);
    *b = (batch){
        .work = {.run = run_enqueued, .lane = w->lane}, .region = rq_region_ref(r), .latch = latch};
    atomic_fetch_add_explicit(&r->inflight, 1, memory_order_acq_rel);
    atomic_fetch_add_explicit(&r->write_requests, w->op_count, memory_order_relaxed);
    rq__region_enqueue(r, &b->work);
}

void rq_region_write(rq_region *r, rq_write *w)
{
    begin(r, w, NULL);
}

rq_err rq_region_write_sync(rq_region *r, rq_row_op *ops, size_t op_count, rq_error *why)
{
    rq_executor *ex = r->env.executor;
    rq_latch latch;
    ex->latch_init(ex, &latch);
    rq_write w = {.ops = ops, .op_count = op_count};
    begin(r, &w, &latch);
    rq_wal_push(r->engine->wal, NULL); /* this thread may have drained others' batches */
    rq_err rc = ex->latch_wait(&latch);
    ex->latch_destroy(&latch);
    batch *b = batch_of(&w);
    if (rc == RQ_OK && must_wait(b)) {
        rq_wal *wal = r->engine->wal;
        if (b->need_write != 0) rc = rq_wal_wait_blocking(wal, b->need_write, false);
        if (rc == RQ_OK && b->need_sync != 0) rc = rq_wal_wait_blocking(wal, b->need_sync, true);
    }
    if (rc != RQ_OK)
        fail_unacknowledged(&w, rc);
    else if (b->last_seqid != 0)
        rq__region_raise_read_point(r, b->last_seqid);
    rq__region_leave(r);
    rq_region_unref(r);
    for (size_t i = 0; i < op_count; i++)
        if (ops[i].rc != RQ_OK) return rq_fail(why, ops[i].rc, "%s", ops[i].why.message);
    return RQ_OK;
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
}

void rq__region_poke(rq_region *r)
{
    /* Without memory nothing is lost: the engine's next tick pokes again. */
    poke *p = malloc(sizeof *p);
    if (p == NULL) return;
    p->work = (rq__work){.run = run_poke};
    rq__region_enqueue(r, &p->work);
}
