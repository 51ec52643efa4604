/* SPDX-License-Identifier: Apache-2.0 */
/* Get; see get.h. */
#include "ops/get.h"

#include "ops/ops_priv.h"

/* Most waits for blocks on the fast path. A get that needs more blocks reads a long row, or a row
 * in many files: it continues by a scanner, which keeps what it has read. */
#define WAITS_MAX 4

static void end(rq_op_get *g, rq_err rc)
{
    rq_op *op = &g->read.op;
    uint64_t cells = g->out->count - g->begun.count;
    op->cost.rows = cells > 0;
    op->cost.cells = cells;
    op->cost.bytes_out = g->out->bytes.len - g->begun.len;
    rq_op_end(op, rc);
}

/* Of a get that has waited, or has had a scanner, which keeps the region. */
static void end_late(rq_op_get *g, rq_err rc)
{
    rq_region *region = g->held != NULL ? g->held : rq_region_ref(g->read.op.region);
    rq_region_scanner_close(g->scanner);
    rq_read_ctx_clear(&g->read.ctx);
    end(g, rc);
    rq_region_unref(region);
}

static rq_err read_slice(rq_op_read *read)
{
    rq_op_get *g = RQ_CONTAINER_OF(read, rq_op_get, read);
    rq_scan_limits limits = {.yield_ns = rq_op_read_yield_ns(read)};
    rq_scan_state state;
    rq_err rc =
        rq_region_scanner_next(g->scanner, &limits, &read->ctx, g->out, &state, &read->op.why);
    if (rq_op_read_suspends(read, rc)) rq_region_scanner_suspend(g->scanner);
    return rc;
}

static void step_scanner(rq_op_get *g)
{
    rq_err rc = rq_op_read_slice(&g->read);
    if (rc == RQ_E_AGAIN)
        rq_op_read_wait(&g->read);
    else
        end_late(g, rc);
}

/* Continues a get that the fast path did not answer, with result `rc`, by a scanner: the row needs
 * many blocks or must be merged, or the get fails. */
RQ_COLD static void scan_row(rq_op_get *g, rq_err rc)
{
    rq_op *op = &g->read.op;
    bool waits = rc == RQ_E_AGAIN;
    g->read.sink = g->out;
    if (rc == RQ_OK || waits)
        rc = rq_region_scanner_open(op->region, &g->scan, 0, op->arena, &g->scanner, &op->why);
    if (rc != RQ_OK)
        end_late(g, rc);
    else if (waits && op->seat->lane != NULL)
        rq_op_read_wait(&g->read);
    else
        rq__op_read_run(&g->read);
}

/* True: it waits for a block, and will try again. */
static bool wait_for_block(rq_op_get *g, rq_err rc)
{
    rq_op *op = &g->read.op;
    if (rc != RQ_E_AGAIN || op->seat->lane == NULL || g->waits == WAITS_MAX) return false;
    if (g->held == NULL) g->held = rq_region_ref(op->region);
    g->waits++;
    g->read.sink = g->out;
    rq_op_read_wait(&g->read);
    return true;
}

static void try_again(rq_op_get *g)
{
    rq_op_read *read = &g->read;
    rq_op *op = &read->op;
    bool answered = false;
    rq_err rc = rq__op_read_waited(read);
    if (rc != RQ_OK) {
        end_late(g, rc);
        return;
    }
    rc = rq_region_get(op->region, &g->scan, op->arena, &read->ctx, g->out, &answered, &op->why);
    if (answered)
        end_late(g, RQ_OK);
    else if (!wait_for_block(g, rc))
        scan_row(g, rc);
}

static void step(rq_op_read *read)
{
    rq_op_get *g = RQ_CONTAINER_OF(read, rq_op_get, read);
    if (g->scanner == NULL)
        try_again(g);
    else
        step_scanner(g);
}

static void run(rq_op *op)
{
    rq_op_get *g = RQ_CONTAINER_OF(op, rq_op_get, read.op);
    bool answered = false;
    g->begun = rq_cellblock_get_mark(g->out);
    g->scan.row_bytes_max = op->seat->ops->row_bytes_max;
    rq_op_read_init(&g->read, step, read_slice);
    rq_err rc =
        rq_region_get(op->region, &g->scan, op->arena, &g->read.ctx, g->out, &answered, &op->why);
    if (RQ_UNLIKELY(!answered)) {
        g->scanner = NULL;
        g->held = NULL;
        g->waits = 0;
        if (!wait_for_block(g, rc)) scan_row(g, rc);
        return;
    }
    /* Nothing is pinned: that takes a wait. */
    if (RQ_UNLIKELY(g->read.ctx.scratch.ptr != NULL)) rq_read_ctx_clear(&g->read.ctx);
    end(g, RQ_OK);
}

void rq_op_get_start(rq_op_get *g)
{
    rq_op_begin(&g->read.op, run);
}
