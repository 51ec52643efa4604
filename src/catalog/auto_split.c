/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic splits: a region of this host that has grown is split by a procedure. */
#include "catalog/catalog_priv.h"
#include "host/split_policy.h"

#include <stdlib.h>

/* The table's open regions; 0: the region is not the one in the view. */
static uint64_t regions_of_table(rq_catalog *c, const rq_region *r, const rq_region_info *info)
{
    uint64_t open = 0;
    bool known = false;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_table *t = rq__view_table(rq__views_now(&c->views), info->ns, info->qualifier);
    for (size_t i = 0; t != NULL && i < t->region_count; i++) {
        const rq_region *one = rq_catalog_table_region(t, i)->region;
        open += one != NULL;
        known |= one == r;
    }
    rq_epoch_unpin(c->env->epoch, &m);
    return known ? open : 0;
}

typedef struct own_split {
    rq_ddl ddl;
    rq_arena arena;
} own_split;

static void own_split_done(rq_ddl *d)
{
    own_split *s = RQ_CONTAINER_OF(d, own_split, ddl);
    rq_arena_clear(&s->arena);
    free(s);
}

static void split_at(rq_catalog *c, const rq_region_info *info, rq_slice row)
{
    own_split *s = calloc(1, sizeof *s);
    if (s == NULL) return; /* the next flush asks again */
    rq_arena_init(&s->arena);
    s->ddl = (rq_ddl){
        .kind = RQ_DDL_SPLIT_REGION,
        .ns = rq_arena_copy(&s->arena, info->ns),
        .qualifier = rq_arena_copy(&s->arena, info->qualifier),
        .of.split.region = rq_arena_copy(&s->arena, rq_slice_cstr(info->encoded)),
        .of.split.row = rq_arena_copy(&s->arena, row),
        .user = RQ_SLICE_LIT("hbase"),
        .submitted = own_split_done,
    };
    if (s->ddl.ns.ptr == NULL || s->ddl.qualifier.ptr == NULL ||
        s->ddl.of.split.region.ptr == NULL || s->ddl.of.split.row.ptr == NULL)
        own_split_done(&s->ddl);
    else
        rq_catalog_submit(c, &s->ddl);
}

/* Logged once while the region is open, because every flush asks again. */
static void log_unsplittable(rq_catalog *c, const rq_region_info *info, const rq_error *why)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(c, rq_slice_cstr(info->encoded));
    bool logged =
        r == NULL ||
        atomic_exchange(&RQ_CONTAINER_OF(r, rq__region_node, pub)->unsplittable_logged, true);
    rq_epoch_unpin(c->env->epoch, &m);
    if (!logged)
        rq_log_warn(c->env->log, "catalog",
                    "region %s is large enough for a split, but cannot be split: %s", info->encoded,
                    why->message);
}

/* The name of the upper half must be a valid row of hbase:meta. */
static rq_err check_name_above(rq_catalog *c, const rq_region_info *info, rq_slice row, rq_arena *a,
                               rq_error *why)
{
    rq_region_info upper;
    RQ_TRY(rq_region_info_make(a, info->ns, info->qualifier, row, info->end_key,
                               rq__catalog_wall_ms(c), 0, &upper));
    return rq__region_name_check(&upper, why);
}

void rq_catalog_region_grown(rq_catalog *c, rq_region *r)
{
    const rq_region_info *info = rq_region_get_info(r);
    if (!rq_catalog_switch_get(c, RQ_SWITCH_SPLIT)) return;
    uint64_t regions = regions_of_table(c, r, info);
    if (regions == 0 || !rq_host_split_is_due(c->host, r, regions) ||
        rq__procedures_splitting(c, info))
        return;
    rq_arena a;
    rq_arena_init(&a);
    rq_error why = {0};
    rq_slice row;
    rq_err rc = rq_host_split_point(c->host, r, false, &a, &row, &why);
    if (rc == RQ_OK && row.len > 0) rc = check_name_above(c, info, row, &a, &why);
    if (rc == RQ_E_ILLEGAL_ARGUMENT)
        log_unsplittable(c, info, &why);
    else if (rc != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "region %s is due for a split, but its split point cannot be found: %s; the "
                    "next flush tries again",
                    info->encoded, why.message);
    else if (row.len > 0 && !rq_slice_eq(row, info->start_key))
        split_at(c, info, row);
    rq_arena_clear(&a);
}
