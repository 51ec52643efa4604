/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loop.c (loops, tasks, timers), stream.c (connections' bytes) and listener.c (accepting)
 * share: the three that know libuv. Contracts in loop.h and stream.h.
 *
 * Invariants
 *  (1) Every libuv callback begins with rq__loop_enter: it opens the epoch's read section and takes
 *      the time once. iteration_end() closes it, from the check handle (after sockets) and from the
 *      prepare handle (after timers and close callbacks). A loop that sleeps is in no section.
 *  (2) While a uv_write is under way (`writing`), what it writes stays in the output queue
 *      untouched and nothing else is written; before that, uv_try_write gives the kernel what it
 *      wants in one call.
 *  (3) A stream's memory is freed in its uv_close callback, right after on_close.
 *  (4) Whoever posts from another thread pushes on a stack and wakes the loop only when nobody has
 *      done so since the loop last looked (`signalled`).
 */
#ifndef RQ_RPC_LOOP_PRIV_H
#define RQ_RPC_LOOP_PRIV_H

#include "rpc/stream.h"

#include "rpc/out_queue.h"

#include <pthread.h>
#include <uv.h>

#define RQ__SCRATCH_BYTES ((size_t)64 * 1024) /* where on_data users' bytes are read first */

struct rq_loop {
    rq_lane lane; /* first: rq_loop_of_lane */
    struct rq_loops *loops;
    unsigned index;
    bool created; /* `joinable` is a thread */
    pthread_t joinable;
    _Atomic bool running;
    pthread_t thread; /* its own idea of itself */
    rq_task stop_task;
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t clock;
    bool handles_open;
    bool in_section;
    _Atomic bool stopping;
    uint64_t now_ns;
    rq_epoch_member member;

    _Atomic(rq_task *) inbox; /* other threads'; newest first */
    _Atomic bool signalled;
    rq_task *tasks; /* this thread's; oldest first */
    rq_task **tasks_end;
    rq_loop_hook *hooks;
    rq_loop_timer timers; /* ring, soonest first */
    rq_loop_timer sweep;

    rq_stream *streams; /* all, for sweep and stop */
    rq_stream *dirty;   /* with new output */
    _Atomic unsigned connections;
    rq_out_pool pool;
    uint8_t *scratch;
};

struct rq_loops {
    unsigned count;
    bool started;
    bool stopped;
    rq_epoch *epoch;
    const rq_log *log;
    pthread_mutex_t lock;
    rq_listener *listeners RQ_GUARDED_BY(lock);
    unsigned next; /* loop 0's: where the search for the idlest begins */
    rq_loop loop[];
};

struct rq_listener {
    rq_loops *loops;
    rq_listener *next; /* in loops->listeners */
    const rq_stream_events *events;
    void *ctx;
    unsigned connections_max;
    _Atomic unsigned connections;
    int fd;
    uint16_t port;
    uv_poll_t poll;
    rq_task start_task;
    rq_task stop_task;
    rq_loop_timer retry;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polling RQ_GUARDED_BY(lock); /* uv holds `poll` */
    bool stopped RQ_GUARDED_BY(lock);
    unsigned tasks RQ_GUARDED_BY(lock); /* posted about this listener and not yet run */
};

struct rq_stream {
    uv_tcp_t tcp; /* first */
    rq_loop *loop;
    rq_listener *listener;
    const rq_stream_events *events;
    void *user;
    rq_stream *next, *prev; /* loop->streams */
    rq_stream *next_dirty;
    rq_out_queue out;
    rq_buf sink; /* stands in when no segment can be had */
    rq_buf in;   /* on_data: not consumed yet */
    uint64_t deadline_ns;
    uint64_t progress_ns; /* when output last moved, or began to wait */
    uv_write_t write;
    rq_peer peer;
    rq_err why;
    bool opened; /* on_open succeeded: on_close is due */
    bool reading;
    bool allocating;   /* libuv asks for a buffer: it must not be told to stop or close now */
    bool close_wanted; /* asked for while allocating */
    bool paused;
    bool is_dirty;
    bool writing;
    bool finishing;
    bool shut; /* end-of-file was sent */
    bool closing;
};

/* Every libuv callback's first call; `now_ns` is taken. */
void rq__loop_enter(rq_loop *loop);
/* Threads run: tasks can be posted and will be run. */
bool rq__loops_live(rq_loops *loops);

/* Gives the kernel what this iteration's callbacks have put out. */
void rq__loop_flush(rq_loop *loop);
/* The loop's timer that looks for streams past their deadlines. */
void rq__loop_sweep(rq_loop_timer *t);
void rq__stream_read_start(rq_stream *s);

/* One stream of the listener is gone. */
void rq__listener_release(rq_listener *l);

#endif
