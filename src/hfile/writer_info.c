/* SPDX-License-Identifier: Apache-2.0 */
/* The file info of a new HFile: entries from the store, and the writer's own counts. HBASE:
 * HFileInfo, StoreFileWriter. */
#include "hfile/writer_priv.h"

#include "hfile/encoding.h"

rq_err rq_hfile_writer_append_file_info(rq_hfile_writer *w, rq_slice key, rq_slice value,
                                        rq_error *why)
{
    if (rq_slice_starts_with(key, RQ_SLICE_LIT("hfile.")))
        return rq_fail(why, RQ_E_INVALID, "Keys with a hfile. are reserved");
    return rq__file_info_set(&w->info, key, value);
}

static rq_err set_be64(rq_hfile_writer *w, rq_slice key, uint64_t v)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, v);
    return rq__file_info_set(&w->info, key, rq_slice_of(bytes, 8));
}

static rq_err set_be32(rq_hfile_writer *w, rq_slice key, uint32_t v)
{
    uint8_t bytes[4];
    rq_put_be32(bytes, v);
    return rq__file_info_set(&w->info, key, rq_slice_of(bytes, 4));
}

/* HBASE: Bytes.toBytes(boolean) is -1 or 0. */
static rq_err set_bool(rq_hfile_writer *w, rq_slice key, bool v)
{
    return rq__file_info_set(&w->info, key, rq_slice_of(v ? "\xff" : "\0", 1));
}

static rq_err set_origin(rq_hfile_writer *w, uint64_t max_seqid, bool major)
{
    w->is_store_file = true;
    w->major = major;
    w->store_seqid = max_seqid;
    RQ_TRY(set_be64(w, RQ__INFO_MAX_SEQ_ID, max_seqid));
    return set_bool(w, RQ__INFO_MAJOR_COMPACTION, major);
}

rq_err rq_hfile_writer_set_mob_info(rq_hfile_writer *w, uint64_t max_seqid, bool major,
                                    uint64_t cell_count)
{
    RQ_TRY(set_origin(w, max_seqid, major));
    return set_be64(w, RQ_SLICE_LIT("MOB_CELLS_COUNT"), cell_count);
}

rq_err rq_hfile_writer_set_store_info(rq_hfile_writer *w, uint64_t max_seqid, bool major,
                                      const rq_slice *replaced_names, size_t replaced_count,
                                      rq_error *why)
{
    (void)why;
    RQ_TRY(set_origin(w, max_seqid, major));
    rq_buf event = {0}; /* "PBUF", CompactionEventTracker */
    rq_err rc = rq_buf_append(&event, "PBUF", 4);
    for (size_t i = 0; i < replaced_count && rc == RQ_OK; i++) {
        rc = rq_buf_append_u8(&event, 1 << 3 | 2);
        if (rc == RQ_OK) rc = rq_buf_append_varint(&event, replaced_names[i].len);
        if (rc == RQ_OK) rc = rq_buf_append(&event, replaced_names[i].ptr, replaced_names[i].len);
    }
    if (rc == RQ_OK)
        rc = rq__file_info_set(&w->info, RQ__INFO_COMPACTION_EVENT, rq_buf_slice(&event));
    rq_buf_clear(&event);
    return rc;
}

rq_err rq__writer_fill_info(rq_hfile_writer *w)
{
    if (w->is_store_file) {
        uint8_t range[16];
        rq_put_be64(range, (uint64_t)w->min_ts);
        rq_put_be64(range + 8, (uint64_t)w->max_ts);
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_TIMERANGE, rq_slice_of(range, 16)));
        RQ_TRY(set_be64(w, RQ__INFO_EARLIEST_PUT_TS, (uint64_t)w->earliest_put_ts));
        if (w->options.list_qualifiers && !w->qualifiers.too_many)
            RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_QUALIFIERS,
                                     rq_slice_of(w->qualifiers.bytes, w->qualifiers.len)));
    }
    RQ_TRY(set_bool(w, RQ__INFO_HISTORICAL, false));
    if (w->bloom.key_count > 0) {
        rq_slice name = rq_slice_cstr(rq__bloom_type_name(w->options.bloom));
        rq_slice last = rq_cell_row(&w->last);
        if (w->options.bloom == RQ_BLOOM_ROWCOL) {
            RQ_TRY(rq__writer_rowcol_key(w, &w->last));
            last = rq_buf_slice(&w->key);
        } else if (w->options.bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH) {
            last = rq__writer_row_prefix(w, &w->last);
            RQ_TRY(set_be32(w, RQ__INFO_BLOOM_PARAM, w->options.bloom_prefix_len));
        }
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_BLOOM_TYPE, name));
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_LAST_BLOOM_KEY, last));
    }
    RQ_TRY(set_be64(w, RQ__INFO_DELETE_FAMILY_COUNT, w->delete_family_count));
    if (w->options.include_mvcc) {
        RQ_TRY(set_be64(w, RQ__INFO_MAX_MEMSTORE_TS, w->max_seqid));
        RQ_TRY(set_be32(w, RQ__INFO_KEY_VALUE_VERSION, 1));
    }
    uint64_t n = w->entry_count == 0 ? 1 : w->entry_count;
    if (w->entry_count > 0) {
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_LASTKEY, rq_buf_slice(&w->last_key)));
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_KEY_OF_BIGGEST_CELL,
                                 rq_buf_slice(&w->biggest_key)));
        RQ_TRY(set_be64(w, RQ__INFO_LEN_OF_BIGGEST_CELL, w->biggest_len));
    }
    RQ_TRY(set_be32(w, RQ__INFO_AVG_KEY_LEN, (uint32_t)(w->key_len_sum / n)));
    RQ_TRY(set_be32(w, RQ__INFO_AVG_VALUE_LEN, (uint32_t)(w->value_len_sum / n)));
    RQ_TRY(set_be64(w, RQ__INFO_CREATE_TIME_TS, (uint64_t)w->options.create_time_ms));
    if (w->options.encoding != RQ_ENCODING_NONE) {
        rq_slice name = rq_slice_cstr(rq__encoding_name(w->options.encoding));
        RQ_TRY(rq__file_info_set(&w->info, RQ__INFO_DATA_BLOCK_ENCODING, name));
    }
    if (w->options.include_tags) {
        RQ_TRY(set_be32(w, RQ__INFO_MAX_TAGS_LEN, w->max_tags_len));
        RQ_TRY(set_bool(w, RQ__INFO_TAGS_COMPRESSED,
                        w->options.compress_tags && w->options.encoding != RQ_ENCODING_NONE));
    }
    return RQ_OK;
}
