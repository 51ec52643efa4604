/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of an HBase cluster (a real one or Rorqual): finds it through ZooKeeper or a master's or
 * region server's ClientMetaService, keeps a map of each table's regions, sends what is asked to
 * the servers that hold the rows, and repeats what may be repeated.
 *
 *   rq_client ──► rq_client_table (region map) ──► rq_op (one operation at a time) ──► connection
 *
 * One thread. Nothing happens but inside rq_client_poll and the few calls marked "blocking"; every
 * operation ends by exactly one `done`, inside poll. An operation object is reused for operation
 * after operation and then allocates nothing.
 *
 * Failures: a region that is not where the map says makes the map be read again (from hbase:meta,
 * beside everything else); what may be repeated is, after pauses that grow (HBASE:
 * HConstants.RETRY_BACKOFF), at most `retries` times; `on_retry` hears of each. Increments and
 * appends carry a nonce, so that a repeated one acts once.
 */
#ifndef RQ_CLIENT_CLIENT_H
#define RQ_CLIENT_CLIENT_H

#include "client/request.h"
#include "client/response.h"

typedef struct rq_client rq_client;
typedef struct rq_client_table rq_client_table;
typedef struct rq_op rq_op;

typedef struct rq_client_options {
    const char *zookeeper;   /* host:port; or */
    const char *bootstrap;   /* host:port of a master or region server */
    const char *zk_root;     /* NULL: /hbase */
    const char *user;        /* NULL: rorqual */
    unsigned lanes;          /* connections to each region server; 0: 1 */
    unsigned rpc_timeout_ms; /* 0: 60,000 */
    unsigned pause_ms;       /* before the first repetition; 0: 100 */
    unsigned retries;
    /* An attempt failed and will be repeated; `kind` lives during the call. */
    void (*on_retry)(void *ctx, rq_slice kind);
    void *ctx;
} rq_client_options;

/* Blocking: asks the registry. The strings must outlive the client. */
RQ_NODISCARD
rq_err rq_client_open(const rq_client_options *o, rq_client **ret, rq_error *why);
/* REQUIRES: no operation is under way. Closes its tables too. NULL is fine. */
void rq_client_close(rq_client *c);
/* Waits at most so long for something to happen, and handles what did. */
void rq_client_poll(rq_client *c, int64_t timeout_ns);
int64_t rq_client_now_ns(void); /* CLOCK_MONOTONIC */
/* Connections made so far, all servers. */
uint64_t rq_client_connects(const rq_client *c);
/* What went over the wire so far, all connections. */
typedef struct rq_client_traffic {
    uint64_t calls;
    uint64_t sent; /* bytes */
    uint64_t received;
} rq_client_traffic;
rq_client_traffic rq_client_traffic_now(const rq_client *c);
/* The master's host as the registry names it, and its port. */
const char *rq_client_master_host(const rq_client *c, uint16_t *ret_port);
const char *rq_client_cluster_id(const rq_client *c); /* empty when the registry does not say */

/* Blocking: reads the table's regions. Belongs to the client. */
RQ_NODISCARD
rq_err rq_client_table_open(rq_client *c, const char *name, rq_client_table **ret, rq_error *why);
size_t rq_client_table_regions(const rq_client_table *t);
size_t rq_client_table_servers(const rq_client_table *t);

/* Blocking: one call to the master and one read of hbase:meta. RQ_OK: both servers answer.
 * `same_host`: both are asked at the registry's own host instead of those that it names. */
RQ_NODISCARD
rq_err rq_client_ping(rq_client *c, bool same_host, rq_error *why);

/* --- operations ------------------------------------------------------------------------------- */

typedef struct rq_op_result {
    rq_err err;
    rq_slice kind; /* of the failure */
    rq_slice text;
    rq_result_view row; /* get, increment, append */
    rq_cursor cells;
    bool processed;    /* checkAndMutate */
    unsigned attempts; /* that failed before */
} rq_op_result;

/* What it points to lives during the call, in which the next operation may be begun. */
typedef void (*rq_op_done)(rq_op *op, void *ctx, const rq_op_result *r);
/* One action of a batch, or one row of a scan (then `index` counts rows). Reads cells by
 * rq_result_next(&r->row, &r->cells, …). A failed action comes with its error. */
typedef void (*rq_op_item)(rq_op *op, void *ctx, uint32_t index, rq_op_result *r);

/* lane: which of the connections to a server. */
RQ_NODISCARD
rq_err rq_op_new(rq_client *c, unsigned lane, void *ctx, rq_op **ret);
/* REQUIRES: nothing under way. NULL is fine. */
void rq_op_free(rq_op *op);

/* On an error nothing was begun. The arguments are copied. */
RQ_NODISCARD
rq_err rq_op_get(rq_op *op, rq_client_table *t, const rq_get *get, rq_op_done done);
RQ_NODISCARD
rq_err rq_op_mutate(rq_op *op, rq_client_table *t, const rq_mutate *m, rq_op_done done);
/* A batch: begin, add …, run. One Multi for each server, grouped by region; what fails for a
 * passing reason is repeated alone. `done` fails with the last error when an action failed. */
void rq_op_batch_begin(rq_op *op, rq_client_table *t);
RQ_NODISCARD
rq_err rq_op_batch_get(rq_op *op, const rq_get *get);
RQ_NODISCARD
rq_err rq_op_batch_mutate(rq_op *op, const rq_mutate *m);
RQ_NODISCARD
rq_err rq_op_batch_run(rq_op *op, rq_op_item item, rq_op_done done);
/* Rows in order, region after region; goes on behind the last row after a failure. */
RQ_NODISCARD
rq_err rq_op_scan(rq_op *op, rq_client_table *t, const rq_scan *scan, rq_op_item row,
                  rq_op_done done);

/* --- definitions: blocking -------------------------------------------------------------------- */

typedef struct rq_client_family {
    const char *name;
    unsigned versions;       /* 0: 1 */
    const char *compression; /* NULL: NONE */
    const char *encoding;    /* NULL: NONE */
    const char *bloom;       /* NULL: ROW */
    unsigned block_bytes;    /* 0: 65536 */
} rq_client_family;

RQ_NODISCARD
rq_err rq_client_create_table(rq_client *c, const char *name, const rq_client_family *families,
                              size_t family_count, const rq_slice *splits, size_t split_count,
                              rq_error *why);
/* Asks the master, so that a table that is disabled or still being created counts. */
RQ_NODISCARD
rq_err rq_client_table_exists(rq_client *c, const char *name, bool *ret, rq_error *why);
/* Disables and deletes; RQ_E_TABLE_NOT_FOUND when there is none. */
RQ_NODISCARD
rq_err rq_client_drop_table(rq_client *c, const char *name, rq_error *why);
RQ_NODISCARD
rq_err rq_client_flush_table(rq_client *c, const char *name, rq_error *why);

#endif
