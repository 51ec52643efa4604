/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ClientService for tests of the RPC room. Get answers with its row; the row determines how:
 *   "fail"    NotServingRegionException          "moved"   RegionMovedException with host and port
 *   "later"   from another thread, after 20 ms   "never"   the call is dropped
 *   "big:N"   a cell block of at least N bytes   "hold"    kept until toy_release
 *   "grow:N"  the same in slices of 50 kB; asks for memory between them, as a scan does
 * The environment variable TOY_BELOW inserts layers below the connections (net/relay.h): "frames",
 * "memory", "frames,memory".
 * Multi returns the cells of its cell block. "Mutate" is in the table of methods without a handler.
 */
#ifndef RQ_TEST_RPC_TOY_SERVICE_H
#define RQ_TEST_RPC_TOY_SERVICE_H

#include "rpc/server.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct toy {
    rq_loops *loops;
    rq_budget *budget;
    rq_budget *answers; /* set together with `unread`, by toy_options.answers_bytes */
    rq_budget *unread;
    rq_rpc_server *server;
    uint16_t port;
    pthread_mutex_t lock;
    rq_call *held[4096];
    unsigned held_count;
    _Atomic unsigned seen;
    _Atomic unsigned expected; /* announced messages */
    _Atomic unsigned ended;    /* calls whose `ended` ran, with a response */
    _Atomic unsigned failed;   /* calls whose `ended` ran, without a response */
    _Atomic bool closing;
    pthread_t late_thread;
    pthread_cond_t late_changed;
    rq_call *late[256];
    unsigned late_count;
} toy;

typedef struct toy_options {
    unsigned loops;
    bool restless; /* connections change loops after each turn */
    size_t budget_bytes;
    size_t request_bytes_max;
    size_t out_bytes_max;
    size_t answers_bytes; /* limit of responses in the making, and of unread ones; 0: no budget */
} toy_options;

void toy_start(toy *t, const toy_options *o);
void toy_stop(toy *t);
/* Answers the calls held by "hold"; returns their number. Any thread. */
unsigned toy_release(toy *t);

#endif
