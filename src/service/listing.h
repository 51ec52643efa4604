/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that list the catalog: tables, regions, their loads. A catalog of more than 512 tables and regions is walked
 * on RQ_POOL_CODEC, in a read section of the epoch of its own, and the answer is serialized there too: with
 * 10,000 tables this work would hold the loop for many milliseconds.
 */
#ifndef RQ_SERVICE_LISTING_H
#define RQ_SERVICE_LISTING_H

#include "service/admin_priv.h"
#include "service/apart.h"

/* In the call's arena, zeroed. */
typedef struct rq__listing rq__listing;
struct rq__listing {
    rq__apart apart;
    rq_admin_services *services;
    rq_call *call;
    bool is_long; /* set by the caller: it takes long whatever the catalog's size is */
    /* Makes the answer, serialized, in the call's arena. Any thread, in a read section. An error is the call's. */
    rq_err (*list)(rq__listing *l, rq_slice *ret);
    rq_slice packed;
    rq_err rc;
    rq_error why;
};

/* Ends the call. */
void rq__listing_start(rq__listing *l, rq_admin_services *a, rq_call *call,
                       rq_err (*list)(rq__listing *l, rq_slice *ret));
/* Likewise, for a listing without data of its own. */
void rq__listing_reply(rq_admin_services *a, rq_call *call,
                       rq_err (*list)(rq__listing *l, rq_slice *ret));
/* Likewise, but always on the pool: for listings whose length does not depend on the catalog's size. Clients decide how
 * many procedures and locks there are. */
void rq__listing_reply_long(rq_admin_services *a, rq_call *call,
                            rq_err (*list)(rq__listing *l, rq_slice *ret));
/* The serialized message, in the call's arena. */
RQ_NODISCARD
rq_err rq__listing_pack(rq__listing *l, const ProtobufCMessage *m, rq_slice *ret);

#endif
