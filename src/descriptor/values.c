/* SPDX-License-Identifier: Apache-2.0 */
/* The parsed values of attributes, as Java and HBase parse them: numbers with units, names of
 * enumerations, booleans. */
#include "descriptor/descriptor_priv.h"

#include <limits.h>

#define MOB_THRESHOLD_DEFAULT (100 * 1024) /* HBASE: DEFAULT_MOB_THRESHOLD */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Java's Long.parseLong. */
static bool parse_long(rq_slice s, int64_t *ret)
{
    size_t i = 0;
    bool negative = false;
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+')) {
        negative = s.ptr[0] == '-';
        i = 1;
    }
    if (i == s.len) return false;
    int64_t v = 0;
    for (; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) return false;
        int64_t digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, negative ? -digit : digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

typedef struct unit {
    const char *name; /* upper case, singular; a trailing S is accepted */
    int64_t factor;
} unit;

static const unit time_units[] = {{"DAY", 86400}, {"HOUR", 3600}, {"MINUTE", 60}, {"SECOND", 1}};
static const unit size_units[] = {
    {"TB", (int64_t)1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}};

static bool equals_ignoring_case(rq_slice s, const char *text)
{
    if (s.len != strlen(text)) return false;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (c >= 'a' && c <= 'z') c = (uint8_t)(c - 'a' + 'A');
        if (c != (uint8_t)text[i]) return false;
    }
    return true;
}

static const unit *unit_named(rq_slice word, const unit *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (equals_ignoring_case(word, units[i].name)) return &units[i];
        rq_slice stem = rq_slice_of(word.ptr, word.len == 0 ? 0 : word.len - 1);
        if (word.len > 1 && (word.ptr[word.len - 1] | 0x20) == 's' &&
            equals_ignoring_case(stem, units[i].name))
            return &units[i];
    }
    return NULL;
}

/* "1 DAY 2 HOURS", "64 KB": numbers, each followed by a unit, separated by blanks. The text ends at
 * a parenthesis: HBase's shell prints the same value there once more ("86400 SECONDS (1 DAY)").
 * HBASE: PrettyPrinter.valueOf. */
static bool parse_with_units(rq_slice s, const unit *units, size_t unit_count, int64_t *ret)
{
    int64_t total = 0;
    size_t i = 0;
    bool any = false;
    while (i < s.len) {
        if (s.ptr[i] == ' ') {
            i++;
            continue;
        }
        if (s.ptr[i] == '(' && any) break;
        size_t start = i;
        while (i < s.len && is_digit(s.ptr[i]))
            i++;
        int64_t n;
        if (!parse_long(rq_slice_of(s.ptr + start, i - start), &n)) return false;
        while (i < s.len && s.ptr[i] == ' ')
            i++;
        start = i;
        while (i < s.len && s.ptr[i] != ' ' && s.ptr[i] != '(' && !is_digit(s.ptr[i]))
            i++;
        const unit *u = unit_named(rq_slice_of(s.ptr + start, i - start), units, unit_count);
        if (u == NULL || __builtin_mul_overflow(n, u->factor, &n) ||
            __builtin_add_overflow(total, n, &total))
            return false;
        any = true;
    }
    *ret = total;
    return any;
}

/* HBase's own words for a bad number. */
static rq_err bad_number(rq_slice value, rq_error *why)
{
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "For input string: \"%.*s\"",
                   (int)(value.len > 200 ? 200 : value.len), (const char *)value.ptr);
}

typedef enum form { PLAIN, TIME, SIZE } form;

/* The attribute as a number in [min, max]; text forms are replaced by the number in the map. */
static rq_err number_attribute(rq_arena *arena, rq_attributes *a, const char *key, form f,
                               int64_t min, int64_t max, int64_t fallback, int64_t *ret,
                               rq_error *why)
{
    rq_attribute *item = (rq_attribute *)(uintptr_t)rq_attributes_find(a, key);
    if (item == NULL) {
        *ret = fallback;
        return RQ_OK;
    }
    int64_t v;
    if (!parse_long(item->value, &v)) {
        bool ok = false;
        if (f == TIME) {
            ok = equals_ignoring_case(item->value, "FOREVER");
            v = RQ_TTL_FOREVER;
            if (!ok) ok = parse_with_units(item->value, time_units, RQ_ARRAY_LEN(time_units), &v);
        } else if (f == SIZE) {
            ok = parse_with_units(item->value, size_units, RQ_ARRAY_LEN(size_units), &v);
        }
        if (!ok) return bad_number(item->value, why);
        char *text = rq_arena_printf(arena, "%lld", (long long)v);
        if (text == NULL) return RQ_E_NO_MEMORY;
        item->value = rq_slice_cstr(text);
    }
    if (v < min || v > max) return bad_number(item->value, why);
    *ret = v;
    return RQ_OK;
}

/* Java's Boolean.parseBoolean: anything but "true" is false. */
static bool bool_attribute(const rq_attributes *a, const char *key, bool fallback)
{
    const rq_attribute *item = rq_attributes_find(a, key);
    return item == NULL ? fallback : equals_ignoring_case(item->value, "TRUE");
}

/* Index of the name in the list; HBase upper-cases enum names of attributes. */
static rq_err enum_attribute(const rq_attributes *a, const char *key, const char *java_enum,
                             const char *const *names, size_t name_count, int fallback, int *ret,
                             rq_error *why)
{
    const rq_attribute *item = rq_attributes_find(a, key);
    *ret = fallback;
    if (item == NULL) return RQ_OK;
    for (size_t i = 0; i < name_count; i++) {
        if (!equals_ignoring_case(item->value, names[i])) continue;
        *ret = (int)i;
        return RQ_OK;
    }
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "No enum constant org.apache.hadoop.hbase.%s.%.*s",
                   java_enum, (int)(item->value.len > 200 ? 200 : item->value.len),
                   (const char *)item->value.ptr);
}

static const char *const keep_deleted_names[] = {"FALSE", "TRUE", "TTL"};
static const char *const bloom_names[] = {"NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"};
static const char *const durability_names[] = {"USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL",
                                               "FSYNC_WAL"};

static rq_err encoding_attribute(rq_family_schema *f, rq_error *why)
{
    static const char *const names[] = {"NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"};
    static const rq_block_encoding values[] = {RQ_ENCODING_NONE, RQ_ENCODING_PREFIX,
                                               RQ_ENCODING_DIFF, RQ_ENCODING_FAST_DIFF,
                                               RQ_ENCODING_ROW_INDEX_V1};
    int i;
    RQ_TRY(enum_attribute(&f->attributes, "DATA_BLOCK_ENCODING", "io.encoding.DataBlockEncoding",
                          names, RQ_ARRAY_LEN(names), 0, &i, why));
    f->encoding = values[i];
    return RQ_OK;
}

static uint32_t bloom_prefix_len(const rq_family_schema *f)
{
    static const char key[] = "RowPrefixBloomFilter.prefix_length";
    const rq_attribute *a = rq_attributes_find(&f->configuration, key);
    if (a == NULL) a = rq_attributes_find(&f->attributes, key);
    int64_t n;
    return a != NULL && parse_long(a->value, &n) && n > 0 && n <= RQ_ROW_LEN_MAX ? (uint32_t)n : 0;
}

rq_err rq__family_values(rq_arena *arena, rq_family_schema *f, rq_error *why)
{
    int64_t n;
    int e;
    RQ_TRY(number_attribute(arena, &f->attributes, "VERSIONS", PLAIN, INT32_MIN, INT32_MAX, 1, &n,
                            why));
    f->max_versions = (int32_t)n;
    RQ_TRY(number_attribute(arena, &f->attributes, "MIN_VERSIONS", PLAIN, INT32_MIN, INT32_MAX, 0,
                            &n, why));
    f->min_versions = (int32_t)n;
    RQ_TRY(number_attribute(arena, &f->attributes, "TTL", TIME, INT32_MIN, INT32_MAX,
                            RQ_TTL_FOREVER, &n, why));
    f->ttl_s = (int32_t)n;
    RQ_TRY(number_attribute(arena, &f->attributes, "BLOCKSIZE", SIZE, INT32_MIN, INT32_MAX, 65536,
                            &n, why));
    f->block_bytes = n < 1 ? 1 : (uint32_t)n; /* a block has at least one cell */
    RQ_TRY(number_attribute(arena, &f->attributes, "REPLICATION_SCOPE", PLAIN, INT32_MIN, INT32_MAX,
                            0, &n, why));
    f->scope = (int32_t)n;
    RQ_TRY(enum_attribute(&f->attributes, "BLOOMFILTER", "regionserver.BloomType", bloom_names,
                          RQ_ARRAY_LEN(bloom_names), RQ_BLOOM_ROW, &e, why));
    f->bloom = (rq_bloom_type)e;
    f->bloom_prefix_len = bloom_prefix_len(f);
    RQ_TRY(enum_attribute(&f->attributes, "KEEP_DELETED_CELLS", "KeepDeletedCells",
                          keep_deleted_names, RQ_ARRAY_LEN(keep_deleted_names),
                          RQ_KEEP_DELETED_FALSE, &e, why));
    f->keep_deleted = (rq_keep_deleted)e;
    RQ_TRY(encoding_attribute(f, why));
    RQ_TRY(number_attribute(arena, &f->attributes, "MOB_THRESHOLD", PLAIN, INT64_MIN, INT64_MAX,
                            MOB_THRESHOLD_DEFAULT, &n, why));
    f->mob_threshold = n < 0 ? 0 : (uint64_t)n; /* no value is shorter than that */
    f->is_mob = bool_attribute(&f->attributes, "IS_MOB", false);
    const rq_attribute *c = rq_attributes_find(&f->attributes, "COMPRESSION");
    f->compression = RQ_COMPRESSION_NONE;
    if (c != NULL && !rq_compression_parse(c->value, &f->compression))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "No enum constant org.apache.hadoop.hbase.io.compress.Compression.Algorithm"
                       ".%.*s",
                       (int)(c->value.len > 200 ? 200 : c->value.len), (const char *)c->value.ptr);
    f->block_cache = bool_attribute(&f->attributes, "BLOCKCACHE", true);
    f->in_memory = bool_attribute(&f->attributes, "IN_MEMORY", false);
    f->compress_tags = bool_attribute(&f->attributes, "COMPRESS_TAGS", true);
    f->cache_on_write = bool_attribute(&f->attributes, "CACHE_DATA_ON_WRITE", false);
    f->cache_index_on_write = bool_attribute(&f->attributes, "CACHE_INDEX_ON_WRITE", false);
    f->cache_blooms_on_write = bool_attribute(&f->attributes, "CACHE_BLOOMS_ON_WRITE", false);
    f->evict_on_close = bool_attribute(&f->attributes, "EVICT_BLOCKS_ON_CLOSE", false);
    f->prefetch_on_open = bool_attribute(&f->attributes, "PREFETCH_BLOCKS_ON_OPEN", false);
    f->new_version_behavior = bool_attribute(&f->attributes, "NEW_VERSION_BEHAVIOR", false);
    return RQ_OK;
}

rq_err rq__table_values(rq_arena *arena, rq_table_schema *t, rq_error *why)
{
    int64_t n;
    RQ_TRY(number_attribute(arena, &t->attributes, "MEMSTORE_FLUSHSIZE", SIZE, INT64_MIN, INT64_MAX,
                            0, &n, why));
    t->flush_bytes = n > 0 ? (uint64_t)n : 0;
    RQ_TRY(number_attribute(arena, &t->attributes, "MAX_FILESIZE", SIZE, INT64_MIN, INT64_MAX, 0,
                            &n, why));
    t->max_file_bytes = n > 0 ? (uint64_t)n : 0;
    RQ_TRY(number_attribute(arena, &t->attributes, "REGION_REPLICATION", PLAIN, INT32_MIN,
                            INT32_MAX, 1, &n, why));
    t->region_replication = (int)n;
    RQ_TRY(enum_attribute(&t->attributes, "DURABILITY", "client.Durability", durability_names,
                          RQ_ARRAY_LEN(durability_names), 0, &t->durability, why));
    t->read_only = bool_attribute(&t->attributes, "READONLY", false);
    t->compaction_enabled = bool_attribute(&t->attributes, "COMPACTION_ENABLED", true);
    t->is_meta = rq_slice_eq(t->ns, RQ_SLICE_LIT("hbase")) &&
                 rq_slice_eq(t->qualifier, RQ_SLICE_LIT("meta"));
    t->is_system = t->is_meta || (rq_slice_eq(t->ns, RQ_SLICE_LIT("hbase")) &&
                                  rq_slice_eq(t->qualifier, RQ_SLICE_LIT("namespace")));
    return RQ_OK;
}
