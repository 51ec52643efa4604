/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads past the page cache, of blocks that it would not keep.
 *
 * Where data is many times larger than memory, a read through the page cache allocates pages, evicts
 * others for them, and copies; before the block is read again its pages are evicted in turn. A direct
 * read takes half the processor time. But the page cache is worth having for blocks that are
 * read again soon. The kernel knows which: for an evicted page it remembers when, and tells whether a
 * somewhat larger cache would have kept it (cachestat: evicted, recently_evicted). So:
 *
 *     never read yet, partly cached, or evicted a short while ago    through the page cache
 *     evicted long ago                                               direct, but for one in KEEP_EVERY
 *
 * The exceptions keep the kernel's record of evictions up to date.
 *
 * The same record decides how a long scan reads (rq__direct_plan): a part of the file is read past the page cache if
 * at least half of its pages that are not cached were evicted, and at most an eighth of all its pages recently. Up to
 * three quarters of the pages may be cached.
 *
 * A direct read has a descriptor of its own, opened when the file first needs it, as long as there are
 * not too many. Offset, length and memory must be multiples of the device's block; if they are not, the
 * bytes pass through a buffer.
 */
#include "vfs/posix_priv.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN ((uint64_t)RQ_READ_ALIGN)
#define LEN_MIN ((size_t)16 << 10) /* of smaller reads the rounded one would be much more */
#define LEN_MAX ((size_t)512 << 10)
#define KEEP_EVERY 16
/* How many of a part's pages may be recently evicted if the part is read past the page cache. */
#define TOLERATED(pages) ((pages) / 8)
#define SHARE 8 /* of the descriptors that the process may have */

enum { NONE_YET = -1, IMPOSSIBLE = -2 };

void rq__direct_init(rq__direct *d)
{
    atomic_init(&d->fd, NONE_YET);
    atomic_init(&d->reads, 0);
}

void rq__direct_clear(rq__direct *d, rq__direct_count *c)
{
    int fd = atomic_load_explicit(&d->fd, memory_order_relaxed);
    if (fd < 0) return;
    close(fd);
    atomic_fetch_sub_explicit(&c->open, 1, memory_order_relaxed);
}

void rq__direct_count_init(rq__direct_count *c)
{
    struct rlimit files;
    bool known = getrlimit(RLIMIT_NOFILE, &files) == 0;
    rlim_t count = !known ? 0 : files.rlim_cur > INT_MAX ? INT_MAX : files.rlim_cur;
    atomic_init(&c->open, 0);
    c->most = (int)(count / SHARE);
}

bool rq__direct_has_its_turn(rq__direct *d)
{
    return atomic_fetch_add_explicit(&d->reads, 1, memory_order_relaxed) % KEEP_EVERY != 0;
}

bool rq__direct_is_worth_it(rq__direct *d, rq__cached *c, int fd, uint64_t off, size_t len)
{
    rq__cached_counts n;
    if (len < LEN_MIN || len > LEN_MAX || !rq__cached_look(c, fd, off, len, &n)) return false;
    if (n.cached > 0 || n.recently_evicted > 0 || n.evicted < n.pages / 2) return false;
    return rq__direct_has_its_turn(d);
}

int rq__direct_worth_beginning(rq__direct *d, rq__cached *c, int fd, uint64_t off, size_t len)
{
    int direct = atomic_load_explicit(&d->fd, memory_order_acquire);
    /* Not counted: the thread that makes this read counts it. */
    if (direct < 0 || atomic_load_explicit(&d->reads, memory_order_relaxed) % KEEP_EVERY == 0)
        return -1;
    return rq__direct_is_worth_it(d, c, fd, off, len) ? direct : -1;
}

rq_read_plan rq__direct_plan(rq__direct *d, rq__cached *c, int fd, uint64_t off, uint64_t len)
{
    rq__cached_counts n;
    if (!rq__cached_look(c, fd, off, len, &n)) return RQ_READ_AHEAD;
    if (n.cached >= n.pages - n.pages / 4) return RQ_READ_CACHED;
    bool is_possible = atomic_load_explicit(&d->fd, memory_order_relaxed) != IMPOSSIBLE;
    bool was_evicted = n.evicted >= (n.pages - n.cached) / 2;
    bool is_long_ago = n.recently_evicted <= TOLERATED(n.pages);
    return is_possible && was_evicted && is_long_ago ? RQ_READ_PAST : RQ_READ_AHEAD;
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_again(const rq__direct_file *f)
{
    int flags = O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(f->root, f->path, flags);
    if (fd < 0) return IMPOSSIBLE;
    if (is_same_file(fd, f->fd)) return fd;
    close(fd);
    return IMPOSSIBLE;
}

/* IMPOSSIBLE: the file's name is gone or refers to another file, or direct reads are not supported.
 * NONE_YET: too many are open now. Two threads may call it at a time. */
static int open_direct(rq__direct *d, const rq__direct_file *f)
{
    int there = NONE_YET;
    int others = atomic_fetch_add_explicit(&f->count->open, 1, memory_order_relaxed);
    int fd = others < f->count->most ? open_again(f) : NONE_YET;
    if (fd != NONE_YET && atomic_compare_exchange_strong(&d->fd, &there, fd)) {
        if (fd >= 0) return fd; /* it counts */
    } else if (fd >= 0) {
        close(fd);
    }
    atomic_fetch_sub_explicit(&f->count->open, 1, memory_order_relaxed);
    return there;
}

static ssize_t read_whole(int fd, void *buf, size_t len, uint64_t off)
{
    ssize_t n;
    do
        n = pread(fd, buf, len, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool is_aligned(const void *buf, size_t len, uint64_t off)
{
    return ((uintptr_t)buf | len | off) % ALIGN == 0;
}

/* Reads whole blocks of the device around the bytes. */
static bool read_around(int fd, void *buf, size_t len, uint64_t off)
{
    if (is_aligned(buf, len, off)) return read_whole(fd, buf, len, off) == (ssize_t)len;
    uint64_t from = off / ALIGN * ALIGN;
    size_t whole = (size_t)((off + len + ALIGN - 1) / ALIGN * ALIGN - from);
    /* Not aligned_alloc: glibc before 2.38 does not reuse memory that was allocated by it. */
    uint8_t *room = malloc(whole + ALIGN);
    if (room == NULL) return false;
    uint8_t *bytes = room + (ALIGN - (uintptr_t)room % ALIGN) % ALIGN;
    ssize_t n = read_whole(fd, bytes, whole, from);
    bool read = n >= 0 && (uint64_t)n >= off - from + len;
    if (read) memcpy(buf, bytes + (off - from), len);
    free(room);
    return read;
}

bool rq__direct_read(rq__direct *d, const rq__direct_file *f, void *buf, size_t len, uint64_t off)
{
    int fd = atomic_load_explicit(&d->fd, memory_order_acquire);
    if (fd == NONE_YET) fd = open_direct(d, f);
    return fd >= 0 && read_around(fd, buf, len, off);
}
