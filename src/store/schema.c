/* SPDX-License-Identifier: Apache-2.0 */
/* Table descriptors from and to protobuf; contract in schema.h.
 *
 * HBase stores a descriptor as a map of byte strings and parses numbers when it needs them, and a
 * client reads back the strings it wrote. So here too the maps are authoritative, and the parsed
 * fields beside them are filled once. A family starts with HBase's defaults, which the message
 * overrides (HBASE: ColumnFamilyDescriptorBuilder, ProtobufUtil.toColumnFamilyDescriptor). A table
 * has no defaults; its old `configuration` list is merged into the attributes (HBASE:
 * ProtobufUtil.toTableDescriptor).
 *
 * The whole schema, including its protobuf form, is in one arena that is freed with the last
 * reference. */
#include "store/schema.h"

#include "proto/hbase.pb-c.h"
#include "store/pb_arena.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A descriptor larger than this is not one. */
#define MOB_THRESHOLD_DEFAULT (100 * 1024) /* HBASE: DEFAULT_MOB_THRESHOLD */
#define SCHEMA_BYTES_MAX ((size_t)64 * 1024 * 1024)

typedef struct holder {
    rq_table_schema schema; /* first: the public pointer */
    _Atomic unsigned refs;
    rq_arena arena;
    rq_slice pb;
} holder;

static holder *holder_of(const rq_table_schema *s)
{
    return (holder *)(uintptr_t)s;
}

static const struct {
    const char *key;
    const char *value;
} family_defaults[] = {
    {"BLOCKCACHE", "true"},     {"BLOCKSIZE", "65536"},          {"BLOOMFILTER", "ROW"},
    {"COMPRESSION", "NONE"},    {"DATA_BLOCK_ENCODING", "NONE"}, {"INDEX_BLOCK_ENCODING", "NONE"},
    {"IN_MEMORY", "false"},     {"KEEP_DELETED_CELLS", "FALSE"}, {"MIN_VERSIONS", "0"},
    {"REPLICATION_SCOPE", "0"}, {"TTL", "2147483647"},           {"VERSIONS", "1"},
};

/* --- attribute maps --------------------------------------------------------------------------- */

/* Index of the key, or where it would be inserted. */
static size_t find_slot(const rq_attributes *a, rq_slice key, bool *found)
{
    size_t lo = 0;
    size_t hi = a->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = rq_slice_compare(a->items[mid].key, key);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

/* HBASE: setValue. An empty value removes the key. `items` has room for one more. */
static void set_attribute(rq_attributes *a, rq_slice key, rq_slice value)
{
    bool found;
    size_t i = find_slot(a, key, &found);
    if (value.len == 0) {
        if (!found) return;
        a->count--;
        memmove(&a->items[i], &a->items[i + 1], (a->count - i) * sizeof *a->items);
        return;
    }
    if (!found) {
        memmove(&a->items[i + 1], &a->items[i], (a->count - i) * sizeof *a->items);
        a->count++;
    }
    a->items[i] = (rq_attribute){key, value};
}

const rq_attribute *rq_attributes_find(const rq_attributes *a, const char *key)
{
    bool found;
    size_t i = find_slot(a, rq_slice_cstr(key), &found);
    return found ? &a->items[i] : NULL;
}

bool rq_schema_setting(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                       rq_slice *ret)
{
    const rq_attribute *a = NULL;
    if (f != NULL) a = rq_attributes_find(&f->configuration, property);
    if (a == NULL && f != NULL) a = rq_attributes_find(&f->attributes, property);
    if (a == NULL) a = rq_attributes_find(&t->attributes, property);
    if (a == NULL) return false;
    *ret = a->value;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

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

static rq_err parse_family_values(rq_arena *arena, rq_family_schema *f, rq_error *why)
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
    RQ_TRY(
        number_attribute(arena, &f->attributes, "BLOCKSIZE", SIZE, 1, INT32_MAX, 65536, &n, why));
    f->block_bytes = (uint32_t)n;
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

static rq_err parse_table_values(rq_arena *arena, rq_table_schema *t, rq_error *why)
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

/* HBASE: ColumnFamilyDescriptorBuilder.isLegalColumnFamilyName, its texts. */
static rq_err check_family_name(rq_slice name, rq_error *why)
{
    if (name.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name can not be empty");
    if (name.len > RQ_FAMILY_LEN_MAX)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name is longer than %d bytes",
                       RQ_FAMILY_LEN_MAX);
    if (name.ptr[0] == '.')
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "Column Family names cannot start with a period: %.*s", (int)name.len,
                       (const char *)name.ptr);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        if (c < 0x20 || c == 0x7f || c == ':' || c == '\\' || c == '/')
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "Illegal character <%d>. Column Family names cannot contain control "
                           "characters or colons: %.*s",
                           c, (int)name.len, (const char *)name.ptr);
    }
    if (rq_slice_eq(name, RQ_SLICE_LIT("recovered.edits")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name cannot be: recovered.edits");
    return RQ_OK;
}

/* --- from protobuf ---------------------------------------------------------------------------- */

static rq_slice pb_bytes(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

typedef struct given {
    rq_attribute attribute;
    size_t position; /* of several with one key the last counts */
} given;

static int compare_given(const void *a, const void *b)
{
    const given *x = a;
    const given *y = b;
    int c = rq_slice_compare(x->attribute.key, y->attribute.key);
    return c != 0 ? c : (x->position > y->position) - (x->position < y->position);
}

/* HBASE: setValue for each: the last value of a key counts, an empty one removes it. `list` has
 * room in `ret->items` too, and begins with the present items. */
static void set_given(rq_attributes *ret, given *list, size_t count)
{
    qsort(list, count, sizeof *list, compare_given);
    ret->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool last =
            i + 1 == count || !rq_slice_eq(list[i].attribute.key, list[i + 1].attribute.key);
        if (last && list[i].attribute.value.len > 0) ret->items[ret->count++] = list[i].attribute;
    }
}

static void give(given *list, size_t *count, rq_slice key, rq_slice value)
{
    list[*count] = (given){{key, value}, *count};
    ++*count;
}

/* The slices point into the unpacked message, which is in the arena. */
static rq_err take_pairs(rq_arena *arena, rq_attributes *ret, Pb__BytesBytesPair **pairs,
                         size_t pair_count, Pb__NameStringPair **strings, size_t string_count)
{
    size_t room = ret->count + pair_count + string_count + 1;
    size_t count = 0;
    given *list = rq_arena_calloc(arena, room, sizeof *list);
    if (ret->items == NULL) ret->items = rq_arena_calloc(arena, room, sizeof *ret->items);
    if (ret->items == NULL || list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < ret->count; i++)
        give(list, &count, ret->items[i].key, ret->items[i].value);
    for (size_t i = 0; i < pair_count; i++)
        give(list, &count, pb_bytes(pairs[i]->first), pb_bytes(pairs[i]->second));
    for (size_t i = 0; i < string_count; i++)
        give(list, &count, rq_slice_cstr(strings[i]->name), rq_slice_cstr(strings[i]->value));
    set_given(ret, list, count);
    return RQ_OK;
}

static rq_err take_family(rq_arena *arena, const Pb__ColumnFamilySchema *m, rq_family_schema *f,
                          rq_error *why)
{
    f->name = pb_bytes(m->name);
    RQ_TRY(check_family_name(f->name, why));
    f->attributes.items = rq_arena_calloc(
        arena, RQ_ARRAY_LEN(family_defaults) + m->n_attributes + 1, sizeof *f->attributes.items);
    if (f->attributes.items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < RQ_ARRAY_LEN(family_defaults); i++)
        set_attribute(&f->attributes, rq_slice_cstr(family_defaults[i].key),
                      rq_slice_cstr(family_defaults[i].value));
    RQ_TRY(take_pairs(arena, &f->attributes, m->attributes, m->n_attributes, NULL, 0));
    RQ_TRY(take_pairs(arena, &f->configuration, NULL, 0, m->configuration, m->n_configuration));
    return parse_family_values(arena, f, why);
}

static int compare_families(const void *a, const void *b)
{
    const rq_family_schema *x = a;
    const rq_family_schema *y = b;
    return rq_slice_compare(x->name, y->name);
}

static rq_err take_name(rq_arena *arena, const Pb__TableSchema *m, rq_table_schema *t,
                        rq_error *why)
{
    if (m->table_name == NULL)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor without a name");
    t->ns = pb_bytes(m->table_name->namespace_);
    t->qualifier = pb_bytes(m->table_name->qualifier);
    if (t->qualifier.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Table qualifier must not be empty");
    if (t->ns.len == 0) t->ns = RQ_SLICE_LIT("default");
    t->name = t->qualifier;
    if (rq_slice_eq(t->ns, RQ_SLICE_LIT("default"))) return RQ_OK;
    uint8_t *p = rq_arena_alloc(arena, t->ns.len + 1 + t->qualifier.len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    memcpy(p, t->ns.ptr, t->ns.len);
    p[t->ns.len] = ':';
    memcpy(p + t->ns.len + 1, t->qualifier.ptr, t->qualifier.len);
    t->name = rq_slice_of(p, t->ns.len + 1 + t->qualifier.len);
    return RQ_OK;
}

static rq_err take_table(rq_arena *arena, const Pb__TableSchema *m, rq_table_schema *t,
                         rq_error *why)
{
    RQ_TRY(take_name(arena, m, t, why));
    RQ_TRY(take_pairs(arena, &t->attributes, m->attributes, m->n_attributes, m->configuration,
                      m->n_configuration));
    t->families = rq_arena_calloc(arena, m->n_column_families + 1, sizeof *t->families);
    if (t->families == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->n_column_families; i++)
        RQ_TRY(take_family(arena, m->column_families[i], &t->families[i], why));
    t->family_count = m->n_column_families;
    qsort(t->families, t->family_count, sizeof *t->families, compare_families);
    for (size_t i = 1; i < t->family_count; i++)
        if (rq_slice_eq(t->families[i - 1].name, t->families[i].name))
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "Family '%.*s' already exists so cannot be added",
                           (int)t->families[i].name.len, (const char *)t->families[i].name.ptr);
    return parse_table_values(arena, t, why);
}

/* --- to protobuf ------------------------------------------------------------------------------ */

static ProtobufCBinaryData to_pb(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static rq_err pairs_to_pb(rq_arena *arena, const rq_attributes *a, Pb__BytesBytesPair ***ret)
{
    Pb__BytesBytesPair **list = rq_arena_calloc(arena, a->count + 1, sizeof *list);
    Pb__BytesBytesPair *items = rq_arena_calloc(arena, a->count + 1, sizeof *items);
    if (list == NULL || items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        pb__bytes_bytes_pair__init(&items[i]);
        items[i].first = to_pb(a->items[i].key);
        items[i].second = to_pb(a->items[i].value);
        list[i] = &items[i];
    }
    *ret = list;
    return RQ_OK;
}

static rq_err strings_to_pb(rq_arena *arena, const rq_attributes *a, Pb__NameStringPair ***ret)
{
    Pb__NameStringPair **list = rq_arena_calloc(arena, a->count + 1, sizeof *list);
    Pb__NameStringPair *items = rq_arena_calloc(arena, a->count + 1, sizeof *items);
    if (list == NULL || items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        pb__name_string_pair__init(&items[i]);
        items[i].name = rq_arena_cstr(arena, a->items[i].key);
        items[i].value = rq_arena_cstr(arena, a->items[i].value);
        if (items[i].name == NULL || items[i].value == NULL) return RQ_E_NO_MEMORY;
        list[i] = &items[i];
    }
    *ret = list;
    return RQ_OK;
}

static rq_err family_to_pb(rq_arena *arena, const rq_family_schema *f, Pb__ColumnFamilySchema *m)
{
    pb__column_family_schema__init(m);
    m->name = to_pb(f->name);
    m->n_attributes = f->attributes.count;
    m->n_configuration = f->configuration.count;
    RQ_TRY(pairs_to_pb(arena, &f->attributes, &m->attributes));
    return strings_to_pb(arena, &f->configuration, &m->configuration);
}

static rq_err to_protobuf(rq_arena *arena, const rq_table_schema *t, rq_slice *ret)
{
    Pb__TableName name;
    pb__table_name__init(&name);
    name.namespace_ = to_pb(t->ns);
    name.qualifier = to_pb(t->qualifier);
    Pb__TableSchema m;
    pb__table_schema__init(&m);
    m.table_name = &name;
    m.n_attributes = t->attributes.count;
    RQ_TRY(pairs_to_pb(arena, &t->attributes, &m.attributes));
    Pb__ColumnFamilySchema *families =
        rq_arena_calloc(arena, t->family_count + 1, sizeof *families);
    m.column_families = rq_arena_calloc(arena, t->family_count + 1, sizeof *m.column_families);
    if (families == NULL || m.column_families == NULL) return RQ_E_NO_MEMORY;
    m.n_column_families = t->family_count;
    for (size_t i = 0; i < t->family_count; i++) {
        RQ_TRY(family_to_pb(arena, &t->families[i], &families[i]));
        m.column_families[i] = &families[i];
    }
    uint8_t *out = rq_arena_alloc(arena, pb__table_schema__get_packed_size(&m) + 1);
    if (out == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(out, pb__table_schema__pack(&m, out));
    return RQ_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

static void holder_free(holder *h)
{
    rq_arena_clear(&h->arena);
    free(h);
}

rq_err rq_table_schema_parse(rq_slice pb, rq_table_schema **ret, rq_error *why)
{
    if (pb.len > SCHEMA_BYTES_MAX)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor of %zu bytes", pb.len);
    holder *h = calloc(1, sizeof *h);
    if (h == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    atomic_init(&h->refs, 1);
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &h->arena);
    Pb__TableSchema *m = pb__table_schema__unpack(&memory.allocator, pb.len, pb.ptr);
    rq_err rc;
    if (m == NULL && memory.exhausted)
        rc = RQ_E_NO_MEMORY;
    else if (m == NULL)
        rc = rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor is not a TableSchema message");
    else
        rc = take_table(&h->arena, m, &h->schema, why);
    if (rc == RQ_OK) rc = to_protobuf(&h->arena, &h->schema, &h->pb);
    if (rc != RQ_OK) {
        holder_free(h);
        return rq_fail(why, rc, "%s", rq_err_text(rc)); /* keeps a reason already given */
    }
    *ret = &h->schema;
    return RQ_OK;
}

rq_slice rq_table_schema_pb(const rq_table_schema *s)
{
    return holder_of(s)->pb;
}

rq_table_schema *rq_table_schema_ref(rq_table_schema *s)
{
    atomic_fetch_add_explicit(&holder_of(s)->refs, 1, memory_order_relaxed);
    return s;
}

void rq_table_schema_unref(rq_table_schema *s)
{
    if (s == NULL) return;
    if (atomic_fetch_sub_explicit(&holder_of(s)->refs, 1, memory_order_acq_rel) == 1)
        holder_free(holder_of(s));
}

const rq_family_schema *rq_table_schema_family(const rq_table_schema *s, rq_slice name)
{
    size_t lo = 0;
    size_t hi = s->family_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = rq_slice_compare(s->families[mid].name, name);
        if (c == 0) return &s->families[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
