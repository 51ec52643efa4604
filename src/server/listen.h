/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses a server listens on: parses --listen into numeric addresses, and finds free ports
 * on them. */
#ifndef RQ_SERVER_LISTEN_H
#define RQ_SERVER_LISTEN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RQ_LISTEN_MAX 8
#define RQ_HOST_SIZE 256

typedef struct rq_listen {
    unsigned count;
    char address[RQ_LISTEN_MAX][46]; /* numeric, without brackets */
    char first[RQ_HOST_SIZE];        /* the first entry as given, without brackets */
} rq_listen;

typedef struct rq_ports {
    uint16_t zk, master, rs;
    bool without_zk; /* of a cluster, whose ZooKeeper is another program */
} rq_ports;

/* Sockets that are bound and do not listen. */
typedef struct rq_listen_held {
    unsigned count;
    int fd[3 * RQ_LISTEN_MAX];
} rq_listen_held;

/* "ADDRESS[,ADDRESS]...": IPv4 and IPv6 addresses (with or without brackets) and host names. A name
 * stands for all of its addresses that this machine has. */
RQ_NODISCARD
rq_err rq__listen_resolve(const char *text, rq_listen *ret, rq_error *why);
/* Binds every port on every address, without listening; a port 0 becomes one that is free on all addresses. Until `ret`
 * is released the kernel gives these ports to no other process, but the server can listen on them. RQ_E_EXISTS: a port
 * is in use; RQ_E_CONFIG: a port cannot be bound. The caller releases `ret`; on failure it is empty. */
RQ_NODISCARD
rq_err rq__listen_hold(const rq_listen *l, rq_ports *ports, rq_listen_held *ret, rq_error *why);
/* All zero and already released are fine. */
void rq__listen_release(rq_listen_held *h);
/* The host name sent to clients: `advertise`; if that is NULL or empty the first entry, or this
 * host's name if the server listens on all addresses of the machine. */
void rq__listen_host(const rq_listen *l, const char *advertise, char ret[RQ_HOST_SIZE]);

#endif
