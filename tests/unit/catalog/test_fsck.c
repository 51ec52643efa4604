/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of fsck: none in a healthy folder, however the server ended; for each missing file
 * or row, a problem with its place. tests/e2e/fsck.py tests flipped bits. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "catalog/fsck.h"
#include "region/engine.h"
#include "store/mob.h"

typedef struct findings {
    size_t problems, notes;
    char first[1200]; /* the first problem */
    char last_note[600];
    const char *place; /* if set, `at_place` counts the problems at this place */
    size_t at_place;
    const char *part; /* if set, these count the findings whose texts contain it */
    size_t problems_with, notes_with;
} findings;

static void note(void *ctx, rq_finding level, const char *place, const char *text)
{
    findings *t = ctx;
    if (t->part != NULL && strstr(text, t->part) != NULL)
        *(level == RQ_FINDING_PROBLEM ? &t->problems_with : &t->notes_with) += 1;
    if (level == RQ_FINDING_PROBLEM && t->place != NULL && strcmp(place, t->place) == 0)
        t->at_place++;
    if (level != RQ_FINDING_PROBLEM) {
        t->notes++;
        snprintf(t->last_note, sizeof t->last_note, "%s: %s", place, text);
    } else if (t->problems++ == 0) {
        snprintf(t->first, sizeof t->first, "%s: %s", place, text);
    }
}

/* Runs fsck and checks that it writes nothing. */
static findings look(world *w, rq_fsck_totals *totals)
{
    findings t = {0};
    rq_error why = {0};
    rq_fsck_options o = {.deep = true, .findings = {note, NULL, &t}};
    char *before = rq_sim_tree(w->sim);
    if (rq_fsck(w->env->vfs, &o, totals, &why) != RQ_OK) fail_msg("%s", why.message);
    char *after = rq_sim_tree(w->sim);
    assert_string_equal(before, after);
    free(before);
    free(after);
    return t;
}

static void healthy(world *w)
{
    rq_fsck_totals totals;
    findings t = look(w, &totals);
    if (t.problems > 0) fail_msg("%s", t.first);
    assert_true(totals.tables >= 3);
}

static void problem(world *w, const char *part)
{
    rq_fsck_totals totals;
    findings t = look(w, &totals);
    assert_true(totals.problems == t.problems && t.problems > 0);
    if (strstr(t.first, part) == NULL) fail_msg("\"%s\" says nothing of %s", t.first, part);
}

/* The first file of any region of table t (data/default/t) whose name has that length. */
static char *find_file(world *w, rq_arena *a, size_t name_len)
{
    rq_dir_entry *regions, *files;
    size_t count, n;
    assert_int_equal(rq_vfs_list(w->env->vfs, "data/default/t", a, &regions, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        char *dir = rq_arena_printf(a, "data/default/t/%s/f", regions[i].name);
        if (regions[i].name[0] == '.') continue;
        if (rq_vfs_list(w->env->vfs, dir, a, &files, &n, NULL) != RQ_OK) continue;
        for (size_t f = 0; f < n; f++)
            if (strlen(files[f].name) == name_len)
                return rq_arena_printf(a, "%s/%s", dir, files[f].name);
    }
    fail_msg("no such file");
    return NULL;
}

/* Without compactions references to files remain. */
static void open_again(world *w)
{
    assert_int_equal(world_open(w), RQ_OK);
    rq_engine_compactions_enable(w->engine, false);
}

static void open_filled(world *w, const char *families)
{
    world_init(w, unit_seed(), NULL);
    open_again(w);
    assert_int_equal(world_create(w, "t", families, "m"), RQ_OK);
    assert_int_equal(world_put(w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_put(w, "t", "d", "f"), RQ_OK);
    assert_int_equal(world_put(w, "t", "x", "f"), RQ_OK);
}

static void a_healthy_folder_has_no_problems_however_it_was_left(void **state)
{
    (void)state;
    world w;
    open_filled(&w, "f");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(world_close(&w, round == 1), RQ_OK);
        healthy(&w);
        open_again(&w);
    }
    assert_int_equal(world_close(&w, true), RQ_OK);
    open_again(&w);
    assert_int_equal(world_split(&w, "t", "a", "c"), RQ_OK);
    assert_int_equal(world_close(&w, false), RQ_OK);
    healthy(&w); /* hbase:meta has the daughters' rows only in the log */
    open_again(&w);
    assert_int_equal(world_close(&w, true), RQ_OK);
    healthy(&w);
    world_clear(&w);
}

static void missing_files_are_named(void **state)
{
    (void)state;
    world w;
    rq_arena a = {0};
    open_filled(&w, "f");
    assert_int_equal(world_close(&w, true), RQ_OK);
    open_again(&w);
    assert_int_equal(world_split(&w, "t", "a", "c"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    healthy(&w);
    char *reference = find_file(&w, &a, 65);
    char *parents = rq_arena_printf(&a, "data/default/t/%s/f/%.32s", strrchr(reference, '.') + 1,
                                    strrchr(reference, '/') + 1);
    rq_slice bytes;
    assert_int_equal(rq_vfs_read_file(w.env->vfs, parents, 1 << 20, &a, &bytes, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove(w.env->vfs, parents, NULL), RQ_OK);
    problem(&w, strrchr(parents, '/') + 1);
    char *archived = rq_arena_printf(&a, "archive/%s", parents);
    char *dir = rq_arena_printf(&a, "%.*s", (int)(strrchr(archived, '/') - archived), archived);
    assert_int_equal(rq_vfs_mkdirs(w.env->vfs, dir, NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(w.env->vfs, archived, bytes, NULL), RQ_OK);
    /* the daughters' references find the file in the archive; the parent is not needed otherwise */
    healthy(&w);
    assert_int_equal(rq_vfs_write_new_file(w.env->vfs, parents, bytes, NULL), RQ_OK);
    healthy(&w);
    char *stray =
        rq_arena_printf(&a, "%.*s/0123", (int)(strrchr(reference, '/') - reference), reference);
    assert_int_equal(rq_vfs_write_new_file(w.env->vfs, stray, bytes, NULL), RQ_OK);
    problem(&w, "0123");
    assert_int_equal(rq_vfs_remove(w.env->vfs, stray, NULL), RQ_OK);
    healthy(&w);
    rq_arena_clear(&a);
    world_clear(&w);
}

static void the_files_of_mob_values_are_looked_for(void **state)
{
    (void)state;
    world w;
    rq_arena a = {0};
    rq_dir_entry *files;
    size_t count;
    open_filled(&w, "f:IS_MOB=true,MOB_THRESHOLD=0");
    assert_int_equal(world_close(&w, true), RQ_OK);
    healthy(&w);
    const char *dir = rq_mob_family_dir(&a, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("f"));
    assert_int_equal(rq_vfs_list(w.env->vfs, dir, &a, &files, &count, NULL), RQ_OK);
    assert_int_equal(count, 2); /* files of two regions */
    char *path = rq_arena_printf(&a, "%s/%s", dir, files[0].name);
    rq_stat st;
    /* Simulates a crash between writing a MOB file and the store file that would have referred to
     * it. */
    rq_fsck_totals totals;
    size_t notes = look(&w, &totals).notes;
    char *stray =
        rq_arena_printf(&a, "%s/%.*s%032d", dir, (int)strlen(files[0].name) - 32, files[0].name, 7);
    assert_int_equal(rq_vfs_link(w.env->vfs, path, stray, NULL), RQ_OK);
    findings t = look(&w, &totals);
    assert_int_equal(t.problems, 0);
    assert_int_equal(t.notes, notes + 1);
    assert_non_null(strstr(t.last_note, stray));
    assert_int_equal(rq_vfs_remove(w.env->vfs, stray, NULL), RQ_OK);
    assert_int_equal(rq_vfs_stat(w.env->vfs, path, &st, NULL), RQ_OK);
    assert_true(rq_sim_flip_bit(w.sim, path, st.size / 20, 3));
    problem(&w, files[0].name);
    assert_int_equal(rq_vfs_remove(w.env->vfs, path, NULL), RQ_OK);
    problem(&w, files[0].name);
    rq_arena_clear(&a);
    world_clear(&w);
}

/* A folder with a copy of another region's .regioninfo is reported, but the keys of its files are
 * not compared with that region's range. */
static void a_folder_owned_by_another_server_is_reported(void **state)
{
    (void)state;
    world w;
    rq_arena a = {0};
    rq_slice bytes;
    rq_fsck_totals totals;
    open_filled(&w, "f");
    assert_int_equal(world_close(&w, true), RQ_OK);
    /* a file of any region: its keys are outside of the other region's range */
    char *file = find_file(&w, &a, 32);
    static const char stray[] = "data/default/t/00000000000000000000000000000abc";
    char *dir = rq_arena_printf(&a, "%s/f", stray);
    assert_int_equal(rq_vfs_mkdirs(w.env->vfs, dir, NULL), RQ_OK);
    char *inside = rq_arena_printf(&a, "%s%s", dir, strrchr(file, '/'));
    assert_int_equal(rq_vfs_link(w.env->vfs, file, inside, NULL), RQ_OK);
    rq_dir_entry *regions;
    size_t count;
    assert_int_equal(rq_vfs_list(w.env->vfs, "data/default/t", &a, &regions, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        if (regions[i].name[0] == '.' || strcmp(regions[i].name, strrchr(stray, '/') + 1) == 0)
            continue;
        char *theirs = rq_arena_printf(&a, "data/default/t/%s/.regioninfo", regions[i].name);
        char *info = rq_arena_printf(&a, "%s/.regioninfo", stray);
        assert_int_equal(rq_vfs_read_file(w.env->vfs, theirs, 1 << 20, &a, &bytes, NULL), RQ_OK);
        assert_int_equal(rq_vfs_write_new_file(w.env->vfs, info, bytes, NULL), RQ_OK);
        findings t = look(&w, &totals);
        /* the wrong .regioninfo, and a region that is not in hbase:meta */
        assert_int_equal(t.problems, 2);
        assert_int_equal(rq_vfs_remove(w.env->vfs, info, NULL), RQ_OK);
    }
    rq_arena_clear(&a);
    world_clear(&w);
}

/* A read error must not be reported as a folder without problems. */
static void no_failing_call_is_passed_over(void **state)
{
    (void)state;
    world w;
    open_filled(&w, "f:IS_MOB=true,MOB_THRESHOLD=0");
    assert_int_equal(world_split(&w, "t", "a", "c"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    findings t = {0};
    rq_fsck_totals totals;
    rq_fsck_options o = {.deep = true, .findings = {note, NULL, &t}};
    uint64_t calls = rq_sim_calls(w.sim);
    assert_int_equal(rq_fsck(w.env->vfs, &o, &totals, NULL), RQ_OK);
    assert_int_equal(t.problems, 0);
    calls = rq_sim_calls(w.sim) - calls;
    for (uint64_t k = 1; k <= 2 * calls; k++) {
        rq_error why = {0};
        rq_err wanted = k <= calls ? RQ_E_IO : RQ_E_PERMISSION;
        rq_sim_fail_at(w.sim, rq_sim_calls(w.sim) + 1 + k % calls, wanted);
        rq_err rc = rq_fsck(w.env->vfs, &o, &totals, &why);
        if (rc != wanted || why.message[0] == '\0')
            fail_msg("call %d of %d: %s, \"%s\", %d problems: %s", (int)k, (int)calls,
                     rq_err_name(rc), why.message, (int)t.problems, t.first);
    }
    world_clear(&w);
}

static void a_repair_moves_unread_files(void **state)
{
    (void)state;
    world w;
    rq_arena a = {0};
    rq_stat st;
    open_filled(&w, "f");
    assert_int_equal(world_close(&w, true), RQ_OK);
    char *file = find_file(&w, &a, 32);
    rq_slice bytes;
    assert_int_equal(rq_vfs_read_file(w.env->vfs, file, 1 << 20, &a, &bytes, NULL), RQ_OK);
    static const char stray[] = "data/default/t/00000000000000000000000000000abc/f";
    assert_int_equal(rq_vfs_mkdirs(w.env->vfs, stray, NULL), RQ_OK);
    char *inside = rq_arena_printf(&a, "%s/%s", stray, strrchr(file, '/') + 1);
    assert_int_equal(rq_vfs_write_new_file(w.env->vfs, inside, bytes, NULL), RQ_OK);
    static const char manifest[] = ".rorqual/regions/00000000000000000000000000000def.0";
    assert_int_equal(rq_vfs_write_new_file(w.env->vfs, manifest, bytes, NULL), RQ_OK);
    problem(&w, "abc");
    findings t = {0};
    rq_fsck_totals totals;
    rq_fsck_options o = {.repair = true, .findings = {note, NULL, &t}};
    /* A repair moves nothing while the log has edits. */
    open_again(&w);
    assert_int_equal(world_close(&w, false), RQ_OK);
    assert_int_equal(rq_fsck(w.env->vfs, &o, &totals, NULL), RQ_OK);
    assert_int_equal(totals.moved, 0);
    assert_int_equal(rq_vfs_stat(w.env->vfs, inside, &st, NULL), RQ_OK);
    open_again(&w);
    assert_int_equal(world_close(&w, true), RQ_OK);
    rq_err rc = rq_fsck(w.env->vfs, &o, &totals, NULL);
    assert_int_equal(rc, RQ_OK);
    assert_true(totals.moved >= 1);
    char *moved = rq_arena_printf(&a, ".rorqual/aside/1/%s", inside);
    assert_int_equal(rq_vfs_stat(w.env->vfs, moved, &st, NULL), RQ_OK);
    healthy(&w);
    open_again(&w);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    rq_arena_clear(&a);
    world_clear(&w);
}

/* The files of hbase:meta are opened twice: as those of a region, and for their rows. */
static void a_file_of_meta_that_cannot_be_opened_is_reported_once(void **state)
{
    (void)state;
    static const char dir[] = "data/hbase/meta/1588230740/info";
    for (int deep = 0; deep < 2; deep++) {
        world w;
        rq_arena a = {0};
        rq_dir_entry *files;
        size_t count;
        open_filled(&w, "f");
        assert_int_equal(world_close(&w, true), RQ_OK);
        assert_int_equal(rq_vfs_list(w.env->vfs, dir, &a, &files, &count, NULL), RQ_OK);
        assert_true(count > 0);
        char *path = rq_arena_printf(&a, "%s/%s", dir, files[0].name);
        assert_int_equal(rq_vfs_remove(w.env->vfs, path, NULL), RQ_OK);
        rq_slice no_hfile = RQ_SLICE_LIT("no HFile");
        assert_int_equal(rq_vfs_write_new_file(w.env->vfs, path, no_hfile, NULL), RQ_OK);
        findings t = {.place = path};
        rq_fsck_totals totals;
        const rq_fsck_options o = {.deep = deep == 1, .findings = {note, NULL, &t}};
        assert_int_equal(rq_fsck(w.env->vfs, &o, &totals, NULL), RQ_OK);
        assert_int_equal(t.at_place, 1);
        rq_arena_clear(&a);
        world_clear(&w);
    }
}

/* --- the chains of tables --------------------------------------------------------------------- */

static findings find(world *w, const char *part)
{
    findings t = {.part = part};
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {note, NULL, &t}};
    assert_int_equal(rq_fsck(w->env->vfs, &o, &totals, NULL), RQ_OK);
    return t;
}

static void a_table_without_regions_is_reported(void **state)
{
    (void)state;
    world w;
    open_filled(&w, "f");
    assert_int_equal(world_create(&w, "u", "f", NULL), RQ_OK);
    assert_int_equal(world_forget(&w, "u", "a"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    findings t = find(&w, "table u has no region");
    assert_int_equal(t.problems_with, 1);
    t = find(&w, "has no region");
    assert_int_equal(t.problems_with, 1);
    world_clear(&w);
}

/* Fails the disabling of table u for good. */
static rq_err fail_disable(void *ctx, const rq__proc *p, rq_error *why)
{
    (void)ctx;
    bool meant = p->ops->kind == RQ_DDL_DISABLE_TABLE && p->step == 1;
    return meant ? rq_fail(why, RQ_E_DO_NOT_RETRY, "the test says so") : RQ_OK;
}

/* The procedure of table u is unfinished. */
static void a_procedure_excuses_its_own_table_only(void **state)
{
    (void)state;
    world w;
    open_filled(&w, "f");
    assert_int_equal(world_create(&w, "u", "f", "m"), RQ_OK);
    assert_int_equal(world_create(&w, "v", "f", "m"), RQ_OK);
    w.catalog->procedures.before_step = fail_disable;
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "u"), RQ_E_DO_NOT_RETRY);
    assert_int_equal(world_close(&w, true), RQ_OK);
    healthy(&w);
    open_again(&w);
    assert_int_equal(world_forget(&w, "u", "x"), RQ_OK);
    assert_int_equal(world_forget(&w, "v", "x"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    findings t = find(&w, "table v: a hole");
    assert_int_equal(t.problems_with, 1);
    assert_int_equal(t.problems, 2); /* and the region's folder */
    t = find(&w, "table u: a hole");
    assert_int_equal(t.problems_with, 0);
    assert_int_equal(t.notes_with, 1);
    t = find(&w, "without a row");
    assert_int_equal(t.problems_with, 1);
    assert_int_equal(t.notes_with, 1);
    world_clear(&w);
}

static void a_running_servers_folder_is_not_looked_at(void **state)
{
    (void)state;
    world w;
    open_filled(&w, "f");
    findings t = {0};
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {note, NULL, &t}};
    assert_int_equal(rq_fsck(w.env->vfs, &o, &totals, NULL), RQ_E_LOCKED);
    world_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_folder_has_no_problems_however_it_was_left),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(the_files_of_mob_values_are_looked_for),
        cmocka_unit_test(a_folder_owned_by_another_server_is_reported),
        cmocka_unit_test(no_failing_call_is_passed_over),
        cmocka_unit_test(a_repair_moves_unread_files),
        cmocka_unit_test(a_file_of_meta_that_cannot_be_opened_is_reported_once),
        cmocka_unit_test(a_table_without_regions_is_reported),
        cmocka_unit_test(a_procedure_excuses_its_own_table_only),
        cmocka_unit_test(a_running_servers_folder_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
