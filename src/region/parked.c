/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that wait in the middle, with their next op (write.c):
 *
 *   - An op that reads lacks a block: it is abandoned, the block is read by RQ_POOL_READ, and the op runs again, but not any
 *     number of times (RUNS_LOST_MAX).
 *   - Its reads take long: they run apart from the token, while its rows are locked (apart.h).
 *   - One of its rows is locked by such reads.
 *
 * Meanwhile the token runs other batches.
 */
#include "region/apart.h"
#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <stdlib.h>

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

void rq__batch_unpark(rq_region *r, rq__batch *b)
{
    if (b->parked == NULL) return;
    rq__apart_end(r, b->parked->apart);
    rq_read_ctx_clear(&b->parked->ctx);
    free(b->parked);
    b->parked = NULL;
}

/* --- ops that read ---------------------------------------------------------------------------- */

static bool has_lost_much(const rq__parked *p)
{
    return p != NULL && (p->runs_lost >= RUNS_LOST_MAX || p->steps_lost >= STEPS_LOST_MAX);
}

/* The op's reads are made apart from the token; the batch waits for them. */
static rq__outcome read_apart(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    rq__parked *p = parked_of(b);
    b->next_op = i;
    if (p != NULL) {
        rq_read_ctx_clear(&p->ctx);
        p->apart = rq__apart_begin(r, w, now_ms);
        if (p->apart != NULL) return RQ__PARKED;
    }
    rq__batch_unpark(r, b);
    rq__op_fail(&w->ops[i], RQ_E_NO_MEMORY, NULL);
    return RQ__ENDED;
}

/* The end of an op that has read; `why` of its rc. RQ__HELD: it runs again when there is memory. */
static rq__outcome end_reading(rq_region *r, rq__batch *b, size_t i, const rq_error *why)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__batch_unpark(r, b);
    if (rq__log_may_accept_later(op->rc) && op->rc != RQ_E_NO_MEMORY) {
        b->next_op = i;
        return RQ__HELD;
    }
    /* It may have read unacknowledged cells; its answer waits until they are acknowledged. */
    if (r->staged_seqid > b->last_seqid) b->last_seqid = r->staged_seqid;
    if (op->rc != RQ_OK) rq__op_fail(op, op->rc, why);
    return RQ__ENDED;
}

/* The op's reads were made apart. */
static rq__outcome apply(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__parked *p = b->parked;
    rq_error why;
    rq_error_clear(&why);
    op->rc = rq__apart_apply(p->apart, r, op, now_ms, &why);
    bool is_old = op->rc == RQ_E_AGAIN;
    if (is_old && ++p->rounds <= ROUNDS_MAX) {
        b->next_op = i;
        rq__apart_again(p->apart, r, now_ms);
        return RQ__PARKED;
    }
    if (is_old)
        op->rc = rq_fail(
            &why, RQ_E_REGION_TOO_BUSY,
            "bulk loads keep changing the data that the operation reads; retry, regionName=%s",
            r->info.encoded);
    b->read_steps += rq__apart_steps(p->apart);
    if (!is_old && !rq__apart_has_failed(p->apart)) return end_reading(r, b, i, &why);
    rq__batch_unpark(r, b);
    rq__op_fail(op, op->rc, &why);
    return RQ__ENDED;
}

rq__outcome rq__batch_read(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_row_op *op = &rq__write_of(b)->ops[i];
    rq__parked *p = b->parked;
    if (RQ_UNLIKELY(p != NULL && p->apart != NULL)) return apply(r, b, i, now_ms);
    if (RQ_UNLIKELY(has_lost_much(p) || rq__op_is_too_long(r, b, op)))
        return read_apart(r, b, i, now_ms);
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
            if (op->rc == RQ_OK) return RQ__PARKED;
        }
    }
    if (p == NULL) rq_read_ctx_clear(ctx);
    return end_reading(r, b, i, &why);
}

rq__outcome rq__batch_wait_for_rows(rq_region *r, rq__batch *b, size_t i, int64_t now_ms)
{
    rq_write *w = rq__write_of(b);
    const rq_row_op *op = &w->ops[i];
    if (rq__row_locks_are_free(r, op, w)) {
        b->waits_since_ns = 0;
        return RQ__ENDED;
    }
    if (rq__write_has_gone(w)) {
        b->waits_since_ns = 0;
        rq__batch_unpark(r, b);
        rq__op_fail(&w->ops[i], RQ_E_CALLER_DISCONNECTED, NULL);
        return RQ__LEFT_OUT;
    }
    if (r->group->count > 0) {
        rq__outcome o = rq__batch_commit_plain(r, b, i, now_ms);
        if (o != RQ__ENDED) return o;
    }
    b->next_op = i;
    if (rq__row_locks_wait(r, op, w) == RQ_OK) return RQ__PARKED;
    b->waits_since_ns = 0;
    rq__batch_unpark(r, b);
    rq__op_fail(&w->ops[i], RQ_E_NO_MEMORY, NULL);
    return RQ__LEFT_OUT;
}

bool rq__batch_has_read_apart(const rq__batch *b)
{
    return b->parked != NULL && b->parked->apart != NULL;
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
    rq__batch_unpark(r, b);
    rq__op_fail(&w->ops[b->next_op++], rc, &why);
    b->waits_since_ns = 0;
    if (b->next_op < w->op_count) {
        rq__region_enqueue(r, &b->list.work);
        return;
    }
    rq__ended ended = {0};
    rq__batch_end(r, b, &ended); /* it would be held if memory is short */
    rq__writes_finish(r, &ended);
}

void rq__region_expire_row_waits(rq_region *r)
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
