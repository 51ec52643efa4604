/* SPDX-License-Identifier: Apache-2.0 */
/* The names and numbers of HFile's parts, as tables. */
#include "hfile/format.h"

#include <strings.h>

typedef struct block_kind_row {
    char magic[9];
    const char *name;
} block_kind_row;

/* On disk: DO NOT CHANGE. HBASE: BlockType. */
static const block_kind_row block_kinds[RQ_BLOCK_KIND_COUNT] = {
    [RQ_BLOCK_DATA] = {"DATABLK*", "DATA"},
    [RQ_BLOCK_ENCODED_DATA] = {"DATABLKE", "ENCODED_DATA"},
    [RQ_BLOCK_LEAF_INDEX] = {"IDXLEAF2", "LEAF_INDEX"},
    [RQ_BLOCK_BLOOM_CHUNK] = {"BLMFBLK2", "BLOOM_CHUNK"},
    [RQ_BLOCK_META] = {"METABLKc", "META"},
    [RQ_BLOCK_INTERMEDIATE_INDEX] = {"IDXINTE2", "INTERMEDIATE_INDEX"},
    [RQ_BLOCK_ROOT_INDEX] = {"IDXROOT2", "ROOT_INDEX"},
    [RQ_BLOCK_FILE_INFO] = {"FILEINF2", "FILE_INFO"},
    [RQ_BLOCK_GENERAL_BLOOM_META] = {"BLMFMET2", "GENERAL_BLOOM_META"},
    [RQ_BLOCK_DELETE_FAMILY_BLOOM_META] = {"DFBLMET2", "DELETE_FAMILY_BLOOM_META"},
    [RQ_BLOCK_TRAILER] = {"TRABLK\"$", "TRAILER"},
};

const uint8_t *rq__block_kind_magic(rq_block_kind kind)
{
    return (const uint8_t *)block_kinds[kind].magic;
}

bool rq__block_kind_of_magic(const uint8_t magic[8], rq_block_kind *ret)
{
    for (int i = 0; i < RQ_BLOCK_KIND_COUNT; i++)
        if (memcmp(block_kinds[i].magic, magic, 8) == 0) {
            *ret = (rq_block_kind)i;
            return true;
        }
    return false;
}

const char *rq_block_kind_name(rq_block_kind kind)
{
    return block_kinds[kind].name;
}

static const char *const bloom_names[] = {
    [RQ_BLOOM_NONE] = "NONE",
    [RQ_BLOOM_ROW] = "ROW",
    [RQ_BLOOM_ROWCOL] = "ROWCOL",
    [RQ_BLOOM_ROWPREFIX_FIXED_LENGTH] = "ROWPREFIX_FIXED_LENGTH",
};

const char *rq__bloom_type_name(rq_bloom_type t)
{
    return bloom_names[t];
}

static bool is_name(rq_slice s, const char *name)
{
    return s.len == strlen(name) && strncasecmp((const char *)s.ptr, name, s.len) == 0;
}

bool rq__bloom_type_parse(rq_slice name, rq_bloom_type *ret)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(bloom_names); i++)
        if (is_name(name, bloom_names[i])) {
            *ret = (rq_bloom_type)i;
            return true;
        }
    return false;
}

static const char *const compressions[RQ_COMPRESSION_COUNT] = {
    [RQ_COMPRESSION_LZO] = "LZO",       [RQ_COMPRESSION_GZ] = "GZ",
    [RQ_COMPRESSION_NONE] = "NONE",     [RQ_COMPRESSION_SNAPPY] = "SNAPPY",
    [RQ_COMPRESSION_LZ4] = "LZ4",       [RQ_COMPRESSION_BZIP2] = "BZIP2",
    [RQ_COMPRESSION_ZSTD] = "ZSTD",     [RQ_COMPRESSION_LZMA] = "LZMA",
    [RQ_COMPRESSION_BROTLI] = "BROTLI",
};

const char *rq_compression_name(rq_compression c)
{
    return (unsigned)c < RQ_COMPRESSION_COUNT ? compressions[c] : NULL;
}

bool rq_compression_parse(rq_slice name, rq_compression *ret)
{
    for (int i = 0; i < RQ_COMPRESSION_COUNT; i++)
        if (is_name(name, compressions[i])) {
            *ret = (rq_compression)i;
            return true;
        }
    return false;
}
