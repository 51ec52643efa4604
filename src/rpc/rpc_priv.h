/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What server.c, conn.c and call.c share. All of it but the server's constant fields belongs to one
 * loop's thread at a time: a connection without calls may change loops.
 *
 *   rq_rpc_server ── one worker per loop ── the calls and chunks of that loop
 *        │                    │
 *     listener           connections ── calls (each holds a reference on its connection)
 */
#ifndef RQ_RPC_PRIV_H
#define RQ_RPC_PRIV_H

#include "proto/rpc.pb-c.h"
#include "rpc/cell_codec.h"
#include "rpc/compressor.h"
#include "net/input.h"
#include "rpc/server.h"
#include "net/stream.h"
#include "net/unread.h"
#include "rpc/wire.h"

#include "base/address.h"

#include <stdatomic.h>

typedef struct rq_rpc_conn rq_rpc_conn;
typedef struct rq_call_private rq_call_private;

/* A registered service with its methods in order of name. */
typedef struct rq_rpc_service_index {
    rq_rpc_service service;
    const rq_rpc_method **methods;
} rq_rpc_service_index;

/* Written by one thread, read by any: relaxed. */
typedef struct rq_rpc_counters {
    _Atomic uint64_t calls, exceptions, dropped, bytes_in, bytes_out, refused;
    _Atomic uint64_t in_flight;
} rq_rpc_counters;

static inline void rq_count(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, v + by, memory_order_relaxed);
}

typedef struct rq_rpc_worker {
    rq_rpc_server *server;
    rq_loop *loop;
    rq_chunk_pool chunks;
    rq_call_private *free_calls;
    rq_call_private *made; /* all calls there are, pooled ones too */
    unsigned free_count;
    uint64_t begun_ns;                 /* when the last call began */
    size_t free_bytes;                 /* of the pooled calls' arenas and cell blocks */
    const rq_rpc_method *large_method; /* the last that answered with a large cell block … */
    size_t large_bytes;                /* … of so many bytes */
    rq_buf encoded;                    /* a cell block on its way to another codec … */
    rq_buf packed;                     /* … and to its compressed form */
    uint64_t log_second;               /* lines about misbehaving clients are limited */
    unsigned log_lines;
    rq_rpc_counters counters;
} rq_rpc_worker;

/* Whether one more line may be logged that a client brought about: who sends rubbish, or reads a
 * damaged block again and again, must not fill the operator's disk. */
bool rq_worker_may_log(rq_rpc_worker *w);

struct rq_rpc_server {
    rq_rpc_server_options options; /* texts and services are those below */
    char *cluster_id;
    char host[48];         /* of the listener */
    _Atomic unsigned port; /* 0 until it is bound */
    rq_rpc_service_index *services;
    rq_listener *listeners[RQ_RPC_ADDRESSES_MAX];
    unsigned listener_count;
    size_t share; /* of unread answers that a connection may leave */
    _Atomic bool draining;
    unsigned worker_count;
    rq_rpc_worker workers[];
};

/* --- connections ------------------------------------------------------------------------------ */

typedef enum rq_conn_state {
    RQ_CONN_PREAMBLE,
    RQ_CONN_HEADER,
    RQ_CONN_OPEN,
    RQ_CONN_DEAD, /* an answer may still go out, nothing is read */
} rq_conn_state;

/* Why a connection is not read. */
enum {
    RQ_BLOCK_OUTPUT = 1,
    RQ_BLOCK_CALLS = 2,
    RQ_BLOCK_BUDGET = 4,
    RQ_BLOCK_MOVE = 8,  /* it is about to change loops */
    RQ_BLOCK_TURN = 16, /* the iteration was long: it goes on in its turn */
};

/* Calls in flight after which a connection is not read. (HBase's queue holds 300 in all.) */
#define RQ_CONN_CALLS_MAX 1024

struct rq_rpc_conn {
    rq_rpc_worker *worker;
    rq_stream *stream; /* NULL once it is closed */
    unsigned refs;     /* the stream, every call, a queued waiter, a posted resume */
    unsigned calls;
    rq_conn_state state;
    unsigned blocked;
    unsigned skip_frames; /* a SASL token that nobody waits for */
    bool running;         /* its state machine is on the stack */
    unsigned ahead;       /* frames in front that the service was told of */
    bool waiting;         /* in the budget's queue */
    bool resuming;        /* `resume` is posted */
    bool deferred;        /* `turn` is posted */
    char host[46];
    rq_input input;
    rq_rpc_client client;
    void *strings; /* what `client` points to */
    rq_cell_codec codec;
    const rq_compressor *compressor;
    const rq_rpc_service_index *service;
    const rq_rpc_method *last_method; /* most connections repeat one */
    rq_budget_waiter waiter;
    rq_unread unread;        /* answers that the peer has not read */
    uint64_t heavy_ns;       /* when a call of it was long, or its answer large */
    size_t made;             /* its calls' bytes of the budget of answers in the making */
    rq_call_private *leader; /* the call whose answer may go over the share */
    rq_call_private *first_stuck, *last_stuck; /* calls that wait for their answers' memory */
    size_t strings_charged;                    /* of the budget of requests, for `strings` */
    void *service_state;                       /* rq_call_connection_state */
    rq_task resume;
    rq_task turn;
};

extern const rq_stream_events rq_conn_events;

void rq_conn_unref(rq_rpc_conn *conn);
/* A call has ended, or output was queued: sees whether the connection may be read. */
void rq_conn_call_ended(rq_rpc_conn *conn);
void rq_conn_output_queued(rq_rpc_conn *conn);

/* --- answers' memory (answer.c) --------------------------------------------------------------- */

/* A large answer that is whole cannot be sent now. */
bool rq__answer_must_wait(const rq_call_private *p);
/* RQ_E_AGAIN: `task` runs when that may be asked again; the call holds `bytes` meanwhile.
 * RQ_E_CALL_QUEUE_TOO_BIG: there is no memory to keep them. */
RQ_NODISCARD
rq_err rq__answer_wait(rq_call_private *p, size_t bytes, rq_task *task);
/* The call has ended: gives its charge back. */
void rq__answer_end(rq_call_private *p);
/* The peer has read, or a call has ended: the next call that waits for either goes on. */
void rq__answers_wake_one(rq_rpc_conn *conn);
/* The connection is gone: all that wait go on, to their ends. */
void rq__answers_wake_all(rq_rpc_conn *conn);

/* --- long work (offload.c) -------------------------------------------------------------------- */

/* Whether there is a pool for work that would hold the loop. */
bool rq__call_may_offload(const rq_call_private *p);
/* Embedded in its owner. */
typedef struct rq_offload {
    rq_task task;
    rq_call_private *call;
    void (*work)(struct rq_offload *o);
    void (*done)(struct rq_offload *o);
} rq_offload;

/* Runs `work` on a thread of the pool, then `done` on the call's loop. The call must not be touched
 * or ended in between; its connection stays, though its stream may have closed. */
void rq__call_offload(rq_call_private *p, rq_offload *o, void (*work)(rq_offload *o),
                      void (*done)(rq_offload *o));

/* --- calls ------------------------------------------------------------------------------------ */

struct rq_call_private {
    rq_call call;
    rq_rpc_conn *conn;
    rq_chunk *frame;           /* holds the request's bytes */
    rq_slice head;             /* the header's bytes in it */
    Pb__RequestHeader *header; /* decoded, in the arena */
    rq_buf block;              /* a cell block that had to be decoded; later a whole answer */
    size_t charged;            /* of the budget, for the arena and the block */
    size_t arena_charged;      /* … of that for the arena */
    size_t answer_charged;     /* of the answers' budget, while the answer is made */
    rq_budget_waiter answer_waiter;
    rq_budget *waits_in; /* whose queue it stands in; NULL: none */
    rq_task *grow_task;  /* waits for room for the answer */
    rq_task go_on;       /* runs it, in its turn */
    rq_call_private *next_stuck, *previous_stuck;
    bool stuck;                 /* in its connection's list of those that wait */
    bool woken;                 /* it is about to go on */
    bool whole;                 /* the answer is made: its message is in `block` */
    bool over_budget;           /* an allocation was refused */
    rq_task send;               /* sends it */
    struct rq_packing *packing; /* of an answer that is compressed on a pool; owned */
    rq_call_private *next_free;
    rq_call_private *next_made, *previous_made; /* worker->made; NULL `conn`: not in use */
};

/* Runs a request: decodes it and gives it to its handler, or answers with the exception that it
 * deserves. Takes over the reference on `frame`. False: the bytes are no request at all. */
bool rq_call_run(rq_rpc_conn *conn, rq_slice bytes, rq_chunk *frame);
void rq_call_pool_clear(rq_rpc_worker *w);

/* host:port, as exceptions name this server. */
#define RQ_ADDRESS_MAX RQ_HOST_PORT_MAX
const char *rq_server_address(const rq_rpc_server *s, char buf[RQ_ADDRESS_MAX]);

/* "class: message", or the class alone, in `buf`. */
const char *rq_exception_text(const char *java_class, const char *message, char *buf, size_t size);

const rq_rpc_service_index *rq_server_service(const rq_rpc_server *s, const char *name);
const rq_rpc_method *rq_service_method(const rq_rpc_service_index *s, rq_slice name);

#endif
