/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders from which a client may load files by path (bulk load): the staging folder of the
 * data folder, and the folders that the operator lists.
 *
 * 1. Only the text of a client's path decides whether it lies below such a folder. The path itself
 *    is not looked up first, so a refusal does not tell whether a file exists. (Symbolic links on
 *    the way to a listed folder are resolved: clients may name the folder by either path.)
 * 2. Files are opened with RQ_OPEN_BENEATH, relative to the folder: no symbolic link leads out.
 * 3. A file in any server's data folder (one with .rorqual or hbase.version) is refused, even below
 *    a listed folder, and even if a symbolic link leads into our own data folder. Our own staging folder is the
 *    exception.
 */
#ifndef RQ_VFS_INTAKE_H
#define RQ_VFS_INTAKE_H

#include "vfs/vfs.h"

#define RQ_INTAKE_STAGING "staging"

typedef struct rq_intake rq_intake;

/* `list`: absolute paths, comma-separated. `own`: the data folder's vfs; `own_path`: its path
 * without symbolic links. Both must outlive the intake. RQ_E_CONFIG: a path is not absolute, or
 * is in the data folder. A listed folder need not exist. */
RQ_NODISCARD
rq_err rq_intake_new(const char *list, rq_vfs *own, const char *own_path, rq_intake **ret,
                     rq_error *why);
/* For bulk loads announced by replication: `list` has data folders of other clusters (their
 * hbase.rootdir), so rule 3 does not apply to them. */
RQ_NODISCARD
rq_err rq_intake_new_replicated(const char *list, rq_vfs *own, const char *own_path,
                                rq_intake **ret, rq_error *why);
/* NULL is fine. */
void rq_intake_free(rq_intake *t);

/* The vfs objects that one request needs, each opened once. Used by one thread. */
typedef struct rq_intake_visit {
    const rq_intake *intake;
    rq_arena *arena;
    struct rq_intake_place *places;
} rq_intake_visit;

RQ_NODISCARD
rq_err rq_intake_begin(const rq_intake *t, rq_arena *arena, rq_intake_visit *ret);
/* Returns the vfs and the path inside it, to be opened with RQ_OPEN_BENEATH; both are valid
 * until the visit ends. Blocks. RQ_E_DO_NOT_RETRY: the path is below none of the folders, or in the
 * data folder of a server. */
RQ_NODISCARD
rq_err rq_intake_find(rq_intake_visit *v, const char *path, rq_vfs **ret, const char **ret_path,
                      rq_error *why);
void rq_intake_end(rq_intake_visit *v);

#endif
