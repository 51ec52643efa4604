/* SPDX-License-Identifier: Apache-2.0 */
/* The order of requests, their connection, and the connection's behaviour: they depend only on the
 * run's seed and the request's number, not on the server's responses or on which other requests are
 * left out. So a run can be repeated from its seed, and a shorter one from its seed and the numbers
 * of some requests. */
#ifndef RQ_FUZZ_WIRE_PLAN_H
#define RQ_FUZZ_WIRE_PLAN_H

#include "draw.h"

#include <protobuf-c/protobuf-c.h>

#define PLAN_SLOTS 26  /* connections at the same time */
#define CROWD_MAX 1000 /* idle connections with the same header as one of the connections */

typedef struct plan_method {
    const char *service, *name;
    const ProtobufCMessageDescriptor *request, *response;
    unsigned weight;
} plan_method;

typedef enum plan_port { PORT_MASTER, PORT_REGION_SERVER, PORT_ZOOKEEPER } plan_port;

/* How a connection reads responses. */
typedef enum plan_temper {
    READS,        /* at once */
    READS_LATE,   /* nothing for several seconds, then everything */
    READS_SLOWLY, /* a few bytes at a time */
    NEVER_READS,
    LEAVES,      /* closes while calls are in flight */
    LEAVES_HALF, /* sends half a frame first */
} plan_temper;

typedef struct plan_life {
    plan_port port;
    const char *service;
    plan_temper temper;
    unsigned codec;                             /* RQ_CODEC_… */
    const char *codec_class, *compressor_class; /* NULL: none */
    unsigned user_len;                          /* length of the user's name */
    bool old_client;                            /* sends version 1.2.0 as text only */
    unsigned crowd;                             /* idle connections with the same header */
    bool odd_header; /* the connection header is generated from its descriptor */
} plan_life;

typedef enum plan_scan { SCAN_OPENS, SCAN_CONTINUES } plan_scan;

typedef struct plan_request {
    uint64_t number;
    unsigned slot;
    uint64_t life;             /* number of the slot's connection: it ends when the next begins */
    const plan_method *method; /* NULL: a request of ZooKeeper's protocol */
    plan_scan scan;
    unsigned repeats; /* number of times it is sent in a row */
    bool same_id;     /* each time with the same call id */
    bool huge;        /* one of its lists has 10^5 to 10^6 elements */
    bool bomb;        /* its cell block, if it is compressed, becomes many times larger */
} plan_request;

#define PLAN_OPENERS 64
#define PLAN_METHODS_MAX 256

typedef struct plan {
    uint64_t seed;
    unsigned weights[PLAN_METHODS_MAX];
    /* The latest requests that open scanners, kept because they are looked up often. */
    uint64_t openers[PLAN_OPENERS], opener_count, seen;
} plan;

void plan_init(plan *p, uint64_t seed);
void plan_make(const plan *p, uint64_t number, plan_request *ret);
void plan_life_of(const plan *p, unsigned slot, uint64_t life, plan_life *ret);
/* The n-th last request before `number` that opens a scanner; calls must have ascending numbers. */
uint64_t plan_opener(plan *p, uint64_t number, unsigned n);
/* NULL: HBase has no such method. */
const plan_method *plan_method_find(const char *service, const char *name);

#endif
