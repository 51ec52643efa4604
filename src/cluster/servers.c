/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that a master knows: which of them take regions, where the next region goes, and
 * their last reports. */
#include "cluster/remote_priv.h"

#include "base/pb_arena.h"
#include "cluster/wire_priv.h"
#include "proto/cluster_status.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#include <stdlib.h>
#include <string.h>

static rq__server *find(const rq_remote *m, const rq_server_name *name)
{
    rq__server *s = m->servers;
    while (s != NULL && strcmp(s->name->text, name->text) != 0)
        s = s->next;
    return s;
}

bool rq__server_is_up(const rq_remote *m, const rq_server_name *name)
{
    return find(m, name) != NULL;
}

static void server_free(rq__server *s)
{
    rq_server_name_unref(s->name);
    free(s->loads);
    free(s);
}

void rq__servers_clear(rq_remote *m)
{
    while (m->servers != NULL) {
        rq__server *s = m->servers;
        m->servers = s->next;
        server_free(s);
    }
}

rq_err rq_remote_server_up(rq_remote *m, const rq_server_name *name)
{
    rq__server *s = calloc(1, sizeof *s);
    const rq_server_name *own = rq_server_name_new(name);
    if (s == NULL || own == NULL) {
        free(s);
        rq_server_name_unref(own);
        return RQ_E_NO_MEMORY;
    }
    s->name = own;
    pthread_mutex_lock(&m->lock);
    bool known = rq__server_is_up(m, own);
    if (!known) {
        s->next = m->servers;
        m->servers = s;
        m->server_count++;
    }
    pthread_mutex_unlock(&m->lock);
    if (!known) return RQ_OK;
    rq_server_name_unref(own);
    free(s);
    return RQ_OK;
}

void rq_remote_server_down(rq_remote *m, const rq_server_name *name)
{
    rq_error why = {0};
    rq__server *gone = NULL;
    pthread_mutex_lock(&m->lock);
    for (rq__server **at = &m->servers; *at != NULL && gone == NULL;) {
        if (strcmp((*at)->name->text, name->text) == 0) {
            gone = *at;
            *at = gone->next;
            m->server_count--;
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&m->lock);
    if (gone == NULL) return;
    rq_err rc = rq_fail(&why, RQ_E_SERVER_NOT_RUNNING, "%s is down", gone->name->text);
    rq__end_calls_to(m, gone->name, rc, &why);
    server_free(gone);
}

/* In turn. */
const rq_server_name *rq__servers_place(void *ctx, const rq_region_info *info)
{
    rq_remote *m = ctx;
    (void)info;
    pthread_mutex_lock(&m->lock);
    const rq__server *s = m->servers;
    size_t skip = m->server_count == 0 ? 0 : m->turn++ % m->server_count;
    for (; s != NULL && skip > 0; skip--)
        s = s->next;
    const rq_server_name *name = s == NULL ? NULL : rq_server_name_ref(s->name);
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
        l->load.stores = r->stores;
        l->load.storefiles = r->storefiles;
        l->load.storefile_bytes = (uint64_t)r->storefile_size_mb << 20;
        l->load.memstore_bytes = (uint64_t)r->mem_store_size_mb << 20;
        l->load.read_requests = r->read_requests_count;
        l->load.write_requests = r->write_requests_count;
        l->load.max_flushed_seqid = r->complete_sequence_id;
        (*ret_count)++;
    }
    if (list != NULL && *ret_count > 1) qsort(list, *ret_count, sizeof *list, by_name);
    return list;
}

/* REQUIRES: lock held. */
static rq_err keep_loads(rq_remote *m, const rq_server_name *from, rq__server_load *list,
                         size_t count, rq_error *why)
{
    rq__server *s = find(m, from);
    if (s == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Server REPORT rejected; currently processing %s as dead server",
                       from->text);
    free(s->loads);
    s->loads = list;
    s->load_count = count;
    return RQ_OK;
}

rq_err rq_remote_server_report(rq_remote *m, rq_slice request, rq_error *why)
{
    rq_arena a = {0};
    const void *p;
    const rq_server_name *from;
    rq__server_load *list = NULL;
    size_t count = 0;
    rq_err rc =
        rq__wire_unpack(&pb__region_server_report_request__descriptor, request, &a, &p, why);
    const Pb__RegionServerReportRequest *r = p;
    if (rc == RQ_OK) rc = rq__wire_take_server(r->server, &a, &from, why);
    if (rc == RQ_OK && r->load != NULL) {
        list = take_loads(r->load, &count);
        if (list == NULL) rc = rq_no_memory(why);
    }
    if (rc == RQ_OK) {
        pthread_mutex_lock(&m->lock);
        rc = keep_loads(m, from, list, count, why);
        pthread_mutex_unlock(&m->lock);
    }
    if (rc != RQ_OK) free(list);
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
    const rq__server *s = find(m, server);
    const rq__server_load *l = s == NULL || s->load_count == 0
                                   ? NULL
                                   : bsearch(&key, s->loads, s->load_count, sizeof key, by_name);
    if (l != NULL) *ret = l->load;
    pthread_mutex_unlock(&m->lock);
    return l != NULL;
}
