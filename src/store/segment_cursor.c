/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the memstore's list: a position and iteration from there.
 *
 * Following the links of a large list means a cache miss at every node, since neighbours in order
 * are not neighbours in memory. But the nodes on FENCE_LEVEL, every eighth, form a list of their
 * own, and most of them are in an array, the fences. The nodes between two of them are a *stretch*,
 * and stretches can be walked in parallel. While a cursor passes RQ_SEGMENT_SCOUTS stretches, as many
 * scouts walk the next ones: at each step of the cursor two of them advance by a node and prefetch
 * the node after it. When the cursor arrives there, most of it is in the cache.
 *
 * Scouts start at the BEGIN-th step of a walk, since a get's walk is shorter, and at step
 * BEGIN_EXPECTED if a long walk is expected. If there are fences, they start in the stretches just
 * ahead of the cursor, whose beginnings are known without following links, and hurry: all of them
 * advance at each of their first HURRY steps, to get ahead before the cursor is there. Without fences
 * they start when the cursor enters its next stretch.
 *
 * Nodes that were inserted since the fences were built are in no fence: stretches between fences are
 * longer then, until the list has doubled and its fences are built anew.
 *
 * Scouts are hints. The list may grow and nodes may be replaced meanwhile (they keep their links):
 * a scout then walks over nodes the cursor has passed, or the cursor misses its turn and walks
 * without scouts.
 */
#include "store/segment_search.h"

#define AHEAD_BYTES (2 * (size_t)RQ_CACHE_LINE) /* link, node and most of a key */
#define BEGIN 32
#define BEGIN_EXPECTED                                                                             \
    12 /* steps of a scan that is expected to go on; a scan of one row is often shorter */
#define HURRY 12
/* When the cursor enters this one of the stretches walked in a hurry, the scouts are sent on. */
#define HURRY_TURN 2
#define FORGOTTEN_MAX 16 /* fences of replaced nodes, one behind the other, that are passed */

/* The first fence not before c->fence at which a walk can arrive; NULL: none is near. */
static const rq_segment_node *next_fence(rq_segment_cursor *c)
{
    if (c->fences == NULL) return NULL;
    size_t count = rq__fences_count(c->fences);
    size_t end = c->fence + FORGOTTEN_MAX < count ? c->fence + FORGOTTEN_MAX : count;
    while (c->fence < end) {
        size_t i = c->fence++;
        if (rq__fences_holds(c->fences, i)) return rq__fences_node(c->fences, i);
    }
    c->fences = NULL;
    return NULL;
}

/* The stop behind `last`, which reaches FENCE_LEVEL; NULL: the list has none. */
static const rq_segment_node *next_stop(rq_segment_cursor *c, const rq_segment_node *last)
{
    if (last == NULL) return NULL;
    const rq_segment_node *fence = next_fence(c);
    return fence != NULL ? fence : next_of(last, FENCE_LEVEL);
}

/* place->tall is not behind the cursor's node. */
static void walk_from(rq_segment_cursor *c, const rq__segment_place *place)
{
    c->steps = 0;
    c->begin = BEGIN;
    c->hurry_to = 0;
    c->stop_count = 1;
    c->fences = place->fences;
    c->fence = place->fence;
    c->turn = next_stop(c, place->tall);
    /* the cursor will not arrive where it is */
    if (c->turn == c->node) c->turn = next_stop(c, c->turn);
    c->stops[0] = c->turn;
}

void rq__segment_seek(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key)
{
    c->segment = s;
    /* For the many regions that have not been written to: reads one cache line instead of six. */
    c->node = next_of(head_of(s), 0);
    if (c->node == NULL) return;
    rq__segment_place place;
    c->node = next_of(rq__segment_search(s, key, &place), 0);
    /* A node inserted during the search may be in between. */
    probe p = {.cell = key};
    while (c->node != NULL && node_compare(s->order, c->node, &p) < 0)
        c->node = next_of(c->node, 0);
    walk_from(c, &place);
}

void rq_segment_first(rq_segment_cursor *c, const rq_segment *s)
{
    c->segment = s;
    c->node = next_of(head_of(s), 0);
    walk_from(c, &(rq__segment_place){.tall = head_of(s)});
}

void rq__segment_seek_before(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key)
{
    rq__segment_place place;
    const rq_segment_node *n = rq__segment_search(s, key, &place);
    c->segment = s;
    c->node = n == head_of(s) ? NULL : n;
    walk_from(c, &place);
}

void rq__segment_cursor_cell(const rq_segment_cursor *c, rq_cell *ret)
{
    node_cell(c->node, ret);
}

/* --- the walk --------------------------------------------------------------------------------- */

static void prefetch_node(const rq_segment_node *n)
{
    if (n != NULL) rq_prefetch_bytes(link_of(n, 0), AHEAD_BYTES);
}

/* Adds the end of one more of the stretches that the scouts will walk next. */
static void add_stop(rq_segment_cursor *c)
{
    const rq_segment_node *last = c->stops[c->stop_count - 1];
    const rq_segment_node *next = next_stop(c, last);
    if (next != NULL) rq_prefetch_bytes(link_of(next, FENCE_LEVEL), AHEAD_BYTES);
    c->stops[c->stop_count++] = next;
}

static void send_scouts(rq_segment_cursor *c)
{
    while (c->stop_count <= RQ_SEGMENT_SCOUTS)
        add_stop(c);
    for (unsigned i = 0; i < RQ_SEGMENT_SCOUTS; i++) {
        c->scouts[i] = c->stops[i];
        c->ends[i] = c->stops[i + 1];
    }
    c->turn = c->stops[0];
    c->stops[0] = c->stops[RQ_SEGMENT_SCOUTS];
    c->stop_count = 1;
}

/* The cursor is at the scouts' starting point: they walk the next stretches. */
static void take_turn(rq_segment_cursor *c)
{
    if (c->stops[0] == c->turn) c->stops[0] = next_stop(c, c->turn);
    if (c->steps < c->begin)
        c->turn = c->stops[0];
    else
        send_scouts(c);
}

/* Not in walk_from, because most walks end before. */
static void start_scouts(rq_segment_cursor *c)
{
    if (c->fences == NULL) { /* the stops are far away: they are added one by one */
        memset(c->scouts, 0, sizeof c->scouts);
        return;
    }
    send_scouts(c);
    c->hurry_to = c->begin + HURRY;
    c->turn = c->scouts[HURRY_TURN];
}

void rq__segment_expect_walk(rq_segment_cursor *c)
{
    c->begin = BEGIN_EXPECTED;
}

static void scout(rq_segment_cursor *c, unsigned i)
{
    const rq_segment_node *n = c->scouts[i];
    if (n == NULL) return;
    n = next_of(n, 0);
    c->scouts[i] = n == c->ends[i] ? NULL : n;
    prefetch_node(n);
}

void rq__segment_cursor_next(rq_segment_cursor *c)
{
    c->node = next_of(c->node, 0);
    if (c->node == NULL) return;
    if (c->node == c->turn) take_turn(c);
    prefetch_node(next_of(c->node, 0));
    if (c->steps < c->begin) {
        if (++c->steps == c->begin) start_scouts(c);
        return;
    }
    if (c->steps++ < c->hurry_to) {
        for (unsigned i = 0; i < RQ_SEGMENT_SCOUTS; i++)
            scout(c, i);
    } else {
        scout(c, c->steps * 2 % RQ_SEGMENT_SCOUTS);
        scout(c, (c->steps * 2 + 1) % RQ_SEGMENT_SCOUTS);
    }
    if (c->steps % 4 == 0 && c->stop_count <= RQ_SEGMENT_SCOUTS) add_stop(c);
}
