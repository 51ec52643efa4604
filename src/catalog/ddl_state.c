/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enable, disable, flush a table; close, open, reopen a single region.
 * HBASE: EnableTableProcedure, DisableTableProcedure, FlushTableProcedure,
 * TransitRegionStateProcedure.
 */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdio.h>
#include <stdlib.h>

static rq_err table_state(rq_catalog *c, const rq__proc *p, rq_table_state *ret, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    *ret = t->pub.state;
    rq__table_node_unref(t);
    return RQ_OK;
}

static rq_err mark(rq_catalog *c, rq__proc *p, rq_table_state state, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__meta_put_table_state(&b, p->table, state);
    if (rc == RQ_OK) rc = rq__proc_commit(c, p, &b, why);
    rq_arena_clear(&a);
    return rc == RQ_OK ? rq__publish_state(c, p, NULL, state, why) : rc;
}

static rq_err list_table(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = rq__copy_infos(p, t, &p->regions, &p->region_count);
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    if (rc == RQ_OK) p->opened = rq__opened_new(p->regions, p->region_count, p->schema);
    p->opened_count = p->opened == NULL ? 0 : p->region_count;
    rq__table_node_unref(t);
    return p->opened == NULL ? rq_no_memory(why) : RQ_OK;
}

/* Opens the regions of the table that are not open: fills p->regions and p->opened. */
static rq_err open_table(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->opened == NULL) { /* else this is a repetition */
        RQ_TRY(list_table(c, p, why));
        rq__retain_places(c, p->opened, p->opened_count);
    }
    return rq__open_regions(c, p, p->opened, p->opened_count, why);
}

/* --- enable ----------------------------------------------------------------------------------- */

/* Under the lock, ENABLING and DISABLING are left over from an aborted procedure. */
rq_err rq__enable_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_table_state state;
    RQ_TRY(table_state(c, p, &state, why));
    if (state == RQ_TABLE_ENABLED)
        return rq__fail_state(RQ_E_TABLE_NOT_DISABLED, "", p, state, why);
    return RQ_OK;
}

rq_err rq__enable_mark(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->stage == 0) RQ_TRY(mark(c, p, RQ_TABLE_ENABLING, why));
    p->stage = 1;
    /* None is open, but after a disable that was aborted. */
    return rq__take_down(c, p, NULL, 0, RQ_REGION_OPENING, false, NULL, why);
}

rq_err rq__close_left_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool open = p->calls != NULL; /* it waited for them */
    rq__table_node *t;
    if (!open && rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) == RQ_OK) {
        for (size_t i = 0; i < t->pub.region_count && !open; i++)
            open = rq__table_region(t, i)->pub.server != NULL;
        rq__table_node_unref(t);
    }
    if (!open) return RQ_OK;
    return rq__take_down(c, p, NULL, 0, RQ_REGION_CLOSED, false, NULL, why);
}

rq_err rq__enable_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(open_table(c, p, why));
    RQ_TRY(rq__meta_put_opened(c, p, true, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, p->opened_count, true, why));
    rq__opened_done(c, p);
    return RQ_OK;
}

/* --- disable ---------------------------------------------------------------------------------- */

/* HBASE: preflightChecks(env, true) runs in the procedure's constructor, so that the client gets an
 * error before the procedure exists. */
rq_err rq__disable_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_table_state state;
    RQ_TRY(table_state(c, p, &state, why));
    if (state != RQ_TABLE_ENABLED && state != RQ_TABLE_ENABLING)
        return rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    return RQ_OK;
}

rq_err rq__disable_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:meta")))
        return rq_fail(why, RQ_E_CONSTRAINT, "Cannot disable hbase:meta");
    rq_table_state state;
    RQ_TRY(table_state(c, p, &state, why));
    if (state != RQ_TABLE_ENABLED && state != RQ_TABLE_ENABLING)
        return rq__fail_state(RQ_E_TABLE_NOT_ENABLED, "", p, state, why);
    return RQ_OK;
}

rq_err rq__disable_mark(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return mark(c, p, RQ_TABLE_DISABLING, why);
}

/* A crash left edits in the log. They are flushed to files now, as disabling would have done, so that the
 * log does not keep them forever. */
static rq_err bring_back(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool brought = p->opened != NULL && p->opened_count == 0; /* this is a repetition */
    if (!p->resumed || brought) return RQ_OK;
    RQ_TRY(open_table(c, p, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, p->opened_count, false, why));
    rq__opened_clear(p->opened, p->opened_count);
    p->opened_count = 0;
    return RQ_OK;
}

rq_err rq__disable_close(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->stage == 0) RQ_TRY(bring_back(c, p, why));
    p->stage = 1;
    /* A failed flush was logged; the region is closed, and its edits stay in the log. */
    return rq__take_down(c, p, NULL, 0, RQ_REGION_CLOSING, false, NULL, why);
}

/* The regions, which are closed, and then the table's state. */
static rq_err put_disabled(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    (void)c;
    return i < p->info_count ? rq__meta_put_closed(b, &p->infos[i], rq__region_copies(p->schema))
                             : rq__meta_put_table_state(b, p->table, RQ_TABLE_DISABLED);
}

static rq_err list_infos(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = rq__copy_infos(p, t, &p->infos, &p->info_count);
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    rq__table_node_unref(t);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

static rq_err commit_disabled(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->infos == NULL) RQ_TRY(list_infos(c, p, why)); /* else this is a repetition */
    return rq__parts_write(c, p, p->info_count + 1, RQ__NO_COMMIT, put_disabled, why);
}

rq_err rq__disable_finish(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->stage == 0) RQ_TRY(commit_disabled(c, p, why));
    p->stage = 1;
    /* None is open, but where an abort left it out. */
    RQ_TRY(rq__take_down(c, p, NULL, 0, RQ_REGION_CLOSED, false, NULL, why));
    return rq__publish_state(c, p, NULL, RQ_TABLE_DISABLED, why);
}

/* --- flush ------------------------------------------------------------------------------------ */

/* Removes duplicates: each family is flushed once. */
static void drop_doubles(rq__proc *p)
{
    size_t count = p->of.flush.count;
    if (count < 2) return;
    qsort(p->of.flush.families, count, sizeof *p->of.flush.families, rq_slice_order);
    p->of.flush.count = 1;
    for (size_t i = 1; i < count; i++)
        if (!rq_slice_eq(p->of.flush.families[i - 1], p->of.flush.families[i]))
            p->of.flush.families[p->of.flush.count++] = p->of.flush.families[i];
}

/* HBASE: FlushTableProcedure.preflightChecks. */
rq_err rq__flush_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = RQ_OK;
    if (t->pub.state != RQ_TABLE_ENABLED && t->pub.state != RQ_TABLE_ENABLING)
        rc = rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    rq_buf missing = {0};
    for (size_t i = 0; i < p->of.flush.count && rc == RQ_OK; i++) {
        rq_slice f = p->of.flush.families[i];
        if (rq_table_schema_family(t->pub.schema, f) != NULL) continue;
        rc = rq_buf_printf(&missing, "%s%.*s", missing.len > 0 ? ", " : "", (int)f.len,
                           (const char *)f.ptr);
    }
    if (rc == RQ_OK && missing.len > 0)
        rc = rq_fail(why, RQ_E_NO_SUCH_FAMILY, "Column families [%.*s] don't exist in table %.*s",
                     (int)missing.len, (const char *)missing.ptr, (int)p->table.len,
                     (const char *)p->table.ptr);
    rq_buf_clear(&missing);
    rq__table_node_unref(t);
    if (rc == RQ_OK) drop_doubles(p);
    return rc;
}

static rq_err flush_open(rq_catalog *c, rq__proc *p, const rq__table_node *t)
{
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_FLUSH, t->pub.region_count);
    if (k == NULL) return RQ_E_NO_MEMORY;
    k->count = 0;
    for (size_t i = 0; i < t->pub.region_count; i++) {
        rq__region_node *n = rq__table_region(t, i);
        if (n->pub.server == NULL) continue;
        k->list[k->count].families = p->of.flush.families;
        k->list[k->count].family_count = p->of.flush.count;
        rq__calls_of_node(k, k->count++, n);
    }
    return rq__calls_send(k);
}

rq_err rq__flush_run(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_err rc;
    if (p->calls != NULL) {
        rc = rq__calls_wait(p);
    } else {
        rq__table_node *t;
        RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
        rc = flush_open(c, p, t);
        rq__table_node_unref(t);
    }
    if (rc != RQ_OK) return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
    rc = rq__calls_result(p->calls, why);
    rq__calls_drop(p);
    return rc;
}

/* --- a region that was given up --------------------------------------------------------------- */

rq_err rq__reopen_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    (void)c;
    (void)p;
    return rq_fail(why, RQ_E_INVALID, "only the server itself may reopen regions");
}

static rq_err reopen_store(rq_catalog *c, rq_error *why)
{
    rq_region *old;
    RQ_TRY(rq__store_ref(c, &old, why));
    rq_table_schema *schema = rq_region_schema(old);
    rq__store_abandon(c, old); /* it refuses everything already */
    rq_region *fresh = NULL;
    rq_err rc = rq_region_open(c->engine, rq_region_get_info(old), schema, &fresh, why);
    rq_table_schema_unref(schema);
    rq_region_unref(old);
    if (rc != RQ_OK) return rc;
    pthread_mutex_lock(&c->store_lock);
    old = c->store;
    c->store = fresh;
    pthread_mutex_unlock(&c->store_lock);
    rq_region_unref(old);
    return RQ_OK;
}

static bool has_failed(const rq__region_node *n)
{
    return n->pub.region != NULL && rq_region_has_failed(n->pub.region);
}

/* Whether the region must stay as it is, because another procedure has opened it meanwhile (this one would close it
 * without a flush) or has closed it on request. A region without a server that is not CLOSED was left so by an earlier
 * attempt of this procedure, and is still to be opened. */
static bool has_left(const rq__proc *p, const rq__region_node *n)
{
    const rq_server_name *s = n->pub.server;
    if (p->left.len == 0) return s != NULL && !has_failed(n);
    return s == NULL ? n->pub.state == RQ_REGION_CLOSED
                     : !rq_slice_eq(rq_slice_cstr(s->text), p->left);
}

/* The region that is to be reopened, as the table has it now. *ret NULL: there is none. */
static rq_err reopened_node(rq_catalog *c, rq__proc *p, rq__region_node **ret)
{
    rq__table_node *t;
    *ret = NULL;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK)
        return RQ_OK; /* dropped */
    size_t at = rq__table_find(c, t, p->of.region.name);
    if (at < t->pub.region_count && t->pub.state == RQ_TABLE_ENABLED &&
        t->pub.schema->family_count > 0) {
        rq_table_schema_unref(p->schema);
        p->schema = rq_table_schema_ref(t->pub.schema);
        rq__region_node *n = rq__table_region(t, at);
        if (!has_left(p, n)) *ret = rq__region_node_ref(n);
    }
    rq__table_node_unref(t);
    return RQ_OK;
}

/* Makes the list of one region. *ret_none: there is nothing to do. */
static rq_err reopen_begin(rq_catalog *c, rq__proc *p, bool *ret_none, rq_error *why)
{
    rq__region_node *n;
    RQ_TRY(reopened_node(c, p, &n));
    *ret_none = n == NULL;
    if (n == NULL) return RQ_OK;
    if (p->opened == NULL) p->opened = rq__opened_new(&n->info, 1, p->schema);
    if (p->opened == NULL) {
        rq__region_node_unref(n);
        return rq_no_memory(why);
    }
    rq__opened_clear(p->opened, 1);
    *p->opened = (rq__opened){.info = &n->info, .schema = p->schema, .of = n, .to = p->to};
    p->opened_count = 1;
    if (p->left.len > 0) rq__retain_places_after_end(c, p->opened, 1);
    return RQ_OK;
}

static rq_err reopen_publish(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__opened *o = p->opened;
    rq_err rc = RQ_OK;
    if (o->rc == RQ_OK && rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:namespace")))
        RQ_TRY(rq__namespaces_read(c, o->node->pub.region, why)); /* the start could not */
    /* In a cluster hbase:meta is written before the view is changed. In the other order, if writing meta failed, the
     * repeated step would find the region open on another server and do nothing. A standalone server changes the view
     * first: it serves the region even if hbase:meta cannot be written. */
    bool first = !c->one_log && !p->schema->is_meta;
    if (first) RQ_TRY(rq__meta_note_opened(c, o, 1, why));
    RQ_TRY(rq__publish_nodes(c, p, o, 1, false, why));
    if (!first && !p->schema->is_meta) rc = rq__meta_note_opened(c, o, 1, why);
    /* A damaged region waits for an operator (rq_catalog_assign). */
    if (rc == RQ_OK && o->rc != RQ_OK && !rq_err_do_not_retry(o->rc))
        rc = rq_fail(why, o->rc, "%s", o->why.message);
    return rc;
}

rq_err rq__reopen_run(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool none = false;
    if (rq_slice_eq(p->ns, RQ_SLICE_LIT("master"))) return reopen_store(c, why);
    if (p->stage == 0) RQ_TRY(reopen_begin(c, p, &none, why));
    if (none) return RQ_OK;
    if (p->stage == 0) p->stage = 1;
    if (p->stage == 1) /* it refuses everything already */
        RQ_TRY(rq__take_down(c, p, p->opened->info, 1, RQ_REGION_OPENING, true, NULL, why));
    p->stage = 2;
    RQ_TRY(rq__open_regions(c, p, p->opened, 1, why));
    rq_err rc = reopen_publish(c, p, why);
    if (!p->opened->unserved) rq__opened_clear(p->opened, 1);
    return rc;
}

/* --- a region closed and opened by hand ------------------------------------------------------- */

static bool is_closed(rq_region_state state)
{
    return state == RQ_REGION_CLOSED || state == RQ_REGION_OFFLINE ||
           state == RQ_REGION_FAILED_OPEN;
}

/* HBASE: RegionStateNode.toShortString. A closed region has no location. */
static rq_err wrong_state(const rq_catalog *c, rq_err rc, const char *before, rq_region_state state,
                          const rq__proc *p, rq_error *why)
{
    return rq_fail(why, rc, "%s for state=%s, location=%s, table=%.*s, region=%.*s", before,
                   rq__region_state_name(state), is_closed(state) ? "null" : c->server->text,
                   (int)p->table.len, (const char *)p->table.ptr, (int)p->of.region.name.len,
                   (const char *)p->of.region.name.ptr);
}

static rq_err table_is_disabled(const rq_catalog *c, rq_region_state state, const rq__proc *p,
                                rq_error *why)
{
    char before[600];
    snprintf(before, sizeof before, "%.*s is disabled", (int)p->table.len,
             (const char *)p->table.ptr);
    return wrong_state(c, RQ_E_DO_NOT_RETRY, before, state, p, why);
}

/* HBASE: AssignmentManager.preTransitCheck, STATES_EXPECTED_ON_ASSIGN and …_ON_UNASSIGN_OR_MOVE. */
static rq_err transit_check(rq_catalog *c, const rq__proc *p, bool opened, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    size_t at = rq__table_find(c, t, p->of.region.name);
    rq_err rc = RQ_OK;
    if (at == t->pub.region_count) {
        rc = rq_fail(why, RQ_E_UNKNOWN_REGION, "%.*s", (int)p->of.region.name.len,
                     (const char *)p->of.region.name.ptr);
    } else {
        rq_region_state state = rq__table_region(t, at)->pub.state;
        if (p->of.region.override && is_closed(state))
            rc = RQ_OK;
        else if ((state == RQ_REGION_OPEN) != opened)
            rc = wrong_state(c, RQ_E_DO_NOT_RETRY_REGION, "Unexpected state", state, p, why);
        else if (t->pub.state != RQ_TABLE_ENABLED)
            rc = table_is_disabled(c, state, p, why);
    }
    rq__table_node_unref(t);
    return rc;
}

rq_err rq__assign_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return transit_check(c, p, false, why);
}

rq_err rq__unassign_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:meta")))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "hbase:meta stays open on this server");
    return transit_check(c, p, true, why);
}

static rq_err put_closed(rq_catalog *c, const rq__proc *p, const rq_region_info *info,
                         rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__meta_put_closed(&b, info, rq__region_copies(t->pub.schema));
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, why);
    rq_arena_clear(&a);
    rq__table_node_unref(t);
    return rc;
}

static rq_err fail_unknown(const rq__proc *p, rq_error *why)
{
    return rq_fail(why, RQ_E_UNKNOWN_REGION, "%.*s", (int)p->of.region.name.len,
                   (const char *)p->of.region.name.ptr);
}

/* A reference on the region's node, as the view has it now. */
static rq_err named_node(rq_catalog *c, const rq__proc *p, rq__region_node **ret, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    size_t at = rq__table_find(c, t, p->of.region.name);
    if (at < t->pub.region_count) *ret = rq__region_node_ref(rq__table_region(t, at));
    bool found = at < t->pub.region_count;
    rq__table_node_unref(t);
    return found ? RQ_OK : fail_unknown(p, why);
}

/* No record is kept: after a crash or a stop, the start opens all regions of an enabled table. */
rq_err rq__unassign_run(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__region_node *n;
    RQ_TRY(named_node(c, p, &n, why));
    /* As when a table is disabled, the region is closed even if the flush fails; then its edits are in the
     * log. */
    rq_err rc = rq__take_down(c, p, &n->info, 1, RQ_REGION_CLOSING, false, NULL, why);
    if (rc == RQ_OK) {
        rc = put_closed(c, p, &n->info, why);
        rq_err shown = rq__take_down(c, p, &n->info, 1, RQ_REGION_CLOSED, false, NULL,
                                     rc == RQ_OK ? why : NULL); /* none is open any more */
        if (rc == RQ_OK) rc = shown;
    }
    rq__region_node_unref(n);
    return rc;
}

/* --- a region closed and opened again --------------------------------------------------------- */

/* Finds the server that the region is to move to. REQUIRES: p->to is NULL. */
static rq_err find_wanted(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_arena a = {0};
    const rq_server_name **list = NULL;
    size_t count = 0;
    rq_err rc = rq_catalog_servers(c, &a, &list, &count);
    for (size_t i = 0; i < count; i++) {
        if (rq_slice_eq(rq_slice_cstr(list[i]->text), p->of.region.server))
            p->to = list[i]; /* with its reference */
        else
            rq_server_name_unref(list[i]);
    }
    rq_arena_clear(&a);
    if (rc != RQ_OK) return rq_no_memory(why);
    if (p->to != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "%.*s is not online", (int)p->of.region.server.len,
                   (const char *)p->of.region.server.ptr);
}

rq_err rq__move_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:meta")))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "hbase:meta stays open on this server");
    if (p->of.region.server.len > 0 && p->to == NULL) {
        if (rq_slice_eq(p->ns, RQ_SLICE_LIT("hbase")))
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "regions of the namespace hbase stay in the active master's process");
        RQ_TRY(find_wanted(c, p, why));
    }
    return transit_check(c, p, true, why);
}

static bool is_there(const rq__proc *p, const rq__region_node *n)
{
    const rq_server_name *s = n->pub.server;
    return p->to != NULL && s != NULL && strcmp(s->text, p->to->text) == 0;
}

/* Closes the region with a flush, so that opening it needs no edits from the log. */
rq_err rq__move_close(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__region_node *n;
    RQ_TRY(named_node(c, p, &n, why));
    /* A failure was logged; the log has the edits. */
    rq_err rc = is_there(p, n)
                    ? RQ_OK
                    : rq__take_down(c, p, &n->info, 1, RQ_REGION_CLOSING, false, NULL, why);
    rq__region_node_unref(n);
    return rc;
}

/* If opening fails with a temporary error, the client gets the error, and a REOPEN_REGION procedure
 * repeats the opening. */
rq_err rq__move_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->stage == 0) {
        rq__region_node *n;
        RQ_TRY(named_node(c, p, &n, why));
        bool there = is_there(p, n);
        rq__region_node_unref(n);
        if (there) return RQ_OK;
    }
    rq_err rc = rq__reopen_run(c, p, why);
    if (rc != RQ_OK && rc != RQ_E_AGAIN && !rq_err_do_not_retry(rc)) rq__proc_reopen_closed(p);
    return rc;
}
