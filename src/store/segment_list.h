/* SPDX-License-Identifier: Apache-2.0 */
/* The memstore's skip list from inside: segment.c links (it says how the list is made),
 * segment_search.c searches, segment_cursor.c walks, segment_fences.c makes what searches begin at,
 * segment_memory.c has the nodes' memory, segment_filter.c and segment_columns.c say which rows and
 * columns there are, segment_ahead.c asks for what a search will look at. */
#ifndef RQ_STORE_SEGMENT_LIST_H
#define RQ_STORE_SEGMENT_LIST_H

#include "store/fences.h"
#include "store/row_filter.h"
#include "store/row_rank.h"
#include "store/segment_node.h"

#include <stdatomic.h>

#define HEIGHT_MAX 20 /* a million cells; more only make the top level longer */
#define SLAB_FIRST ((size_t)4 * 1024)
#define FENCE_LEVEL 3
#define FENCES_FROM 2048 /* cells; ranks are settled then */
#define FILTER_FROM 1024 /* cells */

typedef struct link {
    _Atomic uint64_t rank; /* RQ_RANK_MAX when there is no next node */
    _Atomic(rq_segment_node *) to;
} link;

/* A short qualifier of puts: its length, its bytes. */
#define COLUMN_BYTES_MAX 15
typedef struct column {
    uint8_t len;
    uint8_t bytes[COLUMN_BYTES_MAX];
} column;

typedef struct slab {
    struct slab *older;
    size_t size; /* with this header */
} slab;

struct rq_segment {
    _Atomic unsigned refs;
    rq_cell_order order;
    /* the writer's */
    struct rq_slab_pool *pool; /* may be NULL */
    slab *slabs;               /* newest first; allocation from the newest, … */
    size_t used, room;         /* … of which this is used, and so large it is: its own first line
                                * is in no cache when many regions are written to */
    size_t next_slab;
    size_t rank_at; /* cells at which ranks are computed anew; 0: never again */
    uint64_t random;
    rq_segment_node *path[HEIGHT_MAX]; /* where the last link went in */
    unsigned path_levels;              /* on how many levels path is true */
    size_t before;         /* so many fences are before the key that path was made for */
    rq_segment_node *last; /* linked; its rank and height follow */
    uint64_t last_rank;
    unsigned last_height;
    rq_fences *making;      /* the next fences; NULL: none in the making */
    rq_segment_node *fence; /* the last node in them */
    /* The same on the levels above FENCE_LEVEL: how high the next one stands is told by the links
     * that lead to it. */
    rq_segment_node *fence_above[RQ_FENCE_ABOVE_MAX];
    size_t fences_at; /* cells at which the next are begun */
    bool in_order;    /* the last key was found from the one before it */
    unsigned stride;  /* so many cells stood between the last two keys of a row; 0: not known */
    bool crowded;     /* a few steps along the row of `last` do not reach its next column */
    size_t filter_at; /* cells at which the filter is made, or tried again */
    /* written by the writer alone, read by anybody */
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
    _Atomic(const rq_ranking *) ranking; /* NULL: nothing is known to be common */
    _Atomic(rq_fences *) fences;         /* NULL: none yet */
    _Atomic(rq_row_filter *) filter;     /* the same */
    /* Of puts, each once; above RQ_SEGMENT_COLUMNS_MAX: they are too many, or one is too long. */
    _Atomic unsigned column_count;
    unsigned column_at; /* the writer's: of the cell before */
    column columns[RQ_SEGMENT_COLUMNS_MAX];
    /* the head: a node of full height in front of everything */
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
    return rq_rank(atomic_load_explicit(&s->ranking, memory_order_acquire), row, len);
}

/* --- segment_memory.c: the writer's ------------------------------------------------------------
 */

/* A node with room for its links in front and `payload` bytes; NULL: no memory. */
rq_segment_node *rq__segment_alloc(rq_segment *s, unsigned height, size_t payload);
void rq__segment_count_heap(rq_segment *s, int64_t bytes);
void rq__segment_free_slabs(rq_segment *s);

/* --- segment_fences.c --------------------------------------------------------------------------
 */

/* The writer's, after each insert: one more fence now and then. Without memory for them searches
 * are slower. */
void rq__segment_fences_work(rq_segment *s);
/* The writer's: no search shall begin any more at this node, which stands on FENCE_LEVEL. */
void rq__segment_fences_forget(rq_segment *s, const rq_segment_node *node, const probe *key);

/* --- segment_filter.c --------------------------------------------------------------------------
 */

/* The writer's, before the cell is published. */
void rq__segment_filter_note(rq_segment *s, const rq_cell *c);

/* --- segment_columns.c -------------------------------------------------------------------------
 */

/* The writer's, before the cell is published. */
void rq__segment_note_column(rq_segment *s, const rq_cell *c);

#endif
