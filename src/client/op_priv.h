/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kinds of operations: the object, and what each kind does alike. */
#ifndef RQ_CLIENT_OP_PRIV_H
#define RQ_CLIENT_OP_PRIV_H

#include "client/client_priv.h"
#include "client/parts.h"

typedef enum rq__op_kind {
    RQ__OP_NONE,
    RQ__OP_GET,
    RQ__OP_MUTATE,
    RQ__OP_ATOMIC,
    RQ__OP_BATCH,
    RQ__OP_SCAN
} rq__op_kind;

typedef struct rq__span {
    size_t at;
    size_t len;
} rq__span;

typedef struct rq__action {
    rq__span row;   /* in rows */
    rq__span bytes; /* in body */
    rq__span cells; /* in cells */
    const rq__region
        *region;  /* of this attempt, while it is planned and sent; NULL: none has the row */
    size_t group; /* the region's number, valid after the map has changed */
    size_t place; /* in order */
    uint32_t priority;
    bool is_atomic; /* several changes of a row, or a check: a RegionAction of its own */
    bool done;
    bool answered;
} rq__action;

/* One server's part of a batch's attempt. */
typedef struct rq__part {
    rq_op *op;
    size_t begin; /* in order */
    size_t end;
} rq__part;

typedef enum rq__ahead_state {
    RQ__AHEAD_NONE,
    RQ__AHEAD_SENT,
    RQ__AHEAD_KEPT,
    RQ__AHEAD_LOST
} rq__ahead_state;

/* A scan's request that is sent before its answer is asked for (ahead.c). */
typedef struct rq__ahead {
    rq_client *client;
    rq_op *op;                     /* NULL: the scan has ended */
    struct rq__ahead *next, *prev; /* in the client's list of those without a scan */
    rq__ahead_state state;
    bool is_wanted; /* the scan waits for the answer */
    rq_err failed;  /* the previous answer was malformed: the scan fails when this one arrives */
    int64_t wanted_ns;
    unsigned lane;
    uint32_t server;
    uint64_t scanner;
    rq_buf message, cells; /* KEPT */
} rq__ahead;

/* A call of a hedged read (hedge.c). */
typedef struct rq__hedge_call {
    rq_op *op;
    rq__conn *conn; /* of the own call NULL: it was sent ahead */
    uint32_t id;
    uint32_t server;
    uint16_t replica;
    bool is_out; /* it has no answer yet */
} rq__hedge_call;

typedef struct rq__hedge {
    rq_op *op;
    rq_client_timer timer;
    rq__hedge_call own;
    bool has_asked;  /* the other replicas, since the own call */
    bool may_repeat; /* one of the failures is temporary */
    rq__hedge_call *calls;
    size_t count, cap;
    size_t out; /* calls without an answer, except the own one */
} rq__hedge;

struct rq_op {
    rq_client *client;
    rq_client_table *table;
    rq_op *next_waiting;
    void *ctx;
    rq_op_done done;
    rq_op_item item;
    unsigned lane;
    rq__op_kind kind;
    unsigned attempts; /* number of consecutive attempts that failed */
    uint32_t priority; /* of the request; 0: the table's */
    uint16_t replica;  /* of a get or scan */
    bool any_replica;
    uint16_t read_replica; /* that the own call of a hedged read is for */
    rq__hedge *hedge;      /* NULL: none was needed yet */
    int64_t until_ns;      /* rq_op_set_until */
    int64_t wake_ns;
    bool awaits_map;     /* waits for the map of a table whose regions were never read */
    bool awaits_refresh; /* its pause is over, and the table's map is being read */
    rq_buf row;          /* of a get or mutation; rows of a batch; the last row of a scan */
    rq_buf body;
    rq_buf cells;
    rq_buf scratch;
    rq_buf scratch_cells;
    /* batch */
    rq__action *actions;
    uint32_t *order;
    size_t action_count;
    size_t action_cap;
    size_t ordered;
    rq__part *parts;
    size_t part_cap;
    size_t parts_out;
    rq_err batch_err; /* error of an action that has failed for good */
    rq_err retry_err; /* error of an action that will be repeated */
    char kind_text[64];
    /* scan */
    rq_scan scan;
    rq_buf bounds; /* start, stop, family, further fields */
    rq__parts parts_of_row;
    rq_cellblock last_given; /* with gave_part: the key of the last cell that was passed on */
    bool gave_part;          /* the last item was a part of a row, which may have more cells */
    bool reads_again;        /* the row of this part is being read again from its start */
    rq_buf region_key;
    bool region_is_last;
    bool include_start;
    bool scanner_open;
    bool is_abandoned; /* the scan makes no further request */
    uint32_t server;   /* where the scanner is open */
    uint64_t scanner;
    uint64_t sequence;
    uint64_t rows;
    rq_scan_metrics metrics;
    rq__ahead *ahead; /* NULL: none was sent since the last scan ended early */
};

/* --- operation.c --- */

/* Resets the object for a new operation. */
void rq__op_prepare(rq_op *op, rq_client_table *t, rq__op_kind kind);
/* Sends the request, or fails. */
void rq__op_attempt(rq_op *op);
/* Calls `done`, which may start the next operation. */
void rq__op_finish(rq_op *op, const rq_op_result *r);
/* The attempt failed: schedules another, or finishes with the error. */
void rq__op_failed(rq_op *op, const rq_reply *reply);
/* As rq__op_failed, for an error without a response of a server. */
void rq__op_failed_here(rq_op *op, rq_err err, bool retry, rq_slice kind);
/* Schedules the next attempt; false if there will be none. */
bool rq__op_again(rq_op *op, rq_err err, bool retry, rq_slice kind);
/* Whether another attempt may succeed after this failure. `retry`: the server says so. */
bool rq__op_may_repeat(const rq_op *op, rq_err err, bool retry);
/* The request's priority, or the table's if that is 0. HBASE: ConnectionUtils.calcPriority */
uint32_t rq__op_priority(const rq_op *op, uint32_t priority);
/* Errors that an outdated region map explains. */
bool rq__map_is_wrong(rq_err err);
/* Reads the table's map again if the error says that it may be outdated. */
void rq__map_doubted(rq_client_table *t, rq_err err);
/* The class name without its package. A part of `java_class`. */
rq_slice rq__simple_name(rq_slice java_class);

/* --- one attempt of each kind; an error: nothing was sent --- */

RQ_NODISCARD
rq_err rq__single_send(rq_op *op);
RQ_NODISCARD
rq_err rq__atomic_send(rq_op *op);
RQ_NODISCARD
rq_err rq__batch_send(rq_op *op);
RQ_NODISCARD
rq_err rq__scan_send(rq_op *op);

/* --- single.c --- */

/* Takes the answer to a get. */
void rq__single_take(rq_op *op, const rq_reply *reply);

/* --- scan.c --- */

/* Takes the answer to a scan's request. */
void rq__scan_take(rq_op *op, const rq_reply *reply);
/* The region in which a scan that waits for an answer would continue on another replica, with the request in op->body.
 * NULL: on none, as the region is not the same any more. */
const rq__region *rq__scan_other(rq_op *op);
void rq__scan_count_call(rq_op *op);
/* The scan continues on this replica, which has opened a scanner with the request of rq__scan_other. */
void rq__scan_switch(rq_op *op, uint32_t server, uint16_t replica);
/* Gives up the scanner; a new one will continue after the cells that were passed on. */
void rq__scan_lose(rq_op *op);

/* --- ahead.c --- */

/* False: there is no memory. */
bool rq__ahead_prepare(rq_op *op);
/* Notes that the scan's next request was sent, with rq__ahead_answer(op->ahead) as its callback. REQUIRES:
 * rq__ahead_prepare. */
void rq__ahead_sent(rq_op *op);
void rq__ahead_answer(void *ahead, const rq_reply *reply);
bool rq__ahead_is_sent(const rq_op *op);
/* Lets the scan wait for the answer to this request; if `failed` is an error, the scan then fails with it.
 * REQUIRES: rq__ahead_is_sent. */
void rq__ahead_wait(rq_op *op, rq_err failed);
/* Gets the scan's next answer: takes the kept one, waits for the one that is under way, or sends the request. */
void rq__ahead_ask(rq_op *op);
/* Call it when the scan ends: a request that was sent ahead will close the scanner itself. False: none was
 * sent, so the caller closes the scanner. */
bool rq__ahead_leave(rq_op *op);
void rq__ahead_free(rq_op *op);
/* Closes the scanner of a call when it is answered; `scanner` 0: the answer names it. The operation is not used any
 * more. */
void rq__ahead_adopt(rq_op *op, rq__conn *conn, uint32_t call, uint32_t server, uint64_t scanner);
/* Closes a scanner without waiting for the response; if the request cannot be sent, the scanner's lease ends
 * it. */
void rq__scanner_close(rq_client *c, uint32_t server, unsigned lane, uint64_t scanner);

/* --- hedge.c: of operations with any_replica; nothing is done for others --- */

/* The operation waits for an answer. `conn`: the last call on it is the operation's; NULL: the call was sent ahead. */
void rq__hedge_begin(rq_op *op, rq__conn *conn);
/* The operation could not make its own call. True: replicas have been asked instead. */
bool rq__hedge_instead(rq_op *op);
/* Handles the answer to the operation's own call. False: the answer is for the caller to handle. True: it is a failure
 * that this function has handled: the operation waits for answers of replicas; or all replicas have failed too, and the
 * operation has ended and may have been freed. */
bool rq__hedge_takes(rq_op *op, const rq_reply *reply);
void rq__hedge_free(rq_op *op);

#endif
