/* SPDX-License-Identifier: Apache-2.0 */
/* Truncates a region: it keeps its name and location, and loses all data.
 *
 *    checks ─ closed (flushed) ─ each family removed from manifest and folder ─ opened ─ meta
 *
 * Records in the log for a family that the manifest does not name are ignored (region/recover.c),
 * and a family that is new in a region starts above every number used so far (region/life.c). So no
 * data comes back, at whatever point the power fails. While only some of the families are removed
 * the region is closed, and a start leaves it to this procedure.
 *
 * A run after a crash must not truncate twice, because clients may have written to the region
 * since. Before the region is published, meta gets the sequence number with which it was opened,
 * which is above the number in the procedure's record. The durable part of the log is a prefix: if
 * it has a client's later edit, it has this number too.
 *
 * In a cluster the region's edits are in another log than meta's, its server serves it before meta has the number, and a later
 * master opens it to bring its edits into files before it repeats the removal. So the manifest decides, which counts truncations:
 * one swap of it removes all families and raises the count in the procedure's record. Whoever finds a higher count has nothing to
 * remove (rq_region_truncate). No other procedure truncates the region meanwhile, because this one has its lock.
 * HBASE: TruncateRegionProcedure. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

static rq_err prepare(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    if (t->pub.state != RQ_TABLE_ENABLED && t->pub.state != RQ_TABLE_ENABLING)
        return rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(t->pub.schema));
    p->old_regions = rq_arena_calloc(&p->arena, 1, sizeof *p->old_regions);
    if (p->descriptor.ptr == NULL || p->old_regions == NULL) return rq_no_memory(why);
    size_t at = rq__table_find(c, t, p->of.region.name);
    if (at == t->pub.region_count) return RQ_OK; /* the first step reports it */
    const rq_catalog_region *r = &rq__table_region(t, at)->pub;
    p->of.region.open_seqnum = r->open_seqnum;
    p->old_region_count = 1;
    if (rq_engine_in_cluster(c->engine))
        RQ_TRY(rq_region_numbers_of(c->engine, r->info, &p->of.region.noted, why));
    return rq_region_info_make(&p->arena, r->info->ns, r->info->qualifier, r->info->start_key,
                               r->info->end_key, r->info->region_id, 0, &p->old_regions[0]);
}

rq_err rq__truncate_region_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = prepare(c, p, t, why);
    rq__table_node_unref(t);
    return rc;
}

static bool is_of_meta(const rq__proc *p)
{
    return rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:meta"));
}

/* Checks that HBase makes in the procedure. A resumed procedure may have closed the region already. */
rq_err rq__truncate_region_check(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (is_of_meta(p)) /* a resumed procedure would retry HBase's IOException */
        return rq_fail(why, p->resumed ? RQ_E_DO_NOT_RETRY : RQ_E_IOEXCEPTION,
                       "Can't truncate region in catalog tables");
    if (p->resumed && p->old_region_count > 0) return RQ_OK;
    if (p->old_region_count == 0)
        return rq_fail(why, RQ_E_UNKNOWN_REGION, "No RegionState found for %.*s",
                       (int)p->of.region.name.len, (const char *)p->of.region.name.ptr);
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    size_t at = rq__table_index(t, &p->old_regions[0]);
    if (at == t->pub.region_count) {
        rq__table_node_unref(t);
        return rq_fail(why, RQ_E_UNKNOWN_REGION, "No RegionState found for %s",
                       p->old_regions[0].encoded);
    }
    const rq_catalog_region *r = &rq__table_region(t, at)->pub;
    rq_err rc = RQ_OK;
    if (r->state != RQ_REGION_OPEN || r->server == NULL)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY_REGION, "%s is not OPEN; state=%s", r->info->encoded,
                     rq__region_state_name(r->state));
    rq__table_node_unref(t);
    return rc;
}

/* The truncation of hbase:meta, and of a region that was not found, is always refused. In a cluster the manifest tells. */
rq__commit_state rq__truncate_region_seen(rq_catalog *c, const rq__proc *p)
{
    rq_region_numbers now;
    if (p->old_region_count == 0 || is_of_meta(p)) return RQ__COMMIT_NO;
    if (!rq_engine_in_cluster(c->engine) ||
        rq_region_numbers_of(c->engine, &p->old_regions[0], &now, NULL) != RQ_OK)
        return RQ__COMMIT_UNKNOWN;
    return now.truncations == p->of.region.noted.truncations ? RQ__COMMIT_NO : RQ__COMMIT_YES;
}

/* Whether the region was opened after this procedure had begun: then everything is done. */
static bool is_done(const rq__proc *p, const rq__table_node *t)
{
    size_t at = rq__table_index(t, &p->old_regions[0]);
    return p->resumed && at < t->pub.region_count &&
           rq__table_region(t, at)->pub.open_seqnum > p->of.region.open_seqnum;
}

/* Also notes how often the region has been opened. */
static rq_err is_done_by_manifest(rq_catalog *c, rq__proc *p, bool *ret, rq_error *why)
{
    rq_region_numbers now = {0};
    RQ_TRY(rq_region_numbers_of(c->engine, &p->old_regions[0], &now, why));
    *ret = now.truncations != p->of.region.noted.truncations;
    p->of.region.noted.openings = now.openings;
    return RQ_OK;
}

static rq_err is_done_now(rq_catalog *c, rq__proc *p, bool *ret, rq_error *why)
{
    rq__table_node *t;
    if (rq_engine_in_cluster(c->engine)) return is_done_by_manifest(c, p, ret, why);
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    *ret = is_done(p, t);
    rq__table_node_unref(t);
    return RQ_OK;
}

rq_err rq__truncate_region_close(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool done;
    RQ_TRY(is_done_now(c, p, &done, why));
    if (!done) RQ_TRY(rq__regions_close(c, p, why));
    return is_done_now(c, p, &done, why); /* in a cluster: notes the openings */
}

static rq_err remove_at_once(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_err rc = rq_region_truncate(c->engine, &p->old_regions[0], &p->of.region.noted, why);
    /* These two errors may come from before or after the first swap, which is the commit; the manifest tells. After other
     * errors its outcome may be unknown. */
    bool refused = rc == RQ_E_STATE || rc == RQ_E_CONFLICT;
    if (!refused || rq__truncate_region_seen(c, p) != RQ__COMMIT_NO) p->committed = true;
    return rc;
}

rq_err rq__truncate_region_remove(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool done;
    RQ_TRY(rq__need_schema(p, why));
    if (rq_engine_in_cluster(c->engine)) return remove_at_once(c, p, why);
    RQ_TRY(is_done_now(c, p, &done, why));
    if (!done) p->committed = true; /* once the first family is removed there is no rollback */
    for (size_t i = 0; i < p->schema->family_count && !done; i++)
        RQ_TRY(rq_region_remove_family(c->engine, &p->old_regions[0], p->schema->families[i].name,
                                       why));
    return RQ_OK;
}

/* Also when everything is done already: after a restart only this procedure opens the region. */
rq_err rq__truncate_region_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__need_opened(p, p->old_regions, 1, why));
    RQ_TRY(rq__open_regions(c, p, p->opened, 1, why)); /* a repetition keeps it open */
    RQ_TRY(rq__meta_put_opened(c, p, false, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, 1, false, why));
    rq__opened_done(c, p);
    return RQ_OK;
}
