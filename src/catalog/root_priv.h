/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the catalog writes into a new root. */
#ifndef RQ_CATALOG_ROOT_PRIV_H
#define RQ_CATALOG_ROOT_PRIV_H

#include "catalog/root.h"

/* Writes hbase.version and hbase.id and makes them durable (with every other name in the root
 * folder). */
RQ_NODISCARD
rq_err rq__root_write_identity(rq_root *root, rq_error *why);
/* Writes .rorqual/version and .rorqual/open: from now on the folder counts as laid out. REQUIRES:
 * everything else is durable. */
RQ_NODISCARD
rq_err rq__root_seal(rq_root *root, rq_error *why);
/* Writes .rorqual/open, before a start writes anything else to a folder that was laid out. May be
 * repeated. */
RQ_NODISCARD
rq_err rq__root_mark_open(rq_root *root, rq_error *why);

/* The files of a cluster: a first start may find what an interrupted one has made, and completes it. */
bool rq__root_is_joined(const rq_root *root);

/* Reads the versions and the id, for tools. `ours`: .rorqual exists. */
RQ_NODISCARD
rq_err rq__root_look(rq_vfs *v, bool ours, rq_error *why);

/* Restricts the modes of the entries in the root to those configured, and logs each change. */
void rq__root_restrict(rq_vfs *v, const rq_log *log, bool is_new);

/* HBase was the last to run on the folder: the start cleans up after it, and then calls
 * rq__root_adopted. */
bool rq__root_adopts(const rq_root *root);
RQ_NODISCARD
rq_err rq__root_adopted(rq_root *root, rq_error *why);

/* .rorqual/version, hbase.version or hbase.id. RQ_E_VERSION: of a newer version; RQ_E_NOT_FOUND,
 * RQ_E_CORRUPT: a start would be refused. */
RQ_NODISCARD
rq_err rq__root_check_mark(rq_vfs *v, const char *path, rq_error *why);
/* Writes it as this version would; a new cluster id where the old one cannot be read. */
RQ_NODISCARD
rq_err rq__root_write_mark(rq_vfs *v, rq_executor *ex, const char *path, rq_error *why);

#endif
