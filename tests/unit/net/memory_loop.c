/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and streams in memory; see memory_loop.h. */
#include "memory_loop.h"
#include "net/answers.h"

#include "net/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t memory_clock_ns;

/* ---- loops */

static void post(rq_lane *lane, rq_task *task)
{
    rq_loop *loop = RQ_CONTAINER_OF(lane, rq_loop, own);
    for (const rq_task *t = loop->tasks; t != NULL; t = t->next)
        if (t == task) abort(); /* a task may not be posted again before it runs */
    task->next = NULL;
    *loop->end = task;
    loop->end = &task->next;
}

static void run_own(rq_loop *loop)
{
    while (loop->tasks != NULL) {
        rq_task *t = loop->tasks;
        loop->tasks = t->next;
        if (loop->tasks == NULL) loop->end = &loop->tasks;
        t->run(t);
    }
}

void memory_loops_init(rq_loops *loops, rq_lane *lane, void (*run)(rq_loop *loop))
{
    *loops = (rq_loops){.loop = {.own = {post}, .lane = lane, .run = run == NULL ? run_own : run}};
    loops->loop.end = &loops->loop.tasks;
    if (lane == NULL) loops->loop.lane = &loops->loop.own;
}

unsigned rq_loops_count(const rq_loops *loops)
{
    (void)loops;
    return 1;
}

rq_loop *rq_loops_get(rq_loops *loops, unsigned index)
{
    (void)index;
    return &loops->loop;
}

void rq_loops_sync(rq_loops *loops)
{
    loops->loop.run(&loops->loop);
}

unsigned rq_loop_index(const rq_loop *loop)
{
    (void)loop;
    return 0;
}

rq_lane *rq_loop_lane(rq_loop *loop)
{
    return loop->lane;
}

void rq_loop_defer(rq_loop *loop, rq_task *task)
{
    rq_lane_post(loop->lane, task);
}

bool rq_loop_turn_is_over(const rq_loop *loop, uint64_t now_ns)
{
    return memory_clock_ns != 0 && now_ns > loop->now_ns + RQ_TURN_NS;
}

bool rq_loop_is_current(const rq_loop *loop)
{
    (void)loop;
    return true;
}

uint64_t rq_loop_clock_ns(void)
{
    struct timespec ts;
    if (memory_clock_ns != 0) return memory_clock_ns;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t rq_loop_now_ns(const rq_loop *loop)
{
    return loop->now_ns;
}

void rq_loop_get_stats(const rq_loop *loop, rq_loop_stats *ret)
{
    (void)loop;
    *ret = (rq_loop_stats){0};
}

/* ---- timers */

void rq_loop_timer_arm(rq_loop *loop, rq_loop_timer *timer, uint64_t delay_ns)
{
    rq_loop_timer_cancel(loop, timer);
    timer->armed = true;
    timer->due_ns = loop->now_ns + delay_ns;
    timer->next = loop->timers;
    loop->timers = timer;
}

void rq_loop_timer_cancel(rq_loop *loop, rq_loop_timer *timer)
{
    rq_loop_timer **at = &loop->timers;
    if (!timer->armed) return;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->armed = false;
}

bool memory_loop_run_timers(rq_loop *loop)
{
    bool any = false;
    for (rq_loop_timer *t = loop->timers; t != NULL;) {
        if (t->due_ns > loop->now_ns) {
            t = t->next;
            continue;
        }
        rq_loop_timer_cancel(loop, t);
        t->run(t);
        any = true;
        t = loop->timers; /* the callback may have changed the list */
    }
    return any;
}

/* ---- listeners */

rq_err rq_listener_open(rq_loops *loops, const rq_listener_options *options, rq_listener **ret,
                        rq_error *why)
{
    (void)why;
    rq_listener *l = malloc(sizeof *l);
    if (l == NULL) abort();
    *l = (rq_listener){options->events, options->ctx};
    *ret = loops->listener = l;
    return RQ_OK;
}

uint16_t rq_listener_port(const rq_listener *l)
{
    (void)l;
    return 16020;
}

unsigned rq_listener_connections(const rq_listener *l)
{
    (void)l;
    return 0;
}

void rq_listener_stop(rq_listener *l, bool streams)
{
    (void)l;
    (void)streams;
}

void rq_listener_close(rq_listener *l)
{
    free(l);
}

/* ---- streams */

void rq_stream_set_user(rq_stream *s, void *user)
{
    s->user = user;
}

void *rq_stream_user(const rq_stream *s)
{
    return s->user;
}

rq_loop *rq_stream_loop(const rq_stream *s)
{
    return s->loop;
}

const rq_peer *rq_stream_peer(const rq_stream *s)
{
    return &s->peer;
}

rq_buf *rq_stream_out(rq_stream *s)
{
    return &s->out;
}

void rq_stream_written(rq_stream *s)
{
    (void)s;
}

rq_err rq_stream_write(rq_stream *s, const void *bytes, size_t len)
{
    return rq_buf_append(&s->out, bytes, len);
}

rq_err rq_stream_write_owned(rq_stream *s, rq_buf *b)
{
    rq_err rc = rq_buf_append(&s->out, b->ptr, b->len);
    rq_buf_clear(b);
    return rc;
}

void rq_stream_take_spare(rq_stream *s, size_t want, rq_buf *b)
{
    (void)s;
    (void)want;
    *b = (rq_buf){0};
}

void rq_stream_keep_spare(rq_stream *s, rq_buf *b)
{
    (void)s;
    rq_buf_clear(b);
}

size_t rq_stream_out_pending(const rq_stream *s)
{
    return s->out.len;
}

bool rq__stream_stalled(const rq_stream *s)
{
    (void)s;
    return false;
}

size_t rq__stream_out_held(const rq_stream *s)
{
    return s->out.len;
}

uint64_t rq_stream_out_taken(const rq_stream *s)
{
    (void)s;
    return 0;
}

void rq_stream_pause(rq_stream *s)
{
    s->paused = true;
}

void rq_stream_resume(rq_stream *s)
{
    s->paused = false;
}

bool rq_stream_paused(const rq_stream *s)
{
    return s->paused;
}

void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns)
{
    s->deadline_ns = due_ns;
}

void rq_stream_named(rq_stream *s)
{
    (void)s;
}

void rq_stream_answers_always(rq_stream *s, bool always)
{
    (void)s;
    (void)always;
}

void rq_stream_finish(rq_stream *s)
{
    s->closing = true;
}

void rq_stream_close(rq_stream *s, rq_err why)
{
    (void)why;
    s->closing = true;
}

bool rq_stream_closing(const rq_stream *s)
{
    return s->closing;
}

void memory_stream_look_at_clock(rq_stream *s)
{
    if (s->closing || s->deadline_ns == 0 || s->loop->now_ns < s->deadline_ns) return;
    s->deadline_ns = 0;
    s->events->on_deadline(s);
}

void memory_stream_feed(rq_stream *s, const uint8_t *bytes, size_t len, size_t step)
{
    while (len > 0 && !s->closing) {
        if (s->paused) { /* the client reads its responses */
            rq_buf_reset(&s->out);
            s->events->on_drain(s);
            s->loop->run(s->loop);
            if (s->paused) return;
        }
        size_t room = 0;
        uint8_t *p = s->events->on_buffer(s, &room);
        if (p == NULL) {
            s->paused = true; /* until space is available */
            s->loop->run(s->loop);
            if (s->paused) return;
            continue;
        }
        size_t n = len < step ? len : step;
        if (n > room) n = room;
        memcpy(p, bytes, n);
        s->events->on_read(s, n);
        s->loop->run(s->loop);
        bytes += n;
        len -= n;
    }
}

/* ---- driven loops and outgoing streams: replication links the client, but no test here connects it */

rq_err rq_loops_new(const rq_loops_options *options, rq_loops **ret)
{
    (void)options;
    (void)ret;
    abort();
}

rq_err rq_loops_check(rq_error *why)
{
    (void)why;
    return RQ_OK;
}

void rq_loops_free(rq_loops *loops)
{
    (void)loops;
    abort();
}

void rq_loop_turn(rq_loop *loop, int64_t timeout_ns)
{
    (void)loop;
    (void)timeout_ns;
    abort();
}

void rq_loop_flush(rq_loop *loop)
{
    (void)loop;
    abort();
}

void rq_loop_wake(rq_loop *loop)
{
    (void)loop;
    abort();
}

int rq_loop_descriptor(const rq_loop *loop)
{
    (void)loop;
    abort();
}

int64_t rq_loop_due(const rq_loop *loop)
{
    (void)loop;
    abort();
}

void rq_loop_hasten_timers(rq_loop *loop)
{
    (void)loop;
    abort();
}

rq_err rq_stream_connect(rq_loop *loop, const rq_stream_target *to, rq_stream **ret)
{
    (void)loop;
    (void)to;
    (void)ret;
    abort();
}

const char *rq_stream_failure(const rq_stream *s)
{
    (void)s;
    abort();
}

bool rq_stream_was_refused(const rq_stream *s)
{
    (void)s;
    abort();
}

bool rq_stream_has_ended(const rq_stream *s)
{
    (void)s;
    abort();
}
