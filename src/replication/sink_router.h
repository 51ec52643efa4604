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
 * If mutations fail with a temporary error, their servers are looked up again and the mutations are sent again, for
 * limit_ns per window. Then the job fails, and the source repeats its whole batch. There is no limit for all windows of
 * a job, because the source decides how long a batch is and how long it may take: a job ends between two attempts when its
 * source has closed the connection or no longer waits for the response. If `waiting_max` other jobs wait for their next
 * attempts already, the job fails at once, so that writes to a disabled table do not use all threads.
 *
 * Cells keep their timestamps, so applying one twice changes nothing. A part that was not answered in time may still be
 * applied later, after newer mutations of its rows; this matters only for cells with equal timestamps, as with HBase's sink.
 */
#ifndef RQ_REPLICATION_SINK_ROUTER_H
#define RQ_REPLICATION_SINK_ROUTER_H

#include "base/arena.h"
#include "host/server_name.h"

#include "proto/admin.pb-c.h"

typedef struct rq_sink_router rq_sink_router;

/* The part of a window for one server: an encoded ReplicateWALEntryRequest, whose keys name regions of that server, and
 * its cells (KeyValueCodecWithTags). */
typedef struct rq_sink_part {
    const rq_server_name *to; /* all fields are borrowed until rq_sink_part_sent */
    rq_slice message, cells;
} rq_sink_part;

typedef struct rq_sink_router_options {
    const char *bootstrap; /* HOST:PORT of a server of this cluster, for the clients; borrowed */
    /* How many jobs may wait between two attempts at a time; less than the number of threads that run jobs. */
    size_t waiting_max;
    uint64_t limit_ns; /* attempts of a window begin within this time */
    /* Sends the part. Calls rq_sink_part_sent once, when the part is durably applied or has failed, on any thread, perhaps
     * before `send` returns. Must not block. */
    void (*send)(void *ctx, rq_sink_part *part);
    void *ctx;
} rq_sink_router_options;

RQ_NODISCARD
rq_err rq_sink_router_new(const rq_sink_router_options *o, rq_sink_router **ret);
/* Jobs send no further parts. They end with a temporary error when the parts in flight are answered. Any thread. */
void rq_sink_router_stop(rq_sink_router *s);
/* REQUIRES: no job is running. NULL is fine. */
void rq_sink_router_free(rq_sink_router *s);

/* A request. */
typedef struct rq_sink_request {
    const Pb__ReplicateWALEntryRequest *entries;
    rq_slice cells;
    /* When one of these ends the request, the source sends the batch again. */
    const _Atomic bool *gone; /* the source has closed the connection; NULL: unknown */
    uint64_t deadline_ns;     /* of the source's call, by CLOCK_MONOTONIC; UINT64_MAX: none */
} rq_sink_request;

/* Passes the entries on, and returns when all are durably applied. Blocking; on any thread except an event loop's.
 * Memory comes from the arena, or is charged to it. RQ_E_CLOSED: the source no longer waits, and not all entries are
 * applied. */
RQ_NODISCARD
rq_err rq_sink_router_entries(rq_sink_router *s, const rq_sink_request *request, rq_arena *arena,
                              rq_error *why);

/* Tells the result of a part that was sent. `why` may be NULL. */
void rq_sink_part_sent(rq_sink_part *part, rq_err rc, const rq_error *why);

#endif
