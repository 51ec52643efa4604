/* SPDX-License-Identifier: Apache-2.0 */
/* Where the HTTP pages are (HBase's info port): from the settings to a listening socket, and what clients
 * are told of it. */
#ifndef RQ_SERVER_INFO_H
#define RQ_SERVER_INFO_H

#include "base/config.h"
#include "base/log.h"
#include "server/listen.h"

typedef struct rq_info_place {
    bool on;
    bool asked;              /* by a setting: then it must be there */
    char host[RQ_HOST_SIZE]; /* as given, without brackets */
    char address[46];        /* numeric, once it is bound */
    uint16_t port;
    int fd; /* the listening socket, once it is bound; else -1 */
} rq_info_place;

/* From rorqual.http.address, or without it from hbase.master.info.bindAddress and hbase.master.info.port. */
RQ_NODISCARD
rq_err rq__info_place_of(const rq_config *config, rq_info_place *ret, rq_error *why);
/* Listens. Where nobody asked for the pages and the port is busy, the log says so and they are off. */
RQ_NODISCARD
rq_err rq__info_bind(rq_info_place *p, const rq_log *log, rq_error *why);
/* The info port that clients are told: 0 unless the pages are reachable at the name that they are told
 * (`host`), which is one of `listen` where nobody gave another. */
uint16_t rq__info_told(const rq_info_place *p, const rq_listen *listen, const char *host);

#endif
