/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the caller's structs and converts them to the back ends' form: columns grouped by family
 * and sorted, filters as class name and bytes, changes as cells. Rules and texts are those of HBase's
 * client, which makes the same checks before it sends (HBASE: Mutation.checkRow, Put, Delete, Get, Scan). */
#include "api/api_priv.h"

#include "filter/language.h"

#include "base/pb.h"

#include <stdlib.h>

/* rq_check_bytes, of a slice. */
static rq_err check_data(rq_slice s, const char *what, rq_error *why)
{
    return rq_check_bytes(rq_bytes_of(s.ptr, s.len), what, why);
}

static rq_err check_row(rq_slice row, rq_error *why)
{
    if (row.len == 0) return rq_fail(why, RQ_E_INVALID, "Row length is 0");
    if (row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "Row length %zu is > %d", row.len, RQ_ROW_LEN_MAX);
    return check_data(row, "a row", why);
}

static rq_err check_family(rq_slice family, rq_error *why)
{
    if (family.len == 0) return rq_fail(why, RQ_E_INVALID, "a column has no family");
    if (family.len > RQ_FAMILY_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "Family length %zu is > %d", family.len,
                       RQ_FAMILY_LEN_MAX);
    return check_data(family, "a family", why);
}

/* HBASE: TimeRange.between */
static rq_err take_times(int64_t min, int64_t max, int64_t *ret_min, int64_t *ret_max,
                         rq_error *why)
{
    if (max == 0) max = INT64_MAX;
    if (min < 0 || max < 0)
        return rq_fail(why, RQ_E_INVALID,
                       "Timestamp cannot be negative. minStamp:%lld, maxStamp:%lld", (long long)min,
                       (long long)max);
    if (max < min) return rq_fail(why, RQ_E_INVALID, "maxStamp is smaller than minStamp");
    *ret_min = min;
    *ret_max = max;
    return RQ_OK;
}

/* --- filters ---------------------------------------------------------------------------------- */

/* Filter { name 1, serialized_filter 2 } */
static rq_err parse_filter(rq_slice bytes, rq_slice *ret_class, rq_slice *ret_filter, rq_error *why)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == 1 && f.wire == RQ_PB_BYTES) *ret_class = f.bytes;
        if (f.number == 2 && f.wire == RQ_PB_BYTES) *ret_filter = f.bytes;
    }
    if (rc != RQ_E_END || ret_class->len == 0)
        return rq_fail(why, RQ_E_INVALID, "the filter's bytes are not a protobuf message Filter");
    return RQ_OK;
}

static rq_err parse_some_filter(const char *text, rq_bytes bytes, rq_arena *arena,
                                rq_slice *ret_class, rq_slice *ret_filter, rq_error *why)
{
    if (text != NULL && bytes.len > 0)
        return rq_fail(why, RQ_E_INVALID, "filter_text and a filter in bytes exclude each other");
    RQ_TRY(rq_check_bytes(bytes, "a filter", why));
    if (bytes.len > 0) return parse_filter(rq_slice_of_bytes(bytes), ret_class, ret_filter, why);
    if (text == NULL) return RQ_OK;
    return rq_filter_language_compile(rq_slice_cstr(text), arena, ret_class, ret_filter, why);
}

/* Most requests have none. */
static inline rq_err take_filter(const char *text, rq_bytes bytes, rq_arena *arena,
                                 rq_slice *ret_class, rq_slice *ret_filter, rq_error *why)
{
    *ret_class = *ret_filter = (rq_slice){0};
    if (RQ_LIKELY(text == NULL && bytes.len == 0)) return RQ_OK;
    return parse_some_filter(text, bytes, arena, ret_class, ret_filter, why);
}

/* --- columns ---------------------------------------------------------------------------------- */

static int compare_columns(const void *a, const void *b)
{
    const rq_column *x = a, *y = b;
    int c = rq_slice_compare(rq_slice_of_bytes(x->family), rq_slice_of_bytes(y->family));
    if (c != 0) return c;
    /* A whole family before its columns. */
    if (x->qualifier.data == NULL || y->qualifier.data == NULL)
        return (x->qualifier.data != NULL) - (y->qualifier.data != NULL);
    return rq_slice_compare(rq_slice_of_bytes(x->qualifier), rq_slice_of_bytes(y->qualifier));
}

/* One family from sorted columns; returns their number. */
static size_t pick_family(const rq_column *columns, size_t count, rq_slice *qualifiers,
                          rq_picked *ret)
{
    size_t n = 0, kept = 0;
    rq_slice family = rq_slice_of_bytes(columns[0].family);
    for (; n < count && rq_slice_eq(rq_slice_of_bytes(columns[n].family), family); n++) {
        rq_slice q = rq_slice_of_bytes(columns[n].qualifier);
        if (columns[0].qualifier.data == NULL) continue; /* all of them anyway */
        if (kept == 0 || !rq_slice_eq(qualifiers[kept - 1], q)) qualifiers[kept++] = q;
    }
    *ret = (rq_picked){family, qualifiers, kept};
    return n;
}

/* A qualifier with data NULL means the whole family; its length must be 0. */
static rq_err check_column(const rq_column *c, rq_error *why)
{
    if (c->qualifier.len > INT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "a qualifier of %zu bytes", c->qualifier.len);
    RQ_TRY(rq_check_bytes(c->qualifier, "a qualifier", why));
    return check_family(rq_slice_of_bytes(c->family), why);
}

static rq_err pick_some_columns(const rq_column *columns, size_t count, rq_arena *arena,
                                rq_reading *ret, rq_error *why)
{
    if (columns == NULL)
        return rq_fail(why, RQ_E_INVALID, "columns is NULL, but column_count is not 0");
    if (count > UINT32_MAX) return rq_fail(why, RQ_E_INVALID, "%zu columns are too many", count);
    for (size_t i = 0; i < count; i++)
        RQ_TRY(check_column(&columns[i], why));
    rq_picked *families = rq_arena_alloc(arena, count * sizeof *families);
    rq_slice *qualifiers = rq_arena_alloc(arena, count * sizeof *qualifiers);
    if (families == NULL || qualifiers == NULL) return rq_no_memory(why);
    const rq_column *sorted = columns;
    if (count > 1) {
        rq_column *own = rq_arena_alloc(arena, count * sizeof *own);
        if (own == NULL) return rq_no_memory(why);
        memcpy(own, columns, count * sizeof *own);
        qsort(own, count, sizeof *own, compare_columns);
        sorted = own;
    }
    for (size_t i = 0; i < count;)
        i += pick_family(sorted + i, count - i, qualifiers + i, &families[ret->family_count++]);
    ret->families = families;
    return RQ_OK;
}

/* Many requests have none. */
static inline rq_err pick_columns(const rq_column *columns, size_t count, rq_arena *arena,
                                  rq_reading *ret, rq_error *why)
{
    return count == 0 ? RQ_OK : pick_some_columns(columns, count, arena, ret, why);
}

static rq_err take_some_ranges(const rq_family_times *given, size_t count, rq_arena *arena,
                               rq_reading *ret, rq_error *why)
{
    if (given == NULL || count > UINT16_MAX)
        return rq_fail(why, RQ_E_INVALID, "family_times is NULL, or has more than 65,535 entries");
    rq_family_range *ranges = rq_arena_alloc(arena, count * sizeof *ranges);
    if (ranges == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        ranges[i].family = rq_slice_of_bytes(given[i].family);
        RQ_TRY(check_family(ranges[i].family, why));
        RQ_TRY(take_times(given[i].min_timestamp, given[i].max_timestamp, &ranges[i].min_timestamp,
                          &ranges[i].max_timestamp, why));
    }
    ret->ranges = ranges;
    ret->range_count = count;
    return RQ_OK;
}

/* Most requests have none. A time range of a family that the request does not read has no effect. */
static inline rq_err take_ranges(const rq_family_times *given, size_t count, rq_arena *arena,
                                 rq_reading *ret, rq_error *why)
{
    return RQ_LIKELY(count == 0) ? RQ_OK : take_some_ranges(given, count, arena, ret, why);
}

/* --- reads ------------------------------------------------------------------------------------ */

static rq_err take_versions(int32_t given, int32_t *ret, rq_error *why)
{
    if (given < 0) return rq_fail(why, RQ_E_INVALID, "max_versions is negative");
    *ret = given == 0 ? 1 : given;
    return RQ_OK;
}

static rq_err take_family_limits(int32_t limit, int32_t offset, rq_reading *ret, rq_error *why)
{
    if (limit < 0 || offset < 0)
        return rq_fail(why, RQ_E_INVALID, "family_limit or family_offset is negative");
    ret->family_limit = limit == 0 ? -1 : limit;
    ret->family_offset = offset;
    return RQ_OK;
}

static rq_err take_priority(int32_t given, uint32_t *ret, rq_error *why)
{
    if (given < 0) return rq_fail(why, RQ_E_INVALID, "priority is negative");
    *ret = (uint32_t)given;
    return RQ_OK;
}

static rq_err take_consistency(rq_consistency consistency, uint32_t replica, rq_reading *ret,
                               rq_error *why)
{
    if ((unsigned)consistency > RQ_CONSISTENCY_TIMELINE)
        return rq_fail(why, RQ_E_INVALID, "unknown consistency %d", (int)consistency);
    ret->is_timeline = consistency == RQ_CONSISTENCY_TIMELINE;
    if (replica > 0 && !ret->is_timeline)
        return rq_fail(why, RQ_E_INVALID, "a replica is read only with RQ_CONSISTENCY_TIMELINE");
    if (replica > UINT16_MAX) /* HBASE: region names have four hexadecimal digits for it */
        return rq_fail(why, RQ_E_INVALID, "replica %u is above 65535", replica);
    ret->replica = (uint16_t)replica;
    return RQ_OK;
}

rq_err rq__take_get(const rq_get_request *given, rq_arena *arena, rq_getting *ret, rq_error *why)
{
    rq_get_request own;
    const rq_get_request *g = given;
    if (g == NULL || g->size != sizeof own) {
        RQ_TRY(rq_sized(&own, sizeof own, g, offsetof(rq_get_request, columns), "rq_get_request",
                        why));
        g = &own;
    }
    *ret = (rq_getting){.row = rq_slice_of_bytes(g->row),
                        .read = {.existence_only = g->existence_only,
                                 .no_block_cache = g->no_block_cache,
                                 .no_lazy_families = g->no_lazy_families,
                                 .reads_uncommitted = g->reads_uncommitted}};
    rq_reading *r = &ret->read;
    RQ_TRY(check_row(ret->row, why));
    RQ_TRY(take_priority(g->priority, &r->priority, why));
    RQ_TRY(take_consistency(g->consistency, g->replica, r, why));
    RQ_TRY(take_versions(g->max_versions, &r->max_versions, why));
    RQ_TRY(take_family_limits(g->family_limit, g->family_offset, r, why));
    RQ_TRY(
        take_times(g->min_timestamp, g->max_timestamp, &r->min_timestamp, &r->max_timestamp, why));
    RQ_TRY(pick_columns(g->columns, g->column_count, arena, r, why));
    RQ_TRY(take_ranges(g->family_times, g->family_times_count, arena, r, why));
    RQ_TRY(rq__take_attributes(g->attributes, g->attribute_count, arena, &r->attributes, why));
    return take_filter(g->filter_text, g->filter, arena, &r->filter_class, &r->filter, why);
}

rq_err rq__keep_slice(rq_arena *arena, rq_slice *in, rq_error *why)
{
    if (in->len == 0) return RQ_OK;
    *in = rq_arena_copy(arena, *in);
    return in->ptr == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err keep_reading(rq_arena *arena, rq_reading *r, rq_error *why)
{
    for (size_t i = 0; i < r->family_count; i++) {
        rq_picked *p = (rq_picked *)(uintptr_t)&r->families[i]; /* the arena's */
        RQ_TRY(rq__keep_slice(arena, &p->family, why));
        for (size_t q = 0; q < p->qualifier_count; q++)
            RQ_TRY(rq__keep_slice(arena, (rq_slice *)(uintptr_t)&p->qualifiers[q], why));
    }
    for (size_t i = 0; i < r->range_count; i++)
        RQ_TRY(rq__keep_slice(arena, (rq_slice *)(uintptr_t)&r->ranges[i].family, why));
    RQ_TRY(rq__keep_slice(arena, &r->filter_class, why));
    return rq__keep_slice(arena, &r->filter, why);
}

rq_err rq__keep_get(rq_arena *arena, rq_getting *g, rq_error *why)
{
    RQ_TRY(rq__keep_slice(arena, &g->row, why));
    return keep_reading(arena, &g->read, why);
}

rq_err rq__take_scan(const rq_scan_request *given, rq_arena *arena, rq_scanning *ret, rq_error *why)
{
    rq_scan_request s;
    RQ_TRY(rq_sized(&s, sizeof s, given, offsetof(rq_scan_request, stop), "rq_scan_request", why));
    *ret = (rq_scanning){.start = rq_slice_of_bytes(s.start),
                         .stop = rq_slice_of_bytes(s.stop),
                         .include_start = !s.excludes_start,
                         .include_stop = s.includes_stop,
                         .reversed = s.reversed,
                         .raw = s.raw,
                         .limit = s.limit,
                         .caching = s.caching > INT32_MAX ? INT32_MAX : s.caching,
                         .batch = s.batch,
                         .fetch_bytes = s.fetch_bytes,
                         .read_type = s.read_type,
                         .wants_cursors = s.wants_cursors,
                         .no_fetch_ahead = s.no_fetch_ahead,
                         .read = {.no_block_cache = s.no_block_cache,
                                  .no_lazy_families = s.no_lazy_families,
                                  .reads_uncommitted = s.reads_uncommitted}};
    rq_reading *r = &ret->read;
    if ((unsigned)s.read_type > RQ_READ_PREAD)
        return rq_fail(why, RQ_E_INVALID, "unknown read_type %d", (int)s.read_type);
    if (s.batch > INT32_MAX) return rq_fail(why, RQ_E_INVALID, "batch is above 2147483647");
    if (s.batch > 0 && s.wants_cursors)
        return rq_fail(why, RQ_E_INVALID, "wants_cursors and batch exclude each other");
    RQ_TRY(take_priority(s.priority, &r->priority, why));
    RQ_TRY(take_consistency(s.consistency, s.replica, r, why));
    if (ret->start.len > 0) RQ_TRY(check_row(ret->start, why));
    if (ret->stop.len > 0) RQ_TRY(check_row(ret->stop, why));
    RQ_TRY(take_versions(s.max_versions, &r->max_versions, why));
    RQ_TRY(take_family_limits(s.family_limit, s.family_offset, r, why));
    RQ_TRY(take_times(s.min_timestamp, s.max_timestamp, &r->min_timestamp, &r->max_timestamp, why));
    RQ_TRY(pick_columns(s.columns, s.column_count, arena, r, why));
    RQ_TRY(take_ranges(s.family_times, s.family_times_count, arena, r, why));
    RQ_TRY(rq__take_attributes(s.attributes, s.attribute_count, arena, &r->attributes, why));
    RQ_TRY(take_filter(s.filter_text, s.filter, arena, &r->filter_class, &r->filter, why));
    RQ_TRY(rq__keep_slice(arena, &ret->start, why));
    RQ_TRY(rq__keep_slice(arena, &ret->stop, why));
    return keep_reading(arena, r, why);
}

/* --- changes ---------------------------------------------------------------------------------- */

static uint8_t type_of(const rq_change *c, const rq_edit *e)
{
    static const uint8_t types[] = {
        [RQ_DELETE_COLUMN] = RQ_TYPE_DELETE_COLUMN,
        [RQ_DELETE_VERSION] = RQ_TYPE_DELETE,
        [RQ_DELETE_FAMILY] = RQ_TYPE_DELETE_FAMILY,
        [RQ_DELETE_FAMILY_VERSION] = RQ_TYPE_DELETE_FAMILY_VERSION,
    };
    if (c->kind != RQ_DELETE) return RQ_TYPE_PUT;
    return (unsigned)e->scope < RQ_ARRAY_LEN(types) ? types[e->scope] : 0;
}

/* `given` 0: returns the fallback. HBASE: Put and Delete refuse negative timestamps. */
static rq_err take_timestamp(int64_t given, int64_t fallback, int64_t *ret, rq_error *why)
{
    if (given == 0) {
        *ret = fallback;
    } else if (given == RQ_TIMESTAMP_ZERO) {
        *ret = 0;
    } else if (given < 0) {
        return rq_fail(why, RQ_E_INVALID, "Timestamp cannot be negative. ts=%lld",
                       (long long)given);
    } else {
        *ret = given;
    }
    return RQ_OK;
}

static rq_err take_value(const rq_change *c, const rq_edit *e, rq_arena *arena, rq_cell *cell,
                         rq_error *why)
{
    if (c->kind == RQ_DELETE) return RQ_OK;
    if (c->kind == RQ_INCREMENT && e->value.len == 0) {
        uint8_t *number = rq_arena_alloc(arena, 8);
        if (number == NULL) return rq_no_memory(why);
        rq_put_be64(number, (uint64_t)e->amount);
        cell->value = number;
        cell->value_len = 8;
        return RQ_OK;
    }
    if (c->kind == RQ_INCREMENT && e->value.len != 8)
        return rq_fail(why, RQ_E_INVALID, "an increment's value must have 8 bytes, not %zu",
                       e->value.len);
    if (e->value.len > INT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "a value of %zu bytes is too long", e->value.len);
    RQ_TRY(rq_check_bytes(e->value, "a value", why));
    cell->value = e->value.data;
    cell->value_len = (uint32_t)e->value.len;
    return RQ_OK;
}

static rq_err take_edit(const rq_change *c, const rq_edit *e, rq_slice row, int64_t timestamp,
                        rq_arena *arena, rq_cell *cell, rq_error *why)
{
    *cell = (rq_cell){.row = row.ptr,
                      .row_len = (uint16_t)row.len,
                      .family = e->family.data,
                      .family_len = (uint8_t)e->family.len,
                      .type = type_of(c, e)};
    RQ_TRY(check_family(rq_slice_of_bytes(e->family), why));
    if (cell->type == 0)
        return rq_fail(why, RQ_E_INVALID, "unknown scope %d of an edit", (int)e->scope);
    if (e->qualifier.len > INT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "a qualifier of %zu bytes", e->qualifier.len);
    RQ_TRY(rq_check_bytes(e->qualifier, "a qualifier", why));
    if (cell->type != RQ_TYPE_DELETE_FAMILY && cell->type != RQ_TYPE_DELETE_FAMILY_VERSION) {
        cell->qualifier = e->qualifier.data;
        cell->qualifier_len = (uint32_t)e->qualifier.len;
    }
    RQ_TRY(take_timestamp(e->timestamp, timestamp, &cell->timestamp, why));
    return take_value(c, e, arena, cell, why);
}

/* A delete without edits is one of the whole row. HBASE: ConnectionUtils.validatePut, checkHasFamilies. */
static rq_err check_no_edits(rq_change_kind kind, rq_error *why)
{
    if (kind == RQ_DELETE) return RQ_OK;
    if (kind == RQ_PUT) return rq_fail(why, RQ_E_INVALID, "No columns to insert");
    return rq_fail(why, RQ_E_INVALID, "Invalid arguments to %s, zero columns specified",
                   kind == RQ_APPEND ? "an append" : "an increment");
}

static rq_err take_change(const rq_change *given, rq_arena *arena, rq_changing *ret, rq_error *why)
{
    rq_change own;
    const rq_change *c = given;
    if (c->size != sizeof own) {
        RQ_TRY(rq_sized(&own, sizeof own, c, offsetof(rq_change, timestamp), "rq_change", why));
        c = &own;
    }
    if ((unsigned)c->kind > RQ_INCREMENT)
        return rq_fail(why, RQ_E_INVALID, "unknown kind %d of a change", (int)c->kind);
    if ((unsigned)c->durability > RQ_DURABILITY_FSYNC)
        return rq_fail(why, RQ_E_INVALID, "unknown durability %d", (int)c->durability);
    *ret = (rq_changing){.kind = c->kind,
                         .row = rq_slice_of_bytes(c->row),
                         .durability = c->durability,
                         .ttl_ms = c->ttl_ms,
                         .returns_nothing = c->returns_nothing};
    RQ_TRY(check_row(ret->row, why));
    RQ_TRY(take_priority(c->priority, &ret->priority, why));
    RQ_TRY(take_timestamp(c->timestamp, RQ_TIMESTAMP_LATEST, &ret->timestamp, why));
    RQ_TRY(take_times(c->min_timestamp, c->max_timestamp, &ret->min_timestamp, &ret->max_timestamp,
                      why));
    RQ_TRY(rq__take_attributes(c->attributes, c->attribute_count, arena, &ret->attributes, why));
    if (c->edit_count == 0) return check_no_edits(c->kind, why);
    if (c->edits == NULL || c->edit_count > INT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "edits is NULL, or has more than 2147483647 entries");
    ret->cells = rq_arena_alloc(arena, c->edit_count * sizeof *ret->cells);
    if (ret->cells == NULL) return rq_no_memory(why);
    ret->cell_count = c->edit_count;
    for (size_t i = 0; i < c->edit_count; i++)
        RQ_TRY(take_edit(c, &c->edits[i], ret->row, ret->timestamp, arena, &ret->cells[i], why));
    return RQ_OK;
}

rq_err rq__element(const void *list, size_t i, const char *what, const void **ret, rq_error *why)
{
    size_t stride, size;
    memcpy(&stride, list, sizeof stride);
    const char *at = (const char *)list + i * stride;
    memcpy(&size, at, sizeof size);
    if (size != stride)
        return rq_fail(why, RQ_E_INVALID, "%s.size is %zu in an array whose first one has %zu",
                       what, size, stride);
    *ret = at;
    return RQ_OK;
}

rq_err rq__take_changes(const rq_change *changes, size_t count, rq_arena *arena, rq_changing **ret,
                        rq_error *why)
{
    if (count == 0 || changes == NULL) return rq_fail(why, RQ_E_INVALID, "no changes were given");
    size_t stride = changes->size;
    if (count > UINT32_MAX || stride < sizeof(size_t))
        return rq_fail(why, RQ_E_INVALID, "rq_change.size is %zu, which is invalid", stride);
    rq_changing *list = rq_arena_alloc(arena, count * sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        const void *change = NULL;
        RQ_TRY(rq__element(changes, i, "rq_change", &change, why));
        RQ_TRY(take_change(change, arena, &list[i], why));
        /* HBASE: RowMutations.add */
        if (i > 0 && !rq_slice_eq(list[i].row, list[0].row))
            return rq_fail(why, RQ_E_INVALID, "the changes have different rows");
    }
    *ret = list;
    return RQ_OK;
}

/* The pointer of a cell to bytes of which a copy is kept. */
static rq_err keep_bytes(rq_arena *arena, const uint8_t **bytes, size_t len, rq_error *why)
{
    if (len == 0) return RQ_OK;
    *bytes = rq_arena_copy(arena, rq_slice_of(*bytes, len)).ptr;
    return *bytes == NULL ? rq_no_memory(why) : RQ_OK;
}

rq_err rq__keep_changes(rq_arena *arena, rq_changing *changes, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count; i++) {
        rq_changing *c = &changes[i];
        RQ_TRY(rq__keep_slice(arena, &c->row, why));
        for (size_t k = 0; k < c->cell_count; k++) {
            rq_cell *cell = &c->cells[k];
            cell->row = c->row.ptr;
            RQ_TRY(keep_bytes(arena, &cell->family, cell->family_len, why));
            RQ_TRY(keep_bytes(arena, &cell->qualifier, cell->qualifier_len, why));
            RQ_TRY(keep_bytes(arena, &cell->value, cell->value_len, why));
        }
    }
    return RQ_OK;
}

rq_err rq__keep_check(rq_arena *arena, rq_checking *k, rq_error *why)
{
    RQ_TRY(rq__keep_slice(arena, &k->family, why));
    RQ_TRY(rq__keep_slice(arena, &k->qualifier, why));
    RQ_TRY(rq__keep_slice(arena, &k->value, why));
    RQ_TRY(rq__keep_slice(arena, &k->filter_class, why));
    return rq__keep_slice(arena, &k->filter, why);
}

rq_err rq__take_check(const rq_check *given, rq_arena *arena, rq_checking *ret, rq_error *why)
{
    static const unsigned ops[] = {
        /* HBase's CompareType */
        [RQ_COMPARE_EQUAL] = 2,   [RQ_COMPARE_NOT_EQUAL] = 3,
        [RQ_COMPARE_LESS] = 0,    [RQ_COMPARE_LESS_OR_EQUAL] = 1,
        [RQ_COMPARE_GREATER] = 5, [RQ_COMPARE_GREATER_OR_EQUAL] = 4,
        [RQ_COMPARE_ABSENT] = 2,
    };
    rq_check c;
    RQ_TRY(rq_sized(&c, sizeof c, given, offsetof(rq_check, filter_text), "rq_check", why));
    if ((unsigned)c.compare >= RQ_ARRAY_LEN(ops))
        return rq_fail(why, RQ_E_INVALID, "unknown comparison %d of a check", (int)c.compare);
    RQ_TRY(rq_check_bytes(c.qualifier, "a qualifier", why));
    RQ_TRY(rq_check_bytes(c.value, "a value", why));
    *ret = (rq_checking){.family = rq_slice_of_bytes(c.family),
                         .qualifier = rq_slice_of_bytes(c.qualifier),
                         .op = ops[c.compare]};
    if (c.compare != RQ_COMPARE_ABSENT) ret->value = rq_slice_of_bytes(c.value);
    RQ_TRY(take_times(c.min_timestamp, c.max_timestamp, &ret->min_timestamp, &ret->max_timestamp,
                      why));
    RQ_TRY(take_filter(c.filter_text, c.filter, arena, &ret->filter_class, &ret->filter, why));
    return ret->filter_class.len > 0 ? RQ_OK : check_family(ret->family, why);
}
