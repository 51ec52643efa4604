/* SPDX-License-Identifier: Apache-2.0 */
/* Request messages to scans and mutations; see decode.h. */
#include "service/decode.h"

#include <stdio.h>
#include <stdlib.h>

/* HBASE: names of operation attributes in Mutation, OperationWithAttributes, Scan, Query. */
#define ATTRIBUTE_TTL "_ttl"
#define ATTRIBUTE_RETURN_RESULTS "_rr_"
#define ATTRIBUTE_RAW "_raw_"
#define ATTRIBUTE_ISOLATION "_isolationlevel_"
/* HBASE: MobConstants. */
#define ATTRIBUTE_MOB_RAW "hbase.mob.scan.raw"
#define ATTRIBUTE_MOB_REFS_ONLY "hbase.mob.scan.ref.only"
#define ATTRIBUTE_MOB_CACHE "hbase.mob.cache.blocks"
#define ATTRIBUTE_MOB_EMPTY "empty.value.on.mobcell.miss"

static const Pb__NameBytesPair *find_attribute(Pb__NameBytesPair *const *list, size_t count,
                                               const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i]->name, name) == 0) return list[i];
    return NULL;
}

/* HBASE: Bytes.toBoolean: any byte but 0 is true. */
static bool attribute_is_true(const Pb__NameBytesPair *a, bool fallback)
{
    if (a == NULL || !a->has_value || a->value.len != 1) return fallback;
    return a->value.data[0] != 0;
}

static rq_err check_row(rq_slice row, rq_error *why)
{
    /* An IllegalArgumentException in HBase's handler reaches the client as IOException. */
    if (row.len == 0) return rq_fail(why, RQ_E_IOEXCEPTION, "Row length is 0");
    if (row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_IOEXCEPTION, "Row length %zu is > %d", row.len, RQ_ROW_LEN_MAX);
    return RQ_OK;
}

/* HBASE: TimeRange.between; an absent end means unbounded. */
static rq_err decode_time_range(const Pb__TimeRange *t, rq_time_range *ret, rq_error *why)
{
    int64_t min = t->has_from ? (int64_t)t->from : 0;
    int64_t max = t->has_to ? (int64_t)t->to : INT64_MAX;
    if (min < 0 || max < 0)
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "Timestamp cannot be negative. minStamp:%lld, maxStamp:%lld", (long long)min,
                       (long long)max);
    if (max < min) return rq_fail(why, RQ_E_IOEXCEPTION, "maxStamp is smaller than minStamp");
    *ret = (rq_time_range){min, max};
    return RQ_OK;
}

/* --- columns -------------------------------------------------------------------------------- */

static int compare_families(const void *a, const void *b)
{
    return rq_slice_compare(((const rq_scan_family *)a)->family,
                            ((const rq_scan_family *)b)->family);
}

/* Sorts and removes duplicates; returns the number of entries left. */
static size_t sort_unique(rq_slice *list, size_t count)
{
    if (count < 2) return count;
    qsort(list, count, sizeof *list, rq_slice_order);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++)
        if (!rq_slice_eq(list[i], list[kept - 1])) list[kept++] = list[i];
    return kept;
}

static rq_err decode_column(const Pb__Column *c, rq_arena *arena, bool copy, rq_scan_family *ret)
{
    ret->family = rq__pb_slice(c->family);
    if (copy) ret->family = rq_arena_copy(arena, ret->family);
    if (copy && ret->family.ptr == NULL) return RQ_E_NO_MEMORY;
    if (c->n_qualifier == 0) return RQ_OK;
    rq_slice *list = rq_arena_alloc(arena, c->n_qualifier * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < c->n_qualifier; i++) {
        list[i] = rq__pb_slice(c->qualifier[i]);
        if (!copy) continue;
        list[i] = rq_arena_copy(arena, list[i]);
        if (list[i].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    ret->qualifier_count = sort_unique(list, c->n_qualifier);
    ret->qualifiers = list;
    return RQ_OK;
}

/* Merges list[0, count), entries of one family: the result has all their qualifiers, or none (the
 * whole family) if one of them has none. */
static rq_err merge_family(rq_scan_family *list, size_t count, rq_arena *arena)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].qualifier_count == 0) {
            list[0].qualifier_count = 0;
            return RQ_OK;
        }
        all += list[i].qualifier_count;
    }
    rq_slice *both = rq_arena_alloc(arena, all * sizeof *both);
    if (both == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < count; n += list[i++].qualifier_count)
        memcpy(both + n, list[i].qualifiers, list[i].qualifier_count * sizeof *both);
    list[0].qualifiers = both;
    list[0].qualifier_count = sort_unique(both, all);
    return RQ_OK;
}

/* Client libraries send a family once. If a request repeats one, the union is meant. `list` is
 * sorted by family. */
static rq_err merge_doubles(rq_scan_family *list, size_t *count, rq_arena *arena)
{
    size_t kept = 0;
    size_t end;
    for (size_t i = 0; i < *count; i = end) {
        for (end = i + 1; end < *count && rq_slice_eq(list[end].family, list[i].family);)
            end++;
        if (end - i > 1) RQ_TRY(merge_family(&list[i], end - i, arena));
        list[kept++] = list[i];
    }
    *count = kept;
    return RQ_OK;
}

static rq_err decode_columns(Pb__Column *const *columns, size_t count, rq_arena *arena, bool copy,
                             rq_scan *ret)
{
    if (count == 0) return RQ_OK;
    rq_scan_family *list = rq_arena_calloc(arena, count, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(decode_column(columns[i], arena, copy, &list[i]));
    if (count > 1) qsort(list, count, sizeof *list, compare_families);
    RQ_TRY(merge_doubles(list, &count, arena));
    ret->families = list;
    ret->family_count = count;
    return RQ_OK;
}

static rq_err decode_family_ranges(Pb__ColumnFamilyTimeRange *const *ranges, size_t count,
                                   const rq_region *region, rq_arena *arena, rq_scan *ret,
                                   rq_error *why)
{
    for (size_t i = 0; i < count; i++) {
        rq_time_range range;
        RQ_TRY(decode_time_range(ranges[i]->time_range, &range, why));
        RQ_TRY(rq_op_read_limit_family(ret, region, arena, rq__pb_slice(ranges[i]->column_family),
                                       range));
    }
    return RQ_OK;
}

/* --- reads ----------------------------------------------------------------------------------- */

static rq_err decode_filter(const Pb__Filter *f, rq_arena *arena, rq_filter **ret, rq_error *why)
{
    return rq_filter_parse(rq_slice_cstr(f->name), rq__pb_slice(f->serialized_filter), arena, ret,
                           why);
}

/* HBASE: IsolationLevel.toByte is the ordinal: 0 is READ_COMMITTED, 1 READ_UNCOMMITTED. */
static bool is_read_uncommitted(Pb__NameBytesPair *const *attributes, size_t count)
{
    const Pb__NameBytesPair *a = find_attribute(attributes, count, ATTRIBUTE_ISOLATION);
    return a != NULL && a->has_value && a->value.len == 1 && a->value.data[0] == 1;
}

static void decode_mob(Pb__NameBytesPair *const *list, size_t count, rq_scan *ret)
{
    if (count == 0) return;
    ret->mob_raw = attribute_is_true(find_attribute(list, count, ATTRIBUTE_MOB_RAW), false);
    ret->mob_refs_only =
        attribute_is_true(find_attribute(list, count, ATTRIBUTE_MOB_REFS_ONLY), false);
    ret->mob_cache_blocks =
        attribute_is_true(find_attribute(list, count, ATTRIBUTE_MOB_CACHE), false);
    ret->mob_empty_on_miss =
        attribute_is_true(find_attribute(list, count, ATTRIBUTE_MOB_EMPTY), false);
}

static rq_err decode_versions(bool has, uint32_t versions, int32_t *ret, rq_error *why)
{
    *ret = has ? (int32_t)versions : 1;
    if (*ret <= 0) return rq_fail(why, RQ_E_IOEXCEPTION, "versions must be positive");
    return RQ_OK;
}

rq_err rq__decode_get(const Pb__Get *g, const rq_region *region, rq_arena *arena, rq_scan *ret,
                      rq_error *why)
{
    rq_slice row = rq__pb_slice(g->row);
    RQ_TRY(check_row(row, why));
    *ret = (rq_scan){
        .start_row = row,
        .stop_row = row,
        .include_start = true,
        .include_stop = true,
        .is_get = true,
        .cache_blocks = !g->has_cache_blocks || g->cache_blocks,
        .check_existence_only = g->has_existence_only && g->existence_only,
        .load_families_on_demand =
            !g->has_load_column_families_on_demand || g->load_column_families_on_demand,
        .read_uncommitted = is_read_uncommitted(g->attribute, g->n_attribute),
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = g->has_store_limit ? (int32_t)g->store_limit : -1,
        .store_offset = g->has_store_offset ? (int32_t)g->store_offset : 0,
    };
    decode_mob(g->attribute, g->n_attribute, ret);
    RQ_TRY(decode_versions(g->has_max_versions, g->max_versions, &ret->max_versions, why));
    if (g->time_range != NULL) RQ_TRY(decode_time_range(g->time_range, &ret->time_range, why));
    RQ_TRY(decode_columns(g->column, g->n_column, arena, false, ret));
    RQ_TRY(decode_family_ranges(g->cf_time_range, g->n_cf_time_range, region, arena, ret, why));
    if (g->filter != NULL) RQ_TRY(decode_filter(g->filter, arena, &ret->filter, why));
    return RQ_OK;
}

static rq_err copy_row(const ProtobufCBinaryData *bytes, bool has, rq_arena *arena, rq_slice *ret)
{
    *ret = (rq_slice){0};
    if (!has || bytes->len == 0) return RQ_OK;
    *ret = rq_arena_copy(arena, rq__pb_slice(*bytes));
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__decode_scan(const Pb__Scan *s, const rq_region *region, rq_arena *arena, rq_scan *ret,
                       rq_scan_extra *extra, rq_error *why)
{
    *ret = (rq_scan){
        .include_start = !s->has_include_start_row || s->include_start_row,
        .reversed = s->has_reversed && s->reversed,
        .raw =
            attribute_is_true(find_attribute(s->attribute, s->n_attribute, ATTRIBUTE_RAW), false),
        .cache_blocks = !s->has_cache_blocks || s->cache_blocks,
        .load_families_on_demand =
            !s->has_load_column_families_on_demand || s->load_column_families_on_demand,
        .read_uncommitted = is_read_uncommitted(s->attribute, s->n_attribute),
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = s->has_store_limit ? (int32_t)s->store_limit : -1,
        .store_offset = s->has_store_offset ? (int32_t)s->store_offset : 0,
        .batch = s->has_batch_size ? (int32_t)s->batch_size : 0,
    };
    *extra = (rq_scan_extra){
        .max_result_bytes = s->has_max_result_size ? s->max_result_size : 0,
        .mvcc_read_point = s->has_mvcc_read_point ? s->mvcc_read_point : 0,
        .need_cursor = s->has_need_cursor_result && s->need_cursor_result,
        .query_metrics = s->has_query_metrics_enabled && s->query_metrics_enabled,
    };
    decode_mob(s->attribute, s->n_attribute, ret);
    RQ_TRY(copy_row(&s->start_row, s->has_start_row, arena, &ret->start_row));
    RQ_TRY(copy_row(&s->stop_row, s->has_stop_row, arena, &ret->stop_row));
    if (ret->start_row.len > RQ_ROW_LEN_MAX) return check_row(ret->start_row, why);
    if (ret->stop_row.len > RQ_ROW_LEN_MAX) return check_row(ret->stop_row, why);
    /* HBASE: toScan: if the client does not say whether the stop row is included, equal start and
     * stop rows mean a get of this row. */
    ret->include_stop = s->has_include_stop_row
                            ? s->include_stop_row
                            : ret->start_row.len > 0 && rq_slice_eq(ret->start_row, ret->stop_row);
    RQ_TRY(decode_versions(s->has_max_versions, s->max_versions, &ret->max_versions, why));
    if (s->time_range != NULL) RQ_TRY(decode_time_range(s->time_range, &ret->time_range, why));
    RQ_TRY(decode_columns(s->column, s->n_column, arena, true, ret));
    RQ_TRY(decode_family_ranges(s->cf_time_range, s->n_cf_time_range, region, arena, ret, why));
    if (s->filter != NULL) RQ_TRY(decode_filter(s->filter, arena, &ret->filter, why));
    return RQ_OK;
}

/* --- mutations -------------------------------------------------------------------------------- */

static rq_err cell_too_large(const rq_cell *c, size_t size, uint64_t max, rq_error *why)
{
    char row[256], family[256], qualifier[256], timestamp[32] = "LATEST_TIMESTAMP";
    rq_bytes_to_string(rq_cell_row(c), row, sizeof row);
    rq_bytes_to_string(rq_cell_family(c), family, sizeof family);
    rq_bytes_to_string(rq_cell_qualifier(c), qualifier, sizeof qualifier);
    if (c->timestamp != RQ_TIMESTAMP_LATEST)
        snprintf(timestamp, sizeof timestamp, "%lld", (long long)c->timestamp);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Cell[%s/%s:%s/%s/%s/vlen=%u/seqid=0] with size %zu exceeds limit of %llu bytes",
                   row, family, qualifier, timestamp, rq_cell_type_name(c->type), c->value_len,
                   size, (unsigned long long)max);
}

static rq_err check_cell(const rq_cell *c, rq_slice row, uint64_t max, rq_error *why)
{
    if (RQ_UNLIKELY(!rq_short_eq(c->row, c->row_len, row.ptr, row.len))) {
        char cell_row[300], own_row[300];
        rq_bytes_to_string(rq_cell_row(c), cell_row, sizeof cell_row);
        rq_bytes_to_string(row, own_row, sizeof own_row);
        return rq_fail(why, RQ_E_WRONG_ROW,
                       "The row in the mutation's cell, %s, doesn't match the original one %s",
                       cell_row, own_row);
    }
    /* HBASE: RSRpcServices.checkCellSizeLimit includes the be32 in front of the KeyValue. */
    size_t size = rq_cell_serialized_len(c, true) + 4;
    if (max > 0 && size > max) return cell_too_large(c, size, max, why);
    return RQ_OK;
}

/* Consumes all announced cells before any of them is checked, so that the next mutation finds its
 * own. */
static rq_err take_cells(rq_cursor *cells, size_t count, rq_cell *out, rq_error *why)
{
    for (size_t i = 0; i < count; i++) {
        rq_err rc = rq_cellblock_next(cells, &out[i], why);
        if (rc == RQ_E_END)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "Cell count of %zu but at index %zu no cell returned", count, i);
        if (rc != RQ_OK) return rc;
    }
    return RQ_OK;
}

static uint8_t delete_cell_type(Pb__MutationProto__DeleteType t)
{
    switch (t) {
    case PB__MUTATION_PROTO__DELETE_TYPE__DELETE_ONE_VERSION:
        return RQ_TYPE_DELETE;
    case PB__MUTATION_PROTO__DELETE_TYPE__DELETE_MULTIPLE_VERSIONS:
        return RQ_TYPE_DELETE_COLUMN;
    case PB__MUTATION_PROTO__DELETE_TYPE__DELETE_FAMILY_VERSION:
        return RQ_TYPE_DELETE_FAMILY_VERSION;
    default:
        return RQ_TYPE_DELETE_FAMILY;
    }
}

static void set_family(rq_cell *c, rq_slice row, rq_slice family)
{
    c->row = row.ptr;
    c->row_len = (uint16_t)row.len;
    c->family = family.ptr;
    c->family_len = (uint8_t)family.len;
}

static rq_err decode_value(const Pb__MutationProto *m,
                           const Pb__MutationProto__ColumnValue__QualifierValue *q,
                           int64_t timestamp, rq_cell *ret, rq_error *why)
{
    bool is_delete = m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__DELETE;
    if (!is_delete && !q->has_value)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Missing required field: qualifier value");
    ret->qualifier = q->qualifier.data;
    ret->qualifier_len = (uint32_t)q->qualifier.len;
    ret->timestamp = q->has_timestamp ? (int64_t)q->timestamp : timestamp;
    ret->type = RQ_TYPE_PUT;
    if (q->has_delete_type || is_delete) {
        ret->type = delete_cell_type(q->delete_type);
    } else {
        ret->value = q->value.data;
        ret->value_len = (uint32_t)q->value.len;
    }
    if (q->has_tags && q->tags.len > 0) {
        if (q->tags.len > RQ_TAGS_LEN_MAX)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "tags of %zu bytes are too long", q->tags.len);
        if (!rq_tags_are_whole(q->tags.data, q->tags.len))
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "malformed tags of %zu bytes", q->tags.len);
        ret->tags = q->tags.data;
        ret->tags_len = (uint16_t)q->tags.len;
    }
    return RQ_OK;
}

static rq_err decode_values(const Pb__MutationProto *m, rq_slice row, rq_arena *arena,
                            rq_mutation *ret, rq_error *why)
{
    size_t count = 0;
    for (size_t i = 0; i < m->n_column_value; i++)
        count += m->column_value[i]->n_qualifier_value;
    ret->cells = rq_arena_calloc(arena, count, sizeof *ret->cells);
    if (ret->cells == NULL) return RQ_E_NO_MEMORY;
    /* HBASE: only Put takes the mutation's own timestamp for cells without one. */
    int64_t timestamp = m->has_timestamp && m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__PUT
                            ? (int64_t)m->timestamp
                            : RQ_TIMESTAMP_LATEST;
    for (size_t i = 0; i < m->n_column_value; i++) {
        const Pb__MutationProto__ColumnValue *column = m->column_value[i];
        rq_slice family = rq__pb_slice(column->family);
        if (family.len > RQ_FAMILY_LEN_MAX)
            return rq_fail(why, RQ_E_IOEXCEPTION, "Family length %zu is > %d", family.len,
                           RQ_FAMILY_LEN_MAX);
        for (size_t j = 0; j < column->n_qualifier_value; j++) {
            rq_cell *cell = &ret->cells[ret->cell_count++];
            set_family(cell, row, family);
            RQ_TRY(decode_value(m, column->qualifier_value[j], timestamp, cell, why));
        }
    }
    return RQ_OK;
}

rq_mutation_type rq__mutation_type(const Pb__MutationProto *m)
{
    switch (m->mutate_type) {
    case PB__MUTATION_PROTO__MUTATION_TYPE__PUT:
        return RQ_MUTATE_PUT;
    case PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT:
        return RQ_MUTATE_INCREMENT;
    case PB__MUTATION_PROTO__MUTATION_TYPE__DELETE:
        return RQ_MUTATE_DELETE;
    default:
        return RQ_MUTATE_APPEND;
    }
}

/* Copies the cell's tags, except its TTL if it has one. Returns the length of the copy. */
static size_t copy_without_ttl(uint8_t *to, const rq_cell *c)
{
    rq_slice ttl;
    size_t before = c->tags_len, after = 0;
    if (rq_cell_tag(c, RQ_TAG_TTL, &ttl)) {
        before = (size_t)(ttl.ptr - c->tags) - 3;
        after = c->tags_len - before - 3 - ttl.len;
    }
    if (before > 0) memcpy(to, c->tags, before);
    if (after > 0) memcpy(to + before, c->tags + c->tags_len - after, after);
    return before + after;
}

/* The attribute `_ttl` becomes a tag of each cell, and replaces a TTL tag that the client set. HBASE: Mutation.setTTL,
 * HRegion's rewriteCellTags, which does not check the length. The error's text is that of RawCell.checkForTagsLength,
 * with which HBase refuses tags that are too long elsewhere. */
static rq_err add_ttl(const Pb__NameBytesPair *ttl, rq_arena *arena, rq_mutation *m, rq_error *why)
{
    enum { TAG_LEN = 2 + 1 + 8 };
    for (size_t i = 0; i < m->cell_count; i++) {
        rq_cell *c = &m->cells[i];
        uint8_t *tags = rq_arena_alloc(arena, (size_t)c->tags_len + TAG_LEN);
        if (tags == NULL) return RQ_E_NO_MEMORY;
        size_t len = copy_without_ttl(tags, c);
        uint8_t *tag = tags + len;
        len += TAG_LEN;
        if (len > RQ_TAGS_LEN_MAX)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "tagslength %zu > %d", len, RQ_TAGS_LEN_MAX);
        rq_put_be16(tag, TAG_LEN - 2);
        tag[2] = RQ_TAG_TTL;
        memcpy(tag + 3, ttl->value.data, 8);
        c->tags = tags;
        c->tags_len = (uint16_t)len;
    }
    return RQ_OK;
}

/* HBASE: HRegion.prepareDelete: a Delete without columns puts a marker into each family. */
static rq_err delete_whole_row(const rq_region *region, int64_t timestamp, rq_arena *arena,
                               rq_mutation *m)
{
    rq_table_schema *schema = rq_region_schema(region);
    rq_err rc = RQ_E_NO_MEMORY;
    m->cells = rq_arena_calloc(arena, schema->family_count, sizeof *m->cells);
    if (m->cells == NULL) goto out;
    for (size_t i = 0; i < schema->family_count; i++) {
        rq_slice family = rq_arena_copy(arena, schema->families[i].name);
        if (family.ptr == NULL) goto out;
        set_family(&m->cells[i], m->row, family);
        m->cells[i].timestamp = timestamp;
        m->cells[i].type = RQ_TYPE_DELETE_FAMILY;
    }
    m->cell_count = schema->family_count;
    rc = RQ_OK;
out:
    rq_table_schema_unref(schema);
    return rc;
}

/* A number outside the enum counts as absent, as in Java's protobuf; protobuf-c passes it on. */
static rq_durability durability_of(const Pb__MutationProto *m)
{
    bool known = m->has_durability && (int)m->durability >= RQ_USE_DEFAULT &&
                 (int)m->durability <= RQ_FSYNC_WAL;
    return known ? (rq_durability)m->durability : RQ_USE_DEFAULT;
}

static rq_compare_op compare_op_of(const Pb__Condition *c)
{
    bool known =
        c->has_compare_type && (int)c->compare_type >= RQ_LESS && (int)c->compare_type <= RQ_NO_OP;
    return known ? (rq_compare_op)c->compare_type : RQ_LESS;
}

rq_err rq__decode_mutation(const Pb__MutationProto *m, const rq_region *region, rq_cursor *cells,
                           uint64_t cell_max, rq_arena *arena, rq_mutation *ret,
                           uint64_t *ret_nonce, rq_error *why)
{
    *ret = (rq_mutation){
        .type = rq__mutation_type(m),
        .durability = durability_of(m),
        .time_range = RQ_TIME_RANGE_ALL,
    };
    *ret_nonce = m->has_nonce ? m->nonce : 0;
    rq_slice row = rq__pb_slice(m->row);
    size_t count = m->has_associated_cell_count && m->associated_cell_count > 0
                       ? (size_t)m->associated_cell_count
                       : 0;
    if (count > 0) {
        /* Each cell has at least 8 bytes of lengths: an announced count beyond that is wrong and
         * must not size an allocation. */
        if (count > rq_cursor_left(cells) / 8)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Cell count of %zu but %s", count,
                           rq_cursor_left(cells) == 0 ? "no cellScanner" : "too few cells follow");
        ret->cells = rq_arena_alloc(arena, count * sizeof *ret->cells);
        if (ret->cells == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(take_cells(cells, count, ret->cells, why));
        ret->cell_count = count;
        if (!m->has_row) row = rq_cell_row(&ret->cells[0]);
    } else if (!m->has_row) {
        return rq_fail(why, RQ_E_IOEXCEPTION, "row cannot be null");
    }
    RQ_TRY(check_row(row, why));
    ret->row = row;
    if (count == 0) RQ_TRY(decode_values(m, row, arena, ret, why));
    for (size_t i = 0; i < ret->cell_count; i++)
        RQ_TRY(check_cell(&ret->cells[i], row, cell_max, why));
    if (ret->type == RQ_MUTATE_DELETE && ret->cell_count == 0)
        RQ_TRY(delete_whole_row(
            region, m->has_timestamp ? (int64_t)m->timestamp : RQ_TIMESTAMP_LATEST, arena, ret));
    const Pb__NameBytesPair *ttl = find_attribute(m->attribute, m->n_attribute, ATTRIBUTE_TTL);
    if (ttl != NULL && ttl->has_value && ttl->value.len == 8 && ret->type != RQ_MUTATE_DELETE)
        RQ_TRY(add_ttl(ttl, arena, ret, why));
    ret->return_results = attribute_is_true(
        find_attribute(m->attribute, m->n_attribute, ATTRIBUTE_RETURN_RESULTS), true);
    if (m->time_range != NULL) RQ_TRY(decode_time_range(m->time_range, &ret->time_range, why));
    return RQ_OK;
}

void rq__skip_cells(const Pb__MutationProto *m, rq_cursor *cells)
{
    rq_cell cell;
    if (!m->has_associated_cell_count) return;
    for (int32_t i = 0; i < m->associated_cell_count; i++)
        if (rq_cellblock_next(cells, &cell, NULL) != RQ_OK) return;
}

/* HBASE: CheckAndMutate.Builder.preCheck */
rq_err rq__check_condition_row(const rq_condition *c, rq_slice row, rq_error *why)
{
    char theirs[300], ours[300];
    if (rq_slice_eq(c->row, row)) return RQ_OK;
    rq_bytes_to_string(row, theirs, sizeof theirs);
    rq_bytes_to_string(c->row, ours, sizeof ours);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "The row of the action <%s> doesn't match the original one <%s>", theirs, ours);
}

rq_err rq__decode_condition(const Pb__Condition *c, rq_arena *arena, rq_condition *ret,
                            rq_error *why)
{
    *ret = (rq_condition){.row = rq__pb_slice(c->row),
                          .family = rq__pb_slice(c->family),
                          .qualifier = rq__pb_slice(c->qualifier),
                          .op = compare_op_of(c),
                          .time_range = RQ_TIME_RANGE_ALL};
    RQ_TRY(check_row(ret->row, why));
    if (c->time_range != NULL) RQ_TRY(decode_time_range(c->time_range, &ret->time_range, why));
    if (c->filter != NULL) {
        ret->filter_class = rq_slice_cstr(c->filter->name);
        ret->filter_message = rq__pb_slice(c->filter->serialized_filter);
        return decode_filter(c->filter, arena, &ret->filter, why);
    }
    if (c->comparator == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "a condition needs a comparator or a filter");
    /* HBASE: toCheckAndMutate only uses the comparator's value and compares bytes, whatever class
     * the client named. */
    rq_comparator *given;
    RQ_TRY(rq_comparator_parse(rq_slice_cstr(c->comparator->name),
                               rq__pb_slice(c->comparator->serialized_comparator), arena, &given,
                               why));
    return rq_comparator_new_binary(rq_comparator_value(given), arena, &ret->comparator);
}
