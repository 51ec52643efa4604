/* SPDX-License-Identifier: Apache-2.0 */
#include "vfs_pair.h"

#include "../base/unit.h"

#include "base/random.h"

enum { NAMES = 6, FAR = 200000, LONGEST = 70000 };

static const char *const names[NAMES] = {"a", "b", "x/a", "x/b", "x/y/c", "z/d"};
static uint64_t seed;

static void same(rq_err a, rq_err b, const char *what, const char *path)
{
    if (a != b)
        fail_msg("seed %llu: %s %s: first %s, second %s", (unsigned long long)seed, what, path,
                 rq_err_name(a), rq_err_name(b));
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
    rq_err rc = rq_file_try_read(a, x, len, off, &got_x);
    assert_true(rc == RQ_OK || rc == RQ_E_AGAIN);
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
        memset(bytes, (int)(rq_random_next(r) % 3), len); /* zeros are frequent */
        same(rq_file_write(a, bytes, len, off, NULL), rq_file_write(b, bytes, len, off, NULL),
             "write", "");
    }
    compare_bytes(a, b, rq_random_next(r) % FAR, rq_random_next(r) % LONGEST);
}

static void use_file(const vfs_pair *p, rq_random *r, const char *path)
{
    static const int flags[] = {RQ_OPEN_READ, RQ_OPEN_WRITE, RQ_OPEN_WRITE | RQ_OPEN_CREATE,
                                RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL};
    int how = flags[rq_random_next(r) % RQ_ARRAY_LEN(flags)];
    rq_file *a, *b;
    rq_err rc = rq_vfs_open(p->first, path, how, &a, NULL);
    same(rc, rq_vfs_open(p->second, path, how, &b, NULL), "open", path);
    if (rc != RQ_OK) return;
    uint64_t size_a, size_b;
    same(rq_file_opened_size(a, &size_a, NULL), rq_file_opened_size(b, &size_b, NULL), "size",
         path);
    assert_int_equal(size_a, size_b);
    if (how != RQ_OPEN_READ) change_file(r, a, b);
    compare_bytes(a, b, 0, LONGEST - 1);
    assert_int_equal(rq_file_close(a), RQ_OK);
    assert_int_equal(rq_file_close(b), RQ_OK);
}

static void compare_list(const vfs_pair *p, const char *dir)
{
    rq_arena arena = {0};
    rq_dir_entry *x, *y;
    size_t n, m;
    rq_err rc = rq_vfs_list(p->first, dir, &arena, &x, &n, NULL);
    same(rc, rq_vfs_list(p->second, dir, &arena, &y, &m, NULL), "list", dir);
    if (rc == RQ_OK) {
        assert_int_equal(n, m);
        for (size_t i = 0; i < n; i++) {
            assert_string_equal(x[i].name, y[i].name);
            assert_int_equal(x[i].is_dir, y[i].is_dir);
        }
    }
    rq_arena_clear(&arena);
}

static void compare_stat(const vfs_pair *p, const char *path)
{
    rq_stat x, y;
    rq_err rc = rq_vfs_stat(p->first, path, &x, NULL);
    same(rc, rq_vfs_stat(p->second, path, &y, NULL), "stat", path);
    if (rc != RQ_OK) return;
    assert_int_equal(x.is_dir, y.is_dir);
    if (!x.is_dir) assert_int_equal(x.size, y.size);
}

void vfs_pair_agrees(const vfs_pair *p, uint64_t with_seed, int calls)
{
    static const char *const dirs[] = {"", "x", "x/y", "z", "a"};
    rq_random r;
    seed = with_seed;
    rq_random_seed(&r, seed);
    for (int i = 0; i < calls; i++) {
        const char *path = names[rq_random_next(&r) % NAMES];
        const char *other = names[rq_random_next(&r) % NAMES];
        const char *dir = dirs[1 + rq_random_next(&r) % 3];
        switch (rq_random_next(&r) % 10) {
        case 0:
            same(rq_vfs_mkdir(p->first, dir, NULL), rq_vfs_mkdir(p->second, dir, NULL), "mkdir",
                 dir);
            break;
        case 1:
            same(rq_vfs_remove(p->first, path, NULL), rq_vfs_remove(p->second, path, NULL),
                 "remove", path);
            break;
        case 2:
            same(rq_vfs_link(p->first, path, other, NULL),
                 rq_vfs_link(p->second, path, other, NULL), "link", path);
            break;
        case 3:
            compare_list(p, dirs[rq_random_next(&r) % RQ_ARRAY_LEN(dirs)]);
            break;
        case 4:
            compare_stat(p, rq_random_next(&r) % 2 == 0 ? path : dir);
            break;
        case 5:
            if (rq_random_next(&r) % 20 == 0)
                same(rq_vfs_remove_tree(p->first, dir, NULL),
                     rq_vfs_remove_tree(p->second, dir, NULL), "remove_tree", dir);
            break;
        default:
            use_file(p, &r, path);
        }
    }
}

void vfs_pair_clear(rq_vfs *v)
{
    static const char *const tops[] = {"a", "b", "x", "z"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(tops); i++)
        assert_int_equal(rq_vfs_remove_tree(v, tops[i], NULL), RQ_OK);
}
