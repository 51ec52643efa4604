/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from the page cache alone, and reads past it. */
#include "../base/forbid.h"
#include "../base/unit.h"

#include "base/random.h"
#include "vfs/posix_priv.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 20)

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static char root[64];
static uint8_t bytes[SIZE];

static int make_file(void **state)
{
    char path[80];
    rq_random random;
    rq_random_seed(&random, 1);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)rq_random_below(&random, 256);
    /* Not in /tmp, which may have no device below it. */
    strcpy(root, "rorqual-cached-XXXXXX");
    if (mkdtemp(root) == NULL) return -1;
    snprintf(path, sizeof path, "%s/f", root);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, SIZE) != (ssize_t)SIZE || fsync(fd) != 0) return -1;
    *state = (void *)(intptr_t)fd;
    return 0;
}

static int remove_file(void **state)
{
    char path[80];
    close((int)(intptr_t)*state);
    snprintf(path, sizeof path, "%s/f", root);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/old", root);
    (void)unlink(path);
    return rmdir(root);
}

static void drop(int fd)
{
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* Pages of the file in the page cache. Skips the test where the kernel does not tell, or keeps what
 * was dropped (tmpfs). */
static uint64_t cached_pages(int fd)
{
    rq__cached c = {.looks = RQ__LOOKS_YES};
    rq__cached_counts n;
    if (!rq__cached_look(&c, fd, 0, SIZE, &n)) skip();
    return n.cached;
}

static void skip_unless_droppable(int fd)
{
    drop(fd);
    if (cached_pages(fd) != 0) skip();
}

static ssize_t try_at(rq__cached *c, int fd, size_t len, uint64_t off, int *e)
{
    static uint8_t got[SIZE];
    ssize_t n = rq__cached_read(c, fd, got, len, off, e);
    if (n > 0) assert_memory_equal(got, bytes + off, (size_t)n);
    return n;
}

/* A look at bytes that are not there must not bring them: it runs on an event loop. */
static void a_try_starts_no_read(void **state)
{
    int fd = (int)(intptr_t)*state;
    int e;
    skip_unless_droppable(fd);
    rq__cached c = {.looks = RQ__LOOKS_YES};
    assert_int_equal(try_at(&c, fd, 65536, 65536 + 33, &e), -1);
    assert_int_equal(e, EAGAIN);
    assert_int_equal(cached_pages(fd), 0);
    uint8_t byte;
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
    assert_int_equal(pread(fd, &byte, 1, 65536), 1); /* one page of those */
    assert_int_equal(try_at(&c, fd, 65536, 65536 + 33, &e), -1);
    assert_true(cached_pages(fd) < 8);
}

static void what_is_cached_is_read(void **state)
{
    int fd = (int)(intptr_t)*state;
    int e;
    static uint8_t all[SIZE];
    assert_int_equal(pread(fd, all, SIZE, 0), SIZE);
    int ways[] = {RQ__LOOKS_UNKNOWN, RQ__LOOKS_YES, RQ__LOOKS_NO};
    for (size_t i = 0; i < RQ_ARRAY_LEN(ways); i++) {
        rq__cached c = {.looks = ways[i]};
        if (try_at(&c, fd, 1, 0, &e) < 0) skip(); /* no RWF_NOWAIT here */
        assert_int_equal(try_at(&c, fd, 65536, 12345, &e), 65536);
        assert_int_equal(try_at(&c, fd, 65536, SIZE - 10, &e), 10); /* the end of the file */
        assert_int_equal(rq__cached_read(&c, fd, all, 65536, SIZE + 10, &e), 0);
    }
}

/* Only a kernel that shows the pages of a read that has just ended is believed. */
static void the_first_read_detects_the_kernels_support(void **state)
{
    int fd = (int)(intptr_t)*state;
    uint8_t some[8192];
    skip_unless_droppable(fd);
    rq__cached c = {0};
    rq__cached_learn(&c, fd, 0, 0); /* tells nothing */
    assert_int_equal(c.looks, RQ__LOOKS_UNKNOWN);
    assert_int_equal(pread(fd, some, sizeof some, 0), sizeof some);
    rq__cached_learn(&c, fd, 0, sizeof some);
    assert_int_equal(c.looks, RQ__LOOKS_YES);
    c.looks = RQ__LOOKS_UNKNOWN;
    drop(fd);
    rq__cached_learn(&c, fd, 0, sizeof some); /* as on a file system that keeps them elsewhere */
    assert_int_equal(c.looks, RQ__LOOKS_NO);
}

/* A pipe shows whether a read was tried: it cannot be read at an offset. */
static void failing_tries_are_mostly_left_out(void **state)
{
    int fd = (int)(intptr_t)*state;
    int ends[2], e;
    unsigned tried = 0;
    rq__cached c = {.looks = RQ__LOOKS_NO};
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 328; i++) {
        assert_int_equal(try_at(&c, ends[0], 4096, 0, &e), -1);
        assert_true(e == EAGAIN || e == ESPIPE);
        tried += e == ESPIPE;
    }
    assert_in_range(tried, 8 + 9, 8 + 11); /* the first eight, then one in 32 */
    static uint8_t all[SIZE];
    assert_int_equal(pread(fd, all, SIZE, 0), SIZE);
    bool read = false;
    for (int i = 0; i < 32; i++)
        read = try_at(&c, fd, 4096, 0, &e) == 4096 || read;
    if (read) { /* one that succeeds brings the others back */
        assert_int_equal(try_at(&c, ends[0], 4096, 0, &e), -1);
        assert_int_equal(e, ESPIPE);
    }
    close(ends[0]);
    close(ends[1]);
}

/* As in a sandbox, or before Linux 6.5. In a child, which keeps the filter. */
static void without_cachestat_reads_are_tried(void **state)
{
    int fd = (int)(intptr_t)*state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static uint8_t all[SIZE];
        rq__cached c = {.looks = RQ__LOOKS_YES};
        rq__cached fresh = {0};
        rq__direct d;
        int e;
        if (!forbid_system_call(SYS_cachestat, ENOSYS)) _exit(2);
        if (pread(fd, all, SIZE, 0) != (ssize_t)SIZE) _exit(1);
        rq__cached_learn(&fresh, fd, 0, SIZE);
        rq__direct_init(&d);
        if (fresh.looks != RQ__LOOKS_NO || rq__direct_is_worth_it(&d, &c, fd, 0, 65536)) _exit(1);
        ssize_t n = rq__cached_read(&c, fd, all, 4096, 0, &e);
        _exit(c.looks == RQ__LOOKS_NO && (n == 4096 || e == EAGAIN) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Any range, with and without pages in the cache: the same bytes, or none. */
static void direct_reads_see_the_same_bytes(void **state)
{
    int fd = (int)(intptr_t)*state;
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rq__direct_count count = {.most = 1};
    rq__direct_file f = {&count, folder, "f", fd};
    rq__direct d;
    rq_random random;
    static uint8_t got[SIZE + 1];
    rq_random_seed(&random, 2);
    rq__direct_init(&d);
    if (!rq__direct_read(&d, &f, got, 100, 0)) {
        close(folder);
        skip(); /* no direct reads here */
    }
    for (int i = 0; i < 200; i++) {
        uint64_t off = rq_random_below(&random, SIZE);
        size_t len = 1 + rq_random_below(&random, SIZE - off);
        if (rq_random_below(&random, 3) == 0) drop(fd);
        got[len] = 0xa5;
        assert_true(rq__direct_read(&d, &f, got, len, off));
        assert_memory_equal(got, bytes + off, len);
        assert_int_equal(got[len], 0xa5);
    }
    assert_false(rq__direct_read(&d, &f, got, 2, SIZE - 1)); /* not there as a whole */
    assert_int_equal(count.open, 1);
    rq__direct second;
    rq__direct_init(&second); /* too many: not now, but when the other is closed */
    assert_false(rq__direct_read(&second, &f, got, 100, 0));
    assert_int_equal(count.open, 1);
    rq__direct_clear(&d, &count);
    assert_true(rq__direct_read(&second, &f, got, 100, 0));
    rq__direct_clear(&second, &count);
    assert_int_equal(count.open, 0);
    close(folder);
}

/* The name may be gone, or stand for another file by now. */
static void a_direct_read_is_of_the_open_file(void **state)
{
    int fd = (int)(intptr_t)*state;
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rq__direct_count count = {.most = 1};
    rq__direct_file f = {&count, folder, "f", fd};
    rq__direct d;
    uint8_t got[4096];
    assert_int_equal(renameat(folder, "f", folder, "old"), 0);
    rq__direct_init(&d);
    assert_false(rq__direct_read(&d, &f, got, sizeof got, 0));
    rq__direct_clear(&d, &count);
    int other = openat(folder, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(other, root, sizeof root), sizeof root);
    close(other);
    rq__direct_init(&d);
    assert_false(rq__direct_read(&d, &f, got, 16, 0));
    assert_false(rq__direct_read(&d, &f, got, 16, 0)); /* nor later */
    assert_int_equal(count.open, 0);
    rq__direct_clear(&d, &count);
    close(folder);
}

/* A file never evicted is read through the page cache: it has room, or the file is new. */
static void what_was_never_evicted_is_not_read_past_the_cache(void **state)
{
    int fd = (int)(intptr_t)*state;
    rq__cached c = {.looks = RQ__LOOKS_YES};
    rq__direct d;
    skip_unless_droppable(fd); /* which is no eviction */
    rq__direct_init(&d);
    for (int i = 0; i < 100; i++)
        assert_false(rq__direct_is_worth_it(&d, &c, fd, 65536, 65536));
}

/* What a device reads ahead by itself is doubled only where it is little. */
static void large_read_ahead_is_not_doubled(void **state)
{
    static const long little[] = {-1, 0, 128, 512}, much[] = {1024, 8192, 1 << 20};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rq__sequence_advice_for(little[i]), POSIX_FADV_SEQUENTIAL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rq__sequence_advice_for(much[i]), POSIX_FADV_NORMAL);
    assert_int_equal(rq__sequence_advice(-1), POSIX_FADV_SEQUENTIAL); /* no file */
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(a_try_starts_no_read),
        WITH_FILE(what_is_cached_is_read),
        WITH_FILE(the_first_read_detects_the_kernels_support),
        WITH_FILE(failing_tries_are_mostly_left_out),
        WITH_FILE(without_cachestat_reads_are_tried),
        WITH_FILE(direct_reads_see_the_same_bytes),
        WITH_FILE(a_direct_read_is_of_the_open_file),
        WITH_FILE(what_was_never_evicted_is_not_read_past_the_cache),
        cmocka_unit_test(large_read_ahead_is_not_doubled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
