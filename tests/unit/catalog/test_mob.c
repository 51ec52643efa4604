/* SPDX-License-Identifier: Apache-2.0 */
/* MOB families and catalog changes: MOB files of dropped tables and families are archived, those
 * that other regions still refer to stay. */
#include "world.h"

#include "base/pb.h"
#include "region/mob_cleaner.h"
#include "store/mob.h"

#include <string.h>

#define MOB "f:IS_MOB=true,MOB_THRESHOLD=0"

static void begin(world *w)
{
    world_init(w, unit_seed(), NULL);
    assert_int_equal(rq_config_set_pair(w->config, "hbase.mob.min.age.archive=0", NULL), RQ_OK);
    assert_int_equal(world_open(w), RQ_OK);
}

static void end(world *w)
{
    world_end(w);
}

static void put_rows(world *w, const char *table, const char *rows)
{
    char one[2] = {0};
    for (; *rows != '\0'; rows++) {
        one[0] = *rows;
        assert_int_equal(world_put(w, table, one, "f"), RQ_OK);
    }
}

static void expect_rows(world *w, const char *table, const char *rows)
{
    char *text = world_rows(w, table);
    assert_string_equal(text, rows);
    free(text);
}

static void flush(world *w, const char *table)
{
    rq_arena a = {0};
    rq_region **list;
    size_t count;
    assert_int_equal(rq_engine_regions(w->engine, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        if (rq_slice_eq(rq_region_get_info(list[i])->table, rq_slice_cstr(table)))
            assert_int_equal(rq_region_flush(list[i], (rq_slice){0}, NULL, NULL), RQ_OK);
        rq_region_unref(list[i]);
    }
    rq_arena_clear(&a);
}

/* The number of the table's MOB files below `top`: mobdir or archive. */
static size_t mob_files(world *w, const char *table, const char *family, const char *top)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    const char *dir = rq_mob_family_dir(&a, rq_slice_cstr(table), rq_slice_cstr(family));
    const char *path = rq_arena_printf(&a, "%s%s", top, dir + strlen(RQ_MOB_DIR));
    rq_err rc = rq_vfs_list(w->env->vfs, path, &a, &entries, &count, NULL);
    rq_arena_clear(&a);
    return rc == RQ_OK ? count : 0;
}

static size_t clean(world *w)
{
    size_t archived = 0;
    rq_error why = {0};
    if (rq__catalog_clean_mob(w->catalog, &archived, &why) != RQ_OK) fail_msg("%s", why.message);
    return archived;
}

static void throw_archive_away(world *w)
{
    assert_int_equal(rq_vfs_remove_tree(w->env->vfs, "archive", NULL), RQ_OK);
}

static void a_deleted_table_s_files_are_archived(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(world_create(&w, "t", MOB, "m"), RQ_OK);
    put_rows(&w, "t", "az");
    flush(&w, "t");
    assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 2);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    assert_int_equal(clean(&w), 0); /* regions of a disabled table still refer to them */
    assert_int_equal(world_table(&w, RQ_DDL_DELETE_TABLE, "t"), RQ_OK);
    assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 0);
    assert_int_equal(mob_files(&w, "t", "f", "archive"), 2);
    assert_int_equal(world_create(&w, "t", MOB, NULL), RQ_OK);
    expect_rows(&w, "t", "");
    end(&w);
}

static void a_truncated_table_begins_with_no_files(void **state)
{
    (void)state;
    for (int preserve = 0; preserve < 2; preserve++) {
        world w;
        begin(&w);
        assert_int_equal(world_create(&w, "t", MOB, "m"), RQ_OK);
        put_rows(&w, "t", "az");
        flush(&w, "t");
        assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
        assert_int_equal(world_truncate(&w, "t", preserve), RQ_OK);
        assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 0);
        assert_int_equal(mob_files(&w, "t", "f", "archive"), 2);
        throw_archive_away(&w);
        put_rows(&w, "t", "by");
        flush(&w, "t");
        assert_int_equal(clean(&w), 0);
        expect_rows(&w, "t", "b y ");
        end(&w);
    }
}

static void a_removed_family_s_files_are_archived_and_no_others(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(world_create(&w, "t", MOB " g:IS_MOB=true,MOB_THRESHOLD=0", NULL), RQ_OK);
    put_rows(&w, "t", "a");
    assert_int_equal(world_put(&w, "t", "a", "g"), RQ_OK);
    flush(&w, "t");
    assert_int_equal(world_family(&w, RQ_DDL_DELETE_FAMILY, "t", "g"), RQ_OK);
    assert_int_equal(mob_files(&w, "t", "g", RQ_MOB_DIR), 0);
    assert_int_equal(mob_files(&w, "t", "g", "archive"), 1);
    assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 1);
    throw_archive_away(&w);
    expect_rows(&w, "t", "a ");
    end(&w);
}

static void values_survive_splits_and_merges_and_their_parents(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(world_create(&w, "t", MOB, NULL), RQ_OK);
    put_rows(&w, "t", "abyz");
    assert_int_equal(world_split(&w, "t", "a", "m"), RQ_OK);
    assert_int_equal(clean(&w), 0);
    expect_rows(&w, "t", "a b y z ");
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    clean(&w); /* removes the parent's file, once both daughters have rewritten its values */
    throw_archive_away(&w);
    expect_rows(&w, "t", "a b y z ");
    assert_int_equal(world_merge(&w, "t", "a z", false), RQ_OK);
    assert_int_equal(clean(&w), 0);
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    clean(&w);
    throw_archive_away(&w);
    expect_rows(&w, "t", "a b y z ");
    assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 1);
    end(&w);
}

/* --- a region is removed while the cleaner reads ---------------------------------------------- */

/* Runs `meanwhile` once, after the first listing of `dir`. */
static struct {
    rq_err (*list)(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                   size_t *ret_count, rq_error *why);
    const char *dir;
    world *w;
    void (*meanwhile)(world *w);
} hook;

static rq_err hooked_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    rq_err rc = hook.list(v, dir, arena, ret, ret_count, why);
    void (*meanwhile)(world * w) = hook.meanwhile;
    if (meanwhile == NULL || strcmp(dir, hook.dir) != 0) return rc;
    hook.meanwhile = NULL;
    meanwhile(hook.w);
    return rc;
}

static void hook_list(world *w, const char *dir, void (*meanwhile)(world *w))
{
    hook.list = w->env->vfs->list;
    hook.dir = dir;
    hook.w = w;
    hook.meanwhile = meanwhile;
    w->env->vfs->list = hooked_list;
}

static void split_and_clear(world *w)
{
    assert_int_equal(world_split(w, "t", "a", "m"), RQ_OK);
    rq_sim_run(w->sim); /* the compactions started by opening keep references */
    assert_int_equal(world_clean(w, "t"), RQ_OK);
}

static rq_err failing_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    (void)v;
    (void)to;
    return rq_fail(why, RQ_E_IO, "%s: told to fail", from);
}

static rq_err (*plain_link)(rq_vfs *v, const char *from, const char *to, rq_error *why);

static rq_err link_once(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    v->link = failing_link;
    return plain_link(v, from, to, why);
}

/* The janitor's round is interrupted after one of the parent's two files was moved to the
 * archive. */
static void split_and_clear_half(world *w)
{
    assert_int_equal(world_split(w, "t", "a", "m"), RQ_OK);
    rq_sim_run(w->sim); /* the compactions started by opening keep references */
    plain_link = w->env->vfs->link;
    w->env->vfs->link = link_once;
    assert_int_not_equal(world_clean(w, "t"), RQ_OK);
    w->env->vfs->link = plain_link;
}

static void values_survive_a_split_whose_parent_goes(void (*meanwhile)(world *w))
{
    world w;
    begin(&w);
    assert_int_equal(world_create(&w, "t", MOB, NULL), RQ_OK);
    put_rows(&w, "t", "az");
    flush(&w, "t");
    put_rows(&w, "t", "by");
    flush(&w, "t");
    hook_list(&w, "data/default/t", meanwhile);
    size_t archived;
    rq_error why = {0};
    if (rq__catalog_clean_mob(w.catalog, &archived, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_null(hook.meanwhile);
    throw_archive_away(&w);
    expect_rows(&w, "t", "a b y z ");
    end(&w);
}

static void values_survive_a_parent_that_goes_while_the_cleaner_reads(void **state)
{
    (void)state;
    values_survive_a_split_whose_parent_goes(split_and_clear);
}

static void values_survive_a_parent_that_is_half_gone(void **state)
{
    (void)state;
    values_survive_a_split_whose_parent_goes(split_and_clear_half);
}

/* --- a snapshot that lists its regions one after the other ------------------------------------ */

static struct {
    rq_err (*stat)(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why);
    world *w;
    /* the first region's files are listed; the second region's list is still being made */
    bool listed;
} first;

static rq_err stat_of_first(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    if (!first.listed && strncmp(path, "data/default/t/", 15) == 0) {
        first.listed = true;
        late_calls_hold(first.w->calls, true);
    }
    return first.stat(v, path, ret, why);
}

static void taken(rq_ddl *d)
{
    (void)d; /* its rc is checked elsewhere */
}

static void take_in_two_parts(world *w, void (*between)(world *w))
{
    rq_buf description = {0};
    rq_ddl d = {.kind = RQ_DDL_SNAPSHOT,
                .ns = RQ_SLICE_LIT("default"),
                .qualifier = RQ_SLICE_LIT("t"),
                .rc = RQ_E_AGAIN,
                .wait_finished = true,
                .submitted = taken};
    assert_int_equal(rq_pb_put_bytes(&description, 1, RQ_SLICE_LIT("s")), RQ_OK);
    d.of.snapshot.name = RQ_SLICE_LIT("s");
    d.of.snapshot.description = rq_buf_slice(&description);
    first.w = w;
    first.listed = false;
    first.stat = w->env->vfs->stat;
    w->env->vfs->stat = stat_of_first;
    rq_catalog_submit(w->catalog, &d);
    for (int i = 0; i < 10000 && !first.listed; i++)
        rq_sim_advance(w->sim, 1000000);
    w->env->vfs->stat = first.stat;
    assert_true(first.listed);
    between(w);
    late_calls_hold(w->calls, false);
    for (int i = 0; i < 10000 && d.rc == RQ_E_AGAIN; i++)
        rq_sim_advance(w->sim, 1000000);
    assert_int_equal(d.rc, RQ_OK);
    rq_buf_clear(&description);
}

static void compact_and_clean(world *w)
{
    assert_int_equal(world_compact(w, "t"), RQ_OK);
    (void)clean(w);
}

/* The manifest named the store files, but not the MOB files that they refer to. */
static void a_snapshot_has_the_mob_files_of_store_files_compacted_meanwhile(void **state)
{
    (void)state;
    world w;
    bool ran;
    world_init(&w, unit_seed(), NULL);
    w.late = true;
    assert_int_equal(rq_config_set_pair(w.config, "hbase.mob.min.age.archive=0", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(w.config, "hbase.master.hfilecleaner.ttl=0", NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", MOB, "m"), RQ_OK);
    put_rows(&w, "t", "az");
    flush(&w, "t");
    take_in_two_parts(&w, compact_and_clean);
    (void)clean(&w);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rq_catalog_clean_archive(w.catalog, &ran, NULL), RQ_OK);
    assert_int_equal(world_clone(&w, "s", "c"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK); /* no MOB file is open afterwards */
    assert_int_equal(world_open(&w), RQ_OK);
    expect_rows(&w, "c", "a z ");
    end(&w);
}

static void nothing_goes_while_a_store_file_does_not_say_what_it_refers_to(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(world_create(&w, "t", MOB, NULL), RQ_OK);
    put_rows(&w, "t", "a");
    flush(&w, "t");
    assert_int_equal(world_modify(&w, "t", "f"), RQ_OK);
    /* a family without MOB: the compaction keeps the reference */
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_modify(&w, "t", MOB), RQ_OK);
    size_t archived;
    rq_error why = {0};
    assert_int_equal(rq__catalog_clean_mob(w.catalog, &archived, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "does not list the MOB files that it refers to"));
    expect_rows(&w, "t", "a ");
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(clean(&w), 1); /* the previous file */
    throw_archive_away(&w);
    expect_rows(&w, "t", "a ");
    end(&w);
}

static void the_chores_run_by_themselves(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    static const char *const settings[] = {"hbase.mob.min.age.archive=0",
                                           "hbase.master.mob.cleaner.period=100",
                                           "hbase.mob.compaction.chore.period=30"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(settings); i++)
        assert_int_equal(rq_config_set_pair(w.config, settings[i], NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", MOB, NULL), RQ_OK);
    put_rows(&w, "t", "a");
    flush(&w, "t");
    rq_sim_advance(w.sim, UINT64_C(35) * 1000000000);
    rq_sim_run(w.sim);
    assert_int_equal(mob_files(&w, "t", "f", RQ_MOB_DIR), 2);
    rq_sim_advance(w.sim, UINT64_C(70) * 1000000000);
    rq_sim_run(w.sim);
    assert_true(mob_files(&w, "t", "f", "archive") > 0);
    expect_rows(&w, "t", "a ");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deleted_table_s_files_are_archived),
        cmocka_unit_test(a_truncated_table_begins_with_no_files),
        cmocka_unit_test(a_removed_family_s_files_are_archived_and_no_others),
        cmocka_unit_test(values_survive_splits_and_merges_and_their_parents),
        cmocka_unit_test(values_survive_a_parent_that_goes_while_the_cleaner_reads),
        cmocka_unit_test(values_survive_a_parent_that_is_half_gone),
        cmocka_unit_test(a_snapshot_has_the_mob_files_of_store_files_compacted_meanwhile),
        cmocka_unit_test(nothing_goes_while_a_store_file_does_not_say_what_it_refers_to),
        cmocka_unit_test(the_chores_run_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
