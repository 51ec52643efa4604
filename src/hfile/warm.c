/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files and the block cache: loading a file's blocks ahead of their use (as HBase does when
 * it writes or opens a file, CACHE_…_ON_WRITE and PREFETCH_BLOCKS_ON_OPEN), and evicting them.
 *
 * A new file's blocks are read back, from the page cache, instead of being passed on by the writer:
 * so they pass the checks of every block, and have the in-memory form that the reader makes. */
#include "hfile/reader_priv.h"

static unsigned warms(rq_block_kind kind)
{
    switch (kind) {
    case RQ_BLOCK_DATA:
        return RQ_WARM_DATA;
    case RQ_BLOCK_LEAF_INDEX:
    case RQ_BLOCK_INTERMEDIATE_INDEX:
        return RQ_WARM_INDEX;
    case RQ_BLOCK_BLOOM_CHUNK:
        return RQ_WARM_BLOOMS;
    default:
        return 0; /* load-on-open blocks were loaded when the file was opened */
    }
}

static rq_err bring(rq_hfile_reader *r, rq_buf *scratch, uint64_t offset, uint32_t size,
                    rq_block_kind kind, rq_error *why)
{
    rq_hfile_block *b;
    if (rq__cache_has(r->cached, offset)) return RQ_OK;
    RQ_TRY(rq__reader_load(r, scratch, true, offset, size, kind, &b, why));
    rq__hfile_block_unref(rq__cache_put(r->cached, b));
    return RQ_OK;
}

rq_err rq_hfile_reader_warm(rq_hfile_reader *r, unsigned what, uint64_t bytes_max,
                            uint64_t *position, rq_error *why)
{
    if (r->cached == NULL || r->half != NULL || what == 0) return RQ_E_END;
    rq_buf scratch = {0};
    rq_err rc = RQ_OK;
    uint64_t end = r->trailer.load_on_open_offset;
    rq__reader_follow(r, true);
    for (uint64_t bytes = 0; rc == RQ_OK && bytes < bytes_max;) {
        rq_block_kind kind;
        uint32_t size;
        rc = *position < end ? rq__reader_header(r, *position, &kind, &size, why) : RQ_E_END;
        if (rc == RQ_OK && (what & warms(kind)) != 0) {
            rc = bring(r, &scratch, *position, size, kind, why);
            bytes += size;
        }
        if (rc == RQ_OK) *position += size;
    }
    rq__reader_follow(r, false);
    rq_buf_clear(&scratch);
    return rc;
}

rq_err rq_hfile_reader_is_cached(rq_hfile_reader *r, bool *ret, rq_error *why)
{
    *ret = false;
    if (r->cached == NULL || r->half != NULL) return RQ_OK;
    uint64_t end = r->trailer.load_on_open_offset;
    uint32_t size;
    for (uint64_t at = 0; at < end; at += size) {
        rq_block_kind kind;
        RQ_TRY(rq__reader_header(r, at, &kind, &size, why));
        if (kind == RQ_BLOCK_DATA && !rq__cache_has(r->cached, at) &&
            !rq__cache_has_second(r->cached, at))
            return RQ_OK;
    }
    *ret = true;
    return RQ_OK;
}

void rq_hfile_reader_set_obsolete(rq_hfile_reader *r)
{
    if (r->cached != NULL) atomic_store_explicit(&r->cached->obsolete, true, memory_order_relaxed);
}

void rq_hfile_reader_evict(rq_hfile_reader *r, uint64_t *ret_blocks, uint64_t *ret_bytes)
{
    rq__cache_evicted sum = {0};
    if (r->cached != NULL) sum = rq__cache_evict_file(r->cached);
    *ret_blocks = sum.blocks;
    *ret_bytes = sum.bytes;
}

uint64_t rq_hfile_reader_cached_bytes(const rq_hfile_reader *r)
{
    return r->cached == NULL ? 0 : atomic_load_explicit(&r->cached->bytes, memory_order_relaxed);
}

bool rq_hfile_reader_is_unused(const rq_hfile_reader *r)
{
    return atomic_load_explicit(&r->refs, memory_order_relaxed) == 1;
}
