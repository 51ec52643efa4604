/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct reads by io_uring (reads.h). Each lane has a ring of its own, which only its thread uses; the memory shared with
 * the kernel needs no lock. The system calls are made here, without liburing: three calls and two queues do not
 * justify a library that each process would have to load or link.
 *
 *  1. The ring is made for the lane's first direct read. If that fails, the lane has none from then on.
 *  2. Reads that an iteration of the loop begins are queued, and submitted together by a task at its end.
 *  3. The lane waits for the ring's descriptor, which is readable when reads have ended.
 *  4. At most as many reads are under way as the submission queue has entries; the completion queue has twice as many.
 *     So neither queue overflows.
 *  5. A read that the kernel does not take (no memory) ends with that error, and a thread reads instead.
 *
 * The kernel does not wait for the device on the loop's thread: where it would have to (a file's extents are not in memory,
 * the device's queue is full), it continues on a thread of its own.
 */
#include "vfs/reads_priv.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif

#define ENTRIES 64
/* Linux 5.6: one mapping for both queues, a completion queue that loses nothing, IORING_OP_READ. */
#define FEATURES (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS)

static int make(struct io_uring_params *p, unsigned flags)
{
    memset(p, 0, sizeof *p);
    p->flags = flags;
    return (int)syscall(SYS_io_uring_setup, ENTRIES, p);
}

static int enter(const rq__uring *u, unsigned count)
{
    return (int)syscall(SYS_io_uring_enter, u->fd, count, 0, 0, NULL, 0);
}

void rq__uring_init(rq__uring *u)
{
    *u = (rq__uring){.fd = -1};
}

void rq__uring_clear(rq__uring *u)
{
    if (u->fd < 0) return;
    RQ_ASSERT(u->flying == 0);
    if (u->sqes != NULL) munmap(u->sqes, u->sqes_len);
    if (u->rings != NULL) munmap(u->rings, u->rings_len);
    close(u->fd);
    rq__uring_init(u);
}

static void *map(const rq__uring *u, size_t len, uint64_t what)
{
    void *p =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd, (off_t)what);
    return p == MAP_FAILED ? NULL : p;
}

static bool map_rings(rq__uring *u, const struct io_uring_params *p)
{
    size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    u->rings_len = sq > cq ? sq : cq;
    u->sqes_len = p->sq_entries * sizeof(struct io_uring_sqe);
    u->rings = map(u, u->rings_len, IORING_OFF_SQ_RING);
    u->sqes = map(u, u->sqes_len, IORING_OFF_SQES);
    return u->rings != NULL && u->sqes != NULL;
}

static void *at(const rq__uring *u, uint32_t offset)
{
    return (uint8_t *)u->rings + offset;
}

/* The submission queue is an array of indexes of entries: entry i is always at index i. */
static void find_queues(rq__uring *u, const struct io_uring_params *p)
{
    uint32_t *array = at(u, p->sq_off.array);
    for (uint32_t i = 0; i < p->sq_entries; i++)
        array[i] = i;
    u->entries = p->sq_entries;
    u->sq_tail = at(u, p->sq_off.tail);
    u->sq_mask = *(uint32_t *)at(u, p->sq_off.ring_mask);
    u->cq_head = at(u, p->cq_off.head);
    u->cq_tail = at(u, p->cq_off.tail);
    u->cq_mask = *(uint32_t *)at(u, p->cq_off.ring_mask);
    u->cqes = at(u, p->cq_off.cqes);
}

static void run_submit(rq_task *task);
static void run_ended(rq_task *task);

/* Returns 0 or an errno. */
static int open_ring(rq_reads *q)
{
    rq__uring *u = &q->uring;
    struct io_uring_params p;
    if (q->lane->watch == NULL) return EOPNOTSUPP;
    /* With the flag (Linux 5.19) a read that ends does not interrupt the thread; the loop learns of it when it polls. */
    u->fd = make(&p, IORING_SETUP_CLAMP | IORING_SETUP_COOP_TASKRUN);
    if (u->fd < 0 && errno == EINVAL) u->fd = make(&p, IORING_SETUP_CLAMP);
    if (u->fd < 0) return errno;
    if ((p.features & FEATURES) != FEATURES) return ENOSYS;
    if (!map_rings(u, &p)) return errno;
    find_queues(u, &p);
    u->submit.run = run_submit;
    u->ended.run = run_ended;
    return q->lane->watch(q->lane, u->fd, &u->ended) ? 0 : EOPNOTSUPP;
}

RQ_COLD static void give_up(rq_reads *q, int e)
{
    char text[128];
    rq_reads_shared *all = q->shared;
    rq__uring_clear(&q->uring);
    q->uring.impossible = true;
    if (all->log == NULL || atomic_exchange(&all->told, true)) return;
    rq_log_info(all->log, "vfs",
                "io_uring cannot be used (%s): threads read the blocks that are not in memory",
                strerror_r(e, text, sizeof text));
}

bool rq__uring_open(rq_reads *q)
{
    rq__uring *u = &q->uring;
    if (RQ_LIKELY(u->fd >= 0)) return true;
    int e = u->impossible ? 0 : open_ring(q);
    if (e != 0) give_up(q, e);
    return !u->impossible;
}

void rq__uring_read(rq_reads *q, int fd, rq_read *r)
{
    rq__uring *u = &q->uring;
    uint32_t tail = atomic_load_explicit(u->sq_tail, memory_order_relaxed);
    struct io_uring_sqe *e = &u->sqes[tail & u->sq_mask];
    memset(e, 0, sizeof *e);
    e->opcode = IORING_OP_READ;
    e->fd = fd;
    e->off = r->from;
    e->addr = (uintptr_t)r->bytes;
    e->len = r->len;
    e->user_data = (uintptr_t)r;
    atomic_store_explicit(u->sq_tail, tail + 1, memory_order_release);
    u->flying++;
    if (u->queued++ == 0) rq_lane_post(q->lane, &u->submit);
}

/* Takes the entries that the kernel refused back. The kernel looks at the queue only while a system call submits it. */
RQ_COLD static void refuse_queued(rq__uring *u, int e)
{
    uint32_t first = atomic_load_explicit(u->sq_tail, memory_order_relaxed) - u->queued;
    uint32_t count = u->queued;
    u->queued = 0;
    u->flying -= count;
    atomic_store_explicit(u->sq_tail, first, memory_order_release);
    for (uint32_t i = 0; i < count; i++) {
        rq_read *r = (rq_read *)(uintptr_t)u->sqes[(first + i) & u->sq_mask].user_data;
        rq__read_ended(r, -e);
    }
}

static void run_submit(rq_task *task)
{
    rq__uring *u = RQ_CONTAINER_OF(task, rq__uring, submit);
    while (u->queued > 0) {
        int n = enter(u, u->queued);
        if (n > 0)
            u->queued -= (uint32_t)n;
        else if (n == 0 || errno != EINTR)
            refuse_queued(u, n == 0 ? EAGAIN : errno);
    }
}

static void run_ended(rq_task *task)
{
    rq__uring *u = RQ_CONTAINER_OF(task, rq__uring, ended);
    uint32_t head = atomic_load_explicit(u->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(u->cq_tail, memory_order_acquire);
    for (; head != tail; head++) {
        const struct io_uring_cqe *e = &u->cqes[head & u->cq_mask];
        u->flying--;
        rq__read_ended((rq_read *)(uintptr_t)e->user_data, e->res);
    }
    atomic_store_explicit(u->cq_head, head, memory_order_release);
}
