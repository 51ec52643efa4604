/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room: the client under its lock, calls that wait for it. */
#ifndef RQ_REMOTE_REMOTE_PRIV_H
#define RQ_REMOTE_REMOTE_PRIV_H

#include "remote/remote.h"

#include "client/client.h"

#include <pthread.h>

/* A call that waits for its operation. */
typedef struct rq__wait {
    bool done;
    bool is_listed; /* among those that wait for the driver */
    pthread_cond_t wake;
    struct rq__wait *next;
} rq__wait;

typedef struct rq__remote {
    rq_db db;
    char *address;
    char *znode_parent;
    char *user;
    pthread_mutex_t lock; /* held by whoever uses the client, but for its waits */
    rq_client *client RQ_GUARDED_BY(lock);
    bool is_driven RQ_GUARDED_BY(lock); /* a call runs the client's loop */
    rq__wait *waiting RQ_GUARDED_BY(lock);
    uint64_t next_nonce RQ_GUARDED_BY(lock);
} rq__remote;

static inline rq__remote *rq__remote_of(rq_db *db)
{
    return RQ_CONTAINER_OF(db, rq__remote, db);
}

/* What a slot keeps. */
typedef struct rq__post {
    rq__wait wait;
    rq_op *op;
    rq_buf more, cells; /* of the request at hand */
} rq__post;

RQ_NODISCARD
rq_err rq__post_of(rq__remote *r, rq_slot *slot, rq__post **ret, rq_why *why);

/* The lock is held by the caller of these two. Sends what was queued, and works until w->done. */
void rq__remote_wait(rq__remote *r, rq__wait *w);
/* An operation has ended: wakes its call. */
void rq__wait_done(rq__wait *w);

/* The client's table. */
RQ_NODISCARD
rq_err rq__remote_table(rq__remote *r, rq_table *t, rq_client_table **ret, rq_why *why);

/* An operation's failure, in the form of the api. */
rq_err rq__remote_failure(const rq_op_result *result, rq_why *why);
/* Copies a server's text to why->error, without the class in front and the stack trace behind, and
 * the class to why->java_class. */
void rq__remote_text(rq_slice java_class, rq_slice text, rq_why *why);

/* --- repetitions: what the client has given up after some attempts ---------------------------- */

typedef struct rq__tries {
    int64_t until_ns;
    unsigned failed;
} rq__tries;
rq__tries rq__tries_begin(const rq__remote *r);
/* The operation failed with *rc. Whether it is to be tried again, after a pause; else *rc and `why`
 * are the call's result: that of the table, if it is disabled or missing. The lock is held. */
bool rq__try_again(rq__remote *r, rq_table *t, rq__tries *tries, rq_err *rc, rq_why *why);

/* --- messages (encode.c) ---------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__encode_get(rq_buf *out, const rq_reading *r);
RQ_NODISCARD
rq_err rq__encode_scan(rq_buf *out, const rq_scanning *s);
/* The fields of MutationProto that the client does not write itself. */
RQ_NODISCARD
rq_err rq__encode_change(rq_buf *out, const rq_changing *c);
/* A message Condition. */
RQ_NODISCARD
rq_err rq__encode_check(rq_buf *out, const rq_checking *k, rq_slice row);
/* The mutation of a change whose fields are in `more`. */
rq_mutate rq__mutate_of(const rq_changing *c, rq_slice more, uint64_t nonce);
/* The result's cells as a row. */
RQ_NODISCARD
rq_err rq__row_of_result(const rq_op_result *result, rq_row **ret);

/* --- the back end's functions ----------------------------------------------------------------- */

rq_err rq__remote_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why);
rq_err rq__remote_describe(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                           bool *ret_enabled, rq_why *why);
rq_err rq__remote_tables(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why);
rq_err rq__remote_namespaces(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why);
rq_err rq__remote_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why);
rq_err rq__remote_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                         size_t count, bool *ret_done, rq_row **ret, rq_why *why);
rq_err rq__remote_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                        rq_outcomes *ret, rq_why *why);
rq_err rq__remote_scan(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret,
                       rq_why *why);
rq_err rq__remote_next(rq_table *t, rq_slot *slot, void *scan, rq_row **ret, rq_why *why);
void rq__remote_scan_close(rq_db *db, rq_slot *slot, void *scan);

/* Whether a table is there and enabled; the lock is held. */
RQ_NODISCARD
rq_err rq__remote_table_state(rq__remote *r, rq_slice ns, rq_slice qualifier, bool *ret_enabled,
                              rq_why *why);

#endif
