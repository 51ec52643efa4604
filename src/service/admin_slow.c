/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow log for clients: GetSlowLogResponses, GetLargeLogResponses (clients before 2.4),
 * GetLogEntries, ClearSlowLogsResponses. Responses have the records of both ports.
 * HBASE: RSRpcServices.getLogEntries, SlowLogQueueService, LogHandlerUtils.
 */
#include "service/admin_priv.h"

#include "proto/logs.pb-c.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define RESPONSES "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponses"

/* --- which records ---------------------------------------------------------------------------- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* With or without its port. */
static bool is_client(const char *client, const char *wanted)
{
    const char *port = strrchr(client, ':');
    size_t len = strlen(wanted);
    if (strcmp(client, wanted) == 0) return true;
    return port != NULL && (size_t)(port - client) == len && memcmp(client, wanted, len) == 0;
}

static bool is_wanted(const Pb__SlowLogResponseRequest *r, const rq_slow_call *c)
{
    const bool given[] = {is_set(r->region_name), is_set(r->table_name), is_set(r->client_address),
                          is_set(r->user_name)};
    const bool match[] = {given[0] && strcmp(c->region, r->region_name) == 0,
                          given[1] && strncmp(c->region, r->table_name, strlen(r->table_name)) == 0,
                          given[2] && is_client(c->client, r->client_address),
                          given[3] && strcmp(c->user, r->user_name) == 0};
    unsigned asked = 0, met = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(given); i++) {
        asked += given[i];
        met += match[i];
    }
    bool all = r->has_filter_by_operator &&
               r->filter_by_operator == PB__SLOW_LOG_RESPONSE_REQUEST__FILTER_BY_OPERATOR__AND;
    return asked == 0 || (all ? met == asked : met > 0);
}

/* --- messages --------------------------------------------------------------------------------- */

static int32_t ms_of(uint64_t ns)
{
    return ns / 1000000 > INT32_MAX ? INT32_MAX : (int32_t)(ns / 1000000);
}

static Pb__SlowLogPayload__Type type_of(const rq_slow_call *c)
{
    if (c->is_slow && c->is_large) return PB__SLOW_LOG_PAYLOAD__TYPE__ALL;
    return c->is_slow ? PB__SLOW_LOG_PAYLOAD__TYPE__SLOW_LOG
                      : PB__SLOW_LOG_PAYLOAD__TYPE__LARGE_LOG;
}

/* Texts of the record, which lives until the answer is packed. */
static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

static Pb__SlowLogPayload *payload(rq_arena *arena, const rq_slow_call *c)
{
    Pb__SlowLogPayload *m = rq_arena_alloc(arena, sizeof *m);
    char *details = rq_arena_printf(
        arena, "%s(org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos$%s)%s%s",
        c->method, c->request,
        c->failure == NULL ? "" : " failed: ", c->failure == NULL ? "" : c->failure);
    if (m == NULL || details == NULL) return NULL;
    pb__slow_log_payload__init(m);
    m->start_time = c->start_ms;
    m->processing_time = ms_of(c->ns);
    m->queue_time = ms_of(c->queue_ns);
    m->response_size = (int64_t)c->answer_bytes;
    m->client_address = text_of(c->client);
    m->server_class = text_of(c->server);
    m->method_name = text_of(c->method);
    m->call_details = details;
    m->param = text_of(c->param);
    m->user_name = text_of(c->user);
    m->region_name = text_of(c->region);
    m->has_multi_gets = m->has_multi_mutations = m->has_multi_service_calls = 1;
    m->multi_gets = (int32_t)c->gets;
    m->multi_mutations = (int32_t)c->mutations;
    m->multi_service_calls = (int32_t)c->service_calls;
    m->type = type_of(c);
    m->has_fs_read_time = 1;
    m->fs_read_time = ms_of(c->place_ns[RQ_CALL_IN_FILES]);
    return m;
}

static rq_err add_payloads(const rq_slow_list *list, rq_arena *arena,
                           const Pb__SlowLogResponseRequest *r, bool large,
                           Pb__SlowLogResponses *ret)
{
    ret->slow_log_payloads =
        rq_arena_alloc(arena, (list->count + 1) * sizeof(Pb__SlowLogPayload *));
    if (ret->slow_log_payloads == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < list->count && ret->n_slow_log_payloads < r->limit; i++) {
        const rq_slow_call *c = list->calls[i];
        if (!(large ? c->is_large : c->is_slow) || !is_wanted(r, c)) continue;
        Pb__SlowLogPayload *m = payload(arena, c);
        if (m == NULL) return RQ_E_NO_MEMORY;
        ret->slow_log_payloads[ret->n_slow_log_payloads++] = m;
    }
    return RQ_OK;
}

/* `list` is released by the caller, once the answer is packed. */
static rq_err find(const rq_admin_services *s, rq_arena *arena, const Pb__SlowLogResponseRequest *r,
                   bool large, rq_slow_list *list, Pb__SlowLogResponses *ret)
{
    *list = (rq_slow_list){0};
    if (s->slow == NULL) return RQ_OK;
    RQ_TRY(rq_slow_log_list(s->slow, list));
    return add_payloads(list, arena, r, large, ret);
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool wants_large(const Pb__SlowLogResponseRequest *r)
{
    return r->has_log_type && r->log_type == PB__SLOW_LOG_RESPONSE_REQUEST__LOG_TYPE__LARGE_LOG;
}

static void answer_records(rq_admin_services *s, rq_call *call, bool large)
{
    Pb__SlowLogResponses response = PB__SLOW_LOG_RESPONSES__INIT;
    rq_slow_list list;
    rq_err rc = find(s, &call->arena, (const Pb__SlowLogResponseRequest *)call->param, large, &list,
                     &response);
    if (rc != RQ_OK)
        rq_call_fail(call, rc, NULL);
    else
        rq_call_reply(call, &response.base);
    rq_slow_list_release(&list);
}

void rq__get_slow_logs(void *ctx, rq_call *call)
{
    answer_records(ctx, call, wants_large((const Pb__SlowLogResponseRequest *)call->param));
}

void rq__get_large_logs(void *ctx, rq_call *call)
{
    answer_records(ctx, call, true);
}

void rq__clear_slow_logs(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    Pb__ClearSlowLogResponses response = PB__CLEAR_SLOW_LOG_RESPONSES__INIT;
    response.is_cleaned = s->slow != NULL && rq_slow_log_clear(s->slow);
    rq_call_reply(call, &response.base);
}

static rq_err answer_entry(rq_admin_services *s, rq_call *call, const Pb__SlowLogResponseRequest *r)
{
    Pb__LogEntry entry = PB__LOG_ENTRY__INIT;
    Pb__SlowLogResponses response = PB__SLOW_LOG_RESPONSES__INIT;
    rq_slow_list list;
    rq_err rc = find(s, &call->arena, r, wants_large(r), &list, &response);
    if (rc == RQ_OK) {
        entry.log_class_name = text_of(RESPONSES);
        entry.log_message.len = pb__slow_log_responses__get_packed_size(&response);
        entry.log_message.data = rq_arena_alloc(&call->arena, entry.log_message.len);
        if (entry.log_message.data == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (rc == RQ_OK) {
        pb__slow_log_responses__pack(&response, entry.log_message.data);
        rq_call_reply(call, &entry.base);
    }
    rq_slow_list_release(&list);
    return rc;
}

void rq__get_log_entries(void *ctx, rq_call *call)
{
    const Pb__LogRequest *request = (const Pb__LogRequest *)call->param;
    if (strstr(request->log_class_name, "SlowLogResponseRequest") == NULL) {
        rq_call_fail(call, RQ_E_IOEXCEPTION, "Invalid request params");
        return;
    }
    ProtobufCAllocator allocator = rq_rpc_allocator(&call->arena);
    Pb__SlowLogResponseRequest *r = pb__slow_log_response_request__unpack(
        &allocator, request->log_message.len, request->log_message.data);
    rq_err rc = r == NULL ? RQ_E_IOEXCEPTION : answer_entry(ctx, call, r);
    if (rc == RQ_E_IOEXCEPTION)
        rq_call_fail(call, rc, "Invalid request params");
    else if (rc != RQ_OK)
        rq_call_fail(call, rc, NULL);
}
