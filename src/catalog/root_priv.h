/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the catalog writes into a new root. */
#ifndef RQ_CATALOG_ROOT_PRIV_H
#define RQ_CATALOG_ROOT_PRIV_H

#include "catalog/root.h"

/* Writes hbase.version and hbase.id and makes them durable (with every other name in the root
 * folder). */
RQ_NODISCARD
rq_err rq__root_write_identity(rq_root *root, rq_error *why);
/* Writes .rorqual/open and .rorqual/version: from now on the folder counts as laid out. REQUIRES:
 * everything else in the folder is durable. */
RQ_NODISCARD
rq_err rq__root_seal(rq_root *root, rq_error *why);
/* Writes .rorqual/open, and .rorqual/version again if it may not be durable. A start calls it before it writes anything
 * else to a folder that is laid out. May be repeated. */
RQ_NODISCARD
rq_err rq__root_mark_open(rq_root *root, rq_error *why);

/* Whether the root is a cluster's folder; then a first start completes what an earlier, interrupted
 * first start has made. */
bool rq__root_is_joined(const rq_root *root);

/* Checks that versions and cluster id can be read and are supported; for tools. `ours`: .rorqual exists. */
RQ_NODISCARD
rq_err rq__root_look(rq_vfs *v, bool ours, rq_error *why);

/* Restricts the modes of the entries in the root to those configured, and logs each change. */
void rq__root_restrict(rq_vfs *v, const rq_log *log, bool is_new);

/* Whether HBase was the last to run on the folder. Then the start cleans up after HBase (adopt.h), and
 * calls rq__root_adopted at the end. */
bool rq__root_adopts(const rq_root *root);
RQ_NODISCARD
rq_err rq__root_adopted(rq_root *root, rq_error *why);

/* Checks the file `path`: .rorqual/version, hbase.version or hbase.id. RQ_E_VERSION: it is of a newer
 * version. RQ_E_NOT_FOUND, RQ_E_CORRUPT: a start would be refused. */
RQ_NODISCARD
rq_err rq__root_check_mark(rq_vfs *v, const char *path, rq_error *why);
/* Writes one of these files as this version would; hbase.id with a new id if the old one is unreadable. */
RQ_NODISCARD
rq_err rq__root_write_mark(rq_vfs *v, rq_executor *ex, const char *path, rq_error *why);

#endif
