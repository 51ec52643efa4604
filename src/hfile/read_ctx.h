/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a read carries through every HFile call: may it wait for a device, what it waits for, what
 * it has counted.
 *
 * On an event loop may_block is false. A call that needs a block which is neither in the cache nor
 * in the operating system's page cache then notes the block in `need` and returns RQ_E_AGAIN with
 * the scanner exactly as it was. The loop hands rq_read_ctx_fulfil to RQ_POOL_READ; afterwards the
 * same call is repeated and finds the block, pinned in the ctx, whatever the cache did meanwhile.
 *
 * Embedded in a request or scanner; all zero bytes are an empty ctx. One thread at a time: while
 * fulfil runs on the pool nobody else touches it.
 */
#ifndef RQ_HFILE_READ_CTX_H
#define RQ_HFILE_READ_CTX_H

#include "base/buf.h"
#include "base/err.h"
#include "hfile/format.h"

typedef struct rq_hfile_reader rq_hfile_reader;
typedef struct rq_hfile_block rq_hfile_block;

/* Enough for the deepest way through one file's index; older pins make room. */
#define RQ_READ_PINS_MAX 20

typedef struct rq_read_need {
    rq_hfile_reader *reader; /* NULL: nothing is needed; else a reference of the ctx's */
    uint64_t offset;
    uint32_t size;
    rq_block_kind kind;
} rq_read_need;

/* Something else than a block that a read may have to wait for (a MOB file is to be opened). Made
 * by whoever returns RQ_E_AGAIN, found again by the repeated call; the ctx's until it is cleared.
 */
typedef struct rq_read_wait {
    void (*bring)(
        struct rq_read_wait *w); /* blocking, on a pool; notes in itself what came of it */
    void (*release)(struct rq_read_wait *w);
    bool done;
} rq_read_wait;

typedef struct rq_read_ctx {
    bool may_block;
    bool dont_cache; /* data blocks that are read do not enter the cache (compaction; a scan that
                        was told so). Index and bloom blocks do. */
    rq_read_need need;
    rq_read_wait *wait; /* NULL: nothing; else waited for unless it is done */
    /* counters, only ever added to */
    uint64_t blocks_read;      /* from files, not the cache */
    uint64_t block_bytes_read; /* their size on disk */
    uint64_t blocks_used;      /* data blocks a scanner moved to, cached or not */
    uint64_t block_bytes_used; /* their size in memory. HBASE: block bytes scanned */
    /* the room's own */
    rq_hfile_block *pins[RQ_READ_PINS_MAX];
    uint32_t pin_next;
    rq_buf scratch;
} rq_read_ctx;

/* Whether something is missing that fulfil would bring; else RQ_E_AGAIN meant that the time slice
 * is over. */
static inline bool rq_read_ctx_needs(const rq_read_ctx *ctx)
{
    return ctx->need.reader != NULL || (ctx->wait != NULL && !ctx->wait->done);
}
/* Blocking, on a pool: reads the needed block, checks it, pins it in the ctx and offers it to the
 * cache. `need` is empty afterwards, also on failure. REQUIRES: something is needed. */
RQ_NODISCARD
rq_err rq_read_ctx_fulfil(rq_read_ctx *ctx, rq_error *why);
/* Gives up what was waited for and takes `w` (may be NULL) in its place. */
void rq_read_ctx_wait_for(rq_read_ctx *ctx, rq_read_wait *w);
/* Releases the pins alone: for a request that waits for something else than a device. What it needs
 * is still known; blocks that it had are found, or needed, again. */
void rq_read_ctx_unpin(rq_read_ctx *ctx);
/* Releases pins, need and scratch; counters and flags stay. Call it when the request (or its time
 * slice's last retry) is over. */
void rq_read_ctx_clear(rq_read_ctx *ctx);

#endif
