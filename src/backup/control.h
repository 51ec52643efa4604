/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running server: .rorqual/control, a Unix socket in the data folder. Through it a
 * command on the same machine requests an image, which is a list of the folder's content at one moment, and
 * that the server keeps files and log while the command reads them (catalog/image.h).
 *
 * Why a socket in the folder and not an RPC method: access to the folder is the permission (the socket
 * has the folder's mode, and the server compares user ids); it is unreachable over the network; the
 * folder's path suffices to find it; and the kernel closes it when the command is killed, which ends
 * the hold.
 *
 *   client:  "image NAME\n"           name of the holder, for the server's log
 *   server:  records, then 'e'; or 'x' with the reason
 *   client:  "log\n"                  the log is copied; release its hold
 *   client closes                     release all holds
 *
 *   client:  "holders\n"              which holders there are (vfs/retention.h)
 *   server:  a record of kind 'b' for each, whose path is its name (RQ__HOLDER_LEN in socket.h), then 'e'
 *
 *   record:  u8 kind | be32 length of the path | be64 size | path | with kind 'b': size bytes
 *            kinds: rq_image_kind (region/image.h), 'e' end, 'x' error (the path is its text)
 *
 * Table changes wait while the list is sent (catalog/image.h), so a client that does not read for 10 s
 * is disconnected.
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

/* Listens on its own thread. Fails if the file system has no sockets; the server can run without.
 * REQUIRES: the caller holds the folder lock. */
RQ_NODISCARD
rq_err rq_control_open(const rq_control_options *o, rq_control **ret, rq_error *why);
/* Ends the connections and their holds, and removes the socket. Call it before rq_catalog_stop. NULL is
 * allowed. */
void rq_control_close(rq_control *c);

#endif
