/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiescent-state reclamation; contract in epoch.h.
 *
 * A global counter rises with every retirement. A member in a read section shows the counter's
 * value at entry; a retired node carries the counter's value *after* its own step, so a member that
 * entered later shows at least that much and cannot have seen the node. A node may be released once
 * every member is outside a section or shows a value >= the node's.
 */
#include "base/epoch.h"

#include <pthread.h>
#include <stdlib.h>

struct rq_epoch {
    _Atomic uint64_t now; /* starts at 1: 0 in a member means "outside" */
    pthread_mutex_t lock;
    rq_epoch_member members RQ_GUARDED_BY(lock); /* ring */
    rq_epoch_node *oldest RQ_GUARDED_BY(lock);
    rq_epoch_node *newest RQ_GUARDED_BY(lock);
    _Atomic size_t waiting;
};

rq_err rq_epoch_new(rq_epoch **ret)
{
    rq_epoch *e = calloc(1, sizeof *e);
    if (e == NULL) return RQ_E_NO_MEMORY;
    atomic_init(&e->now, 1);
    pthread_mutex_init(&e->lock, NULL);
    e->members.next = e->members.prev = &e->members;
    *ret = e;
    return RQ_OK;
}

/* The nodes that no member can see any more, oldest first. REQUIRES: lock held. */
static rq_epoch_node *take_free(rq_epoch *e)
{
    uint64_t min = UINT64_MAX;
    for (rq_epoch_member *m = e->members.next; m != &e->members; m = m->next) {
        uint64_t seen = atomic_load(&m->seen);
        if (seen != 0 && seen < min) min = seen;
    }
    rq_epoch_node *head = e->oldest;
    rq_epoch_node *last = NULL;
    size_t count = 0;
    for (rq_epoch_node *n = head; n != NULL && n->retired_at <= min; n = n->next) {
        last = n;
        count++;
    }
    if (last == NULL) return NULL;
    e->oldest = last->next;
    if (e->oldest == NULL) e->newest = NULL;
    last->next = NULL;
    atomic_fetch_sub(&e->waiting, count);
    return head;
}

static void release_all(rq_epoch_node *n)
{
    while (n != NULL) {
        rq_epoch_node *next = n->next; /* release frees the node */
        n->release(n);
        n = next;
    }
}

void rq_epoch_collect(rq_epoch *e)
{
    if (atomic_load_explicit(&e->waiting, memory_order_relaxed) == 0) return;
    if (pthread_mutex_trylock(&e->lock) != 0) return; /* another thread collects or retires */
    rq_epoch_node *list = take_free(e);
    pthread_mutex_unlock(&e->lock);
    release_all(list);
}

void rq_epoch_retire(rq_epoch *e, rq_epoch_node *node, void (*release)(rq_epoch_node *node))
{
    node->release = release;
    node->next = NULL;
    pthread_mutex_lock(&e->lock);
    node->retired_at = atomic_fetch_add(&e->now, 1) + 1;
    if (e->newest != NULL)
        e->newest->next = node;
    else
        e->oldest = node;
    e->newest = node;
    atomic_fetch_add(&e->waiting, 1);
    pthread_mutex_unlock(&e->lock);
}

void rq_epoch_join(rq_epoch *e, rq_epoch_member *m)
{
    atomic_init(&m->seen, 0);
    pthread_mutex_lock(&e->lock);
    m->prev = &e->members;
    m->next = e->members.next;
    m->next->prev = m;
    e->members.next = m;
    pthread_mutex_unlock(&e->lock);
}

void rq_epoch_leave(rq_epoch *e, rq_epoch_member *m)
{
    pthread_mutex_lock(&e->lock);
    m->prev->next = m->next;
    m->next->prev = m->prev;
    pthread_mutex_unlock(&e->lock);
}

void rq_epoch_enter(rq_epoch *e, rq_epoch_member *m)
{
    /* A full barrier: the reader's loads must not move before its entry becomes visible to
     * collectors. A collector that does not see the entry may release nodes that carry a newer
     * value than the reader shows, so the reader must see that these nodes are unlinked. An
     * exchange, not a store and a fence, because ThreadSanitizer does not understand fences. */
    (void)atomic_exchange(&m->seen, atomic_load(&e->now));
}

void rq_epoch_exit(rq_epoch *e, rq_epoch_member *m)
{
    (void)e;
    atomic_store_explicit(&m->seen, 0, memory_order_release);
}

void rq_epoch_pin(rq_epoch *e, rq_epoch_member *m)
{
    rq_epoch_join(e, m);
    rq_epoch_enter(e, m);
}

void rq_epoch_unpin(rq_epoch *e, rq_epoch_member *m)
{
    rq_epoch_exit(e, m);
    rq_epoch_leave(e, m);
}

void rq_epoch_free(rq_epoch *e)
{
    if (e == NULL) return;
    RQ_ASSERT(e->members.next == &e->members);
    /* A release may retire more nodes (a version its segments): repeat until none is left. */
    while (e->oldest != NULL) {
        rq_epoch_node *list = e->oldest;
        e->oldest = e->newest = NULL;
        release_all(list);
    }
    pthread_mutex_destroy(&e->lock);
    free(e);
}
