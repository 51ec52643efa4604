/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the host publishes itself, in a process without a master and so without a catalog.
 *
 *     rq__own_name_begin ─► OPENING ─► rq__own_name_opened ─► rq_host_serve ─► OPEN ─► rq__own_name_end ─► [gone]
 *
 * A region is served once the master has accepted the report that it is open: until then hbase:meta does not
 * name this server. All memory of an entry is allocated at the beginning, so that serving cannot fail. Entries
 * that lookups may have found are freed through the epoch.
 *
 * A region with REGION_REPLICATION has a name for each replica, too. All its names are entered, served and removed together.
 */
#include "host/host_priv.h"

#include <sched.h>
#include <stdlib.h>

/* The region under one of its names. */
typedef struct own_face {
    rq_region_info info;
    rq_host_region opening, open;
} own_face;

struct rq__own_name {
    rq_host *host;
    rq__named named; /* in host->own, under the region's own name */
    rq_epoch_node retired;
    rq_arena arena; /* of the infos */
    bool is_served; /* host->names has the entries `open`, else `opening` */
    size_t count;
    own_face faces[]; /* the region, then its replicas */
};

static rq__own_name *own_of(rq__named *n)
{
    return n == NULL ? NULL : RQ_CONTAINER_OF(n, rq__own_name, named);
}

static void own_free(rq__own_name *o)
{
    if (o->faces[0].open.region != NULL) rq_region_unref(o->faces[0].open.region);
    rq_server_name_unref(o->faces[0].open.server);
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

static const rq_host_region *shown(const rq__own_name *o, size_t i)
{
    return o->is_served ? &o->faces[i].open : &o->faces[i].opening;
}

static rq_err name_faces(rq__own_name *o, const rq_region_info *info)
{
    RQ_TRY(rq_region_info_copy(&o->arena, info, &o->faces[0].info));
    for (size_t i = 1; i < o->count; i++)
        RQ_TRY(rq_region_info_make(&o->arena, info->ns, info->qualifier, info->start_key,
                                   info->end_key, info->region_id, (int32_t)i, &o->faces[i].info));
    return RQ_OK;
}

static void fill_faces(rq__own_name *o, const rq_server_name *server, int64_t now_ms)
{
    for (size_t i = 0; i < o->count; i++) {
        own_face *f = &o->faces[i];
        f->open = (rq_host_region){
            .info = &f->info, .server = server, .state = RQ_REGION_OPEN, .changed_ms = now_ms};
        f->opening = f->open;
        f->opening.state = RQ_REGION_OPENING;
    }
}

static rq_err own_new(rq_host *h, const rq_region_info *info, size_t count, rq__own_name **ret)
{
    rq__own_name *o = calloc(1, sizeof *o + count * sizeof o->faces[0]);
    if (o == NULL) return RQ_E_NO_MEMORY;
    o->host = h;
    o->count = count;
    rq_err rc = name_faces(o, info);
    if (rc != RQ_OK) {
        own_free(o);
        return rc;
    }
    memcpy(o->named.encoded, info->encoded, sizeof o->named.encoded);
    fill_faces(o, rq_server_name_ref(h->name), h->env->executor->now_ms(h->env->executor));
    *ret = o;
    return RQ_OK;
}

static rq_err reserve(rq_host *h, const rq__own_name *o)
{
    const rq_host_region *list[RQ_REPLICATION_MAX];
    for (size_t i = 0; i < o->count; i++)
        list[i] = shown(o, i);
    return rq_region_names_reserve(&h->names, list, o->count);
}

static void put(rq_host *h, const rq__own_name *o)
{
    for (size_t i = 0; i < o->count; i++)
        rq_region_names_put(&h->names, shown(o, i));
}

static void withdraw(rq_host *h, rq__own_name *o)
{
    rq__by_name_remove(&h->own, &o->named);
    for (size_t i = 0; i < o->count; i++)
        rq_region_names_remove(&h->names, shown(o, i));
}

rq_err rq__own_name_begin(rq_host *h, const rq_region_info *info, int copies)
{
    rq__own_name *o;
    if (!h->names_itself) return RQ_OK;
    RQ_TRY(own_new(h, info,
                   copies < 1                    ? 1
                   : copies > RQ_REPLICATION_MAX ? RQ_REPLICATION_MAX
                                                 : (size_t)copies,
                   &o));
    pthread_mutex_lock(&h->lock);
    bool known = rq__by_name_find(&h->own, info->encoded) != NULL; /* it is open already */
    rq_err rc = known ? RQ_OK : reserve(h, o);
    if (!known && rc == RQ_OK) {
        put(h, o);
        rq__by_name_put(&h->own, &o->named);
        o = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    if (o != NULL) own_free(o);
    return rc;
}

/* The region has one reference for all its names. */
static void note_opened(rq__own_name *o, rq_region *r, int64_t open_seqnum)
{
    (void)rq_region_ref(r);
    for (size_t i = 0; i < o->count; i++) {
        o->faces[i].open.region = r;
        o->faces[i].open.open_seqnum = open_seqnum;
    }
}

void rq__own_name_opened(rq_host *h, rq_region *r, int64_t open_seqnum)
{
    if (!h->names_itself) return;
    pthread_mutex_lock(&h->lock);
    rq__own_name *o = own_of(rq__by_name_find(&h->own, rq_region_get_info(r)->encoded));
    if (o != NULL && o->faces[0].open.region == NULL) note_opened(o, r, open_seqnum);
    pthread_mutex_unlock(&h->lock);
}

void rq_host_serve(rq_host *h, const rq_region_info *info)
{
    pthread_mutex_lock(&h->lock);
    rq__own_name *o = own_of(rq__by_name_find(&h->own, info->encoded));
    if (o != NULL && o->faces[0].open.region != NULL && !o->is_served) {
        o->is_served = true;
        put(h, o); /* replaces the earlier entries */
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
    if (o != NULL) withdraw(h, o);
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
        withdraw(h, o);
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
