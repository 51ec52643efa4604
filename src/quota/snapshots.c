/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The space of snapshots that counts for their tables: files kept only by snapshots. Measured
 * every hbase.master.quotas.snapshot.chore.period, of tables that have a space quota or whose
 * namespace has one, and written to hbase:quota as HBase writes it:
 *
 *   t.TABLE       u:ssSNAPSHOT    SpaceQuotaSnapshot { usage }
 *   n.NAMESPACE   u:ss            their sum
 *
 * HBASE: SnapshotQuotaObserverChore, QuotaTableUtil.createPutForSnapshotSize.
 */
#include "base/pb_arena.h"
#include "quota/quota_priv.h"

#include <stdlib.h>
#include <string.h>

#define QUALIFIER "ss"

struct rq__snapshot_usage {
    rq_arena arena;
    rq_snapshot_size *list; /* by table, then name */
    size_t count;
};

void rq__snapshot_usage_free(rq__snapshot_usage *u)
{
    if (u == NULL) return;
    rq_arena_clear(&u->arena);
    free(u);
}

/* The first snapshot of the table, or where it would be. */
static size_t first_of(const rq__snapshot_usage *u, rq_slice table)
{
    size_t low = 0, high = u->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rq_slice_compare(u->list[mid].table, table) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint64_t rq__snapshot_usage_of(const rq__snapshot_usage *u, rq_slice table)
{
    uint64_t bytes = 0;
    if (u == NULL) return 0;
    for (size_t i = first_of(u, table); i < u->count && rq_slice_eq(u->list[i].table, table); i++)
        bytes += u->list[i].bytes;
    return bytes;
}

static rq_slice namespace_of(rq_slice table)
{
    const uint8_t *colon = table.len == 0 ? NULL : memchr(table.ptr, ':', table.len);
    return colon == NULL ? RQ_SLICE_LIT("default")
                         : rq_slice_of(table.ptr, (size_t)(colon - table.ptr));
}

static bool takes(void *ctx, rq_slice table)
{
    const rq__view_of_quotas *v = ctx;
    rq_slice none = {0};
    const rq__entry *own = rq__quota_find(v, RQ__OWNER_TABLE, table, none);
    const rq__entry *of_ns = rq__quota_find(v, RQ__OWNER_NAMESPACE, namespace_of(table), none);
    return (own != NULL && own->has_space) || (of_ns != NULL && of_ns->has_space);
}

/* --- hbase:quota ------------------------------------------------------------------------------ */

/* A cell of family u, as it is to be. */
typedef struct wanted {
    rq_slice row, qualifier;
    uint64_t bytes;
    bool is_there; /* hbase:quota has the cell with this value */
} wanted;

typedef struct comparison {
    rq_arena *arena;
    wanted *list; /* by row, then qualifier */
    size_t count;
    wanted *stale; /* cells to be deleted */
    size_t stale_count, stale_cap;
} comparison;

static int by_column(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    int order = rq_slice_compare(x->row, y->row);
    return order != 0 ? order : rq_slice_compare(x->qualifier, y->qualifier);
}

static rq_err add_stale(comparison *c, const wanted *key)
{
    if (c->stale_count == c->stale_cap) {
        size_t cap = c->stale_cap == 0 ? 16 : 2 * c->stale_cap;
        wanted *more = rq_arena_calloc(c->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (c->stale_count > 0) memcpy(more, c->stale, c->stale_count * sizeof *more);
        c->stale = more;
        c->stale_cap = cap;
    }
    wanted *w = &c->stale[c->stale_count++];
    w->row = rq_arena_copy(c->arena, key->row);
    w->qualifier = rq_arena_copy(c->arena, key->qualifier);
    return w->row.ptr == NULL || w->qualifier.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* Untrusted: any client may write there. UINT64_MAX: no size. */
static uint64_t size_in(const rq_cell *cell, rq_arena *arena)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, arena);
    Pb__SpaceQuotaSnapshot *m =
        pb__space_quota_snapshot__unpack(&memory.allocator, cell->value_len, cell->value);
    return m == NULL || !m->has_quota_usage ? UINT64_MAX : m->quota_usage;
}

static rq_err compare_cell(comparison *c, const rq_cell *cell)
{
    wanted key = {.row = rq_cell_row(cell), .qualifier = rq_cell_qualifier(cell)};
    bool is_table = rq_slice_starts_with(key.row, RQ_SLICE_LIT("t."));
    bool is_namespace = rq_slice_starts_with(key.row, RQ_SLICE_LIT("n."));
    if (!rq_slice_eq(rq_cell_family(cell), RQ_SLICE_LIT("u")) || !(is_table || is_namespace) ||
        !rq_slice_starts_with(key.qualifier, RQ_SLICE_LIT(QUALIFIER)))
        return RQ_OK;
    wanted *w = c->count == 0 ? NULL : bsearch(&key, c->list, c->count, sizeof key, by_column);
    if (w == NULL) return add_stale(c, &key);
    rq_arena scratch;
    rq_arena_init(&scratch);
    w->is_there = size_in(cell, &scratch) == w->bytes;
    rq_arena_clear(&scratch);
    return RQ_OK;
}

static rq_err compare_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        if (compare_cell(ctx, &cells[i]) != RQ_OK) return rq_no_memory(why);
    return RQ_OK;
}

static rq_err put(rq_quotas *q, const wanted *w, rq_error *why)
{
    Pb__SpaceQuotaSnapshot m = PB__SPACE_QUOTA_SNAPSHOT__INIT;
    uint8_t bytes[32]; /* a field of at most 11 bytes */
    m.has_quota_usage = 1;
    m.quota_usage = w->bytes;
    size_t len = pb__space_quota_snapshot__pack(&m, bytes);
    return rq_catalog_row_put(q->catalog, RQ__QUOTA_TABLE, w->row, "u", w->qualifier,
                              rq_slice_of(bytes, len), why);
}

static rq_slice joined(rq_arena *arena, const char *prefix, rq_slice name)
{
    const char *text =
        rq_arena_printf(arena, "%s%.*s", prefix, (int)name.len, (const char *)name.ptr);
    return text == NULL ? (rq_slice){NULL, 0} : rq_slice_cstr(text);
}

/* Adds the snapshot's bytes to its namespace's sum. In the list, tables of one namespace are adjacent, except those of
 * the namespace default, whose names have no prefix. `sums`: the sums of the last other namespace, and of default. */
static rq_err add_to_namespace(comparison *c, const rq_snapshot_size *s, wanted *sums[2])
{
    rq_slice ns = namespace_of(s->table);
    wanted **of_ns = &sums[rq_slice_eq(ns, RQ_SLICE_LIT("default"))];
    if (*of_ns == NULL ||
        !rq_slice_eq(rq_slice_of((*of_ns)->row.ptr + 2, (*of_ns)->row.len - 2), ns)) {
        rq_slice row = joined(c->arena, "n.", ns);
        if (row.ptr == NULL) return RQ_E_NO_MEMORY;
        *of_ns = &c->list[c->count++];
        **of_ns = (wanted){row, RQ_SLICE_LIT(QUALIFIER), 0, false};
    }
    (*of_ns)->bytes += s->bytes;
    return RQ_OK;
}

/* Lists the cells that hbase:quota should have: one for each snapshot, and one with the sum for each
 * namespace of their tables. REQUIRES: u->list is ordered by table. */
static rq_err want(const rq__snapshot_usage *u, comparison *c)
{
    wanted *sums[2] = {NULL, NULL};
    c->list = rq_arena_calloc(c->arena, 2 * u->count + 1, sizeof *c->list);
    if (c->list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < u->count; i++) {
        const rq_snapshot_size *s = &u->list[i];
        wanted *w = &c->list[c->count++];
        *w = (wanted){joined(c->arena, "t.", s->table), joined(c->arena, QUALIFIER, s->name),
                      s->bytes, false};
        if (w->row.ptr == NULL || w->qualifier.ptr == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(add_to_namespace(c, s, sums));
    }
    if (c->count > 1) qsort(c->list, c->count, sizeof *c->list, by_column);
    return RQ_OK;
}

static rq_err write_sizes(rq_quotas *q, const rq__snapshot_usage *u, rq_error *why)
{
    rq_arena arena;
    rq_arena_init(&arena);
    comparison c = {.arena = &arena};
    rq_err rc = want(u, &c) == RQ_OK ? RQ_OK : rq_no_memory(why);
    if (rc == RQ_OK) rc = rq_catalog_each_row(q->catalog, RQ__QUOTA_TABLE, compare_row, &c, why);
    for (size_t i = 0; rc == RQ_OK && i < c.stale_count; i++)
        rc = rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, c.stale[i].row, "u",
                                   &c.stale[i].qualifier, why);
    for (size_t i = 0; rc == RQ_OK && i < c.count; i++)
        if (!c.list[i].is_there) rc = put(q, &c.list[i], why);
    rq_arena_clear(&arena);
    return rc;
}

/* --- measuring -------------------------------------------------------------------------------- */

rq_err rq__snapshot_usage_measure(rq_quotas *q, bool at_once, rq_error *why)
{
    rq_executor *ex = q->env.executor;
    uint64_t now = ex->now_ns(ex);
    if (!at_once && q->snapshots != NULL && now - q->snapshots_ns < q->snapshot_ns) return RQ_OK;
    rq__snapshot_usage *u = calloc(1, sizeof *u);
    if (u == NULL) return rq_no_memory(why);
    rq_arena_init(&u->arena);
    rq_err rc = rq_catalog_snapshot_sizes(q->catalog, takes, atomic_load(&q->view), &u->arena,
                                          &u->list, &u->count, why);
    if (rc == RQ_OK) rc = write_sizes(q, u, why);
    if (rc != RQ_OK) {
        rq__snapshot_usage_free(u);
        return rc;
    }
    rq__snapshot_usage_free(q->snapshots);
    q->snapshots = u;
    q->snapshots_ns = now;
    return RQ_OK;
}
