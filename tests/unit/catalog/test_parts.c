/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of all regions of a table whose rows are written in parts (ddl_parts.c), with one row in each part. A part
 * fails, for a time or for good, whether or not it was written, before, in and after the commit, or in the undo. The
 * procedure ends only when all rows are written, or none is left; otherwise it stays parked, whatever an operator does.
 * After each restart the table has neither holes nor overlaps. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "catalog/ddl_priv.h"
#include "catalog/fsck.h"
#include "catalog/proc_priv.h"

static char place[200]; /* for messages */

#define MUST(expr)                                                                                 \
    do {                                                                                           \
        rq_err must_rc = (expr);                                                                   \
        if (must_rc != RQ_OK)                                                                      \
            fail_msg("%s: %s: %s %s", place, #expr, rq_err_name(must_rc), w->why.message);         \
    } while (0)

#define HOLDS(expr)                                                                                \
    do {                                                                                           \
        if (!(expr)) fail_msg("%s: line %d: %s", place, __LINE__, #expr);                          \
    } while (0)

/* --- parts that fail -------------------------------------------------------------------------- */

typedef struct fault {
    rq_err rc;       /* RQ_OK: no error */
    size_t item;     /* which the part contains */
    unsigned times;  /* how often it fails */
    bool is_written; /* nevertheless */
    bool cuts;       /* the power instead */
    bool bypasses;   /* an operator bypasses the procedure, once */
    unsigned hits;
    unsigned parts; /* that were written */
} fault;

/* In the commit step of the procedure that is tested, and in its undo. */
typedef struct faults {
    world *w;
    rq_ddl_kind kind;
    fault step, undo;
} faults;

#define ALWAYS UINT32_MAX

static rq_err write_part(void *ctx, const rq__proc *p, const rq__batch *b, rq_error *why)
{
    faults *all = ctx;
    bool undoes = p->ending == RQ__ENDING_UNDO;
    fault *f = undoes ? &all->undo : &all->step;
    bool meant = p->ops->kind == all->kind && (undoes || p->step == p->ops->commit);
    bool here = meant && p->written == f->item;
    bool fails = here && f->rc != RQ_OK && f->hits < f->times;
    if (here && f->cuts) rq_sim_cut_now(all->w->sim);
    if (here && f->bypasses) HOLDS(rq_catalog_procedure_bypass(p->catalog, p->id));
    if (here) f->bypasses = false;
    if (!fails || f->is_written) {
        rq_err rc = rq__meta_commit(p->catalog, b, why);
        if (rc != RQ_OK) return rc;
        if (meant) f->parts++;
    }
    if (!fails) return RQ_OK;
    f->hits++;
    return rq_fail(why, f->rc, "injected");
}

/* --- the changes ------------------------------------------------------------------------------ */

#define REGIONS 3

static rq_err disable(world *w)
{
    return world_table(w, RQ_DDL_DISABLE_TABLE, "t");
}

static rq_err drop(world *w)
{
    return world_table(w, RQ_DDL_DELETE_TABLE, "t");
}

static rq_err vacate(world *w)
{
    rq_err rc = disable(w);
    return rc == RQ_OK ? drop(w) : rc;
}

static rq_err create(world *w)
{
    return world_create(w, "t", "f", "c m");
}

static rq_err clone_s(world *w)
{
    return world_clone(w, "s", "t");
}

static rq_err truncate_t(world *w)
{
    return world_truncate(w, "t", true);
}

static rq_err restore(world *w)
{
    return world_restore(w, "s", "t");
}

typedef struct change {
    const char *name;
    rq_ddl_kind kind;
    rq_err (*before)(world *w);
    rq_err (*run)(world *w);
    size_t items, commit;
    bool is_new; /* the table does not exist before */
} change;

static const change changes[] = {
    {"create", RQ_DDL_CREATE_TABLE, vacate, create, REGIONS + 1, REGIONS, true},
    {"clone", RQ_DDL_CLONE_SNAPSHOT, vacate, clone_s, REGIONS + 1, REGIONS, true},
    {"drop", RQ_DDL_DELETE_TABLE, disable, drop, 1 + REGIONS, 0, false},
    {"truncate", RQ_DDL_TRUNCATE_TABLE, disable, truncate_t, REGIONS + 1 + REGIONS, REGIONS - 1,
     false},
    {"restore", RQ_DDL_RESTORE_SNAPSHOT, disable, restore, REGIONS + REGIONS, REGIONS - 1, false},
};

static uint64_t seed;

static void set_faults(faults *f)
{
    f->w->catalog->procedures.write_part = write_part;
    f->w->catalog->procedures.write_part_ctx = f;
}

/* Table t has the rows a and z, and so has the snapshot s. */
static world *setup(const change *ch, faults *f)
{
    static world shared;
    world *w = &shared;
    world_init(w, seed++, NULL);
    w->part_bytes = 1;
    w->env->log->level = RQ_LOG_ERROR + 1;
    MUST(world_open(w));
    MUST(create(w));
    MUST(world_put(w, "t", "a", "f"));
    MUST(world_put(w, "t", "z", "f"));
    MUST(world_snapshot(w, "s", "t", true));
    MUST(ch->before(w));
    *f = (faults){.w = w, .kind = ch->kind};
    set_faults(f);
    return w;
}

/* --- expectations ----------------------------------------------------------------------------- */

static void note_problem(void *ctx, rq_finding level, const char *where, const char *text)
{
    (void)ctx;
    if (level == RQ_FINDING_PROBLEM) fail_msg("%s: fsck: %s: %s", place, where, text);
}

static void check_folder(world *w)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {note_problem, NULL, NULL}};
    rq_err rc = rq_fsck(w->env->vfs, &o, &totals, &w->why);
    if (rc != RQ_OK) fail_msg("%s: fsck: %s", place, w->why.message);
}

/* Whether the table is in the view; if so, its regions cover each row once. */
static bool is_there(world *w)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, RQ_SLICE_LIT("t"));
    bool there = t != NULL;
    rq_slice at = {NULL, 0};
    if (there) HOLDS(t->region_count == REGIONS);
    for (size_t i = 0; there && i < t->region_count; i++) {
        const rq_region_info *r = rq_catalog_table_region(t, i)->info;
        HOLDS(rq_slice_eq(r->start_key, at) && (i == 0 || at.len > 0));
        at = r->end_key;
    }
    HOLDS(at.len == 0);
    rq_epoch_unpin(w->env->epoch, &m);
    return there;
}

static void restart(world *w, faults *f, bool clean)
{
    (void)world_close(w, clean);
    check_folder(w);
    MUST(world_open(w));
    set_faults(f);
    (void)is_there(w);
}

/* The unfinished procedure, which must be parked. False: there is none. */
static bool find_parked(world *w, rq_procedure *ret)
{
    static rq_arena a;
    rq_procedure *list;
    size_t count;
    rq_arena_clear(&a);
    MUST(rq_catalog_unfinished_procedures(w->catalog, &a, &list, &count));
    HOLDS(count <= 1);
    if (count == 1) *ret = list[0];
    if (count == 1) HOLDS(list[0].parked);
    return count == 1;
}

static bool is_parked(world *w)
{
    rq_procedure p;
    rq_sim_advance(w->sim, 1000000000);
    return find_parked(w, &p);
}

/* More than one attempt takes, also of an undo, which waits half a minute. */
static void bypass(world *w)
{
    rq_procedure p;
    HOLDS(find_parked(w, &p));
    HOLDS(rq_catalog_procedure_bypass(w->catalog, p.id));
    (void)rq_catalog_procedure_bypass(w->catalog, p.id);
    rq_sim_advance(w->sim, UINT64_C(120) * 1000000000);
}

/* All is well, now and after restarts, and the table can be used. */
static void check_end(world *w, faults *f)
{
    f->step.rc = f->undo.rc = RQ_OK;
    if (!world_settle(w)) fail_msg("%s: it never settles", place);
    bool there = is_there(w);
    for (int clean = 0; clean < 2; clean++) {
        char *wrong = world_check(w);
        if (wrong[0] != '\0') fail_msg("%s: %s", place, wrong);
        free(wrong);
        restart(w, f, clean == 1);
        HOLDS(world_settle(w));
        HOLDS(is_there(w) == there);
    }
    rq_err rc = there ? world_table(w, RQ_DDL_ENABLE_TABLE, "t") : create(w);
    if (rc != RQ_OK && rc != RQ_E_TABLE_NOT_DISABLED) fail_msg("%s: %s", place, w->why.message);
    MUST(world_put(w, "t", "n", "f"));
    MUST(vacate(w));
    MUST(world_close(w, true));
    check_folder(w);
    world_clear(w);
}

/* --- the rules -------------------------------------------------------------------------------- */

/* Whether the change is undone when a part fails for good with `rc`: if its commit is certainly not written. */
static bool is_undone(const change *ch, const fault *f)
{
    return f->item < ch->commit || (f->item == ch->commit && f->rc == RQ_E_DO_NOT_RETRY);
}

/* Whether an operator may end the procedure although the part fails again: not between the commit and the last row. */
static bool may_be_ended(const change *ch, const fault *f)
{
    if (f->is_written) return f->item + 1 == ch->items;
    return f->item <= ch->commit;
}

static void one_that_fails(const change *ch, size_t item, rq_err rc, bool is_written, int variant)
{
    faults f;
    rq_procedure p;
    snprintf(place, sizeof place, "%s, part %zu, %s%s, variant %d", ch->name, item, rq_err_name(rc),
             is_written ? " but written" : "", variant);
    world *w = setup(ch, &f);
    f.step = (fault){.rc = rc, .item = item, .times = ALWAYS, .is_written = is_written};
    HOLDS(ch->run(w) == rc);
    HOLDS(is_parked(w) == !is_undone(ch, &f.step));
    if (find_parked(w, &p)) {
        if (variant == 1) restart(w, &f, item % 2 == 0);
        for (int i = 0; i < 2 && is_parked(w); i++)
            bypass(w);
        bool ended = !is_parked(w);
        HOLDS(ended == may_be_ended(ch, &f.step));
        restart(w, &f, item % 2 == 1);
        HOLDS(is_parked(w) == !ended);
        f.step.rc = RQ_OK;
        if (!ended) bypass(w);
    } else {
        HOLDS(is_there(w) != ch->is_new);
    }
    check_end(w, &f);
}

static void a_part_that_fails_for_good_leaves_no_rows_to_the_next_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++)
        for (size_t item = 0; item < changes[i].items; item++)
            for (int variant = 0; variant < 2; variant++) {
                one_that_fails(&changes[i], item, RQ_E_DO_NOT_RETRY, false, variant);
                one_that_fails(&changes[i], item, RQ_E_IO, false, variant);
                one_that_fails(&changes[i], item, RQ_E_IO, true, variant);
            }
}

/* The parts before one that fails are not written again. */
static void a_part_that_fails_for_a_time_is_repeated_alone(void **state)
{
    (void)state;
    static const rq_err errors[] = {RQ_E_NO_SPACE, RQ_E_NO_MEMORY, RQ_E_REGION_TOO_BUSY, RQ_E_IO};
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++)
        for (size_t item = 0; item < changes[i].items; item++)
            for (size_t e = 0; e < RQ_ARRAY_LEN(errors); e++) {
                faults f;
                const change *ch = &changes[i];
                snprintf(place, sizeof place, "%s, part %zu, %s for a time", ch->name, item,
                         rq_err_name(errors[e]));
                world *w = setup(ch, &f);
                f.step = (fault){.rc = errors[e], .item = item, .times = 5};
                MUST(ch->run(w));
                HOLDS(f.step.hits == 5);
                HOLDS(f.step.parts == ch->items);
                check_end(w, &f);
            }
}

/* An operator bypasses the procedure during a part; then the part fails because hbase:meta is busy, or does not. Before
 * the commit is tried the change is undone, later it is completed. */
static void one_bypassed(const change *ch, size_t item, rq_err rc)
{
    faults f;
    snprintf(place, sizeof place, "%s, bypassed in part %zu, %s", ch->name, item, rq_err_name(rc));
    world *w = setup(ch, &f);
    f.step = (fault){.rc = rc, .item = item, .times = 3, .bypasses = true};
    bool undone = rc != RQ_OK && (item < ch->commit || item == 0);
    HOLDS(ch->run(w) == (undone ? RQ_E_DO_NOT_RETRY : RQ_OK));
    HOLDS(!is_parked(w));
    HOLDS(is_there(w) == (ch->run == drop ? undone : !ch->is_new || !undone));
    check_end(w, &f);
}

static void a_bypass_between_parts_undoes_or_completes(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++)
        for (size_t item = 0; item < changes[i].items; item++) {
            one_bypassed(&changes[i], item, RQ_OK);
            one_bypassed(&changes[i], item, RQ_E_REGION_TOO_BUSY);
        }
}

/* --- undo ------------------------------------------------------------------------------------- */

static bool has_undo(const change *ch)
{
    return ch->run != drop;
}

static size_t undo_items(const change *ch)
{
    return REGIONS + (ch->is_new ? 1 : 0);
}

/* The last part before the commit fails, so that the undo has something to do; then part `item` of the undo fails. */
static world *fail_in_undo(const change *ch, faults *f, size_t item, rq_err rc, unsigned times)
{
    snprintf(place, sizeof place, "undo of %s, part %zu, %s", ch->name, item, rq_err_name(rc));
    world *w = setup(ch, f);
    f->step = (fault){.rc = RQ_E_DO_NOT_RETRY, .item = ch->commit, .times = ALWAYS};
    f->undo = (fault){.rc = rc, .item = item, .times = times};
    HOLDS(ch->run(w) == RQ_E_DO_NOT_RETRY);
    assert_string_equal(w->why.message, "injected");
    return w;
}

static void an_undo_waits_for_a_time(void **state)
{
    (void)state;
    static const rq_err errors[] = {RQ_E_NO_SPACE, RQ_E_NO_MEMORY, RQ_E_REGION_TOO_BUSY, RQ_E_IO};
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++)
        for (size_t item = 0; has_undo(&changes[i]) && item < undo_items(&changes[i]); item++) {
            faults f;
            world *w = fail_in_undo(&changes[i], &f, item, errors[item % RQ_ARRAY_LEN(errors)], 5);
            HOLDS(!is_parked(w));
            HOLDS(f.undo.hits == 5);
            HOLDS(f.undo.parts == undo_items(&changes[i]));
            HOLDS(is_there(w) != changes[i].is_new);
            check_end(w, &f);
        }
}

/* A temporary error is repeated every ten minutes, another one when an operator asks for it. */
static void one_parked_in_undo(const change *ch, size_t item, rq_err rc, bool restarted)
{
    faults f;
    rq_procedure p;
    world *w = fail_in_undo(ch, &f, item, rc, ALWAYS);
    HOLDS(is_parked(w));
    HOLDS(f.undo.hits == (rc == RQ_E_DO_NOT_RETRY ? 1 : RQ__REPEATS_MAX + 1));
    HOLDS(ch->run(w) == RQ_E_DO_NOT_RETRY); /* refused, not kept waiting */
    HOLDS(strstr(w->why.message, "is parked in step") != NULL);
    for (int i = 0; i < 2; i++) {
        unsigned hits = f.undo.hits;
        bypass(w);
        HOLDS(is_parked(w));
        HOLDS(f.undo.hits > hits);
    }
    if (restarted) restart(w, &f, item % 2 == 0);
    HOLDS(find_parked(w, &p));
    HOLDS(is_there(w) != ch->is_new);
    unsigned hits = f.undo.hits;
    rq_sim_advance(w->sim, UINT64_C(1300) * 1000000000);
    HOLDS((f.undo.hits > hits) == (rc != RQ_E_DO_NOT_RETRY));
    HOLDS(is_parked(w));
    f.step.rc = f.undo.rc = RQ_OK; /* a procedure that went on instead would succeed */
    if (rc == RQ_E_DO_NOT_RETRY)
        bypass(w);
    else
        rq_sim_advance(w->sim, UINT64_C(1300) * 1000000000);
    HOLDS(!is_parked(w));
    rq_arena a = {0};
    HOLDS(rq_catalog_procedure(w->catalog, p.id, &a, &p) && p.finished && p.rc != RQ_OK);
    if (!restarted) HOLDS(strcmp(p.message, "injected") == 0);
    rq_arena_clear(&a);
    HOLDS(is_there(w) != ch->is_new);
    check_end(w, &f);
}

static void an_undo_that_fails_for_good_is_parked(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++)
        for (size_t item = 0; has_undo(&changes[i]) && item < undo_items(&changes[i]); item++)
            for (int restarted = 0; restarted < 2; restarted++) {
                one_parked_in_undo(&changes[i], item, RQ_E_IO, restarted == 1);
                one_parked_in_undo(&changes[i], item, RQ_E_DO_NOT_RETRY, restarted == 1);
            }
}

/* --- power cuts -------------------------------------------------------------------------------- */

static void one_cut(const change *ch, size_t item, bool in_undo)
{
    faults f;
    snprintf(place, sizeof place, "%s, cut in part %zu%s", ch->name, item,
             in_undo ? " of the undo" : "");
    world *w = setup(ch, &f);
    f.step = (fault){.item = item, .cuts = !in_undo};
    f.undo = (fault){.item = item, .cuts = true};
    if (in_undo) {
        f.step = (fault){.rc = RQ_E_DO_NOT_RETRY, .item = ch->commit, .times = ALWAYS};
        f.step.bypasses = item % 2 == 0;
    }
    HOLDS(ch->run(w) != RQ_OK);
    (void)world_close(w, false);
    rq_sim_run(w->sim);
    rq_sim_restart(w->sim);
    f.step = f.undo = (fault){0};
    check_folder(w);
    MUST(world_open(w));
    (void)is_there(w);
    check_end(w, &f);
}

static void a_cut_in_any_part_leaves_whole_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(changes); i++) {
        for (size_t item = 0; item < changes[i].items; item++)
            one_cut(&changes[i], item, false);
        for (size_t item = 0; has_undo(&changes[i]) && item < undo_items(&changes[i]); item++)
            one_cut(&changes[i], item, true);
    }
}

/* --- folders ----------------------------------------------------------------------------------- */

static unsigned syncs;
static rq_err (*real_sync)(rq_file *f, rq_error *why);
static rq_err (*real_sync_dir)(rq_vfs *v, const char *dir, rq_error *why);

static rq_err counted_sync(rq_file *f, rq_error *why)
{
    syncs++;
    return real_sync(f, why);
}

static rq_err counted_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    syncs++;
    return real_sync_dir(v, dir, why);
}

static void count_syncs(rq_vfs *v)
{
    real_sync = v->sync;
    real_sync_dir = v->sync_dir;
    v->sync = counted_sync;
    v->sync_dir = counted_sync_dir;
}

static rq_err cut_before_opening(void *ctx, const rq__proc *p, rq_error *why)
{
    if (p->ops->kind != RQ_DDL_CREATE_TABLE || p->step != 1) return RQ_OK;
    rq_sim_cut_now(ctx);
    return rq_fail(why, RQ_E_IO, "the power is cut");
}

static const char many[] =
    "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 "
    "26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50";

/* A create that goes on after a restart syncs its regions together, as the first attempt does. */
static void folders_are_synced_together_after_a_restart(void **state)
{
    (void)state;
    world one, *w = &one;
    snprintf(place, sizeof place, "syncs");
    world_init(w, seed++, NULL);
    count_syncs(w->env->vfs);
    MUST(world_open(w));
    syncs = 0;
    MUST(world_create(w, "t", "f", many));
    unsigned first = syncs;
    w->catalog->procedures.before_step = cut_before_opening;
    w->catalog->procedures.before_step_ctx = w->sim;
    HOLDS(world_create(w, "u", "f", many) != RQ_OK);
    (void)world_close(w, false);
    rq_sim_run(w->sim);
    rq_sim_restart(w->sim);
    MUST(world_open(w));
    syncs = 0;
    HOLDS(world_settle(w));
    MUST(world_put(w, "u", "23", "f"));
    if (syncs > first + 20) fail_msg("%u syncs after the restart, %u before", syncs, first);
    (void)world_close(w, false);
    rq_sim_restart(w->sim);
    MUST(world_open(w));
    MUST(world_get(w, "u", "23", "f"));
    MUST(world_close(w, true));
    check_folder(w);
    world_clear(w);
}

int main(void)
{
    seed = unit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_fails_for_good_leaves_no_rows_to_the_next_start),
        cmocka_unit_test(a_part_that_fails_for_a_time_is_repeated_alone),
        cmocka_unit_test(a_bypass_between_parts_undoes_or_completes),
        cmocka_unit_test(an_undo_waits_for_a_time),
        cmocka_unit_test(an_undo_that_fails_for_good_is_parked),
        cmocka_unit_test(a_cut_in_any_part_leaves_whole_tables),
        cmocka_unit_test(folders_are_synced_together_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
