/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a source catches up. A source that is far behind would keep a processor, the disk and
 * the peer busy for minutes, which slows the writes of clients. So while it catches up it ships
 * small batches and rests after each for as long as the batch took, but at most 50 ms: this leaves
 * clients about half of the time. It does not rest if the backlog has not shrunk within a second,
 * so catching up always ends if the peer is fast enough.
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
/* The time to rest after a batch that took from begun_ns to now_ns and left `backlog` bytes of the
 * log. */
uint64_t rq__pace_rest_ns(rq__pace *p, uint64_t begun_ns, uint64_t now_ns, uint64_t backlog);

#endif
