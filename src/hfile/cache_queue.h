/* SPDX-License-Identifier: Apache-2.0 */
/* The block cache's queues: intrusive nodes in queues that count their bytes. Within the room;
 * guarded by the shard's lock. */
#ifndef RQ_HFILE_CACHE_QUEUE_H
#define RQ_HFILE_CACHE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct rq__cache_node {
    uint8_t uses;  /* hits since the queue's policy last examined it, which resets or decreases
                    * them */
    uint8_t queue; /* number of the queue it is in */
    uint64_t hash; /* hash of the block's key */
    size_t charge; /* bytes */
    struct rq__cache_node *newer, *older;
} rq__cache_node;

#define RQ__CACHE_USES_MAX 3

/* Called on a hit, for nodes in any queue. */
static inline void rq__cache_node_use(rq__cache_node *n)
{
    if (n->uses < RQ__CACHE_USES_MAX) n->uses++;
}

typedef struct rq__cache_queue {
    rq__cache_node *newest, *oldest;
    uint64_t bytes;
} rq__cache_queue;

static inline void rq__cache_queue_push(rq__cache_queue *q, rq__cache_node *n)
{
    n->newer = NULL;
    n->older = q->newest;
    if (q->newest != NULL)
        q->newest->newer = n;
    else
        q->oldest = n;
    q->newest = n;
    q->bytes += n->charge;
}

static inline void rq__cache_queue_remove(rq__cache_queue *q, rq__cache_node *n)
{
    if (n->newer != NULL)
        n->newer->older = n->older;
    else
        q->newest = n->older;
    if (n->older != NULL)
        n->older->newer = n->newer;
    else
        q->oldest = n->newer;
    q->bytes -= n->charge;
}

#endif
