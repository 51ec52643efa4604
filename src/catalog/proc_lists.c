/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two lists of procedures: `active`, in the order of arrival, which is the order of their
 * locks, and `finished`, the results, the newest first. And what others may know of either.
 *
 * Both are guarded by procedures.lock: the rq__procs_ functions require it, those declared in
 * procedure.h and catalog.h take it themselves.
 */
#include "catalog/proc_priv.h"

#include <stdlib.h>

/* HBASE: CompletedProcedureCleaner: evict.ttl, acked.evict.ttl. */
#define KEEP_RESULT_MS (15 * 60 * 1000)
#define KEEP_ACKNOWLEDGED_MS (5 * 60 * 1000)
#define KEEP_RESULTS_MAX 10000

void rq__procs_append(rq__procedures *ps, rq__proc *p)
{
    p->next = NULL;
    *ps->active_end = p;
    ps->active_end = &p->next;
}

void rq__procs_remove(rq__procedures *ps, rq__proc *p)
{
    rq__proc **at = &ps->active;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (ps->active_end == &p->next) ps->active_end = at;
    p->next = NULL;
}

void rq__procs_move_to_end(rq__procedures *ps, rq__proc *p)
{
    rq__procs_remove(ps, p);
    rq__procs_append(ps, p);
}

rq__proc *rq__procs_active(rq__procedures *ps, uint64_t id)
{
    rq__proc *p = ps->active;
    while (p != NULL && p->id != id)
        p = p->next;
    return p;
}

void rq__procs_keep(rq__procedures *ps, rq__proc *p)
{
    p->next = ps->finished;
    ps->finished = p;
    ps->finished_count++;
}

rq__proc *rq__procs_by_nonce(rq__procedures *ps, uint64_t group, uint64_t nonce)
{
    if (nonce == 0) return NULL;
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        if (p->nonce == nonce && p->nonce_group == group) return p;
    for (rq__proc *p = ps->finished; p != NULL; p = p->next)
        if (p->nonce == nonce && p->nonce_group == group) return p;
    return NULL;
}

static rq__proc *find_id(rq__procedures *ps, uint64_t id)
{
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        if (p->id == id) return p;
    for (rq__proc *p = ps->finished; p != NULL; p = p->next)
        if (p->id == id) return p;
    return NULL;
}

rq__proc *rq__procs_take_evicted(rq__procedures *ps, int64_t now_ms)
{
    rq__proc *list = NULL;
    size_t kept = 0;
    for (rq__proc **at = &ps->finished; *at != NULL;) {
        rq__proc *p = *at;
        bool old = now_ms - p->updated_ms > KEEP_RESULT_MS ||
                   (p->acknowledged_ms != 0 && now_ms - p->acknowledged_ms > KEEP_ACKNOWLEDGED_MS);
        if (!old && kept < KEEP_RESULTS_MAX) {
            kept++;
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = list;
        list = p;
        ps->finished_count--;
    }
    return list;
}

/* --- what others may know --------------------------------------------------------------------- */

static bool names_region(const rq_region_info *list, size_t count, const rq_region_info *info)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].encoded, info->encoded) == 0) return true;
    return false;
}

bool rq__procedures_own(rq_catalog *c, const rq_region_info *info)
{
    bool own = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !own; p = p->next)
        own = p->prepared && !p->ops->on_namespace && rq_slice_eq(p->ns, info->ns) &&
              rq_slice_eq(p->qualifier, info->qualifier) &&
              (!p->parked || rq__proc_holds_closed(p)) &&
              (!p->ops->on_regions || names_region(p->regions, p->region_count, info) ||
               names_region(p->old_regions, p->old_region_count, info));
    pthread_mutex_unlock(&c->procedures.lock);
    return own;
}

bool rq__procedures_splitting(rq_catalog *c, const rq_region_info *info)
{
    bool found = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !found; p = p->next)
        found = p->ops->kind == RQ_DDL_SPLIT_REGION &&
                rq_slice_eq(p->family, rq_slice_cstr(info->encoded));
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
}

/* REQUIRES: lock held. */
static bool describe(const rq__proc *p, rq_arena *a, rq_procedure *ret)
{
    bool failed = p->finished || p->parked || p->retrying;
    *ret = (rq_procedure){
        .id = p->id,
        .kind = p->ops->kind,
        .ns = rq_arena_copy(a, p->ns),
        .qualifier = rq_arena_copy(a, p->qualifier),
        .user = rq_arena_copy(a, p->user),
        .nonce_group = p->nonce_group,
        .nonce = p->nonce,
        .submitted_ms = p->submitted_ms,
        .updated_ms = p->finished ? p->updated_ms : p->submitted_ms,
        .finished = p->finished,
        .waiting = !p->finished && !p->running,
        .parked = p->parked,
        .step = rq__proc_step_name(p, p->step),
        .rc = failed ? p->rc : RQ_OK,
    };
    if (ret->rc != RQ_OK) ret->message = rq_arena_cstr(a, rq_slice_cstr(p->why.message));
    return ret->ns.ptr != NULL && ret->qualifier.ptr != NULL && ret->user.ptr != NULL &&
           (ret->rc == RQ_OK || ret->message != NULL);
}

bool rq_catalog_procedure(rq_catalog *c, uint64_t proc_id, rq_arena *arena, rq_procedure *ret)
{
    pthread_mutex_lock(&c->procedures.lock);
    const rq__proc *p = find_id(&c->procedures, proc_id);
    bool found = p != NULL && describe(p, arena, ret);
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
}

static int id_order(const void *a, const void *b)
{
    const rq_procedure *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

rq_err rq_catalog_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count)
{
    rq__procedures *ps = &c->procedures;
    rq_err rc = RQ_OK;
    size_t n = 0;
    pthread_mutex_lock(&ps->lock);
    size_t cap = ps->finished_count;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        cap++;
    rq_procedure *list = rq_arena_calloc(arena, cap, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    const rq__proc *heads[] = {ps->active, ps->finished};
    for (size_t i = 0; i < RQ_ARRAY_LEN(heads) && rc == RQ_OK; i++)
        for (const rq__proc *p = heads[i]; p != NULL && rc == RQ_OK; p = p->next)
            rc = describe(p, arena, &list[n++]) ? RQ_OK : RQ_E_NO_MEMORY;
    pthread_mutex_unlock(&ps->lock);
    if (rc != RQ_OK) return rc;
    if (n > 1) qsort(list, n, sizeof *list, id_order);
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

void rq_catalog_procedure_forget(rq_catalog *c, uint64_t proc_id)
{
    pthread_mutex_lock(&c->procedures.lock);
    rq__proc *p = find_id(&c->procedures, proc_id);
    if (p != NULL && p->finished && p->acknowledged_ms == 0)
        p->acknowledged_ms = c->env->executor->now_ms(c->env->executor);
    pthread_mutex_unlock(&c->procedures.lock);
}

const char *rq_ddl_java_class(rq_ddl_kind kind)
{
    const rq__proc_kind *k = rq__proc_kind_of(kind);
    return k == NULL ? "" : k->java_class;
}
