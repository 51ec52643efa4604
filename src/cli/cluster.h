/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data that `rorqual status`, `tables` and `top` show: servers, namespaces, tables and regions
 * with their figures, read from a running cluster (over RPC) or from a stopped data folder.
 */
#ifndef RQ_CLI_CLUSTER_H
#define RQ_CLI_CLUSTER_H

#include "base/arena.h"
#include "client/client.h"
#include "client/status.h"

struct rq_vfs;

/* Which cluster or folder to show. The texts are borrowed. */
typedef struct rq__cluster_where {
    rq_client_options client;
    uint64_t timeout_s; /* of each call; 0: the default */
    const char *data;   /* a stopped folder; NULL: a cluster */
} rq__cluster_where;

/* The options of rq__cluster_where: entries for rq__parse_options, and their help. */
#define RQ__CLUSTER_OPTIONS(where)                                                                 \
    {"zk", .text = &(where)->client.zookeeper}, {"bootstrap", .text = &(where)->client.bootstrap}, \
        {"zk-root", .text = &(where)->client.zk_root},                                             \
    {                                                                                              \
        "timeout", .seconds = &(where)->timeout_s                                                  \
    }
#define RQ__CLUSTER_OPTION_DATA(where)                                                             \
    {                                                                                              \
        "data", .text = &(where)->data                                                             \
    }
#define RQ__CLUSTER_HELP                                                                           \
    "  --zk HOST:PORT         ZooKeeper of the cluster (127.0.0.1:2181)\n"                         \
    "  --bootstrap HOST:PORT  a master or region server, instead of ZooKeeper\n"                   \
    "  --zk-root PATH         parent znode (/hbase)\n"                                             \
    "  --timeout SECONDS      time-out of each call (5)\n"
#define RQ__CLUSTER_HELP_DATA                                                                      \
    "  --data DIR             the data folder of a stopped server, instead of a cluster\n"

/* Checks the options after all were parsed, and fills in defaults. Returns an exit code, or -1 to
 * go on. */
int rq__cluster_where_resolve(rq__cluster_where *w, const char *command);

/* A server, namespace, table or region. */
typedef struct rq__cluster_row {
    rq_slice name;     /* of a region: its table and start key, as in the region's name */
    rq_slice encoded;  /* of a region */
    const char *state; /* of a table: "enabled", "disabled", "changing"; else "" */
    size_t server;     /* of a region: its server's index in rq__cluster.servers */
    uint64_t regions, open, in_transition;
    uint64_t stores, files, bytes, memstore_bytes;
    uint64_t reads, writes;       /* requests since the region was opened */
    double reads_s, writes_s;     /* requests a second (rq__cluster_rates) */
    uint64_t compacting;          /* regions */
    uint64_t requests_s;          /* of a server: as it says itself */
    uint64_t heap_used, heap_max; /* of a server, in bytes */
    int64_t start_ms;             /* of a server, since 1970 */
} rq__cluster_row;

typedef struct rq__cluster_rows {
    rq__cluster_row *list; /* by name */
    size_t count;
} rq__cluster_rows;

/* The state at one moment. */
typedef struct rq__cluster {
    rq_arena arena;           /* the rows and what they point to, but for: */
    rq_cluster_status status; /* of a cluster; names point into it */
    int64_t taken_ns;         /* monotonic */
    bool is_live;
    bool was_open;        /* of a folder: not stopped cleanly */
    uint64_t log_records; /* of a folder */
    uint64_t problems;    /* of a folder: met while it was read */
    rq__cluster_rows servers, namespaces, tables, regions;
    rq__cluster_row total;
} rq__cluster;

typedef struct rq__cluster_link {
    const rq__cluster_where *where;
    rq_client *client;
    struct rq_vfs *vfs;
} rq__cluster_link;

/* Blocking. rq__cluster_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__cluster_open(const rq__cluster_where *w, rq__cluster_link *ret, rq_error *why);
void rq__cluster_close(rq__cluster_link *l);
/* Blocking. rq__cluster_clear follows, after an error too. */
RQ_NODISCARD
rq_err rq__cluster_look(rq__cluster_link *l, rq__cluster *ret, rq_error *why);
void rq__cluster_clear(rq__cluster *c);
/* Prints the error as one line on standard error. */
void rq__cluster_print_failure(const rq__cluster_where *w, const char *command, rq_err rc,
                               const rq_error *why);
/* Computes requests per second since an earlier look. A region that is new, or whose counters
 * restarted, has a rate of 0. */
void rq__cluster_rates(rq__cluster *now, const rq__cluster *before);

/* "950", "12.3k", "4.5M"; `bytes`: "12.3K" of 1024. Returns `ret`. */
#define RQ__AMOUNT_SIZE 32
const char *rq__amount(double n, bool bytes, char ret[RQ__AMOUNT_SIZE]);
#define RQ__AMOUNT(n, bytes) rq__amount((double)(n), (bytes), (char[RQ__AMOUNT_SIZE]){0})

#endif
