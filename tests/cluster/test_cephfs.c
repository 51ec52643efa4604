/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in CephFS (vfs/cephfs.h) on a real Ceph, which tests/e2e/ceph.py brings up:
 *
 *     RQ_CEPH=FOLDER of tools/ceph   without it everything is skipped
 *     RQ_RADOS_PLUGIN=FILE           the plug-in
 *
 * CALLS=n random calls that are compared with those on a local folder; SEED=n. STALL=1: a test that stops the metadata
 * server for a while. BENCH=FILES: prints the times of reads.
 */
#include "../unit/vfs/shared_rounds.h"
#include "../unit/vfs/vfs_pair.h"

#include "base/clock.h"
#include "base/random.h"
#include "vfs/cephfs.h"
#include "vfs/shared_rados.h"

#include <cephfs/libcephfs.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

static rq_shared *pool;
static rq_executor *executor;
static char conf[512], root[64];

static void no_connection(rq_cephfs_options *o)
{
    *o = (rq_cephfs_options){
        .conf = conf, .user = "client.admin", .root = root, .create = true, .folder_mode = 0700};
}

static rq_vfs *open_again(void)
{
    rq_cephfs_options o;
    rq_error why = {.code = RQ_OK};
    rq_vfs *v;
    no_connection(&o);
    if (rq_cephfs_open(getenv("RQ_RADOS_PLUGIN"), &o, pool, &v, &why) != RQ_OK)
        fail_msg("%s", why.message);
    return v;
}

static int open_vfs(void **state)
{
    static int number;
    snprintf(root, sizeof root, "/test/%d-%lld/%d", (int)getpid(), (long long)time(NULL), number++);
    *state = open_again();
    return 0;
}

static int close_vfs(void **state)
{
    rq_vfs_free(*state);
    return 0;
}

static rq_file *open_ok(rq_vfs *v, const char *path, int flags)
{
    rq_file *f;
    rq_error why = {.code = RQ_OK};
    if (rq_vfs_open(v, path, flags, &f, &why) != RQ_OK) fail_msg("%s", why.message);
    return f;
}

/* A separate mount of the root, for files that a vfs cannot make. */
static struct ceph_mount_info *mount_root(void)
{
    struct ceph_mount_info *m;
    assert_int_equal(ceph_create(&m, "admin"), 0);
    assert_int_equal(ceph_conf_read_file(m, conf), 0);
    assert_int_equal(ceph_mount(m, root), 0);
    return m;
}

static void unmount_root(struct ceph_mount_info *m)
{
    assert_int_equal(ceph_unmount(m), 0);
    assert_int_equal(ceph_release(m), 0);
}

/* --- names and bytes ---------------------------------------------------------------------------- */

static void random_calls_agree_with_a_folder(void **state)
{
    char folder[] = "/tmp/rorqual-cephfs-XXXXXX";
    const char *calls = getenv("CALLS"), *seed = getenv("SEED");
    rq_vfs *local;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(rq_vfs_posix_new(folder, &local, NULL), RQ_OK);
    vfs_pair_agrees(&(vfs_pair){*state, local}, seed == NULL ? 1 : strtoull(seed, NULL, 10),
                    calls == NULL ? 1000 : atoi(calls));
    vfs_pair_clear(local);
    rq_vfs_free(local);
    assert_int_equal(rmdir(folder), 0);
}

static void errors_name_the_path(void **state)
{
    rq_vfs *v = *state;
    rq_file *f;
    rq_error why = {.code = RQ_OK};
    assert_int_equal(rq_vfs_open(v, "no/such", RQ_OPEN_READ, &f, &why), RQ_E_NOT_FOUND);
    assert_non_null(strstr(why.message, root));
    assert_non_null(strstr(why.message, "no/such"));
    rq_stat st;
    assert_int_equal(rq_vfs_write_new_file(v, "there", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    assert_int_equal(rq_vfs_stat(v, "there/below", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_open(v, "there/below", RQ_OPEN_READ, &f, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_remove(v, "there/below", NULL), RQ_E_NOT_FOUND);
}

static void missing_folders_and_file_systems_are_named(void **state)
{
    (void)state;
    rq_cephfs_options o;
    rq_error why = {.code = RQ_OK};
    rq_vfs *v;
    const char *plugin = getenv("RQ_RADOS_PLUGIN");
    no_connection(&o);
    o.root = "/no/such/folder";
    o.create = false;
    assert_int_equal(rq_cephfs_open(plugin, &o, pool, &v, &why), RQ_E_NOT_FOUND);
    assert_non_null(strstr(why.message, "cephfs:/no/such/folder"));
    o.file_system = "nowhere";
    why = (rq_error){.code = RQ_OK};
    assert_int_equal(rq_cephfs_open(plugin, &o, pool, &v, &why), RQ_E_CONFIG);
    assert_non_null(strstr(why.message, "nowhere"));
    o.file_system = NULL;
    o.conf = "/no/such.conf";
    assert_int_not_equal(rq_cephfs_open(plugin, &o, pool, &v, NULL), RQ_OK);
}

static void expect_open(rq_vfs *v, const char *path, int flags, rq_err expected)
{
    rq_file *f;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_vfs_open(v, path, flags, &f, &why);
    if (rc == RQ_OK) rc = rq_file_close(f);
    if (rc != expected)
        fail_msg("%s, flags %d: %s, not %s: %s", path, flags, rq_err_name(rc),
                 rq_err_name(expected), why.message);
}

static void only_regular_files_are_opened(void **state)
{
    rq_vfs *v = *state;
    struct ceph_mount_info *m = mount_root();
    assert_int_equal(ceph_mkdir(m, "/folder", 0700), 0);
    assert_int_equal(ceph_mknod(m, "/fifo", S_IFIFO | 0600, 0), 0);
    assert_int_equal(ceph_symlink(m, "loop", "/loop"), 0);
    assert_int_equal(ceph_symlink(m, "fifo", "/to-fifo"), 0);
    static const char *const bad[] = {"folder", "fifo", "to-fifo", "loop"};
    static const int flags[] = {RQ_OPEN_READ, RQ_OPEN_READ | RQ_OPEN_BENEATH, RQ_OPEN_WRITE,
                                RQ_OPEN_WRITE | RQ_OPEN_CREATE};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++)
        for (size_t k = 0; k < RQ_ARRAY_LEN(flags); k++) {
            bool refused = i > 1 && (flags[k] & RQ_OPEN_BENEATH) != 0;
            expect_open(v, bad[i], flags[k], refused ? RQ_E_PERMISSION : RQ_E_CORRUPT);
        }
    unmount_root(m);
}

static void links_are_not_followed_beneath(void **state)
{
    rq_vfs *v = *state;
    const int beneath = RQ_OPEN_READ | RQ_OPEN_BENEATH;
    struct ceph_mount_info *m = mount_root();
    assert_int_equal(rq_vfs_mkdirs(v, "a/b", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "a/b/file", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    assert_int_equal(ceph_symlink(m, "b/file", "/a/in"), 0);
    assert_int_equal(ceph_symlink(m, "../a/b", "/a/up"), 0);
    assert_int_equal(ceph_symlink(m, "/no/such", "/a/nowhere"), 0);
    expect_open(v, "a/b/file", beneath, RQ_OK);
    expect_open(v, "a/in", RQ_OPEN_READ, RQ_OK);
    expect_open(v, "a/in", beneath, RQ_E_PERMISSION);
    expect_open(v, "a/up/file", beneath, RQ_E_PERMISSION);
    expect_open(v, "a/nowhere", beneath, RQ_E_PERMISSION);
    expect_open(v, "a/b/absent", beneath, RQ_E_NOT_FOUND);
    expect_open(v, "a/b/file/below", beneath, RQ_E_NOT_FOUND);
    expect_open(v, "a/b", beneath, RQ_E_CORRUPT);
    /* removes the link, not its target */
    assert_int_equal(rq_vfs_remove_tree(v, "a/up", NULL), RQ_OK);
    expect_open(v, "a/b/file", beneath, RQ_OK);
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(v, "a", &arena, &entries, &count, NULL), RQ_OK);
    assert_int_equal(count, 3);
    assert_true(entries[0].is_dir && !entries[0].is_link);
    assert_true(entries[1].is_link && !entries[1].is_dir);
    rq_arena_clear(&arena);
    unmount_root(m);
}

static void a_file_is_removed_only_while_it_has_the_name(void **state)
{
    rq_vfs *v = *state;
    rq_file_id id;
    assert_int_equal(rq_vfs_write_new_file(v, "f", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    rq_file *f = open_ok(v, "f", RQ_OPEN_READ);
    assert_int_equal(rq_file_identify(f, &id, NULL), RQ_OK);
    assert_int_equal(rq_vfs_link(v, "f", "g", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove(v, "f", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", RQ_SLICE_LIT("y"), NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_file(v, "f", &id, NULL), RQ_E_CONFLICT);
    assert_int_equal(rq_vfs_remove_file(v, "g", &id, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_file(v, "g", &id, NULL), RQ_E_NOT_FOUND);
    /* The file has no name left, but its bytes can be read. */
    char byte;
    size_t len;
    assert_int_equal(rq_file_read(f, &byte, 1, 0, &len, NULL), RQ_OK);
    assert_true(len == 1 && byte == 'x');
    assert_int_equal(rq_file_close(f), RQ_OK);
}

static void open_files_are_linked(void **state)
{
    rq_vfs *v = *state, *other = open_again();
    rq_stat st;
    assert_int_equal(rq_vfs_mkdirs(v, "to", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", RQ_SLICE_LIT("xyz"), NULL), RQ_OK);
    rq_file *f = open_ok(v, "f", RQ_OPEN_READ);
    assert_int_equal(rq_file_link(f, other, "to/g", NULL), RQ_E_UNSUPPORTED);
    assert_int_equal(rq_file_link(f, v, "to/g", NULL), RQ_OK);
    /* the file has two names */
    assert_int_equal(rq_file_link(f, v, "to/h", NULL), RQ_E_PERMISSION);
    assert_int_equal(rq_file_share(f, v, "to/h", NULL), RQ_OK);
    assert_int_equal(rq_file_share(f, v, "to/h", NULL), RQ_E_EXISTS);
    assert_int_equal(rq_vfs_stat(other, "to/h", &st, NULL), RQ_OK);
    assert_int_equal(st.size, 3);
    assert_int_equal(rq_file_close(f), RQ_OK);
    rq_vfs_free(other);
}

static void modes_are_restricted(void **state)
{
    rq_vfs *v = *state;
    unsigned was = 0;
    struct ceph_statx st;
    struct ceph_mount_info *m = mount_root();
    assert_int_equal(rq_vfs_write_new_file(v, "f", RQ_SLICE_LIT("x"), NULL), RQ_OK);
    assert_int_equal(ceph_statx(m, "/f", &st, CEPH_STATX_MODE, 0), 0);
    assert_int_equal(st.stx_mode & 07777, 0600);
    assert_int_equal(ceph_chmod(m, "/f", 0644), 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "f", &was, NULL), RQ_OK);
    assert_int_equal(was, 0644);
    assert_int_equal(ceph_statx(m, "/f", &st, CEPH_STATX_MODE, 0), 0);
    assert_int_equal(st.stx_mode & 07777, 0600);
    assert_int_equal(rq_vfs_restrict_mode(v, "f", &was, NULL), RQ_OK);
    assert_int_equal(was, 0);
    assert_int_equal(rq_vfs_restrict_mode(v, "absent", &was, NULL), RQ_OK);
    unmount_root(m);
}

static void a_lock_excludes_other_clients(void **state)
{
    rq_vfs *v = *state, *other = open_again();
    rq_file *lock, *second;
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, NULL, &second, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_vfs_lock(other, "lock", &second, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(other, "lock", &second, NULL), RQ_OK);
    assert_int_equal(rq_file_close(second), RQ_OK);
    rq_vfs_free(other);
}

/* --- reads from the data pool ------------------------------------------------------------------- */

enum { SIZE = 3000000 };

static uint8_t *random_bytes(size_t len)
{
    uint8_t *bytes = malloc(len);
    rq_random r;
    rq_random_seed(&r, 5);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)rq_random_next(&r);
    return bytes;
}

static void expect_bytes(rq_file *f, const uint8_t *all, size_t size, uint64_t off, size_t len)
{
    uint8_t *buf = malloc(len + 1);
    size_t got = 0, there = off > size ? 0 : size - (size_t)off;
    rq_error why = {.code = RQ_OK};
    assert_non_null(buf);
    if (rq_file_read(f, buf, len, off, &got, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_int_equal(got, len < there ? len : there);
    if (got > 0 && memcmp(buf, all + off, got) != 0)
        fail_msg("other bytes at %llu", (unsigned long long)off);
    free(buf);
}

static void expect_random_reads(rq_vfs *v, const char *path, const uint8_t *all, size_t size)
{
    rq_random r;
    rq_random_seed(&r, 7);
    rq_file *f = open_ok(v, path, RQ_OPEN_READ | RQ_OPEN_RANDOM);
    for (int i = 0; i < 300; i++) {
        rq_file_in_sequence(f, rq_random_next(&r) % 4 == 0);
        size_t len = rq_random_next(&r) % (rq_random_next(&r) % 2 == 0 ? 1000 : 400000);
        expect_bytes(f, all, size, rq_random_next(&r) % (size + 1000), len);
    }
    expect_bytes(f, all, size, 0, size);
    expect_bytes(f, all, size, 0, size + 1);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

/* `layout`: "stripe_unit=… …", or NULL for that of Ceph. */
static void make_file(rq_vfs *v, const char *path, const char *layout, const uint8_t *all,
                      size_t size)
{
    rq_file *f = open_ok(v, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL);
    if (layout != NULL) {
        struct ceph_mount_info *m = mount_root();
        char at[64];
        snprintf(at, sizeof at, "/%s", path);
        assert_int_equal(ceph_setxattr(m, at, "ceph.file.layout", layout, strlen(layout), 0), 0);
        unmount_root(m);
    }
    if (size > 0) assert_int_equal(rq_file_write(f, all, size, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

static void bytes_are_found_in_every_layout(void **state)
{
    static const char *const layouts[] = {NULL,
                                          "stripe_unit=65536 stripe_count=1 object_size=65536",
                                          "stripe_unit=65536 stripe_count=3 object_size=131072",
                                          "stripe_unit=65536 stripe_count=2 object_size=1048576"};
    uint8_t *all = random_bytes(SIZE);
    for (size_t i = 0; i < RQ_ARRAY_LEN(layouts); i++) {
        char path[8];
        snprintf(path, sizeof path, "f%zu", i);
        make_file(*state, path, layouts[i], all, SIZE);
        expect_random_reads(*state, path, all, SIZE);
    }
    free(all);
}

static void holes_are_zeros(void **state)
{
    rq_vfs *v = *state;
    const size_t size = (size_t)9 << 20; /* objects have 4 MB: the second is absent */
    uint8_t *all = calloc(1, size);
    assert_non_null(all);
    rq_file *f = open_ok(v, "f", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    memset(all, 1, 1000);
    memset(all + size - 1000, 2, 1000);
    assert_int_equal(rq_file_write(f, all, 1000, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_write(f, all + size - 1000, 1000, size - 1000, NULL), RQ_OK);
    assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
    assert_int_equal(rq_file_close(f), RQ_OK);
    expect_random_reads(v, "f", all, size);
    free(all);
}

/* Also bytes that are not synced yet, read in this process and by another client. */
static void bytes_just_written_are_read(void **state)
{
    rq_vfs *v = *state, *other = open_again();
    uint8_t *all = random_bytes(SIZE);
    rq_file *f = open_ok(v, "f", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, all, SIZE / 2, 0, NULL), RQ_OK);
    expect_random_reads(v, "f", all, SIZE / 2);
    assert_int_equal(rq_file_write(f, all + SIZE / 2, SIZE / 2, SIZE / 2, NULL), RQ_OK);
    expect_random_reads(other, "f", all, SIZE);
    assert_int_equal(rq_file_close(f), RQ_OK);
    rq_vfs_free(other);
    free(all);
}

static pid_t pid_of(const char *daemon)
{
    char path[600];
    long pid = 0;
    snprintf(path, sizeof path, "%s/pids/%s", getenv("RQ_CEPH"), daemon);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fscanf(in, "%ld", &pid), 1);
    fclose(in);
    return (pid_t)pid;
}

static void open_files_are_read_without_a_metadata_server(void **state)
{
    uint8_t *all = random_bytes(SIZE);
    rq_random r;
    if (getenv("STALL") == NULL) skip();
    rq_random_seed(&r, 3);
    make_file(*state, "f", NULL, all, SIZE);
    rq_file *f = open_ok(*state, "f", RQ_OPEN_READ | RQ_OPEN_RANDOM);
    assert_int_equal(kill(pid_of("mds.a"), SIGSTOP), 0);
    for (int i = 0; i < 100; i++)
        expect_bytes(f, all, SIZE, rq_random_next(&r) % SIZE, 65536);
    assert_int_equal(kill(pid_of("mds.a"), SIGCONT), 0);
    assert_int_equal(rq_file_close(f), RQ_OK);
    free(all);
}

/* --- eviction ----------------------------------------------------------------------------------- */

static _Atomic int times_lost;

static void on_lost(void *ctx, const rq_error *why)
{
    (void)ctx;
    assert_non_null(strstr(why->message, "evicted"));
    atomic_fetch_add(&times_lost, 1);
}

static void an_evicted_client_writes_nothing_and_says_so(void **state)
{
    (void)state;
    rq_cephfs_options o;
    rq_vfs *evicted, *later;
    rq_file *f;
    char command[1024];
    no_connection(&o);
    o.lost = on_lost;
    assert_int_equal(rq_cephfs_open(getenv("RQ_RADOS_PLUGIN"), &o, pool, &evicted, NULL), RQ_OK);
    f = open_ok(evicted, "f", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, "one", 3, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
    snprintf(command, sizeof command, "ceph -c %s tell mds.a client evict >/dev/null 2>&1", conf);
    assert_int_equal(system(command), 0);
    rq_err rc = rq_file_write(f, "two", 3, 0, NULL);
    if (rc == RQ_OK) rc = rq_file_sync(f, NULL);
    assert_int_not_equal(rc, RQ_OK);
    assert_int_not_equal(rq_vfs_mkdir(evicted, "folder", NULL), RQ_OK);
    assert_int_equal(atomic_load(&times_lost), 1);
    (void)rq_file_close(f);
    rq_vfs_free(evicted);
    later = open_again();
    f = open_ok(later, "f", RQ_OPEN_READ);
    expect_bytes(f, (const uint8_t *)"one", 3, 0, 3);
    assert_int_equal(rq_file_close(f), RQ_OK);
    rq_vfs_free(later);
}

/* --- eviction by another process ------------------------------------------------------------------ */

#define HELD "rq,1,1" /* the name of the process that is evicted */

/* That process: opens the root under its name, holds a lock and a file with bytes that are not synced, and prints "ready". When
 * its input has ended it writes. Its exit code is 0 if it was evicted. */
static int hold(void)
{
    rq_cephfs_options o;
    rq_vfs *v;
    rq_file *f, *lock;
    snprintf(root, sizeof root, "%s", getenv("HOLD"));
    no_connection(&o);
    o.client = HELD;
    o.lost = on_lost;
    assert_int_equal(rq_cephfs_open(getenv("RQ_RADOS_PLUGIN"), &o, pool, &v, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    f = open_ok(v, "f", RQ_OPEN_WRITE | RQ_OPEN_CREATE);
    assert_int_equal(rq_file_write(f, "one", 3, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
    assert_int_equal(rq_file_write(f, "two", 3, 3, NULL), RQ_OK);
    assert_int_equal(write(STDOUT_FILENO, "ready\n", 6), 6);
    for (char byte; read(STDIN_FILENO, &byte, 1) > 0;)
        ;
    rq_err rc = rq_file_write(f, "three", 5, 6, NULL);
    if (rc == RQ_OK) rc = rq_file_sync(f, NULL);
    if (rc == RQ_OK) rc = rq_vfs_mkdir(v, "folder", NULL);
    return rc != RQ_OK && atomic_load(&times_lost) == 1 ? 0 : 1;
}

typedef struct holder {
    pid_t pid;
    int in, out;
} holder;

static holder start_holder(void)
{
    int in[2], out[2];
    char ready[6];
    holder h;
    char *const argv[] = {(char *)(uintptr_t) "hold", NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(setenv("HOLD", root, 1), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    assert_int_equal(posix_spawn(&h.pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(unsetenv("HOLD"), 0);
    close(in[0]);
    close(out[1]);
    h.in = in[1];
    h.out = out[0];
    assert_int_equal(read(h.out, ready, sizeof ready), sizeof ready);
    return h;
}

static int end_of_holder(holder *h)
{
    int status;
    close(h->in);
    assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
    close(h->out);
    return status;
}

/* Long after this test's time limit the metadata server would give up a silent client by itself. */
static void set_patience(int s)
{
    char command[1200];
    snprintf(command, sizeof command,
             "ceph -c %s fs set cephfs session_timeout %d >/dev/null 2>&1 && "
             "ceph -c %s fs set cephfs session_autoclose %d >/dev/null 2>&1",
             conf, s, conf, 5 * s);
    assert_int_equal(system(command), 0);
}

static void expect_free_after(rq_vfs *v, int signal_number)
{
    rq_stat st;
    rq_file *lock;
    rq_error why = {.code = RQ_OK};
    set_patience(1200);
    holder h = start_holder();
    assert_int_equal(kill(h.pid, signal_number), 0);
    alarm(300);
    assert_true(rq_vfs_has_clients(v));
    if (rq_vfs_evict(v, "nobody,1,1", &why) != RQ_OK) fail_msg("%s", why.message);
    if (rq_vfs_evict(v, HELD, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_int_equal(rq_vfs_stat(v, "f", &st, NULL), RQ_OK);
    assert_true(st.size == 3 || st.size == 6); /* the bytes that were not synced may be there */
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    if (rq_vfs_evict(v, HELD, &why) != RQ_OK) fail_msg("%s", why.message);
    (void)kill(h.pid, SIGCONT);
    int status = end_of_holder(&h);
    assert_int_equal(signal_number == SIGKILL ? WTERMSIG(status) : status,
                     signal_number == SIGKILL ? SIGKILL : 0);
    assert_int_equal(rq_vfs_stat(v, "folder", &st, NULL), RQ_E_NOT_FOUND);
    alarm(0);
    set_patience(60);
}

static void what_a_killed_process_held_is_free_once_it_is_evicted(void **state)
{
    expect_free_after(*state, SIGKILL);
}

static void a_stopped_process_that_is_evicted_writes_nothing_later(void **state)
{
    expect_free_after(*state, SIGSTOP);
}

/* --- times -------------------------------------------------------------------------------------- */

static double cpu_s(void)
{
    return (double)rq_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static void time_reads(rq_file *f, const char *what, size_t size, size_t len, int reads)
{
    uint8_t *buf = malloc(len);
    rq_random r;
    size_t got;
    rq_random_seed(&r, 11);
    double cpu = cpu_s();
    uint64_t begin = rq_clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < reads; i++)
        assert_int_equal(rq_file_read(f, buf, len, rq_random_next(&r) % (size - len), &got, NULL),
                         RQ_OK);
    double s = (double)(rq_clock_ns(CLOCK_MONOTONIC) - begin) / 1e9;
    printf("%s: %d reads of %zu bytes, %.0f us each, %.0f us of CPU\n", what, reads, len,
           s / reads * 1e6, (cpu_s() - cpu) / reads * 1e6);
    free(buf);
}

static void times_of_reads(void **state)
{
    const char *bench = getenv("BENCH");
    if (bench == NULL) skip();
    size_t size = (size_t)atoi(bench) << 20;
    uint8_t *all = random_bytes(size);
    make_file(*state, "f", NULL, all, size);
    rq_vfs *v = open_again();
    rq_file *direct = open_ok(v, "f", RQ_OPEN_READ | RQ_OPEN_RANDOM);
    rq_file *ordered = open_ok(v, "f", RQ_OPEN_READ);
    for (int i = 0; i < 3; i++)
        for (size_t len = 4096; len <= 65536; len *= 16) {
            time_reads(direct, "direct   ", size, len, 2000);
            time_reads(ordered, "libcephfs", size, len, 2000);
        }
    assert_int_equal(rq_file_close(direct), RQ_OK);
    assert_int_equal(rq_file_close(ordered), RQ_OK);
    rq_vfs_free(v);
    free(all);
}

#define ON_VFS(f) cmocka_unit_test_setup_teardown(f, open_vfs, close_vfs)

static int connect_pool(void **state)
{
    (void)state;
    rq_error why = {.code = RQ_OK};
    door d;
    rounds_executor(&d);
    executor = d.executor;
    rq_rados_options o = {.conf = conf, .user = "client.admin", .pool = "rorqual", .space = "test"};
    if (rq_shared_rados_open(getenv("RQ_RADOS_PLUGIN"), &o, executor, &pool, &why) == RQ_OK)
        return 0;
    printf("%s\n", why.message);
    return -1;
}

static int disconnect_pool(void **state)
{
    (void)state;
    rq_shared_free(pool);
    rq_thread_executor_free(executor);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_VFS(random_calls_agree_with_a_folder),
        ON_VFS(errors_name_the_path),
        ON_VFS(missing_folders_and_file_systems_are_named),
        ON_VFS(only_regular_files_are_opened),
        ON_VFS(links_are_not_followed_beneath),
        ON_VFS(a_file_is_removed_only_while_it_has_the_name),
        ON_VFS(open_files_are_linked),
        ON_VFS(modes_are_restricted),
        ON_VFS(a_lock_excludes_other_clients),
        ON_VFS(bytes_are_found_in_every_layout),
        ON_VFS(holes_are_zeros),
        ON_VFS(bytes_just_written_are_read),
        ON_VFS(open_files_are_read_without_a_metadata_server),
        ON_VFS(times_of_reads),
        ON_VFS(what_a_killed_process_held_is_free_once_it_is_evicted),
        ON_VFS(a_stopped_process_that_is_evicted_writes_nothing_later),
        ON_VFS(an_evicted_client_writes_nothing_and_says_so), /* must be last, because it evicts all
                                                               * clients */
    };
    if (getenv("RQ_CEPH") == NULL || getenv("RQ_RADOS_PLUGIN") == NULL) {
        printf("skipped: RQ_CEPH names no cluster of tools/ceph, or RQ_RADOS_PLUGIN no plug-in\n");
        return SKIPPED;
    }
    snprintf(conf, sizeof conf, "%s/ceph.conf", getenv("RQ_CEPH"));
    if (getenv("HOLD") != NULL) return connect_pool(NULL) == 0 ? hold() : 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, connect_pool, disconnect_pool);
}
