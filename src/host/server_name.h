/* SPDX-License-Identifier: Apache-2.0 */
/* A server's incarnation: host, port and start code. HBASE: ServerName. */
#ifndef RQ_HOST_SERVER_NAME_H
#define RQ_HOST_SERVER_NAME_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef struct rq_server_name {
    const char *host; /* sent to clients */
    uint16_t port;
    int64_t start_code; /* wall clock at start, ms */
    const char *text;   /* "host,port,startcode"; filled in by rq_server_name_new */
} rq_server_name;

/* A copy, counted: one reference is the caller's. NULL: out of memory. */
const rq_server_name *rq_server_name_new(const rq_server_name *from);
/* Of a name that rq_server_name_new made. NULL is fine. */
const rq_server_name *rq_server_name_ref(const rq_server_name *name);
void rq_server_name_unref(const rq_server_name *name);

/* Sorts names by their text. */
void rq_server_names_sort(const rq_server_name **list, size_t count);
/* The index of the name in a sorted list; `count`: it is not there, or is NULL. */
size_t rq_server_names_find(const rq_server_name *const *list, size_t count,
                            const rq_server_name *name);

#endif
