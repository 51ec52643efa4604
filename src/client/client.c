/* SPDX-License-Identifier: Apache-2.0 */
/* The client object: servers and connections, and a driven loop (net/loop.h) that all operations run
 * in. A poll waits for sockets, lets connections end their calls, starts attempts whose pause is over,
 * and writes everything these have queued. */
#include "client/client_priv.h"

#include "base/clock.h"
#include "base/random.h"

#include <stdlib.h>
#include <unistd.h>

#define RPC_TIMEOUT_MS 60000
#define PAUSE_MS 100
#define TIMEOUT_PERIOD_NS 100000000

int64_t rq_client_now_ns(void)
{
    return (int64_t)rq_clock_ns(CLOCK_MONOTONIC);
}

static rq_err open_loop(rq_client *c, rq_error *why)
{
    rq_loops_options o = {.driven = true,
                          .before_wait = c->options.before_wait,
                          .after_wait = c->options.after_wait,
                          .ctx = c->options.ctx};
    rq_err rc = rq_loops_new(&o, &c->loops);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot make an event loop: %s", rq_err_text(rc));
    c->loop = rq_loops_get(c->loops, 0);
    return RQ_OK;
}

static rq_err ask_registry(rq_client *c, rq_error *why)
{
    rq__registry *r = &c->registry;
    RQ_TRY(rq__registry_ask(c, c->timeout_ns, why));
    while (r->asking)
        rq_client_poll(c, c->timeout_ns);
    return r->rc == RQ_OK ? RQ_OK : rq_fail(why, r->rc, "%s", r->why.message);
}

rq_err rq_client_open(const rq_client_options *o, rq_client **ret, rq_error *why)
{
    rq_client *c = calloc(1, sizeof *c);
    if (c == NULL) return rq_no_memory(why);
    c->options = *o;
    if (c->options.lanes == 0) c->options.lanes = 1;
    if (c->options.rpc_timeout_ms == 0) c->options.rpc_timeout_ms = RPC_TIMEOUT_MS;
    if (c->options.pause_ms == 0) c->options.pause_ms = PAUSE_MS;
    if (c->options.user == NULL) c->options.user = "rorqual";
    c->timeout_ns = (int64_t)c->options.rpc_timeout_ms * 1000000;
    rq_random r;
    rq_random_seed(&r, (uint64_t)rq_client_now_ns() ^ (uint64_t)getpid() << 32);
    c->nonce_group = rq_random_next(&r) | 1;
    rq_err rc = open_loop(c, why);
    if (rc == RQ_OK) rc = ask_registry(c, why);
    if (rc != RQ_OK) {
        rq_client_close(c);
        return rc;
    }
    *ret = c;
    return RQ_OK;
}

static void table_free(rq_client_table *t)
{
    rq_arena_clear(&t->arena);
    rq_arena_clear(&t->next_arena);
    rq_buf_clear(&t->request);
    free(t->regions);
    free(t->next_regions);
    free(t->name);
    free(t);
}

void rq_client_close(rq_client *c)
{
    if (c == NULL) return;
    while (c->tables != NULL) {
        rq_client_table *t = c->tables;
        c->tables = t->next;
        table_free(t);
    }
    for (size_t i = 0; i < c->server_count; i++)
        free(c->servers[i].lanes);
    free(c->servers);
    for (size_t i = 0; i < c->all_count; i++)
        rq__conn_free(c->all[i]);
    free(c->all);
    rq__registry_free(c);
    rq_loops_free(c->loops);
    free(c);
}

uint64_t rq_client_connects(const rq_client *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->all_count; i++)
        sum += rq__conn_connects(c->all[i]);
    return sum;
}

rq_client_traffic rq_client_traffic_now(const rq_client *c)
{
    rq_client_traffic sum = {0};
    for (size_t i = 0; i < c->all_count; i++) {
        rq_client_traffic t = rq__conn_traffic(c->all[i]);
        sum.calls += t.calls;
        sum.sent += t.sent;
        sum.received += t.received;
    }
    return sum;
}

const char *rq_client_master_host(const rq_client *c, uint16_t *ret_port)
{
    *ret_port = c->found.master.port;
    return c->found.master.host;
}

const char *rq_client_cluster_id(const rq_client *c)
{
    return c->found.cluster_id;
}

/* --- connections ------------------------------------------------------------------------------ */

rq_err rq__client_conn(rq_client *c, const rq__address *at, const char *service, const char *codec,
                       rq__conn **ret)
{
    if (c->stopped) return RQ_E_CLOSED;
    if (c->all_count == c->all_cap) {
        size_t cap = c->all_cap == 0 ? 16 : c->all_cap * 2;
        rq__conn **all = realloc(c->all, cap * sizeof *all);
        if (all == NULL) return RQ_E_NO_MEMORY;
        c->all = all;
        c->all_cap = cap;
    }
    rq__conn_options o = {
        .loop = c->loop,
        .host = at->host,
        .port = at->port,
        .service = service,
        .codec = codec,
        .user = c->options.user,
        .timeout_ns = c->timeout_ns,
    };
    RQ_TRY(rq__conn_new(&o, ret));
    c->all[c->all_count++] = *ret;
    return RQ_OK;
}

rq_err rq__client_server(rq_client *c, const rq__address *at, uint32_t *ret)
{
    for (size_t i = 0; i < c->server_count; i++)
        if (c->servers[i].at.port == at->port && strcmp(c->servers[i].at.host, at->host) == 0) {
            *ret = (uint32_t)i;
            return RQ_OK;
        }
    rq__server *servers = realloc(c->servers, (c->server_count + 1) * sizeof *servers);
    if (servers == NULL) return RQ_E_NO_MEMORY;
    c->servers = servers;
    rq__conn **lanes = calloc(c->options.lanes, sizeof *lanes);
    if (lanes == NULL) return RQ_E_NO_MEMORY;
    servers[c->server_count] = (rq__server){.at = *at, .lanes = lanes};
    *ret = (uint32_t)c->server_count++;
    return RQ_OK;
}

rq_err rq__client_lane(rq_client *c, uint32_t server, unsigned lane, rq__conn **ret)
{
    rq__server *s = &c->servers[server];
    lane %= c->options.lanes;
    if (s->lanes[lane] == NULL)
        RQ_TRY(rq__client_conn(c, &s->at, "ClientService",
                               c->options.with_tags ? RQ__CODEC_WITH_TAGS : NULL, &s->lanes[lane]));
    *ret = s->lanes[lane];
    return RQ_OK;
}

/* --- the loop --------------------------------------------------------------------------------- */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void run_timer(rq_loop_timer *timer)
{
    rq_client_timer *t = RQ_CONTAINER_OF(timer, rq_client_timer, timer);
    t->run(t);
}

void rq_client_timer_arm(rq_client *c, rq_client_timer *timer, int64_t delay_ns)
{
    timer->timer.run = run_timer;
    rq_loop_timer_arm(c->loop, &timer->timer, c->stopped ? 0 : (uint64_t)delay_ns);
}

/* Starts the attempts that are due; returns when the next one is. */
static int64_t run_due(rq_client *c)
{
    return c->waiting == NULL ? INT64_MAX : rq__ops_wake(c, rq_client_now_ns());
}

int64_t rq_client_due(const rq_client *c)
{
    int64_t due = min64(rq_loop_due(c->loop), rq__ops_due(c));
    for (size_t i = 0; i < c->all_count; i++)
        if (rq__conn_in_flight(c->all[i]) > 0)
            return min64(due, c->timeouts_checked_ns + TIMEOUT_PERIOD_NS);
    return due;
}

int rq_client_descriptor(const rq_client *c)
{
    return rq_loop_descriptor(c->loop);
}

void rq_client_wake(rq_client *c)
{
    rq_loop_wake(c->loop);
}

void rq_client_stop(rq_client *c)
{
    c->stopped = true;
    rq__ops_stop(c);
    for (size_t i = 0; i < c->all_count; i++)
        rq__conn_stop(c->all[i]);
    rq__registry_stop(c);
    rq_loop_hasten_timers(c->loop);
    rq_client_wake(c);
}

static void check_timeouts(rq_client *c)
{
    int64_t now = rq_client_now_ns();
    if (now - c->timeouts_checked_ns < TIMEOUT_PERIOD_NS) return;
    c->timeouts_checked_ns = now;
    for (size_t i = 0; i < c->all_count; i++)
        rq__conn_check_timeouts(c->all[i], now);
}

void rq_client_poll(rq_client *c, int64_t timeout_ns)
{
    int64_t due = run_due(c);
    int64_t wait = min64(timeout_ns, TIMEOUT_PERIOD_NS);
    if (due != INT64_MAX) wait = min64(wait, due - rq_client_now_ns());
    rq_loop_turn(c->loop, wait);
    check_timeouts(c);
    (void)run_due(c);
    rq_loop_flush(c->loop);
}

void rq_client_flush(rq_client *c)
{
    rq_loop_flush(c->loop);
}

void rq__client_pause(rq_client *c, int64_t ns)
{
    int64_t until = rq_client_now_ns() + ns;
    for (int64_t left = ns; left > 0 && !c->stopped; left = until - rq_client_now_ns())
        rq_client_poll(c, left);
}

/* --- a blocking call -------------------------------------------------------------------------- */

typedef struct waiter {
    bool done;
    rq_err err;
    rq_buf *ret;
    rq_error *why;
    const char *method;
} waiter;

static void take_answer(void *ctx, const rq_reply *r)
{
    waiter *w = ctx;
    w->done = true;
    w->err = r->err;
    if (r->err != RQ_OK)
        w->err = rq_fail(w->why, r->err, "%s: %.*s: %.*s", w->method, (int)r->kind.len,
                         (const char *)r->kind.ptr, (int)(r->text.len > 600 ? 600 : r->text.len),
                         r->text.len > 0 ? (const char *)r->text.ptr : "");
    else
        w->err = rq_buf_append(w->ret, r->message.ptr, r->message.len);
}

rq_err rq__client_call(rq_client *c, rq__conn *conn, const char *method, rq_slice message,
                       rq_buf *ret, rq_error *why)
{
    waiter w = {.ret = ret, .why = why, .method = method};
    rq_buf_reset(ret);
    rq_err rc =
        rq__conn_call(conn, method, 0, (rq_slice){0}, message, (rq_slice){0}, take_answer, &w);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: cannot connect", method);
    while (!w.done)
        rq_client_poll(c, 10000000);
    return w.err;
}

/* --- tables ----------------------------------------------------------------------------------- */

static rq_err table_new(rq_client *c, const char *name, rq_client_table **ret)
{
    rq_client_table *t = calloc(1, sizeof *t);
    if (t == NULL || (t->name = strdup(name)) == NULL) {
        free(t);
        return RQ_E_NO_MEMORY;
    }
    t->client = c;
    if (strncmp(name, "hbase:", 6) == 0) t->priority = RQ__PRIORITY_META; /* HBASE: calcPriority */
    t->next = c->tables;
    c->tables = t;
    *ret = t;
    return RQ_OK;
}

static void forget_table(rq_client *c, rq_client_table *t)
{
    rq_client_table **at = &c->tables;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    table_free(t);
}

rq_err rq_client_table_get(rq_client *c, const char *name, rq_client_table **ret)
{
    for (rq_client_table *t = c->tables; t != NULL; t = t->next)
        if (strcmp(t->name, name) == 0) {
            *ret = t;
            return RQ_OK;
        }
    RQ_TRY(table_new(c, name, ret));
    if (strcmp(name, "hbase:meta") == 0) rq__map_refresh(*ret); /* known at once */
    return RQ_OK;
}

rq_err rq_client_table_open(rq_client *c, const char *name, rq_client_table **ret, rq_error *why)
{
    rq_client_table *t;
    if (table_new(c, name, &t) != RQ_OK) return rq_no_memory(why);
    for (unsigned attempt = 0;; attempt++) {
        rq__map_refresh(t);
        while (t->refreshing)
            rq_client_poll(c, 10000000);
        if (t->refresh_err == RQ_OK && t->region_count > 0) break;
        rq_err rc = t->refresh_err != RQ_OK ? t->refresh_err : RQ_E_TABLE_NOT_FOUND;
        if (attempt >= 3 || c->stopped) {
            (void)rq_fail(why, rc, "table %s: %s", name,
                          t->refresh_err != RQ_OK ? t->refresh_text
                                                  : "hbase:meta has no region of this table");
            forget_table(c, t);
            return rc;
        }
        rq__client_pause(c, (int64_t)c->options.pause_ms * 1000000);
    }
    *ret = t;
    return RQ_OK;
}

size_t rq_client_table_regions(const rq_client_table *t)
{
    return t->region_count;
}

size_t rq_client_table_servers(const rq_client_table *t)
{
    return t->client->server_count;
}

rq_err rq_client_table_read(rq_client_table *t, rq_error *why)
{
    rq__map_refresh(t);
    while (t->refreshing)
        rq_client_poll(t->client, 10000000);
    return t->refresh_err == RQ_OK
               ? RQ_OK
               : rq_fail(why, t->refresh_err, "table %s: %s", t->name, t->refresh_text);
}

/* A region's specifier is a field with { type 1, value 2 }: its name. */
static rq_slice name_of(rq_slice specifier)
{
    rq_cursor c = rq_cursor_of(specifier);
    rq_pb_field f;
    if (rq_pb_next(&c, &f) != RQ_OK) return (rq_slice){0};
    c = rq_cursor_of(f.bytes);
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 2) return f.bytes;
    return (rq_slice){0};
}

rq_client_region rq_client_table_region(const rq_client_table *t, size_t i)
{
    const rq__region *r = &t->regions[i];
    const rq__address *at = &t->client->servers[r->server].at;
    return (rq_client_region){.name = name_of(r->specifier),
                              .start = r->start,
                              .end = r->end,
                              .host = at->host,
                              .port = at->port};
}
