/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of answers; see messages.h. */
#include "service/messages.h"

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

static uint32_t megabytes(uint64_t bytes)
{
    return (uint32_t)(bytes >> 20);
}

/* HBase rounds the size of a non-empty store up to one MB; clients compute split sizes from it. */
static uint32_t megabytes_up(uint64_t bytes)
{
    return bytes > 0 && bytes < 1 << 20 ? 1 : megabytes(bytes);
}

/* HBASE: HRegionServer.roundSize */
static uint32_t kilobytes_up(uint64_t bytes)
{
    uint64_t kb = bytes > 0 && bytes < 1024 ? 1 : bytes >> 10;
    return kb < INT32_MAX ? (uint32_t)kb : INT32_MAX;
}

static Pb__RegionSpecifier *specifier(rq_arena *arena, rq_slice name)
{
    Pb__RegionSpecifier *s = rq_arena_alloc(arena, sizeof *s);
    if (s == NULL) return NULL;
    pb__region_specifier__init(s);
    s->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    s->value = rq__pb_binary(name);
    return s;
}

/* Filled as by HBASE: RSRpcServices.createRegionLoad. */
static Pb__RegionLoad *region_load(rq_arena *arena, const rq_catalog_region *named)
{
    const rq_region *r = named->region;
    rq_region_load load;
    Pb__RegionLoad *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__region_load__init(m);
    m->region_specifier = specifier(arena, named->info->name);
    if (m->region_specifier == NULL) return NULL;
    rq_region_get_load(r, &load);
    m->has_stores = m->has_storefiles = m->has_store_uncompressed_size_mb = 1;
    m->stores = load.stores;
    m->storefiles = load.storefiles;
    m->store_uncompressed_size_mb = megabytes(load.storefile_uncompressed_bytes);
    m->has_storefile_size_mb = m->has_mem_store_size_mb = m->has_region_size_mb = 1;
    m->storefile_size_mb = megabytes_up(load.storefile_bytes);
    m->mem_store_size_mb = megabytes_up(load.memstore_bytes);
    m->region_size_mb = megabytes_up(load.hfile_bytes); /* HBASE: HStore.getHFilesSize */
    m->has_storefile_index_size_kb = m->has_root_index_size_kb = 1;
    m->has_total_static_index_size_kb = m->has_total_static_bloom_size_kb = 1;
    m->storefile_index_size_kb = m->root_index_size_kb = kilobytes_up(load.root_index_bytes);
    m->total_static_index_size_kb = kilobytes_up(load.index_bytes);
    m->total_static_bloom_size_kb = kilobytes_up(load.bloom_bytes);
    m->has_read_requests_count = m->has_write_requests_count = 1;
    m->has_filtered_read_requests_count = 1;
    if (named->info->replica_id ==
        0) { /* requests sent to the replica's name are counted under it */
        m->read_requests_count = load.read_requests;
        m->write_requests_count = load.write_requests;
        m->filtered_read_requests_count = load.filtered_read_requests;
    }
    m->has_total_compacting_kvs = m->has_current_compacted_kvs = 1;
    m->total_compacting_kvs = load.compacting_cells;
    m->current_compacted_kvs = load.compacted_cells;
    m->has_complete_sequence_id = 1;
    m->complete_sequence_id = load.max_flushed_seqid;
    m->has_data_locality = 1;
    m->data_locality = 1.0f;
    m->has_last_major_compaction_ts = 1;
    m->last_major_compaction_ts = (uint64_t)load.last_major_compaction_ms;
    m->has_compaction_state = 1;
    m->compaction_state = (Pb__RegionLoad__CompactionState)rq_region_compaction_state(r);
    m->has_current_region_cached_ratio = 1;
    if (load.storefile_bytes > 0)
        m->current_region_cached_ratio = (float)load.cached_bytes / (float)load.storefile_bytes;
    /* Blocks are larger in memory than in the file, so the ratio may exceed 1. */
    if (m->current_region_cached_ratio > 1) m->current_region_cached_ratio = 1;
    return m;
}

static bool is_of(const rq_catalog_region *r, const Pb__TableName *t)
{
    return t == NULL || (rq_slice_eq(r->info->ns, rq__pb_slice(t->namespace_)) &&
                         rq_slice_eq(r->info->qualifier, rq__pb_slice(t->qualifier)));
}

Pb__RegionLoad **rq__region_loads_message(rq_arena *arena, const rq_catalog *catalog,
                                          const Pb__TableName *of, size_t *ret_count)
{
    const rq_catalog_region **regions;
    const rq_catalog_table *const *tables;
    size_t count, table_count, n = 0;
    if (rq_catalog_online(catalog, arena, &regions, &count) != RQ_OK) return NULL;
    rq_catalog_tables(catalog, &tables, &table_count);
    size_t cap = count + 1;
    for (size_t t = 0; t < table_count; t++)
        cap += tables[t]->replica_count;
    Pb__RegionLoad **list = rq_arena_alloc(arena, cap * sizeof(Pb__RegionLoad *));
    if (list == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        if (is_of(regions[i], of) && (list[n++] = region_load(arena, regions[i])) == NULL)
            return NULL;
    for (size_t t = 0; t < table_count; t++) {
        for (size_t i = 0; i < tables[t]->replica_count; i++) {
            const rq_catalog_region *r = rq_catalog_table_replica(tables[t], i);
            if (r->region == NULL || !is_of(r, of)) continue;
            if ((list[n++] = region_load(arena, r)) == NULL) return NULL;
        }
    }
    *ret_count = n;
    return list;
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
