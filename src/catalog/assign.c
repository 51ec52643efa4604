/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes many regions in parallel. */
#include "catalog/catalog_priv.h"

#include <stdlib.h>

void rq__region_abandon(rq_catalog *c, rq_region *r)
{
    rq_error why = {0};
    if (rq_region_close(r, true, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "closing region %s: %s", rq_region_get_info(r)->encoded,
                    why.message);
}

/* --- opening ---------------------------------------------------------------------------------- */

typedef struct opening {
    rq_catalog *catalog;
    rq__opened *list;
} opening;

static void open_one(void *ctx, size_t i)
{
    opening *o = ctx;
    rq__opened *r = &o->list[i];
    rq_catalog *c = o->catalog;
    rq_region *region = NULL;
    int64_t now = c->env->executor->now_ms(c->env->executor);
    r->why = (rq_error){0};
    r->rc = rq_region_open(c->engine, r->info, r->schema, &region, &r->why);
    if (r->rc == RQ_OK) {
        int64_t seqnum = (int64_t)rq_region_open_seqid(region);
        r->node = rq__region_node_new(r->info, RQ_REGION_OPEN, region, seqnum, now, NULL);
        if (r->node == NULL) {
            rq__region_abandon(c, region); /* nothing was written to it */
            r->rc = RQ_E_NO_MEMORY;
        }
        rq_region_unref(region);
    } else {
        const char *text = r->why.code != RQ_OK ? r->why.message : rq_err_text(r->rc);
        char name[256];
        rq_bytes_to_string(r->info->name, name, sizeof name);
        rq_log_error(c->env->log, "catalog", "region %s stays closed: %s", name, text);
        r->node = rq__region_node_new(r->info, RQ_REGION_FAILED_OPEN, NULL, -1, now, text);
    }
}

void rq__opened_clear(rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rq__region_node_unref(list[i].node);
        list[i].node = NULL;
    }
}

void rq__opened_abandon(rq_catalog *c, rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].node != NULL && list[i].node->pub.region != NULL)
            rq__region_abandon(c, list[i].node->pub.region);
    rq__opened_clear(list, count);
}

rq_err rq__open_regions(rq_catalog *c, rq__opened *list, size_t count, rq_error *why)
{
    opening o = {c, list};
    rq_err rc = RQ_OK;
    rq_parallel(c->env->executor, count, open_one, &o);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (list[i].node == NULL) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK) return RQ_OK;
    rq__opened_abandon(c, list, count);
    return rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- closing ---------------------------------------------------------------------------------- */

typedef struct closing {
    rq_catalog *catalog;
    rq_region **regions;
    bool abort;
    pthread_mutex_t lock;
    rq_err rc;
    rq_error why;
} closing;

static void close_one(void *ctx, size_t i)
{
    closing *cl = ctx;
    rq_error why = {0};
    rq_err rc = rq_region_close(cl->regions[i], cl->abort, &why);
    if (rc == RQ_OK) return;
    const rq_region_info *info = rq_region_get_info(cl->regions[i]);
    char name[256];
    rq_bytes_to_string(info->name, name, sizeof name);
    const char *text = why.code != RQ_OK ? why.message : rq_err_text(rc);
    rq_log_error(cl->catalog->env->log, "catalog",
                 "region %s closed without a flush, its edits stay in the log: %s", name, text);
    rq__region_abandon(cl->catalog, cl->regions[i]);
    pthread_mutex_lock(&cl->lock);
    if (cl->rc == RQ_OK) {
        cl->rc = rc;
        (void)rq_fail(&cl->why, rc, "%s", text);
    }
    pthread_mutex_unlock(&cl->lock);
}

rq_err rq__close_regions(rq_catalog *c, rq_region **regions, size_t count, bool abort,
                         rq_error *why)
{
    closing cl = {.catalog = c, .regions = regions, .abort = abort};
    pthread_mutex_init(&cl.lock, NULL);
    rq_parallel(c->env->executor, count, close_one, &cl);
    pthread_mutex_destroy(&cl.lock);
    if (cl.rc != RQ_OK) return rq_fail(why, cl.rc, "%s", cl.why.message);
    return RQ_OK;
}
