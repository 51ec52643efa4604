/* SPDX-License-Identifier: Apache-2.0 */
/* ClientService: its method table, start and stop, and Get. HBASE: RSRpcServices.
 *
 * A Get is decoded into a scan of one row, read on the loop, and answered at once unless it needs a
 * block that is not in memory. */
#include "service/client_priv.h"
#include "service/slow_text.h"

#include "catalog/coprocessors.h"
#include "ops/get.h"
#include "ops/scan.h"
#include "rpc/long_reply.h"
#include "service/apart.h"
#include "service/call_op.h"
#include "service/encode.h"
#include "service/unpack.h"
#include "wal/wal.h"

#include <stdlib.h>

/* --- get -------------------------------------------------------------------------------------- */

#define LARGE_ROW ((size_t)64 * 1024)

typedef struct get_job {
    rq_op_get get;
    rq_client_service *service;
    rq_cellblock own; /* the cells, when they go into the message */
    size_t row_bytes; /* of a large row that waits for memory */
    rq_task task;     /* runs when there is memory for it */
    bool in_message;
    bool query_metrics;
    bool stale;
} get_job;

static void release_cellblock(void *thing)
{
    rq_cellblock_clear(thing);
}

typedef struct get_response {
    Pb__GetResponse response;
    Pb__Result result;
    Pb__QueryMetrics metrics;
} get_response;

static rq_err fill_response(get_job *g, rq_call *call, get_response *ret)
{
    const rq_cellblock *cells = g->get.out;
    *ret = (get_response){PB__GET_RESPONSE__INIT, PB__RESULT__INIT, PB__QUERY_METRICS__INIT};
    ret->response.result = &ret->result;
    ret->result.has_stale = 1;
    ret->result.stale = g->stale;
    if (g->query_metrics) {
        ret->metrics.has_block_bytes_scanned = 1;
        ret->metrics.block_bytes_scanned = g->get.read.ctx.block_bytes_used;
        ret->result.metrics = &ret->metrics;
    }
    if (g->get.scan.check_existence_only) {
        ret->result.has_exists = 1;
        ret->result.exists = cells->count > 0;
        rq_cellblock_reset(&call->cells);
        return RQ_OK;
    }
    if (g->in_message)
        return rq__encode_cells(rq_buf_slice(&cells->bytes), cells->count, &call->arena,
                                &ret->result);
    ret->result.has_associated_cell_count = 1;
    ret->result.associated_cell_count = (int32_t)cells->count;
    return RQ_OK;
}

static rq_err pack_long(rq_call *call, rq_buf *ret)
{
    get_response r;
    RQ_TRY(fill_response(call->user, call, &r));
    return rq__pack_message(call, &r.response.base, ret);
}

static void reply_get(get_job *g, rq_call *call)
{
    const rq_cellblock *cells = g->get.out;
    bool existence = g->get.scan.check_existence_only;
    get_response r;
    if (!g->in_message && !existence && !g->query_metrics && !g->stale) {
        uint8_t message[RQ__COUNTED_RESULT_MAX];
        rq_call_reply_packed(call, rq__pack_counted_result(cells->count, message));
    } else if (RQ_UNLIKELY(g->in_message && cells->bytes.len > RQ__PACKED_AT_ONCE) && !existence) {
        call->user = g;
        rq_call_reply_long(call, pack_long);
    } else if (fill_response(g, call, &r) == RQ_OK) {
        rq_call_reply(call, &r.response.base);
    } else {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    }
}

static void run_again(rq_task *task);

/* A large row is read in one step. If there is no memory for the response, the cells that were read
 * are dropped, and the row is read again when there is memory. */
RQ_COLD static void wait_for_row(get_job *g, size_t bytes)
{
    rq_cellblock_clear(g->get.out);
    g->row_bytes = bytes;
    g->task.run = run_again;
    run_again(&g->task);
}

static void handle_get(void *ctx, rq_call *call);

static void run_again(rq_task *task)
{
    get_job *g = RQ_CONTAINER_OF(task, get_job, task);
    rq_call *call = rq__call_of_op(&g->get.read.op);
    rq_err rc = rq_call_may_grow(call, 0, g->row_bytes, task);
    call->user = call; /* the repeated read has room */
    if (rc == RQ_OK)
        handle_get(g->service, call);
    else if (rc != RQ_E_AGAIN)
        rq_call_fail(call, rc, NULL);
}

static void get_done(rq_op *op)
{
    get_job *g = RQ_CONTAINER_OF(op, get_job, get.read.op);
    rq_call *call = rq__call_of_op(op);
    size_t bytes = g->get.out->bytes.len;
    if (RQ_UNLIKELY(op->rc == RQ_E_RESULT_TOO_LARGE || op->rc == RQ_E_CALL_QUEUE_TOO_BIG))
        wait_for_row(g, bytes > LARGE_ROW ? bytes : LARGE_ROW);
    else if (RQ_UNLIKELY(op->rc != RQ_OK))
        rq__fail_call_of_op(op);
    else if (RQ_UNLIKELY(bytes > LARGE_ROW) && !rq_call_can_grow(call, bytes))
        wait_for_row(g, bytes);
    else
        reply_get(g, call);
}

/* Where the cells go. */
static rq_err choose_sink(get_job *g, rq_call *call)
{
    /* HBASE: RSRpcServices.get: clients before 1.3 expect the cells in the message. */
    g->in_message = !call->client->has_codec || !rq_rpc_client_at_least(call->client, 1, 3);
    g->own = (rq_cellblock){0};
    g->get.out = g->in_message ? &g->own : &call->cells;
    if (RQ_UNLIKELY(rq_call_answers_are_scarce(call)) && call->user == NULL)
        g->get.out->bytes_max = LARGE_ROW;
    return g->in_message ? rq_arena_link(&call->arena, release_cellblock, &g->own) : RQ_OK;
}

static rq_err find_region(rq_client_service *s, const Pb__GetRequest *request, get_job *g)
{
    rq_op *op = &g->get.read.op;
    RQ_TRY(rq__find_region_to_read(s, request->region, &op->region, &g->stale, &op->why));
    if (request->get->has_closest_row_before && request->get->closest_row_before)
        /* With exactly this exception asynchbase recognizes that it must scan meta in reverse. */
        return rq_fail(&op->why, RQ_E_UNKNOWN_PROTOCOL,
                       "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking "
                       "getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.");
    g->query_metrics =
        request->get->has_query_metrics_enabled && request->get->query_metrics_enabled;
    return RQ_OK;
}

static rq_err translate(rq_call *call, get_job *g)
{
    const Pb__GetRequest *request = (const Pb__GetRequest *)call->param;
    rq_op *op = &g->get.read.op;
    return rq__decode_get(request->get, op->region, &call->arena, &g->get.scan, &op->why);
}

static void start_get(get_job *g, rq_call *call)
{
    rq_op *op = &g->get.read.op;
    if (RQ_LIKELY(op->rc == RQ_OK)) op->rc = choose_sink(g, call);
    if (RQ_LIKELY(op->rc == RQ_OK))
        rq_op_get_start(&g->get);
    else
        rq__fail_call_of_op(op);
}

/* A get with long lists or filters. */
typedef struct long_get {
    rq__apart apart;
    get_job *get;
} long_get;

static void translate_apart(rq__apart *a)
{
    get_job *g = RQ_CONTAINER_OF(a, long_get, apart)->get;
    g->get.read.op.rc = translate(a->call, g);
}

static void translated_apart(rq__apart *a)
{
    get_job *g = RQ_CONTAINER_OF(a, long_get, apart)->get;
    rq_region *region = g->get.read.op.region;
    start_get(g, a->call); /* may free what the call has */
    rq_region_unref(region);
}

RQ_COLD static void handle_long_get(get_job *g, rq_call *call)
{
    long_get *l = rq_arena_alloc(&call->arena, sizeof *l);
    if (l == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    l->get = g;
    rq_region_ref(g->get.read.op.region);
    rq__apart_start(&l->apart, g->service->env.executor, call, translate_apart, translated_apart);
}

static void handle_get(void *ctx, rq_call *call)
{
    rq_client_service *s = ctx;
    get_job *g = rq_arena_alloc(&call->arena, sizeof *g);
    if (g == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_op *op = &g->get.read.op;
    rq__op_of_call(op, RQ_OP_GET, rq__seat(s, call), call, get_done);
    op->repeats = call->user != NULL;
    g->service = s;
    op->rc = find_region(s, (const Pb__GetRequest *)call->param, g);
    if (RQ_UNLIKELY(call->request_bytes > RQ__TRANSLATED_AT_ONCE) && op->rc == RQ_OK) {
        handle_long_get(g, call);
        return;
    }
    rq_call_decoding(call, true);
    if (RQ_LIKELY(op->rc == RQ_OK)) op->rc = translate(call, g);
    rq_call_decoding(call, false);
    start_get(g, call);
}

/* --- the table -------------------------------------------------------------------------------- */

static const rq_rpc_method methods[] = {
    {"Get", &pb__get_request__descriptor, handle_get},
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

/* Ten thousand files and more, listed on the loop. */
static const rq_rpc_param_limit param_limits[] = {{"BulkLoadHFile", (size_t)4 << 20}};

static void connection_closed(void *ctx, void *state)
{
    rq_client_service *s = ctx;
    rq_scan_owner_gone(s->ops, state);
}

rq_rpc_service rq_client_service_methods(rq_client_service *s)
{
    return (rq_rpc_service){.name = "ClientService",
                            .methods = methods,
                            .method_count = RQ_ARRAY_LEN(methods),
                            .ctx = s,
                            .param_limits = param_limits,
                            .param_limit_count = RQ_ARRAY_LEN(param_limits),
                            .describe = rq__describe_call,
                            .unpack = rq__unpack_request,
                            .expect = rq__expect_requests,
                            .closed = connection_closed};
}

/* --- life ------------------------------------------------------------------------------------- */

static rq_err make_seats(rq_client_service *s)
{
    unsigned count = rq_loops_count(s->loops);
    s->seats = calloc(count, sizeof(rq_ops_seat *));
    if (s->seats == NULL) return RQ_E_NO_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        rq_lane *lane = rq_loop_lane(rq_loops_get(s->loops, i));
        RQ_TRY(rq_ops_seat_new(s->ops, lane, NULL, &s->seats[i]));
    }
    return RQ_OK;
}

void rq_client_service_reload(rq_client_service *s, const rq_config *c)
{
    s->rows_warning = (uint64_t)rq_config_int(c, RQ_SET_ROWS_WARNING);
    s->rows_reject = rq_config_int(c, RQ_SET_ROWS_REJECT) != 0;
}

rq_err rq_client_service_new(const rq_client_service_options *o, rq_client_service **ret,
                             rq_error *why)
{
    rq_client_service *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->env = *o->env;
    s->engine = o->engine;
    s->catalog = o->catalog;
    s->host = o->host != NULL ? o->host : rq_catalog_host(o->catalog);
    s->ops = o->ops;
    s->loops = o->loops;
    rq_client_service_reload(s, o->config);
    rq_err rc =
        rq_coprocessors_of_settings(o->config, &s->coprocessors, &s->user_coprocessors, why);
    if (rc != RQ_OK) {
        rq_client_service_free(s);
        return rc;
    }
    rc = make_seats(s);
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
    for (unsigned i = 0; s->seats != NULL && i < rq_loops_count(s->loops); i++)
        rq_ops_seat_free(s->seats[i]);
    free(s->seats);
    free(s);
}
