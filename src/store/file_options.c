/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's properties of store files, as a table (file_options.h). */
#include "store/file_options.h"

#include <errno.h>
#include <stdlib.h>

static bool take_count(rq_slice value, uint32_t min, uint32_t max, uint32_t *ret)
{
    uint64_t n = 0;
    if (value.len == 0 || value.len > 10) return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') return false;
        n = n * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    if (n < min || n > max) return false;
    *ret = (uint32_t)n;
    return true;
}

static bool checksum(rq_hfile_options *o, rq_slice v)
{
    /* HBASE: ChecksumType; NULL writes checksums of zero, which are not verified */
    if (rq_slice_eq(v, RQ_SLICE_LIT("CRC32C")))
        o->checksum = RQ_CHECKSUM_CRC32C;
    else if (rq_slice_eq(v, RQ_SLICE_LIT("CRC32")))
        o->checksum = RQ_CHECKSUM_CRC32;
    else if (rq_slice_eq(v, RQ_SLICE_LIT("NULL")))
        o->checksum = RQ_CHECKSUM_NONE;
    else
        return false;
    return true;
}

static bool bytes_per_checksum(rq_hfile_options *o, rq_slice v)
{
    return take_count(v, 64, INT32_MAX, &o->bytes_per_checksum);
}

static bool index_chunk(rq_hfile_options *o, rq_slice v)
{
    return take_count(v, 1, 1u << 28, &o->index_chunk_bytes);
}

static bool index_entries(rq_hfile_options *o, rq_slice v)
{
    return take_count(v, 2, 1u << 28, &o->index_entries_min);
}

static bool bloom_chunk(rq_hfile_options *o, rq_slice v)
{
    return take_count(v, 1, 1u << 27, &o->bloom_chunk_bytes);
}

static bool bloom_error_rate(rq_hfile_options *o, rq_slice v)
{
    char text[32];
    if (v.len == 0 || v.len >= sizeof(text)) return false;
    memcpy(text, v.ptr, v.len);
    text[v.len] = '\0';
    char *end;
    double rate = strtod(text, &end);
    if (*end != '\0' || !(rate > 0 && rate < 1)) return false;
    o->bloom_error_rate = rate;
    return true;
}

static bool zstd_codec(rq_hfile_options *o, rq_slice v)
{
    /* HBASE: Hadoop's native codec writes bare frames, all others Hadoop's block framing. */
    o->zstd_bare = rq_slice_eq(v, RQ_SLICE_LIT("org.apache.hadoop.io.compress.ZStandardCodec"));
    return true;
}

typedef struct property {
    const char *name;
    bool (*take)(rq_hfile_options *o, rq_slice value);
} property;

static const property properties[] = {
    {"hbase.hstore.checksum.algorithm", checksum},
    {"hbase.hstore.bytes.per.checksum", bytes_per_checksum},
    {"hfile.index.block.max.size", index_chunk},
    {"hfile.index.block.min.entries", index_entries},
    {"io.storefile.bloom.block.size", bloom_chunk},
    {"io.storefile.bloom.error.rate", bloom_error_rate},
    {"hbase.io.compress.zstd.codec", zstd_codec},
};

const char *rq_file_property(size_t i)
{
    return i < RQ_ARRAY_LEN(properties) ? properties[i].name : NULL;
}

bool rq_file_options_take(rq_hfile_options *o, const char *name, rq_slice value)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++)
        if (strcmp(properties[i].name, name) == 0) return properties[i].take(o, value);
    return false;
}

rq_hfile_options rq__file_options_of(const rq_hfile_options *server, const rq_table_schema *t,
                                     const rq_family_schema *f)
{
    rq_hfile_options o = *server;
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++) {
        rq_slice value;
        /* An invalid value is ignored, and the server's setting applies: the table must stay
         * writable. */
        if (rq_schema_setting(t, f, properties[i].name, &value))
            (void)properties[i].take(&o, value);
    }
    o.compression = f->compression;
    o.block_bytes = f->block_bytes;
    o.encoding = f->encoding;
    o.compress_tags = f->compress_tags;
    o.bloom = f->bloom;
    o.bloom_prefix_len = f->bloom_prefix_len;
    if (f->bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH && f->bloom_prefix_len == 0)
        o.bloom = RQ_BLOOM_NONE; /* a table created with its checks switched off */
    return o;
}
