/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: changes of tables and namespaces. Each change is a procedure of the catalog; the answer is
 * its id once it is accepted, and the client polls getProcedureResult (procedure_result.c). HBASE:
 * MasterRpcServices. */
#include "service/master_priv.h"
#include "service/messages.h"

#include "proto/admin.pb-c.h"
#include "proto/master.pb-c.h"

/* All these answers are either `optional uint64 proc_id = 1` or empty, so one message type encodes
 * them all. */
static void ddl_submitted(rq_ddl *ddl)
{
    rq__ddl_job *j = RQ_CONTAINER_OF(ddl, rq__ddl_job, ddl);
    if (ddl->rc != RQ_OK) {
        rq_call_fail_why(j->call, ddl->rc, &ddl->why);
        return;
    }
    Pb__CreateTableResponse response = PB__CREATE_TABLE_RESPONSE__INIT;
    response.has_proc_id = !j->silent;
    response.proc_id = ddl->proc_id;
    rq_call_reply(j->call, &response.base);
}

rq_slice rq__packed(rq_arena *arena, const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *p = rq_arena_alloc(arena, len == 0 ? 1 : len);
    if (p == NULL) return (rq_slice){NULL, 0};
    protobuf_c_message_pack(m, p);
    return rq_slice_of(p, len);
}

rq__ddl_job *rq__ddl_job_new(rq_call *call, rq_ddl_kind kind, uint64_t nonce_group, uint64_t nonce)
{
    rq__ddl_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return NULL;
    }
    j->call = call;
    j->ddl.kind = kind;
    j->ddl.nonce_group = nonce_group;
    j->ddl.nonce = nonce;
    j->ddl.user = rq_slice_cstr(call->client->user);
    j->ddl.client = call->client->id;
    j->ddl.lane = rq_loop_lane(call->loop);
    j->ddl.submitted = ddl_submitted;
    return j;
}

typedef struct waiting_ddl {
    rq_ddl ddl;
    rq_latch latch;
} waiting_ddl;

static void wake_waiting(rq_ddl *ddl)
{
    waiting_ddl *w = RQ_CONTAINER_OF(ddl, waiting_ddl, ddl);
    w->latch.executor->latch_open(&w->latch, RQ_OK);
}

rq_err rq__submit_and_wait(rq_admin_services *s, rq_ddl *ddl, rq_error *why)
{
    rq_executor *ex = s->env.executor;
    waiting_ddl w = {.ddl = *ddl};
    w.ddl.lane = NULL;
    w.ddl.submitted = wake_waiting;
    ex->latch_init(ex, &w.latch);
    rq_catalog_submit(s->catalog, &w.ddl);
    rq_err rc = ex->latch_wait(&w.latch);
    ex->latch_destroy(&w.latch);
    ddl->proc_id = w.ddl.proc_id;
    if (rc == RQ_OK) rc = w.ddl.rc;
    if (rc == RQ_OK) return RQ_OK;
    return w.ddl.why.code == RQ_OK ? rc : rq_fail(why, rc, "%s", w.ddl.why.message);
}

static rq__ddl_job *table_ddl(rq_call *call, rq_ddl_kind kind, const Pb__TableName *table,
                              uint64_t nonce_group, uint64_t nonce)
{
    rq__ddl_job *j = rq__ddl_job_new(call, kind, nonce_group, nonce);
    if (j == NULL) return NULL;
    j->ddl.ns = rq__pb_slice(table->namespace_);
    j->ddl.qualifier = rq__pb_slice(table->qualifier);
    return j;
}

/* Clients before 2.0 do not poll procedures for a truncate or a namespace change: they take the
 * answer as its end. So they get the answer when the procedure has finished. */
static bool takes_answer_for_end(const rq__ddl_job *j)
{
    switch (j->ddl.kind) {
    case RQ_DDL_TRUNCATE_TABLE:
    case RQ_DDL_CREATE_NAMESPACE:
    case RQ_DDL_MODIFY_NAMESPACE:
    case RQ_DDL_DELETE_NAMESPACE:
        return !rq_rpc_client_at_least(j->call->client, 2, 0);
    default:
        return false;
    }
}

static void submit(rq_admin_services *s, rq__ddl_job *j)
{
    j->ddl.wait_finished = takes_answer_for_end(j);
    rq_catalog_submit(s->catalog, &j->ddl);
}

/* Submits with the serialized message in `*field`, a field of j->ddl. */
static void submit_packed(rq_admin_services *s, rq__ddl_job *j, rq_slice *field,
                          const ProtobufCMessage *m)
{
    *field = rq__packed(&j->call->arena, m);
    if (field->ptr == NULL)
        rq_call_fail(j->call, RQ_E_NO_MEMORY, NULL);
    else
        submit(s, j);
}

/* --- tables ----------------------------------------------------------------------------------- */

typedef struct create_job {
    rq__blocking blocking;
    rq__ddl_job *ddl;
} create_job;

/* There may be a million split keys. */
static rq_err fill_create(rq__blocking *b)
{
    rq_ddl *d = &RQ_CONTAINER_OF(b, create_job, blocking)->ddl->ddl;
    const Pb__CreateTableRequest *r = (const Pb__CreateTableRequest *)b->call->param;
    rq_arena *arena = &b->call->arena;
    rq_slice *keys = rq_arena_alloc(arena, (r->n_split_keys + 1) * sizeof *keys);
    if (keys == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->n_split_keys; i++)
        keys[i] = rq__pb_slice(r->split_keys[i]);
    d->of.create.split_keys = keys;
    d->of.create.split_key_count = r->n_split_keys;
    d->of.create.schema = rq__packed(arena, &r->table_schema->base);
    return d->of.create.schema.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void submit_create(rq__blocking *b)
{
    submit(b->services, RQ_CONTAINER_OF(b, create_job, blocking)->ddl);
}

void rq__create_table(void *ctx, rq_call *call)
{
    const Pb__CreateTableRequest *r = (const Pb__CreateTableRequest *)call->param;
    if (r->table_schema->table_name == NULL) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "a table needs a name");
        return;
    }
    rq__ddl_job *j =
        table_ddl(call, RQ_DDL_CREATE_TABLE, r->table_schema->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    create_job *c = rq_arena_calloc(&call->arena, 1, sizeof *c);
    if (c == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    c->ddl = j;
    rq__blocking_start(&c->blocking, ctx, call, fill_create, submit_create);
}

void rq__delete_table(void *ctx, rq_call *call)
{
    const Pb__DeleteTableRequest *r = (const Pb__DeleteTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_DELETE_TABLE, r->table_name, r->nonce_group, r->nonce);
    if (j != NULL) submit(ctx, j);
}

void rq__truncate_table(void *ctx, rq_call *call)
{
    const Pb__TruncateTableRequest *r = (const Pb__TruncateTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_TRUNCATE_TABLE, r->tablename, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.of.truncate.preserve_splits = r->preservesplits;
    j->ddl.early = rq_rpc_client_at_least(call->client, 2, 0);
    submit(ctx, j);
}

void rq__enable_table(void *ctx, rq_call *call)
{
    const Pb__EnableTableRequest *r = (const Pb__EnableTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_ENABLE_TABLE, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.early = rq_rpc_client_at_least(call->client, 1, 1);
    submit(ctx, j);
}

void rq__disable_table(void *ctx, rq_call *call)
{
    const Pb__DisableTableRequest *r = (const Pb__DisableTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_DISABLE_TABLE, r->table_name, r->nonce_group, r->nonce);
    if (j != NULL) submit(ctx, j);
}

void rq__modify_table(void *ctx, rq_call *call)
{
    const Pb__ModifyTableRequest *r = (const Pb__ModifyTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_MODIFY_TABLE, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.of.modify.no_reopen = r->has_reopen_regions && !r->reopen_regions;
    submit_packed(ctx, j, &j->ddl.of.modify.schema, &r->table_schema->base);
}

void rq__add_column(void *ctx, rq_call *call)
{
    const Pb__AddColumnRequest *r = (const Pb__AddColumnRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_ADD_FAMILY, r->table_name, r->nonce_group, r->nonce);
    if (j != NULL) submit_packed(ctx, j, &j->ddl.of.put_family.schema, &r->column_families->base);
}

void rq__modify_column(void *ctx, rq_call *call)
{
    const Pb__ModifyColumnRequest *r = (const Pb__ModifyColumnRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_MODIFY_FAMILY, r->table_name, r->nonce_group, r->nonce);
    if (j != NULL) submit_packed(ctx, j, &j->ddl.of.put_family.schema, &r->column_families->base);
}

void rq__delete_column(void *ctx, rq_call *call)
{
    const Pb__DeleteColumnRequest *r = (const Pb__DeleteColumnRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_DELETE_FAMILY, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.of.delete_family.family = rq__pb_slice(r->column_name);
    submit(ctx, j);
}

void rq__modify_table_tracker(void *ctx, rq_call *call)
{
    const Pb__ModifyTableStoreFileTrackerRequest *r =
        (const Pb__ModifyTableStoreFileTrackerRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_TABLE_TRACKER, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.of.tracker.name = rq_slice_cstr(r->dst_sft);
    j->ddl.early = true;
    submit(ctx, j);
}

void rq__modify_column_tracker(void *ctx, rq_call *call)
{
    const Pb__ModifyColumnStoreFileTrackerRequest *r =
        (const Pb__ModifyColumnStoreFileTrackerRequest *)call->param;
    rq__ddl_job *j =
        table_ddl(call, RQ_DDL_FAMILY_TRACKER, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.of.tracker.family = rq__pb_slice(r->family);
    j->ddl.of.tracker.name = rq_slice_cstr(r->dst_sft);
    j->ddl.early = true;
    submit(ctx, j);
}

void rq__flush_table(void *ctx, rq_call *call)
{
    const Pb__FlushTableRequest *r = (const Pb__FlushTableRequest *)call->param;
    rq__ddl_job *j = table_ddl(call, RQ_DDL_FLUSH_TABLE, r->table_name, r->nonce_group, r->nonce);
    if (j == NULL) return;
    rq_slice *families = rq_arena_alloc(&call->arena, (r->n_column_family + 1) * sizeof *families);
    if (families == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (size_t i = 0; i < r->n_column_family; i++)
        if (r->column_family[i].len > 0)
            families[j->ddl.of.flush.family_count++] = rq__pb_slice(r->column_family[i]);
    j->ddl.of.flush.families = families;
    j->ddl.early = true;
    submit(ctx, j);
}

/* --- regions: split, merge -------------------------------------------------------------------- */

/* HBASE: HMaster.splitRegion. An empty row means the middle of the region. */
static void split_at(rq_admin_services *s, rq_call *call, const rq_region_info *info, rq_slice row,
                     uint64_t nonce_group, uint64_t nonce, void (*submitted)(rq_ddl *))
{
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_SPLIT_REGION, nonce_group, nonce);
    if (j == NULL) return;
    j->ddl.ns = info->ns;
    j->ddl.qualifier = info->qualifier;
    j->ddl.of.split.region = rq_slice_cstr(info->encoded);
    j->ddl.of.split.row = row;
    j->ddl.of.split.shown_name = info->name;
    j->ddl.submitted = submitted;
    submit(s, j);
}

/* The region that a request names by its RegionInfo; NULL when the call has been answered.
 * `replica` is the error text for a replica. */
static rq_region_info *take_region(rq_call *call, const Pb__RegionInfo *m, const char *replica)
{
    rq_region_info *info = rq_arena_calloc(&call->arena, 1, sizeof *info);
    if (info == NULL || rq_region_info_make(&call->arena, rq__pb_slice(m->table_name->namespace_),
                                            rq__pb_slice(m->table_name->qualifier),
                                            rq__pb_slice(m->start_key), rq__pb_slice(m->end_key),
                                            (int64_t)m->region_id, m->replica_id, info) != RQ_OK) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return NULL;
    }
    if (m->replica_id == 0) return info;
    rq_call_fail(call, RQ_E_ILLEGAL_ARGUMENT, "%s", replica);
    return NULL;
}

void rq__split_region(void *ctx, rq_call *call)
{
    const Pb__SplitTableRegionRequest *r = (const Pb__SplitTableRegionRequest *)call->param;
    rq_region_info *info =
        take_region(call, r->region_info, "Can't invoke split on non-default regions directly");
    if (info != NULL)
        split_at(ctx, call, info, rq__pb_slice(r->split_row), r->nonce_group, r->nonce,
                 ddl_submitted);
}

void rq__truncate_region(void *ctx, rq_call *call)
{
    const Pb__TruncateRegionRequest *r = (const Pb__TruncateRegionRequest *)call->param;
    rq_region_info *info = take_region(call, r->region_info,
                                       "Can't truncate replicas directly.Replicas are "
                                       "auto-truncated when their primary is truncated.");
    rq__ddl_job *j = info == NULL
                         ? NULL
                         : rq__ddl_job_new(call, RQ_DDL_TRUNCATE_REGION, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.ns = info->ns;
    j->ddl.qualifier = info->qualifier;
    j->ddl.of.one_region.region = rq_slice_cstr(info->encoded);
    submit(ctx, j);
}

/* HBASE: MasterRpcServices.mergeTableRegions, MergeTableRegionsProcedure.checkRegionsToMerge. */
static rq_err begin_merge(rq_admin_services *s, rq_call *call, Pb__RegionSpecifier *const *specs,
                          size_t count, rq__ddl_job *j, rq_error *why)
{
    const rq_region_info *first = NULL;
    rq_slice *names = rq_arena_alloc(&call->arena, (count + 1) * sizeof *names);
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        names[i] = rq__encoded_of(specs[i]);
        const rq_catalog_region *r = rq_catalog_region_find(s->catalog, names[i]);
        if (r == NULL) {
            char name[256];
            rq_bytes_to_string(names[i], name, sizeof name);
            return rq_fail(why, RQ_E_UNKNOWN_REGION, "%s", name);
        }
        if (first != NULL && !rq_slice_eq(r->info->table, first->table))
            return rq_fail(why, RQ_E_MERGE_REGION,
                           "Can't merge regions from different tables: %s, %s", first->encoded,
                           r->info->encoded);
        first = r->info;
    }
    if (first == NULL)
        return rq_fail(why, RQ_E_MERGE_REGION, "Need two Regions at least to run a Merge");
    j->ddl.ns = rq_arena_copy(&call->arena, first->ns);
    j->ddl.qualifier = rq_arena_copy(&call->arena, first->qualifier);
    if (j->ddl.ns.ptr == NULL || j->ddl.qualifier.ptr == NULL) return RQ_E_NO_MEMORY;
    j->ddl.of.merge.regions = names;
    j->ddl.of.merge.region_count = count;
    submit(s, j);
    return RQ_OK;
}

void rq__merge_regions(void *ctx, rq_call *call)
{
    const Pb__MergeTableRegionsRequest *r = (const Pb__MergeTableRegionsRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_MERGE_REGIONS, r->nonce_group, r->nonce);
    rq_error why = {.code = RQ_OK};
    if (j == NULL) return;
    j->ddl.of.merge.forcible = r->forcible;
    rq_err rc = begin_merge(ctx, call, r->region, r->n_region, j, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

/* The answer to clients of 1.x only says that the change has begun. */
static void begun(rq_ddl *ddl)
{
    rq__ddl_job *j = RQ_CONTAINER_OF(ddl, rq__ddl_job, ddl);
    if (ddl->rc != RQ_OK)
        rq_call_fail_why(j->call, ddl->rc, &ddl->why);
    else
        rq_call_reply_packed(j->call, rq_slice_of("", 0));
}

/* AdminService.SplitRegion of 1.x. */
void rq__split_region_1x(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__SplitRegionRequest *r = (const Pb__SplitRegionRequest *)call->param;
    rq_error why = {.code = RQ_OK};
    const rq_host_region *region;
    rq_err rc = rq_host_find_encoded(s->host, rq__encoded_of(r->region), &region, &why);
    rq_region_info *info = rq_arena_calloc(&call->arena, 1, sizeof *info);
    if (rc == RQ_OK && info == NULL) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK) {
        const rq_region_info *of = rq_region_get_info(region->region);
        rc = rq_region_info_make(&call->arena, of->ns, of->qualifier, of->start_key, of->end_key,
                                 of->region_id, of->replica_id, info);
    }
    if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &why);
    else
        split_at(s, call, info, rq__pb_slice(r->split_point), 0, 0, begun);
}

/* MasterService.DispatchMergingRegions of 1.x. */
void rq__dispatch_merging_regions(void *ctx, rq_call *call)
{
    const Pb__DispatchMergingRegionsRequest *r =
        (const Pb__DispatchMergingRegionsRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_MERGE_REGIONS, 0, 0);
    rq_error why = {.code = RQ_OK};
    if (j == NULL) return;
    j->ddl.of.merge.forcible = r->forcible;
    j->ddl.submitted = begun;
    Pb__RegionSpecifier *const both[] = {r->region_a, r->region_b};
    rq_err rc = begin_merge(ctx, call, both, 2, j, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

/* --- namespaces ------------------------------------------------------------------------------- */

void rq__create_namespace(void *ctx, rq_call *call)
{
    const Pb__CreateNamespaceRequest *r = (const Pb__CreateNamespaceRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_CREATE_NAMESPACE, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.ns = rq__pb_slice(r->namespacedescriptor->name);
    submit_packed(ctx, j, &j->ddl.of.put_namespace.descriptor, &r->namespacedescriptor->base);
}

void rq__modify_namespace(void *ctx, rq_call *call)
{
    const Pb__ModifyNamespaceRequest *r = (const Pb__ModifyNamespaceRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_MODIFY_NAMESPACE, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.ns = rq__pb_slice(r->namespacedescriptor->name);
    submit_packed(ctx, j, &j->ddl.of.put_namespace.descriptor, &r->namespacedescriptor->base);
}

void rq__delete_namespace(void *ctx, rq_call *call)
{
    const Pb__DeleteNamespaceRequest *r = (const Pb__DeleteNamespaceRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_DELETE_NAMESPACE, r->nonce_group, r->nonce);
    if (j == NULL) return;
    j->ddl.ns = rq_slice_cstr(r->namespacename);
    submit(ctx, j);
}

/* --- the old way to flush a table ------------------------------------------------------------- */
/* HBASE: MasterFlushTableProcedureManager, "flush-table-proc": clients before 2.6 start a flush by
 * ExecProcedure and poll IsProcedureDone. Here the flush is done when ExecProcedure answers, and
 * IsProcedureDone is always true. A table without open regions has nothing to flush. */
#define FLUSH_SIGNATURE "flush-table-proc"
#define FLUSH_FAMILIES "family"
#define EXPECTED_TIMEOUT_MS 60000

static void exec_finished(rq_ddl *ddl)
{
    rq__ddl_job *j = RQ_CONTAINER_OF(ddl, rq__ddl_job, ddl);
    bool nothing_open = ddl->kind == RQ_DDL_FLUSH_TABLE &&
                        (ddl->rc == RQ_E_TABLE_NOT_FOUND || ddl->rc == RQ_E_TABLE_NOT_ENABLED);
    if (ddl->rc != RQ_OK && !nothing_open) {
        rq_call_fail_why(j->call, ddl->rc, &ddl->why);
        return;
    }
    Pb__ExecProcedureResponse response = PB__EXEC_PROCEDURE_RESPONSE__INIT;
    response.has_expected_timeout = 1;
    response.expected_timeout = EXPECTED_TIMEOUT_MS;
    rq_call_reply(j->call, &response.base);
}

/* "f,g". */
static rq_err parse_families(rq_arena *arena, const char *text, rq_ddl *ddl)
{
    rq_slice *list = rq_arena_alloc(arena, (strlen(text) / 2 + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    ddl->of.flush.families = list;
    ddl->of.flush.family_count = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        if (len > 0) list[ddl->of.flush.family_count++] = rq_slice_of(text, len);
        text += len + (text[len] == ',');
    }
    return RQ_OK;
}

static rq_err begin_exec(rq_admin_services *s, rq_call *call, rq_error *why)
{
    const Pb__ExecProcedureRequest *r = (const Pb__ExecProcedureRequest *)call->param;
    if (strcmp(r->procedure->signature, RQ__SNAPSHOT_SIGNATURE) == 0)
        return rq__exec_snapshot(s, call, r->procedure, exec_finished, why);
    if (strcmp(r->procedure->signature, FLUSH_SIGNATURE) != 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "The procedure is not registered: %s",
                       r->procedure->signature);
    if (r->procedure->instance == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s needs a table", FLUSH_SIGNATURE);
    rq_ddl ddl = {0};
    RQ_TRY(
        rq_table_name_parse(rq_slice_cstr(r->procedure->instance), &ddl.ns, &ddl.qualifier, why));
    for (size_t i = 0; i < r->procedure->n_configuration; i++)
        if (strcmp(r->procedure->configuration[i]->name, FLUSH_FAMILIES) == 0)
            RQ_TRY(parse_families(&call->arena, r->procedure->configuration[i]->value, &ddl));
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_FLUSH_TABLE, 0, 0);
    if (j == NULL) return RQ_OK; /* the call has failed */
    j->ddl.ns = ddl.ns;
    j->ddl.qualifier = ddl.qualifier;
    j->ddl.of.flush = ddl.of.flush;
    j->ddl.submitted = exec_finished;
    j->ddl.wait_finished = true;
    rq_catalog_submit(s->catalog, &j->ddl);
    return RQ_OK;
}

void rq__exec_procedure(void *ctx, rq_call *call)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = begin_exec(ctx, call, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

void rq__is_procedure_done(void *ctx, rq_call *call)
{
    const Pb__IsProcedureDoneRequest *r = (const Pb__IsProcedureDoneRequest *)call->param;
    (void)ctx;
    if (r->procedure == NULL || (strcmp(r->procedure->signature, FLUSH_SIGNATURE) != 0 &&
                                 strcmp(r->procedure->signature, RQ__SNAPSHOT_SIGNATURE) != 0)) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "The procedure is not registered: %s",
                     r->procedure == NULL ? "" : r->procedure->signature);
        return;
    }
    Pb__IsProcedureDoneResponse response = PB__IS_PROCEDURE_DONE_RESPONSE__INIT;
    response.has_done = 1;
    response.done = 1;
    rq_call_reply(call, &response.base);
}
