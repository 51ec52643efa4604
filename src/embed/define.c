/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of tables, namespaces and snapshots: submits procedures to the catalog and waits
 * until they end or the time limit has passed. Lookups of tables and namespaces in the catalog's
 * view. */
#include "embed/embed_priv.h"

#include "base/clock.h"
#include "base/pb.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define SNAPSHOT_VERSION 2 /* HBASE: SnapshotManifestV2.DESCRIPTOR_VERSION */

/* The state of a definition. The call frees it; but if the time limit passes first, the procedure
 * continues, and submitted() frees it at the procedure's end. */
typedef struct define_job {
    rq_ddl ddl; /* its parameters are in the arena */
    rq_arena arena;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool has_ended RQ_GUARDED_BY(lock);
    bool is_left RQ_GUARDED_BY(lock); /* the call has given up */
} define_job;

static define_job *job_new(void)
{
    define_job *j = calloc(1, sizeof *j);
    if (j == NULL) return NULL;
    pthread_mutex_init(&j->lock, NULL);
    rq_clock_cond_init(&j->wake);
    return j;
}

static void job_free(define_job *j)
{
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    rq_arena_clear(&j->arena);
    free(j);
}

static void submitted(rq_ddl *ddl)
{
    define_job *j = RQ_CONTAINER_OF(ddl, define_job, ddl);
    pthread_mutex_lock(&j->lock);
    j->has_ended = true;
    bool is_left = j->is_left;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
    if (is_left) job_free(j);
}

static bool has_ended(void *job)
{
    define_job *j = job;
    pthread_mutex_lock(&j->lock);
    bool has_ended = j->has_ended;
    pthread_mutex_unlock(&j->lock);
    return has_ended;
}

/* False: the time is over, and the job is the procedure's. */
static bool wait_for_end(rq__embed *e, define_job *j)
{
    uint64_t until = rq_clock_ns(CLOCK_MONOTONIC) + (uint64_t)e->db.timeout_ms * 1000000;
    struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    if (e->is_driven) (void)rq_driven_run(e->executor, has_ended, j, until);
    pthread_mutex_lock(&j->lock);
    while (!j->has_ended && !e->is_driven && pthread_cond_timedwait(&j->wake, &j->lock, &t) == 0)
        ;
    bool has_ended = j->has_ended;
    j->is_left = !has_ended;
    pthread_mutex_unlock(&j->lock);
    return has_ended;
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
    [RQ_DEFINE_ALTER_NAMESPACE] = RQ_DDL_MODIFY_NAMESPACE,
    [RQ_DEFINE_ALTER_TABLE] = RQ_DDL_MODIFY_TABLE,
    [RQ_DEFINE_SPLIT_REGION] = RQ_DDL_SPLIT_REGION,
    [RQ_DEFINE_MERGE_REGIONS] = RQ_DDL_MERGE_REGIONS,
    [RQ_DEFINE_SNAPSHOT] = RQ_DDL_SNAPSHOT,
    [RQ_DEFINE_DROP_SNAPSHOT] = RQ_DDL_DELETE_SNAPSHOT,
    [RQ_DEFINE_CLONE_SNAPSHOT] = RQ_DDL_CLONE_SNAPSHOT,
    [RQ_DEFINE_RESTORE_SNAPSHOT] = RQ_DDL_RESTORE_SNAPSHOT,
};

/* --- parameters ------------------------------------------------------------------------------- */

static bool copy(rq_arena *arena, rq_slice *s)
{
    *s = rq_arena_copy(arena, *s);
    return s->ptr != NULL;
}

static bool copy_list(rq_arena *arena, const rq_slice **list, size_t count)
{
    rq_slice *mine = rq_arena_calloc(arena, count + 1, sizeof *mine);
    for (size_t i = 0; mine != NULL && i < count; i++) {
        mine[i] = (*list)[i];
        if (!copy(arena, &mine[i])) return false;
    }
    *list = mine;
    return mine != NULL;
}

/* The procedure may outlive the caller's memory. */
static bool copy_parameters(define_job *j, rq_ddl *ddl)
{
    rq_ddl_params *p = &ddl->of;
    rq_arena *a = &j->arena;
    if (!copy(a, &ddl->ns) || !copy(a, &ddl->qualifier)) return false;
    switch (ddl->kind) {
    case RQ_DDL_CREATE_TABLE:
        return copy(a, &p->create.schema) &&
               copy_list(a, &p->create.split_keys, p->create.split_key_count);
    case RQ_DDL_CREATE_NAMESPACE:
    case RQ_DDL_MODIFY_NAMESPACE:
        return copy(a, &p->put_namespace.descriptor);
    case RQ_DDL_MODIFY_TABLE:
        return copy(a, &p->modify.schema);
    case RQ_DDL_SPLIT_REGION:
        return copy(a, &p->split.region) && copy(a, &p->split.row) && copy(a, &p->split.shown_name);
    case RQ_DDL_MERGE_REGIONS:
        return copy_list(a, &p->merge.regions, p->merge.region_count);
    case RQ_DDL_SNAPSHOT:
        return copy(a, &p->snapshot.name) && copy(a, &p->snapshot.description);
    case RQ_DDL_CLONE_SNAPSHOT:
    case RQ_DDL_RESTORE_SNAPSHOT:
        return copy(a, &p->restore.name);
    default: /* without slices */
        return true;
    }
}

static void fill(rq_ddl_params *p, const rq_defining *d)
{
    switch (d->kind) {
    case RQ_DEFINE_CREATE_TABLE:
        p->create.schema = d->message;
        p->create.split_keys = d->split_keys;
        p->create.split_key_count = d->split_key_count;
        break;
    case RQ_DEFINE_TRUNCATE_TABLE:
        p->truncate.preserve_splits = d->preserve_splits;
        break;
    case RQ_DEFINE_CREATE_NAMESPACE:
    case RQ_DEFINE_ALTER_NAMESPACE:
        p->put_namespace.descriptor = d->message;
        break;
    case RQ_DEFINE_ALTER_TABLE:
        p->modify.schema = d->message;
        break;
    case RQ_DEFINE_SPLIT_REGION:
        p->split.region = rq_slice_cstr(d->region->encoded);
        p->split.row = d->row;
        p->split.shown_name = rq_slice_of_bytes(d->region->name);
        break;
    case RQ_DEFINE_MERGE_REGIONS:
        p->merge.regions = d->regions;
        p->merge.region_count = d->region_count;
        break;
    case RQ_DEFINE_SNAPSHOT:
        p->snapshot.name = d->snapshot;
        p->snapshot.description = d->message;
        p->snapshot.flush = !d->skips_flush;
        break;
    case RQ_DEFINE_CLONE_SNAPSHOT:
    case RQ_DEFINE_RESTORE_SNAPSHOT:
        p->restore.name = d->snapshot;
        break;
    case RQ_DEFINE_DROP_SNAPSHOT:
    case RQ_DEFINE_DROP_TABLE:
    case RQ_DEFINE_ENABLE_TABLE:
    case RQ_DEFINE_DISABLE_TABLE:
    case RQ_DEFINE_FLUSH_TABLE:
    case RQ_DEFINE_DROP_NAMESPACE:
        break;
    }
}

/* HBASE: MasterRpcServices.mergeTableRegions */
static rq_err check_regions(rq__embed *e, rq_slot *slot, const rq_defining *d, rq_why *why)
{
    rq__embed_seat *s;
    rq_err rc = RQ_OK;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    for (size_t i = 0; rc == RQ_OK && i < d->region_count; i++)
        if (rq_catalog_region_find(e->catalog, d->regions[i]) == NULL)
            rc = rq_fail(&why->error, RQ_E_UNKNOWN_REGION, "%.*s", (int)d->regions[i].len,
                         (const char *)d->regions[i].ptr);
    rq__seat_exit(e, s);
    return rc;
}

static rq_slice name_of(rq_arena *arena, rq_slice ns, rq_slice qualifier)
{
    if (rq_slice_eq(ns, RQ_SLICE_LIT("default"))) return qualifier;
    return rq_table_name_join(arena, ns, qualifier);
}

/* REQUIRES: a read section. */
static rq_err find_table(const rq__embed *e, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                         const rq_catalog_table **ret, rq_error *why)
{
    rq_slice name = name_of(&slot->arena, ns, qualifier);
    if (name.ptr == NULL) return rq_no_memory(why);
    *ret = rq_catalog_table_find(e->catalog, name);
    if (*ret != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)name.len, (const char *)name.ptr);
}

/* Adds the fields that a server adds to the client's SnapshotDescription: creation_time 3, version
 * 5, ttl 8. HBASE: SnapshotDescriptionUtils.validate. */
static rq_err complete_snapshot(rq__embed *e, rq_slot *slot, rq_ddl *ddl, rq_error *why)
{
    rq_buf b = {0};
    rq_slice asked = ddl->of.snapshot.description;
    rq_err rc = rq_buf_append(&b, asked.ptr, asked.len);
    if (rc == RQ_OK) rc = rq_pb_put_number(&b, 3, (uint64_t)e->executor->now_ms(e->executor));
    if (rc == RQ_OK) rc = rq_pb_put_number(&b, 5, SNAPSHOT_VERSION);
    if (rc == RQ_OK)
        rc = rq_pb_put_number(&b, 8, (uint64_t)rq_config_int(e->config, RQ_SET_SNAPSHOT_TTL));
    if (rc == RQ_OK) ddl->of.snapshot.description = rq_arena_copy(&slot->arena, rq_buf_slice(&b));
    rq_buf_clear(&b);
    return rc != RQ_OK || ddl->of.snapshot.description.ptr == NULL ? rq_no_memory(why) : RQ_OK;
}

/* A snapshot whose table is gone is cloned under the table's name. */
static rq_err complete_restore(rq__embed *e, rq_slot *slot, rq_ddl *ddl, rq_why *why)
{
    rq__embed_seat *s;
    const rq_catalog_table *t;
    rq_error none;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    rq_err rc = find_table(e, slot, ddl->ns, ddl->qualifier, &t, &none);
    rq__seat_exit(e, s);
    if (rc == RQ_E_TABLE_NOT_FOUND) ddl->kind = RQ_DDL_CLONE_SNAPSHOT;
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(&why->error) : RQ_OK;
}

static rq_err complete(rq__embed *e, rq_slot *slot, rq_ddl *ddl, const rq_defining *d, rq_why *why)
{
    if (d->kind == RQ_DEFINE_MERGE_REGIONS) return check_regions(e, slot, d, why);
    if (d->kind == RQ_DEFINE_SNAPSHOT) return complete_snapshot(e, slot, ddl, &why->error);
    if (d->kind == RQ_DEFINE_RESTORE_SNAPSHOT) return complete_restore(e, slot, ddl, why);
    if (d->kind == RQ_DEFINE_DROP_SNAPSHOT) {
        ddl->ns = RQ_SLICE_LIT(RQ_SNAPSHOT_NS);
        ddl->qualifier = d->snapshot;
    }
    return RQ_OK;
}

/* Submits it and waits; *ret_left: the job is no longer the caller's. */
static rq_err run(rq__embed *e, define_job *j, bool *ret_left, rq_why *why)
{
    if (!copy_parameters(j, &j->ddl)) return rq_no_memory(&why->error);
    j->ddl.wait_finished = true;
    j->ddl.submitted = submitted;
    j->ddl.user = RQ_SLICE_LIT("embedded");
    rq_catalog_submit(e->catalog, &j->ddl);
    *ret_left = !wait_for_end(e, j);
    if (*ret_left)
        return rq_fail(&why->error, RQ_E_TIMEOUT,
                       "not finished after %" PRIu32 " ms; it goes on in the background",
                       e->db.timeout_ms);
    if (j->ddl.rc != RQ_OK) why->error = j->ddl.why;
    return j->ddl.rc;
}

rq_err rq__embed_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    define_job *j = job_new();
    bool is_left = false;
    if (j == NULL) return rq_no_memory(&why->error);
    rq_ddl *ddl = &j->ddl;
    ddl->kind = kinds[d->kind];
    ddl->ns = d->ns;
    ddl->qualifier = d->qualifier;
    fill(&ddl->of, d);
    rq_err rc = complete(e, slot, ddl, d, why);
    if (rc == RQ_OK) rc = run(e, j, &is_left, why);
    if (!is_left) job_free(j);
    return rc;
}

/* --- what there is ---------------------------------------------------------------------------- */

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

/* NamespaceDescriptor { name 1, configuration 2: { name 1, value 2 } } */
static rq_err put_namespace(rq_buf *b, const rq_namespace *n)
{
    RQ_TRY(rq_pb_put_bytes(b, 1, n->name));
    for (size_t i = 0; i < n->configuration.count; i++) {
        const rq_attribute *a = &n->configuration.items[i];
        size_t at;
        RQ_TRY(rq_pb_begin(b, 2, &at));
        RQ_TRY(rq_pb_put_bytes(b, 1, a->key));
        RQ_TRY(rq_pb_put_bytes(b, 2, a->value));
        RQ_TRY(rq_pb_end(b, at));
    }
    return RQ_OK;
}

rq_err rq__embed_describe_namespace(rq_db *db, rq_slot *slot, rq_slice ns, rq_buf *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq__embed_seat *s;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    const rq_namespace *n = rq_catalog_namespace_find(e->catalog, ns);
    rq_err rc = n == NULL ? rq_fail(&why->error, RQ_E_NAMESPACE_NOT_FOUND, "%.*s", (int)ns.len,
                                    (const char *)ns.ptr)
                          : put_namespace(ret, n);
    rq__seat_exit(e, s);
    return rc;
}

rq_err rq__embed_snapshots(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq_snapshot *list;
    size_t count;
    RQ_TRY(rq_catalog_snapshots(e->catalog, &slot->arena, &list, &count, &why->error));
    for (size_t i = 0; i < count; i++)
        RQ_TRY(rq_snapshot_found(ret, list[i].description));
    return RQ_OK;
}

/* --- regions ---------------------------------------------------------------------------------- */

rq_err rq__embed_regions(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                         rq_region_finding *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq__embed_seat *s;
    const rq_catalog_table *t;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    rq_err rc = find_table(e, slot, ns, qualifier, &t, &why->error);
    for (size_t i = 0; rc == RQ_OK && i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (r->region != NULL)
            rc = rq_region_found(ret, r->info->name, r->info->start_key, r->info->end_key, "");
    }
    rq__seat_exit(e, s);
    return rc;
}

static bool has_family(const rq_table_schema *s, rq_slice family)
{
    for (size_t i = 0; i < s->family_count; i++)
        if (rq_slice_eq(s->families[i].name, family)) return true;
    return false;
}

rq_err rq__embed_compact(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_slice family,
                         bool major, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    rq__embed_seat *s;
    const rq_catalog_table *t;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq__seat_enter(e, s);
    rq_err rc = find_table(e, slot, ns, qualifier, &t, &why->error);
    if (rc == RQ_OK && family.len > 0 && !has_family(t->schema, family))
        rc = rq_fail(&why->error, RQ_E_NO_SUCH_FAMILY, "column family %.*s does not exist",
                     (int)family.len, (const char *)family.ptr);
    for (size_t i = 0; rc == RQ_OK && i < t->region_count; i++) {
        rq_region *r = rq_catalog_table_region(t, i)->region;
        if (r != NULL) rc = rq_region_compact(r, family, major, &why->error);
    }
    rq__seat_exit(e, s);
    return rc;
}

rq_err rq__embed_cluster(rq_db *db, rq_slot *slot, rq_cluster_finding *ret, rq_why *why)
{
    rq__embed *e = rq__embed_of(db);
    const rq_catalog_region **regions;
    rq__embed_seat *s;
    RQ_TRY(rq__seat_of(e, slot, &s, why));
    rq_server_info *server = rq_arena_calloc(ret->arena, 1, sizeof *server);
    if (server == NULL) return rq_no_memory(&why->error);
    rq__seat_enter(e, s);
    rq_err rc = rq_catalog_online(e->catalog, &slot->arena, &regions, &server->region_count);
    rq__seat_exit(e, s);
    if (rc != RQ_OK) return rq_no_memory(&why->error);
    server->name = rq_arena_cstr(ret->arena, rq_slice_cstr(rq_catalog_server(e->catalog)->text));
    *ret->info = (rq_cluster_info){
        .id = rq_arena_cstr(ret->arena, rq_slice_cstr(rq_root_cluster_id(e->root))),
        .version = RQ_VERSION,
        .master = rq_arena_cstr(ret->arena, rq_slice_cstr(rq_catalog_master(e->catalog)->text)),
        .servers = server,
        .server_count = 1};
    return RQ_OK;
}
