/* SPDX-License-Identifier: Apache-2.0 */
/* Converts checked arguments to the region's requests; service/decode.c does this for messages. */
#include "embed/embed_priv.h"

#include "filter/comparator.h"
#include "filter/filter.h"
#include "ops/read.h"

#include <stdio.h>

/* HBASE: MobConstants. As service/decode.c. */
RQ_COLD static void take_mob_attributes(const rq_named_list *list, rq_scan *ret)
{
    const struct {
        const char *name;
        bool *value;
    } known[] = {{"hbase.mob.scan.raw", &ret->mob_raw},
                 {"hbase.mob.scan.ref.only", &ret->mob_refs_only},
                 {"hbase.mob.cache.blocks", &ret->mob_cache_blocks},
                 {"empty.value.on.mobcell.miss", &ret->mob_empty_on_miss}};
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < RQ_ARRAY_LEN(known); k++)
            if (rq_slice_eq(list->items[i].name, rq_slice_cstr(known[k].name)))
                *known[k].value = list->items[i].value.len == 1 && list->items[i].value.ptr[0] != 0;
}

/* A replica is another name of the region. HBASE: RpcRetryingCallerWithReadReplicas */
RQ_COLD static rq_err check_replica(uint16_t replica, const rq_region *region, rq_error *why)
{
    rq_table_schema *schema = rq_region_schema(region);
    bool exists = replica < schema->region_replication;
    rq_table_schema_unref(schema);
    if (exists) return RQ_OK;
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "There is no location for replica id #%u",
                   replica);
}

rq_err rq__reading_to_scan(const rq_reading *r, const rq_region *region, rq_arena *arena,
                           rq_scan *ret, rq_error *why)
{
    if (RQ_UNLIKELY(r->replica > 0)) RQ_TRY(check_replica(r->replica, region, why));
    ret->cache_blocks = !r->no_block_cache;
    ret->check_existence_only = r->existence_only;
    ret->load_families_on_demand = !r->no_lazy_families;
    ret->read_uncommitted = r->reads_uncommitted;
    if (RQ_UNLIKELY(r->attributes.count > 0)) take_mob_attributes(&r->attributes, ret);
    ret->max_versions = r->max_versions;
    ret->time_range = (rq_time_range){r->min_timestamp, r->max_timestamp};
    ret->store_limit = r->family_limit;
    ret->store_offset = r->family_offset;
    if (r->family_count > 0) {
        rq_scan_family *list = rq_arena_alloc(arena, r->family_count * sizeof *list);
        if (list == NULL) return rq_no_memory(why);
        for (size_t i = 0; i < r->family_count; i++)
            list[i] = (rq_scan_family){.family = r->families[i].family,
                                       .qualifiers = r->families[i].qualifiers,
                                       .qualifier_count = r->families[i].qualifier_count};
        ret->families = list;
        ret->family_count = r->family_count;
    }
    for (size_t i = 0; i < r->range_count; i++) {
        rq_time_range range = {r->ranges[i].min_timestamp, r->ranges[i].max_timestamp};
        if (rq_op_read_limit_family(ret, region, arena, r->ranges[i].family, range) != RQ_OK)
            return rq_no_memory(why);
    }
    if (r->filter_class.len == 0) return RQ_OK;
    return rq_filter_parse(r->filter_class, r->filter, arena, &ret->filter, why);
}

rq_err rq__getting_to_scan(const rq_getting *g, const rq_region *region, rq_arena *arena,
                           rq_scan *ret, rq_error *why)
{
    *ret = (rq_scan){.start_row = g->row,
                     .stop_row = g->row,
                     .include_start = true,
                     .include_stop = true,
                     .is_get = true};
    return rq__reading_to_scan(&g->read, region, arena, ret, why);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* HBASE: HRegion.prepareDelete: a delete without columns puts a marker into each family. */
static rq_err delete_whole_row(const rq_changing *c, const rq_region *region, rq_arena *arena,
                               rq_mutation *ret, rq_error *why)
{
    rq_table_schema *schema = rq_region_schema(region);
    rq_err rc = RQ_OK;
    ret->cell_count = schema->family_count;
    ret->cells = rq_arena_calloc(arena, schema->family_count, sizeof *ret->cells);
    for (size_t i = 0; ret->cells != NULL && rc == RQ_OK && i < schema->family_count; i++) {
        rq_slice family = rq_arena_copy(arena, schema->families[i].name);
        ret->cells[i] = (rq_cell){.row = c->row.ptr,
                                  .row_len = (uint16_t)c->row.len,
                                  .family = family.ptr,
                                  .family_len = (uint8_t)family.len,
                                  .timestamp = c->timestamp,
                                  .type = RQ_TYPE_DELETE_FAMILY};
        if (family.ptr == NULL) rc = rq_no_memory(why);
    }
    if (ret->cells == NULL) rc = rq_no_memory(why);
    rq_table_schema_unref(schema);
    return rc;
}

/* HBASE: RSRpcServices.checkCellSizeLimit includes the be32 in front of the KeyValue. */
static rq_err check_sizes(const rq_mutation *m, const rq_region *region, rq_error *why)
{
    uint64_t max = rq_region_cell_bytes_max(region);
    for (size_t i = 0; max > 0 && i < m->cell_count; i++) {
        size_t size = rq_cell_serialized_len(&m->cells[i], true) + 4;
        if (size <= max) continue;
        char row[256];
        rq_bytes_to_string(m->row, row, sizeof row);
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "a cell of row %s has %zu bytes, more than the limit of %llu bytes", row,
                       size, (unsigned long long)max);
    }
    return RQ_OK;
}

/* A tag with the time to live. HBASE: Mutation.setTTL, HRegion's rewriteCellTags. */
static rq_err add_ttl(uint64_t ttl_ms, rq_arena *arena, rq_mutation *m, rq_error *why)
{
    enum { TAG_LEN = 2 + 1 + 8 };
    uint8_t *tag = rq_arena_alloc(arena, TAG_LEN);
    if (tag == NULL) return rq_no_memory(why);
    rq_put_be16(tag, TAG_LEN - 2);
    tag[2] = RQ_TAG_TTL;
    rq_put_be64(tag + 3, ttl_ms);
    for (size_t i = 0; i < m->cell_count; i++) {
        m->cells[i].tags = tag;
        m->cells[i].tags_len = TAG_LEN;
    }
    return RQ_OK;
}

rq_err rq__changing_to_mutation(const rq_changing *c, const rq_region *region, rq_arena *arena,
                                rq_mutation *ret, rq_error *why)
{
    static const rq_mutation_type types[] = {[RQ_PUT] = RQ_MUTATE_PUT,
                                             [RQ_DELETE] = RQ_MUTATE_DELETE,
                                             [RQ_APPEND] = RQ_MUTATE_APPEND,
                                             [RQ_INCREMENT] = RQ_MUTATE_INCREMENT};
    static const rq_durability levels[] = {[RQ_DURABILITY_DEFAULT] = RQ_USE_DEFAULT,
                                           [RQ_DURABILITY_SKIP_LOG] = RQ_SKIP_WAL,
                                           [RQ_DURABILITY_ASYNC] = RQ_ASYNC_WAL,
                                           [RQ_DURABILITY_SYNC] = RQ_SYNC_WAL,
                                           [RQ_DURABILITY_FSYNC] = RQ_FSYNC_WAL};
    *ret = (rq_mutation){.type = types[c->kind],
                         .row = c->row,
                         .cell_count = c->cell_count,
                         .durability = levels[c->durability],
                         .return_results = !c->returns_nothing,
                         .time_range = {c->min_timestamp, c->max_timestamp}};
    if (c->cell_count == 0) return delete_whole_row(c, region, arena, ret, why);
    ret->cells = rq_arena_alloc(arena, c->cell_count * sizeof *ret->cells);
    if (ret->cells == NULL) return rq_no_memory(why);
    memcpy(ret->cells, c->cells, c->cell_count * sizeof *ret->cells);
    if (c->ttl_ms > 0 && c->kind != RQ_DELETE) RQ_TRY(add_ttl(c->ttl_ms, arena, ret, why));
    return check_sizes(ret, region, why);
}

rq_err rq__checking_to_condition(const rq_checking *k, rq_slice row, rq_arena *arena,
                                 rq_condition *ret, rq_error *why)
{
    *ret = (rq_condition){.row = row,
                          .family = k->family,
                          .qualifier = k->qualifier,
                          .op = (rq_compare_op)k->op,
                          .filter_class = k->filter_class,
                          .filter_message = k->filter,
                          .time_range = {k->min_timestamp, k->max_timestamp}};
    if (k->filter_class.len > 0)
        return rq_filter_parse(k->filter_class, k->filter, arena, &ret->filter, why);
    return rq_comparator_new_binary(k->value, arena, &ret->comparator);
}
