/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of opening and closing a region (life.c). On the thread that opens or closes it; no other uses the
 * region then. */
#ifndef RQ_REGION_OPENING_H
#define RQ_REGION_OPENING_H

#include "region/manifest.h"
#include "region/region_priv.h"

/* rq__region_store.flushed of a family that is missing in the manifest: it was added by an alter. Records in
 * the log under its name belong to a removed family of the same name, and are not replayed. */
#define RQ__FLUSHED_OF_NEW_FAMILY UINT64_MAX

/* Opens the store of the schema's i-th family. Moves leftovers of a crash aside. */
RQ_NODISCARD
rq_err rq__open_store(rq_region *r, size_t i, const rq__manifest *m, bool has_manifest,
                      rq_arena *arena, rq_error *why);
/* At a clean close: removes files of the store's folder that are not live, because failed flushes or
 * compactions could not remove them. */
RQ_NODISCARD
rq_err rq__sweep_store(rq_region *r, const rq__region_store *s, rq_arena *arena, rq_error *why);
/* RQ_E_CORRUPT: there is a folder of this family, which the descriptor does not name. */
RQ_NODISCARD
rq_err rq__check_family(const rq_region *r, rq_slice family, rq_error *why);
/* Links the cells of the log's records that are in no file into the memstores, and raises staged_seqid to
 * their numbers. REQUIRES: all stores are open. */
RQ_NODISCARD
rq_err rq__take_replay(rq_region *r, bool has_manifest, rq_error *why);

#endif
