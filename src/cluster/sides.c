/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of proven servers, by method; see sides.h. */
#include "cluster/sides.h"

#include "cluster/wire_priv.h"
#include "proto/region_server_status.pb-c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A server that has connections to this process, made in either role: it keeps them when this process becomes the master. */
typedef struct line {
    struct line *next;
    const rq_server_name *server; /* a reference */
    size_t connections;
} line;

struct rq_sides {
    const rq_log *log;
    pthread_rwlock_t lock; /* read-locked by each call; calls do not block */
    rq_orders *orders;
    rq_remote *master;
    pthread_mutex_t line_lock; /* guards `lines`; taken inside `lock` */
    line *lines;
};

typedef struct peer_call {
    const rq_sides *sides;
    const rq_server_name *from;
    rq_slice request;
    rq_arena *arena;
    rq_slice *ret;
    rq_error *why;
} peer_call;

/* --- for a server ----------------------------------------------------------------------------- */

static rq_err execute(const peer_call *c)
{
    return rq_orders_execute(c->sides->orders, c->request, c->why);
}

/* --- for a master ----------------------------------------------------------------------------- */

static rq_err startup(const peer_call *c)
{
    return rq_remote_startup(c->sides->master, c->from, c->request, c->arena, c->ret, c->why);
}

static rq_err report(const peer_call *c)
{
    return rq_remote_server_report(c->sides->master, c->from, c->request, c->why);
}

static rq_err transitions(const peer_call *c)
{
    return rq_remote_transitions(c->sides->master, c->from, c->request, c->why);
}

static rq_err procedures_done(const peer_call *c)
{
    return rq_remote_procedures_done(c->sides->master, c->from, c->request, c->why);
}

/* The text is logged for the operator. The server ends itself; it counts as down only once it is fenced. */
static rq_err fatal_error(const peer_call *c)
{
    const void *p;
    RQ_TRY(rq__wire_unpack(&pb__report_rsfatal_error_request__descriptor, c->request, c->arena, &p,
                           c->why));
    const Pb__ReportRSFatalErrorRequest *r = p;
    rq_log_warn(c->sides->log, "cluster", "%s reported a fatal error: %.2000s", c->from->text,
                r->error_message);
    return RQ_OK;
}

/* Its message is empty. */
static rq_err leaving(const peer_call *c)
{
    rq_remote_leaving(c->sides->master, c->from);
    rq_log_info(c->sides->log, "cluster", "%s is shutting down", c->from->text);
    return RQ_OK;
}

static rq_err live_servers(const peer_call *c)
{
    const void *p;
    const rq_server_name **list;
    size_t count, total;
    Pb__GetLiveRegionServersResponse m = PB__GET_LIVE_REGION_SERVERS_RESPONSE__INIT;
    RQ_TRY(rq__wire_unpack(&pb__get_live_region_servers_request__descriptor, c->request, c->arena,
                           &p, c->why));
    const Pb__GetLiveRegionServersRequest *r = p;
    RQ_TRY(rq_remote_servers(c->sides->master, r->count, c->arena, &list, &count, &total));
    m.server = rq_arena_calloc(c->arena, count + 1, sizeof *m.server);
    for (size_t i = 0; i < count; i++) {
        Pb__ServerName *s = m.server == NULL ? NULL : rq__wire_put_server(c->arena, list[i]);
        if (s != NULL) s->host_name = rq_arena_printf(c->arena, "%s", list[i]->host);
        if (s != NULL && s->host_name != NULL) m.server[m.n_server++] = s;
        rq_server_name_unref(list[i]);
    }
    m.total = (uint32_t)total;
    return m.n_server < count ? RQ_E_NO_MEMORY : rq__wire_pack(c->arena, &m.base, c->ret);
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct {
    const char *method;
    bool for_master;
    rq_err (*take)(const peer_call *c);
} methods[] = {
    {"ExecuteProcedures", false, execute},
    {"RegionServerStartup", true, startup},
    {"RegionServerReport", true, report},
    {"ReportRSFatalError", true, fatal_error},
    {"RegionServerLeaving", true, leaving},
    {"ReportRegionStateTransition", true, transitions},
    {"ReportProcedureDone", true, procedures_done},
    {"GetLiveRegionServers", true, live_servers},
};

/* HBASE: HMaster.checkServiceStarted, RSRpcServices.checkOpen. */
static rq_err check(const rq_sides *s, bool for_master, rq_error *why)
{
    if (for_master ? s->master != NULL : s->orders != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_SERVER_NOT_RUNNING, "%s",
                   for_master ? "Server is not running yet: it is not the active master"
                              : "Server is not running yet");
}

rq_err rq_sides_call(rq_sides *s, const rq_server_name *from, const char *method, rq_slice request,
                     rq_arena *arena, rq_slice *ret, rq_error *why)
{
    const peer_call c = {s, from, request, arena, ret, why};
    size_t i = 0;
    *ret = (rq_slice){0};
    while (i < RQ_ARRAY_LEN(methods) && strcmp(methods[i].method, method) != 0)
        i++;
    if (i == RQ_ARRAY_LEN(methods))
        return rq_fail(why, RQ_E_UNSUPPORTED, "method %s is not supported between servers", method);
    pthread_rwlock_rdlock(&s->lock);
    rq_err rc = check(s, methods[i].for_master, why);
    if (rc == RQ_OK) rc = methods[i].take(&c);
    pthread_rwlock_unlock(&s->lock);
    return rc;
}

void rq_sides_set_orders(rq_sides *s, rq_orders *orders)
{
    pthread_rwlock_wrlock(&s->lock);
    s->orders = orders;
    pthread_rwlock_unlock(&s->lock);
}

void rq_sides_set_master(rq_sides *s, rq_remote *master)
{
    pthread_rwlock_wrlock(&s->lock);
    s->master = master;
    pthread_rwlock_unlock(&s->lock);
}

/* --- connections ------------------------------------------------------------------------------ */

/* Of all lines, the place of the server's, or the end. REQUIRES: line_lock held. */
static line **find_line(rq_sides *s, const rq_server_name *server)
{
    line **at = &s->lines;
    while (*at != NULL && strcmp((*at)->server->text, server->text) != 0)
        at = &(*at)->next;
    return at;
}

/* REQUIRES: line_lock held. */
static rq_err add_connection(rq_sides *s, const rq_server_name *server)
{
    line **at = find_line(s, server);
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL) return RQ_E_NO_MEMORY;
        (*at)->server = rq_server_name_ref(server);
    }
    (*at)->connections++;
    return RQ_OK;
}

static void drop_line(line **at)
{
    line *l = *at;
    *at = l->next;
    rq_server_name_unref(l->server);
    free(l);
}

/* False: the server has others. REQUIRES: line_lock held, it has one. */
static bool remove_connection(rq_sides *s, const rq_server_name *server)
{
    line **at = find_line(s, server);
    if (--(*at)->connections > 0) return false;
    drop_line(at);
    return true;
}

rq_err rq_sides_connected(rq_sides *s, const rq_server_name *from)
{
    pthread_rwlock_rdlock(&s->lock);
    pthread_mutex_lock(&s->line_lock);
    rq_err rc = add_connection(s, from);
    if (rc == RQ_OK && s->master != NULL) rq_remote_connected(s->master, from);
    pthread_mutex_unlock(&s->line_lock);
    pthread_rwlock_unlock(&s->lock);
    return rc;
}

void rq_sides_disconnected(rq_sides *s, const rq_server_name *from)
{
    pthread_rwlock_rdlock(&s->lock);
    pthread_mutex_lock(&s->line_lock);
    bool was_last = remove_connection(s, from);
    if (was_last && s->master != NULL) rq_remote_hung_up(s->master, from);
    pthread_mutex_unlock(&s->line_lock);
    pthread_rwlock_unlock(&s->lock);
}

bool rq_sides_is_connected(rq_sides *s, const rq_server_name *from)
{
    pthread_mutex_lock(&s->line_lock);
    bool ret = *find_line(s, from) != NULL;
    pthread_mutex_unlock(&s->line_lock);
    return ret;
}

rq_err rq_sides_new(const rq_log *log, rq_sides **ret)
{
    rq_sides *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->log = log;
    pthread_rwlock_init(&s->lock, NULL);
    pthread_mutex_init(&s->line_lock, NULL);
    *ret = s;
    return RQ_OK;
}

void rq_sides_free(rq_sides *s)
{
    if (s == NULL) return;
    while (s->lines != NULL)
        drop_line(&s->lines);
    pthread_mutex_destroy(&s->line_lock);
    pthread_rwlock_destroy(&s->lock);
    free(s);
}
