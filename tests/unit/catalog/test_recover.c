/* SPDX-License-Identifier: Apache-2.0 */
/* `recover`, `fsck --repair` and a region without a row in hbase:meta whose key range other regions
 * cover: its files are set aside, unless the links of a clone or a snapshot need them. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "catalog/fsck.h"
#include "catalog/meta.h"
#include "catalog/recover.h"

typedef struct reports {
    unsigned aside, notes;
} reports;

static void count_report(void *ctx, const char *what, const char *place, const char *text)
{
    reports *t = ctx;
    (void)place, (void)text;
    t->aside += strcmp(what, "set aside") == 0;
    t->notes += strcmp(what, "note") == 0;
}

static void forget(world *w, const char *name)
{
    rq_arena a = {0};
    rq__batch b;
    rq_region *meta;
    OK(rq__meta_ref(w->catalog, &meta, &w->why));
    rq__batch_init(&b, &a, rq__catalog_now_ms(w->catalog));
    OK(rq__batch_delete_family(&b, rq_slice_cstr(name), "info"));
    OK(rq__batch_commit(&b, meta, true, &w->why));
    rq_region_unref(meta);
    rq_arena_clear(&a);
}

/* Makes a table with a split region, compacts it and removes the parent's row from hbase:meta; `unreadable`: removes
 * the parent's .regioninfo, too. */
static void begin_with(world *w, void (*uses)(world *w), bool unreadable)
{
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    w->trusted = true;
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "z", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    char *parent = world_region_name(w, "t", "a");
    if (uses != NULL) uses(w);
    bool before;
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_CATALOG_JANITOR, false, &before, &w->why));
    OK(world_split(w, "t", "a", "m"));
    OK(world_compact(w, "t"));
    forget(w, parent);
    if (unreadable) {
        char path[128];
        snprintf(path, sizeof path, "data/default/t/%.32s/.regioninfo", strrchr(parent, '.') - 32);
        OK(rq_vfs_remove(w->env->vfs, path, &w->why));
    }
    free(parent);
    OK(world_close(w, true));
}

static void begin(world *w, void (*uses)(world *w))
{
    begin_with(w, uses, false);
}

static reports recover(world *w)
{
    reports t = {0};
    const rq_recover_options o = {.act = true, .report = count_report, .ctx = &t};
    rq_recover_result r;
    OK(rq_recover(w->env, &o, &r, &w->why));
    return t;
}

static void note(void *ctx, rq_finding level, const char *place, const char *text)
{
    (void)ctx, (void)level, (void)place, (void)text;
}

static uint64_t repair(world *w)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.repair = true, .findings = {note, NULL, NULL}};
    OK(rq_fsck(w->env->vfs, &o, &totals, &w->why));
    return totals.moved;
}

static void end(world *w)
{
    OK(world_get(w, "t", "a", "f"));
    OK(world_get(w, "t", "z", "f"));
    world_end(w);
}

static void an_unneeded_region_is_set_aside(void **state)
{
    (void)state;
    world own, *w = &own;
    begin(w, NULL);
    assert_int_equal(recover(w).aside, 1);
    reports again = recover(w);
    assert_int_equal(again.aside + again.notes, 0);
    OK(world_open(w));
    end(w);
}

static void make_clone(world *w)
{
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone(w, "s", "c"));
    OK(world_delete_snapshot(w, "s"));
}

static void a_region_that_a_clone_links_to_stays(void **state)
{
    (void)state;
    world own, *w = &own;
    begin(w, make_clone);
    reports t = recover(w);
    assert_int_equal(t.aside, 0);
    assert_int_equal(t.notes, 1);
    OK(world_open(w));
    OK(world_get(w, "c", "a", "f"));
    OK(world_get(w, "c", "z", "f"));
    end(w);
}

static void take_snapshot(world *w)
{
    OK(world_snapshot(w, "s", "t", true));
}

static void a_region_of_a_snapshot_stays(void **state)
{
    (void)state;
    world own, *w = &own;
    begin(w, take_snapshot);
    assert_int_equal(recover(w).aside, 0);
    OK(world_open(w));
    OK(world_clone(w, "s", "c"));
    OK(world_get(w, "c", "a", "f"));
    end(w);
}

static void a_region_that_cannot_be_read_stays_likewise(void **state)
{
    (void)state;
    world own, *w = &own;
    begin_with(w, NULL, true);
    assert_int_equal(recover(w).aside, 1);
    OK(world_open(w));
    end(w);
    begin_with(w, make_clone, true);
    assert_int_equal(recover(w).aside, 0);
    OK(world_open(w));
    OK(world_get(w, "c", "a", "f"));
    end(w);
}

/* The same folders, with `fsck --repair`. */
static void a_repair_leaves_what_clones_and_snapshots_need(void **state)
{
    (void)state;
    world own, *w = &own;
    begin(w, NULL);
    assert_true(repair(w) > 0);
    OK(world_open(w));
    end(w);
    begin(w, make_clone);
    assert_int_equal(repair(w), 0);
    OK(world_open(w));
    OK(world_get(w, "c", "a", "f"));
    end(w);
    begin(w, take_snapshot);
    assert_int_equal(repair(w), 0);
    OK(world_open(w));
    OK(world_clone(w, "s", "c"));
    OK(world_get(w, "c", "a", "f"));
    end(w);
}

/* Each region's row has more than 100 kB, so the rows are written in two parts. */
enum { KEYS = 26, KEY_LEN = 30000 };

static void make_long_keys(rq_arena *a, rq_slice keys[KEYS])
{
    for (size_t i = 0; i < KEYS; i++) {
        uint8_t *key = rq_arena_alloc(a, KEY_LEN);
        assert_non_null(key);
        memset(key, 'a' + (int)i, KEY_LEN);
        keys[i] = rq_slice_of(key, KEY_LEN);
    }
}

/* Ends the recovery at one call after the other, with a power cut; the next one goes on. Returns the number of cuts. */
static unsigned recover_with_cuts(world *w)
{
    reports t = {0};
    const rq_recover_options o = {.act = true, .report = count_report, .ctx = &t};
    rq_recover_result r;
    unsigned cuts = 0;
    for (uint64_t calls = 40;; calls += calls / 8) {
        rq_sim_cut_at(w->sim, rq_sim_calls(w->sim) + calls);
        rq_err rc = rq_recover(w->env, &o, &r, &w->why);
        if (!rq_sim_is_cut(w->sim)) {
            rq_sim_cut_at(w->sim, 0);
            OK(rc);
            return cuts;
        }
        rq_sim_restart(w->sim);
        w->env = rq_sim_env(w->sim);
        cuts++;
    }
}

/* The rows of all regions but the last are lost. */
static void begin_without_rows(world *w)
{
    rq_arena a = {0};
    rq_slice keys[KEYS];
    char *names[KEYS];
    make_long_keys(&a, keys);
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    OK(world_open(w));
    OK(world_create_at(w, "t", "f", keys, KEYS));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "z", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    for (size_t i = 0; i < KEYS; i++) {
        const char row[] = {(char)('a' + i), '\0'};
        names[i] = world_region_name(w, "t", row);
    }
    for (size_t i = 0; i < KEYS; i++) {
        forget(w, names[i]);
        free(names[i]);
    }
    OK(world_close(w, true));
    rq_arena_clear(&a);
}

static void check_rows(world *w)
{
    rq_epoch_member m = {0};
    OK(world_open(w));
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr("t"));
    assert_non_null(t);
    assert_int_equal(t->region_count, KEYS + 1);
    rq_epoch_unpin(w->env->epoch, &m);
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
    end(w);
}

static void rows_are_written_in_parts(void **state)
{
    (void)state;
    world own, *w = &own;
    begin_without_rows(w);
    (void)recover(w);
    check_rows(w);
}

static void a_recovery_that_is_cut_goes_on(void **state)
{
    (void)state;
    world own, *w = &own;
    begin_without_rows(w);
    assert_true(recover_with_cuts(w) > 10);
    reports again = recover(w);
    assert_int_equal(again.aside + again.notes, 0);
    check_rows(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unneeded_region_is_set_aside),
        cmocka_unit_test(a_region_that_a_clone_links_to_stays),
        cmocka_unit_test(a_region_of_a_snapshot_stays),
        cmocka_unit_test(a_region_that_cannot_be_read_stays_likewise),
        cmocka_unit_test(a_repair_leaves_what_clones_and_snapshots_need),
        cmocka_unit_test(rows_are_written_in_parts),
        cmocka_unit_test(a_recovery_that_is_cut_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
