/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table that grows bucket by bucket; see cache_index.h. */
#include "hfile/cache_index.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 64

rq_err rq__cache_index_init(rq__cache_index *x)
{
    *x = (rq__cache_index){.used = BUCKETS_MIN, .half = BUCKETS_MIN, .room = BUCKETS_MIN};
    x->buckets = calloc(x->room, sizeof(rq__cache_link *));
    return x->buckets == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

void rq__cache_index_clear(rq__cache_index *x)
{
    RQ_ASSERT(x->count == 0);
    free(x->buckets);
    x->buckets = NULL;
}

/* Buckets from `half` on are the second halves of those that were split since `used` was a power of two. */
static rq__cache_link **bucket_of(const rq__cache_index *x, uint64_t hash)
{
    size_t i = hash & (2 * x->half - 1);
    return &x->buckets[i < x->used ? i : i & (x->half - 1)];
}

rq__cache_link *rq__cache_index_chain(const rq__cache_index *x, uint64_t hash)
{
    return *bucket_of(x, hash);
}

static bool make_room(rq__cache_index *x)
{
    if (x->used < x->room) return true;
    rq__cache_link **more = realloc(x->buckets, 2 * x->room * sizeof *more);
    if (more == NULL) return false;
    x->buckets = more;
    x->room *= 2;
    return true;
}

static void split(rq__cache_index *x)
{
    if (!make_room(x)) return;
    rq__cache_link **from = &x->buckets[x->used - x->half], **to = &x->buckets[x->used];
    rq__cache_link *l = *from, *next;
    *from = *to = NULL;
    for (; l != NULL; l = next) {
        next = l->next;
        rq__cache_link **into = (l->hash & x->half) != 0 ? to : from;
        l->next = *into;
        *into = l;
    }
    x->used++;
    if (x->used == 2 * x->half) x->half = x->used;
}

void rq__cache_index_add(rq__cache_index *x, rq__cache_link *link, uint64_t hash)
{
    rq__cache_link **bucket = bucket_of(x, hash);
    link->hash = hash;
    link->next = *bucket;
    *bucket = link;
    if (++x->count > x->used) split(x);
}

void rq__cache_index_remove(rq__cache_index *x, rq__cache_link *link)
{
    rq__cache_link **at = bucket_of(x, link->hash);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    x->count--;
}
