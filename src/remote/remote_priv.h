/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the remote back end: the client under its lock, calls from start to end. */
#ifndef RQ_REMOTE_REMOTE_PRIV_H
#define RQ_REMOTE_REMOTE_PRIV_H

#include "remote/remote.h"

#include "client/client.h"

#include <pthread.h>

/* A thread that waits until its call has ended, or until it can become the driver (remote.c). */
typedef struct rq__wait {
    bool done;
    bool is_listed; /* is in rq__remote.waiting */
    pthread_cond_t wake;
    struct rq__wait *next;
} rq__wait;

typedef struct rq__post rq__post;

typedef struct rq__remote {
    rq_db db;
    char *address;
    char *znode_parent;
    char *user;
    pthread_mutex_t lock; /* held by the thread that uses the client; not while it waits */
    rq_client *client RQ_GUARDED_BY(lock);
    bool is_driven RQ_GUARDED_BY(lock);    /* a thread runs the client's loop … */
    bool is_asleep RQ_GUARDED_BY(lock);    /* … and waits for sockets */
    rq__wait *waiting RQ_GUARDED_BY(lock); /* threads that wait while another one is the driver */
    rq__wait turn
        RQ_GUARDED_BY(lock); /* of the thread in backend->turn; `done`: an async call has ended */
    rq__post *spare RQ_GUARDED_BY(lock); /* of asynchronous calls that have ended */
    uint64_t next_nonce RQ_GUARDED_BY(lock);
} rq__remote;

static inline rq__remote *rq__remote_of(rq_db *db)
{
    return RQ_CONTAINER_OF(db, rq__remote, db);
}

/* --- jobs (job.c) ----------------------------------------------------------------------------- */

/* A call from its start to its end, with its repetitions. Everything happens under the lock.
 *
 *    begin ─► attempt ─► operation … rq__job_ended ─► end
 *                ▲                        │ the error may be temporary: does the table exist? pause
 *                └────────────────────────┘
 */
typedef struct rq__job {
    rq__remote *remote;
    rq_table *table;
    rq_arena *arena;
    /* Begins an attempt, which ends with a call of rq__job_ended, perhaps before this returns. On an
     * error no attempt has begun. */
    rq_err (*attempt)(struct rq__job *job, rq_client_table *table);
    /* The call has ended with `rc` and `why`. The job may be freed. */
    void (*end)(struct rq__job *job);
    rq_err rc;
    rq_why *why;
    void *owner; /* used by `end`: an rq__wait, or an rq_call */
    /* Repetitions. */
    int64_t until_ns;
    unsigned failed;
    bool is_abandoned;
    rq_client_timer pause;
    rq_client_question question;
} rq__job;

/* Call it when an attempt has ended; job->why describes an error. */
void rq__job_ended(rq__job *job, rq_err rc);
/* Begins the job and waits until it has ended; takes the lock. Returns the job's error. REQUIRES, here and
 * for rq__job_begin: remote, table, arena, attempt and why are set; the rest is zero. */
rq_err rq__job_run(rq__job *job, rq__wait *wait);
/* The same in two parts. In between, the thread that drives the client works on the job. */
void rq__job_begin(rq__job *j, rq__wait *wait);
RQ_NODISCARD
rq_err rq__job_wait(rq__job *j, rq__wait *wait);
/* Prevents further attempts, because nobody waits for the job any more; the table is not used either.
 * `end` still follows. REQUIRES: the lock is held. */
void rq__job_abandon(rq__job *j);
/* Begins the job of an asynchronous call; the lock is held. `end` calls rq__job_complete. */
void rq__job_start(rq__job *job, rq_call *call, void (*end)(rq__job *job));
/* Passes the outcome of the asynchronous call to rq_call_done. */
void rq__job_complete(rq__job *job);

/* Sends queued requests and waits until w->done, perhaps as the driver. REQUIRES, for this and the next
 * function: the lock is held. */
void rq__remote_wait(rq__remote *r, rq__wait *w);
/* Sets w->done and wakes the thread of `w`. */
void rq__wait_done(rq__wait *w);

/* Converts an operation's failure to `why`; returns its error. */
rq_err rq__remote_failure(const rq_op_result *result, rq_why *why);
/* The same for a call of the master or of AdminService. */
void rq__client_failure(const rq_client_failure *failure, rq_err rc, rq_why *why);
/* Copies a server's text to why->error, without the class name before the message and the stack
 * trace after it, and the class to why->java_class. */
void rq__remote_text(rq_slice java_class, rq_slice text, rq_why *why);

/* --- operations of a row (rows.c) ------------------------------------------------------------- */

/* A get, or changes of one row. */
typedef struct rq__single {
    rq__job job;
    rq__post *post;
    const rq_getting *get; /* NULL: changes */
    rq_mutate *list;
    size_t count;
    rq_slice condition;
    rq_row *row;
    bool processed;
} rq__single;

/* The back end's memory for a call: of a slot (rq_slot.own), or of an asynchronous call. */
struct rq__post {
    rq__wait wait;
    rq_op *op;
    rq_buf more; /* encoded fields of the current request */
    rq__single single;
    rq__post *next; /* in rq__remote.spare */
};

/* The post of the slot; it is made when the slot is first used. */
RQ_NODISCARD
rq_err rq__post_of(rq__remote *r, rq_slot *slot, rq__post **ret, rq_why *why);
/* Takes a spare post, or makes one, for an asynchronous call. REQUIRES: the lock is held. */
RQ_NODISCARD
rq_err rq__post_take(rq__remote *r, rq__post **ret);
void rq__post_give_back(rq__remote *r, rq__post *p);

/* Converts changes to the client's form. Their encoded fields are appended to `more`, which must not change
 * until the operation is done; the encoded condition follows if `check` is not NULL. */
RQ_NODISCARD
rq_err rq__make_mutations(rq_buf *more, const rq_checking *check, const rq_changing *changes,
                          size_t count, uint64_t nonce, rq_arena *arena, rq_mutate **ret,
                          rq_slice *ret_condition);

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
/* TableName { namespace 1, qualifier 2 } as a field. */
RQ_NODISCARD
rq_err rq__encode_table(rq_buf *out, uint32_t field, rq_slice ns, rq_slice qualifier);
/* RegionInfo of d->region as field 1. RQ_E_MALFORMED: the region's name. */
RQ_NODISCARD
rq_err rq__encode_region(rq_buf *out, const rq_defining *d);
/* A region by its encoded name as field 1. */
RQ_NODISCARD
rq_err rq__encode_specifier(rq_buf *out, rq_slice encoded);
/* The mutation of a change whose fields are in `more`. */
rq_mutate rq__mutate_of(const rq_changing *c, rq_slice more, uint64_t nonce);
/* The result's cells as a row, allocated in `memory`; memory NULL: the caller frees the row. */
RQ_NODISCARD
rq_err rq__row_of_result(const rq_op_result *result, rq_row_memory *memory, rq_row **ret);

/* --- the back end's functions ----------------------------------------------------------------- */

rq_err rq__remote_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why);
rq_err rq__remote_describe(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                           bool *ret_enabled, rq_why *why);
rq_err rq__remote_tables(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why);
rq_err rq__remote_snapshots(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why);
rq_err rq__remote_namespaces(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why);
rq_err rq__remote_describe_namespace(rq_db *db, rq_slot *slot, rq_slice ns, rq_buf *ret,
                                     rq_why *why);
rq_err rq__remote_regions(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                          rq_region_finding *ret, rq_why *why);
rq_err rq__remote_compact(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                          rq_slice family, bool major, rq_why *why);
rq_err rq__remote_cluster(rq_db *db, rq_slot *slot, rq_cluster_finding *ret, rq_why *why);
rq_err rq__remote_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why);
rq_err rq__remote_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                         size_t count, bool *ret_done, rq_row **ret, rq_why *why);
rq_err rq__remote_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                        rq_outcomes *ret, rq_why *why);
rq_err rq__remote_scan(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret,
                       rq_why *why);
rq_err rq__remote_next(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                       rq_row **rows, size_t *ret_count, rq_why *why);
bool rq__remote_has_row(const void *scan);
void rq__remote_ahead(rq_table *t, rq_slot *slot, void *scan);
void rq__remote_scan_close(rq_db *db, rq_slot *slot, void *scan);
void rq__remote_start(rq_db *db, rq_call *call);

/* Begin an asynchronous call; on an error none has begun. REQUIRE: the lock is held. */
RQ_NODISCARD
rq_err rq__single_start(rq__remote *r, rq_call *call);
RQ_NODISCARD
rq_err rq__batch_start(rq__remote *r, rq_call *call);
void rq__next_start(rq__remote *r, rq_call *call);

#endif
