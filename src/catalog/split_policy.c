/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of split_policy.h, and automatic splits. */
#include "catalog/split_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define OVER_REGIONS 100 /* with more regions, the limit is the maximum anyway */

typedef enum policy { STEPPING, INCREASING, CONSTANT, DISABLED, KEY_PREFIX, DELIMITED } policy;

static const struct {
    const char *name;
    policy policy;
} policies[] = {
    {"SteppingSplitPolicy", STEPPING},
    {"IncreasingToUpperBoundRegionSplitPolicy", INCREASING},
    {"ConstantSizeRegionSplitPolicy", CONSTANT},
    {"DisabledRegionSplitPolicy", DISABLED},
    {"KeyPrefixRegionSplitPolicy", KEY_PREFIX},
    {"DelimitedKeyPrefixRegionSplitPolicy", DELIMITED},
    {"BusyRegionSplitPolicy", INCREASING}, /* by size alone */
};

/* Compares the class name without its package. A table has an unknown class only if it was created while
 * table checks were off. */
static policy policy_of_name(rq_slice name)
{
    size_t at = name.len;
    while (at > 0 && name.ptr[at - 1] != '.')
        at--;
    rq_slice simple = rq_slice_of(name.ptr + at, name.len - at);
    for (size_t i = 0; i < RQ_ARRAY_LEN(policies); i++)
        if (rq_slice_eq(simple, rq_slice_cstr(policies[i].name))) return policies[i].policy;
    return STEPPING;
}

static policy policy_of(const rq_catalog *c, const rq_table_schema *schema)
{
    const rq_attribute *a = rq_attributes_find(&schema->attributes, "SPLIT_POLICY");
    if (a != NULL && a->value.len > 0) return policy_of_name(a->value);
    const char *text = c->config == NULL ? "" : rq_config_text(c->config, RQ_SET_SPLIT_POLICY);
    return text[0] == '\0' ? STEPPING : policy_of_name(rq_slice_cstr(text));
}

bool rq__schema_allows(const rq_table_schema *schema, const char *attribute)
{
    const rq_attribute *a = rq_attributes_find(&schema->attributes, attribute);
    return a == NULL || a->value.len != 5 ||
           strncasecmp((const char *)a->value.ptr, "false", 5) != 0;
}

/* --- where ------------------------------------------------------------------------------------ */

static size_t number_of(const rq_table_schema *schema, const char *key, const char *old_key)
{
    const rq_attribute *a = rq_attributes_find(&schema->attributes, key);
    if (a == NULL && old_key != NULL) a = rq_attributes_find(&schema->attributes, old_key);
    size_t n = 0;
    if (a == NULL || a->value.len == 0 || a->value.len > 6) return 0;
    for (size_t i = 0; i < a->value.len; i++) {
        if (a->value.ptr[i] < '0' || a->value.ptr[i] > '9') return 0;
        n = n * 10 + (size_t)(a->value.ptr[i] - '0');
    }
    return n;
}

static rq_slice cut(rq_slice row, size_t len)
{
    return len > 0 && len < row.len ? rq_slice_of(row.ptr, len) : row;
}

/* The part before the delimiter; the whole row if it has none. */
static rq_slice cut_before(const rq_table_schema *schema, const char *key, rq_slice row)
{
    const rq_attribute *a = rq_attributes_find(&schema->attributes, key);
    if (a == NULL || a->value.len == 0) return row;
    for (size_t i = 0; i + a->value.len <= row.len; i++)
        if (memcmp(row.ptr + i, a->value.ptr, a->value.len) == 0) return rq_slice_of(row.ptr, i);
    return row;
}

/* HBASE: KeyPrefixRegionSplitRestriction, DelimitedKeyPrefixRegionSplitRestriction. */
rq_slice rq__split_restrict(const rq_table_schema *schema, rq_slice row)
{
    static const char prefix[] = "hbase.regionserver.region.split_restriction.";
    char key[sizeof prefix + 16];
    snprintf(key, sizeof key, "%stype", prefix);
    const rq_attribute *type = rq_attributes_find(&schema->attributes, key);
    if (type == NULL) return row;
    if (rq_slice_eq(type->value, RQ_SLICE_LIT("KeyPrefix"))) {
        snprintf(key, sizeof key, "%sprefix_length", prefix);
        return cut(row, number_of(schema, key, NULL));
    }
    if (rq_slice_eq(type->value, RQ_SLICE_LIT("DelimitedKeyPrefix"))) {
        snprintf(key, sizeof key, "%sdelimiter", prefix);
        return cut_before(schema, key, row);
    }
    return row;
}

static rq_slice by_policy(const rq_catalog *c, const rq_table_schema *schema, rq_slice row)
{
    switch (policy_of(c, schema)) {
    case KEY_PREFIX:
        return cut(row, number_of(schema, "KeyPrefixRegionSplitPolicy.prefix_length",
                                  "prefix_split_key_policy.prefix_length"));
    case DELIMITED:
        return cut_before(schema, "DelimitedKeyPrefixRegionSplitPolicy.delimiter", row);
    default:
        return row;
    }
}

static bool is_system(const rq_region_info *info)
{
    return rq_slice_eq(info->ns, RQ_SLICE_LIT("master")) ||
           rq_slice_eq(info->table, RQ_SLICE_LIT("hbase:meta")) ||
           rq_slice_eq(info->table, RQ_SLICE_LIT("hbase:namespace"));
}

bool rq__region_is_splittable(rq_catalog *c, rq_region *r)
{
    rq_table_schema *schema = rq_region_schema(r);
    bool may = !is_system(rq_region_get_info(r)) && !rq_region_is_closing(r) &&
               policy_of(c, schema) != DISABLED && !rq_region_has_references(r);
    rq_table_schema_unref(schema);
    return may;
}

bool rq_catalog_region_is_splittable(rq_catalog *c, rq_region *r)
{
    return rq__region_is_splittable(c, r);
}

rq_err rq__split_point(rq_catalog *c, rq_region *r, bool flush, rq_arena *arena, rq_slice *ret,
                       rq_error *why)
{
    rq_slice row = {NULL, 0};
    if (!is_system(rq_region_get_info(r))) {
        RQ_TRY(rq_region_split_point(r, arena, &row, why));
        if (row.len == 0 && flush && !rq_region_is_closing(r)) {
            RQ_TRY(rq_region_flush(r, row, NULL, why));
            RQ_TRY(rq_region_split_point(r, arena, &row, why));
        }
    }
    rq_table_schema *schema = rq_region_schema(r);
    if (row.len > 0) row = rq__split_restrict(schema, by_policy(c, schema, row));
    rq_table_schema_unref(schema);
    /* HBASE: HRegion.checkSplit rejects a row outside the region. */
    if (row.len > 0 && !rq_region_info_contains(rq_region_get_info(r), row))
        row = (rq_slice){NULL, 0};
    *ret = row;
    return RQ_OK;
}

rq_err rq_catalog_split_point(rq_catalog *c, rq_region *r, rq_arena *arena, rq_slice *ret,
                              rq_error *why)
{
    return rq__split_point(c, r, true, arena, ret, why);
}

/* --- when ------------------------------------------------------------------------------------- */

/* Derived from the region's name, so that it never changes for the region. */
static uint64_t with_jitter(const rq_catalog *c, const rq_region_info *info, uint64_t bytes)
{
    double jitter = rq_config_real(c->config, RQ_SET_MAX_FILESIZE_JITTER);
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = info->encoded; *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    double part = (double)(h >> 11) / (double)((uint64_t)1 << 53) - 0.5;
    double sum = (double)bytes * (1 + part * jitter);
    return sum <= 0 ? 1 : sum >= 9e18 ? UINT64_MAX / 2 : (uint64_t)sum;
}

static uint64_t size_to_check(const rq_catalog *c, const rq_table_schema *schema,
                              const rq_region_info *info, uint64_t regions)
{
    uint64_t max = schema->max_file_bytes != 0
                       ? schema->max_file_bytes
                       : (uint64_t)rq_config_int(c->config, RQ_SET_MAX_FILESIZE);
    uint64_t flush = schema->flush_bytes != 0
                         ? schema->flush_bytes
                         : (uint64_t)rq_config_int(c->config, RQ_SET_FLUSH_SIZE);
    int64_t set = rq_config_int(c->config, RQ_SET_SPLIT_INITIAL);
    uint64_t first = set > 0 ? (uint64_t)set : 2 * flush;
    max = with_jitter(c, info, max);
    switch (policy_of(c, schema)) {
    case DISABLED:
        return UINT64_MAX;
    case CONSTANT:
        return max;
    case STEPPING:
        return regions == 1 ? first : max;
    default:
        if (regions == 0 || regions > OVER_REGIONS) return max;
        return (double)first * (double)(regions * regions * regions) < (double)max
                   ? first * regions * regions * regions
                   : max;
    }
}

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
static void tell_unsplittable(rq_catalog *c, const rq_region_info *info, const rq_error *why)
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
                               c->env->executor->now_ms(c->env->executor), 0, &upper));
    return rq__region_name_check(&upper, why);
}

void rq_catalog_region_grown(rq_catalog *c, rq_region *r)
{
    const rq_region_info *info = rq_region_get_info(r);
    if (c->config == NULL || is_system(info) || info->replica_id != 0 ||
        !rq_catalog_switch_get(c, RQ_SWITCH_SPLIT))
        return;
    rq_table_schema *schema = rq_region_schema(r);
    uint64_t regions = regions_of_table(c, r, info), bytes;
    if (rq_config_int(c->config, RQ_SET_SPLIT_OVERALL) != 0) {
        rq_region_load load;
        rq_region_get_load(r, &load);
        bytes = load.storefile_bytes;
    } else {
        bytes = rq_region_largest_store_bytes(r);
    }
    bool wanted = regions > 0 && rq__schema_allows(schema, "SPLIT_ENABLED") &&
                  bytes > size_to_check(c, schema, info, regions) &&
                  rq__region_is_splittable(c, r) && !rq__procedures_splitting(c, info);
    rq_table_schema_unref(schema);
    if (!wanted) return;
    rq_arena a;
    rq_arena_init(&a);
    rq_error why = {0};
    rq_slice row;
    rq_err rc = rq__split_point(c, r, false, &a, &row, &why);
    if (rc == RQ_OK && row.len > 0) rc = check_name_above(c, info, row, &a, &why);
    if (rc == RQ_E_ILLEGAL_ARGUMENT)
        tell_unsplittable(c, info, &why);
    else if (rc != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "region %s is not split: %s", info->encoded,
                    why.message);
    else if (row.len > 0 && !rq_slice_eq(row, info->start_key))
        split_at(c, info, row);
    rq_arena_clear(&a);
}
