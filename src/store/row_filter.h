/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bloom filter of the rows in a memstore segment. Most gets want a row that was flushed long ago;
 * an unsuccessful search of the skip list costs a dozen cache misses, the filter one or two.
 * (RocksDB's memtable_whole_key_filtering; the blocked bloom of Putze, Sanders, Singler 2007.)
 *
 * A filter consists of layers, each with room for four times the rows of the previous one, so that
 * a segment of any size has eight bits per row and nothing is ever moved. A row has three bits in
 * one word of one layer. About one absent row in twenty is reported as present, per layer.
 *
 * One writer, any number of readers without locks: a row's bits are set before its cell is
 * published, so a reader that sees the cell sees the bits. Layers live as long as their segment.
 */
#ifndef RQ_STORE_ROW_FILTER_H
#define RQ_STORE_ROW_FILTER_H

#include "base/bytes.h"

#include <stdatomic.h>

/* The newest layer of a filter; NULL: no filter. */
typedef struct rq_row_filter {
    struct rq_row_filter *older;
    size_t words; /* a power of two; 8 rows each */
    size_t rows;  /* rows added to this layer; used by the writer */
    _Atomic uint64_t bits[];
} rq_row_filter;

/* A hash of any bytes; every input bit affects every output bit. */
static inline uint64_t rq__row_hash(const uint8_t *row, size_t len)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = (uint64_t)len * k;
    for (; len >= 8; row += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, row, 8);
        h = (h ^ v) * k;
        h ^= h >> 32;
    }
    uint64_t v = 0;
    rq_short_copy((uint8_t *)&v, row, len);
    h = (h ^ v) * k;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

/* The hash's upper half selects the word, its low bits the bits in it. */
static inline size_t rq__row_word(const rq_row_filter *f, uint64_t hash)
{
    return (size_t)(hash >> 32) & (f->words - 1);
}

static inline uint64_t rq__row_bits(uint64_t hash)
{
    return (uint64_t)1 << (hash & 63) | (uint64_t)1 << (hash >> 6 & 63) |
           (uint64_t)1 << (hash >> 12 & 63);
}

/* Any thread. False: no row of this hash was added. */
static inline bool rq__row_filter_may_have(const rq_row_filter *f, uint64_t hash)
{
    uint64_t bits = rq__row_bits(hash);
    for (; f != NULL; f = f->older)
        if ((~atomic_load_explicit(&f->bits[rq__row_word(f, hash)], memory_order_relaxed) & bits) ==
            0)
            return true;
    return false;
}

/* --- the writer ------------------------------------------------------------------------------- */

/* Makes an empty layer on top of `older`, the filter so far. NULL: memory is exhausted. */
rq_row_filter *rq__row_filter_new(rq_row_filter *older);
/* Frees the layer and all older ones. NULL is allowed. */
void rq__row_filter_free(rq_row_filter *f);
/* Memory of this layer. */
size_t rq__row_filter_bytes(const rq_row_filter *f);
/* Whether more rows would raise the error rate too much. */
bool rq__row_filter_is_full(const rq_row_filter *f);
void rq__row_filter_add(rq_row_filter *f, uint64_t hash);

#endif
