/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of messages, for wire.c and wire_outcome.c. */
#ifndef RQ_CLUSTER_WIRE_PRIV_H
#define RQ_CLUSTER_WIRE_PRIV_H

#include "cluster/wire.h"
#include "proto/cluster.pb-c.h"

#include "proto/hbase.pb-c.h"

static inline ProtobufCBinaryData rq__wire_binary(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static inline rq_slice rq__wire_slice(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

static inline char *rq__wire_text(const char *s)
{
    return (char *)(uintptr_t)s;
}

RQ_NODISCARD
rq_err rq__wire_pack(rq_arena *a, const ProtobufCMessage *m, rq_slice *ret);
/* RQ_E_DO_NOT_RETRY: malformed. */
RQ_NODISCARD
rq_err rq__wire_unpack(const ProtobufCMessageDescriptor *type, rq_slice bytes, rq_arena *a,
                       const void **ret, rq_error *why);
/* NULL: out of memory. */
Pb__RegionInfo *rq__wire_put_region(rq_arena *a, const rq_region_info *r);
Pb__ServerName *rq__wire_put_server(rq_arena *a, const rq_server_name *s);
RQ_NODISCARD
rq_err rq__wire_take_server(const Pb__ServerName *m, rq_arena *a, const rq_server_name **ret,
                            rq_error *why);

/* The files of a region, in an answer. */
RQ_NODISCARD
rq_err rq__wire_put_files(const rq_region_files *files, rq_arena *a, Pb__RegionAnswer *m);
/* RQ_E_DO_NOT_RETRY: a name that no family or store file has. */
RQ_NODISCARD
rq_err rq__wire_take_files(const Pb__RegionAnswer *m, rq_arena *a, rq_region_files *ret,
                           rq_error *why);

/* Names of files. */
RQ_NODISCARD
rq_err rq__wire_put_names(const rq_slice *names, size_t count, rq_arena *a,
                          ProtobufCBinaryData **ret);
/* RQ_E_DO_NOT_RETRY: a name that no file has. */
RQ_NODISCARD
rq_err rq__wire_take_names(const ProtobufCBinaryData *list, size_t count, rq_arena *a,
                           rq_slice **ret, rq_error *why);

#endif
