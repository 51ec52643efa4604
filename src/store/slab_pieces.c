/* SPDX-License-Identifier: Apache-2.0 */
/* A buddy allocator inside slabs; contract in slab_pieces.h. Under AddressSanitizer all pieces come
 * from malloc, so that it detects overruns. */
#include "store/slab_pieces.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define UNITS (RQ_SLAB_BYTES / RQ_PIECE_MIN)
#define ORDERS 7 /* sizes of a piece: RQ_PIECE_MIN << order; the next size is a whole slab */
_Static_assert(UNITS == 1u << ORDERS, "a slab is twice the largest piece");

/* A free piece's first bytes. */
typedef struct free_piece {
    struct free_piece *next;
    struct free_piece **link;
} free_piece;

/* A slab that is cut. */
typedef struct cut {
    rq_huge_part part;
    uint8_t free[UNITS]; /* order + 1 of the free piece that begins there; 0: none */
} cut;

struct rq_slab_pieces {
    rq_slab_pool *pool;
    pthread_mutex_t lock;
    free_piece *free[ORDERS] RQ_GUARDED_BY(lock); /* last in, first out */
    rq_huge_index cuts RQ_GUARDED_BY(lock);
};

rq_err rq__slab_pieces_new(rq_slab_pool *pool, rq_slab_pieces **ret)
{
    rq_slab_pieces *p = calloc(1, sizeof *p);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p->pool = pool;
    pthread_mutex_init(&p->lock, NULL);
    *ret = p;
    return RQ_OK;
}

void rq__slab_pieces_free(rq_slab_pieces *p)
{
    if (p == NULL) return;
    RQ_ASSERT(p->cuts.count == 0);
    rq_huge_index_clear(&p->cuts);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

bool rq__slab_is_piece(size_t size)
{
    return size >= RQ_PIECE_MIN && size < RQ_SLAB_BYTES && (size & (size - 1)) == 0;
}

static unsigned order_of(size_t size)
{
    return (unsigned)__builtin_ctzll(size / RQ_PIECE_MIN);
}

/* REQUIRES: lock; so do the following functions. */
static cut *cut_of(const rq_slab_pieces *p, const void *piece)
{
    size_t at;
    return RQ_CONTAINER_OF(rq_huge_index_of(&p->cuts, piece, &at), cut, part);
}

static void insert_free(rq_slab_pieces *p, cut *c, size_t unit, unsigned order)
{
    free_piece *f = (free_piece *)(void *)(c->part.base + unit * RQ_PIECE_MIN);
    f->next = p->free[order];
    f->link = &p->free[order];
    if (f->next != NULL) f->next->link = &f->next;
    p->free[order] = f;
    c->free[unit] = (uint8_t)(order + 1);
}

static void remove_free(cut *c, size_t unit)
{
    free_piece *f = (free_piece *)(void *)(c->part.base + unit * RQ_PIECE_MIN);
    *f->link = f->next;
    if (f->next != NULL) f->next->link = f->link;
    c->free[unit] = 0;
}

/* A slab becomes two halves. */
static bool add_cut(rq_slab_pieces *p, void *slab, cut *c)
{
    if (!rq_huge_index_reserve(&p->cuts)) return false;
    c->part.base = slab;
    rq_huge_index_insert(&p->cuts, &c->part);
    insert_free(p, c, UNITS / 2, ORDERS - 1);
    insert_free(p, c, 0, ORDERS - 1);
    return true;
}

static void remove_cut(rq_slab_pieces *p, const cut *c)
{
    rq_huge_index_remove(&p->cuts, rq_huge_index_find(&p->cuts, c->part.base));
}

/* A piece of that order, cut from the smallest free one that fits; NULL: there is none. */
static void *take_free(rq_slab_pieces *p, unsigned order)
{
    unsigned from = order;
    while (from < ORDERS && p->free[from] == NULL)
        from++;
    if (from == ORDERS) return NULL;
    uint8_t *piece = (uint8_t *)p->free[from];
    cut *c = cut_of(p, piece);
    size_t unit = (size_t)(piece - c->part.base) / RQ_PIECE_MIN;
    remove_free(c, unit);
    while (from-- > order) /* the upper half stays */
        insert_free(p, c, unit + ((size_t)1 << from), from);
    return piece;
}

/* A piece of a new slab from the pool. Runs without the lock, since the pool may ask the kernel. If
 * another thread has added a slab meanwhile, the new one is returned: an unused slab would never go
 * back to the pool. */
static void *take_of_new(rq_slab_pieces *p, unsigned order)
{
    cut *c = calloc(1, sizeof *c);
    void *slab = c == NULL ? NULL : rq__slab_pool_take(p->pool);
    pthread_mutex_lock(&p->lock);
    void *piece = take_free(p, order);
    bool cuts = piece == NULL && slab != NULL && add_cut(p, slab, c);
    if (cuts) piece = take_free(p, order);
    pthread_mutex_unlock(&p->lock);
    if (cuts) return piece;
    if (slab != NULL) rq__slab_pool_give(p->pool, slab);
    free(c);
    return piece;
}

void *rq__slab_piece_take(rq_slab_pieces *p, size_t size)
{
    RQ_ASSERT(rq__slab_is_piece(size));
    if (RQ_ASAN) return malloc(size);
    pthread_mutex_lock(&p->lock);
    void *piece = take_free(p, order_of(size));
    pthread_mutex_unlock(&p->lock);
    return piece != NULL ? piece : take_of_new(p, order_of(size));
}

void rq__slab_piece_give(rq_slab_pieces *p, void *piece, size_t size)
{
    if (RQ_ASAN) {
        free(piece);
        return;
    }
    unsigned order = order_of(size);
    pthread_mutex_lock(&p->lock);
    cut *c = cut_of(p, piece);
    size_t unit = (size_t)((uint8_t *)piece - c->part.base) / RQ_PIECE_MIN;
    for (; order < ORDERS; order++) {
        size_t other = unit ^ (size_t)1 << order;
        if (c->free[other] != order + 1) break;
        remove_free(c, other);
        unit &= ~((size_t)1 << order);
    }
    bool whole = order == ORDERS;
    if (whole)
        remove_cut(p, c);
    else
        insert_free(p, c, unit, order);
    pthread_mutex_unlock(&p->lock);
    if (!whole) return;
    rq__slab_pool_give(p->pool, c->part.base);
    free(c);
}
