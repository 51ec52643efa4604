/* SPDX-License-Identifier: Apache-2.0 */
/* Compound blooms, the writing side (bloom_writer.h). */
#include "hfile/bloom_writer.h"

#include <stdlib.h>

typedef struct ready_chunk {
    struct ready_chunk *next;
    rq__bloom_chunk chunk;
    rq_buf first_key;
} ready_chunk;

void rq__bloom_writer_init(rq__bloom_writer *w, bool cell_keys, uint32_t chunk_bytes,
                           float error_rate)
{
    *w = (rq__bloom_writer){
        .cell_keys = cell_keys,
        .shape = rq__bloom_chunk_shape(chunk_bytes, error_rate),
    };
}

static void free_ready(ready_chunk *r)
{
    free(r->chunk.bits);
    rq_buf_clear(&r->first_key);
    free(r);
}

void rq__bloom_writer_clear(rq__bloom_writer *w)
{
    while (w->ready != NULL) {
        ready_chunk *next = w->ready->next;
        free_ready(w->ready);
        w->ready = next;
    }
    free(w->chunk.bits);
    rq_buf_clear(&w->first_key);
    rq__index_chunk_clear(&w->index);
    *w = (rq__bloom_writer){0};
}

/* Moves the current chunk to the list of finished ones. */
static rq_err finish_chunk(rq__bloom_writer *w)
{
    ready_chunk *r = malloc(sizeof(*r));
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq__bloom_chunk_fold(&w->chunk);
    *r = (ready_chunk){.chunk = w->chunk, .first_key = w->first_key};
    w->max_keys += r->chunk.max_keys;
    w->bytes += r->chunk.len;
    w->chunk = (rq__bloom_chunk){0};
    w->first_key = (rq_buf){0};
    if (w->ready == NULL)
        w->ready = r;
    else
        w->ready_last->next = r;
    w->ready_last = r;
    return RQ_OK;
}

rq_err rq__bloom_writer_add(rq__bloom_writer *w, rq_slice key, rq_slice index_key)
{
    if (w->chunk.bits != NULL && w->chunk.key_count >= w->chunk.max_keys) RQ_TRY(finish_chunk(w));
    if (w->chunk.bits == NULL) {
        uint8_t *bits = calloc(1, w->shape.len);
        if (bits == NULL) return RQ_E_NO_MEMORY;
        w->chunk = w->shape;
        w->chunk.bits = bits;
        w->chunk_count++;
        rq_buf_reset(&w->first_key);
        RQ_TRY(rq_buf_append(&w->first_key, index_key.ptr, index_key.len));
    }
    rq__bloom_chunk_add(&w->chunk, key);
    w->key_count++;
    return RQ_OK;
}

rq_err rq__bloom_writer_ready(rq__bloom_writer *w, bool closing, bool *ret_is_ready,
                              rq_slice *ret_bits)
{
    if (w->chunk.bits != NULL && (closing || w->chunk.key_count >= w->chunk.max_keys))
        RQ_TRY(finish_chunk(w));
    *ret_is_ready = w->ready != NULL;
    if (w->ready != NULL) *ret_bits = rq_slice_of(w->ready->chunk.bits, w->ready->chunk.len);
    return RQ_OK;
}

rq_err rq__bloom_writer_written(rq__bloom_writer *w, uint64_t offset, uint32_t size)
{
    ready_chunk *r = w->ready;
    RQ_TRY(rq__index_chunk_add(&w->index, rq_buf_slice(&r->first_key), offset, size, 0));
    w->ready = r->next;
    free_ready(r);
    return RQ_OK;
}

rq_err rq__bloom_writer_meta(const rq__bloom_writer *w, rq_buf *out)
{
    RQ_ASSERT(w->ready == NULL && w->chunk.bits == NULL && w->index.count == w->chunk_count);
    rq_slice comparator =
        w->cell_keys ? RQ_SLICE_LIT("org.apache.hadoop.hbase.CellComparatorImpl") : (rq_slice){0};
    RQ_TRY(rq_buf_append_be32(out, RQ__BLOOM_META_VERSION));
    RQ_TRY(rq_buf_append_be64(out, w->bytes));
    RQ_TRY(rq_buf_append_be32(out, w->shape.hash_count));
    RQ_TRY(rq_buf_append_be32(out, RQ__HASH_MURMUR));
    RQ_TRY(rq_buf_append_be64(out, w->key_count));
    RQ_TRY(rq_buf_append_be64(out, w->max_keys));
    RQ_TRY(rq_buf_append_be32(out, w->chunk_count));
    RQ_TRY(rq_buf_append_vlong(out, (int64_t)comparator.len));
    RQ_TRY(rq_buf_append(out, comparator.ptr, comparator.len));
    return rq__index_chunk_write_root(&w->index, out);
}
