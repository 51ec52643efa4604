/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replication peers of a cluster, as all of its servers see them: the object "peers" on shared storage. The master writes
 * it after the peers' rows (catalog/peers.h); each server reads it several times a second.
 *
 *   be32 magic "RQpl" | u8 version, 1 | u8 length, master | be64 version of the list | varint count,
 *     for each peer: varint length, id | u8 enabled | be64 number | be64 version | be64 lost ms |
 *                    varint length, ReplicationPeer | be32 CRC of all before
 *   peers ascending by id
 *
 * `rq_peer_info.position` is the peer's number: a peer that was removed and added again, or was enabled again after it had lost
 * writes, has another number, and its queues begin anew. `rq_peer_info.version` is the version of the list that changed the
 * peer last.
 *
 * All functions block.
 */
#ifndef RQ_REPLICATION_PEER_LIST_H
#define RQ_REPLICATION_PEER_LIST_H

#include "base/buf.h"
#include "catalog/peers.h"
#include "vfs/shared.h"

typedef struct rq_peer_list {
    rq_slice by;      /* the master that has written it */
    uint64_t version; /* 0: it was never written */
    rq_peer_info *peers;
    size_t count;
} rq_peer_list;

RQ_NODISCARD
rq_err rq__peer_list_encode(const rq_peer_list *l, rq_buf *out);
/* Untrusted bytes. Everything is in the arena or points into the bytes. RQ_E_CORRUPT, RQ_E_VERSION. */
RQ_NODISCARD
rq_err rq__peer_list_decode(rq_slice bytes, rq_arena *arena, rq_peer_list *ret, rq_error *why);

/* An absent object is an empty list of version 0. */
RQ_NODISCARD
rq_err rq__peer_list_read(rq_shared *s, rq_arena *arena, rq_peer_list *ret,
                          uint64_t *ret_generation, rq_error *why);
/* Writes the catalog's peers, if they differ from the list. *ret_version: of the list with them. `master`: the ServerName of
 * this process, whose log the catalog's rows are in. RQ_E_SERVER_ABORTED: it was fenced, so that another master may have
 * written the list. May be called by several threads of the process. */
RQ_NODISCARD
rq_err rq_peer_list_publish(rq_shared *s, const char *master, rq_catalog *c, uint64_t *ret_version,
                            rq_error *why);
/* Whether the server follows this version of the list, as its queues (wal/queues.h) say; also true if it has none and
 * `is_empty`: the list has no peers. */
RQ_NODISCARD
rq_err rq_peer_list_is_followed(rq_shared *s, const char *server, uint64_t version, bool is_empty,
                                bool *ret, rq_error *why);

#endif
