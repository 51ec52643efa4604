/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HFile v3 on disk (v2 can be read): numbers and names shared by reader and writer. HBASE:
 * HFileBlock, FixedFileTrailer, HFileInfo, HFileBlockIndex 2.6.
 *
 *   data blocks, interleaved with leaf index blocks and bloom chunks    ("scanned" section)
 *   meta blocks, intermediate index blocks                              ("non-scanned")
 *   root data index, meta index, file info, bloom meta                  ("load on open")
 *   trailer, 4096 bytes (v2: 212)
 *
 * A block is a 33-byte header, the (compressed) payload, and a be32 checksum for each
 * bytes-per-checksum of header and payload:
 *   magic[8] | be32 on-disk size without header, with checksums | be32 uncompressed size |
 *   be64 offset of the previous block of the type | u8 checksum type | be32 bytes per checksum |
 *   be32 on-disk size of header and payload
 * All integers are big-endian.
 */
#ifndef RQ_HFILE_FORMAT_H
#define RQ_HFILE_FORMAT_H

#include "base/bytes.h"
#include "cell/cell.h"
#include "hfile/compression.h"

#define RQ_HFILE_HEADER_LEN 33
#define RQ_HFILE_TRAILER_LEN 4096
#define RQ_HFILE_TRAILER_V2_LEN 212
#define RQ_HFILE_MAJOR 3
#define RQ_HFILE_MINOR 3
#define RQ_HFILE_INDEX_LEVELS_MAX 16 /* HBase's own limit */

/* HBASE: BlockType. This order is our own; magics are in format.c. */
typedef enum rq_block_kind {
    RQ_BLOCK_DATA,
    RQ_BLOCK_ENCODED_DATA,
    RQ_BLOCK_LEAF_INDEX,
    RQ_BLOCK_BLOOM_CHUNK,
    RQ_BLOCK_META,
    RQ_BLOCK_INTERMEDIATE_INDEX,
    RQ_BLOCK_ROOT_INDEX,
    RQ_BLOCK_FILE_INFO,
    RQ_BLOCK_GENERAL_BLOOM_META,
    RQ_BLOCK_DELETE_FAMILY_BLOOM_META,
    RQ_BLOCK_TRAILER,
    RQ_BLOCK_KIND_COUNT
} rq_block_kind;

/* The eight magic bytes; not NUL-terminated. */
const uint8_t *rq__block_kind_magic(rq_block_kind kind);
bool rq__block_kind_of_magic(const uint8_t magic[8], rq_block_kind *ret);
/* "DATA", "LEAF_INDEX" … as HBase prints them. */
const char *rq_block_kind_name(rq_block_kind kind);

/* On disk: DO NOT CHANGE. HBASE: ChecksumType. */
typedef enum rq_checksum_type {
    RQ_CHECKSUM_NONE = 0,
    RQ_CHECKSUM_CRC32 = 1,
    RQ_CHECKSUM_CRC32C = 2,
} rq_checksum_type;

/* HBASE: BloomType; written by name. */
typedef enum rq_bloom_type {
    RQ_BLOOM_NONE,
    RQ_BLOOM_ROW,
    RQ_BLOOM_ROWCOL,
    RQ_BLOOM_ROWPREFIX_FIXED_LENGTH,
} rq_bloom_type;

const char *rq__bloom_type_name(rq_bloom_type t);
bool rq__bloom_type_parse(rq_slice name, rq_bloom_type *ret);

/* On disk: DO NOT CHANGE. HBASE: DataBlockEncoding. */
typedef enum rq_block_encoding {
    RQ_ENCODING_NONE = 0,
    RQ_ENCODING_PREFIX = 2,
    RQ_ENCODING_DIFF = 3,
    RQ_ENCODING_FAST_DIFF = 4,
    RQ_ENCODING_ROW_INDEX_V1 = 7,
} rq_block_encoding;

/* Properties of an open file, also reported by the writer for a finished one. Slices belong to
 * the reader or writer that returned the struct. */
typedef struct rq_hfile_info {
    /* used by every read, kept together */
    uint64_t entry_count;
    uint64_t delete_family_count;
    rq_slice first_key; /* serialized keys; empty when the file has no cell */
    rq_slice last_key;
    rq_block_encoding encoding;
    rq_cell_order order;
    rq_bloom_type bloom;
    uint32_t data_index_levels;
    bool has_mvcc;
    bool has_tags;
    bool lists_qualifiers;
    rq_slice qualifiers; /* qualifiers of its puts (qualifiers.h); valid with lists_qualifiers */
    uint32_t qualifier_count;
    /* other properties */
    bool major;         /* MAJOR_COMPACTION_KEY */
    bool bulk_loaded;   /* BULKLOAD_TIMESTAMP is there */
    bool has_max_seqid; /* MAX_SEQ_ID_KEY is there */
    bool exclude_from_minor;
    bool has_time_range;
    rq_compression compression;
    uint64_t size_bytes;
    uint64_t uncompressed_bytes; /* HBase's totalUncompressedBytes */
    /* Bytes in memory, uncompressed; a reader's alone. */
    uint64_t root_index_bytes; /* the root of the data index */
    uint64_t index_bytes;      /* the data index, all levels */
    uint64_t bloom_bytes;      /* the bits of the general bloom filter */
    uint64_t max_seqid;
    uint64_t max_memstore_ts; /* MAX_MEMSTORE_TS_KEY: the largest seqid in a cell */
    int64_t min_ts, max_ts;   /* TIMERANGE; empty when min > max */
    int64_t earliest_put_ts;  /* INT64_MAX when none */
    int64_t create_time_ms;
    uint32_t avg_key_len, avg_value_len;
} rq_hfile_info;

#endif
