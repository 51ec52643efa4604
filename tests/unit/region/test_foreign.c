/* SPDX-License-Identifier: Apache-2.0 */
/* Files written elsewhere: bulk loads into a region, and files that HBase leaves in a family's
 * folder. */
#include "fixture.h"

#include "hfile/writer.h"
#include "region/bulk_load.h"
#include "region/filelist.h"
#include "vfs/vfs.h"

/* Writes a file of one put; with `replaced` (may be NULL) like the output of a compaction. */
static void write_file(fixture *f, const char *path, const char *row, const char *family,
                       int64_t ts, uint64_t seqid, const char *value, const char *replaced)
{
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *w;
    o.include_mvcc = seqid != 0;
    rq_cell c = cell_of(family, "q", ts, RQ_TYPE_PUT, value);
    c.row = (const uint8_t *)row;
    c.row_len = (uint16_t)strlen(row);
    c.seqid = seqid;
    assert_ok(rq_hfile_writer_open(f->env->vfs, path, &o, &w, NULL));
    assert_ok(rq_hfile_writer_append(w, &c, NULL));
    rq_slice name = rq_slice_cstr(replaced == NULL ? "" : replaced);
    if (replaced != NULL) assert_ok(rq_hfile_writer_set_store_info(w, seqid, true, &name, 1, NULL));
    assert_ok(rq_hfile_writer_finish(w, NULL, NULL));
    rq_hfile_writer_close(w);
}

static rq_err load(fixture *f, const char *family, const char *path, bool assign, bool *ret_loaded)
{
    rq_bulk_file file = {rq_slice_cstr(family), f->env->vfs, path, path};
    rq_bulk_load what = {.files = &file, .file_count = 1, .assign_seqid = assign};
    return rq_region_bulk_load(f->region, &what, ret_loaded, NULL);
}

static void a_load_is_ordered_between_the_writes_around_it(void **state)
{
    fixture f;
    bool loaded;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "before"));
    write_file(&f, "one", "r", "a", 5, 0, "loaded", NULL);
    assert_ok(load(&f, "a", "one", true, &loaded));
    assert_true(loaded);
    assert_string_equal(get(&f, "r", "a", "q"), "loaded");
    assert_ok(put(&f, "r", "a", "q", 5, "after"));
    for (int round = 0; round < 3; round++) {
        assert_string_equal(get(&f, "r", "a", "q"), "after");
        fixture_stop(&f, round == 0);
        fixture_start(&f);
    }
    fixture_close(&f);
}

/* The file's cells carry sequence ids of another region, far above this region's. */
static void a_load_without_a_number_of_its_own_can_be_overwritten(void **state)
{
    fixture f;
    bool loaded;
    fixture_open(&f, env_of(state), NULL, 0);
    write_file(&f, "one", "r", "a", 5, 1000000, "loaded", NULL);
    assert_ok(load(&f, "a", "one", false, &loaded));
    assert_true(loaded);
    assert_string_equal(get(&f, "r", "a", "q"), "loaded");
    assert_ok(put(&f, "r", "a", "q", 5, "after"));
    assert_string_equal(get(&f, "r", "a", "q"), "after");
    fixture_stop(&f, true);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "after");
    fixture_close(&f);
}

static void unsuitable_files_are_not_loaded(void **state)
{
    fixture f;
    bool loaded = true;
    rq_stat st;
    fixture_open(&f, env_of(state), NULL, 0);
    write_file(&f, "one", "r", "a", 5, 0, "v", NULL);
    assert_err(load(&f, "none", "one", true, &loaded), RQ_E_DO_NOT_RETRY);
    assert_false(loaded);
    assert_err(load(&f, "b", "one", true, &loaded), RQ_E_INVALID_HFILE);
    assert_err(load(&f, "a", "absent", true, &loaded), RQ_E_NOT_FOUND);
    assert_ok(rq_vfs_stat(f.env->vfs, "one", &st, NULL));
    assert_string_equal(read_text(&f, "", 0, true), "");
    fixture_close(&f);
}

/* A vfs that renames files as soon as they are linked: like a client that was killed, restarted,
 * and loads the file under a new name. */
static rq_err (*link_before)(rq_file *f, rq_vfs *to, const char *path, rq_error *why);

static rq_err link_and_rename(rq_file *f, rq_vfs *to, const char *path, rq_error *why)
{
    RQ_TRY(link_before(f, to, path, why));
    RQ_TRY(to->link(to, "one", "again", why));
    return to->remove(to, "one", why);
}

/* A vfs that loads a file once more while it is copied: like a client that was killed and
 * restarted. */
static rq_err (*identify_before)(rq_file *f, rq_file_id *ret, rq_error *why);
static fixture *loads_again;
static unsigned identified; /* number of calls: the check is the first, the copy the second */
static rq_err outcome_again;

static rq_err load_copied(fixture *f, const char *path, bool *ret_loaded)
{
    rq_bulk_file file = {RQ_SLICE_LIT("a"), f->env->vfs, path, path};
    rq_bulk_load what = {.files = &file, .file_count = 1, .assign_seqid = true, .copy = true};
    return rq_region_bulk_load(f->region, &what, ret_loaded, NULL);
}

static rq_err identify_and_load_again(rq_file *file, rq_file_id *ret, rq_error *why)
{
    bool loaded;
    fixture *f = loads_again;
    if (++identified < 2) return identify_before(file, ret, why);
    f->env->vfs->identify = identify_before;
    outcome_again = load_copied(f, "one", &loaded);
    assert_ok(load_copied(f, "other", &loaded));
    return identify_before(file, ret, why);
}

static void a_file_that_is_being_copied_is_not_loaded_again(void **state)
{
    fixture f;
    bool loaded;
    fixture_open(&f, env_of(state), NULL, 0);
    write_file(&f, "one", "r", "a", 5, 0, "v", NULL);
    write_file(&f, "other", "s", "a", 5, 0, "v", NULL);
    loads_again = &f;
    identify_before = f.env->vfs->identify;
    f.env->vfs->identify = identify_and_load_again;
    assert_ok(load_copied(&f, "one", &loaded));
    assert_true(loaded);
    assert_err(outcome_again, RQ_E_CONFLICT);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    assert_ok(load_copied(&f, "one", &loaded)); /* a later, intended load is allowed */
    fixture_close(&f);
}

static void a_file_that_is_renamed_while_it_is_loaded_is_loaded_once(void **state)
{
    fixture f;
    bool loaded = true;
    fixture_open(&f, env_of(state), NULL, 0);
    write_file(&f, "one", "r", "a", 5, 0, "v", NULL);
    link_before = f.env->vfs->link_file;
    f.env->vfs->link_file = link_and_rename;
    assert_err(load(&f, "a", "one", true, &loaded), RQ_E_CONFLICT);
    f.env->vfs->link_file = link_before;
    assert_false(loaded);
    assert_string_equal(read_text(&f, "", 0, true), "");
    assert_ok(load(&f, "a", "again", true, &loaded));
    assert_true(loaded);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    fixture_close(&f);
}

/* A sequence id near the maximum would leave the region no larger ids. */
static void a_file_whose_numbers_leave_no_room_is_not_loaded(void **state)
{
    static const uint64_t none_left[] = {INT64_MAX - 1, UINT64_C(1) << 62};
    fixture f;
    bool loaded = true;
    fixture_open(&f, env_of(state), NULL, 0);
    for (size_t i = 0; i < RQ_ARRAY_LEN(none_left); i++) {
        const char *path = rq_arena_printf(&f.arena, "file%zu", i);
        write_file(&f, path, "r", "a", 5, none_left[i], "loaded", i == 0 ? "x" : NULL);
        for (int assign = 0; assign < 2; assign++)
            assert_err(load(&f, "a", path, assign, &loaded), RQ_E_INVALID_HFILE);
    }
    assert_ok(put(&f, "r", "a", "q", 5, "after"));
    assert_string_equal(get(&f, "r", "a", "q"), "after");
    fixture_stop(&f, true);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "after");
    fixture_close(&f);
}

/* HBASE: HStoreFile.open: the sequence id in the name replaces the one in the file. */
static void a_loaded_file_has_the_number_of_its_name(void **state)
{
    static const family_def one[] = {{"a", {NULL}}};
    fixture f;
    fixture_open(&f, env_of(state), one, 1);
    assert_ok(put(&f, "r", "a", "q", 5, "after"));
    fixture_stop(&f, true);
    const char *path = rq_arena_printf(
        &f.arena, "data/default/t/%s/a/0000000000000000000000000000000a_SeqId_1_", f.info.encoded);
    write_file(&f, path, "r", "a", 5, 1000000, "loaded", "none");
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "after");
    assert_ok(put(&f, "r", "a", "q", 5, "later"));
    assert_string_equal(get(&f, "r", "a", "q"), "later");
    fixture_close(&f);
}

/* Compaction inputs that HBase had not yet archived would bring deleted cells back. */
static void inputs_of_a_compaction_that_still_lie_there_are_passed_over(void **state)
{
    static const family_def one[] = {{"a", {NULL}}};
    fixture f;
    rq_stat st;
    fixture_open(&f, env_of(state), one, 1);
    fixture_stop(&f, true);
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s/a", f.info.encoded);
    const char *input = rq_arena_printf(&f.arena, "%s/0000000000000000000000000000000a", dir);
    const char *output = rq_arena_printf(&f.arena, "%s/0000000000000000000000000000000b", dir);
    write_file(&f, input, "deleted", "a", 5, 3, "v", "none");
    write_file(&f, output, "r", "a", 5, 3, "v", "0000000000000000000000000000000a");
    fixture_start(&f);
    assert_string_equal(read_text(&f, "", 0, true), "r/a:q/5/Put=v\n");
    assert_err(rq_vfs_stat(f.env->vfs, input, &st, NULL), RQ_E_NOT_FOUND);
    const char *archived = rq_arena_printf(&f.arena, "archive/%s", input);
    assert_ok(rq_vfs_stat(f.env->vfs, archived, &st, NULL));
    fixture_close(&f);
}

static const family_def listed[] = {{"a", {"hbase.store.file-tracker.impl", "FILE", NULL}}};

static rq__filelist read_list(fixture *f)
{
    rq__filelist l;
    const char *dir = rq_arena_printf(&f->arena, "data/default/t/%s/a", f->info.encoded);
    assert_ok(rq__filelist_read(f->env->vfs, dir, &f->arena, &l, NULL));
    return l;
}

/* Two files, because a region that opens with three begins a compaction, which may end before the
 * stop. */
static void a_clean_stop_writes_the_list_of_the_file_tracker(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), listed, 1);
    for (int round = 0; round < 2; round++) {
        assert_ok(put(&f, "r", "a", "q", round + 1, "v"));
        fixture_stop(&f, true);
        rq__filelist l = read_list(&f);
        assert_int_equal(l.count, round + 1);
        assert_true(l.files[0].size > 0);
        rq_dir_entry *entries;
        size_t count;
        const char *dir =
            rq_arena_printf(&f.arena, "data/default/t/%s/a/.filelist", f.info.encoded);
        assert_ok(rq_vfs_list(f.env->vfs, dir, &f.arena, &entries, &count, NULL));
        assert_int_equal(count, 1);
        fixture_start(&f);
    }
    fixture_stop(&f, true);
    assert_int_equal(read_list(&f).count, 2); /* nothing has changed: the same list */
    fixture_start(&f);
    fixture_close(&f);
}

/* With this tracker HBase writes files in place, and a file counts once it is listed. */
static void only_listed_hbase_files_count(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), listed, 1);
    assert_ok(put(&f, "r", "a", "q", 1, "ours"));
    fixture_stop(&f, true);
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s/a", f.info.encoded);
    const char *one = rq_arena_printf(&f.arena, "%s/0000000000000000000000000000000a", dir);
    const char *two = rq_arena_printf(&f.arena, "%s/0000000000000000000000000000000b", dir);
    write_file(&f, one, "s", "a", 5, 30, "listed", NULL);
    write_file(&f, two, "t", "a", 5, 31, "not listed", NULL);
    const char *names[] = {NULL, "0000000000000000000000000000000a"};
    names[0] = rq_arena_cstr(&f.arena, read_list(&f).files[0].name);
    assert_ok(rq__filelist_write(f.env->vfs, dir, names, 2, true, 1, NULL));
    fixture_start(&f);
    assert_string_equal(read_text(&f, "", 0, true), "r/a:q/1/Put=ours\ns/a:q/5/Put=listed\n");
    /* Now the folder belongs to Rorqual again: a crash changes nothing, a clean stop writes the
     * list. */
    assert_ok(put(&f, "u", "a", "q", 1, "later"));
    fixture_stop(&f, true);
    assert_int_equal(read_list(&f).count, 3);
    rq_stat st;
    assert_err(rq_vfs_stat(f.env->vfs, two, &st, NULL), RQ_E_NOT_FOUND);
    /* An incomplete newer list is ignored; a damaged one is reported. */
    const char *torn = rq_arena_printf(&f.arena, "%s/.filelist/f2.99999999999999", dir);
    assert_ok(rq_vfs_write_new_file(f.env->vfs, torn, rq_slice_of("\0\0\0\x10x", 5), NULL));
    assert_int_equal(read_list(&f).count, 3);
    rq__filelist l;
    assert_ok(rq_vfs_remove(f.env->vfs, torn, NULL));
    assert_ok(rq_vfs_write_new_file(f.env->vfs, torn, rq_slice_of("\0\0\0\1xxxxx", 9), NULL));
    assert_err(rq__filelist_read(f.env->vfs, dir, &f.arena, &l, NULL), RQ_E_CORRUPT);
    assert_ok(rq_vfs_remove(f.env->vfs, torn, NULL));
    fixture_start(&f);
    fixture_close(&f);
}

static void remove_manifest(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        const char *slot = rq_arena_printf(&f->arena, ".rorqual/regions/%s.%d", f->info.encoded, i);
        (void)!rq_vfs_remove(f->env->vfs, slot, NULL);
    }
}

/* HBase, or a process killed before it had written a manifest, left the list: perhaps in the page cache only. */
static void without_a_manifest_no_list_counts_as_durable(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), listed, 1);
    assert_ok(put(&f, "r", "a", "q", 1, "v"));
    fixture_stop(&f, true);
    uint64_t number = read_list(&f).number;
    remove_manifest(&f);
    const rq_engine_options o = {.config = f.config};
    assert_ok(rq_engine_open(f.env, &o, &f.engine, NULL));
    assert_ok(rq_region_open(f.engine, &f.info, f.schema, &f.region, NULL));
    fixture_stop(&f, true);
    assert_true(read_list(&f).number > number);
    number = read_list(&f).number;
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    fixture_stop(&f, true);
    assert_int_equal(read_list(&f).number, number); /* a clean close has written it */
    fixture_start(&f);
    fixture_close(&f);
}

/* HBase 2.5 names its lists without a number, and 2.6 keeps such a list until it writes the next
 * one. */
static void a_list_without_a_number_is_the_oldest(void **state)
{
    fixture f;
    rq_slice bytes;
    fixture_open(&f, env_of(state), listed, 1);
    assert_ok(put(&f, "r", "a", "q", 1, "v"));
    fixture_stop(&f, true);
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s/a/.filelist", f.info.encoded);
    const char *ours =
        rq_arena_printf(&f.arena, "%s/f1.%llu", dir, (unsigned long long)read_list(&f).number);
    const char *theirs = rq_arena_printf(&f.arena, "%s/f2", dir);
    assert_ok(rq_vfs_read_file(f.env->vfs, ours, 4096, &f.arena, &bytes, NULL));
    assert_ok(rq_vfs_write_new_file(f.env->vfs, theirs, bytes, NULL));
    assert_true(read_list(&f).number > 0);
    assert_ok(rq_vfs_remove(f.env->vfs, ours, NULL));
    assert_int_equal(read_list(&f).number, 0);
    assert_int_equal(read_list(&f).count, 1);
    remove_manifest(&f); /* like HBase's folder: only the list determines which files exist */
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    assert_ok(put(&f, "s", "a", "q", 1, "v"));
    fixture_stop(&f, true);
    assert_int_equal(read_list(&f).count, 2);
    rq_stat st;
    assert_err(rq_vfs_stat(f.env->vfs, theirs, &st, NULL), RQ_E_NOT_FOUND);
    fixture_start(&f);
    fixture_close(&f);
}

static const family_def migrating[] = {
    {"a",
     {"hbase.store.file-tracker.impl", "MIGRATION", "hbase.store.file-tracker.migration.src.impl",
      "DEFAULT", "hbase.store.file-tracker.migration.dst.impl", "FILE", NULL}}};
static const family_def unlisted[] = {{"a", {NULL}}};

/* The region's next opening uses these families. */
static void alter(fixture *f, const family_def *families)
{
    fixture_stop(f, true);
    rq_table_schema_unref(f->schema);
    f->schema = make_schema("default", "t", families, 1);
    fixture_start(f);
}

/* A later tracker must not use a list left by an earlier tracker. */
static void another_tracker_believes_no_list_of_former_times(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), listed, 1);
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s/a", f.info.encoded);
    const family_def *const ways[] = {unlisted, listed, migrating, listed, unlisted, migrating};
    char rows[256] = "";
    for (size_t i = 0; i < RQ_ARRAY_LEN(ways); i++) {
        rq__filelist l;
        char row[2] = {(char)('a' + i), '\0'};
        assert_ok(put(&f, row, "a", "q", 1, "v"));
        alter(&f, ways[i]);
        strcat(strcat(rows, row), "/a:q/1/Put=v\n");
        assert_string_equal(read_text(&f, "", 1, false), rows);
        assert_ok(put(&f, row, "a", "q", 1, "v"));
        fixture_stop(&f, true);
        rq_err rc = rq__filelist_read(f.env->vfs, dir, &f.arena, &l, NULL);
        assert_string_equal(rq_err_name(rc), ways[i] == unlisted ? "RQ_E_NOT_FOUND" : "RQ_OK");
        fixture_start(&f);
        assert_string_equal(read_text(&f, "", 1, false), rows);
    }
    fixture_close(&f);
}

/* Clients can write to hbase:meta, and a table's name becomes a folder name. */
static void a_region_of_a_table_with_an_invalid_name_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"..", "t"},  {"default", ".."},  {".", "t"},
                                         {"a/b", "t"}, {"default", "t/r"}, {"default", "/"}};
    rq_arena a = {0};
    for (size_t i = 0; i <= RQ_ARRAY_LEN(bad); i++) {
        bool last = i == RQ_ARRAY_LEN(bad);
        rq_slice ns = last ? RQ_SLICE_LIT("default") : rq_slice_cstr(bad[i][0]);
        rq_slice name = last ? RQ_SLICE_LIT("t\0u") : rq_slice_cstr(bad[i][1]);
        rq_region_info info;
        rq_slice bytes;
        assert_ok(rq_region_info_make(&a, ns, name, (rq_slice){0}, (rq_slice){0}, 1, 0, &info));
        assert_ok(rq_region_info_serialize(&info, &a, &bytes));
        assert_int_equal(rq_region_info_parse(bytes, &a, &info, NULL), RQ_E_CORRUPT);
    }
    rq_arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, real_env_setup, real_env_teardown)
        T(a_load_is_ordered_between_the_writes_around_it),
        T(a_load_without_a_number_of_its_own_can_be_overwritten),
        T(unsuitable_files_are_not_loaded),
        T(a_file_that_is_being_copied_is_not_loaded_again),
        T(a_file_that_is_renamed_while_it_is_loaded_is_loaded_once),
        T(a_file_whose_numbers_leave_no_room_is_not_loaded),
        T(a_loaded_file_has_the_number_of_its_name),
        T(inputs_of_a_compaction_that_still_lie_there_are_passed_over),
        T(a_clean_stop_writes_the_list_of_the_file_tracker),
        T(only_listed_hbase_files_count),
        T(without_a_manifest_no_list_counts_as_durable),
        T(a_list_without_a_number_is_the_oldest),
        T(another_tracker_believes_no_list_of_former_times),
        cmocka_unit_test(a_region_of_a_table_with_an_invalid_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
