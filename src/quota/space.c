/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space quotas. For each table and namespace with a space quota, a round sums the sizes of the store files, with files
 * that only snapshots keep (snapshots.c) and without links and references. It compares the sums with the limits and
 * publishes the states. If a table has a quota of its own, this quota applies, unless it is not violated and the
 * namespace's is; then the namespace's policy applies. A table without a quota has the state of its namespace's.
 *
 * A state that has changed is written to hbase:quota, from where HBase's clients read it too
 * (u:p of the table's row). DISABLE disables the table, and enables it when the violation is over.
 * HBASE: QuotaObserverChore, SpaceQuotaSnapshot, TableSpaceQuotaSnapshotNotifier.
 */
#include "quota/quota_priv.h"

#include "descriptor/schema.h"

#include <stdlib.h>
#include <string.h>

/* --- the view --------------------------------------------------------------------------------- */

static int entry_order(const void *a, const void *b)
{
    const rq__space_entry *x = a, *y = b;
    if (x->state.is_namespace != y->state.is_namespace) return x->state.is_namespace ? 1 : -1;
    return rq_slice_compare(x->state.table, y->state.table);
}

static const rq__space_entry *find_entry(const rq__space_view *v, rq_slice name, bool is_namespace)
{
    if (v == NULL || v->count == 0) return NULL;
    const rq__space_entry key = {.state = {.table = name, .is_namespace = is_namespace}};
    return bsearch(&key, v->entries, v->count, sizeof key, entry_order);
}

const rq__space_entry *rq__space_find(const rq__space_view *v, rq_slice table)
{
    const rq__space_entry *e = find_entry(v, table, false);
    return e == NULL || e->is_lost ? NULL : e;
}

bool rq__space_needs_record(const rq_quotas *q, rq_slice table)
{
    const rq__space_entry *e = find_entry(atomic_load(&q->space), table, false);
    return e != NULL && (!e->is_lost || e->was_followed);
}

void rq__space_view_free(rq__space_view *v)
{
    if (v == NULL) return;
    rq_arena_clear(&v->arena);
    free(v);
}

static void release_view(rq_epoch_node *node)
{
    rq__space_view_free(RQ_CONTAINER_OF(node, rq__space_view, retired));
}

/* --- measuring -------------------------------------------------------------------------------- */

static uint64_t size_of(const rq_catalog_table *t)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->region_count; i++) {
        rq_region_load load = {0};
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (r->region != NULL) rq_region_get_load(r->region, &load);
        bytes += load.hfile_bytes;
    }
    return bytes;
}

typedef struct round_state {
    rq_quotas *q;
    const rq__view_of_quotas *quotas;
    const rq__space_view *before;
    bool is_first; /* first round of this process: the records of an earlier process count */
    rq__space_view *view;
    size_t cap;
} round_state;

static rq_err add_entry(round_state *r, const rq_space_state *s, bool is_own)
{
    rq__space_view *v = r->view;
    if (v->count == r->cap) {
        size_t cap = r->cap == 0 ? 16 : r->cap * 2;
        rq__space_entry *more = rq_arena_calloc(&v->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (v->count > 0) memcpy(more, v->entries, v->count * sizeof *more);
        v->entries = more;
        r->cap = cap;
    }
    rq__space_entry *e = &v->entries[v->count++];
    *e = (rq__space_entry){.state = *s, .is_own = is_own};
    e->state.table = rq_arena_copy(&v->arena, s->table);
    return e->state.table.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_space_state state_of(const rq__entry *e, rq_slice name, bool is_namespace, uint64_t usage)
{
    return (rq_space_state){.table = name,
                            .is_namespace = is_namespace,
                            .usage = usage,
                            .limit = e->space_limit,
                            .policy = e->policy,
                            .is_violated = usage > e->space_limit};
}

static rq_space_state state_of_usage(const rq__entry *e)
{
    return (rq_space_state){.table = e->name,
                            .usage = e->usage,
                            .limit = e->space_limit,
                            .policy = e->policy,
                            .is_violated = e->is_violated};
}

/* A table's state at the end of the previous round; after a start, as it was last written. */
static bool state_before(const round_state *r, rq_slice table, rq_space_state *ret)
{
    rq_slice none = {0};
    const rq__space_entry *e = find_entry(r->before, table, false);
    const rq__entry *written =
        r->is_first ? rq__quota_find(r->quotas, RQ__OWNER_TABLE_USAGE, table, none) : NULL;
    if (e != NULL) *ret = e->state;
    if (written != NULL) *ret = state_of_usage(written);
    return e != NULL || written != NULL;
}

/* The state that the table and hbase:quota were brought to. */
static bool followed_before(const round_state *r, rq_slice table, rq_space_state *ret)
{
    if (r->is_first) return state_before(r, table, ret);
    const rq__space_entry *e = find_entry(r->before, table, false);
    if (e == NULL || !e->was_followed) return false;
    *ret = e->followed;
    return true;
}

/* A disabled table's files are those listed when it was disabled. */
static uint64_t known_size(const round_state *r, const rq_catalog_table *t)
{
    rq_space_state s;
    if (t->state == RQ_TABLE_ENABLED || t->state == RQ_TABLE_ENABLING)
        return size_of(t) + rq__snapshot_usage_of(r->q->snapshots, t->schema->name);
    return state_before(r, t->schema->name, &s) ? s.usage : 0;
}

static rq_err measure_table(round_state *r, const rq_catalog_table *t,
                            const rq_space_state *of_namespace)
{
    rq_slice none = {0};
    const rq__entry *own = rq__quota_find(r->quotas, RQ__OWNER_TABLE, t->schema->name, none);
    bool has_own = own != NULL && own->has_space;
    rq_space_state s;
    if (has_own) s = state_of(own, t->schema->name, false, known_size(r, t));
    bool takes_namespace =
        of_namespace != NULL && (!has_own || (!s.is_violated && of_namespace->is_violated));
    if (takes_namespace) {
        s = *of_namespace;
        s.table = t->schema->name;
        s.is_namespace = false;
    }
    return has_own || takes_namespace ? add_entry(r, &s, !takes_namespace) : RQ_OK;
}

/* The tables of a namespace are adjacent. */
static rq_err measure_namespace(round_state *r, const rq_catalog_table *const *tables, size_t count)
{
    rq_slice none = {0}, ns = tables[0]->schema->ns;
    const rq__entry *e = rq__quota_find(r->quotas, RQ__OWNER_NAMESPACE, ns, none);
    rq_space_state s, *of_namespace = NULL;
    if (e != NULL && e->has_space) {
        uint64_t usage = 0;
        for (size_t i = 0; i < count; i++)
            usage += known_size(r, tables[i]);
        s = state_of(e, ns, true, usage);
        of_namespace = &s;
        RQ_TRY(add_entry(r, &s, true));
    }
    for (size_t i = 0; i < count; i++)
        RQ_TRY(measure_table(r, tables[i], of_namespace));
    return RQ_OK;
}

static void sort_view(rq__space_view *v)
{
    if (v->count > 1) qsort(v->entries, v->count, sizeof *v->entries, entry_order);
}

/* A table that has no quota any more, among the first `count` entries. */
static rq_err add_lost_table(round_state *r, size_t count, const rq_space_state *s, bool is_own)
{
    const rq__space_view sorted = {.entries = r->view->entries, .count = count};
    if (find_entry(&sorted, s->table, false) != NULL) return RQ_OK;
    RQ_TRY(add_entry(r, s, is_own));
    r->view->entries[r->view->count - 1].is_lost = true;
    return RQ_OK;
}

/* Adds the tables that have no quota any more and whose last state is still to be undone: tables of the previous round,
 * or, in the first round, tables with a record of an earlier process. */
static rq_err add_lost(round_state *r)
{
    size_t count = r->view->count;
    for (size_t i = 0; r->before != NULL && i < r->before->count; i++) {
        const rq__space_entry *old = &r->before->entries[i];
        if (old->was_followed) RQ_TRY(add_lost_table(r, count, &old->state, old->is_own));
    }
    rq__quota_cursor at = {0};
    const rq__entry *e;
    while (r->is_first && r->quotas->usages > 0 && (e = rq__quota_next(r->quotas, &at)) != NULL) {
        rq_space_state s = state_of_usage(e);
        if (e->owner == RQ__OWNER_TABLE_USAGE) RQ_TRY(add_lost_table(r, count, &s, true));
    }
    if (r->view->count > count) sort_view(r->view);
    return RQ_OK;
}

static rq_err measure_all(round_state *r)
{
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    size_t count, end;
    rq_err rc = RQ_OK;
    rq_epoch_pin(r->q->env.epoch, &m);
    rq_catalog_tables(r->q->catalog, &tables, &count);
    for (size_t i = 0; rc == RQ_OK && i < count; i = end) {
        for (end = i + 1;
             end < count && rq_slice_eq(tables[end]->schema->ns, tables[i]->schema->ns);)
            end++;
        rc = measure_namespace(r, tables + i, end - i);
    }
    rq_epoch_unpin(r->q->env.epoch, &m);
    sort_view(r->view);
    return rc == RQ_OK ? add_lost(r) : rc;
}

/* --- what follows from a state ---------------------------------------------------------------- */

static bool same(const rq_space_state *a, const rq_space_state *b)
{
    return a->usage == b->usage && a->limit == b->limit && a->policy == b->policy &&
           a->is_violated == b->is_violated;
}

/* HBASE: QuotaTableUtil.createPutForSpaceSnapshot. */
static rq_err write_state(rq_quotas *q, const rq_space_state *s, rq_error *why)
{
    Pb__SpaceQuotaSnapshot m = PB__SPACE_QUOTA_SNAPSHOT__INIT;
    Pb__SpaceQuotaStatus status = PB__SPACE_QUOTA_STATUS__INIT;
    rq_arena a;
    rq_arena_init(&a);
    status.has_in_violation = 1;
    status.in_violation = s->is_violated;
    status.has_violation_policy = s->is_violated;
    status.violation_policy = s->policy;
    m.quota_status = &status;
    m.has_quota_usage = m.has_quota_limit = 1;
    m.quota_usage = s->usage;
    m.quota_limit = s->limit;
    size_t len = pb__space_quota_snapshot__get_packed_size(&m);
    uint8_t *bytes = rq_arena_alloc(&a, len + 1);
    char *row = rq_arena_printf(&a, "t.%.*s", (int)s->table.len, (const char *)s->table.ptr);
    rq_err rc = bytes == NULL || row == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK) {
        pb__space_quota_snapshot__pack(&m, bytes);
        rc = rq_catalog_row_put(q->catalog, RQ__QUOTA_TABLE, rq_slice_cstr(row), "u",
                                RQ_SLICE_LIT("p"), rq_slice_of(bytes, len), why);
    }
    rq_arena_clear(&a);
    return rc;
}

static void log_state(const rq_quotas *q, const rq_space_state *s)
{
    static const char *const names[] = {"", "DISABLE", "NO_WRITES_COMPACTIONS", "NO_WRITES",
                                        "NO_INSERTS"};
    rq_log_warn(q->env.log, "quota", "table %.*s: %s, %llu of %llu bytes, policy %s",
                (int)s->table.len, (const char *)s->table.ptr,
                s->is_violated ? "space quota exceeded" : "space quota no longer exceeded",
                (unsigned long long)s->usage, (unsigned long long)s->limit, names[s->policy]);
}

typedef struct waiting {
    rq_ddl ddl;
    rq_latch latch;
} waiting;

static void submitted(rq_ddl *ddl)
{
    waiting *w = RQ_CONTAINER_OF(ddl, waiting, ddl);
    w->latch.executor->latch_open(&w->latch, RQ_OK);
}

/* Enables or disables the table. RQ_OK also if it has this state already, or does not exist. */
static rq_err run_switch(rq_quotas *q, rq_slice table, bool on, rq_error *why)
{
    rq_executor *ex = q->env.executor;
    waiting w = {.ddl = {.kind = on ? RQ_DDL_ENABLE_TABLE : RQ_DDL_DISABLE_TABLE,
                         .submitted = submitted,
                         .wait_finished = true}};
    if (rq_table_name_parse(table, &w.ddl.ns, &w.ddl.qualifier, NULL) != RQ_OK) return RQ_OK;
    ex->latch_init(ex, &w.latch);
    rq_catalog_submit(q->catalog, &w.ddl);
    rq_err rc = ex->latch_wait(&w.latch);
    ex->latch_destroy(&w.latch);
    if (rc == RQ_OK) rc = w.ddl.rc;
    if (rc == RQ_OK || rc == RQ_E_TABLE_NOT_FOUND ||
        rc == (on ? RQ_E_TABLE_NOT_DISABLED : RQ_E_TABLE_NOT_ENABLED))
        return RQ_OK;
    return rq_fail(why, rc, "the table cannot be %s: %s", on ? "enabled" : "disabled",
                   w.ddl.why.code == RQ_OK ? rq_err_text(rc) : w.ddl.why.message);
}

/* Releases q->work, so that changes of quotas go on meanwhile: the procedure waits for the table's lock. */
static rq_err switch_table(rq_quotas *q, rq_slice table, bool on, rq_error *why)
{
    pthread_mutex_unlock(&q->work);
    rq_err rc = run_switch(q, table, on, why);
    pthread_mutex_lock(&q->work);
    return rc;
}

static bool disables(const rq_space_state *s)
{
    return s->is_violated && s->policy == PB__SPACE_VIOLATION_POLICY__DISABLE;
}

/* The table first: a crash between the two leaves a record that shows what is to be done. */
static rq_err bring_to(rq_quotas *q, const rq_space_state *s, const rq_space_state *old,
                       rq_error *why)
{
    if (disables(s) != disables(old)) RQ_TRY(switch_table(q, s->table, !disables(s), why));
    return write_state(q, s, why);
}

static rq_err follow(round_state *r, rq__space_entry *e, rq_error *why)
{
    const rq_space_state *s = &e->state;
    const rq_space_state old = e->followed;
    rq_err rc = RQ_OK;
    bool had = e->was_followed;
    if (s->is_violated != old.is_violated) log_state(r->q, s);
    if (!had || !same(&old, s)) rc = bring_to(r->q, s, &old, why);
    e->was_followed = had || rc == RQ_OK;
    e->followed = rc == RQ_OK ? *s : old;
    e->followed.table = s->table; /* in this view's arena */
    return rc;
}

static rq_err delete_state(rq_quotas *q, rq_slice table, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_slice qualifier = RQ_SLICE_LIT("p");
    char *row = rq_arena_printf(&a, "t.%.*s", (int)table.len, (const char *)table.ptr);
    rq_err rc = row == NULL ? rq_no_memory(why)
                            : rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, rq_slice_cstr(row),
                                                    "u", &qualifier, why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err follow_lost(round_state *r, rq__space_entry *e, rq_error *why)
{
    rq_err rc = RQ_OK;
    rq_slice table = e->state.table;
    if (disables(&e->followed)) rc = switch_table(r->q, table, true, why);
    if (rc == RQ_OK) rc = delete_state(r->q, table, why);
    e->was_followed = rc != RQ_OK; /* the next round has it again */
    return rc;
}

/* Runs before the first table is enabled or disabled: from then on r->quotas may be replaced. */
static void find_followed(round_state *r)
{
    for (size_t i = 0; i < r->view->count; i++) {
        rq__space_entry *e = &r->view->entries[i];
        if (e->state.is_namespace) continue;
        e->was_followed = followed_before(r, e->state.table, &e->followed);
        e->followed.table = e->state.table; /* in this view's arena */
    }
    r->quotas = NULL;
}

/* One table's failure does not keep the others from their states. */
static void follow_all(round_state *r)
{
    for (size_t i = 0; i < r->view->count; i++) {
        rq_error why = {.code = RQ_OK};
        rq__space_entry *e = &r->view->entries[i];
        if (e->state.is_namespace) continue;
        rq_err rc = e->is_lost ? follow_lost(r, e, &why) : follow(r, e, &why);
        if (rc != RQ_OK)
            rq_log_warn(r->q->env.log, "quota",
                        "table %.*s: cannot apply its space quota: %s; the next period tries again",
                        (int)e->state.table.len, (const char *)e->state.table.ptr,
                        why.code == RQ_OK ? rq_err_text(rc) : why.message);
    }
}

/* If the snapshots cannot be read or their sizes not be written, limits apply without them. */
static void measure_snapshots(rq_quotas *q, bool now)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq__snapshot_usage_measure(q, now, &why);
    if (rc != RQ_OK)
        rq_log_warn(
            q->env.log, "quota",
            "cannot determine the sizes of snapshots, so space quotas do not count them: %s",
            why.code == RQ_OK ? rq_err_text(rc) : why.message);
}

/* The states are published before tables are disabled, so that writes stop at once. */
rq_err rq__space_measure(rq_quotas *q, rq_error *why)
{
    rq__space_view *before = atomic_load(&q->space);
    round_state r = {
        .q = q, .quotas = atomic_load(&q->view), .before = before, .is_first = !q->has_measured};
    if (r.quotas == NULL) return RQ_OK;
    if (!r.quotas->spaces && before == NULL && !(r.is_first && r.quotas->usages)) return RQ_OK;
    measure_snapshots(q, !r.quotas->spaces);
    r.view = calloc(1, sizeof *r.view);
    if (r.view == NULL) return rq_no_memory(why);
    rq_arena_init(&r.view->arena);
    rq_err rc = measure_all(&r);
    if (rc != RQ_OK) {
        rq__space_view_free(r.view);
        return rq_no_memory(why);
    }
    find_followed(&r);
    atomic_store_explicit(&q->space, r.view, memory_order_release);
    follow_all(&r);
    q->has_measured = true;
    if (r.view->count == 0) {
        atomic_store_explicit(&q->space, NULL, memory_order_release);
        rq_epoch_retire(q->env.epoch, &r.view->retired, release_view);
    }
    if (before != NULL) rq_epoch_retire(q->env.epoch, &before->retired, release_view);
    return RQ_OK;
}

rq_err rq_quotas_space(rq_quotas *q, rq_arena *arena, rq_space_state **ret, size_t *ret_count)
{
    rq_epoch_member m = {0};
    rq_err rc = RQ_OK;
    rq_epoch_pin(q->env.epoch, &m);
    const rq__space_view *v = atomic_load_explicit(&q->space, memory_order_acquire);
    size_t all = v == NULL ? 0 : v->count;
    size_t count = 0;
    rq_space_state *list = rq_arena_calloc(arena, all + 1, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; rc == RQ_OK && i < all; i++) {
        if (v->entries[i].is_lost) continue;
        list[count] = v->entries[i].state;
        list[count].table = rq_arena_copy(arena, list[count].table);
        if (list[count++].table.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    rq_epoch_unpin(q->env.epoch, &m);
    *ret = list;
    *ret_count = count;
    return rc;
}
