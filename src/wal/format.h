/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's bytes. All integers are big-endian, all checksums CRC-32C.
 *
 * The log is one contiguous sequence of frames. A frame's position in it, in bytes, is its LSN. The
 * log is divided into WAL files (NNNNNN.wal). Their names are used again; the header gives
 * their order, not the name.
 *
 *   WAL file:  0 header copy | 512 header copy | 4096 frames … | after sealing: index
 *
 *   header (96 bytes, the rest of its sector is zero)
 *      0  8  magic "RQWAL01\n"         40  8  oldest WAL file needed when this one was begun
 *      8  4  version, 1                48  8  wall clock, ms
 *     12  4  flags: 1 = clean close    56  8  number of the predecessor, 0: none
 *     16  8  number, ascending         64  4  CRC of the predecessor's last frame's header
 *     24  8  log epoch                 68  24 zero
 *     32  8  LSN of the first frame    92  4  CRC of the 92 before
 *
 *   frame (padded with zeros to a multiple of 8)
 *      0  4  magic "RQf1"              24  4  length of the body
 *      4  4  log epoch (low 32 bits)   28  4  CRC of the former frame's header (its bytes 36..39)
 *      8  8  LSN of this frame         32  4  CRC of the body
 *     16  8  LSN known durable         36  4  CRC of the 36 before
 *             when it was staged       40     body
 *
 *   body, a record:  u8 kind | u8 length, region | be16 length, table | be64 sequence id |
 *     be64 write time | be64 nonce group | be64 nonce | u8 count, cluster ids of 16 bytes |
 *     be16 length, scopes | payload to the end
 *   body, a mark:  u8 0
 *
 *   index, at the end of a sealed WAL file; no part of the LSN sequence
 *      0  4  magic "RQix"               8  8  LSN of the WAL file's end
 *      4  4  length of the body        16  4  CRC of the body      20  4  CRC of the 20 before
 *     24     body: be64 width of a chunk | 64 × be32 offset of the first frame beginning in the
 *            chunk behind 4096, ffffffff: none | be32 count | entries: u8 length, region |
 *            be64 lowest | be64 highest | be64 highest EDIT | be64 chunks
 *
 *  1. A frame belongs to its WAL file if its epoch and LSN fit its offset. Old frames in a recycled
 *     file have lower LSNs at the same offsets, and another frame's CRC as that of the former frame;
 *     they read as the end of the log, and prove nothing about bytes before them (rule 5).
 *  2. A WAL file's header is durable before its first frame is written, and its predecessor's
 *     frames are durable before the header is: a later WAL file proves that an earlier one is
 *     complete.
 *  3. The older (or invalid) header copy is overwritten and synced first, then the other one. A
 *     power cut leaves the old or the new header. Two invalid copies are corruption, unless the
 *     second is all zeros: then the file was never used.
 *  4. The live WAL files are the one with the newest header and its predecessors, down to the one
 *     that it names as oldest. Other files are free.
 *  5. An invalid frame ends the log unless something proves that it was durable: a successor whose
 *     first LSN is above it, or a later frame whose "known durable" is above it.
 */
#ifndef RQ_WAL_FORMAT_H
#define RQ_WAL_FORMAT_H

#define RQ_WAL_MAGIC "RQWAL01\n"
#define RQ_WAL_VERSION 1
#define RQ_WAL_FLAG_CLEAN 1u
#define RQ_WAL_HEADER_LEN 96
#define RQ_WAL_HEADER_COPY_AT 512
#define RQ_WAL_FRAMES_AT 4096

#define RQ_WAL_FRAME_MAGIC 0x52516631u /* "RQf1" */
#define RQ_WAL_FRAME_HEADER_LEN 40
#define RQ_WAL_ALIGN 8
#define RQ_WAL_MARK 0      /* takes the place of a record's kind */
#define RQ_WAL_FIRST_LSN 8 /* first LSN of a new log; 0 is before every record */

#define RQ_WAL_INDEX_MAGIC 0x52516978u /* "RQix" */
#define RQ_WAL_INDEX_HEADER_LEN 24
#define RQ_WAL_INDEX_BODY_FIXED (8 + 4 * 64 + 4)
#define RQ_WAL_CHUNK_EMPTY UINT32_MAX

/* Length of a record's body without names, ids, scopes and payload. */
#define RQ_WAL_RECORD_FIXED (1 + 1 + 2 + 4 * 8 + 1 + 2)

#endif
