/* SPDX-License-Identifier: Apache-2.0 */
/* Edits work on the protobuf form, so that attributes unknown to this version survive. */
#include "catalog/descriptor_change.h"

#include "catalog/catalog.h"
#include "catalog/coprocessors.h"
#include "catalog/tracker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "hfile/compression.h"
#include "proto/hbase.pb-c.h"
#include "region/tracking.h"

#define BYPASS                                                                                     \
    " Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass "   \
    "sanity checks"

/* --- parsing and editing ---------------------------------------------------------------------- */

static rq_slice slice_of(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

/* The index of the attribute named `key`, or n_attributes if the schema has no such attribute. */
static size_t attribute(const Pb__TableSchema *m, const char *key)
{
    size_t i = 0;
    while (i < m->n_attributes &&
           !rq_slice_eq(slice_of(m->attributes[i]->first), rq_slice_cstr(key)))
        i++;
    return i;
}

static ProtobufCBinaryData bytes_of(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

rq_err rq__descriptor_from(const Pb__TableSchema *m, rq_table_schema **ret, rq_error *why)
{
    size_t len = pb__table_schema__get_packed_size(m);
    uint8_t *pb = malloc(len + 1);
    if (pb == NULL) return RQ_E_NO_MEMORY;
    pb__table_schema__pack(m, pb);
    rq_error parse = {0};
    rq_err rc = rq_table_schema_parse(rq_slice_of(pb, len), ret, &parse);
    free(pb);
    /* HBASE: checkBloomFilterType does not report the cause. */
    if (rc == RQ_E_ILLEGAL_ARGUMENT && strstr(parse.message, ".regionserver.BloomType.") != NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Failed to get bloom filter param" BYPASS);
    if (rc == RQ_E_ILLEGAL_ARGUMENT && strncmp(parse.message, "No enum constant", 16) == 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s" BYPASS, parse.message);
    if (rc != RQ_OK && parse.code != RQ_OK) return rq_fail(why, rc, "%s", parse.message);
    return rc;
}

rq_err rq__descriptor_parse(rq_slice pb, bool create, rq_table_schema **ret, rq_error *why)
{
    Pb__TableSchema *m = pb__table_schema__unpack(NULL, pb.len, pb.ptr);
    if (m == NULL)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor is not a TableSchema message");
    Pb__BytesBytesPair extra[2] = {PB__BYTES_BYTES_PAIR__INIT, PB__BYTES_BYTES_PAIR__INIT};
    Pb__BytesBytesPair **given = m->attributes;
    size_t given_count = m->n_attributes, count = given_count;
    rq_err rc = RQ_E_NO_MEMORY;
    Pb__BytesBytesPair **list = calloc(given_count + 2, sizeof *list);
    if (list == NULL) goto out;
    if (given_count > 0) memcpy(list, given, given_count * sizeof *list);
    bool is_meta = m->table_name != NULL &&
                   rq_slice_eq(slice_of(m->table_name->namespace_), RQ_SLICE_LIT("hbase")) &&
                   rq_slice_eq(slice_of(m->table_name->qualifier), RQ_SLICE_LIT("meta"));
    if (attribute(m, "IS_META") == given_count) {
        extra[0].first = bytes_of("IS_META");
        extra[0].second = bytes_of(is_meta ? "true" : "false");
        list[count++] = &extra[0];
    }
    /* HBASE: StoreFileTrackerFactory.updateWithTrackerConfigs: an empty name is none. CreateTableProcedure
     * alone calls it: an altered table has what its new descriptor has. */
    size_t tracker = attribute(m, RQ_TRACKER_IMPL);
    if (create && (tracker == given_count || given[tracker]->second.len == 0)) {
        extra[1].first = bytes_of(RQ_TRACKER_IMPL);
        extra[1].second = bytes_of("DEFAULT");
        list[tracker == given_count ? count++ : tracker] = &extra[1];
    }
    m->attributes = list;
    m->n_attributes = count;
    rc = rq__descriptor_from(m, ret, why);
    m->attributes = given;
    m->n_attributes = given_count;
    free(list);
out:
    pb__table_schema__free_unpacked(m, NULL);
    return rc;
}

static int shown(rq_slice s)
{
    return s.len > 256 ? 256 : (int)s.len;
}

static rq_err check_change(const rq_table_schema *old, rq__family_change change, rq_slice name,
                           rq_error *why)
{
    bool there = rq_table_schema_family(old, name) != NULL;
    const char *n = (const char *)name.ptr;
    if (change == RQ__FAMILY_ADD && there)
        return rq_fail(why, RQ_E_INVALID_FAMILY_OP,
                       "Column family '%.*s' in table '%.*s' already exists so cannot be added",
                       shown(name), n, shown(old->name), (const char *)old->name.ptr);
    if (change == RQ__FAMILY_MODIFY && !there)
        return rq_fail(why, RQ_E_INVALID_FAMILY_OP,
                       "Family '%.*s' does not exist, so it cannot be modified", shown(name), n);
    if (change == RQ__FAMILY_DELETE && !there)
        return rq_fail(why, RQ_E_INVALID_FAMILY_OP,
                       "Family '%.*s' does not exist, so it cannot be deleted", shown(name), n);
    if (change == RQ__FAMILY_DELETE && old->family_count == 1)
        return rq_fail(why, RQ_E_INVALID_FAMILY_OP,
                       "Family '%.*s' is the only column family in the table, so it cannot be "
                       "deleted",
                       shown(name), n);
    return RQ_OK;
}

/* Replaces, appends or removes the family in the unpacked descriptor's list. */
static rq_err change_list(Pb__TableSchema *m, rq__family_change change, rq_slice name,
                          Pb__ColumnFamilySchema *f, rq_table_schema **ret, rq_error *why)
{
    Pb__ColumnFamilySchema **given = m->column_families;
    size_t given_count = m->n_column_families;
    Pb__ColumnFamilySchema **list = calloc(given_count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < given_count; i++)
        if (!rq_slice_eq(slice_of(given[i]->name), name)) list[n++] = given[i];
    if (change != RQ__FAMILY_DELETE) list[n++] = f;
    m->column_families = list;
    m->n_column_families = n;
    rq_err rc = rq__descriptor_from(m, ret, why);
    m->column_families = given;
    m->n_column_families = given_count;
    free(list);
    return rc;
}

rq_err rq__descriptor_change(const rq_table_schema *old, rq__family_change change, rq_slice family,
                             rq_table_schema **ret, rq_error *why)
{
    Pb__ColumnFamilySchema *f = NULL;
    rq_slice name = family;
    if (change != RQ__FAMILY_DELETE) {
        f = pb__column_family_schema__unpack(NULL, family.len, family.ptr);
        if (f == NULL)
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "malformed column family descriptor");
        name = slice_of(f->name);
    }
    rq_err rc = check_change(old, change, name, why);
    if (rc == RQ_OK) {
        rq_slice pb = rq_table_schema_pb(old);
        Pb__TableSchema *m = pb__table_schema__unpack(NULL, pb.len, pb.ptr);
        rc = m == NULL ? RQ_E_NO_MEMORY : change_list(m, change, name, f, ret, why);
        if (m != NULL) pb__table_schema__free_unpacked(m, NULL);
    }
    if (f != NULL) pb__column_family_schema__free_unpacked(f, NULL);
    return rc;
}

/* --- sanity ----------------------------------------------------------------------------------- */

static bool checks_wanted(const rq_config *config, const rq_table_schema *s)
{
    const rq_attribute *a = rq_attributes_find(&s->attributes, "hbase.table.sanity.checks");
    if (a != NULL)
        return !(a->value.len == 5 && strncasecmp((const char *)a->value.ptr, "false", 5) == 0);
    return config == NULL || rq_config_int(config, RQ_SET_SANITY) != 0;
}

static rq_err too_small(const char *attribute, const char *property, uint64_t value,
                        const char *consequence, rq_error *why)
{
    return rq_fail(
        why, RQ_E_DO_NOT_RETRY,
        "%s for table descriptor or \"%s\" (%llu) is too small, which might cause%s" BYPASS,
        attribute, property, (unsigned long long)value, consequence);
}

static bool attribute_number(const rq_table_schema *s, const char *key, int64_t *ret)
{
    const rq_attribute *a = rq_attributes_find(&s->attributes, key);
    char text[32];
    if (a == NULL || a->value.len == 0 || a->value.len >= sizeof text) return false;
    memcpy(text, a->value.ptr, a->value.len);
    text[a->value.len] = '\0';
    char *end;
    *ret = strtoll(text, &end, 10);
    return *end == '\0';
}

static rq_err check_sizes(const rq_table_schema *s, rq_error *why)
{
    int64_t n;
    if (attribute_number(s, "MAX_FILESIZE", &n) && n < 2 * 1024 * 1024)
        return too_small("MAX_FILESIZE", "hbase.hregion.max.filesize", (uint64_t)n,
                         " over splitting into unmanageable number of regions.", why);
    if (attribute_number(s, "MEMSTORE_FLUSHSIZE", &n) && n < 1024 * 1024)
        return too_small("MEMSTORE_FLUSHSIZE", "hbase.hregion.memstore.flush.size", (uint64_t)n,
                         " very frequent flushing.", why);
    return RQ_OK;
}

/* HBase's own split policies; others are Java classes that cannot be loaded. */
static rq_err check_classes(const rq_table_schema *s, rq_error *why)
{
    static const char *const policies[] = {
        "ConstantSizeRegionSplitPolicy",
        "IncreasingToUpperBoundRegionSplitPolicy",
        "SteppingSplitPolicy",
        "BusyRegionSplitPolicy",
        "DisabledRegionSplitPolicy",
        "KeyPrefixRegionSplitPolicy",
        "DelimitedKeyPrefixRegionSplitPolicy",
    };
    const char *const package = "org.apache.hadoop.hbase.regionserver.";
    const rq_attribute *a = rq_attributes_find(&s->attributes, "SPLIT_POLICY");
    if (a != NULL) {
        bool known = false;
        for (size_t i = 0; i < RQ_ARRAY_LEN(policies); i++) {
            char name[128];
            snprintf(name, sizeof name, "%s%s", package, policies[i]);
            known |= rq_slice_eq(a->value, rq_slice_cstr(name));
        }
        if (!known)
            return rq_fail(
                why, RQ_E_DO_NOT_RETRY,
                "Unable to load configured region split policy '%.*s' for table '%.*s'" BYPASS,
                shown(a->value), (const char *)a->value.ptr, shown(s->name),
                (const char *)s->name.ptr);
    }
    return rq__coprocessors_check(s, why);
}

static rq_err check_compression(const rq_family_schema *f, rq_error *why)
{
    static const char *const keys[] = {"COMPRESSION", "COMPRESSION_COMPACT",
                                       "COMPRESSION_COMPACT_MAJOR", "COMPRESSION_COMPACT_MINOR"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(keys); i++) {
        const rq_attribute *a = rq_attributes_find(&f->attributes, keys[i]);
        rq_compression c;
        if (a == NULL) continue;
        if (!rq_compression_parse(a->value, &c))
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "No enum constant org.apache.hadoop.hbase.io.compress.Compression."
                           "Algorithm.%.*s" BYPASS,
                           shown(a->value), (const char *)a->value.ptr);
        rq_error missing = {0};
        if (rq_compression_check(c, &missing) != RQ_OK)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "java.lang.UnsupportedOperationException: %s" BYPASS, missing.message);
    }
    return RQ_OK;
}

static bool one_of(rq_slice value, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (value.len == strlen(names[i]) &&
            strncasecmp((const char *)value.ptr, names[i], value.len) == 0)
            return true;
    return false;
}

static rq_err check_family(const rq_family_schema *f, rq_error *why)
{
    int n = shown(f->name);
    const char *name = (const char *)f->name.ptr;
    const rq_attribute *a = rq_attributes_find(&f->attributes, "ENCRYPTION");
    if (a != NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Cipher %.*s is unavailable" BYPASS, shown(a->value),
                       (const char *)a->value.ptr);
    if (f->bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH) {
        if (f->bloom_prefix_len == 0)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Failed to get bloom filter param" BYPASS);
    }
    if (f->scope < 0 || f->scope > 1)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Replication scope for column family %.*s is %d which is invalid." BYPASS, n,
                       name, f->scope);
    if (f->ttl_s <= 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "TTL for column family %.*s must be positive." BYPASS, n, name);
    if (f->block_bytes < 1024 || f->block_bytes > 16 * 1024 * 1024)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Block size for column family %.*s  must be between 1K and 16MB." BYPASS, n,
                       name);
    if (f->min_versions < 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Min versions for column family %.*s  must be positive." BYPASS, n, name);
    if (f->min_versions > f->max_versions)
        return rq_fail(
            why, RQ_E_DO_NOT_RETRY,
            "Min versions for column family %.*s must be less than the Max versions." BYPASS, n,
            name);
    a = rq_attributes_find(&f->attributes, "DFS_REPLICATION");
    if (a != NULL && a->value.len > 0 && a->value.ptr[0] == '-')
        return rq_fail(
            why, RQ_E_DO_NOT_RETRY,
            "HFile Replication for column family %.*s  must be greater than zero." BYPASS, n, name);
    static const char *const compacting[] = {"NONE", "BASIC", "EAGER", "ADAPTIVE"};
    a = rq_attributes_find(&f->attributes, "IN_MEMORY_COMPACTION");
    if (a != NULL && !one_of(a->value, compacting, RQ_ARRAY_LEN(compacting)))
        return rq_fail(
            why, RQ_E_DO_NOT_RETRY,
            "No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.%.*s" BYPASS,
            shown(a->value), (const char *)a->value.ptr);
    return RQ_OK;
}

/* Unsupported features are refused even with sanity checks off: a table must not pretend to have
 * them. */
static rq_err check_served(const rq_table_schema *s, rq_error *why)
{
    if (s->region_replication > RQ_REPLICATION_MAX)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "REGION_REPLICATION %d is not supported, only up to %d",
                       s->region_replication, RQ_REPLICATION_MAX);
    for (size_t i = 0; i < s->family_count; i++)
        RQ_TRY(rq__tracker_check_known(s, &s->families[i], why));
    return RQ_OK;
}

rq_err rq__descriptor_check(const rq_config *config, const rq_table_schema *s, rq_error *why)
{
    if (checks_wanted(config, s)) {
        RQ_TRY(check_sizes(s, why));
        RQ_TRY(check_classes(s, why));
        for (size_t i = 0; i < s->family_count; i++)
            RQ_TRY(check_compression(&s->families[i], why));
        if (s->family_count == 0)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "Table should have at least one column family." BYPASS);
        if (s->region_replication < 1)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "Table region replication should be at least one." BYPASS);
        for (size_t i = 0; i < s->family_count; i++)
            RQ_TRY(check_family(&s->families[i], why));
    }
    /* HBASE: prepareCreate, prepareModify: refused even without sanity checks. */
    if (s->family_count == 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Table %.*s should have at least one column family.",
                       shown(s->name), (const char *)s->name.ptr);
    RQ_TRY(check_served(s, why));
    /* HBASE: checkCompactionPolicy ignores the switch. */
    return rq__descriptor_check_compaction(config, s, why);
}
