/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region's identity. HBASE: RegionInfo. The region name is
 *
 *   <table>,<start key>,<region id>[_<replica id, 4 hex>].<encoded>.
 *
 * where <encoded> is the MD5 in hex of the part before the first dot. The first meta region has a
 * name in the old format, `hbase:meta,,1`, and the encoded name 1588230740.
 */
#ifndef RQ_REGION_REGION_INFO_H
#define RQ_REGION_REGION_INFO_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

#define RQ_ENCODED_NAME_LEN 32
#define RQ_META_ENCODED "1588230740"

typedef struct rq_region_info {
    rq_slice ns;
    rq_slice qualifier;
    rq_slice table; /* as displayed: "ns:q" or "q" */
    rq_slice start_key;
    rq_slice end_key;  /* exclusive; empty: the end of the table */
    int64_t region_id; /* creation time, ms */
    int32_t replica_id;
    bool offline;
    bool split;
    rq_slice name; /* the region name, binary */
    char encoded[RQ_ENCODED_NAME_LEN + 1];
} rq_region_info;

/* Builds name and encoded name. Everything is copied into the arena. */
RQ_NODISCARD
rq_err rq_region_info_make(rq_arena *arena, rq_slice ns, rq_slice qualifier, rq_slice start_key,
                           rq_slice end_key, int64_t region_id, int32_t replica_id,
                           rq_region_info *ret);
/* Copies all fields into the arena. */
RQ_NODISCARD
rq_err rq_region_info_copy(rq_arena *arena, const rq_region_info *from, rq_region_info *ret);
/* Makes the info of hbase:meta,,1. */
RQ_NODISCARD
rq_err rq_region_info_meta(rq_arena *arena, rq_region_info *ret);
/* The name as text for messages and logs. That of hbase:meta ends with its encoded name, as in HBase
 * (RegionInfo.getRegionNameAsString). */
void rq_region_info_text(const rq_region_info *r, char *buf, size_t size);
/* The whole info as text, "{ENCODED => …, NAME => '…', STARTKEY => '…', ENDKEY => '…'}", long keys cut.
 * HBASE: RegionInfo's toString. */
void rq_region_info_describe(const rq_region_info *r, char *buf, size_t size);
/* "PBUF" + protobuf RegionInfo: meta's info:regioninfo. */
RQ_NODISCARD
rq_err rq_region_info_serialize(const rq_region_info *r, rq_arena *arena, rq_slice *ret);
/* With the message's length before it: the .regioninfo file. */
RQ_NODISCARD
rq_err rq_region_info_serialize_delimited(const rq_region_info *r, rq_arena *arena, rq_slice *ret);
/* Parses an info and copies everything into the arena. Trailing bytes are an error. */
RQ_NODISCARD
rq_err rq_region_info_parse(rq_slice bytes, rq_arena *arena, rq_region_info *ret, rq_error *why);
RQ_NODISCARD
rq_err rq_region_info_parse_delimited(rq_slice bytes, rq_arena *arena, rq_region_info *ret,
                                      rq_error *why);
/* hbase:meta is one region: its bounds are empty, and its own row order does not matter here. */
static inline bool rq_region_info_contains(const rq_region_info *r, rq_slice row)
{
    return rq_slice_compare(row, r->start_key) >= 0 &&
           (r->end_key.len == 0 || rq_slice_compare(row, r->end_key) < 0);
}

#endif
