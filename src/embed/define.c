/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions: procedures of the catalog, waited for to their end, and what the catalog's view says
 * of tables and namespaces. */
#include "embed/embed_priv.h"

typedef struct define_job {
    rq_ddl ddl;
    rq_latch latch;
} define_job;

static void submitted(rq_ddl *ddl)
{
    define_job *j = RQ_CONTAINER_OF(ddl, define_job, ddl);
    j->latch.executor->latch_open(&j->latch, ddl->rc);
}

static const rq_ddl_kind kinds[] = {
    [RQ_DEFINE_CREATE_TABLE] = RQ_DDL_CREATE_TABLE,
    [RQ_DEFINE_DROP_TABLE] = RQ_DDL_DELETE_TABLE,
    [RQ_DEFINE_ENABLE_TABLE] = RQ_DDL_ENABLE_TABLE,
    [RQ_DEFINE_DISABLE_TABLE] = RQ_DDL_DISABLE_TABLE,
    [RQ_DEFINE_TRUNCATE_TABLE] = RQ_DDL_TRUNCATE_TABLE,
    [RQ_DEFINE_FLUSH_TABLE] = RQ_DDL_FLUSH_TABLE,
    [RQ_DEFINE_CREATE_NAMESPACE] = RQ_DDL_CREATE_NAMESPACE,
    [RQ_DEFINE_DROP_NAMESPACE] = RQ_DDL_DELETE_NAMESPACE,
};

rq_err rq__embed_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq_executor *ex = e->executor;
    define_job *j = rq_arena_calloc(&slot->arena, 1, sizeof *j);
    if (j == NULL) return rq_no_memory(&why->error);
    rq_ddl *ddl = &j->ddl;
    ddl->kind = kinds[d->kind];
    ddl->ns = d->ns;
    ddl->qualifier = d->qualifier;
    ddl->wait_finished = true;
    ddl->submitted = submitted;
    ddl->user = RQ_SLICE_LIT("embedded");
    if (d->kind == RQ_DEFINE_CREATE_TABLE) {
        ddl->of.create.schema = d->message;
        ddl->of.create.split_keys = d->split_keys;
        ddl->of.create.split_key_count = d->split_key_count;
    } else if (d->kind == RQ_DEFINE_TRUNCATE_TABLE) {
        ddl->of.truncate.preserve_splits = d->preserve_splits;
    } else if (d->kind == RQ_DEFINE_CREATE_NAMESPACE) {
        ddl->of.put_namespace.descriptor = d->message;
    }
    ex->latch_init(ex, &j->latch);
    rq_catalog_submit(e->catalog, ddl);
    rq_err rc = ex->latch_wait(&j->latch);
    ex->latch_destroy(&j->latch);
    if (rc != RQ_OK) why->error = ddl->why;
    return rc;
}

/* --- what there is ---------------------------------------------------------------------------- */

static rq_slice name_of(rq_arena *arena, rq_slice ns, rq_slice qualifier)
{
    if (rq_slice_eq(ns, RQ_SLICE_LIT("default"))) return qualifier;
    return rq_table_name_join(arena, ns, qualifier);
}

rq_err rq__embed_describe(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                          bool *ret_enabled, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq__embed_seat *s;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq_slice name = name_of(&slot->arena, ns, qualifier);
    if (name.ptr == NULL) return rq_no_memory(&why->error);
    rq__seat_enter(e, s);
    rq_err rc = RQ_OK;
    const rq_catalog_table *t = rq_catalog_table_find(e->catalog, name);
    if (t == NULL) {
        rc = rq_fail(&why->error, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)name.len,
                     (const char *)name.ptr);
    } else {
        rq_slice pb = rq_table_schema_pb(t->schema);
        *ret_enabled = t->state == RQ_TABLE_ENABLED;
        rc = rq_buf_append(ret, pb.ptr, pb.len);
    }
    rq__seat_exit(e, s);
    return rc;
}

static rq_err add_tables(const rq__embed *e, rq_slice ns, rq_naming *ret)
{
    const rq_catalog_table *const *list;
    size_t count;
    rq_catalog_tables(e->catalog, &list, &count);
    for (size_t i = 0; i < count; i++) {
        const rq_table_schema *s = list[i]->schema;
        if (!s->is_system && (ns.len == 0 || rq_slice_eq(s->ns, ns)))
            RQ_TRY(rq_naming_add(ret, s->name));
    }
    return RQ_OK;
}

rq_err rq__embed_tables(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq__embed_seat *s;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    rq_err rc = ns.len > 0 && rq_catalog_namespace_find(e->catalog, ns) == NULL
                    ? rq_fail(&why->error, RQ_E_NAMESPACE_NOT_FOUND, "%.*s", (int)ns.len,
                              (const char *)ns.ptr)
                    : add_tables(e, ns, ret);
    rq__seat_exit(e, s);
    return rc;
}

rq_err rq__embed_namespaces(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    const rq_namespace *const *list;
    size_t count;
    rq__embed_seat *s;
    rq_err rc = RQ_OK;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    rq_catalog_namespaces(e->catalog, &list, &count);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        rc = rq_naming_add(ret, list[i]->name);
    rq__seat_exit(e, s);
    return rc;
}
