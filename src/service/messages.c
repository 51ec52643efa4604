/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of answers; see messages.h. */
#include "service/messages.h"

#include "cell/cell.h"
#include "cluster/load.h"

#include "rpc/call.h"

#include <string.h>

Pb__ServerName *rq__server_name_message(rq_arena *arena, const rq_server_name *s)
{
    Pb__ServerName *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__server_name__init(m);
    m->host_name = (char *)s->host;
    m->has_port = 1;
    m->port = s->port;
    m->has_start_code = 1;
    m->start_code = (uint64_t)s->start_code;
    return m;
}

rq_err rq__table_name_check(const Pb__TableName *m, rq_error *why)
{
    return rq_table_name_check(rq__pb_slice(m->namespace_), rq__pb_slice(m->qualifier), why);
}

rq_err rq__table_named(rq_arena *arena, const Pb__TableName *m, rq_slice *ret, rq_error *why)
{
    RQ_TRY(rq__table_name_check(m, why));
    *ret = rq_table_name_join(arena, rq__pb_slice(m->namespace_), rq__pb_slice(m->qualifier));
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__table_row(rq_arena *arena, const Pb__TableName *m, rq_slice *ret, rq_error *why)
{
    RQ_TRY(rq__table_named(arena, m, ret, why));
    if (ret->len <= RQ_ROW_LEN_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Row length %zu is > %d", ret->len, RQ_ROW_LEN_MAX);
}

Pb__TableName *rq__table_name_message(rq_arena *arena, rq_slice ns, rq_slice qualifier)
{
    Pb__TableName *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__table_name__init(m);
    m->namespace_ = rq__pb_binary(ns);
    m->qualifier = rq__pb_binary(qualifier);
    return m;
}

Pb__RegionInfo *rq__region_info_message(rq_arena *arena, const rq_region_info *r)
{
    Pb__RegionInfo *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__region_info__init(m);
    m->table_name = rq__table_name_message(arena, r->ns, r->qualifier);
    if (m->table_name == NULL) return NULL;
    m->region_id = (uint64_t)r->region_id;
    m->has_start_key = m->has_end_key = m->has_offline = m->has_split = m->has_replica_id = 1;
    m->start_key = rq__pb_binary(r->start_key);
    m->end_key = rq__pb_binary(r->end_key);
    m->offline = r->offline;
    m->split = r->split;
    m->replica_id = r->replica_id;
    return m;
}

static const Pb__RegionState__State wire_states[] = {
    [RQ_REGION_OFFLINE] = PB__REGION_STATE__STATE__OFFLINE,
    [RQ_REGION_OPENING] = PB__REGION_STATE__STATE__OPENING,
    [RQ_REGION_OPEN] = PB__REGION_STATE__STATE__OPEN,
    [RQ_REGION_CLOSING] = PB__REGION_STATE__STATE__CLOSING,
    [RQ_REGION_CLOSED] = PB__REGION_STATE__STATE__CLOSED,
    [RQ_REGION_FAILED_OPEN] = PB__REGION_STATE__STATE__FAILED_OPEN,
    [RQ_REGION_SPLITTING] = PB__REGION_STATE__STATE__SPLITTING,
    [RQ_REGION_SPLIT] = PB__REGION_STATE__STATE__SPLIT,
    [RQ_REGION_MERGING] = PB__REGION_STATE__STATE__MERGING,
};

Pb__RegionState__State rq__region_state_message(rq_region_state state)
{
    return wire_states[state];
}

bool rq__is_this_server(const rq_server_name *self, const Pb__ServerName *s)
{
    return strcmp(s->host_name, self->host) == 0 && s->port == self->port &&
           (s->start_code == 0 || s->start_code == (uint64_t)self->start_code);
}

static Pb__RegionLoad *region_load(rq_arena *arena, const rq_catalog_region *named)
{
    return rq_region_load_message(arena, named->info, named->region);
}

static bool add_load(rq_arena *arena, const rq_catalog_region *r, Pb__RegionLoad **list, size_t *n)
{
    if (r->region == NULL) return true;
    list[*n] = region_load(arena, r);
    return list[(*n)++] != NULL;
}

static bool add_regions(rq_arena *arena, const rq_catalog_table *t, Pb__RegionLoad **list,
                        size_t *n)
{
    bool good = true;
    for (size_t i = 0; good && i < t->region_count; i++)
        good = add_load(arena, rq_catalog_table_region(t, i), list, n);
    return good;
}

static bool add_replicas(rq_arena *arena, const rq_catalog_table *t, Pb__RegionLoad **list,
                         size_t *n)
{
    bool good = true;
    for (size_t i = 0; good && i < t->replica_count; i++)
        good = add_load(arena, rq_catalog_table_replica(t, i), list, n);
    return good;
}

/* HBASE: meta comes first in the list of a server's regions. NULL: out of memory. */
static Pb__RegionLoad **loads_of(rq_arena *arena, const rq_catalog_table *const *tables,
                                 size_t count, size_t *ret_count)
{
    size_t cap = 1;
    bool good = true;
    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        cap += tables[i]->region_count + tables[i]->replica_count;
    Pb__RegionLoad **list = rq_arena_alloc(arena, cap * sizeof(Pb__RegionLoad *));
    if (list == NULL) return NULL;
    for (int meta = 1; meta >= 0; meta--)
        for (size_t i = 0; good && i < count; i++)
            if (tables[i]->schema->is_meta == (meta == 1))
                good = add_regions(arena, tables[i], list, ret_count);
    for (size_t i = 0; good && i < count; i++)
        good = add_replicas(arena, tables[i], list, ret_count);
    return good ? list : NULL;
}

Pb__RegionLoad **rq__region_loads_message(rq_arena *arena, const rq_catalog *catalog,
                                          const Pb__TableName *of, size_t *ret_count)
{
    const rq_catalog_table *const *tables;
    size_t count;
    if (of == NULL) {
        rq_catalog_tables(catalog, &tables, &count);
        return loads_of(arena, tables, count, ret_count);
    }
    rq_slice name =
        rq_table_name_join(arena, rq__pb_slice(of->namespace_), rq__pb_slice(of->qualifier));
    if (name.ptr == NULL) return NULL;
    const rq_catalog_table *one = rq_catalog_table_find(catalog, name);
    return loads_of(arena, &one, one != NULL, ret_count);
}

Pb__NameBytesPair *rq__exception_pair(rq_arena *arena, rq_err code, const rq_error *why)
{
    Pb__NameBytesPair *pair = rq_arena_alloc(arena, sizeof *pair);
    const char *java_class;
    rq_slice text;
    const char *message = why != NULL && why->code != RQ_OK ? why->message : NULL;
    if (pair == NULL) return NULL;
    if (rq_rpc_exception_text(arena, code, message, &java_class, &text) != RQ_OK) return NULL;
    pb__name_bytes_pair__init(pair);
    pair->name = (char *)java_class;
    pair->has_value = 1;
    pair->value = (ProtobufCBinaryData){text.len, (uint8_t *)text.ptr};
    return pair;
}

size_t rq__pb_element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    default:
        return sizeof(uint32_t);
    }
}
