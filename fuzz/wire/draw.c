/* SPDX-License-Identifier: Apache-2.0 */
/* Plausible values; see draw.h. */
#include "draw.h"

#include "base/macros.h"

#include <stdio.h>

#define ROWS 1000

void draw_seed(rq_random *r, uint64_t seed, uint64_t place)
{
    rq_random_seed(r, seed * 0x9e3779b97f4a7c15u ^ (place + 1) * 0xbf58476d1ce4e5b9u);
}

/* ---- numbers */

static const uint64_t limits[] = {0,
                                  1,
                                  2,
                                  3,
                                  63,
                                  64,
                                  100,
                                  127,
                                  128,
                                  255,
                                  256,
                                  1000,
                                  4096,
                                  32766,
                                  32767,
                                  32768,
                                  65535,
                                  65536,
                                  1 << 20,
                                  (1u << 31) - 2,
                                  (1u << 31) - 1,
                                  1u << 31,
                                  UINT32_MAX - 1,
                                  UINT32_MAX,
                                  (uint64_t)INT64_MAX - 1,
                                  INT64_MAX,
                                  (uint64_t)INT64_MAX + 1,
                                  UINT64_MAX - 1,
                                  UINT64_MAX};

uint64_t draw_number(rq_random *r)
{
    if (chance(r, 60)) return rq_random_below(r, 8);
    if (chance(r, 90)) return limits[rq_random_below(r, RQ_ARRAY_LEN(limits))];
    return rq_random_next(r);
}

uint64_t draw_timestamp(rq_random *r, uint64_t now)
{
    switch (rq_random_below(r, 8)) {
    case 0:
    case 1:
        return rq_random_below(r, 20);
    case 2:
        return limits[rq_random_below(r, RQ_ARRAY_LEN(limits))];
    case 3:
        return INT64_MAX;
    default:
        return now - 5000 + rq_random_below(r, 10000);
    }
}

unsigned draw_count(rq_random *r)
{
    unsigned count = 0;
    while (count < 12 && chance(r, 55))
        count++;
    return count;
}

/* ---- bytes */

static void put_many(rq_buf *out, uint8_t byte, size_t count)
{
    must(rq_buf_reserve(out, count));
    memset(out->ptr + out->len, byte, count);
    out->len += count;
}

static void put_printed(rq_buf *out, const char *format, unsigned long n)
{
    char text[64];
    snprintf(text, sizeof text, format, n);
    put_text(out, text);
}

static void put_random(rq_random *r, rq_buf *out, size_t count)
{
    while (count-- > 0)
        must(rq_buf_append_u8(out, (uint8_t)rq_random_next(r)));
}

void draw_bytes(rq_random *r, rq_buf *out)
{
    static const unsigned lengths[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, 100, 1000};
    put_random(r, out, lengths[rq_random_below(r, RQ_ARRAY_LEN(lengths))]);
}

static void odd_row(rq_random *r, rq_buf *out)
{
    static const unsigned lengths[] = {127, 128, 1000, 8000, 32600, 32766, 32767, 32768, 40000};
    switch (rq_random_below(r, 8)) {
    case 0:
        return; /* the empty row */
    case 1:
        must(rq_buf_append_u8(out, 0));
        return;
    case 2:
        put_many(out, 0xff, 1 + rq_random_below(r, 4));
        return;
    case 3:
    case 4:
        put_printed(out, "r%04lu", rq_random_below(r, ROWS));
        put_many(out, 'x', lengths[rq_random_below(r, RQ_ARRAY_LEN(lengths))] - 5);
        return;
    case 5: /* of hbase:meta */
        put_printed(out, "fz%lu,,99999999999999", rq_random_below(r, 6));
        return;
    default:
        draw_bytes(r, out);
    }
}

void draw_row(rq_random *r, rq_buf *out)
{
    if (once_in(r, 20)) {
        odd_row(r, out);
        return;
    }
    put_printed(out, "r%04lu", rq_random_below(r, ROWS));
    if (once_in(r, 10)) must(rq_buf_append_u8(out, 0));
}

void draw_family(rq_random *r, rq_buf *out)
{
    static const char *const families[] = {"f", "f", "f", "f", "g", "g", "m", "c", "c", "info"};
    if (!once_in(r, 40)) {
        put_text(out, families[rq_random_below(r, RQ_ARRAY_LEN(families))]);
        return;
    }
    switch (rq_random_below(r, 4)) {
    case 0:
        return;
    case 1:
        put_many(out, 'f', 127 + rq_random_below(r, 130));
        return;
    case 2:
        put_text(out, "table");
        return;
    default:
        draw_bytes(r, out);
    }
}

void draw_meta_family(rq_random *r, rq_buf *out)
{
    static const char *const families[] = {"info", "info", "info", "table", "ns", "rep_barrier"};
    put_text(out, families[rq_random_below(r, RQ_ARRAY_LEN(families))]);
}

void draw_meta_qualifier(rq_random *r, rq_buf *out)
{
    static const char *const names[] = {
        "regioninfo",       "state",     "server", "sn",
        "seqnumDuringOpen", "merge0000", "splitA", "serverstartcode"};
    put_text(out, names[rq_random_below(r, RQ_ARRAY_LEN(names))]);
}

void draw_qualifier(rq_random *r, rq_buf *out)
{
    if (!once_in(r, 30)) {
        put_printed(out, "q%lu", rq_random_below(r, 8));
        return;
    }
    switch (rq_random_below(r, 4)) {
    case 0:
        return;
    case 1:
        put_many(out, 'q', once_in(r, 4) ? 70000 : 300);
        return;
    case 2:
        draw_meta_qualifier(r, out);
        return;
    default:
        draw_bytes(r, out);
    }
}

static void odd_value(rq_random *r, rq_buf *out)
{
    static const unsigned lengths[] = {99, 100, 101, 5000, 5000, 65535, 100000};
    if (once_in(r, 20))
        put_many(out, 'a', once_in(r, 10) ? 10u << 20 : 1u << 20);
    else if (chance(r, 50))
        put_many(out, 'a', lengths[rq_random_below(r, RQ_ARRAY_LEN(lengths))]);
    else
        put_random(r, out, lengths[rq_random_below(r, 5)]);
}

void draw_value(rq_random *r, rq_buf *out)
{
    switch (rq_random_below(r, 12)) {
    case 0:
    case 1:
    case 2:
        must(rq_buf_append_be64(out, draw_number(r)));
        return;
    case 3:
        put_printed(out, "%lu", rq_random_below(r, 100000));
        return;
    case 4:
        if (once_in(r, 5)) {
            odd_value(r, out);
            return;
        }
        RQ_FALLTHROUGH;
    case 5:
        draw_bytes(r, out);
        return;
    default:
        put_printed(out, "v%lu", rq_random_below(r, 1000));
    }
}

void draw_regex(rq_random *r, rq_buf *out)
{
    static const char *const patterns[] = {"v.*",
                                           "^r0[0-4].*5$",
                                           "a+a*[bc]",
                                           "[ab]{1,60000}[cd]",
                                           "(a|aa)+$",
                                           "(a*)*b",
                                           "((a{0,30}){0,30}){0,30}b",
                                           "(?i)V[0-9]+",
                                           "\\p{L}+",
                                           "\\bv1\\b",
                                           "v(?=1)",
                                           "(?<!v)1",
                                           "(v)(\\1)?",
                                           "[^\\x00-\\x7f]",
                                           "",
                                           "(",
                                           "[",
                                           "*",
                                           "\\",
                                           "(?:)",
                                           "a{2147483647}",
                                           "(?>a+)b",
                                           "a++b",
                                           "(a)(b)(c)\\3",
                                           "[a-z&&[^v]]+",
                                           "\\Qv1\\E",
                                           "x*x*x*x*x*x*y",
                                           "fz.*",
                                           ".*"};
    put_text(out, patterns[rq_random_below(r, RQ_ARRAY_LEN(patterns))]);
    if (once_in(r, 20)) draw_bytes(r, out);
}

void draw_name(rq_random *r, const char *prefix, unsigned count, rq_buf *out)
{
    static const char *const odd[] = {
        "",    ".",     "..",   "a/b",     "../../x",           "-x",   ".x",  "a:b",
        "a b", "hbase", "meta", "default", "\xc3\xa9t\xc3\xa9", "%s%n", "x\ny"};
    if (!once_in(r, 40)) {
        put_text(out, prefix);
        put_printed(out, "%lu", rq_random_below(r, count));
        return;
    }
    if (once_in(r, 4))
        put_many(out, 'n', 200 + rq_random_below(r, 60));
    else
        put_text(out, odd[rq_random_below(r, RQ_ARRAY_LEN(odd))]);
}

/* ---- descriptors */

typedef struct attribute {
    const char *name;
    const char *values[8]; /* or one of odd_numbers */
} attribute;

static const attribute family_attributes[] = {
    {"VERSIONS", {"1", "3"}},
    {"MIN_VERSIONS", {"0", "1"}},
    {"TTL", {"FOREVER", "1", "86400"}},
    {"BLOOMFILTER", {"NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"}},
    {"COMPRESSION", {"NONE", "GZ", "SNAPPY", "LZ4", "ZSTD", "BZIP2", "LZO"}},
    {"COMPRESSION_COMPACT", {"NONE", "GZ", "ZSTD"}},
    {"DATA_BLOCK_ENCODING", {"NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"}},
    {"BLOCKSIZE", {"65536", "1", "64"}},
    {"KEEP_DELETED_CELLS", {"TRUE", "FALSE", "TTL"}},
    {"IN_MEMORY", {"true", "false"}},
    {"BLOCKCACHE", {"true", "false"}},
    {"IS_MOB", {"true", "false"}},
    {"MOB_THRESHOLD", {"100", "0"}},
    {"REPLICATION_SCOPE", {"0", "1"}},
    {"NEW_VERSION_BEHAVIOR", {"true", "false"}},
    {"PREFETCH_BLOCKS_ON_OPEN", {"true"}},
    {"CACHE_DATA_ON_WRITE", {"true"}},
    {"DFS_REPLICATION", {"1"}},
    {"STORAGE_POLICY", {"HOT"}},
    {"ENCRYPTION", {"AES"}},
    {"IN_MEMORY_COMPACTION", {"BASIC", "EAGER", "ADAPTIVE"}},
    {"MOB_COMPACT_PARTITION_POLICY", {"DAILY"}},
};

static const attribute table_attributes[] = {
    {"MAX_FILESIZE", {"1073741824", "1"}},
    {"MEMSTORE_FLUSHSIZE", {"1048576", "1"}},
    {"READONLY", {"false", "false", "true"}},
    {"COMPACTION_ENABLED", {"true", "false"}},
    {"SPLIT_ENABLED", {"true", "false"}},
    {"MERGE_ENABLED", {"true", "false"}},
    {"NORMALIZATION_ENABLED", {"true", "false"}},
    {"NORMALIZER_TARGET_REGION_COUNT", {"3"}},
    {"REGION_REPLICATION", {"1", "2", "3"}},
    {"REGION_MEMSTORE_REPLICATION", {"true"}},
    {"DURABILITY", {"USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"}},
    {"PRIORITY", {"0"}},
    {"SPLIT_POLICY",
     {"org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy",
      "org.apache.hadoop.hbase.regionserver.KeyPrefixRegionSplitPolicy",
      "org.apache.hadoop.hbase.regionserver.DelimitedKeyPrefixRegionSplitPolicy",
      "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy"}},
    {"FLUSH_POLICY", {"org.apache.hadoop.hbase.regionserver.FlushAllStoresPolicy"}},
    {"coprocessor$1",
     {"|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1073741823|",
      "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|1073741823|", "|no.such|1|",
      "|"}},
    {"KeyPrefixRegionSplitPolicy.prefix_length", {"2"}},
    {"hbase.store.file-tracker.impl", {"DEFAULT", "FILE", "MIGRATION"}},
    {"hbase.hstore.blockingStoreFiles", {"16", "1"}},
    {"hbase.hstore.compaction.min", {"2", "3"}},
    {"hbase.hstore.engine.class",
     {"org.apache.hadoop.hbase.regionserver.DefaultStoreEngine",
      "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine",
      "org.apache.hadoop.hbase.regionserver.StripeStoreEngine"}},
    {"hbase.hstore.compaction.date.tiered.max.storefile.age.millis", {"1000"}},
};

static const char *const odd_numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "2147483647",
                                          "2147483648",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "1e3",
                                          "",
                                          "x",
                                          " 1",
                                          "0x10",
                                          "1.5"};

static void draw_attribute(rq_random *r, const attribute *list, size_t count, rq_buf *name,
                           rq_buf *value)
{
    const attribute *a = &list[rq_random_below(r, count)];
    size_t known = 0;
    while (known < RQ_ARRAY_LEN(a->values) && a->values[known] != NULL)
        known++;
    put_text(name, a->name);
    put_text(value, chance(r, 80) ? a->values[rq_random_below(r, known)]
                                  : odd_numbers[rq_random_below(r, RQ_ARRAY_LEN(odd_numbers))]);
}

void draw_family_attribute(rq_random *r, rq_buf *name, rq_buf *value)
{
    draw_attribute(r, family_attributes, RQ_ARRAY_LEN(family_attributes), name, value);
}

void draw_table_attribute(rq_random *r, rq_buf *name, rq_buf *value)
{
    draw_attribute(r, table_attributes, RQ_ARRAY_LEN(table_attributes), name, value);
}

void draw_setting(rq_random *r, rq_buf *name, rq_buf *value)
{
    size_t first = RQ_ARRAY_LEN(table_attributes) - 5; /* the last five are names of properties */
    draw_attribute(r, table_attributes + first, 5, name, value);
}

/* ---- damage */

void draw_damage(rq_random *r, rq_buf *bytes)
{
    if (bytes->len == 0) return;
    size_t at = rq_random_below(r, bytes->len);
    size_t left = bytes->len - at;
    size_t some = 1 + rq_random_below(r, left < 16 ? left : 16);
    switch (rq_random_below(r, 4)) {
    case 0:
        bytes->ptr[at] ^= (uint8_t)(1u << rq_random_below(r, 8));
        return;
    case 1:
        bytes->ptr[at] = (uint8_t)limits[rq_random_below(r, 12)];
        return;
    case 2:
        bytes->len = at;
        return;
    default:
        must(rq_buf_reserve(bytes, some));
        memmove(bytes->ptr + at + some, bytes->ptr + at, bytes->len - at);
        bytes->len += some;
    }
}
