/* SPDX-License-Identifier: Apache-2.0 */
/* Messages shared by several services: server names, region infos, region loads. They are in the
 * arena or point to the arguments. */
#ifndef RQ_SERVICE_MESSAGES_H
#define RQ_SERVICE_MESSAGES_H

#include "catalog/catalog.h"

#include "proto/cluster_status.pb-c.h"
#include "proto/hbase.pb-c.h"

static inline ProtobufCBinaryData rq__pb_binary(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)s.ptr};
}

static inline rq_slice rq__pb_slice(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

/* RQ_E_ILLEGAL_ARGUMENT: no table may have this name. HBASE: ProtobufUtil.toTableName. */
RQ_NODISCARD
rq_err rq__table_name_check(const Pb__TableName *m, rq_error *why);
/* "ns:q" or "q", in the arena. Names that no table may have are refused as by rq__table_name_check. */
RQ_NODISCARD
rq_err rq__table_named(rq_arena *arena, const Pb__TableName *m, rq_slice *ret, rq_error *why);

/* The name as the key of a row of hbase:meta, where HBase keeps a table's state: also refused if it is too long for a row. */
RQ_NODISCARD
rq_err rq__table_row(rq_arena *arena, const Pb__TableName *m, rq_slice *ret, rq_error *why);

/* Bytes of one element of a repeated field of that type, in protobuf-c's structs. */
size_t rq__pb_element_size(ProtobufCType type);
/* NULL: memory is exhausted. */
Pb__ServerName *rq__server_name_message(rq_arena *arena, const rq_server_name *s);
Pb__RegionState__State rq__region_state_message(rq_region_state state);
/* Whether the name is this server's; its start code only if there is one. */
bool rq__is_this_server(const rq_server_name *self, const Pb__ServerName *s);
Pb__TableName *rq__table_name_message(rq_arena *arena, rq_slice ns, rq_slice qualifier);
Pb__RegionInfo *rq__region_info_message(rq_arena *arena, const rq_region_info *r);
/* The loads of all open regions, or of the regions of table `of` (may be NULL), followed by those
 * of their replicas, which have the region's load under another name. */
Pb__RegionLoad **rq__region_loads_message(rq_arena *arena, const rq_catalog *catalog,
                                          const Pb__TableName *of, size_t *ret_count);

/* An error inside an answer, as sent to clients; `why` may be NULL. */
Pb__NameBytesPair *rq__exception_pair(rq_arena *arena, rq_err code, const rq_error *why);

#endif
