/* SPDX-License-Identifier: Apache-2.0 */
/* A map of entries by a region's encoded name; the caller's lock guards it. It relies on names being hashes. */
#ifndef RQ_HOST_BY_NAME_H
#define RQ_HOST_BY_NAME_H

#include "region/region_info.h"

/* Embedded in the entries of the map. */
typedef struct rq__named {
    struct rq__named *next; /* in its bucket */
    char encoded[RQ_ENCODED_NAME_LEN + 1];
} rq__named;

typedef struct rq__by_name {
    rq__named **buckets;
    size_t mask, count;
} rq__by_name;

RQ_NODISCARD
rq_err rq__by_name_init(rq__by_name *m);
/* The entries are the caller's. */
void rq__by_name_clear(rq__by_name *m);
/* NULL: none. */
rq__named *rq__by_name_find(const rq__by_name *m, const char *encoded);
/* REQUIRES: the map has no entry of this name. Never fails: without memory for more buckets, chains get longer. */
void rq__by_name_put(rq__by_name *m, rq__named *n);
/* REQUIRES: it is in the map. */
void rq__by_name_remove(rq__by_name *m, rq__named *n);
/* Any entry; NULL: it is empty. */
rq__named *rq__by_name_any(const rq__by_name *m);

#endif
