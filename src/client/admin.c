/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls of the master, repeated after temporary errors. If a call begins a procedure, the master is asked
 * until that has ended. HBASE: RawAsyncHBaseAdmin. */
#include "base/clock.h"
#include "client/call.h"
#include "client/client_priv.h"

#include <limits.h>
#include <stdio.h>

#define PROCEDURE_PERIOD_NS 20000000
#define PROCEDURE_ATTEMPTS 6000
#define PROCEDURE_RUNNING 1
#define TABLE_ENABLED 0   /* pb.TableState.State */
#define CELL_VISIBILITY 4 /* pb.SecurityCapabilitiesResponse.Capability */

rq_err rq__client_master(rq_client *c, bool waits, rq__conn **ret)
{
    bool is_lost =
        c->master != NULL && (c->master_lost || rq__conn_is_lost(c->master)) && !c->stopped;
    rq_error why = {0};
    rq_err rc = RQ_OK;
    if (is_lost && !c->registry.asking) rc = rq__registry_ask(c, RQ__REGISTRY_TIMEOUT_NS, &why);
    if (rc == RQ_E_NO_MEMORY)
        return rc; /* without another answer, the master may be where it was */
    while (is_lost && waits && c->registry.asking)
        rq_client_poll(c, PROCEDURE_PERIOD_NS);
    if (c->master == NULL)
        RQ_TRY(rq__client_conn(c, &c->found.master, "MasterService", NULL, &c->master));
    *ret = c->master;
    return RQ_OK;
}

/* TableName { namespace 1, qualifier 2 } as a field. */
static rq_err put_table(rq_buf *b, uint32_t field, const char *name)
{
    size_t at;
    const char *colon = strchr(name, ':');
    rq_slice ns =
        colon != NULL ? rq_slice_of(name, (size_t)(colon - name)) : RQ_SLICE_LIT("default");
    RQ_TRY(rq_pb_begin(b, field, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, ns));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(colon != NULL ? colon + 1 : name)));
    return rq_pb_end(b, at);
}

static rq_err put_attribute(rq_buf *b, const char *name, const char *value)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 2, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(name)));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(value)));
    return rq_pb_end(b, at);
}

static rq_err put_attribute_number(rq_buf *b, const char *name, unsigned value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    return put_attribute(b, name, text);
}

static rq_err put_family(rq_buf *b, const rq_client_family *f)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 3, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(f->name)));
    RQ_TRY(put_attribute_number(b, "VERSIONS", f->versions > 0 ? f->versions : 1));
    RQ_TRY(put_attribute(b, "COMPRESSION", f->compression != NULL ? f->compression : "NONE"));
    RQ_TRY(put_attribute(b, "DATA_BLOCK_ENCODING", f->encoding != NULL ? f->encoding : "NONE"));
    RQ_TRY(put_attribute(b, "BLOOMFILTER", f->bloom != NULL ? f->bloom : "ROW"));
    RQ_TRY(put_attribute_number(b, "BLOCKSIZE", f->block_bytes > 0 ? f->block_bytes : 65536));
    return rq_pb_end(b, at);
}

static rq_err put_create(rq_buf *b, const char *name, const rq_client_family *families,
                         size_t family_count, const rq_slice *splits, size_t split_count)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 1, &at));
    RQ_TRY(put_table(b, 1, name));
    for (size_t i = 0; i < family_count; i++)
        RQ_TRY(put_family(b, &families[i]));
    RQ_TRY(rq_pb_end(b, at));
    for (size_t i = 0; i < split_count; i++)
        RQ_TRY(rq_pb_put_bytes(b, 2, splits[i]));
    return RQ_OK;
}

rq_err rq_client_create_table(rq_client *c, const char *name, const rq_client_family *families,
                              size_t family_count, const rq_slice *splits, size_t split_count,
                              rq_error *why)
{
    rq_buf b = {0};
    rq_err rc = put_create(&b, name, families, family_count, splits, split_count);
    if (rc == RQ_OK) rc = rq__client_ask(c, "CreateTable", rq_buf_slice(&b), NULL, why);
    rq_buf_clear(&b);
    return rc;
}

rq_err rq__client_ask(rq_client *c, const char *method, rq_slice message, rq_buf *ret,
                      rq_error *why)
{
    rq_client_failure failure;
    rq_err rc = rq_client_master(c, method, message, ret, &failure);
    if (rc == RQ_OK) return RQ_OK;
    return rq_fail(why, rc, "%s: %.600s", method,
                   failure.text[0] != '\0' ? failure.text : rq_err_text(rc));
}

/* GetTableDescriptorsRequest { table_names 1 }, GetTableDescriptorsResponse { table_schema 1 } */
rq_err rq_client_table_exists(rq_client *c, const char *name, bool *ret, rq_error *why)
{
    rq_buf request = {0};
    rq_buf answer = {0};
    rq_pb_field f;
    rq_err rc = put_table(&request, 1, name);
    if (rc == RQ_OK)
        rc = rq__client_ask(c, "GetTableDescriptors", rq_buf_slice(&request), &answer, why);
    bool found = false;
    rq_cursor cursor = rq_cursor_of(rq_buf_slice(&answer));
    while (rc == RQ_OK && rq_pb_next(&cursor, &f) == RQ_OK)
        if (f.number == 1 && f.wire == 2) found = true;
    if (rc == RQ_OK) *ret = found;
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

/* GetTableStateRequest { table_name 1 }, GetTableStateResponse { TableState { state 1 } 1 } */
rq_err rq_client_table_is_enabled(rq_client *c, const char *name, bool *ret, rq_error *why)
{
    rq_buf request = {0};
    rq_buf answer = {0};
    rq_pb_field state = {0}, f = {0};
    rq_err rc = put_table(&request, 1, name);
    if (rc == RQ_OK) rc = rq__client_ask(c, "GetTableState", rq_buf_slice(&request), &answer, why);
    rq_cursor outer = rq_cursor_of(rq_buf_slice(&answer));
    bool is_known = rc == RQ_OK && rq_pb_next(&outer, &state) == RQ_OK && state.wire == 2;
    rq_cursor inner = rq_cursor_of(is_known ? state.bytes : (rq_slice){0});
    is_known = is_known && rq_pb_next(&inner, &f) == RQ_OK && f.number == 1 && f.wire == 0;
    *ret = is_known && f.value == TABLE_ENABLED;
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    if (rc != RQ_OK || is_known) return rc;
    return rq_fail(why, RQ_E_MALFORMED, "GetTableState: the answer has no state");
}

/* SecurityCapabilitiesResponse { capabilities 1 } */
rq_err rq_client_has_visibility_labels(rq_client *c, bool *ret, rq_error *why)
{
    rq_buf answer = {0};
    rq_pb_field f;
    rq_err rc = rq__client_ask(c, "getSecurityCapabilities", (rq_slice){0}, &answer, why);
    rq_cursor cursor = rq_cursor_of(rq_buf_slice(&answer));
    *ret = false;
    while (rc == RQ_OK && (rc = rq_pb_next(&cursor, &f)) == RQ_OK)
        *ret = *ret || (f.number == 1 && f.wire == RQ_PB_VARINT && f.value == CELL_VISIBILITY);
    rq_buf_clear(&answer);
    if (rc == RQ_E_MALFORMED)
        return rq_fail(why, rc, "getSecurityCapabilities: a malformed answer");
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq_client_drop_table(rq_client *c, const char *name, rq_error *why)
{
    rq_error first = {0};
    rq_buf b = {0};
    rq_err rc = put_table(&b, 1, name);
    if (rc == RQ_OK) rc = rq__client_ask(c, "DisableTable", rq_buf_slice(&b), NULL, &first);
    if (rc == RQ_OK || rc == RQ_E_TABLE_NOT_ENABLED)
        rc = rq__client_ask(c, "DeleteTable", rq_buf_slice(&b), NULL, why);
    else
        rc = rq_fail(why, rc, "%s", first.message);
    rq_buf_clear(&b);
    return rc;
}

rq_err rq_client_flush_table(rq_client *c, const char *name, rq_error *why)
{
    rq_buf b = {0};
    rq_err rc = put_table(&b, 1, name);
    if (rc == RQ_OK) rc = rq__client_ask(c, "FlushTable", rq_buf_slice(&b), NULL, why);
    rq_buf_clear(&b);
    return rc;
}

/* --- any method ------------------------------------------------------------------------------- */

typedef struct master_call {
    bool done;
    rq_err err;
    rq_buf *ret;
    rq_client_failure *failure;
} master_call;

static void copy_text(char *to, size_t size, rq_slice from)
{
    size_t len = from.len < size ? from.len : size - 1;
    if (len > 0) memcpy(to, from.ptr, len);
    to[len] = '\0';
}

void rq__failure_of(const rq_reply *r, rq_client_failure *ret)
{
    ret->retry = r->retry;
    copy_text(ret->java_class, sizeof ret->java_class, r->java_class);
    copy_text(ret->text, sizeof ret->text, r->text.len > 0 ? r->text : r->kind);
}

static void take_master(void *ctx, const rq_reply *r)
{
    master_call *m = ctx;
    m->done = true;
    m->err = r->err;
    if (r->err == RQ_OK) {
        m->err = rq_buf_append(m->ret, r->message.ptr, r->message.len);
        return;
    }
    rq__failure_of(r, m->failure);
}

/* To a master or region server at `host`. */
static rq_err call_server(rq_client *c, rq__conn *conn, const char *host, const char *method,
                          rq_slice message, rq_buf *ret, rq_client_failure *failure)
{
    master_call m = {.ret = ret, .failure = failure};
    rq_buf_reset(ret);
    rq_err rc =
        rq__conn_call(conn, method, 0, (rq_slice){0}, message, (rq_slice){0}, take_master, &m);
    if (rc != RQ_OK) {
        snprintf(failure->text, sizeof failure->text, "%s: %s", host, rq_err_text(rc));
        return rc;
    }
    while (!m.done)
        rq_client_poll(c, PROCEDURE_PERIOD_NS);
    return m.err;
}

/* After a retryable failure another server may be the master, even if this connection is still open.
 * HBASE: AsyncMasterRequestRpcRetryingCaller, which drops the master's stub. */
static rq_err call_master(rq_client *c, const char *method, rq_slice message, rq_buf *ret,
                          rq_client_failure *failure)
{
    rq__conn *conn = NULL;
    RQ_TRY(rq__client_master(c, true, &conn));
    rq_err rc = call_server(c, conn, c->found.master.host, method, message, ret, failure);
    if (rc != RQ_OK && failure->retry) c->master_lost = true;
    return rc;
}

/* ForeignExceptionMessage { generic_exception 2 { class_name 1, message 2 } } */
static rq_err foreign_exception(rq_slice foreign, rq_client_failure *failure)
{
    rq_cursor c = rq_cursor_of(foreign);
    rq_pb_field f;
    rq_slice java_class = RQ_SLICE_LIT("java.io.IOException");
    while (rq_pb_next(&c, &f) == RQ_OK) {
        if (f.number != 2 || f.wire != RQ_PB_BYTES) continue;
        rq_cursor inner = rq_cursor_of(f.bytes);
        while (rq_pb_next(&inner, &f) == RQ_OK) {
            if (f.number == 1 && f.wire == RQ_PB_BYTES) java_class = f.bytes;
            if (f.number == 2 && f.wire == RQ_PB_BYTES)
                copy_text(failure->text, sizeof failure->text, f.bytes);
        }
    }
    copy_text(failure->java_class, sizeof failure->java_class, java_class);
    rq_err rc = rq__err_of_class(java_class);
    failure->retry = !rq_err_do_not_retry(rc);
    return rc;
}

static int64_t wait_ns(const rq_client *c)
{
    return c->options.wait_ms > 0 ? (int64_t)c->options.wait_ms * 1000000
                                  : (int64_t)PROCEDURE_ATTEMPTS * PROCEDURE_PERIOD_NS;
}

static rq__repeat repeat_of(const rq_client *c)
{
    unsigned max = c->options.master_retries;
    return (rq__repeat){.max = max > 0 ? max : c->options.retries,
                        .until_ns = rq_client_now_ns() + wait_ns(c)};
}

/* Makes the call, and after a temporary error again; if the master has changed, to the new one. HBASE:
 * AsyncMasterRequestRpcRetryingCaller. */
static rq_err call_again(rq_client *c, rq__repeat repeat, const char *method, rq_slice message,
                         rq_buf *ret, rq_client_failure *failure)
{
    rq_err rc;
    do {
        *failure = (rq_client_failure){.retry = false};
        rc = call_master(c, method, message, ret, failure);
    } while (rq__client_again(c, &repeat, rc, failure->retry));
    return rc;
}

/* As call_again, for questions about what the master is doing: without a limit of their number. HBASE:
 * RawAsyncHBaseAdmin.getProcedureResult. */
static rq_err ask_again(rq_client *c, int64_t until_ns, const char *method, rq_slice message,
                        rq_buf *ret, rq_client_failure *failure)
{
    rq__repeat repeat = {.max = UINT_MAX, .until_ns = until_ns};
    return call_again(c, repeat, method, message, ret, failure);
}

/* Polls until the procedure has finished; its failure is the call's. */
static rq_err follow_procedure(rq_client *c, uint64_t id, int64_t until, rq_client_failure *failure)
{
    rq_buf request = {0};
    rq_buf answer = {0};
    rq_err rc = rq_pb_put_number(&request, 1, id);
    for (int64_t pause = 1000000; rc == RQ_OK;
         pause = 2 * pause < PROCEDURE_PERIOD_NS ? 2 * pause : PROCEDURE_PERIOD_NS) {
        uint64_t state = 0;
        rq_slice foreign = {0};
        rq_pb_field f;
        rc = ask_again(c, until, "getProcedureResult", rq_buf_slice(&request), &answer, failure);
        rq_cursor cursor = rq_cursor_of(rq_buf_slice(&answer));
        while (rc == RQ_OK && rq_pb_next(&cursor, &f) == RQ_OK) {
            if (f.number == 1 && f.wire == RQ_PB_VARINT) state = f.value;
            if (f.number == 5 && f.wire == RQ_PB_BYTES) foreign = f.bytes;
        }
        if (rc == RQ_OK && foreign.len > 0) rc = foreign_exception(foreign, failure);
        if (rc != RQ_OK || state != PROCEDURE_RUNNING) break;
        if (rq_client_now_ns() > until) {
            snprintf(failure->text, sizeof failure->text, "procedure %llu is still running",
                     (unsigned long long)id);
            rc = RQ_E_TIMEOUT;
        }
        rq_client_pause(c, pause);
    }
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

/* Requests that begin a procedure: the field nonce_group, behind which is the field nonce, and the answer's
 * field with the procedure's id. With the same nonce a repeated call is the same procedure. HBASE:
 * RequestConverter; HBase's client sends none with the calls of namespaces, but its master takes them. */
static const struct beginning {
    const char *method;
    uint32_t nonce_group, procedure;
} beginnings[] = {
    {"CreateTable", 3, 1},     {"DeleteTable", 2, 1},     {"EnableTable", 2, 1},
    {"DisableTable", 2, 1},    {"truncateTable", 3, 1},   {"ModifyTable", 3, 1},
    {"FlushTable", 3, 1},      {"SplitRegion", 3, 1},     {"MergeTableRegions", 4, 1},
    {"CreateNamespace", 2, 1}, {"ModifyNamespace", 2, 1}, {"DeleteNamespace", 2, 1},
    {"Snapshot", 2, 2},        {"RestoreSnapshot", 2, 1},
};

static const struct beginning *beginning_of(const char *method)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(beginnings); i++)
        if (strcmp(beginnings[i].method, method) == 0) return &beginnings[i];
    return NULL;
}

static rq_err put_nonce(rq_client *c, rq_buf *b, uint32_t field)
{
    RQ_TRY(rq_pb_put_number(b, field, c->nonce_group));
    RQ_TRY(rq_pb_put_number(b, field + 1, c->next_nonce));
    c->next_nonce += 2; /* odd forever: 0 is none */
    return RQ_OK;
}

/* The first number with that field; 0: there is none. */
static uint64_t number_of(rq_slice message, uint32_t field)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == field && f.wire == RQ_PB_VARINT) return f.value;
    return 0;
}

rq_err rq_client_master(rq_client *c, const char *method, rq_slice message, rq_buf *ret,
                        rq_client_failure *ret_failure)
{
    const struct beginning *beginning = beginning_of(method);
    rq__repeat repeat = repeat_of(c);
    rq_buf request = {0}, answer = {0};
    *ret_failure = (rq_client_failure){.retry = false};
    rq_err rc = rq_buf_append(&request, message.ptr, message.len);
    if (rc == RQ_OK && beginning != NULL) rc = put_nonce(c, &request, beginning->nonce_group);
    if (rc == RQ_OK)
        rc = call_again(c, repeat, method, rq_buf_slice(&request), &answer, ret_failure);
    uint64_t id = rc != RQ_OK || beginning == NULL
                      ? 0
                      : number_of(rq_buf_slice(&answer), beginning->procedure);
    if (id != 0) rc = follow_procedure(c, id, repeat.until_ns, ret_failure);
    if (rc == RQ_OK && ret != NULL) rc = rq_buf_append(ret, answer.ptr, answer.len);
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

/* SnapshotResponse { expected_timeout 1, proc_id 2 }. HBASE: RawAsyncHBaseAdmin.snapshot */
rq_err rq_client_snapshot(rq_client *c, rq_slice message, rq_client_failure *failure)
{
    rq_buf answer = {0};
    rq_err rc = rq_client_master(c, "Snapshot", message, &answer, failure);
    bool has_ended = number_of(rq_buf_slice(&answer), beginning_of("Snapshot")->procedure) != 0;
    rq_buf_clear(&answer);
    return rc != RQ_OK || has_ended ? rc : rq_client_wait_snapshot(c, message, failure);
}

/* IsSnapshotDoneResponse { done 1 } */
rq_err rq_client_wait_snapshot(rq_client *c, rq_slice message, rq_client_failure *failure)
{
    rq_buf answer = {0};
    rq_err rc = RQ_OK;
    bool done = false;
    *failure = (rq_client_failure){.retry = false};
    int64_t until = rq_client_now_ns() + wait_ns(c);
    while (rc == RQ_OK && !done) {
        rq_pb_field f;
        rq_buf_reset(&answer);
        rc = ask_again(c, until, "IsSnapshotDone", message, &answer, failure);
        rq_cursor cursor = rq_cursor_of(rq_buf_slice(&answer));
        while (rc == RQ_OK && rq_pb_next(&cursor, &f) == RQ_OK)
            if (f.number == 1 && f.wire == RQ_PB_VARINT) done = f.value != 0;
        if (rc != RQ_OK || done) break;
        if (rq_client_now_ns() > until) {
            snprintf(failure->text, sizeof failure->text, "the snapshot is still being taken");
            rc = RQ_E_TIMEOUT;
        }
        rq_client_pause(c, PROCEDURE_PERIOD_NS);
    }
    rq_buf_clear(&answer);
    return rc;
}

static void take_question(void *ctx, const rq_reply *r)
{
    rq_client_question *q = ctx;
    q->done(q, r->err, r->message);
}

rq_err rq_client_ask_master(rq_client *c, const char *method, rq_slice message,
                            rq_client_question *q)
{
    rq__conn *conn = NULL;
    RQ_TRY(rq__client_master(c, false, &conn));
    return rq__conn_call_until(conn, q->until_ns, method, 0, (rq_slice){0}, message, (rq_slice){0},
                               take_question, q);
}

/* --- regions ---------------------------------------------------------------------------------- */

/* CompactRegionRequest { region 1, major 2, family 3 } */
static rq_err put_compact(rq_buf *b, const rq__region *r, rq_slice family, bool major)
{
    RQ_TRY(rq_buf_append(b, r->specifier.ptr, r->specifier.len));
    RQ_TRY(rq_pb_put_number(b, 2, major));
    return family.len == 0 ? RQ_OK : rq_pb_put_bytes(b, 3, family);
}

/* The region's server and its connection are looked up for each attempt, because a pause may replace them. A region without
 * a server is left out. HBASE: RawAsyncHBaseAdmin.compact. */
rq_err rq_client_compact(rq_client_table *t, size_t i, rq_slice family, bool major,
                         rq_client_failure *ret_failure)
{
    rq_client *c = t->client;
    rq__map_used(t);
    *ret_failure = (rq_client_failure){.retry = false};
    if (t->regions[i].server == RQ__NO_SERVER) return RQ_OK;
    const rq__address at = c->servers[t->regions[i].server].at;
    const rq_client_target to = {
        .host = rq_slice_cstr(at.host), .port = at.port, .service = "AdminService"};
    rq__repeat repeat = repeat_of(c);
    rq_buf request = {0}, answer = {0};
    rq_err rc = put_compact(&request, &t->regions[i], family, major);
    for (bool goes_on = rc == RQ_OK; goes_on;) {
        rc = rq_client_call(c, &to, "CompactRegion", rq_buf_slice(&request), NULL, &answer,
                            ret_failure);
        goes_on = rq__client_again(c, &repeat, rc, ret_failure->retry);
    }
    if (rc != RQ_OK && ret_failure->text[0] == '\0')
        snprintf(ret_failure->text, sizeof ret_failure->text, "%s: %s", at.host, rq_err_text(rc));
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

rq_err rq_client_call_region(rq_client_table *t, size_t i, const char *method, rq_slice message,
                             rq_buf *ret, rq_client_failure *ret_failure)
{
    rq_client *c = t->client;
    uint32_t server = t->regions[i].server;
    rq__conn *conn = NULL;
    *ret_failure = (rq_client_failure){.retry = server == RQ__NO_SERVER};
    RQ_TRY(rq__client_lane(c, server, 0, &conn));
    return call_server(c, conn, c->servers[server].at.host, method, message, ret, ret_failure);
}
