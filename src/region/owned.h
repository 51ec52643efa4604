/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of a cluster: who owns them. A region's manifest is an object on shared storage, and
 * the owner's name is in it, so a region is never open for writing on two servers, even if
 * masters err.
 *
 *  1. Open: the manifest is swapped to owner = this server, with a higher open number, and this
 *     server's log in its list. From then on the former owner's flushes and compactions fail.
 *     An opening is refused (RQ_E_CONFLICT; the caller tries again) until the former owner has closed the
 *     region or is fenced.
 *  2. Then the listed logs of other servers are replayed, and the lease of a fenced owner runs out,
 *     before the region is open.
 *  3. Each commit of the region swaps the manifest. A conflict means that another server owns it:
 *     the region has failed for good. Files of an unknown outcome stay, because another server may
 *     have named them.
 *  4. Once all replayed edits are in files, the logs of other servers leave the list.
 *  5. Close: a flush; then a swap to owner = none, without logs.
 *  6. The key that marks a log as needed (wal/head.h) is put before the manifest names the log, and deleted
 *     after the manifest has dropped it. If the deletion fails, the log is kept.
 *  7. A server that removes the files of a closed region, or changes its families, swaps the manifest first,
 *     as an opening would, and is refused under the same conditions: so a deposed master does no harm to an
 *     open region. While files are removed, the owner is the server that removes them (claim.c).
 *  8. A truncation of a closed region is one swap: it moves the manifest's families to `removed`, and raises the number
 *     of truncations. Then the files of `removed` are archived, and another swap drops their names; an opening does
 *     both, too, if the server that truncated has ended in between. The families are new ones from then on, so
 *     edits in listed logs are not replayed.
 *
 * Folders are not listed: the manifest names the region's files. Other files may be about to be
 * committed by another server, and are not touched.
 */
#ifndef RQ_REGION_OWNED_H
#define RQ_REGION_OWNED_H

#include "region/region_priv.h"
#include "wal/head.h"

/* The cluster's part of an engine. Const. */
typedef struct rq__cluster {
    rq_shared *shared;
    char server_name[RQ_SHARED_NAME_MAX + 1];
} rq__cluster;

typedef struct rq__owned_log {
    char name[RQ_SHARED_NAME_MAX + 1];
    uint64_t opening, from; /* as in the manifest */
} rq__owned_log;

/* The cluster's part of a region. */
typedef struct rq__owned {
    uint64_t open_number;
    uint64_t truncations;
    _Atomic int64_t last_stamp_ms; /* written with the token */
    uint64_t replayed_seqid;       /* highest sequence id of the replayed edits */
    uint64_t quiet_ns;             /* when the former owner's lease has run out; 0: it had none */
    rq__owned_log *logs;           /* commit gate; this server's is the last one */
    size_t log_count;
    bool closes; /* commit gate: the next swap gives the region up */
} rq__owned;

/* The name of the manifest's object. */
#define RQ__OWNED_NAME_SIZE (sizeof "region:" + RQ_ENCODED_NAME_LEN)
void rq__owned_name(const char *encoded, char ret[static RQ__OWNED_NAME_SIZE]);
/* Reads the manifest's object. RQ_E_NOT_FOUND. */
RQ_NODISCARD
rq_err rq__owned_read(const rq__cluster *c, const char *encoded, rq_arena *arena, rq__manifest *ret,
                      uint64_t *ret_generation, rq_error *why);
/* The manifest where this engine keeps it: an object of the cluster, or a file. */
RQ_NODISCARD
rq_err rq__manifest_read_any(const rq_engine *e, const char *encoded, rq_arena *arena,
                             rq__manifest *ret, uint64_t *ret_generation, rq_error *why);
/* Makes the manifest of a new region, without owner; an existing one stays. */
RQ_NODISCARD
rq_err rq__owned_create(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                        rq_error *why);
/* Rule 1. *ret: the manifest. */
RQ_NODISCARD
rq_err rq__owned_take(rq_region *r, rq_arena *arena, rq__manifest *ret, rq_error *why);
/* After a failed opening: gives the region and its logs up, if the storage can be reached. */
void rq__owned_give_back(rq_region *r);
/* Waits until the former owner's lease has run out. */
void rq__owned_wait_for_lease(const rq_region *r);
/* Completes a manifest that is to be committed. REQUIRES: commit gate. */
RQ_NODISCARD
rq_err rq__owned_fill(rq_region *r, rq_arena *arena, rq__manifest *m);
/* Rule 3. REQUIRES: commit gate. */
RQ_NODISCARD
rq_err rq__owned_swap(rq_region *r, const rq__manifest *m, rq_error *why);
/* Rule 4, after a flush: everything up to `seqid` is in files. REQUIRES: flush gate. */
void rq__owned_flushed(rq_region *r, uint64_t seqid);
/* Rule 5, after the flush. REQUIRES: commit gate. */
RQ_NODISCARD
rq_err rq__owned_release(rq_region *r, rq_error *why);
/* The timestamp, in ms, for a batch's cells without one: at least `now_ms`, and not below any that a
 * server gave to the region's cells earlier. Under the token. */
int64_t rq__owned_stamp(rq_region *r, int64_t now_ms);
/* Gives the region up without a flush, for a close with `abort`. If this server's log has edits of the region and has
 * not failed, marks the region failed instead: the server keeps running, so another one can open the region only after
 * this one is fenced. */
void rq__owned_abandon(rq_region *r);
void rq__owned_free(rq__owned *o);
/* Returns RQ_OK if no other server can acknowledge writes as `owner`: it is empty, this server, or a server
 * whose log has ended. Then for another server *ret_quiet_ns is the time, by this server's clock, at which
 * its lease has run out. RQ_E_STATE: the region is open at `owner`. */
RQ_NODISCARD
rq_err rq__owned_check_owner(const rq__cluster *c, rq_slice owner, uint64_t *ret_quiet_ns,
                             rq_error *why);
/* Swaps the manifest to take the region for this server, in an opening or a claim. */
RQ_NODISCARD
rq_err rq__owned_swap_taking(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                             uint64_t *generation, rq_error *why);
/* Swaps the manifest of a region that is closed and stays closed. */
RQ_NODISCARD
rq_err rq__owned_swap_closed(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                             uint64_t *generation, rq_error *why);

/* --- claim.c: closed regions (rule 7) ----------------------------------------------------------- */
typedef struct rq__claimed {
    bool there; /* it has a manifest */
    rq__manifest manifest;
    uint64_t generation;
} rq__claimed;

/* Makes this server the owner of a closed region, so that no other server opens it until its manifest is
 * removed. RQ_E_STATE: a server has the region open. */
RQ_NODISCARD
rq_err rq__owned_claim(rq_engine *e, const char *encoded, rq_arena *arena, rq__claimed *ret,
                       rq_error *why);
/* Removes the manifest; logs are not needed for the region any more. */
RQ_NODISCARD
rq_err rq__owned_remove(const rq_engine *e, const char *encoded, const rq__claimed *claimed,
                        rq_error *why);
/* Archives the files of the families that a truncation has removed. They are in no other manifest and are never named
 * again, so any server may do this, at any time. */
RQ_NODISCARD
rq_err rq__owned_archive_removed(rq_vfs *vfs, const rq_region_info *info, const rq__manifest *m,
                                 rq_error *why);
/* Removes the family from the manifest, if it is there. */
RQ_NODISCARD
rq_err rq__owned_drop_family(rq_engine *e, const char *encoded, rq_arena *arena, rq_slice family,
                             rq_error *why);
/* Reads the manifest of a closed region. RQ_E_STATE: the region was not closed in order. */
RQ_NODISCARD
rq_err rq__owned_read_closed(const rq__cluster *c, const char *encoded, rq_arena *arena,
                             rq__manifest *ret, rq_error *why);

#endif
