/* SPDX-License-Identifier: Apache-2.0 */
/* The file system on real files (vfs/posix.c). */
#include "../base/unit.h"
#include "../base/forbid.h"

#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
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

/* Bytes just written are cached; a short result is the end of the file, otherwise RQ_E_AGAIN. */
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

/* More names, and longer ones, than one call of the kernel returns. */
static void a_large_folder_is_listed(void **state)
{
    enum { COUNT = 400 };
    rq_vfs *v = *state;
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    char path[RQ_NAME_MAX + 8], name[RQ_NAME_MAX + 1];
    assert_int_equal(rq_vfs_mkdir(v, "x", NULL), RQ_OK);
    assert_int_equal(rq_vfs_list(v, "x", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, 0);
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "x/%0*d", 3 + i * (RQ_NAME_MAX - 3) / COUNT, i);
        if (i % 7 == 0)
            assert_int_equal(rq_vfs_mkdir(v, path, NULL), RQ_OK);
        else
            assert_int_equal(rq_file_close(open_ok(v, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE)),
                             RQ_OK);
    }
    assert_int_equal(rq_vfs_list(v, "x", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, COUNT);
    bool seen[COUNT] = {false};
    for (size_t k = 0; k < count; k++) {
        int i = atoi(entries[k].name);
        assert_in_range(i, 0, COUNT - 1);
        snprintf(name, sizeof name, "%0*d", 3 + i * (RQ_NAME_MAX - 3) / COUNT, i);
        assert_string_equal(entries[k].name, name);
        assert_int_equal(entries[k].is_dir, i % 7 == 0);
        assert_false(entries[k].is_link || seen[i]);
        seen[i] = true;
    }
    rq_arena_clear(&arena);
}

/* Removed after it was opened, a folder has no entries any more. */
static void a_folder_that_is_removed_is_empty(void **state)
{
    (void)state;
    char path[] = "/tmp/rorqual-vfs-XXXXXX";
    rq_vfs *v;
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count = 1;
    assert_non_null(mkdtemp(path));
    assert_int_equal(rq_vfs_posix_new(path, &v, NULL), RQ_OK);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rq_vfs_list(v, "", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, 0);
    rq_vfs_free(v);
}

static int last_advice = -1;

int __wrap_posix_fadvise64(int fd, off_t off, off_t len, int advice);
int __real_posix_fadvise64(int fd, off_t off, off_t len, int advice);

int __wrap_posix_fadvise64(int fd, off_t off, off_t len, int advice)
{
    last_advice = advice;
    return __real_posix_fadvise64(fd, off, len, advice);
}

/* Advice is given before any kind of read, because the kernel may read ahead in each. */
static void advice_is_given_before_reads(void **state)
{
    rq_vfs *v = *state;
    char byte;
    size_t len;
    rq_file *f = open_ok(v, "a", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, "0123456789", 10, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_close(f), RQ_OK);
    f = open_ok(v, "a", RQ_OPEN_READ | RQ_OPEN_RANDOM);
    (void)!rq_file_try_read(f, &byte, 1, 0, &len);
    assert_int_equal(last_advice, POSIX_FADV_RANDOM);
    rq_file_in_sequence(f, true);
    assert_int_equal(rq_file_read(f, &byte, 1, 0, &len, NULL), RQ_OK);
    assert_int_not_equal(last_advice, POSIX_FADV_RANDOM);
    rq_file_in_sequence(f, false);
    assert_int_equal(rq_file_read(f, &byte, 1, 0, &len, NULL), RQ_OK);
    assert_int_equal(last_advice, POSIX_FADV_RANDOM);
    last_advice = -1;
    assert_int_equal(rq_file_read(f, &byte, 1, 0, &len, NULL), RQ_OK);
    assert_int_equal(last_advice, -1);
    assert_int_equal(rq_file_close(f), RQ_OK);
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
    assert_true(entries[0].is_dir && !entries[0].is_link); /* mine/below is a folder */
    assert_true(!entries[1].is_dir && entries[1].is_link); /* mine/nowhere is a dangling link */
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

/* The lock file of a running server may be removed or replaced: the root is locked too. */
static void a_lock_outlives_its_file(void **state)
{
    rq_vfs *v = *state;
    rq_vfs *again;
    rq_file *lock, *other;
    assert_int_equal(rq_vfs_posix_new(root, &again, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove(v, "lock", NULL), RQ_OK);
    rq_error why = {0};
    assert_int_equal(rq_vfs_lock(again, NULL, &other, &why), RQ_E_LOCKED);
    assert_non_null(strstr(why.message, "another process"));
    assert_int_equal(rq_vfs_lock(again, "lock", &other, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(again, NULL, &other, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(other), RQ_OK);
    rq_vfs_free(again);
}

/* Forks a child that lives until the pipe is closed; returns once the child has begun. */
static pid_t fork_a_child(int keeps[2])
{
    int begun[2];
    char byte = 0;
    assert_int_equal(pipe(begun), 0);
    pid_t child = fork();
    if (child == 0) {
        close(keeps[1]);
        if (write(begun[1], "x", 1) == 1) (void)!read(keeps[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(read(begun[0], &byte, 1), 1);
    close(begun[0]);
    close(begun[1]);
    return child;
}

static void a_child_keeps_no_lock(void **state)
{
    rq_vfs *v = *state;
    rq_vfs *again;
    rq_file *lock, *other;
    int keeps[2], status;
    assert_int_equal(rq_vfs_posix_new(root, &again, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(pipe(keeps), 0);
    pid_t child = fork_a_child(keeps);
    assert_int_equal(rq_vfs_lock(again, "lock", &other, NULL),
                     RQ_E_LOCKED); /* the parent's lock remains */
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(again, "lock", &other, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, NULL, &lock, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(other), RQ_OK);
    close(keeps[0]);
    close(keeps[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    rq_vfs_free(again);
}

/* The process that locked the root has ended, its child has not. */
static void an_orphan_keeps_no_lock(void **state)
{
    rq_vfs *v = *state;
    rq_file *lock = NULL;
    int keeps[2], status;
    assert_int_equal(pipe(keeps), 0);
    pid_t parent = fork();
    if (parent == 0) {
        rq_file *theirs;
        if (rq_vfs_lock(v, "lock", &theirs, NULL) != RQ_OK) _exit(1);
        (void)fork_a_child(keeps);
        _exit(0); /* exits without closing, as after kill -9 */
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    close(keeps[0]);
    close(keeps[1]);
}

/* A child that closes its copy of a lock releases neither the parent's lock nor a file of the child's that was given
 * the same descriptor number. */
static void a_child_closes_nothing_of_others(void **state)
{
    rq_vfs *v = *state;
    rq_file *lock, *other;
    int status;
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    pid_t child = fork();
    if (child == 0) {
        int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
        bool good = rq_file_close(lock) == RQ_OK && fcntl(first, F_GETFD) >= 0 &&
                    fcntl(second, F_GETFD) >= 0;
        pid_t grandchild = fork(); /* the fork handler finds an empty list */
        if (grandchild == 0) _exit(fcntl(first, F_GETFD) >= 0 ? 0 : 1);
        good = waitpid(grandchild, &status, 0) == grandchild && status == 0 && good;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rq_vfs_lock(v, NULL, &other, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(lock), RQ_OK);
}

/* Versions before the root's lock only locked the file. */
static void a_lock_of_the_file_alone_counts(void **state)
{
    rq_vfs *v = *state;
    rq_file *lock;
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char at[128];
    snprintf(at, sizeof at, "%s/lock", root);
    int fd = open(at, O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, "4711\n", 5), 5);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    rq_error why = {0};
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, &why), RQ_E_LOCKED);
    assert_non_null(strstr(why.message, "process 4711"));
    close(fd);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_file_close(lock), RQ_OK);
}

static void a_lock_file_that_is_none_is_named(void **state)
{
    rq_vfs *v = *state;
    rq_file *lock;
    char at[128];
    snprintf(at, sizeof at, "%s/lock", root);
    assert_int_equal(mkfifo(at, 0600), 0);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_E_CORRUPT);
    assert_int_equal(unlink(at), 0);
    assert_int_equal(symlink("elsewhere", at), 0);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_E_CORRUPT);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "elsewhere", &st, NULL), RQ_E_NOT_FOUND);
}

/* Opening never blocks, and only regular files are opened, for any purpose. */
static void only_regular_files_are_opened(void **state)
{
    rq_vfs *v = *state;
    char at[128];
    snprintf(at, sizeof at, "%s/fifo", root);
    assert_int_equal(mkfifo(at, 0600), 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", root);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&name, sizeof name), 0);
    close(s);
    assert_int_equal(rq_vfs_mkdir(v, "folder", NULL), RQ_OK);
    static const char *const links[][2] = {
        {"zero", "/dev/zero"}, {"to-fifo", "fifo"}, {"loop", "loop"}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(links); i++) {
        snprintf(at, sizeof at, "%s/%s", root, links[i][0]);
        assert_int_equal(symlink(links[i][1], at), 0);
    }
    static const char *const bad[] = {"fifo", "socket", "folder", "zero", "to-fifo", "loop"};
    static const int flags[] = {RQ_OPEN_READ, RQ_OPEN_READ | RQ_OPEN_BENEATH, RQ_OPEN_WRITE,
                                RQ_OPEN_WRITE | RQ_OPEN_CREATE};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++)
        for (size_t k = 0; k < RQ_ARRAY_LEN(flags); k++) {
            rq_file *f;
            rq_error why = {0};
            rq_err rc = rq_vfs_open(v, bad[i], flags[k], &f, &why);
            bool is_link = i > 2 && (flags[k] & RQ_OPEN_BENEATH) != 0;
            rq_err expected = is_link ? RQ_E_PERMISSION : RQ_E_CORRUPT;
            if (rc != expected) fail_msg("%s, flags %d: %d %s", bad[i], flags[k], rc, why.message);
            assert_non_null(strstr(why.message, bad[i]));
        }
}

static void expect_open(rq_vfs *v, const char *path, rq_err expected)
{
    rq_file *f;
    rq_error why = {0};
    rq_err rc = rq_vfs_open(v, path, RQ_OPEN_READ | RQ_OPEN_BENEATH, &f, &why);
    if (rc == RQ_OK) rc = rq_file_close(f);
    if (rc != expected) fail_msg("%s: %s %s", path, rq_err_name(rc), why.message);
}

/* `stepwise`: the kernel has no openat2; then a link to a folder does not count as a folder. */
static void check_beneath(rq_vfs *v, bool stepwise)
{
    rq_err in_the_middle = stepwise ? RQ_E_NOT_FOUND : RQ_E_PERMISSION;
    expect_open(v, "a/b/file", RQ_OK);
    expect_open(v, "a/b/absent", RQ_E_NOT_FOUND);
    expect_open(v, "a/absent/file", RQ_E_NOT_FOUND);
    expect_open(v, "a/b/file/below", RQ_E_NOT_FOUND);
    expect_open(v, "a/out", RQ_E_PERMISSION);
    expect_open(v, "a/in", RQ_E_PERMISSION);
    expect_open(v, "a/nowhere", RQ_E_PERMISSION);
    expect_open(v, "a/up/file", in_the_middle);
    expect_open(v, "a/etc/passwd", in_the_middle);
    expect_open(v, "a/etc/absent", in_the_middle);
    expect_open(v, "a/b", RQ_E_CORRUPT);
}

static void make_links(rq_vfs *v)
{
    static const char *const links[][2] = {{"out", "/etc/passwd"},
                                           {"in", "b/file"},
                                           {"nowhere", "/no/such"},
                                           {"up", "../a/b"},
                                           {"etc", "/etc"}};
    char at[128];
    assert_int_equal(rq_vfs_mkdirs(v, "a/b", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "a/b/file", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(links); i++) {
        snprintf(at, sizeof at, "%s/a/%s", root, links[i][0]);
        assert_int_equal(symlink(links[i][1], at), 0);
    }
}

static void beneath_the_root_no_link_is_followed(void **state)
{
    /* An emulator may lack openat2: then the first call returns ENOSYS. */
    bool has_openat2 = syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno != ENOSYS;
    make_links(*state);
    check_beneath(*state, !has_openat2);
}

/* Runs in a child process, because the filter cannot be removed. 2: the kernel has no filters. */
static int check_without_openat2(rq_vfs *v, int error)
{
    pid_t child = fork();
    if (child == 0) {
        /* as on Linux 5.5, which has no openat2 */
        if (!forbid_system_call(SYS_openat2, error)) _exit(2);
        check_beneath(v, true);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void without_openat2_no_link_is_followed_either(void **state)
{
    static const int errors[] = {ENOSYS, EPERM};
    make_links(*state);
    for (size_t i = 0; i < RQ_ARRAY_LEN(errors); i++) {
        int code = check_without_openat2(*state, errors[i]);
        if (code == 2) skip();
        assert_int_equal(code, 0);
    }
}

static unsigned mode_of(const char *path)
{
    char at[128];
    struct stat st;
    snprintf(at, sizeof at, "%s/%s", root, path);
    assert_int_equal(lstat(at, &st), 0);
    return st.st_mode & 07777;
}

static rq_file_id id_of(rq_vfs *v, const char *path)
{
    rq_file_id id;
    rq_file *f = open_ok(v, path, RQ_OPEN_READ);
    assert_int_equal(rq_file_identify(f, &id, NULL), RQ_OK);
    assert_int_equal(rq_file_close(f), RQ_OK);
    return id;
}

/* The new name is given to the open file, whatever file has the old name by then. */
static void an_open_file_is_linked(void **state)
{
    rq_vfs *v = *state;
    char at[128];
    assert_int_equal(rq_vfs_write_new_file(v, "one", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    snprintf(at, sizeof at, "%s/one", root);
    assert_int_equal(chmod(at, 0666), 0);
    rq_file_id one = id_of(v, "one");
    rq_file *f = open_ok(v, "one", RQ_OPEN_READ | RQ_OPEN_BENEATH);
    assert_int_equal(rq_file_link(f, v, "linked", NULL), RQ_OK);
    assert_int_equal(id_of(v, "linked").inode, one.inode);
    assert_int_equal(mode_of("linked"), 0600);
    /* The file has two names now, so it may be in use elsewhere. */
    assert_int_equal(rq_file_link(f, v, "third", NULL), RQ_E_PERMISSION);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "third", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_file_close(f), RQ_OK);
    assert_int_equal(rq_vfs_remove(v, "one", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "one", RQ_SLICE_LIT("2"), NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_file(v, "one", &one, NULL), RQ_E_CONFLICT);
    assert_int_equal(rq_vfs_stat(v, "one", &st, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_file(v, "linked", &one, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_file(v, "linked", &one, NULL), RQ_E_NOT_FOUND);
}

static void another_users_file_is_not_linked(void **state)
{
    rq_vfs *v = *state;
    char at[128];
    if (geteuid() != 0) skip();
    assert_int_equal(rq_vfs_write_new_file(v, "theirs", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    snprintf(at, sizeof at, "%s/theirs", root);
    assert_int_equal(chown(at, 65534, 65534), 0);
    rq_file *f = open_ok(v, "theirs", RQ_OPEN_READ | RQ_OPEN_BENEATH);
    assert_int_equal(rq_file_link(f, v, "linked", NULL), RQ_E_PERMISSION);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

static void a_change_changes_the_id(void **state)
{
    rq_vfs *v = *state;
    assert_int_equal(rq_vfs_write_new_file(v, "file", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    rq_file_id before = id_of(v, "file");
    rq_file_id same = id_of(v, "file");
    assert_memory_equal(&before, &same, sizeof before);
    rq_file *f = open_ok(v, "file", RQ_OPEN_WRITE);
    assert_int_equal(rq_file_write(f, "2", 1, 1, NULL), RQ_OK);
    assert_int_equal(rq_file_close(f), RQ_OK);
    rq_file_id after = id_of(v, "file");
    assert_true(after.inode == before.inode && after.size != before.size);
    assert_true(after.written_ns >= before.written_ns && after.changed_ns >= before.changed_ns);
}

static void new_names_are_the_owners_alone(void **state)
{
    rq_vfs *v = *state;
    mode_t before = umask(0);
    assert_int_equal(rq_vfs_mkdirs(v, "x/y", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "x/file", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    rq_file *lock;
    assert_int_equal(rq_vfs_lock(v, "x/lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(mode_of("x"), 0700);
    assert_int_equal(mode_of("x/y"), 0700);
    assert_int_equal(mode_of("x/file"), 0600);
    assert_int_equal(mode_of("x/lock"), 0600);
    rq_vfs_posix_set_mode(v, 0750);
    assert_int_equal(rq_vfs_mkdir(v, "z", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "z/file", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    assert_int_equal(mode_of("z"), 0750);
    assert_int_equal(mode_of("z/file"), 0640);
    (void)umask(before);
}

static void modes_are_only_narrowed(void **state)
{
    rq_vfs *v = *state;
    char at[128];
    unsigned was;
    assert_int_equal(rq_vfs_mkdir(v, "x", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "file", RQ_SLICE_LIT("1"), NULL), RQ_OK);
    rq_vfs_posix_set_mode(v, 0750);
    assert_int_equal(rq_vfs_restrict_mode(v, "x", &was, NULL), RQ_OK);
    assert_int_equal(was, 0);
    assert_int_equal(mode_of("x"), 0700);
    snprintf(at, sizeof at, "%s/x", root);
    assert_int_equal(chmod(at, 0705), 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "x", &was, NULL), RQ_OK);
    assert_int_equal(was, 0705);
    assert_int_equal(mode_of("x"), 0700);
    snprintf(at, sizeof at, "%s/file", root);
    assert_int_equal(chmod(at, 0677), 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "file", &was, NULL), RQ_OK);
    assert_int_equal(mode_of("file"), 0640);
    assert_int_equal(rq_vfs_restrict_mode(v, "absent", &was, NULL), RQ_OK);
    snprintf(at, sizeof at, "%s/link", root);
    assert_int_equal(symlink("file", at), 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "link", &was, NULL), RQ_OK);
    assert_int_equal(was, 0);
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "", &was, NULL), RQ_OK);
    assert_int_equal(was, 0755);
    assert_int_equal(mode_of(""), 0750);
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
        IN_ROOT(a_large_folder_is_listed),
        cmocka_unit_test(a_folder_that_is_removed_is_empty),
        IN_ROOT(advice_is_given_before_reads),
        IN_ROOT(removing_a_tree_follows_no_link),
        IN_ROOT(a_lock_excludes_and_names_its_holder),
        IN_ROOT(a_lock_outlives_its_file),
        IN_ROOT(a_child_keeps_no_lock),
        IN_ROOT(an_orphan_keeps_no_lock),
        IN_ROOT(a_child_closes_nothing_of_others),
        IN_ROOT(a_lock_of_the_file_alone_counts),
        IN_ROOT(a_lock_file_that_is_none_is_named),
        IN_ROOT(only_regular_files_are_opened),
        IN_ROOT(beneath_the_root_no_link_is_followed),
        IN_ROOT(without_openat2_no_link_is_followed_either),
        IN_ROOT(an_open_file_is_linked),
        IN_ROOT(another_users_file_is_not_linked),
        IN_ROOT(a_change_changes_the_id),
        IN_ROOT(new_names_are_the_owners_alone),
        IN_ROOT(modes_are_only_narrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
