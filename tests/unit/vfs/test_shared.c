/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared folder on a real file system, with real threads and clocks: bad names, damaged files,
 * and a writer in a separate process that is stopped, continued and killed while another process
 * revokes its tenure. ROUNDS=n rounds of each kind (default 1; a round takes one second, the
 * duration of the lease).
 */
#include "shared_rounds.h"

#include <unistd.h>

static void door_open(door *d, const char *folder)
{
    rounds_executor(d);
    assert_int_equal(rq_vfs_posix_new(folder, &d->vfs, NULL), RQ_OK);
    assert_int_equal(rq_shared_posix_new(d->vfs, d->executor, NULL, NULL, &d->shared), RQ_OK);
}

static void door_close(door *d)
{
    rq_shared_free(d->shared);
    rq_vfs_free(d->vfs);
    rq_thread_executor_free(d->executor);
}

static void make_folder(char path[static 64])
{
    strcpy(path, "/tmp/rq-shared-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static void remove_folder(door *d, const char *path)
{
    assert_int_equal(rq_vfs_remove_tree(d->vfs, "tenure", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(d->vfs, "object", NULL), RQ_OK);
    door_close(d);
    assert_int_equal(rmdir(path), 0);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    char folder[64], longest[RQ_SHARED_NAME_MAX + 2];
    door d;
    uint64_t n;
    make_folder(folder);
    door_open(&d, folder);
    memset(longest, 'a', sizeof longest);
    longest[RQ_SHARED_NAME_MAX + 1] = '\0';
    const char *bad[] = {"", ".", "..", "a/b", "a b", "a\n", "\xc3\xa4", longest};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_tenure *t;
        assert_int_equal(rq_tenure_begin(d.shared, bad[i], &t, NULL), RQ_E_INVALID);
        assert_int_equal(rq_object_cas(d.shared, bad[i], 0, RQ_SLICE_LIT("x"), &n, NULL),
                         RQ_E_INVALID);
        assert_int_equal(rq_set_put(d.shared, "set", bad[i], NULL), RQ_E_INVALID);
    }
    longest[RQ_SHARED_NAME_MAX] = '\0';
    assert_int_equal(rq_object_cas(d.shared, longest, 0, RQ_SLICE_LIT("x"), &n, NULL), RQ_OK);
    remove_folder(&d, folder);
}

static void damage_is_reported_and_not_overwritten(void **state)
{
    (void)state;
    char folder[64];
    door d;
    uint64_t n;
    rq_arena arena = {0};
    rq_slice found;
    rq_file *f;
    rq_error why = {.code = RQ_OK};
    make_folder(folder);
    door_open(&d, folder);
    assert_int_equal(rq_object_cas(d.shared, "o", 0, RQ_SLICE_LIT("bytes"), &n, NULL), RQ_OK);
    assert_int_equal(rq_vfs_open(d.vfs, "object/o/1", RQ_OPEN_WRITE, &f, NULL), RQ_OK);
    assert_int_equal(rq_file_write(f, "X", 1, 40, NULL), RQ_OK);
    rq_file_close(f);
    assert_int_equal(rq_object_get(d.shared, "o", &arena, &found, &n, &why), RQ_E_CORRUPT);
    assert_non_null(strstr(why.message, "object/o/1"));
    assert_int_equal(rq_object_cas(d.shared, "o", 1, RQ_SLICE_LIT("y"), &n, NULL), RQ_E_CORRUPT);
    rq_arena_clear(&arena);
    remove_folder(&d, folder);
}

/* --- processes ------------------------------------------------------------------------------ */

/* Runs on a temporary folder. */
static void in_a_folder(void (*run)(const rounds *r))
{
    char folder[64];
    door d;
    make_folder(folder);
    run(&(rounds){.where = folder, .open = door_open, .close = door_close, .revoke_waits = true});
    door_open(&d, folder);
    remove_folder(&d, folder);
}

static void run_stopped(const rounds *r)
{
    rounds_run(r, ROUND_STOPPED);
}

static void run_killed(const rounds *r)
{
    rounds_run(r, ROUND_KILLED);
}

static void run_running(const rounds *r)
{
    rounds_run(r, ROUND_RUNNING);
}

static void a_stopped_writer_is_revoked_and_ends_when_it_continues(void **state)
{
    (void)state;
    in_a_folder(run_stopped);
}

static void a_killed_writer_loses_nothing_acknowledged(void **state)
{
    (void)state;
    in_a_folder(run_killed);
}

static void a_running_writer_ends_when_it_is_revoked(void **state)
{
    (void)state;
    in_a_folder(run_running);
}

static void swaps_of_several_processes_are_counted_once_each(void **state)
{
    (void)state;
    in_a_folder(rounds_swap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(damage_is_reported_and_not_overwritten),
        cmocka_unit_test(a_stopped_writer_is_revoked_and_ends_when_it_continues),
        cmocka_unit_test(a_killed_writer_loses_nothing_acknowledged),
        cmocka_unit_test(a_running_writer_ends_when_it_is_revoked),
        cmocka_unit_test(swaps_of_several_processes_are_counted_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
