/* SPDX-License-Identifier: Apache-2.0 */
/* Each call waits for a timer, then runs as a task of its own; see late_calls.h. */
#include "late_calls.h"

#include "../base/unit.h"

typedef struct late_call {
    struct late_call *next;
    late_calls *owner;
    rq_region_call_kind kind;
    rq_region_call *call;
    rq_timer timer;
    rq_task task;
} late_call;

struct late_calls {
    rq_sim *sim;
    rq_executor *executor;
    rq_lane *lane;
    rq_region_calls local;
    late_call *waiting;
    uint64_t count;
    size_t running;
    bool gone, held, stopped;
    unsigned exhausted;
    rq_err open_rc; /* applies to regions of user tables */
    const rq_server_name
        *server; /* the server on which user tables are placed; NULL: the host under its own name */
    rq_host *host;
};

static void unlink_call(late_call *k)
{
    late_call **at = &k->owner->waiting;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
}

static bool is_up(void *ctx, const rq_server_name *name)
{
    const late_calls *l = ctx;
    return l->server == NULL || strcmp(name->text, l->server->text) == 0 ||
           strcmp(name->text, rq_host_name(l->host)->text) == 0;
}

static void run_call(rq_task *task)
{
    late_call *k = RQ_CONTAINER_OF(task, late_call, task);
    late_calls *l = k->owner;
    bool fails = k->kind == RQ_CALL_OPEN && l->open_rc != RQ_OK &&
                 rq_slice_eq(k->call->info->ns, RQ_SLICE_LIT("default"));
    if (fails)
        rq_region_call_report(k->call, l->open_rc, NULL);
    else if (is_up(l, k->call->server))
        l->local.send(l->local.ctx, k->kind, k->call, 1);
    else
        rq_region_call_report(k->call, RQ_E_SERVER_NOT_RUNNING, NULL);
    l->running--;
    free(k);
}

static uint64_t some_delay_ns(late_calls *l)
{
    uint64_t r = rq_sim_random(l->sim);
    uint64_t max = r % 8 == 0 ? 3000000000 : 5000000;
    return (r >> 8) % max;
}

static void due(rq_task *task)
{
    late_call *k = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), late_call, timer);
    late_calls *l = k->owner;
    if (l->held) {
        l->executor->timer_arm(l->executor, &k->timer, l->lane, 100000000);
        return;
    }
    unlink_call(k);
    l->running++;
    k->task.run = run_call;
    l->executor->submit(l->executor, RQ_POOL_WORK, &k->task);
}

static void send_one(late_calls *l, rq_region_call_kind kind, rq_region_call *call)
{
    if (l->stopped) {
        rq_region_call_report(call, RQ_E_SERVER_STOPPED, NULL);
        return;
    }
    if (!is_up(l, call->server)) {
        rq_region_call_report(call, RQ_E_SERVER_NOT_RUNNING, NULL);
        return;
    }
    if (l->exhausted > 0) {
        l->exhausted--;
        call->unsent = true;
        rq_region_call_report(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    late_call *k = calloc(1, sizeof *k);
    assert_non_null(k);
    *k = (late_call){.next = l->waiting, .owner = l, .kind = kind, .call = call};
    l->waiting = k;
    l->count++;
    k->timer.task.run = due;
    l->executor->timer_arm(l->executor, &k->timer, l->lane, some_delay_ns(l));
}

static void send_all(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        send_one(ctx, kind, &list[i]); /* after the last call `list` may be freed */
}

static bool load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret)
{
    const late_calls *l = ctx;
    return l->local.load(l->local.ctx, server, info, ret);
}

static const rq_server_name *place(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last)
{
    const late_calls *l = ctx;
    bool elsewhere = l->server != NULL && !rq_slice_eq(info->ns, RQ_SLICE_LIT("hbase"));
    if (l->gone) return NULL;
    return elsewhere ? rq_server_name_ref(l->server) : l->local.place(l->local.ctx, info, last);
}

static void stop(void *ctx)
{
    late_calls *l = ctx;
    l->stopped = true;
    while (l->waiting != NULL) {
        late_call *k = l->waiting;
        /* False: the timer has fired, and its task runs before the world is freed. */
        if (!l->executor->timer_cancel(l->executor, &k->timer)) rq_sim_run(l->sim);
        if (l->waiting != k) continue;
        unlink_call(k);
        rq_region_call_report(k->call, RQ_E_SERVER_STOPPED, NULL);
        free(k);
    }
    while (l->running > 0)
        rq_sim_advance(l->sim, 1000000);
}

late_calls *late_calls_new(rq_sim *sim, rq_host *host)
{
    late_calls *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->sim = sim;
    l->executor = rq_sim_env(sim)->executor;
    l->local = rq_host_calls(host);
    l->host = host;
    assert_int_equal(rq_sim_lane_new(sim, &l->lane), RQ_OK);
    return l;
}

rq_region_calls late_calls_table(late_calls *l)
{
    return (rq_region_calls){
        .send = send_all, .load = load, .place = place, .is_up = is_up, .stop = stop, .ctx = l};
}

uint64_t late_calls_count(const late_calls *l)
{
    return l->count;
}

void late_calls_lose_servers(late_calls *l, bool gone)
{
    l->gone = gone;
}

void late_calls_hold(late_calls *l, bool held)
{
    l->held = held;
}

void late_calls_fail_opens(late_calls *l, rq_err rc)
{
    l->open_rc = rc;
}

void late_calls_exhaust(late_calls *l, unsigned count)
{
    l->exhausted = count;
}

static void start_server(late_calls *l, int64_t start_code)
{
    const rq_server_name name = {.host = "other", .port = 16020, .start_code = start_code};
    rq_server_name_unref(l->server);
    l->server = rq_server_name_new(&name);
    assert_non_null(l->server);
}

void late_calls_name_server(late_calls *l)
{
    start_server(l, 1);
}

/* Calls that have not begun report that the server has ended; running calls have reported
 * before. */
static void end_calls(late_calls *l)
{
    while (l->running > 0)
        if (!rq_sim_step(l->sim)) rq_sim_advance(l->sim, 1000000);
    start_server(l, l->server->start_code + 1);
    for (late_call *k = l->waiting, *next; k != NULL; k = next) {
        next = k->next;
        if (is_up(l, k->call->server) || !l->executor->timer_cancel(l->executor, &k->timer))
            continue;
        unlink_call(k);
        rq_region_call_report(k->call, RQ_E_SERVER_NOT_RUNNING, NULL);
        free(k);
        next = l->waiting; /* the report's callback may have changed the list */
    }
}

/* Regions that were open there are closed without a flush. */
const rq_server_name *late_calls_end_server(late_calls *l)
{
    rq_arena a = {0};
    rq_region **list;
    size_t count;
    const rq_server_name *ended = rq_server_name_ref(l->server);
    end_calls(l);
    assert_int_equal(rq_engine_regions(rq_host_engine(l->host), &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        const rq_region_info *info = rq_region_get_info(list[i]);
        if (rq_slice_eq(info->ns, RQ_SLICE_LIT("default")))
            assert_int_equal(rq_host_close(l->host, info, true, NULL, NULL), RQ_OK);
        rq_region_unref(list[i]);
    }
    rq_arena_clear(&a);
    return ended;
}

void late_calls_free(late_calls *l)
{
    if (l == NULL) return;
    rq_server_name_unref(l->server);
    assert_null(l->waiting);
    l->executor->lane_free(l->executor, l->lane);
    free(l);
}
