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
    const char *store;  /* the folder that all servers see */
    const char *secret; /* the file */
} rq_cluster_place;

/* "zk=HOST:PORT[,HOST:PORT]...[/ROOT],store=DIR,secret=FILE", in any order. Without /ROOT, ret->root is `root`. Strings
 * are in the arena. RQ_E_CONFIG with the reason. */
RQ_NODISCARD
rq_err rq__cluster_parse(const char *text, const char *root, rq_arena *arena, rq_cluster_place *ret,
                         rq_error *why);

/* --- the storage: DIR/files has what HBase has in its root folder, DIR/shared logs and manifests ------ */
typedef struct rq_cluster_store {
    rq_vfs *files, *shared_files;
    rq_shared *shared;
    char cluster_id[RQ_CLUSTER_ID_SIZE];
} rq_cluster_store;

/* Opens the cluster's storage in `folder`, and creates it if it is missing. RQ_E_STATE, RQ_E_UNSUPPORTED: the folder
 * has other contents, or those of another format. The caller closes `ret`, after an error, too. */
RQ_NODISCARD
rq_err rq__cluster_store_open(const char *folder, unsigned mode, rq_executor *ex,
                              rq_cluster_store *ret, rq_error *why);
void rq__cluster_store_close(rq_cluster_store *s);
/* A number that no caller of this cluster was given before, above all earlier ones, and near the clock. */
RQ_NODISCARD
rq_err rq__cluster_start_code(rq_shared *shared, rq_executor *ex, int64_t *ret, rq_error *why);

#endif
