/* SPDX-License-Identifier: Apache-2.0 */
/* A host and a port as one text. */
#ifndef RQ_BASE_ADDRESS_H
#define RQ_BASE_ADDRESS_H

#include <stdio.h>
#include <string.h>

#define RQ_HOST_PORT_MAX 272

/* "host:port", an IPv6 address in brackets: "[::1]:2181". Returns `buf`. */
static inline const char *rq_host_port(const char *host, unsigned port, char buf[RQ_HOST_PORT_MAX])
{
    const char *form = strchr(host, ':') != NULL ? "[%.256s]:%u" : "%.256s:%u";
    snprintf(buf, RQ_HOST_PORT_MAX, form, host, port);
    return buf;
}

/* A host as it is written in --listen and in URLs: an IPv6 address in brackets. Returns `buf`. */
static inline const char *rq_host_bracketed(const char *host, char buf[RQ_HOST_PORT_MAX])
{
    snprintf(buf, RQ_HOST_PORT_MAX, strchr(host, ':') != NULL ? "[%.256s]" : "%.256s", host);
    return buf;
}

/* rq_host_port in a buffer of the enclosing block: for texts of errors and the log. */
#define RQ_HOST_PORT(host, port) rq_host_port((host), (port), (char[RQ_HOST_PORT_MAX]){0})

#endif
