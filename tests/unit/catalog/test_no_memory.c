/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of a history of changes once: a change may be refused, but then it leaves
 * nothing behind; a successful one is complete; and the catalog agrees with meta and the disk, at
 * once and after a restart.
 *
 * Everything runs on this thread (the simulated environment), so a number identifies an allocation.
 * STRIDE=n fails every n-th allocation (from a random first one), 1 all of them; AT=n only the
 * n-th. */
#include "world.h"

#include "../base/failing_memory.h"

#include "catalog/catalog_priv.h"
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"
#include "region/region_priv.h"
#include "vfs/retention.h"

static bool armed, counting;
static uint64_t left; /* allocations until the failing one; 0: it has failed */

bool allocation_fails(void)
{
    return armed && counting && left > 0 && --left == 0;
}

static void at_work(bool begins)
{
    counting = begins;
}

/* --- the history ------------------------------------------------------------------------------ */

static rq_err create(world *w)
{
    return world_create(w, "n:t", "f:VERSIONS=2 g", "c m");
}

static rq_err modify(world *w)
{
    return world_modify(w, "n:t", "f:VERSIONS=4 g h @MAX_FILESIZE=100000000");
}

static rq_err delete_family(world *w)
{
    return world_family(w, RQ_DDL_DELETE_FAMILY, "n:t", "g");
}

static rq_err flush(world *w)
{
    return world_table(w, RQ_DDL_FLUSH_TABLE, "n:t");
}

static rq_err disable(world *w)
{
    return world_table(w, RQ_DDL_DISABLE_TABLE, "n:t");
}

static rq_err enable(world *w)
{
    return world_table(w, RQ_DDL_ENABLE_TABLE, "n:t");
}

static rq_err truncate_table(world *w)
{
    return world_truncate(w, "n:t", true);
}

static rq_err drop(world *w)
{
    return world_table(w, RQ_DDL_DELETE_TABLE, "n:t");
}

static rq_err create_namespace(world *w)
{
    return world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "a=b");
}

static rq_err modify_namespace(world *w)
{
    return world_namespace(w, RQ_DDL_MODIFY_NAMESPACE, "n", "a=c");
}

static rq_err delete_namespace(world *w)
{
    return world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "n", NULL);
}

static rq_err restart(world *w)
{
    at_work(true);
    rq_err rc = world_close(w, true), opened = world_open(w);
    at_work(false);
    return rc != RQ_OK ? rc : opened;
}

typedef struct deed {
    const char *name;
    rq_err (*run)(world *w);
} deed;

/* In an order in which each change is possible. */
static const deed history[] = {
    {"create namespace", create_namespace},
    {"modify namespace", modify_namespace},
    {"create", create},
    {"flush", flush},
    {"modify", modify},
    {"delete family", delete_family},
    {"disable", disable},
    {"enable", enable},
    {"restart", restart},
    {"disable", disable},
    {"truncate", truncate_table},
    {"disable", disable},
    {"delete", drop},
    {"delete namespace", delete_namespace},
};

#define ACTS RQ_ARRAY_LEN(history)

static void check(world *w, uint64_t n, const char *name, const char *when)
{
    char *faults = world_check(w);
    if (faults[0] != '\0')
        fail_msg("allocation %llu, %s, %s: %s", (unsigned long long)n, name, when, faults);
    free(faults);
}

static void same(const char *a, const char *b, uint64_t n, const char *name, const char *when)
{
    if (strcmp(a, b) == 0) return;
    fprintf(stderr, "%s\n%s", a, b); /* too long for a message */
    fail_msg("allocation %llu, %s: %s", (unsigned long long)n, name, when);
}

static void start(world *w)
{
    if (w->root == NULL && world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
}

/* Fails the n-th allocation of the change. Returns false if the change makes fewer. */
static bool one(size_t act, uint64_t n)
{
    const char *name = history[act].name;
    world w;
    world_init(&w, 7, NULL);
    w.env->log->level = RQ_LOG_ERROR + 1;
    w.at_work = at_work;
    start(&w);
    for (size_t i = 0; i < act; i++)
        if (history[i].run(&w) != RQ_OK) fail_msg("%s: %s", history[i].name, w.why.message);
    char *before = world_describe(&w);
    left = n;
    armed = true;
    rq_err rc = history[act].run(&w);
    armed = false;
    bool reached = left == 0;
    if (!reached && rc != RQ_OK) fail_msg("%s: %s (%s)", name, rq_err_name(rc), w.why.message);
    start(&w);
    if (!world_settle(&w)) fail_msg("allocation %llu, %s never ends", (unsigned long long)n, name);
    char *after = world_describe(&w);
    if (rc != RQ_OK) same(before, after, n, name, "refused, and done");
    check(&w, n, name, "at once");
    (void)world_close(&w, n % 2 == 0);
    start(&w);
    assert_true(world_settle(&w));
    char *later = world_describe(&w);
    same(after, later, n, name, "after a restart");
    check(&w, n, name, "after a restart");
    if (rc != RQ_OK && (rc = history[act].run(&w)) != RQ_OK)
        fail_msg("allocation %llu: %s again: %s", (unsigned long long)n, name, w.why.message);
    free(before);
    free(after);
    free(later);
    world_clear(&w);
    return reached;
}

static void changes_survive_every_failing_allocation(void **state)
{
    (void)state;
    uint64_t seed = unit_seed(), stride = seeds_number("STRIDE", 23), at = seeds_number("AT", 0);
    uint64_t from = seeds_number("ACT", 0), to = seeds_number("ACT", ACTS - 1);
    for (size_t act = from; act <= to; act++) {
        uint64_t n = at != 0 ? at : 1 + (seed + act) % stride;
        while (one(act, n) && at == 0)
            n += stride;
    }
}

/* Without memory for a smaller copy of the result, the snapshot's files would have been kept as
 * long as the result. */
static void a_result_that_cannot_be_made_smaller_keeps_no_files(void **state)
{
    (void)state;
    world w;
    world_init(&w, 7, NULL);
    start(&w);
    rq__proc *p = rq__proc_new(w.catalog);
    assert_non_null(p);
    p->java_class = "SnapshotProcedure";
    assert_int_equal(rq_retention_hold(rq_engine_retention(w.engine), "snapshot s", 0, &p->holder),
                     RQ_OK);
    left = 1;
    armed = counting = true;
    rq__proc_slim(p);
    armed = counting = false;
    assert_int_equal(left, 0);
    assert_null(p->holder);
    rq__proc_free(p);
    (void)world_close(&w, true);
    world_clear(&w);
}

/* --- regions that are opened again ------------------------------------------------------------ */

static void open_with_row(world *w)
{
    world_init(w, 7, NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    start(w);
    OK(world_create(w, "t", "f", NULL));
    OK(world_put(w, "t", "a", "f"));
}

/* The region with a reference; NULL: it is not open. */
static rq_region *region_of_row(world *w)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, &w->why));
    rq_region *region = r->region == NULL ? NULL : rq_region_ref(r->region);
    rq_epoch_unpin(w->env->epoch, &m);
    return region;
}

static void expect_open_later(world *w)
{
    rq_sim_advance(w->sim, UINT64_C(5) * 1000000000);
    assert_true(world_settle(w));
    OK(world_get(w, "t", "a", "f"));
    world_end(w);
}

/* Returns false if beginning the reopening takes fewer than n allocations. */
static bool fail_region_without_memory(uint64_t n)
{
    const rq_error why = {.code = RQ_E_IO, .message = "the test says so"};
    world w;
    open_with_row(&w);
    rq_region *failed = region_of_row(&w);
    assert_non_null(failed);
    left = n;
    armed = counting = true;
    rq__region_fail(failed, &why);
    armed = counting = false;
    bool reached = left == 0;
    rq_region_unref(failed);
    expect_open_later(&w);
    return reached;
}

static void a_region_that_fails_without_memory_is_opened_again(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (fail_region_without_memory(n))
        n++;
    assert_true(n > 1);
}

/* Memory fails when the procedure requests the opening of the region that it has found. */
static rq_err fail_at_last_step(void *ctx, const rq__proc *p, rq_error *why)
{
    (void)why;
    if (p->ops->kind == RQ_DDL_FILL_HOLES && p->ops->steps[p->step + 1].run == NULL) {
        left = *(const uint64_t *)ctx;
        armed = counting = true;
    }
    return RQ_OK;
}

static bool fill_hole_without_memory(uint64_t n)
{
    world w;
    open_with_row(&w);
    assert_int_equal(world_forget(&w, "t", "a"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    start(&w);
    w.catalog->procedures.before_step = fail_at_last_step;
    w.catalog->procedures.before_step_ctx = &n;
    /* further allocations belong to the procedure's end */
    (void)world_table(&w, RQ_DDL_FILL_HOLES, "t");
    armed = counting = false;
    bool reached = left == 0;
    expect_open_later(&w);
    return reached;
}

static void a_filled_hole_is_opened_without_memory_too(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (n < 20 && fill_hole_without_memory(n))
        n++;
    assert_true(n > 1);
}

/* --- an undo ---------------------------------------------------------------------------------- */

/* Writes a row as the commit does, refuses the rest of it, and lets an allocation of the undo fail. */
static rq_err fail_in_commit(void *ctx, const rq__proc *p, rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq_arena a = {0};
    rq__batch b;
    if (p->ops->kind != RQ_DDL_CREATE_TABLE || p->step != p->ops->commit) return RQ_OK;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    assert_int_equal(rq__meta_put_region(&b, &p->regions[1], RQ_REGION_CLOSED, NULL, -1), RQ_OK);
    assert_int_equal(rq__meta_commit(c, &b, NULL), RQ_OK);
    rq_arena_clear(&a);
    left = *(const uint64_t *)ctx;
    armed = counting = true;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "the test says so");
}

/* Returns false if the undo takes fewer than n allocations. */
static bool undo_without_memory(uint64_t n)
{
    world w;
    world_init(&w, 7, NULL);
    w.env->log->level = RQ_LOG_ERROR + 1;
    start(&w);
    w.catalog->procedures.before_step = fail_in_commit;
    w.catalog->procedures.before_step_ctx = &n;
    assert_int_not_equal(world_create(&w, "t", "f", "c m"), RQ_OK);
    armed = counting = false;
    bool reached = left == 0;
    assert_true(world_settle(&w));
    assert_int_equal(world_close(&w, true), RQ_OK);
    start(&w);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_E_TABLE_NOT_FOUND);
    world_end(&w);
    return reached;
}

static void an_undo_without_memory_leaves_no_rows(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (undo_without_memory(n))
        n++;
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_survive_every_failing_allocation),
        cmocka_unit_test(a_result_that_cannot_be_made_smaller_keeps_no_files),
        cmocka_unit_test(a_region_that_fails_without_memory_is_opened_again),
        cmocka_unit_test(a_filled_hole_is_opened_without_memory_too),
        cmocka_unit_test(an_undo_without_memory_leaves_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
