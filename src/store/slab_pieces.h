/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a pool's slabs, for small memstores; with a thousand regions most are small. Memory
 * from malloc would be scattered over small pages, so that a write would wait for the page table at
 * every step, and the loop would fault these pages in. Slabs are huge pages that the pool has
 * touched before (slab_pool.h).
 *
 * A buddy allocator: a piece's size is a power of two and its offset in the slab a multiple of it.
 * A freed piece is merged with its buddy if that is free, and a whole slab goes back to the pool.
 * Any thread; one lock, taken once per about ten kilobytes of cells.
 */
#ifndef RQ_STORE_SLAB_PIECES_H
#define RQ_STORE_SLAB_PIECES_H

#include "store/slab_pool.h"

#define RQ_PIECE_MIN ((size_t)16 * 1024)

typedef struct rq_slab_pieces rq_slab_pieces;

RQ_NODISCARD
rq_err rq__slab_pieces_new(rq_slab_pool *pool, rq_slab_pieces **ret);
/* REQUIRES: all pieces were given back. NULL is allowed. */
void rq__slab_pieces_free(rq_slab_pieces *p);
/* Whether a size can be a piece: a power of two from RQ_PIECE_MIN to half a slab. */
bool rq__slab_is_piece(size_t size);
/* Takes a piece; not zeroed. NULL when memory is exhausted. REQUIRES: rq__slab_is_piece(size). */
void *rq__slab_piece_take(rq_slab_pieces *p, size_t size);
void rq__slab_piece_give(rq_slab_pieces *p, void *piece, size_t size);

#endif
