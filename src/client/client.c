/* SPDX-License-Identifier: Apache-2.0 */
/* The client object: servers and connections, and a driven loop (net/loop.h) that all operations run
 * in. A poll waits for sockets, lets connections end their calls, starts attempts whose pause is over,
 * and writes everything these have queued. */
#include "client/client_priv.h"

#include "base/clock.h"
#include "base/random.h"
#include "net/check.h"

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
    if (rc == RQ_E_UNSUPPORTED) RQ_TRY(rq_loops_check(why));
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot create an event loop: %s", rq_err_text(rc));
    c->loop = rq_loops_get(c->loops, 0);
    return RQ_OK;
}

static rq_err ask_registry(rq_client *c, rq_error *why)
{
    rq__registry *r = &c->registry;
    const volatile sig_atomic_t *stop = c->options.stop;
    RQ_TRY(rq__registry_ask(c, c->timeout_ns, why));
    while (r->asking) {
        if (stop != NULL && *stop) rq_client_stop(c);
        rq_client_poll(c, c->timeout_ns);
    }
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
    c->next_nonce = rq_random_next(&r) | 1;
    c->registry_at = rq_random_next(&r) >> 1;
    rq_err rc = open_loop(c, why);
    if (rc == RQ_OK) rc = ask_registry(c, why);
    if (rc != RQ_OK) {
        rq_client_close(c);
        return rc;
    }
    *ret = c;
    return RQ_OK;
}

void rq_client_close(rq_client *c)
{
    if (c == NULL) return;
    rq__tables_free(c);
    rq__servers_free(c);
    for (size_t i = 0; i < c->all_count; i++)
        rq__conn_free(c->all[i]);
    free(c->all);
    rq__aheads_free(c);
    rq__registry_free(c);
    rq_loops_free(c->loops);
    free(c);
}

uint64_t rq_client_connects(const rq_client *c)
{
    uint64_t sum = c->dropped_connects;
    for (size_t i = 0; i < c->all_count; i++)
        sum += rq__conn_connects(c->all[i]);
    return sum;
}

static void add_traffic(rq_client_traffic *sum, rq_client_traffic t)
{
    sum->calls += t.calls;
    sum->sent += t.sent;
    sum->received += t.received;
}

rq_client_traffic rq_client_traffic_now(const rq_client *c)
{
    rq_client_traffic sum = c->dropped;
    for (size_t i = 0; i < c->all_count; i++)
        add_traffic(&sum, rq__conn_traffic(c->all[i]));
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

void rq__client_drop_conn(rq_client *c, rq__conn *conn)
{
    if (conn == NULL || rq__conn_in_flight(conn) > 0) return;
    for (size_t i = 0; i < c->all_count; i++) {
        if (c->all[i] != conn) continue;
        c->dropped_connects += rq__conn_connects(conn);
        add_traffic(&c->dropped, rq__conn_traffic(conn));
        c->all[i] = c->all[--c->all_count];
        rq__conn_free(conn);
        return;
    }
}

void rq__client_retire_conn(rq_client *c, rq__conn *conn)
{
    if (conn == NULL) return;
    rq__conn_retire(conn);
    c->has_retired = true;
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

void rq_client_timer_cancel(rq_client *c, rq_client_timer *timer)
{
    rq_loop_timer_cancel(c->loop, &timer->timer);
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

/* Connections that nobody will use again. Not in a callback: it may be one of theirs. */
static void drop_retired(rq_client *c)
{
    c->has_retired = false;
    for (size_t i = c->all_count; i-- > 0;) {
        if (!rq__conn_is_retired(c->all[i])) continue;
        c->has_retired = c->has_retired || rq__conn_in_flight(c->all[i]) > 0;
        rq__client_drop_conn(c, c->all[i]);
    }
}

void rq_client_poll(rq_client *c, int64_t timeout_ns)
{
    if (c->has_retired) drop_retired(c);
    if (c->forgets_servers) rq__servers_forget(c);
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

void rq_client_pause(rq_client *c, int64_t ns)
{
    int64_t until = rq_client_now_ns() + ns;
    for (int64_t left = ns; left > 0 && !c->stopped; left = until - rq_client_now_ns())
        rq_client_poll(c, left);
}

int64_t rq__client_pause_ns(const rq_client *c, unsigned attempts)
{
    static const int factors[] = {1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200};
    size_t n = attempts < RQ_ARRAY_LEN(factors) ? attempts : RQ_ARRAY_LEN(factors) - 1;
    return (int64_t)c->options.pause_ms * 1000000 * factors[n];
}

bool rq__client_again(rq_client *c, rq__repeat *repeat, rq_err rc, bool retry)
{
    int64_t pause = rq__client_pause_ns(c, repeat->attempts);
    if (rc == RQ_OK || !(retry || rc == RQ_E_IO) || c->stopped) return false;
    if (repeat->attempts >= repeat->max || rq_client_now_ns() + pause > repeat->until_ns)
        return false;
    repeat->attempts++;
    rq_client_pause(c, pause);
    return true; /* if the client was stopped meanwhile, the attempt says so */
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
