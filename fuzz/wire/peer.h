/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the fuzzer: sends requests, reads when planned, and checks that a client could
 * decode the responses. Sockets do not block; the caller polls. */
#ifndef RQ_FUZZ_WIRE_PEER_H
#define RQ_FUZZ_WIRE_PEER_H

#include "plan.h"
#include "world.h"

#include <netinet/in.h>
#include <stdio.h>

typedef struct peer_call {
    uint32_t id;
    uint64_t number; /* number of the request */
    const plan_method *method;
    int64_t sent_ms;
    /* its time-out may end before the server handles it; then the call is dropped, as in HBase */
    bool optional;
} peer_call;

typedef struct peer {
    int fd; /* -1: closed */
    uint64_t life;
    plan_life how;
    int64_t opened_ms;
    int64_t read_ms;    /* when bytes were received last */
    int64_t drained_ms; /* when there were no more bytes to receive last */
    int crowd[CROWD_MAX];
    unsigned crowd_count;
    rq_buf out, in;
    size_t out_at;    /* bytes sent so far */
    peer_call *calls; /* unanswered calls */
    size_t call_count, call_room;
    size_t due;        /* calls that must be answered */
    uint64_t received; /* bytes, since it was opened */
    bool broken;       /* it has sent invalid bytes: the server may close the connection, or wait */
    bool connecting;
    bool connected;    /* ZooKeeper's session is established */
    char problem[512]; /* not empty: text of a finding */
    uint64_t answers, refusals;
    int64_t longest_ms;         /* longest time of an answered call */
    const plan_method *longest; /* its method; NULL: ZooKeeper's */
    FILE *log;                  /* log of refusals; NULL: none */
} peer;

/* The number of requests that are not part of the plan. */
#define CONTROL UINT64_MAX

/* Closes the old connection, and connects. */
void peer_open(peer *p, const struct sockaddr_in *address, const plan_life *how, uint64_t life,
               rq_random *r, int64_t now_ms);
void peer_close(peer *p);
/* Sends one request's frame, for which a response is due. */
void peer_send(peer *p, const peer_call *call, const rq_buf *frame);
/* Whether the connection should be read now. */
bool peer_wants(const peer *p, int64_t now_ms);
void peer_write(peer *p, int64_t now_ms);
void peer_read(peer *p, world *w, int64_t now_ms);
/* The oldest unanswered call of a connection that reads. NULL: there is none, or the connection has received so many
 * bytes that the fuzzer does not wait for the rest. */
const peer_call *peer_oldest(const peer *p);

/* Makes a frame of the RPC protocol. `bomb`: a compressed cell block becomes many times larger. Returns false if the
 * server may drop the call. */
bool peer_frame(const plan_life *how, rq_random *r, uint32_t call_id, const plan_method *method,
                const rq_buf *message, const rq_buf *cells, bool bomb, rq_buf *out);
/* Makes a request of ZooKeeper's protocol. Returns false if the server may close the connection. */
bool zookeeper_frame(rq_random *r, uint32_t call_id, rq_buf *out);

#endif
