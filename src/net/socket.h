/* SPDX-License-Identifier: Apache-2.0 */
/* Socket calls: binding a listener, and options of an accepted connection. */
#ifndef RQ_NET_SOCKET_H
#define RQ_NET_SOCKET_H

#include "net/stream.h"

/* Binds a socket without listening: connections are refused, and the kernel does not choose this port for sockets of
 * other processes. Processes of the same user may still listen on the port with rq_socket_listen. Arguments and errors
 * as rq_socket_listen. */
RQ_NODISCARD
rq_err rq_socket_bind(const char *address, uint16_t port, bool only_v6, int *ret_fd,
                      uint16_t *ret_port, rq_error *why);
/* Makes a non-blocking listening socket on a numeric address. only_v6: "::" leaves IPv4 to another
 * socket. RQ_E_EXISTS: the port is in use; RQ_E_INVALID: the address is not numeric;
 * RQ_E_PERMISSION. */
RQ_NODISCARD
rq_err rq_socket_listen(const char *address, uint16_t port, bool only_v6, int *ret_fd,
                        uint16_t *ret_port, rq_error *why);
/* Whether the peer's system has acknowledged all bytes sent, end-of-file included, and no received byte
 * is unread. Only then can a close not make the kernel send a reset, which could discard sent bytes that
 * the peer has not read. */
bool rq__socket_is_delivered(int fd);
/* The number of bytes sent that the peer's system has not acknowledged; 0 if that is unknown. */
size_t rq__socket_undelivered(int fd);
/* Sets TCP_NODELAY and keep-alive, and returns the peer's address. */
void rq__socket_set_up(int fd, rq_peer *ret_peer);

#endif
