/* SPDX-License-Identifier: Apache-2.0 */
/* The state of transfers that can be continued: plans with their marks, and the journal of a load.
 * Marks without a plan and torn last lines are ignored; other commands are refused. */
#include "unit.h"

#include "transfer/bulk_work.h"
#include "transfer/load_journal.h"
#include "vfs/memory.h"
#include "vfs/sim.h"

static const char *const parts[] = {"0 10 a", "10 20 a"};

static rq_vfs *memory(void)
{
    rq_vfs *v;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    return v;
}

static void put(rq_vfs *v, const char *path, const char *text)
{
    assert_int_equal(rq_vfs_write_new_file(v, path, rq_slice_cstr(text), NULL), RQ_OK);
}

static void a_plan_goes_on(void **state)
{
    rq_vfs *v = memory();
    rq__plan p;
    rq_slice counts;
    rq_error why = {.code = RQ_OK};
    (void)state;
    assert_int_equal(rq__plan_open(v, "f", "x=1", parts, 2, true, &p, &why), RQ_OK);
    assert_false(p.is_resumed);
    assert_int_equal(rq__plan_note_done(&p, 1, "rows 7\n", &why), RQ_OK);
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "f", "x=1", parts, 2, true, &p, &why), RQ_OK);
    assert_true(p.is_resumed && !p.is_done[0] && p.is_done[1] && p.done == 1);
    assert_int_equal(rq__plan_counts_of(&p, 1, &counts, &why), RQ_OK);
    assert_true(rq_slice_eq(counts, RQ_SLICE_LIT("rows 7\n")));
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "f", "x=2", parts, 2, true, &p, &why), RQ_E_CONFLICT);
    assert_non_null(strstr(why.message, "x=1"));
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "f", "x=1", parts, 1, true, &p, &why), RQ_E_CONFLICT);
    rq__plan_close(&p);
    rq_vfs_free(v);
}

static void marks_without_a_plan_are_left_over(void **state)
{
    rq_vfs *v = memory();
    rq__plan p;
    rq_error why = {.code = RQ_OK};
    (void)state;
    assert_int_equal(rq_vfs_mkdirs(v, "f", NULL), RQ_OK);
    put(v, "f/00001", "rows 7\n");
    put(v, "f/step", "loaded 1 1 1\n");
    assert_int_equal(rq__plan_open(v, "f", "x=1", parts, 2, true, &p, &why), RQ_OK);
    assert_int_equal(p.done, 0);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "f/step", &st, NULL), RQ_E_NOT_FOUND);
    rq__plan_close(&p);
    rq_vfs_free(v);
}

static void a_work_folder_knows_its_step(void **state)
{
    rq_vfs *v = memory();
    rq__files files = {0};
    rq__file_part list[] = {{"a", 0, 10, 5}, {"a", 10, 20, 5}};
    rq__bulk_work w;
    rq__runs runs;
    rq_error why = {.code = RQ_OK};
    (void)state;
    files.parts = list;
    files.part_count = 2;
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_int_equal(rq__work_note_part(&w, 0, 5, 10, 2, &why), RQ_OK);
    assert_int_equal(rq__work_note_part(&w, 1, 1, 2, 1, &why), RQ_OK);
    assert_int_equal(rq__work_set_place(&w, "file:/x", &why), RQ_OK);
    rq__work_close(&w);
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_int_equal(w.step, RQ__BULK_SORTING);
    assert_string_equal(w.place, "file:/x");
    assert_int_equal(rq__work_list_runs(&w, &runs, &why), RQ_OK);
    assert_true(runs.count == 3 && runs.names[1].number == 1 && runs.names[2].part == 1);
    assert_true(w.rows == 6 && w.cells == 12);
    w.files = 4;
    assert_int_equal(rq__work_set_step(&w, RQ__BULK_MERGED, &why), RQ_OK);
    rq__runs_clear(&runs);
    rq__work_close(&w);
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_true(w.step == RQ__BULK_MERGED && w.files == 4 && w.rows == 6);
    rq__work_close(&w);
    list[1].time_ms = 6; /* the file was changed */
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_E_CONFLICT);
    rq__work_close(&w);
    list[1].time_ms = 5;
    assert_int_equal(rq_vfs_remove(v, "w/step", NULL), RQ_OK);
    put(v, "w/step", "lo");
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_E_CORRUPT);
    rq__work_close(&w);
    rq_arena_clear(&files.arena);
    rq_vfs_free(v);
}

/* The folder is removed in the order of names. Whatever remains after a kill, the load is not
 * repeated. */
static void a_removal_that_was_killed_goes_on(void **state)
{
    static const char *const gone[] = {"w/00000", "w/place", "w/plan"};
    rq_vfs *v = memory();
    rq__files files = {0};
    rq__file_part list[] = {{"a", 0, 10, 5}};
    rq__bulk_work w;
    rq_error why = {.code = RQ_OK};
    (void)state;
    files.parts = list;
    files.part_count = 1;
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_int_equal(rq__work_note_part(&w, 0, 5, 10, 2, &why), RQ_OK);
    assert_int_equal(rq__work_set_place(&w, "file:/x", &why), RQ_OK);
    w.rows = 5;
    assert_int_equal(rq__work_set_step(&w, RQ__BULK_MERGED, &why), RQ_OK);
    assert_int_equal(rq__work_set_step(&w, RQ__BULK_LOADED, &why), RQ_OK);
    rq__work_close(&w);
    for (size_t i = 0; i < RQ_ARRAY_LEN(gone); i++) {
        assert_int_equal(rq_vfs_remove(v, gone[i], NULL), RQ_OK);
        assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
        assert_true(w.step == RQ__BULK_LOADED && w.rows == 5 && w.plan.is_resumed);
        assert_int_equal(w.is_over, i == 2);
        rq__work_close(&w);
    }
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=2", &files, &w, &why), RQ_OK);
    assert_true(w.step == RQ__BULK_SORTING && !w.plan.is_resumed);
    rq__work_close(&w);
    rq_arena_clear(&files.arena);
    rq_vfs_free(v);
}

/* After the kill the input was replaced by another one of the same size. */
static void a_removal_that_was_killed_is_of_its_input(void **state)
{
    rq_vfs *v = memory();
    rq__files files = {0};
    rq__file_part list[] = {{"a", 0, 10, 5}};
    rq__bulk_work w;
    rq_error why = {.code = RQ_OK};
    (void)state;
    files.parts = list;
    files.part_count = 1;
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_int_equal(rq__work_set_step(&w, RQ__BULK_LOADED, &why), RQ_OK);
    rq__work_close(&w);
    assert_int_equal(rq_vfs_remove(v, "w/plan", NULL), RQ_OK);
    list[0].time_ms = 6;
    assert_int_equal(rq__work_open(NULL, v, "/v", "w", "x=1", &files, &w, &why), RQ_OK);
    assert_true(w.step == RQ__BULK_SORTING && !w.is_over);
    rq__work_close(&w);
    rq_arena_clear(&files.arena);
    rq_vfs_free(v);
}

/* Killed at any file-system call: the file has the old or the new content. */
static void a_small_file_is_replaced_at_once(void **state)
{
    (void)state;
    uint64_t calls = 1;
    for (uint64_t k = 0; k <= calls; k++) {
        rq_sim *sim;
        rq_slice text;
        rq_arena a = {0};
        rq_error why = {.code = RQ_OK};
        assert_int_equal(rq_sim_new(7, NULL, &sim), RQ_OK);
        rq_vfs *v = rq_sim_env(sim)->vfs;
        assert_int_equal(rq__put_file(v, "x", RQ_SLICE_LIT("old"), &why), RQ_OK);
        uint64_t before = rq_sim_calls(sim);
        if (k > 0) rq_sim_fail_at(sim, before + k, RQ_E_IO);
        rq_err rc = rq__put_file(v, "x", RQ_SLICE_LIT("new"), &why);
        assert_true(rc == RQ_OK || k > 0);
        if (k == 0) calls = rq_sim_calls(sim) - before;
        assert_int_equal(rq__complete_file(v, "x", &why), RQ_OK);
        assert_int_equal(rq_vfs_read_file(v, "x", 100, &a, &text, &why), RQ_OK);
        assert_true(rq_slice_eq(text, RQ_SLICE_LIT("new")) ||
                    (k > 0 && rq_slice_eq(text, RQ_SLICE_LIT("old"))));
        rq_arena_clear(&a);
        rq_sim_free(sim);
    }
    assert_true(calls > 3);
}

static rq__journal_line line_of(const char *path, rq__load_state state)
{
    return (rq__journal_line){.path = path, .state = state, .size = 7, .mtime_ms = 1000};
}

static rq_err note(rq__load_journal *j, const char *path, rq__load_state state)
{
    const rq__journal_line line = line_of(path, state);
    rq_error why = {.code = RQ_OK};
    return rq__journal_note(j, &line, 1, &why);
}

static void a_journal_goes_on(void **state)
{
    rq_vfs *v = memory();
    rq__load_journal j;
    rq_error why = {.code = RQ_OK};
    const rq__journal_line called[] = {line_of("cf/a", RQ__LOAD_CALLED),
                                       line_of("cf/b", RQ__LOAD_CALLED),
                                       line_of("cf/c", RQ__LOAD_CALLED)};
    rq__journal_line divided = line_of("cf/c", RQ__LOAD_DIVIDED);
    divided.pieces = 2;
    (void)state;
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_false(j.is_resumed);
    assert_int_equal(rq__journal_note(&j, called, 3, &why), RQ_OK);
    assert_int_equal(note(&j, "cf/b", RQ__LOAD_DONE), RQ_OK);
    assert_int_equal(rq__journal_note(&j, &divided, 1, &why), RQ_OK);
    rq__journal_close(&j);
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_true(j.is_resumed);
    assert_int_equal(rq__journal_state(&j, "cf/a"), RQ__LOAD_CALLED);
    assert_int_equal(rq__journal_state(&j, "cf/b"), RQ__LOAD_DONE);
    assert_int_equal(rq__journal_state(&j, "cf/c"), RQ__LOAD_DIVIDED);
    assert_int_equal(rq__journal_state(&j, "cf"), RQ__LOAD_NEW);
    assert_int_equal(rq__journal_state(&j, "cf/d"), RQ__LOAD_NEW);
    assert_int_equal(note(&j, "cf/a", RQ__LOAD_DONE), RQ_OK);
    /* another file with the same name */
    assert_int_equal(note(&j, "cf/b", RQ__LOAD_CALLED), RQ_OK);
    rq__journal_close(&j);
    assert_int_equal(rq__journal_open(v, "t=2", &j, &why), RQ_E_CONFLICT);
    rq__journal_close(&j);
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_int_equal(rq__journal_state(&j, "cf/a"), RQ__LOAD_DONE);
    assert_int_equal(rq__journal_state(&j, "cf/b"), RQ__LOAD_CALLED);
    assert_int_equal(note(&j, "cf/\n", RQ__LOAD_DONE), RQ_E_INVALID);
    rq__journal_close(&j);
    rq_vfs_free(v);
}

static void a_torn_line_does_not_count(void **state)
{
    rq_vfs *v = memory();
    rq__load_journal j;
    rq_error why = {.code = RQ_OK};
    (void)state;
    put(v, "_rorqual_load", "rorqual load 3\nfor t=1\ncall 7 1000 cf/a\ndone 7 1000 cf/a");
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_int_equal(rq__journal_state(&j, "cf/a"), RQ__LOAD_CALLED);
    assert_int_equal(note(&j, "cf/b", RQ__LOAD_CALLED), RQ_OK);
    rq__journal_close(&j);
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_int_equal(rq__journal_state(&j, "cf/a"), RQ__LOAD_CALLED);
    assert_int_equal(rq__journal_state(&j, "cf/b"), RQ__LOAD_CALLED);
    rq__journal_close(&j);
    rq_vfs_free(v);
}

static void divided_files_know_their_pieces(void **state)
{
    rq_vfs *v = memory();
    rq__load_journal j;
    rq_error why = {.code = RQ_OK};
    rq__journal_line divided = line_of("cf/1 a", RQ__LOAD_DIVIDED);
    divided.pieces = 1000000;
    (void)state;
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_int_equal(note(&j, "cf/1 a", RQ__LOAD_CALLED), RQ_OK);
    assert_int_equal(rq__journal_note(&j, &divided, 1, &why), RQ_OK);
    rq__journal_close(&j);
    assert_int_equal(rq__journal_open(v, "t=1", &j, &why), RQ_OK);
    assert_int_equal(j.count, 2);
    assert_false(rq__journal_is_last(&j, 0));
    assert_true(rq__journal_is_last(&j, 1));
    assert_string_equal(j.lines[1].path, "cf/1 a");
    assert_int_equal(j.lines[1].state, RQ__LOAD_DIVIDED);
    assert_int_equal(j.lines[1].pieces, 1000000);
    assert_int_equal(j.lines[1].size, 7);
    assert_int_equal(j.lines[1].mtime_ms, 1000);
    rq__journal_close(&j);
    rq_vfs_free(v);
}

static void other_journals_are_refused(void **state)
{
    static const struct {
        const char *text;
        rq_err rc;
    } bad[] = {
        {"", RQ_E_CORRUPT},
        {"rorqual load 3\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\nmoved 7 1000 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ncall 7 1000 a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ndivided 7 1000 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ndivided 0 7 1000 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ndivided 2 7 1000\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ndivided 99999999999999999999 7 1000 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ncall cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ncall 7 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 3\nfor t=1\ncall 99999999999999999999 1000 cf/a\n", RQ_E_CORRUPT},
        {"rorqual load 2\nfor t=1\ncall cf/a\n", RQ_E_VERSION},
        {"rorqual load 1\nfor t=1\ncall cf/a\n", RQ_E_VERSION}};
    rq__load_journal j;
    rq_error why = {.code = RQ_OK};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rq_vfs *v = memory();
        put(v, "_rorqual_load", bad[i].text);
        assert_int_equal(rq__journal_open(v, "t=1", &j, &why), bad[i].rc);
        rq__journal_close(&j);
        rq_vfs_free(v);
    }
}

static void a_folders_name_fits_any_table(void **state)
{
    rq_arena a = {0};
    char table[512];
    (void)state;
    assert_string_equal(rq__plan_name(&a, "import", "ns:t"), "import-ns:t");
    for (size_t len = 240; len < sizeof table; len++) {
        memset(table, 'n', len);
        table[len] = '\0';
        const char *name = rq__plan_name(&a, "bulkload", table);
        assert_true(strlen(name) <= RQ_NAME_MAX);
        table[len - 1] = 'm'; /* another table's */
        assert_string_not_equal(name, rq__plan_name(&a, "bulkload", table));
    }
    rq_arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_goes_on),
        cmocka_unit_test(marks_without_a_plan_are_left_over),
        cmocka_unit_test(a_folders_name_fits_any_table),
        cmocka_unit_test(a_work_folder_knows_its_step),
        cmocka_unit_test(a_removal_that_was_killed_goes_on),
        cmocka_unit_test(a_removal_that_was_killed_is_of_its_input),
        cmocka_unit_test(a_small_file_is_replaced_at_once),
        cmocka_unit_test(a_journal_goes_on),
        cmocka_unit_test(a_torn_line_does_not_count),
        cmocka_unit_test(divided_files_know_their_pieces),
        cmocka_unit_test(other_journals_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
