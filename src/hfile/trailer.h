/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trailer and the file info: two flat protobuf messages, parsed by hand. Within the room.
 * HBASE: FixedFileTrailer, HFileInfo 2.6, HFile.proto.
 *
 * A trailer is magic[8], a delimited FileTrailerProto, zero bytes up to its fixed size, and be32
 * minor version << 24 | major version. HBase does not checksum a trailer. Therefore the last twelve
 * of our padding bytes are "RQTRAILR" and the CRC-32C of all other bytes; HBase skips them as
 * padding. In a trailer without them (HBase's own) all padding must be zero.
 */
#ifndef RQ_HFILE_TRAILER_H
#define RQ_HFILE_TRAILER_H

#include "base/buf.h"
#include "hfile/format.h"

typedef struct rq__trailer {
    uint32_t major, minor;
    uint64_t file_info_offset;
    uint64_t load_on_open_offset;
    uint64_t uncompressed_index_len;
    uint64_t total_uncompressed_len;
    uint32_t data_index_count;
    uint32_t meta_index_count;
    uint64_t entry_count;
    uint32_t data_index_levels;
    uint64_t first_data_offset; /* UINT64_MAX in an empty file */
    uint64_t last_data_offset;
    rq_cell_order order;
    rq_compression compression;
    bool encrypted;
} rq__trailer;

/* Size of the trailer for a major version; 0: the version is not supported. */
uint32_t rq__trailer_len(uint32_t major);
RQ_NODISCARD
rq_err rq__trailer_write(const rq__trailer *t, rq_buf *out);
/* Parses a trailer. `bytes` is the end of a file of `file_len` bytes and at least as long as the
 * trailer. Offsets are checked against the file. RQ_E_CORRUPT, RQ_E_UNSUPPORTED. */
RQ_NODISCARD
rq_err rq__trailer_parse(rq_slice bytes, uint64_t file_len, const char *path, rq__trailer *ret,
                         rq_error *why);

/* --- file info ------------------------------------------------------------------------------- */
typedef struct rq__file_info {
    struct rq__file_info_entry *entries; /* sorted by key */
    size_t count, cap;
} rq__file_info;

void rq__file_info_clear(rq__file_info *info);
/* Copies key and value; replaces an entry with the same key. */
RQ_NODISCARD
rq_err rq__file_info_set(rq__file_info *info, rq_slice key, rq_slice value);
bool rq__file_info_get(const rq__file_info *info, rq_slice key, rq_slice *ret);
bool rq__file_info_at(const rq__file_info *info, size_t i, rq_slice *ret_key, rq_slice *ret_value);
RQ_NODISCARD
rq_err rq__file_info_write(const rq__file_info *info, rq_buf *out);
RQ_NODISCARD
rq_err rq__file_info_parse(rq_slice payload, rq__file_info *ret);

/* Keys known to the room. */
#define RQ__INFO_LASTKEY RQ_SLICE_LIT("hfile.LASTKEY")
#define RQ__INFO_AVG_KEY_LEN RQ_SLICE_LIT("hfile.AVG_KEY_LEN")
#define RQ__INFO_AVG_VALUE_LEN RQ_SLICE_LIT("hfile.AVG_VALUE_LEN")
#define RQ__INFO_CREATE_TIME_TS RQ_SLICE_LIT("hfile.CREATE_TIME_TS")
#define RQ__INFO_TAGS_COMPRESSED RQ_SLICE_LIT("hfile.TAGS_COMPRESSED")
#define RQ__INFO_MAX_TAGS_LEN RQ_SLICE_LIT("hfile.MAX_TAGS_LEN")
#define RQ__INFO_KEY_OF_BIGGEST_CELL RQ_SLICE_LIT("hfile.KEY_OF_BIGGEST_CELL")
#define RQ__INFO_LEN_OF_BIGGEST_CELL RQ_SLICE_LIT("hfile.LEN_OF_BIGGEST_CELL")
#define RQ__INFO_MAX_SEQ_ID RQ_SLICE_LIT("MAX_SEQ_ID_KEY")
#define RQ__INFO_MAJOR_COMPACTION RQ_SLICE_LIT("MAJOR_COMPACTION_KEY")
#define RQ__INFO_COMPACTION_EVENT RQ_SLICE_LIT("COMPACTION_EVENT_KEY")
#define RQ__INFO_EXCLUDE_FROM_MINOR RQ_SLICE_LIT("EXCLUDE_FROM_MINOR_COMPACTION")
#define RQ__INFO_TIMERANGE RQ_SLICE_LIT("TIMERANGE")
#define RQ__INFO_EARLIEST_PUT_TS RQ_SLICE_LIT("EARLIEST_PUT_TS")
#define RQ__INFO_DELETE_FAMILY_COUNT RQ_SLICE_LIT("DELETE_FAMILY_COUNT")
#define RQ__INFO_BLOOM_TYPE RQ_SLICE_LIT("BLOOM_FILTER_TYPE")
#define RQ__INFO_BLOOM_PARAM RQ_SLICE_LIT("BLOOM_FILTER_PARAM")
#define RQ__INFO_LAST_BLOOM_KEY RQ_SLICE_LIT("LAST_BLOOM_KEY")
#define RQ__INFO_KEY_VALUE_VERSION RQ_SLICE_LIT("KEY_VALUE_VERSION")
#define RQ__INFO_MAX_MEMSTORE_TS RQ_SLICE_LIT("MAX_MEMSTORE_TS_KEY")
#define RQ__INFO_BULKLOAD_TIME RQ_SLICE_LIT("BULKLOAD_TIMESTAMP")
#define RQ__INFO_HISTORICAL RQ_SLICE_LIT("HISTORICAL")
#define RQ__INFO_DATA_BLOCK_ENCODING RQ_SLICE_LIT("DATA_BLOCK_ENCODING")
/* Not in HBase: qualifiers.h. */
#define RQ__INFO_QUALIFIERS RQ_SLICE_LIT("RORQUAL_QUALIFIERS")
#define RQ__INFO_INDEX_BLOCK_ENCODING RQ_SLICE_LIT("INDEX_BLOCK_ENCODING")

#endif
