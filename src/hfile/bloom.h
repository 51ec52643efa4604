/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compound bloom filters, bit-compatible with HBase. Within the room.
 *
 * A filter is a sequence of chunks and a meta block. A chunk is a bit array for a range of keys (a
 * BLOOM_CHUNK block between the data blocks); the meta block has the first key of every chunk. A
 * key is looked up in one chunk only. Two hashes h1 = hash(key, 0), h2 = hash(key, h1) give the
 * bits |(h1 + i * h2) mod bits|, i < hash count, in 32-bit signed arithmetic. HBASE:
 * BloomFilterChunk.
 */
#ifndef RQ_HFILE_BLOOM_H
#define RQ_HFILE_BLOOM_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/* On disk: DO NOT CHANGE. HBASE: Hash. */
typedef enum rq__hash_type {
    RQ__HASH_JENKINS = 0,
    RQ__HASH_MURMUR = 1, /* HBase's default, and this server's */
    RQ__HASH_MURMUR3 = 2,
    RQ__HASH_COUNT
} rq__hash_type;

/* Bob Jenkins' lookup3 (hashlittle). Also used in the names of meta's regions. HBASE:
 * JenkinsHash. */
int32_t rq_jenkins_hash(rq_slice key, int32_t seed);
int32_t rq__bloom_hash(rq__hash_type type, rq_slice key, int32_t seed);

/* Whether all bits of the key are set. REQUIRES: bits.len is not 0. */
bool rq__bloom_test(rq_slice bits, rq__hash_type type, uint32_t hash_count, rq_slice key);

/* A hint: prefetches the key's bits. */
void rq__bloom_prefetch(rq_slice bits, rq__hash_type type, uint32_t hash_count, rq_slice key);

/* --- writing --------------------------------------------------------------------------------- */

typedef struct rq__bloom_chunk {
    uint8_t *bits;
    uint32_t len; /* in bytes; halved by every fold */
    uint32_t hash_count;
    uint32_t key_count;
    uint32_t max_keys;
} rq__bloom_chunk;

/* Computes the parameters of a chunk of about `bytes_hint` bytes; allocates no bits. */
rq__bloom_chunk rq__bloom_chunk_shape(uint32_t bytes_hint, float error_rate);
void rq__bloom_chunk_add(rq__bloom_chunk *c, rq_slice key);
/* Folds a sparsely filled chunk to half its size while the error rate allows it. */
void rq__bloom_chunk_fold(rq__bloom_chunk *c);

#endif
