/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms of durations by table; see table_times.h. The list has a lock of its own, because an event
 * loop takes it: for a region's first duration, and never for long, since a table is in the list only
 * while it has a histogram. A region refers to its table's histograms until it is freed, so they outlive
 * the ops that were under way when the table was dropped.
 */
#include "region/table_times.h"

#include "region/engine_priv.h"

#include <stdlib.h>
#include <string.h>

typedef struct rq__table_times rq__table_times;
struct rq__table_times {
    rq__table_times *next; /* guarded by the lock of the list */
    _Atomic unsigned refs; /* the list's and each region's */
    size_t ns_len, qualifier_len;
    rq_times *_Atomic of[RQ_TABLE_TIMES_KINDS];
    uint8_t name[]; /* both */
};

/* --- life ------------------------------------------------------------------------------------- */

static rq__table_times *table_new(rq_slice ns, rq_slice qualifier)
{
    rq__table_times *t = calloc(1, sizeof *t + ns.len + qualifier.len);
    if (t == NULL) return NULL;
    memcpy(t->name, ns.ptr, ns.len);
    memcpy(t->name + ns.len, qualifier.ptr, qualifier.len);
    t->ns_len = ns.len;
    t->qualifier_len = qualifier.len;
    t->refs = 1;
    return t;
}

static void table_unref(rq__table_times_list *list, rq__table_times *t)
{
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t kind = 0; kind < RQ_TABLE_TIMES_KINDS; kind++) {
        rq_times *times = atomic_load_explicit(&t->of[kind], memory_order_relaxed);
        if (times == NULL) continue;
        free(times);
        atomic_fetch_sub_explicit(&list->used, 1, memory_order_relaxed);
    }
    free(t);
}

rq_err rq__table_times_init(rq__table_times_list *list)
{
    list->others = table_new(RQ_SLICE_LIT(""), RQ_SLICE_LIT(""));
    if (list->others == NULL) return RQ_E_NO_MEMORY;
    pthread_mutex_init(&list->lock, NULL);
    return RQ_OK;
}

void rq__table_times_clear(rq__table_times_list *list)
{
    if (list->others == NULL) return;
    for (rq__table_times *t = list->tables, *next; t != NULL; t = next) {
        next = t->next;
        table_unref(list, t);
    }
    table_unref(list, list->others);
    pthread_mutex_destroy(&list->lock);
}

/* REQUIRES: the list's lock. */
static rq__table_times **find(rq__table_times_list *list, rq_slice ns, rq_slice qualifier)
{
    rq__table_times **at = &list->tables;
    for (; *at != NULL; at = &(*at)->next) {
        const rq__table_times *t = *at;
        if (rq_slice_eq(rq_slice_of(t->name, t->ns_len), ns) &&
            rq_slice_eq(rq_slice_of(t->name + t->ns_len, t->qualifier_len), qualifier))
            break;
    }
    return at;
}

void rq__table_times_forget(rq__table_times_list *list, rq_slice ns, rq_slice qualifier)
{
    pthread_mutex_lock(&list->lock);
    rq__table_times **at = find(list, ns, qualifier);
    rq__table_times *t = *at;
    if (t != NULL) *at = t->next;
    pthread_mutex_unlock(&list->lock);
    if (t != NULL) table_unref(list, t);
}

void rq__table_times_leave(rq_region *r)
{
    rq__table_times *t = atomic_load_explicit(&r->times, memory_order_relaxed);
    if (t != NULL) table_unref(&r->engine->table_times, t);
}

/* --- adding ----------------------------------------------------------------------------------- */

static bool has_room(const rq__table_times_list *list)
{
    return atomic_load_explicit(&list->used, memory_order_relaxed) < RQ_TABLE_TIMES_MAX;
}

/* The histograms that the region uses from now on. REQUIRES: the list's lock. */
static rq__table_times *choose(rq__table_times_list *list, const rq_region *r)
{
    rq__table_times **at = find(list, r->info.ns, r->info.qualifier);
    if (*at == NULL && has_room(list)) *at = table_new(r->info.ns, r->info.qualifier);
    return *at == NULL ? list->others : *at;
}

/* A table is dropped only after its regions have closed, so a closed one must not bring it back. */
RQ_COLD static rq__table_times *join(rq__table_times_list *list, rq_region *r)
{
    pthread_mutex_lock(&list->lock);
    rq__table_times *t = atomic_load_explicit(&r->times, memory_order_relaxed);
    int state = atomic_load(&r->state);
    if (t == NULL && (state == RQ__REGION_OPEN || state == RQ__REGION_CLOSING)) {
        t = choose(list, r);
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
        atomic_store_explicit(&r->times, t, memory_order_release);
    }
    pthread_mutex_unlock(&list->lock);
    return t == NULL ? list->others : t;
}

/* NULL: no room, or no memory. */
RQ_COLD static rq_times *add_histogram(rq__table_times_list *list, rq__table_times *t,
                                       unsigned kind)
{
    size_t counts = t != list->others; /* in list->used */
    size_t used = atomic_fetch_add_explicit(&list->used, counts, memory_order_relaxed);
    rq_times *made = used >= RQ_TABLE_TIMES_MAX && counts > 0 ? NULL : calloc(1, sizeof *made);
    rq_times *other = NULL;
    if (made != NULL && atomic_compare_exchange_strong(&t->of[kind], &other, made)) return made;
    atomic_fetch_sub_explicit(&list->used, counts, memory_order_relaxed);
    free(made);
    return other;
}

static rq_times *histogram_of(rq__table_times_list *list, rq__table_times *t, unsigned kind)
{
    rq_times *times = atomic_load_explicit(&t->of[kind], memory_order_acquire);
    return RQ_LIKELY(times != NULL) ? times : add_histogram(list, t, kind);
}

void rq_region_add_time(rq_region *r, unsigned kind, uint64_t ns, uint64_t weight)
{
    rq__table_times_list *list = &r->engine->table_times;
    rq__table_times *t = atomic_load_explicit(&r->times, memory_order_acquire);
    if (RQ_UNLIKELY(t == NULL)) t = join(list, r);
    rq_times *times = histogram_of(list, t, kind);
    if (times == NULL) times = histogram_of(list, list->others, kind);
    if (times != NULL) rq_times_add_shared(times, ns, weight);
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err copy_table(rq_arena *arena, const rq__table_times *t, rq_table_times *ret)
{
    ret->ns = rq_arena_copy(arena, rq_slice_of(t->name, t->ns_len));
    ret->qualifier = rq_arena_copy(arena, rq_slice_of(t->name + t->ns_len, t->qualifier_len));
    if (ret->ns.ptr == NULL || ret->qualifier.ptr == NULL) return RQ_E_NO_MEMORY;
    for (size_t kind = 0; kind < RQ_TABLE_TIMES_KINDS; kind++) {
        const rq_times *times = atomic_load_explicit(&t->of[kind], memory_order_acquire);
        if (times == NULL) continue;
        rq_times_sum *sum = rq_arena_calloc(arena, 1, sizeof *sum);
        if (sum == NULL) return RQ_E_NO_MEMORY;
        rq_times_read(times, sum);
        ret->of[kind] = sum;
    }
    return RQ_OK;
}

/* References to all tables, so that they are copied without the lock. */
static rq_err refer(rq__table_times_list *list, rq_arena *arena, rq__table_times ***ret,
                    size_t *ret_count)
{
    size_t count = 1;
    pthread_mutex_lock(&list->lock);
    for (const rq__table_times *t = list->tables; t != NULL; t = t->next)
        count++;
    rq__table_times **all = rq_arena_alloc(arena, count * sizeof *all);
    if (all != NULL) {
        size_t n = 0;
        all[n++] = list->others;
        for (rq__table_times *t = list->tables; t != NULL; t = t->next)
            all[n++] = t;
        for (size_t i = 0; i < n; i++)
            atomic_fetch_add_explicit(&all[i]->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&list->lock);
    *ret = all;
    *ret_count = count;
    return all == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static size_t bytes_of(const rq_table_times *list, size_t count)
{
    size_t bytes = count * sizeof(rq__table_times);
    for (size_t i = 0; i < count; i++)
        for (size_t kind = 0; kind < RQ_TABLE_TIMES_KINDS; kind++)
            if (list[i].of[kind] != NULL) bytes += sizeof(rq_times);
    return bytes;
}

rq_err rq_engine_table_times(rq_engine *e, rq_arena *arena, rq_table_times **ret, size_t *ret_count,
                             size_t *ret_bytes)
{
    rq__table_times_list *list = &e->table_times;
    rq__table_times **all;
    RQ_TRY(refer(list, arena, &all, ret_count));
    *ret = rq_arena_calloc(arena, *ret_count, sizeof **ret);
    rq_err rc = *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0; i < *ret_count; i++) {
        if (rc == RQ_OK) rc = copy_table(arena, all[i], &(*ret)[i]);
        table_unref(list, all[i]);
    }
    if (rc == RQ_OK) *ret_bytes = bytes_of(*ret, *ret_count);
    return rc;
}
