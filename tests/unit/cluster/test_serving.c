/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose master is another process: the regions that requests find, and its reports to the master. */
#include "world.h"

#include "cluster/duty.h"
#include "cluster/orders.h"
#include "cluster/wire.h"
#include "proto/region_server_status.pb-c.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct fixture {
    world w;
    rq_arena arena;
    rq_region_info info; /* a closed region with row a */
    rq_host *host;       /* in addition to the world's host */
    rq_orders *orders;
    rq_duty *duty;
    rq_report *report; /* in transit to the master */
    unsigned reports;
    bool lost;  /* from now on reports are lost */
    bool hangs; /* an event loop hangs */
    uint64_t lease_expired_ms;
    rq_err fatal;
    char fatal_text[1024];
} fixture;

static void take_report(void *ctx, rq_report *r)
{
    fixture *f = ctx;
    f->reports++;
    if (f->lost) {
        r->done(r, RQ_E_IO);
        return;
    }
    assert_null(f->report);
    f->report = r;
}

static void take_fatal(void *ctx, rq_err rc, const rq_error *why)
{
    fixture *f = ctx;
    assert_int_equal(f->fatal, RQ_OK);
    f->fatal = rc;
    snprintf(f->fatal_text, sizeof f->fatal_text, "%s", why == NULL ? "" : why->message);
}

static bool serves(void *ctx)
{
    return !((fixture *)ctx)->hangs;
}

static void answer(fixture *f, rq_err rc, const char *text)
{
    rq_report *r = f->report;
    rq_error why = {0};
    assert_non_null(r);
    if (rc != RQ_OK) (void)rq_fail(&why, rc, "%s", text);
    f->report = NULL;
    r->why = rc == RQ_OK ? NULL : &why;
    r->done(r, rc);
    rq_sim_run(f->w.sim);
}

static fixture *setup(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    world *w = &f->w;
    rq_table_schema *schema;
    static const rq_server_name name = {.host = "h1", .port = 7, .start_code = 70};
    world_init(w, unit_seed(), NULL);
    OK(world_open_closed_region(w, &f->arena, &f->info, &schema));
    rq_table_schema_unref(schema);
    assert_int_equal(rq_host_new(w->engine, &name, w->config, &f->host), RQ_OK);
    rq_host_name_itself(f->host);
    const rq_orders_options orders = {
        .host = f->host, .report = take_report, .serves = serves, .ctx = f};
    assert_int_equal(rq_orders_new(&orders, &f->orders), RQ_OK);
    return f;
}

static void teardown(fixture *f)
{
    rq_duty_end(f->duty);
    rq_orders_stop(f->orders);
    rq_orders_free(f->orders);
    rq_host_free(f->host);
    rq_arena_clear(&f->arena);
    world_clear(&f->w);
    free(f);
}

static void order(fixture *f, rq_region_call_kind kind, uint64_t id, int64_t master_ms)
{
    world *w = &f->w;
    rq_slice request;
    const rq_order o = {.kind = kind, .id = id, .master_ms = master_ms, .info = f->info};
    assert_int_equal(rq__orders_encode(&o, 1, 70, &f->arena, &request), RQ_OK);
    OK(rq_orders_execute(f->orders, request, &w->why));
    rq_sim_run(w->sim);
}

/* The result of a request for the region. */
static rq_err look_up(fixture *f)
{
    const rq_host_region *r;
    rq_epoch_member m = {0};
    rq_epoch_pin(f->w.env->epoch, &m);
    rq_err rc = rq_host_find(f->host, f->info.name, &r, NULL);
    assert_true(rc != RQ_OK || (r->region != NULL && r->state == RQ_REGION_OPEN &&
                                strcmp(r->server->text, "h1,7,70") == 0 && r->open_seqnum > 0));
    rq_epoch_unpin(f->w.env->epoch, &m);
    return rc;
}

static bool is_open(fixture *f)
{
    rq_region *r = rq_host_ref(f->host, &f->info);
    rq_region_unref(r);
    return r != NULL;
}

/* --- serving ---------------------------------------------------------------------------------- */

static void a_region_is_served_once_the_master_knows(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    order(f, RQ_CALL_OPEN, 1, 1000);
    assert_true(is_open(f));
    assert_int_equal(look_up(f), RQ_E_REGION_OPENING);
    answer(f, RQ_E_IO, "lost");
    assert_int_equal(look_up(f), RQ_E_REGION_OPENING);
    rq_sim_advance(w->sim, SECOND_NS); /* the report is sent again */
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_OK);
    order(f, RQ_CALL_OPEN, 2, 1000); /* the region stays open and is served meanwhile */
    assert_int_equal(look_up(f), RQ_OK);
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_OK);
    order(f, RQ_CALL_CLOSE, 3, 1000);
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    assert_false(is_open(f));
    answer(f, RQ_OK, NULL);
    order(f, RQ_CALL_OPEN, 4, 1000);
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_OK);
    teardown(f);
}

/* The report was for a master that is deposed: the new master does not know that the region is open
 * here. */
static void a_region_no_master_knows_of_is_closed(void **state)
{
    (void)state;
    fixture *f = setup();
    order(f, RQ_CALL_OPEN, 1, 1000);
    order(f, RQ_CALL_OPEN, 1,
          2000); /* the new master's order waits for the first one, which has not ended */
    assert_int_equal(f->reports, 1);
    assert_int_equal(look_up(f), RQ_E_REGION_OPENING);
    answer(f, RQ_E_DO_NOT_RETRY, "a report for another master");
    assert_int_equal(f->reports, 2); /* closed, and opened for the second master */
    assert_true(is_open(f));
    assert_int_equal(look_up(f), RQ_E_REGION_OPENING);
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_OK);
    teardown(f);
}

static void a_region_that_cannot_be_opened_has_no_name(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_region_info none;
    rq_arena a = {0};
    assert_int_equal(rq_region_info_make(&a, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("none"),
                                         (rq_slice){0}, (rq_slice){0}, 1, 0, &none),
                     RQ_OK);
    f->info = none;
    order(f, RQ_CALL_OPEN, 1, 1000);
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    teardown(f);
    rq_arena_clear(&a);
}

typedef struct late_loss {
    rq_task task;
    rq_report *report;
} late_loss;

static void lose(rq_task *task)
{
    rq_report *r = RQ_CONTAINER_OF(task, late_loss, task)->report;
    r->done(r, RQ_E_IO);
}

/* A stop does not wait for the master's response to a report, and neither do orders queued after
 * the report. */
static void a_stop_passes_turns_on(void **state)
{
    (void)state;
    for (int under_way = 0; under_way < 2; under_way++) {
        fixture *f = setup();
        world *w = &f->w;
        order(f, RQ_CALL_OPEN, 1, 1000);
        order(f, RQ_CALL_CLOSE, 2, 1000);
        order(f, RQ_CALL_OPEN, 3, 1000);
        assert_int_equal(f->reports, 1);
        late_loss l = {.task = {.run = lose}, .report = f->report};
        f->lost = true;
        if (under_way == 1)
            w->env->executor->submit(w->env->executor, RQ_POOL_WORK, &l.task);
        else
            answer(f, RQ_E_IO, "lost"); /* the report waits for its next attempt */
        rq_orders_stop(f->orders);
        assert_true(is_open(f));
        assert_int_equal(look_up(f), RQ_E_REGION_OPENING);
        teardown(f);
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

static uint64_t lease_expired_ms(void *ctx)
{
    const fixture *f = ctx;
    return f->lease_expired_ms;
}

static void take_sink(void *ctx, rq_sink_load *ret)
{
    (void)ctx;
    *ret = (rq_sink_load){.entries = 3, .age_ms = 4, .started_ms = 50, .applied_ms = 60};
}

static void begin_duty(fixture *f)
{
    const rq_duty_options o = {.host = f->host,
                               .info_port = 16030,
                               .report = take_report,
                               .sink = take_sink,
                               .serves = serves,
                               .lease_expired_ms = lease_expired_ms,
                               .fatal = take_fatal,
                               .ctx = f};
    assert_int_equal(rq_duty_begin(&o, &f->duty), RQ_OK);
    rq_sim_run(f->w.sim);
}

static void check_startup(fixture *f)
{
    rq_executor *ex = f->w.env->executor;
    assert_string_equal(f->report->method, "RegionServerStartup");
    Pb__RegionServerStartupRequest *m = pb__region_server_startup_request__unpack(
        NULL, f->report->request.len, f->report->request.ptr);
    assert_non_null(m);
    assert_int_equal(m->port, 7);
    assert_int_equal(m->server_start_code, 70);
    /* The simulated clock may have advanced since. */
    assert_in_range((uint64_t)ex->now_ms(ex) - m->server_current_time, 0, 100);
    assert_string_equal(m->use_this_hostname_instead, "h1");
    pb__region_server_startup_request__free_unpacked(m, NULL);
}

static void check_report(fixture *f, size_t regions)
{
    assert_string_equal(f->report->method, "RegionServerReport");
    Pb__RegionServerReportRequest *m = pb__region_server_report_request__unpack(
        NULL, f->report->request.len, f->report->request.ptr);
    assert_non_null(m);
    assert_string_equal(m->server->host_name, "h1");
    assert_true(m->has_lease_expired_ms);
    assert_int_equal(m->lease_expired_ms, f->lease_expired_ms);
    const Pb__ServerLoad *l = m->load;
    assert_int_equal(l->n_region_loads, regions);
    assert_int_equal(l->info_server_port, 16030);
    assert_true(l->has_report_start_time && l->has_report_end_time && l->max_heap_mb > 0);
    assert_true(l->report_end_time >= l->report_start_time);
    const Pb__ReplicationLoadSink *sink = l->replloadsink;
    assert_non_null(sink);
    assert_int_equal(sink->totalopsprocessed, 3);
    assert_int_equal(sink->ageoflastappliedop, 4);
    assert_int_equal(sink->timestampstarted, 50);
    assert_int_equal(sink->timestampsoflastappliedop, 60);
    if (regions > 0) {
        const Pb__RegionLoad *r = l->region_loads[0];
        const rq_slice name =
            rq_slice_of(r->region_specifier->value.data, r->region_specifier->value.len);
        assert_true(rq_slice_eq(name, f->info.name));
        assert_true(r->stores == 1 && r->storefiles > 0 && r->complete_sequence_id > 0);
    }
    pb__region_server_report_request__free_unpacked(m, NULL);
}

static void a_server_starts_up_and_reports(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    begin_duty(f);
    check_startup(f);
    answer(f, RQ_E_SERVER_NOT_RUNNING, "no master");
    assert_null(f->report);
    rq_sim_advance(w->sim, SECOND_NS / 20);
    check_startup(f);
    answer(f, RQ_OK, NULL);
    assert_true(rq_duty_is_taken(f->duty));
    rq_sim_advance(w->sim, 3 * SECOND_NS);
    check_report(f, 0);
    answer(f, RQ_OK, NULL);
    order(f, RQ_CALL_OPEN, 1, 1000);
    answer(f, RQ_OK, NULL);
    rq_sim_advance(w->sim, 3 * SECOND_NS);
    check_report(f, 1);
    answer(f, RQ_E_IO, "another master follows");
    rq_sim_advance(w->sim, SECOND_NS / 2);
    check_report(f, 1); /* no second startup message */
    answer(f, RQ_OK, NULL);
    rq_sim_advance(w->sim, SECOND_NS / 2);
    assert_null(f->report); /* the next report is not due yet */
    rq_duty_now(f->duty);
    rq_sim_run(w->sim);
    check_report(f, 1);
    f->lease_expired_ms = 700;
    rq_duty_now(f->duty); /* a report is already in flight, which does not say so yet */
    answer(f, RQ_OK, NULL);
    rq_sim_run(w->sim);
    check_report(f, 1);
    answer(f, RQ_OK, NULL);
    rq_sim_advance(w->sim, SECOND_NS / 2);
    assert_null(f->report);
    assert_int_equal(f->fatal, RQ_OK);
    teardown(f);
}

/* How many reports are sent in the time, if none is taken. */
static unsigned attempts_in(fixture *f, unsigned tenths)
{
    unsigned attempts = 0;
    for (unsigned i = 0; i < 10 * tenths; i++) {
        if (f->report != NULL) {
            attempts++;
            answer(f, RQ_E_SERVER_NOT_RUNNING, "it is not the active master");
        }
        rq_sim_advance(f->w.sim, SECOND_NS / 100);
    }
    return attempts;
}

/* A new master is known shortly before it takes reports, and waits for them; another one may be long in coming. */
static void a_report_that_is_not_taken_is_repeated_soon_and_then_rarely(void **state)
{
    (void)state;
    fixture *f = setup();
    begin_duty(f);
    assert_true(attempts_in(f, 5) >= 3);
    assert_in_range(attempts_in(f, 100), 18, 24);
    rq_duty_now(f->duty);
    rq_sim_run(f->w.sim);
    assert_true(attempts_in(f, 5) >= 3);
    rq_sim_advance(f->w.sim, SECOND_NS / 2);
    assert_non_null(f->report);
    answer(f, RQ_OK, NULL);
    rq_sim_advance(f->w.sim, SECOND_NS);
    assert_null(f->report);
    teardown(f);
}

/* The server sends no load reports, and fails health checks. It accepts orders, and reports their
 * results. */
static void a_server_whose_loop_hangs_is_silent(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    const rq_slice no_orders = {0};
    begin_duty(f);
    answer(f, RQ_OK, NULL);
    OK(rq_orders_execute(f->orders, no_orders, &w->why));
    f->hangs = true;
    assert_int_equal(rq_orders_execute(f->orders, no_orders, &w->why), RQ_E_SERVER_NOT_RUNNING);
    assert_non_null(strstr(w->why.message, "an event loop is blocked"));
    rq_sim_advance(w->sim, 60 * SECOND_NS);
    assert_null(f->report);
    order(f, RQ_CALL_OPEN, 1, 1000);
    answer(f, RQ_OK, NULL);
    f->hangs = false;
    OK(rq_orders_execute(f->orders, no_orders, &w->why));
    rq_sim_advance(w->sim, SECOND_NS / 2);
    check_report(f, 1);
    answer(f, RQ_OK, NULL);
    teardown(f);
}

static void a_server_that_is_given_up_ends(void **state)
{
    (void)state;
    static const struct {
        rq_err rc;
        bool at_startup;
    } all[] = {
        {RQ_E_CLOCK_OUT_OF_SYNC, true}, {RQ_E_YOU_ARE_DEAD, true}, {RQ_E_YOU_ARE_DEAD, false}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        fixture *f = setup();
        world *w = &f->w;
        begin_duty(f);
        if (!all[i].at_startup) {
            answer(f, RQ_OK, NULL);
            rq_sim_advance(w->sim, 3 * SECOND_NS);
        }
        answer(f, all[i].rc, "the reason");
        assert_int_equal(f->fatal, all[i].rc);
        assert_string_equal(f->fatal_text, "the reason");
        rq_sim_advance(w->sim, 60 * SECOND_NS);
        assert_null(f->report);
        teardown(f);
    }
}

/* The process becomes the master: from then on its own catalog names the regions. */
static void a_master_to_be_gives_its_names_up(void **state)
{
    (void)state;
    fixture *f = setup();
    order(f, RQ_CALL_OPEN, 1, 1000);
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_OK);
    rq_host_name_no_more(f->host);
    assert_false(rq_host_names_itself(f->host));
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    assert_true(is_open(f));
    /* the order comes from its own catalog: the region stays open */
    order(f, RQ_CALL_OPEN, 2, 2000);
    assert_true(is_open(f));
    answer(f, RQ_OK, NULL);
    assert_int_equal(look_up(f), RQ_E_NOT_SERVING_REGION);
    order(f, RQ_CALL_CLOSE, 3, 2000);
    assert_false(is_open(f));
    answer(f, RQ_OK, NULL);
    teardown(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_served_once_the_master_knows),
        cmocka_unit_test(a_region_no_master_knows_of_is_closed),
        cmocka_unit_test(a_region_that_cannot_be_opened_has_no_name),
        cmocka_unit_test(a_stop_passes_turns_on),
        cmocka_unit_test(a_master_to_be_gives_its_names_up),
        cmocka_unit_test(a_server_starts_up_and_reports),
        cmocka_unit_test(a_report_that_is_not_taken_is_repeated_soon_and_then_rarely),
        cmocka_unit_test(a_server_whose_loop_hangs_is_silent),
        cmocka_unit_test(a_server_that_is_given_up_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
