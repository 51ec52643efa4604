/* SPDX-License-Identifier: Apache-2.0 */
/* An open HFile: its trailer and load-on-open section, and how blocks are loaded.
 *
 *    pins of the ctx ─ block cache ─ page cache (try_read) ─ device (only if the ctx may block)
 *
 * Everything read from the file is checked in this order: position and size within the file;
 * header; checksum; decompression into exactly the announced size; the structure of its kind. Only
 * then is it offered to the cache, so a cached block is a checked one. */
#include "hfile/reader.h"

#include "base/checksum.h"
#include "hfile/block_codec.h"
#include "hfile/bloom_writer.h"
#include "hfile/encoding.h"
#include "hfile/qualifiers.h"
#include "hfile/reader_priv.h"
#include "hfile/window.h"

#include <inttypes.h>
#include <stdlib.h>

/* One read at open usually covers the trailer, file info and a small file's root index. */
#define OPEN_READ_BYTES (32 * 1024)

/* --- loading a block -------------------------------------------------------------------------- */

/* Copies from bytes of the file that have been read already. False: `have` does not contain all that are wanted. */
static bool copy_from(rq_slice have, uint64_t have_offset, uint8_t *out, uint64_t offset,
                      size_t len)
{
    if (RQ_LIKELY(have.len == 0) || offset < have_offset) return false;
    uint64_t skipped = offset - have_offset;
    if (skipped > have.len || len > have.len - skipped) return false;
    memcpy(out, have.ptr + skipped, len);
    return true;
}

static rq_err read_from(rq_hfile_reader *r, const rq__block_source *source, uint8_t *out,
                        uint64_t offset, size_t len, rq_error *why)
{
    size_t got;
    if (copy_from(source->have, source->have_offset, out, offset, len) ||
        copy_from(r->end, r->end_offset, out, offset, len)) /* while the file is being opened */
        return RQ_OK;
    RQ_TRY(source->may_block ? rq_file_read(r->file, out, len, offset, &got, why)
                             : rq_file_try_read(r->file, out, len, offset, &got));
    if (got != len)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: block at offset %" PRIu64 ": the file ends %zu bytes too early",
                       r->path, offset, len - got);
    return RQ_OK;
}

static rq_err read_bytes(rq_hfile_reader *r, bool may_block, uint8_t *out, uint64_t offset,
                         size_t len, rq_error *why)
{
    rq__block_source source = {.may_block = may_block};
    return read_from(r, &source, out, offset, len, why);
}

static rq_err decompress(rq_hfile_reader *r, rq_slice packed, uint8_t *out, size_t raw_len)
{
    rq_compression kind = r->trailer.compression;
    rq_codec *codec = r->cache == NULL ? NULL : rq__cache_take_codec(r->cache, kind);
    if (codec == NULL) RQ_TRY(rq__compression_codec(kind, 0, false, &codec));
    rq_err rc = rq_codec_fill(codec, packed, out, raw_len);
    if (r->cache == NULL)
        rq_codec_free(codec);
    else
        rq__cache_give_codec(r->cache, kind, codec);
    return rc == RQ_E_MALFORMED ? RQ_E_CORRUPT : rc;
}

static rq_err load_raw(rq_hfile_reader *r, const rq__block_source *source, uint64_t offset,
                       uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    bool may_block = source->may_block;
    if (!rq__reader_has_place(r, offset, size))
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: an index names a block of %u bytes at offset %" PRIu64
                       ", outside the file",
                       r->path, size, offset);
    if (RQ_UNLIKELY(!may_block && size > RQ__LOAD_AT_ONCE_MAX)) return RQ_E_AGAIN;
    rq_hfile_block *b = NULL;
    rq__block_header h;
    bool packed = r->trailer.compression != RQ_COMPRESSION_NONE;
    rq_err rc;
    uint8_t *raw;
    if (packed) {
        rq_buf_reset(source->scratch);
        RQ_TRY(rq_buf_reserve(source->scratch, size));
        raw = source->scratch->ptr;
    } else {
        RQ_TRY(rq__block_new(r->cache, size, &b));
        raw = b->bytes;
    }
    rc = read_from(r, source, raw, offset, size, why);
    if (rc == RQ_OK)
        rc = rq__block_verify(rq_slice_of(raw, size), r->trailer.compression, r->path, offset, &h,
                              why);
    /* All blocks of a file must have the same type: one flipped bit in it would switch the
     * verification off. */
    if (rc == RQ_OK && h.checksum_type != r->checksum_type)
        rc =
            rq_fail(why, RQ_E_CORRUPT,
                    "%s: block at offset %" PRIu64 " (%s): checksum type %u, the file's is %u",
                    r->path, offset, rq_block_kind_name(h.kind), h.checksum_type, r->checksum_type);
    rq_block_kind on_disk = kind == RQ_BLOCK_DATA && r->info.encoding != RQ_ENCODING_NONE
                                ? RQ_BLOCK_ENCODED_DATA
                                : kind;
    if (rc == RQ_OK && h.kind != on_disk)
        rc = rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %" PRIu64 ": %s found, %s expected",
                     r->path, offset, rq_block_kind_name(h.kind), rq_block_kind_name(on_disk));
    if (rc == RQ_OK && !may_block && h.raw_len > RQ__LOAD_AT_ONCE_MAX) rc = RQ_E_AGAIN;
    if (rc == RQ_OK && packed) {
        rc = rq__block_new(r->cache, h.raw_len, &b);
        if (rc == RQ_OK) {
            rq_slice payload =
                rq_slice_of(raw + RQ_HFILE_HEADER_LEN, h.data_len - RQ_HFILE_HEADER_LEN);
            rc = decompress(r, payload, b->bytes, h.raw_len);
        }
        if (rc == RQ_E_CORRUPT)
            rc = rq_fail(why, RQ_E_CORRUPT,
                         "%s: block at offset %" PRIu64
                         " (%s): does not decompress (%s) to %u bytes",
                         r->path, offset, rq_block_kind_name(h.kind),
                         rq_compression_name(r->trailer.compression), h.raw_len);
    }
    if (rc != RQ_OK) {
        rq__hfile_block_unref(b);
        return rc;
    }
    b->kind = (uint8_t)h.kind;
    b->offset = offset;
    b->on_disk_len = size;
    b->file_id = rq__reader_file_id(r);
    b->rank = h.kind != RQ_BLOCK_DATA && h.kind != RQ_BLOCK_ENCODED_DATA ? RQ__RANK_META
              : r->in_memory                                             ? RQ__RANK_MEMORY
                                                                         : RQ__RANK_DATA;
    b->payload = packed ? b->bytes : b->bytes + RQ_HFILE_HEADER_LEN;
    b->payload_len = h.raw_len;
    *ret = b;
    return RQ_OK;
}

rq_err rq__reader_load_raw(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                           uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    rq__block_source source = {.scratch = scratch, .may_block = may_block};
    return load_raw(r, &source, offset, size, kind, ret, why);
}

/* A block of the same position and kind with another payload. */
static rq_err with_payload(rq_block_cache *cache, const rq_hfile_block *old, rq_slice payload,
                           rq_hfile_block **ret)
{
    rq_hfile_block *b;
    RQ_TRY(rq__block_new(cache, payload.len, &b));
    memcpy(b->bytes, payload.ptr, payload.len);
    b->payload = b->bytes;
    b->payload_len = payload.len;
    b->kind = old->kind;
    b->offset = old->offset;
    b->on_disk_len = old->on_disk_len;
    b->file_id = old->file_id;
    b->rank = old->rank;
    *ret = b;
    return RQ_OK;
}

/* Converts a data index root to the in-memory form of all index blocks. */
static rq_err form_root(rq_hfile_reader *r, const rq_hfile_block *raw, rq_buf *out, rq_error *why)
{
    rq_cursor c = rq_cursor_of(rq_slice_of(raw->payload, raw->payload_len));
    rq__index_view v;
    size_t len;
    rq_err rc = rq__index_from_root(&c, r->trailer.data_index_count, out);
    if (rc == RQ_E_NO_MEMORY) return rc;
    size_t left = rq_cursor_left(&c);
    size_t expected = r->trailer.data_index_levels > 1 ? RQ__INDEX_MID_KEY_LEN : 0;
    if (rc != RQ_OK || left != expected ||
        !rq__index_check(rq_buf_slice(out), r->data_end, true, &v, &len))
        return rq__fail_block(why, r, raw, "malformed root index");
    return rq_buf_append(out, c.ptr, left);
}

static rq_err form_bloom_meta(rq_hfile_reader *r, const rq_hfile_block *raw, rq_buf *out,
                              rq_error *why)
{
    rq_cursor c = rq_cursor_of(rq_slice_of(raw->payload, raw->payload_len));
    rq__bloom_meta m;
    memset(&m, 0, sizeof(m)); /* including padding: the struct is copied into the payload */
    uint32_t version;
    int64_t name_len;
    rq_slice name;
    if (!rq_cursor_be32(&c, &version) || !rq_cursor_be64(&c, &m.bytes) ||
        !rq_cursor_be32(&c, &m.hash_count) || !rq_cursor_be32(&c, &m.hash_type) ||
        !rq_cursor_be64(&c, &m.key_count) || !rq_cursor_be64(&c, &m.max_keys) ||
        !rq_cursor_be32(&c, &m.chunk_count) || !rq_cursor_vlong(&c, &name_len) || name_len < 0 ||
        name_len > 1024 || !rq_cursor_bytes(&c, (size_t)name_len, &name) ||
        version != RQ__BLOOM_META_VERSION || m.hash_type >= RQ__HASH_COUNT || m.hash_count == 0 ||
        m.hash_count > 1024)
        return rq__fail_block(why, r, raw, "malformed bloom meta");
    m.cell_keys = name_len > 0;
    RQ_TRY(rq_buf_append(out, &m, sizeof(m)));
    rq_err rc = rq__index_from_root(&c, m.chunk_count, out);
    if (rc == RQ_E_NO_MEMORY) return rc;
    rq__index_view v;
    size_t len;
    if (rc != RQ_OK || rq_cursor_left(&c) != 0 ||
        !rq__index_check(rq_slice_of(out->ptr + sizeof(m), out->len - sizeof(m)), r->data_end,
                         m.cell_keys, &v, &len))
        return rq__fail_block(why, r, raw, "malformed index of a bloom");
    return RQ_OK;
}

/* Converts the block to one that only has cells, plain ones or deltas (delta.h); `form` receives
 * them if they differ from the file's bytes. */
static rq_err decode_cells(rq_hfile_reader *r, rq_hfile_block *b, rq_buf *form, rq_error *why)
{
    rq_slice cells;
    rq_err rc =
        rq__encoding_decode(r->info.encoding, rq_slice_of(b->payload, b->payload_len), &cells);
    if (rc != RQ_OK || cells.len == 0) return rq__fail_block(why, r, b, "malformed encoding");
    b->payload = cells.ptr;
    b->payload_len = cells.len;
    b->kind = RQ_BLOCK_DATA;
    if (!r->unpacks_tags) return RQ_OK;
    rc = rq__delta_unpack_tags(rq__reader_delta_shape(r), cells, form);
    return rc == RQ_E_CORRUPT ? rq__fail_block(why, r, b, "malformed encoding") : rc;
}

rq_err rq__reader_load(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                       uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    rq__block_source source = {.scratch = scratch, .may_block = may_block};
    return rq__reader_load_from(r, &source, offset, size, kind, ret, why);
}

rq_err rq__reader_load_from(rq_hfile_reader *r, const rq__block_source *source, uint64_t offset,
                            uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    rq_hfile_block *raw = NULL;
    RQ_TRY(load_raw(r, source, offset, size, kind, &raw, why));
    rq_buf form = {0};
    rq_err rc = RQ_OK;
    rq__index_view v;
    size_t len;
    switch ((rq_block_kind)raw->kind) {
    case RQ_BLOCK_LEAF_INDEX:
    case RQ_BLOCK_INTERMEDIATE_INDEX:
        if (!rq__index_check(rq_slice_of(raw->payload, raw->payload_len), r->data_end, true, &v,
                             &len) ||
            v.count == 0 || len != raw->payload_len)
            rc = rq__fail_block(why, r, raw, "malformed index");
        break;
    case RQ_BLOCK_ROOT_INDEX:
        rc = form_root(r, raw, &form, why);
        break;
    case RQ_BLOCK_GENERAL_BLOOM_META:
    case RQ_BLOCK_DELETE_FAMILY_BLOOM_META:
        rc = form_bloom_meta(r, raw, &form, why);
        break;
    case RQ_BLOCK_ENCODED_DATA:
        rc = decode_cells(r, raw, &form, why);
        break;
    case RQ_BLOCK_BLOOM_CHUNK:
    case RQ_BLOCK_DATA:
        if (raw->payload_len == 0) rc = rq__fail_block(why, r, raw, "empty");
        break;
    default:
        break;
    }
    if (rc == RQ_OK && form.len > 0) {
        rq_hfile_block *b;
        rc = with_payload(r->cache, raw, rq_buf_slice(&form), &b);
        if (rc == RQ_OK) {
            rq__hfile_block_unref(raw);
            raw = b;
        }
    }
    rq_buf_clear(&form);
    if (rc != RQ_OK) {
        rq__hfile_block_unref(raw);
        return rc;
    }
    *ret = raw;
    return RQ_OK;
}

static rq_hfile_block *find_pin(const rq_read_ctx *ctx, uint64_t file_id, uint64_t offset)
{
    for (size_t i = 0; i < RQ_READ_PINS_MAX && ctx->pins[i] != NULL; i++)
        if (ctx->pins[i]->offset == offset && ctx->pins[i]->file_id == file_id) return ctx->pins[i];
    return NULL;
}

/* Loads a block that is in neither level of the cache: from a window, or from the HFile. */
static rq_err load_missing(rq_hfile_reader *r, rq_read_ctx *ctx, uint64_t offset, uint32_t size,
                           rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    if (rq__windows_have(kind))
        RQ_TRY(rq__window_take(r, offset, ctx->may_block, ctx->dont_cache && kind == RQ_BLOCK_DATA,
                               ret));
    if (*ret != NULL) return RQ_OK;
    rq__block_source source = {&ctx->scratch, ctx->may_block, ctx->have, ctx->have_offset};
    return rq__reader_load_from(r, &source, offset, size, kind, ret, why);
}

/* Loads a block that is not in memory: from the second level, otherwise from the HFile. If one of
 * them would have to wait for the device, the other may be in the page cache. */
static rq_err fetch(rq_hfile_reader *r, rq_read_ctx *ctx, uint64_t offset, uint32_t size,
                    rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    rq_hfile_block *b = NULL;
    rq_err rc = RQ_OK;
    if (r->cached != NULL) rc = rq__cache_get_second(r->cached, offset, ctx->may_block, &b);
    if (b == NULL) {
        rc = load_missing(r, ctx, offset, size, kind, &b, why);
        if (rc == RQ_E_AGAIN) {
            rq_hfile_reader_unref(ctx->need.reader);
            ctx->need = (rq_read_need){rq_hfile_reader_ref(r), offset, size, kind, ctx->follows};
        }
        RQ_TRY(rc);
        ctx->blocks_read++;
        ctx->block_bytes_read += size;
    }
    if (r->cached != NULL && !(ctx->dont_cache && kind == RQ_BLOCK_DATA))
        b = rq__cache_put(r->cached, b);
    *ret = b;
    return RQ_OK;
}

rq_err rq__reader_block(rq_hfile_reader *r, rq_read_ctx *ctx, uint64_t offset, uint32_t size,
                        rq_block_kind kind, rq_hfile_block **ret, rq_error *why)
{
    rq_hfile_block *b = find_pin(ctx, rq__reader_file_id(r), offset);
    if (b != NULL)
        (void)rq__block_ref(b);
    else if (r->cached != NULL)
        b = rq__cache_get(r->cached, offset, kind);
    if (b == NULL) RQ_TRY(fetch(r, ctx, offset, size, kind, &b, why));
    /* A damaged file may refer to the same position with different kinds. */
    if (b->kind != kind) {
        rq_err rc = rq__fail_block(why, r, b, "named as a block of another kind");
        rq__hfile_block_unref(b);
        return rc;
    }
    if (kind == RQ_BLOCK_DATA) {
        ctx->blocks_used++;
        ctx->block_bytes_used += b->payload_len;
    }
    *ret = b;
    return RQ_OK;
}

rq_err rq__reader_root(rq_hfile_reader *r, rq_read_ctx *ctx, rq__lent_block *ret, rq_error *why)
{
    return rq__reader_at_hand(r, ctx, RQ__HELD_ROOT, r->root.offset, r->root.size,
                              RQ_BLOCK_ROOT_INDEX, ret, why);
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool info_be64(const rq_hfile_reader *r, rq_slice key, uint64_t *ret)
{
    rq_slice v;
    if (!rq__file_info_get(&r->file_info, key, &v) || v.len != 8) return false;
    *ret = rq_get_be64(v.ptr);
    return true;
}

/* Java's numbers are signed: a negative one counts as missing, being below all others. */
static bool info_number(const rq_hfile_reader *r, rq_slice key, uint64_t *ret)
{
    uint64_t v;
    if (!info_be64(r, key, &v) || v > INT64_MAX) return false;
    *ret = v;
    return true;
}

static bool info_be32(const rq_hfile_reader *r, rq_slice key, uint32_t *ret)
{
    rq_slice v;
    if (!rq__file_info_get(&r->file_info, key, &v) || v.len != 4) return false;
    *ret = rq_get_be32(v.ptr);
    return true;
}

/* HBASE: Bytes.toBoolean: one byte, not zero. */
static bool info_bool(const rq_hfile_reader *r, rq_slice key)
{
    rq_slice v;
    return rq__file_info_get(&r->file_info, key, &v) && v.len == 1 && v.ptr[0] != 0;
}

/* Two be64, or "PBUF" and a TimeRangeTracker {from = 1, to = 2}. HBASE: TimeRangeTracker. */
static bool parse_time_range(rq_slice v, int64_t *ret_min, int64_t *ret_max)
{
    if (v.len == 16) {
        *ret_min = (int64_t)rq_get_be64(v.ptr);
        *ret_max = (int64_t)rq_get_be64(v.ptr + 8);
        return true;
    }
    if (!rq_slice_starts_with(v, RQ_SLICE_LIT("PBUF"))) return false;
    rq_cursor c = rq_cursor_of(rq_slice_of(v.ptr + 4, v.len - 4));
    uint64_t from = 0;
    uint64_t to = 0;
    while (rq_cursor_left(&c) > 0) {
        uint64_t tag;
        uint64_t n;
        if (!rq_cursor_varint(&c, &tag) || !rq_cursor_varint(&c, &n)) return false;
        if (tag == (1 << 3)) from = n;
        if (tag == (2 << 3)) to = n;
    }
    *ret_min = (int64_t)from;
    *ret_max = (int64_t)to;
    return true;
}

static bool is_key(rq_slice key)
{
    rq_cell cell;
    return rq_cell_parse_stored_key(key, &cell, NULL) == RQ_OK;
}

static void fill_numbers(rq_hfile_reader *r, uint64_t file_len)
{
    rq_hfile_info *info = &r->info;
    const rq__trailer *t = &r->trailer;
    uint64_t n;
    uint32_t version;
    rq_slice v;
    *info = (rq_hfile_info){
        .size_bytes = file_len,
        .entry_count = t->entry_count,
        .uncompressed_bytes = t->total_uncompressed_len,
        .index_bytes = t->uncompressed_index_len,
        .data_index_levels = t->data_index_levels,
        .compression = t->compression,
        .order = t->order,
        .min_ts = INT64_MAX,
        .max_ts = -1,
        .earliest_put_ts = INT64_MAX,
    };
    info->has_mvcc = info_be32(r, RQ__INFO_KEY_VALUE_VERSION, &version) && version == 1;
    if (info->has_mvcc) (void)info_number(r, RQ__INFO_MAX_MEMSTORE_TS, &info->max_memstore_ts);
    info->has_tags = rq__file_info_get(&r->file_info, RQ__INFO_MAX_TAGS_LEN, &v);
    info->major = info_bool(r, RQ__INFO_MAJOR_COMPACTION);
    info->exclude_from_minor = info_bool(r, RQ__INFO_EXCLUDE_FROM_MINOR);
    info->bulk_loaded = rq__file_info_get(&r->file_info, RQ__INFO_BULKLOAD_TIME, &v);
    info->has_max_seqid = info_number(r, RQ__INFO_MAX_SEQ_ID, &info->max_seqid);
    if (info_be64(r, RQ__INFO_EARLIEST_PUT_TS, &n)) info->earliest_put_ts = (int64_t)n;
    if (info_be64(r, RQ__INFO_CREATE_TIME_TS, &n)) info->create_time_ms = (int64_t)n;
    r->counts_delete_families =
        info_be64(r, RQ__INFO_DELETE_FAMILY_COUNT, &info->delete_family_count);
    (void)info_be32(r, RQ__INFO_AVG_KEY_LEN, &info->avg_key_len);
    (void)info_be32(r, RQ__INFO_AVG_VALUE_LEN, &info->avg_value_len);
}

static bool fill_qualifiers(rq_hfile_reader *r)
{
    rq_hfile_info *info = &r->info;
    info->lists_qualifiers =
        rq__file_info_get(&r->file_info, RQ__INFO_QUALIFIERS, &info->qualifiers);
    if (!info->lists_qualifiers) return true;
    if (!rq__qualifiers_ok(info->qualifiers)) return false;
    rq_slice rest = info->qualifiers, one;
    while (rq_qualifiers_next(&rest, &one))
        info->qualifier_count++;
    return true;
}

static bool fill_encoding(rq_hfile_reader *r)
{
    rq_hfile_info *info = &r->info;
    rq_slice v;
    uint32_t max_tags_len;
    if (rq__file_info_get(&r->file_info, RQ__INFO_DATA_BLOCK_ENCODING, &v) &&
        !rq__encoding_parse(v, &info->encoding))
        return false;
    r->unpacks_tags = rq__encoding_is_delta(info->encoding) && info->has_tags &&
                      info_bool(r, RQ__INFO_TAGS_COMPRESSED) &&
                      (!info_be32(r, RQ__INFO_MAX_TAGS_LEN, &max_tags_len) || max_tags_len > 0);
    return true;
}

/* Fills the parts of the info that may be malformed. Returns the name of a malformed one, or NULL. */
static const char *fill_checked(rq_hfile_reader *r)
{
    rq_hfile_info *info = &r->info;
    rq_slice v;
    if (rq__file_info_get(&r->file_info, RQ__INFO_TIMERANGE, &v)) {
        info->has_time_range = parse_time_range(v, &info->min_ts, &info->max_ts);
        if (!info->has_time_range) return "TIMERANGE";
    }
    if (rq__file_info_get(&r->file_info, RQ__INFO_BLOOM_TYPE, &v) &&
        !rq__bloom_type_parse(v, &info->bloom))
        return "BLOOM_FILTER_TYPE";
    if (!fill_qualifiers(r)) return "RORQUAL_QUALIFIERS";
    if (info->bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH &&
        !info_be32(r, RQ__INFO_BLOOM_PARAM, &r->bloom_prefix_len))
        return "BLOOM_FILTER_PARAM";
    if (r->trailer.entry_count > 0 &&
        (!rq__file_info_get(&r->file_info, RQ__INFO_LASTKEY, &info->last_key) ||
         !is_key(info->last_key)))
        return "hfile.LASTKEY";
    return fill_encoding(r) ? NULL : "DATA_BLOCK_ENCODING";
}

static rq_err fill_info(rq_hfile_reader *r, uint64_t file_len, rq_error *why)
{
    rq_slice v;
    fill_numbers(r, file_len);
    const char *bad = fill_checked(r);
    if (bad != NULL)
        return rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %" PRIu64 " (FILE_INFO): bad %s",
                       r->path, r->trailer.file_info_offset, bad);
    if (rq__file_info_get(&r->file_info, RQ__INFO_INDEX_BLOCK_ENCODING, &v) &&
        !rq_slice_eq(v, RQ_SLICE_LIT("NONE")))
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: INDEX_BLOCK_ENCODING %.*s: unknown algorithm",
                       r->path, (int)(v.len > 100 ? 100 : v.len), (const char *)v.ptr);
    return RQ_OK;
}

/* The file's first key, found along the left edge of the index. */
static rq_err fill_first_key(rq_hfile_reader *r, rq_read_ctx *ctx, rq_error *why)
{
    rq__lent_block root;
    RQ_TRY(rq__reader_root(r, ctx, &root, why));
    rq_slice key = rq__index_at(rq__index_view_of(root.block->payload), 0).key;
    rq_err rc = RQ_OK;
    r->first_key = malloc(key.len);
    if (r->first_key == NULL)
        rc = RQ_E_NO_MEMORY;
    else
        memcpy(r->first_key, key.ptr, key.len);
    r->info.first_key = rq_slice_of(r->first_key, key.len);
    rq__lent_return(root);
    return rc;
}

/* Records a load-on-open block's position, or its content. */
static rq_err take_block(rq_hfile_reader *r, unsigned nth, const rq__block_header *h,
                         uint64_t offset, rq_read_ctx *ctx, rq_error *why)
{
    rq__block_place place = {offset, h->on_disk_len};
    rq_block_kind expected[] = {RQ_BLOCK_ROOT_INDEX, RQ_BLOCK_ROOT_INDEX, RQ_BLOCK_FILE_INFO};
    if (nth < RQ_ARRAY_LEN(expected) && h->kind != expected[nth])
        return rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %" PRIu64 ": %s found, %s expected",
                       r->path, offset, rq_block_kind_name(h->kind),
                       rq_block_kind_name(expected[nth]));
    if (nth == 0) {
        r->root = place;
        r->checksum_type = h->checksum_type;
    } else if (nth == 2) {
        if (offset != r->trailer.file_info_offset)
            return rq_fail(why, RQ_E_CORRUPT,
                           "%s: trailer at offset %" PRIu64 ": file info at %" PRIu64
                           ", found at %" PRIu64,
                           r->path, r->data_end, r->trailer.file_info_offset, offset);
        rq_hfile_block *b;
        RQ_TRY(rq__reader_load(r, &ctx->scratch, true, offset, place.size, RQ_BLOCK_FILE_INFO, &b,
                               why));
        rq_err rc = rq__file_info_parse(rq_slice_of(b->payload, b->payload_len), &r->file_info);
        if (rc == RQ_E_CORRUPT) rc = rq__fail_block(why, r, b, "malformed file info");
        rq__hfile_block_unref(b);
        return rc;
    } else if (h->kind == RQ_BLOCK_GENERAL_BLOOM_META) {
        r->bloom = place;
    } else if (h->kind == RQ_BLOCK_DELETE_FAMILY_BLOOM_META) {
        r->delete_bloom = place;
    }
    return RQ_OK;
}

/* Checks every block of the section; the cache keeps the contents. */
static rq_err walk_load_on_open(rq_hfile_reader *r, rq_read_ctx *ctx, rq_error *why)
{
    uint64_t offset = r->trailer.load_on_open_offset;
    for (unsigned nth = 0; offset < r->data_end; nth++) {
        uint8_t header[RQ_HFILE_HEADER_LEN];
        rq__block_header h;
        if (r->data_end - offset < sizeof(header))
            return rq_fail(why, RQ_E_CORRUPT,
                           "%s: block at offset %" PRIu64 ": no room for a header", r->path,
                           offset);
        RQ_TRY(read_bytes(r, true, header, offset, sizeof(header), why));
        RQ_TRY(rq__block_header_parse(header, r->trailer.compression, r->path, offset, &h, why));
        RQ_TRY(take_block(r, nth, &h, offset, ctx, why));
        offset += h.on_disk_len;
    }
    if (offset != r->data_end || r->file_info.count == 0)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: the load-on-open section ends at offset %" PRIu64 ", not %" PRIu64,
                       r->path, offset, r->data_end);
    return RQ_OK;
}

static uint64_t bloom_bytes_of(const rq_hfile_block *meta)
{
    rq__bloom_meta m;
    memcpy(&m, meta->payload, sizeof m);
    return m.bytes;
}

/* Reads the metadata of blooms and index once, so that a damaged file is detected when it is
 * opened and not at some later read. Also loads them into the cache, and allocates the slots to
 * hold them. */
static rq_err touch_roots(rq_hfile_reader *r, rq_read_ctx *ctx, rq_error *why)
{
    const struct {
        rq__block_place place;
        rq_block_kind kind;
    } roots[] = {{r->root, RQ_BLOCK_ROOT_INDEX},
                 {r->bloom, RQ_BLOCK_GENERAL_BLOOM_META},
                 {r->delete_bloom, RQ_BLOCK_DELETE_FAMILY_BLOOM_META}};
    size_t named[RQ_ARRAY_LEN(roots)] = {0}; /* blocks named by each */
    for (size_t i = 0; i < RQ_ARRAY_LEN(roots); i++) {
        if (roots[i].place.size == 0) continue;
        rq_hfile_block *b;
        RQ_TRY(rq__reader_block(r, ctx, roots[i].place.offset, roots[i].place.size, roots[i].kind,
                                &b, why));
        if (i == 0) r->info.root_index_bytes = b->payload_len;
        if (i == 1) r->info.bloom_bytes = bloom_bytes_of(b);
        if (i > 0)
            named[i] = rq__bloom_meta_index(b).count;
        else if (r->trailer.data_index_levels > 1)
            named[i] = rq__index_view_of(b->payload).count;
        rq__hfile_block_unref(b);
    }
    RQ_TRY(rq__reader_held_init(r, named[1], named[2], named[0]));
    return r->trailer.entry_count == 0 ? RQ_OK : fill_first_key(r, ctx, why);
}

/* REQUIRES: r->file is open. */
static rq_err read_file(rq_hfile_reader *r, const char *path, rq_cache_family *family,
                        rq_error *why)
{
    uint64_t file_len;
    RQ_TRY(rq_file_opened_size(r->file, &file_len, why));
    rq_buf tail = {0};
    rq_read_ctx ctx = {.may_block = true};
    size_t len = file_len < OPEN_READ_BYTES ? (size_t)file_len : OPEN_READ_BYTES;
    bool has_more = false; /* to read than the tail */
    rq_err rc = rq_buf_reserve(&tail, len + 1);
    if (rc == RQ_OK) rc = read_bytes(r, true, tail.ptr, file_len - len, len, why);
    if (rc == RQ_OK) {
        r->end = rq_slice_of(tail.ptr, len);
        r->end_offset = file_len - len;
        rc = rq__trailer_parse(r->end, file_len, path, &r->trailer, why);
        has_more = rc == RQ_OK && r->trailer.load_on_open_offset < r->end_offset;
        if (has_more) rq_file_in_sequence(r->file, true);
    }
    if (rc == RQ_OK) {
        r->data_end = file_len - rq__trailer_len(r->trailer.major);
        if (r->cache != NULL)
            rc = rq__cache_file_open(r->cache, path, file_len, rq_crc32c(0, tail.ptr, len), family,
                                     &r->cached);
    }
    if (rc == RQ_OK) rc = walk_load_on_open(r, &ctx, why);
    if (rc == RQ_OK) rc = fill_info(r, file_len, why);
    if (rc == RQ_OK) rc = touch_roots(r, &ctx, why);
    if (has_more) rq_file_in_sequence(r->file, false);
    r->end = (rq_slice){NULL, 0};
    rq_buf_clear(&tail);
    rq_read_ctx_clear(&ctx);
    return rc;
}

rq_err rq__reader_header(rq_hfile_reader *r, uint64_t offset, rq_block_kind *ret_kind,
                         uint32_t *ret_size, rq_error *why)
{
    uint8_t header[RQ_HFILE_HEADER_LEN];
    rq__block_header h;
    RQ_TRY(read_bytes(r, true, header, offset, sizeof(header), why));
    RQ_TRY(rq__block_header_parse(header, r->trailer.compression, r->path, offset, &h, why));
    *ret_kind = h.kind == RQ_BLOCK_ENCODED_DATA ? RQ_BLOCK_DATA : h.kind;
    *ret_size = h.on_disk_len;
    return RQ_OK;
}

/* Takes the file. */
static rq_err new_reader(rq_file *file, const char *path, const rq_hfile_reader_options *o,
                         rq_hfile_reader **ret, rq_error *why)
{
    rq_hfile_reader *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        (void)rq_file_close(file);
        return RQ_E_NO_MEMORY;
    }
    atomic_init(&r->refs, 1);
    r->file = file;
    r->cache = o->cache;
    r->in_memory = o->in_memory;
    r->keep_blocks = o->keep_blocks;
    r->path = strdup(path);
    rq_err rc = r->path == NULL ? RQ_E_NO_MEMORY : read_file(r, path, o->family, why);
    if (rc == RQ_OK && o->half != NULL) rc = rq__half_new(o->half, path, &r->half, why);
    if (rc != RQ_OK) {
        rq_hfile_reader_unref(r);
        return rc;
    }
    *ret = r;
    return RQ_OK;
}

rq_err rq_hfile_reader_open_with(rq_vfs *vfs, const char *path, const rq_hfile_reader_options *o,
                                 rq_hfile_reader **ret, rq_error *why)
{
    rq_file *file;
    /* The files of a server are read in places; scanners tell when they read in sequence. */
    int flags = o->cache != NULL ? RQ_OPEN_READ | RQ_OPEN_RANDOM : RQ_OPEN_READ;
    RQ_TRY(rq_vfs_open(vfs, path, flags, &file, why));
    return new_reader(file, path, o, ret, why);
}

rq_err rq_hfile_reader_open_file(rq_file *file, const char *path, rq_hfile_reader **ret,
                                 rq_error *why)
{
    return new_reader(file, path, &(rq_hfile_reader_options){0}, ret, why);
}

rq_err rq_hfile_reader_open(rq_vfs *vfs, const char *path, rq_block_cache *cache, bool in_memory,
                            rq_hfile_reader **ret, rq_error *why)
{
    rq_hfile_reader_options o = {.cache = cache, .in_memory = in_memory};
    return rq_hfile_reader_open_with(vfs, path, &o, ret, why);
}

rq_hfile_reader *rq_hfile_reader_ref(rq_hfile_reader *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void rq_hfile_reader_unref(rq_hfile_reader *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
    rq__windows_forget(r);
    rq__reader_held_clear(r);
    if (r->cached != NULL) rq__cache_file_close(r->cached, !r->keep_blocks);
    (void)rq_file_close(r->file);
    rq__file_info_clear(&r->file_info);
    free(r->first_key);
    free(r->half);
    free(r->path);
    free(r);
}

const char *rq_hfile_reader_path(const rq_hfile_reader *r)
{
    return r->path;
}

void rq_hfile_reader_prefetch(const rq_hfile_reader *r)
{
    rq_prefetch_bytes(r, offsetof(rq_hfile_reader, info.major));
}

const rq_hfile_info *rq_hfile_reader_info(const rq_hfile_reader *r)
{
    return &r->info;
}

bool rq_hfile_reader_file_info(const rq_hfile_reader *r, rq_slice key, rq_slice *ret)
{
    return rq__file_info_get(&r->file_info, key, ret);
}

bool rq_hfile_reader_file_info_at(const rq_hfile_reader *r, size_t index, rq_slice *ret_key,
                                  rq_slice *ret_value)
{
    return rq__file_info_at(&r->file_info, index, ret_key, ret_value);
}

void rq__reader_follow(rq_hfile_reader *r, bool on)
{
    int others = on ? atomic_fetch_add_explicit(&r->followers, 1, memory_order_relaxed)
                    : atomic_fetch_sub_explicit(&r->followers, 1, memory_order_relaxed) - 1;
    if (others == 0) rq_file_in_sequence(r->file, on);
}

void rq_hfile_reader_drop_behind(rq_hfile_reader *r, uint64_t from, uint64_t to)
{
    if (to > from) rq_file_drop_behind(r->file, from, to - from);
}
