/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves RQ_E_AGAIN: reads the needed block on a pool and pins it (read_ctx.h). */
#include "hfile/read_ctx.h"

#include "hfile/reader_priv.h"
#include "hfile/window.h"

static void pin(rq_read_ctx *ctx, rq_hfile_block *b)
{
    rq__hfile_block_unref(ctx->pins[ctx->pin_next]);
    ctx->pins[ctx->pin_next] = b;
    ctx->pin_next = (ctx->pin_next + 1) % RQ_READ_PINS_MAX;
}

void rq_read_ctx_wait_for(rq_read_ctx *ctx, rq_read_wait *w)
{
    if (ctx->wait != NULL) ctx->wait->release(ctx->wait);
    ctx->wait = w;
}

/* Loads the needed block, and pins it. After RQ_E_AGAIN it is needed as before. */
static rq_err bring(rq_read_ctx *ctx, rq_error *why)
{
    rq_read_need need = ctx->need;
    RQ_ASSERT(need.reader != NULL);
    ctx->need = (rq_read_need){0};
    rq_hfile_block *b;
    if (need.follows) rq__reader_follow(need.reader, true);
    rq_err rc = rq__reader_block(need.reader, ctx, need.offset, need.size, need.kind, &b, why);
    if (need.follows) rq__reader_follow(need.reader, false);
    if (rc == RQ_OK) {
        /* Only loaded here; the repeated call uses it. */
        if (need.kind == RQ_BLOCK_DATA) {
            ctx->blocks_used--;
            ctx->block_bytes_used -= b->payload_len;
        }
        pin(ctx, b);
    }
    rq_hfile_reader_unref(need.reader);
    return rc;
}

rq_err rq_read_ctx_fulfil(rq_read_ctx *ctx, rq_error *why)
{
    if (ctx->wait != NULL && !ctx->wait->done) {
        ctx->wait->bring(ctx->wait);
        ctx->wait->done = true;
        if (ctx->need.reader == NULL) return RQ_OK;
    }
    bool may_block = ctx->may_block;
    ctx->may_block = true;
    rq_err rc = bring(ctx, why);
    ctx->may_block = may_block;
    return rc;
}

/* A block of the second level of the cache is not read from its file. */
static bool is_in_second_level(const rq_read_need *n)
{
    const rq_hfile_reader *r = n->reader;
    return r->cached != NULL && rq__cache_has_second(r->cached, n->offset);
}

bool rq_read_ctx_begin(rq_read_ctx *ctx, rq_reads *reads, rq_task *task)
{
    const rq_read_need *n = &ctx->need;
    bool waits_for_other = ctx->wait != NULL && !ctx->wait->done;
    if (reads == NULL || n->reader == NULL || waits_for_other || n->follows ||
        n->size > RQ__LOAD_AT_ONCE_MAX || !rq__reader_has_place(n->reader, n->offset, n->size) ||
        is_in_second_level(n))
        return false;
    return rq_file_begin_read(n->reader->file, reads, &ctx->begun, n->offset, n->size, task);
}

rq_err rq_read_ctx_take(rq_read_ctx *ctx, rq_error *why)
{
    const rq_read_need *n = &ctx->need;
    rq_err rc = RQ_E_AGAIN;
    RQ_ASSERT(n->reader != NULL && !ctx->may_block);
    if (rq_read_has(&ctx->begun, n->offset, n->size, &ctx->have, &ctx->have_offset))
        rc = bring(ctx, why);
    ctx->have = (rq_slice){0};
    rq_read_end(&ctx->begun);
    return rc;
}

bool rq_read_ctx_wait(const rq_read_ctx *ctx, rq_task *task)
{
    bool waits_for_other = ctx->wait != NULL && !ctx->wait->done;
    return !waits_for_other && rq__windows_have(ctx->need.kind) &&
           rq__window_wait(ctx->need.reader, ctx->need.offset, task);
}

void rq_read_ctx_take_over(rq_read_ctx *ctx, rq_read_ctx *from)
{
    for (size_t i = 0; i < RQ_READ_PINS_MAX && from->pins[i] != NULL; i++) {
        pin(ctx, from->pins[i]);
        from->pins[i] = NULL;
    }
    ctx->blocks_read += from->blocks_read;
    ctx->block_bytes_read += from->block_bytes_read;
    from->pin_next = 0;
    from->blocks_read = from->block_bytes_read = 0;
    rq_read_ctx_clear(from);
}

void rq_read_ctx_unpin(rq_read_ctx *ctx)
{
    for (size_t i = 0; i < RQ_READ_PINS_MAX && ctx->pins[i] != NULL; i++) {
        rq__hfile_block_unref(ctx->pins[i]);
        ctx->pins[i] = NULL;
    }
    ctx->pin_next = 0;
}

void rq_read_ctx_clear(rq_read_ctx *ctx)
{
    rq_read_ctx_unpin(ctx);
    rq_read_ctx_wait_for(ctx, NULL);
    rq_hfile_reader_unref(ctx->need.reader);
    ctx->need = (rq_read_need){0};
    rq_buf_clear(&ctx->scratch);
}
