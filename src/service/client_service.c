/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClientService: its method table, its life, and Get. HBASE: RSRpcServices.
 *
 * What comes once for all handlers stands here: finding the region, and leaving the loop for a
 * block. A Get is decoded into a scan of one row, read on the loop, and answered at once unless a
 * block has to be brought.
 */
#include "service/client_priv.h"

#include "catalog/coprocessors.h"
#include "service/encode.h"
#include "service/unpack.h"
#include "wal/wal.h"

#include <stdlib.h>

rq_err rq__find_region_to_read(const rq_client_service *s, const Pb__RegionSpecifier *spec,
                               rq_region **ret, bool *ret_stale, rq_error *why)
{
    rq_slice name = rq__pb_slice(spec->value);
    const rq_catalog_region *r;
    if (spec->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME)
        RQ_TRY(rq_catalog_replica_by_encoded(s->catalog, name, &r, why));
    else
        RQ_TRY(rq_catalog_replica_by_name(s->catalog, name, &r, why));
    *ret = r->region;
    *ret_stale = r->info->replica_id != 0;
    return RQ_OK;
}

rq_err rq__fail_read_only(rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "region is read only");
}

rq_err rq__find_region(const rq_client_service *s, const Pb__RegionSpecifier *spec, rq_region **ret,
                       rq_error *why)
{
    bool stale;
    RQ_TRY(rq__find_region_to_read(s, spec, ret, &stale, why));
    return stale ? rq__fail_read_only(why) : RQ_OK;
}

/* --- leaving the loop for a block ------------------------------------------------------------- */

static void release_ctx(void *thing)
{
    rq_read_ctx_clear(thing);
}

rq_err rq__read_job_init(rq__read_job *job, rq_client_service *s, rq_call *call,
                         void (*step)(rq__read_job *job))
{
    job->service = s;
    job->call = call;
    job->ctx = (rq_read_ctx){0};
    rq_error_clear(&job->why);
    job->fetch_rc = RQ_OK;
    job->task = (rq_task){0};
    job->own = NULL;
    job->step = step;
    return rq_arena_link(&call->arena, release_ctx, &job->ctx);
}

static void run_step(rq_task *task)
{
    rq__read_job *job = RQ_CONTAINER_OF(task, rq__read_job, task);
    job->step(job);
}

static void run_fetch(rq_task *task)
{
    rq__read_job *job = RQ_CONTAINER_OF(task, rq__read_job, task);
    rq_executor *executor = job->service->env.executor;
    uint64_t begun = executor->now_ns(executor);
    job->fetch_rc = rq_read_ctx_fulfil(&job->ctx, &job->why);
    job->fetch_ns += executor->now_ns(executor) - begun;
    job->task.run = run_step;
    rq_call_post(job->call, &job->task);
}

static void run_wait(rq_task *task)
{
    rq__read_job_wait(RQ_CONTAINER_OF(task, rq__read_job, task));
}

/* What a slice may add to an answer; asked for ahead by one that is large already. */
#define SLICE_BYTES ((size_t)256 * 1024)

void rq__read_job_wait(rq__read_job *job)
{
    size_t held = job->call->cells.bytes.len;
    if (job->own != NULL) held += job->own->bytes.len;
    size_t next = job->ctx.need.reader != NULL ? job->ctx.need.size : 0;
    if (next < SLICE_BYTES && held > SLICE_BYTES) next = SLICE_BYTES;
    job->task.run = run_wait;
    rq_err rc = rq_call_may_grow(job->call, held, held + next, &job->task);
    if (rc == RQ_E_AGAIN) {
        rq_read_ctx_unpin(&job->ctx);
        return;
    }
    if (rc != RQ_OK) {
        job->fetch_rc = rq_fail(&job->why, rc, "%s",
                                rc == RQ_E_CALL_QUEUE_TOO_BIG
                                    ? "answers fill their memory: the call is not served"
                                    : rq_err_text(rc));
        job->step(job); /* at once: what it holds is charged nowhere */
        return;
    }
    if (!rq_read_ctx_needs(&job->ctx)) {
        job->task.run = run_step;
        rq_loop_defer(job->call->loop, &job->task);
        return;
    }
    job->task.run = run_fetch;
    rq_executor *executor = job->service->env.executor;
    executor->submit(executor, RQ_POOL_READ, &job->task);
}

uint64_t rq__filter_yield_ns(const rq_client_service *s, const rq_filter *filter)
{
    rq_executor *executor = s->env.executor;
    return filter == NULL ? 0 : executor->now_ns(executor) + RQ__SLICE_NS;
}

/* --- get -------------------------------------------------------------------------------------- */

#define LARGE_ROW ((size_t)64 * 1024)

typedef struct get_job {
    rq__read_job job;
    rq_scan scan;
    rq_region_scanner *scanner;
    rq_cellblock own; /* the cells, when they go into the message */
    size_t row_bytes; /* of a large row that waits for memory */
    bool in_message;
    bool query_metrics;
    bool stale;
} get_job;

static void release_scanner(void *thing)
{
    rq_region_scanner_close(thing);
}

static void release_cellblock(void *thing)
{
    rq_cellblock_clear(thing);
}

static void reply_get(get_job *g)
{
    rq_call *call = g->job.call;
    const rq_cellblock *cells = g->in_message ? &g->own : &call->cells;
    if (!g->in_message && !g->scan.check_existence_only && !g->query_metrics && !g->stale) {
        uint8_t message[RQ__COUNTED_RESULT_MAX];
        rq_call_reply_packed(call, rq__pack_counted_result(cells->count, message));
        return;
    }
    Pb__GetResponse response = PB__GET_RESPONSE__INIT;
    Pb__Result result = PB__RESULT__INIT;
    Pb__QueryMetrics metrics = PB__QUERY_METRICS__INIT;
    response.result = &result;
    result.has_stale = 1;
    result.stale = g->stale;
    if (g->scan.check_existence_only) {
        result.has_exists = 1;
        result.exists = cells->count > 0;
        rq_cellblock_reset(&call->cells);
    } else if (!g->in_message) {
        result.has_associated_cell_count = 1;
        result.associated_cell_count = (int32_t)cells->count;
    } else if (rq__encode_cells(rq_buf_slice(&cells->bytes), cells->count, &call->arena, &result) !=
               RQ_OK) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    if (g->query_metrics) {
        metrics.has_block_bytes_scanned = 1;
        metrics.block_bytes_scanned = g->job.ctx.block_bytes_used;
        result.metrics = &metrics;
    }
    rq_call_reply(call, &response.base);
}

static rq_cellblock *cells_of_get(get_job *g)
{
    return g->in_message ? &g->own : &g->job.call->cells;
}

static void run_again(rq_task *task);

/* A large row is made at a stretch. While there is no memory for it, it is given up, and read again
 * when there is. */
RQ_COLD static void wait_for_row(get_job *g, size_t bytes)
{
    rq_cellblock_clear(cells_of_get(g));
    rq_read_ctx_clear(&g->job.ctx);
    g->row_bytes = bytes;
    g->job.task.run = run_again;
    run_again(&g->job.task);
}

static void run_again(rq_task *task)
{
    get_job *g = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq__read_job, task), get_job, job);
    rq_call *call = g->job.call;
    rq_err rc = rq_call_may_grow(call, 0, g->row_bytes, task);
    call->user = call; /* what follows has room */
    if (rc == RQ_OK)
        rq__handle_get(g->job.service, call);
    else if (rc != RQ_E_AGAIN)
        rq_call_fail(call, rc, NULL);
}

static void end_get(get_job *g, rq_err rc)
{
    rq_call *call = g->job.call;
    size_t bytes = cells_of_get(g)->bytes.len;
    if (RQ_UNLIKELY(rc == RQ_E_RESULT_TOO_LARGE || rc == RQ_E_CALL_QUEUE_TOO_BIG))
        wait_for_row(g, bytes > LARGE_ROW ? bytes : LARGE_ROW);
    else if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &g->job.why);
    else if (RQ_UNLIKELY(bytes > LARGE_ROW) && !rq_call_can_grow(call, bytes))
        wait_for_row(g, bytes);
    else
        reply_get(g);
}

static void step_get(rq__read_job *job)
{
    get_job *g = RQ_CONTAINER_OF(job, get_job, job);
    rq_executor *executor = job->service->env.executor;
    rq_scan_limits limits = {.yield_ns = executor->now_ns(executor) + RQ_METER_STRETCH_NS};
    rq_scan_state state;
    rq_err rc = job->fetch_rc;
    if (rc == RQ_OK)
        rc = rq_region_scanner_next(g->scanner, &limits, &job->ctx, cells_of_get(g), &state,
                                    &job->why);
    if (rc == RQ_E_AGAIN) {
        rq_region_scanner_suspend(g->scanner);
        rq__read_job_wait(job);
        return;
    }
    end_get(g, rc);
}

/* Who asks, what for, and where. */
static rq_err decode_get(rq_client_service *s, rq_call *call, get_job *g, rq_region **ret,
                         rq_error *why)
{
    const Pb__GetRequest *request = (const Pb__GetRequest *)call->param;
    RQ_TRY(rq__read_job_init(&g->job, s, call, step_get));
    RQ_TRY(rq__find_region_to_read(s, request->region, ret, &g->stale, why));
    if (request->get->has_closest_row_before && request->get->closest_row_before)
        /* asynchbase learns from exactly this exception that it must scan meta in reverse. */
        return rq_fail(why, RQ_E_UNKNOWN_PROTOCOL,
                       "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking "
                       "getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.");
    rq_call_decoding(call, true);
    rq_err rc = rq__decode_get(request->get, *ret, &call->arena, &g->scan, why);
    rq_call_decoding(call, false);
    if (rc != RQ_OK) return rc;
    g->query_metrics =
        request->get->has_query_metrics_enabled && request->get->query_metrics_enabled;
    /* HBASE: RSRpcServices.get: clients before 1.3 expect the cells in the message. */
    g->in_message = !call->client->has_codec || !rq_rpc_client_at_least(call->client, 1, 3);
    g->own = (rq_cellblock){0};
    if (RQ_UNLIKELY(rq_call_answers_are_scarce(call)) && call->user == NULL)
        cells_of_get(g)->bytes_max = LARGE_ROW;
    if (!g->in_message) return RQ_OK;
    g->job.own = &g->own;
    return rq_arena_link(&call->arena, release_cellblock, &g->own);
}

/* The long way: what must wait for a block, be merged, or be refused. */
static rq_err open_get(get_job *g, rq_region *region, rq_error *why)
{
    rq_arena *arena = &g->job.call->arena;
    RQ_TRY(rq_region_scanner_open(region, &g->scan, 0, arena, &g->scanner, why));
    rq_err rc = rq_arena_link(arena, release_scanner, g->scanner);
    if (rc != RQ_OK) rq_region_scanner_close(g->scanner);
    return rc;
}

void rq__handle_get(void *ctx, rq_call *call)
{
    rq_error why;
    rq_error_clear(&why);
    get_job *g = rq_arena_alloc(&call->arena, sizeof *g);
    if (g == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_region *region;
    bool answered = false;
    rq_err rc = decode_get(ctx, call, g, &region, &why);
    if (rc == RQ_OK)
        rc = rq_region_get(region, &g->scan, &call->arena, &g->job.ctx, cells_of_get(g), &answered,
                           &why);
    if (RQ_LIKELY(answered)) {
        end_get(g, RQ_OK);
        return;
    }
    bool waits = rc == RQ_E_AGAIN;
    if (rc == RQ_OK || waits) rc = open_get(g, region, &why);
    if (rc == RQ_E_RESULT_TOO_LARGE)
        end_get(g, rc);
    else if (rc != RQ_OK)
        rq_call_fail_why(call, rc, &why);
    else if (waits)
        rq__read_job_wait(&g->job);
    else
        step_get(&g->job);
}

/* --- the table -------------------------------------------------------------------------------- */

static const rq_rpc_method methods[] = {
    {"Get", &pb__get_request__descriptor, rq__handle_get},
    {"Mutate", &pb__mutate_request__descriptor, rq__handle_mutate},
    {"Multi", &pb__multi_request__descriptor, rq__handle_multi},
    {"Scan", &pb__scan_request__descriptor, rq__handle_scan},
    {"ExecService", &pb__coprocessor_service_request__descriptor, rq__handle_exec_service},
    {"ExecRegionServerService", &pb__coprocessor_service_request__descriptor,
     rq__handle_exec_server_service},
    {"BulkLoadHFile", &pb__bulk_load_hfile_request__descriptor, rq__handle_bulk_load},
    {"PrepareBulkLoad", &pb__prepare_bulk_load_request__descriptor, rq__handle_prepare_bulk_load},
    {"CleanupBulkLoad", &pb__cleanup_bulk_load_request__descriptor, rq__handle_cleanup_bulk_load},
};

static void connection_closed(void *ctx, void *state)
{
    rq_client_service *s = ctx;
    rq__lease_owner_gone(s->leases, state);
}

rq_rpc_service rq_client_service_methods(rq_client_service *s)
{
    return (rq_rpc_service){.name = "ClientService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = s,
                            .unpack = rq__unpack_request,
                            .expect = rq__expect_requests,
                            .closed = connection_closed};
}

/* --- life ------------------------------------------------------------------------------------- */

static rq_err make_writers(rq_client_service *s)
{
    unsigned count = rq_loops_count(s->loops);
    s->writers = calloc(count, sizeof(rq_writer *));
    if (s->writers == NULL) return RQ_E_NO_MEMORY;
    for (unsigned i = 0; i < count; i++)
        RQ_TRY(rq_writer_new(s->engine, rq_loop_lane(rq_loops_get(s->loops, i)), &s->writers[i]));
    return RQ_OK;
}

/* HBase's limit is 100 MB, whatever memory there is. */
static void take_result_limits(rq_client_service *s, const rq_config *c)
{
    uint64_t hbase = (uint64_t)100 << 20;
    uint64_t set = (uint64_t)rq_config_int(c, RQ_SET_SCAN_MAX_RESULT);
    uint64_t share = rq_engine_memory_budget(c) / 16;
    s->block_bytes_max = set != 0 ? set : hbase;
    s->result_bytes_max = set != 0 ? set : share < hbase ? share : hbase;
}

void rq_client_service_reload(rq_client_service *s, const rq_config *c)
{
    s->rpc_timeout_ms = (uint64_t)rq_config_int(c, RQ_SET_RPC_TIMEOUT);
    s->rows_warning = (uint64_t)rq_config_int(c, RQ_SET_ROWS_WARNING);
    s->rows_reject = rq_config_int(c, RQ_SET_ROWS_REJECT) != 0;
}

rq_err rq_client_service_new(const rq_client_service_options *o, rq_client_service **ret,
                             rq_error *why)
{
    rq_client_service *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    s->env = *o->env;
    s->engine = o->engine;
    s->catalog = o->catalog;
    s->loops = o->loops;
    s->intake = o->intake;
    s->data_path = o->data_path;
    take_result_limits(s, o->config);
    s->lease_ms = (uint64_t)rq_config_int(o->config, RQ_SET_SCANNER_LEASE);
    rq_client_service_reload(s, o->config);
    rq_err rc =
        rq_coprocessors_of_settings(o->config, &s->coprocessors, &s->user_coprocessors, why);
    if (rc != RQ_OK) {
        rq_client_service_free(s);
        return rc;
    }
    rc = make_writers(s);
    uint64_t scanners = (uint64_t)rq_config_int(o->config, RQ_SET_SCANNERS_MEMORY);
    if (scanners == 0) scanners = rq_engine_memory_budget(o->config) / 4;
    if (rc == RQ_OK)
        rc = rq__leases_new(&s->env, s->lease_ms, (size_t)scanners,
                            rq_loop_lane(rq_loops_get(s->loops, 0)), &s->leases);
    if (rc != RQ_OK) {
        rq_client_service_free(s);
        return rq_fail(why, rc, "cannot start the client service: %s", rq_err_text(rc));
    }
    *ret = s;
    return RQ_OK;
}

void rq_client_service_free(rq_client_service *s)
{
    if (s == NULL) return;
    rq__leases_free(s->leases);
    for (unsigned i = 0; s->writers != NULL && i < rq_loops_count(s->loops); i++)
        rq_writer_free(s->writers[i]);
    free(s->writers);
    free(s);
}

size_t rq_client_service_open_scanners(rq_client_service *s)
{
    return rq__leases_count(s->leases);
}
