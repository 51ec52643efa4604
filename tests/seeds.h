/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from the environment that repeat or lengthen a random test (RQ_SEED, RQ_SEEDS …). */
#ifndef RQ_TESTS_SEEDS_H
#define RQ_TESTS_SEEDS_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t seeds_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text == NULL ? fallback : strtoull(text, NULL, 0);
}

#endif
