/* SPDX-License-Identifier: Apache-2.0 */
/* What the block cache orders blocks with: nodes that are embedded in them, in queues that know
 * their bytes. Within the room; guarded by the shard's lock. */
#ifndef RQ_HFILE_CACHE_QUEUE_H
#define RQ_HFILE_CACHE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct rq__cache_node {
    uint8_t uses;  /* since it was last looked at; whose queue it is in counts them down */
    uint8_t queue; /* which of its owner's queues */
    uint64_t hash; /* of the block's key */
    size_t charge; /* bytes */
    struct rq__cache_node *newer, *older;
} rq__cache_node;

#define RQ__CACHE_USES_MAX 3

/* What a hit does, whatever queue the node is in. */
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
