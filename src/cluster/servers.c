/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that a master knows: which of them take regions, where the next region goes, and
 * their last reports. */
#include "cluster/remote_priv.h"

#include "base/fnv.h"
#include "base/pb_arena.h"
#include "cluster/load.h"
#include "cluster/wire_priv.h"
#include "proto/cluster_status.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- a table of servers ----------------------------------------------------------------------- */

static size_t bucket_of(const rq_server_name *name)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A + name->port, rq_slice_cstr(name->host));
    return (size_t)(h ^ h >> 32) % RQ__SERVER_BUCKETS;
}

static bool same_address(const rq_server_name *a, const rq_server_name *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* The server with this address that was added last. */
static rq__server *find_address(const rq__servers *t, const rq_server_name *name)
{
    rq__server *s = t->buckets[bucket_of(name)];
    while (s != NULL && !same_address(s->name, name))
        s = s->same_bucket;
    return s;
}

static void add_server(rq__servers *t, rq__server *s)
{
    rq__server **bucket = &t->buckets[bucket_of(s->name)];
    s->same_bucket = *bucket;
    *bucket = s;
    s->next = t->first;
    t->first = s;
}

static void remove_server(rq__servers *t, const rq__server *s)
{
    rq__server **at = &t->buckets[bucket_of(s->name)];
    while (*at != s)
        at = &(*at)->same_bucket;
    *at = s->same_bucket;
    for (at = &t->first; *at != s;)
        at = &(*at)->next;
    *at = s->next;
}

rq__server *rq__server_find(const rq_remote *m, const rq_server_name *name)
{
    rq__server *s = m->up.buckets[bucket_of(name)];
    while (s != NULL && strcmp(s->name->text, name->text) != 0)
        s = s->same_bucket;
    return s;
}

bool rq__server_is_home(const rq_remote *m, const rq__server *s)
{
    return m->o.home != NULL && strcmp(s->name->text, m->o.home->text) == 0;
}

bool rq__server_is_up(const rq_remote *m, const rq_server_name *name)
{
    return rq__server_find(m, name) != NULL;
}

static void server_free(rq__server *s)
{
    rq_server_name_unref(s->name);
    free(s->loads);
    rq_arena_clear(&s->source_arena);
    free(s);
}

static void clear_list(rq__server **list)
{
    while (*list != NULL) {
        rq__server *s = *list;
        *list = s->next;
        server_free(s);
    }
}

void rq__servers_clear(rq_remote *m)
{
    clear_list(&m->up.first);
    clear_list(&m->dead.first);
    rq__draining_clear(m);
}

/* --- servers that are up ---------------------------------------------------------------------- */

/* HBASE: ServerManager.checkIsDead, checkAndRecordNewServer. REQUIRES: lock held. */
static rq_err check_alive(const rq_remote *m, const rq_server_name *name, const char *what,
                          rq_error *why)
{
    const rq__server *dead = find_address(&m->dead, name);
    const rq__server *up = find_address(&m->up, name);
    if (dead != NULL && dead->name->start_code >= name->start_code)
        return rq_fail(why, RQ_E_YOU_ARE_DEAD,
                       "Server %s rejected; currently processing %s as dead server", what,
                       name->text);
    if (up != NULL && up->name->start_code > name->start_code)
        return rq_fail(why, RQ_E_YOU_ARE_DEAD,
                       "Server %s of %s rejected; %s is registered at the same address", what,
                       name->text, up->name->text);
    return RQ_OK;
}

/* Enters the server `s` and sets *s to NULL. If the server is known already, only notes that it was heard; the caller
 * keeps `s`. *ret_old: an earlier server at the address, referenced. REQUIRES: lock held. */
static rq_err enter_server(rq_remote *m, rq__server **s, const char *what,
                           const rq_server_name **ret_old, rq_error *why)
{
    RQ_TRY(check_alive(m, (*s)->name, what, why));
    rq__server *known = rq__server_find(m, (*s)->name);
    if (known != NULL) {
        known->unreported_ns = known->silent_ns = 0;
        return RQ_OK;
    }
    const rq__server *old = find_address(&m->up, (*s)->name);
    if (old != NULL) *ret_old = rq_server_name_ref(old->name);
    add_server(&m->up, *s);
    m->server_count++;
    *s = NULL;
    return RQ_OK;
}

static rq_err join(rq_remote *m, const rq_server_name *name, const char *what, rq_error *why)
{
    const rq_server_name *old = NULL;
    rq__server *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->name = rq_server_name_new(name);
    if (s->name == NULL) {
        free(s);
        return rq_no_memory(why);
    }
    pthread_mutex_lock(&m->lock);
    rq_err rc = enter_server(m, &s, what, &old, why);
    pthread_mutex_unlock(&m->lock);
    if (s != NULL) server_free(s);
    if (old != NULL && m->o.replaced != NULL) m->o.replaced(m->o.ctx, old);
    rq_server_name_unref(old);
    return rc;
}

rq_err rq_remote_server_up(rq_remote *m, const rq_server_name *name, rq_error *why)
{
    return join(m, name, "STARTUP", why);
}

/* The latest of an address is kept. Returns the one to free. REQUIRES: lock held. */
static rq__server *bury(rq_remote *m, rq__server *s)
{
    rq__server *earlier = find_address(&m->dead, s->name);
    if (earlier != NULL && earlier->name->start_code >= s->name->start_code) return s;
    if (earlier != NULL) remove_server(&m->dead, earlier);
    free(s->loads);
    s->loads = NULL;
    s->load_count = 0;
    s->has_load = false;
    add_server(&m->dead, s);
    return earlier;
}

void rq_remote_server_down(rq_remote *m, const rq_server_name *name)
{
    rq_error why = {0};
    rq__server *unneeded = NULL;
    const rq_server_name *gone = NULL;
    pthread_mutex_lock(&m->lock);
    rq__server *s = rq__server_find(m, name);
    if (s != NULL) {
        gone = rq_server_name_ref(s->name);
        remove_server(&m->up, s);
        m->server_count--;
        unneeded = bury(m, s);
    }
    pthread_mutex_unlock(&m->lock);
    if (unneeded != NULL) server_free(unneeded);
    if (gone == NULL) return;
    rq_err rc = rq_fail(&why, RQ_E_SERVER_NOT_RUNNING, "%s is down", gone->text);
    rq__end_calls_to(m, gone, rc, &why);
    rq_server_name_unref(gone);
}

rq_err rq_remote_servers(rq_remote *m, size_t max, rq_arena *arena, const rq_server_name ***ret,
                         size_t *ret_count, size_t *ret_total)
{
    rq_err rc = RQ_OK;
    *ret_count = 0;
    pthread_mutex_lock(&m->lock);
    *ret_total = m->server_count;
    size_t count = max < m->server_count ? max : m->server_count;
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL) rc = RQ_E_NO_MEMORY;
    const rq__server *s = m->up.first;
    for (size_t skip = count < *ret_total ? m->turn++ % *ret_total : 0; skip > 0; skip--)
        s = s->next;
    for (; rc == RQ_OK && *ret_count < count; s = s->next == NULL ? m->up.first : s->next)
        (*ret)[(*ret_count)++] = rq_server_name_ref(s->name);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

/* HBASE: DeadServer, from which a server that starts at an address removes the earlier one. REQUIRES: lock held. */
static bool is_listed(const rq_remote *m, const rq__server *dead)
{
    return !dead->is_forgotten && find_address(&m->up, dead->name) == NULL;
}

rq_err rq__servers_dead(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count)
{
    rq_remote *m = ctx;
    size_t count = 0;
    *ret_count = 0;
    pthread_mutex_lock(&m->lock);
    for (const rq__server *s = m->dead.first; s != NULL; s = s->next)
        count += is_listed(m, s);
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    for (const rq__server *s = *ret == NULL ? NULL : m->dead.first; s != NULL; s = s->next)
        if (is_listed(m, s)) (*ret)[(*ret_count)++] = rq_server_name_ref(s->name);
    pthread_mutex_unlock(&m->lock);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* The server stays dead and cannot join again. */
bool rq__servers_forget_dead(void *ctx, const rq_server_name *server)
{
    rq_remote *m = ctx;
    pthread_mutex_lock(&m->lock);
    rq__server *s = find_address(&m->dead, server);
    bool found = s != NULL && s->name->start_code == server->start_code && is_listed(m, s);
    if (found) s->is_forgotten = true;
    pthread_mutex_unlock(&m->lock);
    return found;
}

bool rq_remote_is_up(rq_remote *m, const rq_server_name *name)
{
    pthread_mutex_lock(&m->lock);
    bool up = rq__server_is_up(m, name);
    pthread_mutex_unlock(&m->lock);
    return up;
}

/* The server that is up at this address; else, if exactly one server is up on this host, that server; referenced.
 * NULL: there is neither, or it takes no regions. HBASE: BaseLoadBalancer.retainAssignment. REQUIRES: lock held. */
static const rq_server_name *server_at(rq_remote *m, const rq_server_name *address)
{
    const rq__server *at = find_address(&m->up, address), *of_host = NULL;
    if (at != NULL && !rq__server_takes_regions(m, at)) return NULL;
    size_t count = 0;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next) {
        if (strcasecmp(s->name->host, address->host) != 0 || !rq__server_takes_regions(m, s))
            continue;
        of_host = s;
        count++;
    }
    if (at == NULL && count == 1) at = of_host;
    return at == NULL ? NULL : rq_server_name_ref(at->name);
}

/* REQUIRES: lock held. */
static const rq_server_name *next_in_turn(rq_remote *m)
{
    size_t count = 0, skip;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next)
        count += rq__server_takes_regions(m, s);
    if (count == 0) return NULL;
    skip = m->turn++ % count;
    const rq__server *s = m->up.first;
    while (!rq__server_takes_regions(m, s) || skip-- > 0)
        s = s->next;
    return rq_server_name_ref(s->name);
}

/* Where the region is open already; else where it was last; else in turn. */
const rq_server_name *rq__servers_place(void *ctx, const rq_region_info *info,
                                        const rq_server_name *last)
{
    rq_remote *m = ctx;
    bool at_home = m->o.home != NULL && rq_slice_eq(info->ns, RQ_SLICE_LIT("hbase"));
    const rq_server_name *owner = m->o.owner == NULL ? NULL : m->o.owner(m->o.ctx, info);
    if (owner != NULL && !at_home && rq_remote_is_up(m, owner)) return owner;
    rq_server_name_unref(owner);
    if (at_home) return rq_server_name_new(m->o.home);
    pthread_mutex_lock(&m->lock);
    const rq_server_name *name = last == NULL ? NULL : server_at(m, last);
    if (name == NULL) name = next_in_turn(m);
    pthread_mutex_unlock(&m->lock);
    return name;
}

/* --- loads ------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const rq__server_load *x = a, *y = b;
    return strcmp(x->encoded, y->encoded);
}

/* A whole name's encoded part, or an encoded name. */
static bool take_name(const Pb__RegionSpecifier *m, char ret[RQ_ENCODED_NAME_LEN + 1])
{
    rq_slice name = rq__wire_slice(m->value);
    if (m->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME &&
        name.len > RQ_ENCODED_NAME_LEN + 1)
        name = rq_slice_of(name.ptr + name.len - RQ_ENCODED_NAME_LEN - 1, RQ_ENCODED_NAME_LEN);
    if (name.len == 0 || name.len > RQ_ENCODED_NAME_LEN || memchr(name.ptr, 0, name.len) != NULL)
        return false;
    memcpy(ret, name.ptr, name.len);
    ret[name.len] = '\0';
    return true;
}

/* Regions with malformed names are skipped. NULL: out of memory. */
static rq__server_load *take_loads(const Pb__ServerLoad *m, size_t *ret_count)
{
    rq__server_load *list = calloc(m->n_region_loads + 1, sizeof *list);
    *ret_count = 0;
    for (size_t i = 0; list != NULL && i < m->n_region_loads; i++) {
        const Pb__RegionLoad *r = m->region_loads[i];
        rq__server_load *l = &list[*ret_count];
        if (!take_name(r->region_specifier, l->encoded)) continue;
        rq__reported_load(r, &l->load);
        (*ret_count)++;
    }
    if (list != NULL && *ret_count > 1) qsort(list, *ret_count, sizeof *list, by_name);
    return list;
}

static rq_server_load take_load(const Pb__ServerLoad *m)
{
    rq_server_load load = {
        .requests_per_second = m->number_of_requests,
        .requests = m->total_number_of_requests,
        .reads = m->read_requests_count,
        .writes = m->write_requests_count,
        .begin_ms = m->report_start_time,
        .end_ms = m->report_end_time,
        .used_heap_mb = m->used_heap_mb,
        .max_heap_mb = m->max_heap_mb,
        .info_port = m->has_info_server_port ? m->info_server_port : UINT32_MAX,
    };
    load.has_sink = rq__reported_sink(m->replloadsink, &load.sink);
    return load;
}

static rq_err take_sources(const Pb__ServerLoad *m, rq_arena *arena, rq_source_load **ret)
{
    *ret = rq_arena_calloc(arena, m->n_replloadsource + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->n_replloadsource; i++)
        RQ_TRY(rq__reported_source(m->replloadsource[i], arena, &(*ret)[i]));
    return RQ_OK;
}

/* They replace those of the last report. */
static rq_err keep_sources(rq_remote *m, const rq_server_name *from, const Pb__ServerLoad *load,
                           rq_error *why)
{
    rq_arena arena = {0};
    rq_source_load *list;
    rq_err rc = take_sources(load, &arena, &list);
    pthread_mutex_lock(&m->lock);
    rq__server *s = rc == RQ_OK ? rq__server_find(m, from) : NULL;
    if (s != NULL) {
        rq_arena old = s->source_arena;
        s->source_arena = arena;
        s->sources = list;
        s->source_count = load->n_replloadsource;
        arena = old;
    }
    pthread_mutex_unlock(&m->lock);
    rq_arena_clear(&arena);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* REQUIRES: lock held. */
static rq_err keep_loads(rq_remote *m, const rq_server_name *from, const Pb__ServerLoad *load,
                         rq__server_load *list, size_t count, rq_error *why)
{
    rq__server *s = rq__server_find(m, from);
    if (s == NULL) return rq_fail(why, RQ_E_SERVER_NOT_RUNNING, "%s has just ended", from->text);
    free(s->loads);
    s->loads = list;
    s->load_count = count;
    s->has_load = true;
    s->load = take_load(load);
    return RQ_OK;
}

static rq_err take_report(rq_remote *m, const rq_server_name *from,
                          const Pb__RegionServerReportRequest *r, rq_error *why)
{
    rq__server_load *list = NULL;
    size_t count = 0;
    RQ_TRY(join(m, from, "REPORT", why));
    pthread_mutex_lock(&m->lock);
    rq__note_lease(m, from, r->has_lease_expired_ms ? &r->lease_expired_ms : NULL);
    pthread_mutex_unlock(&m->lock);
    if (r->load == NULL) return RQ_OK;
    list = take_loads(r->load, &count);
    if (list == NULL) return rq_no_memory(why);
    pthread_mutex_lock(&m->lock);
    rq_err rc = keep_loads(m, from, r->load, list, count, why);
    pthread_mutex_unlock(&m->lock);
    if (rc != RQ_OK) free(list);
    if (rc == RQ_OK) rc = keep_sources(m, from, r->load, why);
    return rc;
}

rq_err rq_remote_server_report(rq_remote *m, const rq_server_name *from, rq_slice request,
                               rq_error *why)
{
    rq_arena a = {0};
    const void *p;
    const rq_server_name *said;
    rq_err rc =
        rq__wire_unpack(&pb__region_server_report_request__descriptor, request, &a, &p, why);
    const Pb__RegionServerReportRequest *r = p;
    if (rc == RQ_OK) rc = rq__wire_take_server(r->server, &a, &said, why);
    if (rc == RQ_OK) rc = rq__check_sender(from, said, why);
    if (rc == RQ_OK) rc = take_report(m, said, r, why);
    rq_arena_clear(&a);
    return rc;
}

bool rq__servers_load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                      rq_region_load *ret)
{
    rq_remote *m = ctx;
    rq__server_load key;
    memcpy(key.encoded, info->encoded, sizeof key.encoded);
    pthread_mutex_lock(&m->lock);
    const rq__server *s = rq__server_find(m, server);
    const rq__server_load *l = s == NULL || s->load_count == 0
                                   ? NULL
                                   : bsearch(&key, s->loads, s->load_count, sizeof key, by_name);
    if (l != NULL) *ret = l->load;
    pthread_mutex_unlock(&m->lock);
    return l != NULL;
}

bool rq__servers_server_load(void *ctx, const rq_server_name *server, rq_server_load *ret)
{
    rq_remote *m = ctx;
    pthread_mutex_lock(&m->lock);
    const rq__server *s = rq__server_find(m, server);
    bool has = s != NULL && s->has_load;
    if (has) *ret = s->load;
    pthread_mutex_unlock(&m->lock);
    return has;
}

static rq_err copy_source(const rq_source_load *from, rq_arena *arena, rq_source_load *ret)
{
    *ret = *from;
    ret->peer = rq_arena_cstr(arena, rq_slice_cstr(from->peer));
    ret->queue = rq_arena_cstr(arena, rq_slice_cstr(from->queue));
    return ret->peer == NULL || ret->queue == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__servers_sources(void *ctx, const rq_server_name *server, rq_arena *arena,
                           rq_source_load **ret, size_t *ret_count)
{
    rq_remote *m = ctx;
    rq_err rc = RQ_OK;
    *ret_count = 0;
    pthread_mutex_lock(&m->lock);
    const rq__server *s = rq__server_find(m, server);
    size_t count = s == NULL ? 0 : s->source_count;
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = copy_source(&s->sources[i], arena, &(*ret)[(*ret_count)++]);
    pthread_mutex_unlock(&m->lock);
    return rc;
}
