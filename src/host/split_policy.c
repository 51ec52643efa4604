/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of split_policy.h. */
#include "host/split_policy.h"
#include "base/config.h"

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

/* Compares the class name without its package. A table can have an unknown class only if it was created while
 * table checks (hbase.table.sanity.checks) were off. */
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

static policy policy_of(const rq_host *h, const rq_table_schema *schema)
{
    const rq_attribute *a = rq_attributes_find(&schema->attributes, "SPLIT_POLICY");
    if (a != NULL && a->value.len > 0) return policy_of_name(a->value);
    const char *text =
        rq__host_config(h) == NULL ? "" : rq_config_text(rq__host_config(h), RQ_SET_SPLIT_POLICY);
    return text[0] == '\0' ? STEPPING : policy_of_name(rq_slice_cstr(text));
}

bool rq_schema_allows(const rq_table_schema *schema, const char *attribute)
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
rq_slice rq_split_restrict(const rq_table_schema *schema, rq_slice row)
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

static rq_slice by_policy(const rq_host *h, const rq_table_schema *schema, rq_slice row)
{
    switch (policy_of(h, schema)) {
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

bool rq_host_splittable(const rq_host *h, rq_region *r)
{
    rq_table_schema *schema = rq_region_schema(r);
    bool may = !is_system(rq_region_get_info(r)) && !rq_region_is_closing(r) &&
               policy_of(h, schema) != DISABLED && !rq_region_has_references(r);
    rq_table_schema_unref(schema);
    return may;
}

rq_err rq_host_split_point(const rq_host *h, rq_region *r, bool flush, rq_arena *arena,
                           rq_slice *ret, rq_error *why)
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
    if (row.len > 0) row = rq_split_restrict(schema, by_policy(h, schema, row));
    rq_table_schema_unref(schema);
    /* HBASE: HRegion.checkSplit rejects a row outside the region. */
    if (row.len > 0 && !rq_region_info_contains(rq_region_get_info(r), row))
        row = (rq_slice){NULL, 0};
    *ret = row;
    return RQ_OK;
}

/* --- when ------------------------------------------------------------------------------------- */

/* Derived from the region's name, so that it never changes for the region. */
static uint64_t with_jitter(const rq_host *h, const rq_region_info *info, uint64_t bytes)
{
    double jitter = rq_config_real(rq__host_config(h), RQ_SET_MAX_FILESIZE_JITTER);
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *p = info->encoded; *p != '\0'; p++)
        hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
    double part = (double)(hash >> 11) / (double)((uint64_t)1 << 53) - 0.5;
    double sum = (double)bytes * (1 + part * jitter);
    return sum <= 0 ? 1 : sum >= 9e18 ? UINT64_MAX / 2 : (uint64_t)sum;
}

static uint64_t size_to_check(const rq_host *h, const rq_table_schema *schema,
                              const rq_region_info *info, uint64_t regions)
{
    uint64_t max = schema->max_file_bytes != 0
                       ? schema->max_file_bytes
                       : (uint64_t)rq_config_int(rq__host_config(h), RQ_SET_MAX_FILESIZE);
    uint64_t flush = schema->flush_bytes != 0
                         ? schema->flush_bytes
                         : (uint64_t)rq_config_int(rq__host_config(h), RQ_SET_FLUSH_SIZE);
    int64_t set = rq_config_int(rq__host_config(h), RQ_SET_SPLIT_INITIAL);
    uint64_t first = set > 0 ? (uint64_t)set : 2 * flush;
    max = with_jitter(h, info, max);
    switch (policy_of(h, schema)) {
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

static uint64_t bytes_that_count(const rq_host *h, rq_region *r)
{
    rq_region_load load;
    if (rq_config_int(rq__host_config(h), RQ_SET_SPLIT_OVERALL) == 0)
        return rq_region_largest_store_bytes(r);
    rq_region_get_load(r, &load);
    return load.storefile_bytes;
}

bool rq_host_split_is_due(const rq_host *h, rq_region *r, uint64_t regions)
{
    const rq_region_info *info = rq_region_get_info(r);
    if (rq__host_config(h) == NULL || is_system(info) || info->replica_id != 0) return false;
    rq_table_schema *schema = rq_region_schema(r);
    bool due = rq_schema_allows(schema, "SPLIT_ENABLED") &&
               bytes_that_count(h, r) > size_to_check(h, schema, info, regions) &&
               rq_host_splittable(h, r);
    rq_table_schema_unref(schema);
    return due;
}
