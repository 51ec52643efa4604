/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the calls in flight to the operator. Calls belong to their loops' threads: a task on each
 * loop logs that loop's calls, and the requesting thread waits for the tasks, with a time limit. */
#include "rpc/rpc_priv.h"

#include "base/clock.h"

#include <stdlib.h>

typedef struct ask ask;

typedef struct ask_task {
    rq_task task;
    ask *ask;
    rq_rpc_worker *worker;
    _Atomic bool done;
} ask_task;

struct ask {
    rq_log log; /* a copy: a loop may come to it late */
    const char *name;
    _Atomic unsigned refs; /* the tasks, and whoever waits */
    ask_task tasks[];
};

static void ask_unref(ask *a)
{
    if (atomic_fetch_sub(&a->refs, 1) == 1) free(a);
}

static void log_call(const ask *a, const rq_rpc_worker *w, const rq_call_private *p, uint64_t now)
{
    const rq_call *c = &p->call;
    if (p->conn == NULL || c->method == NULL) return;
    uint64_t age = now > c->received_ns ? now - c->received_ns : 0;
    rq_log_info(&a->log, "report",
                "%s, loop %u: call %u %s of '%s' from %s, %u bytes, for %.3f ms%s", a->name,
                rq_loop_index(w->loop), c->id, c->method->name, c->client->user,
                RQ_HOST_PORT(c->client->host, c->client->port), c->request_bytes, (double)age / 1e6,
                p->waiting ? ", waits for memory for its answer" : "");
}

static void run_ask(rq_task *task)
{
    ask_task *t = RQ_CONTAINER_OF(task, ask_task, task);
    uint64_t now = rq_loop_clock_ns();
    for (const rq_call_private *p = t->worker->made; p != NULL; p = p->next_made)
        log_call(t->ask, t->worker, p, now);
    atomic_store(&t->done, true);
    ask_unref(t->ask);
}

static bool all_done(const ask *a, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!atomic_load(&a->tasks[i].done)) return false;
    return true;
}

void rq_rpc_server_report(rq_rpc_server *s, const char *name, const rq_log *log, unsigned wait_ms)
{
    rq_rpc_stats stats = rq_rpc_server_stats(s);
    unsigned count = s->worker_count;
    ask *a = calloc(1, sizeof *a + count * sizeof a->tasks[0]);
    rq_log_info(log, "report", "%s: %llu connections, %llu calls in flight", name,
                (unsigned long long)stats.connections, (unsigned long long)stats.calls_in_flight);
    if (a == NULL) return;
    a->log = rq_log_at(log, log->level);
    a->name = name;
    atomic_init(&a->refs, count + 1);
    for (unsigned i = 0; i < count; i++) {
        a->tasks[i] = (ask_task){.task = {.run = run_ask}, .ask = a, .worker = &s->workers[i]};
        rq_lane_post(rq_loop_lane(s->workers[i].loop), &a->tasks[i].task);
    }
    for (unsigned waited = 0; waited < wait_ms && !all_done(a, count); waited++)
        rq_clock_sleep_ns(1000000);
    for (unsigned i = 0; i < count; i++)
        if (!atomic_load(&a->tasks[i].done))
            rq_log_warn(log, "report", "%s, loop %u: has not answered for %u ms", name, i, wait_ms);
    ask_unref(a);
}
