/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads on event loops: only what the page cache has.
 *
 * preadv2 with RWF_NOWAIT is not enough. It returns EAGAIN for a page that is missing, but it starts
 * reading that page first: pages are made for it, others reclaimed, on the loop, for bytes that a
 * thread of the pool then reads (or no longer finds, where memory is short). So the kernel is asked
 * first whether all pages are there, by cachestat (Linux 6.5), which starts nothing. Without it (an
 * older kernel, a sandbox that refuses it, a file system that keeps its pages elsewhere) the read is
 * tried, and after some failures only once in a while.
 *
 * Whether cachestat can be trusted is found out after the first ordinary read: cachestat must then report
 * the pages that were read as cached.
 */
#include "vfs/posix_priv.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* on every architecture but Alpha */
#endif

#define FAILED_MAX 8 /* in a row; from then on one try in RETRY_EVERY is made */
#define RETRY_EVERY 32

struct range {
    uint64_t off, len;
};

/* The kernel's struct cachestat. */
struct counts {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static uint64_t pages_of(uint64_t off, uint64_t len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return len == 0 ? 0 : (off + len - 1) / page - off / page + 1;
}

/* False: the kernel does not tell. */
static bool count(int fd, uint64_t off, uint64_t len, rq__cached_counts *ret)
{
    struct range range = {off, len};
    struct counts counts = {0};
    if (syscall(SYS_cachestat, fd, &range, &counts, 0) != 0) return false;
    *ret = (rq__cached_counts){pages_of(off, len), counts.cached, counts.evicted,
                               counts.recently_evicted};
    return true;
}

bool rq__cached_look(rq__cached *c, int fd, uint64_t off, uint64_t len, rq__cached_counts *ret)
{
    return atomic_load_explicit(&c->looks, memory_order_relaxed) == RQ__LOOKS_YES &&
           count(fd, off, len, ret);
}

/* Whether all bytes are cached, up to the end of the file. */
static bool is_cached(rq__cached *c, int fd, uint64_t off, uint64_t len)
{
    rq__cached_counts n;
    if (!count(fd, off, len, &n)) {
        atomic_store_explicit(&c->looks, RQ__LOOKS_NO, memory_order_relaxed);
        return true; /* perhaps */
    }
    if (n.cached >= n.pages) return true;
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    uint64_t end = (uint64_t)st.st_size;
    if (off + len <= end) return false;
    return off >= end || n.cached >= pages_of(off, end - off);
}

/* Recent tries have failed: most are skipped. The counter is only a hint. */
static bool is_worth_a_try(rq__cached *c)
{
    unsigned failed = atomic_load_explicit(&c->failed, memory_order_relaxed);
    if (RQ_LIKELY(failed < FAILED_MAX)) return true;
    atomic_store_explicit(&c->failed, failed + 1, memory_order_relaxed);
    return failed % RETRY_EVERY == 0;
}

static void count_try(rq__cached *c, bool read)
{
    unsigned failed = atomic_load_explicit(&c->failed, memory_order_relaxed);
    if (read && failed > 0) atomic_store_explicit(&c->failed, 0, memory_order_relaxed);
    if (!read && failed < FAILED_MAX)
        atomic_store_explicit(&c->failed, failed + 1, memory_order_relaxed);
}

static ssize_t try_read(int fd, void *buf, size_t len, uint64_t off, int *ret_errno)
{
    struct iovec part = {buf, len};
    ssize_t n = preadv2(fd, &part, 1, (off_t)off, RWF_NOWAIT);
    *ret_errno = errno;
    if (n < 0) {
        if (errno == EOPNOTSUPP || errno == EINTR) *ret_errno = EAGAIN;
        return -1;
    }
    if ((size_t)n == len) return n;
    /* Either only a part is cached, or the file ends here. */
    struct stat st;
    bool whole = fstat(fd, &st) == 0 && off + (uint64_t)n >= (uint64_t)st.st_size;
    *ret_errno = EAGAIN;
    return whole ? n : -1;
}

ssize_t rq__cached_read(rq__cached *c, int fd, void *buf, size_t len, uint64_t off, int *ret_errno)
{
    *ret_errno = EAGAIN;
    if (atomic_load_explicit(&c->looks, memory_order_relaxed) == RQ__LOOKS_YES) {
        if (!is_cached(c, fd, off, len)) return -1;
    } else if (!is_worth_a_try(c)) {
        return -1;
    }
    ssize_t n = try_read(fd, buf, len, off, ret_errno);
    count_try(c, n >= 0);
    return n;
}

void rq__cached_learn(rq__cached *c, int fd, uint64_t off, size_t len)
{
    if (RQ_LIKELY(atomic_load_explicit(&c->looks, memory_order_relaxed) != RQ__LOOKS_UNKNOWN))
        return;
    if (len == 0) return;
    rq__cached_counts n;
    bool seen = count(fd, off, len, &n) && n.cached > 0;
    atomic_store_explicit(&c->looks, seen ? RQ__LOOKS_YES : RQ__LOOKS_NO, memory_order_relaxed);
}
