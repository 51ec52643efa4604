/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalog writes into a new root. */
#ifndef RQ_CATALOG_ROOT_PRIV_H
#define RQ_CATALOG_ROOT_PRIV_H

#include "catalog/root.h"

/* hbase.version and hbase.id, durable (with every other name in the root folder). */
RQ_NODISCARD
rq_err rq__root_write_identity(rq_root *root, rq_error *why);
/* .rorqual/version: from here on the folder is laid out. REQUIRES: all else is durable. */
RQ_NODISCARD
rq_err rq__root_seal(rq_root *root, rq_error *why);
/* .rorqual/open: before a start writes anything to a folder that was laid out. May be repeated. */
RQ_NODISCARD
rq_err rq__root_mark_open(rq_root *root, rq_error *why);

/* Reads only: the versions and the id, for tools. `ours`: .rorqual is there. */
RQ_NODISCARD
rq_err rq__root_look(rq_vfs *v, bool ours, rq_error *why);

/* Narrows the modes of what stands in the root to the storage's; says what it changed. */
void rq__root_restrict(rq_vfs *v, const rq_log *log, bool is_new);

/* An HBase ran on the folder last: the start puts in order what it left, then says so. */
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
