/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of a master to a server, and the reports: which orders are refused, and that a repeated order takes effect
 * once. The test delivers the messages. */
#include "world.h"

#include "base/random.h"
#include "cluster/load.h"
#include "cluster/orders.h"
#include "cluster/remote.h"
#include "cluster/wire.h"
#include "proto/cluster_status.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#define MASTER_MS 1000

typedef struct fixture {
    world w;
    rq_arena arena;
    rq_region_info info; /* a region that is closed */
    rq_orders *orders;
    rq_remote *remote;
    rq_remote_request *order; /* the message in transit to the server */
    rq_report *report;        /* the message in transit to the master */
    rq_report *reported[4];
    size_t order_count, report_count;
    rq_region_call call;
    unsigned reports;
    const rq_server_name *replaced; /* has a reference */
    const rq_server_name *from;     /* the sender of reports; NULL: unknown */
    rq_revoked revoked[3];          /* what the master has fenced */
    size_t revoked_count;
    char quiet[3][32]; /* servers that the server was told of, with: */
    uint64_t quiet_ns[3];
    size_t quiet_count;
} fixture;

static void take_replaced(void *ctx, const rq_server_name *old)
{
    fixture *f = ctx;
    assert_null(f->replaced);
    f->replaced = rq_server_name_ref(old);
}

static void take_order(void *ctx, rq_remote_request *r)
{
    fixture *f = ctx;
    f->order = r;
    f->order_count++;
}

static void take_report(void *ctx, rq_report *r)
{
    fixture *f = ctx;
    f->report = r;
    if (f->report_count < RQ_ARRAY_LEN(f->reported)) f->reported[f->report_count] = r;
    f->report_count++;
}

static size_t list_revoked(void *ctx, rq_arena *arena, rq_revoked **ret)
{
    fixture *f = ctx;
    (void)arena;
    *ret = f->revoked;
    return f->revoked_count;
}

/* Before the region is opened. */
static void take_quiet(void *ctx, const char *server, uint64_t ns)
{
    fixture *f = ctx;
    assert_true(f->quiet_count < RQ_ARRAY_LEN(f->quiet));
    snprintf(f->quiet[f->quiet_count], sizeof f->quiet[0], "%s", server);
    f->quiet_ns[f->quiet_count++] = ns;
}

static fixture *setup(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    world *w = &f->w;
    rq_table_schema *schema;
    world_init(w, unit_seed(), NULL);
    OK(world_open_closed_region(w, &f->arena, &f->info, &schema));
    rq_table_schema_unref(schema);
    const rq_orders_options orders = {
        .host = w->host, .report = take_report, .quiet_in = take_quiet, .ctx = f};
    const rq_remote_options remote = {.env = w->env,
                                      .master_ms = MASTER_MS,
                                      .send = take_order,
                                      .replaced = take_replaced,
                                      .revoked = list_revoked,
                                      .ctx = f};
    assert_int_equal(rq_orders_new(&orders, &f->orders), RQ_OK);
    assert_int_equal(rq_remote_new(&remote, &f->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(f->remote, rq_host_name(w->host), &w->why), RQ_OK);
    return f;
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
    free(f);
}

static void done(rq_region_call *call)
{
    fixture *f = call->ctx;
    f->reports++;
}

static void send_call(fixture *f, rq_region_call_kind kind)
{
    rq_region_calls calls = rq_remote_calls(f->remote);
    f->reports = 0;
    f->call = (rq_region_call){.server = rq_host_name(f->w.host),
                               .info = &f->info,
                               .arena = &f->arena,
                               .done = done,
                               .ctx = f};
    calls.send(calls.ctx, kind, &f->call, 1);
}

static bool is_open(fixture *f)
{
    rq_region *r = rq_host_ref(f->w.host, &f->info);
    rq_region_unref(r);
    return r != NULL;
}

/* --- tests ------------------------------------------------------------------------------------ */

/* The files of a region that has been flushed. */
static void expect_files(fixture *f)
{
    size_t files = 0;
    for (size_t i = 0; i < f->call.files.count; i++) {
        const rq_family_files *of = &f->call.files.families[i];
        assert_true(of->name.len > 0);
        files += of->count;
        for (size_t k = 0; k < of->count; k++)
            assert_true(of->files[k].name.len > 0 && of->files[k].size > 0);
    }
    assert_true(files > 0);
}

static void an_order_is_carried_out_and_reported(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    static const rq_region_call_kind kinds[] = {RQ_CALL_OPEN,
                                                RQ_CALL_FLUSH,
                                                RQ_CALL_LOOK,
                                                RQ_CALL_COMPACT,
                                                RQ_CALL_DROP_REFERENCES,
                                                RQ_CALL_LIST_FILES,
                                                RQ_CALL_LIST_MOB_WRITES,
                                                RQ_CALL_WARM,
                                                RQ_CALL_CLOSE};
    for (size_t i = 0; i < RQ_ARRAY_LEN(kinds); i++) {
        send_call(f, kinds[i]);
        OK(rq_orders_execute(f->orders, f->order->request, &w->why));
        f->order->done(f->order, RQ_OK, NULL);
        rq_sim_run(w->sim);
        assert_int_equal(is_open(f), kinds[i] != RQ_CALL_CLOSE);
        assert_int_equal(f->reports, 0);
        bool transition = strcmp(f->report->method, "ReportRegionStateTransition") == 0;
        OK((transition ? rq_remote_transitions : rq_remote_procedures_done)(
            f->remote, rq_host_name(w->host), f->report->request, &w->why));
        f->report->done(f->report, RQ_OK);
        assert_int_equal(f->reports, 1);
        assert_int_equal(f->call.rc, RQ_OK);
        if (kinds[i] == RQ_CALL_OPEN) assert_true(f->call.open_seqnum > 0);
        if (kinds[i] == RQ_CALL_LIST_FILES) expect_files(f);
        if (kinds[i] == RQ_CALL_LOOK) assert_true(f->call.splittable && f->call.mergeable);
    }
    teardown(f);
}

static void an_order_that_comes_twice_is_carried_out_once(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    send_call(f, RQ_CALL_OPEN);
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    rq_sim_run(w->sim);
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    rq_sim_run(w->sim);
    assert_int_equal(f->report_count, 1);
    OK(rq_remote_transitions(f->remote, NULL, f->report->request, &w->why));
    /* a repeated report is accepted, too */
    OK(rq_remote_transitions(f->remote, NULL, f->report->request, &w->why));
    assert_int_equal(f->reports, 1);
    f->report->done(f->report, RQ_OK);
    OK(rq_orders_execute(f->orders, f->order->request, &w->why)); /* a late repetition */
    rq_sim_run(w->sim);
    assert_int_equal(f->report_count, 1);
    f->order->done(f->order, RQ_OK, NULL);
    /* A report that failed is sent again. */
    send_call(f, RQ_CALL_CLOSE);
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    f->order->done(f->order, RQ_OK, NULL);
    rq_sim_run(w->sim);
    f->report->done(f->report, RQ_E_IO);
    rq_sim_advance(w->sim, 1100000000);
    assert_int_equal(f->report_count, 3);
    OK(rq_remote_transitions(f->remote, NULL, f->report->request, &w->why));
    f->report->done(f->report, RQ_OK);
    assert_int_equal(f->reports, 1);
    teardown(f);
}

/* A server that is to open regions is told which servers the master has fenced, and how long to wait for their leases. */
static void an_order_to_open_says_whom_the_master_has_fenced(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    f->revoked[0] = (rq_revoked){.server = "a,16020,1", .quiet_in_ms = 300};
    f->revoked[1] = (rq_revoked){.server = "b,16020,2"};
    f->revoked[2] = (rq_revoked){.server = "c,16020,3", .quiet_in_ms = UINT64_MAX};
    f->revoked_count = 3;
    send_call(f, RQ_CALL_WARM); /* not needed */
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    f->order->done(f->order, RQ_OK, NULL);
    rq_sim_run(w->sim);
    OK(rq_remote_procedures_done(f->remote, NULL, f->report->request, &w->why));
    f->report->done(f->report, RQ_OK);
    assert_int_equal(f->quiet_count, 0);
    send_call(f, RQ_CALL_OPEN);
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    assert_int_equal(f->quiet_count, 3);
    assert_string_equal(f->quiet[0], "a,16020,1");
    assert_int_equal(f->quiet_ns[0], 300000000);
    assert_string_equal(f->quiet[1], "b,16020,2");
    assert_int_equal(f->quiet_ns[1], 0);
    assert_true(f->quiet_ns[2] > UINT64_C(3600) * 1000000000);
    assert_false(is_open(f));
    f->order->done(f->order, RQ_OK, NULL);
    rq_sim_run(w->sim);
    assert_true(is_open(f));
    OK(rq_remote_transitions(f->remote, NULL, f->report->request, &w->why));
    f->report->done(f->report, RQ_OK);
    teardown(f);
}

static rq_err execute(fixture *f, const rq_order *o, int64_t start_code)
{
    rq_slice bytes;
    f->w.why = (rq_error){0};
    assert_int_equal(rq__orders_encode(o, 1, start_code, &f->arena, &bytes), RQ_OK);
    return rq_orders_execute(f->orders, bytes, &f->w.why);
}

static void a_deposed_master_and_another_servers_orders_are_refused(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    int64_t self = rq_host_name(w->host)->start_code;
    rq_order o = {.kind = RQ_CALL_OPEN, .id = 1, .master_ms = MASTER_MS, .info = f->info};
    assert_int_equal(execute(f, &o, self - 1), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(w->why.message, "different server with startcode"));
    rq_sim_run(w->sim);
    assert_false(is_open(f));
    OK(execute(f, &o, self));
    rq_sim_run(w->sim);
    assert_true(is_open(f));
    f->report->done(f->report, RQ_OK);
    rq_order newer = {.kind = RQ_CALL_WARM, .id = 1, .master_ms = MASTER_MS + 1, .info = f->info};
    OK(execute(f, &newer, self));
    rq_sim_run(w->sim);
    assert_int_equal(f->report_count, 2);
    f->report->done(f->report, RQ_OK);
    rq_order close = {.kind = RQ_CALL_CLOSE, .id = 2, .master_ms = MASTER_MS, .info = f->info};
    assert_int_equal(execute(f, &close, self), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(w->why.message, "has replaced it"));
    rq_sim_run(w->sim);
    assert_true(is_open(f));
    teardown(f);
}

static size_t regions_of_table(fixture *f)
{
    rq_arena a = {0};
    rq_region **list;
    size_t count, n = 0;
    assert_int_equal(rq_engine_regions(f->w.engine, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        n += strcmp(rq_region_get_info(list[i])->encoded, f->info.encoded) == 0;
        rq_region_unref(list[i]);
    }
    rq_arena_clear(&a);
    return n;
}

/* A master is deposed while its orders are carried out, and its successor sends the same orders. */
static void orders_of_two_masters_for_a_region_take_turns(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 64; round++) {
        fixture *f = setup();
        world *w = &f->w;
        int64_t self = rq_host_name(w->host)->start_code;
        rq_order o = {.kind = RQ_CALL_OPEN, .id = 1, .master_ms = MASTER_MS, .info = f->info};
        OK(execute(f, &o, self));
        for (unsigned i = 0; i < round; i++)
            (void)rq_sim_step(w->sim);
        for (unsigned i = 1; i < 4; i++) {
            o.id = i + 1;
            o.master_ms = MASTER_MS + i;
            o.kind = i == 2 ? RQ_CALL_CLOSE : RQ_CALL_OPEN;
            OK(execute(f, &o, self));
        }
        rq_sim_run(w->sim);
        assert_int_equal(f->report_count, 4);
        assert_true(is_open(f));
        assert_int_equal(regions_of_table(f), 1);
        for (size_t i = 0; i < 4; i++)
            f->reported[i]->done(f->reported[i], RQ_OK);
        teardown(f);
    }
}

static void reports_for_others_are_refused(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_slice bytes;
    const rq_server_name other = {.host = "h9", .port = 9, .start_code = 9, .text = "h9,9,9"};
    send_call(f, RQ_CALL_OPEN);
    rq_outcome o = {.kind = RQ_CALL_OPEN, .id = 1, .master_ms = MASTER_MS - 1, .info = &f->info};
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    assert_int_equal(rq_remote_transitions(f->remote, NULL, bytes, &w->why), RQ_E_DO_NOT_RETRY);
    o.master_ms = MASTER_MS;
    assert_int_equal(rq__outcome_encode(&o, &other, &f->arena, &bytes), RQ_OK);
    assert_int_equal(rq_remote_transitions(f->remote, NULL, bytes, NULL), RQ_E_DO_NOT_RETRY);
    o.kind = RQ_CALL_CLOSE;
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    assert_int_equal(rq_remote_transitions(f->remote, NULL, bytes, NULL), RQ_E_DO_NOT_RETRY);
    assert_int_equal(rq_remote_transitions(f->remote, NULL, RQ_SLICE_LIT("\xff\xff"), NULL),
                     RQ_E_DO_NOT_RETRY);
    assert_int_equal(rq_orders_execute(f->orders, RQ_SLICE_LIT("\xff\xff"), NULL),
                     RQ_E_DO_NOT_RETRY);
    assert_int_equal(f->reports, 0);
    /* An error arrives unchanged. */
    o = (rq_outcome){.kind = RQ_CALL_OPEN,
                     .id = 1,
                     .master_ms = MASTER_MS,
                     .rc = RQ_E_CORRUPT,
                     .message = "a file is damaged"};
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    OK(rq_remote_transitions(f->remote, NULL, bytes, &w->why));
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->call.rc, RQ_E_CORRUPT);
    assert_string_equal(f->call.why->message, "a file is damaged");
    free(f->call.why);
    f->order->done(f->order, RQ_OK, NULL);
    teardown(f);
}

static void calls_to_a_dead_server_end(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_region_calls calls = rq_remote_calls(f->remote);
    send_call(f, RQ_CALL_OPEN);
    f->order->done(f->order, RQ_E_IO, NULL); /* the server is not reached, */
    rq_sim_advance(w->sim, 3500000000);
    assert_int_equal(f->order_count, 2); /* the order is sent again, */
    f->order->done(f->order, RQ_E_IO, NULL);
    assert_int_equal(f->reports, 0);
    /* until the server is known to be dead */
    rq_remote_server_down(f->remote, rq_host_name(w->host));
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->call.rc, RQ_E_SERVER_NOT_RUNNING);
    free(f->call.why);
    rq_sim_advance(w->sim, 3000000000);
    assert_int_equal(f->order_count, 2);
    assert_null(calls.place(calls.ctx, &f->info, NULL));
    send_call(f, RQ_CALL_OPEN);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->call.rc, RQ_E_SERVER_NOT_RUNNING);
    free(f->call.why);
    assert_int_equal(rq_remote_server_up(f->remote, rq_host_name(w->host), &w->why),
                     RQ_E_YOU_ARE_DEAD);
    teardown(f);
}

static void placed(fixture *f, const rq_server_name *last, uint16_t port)
{
    rq_region_calls calls = rq_remote_calls(f->remote);
    const rq_server_name *s = calls.place(calls.ctx, &f->info, last);
    assert_non_null(s);
    assert_int_equal(s->port, port);
    rq_server_name_unref(s);
}

/* HBASE: BaseLoadBalancer.retainAssignment. */
static void a_region_goes_to_the_address_where_it_was(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    const rq_server_name two[] = {{.host = "h", .port = 7001, .start_code = 5, .text = "h,7001,5"},
                                  {.host = "h", .port = 7002, .start_code = 6, .text = "h,7002,6"}},
                         alone = {.host = "other", .port = 7003, .start_code = 7};
    const rq_server_name was = {.host = "h", .port = 7002, .start_code = 1},
                         host_was = {.host = "OTHER", .port = 9, .start_code = 1};
    for (int i = 0; i < 2; i++)
        OK(rq_remote_server_up(f->remote, &two[i], &w->why));
    OK(rq_remote_server_up(f->remote, &alone, &w->why));
    for (int i = 0; i < 5; i++) {
        placed(f, &was, 7002);
        placed(f, &host_was, 7003); /* the only server of its host */
    }
    rq_remote_server_down(f->remote, &two[1]);
    placed(f, &was, 7001);
    rq_remote_server_down(f->remote, &two[0]);
    rq_remote_server_down(f->remote, rq_host_name(w->host));
    placed(f, &was, 7003); /* any server */
    teardown(f);
}

/* The response to LIST_FILES, with one file. */
static rq_err answer_file(fixture *f, const char *family, const char *name)
{
    world *w = &f->w;
    rq_slice bytes;
    rq_region_file file = {
        .name = rq_slice_cstr(name), .reference = RQ_SLICE_LIT("half"), .size = 7};
    rq_family_files files = {.name = rq_slice_cstr(family), .files = &file, .count = 1};
    const rq_outcome o = {.kind = RQ_CALL_LIST_FILES,
                          .id = 1,
                          .master_ms = MASTER_MS,
                          .files = {.families = &files, .count = 1}};
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    w->why = (rq_error){0};
    return rq_remote_procedures_done(f->remote, rq_host_name(w->host), bytes, &w->why);
}

/* File names become parts of paths. They are used after the message has been freed. */
static void names_of_files_are_checked_and_copied(void **state)
{
    (void)state;
    fixture *f = setup();
    char long_name[300] = {0};
    memset(long_name, 'a', sizeof long_name - 1);
    const char *const bad[] = {"", "..", ".hidden", "a/b", "/", long_name};
    send_call(f, RQ_CALL_LIST_FILES);
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        assert_int_equal(answer_file(f, "f", bad[i]), RQ_E_DO_NOT_RETRY);
        assert_non_null(strstr(f->w.why.message, "is not valid"));
        assert_int_equal(answer_file(f, bad[i], "0123"), RQ_E_DO_NOT_RETRY);
    }
    assert_int_equal(f->reports, 0);
    assert_int_equal(answer_file(f, "f", "0123.4567"), RQ_OK);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->call.rc, RQ_OK);
    assert_int_equal(f->call.files.count, 1);
    const rq_family_files *got = &f->call.files.families[0];
    assert_int_equal(got->count, 1);
    assert_true(rq_slice_eq(got->name, RQ_SLICE_LIT("f")));
    assert_true(rq_slice_eq(got->files[0].name, RQ_SLICE_LIT("0123.4567")));
    assert_true(rq_slice_eq(got->files[0].reference, RQ_SLICE_LIT("half")));
    assert_int_equal(got->files[0].size, 7);
    f->order->done(f->order, RQ_OK, NULL);
    teardown(f);
}

static rq_err answer_mob_writes(fixture *f, rq_slice *names, size_t count)
{
    world *w = &f->w;
    rq_slice bytes;
    const rq_outcome o = {.kind = RQ_CALL_LIST_MOB_WRITES,
                          .id = 1,
                          .master_ms = MASTER_MS,
                          .mob_writes = names,
                          .mob_write_count = count};
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    w->why = (rq_error){0};
    return rq_remote_procedures_done(f->remote, rq_host_name(w->host), bytes, &w->why);
}

static void names_of_mob_files_are_checked_and_copied(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_region_calls calls = rq_remote_calls(f->remote);
    rq_slice names[] = {RQ_SLICE_LIT("one"), RQ_SLICE_LIT("a/b")};
    f->call = (rq_region_call){
        .server = rq_host_name(f->w.host), .arena = &f->arena, .done = done, .ctx = f};
    calls.send(calls.ctx, RQ_CALL_LIST_MOB_WRITES, &f->call, 1); /* of no region */
    assert_int_equal(answer_mob_writes(f, names, 2), RQ_E_DO_NOT_RETRY);
    assert_int_equal(f->reports, 0);
    names[1] = RQ_SLICE_LIT("two");
    assert_int_equal(answer_mob_writes(f, names, 2), RQ_OK);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->call.rc, RQ_OK);
    assert_int_equal(f->call.mob_write_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(rq_slice_eq(f->call.mob_writes[i], names[i]));
    f->order->done(f->order, RQ_OK, NULL);
    teardown(f);
}

/* --- a stop while a report is in flight -------------------------------------------------------- */

typedef struct slow_report {
    fixture *f;
    rq_task task, open;
    rq_latch latch;
    bool ended;
} slow_report;

static void slow_done(rq_region_call *call)
{
    slow_report *s = call->ctx;
    (void)!s->latch.executor->latch_wait(&s->latch);
    s->ended = true;
}

static void hand_report_over(rq_task *task)
{
    slow_report *s = RQ_CONTAINER_OF(task, slow_report, task);
    (void)!rq_remote_transitions(s->f->remote, NULL, s->f->report->request, NULL);
}

static void open_latch(rq_task *task)
{
    slow_report *s = RQ_CONTAINER_OF(task, slow_report, open);
    s->latch.executor->latch_open(&s->latch, RQ_OK);
}

static void a_stop_waits_for_reports_under_way(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_executor *ex = w->env->executor;
    rq_region_calls calls = rq_remote_calls(f->remote);
    slow_report s = {.f = f, .task.run = hand_report_over, .open.run = open_latch};
    ex->latch_init(ex, &s.latch);
    send_call(f, RQ_CALL_OPEN);
    f->call.done = slow_done;
    f->call.ctx = &s;
    OK(rq_orders_execute(f->orders, f->order->request, &w->why));
    f->order->done(f->order, RQ_OK, NULL);
    rq_sim_run(w->sim);
    ex->submit(ex, RQ_POOL_WORK, &s.task);
    rq_sim_run(w->sim);
    assert_false(s.ended);
    ex->submit(ex, RQ_POOL_WORK, &s.open);
    calls.stop(calls.ctx);
    assert_true(s.ended);
    ex->latch_destroy(&s.latch);
    f->report->done(f->report, RQ_OK);
    teardown(f);
}

/* --- loads ------------------------------------------------------------------------------------ */

static rq_err report_load(fixture *f, const rq_server_name *from, uint32_t mb)
{
    Pb__ServerName server = PB__SERVER_NAME__INIT;
    Pb__RegionSpecifier spec = PB__REGION_SPECIFIER__INIT;
    Pb__RegionLoad region = PB__REGION_LOAD__INIT, *list[] = {&region};
    Pb__ReplicationLoadSink sink = PB__REPLICATION_LOAD_SINK__INIT;
    Pb__ServerLoad load = PB__SERVER_LOAD__INIT;
    Pb__RegionServerReportRequest m = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    uint8_t bytes[512];
    server.host_name = (char *)(uintptr_t)from->host;
    server.has_port = server.has_start_code = true;
    server.port = from->port;
    server.start_code = (uint64_t)from->start_code;
    spec.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    spec.value.data = (uint8_t *)(uintptr_t)f->info.name.ptr;
    spec.value.len = f->info.name.len;
    region.region_specifier = &spec;
    region.has_storefile_size_mb = true;
    region.storefile_size_mb = mb;
    region.store_uncompressed_size_mb = region.region_size_mb = 2 * mb;
    region.root_index_size_kb = region.total_static_index_size_kb = 3 * mb;
    region.total_static_bloom_size_kb = 4 * mb;
    region.total_compacting_kvs = region.current_compacted_kvs = 5 * mb;
    region.filtered_read_requests_count = 6 * mb;
    region.last_major_compaction_ts = 1700000000000 + mb;
    region.has_store_uncompressed_size_mb = region.has_region_size_mb = true;
    region.has_root_index_size_kb = region.has_total_static_index_size_kb = true;
    region.has_total_static_bloom_size_kb = region.has_total_compacting_kvs = true;
    region.has_current_compacted_kvs = region.has_filtered_read_requests_count = true;
    region.has_last_major_compaction_ts = true;
    region.has_compaction_state = true;
    region.compaction_state = PB__REGION_LOAD__COMPACTION_STATE__MAJOR;
    sink.ageoflastappliedop = 5;
    sink.timestampsoflastappliedop = 60;
    sink.has_timestampstarted = sink.has_totalopsprocessed = true;
    sink.timestampstarted = 50;
    sink.totalopsprocessed = mb;
    load.replloadsink = &sink;
    load.has_number_of_requests = load.has_used_heap_mb = true;
    load.number_of_requests = 10 * mb;
    load.used_heap_mb = 100 * mb;
    load.region_loads = list;
    load.n_region_loads = 1;
    m.server = &server;
    m.load = &load;
    f->w.why = (rq_error){0};
    size_t len = pb__region_server_report_request__pack(&m, bytes);
    return rq_remote_server_report(f->remote, f->from, rq_slice_of(bytes, len), &f->w.why);
}

/* The master passes on what the server has said, in its answer to GetClusterStatus. */
static void assert_passed_on(fixture *f, const rq_region_load *load, uint32_t mb)
{
    const Pb__RegionLoad *m = rq_reported_load_message(&f->arena, &f->info, load);
    assert_non_null(m);
    assert_int_equal(m->storefile_size_mb, mb);
    assert_int_equal(m->store_uncompressed_size_mb, 2 * mb);
    assert_int_equal(m->region_size_mb, 2 * mb);
    assert_int_equal(m->root_index_size_kb, 3 * mb);
    assert_int_equal(m->total_static_index_size_kb, 3 * mb);
    assert_int_equal(m->total_static_bloom_size_kb, 4 * mb);
    assert_int_equal(m->total_compacting_kvs, 5 * mb);
    assert_int_equal(m->current_compacted_kvs, 5 * mb);
    assert_int_equal(m->filtered_read_requests_count, 6 * mb);
    assert_int_equal(m->last_major_compaction_ts, 1700000000000 + mb);
    assert_int_equal(m->compaction_state, PB__REGION_LOAD__COMPACTION_STATE__MAJOR);
}

static void loads_are_those_of_the_last_report(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    const rq_server_name *self = rq_host_name(w->host);
    const rq_server_name other = {.host = "h9", .port = 9, .start_code = 9, .text = "h9,9,9"};
    rq_region_calls calls = rq_remote_calls(f->remote);
    rq_region_load load = {0};
    rq_server_load server;
    assert_false(calls.load(calls.ctx, self, &f->info, &load));
    assert_false(calls.server_load(calls.ctx, self, &server));
    OK(report_load(f, self, 7));
    assert_true(calls.server_load(calls.ctx, self, &server));
    assert_int_equal(server.requests_per_second, 70);
    assert_int_equal(server.used_heap_mb, 700);
    assert_int_equal(server.info_port, UINT32_MAX);
    assert_true(server.has_sink && server.sink.entries == 7 && server.sink.age_ms == 5);
    assert_true(server.sink.started_ms == 50 && server.sink.applied_ms == 60);
    assert_true(calls.load(calls.ctx, self, &f->info, &load));
    assert_int_equal(load.storefile_bytes, 7 << 20);
    OK(report_load(f, self, 9));
    assert_true(calls.load(calls.ctx, self, &f->info, &load));
    assert_int_equal(load.storefile_bytes, 9 << 20);
    assert_passed_on(f, &load, 9);
    rq_remote_server_down(f->remote, self);
    assert_false(calls.server_load(calls.ctx, self, &server));
    assert_false(calls.load(calls.ctx, self, &f->info, &load));
    assert_int_equal(report_load(f, self, 1), RQ_E_YOU_ARE_DEAD);
    assert_non_null(strstr(w->why.message, "Server REPORT rejected"));
    assert_false(calls.load(calls.ctx, self, &f->info, &load));
    /* For a new master this is the first message of a running server. */
    OK(report_load(f, &other, 1));
    assert_true(calls.load(calls.ctx, &other, &f->info, &load));
    teardown(f);
}

/* --- servers that start and end --------------------------------------------------------------- */

static rq_err start_up(fixture *f, const rq_server_name *from, int64_t start_code, int64_t skew_ms,
                       const char *host)
{
    Pb__RegionServerStartupRequest m = PB__REGION_SERVER_STARTUP_REQUEST__INIT;
    rq_executor *ex = f->w.env->executor;
    uint8_t bytes[512];
    rq_slice answer;
    m.port = from->port;
    m.server_start_code = (uint64_t)start_code;
    m.server_current_time = (uint64_t)(ex->now_ms(ex) + skew_ms);
    m.use_this_hostname_instead = (char *)(uintptr_t)host;
    size_t len = pb__region_server_startup_request__pack(&m, bytes);
    f->w.why = (rq_error){0};
    rq_err rc =
        rq_remote_startup(f->remote, from, rq_slice_of(bytes, len), &f->arena, &answer, &f->w.why);
    if (rc != RQ_OK) return rc;
    Pb__RegionServerStartupResponse *r =
        pb__region_server_startup_response__unpack(NULL, answer.len, answer.ptr);
    assert_non_null(r);
    assert_int_equal(r->n_map_entries, 1);
    assert_string_equal(r->map_entries[0]->name, "hbase.regionserver.hostname.seen.by.master");
    assert_string_equal(r->map_entries[0]->value, from->host);
    pb__region_server_startup_response__free_unpacked(r, NULL);
    return RQ_OK;
}

static size_t live(fixture *f, size_t max, size_t *ret_total)
{
    const rq_server_name **list;
    size_t count;
    assert_int_equal(rq_remote_servers(f->remote, max, &f->arena, &list, &count, ret_total), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(list[i]->text, list[j]->text);
        rq_server_name_unref(list[i]);
    }
    return count;
}

static void a_server_starts_up_and_is_replaced(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    static const rq_server_name first = {.host = "h9",
                                         .port = 9,
                                         .start_code = 5,
                                         .text = "h9,9,5"},
                                second = {
                                    .host = "h9", .port = 9, .start_code = 6, .text = "h9,9,6"};
    size_t total;
    OK(start_up(f, &first, 5, 0, NULL));
    /* a repeated start; a skewed clock is only warned about */
    OK(start_up(f, &first, 5, 12000, "h9"));
    assert_int_equal(live(f, 10, &total), 2);
    assert_null(f->replaced);
    OK(start_up(f, &second, 6, 0, NULL));
    assert_non_null(f->replaced);
    assert_string_equal(f->replaced->text, first.text);
    assert_int_equal(live(f, 10, &total), 3); /* until the earlier process is fenced */
    assert_int_equal(start_up(f, &first, 5, 0, NULL), RQ_E_YOU_ARE_DEAD); /* a late message */
    assert_int_equal(report_load(f, &first, 1), RQ_E_YOU_ARE_DEAD);
    rq_remote_server_down(f->remote, &first);
    assert_int_equal(live(f, 10, &total), 2);
    assert_int_equal(start_up(f, &first, 5, 0, NULL), RQ_E_YOU_ARE_DEAD);
    OK(report_load(f, &second, 1));
    rq_remote_server_down(f->remote, &second);
    assert_int_equal(start_up(f, &second, 6, 0, NULL), RQ_E_YOU_ARE_DEAD);
    assert_int_equal(start_up(f, &first, 5, 0, NULL), RQ_E_YOU_ARE_DEAD);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(live(f, i, &total), i > 0);
    rq_server_name_unref(f->replaced);
    teardown(f);
}

/* The list of dead servers as text. */
static const char *dead(fixture *f)
{
    rq_region_calls calls = rq_remote_calls(f->remote);
    const rq_server_name **list;
    size_t count;
    const char *text = "";
    assert_int_equal(calls.dead(calls.ctx, &f->arena, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        text = rq_arena_printf(&f->arena, "%s%s ", text, list[i]->text);
        assert_non_null(text);
        rq_server_name_unref(list[i]);
    }
    return text;
}

/* A dead server is listed until it is forgotten or a new one starts at its address. It stays dead
 * in any case. */
static void a_dead_server_is_listed(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    static const rq_server_name first = {.host = "h9",
                                         .port = 9,
                                         .start_code = 5,
                                         .text = "h9,9,5"},
                                second = {
                                    .host = "h9", .port = 9, .start_code = 6, .text = "h9,9,6"};
    rq_region_calls calls = rq_remote_calls(f->remote);
    OK(start_up(f, &first, 5, 0, NULL));
    assert_string_equal(dead(f), "");
    assert_false(calls.forget_dead(calls.ctx, &first));
    rq_remote_server_down(f->remote, &first);
    assert_string_equal(dead(f), "h9,9,5 ");
    assert_false(calls.forget_dead(calls.ctx, &second));
    assert_true(calls.forget_dead(calls.ctx, &first));
    assert_string_equal(dead(f), "");
    assert_false(calls.forget_dead(calls.ctx, &first));
    assert_int_equal(start_up(f, &first, 5, 0, NULL), RQ_E_YOU_ARE_DEAD);
    OK(start_up(f, &second, 6, 0, NULL));
    rq_remote_server_down(f->remote, &second);
    assert_string_equal(dead(f), "h9,9,6 ");
    rq_server_name third = second;
    third.start_code = 7;
    third.text = "h9,9,7";
    OK(start_up(f, &third, 7, 0, NULL));
    assert_string_equal(dead(f), "");
    assert_false(calls.forget_dead(calls.ctx, &second));
    teardown(f);
}

#define HOSTS 40
#define PORTS 40

/* The code of the server that is up at each address, and of the last dead one; 0: none. */
typedef struct addresses {
    int64_t up[HOSTS][PORTS], dead[HOSTS][PORTS];
} addresses;

static rq_server_name name_at(char text[64], char host[16], size_t h, size_t p, int64_t code)
{
    snprintf(host, 16, "h%zu", h);
    snprintf(text, 64, "%s,%zu,%lld", host, 7000 + p, (long long)code);
    return (rq_server_name){
        .host = host, .port = (uint16_t)(7000 + p), .start_code = code, .text = text};
}

static void change_one(fixture *f, addresses *a, rq_random *random)
{
    char text[64], host[16];
    size_t h = rq_random_below(random, HOSTS), p = rq_random_below(random, PORTS);
    int64_t *up = &a->up[h][p], *dead = &a->dead[h][p];
    bool ends = *up != 0;
    int64_t code = ends ? *up : 1 + (int64_t)rq_random_below(random, 9);
    const rq_server_name name = name_at(text, host, h, p, code);
    if (ends) {
        rq_remote_server_down(f->remote, &name);
        *dead = code;
        *up = 0;
        return;
    }
    rq_err rc = rq_remote_server_up(f->remote, &name, NULL);
    assert_int_equal(rc, code <= *dead ? RQ_E_YOU_ARE_DEAD : RQ_OK);
    if (rc == RQ_OK) *up = code;
}

/* Compared with a table of all addresses. */
static void servers_are_found_among_many(void **state)
{
    (void)state;
    fixture *f = setup();
    addresses *a = calloc(1, sizeof *a);
    rq_random random;
    char text[64], host[16];
    size_t expected = 1, total; /* the world's host */
    rq_random_seed(&random, unit_seed());
    for (int i = 0; i < 20000; i++)
        change_one(f, a, &random);
    for (size_t h = 0; h < HOSTS; h++)
        for (size_t p = 0; p < PORTS; p++) {
            expected += a->up[h][p] != 0;
            for (int64_t code = 1; code <= 9; code++) {
                const rq_server_name name = name_at(text, host, h, p, code);
                assert_int_equal(rq_remote_is_up(f->remote, &name), a->up[h][p] == code);
            }
        }
    (void)live(f, 0, &total);
    assert_int_equal(total, expected);
    free(a);
    teardown(f);
}

static void a_startup_of_another_name_or_time_is_refused(void **state)
{
    (void)state;
    fixture *f = setup();
    const rq_server_name s = {.host = "h9", .port = 9, .start_code = 5, .text = "h9,9,5"};
    size_t total;
    assert_int_equal(start_up(f, &s, 4, 0, NULL), RQ_E_DO_NOT_RETRY);
    assert_int_equal(start_up(f, &s, 5, 0, "h8"), RQ_E_DO_NOT_RETRY);
    assert_int_equal(start_up(f, &s, 5, 30001, NULL), RQ_E_CLOCK_OUT_OF_SYNC);
    assert_non_null(
        strstr(f->w.why.message, "Time difference of 30001ms > max allowed of 30000ms"));
    assert_int_equal(start_up(f, &s, 5, -30001, NULL), RQ_E_CLOCK_OUT_OF_SYNC);
    assert_int_equal(rq_remote_startup(f->remote, &s, RQ_SLICE_LIT("\xff"), &f->arena,
                                       &(rq_slice){0}, &f->w.why),
                     RQ_E_DO_NOT_RETRY);
    assert_int_equal(live(f, 10, &total), 1);
    teardown(f);
}

/* A peer that has proven its name may not send messages in another server's name. */
static void messages_in_anothers_name_are_refused(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_slice bytes;
    const rq_server_name other = {.host = "h9", .port = 9, .start_code = 9, .text = "h9,9,9"};
    rq_outcome o = {.kind = RQ_CALL_LOOK, .id = 1, .master_ms = MASTER_MS};
    send_call(f, RQ_CALL_LOOK);
    assert_int_equal(rq__outcome_encode(&o, &other, &f->arena, &bytes), RQ_OK);
    assert_int_equal(rq_remote_procedures_done(f->remote, &other, bytes, &w->why),
                     RQ_E_DO_NOT_RETRY);
    w->why = (rq_error){0};
    o.kind = RQ_CALL_CLOSE;
    assert_int_equal(rq__outcome_encode(&o, rq_host_name(w->host), &f->arena, &bytes), RQ_OK);
    assert_int_equal(rq_remote_transitions(f->remote, &other, bytes, &w->why), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(w->why.message, "h9,9,9 sent a message in the name of"));
    f->from = &other;
    assert_int_equal(report_load(f, rq_host_name(w->host), 1), RQ_E_DO_NOT_RETRY);
    assert_int_equal(f->reports, 0);
    f->order->done(f->order, RQ_OK, NULL);
    teardown(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_carried_out_and_reported),
        cmocka_unit_test(an_order_that_comes_twice_is_carried_out_once),
        cmocka_unit_test(an_order_to_open_says_whom_the_master_has_fenced),
        cmocka_unit_test(a_deposed_master_and_another_servers_orders_are_refused),
        cmocka_unit_test(orders_of_two_masters_for_a_region_take_turns),
        cmocka_unit_test(reports_for_others_are_refused),
        cmocka_unit_test(calls_to_a_dead_server_end),
        cmocka_unit_test(a_region_goes_to_the_address_where_it_was),
        cmocka_unit_test(names_of_files_are_checked_and_copied),
        cmocka_unit_test(names_of_mob_files_are_checked_and_copied),
        cmocka_unit_test(a_stop_waits_for_reports_under_way),
        cmocka_unit_test(loads_are_those_of_the_last_report),
        cmocka_unit_test(a_server_starts_up_and_is_replaced),
        cmocka_unit_test(a_dead_server_is_listed),
        cmocka_unit_test(servers_are_found_among_many),
        cmocka_unit_test(a_startup_of_another_name_or_time_is_refused),
        cmocka_unit_test(messages_in_anothers_name_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
