/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hadoop's SequenceFile, version 6, with keys of class ImmutableBytesWritable: HBase's Export, and
 * the files of HashTable. HADOOP: SequenceFile.
 *
 *    header   "SEQ" 6 | key class | value class | u8 compressed | u8 blocks | [codec class]
 *             | be32 count, count × (name, value) | 16 bytes of sync marker
 *    record   be32 length of key and value | be32 length of key | key | value
 *    sync     be32 -1 | the marker; before a record, at intervals
 *    block    sync | vint records | lengths of keys | keys | lengths of values | values
 *
 * Texts are a vint length and UTF-8. `compressed`: each value is deflated. `blocks`: instead of
 * records there are blocks; each of their four parts is a vint length and that many deflated bytes,
 * lengths in them are vints. A key is be32 length and bytes.
 *
 * The writer writes records, not compressed. The reader reads all three; its input is untrusted.
 */
#ifndef RQ_TRANSFER_SEQFILE_H
#define RQ_TRANSFER_SEQFILE_H

#include "transfer/in.h"
#include "transfer/out.h"

#define RQ__SEQ_SYNC_LEN 16
#define RQ__SEQ_CLASS_MAX 256
#define RQ__CLASS_BYTES "org.apache.hadoop.hbase.io.ImmutableBytesWritable"
#define RQ__CLASS_RESULT "org.apache.hadoop.hbase.client.Result"
#define RQ__CLASS_NULL "org.apache.hadoop.io.NullWritable"
#define RQ__CLASS_LONG "org.apache.hadoop.io.LongWritable"

typedef struct rq__seq_writer {
    rq__out out;
    uint8_t sync[RQ__SEQ_SYNC_LEN];
    uint64_t synced; /* length of the file behind the last marker */
} rq__seq_writer;

/* Replaces a file of that name. rq__seq_writer_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__seq_writer_open(rq_vfs *v, const char *path, const char *value_class,
                           rq__seq_writer *ret, rq_error *why);
/* `value` is serialized; the key is not. */
RQ_NODISCARD
rq_err rq__seq_append(rq__seq_writer *w, rq_slice key, rq_slice value, rq_error *why);
/* Makes the file durable. */
RQ_NODISCARD
rq_err rq__seq_writer_finish(rq__seq_writer *w, rq_error *why);
void rq__seq_writer_close(rq__seq_writer *w);

typedef struct rq__seq_reader {
    rq__in in;
    const char *path; /* borrowed, for messages */
    char key_class[RQ__SEQ_CLASS_MAX], value_class[RQ__SEQ_CLASS_MAX], codec[RQ__SEQ_CLASS_MAX];
    bool is_compressed, has_blocks;
    uint8_t sync[RQ__SEQ_SYNC_LEN];
    uint64_t header_end;
    bool sync_seen;  /* directly before the last record */
    uint64_t start;  /* of the last record, or of the sync before it */
    rq_buf value;    /* inflated */
    rq_buf parts[4]; /* of the block, inflated */
    rq_cursor key_lengths, keys, value_lengths, values;
    uint64_t in_block; /* records left */
} rq__seq_reader;

/* Reads the header. RQ_E_CORRUPT: it is damaged, or no SequenceFile; RQ_E_UNSUPPORTED: another
 * version, codec or class. `value_class` NULL: any. `path` must outlive the reader;
 * rq__seq_reader_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__seq_reader_open(rq_vfs *v, const char *path, const char *value_class,
                           rq__seq_reader *ret, rq_error *why);
/* Goes to the first sync marker at or behind `from` (0: the first record). */
RQ_NODISCARD
rq_err rq__seq_seek(rq__seq_reader *r, uint64_t from, rq_error *why);
/* The next record that belongs to the part of the file that ends at `to`: those up to the first
 * marker at or behind it. Slices are valid until the next call. RQ_E_END: no more. */
RQ_NODISCARD
rq_err rq__seq_next(rq__seq_reader *r, uint64_t to, rq_slice *ret_key, rq_slice *ret_value,
                    rq_error *why);
void rq__seq_reader_close(rq__seq_reader *r);

#endif
