/* SPDX-License-Identifier: Apache-2.0 */
/* A loop without a thread. Its caller's lock cannot be given up inside libuv, so a turn waits with
 * ppoll() on libuv's descriptor, and libuv only polls. Contract in loop.h, invariant (5) in
 * loop_priv.h. */
#include "net/loop_priv.h"

#include <poll.h>

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
    return loop->timers.next == &loop->timers ? INT64_MAX : (int64_t)loop->timers.next->due_ns;
}

int rq_loop_descriptor(const rq_loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

int64_t rq_loop_due(const rq_loop *loop)
{
    return loop->deferred != NULL ? 0 : timer_due(loop);
}

void rq_loop_wake(rq_loop *loop)
{
    uv_async_send(&loop->wake);
}

void rq_loop_hasten_timers(rq_loop *loop)
{
    for (rq_loop_timer *t = loop->timers.next; t != &loop->timers; t = t->next)
        t->due_ns = 0;
}

void rq_loop_flush(rq_loop *loop)
{
    rq__loop_flush(loop);
    if (RQ_UNLIKELY(loop->unsettled)) rq_loop_wake(loop);
}

/* False: the time has passed, or a signal came. */
static bool wait_for_events(rq_loop *loop, int64_t wait_ns)
{
    const rq_loops *loops = loop->loops;
    struct pollfd fd = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
    struct timespec t = {wait_ns / 1000000000, wait_ns % 1000000000};
    if (loops->before_wait != NULL) loops->before_wait(loops->ctx);
    int n = ppoll(&fd, 1, &t, NULL);
    if (loops->after_wait != NULL) loops->after_wait(loops->ctx);
    return n > 0;
}

static int64_t wait_of(const rq_loop *loop, int64_t timeout_ns)
{
    int64_t due = timer_due(loop);
    if (due != INT64_MAX) timeout_ns = min64(timeout_ns, due - now_ns());
    return timeout_ns > 0 ? timeout_ns : 0;
}

void rq_loop_turn(rq_loop *loop, int64_t timeout_ns)
{
    RQ_ASSERT(loop->loops->driven);
    rq__loop_flush(loop);
    if (loop->unsettled || rq__loop_has_tasks(loop) ||
        wait_for_events(loop, wait_of(loop, timeout_ns))) {
        loop->unsettled = false;
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    }
    if (timer_due(loop) != INT64_MAX && timer_due(loop) <= now_ns()) rq__loop_run_timers(loop);
    rq__loop_iteration_end(loop);
    rq_loop_flush(loop);
}

void rq__loop_stop_driven(rq_loop *loop)
{
    atomic_store(&loop->stopping, true);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    rq__loop_iteration_end(loop);
}
