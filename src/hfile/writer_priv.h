/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's struct, shared by its files: writer.c makes blocks of cells, writer_info.c fills the
 * file info, writer_end.c writes what follows the data blocks.
 */
#ifndef RQ_HFILE_WRITER_PRIV_H
#define RQ_HFILE_WRITER_PRIV_H

#include "hfile/writer.h"

#include "hfile/bloom_writer.h"
#include "hfile/index.h"
#include "hfile/qualifiers.h"
#include "hfile/tag_dictionary.h"
#include "hfile/trailer.h"

struct rq_hfile_writer {
    rq_vfs *vfs;
    char *path;
    rq_hfile_options options;
    rq_codec *codec;
    rq_file *file;
    bool finished;
    rq_err failed; /* the error of the first failed call, or RQ_OK */

    rq_buf out;          /* blocks not yet written to the file */
    uint64_t out_offset; /* file offset of `out` */
    uint64_t prev_offset[RQ_BLOCK_KIND_COUNT];
    uint64_t uncompressed_len; /* HBase's totalUncompressedBytes: payloads and headers */

    rq_buf block;     /* the open data block's cells; unused if they are delta-encoded */
    size_t block_len; /* the length that its cells have, or would have, in `block` */
    rq_buf rows;      /* ROW_INDEX_V1: be32 offset of each row in block */
    rq_buf encoded;   /* payload of an encoded block; a delta encoding's grows cell by cell */
    rq__tag_dictionary tags; /* of the open block */
    rq_buf block_first;      /* key of the block's first cell, serialized */
    rq_cell last;      /* the last cell appended: a view on `block` or last_bytes, or on prev_key
                              * between blocks; the value only with FAST_DIFF */
    rq_buf last_bytes; /* delta encodings: the last cell's row, family, qualifier and value */
    rq_buf prev_key;   /* last key of the previous block, serialized */
    bool has_prev;     /* prev_key is set */
    bool has_last;
    uint64_t first_data_offset, last_data_offset;

    rq__index_chunk leaf; /* entries of data blocks that are not in a leaf block yet */
    rq__index_chunk root;
    uint64_t index_entries;
    uint64_t index_len; /* uncompressed, all levels */
    uint32_t index_levels;

    rq__bloom_writer bloom;
    rq__bloom_writer delete_bloom;
    rq_buf delete_row; /* the last row added to delete_bloom */
    bool has_delete_row;
    rq_buf key; /* scratch */

    uint64_t entry_count, key_len_sum, value_len_sum;
    uint64_t max_seqid, delete_family_count;
    uint32_t max_tags_len;
    uint64_t biggest_len;
    rq_buf biggest_key;
    rq_buf first_key, last_key; /* of the file */
    int64_t min_ts, max_ts, earliest_put_ts;
    rq__qualifiers qualifiers; /* qualifiers of its puts */
    bool is_store_file;
    bool major;
    uint64_t store_seqid;
    rq__file_info info;
};

/* --- writer.c --------------------------------------------------------------------------------- */
/* Appends a block with this payload; returns its offset and its size on disk. */
RQ_NODISCARD
rq_err rq__writer_put_block(rq_hfile_writer *w, rq_block_kind kind, rq_slice payload,
                            uint64_t *ret_offset, uint32_t *ret_size, rq_error *why);
/* Writes the open data block, if there is one. */
RQ_NODISCARD
rq_err rq__writer_put_data_block(rq_hfile_writer *w, rq_error *why);
/* Writes the finished leaf index blocks and bloom chunks, between two data blocks. A file whose
 * entries all fit into the first leaf has no leaf blocks: that leaf becomes the root. */
RQ_NODISCARD
rq_err rq__writer_put_inline_blocks(rq_hfile_writer *w, bool closing, rq_error *why);
/* Writes `out` to the file. */
RQ_NODISCARD
rq_err rq__writer_flush_out(rq_hfile_writer *w, rq_error *why);
/* Builds a cell's key for a ROWCOL bloom in w->key. */
RQ_NODISCARD
rq_err rq__writer_rowcol_key(rq_hfile_writer *w, const rq_cell *cell);
/* A cell's key for a ROWPREFIX_FIXED_LENGTH bloom. */
rq_slice rq__writer_row_prefix(const rq_hfile_writer *w, const rq_cell *cell);

/* --- writer_info.c ---------------------------------------------------------------------------- */
/* Adds the entries that HBase's StoreFileWriter and HFileWriterImpl add on close. */
RQ_NODISCARD
rq_err rq__writer_fill_info(rq_hfile_writer *w);

#endif
