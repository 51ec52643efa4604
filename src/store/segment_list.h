/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the memstore's skip list. segment.c describes the list and links nodes;
 * segment_search.c searches and builds fences, the start points of searches; segment_cursor.c
 * iterates, segment_memory.c allocates nodes, segment_contents.c tracks which rows and qualifiers
 * exist, segment_ahead.c prefetches. */
#ifndef RQ_STORE_SEGMENT_LIST_H
#define RQ_STORE_SEGMENT_LIST_H

#include "store/fences.h"
#include "store/row_filter.h"
#include "store/row_rank.h"
#include "store/segment_node.h"

#include <stdatomic.h>

#define HEIGHT_MAX 20 /* enough for a million cells; with more only the top level grows */
#define SLAB_FIRST ((size_t)4 * 1024)
#define FENCE_LEVEL 3
#define FENCES_FROM 2048 /* cells; ranks no longer change then */
#define FILTER_FROM 1024 /* cells */

typedef struct link {
    _Atomic uint64_t rank; /* RQ_RANK_MAX: there is no next node */
    _Atomic(rq_segment_node *) to;
} link;

/* A short qualifier: length and bytes. */
#define COLUMN_BYTES_MAX 15
typedef struct column {
    uint8_t len;
    uint8_t bytes[COLUMN_BYTES_MAX];
} column;

typedef struct slab {
    struct slab *older;
    size_t size; /* including this header */
} slab;

struct rq_segment {
    _Atomic unsigned refs;
    rq_cell_order order;
    /* used by the writer only */
    struct rq_slab_pool *pool; /* may be NULL */
    slab *slabs;               /* newest first; nodes are allocated from the newest */
    size_t used, room;         /* used and total bytes of the newest slab: copies, since its header
                                * is in no cache when many regions are written */
    size_t next_slab;
    size_t rank_at; /* number of cells at which ranks are recomputed; 0: never again */
    uint64_t random;
    rq_segment_node *path[HEIGHT_MAX]; /* path of the last link */
    unsigned path_levels;              /* number of levels on which path is valid */
    size_t before;                     /* number of fences before the key of `path` */
    rq_segment_node *last;             /* last linked node; its rank and height follow */
    uint64_t last_rank;
    unsigned last_height;
    rq_fences *making;      /* fences being built; NULL: none */
    rq_segment_node *fence; /* the last node in them */
    /* The last node on each level above FENCE_LEVEL; the next node's height is known from the
     * links to it. */
    rq_segment_node *fence_above[RQ_FENCE_ABOVE_MAX];
    size_t fences_at; /* number of cells at which the next fences are begun */
    bool in_order;    /* the last key was found from its predecessor */
    unsigned stride;  /* number of cells between the last two keys of a row; 0: unknown */
    bool steps_fail;  /* a few steps from `last` do not reach the row's next column */
    size_t filter_at; /* number of cells at which the filter is made, or retried */
    /* written by the writer, read by any thread */
    _Atomic unsigned height;
    _Atomic size_t cells;
    _Atomic size_t heap_bytes;
    _Atomic size_t data_bytes;
    _Atomic int64_t min_ts, max_ts;
    _Atomic uint64_t min_seqid, max_seqid;
    _Atomic int64_t written_since_ms;
    _Atomic bool has_tags;
    _Atomic uint32_t epoch;
    rq_ranking rankings[2];
    _Atomic(const rq_ranking *) ranking; /* NULL: no common prefix is known */
    _Atomic(rq_fences *) fences;         /* NULL: none yet */
    _Atomic(rq_row_filter *) filter;     /* NULL: none yet */
    /* Distinct qualifiers of puts; above RQ_SEGMENT_COLUMNS_MAX: too many, or one is too long. */
    _Atomic unsigned column_count;
    unsigned column_at; /* the writer's: index of the previous cell's column */
    column columns[RQ_SEGMENT_COLUMNS_MAX];
    /* the head: a node of full height before all others */
    link head_links[HEIGHT_MAX];
    _Alignas(8) uint8_t head_node[sizeof(rq_segment_node)];
};

static inline link *link_of(const rq_segment_node *n, unsigned level)
{
    return (link *)(uintptr_t)n - 1 - level;
}

static inline rq_segment_node *head_of(const rq_segment *s)
{
    return (rq_segment_node *)(uintptr_t)s->head_node;
}

static inline rq_segment_node *next_of(const rq_segment_node *n, unsigned level)
{
    return atomic_load_explicit(&link_of(n, level)->to, memory_order_acquire);
}

static inline uint64_t rank_of(const rq_segment *s, const uint8_t *row, size_t len)
{
    if (s->order == RQ_ORDER_META) return 0;
    return rq__row_rank(atomic_load_explicit(&s->ranking, memory_order_acquire), row, len);
}

/* --- segment_memory.c: the writer's ----------------------------------------------------------- */

/* Allocates a node with room for its links before it and `payload` bytes. NULL: memory is
 * exhausted. */
rq_segment_node *rq__segment_alloc(rq_segment *s, unsigned height, size_t payload);
void rq__segment_count_heap(rq_segment *s, int64_t bytes);
void rq__segment_free_slabs(rq_segment *s);

/* --- segment_search.c ------------------------------------------------------------------------- */

#define RQ__FENCE_WORK_EVERY 4 /* inserts */
/* Begins to build fences if the list can have some. Without memory for fences searches are slower. */
void rq__segment_fences_begin(rq_segment *s);
/* Appends a fence. REQUIRES: they are being built. */
void rq__segment_fences_work(rq_segment *s);
/* Called by the writer: no search may begin any more at this node, which is on FENCE_LEVEL. */
void rq__segment_fences_forget(rq_segment *s, const rq_segment_node *node, const probe *key);

/* --- segment_contents.c ----------------------------------------------------------------------- */

/* Called by the writer before the cell is published. */
void rq__segment_filter_note(rq_segment *s, const rq_cell *c);

/* Called by the writer before the cell is published, while the columns are known to be few. */
void rq__segment_note_column(rq_segment *s, const rq_cell *c);

#endif
