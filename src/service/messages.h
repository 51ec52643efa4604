/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that several services send: server names, region infos, region loads. Everything is in
 * the arena or points to what was given. */
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

/* NULL: memory is out. */
Pb__ServerName *rq__server_name_message(rq_arena *arena, const rq_server_name *s);
Pb__TableName *rq__table_name_message(rq_arena *arena, rq_slice ns, rq_slice qualifier);
Pb__RegionInfo *rq__region_info_message(rq_arena *arena, const rq_region_info *r);
/* The loads of all regions that are open, or of those of a table (`of` may be NULL), and behind
 * them those of their replicas, which are the same region under another name. */
Pb__RegionLoad **rq__region_loads_message(rq_arena *arena, const rq_catalog *catalog,
                                          const Pb__TableName *of, size_t *ret_count);

/* An error as a client is told it inside an answer; `why` may be NULL. */
Pb__NameBytesPair *rq__exception_pair(rq_arena *arena, rq_err code, const rq_error *why);

#endif
