/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coprocessor endpoints: services that a table has because its descriptor (or a setting) names
 * their class. One run is one call of one method on one region, for ExecService and for the service
 * calls inside a Multi alike. HBASE: HRegion.execService.
 *
 *   ExecService ─► rq__endpoint_start ─► decode ─► run: aggregate.c │ bulk_delete.c │ multi_row.c ─► rq__endpoint_end ─► done()
 */
#ifndef RQ_SERVICE_ENDPOINT_H
#define RQ_SERVICE_ENDPOINT_H

#include "ops/gate.h"
#include "service/apart.h"
#include "service/client_priv.h"

/* Lives in the call's arena, at least until done() runs. */
typedef struct rq__endpoint {
    rq_client_service *service;
    rq_call *call;
    rq_region *region; /* the starter's, referenced until done() */
    void (*done)(struct rq__endpoint *e);
    void *user; /* the starter's */
    /* Valid when done() runs. The response is serialized, in the arena. */
    rq_err rc;
    rq_error why;
    const char *response_class; /* as HBase's generated code names it */
    rq_slice response;
    rq_task task;
    /* The request. */
    const struct rq__endpoint_method *method;
    const Pb__CoprocessorServiceCall *asked;
    const ProtobufCMessage *request;
    void *decoded;   /* by method->decode */
    rq__apart apart; /* of a long one */
    rq_op op;        /* of ExecService; in a Multi it is a part of the batch */
} rq__endpoint;

/* done() runs once, on the call's loop, never before this returns. REQUIRES: no other code uses the call
 * meanwhile. */
void rq__endpoint_start(rq__endpoint *e, const Pb__CoprocessorServiceCall *service_call);

/* --- for the endpoints ------------------------------------------------------------------------ */
/* Loop's thread, exactly once. `response` is in the arena. */
void rq__endpoint_end(rq__endpoint *e, rq_slice response);
/* With e->why's message, if there is one. */
void rq__endpoint_fail(rq__endpoint *e, rq_err rc);

/* The methods of one service; `request` is the message's type. */
typedef struct rq__endpoint_method {
    const char *name;
    const ProtobufCMessageDescriptor *request;
    const char *response_class;
    /* Translates the request into e->decoded; on a pool if the request is long. After an error, with e->why, the method is
     * not run. */
    rq_err (*decode)(rq__endpoint *e, const ProtobufCMessage *request);
    /* On the loop. */
    void (*run)(rq__endpoint *e, const ProtobufCMessage *request);
} rq__endpoint_method;

/* e->decoded of methods with a scan. */
typedef struct rq__endpoint_scan {
    rq_scan scan;
    rq_scan_extra extra;
} rq__endpoint_scan;

RQ_NODISCARD
rq_err rq__endpoint_decode_scan(rq__endpoint *e, const Pb__Scan *scan);

/* A service, and the coprocessor that a table must have for it. */
typedef struct rq__endpoint_service {
    const char *name; /* HBASE: CoprocessorRpcUtils.getServiceName: without its package, hbase.pb */
    unsigned coprocessor;
    const rq__endpoint_method *methods;
    const size_t *method_count;
} rq__endpoint_service;

extern const rq__endpoint_service rq__endpoint_services[];
extern const size_t rq__endpoint_service_count;

extern const rq__endpoint_method rq__aggregate_methods[];
extern const size_t rq__aggregate_method_count;
extern const rq__endpoint_method rq__bulk_delete_methods[];
extern const size_t rq__bulk_delete_method_count;
extern const rq__endpoint_method rq__multi_row_methods[];
extern const size_t rq__multi_row_method_count;

#endif
