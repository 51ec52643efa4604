/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: snapshots. Taking, deleting, cloning and restoring are procedures of the catalog.
 * HBASE: MasterRpcServices, SnapshotManager. */
#include "service/master_priv.h"
#include "service/messages.h"

#include "base/pb.h"
#include "proto/master.pb-c.h"

#include <strings.h>

#define LAYOUT_VERSION 2        /* HBASE: SnapshotManifestV2.DESCRIPTOR_VERSION */
#define EXPECTED_MS (5 * 60000) /* HBASE: SnapshotDescriptionUtils.DEFAULT_MAX_WAIT_TIME */

/* Parses the table name of the snapshot's description into j->ddl. False: it is not a table's name,
 * and the call was answered with the error. */
static bool take_table(rq__ddl_job *j, const Pb__SnapshotDescription *d)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = d->table == NULL ? rq_fail(&why, RQ_E_ILLEGAL_ARGUMENT,
                                           "Descriptor doesn't apply to a table, so we can't "
                                           "build it.")
                                 : rq_table_name_parse(rq_slice_cstr(d->table), &j->ddl.ns,
                                                       &j->ddl.qualifier, &why);
    if (rc != RQ_OK) rq_call_fail_why(j->call, rc, &why);
    return rc == RQ_OK;
}

/* --- taking ----------------------------------------------------------------------------------- */

static void snapshot_submitted(rq_ddl *ddl)
{
    rq__ddl_job *j = RQ_CONTAINER_OF(ddl, rq__ddl_job, ddl);
    if (ddl->rc != RQ_OK) {
        rq_call_fail_why(j->call, ddl->rc, &ddl->why);
        return;
    }
    Pb__SnapshotResponse response = PB__SNAPSHOT_RESPONSE__INIT;
    response.expected_timeout = EXPECTED_MS;
    response.has_proc_id = !j->silent;
    response.proc_id = (int64_t)ddl->proc_id;
    rq_call_reply(j->call, &response.base);
}

/* Fills in fields that the client left out, and the layout that is really written. HBASE:
 * SnapshotDescriptionUtils.validate. */
static rq_slice complete_description(const rq_admin_services *s, rq_call *call,
                                     const Pb__SnapshotDescription *asked)
{
    const rq_config *config = s->config;
    const rq_env *env = rq_engine_env(rq_catalog_engine(s->catalog));
    Pb__SnapshotDescription d = *asked;
    if (d.creation_time == 0) d.creation_time = env->executor->now_ms(env->executor);
    d.has_creation_time = true;
    if (d.ttl == 0 || d.ttl > INT64_MAX / 1000)
        d.ttl = config == NULL ? 0 : (int64_t)rq_config_int(config, RQ_SET_SNAPSHOT_TTL);
    d.has_ttl = true;
    d.version = LAYOUT_VERSION;
    d.has_version = true;
    d.has_type = true;
    return rq__packed(&call->arena, &d.base);
}

/* NULL: the call was answered. */
static rq__ddl_job *snapshot_job(rq_admin_services *s, rq_call *call,
                                 const Pb__SnapshotDescription *asked, uint64_t nonce_group,
                                 uint64_t nonce)
{
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_SNAPSHOT, nonce_group, nonce);
    if (j == NULL || !take_table(j, asked)) return NULL;
    if (rq_slice_eq(rq_slice_cstr(asked->table), RQ_SLICE_LIT("hbase:meta"))) {
        rq_call_fail(call, RQ_E_ILLEGAL_ARGUMENT, "System table snapshots are not allowed");
        return NULL;
    }
    j->ddl.of.snapshot.name = rq_slice_cstr(asked->name);
    j->ddl.of.snapshot.description = complete_description(s, call, asked);
    j->ddl.of.snapshot.flush = asked->type == PB__SNAPSHOT_DESCRIPTION__TYPE__FLUSH;
    if (j->ddl.of.snapshot.description.ptr != NULL) return j;
    rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    return NULL;
}

void rq__take_snapshot(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__SnapshotRequest *r = (const Pb__SnapshotRequest *)call->param;
    rq__ddl_job *j = snapshot_job(s, call, r->snapshot, r->nonce_group, r->nonce);
    if (j == NULL) return;
    /* Clients without a nonce do not wait for a procedure; they ask IsSnapshotDone. */
    j->silent = !(r->has_nonce_group && r->has_nonce);
    j->ddl.wait_finished = j->ddl.of.snapshot.names_disabled = j->silent;
    j->ddl.submitted = snapshot_submitted;
    rq_catalog_submit(s->catalog, &j->ddl);
}

rq_err rq__exec_snapshot(rq_admin_services *s, rq_call *call, const Pb__ProcedureDescription *asked,
                         void (*finished)(rq_ddl *ddl), rq_error *why)
{
    Pb__SnapshotDescription d = PB__SNAPSHOT_DESCRIPTION__INIT;
    if (asked->instance == NULL)
        return rq_fail(why, RQ_E_IOEXCEPTION, "Snapshot name is not defined");
    for (size_t i = 0; i < asked->n_configuration; i++)
        if (strcasecmp(asked->configuration[i]->name, "table") == 0)
            d.table = asked->configuration[i]->value;
    if (d.table == NULL) return rq_fail(why, RQ_E_IOEXCEPTION, "Snapshot table is not defined");
    d.name = asked->instance;
    rq__ddl_job *j = snapshot_job(s, call, &d, 0, 0);
    if (j == NULL) return RQ_OK; /* the call has failed */
    j->ddl.wait_finished = j->ddl.of.snapshot.names_disabled = true;
    j->ddl.submitted = finished;
    rq_catalog_submit(s->catalog, &j->ddl);
    return RQ_OK;
}

/* --- deleting, cloning, restoring ------------------------------------------------------------- */

static void deleted(rq_ddl *ddl)
{
    rq__ddl_job *j = RQ_CONTAINER_OF(ddl, rq__ddl_job, ddl);
    if (ddl->rc != RQ_OK)
        rq_call_fail_why(j->call, ddl->rc, &ddl->why);
    else
        rq_call_reply_packed(j->call, rq_slice_of("", 0));
}

void rq__delete_snapshot(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__DeleteSnapshotRequest *r = (const Pb__DeleteSnapshotRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_DELETE_SNAPSHOT, 0, 0);
    if (j == NULL) return;
    j->ddl.ns = RQ_SLICE_LIT(RQ_SNAPSHOT_NS);
    j->ddl.qualifier = rq_slice_cstr(r->snapshot->name);
    j->ddl.wait_finished = true;
    j->ddl.submitted = deleted;
    rq_catalog_submit(s->catalog, &j->ddl);
}

void rq__restore_snapshot(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__RestoreSnapshotRequest *r = (const Pb__RestoreSnapshotRequest *)call->param;
    rq__ddl_job *j = rq__ddl_job_new(call, RQ_DDL_CLONE_SNAPSHOT, r->nonce_group, r->nonce);
    if (j == NULL || !take_table(j, r->snapshot)) return;
    if (rq_catalog_table_find(s->catalog, rq_slice_cstr(r->snapshot->table)) != NULL)
        j->ddl.kind = RQ_DDL_RESTORE_SNAPSHOT;
    j->ddl.of.restore.name = rq_slice_cstr(r->snapshot->name);
    if (r->customsft != NULL) j->ddl.of.restore.tracker = rq_slice_cstr(r->customsft);
    /* Clients before 2.0 take the answer for the end. */
    j->ddl.wait_finished = !rq_rpc_client_at_least(call->client, 2, 0);
    rq_catalog_submit(s->catalog, &j->ddl);
}

/* For clients before 2.0: RestoreSnapshot is answered when everything is done. */
void rq__is_restore_snapshot_done(void *ctx, rq_call *call)
{
    (void)ctx;
    Pb__IsRestoreSnapshotDoneResponse response = PB__IS_RESTORE_SNAPSHOT_DONE_RESPONSE__INIT;
    response.has_done = response.done = true;
    rq_call_reply(call, &response.base);
}

/* --- lists ------------------------------------------------------------------------------------ */

typedef struct list_job {
    rq__blocking blocking;
    rq_snapshot *list;
    size_t count;
} list_job;

static rq_err list_work(rq__blocking *b)
{
    list_job *j = RQ_CONTAINER_OF(b, list_job, blocking);
    return rq_catalog_snapshots(b->services->catalog, &b->call->arena, &j->list, &j->count,
                                &b->why);
}

static void list_answer(rq__blocking *b)
{
    list_job *j = RQ_CONTAINER_OF(b, list_job, blocking);
    rq_buf out = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < j->count && rc == RQ_OK; i++)
        rc = rq_pb_put_bytes(&out, 1, j->list[i].description);
    rq_slice bytes =
        rc == RQ_OK ? rq_arena_copy(&b->call->arena, rq_buf_slice(&out)) : (rq_slice){NULL, 0};
    rq_buf_clear(&out);
    if (bytes.ptr == NULL)
        rq_call_fail(b->call, RQ_E_NO_MEMORY, NULL);
    else
        rq_call_reply_packed(b->call, bytes);
}

void rq__get_completed_snapshots(void *ctx, rq_call *call)
{
    list_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(&j->blocking, ctx, call, list_work, list_answer);
}

typedef struct done_job {
    rq__blocking blocking;
    const Pb__SnapshotDescription *snapshot;
    bool done;
} done_job;

static const char *type_text(const Pb__SnapshotDescription *d)
{
    return d->type == PB__SNAPSHOT_DESCRIPTION__TYPE__DISABLED ? "DISABLED"
           : d->type == PB__SNAPSHOT_DESCRIPTION__TYPE__FLUSH  ? "FLUSH"
                                                               : "SKIPFLUSH";
}

static rq_err done_work(rq__blocking *b)
{
    done_job *j = RQ_CONTAINER_OF(b, done_job, blocking);
    const Pb__SnapshotDescription *d = j->snapshot;
    if (d == NULL)
        return rq_fail(&b->why, RQ_E_SNAPSHOT_UNKNOWN,
                       "No snapshot name passed in request, can't figure out which snapshot you "
                       "want to check.");
    rq_err rc = rq_catalog_snapshot_done(b->services->catalog, rq_slice_cstr(d->name), &j->done);
    if (rc != RQ_E_SNAPSHOT_UNKNOWN) return rc;
    return rq_fail(&b->why, rc,
                   "Snapshot { ss=%s table=%s type=%s ttl=%lld } is not currently running or one "
                   "of the known completed snapshots.",
                   d->name, d->table == NULL ? "" : d->table, type_text(d), (long long)d->ttl);
}

static void done_answer(rq__blocking *b)
{
    const done_job *j = RQ_CONTAINER_OF(b, done_job, blocking);
    Pb__IsSnapshotDoneResponse response = PB__IS_SNAPSHOT_DONE_RESPONSE__INIT;
    response.has_done = true;
    response.done = j->done;
    rq_call_reply(b->call, &response.base);
}

void rq__is_snapshot_done(void *ctx, rq_call *call)
{
    done_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    j->snapshot = ((const Pb__IsSnapshotDoneRequest *)call->param)->snapshot;
    rq__blocking_start(&j->blocking, ctx, call, done_work, done_answer);
}
