/* SPDX-License-Identifier: Apache-2.0 */
/* A client of an HBase cluster (HBase or Rorqual). It finds the cluster through ZooKeeper or
 * through a master's or region server's ClientMetaService, keeps a map of each table's regions,
 * sends requests to the servers that hold the rows, and retries.
 *
 *    rq_client ──► rq_client_table (region map) ──► rq_op (one operation at a time) ──► connection
 *
 * One thread. All work happens inside rq_client_poll and the few calls marked "blocking"; every
 * operation ends with exactly one call of `done`, inside poll, or inside the call that starts it if
 * the first attempt cannot be sent and is not repeated. An operation object is reused for many
 * operations and then allocates nothing.
 *
 * Failures: if a region is not where the map says, the map is reloaded from hbase:meta in the
 * background. Retryable errors are retried after growing pauses (HBASE: HConstants.RETRY_BACKOFF),
 * at most `retries` times; `on_retry` is called for each. Increments and appends carry a nonce, so
 * that a retry is applied once. */
#ifndef RQ_CLIENT_CLIENT_H
#define RQ_CLIENT_CLIENT_H

#include "client/request.h"
#include "client/response.h"
#include "client/scan_metrics.h"

#include "net/loop.h"

#include <signal.h>

typedef struct rq_client rq_client;
typedef struct rq_client_table rq_client_table;
typedef struct rq_op rq_op;

typedef struct rq_client_options {
    /* host:port, or several, separated by commas. The client asks one of them, chosen at random, and the next one if
     * it does not answer. */
    const char *zookeeper;   /* NULL: use `bootstrap` */
    const char *bootstrap;   /* of masters or region servers */
    const char *zk_root;     /* NULL: /hbase */
    const char *user;        /* NULL: rorqual */
    unsigned lanes;          /* connections to each region server; 0: 1 */
    unsigned rpc_timeout_ms; /* 0: 60,000 */
    unsigned wait_ms;        /* time limit for a procedure or a snapshot; 0: 120,000 */
    unsigned pause_ms;       /* before the first repetition; 0: 100 */
    unsigned retries;
    unsigned master_retries; /* of the blocking calls, while wait_ms lasts; 0: as `retries` */
    /* If set: rq_client_open ends with RQ_E_CLOSED when it is not 0, also by a signal handler. */
    const volatile sig_atomic_t *stop;
    /* Reads with any_replica ask replicas after this time; 0: a get 10 ms, a scan 1 s. */
    unsigned hedge_after_ms;
    bool with_tags; /* cells are sent and received with their tags: KeyValueCodecWithTags */
    /* Region maps also list regions of which neither the region nor a replica has a server. Operations on their rows
     * are retried, as without the option. */
    bool with_unserved;
    /* An attempt failed and will be retried; `kind` is valid during the call. */
    void (*on_retry)(void *ctx, rq_slice kind);
    /* If set: called before and after each wait for sockets, to release and take a lock that guards the
     * client. Then several threads can use the client, one at a time; while one waits, others can. */
    void (*before_wait)(void *ctx);
    void (*after_wait)(void *ctx);
    void *ctx;
} rq_client_options;

/* Whether the text is valid for `zookeeper` or `bootstrap`; IPv6 addresses must be in brackets.
 * Resolves no names. */
bool rq_client_is_address(const char *text);
/* The same for one or several, "HOST:PORT,…". *ret_wrong (may be NULL) is the one that is not valid. */
bool rq_client_are_addresses(const char *list, rq_slice *ret_wrong);

/* Blocking: asks the registry, waiting as rq_client_poll does. The strings must outlive the client. */
RQ_NODISCARD
rq_err rq_client_open(const rq_client_options *o, rq_client **ret, rq_error *why);
/* REQUIRES: no operation is in progress. Closes its tables too. NULL is fine. */
void rq_client_close(rq_client *c);
/* Waits at most this long for an event, and handles all pending ones. */
void rq_client_poll(rq_client *c, int64_t timeout_ns);
/* Blocking: polls for this time, or until rq_client_stop. */
void rq_client_pause(rq_client *c, int64_t ns);
/* Sends what operations have queued, without waiting for anything. */
void rq_client_flush(rq_client *c);
/* The same, and closes the scanners of scans that were ended while a request of theirs was under way: waits for its
 * response, at most this long. For a caller that does not poll for a while. */
void rq_client_end_scans(rq_client *c, int64_t timeout_ns);
/* For an event loop of the caller: a descriptor that is readable when rq_client_poll has something to
 * do; and the time (rq_client_now_ns) at which it has something to do even if the descriptor is not
 * readable (INT64_MAX: never). */
int rq_client_descriptor(const rq_client *c);
int64_t rq_client_due(const rq_client *c);
/* Ends the wait of an rq_client_poll in another thread. Any thread. */
void rq_client_wake(rq_client *c);
/* Ends all operations and calls with RQ_E_CLOSED, also those that are started later. Their `done`
 * runs. */
void rq_client_stop(rq_client *c);
int64_t rq_client_now_ns(void); /* CLOCK_MONOTONIC */

/* A one-shot timer that runs inside poll. The caller owns the memory; all zero is idle. */
typedef struct rq_client_timer {
    rq_loop_timer timer;                        /* used by the client */
    void (*run)(struct rq_client_timer *timer); /* after rq_client_stop: at the next poll */
} rq_client_timer;
/* REQUIRES: it is idle. */
void rq_client_timer_arm(rq_client *c, rq_client_timer *timer, int64_t delay_ns);
/* Of an idle timer, too. */
void rq_client_timer_cancel(rq_client *c, rq_client_timer *timer);

/* Connections made so far, all servers. */
uint64_t rq_client_connects(const rq_client *c);
/* Bytes sent and received so far, over all connections. */
typedef struct rq_client_traffic {
    uint64_t calls;
    uint64_t sent; /* bytes */
    uint64_t received;
} rq_client_traffic;
rq_client_traffic rq_client_traffic_now(const rq_client *c);
/* The master's host as the registry names it, and its port. */
const char *rq_client_master_host(const rq_client *c, uint16_t *ret_port);
const char *rq_client_cluster_id(const rq_client *c); /* empty when the registry does not say */

/* Blocking: reads the table's regions. rq_client_table_close or rq_client_close frees the table. Each call makes
 * another table, which rq_client_table_get does not return. */
RQ_NODISCARD
rq_err rq_client_table_open(rq_client *c, const char *name, rq_client_table **ret, rq_error *why);
/* Frees a table that rq_client_table_open has opened, and its region map. Waits while the map is being read.
 * REQUIRES: no operation of the table is running. Must not be called in a callback. */
void rq_client_table_close(rq_client_table *t);
/* Does not block: the table's regions are read when an operation needs them. If hbase:meta does not
 * have the table, operations fail with RQ_E_TABLE_NOT_FOUND and are not repeated. */
RQ_NODISCARD
rq_err rq_client_table_get(rq_client *c, const char *name, rq_client_table **ret);
/* Blocking: reads the table's regions anew. */
RQ_NODISCARD
rq_err rq_client_table_read(rq_client_table *t, rq_error *why);
/* REQUIRES: i below rq_client_table_regions. Ascending by start; valid until the next poll. */
typedef struct rq_client_region {
    rq_slice name, start, end;
    const char *host; /* "": the region has no server at present */
    uint16_t port;
    int64_t start_code; /* of the server; 0: hbase:meta has none */
} rq_client_region;
rq_client_region rq_client_table_region(const rq_client_table *t, size_t i);
size_t rq_client_table_regions(const rq_client_table *t);
/* The region of a row, in the map that was read last; valid until the next poll. RQ_E_TABLE_NOT_FOUND: hbase:meta has no
 * region of the table. RQ_E_NOT_SERVING_REGION: the row is in no region with a server at present. Other errors: the
 * regions could not be read. */
RQ_NODISCARD
rq_err rq_client_table_find(const rq_client_table *t, rq_slice row, rq_client_region *ret);
/* When the last reading of the table's regions ended, with or without success (rq_client_now_ns); 0: never read. */
int64_t rq_client_table_read_at(const rq_client_table *t);
/* The number of servers that the client knows, of all its tables. */
size_t rq_client_table_servers(const rq_client_table *t);

/* Blocking: one call to the master and one read of hbase:meta. RQ_OK: both servers answer.
 * `same_host`: connects to both on the registry's own host instead of the hosts it names. */
RQ_NODISCARD
rq_err rq_client_ping(rq_client *c, bool same_host, rq_error *why);

/* --- operations ------------------------------------------------------------------------------- */

typedef struct rq_op_result {
    rq_err err;
    rq_slice kind;       /* of the failure */
    rq_slice java_class; /* empty: the failure is the client's own */
    rq_slice text;
    bool retry;         /* the failure may be temporary */
    rq_result_view row; /* get, increment, append */
    rq_cursor cells;
    rq_slice cursor; /* of a scan with wants_cursors: not empty: the item is this cursor, no row */
    bool processed;  /* checkAndMutate; also of an atomic action of a batch */
    bool goes_on;    /* of a stepwise scan: a response is complete, and rq_op_scan_step asks for
                        * the next one */
    unsigned attempts; /* number of attempts that failed before */
} rq_op_result;

/* The result's pointers are valid during the call, which may start the next operation. */
typedef void (*rq_op_done)(rq_op *op, void *ctx, const rq_op_result *r);
/* Called for each action of a batch, or for each row of a scan (then `index` counts rows). Read cells
 * with rq_result_next(&r->row, &r->cells, …). If an action failed, `r` has its error. */
typedef void (*rq_op_item)(rq_op *op, void *ctx, uint32_t index, rq_op_result *r);

/* lane: selects one of the connections to a server. */
RQ_NODISCARD
rq_err rq_op_new(rq_client *c, unsigned lane, void *ctx, rq_op **ret);
/* REQUIRES: nothing in progress. NULL is fine. */
void rq_op_free(rq_op *op);
/* For the next operation. */
void rq_op_set_ctx(rq_op *op, void *ctx);
/* The time at which the next operations fail (clock of rq_client_now_ns), repetitions and waits for a region map
 * included; 0: no limit. In a scan each response of a server sets the limit anew, to the time-out of one call from then. */
void rq_op_set_until(rq_op *op, int64_t until_ns);

/* On an error nothing was started. The arguments are copied. */
RQ_NODISCARD
rq_err rq_op_get(rq_op *op, rq_client_table *t, const rq_get *get, rq_op_done done);
RQ_NODISCARD
rq_err rq_op_mutate(rq_op *op, rq_client_table *t, const rq_mutate *m, rq_op_done done);
/* A batch: begin, add …, run. Sends one Multi to each server, grouped by region; actions that fail
 * with a retryable error are retried alone. If any action failed, `done` gets the last error. */
void rq_op_batch_begin(rq_op *op, rq_client_table *t);
RQ_NODISCARD
rq_err rq_op_batch_get(rq_op *op, const rq_get *get);
RQ_NODISCARD
rq_err rq_op_batch_mutate(rq_op *op, const rq_mutate *m);
/* Changes of one row, all or nothing, as one action; `condition` as rq_op_mutate_row's. */
RQ_NODISCARD
rq_err rq_op_batch_atomic(rq_op *op, const rq_mutate *list, size_t count, rq_slice condition);
RQ_NODISCARD
rq_err rq_op_batch_run(rq_op *op, rq_op_item item, rq_op_done done);
/* Several mutations of one row, all or nothing; `condition`, unless empty, is an encoded message
 * Condition, and the result's `processed` tells whether it held. */
RQ_NODISCARD
rq_err rq_op_mutate_row(rq_op *op, rq_client_table *t, const rq_mutate *list, size_t count,
                        rq_slice condition, rq_op_done done);
/* Scans rows in order, region after region; after a failure the scan continues after the last row. */
RQ_NODISCARD
rq_err rq_op_scan(rq_op *op, rq_client_table *t, const rq_scan *scan, rq_op_item row,
                  rq_op_done done);
/* The costs of the scan so far, if counts_metrics is set. Valid until the next operation. */
const rq_scan_metrics *rq_op_scan_metrics(const rq_op *op);
/* Requests the next response of a stepwise scan whose done() was called with goes_on; or, after done() was
 * called with an error, makes another attempt to continue after the last row. */
void rq_op_scan_step(rq_op *op);
/* For a step in progress whose rows are not needed any more: prevents further requests. done() is still called,
 * with RQ_E_CANCELLED if the answer that is under way does not end the step. */
void rq_op_scan_abandon(rq_op *op);
/* Ends a stepwise scan between two steps; done() is not called. */
void rq_op_scan_end(rq_op *op);

/* --- definitions: blocking -------------------------------------------------------------------- */

typedef struct rq_client_family {
    const char *name;
    unsigned versions;       /* 0: 1 */
    const char *compression; /* NULL: NONE */
    const char *encoding;    /* NULL: NONE */
    const char *bloom;       /* NULL: ROW */
    unsigned block_bytes;    /* 0: 65536 */
} rq_client_family;

/* Why a call of the master failed. */
typedef struct rq_client_failure {
    bool retry;
    char java_class[96]; /* empty: the client's own error */
    char text[4096];     /* HBase puts the stack behind its message */
} rq_client_failure;
/* Calls a method of MasterService with an encoded message and appends its response's message to
 * `ret`, which may be NULL. After a temporary failure the call is repeated, to the master that the registry names
 * then. If the method begins a procedure, the call waits for its end; it has a nonce of the client's, so that its
 * repetitions are the same procedure. */
RQ_NODISCARD
rq_err rq_client_master(rq_client *c, const char *method, rq_slice message, rq_buf *ret,
                        rq_client_failure *ret_failure);

/* Blocking: takes a snapshot; `message` is SnapshotRequest without a nonce. RQ_E_TIMEOUT after `wait_ms`. */
RQ_NODISCARD
rq_err rq_client_snapshot(rq_client *c, rq_slice message, rq_client_failure *ret_failure);
/* Blocking: waits until the snapshot that was begun is complete. `message` is
 * IsSnapshotDoneRequest, whose bytes are those of the SnapshotRequest. RQ_E_TIMEOUT after
 * `wait_ms`. */
RQ_NODISCARD
rq_err rq_client_wait_snapshot(rq_client *c, rq_slice message, rq_client_failure *ret_failure);

/* As rq_client_master, for one call, without blocking: `done` runs in poll. On an error nothing was sent. */
typedef struct rq_client_question {
    void (*done)(struct rq_client_question *q, rq_err rc, rq_slice message);
    int64_t until_ns; /* time limit (rq_client_now_ns); 0: the call's time-out alone */
} rq_client_question;
RQ_NODISCARD
rq_err rq_client_ask_master(rq_client *c, const char *method, rq_slice message,
                            rq_client_question *q);

/* Blocking: begins a compaction of the i-th region, of one family or (empty) of all, on the server
 * that has it. */
RQ_NODISCARD
rq_err rq_client_compact(rq_client_table *t, size_t i, rq_slice family, bool major,
                         rq_client_failure *ret_failure);

/* Blocking: calls a method of ClientService on the server that has the i-th region, with an encoded
 * message, and replaces `ret` by its response's message. Is not repeated. */
RQ_NODISCARD
rq_err rq_client_call_region(rq_client_table *t, size_t i, const char *method, rq_slice message,
                             rq_buf *ret, rq_client_failure *ret_failure);

RQ_NODISCARD
rq_err rq_client_create_table(rq_client *c, const char *name, const rq_client_family *families,
                              size_t family_count, const rq_slice *splits, size_t split_count,
                              rq_error *why);
/* Asks the master. RQ_E_TABLE_NOT_FOUND: there is no such table. */
RQ_NODISCARD
rq_err rq_client_table_is_enabled(rq_client *c, const char *name, bool *ret, rq_error *why);
/* Asks the master, so that disabled tables and tables being created count too. */
RQ_NODISCARD
rq_err rq_client_table_exists(rq_client *c, const char *name, bool *ret, rq_error *why);
/* Disables and deletes; RQ_E_TABLE_NOT_FOUND when there is none. */
RQ_NODISCARD
rq_err rq_client_drop_table(rq_client *c, const char *name, rq_error *why);
RQ_NODISCARD
rq_err rq_client_flush_table(rq_client *c, const char *name, rq_error *why);

#endif
