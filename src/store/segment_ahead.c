/* SPDX-License-Identifier: Apache-2.0 */
/* A search in a large memstore is a chain of cache misses, each of which waits for the previous
 * one. The searches for the rows of a batch are independent of each other, so here they are
 * interleaved: each in turn makes one step and ends it by prefetching the line that its next step
 * reads. So there are as many cache misses in flight as there are rows. When the cells are linked
 * afterwards, the lines they need are in the cache.
 *
 * Nothing is written or stored. The result is a hint and may be imprecise: it is enough to descend
 * by ranks, without a node's bytes, to the last node of a smaller rank. Behind it are the
 * memstore's nodes of the row: its newest version and those before it. They were mostly written in
 * the same way as the row is written now, cells one behind the other, so as many bytes of each are
 * prefetched as the new row has. */
#include "store/segment_ahead.h"

#include "store/segment_list.h"

#define VERSIONS 4   /* of a row; prefetch limit */
#define SMALL_CELL 2 /* cache lines; of larger cells only the first line is read */
#define LINES_MAX 64 /* of a version */
#define STEPS_MAX 48 /* ends searches that take too long because fences are few or old */

/* The state of a row's search. */
typedef struct row_search {
    const rq_segment *segment;
    uint64_t rank;
    const rq_segment_node *at; /* before the row, or of it */
    unsigned level;            /* to go on with below it; 0: it is found */
    unsigned steps;
    unsigned versions; /* prefetched so far */
    size_t lines;      /* of a version */
    rq_fences_search fences;
    bool at_fence;
} row_search;

/* Number of cells at the start of the list that are in the row of the first. */
static size_t row_length(const rq_segment_pending *list, size_t count)
{
    size_t n = 1;
    while (n < count && list[n].segment == list[0].segment && same_row(list[n].node, list[0].node))
        n++;
    return n;
}

static size_t lines_of(const rq_segment_pending *row, size_t cells)
{
    size_t bytes = 0;
    for (size_t i = 0; i < cells; i++)
        bytes += rq_segment_node_bytes(row[i].node).len;
    size_t lines = bytes / RQ_CACHE_LINE + 1;
    if (lines > SMALL_CELL * cells) return 1;
    lines += cells / 2; /* their links */
    return lines < LINES_MAX ? lines : LINES_MAX;
}

static void from_head(row_search *r)
{
    r->at = head_of(r->segment);
    r->level = atomic_load_explicit(&r->segment->height, memory_order_relaxed);
    r->at_fence = false;
}

static void row_begin(row_search *r, const rq_segment *s, rq_slice row, size_t lines)
{
    const rq_fences *f = atomic_load_explicit(&s->fences, memory_order_acquire);
    r->segment = s;
    r->rank = rank_of(s, row.ptr, row.len);
    r->steps = 0;
    r->versions = 0;
    r->lines = lines;
    if (f == NULL) {
        from_head(r);
        return;
    }
    r->at_fence = true;
    rq__fences_search_begin(&r->fences, f, r->rank);
}

static void fence_step(row_search *r)
{
    if (!rq__fences_search_step(&r->fences)) return;
    size_t i = r->fences.at;
    if (i == 0 || i == rq__fences_count(r->fences.fences) ||
        !rq__fences_holds(r->fences.fences, i - 1)) {
        from_head(r);
        return;
    }
    r->at_fence = false;
    r->at = rq__fences_node(r->fences.fences, i - 1);
    r->level = FENCE_LEVEL + 1;
    __builtin_prefetch(link_of(r->at, FENCE_LEVEL));
    __builtin_prefetch(link_of(r->at, 0));
}

/* Steps to the next node that must be waited for. False: the search is finished. */
static bool node_step(row_search *r)
{
    const rq_segment_node *next;
    if (r->steps++ == STEPS_MAX) return false;
    while (r->level > 0) {
        const link *l = link_of(r->at, r->level - 1);
        next = atomic_load_explicit(&l->to, memory_order_acquire);
        if (next == NULL || atomic_load_explicit(&l->rank, memory_order_relaxed) >= r->rank) {
            r->level--;
            continue;
        }
        r->at = next;
        __builtin_prefetch(link_of(next, r->level - 1));
        __builtin_prefetch(next);
        return true;
    }
    const link *l = link_of(r->at, 0);
    next = atomic_load_explicit(&l->to, memory_order_acquire);
    bool of_row = atomic_load_explicit(&l->rank, memory_order_relaxed) == r->rank;
    if (next == NULL || !of_row || r->versions == VERSIONS) return false;
    r->at = next;
    r->versions++;
    rq_prefetch_bytes(link_of(next, 0), r->lines * RQ_CACHE_LINE);
    return true;
}

/* A step of each in turn. */
static void run(row_search *rows, size_t open)
{
    while (open > 0) {
        for (size_t i = 0; i < open;) {
            if (rows[i].at_fence) {
                fence_step(&rows[i++]);
            } else if (node_step(&rows[i])) {
                i++;
            } else {
                rows[i] = rows[--open];
            }
        }
    }
}

size_t rq__segment_ahead(const rq_segment_pending *list, size_t count,
                         size_t ret_cells[RQ__SEGMENT_ROWS_AHEAD])
{
    row_search rows[RQ__SEGMENT_ROWS_AHEAD];
    size_t open = 0;
    size_t done = 0;
    while (done < count && open < RQ__SEGMENT_ROWS_AHEAD) {
        size_t cells = row_length(list + done, count - done);
        row_begin(&rows[open], list[done].segment, row_of(list[done].node),
                  lines_of(list + done, cells));
        ret_cells[open++] = cells;
        done += cells;
    }
    run(rows, open);
    return open;
}

void rq_segment_expect_rows(const rq_segment_row *list, size_t count)
{
    row_search rows[RQ__SEGMENT_ROWS_AHEAD];
    size_t open = 0;
    for (size_t i = 0; i < count && open < RQ__SEGMENT_ROWS_AHEAD; i++) {
        const rq_segment *s = list[i].segment;
        if (rq_segment_cell_count(s) == 0) continue;
        if (!list[i].writes &&
            !rq__segment_may_have_row(s, rq__row_hash(list[i].row.ptr, list[i].row.len)))
            continue;
        row_begin(&rows[open++], s, list[i].row, 1);
    }
    run(rows, open);
}
