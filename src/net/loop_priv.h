/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loop.c (loops, tasks, timers), stream.c (connections' bytes), listener.c (accepting), move.c
 * (streams that change loops) and balance.c (which, and when) share: the only ones that know libuv.
 * Contracts in loop.h and stream.h.
 *
 * Invariants
 *  (1) Every libuv callback begins with rq__loop_enter: it opens the epoch's read section and takes
 *      the time once. iteration_end() closes it, from the check handle (after sockets) and from the
 *      prepare handle (after timers and close callbacks). A loop that sleeps is in no section.
 *  (2) A stream writes what it has at the end of an iteration, and what the kernel does not take
 *      (`writing`) when the socket is ready, in order. `watched` is what its handle waits for,
 * always what `reading` and `writing` say. (3) A stream's memory is freed in its uv_close callback,
 * right after on_close; its descriptor is closed before, at once. One that moves has its handle
 * closed too, but keeps the descriptor, and is in no loop's list from then until the other loop has
 * opened it; rq_loops_stop waits for such streams first. (4) Whoever posts from another thread
 * pushes on a stack and wakes the loop only when it is `asleep`, which it says before it looks at
 * the stack for the last time, and nobody has posted since the loop last looked (`signalled`).
 */
#ifndef RQ_NET_LOOP_PRIV_H
#define RQ_NET_LOOP_PRIV_H

#include "net/stream.h"

#include "net/out_queue.h"

#include <pthread.h>
#include <uv.h>

#define RQ__SCRATCH_BYTES ((size_t)16 * 1024) /* where on_data users' bytes are read first */

/* What a loop had to do of late; balance.c. */
typedef struct rq_load {
    uint64_t window_ns;        /* when the present window began */
    uint64_t cpu_ns;           /* the thread's time on a processor then */
    unsigned turns;            /* iterations since */
    unsigned window;           /* its number */
    uint64_t work;             /* its streams' */
    _Atomic uint64_t at;       /* the loop's time when the last whole window ended; with its … */
    _Atomic unsigned permille; /* … share of it on a processor */
    _Atomic bool long_turns;   /* … iterations that others had to wait for */
    _Atomic uint64_t entered;  /* when the iteration that runs now began; 0: it sleeps */
} rq_load;

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
    bool uv_open;      /* uv is there … */
    bool handles_open; /* … and so are those above */
    bool in_section;
    _Atomic bool stopping;
    uint64_t now_ns;
    rq_epoch_member member;

    _Atomic(rq_task *) inbox; /* other threads'; newest first */
    _Atomic bool signalled;
    _Atomic bool asleep; /* it waits for its sockets, or is about to */
    rq_task *tasks;      /* this thread's; oldest first */
    rq_task **tasks_end;
    rq_task *deferred; /* this thread's; oldest first */
    rq_task **deferred_end;
    rq_loop_timer timers; /* ring, soonest first */
    rq_loop_timer sweep;

    rq_stream *streams;   /* all, for sweep and stop */
    rq_stream *dirty;     /* with new output */
    rq_stream *leaving;   /* asked to go to another loop, not quiet yet */
    rq_loop_timer settle; /* these stay then */
    rq_load load;
    rq_out_pool pool;
    uint8_t *scratch;
    rq_task pulse;
    _Atomic bool pulse_posted; /* `pulse` waits to be run */
};

struct rq_loops {
    unsigned count;
    bool started;
    bool stopped;
    rq_epoch *epoch;
    const rq_log *log;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rq_listener *listeners RQ_GUARDED_BY(lock);
    unsigned moving RQ_GUARDED_BY(lock); /* streams on their way from loop to loop */
    bool settled RQ_GUARDED_BY(lock);    /* none may set out any more */
    bool restless;
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
    _Atomic bool finish_all;            /* its streams finish … */
    _Atomic bool close_all; /* … or close: also one that arrives on its loop only now */
};

struct rq_stream {
    uv_poll_t poll; /* first */
    int fd;
    int watched; /* what `poll` waits for: UV_READABLE, UV_WRITABLE */
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
    uint64_t taken;       /* bytes of output that the kernel took */
    rq_peer peer;
    rq_err why;
    rq_loop *to;             /* where it shall go; it is in loop->leaving, or on its way */
    rq_stream *next_leaving; /* loop->leaving */
    rq_task arrive;
    rq_task turn;         /* reads in its turn */
    unsigned work;        /* reads and pages … */
    unsigned work_window; /* … in this window of its loop's */
    bool opened;          /* on_open succeeded: on_close is due */
    bool reading;
    bool paused;
    bool is_dirty;
    bool writing; /* waits until the kernel takes more */
    bool finishing;
    bool shut; /* end-of-file was sent */
    bool closing;
    bool deferred; /* `turn` is posted … */
    bool ended;    /* … and ends it */
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

/* Opens the stream on its loop, over s->fd: a new one, or one that arrives. False: it is gone. */
bool rq__stream_attach(rq_stream *s);
/* Takes it out of its loop's list. */
void rq__stream_unlink(rq_stream *s);

/* Asks the stream to go to `to` as soon as nothing of it is under way. Its loop's thread. */
void rq__stream_send(rq_stream *s, rq_loop *to);
/* Sends off those that have become quiet. */
void rq__loop_send_leaving(rq_loop *loop);
/* It shall stay after all, or is closing. */
void rq__stream_stay(rq_stream *s);

/* It read or wrote: `work` reads and pages. */
void rq__stream_worked(rq_stream *s, unsigned work);
/* The end of an iteration: now and then, sees whether streams should go elsewhere. */
void rq__loop_balance(rq_loop *loop);
/* Where a new stream begins. */
rq_loop *rq__loop_for_stream(rq_loops *loops);

/* One stream of the listener is gone. */
void rq__listener_release(rq_listener *l);

#endif
