/* SPDX-License-Identifier: Apache-2.0 */
/* The gets of a batch, one at a time, with a prefetch for the next ones. Most complete at once. A get
 * that needs a block which is not in memory is repeated when the block is loaded; one that has waited
 * several times, or that needs a scanner anyway, goes on by a scanner. Its cells are appended behind
 * earlier results. */
#include "ops/batch_priv.h"

/* Prefetches the memory that the next gets will touch. (Puts are prefetched when they are
 * linked.) */
static void expect_gets(rq_op_batch *b)
{
    rq_region_expected list[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    for (b->ahead = b->part_at; b->ahead < b->part_count && n < RQ_REGION_EXPECT_MAX; b->ahead++) {
        const rq_batch_part *p = &b->parts[b->ahead];
        if (p->kind != RQ_PART_GET) continue;
        list[n++] = (rq_region_expected){b->region, p->row, false};
    }
    if (n > 1) rq_region_expect(list, n);
}

/* Most waits for blocks of a get on the fast path. A get that needs more blocks continues by a scanner, which keeps
 * what it has read. */
#define TRIES_MAX 4

/* What the last wait brought. */
static rq_err end_wait(rq_op_batch *b, rq_error *why)
{
    rq_err rc = b->read.fetch_rc;
    b->get_waits = false;
    if (rc != RQ_OK) *why = b->read.op.why;
    b->read.fetch_rc = RQ_OK;
    rq_error_clear(&b->read.op.why);
    return rc;
}

static rq_err decode(rq_op_batch *b, const rq_batch_part *p, rq_error *why)
{
    b->get_tries = 0;
    if (!rq__batch_looked_at(b, &b->scan)) {
        rq_err rc = b->table->get(b, p, &b->scan, why);
        b->is_translated = false;
        if (rc != RQ_OK) return rc;
    }
    b->scan.row_bytes_max = b->read.op.seat->ops->row_bytes_max;
    b->get_mark = rq_cellblock_get_mark(b->out);
    return RQ_OK;
}

rq_err rq__batch_begin_get(rq_op_batch *b, const rq_batch_part *p, rq_error *why)
{
    if (b->part_at >= b->ahead) expect_gets(b);
    rq_arena *arena = &b->get_arena;
    bool answered;
    rq_arena_reset(arena);
    RQ_TRY(b->get_waits ? end_wait(b, why) : decode(b, p, why));
    rq_err rc = rq_region_get(b->region, &b->scan, arena, &b->read.ctx, b->out, &answered, why);
    if (answered || (rc != RQ_OK && rc != RQ_E_AGAIN)) return rc;
    if (rc == RQ_E_AGAIN && b->read.op.seat->lane != NULL && b->get_tries++ < TRIES_MAX) {
        b->get_waits = true;
        rq__batch_look(b);
        return rc;
    }
    RQ_TRY(rq_region_scanner_open(b->region, &b->scan, 0, arena, &b->scanner, why));
    b->get_running = true;
    return rc;
}

rq_err rq__batch_answer_get(rq_op_batch *b, const rq_batch_part *p)
{
    uint32_t cells = b->out->count - b->get_mark.count;
    size_t bytes = b->out->bytes.len - b->get_mark.len;
    b->result_bytes += bytes;
    b->read.op.cost.cells += cells;
    b->meter.steps += cells + bytes / 64;
    b->counts[RQ_OP_GET]++;
    return b->table->got(b, p, cells);
}

rq_err rq__batch_read_slice(rq_op_read *read)
{
    rq_op_batch *b = RQ_CONTAINER_OF(read, rq_op_batch, read);
    rq_scan_limits limits = {.yield_ns = rq_op_read_yield_ns(read)};
    rq_scan_state state;
    rq_err rc =
        rq_region_scanner_next(b->scanner, &limits, &read->ctx, b->out, &state, &read->op.why);
    if (rq_op_read_suspends(read, rc)) rq_region_scanner_suspend(b->scanner);
    return rc;
}

rq_err rq__batch_go_on_get(rq_op_batch *b, const rq_batch_part *p)
{
    rq_err rc = rq_op_read_slice(&b->read);
    if (rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_E_CALLER_DISCONNECTED) rq__batch_fail(b, rc);
    rq_error why = b->read.op.why;
    b->read.fetch_rc = RQ_OK;
    rq_error_clear(&b->read.op.why);
    rq_region_scanner_close(b->scanner);
    b->scanner = NULL;
    b->get_running = false;
    if (rc == RQ_OK) return rq__batch_answer_get(b, p);
    rq_cellblock_truncate(b->out, b->get_mark);
    return b->table->failed(b, p, rc, &why);
}
