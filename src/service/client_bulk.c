/* SPDX-License-Identifier: Apache-2.0 */
/* PrepareBulkLoad, BulkLoadHFile, CleanupBulkLoad: translates messages to ops/bulk.h and back.
 *
 * As in HBase, a request with a token is answered loaded = false on every failure (the client
 * retries a few times), and one without a token with the exception. The log has the reason. A file
 * outside the listed folders fails with an exception that names the setting in both cases, since a
 * retry would not help. */
#include "service/client_priv.h"

#include "ops/bulk.h"
#include "service/call_op.h"

typedef struct bulk_job {
    rq_client_service *service;
    rq_op_bulk bulk;
} bulk_job;

/* NULL: the call was answered. `spec` may be NULL: in clean-up calls, clients before 2.0 send no
 * region. */
static bulk_job *begin(rq_client_service *s, rq_call *call, const Pb__RegionSpecifier *spec,
                       void (*done)(rq_op *op))
{
    bulk_job *job = rq_arena_calloc(&call->arena, 1, sizeof *job);
    if (job == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return NULL;
    }
    rq_op *op = &job->bulk.op;
    rq__op_of_call(op, RQ_OP_BULK_LOAD, rq__seat(s, call), call, done);
    job->service = s;
    if (spec != NULL) op->rc = rq__find_region(s, spec, &op->region, &op->why);
    if (op->rc == RQ_OK) return job;
    rq__fail_call_of_op(op);
    return NULL;
}

static void prepared(rq_op *op)
{
    const rq_op_bulk *b = RQ_CONTAINER_OF(op, rq_op_bulk, op);
    Pb__PrepareBulkLoadResponse response = PB__PREPARE_BULK_LOAD_RESPONSE__INIT;
    if (op->rc != RQ_OK) {
        rq__fail_call_of_op(op);
        return;
    }
    response.bulk_token = (char *)(uintptr_t)b->token;
    rq_call_reply(rq__call_of_op(op), &response.base);
}

void rq__handle_prepare_bulk_load(void *ctx, rq_call *call)
{
    const Pb__PrepareBulkLoadRequest *request = (const Pb__PrepareBulkLoadRequest *)call->param;
    if (request->region == NULL) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "PrepareBulkLoad names no region");
        return;
    }
    bulk_job *job = begin(ctx, call, request->region, prepared);
    if (job != NULL) rq_op_bulk_prepare_start(&job->bulk);
}

static void loaded(rq_op *op)
{
    const bulk_job *job = RQ_CONTAINER_OF(op, bulk_job, bulk.op);
    rq_call *call = rq__call_of_op(op);
    const Pb__BulkLoadHFileRequest *request = (const Pb__BulkLoadHFileRequest *)call->param;
    Pb__BulkLoadHFileResponse response = PB__BULK_LOAD_HFILE_RESPONSE__INIT;
    bool is_answered_with_error =
        op->region == NULL || request->bulk_token == NULL || job->bulk.is_refused ||
        op->rc == RQ_E_SPACE_LIMITED; /* HBASE: checked before the load begins */
    if (op->rc != RQ_OK && is_answered_with_error) {
        rq__fail_call_of_op(op);
        return;
    }
    if (op->rc != RQ_OK)
        rq_log_write_limited(job->service->env.log, &job->service->failed_bulk_loads, RQ_LOG_WARN,
                             "bulk", "bulk load into %s failed: %s",
                             rq_region_get_info(op->region)->encoded,
                             op->why.message[0] == '\0' ? rq_err_text(op->rc) : op->why.message);
    response.loaded = op->rc == RQ_OK && job->bulk.loaded;
    rq_call_reply(call, &response.base);
}

static rq_err list_files(const Pb__BulkLoadHFileRequest *request, rq_op_bulk *b)
{
    rq_op_bulk_file *files =
        rq_arena_alloc(b->op.arena, (request->n_family_path + 1) * sizeof *files);
    if (files == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < request->n_family_path; i++) {
        const Pb__BulkLoadHFileRequest__FamilyPath *f = request->family_path[i];
        files[i] = (rq_op_bulk_file){rq__pb_slice(f->family), f->path};
    }
    b->files = files;
    b->file_count = request->n_family_path;
    return RQ_OK;
}

void rq__handle_bulk_load(void *ctx, rq_call *call)
{
    const Pb__BulkLoadHFileRequest *request = (const Pb__BulkLoadHFileRequest *)call->param;
    bulk_job *job = begin(ctx, call, request->region, loaded);
    if (job == NULL) return;
    rq_op_bulk *b = &job->bulk;
    if (list_files(request, b) != RQ_OK) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    b->assign_seqid =
        request->bulk_token != NULL || (request->has_assign_seq_num && request->assign_seq_num);
    b->copy = request->has_copy_file && request->copy_file;
    b->stays_here = request->has_replicate && !request->replicate;
    b->cluster_ids = (const char *const *)request->cluster_ids;
    b->cluster_id_count = request->n_cluster_ids;
    rq_op_bulk_load_start(b);
}

static void cleaned(rq_op *op)
{
    Pb__CleanupBulkLoadResponse response = PB__CLEANUP_BULK_LOAD_RESPONSE__INIT;
    if (op->rc != RQ_OK)
        rq__fail_call_of_op(op);
    else
        rq_call_reply(rq__call_of_op(op), &response.base);
}

void rq__handle_cleanup_bulk_load(void *ctx, rq_call *call)
{
    const Pb__CleanupBulkLoadRequest *request = (const Pb__CleanupBulkLoadRequest *)call->param;
    bulk_job *job = begin(ctx, call, request->region, cleaned);
    if (job == NULL) return;
    job->bulk.token = request->bulk_token;
    rq_op_bulk_cleanup_start(&job->bulk);
}
