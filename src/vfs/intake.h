/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders from which a client may have files taken in by their paths (bulk load): the staging
 * folder of the data folder, and what the operator lists.
 *
 * 1. The text of a path decides whether it lies below such a folder. Nothing else is looked up, so
 *    a refusal is the same whether or not there is a file, and does not wait for foreign storage.
 * 2. A file is opened with RQ_OPEN_BENEATH, relative to the folder: no symbolic link leads out.
 * 3. What lies in a server's data folder (.rorqual or hbase.version stands there) is refused even
 *    below a listed folder; the staging folder of one's own is the exception.
 */
#ifndef RQ_VFS_INTAKE_H
#define RQ_VFS_INTAKE_H

#include "vfs/vfs.h"

#define RQ_INTAKE_STAGING "staging"

typedef struct rq_intake rq_intake;

/* `list`: absolute paths with commas between them. `own`: the data folder's storage, `own_path` its
 * path without symbolic links; both outlive it. RQ_E_CONFIG: a path that is not absolute, or in the
 * data folder. A listed folder need not exist. */
RQ_NODISCARD
rq_err rq_intake_new(const char *list, rq_vfs *own, const char *own_path, rq_intake **ret,
                     rq_error *why);
/* NULL is fine. */
void rq_intake_free(rq_intake *t);

/* The storages that one request needs, each opened once. One thread. */
typedef struct rq_intake_visit {
    const rq_intake *intake;
    rq_arena *arena;
    struct rq_intake_place *places;
} rq_intake_visit;

RQ_NODISCARD
rq_err rq_intake_begin(const rq_intake *t, rq_arena *arena, rq_intake_visit *ret);
/* Blocking. Storage and path in it, to be opened with RQ_OPEN_BENEATH; both valid until the visit
 * ends. RQ_E_DO_NOT_RETRY: the path lies below none of the folders. */
RQ_NODISCARD
rq_err rq_intake_find(rq_intake_visit *v, const char *path, rq_vfs **ret, const char **ret_path,
                      rq_error *why);
void rq_intake_end(rq_intake_visit *v);

#endif
