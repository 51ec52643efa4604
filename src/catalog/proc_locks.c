/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which procedures exclude each other. A procedure has its table, its namespace, or (on_regions)
 * the regions it names; locks are no mutexes but the order of the list of active procedures.
 *
 * One that runs, or waits to be repeated, keeps all others on its table waiting. One that is parked
 * may stay so for days: what it excludes is refused, and it excludes as little as it can. The
 * table's other regions are still split, merged, truncated and opened again, and the table is
 * flushed; the namespace's other tables are not concerned.
 */
#include "catalog/proc_priv.h"

bool rq__proc_excludes(const rq__proc *a, const rq__proc *b)
{
    if (!rq_slice_eq(a->ns, b->ns)) return false;
    if (a->ops->on_namespace || b->ops->on_namespace) return true;
    return rq_slice_eq(a->qualifier, b->qualifier);
}

static bool has_region(const rq_region_info *list, size_t count, rq_slice encoded)
{
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(rq_slice_cstr(list[i].encoded), encoded)) return true;
    return false;
}

static bool names_region(const rq__proc *p, rq_slice encoded)
{
    return has_region(p->regions, p->region_count, encoded) ||
           has_region(p->old_regions, p->old_region_count, encoded);
}

/* Both are of the same table. `p` may not have begun: its regions are named as they were asked for.
 */
static bool share_region(const rq__proc *parked, const rq__proc *p)
{
    if (names_region(parked, p->family)) return true;
    for (size_t i = 0; i < p->split_key_count && p->ops->kind == RQ_DDL_MERGE_REGIONS; i++)
        if (names_region(parked, p->split_keys[i])) return true;
    return false;
}

bool rq__proc_parked_excludes(const rq__proc *parked, const rq__proc *p)
{
    if (!rq_slice_eq(parked->ns, p->ns)) return false;
    if (parked->ops->on_namespace) return p->ops->on_namespace;
    if (p->ops->on_namespace) return p->ops->kind == RQ_DDL_DELETE_NAMESPACE;
    if (!rq_slice_eq(parked->qualifier, p->qualifier)) return false;
    switch (p->ops->kind) {
    case RQ_DDL_FLUSH_TABLE:
        return false;
    case RQ_DDL_REOPEN_REGION:
    case RQ_DDL_ASSIGN_REGION:
    case RQ_DDL_UNASSIGN_REGION:
        return share_region(parked, p);
    case RQ_DDL_SPLIT_REGION:
    case RQ_DDL_MERGE_REGIONS:
    case RQ_DDL_TRUNCATE_REGION:
        return !parked->ops->on_regions || share_region(parked, p);
    default:
        return true;
    }
}

/* While it is parked nobody else may open what it has half changed: a region that has lost some of
 * its families, or has one that its table has not any more. */
bool rq__proc_holds_closed(const rq__proc *p)
{
    return p->ops->kind == RQ_DDL_TRUNCATE_REGION || p->removed_family_count > 0;
}

void rq__proc_refuse(rq__proc *p, const rq__proc *parked)
{
    unsigned step = parked->step;
    p->refused = true;
    p->why = (rq_error){0};
    p->rc = rq_fail(&p->why, RQ_E_DO_NOT_RETRY,
                    "procedure %llu (%s of %.*s) is parked in step %s and has to be aborted first: "
                    "%s",
                    (unsigned long long)parked->id, parked->ops->java_class, (int)parked->table.len,
                    (const char *)parked->table.ptr, rq__proc_step_name(parked, step),
                    parked->why.message);
}
