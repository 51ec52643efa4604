/* SPDX-License-Identifier: Apache-2.0 */
/* The other calls of a bulk load: before and after the load call. HBASE: SecureBulkLoadClient. */
#include "base/pb.h"
#include "transfer/load_hfiles.h"

/* TableName { namespace 1, qualifier 2 } */
static rq_err put_table(rq_buf *b, const char *name)
{
    size_t at;
    const char *colon = strchr(name, ':');
    rq_slice ns =
        colon != NULL ? rq_slice_of(name, (size_t)(colon - name)) : RQ_SLICE_LIT("default");
    RQ_TRY(rq_pb_begin(b, 1, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, ns));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(colon != NULL ? colon + 1 : name)));
    return rq_pb_end(b, at);
}

/* RegionSpecifier { type 1: REGION_NAME, value 2 } of the table's first region. */
static rq_err put_region(rq_buf *b, const rq__link *link, rq_error *why)
{
    size_t at;
    if (rq_client_table_regions(link->table) == 0)
        return rq_fail(why, RQ_E_NOT_SERVING_REGION, "table %s has no open region", link->name);
    RQ_TRY(rq_pb_begin(b, 2, &at));
    RQ_TRY(rq_pb_put_number(b, 1, 1));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_client_table_region(link->table, 0).name));
    return rq_pb_end(b, at);
}

static rq_err fail(const rq_client_failure *f, rq_err rc, const char *what, rq_error *why)
{
    size_t len = strcspn(f->text, "\n");
    return rq_fail(why, rc, "%s: %.*s", what, (int)len, f->text);
}

rq_err rq__load_prepare(rq__link *link, rq_arena *arena, const char **ret_token, rq_error *why)
{
    rq_buf request = {0}, answer = {0};
    rq_client_failure failure;
    rq_pb_field f;
    *ret_token = NULL;
    rq_err rc = put_table(&request, link->name);
    if (rc == RQ_OK) rc = put_region(&request, link, why);
    if (rc == RQ_OK) {
        rc = rq_client_call_region(link->table, 0, "PrepareBulkLoad", rq_buf_slice(&request),
                                   &answer, &failure);
        if (rc != RQ_OK) rc = fail(&failure, rc, "PrepareBulkLoad", why);
    }
    rq_cursor c = rq_cursor_of(rq_buf_slice(&answer));
    while (rc == RQ_OK && rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES) *ret_token = rq_arena_cstr(arena, f.bytes);
    if (rc == RQ_OK && *ret_token == NULL)
        rc = rq_fail(why, RQ_E_MALFORMED, "PrepareBulkLoad: the server's response has no token");
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

rq_err rq__load_cleanup(rq__link *link, const char *token, rq_error *why)
{
    rq_buf request = {0}, answer = {0};
    rq_client_failure failure;
    rq_err rc = rq_pb_put_bytes(&request, 1, rq_slice_cstr(token));
    if (rc == RQ_OK) rc = put_region(&request, link, why);
    if (rc == RQ_OK) {
        rc = rq_client_call_region(link->table, 0, "CleanupBulkLoad", rq_buf_slice(&request),
                                   &answer, &failure);
        if (rc != RQ_OK) rc = fail(&failure, rc, "CleanupBulkLoad", why);
    }
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

/* GetTableDescriptorsRequest { table_names 1 }, GetTableDescriptorsResponse { table_schema 1 } */
rq_err rq__table_schema_ask(rq__link *link, rq_table_schema **ret, rq_error *why)
{
    rq_buf request = {0}, answer = {0};
    rq_client_failure failure;
    rq_pb_field f;
    *ret = NULL;
    rq_err rc = put_table(&request, link->name);
    if (rc == RQ_OK) {
        rc = rq_client_master(link->client, "GetTableDescriptors", rq_buf_slice(&request), &answer,
                              &failure);
        if (rc != RQ_OK) rc = fail(&failure, rc, "GetTableDescriptors", why);
    }
    rq_cursor c = rq_cursor_of(rq_buf_slice(&answer));
    while (rc == RQ_OK && *ret == NULL && rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES) rc = rq_table_schema_parse(f.bytes, ret, why);
    if (rc == RQ_OK && *ret == NULL)
        rc = rq_fail(why, RQ_E_TABLE_NOT_FOUND, "table %s does not exist", link->name);
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}
