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
/* Writes the catalog's peers to the list if they differ. *ret_version: version of the list that has them. `master`: the
 * ServerName of this process; its log has the catalog's rows. RQ_E_SERVER_ABORTED: that log was fenced, so another master
 * may have written the list. Several threads of the process may call it. */
RQ_NODISCARD
rq_err rq_peer_list_publish(rq_shared *s, const char *master, rq_catalog *c, uint64_t *ret_version,
                            rq_error *why);
/* The servers that may have read an earlier version of the list than this one. */
typedef struct rq_peer_list_wait {
    uint64_t version;
    bool is_empty; /* the list has no peers */
    const char **servers;
    size_t count; /* of those that are not known to follow the list */
} rq_peer_list_wait;

/* After the list was published: all servers that have entered their logs' names (wal/queues.h, rule 4), in the arena. Servers that
 * start later read this version, or a later one. */
RQ_NODISCARD
rq_err rq_peer_list_readers(rq_shared *s, uint64_t version, bool is_empty, rq_arena *arena,
                            rq_peer_list_wait *ret, rq_error *why);
/* *ret: a server that does not follow the list yet; NULL: none. A server follows it if its queues (wal/queues.h) say so, if it has
 * no queues and the list has no peers, or if its log has ended. May be repeated until *ret is NULL. */
RQ_NODISCARD
rq_err rq_peer_list_do_all_follow(rq_shared *s, rq_peer_list_wait *w, const char **ret,
                                  rq_error *why);

#endif
