/* SPDX-License-Identifier: Apache-2.0 */
/* The HFile writer, used by flushes and compactions.
 *
 * Cells are collected in `block`, or delta-encoded in `encoded`, until the block is full. Then the block is
 * compressed, sealed and appended to `out`, its index entry is made, and finished chunks of index and blooms
 * are appended ("inline" blocks). `out` is written to the file in large pieces. The sections behind the data are
 * written at the end (writer_end.c, writer_info.c).
 *
 * Invariants:
 * 1. A block ends between two different keys: cells that differ only in their sequence id share a
 *    block, as in HBase. There may be any number of them (markers of one column and time), so a block
 *    that has reached SAME_KEY_BLOCKS times the block size ends in any case; then the index key of the
 *    next block is the first possible key behind these cells (rq__index_key_behind).
 * 2. The file's bytes depend on the cells and options alone; HBase 2.6 writes the same bytes for
 *    the same input (except for the seal in the trailer's padding).
 * 3. After an error the writer can only be closed. HBASE: HFileWriterImpl, StoreFileWriter. */
#include "hfile/writer_priv.h"

#include "hfile/block_codec.h"
#include "hfile/delta.h"
#include "hfile/encoding.h"

#include <stdlib.h>

#define OUT_BYTES (1u << 20) /* written to the file when this many bytes are collected */
#define SAME_KEY_BLOCKS 10   /* sizes of a block that cells with the same key may take */

rq_hfile_options rq_hfile_options_default(void)
{
    return (rq_hfile_options){
        .compression = RQ_COMPRESSION_NONE,
        .encoding = RQ_ENCODING_NONE,
        .compress_tags = true,
        .block_bytes = 64 * 1024,
        .bloom = RQ_BLOOM_ROW,
        .bloom_error_rate = 0.01,
        .bloom_chunk_bytes = 128 * 1024,
        .index_chunk_bytes = 128 * 1024,
        .index_entries_min = 16,
        .checksum = RQ_CHECKSUM_CRC32C,
        .bytes_per_checksum = 16 * 1024,
        .order = RQ_ORDER_DEFAULT,
        .include_mvcc = true,
        .include_tags = true,
    };
}

static rq_err check_options(const rq_hfile_options *o, rq_error *why)
{
    if (rq__encoding_name(o->encoding) == NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot write data block encoding %d", o->encoding);
    RQ_TRY(rq_compression_check(o->compression, why));
    if (o->block_bytes == 0 || o->block_bytes > RQ_HFILE_BLOCK_LEN_MAX / 2 ||
        o->bytes_per_checksum < RQ_HFILE_HEADER_LEN || o->bytes_per_checksum > INT32_MAX ||
        o->checksum > RQ_CHECKSUM_CRC32C || o->index_chunk_bytes == 0 ||
        o->index_chunk_bytes > RQ_HFILE_BLOCK_LEN_MAX / 2 || o->index_entries_min < 2 ||
        o->bloom_chunk_bytes == 0 || o->bloom_chunk_bytes > (1u << 27) ||
        !(o->bloom_error_rate > 0 && o->bloom_error_rate < 1) ||
        (o->bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH && o->bloom_prefix_len == 0))
        return rq_fail(why, RQ_E_INVALID, "HFile options are out of range");
    return RQ_OK;
}

rq_err rq_hfile_writer_open(rq_vfs *vfs, const char *path, const rq_hfile_options *o,
                            rq_hfile_writer **ret, rq_error *why)
{
    RQ_TRY(check_options(o, why));
    rq_hfile_writer *w = calloc(1, sizeof(*w));
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->vfs = vfs;
    w->options = *o;
    w->index_levels = 1;
    w->min_ts = INT64_MAX;
    w->max_ts = -1;
    w->earliest_put_ts = INT64_MAX;
    w->first_data_offset = w->last_data_offset = UINT64_MAX;
    for (int i = 0; i < RQ_BLOCK_KIND_COUNT; i++)
        w->prev_offset[i] = UINT64_MAX;
    float error_rate = (float)o->bloom_error_rate;
    rq__bloom_writer_init(&w->delete_bloom, false, o->bloom_chunk_bytes, error_rate);
    /* A lookup in a ROWCOL bloom takes two lookups. HBASE: BloomFilterFactory. */
    if (o->bloom == RQ_BLOOM_ROWCOL)
        error_rate = (float)(1 - __builtin_sqrt((double)(1 - error_rate)));
    rq__bloom_writer_init(&w->bloom, o->bloom == RQ_BLOOM_ROWCOL, o->bloom_chunk_bytes, error_rate);
    rq_err rc = RQ_E_NO_MEMORY;
    w->path = strdup(path);
    if (w->path != NULL)
        rc = rq__compression_codec(o->compression, o->compression_level, o->zstd_bare, &w->codec);
    if (rc == RQ_OK) rc = rq_buf_reserve(&w->out, OUT_BYTES + o->block_bytes);
    rq_buf *cells = rq__encoding_is_delta(o->encoding) ? &w->encoded : &w->block;
    if (rc == RQ_OK) rc = rq_buf_reserve(cells, o->block_bytes);
    if (rc == RQ_OK)
        rc = rq_vfs_open(vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &w->file, why);
    if (rc != RQ_OK) {
        rq_hfile_writer_close(w); /* no file yet: nothing is removed */
        return rc;
    }
    *ret = w;
    return RQ_OK;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static uint64_t position(const rq_hfile_writer *w)
{
    return w->out_offset + w->out.len;
}

rq_err rq__writer_flush_out(rq_hfile_writer *w, rq_error *why)
{
    if (w->out.len == 0) return RQ_OK;
    RQ_TRY(rq_file_write(w->file, w->out.ptr, w->out.len, w->out_offset, why));
    w->out_offset += w->out.len;
    rq_buf_reset(&w->out);
    return RQ_OK;
}

rq_err rq__writer_put_block(rq_hfile_writer *w, rq_block_kind kind, rq_slice payload,
                            uint64_t *ret_offset, uint32_t *ret_size, rq_error *why)
{
    if (w->out.len >= OUT_BYTES) RQ_TRY(rq__writer_flush_out(w, why));
    if (payload.len > RQ_HFILE_BLOCK_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "%s: a block of %zu bytes is too large", w->path,
                       payload.len);
    uint64_t offset = position(w);
    size_t start = w->out.len;
    RQ_TRY(rq_buf_reserve(&w->out, RQ_HFILE_HEADER_LEN + payload.len));
    w->out.len += RQ_HFILE_HEADER_LEN;
    RQ_TRY(rq_codec_compress(w->codec, payload, &w->out));
    RQ_TRY(rq__block_seal(&w->out, start, kind, (uint32_t)payload.len, w->prev_offset[kind],
                          w->options.checksum, w->options.bytes_per_checksum));
    w->prev_offset[kind] = offset;
    /* HBase's total does not include the data index above its leaves. */
    if (kind != RQ_BLOCK_INTERMEDIATE_INDEX)
        w->uncompressed_len += payload.len + RQ_HFILE_HEADER_LEN;
    *ret_offset = offset;
    *ret_size = (uint32_t)(w->out.len - start);
    return RQ_OK;
}

static rq_err put_leaf(rq_hfile_writer *w, rq_error *why)
{
    rq_buf payload = {0};
    uint64_t offset;
    uint32_t size;
    rq_err rc = rq__index_chunk_write(&w->leaf, &payload);
    if (rc == RQ_OK)
        rc = rq__writer_put_block(w, RQ_BLOCK_LEAF_INDEX, rq_buf_slice(&payload), &offset, &size,
                                  why);
    if (rc == RQ_OK) {
        w->index_levels = 2;
        w->index_len += payload.len;
        rc = rq__index_chunk_add(&w->root, rq__index_chunk_at(&w->leaf, 0).key, offset, size,
                                 w->index_entries);
        rq__index_chunk_reset(&w->leaf);
    }
    rq_buf_clear(&payload);
    return rc;
}

static rq_err put_bloom_chunks(rq_hfile_writer *w, rq__bloom_writer *bloom, bool closing,
                               rq_error *why)
{
    for (;;) {
        bool ready;
        rq_slice bits;
        RQ_TRY(rq__bloom_writer_ready(bloom, closing, &ready, &bits));
        if (!ready) return RQ_OK;
        uint64_t offset;
        uint32_t size;
        RQ_TRY(rq__writer_put_block(w, RQ_BLOCK_BLOOM_CHUNK, bits, &offset, &size, why));
        RQ_TRY(rq__bloom_writer_written(bloom, offset, size));
    }
}

rq_err rq__writer_put_inline_blocks(rq_hfile_writer *w, bool closing, rq_error *why)
{
    if (w->leaf.count > 0 &&
        (closing ? w->root.count > 0
                 : rq__index_chunk_len(&w->leaf) >= w->options.index_chunk_bytes))
        RQ_TRY(put_leaf(w, why));
    RQ_TRY(put_bloom_chunks(w, &w->bloom, closing, why));
    return put_bloom_chunks(w, &w->delete_bloom, closing, why);
}

/* Sets the buffer to the cell's key. REQUIRES: the cell does not point into the buffer. */
static rq_err set_to_key(rq_buf *b, const rq_cell *cell)
{
    size_t len = rq_cell_key_len(cell);
    rq_buf_reset(b);
    RQ_TRY(rq_buf_reserve(b, len));
    rq_cell_serialize_key(cell, b->ptr);
    b->len = len;
    return RQ_OK;
}

rq_err rq__writer_put_data_block(rq_hfile_writer *w, rq_error *why)
{
    if (w->block_len == 0) return RQ_OK;
    rq_cell first;
    rq_cell prev;
    RQ_TRY(rq_cell_parse_stored_key(rq_buf_slice(&w->block_first), &first, why));
    if (w->has_prev) RQ_TRY(rq_cell_parse_stored_key(rq_buf_slice(&w->prev_key), &prev, why));
    if (w->has_prev && rq_cell_compare_key(w->options.order, &prev, &first) == 0)
        RQ_TRY(rq__index_key_behind(&first, &w->key));
    else
        RQ_TRY(
            rq__index_key_between(w->options.order, w->has_prev ? &prev : NULL, &first, &w->key));
    uint64_t offset;
    uint32_t size;
    if (w->options.encoding == RQ_ENCODING_NONE) {
        RQ_TRY(
            rq__writer_put_block(w, RQ_BLOCK_DATA, rq_buf_slice(&w->block), &offset, &size, why));
    } else {
        if (rq__encoding_is_delta(w->options.encoding))
            rq_put_be32(w->encoded.ptr + 2, (uint32_t)w->block_len);
        else
            RQ_TRY(rq__encoding_put_row_index(rq_buf_slice(&w->block), rq_buf_slice(&w->rows),
                                              &w->encoded));
        RQ_TRY(rq__writer_put_block(w, RQ_BLOCK_ENCODED_DATA, rq_buf_slice(&w->encoded), &offset,
                                    &size, why));
        rq_buf_reset(&w->rows);
        rq_buf_reset(&w->encoded);
    }
    if (w->first_data_offset == UINT64_MAX) w->first_data_offset = offset;
    w->last_data_offset = offset;
    w->index_entries++;
    RQ_TRY(rq__index_chunk_add(&w->leaf, rq_buf_slice(&w->key), offset, size, 0));
    RQ_TRY(set_to_key(&w->prev_key, &w->last));
    w->has_prev = true;
    rq_buf_reset(&w->block);
    w->block_len = 0;
    return rq_cell_parse_stored_key(rq_buf_slice(&w->prev_key), &w->last, why);
}

/* --- cells ----------------------------------------------------------------------------------- */

rq_slice rq__writer_row_prefix(const rq_hfile_writer *w, const rq_cell *cell)
{
    rq_slice row = rq_cell_row(cell);
    if (row.len > w->options.bloom_prefix_len) row.len = w->options.bloom_prefix_len;
    return row;
}

rq_err rq__writer_rowcol_key(rq_hfile_writer *w, const rq_cell *cell)
{
    rq_cell key =
        rq_cell_first_on_column(rq_cell_row(cell), (rq_slice){0}, rq_cell_qualifier(cell));
    return set_to_key(&w->key, &key);
}

/* A cell compared with the last one. */
typedef struct comparison {
    rq__delta_shared shared; /* same_row included */
    bool same_column;        /* and the same row */
    bool same_key;           /* only the sequence ids may differ */
} comparison;

static rq_err add_to_blooms(rq_hfile_writer *w, const rq_cell *cell, const comparison *to_last)
{
    rq_slice row = rq_cell_row(cell);
    if (w->options.bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH) {
        rq_slice prefix = rq__writer_row_prefix(w, cell);
        if (!w->has_last || !rq_slice_eq(prefix, rq__writer_row_prefix(w, &w->last)))
            RQ_TRY(rq__bloom_writer_add(&w->bloom, prefix, prefix));
    }
    if (w->options.bloom == RQ_BLOOM_ROW) {
        if (!to_last->shared.same_row) RQ_TRY(rq__bloom_writer_add(&w->bloom, row, row));
    } else if (w->options.bloom == RQ_BLOOM_ROWCOL) {
        if (!to_last->same_column) {
            RQ_TRY(rq__writer_rowcol_key(w, cell));
            RQ_TRY(rq__bloom_writer_add(&w->bloom, rq_buf_slice(&w->key), rq_buf_slice(&w->key)));
        }
    }
    if (cell->type != RQ_TYPE_DELETE_FAMILY && cell->type != RQ_TYPE_DELETE_FAMILY_VERSION)
        return RQ_OK;
    w->delete_family_count++;
    /* A ROWCOL bloom has family deletes as keys without a qualifier. HBASE: StoreFileWriter. */
    if (w->options.bloom == RQ_BLOOM_ROWCOL ||
        (w->has_delete_row && rq_slice_eq(row, rq_buf_slice(&w->delete_row))))
        return RQ_OK;
    rq_buf_reset(&w->delete_row);
    RQ_TRY(rq_buf_append(&w->delete_row, row.ptr, row.len));
    w->has_delete_row = true;
    return rq__bloom_writer_add(&w->delete_bloom, row, row);
}

static size_t cell_len(const rq_hfile_writer *w, const rq_cell *cell)
{
    size_t len = 8 + rq_cell_key_len(cell) + cell->value_len;
    if (w->options.include_tags) len += 2 + (size_t)cell->tags_len;
    if (w->options.include_mvcc) len += rq_vlong_len((int64_t)cell->seqid);
    return len;
}

static rq_err put_difference(rq_hfile_writer *w, const rq_cell *cell, const comparison *to_last)
{
    bool first = w->block_len == 0;
    rq__delta_shape shape = {w->options.encoding, w->options.include_tags, w->options.include_mvcc};
    if (first) {
        RQ_TRY(rq_buf_append_be16(&w->encoded, (uint16_t)shape.encoding));
        RQ_TRY(rq_buf_append_be32(&w->encoded, 0)); /* rq__writer_put_data_block fills it in */
        rq__tag_dictionary_reset(&w->tags);
    }
    return rq__delta_encode(shape, cell, first ? NULL : &w->last, to_last->shared,
                            w->options.compress_tags ? &w->tags : NULL, &w->encoded);
}

/* Makes the cell the last one. The prefixes that it shares with the previous cell are in last_bytes already. */
static rq_err keep_last(rq_hfile_writer *w, const rq_cell *cell, const comparison *to_last)
{
    bool needs_value = w->options.encoding == RQ_ENCODING_FAST_DIFF;
    size_t name_len = (size_t)cell->row_len + cell->family_len + cell->qualifier_len;
    RQ_TRY(rq_buf_reserve(&w->last_bytes, name_len + (needs_value ? cell->value_len : 0)));
    uint8_t *row = w->last_bytes.ptr;
    uint8_t *family = row + cell->row_len;
    uint8_t *qualifier = family + cell->family_len;
    size_t kept = to_last->shared.same_row ? to_last->shared.qualifier : 0;
    if (!to_last->shared.same_row) {
        rq_short_copy(row + to_last->shared.row, cell->row + to_last->shared.row,
                      cell->row_len - to_last->shared.row);
        rq_short_copy(family, cell->family, cell->family_len);
    }
    rq_short_copy(qualifier + kept, cell->qualifier + kept, cell->qualifier_len - kept);
    if (needs_value) rq_short_copy(qualifier + cell->qualifier_len, cell->value, cell->value_len);
    w->last = *cell;
    w->last.row = row;
    w->last.family = family;
    w->last.qualifier = qualifier;
    w->last.value = needs_value ? qualifier + cell->qualifier_len : NULL;
    return RQ_OK;
}

/* `len`: cell_len of the cell. */
static rq_err put_plain(rq_hfile_writer *w, const rq_cell *cell, const comparison *to_last,
                        size_t len)
{
    if (w->options.encoding == RQ_ENCODING_ROW_INDEX_V1 &&
        (w->block_len == 0 || !to_last->shared.same_row))
        RQ_TRY(rq_buf_append_be32(&w->rows, (uint32_t)w->block.len));
    RQ_TRY(rq_buf_reserve(&w->block, len));
    uint8_t *begin = w->block.ptr + w->block.len;
    rq_cell_serialize(cell, false, begin);
    uint8_t *p = begin + rq_cell_serialized_len(cell, false);
    if (w->options.include_tags) {
        rq_put_be16(p, cell->tags_len);
        rq_short_copy(p + 2, cell->tags, cell->tags_len);
        p += 2 + (size_t)cell->tags_len;
    }
    if (w->options.include_mvcc) (void)rq_put_vlong(p, (int64_t)cell->seqid);
    w->block.len += len;
    w->last = *cell;
    w->last.row = begin + 8 + 2;
    w->last.family = w->last.row + cell->row_len + 1;
    w->last.qualifier = w->last.family + cell->family_len;
    w->last.value = begin + 8 + rq_cell_key_len(cell);
    return RQ_OK;
}

static rq_err put_cell(rq_hfile_writer *w, const rq_cell *cell, const comparison *to_last,
                       size_t len)
{
    if (w->block_len == 0) RQ_TRY(set_to_key(&w->block_first, cell));
    if (rq__encoding_is_delta(w->options.encoding)) {
        RQ_TRY(put_difference(w, cell, to_last));
        RQ_TRY(keep_last(w, cell, to_last));
    } else {
        RQ_TRY(put_plain(w, cell, to_last, len));
    }
    w->block_len += len;
    w->has_last = true;
    return RQ_OK;
}

/* `is_listed`: the previous cell is a put of the same column, so its qualifier was added. */
static rq_err count_cell(rq_hfile_writer *w, const rq_cell *cell, bool is_listed)
{
    size_t key_len = rq_cell_key_len(cell);
    w->entry_count++;
    w->key_len_sum += key_len;
    w->value_len_sum += cell->value_len;
    if (cell->seqid > w->max_seqid) w->max_seqid = cell->seqid;
    if (cell->tags_len > w->max_tags_len) w->max_tags_len = cell->tags_len;
    if (cell->type == RQ_TYPE_PUT) {
        if (cell->timestamp < w->earliest_put_ts) w->earliest_put_ts = cell->timestamp;
        if (w->options.list_qualifiers && !is_listed)
            rq__qualifiers_add(&w->qualifiers, rq_cell_qualifier(cell));
    }
    if (cell->timestamp < w->min_ts) w->min_ts = cell->timestamp;
    if (cell->timestamp > w->max_ts) w->max_ts = cell->timestamp;
    /* These markers apply to all older cells. HBASE: TimeRangeTracker.includeTimestamp. */
    if ((cell->type == RQ_TYPE_DELETE_COLUMN || cell->type == RQ_TYPE_DELETE_FAMILY) &&
        w->min_ts > 0)
        w->min_ts = 0;
    uint64_t len = rq_cell_serialized_len(cell, true) + 4;
    if (len > w->biggest_len) {
        w->biggest_len = len;
        RQ_TRY(set_to_key(&w->biggest_key, cell));
    }
    return w->entry_count == 1 ? set_to_key(&w->first_key, cell) : RQ_OK;
}

/* Compares two strings; `equal`: length of their common prefix. */
static int compare_from(rq_slice a, rq_slice b, size_t equal)
{
    if (equal < a.len && equal < b.len) return a.ptr[equal] < b.ptr[equal] ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
}

/* rq_cell_compare_key with the last cell, given the lengths of the common prefixes. */
static int compare_to_last(const rq_hfile_writer *w, const rq_cell *cell, rq__delta_shared shared,
                           bool same_family)
{
    const rq_cell *last = &w->last;
    if (!shared.same_row)
        return w->options.order == RQ_ORDER_DEFAULT
                   ? compare_from(rq_cell_row(cell), rq_cell_row(last), shared.row)
                   : rq_row_compare(w->options.order, rq_cell_row(cell), rq_cell_row(last));
    if (!same_family || cell->type == RQ_TYPE_MINIMUM || last->type == RQ_TYPE_MINIMUM)
        return rq_cell_compare_key(w->options.order, cell, last);
    int c = compare_from(rq_cell_qualifier(cell), rq_cell_qualifier(last), shared.qualifier);
    if (c != 0) return c;
    if (cell->timestamp != last->timestamp) return cell->timestamp > last->timestamp ? -1 : 1;
    return (int)last->type - (int)cell->type;
}

static rq_err out_of_order(const rq_hfile_writer *w, const rq_cell *cell, rq_error *why)
{
    char row[96];
    char last_row[96];
    rq_bytes_to_string(rq_cell_row(cell), row, sizeof(row));
    rq_bytes_to_string(rq_cell_row(&w->last), last_row, sizeof(last_row));
    return rq_fail(why, RQ_E_INVALID, "%s: cell out of order: row '%s' was added after row '%s'",
                   w->path, row, last_row);
}

static rq_err check_cell(const rq_hfile_writer *w, const rq_cell *cell, comparison *ret,
                         rq_error *why)
{
    if (cell->row_len > RQ_ROW_LEN_MAX || cell->family_len > RQ_FAMILY_LEN_MAX ||
        cell->value_len > INT32_MAX || rq_cell_key_len(cell) > INT32_MAX ||
        cell->seqid > INT64_MAX || rq_cell_serialized_len(cell, true) > RQ_HFILE_BLOCK_LEN_MAX / 2)
        return rq_fail(why, RQ_E_INVALID, "%s: a cell's length is out of range", w->path);
    *ret = (comparison){0};
    if (!w->has_last) return RQ_OK;
    const rq_cell *last = &w->last;
    bool same_family = rq_short_eq(cell->family, cell->family_len, last->family, last->family_len);
    /* The differences leave the family out. */
    if (rq__encoding_is_delta(w->options.encoding) && !same_family)
        return rq_fail(why, RQ_E_INVALID, "%s: an encoded file cannot have cells of two families",
                       w->path);
    rq__delta_shared shared = rq__delta_shared_of(cell, last);
    int c = compare_to_last(w, cell, shared, same_family);
    if (c < 0) return out_of_order(w, cell, why);
    *ret = (comparison){
        .shared = shared,
        .same_column = shared.same_row && same_family && shared.qualifier == cell->qualifier_len &&
                       cell->qualifier_len == last->qualifier_len,
        .same_key = c == 0,
    };
    return RQ_OK;
}

static size_t encoded_cells_len(const rq_hfile_writer *w)
{
    return w->encoded.len == 0 ? 0 : w->encoded.len - RQ__DELTA_HEADER_LEN;
}

/* With packed tags no longer than a reader unpacks, whatever the tags are. */
static size_t block_bytes_max(const rq_hfile_writer *w)
{
    bool packs_tags = w->options.compress_tags && w->options.encoding != RQ_ENCODING_NONE;
    return packs_tags ? RQ__DELTA_UNPACKED_FREE / 2 : RQ_HFILE_BLOCK_LEN_MAX / 2;
}

/* Whether the cell begins a block. A cell of a block's size or more has one of its own: the cache
 * may have no place for such a block, and the small cells before it would be read with it. */
static bool begins_block(const rq_hfile_writer *w, const rq_cell *cell)
{
    return w->block_len + w->rows.len >= w->options.block_bytes ||
           w->block_len >= block_bytes_max(w) || encoded_cells_len(w) >= w->options.block_bytes ||
           (w->block_len > 0 && cell->value_len >= w->options.block_bytes);
}

/* Whether a cell with the key of the last one begins a block. */
static bool parts_key(const rq_hfile_writer *w, const rq_cell *cell)
{
    size_t max = (size_t)SAME_KEY_BLOCKS * w->options.block_bytes;
    if (max > block_bytes_max(w)) max = block_bytes_max(w);
    return w->block_len + w->rows.len >= max && rq__index_key_has_next(cell);
}

static rq_err append(rq_hfile_writer *w, const rq_cell *cell, rq_error *why)
{
    comparison to_last;
    RQ_TRY(check_cell(w, cell, &to_last, why));
    RQ_TRY(add_to_blooms(w, cell, &to_last));
    if (to_last.same_key ? parts_key(w, cell) : begins_block(w, cell)) {
        RQ_TRY(rq__writer_put_data_block(w, why));
        RQ_TRY(rq__writer_put_inline_blocks(w, false, why));
    }
    size_t len = cell_len(w, cell);
    if (w->block_len + len > RQ_HFILE_BLOCK_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "%s: too many cells with the same key", w->path);
    bool is_listed = to_last.same_column && w->last.type == RQ_TYPE_PUT;
    RQ_TRY(put_cell(w, cell, &to_last, len));
    return count_cell(w, cell, is_listed);
}

rq_err rq_hfile_writer_append(rq_hfile_writer *w, const rq_cell *cell, rq_error *why)
{
    RQ_ASSERT(w->failed == RQ_OK && !w->finished);
    w->failed = append(w, cell, why);
    return w->failed;
}

/* --- what it is so far, and its close --------------------------------------------------------- */

uint64_t rq_hfile_writer_bytes(const rq_hfile_writer *w)
{
    return position(w) + (w->encoded.len > 0 ? w->encoded.len : w->block_len);
}

uint64_t rq_hfile_writer_entry_count(const rq_hfile_writer *w)
{
    return w->entry_count;
}

void rq_hfile_writer_close(rq_hfile_writer *w)
{
    if (w == NULL) return;
    bool created = w->file != NULL || w->out_offset > 0;
    (void)rq_file_close(w->file);
    /* Best effort: a file that stays is unreferenced, and the store's clean-up finds it. */
    if (created && !w->finished && rq_vfs_remove(w->vfs, w->path, NULL) != RQ_OK)
        w->failed = RQ_E_IO;
    rq_codec_free(w->codec);
    rq_buf_clear(&w->out);
    rq_buf_clear(&w->block);
    rq_buf_clear(&w->rows);
    rq_buf_clear(&w->encoded);
    rq__tag_dictionary_clear(&w->tags);
    rq_buf_clear(&w->block_first);
    rq_buf_clear(&w->last_bytes);
    rq_buf_clear(&w->prev_key);
    rq_buf_clear(&w->delete_row);
    rq_buf_clear(&w->key);
    rq_buf_clear(&w->biggest_key);
    rq_buf_clear(&w->first_key);
    rq_buf_clear(&w->last_key);
    rq__index_chunk_clear(&w->leaf);
    rq__index_chunk_clear(&w->root);
    rq__bloom_writer_clear(&w->bloom);
    rq__bloom_writer_clear(&w->delete_bloom);
    rq__file_info_clear(&w->info);
    free(w->path);
    free(w);
}
