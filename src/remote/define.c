/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of tables, namespaces and snapshots: calls of the master. Each waits for the end of the
 * procedure that it begins (proto/master.proto has the messages). */
#include "remote/remote_priv.h"

#include "base/pb.h"

void rq__client_failure(const rq_client_failure *failure, rq_err rc, rq_why *why)
{
    why->is_remote = failure->java_class[0] != '\0';
    why->retryable = failure->retry;
    why->error.code = rc;
    rq__remote_text(rq_slice_cstr(failure->java_class), rq_slice_cstr(failure->text), why);
}

/* The lock is held. */
static rq_err call(rq__remote *r, const char *method, const rq_buf *message, rq_buf *ret,
                   rq_why *why)
{
    rq_client_failure failure;
    rq_err rc = rq_client_master(r->client, method, rq_buf_slice(message), ret, &failure);
    if (rc != RQ_OK) rq__client_failure(&failure, rc, why);
    return rc;
}

static const char *const methods[] = {
    [RQ_DEFINE_CREATE_TABLE] = "CreateTable",
    [RQ_DEFINE_DROP_TABLE] = "DeleteTable",
    [RQ_DEFINE_ENABLE_TABLE] = "EnableTable",
    [RQ_DEFINE_DISABLE_TABLE] = "DisableTable",
    [RQ_DEFINE_TRUNCATE_TABLE] = "truncateTable",
    [RQ_DEFINE_FLUSH_TABLE] = "FlushTable",
    [RQ_DEFINE_CREATE_NAMESPACE] = "CreateNamespace",
    [RQ_DEFINE_DROP_NAMESPACE] = "DeleteNamespace",
    [RQ_DEFINE_ALTER_NAMESPACE] = "ModifyNamespace",
    [RQ_DEFINE_ALTER_TABLE] = "ModifyTable",
    [RQ_DEFINE_SPLIT_REGION] = "SplitRegion",
    [RQ_DEFINE_MERGE_REGIONS] = "MergeTableRegions",
    [RQ_DEFINE_SNAPSHOT] = "Snapshot",
    [RQ_DEFINE_DROP_SNAPSHOT] = "DeleteSnapshot",
    [RQ_DEFINE_CLONE_SNAPSHOT] = "RestoreSnapshot",
    [RQ_DEFINE_RESTORE_SNAPSHOT] = "RestoreSnapshot",
};

static rq_err put_request(rq_buf *b, const rq_defining *d)
{
    switch (d->kind) {
    case RQ_DEFINE_CREATE_TABLE:
        RQ_TRY(rq_pb_put_bytes(b, 1, d->message));
        for (size_t i = 0; i < d->split_key_count; i++)
            RQ_TRY(rq_pb_put_bytes(b, 2, d->split_keys[i]));
        return RQ_OK;
    case RQ_DEFINE_CREATE_NAMESPACE:
    case RQ_DEFINE_ALTER_NAMESPACE:
        return rq_pb_put_bytes(b, 1, d->message);
    case RQ_DEFINE_DROP_NAMESPACE:
        return rq_pb_put_bytes(b, 1, d->ns);
    case RQ_DEFINE_TRUNCATE_TABLE:
        RQ_TRY(rq_pb_put_number(b, 2, d->preserve_splits));
        break;
    case RQ_DEFINE_ALTER_TABLE:
        RQ_TRY(rq_pb_put_bytes(b, 2, d->message));
        break;
    case RQ_DEFINE_SPLIT_REGION:
        RQ_TRY(rq__encode_region(b, d));
        return rq_pb_put_bytes(b, 2, d->row);
    case RQ_DEFINE_MERGE_REGIONS:
        for (size_t i = 0; i < d->region_count; i++)
            RQ_TRY(rq__encode_specifier(b, d->regions[i]));
        return RQ_OK;
    case RQ_DEFINE_SNAPSHOT:
    case RQ_DEFINE_DROP_SNAPSHOT:
    case RQ_DEFINE_CLONE_SNAPSHOT:
    case RQ_DEFINE_RESTORE_SNAPSHOT:
        return rq_pb_put_bytes(b, 1, d->message);
    case RQ_DEFINE_DROP_TABLE:
    case RQ_DEFINE_ENABLE_TABLE:
    case RQ_DEFINE_DISABLE_TABLE:
    case RQ_DEFINE_FLUSH_TABLE:
        break;
    }
    return rq__encode_table(b, 1, d->ns, d->qualifier);
}

/* The lock is held. */
static rq_err take_snapshot(rq__remote *r, const rq_buf *request, rq_why *why)
{
    rq_client_failure failure;
    rq_err rc = rq_client_snapshot(r->client, rq_buf_slice(request), &failure);
    if (rc != RQ_OK) rq__client_failure(&failure, rc, why);
    return rc;
}

rq_err rq__remote_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_buf request = {0};
    (void)slot;
    rq_err rc = put_request(&request, d);
    pthread_mutex_lock(&r->lock);
    if (rc != RQ_OK)
        rc = rq_fail(&why->error, rc, "%s", rq_err_text(rc));
    else if (d->kind == RQ_DEFINE_SNAPSHOT)
        rc = take_snapshot(r, &request, why);
    else
        rc = call(r, methods[d->kind], &request, NULL, why);
    pthread_mutex_unlock(&r->lock);
    rq_buf_clear(&request);
    return rc;
}

/* --- what there is ---------------------------------------------------------------------------- */

/* The first field of the message with this number. */
static bool first_bytes(rq_slice message, uint32_t number, rq_slice *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == number && f.wire == RQ_PB_BYTES) {
            *ret = f.bytes;
            return true;
        }
    return false;
}

/* Appends the TableSchema to `ret`, unless that is NULL. */
static rq_err describe(rq__remote *r, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                       bool *ret_enabled, rq_why *why)
{
    rq_buf request = {0}, answer = {0};
    rq_slice schema = {0}, state = {0};
    rq_pb_field f;
    rq_err rc = rq__encode_table(&request, 1, ns, qualifier);
    if (rc == RQ_OK) rc = call(r, "GetTableDescriptors", &request, &answer, why);
    if (rc == RQ_OK && !first_bytes(rq_buf_slice(&answer), 1, &schema)) {
        bool is_default = rq_slice_eq(ns, RQ_SLICE_LIT("default"));
        rc = rq_fail(&why->error, RQ_E_TABLE_NOT_FOUND, "%.*s%s%.*s", is_default ? 0 : (int)ns.len,
                     (const char *)ns.ptr, is_default ? "" : ":", (int)qualifier.len,
                     (const char *)qualifier.ptr);
    }
    if (rc == RQ_OK && ret != NULL) rc = rq_buf_append(ret, schema.ptr, schema.len);
    rq_buf_reset(&answer);
    if (rc == RQ_OK) rc = call(r, "GetTableState", &request, &answer, why);
    if (rc == RQ_OK && first_bytes(rq_buf_slice(&answer), 1, &state)) {
        rq_cursor c = rq_cursor_of(state);
        *ret_enabled = rq_pb_next(&c, &f) == RQ_OK && f.number == 1 && f.value == 0;
    }
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

rq_err rq__remote_describe(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                           bool *ret_enabled, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    (void)slot;
    pthread_mutex_lock(&r->lock);
    rq_err rc = describe(r, ns, qualifier, ret, ret_enabled, why);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

rq_err rq__remote_describe_namespace(rq_db *db, rq_slot *slot, rq_slice ns, rq_buf *ret,
                                     rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_buf request = {0}, answer = {0};
    rq_slice descriptor;
    (void)slot;
    rq_err rc = rq_pb_put_bytes(&request, 1, ns);
    pthread_mutex_lock(&r->lock);
    if (rc == RQ_OK) rc = call(r, "GetNamespaceDescriptor", &request, &answer, why);
    pthread_mutex_unlock(&r->lock);
    if (rc == RQ_OK && !first_bytes(rq_buf_slice(&answer), 1, &descriptor)) rc = RQ_E_MALFORMED;
    if (rc == RQ_OK) rc = rq_buf_append(ret, descriptor.ptr, descriptor.len);
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

/* TableName { namespace 1, qualifier 2 } */
static rq_err add_table(rq_slice message, rq_naming *ret)
{
    rq_buf name = {0};
    rq_slice ns = {0}, qualifier = {0};
    rq_err rc = RQ_OK;
    if (!first_bytes(message, 1, &ns) || !first_bytes(message, 2, &qualifier))
        return RQ_E_MALFORMED;
    if (!rq_slice_eq(ns, RQ_SLICE_LIT("default"))) {
        rc = rq_buf_append(&name, ns.ptr, ns.len);
        if (rc == RQ_OK) rc = rq_buf_append_u8(&name, ':');
    }
    if (rc == RQ_OK) rc = rq_buf_append(&name, qualifier.ptr, qualifier.len);
    if (rc == RQ_OK) rc = rq_naming_add(ret, rq_buf_slice(&name));
    rq_buf_clear(&name);
    return rc;
}

static rq_err list(rq__remote *r, const char *method, const rq_buf *request, bool of_tables,
                   rq_naming *ret, rq_why *why)
{
    rq_buf answer = {0};
    rq_pb_field f;
    pthread_mutex_lock(&r->lock);
    rq_err rc = call(r, method, request, &answer, why);
    pthread_mutex_unlock(&r->lock);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&answer));
    while (rc == RQ_OK && (rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES)
            rc = of_tables ? add_table(f.bytes, ret) : rq_naming_add(ret, f.bytes);
    rq_buf_clear(&answer);
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__remote_tables(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_buf request = {0};
    rq_err rc = RQ_OK;
    (void)slot;
    if (ns.len > 0) rc = rq_pb_put_bytes(&request, 1, ns);
    if (rc == RQ_OK)
        rc = list(r, ns.len > 0 ? "ListTableNamesByNamespace" : "GetTableNames", &request, true,
                  ret, why);
    rq_buf_clear(&request);
    return rc;
}

rq_err rq__remote_namespaces(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why)
{
    rq_buf request = {0};
    (void)slot;
    return list(rq__remote_of(db), "ListNamespaces", &request, false, ret, why);
}

rq_err rq__remote_snapshots(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why)
{
    rq__remote *r = rq__remote_of(db);
    rq_buf request = {0}, answer = {0};
    rq_pb_field f;
    (void)slot;
    pthread_mutex_lock(&r->lock);
    rq_err rc = call(r, "GetCompletedSnapshots", &request, &answer, why);
    pthread_mutex_unlock(&r->lock);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&answer));
    while (rc == RQ_OK && (rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES) rc = rq_snapshot_found(ret, f.bytes);
    rq_buf_clear(&answer);
    return rc == RQ_E_END ? RQ_OK : rc;
}
