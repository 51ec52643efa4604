/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas, as clients set and read them: MasterService's SetQuota, GetQuotaStates,
 * GetSpaceQuotaRegionSizes and the switches; AdminService's GetSpaceQuotaSnapshots. The quotas
 * themselves are read by clients from hbase:quota. HBASE: MasterRpcServices, RSRpcServices. */
#include "service/listing.h"
#include "service/master_priv.h"
#include "service/messages.h"

#include "descriptor/schema.h"
#include "quota/quota.h"

#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"

static void start(void *ctx, rq_call *call, size_t size, rq_err (*work)(rq__blocking *),
                  void (*answer)(rq__blocking *))
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, size); /* begins with the rq__blocking */
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, ctx, call, work, answer);
}

/* --- SetQuota --------------------------------------------------------------------------------- */

static rq_err set_work(rq__blocking *b)
{
    const Pb__SetQuotaRequest *r = (const Pb__SetQuotaRequest *)b->call->param;
    if (b->services->quotas == NULL)
        return rq_fail(&b->why, RQ_E_DO_NOT_RETRY,
                       "java.lang.UnsupportedOperationException: quota support disabled");
    return rq_quotas_set(b->services->quotas, r, &b->why);
}

static void set_answer(rq__blocking *b)
{
    Pb__SetQuotaResponse response = PB__SET_QUOTA_RESPONSE__INIT;
    rq_call_reply(b->call, &response.base);
}

void rq__set_quota(void *ctx, rq_call *call)
{
    start(ctx, call, sizeof(rq__blocking), set_work, set_answer);
}

/* --- switches --------------------------------------------------------------------------------- */

typedef struct switch_job {
    rq__blocking blocking;
    bool before;
} switch_job;

static rq_err throttle_work(rq__blocking *b)
{
    switch_job *j = RQ_CONTAINER_OF(b, switch_job, blocking);
    const Pb__SwitchRpcThrottleRequest *r = (const Pb__SwitchRpcThrottleRequest *)b->call->param;
    if (b->services->quotas == NULL) return RQ_OK;
    return rq_quotas_switch_throttle(b->services->quotas, r->rpc_throttle_enabled, &j->before,
                                     &b->why);
}

static rq_err exceed_work(rq__blocking *b)
{
    switch_job *j = RQ_CONTAINER_OF(b, switch_job, blocking);
    const Pb__SwitchExceedThrottleQuotaRequest *r =
        (const Pb__SwitchExceedThrottleQuotaRequest *)b->call->param;
    if (b->services->quotas == NULL) return RQ_OK;
    return rq_quotas_switch_exceed(b->services->quotas, r->exceed_throttle_quota_enabled,
                                   &j->before, &b->why);
}

/* Both answers are `required bool … = 1`. */
static void reply_bool(rq_call *call, bool value)
{
    Pb__IsRpcThrottleEnabledResponse response = PB__IS_RPC_THROTTLE_ENABLED_RESPONSE__INIT;
    response.rpc_throttle_enabled = value;
    rq_call_reply(call, &response.base);
}

static void switch_answer(rq__blocking *b)
{
    reply_bool(b->call, RQ_CONTAINER_OF(b, switch_job, blocking)->before);
}

void rq__switch_rpc_throttle(void *ctx, rq_call *call)
{
    start(ctx, call, sizeof(switch_job), throttle_work, switch_answer);
}

void rq__switch_exceed_throttle(void *ctx, rq_call *call)
{
    start(ctx, call, sizeof(switch_job), exceed_work, switch_answer);
}

void rq__is_rpc_throttle_enabled(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    reply_bool(call, s->quotas != NULL && rq_quotas_throttle_is_on(s->quotas));
}

/* --- space ------------------------------------------------------------------------------------ */

static Pb__TableName *name_of(rq_arena *arena, rq_slice table)
{
    rq_slice ns, qualifier;
    if (rq_table_name_parse(table, &ns, &qualifier, NULL) != RQ_OK) return NULL;
    return rq__table_name_message(arena, ns, qualifier);
}

static Pb__SpaceQuotaSnapshot *snapshot_of(rq_arena *arena, const rq_space_state *s)
{
    Pb__SpaceQuotaSnapshot *m = rq_arena_alloc(arena, sizeof *m);
    Pb__SpaceQuotaStatus *status = rq_arena_alloc(arena, sizeof *status);
    if (m == NULL || status == NULL) return NULL;
    pb__space_quota_snapshot__init(m);
    pb__space_quota_status__init(status);
    status->has_in_violation = 1;
    status->in_violation = s->is_violated;
    status->has_violation_policy = s->is_violated;
    status->violation_policy = s->policy;
    m->quota_status = status;
    m->has_quota_usage = m->has_quota_limit = 1;
    m->quota_usage = s->usage;
    m->quota_limit = s->limit;
    return m;
}

static rq_err space_states(const rq_admin_services *s, rq_arena *arena, rq_space_state **ret,
                           size_t *ret_count)
{
    *ret_count = 0;
    return s->quotas == NULL ? RQ_OK : rq_quotas_space(s->quotas, arena, ret, ret_count);
}

static rq_err add_state(rq_arena *arena, const rq_space_state *s, Pb__GetQuotaStatesResponse *m)
{
    Pb__SpaceQuotaSnapshot *snapshot = snapshot_of(arena, s);
    if (snapshot == NULL) return RQ_E_NO_MEMORY;
    if (s->is_namespace) {
        Pb__GetQuotaStatesResponse__NamespaceQuotaSnapshot *n = rq_arena_alloc(arena, sizeof *n);
        if (n == NULL) return RQ_E_NO_MEMORY;
        pb__get_quota_states_response__namespace_quota_snapshot__init(n);
        n->namespace_ = rq_arena_cstr(arena, s->table);
        n->snapshot = snapshot;
        m->ns_snapshots[m->n_ns_snapshots++] = n;
        return n->namespace_ == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    Pb__GetQuotaStatesResponse__TableQuotaSnapshot *t = rq_arena_alloc(arena, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    pb__get_quota_states_response__table_quota_snapshot__init(t);
    t->table_name = name_of(arena, s->table);
    t->snapshot = snapshot;
    m->table_snapshots[m->n_table_snapshots++] = t;
    return t->table_name == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* The next two lists may have an entry for each of 100,000 tables: they are made on a thread. */

typedef struct states_job {
    rq__blocking blocking;
    Pb__GetQuotaStatesResponse response;
} states_job;

static rq_err states_work(rq__blocking *b)
{
    Pb__GetQuotaStatesResponse *m = &RQ_CONTAINER_OF(b, states_job, blocking)->response;
    rq_arena *arena = &b->call->arena;
    rq_space_state *list;
    size_t count;
    pb__get_quota_states_response__init(m);
    RQ_TRY(space_states(b->services, arena, &list, &count));
    m->table_snapshots = rq_arena_calloc(arena, count + 1, sizeof *m->table_snapshots);
    m->ns_snapshots = rq_arena_calloc(arena, count + 1, sizeof *m->ns_snapshots);
    if (m->table_snapshots == NULL || m->ns_snapshots == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(add_state(arena, &list[i], m));
    return RQ_OK;
}

static void states_answer(rq__blocking *b)
{
    rq_call_reply(b->call, &RQ_CONTAINER_OF(b, states_job, blocking)->response.base);
}

void rq__get_quota_states(void *ctx, rq_call *call)
{
    start(ctx, call, sizeof(states_job), states_work, states_answer);
}

typedef struct snapshots_job {
    rq__blocking blocking;
    Pb__GetSpaceQuotaSnapshotsResponse response;
} snapshots_job;

static rq_err add_snapshot(rq_arena *arena, const rq_space_state *s,
                           Pb__GetSpaceQuotaSnapshotsResponse *m)
{
    Pb__GetSpaceQuotaSnapshotsResponse__TableQuotaSnapshot *t = rq_arena_alloc(arena, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    pb__get_space_quota_snapshots_response__table_quota_snapshot__init(t);
    t->table_name = name_of(arena, s->table);
    t->snapshot = snapshot_of(arena, s);
    m->snapshots[m->n_snapshots++] = t;
    return t->table_name == NULL || t->snapshot == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err snapshots_work(rq__blocking *b)
{
    Pb__GetSpaceQuotaSnapshotsResponse *m = &RQ_CONTAINER_OF(b, snapshots_job, blocking)->response;
    rq_arena *arena = &b->call->arena;
    rq_space_state *list;
    size_t count;
    pb__get_space_quota_snapshots_response__init(m);
    RQ_TRY(space_states(b->services, arena, &list, &count));
    m->snapshots = rq_arena_calloc(arena, count + 1, sizeof *m->snapshots);
    if (m->snapshots == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!list[i].is_namespace) RQ_TRY(add_snapshot(arena, &list[i], m));
    return RQ_OK;
}

static void snapshots_answer(rq__blocking *b)
{
    rq_call_reply(b->call, &RQ_CONTAINER_OF(b, snapshots_job, blocking)->response.base);
}

void rq__get_space_quota_snapshots(void *ctx, rq_call *call)
{
    start(ctx, call, sizeof(snapshots_job), snapshots_work, snapshots_answer);
}

/* --- sizes of tables -------------------------------------------------------------------------- */

typedef Pb__GetSpaceQuotaRegionSizesResponse__RegionSizes table_size;

/* NULL: out of memory. */
static table_size *size_of(rq_arena *arena, const rq_catalog_table *table)
{
    table_size *t = rq_arena_alloc(arena, sizeof *t);
    if (t == NULL) return NULL;
    pb__get_space_quota_region_sizes_response__region_sizes__init(t);
    t->table_name = rq__table_name_message(arena, table->schema->ns, table->schema->qualifier);
    t->has_size = 1;
    for (size_t k = 0; k < table->region_count; k++) {
        rq_region_load load = {0};
        rq_region *region = rq_catalog_table_region(table, k)->region;
        if (region != NULL) rq_region_get_load(region, &load);
        t->size += load.hfile_bytes;
    }
    return t->table_name == NULL ? NULL : t;
}

static rq_err list_sizes(rq__listing *l, rq_slice *ret)
{
    const rq_admin_services *s = l->services;
    rq_arena *arena = &l->call->arena;
    const rq_catalog_table *const *tables;
    size_t count;
    Pb__GetSpaceQuotaRegionSizesResponse m = PB__GET_SPACE_QUOTA_REGION_SIZES_RESPONSE__INIT;
    if (s->quotas == NULL || !rq_quotas_enabled(s->quotas))
        return rq__listing_pack(l, &m.base, ret);
    rq_catalog_tables(s->catalog, &tables, &count);
    m.sizes = rq_arena_alloc(arena, (count + 1) * sizeof(void *));
    if (m.sizes == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (tables[i]->state == RQ_TABLE_DISABLED) continue;
        table_size *t = size_of(arena, tables[i]);
        if (t == NULL) return RQ_E_NO_MEMORY;
        m.sizes[m.n_sizes++] = t;
    }
    return rq__listing_pack(l, &m.base, ret);
}

/* The sizes of the tables' store files, of those with open regions. */
void rq__get_region_sizes(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, list_sizes);
}
