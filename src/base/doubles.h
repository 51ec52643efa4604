/* SPDX-License-Identifier: Apache-2.0 */
/* A double's bits, and back. */
#ifndef RQ_BASE_DOUBLES_H
#define RQ_BASE_DOUBLES_H

#include <stdint.h>
#include <string.h>

static inline uint64_t rq_bits_of_double(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline double rq_double_of_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

#endif
