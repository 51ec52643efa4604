/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the calls in flight and the connections that are not read, for the operator. They belong to
 * their loops' threads, so a task on each loop copies what it has; the requesting thread waits for
 * the tasks for a limited time. */
#include "rpc/rpc_priv.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct ask ask;

typedef struct ask_task {
    rq_task task;
    rq_stream_walk walk;
    ask *ask;
    rq_rpc_worker *worker;
    rq_rpc_call_info calls[RQ_RPC_CALLS_LISTED];
    size_t count;
    rq_rpc_conn_info conns[RQ_RPC_CONNS_LISTED];
    size_t conn_count;
    _Atomic bool done;
} ask_task;

struct ask {
    _Atomic unsigned
        refs; /* the tasks, and the thread that asks: a loop may come to its task late */
    ask_task tasks[];
};

static void ask_unref(ask *a)
{
    if (atomic_fetch_sub(&a->refs, 1) == 1) free(a);
}

static void copy_call(rq_rpc_call_info *to, const rq_rpc_worker *w, const rq_call_private *p)
{
    const rq_call *c = &p->call;
    to->loop = rq_loop_index(w->loop);
    to->id = c->id;
    to->method = c->method->name;
    snprintf(to->user, sizeof to->user, "%s", c->client->user);
    snprintf(to->host, sizeof to->host, "%s", c->client->host);
    to->port = c->client->port;
    to->request_bytes = c->request_bytes;
    to->received_ns = c->received_ns;
    to->started_ns = c->started_ns;
    to->waits_for_memory = p->waiting;
}

/* A connection that is not read, or that waits for the rest of a request. */
static bool copy_conn(rq_stream_walk *walk, rq_stream *s)
{
    ask_task *t = RQ_CONTAINER_OF(walk, ask_task, walk);
    const rq_rpc_conn *conn = rq_stream_user(s);
    bool waits = conn != NULL && (conn->blocked != 0 || rq_input_partial(&conn->input));
    if (!waits || conn->worker != t->worker) return true;
    rq_rpc_conn_info *to = &t->conns[t->conn_count++];
    *to = (rq_rpc_conn_info){
        .loop = rq_loop_index(t->worker->loop),
        .port = conn->client.port,
        .blocked = conn->blocked,
        .calls = conn->calls,
        .unread_bytes = rq_stream_out_pending(s),
        .received_bytes = rq_input_held(&conn->input),
        .request_bytes = conn->input.big_want,
        .paused = rq_stream_paused(s),
    };
    snprintf(to->host, sizeof to->host, "%s", conn->host);
    return t->conn_count < RQ_RPC_CONNS_LISTED;
}

static void end_ask(rq_stream_walk *walk)
{
    ask_task *t = RQ_CONTAINER_OF(walk, ask_task, walk);
    atomic_store(&t->done, true);
    ask_unref(t->ask);
}

static void run_ask(rq_task *task)
{
    ask_task *t = RQ_CONTAINER_OF(task, ask_task, task);
    const rq_call_private *p = t->worker->made;
    for (; p != NULL && t->count < RQ_RPC_CALLS_LISTED; p = p->next_made)
        if (p->conn != NULL && p->call.method != NULL)
            copy_call(&t->calls[t->count++], t->worker, p);
    t->walk = (rq_stream_walk){.events = &rq_conn_events, .visit = copy_conn, .end = end_ask};
    rq_loop_walk_streams(t->worker->loop, &t->walk);
}

static bool all_done(const ask *a, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!atomic_load(&a->tasks[i].done)) return false;
    return true;
}

static void wait_for_loops(const ask *a, unsigned count, unsigned wait_ms)
{
    for (unsigned waited = 0; waited < wait_ms && !all_done(a, count); waited++)
        rq_clock_sleep_ns(1000000);
}

static void gather(const ask *a, unsigned count, rq_rpc_calls *ret)
{
    for (unsigned i = 0; i < count; i++) {
        const ask_task *t = &a->tasks[i];
        if (!atomic_load(&t->done)) {
            ret->silent_loops++;
            continue;
        }
        memcpy(&ret->calls[ret->count], t->calls, t->count * sizeof t->calls[0]);
        ret->count += t->count;
        memcpy(&ret->conns[ret->conn_count], t->conns, t->conn_count * sizeof t->conns[0]);
        ret->conn_count += t->conn_count;
    }
}

void rq_rpc_server_calls(rq_rpc_server *s, unsigned wait_ms, rq_rpc_calls *ret)
{
    unsigned count = s->worker_count;
    *ret = (rq_rpc_calls){0};
    ask *a = calloc(1, sizeof *a + count * sizeof a->tasks[0]);
    ret->calls = calloc(count, RQ_RPC_CALLS_LISTED * sizeof *ret->calls);
    ret->conns = calloc(count, RQ_RPC_CONNS_LISTED * sizeof *ret->conns);
    if (a == NULL || ret->calls == NULL || ret->conns == NULL) {
        free(a);
        return;
    }
    atomic_init(&a->refs, count + 1);
    for (unsigned i = 0; i < count; i++) {
        a->tasks[i].task.run = run_ask;
        a->tasks[i].ask = a;
        a->tasks[i].worker = &s->workers[i];
        rq_lane_post(rq_loop_lane(s->workers[i].loop), &a->tasks[i].task);
    }
    wait_for_loops(a, count, wait_ms);
    gather(a, count, ret);
    ask_unref(a);
}

void rq_rpc_calls_free(rq_rpc_calls *list)
{
    free(list->calls);
    free(list->conns);
    *list = (rq_rpc_calls){0};
}

static void log_call(const rq_log *log, const char *name, const rq_rpc_call_info *c, uint64_t now)
{
    uint64_t age = now > c->received_ns ? now - c->received_ns : 0;
    rq_log_info(
        log, "report",
        "%s, loop %u: call %u %s of user '%s' from %s, request of %u bytes, received %.3f ms ago%s",
        name, c->loop, c->id, c->method, c->user, RQ_HOST_PORT(c->host, c->port), c->request_bytes,
        (double)age / 1e6, c->waits_for_memory ? ", waiting for memory for its response" : "");
}

static void log_conn(const rq_log *log, const char *name, const rq_rpc_conn_info *c)
{
    static const struct {
        unsigned reason;
        const char *text;
    } reasons[] = {
        {RQ_BLOCK_OUTPUT, ", unread responses"},       {RQ_BLOCK_CALLS, ", calls in flight"},
        {RQ_BLOCK_BUDGET, ", no memory for requests"}, {RQ_BLOCK_MOVE, ", moving to another loop"},
        {RQ_BLOCK_TURN, ", waiting for its turn"},
    };
    char why[160] = ""; /* longer than all texts together */
    size_t used = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(reasons); i++)
        if ((c->blocked & reasons[i].reason) != 0)
            used += (size_t)snprintf(why + used, sizeof why - used, "%s", reasons[i].text);
    rq_log_info(log, "report",
                "%s, loop %u: connection from %s is %s%s; %u calls in flight, %zu bytes of "
                "responses unread, %zu bytes of requests received (a large one: %zu)",
                name, c->loop, RQ_HOST_PORT(c->host, c->port),
                c->paused || c->blocked != 0 ? "not being read" : "read", why, c->calls,
                c->unread_bytes, c->received_bytes, c->request_bytes);
}

static void log_budget(const rq_log *log, const char *name, const char *what, const rq_budget *b)
{
    if (b != NULL)
        rq_log_info(log, "report", "%s: %s use %zu of %zu bytes%s", name, what, rq_budget_used(b),
                    rq_budget_max(b),
                    rq_budget_contended(b) ? ", and more are waiting for memory" : "");
}

static void log_budgets(const rq_log *log, const char *name, const rq_rpc_server_options *o)
{
    log_budget(log, name, "requests", o->budget);
    log_budget(log, name, "responses being built", o->answers);
    log_budget(log, name, "unread responses", o->unread);
}

void rq_rpc_server_report(rq_rpc_server *s, const char *name, const rq_log *log, unsigned wait_ms)
{
    rq_rpc_stats stats = rq_rpc_server_stats(s);
    rq_rpc_calls list;
    rq_log_info(log, "report", "%s: %llu connections, %llu calls in flight", name,
                (unsigned long long)stats.connections, (unsigned long long)stats.calls_in_flight);
    rq_rpc_server_calls(s, wait_ms, &list);
    log_budgets(log, name, &s->options);
    uint64_t now = rq_loop_clock_ns();
    for (size_t i = 0; i < list.count; i++)
        log_call(log, name, &list.calls[i], now);
    for (size_t i = 0; i < list.conn_count; i++)
        log_conn(log, name, &list.conns[i]);
    if (list.silent_loops > 0)
        rq_log_warn(log, "report", "%s: %u loops have not answered for %u ms", name,
                    list.silent_loops, wait_ms);
    rq_rpc_calls_free(&list);
}
