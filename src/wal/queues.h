/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replication queues of a server incarnation's log on shared storage: which peers need the log, and from where on. One
 * object, "queues:SERVERNAME", for all peers of the log:
 *
 *   be32 magic "RQqu" | u8 version, 1 | u8 length, owner | be64 edit | be64 seen | varint count,
 *     for each peer: varint length, id | be64 number | be64 LSN | be64 lost ms | be32 CRC of all before
 *
 *  1. The owner alone replaces the object: at first the log's own server. When that has been fenced, another server claims
 *     the queues by swapping itself in as the owner; of several servers one succeeds. A former owner's swap then fails.
 *  2. An ended log is kept while the object exists (rq_wal_retire), also if it names no peer. The owner of an ended log removes
 *     it once every peer has the log. The owner of its own log keeps it, without peers, until the log has ended.
 *  3. The set "queues" has the names of the logs that may have the object. A name is put before the object is made, and deleted
 *     after it is removed.
 *  4. A server puts its log's name before it reads the list of peers for the first time. So a server whose name is not in the
 *     set after the list was written has ended, or will read that list or a later one.
 *
 * All functions block; pool threads and tools.
 */
#ifndef RQ_WAL_QUEUES_H
#define RQ_WAL_QUEUES_H

#include "base/buf.h"
#include "vfs/shared.h"

#define RQ_WAL_QUEUES_MAX 65536

typedef struct rq_wal_queue {
    rq_slice id;       /* of the peer */
    uint64_t number;   /* of the peer: one that was removed and added again has another */
    uint64_t position; /* LSN: the peer has everything before it; 0: nothing */
    int64_t lost_ms;   /* since when the log is not kept for the peer; 0: it is */
} rq_wal_queue;

typedef struct rq_wal_queues {
    rq_slice owner; /* ServerName */
    uint64_t edit;  /* number of the owner's swaps so far: makes the bytes of each object unique */
    uint64_t seen;  /* version of the list of peers that the owner follows */
    rq_wal_queue *list;
    size_t count;
} rq_wal_queues;

RQ_NODISCARD rq_err rq__queues_encode(const rq_wal_queues *q, rq_buf *out);
/* Untrusted bytes. Slices point into them, the array is in the arena. RQ_E_CORRUPT, RQ_E_VERSION. */
RQ_NODISCARD rq_err rq__queues_decode(rq_slice bytes, rq_arena *arena, rq_wal_queues *ret,
                                      rq_error *why);

/* RQ_E_NOT_FOUND: the log has none. */
RQ_NODISCARD rq_err rq_wal_queues_read(rq_shared *s, const char *server_name, rq_arena *arena,
                                       rq_wal_queues *ret, uint64_t *ret_generation, rq_error *why);
/* Replaces the object; raises q->edit. *generation: in, of the object that was read, 0: there is none; out, of the new one.
 * RQ_E_CONFLICT: another server has replaced it. Other errors: the outcome is unknown; it may be repeated. */
RQ_NODISCARD rq_err rq_wal_queues_swap(rq_shared *s, const char *server_name, rq_wal_queues *q,
                                       uint64_t *generation, rq_error *why);
/* Removes the object of an ended log, and then the name from the set. RQ_E_CONFLICT: another server has replaced it. An absent
 * object is no error: generation 0 removes the name only. */
RQ_NODISCARD rq_err rq_wal_queues_remove(rq_shared *s, const char *server_name, uint64_t generation,
                                         rq_error *why);
/* Puts the log's name into the set. By the log's server: see rule 4. By whoever finds the object of an ended log: the name may be
 * missing, because the object's creation may have taken effect after another server had found none, and had deleted the name. */
RQ_NODISCARD rq_err rq_wal_queues_enter(rq_shared *s, const char *server_name, rq_error *why);
/* The logs that may have queues, in the arena. */
RQ_NODISCARD rq_err rq_wal_queues_logs(rq_shared *s, rq_arena *arena, const char ***ret,
                                       size_t *ret_count, rq_error *why);

#endif
