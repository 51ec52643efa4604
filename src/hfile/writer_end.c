/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a new HFile: upper levels of the index, the sections that a reader loads when it opens
 * the file, in HBase's order (format.h), the trailer; then file and folder are synced. HBASE:
 * HFileWriterImpl.close, HFileBlockIndex.BlockIndexWriter.
 */
#include "hfile/writer_priv.h"

/* Divides the root into blocks of an intermediate level and makes a smaller root above them. */
static rq_err put_intermediate_level(rq_hfile_writer *w, rq_error *why)
{
    rq__index_chunk parent = {0};
    rq__index_chunk chunk = {0};
    rq_buf payload = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < w->root.count && rc == RQ_OK; i++) {
        rq__index_entry e = rq__index_chunk_at(&w->root, i);
        rc = rq__index_chunk_add(&chunk, e.key, e.offset, e.size, 0);
        bool full =
            i >= w->options.index_entries_min && chunk.root_len >= w->options.index_chunk_bytes;
        if (rc != RQ_OK || (!full && i + 1 < w->root.count)) continue;
        uint64_t offset;
        uint32_t size;
        rq_buf_reset(&payload);
        rc = rq__index_chunk_write(&chunk, &payload);
        if (rc == RQ_OK)
            rc = rq__writer_put_block(w, RQ_BLOCK_INTERMEDIATE_INDEX, rq_buf_slice(&payload),
                                      &offset, &size, why);
        if (rc == RQ_OK)
            rc = rq__index_chunk_add(&parent, rq__index_chunk_at(&chunk, 0).key, offset, size, 0);
        w->index_len += payload.len;
        rq__index_chunk_reset(&chunk);
    }
    rq_buf_clear(&payload);
    rq__index_chunk_clear(&chunk);
    if (rc != RQ_OK) {
        rq__index_chunk_clear(&parent);
        return rc;
    }
    rq__index_chunk_clear(&w->root);
    w->root = parent;
    w->index_levels++;
    return RQ_OK;
}

static rq_err put_index(rq_hfile_writer *w, uint64_t *ret_root_offset, rq_error *why)
{
    rq_buf root = {0};
    rq_buf mid_key = {0};
    rq_err rc = RQ_OK;
    if (w->root.count == 0) {
        rq__index_chunk_clear(&w->root);
        w->root = w->leaf;
        w->leaf = (rq__index_chunk){0};
    } else {
        rc = rq__index_chunk_write_mid_key(&w->root, &mid_key);
    }
    while (rc == RQ_OK && w->index_levels > 1 && w->index_levels < RQ_HFILE_INDEX_LEVELS_MAX &&
           w->root.root_len > w->options.index_chunk_bytes &&
           w->root.count > w->options.index_entries_min)
        rc = put_intermediate_level(w, why);
    if (rc == RQ_OK) rc = rq__index_chunk_write_root(&w->root, &root);
    if (rc == RQ_OK) rc = rq_buf_append(&root, mid_key.ptr, mid_key.len);
    uint32_t size;
    if (rc == RQ_OK)
        rc = rq__writer_put_block(w, RQ_BLOCK_ROOT_INDEX, rq_buf_slice(&root), ret_root_offset,
                                  &size, why);
    w->index_len += root.len;
    w->uncompressed_len -= root.len + RQ_HFILE_HEADER_LEN; /* as for intermediate blocks */
    rq_buf_clear(&root);
    rq_buf_clear(&mid_key);
    return rc;
}

static rq_err put_bloom_meta(rq_hfile_writer *w, const rq__bloom_writer *bloom, rq_block_kind kind,
                             rq_error *why)
{
    if (bloom->key_count == 0) return RQ_OK;
    rq_buf payload = {0};
    uint64_t offset;
    uint32_t size;
    rq_err rc = rq__bloom_writer_meta(bloom, &payload);
    if (rc == RQ_OK)
        rc = rq__writer_put_block(w, kind, rq_buf_slice(&payload), &offset, &size, why);
    rq_buf_clear(&payload);
    return rc;
}

static rq_err put_load_on_open(rq_hfile_writer *w, rq__trailer *t, rq_error *why)
{
    uint64_t offset;
    uint32_t size;
    RQ_TRY(put_index(w, &t->load_on_open_offset, why));
    RQ_TRY(rq__writer_put_block(w, RQ_BLOCK_ROOT_INDEX, (rq_slice){0}, &offset, &size,
                                why)); /* meta index */
    RQ_TRY(rq__writer_fill_info(w));
    rq_buf payload = {0};
    rq_err rc = rq__file_info_write(&w->info, &payload);
    if (rc == RQ_OK)
        rc = rq__writer_put_block(w, RQ_BLOCK_FILE_INFO, rq_buf_slice(&payload),
                                  &t->file_info_offset, &size, why);
    rq_buf_clear(&payload);
    RQ_TRY(rc);
    RQ_TRY(put_bloom_meta(w, &w->bloom, RQ_BLOCK_GENERAL_BLOOM_META, why));
    return put_bloom_meta(w, &w->delete_bloom, RQ_BLOCK_DELETE_FAMILY_BLOOM_META, why);
}

static rq_err finish(rq_hfile_writer *w, rq__trailer *t, rq_error *why)
{
    RQ_TRY(rq__writer_put_data_block(w, why));
    t->entry_count = w->entry_count;
    t->first_data_offset = w->first_data_offset;
    t->last_data_offset = w->last_data_offset;
    RQ_TRY(rq__writer_put_inline_blocks(w, true, why));
    RQ_TRY(rq_buf_append(&w->last_key, w->prev_key.ptr, w->prev_key.len));
    RQ_TRY(put_load_on_open(w, t, why));
    t->total_uncompressed_len = w->uncompressed_len + RQ_HFILE_TRAILER_LEN;
    t->uncompressed_index_len = w->index_len;
    t->data_index_count = (uint32_t)w->root.count;
    t->data_index_levels = w->index_levels;
    RQ_TRY(rq__trailer_write(t, &w->out));
    RQ_TRY(rq__writer_flush_out(w, why));
    RQ_TRY(rq_file_sync(w->file, why));
    rq_file *file = w->file;
    w->file = NULL;
    RQ_TRY(rq_file_close(file));
    return rq_vfs_sync_parent(w->vfs, w->path, why);
}

rq_err rq_hfile_writer_finish(rq_hfile_writer *w, rq_hfile_info *info, rq_error *why)
{
    RQ_ASSERT(w->failed == RQ_OK && !w->finished);
    rq__trailer t = {
        .major = RQ_HFILE_MAJOR,
        .minor = RQ_HFILE_MINOR,
        .order = w->options.order,
        .compression = w->options.compression,
    };
    w->failed = finish(w, &t, why);
    RQ_TRY(w->failed);
    w->finished = true;
    if (info == NULL) return RQ_OK;
    *info = (rq_hfile_info){
        .size_bytes = w->out_offset,
        .entry_count = w->entry_count,
        .uncompressed_bytes = t.total_uncompressed_len,
        .data_index_levels = w->index_levels,
        .compression = w->options.compression,
        .encoding = w->options.encoding,
        .order = w->options.order,
        .bloom = w->bloom.key_count > 0 ? w->options.bloom : RQ_BLOOM_NONE,
        .has_mvcc = w->options.include_mvcc,
        .has_tags = w->options.include_tags,
        .major = w->major,
        .has_max_seqid = w->is_store_file,
        .max_seqid = w->store_seqid,
        .max_memstore_ts = w->options.include_mvcc ? w->max_seqid : 0,
        .has_time_range = w->is_store_file,
        .min_ts = w->min_ts,
        .max_ts = w->max_ts,
        .earliest_put_ts = w->earliest_put_ts,
        .create_time_ms = w->options.create_time_ms,
        .delete_family_count = w->delete_family_count,
        .lists_qualifiers =
            w->is_store_file && w->options.list_qualifiers && !w->qualifiers.too_many,
        .qualifiers = rq_slice_of(w->qualifiers.bytes, w->qualifiers.len),
        .avg_key_len = w->entry_count == 0 ? 0 : (uint32_t)(w->key_len_sum / w->entry_count),
        .avg_value_len = w->entry_count == 0 ? 0 : (uint32_t)(w->value_len_sum / w->entry_count),
        .first_key = rq_buf_slice(&w->first_key),
        .last_key = rq_buf_slice(&w->last_key),
    };
    return RQ_OK;
}
