/* SPDX-License-Identifier: Apache-2.0 */
/* Names of servers: counted copies, shared by the nodes of views. */
#include "host/server_name.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counted {
    rq_server_name name;
    _Atomic unsigned refs;
    char bytes[]; /* host, text */
} counted;

static counted *counted_of(const rq_server_name *name)
{
    return RQ_CONTAINER_OF(name, counted, name);
}

const rq_server_name *rq_server_name_new(const rq_server_name *from)
{
    size_t host = strlen(from->host) + 1, text = host + 32;
    counted *c = malloc(sizeof *c + host + text);
    if (c == NULL) return NULL;
    atomic_init(&c->refs, 1);
    c->name = *from;
    memcpy(c->bytes, from->host, host);
    c->name.host = c->bytes;
    snprintf(c->bytes + host, text, "%s,%u,%lld", from->host, from->port,
             (long long)from->start_code);
    c->name.text = c->bytes + host;
    return &c->name;
}

const rq_server_name *rq_server_name_ref(const rq_server_name *name)
{
    if (name != NULL) atomic_fetch_add_explicit(&counted_of(name)->refs, 1, memory_order_relaxed);
    return name;
}

void rq_server_name_unref(const rq_server_name *name)
{
    if (name == NULL) return;
    counted *c = counted_of(name);
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) free(c);
}

static int by_text(const void *a, const void *b)
{
    const rq_server_name *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

void rq_server_names_sort(const rq_server_name **list, size_t count)
{
    if (count > 1) qsort(list, count, sizeof *list, by_text);
}

size_t rq_server_names_find(const rq_server_name *const *list, size_t count,
                            const rq_server_name *name)
{
    const rq_server_name *const *at =
        name == NULL ? NULL : bsearch(&name, list, count, sizeof *list, by_text);
    return at == NULL ? count : (size_t)(at - list);
}
