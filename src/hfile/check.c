/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a file's contents match its metadata (check.h); used by `rorqual hfile check` and the
 * tests. */
#include "hfile/check.h"

#include "hfile/block_codec.h"
#include "hfile/encoding.h"
#include "hfile/qualifiers.h"
#include "hfile/reader_priv.h"

#include <inttypes.h>

/* Checks the block's structure too, if its kind is known (not the meta index). */
static rq_err load_any(rq_hfile_reader *r, rq_buf *scratch, uint64_t offset,
                       const rq__block_header *h, rq_error *why)
{
    rq_hfile_block *b;
    bool as_it_is = h->kind == RQ_BLOCK_ROOT_INDEX && offset != r->root.offset;
    rq_block_kind kind = h->kind == RQ_BLOCK_ENCODED_DATA ? RQ_BLOCK_DATA : h->kind;
    RQ_TRY(as_it_is ? rq__reader_load_raw(r, scratch, true, offset, h->on_disk_len, kind, &b, why)
                    : rq__reader_load(r, scratch, true, offset, h->on_disk_len, kind, &b, why));
    rq__hfile_block_unref(b);
    return RQ_OK;
}

rq_err rq_hfile_walk_blocks(rq_hfile_reader *r,
                            rq_err (*each)(void *arg, const rq_hfile_block_line *line), void *arg,
                            rq_error *why)
{
    rq_buf scratch = {0};
    rq_err rc = RQ_OK;
    for (uint64_t offset = 0; rc == RQ_OK && offset < r->data_end;) {
        uint8_t header[RQ_HFILE_HEADER_LEN];
        size_t got;
        rq__block_header h;
        rc = rq_file_read(r->file, header, sizeof(header), offset, &got, why);
        if (rc == RQ_OK && (got != sizeof(header) || r->data_end - offset < sizeof(header)))
            rc = rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %" PRIu64 ": no room for a header",
                         r->path, offset);
        if (rc == RQ_OK)
            rc = rq__block_header_parse(header, r->trailer.compression, r->path, offset, &h, why);
        if (rc == RQ_OK) rc = load_any(r, &scratch, offset, &h, why);
        if (rc != RQ_OK) break;
        rq_hfile_block_line line = {
            .offset = offset,
            .kind = h.kind,
            .on_disk_len = h.on_disk_len,
            .raw_len = h.raw_len,
            .prev_offset = h.prev_offset,
            .checksum_type = h.checksum_type,
            .bytes_per_checksum = h.bytes_per_checksum,
        };
        rc = each(arg, &line);
        offset += h.on_disk_len;
    }
    rq_buf_clear(&scratch);
    return rc;
}

/* --- the check -------------------------------------------------------------------------------- */

/* Reading the blocks is the first half of the progress, reading the cells the second. */
static void report_progress(const rq_hfile_watch *w, int half, uint64_t done, uint64_t total)
{
    if (w != NULL) w->step(w->arg, half == 0 ? done : total + done, 2 * total);
}

typedef struct block_pass {
    rq_hfile_reader *r;
    const rq_hfile_watch *watch;
    rq_error *why;
    rq_hfile_report *report;
    uint64_t prev_offset[RQ_BLOCK_KIND_COUNT];
    uint64_t first_data, last_data;
    uint64_t uncompressed_len;
} block_pass;

static rq_err check_block(void *arg, const rq_hfile_block_line *line)
{
    block_pass *p = arg;
    report_progress(p->watch, 0, line->offset, p->r->data_end);
    if (line->prev_offset != p->prev_offset[line->kind])
        return rq_fail(p->why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 " (%s): names offset %" PRId64
                       " as the block before it, which is at %" PRId64,
                       p->r->path, line->offset, rq_block_kind_name(line->kind),
                       (int64_t)line->prev_offset, (int64_t)p->prev_offset[line->kind]);
    p->prev_offset[line->kind] = line->offset;
    p->report->blocks[line->kind]++;
    if (line->kind == RQ_BLOCK_DATA || line->kind == RQ_BLOCK_ENCODED_DATA) {
        if (p->first_data == UINT64_MAX) p->first_data = line->offset;
        p->last_data = line->offset;
    }
    /* HBase's total does not include the data index above its leaves. */
    if (line->kind != RQ_BLOCK_INTERMEDIATE_INDEX && line->offset != p->r->root.offset)
        p->uncompressed_len += line->raw_len + (uint64_t)RQ_HFILE_HEADER_LEN;
    return RQ_OK;
}

static rq_err differs(const rq_hfile_reader *r, const char *what, int64_t stated, int64_t found,
                      rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s: %s: the file says %" PRId64 ", it is %" PRId64, r->path,
                   what, stated, found);
}

static rq_err check_blocks(rq_hfile_reader *r, const rq_hfile_watch *watch, rq_hfile_report *report,
                           rq_error *why)
{
    block_pass p = {.r = r,
                    .watch = watch,
                    .why = why,
                    .report = report,
                    .first_data = UINT64_MAX,
                    .last_data = UINT64_MAX};
    const rq__trailer *t = &r->trailer;
    for (int i = 0; i < RQ_BLOCK_KIND_COUNT; i++)
        p.prev_offset[i] = UINT64_MAX;
    RQ_TRY(rq_hfile_walk_blocks(r, check_block, &p, why));
    /* In a file without data it is 0 or -1, depending on the version. */
    if (p.first_data != UINT64_MAX) {
        if (t->first_data_offset != p.first_data)
            return differs(r, "offset of the first data block", (int64_t)t->first_data_offset,
                           (int64_t)p.first_data, why);
        if (t->last_data_offset != p.last_data)
            return differs(r, "offset of the last data block", (int64_t)t->last_data_offset,
                           (int64_t)p.last_data, why);
    }
    uint64_t total = p.uncompressed_len + rq__trailer_len(t->major);
    if (t->total_uncompressed_len != total)
        return differs(r, "total uncompressed bytes", (int64_t)t->total_uncompressed_len,
                       (int64_t)total, why);
    return RQ_OK;
}

typedef struct cell_pass {
    rq_hfile_reader *r;
    const rq_hfile_watch *watch;
    rq_error *why;
    rq_hfile_report *report;
    rq_read_ctx ctx;
    rq_hfile_scanner scanner;
    rq_buf last; /* key of the cell before, serialized */
    uint64_t last_seqid;
    uint64_t data_blocks;
    uint64_t delete_families;
    uint64_t max_seqid;
    int64_t min_ts, max_ts;
} cell_pass;

static rq_err bad_place(const cell_pass *p, const char *text)
{
    const rq_hfile_block *b = p->scanner.block;
    return rq_fail(p->why, RQ_E_CORRUPT, "%s: block at offset %" PRIu64 " (DATA), byte %u: %s",
                   p->r->path, b->offset, p->scanner.pos, text);
}

/* At a new block: its index key must be behind the previous cell, and at or before its first cell
 * unless the two cells have the same key. */
static rq_err check_index_key(cell_pass *p, const rq_cell *cell, const rq_cell *last)
{
    uint32_t at = p->scanner.path[p->r->info.data_index_levels - 1];
    rq_slice key = rq__index_at(rq__index_view_of(p->scanner.leaf->payload), at).key;
    rq_cell index_key;
    RQ_TRY(rq_cell_parse_stored_key(key, &index_key, p->why));
    p->data_blocks++;
    bool is_parted = last != NULL && rq_cell_compare_key(p->r->info.order, last, cell) == 0;
    if (!is_parted && rq_cell_compare_key(p->r->info.order, &index_key, cell) > 0)
        return bad_place(p, "the index key is behind the block's first cell");
    if (last != NULL && rq_cell_compare_key(p->r->info.order, last, &index_key) >= 0)
        return bad_place(p, "the index key is not behind the block before");
    return RQ_OK;
}

static rq_err check_blooms(cell_pass *p, const rq_cell *cell, bool new_row)
{
    bool may = true;
    rq_slice row = rq_cell_row(cell);
    if (p->r->info.bloom == RQ_BLOOM_ROWCOL)
        RQ_TRY(
            rq_hfile_may_contain_column(p->r, &p->ctx, row, rq_cell_qualifier(cell), &may, p->why));
    else if (new_row)
        RQ_TRY(rq_hfile_may_contain_row(p->r, &p->ctx, row, &may, p->why));
    if (!may) return bad_place(p, "the bloom filter does not know the cell");
    if (cell->type == RQ_TYPE_DELETE_FAMILY || cell->type == RQ_TYPE_DELETE_FAMILY_VERSION)
        RQ_TRY(rq__hfile_may_contain_delete_family(p->r, &p->ctx, row, &may, p->why));
    return may ? RQ_OK : bad_place(p, "the delete family bloom does not know the cell");
}

static rq_err check_cell(cell_pass *p, bool new_block)
{
    const rq_cell *cell = rq_hfile_scanner_cell(&p->scanner);
    rq_cell last;
    bool has_last = p->last.len > 0;
    if (has_last) {
        RQ_TRY(rq_cell_parse_stored_key(rq_buf_slice(&p->last), &last, p->why));
        last.seqid = p->last_seqid;
        if (rq_cell_compare_key(p->r->info.order, &last, cell) > 0)
            return bad_place(p, "the cell sorts before the one before it");
    }
    if (new_block) RQ_TRY(check_index_key(p, cell, has_last ? &last : NULL));
    bool new_row = !has_last || !rq_cell_same_row(cell, &last);
    RQ_TRY(check_blooms(p, cell, new_row));
    p->report->cells++;
    p->report->rows += new_row;
    p->report->key_bytes += rq_cell_key_len(cell);
    p->report->value_bytes += cell->value_len;
    p->report->tombstones += rq_cell_is_delete(cell);
    if (p->r->info.lists_qualifiers && cell->type == RQ_TYPE_PUT &&
        !rq__qualifiers_has(p->r->info.qualifiers, rq_cell_qualifier(cell)))
        return rq_fail(p->why, RQ_E_CORRUPT, "%s: RORQUAL_QUALIFIERS lacks a cell's qualifier",
                       p->r->path);
    p->delete_families +=
        cell->type == RQ_TYPE_DELETE_FAMILY || cell->type == RQ_TYPE_DELETE_FAMILY_VERSION;
    if (cell->seqid > p->max_seqid) p->max_seqid = cell->seqid;
    if (cell->timestamp < p->min_ts) p->min_ts = cell->timestamp;
    if (cell->timestamp > p->max_ts) p->max_ts = cell->timestamp;
    rq_buf_reset(&p->last);
    RQ_TRY(rq_buf_reserve(&p->last, rq_cell_key_len(cell)));
    rq_cell_serialize_key(cell, p->last.ptr);
    p->last.len = rq_cell_key_len(cell);
    p->last_seqid = cell->seqid;
    return RQ_OK;
}

static rq_err check_totals(const cell_pass *p)
{
    const rq_hfile_reader *r = p->r;
    const rq_hfile_info *info = &r->info;
    uint64_t data_blocks =
        p->report->blocks[RQ_BLOCK_DATA] + p->report->blocks[RQ_BLOCK_ENCODED_DATA];
    if (info->entry_count != p->report->cells)
        return differs(r, "cells", (int64_t)info->entry_count, (int64_t)p->report->cells, p->why);
    if (p->data_blocks != data_blocks)
        return differs(r, "data blocks in the index", (int64_t)p->data_blocks, (int64_t)data_blocks,
                       p->why);
    if (r->counts_delete_families && info->delete_family_count != p->delete_families)
        return differs(r, "DELETE_FAMILY_COUNT", (int64_t)info->delete_family_count,
                       (int64_t)p->delete_families, p->why);
    if (info->has_mvcc && info->max_memstore_ts != p->max_seqid)
        return differs(r, "MAX_MEMSTORE_TS_KEY", (int64_t)info->max_memstore_ts,
                       (int64_t)p->max_seqid, p->why);
    if (p->report->cells == 0) return RQ_OK;
    if (info->has_time_range && info->min_ts > p->min_ts)
        return differs(r, "TIMERANGE's begin", info->min_ts, p->min_ts, p->why);
    if (info->has_time_range && info->max_ts != p->max_ts)
        return differs(r, "TIMERANGE's end", info->max_ts, p->max_ts, p->why);
    if (!rq_slice_eq(info->last_key, rq_buf_slice(&p->last)))
        return rq_fail(p->why, RQ_E_CORRUPT, "%s: hfile.LASTKEY is not the last cell's key",
                       r->path);
    return RQ_OK;
}

static rq_err check_cells(cell_pass *p)
{
    const rq_hfile_block *block = NULL;
    rq_err rc = rq_hfile_scanner_seek_first(&p->scanner, &p->ctx, p->why);
    while (rc == RQ_OK) {
        RQ_TRY(check_cell(p, p->scanner.block != block || p->scanner.pos == 0));
        if (block != p->scanner.block)
            report_progress(p->watch, 1, p->report->cells, p->r->info.entry_count);
        block = p->scanner.block;
        rc = rq_hfile_scanner_next(&p->scanner, &p->ctx, p->why);
    }
    return rc == RQ_E_END ? check_totals(p) : rc;
}

rq_err rq_hfile_check(rq_hfile_reader *r, rq_hfile_report *ret, rq_error *why)
{
    return rq_hfile_check_watched(r, NULL, ret, why);
}

rq_err rq_hfile_check_watched(rq_hfile_reader *r, const rq_hfile_watch *watch, rq_hfile_report *ret,
                              rq_error *why)
{
    rq_hfile_report report = {0};
    RQ_TRY(check_blocks(r, watch, &report, why));
    cell_pass p = {
        .r = r,
        .watch = watch,
        .why = why,
        .report = &report,
        .ctx = {.may_block = true, .dont_cache = true},
        .min_ts = INT64_MAX,
        .max_ts = INT64_MIN,
    };
    rq_hfile_scanner_init(&p.scanner, r);
    rq_err rc = check_cells(&p);
    rq_hfile_scanner_clear(&p.scanner);
    rq_read_ctx_clear(&p.ctx);
    rq_buf_clear(&p.last);
    if (rc == RQ_OK) *ret = report;
    return rc;
}
