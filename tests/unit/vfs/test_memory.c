/* SPDX-License-Identifier: Apache-2.0 */
/* The vfs in memory against the one on files: random calls give the same results on both. test_vfs_memory
 * [SEED] */
#include "../base/unit.h"

#include "vfs/memory.h"
#include "vfs/vfs.h"

#include "base/random.h"

#include <pthread.h>
#include <unistd.h>

enum { CALLS = 4000, NAMES = 6, FAR = 200000, LONGEST = 70000 };

static const char *const names[NAMES] = {"a", "b", "x/a", "x/b", "x/y/c", "z/d"};
static uint64_t seed = 1;

/* The same calls go to both. */
typedef struct pair {
    rq_vfs *memory, *posix;
    char root[64];
} pair;

static int make_pair(void **state)
{
    static pair p;
    strcpy(p.root, "/tmp/rorqual-vfs-XXXXXX");
    if (mkdtemp(p.root) == NULL || rq_vfs_memory_new(&p.memory) != RQ_OK ||
        rq_vfs_posix_new(p.root, &p.posix, NULL) != RQ_OK)
        return -1;
    *state = &p;
    return 0;
}

static int remove_pair(void **state)
{
    pair *p = *state;
    static const char *const tops[] = {"a", "b", "x", "z"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(tops); i++)
        if (rq_vfs_remove_tree(p->posix, tops[i], NULL) != RQ_OK) return -1;
    rq_vfs_free(p->memory);
    rq_vfs_free(p->posix);
    return rmdir(p->root);
}

static void same(rq_err a, rq_err b, const char *what, const char *path)
{
    if (a != b)
        fail_msg("seed %llu: %s %s: %s in memory, %s on files", (unsigned long long)seed, what,
                 path, rq_err_name(a), rq_err_name(b));
}

static void compare_bytes(rq_file *a, rq_file *b, uint64_t off, size_t len)
{
    static uint8_t x[LONGEST], y[LONGEST];
    size_t got_x = 0, got_y = 0;
    uint64_t size_x, size_y;
    same(rq_file_read(a, x, len, off, &got_x, NULL), rq_file_read(b, y, len, off, &got_y, NULL),
         "read", "");
    assert_int_equal(got_x, got_y);
    if (got_x > 0) assert_memory_equal(x, y, got_x);
    assert_int_equal(rq_file_try_read(a, x, len, off, &got_x), RQ_OK); /* memory never waits */
    assert_int_equal(got_x, got_y);
    if (got_x > 0) assert_memory_equal(x, y, got_x);
    same(rq_file_size(a, &size_x, NULL), rq_file_size(b, &size_y, NULL), "size", "");
    assert_int_equal(size_x, size_y);
}

static void change_file(rq_random *r, rq_file *a, rq_file *b)
{
    static uint8_t bytes[LONGEST];
    uint64_t off = rq_random_next(r) % FAR;
    size_t len = rq_random_next(r) % (rq_random_next(r) % 2 == 0 ? 100 : LONGEST);
    if (rq_random_next(r) % 4 == 0) {
        same(rq_file_truncate(a, off, NULL), rq_file_truncate(b, off, NULL), "truncate", "");
    } else {
        memset(bytes, (int)(rq_random_next(r) % 3), len); /* often zeros */
        same(rq_file_write(a, bytes, len, off, NULL), rq_file_write(b, bytes, len, off, NULL),
             "write", "");
    }
    compare_bytes(a, b, rq_random_next(r) % FAR, rq_random_next(r) % LONGEST);
}

static void use_file(pair *p, rq_random *r, const char *path)
{
    static const int flags[] = {RQ_OPEN_READ, RQ_OPEN_WRITE, RQ_OPEN_WRITE | RQ_OPEN_CREATE,
                                RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL};
    int how = flags[rq_random_next(r) % RQ_ARRAY_LEN(flags)];
    rq_file *a, *b;
    rq_err rc = rq_vfs_open(p->memory, path, how, &a, NULL);
    same(rc, rq_vfs_open(p->posix, path, how, &b, NULL), "open", path);
    if (rc != RQ_OK) return;
    if (how != RQ_OPEN_READ) change_file(r, a, b);
    compare_bytes(a, b, 0, LONGEST - 1);
    assert_int_equal(rq_file_close(a), RQ_OK);
    assert_int_equal(rq_file_close(b), RQ_OK);
}

static void compare_list(pair *p, const char *dir)
{
    rq_arena arena = {0};
    rq_dir_entry *x, *y;
    size_t n, m;
    rq_err rc = rq_vfs_list(p->memory, dir, &arena, &x, &n, NULL);
    same(rc, rq_vfs_list(p->posix, dir, &arena, &y, &m, NULL), "list", dir);
    if (rc == RQ_OK) {
        assert_int_equal(n, m);
        for (size_t i = 0; i < n; i++) {
            assert_string_equal(x[i].name, y[i].name);
            assert_int_equal(x[i].is_dir, y[i].is_dir);
        }
    }
    rq_arena_clear(&arena);
}

static void compare_stat(pair *p, const char *path)
{
    rq_stat x, y;
    rq_err rc = rq_vfs_stat(p->memory, path, &x, NULL);
    same(rc, rq_vfs_stat(p->posix, path, &y, NULL), "stat", path);
    if (rc != RQ_OK) return;
    assert_int_equal(x.is_dir, y.is_dir);
    if (!x.is_dir) assert_int_equal(x.size, y.size);
}

static void random_calls_agree(void **state)
{
    pair *p = *state;
    static const char *const dirs[] = {"", "x", "x/y", "z", "a"};
    rq_random r;
    rq_random_seed(&r, seed);
    for (int i = 0; i < CALLS; i++) {
        const char *path = names[rq_random_next(&r) % NAMES];
        const char *other = names[rq_random_next(&r) % NAMES];
        const char *dir = dirs[1 + rq_random_next(&r) % 3];
        switch (rq_random_next(&r) % 10) {
        case 0:
            same(rq_vfs_mkdir(p->memory, dir, NULL), rq_vfs_mkdir(p->posix, dir, NULL), "mkdir",
                 dir);
            break;
        case 1:
            same(rq_vfs_remove(p->memory, path, NULL), rq_vfs_remove(p->posix, path, NULL),
                 "remove", path);
            break;
        case 2:
            same(rq_vfs_link(p->memory, path, other, NULL),
                 rq_vfs_link(p->posix, path, other, NULL), "link", path);
            break;
        case 3:
            compare_list(p, dirs[rq_random_next(&r) % RQ_ARRAY_LEN(dirs)]);
            break;
        case 4:
            compare_stat(p, rq_random_next(&r) % 2 == 0 ? path : dir);
            break;
        case 5:
            if (rq_random_next(&r) % 20 == 0)
                same(rq_vfs_remove_tree(p->memory, dir, NULL),
                     rq_vfs_remove_tree(p->posix, dir, NULL), "remove_tree", dir);
            break;
        default:
            use_file(p, &r, path);
        }
    }
}

static void a_lock_excludes(void **state)
{
    pair *p = *state;
    rq_file *lock, *other;
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &other, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &other, NULL), RQ_OK);
    assert_int_equal(rq_file_close(other), RQ_OK);
}

/* Bytes behind `at` are written once, by one thread; what others read there is all of it or none. */
static void *append(void *arg)
{
    rq_file *f = arg;
    uint8_t bytes[100];
    memset(bytes, 7, sizeof bytes);
    for (uint64_t at = 0; at < 1000 * sizeof bytes; at += sizeof bytes)
        if (rq_file_write(f, bytes, sizeof bytes, at, NULL) != RQ_OK) return NULL;
    return arg;
}

static void threads_read_while_one_writes(void **state)
{
    pair *p = *state;
    rq_file *f;
    pthread_t writer;
    void *ok;
    assert_int_equal(rq_vfs_open(p->memory, "file", RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, NULL),
                     RQ_OK);
    assert_int_equal(pthread_create(&writer, NULL, append, f), 0);
    for (size_t len = 0; len < 1000;) {
        static uint8_t bytes[100000];
        assert_int_equal(rq_file_read(f, bytes, sizeof bytes, 0, &len, NULL), RQ_OK);
        assert_int_equal(len % 100, 0);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(bytes[i], 7);
    }
    pthread_join(writer, &ok);
    assert_ptr_equal(ok, f);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

#define IN_PAIR(f) cmocka_unit_test_setup_teardown(f, make_pair, remove_pair)

int main(int argc, char **argv)
{
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        IN_PAIR(random_calls_agree),
        IN_PAIR(a_lock_excludes),
        IN_PAIR(threads_read_while_one_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
