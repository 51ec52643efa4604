/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts that fail and are made again; see tries.h. */
#include "server/tries.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE_FIRST_NS UINT64_C(200000000)
#define PAUSE_MAX_NS UINT64_C(10000000000)
#define LOG_NS UINT64_C(30000000000)

struct rq__try {
    rq__try *next;
    unsigned failed, logged; /* attempts */
    uint64_t pause_ns, due_ns, log_ns;
    char name[];
};

static rq__try **find(rq__try **list, const char *name)
{
    while (*list != NULL && strcmp((*list)->name, name) != 0)
        list = &(*list)->next;
    return list;
}

bool rq__tries_is_due(const rq__tries *t, const char *name, uint64_t now_ns)
{
    rq__try *list = t->list, *const *at = find(&list, name);
    return *at == NULL || now_ns >= (*at)->due_ns;
}

bool rq__tries_has_failed(const rq__tries *t, const char *name)
{
    rq__try *list = t->list;
    return *find(&list, name) != NULL;
}

static rq__try *add(rq__tries *t, const char *name, uint64_t now_ns)
{
    size_t len = strlen(name) + 1;
    rq__try *new = calloc(1, sizeof *new + len);
    if (new == NULL) return NULL;
    memcpy(new->name, name, len);
    new->pause_ns = PAUSE_FIRST_NS;
    new->log_ns = now_ns;
    new->next = t->list;
    t->list = new;
    return new;
}

/* Without memory for a pause the next attempt is due at once, and each one is logged. */
unsigned rq__tries_failed(rq__tries *t, const char *name, uint64_t now_ns)
{
    rq__try *x = *find(&t->list, name);
    if (x == NULL) x = add(t, name, now_ns);
    if (x == NULL) return 1;
    x->failed++;
    x->due_ns = now_ns + x->pause_ns;
    x->pause_ns = 2 * x->pause_ns < PAUSE_MAX_NS ? 2 * x->pause_ns : PAUSE_MAX_NS;
    if (now_ns < x->log_ns) return 0;
    unsigned unlogged = x->failed - x->logged;
    x->logged = x->failed;
    x->log_ns = now_ns + LOG_NS;
    return unlogged;
}

unsigned rq__tries_succeeded(rq__tries *t, const char *name)
{
    rq__try **at = find(&t->list, name), *x = *at;
    if (x == NULL) return 0;
    unsigned failed = x->failed;
    *at = x->next;
    free(x);
    return failed;
}

void rq__tries_clear(rq__tries *t)
{
    while (t->list != NULL)
        (void)rq__tries_succeeded(t, t->list->name);
}
