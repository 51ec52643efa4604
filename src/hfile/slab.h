/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache's memory: pieces of 2 KiB to 1 MiB cut from 2 MiB chunks that become huge pages.
 * Within the room. Cached blocks are accessed at random over gigabytes; on small pages every access
 * is also a TLB miss and costs twice as much (400 against 210 ns over 480 MB, bench/hfile.c).
 *
 * A chunk is 2048 units of 1 KiB and a bitmap. A piece takes the first run that fits, in the chunk
 * with the lowest address. Sizes are rounded up to a thirty-second of their power of two, so that a
 * new block fits into the space of a freed one; blocks of 64 KiB plus a few hundred bytes then
 * waste 2 units in 66. While the cache grows, a background task keeps some huge, touched chunks
 * ready, since making one takes up to a millisecond, too long for an event loop. Empty chunks are
 * kept for later blocks: after a compaction the output's blocks replace the inputs' blocks, and
 * pages returned to the system are expensive to get back, especially in a virtual machine
 * (docs/lab/server.md). Chunks that stay empty are returned gradually (rq__slab_trim). Any thread;
 * one lock, taken once per block read from a file.
 */
#ifndef RQ_HFILE_SLAB_H
#define RQ_HFILE_SLAB_H

#include "base/err.h"
#include "base/executor.h"

#include <stdint.h>

typedef struct rq__slab rq__slab;

RQ_NODISCARD
rq_err rq__slab_new(rq__slab **ret);
/* REQUIRES: all pieces were given back. Waits for the background task. NULL is allowed. */
void rq__slab_free(rq__slab *s);
/* From now on chunks are prepared on RQ_POOL_FLUSH, up to what `bytes_max` bytes need. Called once,
 * before other threads take pieces; the executor must outlive the slab. */
void rq__slab_make_ready(rq__slab *s, rq_executor *executor, uint64_t bytes_max);
/* Changes bytes_max. Any thread. */
void rq__slab_set_most(rq__slab *s, uint64_t bytes_max);

/* Takes at least `size` bytes, aligned to 16, uninitialised; *ret_charge is the memory really
 * used. Sizes out of range, and all sizes when `s` is NULL, come from malloc. NULL when memory
 * is exhausted. */
void *rq__slab_take(rq__slab *s, size_t size, size_t *ret_charge);
/* Gives a piece back; `charge` as returned by take. NULL is allowed. */
void rq__slab_give(rq__slab *s, void *piece, size_t charge);

/* Returns to the system 1/share of the chunks that were empty since the last call. */
void rq__slab_trim(rq__slab *s, unsigned share);

/* Bytes of all chunks, used and free. */
uint64_t rq__slab_mapped(rq__slab *s);

#endif
