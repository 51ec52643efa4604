/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation between an order's call and its report once. The call reports its end; if
 * it fails, the next call succeeds. */
#include "world.h"

#include "../base/failing_memory.h"
#include "cluster/orders.h"
#include "cluster/remote.h"

static bool counting;
static uint64_t left; /* allocations until the failing one; 0: it has failed */

bool allocation_fails(void)
{
    return counting && left > 0 && --left == 0;
}

typedef struct fixture {
    world w;
    rq_arena arena;
    rq_region_info info; /* a region that is closed */
    rq_orders *orders;
    rq_remote *remote;
    rq_remote_request *order; /* in transit */
    rq_report *report;
    rq_region_call call;
    bool ended;
} fixture;

static void take_order(void *ctx, rq_remote_request *r)
{
    ((fixture *)ctx)->order = r;
}

static void take_report(void *ctx, rq_report *r)
{
    ((fixture *)ctx)->report = r;
}

static void done(rq_region_call *call)
{
    ((fixture *)call->ctx)->ended = true;
}

static void setup(fixture *f)
{
    world *w = &f->w;
    rq_table_schema *schema;
    *f = (fixture){0};
    world_init(w, 7, NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    OK(world_open_closed_region(w, &f->arena, &f->info, &schema));
    rq_table_schema_unref(schema);
    const rq_orders_options orders = {.host = w->host, .report = take_report, .ctx = f};
    const rq_remote_options remote = {
        .env = w->env, .master_ms = 1000, .send = take_order, .ctx = f};
    assert_int_equal(rq_orders_new(&orders, &f->orders), RQ_OK);
    assert_int_equal(rq_remote_new(&remote, &f->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(f->remote, rq_host_name(w->host), &w->why), RQ_OK);
}

static void teardown(fixture *f)
{
    rq_region_calls calls = rq_remote_calls(f->remote);
    calls.stop(calls.ctx);
    rq_orders_stop(f->orders);
    rq_orders_free(f->orders);
    rq_remote_free(f->remote);
    rq_arena_clear(&f->arena);
    world_clear(&f->w);
}

/* Delivers messages; a refused message is sent again. */
static void deliver(fixture *f)
{
    rq_remote_request *order = f->order;
    rq_report *report = f->report;
    f->order = NULL;
    f->report = NULL;
    if (order != NULL) order->done(order, rq_orders_execute(f->orders, order->request, NULL), NULL);
    if (report != NULL)
        report->done(report, rq_remote_transitions(f->remote, NULL, report->request, NULL));
}

static rq_err call(fixture *f, rq_region_call_kind kind, uint64_t failing)
{
    rq_region_calls calls = rq_remote_calls(f->remote);
    f->call = (rq_region_call){
        .server = rq_host_name(f->w.host), .info = &f->info, .done = done, .ctx = f};
    f->ended = false;
    left = failing;
    counting = true;
    calls.send(calls.ctx, kind, &f->call, 1);
    for (int i = 0; i < 100 && !f->ended; i++) {
        rq_sim_advance(f->w.sim, 500000000);
        deliver(f);
    }
    counting = false;
    assert_true(f->ended);
    free(f->call.why);
    return f->call.rc;
}

static bool is_open(fixture *f)
{
    rq_region *r = rq_host_ref(f->w.host, &f->info);
    rq_region_unref(r);
    return r != NULL;
}

static void calls_report_whatever_allocation_fails(void **state)
{
    (void)state;
    unsigned failed = 0;
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        fixture f;
        setup(&f);
        rq_err rc = call(&f, RQ_CALL_OPEN, n);
        reached = left == 0;
        if (!reached) assert_int_equal(rc, RQ_OK);
        assert_int_equal(is_open(&f), rc == RQ_OK);
        failed += rc != RQ_OK;
        assert_int_equal(call(&f, RQ_CALL_OPEN, 0), RQ_OK);
        rc = call(&f, RQ_CALL_CLOSE, n);
        assert_int_equal(is_open(&f), f.call.unsent);
        assert_int_equal(call(&f, RQ_CALL_CLOSE, 0), RQ_OK);
        assert_false(is_open(&f));
        teardown(&f);
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_report_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
