/* SPDX-License-Identifier: Apache-2.0 */
/* A chained hash that doubles; see by_name.h. */
#include "host/by_name.h"

#include "host/names.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 64

static uint64_t hash_of(const char *encoded)
{
    return rq__name_hash(encoded, strlen(encoded));
}

rq_err rq__by_name_init(rq__by_name *m)
{
    *m =
        (rq__by_name){.buckets = calloc(BUCKETS_MIN, sizeof(rq__named *)), .mask = BUCKETS_MIN - 1};
    return m->buckets == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

void rq__by_name_clear(rq__by_name *m)
{
    free(m->buckets);
    *m = (rq__by_name){0};
}

rq__named *rq__by_name_find(const rq__by_name *m, const char *encoded)
{
    rq__named *n = m->buckets[hash_of(encoded) & m->mask];
    while (n != NULL && strcmp(n->encoded, encoded) != 0)
        n = n->next;
    return n;
}

static void enter(rq__named **buckets, size_t mask, rq__named *n)
{
    rq__named **at = &buckets[hash_of(n->encoded) & mask];
    n->next = *at;
    *at = n;
}

static void grow(rq__by_name *m)
{
    size_t count = (m->mask + 1) * 2;
    rq__named **more = calloc(count, sizeof(rq__named *));
    if (more == NULL) return;
    for (size_t i = 0; i <= m->mask; i++) {
        for (rq__named *n = m->buckets[i], *next; n != NULL; n = next) {
            next = n->next;
            enter(more, count - 1, n);
        }
    }
    free(m->buckets);
    m->buckets = more;
    m->mask = count - 1;
}

void rq__by_name_put(rq__by_name *m, rq__named *n)
{
    if (m->count > m->mask) grow(m);
    enter(m->buckets, m->mask, n);
    m->count++;
}

void rq__by_name_remove(rq__by_name *m, rq__named *n)
{
    rq__named **at = &m->buckets[hash_of(n->encoded) & m->mask];
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    m->count--;
}

rq__named *rq__by_name_any(const rq__by_name *m)
{
    for (size_t i = 0; i <= m->mask && m->count > 0; i++)
        if (m->buckets[i] != NULL) return m->buckets[i];
    return NULL;
}
