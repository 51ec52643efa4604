/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a folder that does not start, or serves less than it could, because something on disk
 * is damaged: what is whole is served afterwards, what is not is moved to .rorqual/aside/<n>/ and
 * told. Nothing is deleted.
 *
 *   marks of the folder (version, hbase.version, hbase.id)    written anew a table's descriptor
 *   written anew from the families' folders, with
 *                                                             defaults
 *   manifests and store files, also those of hbase:meta       region/set_aside.h and the procedure
 *   store the log                                                   copied aside; what can be read
 *   of it is replayed regions that hbase:meta does not know                     its row is made
 *   from .regioninfo; one that another
 *                                                             region replaced becomes its parent,
 *                                                             if that refers to it, else it is
 *                                                             moved aside
 *
 * While it works the folder has RQ_ROOT_UNFINISHED, so no server starts between two steps. An
 * interrupted recovery is repeated: each step looks at what is there.
 */
#ifndef RQ_CATALOG_RECOVER_H
#define RQ_CATALOG_RECOVER_H

#include "base/env.h"
#include "vfs/vfs.h"

typedef struct rq_recover_options {
    bool act; /* else it is only told what would be done */
    void (*tell)(void *ctx, const char *what, const char *place, const char *text);
    void *ctx;
} rq_recover_options;

typedef struct rq_recover_result {
    uint64_t found;      /* repairs made, or needed */
    char aside_text[64]; /* where things were moved; empty: nothing was */
} rq_recover_result;

/* Blocks. env->log may be told of what the log cannot give. RQ_E_LOCKED: a server runs. RQ_E_STATE:
 * the folder is an unfinished copy, or an HBase used it last. */
RQ_NODISCARD
rq_err rq_recover(const rq_env *env, const rq_recover_options *o, rq_recover_result *ret,
                  rq_error *why);

#endif
