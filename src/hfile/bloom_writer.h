/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a compound bloom filter along with the cells. Full chunks wait until the file writer is
 * between two data blocks and writes them there. Within the room. HBASE: CompoundBloomFilterWriter.
 */
#ifndef RQ_HFILE_BLOOM_WRITER_H
#define RQ_HFILE_BLOOM_WRITER_H

#include "hfile/bloom.h"
#include "hfile/index.h"

#define RQ__BLOOM_META_VERSION 3

typedef struct rq__bloom_writer {
    bool cell_keys; /* ROWCOL: keys are serialized cell keys, and the meta names a comparator */
    rq__bloom_chunk shape;
    rq__bloom_chunk chunk;                  /* being filled; bits NULL: none yet */
    rq_buf first_key;                       /* of `chunk` */
    struct ready_chunk *ready, *ready_last; /* full, oldest first */
    rq__index_chunk index;                  /* of the written chunks */
    uint32_t chunk_count;
    uint64_t key_count;
    uint64_t max_keys; /* sum over all ready or written chunks, as `bytes` */
    uint64_t bytes;
} rq__bloom_writer;

void rq__bloom_writer_init(rq__bloom_writer *w, bool cell_keys, uint32_t chunk_bytes,
                           float error_rate);
void rq__bloom_writer_clear(rq__bloom_writer *w);

/* Adds a key. `index_key` is the chunk's key in the meta block if this key is its first. */
RQ_NODISCARD
rq_err rq__bloom_writer_add(rq__bloom_writer *w, rq_slice key, rq_slice index_key);
/* Returns the next chunk to write, if any. With `closing`, the chunk being filled is ready, too. */
RQ_NODISCARD
rq_err rq__bloom_writer_ready(rq__bloom_writer *w, bool closing, bool *ret_is_ready,
                              rq_slice *ret_bits);
/* Says that the chunk returned by `ready` was written; frees its bits. */
RQ_NODISCARD
rq_err rq__bloom_writer_written(rq__bloom_writer *w, uint64_t offset, uint32_t size);
/* Appends the meta block's payload. REQUIRES: all chunks were written. */
RQ_NODISCARD
rq_err rq__bloom_writer_meta(const rq__bloom_writer *w, rq_buf *out);

#endif
