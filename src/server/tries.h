/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retries, by name: when the next attempt is due, and which failures are logged.
 *
 *   failed ── 0.2 s ──► again ── 0.4 s ──► again … every 10 s        logged: the first failure, and every 30 s how many
 *
 * One thread at a time. Times are a monotonic clock's.
 */
#ifndef RQ_SERVER_TRIES_H
#define RQ_SERVER_TRIES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rq__try rq__try;

/* {0}: nothing has failed. */
typedef struct rq__tries {
    rq__try *list;
} rq__tries;

/* False: an earlier attempt failed, and its pause is not over. */
bool rq__tries_is_due(const rq__tries *t, const char *name, uint64_t now_ns);
/* Whether an attempt has failed, and none has succeeded since. */
bool rq__tries_has_failed(const rq__tries *t, const char *name);
/* Returns how many attempts have failed since the last one that was logged; 0: this one is not to be logged. */
unsigned rq__tries_failed(rq__tries *t, const char *name, uint64_t now_ns);
/* The name is forgotten. Returns how many attempts had failed. */
unsigned rq__tries_succeeded(rq__tries *t, const char *name);
void rq__tries_clear(rq__tries *t);

#endif
