/* SPDX-License-Identifier: Apache-2.0 */
/* A small deterministic generator (xoshiro256**, public domain by Blackman and Vigna): the random
 * numbers of executors (real and simulated), load tests and unit tests. Not for secrets. */
#ifndef RQ_BASE_RANDOM_H
#define RQ_BASE_RANDOM_H

#include <stdint.h>

typedef struct rq_random {
    uint64_t s[4];
} rq_random;

void rq_random_seed(rq_random *r, uint64_t seed);
uint64_t rq_random_next(rq_random *r);
/* A number in 0 … bound - 1. REQUIRES: bound > 0. */
static inline uint64_t rq_random_below(rq_random *r, uint64_t bound)
{
    return rq_random_next(r) % bound;
}

#endif
