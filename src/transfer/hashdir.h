/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder that HBase's HashTable writes and SyncTable reads (HBASE: mapreduce.HashTable):
 *
 *    manifest              Java properties: table, targetBatchSize, numHashFiles, versions …
 *    partitions            a SequenceFile: the first row of each file of hashes but the first
 *    hashes/part-r-NNNNN/  a MapFile: the first row of each batch, and the batch's hash
 *
 * A MapFile is two SequenceFiles: `data`, and `index` with the positions of some of its keys.
 */
#ifndef RQ_TRANSFER_HASHDIR_H
#define RQ_TRANSFER_HASHDIR_H

#include "transfer/hasher.h"
#include "transfer/scan.h"
#include "transfer/seqfile.h"

#define RQ__HASH_BATCH_BYTES 8000 /* HASHTABLE: DEFAULT_BATCH_SIZE */

typedef struct rq__hash_manifest {
    char *table;          /* all texts in the arena */
    const char *families; /* "cf,cf"; NULL: all */
    uint64_t batch_bytes;
    uint64_t files;
    uint64_t scan_batch, versions; /* 0: not given */
    int64_t from_ms, to_ms;
    rq_slice start, stop;
    bool is_raw;
} rq__hash_manifest;

/* RQ_E_NOT_FOUND, RQ_E_CORRUPT; RQ_E_UNSUPPORTED: another hash than MD5. */
RQ_NODISCARD
rq_err rq__hash_manifest_read(rq_vfs *v, rq_arena *arena, rq__hash_manifest *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__hash_manifest_write(rq_vfs *v, const rq__hash_manifest *m, rq_error *why);
/* Of the text; for the tests. */
RQ_NODISCARD
rq_err rq__hash_manifest_parse(rq_slice text, rq_arena *arena, rq__hash_manifest *ret,
                               rq_error *why);
rq_transfer_scan rq__hash_manifest_scan(const rq__hash_manifest *m);

RQ_NODISCARD
rq_err rq__hash_partitions_write(rq_vfs *v, const rq_slice *rows, size_t count, rq_error *why);

typedef struct rq__map_writer {
    rq__seq_writer data, index;
    uint64_t count, index_count;
} rq__map_writer;
/* The i-th file of hashes. rq__map_writer_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__map_writer_open(rq_vfs *v, size_t i, rq__map_writer *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__map_append(rq__map_writer *w, rq_slice key, const uint8_t hash[RQ__HASH_LEN],
                      rq_error *why);
RQ_NODISCARD
rq_err rq__map_writer_finish(rq__map_writer *w, rq_error *why);
void rq__map_writer_close(rq__map_writer *w);

/* The batches of all files, in order. */
typedef struct rq__hash_reader {
    rq_vfs *vfs;
    uint64_t files, file; /* files: how many; file: that is open */
    bool is_open;
    char path[64];
    rq__seq_reader seq;
} rq__hash_reader;

/* Position of a batch: of its record, or of the compressed block that contains it. */
typedef struct rq__hash_place {
    uint64_t file, offset;
} rq__hash_place;

void rq__hash_reader_init(rq_vfs *v, uint64_t files, rq__hash_place from, rq__hash_reader *ret);
/* The next batch; the key is valid until the next call. RQ_E_END. */
RQ_NODISCARD
rq_err rq__hash_next(rq__hash_reader *r, rq_slice *ret_key, uint8_t ret_hash[RQ__HASH_LEN],
                     rq__hash_place *ret_place, rq_error *why);
void rq__hash_reader_close(rq__hash_reader *r);

#endif
