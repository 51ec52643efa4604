/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of a read through every HFile call: whether it may wait for a device, which block it
 * needs, and counters.
 *
 * On an event loop may_block is false. A call that needs a block that is neither in the cache nor
 * in the operating system's page cache stores the block in `need` and returns RQ_E_AGAIN, with the
 * scanner unchanged. The loop runs rq_read_ctx_fulfil on RQ_POOL_READ. Then the same call is
 * repeated and finds the block, which is pinned in the ctx even if the cache has evicted it.
 *
 * Embedded in a request or scanner; zero bytes are an empty ctx. One thread at a time: while fulfil
 * runs on the pool no other thread may use it.
 */
#ifndef RQ_HFILE_READ_CTX_H
#define RQ_HFILE_READ_CTX_H

#include "base/buf.h"
#include "base/err.h"
#include "hfile/format.h"
#include "vfs/reads.h"

struct rq_task;
typedef struct rq_hfile_reader rq_hfile_reader;
typedef struct rq_hfile_block rq_hfile_block;

/* Longest value that an event loop copies: about a tenth of a millisecond. */
#define RQ_READ_COPY_MAX ((uint32_t)512 * 1024)

/* Enough for the deepest path through one file's index; the oldest pins are replaced. */
#define RQ_READ_PINS_MAX 20

typedef struct rq_read_need {
    rq_hfile_reader *reader; /* NULL: nothing is needed; else a reference owned by the ctx */
    uint64_t offset;
    uint32_t size;
    rq_block_kind kind;
    bool follows; /* the blocks before it were read in sequence */
} rq_read_need;

/* An operation, other than reading a block, that a read has to wait for (the opening of a MOB
 * file). Made by the call that returns RQ_E_AGAIN, found again by the repeated call. Owned by the
 * ctx until the ctx is cleared. */
typedef struct rq_read_wait {
    void (*bring)(
        struct rq_read_wait *w); /* runs on a pool, may block; stores its result in the struct */
    void (*release)(struct rq_read_wait *w);
    bool done;
} rq_read_wait;

typedef struct rq_read_ctx {
    bool may_block;
    bool dont_cache;   /* do not put data blocks into the cache (compaction, or a scan that asked
                      * for it); index and bloom blocks are cached */
    uint32_t copy_max; /* longest value that the caller may copy; 0: any */
    uint32_t
        too_long; /* after RQ_E_AGAIN: length of a value above copy_max, which another thread must copy; 0: none */
    rq_read_need need;
    rq_read_wait *wait; /* NULL: none; else the read waits for it unless it is done */
    /* counters; they only increase */
    uint64_t cells_passed;     /* examined, in units of a scanner's clock readings */
    uint64_t blocks_read;      /* from files, not from the cache */
    uint64_t block_bytes_read; /* their size on disk */
    uint64_t blocks_used;      /* data blocks a scanner moved to, cached or not */
    uint64_t block_bytes_used; /* their size in memory. HBASE: block bytes scanned */
    /* internal to the room */
    bool follows; /* of the block that is looked for, see rq_read_need */
    rq_hfile_block *pins[RQ_READ_PINS_MAX];
    uint32_t pin_next;
    rq_buf scratch;
    rq_read begun; /* of rq_read_ctx_begin */
    rq_slice have; /* bytes of the needed block's file, while its block is made of them */
    uint64_t have_offset;
} rq_read_ctx;

/* Whether rq_read_ctx_fulfil has something to do; if not, RQ_E_AGAIN meant that the time slice
 * is over. */
static inline bool rq_read_ctx_needs(const rq_read_ctx *ctx)
{
    return ctx->need.reader != NULL || (ctx->wait != NULL && !ctx->wait->done);
}
/* Whether the caller may copy a value of this length. False: the read ends with RQ_E_AGAIN. */
static inline bool rq_read_ctx_may_copy(rq_read_ctx *ctx, uint32_t len)
{
    if (RQ_LIKELY(ctx->copy_max == 0 || len <= ctx->copy_max)) return true;
    ctx->too_long = len;
    return false;
}
/* Reads the needed block, checks it, pins it in the ctx and offers it to the cache. Blocks; runs
 * on a pool. `need` is empty afterwards, also on failure. REQUIRES: rq_read_ctx_needs. */
RQ_NODISCARD
rq_err rq_read_ctx_fulfil(rq_read_ctx *ctx, rq_error *why);
/* Whether the needed block is being read in advance, for a scan. If so, the task runs on a thread of RQ_POOL_READ when
 * that read has ended, and must call rq_read_ctx_fulfil. So no thread waits meanwhile. */
bool rq_read_ctx_wait(const rq_read_ctx *ctx, struct rq_task *task);
/* Begins to read the needed block without a thread (vfs/reads.h). True: the task runs on the lane of `reads` when the read
 * has ended, and must call rq_read_ctx_take; until then the ctx is not used and does not move. False: the caller must
 * call rq_read_ctx_fulfil on a pool. `reads` may be NULL. On its lane. */
bool rq_read_ctx_begin(rq_read_ctx *ctx, struct rq_reads *reads, struct rq_task *task);
/* Like rq_read_ctx_fulfil, for the read that rq_read_ctx_begin began; does not block. RQ_E_AGAIN: the read failed, or the block
 * takes long to decompress: rq_read_ctx_fulfil must be called on a pool. */
RQ_NODISCARD
rq_err rq_read_ctx_take(rq_read_ctx *ctx, rq_error *why);
/* Moves the pins and the counters of read blocks from `from` to `ctx`, and clears `from`: for a
 * block that was read at the same time as the one that `ctx` needed. At most RQ_READ_PINS_MAX pins
 * are kept. */
void rq_read_ctx_take_over(rq_read_ctx *ctx, rq_read_ctx *from);
/* Releases the former `wait` and sets `w` (may be NULL) in its place. */
void rq_read_ctx_wait_for(rq_read_ctx *ctx, rq_read_wait *w);
/* Releases the pins only, for a request that waits for something other than a device. `need` is
 * kept; the released blocks are found, or needed, again. */
void rq_read_ctx_unpin(rq_read_ctx *ctx);
/* Releases pins, need and scratch; counters and flags are kept. Call it when the request, or the
 * last retry of its time slice, is over. */
void rq_read_ctx_clear(rq_read_ctx *ctx);

#endif
