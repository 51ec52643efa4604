/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of rows, for ops that are not done in one go under the token (apart.h), and the ops that wait for such rows.
 *
 * A write whose next op needs a locked row waits in the row's queue. An unlocked row goes to the first write of its queue,
 * which has it locked from then on: nothing overtakes it, and n writes to one row cost n wake-ups. A write of several rows
 * locks them in ascending order, holds those that it has while it waits for the next one, and is woken when it has all: no
 * deadlock.
 *
 * Everything here runs under the token of the region. Zeroed: no row is locked, and no memory is in use.
 */
#ifndef RQ_REGION_ROW_LOCKS_H
#define RQ_REGION_ROW_LOCKS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rq_region;
struct rq_row_op;
struct rq_write;

typedef struct rq__row_lock rq__row_lock;
/* The rows of one op that are locked, or that it waits for. */
typedef struct rq__row_set rq__row_set;

typedef struct rq__row_locks {
    rq__row_lock **buckets;
    size_t mask, count;
    uint64_t seed; /* of the hash, so that no client can choose rows that share a bucket */
    rq__row_lock *first, *last; /* all of them, oldest first */
    uint64_t wakes;             /* writes that were woken; for tests */
} rq__row_locks;

/* Whether no row of the op is locked by another write than `w`. */
bool rq__row_locks_are_free(const struct rq_region *r, const struct rq_row_op *op,
                            const struct rq_write *w);
/* Locks all rows of the op. NULL: no memory. REQUIRES: they are free. The rows' bytes must stay until they are unlocked. */
rq__row_set *rq__row_locks_take(struct rq_region *r, const struct rq_row_op *op,
                                struct rq_write *w);
/* The write waits for the rows of its next op, and is enqueued when it has locked them. RQ_E_NO_MEMORY.
 * REQUIRES: one of them is not free. */
RQ_NODISCARD
rq_err rq__row_locks_wait(struct rq_region *r, const struct rq_row_op *op, struct rq_write *w);
/* Frees the set, too. */
void rq__row_locks_free(struct rq_region *r, rq__row_set *set);

/* Ends the waits of writes whose clients have gone: they are enqueued without a lock. */
void rq__row_locks_wake_gone(struct rq_region *r);
/* Appends to the list that ends at `end` the writes that have waited since `before_ns` or earlier; returns its new end. */
struct rq_write **rq__row_locks_take_expired(struct rq_region *r, uint64_t before_ns,
                                             struct rq_write **end);

/* The write's wait has begun, or ended: counted for the engine. */
void rq__row_wait_begin(struct rq_region *r, struct rq_write *w);
void rq__row_wait_end(struct rq_region *r);

#endif
