/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data folder as a whole: its owner, its format, its cluster id.
 *
 *  - hbase.version: "PBUF" and HBaseVersionFileContent{version = "8"} (HBASE: FSUtils.setVersion)
 *  - hbase.id: "PBUF" and ClusterId{uuid} (HBASE: FSUtils.setClusterId)
 *  - .rorqual/lock: held by the running server
 *  - .rorqual/open: there from a start to the next clean stop
 *  - .rorqual/version: our own format's number, decimal, newline. Written last on a first start: a
 *    folder that has it is laid out, one that has not is laid out again (that of a cluster: completed).
 *  - .rorqual/cluster: the files of a cluster, with its id. Several processes use them, so nobody holds the
 *    lock: storage decides who may open a region (region/owned.h). Standalone servers and tools refuse it.
 *  - .rorqual/cluster-ID, a folder: where the logs are not in the same file system, the process that made the cluster
 *    saw this folder. Another folder, or the empty one below a mount that is missing, does not have it.
 */
#ifndef RQ_CATALOG_ROOT_H
#define RQ_CATALOG_ROOT_H

#include "base/env.h"
#include "base/err.h"
#include "vfs/vfs.h"

#define RQ_ROOT_FORMAT_VERSION 1
#define RQ_ROOT_HBASE_VERSION "8"

typedef struct rq_root rq_root;

/* Takes the lock and checks the versions, before anything else is touched. Blocking. RQ_E_LOCKED:
 * another server runs on it. RQ_E_VERSION: newer than this version knows. RQ_E_UNSUPPORTED: a
 * folder with foreign content. RQ_E_STATE: HBase worked on it and left edits in its logs, or an
 * unfinished procedure; or the folder is unfinished. On an error `why` has one clear line, and
 * unless it is an I/O error the folder is unchanged. */
RQ_NODISCARD
rq_err rq_root_open(const rq_env *env, rq_root **ret, rq_error *why);
/* Releases the lock. NULL is fine. */
void rq_root_close(rq_root *root);

typedef enum rq_root_state {
    RQ_ROOT_NEW,    /* empty */
    RQ_ROOT_BEGUN,  /* by a first start that was interrupted */
    RQ_ROOT_CLEAN,  /* ours, stopped cleanly */
    RQ_ROOT_OPEN,   /* ours, in use or not stopped cleanly */
    RQ_ROOT_HBASES, /* to be taken over */
} rq_root_state;

/* Exists while a folder is the unfinished copy of another (backup, restore) or is changed by a tool
 * (recover); its text names the command. No server starts on the folder. */
#define RQ_ROOT_UNFINISHED ".rorqual/incomplete"
/* The list of files of a finished backup (backup/marker.h). A server that starts on the folder
 * removes it. */
#define RQ_ROOT_BACKUP_LIST ".rorqual/backup"

/* --- the files of a cluster -------------------------------------------------------------------- */
#define RQ_CLUSTER_ID_SIZE 37

/* A random UUID (version 4), like HBase's ClusterId. */
void rq_root_make_cluster_id(rq_executor *ex, char ret[RQ_CLUSTER_ID_SIZE]);
/* Marks a folder as the cluster's, before a process uses its files; may be repeated, by several at once.
 * RQ_E_STATE: it is a standalone server's, or of another cluster. RQ_E_UNSUPPORTED: foreign content. */
RQ_NODISCARD
rq_err rq_root_join(rq_vfs *v, const char *cluster_id, rq_error *why);
/* For a cluster that is about to be made with this id, whose other storage is elsewhere: a folder that may be joined
 * is claimed for it, durably. RQ_E_STATE, RQ_E_UNSUPPORTED: as for rq_root_join, or it is a cluster's; unchanged. */
RQ_NODISCARD
rq_err rq_root_claim(rq_vfs *v, const char *cluster_id, rq_error *why);
/* RQ_E_STATE: the folder was not claimed for this cluster. */
RQ_NODISCARD
rq_err rq_root_check_claim(rq_vfs *v, const char *cluster_id, rq_error *why);
/* For the active master: as rq_root_open, without the lock. A new root gets this id; it is new until a first start
 * has laid it out wholly, and keeps what an interrupted one made. REQUIRES: joined. */
RQ_NODISCARD
rq_err rq_root_open_joined(const rq_env *env, const char *cluster_id, rq_root **ret, rq_error *why);

/* RQ_E_STATE: the folder is unfinished, or a cluster's; the text says what to do. */
RQ_NODISCARD
rq_err rq_root_check_finished(rq_vfs *v, rq_error *why);

/* What rq_root_open would find, without writing or locking anything. Returns the error with which
 * it would refuse the folder. */
RQ_NODISCARD
rq_err rq_root_look(rq_vfs *v, rq_root_state *ret, rq_error *why);

/* Call after catalog and engine were closed cleanly: the log is empty, and HBase may use the
 * folder. Without this mark, a folder on which HBase ran meanwhile is refused. Best effort. */
void rq_root_stopped_cleanly(rq_root *root);

/* True until the catalog has laid out a new folder. */
bool rq_root_is_new(const rq_root *root);
/* HBase's cluster id, a UUID as text, generated on the first start. Valid until close. */
const char *rq_root_cluster_id(const rq_root *root);

#endif
