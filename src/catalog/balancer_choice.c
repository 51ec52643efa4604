/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which regions the balancer moves. While two servers differ by two regions or more, a region moves from the server with
 * the most regions to the server with the fewest. Its table is chosen in two steps: the candidates are the 16 tables
 * whose count on the giving server exceeds the table's average per server most; the one of which the giving server has
 * most regions more than the receiving server is chosen.
 *
 *   regions, sorted by server and table ─► groups: the regions of one table on one server
 *   a heap of groups for each server, ordered by count minus the table's average ─► 16 candidates ─► one
 *
 * With n regions this costs n log n, and for each move 16 log n and a look at each server. A server either gives or
 * receives regions, never both: a giving server keeps more than the average, a receiving server at most the average. So
 * the groups of a server only shrink, from the front; the current counts by server and table are in a hash table.
 */
#include "catalog/balancer.h"

#include <stdint.h>
#include <stdlib.h>

#define CANDIDATES 16

/* Regions of one table on one server. */
typedef struct group {
    size_t server, table;
    size_t next, count; /* position in `order` and number of the regions that have not moved */
} group;

/* The number of a table's regions on a server, now. */
typedef struct slot {
    size_t server, table, count; /* count 0: the slot is empty, or was */
    bool used;
} slot;

typedef struct choice {
    rq__balanced *list;
    size_t count, servers;
    size_t *order;     /* regions by server, table, place in the list */
    size_t *on_server; /* regions of each server, now */
    size_t *of_table;  /* regions of each table */
    group *groups;
    size_t group_count;
    size_t *heap; /* of groups, a part for each server; first is the group most above the average */
    size_t *heap_begin; /* by server */
    size_t *heap_size;
    slot *slots;
    size_t slot_mask;
} choice;

/* --- counts by server and table --------------------------------------------------------------- */

static slot *find_slot(const choice *c, size_t server, size_t table)
{
    uint64_t h = ((uint64_t)server * 0x9E3779B97F4A7C15u) ^ ((uint64_t)table * 0xC2B2AE3D27D4EB4Fu);
    size_t at = (size_t)(h ^ h >> 29) & c->slot_mask;
    while (c->slots[at].used && (c->slots[at].server != server || c->slots[at].table != table))
        at = (at + 1) & c->slot_mask;
    return &c->slots[at];
}

static void add_to_slot(const choice *c, size_t server, size_t table, size_t n)
{
    slot *s = find_slot(c, server, table);
    s->server = server;
    s->table = table;
    s->used = true;
    s->count += n;
}

static size_t count_of(const choice *c, size_t server, size_t table)
{
    return find_slot(c, server, table)->count;
}

/* --- heaps ------------------------------------------------------------------------------------ */

/* By how much the group exceeds the table's average per server, times the number of servers. */
static int64_t beyond(const choice *c, size_t g)
{
    const group *o = &c->groups[g];
    return (int64_t)(o->count * c->servers) - (int64_t)c->of_table[o->table];
}

static bool is_above(const choice *c, size_t a, size_t b)
{
    int64_t x = beyond(c, a), y = beyond(c, b);
    return x != y ? x > y : a < b;
}

static void swap(size_t *a, size_t *b)
{
    size_t t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(const choice *c, size_t *h, size_t n, size_t at)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (is_above(c, h[child], h[best])) best = child;
        if (best == at) return;
        swap(&h[at], &h[best]);
        at = best;
    }
}

static void push(const choice *c, size_t server, size_t g)
{
    size_t *h = c->heap + c->heap_begin[server], at = c->heap_size[server]++;
    h[at] = g;
    for (; at > 0 && is_above(c, h[at], h[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&h[at], &h[(at - 1) / 2]);
}

static size_t pop(const choice *c, size_t server)
{
    size_t *h = c->heap + c->heap_begin[server], first = h[0];
    h[0] = h[--c->heap_size[server]];
    sift_down(c, h, c->heap_size[server], 0);
    return first;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* qsort_r's context is the list. */
static int by_place(const void *a, const void *b, void *ctx)
{
    const rq__balanced *list = ctx;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    if (list[i].server != list[j].server) return list[i].server < list[j].server ? -1 : 1;
    if (list[i].table != list[j].table) return list[i].table < list[j].table ? -1 : 1;
    return (i > j) - (i < j);
}

static void make_groups(choice *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const rq__balanced *r = &c->list[c->order[i]];
        group *last = c->group_count == 0 ? NULL : &c->groups[c->group_count - 1];
        if (last == NULL || last->server != r->server || last->table != r->table) {
            last = &c->groups[c->group_count++];
            *last = (group){.server = r->server, .table = r->table, .next = i};
        }
        last->count++;
        c->on_server[r->server]++;
        c->of_table[r->table]++;
    }
}

/* REQUIRES: the counts of tables are complete. */
static void make_heaps(choice *c)
{
    for (size_t g = 0; g < c->group_count; g++) {
        const group *o = &c->groups[g];
        if (g == 0 || c->groups[g - 1].server != o->server) c->heap_begin[o->server] = g;
        add_to_slot(c, o->server, o->table, o->count);
        push(c, o->server, g);
    }
}

static size_t power_above(size_t n)
{
    size_t p = 16;
    while (p < n)
        p *= 2;
    return p;
}

/* `moves`: at most so many. */
static rq_err prepare(choice *c, size_t tables, size_t moves)
{
    size_t slots = power_above(2 * (c->count + moves));
    c->slot_mask = slots - 1;
    c->order = calloc(c->count + 1, sizeof *c->order);
    c->on_server = calloc(c->servers, sizeof *c->on_server);
    c->of_table = calloc(tables + 1, sizeof *c->of_table);
    c->groups = calloc(c->count + 1, sizeof *c->groups);
    c->heap = calloc(c->count + 1, sizeof *c->heap);
    c->heap_begin = calloc(c->servers, sizeof *c->heap_begin);
    c->heap_size = calloc(c->servers, sizeof *c->heap_size);
    c->slots = calloc(slots, sizeof *c->slots);
    if (c->order == NULL || c->on_server == NULL || c->of_table == NULL || c->groups == NULL ||
        c->heap == NULL || c->heap_begin == NULL || c->heap_size == NULL || c->slots == NULL)
        return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < c->count; i++)
        c->order[i] = i;
    qsort_r(c->order, c->count, sizeof *c->order, by_place, c->list);
    make_groups(c);
    make_heaps(c);
    return RQ_OK;
}

static void clear(choice *c)
{
    free(c->order);
    free(c->on_server);
    free(c->of_table);
    free(c->groups);
    free(c->heap);
    free(c->heap_begin);
    free(c->heap_size);
    free(c->slots);
}

/* --- moves ------------------------------------------------------------------------------------ */

static size_t index_of_most(const size_t *counts, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (counts[i] > counts[at]) at = i;
    return at;
}

static size_t index_of_least(const size_t *counts, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (counts[i] < counts[at]) at = i;
    return at;
}

static size_t unevenness(const choice *c, size_t g, size_t to)
{
    size_t here = c->groups[g].count, there = count_of(c, to, c->groups[g].table);
    return here > there ? here - there : 0;
}

/* The group from which a region moves. Of equally uneven groups it is the group whose next region is first in the list. */
static size_t choose(const choice *c, size_t from, size_t to)
{
    size_t taken[CANDIDATES], n = 0, best = 0, most = 0;
    while (n < CANDIDATES && c->heap_size[from] > 0) {
        size_t g = taken[n] = pop(c, from), uneven = unevenness(c, g, to);
        bool is_first = c->order[c->groups[g].next] < c->order[c->groups[taken[best]].next];
        if (n == 0 || uneven > most || (uneven == most && is_first)) {
            best = n;
            most = uneven;
        }
        n++;
    }
    for (size_t i = 0; i < n; i++)
        if (i != best) push(c, from, taken[i]);
    return taken[best];
}

static void move(choice *c, size_t from, size_t to)
{
    size_t at = choose(c, from, to);
    group *g = &c->groups[at];
    rq__balanced *r = &c->list[c->order[g->next++]];
    r->server = to;
    r->moves = true;
    c->on_server[from]--;
    c->on_server[to]++;
    find_slot(c, from, g->table)->count--;
    add_to_slot(c, to, g->table, 1);
    if (--g->count > 0) push(c, from, at);
}

rq_err rq__balance(rq__balanced *list, size_t count, size_t tables, size_t servers, size_t max,
                   size_t *ret_moves)
{
    choice c = {.list = list, .count = count, .servers = servers};
    *ret_moves = 0;
    if (servers == 0) return RQ_OK;
    if (max > count) max = count;
    rq_err rc = prepare(&c, tables, max);
    while (rc == RQ_OK && *ret_moves < max) {
        size_t from = index_of_most(c.on_server, servers);
        size_t to = index_of_least(c.on_server, servers);
        if (c.on_server[from] < c.on_server[to] + 2) break;
        move(&c, from, to);
        (*ret_moves)++;
    }
    clear(&c);
    return rc;
}
