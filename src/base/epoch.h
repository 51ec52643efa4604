/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory reclamation by quiescent states. Objects that readers reach without a lock (store
 * versions, memstore segments, the region map) are unlinked, then *retired*, and freed once every
 * member has passed a quiescent point after that. An event loop is a member: one iteration is one
 * read section. Other threads pin the epoch for as short a time as possible, and take a reference
 * on an object they keep longer.
 */
#ifndef RQ_BASE_EPOCH_H
#define RQ_BASE_EPOCH_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct rq_epoch rq_epoch;

/* One per loop, or on the stack of a thread that pins. Owned by the epoch between join and
 * leave. */
typedef struct rq_epoch_member {
    _Atomic uint64_t seen; /* 0: outside a read section */
    struct rq_epoch_member *next, *prev;
} rq_epoch_member;

typedef struct rq_epoch_node {
    struct rq_epoch_node *next;
    uint64_t retired_at;
    void (*release)(struct rq_epoch_node *node);
} rq_epoch_node;

RQ_NODISCARD
rq_err rq_epoch_new(rq_epoch **ret);
/* Releases all retired nodes. REQUIRES: no member is joined. */
void rq_epoch_free(rq_epoch *e);

void rq_epoch_join(rq_epoch *e, rq_epoch_member *m);
void rq_epoch_leave(rq_epoch *e, rq_epoch_member *m);

/* Begins and ends a member's read section. Sections do not nest. */
void rq_epoch_enter(rq_epoch *e, rq_epoch_member *m);
void rq_epoch_exit(rq_epoch *e, rq_epoch_member *m);

/* For threads that are not members: pin is join and enter, unpin is exit and leave. Both take a
 * lock. */
void rq_epoch_pin(rq_epoch *e, rq_epoch_member *m);
void rq_epoch_unpin(rq_epoch *e, rq_epoch_member *m);

/* Call it after the object was unlinked, from any thread. `release` runs later, on the thread
 * that collects. */
void rq_epoch_retire(rq_epoch *e, rq_epoch_node *node, void (*release)(rq_epoch_node *node));
/* Releases the nodes that no member can still see. Loops call it at the end of an iteration.
 * Cheap when nothing is retired. */
void rq_epoch_collect(rq_epoch *e);

#endif
