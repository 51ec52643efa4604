/* SPDX-License-Identifier: Apache-2.0 */
/* Ships a log to one peer, on a thread of its own. */
#ifndef RQ_REPLICATION_SOURCE_H
#define RQ_REPLICATION_SOURCE_H

#include "replication/log_reader.h"
#include "replication/replication.h"

typedef struct rq__source rq__source;

/* What all sources share. */
typedef struct rq__source_settings {
    const rq_env *env;
    const char *cluster_id; /* of this cluster */
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

/* The settings that replication.h's options give; without those of bulk loads. */
void rq__source_configure(const rq_config *config, rq__source_settings *ret);

/* The log of a source, and where its peer and its position are kept. Functions are called by the source's thread, and may
 * block. */
typedef struct rq__queue {
    rq__log log;
    /* Whether the peer is enabled and unchanged. */
    bool (*is_current)(void *ctx, const char *id, uint64_t version);
    /* The peer has everything before `position`. RQ_E_NOT_FOUND: it was removed, or another server has the queue. */
    rq_err (*advance)(void *ctx, const char *id, rq_lsn position, rq_error *why);
    /* The log does not reach back to the position. RQ_E_NOT_FOUND: the peer was removed or changed. */
    rq_err (*give_up)(void *ctx, const char *id, uint64_t version, rq_error *why);
    /* Whether the table (and family, if given) exists in this cluster. NULL: that is not known; no edits are left out for lack
     * of a table. */
    bool (*exists)(void *ctx, rq_slice table, rq_slice family);
    void *ctx;
} rq__queue;

/* Starts the thread. The settings and what the queue borrows outlive it; the peer is copied. */
RQ_NODISCARD
rq_err rq__source_new(const rq__source_settings *s, const rq__queue *queue,
                      const rq_peer_info *peer, rq__source **ret, rq_error *why);
/* Asks the thread to end; does not block. */
void rq__source_stop(rq__source *s);
/* As rq__source_stop, and waits for the thread's end. The position is written. */
void rq__source_end(rq__source *s);
/* Ends the thread, and frees the source. NULL is fine. */
void rq__source_free(rq__source *s);

/* True when the peer has received an ended log completely; the thread then ends. */
bool rq__source_is_done(const rq__source *s);
const char *rq__source_id(const rq__source *s);
uint64_t rq__source_version(const rq__source *s); /* rq_peer_info.version it was started with */
/* Fills in what a running source knows. */
RQ_NODISCARD
rq_err rq__source_status(rq__source *s, rq_arena *arena, rq_source_status *ret);

#endif
