/* SPDX-License-Identifier: Apache-2.0 */
/* Skips a file without reading its data: by the key range (in memory), then by the bloom, whose
 * meta and chunk come from the cache. HBASE: StoreFileReader.passesGeneralBloomFilter,
 * passesDeleteFamilyBloomFilter, CompoundBloomFilter 2.6. */
#include "hfile/bloom.h"
#include "hfile/reader_priv.h"

/* A key as it is hashed, and as its chunk is found. */
typedef struct bloom_key {
    rq_slice bytes;
    const rq_cell *cell; /* ROWCOL: the same as a cell */
} bloom_key;

static rq_err look_up(rq_hfile_reader *r, rq_read_ctx *ctx, rq__lent_block of, bloom_key key,
                      bool *ret, rq_error *why)
{
    const rq_hfile_block *meta = of.block;
    rq__bloom_meta m;
    memcpy(&m, meta->payload, sizeof(m));
    rq__index_view chunks = rq__bloom_meta_index(meta);
    /* Chunks are found by plain byte order, which is not the order of hbase:meta. */
    if (r->info.order == RQ_ORDER_META && chunks.count > 1) {
        *ret = true;
        return RQ_OK;
    }
    if (m.cell_keys != (key.cell != NULL))
        return rq__fail_block(why, r, meta, "its keys are not of the file's bloom type");
    int64_t at = m.cell_keys ? rq__index_floor(chunks, NULL, RQ_ORDER_DEFAULT, key.cell)
                             : rq__index_floor_bytes(chunks, key.bytes);
    if (at < 0) {
        *ret = false;
        return RQ_OK;
    }
    rq__index_entry e = rq__index_at(chunks, (uint32_t)at);
    size_t slot = r->held_chunks[meta->kind == RQ_BLOCK_DELETE_FAMILY_BLOOM_META] + (size_t)at;
    rq__lent_block chunk;
    RQ_TRY(rq__reader_at_hand(r, ctx, slot, e.offset, e.size, RQ_BLOCK_BLOOM_CHUNK, &chunk, why));
    *ret = rq__bloom_test(rq_slice_of(chunk.block->payload, chunk.block->payload_len),
                          (rq__hash_type)m.hash_type, m.hash_count, key.bytes);
    rq__lent_return(chunk);
    return RQ_OK;
}

static rq_err meta_block(rq_hfile_reader *r, rq_read_ctx *ctx, rq_block_kind kind,
                         rq__lent_block *ret, rq_error *why)
{
    bool general = kind == RQ_BLOCK_GENERAL_BLOOM_META;
    rq__block_place at = general ? r->bloom : r->delete_bloom;
    return rq__reader_at_hand(r, ctx, general ? RQ__HELD_BLOOM : RQ__HELD_DELETE_BLOOM, at.offset,
                              at.size, kind, ret, why);
}

/* Only the bloom is known to be damaged: the error is logged, and the read goes on without the
 * bloom. */
static rq_err noted(rq_hfile_reader *r, rq_err rc)
{
    if (RQ_UNLIKELY(rc == RQ_E_CORRUPT)) atomic_store(&r->bloom_damaged, true);
    return rc;
}

static bool has_bloom(const rq_hfile_reader *r, rq__block_place place)
{
    return place.size > 0 && !atomic_load_explicit(&r->bloom_damaged, memory_order_relaxed);
}

static rq_err contains_row(rq_hfile_reader *r, rq_read_ctx *ctx, rq_block_kind kind, rq_slice row,
                           bool *ret, rq_error *why)
{
    rq__lent_block meta;
    rq_err rc = meta_block(r, ctx, kind, &meta, why);
    if (rc != RQ_OK) return noted(r, rc);
    rc = look_up(r, ctx, meta, (bloom_key){row, NULL}, ret, why);
    rq__lent_return(meta);
    return noted(r, rc);
}

static bool row_is_in_range(const rq_hfile_reader *r, rq_slice row)
{
    if (r->info.entry_count == 0) return false;
    const uint8_t *first = r->info.first_key.ptr; /* keys begin with be16 length, row */
    const uint8_t *last = r->info.last_key.ptr;
    return rq_row_compare(r->info.order, row, rq_slice_of(first + 2, rq_get_be16(first))) >= 0 &&
           rq_row_compare(r->info.order, row, rq_slice_of(last + 2, rq_get_be16(last))) <= 0;
}

rq_err rq_hfile_may_contain_row(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row, bool *ret,
                                rq_error *why)
{
    bool in_range = row_is_in_range(r, row);
    if (!in_range || !has_bloom(r, r->bloom)) {
        *ret = in_range;
        return RQ_OK;
    }
    rq_slice key = row;
    switch (r->info.bloom) {
    case RQ_BLOOM_ROWPREFIX_FIXED_LENGTH:
        if (key.len > r->bloom_prefix_len) key.len = r->bloom_prefix_len;
        return contains_row(r, ctx, RQ_BLOCK_GENERAL_BLOOM_META, key, ret, why);
    case RQ_BLOOM_ROW:
        return contains_row(r, ctx, RQ_BLOCK_GENERAL_BLOOM_META, key, ret, why);
    default:
        *ret = true;
        return RQ_OK;
    }
}

rq_err rq_hfile_may_contain_prefix(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice prefix, bool *ret,
                                   rq_error *why)
{
    *ret = true;
    if (r->info.bloom != RQ_BLOOM_ROWPREFIX_FIXED_LENGTH || prefix.len < r->bloom_prefix_len ||
        !has_bloom(r, r->bloom))
        return RQ_OK;
    prefix.len = r->bloom_prefix_len;
    return contains_row(r, ctx, RQ_BLOCK_GENERAL_BLOOM_META, prefix, ret, why);
}

/* Longest key that is serialized on the stack. */
#define KEY_BYTES_INLINE 512

static rq_err contains_column(rq_hfile_reader *r, rq_read_ctx *ctx, rq__lent_block meta,
                              rq_slice row, rq_slice qualifier, bool *ret, rq_error *why)
{
    rq_cell cell = rq_cell_first_on_column(row, (rq_slice){0}, qualifier);
    uint8_t inline_bytes[KEY_BYTES_INLINE];
    rq_buf heap = {0};
    uint8_t *bytes = inline_bytes;
    size_t len = rq_cell_key_len(&cell);
    if (len > sizeof(inline_bytes)) {
        RQ_TRY(rq_buf_reserve(&heap, len));
        bytes = heap.ptr;
    }
    rq_cell_serialize_key(&cell, bytes);
    rq_err rc = look_up(r, ctx, meta, (bloom_key){rq_slice_of(bytes, len), &cell}, ret, why);
    rq_buf_clear(&heap);
    return rc;
}

rq_err rq_hfile_may_contain_column(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                   rq_slice qualifier, bool *ret, rq_error *why)
{
    if (r->info.bloom != RQ_BLOOM_ROWCOL || !has_bloom(r, r->bloom) || !row_is_in_range(r, row) ||
        row.len > RQ_ROW_LEN_MAX || qualifier.len > INT32_MAX)
        return rq_hfile_may_contain_row(r, ctx, row, ret, why);
    rq__lent_block meta;
    rq_err rc = meta_block(r, ctx, RQ_BLOCK_GENERAL_BLOOM_META, &meta, why);
    if (rc != RQ_OK) return noted(r, rc);
    rc = contains_column(r, ctx, meta, row, qualifier, ret, why);
    /* A delete of the row or family is stored as the column without a name. */
    if (rc == RQ_OK && !*ret && qualifier.len > 0)
        rc = contains_column(r, ctx, meta, row, (rq_slice){0}, ret, why);
    rq__lent_return(meta);
    return noted(r, rc);
}

rq_err rq__hfile_may_contain_delete_family(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                           bool *ret, rq_error *why)
{
    bool possible =
        row_is_in_range(r, row) && (!r->counts_delete_families || r->info.delete_family_count > 0);
    if (!possible || !has_bloom(r, r->delete_bloom)) {
        *ret = possible;
        return RQ_OK;
    }
    return contains_row(r, ctx, RQ_BLOCK_DELETE_FAMILY_BLOOM_META, row, ret, why);
}
