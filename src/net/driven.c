/* SPDX-License-Identifier: Apache-2.0 */
/* A loop without a thread. The caller's lock cannot be released inside libuv, so a turn waits on libuv's epoll
 * descriptor, and libuv only polls without waiting. An event that ends this wait is not lost: uv_poll_t is
 * level-triggered, so libuv's poll reports it, too, unless the socket was read before. libuv's uv_async_t may be
 * edge-triggered, so a driven loop is woken by a descriptor of its own, the bell. Contract in loop.h, invariant (5) in
 * loop_priv.h. */
#include "net/loop_priv.h"
#include "net/timers.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DESCRIPTORS 9 /* two pipes for signals, epoll, wake-up, bell; and two to spare */
#define ALONE_MIN 2
#define UNPOLLED_MAX 16

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t now_ns(void)
{
    return (int64_t)rq_loop_clock_ns();
}

/* The first timer's; INT64_MAX: there is none. */
static int64_t timer_due(const rq_loop *loop)
{
    return loop->timers == NULL ? INT64_MAX : (int64_t)loop->timers->due_ns;
}

int rq_loop_descriptor(const rq_loop *loop)
{
    return loop->loops->libuv.uv_backend_fd(&loop->uv);
}

int64_t rq_loop_due(const rq_loop *loop)
{
    return loop->deferred != NULL ? 0 : timer_due(loop);
}

static void on_bell(uv_poll_t *h, int status, int events)
{
    rq_loop *loop = RQ_CONTAINER_OF(h, rq_loop, bell);
    uint64_t count;
    (void)status;
    (void)events;
    rq__loop_enter(loop);
    loop->ready++;
    ssize_t n = read(loop->bell_fd, &count, sizeof count); /* another turn may have been faster */
    (void)n;
}

bool rq__loop_has_descriptors(void)
{
    int fds[DESCRIPTORS], n = 0;
    while (n < DESCRIPTORS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(fds[i]);
    return n == DESCRIPTORS;
}

rq_err rq__loop_open_bell(rq_loop *loop)
{
    loop->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->bell_fd < 0) return RQ_E_IO;
    if (loop->loops->libuv.uv_poll_init(&loop->uv, &loop->bell, loop->bell_fd) != 0 ||
        loop->loops->libuv.uv_poll_start(&loop->bell, UV_READABLE, on_bell) != 0) {
        close(loop->bell_fd);
        loop->bell_fd = -1;
        return RQ_E_IO;
    }
    loop->loops->libuv.uv_run(&loop->uv, UV_RUN_NOWAIT); /* from now on the kernel knows it */
    return RQ_OK;
}

void rq_loop_wake(rq_loop *loop)
{
    uint64_t one = 1;
    ssize_t n = write(loop->bell_fd, &one, sizeof one); /* EAGAIN: it rings */
    (void)n;
}

void rq_loop_hasten_timers(rq_loop *loop)
{
    rq__timers_hasten(&loop->timers);
}

void rq_loop_flush(rq_loop *loop)
{
    rq__loop_flush(loop);
    if (RQ_UNLIKELY(loop->must_poll)) rq_loop_wake(loop);
}

/* ppoll, which every system has, costs a client 3 % more. */
static int wait_on(int fd, bool by_ppoll, const struct timespec *t)
{
    struct epoll_event event;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return by_ppoll ? ppoll(&p, 1, t, NULL) : epoll_pwait2(fd, &event, 1, t, NULL);
}

/* False: the time has passed, or a signal came. */
static bool wait_for_events(rq_loop *loop, int64_t wait_ns)
{
    const rq_loops *loops = loop->loops;
    struct timespec t = {wait_ns / 1000000000, wait_ns % 1000000000};
    int fd = loop->loops->libuv.uv_backend_fd(&loop->uv);
    bool by_ppoll = loop->by_ppoll;
    if (loops->before_wait != NULL) loops->before_wait(loops->ctx);
    int n = wait_on(fd, by_ppoll, &t), error = errno;
    if (loops->after_wait != NULL) loops->after_wait(loops->ctx);
    /* Linux before 5.11, a container's seccomp profile, an emulator */
    if (RQ_UNLIKELY(n < 0) && (error == ENOSYS || error == EPERM)) loop->by_ppoll = true;
    return n > 0;
}

static int64_t wait_of(const rq_loop *loop, int64_t timeout_ns)
{
    int64_t due = timer_due(loop);
    if (due != INT64_MAX) timeout_ns = min64(timeout_ns, due - now_ns());
    return timeout_ns > 0 ? timeout_ns : 0;
}

static void poll_libuv(rq_loop *loop)
{
    const rq_stream *before = loop->likely;
    loop->must_poll = false;
    loop->unpolled = loop->ready = 0;
    loop->loops->libuv.uv_run(&loop->uv, UV_RUN_NOWAIT);
    if (loop->ready != 1 || loop->likely != before)
        loop->alone = 0;
    else
        loop->alone++;
}

/* A client often has one busy stream. After it was the only ready stream several times, it is read
 * without asking libuv which streams are ready, which saves a system call. Every 17th turn asks at
 * the latest, so the other streams do not starve. */
static bool read_likely(rq_loop *loop)
{
    if (loop->alone < ALONE_MIN || loop->likely == NULL || loop->unpolled >= UNPOLLED_MAX)
        return false;
    loop->unpolled++;
    return !rq__loop_has_tasks(loop) && rq__stream_try_read(loop->likely);
}

void rq_loop_turn(rq_loop *loop, int64_t timeout_ns)
{
    RQ_ASSERT(loop->loops->driven);
    rq__loop_flush(loop);
    if (loop->must_poll || rq__loop_has_tasks(loop))
        poll_libuv(loop);
    else if (wait_for_events(loop, wait_of(loop, timeout_ns)) && !read_likely(loop))
        poll_libuv(loop);
    int64_t due = timer_due(loop);
    if (RQ_UNLIKELY(due != INT64_MAX) && due <= now_ns()) rq__loop_run_timers(loop);
    rq__loop_iteration_end(loop); /* writes */
    if (RQ_UNLIKELY(loop->must_poll)) rq_loop_wake(loop);
}

void rq__loop_stop_driven(rq_loop *loop)
{
    atomic_store(&loop->stopping, true);
    loop->loops->libuv.uv_run(&loop->uv, UV_RUN_DEFAULT);
    rq__loop_iteration_end(loop);
}
