/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the room (those of a call alone: call_priv.h). Except for the server's
 * constant fields everything belongs to one loop's thread at a time; a connection without calls may
 * move between loops.
 *
 *   rq_rpc_server ── one worker per loop ── the calls and chunks of that loop
 *        │                    │
 *     listener           connections ── calls (each holds a reference on its connection)
 */
#ifndef RQ_RPC_PRIV_H
#define RQ_RPC_PRIV_H

#include "base/log.h"
#include "net/input.h"
#include "net/stream.h"
#include "net/unread.h"
#include "proto/rpc.pb-c.h"
#include "rpc/cell_codec.h"
#include "rpc/compressor.h"
#include "rpc/server.h"
#include "rpc/wire.h"

#include "base/address.h"
#include "base/histogram.h"
#include "base/pool_share.h"

#include <stdatomic.h>

typedef struct rq_rpc_conn rq_rpc_conn;
typedef struct rq_call_private rq_call_private;

/* A registered service; methods sorted by name. */
typedef struct rq_rpc_service_index {
    rq_rpc_service service;
    const rq_rpc_method **methods;
    size_t first_method; /* place of the table's first method in rq_rpc_worker.method_calls */
} rq_rpc_service_index;

#define RQ__ERROR_CLASSES 48

/* Exceptions of one Java class, whose name is static. Written by one thread. */
typedef struct rq__error_count {
    const char *_Atomic java_class; /* NULL: unused, as are those behind it */
    _Atomic uint64_t count;
} rq__error_count;

/* Written by one thread, read by any thread (relaxed). */
typedef struct rq_rpc_counters {
    _Atomic uint64_t calls, exceptions, dropped, bytes_in, bytes_out, refused;
    _Atomic uint64_t ended; /* of `calls`; the others are in flight */
} rq_rpc_counters;

static inline uint64_t rq__counter_add(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed) + by;
    atomic_store_explicit(counter, v, memory_order_relaxed);
    return v;
}

typedef struct rq_rpc_worker {
    rq_rpc_server *server;
    rq_loop *loop;
    rq_chunk_pool chunks;
    rq_call_private *free_calls;
    rq_call_private *made; /* all calls there are, pooled ones too */
    unsigned free_count;
    unsigned in_flight;                /* calls */
    uint64_t begun_ns;                 /* when the last call began */
    size_t free_bytes;                 /* memory of the pooled calls' arenas and cell blocks */
    const rq_rpc_method *large_method; /* the last method with a large cell block … */
    size_t large_bytes;                /* … and its size in bytes */
    rq_buf encoded;                    /* buffer for converting a cell block to another codec */
    rq_buf packed;                     /* buffer for compressing it */
    rq_log_limit refused_lines, damage_lines, slow_lines;
    rq_rpc_counters counters;
    uint64_t sample;                /* mask of the calls that are timed */
    _Atomic uint64_t *method_calls; /* calls passed to a handler, by method */
    rq__error_count errors[RQ__ERROR_CLASSES];
    rq_times queue_times, process_times, total_times; /* of all calls, estimated */
} rq_rpc_worker;

/* Counts an exception that is sent. */
RQ_COLD void rq__worker_count_error(rq_rpc_worker *w, const char *java_class);

struct rq_rpc_server {
    rq_rpc_server_options options; /* its strings and services point to the copies below */
    char *cluster_id;
    char host[48];         /* the listener's address */
    _Atomic unsigned port; /* 0: not bound yet */
    rq_rpc_service_index *services;
    rq_listener *listeners[RQ_RPC_ADDRESSES_MAX];
    unsigned listener_count;
    rq_pool_share packers; /* for work of connections with a compressor (rq_call_work) */
    bool has_packers;      /* there is an executor */
    size_t share;          /* bytes of unread responses allowed per connection */
    _Atomic bool draining;
    _Atomic uint64_t opened; /* connections, since the start */
    size_t method_count;
    _Atomic uint64_t *method_calls; /* the workers' */
    unsigned worker_count;
    rq_rpc_worker workers[];
};

/* --- connections ------------------------------------------------------------------------------ */

typedef enum rq_conn_state {
    RQ_CONN_PREAMBLE,
    RQ_CONN_HEADER,
    RQ_CONN_OPEN,
    RQ_CONN_DEAD, /* a response may still be sent, but nothing is read */
} rq_conn_state;

/* Reasons why a connection is not read. */
enum {
    RQ_BLOCK_OUTPUT = 1,
    RQ_BLOCK_CALLS = 2,
    RQ_BLOCK_BUDGET = 4,
    RQ_BLOCK_MOVE = 8,  /* it is about to move to another loop */
    RQ_BLOCK_TURN = 16, /* the iteration was long; it waits among the deferred tasks */
};

/* Number of calls in flight at which a connection is not read. (HBase's queue holds 300 in all.) */
#define RQ_CONN_CALLS_MAX 1024

struct rq_rpc_conn {
    rq_rpc_worker *worker;
    rq_stream *stream; /* NULL: closed */
    unsigned refs;     /* held by the stream, every call, a queued waiter, a posted resume */
    unsigned calls;
    rq_conn_state state;
    unsigned blocked;
    unsigned security_preambles; /* that asked for security, so far */
    unsigned skip_frames;        /* frames to skip: a SASL token that needs no reply */
    bool running;                /* its state machine is running */
    _Atomic bool gone;           /* the stream has closed; for other threads */
    unsigned ahead;              /* received frames already announced to the service (`expect`) */
    bool waiting;                /* queued in the budget */
    bool resuming;               /* `resume` is posted */
    bool deferred;               /* `turn` is posted */
    char host[46];
    rq_input input;
    rq_rpc_client client;
    void *strings; /* strings that `client` points to */
    rq_cell_codec codec;
    const rq_compressor *compressor;
    const rq_rpc_service_index *service;
    const rq_rpc_method *last_method; /* a cache: most connections repeat one method … */
    _Atomic uint64_t *last_count;     /* … and its counter, of `worker` */
    rq_budget_waiter waiter;
    rq_unread unread;    /* debt for unread responses */
    uint64_t stall_ns;   /* when the progress of a frame is looked at; 0: none is incomplete */
    size_t stall_bytes;  /* received of this frame when the time began */
    bool stalls;         /* too little came in this time; it is looked at once more */
    uint64_t heavy_ns;   /* when it last had a large response */
    unsigned long_calls; /* rises with each long call, falls with each short one (conn.c) */
    uint64_t
        slice_ns; /* when its slice of a long iteration began; before the iteration: it has none yet */
    rq_call_work *work, *last_work; /* of its calls; the first is on the pool */
    size_t made;                    /* bytes its calls have taken from the budget `answers` */
    rq_call_private *exempt;        /* the call whose response may exceed the share */
    rq_call_private *first_waiting,
        *last_waiting;      /* calls that wait for memory for their responses */
    size_t strings_charged; /* bytes charged to the budget of requests for
                                                * `strings` */
    void *service_state;    /* rq_call_connection_state */
    bool kept;              /* rq_call_keep_connection */
    rq_task resume;
    rq_task turn;
};

extern const rq_stream_events rq_conn_events;

void rq__conn_unref(rq_rpc_conn *conn);
/* Called after a call has ended or output was queued: decides whether the connection is read. */
void rq__conn_call_ended(rq_rpc_conn *conn);
void rq__conn_output_queued(rq_rpc_conn *conn);

/* --- answers' memory (answer.c) --------------------------------------------------------------- */

/* Whether a complete large response cannot be sent now. */
bool rq__answer_must_wait(const rq_call_private *p);
/* Suspends a call whose response of `bytes` is complete but cannot be sent now; the bytes stay charged. RQ_E_AGAIN:
 * `task` runs when the call should try again. RQ_E_CALL_QUEUE_TOO_BIG: there is no memory to keep the response. */
RQ_NODISCARD
rq_err rq__answer_wait(rq_call_private *p, size_t bytes, rq_task *task);
/* The uncommon part of rq__answer_end (call_priv.h). */
RQ_COLD void rq__answer_release(rq_call_private *p);
/* Called when the peer has read or a call has ended: resumes the next call that waits for that. */
void rq__answers_wake_one(rq_rpc_conn *conn);
/* Called when the connection is closed: resumes all waiting calls, which then end. */
void rq__answers_wake_all(rq_rpc_conn *conn);

/* --- long work (call.c) ----------------------------------------------------------------------- */

/* Whether there is a pool for work that would hold the loop. */
bool rq__call_may_offload(const rq_call_private *p);
/* rq_call_work_start on that pool; without `work` if the peer has closed the connection before its turn. */
void rq__call_offload(rq_call_private *p, rq_call_work *w, bool (*work)(rq_call_work *w),
                      void (*done)(rq_call_work *w));

/* --- calls ------------------------------------------------------------------------------------ */

struct rq_call_private {
    rq_call_private *next_made, *previous_made; /* worker->made; NULL `conn`: not in use */
    rq_call call; /* its part from `method` on, and the rest: zero in the pool */
    rq_rpc_conn *conn;
    rq_chunk *frame;           /* the chunk with the request's bytes */
    rq_slice head;             /* the header's bytes in `frame` */
    Pb__RequestHeader *header; /* decoded, in the arena */
    rq_buf block;              /* a decoded cell block; later the complete response */
    size_t charged;            /* bytes charged to the budget of requests, for arena and block */
    size_t arena_charged;      /* the arena's part of `charged` */
    size_t answer_charged;     /* bytes charged to the budget `answers` */
    rq_budget_waiter answer_waiter;
    rq_budget *waits_in; /* the budget it is queued in; NULL: none */
    rq_task *grow_task;  /* the task that waits for memory for the response */
    rq_task go_on;       /* deferred task that runs grow_task */
    rq_call_private *next_waiting, *previous_waiting;
    bool is_counted;            /* its object is charged, and its arena from the first byte on */
    bool waiting;               /* in its connection's list of waiting calls */
    bool woken;                 /* it is about to resume */
    bool whole;                 /* the response is complete; its message is in `block` */
    bool on_pool;               /* a pool decodes it; no loop must */
    bool takes_long;            /* the loop gave its decoding up; a pool is to do it */
    bool over_budget;           /* an allocation was refused */
    bool never_fits;            /* … and will be refused if the request comes again */
    bool end_reported;          /* the service's `ended` was called */
    uint16_t timed;             /* weight of its times in the sample; 0: it is not timed */
    rq_task send;               /* sends the response */
    struct rq_packing *packing; /* of a response that is compressed on a pool; owned */
    rq_call_text *text;      /* the slow log's text of a request that was freed; owned; or NULL */
    uint64_t waits_since_ns; /* while it waits for memory */
    rq_call_private *next_free;
};

/* --- slow calls (slow_call.c) ----------------------------------------------------------------- */

/* Records a call that is about to end in the slow log if it was slow or large. `failure`: the Java
 * class of the exception it ends with, or NULL. REQUIRES: options.slow. */
RQ_COLD void rq__call_note(rq_call_private *p, size_t answer_bytes, const char *failure);
/* Stores the slow log's text of the request, because the request's memory is about to be freed. */
RQ_COLD void rq__call_describe(rq_call_private *p);

/* --- running a request (receive.c), the pool (call.c), the server (server.c) ------------------ */
/* Runs a request: decodes it and passes it to its handler, or responds with an exception. Takes
 * over the reference on `frame`. False: the bytes are not a request. */
bool rq__call_run(rq_rpc_conn *conn, rq_slice bytes, rq_chunk *frame);
/* Where the connection's worker counts the calls of the method. */
RQ_COLD _Atomic uint64_t *rq__method_count(const rq_rpc_conn *conn, const rq_rpc_method *m);
void rq__call_pool_clear(rq_rpc_worker *w);

/* Formats this server's host:port for exceptions. */
#define RQ_ADDRESS_MAX RQ_HOST_PORT_MAX
const char *rq__server_address(const rq_rpc_server *s, char buf[RQ_ADDRESS_MAX]);

const rq_rpc_service_index *rq__server_service(const rq_rpc_server *s, const char *name);
const rq_rpc_method *rq__service_method(const rq_rpc_service_index *s, rq_slice name);

#endif
