/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the client: servers with their connections, the registry's answer, the
 * region map, the list of operations that wait for their next attempt. */
#ifndef RQ_CLIENT_CLIENT_PRIV_H
#define RQ_CLIENT_CLIENT_PRIV_H

#include "client/client.h"
#include "client/conn.h"

#include "base/arena.h"
#include "base/fnv.h"
#include "base/pb.h"
#include "net/stream.h"

#define RQ__HOST_MAX 256
#define RQ__META_REGION "hbase:meta,,1"
#define RQ__CODEC_WITH_TAGS "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"
/* HBASE: HConstants.SYSTEMTABLE_QOS; meta reads are never queued behind data. */
#define RQ__PRIORITY_META 200
#define RQ__PRIORITY_CLOSE 200 /* HBASE: HIGH_QOS, for calls that end a scanner */

/* How long operations wait for the registry's answer. */
#define RQ__REGISTRY_TIMEOUT_NS 2000000000

typedef struct rq__address {
    char host[RQ__HOST_MAX];
    uint16_t port;
} rq__address;

typedef struct rq__server {
    rq__address at;
    rq__conn **lanes; /* made when first used */
    rq__conn *admin;  /* AdminService; likewise */
    size_t scanners;  /* open scanners on it; they keep its index */
    bool is_named;    /* a map has its index; used by rq__servers_forget only */
} rq__server;         /* lanes NULL: the index is free */

/* The registry's answer. */
typedef struct rq__registry_answer {
    rq__address meta;
    rq__address master;
    char cluster_id[64];
} rq__registry_answer;

/* Asking the registry (registry.c). */
typedef struct rq__registry {
    bool asking;
    rq_err rc; /* result of the last time */
    rq_error why;
    rq__registry_answer found; /* the parts found so far */
    size_t count, left;        /* addresses; those that were not asked yet */
    int64_t until_ns;
    bool is_trying; /* the address at hand, `at`, has not answered yet */
    rq__address at;
    rq_err failed; /* of the addresses asked before */
    rq_error failed_why;
    rq_loop_timer timer; /* the time limit of this address, or the turn of the next one */
    rq_stream *stream;   /* to ZooKeeper, or for the preamble "Regist" */
    bool is_open;        /* the stream is connected … */
    bool has_session;    /* … and ZooKeeper has answered */
    uint32_t xid;        /* of the last request to ZooKeeper */
    rq__conn *conn;      /* ClientMetaService; stopped when it is not asking */
} rq__registry;

/* A replica of a region; the region itself is rq__region. */
typedef struct rq__replica {
    rq_slice specifier;
    uint32_t server;
    uint16_t id;
} rq__replica;

#define RQ__NO_SERVER                                                                              \
    UINT32_MAX /* of a region: it is nowhere at present, but a replica of it is somewhere */

typedef struct rq__region {
    rq_slice start;
    rq_slice end;
    rq_slice specifier; /* field 1 of a request: rq__put_region */
    int64_t start_code; /* of the server; 0: unknown */
    uint32_t server;
    uint16_t replica_count;
    rq__replica *replicas; /* in the map's arena */
} rq__region;

struct rq_client_table {
    rq_client *client;
    rq_client_table *next, *prev;   /* in the list of all tables */
    rq_client_table *same_bucket;   /* this and the next three belong to table.c */
    rq_client_table *newer, *older; /* tables with maps, by last use */
    bool is_listed;                 /* in the list by last use */
    bool keeps_map;
    char *name;
    uint32_t priority; /* of calls that have none */
    rq_arena arena;    /* of the map in use */
    rq__region *regions;
    size_t region_count;
    uint64_t version; /* of the map */
    /* The map that is being read. */
    bool refreshing;
    bool awaits_registry; /* begins to read when the registry has answered */
    rq_err refresh_err;
    int64_t refresh_begun_ns; /* start of the last reading, after the registry's answer */
    int64_t refreshed_ns;     /* end of the last reading */
    int64_t refresh_took_ns;  /* duration of the last reading; 0: it failed */
    bool has_rows;            /* hbase:meta has regions of the table, perhaps none with a server */
    bool next_has_rows;
    char *refresh_text; /* NULL: nothing is known */
    rq_arena next_arena;
    rq__region *next_regions;
    size_t next_count;
    size_t next_cap;
    rq_buf request;
    uint64_t scanner;
    uint64_t sequence;
};

/* A connection of a service that few calls use (call.c). */
typedef struct rq__other {
    char service[32];
    rq__address at;
    rq__conn *conn;
} rq__other;

struct rq_client {
    rq_client_options options;
    rq_loops *loops;
    rq_loop *loop; /* the only one of them */
    int64_t timeout_ns;
    rq__registry registry;
    rq__registry_answer found;
    /* Modulo the number of addresses: the address that is asked next, which is the one that answered last. */
    size_t registry_at;
    bool meta_lost; /* the last read of meta failed: the next one asks the registry first */
    bool
        master_lost; /* the last blocking call of the master failed: the next one asks the registry first */
    rq__conn *meta;
    rq__conn *master;
    rq__other others[4]; /* in no order; the oldest is dropped */
    size_t next_other;
    rq__server *servers;
    size_t server_count; /* entries of `servers`, free ones included */
    size_t free_servers;
    size_t new_servers;     /* added since servers were last forgotten */
    bool forgets_servers;   /* the next poll forgets servers */
    uint32_t *server_slots; /* index + 1, by hash of the address; 0: empty */
    size_t slot_count;
    rq_client_table *tables;
    size_t table_count;
    rq_client_table **buckets; /* by name */
    size_t bucket_count;
    rq_client_table *newest, *oldest; /* with maps */
    size_t map_count;
    rq_op *waiting;           /* in no order */
    struct rq__ahead *aheads; /* requests of scans that have ended */
    bool stopped;
    uint64_t nonce_group;
    uint64_t next_nonce; /* of calls of the master */
    int64_t timeouts_checked_ns;
    rq__conn **all; /* every connection, for time-outs */
    size_t all_count;
    size_t all_cap;
    bool has_retired;          /* `all` has connections that were retired */
    uint64_t dropped_connects; /* connects and bytes of connections that were dropped */
    rq_client_traffic dropped;
};

/* registry.c */
/* Begins to ask; rq__map_registry_answered is called at the end. On an error nothing was begun.
 * REQUIRES: not asking. */
RQ_NODISCARD
rq_err rq__registry_ask(rq_client *c, int64_t timeout_ns, rq_error *why);
/* Ends the asking with RQ_E_CLOSED. */
void rq__registry_stop(rq_client *c);
void rq__registry_free(rq_client *c);
bool rq__address_parse(rq_slice text, rq__address *ret);

/* client.c */
/* Lets a later poll drop the connection, once it has no call in flight. NULL is fine. */
void rq__client_retire_conn(rq_client *c, rq__conn *conn);
RQ_NODISCARD
rq_err rq__client_conn(rq_client *c, const rq__address *at, const char *service, const char *codec,
                       rq__conn **ret); /* codec NULL: KeyValueCodec */
/* Frees the connection; one with calls in flight stays until the client is freed. NULL is fine. REQUIRES: not
 * in a callback. */
void rq__client_drop_conn(rq_client *c, rq__conn *conn);
/* Blocking: one call; copies the response's message. */
RQ_NODISCARD
rq_err rq__client_call(rq_client *c, rq__conn *conn, const char *method, rq_slice message,
                       rq_buf *ret, rq_error *why);

/* The pause after so many failed attempts. HBASE: HConstants.RETRY_BACKOFF */
int64_t rq__client_pause_ns(const rq_client *c, unsigned attempts);
/* Repetitions of a blocking call. */
typedef struct rq__repeat {
    unsigned attempts; /* that have failed */
    unsigned max;      /* number of repetitions */
    int64_t until_ns;
} rq__repeat;
/* Blocking, after an attempt that ended with `rc`: false if there is to be no other one. Otherwise waits for a pause. */
bool rq__client_again(rq_client *c, rq__repeat *repeat, rq_err rc, bool retry);

/* admin.c */
/* The connection to the master. If it was lost, the registry is asked, because another server may be master now.
 * `waits`: blocks until the registry has answered; otherwise the connection is to the master known so far. */
RQ_NODISCARD
rq_err rq__client_master(rq_client *c, bool waits, rq__conn **ret);
void rq__failure_of(const rq_reply *r, rq_client_failure *ret);
/* As rq_client_master, with the failure as text. */
RQ_NODISCARD
rq_err rq__client_ask(rq_client *c, const char *method, rq_slice message, rq_buf *ret,
                      rq_error *why);

static inline size_t rq__text_hash(const char *text)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A, rq_slice_cstr(text));
    return (size_t)(h ^ h >> 32);
}

/* servers.c */
/* The index of the server with this address; adds it if it is new. The index is valid until the next poll, and
 * longer while a map or an open scanner has it. */
RQ_NODISCARD
rq_err rq__client_server(rq_client *c, const rq__address *at, uint32_t *ret);
RQ_NODISCARD
rq_err rq__client_lane(rq_client *c, uint32_t server, unsigned lane, rq__conn **ret);
size_t rq__servers_count(const rq_client *c);
/* Forgets the servers whose index is in no map and no open scanner. REQUIRES: not in a callback. */
void rq__servers_forget(rq_client *c);
void rq__servers_free(rq_client *c);

/* table.c */
void rq__tables_free(rq_client *c);
/* The table's map was used: it becomes the last one to be dropped. */
void rq__map_used(rq_client_table *t);
/* A new map is in place; may drop the map of another table. */
void rq__map_replaced(rq_client_table *t);

/* region_map.c */
/* Why the last reading of the table's regions failed; "": unknown. */
const char *rq__refresh_text(const rq_client_table *t);
/* The error for a table whose map has no region. It is temporary if hbase:meta has regions without a server, which are
 * being split, or assigned after their server's end. HBASE: ConnectionImplementation.locateRegionInMeta. */
rq_err rq__map_empty_error(const rq_client_table *t);
const rq__region *rq__map_locate(const rq_client_table *t, rq_slice row);
/* The region before the one that begins at `start`; `start` empty: the last region. */
const rq__region *rq__map_locate_before(const rq_client_table *t, rq_slice start);
/* The server and specifier of the region's replica `id`; 0: of the region itself. False: it is on no server. */
bool rq__map_replica(const rq__region *r, uint16_t id, uint32_t *ret_server,
                     rq_slice *ret_specifier);
/* Starts to reload the map, unless it is being loaded. */
void rq__map_refresh(rq_client_table *t);
/* A region has no server, and its replicas answer instead: reads the map again, but not for every such read. */
void rq__map_lacks_server(rq_client_table *t);
/* Called when the registry has answered or failed; the result is in c->registry. */
void rq__map_registry_answered(rq_client *c);

/* ahead.c */
void rq__aheads_free(rq_client *c);

/* operation.c */
/* Starts the next attempt of operations whose pause is over; returns when the next one is due
 * (INT64_MAX: none). */
int64_t rq__ops_wake(rq_client *c, int64_t now_ns);
int64_t rq__ops_due(const rq_client *c);
/* The table's map was read, or could not be: operations that wait for it continue. */
void rq__ops_map_known(rq_client_table *t);
/* Ends the operations that wait for their next attempt. */
void rq__ops_stop(rq_client *c);

#endif
