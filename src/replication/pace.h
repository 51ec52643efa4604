/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a source ships.
 *
 * A batch costs a request, several wake-ups of threads and a sync of the peer's log, whether it has one record or
 * thousands. So a source that has shipped the whole log begins the next batch 10 ms after the last one at the
 * earliest. The records of these 10 ms share the costs; their lag grows by at most 10 ms.
 *
 * A source that is far behind would keep a processor, the disk and the peer busy for minutes, which slows the writes
 * of clients. So while it catches up it ships small batches and rests after each for as long as the batch took, but
 * at most 50 ms: this leaves clients about half of the time. It does not rest if the backlog has not shrunk within a
 * second, so catching up always ends if the peer is fast enough.
 */
#ifndef RQ_REPLICATION_PACE_H
#define RQ_REPLICATION_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rq__pace {
    uint64_t looked_ns; /* when `backlog` was noted; 0: never */
    uint64_t backlog;   /* bytes of the log */
    bool hurries;       /* the backlog does not shrink: no rests */
} rq__pace;

/* The size of the next batch, in bytes; `most`: the size while the source is not catching up. */
uint64_t rq__pace_batch_bytes(uint64_t backlog, uint64_t most);
/* A batch that the peer has confirmed. */
typedef struct rq__pace_batch {
    uint64_t begun_ns;     /* when the log was read for it */
    uint64_t confirmed_ns; /* when the peer confirmed it */
    bool reached_end;      /* the log had no further record when it was read */
    uint64_t backlog;      /* bytes of the log behind it, at confirmed_ns */
} rq__pace_batch;

/* The time to rest after the batch. */
uint64_t rq__pace_rest_ns(rq__pace *p, const rq__pace_batch *b);
/* The part of it that lets records gather for the next batch; for a source whose bandwidth is limited otherwise. */
uint64_t rq__pace_gather_ns(const rq__pace_batch *b);

#endif
