/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files (vfs.h) in CephFS by libcephfs, without a mount. Part of the plug-in of shared_rados.h.
 *
 * Names, writes, syncs and reads in sequence go through libcephfs. Other reads of files that are opened with
 * RQ_OPEN_RANDOM go to the objects of the data pool, past libcephfs and the metadata server
 * (cephfs_direct.c).
 *
 * Calls wait while Ceph does not answer. When a client was silent for session_timeout (60 s by default), others get the files
 * that it had open. The metadata server evicts it then, or after session_autoclose (300 s), or when another process says so
 * (rq_vfs_evict); an evicted client never reads or writes again, and its process has to end.
 */
#ifndef RQ_VFS_CEPHFS_H
#define RQ_VFS_CEPHFS_H

#include "vfs/shared.h"
#include "vfs/vfs.h"

typedef struct rq_cephfs_options {
    const char *conf;        /* path of ceph.conf */
    const char *user;        /* "client.admin" */
    const char *file_system; /* NULL: Ceph's default one */
    const char *root;        /* absolute path of the folder in it */
    const char *client;      /* of this process alone, for rq_vfs_evict; NULL: it has no name */
    bool create;             /* the folder, if it is missing */
    unsigned folder_mode;    /* of new folders; new files get it without execute permission */
    /* Called once, on any thread, when this client was evicted. NULL: not called. */
    void (*lost)(void *ctx, const rq_error *why);
    void *lost_ctx;
} rq_cephfs_options;

/* The plug-in's second function. */
#define RQ_CEPHFS_ENTRY "rq__cephfs_new"
typedef rq_err rq_cephfs_entry(const char *version, const rq_cephfs_options *o, rq_shared *pool,
                               rq_vfs **ret, rq_error *why);

/* Opens the folder. `pool`: from rq_shared_rados_open of the same plug-in; its connection is used for direct reads, so
 * it is freed after the vfs. RQ_E_NOT_FOUND: the folder is missing. RQ_E_CONFIG: there is no such file system.
 * RQ_E_TIMEOUT: no metadata server answers. */
RQ_NODISCARD rq_err rq_cephfs_open(const char *plugin, const rq_cephfs_options *o, rq_shared *pool,
                                   rq_vfs **ret, rq_error *why);

#endif
