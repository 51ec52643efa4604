/* SPDX-License-Identifier: Apache-2.0 */
/* Plain socket calls: binding a listener, and what is set on an accepted connection. */
#ifndef RQ_NET_SOCKET_H
#define RQ_NET_SOCKET_H

#include "net/stream.h"

/* A non-blocking listening socket on a numeric address. `only_v6`: "::" leaves IPv4 to another
 * socket. RQ_E_EXISTS: the port is in use. */
RQ_NODISCARD
rq_err rq_socket_listen(const char *address, uint16_t port, bool only_v6, int *ret_fd,
                        uint16_t *ret_port, rq_error *why);
/* Sets no-delay and keep-alive, and says who is at the other end. */
void rq_socket_accepted(int fd, rq_peer *ret_peer);

#endif
