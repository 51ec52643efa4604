/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the host publishes itself, in a process without a master and so without a catalog.
 *
 *     rq__own_name_begin ─► OPENING ─► rq__own_name_opened ─► rq_host_serve ─► OPEN ─► rq__own_name_end ─► [gone]
 *
 * A region is served once the master has accepted the report that it is open: until then hbase:meta does not
 * name this server. All memory of an entry is allocated at the beginning, so that serving cannot fail. Entries
 * that lookups may have found are freed through the epoch.
 */
#include "host/host_priv.h"

#include <sched.h>
#include <stdlib.h>

struct rq__own_name {
    rq_host *host;
    rq__named named; /* in host->own */
    rq_epoch_node retired;
    rq_arena arena; /* of the info */
    rq_region_info info;
    rq_host_region opening, open;
    const rq_host_region *shown; /* `opening` or `open`: the entry in host->names */
};

static rq__own_name *own_of(rq__named *n)
{
    return n == NULL ? NULL : RQ_CONTAINER_OF(n, rq__own_name, named);
}

static void own_free(rq__own_name *o)
{
    if (o->open.region != NULL) rq_region_unref(o->open.region);
    rq_server_name_unref(o->open.server);
    rq_arena_clear(&o->arena);
    free(o);
}

static void release(rq_epoch_node *node)
{
    rq__own_name *o = RQ_CONTAINER_OF(node, rq__own_name, retired);
    rq_host *h = o->host;
    own_free(o);
    atomic_fetch_sub_explicit(&h->own_retired, 1, memory_order_release);
}

void rq__own_names_clear(rq_host *h)
{
    /* Without readers one collection is enough, unless another thread is collecting right now. */
    while (atomic_load_explicit(&h->own_retired, memory_order_acquire) > 0) {
        rq_epoch_collect(h->env->epoch);
        sched_yield();
    }
}

static rq_err own_new(rq_host *h, const rq_region_info *info, rq__own_name **ret)
{
    rq__own_name *o = calloc(1, sizeof *o);
    if (o == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq_region_info_copy(&o->arena, info, &o->info);
    if (rc != RQ_OK) {
        own_free(o);
        return rc;
    }
    o->host = h;
    memcpy(o->named.encoded, o->info.encoded, sizeof o->named.encoded);
    o->open = (rq_host_region){.info = &o->info,
                               .server = rq_server_name_ref(h->name),
                               .state = RQ_REGION_OPEN,
                               .changed_ms = h->env->executor->now_ms(h->env->executor)};
    o->opening = o->open;
    o->opening.state = RQ_REGION_OPENING;
    o->shown = &o->opening;
    *ret = o;
    return RQ_OK;
}

rq_err rq__own_name_begin(rq_host *h, const rq_region_info *info)
{
    rq__own_name *o;
    if (!h->names_itself) return RQ_OK;
    RQ_TRY(own_new(h, info, &o));
    pthread_mutex_lock(&h->lock);
    bool known = rq__by_name_find(&h->own, info->encoded) != NULL; /* it is open already */
    rq_err rc = known ? RQ_OK : rq_region_names_reserve(&h->names, &o->shown, 1);
    if (!known && rc == RQ_OK) {
        rq_region_names_put(&h->names, o->shown);
        rq__by_name_put(&h->own, &o->named);
        o = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    if (o != NULL) own_free(o);
    return rc;
}

void rq__own_name_opened(rq_host *h, rq_region *r, int64_t open_seqnum)
{
    if (!h->names_itself) return;
    pthread_mutex_lock(&h->lock);
    rq__own_name *o = own_of(rq__by_name_find(&h->own, rq_region_get_info(r)->encoded));
    if (o != NULL && o->open.region == NULL) {
        o->open.region = rq_region_ref(r);
        o->open.open_seqnum = open_seqnum;
    }
    pthread_mutex_unlock(&h->lock);
}

void rq_host_serve(rq_host *h, const rq_region_info *info)
{
    pthread_mutex_lock(&h->lock);
    rq__own_name *o = own_of(rq__by_name_find(&h->own, info->encoded));
    if (o != NULL && o->open.region != NULL && o->shown != &o->open) {
        o->shown = &o->open;
        rq_region_names_put(&h->names, o->shown); /* replaces the earlier entry */
    }
    pthread_mutex_unlock(&h->lock);
}

static void retire(rq_host *h, rq__own_name *o)
{
    atomic_fetch_add_explicit(&h->own_retired, 1, memory_order_relaxed);
    rq_epoch_retire(h->env->epoch, &o->retired, release);
}

void rq__own_name_end(rq_host *h, const char *encoded)
{
    if (!h->names_itself) return;
    pthread_mutex_lock(&h->lock);
    rq__own_name *o = own_of(rq__by_name_find(&h->own, encoded));
    if (o != NULL) {
        rq__by_name_remove(&h->own, &o->named);
        rq_region_names_remove(&h->names, o->shown);
    }
    pthread_mutex_unlock(&h->lock);
    if (o == NULL) return;
    retire(h, o);
    rq_epoch_collect(h->env->epoch); /* without requests no other thread collects */
}

void rq_host_name_no_more(rq_host *h)
{
    rq__own_name *o;
    pthread_mutex_lock(&h->lock);
    h->names_itself = false;
    while ((o = own_of(rq__by_name_any(&h->own))) != NULL) {
        rq__by_name_remove(&h->own, &o->named);
        rq_region_names_remove(&h->names, o->shown);
        retire(h, o);
    }
    pthread_mutex_unlock(&h->lock);
    rq_epoch_collect(h->env->epoch);
}

void rq_host_name_itself(rq_host *h)
{
    h->names_itself = true;
}

bool rq_host_names_itself(const rq_host *h)
{
    return h->names_itself;
}
