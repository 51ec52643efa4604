/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache's memory: pieces of 2 KiB to 1 MiB cut from 2 MiB chunks that become huge
 * pages. Within the room. Cached blocks are touched at random over gigabytes; on small pages every
 * touch is a translation miss too, and costs twice as much (400 against 210 ns over 480 MB,
 * bench/hfile.c).
 *
 * A chunk is 2048 units of 1 KiB and a bitmap; a piece takes the first run that fits in the chunk
 * of the lowest address. Sizes are rounded to a thirty-second of their power of two, so that what
 * one block leaves the next one fits into; blocks of 64 KiB, which are a few hundred bytes longer,
 * then waste 2 in 66. While the cache grows the background keeps some chunks ready, huge and
 * touched: on an event loop that would be up to a millisecond at a time. Empty chunks are kept for
 * the next blocks: after a compaction these take the place of its inputs' blocks, and pages the
 * system has taken back are dear to get again, most of all where a machine below is asked too
 * (docs/lab/server.md). What stays empty goes back bit by bit. Any thread; one lock, taken once per
 * block read from a file.
 */
#ifndef RQ_HFILE_SLAB_H
#define RQ_HFILE_SLAB_H

#include "base/err.h"
#include "base/executor.h"

#include <stdint.h>

typedef struct rq__slab rq__slab;

RQ_NODISCARD
rq_err rq__slab_new(rq__slab **ret);
/* Everything cut from it must be back. Waits for the background. NULL is fine. */
void rq__slab_free(rq__slab *s);
/* From now on chunks are made ready ahead on RQ_POOL_FLUSH, as long as there are fewer than for
 * so many bytes. Once, before pieces are taken by other threads; the executor outlives the slab. */
void rq__slab_make_ready(rq__slab *s, rq_executor *executor, uint64_t bytes_max);
/* The same number again. Any thread. */
void rq__slab_set_most(rq__slab *s, uint64_t bytes_max);

/* At least `size` bytes, aligned to 16, uninitialised; what it really takes goes to *ret_charge.
 * Sizes out of range, and all when `s` is NULL, come from malloc. NULL when memory is out. */
void *rq__slab_take(rq__slab *s, size_t size, size_t *ret_charge);
/* `charge` as take told. NULL is fine. */
void rq__slab_give(rq__slab *s, void *piece, size_t charge);

/* Gives back to the system the share'th part of the chunks that stood empty since the last call. */
void rq__slab_trim(rq__slab *s, unsigned share);

/* Bytes of all chunks: what is taken and what lies free between. */
uint64_t rq__slab_mapped(rq__slab *s);

#endif
