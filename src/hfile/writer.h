/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HFiles, byte-compatible with HBase 2.6 (HBASE: HFileWriterImpl, StoreFileWriter), for
 * flush, compaction and bulk load. Cells are appended in order. The file and its name are durable
 * when finish returns. Blocks; one thread at a time.
 */
#ifndef RQ_HFILE_WRITER_H
#define RQ_HFILE_WRITER_H

#include "cell/cell.h"
#include "hfile/format.h"
#include "vfs/vfs.h"

typedef struct rq_hfile_writer rq_hfile_writer;

typedef struct rq_hfile_options {
    rq_compression compression;
    int compression_level;      /* 0: the algorithm's default */
    bool zstd_bare;             /* ZSTD without Hadoop's block framing */
    rq_block_encoding encoding; /* PREFIX, DIFF, FAST_DIFF require that all cells have one family */
    bool compress_tags;         /* COMPRESS_TAGS; no effect without a delta encoding */
    uint32_t block_bytes;       /* BLOCKSIZE */
    rq_bloom_type bloom;
    uint32_t bloom_prefix_len;   /* for ROWPREFIX_FIXED_LENGTH; must not be 0 */
    double bloom_error_rate;     /* io.storefile.bloom.error.rate */
    uint32_t bloom_chunk_bytes;  /* io.storefile.bloom.block.size */
    uint32_t index_chunk_bytes;  /* hfile.index.block.max.size */
    uint32_t index_entries_min;  /* hfile.index.block.min.entries */
    rq_checksum_type checksum;   /* hbase.hstore.checksum.algorithm */
    uint32_t bytes_per_checksum; /* hbase.hstore.bytes.per.checksum */
    rq_cell_order order;
    bool include_mvcc; /* write sequence ids with the cells */
    bool include_tags;
    bool list_qualifiers; /* qualifiers.h; for store files. HBase writes no such list */
    int64_t create_time_ms;
} rq_hfile_options;

/* HBase's defaults: 64 KiB blocks, no compression, ROW bloom, CRC32C, mvcc and tags. The caller
 * sets create_time_ms. */
rq_hfile_options rq_hfile_options_default(void);

/* Creates the file. RQ_E_EXISTS: it exists. The vfs must outlive the writer. */
RQ_NODISCARD
rq_err rq_hfile_writer_open(rq_vfs *vfs, const char *path, const rq_hfile_options *o,
                            rq_hfile_writer **ret, rq_error *why);

/* Appends a cell, which is copied. RQ_E_INVALID: it sorts before its predecessor, or a length is
 * out of range. After any error the writer can only be closed. */
RQ_NODISCARD
rq_err rq_hfile_writer_append(rq_hfile_writer *w, const rq_cell *cell, rq_error *why);

/* Adds a file info entry. Keys that start with "hfile." are refused. Setting a key again
 * replaces its value. */
RQ_NODISCARD
rq_err rq_hfile_writer_append_file_info(rq_hfile_writer *w, rq_slice key, rq_slice value,
                                        rq_error *why);

/* Adds the entries of a flush or compaction: MAX_SEQ_ID_KEY, MAJOR_COMPACTION_KEY,
 * COMPACTION_EVENT_KEY (the names of the files this one replaces; none for a flush), TIMERANGE,
 * EARLIEST_PUT_TS. At most once, before finish. Without it the file is one for bulk load. */
RQ_NODISCARD
rq_err rq_hfile_writer_set_store_info(rq_hfile_writer *w, uint64_t max_seqid, bool major,
                                      const rq_slice *replaced_names, size_t replaced_count,
                                      rq_error *why);

/* Adds the file info of a MOB file (store/mob.h): sequence id, whether a major compaction wrote it,
 * and MOB_CELLS_COUNT, its number of cells. HBASE: StoreFileWriter.appendMetadata. */
RQ_NODISCARD
rq_err rq_hfile_writer_set_mob_info(rq_hfile_writer *w, uint64_t max_seqid, bool major,
                                    uint64_t cell_count);

/* Bytes written so far, including the open block; used to divide output and limit throughput. */
uint64_t rq_hfile_writer_bytes(const rq_hfile_writer *w);
uint64_t rq_hfile_writer_entry_count(const rq_hfile_writer *w);

/* Writes index, blooms, file info and trailer, and makes bytes, length and name durable. `info`
 * may be NULL; its slices are valid until close. */
RQ_NODISCARD
rq_err rq_hfile_writer_finish(rq_hfile_writer *w, rq_hfile_info *info, rq_error *why);
/* Frees the writer. Removes an unfinished file (best effort). NULL is allowed. */
void rq_hfile_writer_close(rq_hfile_writer *w);

#endif
