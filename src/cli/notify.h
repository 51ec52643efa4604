/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notification protocol of systemd (sd_notify(3)), without its library: each notification is
 * one datagram of NAME=value lines, sent to the socket that NOTIFY_SOCKET names.
 */
#ifndef RQ_CLI_NOTIFY_H
#define RQ_CLI_NOTIFY_H

#include "base/macros.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct rq_notify {
    int fd; /* -1: there is no service manager to tell */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ns; /* WATCHDOG=1 must be sent at least this often; 0: never */
} rq_notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. If they are not set, sending does
 * nothing. */
void rq__notify_open(rq_notify *n);
/* Never blocks; a notification that cannot be sent is dropped. */
void rq__notify_send(const rq_notify *n, const char *fmt, ...) RQ_PRINTF(2, 3);
void rq__notify_close(rq_notify *n);

#endif
