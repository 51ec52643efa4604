/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one op side by side; see beside.h. */
#include "ops/beside.h"

#include "ops/ops_priv.h"

rq_read_ctx *rq__beside_next(rq_beside *b)
{
    uint64_t all = atomic_load_explicit(&b->ops->beside_bytes, memory_order_relaxed);
    if (b->count == RQ_BESIDE_MAX || all >= b->ops->beside_bytes_max) return NULL;
    rq_read_ctx *ctx = &b->reads[b->count].ctx;
    *ctx = (rq_read_ctx){.copy_max = RQ_READ_COPY_MAX}; /* the op runs on a lane */
    return ctx;
}

static bool is_same(const rq_read_need *a, const rq_read_need *b)
{
    return a->reader == b->reader && a->offset == b->offset;
}

static bool is_kept(const rq_beside *b, const rq_read_need *need)
{
    for (unsigned i = 0; i < b->count; i++)
        if (is_same(&b->reads[i].ctx.need, need)) return true;
    return false;
}

void rq__beside_keep(rq_beside *b, const rq_read_ctx *own)
{
    rq_read_ctx *ctx = &b->reads[b->count].ctx;
    if (ctx->need.reader == NULL || ctx->wait != NULL || is_same(&ctx->need, &own->need) ||
        is_kept(b, &ctx->need)) {
        rq_read_ctx_clear(ctx);
        return;
    }
    b->charged += ctx->need.size;
    atomic_fetch_add_explicit(&b->ops->beside_bytes, ctx->need.size, memory_order_relaxed);
    b->count++;
}

void rq__beside_clear(rq_beside *b)
{
    for (unsigned i = 0; i < b->count; i++)
        rq_read_ctx_clear(&b->reads[i].ctx);
    b->count = 0;
    atomic_fetch_sub_explicit(&b->ops->beside_bytes, b->charged, memory_order_relaxed);
    b->charged = 0;
}

/* An error is not reported: what needs the block reads it again, and reports it. */
static void end(rq_beside_read *r, rq_err rc)
{
    if (rc != RQ_OK) rq_read_ctx_clear(&r->ctx);
    rq_op_read *op = r->all->op;
    if (rq__beside_ended(r->all)) rq_lane_post(op->op.seat->lane, &op->task);
}

static void run(rq_task *task)
{
    rq_beside_read *r = RQ_CONTAINER_OF(task, rq_beside_read, task);
    rq_error why;
    rq_error_clear(&why);
    end(r, rq_read_ctx_fulfil(&r->ctx, &why));
}

/* The begun read has ended; on the lane. */
static void run_take(rq_task *task)
{
    rq_beside_read *r = RQ_CONTAINER_OF(task, rq_beside_read, task);
    rq_executor *executor = r->all->op->op.seat->executor;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq_read_ctx_take(&r->ctx, &why);
    if (rc == RQ_E_AGAIN) {
        r->task.run = run;
        executor->submit(executor, RQ_POOL_READ, &r->task);
        return;
    }
    end(r, rc);
}

static void begin(rq_beside_read *r)
{
    const rq_ops_seat *seat = r->all->op->op.seat;
    r->task.run = run_take;
    if (rq_read_ctx_begin(&r->ctx, seat->reads, &r->task)) return;
    r->task.run = run;
    seat->executor->submit(seat->executor, RQ_POOL_READ, &r->task);
}

void rq__beside_begin(rq_beside *b, rq_op_read *op)
{
    unsigned count = b->count;
    b->op = op;
    atomic_store_explicit(&b->running, count + 1, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++) {
        b->reads[i].all = b;
        begin(&b->reads[i]);
    }
}

bool rq__beside_ended(rq_beside *b)
{
    return atomic_fetch_sub_explicit(&b->running, 1, memory_order_acq_rel) == 1;
}

void rq__beside_collect(rq_beside *b, rq_read_ctx *own)
{
    for (unsigned i = 0; i < b->count; i++)
        rq_read_ctx_take_over(own, &b->reads[i].ctx);
    b->count = 0;
}
