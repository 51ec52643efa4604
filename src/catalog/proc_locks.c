/* SPDX-License-Identifier: Apache-2.0 */
/* What a parked procedure blocks, and on which regions a procedure works. Running procedures, and
 * those waiting for a retry, make others wait (proc_queue.c). A procedure may stay parked for days,
 * so operations that conflict with it are refused, and it conflicts with as little as possible.
 * Other regions of the table can be split, merged, truncated and reopened, and the table flushed;
 * other tables of the namespace are not affected. */
#include "catalog/proc_priv.h"

#include <stdlib.h>

rq_err rq__proc_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                            void *ctx)
{
    const rq__payload_kind *payload = p->ops->payload;
    if (payload->each_region != NULL) RQ_TRY(payload->each_region(p, each, ctx));
    for (size_t i = 0; i < p->old_region_count; i++)
        RQ_TRY(each(ctx, rq_slice_cstr(p->old_regions[i].encoded)));
    for (size_t i = 0; i < p->region_count; i++)
        RQ_TRY(each(ctx, rq_slice_cstr(p->regions[i].encoded)));
    return RQ_OK;
}

/* --- the names of a parked procedure's regions ------------------------------------------------- */

#define FEW_NAMES 8

typedef struct rq__encoded_name {
    char text[RQ_ENCODED_NAME_LEN + 1];
} rq__encoded_name;

typedef struct sorting {
    rq__encoded_name *list; /* NULL: the names are counted */
    size_t count;
    bool any_long; /* it is no encoded name: a client sent it */
} sorting;

static rq_err take_name(void *ctx, rq_slice encoded)
{
    sorting *s = ctx;
    s->any_long |= encoded.len > RQ_ENCODED_NAME_LEN;
    if (s->list != NULL && encoded.len > 0)
        memcpy(s->list[s->count].text, encoded.ptr, encoded.len); /* the rest is zero */
    s->count++;
    return RQ_OK;
}

static int by_text(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(rq__encoded_name));
}

void rq__proc_sort_names(rq__proc *p)
{
    sorting s = {.list = NULL};
    if (p->named != NULL || rq__proc_each_region(p, take_name, &s) != RQ_OK || s.any_long ||
        s.count <= FEW_NAMES)
        return;
    s = (sorting){.list = calloc(s.count, sizeof *s.list)};
    if (s.list == NULL || rq__proc_each_region(p, take_name, &s) != RQ_OK) {
        free(s.list);
        return;
    }
    qsort(s.list, s.count, sizeof *s.list, by_text);
    p->named = s.list;
    p->named_count = s.count;
}

void rq__proc_free_names(rq__proc *p)
{
    free(p->named);
    p->named = NULL;
    p->named_count = 0;
}

static bool is_named(const rq__proc *p, rq_slice encoded)
{
    rq__encoded_name key = {.text = ""};
    if (encoded.len > RQ_ENCODED_NAME_LEN) return false;
    if (encoded.len > 0) memcpy(key.text, encoded.ptr, encoded.len);
    return bsearch(&key, p->named, p->named_count, sizeof key, by_text) != NULL;
}

/* --- exclusion --------------------------------------------------------------------------------- */

typedef struct region_search {
    const rq__proc *other; /* NULL: searches for `encoded` */
    rq_slice encoded;
    bool found;
} region_search;

static rq_err match_region(void *ctx, rq_slice encoded)
{
    region_search *s = ctx;
    s->found |= rq_slice_eq(s->encoded, encoded);
    return RQ_OK;
}

bool rq__proc_names_region(const rq__proc *p, rq_slice encoded)
{
    region_search s = {.encoded = encoded};
    if (p->named != NULL) return is_named(p, encoded);
    return rq__proc_each_region(p, match_region, &s) == RQ_OK && s.found;
}

static rq_err match_other(void *ctx, rq_slice encoded)
{
    region_search *s = ctx;
    s->found |= rq__proc_names_region(s->other, encoded);
    return RQ_OK;
}

static bool share_region(const rq__proc *parked, const rq__proc *p)
{
    if (parked->ops->lock == RQ_LOCK_REGIONS && p->ops->lock == RQ_LOCK_REGIONS)
        return rq__claims_share_region(parked, p);
    region_search s = {.other = parked};
    return rq__proc_each_region(p, match_other, &s) == RQ_OK && s.found;
}

bool rq__proc_parked_excludes(const rq__proc *parked, const rq__proc *p)
{
    if (!rq_slice_eq(parked->ns, p->ns)) return false;
    if (parked->ops->lock == RQ_LOCK_NAMESPACE) return p->ops->lock == RQ_LOCK_NAMESPACE;
    if (p->ops->lock == RQ_LOCK_NAMESPACE) return p->ops->kind == RQ_DDL_DELETE_NAMESPACE;
    if (!rq_slice_eq(parked->qualifier, p->qualifier)) return false;
    switch (p->ops->kind) {
    case RQ_DDL_FLUSH_TABLE:
        return false;
    case RQ_DDL_REOPEN_REGION:
    case RQ_DDL_ASSIGN_REGION:
    case RQ_DDL_UNASSIGN_REGION:
    case RQ_DDL_MOVE_REGION:
        return share_region(parked, p);
    case RQ_DDL_SPLIT_REGION:
    case RQ_DDL_MERGE_REGIONS:
    case RQ_DDL_TRUNCATE_REGION:
        return parked->ops->lock != RQ_LOCK_REGIONS || share_region(parked, p);
    default:
        return true;
    }
}

/* While the procedure is parked, nothing else may open the regions it has half changed: regions
 * that have lost some of their families, or have a family that the table no longer has. */
bool rq__proc_holds_closed(const rq__proc *p)
{
    return p->ops->payload->holds_closed != NULL && p->ops->payload->holds_closed(p);
}

void rq__proc_refuse(rq__proc *p, const rq__proc *parked)
{
    unsigned step = parked->step;
    p->refused = true;
    p->why = (rq_error){0};
    p->rc = rq_fail(
        &p->why, RQ_E_DO_NOT_RETRY,
        "procedure %llu (%s of %.*s) is parked in step %s and must be aborted first: %s",
        (unsigned long long)parked->id, parked->java_class, (int)parked->table.len,
        (const char *)parked->table.ptr, rq__proc_step_name(parked, step), parked->why.message);
}
