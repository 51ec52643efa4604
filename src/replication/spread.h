/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink of a cluster: entries of another cluster, which a source sends to any server, are passed on to the servers
 * of their regions.
 *
 *    request ─► window of mutations ─► by server ─► ReplicateWALEntry ─► applied ─► next window ─► … ─► answer
 *                       ▲                               │
 *                       └── looked up again ◄── region moved, server ended
 *
 * A window is at most a megabyte, or one mutation: a job's memory does not depend on the length of its request. The
 * mutations of a window for one server are one message, in the request's order, and a window begins when the one before it
 * is applied; so the mutations of a row keep their order. Mutations that fail with a temporary error are looked up and
 * sent again, for ten seconds; then the job fails, and the source repeats its whole batch. If other jobs wait between two
 * attempts, it fails at once: a disabled table does not keep threads from others. Cells keep their timestamps, so that
 * applying one twice changes nothing.
 */
#ifndef RQ_REPLICATION_SPREAD_H
#define RQ_REPLICATION_SPREAD_H

#include "base/arena.h"
#include "host/server_name.h"

#include "proto/admin.pb-c.h"

typedef struct rq_spread rq_spread;

/* What one server gets of a window: an encoded ReplicateWALEntryRequest, in which the keys name regions of that server,
 * and its cells (KeyValueCodecWithTags). */
typedef struct rq_spread_part {
    const rq_server_name *to; /* all fields are borrowed until rq_spread_sent */
    rq_slice message, cells;
} rq_spread_part;

typedef struct rq_spread_options {
    const char *bootstrap; /* HOST:PORT of a server of this cluster, for a client; borrowed */
    /* Jobs that may wait between two attempts: fewer than the threads that run jobs. */
    size_t waiting_max;
    /* Sends the part, and calls rq_spread_sent once when it is durably applied, or has failed; on any thread, perhaps
     * before this returns. Must not block. */
    void (*send)(void *ctx, rq_spread_part *part);
    void *ctx;
} rq_spread_options;

RQ_NODISCARD
rq_err rq_spread_new(const rq_spread_options *o, rq_spread **ret);
/* Jobs send nothing more, and end with a temporary error once what they have sent is answered. Any thread. */
void rq_spread_stop(rq_spread *s);
/* REQUIRES: no job is running. NULL is fine. */
void rq_spread_free(rq_spread *s);

/* Blocking, on any thread that is no event loop: passes the entries on, and returns when all are durably applied. Memory
 * comes from the arena, or is charged to it. */
RQ_NODISCARD
rq_err rq_spread_entries(rq_spread *s, const Pb__ReplicateWALEntryRequest *request, rq_slice cells,
                         rq_arena *arena, rq_error *why);

/* The end of a part that was sent. `why` may be NULL. */
void rq_spread_sent(rq_spread_part *part, rq_err rc, const rq_error *why);

#endif
