/* SPDX-License-Identifier: Apache-2.0 */
/* See batches.h. HBASE: HashTable.HashMapper. */
#include "transfer/batches.h"

#include "transfer/hashdir.h"

void rq__batcher_init(rq__batcher *b, uint64_t bytes, bool ignores_times, rq__take_batch take,
                      void *ctx)
{
    *b = (rq__batcher){.bytes_wanted = bytes == 0 ? RQ__HASH_BATCH_BYTES : bytes,
                       .hasher.ignores_times = ignores_times,
                       .take = take,
                       .ctx = ctx};
}

void rq__batcher_clear(rq__batcher *b)
{
    rq_buf_clear(&b->key);
    rq_buf_clear(&b->row);
}

static rq_err set(rq_buf *b, rq_slice bytes, rq_error *why)
{
    rq_buf_reset(b);
    return rq_buf_append(b, bytes.ptr, bytes.len) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq__batcher_begin(rq__batcher *b, rq_slice start, rq_error *why)
{
    b->has_row = false;
    rq__hasher_begin(&b->hasher);
    return set(&b->key, start, why);
}

rq_err rq__batcher_end(rq__batcher *b, rq_error *why)
{
    uint8_t hash[RQ__HASH_LEN];
    rq__hasher_end(&b->hasher, hash);
    return b->take(b->ctx, rq_buf_slice(&b->key), hash, why);
}

static rq_err enter_row(rq__batcher *b, rq_slice row, rq_error *why)
{
    if (b->has_row && rq_slice_eq(row, rq_buf_slice(&b->row))) return RQ_OK;
    b->has_row = true;
    RQ_TRY(set(&b->row, row, why));
    if (b->hasher.bytes < b->bytes_wanted) return RQ_OK;
    RQ_TRY(rq__batcher_end(b, why));
    rq__hasher_begin(&b->hasher);
    return set(&b->key, row, why);
}

rq_err rq__batcher_add(rq__batcher *b, rq_op_result *row, rq_error *why)
{
    rq_cell c;
    rq_err rc;
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK) {
        RQ_TRY(enter_row(b, rq_cell_row(&c), why));
        rq__hasher_add(&b->hasher, &c);
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}
