/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks held by a reader: the blocks at which every search of a file begins (the index's root and
 * the blocks below it, the blooms' metas and chunks) stay with the reader after their first use and
 * are used without a lock, a counter or a reference. A cache lookup writes to a shard, its counters
 * and the block: ten cache lines for which threads reading the same file would contend, even for a
 * row that does not exist.
 *
 *   held[]: root | bloom meta | delete bloom meta | chunks | delete chunks | the root's children
 *
 * Invariants:
 *  1. A slot is filled once, by compare-and-swap, and emptied when the reader is freed: a thread
 *     with a reference to the reader may use the block without one of its own.
 *  2. All readers of a cache hold at most a HELD_SHARE of its capacity; other blocks are looked up
 *     in the cache, like data. Most held blocks are resident, too; evicted ones count as pinned.
 */
#include "hfile/reader_priv.h"

#include <stdlib.h>

#define HELD_SHARE 8
#define SLOTS_MAX 4096

rq_err rq__reader_held_init(rq_hfile_reader *r, size_t bloom_chunks, size_t delete_bloom_chunks,
                            size_t root_children)
{
    if (r->cached == NULL) return RQ_OK;
    size_t count = RQ__HELD_OTHERS + bloom_chunks + delete_bloom_chunks + root_children;
    if (count > SLOTS_MAX) count = SLOTS_MAX;
    r->held = calloc(count, sizeof(*r->held));
    if (r->held == NULL) return RQ_E_NO_MEMORY;
    r->held_count = count;
    r->held_chunks[0] = RQ__HELD_OTHERS;
    r->held_chunks[1] = r->held_chunks[0] + bloom_chunks;
    r->held_children = r->held_chunks[1] + delete_bloom_chunks;
    return RQ_OK;
}

void rq__reader_held_clear(rq_hfile_reader *r)
{
    for (size_t i = 0; i < r->held_count; i++) {
        rq_hfile_block *b = atomic_load_explicit(&r->held[i], memory_order_relaxed);
        if (b == NULL) continue;
        rq__cache_let_go(r->cache, b->heap_len);
        rq__hfile_block_unref(b);
    }
    free(r->held);
}

/* Keeps the block; the caller retains its own reference. */
static void keep(rq_hfile_reader *r, size_t slot, rq_hfile_block *b)
{
    rq_hfile_block *none = NULL;
    if (!rq__cache_hold(r->cache, b->heap_len, HELD_SHARE)) return;
    (void)rq__block_ref(b);
    if (atomic_compare_exchange_strong(&r->held[slot], &none, b)) return;
    rq__hfile_block_unref(b);
    rq__cache_let_go(r->cache, b->heap_len);
}

rq_err rq__reader_at_hand(rq_hfile_reader *r, rq_read_ctx *ctx, size_t slot, uint64_t offset,
                          uint32_t size, rq_block_kind kind, rq__lent_block *ret, rq_error *why)
{
    rq_hfile_block *b = rq__reader_held(r, slot);
    if (RQ_LIKELY(b != NULL)) {
        *ret = (rq__lent_block){b, false};
        return RQ_OK;
    }
    ret->owned = true;
    RQ_TRY(rq__reader_block(r, ctx, offset, size, kind, &ret->block, why));
    if (slot < r->held_count) keep(r, slot, ret->block);
    return RQ_OK;
}
