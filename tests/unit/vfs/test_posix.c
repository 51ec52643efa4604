/* SPDX-License-Identifier: Apache-2.0 */
#include "../base/unit.h"

#include "vfs/vfs.h"

#include <unistd.h>

static char root[64];

static int make_root(void **state)
{
    strcpy(root, "/tmp/rorqual-vfs-XXXXXX");
    if (mkdtemp(root) == NULL) return -1;
    rq_vfs *v;
    if (rq_vfs_posix_new(root, &v, NULL) != RQ_OK) return -1;
    *state = v;
    return 0;
}

static int remove_root(void **state)
{
    rq_vfs *v = *state;
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    int rc = rq_vfs_list(v, "", &arena, &entries, &count, NULL) == RQ_OK ? 0 : -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        if (rq_vfs_remove_tree(v, entries[i].name, NULL) != RQ_OK) rc = -1;
    rq_arena_clear(&arena);
    rq_vfs_free(v);
    return rc == 0 ? rmdir(root) : rc;
}

static rq_file *open_ok(rq_vfs *v, const char *path, int flags)
{
    rq_file *f;
    rq_error why = {0};
    if (rq_vfs_open(v, path, flags, &f, &why) != RQ_OK) fail_msg("%s", why.message);
    return f;
}

static void written_bytes_are_read_back(void **state)
{
    rq_vfs *v = *state;
    rq_file *f = open_ok(v, "a", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, "hello", 5, 3, NULL), RQ_OK);
    assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
    char buf[16];
    size_t len;
    assert_int_equal(rq_file_read(f, buf, sizeof buf, 0, &len, NULL), RQ_OK);
    assert_int_equal(len, 8);
    assert_memory_equal(buf, "\0\0\0hello", 8);
    assert_int_equal(rq_file_read(f, buf, sizeof buf, 100, &len, NULL), RQ_OK);
    assert_int_equal(len, 0);
    uint64_t size;
    assert_int_equal(rq_file_size(f, &size, NULL), RQ_OK);
    assert_int_equal(size, 8);
    assert_int_equal(rq_file_truncate(f, 4, NULL), RQ_OK);
    assert_int_equal(rq_file_size(f, &size, NULL), RQ_OK);
    assert_int_equal(size, 4);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

/* What was just written is cached; a short answer is the end of the file, else RQ_E_AGAIN. */
static void try_read_answers_whole_or_again(void **state)
{
    rq_vfs *v = *state;
    rq_file *f = open_ok(v, "a", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, "0123456789", 10, 0, NULL), RQ_OK);
    char buf[32];
    size_t len = 99;
    rq_err rc = rq_file_try_read(f, buf, 4, 2, &len);
    if (rc == RQ_OK) {
        assert_int_equal(len, 4);
        assert_memory_equal(buf, "2345", 4);
        assert_int_equal(rq_file_try_read(f, buf, sizeof buf, 6, &len), RQ_OK);
        assert_int_equal(len, 4);
    } else {
        assert_int_equal(rc, RQ_E_AGAIN); /* a file system without RWF_NOWAIT */
    }
    assert_int_equal(rq_file_close(f), RQ_OK);
}

static void errors_name_the_path(void **state)
{
    rq_vfs *v = *state;
    rq_file *f;
    rq_error why = {0};
    assert_int_equal(rq_vfs_open(v, "no/such", RQ_OPEN_READ, &f, &why), RQ_E_NOT_FOUND);
    assert_non_null(strstr(why.message, root));
    assert_non_null(strstr(why.message, "no/such"));
    f = open_ok(v, "there", RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL);
    assert_int_equal(rq_file_close(f), RQ_OK);
    assert_int_equal(
        rq_vfs_open(v, "there", RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &f, NULL),
        RQ_E_EXISTS);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "there/below", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_posix_new("/no/such/root", &v, NULL), RQ_E_NOT_FOUND);
}

static void no_path_leads_out_of_the_root(void **state)
{
    rq_vfs *v = *state;
    static const char *const bad[] = {"/etc/passwd", "..",  "../x", "a/../../x", "a/..",
                                      ".",           "./a", "a//b", "a/",        ""};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_file *f;
        assert_int_equal(rq_vfs_open(v, bad[i], RQ_OPEN_READ, &f, NULL), RQ_E_INVALID);
        assert_int_equal(rq_vfs_mkdir(v, bad[i], NULL), RQ_E_INVALID);
        assert_int_equal(rq_vfs_remove(v, bad[i], NULL), RQ_E_INVALID);
        assert_int_equal(rq_vfs_link(v, "a", bad[i], NULL), RQ_E_INVALID);
    }
}

static void folders_are_made_listed_and_removed(void **state)
{
    rq_vfs *v = *state;
    assert_int_equal(rq_vfs_mkdirs(v, "x/y/z", NULL), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "x/y/z", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "x/b", RQ_SLICE_LIT("bytes"), NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "x/b", RQ_SLICE_LIT("bytes"), NULL), RQ_E_EXISTS);
    assert_int_equal(rq_vfs_link(v, "x/b", "x/a", NULL), RQ_OK);
    assert_int_equal(rq_vfs_link(v, "x/b", "x/a", NULL), RQ_E_EXISTS);
    assert_int_equal(rq_vfs_mkdirs(v, "x/b/c", NULL), RQ_E_EXISTS);
    assert_int_equal(rq_vfs_link(v, "x/b", "x/c", NULL), RQ_OK);
    assert_int_equal(rq_vfs_move(v, "x/c", "to/here/d", NULL), RQ_OK);
    assert_int_equal(rq_vfs_move(v, "x/c", "to/here/d", NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_move(v, "to/here/d", "d", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove(v, "d", NULL), RQ_OK);
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(v, "x", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, 3);
    assert_string_equal(entries[0].name, "a");
    assert_false(entries[0].is_dir);
    assert_string_equal(entries[2].name, "y");
    assert_true(entries[2].is_dir);
    rq_slice bytes;
    assert_int_equal(rq_vfs_read_file(v, "x/a", 5, &arena, &bytes, NULL), RQ_OK);
    assert_true(rq_slice_eq(bytes, RQ_SLICE_LIT("bytes")));
    assert_int_equal(rq_vfs_read_file(v, "x/a", 4, &arena, &bytes, NULL), RQ_E_INVALID);
    assert_int_equal(rq_vfs_remove(v, "x", NULL), RQ_E_EXISTS);
    assert_int_equal(rq_vfs_remove_tree(v, "x", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(v, "x", NULL), RQ_OK);
    assert_int_equal(rq_vfs_list(v, "x", &arena, &entries, &count, NULL), RQ_E_NOT_FOUND);
    rq_arena_clear(&arena);
}

static void removing_a_tree_follows_no_link(void **state)
{
    rq_vfs *v = *state;
    rq_stat st;
    char at[128];
    char to[128];
    assert_int_equal(rq_vfs_mkdirs(v, "mine/below", NULL), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "other", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "other/file", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    snprintf(to, sizeof to, "%s/other", root);
    snprintf(at, sizeof at, "%s/mine/below/link", root);
    assert_int_equal(symlink(to, at), 0);
    snprintf(at, sizeof at, "%s/link", root);
    assert_int_equal(symlink(to, at), 0);
    snprintf(at, sizeof at, "%s/mine/nowhere", root);
    assert_int_equal(symlink("/no/such/folder", at), 0);
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(v, "mine", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, 2);
    assert_true(entries[0].is_dir && !entries[0].is_link); /* below */
    assert_true(!entries[1].is_dir && entries[1].is_link); /* nowhere */
    assert_int_equal(rq_vfs_list(v, "mine/below", &arena, &entries, &count, NULL), RQ_OK);
    assert_true(entries[0].is_dir && entries[0].is_link);
    rq_arena_clear(&arena);
    assert_int_equal(rq_vfs_remove_tree(v, "mine", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(v, "link", NULL), RQ_OK);
    assert_int_equal(rq_vfs_stat(v, "mine", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_stat(v, "link", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_stat(v, "other/file", &st, NULL), RQ_OK);
}

static void a_lock_excludes_and_names_its_holder(void **state)
{
    rq_vfs *v = *state;
    rq_file *lock, *other;
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    rq_error why = {0};
    assert_int_equal(rq_vfs_lock(v, "lock", &other, &why), RQ_E_LOCKED);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(why.message, pid));
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, "lock", &other, NULL), RQ_OK);
    assert_int_equal(rq_file_close(other), RQ_OK);
}

#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(written_bytes_are_read_back),
        IN_ROOT(try_read_answers_whole_or_again),
        IN_ROOT(errors_name_the_path),
        IN_ROOT(no_path_leads_out_of_the_root),
        IN_ROOT(folders_are_made_listed_and_removed),
        IN_ROOT(removing_a_tree_follows_no_link),
        IN_ROOT(a_lock_excludes_and_names_its_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
