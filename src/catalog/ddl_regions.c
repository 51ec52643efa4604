/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a region, merges regions.
 *
 *    check ─ parents closed (flushed) ─ new regions laid out: references to the parents' files ─
 *    meta (commit) ─ new regions opened ─ … their compactions … ─ parents archived (ddl_parents.c)
 *
 * In meta, as in HBase: the row of a split parent stays, offline and split, with info:splitA and
 * info:splitB. The rows of merged parents are deleted, and the merged region's row names them in
 * info:merge0000, … Both last until no reference to the parents' files is left.
 *
 * The commit has happened if the parents are not in the view any more. Then a run after a crash skips
 * the steps before the commit, because clients may have written to the new regions. HBASE:
 * SplitTableRegionProcedure, MergeTableRegionsProcedure. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

#include "host/split_policy.h"

static rq_err copy_info(rq__proc *p, const rq_region_info *from, rq_region_info *ret)
{
    return rq_region_info_make(&p->arena, from->ns, from->qualifier, from->start_key, from->end_key,
                               from->region_id, from->replica_id, ret);
}

/* Whether the old regions have left the view. */
static bool is_committed(const rq__table_node *t, const rq__proc *p)
{
    return rq__table_index(t, &p->old_regions[0]) == t->pub.region_count;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* HBASE: preflightChecks(env, true). */
static rq_err check_table(const rq__proc *p, const rq__table_node *t, rq_error *why)
{
    if (t->pub.schema->is_meta)
        return rq_fail(why, RQ_E_IOEXCEPTION, "Can't modify catalog tables");
    if (t->pub.state != RQ_TABLE_ENABLED && t->pub.state != RQ_TABLE_ENABLING)
        return rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    return RQ_OK;
}

typedef struct lookup {
    rq_slice encoded;
    bool is_parent;
} lookup;

static rq_err look_for_parent(void *ctx, const rq__meta_row *row, rq_error *why)
{
    lookup *l = ctx;
    (void)why;
    if (row->malformed == NULL && !row->is_table && row->info.split &&
        rq_slice_eq(rq_slice_cstr(row->info.encoded), l->encoded))
        l->is_parent = true;
    return RQ_OK;
}

/* HBASE: AbstractStateMachineTableProcedure.checkOnline, RegionStateNode.checkOnline. */
static rq_err check_online(rq_catalog *c, const rq__table_node *t, rq_slice encoded, rq_err code,
                           size_t *ret_at, rq_error *why)
{
    char name[128];
    rq_bytes_to_string(encoded, name, sizeof name);
    size_t at = rq__table_find(c, t, encoded);
    if (at < t->pub.region_count) {
        const rq_catalog_region *r = &rq__table_region(t, at)->pub;
        *ret_at = at;
        if (r->state == RQ_REGION_OPEN && r->server != NULL) return RQ_OK;
        return rq_fail(why, code, "%s is not OPEN; state=%s", name,
                       rq__region_state_name(r->state));
    }
    lookup l = {.encoded = encoded};
    rq_region *meta;
    rq_err rc = rq__meta_ref(c, &meta, why);
    if (rc == RQ_OK) {
        rc = rq__meta_scan_table(meta, t->pub.schema->name, look_for_parent, &l, why);
        rq_region_unref(meta);
    }
    RQ_TRY(rc);
    if (l.is_parent) return rq_fail(why, code, "%s is not OPEN; state=SPLIT", name);
    return rq_fail(why, code == RQ_E_MERGE_REGION ? code : RQ_E_UNKNOWN_REGION,
                   "No RegionState found for %s", name);
}

/* --- split ------------------------------------------------------------------------------------ */

static rq_err check_split_row(const rq_region_info *info, rq_slice row, rq_error *why)
{
    char text[256], region[800];
    if (row.len == 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Region not splittable because bestSplitPoint = null, maybe table is too "
                       "small for auto split. For force split, try specifying split row");
    rq_bytes_to_string(row, text, sizeof text);
    if (rq_slice_eq(info->start_key, row))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Split row is equal to startkey: %s", text);
    if (rq_region_info_contains(info, row) && row.len <= RQ_ROW_LEN_MAX) return RQ_OK;
    rq_region_info_describe(info, region, sizeof region);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Split row is not inside region key range splitKey:%s region: %s", text, region);
}

/* Asks the region's server whether it may be split, and where. */
static rq_err look(rq_catalog *c, rq__proc *p, rq__region_node *n)
{
    if (p->calls != NULL) return rq__calls_wait(p);
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_LOOK, 1);
    if (k == NULL || rq__calls_with_arenas(k) != RQ_OK) {
        rq__calls_free(k);
        return RQ_E_NO_MEMORY;
    }
    rq__calls_of_node(k, 0, n);
    k->list[0].flush = p->of.split.row.len == 0;
    return rq__calls_send(k);
}

/* The given row, or the middle of the region. HBASE: checkSplittable,
 * RSRpcServices.getRegionInfo. */
static rq_err find_split_row(rq_catalog *c, rq__proc *p, rq__region_node *n, rq_slice *ret,
                             rq_error *why)
{
    rq_err rc = look(c, p, n);
    if (rc != RQ_OK) return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
    rc = rq__calls_result(p->calls, why);
    const rq_region_call *call = &p->calls->list[0];
    if (rc == RQ_OK && !call->splittable)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "%s NOT splittable", n->info.encoded);
    *ret = rq_arena_copy(&p->arena, call->split_row);
    if (ret->ptr == NULL) rc = rq_no_memory(why);
    rq__calls_drop(p);
    if (rc == RQ_OK && p->of.split.row.len > 0)
        *ret = rq_split_restrict(p->schema, p->of.split.row);
    return rc;
}

static rq_err take_schema(rq__proc *p, const rq__table_node *t)
{
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(t->pub.schema));
    return p->descriptor.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err split_prepare(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    size_t at;
    if (t->pub.schema->is_meta)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, RQ_META_ENCODED " NOT splittable");
    RQ_TRY(check_table(p, t, why));
    if (t->pub.region_count >= RQ__RECORD_LIST_MAX) /* with more it could not be dropped */
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "the table has %zu regions, as many as it may have",
                       t->pub.region_count);
    RQ_TRY(check_online(c, t, p->of.split.region, RQ_E_DO_NOT_RETRY_REGION, &at, why));
    rq__region_node *n = rq__table_region(t, at);
    const rq_catalog_region *r = &n->pub;
    rq_slice row;
    RQ_TRY(take_schema(p, t));
    RQ_TRY(find_split_row(c, p, n, &row, why));
    RQ_TRY(check_split_row(r->info, row, why));
    p->old_regions = rq_arena_calloc(&p->arena, 1, sizeof *p->old_regions);
    p->regions = rq_arena_calloc(&p->arena, 2, sizeof *p->regions);
    if (p->old_regions == NULL || p->regions == NULL) return rq_no_memory(why);
    RQ_TRY(copy_info(p, r->info, &p->old_regions[0]));
    /* Above the parent's id: the daughters' rows come after its row in meta. */
    int64_t id = rq__catalog_now_ms(c);
    if (id <= r->info->region_id) id = r->info->region_id + 1;
    RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, r->info->start_key, row, id, 0,
                               &p->regions[0]));
    RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, row, r->info->end_key, id, 0,
                               &p->regions[1]));
    for (size_t i = 0; i < 2; i++)
        RQ_TRY(rq__region_name_check(&p->regions[i], why));
    p->old_region_count = 1;
    p->region_count = 2;
    return RQ_OK;
}

rq_err rq__split_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    char name[512];
    rq_bytes_to_string(p->of.split.shown_name.len > 0 ? p->of.split.shown_name : p->of.split.region,
                       name, sizeof name);
    if (!rq_catalog_switch_get(c, RQ_SWITCH_SPLIT))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Split region %s failed due to split switch off",
                       name);
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    if (!rq_schema_allows(t->pub.schema, "SPLIT_ENABLED")) {
        rq__table_node_unref(t);
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Split region %s failed as region split is disabled for the table", name);
    }
    rq_err rc = rq__split_check_quota(c, p, why);
    if (rc == RQ_OK) rc = split_prepare(c, p, t, why);
    rq__table_node_unref(t);
    return rc;
}

/* Checks that HBase makes in the procedure. */
rq_err rq__split_check(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->resumed) return RQ_OK;
    RQ_TRY(rq__need_schema(p, why));
    char name[512];
    rq_bytes_to_string(p->old_regions[0].name, name, sizeof name);
    if (!rq_catalog_switch_get(c, RQ_SWITCH_SPLIT))
        return rq_fail(why, RQ_E_IOEXCEPTION, "Split region %s failed due to split switch off",
                       name);
    if (!rq_schema_allows(p->schema, "SPLIT_ENABLED"))
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "Split region %s failed as region split is disabled for the table", name);
    return RQ_OK;
}

/* --- merge ------------------------------------------------------------------------------------ */

static int info_order(const void *a, const void *b)
{
    const rq_region_info *x = a, *y = b;
    int c = rq_slice_compare(x->start_key, y->start_key);
    if (c != 0) return c;
    return (x->region_id > y->region_id) - (x->region_id < y->region_id);
}

/* HBASE: RegionInfo.isAdjacent, isOverlap. */
static bool touch(const rq_region_info *a, const rq_region_info *b)
{
    const rq_region_info *low = info_order(a, b) <= 0 ? a : b, *high = low == a ? b : a;
    return low->end_key.len == 0 || rq_slice_compare(low->end_key, high->start_key) >= 0;
}

static rq_err count_unique(rq__proc *p, size_t *ret)
{
    size_t count = p->of.merge.count;
    rq_slice *sorted = rq_arena_alloc(&p->arena, (count + 1) * sizeof *sorted);
    if (sorted == NULL) return RQ_E_NO_MEMORY;
    if (count > 0) memcpy(sorted, p->of.merge.regions, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, rq_slice_order);
    *ret = 0;
    for (size_t i = 0; i < count; i++)
        *ret += i == 0 || !rq_slice_eq(sorted[i - 1], sorted[i]);
    return RQ_OK;
}

/* HBASE: checkRegionsToMerge. */
static rq_err check_merge(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    size_t unique;
    RQ_TRY(count_unique(p, &unique));
    if (unique != p->of.merge.count)
        return rq_fail(why, RQ_E_MERGE_REGION,
                       "Duplicate regions specified; cannot merge a region to itself. Passed in "
                       "%zu but only %zu unique.",
                       p->of.merge.count, unique);
    if (unique < 2)
        return rq_fail(why, RQ_E_MERGE_REGION, "Need two Regions at least to run a Merge");
    const rq_region_info *previous = NULL;
    for (size_t i = 0; i < p->of.merge.count; i++) {
        size_t at = rq__table_find(c, t, p->of.merge.regions[i]);
        const rq_region_info *info =
            at < t->pub.region_count ? &rq__table_region(t, at)->info : NULL;
        if (previous != NULL && info != NULL && !p->of.merge.forcible && !touch(previous, info))
            return rq_fail(why, RQ_E_MERGE_REGION,
                           "Unable to merge non-adjacent or non-overlapping regions '%s', '%s' "
                           "when force=false",
                           previous->encoded, info->encoded);
        RQ_TRY(check_online(c, t, p->of.merge.regions[i], RQ_E_MERGE_REGION, &at, why));
        RQ_TRY(copy_info(p, info, &p->old_regions[p->old_region_count++]));
        previous = info;
    }
    return RQ_OK;
}

static rq_err merge_prepare(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    p->old_regions = rq_arena_calloc(&p->arena, p->of.merge.count + 1, sizeof *p->old_regions);
    p->regions = rq_arena_calloc(&p->arena, 1, sizeof *p->regions);
    if (p->old_regions == NULL || p->regions == NULL) return rq_no_memory(why);
    RQ_TRY(check_merge(c, p, t, why));
    RQ_TRY(check_table(p, t, why));
    RQ_TRY(take_schema(p, t));
    qsort(p->old_regions, p->old_region_count, sizeof *p->old_regions, info_order);
    rq_slice end = p->old_regions[0].end_key;
    int64_t id = 0;
    for (size_t i = 0; i < p->old_region_count; i++) {
        const rq_region_info *r = &p->old_regions[i];
        if (end.len > 0 && (r->end_key.len == 0 || rq_slice_compare(r->end_key, end) > 0))
            end = r->end_key;
        if (r->region_id > id) id = r->region_id;
    }
    p->region_count = 1;
    rq__catalog_saw_ms(c, id + 1);
    RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, p->old_regions[0].start_key, end,
                               id + 1, 0, &p->regions[0]));
    return rq__region_name_check(&p->regions[0], why);
}

/* "a, b" */
static const char *join(rq__proc *p, const rq_slice *names, size_t count)
{
    rq_buf text = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = rq_buf_printf(&text, "%s%.*s", i == 0 ? "" : ", ", (int)names[i].len,
                           (const char *)names[i].ptr);
    const char *joined = rc == RQ_OK ? rq_arena_cstr(&p->arena, rq_buf_slice(&text)) : NULL;
    rq_buf_clear(&text);
    return joined == NULL ? "regions" : joined;
}

/* The regions in the request. */
static const char *asked_names(rq__proc *p)
{
    return join(p, p->of.merge.regions, p->of.merge.count);
}

rq_err rq__merge_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    if (!rq_catalog_switch_get(c, RQ_SWITCH_MERGE))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Merge of [%s] failed because merge switch is off",
                       asked_names(p));
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    if (!rq_schema_allows(t->pub.schema, "MERGE_ENABLED")) {
        rq__table_node_unref(t);
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Merge of [%s] failed as region merge is disabled for the table",
                       asked_names(p));
    }
    rq_err rc = merge_prepare(c, p, t, why);
    rq__table_node_unref(t);
    return rc;
}

/* RegionInfo.getShortNameToLog of a list. */
static const char *short_names(rq__proc *p)
{
    rq_slice *names = rq_arena_calloc(&p->arena, p->old_region_count, sizeof *names);
    for (size_t i = 0; names != NULL && i < p->old_region_count; i++)
        names[i] = rq_slice_cstr(p->old_regions[i].encoded);
    return names == NULL ? "regions" : join(p, names, p->old_region_count);
}

typedef struct merged_rows {
    rq__proc *p;
    const rq_region_info *found; /* a parent that was itself merged shortly before */
} merged_rows;

static rq_err look_for_merged(void *ctx, const rq__meta_row *row, rq_error *why)
{
    merged_rows *m = ctx;
    (void)why;
    if (row->malformed != NULL || row->is_table || row->merged_count == 0) return RQ_OK;
    for (size_t i = 0; i < m->p->old_region_count; i++)
        if (strcmp(m->p->old_regions[i].encoded, row->info.encoded) == 0)
            m->found = &m->p->old_regions[i];
    return RQ_OK;
}

/* A parent's merge columns in meta are all that names its own parents: they would be lost with its row. */
static rq_err check_not_merged(rq_catalog *c, rq__proc *p, const char *names, rq_error *why)
{
    merged_rows m = {.p = p};
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = rq__meta_scan_table(meta, p->table, look_for_merged, &m, why);
    rq_region_unref(meta);
    if (rc != RQ_OK || m.found == NULL) return rc;
    return rq_fail(why, RQ_E_MERGE_REGION,
                   "Skip merging %s, because a parent, %s, has a merge qualifier (if a 'merge "
                   "column' in parent, it was recently merged but still has outstanding "
                   "references to its parents that must be cleared before it can participate "
                   "in merge -- major compact it to hurry clearing of its references)",
                   names, m.found->encoded);
}

static rq_err fail_unmergeable(const rq_region_info *info, const char *names, rq_error *why)
{
    return rq_fail(why, RQ_E_MERGE_REGION,
                   "Skip merging %s, because a parent, %s, is not mergeable", names, info->encoded);
}

/* A start may have failed to open a region: then its folder says whether it has references. */
static rq_err check_closed(rq_catalog *c, const rq__proc *p, const rq_region_info *info,
                           const char *names, rq_error *why)
{
    bool has = false;
    if (!p->resumed)
        return rq_fail(why, RQ_E_MERGE_REGION, "Unable to merge regions that are NOT online: %s",
                       info->encoded);
    RQ_TRY(rq_region_folder_has_references(c->engine, info, &has, why));
    return has ? fail_unmergeable(info, names, why) : RQ_OK;
}

/* Asks the servers of the regions that are open, and looks at the others itself. */
static rq_err ask_mergeable(rq_catalog *c, rq__proc *p, const rq__table_node *t, const char *names,
                            rq_error *why)
{
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_LOOK, p->old_region_count);
    rq_err rc = k == NULL ? rq_no_memory(why) : RQ_OK;
    if (k != NULL) k->count = 0;
    for (size_t i = 0; i < p->old_region_count && rc == RQ_OK; i++) {
        size_t at = rq__table_index(t, &p->old_regions[i]);
        rq__region_node *n = at < t->pub.region_count ? rq__table_region(t, at) : NULL;
        if (n != NULL && n->pub.server != NULL)
            rq__calls_of_node(k, k->count++, n);
        else
            rc = check_closed(c, p, &p->old_regions[i], names, why);
    }
    if (rc == RQ_OK) return rq__calls_send(k);
    rq__calls_free(k);
    return rc;
}

static rq_err check_mergeable(rq_catalog *c, rq__proc *p, const rq__table_node *t,
                              const char *names, rq_error *why)
{
    RQ_TRY(p->calls != NULL ? rq__calls_wait(p) : ask_mergeable(c, p, t, names, why));
    rq_err rc = rq__calls_result(p->calls, why);
    for (size_t i = 0; i < p->calls->count && rc == RQ_OK; i++)
        if (!p->calls->list[i].mergeable) rc = fail_unmergeable(p->calls->list[i].info, names, why);
    rq__calls_drop(p);
    return rc;
}

static rq_err check_merge_switches(rq_catalog *c, rq__proc *p, const char *names, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    if (!rq_catalog_switch_get(c, RQ_SWITCH_MERGE))
        return rq_fail(why, RQ_E_IOEXCEPTION, "Merge of %s failed because merge switch is off",
                       names);
    if (!rq_schema_allows(p->schema, "MERGE_ENABLED"))
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "Merge of %s failed as region merge is disabled for the table", names);
    return RQ_OK;
}

/* HBASE: prepareMergeRegion. A resumed procedure checks the regions again, unless the merge is committed,
 * because the crash may have come before this step. */
rq_err rq__merge_check(rq_catalog *c, rq__proc *p, rq_error *why)
{
    const char *names = short_names(p);
    if (!p->resumed && p->calls == NULL) RQ_TRY(check_merge_switches(c, p, names, why));
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    bool committed = is_committed(t, p);
    rq_err rc = committed || p->calls != NULL ? RQ_OK : check_not_merged(c, p, names, why);
    if (rc == RQ_OK && !committed) rc = check_mergeable(c, p, t, names, why);
    rq__table_node_unref(t);
    return rc;
}

/* --- both: the parents closed ----------------------------------------------------------------- */

/* The state in which the view shows a parent while it is being closed. */
static rq_region_state closing_state(const rq__proc *p)
{
    return p->ops->kind == RQ_DDL_SPLIT_REGION    ? RQ_REGION_SPLITTING
           : p->ops->kind == RQ_DDL_MERGE_REGIONS ? RQ_REGION_MERGING
                                                  : RQ_REGION_CLOSING;
}

/* Flushes most of the memstore while the region still serves. *ret_open: it is open. */
static rq_err flush_parent(rq_catalog *c, rq__proc *p, const rq_region_info *info, bool *ret_open,
                           rq_error *why)
{
    rq_err rc = RQ_OK;
    if (p->calls == NULL) {
        rq__table_node *t;
        RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
        size_t at = rq__table_index(t, info);
        *ret_open = at < t->pub.region_count && rq__table_region(t, at)->pub.server != NULL;
        rq__calls *k = *ret_open ? rq__calls_new(c, p, RQ_CALL_FLUSH, 1) : NULL;
        if (k != NULL) rq__calls_of_node(k, 0, rq__table_region(t, at));
        rq__table_node_unref(t);
        if (*ret_open) rc = k == NULL ? rq_no_memory(why) : rq__calls_send(k);
    } else {
        *ret_open = true;
        rc = rq__calls_wait(p);
    }
    if (rc != RQ_OK || p->calls == NULL) return rc;
    rc = rq__calls_result(p->calls, why);
    rq__calls_drop(p);
    return rc;
}

/* Stages for each parent: 0 flush it while it is open, 1 close it. For a parent that is not open (the
 * start left it closed, or could not open it) stage 2 follows instead: its edits, which may be only in
 * the log, are brought into files. */
static rq_err close_parent(rq_catalog *c, rq__proc *p, const rq_region_info *info, rq_error *why)
{
    if (p->stage == 0) {
        bool open;
        RQ_TRY(flush_parent(c, p, info, &open, why));
        if (!open) RQ_TRY(rq__take_down(c, p, info, 1, closing_state(p), false, NULL, why));
        p->stage = open ? 1 : 2;
    }
    if (p->stage == 1) {
        rq_err closed;
        RQ_TRY(rq__take_down(c, p, info, 1, closing_state(p), false, &closed, why));
        return closed;
    }
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    rq__table_node_unref(t);
    return rq__bring_into_files(c, p, info, p->schema, why);
}

rq_err rq__regions_close(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    bool done = is_committed(t, p);
    rq__table_node_unref(t);
    for (; p->at < p->old_region_count && !done; p->at++, p->stage = 0)
        RQ_TRY(close_parent(c, p, &p->old_regions[p->at], why));
    return RQ_OK;
}

/* --- both: the new regions laid out ----------------------------------------------------------- */

rq_err rq__regions_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    bool done = is_committed(t, p);
    rq__table_node_unref(t);
    bool split = p->ops->kind == RQ_DDL_SPLIT_REGION;
    for (size_t i = 0; i < p->region_count && !done; i++)
        RQ_TRY(rq_region_create_from(c->engine, &p->regions[i], p->schema, p->old_regions,
                                     p->old_region_count, split ? &p->regions[1].start_key : NULL,
                                     i == 1, why));
    return RQ_OK;
}

/* --- both: the commit ------------------------------------------------------------------------- */

/* HBASE: MetaTableAccessor.splitRegion. */
static rq_err split_rows(rq__batch *b, const rq__proc *p)
{
    RQ_TRY(rq__meta_put_split_parent(b, &p->old_regions[0], rq_catalog_replication(p->schema),
                                     &p->regions[0], &p->regions[1]));
    for (size_t i = 0; i < 2; i++) {
        RQ_TRY(rq__meta_put_region(b, &p->regions[i], RQ_REGION_CLOSED, NULL, -1));
        RQ_TRY(rq__meta_put_seqnum(b, &p->regions[i], 1));
    }
    return RQ_OK;
}

/* HBASE: MetaTableAccessor.mergeRegions. */
static rq_err merge_rows(rq__batch *b, const rq__proc *p, const rq_server_name *server)
{
    for (size_t i = 0; i < p->old_region_count; i++)
        RQ_TRY(rq__meta_delete_region(b, &p->old_regions[i]));
    RQ_TRY(rq__meta_put_region(b, &p->regions[0], RQ_REGION_CLOSED, server, 1));
    return rq__meta_put_merge_parents(b, &p->regions[0], p->old_regions, p->old_region_count);
}

rq_err rq__publish_replaced(rq_catalog *c, const rq__proc *p, rq_region_state state, rq_error *why)
{
    rq__region_node **list = calloc(p->region_count + 1, sizeof(rq__region_node *));
    if (list == NULL) return rq_no_memory(why);
    size_t made = 0;
    int64_t now = rq__catalog_wall_ms(c);
    rq_err rc = RQ_OK;
    for (; made < p->region_count && rc == RQ_OK; made++) {
        list[made] = rq__region_node_new(&p->regions[made], state, NULL, NULL, 1, now, NULL);
        if (list[made] == NULL) rc = rq_no_memory(why);
    }
    if (rc == RQ_OK)
        rc = rq__publish_swapped(c, p, p->old_regions, p->old_region_count, list, made, why);
    for (size_t i = 0; i < made; i++)
        rq__region_node_unref(list[i]);
    free(list);
    return rc;
}

rq_err rq__regions_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = RQ_OK;
    if (!is_committed(t, p)) {
        rq_arena a;
        rq_arena_init(&a);
        rq__batch b;
        rq__batch_init(&b, &a, rq__catalog_now_ms(c));
        rc = p->ops->kind == RQ_DDL_SPLIT_REGION ? split_rows(&b, p) : merge_rows(&b, p, c->server);
        if (rc == RQ_OK) rc = rq__proc_commit(c, p, &b, why);
        rq_arena_clear(&a);
        if (rc == RQ_OK) rc = rq__publish_replaced(c, p, RQ_REGION_OPENING, why);
    }
    rq__table_node_unref(t);
    return rc;
}

/* --- both: the new regions opened ------------------------------------------------------------- */

rq_err rq__regions_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__need_opened(p, p->regions, p->region_count, why));
    /* A repetition keeps those that are open. */
    RQ_TRY(rq__open_regions(c, p, p->opened, p->opened_count, why));
    RQ_TRY(rq__meta_put_opened(c, p, false, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, p->opened_count, false, why));
    rq__opened_done(c, p);
    return RQ_OK;
}

/* --- both: taken back before the commit ------------------------------------------------------- */

/* The parents that are closed, as p->opened. */
static rq_err list_parents(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq__proc_forget_opened(p);
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    p->opened = rq__opened_new(p->old_regions, p->old_region_count, p->schema);
    for (size_t i = 0; i < p->old_region_count && p->opened != NULL; i++) {
        size_t at = rq__table_index(t, &p->old_regions[i]);
        if (at < t->pub.region_count && rq__table_region(t, at)->pub.server == NULL)
            p->opened[p->opened_count++] =
                (rq__opened){.info = &p->old_regions[i], .schema = p->schema};
    }
    rq__table_node_unref(t);
    return p->opened == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err reopen_parents(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->stage == 1) RQ_TRY(list_parents(c, p, why));
    p->stage = 2;
    RQ_TRY(rq__open_regions(c, p, p->opened, p->opened_count, why));
    RQ_TRY(rq__meta_note_opened(c, p->opened, p->opened_count, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, p->opened_count, false, why));
    rq__opened_done(c, p);
    return RQ_OK;
}

rq__commit_state rq__regions_seen(rq_catalog *c, const rq__proc *p)
{
    rq__table_node *t;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK) return RQ__COMMIT_UNKNOWN;
    bool done = is_committed(t, p);
    rq__table_node_unref(t);
    return done ? RQ__COMMIT_YES : RQ__COMMIT_NO;
}

/* Stages: 0 removes the new regions, 1 and 2 open the parents. If a parent was opened but could not be
 * published, a REOPEN_REGION procedure repeats this, and finds the parent open. */
rq_err rq__regions_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    if (p->stage == 0 && (p->step > 1 || p->resumed) && /* laid out, at least partly */
        rq__destroy_regions(c, p->regions, p->region_count, &own) != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot remove the new regions of a failed split or merge; they are unused: %s",
                    own.message);
    if (p->stage == 0) p->stage = 1;
    own = (rq_error){.code = RQ_OK};
    rq_err rc = reopen_parents(c, p, &own);
    if (rc == RQ_OK || rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_E_SERVER_STOPPED) return rq_fail(why, rc, "%s", rq_err_text(rc));
    rq_log_error(c->env->log, "catalog",
                 "table %.*s: a split or merge failed and its regions cannot be reopened: %s; "
                 "reopening is repeated",
                 (int)p->table.len, (const char *)p->table.ptr, own.message);
    for (size_t i = 0; i < p->old_region_count; i++)
        rq__procedures_reopen(c, &p->old_regions[i], NULL);
    return RQ_OK;
}
