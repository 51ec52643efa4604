/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from the environment that repeat or lengthen a random test (RQ_SEED, RQ_SEEDS …), or allow
 * an emulated processor more time (RQ_TESTS_SLOWER). */
#ifndef RQ_TESTS_SEEDS_H
#define RQ_TESTS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline uint64_t seeds_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text == NULL ? fallback : strtoull(text, NULL, 0);
}

/* How many times as much processor time as usual a test may take. */
static inline unsigned tests_slower(void)
{
    return (unsigned)seeds_number("RQ_TESTS_SLOWER", 1);
}

/* The seeds of a run: RQ_SEED alone, or RQ_SEEDS (default `usual`) seeds from RQ_FIRST on, so that
 * a long run can continue where another ended. */
typedef struct seeds_range {
    uint64_t first, last;
    bool one;
} seeds_range;

static inline seeds_range seeds_wanted(uint64_t usual)
{
    uint64_t one = seeds_number("RQ_SEED", 0);
    if (one != 0) return (seeds_range){.first = one, .last = one, .one = true};
    uint64_t first = seeds_number("RQ_FIRST", 1);
    return (seeds_range){.first = first, .last = first + seeds_number("RQ_SEEDS", usual) - 1};
}

#endif
