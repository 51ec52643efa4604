/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers it wants in front of it, and the seed of a random test: SEED or the
 * clock, printed so that a failure replays. */
#ifndef RQ_TESTS_UNIT_H
#define RQ_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../seeds.h"

static inline uint64_t unit_seed(void)
{
    uint64_t seed = seeds_number("SEED", (uint64_t)time(NULL));
    printf("SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

#endif
