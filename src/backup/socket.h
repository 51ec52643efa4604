/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the control socket, and records on it; both ends use them. */
#ifndef RQ_BACKUP_SOCKET_H
#define RQ_BACKUP_SOCKET_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>
#include <sys/un.h>

#define RQ__RECORD_HEADER_LEN 13
#define RQ__RECORD_END 'e'
#define RQ__RECORD_ERROR 'x'
/* A holder: be64 since, in ms since 1970 | be64 1: of all files | be64 files | be64 log position */
#define RQ__HOLDER_LEN 32

typedef struct rq__socket_address {
    struct sockaddr_un un;
    int dir; /* -1, or the folder's descriptor that the address goes through; the owner closes it */
} rq__socket_address;

/* The address of the socket in the folder. If the path is too long for an address, it uses
 * /proc/self/fd and ret->dir. */
RQ_NODISCARD
rq_err rq__socket_address_of(const char *folder, rq__socket_address *ret, rq_error *why);
void rq__socket_address_clear(rq__socket_address *a);

RQ_NODISCARD
rq_err rq__record_append(rq_buf *b, char kind, const char *path, uint64_t size);
/* Sends all bytes; RQ_E_IO. Blocks, at most for the socket's timeout at a time. */
RQ_NODISCARD
rq_err rq__socket_send(int fd, const void *bytes, size_t len);

#endif
