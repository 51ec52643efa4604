/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index of a data or index block, built when the block is searched for the second time: four
 * bytes of each cell's key that distinguish it from its neighbours, so that a point read touches a
 * few cache lines instead of a dozen cells; for a data block also each cell's offset. Within the
 * room.
 *
 * All rows of a block share a prefix (the common prefix of its first and last row); `marks` are the
 * four bytes behind it. If the block has only one row they are taken from the qualifiers. Rows of
 * hbase:meta are not in byte order: there are no marks, and every cell is compared.
 *
 *   first cell's key | samples: every 16th mark | marks: one per cell, ascending |
 *   at: one offset per cell (not for an index)
 *
 * The bytes that a search reads first are contiguous and are prefetched together. While it compares
 * marks, it prefetches the offsets at the same index.
 */
#ifndef RQ_HFILE_SIDECAR_H
#define RQ_HFILE_SIDECAR_H

#include "base/macros.h"
#include "cell/cell.h"
#include "hfile/slab.h"

typedef enum rq__mark_source { RQ__MARK_NONE, RQ__MARK_ROW, RQ__MARK_QUALIFIER } rq__mark_source;

typedef struct rq__sidecar {
    size_t heap_len; /* size of this allocation */
    uint32_t count;
    uint32_t skip; /* length of the common prefix of rows or qualifiers */
    /* Lengths of the first cell's row, family and qualifier, which are stored here so that a
     * search does not touch the block's beginning. */
    uint32_t qualifier_len;
    uint16_t row_len;
    uint8_t family_len;
    uint8_t source; /* rq__mark_source */
    uint32_t words[];
} rq__sidecar;

#define RQ__MARKS_PER_SAMPLE 16

static inline uint32_t rq__sidecar_sample_count(uint32_t count)
{
    return (count + RQ__MARKS_PER_SAMPLE - 1) / RQ__MARKS_PER_SAMPLE;
}

static inline const uint32_t *rq__sidecar_samples(const rq__sidecar *s)
{
    size_t key_len = (size_t)s->row_len + s->family_len + s->qualifier_len;
    return s->words + (key_len + sizeof(s->words[0]) - 1) / sizeof(s->words[0]);
}

static inline const uint32_t *rq__sidecar_marks(const rq__sidecar *s)
{
    return rq__sidecar_samples(s) + rq__sidecar_sample_count(s->count);
}

/* Offsets of the cells; not for an index. */
static inline const uint32_t *rq__sidecar_at(const rq__sidecar *s)
{
    return rq__sidecar_marks(s) + s->count;
}

/* Prefetches the beginning, which a search reads first. */
static inline void rq__sidecar_prefetch(const rq__sidecar *s)
{
    rq_prefetch_bytes(s, 4 * (size_t)RQ_CACHE_LINE);
}

/* Prefetches a cell (all of it if it is small). */
static inline void rq__sidecar_prefetch_cell(const rq__sidecar *s, uint32_t i,
                                             const uint8_t *payload)
{
    rq_prefetch_bytes(payload + rq__sidecar_at(s)[i], 3 * (size_t)RQ_CACHE_LINE);
}

/* Builds the sidecar of `count` cells at the offsets `at` (NULL: 0, 1, 2 …, which are not
 * stored). `cell` parses one. *ret is NULL when memory is exhausted; an error of `cell` is
 * returned. */
typedef rq_err (*rq__cell_parser)(void *arg, uint32_t at, rq_cell *ret);
RQ_NODISCARD
rq_err rq__sidecar_new(rq__slab *slab, const uint32_t *at, uint32_t count, rq_cell_order order,
                       rq__cell_parser cell, void *arg, rq__sidecar **ret);

void rq__sidecar_free(rq__slab *slab, rq__sidecar *s); /* NULL is fine */

/* Returns the cells [low, high) that must be compared: cells before `low` sort before the key,
 * cells from `high` on do not. */
void rq__sidecar_narrow(const rq__sidecar *s, const rq_cell *key, uint32_t *ret_low,
                        uint32_t *ret_high);

#endif
