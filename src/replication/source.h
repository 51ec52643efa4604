/* SPDX-License-Identifier: Apache-2.0 */
/* Ships the log to one peer, on a thread of its own. */
#ifndef RQ_REPLICATION_SOURCE_H
#define RQ_REPLICATION_SOURCE_H

#include "replication/replication.h"

typedef struct rq__source rq__source;

/* What all sources share. */
typedef struct rq__source_settings {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;
    uint64_t batch_bytes;
    uint64_t batch_entries;
    uint64_t pause_ms;   /* pause before the first repetition; the n-th pause is n times as long */
    uint64_t pauses_max; /* the longest pause is pauses_max × pause_ms */
    uint32_t timeout_ms; /* of a call */
    uint64_t log_max;    /* bytes kept for a peer; 0: no limit */
    bool drops_tables, drops_families;
    /* For bulk loads, as in rq__selection; NULL: they are not shipped. */
    const char *cluster;
    const char *data_path;
} rq__source_settings;

/* Starts the thread. The settings outlive it; the peer is copied. */
RQ_NODISCARD
rq_err rq__source_new(const rq__source_settings *s, const rq_peer_info *peer, rq__source **ret,
                      rq_error *why);
/* Asks the thread to end; does not block. */
void rq__source_stop(rq__source *s);
/* Waits for the thread's end and frees the source. The position is written. NULL is fine. */
void rq__source_free(rq__source *s);

const char *rq__source_id(const rq__source *s);
uint64_t rq__source_version(const rq__source *s); /* rq_peer_info.version it was started with */
/* Fills in what a running source knows. */
RQ_NODISCARD
rq_err rq__source_status(rq__source *s, rq_arena *arena, rq_source_status *ret);

#endif
