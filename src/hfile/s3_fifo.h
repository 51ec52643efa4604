/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S3-FIFO (Yang et al., SOSP 2023) chooses the data block to evict. Within the room.
 *
 *            miss              used twice
 *   block ─────────► SMALL ─────────────────► MAIN ◄──┐ used: second chance
 *                      │ else                  │ └────┘
 *                      ▼                       ▼ unused
 *                    GHOST (keys only) ─ miss ─► MAIN at once
 *
 * SMALL holds a tenth of the bytes; blocks of a scan pass through it. A hit only increments a
 * counter (rq__cache_node_use) and changes no list. Comparison with W-TinyLFU and LRU: `make
 * bench-cache`, docs/lab/cache.md. Not thread-safe: guarded by the shard's lock.
 */
#ifndef RQ_HFILE_S3_FIFO_H
#define RQ_HFILE_S3_FIFO_H

#include "base/err.h"
#include "hfile/cache_queue.h"

typedef struct rq__s3_fifo {
    rq__cache_queue small, main;
    uint32_t *ghosts; /* fingerprints; a newer key overwrites the one in its slot */
    size_t ghost_mask;
} rq__s3_fifo;

/* `capacity`: expected size in bytes; determines the number of ghosts. */
RQ_NODISCARD
rq_err rq__s3_fifo_init(rq__s3_fifo *p, uint64_t capacity);
void rq__s3_fifo_clear(rq__s3_fifo *p);

static inline uint64_t rq__s3_fifo_bytes(const rq__s3_fifo *p)
{
    return p->small.bytes + p->main.bytes;
}

void rq__s3_fifo_insert(rq__s3_fifo *p, rq__cache_node *n);
void rq__s3_fifo_remove(rq__s3_fifo *p, rq__cache_node *n);
/* Adds bytes to the charge of a queued node. */
void rq__s3_fifo_grow(rq__s3_fifo *p, rq__cache_node *n, size_t more);
/* Removes and returns the node to evict; NULL: it is empty. */
rq__cache_node *rq__s3_fifo_evict(rq__s3_fifo *p);

#endif
