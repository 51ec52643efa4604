/* SPDX-License-Identifier: Apache-2.0 */
/* Split and merged regions (ddl_regions.c): finds them in meta. Once no file of their successors refers
 * to their files, archives their folders and then deletes their entries in meta: as long as meta names
 * the parents, the next round finds them again. HBASE: CatalogJanitor, GCRegionProcedure,
 * GCMultipleMergedRegionsProcedure. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

/* --- found in meta ---------------------------------------------------------------------------- */

/* A split parent with its daughters, or a merged region with its parents. */
typedef struct remains {
    const rq_region_info *parents, *children;
    size_t parent_count, child_count;
    bool split;
} remains;

typedef struct search {
    rq_catalog *catalog;
    const rq__proc *p; /* NULL: every table */
    rq_arena *arena;
    remains *list;
    size_t count, cap;
} search;

/* Whether the row may name these parents. Any client may write these columns, so a region that is
 * served, or that belongs to another table, is never taken for a parent. */
static bool may_be_parents(rq_catalog *c, const rq__meta_row *row, const rq_region_info *parents,
                           size_t count)
{
    bool good = true;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    for (size_t i = 0; i < count && good; i++)
        good = rq_slice_eq(parents[i].table, row->info.table) && parents[i].replica_id == 0 &&
               rq_catalog_region_find(c, rq_slice_cstr(parents[i].encoded)) == NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    return good;
}

/* The daughters of its two halves. */
static bool are_daughters(const rq__meta_row *row)
{
    const rq_region_info *a = &row->daughters[0], *b = &row->daughters[1];
    return row->daughter_count == 2 && rq_slice_eq(a->table, row->info.table) &&
           rq_slice_eq(b->table, row->info.table) &&
           rq_slice_eq(a->start_key, row->info.start_key) &&
           rq_slice_eq(a->end_key, b->start_key) && rq_slice_eq(b->end_key, row->info.end_key);
}

static rq_err copy_list(rq_arena *a, const rq_region_info *from, size_t count,
                        const rq_region_info **ret)
{
    rq_region_info *own = rq_arena_calloc(a, count + 1, sizeof *own);
    if (own == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(rq_region_info_copy(a, &from[i], &own[i]));
    *ret = own;
    return RQ_OK;
}

/* Copied, because the row is freed soon. */
static rq_err add_remains(search *s, const rq_region_info *parents, size_t parent_count,
                          const rq_region_info *children, size_t child_count, bool split)
{
    remains r = {.parent_count = parent_count, .child_count = child_count, .split = split};
    RQ_TRY(copy_list(s->arena, parents, parent_count, &r.parents));
    RQ_TRY(copy_list(s->arena, children, child_count, &r.children));
    RQ_TRY(rq_arena_grow(s->arena, &s->list, sizeof *s->list, s->count, &s->cap));
    s->list[s->count++] = r;
    return RQ_OK;
}

static rq_err take_remains(void *ctx, const rq__meta_row *row, rq_error *why)
{
    search *s = ctx;
    rq_err rc = RQ_OK;
    if (row->malformed != NULL || row->is_table) return RQ_OK;
    if (s->p != NULL && !rq_slice_eq(row->info.table, s->p->table)) return RQ_OK;
    if (row->merged_count > 0 && may_be_parents(s->catalog, row, row->merged, row->merged_count))
        rc = add_remains(s, row->merged, row->merged_count, &row->info, 1, false);
    if (rc == RQ_OK && row->info.split && row->info.offline && are_daughters(row) &&
        may_be_parents(s->catalog, row, &row->info, 1))
        rc = add_remains(s, &row->info, 1, row->daughters, row->daughter_count, true);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* Whether a parent of a merged region has a row in meta. A merge deletes the rows of its parents, so a
 * parent with a row was split, and its daughters may refer to its files. */
static bool was_split(const search *s, const rq_region_info *parent)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].split && strcmp(s->list[i].parents[0].encoded, parent->encoded) == 0)
            return true;
    return false;
}

static void drop_contradictions(search *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        bool good = true;
        for (size_t k = 0; k < s->list[i].parent_count && good && !s->list[i].split; k++)
            good = !was_split(s, &s->list[i].parents[k]);
        if (good) s->list[kept++] = s->list[i];
    }
    s->count = kept;
}

static rq_err find_remains(rq_catalog *c, search *s, rq_error *why)
{
    rq_region *meta;
    s->catalog = c;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = s->p == NULL ? rq__meta_scan(meta, take_remains, s, NULL, why)
                             : rq__meta_scan_table(meta, s->p->table, take_remains, s, why);
    rq_region_unref(meta);
    drop_contradictions(s);
    return rc;
}

rq_err rq__add_parents(rq_catalog *c, rq__proc *p, rq_error *why)
{
    search s = {.p = p, .arena = &p->arena};
    RQ_TRY(find_remains(c, &s, why));
    size_t more = 0;
    for (size_t i = 0; i < s.count; i++)
        more += s.list[i].parent_count;
    if (more == 0) return RQ_OK;
    rq_region_info *all = rq_arena_calloc(&p->arena, p->old_region_count + more, sizeof *all);
    if (all == NULL) return rq_no_memory(why);
    if (p->old_region_count > 0) memcpy(all, p->old_regions, p->old_region_count * sizeof *all);
    for (size_t i = 0; i < s.count; i++)
        for (size_t k = 0; k < s.list[i].parent_count; k++)
            all[p->old_region_count++] = s.list[i].parents[k];
    p->old_regions = all;
    return RQ_OK;
}

rq_err rq__tables_with_remains(rq_catalog *c, rq_arena *arena, rq_slice (**ret)[2],
                               size_t *ret_count, rq_error *why)
{
    search s = {.arena = arena};
    RQ_TRY(find_remains(c, &s, why));
    rq_slice(*list)[2] = rq_arena_calloc(arena, s.count + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    size_t n = 0;
    for (size_t i = 0; i < s.count; i++) {
        const rq_region_info *info = &s.list[i].parents[0];
        bool again = n > 0 && rq_slice_eq(list[n - 1][0], info->ns) &&
                     rq_slice_eq(list[n - 1][1], info->qualifier);
        if (again) continue; /* a table's rows are adjacent */
        list[n][0] = info->ns;
        list[n++][1] = info->qualifier;
    }
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

/* --- archived --------------------------------------------------------------------------------- */

/* Asks the servers of the children to drop references that compactions have replaced. */
static rq_err ask_children(rq_catalog *c, rq__proc *p, const search *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        count += s->list[i].child_count;
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_DROP_REFERENCES, count);
    if (k == NULL) return RQ_E_NO_MEMORY;
    k->count = 0;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    for (size_t i = 0; i < s->count; i++) {
        for (size_t n = 0; n < s->list[i].child_count; n++) {
            const rq_catalog_region *r =
                rq_catalog_region_find(c, rq_slice_cstr(s->list[i].children[n].encoded));
            if (r == NULL || r->server == NULL) continue;
            rq__calls_of_node(k, k->count++, RQ_CONTAINER_OF(r, rq__region_node, pub));
        }
    }
    rq_epoch_unpin(c->env->epoch, &m);
    return rq__calls_send(k);
}

/* Whether a row of meta speaks of a region, or is malformed and may. */
typedef struct mention {
    const rq_region_info *of;
    bool found;
} mention;

static rq_err look_for_mention(void *ctx, const rq__meta_row *row, rq_error *why)
{
    mention *m = ctx;
    (void)why;
    rq_slice table = m->of->table;
    if (row->row.len <= table.len || memcmp(row->row.ptr, table.ptr, table.len) != 0 ||
        row->row.ptr[table.len] != ',')
        return RQ_OK;
    m->found |= row->malformed != NULL || row->odd != NULL;
    if (row->malformed != NULL) return RQ_OK;
    for (size_t i = 0; i < row->merged_count; i++)
        m->found |= strcmp(row->merged[i].encoded, m->of->encoded) == 0;
    return RQ_OK;
}

static rq_err note_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    (void)cells, (void)count, (void)why;
    ((mention *)ctx)->found = true;
    return RQ_OK;
}

/* Whether meta has the region: served, closed, split or merged. The other rows of its table are read only if the region
 * has no row. */
static rq_err is_mentioned(rq_catalog *c, const rq_region_info *info, bool *ret, rq_error *why)
{
    rq_region *meta;
    mention m = {.of = info};
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = rq__region_row(meta, info->name, note_row, &m, why);
    if (rc == RQ_OK && !m.found)
        rc = rq__meta_scan_table(meta, info->table, look_for_mention, &m, why);
    rq_region_unref(meta);
    *ret = m.found;
    return rc;
}

/* Whether the child's files refer to its parents' files. A child with references that hbase:meta does not mention is
 * removed, and *ret is false: in a cluster a deposed master may have laid out the child again after the child was split
 * or merged itself, and archived. If a server has the child open, the storage refuses the removal. */
static rq_err look_at_child(rq_catalog *c, const rq_region_info *child, bool *ret, rq_error *why)
{
    bool mentioned;
    RQ_TRY(rq_region_folder_has_references(c->engine, child, ret, why));
    if (!*ret) return RQ_OK;
    RQ_TRY(is_mentioned(c, child, &mentioned, why));
    if (mentioned) return RQ_OK;
    RQ_TRY(rq_region_destroy(c->engine, child, why));
    rq_log_info(
        c->env->log, "catalog",
        "removed the unused files of region %s, which a repeated split or merge had created",
        child->encoded);
    *ret = false;
    return RQ_OK;
}

static rq_err clean_one(rq_catalog *c, const remains *r, rq_error *why)
{
    for (size_t i = 0; i < r->child_count; i++) {
        bool has;
        RQ_TRY(look_at_child(c, &r->children[i], &has, why));
        if (has) return RQ_OK;
    }
    for (size_t i = 0; i < r->parent_count; i++) /* one by one, in order: meta still knows them */
        RQ_TRY(rq_region_destroy(c->engine, &r->parents[i], why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = r->split ? rq__meta_delete_region(&b, &r->parents[0])
                         : rq__meta_delete_merge_parents(&b, &r->children[0], r->parent_count);
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, why);
    rq_arena_clear(&a);
    if (rc != RQ_OK) return rc;
    atomic_fetch_add(&c->janitor.cleaned, r->split ? 1 : r->parent_count);
    for (size_t i = 0; i < r->parent_count; i++)
        rq_log_info(c->env->log, "catalog", "archived region %s after its %s",
                    r->parents[i].encoded, r->split ? "split" : "merge");
    return RQ_OK;
}

rq_err rq__clean_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq__table_node_unref(t);
    return RQ_OK;
}

rq_err rq__clean_run(rq_catalog *c, rq__proc *p, rq_error *why)
{
    search s = {.p = p, .arena = &p->arena};
    RQ_TRY(find_remains(c, &s, why));
    rq_err rc = p->calls != NULL ? rq__calls_wait(p) : ask_children(c, p, &s);
    if (rc != RQ_OK) return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
    rc = rq__calls_result(p->calls, why);
    rq__calls_drop(p);
    for (size_t i = 0; i < s.count && rc == RQ_OK; i++)
        rc = clean_one(c, &s.list[i], why);
    return rc;
}
