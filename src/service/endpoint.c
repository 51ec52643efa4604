/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the endpoint of a call, and implements ClientService's ExecService; see endpoint.h. */
#include "service/endpoint.h"

#include "base/pb_arena.h"
#include "base/pb_missing.h"
#include "catalog/coprocessors.h"
#include "service/call_op.h"

static void run_done(rq_task *task)
{
    rq__endpoint *e = RQ_CONTAINER_OF(task, rq__endpoint, task);
    e->done(e);
}

/* Posted, not called directly: in a Multi with many service calls the stack would grow with
 * each. */
static void post_done(rq__endpoint *e)
{
    e->task.run = run_done;
    rq_call_post(e->call, &e->task);
}

void rq__endpoint_end(rq__endpoint *e, rq_slice response)
{
    e->rc = RQ_OK;
    e->response = response;
    post_done(e);
}

void rq__endpoint_fail(rq__endpoint *e, rq_err rc)
{
    e->rc = rc;
    post_done(e);
}

/* --- dispatch --------------------------------------------------------------------------------- */

const rq__endpoint_service rq__endpoint_services[] = {
    {"AggregateService", RQ_COPROCESSOR_AGGREGATE, rq__aggregate_methods,
     &rq__aggregate_method_count},
    {"BulkDeleteService", RQ_COPROCESSOR_BULK_DELETE, rq__bulk_delete_methods,
     &rq__bulk_delete_method_count},
    {"MultiRowMutationService", RQ_COPROCESSOR_MULTI_ROW, rq__multi_row_methods,
     &rq__multi_row_method_count},
};
const size_t rq__endpoint_service_count = RQ_ARRAY_LEN(rq__endpoint_services);

static unsigned coprocessors_of(const rq__endpoint *e)
{
    const rq_client_service *s = e->service;
    rq_table_schema *schema = rq_region_schema(e->region);
    unsigned set = rq_coprocessors_of_table(schema) | s->coprocessors;
    if (!rq_slice_eq(schema->ns, rq_slice_cstr("hbase"))) set |= s->user_coprocessors;
    rq_table_schema_unref(schema);
    return set;
}

static const rq__endpoint_service *find_service(const rq__endpoint *e, const char *name)
{
    unsigned set = coprocessors_of(e);
    for (size_t i = 0; i < RQ_ARRAY_LEN(rq__endpoint_services); i++) {
        const rq__endpoint_service *s = &rq__endpoint_services[i];
        if (strcmp(s->name, name) == 0 && (set & s->coprocessor) != 0) return s;
    }
    return NULL;
}

static rq_err find_method(rq__endpoint *e, const Pb__CoprocessorServiceCall *c,
                          const rq__endpoint_method **ret)
{
    const rq__endpoint_service *service = find_service(e, c->service_name);
    if (service == NULL) {
        char name[512];
        rq_region_info_text(rq_region_get_info(e->region), name, sizeof name);
        return rq_fail(&e->why, RQ_E_UNKNOWN_PROTOCOL,
                       "No registered coprocessor service found for %s in region %s",
                       c->service_name, name);
    }
    for (size_t i = 0; i < *service->method_count; i++) {
        if (strcmp(service->methods[i].name, c->method_name) != 0) continue;
        *ret = &service->methods[i];
        return RQ_OK;
    }
    return rq_fail(&e->why, RQ_E_UNKNOWN_PROTOCOL,
                   "Unknown method %s called on service hbase.pb.%s", c->method_name,
                   c->service_name);
}

rq_err rq__endpoint_decode_scan(rq__endpoint *e, const Pb__Scan *scan)
{
    rq_arena *arena = &e->call->arena;
    rq__endpoint_scan *s = rq_arena_alloc(arena, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    e->decoded = s;
    return rq__decode_scan(scan, e->region, arena, &s->scan, &s->extra, &e->why);
}

static rq_err unpack(rq__endpoint *e)
{
    const rq__endpoint_method *m = e->method;
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &e->call->arena);
    e->request = protobuf_c_message_unpack(m->request, &memory.allocator, e->asked->request.len,
                                           e->asked->request.data);
    if (e->request != NULL) return RQ_OK;
    if (memory.exhausted) return RQ_E_NO_MEMORY;
    char missing[512];
    if (rq_pb_missing(m->request, rq_slice_of(e->asked->request.data, e->asked->request.len),
                      missing, sizeof missing))
        return rq_fail(&e->why, RQ_E_DO_NOT_RETRY, "%s", missing);
    return rq_fail(&e->why, RQ_E_DO_NOT_RETRY, "the request of %s.%s is not a %s",
                   e->asked->service_name, m->name, m->request->short_name);
}

/* On any thread. */
static void decode(rq__endpoint *e)
{
    e->rc = unpack(e);
    if (e->rc == RQ_OK) e->rc = e->method->decode(e, e->request);
}

/* The memory that the method allocates now is still that of a request being decoded. The endpoint ends in another task. */
static void run(rq__endpoint *e)
{
    rq_call *call = e->call;
    if (e->rc != RQ_OK) {
        rq__endpoint_fail(e, e->rc);
        return;
    }
    rq_call_decoding(call, true);
    e->method->run(e, e->request);
    rq_call_decoding(call, false);
}

static void decode_apart(rq__apart *a)
{
    decode(RQ_CONTAINER_OF(a, rq__endpoint, apart));
}

static void decoded_apart(rq__apart *a)
{
    run(RQ_CONTAINER_OF(a, rq__endpoint, apart));
}

void rq__endpoint_start(rq__endpoint *e, const Pb__CoprocessorServiceCall *c)
{
    e->rc = RQ_OK;
    e->why.code = RQ_OK;
    e->decoded = NULL;
    e->asked = c;
    rq_err rc = find_method(e, c, &e->method);
    if (rc != RQ_OK) {
        rq__endpoint_fail(e, rc);
        return;
    }
    e->response_class = e->method->response_class;
    if (c->request.len > RQ__TRANSLATED_AT_ONCE) {
        rq__apart_start(&e->apart, e->service->env.executor, e->call, decode_apart, decoded_apart);
        return;
    }
    rq_call_decoding(e->call, true);
    decode(e);
    rq_call_decoding(e->call, false);
    run(e);
}

/* --- ExecService ------------------------------------------------------------------------------ */

static void reply_exec(rq__endpoint *e)
{
    Pb__CoprocessorServiceResponse response = PB__COPROCESSOR_SERVICE_RESPONSE__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__NameBytesPair value = PB__NAME_BYTES_PAIR__INIT;
    rq_slice name = rq_region_get_info(e->region)->name;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    region.value = (ProtobufCBinaryData){name.len, (uint8_t *)name.ptr};
    value.name = (char *)e->response_class;
    value.has_value = 1;
    value.value = (ProtobufCBinaryData){e->response.len, (uint8_t *)e->response.ptr};
    response.region = &region;
    response.value = &value;
    rq_call_reply(e->call, &response.base);
}

static void exec_done(rq_op *op)
{
    rq__endpoint *e = RQ_CONTAINER_OF(op, rq__endpoint, op);
    rq_region *region = e->region;
    if (op->rc == RQ_OK)
        reply_exec(e);
    else
        rq__fail_call_of_op(op);
    if (region != NULL) rq_region_unref(region);
}

static void endpoint_done(rq__endpoint *e)
{
    if (e->rc != RQ_OK) e->op.why = e->why;
    e->op.has_waited = true;
    rq_op_end(&e->op, e->rc);
}

static void run_exec(rq_op *op)
{
    rq__endpoint *e = RQ_CONTAINER_OF(op, rq__endpoint, op);
    const Pb__CoprocessorServiceRequest *request =
        (const Pb__CoprocessorServiceRequest *)e->call->param;
    e->region = rq_region_ref(op->region);
    rq__endpoint_start(e, request->call);
}

void rq__handle_exec_service(void *ctx, rq_call *call)
{
    const Pb__CoprocessorServiceRequest *request =
        (const Pb__CoprocessorServiceRequest *)call->param;
    rq_client_service *s = ctx;
    bool stale;
    rq__endpoint *e = rq_arena_alloc(&call->arena, sizeof *e);
    if (e == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_op *op = &e->op;
    rq__op_of_call(op, RQ_OP_ENDPOINT, rq__seat(s, call), call, exec_done);
    e->service = s;
    e->call = call;
    e->region = NULL;
    e->done = endpoint_done;
    op->rc = rq__find_region_to_read(s, request->region, &op->region, &stale, &op->why);
    if (op->rc == RQ_OK)
        rq_op_begin(op, run_exec);
    else
        rq__fail_call_of_op(op);
}

/* HBASE: HRegionServer.execRegionServerService: the server itself has no endpoints. */
void rq__handle_exec_server_service(void *ctx, rq_call *call)
{
    (void)ctx;
    const Pb__CoprocessorServiceRequest *request =
        (const Pb__CoprocessorServiceRequest *)call->param;
    rq_call_fail(call, RQ_E_UNKNOWN_PROTOCOL,
                 "No registered coprocessor executorService found for %s",
                 request->call->service_name);
}
