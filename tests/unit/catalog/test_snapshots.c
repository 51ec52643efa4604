/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, clones and restores, in the simulated environment. */
#include "world.h"

#include "catalog/fsck.h"
#include "proto/snapshot.pb-c.h"

static void put_rows(world *w, const char *table, const char *rows)
{
    for (; *rows != '\0'; rows++) {
        char row[] = {*rows, '\0'};
        OK(world_put(w, table, row, "f"));
    }
}

static void expect_rows(world *w, const char *table, const char *rows)
{
    char *now = world_rows(w, table);
    assert_string_equal(now, rows);
    free(now);
}

static void note_problem(void *ctx, rq_finding level, const char *place, const char *text)
{
    (void)ctx;
    if (level == RQ_FINDING_PROBLEM) fail_msg("fsck: %s: %s", place, text);
}

static void expect_sound(world *w)
{
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
}

static void count_problem(void *ctx, rq_finding level, const char *place, const char *text)
{
    const char **expected = ctx;
    if (level != RQ_FINDING_PROBLEM) return;
    if (*expected == NULL || strcmp(place, *expected) != 0) fail_msg("fsck: %s: %s", place, text);
    *expected = NULL;
}

/* fsck finds one problem, at this place. */
static void expect_problem(world *w, const char *place)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {count_problem, NULL, &place}};
    OK(world_close(w, true));
    OK(rq_fsck(w->env->vfs, &o, &totals, &w->why));
    assert_null(place);
    OK(world_open(w));
}

/* A clean stop, fsck of the folder, a start. */
static void restart(world *w)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {note_problem, NULL, NULL}, .deep = true};
    OK(world_close(w, true));
    OK(rq_fsck(w->env->vfs, &o, &totals, &w->why));
    OK(world_open(w));
    expect_sound(w);
}

static void begin(world *w)
{
    world_init(w, unit_seed(), NULL);
    OK(rq_config_set(w->config, "hbase.master.hfilecleaner.ttl", "0", &w->why));
    OK(world_open(w));
}

/* Two rounds: the first one sees a file, the second one removes the folders left empty. */
static void clean_archive(world *w)
{
    bool ran;
    for (int i = 0; i < 2; i++)
        OK(rq_catalog_clean_archive(w->catalog, &ran, &w->why));
}

static void disable_and_delete(world *w, const char *table)
{
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, table));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, table));
}

static size_t count_snapshots(world *w)
{
    rq_arena a = {0};
    rq_snapshot *list;
    size_t count;
    OK(rq_catalog_snapshots(w->catalog, &a, &list, &count, &w->why));
    rq_arena_clear(&a);
    return count;
}

static int type_of(world *w, const char *name)
{
    rq_arena a = {0};
    rq_snapshot *list;
    size_t count;
    int type = -1;
    OK(rq_catalog_snapshots(w->catalog, &a, &list, &count, &w->why));
    for (size_t i = 0; i < count; i++) {
        rq_slice d = list[i].description;
        if (!rq_slice_eq(list[i].name, rq_slice_cstr(name))) continue;
        Pb__SnapshotDescription *m = pb__snapshot_description__unpack(NULL, d.len, d.ptr);
        assert_non_null(m);
        type = m->type;
        pb__snapshot_description__free_unpacked(m, NULL);
    }
    rq_arena_clear(&a);
    return type;
}

static bool archive_has_files(world *w, const char *dir)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    bool found = false;
    OK(rq_vfs_list_if_any(w->env->vfs, dir, &a, &entries, &count, &w->why));
    for (size_t i = 0; i < count && !found; i++) {
        char *path = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        found = entries[i].is_dir ? archive_has_files(w, path) : true;
    }
    rq_arena_clear(&a);
    return found;
}

static void a_clone_has_the_rows_of_its_snapshot(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f g", "m"));
    put_rows(w, "t", "abz");
    OK(world_snapshot(w, "s", "t", true));
    put_rows(w, "t", "cy");
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL));
    OK(world_clone(w, "s", "n:c"));
    expect_rows(w, "n:c", "a b z ");
    expect_rows(w, "t", "a b c y z ");
    put_rows(w, "n:c", "q");
    restart(w);
    expect_rows(w, "n:c", "a b q z ");
    /* A snapshot without a flush contains only rows in files. */
    put_rows(w, "t", "d");
    OK(world_snapshot(w, "skip", "t", false));
    OK(world_clone(w, "skip", "c2"));
    expect_rows(w, "c2", "a b c y z ");
    assert_int_equal(count_snapshots(w), 2);
    OK(world_delete_snapshot(w, "s"));
    OK(world_delete_snapshot(w, "skip"));
    assert_int_equal(count_snapshots(w), 0);
    restart(w);
    world_clear(w);
}

static void a_clone_outlives_snapshot_and_source(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", "m"));
    put_rows(w, "t", "az");
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone(w, "s", "c"));
    OK(world_snapshot(w, "of_clone", "c", true));
    OK(world_clone(w, "of_clone", "cc")); /* the clone's links name t's files */
    disable_and_delete(w, "t");
    OK(world_delete_snapshot(w, "s"));
    OK(world_delete_snapshot(w, "of_clone"));
    clean_archive(w);
    restart(w);
    expect_rows(w, "c", "a z ");
    disable_and_delete(w, "c");
    clean_archive(w);
    restart(w);
    expect_rows(w, "cc", "a z ");
    /* The last clone rewrites its files: then nothing refers to the archive. */
    OK(world_compact(w, "cc"));
    restart(w);
    expect_rows(w, "cc", "a z ");
    clean_archive(w);
    clean_archive(w);
    assert_false(archive_has_files(w, "archive"));
    world_clear(w);
}

static void files_of_a_snapshot_stay_until_it_is_deleted(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    put_rows(w, "t", "ab");
    OK(world_snapshot(w, "s", "t", true));
    disable_and_delete(w, "t");
    clean_archive(w);
    restart(w);
    clean_archive(w);
    assert_true(archive_has_files(w, "archive"));
    OK(world_clone(w, "s", "t"));
    expect_rows(w, "t", "a b ");
    disable_and_delete(w, "t");
    OK(world_delete_snapshot(w, "s"));
    clean_archive(w);
    clean_archive(w);
    assert_false(archive_has_files(w, "archive"));
    world_clear(w);
}

static void a_restore_brings_back_rows_and_descriptor(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f g", "m"));
    put_rows(w, "t", "abz");
    OK(world_snapshot(w, "s", "t", true));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "g"));
    OK(world_delete(w, "t", "a", "f"));
    put_rows(w, "t", "cx");
    OK(world_split(w, "t", "a", "b"));
    OK(world_compact(w, "t"));
    REFUSED(world_restore(w, "s", "t"), RQ_E_DO_NOT_RETRY,
            "java.lang.UnsupportedOperationException: Table 't' must be disabled in order to "
            "perform a restore operation.");
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_snapshot(w, "later", "t", true)); /* of a disabled table */
    assert_int_equal(type_of(w, "later"), PB__SNAPSHOT_DESCRIPTION__TYPE__FLUSH);
    OK(world_snapshot_silent(w, "silent", "t"));
    assert_int_equal(type_of(w, "silent"), PB__SNAPSHOT_DESCRIPTION__TYPE__DISABLED);
    OK(world_delete_snapshot(w, "silent"));
    OK(world_restore(w, "s", "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    expect_rows(w, "t", "a b z ");
    OK(world_put(w, "t", "k", "g"));
    restart(w);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_restore(w, "later", "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    expect_rows(w, "t", "b c x z ");
    OK(world_delete_snapshot(w, "s"));
    OK(world_delete_snapshot(w, "later"));
    clean_archive(w);
    restart(w);
    expect_rows(w, "t", "b c x z ");
    world_clear(w);
}

/* Daughters refer to halves of their parent's files; the clone's references name the parent's files
 * directly. */
static void a_clone_of_daughters_outlives_the_parent(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    put_rows(w, "t", "abxy");
    rq_engine_compactions_enable(w->engine, false);
    OK(world_split(w, "t", "a", "m"));
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone(w, "s", "c"));
    rq_engine_compactions_enable(w->engine, true);
    expect_rows(w, "c", "a b x y ");
    OK(world_compact(w, "t"));
    OK(world_clean(w, "t"));
    clean_archive(w);
    OK(world_clone(w, "s", "d"));
    OK(world_delete_snapshot(w, "s"));
    disable_and_delete(w, "t");
    clean_archive(w);
    restart(w);
    expect_rows(w, "c", "a b x y ");
    expect_rows(w, "d", "a b x y ");
    /* A snapshot of references to links (files of the clone of a split region). */
    OK(world_snapshot(w, "again", "c", true));
    OK(world_clone(w, "again", "e"));
    disable_and_delete(w, "c");
    OK(world_delete_snapshot(w, "again"));
    clean_archive(w);
    restart(w);
    expect_rows(w, "e", "a b x y ");
    world_clear(w);
}

static void a_clone_can_have_another_tracker(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    OK(world_put(w, "t", "a", "f"));
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone_tracker(w, "s", "c", "FILE"));
    OK(world_get(w, "c", "a", "f"));
    REFUSED(world_clone_tracker(w, "s", "d", "MIGRATION"), RQ_E_DO_NOT_RETRY,
            "Should not use MIGRATION as store file tracker for new family f of table d");
    REFUSED(world_clone_tracker(w, "s", "d", "my.Tracker"), RQ_E_IOEXCEPTION,
            "java.lang.RuntimeException: java.lang.RuntimeException: "
            "java.lang.ClassNotFoundException: Class my.Tracker not found");
    OK(world_clone(w, "s", "d"));
    world_clear(w);
}

static void invalid_requests_are_refused_with_hbases_messages(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    OK(world_snapshot(w, "s", "t", true));
    REFUSED(world_snapshot(w, "s", "t", true), RQ_E_SNAPSHOT_EXISTS,
            "Snapshot 's' already stored on the filesystem.");
    REFUSED(world_snapshot(w, "x", "u", true), RQ_E_SNAPSHOT_CREATION,
            "Table 'u' doesn't exist, can't take snapshot.");
    REFUSED(world_snapshot(w, "../x", "t", true), RQ_E_ILLEGAL_ARGUMENT,
            "Illegal first character <46> at 0. Snapshot qualifiers can only start with "
            "'alphanumeric characters' from any language: ../x");
    REFUSED(world_delete_snapshot(w, "a/b"), RQ_E_ILLEGAL_ARGUMENT,
            "Illegal character code:47, </> at 1. Snapshot qualifiers may only contain "
            "'alphanumeric characters' and digits: a/b");
    REFUSED(world_delete_snapshot(w, "x"), RQ_E_SNAPSHOT_NOT_FOUND,
            "Snapshot 'x' doesn't exist on the filesystem");
    REFUSED(world_clone(w, "x", "c"), RQ_E_SNAPSHOT_NOT_FOUND,
            "Snapshot 'x' doesn't exist on the filesystem");
    REFUSED(world_clone(w, "s", "t"), RQ_E_TABLE_EXISTS, "t");
    REFUSED(world_clone(w, "s", "n:c"), RQ_E_NAMESPACE_NOT_FOUND, "n");
    char longer[RQ_NAME_MAX + 2] = {0};
    memset(longer, 'x', sizeof longer - 1);
    REFUSED(world_snapshot(w, longer, "t", true), RQ_E_ILLEGAL_ARGUMENT,
            "Snapshot name is longer than 255 bytes");
    assert_int_equal(world_delete_snapshot(w, longer), RQ_E_SNAPSHOT_NOT_FOUND);
    assert_int_equal(world_clone(w, longer, "c"), RQ_E_SNAPSHOT_NOT_FOUND);
    OK(world_create(w, "u", "f", NULL));
    REFUSED(world_restore(w, "s", "u"), RQ_E_SNAPSHOT_RESTORE,
            "Snapshot 's' is of table t: it cannot be restored to table u, which exists");
    assert_int_equal(count_snapshots(w), 1);
    restart(w);
    world_clear(w);
}

static void a_damaged_snapshot_is_refused_and_can_be_deleted(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    put_rows(w, "t", "a");
    OK(world_snapshot(w, "s", "t", true));
    assert_true(rq_sim_flip_bit(w->sim, ".hbase-snapshot/s/data.manifest", 0, 3));
    expect_problem(w, ".hbase-snapshot/s");
    assert_int_equal(world_clone(w, "s", "c"), RQ_E_SNAPSHOT_CORRUPT);
    expect_rows(w, "c", "");
    OK(world_delete_snapshot(w, "s"));
    /* A file of the snapshot was deleted. */
    OK(world_snapshot(w, "s", "t", true));
    disable_and_delete(w, "t");
    OK(rq_vfs_remove_tree(w->env->vfs, "archive", &w->why));
    expect_problem(w, ".hbase-snapshot/s");
    assert_int_equal(world_clone(w, "s", "c"), RQ_E_SNAPSHOT_CORRUPT);
    OK(world_delete_snapshot(w, "s"));
    restart(w);
    world_clear(w);
}

static void a_link_without_its_back_reference_is_reported(void **state)
{
    (void)state;
    rq_arena a = {0};
    rq_dir_entry *regions, *files;
    size_t count;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    put_rows(w, "t", "a");
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone(w, "s", "c"));
    restart(w);
    OK(rq_vfs_remove_tree(w->env->vfs, "archive", &w->why));
    OK(rq_vfs_list(w->env->vfs, "data/default/c", &a, &regions, &count, &w->why));
    assert_int_equal(count, 2); /* the other entry is .tabledesc */
    char *dir = rq_arena_printf(&a, "data/default/c/%s/f", regions[1].name);
    OK(rq_vfs_list(w->env->vfs, dir, &a, &files, &count, &w->why));
    assert_int_equal(count, 1);
    expect_problem(w, rq_arena_printf(&a, "%s/%s", dir, files[0].name));
    rq_arena_clear(&a);
    world_clear(w);
}

static void a_namespaces_limits_count_clones(void **state)
{
    (void)state;
    world the, *w = &the;
    begin(w);
    OK(rq_config_set(w->config, "hbase.quota.enabled", "true", &w->why));
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "hbase.namespace.quota.maxregions=3"));
    OK(world_create(w, "n:t", "f", "m"));
    OK(world_snapshot(w, "s", "n:t", true));
    assert_int_equal(world_clone(w, "s", "n:c"), RQ_E_QUOTA_EXCEEDED);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "n:t"));
    OK(world_restore(w, "s", "n:t")); /* the restore replaces the table's own regions */
    OK(world_clone(w, "s", "c"));
    world_clear(w);
}

static void an_expired_snapshot_is_refused_and_deleted_by_itself(void **state)
{
    (void)state;
    bool before;
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", NULL));
    OK(world_snapshot_ttl(w, "s", "t", true, 60));
    OK(world_snapshot_ttl(w, "kept", "t", true, 1000000));
    OK(world_clone(w, "s", "c"));
    rq_sim_advance(w->sim, UINT64_C(61000000000));
    REFUSED(world_clone(w, "s", "d"), RQ_E_SNAPSHOT_EXPIRED,
            "TTL for snapshot 's' has already expired.");
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_SNAPSHOT_CLEANUP, false, &before, &w->why));
    rq_sim_advance(w->sim, UINT64_C(1800000000000));
    assert_int_equal(count_snapshots(w), 2);
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_SNAPSHOT_CLEANUP, true, &before, &w->why));
    rq_sim_advance(w->sim, UINT64_C(1800000000000));
    assert_true(world_settle(w));
    assert_int_equal(count_snapshots(w), 1);
    restart(w);
    world_clear(w);
}

/* The number of vfs calls that a list of `expected` snapshots makes. */
static uint64_t calls_of_a_list(world *w, size_t expected)
{
    uint64_t before = rq_sim_calls(w->sim);
    assert_int_equal(count_snapshots(w), expected);
    return rq_sim_calls(w->sim) - before;
}

/* Copies a snapshot as another program may do it. */
static void copy_in(world *w, const char *from, const char *to)
{
    rq_vfs *v = w->env->vfs;
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    const char *copy = rq_arena_printf(&a, ".hbase-snapshot/%s", to);
    const char *dir = rq_arena_printf(&a, ".hbase-snapshot/%s", from);
    OK(rq_vfs_mkdirs(v, copy, &w->why));
    OK(rq_vfs_list(v, dir, &a, &entries, &count, &w->why));
    for (size_t i = 0; i < count; i++) {
        rq_slice bytes;
        const char *file = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        OK(rq_vfs_read_file(v, file, SIZE_MAX / 2, &a, &bytes, &w->why));
        file = rq_arena_printf(&a, "%s/%s", copy, entries[i].name);
        OK(rq_vfs_write_new_file(v, file, bytes, &w->why));
    }
    rq_arena_clear(&a);
}

static void the_list_is_read_once(void **state)
{
    (void)state;
    char name[8];
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f", ""));
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "s%d", i);
        OK(world_snapshot(w, name, "t", false));
    }
    assert_true(calls_of_a_list(w, 10) > 10);
    /* the folder's modification time is too recent to be trusted */
    assert_true(calls_of_a_list(w, 10) > 10);
    rq_sim_advance(w->sim, UINT64_C(10000000000));
    assert_true(calls_of_a_list(w, 10) > 10);
    assert_int_equal(calls_of_a_list(w, 10), 1);
    OK(world_snapshot(w, "more", "t", false));
    OK(world_delete_snapshot(w, "s0"));
    OK(world_delete_snapshot(w, "s1"));
    calls_of_a_list(w, 9);
    rq_sim_advance(w->sim, UINT64_C(10000000000));
    calls_of_a_list(w, 9);
    assert_int_equal(calls_of_a_list(w, 9), 1);
    /* A snapshot copied by another program. */
    copy_in(w, "more", "exported");
    calls_of_a_list(w, 10);
    rq_sim_advance(w->sim, UINT64_C(10000000000));
    calls_of_a_list(w, 10);
    assert_int_equal(calls_of_a_list(w, 10), 1);
    OK(rq_vfs_remove_tree(w->env->vfs, ".hbase-snapshot/exported", &w->why));
    calls_of_a_list(w, 9);
    /* A snapshot's folder without its description. */
    OK(rq_vfs_mkdirs(w->env->vfs, ".hbase-snapshot/coming", &w->why));
    rq_sim_advance(w->sim, UINT64_C(10000000000));
    calls_of_a_list(w, 9);
    assert_true(calls_of_a_list(w, 9) > 9);
    restart(w);
    world_clear(w);
}

static void mob_values_stay_with_clones(void **state)
{
    (void)state;
    static uint8_t large[3000];
    rq_slice value = rq_slice_of(large, sizeof large);
    world the, *w = &the;
    begin(w);
    OK(world_create(w, "t", "f:IS_MOB=true,MOB_THRESHOLD=100", "m"));
    OK(world_put_cell(w, "t", "a", "f", "q", value));
    OK(world_put_cell(w, "t", "z", "f", "q", value));
    OK(world_snapshot(w, "s", "t", true));
    OK(world_clone(w, "s", "c"));
    OK(world_snapshot(w, "of_clone", "c", true));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_restore(w, "s", "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "z", "f"));
    disable_and_delete(w, "t");
    OK(world_delete_snapshot(w, "s"));
    clean_archive(w);
    restart(w);
    OK(world_clone(w, "of_clone", "d"));
    OK(world_delete_snapshot(w, "of_clone"));
    disable_and_delete(w, "c");
    clean_archive(w);
    restart(w);
    OK(world_get(w, "d", "a", "f"));
    OK(world_get(w, "d", "z", "f"));
    disable_and_delete(w, "d");
    clean_archive(w);
    clean_archive(w);
    assert_false(archive_has_files(w, "archive"));
    world_clear(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_has_the_rows_of_its_snapshot),
        cmocka_unit_test(a_clone_outlives_snapshot_and_source),
        cmocka_unit_test(files_of_a_snapshot_stay_until_it_is_deleted),
        cmocka_unit_test(a_restore_brings_back_rows_and_descriptor),
        cmocka_unit_test(a_clone_of_daughters_outlives_the_parent),
        cmocka_unit_test(a_clone_can_have_another_tracker),
        cmocka_unit_test(invalid_requests_are_refused_with_hbases_messages),
        cmocka_unit_test(a_damaged_snapshot_is_refused_and_can_be_deleted),
        cmocka_unit_test(a_link_without_its_back_reference_is_reported),
        cmocka_unit_test(a_namespaces_limits_count_clones),
        cmocka_unit_test(an_expired_snapshot_is_refused_and_deleted_by_itself),
        cmocka_unit_test(the_list_is_read_once),
        cmocka_unit_test(mob_values_stay_with_clones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
