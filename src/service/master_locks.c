/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LockService (RequestLock, LockHeartbeat), and GetLocks of MasterService. A lock of a client is a
 * procedure of its own (catalog/locks.c). GetLocks shows the locks of unfinished procedures:
 * procedures of a table share its namespace's lock, and procedures of regions also share the
 * table's lock. HBASE: MasterRpcServices, MasterProcedureScheduler.getLocks.
 */
#include "descriptor/schema.h"
#include "service/listing.h"
#include "service/master_priv.h"
#include "service/messages.h"
#include "service/slow_text.h"

#include "proto/master.pb-c.h"
#include "proto/procedure.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* --- RequestLock ------------------------------------------------------------------------------ */

static rq_err refuse(rq_error *why, const char *text)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "java.lang.IllegalArgumentException: %s", text);
}

static rq_err of_regions(const Pb__LockRequest *r, rq_arena *arena, rq_ddl *d, rq_error *why)
{
    const Pb__TableName *table = r->region_info[0]->table_name;
    rq_slice *names = rq_arena_calloc(arena, r->n_region_info, sizeof *names);
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->n_region_info; i++) {
        const Pb__RegionInfo *m = r->region_info[i];
        rq_region_info info;
        if (!rq_slice_eq(rq__pb_slice(m->table_name->namespace_),
                         rq__pb_slice(table->namespace_)) ||
            !rq_slice_eq(rq__pb_slice(m->table_name->qualifier), rq__pb_slice(table->qualifier)))
            return refuse(why, "All regions should be from same table");
        RQ_TRY(rq_region_info_make(arena, rq__pb_slice(m->table_name->namespace_),
                                   rq__pb_slice(m->table_name->qualifier),
                                   rq__pb_slice(m->start_key), rq__pb_slice(m->end_key),
                                   (int64_t)m->region_id, m->replica_id, &info));
        names[i] = rq_arena_copy(arena, rq_slice_cstr(info.encoded));
        if (names[i].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    d->kind = RQ_DDL_LOCK_REGIONS;
    d->ns = rq__pb_slice(table->namespace_);
    d->qualifier = rq__pb_slice(table->qualifier);
    d->of.lock.regions = names;
    d->of.lock.region_count = r->n_region_info;
    return RQ_OK;
}

static rq_err fill_lock(const Pb__LockRequest *r, rq_arena *arena, rq_ddl *d, rq_error *why)
{
    bool shared = r->lock_type == PB__LOCK_TYPE__SHARED;
    if (r->description == NULL || r->description[0] == '\0')
        return refuse(why, "Empty description");
    d->of.lock.description = rq_slice_cstr(r->description);
    if (r->n_region_info > 0) return of_regions(r, arena, d, why);
    if (r->table_name != NULL) {
        d->kind = shared ? RQ_DDL_LOCK_TABLE_SHARED : RQ_DDL_LOCK_TABLE;
        d->ns = rq__pb_slice(r->table_name->namespace_);
        d->qualifier = rq__pb_slice(r->table_name->qualifier);
        return rq_table_name_join(arena, d->ns, d->qualifier).ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    if (r->namespace_ == NULL)
        return refuse(why, "one of table/namespace/region should be specified");
    if (r->namespace_[0] == '\0') return refuse(why, "Empty namespace");
    if (shared) return refuse(why, "Shared lock on namespace not supported");
    d->kind = RQ_DDL_LOCK_NAMESPACE;
    d->ns = rq_slice_cstr(r->namespace_);
    return RQ_OK;
}

/* Answered with the procedure's id before the lock is granted: the client learns of the grant by
 * heartbeats. */
static void request_lock(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__LockRequest *r = (const Pb__LockRequest *)call->param;
    rq_error why = {.code = RQ_OK};
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_LOCK_TABLE, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.early = true;
    rq_err rc = fill_lock(r, &call->arena, &j->ddl, &why);
    if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &why);
    else
        rq_catalog_submit(s->catalog, &j->ddl);
}

static void lock_heartbeat(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__LockHeartbeatRequest *r = (const Pb__LockHeartbeatRequest *)call->param;
    Pb__LockHeartbeatResponse response = PB__LOCK_HEARTBEAT_RESPONSE__INIT;
    rq_error why = {.code = RQ_OK};
    bool held;
    rq_err rc = rq_catalog_lock_heartbeat(s->catalog, r->proc_id, r->keep_alive, &held, &why);
    if (rc != RQ_OK) {
        rq_call_fail_why(call, rc, &why);
        return;
    }
    response.lock_status = held ? PB__LOCK_HEARTBEAT_RESPONSE__LOCK_STATUS__LOCKED
                                : PB__LOCK_HEARTBEAT_RESPONSE__LOCK_STATUS__UNLOCKED;
    response.has_timeout_ms = held;
    response.timeout_ms = (uint32_t)rq_config_int(s->config, RQ_SET_LOCK_TIMEOUT);
    rq_call_reply(call, &response.base);
}

static const rq_rpc_method methods[] = {
    {"RequestLock", &pb__lock_request__descriptor, request_lock},
    {"LockHeartbeat", &pb__lock_heartbeat_request__descriptor, lock_heartbeat},
};

rq_rpc_service rq_lock_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "LockService", methods, RQ_ARRAY_LEN(methods));
}

/* --- GetLocks --------------------------------------------------------------------------------- */

/* A procedure's claim on something. */
typedef struct claim {
    Pb__LockedResourceType type;
    rq_slice name;
    bool exclusive, waits;
    const rq_procedure *procedure;
} claim;

typedef struct claims {
    claim *list;
    size_t count;
} claims;

static int claim_order(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    if (x->type != y->type) return (x->type > y->type) - (x->type < y->type);
    int by_name = rq_slice_compare(x->name, y->name);
    if (by_name != 0) return by_name;
    return (x->procedure->id > y->procedure->id) - (x->procedure->id < y->procedure->id);
}

static void add(claims *c, const rq_procedure *p, Pb__LockedResourceType type, rq_slice name,
                bool exclusive)
{
    c->list[c->count++] = (claim){type, name, exclusive, p->waiting, p};
}

static rq_err add_claims(claims *c, rq_arena *arena, const rq_procedure *p)
{
    bool exclusive_ns = p->level == RQ_LOCK_NAMESPACE;
    add(c, p, PB__LOCKED_RESOURCE_TYPE__NAMESPACE, p->ns, exclusive_ns);
    if (exclusive_ns) return RQ_OK;
    rq_slice table = rq_table_name_join(arena, p->ns, p->qualifier);
    if (table.ptr == NULL) return RQ_E_NO_MEMORY;
    add(c, p, PB__LOCKED_RESOURCE_TYPE__TABLE, table, p->level == RQ_LOCK_TABLE);
    for (size_t i = 0; i < p->region_count; i++)
        add(c, p, PB__LOCKED_RESOURCE_TYPE__REGION, p->regions[i], true);
    return RQ_OK;
}

static rq_err collect(const rq_procedure *list, size_t count, rq_arena *arena, claims *ret)
{
    size_t cap = 1;
    for (size_t i = 0; i < count; i++)
        cap += 2 + list[i].region_count;
    ret->count = 0;
    ret->list = rq_arena_alloc(arena, cap * sizeof *ret->list);
    if (ret->list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(add_claims(ret, arena, &list[i]));
    if (ret->count > 1) qsort(ret->list, ret->count, sizeof *ret->list, claim_order);
    return RQ_OK;
}

/* The claims on one lock. NULL: no procedure has claimed it, or no memory (*ret_failed). */
static Pb__LockedResource *resource(rq_arena *arena, const claim *list, size_t count,
                                    bool *ret_failed)
{
    Pb__LockedResource *m = rq_arena_alloc(arena, sizeof *m);
    Pb__Procedure **waiting = rq_arena_alloc(arena, count * sizeof(Pb__Procedure *));
    *ret_failed = m == NULL || waiting == NULL;
    if (*ret_failed) return NULL;
    pb__locked_resource__init(m);
    m->resource_type = list[0].type;
    m->resource_name = rq_arena_cstr(arena, list[0].name);
    m->lock_type = PB__LOCK_TYPE__SHARED;
    m->waitingprocedures = waiting;
    m->has_shared_lock_count = 1;
    for (size_t i = 0; i < count; i++) {
        const claim *c = &list[i];
        bool shows = c->exclusive || c->waits;
        Pb__Procedure *p = shows ? rq__procedure_message(arena, c->procedure) : NULL;
        *ret_failed |= shows && p == NULL;
        if (c->waits)
            waiting[m->n_waitingprocedures++] = p;
        else if (c->exclusive)
            m->exclusive_lock_owner_procedure = p;
        else
            m->shared_lock_count++;
    }
    *ret_failed |= m->resource_name == NULL;
    if (m->exclusive_lock_owner_procedure != NULL) {
        m->lock_type = PB__LOCK_TYPE__EXCLUSIVE;
        m->has_shared_lock_count = 0;
    }
    bool held = m->exclusive_lock_owner_procedure != NULL || m->shared_lock_count > 0;
    return held && !*ret_failed ? m : NULL;
}

static rq_err collect_locks(rq_admin_services *s, rq_arena *arena, Pb__GetLocksResponse *m)
{
    rq_procedure *list;
    size_t count, end;
    claims all;
    RQ_TRY(rq_catalog_unfinished_procedures(s->catalog, arena, &list, &count));
    RQ_TRY(collect(list, count, arena, &all));
    m->lock = rq_arena_alloc(arena, (all.count + 1) * sizeof(Pb__LockedResource *));
    if (m->lock == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < all.count; i = end) {
        bool failed;
        for (end = i + 1; end < all.count && all.list[end].type == all.list[i].type &&
                          rq_slice_eq(all.list[end].name, all.list[i].name);)
            end++;
        Pb__LockedResource *r = resource(arena, &all.list[i], end - i, &failed);
        if (failed) return RQ_E_NO_MEMORY;
        if (r != NULL) m->lock[m->n_lock++] = r;
    }
    return RQ_OK;
}

static rq_err list_locks(rq__listing *l, rq_slice *ret)
{
    Pb__GetLocksResponse response = PB__GET_LOCKS_RESPONSE__INIT;
    RQ_TRY(collect_locks(l->services, &l->call->arena, &response));
    return rq__listing_pack(l, &response.base, ret);
}

void rq__get_locks(void *ctx, rq_call *call)
{
    rq__listing_reply_long(ctx, call, list_locks);
}
