/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data folder as a whole: its owner, its format, its cluster id.
 *
 *  - hbase.version: "PBUF" and HBaseVersionFileContent{version = "8"} (HBASE: FSUtils.setVersion)
 *  - hbase.id: "PBUF" and ClusterId{uuid} (HBASE: FSUtils.setClusterId)
 *  - .rorqual/lock: held by the running server
 *  - .rorqual/open: exists from a start to the next clean stop
 *  - .rorqual/version: the number of our own format, decimal, newline. A first start writes it last: a
 *    folder that has it is laid out completely; a folder without it is laid out again (a cluster's: completed). It is written
 *    again after a process that did not stop cleanly, which may have left it in the page cache only.
 *  - .rorqual/cluster: marks the folder of a cluster; contains the cluster's id. Several processes use the
 *    folder, so nobody holds the lock: storage decides who may open a region (region/owned.h). Standalone servers
 *    and tools refuse the folder.
 *  - .rorqual/cluster-ID, a folder: claims the root for the cluster ID whose logs are in other storage. Another folder, or
 *    the empty folder below a mount that is missing, does not have it.
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
 * another server runs on the folder. RQ_E_VERSION: its format is newer than this version knows.
 * RQ_E_UNSUPPORTED: it has foreign content. RQ_E_STATE: HBase worked on it and left edits in its logs, or an
 * unfinished procedure; or it has RQ_ROOT_UNFINISHED. On an error `why` has one clear line, and
 * unless it is an I/O error the folder is unchanged. */
RQ_NODISCARD
rq_err rq_root_open(const rq_env *env, rq_root **ret, rq_error *why);
/* Releases the lock. NULL is fine. */
void rq_root_close(rq_root *root);

typedef enum rq_root_state {
    RQ_ROOT_NEW,    /* empty */
    RQ_ROOT_BEGUN,  /* partly laid out by a first start that was interrupted */
    RQ_ROOT_CLEAN,  /* ours, stopped cleanly */
    RQ_ROOT_OPEN,   /* ours, in use or not stopped cleanly */
    RQ_ROOT_HBASES, /* HBase's, and can be taken over (adopt.h) */
} rq_root_state;

/* A file that exists while the data folder is an unfinished copy of another one (backup, restore) or is
 * changed by a tool (recover); its text names the command. No server starts on the folder. */
#define RQ_ROOT_UNFINISHED ".rorqual/incomplete"
/* The list of files of a finished backup (backup/marker.h). A server that starts on the folder
 * removes it. */
#define RQ_ROOT_BACKUP_LIST ".rorqual/backup"

/* --- the files of a cluster -------------------------------------------------------------------- */
#define RQ_CLUSTER_ID_SIZE 37

/* A random UUID (version 4), like HBase's ClusterId. */
void rq_root_make_cluster_id(rq_executor *ex, char ret[RQ_CLUSTER_ID_SIZE]);
/* Marks a folder as the cluster's. Each process calls it before it uses the folder; several may do so at once.
 * RQ_E_STATE: the folder belongs to a standalone server or another cluster. RQ_E_UNSUPPORTED: foreign content. */
RQ_NODISCARD
rq_err rq_root_join(rq_vfs *v, const char *cluster_id, rq_error *why);
/* For a cluster that is about to be made with this id, and whose logs are in other storage: claims a folder that may be
 * joined, durably. RQ_E_STATE, RQ_E_UNSUPPORTED: as for rq_root_join, or the folder is a cluster's already; it is left
 * unchanged. */
RQ_NODISCARD
rq_err rq_root_claim(rq_vfs *v, const char *cluster_id, rq_error *why);
/* RQ_E_STATE: the folder was not claimed for this cluster. */
RQ_NODISCARD
rq_err rq_root_check_claim(rq_vfs *v, const char *cluster_id, rq_error *why);
/* For the active master: as rq_root_open, without the lock. A new root gets this cluster id. The root is new until a
 * first start has laid it out completely; what an interrupted first start has made is kept. REQUIRES: rq_root_join
 * has succeeded. */
RQ_NODISCARD
rq_err rq_root_open_joined(const rq_env *env, const char *cluster_id, rq_root **ret, rq_error *why);

/* RQ_E_STATE: the folder is unfinished, or a cluster's; the text says what to do. */
RQ_NODISCARD
rq_err rq_root_check_finished(rq_vfs *v, rq_error *why);

/* The state that rq_root_open would find, without writing or locking anything. Returns the error with
 * which rq_root_open would refuse the folder. */
RQ_NODISCARD
rq_err rq_root_look(rq_vfs *v, rq_root_state *ret, rq_error *why);

/* Removes the mark `.rorqual/open`. Call it after catalog and engine were closed cleanly: the log is
 * empty, and HBase may use the folder. While the mark exists, a start refuses a folder on which HBase
 * has run meanwhile. Best effort. */
void rq_root_stopped_cleanly(rq_root *root);

/* True until the catalog has laid out a new folder. */
bool rq_root_is_new(const rq_root *root);
/* HBase's cluster id, a UUID as text, generated on the first start. Valid until close. */
const char *rq_root_cluster_id(const rq_root *root);

#endif
