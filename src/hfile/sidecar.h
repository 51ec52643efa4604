/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a data or index block is given when it is searched for the second time: four bytes of each
 * cell's key that tell it from its neighbours, so that a point read touches a few cache lines
 * instead of a dozen cells; of data also where each cell begins. Within the room.
 *
 * All rows of a block share a prefix (that of its first and its last row); `marks` are the four
 * bytes behind it. When the block is of one row they are taken from the qualifiers. Rows of
 * hbase:meta are not in byte order: no marks, every cell is compared.
 *
 *   first cell's key | samples: every 16th mark | marks: one a cell, ascending | at: one a cell
 * (none of an index)
 *
 * What a search begins with lies side by side, and is asked for from memory at once; so are a
 * mark's and a place's line.
 */
#ifndef RQ_HFILE_SIDECAR_H
#define RQ_HFILE_SIDECAR_H

#include "base/macros.h"
#include "cell/cell.h"
#include "hfile/slab.h"

typedef enum rq__mark_source { RQ__MARK_NONE, RQ__MARK_ROW, RQ__MARK_QUALIFIER } rq__mark_source;

typedef struct rq__sidecar {
    size_t heap_len; /* of this allocation */
    uint32_t count;
    uint32_t skip; /* bytes of the row or qualifier all cells share */
    /* Of the first cell, whose row, family and qualifier are kept, so that a search needs not touch
     * the block's beginning. */
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

/* Where the cells begin; not of an index. */
static inline const uint32_t *rq__sidecar_at(const rq__sidecar *s)
{
    return rq__sidecar_marks(s) + s->count;
}

/* Before a search. */
static inline void rq__sidecar_ask_for(const rq__sidecar *s)
{
    rq_ask_for(s, 4 * (size_t)RQ_CACHE_LINE);
}

/* Of a small cell all of it, before it is looked at. */
static inline void rq__sidecar_ask_for_cell(const rq__sidecar *s, uint32_t i,
                                            const uint8_t *payload)
{
    rq_ask_for(payload + rq__sidecar_at(s)[i], 3 * (size_t)RQ_CACHE_LINE);
}

/* Of `count` cells at these places (NULL: at 0, 1, 2 …, which are not kept); `cell` parses one.
 * NULL when memory is out or `cell` fails, which then says why itself. */
typedef rq_err (*rq__cell_parser)(void *arg, uint32_t at, rq_cell *ret);
RQ_NODISCARD
rq_err rq__sidecar_new(rq__slab *slab, const uint32_t *at, uint32_t count, rq_cell_order order,
                       rq__cell_parser cell, void *arg, rq__sidecar **ret);

void rq__sidecar_free(rq__slab *slab, rq__sidecar *s); /* NULL is fine */

/* The cells [low, high) that must be compared: those before sort before the key, those behind do
 * not. */
void rq__sidecar_narrow(const rq__sidecar *s, const rq_cell *key, uint32_t *ret_low,
                        uint32_t *ret_high);

#endif
