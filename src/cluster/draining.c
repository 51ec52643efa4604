/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that get no further regions: those that drain, because an operator has decommissioned them, and those that end in
 * order. Regions that they have stay, until the caller moves them.
 *
 * A mark is of a server's name, with its start code: a process that starts again at the address is another server. It is kept on
 * storage by the caller, so that the next master has it. HBASE: ServerManager.addServerToDrainList, createDestinationServersList.
 */
#include "cluster/remote_priv.h"

#include <stdlib.h>
#include <string.h>

struct rq__draining {
    rq__draining *next;
    const rq_server_name *name; /* a reference */
};

/* The place in the list, or its end. REQUIRES: lock held. */
static rq__draining **find(rq_remote *m, const rq_server_name *name)
{
    rq__draining **at = &m->draining;
    while (*at != NULL && strcmp((*at)->name->text, name->text) != 0)
        at = &(*at)->next;
    return at;
}

/* REQUIRES: lock held. */
static void drop(rq__draining **at)
{
    rq__draining *d = *at;
    *at = d->next;
    rq_server_name_unref(d->name);
    free(d);
}

/* REQUIRES: lock held. */
static rq_err add(rq_remote *m, const rq_server_name *name)
{
    rq__draining **at = find(m, name);
    if (*at != NULL) return RQ_OK;
    rq__draining *d = calloc(1, sizeof *d);
    if (d == NULL) return RQ_E_NO_MEMORY;
    d->name = rq_server_name_new(name);
    if (d->name == NULL) {
        free(d);
        return RQ_E_NO_MEMORY;
    }
    *at = d;
    return RQ_OK;
}

/* REQUIRES: lock held. */
static void drop_if_there(rq_remote *m, const rq_server_name *name)
{
    rq__draining **at = find(m, name);
    if (*at != NULL) drop(at);
}

rq_err rq_remote_set_draining(rq_remote *m, const rq_server_name *server, bool drains)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&m->lock);
    if (drains)
        rc = add(m, server);
    else
        drop_if_there(m, server);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

rq_err rq_remote_draining(rq_remote *m, rq_arena *arena, const rq_server_name ***ret,
                          size_t *ret_count)
{
    size_t count = 0;
    *ret_count = 0;
    pthread_mutex_lock(&m->lock);
    for (const rq__draining *d = m->draining; d != NULL; d = d->next)
        count++;
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    for (const rq__draining *d = *ret == NULL ? NULL : m->draining; d != NULL; d = d->next)
        (*ret)[(*ret_count)++] = rq_server_name_ref(d->name);
    pthread_mutex_unlock(&m->lock);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

bool rq__draining_has_host(rq_remote *m, const char *host)
{
    const rq__draining *d = m->draining;
    while (d != NULL && strcmp(d->name->host, host) != 0)
        d = d->next;
    return d != NULL;
}

bool rq__server_takes_regions(rq_remote *m, const rq__server *s)
{
    return !s->is_leaving && *find(m, s->name) == NULL;
}

void rq__draining_clear(rq_remote *m)
{
    while (m->draining != NULL)
        drop(&m->draining);
}

/* --- functions of the table of calls ---------------------------------------------------------- */

rq_err rq__remote_draining(void *ctx, rq_arena *arena, const rq_server_name ***ret,
                           size_t *ret_count)
{
    return rq_remote_draining(ctx, arena, ret, ret_count);
}

bool rq__remote_is_draining(void *ctx, const rq_server_name *server)
{
    rq_remote *m = ctx;
    pthread_mutex_lock(&m->lock);
    bool drains = *find(m, server) != NULL;
    pthread_mutex_unlock(&m->lock);
    return drains;
}

bool rq__remote_takes_regions(void *ctx, const rq_server_name *server)
{
    rq_remote *m = ctx;
    pthread_mutex_lock(&m->lock);
    const rq__server *s = rq__server_find(m, server);
    bool takes = s != NULL && rq__server_takes_regions(m, s);
    pthread_mutex_unlock(&m->lock);
    return takes;
}

/* On storage first: what has been answered outlives this master. */
rq_err rq__remote_drain(void *ctx, const rq_server_name *server, bool drains, rq_error *why)
{
    rq_remote *m = ctx;
    if (drains && !rq_remote_is_up(m, server)) {
        rq_log_write_limited(m->o.env->log, &m->not_running, RQ_LOG_WARN, "cluster",
                             "%s is not running and cannot be decommissioned", server->text);
        return RQ_OK;
    }
    if (m->o.keep_draining != NULL) RQ_TRY(m->o.keep_draining(m->o.ctx, server, drains, why));
    if (rq_remote_set_draining(m, server, drains) != RQ_OK) return rq_no_memory(why);
    rq_log_info(m->o.env->log, "cluster", "%s is %s", server->text,
                drains ? "decommissioned: it gets no more regions"
                       : "recommissioned: it may get regions again");
    return RQ_OK;
}
