/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes many regions, by calls to the servers. A step that waited for reports (calls.c) calls
 * the same function again; the function finds the calls that it has sent in p->calls, and continues. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

/* Whether the procedure has sent its calls of this kind already: then *ret has them, and *ret_rc is
 * RQ_OK once each has its report, RQ_E_AGAIN until then. */
static bool has_sent(rq__proc *p, rq_region_call_kind kind, rq__calls **ret, rq_err *ret_rc)
{
    if (p == NULL || p->calls == NULL || p->calls->kind != kind) return false;
    *ret = p->calls;
    *ret_rc = rq__calls_wait(p);
    return true;
}

/* Frees the calls, which are not needed any more. */
static void done_with(rq__proc *p, rq__calls *k)
{
    if (p != NULL && p->calls == k) p->calls = NULL;
    rq__calls_free(k);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A server to open the region on, referenced: `to` if it is up, else the choice of rq_region_calls.place(). If the
 * chosen server has ended meanwhile, the choice is repeated. NULL: there is no server now. */
static const rq_server_name *place(const rq_catalog *c, const rq__opened *o)
{
    if (o->to != NULL && rq__catalog_server_is_up(c, o->to)) return rq_server_name_ref(o->to);
    for (int i = 0; i < 8; i++) {
        const rq_server_name *s = c->calls.place(c->calls.ctx, o->info, o->last);
        if (s == NULL || rq__catalog_server_is_up(c, s)) return s;
        rq_server_name_unref(s);
    }
    return NULL;
}

/* RQ_E_AGAIN: no server is there now. */
static rq_err opening_calls(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count,
                            rq__calls **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += list[i].node == NULL;
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_OPEN, n);
    if (k == NULL) return RQ_E_NO_MEMORY;
    n = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].node != NULL) continue;
        rq_region_call *call = &k->list[n++];
        call->info = list[i].info;
        call->schema = list[i].schema;
        call->server = place(c, &list[i]);
        if (call->server == NULL) {
            rq__calls_free(k);
            return RQ_E_AGAIN;
        }
        rq_server_name_unref(list[i].server);
        list[i].server = rq_server_name_ref(call->server);
        list[i].unserved = true;
    }
    *ret = k;
    return RQ_OK;
}

static rq_err wait_for_server(rq__proc *p, rq_error *why)
{
    return rq__wait_a_while(p, RQ_E_SERVER_NOT_RUNNING, "no live server can open regions", why);
}

static void note_failure(rq_catalog *c, rq__opened *o, const rq_region_call *call)
{
    const char *text = call->why != NULL ? call->why->message : rq_err_text(call->rc);
    char name[256];
    rq_bytes_to_string(o->info->name, name, sizeof name);
    rq_log_error(c->env->log, "catalog",
                 "region %s cannot be opened and stays closed (state FAILED_OPEN): %s", name, text);
    rq_error_clear(&o->why);
    if (call->why != NULL) (void)rq_fail(&o->why, call->rc, "%s", text);
    o->unserved = false;
    o->node = rq__region_node_new(o->info, RQ_REGION_FAILED_OPEN, NULL, NULL, -1,
                                  rq__catalog_wall_ms(c), text);
}

/* Whether the server that was to open the region has ended; then another server is asked. The attempts come to an end,
 * because each one needs a server that ended, and a server never comes back under the same name. */
static bool is_to_be_asked_elsewhere(const rq_catalog *c, const rq_region_call *call)
{
    return call->rc == RQ_E_SERVER_NOT_RUNNING && !rq__catalog_server_is_up(c, call->server);
}

static rq_err take_report(rq_catalog *c, rq__opened *o, const rq_region_call *call)
{
    if (is_to_be_asked_elsewhere(c, call)) {
        o->unserved = false;
        return RQ_OK;
    }
    o->rc = call->rc;
    if (call->rc != RQ_OK) {
        note_failure(c, o, call);
    } else {
        rq_region *here = rq_host_ref(c->host, o->info);
        o->node = rq__region_node_new(o->info, RQ_REGION_OPEN, here, o->server, call->open_seqnum,
                                      rq__catalog_wall_ms(c), NULL);
        rq_region_unref(here);
    }
    return o->node == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* One round of calls. After RQ_OK regions whose server has ended still have no node. */
static rq_err open_some(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count, rq_error *why)
{
    rq__calls *k = NULL;
    rq_err rc;
    if (!has_sent(p, RQ_CALL_OPEN, &k, &rc)) {
        rc = opening_calls(c, p, list, count, &k);
        if (rc == RQ_E_AGAIN) return wait_for_server(p, why);
        if (rc == RQ_OK) rc = rq__calls_send(k);
    }
    if (rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_OK && rq__calls_undone(k) == RQ_E_SERVER_STOPPED) rc = RQ_E_SERVER_STOPPED;
    size_t n = 0;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (list[i].node == NULL) rc = take_report(c, &list[i], &k->list[n++]);
    if (k != NULL) done_with(p, k);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static bool all_have_nodes(const rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].node == NULL) return false;
    return true;
}

rq_err rq__open_regions(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count, rq_error *why)
{
    rq_err rc;
    do
        rc = open_some(c, p, list, count, why);
    while (rc == RQ_OK && !all_have_nodes(list, count));
    return rc;
}

void rq__opened_clear(rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rq__region_node_unref(list[i].node);
        rq__region_node_unref(list[i].of);
        rq_server_name_unref(list[i].server);
        rq_server_name_unref(list[i].last);
        list[i].node = list[i].of = NULL;
        list[i].server = list[i].last = NULL;
    }
}

void rq__opened_served(rq__opened *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i].unserved = false;
}

static rq_err abandoning_calls(rq_catalog *c, rq__proc *p, const rq__opened *list, size_t count,
                               rq__calls **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += list[i].unserved;
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_CLOSE, n);
    if (k == NULL) return RQ_E_NO_MEMORY;
    n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].unserved) continue;
        k->list[n].info = list[i].info;
        k->list[n].server = rq_server_name_ref(list[i].server);
        /* With several servers the region is flushed: its server serves it as soon as the report of the opening is
         * taken, so clients may have written to it, and no other server can replay edits from the log of a running
         * server. */
        k->list[n++].abandon = c->one_log;
    }
    *ret = k;
    return RQ_OK;
}

/* Regions of calls that were sent are closed; errors of these calls were logged. */
static void take_abandoned(const rq__calls *k, rq__opened *list, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].unserved) list[i].unserved = k->list[n++].unsent;
}

rq_err rq__opened_abandon(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count)
{
    rq__calls *k = NULL;
    rq_err rc;
    if (!has_sent(p, RQ_CALL_CLOSE, &k, &rc)) {
        RQ_TRY(abandoning_calls(c, p, list, count, &k));
        rc = rq__calls_send(k);
    }
    if (rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_OK) rc = rq__calls_undone(k);
    if (rc != RQ_E_SERVER_STOPPED) take_abandoned(k, list, count);
    done_with(p, k);
    if (rc == RQ_OK) rq__opened_clear(list, count);
    return rc;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* RQ_OK: all regions are closed. RQ_E_AGAIN: some calls were not sent for lack of memory, so their
 * regions may be open; the step sends them later. Other errors end the step. */
static rq_err close_all(rq__proc *p, rq__calls *k, rq_error *why)
{
    rq_err rc = rq__calls_undone(k);
    if (rc != RQ_E_NO_MEMORY) return rc;
    k->again = k->proc != NULL;
    return rq__wait_a_while(p, rc, rq_err_text(rc), why);
}

rq_err rq__take_down(rq_catalog *c, rq__proc *p, const rq_region_info *list, size_t count,
                     rq_region_state state, bool abandon, rq_err *ret_closed, rq_error *why)
{
    rq__calls *k = NULL;
    rq_err rc;
    if (!has_sent(p, RQ_CALL_CLOSE, &k, &rc)) {
        RQ_TRY(rq__publish_closed(c, p, list, count, state, &k, why));
        for (size_t i = 0; i < k->count; i++) {
            k->list[i].abandon = abandon;
            k->list[i].moves_to = p == NULL ? NULL : p->to;
        }
        rc = rq__calls_send(k);
    } else if (rc == RQ_OK && k->again) {
        k->again = false;
        rc = rq__calls_send_rest(k);
    }
    if (rc == RQ_OK) rc = close_all(p, k, why);
    if (rc == RQ_E_AGAIN) return rc;
    if (rc != RQ_OK) {
        done_with(p, k);
        return rq_fail(why, rc, "%s", rq_err_text(rc));
    }
    rq_err closed = rq__calls_result(k, ret_closed == NULL ? NULL : why);
    if (ret_closed != NULL) *ret_closed = closed;
    done_with(p, k);
    return RQ_OK;
}

/* Opens the region without serving it. *ret_server: the server that has it, referenced. */
static rq_err open_unserved(rq_catalog *c, rq__proc *p, const rq_region_info *info,
                            rq_table_schema *schema, const rq_server_name **ret_server,
                            rq_error *why)
{
    rq__opened one = {.info = info, .schema = schema};
    rq__calls *k = NULL;
    rq_err rc;
    if (!has_sent(p, RQ_CALL_OPEN, &k, &rc)) {
        rc = opening_calls(c, p, &one, 1, &k);
        rq_server_name_unref(one.server);
        if (rc == RQ_E_AGAIN) return wait_for_server(p, why);
        if (rc == RQ_OK) rc = rq__calls_send(k);
    }
    if (rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_OK) rc = rq__calls_result(k, why);
    if (rc == RQ_OK) *ret_server = rq_server_name_ref(k->list[0].server);
    if (k != NULL) done_with(p, k);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

static rq_err send_close(rq_catalog *c, rq__proc *p, const rq_region_info *info,
                         const rq_server_name *server, rq__calls **ret)
{
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_CLOSE, 1);
    if (k == NULL) return RQ_E_NO_MEMORY;
    k->list[0].info = info;
    k->list[0].server = rq_server_name_ref(server);
    *ret = k;
    return rq__calls_send(k);
}

rq_err rq__bring_into_files(rq_catalog *c, rq__proc *p, const rq_region_info *info,
                            rq_table_schema *schema, rq_error *why)
{
    rq__calls *k = NULL;
    rq_err rc;
    if (!has_sent(p, RQ_CALL_CLOSE, &k, &rc)) {
        const rq_server_name *server = NULL;
        RQ_TRY(open_unserved(c, p, info, schema, &server, why));
        rc = send_close(c, p, info, server, &k);
        rq_server_name_unref(server);
    }
    if (rc == RQ_E_AGAIN) return rc;
    if (rc == RQ_OK) rc = rq__calls_result(k, why);
    if (k != NULL) done_with(p, k);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}
