/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: the caller is notified of the end of a procedure and need not poll. A watch is in its
 * procedure's list until its task is posted. Both the list and the posting are under
 * procedures.lock. */
#include "catalog/proc_priv.h"

/* A watch keeps a call and its memory, so their number is limited. */
#define WATCHES_MAX 1024

bool rq_catalog_procedure_watch(rq_catalog *c, uint64_t proc_id, rq_procedure_watch *watch)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    rq__proc *p = ps->stopping ? NULL : rq__procs_active(ps, proc_id);
    bool watched = p != NULL && !p->parked && ps->watches < WATCHES_MAX;
    if (watched) {
        watch->next = p->watches;
        watch->at = &p->watches;
        if (watch->next != NULL) watch->next->at = &watch->next;
        p->watches = watch;
        ps->watches++;
    }
    pthread_mutex_unlock(&ps->lock);
    return watched;
}

bool rq_catalog_procedure_unwatch(rq_catalog *c, rq_procedure_watch *watch)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    bool watched = watch->at != NULL;
    if (watched) {
        *watch->at = watch->next;
        if (watch->next != NULL) watch->next->at = watch->at;
        watch->at = NULL;
        ps->watches--;
    }
    pthread_mutex_unlock(&ps->lock);
    return watched;
}

void rq__procs_notify_watches(rq__procedures *ps, rq__proc *p)
{
    while (p->watches != NULL) {
        rq_procedure_watch *w = p->watches;
        p->watches = w->next;
        w->at = NULL;
        ps->watches--;
        rq_lane_post(w->lane, &w->task); /* it may be gone then */
    }
}
