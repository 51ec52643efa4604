/* SPDX-License-Identifier: Apache-2.0 */
/* Regions and servers, as hbase:meta and the master describe them. */
#include "remote/remote_priv.h"

#include "base/address.h"
#include "client/status.h"

#include <stdio.h>

/* The regions of an existing table, read again. REQUIRES: the lock. */
static rq_err read_regions(rq__remote *r, rq_slice ns, rq_slice qualifier, rq_client_table **ret,
                           rq_error *why)
{
    char name[512];
    bool is_default = rq_slice_eq(ns, RQ_SLICE_LIT("default"));
    if (ns.len + qualifier.len + 2 > sizeof name)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "the table's name is too long");
    snprintf(name, sizeof name, "%.*s%s%.*s", is_default ? 0 : (int)ns.len, (const char *)ns.ptr,
             is_default ? "" : ":", (int)qualifier.len, (const char *)qualifier.ptr);
    if (rq_client_table_get(r->client, name, ret) != RQ_OK) return rq_no_memory(why);
    return rq_client_table_read(*ret, why);
}

/* RQ_E_TABLE_NOT_FOUND: the master does not know it. */
static rq_err check_table(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_why *why)
{
    rq_buf schema = {0};
    bool enabled;
    rq_err rc = rq__remote_describe(db, slot, ns, qualifier, &schema, &enabled, why);
    rq_buf_clear(&schema);
    return rc;
}

static rq_err add_region(rq_client_region region, rq_region_finding *ret)
{
    if (region.port == 0) return RQ_OK; /* it has no server */
    return rq_region_found(ret, region.name, region.start, region.end,
                           RQ_HOST_PORT(region.host, region.port));
}

rq_err rq__remote_regions(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                          rq_region_finding *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_client_table *t;
    RQ_TRY(check_table(db, slot, ns, qualifier, why));
    pthread_mutex_lock(&r->lock);
    rq_err rc = read_regions(r, ns, qualifier, &t, &why->error);
    for (size_t i = 0; rc == RQ_OK && i < rq_client_table_regions(t); i++)
        rc = add_region(rq_client_table_region(t, i), ret);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

rq_err rq__remote_compact(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                          rq_slice family, bool major, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_client_failure failure = {.retry = false};
    rq_client_table *t;
    RQ_TRY(check_table(db, slot, ns, qualifier, why));
    pthread_mutex_lock(&r->lock);
    rq_err rc = read_regions(r, ns, qualifier, &t, &why->error);
    /* The list may be read anew between two calls. */
    for (size_t i = 0; rc == RQ_OK && i < rq_client_table_regions(t); i++)
        if ((rc = rq_client_compact(t, i, family, major, &failure)) != RQ_OK)
            rq__client_failure(&failure, rc, why);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* --- the cluster ------------------------------------------------------------------------------ */

static const char *name_of(rq_arena *arena, const rq_server_name *n)
{
    return rq_arena_printf(arena, "%.*s,%u,%lld", (int)n->host.len, (const char *)n->host.ptr,
                           n->port, (long long)n->start_ms);
}

static rq_err take_status(const rq_cluster_status *status, rq_cluster_finding *ret)
{
    rq_server_info *servers =
        rq_arena_calloc(ret->arena, status->server_count + 1, sizeof *servers);
    if (servers == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < status->server_count; i++)
        servers[i] = (rq_server_info){.name = name_of(ret->arena, &status->servers[i].name),
                                      .region_count = status->servers[i].region_count};
    *ret->info = (rq_cluster_info){.id = rq_arena_cstr(ret->arena, status->cluster_id),
                                   .version = rq_arena_cstr(ret->arena, status->version),
                                   .master = name_of(ret->arena, &status->master),
                                   .servers = servers,
                                   .server_count = status->server_count,
                                   .dead_server_count = status->dead_count};
    return RQ_OK;
}

rq_err rq__remote_cluster(rq_db *db, rq_slot *slot, rq_cluster_finding *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_cluster_status status = {0};
    (void)slot;
    pthread_mutex_lock(&r->lock);
    rq_err rc = rq_client_status(r->client, &status, &why->error);
    pthread_mutex_unlock(&r->lock);
    if (rc == RQ_OK && take_status(&status, ret) != RQ_OK) rc = rq_no_memory(&why->error);
    rq_cluster_status_clear(&status);
    return rc;
}
