/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of procedures that wait for reports of servers. They occupy no thread; after an abort, a
 * pause, a stop or the loss of all servers the procedure is in a recorded state. The test delays
 * the calls. */
#include "world.h"

#include "catalog/catalog_priv.h"

static world *setup(void)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_init(w, unit_seed(), NULL);
    w->late = true;
    assert_int_equal(world_open(w), RQ_OK);
    return w;
}

static void teardown(world *w)
{
    char *wrong = world_check(w);
    assert_string_equal(wrong, "");
    free(wrong);
    world_clear(w);
    free(w);
}

/* --- changes whose end the test does not wait for --------------------------------------------- */

typedef struct asked {
    rq_ddl ddl;
    rq_arena arena;
    char name[16];
    rq_slice split;
    bool answered;
} asked;

static void answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, asked, ddl)->answered = true;
}

static void ask(world *w, asked *a, rq_ddl_kind kind, const char *name)
{
    *a = (asked){0};
    snprintf(a->name, sizeof a->name, "%s", name);
    a->ddl = (rq_ddl){.kind = kind,
                      .ns = RQ_SLICE_LIT("default"),
                      .qualifier = rq_slice_cstr(a->name),
                      .wait_finished = true,
                      .submitted = answered};
    if (kind == RQ_DDL_CREATE_TABLE)
        a->ddl.of.create.schema = world_schema(&a->arena, a->name, "f");
    rq_catalog_submit(w->catalog, &a->ddl);
}

static void run_until_answered(world *w, asked *a)
{
    for (int i = 0; i < 1000 && !a->answered; i++)
        rq_sim_advance(w->sim, 100000000);
    assert_true(a->answered);
    rq_arena_clear(&a->arena);
}

/* A step may pause for a few seconds before it is retried. */
static void run_until_idle(world *w)
{
    for (int i = 0; i < 1000 && w->catalog->procedures.active != NULL; i++)
        rq_sim_advance(w->sim, 100000000);
    assert_null(w->catalog->procedures.active);
}

static size_t waiting(world *w)
{
    size_t n = 0;
    for (rq__proc *p = w->catalog->procedures.active; p != NULL; p = p->next)
        n += p->waiting;
    return n;
}

static size_t regions_open(world *w)
{
    rq_arena a = {0};
    rq_region **list;
    size_t count;
    assert_int_equal(rq_engine_regions(w->engine, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++)
        rq_region_unref(list[i]);
    rq_arena_clear(&a);
    return count;
}

/* --- tests ------------------------------------------------------------------------------------ */

#define MANY 40 /* ten times the number of threads in a server's pool */

static void a_step_that_waits_has_no_thread(void **state)
{
    (void)state;
    world *w = setup();
    asked *list = calloc(MANY, sizeof *list);
    assert_non_null(list);
    late_calls_hold(w->calls, true);
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%zu", i);
        ask(w, &list[i], RQ_DDL_CREATE_TABLE, name);
    }
    rq_sim_run(w->sim);
    assert_int_equal(waiting(w), MANY);
    assert_int_equal(w->catalog->procedures.busy, 0);
    /* creating a namespace calls no server */
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "x", NULL));
    late_calls_hold(w->calls, false);
    for (size_t i = 0; i < MANY; i++) {
        run_until_answered(w, &list[i]);
        assert_int_equal(list[i].ddl.rc, RQ_OK);
    }
    free(list);
    teardown(w);
}

static void an_abort_takes_effect_when_the_step_ends(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    size_t before = regions_open(w);
    late_calls_hold(w->calls, true);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "t");
    rq_sim_run(w->sim);
    assert_int_equal(waiting(w), 1);
    assert_true(rq_catalog_procedure_abort(w->catalog, w->catalog->procedures.active->id, true));
    rq_sim_advance(w->sim, 1000000000);
    assert_false(a.answered); /* the region may be open by then, and must be closed again */
    late_calls_hold(w->calls, false);
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_E_DO_NOT_RETRY);
    assert_int_equal(regions_open(w), before);
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_TABLE_NOT_FOUND);
    OK(world_create(w, "t", "f", NULL));
    teardown(w);
}

static void a_stop_leaves_what_waits_to_the_next_start(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    OK(world_create(w, "u", "f", "m"));
    OK(world_put(w, "u", "a", "f"));
    late_calls_hold(w->calls, true);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "t");
    asked b;
    ask(w, &b, RQ_DDL_DISABLE_TABLE, "u");
    rq_sim_run(w->sim);
    assert_int_equal(waiting(w), 2);
    OK(world_close(w, true));
    assert_true(a.answered && b.answered);
    assert_int_equal(a.ddl.rc, RQ_E_SERVER_STOPPED);
    rq_arena_clear(&a.arena);
    OK(world_open(w));
    assert_true(world_settle(w));
    OK(world_put(w, "t", "a", "f"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "u"));
    OK(world_get(w, "u", "a", "f"));
    teardown(w);
}

static void a_pause_waits_for_the_step_that_waits(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    ask(w, &a, RQ_DDL_CREATE_TABLE, "t");
    while (waiting(w) == 0)
        assert_true(rq_sim_step(w->sim));
    rq__procedures_pause(w->catalog);
    assert_int_equal(waiting(w), 0);
    assert_int_equal(w->catalog->procedures.stepping, 0);
    rq_sim_advance(w->sim, 5000000000);
    assert_false(a.answered); /* the next step has not begun */
    rq__procedures_go_on(w->catalog);
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_OK);
    teardown(w);
}

/* The master stops before this step, whose calls then reach no server. */
typedef struct stop_at {
    world *w;
    const char *step;
    rq_err rc; /* result injected into the step; RQ_OK: the step runs */
} stop_at;

static rq_err stop_before(void *ctx, const rq__proc *p, rq_error *why)
{
    stop_at *s = ctx;
    rq__procedures *ps = &s->w->catalog->procedures;
    if (strcmp(p->ops->steps[p->step].name, s->step) != 0 || ps->stopping) return RQ_OK;
    ps->stopping = true;
    s->w->catalog->calls.stop(s->w->catalog->calls.ctx);
    return s->rc == RQ_OK ? RQ_OK : rq_fail(why, s->rc, "the step fails");
}

/* The change stays as recorded: the procedure has not ended, and no region counts as closed or
 * failed. */
static void a_stop_is_no_result(rq_ddl_kind kind, const char *step, rq_err rc, size_t expected)
{
    world *w = setup();
    asked a;
    stop_at s = {.w = w, .step = step, .rc = rc};
    OK(world_create(w, "t", "f", "m"));
    if (kind == RQ_DDL_ENABLE_TABLE) OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    size_t before = regions_open(w);
    w->catalog->procedures.before_step = stop_before;
    w->catalog->procedures.before_step_ctx = &s;
    ask(w, &a, kind, kind == RQ_DDL_CREATE_TABLE ? "u" : "t");
    rq_sim_advance(w->sim, 10000000000);
    assert_false(a.answered);
    assert_non_null(w->catalog->procedures.active);
    assert_int_equal(w->catalog->procedures.stepping, 0);
    assert_int_equal(regions_open(w), before + expected);
    OK(world_close(w, true));
    assert_int_equal(a.ddl.rc, RQ_E_SERVER_STOPPED);
    rq_arena_clear(&a.arena);
    OK(world_open(w));
    assert_true(world_settle(w));
    rq_err open = world_get(w, "t", "a", "f");
    assert_int_equal(open, kind == RQ_DDL_DISABLE_TABLE ? RQ_E_NOT_SERVING_REGION : RQ_E_NOT_FOUND);
    teardown(w);
}

static void a_stop_is_not_taken_for_a_report(void **state)
{
    (void)state;
    a_stop_is_no_result(RQ_DDL_DISABLE_TABLE, "MARK_REGIONS_OFFLINE", RQ_OK, 0);
    a_stop_is_no_result(RQ_DDL_ENABLE_TABLE, "MARK_REGIONS_ONLINE", RQ_OK, 0);
    a_stop_is_no_result(RQ_DDL_CREATE_TABLE, "ASSIGN_REGIONS", RQ_OK, 0);
    /* The regions that the step opened must be closed again. */
    a_stop_is_no_result(RQ_DDL_CREATE_TABLE, "ADD_TO_META", RQ_E_DO_NOT_RETRY, 1);
}

static void a_stop_ends_the_step_that_waits(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    late_calls_hold(w->calls, true);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "t");
    rq_sim_run(w->sim);
    assert_int_equal(waiting(w), 1);
    rq__procedures_stop(w->catalog);
    assert_int_equal(waiting(w), 0);
    assert_int_equal(w->catalog->procedures.stepping, 0); /* otherwise the pause below hangs */
    rq__procedures_pause(w->catalog);
    rq__procedures_go_on(w->catalog);
    rq_arena_clear(&a.arena);
    OK(world_close(w, true));
    OK(world_open(w));
    teardown(w);
}

static rq_err fail_with_little_memory(void *ctx, const rq__proc *p, rq_error *why)
{
    world *w = ctx;
    if (strcmp(p->ops->steps[p->step].name, "ADD_TO_META") != 0) return RQ_OK;
    late_calls_exhaust(w->calls, 1);
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "the step fails");
}

static void calls_that_memory_did_not_suffice_for_are_sent_again(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    OK(world_create(w, "t", "f", "m"));
    OK(world_put(w, "t", "a", "f"));
    size_t before = regions_open(w);
    late_calls_exhaust(w->calls, 3); /* of four calls */
    ask(w, &a, RQ_DDL_DISABLE_TABLE, "t");
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_OK);
    assert_int_equal(regions_open(w), before - 2);
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "a", "f"));
    /* The same for calls that close what a failed change had opened. */
    w->catalog->procedures.before_step = fail_with_little_memory;
    w->catalog->procedures.before_step_ctx = w;
    before = regions_open(w);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "u");
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_E_DO_NOT_RETRY);
    assert_int_equal(regions_open(w), before);
    w->catalog->procedures.before_step = NULL;
    teardown(w);
}

static void an_open_waits_for_a_live_server(void **state)
{
    (void)state;
    world *w = setup();
    asked a;
    late_calls_lose_servers(w->calls, true);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "t");
    rq_sim_advance(w->sim, 30000000000);
    assert_false(a.answered);
    assert_string_equal(w->catalog->procedures.active->why.message,
                        "no live server can open regions");
    assert_int_equal(w->catalog->procedures.busy, 0);
    late_calls_lose_servers(w->calls, false);
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_OK);
    /* A procedure that is aborted while it waits ends. */
    late_calls_lose_servers(w->calls, true);
    ask(w, &a, RQ_DDL_CREATE_TABLE, "u");
    rq_sim_advance(w->sim, 3000000000);
    assert_true(rq_catalog_procedure_abort(w->catalog, w->catalog->procedures.active->id, true));
    run_until_answered(w, &a);
    assert_int_equal(a.ddl.rc, RQ_E_DO_NOT_RETRY);
    late_calls_lose_servers(w->calls, false);
    OK(world_create(w, "u", "f", NULL));
    teardown(w);
}

/* A second assignment would close the region without a flush, and open it again. */
static void an_open_region_is_not_assigned_again(void **state)
{
    (void)state;
    world *w = setup();
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    OK(world_create(w, "t", "f", NULL));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    late_calls_fail_opens(w->calls, RQ_E_CORRUPT);
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    late_calls_fail_opens(w->calls, RQ_OK);
    rq_epoch_pin(w->env->epoch, &m);
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, NULL));
    assert_int_equal(r->state, RQ_REGION_FAILED_OPEN);
    uint64_t calls = late_calls_count(w->calls);
    for (int i = 0; i < 2; i++)
        OK(rq_catalog_assign(w->catalog, rq_slice_cstr(r->info->encoded), NULL));
    rq_epoch_unpin(w->env->epoch, &m);
    run_until_idle(w);
    assert_int_equal(late_calls_count(w->calls) - calls, 1);
    OK(world_put(w, "t", "a", "f"));
    teardown(w);
}

/* Each procedure checked the limit without the other's table. */
static void tables_made_at_once_share_the_limits_of_their_namespace(void **state)
{
    (void)state;
    world *w = setup();
    asked list[2];
    static const char *const names[] = {"t", "u"};
    OK(rq_config_set(w->config, "hbase.quota.enabled", "true", &w->why));
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "hbase.namespace.quota.maxtables=1"));
    late_calls_hold(w->calls, true);
    for (size_t i = 0; i < 2; i++) {
        asked *a = &list[i];
        *a = (asked){0};
        snprintf(a->name, sizeof a->name, "n:%s", names[i]);
        a->ddl = (rq_ddl){.kind = RQ_DDL_CREATE_TABLE,
                          .ns = RQ_SLICE_LIT("n"),
                          .qualifier = rq_slice_cstr(names[i]),
                          .wait_finished = true,
                          .submitted = answered,
                          .of.create.schema = world_schema(&a->arena, a->name, "f")};
        rq_catalog_submit(w->catalog, &a->ddl);
    }
    rq_sim_run(w->sim);
    late_calls_hold(w->calls, false);
    for (size_t i = 0; i < 2; i++)
        run_until_answered(w, &list[i]);
    assert_true((list[0].ddl.rc == RQ_OK) != (list[1].ddl.rc == RQ_OK));
    assert_true(list[0].ddl.rc == RQ_E_QUOTA_EXCEEDED || list[1].ddl.rc == RQ_E_QUOTA_EXCEEDED);
    const char *made = list[0].ddl.rc == RQ_OK ? "n:t" : "n:u";
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, made));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, made));
    OK(world_create(w, "n:v", "f", NULL));
    teardown(w);
}

static void ask_in_n(world *w, asked *a, const char *qualifier, const char *split)
{
    *a = (asked){0};
    snprintf(a->name, sizeof a->name, "n:%s", qualifier);
    a->split = split == NULL ? (rq_slice){0} : rq_slice_cstr(split);
    a->ddl = (rq_ddl){.kind = RQ_DDL_CREATE_TABLE,
                      .ns = RQ_SLICE_LIT("n"),
                      .qualifier = rq_slice_cstr(qualifier),
                      .wait_finished = true,
                      .submitted = answered,
                      .of.create = {.schema = world_schema(&a->arena, a->name, "f"),
                                    .split_keys = &a->split,
                                    .split_key_count = split != NULL}};
    rq_catalog_submit(w->catalog, &a->ddl);
    rq_sim_run(w->sim);
}

/* Tables and regions that a resumed procedure will add count towards the limits, as before the
 * restart. */
static void tables_being_made_count_after_a_start(void **state)
{
    (void)state;
    static const char *const limits[] = {"hbase.namespace.quota.maxtables=1",
                                         "hbase.namespace.quota.maxregions=2"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(limits); i++) {
        world *w = setup();
        asked before, later;
        OK(rq_config_set(w->config, "hbase.quota.enabled", "true", &w->why));
        OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", limits[i]));
        late_calls_hold(w->calls, true);
        ask_in_n(w, &before, "t", "m");
        assert_int_equal(waiting(w), 1);
        OK(world_close(w, true));
        rq_arena_clear(&before.arena);
        OK(world_open(w));
        late_calls_hold(w->calls, true);
        ask_in_n(w, &later, "u", NULL);
        late_calls_hold(w->calls, false);
        run_until_answered(w, &later);
        assert_int_equal(later.ddl.rc, RQ_E_QUOTA_EXCEEDED);
        run_until_idle(w);
        OK(world_put(w, "n:t", "a", "f"));
        teardown(w);
    }
}

/* --- a server that ends ------------------------------------------------------------------------ */

/* A change of table t, which has the regions a, d and n, with one row in each. */
typedef struct change {
    rq_ddl_kind kind;
    bool of_disabled;       /* the table is disabled before the change */
    bool has_rows, is_open; /* after the change */
} change;

static void ask_change(world *w, asked *a, const change *c)
{
    *a = (asked){0};
    char *region = NULL;
    if (c->kind == RQ_DDL_MOVE_REGION) region = world_region_name(w, "t", "d");
    a->ddl = (rq_ddl){.kind = c->kind,
                      .ns = RQ_SLICE_LIT("default"),
                      .qualifier = RQ_SLICE_LIT("t"),
                      .wait_finished = true,
                      .submitted = answered};
    if (region != NULL) /* the region's encoded name */
        a->ddl.of.one_region.region =
            rq_arena_copy(&a->arena, rq_slice_of((uint8_t *)region + strlen(region) - 33, 32));
    if (c->kind == RQ_DDL_MODIFY_TABLE)
        a->ddl.of.modify.schema = world_schema(&a->arena, "t", "f:VERSIONS=3");
    if (c->kind == RQ_DDL_TRUNCATE_TABLE) a->ddl.of.truncate.preserve_splits = true;
    free(region);
    rq_catalog_submit(w->catalog, &a->ddl);
}

static void end_server(world *w)
{
    const rq_server_name *ended = late_calls_end_server(w->calls);
    rq_catalog_server_down(w->catalog, ended);
    rq_server_name_unref(ended);
}

static bool run_steps(world *w, const asked *a, unsigned count)
{
    for (; count > 0 && !a->answered; count--)
        if (!rq_sim_step(w->sim)) rq_sim_advance(w->sim, 1000000);
    return a->answered;
}

static bool all_are_open(world *w)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, RQ_SLICE_LIT("t"));
    bool open = t != NULL;
    for (size_t i = 0; open && i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        open = r->state == RQ_REGION_OPEN && rq__catalog_server_is_up(w->catalog, r->server);
    }
    rq_epoch_unpin(w->env->epoch, &m);
    return open;
}

static void check_after(world *w, const change *c)
{
    static const char *const rows[] = {"a", "d", "n"};
    for (int i = 0; c->is_open && i < 600 && !all_are_open(w); i++)
        rq_sim_advance(w->sim, 100000000);
    assert_true(world_settle(w));
    if (!c->is_open) return;
    assert_true(all_are_open(w));
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++)
        assert_int_equal(world_get(w, "t", rows[i], "f"), c->has_rows ? RQ_OK : RQ_E_NOT_FOUND);
}

/* The server ends `first` steps after the change was submitted, its successor `second` steps later.
 * Returns true if the change was finished before. */
static bool end_servers_at(const change *c, unsigned first, unsigned second)
{
    static const char *const rows[] = {"a", "d", "n"};
    world *w = setup();
    asked a;
    late_calls_name_server(w->calls);
    if (c->kind != RQ_DDL_CREATE_TABLE) {
        OK(world_create(w, "t", "f", "c m"));
        for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++)
            OK(world_put(w, "t", rows[i], "f"));
    }
    if (c->of_disabled) OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    if (c->kind == RQ_DDL_CREATE_TABLE)
        ask(w, &a, c->kind, "t");
    else
        ask_change(w, &a, c);
    bool finished = run_steps(w, &a, first);
    end_server(w);
    (void)run_steps(w, &a, second);
    end_server(w);
    run_until_answered(w, &a);
    if (a.ddl.rc != RQ_OK)
        fail_msg("change %d, servers end after %u and %u steps: %s", (int)c->kind, first, second,
                 a.ddl.why.message);
    check_after(w, c);
    teardown(w);
    return finished;
}

static void nothing_waits_for_a_server_that_has_ended(void **state)
{
    (void)state;
    static const change list[] = {
        {RQ_DDL_CREATE_TABLE, false, false, true}, {RQ_DDL_DISABLE_TABLE, false, true, false},
        {RQ_DDL_ENABLE_TABLE, true, true, true},   {RQ_DDL_MODIFY_TABLE, false, true, true},
        {RQ_DDL_DELETE_TABLE, true, false, false}, {RQ_DDL_TRUNCATE_TABLE, true, false, true},
        {RQ_DDL_MOVE_REGION, false, true, true},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(list); i++) {
        unsigned first = 0;
        while (!end_servers_at(&list[i], first, (first * 7) % 60))
            first += 1 + first / 16;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_waits_has_no_thread),
        cmocka_unit_test(an_abort_takes_effect_when_the_step_ends),
        cmocka_unit_test(a_stop_leaves_what_waits_to_the_next_start),
        cmocka_unit_test(a_pause_waits_for_the_step_that_waits),
        cmocka_unit_test(a_stop_is_not_taken_for_a_report),
        cmocka_unit_test(a_stop_ends_the_step_that_waits),
        cmocka_unit_test(calls_that_memory_did_not_suffice_for_are_sent_again),
        cmocka_unit_test(an_open_waits_for_a_live_server),
        cmocka_unit_test(an_open_region_is_not_assigned_again),
        cmocka_unit_test(tables_made_at_once_share_the_limits_of_their_namespace),
        cmocka_unit_test(tables_being_made_count_after_a_start),
        cmocka_unit_test(nothing_waits_for_a_server_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
