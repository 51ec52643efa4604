/* SPDX-License-Identifier: Apache-2.0 */
/* Includes cmocka with the headers it needs before it, and gives random tests their seed: SEED or
 * the clock, printed so that a failure can be replayed. */
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
