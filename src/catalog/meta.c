/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing meta's rows; the layout stands in meta.h. */
#include "catalog/meta.h"

#include <stdio.h>
#include <stdlib.h>

#include "hfile/read_ctx.h"
#include "proto/hbase.pb-c.h"
#include "region/region_scanner.h"
#include "store/pb_arena.h"
#include "wal/wal.h"

static const char *const state_names[] = {
    [RQ_REGION_OFFLINE] = "OFFLINE", [RQ_REGION_OPENING] = "OPENING",
    [RQ_REGION_OPEN] = "OPEN",       [RQ_REGION_CLOSING] = "CLOSING",
    [RQ_REGION_CLOSED] = "CLOSED",   [RQ_REGION_FAILED_OPEN] = "FAILED_OPEN",
    [RQ_REGION_SPLIT] = "SPLIT",     [RQ_REGION_SPLITTING] = "SPLITTING",
    [RQ_REGION_MERGING] = "MERGING",
};

const char *rq__region_state_name(rq_region_state s)
{
    return state_names[s];
}

/* --- batches ---------------------------------------------------------------------------------- */

void rq__batch_init(rq__batch *b, rq_arena *arena, int64_t time_ms)
{
    *b = (rq__batch){.arena = arena, .time_ms = time_ms};
}

static rq_err batch_mutation(rq__batch *b, rq_mutation_type type, rq_slice row, size_t cells,
                             rq_mutation **ret)
{
    if (b->count == b->cap) {
        size_t cap = b->cap == 0 ? 8 : b->cap * 2;
        rq_mutation *more = rq_arena_calloc(b->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (b->count > 0) memcpy(more, b->mutations, b->count * sizeof *more);
        b->mutations = more;
        b->cap = cap;
    }
    rq_mutation *m = &b->mutations[b->count];
    *m = (rq_mutation){.type = type, .row = row, .durability = RQ_SYNC_WAL};
    m->time_range = RQ_TIME_RANGE_ALL;
    m->cells = rq_arena_calloc(b->arena, cells, sizeof *m->cells);
    if (m->cells == NULL) return RQ_E_NO_MEMORY;
    b->count++;
    *ret = m;
    return RQ_OK;
}

static void add_cell(const rq__batch *b, rq_mutation *m, uint8_t type, const char *family,
                     rq_slice qualifier, rq_slice value)
{
    m->cells[m->cell_count++] = (rq_cell){
        .row = m->row.ptr,
        .row_len = (uint16_t)m->row.len,
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .timestamp = b->time_ms,
        .type = type,
    };
}

rq_err rq__batch_put(rq__batch *b, rq_slice row, const char *family, rq_slice qualifier,
                     rq_slice value)
{
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_PUT, row, 1, &m));
    add_cell(b, m, RQ_TYPE_PUT, family, qualifier, value);
    return RQ_OK;
}

rq_err rq__batch_delete_family(rq__batch *b, rq_slice row, const char *family)
{
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_DELETE, row, 1, &m));
    add_cell(b, m, RQ_TYPE_DELETE_FAMILY, family, (rq_slice){NULL, 0}, (rq_slice){NULL, 0});
    return RQ_OK;
}

static rq_err commit_with(const rq__batch *b, rq_region *region, rq_durability durability,
                          rq_error *why)
{
    if (b->count == 0) return RQ_OK;
    for (size_t i = 0; i < b->count; i++)
        b->mutations[i].durability = durability;
    rq_row_op op = {
        .mutations = b->mutations,
        .mutation_count = b->count,
        .multi_row = b->count > 1,
    };
    rq_err rc = rq_region_write_sync(region, &op, 1, why);
    rq_cellblock_clear(&op.result);
    return rc;
}

rq_err rq__batch_commit(const rq__batch *b, rq_region *region, bool synced, rq_error *why)
{
    return commit_with(b, region, synced ? RQ_SYNC_WAL : RQ_ASYNC_WAL, why);
}

rq_err rq__batch_note(const rq__batch *b, rq_engine *e, rq_region *region, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = RQ_E_NO_SPACE;
    if (!rq_wal_lacks_space(rq_engine_wal(e))) rc = commit_with(b, region, RQ_ASYNC_WAL, &own);
    if (rc == RQ_E_NO_SPACE || rc == RQ_E_REGION_TOO_BUSY) {
        own = (rq_error){0};
        rc = commit_with(b, region, RQ_SKIP_WAL, &own);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* --- rows ------------------------------------------------------------------------------------- */

static rq_slice arena_be64(rq_arena *a, uint64_t v)
{
    uint8_t *p = rq_arena_alloc(a, 8);
    if (p != NULL) rq_put_be64(p, v);
    return rq_slice_of(p, 8);
}

/* The columns a region, or a replica of it, has of its own. */
static const char *const place_columns[] = {"server", "serverstartcode", "seqnumDuringOpen", "sn",
                                            "state"};

/* "state", and "state_0001" of replica 1. HBASE: CatalogFamilyFormat. .ptr NULL: no memory. */
static rq_slice place_column(rq_arena *a, const char *column, int replica_id)
{
    if (replica_id == 0) return rq_slice_cstr(column);
    const char *name = rq_arena_printf(a, "%s_%04X", column, (unsigned)replica_id);
    return name == NULL ? (rq_slice){NULL, 0} : rq_slice_cstr(name);
}

static rq_err add_place(const rq__batch *b, rq_mutation *m, rq_region_state state,
                        const rq_server_name *server, int64_t open_seqnum, int replica_id)
{
    rq_slice values[RQ_ARRAY_LEN(place_columns)] = {0};
    if (server != NULL && open_seqnum >= 0) {
        char *address = rq_arena_printf(b->arena, "%s:%u", server->host, server->port);
        values[1] = arena_be64(b->arena, (uint64_t)server->start_code);
        values[2] = arena_be64(b->arena, (uint64_t)open_seqnum);
        if (address == NULL || values[1].ptr == NULL || values[2].ptr == NULL)
            return RQ_E_NO_MEMORY;
        values[0] = rq_slice_cstr(address);
    }
    if (server != NULL) values[3] = rq_slice_cstr(server->text);
    values[4] = rq_slice_cstr(state_names[state]);
    for (size_t i = 0; i < RQ_ARRAY_LEN(place_columns); i++) {
        if (values[i].ptr == NULL) continue;
        rq_slice column = place_column(b->arena, place_columns[i], replica_id);
        if (column.ptr == NULL) return RQ_E_NO_MEMORY;
        add_cell(b, m, RQ_TYPE_PUT, "info", column, values[i]);
    }
    return RQ_OK;
}

rq_err rq__meta_put_region(rq__batch *b, const rq_region_info *info, rq_region_state state,
                           const rq_server_name *server, int64_t open_seqnum)
{
    rq_slice bytes;
    RQ_TRY(rq_region_info_serialize(info, b->arena, &bytes));
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_PUT, info->name, 1 + RQ_ARRAY_LEN(place_columns), &m));
    add_cell(b, m, RQ_TYPE_PUT, "info", RQ_SLICE_LIT("regioninfo"), bytes);
    return add_place(b, m, state, server, open_seqnum, 0);
}

rq_err rq__meta_put_replicas(rq__batch *b, const rq_region_info *info, rq_region_state state,
                             const rq_server_name *server, int64_t open_seqnum, int copies)
{
    if (copies < 2) return RQ_OK;
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_PUT, info->name,
                          (size_t)(copies - 1) * RQ_ARRAY_LEN(place_columns), &m));
    for (int id = 1; id < copies; id++)
        RQ_TRY(add_place(b, m, state, server, open_seqnum, id));
    return RQ_OK;
}

rq_err rq__meta_delete_replicas(rq__batch *b, const rq_region_info *info, int from, int to)
{
    if (from > to) return RQ_OK;
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_DELETE, info->name,
                          (size_t)(to - from + 1) * RQ_ARRAY_LEN(place_columns), &m));
    for (int id = from; id <= to; id++) {
        for (size_t i = 0; i < RQ_ARRAY_LEN(place_columns); i++) {
            rq_slice column = place_column(b->arena, place_columns[i], id);
            if (column.ptr == NULL) return RQ_E_NO_MEMORY;
            add_cell(b, m, RQ_TYPE_DELETE_COLUMN, "info", column, (rq_slice){NULL, 0});
        }
    }
    return RQ_OK;
}

rq_err rq__meta_delete_region(rq__batch *b, const rq_region_info *info)
{
    return rq__batch_delete_family(b, info->name, "info");
}

static rq_err put_info(rq__batch *b, rq_slice row, const char *qualifier,
                       const rq_region_info *info)
{
    rq_slice bytes;
    RQ_TRY(rq_region_info_serialize(info, b->arena, &bytes));
    return rq__batch_put(b, row, "info", rq_slice_cstr(qualifier), bytes);
}

/* info:state stays CLOSED, as HBase leaves it (AssignmentManager.markRegionAsSplit): the flags in
 * info:regioninfo say more. */
rq_err rq__meta_put_split_parent(rq__batch *b, const rq_region_info *parent,
                                 const rq_region_info *a, const rq_region_info *z)
{
    rq_region_info offline = *parent;
    offline.offline = offline.split = true;
    RQ_TRY(rq__meta_put_region(b, &offline, RQ_REGION_CLOSED, NULL, -1));
    RQ_TRY(put_info(b, parent->name, "splitA", a));
    return put_info(b, parent->name, "splitB", z);
}

rq_err rq__meta_put_seqnum(rq__batch *b, const rq_region_info *info, uint64_t seqnum)
{
    rq_slice value = arena_be64(b->arena, seqnum);
    if (value.ptr == NULL) return RQ_E_NO_MEMORY;
    return rq__batch_put(b, info->name, "info", RQ_SLICE_LIT("seqnumDuringOpen"), value);
}

rq_err rq__meta_put_merge_parents(rq__batch *b, const rq_region_info *merged,
                                  const rq_region_info *parents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *qualifier = rq_arena_printf(b->arena, "merge%04zu", i);
        if (qualifier == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(put_info(b, merged->name, qualifier, &parents[i]));
    }
    return RQ_OK;
}

rq_err rq__meta_delete_merge_parents(rq__batch *b, const rq_region_info *merged, size_t count)
{
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_DELETE, merged->name, count, &m));
    for (size_t i = 0; i < count; i++) {
        const char *qualifier = rq_arena_printf(b->arena, "merge%04zu", i);
        if (qualifier == NULL) return RQ_E_NO_MEMORY;
        add_cell(b, m, RQ_TYPE_DELETE_COLUMN, "info", rq_slice_cstr(qualifier),
                 (rq_slice){NULL, 0});
    }
    return RQ_OK;
}

rq_err rq__meta_put_table_state(rq__batch *b, rq_slice table, rq_table_state state)
{
    Pb__TableState m = PB__TABLE_STATE__INIT;
    m.state = (Pb__TableState__State)state;
    uint8_t *p = rq_arena_alloc(b->arena, pb__table_state__get_packed_size(&m));
    if (p == NULL) return RQ_E_NO_MEMORY;
    size_t len = pb__table_state__pack(&m, p);
    return rq__batch_put(b, table, "table", RQ_SLICE_LIT("state"), rq_slice_of(p, len));
}

rq_err rq__meta_delete_table(rq__batch *b, rq_slice table)
{
    return rq__batch_delete_family(b, table, "table");
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct row_buffer {
    rq_cellblock block;
    rq_cell *cells;
    size_t cap;
} row_buffer;

static rq_err parse_row(row_buffer *rb, rq_error *why)
{
    if (rb->block.count > rb->cap) {
        rq_cell *more = realloc(rb->cells, rb->block.count * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        rb->cells = more;
        rb->cap = rb->block.count;
    }
    rq_cursor c = rq_cursor_of(rq_buf_slice(&rb->block.bytes));
    for (uint32_t i = 0; i < rb->block.count; i++)
        RQ_TRY(rq_cellblock_next(&c, &rb->cells[i], why));
    return RQ_OK;
}

rq_err rq__region_each_row(rq_region *r,
                           rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                              rq_error *why),
                           void *ctx, rq_error *why)
{
    rq_epoch *epoch = rq_engine_env(rq_region_engine(r))->epoch;
    rq_scan scan = {
        .include_start = true,
        .cache_blocks = true,
        .max_versions = 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
    };
    rq_scan_limits limits = {0};
    rq_read_ctx read = {.may_block = true};
    row_buffer rb = {0};
    rq_arena arena;
    rq_arena_init(&arena);
    rq_epoch_member member = {0};
    rq_region_scanner *scanner = NULL;

    rq_epoch_pin(epoch, &member);
    rq_err rc = rq_region_scanner_open(r, &scan, 0, &arena, &scanner, why);
    for (rq_scan_state state = RQ_SCAN_MORE; rc == RQ_OK && state != RQ_SCAN_DONE;) {
        rq_cellblock_reset(&rb.block);
        rc = rq_region_scanner_next(scanner, &limits, &read, &rb.block, &state, why);
        if (rc == RQ_E_AGAIN) {
            rc = rq_read_ctx_fulfil(&read, why);
            continue;
        }
        if (rc != RQ_OK || rb.block.count == 0) continue;
        rq_region_scanner_suspend(scanner);
        rq_epoch_unpin(epoch, &member); /* the callback may take its time */
        rc = parse_row(&rb, why);
        if (rc == RQ_OK) rc = callback(ctx, rb.cells, rb.block.count, why);
        member = (rq_epoch_member){0};
        rq_epoch_pin(epoch, &member);
    }
    rq_region_scanner_close(scanner);
    rq_read_ctx_clear(&read);
    rq_epoch_unpin(epoch, &member);
    rq_arena_clear(&arena);
    rq_cellblock_clear(&rb.block);
    free(rb.cells);
    return rc;
}

typedef struct meta_scan {
    rq_arena *arena;
    rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why);
    void *ctx;
} meta_scan;

static bool cell_is(const rq_cell *c, const char *family, const char *qualifier)
{
    return rq_slice_eq(rq_cell_family(c), rq_slice_cstr(family)) &&
           rq_slice_eq(rq_cell_qualifier(c), rq_slice_cstr(qualifier));
}

static rq_err take_table_state(meta_scan *s, const rq_cell *c, rq__meta_row *row)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, s->arena);
    Pb__TableState *m = pb__table_state__unpack(&memory.allocator, c->value_len, c->value);
    if (m == NULL && memory.exhausted) return RQ_E_NO_MEMORY;
    row->is_table = true;
    if (m == NULL || (unsigned)m->state > RQ_TABLE_ENABLING)
        row->malformed = "table:state";
    else
        row->table_state = (rq_table_state)m->state;
    return RQ_OK;
}

static rq_err take_region_info(meta_scan *s, const rq_cell *c, rq__meta_row *row)
{
    rq_err rc = rq_region_info_parse(rq_cell_value(c), s->arena, &row->info, NULL);
    if (rc == RQ_E_NO_MEMORY) return rc;
    /* In the row of another region it would be opened twice. */
    if (rc != RQ_OK || !rq_slice_eq(row->info.name, rq_cell_row(c)))
        row->malformed = "info:regioninfo";
    return RQ_OK;
}

/* Of columns that are not there for the region itself; a malformed one is malformed meta. */
static rq_err take_relative(meta_scan *s, const rq_cell *c, rq__meta_row *row, rq_region_info *ret,
                            size_t *count)
{
    rq_err rc = rq_region_info_parse(rq_cell_value(c), s->arena, ret, NULL);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc != RQ_OK)
        row->malformed = "info:splitA, splitB or merge…";
    else
        (*count)++;
    return RQ_OK;
}

static rq_err take_merged(meta_scan *s, const rq_cell *c, rq__meta_row *row)
{
    size_t n = row->merged_count;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        rq_region_info *more = rq_arena_calloc(s->arena, n == 0 ? 1 : n * 2, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (n > 0) memcpy(more, row->merged, n * sizeof *more);
        row->merged = more;
    }
    return take_relative(s, c, row, &row->merged[n], &row->merged_count);
}

/* Of "state_0001" and its like; 0: it is none. */
static int replica_of(rq_slice qualifier)
{
    int id = 0;
    rq_slice prefix = RQ_SLICE_LIT("state_");
    if (qualifier.len != prefix.len + 4 || !rq_slice_starts_with(qualifier, prefix)) return 0;
    for (size_t i = prefix.len; i < qualifier.len; i++) {
        uint8_t c = qualifier.ptr[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
        if (digit > 15) return 0;
        id = id * 16 + digit;
    }
    return id;
}

/* An unknown state (written by something newer or older) counts as closed: the region is opened
 * when its table is enabled. */
static rq_region_state parse_region_state(rq_slice text)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(state_names); i++)
        if (rq_slice_eq(text, rq_slice_cstr(state_names[i]))) return (rq_region_state)i;
    return RQ_REGION_CLOSED;
}

static rq_err meta_scan_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    meta_scan *s = ctx;
    rq__meta_row row = {.state = RQ_REGION_OFFLINE, .open_seqnum = -1};
    bool has_region = false;
    for (size_t i = 0; i < count; i++) {
        const rq_cell *c = &cells[i];
        if (c->timestamp > row.newest_ms && c->timestamp != RQ_TIMESTAMP_LATEST)
            row.newest_ms = c->timestamp;
        if (cell_is(c, "table", "state")) {
            RQ_TRY(take_table_state(s, c, &row));
        } else if (cell_is(c, "info", "regioninfo")) {
            RQ_TRY(take_region_info(s, c, &row));
            has_region = true;
        } else if (cell_is(c, "info", "state")) {
            row.state = parse_region_state(rq_cell_value(c));
        } else if (cell_is(c, "info", "splitA") || cell_is(c, "info", "splitB")) {
            if (row.daughter_count < 2 && c->value_len > 0)
                RQ_TRY(take_relative(s, c, &row, &row.daughters[row.daughter_count],
                                     &row.daughter_count));
        } else if (rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("info")) &&
                   rq_slice_starts_with(rq_cell_qualifier(c), RQ_SLICE_LIT("merge"))) {
            RQ_TRY(take_merged(s, c, &row));
        } else if (cell_is(c, "info", "seqnumDuringOpen") && c->value_len == 8) {
            row.open_seqnum = (int64_t)rq_get_be64(c->value);
        } else if (rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("info"))) {
            int replica = replica_of(rq_cell_qualifier(c));
            if (replica > row.last_replica) row.last_replica = replica;
        }
    }
    if (!row.is_table && !has_region) return RQ_OK;
    row.row = rq_arena_copy(s->arena, rq_cell_row(&cells[0]));
    if (row.row.ptr == NULL) return RQ_E_NO_MEMORY;
    return s->callback(s->ctx, &row, why);
}

rq_err rq__meta_scan(rq_region *meta, rq_arena *arena,
                     rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                     void *ctx, rq_error *why)
{
    meta_scan s = {arena, callback, ctx};
    return rq__region_each_row(meta, meta_scan_row, &s, why);
}

rq_err rq__meta_row_read(const rq_cell *cells, size_t count, rq_arena *arena,
                         rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                         void *ctx, rq_error *why)
{
    meta_scan s = {arena, callback, ctx};
    return meta_scan_row(&s, cells, count, why);
}
