/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits REOPEN_REGION procedures, and repeats this for regions whose procedure could not be made for lack of memory
 * ("lost" procedures).
 *
 *   submitted ── no memory ──► lost.any is set, and a timer ── a second ──► all regions are checked ──► submitted
 *                                 ▲────────────────── no memory ───────────────────────┘
 *
 * Without memory the region's name cannot be noted either. So the regions to be reopened are found in the view: regions
 * whose server has ended, that have failed, or that are on no server and in no closed state. If another procedure works
 * on the region, the reopening runs after it, and then does nothing if the region is open. A damaged region, which
 * could not be opened, is tried once more too.
 */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#define AGAIN_NS UINT64_C(1000000000)

/* --- submission ------------------------------------------------------------------------------- */

static void note_lost(rq_catalog *c, const rq_region_info *info)
{
    rq__procedures *ps = &c->procedures;
    rq_executor *ex = c->env->executor;
    rq_log_error(c->env->log, "catalog",
                 "region %s cannot be reopened: out of memory; tried again in 1 s", info->encoded);
    pthread_mutex_lock(&ps->lock);
    if (!ps->stopping && !ps->lost.any) {
        ps->lost.any = true;
        ex->timer_arm(ex, &ps->lost.timer, ps->lane, AGAIN_NS);
    }
    pthread_mutex_unlock(&ps->lock);
}

static void submit(rq_catalog *c, rq__proc *p)
{
    pthread_mutex_lock(&c->procedures.lock);
    if (c->procedures.stopping) {
        pthread_mutex_unlock(&c->procedures.lock);
        rq__proc_free(p);
        return;
    }
    p->id = c->procedures.next_id++;
    rq__procs_append(&c->procedures, p);
    rq__queue_enter(&c->procedures, p);
    rq_task *list = rq__procs_take_startable(&c->procedures);
    pthread_mutex_unlock(&c->procedures.lock);
    rq__procs_start(c, list);
}

void rq__procedures_reopen(rq_catalog *c, const rq_region_info *info, const rq_server_name *left)
{
    rq__proc *p = rq__proc_new(c);
    if (p == NULL || rq__proc_to_reopen(p, info, left) != RQ_OK) {
        rq__proc_free(p);
        note_lost(c, info);
        return;
    }
    submit(c, p);
}

/* --- those that were lost --------------------------------------------------------------------- */

static bool is_to_be_open(const rq_catalog_region *r)
{
    return r->state != RQ_REGION_CLOSED && r->state != RQ_REGION_OFFLINE;
}

static void reopen_if_needed(rq_catalog *c, const rq_catalog_region *r)
{
    if (r->server != NULL && !rq__catalog_server_is_up(c, r->server))
        rq__procedures_reopen(c, r->info, r->server);
    else if (r->region != NULL ? rq_region_has_failed(r->region)
                               : r->server == NULL && is_to_be_open(r))
        rq__procedures_reopen(c, r->info, NULL);
}

static void look_at_tables(rq_catalog *c)
{
    const rq_catalog_table *const *tables;
    size_t count;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    rq_catalog_tables(c, &tables, &count);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < tables[t]->region_count && tables[t]->state == RQ_TABLE_ENABLED; i++)
            reopen_if_needed(c, rq_catalog_table_region(tables[t], i));
    rq_epoch_unpin(c->env->epoch, &m);
}

/* The same for the procedure store's region, which is in no view. */
static void look_at_store(rq_catalog *c)
{
    rq_region *store = NULL;
    if (rq__store_ref(c, &store, NULL) != RQ_OK) return; /* it is being reopened */
    if (rq_region_has_failed(store)) rq__procedures_reopen(c, rq_region_get_info(store), NULL);
    rq_region_unref(store);
}

static void look_again(rq_task *task)
{
    rq__procedures *ps = RQ_CONTAINER_OF(task, rq__procedures, lost.task);
    rq_catalog *c = RQ_CONTAINER_OF(ps, rq_catalog, procedures);
    pthread_mutex_lock(&ps->lock);
    ps->lost.any = false; /* from here on a loss counts again */
    pthread_mutex_unlock(&ps->lock);
    look_at_tables(c);
    look_at_store(c);
    rq__procs_task_done(c);
}

static void due(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__procedures *ps = RQ_CONTAINER_OF(timer, rq__procedures, lost.timer);
    rq_catalog *c = RQ_CONTAINER_OF(ps, rq_catalog, procedures);
    if (!rq__procedures_task_begin(c)) return;
    ps->lost.task = (rq_task){.run = look_again};
    c->env->executor->submit(c->env->executor, RQ_POOL_WORK, &ps->lost.task);
}

void rq__procedures_reopen_init(rq__procedures *ps)
{
    ps->lost.timer.task.run = due;
}
