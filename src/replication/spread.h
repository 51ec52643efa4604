/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink of replication in a cluster. A source in another cluster sends its entries to any server, and this server
 * passes them on to the servers of their regions.
 *
 *    request ─► window of mutations ─► by server ─► ReplicateWALEntry ─► applied ─► next window ─► … ─► answer
 *                       ▲                               │
 *                       └── looked up again ◄── region moved, server ended
 *
 * A job handles one request. A window is at most a megabyte, or one mutation, so the memory of a job does not depend on
 * the length of its request. The mutations of a window for one server are one message, in the request's order. A window
 * begins when all of the window before it is applied. So the mutations of a row keep their order.
 *
 * If mutations fail with a temporary error, their servers are looked up again and the mutations are sent again, for ten
 * seconds per window. Then the job fails, and the source repeats its whole batch. If `waiting_max` other jobs wait for
 * their next attempts already, the job fails at once, so that writes to a disabled table do not use all threads. Cells
 * keep their timestamps, so applying one twice changes nothing.
 */
#ifndef RQ_REPLICATION_SPREAD_H
#define RQ_REPLICATION_SPREAD_H

#include "base/arena.h"
#include "host/server_name.h"

#include "proto/admin.pb-c.h"

typedef struct rq_spread rq_spread;

/* The part of a window for one server: an encoded ReplicateWALEntryRequest, whose keys name regions of that server, and
 * its cells (KeyValueCodecWithTags). */
typedef struct rq_spread_part {
    const rq_server_name *to; /* all fields are borrowed until rq_spread_sent */
    rq_slice message, cells;
} rq_spread_part;

typedef struct rq_spread_options {
    const char *bootstrap; /* HOST:PORT of a server of this cluster, for the clients; borrowed */
    /* How many jobs may wait between two attempts at a time; less than the number of threads that run jobs. */
    size_t waiting_max;
    /* Sends the part. Calls rq_spread_sent once, when the part is durably applied or has failed, on any thread, perhaps
     * before `send` returns. Must not block. */
    void (*send)(void *ctx, rq_spread_part *part);
    void *ctx;
} rq_spread_options;

RQ_NODISCARD
rq_err rq_spread_new(const rq_spread_options *o, rq_spread **ret);
/* Jobs send no further parts. They end with a temporary error when the parts in flight are answered. Any thread. */
void rq_spread_stop(rq_spread *s);
/* REQUIRES: no job is running. NULL is fine. */
void rq_spread_free(rq_spread *s);

/* Passes the entries on, and returns when all are durably applied. Blocking; on any thread except an event loop's.
 * Memory comes from the arena, or is charged to it. */
RQ_NODISCARD
rq_err rq_spread_entries(rq_spread *s, const Pb__ReplicateWALEntryRequest *request, rq_slice cells,
                         rq_arena *arena, rq_error *why);

/* Tells the result of a part that was sent. `why` may be NULL. */
void rq_spread_sent(rq_spread_part *part, rq_err rc, const rq_error *why);

#endif
