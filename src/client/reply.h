/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a call on a connection. */
#ifndef RQ_CLIENT_REPLY_H
#define RQ_CLIENT_REPLY_H

#include "base/bytes.h"
#include "base/err.h"

/* Its pointers are valid during the callback only. */
typedef struct rq_reply {
    rq_err err;          /* RQ_OK: message and cells hold the response */
    bool retry;          /* the failure may be temporary */
    rq_slice kind;       /* the error's name: the Java class without its package, or ours */
    rq_slice java_class; /* with its package; empty: the error is the client's own */
    rq_slice text;       /* the server's text */
    rq_slice message;
    rq_slice cells;
} rq_reply;

/* May make further calls, also on this connection; must not close it. */
typedef void (*rq_reply_fn)(void *ctx, const rq_reply *reply);

#endif
