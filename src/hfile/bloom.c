/* SPDX-License-Identifier: Apache-2.0 */
/* The three hashes of HBase's blooms, and one chunk of bits. All of this is disk format: the sizes,
 * the rounding (float where HBase uses float) and the signed arithmetic determine the positions of
 * bits. HBASE: MurmurHash, JenkinsHash, MurmurHash3, BloomFilterUtil, BloomFilterChunk 2.6. */
#include "hfile/bloom.h"

#include <math.h>

static inline uint32_t le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* MurmurHash2 as in HBase: the last bytes are added as signed numbers. */
static int32_t murmur(rq_slice key, int32_t seed)
{
    const uint32_t m = 0x5bd1e995;
    uint32_t h = (uint32_t)seed ^ (uint32_t)key.len;
    const uint8_t *p = key.ptr;
    size_t left = key.len;
    for (; left >= 4; p += 4, left -= 4) {
        uint32_t k = le32(p) * m;
        k ^= k >> 24;
        h = (h * m) ^ (k * m);
    }
    if (left > 0) {
        if (left >= 3) h ^= (uint32_t)(int8_t)p[2] << 16;
        if (left >= 2) h ^= (uint32_t)(int8_t)p[1] << 8;
        h ^= (uint32_t)(int8_t)p[0];
        h *= m;
    }
    h ^= h >> 13;
    h *= m;
    h ^= h >> 15;
    return (int32_t)h;
}

static inline uint32_t rotl(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

int32_t rq_jenkins_hash(rq_slice key, int32_t seed)
{
    uint32_t a = 0xdeadbeef + (uint32_t)key.len + (uint32_t)seed;
    uint32_t b = a;
    uint32_t c = a;
    const uint8_t *p = key.ptr;
    size_t left = key.len;
    for (; left > 12; p += 12, left -= 12) {
        a += le32(p);
        b += le32(p + 4);
        c += le32(p + 8);
        a = (a - c) ^ rotl(c, 4);
        c += b;
        b = (b - a) ^ rotl(a, 6);
        a += c;
        c = (c - b) ^ rotl(b, 8);
        b += a;
        a = (a - c) ^ rotl(c, 16);
        c += b;
        b = (b - a) ^ rotl(a, 19);
        a += c;
        c = (c - b) ^ rotl(b, 4);
        b += a;
    }
    if (left == 0) return (int32_t)c;
    uint8_t tail[12] = {0};
    memcpy(tail, p, left);
    a += le32(tail);
    b += le32(tail + 4);
    c += le32(tail + 8);
    c = (c ^ b) - rotl(b, 14);
    a = (a ^ c) - rotl(c, 11);
    b = (b ^ a) - rotl(a, 25);
    c = (c ^ b) - rotl(b, 16);
    a = (a ^ c) - rotl(c, 4);
    b = (b ^ a) - rotl(a, 14);
    c = (c ^ b) - rotl(b, 24);
    return (int32_t)c;
}

static int32_t murmur3(rq_slice key, int32_t seed)
{
    const uint32_t c1 = 0xcc9e2d51;
    const uint32_t c2 = 0x1b873593;
    uint32_t h = (uint32_t)seed;
    const uint8_t *p = key.ptr;
    size_t left = key.len;
    for (; left >= 4; p += 4, left -= 4) {
        h ^= rotl(le32(p) * c1, 15) * c2;
        h = rotl(h, 13) * 5 + 0xe6546b64;
    }
    if (left > 0) {
        uint8_t tail[4] = {0};
        memcpy(tail, p, left);
        h ^= rotl(le32(tail) * c1, 15) * c2;
    }
    h ^= (uint32_t)key.len;
    h ^= h >> 16;
    h *= 0x85ebca6b;
    h ^= h >> 13;
    h *= 0xc2b2ae35;
    h ^= h >> 16;
    return (int32_t)h;
}

int32_t rq__bloom_hash(rq__hash_type type, rq_slice key, int32_t seed)
{
    switch (type) {
    case RQ__HASH_JENKINS:
        return rq_jenkins_hash(key, seed);
    case RQ__HASH_MURMUR3:
        return murmur3(key, seed);
    default:
        return murmur(key, seed);
    }
}

/* A key's bits, one after another, by double hashing. HBASE: BloomFilterUtil. */
typedef struct probes {
    uint32_t hash, step;
    uint64_t bits;
} probes;

static inline probes probes_of(rq__hash_type type, rq_slice key, size_t bytes)
{
    int32_t first = rq__bloom_hash(type, key, 0);
    return (probes){.hash = (uint32_t)first,
                    .step = (uint32_t)rq__bloom_hash(type, key, first),
                    .bits = (uint64_t)bytes * 8};
}

static inline uint64_t next_bit(probes *p)
{
    int64_t r = (int64_t)(int32_t)p->hash % (int64_t)p->bits;
    p->hash += p->step;
    return (uint64_t)(r < 0 ? -r : r);
}

bool rq__bloom_test(rq_slice bits, rq__hash_type type, uint32_t hash_count, rq_slice key)
{
    probes p = probes_of(type, key, bits.len);
    for (uint32_t i = 0; i < hash_count; i++) {
        uint64_t bit = next_bit(&p);
        if ((bits.ptr[bit >> 3] & 1u << (bit & 7)) == 0) return false;
    }
    return true;
}

void rq__bloom_prefetch(rq_slice bits, rq__hash_type type, uint32_t hash_count, rq_slice key)
{
    probes p = probes_of(type, key, bits.len);
    for (uint32_t i = 0; i < hash_count; i++)
        __builtin_prefetch(bits.ptr + (next_bit(&p) >> 3));
}

/* Chunk sizes allow this number of foldings. HBASE: io.storefile.bloom.max.fold. */
#define FOLDS_MAX 7

rq__bloom_chunk rq__bloom_chunk_shape(uint32_t bytes_hint, float error_rate)
{
    uint64_t unit = 1u << FOLDS_MAX;
    uint64_t len = bytes_hint;
    if (len % unit != 0) len = (len / unit + 1) * unit;
    int64_t bits = (int64_t)len * 8;
    double ln2 = log(2);
    int64_t ideal_keys = (int64_t)((double)bits * (ln2 * ln2 / -log((double)error_rate)));
    if (ideal_keys < 1) ideal_keys = 1;
    int64_t bits_per_key = bits / ideal_keys; /* HBase divides integers */
    double hash_count = ceil(ln2 * (double)bits_per_key);
    if (hash_count < 1) hash_count = 1;
    int64_t max_keys =
        (int64_t)((double)-bits / hash_count * log(1 - exp(log((double)error_rate) / hash_count)));
    if (max_keys < 1) max_keys = 1;
    return (rq__bloom_chunk){
        .len = (uint32_t)len,
        .hash_count = (uint32_t)hash_count,
        .max_keys = (uint32_t)max_keys,
    };
}

void rq__bloom_chunk_add(rq__bloom_chunk *c, rq_slice key)
{
    probes p = probes_of(RQ__HASH_MURMUR, key, c->len);
    for (uint32_t i = 0; i < c->hash_count; i++) {
        uint64_t bit = next_bit(&p);
        c->bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
    }
    c->key_count++;
}

/* bits[0, len) |= bits[len, 2 * len), by words: a file of few keys folds 128 KB down to bytes. */
static void fold_half(uint8_t *bits, uint32_t len)
{
    uint32_t i = 0;
    for (; len - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
        uint64_t low, high;
        memcpy(&low, bits + i, sizeof low);
        memcpy(&high, bits + len + i, sizeof high);
        low |= high;
        memcpy(bits + i, &low, sizeof low);
    }
    for (; i < len; i++)
        bits[i] |= bits[len + i];
}

void rq__bloom_chunk_fold(rq__bloom_chunk *c)
{
    while (c->key_count > 0 && (c->len & 1) == 0 && c->max_keys > (uint64_t)c->key_count * 2) {
        c->len /= 2;
        c->max_keys /= 2;
        fold_half(c->bits, c->len);
    }
}
