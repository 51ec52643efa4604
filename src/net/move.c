/* SPDX-License-Identifier: Apache-2.0 */
/* How a stream moves to another loop. (Which one and when: balance.c.)
 *
 *    asked (rq__stream_send) ─► in loop->leaving, its user stops reading
 *         │ its output is written and on_leave returns true        │ not within MOVE_TIMEOUT_NS
 *         ▼                                                        ▼
 *    in no list: libuv's handle closes, not the               stays: on_move_end
 *    descriptor ─► task on the other loop: on_move_end
 *
 * Bytes that the peer sends meanwhile wait in the socket. Invariants in loop_priv.h. */
#include "net/loop_priv.h"

/* Longest time for which a stream is kept from reading for a move: one of its calls may take
 * minutes. */
#define MOVE_TIMEOUT_NS 10000000ull

static bool may_set_out(rq_loops *loops)
{
    pthread_mutex_lock(&loops->lock);
    bool may = !loops->moves_stopped;
    if (may) loops->moving++;
    pthread_mutex_unlock(&loops->lock);
    return may;
}

static void has_arrived(rq_loops *loops)
{
    pthread_mutex_lock(&loops->lock);
    loops->moving--;
    pthread_cond_broadcast(&loops->changed);
    pthread_mutex_unlock(&loops->lock);
}

static void run_arrive(rq_task *task)
{
    rq_stream *s = RQ_CONTAINER_OF(task, rq_stream, arrive);
    rq_loop *loop = s->loop;
    bool open = rq__stream_attach(s);
    has_arrived(loop->loops); /* only now, so that code stopping the loops finds it in the list */
    if (!open) return;
    /* A close of the listener's streams, loop by loop, may have missed this one. */
    if (atomic_load(&s->listener->close_all)) {
        rq_stream_close(s, RQ_E_CANCELLED);
        return;
    }
    if (s->deadline_ns != 0) rq_stream_set_deadline(s, s->deadline_ns);
    if (!s->paused) rq__stream_read_start(s);
    s->events->on_move_end(s);
    if (atomic_load(&s->listener->finish_all)) rq__stream_end(s);
}

static void on_departed(uv_handle_t *h)
{
    rq_stream *s = (rq_stream *)h;
    rq__loop_enter(s->loop);
    s->loop = s->to;
    s->to = NULL;
    s->arrive.run = run_arrive;
    rq_lane_post(&s->loop->lane, &s->arrive);
}

/* False: it cannot move any more, and nothing has changed. */
static bool depart(rq_stream *s)
{
    if (!may_set_out(s->loop->loops)) return false;
    s->reading = false;
    rq__stream_unlink(s);
    s->loop->loops->libuv.uv_close((uv_handle_t *)&s->poll, on_departed);
    return true;
}

static bool output_is_out(const rq_stream *s)
{
    return rq__stream_is_out(s) && !s->is_dirty && !s->is_held && !s->writing && !s->deferred;
}

void rq__loop_send_leaving(rq_loop *loop)
{
    for (rq_stream **p = &loop->leaving; *p != NULL;) {
        rq_stream *s = *p;
        rq_stream *next = s->next_leaving;
        if (s->events->on_leave(s) && output_is_out(s) && depart(s))
            *p = next;
        else
            p = &s->next_leaving;
    }
}

static void on_move_timer(rq_loop_timer *t)
{
    rq_loop *loop = RQ_CONTAINER_OF(t, rq_loop, move_timer);
    while (loop->leaving != NULL)
        rq__stream_stay(loop->leaving);
}

void rq__stream_send(rq_stream *s, rq_loop *to)
{
    bool may = s->opened && s->to == NULL && s->memory == NULL && !rq_stream_closing(s);
    if (!may || s->events->on_leave == NULL || to == s->loop) return;
    rq_loop *loop = s->loop;
    s->to = to;
    s->next_leaving = loop->leaving;
    loop->leaving = s;
    loop->move_timer.run = on_move_timer;
    if (!loop->move_timer.armed) rq_loop_timer_arm(loop, &loop->move_timer, MOVE_TIMEOUT_NS);
}

void rq__stream_stay(rq_stream *s)
{
    rq_stream **p = &s->loop->leaving;
    while (*p != s)
        p = &(*p)->next_leaving;
    *p = s->next_leaving;
    s->to = NULL;
    if (!rq_stream_closing(s)) s->events->on_move_end(s);
}
