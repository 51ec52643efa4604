/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's access to one table: a client, scans that wait, and a sender of mutations that keeps
 * one batch on the wire while the next is filled. */
#ifndef RQ_TRANSFER_LINK_H
#define RQ_TRANSFER_LINK_H

#include "client/client.h"

struct rq__link;

typedef struct rq__batch {
    struct rq__link *link;
    rq_op *op;
    bool is_open; /* has mutations, not sent */
    bool is_sent; /* is on the wire */
} rq__batch;

typedef struct rq__link {
    rq_client *client;
    bool shares; /* the client is the caller's, so closing the link leaves it open */
    rq_client_table *table;
    const char *name;
    rq_op *scan_op;
    struct rq__scan_run *run;
    rq__batch batches[2];
    unsigned filling;    /* of batches */
    size_t bytes, count; /* in it */
    rq_err err;          /* the first of a sent batch */
    rq_error why;
} rq__link;

/* Blocking. `table` must outlive the link. rq__link_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__link_open(const rq_client_options *o, const char *table, rq__link *ret, rq_error *why);
void rq__link_close(rq__link *l);
/* As rq__link_open, but with the caller's client, which must outlive the link. */
RQ_NODISCARD
rq_err rq__link_share(rq_client *c, const char *table, rq__link *ret, rq_error *why);
/* Allocates the tools of a crew's thread, a struct of `size` bytes whose first member is an rq__link,
 * and opens that link; the other members are zero. If *ret is set, after an error too, the caller
 * closes the link and frees the struct. */
RQ_NODISCARD
rq_err rq__link_tools(const rq_client_options *o, const char *table, size_t size, void **ret,
                      rq_error *why);

/* The callbacks of a scan. `row` is called for each row; it must not use the link. `rest`, which may be NULL, is called
 * between two answers; it may use the link. An error of either ends the scan. */
typedef struct rq__scan_calls {
    rq_err (*row)(void *ctx, rq_op_result *row, rq_error *why);
    rq_err (*rest)(void *ctx, rq_error *why);
    void *ctx;
} rq__scan_calls;
/* REQUIRES: scan->is_stepwise. Returns when the scan has ended. */
RQ_NODISCARD
rq_err rq__link_scan(rq__link *l, const rq_scan *scan, const rq__scan_calls *calls, rq_error *why);

/* Adds to the batch that is being filled; the mutation is copied. */
RQ_NODISCARD
rq_err rq__link_add(rq__link *l, const rq_mutate *m, rq_error *why);
/* Sends the batch if it is large. Waits while the batch before is on the wire. Not in callbacks. */
RQ_NODISCARD
rq_err rq__link_ease(rq__link *l, rq_error *why);
/* Sends the rest; returns when all is acknowledged. */
RQ_NODISCARD
rq_err rq__link_drain(rq__link *l, rq_error *why);

#endif
