/* SPDX-License-Identifier: Apache-2.0 */
/* Space quotas that disable a table, while the table cannot be disabled or enabled; in the
 * simulated environment. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "quota/quota_priv.h"

typedef struct space_world {
    world w;
    rq_ops *ops;
    rq_lane *lane;
    rq_quotas *quotas;
} space_world;

static void open_quotas(space_world *s)
{
    world *w = &s->w;
    const rq_ops_options ops = {.env = w->env,
                                .engine = w->engine,
                                .catalog = w->catalog,
                                .config = w->config,
                                .lane = s->lane};
    OK(rq_ops_new(&ops, &s->ops, &w->why));
    const rq_quotas_options o = {
        .env = w->env, .catalog = w->catalog, .ops = s->ops, .config = w->config};
    OK(rq_quotas_open(&o, &s->quotas, &w->why));
}

static void close_quotas(space_world *s)
{
    rq_quotas_stop(s->quotas);
    rq_ops_stop(s->ops);
    rq_sim_run(s->w.sim);
    rq_quotas_close(s->quotas);
    rq_ops_free(s->ops);
}

static void begin(space_world *s)
{
    world *w = &s->w;
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR; /* failures are logged as warnings */
    OK(rq_config_set(w->config, "hbase.quota.enabled", "true", &w->why));
    assert_int_equal(rq_sim_lane_new(w->sim, &s->lane), RQ_OK);
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    OK(world_put(w, "t", "a", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    open_quotas(s);
}

static void end(space_world *s)
{
    world *w = &s->w;
    close_quotas(s);
    OK(world_close(w, true));
    w->env->executor->lane_free(w->env->executor, s->lane);
    world_clear(w);
}

/* Sets a quota that disables the table above `limit` bytes; 0: removes the quota. */
static void set_quota(space_world *s, uint64_t limit)
{
    Pb__SetQuotaRequest r = PB__SET_QUOTA_REQUEST__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__SpaceLimitRequest space = PB__SPACE_LIMIT_REQUEST__INIT;
    Pb__SpaceQuota quota = PB__SPACE_QUOTA__INIT;
    table.namespace_ = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "default"};
    table.qualifier = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "t"};
    quota.has_soft_limit = quota.has_violation_policy = limit > 0;
    quota.soft_limit = limit;
    quota.violation_policy = PB__SPACE_VIOLATION_POLICY__DISABLE;
    quota.has_remove = quota.remove = limit == 0;
    space.quota = &quota;
    r.table_name = &table;
    r.space_limit = &space;
    world *w = &s->w;
    OK(rq_quotas_set(s->quotas, &r, &w->why));
}

static void expect_state(space_world *s, rq_table_state state)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(s->w.env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(s->w.catalog, RQ_SLICE_LIT("t"));
    assert_non_null(t);
    assert_int_equal(t->state, state);
    rq_epoch_unpin(s->w.env->epoch, &m);
}

static rq_err refuse(void *ctx, const rq__proc *p, rq_error *why)
{
    const rq_ddl_kind *kind = ctx;
    return p->ops->kind == *kind ? rq_fail(why, RQ_E_DO_NOT_RETRY, "injected") : RQ_OK;
}

/* Makes procedures of this kind fail; NULL: none. */
static void refuse_kind(space_world *s, rq_ddl_kind *kind)
{
    s->w.catalog->procedures.before_step = kind == NULL ? NULL : refuse;
    s->w.catalog->procedures.before_step_ctx = kind;
}

static void next_round(space_world *s)
{
    world *w = &s->w;
    OK(rq_quotas_reload(s->quotas, &w->why));
}

/* ---- policy numbers that the enumeration lacks: another program wrote them */

#define POLICY_NOWHERE 1000

static rq_slice quota_value(uint32_t policy, uint8_t *ret, size_t room)
{
    Pb__Quotas m = PB__QUOTAS__INIT;
    Pb__SpaceQuota space = PB__SPACE_QUOTA__INIT;
    space.has_soft_limit = space.has_violation_policy = 1;
    space.soft_limit = 1;
    space.violation_policy = (Pb__SpaceViolationPolicy)policy;
    m.space = &space;
    assert_true(pb__quotas__get_packed_size(&m) + 4 <= room);
    memcpy(ret, "PBUF", 4);
    return rq_slice_of(ret, 4 + pb__quotas__pack(&m, ret + 4));
}

/* A refused write looks up the policy's name in an array. HBASE: an unknown number counts as
 * absent, and DISABLE is the default. */
static void a_policy_that_is_unknown_is_the_default(void **state)
{
    (void)state;
    space_world s;
    rq_space_state *list;
    size_t count;
    rq_arena arena = {0};
    uint8_t value[64];
    begin(&s);
    set_quota(&s, 1000000); /* creates the table hbase:quota */
    world *w = &s.w;
    OK(world_put_cell(w, "hbase:quota", "t.t", "q", "s",
                      quota_value(POLICY_NOWHERE, value, sizeof value)));
    next_round(&s);
    OK(rq_quotas_space(s.quotas, &arena, &list, &count));
    assert_int_equal(count, 1);
    assert_int_equal(list[0].policy, PB__SPACE_VIOLATION_POLICY__DISABLE);
    assert_true(list[0].is_violated);
    expect_state(&s, RQ_TABLE_DISABLED);
    rq_arena_clear(&arena);
    end(&s);
}

static void a_table_that_cannot_be_disabled_now_is_disabled_later(void **state)
{
    (void)state;
    space_world s;
    rq_ddl_kind disable = RQ_DDL_DISABLE_TABLE;
    begin(&s);
    refuse_kind(&s, &disable);
    set_quota(&s, 1);
    expect_state(&s, RQ_TABLE_ENABLED);
    refuse_kind(&s, NULL);
    next_round(&s);
    expect_state(&s, RQ_TABLE_DISABLED);
    set_quota(&s, 1000000);
    expect_state(&s, RQ_TABLE_ENABLED);
    end(&s);
}

typedef struct probe {
    rq_quotas *quotas;
    unsigned steps, held;
} probe;

static rq_err probe_work(void *ctx, const rq__proc *p, rq_error *why)
{
    probe *k = ctx;
    (void)why;
    if (p->ops->kind != RQ_DDL_DISABLE_TABLE && p->ops->kind != RQ_DDL_ENABLE_TABLE) return RQ_OK;
    k->steps++;
    if (pthread_mutex_trylock(&k->quotas->work) == 0)
        pthread_mutex_unlock(&k->quotas->work);
    else
        k->held++;
    return RQ_OK;
}

/* The disabling procedure may wait for a client's lock. */
static void quotas_change_while_a_table_is_switched(void **state)
{
    (void)state;
    space_world s;
    begin(&s);
    probe k = {.quotas = s.quotas};
    s.w.catalog->procedures.before_step = probe_work;
    s.w.catalog->procedures.before_step_ctx = &k;
    set_quota(&s, 1);
    expect_state(&s, RQ_TABLE_DISABLED);
    unsigned disabled = k.steps;
    assert_true(disabled > 0);
    set_quota(&s, 0);
    expect_state(&s, RQ_TABLE_ENABLED);
    assert_true(k.steps > disabled);
    assert_int_equal(k.held, 0);
    s.w.catalog->procedures.before_step = NULL;
    end(&s);
}

/* Before the fix no later round looked at the table, because neither limit nor usage changed. */
static void table_is_enabled_later(uint64_t limit)
{
    space_world s;
    rq_ddl_kind enable = RQ_DDL_ENABLE_TABLE;
    begin(&s);
    set_quota(&s, 1);
    expect_state(&s, RQ_TABLE_DISABLED);
    refuse_kind(&s, &enable);
    set_quota(&s, limit);
    next_round(&s);
    expect_state(&s, RQ_TABLE_DISABLED);
    refuse_kind(&s, NULL);
    next_round(&s);
    expect_state(&s, RQ_TABLE_ENABLED);
    world *w = &s.w;
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    next_round(&s);
    expect_state(&s, RQ_TABLE_DISABLED); /* disabled by a user */
    end(&s);
}

static void a_table_that_cannot_be_enabled_now_is_enabled_later(void **state)
{
    (void)state;
    table_is_enabled_later(1000000);
    table_is_enabled_later(0);
}

static void table_is_enabled_after_a_crash(uint64_t limit)
{
    space_world s;
    rq_ddl_kind enable = RQ_DDL_ENABLE_TABLE;
    begin(&s);
    set_quota(&s, 1);
    refuse_kind(&s, &enable);
    set_quota(&s, limit);
    expect_state(&s, RQ_TABLE_DISABLED);
    close_quotas(&s);
    world *w = &s.w;
    (void)!world_close(w, false);
    OK(world_open(w));
    open_quotas(&s);
    expect_state(&s, RQ_TABLE_ENABLED);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t")); /* a user's disable takes precedence */
    close_quotas(&s);
    (void)!world_close(w, false);
    OK(world_open(w));
    open_quotas(&s);
    expect_state(&s, RQ_TABLE_DISABLED);
    end(&s);
}

/* Before the fix, with a higher limit the stored record said that nothing was left to do, and
 * without a quota no record was read. */
static void a_crash_before_the_table_is_enabled_leaves_that_to_the_next_start(void **state)
{
    (void)state;
    table_is_enabled_after_a_crash(1000000);
    table_is_enabled_after_a_crash(0);
}

/* ---- hostile requests */

static rq_err set_throttle(space_world *s, const char *qualifier, size_t len, uint64_t limit)
{
    Pb__SetQuotaRequest r = PB__SET_QUOTA_REQUEST__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__ThrottleRequest throttle = PB__THROTTLE_REQUEST__INIT;
    Pb__TimedQuota quota = PB__TIMED_QUOTA__INIT;
    table.namespace_ = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "default"};
    table.qualifier = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)qualifier};
    quota.time_unit = PB__TIME_UNIT__SECONDS;
    quota.has_soft_limit = 1;
    quota.soft_limit = limit;
    throttle.has_type = 1;
    throttle.type = PB__THROTTLE_TYPE__REQUEST_NUMBER;
    throttle.timed_quota = &quota;
    r.table_name = &table;
    r.throttle = &throttle;
    s->w.why = (rq_error){.code = RQ_OK};
    return rq_quotas_set(s->quotas, &r, &s->w.why);
}

/* HBASE: GlobalQuotaSettingsImpl.validateTimedQuota; Java reads the field as a signed number. */
static void a_negative_limit_is_refused(void **state)
{
    (void)state;
    space_world s = {.quotas = NULL};
    begin(&s);
    assert_int_equal(set_throttle(&s, "t", 1, UINT64_MAX), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(s.w.why.message, "must be greater then 0, got -1"));
    assert_int_equal(set_throttle(&s, "t", 1, 0), RQ_E_DO_NOT_RETRY);
    const world *w = &s.w;
    OK(set_throttle(&s, "t", 1, INT64_MAX));
    end(&s);
}

/* Truncated at the NUL, "t\0x" would be the row of table t. */
static void a_name_with_a_nul_is_no_other_tables(void **state)
{
    (void)state;
    space_world s = {.quotas = NULL};
    begin(&s);
    assert_int_equal(set_throttle(&s, "t\0x", 3, 1), RQ_E_ILLEGAL_ARGUMENT);
    end(&s);
}

/* While a round waits to disable a table that another client has locked, each caller occupies a
 * thread. */
static void few_changes_wait_for_a_round(void **state)
{
    (void)state;
    space_world s = {.quotas = NULL};
    begin(&s);
    rq_error why = {.code = RQ_OK};
    bool before;
    for (int i = 0; i < RQ__QUOTA_CHANGES_MAX; i++)
        assert_int_equal(rq__quotas_begin_change(s.quotas, &why), RQ_OK);
    assert_int_equal(set_throttle(&s, "t", 1, 5), RQ_E_PLEASE_HOLD);
    assert_int_equal(rq_quotas_switch_throttle(s.quotas, true, &before, &why), RQ_E_PLEASE_HOLD);
    assert_int_equal(rq_quotas_switch_exceed(s.quotas, true, &before, &why), RQ_E_PLEASE_HOLD);
    for (int i = 0; i < RQ__QUOTA_CHANGES_MAX; i++)
        rq__quotas_end_change(s.quotas);
    assert_int_equal(set_throttle(&s, "t", 1, 5), RQ_OK);
    assert_int_equal(atomic_load(&s.quotas->changes), 0);
    end(&s);
}

/* ---- many quotas */

/* Sets a quota of a user (with or without a table or namespace), of a table, or of a namespace.
 * `what` 0: a throttle, 1: removes all, 2: removes the throttle, 3: bypass. */
static void set_some(space_world *s, uint64_t which, unsigned what)
{
    Pb__SetQuotaRequest r = PB__SET_QUOTA_REQUEST__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__ThrottleRequest throttle = PB__THROTTLE_REQUEST__INIT;
    Pb__TimedQuota quota = PB__TIMED_QUOTA__INIT;
    world *w = &s->w;
    char name[32];
    snprintf(name, sizeof name, "n%llu", (unsigned long long)(which / 5));
    table.namespace_ = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "default"};
    table.qualifier = (ProtobufCBinaryData){strlen(name), (uint8_t *)name};
    if (which % 5 < 3) r.user_name = name;
    if (which % 5 == 1 || which % 5 == 3) r.table_name = &table;
    if (which % 5 == 2 || which % 5 == 4) r.namespace_ = name;
    quota.has_soft_limit = 1;
    quota.soft_limit = 1 + which;
    throttle.has_type = 1;
    throttle.type = PB__THROTTLE_TYPE__REQUEST_NUMBER;
    throttle.timed_quota = what == 0 ? &quota : NULL;
    r.has_remove_all = r.remove_all = what == 1;
    if (what == 0 || what == 2) r.throttle = &throttle;
    r.has_bypass_globals = r.bypass_globals = what == 3;
    OK(rq_quotas_set(s->quotas, &r, &w->why));
}

/* The view built from single changes must equal the view built by reading the whole table. */
static void expect_same_as_read(space_world *s)
{
    world *w = &s->w;
    rq__view_of_quotas *all;
    const rq__view_of_quotas *v = atomic_load(&s->quotas->view);
    rq__quota_cursor at = {0};
    const rq__entry *e;
    size_t count = 0;
    OK(rq__quota_view_read(s->quotas, v, &all, &w->why));
    assert_int_equal(v->count, all->count);
    assert_int_equal(v->throttles, all->throttles);
    assert_int_equal(v->spaces, all->spaces);
    for (; (e = rq__quota_next(all, &at)) != NULL; count++) {
        const rq__entry *same = rq__quota_find(v, e->owner, e->name, e->other);
        assert_non_null(same);
        assert_ptr_equal(same->limiter, e->limiter);
        assert_int_equal(same->bypasses, e->bypasses);
    }
    assert_int_equal(count, all->count);
    rq__quota_view_free(all);
}

static void a_change_reads_one_row(void **state)
{
    (void)state;
    space_world s = {.quotas = NULL};
    begin(&s);
    for (unsigned i = 0; i < 1500; i++) {
        rq__quota_bucket *before[RQ__QUOTA_BUCKETS];
        size_t changed = 0;
        if (i > 0) memcpy(before, atomic_load(&s.quotas->view)->buckets, sizeof before);
        set_some(&s, rq_sim_random(s.w.sim) % 600, (unsigned)(rq_sim_random(s.w.sim) % 8) % 4);
        const rq__view_of_quotas *v = atomic_load(&s.quotas->view);
        for (size_t b = 0; i > 0 && b < RQ__QUOTA_BUCKETS; b++)
            changed += v->buckets[b] != before[b];
        assert_true(changed <= 1);
        if (i % 100 == 0) expect_same_as_read(&s);
    }
    assert_true(atomic_load(&s.quotas->view)->count > 100);
    expect_same_as_read(&s);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_negative_limit_is_refused),
        cmocka_unit_test(a_change_reads_one_row),
        cmocka_unit_test(few_changes_wait_for_a_round),
        cmocka_unit_test(a_name_with_a_nul_is_no_other_tables),
        cmocka_unit_test(a_policy_that_is_unknown_is_the_default),
        cmocka_unit_test(quotas_change_while_a_table_is_switched),
        cmocka_unit_test(a_table_that_cannot_be_disabled_now_is_disabled_later),
        cmocka_unit_test(a_table_that_cannot_be_enabled_now_is_enabled_later),
        cmocka_unit_test(a_crash_before_the_table_is_enabled_leaves_that_to_the_next_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
