/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the steps: creating and removing regions, updating the view and meta. */
#include "catalog/ddl_priv.h"
#include "catalog/tableinfo.h"
#include "region/region_files.h"
#include "vfs/batch.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const table_states[] = {"ENABLED", "DISABLED", "DISABLING", "ENABLING"};

rq_err rq__fail_state(rq_err code, const char *prefix, const rq__proc *p, rq_table_state state,
                      rq_error *why)
{
    return rq_fail(why, code, "%stableName=%.*s, state=%s", prefix, (int)p->table.len,
                   (const char *)p->table.ptr, table_states[state]);
}

rq_err rq__fail_table(rq_err code, const rq__proc *p, rq_error *why)
{
    return rq_fail(why, code, "%.*s", (int)p->table.len, (const char *)p->table.ptr);
}

rq_err rq__internal_check(const rq__proc *p, rq_error *why)
{
    if (!rq_slice_eq(p->ns, RQ_SLICE_LIT("master"))) return RQ_OK;
    return rq_fail(why, RQ_E_CONSTRAINT, "Namespace master is reserved for the server.");
}

rq_err rq__need_schema(rq__proc *p, rq_error *why)
{
    if (p->schema != NULL) return RQ_OK;
    return rq_table_schema_parse(p->descriptor, &p->schema, why);
}

rq_err rq__meta_note(rq_catalog *c, const rq__batch *b, rq_error *why)
{
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc =
        c->one_log ? rq__batch_note(b, c->engine, meta, why) : rq__batch_commit(b, meta, true, why);
    rq_region_unref(meta);
    return rc;
}

rq_err rq__meta_commit(rq_catalog *c, const rq__batch *b, rq_error *why)
{
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = rq__batch_commit(b, meta, true, why);
    rq_region_unref(meta);
    return rc;
}

rq_err rq__proc_commit(rq_catalog *c, rq__proc *p, const rq__batch *b, rq_error *why)
{
    rq__batch own = *b;
    own.vital = p->ops->vital;
    RQ_TRY(rq__meta_commit(c, &own, why));
    p->committed |= p->step == p->ops->commit;
    return RQ_OK;
}

/* --- regions on disk -------------------------------------------------------------------------- */

rq_err rq__make_regions(rq_catalog *c, rq__proc *p, const rq_slice *keys, size_t count,
                        rq_error *why)
{
    rq_region_info *list = rq_arena_calloc(&p->arena, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    int64_t id = rq__catalog_now_ms(c); /* above every id the table ever had */
    rq_slice start = {NULL, 0}, none = {NULL, 0};
    for (size_t i = 0; i <= count; i++) {
        rq_slice end = i < count ? keys[i] : none;
        RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, start, end, id, 0, &list[i]));
        RQ_TRY(rq__region_name_check(&list[i], why));
        start = end;
    }
    p->regions = list;
    p->region_count = count + 1;
    return RQ_OK;
}

typedef struct disk_work {
    rq_catalog *catalog;
    rq_vfs *batch;
    const rq_region_info *list;
    const rq_table_schema *schema;
    rq_err (*one)(const struct disk_work *w, const rq_region_info *info, rq_error *why);
    pthread_mutex_t lock;
    rq_err rc;
    rq_error why;
} disk_work;

/* Keeps what is there: files, manifest. Syncs each file, for regions that are not new. */
static rq_err adopt_one(const disk_work *w, const rq_region_info *info, rq_error *why)
{
    return rq_region_create(w->catalog->engine, info, w->schema, why);
}

/* The same for regions that an earlier attempt has created, through the batch. */
static rq_err complete_one(const disk_work *w, const rq_region_info *info, rq_error *why)
{
    return rq_region_complete(w->catalog->engine, w->batch, info, w->schema, why);
}

/* Creates an empty region through the batch, as a region that links to no files. */
static rq_err create_one(const disk_work *w, const rq_region_info *info, rq_error *why)
{
    static const rq_region_files none;
    return rq_region_create_linked(w->catalog->engine, w->batch, info, w->schema, info, &none, why);
}

static rq_err archive_one(const disk_work *w, const rq_region_info *info, rq_error *why)
{
    return rq_region_archive(w->batch, info, why);
}

static rq_err remove_one(const disk_work *w, const rq_region_info *info, rq_error *why)
{
    return rq_region_remove(w->catalog->engine, w->batch, info, why);
}

static void disk_one(void *ctx, size_t i)
{
    disk_work *w = ctx;
    rq_error why = {0};
    rq_err rc = w->one(w, &w->list[i], &why);
    if (rc == RQ_OK) return;
    pthread_mutex_lock(&w->lock);
    if (w->rc == RQ_OK) {
        w->rc = rc;
        (void)rq_fail(&w->why, rc, "%s", why.code != RQ_OK ? why.message : rq_err_text(rc));
    }
    pthread_mutex_unlock(&w->lock);
}

static rq_err disk_all(disk_work w, size_t count, rq_error *why)
{
    pthread_mutex_init(&w.lock, NULL);
    rq_parallel(w.catalog->env->executor, count, disk_one, &w);
    pthread_mutex_destroy(&w.lock);
    return w.rc == RQ_OK ? RQ_OK : rq_fail(why, w.rc, "%s", w.why.message);
}

/* The names of the table's folder, and of its regions: the batch of an earlier attempt has not made them durable. */
static rq_err sync_table_path(rq_catalog *c, const rq__proc *p, rq_error *why)
{
    rq_arena a = {0};
    const char *dir = rq__table_dir(&a, p->ns, p->qualifier);
    rq_err rc = dir == NULL ? rq_no_memory(why) : rq_vfs_sync_path(c->env->vfs, dir, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__adopt_regions(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    disk_work w = {.catalog = c, .list = p->regions, .schema = p->schema, .one = adopt_one};
    RQ_TRY(disk_all(w, p->region_count, why));
    return sync_table_path(c, p, why);
}

rq_err rq__create_regions(rq_catalog *c, rq__proc *p, rq_vfs *batch, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    disk_work w = {.catalog = c, .batch = batch, .list = p->regions, .schema = p->schema};
    w.one = p->resumed ? complete_one : create_one;
    return disk_all(w, p->region_count, why);
}

rq_err rq__create_regions_durably(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &batch, why));
    rq_err rc = rq__create_regions(c, p, batch, why);
    return rq_vfs_batch_end(batch, c->env->executor, rc, why);
}

rq_err rq__archive_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_error *why)
{
    disk_work w = {.catalog = c, .list = list, .one = archive_one};
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &w.batch, why));
    rq_err rc = disk_all(w, count, why);
    return rq_vfs_batch_end(w.batch, c->env->executor, rc, why);
}

rq_err rq__remove_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_vfs *batch,
                          rq_error *why)
{
    return disk_all((disk_work){.catalog = c, .batch = batch, .list = list, .one = remove_one},
                    count, why);
}

rq_err rq__destroy_regions(rq_catalog *c, const rq_region_info *list, size_t count, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq__archive_regions(c, list, count, why));
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &batch, why));
    rq_err rc = rq__remove_regions(c, list, count, batch, why);
    return rq_vfs_batch_end(batch, c->env->executor, rc, why);
}

rq_err rq__copy_infos(rq__proc *p, const rq__table_node *t, rq_region_info **ret, size_t *ret_count)
{
    size_t n = t->pub.region_count;
    rq_region_info *list = rq_arena_calloc(&p->arena, n, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const rq_region_info *from = &rq__table_region(t, i)->info;
        RQ_TRY(rq_region_info_make(&p->arena, from->ns, from->qualifier, from->start_key,
                                   from->end_key, from->region_id, from->replica_id, &list[i]));
    }
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

/* --- the view --------------------------------------------------------------------------------- */

/* Publishes the edit, or drops it after an error; edits only fail when out of memory. */
static rq_err end_edit(rq__edit *e, rq_err rc, rq_error *why)
{
    if (rc == RQ_OK) return rq__edit_commit(e) == RQ_OK ? RQ_OK : rq_no_memory(why);
    rq__edit_abort(e);
    return rq_no_memory(why);
}

/* Reopens regions whose server ended between its report and their publication: rq_catalog_server_down did not find them.
 * The reopening waits for the procedure that has published them. */
static void reopen_of_ended(rq_catalog *c, rq__region_node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rq_catalog_region *r = &nodes[i]->pub;
        if (r->server == NULL || rq__catalog_server_is_up(c, r->server)) continue;
        rq_log_warn(c->env->log, "catalog",
                    "server %s ended after it had opened region %s; the region is reopened on "
                    "another server",
                    r->server->text, r->info->encoded);
        rq__procedures_reopen(c, r->info, r->server);
    }
}

rq_err rq__publish_table(rq_catalog *c, rq_table_schema *schema, rq_table_state state,
                         rq__region_node *const *nodes, size_t count, rq_error *why)
{
    rq__table_node *t = rq__table_node_new(schema, state, nodes, count);
    if (t == NULL) return rq_no_memory(why);
    rq__edit e;
    rq_err rc = rq__edit_begin(&c->views, &e);
    if (rc != RQ_OK) {
        rq__table_node_unref(t);
        return rq_no_memory(why);
    }
    rc = end_edit(&e, rq__edit_put_table(&e, t), why);
    if (rc == RQ_OK) reopen_of_ended(c, nodes, count);
    return rc;
}

/* Begins an edit of the procedure's table in its current state: procedures of other regions may
 * have changed the table since this one last looked. */
static rq_err edit_table(rq_catalog *c, const rq__proc *p, rq__edit *e, const rq__table_node **ret,
                         rq_error *why)
{
    if (rq__edit_begin(&c->views, e) != RQ_OK) return rq_no_memory(why);
    *ret = rq__edit_table(e, p->ns, p->qualifier);
    if (*ret != NULL) return RQ_OK;
    rq__edit_abort(e);
    return rq__fail_table(RQ_E_TABLE_NOT_FOUND, p, why);
}

rq_err rq__publish_state(rq_catalog *c, const rq__proc *p, rq_table_schema *schema,
                         rq_table_state state, rq_error *why)
{
    rq__edit e;
    const rq__table_node *t;
    RQ_TRY(edit_table(c, p, &e, &t, why));
    return end_edit(&e, rq__edit_set_table(&e, t, schema, state), why);
}

/* Regions on their way out of service. */
typedef struct closing {
    rq__region_node **nodes; /* new nodes, which show the regions as closed */
    size_t node_count;
    rq__calls *calls; /* to the regions that were open; the first `count` are filled in */
} closing;

static rq_err add_closing(closing *cl, rq__region_node *of, rq_region_state state, int64_t now_ms)
{
    rq__region_node *n =
        rq__region_node_new(&of->info, state, NULL, NULL, of->pub.open_seqnum, now_ms, NULL);
    if (n == NULL) return RQ_E_NO_MEMORY;
    cl->nodes[cl->node_count++] = n;
    if (of->pub.server != NULL) rq__calls_of_node(cl->calls, cl->calls->count++, of);
    return RQ_OK;
}

static rq_err add_all_closing(closing *cl, const rq__table_node *t, const rq_region_info *list,
                              size_t count, rq_region_state state, int64_t now_ms)
{
    if (cl->nodes == NULL || cl->calls == NULL) return RQ_E_NO_MEMORY;
    cl->calls->count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = list == NULL ? i : rq__table_index(t, &list[i]);
        if (at < t->pub.region_count)
            RQ_TRY(add_closing(cl, rq__table_region(t, at), state, now_ms));
    }
    return RQ_OK;
}

rq_err rq__publish_closed(rq_catalog *c, rq__proc *p, const rq_region_info *list, size_t count,
                          rq_region_state state, rq__calls **ret, rq_error *why)
{
    rq__edit e;
    const rq__table_node *t;
    RQ_TRY(edit_table(c, p, &e, &t, why));
    if (list == NULL) count = t->pub.region_count;
    closing cl = {.nodes = calloc(count + 1, sizeof(rq__region_node *)),
                  .calls = rq__calls_new(c, p, RQ_CALL_CLOSE, count)};
    int64_t now = rq__catalog_wall_ms(c);
    rq_err rc = add_all_closing(&cl, t, list, count, state, now);
    if (rc == RQ_OK) rc = rq__edit_replace_regions(&e, t, t->pub.state, cl.nodes, cl.node_count);
    rc = end_edit(&e, rc, why);
    for (size_t i = 0; i < cl.node_count; i++)
        rq__region_node_unref(cl.nodes[i]);
    free(cl.nodes);
    if (rc == RQ_OK)
        *ret = cl.calls;
    else
        rq__calls_free(cl.calls);
    return rc;
}

rq_err rq__publish_nodes(rq_catalog *c, const rq__proc *p, rq__opened *opened, size_t count,
                         bool enables, rq_error *why)
{
    rq__edit e;
    const rq__table_node *t;
    rq__region_node **nodes = calloc(count + 1, sizeof(rq__region_node *));
    if (nodes == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        nodes[i] = opened[i].node;
    rq_err rc = edit_table(c, p, &e, &t, why);
    if (rc == RQ_OK) {
        rq_table_state state = enables ? RQ_TABLE_ENABLED : t->pub.state;
        rc = end_edit(&e, rq__edit_replace_regions(&e, t, state, nodes, count), why);
    }
    if (rc == RQ_OK) rq__opened_served(opened, count);
    if (rc == RQ_OK) reopen_of_ended(c, nodes, count);
    free(nodes);
    return rc;
}

rq_err rq__publish_swapped(rq_catalog *c, const rq__proc *p, const rq_region_info *old,
                           size_t old_count, rq__region_node *const *nodes, size_t count,
                           rq_error *why)
{
    rq__edit e;
    const rq__table_node *t;
    RQ_TRY(edit_table(c, p, &e, &t, why));
    rq_err rc = end_edit(&e, rq__edit_swap_regions(&e, t, old, old_count, nodes, count), why);
    if (rc == RQ_OK) reopen_of_ended(c, nodes, count);
    return rc;
}

/* --- meta ------------------------------------------------------------------------------------- */

int rq__region_copies(const rq_table_schema *schema)
{
    return schema == NULL ? 1 : rq_catalog_replication(schema);
}

rq_err rq__batch_opened(rq_catalog *c, rq__batch *b, const rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rq_catalog_region *r = &list[i].node->pub;
        int64_t seqnum = r->state == RQ_REGION_OPEN ? r->open_seqnum : -1;
        /* The server that tried to open it, for one that could not be opened. */
        const rq_server_name *server = r->server != NULL ? r->server : c->server;
        RQ_TRY(rq__meta_put_region(b, r->info, r->state, server, seqnum));
        int copies = rq__region_copies(list[i].schema);
        RQ_TRY(rq__meta_put_replicas(b, r->info, r->state, server, seqnum, copies));
    }
    return RQ_OK;
}

void rq__reopen_failed(rq_catalog *c, const rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].rc != RQ_OK && !rq_err_do_not_retry(list[i].rc))
            rq__procedures_reopen(c, list[i].info, NULL);
}

/* The opened regions, and then the table's state. */
static rq_err put_opened(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    return i < p->opened_count ? rq__batch_opened(c, b, &p->opened[i], 1)
                               : rq__meta_put_table_state(b, p->table, RQ_TABLE_ENABLED);
}

rq_err rq__meta_put_opened(rq_catalog *c, rq__proc *p, bool enables, rq_error *why)
{
    return rq__parts_write(c, p, p->opened_count + (enables ? 1 : 0), p->opened_count, put_opened,
                           why);
}

rq_err rq__meta_note_opened(rq_catalog *c, const rq__opened *list, size_t count, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__batch_opened(c, &b, list, count);
    if (rc == RQ_OK) rc = rq__meta_note(c, &b, why);
    rq_arena_clear(&a);
    return rc;
}

void rq__opened_done(rq_catalog *c, rq__proc *p)
{
    rq__reopen_failed(c, p->opened, p->opened_count);
    rq__opened_clear(p->opened, p->opened_count);
}

rq_err rq__need_opened(rq__proc *p, const rq_region_info *list, size_t count, rq_error *why)
{
    if (p->opened == NULL) p->opened = rq__opened_new(list, count, p->schema);
    if (p->opened == NULL) return rq_no_memory(why);
    p->opened_count = count;
    return RQ_OK;
}

rq__opened *rq__opened_new(const rq_region_info *list, size_t count, rq_table_schema *schema)
{
    rq__opened *o = calloc(count + 1, sizeof *o);
    for (size_t i = 0; o != NULL && i < count; i++)
        o[i] = (rq__opened){.info = &list[i], .schema = schema};
    return o;
}

size_t rq__table_find(rq_catalog *c, const rq__table_node *t, rq_slice encoded)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(c, encoded);
    size_t at = r == NULL ? t->pub.region_count : rq__table_index(t, r->info);
    rq_epoch_unpin(c->env->epoch, &m);
    return at;
}
