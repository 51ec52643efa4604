/* SPDX-License-Identifier: Apache-2.0 */
/* Each step of each kind of procedure fails, permanently. The procedure must end rolled back or
 * parked, and must not repeat the step forever; changes of other tables work, the server can stop,
 * a start does not wait for the procedure and leaves it parked, and an abort makes its table usable
 * again. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "region/region_priv.h"

/* --- the step that fails ---------------------------------------------------------------------- */

typedef struct fault {
    rq_ddl_kind kind;
    unsigned step;
    rq_err rc; /* RQ_OK: no error */
    unsigned hits;
    rq_sim *cut; /* if set, cuts the power instead */
} fault;

/* Fails steps of table n:t and namespace x only. */
static rq_err fail_step(void *ctx, const rq__proc *p, rq_error *why)
{
    fault *f = ctx;
    bool meant = p->ops->lock == RQ_LOCK_NAMESPACE ? rq_slice_eq(p->ns, RQ_SLICE_LIT("x"))
                                                   : rq_slice_eq(p->table, RQ_SLICE_LIT("n:t"));
    if (f->rc == RQ_OK || !meant || p->ops->kind != f->kind || p->step != f->step) return RQ_OK;
    f->hits++;
    if (f->cut != NULL) rq_sim_cut_now(f->cut);
    return rq_fail(why, f->rc, "injected");
}

static void set_fault(world *w, fault *f)
{
    w->catalog->procedures.before_step_ctx = f;
    w->catalog->procedures.before_step = fail_step;
}

/* --- the changes ------------------------------------------------------------------------------ */

static rq_err nothing(world *w)
{
    (void)w;
    return RQ_OK;
}

#define VERB(name, expr)                                                                           \
    static rq_err name(world *w)                                                                   \
    {                                                                                              \
        return expr;                                                                               \
    }

VERB(disable, world_table(w, RQ_DDL_DISABLE_TABLE, "n:t"))
VERB(enable, world_table(w, RQ_DDL_ENABLE_TABLE, "n:t"))
VERB(drop, world_table(w, RQ_DDL_DELETE_TABLE, "n:t"))
VERB(flush, world_table(w, RQ_DDL_FLUSH_TABLE, "n:t"))
VERB(create, world_create(w, "n:t", "f g", "m"))
VERB(empty_name,
     world_table(w, RQ_DDL_DISABLE_TABLE, "n:t") || world_table(w, RQ_DDL_DELETE_TABLE, "n:t"))
VERB(truncate_table, world_truncate(w, "n:t", true))
VERB(modify, world_modify(w, "n:t", "f:VERSIONS=5 g h"))
VERB(add_family, world_family(w, RQ_DDL_ADD_FAMILY, "n:t", "h"))
VERB(modify_family, world_family(w, RQ_DDL_MODIFY_FAMILY, "n:t", "f:VERSIONS=7"))
VERB(delete_family, world_family(w, RQ_DDL_DELETE_FAMILY, "n:t", "g"))
VERB(table_tracker, world_tracker(w, "n:t", NULL, "FILE"))
VERB(family_tracker, world_tracker(w, "n:t", "f", "FILE"))
VERB(create_ns, world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "x", "a=b"))
VERB(modify_ns, world_namespace(w, RQ_DDL_MODIFY_NAMESPACE, "x", "a=c"))
VERB(delete_ns, world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "x", NULL))
VERB(split, world_split(w, "n:t", "a", "c"))
VERB(merge, world_merge(w, "n:t", "a z", false))
VERB(truncate_region, world_truncate_region(w, "n:t", "a"))
VERB(clean, world_clean(w, "n:t"))
VERB(prepare_clean, world_split(w, "n:t", "a", "c") || world_compact(w, "n:t"))

static rq_err region_verb(world *w, rq_ddl_kind kind)
{
    static char encoded[RQ_ENCODED_NAME_LEN + 1]; /* must outlive the submission */
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("n:t"), RQ_SLICE_LIT("a"), &r, &w->why));
    memcpy(encoded, r->info->encoded, sizeof encoded);
    rq_epoch_unpin(w->env->epoch, &m);
    return world_family(w, kind, "n:t", encoded);
}

VERB(assign, region_verb(w, RQ_DDL_ASSIGN_REGION))
VERB(unassign, region_verb(w, RQ_DDL_UNASSIGN_REGION))

typedef struct change {
    const char *name;
    rq_ddl_kind kind;
    rq_err (*before)(world *w);
    rq_err (*run)(world *w);
} change;

static const change changes[] = {
    {"create", RQ_DDL_CREATE_TABLE, empty_name, create},
    {"delete", RQ_DDL_DELETE_TABLE, disable, drop},
    {"truncate", RQ_DDL_TRUNCATE_TABLE, disable, truncate_table},
    {"enable", RQ_DDL_ENABLE_TABLE, disable, enable},
    {"disable", RQ_DDL_DISABLE_TABLE, nothing, disable},
    {"modify", RQ_DDL_MODIFY_TABLE, nothing, modify},
    {"add family", RQ_DDL_ADD_FAMILY, nothing, add_family},
    {"modify family", RQ_DDL_MODIFY_FAMILY, nothing, modify_family},
    {"delete family", RQ_DDL_DELETE_FAMILY, nothing, delete_family},
    {"table tracker", RQ_DDL_TABLE_TRACKER, nothing, table_tracker},
    {"family tracker", RQ_DDL_FAMILY_TRACKER, nothing, family_tracker},
    {"create namespace", RQ_DDL_CREATE_NAMESPACE, nothing, create_ns},
    {"modify namespace", RQ_DDL_MODIFY_NAMESPACE, create_ns, modify_ns},
    {"delete namespace", RQ_DDL_DELETE_NAMESPACE, create_ns, delete_ns},
    {"flush", RQ_DDL_FLUSH_TABLE, nothing, flush},
    {"split", RQ_DDL_SPLIT_REGION, nothing, split},
    {"merge", RQ_DDL_MERGE_REGIONS, nothing, merge},
    {"truncate region", RQ_DDL_TRUNCATE_REGION, nothing, truncate_region},
    {"clean", RQ_DDL_CLEAN_PARENTS, prepare_clean, clean},
    {"assign", RQ_DDL_ASSIGN_REGION, unassign, assign},
    {"unassign", RQ_DDL_UNASSIGN_REGION, nothing, unassign},
};

/* --- expectations ----------------------------------------------------------------------------- */

static char place[200]; /* for messages: which change and step */

#define MUST(expr)                                                                                 \
    do {                                                                                           \
        rq_err must_rc = (expr);                                                                   \
        if (must_rc != RQ_OK)                                                                      \
            fail_msg("%s: %s: %s %s", place, #expr, rq_err_name(must_rc), w->why.message);         \
    } while (0)

static uint64_t seed;

static world *setup(const change *ch)
{
    static world shared;
    world *w = &shared;
    world_init(w, seed++, NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    MUST(world_open(w));
    MUST(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL));
    MUST(create(w));
    MUST(world_create(w, "n:other", "f", NULL));
    MUST(world_put(w, "n:t", "a", "f"));
    MUST(world_put(w, "n:t", "z", "g"));
    MUST(ch->before(w));
    return w;
}

static void others_go_on(world *w)
{
    MUST(world_put(w, "n:other", "r", "f"));
    MUST(world_family(w, RQ_DDL_MODIFY_FAMILY, "n:other", "f:VERSIONS=4"));
    MUST(world_create(w, "n:more", "f", NULL));
    MUST(world_table(w, RQ_DDL_DISABLE_TABLE, "n:more"));
    MUST(world_table(w, RQ_DDL_DELETE_TABLE, "n:more"));
    MUST(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "more", NULL));
    MUST(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "more", NULL));
}

static uint64_t parked(world *w, rq_arena *a, rq_procedure *ret)
{
    rq_procedure *list;
    size_t count;
    uint64_t id = 0;
    MUST(rq_catalog_procedures(w->catalog, a, &list, &count));
    for (size_t i = 0; i < count; i++) {
        if (list[i].finished) continue;
        if (!list[i].parked)
            fail_msg("%s: procedure %llu runs", place, (unsigned long long)list[i].id);
        assert_int_equal(id, 0);
        id = list[i].id;
        *ret = list[i];
    }
    return id;
}

/* A change that conflicts with the parked procedure is refused with the reason, instead of
 * waiting. */
static void half_done_is_refused(world *w, const change *ch)
{
    bool of_namespace = ch->run == create_ns || ch->run == modify_ns || ch->run == delete_ns;
    rq_err rc = of_namespace ? modify_ns(w) : modify_family(w);
    if (rc == RQ_E_NAMESPACE_NOT_FOUND) return; /* this check needs no lock */
    if (rc != RQ_E_DO_NOT_RETRY || strstr(w->why.message, "is parked in step") == NULL ||
        strstr(w->why.message, "injected") == NULL)
        fail_msg("%s: %s %s", place, rq_err_name(rc), w->why.message);
}

/* The table can be dropped, whatever its state, and created again. */
static void table_is_given_back(world *w)
{
    if (enable(w) == RQ_OK || w->why.code == RQ_E_TABLE_NOT_DISABLED) MUST(disable(w));
    rq_err rc = drop(w);
    if (rc != RQ_OK && rc != RQ_E_TABLE_NOT_FOUND) fail_msg("%s: drop: %s", place, w->why.message);
    MUST(create(w));
    MUST(world_put(w, "n:t", "a", "f"));
    MUST(world_put(w, "n:t", "z", "g"));
    MUST(split(w));
    MUST(disable(w));
    MUST(enable(w));
}

static void expect_sound(world *w)
{
    char *faults = world_check(w);
    if (faults[0] != '\0') fail_msg("%s: %s", place, faults);
    free(faults);
}

static void settle(world *w)
{
    if (!world_settle(w)) fail_msg("%s: it never settles", place);
}

/* What a test does after the procedure was parked. */
enum { RESTARTED = 1, STILL_FAILS = 2, VARIANTS = 4 };

static void parked_is_got_rid_of(world *w, const change *ch, fault *f, int variant)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_procedure p, q;
    uint64_t id = parked(w, &a, &p);
    assert_true(id != 0);
    assert_string_equal(p.message, "injected");
    assert_string_equal(p.step, rq__proc_kind_of(ch->kind)->steps[f->step].name);
    assert_true(p.rc == f->rc);
    others_go_on(w);
    half_done_is_refused(w, ch);
    if (variant & RESTARTED) {
        (void)world_close(w, variant & STILL_FAILS); /* only tests that the close returns */
        MUST(world_open(w));
        set_fault(w, f);
        rq_sim_advance(w->sim, 20000000000);
        assert_true(parked(w, &a, &q) == id);
        assert_string_equal(q.message, "injected");
        assert_string_equal(q.step, p.step);
        others_go_on(w);
        half_done_is_refused(w, ch);
    }
    if (!(variant & STILL_FAILS)) f->rc = RQ_OK;
    assert_true(rq_catalog_procedure_abort(w->catalog, id, true));
    settle(w);
    assert_false(rq_catalog_procedure_abort(w->catalog, id, true));
    f->rc = RQ_OK;
    if (!(variant & STILL_FAILS)) expect_sound(w);
    rq_arena_clear(&a);
}

static unsigned ended_undone, ended_parked;

static void one(const change *ch, unsigned step, int variant)
{
    const char *name = rq__proc_kind_of(ch->kind)->steps[step].name;
    snprintf(place, sizeof place, "%s, %s, variant %d", ch->name, name, variant);
    world *w = setup(ch);
    fault f = {ch->kind, step, RQ_E_DO_NOT_RETRY, 0, NULL};
    char *before = world_describe(w);
    set_fault(w, &f);
    rq_err rc = ch->run(w);
    assert_true(f.hits > 0);
    if (rc != RQ_E_DO_NOT_RETRY || strcmp(w->why.message, "injected") != 0)
        fail_msg("%s: %s %s", place, rq_err_name(rc), w->why.message);
    rq_sim_run(w->sim);
    rq_procedure p;
    rq_arena a;
    rq_arena_init(&a);
    bool is_parked = parked(w, &a, &p) != 0;
    rq_arena_clear(&a);
    if (is_parked) {
        ended_parked++;
        assert_true(step >= rq__proc_kind_of(ch->kind)->commit);
        parked_is_got_rid_of(w, ch, &f, variant);
    } else {
        ended_undone++;
        f.rc = RQ_OK;
        settle(w);
        char *after = world_describe(w);
        if (strcmp(before, after) != 0) fail_msg("%s:\n%s%s", place, before, after);
        free(after);
        expect_sound(w);
        others_go_on(w);
    }
    free(before);
    table_is_given_back(w);
    (void)world_close(w, true);
    MUST(world_open(w));
    settle(w);
    MUST(world_get(w, "n:t", "a", "f"));
    MUST(world_get(w, "n:other", "r", "f"));
    world_clear(w);
}

static void each_step_that_fails_for_good_is_undone_or_parked(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++) {
        const rq__proc_kind *kind = rq__proc_kind_of(changes[i].kind);
        for (unsigned step = 0; step < RQ__STEPS_MAX && kind->steps[step].run != NULL; step++)
            for (int variant = 0; variant < VARIANTS; variant++)
                one(&changes[i], step, variant);
    }
    printf("%u undone, %u parked\n", ended_undone, ended_parked);
}

/* --- after a restart -------------------------------------------------------------------------- */

/* The power was cut at `cut`; the procedure is resumed at the start, and `step` fails. */
static void one_resumed(const change *ch, unsigned cut, unsigned step)
{
    snprintf(place, sizeof place, "%s, cut at step %u, step %u fails", ch->name, cut, step);
    world *w = setup(ch);
    rq_sim_advance(w->sim, 20000000000); /* makes writes durable that nobody waits for */
    fault f = {ch->kind, cut, RQ_E_IO, 0, w->sim};
    set_fault(w, &f);
    (void)ch->run(w);
    assert_int_equal(f.hits, 1);
    (void)world_close(w, false);
    rq_sim_run(w->sim);
    rq_sim_restart(w->sim);
    f = (fault){ch->kind, step, RQ_E_DO_NOT_RETRY, 0, NULL};
    MUST(world_open(w));
    set_fault(w, &f);
    for (int i = 0; i < 100; i++)
        rq_sim_advance(w->sim, 300000000);
    rq_procedure p;
    rq_arena a;
    rq_arena_init(&a);
    others_go_on(w);
    if (parked(w, &a, &p) != 0) {
        ended_parked++;
        parked_is_got_rid_of(w, ch, &f, (int)(step + cut) % VARIANTS);
    } else {
        ended_undone++;
        f.rc = RQ_OK;
        settle(w);
        expect_sound(w);
    }
    rq_arena_clear(&a);
    table_is_given_back(w);
    (void)world_close(w, true);
    MUST(world_open(w));
    settle(w);
    MUST(world_get(w, "n:t", "a", "f"));
    world_clear(w);
}

static void a_resumed_procedure_is_undone_or_parked(void **state)
{
    (void)state;
    ended_undone = ended_parked = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++) {
        const rq__proc_kind *kind = rq__proc_kind_of(changes[i].kind);
        if (kind->transient) continue;
        for (unsigned cut = 0; cut < RQ__STEPS_MAX && kind->steps[cut].run != NULL; cut++)
            for (unsigned step = 0; step < RQ__STEPS_MAX && kind->steps[step].run != NULL; step++)
                one_resumed(&changes[i], cut, step);
    }
    printf("%u undone, %u parked\n", ended_undone, ended_parked);
}

/* --- temporary errors ------------------------------------------------------------------------- */

static rq_procedure only_unfinished(world *w, rq_arena *a)
{
    rq_procedure *list;
    size_t count;
    MUST(rq_catalog_procedures(w->catalog, a, &list, &count));
    rq_procedure found = {0};
    for (size_t i = 0; i < count; i++)
        if (!list[i].finished) found = list[i];
    return found;
}

/* A temporary error is retried for a while; then it counts as permanent. */
static void transient_errors_are_retried_for_a_while(void **state)
{
    (void)state;
    static const size_t some[] = {1, 3, 15}; /* delete, enable, split */
    for (size_t n = 0; n < RQ_ARRAY_LEN(some); n++) {
        size_t i = some[n];
        const rq__proc_kind *kind = rq__proc_kind_of(changes[i].kind);
        unsigned step = kind->commit;
        while (step + 1 < RQ__STEPS_MAX && kind->steps[step + 1].run != NULL)
            step++;
        snprintf(place, sizeof place, "%s, I/O errors", changes[i].name);
        world *w = setup(&changes[i]);
        fault f = {changes[i].kind, step, RQ_E_IO, 0, NULL};
        set_fault(w, &f);
        int64_t begin = w->env->executor->now_ms(w->env->executor);
        assert_int_equal(changes[i].run(w), RQ_E_IO);
        int64_t took = w->env->executor->now_ms(w->env->executor) - begin;
        assert_int_equal(f.hits, 33);
        assert_true(took > 10 * 60000 && took < 60 * 60000);
        rq_sim_run(w->sim);
        parked_is_got_rid_of(w, &changes[i], &f, 0);
        table_is_given_back(w);
        world_clear(w);
    }
}

static size_t unfinished(world *w)
{
    rq_procedure *list;
    size_t count, n = 0;
    rq_arena a;
    rq_arena_init(&a);
    MUST(rq_catalog_procedures(w->catalog, &a, &list, &count));
    for (size_t i = 0; i < count; i++)
        n += !list[i].finished;
    rq_arena_clear(&a);
    return n;
}

/* The cause of a temporary error ends after the procedure was parked: the procedure completes without an operator. */
static void one_revived(const change *ch, bool restarted)
{
    const rq__proc_kind *kind = rq__proc_kind_of(ch->kind);
    unsigned step = kind->commit;
    while (step + 1 < RQ__STEPS_MAX && kind->steps[step + 1].run != NULL)
        step++;
    snprintf(place, sizeof place, "%s, I/O errors that end%s", ch->name,
             restarted ? ", after a restart" : "");
    world *w = setup(ch);
    fault f = {ch->kind, step, RQ_E_IO, 0, NULL};
    set_fault(w, &f);
    (void)ch->run(w);
    rq_sim_run(w->sim);
    if (unfinished(w) > 0) {
        unsigned hits = f.hits;
        rq_sim_advance(w->sim, UINT64_C(1900) * 1000000000);
        if (f.hits != hits + 3) fail_msg("%s: %u attempts in half an hour", place, f.hits - hits);
        others_go_on(w);
        half_done_is_refused(w, ch);
        if (restarted) {
            (void)world_close(w, true);
            MUST(world_open(w));
            set_fault(w, &f);
            rq_sim_advance(w->sim, UINT64_C(700) * 1000000000);
            /* If the kind has start_ends, the start has completed the rest of the procedure. */
            size_t left = kind->start_ends ? 0 : 1;
            if (unfinished(w) != left) fail_msg("%s: %zu are left", place, unfinished(w));
        }
        f.rc = RQ_OK;
        rq_sim_advance(w->sim, UINT64_C(700) * 1000000000);
        if (unfinished(w) != 0) fail_msg("%s: it is not tried again", place);
        ended_parked++;
    }
    f.rc = RQ_OK;
    expect_sound(w);
    table_is_given_back(w);
    MUST(world_close(w, true));
    MUST(world_open(w));
    MUST(world_get(w, "n:t", "a", "f"));
    world_clear(w);
}

static void a_parked_procedure_goes_on_when_its_error_ends(void **state)
{
    (void)state;
    ended_parked = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++) {
        if (rq__proc_kind_of(changes[i].kind)->transient) continue;
        one_revived(&changes[i], false);
        one_revived(&changes[i], true);
    }
    assert_true(ended_parked > 10);
}

static unsigned answers;

static void answered(rq_ddl *d)
{
    answers++;
    assert_int_equal(d->rc, d->kind == RQ_DDL_DISABLE_TABLE ? RQ_OK : RQ_E_SERVER_STOPPED);
}

/* Lack of space is retried every minute; the procedure is listed, can be bypassed, and a stop does
 * not wait for it. */
static void missing_space_is_waited_for(void **state)
{
    (void)state;
    for (int variant = 0; variant < 3; variant++) {
        snprintf(place, sizeof place, "no space, variant %d", variant);
        world *w = setup(&changes[4]);
        fault f = {RQ_DDL_DISABLE_TABLE, 2, RQ_E_NO_SPACE, 0, NULL};
        set_fault(w, &f);
        rq_arena a;
        rq_arena_init(&a);
        rq_ddl d = {
            .kind = RQ_DDL_DISABLE_TABLE,
            .ns = RQ_SLICE_LIT("n"),
            .qualifier = RQ_SLICE_LIT("t"),
            .submitted = answered, /* called when the procedure's checks have passed */
        };
        rq_catalog_submit(w->catalog, &d);
        rq_sim_advance(w->sim, UINT64_C(1800) * 1000000000);
        rq_procedure p = only_unfinished(w, &a);
        assert_false(p.parked);
        assert_true(p.rc == RQ_E_NO_SPACE);
        assert_string_equal(p.message, "injected");
        assert_true(f.hits > 35 && f.hits < 45); /* in the end one retry a minute */
        others_go_on(w);
        if (variant == 0) f.rc = RQ_OK; /* space is available again */
        if (variant == 1) {
            /* Past its commit a procedure cannot be rolled back (abort); bypass ends it as it is. */
            assert_false(rq_catalog_procedure_abort(w->catalog, p.id, true));
            assert_true(rq_catalog_procedure_bypass(w->catalog, p.id));
        }
        if (variant < 2) {
            settle(w);
        } else {
            rq_ddl behind = {
                .kind = RQ_DDL_ENABLE_TABLE,
                .ns = RQ_SLICE_LIT("n"),
                .qualifier = RQ_SLICE_LIT("t"),
                .submitted = answered,
            };
            rq_catalog_submit(w->catalog, &behind);
            rq_sim_run(w->sim);
            answers = 0;
            rq_catalog_stop(w->catalog);
            rq_sim_run(w->sim);
            assert_int_equal(answers, 1);
            (void)world_close(w, true);
            MUST(world_open(w));
            settle(w);
        }
        f.rc = RQ_OK;
        rq_arena_clear(&a);
        table_is_given_back(w);
        world_clear(w);
    }
}

/* --- a region that is reopened ---------------------------------------------------------------- */

/* *ret: the failed region, with a reference; the catalog replaces it. */
static void fail_region(world *w, rq_region **ret)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    const rq_error why = {.code = RQ_E_IO, .message = "the test says so"};
    rq_epoch_pin(w->env->epoch, &m);
    MUST(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("n:t"), RQ_SLICE_LIT("a"), &r, &w->why));
    *ret = rq_region_ref(r->region);
    rq_epoch_unpin(w->env->epoch, &m);
    rq__region_fail(*ret, &why);
}

static bool is_replaced(world *w, const rq_region *failed)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    MUST(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("n:t"), RQ_SLICE_LIT("a"), &r, &w->why));
    bool replaced = r->region != NULL && r->region != failed;
    rq_epoch_unpin(w->env->epoch, &m);
    return replaced;
}

/* The procedure holds no lock between two attempts: its table can be altered and dropped. */
static void a_region_that_does_not_open_blocks_nothing(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "reopen");
    world *w = setup(&changes[4]);
    fault f = {RQ_DDL_REOPEN_REGION, 0, RQ_E_IO, 0, NULL};
    rq_region *failed;
    set_fault(w, &f);
    fail_region(w, &failed);
    rq_region_unref(failed);
    rq_sim_advance(w->sim, UINT64_C(60) * 1000000000);
    assert_true(f.hits > 5);
    others_go_on(w);
    MUST(modify_family(w));
    table_is_given_back(w);
    rq_sim_advance(w->sim, UINT64_C(3600) * 1000000000);
    assert_true(f.hits < 80); /* one attempt a minute */
    f.rc = RQ_OK;
    rq_sim_advance(w->sim, UINT64_C(60) * 1000000000);
    settle(w);
    expect_sound(w);
    world_end(w);
}

/* No other procedure would open it. HBASE: hbase.assignment.maximum.attempts has no bound by
 * default. */
static void a_region_is_opened_again_however_long_it_takes(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "reopen after hours");
    world *w = setup(&changes[4]);
    fault f = {RQ_DDL_REOPEN_REGION, 0, RQ_E_IO, 0, NULL};
    rq_region *failed;
    MUST(world_put(w, "n:t", "a", "f"));
    set_fault(w, &f);
    fail_region(w, &failed);
    rq_sim_advance(w->sim, UINT64_C(3) * 3600 * 1000000000);
    assert_false(is_replaced(w, failed));
    f.rc = RQ_OK;
    rq_sim_advance(w->sim, UINT64_C(60) * 1000000000);
    assert_true(is_replaced(w, failed));
    rq_region_unref(failed);
    settle(w);
    MUST(world_get(w, "n:t", "a", "f"));
    expect_sound(w);
    world_end(w);
}

int main(void)
{
    seed = unit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_that_fails_for_good_is_undone_or_parked),
        cmocka_unit_test(a_resumed_procedure_is_undone_or_parked),
        cmocka_unit_test(transient_errors_are_retried_for_a_while),
        cmocka_unit_test(a_parked_procedure_goes_on_when_its_error_ends),
        cmocka_unit_test(missing_space_is_waited_for),
        cmocka_unit_test(a_region_that_does_not_open_blocks_nothing),
        cmocka_unit_test(a_region_is_opened_again_however_long_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
