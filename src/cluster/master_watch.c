/* SPDX-License-Identifier: Apache-2.0 */
/* A standby's watch over the active master; see master_watch.h. */
#include "cluster/master_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS 2

/* A message without orders, until its answer. */
typedef struct probe {
    rq_master_watch *owner;
    const rq_server_name *server; /* a reference */
    rq_remote_request request;
} probe;

struct rq_master_watch {
    rq_master_watch_options o;
    pthread_mutex_t lock;         /* guards the fields below; not held while something is sent */
    const rq_server_name *server; /* a reference; NULL: none is watched */
    const probe *current;         /* its answer counts; NULL: none is awaited */
    unsigned refusals;            /* in a row */
    bool heard;                   /* it was connected, or has answered */
    /* The view that must still name it; 0: not asked for. The checking thread's alone. */
    uint64_t wanted;
};

static void answered(rq_remote_request *r, rq_err rc, const rq_error *why)
{
    probe *p = RQ_CONTAINER_OF(r, probe, request);
    rq_master_watch *w = p->owner;
    (void)why; /* only refusals count: any other failure may be of a process that runs */
    pthread_mutex_lock(&w->lock);
    if (w->current == p) {
        w->refusals = rc != RQ_OK && r->refused ? w->refusals + 1 : 0;
        w->heard |= rc == RQ_OK;
        w->current = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    rq_server_name_unref(p->server);
    free(p);
}

/* NULL without memory: then the next check makes it. REQUIRES: lock held. */
static probe *probe_new(rq_master_watch *w)
{
    probe *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->owner = w;
    p->server = rq_server_name_ref(w->server);
    p->request = (rq_remote_request){.server = p->server, .done = answered};
    w->current = p;
    return p;
}

/* What was found before does not count any more, nor does the answer that is awaited. REQUIRES: lock held. */
static void forget(rq_master_watch *w)
{
    w->refusals = 0;
    w->current = NULL;
}

static bool same_server(const rq_server_name *a, const rq_server_name *b)
{
    return a != NULL && b != NULL ? strcmp(a->text, b->text) == 0 : a == b;
}

/* REQUIRES: lock held. */
static void watch(rq_master_watch *w, const rq_server_name *server)
{
    if (same_server(w->server, server)) return;
    rq_server_name_unref(w->server);
    w->server = server == NULL ? NULL : rq_server_name_ref(server);
    w->heard = false;
    w->wanted = 0;
    forget(w);
}

/* Whether a server whose address refuses connections was killed: it is not marked as leaving, and a view that was read after
 * the mark was looked for still names the server as the master. The answer takes several checks. */
static bool was_killed(rq_master_watch *w, const rq_server_name *server, uint64_t view)
{
    if (w->wanted != 0) return view >= w->wanted;
    if (w->o.is_leaving(w->o.ctx, server)) return false;
    if (w->o.read_again(w->o.ctx, &w->wanted) != RQ_OK) w->wanted = 0;
    return false;
}

bool rq_master_watch_check(rq_master_watch *w, const rq_server_name *server, uint64_t view)
{
    probe *p = NULL;
    bool connected = server != NULL && w->o.is_connected(w->o.ctx, server);
    pthread_mutex_lock(&w->lock);
    watch(w, server);
    if (connected) forget(w); /* refusals while it is connected are a firewall's */
    w->heard |= connected;
    bool refuses = w->heard && w->refusals >= REFUSALS;
    if (server != NULL && !connected && w->current == NULL) p = probe_new(w);
    pthread_mutex_unlock(&w->lock);
    if (p != NULL) w->o.send(w->o.ctx, &p->request);
    if (!refuses) w->wanted = 0;
    return refuses && was_killed(w, server, view);
}

rq_err rq_master_watch_new(const rq_master_watch_options *o, rq_master_watch **ret)
{
    rq_master_watch *w = calloc(1, sizeof *w);
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->o = *o;
    pthread_mutex_init(&w->lock, NULL);
    *ret = w;
    return RQ_OK;
}

void rq_master_watch_free(rq_master_watch *w)
{
    if (w == NULL) return;
    rq_server_name_unref(w->server);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
