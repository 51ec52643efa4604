/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a batch through its region, under the token; writer.c has its way there and its
 * response.
 *
 *   rq_region_write ─ collected ─► token ─ run_batch ─► group of cells ─ commit ─► log record staged
 *                                          │ │                                   cells linked
 *             held: memory is short ◄──────┘ └─ parked: a block is missing, reads run apart, or a row is
 *             (held.c)                                  locked by such reads (parked.c)
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
#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/write_priv.h"

#include <stdlib.h>

#define GROUP_BYTES_MAX ((size_t)256 * 1024)
/* Most bytes by which memstores grow before they are accounted again. */
#define ACCOUNT_BYTES ((size_t)64 * 1024)
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

/* --- checks ----------------------------------------------------------------------------------- */

/* Reports a row outside of the region. HBASE: HRegion.checkRow through batchMutate: for a single put or
 * delete the exception says that a sanity check failed, for an atomic batch, an increment or an append it is
 * WrongRegionException. */
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
    bool alone = m->type == RQ_MUTATE_INCREMENT || m->type == RQ_MUTATE_APPEND;
    if (!rq_region_info_contains(&r->info, m->row))
        return wrong_row(r, m->row, atomic || alone, why);
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

void rq__write_fail_rest(rq_write *w, rq_err rc, const rq_error *why)
{
    rq__batch *b = rq__batch_of(w);
    for (size_t i = b->next_op; i < w->op_count; i++)
        rq__op_fail(&w->ops[i], rc, why);
    b->next_op = w->op_count;
}

/* --- running a batch -------------------------------------------------------------------------- */

rq__outcome rq__batch_commit_plain(rq_region *r, rq__batch *b, size_t end, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    rq__group *g = r->group;
    if (g->count == 0) return RQ__ENDED;
    size_t first = g->first_op;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq__group_commit(r, now_ms, 0, 0, &why);
    if (rc == RQ_OK) {
        b->last_seqid = r->staged_seqid;
        return RQ__ENDED;
    }
    if (rq__log_may_accept_later(rc)) {
        b->next_op = first;
        return RQ__HELD;
    }
    for (size_t i = first; i < end; i++) {
        if (w->ops[i].rc != RQ_OK || rq__op_reads(&w->ops[i])) continue;
        rq__op_fail(&w->ops[i], rc, &why);
    }
    return RQ__ENDED;
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
    rq__write_fail_rest(rq__write_of(b), rc, &why);
}

/* Whether this thread has other things to do. */
static bool is_on_lane(const rq_region *r, const rq__batch *b)
{
    return !r->on_pool && b->list.work.lane != NULL;
}

/* The batch goes on with this op, which is long, on a pool. */
static rq__outcome go_on_elsewhere(rq__batch *b, size_t i)
{
    b->next_op = i;
    b->wants_pool = true;
    return RQ__INTERRUPTED;
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

/* The cost of its reads is not known yet and does not count; if they
 * turn out to be long, the op reads apart from the token (parked.c). */
bool rq__op_is_too_long(const rq_region *r, const rq__batch *b, const rq_row_op *op)
{
    if (RQ_LIKELY(op->mutation_count == 1 && op->mutations[0].cell_count <= LONG_OP_STEPS / 2 &&
                  op->condition_count <= LONG_OP_STEPS / CONDITION_STEPS / 4 &&
                  value_steps(&op->mutations[0]) <= LONG_OP_STEPS / 4))
        return false;
    return is_on_lane(r, b) && has_many_steps(op);
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

/* Commits the ops before the long one; the batch goes on with it on a pool. */
RQ_COLD static rq__outcome leave_lane(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq__outcome o = rq__batch_commit_plain(r, b, i, now_ms);
    return o == RQ__ENDED ? go_on_elsewhere(b, i) : o;
}

/* The ops of a batch are independent, so it may be interrupted behind op `i`; a single op never is. */
static rq__outcome stop_behind(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    if (RQ_LIKELY(!must_stop(r, b)) || i + 1 == rq__write_of(b)->op_count) return RQ__ENDED;
    rq__outcome o = rq__batch_commit_plain(r, b, i + 1, now_ms);
    if (o != RQ__ENDED) return o;
    b->next_op = i + 1;
    return RQ__INTERRUPTED;
}

static void begin_group(rq__group *g, const rq_row_op *op, int durability, size_t i)
{
    g->durability = durability;
    g->vital = op->vital;
    g->cluster_ids = op->cluster_ids;
    g->first_op = i;
}

/* Adds the plain op to the group. A large op begins a group of its own: the log may refuse its record, and the ops before it
 * must not fail with it. */
static rq__outcome add_to_group(rq_region *r, rq__batch *b, size_t i, int64_t op_ms)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__group *g = r->group;
    size_t before = g->count;
    size_t bytes = g->bytes;
    rq_error why; /* not cleared: a kilobyte for each */
    why.code = RQ_OK;
    rq_err rc = add_plain(r, op, op_ms, &why);
    if (RQ_UNLIKELY(rc == RQ_OK && before > 0 && g->bytes - bytes > GROUP_BYTES_MAX)) {
        rq__group_rollback(r, before);
        rq__outcome o = rq__batch_commit_plain(r, b, i, b->now_ms);
        if (o != RQ__ENDED) return o;
        begin_group(g, op, g->durability, i);
        rc = add_plain(r, op, op_ms, &why);
    }
    if (RQ_UNLIKELY(rc != RQ_OK)) rq__op_fail(op, rc, &why);
    return RQ__ENDED;
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

static void unlock_rows(rq_region *r, rq__batch *b)
{
    rq__row_set *rows = b->rows;
    b->rows = NULL;
    if (rows != NULL) rq__row_locks_free(r, rows);
}

/* `slice_ms`: the time of this slice. */
static rq__outcome run_grouped(rq_region *r, rq__batch *b, int64_t slice_ms)
{
    rq_write *w = rq__write_of(b);
    rq__group *g = r->group;
    int64_t now_ms = b->now_ms;
    size_t first_op = b->next_op;
    for (size_t i = first_op; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        if (RQ_UNLIKELY(r->row_locks.count > 0 || b->waits_since_ns != 0)) {
            if (i != first_op) unlock_rows(r, b); /* they are the rows of the first op */
            rq__outcome o = rq__batch_wait_for_rows(r, b, i, now_ms);
            bool is_left_out = o == RQ__LEFT_OUT;
            if (is_left_out) o = stop_behind(r, b, i, now_ms);
            if (o != RQ__ENDED) return o;
            if (is_left_out) continue;
        }
        bool reads = rq__op_reads(op);
        int64_t op_ms = time_of(b, op, slice_ms);
        bool begins_to_read = reads && !rq__batch_has_read_apart(b);
        if (RQ_UNLIKELY(!begins_to_read && rq__op_is_too_long(r, b, op)))
            return leave_lane(r, b, i, now_ms);
        op->rc = RQ_OK;
        op->processed = true;
        int durability = rq__durability_of(r, op);
        if (g->count > 0 && (reads || !joins_group(g, op, durability))) {
            rq__outcome o = rq__batch_commit_plain(r, b, i, now_ms);
            if (o != RQ__ENDED) return o;
        }
        if (g->count == 0) begin_group(g, op, durability, i);
        if (reads) {
            rq__outcome o = rq__batch_read(r, b, i, op_ms);
            if (o != RQ__ENDED) return o;
            if (RQ_UNLIKELY(b->read_steps > READ_STEPS_MAX) && has_read_limit(b, op)) {
                refuse_rest(r, b, i + 1);
                return RQ__ENDED;
            }
        } else {
            rq__outcome o = add_to_group(r, b, i, op_ms);
            if (RQ_UNLIKELY(o != RQ__ENDED)) return o;
        }
        rq__outcome o = stop_behind(r, b, i, now_ms);
        if (RQ_UNLIKELY(o != RQ__ENDED)) return o;
    }
    rq__outcome o = rq__batch_commit_plain(r, b, w->op_count, now_ms);
    if (o == RQ__ENDED) b->next_op = w->op_count;
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

static rq__outcome run_ops(rq_region *r, rq__batch *b, int64_t now_ms)
{
    now_ms = stamp(r, now_ms);
    if (b->now_ms == 0) b->now_ms = now_ms;
    if (now_ms < b->now_ms) now_ms = b->now_ms; /* the clock was set back */
    rq__group group;
    rq__group_begin(&group);
    r->group = &group;
    rq__outcome o = run_grouped(r, b, now_ms);
    b->bytes += group.staged_bytes;
    r->unaccounted += group.staged_bytes;
    r->group = NULL;
    rq__group_end(&group);
    return o;
}

void rq__batch_end(rq_region *r, rq__batch *b, rq__ended *ended)
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

/* Of several long batches, one alternates with other work and the others wait for its end: if they
 * took turns, each would end as late as the last. */
void rq__batch_put_behind(rq_region *r, rq__batch *b)
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
    rq__batch_put_behind(r, rq__batch_of(next));
}

/* Whether the batch keeps its row locks: its op runs again as soon as a block is read or another thread takes it. A batch that waits
 * for memory keeps none, so that other writes of the rows need not wait for it. */
static bool keeps_rows(const rq__batch *b, rq__outcome o, size_t first_op)
{
    return b->next_op == first_op && (o == RQ__PARKED || o == RQ__INTERRUPTED);
}

bool rq__batch_go_on(rq_region *r, rq__batch *b, bool waited, int64_t now_ms, rq__ended *ended)
{
    rq_error why;
    rq_error_clear(&why);
    if (r->meter.over) rq_meter_begin(&r->meter);
    if (rq__region_state_now(r) != RQ__REGION_OPEN) {
        rq_err rc = rq__region_not_serving(r, &why);
        rq__batch_unpark(r, b);
        rq__write_fail_rest(rq__write_of(b), rc, &why);
        let_next_long_batch_in(r, b);
        unlock_rows(r, b);
        rq__batch_end(r, b, ended);
        return false;
    }
    rq__outcome o = RQ__HELD;
    size_t first_op = b->next_op;
    bool behind = r->held_first != NULL && !waited && b->parked == NULL && !b->was_admitted;
    if (!behind && (!over_limit(r) || b->parked != NULL)) o = run_ops(r, b, now_ms);
    if (r->unaccounted >= ACCOUNT_BYTES) rq__region_account(r);
    if (o != RQ__INTERRUPTED) let_next_long_batch_in(r, b);
    if (RQ_UNLIKELY(b->rows != NULL) && !keeps_rows(b, o, first_op)) unlock_rows(r, b);
    if (o == RQ__HELD)
        rq__batch_hold(r, b);
    else if (o == RQ__ENDED)
        rq__batch_end(r, b, ended);
    return o == RQ__INTERRUPTED;
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
    rq__batch_put_behind(r, b);
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
        if (rq__batch_go_on(r, rq__batch_of(w), false, now_ms, &ended)) {
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
