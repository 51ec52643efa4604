/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cluster is: the text of --cluster, and its storage. */
#ifndef RQ_SERVER_CLUSTER_H
#define RQ_SERVER_CLUSTER_H

#include "base/arena.h"
#include "catalog/root.h"
#include "vfs/shared.h"

typedef struct rq_cluster_place {
    const char *quorum; /* "HOST:PORT,HOST:PORT" */
    const char *root;   /* of HBase's znodes: "/hbase" */
    const char *store; /* as it was given: the folder that all servers see, or "rados:POOL/SPACE" */
    const char *secret; /* the file */
    /* Of a store in Ceph; `pool` is NULL otherwise. */
    const char *pool, *space;
    const char *files; /* the folder with HFiles that all servers see, or "cephfs:[NAME]/PATH" */
    const char *file_system; /* of CephFS: its name, or NULL for Ceph's default one */
    const char *files_root;  /* of CephFS: the folder in it. NULL: `files` is a mounted folder */
    const char *conf;        /* ceph.conf */
    const char *user;        /* "client.admin" */
} rq_cluster_place;

/* "zk=HOST:PORT[,HOST:PORT]...[/ROOT],store=DIR,secret=FILE", in any order. Without /ROOT, ret->root is `root`. The store
 * may also be "store=rados:POOL[/NAMESPACE],files=DIR[,conf=FILE][,user=client.NAME]", with
 * files=cephfs:[NAME]/PATH for a folder in CephFS that is not mounted. Strings are in the arena.
 * RQ_E_CONFIG with the reason. */
RQ_NODISCARD
rq_err rq__cluster_parse(const char *text, const char *root, rq_arena *arena, rq_cluster_place *ret,
                         rq_error *why);

/* The process that opens the storage. */
typedef struct rq_cluster_process {
    const char *host; /* of its ServerName, with the port */
    uint16_t port;
    /* Called once, on any thread, when the storage will never again do anything for this process. NULL: not called. */
    void (*lost)(void *ctx, const rq_error *why);
    void *lost_ctx;
} rq_cluster_process;

/* --- the storage ---------------------------------------------------------------------------------------
 * store=DIR: DIR/files has what HBase has in its root folder, DIR/shared logs and manifests. A store in Ceph: files=DIR
 * has the former, the pool the latter. */
typedef struct rq_cluster_store {
    rq_vfs *files, *shared_files; /* shared_files: NULL if the store is in Ceph */
    char *files_path; /* of `files`, without symbolic links; NULL: not mounted, no bulk loads */
    rq_shared *shared;
    rq_cluster_process process;
    int64_t start_code; /* of this process, from rq__cluster_start_code */
    char cluster_id[RQ_CLUSTER_ID_SIZE];
} rq_cluster_store;

/* Opens the cluster's storage. A folder that is missing is created, a pool is not. RQ_E_STATE, RQ_E_UNSUPPORTED: the
 * place has other contents, or those of another format. The caller closes `ret`, after an error, too. */
RQ_NODISCARD
rq_err rq__cluster_store_open(const rq_cluster_place *place, unsigned mode, rq_executor *ex,
                              const rq_cluster_process *process, rq_cluster_store *ret,
                              rq_error *why);
void rq__cluster_store_close(rq_cluster_store *s);
/* For `rorqual server --check`: finds the errors of the place and the storage that rq__cluster_store_open would find, but
 * writes nothing. *ret_id: the cluster's id; "": there is no cluster yet, and the first server makes one. */
RQ_NODISCARD
rq_err rq__cluster_store_look(const rq_cluster_place *place, rq_executor *ex,
                              char ret_id[RQ_CLUSTER_ID_SIZE], rq_error *why);
/* A number that no caller of this cluster was given before, above all earlier ones, and near the clock. */
RQ_NODISCARD
rq_err rq__cluster_start_code(rq_shared *shared, rq_executor *ex, int64_t *ret, rq_error *why);

#endif
