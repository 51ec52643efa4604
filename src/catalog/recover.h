/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repairs a damaged folder so that a server starts on it and serves the undamaged data. Damaged
 * files are moved to .rorqual/aside/<n>/ and reported. Nothing is deleted.
 *
 *   damaged                                 repair
 *   version, hbase.version, hbase.id        written again
 *   a table's descriptor                    written again from the families' folders, with defaults
 *   manifests and store files, also of      region/set_aside.h
 *   hbase:meta and the procedure store
 *   the log                                 copied aside; the readable records are replayed
 *   a region without a row in hbase:meta    a row is made from its .regioninfo, unless other
 *                                           regions cover its range, because it was split or
 *                                           merged. Then it is noted as their parent if they refer
 *                                           to its files; else it stays if a clone or a snapshot
 *                                           needs its files, and is moved aside if not
 *
 * During the recovery the folder has RQ_ROOT_UNFINISHED, so no server starts between two steps.
 * An interrupted recovery can be run again: each step looks at the state of the folder.
 */
#ifndef RQ_CATALOG_RECOVER_H
#define RQ_CATALOG_RECOVER_H

#include "base/env.h"
#include "vfs/vfs.h"

typedef struct rq_recover_options {
    bool act; /* false: only reports what would be done */
    void (*report)(void *ctx, const char *what, const char *place, const char *text);
    void *ctx;
} rq_recover_options;

typedef struct rq_recover_result {
    uint64_t found;      /* repairs made, or needed */
    char aside_text[64]; /* where things were moved; empty: nothing was */
} rq_recover_result;

/* Blocks. Damage in the WAL is logged to env->log. RQ_E_LOCKED: a server runs. RQ_E_STATE: the
 * folder is an unfinished copy, or an HBase used it last. RQ_E_NOT_FOUND: it is not a data folder, or no
 * table is left in it; nothing was written. */
RQ_NODISCARD
rq_err rq_recover(const rq_env *env, const rq_recover_options *o, rq_recover_result *ret,
                  rq_error *why);

#endif
