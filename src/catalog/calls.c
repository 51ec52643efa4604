/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the master to servers (host/calls.h), and the steps that wait for their reports.
 *
 *     step: sends p->calls ── all have reported? ─ yes ─► takes them up, continues
 *                                  │ no
 *                     returns RQ_E_AGAIN: the procedure keeps its locks and no thread
 *                                  │
 *                     last report ─► the step runs again, finds p->calls, takes them up
 *
 * A procedure has at most one set of calls. While a set is outstanding the procedure is neither
 * ended nor freed: each call reports exactly once, even if its server dies.
 */
#include "catalog/proc_priv.h"

#include <stdlib.h>

static void reported(rq_region_call *call)
{
    rq__calls *k = call->ctx;
    rq__proc_reported(k);
}

rq__calls *rq__calls_new(rq_catalog *c, rq__proc *p, rq_region_call_kind kind, size_t count)
{
    rq__calls *k = calloc(1, sizeof *k + count * sizeof k->list[0]);
    if (k == NULL) return NULL;
    k->catalog = c;
    k->proc = p != NULL && p->ops != NULL ? p : NULL;
    k->kind = kind;
    k->count = count;
    for (size_t i = 0; i < count; i++) {
        k->list[i].done = reported;
        k->list[i].ctx = k;
    }
    k->nodes = calloc(count + 1, sizeof *k->nodes);
    if (k->nodes != NULL) return k;
    free(k);
    return NULL;
}

void rq__calls_of_node(rq__calls *k, size_t i, rq__region_node *node)
{
    k->nodes[i] = rq__region_node_ref(node);
    k->list[i].info = &node->info;
    k->list[i].server = rq_server_name_ref(node->pub.server);
}

rq_err rq__calls_with_arenas(rq__calls *k)
{
    k->arenas = calloc(k->count + 1, sizeof *k->arenas);
    if (k->arenas == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < k->count; i++)
        k->list[i].arena = &k->arenas[i];
    return RQ_OK;
}

bool rq__catalog_server_is_up(const rq_catalog *c, const rq_server_name *server)
{
    return c->calls.is_up == NULL || c->calls.is_up(c->calls.ctx, server);
}

rq_err rq__calls_wait(const rq__proc *p)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    bool all = p->calls->out == 0;
    pthread_mutex_unlock(&ps->lock);
    return all ? RQ_OK : RQ_E_AGAIN;
}

rq_err rq__calls_send(rq__calls *k)
{
    rq_catalog *c = k->catalog;
    rq_executor *ex = c->env->executor;
    rq__proc *p = k->proc;
    k->out = k->count;
    if (p != NULL) p->calls = k;
    if (k->count == 0) return RQ_OK;
    if (p == NULL) ex->latch_init(ex, &k->all);
    c->calls.send(c->calls.ctx, k->kind, k->list, k->count);
    if (p != NULL) return rq__calls_wait(p);
    rq_err rc = ex->latch_wait(&k->all);
    ex->latch_destroy(&k->all);
    return rc;
}

rq_err rq__calls_send_rest(rq__calls *k)
{
    rq_catalog *c = k->catalog;
    size_t n = 0;
    for (size_t i = 0; i < k->count; i++)
        n += k->list[i].unsent;
    pthread_mutex_lock(&c->procedures.lock);
    k->out = n;
    pthread_mutex_unlock(&c->procedures.lock);
    for (size_t i = 0; i < k->count; i++) {
        rq_region_call *call = &k->list[i];
        if (!call->unsent) continue;
        free(call->why);
        call->why = NULL;
        call->unsent = false;
        c->calls.send(c->calls.ctx, k->kind, call, 1);
    }
    return rq__calls_wait(k->proc);
}

rq_err rq__calls_undone(const rq__calls *k)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < k->count; i++) {
        if (k->list[i].rc == RQ_E_SERVER_STOPPED) return RQ_E_SERVER_STOPPED;
        if (k->list[i].unsent) rc = RQ_E_NO_MEMORY;
    }
    return rc;
}

rq_err rq__calls_result(const rq__calls *k, rq_error *why)
{
    for (size_t i = 0; i < k->count; i++) {
        const rq_region_call *call = &k->list[i];
        if (call->rc == RQ_OK) continue;
        return rq_fail(why, call->rc, "%s",
                       call->why != NULL ? call->why->message : rq_err_text(call->rc));
    }
    return RQ_OK;
}

void rq__calls_free(rq__calls *k)
{
    if (k == NULL) return;
    for (size_t i = 0; i < k->count; i++) {
        free(k->list[i].why);
        rq_server_name_unref(k->list[i].server);
        rq__region_node_unref(k->nodes[i]);
        if (k->arenas != NULL) rq_arena_clear(&k->arenas[i]);
    }
    free(k->arenas);
    free(k->nodes);
    free(k);
}

void rq__calls_drop(rq__proc *p)
{
    rq__calls_free(p->calls);
    p->calls = NULL;
}
