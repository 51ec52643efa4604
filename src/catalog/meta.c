/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes meta's rows; the layout is in meta.h. */
#include "catalog/meta.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/pb_arena.h"
#include "catalog/catalog_priv.h"
#include "catalog/newest.h"
#include "hfile/read_ctx.h"
#include "proto/hbase.pb-c.h"
#include "region/region_scanner.h"
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

rq_err rq__batch_delete_column(rq__batch *b, rq_slice row, const char *family, rq_slice qualifier)
{
    rq_mutation *m;
    RQ_TRY(batch_mutation(b, RQ_MUTATE_DELETE, row, 1, &m));
    add_cell(b, m, RQ_TYPE_DELETE_COLUMN, family, qualifier, (rq_slice){NULL, 0});
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
    for (size_t i = 0; i < b->count; i++) {
        b->mutations[i].durability = durability;
        b->mutations[i].trusted = true;
    }
    rq_row_op op = {
        .mutations = b->mutations,
        .mutation_count = b->count,
        .multi_row = b->count > 1,
        .vital = b->vital,
    };
    /* A client that changes these rows later changes what is written here. */
    rq_region_raise_clock(region, b->time_ms);
    rq_err rc = rq_region_write_sync(region, &op, 1, why);
    rq_cellblock_clear(&op.result);
    return rc;
}

rq_err rq__batch_commit(const rq__batch *b, rq_region *region, bool synced, rq_error *why)
{
    return commit_with(b, region, synced ? RQ_SYNC_WAL : RQ_ASYNC_WAL, why);
}

static size_t mutation_bytes(const rq_mutation *m)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->cell_count; i++)
        bytes += rq_cell_serialized_len(&m->cells[i], false);
    return bytes;
}

size_t rq__batch_bytes(const rq__batch *b, size_t from)
{
    size_t bytes = 0;
    for (size_t i = from; i < b->count; i++)
        bytes += mutation_bytes(&b->mutations[i]);
    return bytes;
}

rq__batch rq__batch_part(const rq__batch *b, size_t from)
{
    rq__batch part = *b;
    size_t bytes = 0;
    part.mutations = b->mutations + from;
    for (part.count = 0; from + part.count < b->count && bytes < RQ__PART_BYTES; part.count++)
        bytes += mutation_bytes(&part.mutations[part.count]);
    return part;
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

/* The columns that each region, or replica, has of its own. */
static const char *const place_columns[] = {"server", "serverstartcode", "seqnumDuringOpen", "sn",
                                            "state"};

/* "state", and "state_0001" of replica 1. HBASE: CatalogFamilyFormat. .ptr NULL: out of memory. */
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
        char *address = rq_arena_printf(b->arena, "%s", RQ_HOST_PORT(server->host, server->port));
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

rq_err rq__meta_put_closed(rq__batch *b, const rq_region_info *info, int copies)
{
    RQ_TRY(rq__meta_put_region(b, info, RQ_REGION_CLOSED, NULL, -1));
    return rq__meta_put_replicas(b, info, RQ_REGION_CLOSED, NULL, -1, copies);
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

/* info:state stays CLOSED, as in HBase (AssignmentManager.markRegionAsSplit): only the flags in
 * info:regioninfo tell that the region was split. */
rq_err rq__meta_put_split_parent(rq__batch *b, const rq_region_info *parent, int copies,
                                 const rq_region_info *a, const rq_region_info *z)
{
    rq_region_info offline = *parent;
    offline.offline = offline.split = true;
    RQ_TRY(rq__meta_put_closed(b, &offline, copies));
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

/* --- reading: rows ---------------------------------------------------------------------------- */

#define KEPT_ROW_MAX ((size_t)16 * 1024 * 1024) /* of a row's cells that are kept */
#define READ_BYTES ((uint64_t)1024 * 1024)      /* of a row at a time */

typedef struct row_reader {
    rq__keep (*keep)(const rq_cell *c);
    rq__seen *seen; /* may be NULL */
    rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count, rq_error *why);
    void *ctx;
    rq_cellblock block; /* the cell that the scanner returned last */
    rq_cellblock kept;  /* the chosen cells of the current row, if there is a keep() */
    rq_buf row;         /* its name */
    bool in_row;
    rq__newest newest;
    rq_cell *cells; /* of the row, for the callback */
    size_t cap;
} row_reader;

static rq_err visit_row(row_reader *rr, const rq_cellblock *from, rq_error *why)
{
    if (from->count > rr->cap) {
        rq_cell *more = realloc(rr->cells, from->count * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        rr->cells = more;
        rr->cap = from->count;
    }
    rq_cursor c = rq_cursor_of(rq_buf_slice(&from->bytes));
    for (uint32_t i = 0; i < from->count; i++)
        RQ_TRY(rq_cellblock_next_stored(&c, &rr->cells[i], why));
    return rr->callback(rr->ctx, rr->cells, from->count, why);
}

static rq_err end_row(row_reader *rr, rq_error *why)
{
    if (!rr->in_row) return RQ_OK;
    rr->in_row = false;
    if (rr->kept.count == 0 && !rr->newest.ignored) return RQ_OK;
    if (rr->kept.count == 0) {
        const rq_cell nothing = {
            .row = rr->row.ptr, .row_len = (uint16_t)rr->row.len, .type = RQ_TYPE_PUT};
        RQ_TRY(rq_cellblock_append(&rr->kept, &nothing));
    }
    if (rr->seen != NULL) rr->seen->ignored = rr->newest.ignored;
    return visit_row(rr, &rr->kept, why);
}

static void see_time(rq__seen *seen, int64_t ms)
{
    if (seen != NULL && ms > seen->newest_ms && ms <= RQ__MS_CLOCK_MAX) seen->newest_ms = ms;
}

static rq_err keep_cell(row_reader *rr, const rq_cell *c)
{
    bool counts;
    RQ_TRY(rq__newest_take(&rr->newest, c, &counts));
    rq__keep keep = counts ? rr->keep(c) : RQ__KEEP_NOT;
    if (keep != RQ__KEEP_NOT || rq_cell_is_delete(c)) see_time(rr->seen, c->timestamp);
    if (keep == RQ__KEEP_NOT || rr->kept.bytes.len > KEPT_ROW_MAX) return RQ_OK;
    rq_cell own = *c;
    own.tags = NULL;
    own.tags_len = 0;
    if (keep == RQ__KEEP_COLUMN || c->value_len > RQ__META_VALUE_MAX) own.value_len = 0;
    return rq_cellblock_append(&rr->kept, &own);
}

/* A part of a row, or all of it. */
static rq_err take_cells(row_reader *rr, rq_error *why)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&rr->block.bytes));
    for (uint32_t i = 0; i < rr->block.count; i++) {
        rq_cell cell;
        RQ_TRY(rq_cellblock_next_stored(&c, &cell, why));
        if (!rr->in_row || !rq_slice_eq(rq_buf_slice(&rr->row), rq_cell_row(&cell))) {
            RQ_TRY(end_row(rr, why));
            rq_buf_reset(&rr->row);
            rq_cellblock_reset(&rr->kept);
            rq__newest_row(&rr->newest);
            RQ_TRY(rq_buf_append(&rr->row, cell.row, cell.row_len));
            rr->in_row = true;
        }
        RQ_TRY(keep_cell(rr, &cell));
    }
    return RQ_OK;
}

static rq_err each_part(row_reader *rr, rq_region *r, const rq_scan *scan, rq_arena *arena,
                        rq_error *why)
{
    rq_epoch *epoch = rq_engine_env(rq_region_engine(r))->epoch;
    rq_scan_limits limits = {0};
    if (scan->raw) limits = (rq_scan_limits){.bytes = READ_BYTES, .may_stop_inside_row = true};
    rq_read_ctx read = {.may_block = true};
    rq_epoch_member member = {0};
    rq_region_scanner *scanner = NULL;
    rq_epoch_pin(epoch, &member);
    rq_err rc = rq_region_scanner_open(r, scan, 0, arena, &scanner, why);
    for (rq_scan_state state = RQ_SCAN_MORE; rc == RQ_OK && state != RQ_SCAN_DONE;) {
        rq_cellblock_reset(&rr->block);
        rc = rq_region_scanner_next(scanner, &limits, &read, &rr->block, &state, why);
        if (rc == RQ_E_AGAIN) {
            rc = rq_read_ctx_fulfil(&read, why);
            continue;
        }
        if (rc != RQ_OK || rr->block.count == 0) continue;
        rq_region_scanner_suspend(scanner);
        rq_epoch_unpin(epoch, &member); /* the callback may take its time */
        rc = scan->raw ? take_cells(rr, why) : visit_row(rr, &rr->block, why);
        member = (rq_epoch_member){0};
        rq_epoch_pin(epoch, &member);
    }
    rq_region_scanner_close(scanner);
    rq_read_ctx_clear(&read);
    rq_epoch_unpin(epoch, &member);
    return rc;
}

static rq_err read_rows(rq_region *r, const rq_scan *scan, row_reader *rr, rq_error *why)
{
    rq_arena arena;
    rq_arena_init(&arena);
    rq_err rc = each_part(rr, r, scan, &arena, why);
    if (rc == RQ_OK) rc = end_row(rr, why);
    rq_arena_clear(&arena);
    rq__newest_clear(&rr->newest);
    rq_cellblock_clear(&rr->block);
    rq_cellblock_clear(&rr->kept);
    rq_buf_clear(&rr->row);
    free(rr->cells);
    return rc;
}

static rq_err each_row_between(rq_region *r, rq_slice start, rq_slice stop,
                               rq__keep (*keep)(const rq_cell *c), rq__seen *seen,
                               rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                                  rq_error *why),
                               void *ctx, rq_error *why)
{
    rq_scan scan = {
        .start_row = start,
        .stop_row = stop,
        .include_start = true,
        .raw = keep != NULL,
        .cache_blocks = true,
        .max_versions = keep != NULL ? INT32_MAX : 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
    };
    row_reader rr = {.keep = keep, .seen = seen, .callback = callback, .ctx = ctx};
    return read_rows(r, &scan, &rr, why);
}

rq_err rq__region_each_row(rq_region *r, rq__keep (*keep)(const rq_cell *c), rq__seen *seen,
                           rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                              rq_error *why),
                           void *ctx, rq_error *why)
{
    const rq_slice none = {NULL, 0};
    return each_row_between(r, none, none, keep, seen, callback, ctx, why);
}

rq_err rq__region_row(rq_region *r, rq_slice row,
                      rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                         rq_error *why),
                      void *ctx, rq_error *why)
{
    rq_scan scan = rq_scan_of_row(row);
    row_reader rr = {.callback = callback, .ctx = ctx};
    return read_rows(r, &scan, &rr, why);
}

/* --- what need not be written ----------------------------------------------------------------- */

typedef struct known {
    const rq_mutation *mutation;
    bool all;
} known;

static bool contains_put(const rq_cell *cells, size_t count, const rq_cell *put)
{
    for (size_t i = 0; i < count; i++)
        if (rq_cell_same_column(&cells[i], put))
            return rq_slice_eq(rq_cell_value(&cells[i]), rq_cell_value(put));
    return false;
}

static rq_err compare_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    known *k = ctx;
    (void)why;
    k->all = true;
    for (size_t i = 0; i < k->mutation->cell_count && k->all; i++)
        k->all = contains_put(cells, count, &k->mutation->cells[i]);
    return RQ_OK;
}

static rq_err is_known(const rq_mutation *m, rq_region *r, bool *ret, rq_error *why)
{
    known k = {.mutation = m};
    rq_err rc = rq__region_row(r, m->row, compare_row, &k, why);
    *ret = k.all;
    return rc;
}

rq_err rq__batch_drop_known(rq__batch *b, rq_region *region, rq_error *why)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        bool is_there = false;
        if (b->mutations[i].type == RQ_MUTATE_PUT)
            RQ_TRY(is_known(&b->mutations[i], region, &is_there, why));
        if (!is_there) b->mutations[kept++] = b->mutations[i];
    }
    b->count = kept;
    return RQ_OK;
}

/* --- reading: hbase:meta ---------------------------------------------------------------------- */

static bool is_digits(rq_slice text, size_t from, size_t count)
{
    if (text.len != from + count) return false;
    for (size_t i = from; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
    return true;
}

/* HBASE: CatalogFamilyFormat: merge0000 … */
static bool is_merge_column(rq_slice qualifier)
{
    return rq_slice_starts_with(qualifier, RQ_SLICE_LIT("merge")) && is_digits(qualifier, 5, 4);
}

/* The replica id in a qualifier such as "state_0001"; 0: there is none, or this server cannot have
 * written it. */
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
    return id <= RQ_REPLICATION_MAX ? id : 0;
}

rq__keep rq__meta_keep(const rq_cell *c)
{
    static const char *const columns[] = {"regioninfo", "state", "seqnumDuringOpen", "splitA",
                                          "splitB"};
    rq_slice qualifier = rq_cell_qualifier(c);
    if (rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("table")))
        return rq_slice_eq(qualifier, RQ_SLICE_LIT("state")) ? RQ__KEEP : RQ__KEEP_NOT;
    if (!rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("info"))) return RQ__KEEP_NOT;
    for (size_t i = 0; i < RQ_ARRAY_LEN(columns); i++)
        if (rq_slice_eq(qualifier, rq_slice_cstr(columns[i]))) return RQ__KEEP;
    if (is_merge_column(qualifier)) return RQ__KEEP;
    return replica_of(qualifier) > 0 ? RQ__KEEP_COLUMN : RQ__KEEP_NOT;
}

typedef struct meta_scan {
    rq_arena *arena;
    rq__seen seen;
    bool keeps_arena; /* the arena is the caller's: it is not reset after each row */
    rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why);
    void *ctx;
} meta_scan;

static bool cell_is(const rq_cell *c, const char *family, const char *qualifier)
{
    return rq_slice_eq(rq_cell_family(c), rq_slice_cstr(family)) &&
           rq_slice_eq(rq_cell_qualifier(c), rq_slice_cstr(qualifier));
}

const char rq__meta_odd_relatives[] = "info:splitA, splitB or merge0000";
static const char bad_state[] = "table:state", bad_info[] = "info:regioninfo";

/* The columns found so far among a row's cells. */
typedef struct row_cells {
    bool has_region; /* info:regioninfo, perhaps malformed */
    bool bad_region;
    bool has_state; /* table:state, perhaps malformed */
    bool bad_state;
} row_cells;

#define STATE_BYTES_MAX 64
#define REGION_INFO_BYTES_MAX (2 * RQ_ROW_LEN_MAX + 2048) /* two keys, and a table's name */

static rq_err take_table_state(meta_scan *s, const rq_cell *c, rq__meta_row *row, row_cells *seen)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, s->arena);
    Pb__TableState *m = NULL;
    /* A longer value is malformed: it is not unpacked, since a message of many tiny fields takes many
     * times its length in memory. */
    if (c->value_len <= STATE_BYTES_MAX)
        m = pb__table_state__unpack(&memory.allocator, c->value_len, c->value);
    if (m == NULL && memory.exhausted) return RQ_E_NO_MEMORY;
    seen->has_state = true;
    seen->bad_state = m == NULL || (unsigned)m->state > RQ_TABLE_ENABLING;
    if (!seen->bad_state) row->table_state = (rq_table_state)m->state;
    return RQ_OK;
}

/* No table can have a longer name than a folder. */
static bool is_table_of_meta(rq_slice name, rq_slice *ret_ns)
{
    rq_slice qualifier;
    return rq_table_name_parse(name, ret_ns, &qualifier, NULL) == RQ_OK &&
           ret_ns->len <= RQ_NAME_MAX && qualifier.len <= RQ_NAME_MAX &&
           !rq__table_is_internal(*ret_ns, qualifier);
}

/* Whether a server can have written the row. hbase:meta has no rows for its own region and for the
 * procedure store's region. Such a row of a client is ignored: hbase:meta would be opened twice, and
 * clients could write to the procedure store. */
static bool is_region_of_meta(const rq_region_info *info, rq_slice row)
{
    rq_slice ns;
    return rq_slice_eq(info->name, row) && info->replica_id == 0 && info->region_id >= 0 &&
           info->region_id <= RQ__MS_READ_MAX &&
           (info->end_key.len == 0 || rq_slice_compare(info->start_key, info->end_key) < 0) &&
           is_table_of_meta(info->table, &ns) && rq_slice_eq(ns, info->ns);
}

/* A longer RegionInfo is malformed: it is not unpacked, since a message of many unknown fields takes
 * many times its length in memory. */
static rq_err parse_info(meta_scan *s, const rq_cell *c, rq_region_info *ret)
{
    if (c->value_len > REGION_INFO_BYTES_MAX) return RQ_E_CORRUPT;
    return rq_region_info_parse(rq_cell_value(c), s->arena, ret, NULL);
}

static rq_err take_region_info(meta_scan *s, const rq_cell *c, rq__meta_row *row, row_cells *seen)
{
    rq_err rc = parse_info(s, c, &row->info);
    if (rc == RQ_E_NO_MEMORY) return rc;
    seen->has_region = true;
    seen->bad_region = rc != RQ_OK || !is_region_of_meta(&row->info, rq_cell_row(c));
    return RQ_OK;
}

/* A column about a related region: if it is malformed, only the column is ignored. */
static rq_err take_relative(meta_scan *s, const rq_cell *c, rq__meta_row *row, rq_region_info *ret,
                            size_t *count)
{
    rq_err rc = parse_info(s, c, ret);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc != RQ_OK)
        row->odd = rq__meta_odd_relatives;
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

/* An unknown state (of a newer or older version) counts as closed: the region is opened when its
 * table is enabled. */
static rq_region_state parse_region_state(rq_slice text)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(state_names); i++)
        if (rq_slice_eq(text, rq_slice_cstr(state_names[i]))) return (rq_region_state)i;
    return RQ_REGION_CLOSED;
}

static rq_err take_cell(meta_scan *s, const rq_cell *c, rq__meta_row *row, row_cells *seen)
{
    rq_slice qualifier = rq_cell_qualifier(c);
    if (cell_is(c, "table", "state")) return take_table_state(s, c, row, seen);
    if (!rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("info"))) return RQ_OK;
    if (cell_is(c, "info", "regioninfo")) return take_region_info(s, c, row, seen);
    if (cell_is(c, "info", "splitA") || cell_is(c, "info", "splitB"))
        return row->daughter_count < 2 && c->value_len > 0
                   ? take_relative(s, c, row, &row->daughters[row->daughter_count],
                                   &row->daughter_count)
                   : RQ_OK;
    if (is_merge_column(qualifier)) return take_merged(s, c, row);
    if (cell_is(c, "info", "state")) {
        row->state = parse_region_state(rq_cell_value(c));
    } else if (cell_is(c, "info", "seqnumDuringOpen") && c->value_len == 8) {
        row->open_seqnum = (int64_t)rq_get_be64(c->value);
    } else {
        int replica = replica_of(qualifier);
        if (replica > row->last_replica) row->last_replica = replica;
    }
    return RQ_OK;
}

/* Decides whether the row is a region's or a table's: the row key of a region has commas, a table's name
 * has none. Cells of the other kind are ignored. A row without cells of its own kind is malformed. */
static void decide_kind(rq__meta_row *row, const row_cells *seen)
{
    rq_slice ns;
    bool is_name = rq_slice_eq(row->row, RQ_SLICE_LIT("hbase:meta")) || /* HBase writes one */
                   is_table_of_meta(row->row, &ns);
    row->is_table = seen->has_state && (is_name || !seen->has_region);
    if (row->is_table) {
        if (seen->has_region && row->odd == NULL) row->odd = bad_info;
        if (seen->bad_state)
            row->malformed = bad_state;
        else if (!is_name)
            row->malformed = "table name";
    } else {
        if (seen->has_state && row->odd == NULL) row->odd = bad_state;
        if (seen->bad_region) row->malformed = bad_info;
    }
}

static rq_err meta_scan_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    meta_scan *s = ctx;
    rq__meta_row row = {.state = RQ_REGION_OFFLINE, .open_seqnum = -1};
    row_cells seen = {0};
    if (!s->keeps_arena) rq_arena_reset(s->arena);
    for (size_t i = 0; i < count; i++) {
        const rq_cell *c = &cells[i];
        RQ_TRY(take_cell(s, c, &row, &seen));
    }
    row.row = rq_arena_copy(s->arena, rq_cell_row(&cells[0]));
    if (row.row.ptr == NULL) return RQ_E_NO_MEMORY;
    if (s->seen.ignored && row.odd == NULL) row.odd = "timestamp out of range";
    if (!seen.has_state && !seen.has_region) {
        if (!s->seen.ignored) return RQ_OK;
        row.malformed = "timestamp";
    } else {
        decide_kind(&row, &seen);
    }
    return s->callback(s->ctx, &row, why);
}

static rq_err scan_between(rq_region *meta, rq_slice start, rq_slice stop,
                           rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                           void *ctx, int64_t *ret_newest_ms, rq_error *why)
{
    rq_arena arena;
    rq_arena_init(&arena);
    meta_scan s = {.arena = &arena, .callback = callback, .ctx = ctx};
    rq_err rc = each_row_between(meta, start, stop, rq__meta_keep, &s.seen, meta_scan_row, &s, why);
    if (ret_newest_ms != NULL) *ret_newest_ms = s.seen.newest_ms;
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__meta_scan(rq_region *meta,
                     rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                     void *ctx, int64_t *ret_newest_ms, rq_error *why)
{
    const rq_slice none = {NULL, 0};
    return scan_between(meta, none, none, callback, ctx, ret_newest_ms, why);
}

/* HBASE: MetaTableAccessor.getTableStartRowForMeta, getTableStopRowForMeta: no table has a space in
 * its name. */
rq_err rq__meta_scan_table(rq_region *meta, rq_slice table,
                           rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                           void *ctx, rq_error *why)
{
    rq_arena a = {0};
    const char *name = (const char *)table.ptr;
    const char *start = rq_arena_printf(&a, "%.*s,,", (int)table.len, name);
    const char *stop = rq_arena_printf(&a, "%.*s ,,", (int)table.len, name);
    rq_err rc = start == NULL || stop == NULL
                    ? rq_no_memory(why)
                    : scan_between(meta, rq_slice_cstr(start), rq_slice_cstr(stop), callback, ctx,
                                   NULL, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__meta_row_read(const rq_cell *cells, size_t count, bool ignored, rq_arena *arena,
                         rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                         void *ctx, rq_error *why)
{
    meta_scan s = {.arena = arena,
                   .seen = {.ignored = ignored},
                   .keeps_arena = true,
                   .callback = callback,
                   .ctx = ctx};
    return meta_scan_row(&s, cells, count, why);
}
