/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by loop.c (loops, tasks, timers), stream.c (a connection's bytes), transformed.c (a
 * transform below them), memory.c (a connection without a socket), listener.c (accepting), connect.c
 * (connecting), driven.c (a loop without a thread), move.c (moving a stream to another loop) and
 * balance.c (which stream, and when). Only these files use libuv. Contracts: loop.h, stream.h,
 * transform.h, memory.h.
 *
 * Invariants
 *  (1) Every libuv callback begins with rq__loop_enter, which begins the epoch's read section and
 *      reads the clock once. iteration_end() ends the section; it runs from the check handle (after
 *      sockets) and the prepare handle (after timers and close callbacks). A sleeping loop is in no
 *      section.
 *  (2) A stream writes its output at the end of an iteration. What the kernel does not take
 *      (`writing`) is written in order when the socket is writable. `watched` is the set of events
 *      its handle waits for, and always follows from `reading` and `writing`.
 *  (3) A stream's memory is freed in its uv_close callback, right after on_close; its descriptor is
 *      closed before, at once. When a stream moves to another loop, its handle is closed, too, but the stream keeps its
 *      descriptor; it is in no loop's list until the new loop has opened a handle for it. rq_loops_stop first waits for
 *      moving streams.
 *  (4) A thread that posts from outside pushes onto a stack (`inbox`). It wakes the loop only if
 *      the loop is `asleep`, which the loop sets before it checks the stack for the last time, and
 *      if no other thread has woken it since its last check (`signalled`).
 *  (5) libuv tells the kernel what a handle waits for only when it polls. A driven loop waits on libuv's descriptor
 *      without libuv. It does not wait while `must_poll` is set: the events of a handle have changed, or a handle was
 *      closed, since libuv last polled. A driven loop is always `asleep`: every post wakes it.
 */
#ifndef RQ_NET_LOOP_PRIV_H
#define RQ_NET_LOOP_PRIV_H

#include "net/stream.h"

#include "base/log.h"
#include "net/libuv.h"
#include "net/lookup.h"
#include "net/memory.h"
#include "net/out_queue.h"
#include "net/spread.h"
#include "net/transform.h"

#include "base/address.h"

#include <netdb.h>
#include <pthread.h>

#define RQ__SCRATCH_BYTES ((size_t)16 * 1024) /* read buffer for users of on_data */

/* A loop's recent load; used by balance.c. */
typedef struct rq_load {
    uint64_t window_ns;        /* when the current window began */
    uint64_t cpu_ns;           /* the thread's CPU time at that moment */
    unsigned turns;            /* iterations since */
    unsigned window;           /* number of the window */
    uint64_t work;             /* work of its streams in the window … */
    rq_stream *worked;         /* … and those streams */
    rq__trial trial;           /* of spreading its work to another loop */
    unsigned trial_number;     /* of the last one that sent streams */
    unsigned sent_back;        /* the last trial whose streams all went back */
    unsigned sending_back;     /* the last trial whose streams it tried to send back … */
    unsigned sending_from;     /* … and the window of the first attempt */
    _Atomic uint64_t bytes;    /* read and written by its streams so far; the owner writes it */
    _Atomic uint64_t at;       /* end of the last complete window; with it: */
    _Atomic unsigned permille; /* CPU share in it, in thousandths */
    _Atomic bool long_turns;   /* it had long iterations, which delayed other streams */
    _Atomic uint64_t entered;  /* when the running iteration began; 0: the loop sleeps */
    _Atomic uint64_t iterations;
    rq_times times; /* of all iterations, estimated from one of RQ__LOOP_SAMPLE */
} rq_load;
#define RQ__LOOP_SAMPLE 16

struct rq_loop {
    rq_lane lane; /* must be first: loop_of_lane */
    struct rq_loops *loops;
    unsigned index;
    bool created; /* `joinable` is valid */
    pthread_t joinable;
    _Atomic bool running;
    pthread_t thread; /* set by the thread itself */
    rq_task stop_task;
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t clock;
    uv_poll_t watch;   /* of the descriptor that the lane waits for */
    rq_task *watched;  /* NULL: there is none */
    bool in_watched;   /* `watched` runs: what it posts is appended to `arrived` */
    bool uv_open;      /* `uv` is initialised */
    bool handles_open; /* the handles above are initialised */
    bool in_section;
    /* Of a driven loop: */
    uv_poll_t bell;
    int bell_fd;       /* an eventfd; -1: it is not driven */
    bool must_poll;    /* libuv must poll before the next wait */
    unsigned ready;    /* streams that libuv's last poll found ready; the last one: */
    rq_stream *likely; /* NULL: it has left the loop */
    unsigned alone;    /* polls in a row that found that stream alone */
    unsigned unpolled; /* turns since the last poll */
    bool by_ppoll;     /* the system has no epoll_pwait2 */
    _Atomic bool stopping;
    uint64_t now_ns;
    rq_epoch_member member;

    _Atomic(rq_task *) inbox; /* tasks posted by other threads; newest first */
    _Atomic bool signalled;
    _Atomic bool asleep; /* it waits for its sockets, or is about to */
    rq_task *tasks;      /* this thread's; oldest first */
    rq_task **tasks_end;
    rq_task *arrived; /* taken from `inbox`; oldest first */
    rq_task **arrived_end;
    rq_task *deferred; /* this thread's; oldest first */
    rq_task **deferred_end;
    rq_loop_timer *timers; /* the soonest; timers.h */
    rq_loop_timer sweep;
    rq_stream_walk sweep_walk;
    bool sweeps;                    /* `sweep_walk` is in progress */
    bool sweeps_again, sweeps_soon; /* another sweep is needed; needed soon */
    rq_loop_timer held;             /* when output that is held is tried again (answers.h) */

    rq_stream *streams;       /* all streams, for sweep and stop */
    rq_stream *dirty;         /* streams with new output, the newest first */
    rq_stream *held_streams;  /* streams whose output is held (answers.h); none of them is dirty */
    rq_stream_walk *walks;    /* in progress */
    rq_stream *leaving;       /* requested to move to another loop, but still busy */
    rq_loop_timer move_timer; /* when it fires, the streams in `leaving` stay */
    rq_load load;
    rq_out_pool pool;
    uint8_t *scratch;
    /* crowd.c */
    rq_task make_room;
    _Atomic bool makes_room;
    uint64_t no_room_until_ns; /* the last step closed nothing */
    rq_stream *crowd_at;       /* at which the next step begins; NULL: at the first */
    rq_task pulse;
    _Atomic uint64_t pulse_since_ns; /* since when `pulse` waits to be run; 0: it does not */
};

struct rq_loops {
    rq__uv libuv;
    unsigned count;
    bool started;
    bool stopped;
    rq_epoch *epoch;
    const rq_log *log;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rq_listener *listeners RQ_GUARDED_BY(lock);
    unsigned moving RQ_GUARDED_BY(lock);    /* streams that are moving between loops */
    bool moves_stopped RQ_GUARDED_BY(lock); /* no stream may begin to move any more */
    /* Trials (spread.h), one at a time: */
    _Atomic(rq_loop *) trying;    /* whose; NULL: none's */
    _Atomic unsigned trials;      /* numbers given to them */
    _Atomic unsigned taken_back;  /* the last one that was taken back … */
    _Atomic(rq_loop *) back_to;   /* … whose streams belong here */
    _Atomic unsigned accepted;    /* open connections of listeners that hold a descriptor */
    _Atomic unsigned nameless;    /* of these, those whose peers have not said who they are */
    _Atomic uint64_t crowded_out; /* idle ones that were closed for others */
    bool restless;
    bool driven;
    void (*before_wait)(void *ctx);
    void (*after_wait)(void *ctx);
    void *ctx;
    bool (*may_answer)(void *ctx); /* answers.h; NULL: always */
    void *answers_ctx;
    rq_loop loop[];
};

struct rq_listener {
    rq_loops *loops;
    rq_listener *next; /* in loops->listeners */
    const rq_stream_events *events;
    void *ctx;
    rq_transform_kind transform; /* `make` NULL: streams are plain */
    unsigned connections_max;
    _Atomic unsigned connections;
    int fd;
    uint16_t port;
    uv_poll_t poll;
    rq_task start_task;
    rq_task stop_task;
    rq_loop_timer retry;
    rq_log_limit failed_accepts;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polling RQ_GUARDED_BY(lock); /* `poll` is open in uv */
    bool stopped RQ_GUARDED_BY(lock);
    unsigned tasks RQ_GUARDED_BY(lock); /* posted for this listener and not yet run */
    _Atomic bool finish_all;            /* all its streams must finish … */
    _Atomic bool close_all; /* … or close, including one that is just arriving on its loop */
};

typedef struct rq__transformed rq__transformed;

/* State of an outgoing stream only. While it is connecting, the stream is `writing`: its output
 * waits in its queue. */
typedef struct rq__dial {
    rq_stream *stream;
    char *host;
    uint16_t port;
    bool connected;
    bool switching; /* the handle of an address that failed is closing */
    unsigned refused,
        failed; /* addresses that refused the connection; that failed otherwise, as the lookup does */
    rq__lookup *lookup;
    struct addrinfo *found;
    struct addrinfo *next; /* to be tried */
    uint64_t until_ns;
    rq_loop_timer timer;
    char failure[RQ_HOST_PORT_MAX + 128];
} rq__dial;

struct rq_stream {
    uv_poll_t poll;         /* first */
    int fd;                 /* -1 with: */
    rq_memory_peer *memory; /* instead of a socket; NULL: a socket */
    int watched;            /* events that `poll` waits for: UV_READABLE, UV_WRITABLE */
    rq_loop *loop;
    rq_listener *listener; /* NULL with: */
    rq__dial *dial;        /* of an outgoing stream */
    const rq_stream_events *events;
    void *user;
    rq_stream *next, *prev;         /* loop->streams */
    rq_stream *next_out, *prev_out; /* loop->dirty, or loop->held_streams */
    rq_out_queue out;
    rq__transformed *transformed; /* the transform below it; NULL: it is plain */
    size_t wire_plain;            /* protocol bytes that left `out` and wait as wire bytes */
    rq_buf sink;                  /* used when memory for a queue buffer is exhausted */
    rq_buf in;                    /* on_data: unconsumed bytes */
    uint64_t deadline_ns;
    uint64_t finish_by_ns; /* while it finishes: the latest deadline */
    size_t undelivered;    /* bytes that the peer had not taken at the last deadline */
    uint64_t heard_ns;     /* when input was last read; of a nameless one, when it was opened */
    uint64_t progress_ns;  /* when output was last taken, or began to wait */
    uint64_t taken;        /* bytes of output taken by the kernel */
    rq_peer peer;
    rq_err why;
    rq_loop *to;             /* target of its move; it is in loop->leaving, or moving */
    rq_stream *next_leaving; /* loop->leaving */
    rq_task arrive;          /* after a move; of a stream in memory: its end */
    rq_task turn;            /* deferred read */
    unsigned work;           /* reads and pages … */
    unsigned work_window;    /* … in this window of its loop */
    bool has_worked;         /* it is in its loop's list load.worked */
    rq_stream *next_worked, *prev_worked;
    unsigned trial; /* that sent it here; 0: none */
    bool nameless;  /* accepted, and rq_stream_named was not called */
    bool opened;    /* on_open succeeded, so on_close must be called */
    bool reading;
    bool paused;
    bool is_dirty;
    bool is_held;        /* in loop->held_streams */
    bool answers_always; /* its output is never held */
    bool writing;        /* waits until the socket is writable */
    bool finishing;
    bool shut;  /* end-of-file was sent */
    bool spoke; /* input came while it finished */
    bool closing;
    bool rest_waits; /* unconsumed input is offered again by `turn` */
    bool deferred;   /* `turn` is posted … */
    bool ended;      /* … and must close the stream */
};

/* First call of every libuv callback; sets `now_ns`. */
void rq__loop_enter(rq_loop *loop);
/* The end of an iteration: tasks, output. */
void rq__loop_iteration_end(rq_loop *loop);
/* Runs the timers that are due. */
void rq__loop_run_timers(rq_loop *loop);
bool rq__loop_has_tasks(rq_loop *loop);
/* Whether the process may open as many descriptors as a loop needs. Otherwise the first loop of a
 * process would abort it: libuv does so when it cannot make its pipe for signals. */
bool rq__loop_has_descriptors(void);
/* What rq_loop_wake rings. */
RQ_NODISCARD
rq_err rq__loop_open_bell(rq_loop *loop);
/* rq_loops_stop of a driven loop. */
void rq__loop_stop_driven(rq_loop *loop);
/* Whether the threads run, so that posted tasks will run. */
bool rq__loops_live(rq_loops *loops);

/* Writes the output of this iteration. */
void rq__loop_flush(rq_loop *loop);
/* The loop's timer: checks streams' deadlines. */
void rq__loop_sweep(rq_loop_timer *t);
/* The timer `held`. */
void rq__loop_try_held(rq_loop_timer *t);
/* Its listener has stopped: closes it when the peer has all output, at once if it has it already. */
RQ_COLD void rq__stream_end(rq_stream *s);
void rq__stream_read_start(rq_stream *s);

void rq__stream_mark_dirty(rq_stream *s);
/* Reads in a later task, whether or not the socket has input. */
void rq__stream_read_later(rq_stream *s);
/* The socket, or what stands for it, is ready for these events of those that are watched. */
void rq__stream_ready(rq_stream *s, int events);
/* Reads without an event that announced input; false: there was none. */
bool rq__stream_try_read(rq_stream *s);
/* recv() on the socket, or on its replacement. */
ssize_t rq__stream_receive(rq_stream *s, void *bytes, size_t len);
/* Whether all output is sent, including that of rq_stream_finish. */
bool rq__stream_is_out(const rq_stream *s);

/* ---- an outgoing stream (connect.c) */

static inline bool rq__stream_connects(const rq_stream *s)
{
    return s->dial != NULL && !s->dial->connected;
}

/* The socket that connects is ready, or has failed. */
void rq__dial_ready(rq_stream *s);
/* Notes why the stream fails, by errno; of an accepted one: nothing. */
void rq__dial_note(rq_stream *s, const char *what, int error);
/* Closes the stream, perhaps while it connects. True: rq__stream_closed follows by itself. */
bool rq__dial_close(rq_stream *s);
void rq__dial_free(rq__dial *d);

/* ---- a stream with a transform (transformed.c) */

/* The queue whose bytes go to the socket next; NULL: the stream was closed for an error. */
rq_out_queue *rq__transformed_output(rq_stream *s);
/* Call it before `sent` bytes of the queue of rq__transformed_output are consumed. Returns the number of protocol bytes
 * that they encode. */
size_t rq__transformed_sent(rq_stream *s, size_t sent);
bool rq__transformed_is_out(const rq_stream *s);
/* Memory of its wire bytes. */
size_t rq__transformed_held(const rq_stream *s);
/* As rq__stream_receive, of protocol bytes. */
ssize_t rq__transformed_receive(rq_stream *s, void *bytes, size_t len);
void rq__transformed_free(rq_stream *s);

/* ---- a stream in memory (memory.c); its loop's thread */

void rq__memory_attach(rq_memory_peer *p, rq_stream *s);
/* The stream is closed; releases its reference. */
void rq__memory_detach(rq_memory_peer *p);
void rq__memory_watch(rq_memory_peer *p, int events);
/* As recv() and sendmsg() on a socket that does not wait. */
ssize_t rq__memory_receive(rq_memory_peer *p, void *bytes, size_t len);
ssize_t rq__memory_send(rq_memory_peer *p, const struct iovec *iov, unsigned n);
void rq__memory_shut(rq_memory_peer *p);

/* ---- streams, moves, listeners (stream.c, move.c, balance.c, listener.c) */
/* Opens a new or arriving stream on its loop, using s->fd. False: it is freed. */
bool rq__stream_attach(rq_stream *s);
/* Adds it to its loop's list, and removes it. */
void rq__stream_link(rq_stream *s);
void rq__stream_unlink(rq_stream *s);
/* Tells libuv which events the stream waits for. */
void rq__stream_watch(rq_stream *s);
/* Its handle is closed: ends the stream. */
void rq__stream_closed(rq_stream *s);
/* What the kernel takes of its output, now that it is connected. */
void rq__stream_connected(rq_stream *s);

/* Asks the stream to move to `to` as soon as it has no work in progress. Its loop's thread. */
void rq__stream_send(rq_stream *s, rq_loop *to);
/* Moves the leaving streams that have become idle. */
void rq__loop_send_leaving(rq_loop *loop);
/* Cancels the move: the stream stays, or is closing. */
void rq__stream_stay(rq_stream *s);

/* Counts work: `work` reads and pages. */
void rq__stream_worked(rq_stream *s, unsigned work);
/* Removes the stream, which leaves its loop, from the loop's list of streams that worked. */
void rq__stream_unlist_worked(rq_stream *s);
/* Counts bytes read or written. */
static inline void rq__stream_carried(rq_stream *s, size_t bytes)
{
    _Atomic uint64_t *sum = &s->loop->load.bytes;
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}
/* Called at the end of an iteration; at intervals it decides whether streams should move. */
void rq__loop_balance(rq_loop *loop);
/* Chooses the loop of a new stream. */
rq_loop *rq__loop_for_stream(rq_loops *loops);

/* Accepts a connection in memory, on any thread; takes over one reference. Errors as
 * rq_memory_connect. */
RQ_NODISCARD
rq_err rq__listener_connect(rq_listener *l, rq_memory_peer *peer);
/* Called when a stream of the listener is freed. */
void rq__listener_release(rq_listener *l, bool has_descriptor);

/* --- crowd.c: descriptors of connections, and of files ------------------------------------------ */
void rq__crowd_init(rq_loop *loop);
/* The stream is no longer nameless, or ends. */
void rq__crowd_forget(rq_stream *s);
/* How many connections may be open, by the process's limit of open files. */
unsigned rq__crowd_max(void);
/* Has idle streams of all loops closed, soon. Any thread. */
void rq__crowd_make_room(rq_loops *loops);

#endif
