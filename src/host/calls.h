/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which a master reaches the servers that have regions open. One table of functions, two
 * forms: in a standalone server they are function calls of its own host (rq_host_calls); between
 * processes they are messages.
 *
 * A call is about one region on one server, or about a server. It is sent once and reports exactly once, on any
 * thread: before `send` returns (standalone), or later, when the server has answered, or is known
 * to be dead. After its report a call belongs to the caller again. Calls may be repeated: work that
 * is done already is reported as done.
 */
#ifndef RQ_HOST_CALLS_H
#define RQ_HOST_CALLS_H

#include "host/host.h"
#include "region/region_files.h"

/* HBASE: ExecuteProcedures with OpenRegion, CloseRegion and FlushRegion; WarmupRegion, GetRegionInfo,
 * CompactRegion. */
typedef enum rq_region_call_kind {
    RQ_CALL_OPEN,
    RQ_CALL_CLOSE,
    RQ_CALL_WARM, /* a hint: prepares an opening */
    RQ_CALL_FLUSH,
    RQ_CALL_LOOK, /* asks whether the region may be split and merged, and for its split row */
    RQ_CALL_COMPACT,
    RQ_CALL_DROP_REFERENCES, /* to files of its parents, which a compaction has replaced */
    RQ_CALL_LIST_FILES,      /* for a snapshot; the caller holds archive/ */
    RQ_CALL_LIST_MOB_WRITES, /* the MOB files that the server is writing; of no region */
    RQ_CALL_KINDS
} rq_region_call_kind;

typedef struct rq_region_call {
    /* --- the caller's; borrowed until the report */
    const rq_server_name *server;
    const rq_region_info *info; /* NULL: LIST_MOB_WRITES */
    rq_table_schema *schema;    /* OPEN, WARM */
    /* CLOSE: without a flush, because the region has no edits to keep, or the log has them. */
    bool abandon;
    const rq_server_name *moves_to; /* CLOSE: the region will be open there; NULL: not known */
    const rq_slice *families;       /* FLUSH: none means all; COMPACT: none means none */
    size_t family_count;
    bool flush;      /* LIST_FILES, LOOK: flush the region first, if it is needed */
    rq_arena *arena; /* LOOK, LIST_FILES, LIST_MOB_WRITES: for the answer */
    /* --- the answer */
    rq_err rc;
    rq_error *why;              /* malloc'ed; NULL: none, or memory was exhausted */
    bool unsent;                /* not sent for lack of memory: the region is as it was */
    int64_t open_seqnum;        /* OPEN */
    bool splittable, mergeable; /* LOOK */
    rq_slice split_row;         /* LOOK with `flush`; empty: none */
    rq_region_files files;      /* LIST_FILES */
    rq_slice *mob_writes;       /* LIST_MOB_WRITES: names of files, unordered */
    size_t mob_write_count;
    /* --- the caller's */
    void (*done)(struct rq_region_call *call);
    void *ctx;
} rq_region_call;

/* Figures of a server as a sink of replication. HBASE: ReplicationLoadSink. */
typedef struct rq_sink_load {
    uint64_t entries;
    uint64_t age_ms; /* of the last applied entry at the time it was applied; 0: none was */
    int64_t started_ms, applied_ms; /* until an entry is applied, both are the start's */
} rq_sink_load;

/* Figures of a source of replication: a server ships a log to a peer. HBASE: ReplicationLoadSource. */
typedef struct rq_source_load {
    const char *peer;
    const char *queue;     /* PEER; for the log of a server that has ended: PEER-SERVERNAME */
    uint64_t age_ms;       /* of the last shipped write, when it was applied */
    uint32_t log_queue;    /* WAL files that it has not shipped */
    int64_t shipped_at_ms; /* time of the last shipped write */
    int64_t next_ms; /* time of the first write that is not shipped, or of the last shipped one */
    uint64_t lag_ms;
    bool recovered; /* the log is of a server that has ended */
    bool running, has_edits;
    uint64_t edits_read, shipped;
} rq_source_load;

/* Figures of a server, from its last RegionServerReport. */
typedef struct rq_server_load {
    uint64_t requests_per_second, requests, reads, writes;
    uint64_t begin_ms, end_ms; /* the period of the rate, by the server's clock */
    uint32_t used_heap_mb, max_heap_mb;
    uint32_t info_port; /* as in the message: UINT32_MAX without pages */
    bool has_sink;
    rq_sink_load sink;
} rq_server_load;

typedef struct rq_region_calls {
    /* Sends calls of one kind. In a standalone server it carries them out, and blocks until they have reported. */
    void (*send)(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count);
    /* The last report about an open region; false: there is none. Never blocks. */
    bool (*load)(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret);
    /* The last report of a server; false: there is none. Never blocks. NULL: this process is the only server. */
    bool (*server_load)(void *ctx, const rq_server_name *server, rq_server_load *ret);
    /* The sources of its last report; strings in the arena. Never blocks. NULL: as `server_load`. */
    rq_err (*server_sources)(void *ctx, const rq_server_name *server, rq_arena *arena,
                             rq_source_load **ret, size_t *ret_count);
    /* The server on which to open a region, referenced; NULL: there is none now. In a cluster it may read
     * storage, and wait for a fence. `last`: if no server has the region open, the server at the address of `last` is
     * preferred; NULL: no preference. */
    const rq_server_name *(*place)(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last);
    /* The servers that are up. The caller has a reference on each name; the list is in the arena. Never blocks. NULL:
     * this process is the only server. */
    rq_err (*servers)(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count);
    /* The dead servers, without those at whose address a later server is up; otherwise as `servers`. */
    rq_err (*dead)(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count);
    /* Removes a server from the list of dead servers for good; false: the list does not have it. Never blocks. NULL: as
     * `servers`. */
    bool (*forget_dead)(void *ctx, const rq_server_name *server);
    /* False: the server has ended for good; its outstanding calls have failed, or will fail without an answer. Never
     * blocks. NULL: this process is the only server. */
    bool (*is_up)(void *ctx, const rq_server_name *server);
    /* Decommissions the server, so that it gets no further regions, or ends that. The next master knows of it, too. A
     * server that is not up is left as it is. Blocks. NULL: this process is the only server; likewise for the next three. */
    rq_err (*drain)(void *ctx, const rq_server_name *server, bool drains, rq_error *why);
    bool (*is_draining)(void *ctx, const rq_server_name *server); /* never blocks */
    /* Those that drain, up or not, referenced for the caller, in the arena. */
    rq_err (*draining)(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count);
    /* Whether the server is up, is not decommissioned and is not about to end. Never blocks. */
    bool (*takes_regions)(void *ctx, const rq_server_name *server);
    /* Makes every outstanding call report RQ_E_SERVER_STOPPED; whether its server has carried it out is unknown. Calls
     * that are sent later report the same error before `send` returns. After this returns no outstanding call reports
     * any more. May be called twice. In a standalone server no call is ever outstanding, and calls still work. */
    void (*stop)(void *ctx);
    void *ctx;
} rq_region_calls;

/* Ends a call. `why` may be NULL. */
void rq_region_call_report(rq_region_call *call, rq_err rc, const rq_error *why);

/* The table of calls for a master in the host's own process; valid as long as the host. */
rq_region_calls rq_host_calls(rq_host *h);

#endif
