/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared storage (shared.h) on RADOS, the object store of Ceph.
 *
 * The code is a plug-in, a shared object of its own that is linked with librados and libcephfs (cephfs.h): a
 * server that is not in a cluster has neither its code nor these libraries' threads, memory and packages. It stays loaded
 * once it was opened, because threads of librados may still execute it.
 */
#ifndef RQ_VFS_SHARED_RADOS_H
#define RQ_VFS_SHARED_RADOS_H

#include "vfs/shared.h"

typedef struct rq_rados_options {
    const char *conf;  /* path of ceph.conf */
    const char *user;  /* "client.admin" */
    const char *pool;  /* replicated, with min_size of 2 or more */
    const char *space; /* RADOS namespace: one for each cluster of servers in a pool */
    /* Time after which an operation without an answer fails with RQ_E_TIMEOUT and an unknown
     * outcome. 0: 2. */
    unsigned timeout_s;
} rq_rados_options;

/* The plug-in's first function; it refuses a program of another version. */
#define RQ_RADOS_ENTRY "rq__shared_rados_new"
typedef rq_err rq_shared_rados_entry(const char *version, const rq_rados_options *o,
                                     rq_executor *executor, rq_shared **ret, rq_error *why);

/* Where the plug-in is: beside the program, in ../lib/rorqual, or where a build has it. RQ_E_UNSUPPORTED: it is in none
 * of these, or the program is linked statically. */
RQ_NODISCARD rq_err rq_shared_rados_find(char *ret, size_t size, rq_error *why);

/* Opens the plug-in, connects and checks the pool. RQ_E_UNSUPPORTED: the plug-in or librados is
 * missing. RQ_E_CONFIG: the configuration or the pool is refused; RQ_E_TIMEOUT: no monitor
 * answers. */
RQ_NODISCARD rq_err rq_shared_rados_open(const char *plugin, const rq_rados_options *o,
                                         rq_executor *executor, rq_shared **ret, rq_error *why);

#endif
