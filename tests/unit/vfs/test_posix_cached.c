/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that only use the page cache, and direct reads that bypass it. */
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
    /* Not in /tmp, which may be a tmpfs without a device. */
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

/* Pages of the file in the page cache. Skips the test if the kernel does not report this, or keeps
 * dropped pages (tmpfs). */
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

/* A try of uncached bytes must not start a read, because it runs on an event loop. */
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
    /* brings one page of the range into the cache */
    assert_int_equal(pread(fd, &byte, 1, 65536), 1);
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
        if (try_at(&c, fd, 1, 0, &e) < 0) skip(); /* no RWF_NOWAIT on this system */
        assert_int_equal(try_at(&c, fd, 65536, 12345, &e), 65536);
        assert_int_equal(try_at(&c, fd, 65536, SIZE - 10, &e), 10); /* the end of the file */
        assert_int_equal(rq__cached_read(&c, fd, all, 65536, SIZE + 10, &e), 0);
    }
}

/* The kernel's report is trusted only if it shows the pages of a read that has just ended. */
static void the_first_read_detects_the_kernels_support(void **state)
{
    int fd = (int)(intptr_t)*state;
    uint8_t some[8192];
    skip_unless_droppable(fd);
    rq__cached c = {0};
    rq__cached_learn(&c, fd, 0, 0); /* an empty read shows nothing */
    assert_int_equal(c.looks, RQ__LOOKS_UNKNOWN);
    assert_int_equal(pread(fd, some, sizeof some, 0), sizeof some);
    rq__cached_learn(&c, fd, 0, sizeof some);
    assert_int_equal(c.looks, RQ__LOOKS_YES);
    c.looks = RQ__LOOKS_UNKNOWN;
    drop(fd);
    rq__cached_learn(&c, fd, 0, sizeof some); /* as on a file system that caches elsewhere */
    assert_int_equal(c.looks, RQ__LOOKS_NO);
}

/* A pipe shows whether a read was tried, because it cannot be read at an offset (ESPIPE). */
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
    assert_in_range(tried, 8 + 9, 8 + 11); /* the first eight reads are tried, then one in 32 */
    static uint8_t all[SIZE];
    assert_int_equal(pread(fd, all, SIZE, 0), SIZE);
    bool read = false;
    for (int i = 0; i < 32; i++)
        read = try_at(&c, fd, 4096, 0, &e) == 4096 || read;
    if (read) { /* after one success reads are tried again */
        assert_int_equal(try_at(&c, ends[0], 4096, 0, &e), -1);
        assert_int_equal(e, ESPIPE);
    }
    close(ends[0]);
    close(ends[1]);
}

/* As in a sandbox, or before Linux 6.5. Runs in a child process, because the filter cannot be
 * removed. */
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

/* Direct reads of any range, with and without cached pages, return the same bytes or fail. */
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
        skip(); /* the file system has no direct reads */
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
    /* Aligned: without a buffer. */
    _Alignas(RQ_READ_ALIGN) static uint8_t aligned[SIZE];
    for (uint64_t off = 0; off < SIZE; off += SIZE / 4) {
        assert_true(rq__direct_read(&d, &f, aligned, SIZE / 4, off));
        assert_memory_equal(aligned, bytes + off, SIZE / 4);
    }
    assert_false(rq__direct_read(&d, &f, aligned, SIZE / 2, SIZE - SIZE / 4));
    assert_false(rq__direct_read(&d, &f, got, 2, SIZE - 1)); /* the range exceeds the file */
    assert_int_equal(count.open, 1);
    rq__direct second;
    rq__direct_init(&second); /* above the limit: refused until the first one is closed */
    assert_false(rq__direct_read(&second, &f, got, 100, 0));
    assert_int_equal(count.open, 1);
    rq__direct_clear(&d, &count);
    assert_true(rq__direct_read(&second, &f, got, 100, 0));
    rq__direct_clear(&second, &count);
    assert_int_equal(count.open, 0);
    close(folder);
}

/* By then the file's name may not exist, or belong to another file. */
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
    assert_false(rq__direct_read(&d, &f, got, 16, 0)); /* still refused */
    assert_int_equal(count.open, 0);
    rq__direct_clear(&d, &count);
    close(folder);
}

/* A file of which nothing was evicted is read through the page cache: the cache has space for it,
 * or the file is new. */
static void what_was_never_evicted_is_not_read_past_the_cache(void **state)
{
    int fd = (int)(intptr_t)*state;
    rq__cached c = {.looks = RQ__LOOKS_YES};
    rq__direct d;
    skip_unless_droppable(fd); /* dropping pages does not count as an eviction */
    rq__direct_init(&d);
    for (int i = 0; i < 100; i++)
        assert_false(rq__direct_is_worth_it(&d, &c, fd, 65536, 65536));
    assert_int_equal(rq__direct_plan(&d, &c, fd, 65536, SIZE / 2), RQ_READ_AHEAD);
}

static void what_is_cached_is_not_read_in_advance(void **state)
{
    int fd = (int)(intptr_t)*state;
    rq__cached c = {.looks = RQ__LOOKS_YES}, unknown = {0};
    rq__direct d;
    static uint8_t all[SIZE];
    rq__direct_init(&d);
    for (int i = 0; i < 100 && (i == 0 || cached_pages(fd) < SIZE / 4096);
         i++) /* other programs may cause evictions */
        assert_int_equal(pread(fd, all, SIZE, 0), SIZE);
    assert_int_equal(rq__direct_plan(&d, &c, fd, 65536, SIZE / 2), RQ_READ_CACHED);
    assert_int_equal(rq__direct_plan(&d, &unknown, fd, 65536, SIZE / 2), RQ_READ_AHEAD);
}

/* Sequential advice, which doubles the device's read-ahead, is given only if the read-ahead is
 * small. */
static void large_read_ahead_is_not_doubled(void **state)
{
    static const long little[] = {-1, 0, 128, 512}, much[] = {1024, 8192, 1 << 20};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rq__sequence_advice_for(little[i]), POSIX_FADV_SEQUENTIAL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rq__sequence_advice_for(much[i]), POSIX_FADV_NORMAL);
    assert_int_equal(rq__sequence_advice(-1), POSIX_FADV_SEQUENTIAL); /* an invalid file */
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
        WITH_FILE(what_is_cached_is_not_read_in_advance),
        cmocka_unit_test(large_read_ahead_is_not_doubled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
