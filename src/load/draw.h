/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness: the key of the next operation, and the length of a value.
 *
 * Keys are numbers 0 … n-1. Zipfian draws rank k with a probability proportional to 1/k^theta by
 * rejection from the inverted integral (W. Hörmann, G. Derflinger, 1996): exact, without tables,
 * and n may grow. `zipfian` scatters the ranks over the key space by a hash (YCSB's scrambled
 * zipfian); `latest` counts the ranks back from the newest key; `hot` sends most draws to few
 * keys. */
#ifndef RQ_LOAD_DRAW_H
#define RQ_LOAD_DRAW_H

#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

/* A bijection of 64-bit numbers whose results look random, and its inverse. */
uint64_t rq__mix64(uint64_t x);
uint64_t rq__unmix64(uint64_t x);

typedef struct rq_zipf {
    uint64_t n;
    double theta;
    double low; /* the integral below rank 1, and above rank n */
    double high;
    double squeeze;
} rq_zipf;

/* n ≥ 1, theta > 0. */
void rq_zipf_init(rq_zipf *z, uint64_t n, double theta);
void rq__zipf_grow(rq_zipf *z, uint64_t n);
/* 0 … n-1, 0 the most probable. */
uint64_t rq_zipf_draw(const rq_zipf *z, rq_random *r);

typedef enum rq_key_draw {
    RQ_KEYS_UNIFORM,
    RQ_KEYS_ZIPFIAN,
    RQ_KEYS_LATEST,
    RQ_KEYS_SEQUENTIAL,
    RQ_KEYS_HOT, /* 99 of 100 draws go to one of a hundredth of the keys, at most 16 keys */
} rq_key_draw;

typedef struct rq_keys {
    rq_key_draw kind;
    rq_zipf zipf;
    uint64_t next; /* sequential */
} rq_keys;

void rq__keys_init(rq_keys *k, rq_key_draw kind, uint64_t n, double theta);
/* One of n keys, n ≥ 1. With zipfian, of the n given at the start. */
uint64_t rq__keys_draw(rq_keys *k, uint64_t n, rq_random *r);

/* A length in bytes: "100", "50-200" (uniform), "exp:100" (exponential, at most 10 times the mean).
 */
typedef struct rq_sizes {
    enum { RQ_SIZES_FIXED, RQ_SIZES_UNIFORM, RQ_SIZES_EXPONENTIAL } kind;
    uint32_t low;
    uint32_t high;
} rq_sizes;

bool rq_sizes_parse(const char *text, rq_sizes *ret);
/* The length for this hash; always the same for the same hash. */
uint32_t rq__sizes_of(const rq_sizes *s, uint64_t hash);
uint32_t rq__sizes_max(const rq_sizes *s);
double rq__sizes_mean(const rq_sizes *s);

#endif
