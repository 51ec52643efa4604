/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a pool's slabs, for memstores that are small: with a thousand regions most are. Taken
 * from malloc each would lie on pages of its own, and a write that looks at a region's memstore
 * would wait for the page table at every step; and these pages would be fresh ones, fetched by the
 * loop. Slabs are huge pages that the pool has touched before (slab_pool.h).
 *
 * A buddy allocator: a piece's size is a power of two and so is its place in the slab; a piece that
 * is given back joins its other half when that is free, and a whole slab goes back to the pool.
 * Any thread; one lock, taken once for some ten kilobytes of cells.
 */
#ifndef RQ_STORE_SLAB_PIECES_H
#define RQ_STORE_SLAB_PIECES_H

#include "store/slab_pool.h"

#define RQ_PIECE_MIN ((size_t)16 * 1024)

typedef struct rq_slab_pieces rq_slab_pieces;

RQ_NODISCARD
rq_err rq_slab_pieces_new(rq_slab_pool *pool, rq_slab_pieces **ret);
/* REQUIRES: everything taken was given back. NULL is fine. */
void rq_slab_pieces_free(rq_slab_pieces *p);
/* Of sizes from RQ_PIECE_MIN on, by powers of two, to half a slab: others are none of it. */
bool rq_slab_is_piece(size_t size);
/* NULL when memory is out. The bytes are not zeroed. REQUIRES: rq_slab_is_piece(size). */
void *rq_slab_piece_take(rq_slab_pieces *p, size_t size);
void rq_slab_piece_give(rq_slab_pieces *p, void *piece, size_t size);

#endif
