/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: queries about tables and namespaces. The answers are read from the catalog's current view: on the loop,
 * on RQ_POOL_CODEC if the catalog is large (listing.h), on RQ_POOL_CALL if the request has a long list of names. Table
 * schemas are sent as the stored bytes. HBASE: MasterRpcServices, HMaster.listTableDescriptors. */
#include "base/pb.h"
#include "descriptor/schema.h"
#include "filter/regex.h"
#include "service/listing.h"
#include "service/master_priv.h"
#include "service/messages.h"

#include "proto/master.pb-c.h"

#include <stdlib.h>

/* Largest size of a compiled pattern (filter/regex.h). */
#define PATTERN_BYTES_MAX ((size_t)4 << 20)

/* --- which tables ----------------------------------------------------------------------------- */

typedef struct selection {
    const char *regex; /* NULL: any */
    const char *ns;    /* NULL: any */
    bool with_system;
    int state; /* -1: any; else ENABLED 0 or DISABLED 1 */
    rq_regex *compiled;
    rq_pace pace;
} selection;

static bool is_system(const rq_catalog_table *t)
{
    return rq_slice_eq(t->schema->ns, RQ_SLICE_LIT("hbase"));
}

static rq_err matches(selection *s, rq_slice name, bool *ret, rq_error *why)
{
    return rq_regex_search(s->compiled, name, &s->pace, ret, why);
}

/* HBASE: HMaster.filterTablesByRegex: a table of the default namespace is matched with and without
 * the prefix "default:". */
static rq_err selected(selection *s, const rq_catalog_table *t, rq_arena *arena, bool *ret,
                       rq_error *why)
{
    *ret = false;
    if (!s->with_system && is_system(t)) return RQ_OK;
    if (s->ns != NULL && !rq_slice_eq(t->schema->ns, rq_slice_cstr(s->ns))) return RQ_OK;
    if (s->state == RQ_TABLE_ENABLED && t->state != RQ_TABLE_ENABLED) return RQ_OK;
    if (s->state == RQ_TABLE_DISABLED && t->state != RQ_TABLE_DISABLED) return RQ_OK;
    *ret = s->compiled == NULL;
    if (*ret) return RQ_OK;
    RQ_TRY(matches(s, t->schema->name, ret, why));
    if (*ret || !rq_slice_eq(t->schema->ns, RQ_SLICE_LIT("default"))) return RQ_OK;
    const char *full = rq_arena_printf(arena, "default:%.*s", (int)t->schema->qualifier.len,
                                       (const char *)t->schema->qualifier.ptr);
    if (full == NULL) return RQ_E_NO_MEMORY;
    return matches(s, rq_slice_cstr(full), ret, why);
}

/* One allowance for matching all names, because the call cannot pause. */
static rq_err compile(selection *s, rq_arena *arena, rq_error *why)
{
    size_t bytes_left = PATTERN_BYTES_MAX;
    if (s->regex == NULL) return RQ_OK;
    rq_pace_begin(&s->pace, false);
    return rq_regex_new(rq_slice_cstr(s->regex), 0, RQ_REGEX_MATCHES, arena, &bytes_left,
                        &s->compiled, why);
}

/* The selected tables, in the arena. */
static rq_err select_tables(const rq_admin_services *a, selection *s, rq_arena *arena,
                            const rq_catalog_table ***ret, size_t *ret_count, rq_error *why)
{
    const rq_catalog_table *const *all;
    size_t count;
    if (s->ns != NULL && s->ns[0] == '\0') s->ns = NULL;
    if (s->ns != NULL && rq_catalog_namespace_find(a->catalog, rq_slice_cstr(s->ns)) == NULL)
        return rq_fail(why, RQ_E_NAMESPACE_NOT_FOUND, "%s", s->ns);
    RQ_TRY(compile(s, arena, why));
    rq_catalog_tables(a->catalog, &all, &count);
    *ret_count = 0;
    *ret = rq_arena_alloc(arena, (count + 1) * sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        bool is_selected;
        RQ_TRY(selected(s, all[i], arena, &is_selected, why));
        if (is_selected) (*ret)[(*ret_count)++] = all[i];
    }
    return RQ_OK;
}

/* The named tables that exist; the namespace does not count then. HBASE:
 * HMaster.getTableDescriptors. */
static rq_err find_named(const rq_admin_services *a, selection *s, Pb__TableName *const *names,
                         size_t name_count, rq_arena *arena, const rq_catalog_table ***ret,
                         size_t *ret_count, rq_error *why)
{
    RQ_TRY(compile(s, arena, why));
    s->ns = NULL;
    *ret = rq_arena_calloc(arena, name_count, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < name_count; i++) {
        bool is_selected;
        rq_slice name;
        RQ_TRY(rq__table_named(arena, names[i], &name, why));
        const rq_catalog_table *t = rq_catalog_table_find(a->catalog, name);
        if (t == NULL) continue;
        RQ_TRY(selected(s, t, arena, &is_selected, why));
        if (is_selected) (*ret)[(*ret_count)++] = t;
    }
    return RQ_OK;
}

rq_err rq__select_table_names(const rq_admin_services *a, const char *regex, const char *ns,
                              Pb__TableName *const *names, size_t name_count, rq_arena *arena,
                              rq_slice **ret, size_t *ret_count, rq_error *why)
{
    selection s = {.regex = regex, .ns = ns, .state = RQ_TABLE_ENABLED};
    const rq_catalog_table **tables;
    size_t count = 0;
    if (name_count > 0)
        RQ_TRY(find_named(a, &s, names, name_count, arena, &tables, &count, why));
    else
        RQ_TRY(select_tables(a, &s, arena, &tables, &count, why));
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        (*ret)[i] = rq_arena_copy(arena, tables[i]->schema->name);
        if ((*ret)[i].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    if (count > 1) qsort(*ret, count, sizeof **ret, rq_slice_order);
    *ret_count = count;
    return RQ_OK;
}

/* --- answers: `repeated TableSchema` and `repeated TableName`, both field 1 ------------------- */

/* The result is in the arena, which has a limit: a short request may name one table with a long schema very often. NULL:
 * the memory did not suffice. */
static rq_slice pack_schemas(rq_arena *arena, const rq_catalog_table *const *tables, size_t count)
{
    size_t room = 1;
    for (size_t i = 0; i < count; i++)
        room += 1 + RQ_VARINT_MAX + rq_table_schema_pb(tables[i]->schema).len;
    uint8_t *begin = rq_arena_alloc(arena, room), *p = begin;
    for (size_t i = 0; begin != NULL && i < count; i++) {
        rq_slice pb = rq_table_schema_pb(tables[i]->schema);
        *p++ = RQ_PB_TAG(1, RQ_PB_BYTES);
        p += rq_put_varint(p, pb.len);
        memcpy(p, pb.ptr, pb.len);
        p += pb.len;
    }
    return rq_slice_of(begin, (size_t)(p - begin));
}

static rq_err list_schemas(rq__listing *l, const rq_catalog_table *const *tables, size_t count,
                           rq_slice *ret)
{
    *ret = pack_schemas(&l->call->arena, tables, count);
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err list_names(rq__listing *l, const rq_catalog_table *const *tables, size_t count,
                         rq_slice *ret)
{
    rq_arena *arena = &l->call->arena;
    Pb__GetTableNamesResponse response = PB__GET_TABLE_NAMES_RESPONSE__INIT;
    response.table_names = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__TableName *));
    if (response.table_names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__TableName *m =
            rq__table_name_message(arena, tables[i]->schema->ns, tables[i]->schema->qualifier);
        if (m == NULL) return RQ_E_NO_MEMORY;
        response.table_names[response.n_table_names++] = m;
    }
    return rq__listing_pack(l, &response.base, ret);
}

typedef rq_err tables_fn(rq__listing *l, const rq_catalog_table *const *tables, size_t count,
                         rq_slice *ret);

typedef struct table_listing {
    rq__listing listing;
    selection selection;
    tables_fn *of;
} table_listing;

static rq_err list_selected(rq__listing *l, rq_slice *ret)
{
    table_listing *t = RQ_CONTAINER_OF(l, table_listing, listing);
    const rq_catalog_table **tables = NULL;
    size_t count = 0;
    RQ_TRY(select_tables(l->services, &t->selection, &l->call->arena, &tables, &count, &l->why));
    return t->of(l, tables, count, ret);
}

/* A regular expression may take its whole allowance. */
static void reply_selected(rq_admin_services *a, rq_call *call, selection s, tables_fn *of)
{
    table_listing *t = rq_arena_calloc(&call->arena, 1, sizeof *t);
    if (t == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    t->selection = s;
    t->of = of;
    t->listing.is_long = s.regex != NULL;
    rq__listing_start(&t->listing, a, call, list_selected);
}

/* --- descriptors of named tables: the list may be long ---------------------------------------- */

typedef struct named_job {
    rq__blocking blocking;
    rq_slice packed;
} named_job;

/* The schemas of the named tables that exist and match the pattern, if there is one. */
static rq_err pack_named(const rq_admin_services *a, const Pb__GetTableDescriptorsRequest *r,
                         rq_arena *arena, rq_slice *ret, rq_error *why)
{
    selection s = {.regex = r->regex, .with_system = true, .state = -1};
    const rq_catalog_table **tables;
    size_t count = 0;
    RQ_TRY(find_named(a, &s, r->table_names, r->n_table_names, arena, &tables, &count, why));
    *ret = pack_schemas(arena, tables, count);
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err named_work(rq__blocking *b)
{
    named_job *j = RQ_CONTAINER_OF(b, named_job, blocking);
    rq_epoch_member m = {0};
    rq_epoch_pin(b->services->env.epoch, &m);
    rq_err rc = pack_named(b->services, (const Pb__GetTableDescriptorsRequest *)b->call->param,
                           &b->call->arena, &j->packed, &b->why);
    rq_epoch_unpin(b->services->env.epoch, &m);
    return rc;
}

static void named_answer(rq__blocking *b)
{
    rq_call_reply_packed(b->call, RQ_CONTAINER_OF(b, named_job, blocking)->packed);
}

/* Names that are looked up on the loop. RQ_POOL_CALL looks up a longer list, or one with a pattern, which may take its whole
 * allowance; its threads may be busy with blocking calls for minutes, so a short list does not wait for them. */
#define NAMES_AT_ONCE 256

static void reply_named(rq_admin_services *a, rq_call *call)
{
    const Pb__GetTableDescriptorsRequest *r = (const Pb__GetTableDescriptorsRequest *)call->param;
    named_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j != NULL && (r->n_table_names > NAMES_AT_ONCE || r->regex != NULL)) {
        rq__blocking_start(&j->blocking, a, call, named_work, named_answer);
        return;
    }
    rq_error why = {.code = RQ_OK};
    rq_err rc = j == NULL ? RQ_E_NO_MEMORY : pack_named(a, r, &call->arena, &j->packed, &why);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, j->packed);
    else
        rq_call_fail_why(call, rc, &why);
}

void rq__get_table_descriptors(void *ctx, rq_call *call)
{
    rq_admin_services *a = ctx;
    const Pb__GetTableDescriptorsRequest *r = (const Pb__GetTableDescriptorsRequest *)call->param;
    if (r->n_table_names == 0) {
        reply_selected(a, call,
                       (selection){.regex = r->regex,
                                   .ns = r->namespace_,
                                   .with_system = r->include_sys_tables,
                                   .state = -1},
                       list_schemas);
        return;
    }
    reply_named(a, call);
}

void rq__get_table_names(void *ctx, rq_call *call)
{
    const Pb__GetTableNamesRequest *r = (const Pb__GetTableNamesRequest *)call->param;
    reply_selected(ctx, call,
                   (selection){.regex = r->regex,
                               .ns = r->namespace_,
                               .with_system = r->include_sys_tables,
                               .state = -1},
                   list_names);
}

static selection by_state(bool enabled)
{
    return (selection){.state = enabled ? RQ_TABLE_ENABLED : RQ_TABLE_DISABLED};
}

void rq__list_table_descriptors_by_state(void *ctx, rq_call *call)
{
    const Pb__ListTableDescriptorsByStateRequest *r =
        (const Pb__ListTableDescriptorsByStateRequest *)call->param;
    reply_selected(ctx, call, by_state(r->is_enabled), list_schemas);
}

void rq__list_table_names_by_state(void *ctx, rq_call *call)
{
    const Pb__ListTableNamesByStateRequest *r =
        (const Pb__ListTableNamesByStateRequest *)call->param;
    reply_selected(ctx, call, by_state(r->is_enabled), list_names);
}

void rq__list_table_descriptors_by_namespace(void *ctx, rq_call *call)
{
    const Pb__ListTableDescriptorsByNamespaceRequest *r =
        (const Pb__ListTableDescriptorsByNamespaceRequest *)call->param;
    reply_selected(ctx, call, (selection){.ns = r->namespacename, .with_system = true, .state = -1},
                   list_schemas);
}

void rq__list_table_names_by_namespace(void *ctx, rq_call *call)
{
    const Pb__ListTableNamesByNamespaceRequest *r =
        (const Pb__ListTableNamesByNamespaceRequest *)call->param;
    reply_selected(ctx, call, (selection){.ns = r->namespacename, .with_system = true, .state = -1},
                   list_names);
}

/* --- one table -------------------------------------------------------------------------------- */

static const rq_catalog_table *find_table(const rq_admin_services *a, rq_call *call,
                                          const Pb__TableName *name)
{
    rq_slice joined;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq__table_row(&call->arena, name, &joined, &why);
    if (rc != RQ_OK) {
        rq_call_fail_why(call, rc, &why);
        return NULL;
    }
    const rq_catalog_table *t = rq_catalog_table_find(a->catalog, joined);
    if (t == NULL) /* HBASE: TableStateManager.getTableState */
        rq_call_fail(call, RQ_E_TABLE_NOT_FOUND, "No state found for %.*s", (int)joined.len,
                     (const char *)joined.ptr);
    return t;
}

void rq__get_table_state(void *ctx, rq_call *call)
{
    const Pb__GetTableStateRequest *r = (const Pb__GetTableStateRequest *)call->param;
    const rq_catalog_table *t = find_table(ctx, call, r->table_name);
    if (t == NULL) return;
    Pb__TableState state = PB__TABLE_STATE__INIT;
    Pb__GetTableStateResponse response = PB__GET_TABLE_STATE_RESPONSE__INIT;
    state.state = (Pb__TableState__State)t->state;
    response.table_state = &state;
    rq_call_reply(call, &response.base);
}

static rq_err alter_status(rq__listing *l, rq_slice *ret)
{
    const Pb__GetSchemaAlterStatusRequest *r =
        (const Pb__GetSchemaAlterStatusRequest *)l->call->param;
    Pb__GetSchemaAlterStatusResponse response = PB__GET_SCHEMA_ALTER_STATUS_RESPONSE__INIT;
    rq_slice name;
    RQ_TRY(rq__table_row(&l->call->arena, r->table_name, &name, &l->why));
    rq_catalog_alter_status(l->services->catalog, name, &response.yet_to_update_regions,
                            &response.total_regions);
    response.has_yet_to_update_regions = response.has_total_regions = 1;
    return rq__listing_pack(l, &response.base, ret);
}

/* Clients repeat this call while a table is changed, and the table may have 100,000 regions. */
void rq__get_schema_alter_status(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, alter_status);
}

/* The load of a region that is open here, or as its server last reported it. False: the load is not known. */
static bool load_of(const rq_admin_services *a, const rq_catalog_region *r, rq_region_load *ret)
{
    if (r->region == NULL) return rq_catalog_load(a->catalog, r, ret);
    rq_region_get_load(r->region, ret);
    return true;
}

/* The oldest of the last major compactions of the table's open regions; 0 if one of them had none, or none is open. HBASE:
 * ClusterMetrics.getLastMajorCompactionTimestamp. */
static rq_err last_major_compaction(rq__listing *l, rq_slice *ret)
{
    const rq_admin_services *a = l->services;
    const Pb__MajorCompactionTimestampRequest *r =
        (const Pb__MajorCompactionTimestampRequest *)l->call->param;
    Pb__MajorCompactionTimestampResponse response = PB__MAJOR_COMPACTION_TIMESTAMP_RESPONSE__INIT;
    rq_slice name;
    RQ_TRY(rq__table_named(&l->call->arena, r->table_name, &name, &l->why));
    const rq_catalog_table *t = rq_catalog_table_find(a->catalog, name);
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; t != NULL && i < t->region_count; i++) {
        rq_region_load load;
        if (load_of(a, rq_catalog_table_region(t, i), &load) &&
            load.last_major_compaction_ms < oldest)
            oldest = load.last_major_compaction_ms;
    }
    response.compaction_timestamp = oldest == INT64_MAX ? 0 : oldest;
    return rq__listing_pack(l, &response.base, ret);
}

void rq__last_major_compaction(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, last_major_compaction);
}

/* HBase answers 0 for a region without load, and knows whole names only. */
void rq__last_major_compaction_for_region(void *ctx, rq_call *call)
{
    const rq_admin_services *a = ctx;
    const Pb__MajorCompactionTimestampForRegionRequest *q =
        (const Pb__MajorCompactionTimestampForRegionRequest *)call->param;
    Pb__MajorCompactionTimestampResponse response = PB__MAJOR_COMPACTION_TIMESTAMP_RESPONSE__INIT;
    rq_region_load load;
    const rq_catalog_region *r = rq_catalog_region_find(a->catalog, rq__encoded_of(q->region));
    if (r != NULL && rq_slice_eq(r->info->name, rq__pb_slice(q->region->value)) &&
        load_of(a, r, &load))
        response.compaction_timestamp = load.last_major_compaction_ms;
    rq_call_reply(call, &response.base);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static Pb__NamespaceDescriptor *namespace_message(rq_arena *arena, const rq_namespace *n)
{
    size_t count = n->configuration.count;
    Pb__NamespaceDescriptor *m = rq_arena_alloc(arena, sizeof *m);
    Pb__NameStringPair *pairs = rq_arena_alloc(arena, (count + 1) * sizeof *pairs);
    if (m == NULL || pairs == NULL) return NULL;
    pb__namespace_descriptor__init(m);
    m->name = rq__pb_binary(n->name);
    m->configuration = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__NameStringPair *));
    if (m->configuration == NULL) return NULL;
    for (size_t i = 0; i < count; i++) {
        pb__name_string_pair__init(&pairs[i]);
        pairs[i].name = rq_arena_cstr(arena, n->configuration.items[i].key);
        pairs[i].value = rq_arena_cstr(arena, n->configuration.items[i].value);
        if (pairs[i].name == NULL || pairs[i].value == NULL) return NULL;
        m->configuration[i] = &pairs[i];
    }
    m->n_configuration = count;
    return m;
}

void rq__get_namespace_descriptor(void *ctx, rq_call *call)
{
    rq_admin_services *a = ctx;
    const Pb__GetNamespaceDescriptorRequest *r =
        (const Pb__GetNamespaceDescriptorRequest *)call->param;
    Pb__GetNamespaceDescriptorResponse response = PB__GET_NAMESPACE_DESCRIPTOR_RESPONSE__INIT;
    const rq_namespace *n = rq_catalog_namespace_find(a->catalog, rq_slice_cstr(r->namespacename));
    if (n == NULL) {
        rq_call_fail(call, RQ_E_NAMESPACE_NOT_FOUND, "%s", r->namespacename);
        return;
    }
    response.namespacedescriptor = namespace_message(&call->arena, n);
    if (response.namespacedescriptor == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_call_reply(call, &response.base);
}

static rq_err list_namespace_descriptors(rq__listing *l, rq_slice *ret)
{
    rq_arena *arena = &l->call->arena;
    Pb__ListNamespaceDescriptorsResponse response = PB__LIST_NAMESPACE_DESCRIPTORS_RESPONSE__INIT;
    const rq_namespace *const *all;
    size_t count;
    rq_catalog_namespaces(l->services->catalog, &all, &count);
    response.namespacedescriptor =
        rq_arena_alloc(arena, (count + 1) * sizeof(Pb__NamespaceDescriptor *));
    if (response.namespacedescriptor == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__NamespaceDescriptor *m = namespace_message(arena, all[i]);
        if (m == NULL) return RQ_E_NO_MEMORY;
        response.namespacedescriptor[response.n_namespacedescriptor++] = m;
    }
    return rq__listing_pack(l, &response.base, ret);
}

void rq__list_namespace_descriptors(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, list_namespace_descriptors);
}

static rq_err list_namespaces(rq__listing *l, rq_slice *ret)
{
    rq_arena *arena = &l->call->arena;
    Pb__ListNamespacesResponse response = PB__LIST_NAMESPACES_RESPONSE__INIT;
    const rq_namespace *const *all;
    size_t count;
    rq_catalog_namespaces(l->services->catalog, &all, &count);
    response.namespacename = rq_arena_alloc(arena, (count + 1) * sizeof(char *));
    if (response.namespacename == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        char *name = rq_arena_cstr(arena, all[i]->name);
        if (name == NULL) return RQ_E_NO_MEMORY;
        response.namespacename[response.n_namespacename++] = name;
    }
    return rq__listing_pack(l, &response.base, ret);
}

void rq__list_namespaces(void *ctx, rq_call *call)
{
    rq__listing_reply(ctx, call, list_namespaces);
}
