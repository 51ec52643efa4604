/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running server: .rorqual/control, a Unix socket in the data folder. Through it
 * a command on the same machine asks for a list of the folder's content at one moment, and for files
 * and log to be held while it reads them (catalog/image.h).
 *
 * Why a socket in the folder, and no call of the RPC ports: who may use the folder may ask (the socket
 * has its mode, and the server compares user ids), over the network nobody can; it is found by the folder's
 * path alone; and it is closed when a command is killed, so the hold ends with the one who asked for it.
 *
 *   client:  "image NAME\n"           name of the holder, for the log
 *   server:  records, then 'e'; or 'x' with the reason
 *   client:  "log\n"                  the log is copied, and need not be held any more
 *   client closes                     nothing need be held any more
 *
 *   record:  u8 kind | be32 length of the path | be64 size | path | with kind 'b': size bytes
 *            kinds: rq_image_kind (region/image.h), 'e' end, 'x' error: the path is its text
 *
 * Changes of tables wait while the list is sent (catalog/image.h), so a client that does not read for
 * 10 s is cut off.
 */
#ifndef RQ_BACKUP_CONTROL_H
#define RQ_BACKUP_CONTROL_H

#include "catalog/catalog.h"

#define RQ_CONTROL_NAME ".rorqual/control"

typedef struct rq_control rq_control;

typedef struct rq_control_options {
    const rq_env *env; /* outlives it, like the catalog */
    rq_catalog *catalog;
    const char *folder; /* absolute path of the data folder; copied */
} rq_control_options;

/* Listens, on a thread of its own. An error is one of the file system (it may have no sockets); the server
 * can do without. REQUIRES: the folder is locked by the caller. */
RQ_NODISCARD
rq_err rq_control_open(const rq_control_options *o, rq_control **ret, rq_error *why);
/* Ends the connections and their holds, and removes the socket. Before rq_catalog_stop. NULL is
 * allowed. */
void rq_control_close(rq_control *c);

#endif
