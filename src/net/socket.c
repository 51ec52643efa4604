/* SPDX-License-Identifier: Apache-2.0 */
/* Socket calls that need no event loop; contract in socket.h. */
#include "net/socket.h"

#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BACKLOG 1024

static bool parse_address(const char *text, uint16_t port, struct sockaddr_storage *ss,
                          socklen_t *len)
{
    memset(ss, 0, sizeof *ss);
    struct sockaddr_in *a4 = (struct sockaddr_in *)ss;
    struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ss;
    if (inet_pton(AF_INET, text, &a4->sin_addr) == 1) {
        a4->sin_family = AF_INET;
        a4->sin_port = htons(port);
        *len = sizeof *a4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &a6->sin6_addr) != 1) return false;
    a6->sin6_family = AF_INET6;
    a6->sin6_port = htons(port);
    *len = sizeof *a6;
    return true;
}

static uint16_t port_of(const struct sockaddr_storage *ss)
{
    return ntohs(ss->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)ss)->sin6_port
                                           : ((const struct sockaddr_in *)ss)->sin_port);
}

static rq_err bind_error(int error, const char *address, uint16_t port, rq_error *why)
{
    rq_err code = RQ_E_IO;
    if (error == EADDRINUSE) code = RQ_E_EXISTS;
    if (error == EACCES || error == EPERM) code = RQ_E_PERMISSION;
    if (error == EADDRNOTAVAIL || error == EINVAL) code = RQ_E_INVALID;
    return rq_fail(why, code, "cannot listen on %s: %s", RQ_HOST_PORT(address, port),
                   strerror(error));
}

rq_err rq_socket_bind(const char *address, uint16_t port, bool only_v6, int *ret_fd,
                      uint16_t *ret_port, rq_error *why)
{
    struct sockaddr_storage ss;
    socklen_t len;
    if (!parse_address(address, port, &ss, &len))
        return rq_fail(why, RQ_E_INVALID, "not a numeric address: %s", address);
    int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return bind_error(errno, address, port, why);
    int on = 1;
    /* Earlier connections in TIME_WAIT must not block a restarted server's port. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (only_v6 && ss.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&ss, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&ss, &len) != 0) {
        int error = errno;
        close(fd);
        return bind_error(error, address, port, why);
    }
    *ret_port = port_of(&ss);
    *ret_fd = fd;
    return RQ_OK;
}

rq_err rq_socket_listen(const char *address, uint16_t port, bool only_v6, int *ret_fd,
                        uint16_t *ret_port, rq_error *why)
{
    int fd;
    RQ_TRY(rq_socket_bind(address, port, only_v6, &fd, ret_port, why));
    if (listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return bind_error(error, address, port, why);
    }
    *ret_fd = fd;
    return RQ_OK;
}

size_t rq__socket_undelivered(int fd)
{
    int bytes;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

bool rq__socket_is_delivered(int fd)
{
    int unsent, unread;
    return ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent == 0 && ioctl(fd, FIONREAD, &unread) == 0 &&
           unread == 0;
}

void rq__socket_set_up(int fd, rq_peer *ret_peer)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    if (getpeername(fd, (struct sockaddr *)&ss, &len) != 0) return;
    const struct in6_addr *v6 = &((struct sockaddr_in6 *)&ss)->sin6_addr;
    if (ss.ss_family != AF_INET6)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&ss)->sin_addr, ret_peer->host,
                  sizeof ret_peer->host);
    else if (IN6_IS_ADDR_V4MAPPED(v6)) /* an IPv4 peer of a socket on "::" */
        inet_ntop(AF_INET, v6->s6_addr + 12, ret_peer->host, sizeof ret_peer->host);
    else
        inet_ntop(AF_INET6, v6, ret_peer->host, sizeof ret_peer->host);
    ret_peer->port = port_of(&ss);
}
