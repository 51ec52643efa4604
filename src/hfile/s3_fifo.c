/* SPDX-License-Identifier: Apache-2.0 */
/* S3-FIFO; see the drawing in s3_fifo.h. Each step of an eviction decrements a use count or removes
 * a node, so it terminates. */
#include "hfile/s3_fifo.h"

#include "base/macros.h"

#include <stdbool.h>
#include <stdlib.h>

/* Cache bytes per ghost entry: about one entry for each block that fits. */
#define GHOST_BYTES (32 * 1024)

enum { IN_SMALL, IN_MAIN };

rq_err rq__s3_fifo_init(rq__s3_fifo *p, uint64_t capacity)
{
    size_t ghosts = 64;
    while (ghosts < capacity / GHOST_BYTES)
        ghosts *= 2;
    *p = (rq__s3_fifo){.ghosts = calloc(ghosts, sizeof(*p->ghosts)), .ghost_mask = ghosts - 1};
    return p->ghosts == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

void rq__s3_fifo_clear(rq__s3_fifo *p)
{
    free(p->ghosts);
    p->ghosts = NULL;
}

static rq__cache_queue *queue_of(rq__s3_fifo *p, const rq__cache_node *n)
{
    return n->queue == IN_SMALL ? &p->small : &p->main;
}

static void push(rq__s3_fifo *p, rq__cache_node *n, uint8_t queue)
{
    n->queue = queue;
    n->uses = 0;
    rq__cache_queue_push(queue_of(p, n), n);
}

/* 0 is an empty slot. */
static uint32_t fingerprint(uint64_t hash)
{
    return (uint32_t)hash | 1;
}

static uint32_t *ghost_of(rq__s3_fifo *p, uint64_t hash)
{
    return &p->ghosts[(hash >> 16) & p->ghost_mask];
}

void rq__s3_fifo_insert(rq__s3_fifo *p, rq__cache_node *n)
{
    uint32_t *ghost = ghost_of(p, n->hash);
    bool was_here = *ghost == fingerprint(n->hash);
    if (was_here) *ghost = 0;
    push(p, n, was_here ? IN_MAIN : IN_SMALL);
}

void rq__s3_fifo_remove(rq__s3_fifo *p, rq__cache_node *n)
{
    rq__cache_queue_remove(queue_of(p, n), n);
}

void rq__s3_fifo_grow(rq__s3_fifo *p, rq__cache_node *n, size_t more)
{
    n->charge += more;
    queue_of(p, n)->bytes += more;
}

rq__cache_node *rq__s3_fifo_evict(rq__s3_fifo *p)
{
    for (;;) {
        rq__cache_node *n = p->small.oldest;
        if (n != NULL && (p->main.oldest == NULL || p->small.bytes > rq__s3_fifo_bytes(p) / 10)) {
            bool used = n->uses > 1;
            rq__cache_queue_remove(&p->small, n);
            if (!used) {
                *ghost_of(p, n->hash) = fingerprint(n->hash);
                return n;
            }
            push(p, n, IN_MAIN);
            continue;
        }
        n = p->main.oldest;
        if (n == NULL) return NULL;
        rq__cache_queue_remove(&p->main, n);
        if (n->uses == 0) return n;
        uint8_t uses = (uint8_t)(n->uses - 1);
        push(p, n, IN_MAIN);
        n->uses = uses;
    }
}
