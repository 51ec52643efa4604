/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded back end: a database of this process, on a folder or in memory, without a server.
 * The engine, the catalog and the operations are the server's; a call runs on the caller's thread
 * from begin to end.
 */
#ifndef RQ_EMBED_EMBED_H
#define RQ_EMBED_EMBED_H

#include "api/backend.h"

/* `path` NULL: in memory. Blocks. RQ_E_LOCKED, RQ_E_NOT_FOUND, RQ_E_CONFIG, and the errors with
 * which a server can fail to start on the folder. */
RQ_NODISCARD
rq_err rq_embed_open(const char *path, const rq_connect_options *o, rq_db **ret, rq_error *why);

#endif
