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
 *   a data block: at: one offset per cell; an index block: hints, one per entry
 *
 * A hint is the address that the sidecar of the entry's block had when that block was used last. The address is only
 * prefetched, never dereferenced, because the sidecar may be freed. In a block cache that is much larger than the
 * processor's caches, the block's head and its sidecar are then fetched from memory at the same time.
 *
 * The bytes that a search reads first are contiguous and are prefetched together. While it compares
 * marks, it prefetches the offsets at the same index.
 */
#ifndef RQ_HFILE_SIDECAR_H
#define RQ_HFILE_SIDECAR_H

#include "base/macros.h"
#include "cell/cell.h"
#include "hfile/slab.h"

#include <stdatomic.h>

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

typedef _Atomic uintptr_t rq__sidecar_hint;

/* Hints of an index block; behind the marks, aligned. */
static inline rq__sidecar_hint *rq__sidecar_hints(const rq__sidecar *s)
{
    uintptr_t end = (uintptr_t)(rq__sidecar_marks(s) + s->count);
    const uintptr_t align = sizeof(rq__sidecar_hint);
    return (rq__sidecar_hint *)((end + align - 1) / align * align);
}

/* Prefetches the beginning, which a search reads first. */
static inline void rq__sidecar_prefetch(const rq__sidecar *s)
{
    rq_prefetch_bytes(s, 4 * (size_t)RQ_CACHE_LINE);
}

/* Prefetches the sidecar of the block that entry i of an index block names. `index`: the index block's sidecar;
 * NULL: it has none. */
static inline void rq__sidecar_prefetch_hinted(const rq__sidecar *index, uint32_t i)
{
    if (index == NULL) return;
    uintptr_t hint = atomic_load_explicit(&rq__sidecar_hints(index)[i], memory_order_relaxed);
    if (hint != 0) rq__sidecar_prefetch((const rq__sidecar *)hint);
}

/* Sets the hint of entry i. `block`: the sidecar of the block that the entry names; NULL: it has none. */
static inline void rq__sidecar_set_hint(const rq__sidecar *index, uint32_t i,
                                        const rq__sidecar *block)
{
    if (index == NULL || block == NULL) return;
    rq__sidecar_hint *hint = &rq__sidecar_hints(index)[i];
    if (atomic_load_explicit(hint, memory_order_relaxed) != (uintptr_t)block)
        atomic_store_explicit(hint, (uintptr_t)block, memory_order_relaxed);
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
