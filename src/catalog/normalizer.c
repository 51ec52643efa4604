/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The normalizer. In each table with NORMALIZATION_ENABLED it splits regions larger than twice the
 * target size, and merges neighbours whose total is at most the target size. The target size is the
 * table's NORMALIZER_TARGET_REGION_SIZE_MB; without it, the size of the table divided by
 * NORMALIZER_TARGET_REGION_COUNT, or by its number of regions. Splits and merges are procedures, for
 * whose end the normalizer does not wait. It runs every hbase.normalizer.period, and when a client asks.
 * HBASE: SimpleRegionNormalizer, RegionNormalizerManager.
 */
#include "catalog/ddl_priv.h"

#include <stdlib.h>
#include <strings.h>

/* Procedures of one plan, in its own memory until they are accepted. */
typedef struct plan {
    struct plan *next;
    rq_ddl ddl;
    rq_arena arena;
} plan;

typedef struct planning {
    rq_catalog *catalog;
    const rq_catalog_table *table;
    double target_mb;
    int64_t now_ms;
    plan *plans;
    rq_err rc;
} planning;

/* --- attributes of the table ------------------------------------------------------------------ */

static bool find_value(const rq_catalog_table *t, const char *key, char ret[32])
{
    const rq_attribute *a = rq_attributes_find(&t->schema->attributes, key);
    if (a == NULL || a->value.len == 0 || a->value.len >= 32) return false;
    memcpy(ret, a->value.ptr, a->value.len);
    ret[a->value.len] = '\0';
    return true;
}

static int64_t number_of(const rq_catalog_table *t, const char *key, int64_t fallback)
{
    char text[32], *end;
    if (!find_value(t, key, text)) return fallback;
    long long n = strtoll(text, &end, 10);
    return *end == '\0' ? n : fallback;
}

static bool flag_of(const rq_catalog_table *t, const char *key, bool fallback)
{
    char text[32];
    return find_value(t, key, text) ? strcasecmp(text, "true") == 0 : fallback;
}

static int64_t setting(const planning *p, rq_setting s)
{
    return rq_config_int(p->catalog->config, s);
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* As a server reports them: a region with data has at least one MB. */
static int64_t size_mb(const rq_catalog *c, const rq_catalog_region *r)
{
    rq_region_load load = {0};
    if (r->server == NULL || !c->calls.load(c->calls.ctx, r->server, r->info, &load)) return 0;
    return load.storefile_bytes > 0 && load.storefile_bytes < 1 << 20
               ? 1
               : (int64_t)(load.storefile_bytes >> 20);
}

/* Whether all servers have reported the sizes of the table's regions: a server that has just joined may
 * not have. Otherwise nothing is planned for the table, because a region of unknown size would be taken
 * for an empty one. HBASE: SimpleRegionNormalizer.getRegionSizeMB. */
static bool sizes_are_known(const rq_catalog *c, const rq_catalog_table *t)
{
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        rq_region_load load;
        if (r->server != NULL && !c->calls.load(c->calls.ctx, r->server, r->info, &load))
            return false;
    }
    return true;
}

static double target_of(const rq_catalog *c, const rq_catalog_table *t)
{
    int64_t size = number_of(t, "NORMALIZER_TARGET_REGION_SIZE_MB",
                             number_of(t, "NORMALIZER_TARGET_REGION_SIZE", -1));
    int64_t count = number_of(t, "NORMALIZER_TARGET_REGION_COUNT", -1), total = 0;
    if (size > 0) return (double)size;
    for (size_t i = 0; i < t->region_count; i++)
        total += size_mb(c, rq_catalog_table_region(t, i));
    return (double)total / (double)(count > 0 ? count : (int64_t)t->region_count);
}

/* --- plans ------------------------------------------------------------------------------------ */

static void submitted(rq_ddl *d)
{
    plan *p = RQ_CONTAINER_OF(d, plan, ddl);
    rq_arena_clear(&p->arena);
    free(p);
}

static plan *add_plan(planning *p, rq_ddl_kind kind)
{
    plan *n = calloc(1, sizeof *n);
    if (n == NULL) {
        p->rc = RQ_E_NO_MEMORY;
        return NULL;
    }
    rq_arena_init(&n->arena);
    n->ddl.kind = kind;
    n->ddl.submitted = submitted;
    n->ddl.ns = rq_arena_copy(&n->arena, p->table->schema->ns);
    n->ddl.qualifier = rq_arena_copy(&n->arena, p->table->schema->qualifier);
    n->next = p->plans;
    p->plans = n;
    if (n->ddl.ns.ptr == NULL || n->ddl.qualifier.ptr == NULL) p->rc = RQ_E_NO_MEMORY;
    return n;
}

static rq_slice copy_name(planning *p, plan *n, const rq_catalog_region *r)
{
    rq_slice name = rq_arena_copy(&n->arena, rq_slice_cstr(r->info->encoded));
    if (name.ptr == NULL) p->rc = RQ_E_NO_MEMORY;
    return name;
}

static void plan_splits(planning *p)
{
    for (size_t i = 0; i < p->table->region_count && p->rc == RQ_OK; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(p->table, i);
        if (r->state != RQ_REGION_OPEN || (double)size_mb(p->catalog, r) <= 2 * p->target_mb)
            continue;
        plan *n = add_plan(p, RQ_DDL_SPLIT_REGION);
        if (n != NULL) n->ddl.of.split.region = copy_name(p, n, r);
    }
}

static void add_merge(planning *p, size_t from, size_t to)
{
    plan *n = add_plan(p, RQ_DDL_MERGE_REGIONS);
    rq_slice *names = n == NULL ? NULL : rq_arena_calloc(&n->arena, to - from, sizeof *names);
    if (names == NULL) {
        p->rc = RQ_E_NO_MEMORY;
        return;
    }
    for (size_t i = from; i < to; i++)
        names[i - from] = copy_name(p, n, rq_catalog_table_region(p->table, i));
    n->ddl.of.merge.regions = names;
    n->ddl.of.merge.region_count = to - from;
}

static bool may_merge(const planning *p, const rq_catalog_region *r)
{
    int64_t days = number_of(p->table, "hbase.normalizer.merge.min_region_age.days",
                             setting(p, RQ_SET_NORMALIZER_AGE));
    int64_t least = number_of(p->table, "hbase.normalizer.merge.min_region_size.mb",
                              setting(p, RQ_SET_NORMALIZER_SIZE));
    return r->state == RQ_REGION_OPEN && size_mb(p->catalog, r) >= least &&
           p->now_ms - r->info->region_id > days * 24 * 60 * 60 * 1000;
}

/* Ranges of neighbours: empty ones are always added, others while the sum is within the target. */
static void plan_merges(planning *p)
{
    size_t count = p->table->region_count, most = (size_t)setting(p, RQ_SET_NORMALIZER_MERGE_MAX);
    size_t least = (size_t)number_of(p->table, "hbase.normalizer.merge.min.region.count",
                                     setting(p, RQ_SET_NORMALIZER_COUNT));
    int64_t target = (int64_t)p->target_mb;
    if (count < least) return;
    for (size_t from = 0, to; from + 1 < count && p->rc == RQ_OK; from = to) {
        int64_t sum = 0;
        for (to = from; to < count && may_merge(p, rq_catalog_table_region(p->table, to)); to++) {
            int64_t size = size_mb(p->catalog, rq_catalog_table_region(p->table, to));
            bool fits = to == from || (to == from + 1 && sum == 0) ||
                        (to - from < most && (size == 0 || size + sum <= target));
            if (!fits) break;
            sum += size;
        }
        if (to - from > 1) add_merge(p, from, to);
        if (to == from) to++;
    }
}

static void plan_table(planning *p, const rq_catalog_table *t)
{
    p->table = t;
    if (t->state != RQ_TABLE_ENABLED || t->region_count == 0 ||
        rq_slice_eq(t->schema->ns, RQ_SLICE_LIT("hbase")) ||
        !flag_of(t, "NORMALIZATION_ENABLED", false) || !sizes_are_known(p->catalog, t))
        return;
    p->target_mb = target_of(p->catalog, t);
    if (rq_catalog_switch_get(p->catalog, RQ_SWITCH_SPLIT) &&
        flag_of(t, "hbase.normalizer.split.enabled", setting(p, RQ_SET_NORMALIZER_SPLIT) != 0))
        plan_splits(p);
    if (rq_catalog_switch_get(p->catalog, RQ_SWITCH_MERGE) &&
        flag_of(t, "hbase.normalizer.merge.enabled", setting(p, RQ_SET_NORMALIZER_MERGE) != 0))
        plan_merges(p);
}

static bool is_named(const rq_slice *names, size_t count, rq_slice name)
{
    return count > 0 && bsearch(&name, names, count, sizeof name, rq_slice_order) != NULL;
}

rq_err rq_catalog_normalize(rq_catalog *c, const rq_slice *names, size_t count, bool *ret_ran)
{
    *ret_ran = rq_catalog_switch_get(c, RQ_SWITCH_NORMALIZER) && c->config != NULL;
    if (!*ret_ran) return RQ_OK;
    /* The clock of region ids, which runs ahead of the wall clock after many changes in a short time. */
    planning p = {.catalog = c, .now_ms = rq__catalog_wall_ms(c)};
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    size_t table_count, plans = 0;
    rq_epoch_pin(c->env->epoch, &m);
    rq_catalog_tables(c, &tables, &table_count);
    for (size_t i = 0; i < table_count && p.rc == RQ_OK; i++)
        if (names == NULL || is_named(names, count, tables[i]->schema->name))
            plan_table(&p, tables[i]);
    rq_epoch_unpin(c->env->epoch, &m);
    for (plan *n = p.plans, *next; n != NULL; n = next, plans++) {
        next = n->next;
        if (p.rc == RQ_OK)
            rq_catalog_submit(c, &n->ddl);
        else
            submitted(&n->ddl);
    }
    if (plans > 0 && p.rc == RQ_OK)
        rq_log_info(c->env->log, "catalog", "normalizer: submitted %zu splits and merges", plans);
    return p.rc;
}

/* --- on its own ------------------------------------------------------------------------------- */

static void work(rq_catalog *c)
{
    bool ran;
    if (rq_catalog_normalize(c, NULL, 0, &ran) != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "normalizer: a run failed: out of memory; the next period tries again");
}

void rq__normalizer_start(rq_catalog *c)
{
    if (c->config == NULL) return;
    c->normalizer.interval_ms = rq_config_int(c->config, RQ_SET_NORMALIZER_PERIOD);
    rq__chore_start(&c->normalizer, c, work);
}
