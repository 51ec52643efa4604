/* SPDX-License-Identifier: Apache-2.0 */
/* What operations on rows share: waiting for one, and the rows that it has copied to the session's
 * buffer (rows.c). */
#ifndef RQ_SHELL_ROWS_H
#define RQ_SHELL_ROWS_H

#include "shell/shell_priv.h"

typedef struct rq__outcome {
    rq__shell *shell;
    bool done;
    rq_err err;
    rq_err copied; /* whether the rows could be copied */
    bool goes_on;
    bool retry;
    bool exists;      /* a get of existence only */
    int64_t grace_ns; /* after Ctrl-C it may go on for so long */
    int64_t stop_ns;  /* when that time is over; 0: no Ctrl-C yet */
    uint64_t rows;
    char java_class[128];
    char text[4096];
} rq__outcome;

/* An operation that is about to begin: the session's buffer is empty. */
rq__outcome rq__rows_begin(mrb_state *mrb);
/* Runs the loop until the operation, or a step of it, has ended; raises. */
void rq__rows_wait(mrb_state *mrb, rq__outcome *o, rq_err started);
/* Callbacks of the client; the context is the outcome. */
void rq__rows_ended(rq_op *op, void *ctx, const rq_op_result *r);
void rq__rows_take(rq_op *op, void *ctx, uint32_t index, rq_op_result *r);

/* The next of the copied rows as an array of cells; nil: no more. */
mrb_value rq__rows_next(mrb_state *mrb, rq_cursor *rows);

/* Raises if the client has no memory. */
rq_client_table *rq__rows_table(mrb_state *mrb, mrb_value name);
mrb_value rq__string_of(mrb_state *mrb, rq_slice s);
/* nil: empty; raises for what is no String. */
rq_slice rq__optional_slice(mrb_state *mrb, mrb_value v);

#endif
