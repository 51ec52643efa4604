/* SPDX-License-Identifier: Apache-2.0 */
/* See socket.h. */
#include "backup/socket.h"

#include "backup/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

rq_err rq__socket_address_of(const char *folder, rq__socket_address *ret, rq_error *why)
{
    *ret = (rq__socket_address){.un.sun_family = AF_UNIX, .dir = -1};
    size_t room = sizeof ret->un.sun_path;
    if ((size_t)snprintf(ret->un.sun_path, room, "%s/" RQ_CONTROL_NAME, folder) < room)
        return RQ_OK;
    ret->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->dir < 0) return rq_fail(why, RQ_E_IO, "cannot open %s: %s", folder, strerror(errno));
    snprintf(ret->un.sun_path, room, "/proc/self/fd/%d/" RQ_CONTROL_NAME, ret->dir);
    return RQ_OK;
}

void rq__socket_address_clear(rq__socket_address *a)
{
    if (a->dir >= 0) close(a->dir);
    a->dir = -1;
}

rq_err rq__record_append(rq_buf *b, char kind, const char *path, uint64_t size)
{
    size_t len = strlen(path);
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)kind));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)len));
    RQ_TRY(rq_buf_append_be64(b, size));
    return rq_buf_append(b, path, len);
}

rq_err rq__socket_send(int fd, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return RQ_E_IO;
        at += n;
        len -= (size_t)n;
    }
    return RQ_OK;
}
