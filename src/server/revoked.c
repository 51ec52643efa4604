/* SPDX-License-Identifier: Apache-2.0 */
/* The list of fenced servers; see revoked.h. */
#include "server/revoked.h"

#include <stdlib.h>
#include <string.h>

struct rq__revoked_server {
    rq__revoked_server *next;
    uint64_t quiet_ns;
    bool is_found;
    char name[];
};

static rq__revoked_server **place_of(rq__revoked_servers *r, const char *server)
{
    rq__revoked_server **at = &r->first;
    while (*at != NULL && strcmp((*at)->name, server) != 0)
        at = &(*at)->next;
    return at;
}

static rq__revoked_server *server_new(const char *server, uint64_t quiet_ns, bool is_found)
{
    size_t len = strlen(server) + 1;
    rq__revoked_server *s = calloc(1, sizeof *s + len);
    if (s == NULL) return NULL;
    s->quiet_ns = quiet_ns;
    s->is_found = is_found;
    memcpy(s->name, server, len);
    return s;
}

void rq__revoked_note(rq__revoked_servers *r, const char *server, uint64_t quiet_ns, bool is_found)
{
    rq__revoked_server **at = place_of(r, server), *s = *at;
    if (s != NULL && (is_found || !s->is_found)) return;
    if (s != NULL) { /* it was found, and its end is dealt with now */
        *at = s->next;
        s->is_found = false;
    } else {
        s = server_new(server, quiet_ns, is_found);
    }
    if (s == NULL) return;
    at = &r->first;
    while (is_found && *at != NULL && !(*at)->is_found)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
}

void rq__revoked_forget(rq__revoked_servers *r, const char *server)
{
    rq__revoked_server **at = place_of(r, server), *s = *at;
    if (s == NULL) return;
    *at = s->next;
    free(s);
}

size_t rq__revoked_list(const rq__revoked_servers *r, uint64_t now_ns, rq_arena *arena,
                        rq_revoked **ret)
{
    size_t count = 0;
    *ret = rq_arena_calloc(arena, RQ__REVOKED_LISTED_MAX, sizeof **ret);
    for (const rq__revoked_server *s = *ret == NULL ? NULL : r->first;
         s != NULL && count < RQ__REVOKED_LISTED_MAX; s = s->next) {
        const char *name = rq_arena_cstr(arena, rq_slice_cstr(s->name));
        if (name == NULL) continue; /* its lease is waited for in full */
        uint64_t ms = s->quiet_ns > now_ns ? (s->quiet_ns - now_ns) / 1000000 + 1 : 0;
        (*ret)[count++] = (rq_revoked){.server = name, .quiet_in_ms = ms};
    }
    return count;
}

void rq__revoked_clear(rq__revoked_servers *r)
{
    while (r->first != NULL) {
        rq__revoked_server *s = r->first;
        r->first = s->next;
        free(s);
    }
}
