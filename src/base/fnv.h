/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, 64 bits: a hash for tables in memory whose keys are short and were not chosen by an attacker,
 * or whose number is limited. (Fowler, Noll, Vo: draft-eastlake-fnv.) */
#ifndef RQ_BASE_FNV_H
#define RQ_BASE_FNV_H

#include "base/bytes.h"

#define RQ_FNV1A UINT64_C(0xcbf29ce484222325) /* the hash of no bytes */

/* Continues `hash` with further bytes; begin with RQ_FNV1A. The low bits of the hash are weak for short keys: a hash
 * table folds the hash (h ^ h >> 32) or uses its high bits. */
static inline uint64_t rq_fnv1a(uint64_t hash, rq_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
