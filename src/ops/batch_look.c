/* SPDX-License-Identifier: Apache-2.0 */
/* While a get waits for a block, the blocks that the next gets will need are read in the same wait.
 * So a batch of a hundred rows that are not in memory waits a few times, not a hundred times.
 *
 * A look is a get whose result is discarded; the get itself later finds the block pinned, and does
 * not depend on the look's result. Each part is looked at once, and decoded once: its scan is kept
 * until its turn comes. */
#include "ops/batch_priv.h"
#include "ops/beside.h"

#include <stdlib.h>

/* Parts looked at in one wait. */
#define LOOKS_MAX 32

typedef struct rq__batch_looks {
    size_t from, to; /* parts of the group whose scans are here */
    bool decoded[LOOKS_MAX];
    rq_scan scans[LOOKS_MAX];
    rq_beside beside;
} rq__batch_looks;

static bool is_scarce(const rq_op *op)
{
    return op->caller != NULL && op->caller->is_scarce(op);
}

/* False: there are enough. */
static bool look_at(rq_op_batch *b, size_t part)
{
    rq__batch_looks *l = b->looks;
    rq_scan *scan = &l->scans[part - l->from];
    bool *decoded = &l->decoded[part - l->from];
    rq_error why;
    rq_error_clear(&why);
    *decoded = false;
    if (b->parts[part].kind != RQ_PART_GET || b->parts[part].is_long) return true;
    rq_read_ctx *ctx = rq__beside_next(&l->beside);
    if (ctx == NULL) return false;
    /* One that is malformed reports it in its turn. */
    if (b->table->get(b, &b->parts[part], scan, &why) != RQ_OK) return true;
    *decoded = true;
    rq_arena_reset(&b->get_arena);
    rq_err rc = rq_region_look(b->region, scan, &b->get_arena, ctx, b->out);
    if (rc == RQ_E_AGAIN)
        rq__beside_keep(&l->beside, &b->read.ctx);
    else
        rq_read_ctx_clear(ctx);
    return true;
}

void rq__batch_look(rq_op_batch *b)
{
    if (b->part_at + 1 >= b->part_count || is_scarce(&b->read.op)) return;
    if (b->looks == NULL) b->looks = calloc(1, sizeof *b->looks);
    rq__batch_looks *l = b->looks;
    if (l == NULL) return; /* then one after the other */
    l->beside.ops = b->read.op.seat->ops;
    b->read.beside = &l->beside;
    if (b->part_at + 1 < l->to) return; /* the next ones were looked at */
    l->from = l->to = b->part_at + 1;
    while (l->to < b->part_count && l->to - l->from < LOOKS_MAX && look_at(b, l->to))
        l->to++;
    b->meter.steps += (unsigned)(l->to - l->from);
}

/* Call it when the last of the gets that were looked at has run: their blocks are not needed any
 * more. */
static void release_blocks(rq_op_batch *b)
{
    rq_read_ctx_unpin(&b->read.ctx);
    if (b->looks != NULL && b->looks->beside.charged > 0) rq__beside_clear(&b->looks->beside);
}

bool rq__batch_looked_at(rq_op_batch *b, rq_scan *ret)
{
    const rq__batch_looks *l = b->looks;
    if (l == NULL || b->part_at >= l->to) release_blocks(b);
    if (RQ_LIKELY(l == NULL) || b->part_at < l->from || b->part_at >= l->to) return false;
    if (!l->decoded[b->part_at - l->from]) return false;
    *ret = l->scans[b->part_at - l->from];
    return true;
}

void rq__batch_forget_looks(rq_op_batch *b)
{
    if (b->looks == NULL) return;
    b->looks->from = b->looks->to = 0;
    release_blocks(b);
}

void rq__batch_drop_looks(rq_op_batch *b)
{
    if (b->looks == NULL) return;
    rq__beside_clear(&b->looks->beside);
    b->read.beside = NULL;
    free(b->looks);
    b->looks = NULL;
}
