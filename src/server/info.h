/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the HTTP pages (HBase's info port): parses the settings, opens the listening
 * socket, and chooses the port that clients are told. */
#ifndef RQ_SERVER_INFO_H
#define RQ_SERVER_INFO_H

#include "base/config.h"
#include "base/log.h"
#include "server/listen.h"

typedef struct rq_info_place {
    bool on;
    bool is_explicit; /* a setting names the address: a failure to listen prevents the start */
    bool may_move;    /* if the port is in use, the next free one is taken */
    char host[RQ_HOST_SIZE]; /* as given, without brackets */
    char address[46];        /* numeric; set by rq__info_bind */
    uint16_t port;
    int fd; /* the listening socket; -1 before rq__info_bind */
} rq_info_place;

/* Reads rorqual.http.address; if that is not set, hbase.master.info.bindAddress and
 * hbase.master.info.port. */
RQ_NODISCARD
rq_err rq__info_place_of(const rq_config *config, rq_info_place *ret, rq_error *why);
/* Opens the listening socket. RQ_E_CONFIG: the socket cannot be opened, and a setting gives its
 * address. If the address is the default, logs the failure and turns the pages off instead. `own`: the server's
 * other ports; the pages never listen on one of them. */
RQ_NODISCARD
rq_err rq__info_bind(rq_info_place *p, const rq_ports *own, const rq_log *log, rq_error *why);
/* The info port to report to clients: the pages' port if they listen on the host that clients are
 * told (`host`: --advertise, or the first of `listen`), else 0. */
uint16_t rq__info_client_port(const rq_info_place *p, const rq_listen *listen, const char *host);

#endif
